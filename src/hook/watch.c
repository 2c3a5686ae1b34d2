/* watch.c: the one thread that the library adds to a program for the sake of people.
 *
 * It waits in poll for three things: a byte in a pipe (SIGUSR1, or the end), a peer, and, where a live line is drawn,
 * half a second. All signals are blocked in it, so that the program's handlers keep running where the program expects
 * them. SIGUSR1 is taken only where the program leaves it at its default, which would have ended it; a handler that the
 * program installs later simply takes its place. The handler stays when the thread has ended: a late signal must not
 * kill a process that is on its way out.
 *
 * The end waits a second for the thread, not longer: a terminal that is held (Ctrl-S), or a lock that the exiting
 * thread has, must not keep a process alive. */
#define _GNU_SOURCE /* pipe2, pthread_timedjoin_np, pthread_setname_np */
#include "hook/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "hook/put.h"
#include "hook/report.h"
#include "hook/sink.h"
#include "hook/socket.h"

enum { LIVE_MS = 500, STACK_BYTES = 512 << 10, LINE_BYTES = 512 };

static struct watch {
    pthread_mutex_t lock; /* of begin and end; the rest is the thread's while it runs */
    pthread_t thread;
    pid_t owner; /* 0: no thread */
    int pipe_reads;
    ino_t pipe_inode;
    dev_t pipe_device;
    np_hook_settings settings;
    np_hook_socket socket;
    bool draws;
    bool is_drawn; /* a line stands on the terminal */
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .pipe_reads = -1, .socket = {.listens = -1}};

static atomic_int pipe_writes = -1; /* read by the handler */
static atomic_bool is_ending;
static atomic_bool is_asked; /* SIGUSR1 came */

/* ---- the signal ---- */

/* A program may have closed all files it did not know, and have its own under their numbers. */
static bool is_ours(int file)
{
    struct stat found;
    return file != -1 && fstat(file, &found) == 0 && found.st_ino == watch.pipe_inode &&
           found.st_dev == watch.pipe_device;
}

static void wake(void)
{
    int file = atomic_load(&pipe_writes);
    if (is_ours(file)) {
        ssize_t n = write(file, "!", 1); /* a full pipe wakes it as well */
        (void)n;
    }
}

static void on_signal(int number)
{
    int kept = errno;
    (void)number;
    atomic_store(&is_asked, true);
    wake();
    errno = kept;
}

static void take_signal(void)
{
    struct sigaction found;
    if (sigaction(SIGUSR1, NULL, &found) != 0 || (found.sa_flags & SA_SIGINFO) || found.sa_handler != SIG_DFL) {
        return; /* the program's, or ignored, or ours already */
    }
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGUSR1, &action, NULL);
}

/* ---- the live line ---- */

static bool is_terminal_ours(void)
{
    const char *kind = getenv("TERM"); /* NOLINT(concurrency-mt-unsafe): set before programs begin */
    return isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

static size_t terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

/* Over whatever stands there; then the cursor is at its beginning, and what the program prints next goes over it. */
static void draw_line(void)
{
    np_hook_facts facts;
    char line[LINE_BYTES];
    char text[LINE_BYTES + 32];
    if (tcgetpgrp(STDERR_FILENO) != getpgrp() || !np_hook_get_facts(0, &facts)) {
        return; /* in the background nobody wants it */
    }
    (void)np_hook_report_line(&facts, line, sizeof line);
    np_hook_sink sink = np_hook_sink_begin(text, sizeof text);
    np_hook_sink_put(&sink, "\r\033[2m%.*s\033[0m\033[K\r", (int)(terminal_columns() - 1), line);
    watch.is_drawn = np_hook_put(STDERR_FILENO, text, strlen(text));
}

static void clear_line(void)
{
    static const char clear[] = "\r\033[K";
    if (watch.is_drawn) {
        (void)np_hook_put(STDERR_FILENO, clear, sizeof clear - 1);
        watch.is_drawn = false;
    }
}

/* ---- the thread ---- */

static void empty_pipe(void)
{
    char bytes[64];
    while (read(watch.pipe_reads, bytes, sizeof bytes) > 0) {}
}

static void write_report(void)
{
    clear_line();
    np_hook_report_write(&watch.settings);
}

/* Nothing is closed: their numbers may be the program's by now. */
static void forget_files(void)
{
    atomic_store(&pipe_writes, -1);
    if (watch.socket.listens != -1) {
        (void)unlink(watch.socket.path);
    }
    watch.socket = (np_hook_socket){.listens = -1};
}

static bool wait_and_serve(void)
{
    struct pollfd entries[NP_HOOK_PEERS_MAX + 2] = {{.fd = watch.pipe_reads, .events = POLLIN}};
    size_t n = np_hook_socket_poll(&watch.socket, entries + 1);
    int n_ready = poll(entries, (nfds_t)n + 1, watch.draws ? LIVE_MS : -1);
    if (n_ready < 0) {
        return errno == EINTR;
    }
    if (entries[0].revents & ~POLLIN) {
        forget_files();
        return false;
    }
    if (entries[0].revents) {
        empty_pipe();
    }
    if (atomic_load(&is_ending)) {
        return false;
    }
    if (n_ready > 0) {
        np_hook_socket_serve(&watch.socket, entries + 1);
    }
    return true;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void *run_watch(void *unused)
{
    uint64_t drawn_ms = 0;
    (void)unused;
    while (wait_and_serve()) {
        if (atomic_exchange(&is_asked, false)) {
            write_report();
        }
        if (watch.draws && now_ms() - drawn_ms >= LIVE_MS) {
            draw_line();
            drawn_ms = now_ms();
        }
    }
    clear_line();
    return NULL;
}

static bool start_thread(void)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread inherits it */
    bool is_started = pthread_create(&watch.thread, &attributes, run_watch, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (is_started) {
        (void)pthread_setname_np(watch.thread, "neap-watch");
    }
    return is_started;
}

/* ---- begin and end ---- */

static void close_pipe(void)
{
    int writes = atomic_exchange(&pipe_writes, -1);
    if (is_ours(writes)) {
        (void)close(writes);
    }
    if (is_ours(watch.pipe_reads)) {
        (void)close(watch.pipe_reads);
    }
    watch.pipe_reads = -1;
}

static void begin_locked(const np_hook_settings *settings)
{
    int ends[2];
    struct stat found;
    if (watch.owner || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return;
    }
    if (fstat(ends[0], &found) == 0) {
        watch.pipe_inode = found.st_ino;
        watch.pipe_device = found.st_dev;
    }
    watch.settings = *settings;
    watch.draws = settings->is_live && is_terminal_ours();
    watch.pipe_reads = ends[0];
    atomic_store(&is_ending, false);
    atomic_store(&is_asked, false);
    atomic_store(&pipe_writes, ends[1]);
    np_hook_socket_open(&watch.socket);
    if (start_thread()) {
        watch.owner = getpid();
        take_signal();
    } else {
        np_hook_socket_close(&watch.socket);
        close_pipe();
    }
}

void np_hook_watch_begin(const np_hook_settings *settings)
{
    (void)pthread_mutex_lock(&watch.lock);
    begin_locked(settings);
    (void)pthread_mutex_unlock(&watch.lock);
}

static bool join_soon(void)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    return pthread_timedjoin_np(watch.thread, NULL, &until) == 0;
}

void np_hook_watch_end(void)
{
    (void)pthread_mutex_lock(&watch.lock);
    if (watch.owner == getpid()) {
        atomic_store(&is_ending, true);
        wake();
        if (join_soon()) {
            np_hook_socket_close(&watch.socket);
            close_pipe();
            watch.owner = 0;
        } else {
            (void)unlink(watch.socket.path); /* the rest is the thread's until the process is gone */
        }
    }
    (void)pthread_mutex_unlock(&watch.lock);
}

void np_hook_watch_child(void)
{
    struct sigaction found;
    watch.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER; /* whoever had it is not here */
    watch.owner = 0;
    watch.draws = watch.is_drawn = false;
    close_pipe();
    np_hook_socket_abandon(&watch.socket);
    if (sigaction(SIGUSR1, NULL, &found) == 0 && !(found.sa_flags & SA_SIGINFO) && found.sa_handler == on_signal) {
        struct sigaction action = {.sa_handler = SIG_DFL};
        (void)sigaction(SIGUSR1, &action, NULL);
    }
}
