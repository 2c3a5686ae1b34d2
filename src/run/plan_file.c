/* plan_file.c: patterns in a file.
 *
 * A line of text names the format; then come the length of the content, its checksum, and the content. There is a
 * whole file under the path at any time, or none (base/new_file.h). */
#include "run/plan_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/new_file.h"
#include "base/status.h"
#include "run/plan_code.h"
#include "trace/message.h"

enum {
    LINE_BYTES = 12,       /* "neap-plan 1\n" */
    HEADER_BYTES = 12 + 12 /* the line, 8 bytes of length, 4 of checksum */
};

static const char line_word[] = "neap-plan ";

/* ---------------------------------------------------------------- writing ---- */

typedef struct target {
    np_new_file file;
    char temporary[NP_PLAN_PATH_BYTES + NP_NEW_FILE_SUFFIX];
    char folder[NP_PLAN_PATH_BYTES];
    bool made_folder;
    bool is_folder_missing; /* and cannot be made */
} target;

static void put_fixed(unsigned char *at, uint64_t number, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++) {
        at[i] = (unsigned char)(number >> (8 * i));
    }
}

static neap_status make_bytes(np_plan_writer *w, const np_plan_origin *origin, uint64_t limit_used,
                              const np_pattern *const *patterns, size_t n_patterns)
{
    unsigned char header[HEADER_BYTES + 1] = {0};
    size_t n_content;
    np_plan_put_raw(w, header, HEADER_BYTES);
    np_plan_put_origin(w, origin);
    np_plan_put_number(w, limit_used);
    np_plan_put_number(w, n_patterns);
    for (size_t i = 0; i < n_patterns; i++) {
        np_plan_put_pattern(w, patterns[i]);
    }
    if (w->status != NEAP_OK) {
        return w->status;
    }
    n_content = w->bytes.n - HEADER_BYTES;
    (void)snprintf((char *)header, sizeof header, "%s%d\n", line_word, NP_PLAN_FORMAT);
    put_fixed(header + LINE_BYTES, n_content, 8);
    put_fixed(header + LINE_BYTES + 8, crc32_z(0, w->bytes.items + HEADER_BYTES, n_content), 4);
    memcpy(w->bytes.items, header, HEADER_BYTES);
    return NEAP_OK;
}

/* The folder of the path, where the path names one, is made if only it is missing. Plans tell what a program computes with:
 * folder and files are the user's alone. */
static int open_target(target *t, const char *path)
{
    const char *slash = strrchr(path, '/');
    int why = np_new_file_open(&t->file, path, S_IRUSR | S_IWUSR, t->temporary);
    if (why != ENOENT || !slash || slash == path) {
        return why;
    }
    memcpy(t->folder, path, (size_t)(slash - path));
    t->folder[slash - path] = '\0';
    if (mkdir(t->folder, S_IRWXU) == 0) {
        t->made_folder = true;
    } else if (errno != EEXIST) {
        t->is_folder_missing = true;
        return errno;
    }
    return np_new_file_open(&t->file, path, S_IRUSR | S_IWUSR, t->temporary);
}

static neap_status write_file(const char *path, const void *bytes, size_t n_bytes, neap_error *error)
{
    target t = {.made_folder = false};
    int why = open_target(&t, path);
    if (why == 0) {
        int why_not = np_file_put(t.file.fd, bytes, n_bytes);
        why = np_new_file_close(&t.file, why_not == 0);
        why = why_not ? why_not : why;
    }
    if (why && t.made_folder) {
        (void)rmdir(t.folder); /* stays where a file is in it: another process's, or the new one */
    }
    return why ? np_message_errno(t.is_folder_missing ? t.folder : path, why, error) : NEAP_OK;
}

neap_status np_plan_file_save(const char *path, const np_plan_origin *origin, uint64_t limit_used,
                              const np_pattern *const *patterns, size_t n_patterns, const neap_memory *memory,
                              neap_error *error)
{
    np_plan_writer w = {.memory = np_memory_or_default(memory)};
    neap_status status;
    if (error) {
        error->text[0] = '\0';
    }
    if (strlen(path) >= NP_PLAN_PATH_BYTES || n_patterns > NP_PLAN_MAX_PATTERNS) {
        return np_fail(error, NEAP_TOO_LARGE, "a path has %d bytes at most, a file of plans %d patterns",
                       NP_PLAN_PATH_BYTES - 1, NP_PLAN_MAX_PATTERNS);
    }
    status = make_bytes(&w, origin, limit_used, patterns, n_patterns);
    if (status != NEAP_OK) {
        status = np_fail_memory(error);
    } else if (w.bytes.n > NP_PLAN_MAX_BYTES) {
        status = np_fail(error, NEAP_TOO_LARGE, "the plans take more than %llu bytes",
                         (unsigned long long)NP_PLAN_MAX_BYTES);
    }
    if (status == NEAP_OK) {
        status = write_file(path, w.bytes.items, w.bytes.n, error);
    }
    np_array_free(w.memory, &w.bytes);
    return status;
}

/* ---------------------------------------------------------------- reading ---- */

static neap_status refuse(neap_error *error, const char *name, const char *why)
{
    char printable[NP_MESSAGE_PATH_BYTES];
    np_message_path(name, printable);
    return np_fail(error, NEAP_BAD_INPUT, "%s: %.300s", printable, why);
}

static uint64_t get_fixed(const unsigned char *at, int n_bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < n_bytes; i++) {
        number |= (uint64_t)at[i] << (8 * i);
    }
    return number;
}

/* Is this a whole file of this format? What is wrong with it, or NULL. */
static const char *find_fault(const unsigned char *bytes, size_t n_bytes)
{
    size_t n_word = sizeof line_word - 1;
    if (n_bytes < n_word || memcmp(bytes, line_word, n_word) != 0) {
        return "this is no plan file";
    }
    if (n_bytes < LINE_BYTES || bytes[n_word] != '0' + NP_PLAN_FORMAT || bytes[n_word + 1] != '\n') {
        return "a plan file of another format";
    }
    if (n_bytes < HEADER_BYTES || get_fixed(bytes + LINE_BYTES, 8) != n_bytes - HEADER_BYTES) {
        return "the plan file is cut short, or longer than it should be";
    }
    if (get_fixed(bytes + LINE_BYTES + 8, 4) != crc32_z(0, bytes + HEADER_BYTES, n_bytes - HEADER_BYTES)) {
        return "the plan file is damaged: its checksum is wrong";
    }
    return NULL;
}

static neap_status get_patterns(np_plan_reader *r, const char *name, const np_plan_origin *expected,
                                const neap_memory *memory, neap_error *error, np_pattern **patterns, size_t n_patterns)
{
    neap_status status = NEAP_OK;
    size_t n = 0;
    while (n < n_patterns && status == NEAP_OK) {
        neap_error why;
        status = np_plan_get_pattern(r, expected, memory, &why, &patterns[n]);
        if (status == NEAP_OK) {
            n++;
        } else if (status == NEAP_NO_MEMORY) {
            (void)np_fail_memory(error);
        } else {
            char text[sizeof why.text];
            (void)snprintf(text, sizeof text, "the plan cannot be followed: %.300s", why.text);
            (void)refuse(error, name, text);
        }
    }
    if (status == NEAP_OK && r->at != r->end) {
        status = refuse(error, name, "something follows the last plan");
    }
    while (status != NEAP_OK && n > 0) {
        np_pattern_free(patterns[--n]);
    }
    return status;
}

neap_status np_plan_file_parse(const void *bytes, size_t n_bytes, const char *name, const np_plan_origin *expected,
                               const neap_memory *memory, neap_error *error, uint64_t *limit_used,
                               np_pattern **patterns, size_t capacity, size_t *n_patterns)
{
    const unsigned char *begin = bytes;
    const char *fault = find_fault(begin, n_bytes);
    np_pattern *made[NP_PLAN_MAX_PATTERNS];
    np_plan_origin origin;
    np_plan_reader r;
    neap_error why;
    uint64_t limit;
    uint64_t n;
    neap_status status;
    if (error) {
        error->text[0] = '\0';
    }
    if (fault) {
        return refuse(error, name, fault);
    }
    r = (np_plan_reader){.at = begin + HEADER_BYTES, .end = begin + n_bytes};
    np_plan_get_origin(&r, &origin);
    limit = np_plan_get_number(&r);
    n = np_plan_get_number(&r);
    if (r.is_bad) {
        return refuse(error, name, "it does not say where it was made");
    }
    if (np_plan_origin_compare(&origin, expected, &why) != NEAP_OK) {
        return refuse(error, name, why.text);
    }
    if (n > NP_PLAN_MAX_PATTERNS || n > capacity) {
        return refuse(error, name, "it has too many patterns");
    }
    if (limit != 0 && (limit < expected->page_bytes || limit / expected->page_bytes >= UINT32_MAX)) {
        return refuse(error, name, "its limit is out of range");
    }
    status = get_patterns(&r, name, expected, memory, error, made, (size_t)n);
    if (status == NEAP_OK) {
        memcpy(patterns, made, (size_t)n * sizeof *made);
        *n_patterns = (size_t)n;
        *limit_used = limit;
    }
    return status;
}

typedef np_array(unsigned char) byte_array;

/* All bytes of a regular file. The caller frees them, also on failure. */
static neap_status read_all(int fd, const char *path, const neap_memory *memory, neap_error *error, byte_array *bytes)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return np_message_errno(path, errno, error);
    }
    if (S_ISREG(info.st_mode) &&
        ((info.st_uid != geteuid() && info.st_uid != 0) || (info.st_mode & (S_IWGRP | S_IWOTH)))) {
        return refuse(error, path, "the plan file is another user's, or others may write to it");
    }
    if (!S_ISREG(info.st_mode) || (uint64_t)info.st_size > NP_PLAN_MAX_BYTES) {
        return refuse(error, path, "this is no plan file");
    }
    if (np_array_reserve(memory, bytes, (size_t)info.st_size) != NEAP_OK) {
        return np_fail_memory(error);
    }
    while (bytes->n < (size_t)info.st_size) {
        ssize_t n = read(fd, bytes->items + bytes->n, (size_t)info.st_size - bytes->n);
        if (n < 0 && errno != EINTR) {
            return np_message_errno(path, errno, error);
        }
        if (n == 0) {
            break; /* it has become shorter meanwhile, which its length will show */
        }
        bytes->n += n > 0 ? (size_t)n : 0;
    }
    return NEAP_OK;
}

neap_status np_plan_file_load(const char *path, const np_plan_origin *expected, const neap_memory *memory,
                              neap_error *error, uint64_t *limit_used, np_pattern **patterns, size_t capacity,
                              size_t *n_patterns)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    byte_array bytes = {0};
    neap_status status;
    if (error) {
        error->text[0] = '\0';
    }
    if (fd < 0) {
        return errno == ENOENT || errno == ENOTDIR ? NEAP_IO : np_message_errno(path, errno, error);
    }
    status = read_all(fd, path, memory, error, &bytes);
    (void)close(fd);
    if (status == NEAP_OK) {
        status = np_plan_file_parse(bytes.items, bytes.n, path, expected, memory, error, limit_used, patterns, capacity,
                                    n_patterns);
    }
    np_array_free(memory, &bytes);
    return status;
}
