#include "swap/idle.h"

#include <math.h>
#include <string.h>

#define TINY_NS 1e-3    /* shorter stretches are rounding, not time; */
#define TINY_PART 1e-12 /* and so are these, of a period: times of laps are rounded to some 1e-15 of it */

neap_status np_idle_init(np_idle *idle, const neap_memory *memory, double period_ns)
{
    *idle = (np_idle){.period_ns = period_ns};
    return np_array_push(memory, &idle->spans, ((np_idle_span){0, period_ns}));
}

void np_idle_free(np_idle *idle, const neap_memory *memory)
{
    np_array_free(memory, &idle->spans);
}

/* Index of the first span that ends after a time within the period. */
static size_t first_after(const np_idle *idle, double time)
{
    size_t low = 0;
    size_t high = idle->spans.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (idle->spans.items[middle].end <= time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool np_idle_first(const np_idle *idle, double from, double to, double least, double most, np_idle_span *found)
{
    double lap = floor(from / idle->period_ns) * idle->period_ns;
    size_t n = idle->spans.n;
    for (size_t i = first_after(idle, from - lap); n > 0; i++) {
        np_idle_span span;
        if (i == n) {
            i = 0;
            lap += idle->period_ns;
        }
        span = (np_idle_span){fmax(idle->spans.items[i].begin + lap, from), fmin(idle->spans.items[i].end + lap, to)};
        if (span.begin >= to) {
            return false;
        }
        if (span.end - span.begin >= least) {
            span.end = fmin(span.end, span.begin + most);
            *found = span;
            return true;
        }
    }
    return false;
}

bool np_idle_last(const np_idle *idle, double from, double to, double least, double most, np_idle_span *found)
{
    double lap = floor(to / idle->period_ns) * idle->period_ns;
    size_t n = idle->spans.n;
    size_t i = first_after(idle, to - lap);
    for (i = i < n ? i + 1 : n; n > 0;) {
        np_idle_span span;
        if (i == 0) {
            i = n;
            lap -= idle->period_ns;
        }
        i--;
        span = (np_idle_span){fmax(idle->spans.items[i].begin + lap, from), fmin(idle->spans.items[i].end + lap, to)};
        if (idle->spans.items[i].end + lap <= from) {
            return false;
        }
        if (span.end - span.begin >= least) {
            span.begin = fmax(span.begin, span.end - most);
            *found = span;
            return true;
        }
    }
    return false;
}

neap_status np_idle_take(np_idle *idle, const neap_memory *memory, np_idle_span stretch)
{
    double middle = stretch.begin + (stretch.end - stretch.begin) / 2; /* its ends may be rounded across a lap's */
    double lap = floor(middle / idle->period_ns) * idle->period_ns;
    double begin = fmax(stretch.begin - lap, 0);
    double end = fmin(stretch.end - lap, idle->period_ns);
    size_t i = first_after(idle, middle - lap);
    np_idle_span rest;
    if (stretch.end - stretch.begin <= TINY_PART * idle->period_ns) {
        return NEAP_OK;
    }
    if (i == idle->spans.n) {
        return NEAP_INTERNAL;
    }
    rest = (np_idle_span){end, idle->spans.items[i].end};
    idle->spans.items[i].end = begin;
    if (rest.end - rest.begin > TINY_NS) {
        if (np_array_reserve(memory, &idle->spans, idle->spans.n + 1) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
        memmove(&idle->spans.items[i + 2], &idle->spans.items[i + 1],
                (idle->spans.n - i - 1) * sizeof *idle->spans.items);
        idle->spans.items[i + 1] = rest;
        idle->spans.n++;
    }
    if (idle->spans.items[i].end - idle->spans.items[i].begin <= TINY_NS) {
        memmove(&idle->spans.items[i], &idle->spans.items[i + 1], (idle->spans.n - i - 1) * sizeof *idle->spans.items);
        idle->spans.n--;
    }
    return NEAP_OK;
}

bool np_idle_is_valid(const np_idle *idle)
{
    for (size_t i = 0; i < idle->spans.n; i++) {
        const np_idle_span *span = &idle->spans.items[i];
        if (span->begin < 0 || span->end > idle->period_ns || span->begin >= span->end ||
            (i > 0 && span[-1].end > span->begin)) {
            return false;
        }
    }
    return true;
}
