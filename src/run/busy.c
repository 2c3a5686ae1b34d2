#include "run/busy.h"

#include <math.h>

#include "base/real.h"
#include "run/manager.h"

enum { ROUNDS_LEAST = 6, ROUNDS_MOST = 64 };

#define ROUND_NS 2.5e6  /* about, where 55 GB a second flow */
#define LEAST_PART 0.2  /* of the time, for anything to be told */
#define LEAST_SHARE 0.5 /* what is less is no matter of kernels */

bool np_busy_is_awaited(const neap_device *m, const np_pattern *pattern)
{
    return (m->options.limit_share > 0 || m->overhead > 0) && pattern->is_quick && !m->busy.is_known &&
           m->device->api->time_busy;
}

/* Those of one iteration, or of several short ones. */
static neap_status give(neap_device *m, const np_pattern *pattern)
{
    double n = fmin(np_pattern_lap_ns(pattern) / ROUND_NS, ROUNDS_MOST);
    return m->device->api->time_busy(m->device, n > ROUNDS_LEAST ? (uint32_t)n : ROUNDS_LEAST);
}

void np_busy_lap(neap_device *m, const np_pattern *pattern)
{
    double share = 0;
    if (!m->busy.is_given) {
        m->busy.is_given = give(m, pattern) == NEAP_OK;
        m->busy.is_known = !m->busy.is_given;
        return;
    }
    m->busy.is_known = m->device->api->take_busy(m->device, &share);
    if (m->busy.is_known && share > 0) {
        np_log(m, NEAP_LOG_INFO, "beside the program's work copies have %s %% of the link's speed",
               np_real_fixed(100 * share, 1).text);
    }
}

double np_busy_share(double measured, double part)
{
    double slower; /* that many times, while work runs: the rest of the time nothing is in the way */
    if (!(measured > 0) || measured >= 1 || !(part >= LEAST_PART)) {
        return 0;
    }
    part = fmin(part, 1);
    slower = (1 / measured - (1 - part)) / part;
    return fmax(1 / slower, LEAST_SHARE);
}
