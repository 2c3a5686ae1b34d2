/* pass.h: on the plan, execs for which there is nothing to do but to count them.
 *
 * Most execs of most plans have no operation before or after them, and use what they were planned to use. Whoever knows
 * that an exec is in every way the one that was served at the same event a lap ago may pass it: the event is over, and
 * the work is known by its mark. */
#ifndef NP_RUN_PASS_H
#define NP_RUN_PASS_H

#include "run/manager.h"

/* The exec that was made ready and is about to be given: could the same one be passed in later laps? As long as the plan is
 * not left (n_settled), and where anything was copied out since, if its writes are counted. `exec`: its number in the
 * period. */
bool np_pass_is_allowed(const neap_device *m, const np_given *given, uint32_t *exec);

/* Must work of the stream come after late uses by others? Then it cannot be passed. */
bool np_pass_is_late_elsewhere(const neap_device *m, np_stream stream);

/* The exec at the cursor was given, and is passed. */
static inline void np_pass(neap_device *m, uint32_t exec, uint64_t mark)
{
    m->pattern->exec_marks[exec] = mark;
    m->stats.n_events++;
    m->cursor++;
}

#endif
