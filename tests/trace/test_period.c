#include "trace/period.h"

#include <stdlib.h>
#include <string.h>

#include "testing.h"
#include "trace/check_period.h"
#include "trace/make_trace.h"

/* ---------------------------------------------------------------- made like training ---- */

static void assert_period(const neap_trace *trace, uint32_t length, uint64_t leak_bytes)
{
    np_period period;
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_EQ(period.length, length);
    ASSERT_EQ(period.leak_bytes, leak_bytes);
    ASSERT_LE(period.first_answer, period.begin + 3 * period.length);
    check_period(&period);
    np_period_free(&period);
}

/* Events from one mark to the n-th after it. */
static uint32_t n_events_of(const neap_trace *trace, uint32_t first, uint32_t n)
{
    return trace->marks.items[first + n] - trace->marks.items[first];
}

/* All ways in which blocks can live across the iteration's end, at once and one by one. */
static void test_blocks_across_the_end(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 16; bits++) {
        training options = {.seed = bits, .n_iterations = 8};
        neap_trace *trace;
        options.loss_kept = bits & 1;
        options.zero_grad_at_start = bits & 2;
        options.leak_bytes = bits & 4 ? 512 : 0;
        options.long_lives = bits & 8 ? 2 : 0;
        trace = make_training(&options);
        assert_period(trace, n_events_of(trace, 5, 1), options.leak_bytes);
        neap_trace_free(trace);
    }
}

static void test_lives_cross_the_end(void **state)
{
    training options = {.n_iterations = 8, .zero_grad_at_start = true, .long_lives = 1};
    neap_trace *trace = make_training(&options);
    np_period period;
    unsigned n_across = 0, n_long = 0, n_persistent = 0, n_untouched = 0;
    (void)state;
    ASSERT_OK(np_period_find(trace, NULL, &period));
    for (size_t i = 0; i < period.lives.n; i++) {
        const np_life *life = &period.lives.items[i];
        n_across += life->end > period.length;
        n_long += life->end - life->begin > 2 * period.length;
        n_persistent += life->persistent;
        n_untouched += life->first_use == NEAP_NEVER;
        ASSERT_EQ(period.trace->blocks.items[life->block].malloc_event == period.origin + life->begin,
                  !life->persistent);
    }
    ASSERT_GE(n_across, 1);
    ASSERT_EQ(n_long, 1);
    ASSERT_EQ(n_persistent, 9); /* eight weights, and one block that nobody touches */
    ASSERT_EQ(n_untouched, 1);
    np_period_free(&period);
    neap_trace_free(trace);
}

static void test_inner_loops(void **state)
{
    static const uint64_t step_bytes[] = {0, 512, 65536};
    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        training options = {.n_time_steps = 256, .step_bytes = step_bytes[k]};
        neap_trace *trace = make_training(&options);
        assert_period(trace, n_events_of(trace, 1, 1), 0);
        neap_trace_free(trace);
    }
}

static void test_equal_layers(void **state)
{
    training options = {.n_layers = 1, .n_iterations = 40}; /* nearly nothing but a loop */
    neap_trace *trace = make_training(&options);
    (void)state;
    assert_period(trace, n_events_of(trace, 1, 1), 0);
    neap_trace_free(trace);
}

/* Kernels run over blocks, but none comes twice. */
static void test_no_period(void **state)
{
    neap_trace *trace;
    np_period period;
    (void)state;
    ASSERT_OK(np_trace_create(NULL, &trace));
    for (uint64_t i = 1; i <= 500; i++) {
        ASSERT_OK(np_trace_add_malloc(trace, i, 512 * i));
    }
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_EQ(period.length, 0);
    ASSERT_TRUE(np_period_is_valid(&period));
    np_period_free(&period);
    neap_trace_free(trace);
    ASSERT_OK(np_trace_create(NULL, &trace));
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_EQ(period.length, 0);
    np_period_free(&period);
    neap_trace_free(trace);
}

static void test_csv(void **state)
{
    static const char text[] = "id,lower,upper,size\n1,0,5,100\n2,2,9,50\n3,5,7,10\n";
    neap_trace *trace;
    np_period period;
    (void)state;
    ASSERT_OK(neap_trace_parse(text, sizeof text - 1, "a.csv", NULL, NULL, &trace));
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_TRUE(np_period_is_valid(&period));
    ASSERT_EQ(period.begin, 0);
    ASSERT_EQ(period.origin, 0);
    ASSERT_EQ(period.length, 6);
    ASSERT_EQ(period.lives.n, 3);
    ASSERT_EQ(period.variants.n, 0);
    for (size_t i = 0; i < 3; i++) {
        const np_life *life = &period.lives.items[i];
        ASSERT_EQ(life->begin, trace->blocks.items[life->block].malloc_event);
        ASSERT_EQ(life->end, trace->blocks.items[life->block].free_event);
    }
    np_period_free(&period);
    neap_trace_free(trace);
}

/* ---------------------------------------------------------------- epochs ---- */

/* A run of training made from a pattern: I an iteration, E an evaluation (a forward pass), F a longer one. The first
 * `skipped` events are not recorded. The period must be one iteration. */
static void assert_epochs(const char *pattern, uint32_t skipped)
{
    training options = {.n_layers = 6, .n_iterations = 3};
    neap_trace *loop = make_training(&options), *whole, *trace;
    uint32_t begin = loop->marks.items[1], length = n_events_of(loop, 1, 1);
    piece *pieces = calloc(strlen(pattern), sizeof *pieces);
    assert_non_null(pieces);
    for (size_t i = 0; pattern[i]; i++) {
        uint32_t end = pattern[i] == 'I' ? length : pattern[i] == 'E' ? length / 3 : length / 2;
        pieces[i] = (piece){loop, begin, begin + end, 0, pattern[i] != 'I'};
    }
    whole = splice(pieces, strlen(pattern));
    trace = splice((piece[]){{whole, skipped, (uint32_t)whole->events.n, 0, false}}, 1);
    assert_period(trace, length, 0);
    neap_trace_free(trace);
    neap_trace_free(whole);
    neap_trace_free(loop);
    free(pieces);
}

/* n times `letter`, after what is there. */
static void append(char *pattern, char letter, size_t n)
{
    size_t length = strlen(pattern);
    memset(pattern + length, letter, n);
    pattern[length + n] = '\0';
}

static void test_epochs_of_many_iterations(void **state)
{
    char twenties[100] = "", fifties[200] = "", uneven[200] = "";
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        append(twenties, 'I', 20);
        append(twenties, 'E', 1);
        append(fifties, 'I', i < 2 ? 50 : 17);
        append(fifties, i < 2 ? 'E' : 'I', 1);
        append(uneven, 'I', 20);
        append(uneven, i % 2 ? 'F' : 'E', 1 + i);
    }
    for (uint32_t skipped = 0; skipped < 1500; skipped += TEST_SANITIZED ? 173 : 17) {
        assert_epochs(twenties, skipped);
        assert_epochs(fifties, skipped);
        assert_epochs(uneven, skipped);
    }
}

/* Batches whose gradients are added up are not the period; the whole step is. */
static void test_gradient_accumulation(void **state)
{
    (void)state;
    for (uint32_t n_micro = 2; n_micro <= 8; n_micro *= 2) {
        for (unsigned bits = 0; bits < 4; bits++) {
            training options = {.n_layers = 5, .n_iterations = 6, .n_micro = n_micro};
            neap_trace *trace;
            options.zero_grad_at_start = bits & 1;
            options.loss_kept = bits & 2;
            trace = make_training(&options);
            assert_period(trace, n_events_of(trace, 2, 1), 0);
            neap_trace_free(trace);
        }
    }
}

/* Every third, every fifth, and both: fifteen iterations. */
static void test_iterations_that_log(void **state)
{
    static const uint32_t every[][3] = {{3, 0, 3}, {0, 5, 5}, {5, 0, 5}, {3, 5, 15}, {2, 3, 6}};
    (void)state;
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        training options = {.log_every = every[i][0], .stats_every = every[i][1], .n_iterations = 3 * every[i][2] + 2};
        neap_trace *trace = make_training(&options);
        np_period period;
        assert_period(trace, n_events_of(trace, 1, every[i][2]), 0);
        ASSERT_OK(np_period_find(trace, NULL, &period));
        ASSERT_EQ(period.variants.n, every[i][2]);
        np_period_free(&period);
        neap_trace_free(trace);
    }
}

/* ---------------------------------------------------------------- recordings, changed ---- */

/* A recording of 4 iterations of `length` events, without marks. */
typedef struct recording {
    neap_trace *trace;
    uint32_t length;
    uint32_t n;
} recording;

static recording read_vgg(void)
{
    recording r = {read_recording("vgg11-100-32"), 508, 4 * 508};
    if (r.trace) {
        ASSERT_EQ(r.trace->events.n, r.n);
    } else {
        SKIP("tests/data/traces/vgg11-100-32.neap.gz is not there");
    }
    return r;
}

static void assert_spliced(const piece *pieces, size_t n_pieces, uint32_t length, uint64_t leak_bytes)
{
    neap_trace *trace = splice(pieces, n_pieces);
    ASSERT_TRUE(np_trace_is_valid(trace));
    assert_period(trace, length, leak_bytes);
    neap_trace_free(trace);
}

static void test_file_starts_or_ends_anywhere(void **state)
{
    recording r = read_vgg();
    (void)state;
    for (uint32_t cut = 0; cut < 2 * r.length; cut += TEST_SANITIZED ? 211 : 23) {
        if (cut <= r.length) {
            assert_spliced((piece[]){{r.trace, cut, r.n, 0, false}}, 1, r.length, 0);
            assert_spliced((piece[]){{r.trace, cut, r.n - cut / 2, 0, false}}, 1, r.length, 0);
        }
        assert_spliced((piece[]){{r.trace, 0, r.n - cut, 0, false}}, 1, r.length, 0);
    }
    neap_trace_free(r.trace);
}

static void test_warm_up_and_other_phases(void **state)
{
    recording r = read_vgg();
    training options = {.seed = 9, .n_iterations = 3};
    neap_trace *other = make_training(&options);
    uint32_t n = (uint32_t)other->events.n;
    (void)state;
    assert_spliced((piece[]){{other, 0, n, 0, false}, {r.trace, 0, r.n, 0, false}}, 2, r.length, 0);
    assert_spliced((piece[]){{r.trace, 0, r.n, 0, false}, {other, 0, n, 0, false}}, 2, r.length, 0);
    assert_spliced(
        (piece[]){{other, 0, n - 17, 0, false}, {r.trace, 100, r.n - 100, 0, false}, {other, 50, n, 0, true}}, 3,
        r.length, 0);
    neap_trace_free(other);
    neap_trace_free(r.trace);
}

static void test_every_loss_kept(void **state)
{
    recording r = read_vgg();
    piece pieces[4];
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        pieces[i] = (piece){r.trace, i * r.length, (i + 1) * r.length, 512, false};
    }
    assert_spliced(pieces, 4, r.length + 1, 512);
    pieces[0].begin = 123; /* and the file starts in the middle */
    assert_spliced(pieces, 4, r.length + 1, 512);
    neap_trace_free(r.trace);
}

/* Ten iterations and an evaluation (a forward pass), three times. */
static void test_epochs(void **state)
{
    recording r = read_vgg();
    neap_trace *trace;
    piece pieces[33];
    size_t n = 0;
    (void)state;
    for (unsigned epoch = 0; epoch < 3; epoch++) {
        for (uint32_t i = 0; i < 10; i++) {
            pieces[n++] = (piece){r.trace, r.length, 2 * r.length, 0, false};
        }
        pieces[n++] = (piece){r.trace, r.length, r.length + r.length / 3, 0, true};
    }
    assert_spliced(pieces, n, r.length, 0);
    for (size_t i = 0; i < 9; i++) { /* two iterations and an evaluation are a period of their own */
        pieces[i] = i % 3 == 2 ? pieces[n - 1] : pieces[0];
    }
    trace = splice(pieces, 9);
    assert_period(trace, (uint32_t)trace->events.n / 3, 0);
    neap_trace_free(trace);
    neap_trace_free(r.trace);
}

/* ---------------------------------------------------------------- recordings as they are ---- */

static const struct {
    const char *name;
    uint32_t length;
    uint32_t n_doubtful;
} recordings[] = {
    {"vgg11-100-32", 508, 0},           {"vgg13-100-32", 605, 0},
    {"vgg16-100-32", 749, 0},           {"resnet18-100-32", 899, 0},
    {"resnet50-100-32", 2172, 0},       {"resnet152-100-32", 6485, 0},
    {"vgg11-100-32-fp32", 437, 0},      {"vgg16-100-32-fp32", 654, 0},
    {"resnet18-100-32-fp32", 810, 0},   {"resnet50-100-32-fp32", 1840, 0},
    {"resnet152-100-32-fp32", 5313, 0}, {"vgg16-64-224", 630, 214},
    {"resnet50-64-224", 2159, 4},       {"gpt2-8", 3065, 44},
    {"gpt2-bf16-16", 4234, 16},         {"vit-64-224", 2924, 0},
    {"mobilenet-64", 1791, 0},          {"lstm-64", 3372, 0},
    {"resnet18-100-log", 2846, 0},      {"lstm-64-alt", 6185, 0},
};

static void test_recordings(void **state)
{
    unsigned n_missing = 0;
    (void)state;
    for (size_t i = 0; i < sizeof recordings / sizeof *recordings; i++) {
        neap_trace *trace = read_recording(recordings[i].name);
        np_period period;
        if (!trace) {
            n_missing++;
            continue;
        }
        ASSERT_OK(np_period_find(trace, NULL, &period));
        ASSERT_EQ(period.length, recordings[i].length);
        ASSERT_EQ(period.begin, 0);
        ASSERT_EQ(period.run_length, trace->events.n);
        ASSERT_EQ(period.origin, 0);
        ASSERT_EQ(period.n_doubtful, recordings[i].n_doubtful);
        ASSERT_LE(period.first_answer, 2 * period.length + 64);
        check_period(&period);
        np_period_free(&period);
        neap_trace_free(trace);
    }
    if (n_missing) {
        SKIP("%u of %zu recordings are not there; the others were right", n_missing,
             sizeof recordings / sizeof *recordings);
    }
}

/* While the events of a recording come in: a period that is believed holds for the newest event, or is given up there
 * and then; from the third period's end on the answer is the right one. */
static void check_online(const neap_trace *trace, uint32_t length)
{
    np_detector *detector;
    ASSERT_OK(np_detector_create(NULL, &detector));
    for (uint32_t i = 0; i < trace->events.n; i++) {
        np_run run = {0};
        ASSERT_OK(np_detector_feed(detector, np_trace_step(trace, i)));
        if (np_detector_current(detector, &run)) {
            ASSERT_EQ(run.end, i + 1);
            ASSERT_GE(run.end - run.begin, 2 * run.period);
            ASSERT_EQ(np_trace_step(trace, i).key, np_trace_step(trace, i - run.period).key);
        }
        if (i + 1 >= 3 * length) {
            ASSERT_EQ(run.period, length);
            ASSERT_EQ(run.begin, 0);
        }
    }
    ASSERT_TRUE(np_detector_is_valid(detector));
    np_detector_free(detector);
}

static void test_recordings_online(void **state)
{
    unsigned n_missing = 0;
    (void)state;
    for (size_t i = 0; i < sizeof recordings / sizeof *recordings; i++) {
        neap_trace *trace = read_recording(recordings[i].name);
        if (trace) {
            check_online(trace, recordings[i].length);
            neap_trace_free(trace);
        }
        n_missing += !trace;
    }
    if (n_missing) {
        SKIP("%u of %zu recordings are not there; the others were right", n_missing,
             sizeof recordings / sizeof *recordings);
    }
}

static neap_status find_and_free(const neap_memory *memory, void *user)
{
    np_period period;
    neap_status status = np_period_find(user, memory, &period);
    if (status == NEAP_OK) {
        np_period_free(&period);
    }
    return status;
}

static void test_no_memory(void **state)
{
    training options = {.n_layers = 3, .log_every = 2, .loss_kept = true};
    neap_trace *trace = make_training(&options);
    (void)state;
    test_memory_fail_each(find_and_free, trace);
    neap_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_across_the_end),
        cmocka_unit_test(test_lives_cross_the_end),
        cmocka_unit_test(test_inner_loops),
        cmocka_unit_test(test_equal_layers),
        cmocka_unit_test(test_no_period),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_epochs_of_many_iterations),
        cmocka_unit_test(test_gradient_accumulation),
        cmocka_unit_test(test_iterations_that_log),
        cmocka_unit_test(test_file_starts_or_ends_anywhere),
        cmocka_unit_test(test_warm_up_and_other_phases),
        cmocka_unit_test(test_every_loss_kept),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_recordings),
        cmocka_unit_test(test_recordings_online),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
