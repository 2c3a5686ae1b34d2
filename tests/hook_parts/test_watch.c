/* The watching thread: SIGUSR1, peers, the live line; and that nothing of it reaches others: signals, forked children,
 * folders that are not the user's, sockets that processes before it left. */
#define _GNU_SOURCE /* posix_openpt and its kin, ppoll */
#include "hook/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hook/report.h"
#include "hook/socket.h"
#include "testing.h"

enum { PATIENCE_MS = 20000 }; /* longer than any machine should need; what is waited for comes much sooner */

size_t np_hook_n_devices(void)
{
    return 1;
}

bool np_hook_get_facts(size_t index, np_hook_facts *facts)
{
    *facts = (np_hook_facts){.stats = {.held = 42, .overhead = NAN}, .pool_iteration = UINT64_MAX};
    return index == 0;
}

/* ---- places ---- */

static char runtime[64];
static char folder[80];
static char path[108]; /* of this process's socket */

static int make_places(void **state)
{
    (void)state;
    (void)snprintf(runtime, sizeof runtime, "/tmp/neap-test-XXXXXX");
    if (!mkdtemp(runtime)) {
        return -1;
    }
    (void)snprintf(folder, sizeof folder, "%s/neap", runtime);
    (void)snprintf(path, sizeof path, "%s/%d.sock", folder, (int)getpid());
    (void)setenv("XDG_RUNTIME_DIR", runtime, 1);
    (void)signal(SIGUSR1, SIG_DFL);
    return 0;
}

static int clear_places(void **state)
{
    char entry_path[400];
    (void)state;
    np_hook_watch_end();
    (void)signal(SIGUSR1, SIG_DFL);
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries && (entry = readdir(entries)) != NULL) {
        (void)snprintf(entry_path, sizeof entry_path, "%s/%s", folder, entry->d_name);
        (void)unlink(entry_path);
    }
    if (entries) {
        (void)closedir(entries);
    }
    (void)rmdir(folder);
    (void)unlink(folder);
    return rmdir(runtime);
}

static bool exists(const char *file)
{
    struct stat found;
    return lstat(file, &found) == 0;
}

static void rest_ms(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

/* Waits for the condition, for as long as there is patience. */
#define AWAIT(condition)                                              \
    do {                                                              \
        for (int ms = 0; !(condition) && ms < PATIENCE_MS; ms += 5) { \
            rest_ms(5);                                               \
        }                                                             \
        ASSERT_TRUE(condition);                                       \
    } while (0)

/* ---- a peer ---- */

static int connect_to(const char *socket_path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_GE(file, 0);
    if (connect(file, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(file);
        return -1;
    }
    return file;
}

/* The next line, without its end; empty where the other side has gone. */
static void read_line(int file, char *line, size_t bytes)
{
    size_t n = 0;
    char c;
    struct pollfd entry = {.fd = file, .events = POLLIN};
    while (n + 1 < bytes && poll(&entry, 1, PATIENCE_MS) == 1 && read(file, &c, 1) == 1 && c != '\n') {
        line[n++] = c;
    }
    line[n] = '\0';
}

static bool has_gone(int file)
{
    char c;
    struct pollfd entry = {.fd = file, .events = POLLIN};
    return poll(&entry, 1, PATIENCE_MS) == 1 && read(file, &c, 1) <= 0;
}

static const np_hook_settings plain = {.mode = NP_HOOK_RUN, .report = "-"};

static void test_peers_are_answered(void **state)
{
    char line[8192];
    struct stat found;
    (void)state;
    np_hook_watch_begin(&plain);
    ASSERT_EQ(lstat(folder, &found), 0);
    ASSERT_EQ(found.st_mode & 0777, 0700);
    int peer = connect_to(path);
    int other = connect_to(path);
    ASSERT_GE(peer, 0);
    ASSERT_GE(other, 0);
    ASSERT_EQ(write(peer, "\n\n", 2), 2);
    for (int i = 0; i < 2; i++) {
        read_line(peer, line, sizeof line);
        ASSERT_TRUE(strncmp(line, "[{\"device\": \"cuda:0\"", 20) == 0 && line[strlen(line) - 1] == ']');
        ASSERT_CONTAINS(line, "\"held\": 42,");
    }
    (void)close(peer); /* one that goes does not end it for others */
    ASSERT_EQ(write(other, "x", 1), 1);
    ASSERT_EQ(write(other, "\n", 1), 1);
    read_line(other, line, sizeof line);
    ASSERT_TRUE(line[0] == '[');

    np_hook_watch_end();
    ASSERT_TRUE(has_gone(other));
    (void)close(other);
    ASSERT_FALSE(exists(path));
}

static void test_too_many_peers(void **state)
{
    int peers[NP_HOOK_PEERS_MAX + 1];
    char line[8192];
    (void)state;
    np_hook_watch_begin(&plain);
    for (size_t i = 0; i < NP_HOOK_PEERS_MAX + 1; i++) {
        peers[i] = connect_to(path);
        ASSERT_GE(peers[i], 0);
    }
    ASSERT_TRUE(has_gone(peers[NP_HOOK_PEERS_MAX]));
    ASSERT_EQ(write(peers[0], "\n", 1), 1);
    read_line(peers[0], line, sizeof line);
    ASSERT_TRUE(line[0] == '[');
    for (size_t i = 0; i < NP_HOOK_PEERS_MAX + 1; i++) {
        (void)close(peers[i]);
    }
}

/* A peer that asks and never reads is let go; the thread does not wait for it. */
static void test_a_peer_that_does_not_read(void **state)
{
    char line[8192];
    (void)state;
    np_hook_watch_begin(&plain);
    int peer = connect_to(path);
    char asks[512];
    memset(asks, '\n', sizeof asks);
    bool is_gone = false;
    for (int i = 0; i < 10000 && !is_gone; i++) {
        is_gone = send(peer, asks, sizeof asks, MSG_NOSIGNAL) < 0;
    }
    ASSERT_TRUE(is_gone);
    int other = connect_to(path);
    ASSERT_EQ(write(other, "\n", 1), 1);
    read_line(other, line, sizeof line);
    ASSERT_TRUE(line[0] == '[');
    (void)close(peer);
    (void)close(other);
}

static void leave_socket(const char *name, char left[108], int *listens)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(left, 108, "%s/%s", folder, name);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", left);
    *listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(*listens, (struct sockaddr *)&address, sizeof address), 0);
    ASSERT_EQ(listen(*listens, 4), 0);
}

static void test_left_over_sockets_go(void **state)
{
    char dead[108];
    char mine[108];
    char alive[108];
    char own_name[32];
    int listens;
    int keeps;
    (void)state;
    ASSERT_EQ(mkdir(folder, 0700), 0);
    (void)snprintf(own_name, sizeof own_name, "%d.sock", (int)getpid()); /* of a process before us, with our number */
    leave_socket("999999.sock", dead, &listens);
    (void)close(listens);
    leave_socket(own_name, mine, &listens);
    (void)close(listens);
    leave_socket("1.sock", alive, &keeps);
    np_hook_watch_begin(&plain);
    ASSERT_FALSE(exists(dead));
    ASSERT_TRUE(exists(alive));
    int peer = connect_to(path);
    ASSERT_GE(peer, 0);
    (void)close(peer);
    (void)close(keeps);
}

static void test_folders_that_are_not_safe(void **state)
{
    char elsewhere[80];
    (void)state;
    ASSERT_EQ(mkdir(folder, 0700), 0);
    ASSERT_EQ(chmod(folder, 0755), 0);
    np_hook_watch_begin(&plain);
    ASSERT_FALSE(exists(path));
    np_hook_watch_end();
    ASSERT_EQ(rmdir(folder), 0);

    (void)snprintf(elsewhere, sizeof elsewhere, "%s/other", runtime);
    ASSERT_EQ(mkdir(elsewhere, 0700), 0);
    ASSERT_EQ(symlink(elsewhere, folder), 0);
    np_hook_watch_begin(&plain);
    ASSERT_FALSE(exists(path));
    np_hook_watch_end();
    ASSERT_EQ(rmdir(elsewhere), 0);

    char long_runtime[200];
    memset(long_runtime, 'x', sizeof long_runtime);
    long_runtime[0] = '/';
    long_runtime[sizeof long_runtime - 1] = '\0';
    (void)setenv("XDG_RUNTIME_DIR", long_runtime, 1);
    np_hook_watch_begin(&plain); /* no socket; the rest works */
    np_hook_watch_end();
}

/* ---- the signal ---- */

static void test_the_signal_writes_a_report(void **state)
{
    char report[128];
    char text[4096];
    (void)state;
    ASSERT_EQ(mkdir(folder, 0700), 0);
    (void)snprintf(report, sizeof report, "%s/report", folder);
    np_hook_settings settings = {.mode = NP_HOOK_RUN, .report = report};
    np_hook_watch_begin(&settings);
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(kill(getpid(), SIGUSR1), 0);
        AWAIT(exists(report));
        int file = open(report, O_RDONLY | O_CLOEXEC);
        ssize_t n = read(file, text, sizeof text - 1);
        (void)close(file);
        text[n > 0 ? n : 0] = '\0';
        ASSERT_CONTAINS(text, "neap: cuda:0: peak load ");
        ASSERT_EQ(unlink(report), 0);
    }
    np_hook_watch_end();
    ASSERT_EQ(kill(getpid(), SIGUSR1), 0); /* late: nothing happens, to the process neither */
    ASSERT_FALSE(exists(report));
}

static volatile sig_atomic_t n_heard;

static void programs_handler(int number)
{
    (void)number;
    n_heard++;
}

static void test_the_programs_handler_stays(void **state)
{
    struct sigaction found;
    (void)state;
    (void)signal(SIGUSR1, programs_handler);
    np_hook_watch_begin(&plain);
    n_heard = 0;
    ASSERT_EQ(raise(SIGUSR1), 0);
    ASSERT_EQ(n_heard, 1);
    np_hook_watch_end();
    ASSERT_EQ(sigaction(SIGUSR1, NULL, &found), 0);
    ASSERT_TRUE(found.sa_handler == programs_handler);

    (void)signal(SIGUSR1, SIG_IGN);
    np_hook_watch_begin(&plain);
    ASSERT_EQ(sigaction(SIGUSR1, NULL, &found), 0);
    ASSERT_TRUE(found.sa_handler == SIG_IGN);
}

/* Whatever the thread could run, it must not run the program's handlers. */
static void test_the_thread_blocks_all_signals(void **state)
{
    char file_name[400];
    char text[4096];
    bool is_found = false;
    (void)state;
    np_hook_watch_begin(&plain);
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    while (tasks && (task = readdir(tasks)) != NULL) {
        (void)snprintf(file_name, sizeof file_name, "/proc/self/task/%s/status", task->d_name);
        int file = open(file_name, O_RDONLY | O_CLOEXEC);
        ssize_t n = file >= 0 ? read(file, text, sizeof text - 1) : 0;
        (void)close(file);
        text[n > 0 ? n : 0] = '\0';
        const char *blocked = strstr(text, "SigBlk:\t");
        if (strstr(text, "Name:\tneap-watch\n") && blocked) {
            unsigned long long mask = strtoull(blocked + 8, NULL, 16);
            ASSERT_TRUE((mask >> (SIGUSR1 - 1) & 1) && (mask >> (SIGTERM - 1) & 1) && (mask >> (SIGINT - 1) & 1));
            is_found = true;
        }
    }
    if (tasks) {
        (void)closedir(tasks);
    }
    ASSERT_TRUE(is_found);
}

/* ---- children, files, again ---- */

static size_t count_open_files(void)
{
    size_t n = 0;
    DIR *files = opendir("/proc/self/fd");
    ASSERT_TRUE(files != NULL);
    while (readdir(files)) {
        n++;
    }
    (void)closedir(files);
    return n;
}

static void test_again_and_again(void **state)
{
    (void)state;
    size_t n_before = count_open_files();
    for (int i = 0; i < 20; i++) {
        np_hook_watch_begin(&plain);
        np_hook_watch_begin(&plain); /* a second device: nothing new */
        np_hook_watch_end();
        np_hook_watch_end();
        ASSERT_EQ(count_open_files(), n_before);
    }
}

static int in_the_child(size_t n_files_before)
{
    struct sigaction found;
    np_hook_watch_child();
    if (count_open_files() != n_files_before) {
        return 1;
    }
    if (sigaction(SIGUSR1, NULL, &found) != 0 || found.sa_handler != SIG_DFL) {
        return 2;
    }
    np_hook_watch_end();
    return exists(path) ? 0 : 3; /* the parent's */
}

static void test_a_forked_child_has_nothing_of_it(void **state)
{
    char line[8192];
    int status;
    (void)state;
    size_t n_before = count_open_files();
    np_hook_watch_begin(&plain);
    pid_t child = fork();
    if (child == 0) {
        _exit(in_the_child(n_before));
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
    int peer = connect_to(path);
    ASSERT_EQ(write(peer, "\n", 1), 1);
    read_line(peer, line, sizeof line);
    ASSERT_TRUE(line[0] == '[');
    (void)close(peer);
}

/* A daemon closes all files it does not know. */
static void test_files_closed_by_the_program(void **state)
{
    int status;
    (void)state;
    if (TEST_SANITIZED) {
        SKIP("closing another thread's files is a race, and here it is meant");
    }
    pid_t child = fork();
    if (child == 0) {
        np_hook_watch_begin(&plain);
        for (int file = 3; file < 256; file++) {
            (void)close(file);
        }
        (void)kill(getpid(), SIGUSR1);
        int own = open("/dev/null", O_RDONLY);
        np_hook_watch_end();
        _exit(fcntl(own, F_GETFD) == -1 ? 1 : 0);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
}

/* ---- the live line ---- */

/* A process of its own, whose terminal is the other end of `master`. */
static pid_t start_on_terminal(int master, const np_hook_settings *settings, int goes_on)
{
    pid_t child = fork();
    if (child != 0) {
        return child;
    }
    (void)setsid();
    int terminal = open(ptsname(master), O_RDWR);
    const struct winsize size = {.ws_col = 30, .ws_row = 10};
    (void)ioctl(terminal, TIOCSCTTY, 0);
    (void)ioctl(terminal, TIOCSWINSZ, &size);
    (void)dup2(terminal, STDERR_FILENO);
    (void)setenv("TERM", "xterm", 1);
    np_hook_watch_begin(settings);
    char c;
    (void)!read(goes_on, &c, 1);
    np_hook_watch_end();
    _exit(0);
}

static void read_until(int master, char *text, size_t bytes, const char *end)
{
    size_t n = 0;
    struct pollfd entry = {.fd = master, .events = POLLIN};
    text[0] = '\0';
    while (!strstr(text, end) && n + 1 < bytes && poll(&entry, 1, PATIENCE_MS) == 1) {
        ssize_t n_read = read(master, text + n, bytes - 1 - n);
        if (n_read <= 0) {
            break;
        }
        n += (size_t)n_read;
        text[n] = '\0';
    }
    ASSERT_CONTAINS(text, end);
}

static void test_the_live_line(void **state)
{
    char text[4096];
    int go[2];
    int status;
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master == -1 || grantpt(master) != 0 || unlockpt(master) != 0) {
        SKIP("no pseudo-terminal");
    }
    ASSERT_EQ(pipe(go), 0);
    np_hook_settings settings = plain;
    settings.is_live = true;
    pid_t child = start_on_terminal(master, &settings, go[0]);
    read_until(master, text, sizeof text, "\033[K\r");
    ASSERT_STR_EQ(text, "\r\033[2mneap: cuda:0: observe, holds \033[0m\033[K\r"); /* 29 of 30 columns */
    ASSERT_EQ(write(go[1], "x", 1), 1);
    read_until(master, text, sizeof text, "\r\033[K");
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    (void)close(master);
    (void)close(go[0]);
    (void)close(go[1]);
}

int main(void)
{
#define PLACED(test) cmocka_unit_test_setup_teardown(test, make_places, clear_places)
    const struct CMUnitTest tests[] = {
        PLACED(test_peers_are_answered),
        PLACED(test_too_many_peers),
        PLACED(test_a_peer_that_does_not_read),
        PLACED(test_left_over_sockets_go),
        PLACED(test_folders_that_are_not_safe),
        PLACED(test_the_signal_writes_a_report),
        PLACED(test_the_programs_handler_stays),
        PLACED(test_the_thread_blocks_all_signals),
        PLACED(test_again_and_again),
        PLACED(test_a_forked_child_has_nothing_of_it),
        PLACED(test_files_closed_by_the_program),
        PLACED(test_the_live_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
