/* Looking away from the program's work: when it begins, what it passes over, and that whatever needs sight ends it first. */
#include <stdlib.h>
#include <string.h>

#include "hook/core.h"
#include "testing.h"

enum { PAGE = 4096, N_BLOCKS = 4, ENOUGH_LAPS = 100, EXEC_NS = 1000000 };

#define STREAM ((void *)0x40)
#define OTHER ((void *)0x41)

/* ---- doubles ---- */

np_hook np_the_hook; /* core.c and its like are left out */
NP_HOOK_THREAD bool np_hook_is_inside;
NP_HOOK_THREAD np_hook_device *np_hook_held;
NP_HOOK_THREAD bool np_hook_is_copier;

static np_hook_device device;
static bool is_watched;
static bool fails_to_end;   /* CUPTI, to tell no more, */
static bool fails_to_begin; /* and to tell again */
static uint32_t n_asked;    /* times that it was told what to tell */

np_hook_device *np_hook_device_get(int ordinal)
{
    ASSERT_EQ(ordinal, 0);
    return &device;
}

neap_status np_hook_lane(np_hook_device *of, void *stream, np_stream *lane)
{
    *lane = (np_stream)((uintptr_t)stream % 2);
    of->streams[*lane] = stream;
    return NEAP_OK;
}

const char np_hook_peers[] = "peers";

void np_hook_step_aside(const char *why)
{
    np_the_hook.aside = why;
}

bool np_hook_watch_work(bool is_wanted)
{
    n_asked++;
    if (is_wanted ? fails_to_begin : fails_to_end) {
        return false;
    }
    is_watched = is_wanted;
    return true;
}

static bool is_pytorch;

bool np_hook_is_pytorch(void)
{
    return is_pytorch;
}

void np_hook_subscribe(void)
{
}

int np_hook_pool_malloc(int ordinal, uint64_t bytes, void *stream, void **address)
{
    (void)ordinal;
    (void)bytes;
    (void)stream;
    (void)address;
    return 1;
}

bool np_hook_pool_has(const void *address)
{
    (void)address;
    return false;
}

bool np_hook_is_beside_capture(void)
{
    return false;
}

bool np_hook_pool_free(void *address, void *stream)
{
    (void)address;
    (void)stream;
    return false;
}

static np_cu_result kernel_parameter(np_cu_kernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    (void)kernel;
    *offset = 0;
    *bytes = 8;
    return index == 0 ? NP_CU_SUCCESS : NP_CU_INVALID_VALUE;
}

static np_cu_result is_capturing(np_cu_stream stream, np_cu_capture_status *status)
{
    (void)stream;
    *status = NP_CU_CAPTURE_NONE;
    return NP_CU_SUCCESS;
}

/* ---- the device: work is counted, and nothing else ---- */

static np_device_interface api;

static void note_begin(np_device *of, np_stream stream, np_times *times)
{
    (void)stream;
    if (times) {
        *times = (np_times){EXEC_NS * (of->api->mark(of, 0) + of->api->mark(of, 1)), EXEC_NS};
    }
}

static uint64_t note_end(np_device *of, np_stream stream)
{
    np_task task = {.duration_ns = EXEC_NS};
    uint64_t mark = 0;
    ASSERT_OK(of->api->launch(of, stream, &task, &mark));
    return mark;
}

static neap_status note_adopt(np_device *of, np_stream stream, void *native)
{
    (void)of;
    (void)stream;
    (void)native;
    return NEAP_OK;
}

static void open_scene_at(double limit_share, double overhead)
{
    neap_device_options options = {.min_block = PAGE, .plan_seconds = 0.05, .limit_share = limit_share};
    np_device *raw;
    memset(&device, 0, sizeof device);
    memset(&np_the_hook, 0, sizeof np_the_hook);
    is_watched = is_pytorch = true;
    fails_to_end = fails_to_begin = false;
    n_asked = 0;
    np_the_hook.driver.kernel_parameter = kernel_parameter;
    np_the_hook.driver.stream_is_capturing = is_capturing;
    np_the_hook.settings.mode = NP_HOOK_RUN;
    np_the_hook.is_seeing = true;
    np_the_hook.devices[0] = &device;
    ASSERT_OK(np_device_open("sim:page=4096,memory=4MiB,streams=2,link=4GB/s", NULL, NULL, &raw));
    api = *raw->api;
    api.begin = note_begin;
    api.end = note_end;
    api.adopt = note_adopt;
    raw->api = &api;
    ASSERT_OK(np_manager_open(raw, &options, NULL, &device.manager));
    device.manager->learner.learns_at_once = true;
    np_beneath_begin(device.manager, 0, overhead);
    device.manager->is_limit_late = true;
    np_hook_index_init(&device.index, &np_memory_default);
    np_hook_kernels_init(&device.kernels, &np_memory_default);
    np_hook_recall_init(&device.recall, &np_memory_default);
    np_hook_rest_init(&device);
    np_caching_init(&device.caching, false, &np_memory_default);
}

static void open_scene(void)
{
    open_scene_at(0, 0);
}

static void close_scene(void)
{
    ASSERT_TRUE(np_manager_is_valid(device.manager));
    ASSERT_TRUE(np_hook_index_is_valid(&device.index));
    np_array_free(device.manager->memory, &device.uses);
    np_array_free(device.manager->memory, &device.hits);
    np_array_free(device.manager->memory, &device.graphs);
    np_array_free(device.manager->memory, &device.kept);
    np_hook_index_free(&device.index);
    np_hook_kernels_forget(&device.kernels);
    np_hook_recall_free(&device.recall);
    np_caching_free(&device.caching);
    neap_close(device.manager);
}

/* ---- the program ---- */

static void *make(uint64_t bytes, void *stream)
{
    void *address = NULL;
    ASSERT_EQ(np_hook_malloc(0, bytes, stream, &address), 0);
    return address;
}

static void drop(void *address, void *stream)
{
    ASSERT_TRUE(np_hook_free(address, stream));
}

/* Any call of the driver, as inject.c sees it; what is not told of does not come there. */
static void call_driver(const char *name, void *arguments)
{
    bool per_thread;
    int result = 0;
    const np_hook_call *call = np_hook_call_find(name, &per_thread);
    np_cupti_data data = {.function_name = name, .parameters = arguments, .symbol_name = "kernel"};
    ASSERT_TRUE(call != NULL);
    if (!is_watched && (call->kind == NP_CALL_LAUNCH || call->kind == NP_CALL_COPY)) {
        return;
    }
    if (!np_hook_rest_passes(&device, call)) {
        np_hook_see_before(&device, call, per_thread, &data);
        data.site = NP_CUPTI_EXIT;
        data.result = &result;
        np_hook_see_after(&device, call, per_thread, &data);
    }
}

static void launch_on(void *stream, void *address)
{
    void *parameters[] = {&address};
    struct {
        void *function;
        unsigned int numbers[8];
        void *stream;
        void **parameters;
        void **extra;
    } arguments = {.function = (void *)0x100, .stream = stream, .parameters = parameters};
    call_driver("cuLaunchKernel", &arguments);
}

static void launch(void *address)
{
    launch_on(STREAM, address);
}

static const uint64_t sizes[N_BLOCKS] = {3 * PAGE, 5 * PAGE + 100, PAGE, 8 * PAGE};

/* Blocks come in order and go in reverse, a small one among them; each is used when it comes and before it goes. */
static void iterate(void **addresses)
{
    void *small;
    for (int i = 0; i < N_BLOCKS; i++) {
        addresses[i] = make(sizes[i], STREAM);
        launch(addresses[i]);
        launch(addresses[i / 2]);
    }
    small = make(100, STREAM);
    launch(small);
    drop(small, STREAM);
    for (int i = N_BLOCKS; i-- > 0;) {
        launch(addresses[i]);
        drop(addresses[i], STREAM);
    }
    launch(addresses[0]); /* it is gone; nobody looks */
    ASSERT_TRUE(np_manager_is_valid(device.manager));
}

static void iterate_many(int n)
{
    void *addresses[N_BLOCKS];
    for (int i = 0; i < n; i++) {
        iterate(addresses);
    }
}

static bool is_resting(void)
{
    ASSERT_EQ(device.manager->rest.is_on, !is_watched);
    return device.manager->rest.is_on;
}

static void rest(void)
{
    iterate_many(ENOUGH_LAPS);
    ASSERT_TRUE(is_resting());
    ASSERT_EQ(device.manager->state, NEAP_STATE_RUN);
}

/* ---- tests ---- */

/* Iterations count, blocks have their addresses, and nothing of the work is seen. */
static void test_passing(void **state)
{
    void *before[N_BLOCKS];
    void *after[N_BLOCKS];
    uint64_t n_iterations;
    uint64_t n_launches;
    (void)state;
    open_scene();
    rest();
    ASSERT_EQ(device.facts.n_rests, 1);
    n_iterations = device.manager->stats.n_iterations;
    n_launches = device.facts.n_launches;
    iterate(before);
    for (int i = 0; i < 100; i++) {
        iterate(after);
        ASSERT_TRUE(memcmp(before, after, sizeof before) == 0);
    }
    ASSERT_TRUE(is_resting());
    ASSERT_EQ(device.manager->stats.n_iterations, n_iterations + 101);
    ASSERT_EQ(device.manager->stats.n_departures, 0);
    ASSERT_EQ(device.facts.n_launches, n_launches);
    ASSERT_EQ(n_asked, 1);
    close_scene();
}

/* The addresses of a plan that is looked at are those of one that is not. */
static void test_same_addresses(void **state)
{
    void *addresses[2][N_BLOCKS];
    uint64_t offsets[2][N_BLOCKS];
    (void)state;
    for (int is_refused = 0; is_refused < 2; is_refused++) {
        open_scene();
        device.rest.is_refused = is_refused;
        iterate_many(ENOUGH_LAPS);
        ASSERT_EQ(is_resting(), !is_refused);
        iterate(addresses[is_refused]);
        for (int i = 0; i < N_BLOCKS; i++) {
            offsets[is_refused][i] = (uint64_t)((char *)addresses[is_refused][i] - device.manager->arena.address);
        }
        close_scene();
    }
    ASSERT_TRUE(memcmp(offsets[0], offsets[1], sizeof offsets[0]) == 0);
}

enum { OTHER_SIZE, ONE_MORE, OTHER_ORDER, OTHER_STREAM, SMALL_ON_OTHER, FREE_ON_OTHER, WITHOUT_STREAM, N_ENDS };

static void do_otherwise(int what)
{
    void *a = make(what == OTHER_SIZE ? 2 * PAGE : sizes[0], what == OTHER_STREAM ? OTHER : STREAM);
    void *b = make(sizes[1], what == WITHOUT_STREAM ? NP_HOOK_NO_STREAM : STREAM);
    void *c = what == ONE_MORE ? make(sizes[1], STREAM) : NULL;
    void *small = make(100, what == SMALL_ON_OTHER ? OTHER : STREAM);
    launch(a);
    launch(b);
    drop(small, what == SMALL_ON_OTHER ? OTHER : STREAM);
    if (c) {
        drop(c, STREAM);
    }
    if (what == OTHER_ORDER) {
        drop(a, STREAM);
        drop(b, STREAM);
    } else {
        drop(b, what == FREE_ON_OTHER ? OTHER : STREAM);
        drop(a, STREAM);
    }
}

/* A malloc or free that is not the planned one, or not in the stream's order. All work is waited for; then work is seen, and
 * counts as under way until it is known not to be. */
static void test_blocks_end_it(void **state)
{
    (void)state;
    for (int what = 0; what < N_ENDS; what++) {
        np_device *raw;
        uint64_t mark;
        open_scene();
        rest();
        raw = device.manager->device;
        mark = raw->api->mark(raw, 0);
        do_otherwise(what);
        ASSERT_FALSE(is_resting());
        ASSERT_GE(device.manager->stats.n_departures, 1);
        ASSERT_GT(raw->api->mark(raw, 0), mark);
        ASSERT_FALSE(device.rest.has_ended);
        rest(); /* and again */
        ASSERT_EQ(device.facts.n_rests, 2);
        close_scene();
    }
}

/* Calls that need sight end it; those that matter to nobody do not. */
static void test_calls(void **state)
{
    static const char *const enders[] = {"cuStreamBeginCapture",  "cuGraphLaunch", "cuIpcGetMemHandle",
                                         "cuCtxEnablePeerAccess", "cuGraphCreate", "cuGraphInstantiate"};
    static const char *const others[] = {"cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuModuleUnload",
                                         "cuStreamDestroy_v2"};
    uint64_t arguments[8] = {0};
    bool per_thread;
    (void)state;
    for (size_t i = 0; i < sizeof enders / sizeof *enders; i++) {
        const np_hook_call *call = np_hook_call_find(enders[i], &per_thread);
        open_scene();
        rest();
        ASSERT_TRUE(call != NULL);
        ASSERT_FALSE(np_hook_rest_passes(&device, call));
        ASSERT_FALSE(is_resting());
        ASSERT_EQ(device.manager->stats.n_departures, 1);
        ASSERT_TRUE(device.manager->state != NEAP_STATE_RUN);
        close_scene();
    }
    open_scene();
    rest();
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        call_driver(others[i], arguments);
        ASSERT_TRUE(is_resting());
    }
    /* One that was under way when it began: it waited for the lock. */
    ASSERT_TRUE(np_hook_rest_passes(&device, np_hook_call_find("cuLaunchKernel", &per_thread)));
    ASSERT_TRUE(np_hook_rest_passes(&device, np_hook_call_find("cuMemcpyHtoDAsync_v2", &per_thread)));
    iterate_many(3);
    ASSERT_EQ(device.manager->stats.n_departures, 0);
    close_scene();
}

static void never_rests(void)
{
    iterate_many(ENOUGH_LAPS);
    ASSERT_FALSE(is_resting());
    ASSERT_EQ(device.facts.n_rests, 0);
}

static void test_not_begun(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        np_hook_settings *settings = &np_the_hook.settings;
        open_scene();
        settings->limit = i == 0 ? 1 << 20 : 0;
        settings->mode = i == 1 ? NP_HOOK_RECORD : NP_HOOK_RUN;
        np_hook_rest_init(&device);
        np_the_hook.has_thread_streams = i == 2;
        never_rests();
        close_scene();
    }
    open_scene();
    np_the_hook.is_seeing = false;
    never_rests();
    np_the_hook.is_seeing = true;
    is_pytorch = false;
    never_rests();
    is_pytorch = true;
    device.n_captures = 1;
    never_rests();
    device.n_captures = 0;
    rest();
    close_scene();
}

/* A block whose pages come with the first work that uses it: that must be seen. */
static void test_without_pages(void **state)
{
    np_hook_entry entry = {0};
    (void)state;
    open_scene();
    device.manager->is_deferring = true;
    ASSERT_OK(np_malloc_locked(device.manager, 9 * PAGE, &entry.block));
    device.manager->is_deferring = false;
    entry.begin = entry.block->address;
    entry.end = entry.begin + 9 * PAGE;
    ASSERT_OK(np_hook_index_add(&device.index, &entry));
    ASSERT_GT(entry.block->view.n_missing, 0);
    device.rest.is_refused = true;
    never_rests(); /* on the plan, of which it is a part: there it has pages */
    ASSERT_EQ(entry.block->view.n_missing, 0);
    ASSERT_TRUE(np_rest_is_possible(device.manager));
    entry.block->view.n_missing = 1; /* as one has that is beside it */
    ASSERT_FALSE(np_rest_is_possible(device.manager));
    entry.block->view.n_missing = 0;
    device.rest.is_refused = false;
    rest();
    close_scene();
}

/* A plan that is still to be measured, or to be replaced, is looked at. */
static void test_not_final(void **state)
{
    (void)state;
    open_scene();
    iterate_many(ENOUGH_LAPS);
    do_otherwise(OTHER_SIZE);
    ASSERT_FALSE(is_resting());
    for (size_t i = 0; i < device.manager->patterns.n; i++) {
        device.manager->patterns.items[i]->is_outdated = true;
    }
    iterate_many(30);
    ASSERT_FALSE(is_resting());
    for (size_t i = 0; i < device.manager->patterns.n; i++) {
        device.manager->patterns.items[i]->is_outdated = false;
    }
    rest();
    close_scene();
}

/* Words that name another block now and then: what was not planned is in the stream's order all the same. */
static void test_late_uses(void **state)
{
    (void)state;
    open_scene();
    for (int i = 0; i < 2 * ENOUGH_LAPS; i++) {
        void *a = make(3 * PAGE, STREAM);
        void *b = make(5 * PAGE, STREAM);
        launch(a);
        launch(b);
        launch(i % 3 == 0 ? a : b);
        drop(a, STREAM);
        launch(b);
        drop(b, STREAM);
        ASSERT_TRUE(i < ENOUGH_LAPS || device.manager->state == NEAP_STATE_RUN);
    }
    ASSERT_EQ(device.manager->stats.n_departures, 0);
    ASSERT_TRUE(is_resting());
    close_scene();
}

/* Work of two streams in the same bytes has waits in its plan, which must be given. */
static void test_two_streams(void **state)
{
    (void)state;
    open_scene();
    for (int i = 0; i < ENOUGH_LAPS; i++) {
        void *a = make(3 * PAGE, STREAM);
        void *b;
        launch(a);
        drop(a, STREAM);
        b = make(3 * PAGE + 1, STREAM);
        launch_on(OTHER, b);
        drop(b, STREAM);
    }
    ASSERT_EQ(device.manager->state, NEAP_STATE_RUN);
    ASSERT_GT(device.manager->pattern->program.ops.n, 0);
    ASSERT_FALSE(is_resting());
    close_scene();
}

/* Memory that comes with two streams in turn. */
static void test_streams_in_turn(void **state)
{
    (void)state;
    open_scene();
    for (int i = 0; i < ENOUGH_LAPS; i++) {
        void *a = make(3 * PAGE, STREAM);
        void *b = make(5 * PAGE, OTHER);
        launch(a);
        drop(b, OTHER);
        drop(a, STREAM);
    }
    ASSERT_EQ(device.manager->state, NEAP_STATE_RUN);
    ASSERT_FALSE(is_resting());
    close_scene();
}

static void test_refusal(void **state)
{
    (void)state;
    open_scene();
    fails_to_end = true;
    never_rests();
    ASSERT_TRUE(device.rest.is_refused && np_the_hook.aside == NULL);
    ASSERT_EQ(n_asked, 2); /* and back, as some may have been taken */
    close_scene();

    open_scene();
    rest();
    fails_to_begin = true;
    do_otherwise(OTHER_SIZE);
    ASSERT_TRUE(np_the_hook.aside != NULL);
    close_scene();
}

/* Iterations until the plan at hand is one that was not made in no time. */
static void plan(void)
{
    int n = 0;
    do {
        iterate_many(1);
        ASSERT_LT(++n, 10 * ENOUGH_LAPS);
    } while (device.manager->state != NEAP_STATE_RUN || device.manager->pattern->is_quick);
    iterate_many(ENOUGH_LAPS);
}

/* Where blocks may be swapped, laps of the pool alone are measured that nobody looks at, in turns with others. After each
 * turn work is seen again, from wherever the program is: the plan goes on, and the next one has swaps. */
static void test_measure(void **state)
{
    const np_pattern *first = NULL;
    double lap_ns = 0;
    (void)state;
    open_scene_at(0.8, 0);
    for (int i = 0; !first || first->rested_ns <= 0; i++) {
        iterate_many(1);
        first = first ? first : device.manager->rest.is_on ? device.manager->pattern : NULL;
        ASSERT_TRUE(!first || device.manager->pattern == first); /* no other is asked for meanwhile */
        ASSERT_TRUE(!first || (first->is_quick && (!is_resting() || device.manager->rest.is_measure)));
        ASSERT_LT(i, 4 * ENOUGH_LAPS);
    }
    lap_ns = np_pattern_lap_ns(first);
    ASSERT_TRUE(first->rested_ns == EXEC_NS); /* of a lap that is not seen, the mark alone is known */
    ASSERT_TRUE(lap_ns > 10 * EXEC_NS && lap_ns < 20 * EXEC_NS);
    ASSERT_FALSE(is_resting());
    ASSERT_GE(device.facts.n_rests, 2);
    plan();
    ASSERT_EQ(device.manager->stats.n_departures, 0);
    ASSERT_GT(device.manager->pattern->program.swaps.n, 0);
    ASSERT_TRUE(device.manager->pattern->rested_ns == EXEC_NS);
    ASSERT_TRUE(np_pattern_base_ns(device.manager->pattern) == EXEC_NS);
    ASSERT_FALSE(is_resting());
    close_scene();
}

/* It is tried a few times where something always comes between, and not at all where it cannot be: a plan comes. */
static void test_measure_in_vain(void **state)
{
    (void)state;
    open_scene_at(0.8, 0);
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < ENOUGH_LAPS && !device.manager->rest.is_on; k++) {
            iterate_many(1);
        }
        do_otherwise(OTHER_SIZE);
    }
    ASSERT_GE(device.facts.n_rests, 2);
    ASSERT_LE(device.facts.n_rests, 6);
    plan();
    ASSERT_GT(device.manager->pattern->program.swaps.n, 0);
    ASSERT_TRUE(device.manager->pattern->rested_ns == 0);
    close_scene();

    open_scene_at(0.8, 0);
    is_pytorch = false;
    plan();
    ASSERT_EQ(device.facts.n_rests, 0);
    ASSERT_GT(device.manager->pattern->program.swaps.n, 0);
    close_scene();
}

/* Laps whose times are never known: a plan comes all the same. */
static void test_measure_without_times(void **state)
{
    (void)state;
    open_scene_at(0.8, 0);
    for (int i = 0; i < 20 * ENOUGH_LAPS && device.manager->patterns.n < 2; i++) {
        iterate_many(1);
        for (size_t k = 0; k < device.manager->patterns.n; k++) {
            device.manager->patterns.items[k]->rests_ns.n = 0;
        }
    }
    ASSERT_LE(device.facts.n_rests, 40);
    plan();
    ASSERT_GT(device.manager->pattern->program.swaps.n, 0);
    close_scene();
}

/* Looking costs more than swapping may: nothing is swapped, and nobody looks. */
static void test_looking_costs_too_much(void **state)
{
    for (int is_dear = 0; is_dear < 2; is_dear++) {
        (void)state;
        open_scene_at(0, 0.5);
        while (!device.manager->pattern || device.manager->pattern->rested_ns <= 0) {
            iterate_many(1);
            ASSERT_LT(device.manager->stats.n_iterations, 10 * ENOUGH_LAPS);
        }
        device.manager->pattern->rested_ns = np_pattern_lap_ns(device.manager->pattern) * (is_dear ? 0.6 : 0.95);
        plan();
        ASSERT_EQ(device.manager->stats.n_departures, 0);
        ASSERT_EQ(device.manager->pattern->program.swaps.n == 0, is_dear);
        ASSERT_EQ(is_resting(), is_dear);
        close_scene();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passing),
        cmocka_unit_test(test_same_addresses),
        cmocka_unit_test(test_blocks_end_it),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_not_begun),
        cmocka_unit_test(test_two_streams),
        cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_without_pages),
        cmocka_unit_test(test_not_final),
        cmocka_unit_test(test_streams_in_turn),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_measure_in_vain),
        cmocka_unit_test(test_measure_without_times),
        cmocka_unit_test(test_late_uses),
        cmocka_unit_test(test_looking_costs_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
