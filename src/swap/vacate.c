#include "swap/vacate.h"

#include <math.h>
#include <stdlib.h>

#include "pool/problem.h"

/* While a piece is away in one gap: when others are in its bytes, on the gap's line of times. */
typedef struct occupancy {
    uint32_t left; /* into the layout's */
    np_piece hole; /* in which it is away; empty: it stays */
    int64_t first;
    int64_t last; /* none: at or before `first` */
} occupancy;

/* One of the layout's places, with the times in which its bytes are there, and those in which others could be. */
typedef struct standing {
    np_piece span; /* from its begin to its end; all round: as long as that */
    uint32_t first_stay;
    uint32_t n_stays; /* one more than gaps at most */
    uint32_t first_occupancy;
    uint32_t n_occupancies;
} standing;

typedef struct vacating {
    const np_timeline *timeline;
    const np_vacate_options *options;
    const np_swap *swaps;
    np_layout *layout;
    uint32_t round;      /* times after which all repeats */
    standing *standings; /* as the layout's places */
    uint32_t *by_offset; /* places, lowest first */
    uint32_t *by_life;   /* what left, by life */
    uint32_t *by_length; /* what left, shortest gap first */
    uint32_t *place_at;  /* [left]: the first place of its life */
    np_array(np_piece) stays;
    np_array(occupancy) occupancies;
    np_array(np_piece) holes; /* scratch: of one place */
} vacating;

/* For the comparisons, which qsort gives nothing else. */
typedef struct keyed {
    uint64_t key;
    uint32_t index;
} keyed;

static int compare_keyed(const void *left, const void *right)
{
    const keyed *a = left;
    const keyed *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

static int compare_holes(const void *left, const void *right)
{
    const np_piece *a = left;
    const np_piece *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static const np_gap *gap_of(const vacating *v, uint32_t left)
{
    return &v->timeline->gaps.items[v->swaps[v->layout->left.items[left].swap].gap];
}

static const np_swap_block *block_of(const vacating *v, uint32_t left)
{
    return &v->timeline->blocks.items[gap_of(v, left)->block];
}

static uint64_t lead_of(const vacating *v, const np_swap_block *block)
{
    return v->options->homes && block->persistent ? v->options->homes[block->life].lead : 0;
}

/* ---- times ---- */

/* Of an exec that is counted on. */
static uint32_t time_of(const vacating *v, uint32_t exec)
{
    uint32_t laps = exec / v->timeline->n_execs;
    return v->options->held ? v->timeline->times.items[exec - laps * v->timeline->n_execs] + laps * v->round : exec;
}

static np_piece hole_between(const vacating *v, uint32_t from, uint32_t to)
{
    return (np_piece){v->options->held ? time_of(v, from - 1) + 1 : from, time_of(v, to)};
}

static np_piece hole_of(const vacating *v, uint32_t left)
{
    const np_left *l = &v->layout->left.items[left];
    return hole_between(v, l->absent_from, l->back_from);
}

/* From malloc to free, or from first to last use. */
static np_piece span_of(const vacating *v, uint32_t life, const np_swap_block *block)
{
    const np_piece all = {0, v->round};
    np_piece span;
    if (v->options->held) {
        const np_life *l = &v->timeline->period->lives.items[life];
        span = (np_piece){l->begin, l->end};
        return l->persistent || span.end - span.begin >= v->round ? all : span;
    }
    if (!block || block->persistent || block->pinned) {
        return all;
    }
    span.begin = v->timeline->uses.items[block->first_use].exec;
    span.end = v->timeline->uses.items[block->first_use + block->n_uses - 1].exec + 1;
    return span;
}

/* ---- who is where when ---- */

static void add_stay(const vacating *v, standing *s, uint32_t begin, uint32_t end)
{
    uint32_t laps = begin / v->round;
    if (begin < end) {
        v->stays.items[s->first_stay + s->n_stays++] = (np_piece){begin - laps * v->round, end - laps * v->round};
    }
}

/* The holes of a place that there are, each on the line of its span; *span begins at one where it is all round. */
static size_t list_holes(const vacating *v, const standing *s, np_piece *span)
{
    np_piece *holes = v->holes.items;
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_occupancies; i++) {
        np_piece hole = v->occupancies.items[s->first_occupancy + i].hole;
        if (hole.begin < hole.end) {
            holes[n++] = hole;
        }
    }
    if (n > 0 && span->end - span->begin == v->round) {
        *span = (np_piece){holes[0].begin % v->round, holes[0].begin % v->round + v->round};
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t length = holes[i].end - holes[i].begin;
        holes[i].begin %= v->round;
        holes[i].begin += holes[i].begin < span->begin ? v->round : 0;
        holes[i].end = holes[i].begin + length;
    }
    if (n > 0) {
        qsort(holes, n, sizeof *holes, compare_holes);
    }
    return n;
}

/* The span but the holes. */
static void set_stays(const vacating *v, standing *s)
{
    np_piece span = s->span;
    size_t n = list_holes(v, s, &span);
    uint32_t now = span.begin;
    s->n_stays = 0;
    for (size_t i = 0; i < n; i++) {
        add_stay(v, s, now, v->holes.items[i].begin);
        now = v->holes.items[i].end;
    }
    add_stay(v, s, now, span.end);
}

/* All that left of the life: by_life[first .. past). */
static neap_status stand(vacating *v, uint32_t index, uint32_t first, uint32_t past, np_piece span)
{
    const neap_memory *memory = v->timeline->memory;
    const np_placed *placed = &v->layout->placed.items[index];
    standing *s = &v->standings[index];
    neap_status status = NEAP_OK;
    *s = (standing){.span = span, .first_occupancy = (uint32_t)v->occupancies.n, .first_stay = (uint32_t)v->stays.n};
    for (uint32_t i = first; i < past && status == NEAP_OK; i++) {
        const np_left *left = &v->layout->left.items[v->by_life[i]];
        uint64_t bytes = block_of(v, v->by_life[i])->bytes;
        uint64_t end = placed->at + placed->bytes < bytes ? placed->at + placed->bytes : bytes;
        occupancy none = {.left = v->by_life[i], .hole = hole_of(v, v->by_life[i])};
        if (left->begin <= placed->at && end <= left->end) {
            status = np_array_push(memory, &v->occupancies, none);
        }
    }
    s->n_occupancies = (uint32_t)v->occupancies.n - s->first_occupancy;
    if (status == NEAP_OK) {
        status = np_array_reserve(memory, &v->stays, v->stays.n + s->n_occupancies + 1);
    }
    if (status == NEAP_OK) {
        status = np_array_reserve(memory, &v->holes, (size_t)s->n_occupancies + 1);
    }
    if (status == NEAP_OK) {
        v->stays.n += s->n_occupancies + 1;
        set_stays(v, s);
    }
    return status;
}

/* Places and blocks are by life; what left is sorted so. */
static neap_status stand_all(vacating *v)
{
    const np_timeline *timeline = v->timeline;
    uint32_t n_left = (uint32_t)v->layout->left.n;
    uint32_t first = 0;
    uint32_t past = 0;
    size_t block = 0;
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < v->layout->placed.n && status == NEAP_OK; i++) {
        uint32_t life = v->layout->placed.items[i].life;
        if (i == 0 || v->layout->placed.items[i - 1].life != life) {
            for (first = past; first < n_left && block_of(v, v->by_life[first])->life < life; first++) {}
            for (past = first; past < n_left && block_of(v, v->by_life[past])->life == life; past++) {
                v->place_at[v->by_life[past]] = i;
            }
            for (; block < timeline->blocks.n && timeline->blocks.items[block].life < life; block++) {}
        }
        status = stand(v, i, first, past,
                       span_of(v, life,
                               block < timeline->blocks.n && timeline->blocks.items[block].life == life
                                   ? &timeline->blocks.items[block]
                                   : NULL));
    }
    return status;
}

/* One more in the bytes, at [begin, end) of the round. */
static void note_occupancy(const vacating *v, occupancy *to, np_piece stay)
{
    for (int64_t laps = -1; laps <= 2; laps++) {
        int64_t begin = stay.begin + laps * v->round;
        int64_t end = stay.end + laps * v->round;
        if (begin < to->hole.end && to->hole.begin < end) {
            bool any = to->first < to->last;
            to->first = any && to->first < begin ? to->first : begin;
            to->last = any && to->last > end ? to->last : end;
        }
    }
}

/* Of the place, while it is away in some gaps, or in all. */
static void find_occupancies(const vacating *v, uint32_t index, uint32_t first_occupancy, uint32_t n_occupancies)
{
    const np_placed *placed = v->layout->placed.items;
    uint64_t end = placed[index].offset + placed[index].bytes;
    for (uint32_t i = 0; i < n_occupancies; i++) {
        v->occupancies.items[first_occupancy + i].first = v->occupancies.items[first_occupancy + i].last = 0;
    }
    for (size_t k = 0; k < v->layout->placed.n && placed[v->by_offset[k]].offset < end; k++) {
        uint32_t other = v->by_offset[k];
        const standing *their = &v->standings[other];
        if (other == index || placed[other].offset + placed[other].bytes <= placed[index].offset) {
            continue;
        }
        for (uint32_t s = 0; s < their->n_stays * n_occupancies; s++) {
            note_occupancy(v, &v->occupancies.items[first_occupancy + s % n_occupancies],
                           v->stays.items[their->first_stay + s / n_occupancies]);
        }
    }
}

static void find_all_occupancies(const vacating *v)
{
    for (uint32_t i = 0; i < v->layout->placed.n; i++) {
        if (v->standings[i].n_occupancies > 0) {
            find_occupancies(v, i, v->standings[i].first_occupancy, v->standings[i].n_occupancies);
        }
    }
}

/* ---- pieces that are alike ---- */

static bool are_alike(const vacating *v, uint32_t a, uint32_t b)
{
    const np_placed *placed = v->layout->placed.items;
    const standing *s = &v->standings[a];
    const standing *t = &v->standings[b];
    bool alike = placed[a].life == placed[b].life && placed[a].place == placed[b].place &&
                 placed[a].bytes == placed[b].bytes && placed[a].bytes % v->options->page == 0 &&
                 s->n_occupancies == t->n_occupancies;
    for (uint32_t i = 0; alike && i < s->n_occupancies; i++) {
        alike = v->occupancies.items[s->first_occupancy + i].left == v->occupancies.items[t->first_occupancy + i].left;
    }
    return alike;
}

/* How much it costs that it must leave: most in short gaps. */
static double weight_of(const vacating *v, uint32_t index)
{
    double weight = 0;
    for (uint32_t i = 0; i < v->standings[index].n_occupancies; i++) {
        const occupancy *at = &v->occupancies.items[v->standings[index].first_occupancy + i];
        const np_gap *gap = gap_of(v, at->left);
        weight += at->first < at->last ? 1 / (gap->due_ns - np_timeline_end(v->timeline, gap->from)) : 0;
    }
    return weight;
}

static void exchange(const vacating *v, uint32_t a, uint32_t b)
{
    np_placed *placed = v->layout->placed.items;
    uint64_t offset = placed[a].offset;
    placed[a].offset = placed[b].offset;
    placed[b].offset = offset;
    for (uint32_t i = 0; i < v->standings[a].n_occupancies; i++) {
        occupancy *of_a = &v->occupancies.items[v->standings[a].first_occupancy + i];
        occupancy *of_b = &v->occupancies.items[v->standings[b].first_occupancy + i];
        occupancy old = *of_a;
        *of_a = *of_b;
        *of_b = old;
    }
}

static void sort_alike(const vacating *v)
{
    uint32_t n = (uint32_t)v->layout->placed.n;
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint32_t heaviest = i;
        if (v->standings[i].n_occupancies == 0) {
            continue;
        }
        for (uint32_t k = i + 1; k < n && are_alike(v, i, k); k++) {
            heaviest = weight_of(v, k) > weight_of(v, heaviest) ? k : heaviest;
        }
        if (heaviest != i) {
            exchange(v, i, heaviest);
        }
    }
}

/* ---- what is asked for ---- */

typedef struct ask {
    uint64_t end; /* bytes of the block: up to there; 0: nothing */
    int64_t first;
    int64_t last;
} ask;

/* The occupancy of a place in the gap of what left, or NULL. */
static occupancy *occupancy_in(const vacating *v, uint32_t index, uint32_t left)
{
    const standing *s = &v->standings[index];
    occupancy *first = v->occupancies.items ? &v->occupancies.items[s->first_occupancy] : NULL;
    for (uint32_t i = 0; first && i < s->n_occupancies; i++) {
        if (first[i].left == left) {
            return &first[i];
        }
    }
    return NULL;
}

/* Does the place belong to the life of what left? Its places follow each other from place_at on. */
static bool is_of(const vacating *v, uint32_t index, uint32_t left)
{
    return index < v->layout->placed.n && v->layout->placed.items[index].life == block_of(v, left)->life;
}

static ask gather_ask(const vacating *v, uint32_t left)
{
    ask made = {0, 0, 0};
    for (uint32_t i = v->place_at[left]; is_of(v, i, left); i++) {
        const np_placed *placed = &v->layout->placed.items[i];
        occupancy *at = occupancy_in(v, i, left);
        if (!at) {
            continue;
        }
        find_occupancies(v, i, (uint32_t)(at - v->occupancies.items), 1);
        if (at->first < at->last) {
            made.first = made.end > 0 && made.first < at->first ? made.first : at->first;
            made.last = made.end > 0 && made.last > at->last ? made.last : at->last;
            made.end = placed->at + placed->bytes;
        }
    }
    return made;
}

/* The execs [*from, *to) in which it must be away. */
static void find_absence(const vacating *v, uint32_t left, const ask *asked, uint32_t *from, uint32_t *to)
{
    *from = v->layout->left.items[left].absent_from;
    *to = v->layout->left.items[left].back_from;
    while (*from + 1 < *to && (int64_t)time_of(v, *from) < asked->first) {
        ++*from;
    }
    while (*to - 1 > *from && (int64_t)time_of(v, *to - 1) >= asked->last) {
        --*to;
    }
}

/* From now on it is there whenever it need not be away: others that were away at the same time find it so. */
static void stay_longer(const vacating *v, uint32_t left, const ask *asked)
{
    uint32_t from;
    uint32_t to;
    find_absence(v, left, asked, &from, &to);
    for (uint32_t i = v->place_at[left]; is_of(v, i, left); i++) {
        occupancy *at = occupancy_in(v, i, left);
        if (at) {
            bool leaves = v->layout->placed.items[i].at < asked->end;
            at->hole = leaves ? hole_between(v, from, to) : (np_piece){0, 0};
            set_stays(v, &v->standings[i]);
        }
    }
}

/* Two that are away at the same time, each in the other's bytes, cannot both stay: the one with the shorter gap does. */
static void gather_asks(const vacating *v, ask *asks)
{
    for (size_t i = 0; i < v->layout->left.n; i++) {
        uint32_t left = v->by_length[i];
        asks[left] = gather_ask(v, left);
        stay_longer(v, left, &asks[left]);
    }
}

/* Bytes of a swap whose part begins where the part that left does, and ends at a piece's end. Swaps are counted from the
 * block's first byte in whole pages, and cut where the view's pages end, `lead` bytes sooner (place_problem.c): a piece
 * that ends within the last page of bytes is left by a swap of all that remains. */
static uint64_t bytes_up_to(const vacating *v, uint32_t left, uint64_t end)
{
    const np_swap_block *block = block_of(v, left);
    uint64_t lead = lead_of(v, block);
    uint64_t begin = v->layout->left.items[left].begin;
    uint64_t past = end < block->bytes && end + lead < block->bytes ? end + lead : block->bytes;
    return past - (begin > 0 ? begin + lead : 0);
}

/* Away from the first occupancy to the last. */
static np_swap asked_swap(const vacating *v, uint32_t left, const ask *asked)
{
    const np_left *l = &v->layout->left.items[left];
    const np_gap *gap = gap_of(v, left);
    np_swap swap = v->swaps[l->swap];
    uint32_t from;
    uint32_t to;
    find_absence(v, left, asked, &from, &to);
    swap.bytes = bytes_up_to(v, left, asked->end);
    swap.out_before = from;
    swap.out_key = gap->release_ns > -INFINITY ? gap->release_ns : np_timeline_end(v->timeline, gap->from);
    swap.in_after = to - 1;
    swap.in_key = np_timeline_end(v->timeline, to - 1);
    return swap;
}

/* A page, for half of the gap: no exec has to wait for it. */
static np_swap kept_swap(const vacating *v, uint32_t left)
{
    const np_gap *gap = gap_of(v, left);
    np_swap swap = v->swaps[v->layout->left.items[left].swap];
    uint64_t page = v->options->page;
    swap.bytes = gap->bytes < page ? gap->bytes : page;
    swap.out_before = 0;
    swap.out_key = gap->release_ns > -INFINITY ? gap->release_ns : np_timeline_end(v->timeline, gap->from);
    swap.in_after = gap->from + (gap->to - gap->from) / 2;
    swap.in_key = np_timeline_end(v->timeline, swap.in_after);
    return swap;
}

/* Marks one gap of each block of which nothing is asked for. */
static void keep_views(const vacating *v, ask *asks)
{
    uint32_t n = (uint32_t)v->layout->left.n;
    for (uint32_t first = 0, past; first < n; first = past) {
        uint32_t longest = v->by_life[first];
        bool any = false;
        for (past = first; past < n && block_of(v, v->by_life[past]) == block_of(v, v->by_life[first]); past++) {
            const np_gap *gap = gap_of(v, v->by_life[past]);
            any = any || asks[v->by_life[past]].end > 0;
            longest =
                gap->to - gap->from > gap_of(v, longest)->to - gap_of(v, longest)->from ? v->by_life[past] : longest;
        }
        if (!any) {
            asks[longest].end = UINT64_MAX;
        }
    }
}

static neap_status list_asked(const vacating *v, ask *asks, np_swap_array *asked)
{
    uint32_t n = (uint32_t)v->layout->left.n;
    neap_status status = np_array_reserve(v->timeline->memory, asked, (size_t)n + 1);
    if (status != NEAP_OK) {
        return status;
    }
    gather_asks(v, asks);
    if (v->options->keeps_views) {
        keep_views(v, asks);
    }
    asked->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (asks[i].end > 0) {
            asked->items[asked->n++] = asks[i].end == UINT64_MAX ? kept_swap(v, i) : asked_swap(v, i, &asks[i]);
        }
    }
    return NEAP_OK;
}

/* ---- from the outside ---- */

static void sort_keys(keyed *keys, uint32_t n, uint32_t *sorted)
{
    qsort(keys, n, sizeof *keys, compare_keyed);
    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = keys[i].index;
    }
}

static void sort_by_offset(const vacating *v, keyed *keys)
{
    uint32_t n = (uint32_t)v->layout->placed.n;
    for (uint32_t i = 0; i < n; i++) {
        keys[i] = (keyed){v->layout->placed.items[i].offset, i};
    }
    sort_keys(keys, n, v->by_offset);
}

static void sort_by_life(const vacating *v, keyed *keys)
{
    uint32_t n = (uint32_t)v->layout->left.n;
    for (uint32_t i = 0; i < n; i++) {
        keys[i] = (keyed){block_of(v, i)->life, i};
    }
    sort_keys(keys, n, v->by_life);
}

static void sort_by_length(const vacating *v, keyed *keys)
{
    uint32_t n = (uint32_t)v->layout->left.n;
    for (uint32_t i = 0; i < n; i++) {
        const np_gap *gap = gap_of(v, i);
        keys[i] = (keyed){(uint64_t)(gap->due_ns - np_timeline_end(v->timeline, gap->from)), i};
    }
    sort_keys(keys, n, v->by_length);
}

neap_status np_vacate(const np_timeline *timeline, const np_vacate_options *options, const np_swap *swaps,
                      np_layout *layout, np_swap_array *asked)
{
    const neap_memory *memory = timeline->memory;
    vacating v = {.timeline = timeline, .options = options, .swaps = swaps, .layout = layout};
    size_t n_placed = layout->placed.n + 1;
    size_t n_left = layout->left.n + 1;
    size_t n_keys = n_placed > n_left ? n_placed : n_left;
    keyed *keys = np_memory_alloc(memory, n_keys, sizeof *keys);
    ask *asks = np_memory_alloc_zero(memory, n_left, sizeof *asks);
    neap_status status;
    v.round = options->held ? timeline->period->length : timeline->n_execs;
    v.standings = np_memory_alloc_zero(memory, n_placed, sizeof *v.standings);
    v.by_offset = np_memory_alloc(memory, n_placed, sizeof *v.by_offset);
    v.by_life = np_memory_alloc(memory, n_left, sizeof *v.by_life);
    v.by_length = np_memory_alloc(memory, n_left, sizeof *v.by_length);
    v.place_at = np_memory_alloc_zero(memory, n_left, sizeof *v.place_at);
    status =
        keys && asks && v.standings && v.by_offset && v.by_life && v.by_length && v.place_at ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        sort_by_offset(&v, keys);
        sort_by_life(&v, keys);
        sort_by_length(&v, keys);
        status = stand_all(&v);
    }
    if (status == NEAP_OK) {
        find_all_occupancies(&v);
        sort_alike(&v);
        sort_by_offset(&v, keys);
        status = list_asked(&v, asks, asked);
    }
    np_memory_free(memory, keys, n_keys, sizeof *keys);
    np_memory_free(memory, asks, n_left, sizeof *asks);
    np_memory_free(memory, v.standings, n_placed, sizeof *v.standings);
    np_memory_free(memory, v.by_offset, n_placed, sizeof *v.by_offset);
    np_memory_free(memory, v.by_life, n_left, sizeof *v.by_life);
    np_memory_free(memory, v.by_length, n_left, sizeof *v.by_length);
    np_memory_free(memory, v.place_at, n_left, sizeof *v.place_at);
    np_array_free(memory, &v.stays);
    np_array_free(memory, &v.occupancies);
    np_array_free(memory, &v.holes);
    return status;
}
