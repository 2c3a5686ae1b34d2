/* write_file.c: a trace under a path.
 *
 * The file is written beside its place and renamed into it when it is whole, so that a full disk or a crash leaves under
 * the path what was there before. What is no regular file (a pipe, a terminal) is written to directly. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "trace/message.h"
#include "trace/write.h"

#define SUFFIX_BYTES 48
#define N_TRIES 1000 /* names for the temporary file: leftovers of killed processes are in the way, if anything */

typedef struct target {
    const char *path;
    char *temporary; /* NULL: written to directly */
    int fd;
} target;

static neap_status put(void *user, const void *bytes, size_t n_bytes, neap_error *error)
{
    const target *t = user;
    const char *at = bytes;
    while (n_bytes) {
        ssize_t n = write(t->fd, at, n_bytes);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return np_message_errno(t->path, n < 0 ? errno : EIO, error);
        }
        at += n;
        n_bytes -= (size_t)n;
    }
    return NEAP_OK;
}

static neap_status open_temporary(target *t, size_t n_temporary, neap_error *error)
{
    for (unsigned i = 0; i < N_TRIES; i++) {
        (void)snprintf(t->temporary, n_temporary, "%s.%ld-%u.tmp", t->path, (long)getpid(), i);
        t->fd = open(t->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (t->fd >= 0) {
            return NEAP_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return np_message_errno(t->path, errno, error);
}

/* Everything on its way to the disk, or an error. What cannot be synchronised (a pipe) has no more to say. */
static neap_status close_target(target *t, neap_error *error, neap_status status)
{
    if (status == NEAP_OK && fsync(t->fd) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP) {
        status = np_message_errno(t->path, errno, error);
    }
    if (close(t->fd) != 0 && status == NEAP_OK) {
        status = np_message_errno(t->path, errno, error);
    }
    if (!t->temporary) {
        return status;
    }
    if (status == NEAP_OK && rename(t->temporary, t->path) != 0) {
        status = np_message_errno(t->path, errno, error);
    }
    if (status != NEAP_OK) {
        (void)unlink(t->temporary);
    }
    return status;
}

static bool is_special(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static bool is_gzip_path(const char *path)
{
    size_t n = strlen(path);
    return n >= 3 && memcmp(path + n - 3, ".gz", 3) == 0;
}

neap_status neap_trace_write(const neap_trace *trace, const char *path, neap_error *error)
{
    target t = {.path = path, .fd = -1};
    size_t n_temporary = strlen(path) + SUFFIX_BYTES;
    neap_status status = NEAP_OK;

    if (error) {
        error->text[0] = '\0';
    }
    if (is_special(path)) {
        t.fd = open(path, O_WRONLY | O_CLOEXEC);
        status = t.fd < 0 ? np_message_errno(path, errno, error) : NEAP_OK;
    } else {
        t.temporary = np_memory_alloc(trace->memory, n_temporary, 1);
        status = t.temporary ? open_temporary(&t, n_temporary, error) : np_fail_memory(error);
    }
    if (status == NEAP_OK) {
        status = is_gzip_path(path) ? np_write_gzip(trace, put, &t, error) : np_write_text(trace, put, &t, error);
        status = close_target(&t, error, status);
    }
    np_memory_free(trace->memory, t.temporary, n_temporary, 1);
    return status;
}
