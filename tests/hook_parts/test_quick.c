/* Launches that are just what the plan expects: two devices are given the same calls, and one of them has no way but the long
 * one. Whatever is done to the program between its iterations and inside them, both must be in the same state after each
 * call. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "hook/core.h"
#include "run/pass.h"
#include "testing.h"

enum { PAGE = 4096, N_STREAMS = 2, N_PARAMETERS = 3, N_WEIGHTS = 3, N_VALUES = 4, N_LAUNCHES = 10 };
enum { EXTRA = N_WEIGHTS + N_VALUES, N_BLOCKS };

/* ---- doubles ---- */

np_hook np_the_hook; /* core.c and its like are left out */
NP_HOOK_THREAD bool np_hook_is_copier;

const char np_hook_peers[] = "peers";

void np_hook_step_aside(const char *why)
{
    (void)why;
    fail();
}

/* Stream 0x40 is lane 0, 0x41 is lane 1. */
neap_status np_hook_lane(np_hook_device *device, void *stream, np_stream *lane)
{
    (void)device;
    *lane = (np_stream)((uintptr_t)stream % N_STREAMS);
    return NEAP_OK;
}

static np_cu_result kernel_parameter(np_cu_kernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    (void)kernel;
    *offset = 8 * index;
    *bytes = index + 1 == N_PARAMETERS ? 32 : 8;
    return index < N_PARAMETERS ? NP_CU_SUCCESS : NP_CU_INVALID_VALUE;
}

static np_cu_result is_capturing(np_cu_stream stream, np_cu_capture_status *status)
{
    (void)stream;
    *status = NP_CU_CAPTURE_NONE;
    return NP_CU_SUCCESS;
}

/* ---- two devices ---- */

typedef struct scene {
    np_device *raw;
    np_hook_device device;
    neap_block *blocks[N_BLOCKS]; /* weights, values, and EXTRA, which is there at times */
    uint64_t n_quick;
    uint64_t n_waits; /* of streams for others, all told */
    bool can_be_quick;
} scene;

static np_device_interface api;
static neap_status (*real_wait)(np_device *device, np_stream stream, np_stream other, uint64_t mark);
static uint64_t n_waits; /* of the scene that is being called */

static neap_status note_wait(np_device *device, np_stream stream, np_stream other, uint64_t mark)
{
    n_waits += stream != other && mark > 0;
    return real_wait(device, stream, other, mark);
}

static void note_begin(np_device *device, np_stream stream, np_times *times)
{
    uint64_t n_given = device->api->mark(device, 0) + device->api->mark(device, 1);
    (void)stream;
    if (times) {
        *times = (np_times){20000 * n_given, 20000};
    }
}

static uint64_t note_end(np_device *device, np_stream stream)
{
    np_task task = {.duration_ns = 20000};
    uint64_t mark = 0;
    ASSERT_OK(device->api->launch(device, stream, &task, &mark));
    return mark;
}

static neap_status note_adopt(np_device *device, np_stream stream, void *native)
{
    (void)device;
    (void)stream;
    (void)native;
    return NEAP_OK;
}

static neap_block *make(scene *s, uint64_t bytes)
{
    np_hook_entry entry = {0};
    ASSERT_OK(np_malloc_locked(s->device.manager, bytes, &entry.block));
    entry.begin = entry.block->address;
    entry.end = entry.begin + bytes;
    if (!entry.block->pattern) { /* as blocks.c does */
        np_hook_recall_forget(&s->device.recall);
    }
    ASSERT_OK(np_hook_index_add(&s->device.index, &entry));
    return entry.block;
}

static void drop(scene *s, neap_block *block)
{
    np_hook_entry entry;
    ASSERT_TRUE(np_hook_index_remove(&s->device.index, block->address, &entry));
    if (!block->pattern || s->device.manager->state != NEAP_STATE_RUN) {
        np_hook_recall_forget(&s->device.recall);
    }
    ASSERT_OK(np_free_locked(s->device.manager, block));
}

static void open_scene(scene *s, bool can_be_quick)
{
    neap_device_options options = {.min_block = PAGE, .plan_seconds = 0.05, .refinements = UINT32_MAX};
    memset(s, 0, sizeof *s);
    np_the_hook.driver.kernel_parameter = kernel_parameter;
    np_the_hook.driver.stream_is_capturing = is_capturing;
    ASSERT_OK(np_device_open("sim:page=4096,memory=4MiB,streams=2,link=4GB/s", NULL, NULL, &s->raw));
    api = *s->raw->api;
    api.begin = note_begin;
    api.end = note_end;
    api.adopt = note_adopt;
    real_wait = api.wait;
    api.wait = note_wait;
    s->raw->api = &api;
    ASSERT_OK(np_manager_open(s->raw, &options, NULL, &s->device.manager));
    s->device.manager->learner.learns_at_once = true;
    np_beneath_begin(s->device.manager, 0, 0);
    np_hook_index_init(&s->device.index, &np_memory_default);
    np_hook_kernels_init(&s->device.kernels, &np_memory_default);
    np_hook_recall_init(&s->device.recall, &np_memory_default);
    s->can_be_quick = can_be_quick;
    for (int i = 0; i < N_STREAMS; i++) { /* a stream that is not known is never quick */
        s->device.streams[i] = can_be_quick ? (void *)(uintptr_t)(0x40 + i) : (void *)(uintptr_t)8;
    }
    for (int i = 0; i < N_WEIGHTS; i++) {
        s->blocks[i] = make(s, (3 + (uint64_t)i) * PAGE);
    }
}

static void close_scene(scene *s)
{
    ASSERT_TRUE(np_manager_is_valid(s->device.manager));
    np_array_free(s->device.manager->memory, &s->device.uses);
    np_array_free(s->device.manager->memory, &s->device.hits);
    np_hook_index_free(&s->device.index);
    np_hook_kernels_forget(&s->device.kernels);
    np_hook_recall_free(&s->device.recall);
    neap_close(s->device.manager);
}

/* ---- launches ---- */

/* What a launch is, told in a way that is true of both devices: blocks by number, or -1. */
typedef struct told {
    unsigned kernel;
    unsigned stream;
    int blocks[3];
    int stale; /* a word that nobody uses */
    uint64_t number;
} told;

static neap_block *block_of(const scene *s, int number)
{
    return number < 0 ? NULL : s->blocks[number];
}

static uint64_t word_of(const scene *s, int number, uint64_t offset)
{
    const neap_block *block = block_of(s, number);
    return block ? (uint64_t)(uintptr_t)block->address + offset : 0;
}

static void give(scene *s, const told *t)
{
    struct {
        void *function;
        unsigned int numbers[8];
        void *stream;
        void **parameters;
        void **extra;
    } arguments = {.function = (void *)(uintptr_t)(0x100 + t->kernel)};
    uint64_t words[N_PARAMETERS - 1 + 4] = {word_of(s, t->blocks[0], 0), word_of(s, t->blocks[1], 100), t->number,
                                            word_of(s, t->blocks[2], 8), word_of(s, t->stale, 16)};
    void *parameters[N_PARAMETERS] = {&words[0], &words[1], &words[2]};
    size_t bytes = sizeof words;
    void *extra[] = {(void *)1, words, (void *)2, &bytes, NULL};
    bool per_thread;
    const np_hook_call *call = np_hook_call_find("cuLaunchKernel", &per_thread);
    char name[16];
    int result = 0;
    np_cupti_data data = {.function_name = "cuLaunchKernel", .parameters = &arguments, .symbol_name = name};
    (void)snprintf(name, sizeof name, "kernel_%u", t->kernel);
    arguments.stream = (void *)(uintptr_t)(0x40 + t->stream);
    if (t->kernel % 3 == 2) { /* all in one buffer */
        arguments.extra = extra;
    } else {
        arguments.parameters = parameters;
    }
    n_waits = 0;
    if (!s->can_be_quick) {
        np_hook_recall_forget(&s->device.recall);
    }
    np_hook_see_before(&s->device, call, false, &data);
    s->n_quick += s->device.quick != NULL;
    data.site = NP_CUPTI_EXIT;
    data.result = &result;
    np_hook_see_after(&s->device, call, false, &data);
    s->n_waits += n_waits;
    ASSERT_TRUE(s->device.quick == NULL);
}

static bool is_clean(const neap_block *block)
{
    return np_clean_has(&block->clean, 0, block->bytes);
}

static void compare(const scene *a, const scene *b)
{
    const neap_device *m = a->device.manager;
    const neap_device *n = b->device.manager;
    ASSERT_EQ(m->state, n->state);
    ASSERT_EQ(m->stats.n_events, n->stats.n_events);
    ASSERT_EQ(m->stats.n_iterations, n->stats.n_iterations);
    ASSERT_EQ(m->stats.n_departures, n->stats.n_departures);
    ASSERT_EQ(m->stats.bytes_out, n->stats.bytes_out);
    ASSERT_EQ(m->n_late, n->n_late);
    ASSERT_GE(a->n_waits, b->n_waits); /* late uses may wait for more */
    ASSERT_GE(m->n_settled, m->stats.n_departures);
    ASSERT_EQ(m->has_late, n->has_late);
    ASSERT_EQ(a->device.facts.n_launches, b->device.facts.n_launches);
    ASSERT_EQ(a->device.facts.n_words, b->device.facts.n_words);
    for (np_stream i = 0; i < N_STREAMS; i++) {
        ASSERT_EQ(a->raw->api->mark(a->raw, i), b->raw->api->mark(b->raw, i));
    }
    if (m->state == NEAP_STATE_RUN) {
        ASSERT_EQ(m->cursor, n->cursor);
        ASSERT_EQ(m->pattern->hash, n->pattern->hash);
        for (uint32_t i = 0; i < m->pattern->program.n_execs; i++) {
            ASSERT_EQ(m->pattern->exec_marks[i], n->pattern->exec_marks[i]);
        }
        for (size_t i = 0; i < m->pattern->program.lives.n; i++) {
            ASSERT_EQ(m->pattern->late[i], n->pattern->late[i]);
        }
    }
    for (int i = 0; i < N_BLOCKS; i++) {
        const neap_block *x = block_of(a, i);
        const neap_block *y = block_of(b, i);
        ASSERT_TRUE((x != NULL) == (y != NULL) && (!x || is_clean(x) == is_clean(y)));
        ASSERT_TRUE(!x || x->life == y->life);
    }
}

/* ---- an iteration ---- */

typedef struct twins {
    scene quick;
    scene slow;
} twins;

static void give_both(twins *t, const told *call)
{
    give(&t->quick, call);
    give(&t->slow, call);
    compare(&t->quick, &t->slow);
}

static void make_both(twins *t, neap_block **quick, neap_block **slow, uint64_t bytes)
{
    *quick = make(&t->quick, bytes);
    *slow = make(&t->slow, bytes);
    compare(&t->quick, &t->slow);
}

static void drop_both(twins *t, neap_block **quick, neap_block **slow)
{
    neap_block *a = *quick;
    neap_block *b = *slow;
    *quick = *slow = NULL;
    drop(&t->quick, a);
    drop(&t->slow, b);
    compare(&t->quick, &t->slow);
}

static void send_away(scene *s, int number)
{
    neap_block *block = block_of(s, number);
    if (block && !block->pattern && s->device.manager->state != NEAP_STATE_RUN) {
        (void)np_block_depart(s->device.manager, block);
    }
}

static void unload(scene *s)
{
    np_hook_kernels_forget(&s->device.kernels);
    np_hook_recall_forget(&s->device.recall);
}

/* What a launch of the iteration is, without what is done to it: the same in all. */
static told planned(int launch, bool has_sides)
{
    told t = {.kernel = (unsigned)launch % 4, .stream = has_sides && launch % 4 == 3, .stale = -1};
    for (int i = 0; i < 3; i++) {
        t.blocks[i] = i == 1 ? (launch * 2) % N_WEIGHTS : N_WEIGHTS + (launch / 3 + i) % N_VALUES;
    }
    return t;
}

/* Something that the plan did not expect, or that makes no difference. `rare`: one in so many. */
static void disturb(twins *t, told *call, np_rng *rng, uint64_t rare)
{
    call->number = np_rng_below(rng, 1000);
    if (np_rng_below(rng, rare) > 0) {
        return;
    }
    switch (np_rng_below(rng, 8)) {
    case 0:
    case 1:
        call->stale = (int)np_rng_below(rng, N_BLOCKS);
        break;
    case 2:
        call->stream = 1 - call->stream;
        break;
    case 3:
        call->blocks[np_rng_below(rng, 3)] = -1;
        break;
    case 4:
        call->blocks[np_rng_below(rng, 3)] = (int)np_rng_below(rng, EXTRA);
        break;
    case 5:
        unload(&t->quick);
        unload(&t->slow);
        break;
    case 6:
        call->kernel = 9;
        break;
    default:
        if (t->quick.blocks[EXTRA]) {
            drop_both(t, &t->quick.blocks[EXTRA], &t->slow.blocks[EXTRA]);
        } else {
            make_both(t, &t->quick.blocks[EXTRA], &t->slow.blocks[EXTRA], 5 * PAGE);
        }
    }
}

static void iterate(twins *t, np_rng *rng, uint64_t rare, bool has_sides)
{
    for (int i = 0; i < N_VALUES; i++) {
        make_both(t, &t->quick.blocks[N_WEIGHTS + i], &t->slow.blocks[N_WEIGHTS + i], (4 + (uint64_t)i) * PAGE);
    }
    for (int i = 0; i < N_LAUNCHES; i++) {
        told call = planned(i, has_sides);
        disturb(t, &call, rng, rare);
        give_both(t, &call);
    }
    for (int i = 0; i < N_VALUES; i++) {
        drop_both(t, &t->quick.blocks[N_WEIGHTS + i], &t->slow.blocks[N_WEIGHTS + i]);
    }
    if (np_rng_below(rng, rare) == 0) { /* off the plan, some leave: their copies are true until somebody writes */
        int number = (int)np_rng_below(rng, N_WEIGHTS);
        send_away(&t->quick, number);
        send_away(&t->slow, number);
    }
}

static void run_twins(uint64_t seed, uint64_t rare, bool has_sides, uint64_t least_quick)
{
    static twins t;
    np_rng rng = np_rng_make(seed);
    open_scene(&t.quick, true);
    open_scene(&t.slow, false);
    for (int i = 0; i < 60; i++) {
        iterate(&t, &rng, rare, has_sides);
    }
    ASSERT_EQ(t.slow.n_quick, 0);
    ASSERT_GE(t.quick.n_quick, least_quick);
    ASSERT_TRUE(rare < UINT64_MAX || t.quick.n_waits == t.slow.n_waits);
    close_scene(&t.quick);
    close_scene(&t.slow);
}

static void test_undisturbed(void **state)
{
    (void)state;
    run_twins(1, UINT64_MAX, false, 200); /* all but the first of each lap, once it is on the plan */
    run_twins(2, UINT64_MAX, true, 50);
}

static void test_disturbed(void **state)
{
    const uint64_t n = 60;
    (void)state;
    for (uint64_t seed = 0; seed < n; seed++) {
        run_twins(seed, seed % 2 ? 30 : 100, seed % 3 == 0, 0);
    }
}

/* ---- one by one ---- */

/* On the plan, with a launch that is quick. */
static void settle(twins *t)
{
    np_rng rng = np_rng_make(3);
    open_scene(&t->quick, true);
    open_scene(&t->slow, false);
    for (int i = 0; i < 40 && t->quick.n_quick < 50; i++) {
        iterate(t, &rng, UINT64_MAX, false);
    }
    ASSERT_GE(t->quick.n_quick, 50);
    for (int i = 0; i < N_VALUES; i++) {
        make_both(t, &t->quick.blocks[N_WEIGHTS + i], &t->slow.blocks[N_WEIGHTS + i], (4 + (uint64_t)i) * PAGE);
    }
    for (int i = 0; i < 3; i++) {
        told call = planned(i, false);
        give_both(t, &call);
    }
    t->quick.n_quick = 0;
}

static void finish(twins *t)
{
    close_scene(&t->quick);
    close_scene(&t->slow);
}

/* Each of these alone makes a launch go the long way; the next one is quick again, or not. */
static void test_reasons(void **state)
{
    static twins t;
    (void)state;
    for (int reason = 0; reason < 9; reason++) {
        told call = planned(3, false);
        neap_device *m;
        settle(&t);
        m = t.quick.device.manager;
        switch (reason) {
        case 1:
            call.number = word_of(&t.quick, 0, 0); /* an address, where there was none */
            break;
        case 2:
            m->n_settled++;
            break;
        case 3:
            m->stats.bytes_out++;
            break;
        case 4:
            m->has_late = true;
            m->late[1] = 1;
            break;
        case 5:
            np_hook_recall_forget(&t.quick.device.recall);
            break;
        case 6:
            t.quick.device.streams[0] = NULL; /* it has gone */
            break;
        case 7:
            t.quick.device.n_captures = 1;
            break;
        case 8:
            m->has_late = true; /* on its own stream: the order is there already */
            m->late[0] = 1;
            break;
        default:
            break;
        }
        give(&t.quick, &call);
        ASSERT_EQ(t.quick.n_quick, reason == 0 || reason == 8);
        t.quick.device.n_captures = 0;
        m->late[0] = m->late[1] = 0;
        m->has_late = false;
        m->stats.bytes_out = 0;
        ASSERT_EQ(m->state, NEAP_STATE_RUN);
        finish(&t);
    }
}

/* What was written is not clean, however quickly it was. */
static void test_clean(void **state)
{
    static twins t;
    (void)state;
    settle(&t);
    for (int i = 3; i < N_LAUNCHES; i++) {
        told call = planned(i, false);
        for (int k = 0; k < N_WEIGHTS; k++) { /* as if all had been copied out */
            np_clean_note(&t.quick.blocks[k]->clean, 0, t.quick.blocks[k]->bytes);
            np_clean_note(&t.slow.blocks[k]->clean, 0, t.slow.blocks[k]->bytes);
        }
        t.quick.device.manager->stats.bytes_out++;
        t.slow.device.manager->stats.bytes_out++;
        give_both(&t, &call);
        ASSERT_FALSE(is_clean(t.quick.blocks[call.blocks[1]]));
    }
    ASSERT_EQ(t.quick.n_quick, 0);
    finish(&t);
}

/* As if the plan took one block away, or none. */
static void pretend_swap(scene *s, int number, bool is_swapped)
{
    np_program *program = &s->device.manager->pattern->program;
    program->swaps.n = is_swapped;
    program->lives.items[block_of(s, number)->life].swapped = is_swapped;
}

/* With swaps, who uses and writes a block that leaves is noted each time; of others, once. */
static void test_swaps(void **state)
{
    enum { SWAPPED = 1 };
    static twins t;
    bool has_more = false;
    (void)state;
    settle(&t);
    np_hook_recall_forget(&t.quick.device.recall); /* the plan that was seen so far has none, and less was noted */
    for (int k = 0; k < EXTRA; k++) {
        block_of(&t.quick, k)->clean = block_of(&t.slow, k)->clean;
        block_of(&t.quick, k)->used_by = block_of(&t.slow, k)->used_by;
    }
    for (int lap = 0; lap < 4; lap++) {
        for (int i = lap == 0 ? 3 : 0; i < N_LAUNCHES; i++) {
            told call = planned(i, false);
            pretend_swap(&t.quick, SWAPPED, true);
            pretend_swap(&t.slow, SWAPPED, true);
            give_both(&t, &call);
            pretend_swap(&t.quick, SWAPPED, false);
            pretend_swap(&t.slow, SWAPPED, false);
            for (int k = 0; k < EXTRA; k++) {
                uint64_t n_writes = block_of(&t.slow, k)->clean.n_writes;
                ASSERT_LE(block_of(&t.quick, k)->clean.n_writes, n_writes);
                ASSERT_EQ(block_of(&t.quick, k)->clean.n_writes == 0, n_writes == 0);
                has_more |= block_of(&t.quick, k)->clean.n_writes < n_writes;
            }
            ASSERT_EQ(block_of(&t.quick, SWAPPED)->clean.n_writes, block_of(&t.slow, SWAPPED)->clean.n_writes);
            ASSERT_EQ(block_of(&t.quick, SWAPPED)->used_by, block_of(&t.slow, SWAPPED)->used_by);
        }
        for (int i = 0; i < N_VALUES; i++) {
            drop_both(&t, &t.quick.blocks[N_WEIGHTS + i], &t.slow.blocks[N_WEIGHTS + i]);
        }
        for (int i = 0; i < N_VALUES; i++) {
            make_both(&t, &t.quick.blocks[N_WEIGHTS + i], &t.slow.blocks[N_WEIGHTS + i], (4 + (uint64_t)i) * PAGE);
        }
    }
    ASSERT_GT(t.quick.n_quick, 10);
    ASSERT_TRUE(has_more);
    finish(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undisturbed), cmocka_unit_test(test_disturbed), cmocka_unit_test(test_swaps),
        cmocka_unit_test(test_reasons),     cmocka_unit_test(test_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
