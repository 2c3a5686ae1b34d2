#include "swap/make_timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

static void push_use(np_timeline *timeline, uint32_t exec, bool writes)
{
    np_use use = {exec, writes};
    ASSERT_OK(np_array_push(timeline->memory, &timeline->uses, use));
}

/* The end of the last write at or before a moment of the block's uses, gone back over at most a period. */
static double last_write_ns(const np_timeline *timeline, const np_swap_block *block, uint32_t i)
{
    const np_use *uses = &timeline->uses.items[block->first_use];
    for (uint32_t back = 0; back < (block->persistent ? block->n_uses : i + 1); back++) {
        uint32_t at = (i + block->n_uses - back) % block->n_uses;
        if (uses[at].writes) {
            return np_timeline_end(timeline, uses[at].exec) - (back > i ? timeline->period_ns : 0);
        }
    }
    return -INFINITY;
}

static void push_gap(np_timeline *timeline, uint32_t block_index, uint32_t i, uint32_t to)
{
    const np_swap_block *block = &timeline->blocks.items[block_index];
    uint32_t from = timeline->uses.items[block->first_use + i].exec;
    np_gap gap = {.bytes = block->bytes, .block = block_index, .from = from, .to = to};
    if (to - from < 2) {
        return;
    }
    gap.release_ns = last_write_ns(timeline, block, i);
    gap.due_ns = np_timeline_start(timeline, to);
    if (from >= timeline->n_execs) {
        gap.from -= timeline->n_execs;
        gap.to -= timeline->n_execs;
        gap.release_ns -= timeline->period_ns;
        gap.due_ns -= timeline->period_ns;
    }
    ASSERT_OK(np_array_push(timeline->memory, &timeline->gaps, gap));
}

static bool is_needed(const block_shape *block, uint32_t n_execs, uint32_t k)
{
    uint32_t first = block->uses[0];
    uint32_t last = block->uses[block->n_uses - 1];
    return block->persistent || (first <= k && k <= last) || (first <= k + n_execs && k + n_execs <= last);
}

static void push_block(np_timeline *timeline, const block_shape *shape)
{
    np_swap_block block = {.bytes = shape->bytes, .n_uses = shape->n_uses, .persistent = shape->persistent};
    block.first_use = (uint32_t)timeline->uses.n;
    block.life = (uint32_t)timeline->blocks.n;
    for (uint32_t i = 0; i < shape->n_uses; i++) {
        push_use(timeline, shape->uses[i], !(shape->reads >> i & 1));
    }
    ASSERT_OK(np_array_push(timeline->memory, &timeline->blocks, block));
    for (uint32_t i = 0; i + 1 < shape->n_uses; i++) {
        push_gap(timeline, block.life, i, shape->uses[i + 1]);
    }
    if (shape->persistent) {
        push_gap(timeline, block.life, shape->n_uses - 1, shape->uses[0] + timeline->n_execs);
    }
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        timeline->needed.items[k] += is_needed(shape, timeline->n_execs, k) ? shape->bytes : 0;
    }
}

void make_timeline(const timeline_shape *shape, const neap_memory *memory, np_timeline *timeline)
{
    double now_ns = 0;
    *timeline = (np_timeline){.memory = np_memory_or_default(memory), .alignment = 1, .n_execs = shape->n_execs};
    for (uint32_t k = 0; k < shape->n_execs; k++) {
        now_ns += shape->pause_ns;
        ASSERT_OK(np_array_push(timeline->memory, &timeline->times, k));
        ASSERT_OK(np_array_push(timeline->memory, &timeline->start_ns, now_ns));
        now_ns += shape->durations_ns[k];
        ASSERT_OK(np_array_push(timeline->memory, &timeline->end_ns, now_ns));
        ASSERT_OK(np_array_push(timeline->memory, &timeline->needed, 0));
    }
    timeline->period_ns = now_ns;
    for (uint32_t i = 0; i < shape->n_blocks; i++) {
        push_block(timeline, &shape->blocks[i]);
    }
    for (uint32_t k = 0; k < shape->n_execs; k++) {
        uint64_t needed = timeline->needed.items[k];
        timeline->peak_load = needed > timeline->peak_load ? needed : timeline->peak_load;
    }
    ASSERT_TRUE(np_timeline_is_valid(timeline));
}

/* ---- at random ---- */

static int compare_execs(const void *left, const void *right)
{
    const uint32_t *a = left;
    const uint32_t *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void random_block(np_rng *rng, uint32_t n_execs, bool training, block_shape *block)
{
    uint32_t first = (uint32_t)np_rng_below(rng, n_execs);
    uint32_t n = 1 + (uint32_t)np_rng_below(rng, 4);
    uint32_t n_kept = 1;
    block->persistent = np_rng_below(rng, 4) == 0;
    for (uint32_t i = 0; i < n; i++) { /* within a period from the first */
        block->uses[i] = (block->persistent ? 0 : first) + (uint32_t)np_rng_below(rng, n_execs);
    }
    if (training && !block->persistent) {
        first /= 2;
        block->uses[0] = first;
        block->uses[1] = n_execs - 1 - first;
        n = 2;
    }
    qsort(block->uses, n, sizeof *block->uses, compare_execs);
    for (uint32_t i = 1; i < n; i++) {
        if (block->uses[i] != block->uses[n_kept - 1]) {
            block->uses[n_kept++] = block->uses[i];
        }
    }
    block->n_uses = n_kept;
    while (block->uses[0] >= n_execs) {
        for (uint32_t i = 0; i < n_kept; i++) {
            block->uses[i] -= n_execs;
        }
    }
}

void make_random_timeline(const random_timeline *random, np_rng *rng, const neap_memory *memory, np_timeline *timeline)
{
    uint32_t n_execs = 4 + (uint32_t)np_rng_below(rng, random->max_execs - 3);
    uint32_t n_blocks = 1 + (uint32_t)np_rng_below(rng, random->max_blocks);
    bool training = np_rng_below(rng, 2) == 0;
    double *durations_ns = calloc(n_execs, sizeof *durations_ns);
    block_shape *blocks = calloc(n_blocks, sizeof *blocks);
    timeline_shape shape = {.n_execs = n_execs, .durations_ns = durations_ns, .blocks = blocks, .n_blocks = n_blocks};
    ASSERT_TRUE(durations_ns && blocks);
    shape.pause_ns = (double)np_rng_below(rng, 3);
    for (uint32_t k = 0; k < n_execs; k++) {
        durations_ns[k] = (double)(1 + np_rng_below(rng, 20));
    }
    for (uint32_t i = 0; i < n_blocks; i++) {
        blocks[i].bytes = 1 + np_rng_below(rng, random->max_bytes);
        random_block(rng, n_execs, training, &blocks[i]);
        blocks[i].reads = random->reads ? (uint32_t)np_rng_below(rng, 16) : 0;
    }
    make_timeline(&shape, memory, timeline);
    free(durations_ns);
    free(blocks);
}

/* ---- by hand ---- */

bool gap_has_inside(const np_timeline *timeline, const np_gap *gap, uint32_t k)
{
    for (uint32_t i = gap->from + 1; i < gap->to; i++) {
        if (i % timeline->n_execs == k) {
            return true;
        }
    }
    return false;
}

uint64_t load_with_gaps_away(const np_timeline *timeline, uint32_t k, const uint32_t *gaps, size_t n_gaps)
{
    uint64_t load = timeline->needed.items[k];
    for (size_t i = 0; i < n_gaps; i++) {
        const np_gap *gap = &timeline->gaps.items[gaps[i]];
        load -= gap_has_inside(timeline, gap, k) ? gap->bytes : 0;
    }
    return load;
}
