#include "swap/select.h"

#include <stdlib.h>

#include "swap/hold.h"

/* ---- the load as a tree ---- */

/* Node i stands over 2i and 2i + 1, leaves at [n, 2n) are execs. Bytes are only ever taken away, and what is taken from a
 * whole subtree is known at its top alone: a node's maximum is too high by what was taken above it, never negative. */
typedef struct load_tree {
    uint64_t *highest;
    uint64_t *taken; /* from the whole subtree; already in `highest` of the node itself */
    size_t n;        /* a power of two */
} load_tree;

static neap_status tree_init(load_tree *tree, const np_timeline *timeline)
{
    tree->n = 1;
    while (tree->n < timeline->n_execs) {
        tree->n *= 2;
    }
    tree->highest = np_memory_alloc_zero(timeline->memory, 2 * tree->n, sizeof *tree->highest);
    tree->taken = np_memory_alloc_zero(timeline->memory, 2 * tree->n, sizeof *tree->taken);
    if (!tree->highest || !tree->taken) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        tree->highest[tree->n + k] = timeline->needed.items[k];
    }
    for (size_t i = tree->n - 1; i > 0; i--) {
        uint64_t left = tree->highest[2 * i];
        uint64_t right = tree->highest[2 * i + 1];
        tree->highest[i] = left > right ? left : right;
    }
    return NEAP_OK;
}

static void tree_free(load_tree *tree, const np_timeline *timeline)
{
    np_memory_free(timeline->memory, tree->highest, 2 * tree->n, sizeof *tree->highest);
    np_memory_free(timeline->memory, tree->taken, 2 * tree->n, sizeof *tree->taken);
}

/* A node and the execs below it. */
typedef struct tree_place {
    size_t node;
    size_t begin;
    size_t end;
} tree_place;

static tree_place left_of(tree_place at)
{
    return (tree_place){2 * at.node, at.begin, at.begin + (at.end - at.begin) / 2};
}

static tree_place right_of(tree_place at)
{
    return (tree_place){2 * at.node + 1, at.begin + (at.end - at.begin) / 2, at.end};
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Takes bytes from the execs [first, end) below a place. */
static void tree_take(load_tree *tree, tree_place at, size_t first, size_t end, uint64_t bytes)
{
    if (end <= at.begin || at.end <= first) {
        return;
    }
    if (first <= at.begin && at.end <= end) {
        tree->highest[at.node] -= bytes;
        tree->taken[at.node] += bytes;
        return;
    }
    tree_take(tree, left_of(at), first, end, bytes);
    tree_take(tree, right_of(at), first, end, bytes);
    tree->highest[at.node] = larger(tree->highest[2 * at.node], tree->highest[2 * at.node + 1]) - tree->taken[at.node];
}

/* The highest load of the execs [first, end) below a place, 0 where there are none. */
static uint64_t tree_highest(const load_tree *tree, tree_place at, size_t first, size_t end)
{
    uint64_t highest;
    if (end <= at.begin || at.end <= first) {
        return 0;
    }
    if (first <= at.begin && at.end <= end) {
        return tree->highest[at.node];
    }
    highest = larger(tree_highest(tree, left_of(at), first, end), tree_highest(tree, right_of(at), first, end));
    return highest > tree->taken[at.node] ? highest - tree->taken[at.node] : 0;
}

/* ---- gaps on the circle ---- */

typedef struct exec_range {
    size_t first;
    size_t end;
} exec_range;

/* The execs inside a gap: one range, or two where it goes on at the period's start. Their number. */
static size_t ranges_of(const np_timeline *timeline, const np_gap *gap, exec_range ranges[2])
{
    size_t n = timeline->n_execs;
    size_t first = (size_t)gap->from + 1;
    if (first >= n) {
        ranges[0] = (exec_range){first - n, gap->to - n};
        return 1;
    }
    ranges[0] = (exec_range){first, gap->to < n ? gap->to : n};
    ranges[1] = (exec_range){0, gap->to > n ? gap->to - n : 0};
    return gap->to > n ? 2 : 1;
}

/* ---- selection ---- */

typedef struct ranked {
    double score;
    uint32_t gap;
} ranked;

static int compare_ranked(const void *left, const void *right)
{
    const ranked *a = left;
    const ranked *b = right;
    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    return a->gap < b->gap ? -1 : a->gap > b->gap;
}

static int compare_gaps(const void *left, const void *right)
{
    const np_swap *a = left;
    const np_swap *b = right;
    return a->gap < b->gap ? -1 : a->gap > b->gap;
}

static neap_status take_in_order(const np_swap_task *task, const ranked *order, load_tree *tree, np_swap *swaps,
                                 uint32_t *n_swaps)
{
    const np_timeline *timeline = task->timeline;
    bool pass_over = task->candidates->scope != NP_SCOPE_PEAK || task->candidates->peaks.n > 1;
    tree_place top = {1, 0, tree->n};
    uint32_t n = 0;
    for (size_t i = 0; i < task->candidates->gaps.n && tree->highest[1] > task->limit; i++) {
        const np_gap *gap = &timeline->gaps.items[order[i].gap];
        exec_range ranges[2];
        size_t n_ranges = ranges_of(timeline, gap, ranges);
        uint64_t highest = 0;
        for (size_t r = 0; r < n_ranges && pass_over; r++) {
            highest = larger(highest, tree_highest(tree, top, ranges[r].first, ranges[r].end));
        }
        if (pass_over && highest <= task->limit) {
            continue;
        }
        for (size_t r = 0; r < n_ranges; r++) {
            tree_take(tree, top, ranges[r].first, ranges[r].end, gap->bytes);
        }
        swaps[n++] = (np_swap){.bytes = gap->bytes, .gap = order[i].gap};
    }
    if (tree->highest[1] > task->limit) {
        return NEAP_NO_PLAN;
    }
    qsort(swaps, n, sizeof *swaps, compare_gaps);
    *n_swaps = n;
    return NEAP_OK;
}

neap_status np_select(const np_swap_task *task, const double *scores, np_swap *swaps, uint32_t *n_swaps)
{
    const neap_memory *memory = task->timeline->memory;
    size_t n = task->candidates->gaps.n;
    ranked *order = np_memory_alloc(memory, n, sizeof *order);
    load_tree tree = {0};
    neap_status status = order ? tree_init(&tree, task->timeline) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        for (size_t i = 0; i < n; i++) {
            order[i] = (ranked){scores[i], task->candidates->gaps.items[i]};
        }
        qsort(order, n, sizeof *order, compare_ranked);
        status = take_in_order(task, order, &tree, swaps, n_swaps);
    }
    tree_free(&tree, task->timeline);
    np_memory_free(memory, order, n, sizeof *order);
    return status;
}

neap_status np_select_and_simulate(const np_swap_task *task, const double *scores, np_swap *swaps, uint32_t *n_swaps,
                                   np_simulation *simulation)
{
    uint32_t n = 0;
    neap_status status = np_select(task, scores, swaps, &n);
    if (status == NEAP_OK) {
        status = np_schedule_swaps(task->timeline, task->link, swaps, n);
    }
    if (status == NEAP_OK) {
        status = np_hold_swaps(task->timeline, task->limit, swaps, n);
    }
    if (status == NEAP_OK) {
        status = np_simulate(task->simulator, task->limit, swaps, n, simulation);
    }
    if (status == NEAP_OK) {
        *n_swaps = n;
    }
    return status;
}
