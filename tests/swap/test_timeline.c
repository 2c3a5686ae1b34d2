#include "swap/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comma.h"
#include "testing.h"
#include "trace/make_trace.h"

/* A trace, its period and the timeline made from it. */
typedef struct made {
    neap_trace *trace;
    np_period period;
    np_timeline timeline;
} made;

static void make_from(neap_trace *trace, np_timeline_options options, made *m)
{
    m->trace = trace;
    ASSERT_OK(np_period_find(trace, NULL, &m->period));
    ASSERT_GT(m->period.length, 0);
    ASSERT_OK(np_timeline_make(&m->period, &options, NULL, &m->timeline));
    ASSERT_TRUE(np_timeline_is_valid(&m->timeline));
}

static void make_from_text(const char *text, np_timeline_options options, made *m)
{
    neap_trace *trace = NULL;
    neap_error error;
    if (neap_trace_parse(text, strlen(text), "text", NULL, &error, &trace) != NEAP_OK) {
        test_fail(__FILE__, __LINE__, "%s", error.text);
    }
    make_from(trace, options, m);
}

static void unmake(made *m)
{
    np_timeline_free(&m->timeline);
    np_period_free(&m->period);
    neap_trace_free(m->trace);
}

static const np_timeline_options careful = {.alignment = 512, .slower = 1};
static const np_timeline_options any = {.alignment = 512, .slower = 1, .directions = NP_DIRECTIONS_ANY};

#define ASSERT_NS(a, b) ASSERT_TRUE(fabs((a) - (b)) < 1e-6)

/* ---- times ---- */

#define THREE "exec a 5 100 w1\nexec b 300 200 w1\nexec c 900 300 w1\n"

static void test_execs_without_pauses(void **state)
{
    made m;
    (void)state;
    make_from_text("neap-trace 1\nlive 1 512\n" THREE THREE THREE, careful, &m);
    ASSERT_EQ(m.timeline.n_execs, 3);
    ASSERT_NS(m.timeline.period_ns, 600);
    ASSERT_NS(m.timeline.start_ns.items[0], 0);
    ASSERT_NS(m.timeline.end_ns.items[0], 100);
    ASSERT_NS(m.timeline.start_ns.items[2], 300);
    ASSERT_NS(m.timeline.end_ns.items[2], 600);
    ASSERT_NS(np_timeline_start(&m.timeline, 7), 1300);
    ASSERT_NS(np_timeline_end(&m.timeline, 7), 1500);
    unmake(&m);
}

static void test_even_pauses_and_slower(void **state)
{
    const char *text = "neap-trace 1\nmeta step_ms=0.0009\nlive 1 512\n" THREE THREE THREE;
    made m;
    (void)state;
    make_from_text(text, careful, &m);
    ASSERT_NS(m.timeline.period_ns, 900);
    ASSERT_NS(m.timeline.start_ns.items[0], 100);
    ASSERT_NS(m.timeline.start_ns.items[1], 300);
    ASSERT_NS(m.timeline.start_ns.items[2], 600);
    ASSERT_NS(m.timeline.end_ns.items[2], 900);
    unmake(&m);
    make_from_text(text, (np_timeline_options){.alignment = 512, .slower = 2.5}, &m);
    ASSERT_NS(m.timeline.period_ns, 2250);
    ASSERT_NS(m.timeline.start_ns.items[1], 750);
    ASSERT_NS(m.timeline.end_ns.items[1], 1250);
    unmake(&m);
    make_from_text("neap-trace 1\nmeta step_ms=0.0001\nlive 1 512\n" THREE THREE THREE, careful, &m);
    ASSERT_NS(m.timeline.period_ns, 600); /* a step cannot be shorter than its execs */
    unmake(&m);
}

/* ---- uses, needs and gaps ---- */

/* Weight 1 is read by exec 0 and changed by exec 3; weight 2 nobody uses. Block a is held long before its first use. */
#define ITERATION(a, b, x)                         \
    "malloc " a " 600\n"                           \
    "exec k0 0 10 r1 " x "1\n"                     \
    "malloc " b " 100\n"                           \
    "exec k1 0 20 " x a " r" b " w" b " " x a "\n" \
    "exec k2 0 30\n"                               \
    "exec k3 0 40 w1 r" b "\n"                     \
    "exec k4 0 50 r" a "\n"                        \
    "exec k5 0 60\n"                               \
    "free " a "\n"                                 \
    "free " b "\n"

#define TRACE(x)                                                                                 \
    "neap-trace 1\nlive 1 1000\nlive 2 5000\n" ITERATION("10", "11", x) ITERATION("12", "13", x) \
        ITERATION("14", "15", x)

static const np_swap_block *block_of(const np_timeline *timeline, uint64_t bytes)
{
    for (size_t b = 0; b < timeline->blocks.n; b++) {
        const np_swap_block *block = &timeline->blocks.items[b];
        if (timeline->period->trace->blocks.items[timeline->period->lives.items[block->life].block].bytes == bytes) {
            return block;
        }
    }
    test_fail(__FILE__, __LINE__, "no block of %llu bytes", (unsigned long long)bytes);
}

/* The gap of the block that begins at exec `from`; NULL: none. */
static const np_gap *gap_of(const np_timeline *timeline, const np_swap_block *block, uint32_t from)
{
    for (size_t g = 0; g < timeline->gaps.n; g++) {
        const np_gap *gap = &timeline->gaps.items[g];
        if (&timeline->blocks.items[gap->block] == block && gap->from == from) {
            return gap;
        }
    }
    return NULL;
}

static void check_gap(const np_timeline *timeline, const np_swap_block *block, uint32_t from, uint32_t to,
                      double release_ns, double due_ns)
{
    const np_gap *gap = gap_of(timeline, block, from);
    ASSERT_TRUE(gap != NULL);
    ASSERT_EQ(gap->to, to);
    ASSERT_EQ(gap->bytes, block->bytes);
    ASSERT_TRUE(gap->release_ns == release_ns || fabs(gap->release_ns - release_ns) < 1e-6);
    ASSERT_NS(gap->due_ns, due_ns);
}

static void test_needs_from_first_to_last_use(void **state)
{
    static const uint64_t needed[] = {1024, 1024 + 1024 + 512, 2560, 2560, 2048, 1024};
    made m;
    (void)state;
    make_from_text(TRACE("r"), careful, &m);
    ASSERT_EQ(m.timeline.n_execs, 6);
    ASSERT_EQ(m.timeline.blocks.n, 3); /* weight 2 is never used, and never needed */
    for (uint32_t k = 0; k < 6; k++) {
        ASSERT_EQ(m.timeline.needed.items[k], needed[k]);
    }
    unmake(&m);
}

static void test_gaps_and_releases(void **state)
{
    const np_swap_block *block;
    made m;
    (void)state;
    make_from_text(TRACE("r"), careful, &m);
    ASSERT_EQ(m.timeline.gaps.n, 4);
    block = block_of(&m.timeline, 1000);
    ASSERT_TRUE(block->persistent);
    ASSERT_EQ(block->bytes, 1024);
    ASSERT_EQ(block->n_uses, 2);
    check_gap(&m.timeline, block, 0, 3, 100 - 210, 60); /* released by the write of the period before */
    check_gap(&m.timeline, block, 3, 6, 100, 210);      /* into the next period */
    block = block_of(&m.timeline, 600);
    check_gap(&m.timeline, block, 1, 4, -INFINITY, 100); /* only read, as far as anyone knows */
    block = block_of(&m.timeline, 100);
    ASSERT_TRUE(m.timeline.uses.items[block->first_use].writes); /* read and written by one exec: one use that writes */
    ASSERT_EQ(block->n_uses, 2);
    check_gap(&m.timeline, block, 1, 3, 30, 60);
    unmake(&m);
}

static void test_unknown_directions(void **state)
{
    made m;
    (void)state;
    make_from_text(TRACE("x"), careful, &m); /* exec 0 may have written the weight, and exec 1 block a */
    check_gap(&m.timeline, block_of(&m.timeline, 1000), 0, 3, 10, 60);
    check_gap(&m.timeline, block_of(&m.timeline, 600), 1, 4, 30, 100);
    unmake(&m);
    make_from_text(TRACE("x"), any, &m); /* a fresh block was written by its first use, whatever is known of it */
    check_gap(&m.timeline, block_of(&m.timeline, 1000), 0, 3, 100 - 210, 60);
    check_gap(&m.timeline, block_of(&m.timeline, 600), 1, 4, 30, 100);
    unmake(&m);
}

/* A block made by exec 2 and used once more by exec 1 of the next period; one is always alive. */
#define CROSSING(old, new)                 \
    "exec a 0 10\n"                        \
    "exec b 0 10 r" old "\n"               \
    "free " old "\n"                       \
    "malloc " new " 2048\n"                \
                  "exec c 0 10 w" new "\n" \
                                      "malloc 9" new " 4096\nexec d 0 10 w9" new "\nfree 9" new "\n"

static void test_block_across_the_end(void **state)
{
    const np_swap_block *block;
    uint64_t sum = 0;
    made m;
    (void)state;
    make_from_text("neap-trace 1\nlive 10 2048\n" CROSSING("10", "11") CROSSING("11", "12") CROSSING("12", "13")
                       CROSSING("13", "14"),
                   careful, &m);
    block = block_of(&m.timeline, 2048);
    ASSERT_FALSE(block->persistent);
    ASSERT_FALSE(block->pinned);
    ASSERT_EQ(block->n_uses, 2);
    ASSERT_EQ(m.timeline.gaps.n, 1);
    ASSERT_EQ(m.timeline.gaps.items[0].to, m.timeline.gaps.items[0].from + 3);
    ASSERT_NS(m.timeline.gaps.items[0].due_ns - m.timeline.gaps.items[0].release_ns, 20);
    ASSERT_LT(m.timeline.gaps.items[0].from, 4);
    for (uint32_t k = 0; k < 4; k++) {
        sum += m.timeline.needed.items[k];
    }
    ASSERT_EQ(sum, 4 * 2048 + 4096); /* needed by c, d, a and b; the other by d */
    unmake(&m);
}

/* ---- everything, counted out ---- */

/* Whether exec k (counted on) uses the life, and whether it may write it. */
static bool uses_life(const np_timeline *timeline, uint32_t life_index, uint32_t k, np_directions directions,
                      bool *writes)
{
    const np_period *period = timeline->period;
    const np_life *life = &period->lives.items[life_index];
    uint32_t n = timeline->n_execs;
    uint32_t time = timeline->times.items[k % n];
    bool used = false;
    *writes = false;
    if (life->persistent ? k >= n : k < n ? time < life->begin : time >= life->begin) {
        return false;
    }
    for (uint32_t a = period->access_at.items[time]; a < period->access_at.items[time + 1]; a++) {
        const neap_access *access = &period->accesses.items[a];
        if (access->block == life_index) {
            used = true;
            *writes = *writes || access->kind == NEAP_ACCESS_WRITE ||
                      (access->kind == NEAP_ACCESS_UNKNOWN && directions == NP_DIRECTIONS_CAREFUL);
        }
    }
    return used;
}

/* One block against its life: uses, gaps (from *gap on, moved past them), and its part of `needed`. */
static void check_block(const np_timeline *timeline, const np_swap_block *block, np_directions directions,
                        uint64_t *needed, size_t *gap)
{
    uint32_t n = timeline->n_execs;
    uint32_t n_uses = 0;
    uint32_t before = UINT32_MAX; /* exec of the use before */
    int64_t written = INT64_MIN;  /* exec of the last write */
    const np_use *uses = &timeline->uses.items[block->first_use];
    for (uint32_t u = 0; u < block->n_uses && block->persistent; u++) {
        written = uses[u].writes ? (int64_t)uses[u].exec - n : written;
    }
    for (uint32_t k = 0; k < 2 * n || (block->persistent && k <= 2 * n); k++) {
        bool writes;
        bool used = uses_life(timeline, block->life, k, directions, &writes);
        bool again = block->persistent && n_uses == block->n_uses && k == uses[0].exec + n; /* of the next period */
        if (!used && !again) {
            continue;
        }
        if (before != UINT32_MAX && k > before + 1 && !block->pinned) {
            const np_gap *found = &timeline->gaps.items[(*gap)++];
            double shift = before >= n ? timeline->period_ns : 0;
            ASSERT_LE(*gap, timeline->gaps.n);
            ASSERT_TRUE(&timeline->blocks.items[found->block] == block);
            ASSERT_EQ(found->from, before % n);
            ASSERT_EQ(found->to - found->from, k - before);
            ASSERT_NS(found->due_ns, np_timeline_start(timeline, k) - shift);
            ASSERT_TRUE((written == INT64_MIN) == (found->release_ns == -INFINITY));
            if (written != INT64_MIN) {
                ASSERT_NS(found->release_ns,
                          np_timeline_end(timeline, (uint32_t)(written + n)) - shift - timeline->period_ns);
            }
        }
        for (uint32_t p = before == UINT32_MAX ? k : before + 1; p <= k && !again; p++) {
            needed[p % n] += block->persistent || block->pinned ? 0 : block->bytes;
        }
        if (again) {
            break;
        }
        writes = writes || (n_uses == 0 && !block->persistent && directions == NP_DIRECTIONS_ANY);
        ASSERT_LT(n_uses, block->n_uses);
        ASSERT_EQ(uses[n_uses].exec, k);
        ASSERT_EQ(uses[n_uses].writes, writes);
        n_uses++;
        written = writes ? (int64_t)k : written;
        before = k;
    }
    ASSERT_EQ(n_uses, block->n_uses);
}

static void check_all(const np_timeline *timeline, np_directions directions)
{
    uint32_t n = timeline->n_execs;
    uint64_t *needed = calloc(n, sizeof *needed);
    size_t gap = 0;
    uint64_t always = 0;
    ASSERT_TRUE(needed != NULL);
    for (size_t b = 0; b < timeline->blocks.n; b++) {
        const np_swap_block *block = &timeline->blocks.items[b];
        const np_life *life = &timeline->period->lives.items[block->life];
        ASSERT_GE(block->n_uses, 1);
        ASSERT_EQ(block->persistent, life->persistent);
        ASSERT_EQ(block->pinned, !life->persistent && life->end - life->begin >= timeline->period->length);
        always += block->persistent ? block->bytes : 0;
        check_block(timeline, block, directions, needed, &gap);
    }
    ASSERT_EQ(gap, timeline->gaps.n);
    for (uint32_t k = 0; k < n; k++) {
        needed[k] += always;
        for (size_t b = 0; b < timeline->blocks.n; b++) {
            const np_swap_block *block = &timeline->blocks.items[b];
            const np_life *life = &timeline->period->lives.items[block->life];
            uint64_t lives = (life->end - life->begin) / timeline->period->length + 1;
            needed[k] += block->pinned ? lives * block->bytes : 0;
        }
        ASSERT_EQ(timeline->needed.items[k], needed[k]);
    }
    free(needed);
}

/* Held timelines need just what lives while an exec runs, and nothing is written that was not. */
static void check_held(const np_timeline *timeline, const np_timeline *used)
{
    const np_period *period = timeline->period;
    size_t n_writes = 0;
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        uint64_t needed = 0;
        for (size_t i = 0; i < period->lives.n; i++) {
            const np_life *life = &period->lives.items[i];
            uint64_t bytes = (period->trace->blocks.items[life->block].bytes + 511) / 512 * 512;
            uint32_t t = timeline->times.items[k];
            if (!life->persistent && life->end - life->begin >= period->length) {
                needed += bytes * ((life->end - life->begin) / period->length + 1);
            } else if ((life->begin <= t && t < life->end) || t + period->length < life->end) {
                needed += bytes;
            }
        }
        ASSERT_EQ(timeline->needed.items[k], needed);
        ASSERT_GE(needed, used->needed.items[k]);
    }
    for (size_t i = 0; i < timeline->uses.n; i++) {
        n_writes += timeline->uses.items[i].writes;
    }
    for (size_t i = 0; i < used->uses.n; i++) {
        n_writes -= used->uses.items[i].writes;
    }
    ASSERT_EQ(n_writes, 0);
    ASSERT_GT(timeline->uses.n, used->uses.n);
}

/* What nothing has written yet has nothing to copy out. */
static void check_first_gaps(const np_timeline *timeline)
{
    for (size_t g = 0; g < timeline->gaps.n; g++) {
        const np_gap *gap = &timeline->gaps.items[g];
        const np_swap_block *block = &timeline->blocks.items[gap->block];
        const np_use *uses = &timeline->uses.items[block->first_use];
        if (!block->persistent && uses[0].exec % timeline->n_execs == gap->from && !uses[0].writes) {
            ASSERT_TRUE(gap->release_ns == -INFINITY);
        }
    }
}

static void check_trace_held(neap_trace *trace)
{
    np_timeline_options options = careful;
    np_period period;
    np_timeline timeline, used;
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_OK(np_timeline_make(&period, &options, NULL, &used));
    options.held = true;
    ASSERT_OK(np_timeline_make(&period, &options, NULL, &timeline));
    ASSERT_TRUE(np_timeline_is_valid(&timeline));
    check_held(&timeline, &used);
    check_first_gaps(&timeline);
    np_timeline_free(&timeline);
    np_timeline_free(&used);
    np_period_free(&period);
}

static void check_trace(neap_trace *trace)
{
    check_trace_held(trace);
    for (int a = 0; a < 2; a++) {
        np_timeline_options options = a ? any : careful;
        np_period period;
        np_timeline timeline;
        ASSERT_OK(np_period_find(trace, NULL, &period));
        ASSERT_OK(np_timeline_make(&period, &options, NULL, &timeline));
        ASSERT_TRUE(np_timeline_is_valid(&timeline));
        ASSERT_GE(timeline.gaps.n, 1);
        check_all(&timeline, options.directions);
        np_timeline_free(&timeline);
        np_period_free(&period);
    }
}

static void test_recordings(void **state)
{
    static const char *const files[] = {"gpt2-8",           "lstm-64",      "resnet18-100-32-fp32",
                                        "resnet18-100-log", "vgg11-100-32", "vgg16-100-32"};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        neap_trace *trace = NULL;
        neap_error error;
        char name[64] = "traces/";
        char path[TEST_PATH_BYTES];
        test_data_path(path, strcat(strcat(name, files[i]), ".neap.gz"));
        ASSERT_OK(neap_trace_read(path, NULL, &error, &trace));
        check_trace(trace);
        neap_trace_free(trace);
    }
}

static void test_made_trainings(void **state)
{
    static const training options[] = {
        {.seed = 1},
        {.seed = 2, .loss_kept = true},
        {.seed = 3, .zero_grad_at_start = true},
        {.seed = 4, .zero_grad_at_start = true, .loss_kept = true, .n_layers = 20, .leak_bytes = 512},
        {.seed = 5, .long_lives = 2, .n_iterations = 8},
        {.seed = 6, .n_time_steps = 5, .step_bytes = 4096, .log_every = 3, .n_iterations = 12},
    };
    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        neap_trace *trace = make_training(&options[i]);
        ASSERT_TRUE(trace != NULL);
        check_trace(trace);
        neap_trace_free(trace);
    }
}

/* ---- edges ---- */

static void test_no_execs(void **state)
{
    made m;
    (void)state;
    make_from_text("neap-trace 1\nmalloc 1 512\nfree 1\nmalloc 2 512\nfree 2\nmalloc 3 512\nfree 3\n", careful, &m);
    ASSERT_EQ(m.timeline.n_execs, 0);
    ASSERT_EQ(m.timeline.gaps.n, 0);
    unmake(&m);
}

static void test_is_valid_finds_faults(void **state)
{
    made m;
    (void)state;
    make_from_text(TRACE("r"), careful, &m);
    m.timeline.gaps.items[0].to = m.timeline.gaps.items[0].from + 1;
    ASSERT_FALSE(np_timeline_is_valid(&m.timeline));
    unmake(&m);
    make_from_text(TRACE("r"), careful, &m);
    m.timeline.start_ns.items[2] -= 15;
    ASSERT_FALSE(np_timeline_is_valid(&m.timeline));
    unmake(&m);
    make_from_text(TRACE("r"), careful, &m);
    m.timeline.gaps.items[0].due_ns -= 1000;
    ASSERT_FALSE(np_timeline_is_valid(&m.timeline));
    unmake(&m);
}

static neap_status make_with(const neap_memory *memory, void *user)
{
    np_timeline timeline;
    neap_status status = np_timeline_make(user, &careful, memory, &timeline);
    if (status == NEAP_OK) {
        np_timeline_free(&timeline);
    }
    return status;
}

static void test_no_memory(void **state)
{
    made m;
    (void)state;
    make_from_text(TRACE("x"), careful, &m);
    ASSERT_GE(test_memory_fail_each(make_with, &m.period), 8);
    unmake(&m);
}

static void test_any_locale(void **state)
{
    test_comma_begin();
    test_even_pauses_and_slower(state);
    test_comma_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_execs_without_pauses),
        cmocka_unit_test(test_even_pauses_and_slower),
        cmocka_unit_test(test_needs_from_first_to_last_use),
        cmocka_unit_test(test_gaps_and_releases),
        cmocka_unit_test(test_unknown_directions),
        cmocka_unit_test(test_block_across_the_end),
        cmocka_unit_test(test_recordings),
        cmocka_unit_test(test_made_trainings),
        cmocka_unit_test(test_no_execs),
        cmocka_unit_test(test_is_valid_finds_faults),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_any_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
