/* program_stays.c: from lives, their places and what leaves of them to stays of bytes in the arena.
 *
 * A life's places are cut where a trip's bytes begin or end, so that each piece leaves and returns as one. The trips of a
 * piece, in their order, cut its life into stays; a persistent life is a circle, and without trips its bytes are nobody
 * else's: it has no stays. One that lives longer than a period has several places, in turn. Which of its instances an
 * exec uses is not known, so each of its places counts as used by all of them, in stays of a whole period, each of which
 * follows the one before. */
#include <stdlib.h>

#include "run/program_make.h"

/* ---- uses ---- */

static bool is_wrapped(const np_life *life, uint32_t time)
{
    return !life->persistent && time < life->begin;
}

/* Counts, or with `fill` writes, each life's uses: one an exec. A life that crosses the period's end begins with the
 * later execs: these come in the first pass. */
static void gather_uses(np_making *m, uint32_t *n_uses, bool fill)
{
    const np_period *period = m->timeline->period;
    for (uint32_t i = 0; i < 2 * m->n_execs; i++) {
        uint32_t time = m->timeline->times.items[i % m->n_execs];
        for (uint32_t a = period->access_at.items[time]; a < period->access_at.items[time + 1]; a++) {
            uint32_t life = period->accesses.items[a].block;
            bool writes = period->accesses.items[a].kind != NEAP_ACCESS_READ;
            np_use *next = fill ? &m->uses.items[m->use_at.items[life] + n_uses[life]] : NULL;
            if (is_wrapped(&period->lives.items[life], time) != (i >= m->n_execs)) {
                continue;
            }
            if (next && n_uses[life] > 0 && next[-1].exec == i) {
                next[-1].writes = next[-1].writes || writes;
                continue;
            }
            if (next) {
                *next = (np_use){i, writes};
            }
            n_uses[life]++;
        }
    }
}

/* Several accesses by one exec leave room unused between the lives: close it. */
static void close_ranks(np_making *m, const uint32_t *n_uses)
{
    uint32_t at = 0;
    for (size_t life = 0; life + 1 < m->use_at.n; life++) {
        uint32_t first = m->use_at.items[life];
        m->use_at.items[life] = at;
        for (uint32_t i = 0; i < n_uses[life]; i++) {
            m->uses.items[at++] = m->uses.items[first + i];
        }
    }
    m->use_at.items[m->use_at.n - 1] = at;
    m->uses.n = at;
}

static neap_status find_uses(np_making *m)
{
    size_t n = m->timeline->period->lives.n;
    uint32_t *n_uses = np_memory_alloc_zero(m->memory, n, sizeof *n_uses);
    neap_status status = n_uses ? np_array_reserve(m->memory, &m->use_at, n + 1) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        gather_uses(m, n_uses, false);
        m->use_at.n = n + 1;
        m->use_at.items[0] = 0;
        for (size_t i = 0; i < n; i++) {
            m->use_at.items[i + 1] = m->use_at.items[i] + n_uses[i];
            n_uses[i] = 0;
        }
        status = np_array_reserve(m->memory, &m->uses, m->use_at.items[n]);
    }
    if (status == NEAP_OK) {
        gather_uses(m, n_uses, true);
        close_ranks(m, n_uses);
    }
    np_memory_free(m->memory, n_uses, n, sizeof *n_uses);
    return status;
}

/* The first of the life's uses at or after an exec. */
static uint32_t find_use(const np_making *m, uint32_t life, uint32_t exec)
{
    const np_use *uses = &m->uses.items[m->use_at.items[life]];
    uint32_t low = 0;
    uint32_t high = m->use_at.items[life + 1] - m->use_at.items[life];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (uses[middle].exec < exec) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- trips ---- */

static neap_status add_trip(np_making *m, const np_swap *swaps, uint32_t n_swaps, const np_left *left)
{
    const np_timeline *timeline = m->timeline;
    const np_gap *gap;
    const np_life *life;
    const np_swap *swap;
    np_trip trip = {.begin = left->begin, .end = left->end};
    if (left->swap >= n_swaps || swaps[left->swap].gap >= timeline->gaps.n) {
        return NEAP_BAD_ARGUMENT;
    }
    swap = &swaps[left->swap];
    gap = &timeline->gaps.items[swap->gap];
    if (left->begin >= left->end || left->absent_from <= gap->from || left->back_from <= left->absent_from ||
        gap->to < left->back_from || swap->in_after < gap->from || gap->to <= swap->in_after) {
        return NEAP_BAD_ARGUMENT;
    }
    trip.life = timeline->blocks.items[gap->block].life;
    life = &timeline->period->lives.items[trip.life];
    trip.lap = is_wrapped(life, timeline->times.items[gap->from]) ? 1 : 0;
    trip.from = gap->from + trip.lap * m->n_execs;
    trip.to = gap->to + trip.lap * m->n_execs;
    trip.in_after = swap->in_after + trip.lap * m->n_execs;
    trip.absent_from = left->absent_from + trip.lap * m->n_execs;
    trip.back_from = left->back_from + trip.lap * m->n_execs;
    trip.out_key = swap->out_key + trip.lap * timeline->period_ns;
    trip.in_key = swap->in_key + trip.lap * timeline->period_ns;
    return np_array_push(m->memory, &m->trips, trip);
}

/* Trips of one life are few: put in order one by one. */
static void sort_trips(np_making *m, uint32_t life)
{
    uint32_t n = m->trip_at.items[life + 1] - m->trip_at.items[life];
    uint32_t *trips = n > 0 ? &m->trip_of.items[m->trip_at.items[life]] : NULL;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t moved = trips[i];
        uint32_t k = i;
        for (; k > 0 && m->trips.items[trips[k - 1]].from > m->trips.items[moved].from; k--) {
            trips[k] = trips[k - 1];
        }
        trips[k] = moved;
    }
}

static neap_status group_trips(np_making *m)
{
    size_t n = m->timeline->period->lives.n;
    if (np_array_reserve(m->memory, &m->trip_at, n + 2) != NEAP_OK ||
        np_array_reserve(m->memory, &m->trip_of, m->trips.n) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < n + 2; i++) {
        m->trip_at.items[i] = 0;
    }
    for (size_t i = 0; i < m->trips.n; i++) {
        m->trip_at.items[m->trips.items[i].life + 2]++;
    }
    for (size_t i = 2; i < n + 2; i++) {
        m->trip_at.items[i] += m->trip_at.items[i - 1];
    }
    for (uint32_t i = 0; i < m->trips.n; i++) {
        m->trip_of.items[m->trip_at.items[m->trips.items[i].life + 1]++] = i;
    }
    m->trip_at.n = n + 1;
    m->trip_of.n = m->trips.n;
    for (uint32_t life = 0; life < n; life++) {
        sort_trips(m, life);
    }
    return NEAP_OK;
}

neap_status np_program_find_trips(np_making *making, const np_swap *swaps, uint32_t n_swaps)
{
    neap_status status = find_uses(making);
    for (size_t i = 0; i < making->layout->left.n && status == NEAP_OK; i++) {
        status = add_trip(making, swaps, n_swaps, &making->layout->left.items[i]);
    }
    return status == NEAP_OK ? group_trips(making) : status;
}

/* ---- stays ---- */

/* A piece of a life's place: bytes that leave and return together, in some of the life's trips. */
typedef struct piece {
    uint32_t life;
    uint64_t offset;
    uint64_t bytes;
    const uint32_t *trips;
    uint32_t n_trips;
} piece;

static neap_status add_stay(np_making *m, const piece *p, np_stay stay, int64_t begin, int64_t end)
{
    if (begin < 0 || end <= begin || end - begin > m->length) {
        return NEAP_BAD_ARGUMENT; /* trips of the same bytes overlap */
    }
    stay.life = p->life;
    stay.offset = p->offset;
    stay.end = p->offset + p->bytes;
    stay.begin = (uint32_t)(begin % m->length);
    stay.span = (uint32_t)(end - begin);
    return np_array_push(m->memory, &m->stays, stay);
}

/* From the malloc, or the return from trip `before`, to the leaving on trip `after`, or the free. */
static neap_status add_stay_between(np_making *m, const piece *p, uint32_t before, uint32_t after)
{
    const np_life *life = &m->timeline->period->lives.items[p->life];
    const np_trip *in = before == NP_NO_TRIP ? NULL : &m->trips.items[before];
    const np_trip *out = after == NP_NO_TRIP ? NULL : &m->trips.items[after];
    uint32_t n_uses = m->use_at.items[p->life + 1] - m->use_at.items[p->life];
    np_stay stay = {.in = before, .out = after};
    int64_t begin = in ? np_making_event(m, in->back_from) : life->begin;
    int64_t end = out ? np_making_event(m, out->absent_from - 1) + 1 : life->end;
    uint32_t past = out ? find_use(m, p->life, out->from + 1) : n_uses;
    stay.first_use = in ? find_use(m, p->life, life->persistent ? in->to % m->n_execs : in->to) : 0;
    if (life->persistent && end <= begin) { /* it goes on over the period's end */
        end += m->length;
    }
    stay.n_uses = past > stay.first_use ? past - stay.first_use : past + n_uses - stay.first_use;
    if (!life->persistent && past < stay.first_use) {
        return NEAP_BAD_ARGUMENT;
    }
    stay.n_uses = past == stay.first_use && !life->persistent ? 0 : stay.n_uses;
    return add_stay(m, p, stay, begin, end);
}

static neap_status add_piece(np_making *m, const piece *p)
{
    const np_life *life = &m->timeline->period->lives.items[p->life];
    neap_status status = NEAP_OK;
    uint32_t before = NP_NO_TRIP;
    if (life->persistent) {
        for (uint32_t i = 0; i < p->n_trips && status == NEAP_OK; i++) {
            status = add_stay_between(m, p, p->trips[i], p->trips[(i + 1) % p->n_trips]);
        }
        return status;
    }
    for (uint32_t i = 0; i < p->n_trips && status == NEAP_OK; i++) {
        status = add_stay_between(m, p, before, p->trips[i]);
        before = p->trips[i];
    }
    return status == NEAP_OK ? add_stay_between(m, p, before, NP_NO_TRIP) : status;
}

static neap_status add_turns(np_making *m, const np_placed *placed)
{
    const np_life *life = &m->timeline->period->lives.items[placed->life];
    piece p = {.life = placed->life, .offset = placed->offset, .bytes = placed->bytes};
    np_stay stay = {.in = NP_NO_TRIP, .out = NP_NO_TRIP};
    stay.n_uses = m->use_at.items[placed->life + 1] - m->use_at.items[placed->life];
    return add_stay(m, &p, stay, life->begin, (int64_t)life->begin + m->length);
}

/* The end of the piece that begins at byte `at` of the life: where the next trip's bytes begin or end. `trips` gets those
 * that have it. */
static uint64_t cut_piece(const np_making *m, uint32_t life, uint64_t at, uint64_t end, uint32_t *trips,
                          uint32_t *n_trips)
{
    *n_trips = 0;
    for (uint32_t i = m->trip_at.items[life]; i < m->trip_at.items[life + 1]; i++) {
        const np_trip *trip = &m->trips.items[m->trip_of.items[i]];
        if (trip->begin > at) {
            end = trip->begin < end ? trip->begin : end;
        } else if (trip->end > at) {
            end = trip->end < end ? trip->end : end;
            trips[(*n_trips)++] = m->trip_of.items[i];
        }
    }
    return end;
}

static neap_status add_placed(np_making *m, const np_placed *placed, uint32_t *trips)
{
    uint64_t past = placed->at + placed->bytes;
    uint64_t at = placed->at;
    neap_status status = NEAP_OK;
    while (at < past && status == NEAP_OK) {
        piece p = {.life = placed->life, .offset = placed->offset + (at - placed->at), .trips = trips};
        uint64_t end = cut_piece(m, placed->life, at, past, trips, &p.n_trips);
        p.bytes = end - at;
        status = add_piece(m, &p);
        at = end;
    }
    return status;
}

neap_status np_program_find_stays(np_making *making, const np_program *program)
{
    size_t n_trips = making->trips.n;
    uint32_t *trips = np_memory_alloc(making->memory, n_trips, sizeof *trips);
    neap_status status = trips ? NEAP_OK : NEAP_NO_MEMORY;
    for (size_t i = 0; i < program->placed.n && status == NEAP_OK; i++) {
        const np_placed *placed = &program->placed.items[i];
        bool takes_turns = program->lives.items[placed->life].n_places > 1;
        status = takes_turns ? add_turns(making, placed) : add_placed(making, placed, trips);
    }
    np_memory_free(making->memory, trips, n_trips, sizeof *trips);
    return status;
}
