/* put.c: writing beside a program.
 *
 * The library shares its file descriptors and its signals with a program that knows nothing of it. So nothing goes
 * through stdio, whose buffers are the program's. And where a reader has gone, SIGPIPE, which would end the program, is
 * held back in this thread while the bytes are written and taken away before it is let through again; one that the
 * program caused itself is left as it was. */
#include "hook/put.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 1024 };

static atomic_bool has_said;

static bool put_all(int file, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t n_put = write(file, bytes, n);
        if (n_put < 0 && errno == EINTR) {
            continue;
        }
        if (n_put <= 0) {
            return false;
        }
        bytes += n_put;
        n -= (size_t)n_put;
    }
    return true;
}

static bool pipe_signal_waits(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

bool np_hook_put(int file, const char *bytes, size_t n)
{
    sigset_t pipe_signal;
    sigset_t before;
    (void)sigemptyset(&pipe_signal);
    (void)sigaddset(&pipe_signal, SIGPIPE);
    bool had_one = pipe_signal_waits();
    if (pthread_sigmask(SIG_BLOCK, &pipe_signal, &before) != 0) {
        errno = EPERM;
        return false;
    }
    bool is_done = put_all(file, bytes, n);
    int why = errno;
    if (!is_done && why == EPIPE && !had_one) {
        const struct timespec no_time = {0};
        while (sigtimedwait(&pipe_signal, NULL, &no_time) == -1 && errno == EINTR) {}
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return is_done;
}

void np_hook_say(const char *format, ...)
{
    char line[LINE_BYTES];
    int n_begin = snprintf(line, sizeof line, "neap: ");
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line + n_begin, sizeof line - (size_t)n_begin - 1, format, args);
    va_end(args);
    if (n < 0) {
        return;
    }
    size_t length = (size_t)n_begin + (size_t)n;
    length = length < sizeof line - 1 ? length : sizeof line - 2; /* cut, but still a line */
    line[length] = '\n';
    atomic_store(&has_said, true);
    (void)np_hook_put(STDERR_FILENO, line, length + 1);
}

bool np_hook_has_said(void)
{
    return atomic_load(&has_said);
}
