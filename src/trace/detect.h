/* detect.h: the iteration of a program, found while its events come in.
 *
 * A *run* (begin, end, period): keys[i] == keys[i + period] for begin <= i < end - period, at least two periods long, as
 * long as it can be, and the same multiset of live sizes at i and at i + period. Inner loops that allocate (equal layers)
 * do not leave the live sizes as they were; inner loops that do not (equal time steps of one layer, a loop over
 * parameters) are short runs: the longest run wins.
 *
 * A small growth from one period to the next is tolerated, since some programs keep every loss alive: at most
 * NP_LEAK_BYTES_MAX, and at most 1 / NP_LEAK_SHARE of the swing, the highest minus the lowest load inside its first
 * period. An inner loop that keeps what it computes keeps a far larger share of what it allocates.
 *
 * An *epoch* is a run in whose first two periods a shorter period q repeats NP_LOOP_REPEATS times in a row or more, in
 * runs that cover half of the events or more, with at least half of the epoch's swing (which is not 0): a thousand
 * iterations and an evaluation. It gives way to its iterations. (An iteration of 256 time steps does not: a step's
 * swing is small. A step that adds up the gradients of a few batches does not either; one of more than NP_LOOP_REPEATS
 * equal batches looks just like an epoch, and is taken for one.)
 *
 * What is freed but was there before the first event has no age that could be known: a recording that begins in the
 * middle of an iteration must hold two more, counted from the last such free.
 *
 * While events come in, the answer is the longest run that reaches the present and is no epoch, then the smallest
 * period. At the end it is the longest run ever seen, then the smallest period, then the smallest begin; where that is an
 * epoch, the longest run of its iterations inside it.
 */
#ifndef NP_TRACE_DETECT_H
#define NP_TRACE_DETECT_H

#include "base/memory.h"

#define NP_LEAK_BYTES_MAX ((int64_t)1 << 20)
#define NP_LEAK_SHARE 64
#define NP_LOOP_REPEATS 8
#define NP_DETECTOR_EVENTS_MAX (UINT32_MAX - 1)

/* What the detector needs to know of an event. Equal keys mean: the same kind, size and kernel name; for a free, the
 * same size and the same number of events since its malloc. Accesses are not part of it. */
typedef struct np_step {
    uint64_t key;
    uint64_t
        live_hash_delta; /* added to the sum of the live sizes' hashes, modulo 2^64: + for a malloc, - for a free */
    int64_t live_bytes_delta;
} np_step;

np_step np_step_of_malloc(uint64_t bytes);
np_step np_step_of_free(uint64_t bytes, uint64_t age /* events since its malloc, 0: before the first event */);
np_step np_step_of_exec(uint64_t name_hash);

typedef struct np_run {
    uint32_t begin;
    uint32_t end;          /* half-open */
    uint32_t period;       /* 0: no run */
    uint32_t first_answer; /* events fed when it became the answer to np_detector_current, which it stayed until its end
                            * (or the present); NEAP_NEVER where it was not the answer at its end */
    int64_t leak_bytes;    /* growth of the load from one period to the next */
} np_run;

typedef struct np_detector np_detector;

neap_status np_detector_create(const neap_memory *memory, np_detector **detector);
void np_detector_free(np_detector *detector); /* NULL is allowed */

/* O(1) amortised. A run of three periods is known at their end, whatever the events; most are known after two and a few
 * events. NEAP_NO_MEMORY changes nothing; NEAP_TOO_LARGE beyond NP_DETECTOR_EVENTS_MAX events. */
neap_status np_detector_feed(np_detector *detector, np_step step);

/* The answer now; false where nothing repeats at present. */
bool np_detector_current(const np_detector *detector, np_run *run);

/* The answer for all that was fed: the run to plan from; period 0 where there is none. Linear time at worst. */
void np_detector_best(const np_detector *detector, np_run *run);

/* Elementary operations so far: comparisons, table accesses, elements scanned. Tests hold it against the events. */
uint64_t np_detector_work(const np_detector *detector);

bool np_detector_is_valid(const np_detector *detector); /* linear time for each run that reaches the present */

#endif
