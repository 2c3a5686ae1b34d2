/* report_write.c: where reports go: stderr, a file that appears whole or not at all, Python.
 *
 * Reports are put together in memory and leave with one call, so that those of several processes do not mix. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "hook/put.h"
#include "hook/report.h"

typedef np_array(char) growing_text;
typedef size_t form(const np_hook_facts *facts, char *text, size_t bytes);

/* ---- all devices ---- */

static neap_status append(growing_text *all, const char *piece)
{
    size_t n = strlen(piece);
    neap_status status = np_array_reserve(NULL, all, all->n + n + 1);
    if (status == NEAP_OK) {
        memcpy(all->items + all->n, piece, n + 1);
        all->n += n;
    }
    return status;
}

/* The facts may change from one look to the next: what is measured is what is then written. */
static neap_status append_device(growing_text *all, form *to_text, const np_hook_facts *facts)
{
    size_t n = to_text(facts, NULL, 0);
    neap_status status = np_array_reserve(NULL, all, all->n + n + 1);
    if (status == NEAP_OK) {
        (void)to_text(facts, all->items + all->n, n + 1);
        all->n += n;
    }
    return status;
}

static neap_status append_all(growing_text *all, bool is_json)
{
    np_hook_facts facts;
    const char *mark = "[";
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < np_hook_n_devices() && status == NEAP_OK; i++) {
        if (!np_hook_get_facts(i, &facts)) {
            continue;
        }
        if (is_json) {
            status = append(all, mark);
            mark = ", ";
        }
        if (status == NEAP_OK) {
            status = append_device(all, is_json ? np_hook_report_json : np_hook_report_text, &facts);
        }
    }
    if (is_json && status == NEAP_OK) {
        status = append(all, *mark == '[' ? "[]" : "]");
    }
    return status;
}

/* ---- a file ---- */

static bool put_and_close(int file, const char *text, size_t n)
{
    bool is_good = np_hook_put(file, text, n);
    int why = errno;
    if (close(file) != 0 && is_good) {
        is_good = false;
        why = errno;
    }
    errno = why;
    return is_good;
}

/* Under another name first: whoever looks finds the old report or the new one. */
static bool replace_file(const char *path, const char *text, size_t n)
{
    static atomic_uint n_made; /* threads may write at once */
    char temporary[PATH_MAX];
    int length =
        snprintf(temporary, sizeof temporary, "%s.%d-%u.tmp", path, (int)getpid(), atomic_fetch_add(&n_made, 1));
    if (length < 0 || (size_t)length >= sizeof temporary) {
        errno = ENAMETOOLONG;
        return false;
    }
    int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file == -1) {
        return false;
    }
    if (put_and_close(file, text, n) && rename(temporary, path) == 0) {
        return true;
    }
    int why = errno;
    (void)unlink(temporary);
    errno = why;
    return false;
}

static bool write_file(const char *path, const char *text, size_t n)
{
    struct stat existing;
    if (stat(path, &existing) != 0 || S_ISREG(existing.st_mode)) {
        return replace_file(path, text, n);
    }
    int file = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY); /* a pipe or a device stays what it is */
    return file != -1 && put_and_close(file, text, n);
}

bool np_hook_report_name(const char *file, char *path, size_t bytes)
{
    static const char packed[] = ".gz";
    int rank = np_hook_report_rank();
    size_t length = strlen(file);
    size_t end = sizeof packed - 1;
    bool is_packed = length > end && strcmp(file + length - end, packed) == 0;
    int n = rank < 0 ? snprintf(path, bytes, "%s", file)
                     : snprintf(path, bytes, "%.*s.rank%d%s", (int)(is_packed ? length - end : length), file, rank,
                                is_packed ? packed : "");
    return n >= 0 && (size_t)n < bytes;
}

void np_hook_report_put(const char *file, const char *text, size_t n)
{
    char path[PATH_MAX];
    if (!file) {
        (void)np_hook_put(STDERR_FILENO, text, n);
    } else if (!np_hook_report_name(file, path, sizeof path)) {
        np_hook_say("cannot write %.60s...: the name is too long", file);
    } else if (!write_file(path, text, n)) {
        np_hook_say("cannot write %s: %s", path, strerror(errno)); /* NOLINT(concurrency-mt-unsafe): glibc's is safe */
    }
}

void np_hook_report_write(const np_hook_settings *settings)
{
    bool is_recording = settings->mode == NP_HOOK_RECORD; /* nothing was planned: what there is to say is the trace */
    if (settings->report ? strcmp(settings->report, "-") == 0 : is_recording && !settings->report_json) {
        return;
    }
    if (np_hook_n_devices() == 0) {
        if (settings->process == (uint64_t)getpid() && !np_hook_has_said()) { /* why, for one */
            np_hook_say("process %d used no CUDA memory that neap can see", (int)getpid());
        }
        return; /* most processes of a program: shells, compilers, workers */
    }
    growing_text all = {0};
    neap_status status = append_all(&all, settings->report_json);
    if (status == NEAP_OK && settings->report_json) {
        status = append(&all, "\n");
    }
    if (status == NEAP_OK) {
        np_hook_report_put(settings->report, all.items, all.n);
    } else {
        np_hook_say("cannot write the report: %s", neap_status_message(status));
    }
    np_array_free(NULL, &all);
}

void np_hook_report_write_none(const np_hook_settings *settings)
{
    char text[128];
    int n = settings->report_json ? snprintf(text, sizeof text, "[]\n")
                                  : snprintf(text, sizeof text,
                                             "neap: process %d used no CUDA memory that neap can see\n", (int)getpid());
    np_hook_report_put(settings->report, text, (size_t)n);
}

/* ---- Python ---- */

/* A thread's last text goes with the thread. Thread-local storage proper would take its room from every stack. */
static pthread_key_t last_text;
static pthread_once_t last_text_once = PTHREAD_ONCE_INIT;
static bool has_last_text;

static void free_last(void *last)
{
    growing_text *text = last;
    np_array_free(NULL, text);
    np_memory_free(NULL, text, 1, sizeof *text);
}

static void make_key(void)
{
    has_last_text = pthread_key_create(&last_text, free_last) == 0;
}

static growing_text *own_text(void)
{
    (void)pthread_once(&last_text_once, make_key);
    if (!has_last_text) {
        return NULL;
    }
    growing_text *text = pthread_getspecific(last_text);
    if (text) {
        return text;
    }
    text = np_memory_alloc_zero(NULL, 1, sizeof *text);
    if (text && pthread_setspecific(last_text, text) != 0) {
        np_memory_free(NULL, text, 1, sizeof *text);
        text = NULL;
    }
    return text;
}

const char *neap_hook_stats(void)
{
    growing_text *text = own_text();
    if (text) {
        text->n = 0;
    }
    return text && append_all(text, true) == NEAP_OK ? text->items : "[]";
}
