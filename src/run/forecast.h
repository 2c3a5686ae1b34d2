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

/* Of the execs. */
typedef struct np_exec_times {
    const uint64_t *ns;     /* durations */
    const bool *is_awaited; /* the host waits until it is done, before it gives anything more; NULL: it never does */
} np_exec_times;

/* What the undisturbed period is longer than the sum of its execs is time that the device takes from one to the next, as
 * far as it may, and beyond that the host's: it gives them at an even pace, and is ahead while the device waits for
 * copies, as far as the driver lets it. What a copy costs those beside it makes the next exec longer. A program without
 * execs takes no time. */
neap_status np_program_forecast(const np_program *program, const np_exec_times *execs, const neap_link *link,
                                const np_toll *toll, const neap_memory *memory, np_forecast *result);

#endif
