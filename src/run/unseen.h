/* unseen.h: uses that a recording has and the program has not.
 *
 * Words that stand among parameters by chance are often old addresses. Off the plan, where blocks get the same addresses
 * again and again, such a word can name the same block in every recorded iteration, and pass for a certain use: a block
 * that is named by many kernels could never leave. On a plan addresses are others. So what was recorded, and then not
 * seen once while the execs were timed there (timed.h), is not planned with. If it was true after all, the block will be
 * there for it (visit.h). */
#ifndef NP_RUN_UNSEEN_H
#define NP_RUN_UNSEEN_H

#include "run/pattern.h"

/* On the plan, an exec was given. `is_seen`: by use of the program. */
void np_unseen_note(const np_program *program, const np_program_event *event, const neap_use *uses, size_t n_uses,
                    bool *is_seen);

/* The uses of the program that were not seen, by exec. */
neap_status np_unseen_list(const np_program *program, const bool *is_seen, const neap_memory *memory,
                           np_doubt_array *unseen);

/* Takes them from a period; sorted by exec. */
void np_unseen_drop(np_period *period, const np_doubt *unseen, size_t n_unseen);

#endif
