/* Lives on the circle: whatever a training loop keeps and for how long, wherever the recording starts and ends, the
 * period is found and the lives add up to the load at all times (check_period). */
#include "trace/lives.h"

#include <string.h>

#include "base/rng.h"
#include "testing.h"
#include "trace/check_period.h"
#include "trace/make_trace.h"

/* What is recorded of a loop. */
typedef struct recording {
    const neap_trace *loop;
    uint32_t begin, end; /* events of it */
    const neap_trace *warm_up;
    uint32_t warm_up_end; /* events of that come first; 0: none */
} recording;

/* The recording's period must be `length`, with lives that add up. */
static void check_recording(const recording *r, uint32_t length)
{
    piece pieces[] = {{r->warm_up, 0, r->warm_up_end, 0, true}, {r->loop, r->begin, r->end, 0, false}};
    neap_trace *trace = r->warm_up_end ? splice(pieces, 2) : splice(pieces + 1, 1);
    np_period period;
    ASSERT_OK(np_period_find(trace, NULL, &period));
    if (period.length != length) {
        test_fail(__FILE__, __LINE__, "[%u, %u) after %u: period %u, not %u", r->begin, r->end, r->warm_up_end,
                  period.length, length);
    }
    check_period(&period);
    np_period_free(&period);
    neap_trace_free(trace);
}

/* Events of one period from mark `first` on. */
static uint32_t true_period(const neap_trace *loop, const training *o, uint32_t first)
{
    uint32_t n = o->log_every ? o->log_every : o->other_every ? o->other_every : 1;
    return loop->marks.items[first + n] - loop->marks.items[first];
}

/* How many iterations a recording needs: two periods, once nothing is left of what had begun before it. */
static uint32_t n_needed(const training *o)
{
    uint32_t n = o->log_every ? o->log_every : o->other_every ? o->other_every : 1;
    uint32_t across = o->long_lives ? 3 : o->loss_kept || o->zero_grad_at_start ? 1 : 0;
    across = o->queue_depth && o->queue_depth < 5 && o->queue_depth > across ? o->queue_depth : across;
    return across + 2 * n + 1;
}

static training random_training(np_rng *rng)
{
    training o = {.seed = np_rng_next(rng), .n_layers = 1 + (uint32_t)np_rng_below(rng, 6)};
    o.loss_kept = np_rng_below(rng, 2);
    o.zero_grad_at_start = np_rng_below(rng, 2);
    o.leak_bytes = np_rng_below(rng, 3) ? 0 : 512;
    o.long_lives = np_rng_below(rng, 3) ? 0 : 1 + (uint32_t)np_rng_below(rng, 3);
    o.queue_depth = np_rng_below(rng, 3) ? 0 : 1 + (uint32_t)np_rng_below(rng, 30);
    o.queue_width = 1 + (uint32_t)np_rng_below(rng, 4);
    o.freed_once = np_rng_below(rng, 4) == 0;
    o.n_micro = np_rng_below(rng, 4) ? 1 : 4;
    o.n_time_steps = np_rng_below(rng, 4) ? 0 : (uint32_t)np_rng_below(rng, 50);
    o.step_bytes = np_rng_below(rng, 2) ? 0 : 4096; /* far less than the rest: no epoch of time steps */
    o.false_accesses = np_rng_below(rng, 2) ? 0 : 2;
    if (np_rng_below(rng, 3) == 0) {
        o.log_every = 2 + (uint32_t)np_rng_below(rng, 2);
    } else if (np_rng_below(rng, 3) == 0) {
        o.other_every = 2 + (uint32_t)np_rng_below(rng, 2);
    }
    return o;
}

/* Random loops, cut at random places in front and behind, after a random piece of something else. */
static void test_random_loops(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < (TEST_SANITIZED ? 60 : 1000); seed++) {
        np_rng rng = np_rng_make(seed);
        training o = random_training(&rng), other = random_training(&rng);
        uint32_t length;
        neap_trace *loop, *warm_up;
        recording r;
        o.n_iterations = n_needed(&o) + 8;
        other.n_iterations = 2;
        loop = make_training(&o);
        warm_up = make_training(&other);
        length = true_period(loop, &o, 4);
        r = (recording){loop, (uint32_t)np_rng_below(&rng, loop->marks.items[3]), 0, warm_up, 0};
        r.end = (uint32_t)loop->events.n - (uint32_t)np_rng_below(&rng, length);
        r.warm_up_end = np_rng_below(&rng, 2) ? 0 : (uint32_t)np_rng_below(&rng, warm_up->marks.items[1]);
        if (r.warm_up_end > (r.end - r.begin) / 4) { /* whose own loops are not to be the longest run */
            r.warm_up_end = (r.end - r.begin) / 4;
        }
        check_recording(&r, length);
        neap_trace_free(loop);
        neap_trace_free(warm_up);
    }
}

/* Every start and every end. What lives across the start is freed at an age that nobody knows: a recording that starts in
 * the middle of an iteration needs one more. */
static void sweep(training o, uint32_t first, uint32_t n_iterations)
{
    neap_trace *loop;
    uint32_t length, n_events, step = TEST_SANITIZED ? 7 : 1;
    o.n_iterations = first + n_iterations + 4;
    loop = make_training(&o);
    length = true_period(loop, &o, first + 1);
    for (uint32_t i = 0; i < length; i += step) {
        recording r = {.loop = loop, .begin = loop->marks.items[first] + i};
        n_events = n_iterations * length;
        r.end = r.begin + n_events + (i ? length : 0);
        check_recording(&r, length);
        r.end += i;
        check_recording(&r, length);
        r.begin = loop->marks.items[first];
        r.end = r.begin + n_events + i;
        check_recording(&r, length);
    }
    neap_trace_free(loop);
}

static void test_every_cut(void **state)
{
    (void)state;
    sweep((training){.n_layers = 3}, 0, 2); /* exactly two periods, and more */
    sweep((training){.n_layers = 3}, 0, 3);
    sweep((training){.n_layers = 2, .loss_kept = true, .zero_grad_at_start = true}, 1, 3);
    sweep((training){.n_layers = 2, .leak_bytes = 512}, 1, 3);
    sweep((training){.n_layers = 2, .freed_once = true}, 0, 4);
    sweep((training){.n_layers = 2, .long_lives = 2}, 3, 5);
    sweep((training){.n_layers = 2, .queue_depth = 1}, 1, 4);
    sweep((training){.n_layers = 2, .queue_depth = 40}, 1, 2); /* deeper than what is recorded */
    sweep((training){.n_layers = 2, .queue_depth = 40, .queue_width = 3}, 1, 3);
    sweep((training){.n_layers = 2, .queue_depth = 20, .long_lives = 1, .loss_kept = true}, 3, 6);
}

/* Blocks by age, oldest first. */
typedef struct store {
    uint64_t ids[512];
    uint64_t bytes[512];
    size_t n;
} store;

static void keep(store *s, uint64_t id, uint64_t bytes)
{
    s->ids[s->n] = id;
    s->bytes[s->n++] = bytes;
}

/* Frees the oldest or the youngest block of a size, if there is one. */
static void free_one(store *s, neap_trace *trace, uint64_t bytes, bool oldest)
{
    size_t found = s->n;
    for (size_t i = 0; i < s->n; i++) {
        found = s->bytes[i] == bytes && (found == s->n || !oldest) ? i : found;
    }
    if (found < s->n) {
        ASSERT_OK(np_trace_add_free(trace, s->ids[found]));
        s->n--;
        memmove(s->ids + found, s->ids + found + 1, (s->n - found) * sizeof *s->ids);
        memmove(s->bytes + found, s->bytes + found + 1, (s->n - found) * sizeof *s->bytes);
    }
}

/* A few mallocs, frees and execs, repeated a few times, with now and then one left out; lives from before and beyond. */
static neap_trace *make_small(uint64_t seed)
{
    static const uint64_t sizes[] = {512, 1024, 1 << 20};
    np_rng rng = np_rng_make(seed);
    store s = {.n = 0};
    uint32_t ops[12], n_ops = 1 + (uint32_t)np_rng_below(&rng, 12), n = n_ops * (2 + (uint32_t)np_rng_below(&rng, 8));
    uint64_t id = 1;
    neap_trace *trace;
    ASSERT_OK(np_trace_create(NULL, &trace));
    for (; id <= np_rng_below(&rng, 30); id++) {
        keep(&s, id, sizes[np_rng_below(&rng, 2)]);
        ASSERT_OK(np_trace_add_live(trace, id, s.bytes[s.n - 1]));
    }
    for (uint32_t i = 0; i < n_ops; i++) {
        ops[i] = (uint32_t)np_rng_below(&rng, 12);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = ops[i % n_ops] / 3, size = ops[i % n_ops] % 3;
        if (np_rng_below(&rng, 200) == 0) {
            continue;
        }
        if (op == 0) {
            ASSERT_OK(np_trace_add_malloc(trace, id, sizes[size]));
            keep(&s, id++, sizes[size]);
        } else if (op == 1) {
            ASSERT_OK(np_trace_add_exec(trace, size ? "a" : "b", 1, 0, 1));
            for (size_t k = 0; k < 3 && s.n; k++) {
                ASSERT_OK(np_trace_add_access(trace, s.ids[k * size % s.n], NEAP_ACCESS_UNKNOWN));
            }
        } else {
            free_one(&s, trace, sizes[size], op == 2);
        }
    }
    return trace;
}

static void test_small_programs(void **state)
{
    unsigned n_found = 0;
    (void)state;
    for (uint64_t seed = 0; seed < (TEST_SANITIZED ? 2000 : 20000); seed++) {
        neap_trace *trace = make_small(seed);
        np_period period;
        ASSERT_OK(np_period_find(trace, NULL, &period));
        ASSERT_TRUE(np_period_is_valid(&period));
        if (period.length && !period.leak_bytes) {
            check_period(&period);
            n_found++;
        }
        np_period_free(&period);
        neap_trace_free(trace);
    }
    ASSERT_GE(n_found, TEST_SANITIZED ? 500 : 5000);
}

/* A queue deeper than the recording: the lives last as long as what is seen waiting, the rest is persistent. */
static void test_deep_queue(void **state)
{
    training o = {.n_layers = 2, .queue_depth = 10, .n_iterations = 4};
    neap_trace *trace = make_training(&o);
    np_period period;
    unsigned n_queued = 0, n_waiting = 0;
    (void)state;
    ASSERT_OK(np_period_find(trace, NULL, &period));
    check_period(&period);
    ASSERT_EQ(period.n_leaked, 0);
    ASSERT_EQ(period.run_length, 4 * period.length);
    for (size_t i = 0; i < period.lives.n; i++) {
        const np_life *life = &period.lives.items[i];
        if (trace->blocks.items[life->block].bytes == 8192) {
            n_waiting += life->persistent;
            n_queued += !life->persistent;
            ASSERT_TRUE(life->persistent || (life->end - life->begin) / period.length == 4);
        }
    }
    ASSERT_EQ(n_queued, 1);
    ASSERT_EQ(n_waiting, 6);
    np_period_free(&period);
    neap_trace_free(trace);
}

/* A program that mallocs more each period than it frees of another size: no load is forgotten. */
static void test_growth_of_another_size(void **state)
{
    neap_trace *trace;
    np_period period;
    (void)state;
    ASSERT_OK(np_trace_create(NULL, &trace));
    for (uint64_t i = 1; i <= 20; i++) {
        ASSERT_OK(np_trace_add_live(trace, i, 512));
    }
    for (uint64_t i = 1; i <= 5; i++) {
        ASSERT_OK(np_trace_add_malloc(trace, 100 + i, 1 << 20));
        ASSERT_OK(np_trace_add_free(trace, i));
        ASSERT_OK(np_trace_add_malloc(trace, 200 + i, 1024));
        ASSERT_OK(np_trace_add_free(trace, 100 + i));
    }
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_EQ(period.length, 4);
    ASSERT_EQ(period.leak_bytes, 512);
    ASSERT_EQ(period.n_leaked, 1);
    ASSERT_TRUE(np_period_is_valid(&period));
    ASSERT_EQ(period.lives.n, 21);
    np_period_free(&period);
    neap_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_loops),           cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_small_programs),         cmocka_unit_test(test_deep_queue),
        cmocka_unit_test(test_growth_of_another_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
