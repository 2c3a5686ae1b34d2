#include "trace/overlay.h"

#include "base/hash.h"

#define NONE UINT32_MAX

/* One access, as it is found at its place in some or all periods. */
typedef struct place {
    uint32_t life;   /* index, or NP_LIFE_LEAKED, or NP_LIFE_OTHER */
    uint32_t block;  /* index where it is NP_LIFE_OTHER, else 0 */
    uint32_t offset; /* events since the malloc; since the period's begin for a persistent block */
    uint32_t time;   /* of the exec in the period */
    uint32_t next;   /* the next place of this time, NONE: none */
    uint32_t count;  /* periods that have it */
    uint32_t last;   /* event that had it last: an exec that names a block twice counts once */
    neap_access_kind kind;
} place;

typedef struct ends {
    uint32_t first, last; /* places, NONE: none */
} ends;

/* An access is nearly always the one that followed the same access a period ago: that place is tried before the map. */
typedef struct overlay {
    np_period *period;
    np_map index; /* hash of a place -> index into places */
    np_array(place) places;
    ends *at;            /* [time]: its places, in order of appearance */
    uint32_t expected;   /* the place that the next access should have, NONE: unknown */
    uint64_t n_accesses; /* in the run */
} overlay;

static uint32_t time_of(const np_period *period, uint32_t event)
{
    /* The run may begin a little before the origin. */
    return event >= period->origin ? (event - period->origin) % period->length
                                   : period->length - 1 - (period->origin - 1 - event) % period->length;
}

static uint32_t span_of(const np_period *period, uint32_t life)
{
    return period->lives.items[life].end - period->lives.items[life].begin;
}

/* Events since the malloc of an instance of a life. One that was there before the first event is known by its free. */
static uint32_t age_of(const np_period *period, const neap_trace_block *block, uint32_t life, uint32_t event)
{
    if (block->malloc_event != NEAP_NEVER) {
        return event - block->malloc_event;
    }
    return span_of(period, life) - (block->free_event - event);
}

static place place_of(const np_period *period, uint32_t event, uint32_t time, neap_access access, uint32_t life)
{
    const neap_trace_block *block = &period->trace->blocks.items[access.block];
    place p = {.life = life, .offset = time, .time = time, .next = NONE, .last = event, .kind = access.kind};
    if (life == NP_LIFE_LEAKED) {
        p.offset = event - block->malloc_event;
    } else if (life != NP_LIFE_OTHER && !period->lives.items[life].persistent) {
        p.offset = age_of(period, block, life, event);
        if (p.offset >= span_of(period, life)) { /* it lives longer than could be seen */
            p.offset = time;
            p.life = NP_LIFE_OTHER;
        }
    }
    p.block = p.life == NP_LIFE_OTHER ? access.block : 0;
    return p;
}

static bool is_same(const place *a, const place *b)
{
    return a->life == b->life && a->block == b->block && a->offset == b->offset && a->kind == b->kind;
}

/* The index of a place in the map, put there if it is new. */
static neap_status look_up(overlay *o, const place *p, uint32_t *index)
{
    uint64_t what = np_hash_combine((uint64_t)p->life << 32 | p->block, (uint64_t)p->offset << 32 | p->time);
    ends *at = &o->at[p->time];
    bool found;
    neap_status status = np_array_reserve(o->period->memory, &o->places, o->places.n + 1);
    if (status == NEAP_OK) {
        status = np_map_get_or_put(&o->index, what + (uint64_t)p->kind, (uint32_t)o->places.n, index, &found);
    }
    if (status == NEAP_OK && !found) {
        o->places.items[o->places.n++] = *p;
        *(at->first == NONE ? &at->first : &o->places.items[at->last].next) = *index;
        at->last = *index;
    }
    return status;
}

static neap_status add(overlay *o, const place *p)
{
    uint32_t index = o->expected;
    place *found;
    if (index == NONE || !is_same(p, &o->places.items[index])) {
        neap_status status = look_up(o, p, &index);
        if (status != NEAP_OK) {
            return status;
        }
    }
    found = &o->places.items[index];
    o->expected = found->next;
    if (found->count == 0 || found->last != p->last) {
        found->count++;
        found->last = p->last;
        o->n_accesses++;
    }
    return NEAP_OK;
}

static neap_status add_run(overlay *o, const uint32_t *life_of_block)
{
    const np_period *period = o->period;
    const neap_trace *trace = period->trace;
    uint32_t time = time_of(period, period->begin);
    for (uint32_t i = 0; i < period->run_length; i++) {
        const neap_event *event = &trace->events.items[period->begin + i];
        o->expected = o->at[time].first;
        for (uint32_t k = 0; event->kind == NEAP_EVENT_EXEC && k < event->n_accesses; k++) {
            neap_access access = trace->accesses.items[event->first_access + k];
            place p = place_of(period, period->begin + i, time, access, life_of_block[access.block]);
            neap_status status = add(o, &p);
            if (status != NEAP_OK) {
                return status;
            }
        }
        time = time + 1 < period->length ? time + 1 : 0;
    }
    return NEAP_OK;
}

/* How many periods of the run have an event at this time. */
static uint32_t n_periods_at(const np_period *period, uint32_t time)
{
    uint32_t first = (period->origin - period->begin + time) % period->length; /* from the run's begin */
    return (period->run_length - first - 1) / period->length + 1;
}

static bool is_certain(const np_period *period, const place *p)
{
    uint32_t n = n_periods_at(period, p->time);
    return p->life != NP_LIFE_OTHER && p->count >= n - n / 4;
}

static void use(np_life *life, const place *p)
{
    uint32_t time = life->begin + p->offset;
    life->first_use = life->first_use == NEAP_NEVER || time < life->first_use ? time : life->first_use;
    life->last_use = life->last_use == NEAP_NEVER || time > life->last_use ? time : life->last_use;
}

/* Puts the certain ones in order of time: a counting sort that keeps the order of appearance. */
static neap_status collect(overlay *o)
{
    np_period *period = o->period;
    uint64_t n_certain = 0;
    uint32_t n_kept = 0, sum = 0;
    uint32_t *at = np_memory_alloc_zero(period->memory, (size_t)period->length + 1, sizeof *at);
    if (!at) {
        return NEAP_NO_MEMORY;
    }
    period->access_at.items = at;
    period->access_at.n = period->access_at.capacity = (size_t)period->length + 1;
    for (size_t i = 0; i < o->places.n; i++) {
        place *p = &o->places.items[i];
        if (is_certain(period, p)) {
            n_certain += p->count;
            if (p->life != NP_LIFE_LEAKED) {
                at[p->time]++;
                n_kept++;
                continue;
            }
        }
        p->life = NP_LIFE_OTHER;
    }
    period->n_doubtful = o->n_accesses - n_certain;
    if (np_array_reserve(period->memory, &period->accesses, n_kept) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    period->accesses.n = n_kept;
    for (uint32_t t = 0; t <= period->length; t++) {
        uint32_t count = at[t];
        at[t] = sum;
        sum += count;
    }
    for (size_t i = 0; i < o->places.n; i++) {
        const place *p = &o->places.items[i];
        if (p->life != NP_LIFE_OTHER) {
            period->accesses.items[at[p->time]++] = (neap_access){p->life, p->kind};
            use(&period->lives.items[p->life], p);
        }
    }
    for (uint32_t t = period->length; t > 0; t--) { /* each has moved on to its end */
        at[t] = at[t - 1];
    }
    at[0] = 0;
    return NEAP_OK;
}

neap_status np_overlay_make(np_period *period, const uint32_t *life_of_block)
{
    overlay o = {.period = period};
    neap_status status;
    if (period->length == 0) {
        return NEAP_BAD_ARGUMENT;
    }
    o.at = np_memory_alloc(period->memory, period->length, sizeof *o.at);
    if (!o.at) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t t = 0; t < period->length; t++) {
        o.at[t] = (ends){NONE, NONE};
    }
    np_map_init(&o.index, period->memory);
    status = add_run(&o, life_of_block);
    if (status == NEAP_OK) {
        status = collect(&o);
    }
    np_map_free(&o.index);
    np_array_free(period->memory, &o.places);
    np_memory_free(period->memory, o.at, period->length, sizeof *o.at);
    return status;
}
