/* forecast.h: how long a program's iterations will take, before it runs.
 *
 * The planner's simulator knows loads; a program knows places, and with them just which copy waits for which. So the last
 * word on a plan's overhead is had by running the program itself, on streams with a virtual clock. */
#ifndef NP_RUN_FORECAST_H
#define NP_RUN_FORECAST_H

#include "run/program.h"
#include "run/toll.h"

/* Of an iteration, once they are alike. */
typedef struct np_forecast {
    double period_ns;
    uint64_t bytes_out; /* copied to the host: what it has already is not */
    uint64_t bytes_in;
} np_forecast;

/* exec_ns: durations by exec. What the undisturbed period is longer than their sum is an even pause before every exec;
 * what a copy costs those beside it makes the next one longer. A program without execs takes no time. */
neap_status np_program_forecast(const np_program *program, const uint64_t *exec_ns, const neap_link *link,
                                const np_toll *toll, const neap_memory *memory, np_forecast *result);

#endif
