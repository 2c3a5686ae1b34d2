/* timing.h: how long a period's execs take, from a recording that has its price and a measured iteration that has not. */
#ifndef NP_RUN_TIMING_H
#define NP_RUN_TIMING_H

#include "trace/period.h"

/* Writes the durations of the trace's period, the one at its origin. exec_ns: those that were measured otherwise, by exec,
 * n of them, 0 where they were not; lap_ns: an iteration as measured; 0: it was not. */
void np_timing_settle(neap_trace *trace, const np_period *period, const uint64_t *exec_ns, size_t n, double lap_ns);

/* Adds the trace's step_ms, by the same iteration, or else by the shortest that was recorded. */
neap_status np_timing_add_step(neap_trace *trace, const np_period *period, double lap_ns);

/* Adds the trace's rested_ms: an iteration as it was while nobody looked at the program's work. */
neap_status np_timing_add_rest(neap_trace *trace, const np_period *period, double rested_ns);

/* What it says, of the whole period; 0: nothing. */
double np_timing_rest_ns(const neap_trace *trace, const np_period *period);

#endif
