/* variants.c: splits a period into iterations.
 *
 * A loop that logs every third time, or that is fed two batch shapes in turn, has a period of several iterations which
 * start alike. An iteration starts where the live blocks are those of the cut (which is of lowest load), where the
 * events go on as they do at the cut, but for the sizes (VARIANT_PREFIX events at least: another batch size soon
 * makes another kernel run), and only after the load has risen: by a 1 / VARIANT_RISE of what it rises by over the
 * whole period. Where several such places are close together, before the load rises again, the one that resembles the
 * cut for longest is the start. */
#include "trace/variants.h"

#include "base/hash.h"
#include "base/map.h"

#define VARIANT_PREFIX 8
#define VARIANT_RISE 16
#define VARIANT_LOOK 1024 /* a longer resemblance says no more */

typedef struct splitter {
    np_period *period;
    uint64_t live;             /* sum of the hashes of the live sizes, relative to the cut */
    int64_t load;              /* relative to the cut */
    int64_t rise;              /* what makes a rise */
    bool has_risen;            /* since the last start */
    np_array(uint32_t) starts; /* times, counted from the origin; the first is 0 */
    uint32_t *alike;           /* [time]: events it has in common with the cut, sizes aside; at most VARIANT_LOOK */
    uint32_t resemblance;      /* that of the last start */
    np_map kinds;              /* hash of an iteration's events -> its kind */
} splitter;

static uint32_t event_at(const np_period *period, uint32_t time)
{
    uint32_t from_begin = (uint32_t)(((uint64_t)(period->origin - period->begin) + time) % period->length);
    return period->begin + from_begin;
}

static bool is_alike(const np_period *period, uint32_t a, uint32_t b)
{
    const neap_event *x = &period->trace->events.items[event_at(period, a)];
    const neap_event *y = &period->trace->events.items[event_at(period, b)];
    return x->kind == y->kind && (x->kind != NEAP_EVENT_EXEC || x->subject == y->subject);
}

/* The Z-function: in the stretch [begin, end) that is known to be like the cut, what is alike is so as it was there. */
static void find_alike(splitter *s)
{
    uint32_t begin = 0, end = 0;
    s->alike[0] = VARIANT_LOOK;
    for (uint32_t t = 1; t < s->period->length; t++) {
        uint32_t n = 0;
        if (t < end) {
            n = s->alike[t - begin] < end - t ? s->alike[t - begin] : end - t;
        }
        while (n < VARIANT_LOOK && is_alike(s->period, n, t + n)) {
            n++;
        }
        if (t + n > end) {
            begin = t;
            end = t + n;
        }
        s->alike[t] = n;
    }
}

/* Highest minus lowest load of the period. The lowest is at the cut, but for leaks. */
static int64_t find_swing(const np_period *period)
{
    int64_t load = 0, low = 0, high = 0;
    for (uint32_t t = 0; t < period->length; t++) {
        load += np_trace_step(period->trace, period->origin + t).live_bytes_delta;
        low = load < low ? load : low;
        high = load > high ? load : high;
    }
    return high - low;
}

/* Whether the live blocks are those of the cut, but for what has leaked since. */
static bool is_low(const splitter *s)
{
    return s->load == 0 ? s->live == 0 : s->load > 0 && (uint64_t)s->load <= s->period->leak_bytes;
}

static neap_status visit(splitter *s, uint32_t time)
{
    uint32_t likeness;
    if (s->load >= s->rise) {
        s->has_risen = true;
    }
    if (!is_low(s) || (!s->has_risen && s->starts.n == 1)) {
        return NEAP_OK;
    }
    likeness = s->alike[time];
    if (likeness < VARIANT_PREFIX) {
        return NEAP_OK;
    }
    if (s->has_risen) {
        s->has_risen = false;
        s->resemblance = likeness;
        return np_array_push(s->period->memory, &s->starts, time);
    }
    if (likeness > s->resemblance) {
        s->resemblance = likeness;
        s->starts.items[s->starts.n - 1] = time;
    }
    return NEAP_OK;
}

static neap_status find_starts(splitter *s)
{
    neap_status status = np_array_push(s->period->memory, &s->starts, 0u);
    find_alike(s);
    s->rise = find_swing(s->period) / VARIANT_RISE + 1;
    for (uint32_t t = 1; status == NEAP_OK && t < s->period->length; t++) {
        np_step step = np_trace_step(s->period->trace, s->period->origin + t - 1);
        s->live += step.live_hash_delta;
        s->load += step.live_bytes_delta;
        status = visit(s, t);
    }
    if (status == NEAP_OK && s->starts.n > 1 && !s->has_risen) {
        /* The last one runs into the cut without a rise of its own: it is the end of the one before. */
        int64_t load = 0, high = 0;
        for (uint32_t t = s->starts.items[s->starts.n - 1]; t < s->period->length; t++) {
            load += np_trace_step(s->period->trace, s->period->origin + t).live_bytes_delta;
            high = load > high ? load : high;
        }
        if (high < s->rise) {
            s->starts.n--;
        }
    }
    return status;
}

/* Equal events from two times on; at most n. */
static uint32_t common_prefix(const np_period *period, uint32_t a, uint32_t b, uint32_t n)
{
    uint32_t i = 0;
    while (i < n && np_trace_step(period->trace, event_at(period, a + i)).key ==
                        np_trace_step(period->trace, event_at(period, b + i)).key) {
        i++;
    }
    return i;
}

/* The kind of a variant: that of the first equal one before it, or a new one. */
static neap_status name_kind(splitter *s, neap_variant *v, uint32_t time)
{
    uint64_t hash = v->length;
    bool found;
    for (uint32_t i = 0; i < v->length; i++) {
        hash = np_hash_combine(hash, np_trace_step(s->period->trace, event_at(s->period, time + i)).key);
    }
    return np_map_get_or_put(&s->kinds, hash, (uint32_t)s->kinds.n, &v->kind, &found);
}

static neap_status add_variants(splitter *s)
{
    np_period *period = s->period;
    uint32_t offset = period->origin - period->begin, n = (uint32_t)s->starts.n, first = 0;
    uint32_t shift = period->length - offset; /* from events after `begin` to times after the cut */
    /* The first from `begin` on: times wrap where they pass the period's end. */
    while (first < n && offset + s->starts.items[first] < period->length) {
        first++;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = (first + i) % n, next = k + 1 < n ? s->starts.items[k + 1] : period->length;
        uint32_t length = next - s->starts.items[k], common;
        neap_variant v = {(offset + s->starts.items[k]) % period->length, length, 0, length};
        neap_status status = name_kind(s, &v, v.begin + shift);
        if (status == NEAP_OK) {
            status = np_array_push(period->memory, &period->variants, v);
        }
        if (status != NEAP_OK) {
            return status;
        }
        common = length < period->variants.items[0].length ? length : period->variants.items[0].length;
        common = common_prefix(period, period->variants.items[0].begin + shift, v.begin + shift, common);
        period->variants.items[i].shared_prefix = common;
    }
    return NEAP_OK;
}

neap_status np_variants_make(np_period *period)
{
    splitter s = {.period = period};
    neap_status status;
    s.alike = np_memory_alloc(period->memory, period->length, sizeof *s.alike);
    if (!s.alike) {
        return NEAP_NO_MEMORY;
    }
    np_map_init(&s.kinds, period->memory);
    status = find_starts(&s);
    if (status == NEAP_OK && s.starts.n > 1) {
        status = add_variants(&s);
    }
    np_map_free(&s.kinds);
    np_array_free(period->memory, &s.starts);
    np_memory_free(period->memory, s.alike, period->length, sizeof *s.alike);
    return status;
}
