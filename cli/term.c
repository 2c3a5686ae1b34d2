/* term.c: everything that differs between a terminal and a pipe. */
#include "term.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "printable.h"

static bool is_utf8;
static bool has_colour;
static bool has_progress;
static bool progress_shown;
static volatile sig_atomic_t interrupted;
static struct sigaction pipe_before; /* what a closed pipe did when we began */
static struct sigaction size_before; /* and a file that is as long as it may be */

/* A program started with a closed stdout would otherwise write its table into the next file it opens. A descriptor
 * that cannot be written keeps its number and gives an error on the first write. */
static void hold_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
            (void)open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
        }
    }
}

void term_begin(void)
{
    hold_standard_streams();
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, &pipe_before);
    (void)sigaction(SIGXFSZ, &ignore, &size_before);
    (void)setlocale(LC_CTYPE, ""); /* numbers keep their points */
    is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    const char *no_colour = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    bool is_dumb = !kind || strcmp(kind, "dumb") == 0;
    has_colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && !is_dumb;
    has_progress = isatty(STDERR_FILENO) && !is_dumb;
}

void term_leave(void)
{
    term_progress_clear();
    (void)fflush(stdout);
    (void)sigaction(SIGPIPE, &pipe_before, NULL);
    (void)sigaction(SIGXFSZ, &size_before, NULL);
}

bool term_end(void)
{
    term_progress_clear();
    bool failed = ferror(stdout) != 0;
    int why = failed ? EIO : 0; /* the reason of an earlier failure is gone */
    if (fflush(stdout) != 0) {
        failed = true;
        why = errno;
    }
    /* Some file systems report a full disk only when the file is closed. */
    if (fclose(stdout) != 0 && !failed) {
        failed = true;
        why = errno;
    }
    if (failed) {
        (void)fprintf(stderr, "neap: cannot write to standard output: %s\n", strerror(why));
    }
    return !failed;
}

bool term_is_utf8(void)
{
    return is_utf8;
}

const char *term_on(term_style style)
{
    static const char *const sequences[] = {[TERM_PLAIN] = "",
                                            [TERM_BOLD] = "\033[1m",
                                            [TERM_DIM] = "\033[2m",
                                            [TERM_GOOD] = "\033[32m",
                                            [TERM_WARN] = "\033[33m"};
    return has_colour ? sequences[style] : "";
}

const char *term_off(term_style style)
{
    return has_colour && style != TERM_PLAIN ? "\033[0m" : "";
}

const char *term_bar(double fraction, unsigned width, char *text)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double columns = fraction < 0 ? 0 : fraction > 1 ? width : fraction * width;
    unsigned n_eighths = (unsigned)(columns * 8 + 0.5);
    char *out = text;
    if (!is_utf8) {
        unsigned n = (n_eighths + 4) / 8;
        memset(out, '#', n);
        out[n] = '\0';
        return text;
    }
    for (unsigned i = 0; i < n_eighths / 8; i++) {
        memcpy(out, "█", 3);
        out += 3;
    }
    (void)memcpy(out, eighths[n_eighths % 8], strlen(eighths[n_eighths % 8]) + 1);
    return text;
}

void term_progress(const char *format, ...)
{
    if (!has_progress) {
        return;
    }
    char line[PRINTABLE_CHARS];
    char shown[PRINTABLE_CHARS];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    (void)fprintf(stderr, "\r\033[K%s", printable(line, shown, sizeof shown));
    (void)fflush(stderr);
    progress_shown = true;
}

void term_progress_clear(void)
{
    if (progress_shown) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        progress_shown = false;
    }
}

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

void term_catch_interrupt(bool on)
{
    if (!has_progress) {
        return; /* nobody is watching: a signal means what it always means */
    }
    struct sigaction action = {0};
    action.sa_handler = on ? on_interrupt : SIG_DFL;
    action.sa_flags = (int)(on ? SA_RESETHAND : 0);
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
}

bool term_interrupted(void)
{
    return interrupted != 0;
}
