/* program_prune.c: which waits are needed.
 *
 * Of several works of one stream, a work need only wait for the one given last. What is left is pruned with vector clocks:
 * a few laps with all waits fill the clocks; then, for a lap, a wait for what its stream already knows to be done is left
 * out. A wait so left out may have been implied by one of the lap before that is left out too: further laps put back what
 * is found missing, until none is. From then on no lap misses any, since a path from a work to one that waits for it is
 * never longer than two laps.
 *
 * A stay that follows itself can ask for a work as it was given a lap before its last time. Only the last time can be
 * waited for, so such a wait knows more than it needs, and would imply itself: these are left out first, and come in as
 * they are found missing, before the others are looked at.
 *
 * An optional work may not be given at all: whoever waits for it learns nothing, not even that those before it on its
 * stream are done. Still it is done where a later one of its stream is known to be. */
#include "base/memory.h"
#include "run/program_order.h"

enum { FILL_LAPS = 2, DROP_LAP = 4 };

/* What a stream knows to be done: works of each stream, counted as they are given. */
typedef struct clocks {
    uint32_t done[NP_N_STREAMS];
} clocks;

typedef struct pruning {
    np_works *works;
    clocks *known; /* [work]: what is done when it is, as last given */
    clocks now[NP_N_STREAMS];
    uint32_t n_given[NP_N_STREAMS]; /* works in a lap */
    uint32_t *optional_at;          /* [work]: its place in `waited`, where it is optional */
    uint32_t *waited;               /* by optional work, then stream */
} pruning;

/* How many works ago the one waited for was given, from 1 on. */
static uint32_t age(const np_works *works, const np_wait *w)
{
    uint32_t work = works->place[w->work];
    uint32_t on = works->place[w->on];
    return (on < work ? work - on : work + works->n - on) + (w->earlier ? works->n : 0);
}

/* Puts a wait in its place among the n before it, latest first. */
static void insert_wait(const np_works *works, np_wait *sorted, size_t n, np_wait added)
{
    size_t k = n;
    for (; k > 0 && age(works, &added) < age(works, &sorted[k - 1]); k--) {
        sorted[k] = sorted[k - 1];
    }
    sorted[k] = added;
}

static bool has_wait(const np_wait *waits, size_t n, uint32_t on)
{
    for (size_t i = 0; i < n; i++) {
        if (waits[i].on == on) {
            return true;
        }
    }
    return false;
}

/* Copies a work's waits to `sorted`, of each stream the latest and the optional ones, latest first: it tends to imply
 * the others. */
static size_t sort_waits(const np_works *works, const np_wait *waits, size_t n, np_wait *sorted)
{
    np_wait latest[NP_N_STREAMS];
    bool has[NP_N_STREAMS] = {false};
    size_t n_sorted = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t stream = works->streams[waits[i].on];
        if (works->optional[waits[i].on]) {
            if (!has_wait(sorted, n_sorted, waits[i].on)) {
                insert_wait(works, sorted, n_sorted++, waits[i]);
            }
        } else if (!has[stream] || age(works, &waits[i]) < age(works, &latest[stream])) {
            latest[stream] = waits[i];
            has[stream] = true;
        }
    }
    for (uint32_t stream = 0; stream < NP_N_STREAMS; stream++) {
        if (has[stream]) {
            insert_wait(works, sorted, n_sorted++, latest[stream]);
        }
    }
    return n_sorted;
}

/* Groups the waits by work: a counting sort, then each group by itself. */
static neap_status group_waits(np_works *works)
{
    const neap_memory *memory = works->memory;
    size_t n = works->waits.n;
    size_t n_left = 0;
    size_t at = 0;
    np_wait *grouped = n <= UINT32_MAX ? np_memory_alloc(memory, n, sizeof *grouped) : NULL;
    if (!grouped) {
        return n <= UINT32_MAX ? NEAP_NO_MEMORY : NEAP_TOO_LARGE;
    }
    for (uint32_t i = 0; i < works->n + 2; i++) {
        works->wait_at[i] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        works->wait_at[works->waits.items[i].work + 2]++;
    }
    for (uint32_t i = 2; i < works->n + 2; i++) {
        works->wait_at[i] += works->wait_at[i - 1];
    }
    for (size_t i = 0; i < n; i++) {
        grouped[works->wait_at[works->waits.items[i].work + 1]++] = works->waits.items[i];
    }
    for (uint32_t work = 0; work < works->n; work++) {
        size_t past = works->wait_at[work + 1];
        size_t first = at;
        at = past;
        works->wait_at[work] = (uint32_t)n_left;
        n_left += sort_waits(works, &grouped[first], past - first, &works->waits.items[n_left]);
    }
    works->wait_at[works->n] = (uint32_t)n_left;
    works->waits.n = n_left;
    np_memory_free(memory, grouped, n, sizeof *grouped);
    return NEAP_OK;
}

static void learn(clocks *clock, const clocks *other)
{
    for (uint32_t i = 0; i < NP_N_STREAMS; i++) {
        clock->done[i] = other->done[i] > clock->done[i] ? other->done[i] : clock->done[i];
    }
}

/* The last time that a stream itself waited for an optional work. */
static uint32_t *last_wait(pruning *p, const np_wait *w)
{
    return &p->waited[p->optional_at[w->on] * NP_N_STREAMS + p->works->streams[w->work]];
}

static bool is_implied(pruning *p, const np_wait *w)
{
    const clocks *now = &p->now[p->works->streams[w->work]];
    uint8_t stream = p->works->streams[w->on];
    uint32_t wanted = p->known[w->on].done[stream];
    return wanted <= now->done[stream] + (w->earlier ? p->n_given[stream] : 0) ||
           (p->works->optional[w->on] && *last_wait(p, w) == wanted);
}

static void perform(pruning *p, const np_wait *w)
{
    if (p->works->optional[w->on]) {
        *last_wait(p, w) = p->known[w->on].done[p->works->streams[w->on]];
    } else {
        learn(&p->now[p->works->streams[w->work]], &p->known[w->on]);
    }
}

/* Returns whether a wait that had been left out was needed. */
static bool prune_wait(pruning *p, np_wait *w, uint32_t lap)
{
    bool implied = is_implied(p, w);
    bool is_missing = w->dropped && !implied && lap >= FILL_LAPS;
    if (is_missing) {
        w->dropped = false;
    } else if (lap == DROP_LAP && implied && !w->earlier) {
        w->dropped = true;
    }
    if (!w->dropped) {
        perform(p, w);
    }
    return is_missing;
}

static bool prune_lap(pruning *p, uint32_t lap)
{
    bool is_changed = false;
    for (uint32_t i = 0; i < p->works->n; i++) {
        uint32_t work = p->works->order[i];
        clocks *now = &p->now[p->works->streams[work]];
        for (uint32_t k = p->works->wait_at[work]; k < p->works->wait_at[work + 1]; k++) {
            is_changed |= prune_wait(p, &p->works->waits.items[k], lap);
        }
        now->done[p->works->streams[work]]++;
        p->known[work] = *now;
    }
    return is_changed;
}

static void prune(pruning *p)
{
    bool is_changed = true;
    for (uint32_t lap = 0; is_changed || lap <= DROP_LAP + 2; lap++) { /* each but the last few puts back a wait */
        is_changed = prune_lap(p, lap);
    }
}

neap_status np_works_prune(np_works *works)
{
    pruning p = {.works = works};
    size_t n_optional = 0;
    neap_status status = group_waits(works);
    p.known = np_memory_alloc_zero(works->memory, works->n, sizeof *p.known);
    p.optional_at = np_memory_alloc_zero(works->memory, works->n, sizeof *p.optional_at);
    for (uint32_t i = 0; i < works->n && p.optional_at; i++) {
        p.n_given[works->streams[i]]++;
        p.optional_at[i] = works->optional[i] ? (uint32_t)n_optional++ : 0;
    }
    p.waited = np_memory_alloc_zero(works->memory, n_optional * NP_N_STREAMS, sizeof *p.waited);
    if (status == NEAP_OK && p.known && p.optional_at && p.waited) {
        prune(&p);
    } else {
        status = status == NEAP_OK ? NEAP_NO_MEMORY : status;
    }
    np_memory_free(works->memory, p.known, works->n, sizeof *p.known);
    np_memory_free(works->memory, p.optional_at, works->n, sizeof *p.optional_at);
    np_memory_free(works->memory, p.waited, n_optional * NP_N_STREAMS, sizeof *p.waited);
    return status;
}
