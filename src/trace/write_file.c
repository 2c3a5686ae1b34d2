/* write_file.c: a trace under a path, whole or not at all (base/new_file.h). What is no regular file (a pipe, a terminal) is
 * written to directly. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/new_file.h"
#include "base/status.h"
#include "trace/message.h"
#include "trace/write.h"

typedef struct target {
    const char *path;
    int fd;
} target;

static neap_status put(void *user, const void *bytes, size_t n_bytes, neap_error *error)
{
    const target *t = user;
    int why = np_file_put(t->fd, bytes, n_bytes);
    return why ? np_message_errno(t->path, why, error) : NEAP_OK;
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

static neap_status write_into(const neap_trace *trace, const char *path, int fd, neap_error *error)
{
    target t = {.path = path, .fd = fd};
    return is_gzip_path(path) ? np_write_gzip(trace, put, &t, error) : np_write_text(trace, put, &t, error);
}

static neap_status write_special(const neap_trace *trace, const char *path, neap_error *error)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    neap_status status = fd < 0 ? np_message_errno(path, errno, error) : write_into(trace, path, fd, error);
    if (fd >= 0 && close(fd) != 0 && status == NEAP_OK) {
        status = np_message_errno(path, errno, error);
    }
    return status;
}

static neap_status write_whole(const neap_trace *trace, const char *path, char *temporary, neap_error *error)
{
    np_new_file file;
    neap_status status;
    int why = np_new_file_open(&file, path, 0666, temporary);
    if (why) {
        return np_message_errno(path, why, error);
    }
    status = write_into(trace, path, file.fd, error);
    why = np_new_file_close(&file, status == NEAP_OK);
    return status == NEAP_OK && why ? np_message_errno(path, why, error) : status;
}

neap_status neap_trace_write(const neap_trace *trace, const char *path, neap_error *error)
{
    size_t n_temporary = strlen(path) + NP_NEW_FILE_SUFFIX;
    char *temporary;
    neap_status status;
    if (error) {
        error->text[0] = '\0';
    }
    if (is_special(path)) {
        return write_special(trace, path, error);
    }
    temporary = np_memory_alloc(trace->memory, n_temporary, 1);
    if (!temporary) {
        return np_fail_memory(error);
    }
    status = write_whole(trace, path, temporary, error);
    np_memory_free(trace->memory, temporary, n_temporary, 1);
    return status;
}
