/* test_place_held.c: layouts of blocks held from malloc to free, checked event by event and byte by byte. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "swap/place.h"
#include "swap/planner.h"
#include "testing.h"
#include "trace/make_trace.h"

enum { MAX_SWAPS = 512, ALIGNMENT = 512 };

static const np_link link = {.out = 4, .in = 4};

/* A trace, its held timeline, and swaps chosen at random. */
typedef struct made {
    neap_trace *trace;
    np_period period;
    np_timeline timeline;
    np_simulator *simulator;
    np_swap swaps[MAX_SWAPS];
    uint32_t n;
    np_home *homes;  /* by life */
    uint32_t *pages; /* of all homes */
    uint64_t page;   /* they were chosen for */
} made;

static void make_of(made *m, neap_trace *trace, bool held)
{
    np_timeline_options timeline_options = {.alignment = ALIGNMENT, .slower = 1, .held = held};
    ASSERT_TRUE(trace != NULL);
    *m = (made){.trace = trace};
    ASSERT_OK(np_period_find(m->trace, NULL, &m->period));
    ASSERT_GT(m->period.length, 0);
    ASSERT_OK(np_timeline_make(&m->period, &timeline_options, NULL, &m->timeline));
    ASSERT_OK(np_simulator_create(&m->timeline, &link, &m->simulator));
    m->homes = calloc(m->period.lives.n, sizeof *m->homes);
    ASSERT_TRUE(m->homes != NULL);
}

static void make(made *m, const training *options, bool held)
{
    make_of(m, make_training(options), held);
}

static void unmake(made *m)
{
    free(m->homes);
    free(m->pages);
    np_simulator_free(m->simulator);
    np_timeline_free(&m->timeline);
    np_period_free(&m->period);
    neap_trace_free(m->trace);
}

static uint64_t bytes_of(const made *m, uint32_t life)
{
    return (m->trace->blocks.items[m->period.lives.items[life].block].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Whole blocks, parts of whole pages and their rests, and parts of any number of bytes. */
static void choose_swaps(made *m, np_rng *rng, uint64_t page)
{
    m->n = 0;
    for (uint32_t g = 0; g < m->timeline.gaps.n; g++) {
        uint64_t left = np_rng_below(rng, 3) ? m->timeline.gaps.items[g].bytes : 0;
        uint64_t grain = np_rng_below(rng, 4) ? page : ALIGNMENT;
        while (left > 0 && m->n < MAX_SWAPS) {
            uint64_t bytes = np_rng_below(rng, 3) ? left : (1 + np_rng_below(rng, left / grain + 1)) * grain;
            bytes = bytes < left ? bytes : left;
            m->swaps[m->n++] = (np_swap){.bytes = bytes, .gap = g};
            left = np_rng_below(rng, 4) ? left - bytes : 0;
        }
    }
    ASSERT_OK(np_schedule_swaps(&m->timeline, &link, m->swaps, m->n));
}

/* Persistent blocks begin anywhere in a page, most of them behind another. Some stand somewhere already, in one or
 * scattered, with gaps between them. */
static void choose_homes(made *m, np_rng *rng, uint64_t page)
{
    size_t n_pages = 0;
    uint32_t at = 0;
    uint32_t *pages;
    for (uint32_t i = 0; i < m->period.lives.n; i++) {
        n_pages += bytes_of(m, i) / page + 2;
    }
    pages = m->pages = calloc(n_pages, sizeof *m->pages);
    ASSERT_TRUE(pages != NULL);
    m->page = page;
    for (uint32_t i = 0; i < m->period.lives.n; i++) {
        bool scattered = np_rng_below(rng, 2);
        uint64_t n;
        m->homes[i].neighbour = NP_NO_HOME;
        if (!m->period.lives.items[i].persistent) {
            continue;
        }
        if (np_rng_below(rng, 3)) {
            m->homes[i].lead = np_rng_below(rng, page / ALIGNMENT) * ALIGNMENT;
            m->homes[i].neighbour = (uint32_t)np_rng_below(rng, m->period.lives.n);
        }
        n = (m->homes[i].lead + bytes_of(m, i) + page - 1) / page;
        if (np_rng_below(rng, 2)) {
            continue;
        }
        if (n < 2000) {
            m->homes[i].pages = pages;
        }
        for (uint64_t k = 0; k < n && n < 2000; k++) {
            at += scattered && np_rng_below(rng, 4) == 0;
            *pages++ = at++;
        }
        at += (uint32_t)np_rng_below(rng, 3);
    }
}

/* ---- by hand ---- */

static bool is_pinned(const made *m, uint32_t life)
{
    const np_life *l = &m->period.lives.items[life];
    return !l->persistent && l->end - l->begin >= m->period.length;
}

static bool is_alive(const made *m, uint32_t life, uint32_t event)
{
    const np_life *l = &m->period.lives.items[life];
    return is_pinned(m, life) || (l->begin <= event && event < l->end) || event + m->period.length < l->end;
}

static uint32_t life_of(const made *m, const np_left *left)
{
    return m->timeline.blocks.items[m->timeline.gaps.items[m->swaps[left->swap].gap].block].life;
}

static uint32_t time_of(const made *m, uint32_t exec)
{
    uint32_t n = m->timeline.n_execs;
    return m->timeline.times.items[exec % n] + exec / n * m->period.length;
}

static bool is_away(const made *m, const np_left *left, uint32_t event)
{
    uint32_t begin = time_of(m, left->absent_from - 1) + 1;
    uint32_t end = time_of(m, left->back_from);
    for (uint32_t e = event; e < end; e += m->period.length) {
        if (e >= begin) {
            return true;
        }
    }
    return false;
}

/* ---- what a layout must be ---- */

static void check_left(const made *m, const np_layout *layout, uint64_t page)
{
    size_t at = 0;
    uint64_t lead;
    for (uint32_t i = 0; i < m->n; i++) {
        np_absence absence = np_simulator_absence(m->simulator, i);
        const np_gap *gap = &m->timeline.gaps.items[m->swaps[i].gap];
        uint32_t to = absence.back_from < gap->to ? absence.back_from : gap->to;
        const np_left *left = &layout->left.items[at];
        if (absence.absent_from >= to) {
            continue;
        }
        if (m->swaps[i].bytes % page != 0 && (at == layout->left.n || left->swap != i)) {
            continue; /* it could not be the block's end: it does not leave */
        }
        ASSERT_LT(at, layout->left.n);
        ASSERT_EQ(left->swap, i);
        lead = m->homes[life_of(m, left)].lead;
        ASSERT_TRUE(left->begin == 0 || (left->begin + lead) % page == 0);
        ASSERT_TRUE((left->end + lead) % page == 0 || left->end == gap->bytes);
        ASSERT_LT(left->begin, left->end);
        ASSERT_EQ(left->absent_from, absence.absent_from);
        ASSERT_EQ(left->back_from, to);
        ASSERT_LE(left->end - left->begin, m->swaps[i].bytes + lead);
        ASSERT_LE(m->swaps[i].bytes, left->end - left->begin + lead);
        ASSERT_LE(left->end, gap->bytes);
        for (size_t k = 0; k < at; k++) { /* parts of one gap are different bytes */
            const np_left *other = &layout->left.items[k];
            ASSERT_TRUE(m->swaps[other->swap].gap != m->swaps[i].gap || other->end <= left->begin ||
                        left->end <= other->begin);
        }
        for (uint32_t e = 0; e < m->period.length; e++) { /* no hole goes beyond the block's life */
            ASSERT_TRUE(!is_away(m, left, e) || is_alive(m, life_of(m, left), e));
        }
        at++;
    }
    ASSERT_EQ(at, layout->left.n);
}

/* Every life has its bytes, in order, once for each place, where they may stand. */
static void check_places(const made *m, const np_layout *layout, uint64_t page, bool has_homes)
{
    const np_placed *placed = layout->placed.items;
    const np_placed *end = placed + layout->placed.n;
    uint64_t top = 0;
    for (uint32_t life = 0; life < m->period.lives.n; life++) {
        const np_life *l = &m->period.lives.items[life];
        uint32_t n_places = is_pinned(m, life) ? (l->end - l->begin) / m->period.length + 1 : 1;
        bool leaves = false;
        bool is_large = layout->left.n > 0 && bytes_of(m, life) >= m->timeline.peak_load / 32 &&
                        bytes_of(m, life) >= 4 * page && !is_pinned(m, life) && !(has_homes && l->persistent);
        for (size_t i = 0; i < layout->left.n; i++) {
            leaves = leaves || life_of(m, &layout->left.items[i]) == life;
        }
        for (uint32_t place = 0; place < n_places; place++) {
            for (uint64_t at = 0; at < bytes_of(m, life); placed++) {
                ASSERT_TRUE(placed < end);
                ASSERT_EQ(placed->life, life);
                ASSERT_EQ(placed->place, place);
                ASSERT_EQ(placed->at, at);
                ASSERT_GT(placed->bytes, 0);
                ASSERT_EQ(placed->offset % ALIGNMENT, 0);
                if (m->homes[life].pages) {
                    for (uint64_t k = 0; k < placed->bytes; k += ALIGNMENT) {
                        uint64_t in_view = m->homes[life].lead + at + k;
                        ASSERT_EQ(placed->offset + k,
                                  m->homes[life].pages[in_view / m->page] * m->page + in_view % m->page);
                    }
                } else if (leaves || is_large) {
                    ASSERT_TRUE(at == 0 || (placed->at + m->homes[life].lead) % page == 0);
                    ASSERT_EQ(placed->offset % page, at == 0 ? m->homes[life].lead : 0);
                } else if (has_homes && l->persistent) {
                    ASSERT_EQ(placed->bytes, bytes_of(m, life));
                    ASSERT_EQ(placed->offset % page, m->homes[life].lead);
                } else {
                    ASSERT_EQ(placed->bytes, bytes_of(m, life));
                }
                at += placed->bytes;
                top = placed->offset + placed->bytes > top ? placed->offset + placed->bytes : top;
                ASSERT_LE(at, bytes_of(m, life));
            }
        }
    }
    ASSERT_TRUE(placed == end);
    ASSERT_EQ(top, layout->footprint);
}

typedef struct span {
    uint64_t begin;
    uint64_t end;
} span;

static int compare_spans(const void *left, const void *right)
{
    const span *a = left;
    const span *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* What is there of a piece: its bytes less those that are away. */
static size_t add_present(const made *m, const np_layout *layout, const np_placed *placed, uint32_t event, span *spans)
{
    uint64_t at = placed->at;
    uint64_t past = placed->at + placed->bytes;
    size_t n = 0;
    while (at < past) {
        uint64_t next = past;
        bool away = false;
        for (size_t i = 0; i < layout->left.n; i++) {
            const np_left *left = &layout->left.items[i];
            if (life_of(m, left) != placed->life || !is_away(m, left, event)) {
                continue;
            }
            away = away || (left->begin <= at && at < left->end);
            next = left->begin > at && left->begin < next ? left->begin : next;
            next = left->end > at && left->end < next ? left->end : next;
        }
        if (!away) {
            spans[n++] = (span){placed->offset + at - placed->at, placed->offset + next - placed->at};
        }
        at = next;
    }
    return n;
}

/* At no event do two blocks, or two parts of one, hold the same byte. Returns the most bytes held. */
static uint64_t check_bytes(const made *m, const np_layout *layout)
{
    span *spans = malloc((layout->placed.n + 4 * layout->left.n + 1) * sizeof *spans * 4);
    uint64_t most = 0;
    ASSERT_TRUE(spans != NULL);
    for (uint32_t event = 0; event < m->period.length; event++) {
        size_t n = 0;
        uint64_t held = 0;
        for (size_t i = 0; i < layout->placed.n; i++) {
            if (is_alive(m, layout->placed.items[i].life, event)) {
                n += add_present(m, layout, &layout->placed.items[i], event, &spans[n]);
            }
        }
        qsort(spans, n, sizeof *spans, compare_spans);
        for (size_t i = 0; i < n; i++) {
            ASSERT_TRUE(i == 0 || spans[i - 1].end <= spans[i].begin);
            held += spans[i].end - spans[i].begin;
        }
        most = held > most ? held : most;
    }
    free(spans);
    return most;
}

static uint64_t place_and_check(made *m, const np_place_options *options)
{
    np_simulation simulation;
    np_place_result result;
    np_layout layout = {0};
    neap_error error;
    uint64_t held;
    ASSERT_OK(np_simulate(m->simulator, UINT64_MAX, m->swaps, m->n, &simulation));
    ASSERT_OK(np_place_swaps(&m->timeline, m->simulator, m->swaps, m->n, options, &error, &result, &layout));
    ASSERT_EQ(result.footprint, layout.footprint);
    ASSERT_LE(result.n_buffers, layout.placed.n);
    ASSERT_TRUE(options->homes || result.n_buffers == layout.placed.n);
    ASSERT_LE(result.bound, result.footprint);
    check_left(m, &layout, options->page);
    check_places(m, &layout, options->page, options->homes != NULL);
    held = check_bytes(m, &layout);
    ASSERT_LE(held, layout.footprint);
    ASSERT_GE(held, result.load);
    np_layout_free(&layout);
    return held;
}

/* ---- tests ---- */

static training random_training(np_rng *rng)
{
    return (training){.seed = np_rng_next(rng),
                      .n_layers = 3 + (uint32_t)np_rng_below(rng, 5),
                      .n_iterations = 8,
                      .loss_kept = np_rng_below(rng, 2),
                      .zero_grad_at_start = np_rng_below(rng, 2),
                      .leak_bytes = np_rng_below(rng, 3) ? 0 : 512,
                      .long_lives = np_rng_below(rng, 3) ? 0 : 2,
                      .n_time_steps = (uint32_t)np_rng_below(rng, 3),
                      .step_bytes = 4096};
}

static void layouts_are_right(void **state)
{
    np_rng rng = np_rng_make(5);
    uint32_t n_lower = 0;
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 12 : 80); round++) {
        training options = random_training(&rng);
        np_place_options place = {.seconds = 0.002, .seed = 1, .n_threads = 1, .held = true};
        uint64_t without;
        made m;
        make(&m, &options, round % 4 != 0); /* a timeline that is not held has absences too */
        place.page = (uint64_t)ALIGNMENT << np_rng_below(&rng, 11);
        if (round % 2) {
            choose_homes(&m, &rng, place.page);
        }
        place.homes = round % 2 ? m.homes : NULL;
        without = place_and_check(&m, &place);
        choose_swaps(&m, &rng, place.page);
        n_lower += place_and_check(&m, &place) < without;
        unmake(&m);
    }
    ASSERT_GT(n_lower, TEST_SANITIZED ? 2 : 20);
}

/* Without swaps it is the pool: the peak load, and nothing cut up. */
static void the_pool_alone(void **state)
{
    np_judged judged = {0};
    training options = {.seed = 4, .n_layers = 12, .zero_grad_at_start = true, .n_iterations = 6};
    neap_error error;
    np_planner planner = {.page = 4096, .seed = 1, .n_threads = 1, .held = true, .error = &error};
    made m;
    (void)state;
    make(&m, &options, true);
    planner.timeline = &m.timeline;
    planner.link = link;
    planner.deadline_ns = UINT64_MAX; /* it ends at the peak load, however slow the machine is */
    planner.simulator = m.simulator;
    ASSERT_OK(np_plan_pool(&planner, 20, &judged));
    ASSERT_EQ(judged.swaps.n, 0);
    ASSERT_TRUE(judged.simulation.possible && judged.simulation.overhead == 0);
    ASSERT_EQ(judged.layout.placed.n, m.period.lives.n);
    ASSERT_EQ(judged.layout.left.n, 0);
    ASSERT_EQ(judged.layout.footprint, m.timeline.peak_load);
    ASSERT_EQ(check_bytes(&m, &judged.layout), m.timeline.peak_load);
    planner.simulator = NULL; /* as where there are no execs */
    ASSERT_OK(np_plan_pool(&planner, 20, &judged));
    ASSERT_EQ(judged.layout.footprint, m.timeline.peak_load);
    np_judged_free(&judged, m.timeline.memory);
    unmake(&m);
}

/* ---- what is large ---- */

/* Blocks of an iteration, all live at once, 256 pages together; the first is not used for long. */
enum { PAGE = 4096, N_SIZES = 4, N_EXECS = 10 };

static const uint64_t sizes[N_SIZES] = {
    16 * PAGE,
    8 * PAGE,             /* a thirty-second of them all */
    8 * PAGE - ALIGNMENT, /* not quite */
    224 * PAGE + ALIGNMENT,
};

static neap_trace *make_sizes(void)
{
    neap_trace *trace;
    ASSERT_OK(np_trace_create(NULL, &trace));
    for (uint64_t lap = 0; lap < 6; lap++) {
        for (uint64_t i = 0; i < N_SIZES; i++) {
            ASSERT_OK(np_trace_add_malloc(trace, lap * N_SIZES + i, sizes[i]));
        }
        for (uint64_t k = 0; k < N_EXECS; k++) {
            ASSERT_OK(np_trace_add_exec(trace, &"abcdefghij"[k], 1, (lap * N_EXECS + k) * 1000000, 1000000));
            for (uint64_t i = k > 0 && k < N_EXECS - 1; i < N_SIZES; i++) {
                ASSERT_OK(np_trace_add_access(trace, lap * N_SIZES + i, NEAP_ACCESS_READ));
            }
        }
        for (uint64_t i = 0; i < N_SIZES; i++) {
            ASSERT_OK(np_trace_add_free(trace, lap * N_SIZES + i));
        }
    }
    return trace;
}

/* How many pieces the block of each size is in. */
static void count_pieces(made *m, const np_place_options *how, uint32_t n_pieces[N_SIZES])
{
    np_place_options options = {.seconds = 0.002, .seed = 1, .n_threads = 1};
    np_simulation simulation;
    np_place_result result;
    np_layout layout = {0};
    neap_error error;
    options.page = how->page;
    options.held = how->held;
    options.cuts = how->cuts;
    ASSERT_OK(np_simulate(m->simulator, UINT64_MAX, m->swaps, m->n, &simulation));
    ASSERT_OK(np_place_swaps(&m->timeline, m->simulator, m->swaps, m->n, &options, &error, &result, &layout));
    ASSERT_EQ(layout.left.n, m->n);
    memset(n_pieces, 0, N_SIZES * sizeof *n_pieces);
    for (size_t i = 0; i < layout.placed.n; i++) {
        for (uint32_t k = 0; k < N_SIZES; k++) {
            n_pieces[k] += bytes_of(m, layout.placed.items[i].life) == sizes[k];
        }
    }
    np_layout_free(&layout);
}

static void check_pieces(made *m, np_place_options how, const uint32_t expected[N_SIZES])
{
    uint32_t n_pieces[N_SIZES];
    count_pieces(m, &how, n_pieces);
    for (uint32_t k = 0; k < N_SIZES; k++) {
        ASSERT_EQ(n_pieces[k], expected[k]);
    }
}

/* Where another block leaves, one of a thirty-second of the peak load is in pieces: of two pages each where pages are small,
 * as all such together are cut into 128 and a few. What leaves is in pages here. With `cuts`, less is large. */
static void large_blocks_are_cut(void **state)
{
    made m;
    (void)state;
    make_of(&m, make_sizes(), true);
    ASSERT_EQ(m.timeline.peak_load, 256 * PAGE);
    check_pieces(&m, (np_place_options){.page = PAGE, .held = true},
                 (const uint32_t[]){1, 1, 1, 1}); /* nothing leaves */
    for (uint32_t g = 0; g < m.timeline.gaps.n && m.n == 0; g++) {
        if (m.timeline.gaps.items[g].bytes == sizes[0] && m.timeline.gaps.items[g].from < m.timeline.gaps.items[g].to) {
            m.swaps[m.n++] = (np_swap){.bytes = sizes[0], .gap = g};
        }
    }
    ASSERT_EQ(m.n, 1);
    ASSERT_OK(np_schedule_swaps(&m.timeline, &link, m.swaps, m.n));
    check_pieces(&m, (np_place_options){.page = PAGE, .held = true}, (const uint32_t[]){16, 4, 1, 113});
    check_pieces(&m, (np_place_options){.page = 2 * PAGE, .held = true}, (const uint32_t[]){8, 4, 1, 113});
    check_pieces(&m, (np_place_options){.page = 4 * PAGE, .held = true},
                 (const uint32_t[]){4, 1, 1, 57});                                       /* two pages are not many */
    check_pieces(&m, (np_place_options){.page = PAGE}, (const uint32_t[]){16, 1, 1, 1}); /* that is not to be run */
    check_pieces(&m, (np_place_options){.page = PAGE / 4, .held = true}, (const uint32_t[]){64, 4, 1, 113});
    check_pieces(&m, (np_place_options){.page = PAGE / 4, .held = true, .cuts = true},
                 (const uint32_t[]){64, 16, 16, 449}); /* from eight pages on, in more pieces */
    unmake(&m);
}

/* Plans under a limit come with the layout that was judged. */
static void plans_carry_their_layout(void **state)
{
    static const double weights[4] = {0.5, -0.25, 1, 0};
    training options = {.seed = 6, .n_layers = 16, .n_iterations = 6, .zero_grad_at_start = true};
    neap_error error;
    np_planner planner = {.page = 4096, .seed = 1, .n_threads = 1, .min_block = 4096, .held = true, .error = &error};
    made m;
    (void)state;
    make(&m, &options, true);
    planner.timeline = &m.timeline;
    planner.link = link;
    planner.simulator = m.simulator;
    for (int mix = 0; mix < 2; mix++) {
        uint64_t limit = m.timeline.peak_load / 10 * 8;
        np_judged judged = {0};
        np_simulation simulation;
        planner.deadline_ns = 0;
        ASSERT_OK(mix ? np_plan_with_weights(&planner, weights, limit, &judged)
                      : np_plan_within_limit(&planner, NEAP_SWAP_SEARCH, limit, &judged));
        ASSERT_LE(judged.layout.footprint, limit);
        ASSERT_EQ(judged.layout.footprint, judged.place.footprint);
        ASSERT_GT(judged.layout.left.n, 0);
        ASSERT_LE(judged.swaps.n, MAX_SWAPS);
        memcpy(m.swaps, judged.swaps.items, judged.swaps.n * sizeof *m.swaps);
        m.n = (uint32_t)judged.swaps.n;
        ASSERT_OK(np_simulate(m.simulator, judged.simulation.peak, m.swaps, m.n, &simulation));
        check_places(&m, &judged.layout, planner.page, false);
        ASSERT_LE(check_bytes(&m, &judged.layout), limit);
        np_judged_free(&judged, m.timeline.memory);
    }
    unmake(&m);
}

static void nonsense_is_refused(void **state)
{
    training options = {.seed = 1, .n_layers = 3};
    np_place_options place = {.seconds = 0.01, .page = 4096, .n_threads = 1};
    np_place_result result;
    np_layout layout = {0};
    neap_error error;
    made m;
    (void)state;
    make(&m, &options, true);
    place.held = true;
    place.homes = m.homes;
    for (uint32_t i = 0; i < m.period.lives.n; i++) {
        if (!m.period.lives.items[i].persistent) { /* it cannot stand anywhere already */
            m.homes[i].is_outside = true;
            ASSERT_STATUS(NEAP_BAD_ARGUMENT,
                          np_place_swaps(&m.timeline, m.simulator, NULL, 0, &place, &error, &result, &layout));
            m.homes[i].is_outside = false;
        }
    }
    ASSERT_TRUE(layout.memory == NULL);
    unmake(&m);
}

static neap_status place_within(const neap_memory *memory, void *user)
{
    made *m = user;
    np_timeline timeline = m->timeline;
    np_place_options options = {.seconds = 0.001, .page = 4096, .n_threads = 1, .held = true, .homes = m->homes};
    np_place_result result;
    np_layout layout = {0};
    neap_error error;
    neap_status status;
    timeline.memory = memory;
    status = np_place_swaps(&timeline, m->simulator, m->swaps, m->n, &options, &error, &result, &layout);
    np_layout_free(&layout);
    return status;
}

static void fails_without_memory(void **state)
{
    training options = {.seed = 3, .n_layers = 4, .long_lives = 1, .n_iterations = 8};
    np_rng rng = np_rng_make(2);
    np_simulation simulation;
    made m;
    (void)state;
    make(&m, &options, true);
    choose_homes(&m, &rng, 4096);
    choose_swaps(&m, &rng, 1 << 19);
    m.n = m.n < 12 ? m.n : 12;
    ASSERT_OK(np_simulate(m.simulator, UINT64_MAX, m.swaps, m.n, &simulation));
    ASSERT_GT(test_memory_fail_each(place_within, &m), 10);
    unmake(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_are_right),        cmocka_unit_test(the_pool_alone),
        cmocka_unit_test(plans_carry_their_layout), cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(fails_without_memory),     cmocka_unit_test(large_blocks_are_cut),
    };
    return cmocka_run_group_tests_name("swap/place_held", tests, NULL, NULL);
}
