/* forecast.h: how long a program's iterations will take, before it runs.
 *
 * The planner's simulator knows loads; a program knows places, and with them just which copy waits for which. So the last
 * word on a plan's overhead is had by running the program itself, on streams with a virtual clock. */
#ifndef NP_RUN_FORECAST_H
#define NP_RUN_FORECAST_H

#include "run/program.h"

/* exec_ns: durations by exec. What the undisturbed period is longer than their sum is an even pause before every exec.
 * *period_ns: of an iteration, once they are alike. A program without execs takes no time. */
neap_status np_program_forecast(const np_program *program, const uint64_t *exec_ns, const neap_link *link,
                                const neap_memory *memory, double *period_ns);

#endif
