#include "run/timing.h"

#include <math.h>
#include <string.h>

#include "base/real.h"

#define LEAST_SHARE 0.3 /* of a recorded duration */
#define MAX_MS 1e12

static const char REST[] = "rested_ms";

/* From the first exec of an iteration to the first of the next. */
neap_status np_timing_add_step(neap_trace *trace, const np_period *period, double lap_ns)
{
    uint32_t first = period->origin;
    uint32_t end = period->begin + period->run_length;
    uint64_t best = UINT64_MAX;
    np_real_text text;
    while (first < end && trace->events.items[first].kind != NEAP_EVENT_EXEC) {
        first++;
    }
    for (uint32_t i = first; i < end && end - i > period->length; i += period->length) {
        uint64_t ns = trace->events.items[i + period->length].start_ns - trace->events.items[i].start_ns;
        best = ns < best ? ns : best;
    }
    best = lap_ns > 0 ? (uint64_t)lap_ns : best;
    if (best == UINT64_MAX || best > INT64_MAX) {
        return NEAP_OK;
    }
    if (period->variants.n > 1) { /* a step is an iteration, of which the period has several */
        best /= period->variants.n;
    }
    text = np_real_fixed((double)best * 1e-6, 6);
    return np_trace_add_meta(trace, "step_ms", 7, text.text, strlen(text.text));
}

/* Of one iteration, as the step is. */
neap_status np_timing_add_rest(neap_trace *trace, const np_period *period, double rested_ns)
{
    double n = period->variants.n > 1 ? (double)period->variants.n : 1;
    np_real_text text = np_real_fixed(rested_ns / n * 1e-6, 6);
    return np_trace_add_meta(trace, REST, strlen(REST), text.text, strlen(text.text));
}

double np_timing_rest_ns(const neap_trace *trace, const np_period *period)
{
    const char *text = neap_trace_meta(trace, REST);
    double n = period->variants.n > 1 ? (double)period->variants.n : 1;
    double ms = 0;
    return text && np_real_read(text, strlen(text), &ms) && ms > 0 && ms < MAX_MS ? ms * n * 1e6 : 0;
}

/* An exec's duration is the shortest of those seen: the first time, memory is touched that never was before. */
static void take_shortest(neap_trace *trace, const np_period *period)
{
    neap_event *events = trace->events.items;
    uint32_t end = period->begin + period->run_length;
    for (uint32_t t = 0; t < period->length; t++) {
        neap_event *event = &events[period->origin + t];
        for (uint32_t i = period->begin + (period->origin + t - period->begin) % period->length;
             event->kind == NEAP_EVENT_EXEC && i < end; i += period->length) {
            event->duration_ns =
                events[i].duration_ns < event->duration_ns ? events[i].duration_ns : event->duration_ns;
        }
    }
}

static double sum_of(const neap_event *events, uint32_t n_events, uint32_t *n_execs)
{
    double sum = 0;
    *n_execs = 0;
    for (uint32_t t = 0; t < n_events; t++) {
        if (events[t].kind == NEAP_EVENT_EXEC) {
            sum += (double)events[t].duration_ns;
            (*n_execs)++;
        }
    }
    return sum;
}

/* Recording has its price: an event before and after each exec. Where the execs seem to take longer together than a
 * measured iteration does, each is shorter by the same time, but not by more than most of it; what is left is shared. */
static void fit_to_lap(neap_trace *trace, const np_period *period, double lap_ns)
{
    neap_event *events = trace->events.items + period->origin;
    for (int round = 0; round < 2; round++) {
        uint32_t n;
        double sum = sum_of(events, period->length, &n);
        for (uint32_t t = 0; t < period->length && sum > lap_ns; t++) {
            double ns = (double)events[t].duration_ns;
            double less = round == 0 ? fmax(ns - (sum - lap_ns) / n, LEAST_SHARE * ns) : ns * lap_ns / sum;
            if (events[t].kind == NEAP_EVENT_EXEC) {
                events[t].duration_ns = (uint64_t)less;
            }
        }
    }
}

/* Only if they are of this period. */
static void take_measured(neap_trace *trace, const np_period *period, const uint64_t *exec_ns, size_t n)
{
    neap_event *events = trace->events.items + period->origin;
    uint32_t n_execs;
    size_t k = 0;
    (void)sum_of(events, period->length, &n_execs);
    for (uint32_t t = 0; t < period->length && n == n_execs; t++) {
        if (events[t].kind == NEAP_EVENT_EXEC) {
            events[t].duration_ns = exec_ns[k] > 0 ? exec_ns[k] : events[t].duration_ns;
            k++;
        }
    }
}

void np_timing_settle(neap_trace *trace, const np_period *period, const uint64_t *exec_ns, size_t n, double lap_ns)
{
    take_shortest(trace, period);
    take_measured(trace, period, exec_ns, n);
    if (lap_ns > 0) {
        fit_to_lap(trace, period, lap_ns);
    }
}
