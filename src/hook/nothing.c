/* nothing.c: a program that was to be reported on, and used no CUDA memory that neap can see.
 *
 * Most processes of a program are shells, compilers and workers: each of them keeps quiet. The one that `neap run` became
 * (NEAP_PID) speaks for all at its end. It knows of the others by a mark in the folder of sockets, an empty file by its own
 * number and start time, that a process makes when it opens a device. The handler is there from the beginning, as the
 * program may never call anything of CUDA's; it was registered first, and so it runs last. */
#define _DEFAULT_SOURCE /* syscall */
#include "hook/nothing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hook/core.h"
#include "hook/put.h"
#include "hook/report.h"
#include "hook/socket.h"

enum { OLD_SECONDS = 24 * 60 * 60, STARTED_FIELD = 22 };

static bool is_report_asked(const np_hook_settings *settings)
{
    return (settings->report || settings->report_json) && !(settings->report && strcmp(settings->report, "-") == 0);
}

static bool is_asked(const np_hook_settings *settings)
{
    return settings->mode != NP_HOOK_VERIFY && (is_report_asked(settings) || settings->record);
}

/* ---- the mark ---- */

/* When a process began, in ticks since the machine did: with its number it is never another's. 0: not known. */
static unsigned long long start_of(uint64_t process)
{
    char path[64];
    char text[1024];
    const char *at;
    ssize_t n = -1;
    (void)snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file != -1) {
        n = read(file, text, sizeof text - 1);
        (void)close(file);
    }
    text[n > 0 ? n : 0] = '\0';
    at = strrchr(text, ')'); /* of the second field, the name, which may have any character in it */
    for (int field = 2; at && field < STARTED_FIELD; field++) {
        at = strchr(at + 1, ' ');
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

static bool name_mark(uint64_t process, char *path, size_t bytes)
{
    char folder[NP_HOOK_SOCKET_PATH];
    int n = np_hook_socket_folder(folder, sizeof folder)
                ? snprintf(path, bytes, "%s/%llu-%llu.used", folder, (unsigned long long)process, start_of(process))
                : -1;
    return n > 0 && (size_t)n < bytes;
}

/* Marks of programs that were killed. Another container's processes are not seen from here: hence the day. */
static void clear_old(void)
{
    char folder[NP_HOOK_SOCKET_PATH];
    const struct dirent *entry;
    DIR *entries = np_hook_socket_folder(folder, sizeof folder) ? opendir(folder) : NULL;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this thread's alone */
    while (entries && (entry = readdir(entries)) != NULL) {
        char *end;
        long process = strtol(entry->d_name, &end, 10);
        const char *suffix = strrchr(entry->d_name, '.');
        struct stat found;
        if (process > 0 && *end == '-' && suffix && strcmp(suffix, ".used") == 0 && kill((pid_t)process, 0) != 0 &&
            errno == ESRCH && fstatat(dirfd(entries), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
            found.st_mtime + OLD_SECONDS < time(NULL)) {
            (void)unlinkat(dirfd(entries), entry->d_name, 0);
        }
    }
    if (entries) {
        (void)closedir(entries);
    }
}

void np_hook_nothing_is_wrong(void)
{
    uint64_t process = np_the_hook.settings.process;
    char path[2 * NP_HOOK_SOCKET_PATH];
    if (process && process != (uint64_t)getpid() && is_asked(&np_the_hook.settings) &&
        name_mark(process, path, sizeof path)) {
        int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
        if (file != -1) {
            (void)close(file);
        }
        clear_old();
    }
}

/* Did another process of this program use a device? Where no mark can be made it is not known: then nothing is said. */
static bool take_mark(void)
{
    char path[2 * NP_HOOK_SOCKET_PATH];
    return !name_mark((uint64_t)getpid(), path, sizeof path) || unlink(path) == 0;
}

/* ---- the end ---- */

/* As neap_trace_write would, and without memory: this may be on the way out of a signal handler. */
static void write_empty_trace(const char *record)
{
    static const char plain[] = "neap-trace 1\n";
    static const char packed[] = /* the same, stored in a gzip */
        "\x1f\x8b\b\0\0\0\0\0\0\3"
        "\1\x0d\0\xf2\xff"
        "neap-trace 1\n"
        "\x97\x02\xd7\x03\x0d\x00\x00\x00";
    size_t length = strlen(record);
    bool is_packed = length > 3 && strcmp(record + length - 3, ".gz") == 0;
    np_hook_report_put(record, is_packed ? packed : plain, (is_packed ? sizeof packed : sizeof plain) - 1);
}

static bool is_first; /* this process, or the one that forked it, is that of `neap run` */

static void tell(void)
{
    static atomic_bool is_told;
    const np_hook_settings *settings = &np_the_hook.settings;
    bool has_report = is_report_asked(settings);
    bool is_here = settings->process == (uint64_t)getpid() && is_asked(settings); /* and no child that was forked */
    if (!is_here || atomic_exchange(&is_told, true) || take_mark() || np_hook_n_devices() > 0) {
        return;
    }
    if (!np_hook_has_said()) { /* otherwise it said why */
        np_hook_say("process %d used no CUDA memory that neap can see%s%s", (int)getpid(),
                    settings->record ? "; the trace is empty" : "", has_report ? "; the report is empty" : "");
    }
    if (settings->record) {
        write_empty_trace(settings->record);
    }
    if (has_report) {
        np_hook_report_write_none(settings);
    }
}

/* The environment alone is looked at: all else of the library waits for a call of CUDA's. */
__attribute__((constructor)) static void begin(void)
{
    const char *mode = getenv("NEAP_HOOK");   /* NOLINT(concurrency-mt-unsafe): before the program begins */
    const char *process = getenv("NEAP_PID"); /* NOLINT(concurrency-mt-unsafe) */
    if (mode && *mode && process && strtol(process, NULL, 10) == (long)getpid() && np_hook_is_on()) {
        is_first = true;
        (void)atexit(tell);
    }
}

/* Shells leave so, past all handlers: the library shows it as _exit and _Exit (CMakeLists.txt). A child of vfork leaves so,
 * too, and is not the one that speaks. */
void np_hook_exit(int status)
{
    if (is_first) {
        tell();
    }
    for (;;) {
        (void)syscall(SYS_exit_group, status);
    }
}
