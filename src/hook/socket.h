/* socket.h: where `neap top` finds a process: a socket in a folder that is the user's alone. */
#ifndef NP_HOOK_SOCKET_H
#define NP_HOOK_SOCKET_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

enum { NP_HOOK_PEERS_MAX = 8, NP_HOOK_SOCKET_PATH = 108 /* as long as the system has room for */ };

typedef struct np_hook_socket {
    char path[NP_HOOK_SOCKET_PATH];
    int listens; /* -1: there is none */
    int peers[NP_HOOK_PEERS_MAX];
    size_t n_peers;
} np_hook_socket;

/* Its name, after it was made where it was not there. False: there can be none that is the user's alone. */
bool np_hook_socket_folder(char *folder, size_t room);

/* Leaves `listens` at -1 where there can be none. What processes before it left behind is cleared away. */
void np_hook_socket_open(np_hook_socket *made);
void np_hook_socket_close(np_hook_socket *made);   /* and it is gone from the folder */
void np_hook_socket_abandon(np_hook_socket *made); /* in a forked child: the parent keeps it */

/* What to wait for: at most NP_HOOK_PEERS_MAX + 1 entries, their number returned; then what to do about it. */
size_t np_hook_socket_poll(const np_hook_socket *made, struct pollfd *entries);
void np_hook_socket_serve(np_hook_socket *made, const struct pollfd *entries);

#endif
