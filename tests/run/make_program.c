#include "run/make_program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

enum { PAGE = 512, N_LAPS = 5, LAP_BASE = 10 };

/* ---------------------------------------------------------------- traces ---- */

static uint64_t number_of(uint32_t life, int lap)
{
    return 1000u * ((uint64_t)life + 1) + (uint64_t)(LAP_BASE + lap);
}

static bool lives_in(const life_shape *life, uint32_t n_slots, uint32_t slot, int age)
{
    uint32_t at = slot + (uint32_t)age * n_slots + (slot < life->begin ? n_slots : 0);
    return life->persistent || at <= life->end;
}

/* Of a life that takes turns the youngest instance is used. */
static void add_exec(neap_trace *trace, const period_shape *shape, int lap, uint32_t slot)
{
    char name[32];
    int n = snprintf(name, sizeof name, "k%u", (unsigned)slot);
    uint64_t start = ((uint64_t)lap * shape->n_slots + slot) * 1000;
    ASSERT_OK(np_trace_add_exec(trace, name, (size_t)n, start, 1000));
    trace->events.items[trace->events.n - 1].stream = shape->streams ? shape->streams[slot] : 0;
    for (uint32_t i = 0; i < shape->n_uses; i++) {
        const use_shape *use = &shape->uses[i];
        const life_shape *life = &shape->lives[use->life];
        int of_lap = life->persistent ? 0 : lap - (slot < life->begin ? 1 : 0);
        if (use->slot == slot) {
            ASSERT_TRUE(lives_in(life, shape->n_slots, slot, 0));
            ASSERT_OK(np_trace_add_access(trace, number_of(use->life, of_lap), use->kind));
        }
    }
}

static void add_slot(neap_trace *trace, const period_shape *shape, int lap, uint32_t slot)
{
    for (uint32_t i = 0; i < shape->n_lives; i++) {
        if (!shape->lives[i].persistent && shape->lives[i].begin == slot) {
            ASSERT_OK(np_trace_add_malloc(trace, number_of(i, lap), shape->lives[i].bytes));
        }
    }
    if (shape->leak_bytes && slot == 0) {
        ASSERT_OK(np_trace_add_malloc(trace, number_of(shape->n_lives, lap), shape->leak_bytes));
    }
    add_exec(trace, shape, lap, slot);
    for (uint32_t i = 0; i < shape->n_lives; i++) {
        if (!shape->lives[i].persistent && shape->lives[i].end % shape->n_slots == slot) {
            int age = (int)(shape->lives[i].end / shape->n_slots);
            ASSERT_OK(np_trace_add_free(trace, number_of(i, lap - age)));
        }
    }
}

static neap_trace *make_shape_trace(const period_shape *shape)
{
    neap_trace *trace;
    ASSERT_OK(np_trace_create(NULL, &trace));
    for (uint32_t i = 0; i < shape->n_lives; i++) {
        const life_shape *life = &shape->lives[i];
        int n_before = life->persistent ? 1 : (int)(life->end / shape->n_slots);
        for (int lap = -n_before; lap < 0; lap++) {
            ASSERT_OK(np_trace_add_live(trace, number_of(i, life->persistent ? 0 : lap), life->bytes));
        }
    }
    for (int lap = 0; lap < N_LAPS; lap++) {
        for (uint32_t slot = 0; slot < shape->n_slots; slot++) {
            add_slot(trace, shape, lap, slot);
        }
    }
    return trace;
}

/* False: the program leaks too much, or takes too many turns, for a period to be seen. */
static bool try_scene(const period_shape *shape, scene *made)
{
    np_timeline_options options = {.alignment = PAGE, .slower = 1, .held = shape->held};
    *made = (scene){.trace = make_shape_trace(shape)};
    ASSERT_OK(np_period_find(made->trace, NULL, &made->period));
    if (made->period.length == 0) {
        free_scene(made);
        return false;
    }
    ASSERT_OK(np_timeline_make(&made->period, &options, NULL, &made->timeline));
    return true;
}

void make_scene(const period_shape *shape, scene *made)
{
    ASSERT_TRUE(try_scene(shape, made));
}

void free_scene(scene *made)
{
    np_layout_free(&made->layout);
    np_array_free(NULL, &made->swaps);
    np_timeline_free(&made->timeline);
    np_period_free(&made->period);
    neap_trace_free(made->trace);
}

uint32_t scene_life(const scene *made, uint32_t shape_life)
{
    for (uint32_t i = 0; i < made->period.lives.n; i++) {
        if (made->trace->blocks.items[made->period.lives.items[i].block].id / 1000 == shape_life + 1) {
            return i;
        }
    }
    test_fail(__FILE__, __LINE__, "the period has no life %u", shape_life);
}

/* ---------------------------------------------------------------- swaps ---- */

void add_swap(scene *made, uint32_t shape_life, uint32_t from, uint64_t bytes)
{
    uint32_t life = scene_life(made, shape_life);
    for (uint32_t i = 0; i < made->timeline.gaps.n; i++) {
        const np_gap *gap = &made->timeline.gaps.items[i];
        if (made->timeline.blocks.items[gap->block].life == life && gap->from == from) {
            np_swap swap = {.gap = i, .bytes = bytes ? bytes : gap->bytes};
            ASSERT_OK(np_array_push(NULL, &made->swaps, swap));
            return;
        }
    }
    test_fail(__FILE__, __LINE__, "life %u has no gap that begins with exec %u", shape_life, from);
}

static void choose_keys(scene *made, np_rng *rng)
{
    const np_timeline *timeline = &made->timeline;
    for (size_t i = 0; i < made->swaps.n; i++) {
        np_swap *swap = &made->swaps.items[i];
        const np_gap *gap = &timeline->gaps.items[swap->gap];
        double end = np_timeline_end(timeline, gap->from);
        double release = gap->release_ns > -INFINITY ? gap->release_ns : end;
        swap->out_key = release + np_rng_unit(rng) * (np_rng_below(rng, 2) ? end - release : 2000);
        swap->in_after = gap->from + (uint32_t)np_rng_below(rng, gap->to - gap->from);
        swap->in_key =
            np_rng_below(rng, 2) ? gap->due_ns : np_timeline_end(timeline, swap->in_after) + np_rng_unit(rng) * 3000;
    }
}

/* ---------------------------------------------------------------- places ---- */

/* Bytes of a life that need a place, in some of the times [0, length). */
typedef struct segment {
    np_placed placed;
    bool *times;
} segment;

typedef np_array(segment) segment_array;

static void push_left(scene *made, const np_simulator *simulator)
{
    for (uint32_t i = 0; i < made->swaps.n; i++) {
        const np_swap *swap = &made->swaps.items[i];
        const np_gap *gap = &made->timeline.gaps.items[swap->gap];
        np_absence absence = np_simulator_absence(simulator, i);
        np_left left = {.swap = i, .absent_from = absence.absent_from, .end = swap->bytes};
        left.back_from = absence.back_from < gap->to ? absence.back_from : gap->to;
        for (uint32_t k = 0; k < i; k++) { /* parts of one gap are stacked */
            if (made->swaps.items[k].gap == swap->gap) {
                left.begin += made->swaps.items[k].bytes;
                left.end += made->swaps.items[k].bytes;
            }
        }
        if (left.absent_from < left.back_from) {
            ASSERT_OK(np_array_push(NULL, &made->layout.left, left));
        }
    }
}

static uint32_t time_of(const scene *made, uint32_t exec)
{
    return made->timeline.times.items[exec % made->timeline.n_execs];
}

/* Takes what leaves out of the times of a segment. */
static void cut_holes(const scene *made, segment *s)
{
    for (size_t i = 0; i < made->layout.left.n; i++) {
        const np_left *left = &made->layout.left.items[i];
        const np_gap *gap = &made->timeline.gaps.items[made->swaps.items[left->swap].gap];
        if (made->timeline.blocks.items[gap->block].life == s->placed.life && left->begin <= s->placed.at &&
            s->placed.at < left->end) {
            uint32_t t = (time_of(made, left->absent_from - 1) + 1) % made->period.length;
            for (; t != time_of(made, left->back_from); t = (t + 1) % made->period.length) {
                s->times[t] = false;
            }
        }
    }
}

static segment make_segment(const scene *made, uint32_t index, uint64_t at, uint64_t bytes, uint32_t place)
{
    const np_life *life = &made->period.lives.items[index];
    uint32_t length = made->period.length;
    segment s = {{.life = index, .at = at, .bytes = bytes, .place = place}, calloc(length, sizeof(bool))};
    for (uint32_t t = life->begin; t < life->end && t < life->begin + length; t++) {
        s.times[t % length] = true;
    }
    cut_holes(made, &s);
    return s;
}

static uint64_t next_cut(const scene *made, uint32_t life, uint64_t at, uint64_t end, uint64_t piece, bool *swapped)
{
    uint64_t past = end;
    for (size_t i = 0; i < made->layout.left.n; i++) {
        const np_left *left = &made->layout.left.items[i];
        const np_gap *gap = &made->timeline.gaps.items[made->swaps.items[left->swap].gap];
        if (made->timeline.blocks.items[gap->block].life == life) {
            *swapped = true;
            past = left->begin > at && left->begin < past ? left->begin : past;
            past = left->end > at && left->end < past ? left->end : past;
        }
    }
    return *swapped && past - at > piece ? at + piece : past;
}

static void push_segments(const scene *made, uint64_t piece, segment_array *segments)
{
    for (uint32_t i = 0; i < made->period.lives.n; i++) {
        const np_life *life = &made->period.lives.items[i];
        uint64_t bytes = (made->trace->blocks.items[life->block].bytes + PAGE - 1) / PAGE * PAGE;
        uint32_t n_places = life->persistent ? 1 : (life->end - life->begin) / made->period.length + 1;
        for (uint32_t place = 0; place < n_places; place++) {
            bool swapped = false;
            for (uint64_t at = 0; at < bytes;) {
                uint64_t past = next_cut(made, i, at, bytes, piece, &swapped);
                ASSERT_OK(np_array_push(NULL, segments, make_segment(made, i, at, past - at, place)));
                at = past;
            }
        }
    }
}

static int compare_segments(const void *left, const void *right)
{
    const segment *a = left;
    const segment *b = right;
    return a->placed.bytes > b->placed.bytes ? -1 : a->placed.bytes < b->placed.bytes;
}

static int compare_placed(const void *left, const void *right)
{
    const np_placed *a = left;
    const np_placed *b = right;
    if (a->life != b->life) {
        return a->life < b->life ? -1 : 1;
    }
    if (a->place != b->place) {
        return a->place < b->place ? -1 : 1;
    }
    return a->at < b->at ? -1 : a->at > b->at;
}

static bool share_a_time(const scene *made, const segment *a, const segment *b)
{
    for (uint32_t t = 0; t < made->period.length; t++) {
        if (a->times[t] && b->times[t]) {
            return true;
        }
    }
    return false;
}

static void place_segment(const scene *made, segment *segments, size_t n_placed, segment *s)
{
    bool moved = true;
    s->placed.offset = 0;
    while (moved) {
        moved = false;
        for (size_t i = 0; i < n_placed; i++) {
            const np_placed *other = &segments[i].placed;
            if (other->offset < s->placed.offset + s->placed.bytes && s->placed.offset < other->offset + other->bytes &&
                share_a_time(made, &segments[i], s)) {
                s->placed.offset = other->offset + other->bytes;
                moved = true;
            }
        }
    }
}

static void place_all(scene *made, uint64_t piece)
{
    segment_array segments = {0};
    push_segments(made, piece, &segments);
    qsort(segments.items, segments.n, sizeof(segment), compare_segments);
    for (size_t i = 0; i < segments.n; i++) {
        segment *s = &segments.items[i];
        place_segment(made, segments.items, i, s);
        if (s->placed.offset + s->placed.bytes > made->layout.footprint) {
            made->layout.footprint = s->placed.offset + s->placed.bytes;
        }
        ASSERT_OK(np_array_push(NULL, &made->layout.placed, s->placed));
    }
    qsort(made->layout.placed.items, made->layout.placed.n, sizeof(np_placed), compare_placed);
    for (size_t i = 0; i < segments.n; i++) {
        free(segments.items[i].times);
    }
    np_array_free(NULL, &segments);
}

/* By the library. Some persistent lives stand somewhere already, or are kept outside. */
static void place_by_library(scene *made, const np_simulator *simulator, np_rng *rng, uint64_t page)
{
    np_place_options options = {.seconds = 0.001, .page = page, .held = true, .n_threads = 1};
    np_home *homes = calloc(made->period.lives.n + 1, sizeof *homes);
    uint32_t *pages = NULL;
    uint32_t at = 0;
    np_place_result result;
    ASSERT_TRUE(homes != NULL);
    for (uint32_t i = 0; i < made->period.lives.n; i++) {
        const np_life *life = &made->period.lives.items[i];
        uint64_t chance = np_rng_below(rng, 8);
        bool swapped = false;
        for (size_t k = 0; k < made->swaps.n; k++) {
            const np_gap *gap = &made->timeline.gaps.items[made->swaps.items[k].gap];
            swapped = swapped || made->timeline.blocks.items[gap->block].life == i;
        }
        if (life->persistent && chance == 0 && !pages) {
            uint64_t n = (made->trace->blocks.items[life->block].bytes + page - 1) / page;
            pages = calloc(n, sizeof *pages);
            ASSERT_TRUE(pages != NULL);
            for (uint64_t k = 0; k < n; k++) {
                at += (uint32_t)np_rng_below(rng, 2);
                pages[k] = at++;
            }
            homes[i].pages = pages;
        } else if (life->persistent && chance == 1 && !swapped) {
            homes[i].is_outside = true;
        }
    }
    options.homes = homes;
    ASSERT_OK(np_place_swaps(&made->timeline, simulator, made->swaps.items, (uint32_t)made->swaps.n, &options, NULL,
                             &result, &made->layout));
    free(homes);
    free(pages);
}

bool make_layout(scene *made, const np_link *link, np_rng *rng, uint64_t piece)
{
    bool by_library = rng && np_rng_below(rng, 4) == 0;
    np_simulation simulation = {.possible = true};
    made->layout = (np_layout){.memory = &np_memory_default};
    if (made->swaps.n > 0) {
        uint32_t n_swaps = (uint32_t)made->swaps.n;
        np_simulator *simulator;
        if (rng) {
            choose_keys(made, rng);
        } else {
            ASSERT_OK(np_schedule_swaps(&made->timeline, link, made->swaps.items, n_swaps));
        }
        ASSERT_OK(np_simulator_create(&made->timeline, link, &simulator));
        ASSERT_OK(np_simulate(simulator, UINT64_MAX, made->swaps.items, n_swaps, &simulation));
        if (simulation.possible && by_library) {
            place_by_library(made, simulator, rng, piece);
        } else if (simulation.possible) {
            push_left(made, simulator);
        }
        np_simulator_free(simulator);
    }
    if (simulation.possible && made->layout.placed.n == 0) {
        place_all(made, piece);
    }
    return simulation.possible;
}

/* ---------------------------------------------------------------- at random ---- */

enum { MAX_SLOTS = 64, MAX_LIVES = 64, MAX_USES = 512 };

static life_shape random_life(const random_scene *random, np_rng *rng, uint32_t n_slots)
{
    life_shape life = {.bytes = PAGE * (1 + np_rng_below(rng, random->max_pages))};
    uint32_t span = (uint32_t)np_rng_below(rng, np_rng_below(rng, 2) ? n_slots : n_slots / 4 + 1);
    if (random->long_lives && np_rng_below(rng, 12) == 0) {
        span += n_slots * (uint32_t)(1 + np_rng_below(rng, 2));
    }
    life.persistent = np_rng_below(rng, 4) == 0;
    life.begin = (uint32_t)np_rng_below(rng, n_slots);
    life.end = life.begin + span;
    life.bytes -= np_rng_below(rng, 4) == 0 ? np_rng_below(rng, PAGE) : 0;
    return life;
}

static void add_random_swaps(const random_scene *random, np_rng *rng, scene *made)
{
    for (uint32_t i = 0; i < made->timeline.gaps.n; i++) {
        uint64_t left = made->timeline.gaps.items[i].bytes / PAGE;
        while (left > 0 && np_rng_below(rng, 100) < random->swap_share) {
            uint64_t pages = np_rng_below(rng, 2) ? left : 1 + np_rng_below(rng, left);
            np_swap swap = {.gap = i, .bytes = pages * PAGE};
            ASSERT_OK(np_array_push(NULL, &made->swaps, swap));
            left -= pages;
        }
    }
}

bool make_random_scene(const random_scene *random, np_rng *rng, scene *made)
{
    life_shape lives[MAX_LIVES];
    use_shape uses[MAX_USES];
    uint32_t streams[MAX_SLOTS];
    period_shape shape = {.streams = streams, .lives = lives, .uses = uses};
    np_link link = {.out = 0.1 * exp(6 * np_rng_unit(rng)), .in = 0.1 * exp(6 * np_rng_unit(rng))};
    uint32_t n_streams = 1 + (uint32_t)np_rng_below(rng, random->max_streams);
    shape.n_slots = 3 + (uint32_t)np_rng_below(rng, random->max_slots - 3);
    shape.n_lives = 1 + (uint32_t)np_rng_below(rng, random->max_lives);
    shape.held = np_rng_below(rng, 2);
    shape.leak_bytes = np_rng_below(rng, 8) == 0 ? PAGE : 0;
    for (uint32_t i = 0; i < shape.n_lives; i++) {
        lives[i] = random_life(random, rng, shape.n_slots);
    }
    for (uint32_t slot = 0; slot < shape.n_slots; slot++) {
        uint32_t n = (uint32_t)np_rng_below(rng, 2 + shape.n_lives / 2);
        streams[slot] = (uint32_t)np_rng_below(rng, n_streams);
        for (uint32_t i = 0; i < n && shape.n_uses < MAX_USES; i++) {
            use_shape use = {slot, (uint32_t)np_rng_below(rng, shape.n_lives), (neap_access_kind)np_rng_below(rng, 3)};
            if (lives_in(&lives[use.life], shape.n_slots, slot, 0)) {
                uses[shape.n_uses++] = use;
            }
        }
    }
    if (!try_scene(&shape, made)) {
        return false;
    }
    add_random_swaps(random, rng, made);
    if (!make_layout(made, &link, np_rng_below(rng, 2) ? rng : NULL, PAGE * (1 + np_rng_below(rng, 8)))) {
        free_scene(made);
        return false;
    }
    return true;
}
