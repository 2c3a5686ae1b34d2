/* test_beneath.c: beneath a program that does not know of neap: uses that are more and fewer than planned, everything
 * home at any moment, blocks that stay, doubts and the plans made anew after them.
 *
 * First, small programs of which everything is known; then random ones, all of whose contents are checked at every access
 * (random_beneath.h), on the simulated device, which finds uses that nothing orders, and on the CPU.
 *
 *     NEAP_RANDOM_SEED   the first seed, 1 where it is not set
 *     NEAP_RANDOM_N      how many programs
 *     NEAP_RANDOM_LOUD   prints every event
 *     NEAP_RANDOM_VALID  looks at the whole manager after each */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "run/little_program.h"
#include "run/random_program.h"
#include "testing.h"

/* ---- a small program ---- */

/* On a plan with swaps, and beneath the program: as it is after some time. */
static void start(little_program *p, double limit_share)
{
    little_options options = {.name = "sim:page=4KiB,memory=64MiB,streams=2,link=4GB/s",
                              .device = {.limit_share = limit_share},
                              .is_faulty = true};
    little_start(p, &options);
    (void)little_run_until_plan(p, 20);
    np_beneath_begin(p->device, 0, 0);
    little_laps(p, 2);
    ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
    ASSERT_TRUE(limit_share <= 0 || p->device->pattern->program.swaps.n > 0);
}

/* A block that the plan has away at this moment, or NULL. */
static shadow_block *find_away(little_program *p)
{
    const np_pattern *pattern = p->device->pattern;
    for (size_t i = 0; i < pattern->program.swaps.n && p->device->state == NEAP_STATE_RUN; i++) {
        const neap_block *block = pattern->actors[pattern->program.swaps.items[i].life].now[0];
        for (uint32_t k = 0; k <= p->options.n_layers && pattern->is_out[i] && block; k++) {
            if (p->acts[k].block == block) {
                return &p->acts[k];
            }
            if (k < p->options.n_layers && p->weights[k].block == block) {
                return &p->weights[k];
            }
        }
    }
    return NULL;
}

static void assert_all_here(const little_program *p)
{
    ASSERT_NE(p->device->state, NEAP_STATE_RUN);
    for (const neap_block *block = p->device->live; block; block = block->next) {
        ASSERT_TRUE(np_block_is_here(block));
    }
}

/* ---- everything home ---- */

static void go_home(little_program *p)
{
    if (find_away(p)) {
        ASSERT_OK(np_beneath_home(p->device, "a test"));
        assert_all_here(p);
        p->after_event = NULL;
    }
}

static void test_home(void **state)
{
    static little_program p;
    (void)state;
    start(&p, 0.6);
    p.after_event = go_home;
    little_laps(&p, 1);
    ASSERT_TRUE(p.after_event == NULL); /* something was away */
    ASSERT_EQ(p.device->stats.departures[NEAP_DEPARTURE_BLIND], 1);
    little_laps(&p, 3);
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN); /* and the plan goes on at the next start */
    little_end(&p);
}

/* What does not fit at once is said, and nothing is lost. */
static void test_home_is_full(void **state)
{
    static little_program p;
    little_options options = {.name = "sim:page=4KiB,memory=256KiB,link=4GB/s"};
    shadow_block blocks[10];
    bool is_away = false;
    (void)state;
    little_start(&p, &options);
    np_beneath_begin(p.device, 0, 0);
    for (int i = 0; i < 10; i++) {
        little_malloc(&p, 8 * LITTLE_PAGE, &blocks[i]);
    }
    ASSERT_STATUS(NEAP_DEVICE_FULL, np_beneath_home(p.device, "a test"));
    for (int i = 0; i < 10; i++) {
        is_away |= !np_block_is_here(blocks[i].block);
    }
    ASSERT_TRUE(is_away);
    for (int i = 0; i < 10; i++) {
        little_free(&p, &blocks[i]);
    }
    little_end(&p);
}

/* Work that the manager has not seen, as it is after everything came home. */
static void write_unseen(little_program *p, shadow_block *block)
{
    uint64_t n_writes = block->block->clean.n_writes;
    little_exec(p, "unseen", 0, &(shadow_use){block, SHADOW_UPDATE}, 1);
    block->block->clean.n_writes = n_writes;
}

/* Blocks of eight pages under a limit of 20: the first has left, for the third. */
static void start_full(little_program *p, shadow_block *blocks)
{
    little_options options = {.device = {.limit = 20 * LITTLE_PAGE}, .is_faulty = true};
    little_open(p, &options);
    np_beneath_begin(p->device, 0, 0);
    for (int i = 0; i < 3; i++) {
        little_malloc(p, 8 * LITTLE_PAGE, &blocks[i]);
    }
    ASSERT_FALSE(np_block_is_here(blocks[0].block));
}

/* What was written to while everything was home leaves with that, though the host has it as it was before. */
static void test_home_is_written(void **state)
{
    static little_program p;
    shadow_block blocks[4];
    (void)state;
    start_full(&p, blocks);
    ASSERT_OK(np_beneath_home(p.device, "a test"));
    ASSERT_TRUE(np_block_is_here(blocks[0].block));
    write_unseen(&p, &blocks[0]);
    little_exec(&p, "others", 0, (shadow_use[]){{&blocks[1], SHADOW_READ}, {&blocks[2], SHADOW_READ}}, 2);
    little_malloc(&p, 8 * LITTLE_PAGE, &blocks[3]);
    ASSERT_FALSE(np_block_is_here(blocks[0].block));
    for (int i = 0; i < 4; i++) {
        little_free(&p, &blocks[i]);
    }
    little_close(&p);
}

/* A block that is fixed is written to by whoever it is fixed for. It moves once more, to pages that can be shared. */
static void test_fixed_is_written(void **state)
{
    static little_program p;
    shadow_block blocks[3];
    uint32_t shared;
    (void)state;
    start_full(&p, blocks);
    ASSERT_OK(np_beneath_fix(p.device, blocks[0].block, false));
    write_unseen(&p, &blocks[0]);
    shared = blocks[0].block->view.numbers[7];
    np_pages_use(&p.device->pages, shared); /* as where it shares a page with a neighbour */
    ASSERT_OK(np_beneath_fix(p.device, blocks[0].block, true));
    ASSERT_NE(blocks[0].block->view.numbers[7], shared);
    np_pages_unuse(&p.device->pages, &shared, 1);
    for (int i = 0; i < 3; i++) {
        little_free(&p, &blocks[i]);
    }
    little_close(&p);
}

/* ---- what stays ---- */

static shadow_block *fixed;

static void fix_away(little_program *p)
{
    shadow_block *away = find_away(p);
    if (away) {
        ASSERT_OK(np_beneath_fix(p->device, away->block, false));
        ASSERT_NE(p->device->state, NEAP_STATE_RUN); /* the plan would have it away again */
        ASSERT_TRUE(np_block_is_here(away->block));
        fixed = away;
        p->after_event = NULL;
    }
}

/* A plan that takes a block away is left when the block is fixed, and not entered again while it lives. */
static void test_fix_away(void **state)
{
    static little_program p;
    (void)state;
    start(&p, 0.6);
    fixed = NULL;
    p.after_event = fix_away;
    little_laps(&p, 1);
    ASSERT_TRUE(fixed != NULL);
    little_laps(&p, 6);
    little_end(&p);
}

static void check_weight(little_program *p)
{
    const np_pattern *pattern = p->device->pattern;
    const neap_block *block = p->weights[0].block;
    ASSERT_TRUE(np_block_is_here(block));
    for (size_t i = 0; i < pattern->program.swaps.n && p->device->state == NEAP_STATE_RUN; i++) {
        ASSERT_FALSE(pattern->program.swaps.items[i].life == block->life && pattern->is_out[i]);
    }
}

/* A weight is fixed off the plan, as a capture does it: home first. No plan has it away from then on. */
static void test_fix_off_plan(void **state)
{
    static little_program p;
    (void)state;
    start(&p, 0.5);
    ASSERT_OK(np_beneath_home(p.device, "a test"));
    ASSERT_OK(np_beneath_fix(p.device, p.weights[0].block, false));
    p.after_event = check_weight;
    little_laps(&p, 12);
    p.after_event = NULL;
    little_end(&p);
}

static bool has_own_pages(const little_program *p, const neap_block *block)
{
    for (uint32_t i = 0; i < block->view.n_pages; i++) {
        if (np_pages_is_arena(&p->device->pages, block->view.numbers[i])) {
            return false;
        }
    }
    return true;
}

static void end_all(little_program *p, shadow_block *blocks, int n)
{
    for (int i = 0; i < n; i++) {
        little_free(p, &blocks[i]);
    }
    ASSERT_EQ(little_stats(p).live, 0);
    little_close(p);
}

/* A block cannot be brought back to be fixed: by no copy, by one copy of two, by no mapping. It is as any other then: it
 * comes when it is used, leaves when it is not, and can be fixed later. */
static void test_fix_fails(void **state)
{
    static const faulty_plan plans[] = {
        {.calls = 1u << FAULTY_COPY, .every = 1},
        {.calls = 1u << FAULTY_COPY, .every = 2},
        {.calls = 1u << FAULTY_MAP, .every = 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        static little_program p;
        shadow_block blocks[4];
        uint32_t n_tries = 0;
        start_full(&p, blocks);
        faulty_set(p.faulty, &plans[i]);
        while (np_beneath_fix(p.device, blocks[0].block, false) ==
               NEAP_OK) { /* with every second, it may be the next */
            ASSERT_LT(n_tries++, 1);
            ASSERT_TRUE(blocks[0].block->is_fixed && np_block_is_here(blocks[0].block));
            blocks[0].block->is_fixed = false;
            ASSERT_OK(np_block_depart(p.device, blocks[0].block));
        }
        faulty_set(p.faulty, &(faulty_plan){0});
        ASSERT_FALSE(blocks[0].block->is_fixed || p.device->is_fixed_away);
        ASSERT_EQ(np_block_is_here(blocks[0].block), plans[i].every == 2); /* the second copy came */
        ASSERT_TRUE(np_manager_is_valid(p.device));
        little_exec(&p, "others", 0, (shadow_use[]){{&blocks[1], SHADOW_UPDATE}, {&blocks[2], SHADOW_UPDATE}}, 2);
        ASSERT_FALSE(np_block_is_here(blocks[0].block)); /* it left, or had not come */
        little_exec(&p, "use", 0, &(shadow_use){&blocks[0], SHADOW_UPDATE}, 1);
        ASSERT_OK(np_beneath_fix(p.device, blocks[0].block, false));
        little_malloc(&p, 8 * LITTLE_PAGE, &blocks[3]);
        ASSERT_TRUE(np_block_is_here(blocks[0].block));
        end_all(&p, blocks, 4);
    }
}

/* No room: everything else on the device is fixed. */
static void test_fix_finds_no_room(void **state)
{
    static little_program p;
    little_options options = {.name = "sim:page=4KiB,memory=96KiB,link=4GB/s"};
    shadow_block blocks[3];
    (void)state;
    little_open(&p, &options);
    np_beneath_begin(p.device, 0, 0);
    for (int i = 0; i < 3; i++) { /* of 24 pages, some are for small blocks */
        little_malloc(&p, 9 * LITTLE_PAGE, &blocks[i]);
    }
    ASSERT_FALSE(np_block_is_here(blocks[0].block));
    ASSERT_OK(np_beneath_fix(p.device, blocks[1].block, false));
    ASSERT_OK(np_beneath_fix(p.device, blocks[2].block, false));
    ASSERT_STATUS(NEAP_DEVICE_FULL, np_beneath_fix(p.device, blocks[0].block, false));
    ASSERT_FALSE(blocks[0].block->is_fixed || p.device->is_fixed_away);
    ASSERT_TRUE(np_block_is_here(blocks[1].block) && np_block_is_here(blocks[2].block));
    ASSERT_TRUE(np_manager_is_valid(p.device));
    little_free(&p, &blocks[1]); /* there is room now */
    little_exec(&p, "use", 0, &(shadow_use){&blocks[0], SHADOW_UPDATE}, 1);
    ASSERT_OK(np_beneath_fix(p.device, blocks[0].block, false));
    little_free(&p, &blocks[0]);
    end_all(&p, &blocks[2], 1);
}

/* A block that is fixed must move, to be exported, and does not come back at first: no work is given before it has. */
static void test_fixed_is_away(void **state)
{
    static little_program p;
    shadow_block blocks[3];
    uint32_t shared;
    (void)state;
    start_full(&p, blocks);
    ASSERT_OK(np_beneath_fix(p.device, blocks[0].block, false));
    write_unseen(&p, &blocks[0]);
    shared = blocks[0].block->view.numbers[7];
    np_pages_use(&p.device->pages, shared);
    faulty_set(p.faulty, &(faulty_plan){.calls = 1u << FAULTY_MAP, .every = 1});
    ASSERT_STATUS(NEAP_NO_MEMORY, np_beneath_fix(p.device, blocks[0].block, true));
    np_pages_unuse(&p.device->pages, &shared, 1);
    ASSERT_TRUE(blocks[0].block->is_fixed && !blocks[0].block->is_exported);
    ASSERT_FALSE(np_block_is_here(blocks[0].block));
    ASSERT_TRUE(p.device->is_fixed_away);
    ASSERT_STATUS(NEAP_NO_MEMORY, np_beneath_return_fixed(p.device));
    ASSERT_TRUE(p.device->is_fixed_away);
    ASSERT_STATUS(NEAP_NO_MEMORY,
                  shadow_exec(&p.streams, "others", 0, 100, &(shadow_use){&blocks[2], SHADOW_UPDATE}, 1));
    faulty_set(p.faulty, &(faulty_plan){0});
    little_exec(&p, "others", 0, &(shadow_use){&blocks[2], SHADOW_UPDATE}, 1);
    ASSERT_TRUE(np_block_is_here(blocks[0].block));
    ASSERT_FALSE(p.device->is_fixed_away);
    ASSERT_OK(np_beneath_fix(p.device, blocks[0].block, true));
    ASSERT_TRUE(blocks[0].block->is_exported);
    end_all(&p, blocks, 3);
}

/* A block that is to be exported does not get away from its place in the arena, or finds no new pages and comes back
 * there; and the plan goes on with it at the next start. */
static void test_export_fails(void **state)
{
    static const faulty_call calls[] = {FAULTY_COPY, FAULTY_COMMIT};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        static little_program p;
        neap_block *block;
        start(&p, 0.7);
        block = p.weights[1].block;
        ASSERT_FALSE(has_own_pages(&p, block));
        faulty_set(p.faulty, &(faulty_plan){.calls = 1u << calls[i], .every = 1});
        ASSERT_STATUS(i == 0 ? NEAP_DEVICE_FAILED : NEAP_DEVICE_FULL, np_beneath_fix(p.device, block, true));
        faulty_set(p.faulty, &(faulty_plan){0});
        ASSERT_TRUE(np_block_is_here(block));
        ASSERT_FALSE(block->is_fixed || block->is_exported || p.device->is_fixed_away);
        ASSERT_TRUE(p.device->newest == block); /* it may leave */
        little_laps(&p, 4);
        ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
        little_end(&p);
    }
}

static uint32_t pages_then[64];

static void check_pages(little_program *p)
{
    const np_view *view = &p->weights[1].block->view;
    ASSERT_EQ(memcmp(view->numbers, pages_then, view->n_pages * sizeof *view->numbers), 0);
    ASSERT_TRUE(has_own_pages(p, p->weights[1].block));
}

/* An exported block's very pages stay, outside the arena. */
static void test_export(void **state)
{
    static little_program p;
    const np_view *view;
    (void)state;
    start(&p, 0.7);
    ASSERT_OK(np_beneath_fix(p.device, p.weights[1].block, true));
    view = &p.weights[1].block->view;
    ASSERT_LE(view->n_pages, 64);
    memcpy(pages_then, view->numbers, view->n_pages * sizeof *pages_then);
    check_pages(&p);
    p.after_event = check_pages;
    little_laps(&p, 12);
    p.after_event = NULL;
    little_end(&p);
}

/* ---- uses that were not planned ---- */

/* Of a block that is there: the plan goes on. */
static void test_late_use(void **state)
{
    static little_program p;
    (void)state;
    start(&p, 0);
    little_lap(&p, (little_twist){LITTLE_OTHER_BLOCK, 4});
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
    ASSERT_EQ(p.device->stats.n_departures, 0);
    little_lap(&p, (little_twist){LITTLE_OTHER_USES, 2}); /* fewer than planned */
    ASSERT_EQ(p.device->stats.n_departures, 0);
    little_end(&p);
}

/* Work on another stream than planned, every lap at another layer: the plan goes on, and no byte is out of order (the
 * simulated device watches, and contents are compared). */
static void test_other_stream(void **state)
{
    static const double shares[] = {0, 0.5, 0.7};
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        static little_program p;
        start(&p, shares[i]);
        for (uint32_t layer = 0; layer < 12; layer++) {
            little_lap(&p, (little_twist){LITTLE_OTHER_STREAM, layer});
            ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
        }
        ASSERT_EQ(p.device->stats.n_departures, 0);
        little_end(&p);
    }
}

/* A late use is known by a mark of the planned stream, which is 0 here: all others stand for it there. */
static void check_late(little_program *p)
{
    const np_pattern *pattern = p->device->pattern;
    for (size_t i = 0; i < pattern->program.lives.n && p->device->state == NEAP_STATE_RUN; i++) {
        ASSERT_TRUE(pattern->late[i] == 0 || pattern->late_stream[i] == 0);
    }
}

/* And it changes what it was to read. */
static void test_change_elsewhere(void **state)
{
    static little_program p;
    (void)state;
    start(&p, 0);
    p.after_event = check_late;
    for (uint32_t layer = 0; layer < p.options.n_layers; layer++) {
        little_lap(&p, (little_twist){LITTLE_OTHER_CHANGE, layer});
        little_check(&p);
    }
    ASSERT_EQ(p.device->stats.n_departures, 0);
    ASSERT_GT(p.device->n_late, 0);
    little_end(&p);
}

/* Of one that is away: it is fetched, and a plan with that use is made. */
static void test_absent_use(void **state)
{
    static little_program p;
    uint64_t n_departures;
    (void)state;
    start(&p, 0.5);
    p.device->visit.bytes_max = 0; /* visits have tests of their own */
    for (uint32_t layer = 2; layer < p.options.n_layers; layer++) {
        little_lap(&p, (little_twist){LITTLE_OTHER_BLOCK, layer});
        little_laps(&p, 3);
    }
    n_departures = p.device->stats.departures[NEAP_DEPARTURE_ABSENT];
    ASSERT_GE(n_departures, 1);
    ASSERT_GE(little_count(&p, "were used while they were away"), 1);
    little_end(&p);
}

/* ---- random programs ---- */

static random_settings beneath_settings(uint64_t seed)
{
    np_rng rng = np_rng_make(seed ^ 0xbe9ea);
    random_settings settings = random_settings_make(seed);
    settings.is_beneath = true;
    settings.is_plain = false;
    settings.is_loud = getenv("NEAP_RANDOM_LOUD") != NULL;
    settings.is_valid_each_event |= getenv("NEAP_RANDOM_VALID") != NULL;
    settings.is_sim = settings.is_sim && !TEST_RACES; /* it has no threads */
    settings.margin = np_rng_below(&rng, 10) < 7 ? 0 : (uint32_t)np_rng_below(&rng, 4);
    settings.beneath_from = np_rng_below(&rng, 10) < 6 ? 5 + (uint32_t)np_rng_below(&rng, 4) : 0;
    if (np_rng_below(&rng, 10) == 0) {
        settings.limit_share = settings.limit_bytes_share = 0;
        settings.overhead = 0.5 * np_rng_unit(&rng);
    } else if (np_rng_below(&rng, 10) < 6) { /* most have a limit: there is nothing to go wrong without swaps */
        settings.limit_bytes_share = 0;
        settings.limit_share = 0.4 + 0.5 * np_rng_unit(&rng);
    }
    return settings;
}

typedef struct tally {
    uint64_t n_planned;
    uint64_t n_swapped;
    uint64_t n_departed;
    uint64_t n_resumed;
    uint64_t n_late;
    uint64_t n_visits;
    uint64_t n_blurred;
    uint64_t n_home;
    uint64_t n_strays;
    uint64_t n_faults;
} tally;

static void run_one(const random_settings *settings, tally *t)
{
    random_outcome outcome;
    random_program_run(settings, &outcome);
    if (!outcome.is_good) {
        test_fail(__FILE__, __LINE__,
                  "the program of seed %llu failed: %s\n  again: NEAP_RANDOM_SEED=%llu NEAP_RANDOM_N=1",
                  (unsigned long long)settings->seed, outcome.text, (unsigned long long)settings->seed);
    }
    t->n_planned += outcome.has_planned;
    t->n_swapped += outcome.has_swapped;
    t->n_departed += outcome.has_departed;
    t->n_resumed += outcome.has_resumed;
    t->n_late += outcome.n_late;
    t->n_visits += outcome.n_visits;
    t->n_blurred += outcome.n_blurred;
    t->n_home += outcome.n_home;
    t->n_strays += outcome.n_strays;
    t->n_faults += outcome.n_faults + outcome.n_memory_fails;
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void print_tally(const tally *t, uint64_t n)
{
    print_message(
        "%llu programs: %llu on a plan, %llu with swaps, %llu departed, %llu resumed; %llu uses made up, %llu "
        "of them late; %llu visits; %llu times home; %llu strays; %llu faults\n",
        (unsigned long long)n, (unsigned long long)t->n_planned, (unsigned long long)t->n_swapped,
        (unsigned long long)t->n_departed, (unsigned long long)t->n_resumed, (unsigned long long)t->n_blurred,
        (unsigned long long)t->n_late, (unsigned long long)t->n_visits, (unsigned long long)t->n_home,
        (unsigned long long)t->n_strays, (unsigned long long)t->n_faults);
}

static void test_random_programs(void **state)
{
    uint64_t first = number_from("NEAP_RANDOM_SEED", 1);
    uint64_t n = number_from("NEAP_RANDOM_N", TEST_RACES       ? test_rounds(14, 100)
                                              : TEST_SANITIZED ? test_rounds(50, 100)
                                                               : test_rounds(60, 1000));
    tally t = {0};
    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        random_settings settings = beneath_settings(seed);
        run_one(&settings, &t);
    }
    print_tally(&t, n);
    if (n >= 60) { /* far below what is usual, far above nothing */
        ASSERT_GE(t.n_planned * 100, n * 35);
        ASSERT_GE(t.n_swapped * 100, n * 8);
        ASSERT_GE(t.n_departed * 100, n * 25);
        ASSERT_GE(t.n_resumed * 100, n * 8);
        ASSERT_GE(t.n_late, n / 10);
        ASSERT_GE(t.n_visits, n);
        ASSERT_GE(t.n_home, n / 10);
        ASSERT_GE(t.n_strays, n / 2);
    }
}

/* ---- failures ---- */

/* Calls of the device fail; the program tries again, or goes without. */
static void test_faults(void **state)
{
    uint64_t n = number_from("NEAP_RANDOM_N", TEST_RACES       ? test_rounds(7, 60)
                                              : TEST_SANITIZED ? test_rounds(30, 60)
                                                               : test_rounds(30, 300));
    uint64_t first = number_from("NEAP_RANDOM_SEED", 1);
    tally t = {0};
    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        np_rng rng = np_rng_make(seed);
        random_settings settings = beneath_settings(seed);
        settings.learns_at_once = true;
        settings.n_threads = 1;
        settings.tries_again = np_rng_below(&rng, 2) == 0;
        settings.faults = (faulty_plan){.calls = 1u << np_rng_below(&rng, FAULTY_N_CALLS),
                                        .probability = np_rng_below(&rng, 2) ? 0.002 : 0.05 * np_rng_unit(&rng),
                                        .seed = seed};
        run_one(&settings, &t);
    }
    print_tally(&t, n);
    if (n >= 30) {
        ASSERT_GE(t.n_faults, n / 4);
        ASSERT_GE(t.n_planned, n / 10);
    }
}

#if !TEST_RACES /* one thread */

static random_settings memory_settings(uint64_t seed)
{
    random_settings settings = beneath_settings(seed);
    settings.n_threads = 1;
    settings.memory_share = 0;
    settings.learns_at_once = true;
    settings.watches_memory = true;
    settings.tries_again = true;
    settings.is_valid_each_event = false;
    return settings;
}

/* Each allocation of host memory in turn, of a program in which everything happens. Few are so: the first is number 203, unless
 * the planner, whom the clock stops, found other plans. */
static void test_host_memory(void **state)
{
    uint64_t seed = 200;
    random_settings settings = memory_settings(seed);
    random_outcome outcome = {0};
    tally t = {0};
    size_t n_calls;
    (void)state;
    while (!(outcome.has_swapped && outcome.has_departed && outcome.n_home > 0 && outcome.n_late > 0 &&
             outcome.n_visits > 0 && outcome.n_strays > 0 && outcome.n_memory_calls < 20000)) {
        ASSERT_LT(seed, 1000);
        settings = memory_settings(seed++);
        random_program_run(&settings, &outcome);
    }
    n_calls = outcome.n_memory_calls;
    for (size_t n = 1; n <= n_calls; n += 1 + n / (TEST_SANITIZED ? 8 : test_rounds(25, 200))) {
        settings.memory_fails_at = n;
        run_one(&settings, &t);
    }
    ASSERT_GE(t.n_faults, 20);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_home),
        cmocka_unit_test(test_home_is_full),
        cmocka_unit_test(test_home_is_written),
        cmocka_unit_test(test_fixed_is_written),
        cmocka_unit_test(test_fix_away),
        cmocka_unit_test(test_fix_off_plan),
        cmocka_unit_test(test_export),
        cmocka_unit_test(test_fix_fails),
        cmocka_unit_test(test_fix_finds_no_room),
        cmocka_unit_test(test_fixed_is_away),
        cmocka_unit_test(test_export_fails),
        cmocka_unit_test(test_late_use),
        cmocka_unit_test(test_other_stream),
        cmocka_unit_test(test_change_elsewhere),
        cmocka_unit_test(test_absent_use),
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_faults),
#if !TEST_RACES
        cmocka_unit_test(test_host_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
