/* verify_compare.c: whether two runs printed the same, to the byte, and where not. */
#include <stdlib.h>
#include <string.h>

#include "verify.h"

typedef struct line_reader {
    FILE *file;
    char *text;
    size_t room;
    ssize_t n; /* -1 after the last */
} line_reader;

static bool next_line(line_reader *reader)
{
    reader->n = getline(&reader->text, &reader->room, reader->file);
    return reader->n >= 0;
}

/* One line, cut to what a screen can show; "(nothing)" where the output has ended. */
static void show_line(const line_reader *reader, char *text, size_t bytes)
{
    if (reader->n < 0) {
        (void)snprintf(text, bytes, "(nothing)");
        return;
    }
    size_t n = (size_t)reader->n;
    while (n > 0 && (reader->text[n - 1] == '\n' || reader->text[n - 1] == '\r')) {
        n--;
    }
    bool is_cut = n > bytes - 4;
    n = is_cut ? bytes - 4 : n;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)reader->text[i];
        text[i] = (char)(c < ' ' || c == 0x7f ? ' ' : c); /* a terminal is not to be driven by it */
    }
    (void)snprintf(text + n, bytes - n, "%s", is_cut ? "..." : "");
}

bool verify_compare(const verify_output *a, const verify_output *b, verify_difference *difference)
{
    *difference = (verify_difference){.is_status = a->status != b->status};
    if (difference->is_status) {
        (void)verify_status_text(a->status, difference->first);
        (void)verify_status_text(b->status, difference->second);
        return false;
    }
    rewind(a->out);
    rewind(b->out);
    line_reader readers[2] = {{.file = a->out}, {.file = b->out}};
    bool is_same = true;
    bool goes_on = true;
    while (goes_on && is_same) {
        bool has_first = next_line(&readers[0]);
        bool has_second = next_line(&readers[1]);
        difference->line++;
        is_same = readers[0].n == readers[1].n &&
                  (!has_first || memcmp(readers[0].text, readers[1].text, (size_t)readers[0].n) == 0);
        goes_on = has_first && has_second;
    }
    if (!is_same) {
        show_line(&readers[0], difference->first, sizeof difference->first);
        show_line(&readers[1], difference->second, sizeof difference->second);
    }
    free(readers[0].text);
    free(readers[1].text);
    return is_same;
}

uint64_t verify_count_lines(const verify_output *output)
{
    uint64_t n = 0;
    line_reader reader = {.file = output->out};
    rewind(output->out);
    while (next_line(&reader)) {
        n++;
    }
    free(reader.text);
    return n;
}

void verify_print_tail(const verify_output *output, FILE *file)
{
    enum { LINES = 5 };
    char lines[LINES][200];
    uint64_t n = 0;
    line_reader reader = {.file = output->err};
    rewind(output->err);
    while (next_line(&reader)) {
        show_line(&reader, lines[n++ % LINES], sizeof lines[0]);
    }
    for (uint64_t i = n > LINES ? n - LINES : 0; i < n; i++) {
        (void)fprintf(file, "  %s\n", lines[i % LINES]);
    }
    free(reader.text);
}
