/* virtual.c: from event to event. An event is an end; at each, all that has ended ends, then all that can begin begins.
 * Ends are absolute times: only a change of the link's share touches that of a copy, so that no sum of small steps makes
 * it drift. */
#include "device/virtual.h"

#include <math.h>
#include <string.h>

enum { SHRINK_AT = 64 }; /* items behind the head before they are moved over */

void np_virtual_init(np_virtual *time, const neap_memory *memory, const neap_link *link)
{
    *time = (np_virtual){.memory = memory, .link = *link};
}

void np_virtual_free(np_virtual *time)
{
    for (np_stream i = 0; i < NP_VIRTUAL_STREAMS; i++) {
        np_array_free(time->memory, &time->streams[i].items);
    }
}

/* ---- the link ---- */

static bool is_work_under_way(const np_virtual *time)
{
    for (np_stream i = 0; i < NP_MAX_STREAMS; i++) {
        if (time->streams[i].busy) {
            return true;
        }
    }
    return false;
}

static double rate_of(const np_virtual *time, np_stream stream)
{
    double own = stream == NP_STREAM_OUT ? time->link.out_gbs : time->link.in_gbs; /* GB/s are bytes a ns */
    double share = time->link.both_gbs / 2;
    bool both = time->streams[NP_STREAM_OUT].busy && time->streams[NP_STREAM_IN].busy;
    if (time->link.busy_share > 0 && is_work_under_way(time)) {
        own *= time->link.busy_share;
    }
    return both && share > 0 && share < own ? share : own;
}

/* The rate may have changed now: what flowed until now did so at the old one. */
static void update_rate(np_virtual *time, np_stream stream)
{
    np_virtual_stream *s = &time->streams[stream];
    double rate = rate_of(time, stream);
    if (s->busy && s->rate != rate) {
        double passed = time->now_ns - s->since_ns;
        double waited = fmin(passed, s->latency_left);
        s->latency_left -= waited;
        s->bytes_left = fmax(s->bytes_left - (passed - waited) * s->rate, 0);
        s->since_ns = time->now_ns;
        s->rate = rate;
        s->end_ns = time->now_ns + s->latency_left + s->bytes_left / rate;
    }
}

static void update_link(np_virtual *time)
{
    update_rate(time, NP_STREAM_OUT);
    update_rate(time, NP_STREAM_IN);
}

/* ---- one stream ---- */

static np_virtual_item *head_of(np_virtual_stream *s)
{
    return s->head < s->items.n ? &s->items.items[s->head] : NULL;
}

static void pop(np_virtual_stream *s)
{
    s->head++;
    if (s->head == s->items.n) {
        s->head = s->items.n = 0;
    } else if (s->head >= SHRINK_AT && s->head > s->items.n / 2) {
        s->items.n -= s->head;
        memmove(s->items.items, s->items.items + s->head, s->items.n * sizeof *s->items.items);
        s->head = 0;
    }
}

static void begin(np_virtual *time, np_virtual_stream *s, const np_virtual_item *item)
{
    s->busy = true;
    s->start_ns = time->now_ns;
    if (item->kind == NP_VIRTUAL_TASK) {
        s->end_ns = time->now_ns + (double)item->amount;
        update_link(time); /* it may be slower now */
    } else {
        s->since_ns = time->now_ns;
        s->latency_left = time->link.latency_us * 1e3;
        s->bytes_left = (double)item->amount;
        s->rate = 0; /* none yet */
        update_link(time);
        update_rate(time, (np_stream)(s - time->streams)); /* whichever stream it is on */
    }
}

static void end(np_virtual *time, np_virtual_stream *s)
{
    const np_virtual_item *item = head_of(s);
    if (item->times) {
        *item->times = (np_times){(uint64_t)(s->start_ns + 0.5), item->amount};
    }
    s->busy = false;
    s->done++;
    pop(s);
    update_link(time);
}

/* ---- all of them ---- */

static bool end_what_has_ended(np_virtual *time)
{
    bool any = false;
    for (np_stream i = 0; i < NP_VIRTUAL_STREAMS; i++) {
        np_virtual_stream *s = &time->streams[i];
        if (s->busy && s->end_ns <= time->now_ns) {
            end(time, s);
            any = true;
        }
    }
    return any;
}

static bool begin_what_can_begin(np_virtual *time)
{
    bool any = false;
    for (np_stream i = 0; i < NP_VIRTUAL_STREAMS; i++) {
        np_virtual_stream *s = &time->streams[i];
        const np_virtual_item *item = s->busy ? NULL : head_of(s);
        while (item && item->kind == NP_VIRTUAL_WAIT && time->streams[item->other].done >= item->amount) {
            pop(s);
            item = head_of(s);
        }
        if (item && item->kind != NP_VIRTUAL_WAIT) {
            begin(time, s, item);
            any = true;
        }
    }
    return any;
}

/* All that happens at this moment. Work that takes no time ends in the next round. */
static void settle(np_virtual *time)
{
    bool any;
    do {
        any = end_what_has_ended(time);
        any = begin_what_can_begin(time) || any;
    } while (any);
}

/* To the next end; false: nothing is under way. */
static bool pass(np_virtual *time)
{
    double next_ns = INFINITY;
    for (np_stream i = 0; i < NP_VIRTUAL_STREAMS; i++) {
        if (time->streams[i].busy) {
            next_ns = fmin(next_ns, time->streams[i].end_ns);
        }
    }
    if (next_ns == INFINITY) {
        return false;
    }
    time->now_ns = fmax(time->now_ns, next_ns);
    settle(time);
    return true;
}

void np_virtual_sync(np_virtual *time, np_stream stream, uint64_t mark)
{
    while (time->streams[stream].done < mark && pass(time)) {}
}

/* ---- giving ---- */

neap_status np_virtual_reserve(np_virtual *time, np_stream stream)
{
    np_virtual_stream *s = &time->streams[stream];
    return np_array_reserve(time->memory, &s->items, s->items.n + 1);
}

static void give(np_virtual *time, np_stream stream, np_virtual_item item)
{
    np_virtual_stream *s = &time->streams[stream];
    s->items.items[s->items.n++] = item;
    if (s->head + 1 == s->items.n) { /* nothing is before it: it may begin at once */
        settle(time);
    }
}

void np_virtual_launch(np_virtual *time, np_stream stream, uint64_t duration_ns, np_times *times)
{
    time->streams[stream].mark++;
    give(time, stream, (np_virtual_item){.kind = NP_VIRTUAL_TASK, .amount = duration_ns, .times = times});
}

void np_virtual_copy(np_virtual *time, np_stream stream, uint64_t bytes)
{
    time->streams[stream].mark++;
    give(time, stream, (np_virtual_item){.kind = NP_VIRTUAL_COPY, .amount = bytes});
}

void np_virtual_wait(np_virtual *time, np_stream stream, np_stream other, uint64_t mark)
{
    give(time, stream, (np_virtual_item){.kind = NP_VIRTUAL_WAIT, .other = other, .amount = mark});
}

bool np_virtual_is_valid(const np_virtual *time)
{
    for (np_stream i = 0; i < NP_VIRTUAL_STREAMS; i++) {
        const np_virtual_stream *s = &time->streams[i];
        uint64_t n_work = 0;
        for (size_t k = s->head; k < s->items.n; k++) {
            n_work += s->items.items[k].kind != NP_VIRTUAL_WAIT;
        }
        if (s->head > s->items.n || s->items.n > s->items.capacity || s->done + n_work != s->mark) {
            return false;
        }
        if (s->busy && (s->head == s->items.n || s->items.items[s->head].kind == NP_VIRTUAL_WAIT ||
                        s->start_ns > time->now_ns || s->end_ns < time->now_ns)) {
            return false;
        }
    }
    return true;
}
