#include "run/traffic.h"

#include <math.h>
#include <stdlib.h>

#define FASTEST_SHARE (1.0 / 30) /* of the time: a few may be seen to use more than they touch */

typedef struct span {
    double rate; /* bytes a ns */
    double ns;
} span;

static double bytes_used(const np_period *period, uint32_t time)
{
    double bytes = 0;
    for (uint32_t i = period->access_at.items[time]; i < period->access_at.items[time + 1]; i++) {
        const np_life *life = &period->lives.items[period->accesses.items[i].block];
        bytes += (double)period->trace->blocks.items[life->block].bytes;
    }
    return bytes;
}

static int compare_rates(const void *left, const void *right) /* the fastest first */
{
    const span *a = left;
    const span *b = right;
    return a->rate > b->rate ? -1 : a->rate < b->rate;
}

static np_traffic judge(span *spans, size_t n, double all_ns)
{
    np_traffic found = {0};
    double ns = 0;
    qsort(spans, n, sizeof *spans, compare_rates);
    for (size_t i = 0; i < n && ns < FASTEST_SHARE * all_ns; i++) {
        ns += spans[i].ns;
        found.peak = spans[i].rate;
    }
    for (size_t i = 0; i < n && found.peak > 0; i++) {
        found.use += fmin(spans[i].rate / found.peak, 1) * spans[i].ns / all_ns;
    }
    return found;
}

neap_status np_traffic_find(const np_period *period, np_traffic *traffic)
{
    span *spans = np_memory_alloc(period->memory, (size_t)period->length + 1, sizeof *spans);
    double all_ns = 0;
    size_t n = 0;
    if (!spans) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t t = 0; t < period->length && period->accesses.n > 0; t++) {
        const neap_event *event = &period->trace->events.items[period->origin + t];
        double ns = event->kind == NEAP_EVENT_EXEC ? (double)event->duration_ns : 0;
        if (ns > 0) {
            spans[n++] = (span){bytes_used(period, t) / ns, ns};
            all_ns += ns;
        }
    }
    *traffic = n > 0 ? judge(spans, n, all_ns) : (np_traffic){0};
    np_memory_free(period->memory, spans, (size_t)period->length + 1, sizeof *spans);
    return NEAP_OK;
}
