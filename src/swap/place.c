#include "swap/place.h"

#include <stdlib.h>

#include "pool/clique.h"
#include "pool/solve.h"

/* A part of a block in one of its gaps: the bytes [begin, end) of the block are absent in the execs [from, to). */
typedef struct absent_part {
    uint32_t block;
    uint32_t gap;
    uint64_t begin;
    uint64_t end;
    uint32_t from;
    uint32_t to;
} absent_part;

enum { MAX_CUTS = 600 }; /* pieces that all swapped blocks together are cut into, about */

typedef struct placing {
    const np_timeline *timeline;
    uint64_t piece; /* bytes: swapped blocks are cut into pieces no larger */
    np_problem problem;
    absent_part *parts; /* by block */
    uint32_t n_parts;
    uint64_t *cuts;   /* scratch: where a block's segments end */
    np_piece *pieces; /* scratch: of one segment */
} placing;

static int compare_parts(const void *left, const void *right)
{
    const absent_part *a = left;
    const absent_part *b = right;
    if (a->block != b->block) {
        return a->block < b->block ? -1 : 1;
    }
    if (a->gap != b->gap) {
        return a->gap < b->gap ? -1 : 1;
    }
    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }
    return a->to < b->to ? 1 : a->to > b->to ? -1 : 0;
}

static int compare_bytes(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return *a < *b ? -1 : *a > *b;
}

static int compare_pieces(const void *left, const void *right)
{
    const np_piece *a = left;
    const np_piece *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* In each gap the parts are stacked from the block's first byte on, so that the same bytes leave in all gaps. */
static void collect_parts(placing *p, const np_simulator *simulator, const np_swap *swaps, uint32_t n_swaps)
{
    for (uint32_t i = 0; i < n_swaps; i++) {
        const np_gap *gap = &p->timeline->gaps.items[swaps[i].gap];
        np_absence absence = np_simulator_absence(simulator, i);
        uint32_t to = absence.back_from < gap->to ? absence.back_from : gap->to;
        if (absence.absent_from < to) {
            p->parts[p->n_parts++] = (absent_part){
                .block = gap->block, .gap = swaps[i].gap, .end = swaps[i].bytes, .from = absence.absent_from, .to = to};
        }
    }
    qsort(p->parts, p->n_parts, sizeof *p->parts, compare_parts);
    for (uint32_t i = 1; i < p->n_parts; i++) {
        if (p->parts[i].gap == p->parts[i - 1].gap) {
            p->parts[i].begin = p->parts[i - 1].end;
            p->parts[i].end += p->parts[i].begin;
        }
    }
}

static void add_piece(placing *p, uint32_t *n_pieces, uint32_t begin, uint32_t end)
{
    uint32_t n = p->timeline->n_execs;
    uint32_t laps = begin / n;
    begin -= laps * n;
    end -= laps * n;
    if (begin >= end) {
        return;
    }
    if (end > n) {
        p->pieces[(*n_pieces)++] = (np_piece){0, end - n};
        end = n;
    }
    p->pieces[(*n_pieces)++] = (np_piece){begin, end};
}

/* The segment that holds byte `at` of the block: present from `first` to `past`, but where a part has it. */
static neap_status add_segment(placing *p, const absent_part *parts, uint32_t n_parts, uint32_t first, uint32_t past,
                               uint64_t at, uint64_t bytes)
{
    uint32_t n_pieces = 0;
    uint32_t now = first;
    for (uint32_t i = 0; i < n_parts; i++) {
        if (parts[i].begin <= at && at < parts[i].end) { /* gaps after the period's end are numbered from its start */
            uint32_t shift = parts[i].from < first ? p->timeline->n_execs : 0;
            add_piece(p, &n_pieces, now, parts[i].from + shift);
            now = parts[i].to + shift;
        }
    }
    add_piece(p, &n_pieces, now, past);
    if (n_pieces == 0) {
        return NEAP_OK;
    }
    qsort(p->pieces, n_pieces, sizeof *p->pieces, compare_pieces);
    return np_problem_add(&p->problem, bytes, NEAP_NO_OFFSET, p->pieces, n_pieces);
}

/* A persistent block is there all round, from its first use to the next period's. */
static neap_status add_block(placing *p, const np_swap_block *block, const absent_part *parts, uint32_t n_parts)
{
    const np_use *uses = &p->timeline->uses.items[block->first_use];
    uint32_t n = p->timeline->n_execs;
    uint32_t first = uses[0].exec;
    uint32_t past = block->persistent ? uses[0].exec + n : uses[block->n_uses - 1].exec + 1;
    uint32_t n_cuts = 0;
    uint64_t at = 0;
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < n_parts; i++) {
        p->cuts[n_cuts++] = parts[i].end;
    }
    p->cuts[n_cuts++] = block->bytes;
    qsort(p->cuts, n_cuts, sizeof *p->cuts, compare_bytes);
    for (uint32_t i = 0; i < n_cuts && status == NEAP_OK; i++) {
        while (p->cuts[i] > at && status == NEAP_OK) {
            uint64_t bytes = p->cuts[i] - at;
            bytes = n_parts > 0 && bytes > p->piece ? p->piece : bytes;
            status = add_segment(p, parts, n_parts, first, past, at, bytes);
            at += bytes;
        }
    }
    return status;
}

static neap_status add_pinned(placing *p, const np_swap_block *block)
{
    const np_life *life = &p->timeline->period->lives.items[block->life];
    uint32_t n_places = (life->end - life->begin) / p->timeline->period->length + 1;
    np_piece all = {0, p->timeline->n_execs};
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < n_places && status == NEAP_OK; i++) {
        status = np_problem_add(&p->problem, block->bytes, NEAP_NO_OFFSET, &all, 1);
    }
    return status;
}

/* Small enough to fit in anywhere, large enough to stay few. */
static uint64_t choose_piece(const placing *p, uint64_t page)
{
    uint64_t swapped = 0;
    for (uint32_t i = 0; i < p->n_parts; i++) {
        if (i == 0 || p->parts[i].block != p->parts[i - 1].block) {
            swapped += p->timeline->blocks.items[p->parts[i].block].bytes;
        }
    }
    return (swapped / MAX_CUTS / page + 1) * page;
}

static neap_status make_problem(placing *p)
{
    neap_status status = NEAP_OK;
    uint32_t at = 0;
    for (uint32_t b = 0; b < p->timeline->blocks.n && status == NEAP_OK; b++) {
        const np_swap_block *block = &p->timeline->blocks.items[b];
        uint32_t first = at;
        while (at < p->n_parts && p->parts[at].block == b) {
            at++;
        }
        status = block->pinned ? add_pinned(p, block) : add_block(p, block, &p->parts[first], at - first);
    }
    return status;
}

static neap_status solve(const placing *p, const np_place_options *options, neap_error *error, np_place_result *result)
{
    np_solve_options solve_options = {.solver = NEAP_SOLVER_SEARCH,
                                      .seconds = options->seconds,
                                      .seed = options->seed,
                                      .n_threads = options->n_threads};
    uint64_t unit = p->problem.unit;
    np_solution solution;
    neap_status status = np_solve(&p->problem, &solve_options, error, &solution);
    if (status != NEAP_OK) {
        return status;
    }
    *result = (np_place_result){.footprint = solution.height * unit,
                                .load = solution.load * unit,
                                .bound = solution.bound * unit,
                                .n_buffers = p->problem.buffers.n};
    np_solution_free(&solution);
    if (result->footprint > result->bound) {
        uint64_t clique;
        status = np_clique_bound(&p->problem, &clique);
        if (status == NEAP_OK && clique * unit > result->bound) {
            result->bound = clique * unit;
        }
    }
    return status;
}

neap_status np_place_swaps(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                           uint32_t n_swaps, const np_place_options *options, neap_error *error,
                           np_place_result *result)
{
    const neap_memory *memory = timeline->memory;
    size_t n = (size_t)n_swaps + 2;
    placing p = {.timeline = timeline};
    neap_status status;
    np_problem_init(&p.problem, memory, timeline->alignment, timeline->n_execs);
    p.parts = np_memory_alloc(memory, n, sizeof *p.parts);
    p.cuts = np_memory_alloc(memory, n, sizeof *p.cuts);
    p.pieces = np_memory_alloc(memory, 2 * n, sizeof *p.pieces);
    status = p.parts && p.cuts && p.pieces ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        collect_parts(&p, simulator, swaps, n_swaps);
        p.piece = choose_piece(&p, options->page);
        status = make_problem(&p);
    }
    if (status == NEAP_OK) {
        status = solve(&p, options, error, result);
    }
    np_problem_free(&p.problem);
    np_memory_free(memory, p.parts, n, sizeof *p.parts);
    np_memory_free(memory, p.cuts, n, sizeof *p.cuts);
    np_memory_free(memory, p.pieces, 2 * n, sizeof *p.pieces);
    return status;
}
