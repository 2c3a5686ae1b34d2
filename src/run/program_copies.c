/* program_copies.c: after which event each copy is given.
 *
 * The earliest that is right, then no earlier than what stands before it in its queue: the queues were simulated in the
 * order of the keys, and the device works off each in the order in which it is given.
 *
 * A copy out is right after the block's last write before the gap, when the block has returned from its trip before. It
 * is never given in the period before the gap's: a program that begins at event 0 finds all that its execs still read.
 * The layout has given its bytes away from the end of exec absent_from - 1 on: one that the queue would hold up beyond
 * that overtakes. (The simulation does not queue what the host already has.)
 *
 * A copy in is right after exec in_after, when all that stood in its bytes have been freed, or have left: their copies
 * out and the last use before those are given. One that would come too late for the exec that needs it overtakes. */
#include <math.h>
#include <stdlib.h>

#include "run/program_make.h"

/* A copy in its queue, moved by whole periods so that its key lies in the first one. */
typedef struct queued {
    double key;       /* ns */
    int64_t shift;    /* events it was moved back by */
    int64_t earliest; /* events */
    int64_t latest;
    uint32_t trip;
    bool aside; /* nothing is copied: it holds up nobody */
} queued;

static int compare_queued(const void *left, const void *right)
{
    const queued *a = left;
    const queued *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->trip < b->trip ? -1 : a->trip > b->trip;
}

static queued make_queued(const np_making *m, uint32_t trip, double key, int64_t earliest, int64_t latest)
{
    double period_ns = m->timeline->period_ns;
    double lap = period_ns > 0 && isfinite(key) ? floor(key / period_ns) : 0;
    int64_t shift = (int64_t)lap * m->length;
    return (queued){.key = key - lap * period_ns,
                    .shift = shift,
                    .earliest = earliest - shift,
                    .latest = latest - shift,
                    .trip = trip};
}

/* In the order of keys, round the circle, each after those before it; afterwards `earliest` is when it is given. */
static neap_status give(queued *queue, size_t n, uint32_t length)
{
    int64_t last = INT64_MIN;
    qsort(queue, n, sizeof *queue, compare_queued);
    for (size_t i = 0; i < n; i++) { /* of the period before */
        if (!queue[i].aside && queue[i].earliest - length > last) {
            last = queue[i].earliest - length;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (queue[i].earliest > queue[i].latest) {
            return NEAP_NO_PLAN;
        }
        if (last > queue[i].earliest && last <= queue[i].latest) {
            queue[i].earliest = last;
        } else if (!queue[i].aside && queue[i].earliest > last) {
            last = queue[i].earliest;
        }
    }
    return NEAP_OK;
}

/* ---- out ---- */

/* The last of the life's writes up to an exec; -1: in the period before. False: there is none. */
static bool find_last_write(const np_making *m, uint32_t life, uint32_t exec, int64_t *write)
{
    bool persistent = m->timeline->period->lives.items[life].persistent;
    bool found = false;
    for (uint32_t i = m->use_at.items[life]; i < m->use_at.items[life + 1]; i++) {
        const np_use *use = &m->uses.items[i];
        if (use->writes && use->exec <= exec) {
            *write = use->exec;
            found = true;
        } else if (use->writes && persistent && !found) {
            *write = -1;
            found = true;
        }
    }
    return found;
}

/* The exec after which the trip's bytes are all there and as they will be. */
static uint32_t find_release(const np_making *m, const np_trip *trip, bool *never_written)
{
    int64_t begin = (int64_t)trip->lap * m->n_execs; /* of the gap's own period */
    int64_t release = begin;
    *never_written = !find_last_write(m, trip->life, trip->from, &release);
    if (*never_written) {
        return trip->from;
    }
    for (uint32_t i = m->trip_at.items[trip->life]; i < m->trip_at.items[trip->life + 1]; i++) {
        const np_trip *other = &m->trips.items[m->trip_of.items[i]];
        int64_t back = (int64_t)other->to - (other->to > trip->from ? m->n_execs : 0);
        if (other->begin < trip->end && trip->begin < other->end && back <= trip->from && back > release) {
            release =
                back; /* where the life is not persistent, `back` may be the instance's before: too early to count */
        }
    }
    return (uint32_t)(release > begin ? release : begin);
}

static neap_status give_out(np_making *m, queued *queue)
{
    size_t n = m->trips.n;
    neap_status status;
    for (uint32_t i = 0; i < n; i++) {
        const np_trip *trip = &m->trips.items[i];
        bool never_written;
        uint32_t release = find_release(m, trip, &never_written);
        double key = fmax(trip->out_key, np_timeline_end(m->timeline, release));
        queue[i] = make_queued(m, i, key, np_making_event(m, release), np_making_event(m, trip->absent_from - 1));
        queue[i].aside = never_written;
    }
    status = give(queue, n, m->length);
    for (size_t i = 0; i < n && status == NEAP_OK; i++) {
        m->trips.items[queue[i].trip].out_at = queue[i].earliest + queue[i].shift;
    }
    return status;
}

/* ---- in ---- */

/* How long before its layout's end a stay has ended for those that give work: events. */
static int64_t find_slack(const np_making *m, const np_stay *stay)
{
    const np_trip *trip;
    int64_t from;
    if (stay->out == NP_NO_TRIP) {
        return 0;
    }
    trip = &m->trips.items[stay->out];
    from = np_making_event(m, trip->from);
    return np_making_event(m, trip->absent_from - 1) + 1 - (trip->out_at > from ? trip->out_at : from);
}

static neap_status give_in(np_making *m, queued *queue)
{
    size_t n = m->trips.n;
    neap_status status;
    for (size_t i = 0; i < n; i++) { /* in_at: the earliest at first */
        np_trip *trip = &m->trips.items[i];
        int64_t from = np_making_event(m, trip->from);
        trip->in_at = np_making_event(m, trip->in_after);
        trip->in_at = from > trip->in_at ? from : trip->in_at;
        trip->in_at = trip->out_at > trip->in_at ? trip->out_at : trip->in_at;
    }
    for (size_t i = 0; i < m->meetings.n; i++) {
        const np_meeting *meeting = &m->meetings.items[i];
        const np_stay *stay = &m->stays.items[meeting->stay];
        if (stay->in != NP_NO_TRIP && !meeting->used) {
            np_trip *trip = &m->trips.items[stay->in];
            int64_t free_at =
                np_making_event(m, trip->back_from) - meeting->pause - find_slack(m, &m->stays.items[meeting->before]);
            trip->in_at = free_at > trip->in_at ? free_at : trip->in_at;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const np_trip *trip = &m->trips.items[i];
        queue[i] = make_queued(m, i, trip->in_key, trip->in_at, np_making_event(m, trip->to) - 1);
    }
    status = give(queue, n, m->length);
    for (size_t i = 0; i < n && status == NEAP_OK; i++) {
        m->trips.items[queue[i].trip].in_at = queue[i].earliest + queue[i].shift;
    }
    return status;
}

neap_status np_program_give_copies(np_making *making)
{
    size_t n = making->trips.n;
    queued *queue = np_memory_alloc(making->memory, n, sizeof *queue);
    neap_status status = queue ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = give_out(making, queue);
    }
    if (status == NEAP_OK) {
        status = give_in(making, queue);
    }
    np_memory_free(making->memory, queue, n, sizeof *queue);
    return status;
}
