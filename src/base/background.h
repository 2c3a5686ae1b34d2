/* background.h: work that takes mostly what others leave of the machine. */
#ifndef NP_BASE_BACKGROUND_H
#define NP_BASE_BACKGROUND_H

/* Calls job(user) on a thread of lower priority, which those that it starts have, too, and returns when it is done.
 * Where there are no such threads, or none can be started, the caller does the work. */
void np_in_background(void (*job)(void *user), void *user);

#endif
