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

/* The two halves, as of an exec (np_exec_ready). Under the lock. */
neap_status np_stray_ready(neap_device *m, const neap_work *work, const neap_use *uses, size_t n_uses, np_given *given);
void np_stray_given(neap_device *m, const np_given *given, uint64_t mark);

#endif
