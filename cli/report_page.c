/* report_page.c: one file that needs no other: the page's own text, made part of the command when it is built
 * (cmake/embed.cmake), with the data in its middle.
 *
 * The data is JSON inside a script element, which HTML ends at the first "</script" it sees, whatever it means in JSON.
 * A "<" can stand only inside a JSON string, and may be written as \u003c there: so it is, everywhere. */
#include <stdlib.h>

#include "file.h"
#include "report.h"
#include "report_text.h"
#include "verbs.h"

static bool no_memory(void)
{
    (void)fputs("neap: host memory is exhausted\n", stderr);
    return false;
}

static bool put_data(FILE *file, const report_request *request, const report_subject *subjects, size_t n_subjects,
                     const size_t *panes, size_t n_panes)
{
    bool is_put = true;
    json out = json_begin(file);
    json_object_begin(&out, NULL);
    json_text(&out, "version", neap_version());
    json_real(&out, "slower", request->options.slower);
    json_array_begin(&out, "panes");
    for (size_t i = 0; i < n_panes; i++) {
        json_uint(&out, NULL, panes[i]);
    }
    json_array_end(&out);
    json_array_begin(&out, "subjects");
    for (size_t i = 0; i < n_subjects && is_put; i++) {
        is_put = report_put_subject(&out, request, &subjects[i]);
    }
    json_array_end(&out);
    json_object_end(&out);
    json_end(&out);
    return is_put;
}

static void put_escaped(FILE *file, const char *text, size_t n)
{
    size_t begin = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '<') {
            (void)fwrite(text + begin, 1, i - begin, file);
            (void)fputs("\\u003c", file);
            begin = i + 1;
        }
    }
    (void)fwrite(text + begin, 1, n - begin, file);
}

static bool write_text(const char *path, const char *data, size_t n_data, uint64_t *n_bytes)
{
    new_file file;
    if (!file_create(path, &file)) {
        return false;
    }
    (void)fwrite(report_text_head, 1, report_text_head_bytes, file.stream);
    put_escaped(file.stream, data, n_data);
    (void)fwrite(report_text_tail, 1, report_text_tail_bytes, file.stream);
    long at = ftell(file.stream); /* -1 in a pipe */
    *n_bytes = at > 0 ? (uint64_t)at : 0;
    return file_commit(&file);
}

bool report_write_page(const report_request *request, const report_subject *subjects, size_t n_subjects,
                       const size_t *panes, size_t n_panes, uint64_t *n_bytes)
{
    char *data = NULL;
    size_t n_data = 0;
    FILE *memory = open_memstream(&data, &n_data);
    if (!memory) {
        return no_memory();
    }
    bool is_put = put_data(memory, request, subjects, n_subjects, panes, n_panes);
    bool is_whole = ferror(memory) == 0;
    is_whole &= fclose(memory) == 0;
    bool is_written = is_put && is_whole ? write_text(request->output, data, n_data, n_bytes) : no_memory();
    free(data);
    return is_written;
}
