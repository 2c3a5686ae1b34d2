#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { N_TRIES = 1000 }; /* names for the temporary file: leftovers of killed processes are in the way, if anything */

static int put_all(int fd, const char *at, size_t n_bytes)
{
    while (n_bytes > 0) {
        ssize_t n = write(fd, at, n_bytes);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : EIO;
        }
        at += n;
        n_bytes -= (size_t)n;
    }
    return 0;
}

int np_file_put(int fd, const void *bytes, size_t n_bytes)
{
    sigset_t held;
    sigset_t before;
    sigset_t pending;
    int number;
    int why;
    (void)sigemptyset(&held);
    (void)sigaddset(&held, SIGPIPE);
    (void)sigaddset(&held, SIGXFSZ);
    (void)sigemptyset(&pending);
    (void)sigpending(&pending);
    if (pthread_sigmask(SIG_BLOCK, &held, &before) != 0) {
        return EPERM;
    }
    why = put_all(fd, bytes, n_bytes);
    number = why == EPIPE ? SIGPIPE : why == EFBIG ? SIGXFSZ : 0;
    if (number && sigismember(&pending, number) != 1) {
        const struct timespec no_time = {0};
        sigset_t own;
        (void)sigemptyset(&own);
        (void)sigaddset(&own, number);
        while (sigtimedwait(&own, NULL, &no_time) == -1 && errno == EINTR) {}
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return why;
}

int np_new_file_open(np_new_file *file, const char *path, mode_t mode, char *temporary)
{
    *file = (np_new_file){.path = path, .temporary = temporary, .fd = -1};
    for (unsigned i = 0; i < N_TRIES; i++) {
        (void)snprintf(temporary, strlen(path) + NP_NEW_FILE_SUFFIX, "%s.%ld-%u.tmp", path, (long)getpid(), i);
        file->fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (file->fd >= 0) {
            return 0;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return errno;
}

/* Some file systems cannot, and have no more to say. */
static bool is_no_failure(int why)
{
    return why == EINVAL || why == EROFS || why == ENOTSUP;
}

/* The name as well is to outlast a power cut. A folder that may be written but not read cannot be synchronised. */
static int sync_folder(const np_new_file *file)
{
    char *slash = strrchr(file->temporary, '/'); /* the temporary name is free by now: its folder is taken from it */
    int fd;
    int why = 0;
    if (slash) {
        slash[slash == file->temporary] = '\0';
    }
    fd = open(slash ? file->temporary : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return errno == EACCES ? 0 : errno;
    }
    if (fsync(fd) != 0 && !is_no_failure(errno)) {
        why = errno;
    }
    (void)close(fd);
    return why;
}

int np_new_file_close(np_new_file *file, bool is_good)
{
    int why = 0;
    if (is_good && fsync(file->fd) != 0 && !is_no_failure(errno)) {
        why = errno;
    }
    if (close(file->fd) != 0 && why == 0) {
        why = errno;
    }
    file->fd = -1;
    if (is_good && why == 0 && rename(file->temporary, file->path) != 0) {
        why = errno;
    }
    if (!is_good || why != 0) {
        (void)unlink(file->temporary);
        return why;
    }
    return sync_folder(file);
}
