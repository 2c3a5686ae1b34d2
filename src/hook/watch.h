/* watch.h: a thread of the hook that answers SIGUSR1 and `neap top`, and draws the live line.
 *
 * The socket is DIR/PID.sock, DIR being $XDG_RUNTIME_DIR/neap or /tmp/neap-UID, which must be the user's own and closed to
 * others; a peer of another user is refused. A peer that connects is sent the JSON of all devices (neap_hook_stats), one
 * line, each time it sends a newline. */
#ifndef NP_HOOK_WATCH_H
#define NP_HOOK_WATCH_H

#include "hook/settings.h"

/* The thread begins when the first device is used. Failures cost the convenience alone. */
void np_hook_watch_begin(const np_hook_settings *settings);
void np_hook_watch_end(void);   /* at exit, before the report: the socket goes, the live line is cleared */
void np_hook_watch_child(void); /* in a forked child: nothing of it is the child's */

#endif
