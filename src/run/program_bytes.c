/* program_bytes.c: which stays follow each other in the arena's bytes.
 *
 * Two laps round the circle with a map from ranges of bytes to the stay that was there last. The first lap fills the map,
 * the second finds for every stay those before it. A stay that nothing used has no work to wait for: the map remembers
 * the last used one beside it. The map is an array of ranges in order, which a stay replaces by one. */
#include <stdlib.h>
#include <string.h>

#include "run/program_make.h"

#define NONE UINT32_MAX

typedef struct range {
    uint64_t begin; /* to the next one's begin */
    uint32_t last;  /* stay, NONE: none yet */
    uint32_t used;  /* the last one with uses */
} range;

typedef struct byte_map {
    const neap_memory *memory;
    np_array(range) ranges; /* the last one begins at the arena's end */
} byte_map;

static size_t find_range(const byte_map *map, uint64_t at)
{
    size_t low = 0;
    size_t high = map->ranges.n;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (map->ranges.items[middle].begin <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The index of the range that begins at `at`, made if there is none. */
static neap_status split(byte_map *map, uint64_t at, size_t *index)
{
    size_t i = find_range(map, at);
    if (map->ranges.items[i].begin < at) {
        if (np_array_reserve(map->memory, &map->ranges, map->ranges.n + 1) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
        memmove(&map->ranges.items[i + 1], &map->ranges.items[i], (map->ranges.n - i) * sizeof(range));
        map->ranges.n++;
        map->ranges.items[++i].begin = at;
    }
    *index = i;
    return NEAP_OK;
}

static void take(byte_map *map, size_t first, size_t past, uint32_t stay, bool is_used)
{
    range *ranges = map->ranges.items;
    if (is_used) {
        ranges[first].used = stay;
        ranges[first].last = stay;
        memmove(&ranges[first + 1], &ranges[past], (map->ranges.n - past) * sizeof(range));
        map->ranges.n -= past - first - 1;
        return;
    }
    for (size_t i = first; i < past; i++) {
        ranges[i].last = stay;
    }
}

/* ---- laps ---- */

typedef struct walk {
    np_making *making;
    byte_map map;
    uint64_t *ends;  /* [stay]: when it last ended, laps counted on */
    uint32_t *order; /* stays by begin */
} walk;

typedef struct start {
    uint32_t begin;
    uint32_t stay;
} start;

static int compare_starts(const void *left, const void *right)
{
    const start *a = left;
    const start *b = right;
    if (a->begin != b->begin) {
        return a->begin < b->begin ? -1 : 1;
    }
    return a->stay < b->stay ? -1 : a->stay > b->stay;
}

static neap_status sort_stays(walk *w)
{
    const np_making *m = w->making;
    size_t n = m->stays.n;
    start *starts = np_memory_alloc(m->memory, n, sizeof *starts);
    if (!starts) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < n; i++) {
        starts[i] = (start){m->stays.items[i].begin, i};
    }
    qsort(starts, n, sizeof *starts, compare_starts);
    for (size_t i = 0; i < n; i++) {
        w->order[i] = starts[i].stay;
    }
    np_memory_free(m->memory, starts, n, sizeof *starts);
    return NEAP_OK;
}

/* `first`: of this stay's meetings. One range after the other often has the same stay before. */
static neap_status meet(walk *w, uint32_t stay, uint32_t before, uint64_t now, bool used, size_t first)
{
    np_making *m = w->making;
    for (size_t i = m->meetings.n; i > first && i + 2 > m->meetings.n; i--) {
        if (m->meetings.items[i - 1].before == before && m->meetings.items[i - 1].used == used) {
            return NEAP_OK;
        }
    }
    return np_array_push(m->memory, &m->meetings,
                         ((np_meeting){stay, before, (uint32_t)(now - w->ends[before]), used}));
}

/* A stay begins: whoever was in its bytes has left. */
static neap_status enter(walk *w, uint32_t index, uint64_t now, bool record)
{
    const np_stay *stay = &w->making->stays.items[index];
    size_t first_meeting = w->making->meetings.n;
    size_t first = 0;
    size_t past = 0;
    neap_status status = split(&w->map, stay->offset, &first);
    if (status == NEAP_OK) {
        status = split(&w->map, stay->end, &past);
    }
    for (size_t i = first; status == NEAP_OK && i < past; i++) {
        const range *r = &w->map.ranges.items[i];
        if (r->last != NONE && w->ends[r->last] > now) {
            return NEAP_BAD_ARGUMENT;
        }
        if (record && r->last != NONE) {
            status = meet(w, index, r->last, now, false, first_meeting);
        }
        if (record && r->used != NONE && status == NEAP_OK) {
            status = meet(w, index, r->used, now, true, first_meeting);
        }
    }
    if (status == NEAP_OK) {
        take(&w->map, first, past, index, np_stay_has_work(stay));
        w->ends[index] = now + stay->span;
    }
    return status;
}

static neap_status walk_laps(walk *w)
{
    const np_making *m = w->making;
    uint64_t footprint = m->layout->footprint;
    neap_status status = sort_stays(w);
    w->map = (byte_map){.memory = m->memory};
    if (status == NEAP_OK) {
        status = np_array_reserve(m->memory, &w->map.ranges, 2);
    }
    if (status == NEAP_OK) {
        w->map.ranges.items[w->map.ranges.n++] = (range){0, NONE, NONE};
        w->map.ranges.items[w->map.ranges.n++] = (range){footprint, NONE, NONE};
    }
    for (uint32_t lap = 0; lap < 2; lap++) {
        for (size_t i = 0; i < m->stays.n && status == NEAP_OK; i++) {
            const np_stay *stay = &m->stays.items[w->order[i]];
            status = stay->end <= footprint ? enter(w, w->order[i], (uint64_t)lap * m->length + stay->begin, lap == 1)
                                            : NEAP_BAD_ARGUMENT;
        }
    }
    np_array_free(m->memory, &w->map.ranges);
    return status;
}

neap_status np_program_find_meetings(np_making *making)
{
    size_t n = making->stays.n;
    walk w = {.making = making};
    neap_status status;
    w.ends = np_memory_alloc_zero(making->memory, n, sizeof *w.ends);
    w.order = np_memory_alloc(making->memory, n, sizeof *w.order);
    status = w.ends && w.order ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = walk_laps(&w);
    }
    np_memory_free(making->memory, w.ends, n, sizeof *w.ends);
    np_memory_free(making->memory, w.order, n, sizeof *w.order);
    return status;
}
