/* socket.c: the listening end of `neap top`.
 *
 * The folder may stand in /tmp, where anyone can make one first: it counts only if it is a folder, the user's own and
 * closed to all others, and a peer must be the same user. A socket that nobody listens to any more refuses connections:
 * that, and not a process number (which another container may use too), tells which ones are left over. */
#define _GNU_SOURCE /* struct ucred, accept4 */
#include "hook/socket.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hook/report.h"

enum { BACKLOG = 4, LOOKED_AT_MAX = 256 };

_Static_assert(sizeof((np_hook_socket *)NULL)->path == sizeof((struct sockaddr_un *)NULL)->sun_path, "as long");

/* ---- the folder ---- */

static bool fits(int n, size_t room)
{
    return n > 0 && (size_t)n < room;
}

static bool name_folder(char *folder, size_t room)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"); /* NOLINT(concurrency-mt-unsafe): set before programs begin */
    return runtime && runtime[0] == '/' ? fits(snprintf(folder, room, "%s/neap", runtime), room)
                                        : fits(snprintf(folder, room, "/tmp/neap-%u", (unsigned)geteuid()), room);
}

static bool make_folder(const char *folder)
{
    struct stat found;
    if (mkdir(folder, S_IRWXU) != 0 && errno != EEXIST) {
        return false;
    }
    return lstat(folder, &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == geteuid() &&
           (found.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

bool np_hook_socket_folder(char *folder, size_t room)
{
    return name_folder(folder, room) && make_folder(folder);
}

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return address;
}

/* Nobody listens there. */
static bool is_left_over(const char *path)
{
    struct sockaddr_un address = address_of(path);
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file == -1) {
        return false;
    }
    bool is_refused = connect(file, (struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
    (void)close(file);
    return is_refused;
}

static void clear_folder(const char *folder)
{
    static const char suffix[] = ".sock";
    DIR *entries = opendir(folder);
    if (!entries) {
        return;
    }
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this thread's alone */
    for (int i = 0; i < LOOKED_AT_MAX && (entry = readdir(entries)) != NULL; i++) {
        char path[sizeof((struct sockaddr_un *)NULL)->sun_path];
        size_t n = strlen(entry->d_name);
        if (n > sizeof suffix && strcmp(entry->d_name + n - (sizeof suffix - 1), suffix) == 0 &&
            fits(snprintf(path, sizeof path, "%s/%s", folder, entry->d_name), sizeof path) && is_left_over(path)) {
            (void)unlink(path);
        }
    }
    (void)closedir(entries);
}

/* ---- begin and end ---- */

static bool listen_at(const char *path, int file)
{
    struct sockaddr_un address = address_of(path);
    return bind(file, (struct sockaddr *)&address, sizeof address) == 0 && listen(file, BACKLOG) == 0;
}

void np_hook_socket_open(np_hook_socket *made)
{
    char folder[sizeof made->path];
    *made = (np_hook_socket){.listens = -1};
    if (!np_hook_socket_folder(folder, sizeof folder) ||
        !fits(snprintf(made->path, sizeof made->path, "%s/%ld.sock", folder, (long)getpid()), sizeof made->path)) {
        return;
    }
    clear_folder(folder);
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file != -1 && listen_at(made->path, file)) {
        made->listens = file;
    } else if (file != -1) {
        (void)close(file);
    }
}

void np_hook_socket_abandon(np_hook_socket *made)
{
    for (size_t i = 0; i < made->n_peers; i++) {
        (void)close(made->peers[i]);
    }
    made->n_peers = 0;
    if (made->listens != -1) {
        (void)close(made->listens);
        made->listens = -1;
    }
}

void np_hook_socket_close(np_hook_socket *made)
{
    if (made->listens != -1) {
        (void)unlink(made->path);
    }
    np_hook_socket_abandon(made);
}

/* ---- peers ---- */

static bool is_same_user(int file)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && n == sizeof peer && peer.uid == geteuid();
}

static void take_peer(np_hook_socket *made)
{
    int file = accept4(made->listens, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (file == -1) {
        return;
    }
    if (made->n_peers < NP_HOOK_PEERS_MAX && is_same_user(file)) {
        made->peers[made->n_peers++] = file;
    } else {
        (void)close(file);
    }
}

/* Whole or not at all: a peer that does not read is let go. */
static bool send_all(int file, const char *text, size_t n, int flags)
{
    return send(file, text, n, MSG_NOSIGNAL | MSG_DONTWAIT | flags) == (ssize_t)n;
}

/* One answer for each newline; false: the peer has gone, or shall. */
static bool answer(int file)
{
    char asked[64];
    ssize_t n = recv(file, asked, sizeof asked, MSG_DONTWAIT);
    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    for (ssize_t i = 0; i < n; i++) {
        if (asked[i] == '\n') {
            const char *stats = neap_hook_stats();
            if (!send_all(file, stats, strlen(stats), MSG_MORE) || !send_all(file, "\n", 1, 0)) {
                return false;
            }
        }
    }
    return true;
}

size_t np_hook_socket_poll(const np_hook_socket *made, struct pollfd *entries)
{
    for (size_t i = 0; i < made->n_peers; i++) {
        entries[i] = (struct pollfd){.fd = made->peers[i], .events = POLLIN};
    }
    entries[made->n_peers] = (struct pollfd){.fd = made->listens, .events = POLLIN}; /* -1 is never ready */
    return made->n_peers + 1;
}

void np_hook_socket_serve(np_hook_socket *made, const struct pollfd *entries)
{
    size_t n_before = made->n_peers;
    size_t n_kept = 0;
    for (size_t i = 0; i < n_before; i++) {
        if (entries[i].revents == 0 || answer(made->peers[i])) {
            made->peers[n_kept++] = made->peers[i];
        } else {
            (void)close(made->peers[i]);
        }
    }
    made->n_peers = n_kept;
    if (entries[n_before].revents & POLLIN) {
        take_peer(made);
    } else if (entries[n_before].revents) { /* the program closed it under us */
        made->listens = -1;
    }
}
