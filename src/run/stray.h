/* stray.h: work that comes when it likes.
 *
 * Some threads of a program do nothing but copy: gloo's, which write gradients back that were summed on the host. Between
 * which events of the others such a copy comes is not the program's choice, and differs from iteration to iteration. So
 * it is no event: with it among them no period would be found, and no plan be followed. For that, nothing depends on
 * it: no plan swaps what it uses, once it was seen to. On the plan it is a late use (seen.c) of whatever is there; for
 * what is away the plan is left first. */
#ifndef NP_RUN_STRAY_H
#define NP_RUN_STRAY_H

#include "run/manager.h"

/* Other work is beside the plan, too: a copy that logs a loss now and then, and what little comes between two iterations,
 * as long as nothing that it uses is away. It is no event either, and no departure.
 *
 * The two halves, as of an exec (np_exec_ready). Under the lock. */
neap_status np_stray_ready(neap_device *m, const neap_work *work, const neap_use *uses, size_t n_uses, np_given *given);
void np_stray_given(neap_device *m, const np_given *given, uint64_t mark);

/* On the plan, beneath a program: is work that is not the planned one beside the plan? */
bool np_stray_is_beside(const neap_device *m, uint64_t key, const np_given *given);
/* It is made ready. On failure the plan has been left. */
bool np_stray_ready_beside(neap_device *m, np_given *given);

#endif
