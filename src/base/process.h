/* process.h: is this still the process that made something, or a child that was forked since?
 *
 * A forked child has a copy of everything but of the threads: a join there never ends, and a lock that another thread held is
 * held for ever. */
#ifndef NP_BASE_PROCESS_H
#define NP_BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

typedef struct np_process {
    const volatile unsigned char *is_here; /* a byte that the kernel clears in a child; NULL: `pid` tells */
    pid_t pid;
} np_process;

void np_process_init(np_process *process);
void np_process_free(np_process *process);
bool np_process_is_child(const np_process *process); /* a load where the kernel helps, a system call elsewhere */

#endif
