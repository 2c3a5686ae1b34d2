#include "swap/fluid.h"

#include <math.h>

#include "swap/simplex.h"
#include "testing.h"

/* ---- random programs ---- */

static fluid_block random_block(np_rng *rng, uint32_t n)
{
    fluid_block block = {.bytes = 1000 * (1 + np_rng_below(rng, 20)), .persistent = np_rng_below(rng, 3) == 0};
    uint32_t first = block.persistent ? 0 : (uint32_t)np_rng_below(rng, n);
    uint32_t often = 1 + (uint32_t)np_rng_below(rng, 4); /* of 5 execs */
    bool writes_rarely = np_rng_below(rng, 2) == 0;
    for (uint32_t k = first; k < first + n; k++) {
        if (np_rng_below(rng, 5) < often && (block.n_uses > 0 || block.persistent || k < n)) {
            bool writes = np_rng_below(rng, writes_rarely ? 5 : 2) == 0;
            block.uses[block.n_uses] = (np_use){k, writes || (block.n_uses == 0 && !block.persistent)};
            block.n_uses++;
        }
    }
    if (block.n_uses == 0) {
        block.uses[block.n_uses++] = (np_use){first, true};
    }
    return block;
}

fluid_program fluid_random(np_rng *rng, uint32_t n_execs_max, uint32_t n_blocks_max)
{
    fluid_program program = {.n_execs = 3 + (uint32_t)np_rng_below(rng, n_execs_max - 2),
                             .n_blocks = 1 + (uint32_t)np_rng_below(rng, n_blocks_max)};
    uint64_t longest = 1 + np_rng_below(rng, 12);
    uint64_t longest_pause = np_rng_below(rng, 4);
    for (uint32_t k = 0; k < program.n_execs; k++) {
        program.duration_ns[k] = (double)np_rng_below(rng, longest + 1);
        program.pause_ns[k] = (double)np_rng_below(rng, longest_pause + 1);
    }
    program.duration_ns[0] += 1; /* the period is not empty */
    for (uint32_t b = 0; b < program.n_blocks; b++) {
        program.blocks[b] = random_block(rng, program.n_execs);
    }
    return program;
}

/* ---- as a timeline ---- */

/* Whether the block needs memory during exec k of the period. */
static bool is_needed(const fluid_program *program, const fluid_block *block, uint32_t k)
{
    uint32_t first = block->uses[0].exec;
    uint32_t last = block->uses[block->n_uses - 1].exec;
    return block->persistent || (first <= k && k <= last) ||
           (first <= k + program->n_execs && k + program->n_execs <= last);
}

static uint64_t needed_at(const fluid_program *program, uint32_t k)
{
    uint64_t bytes = 0;
    for (uint32_t b = 0; b < program->n_blocks; b++) {
        bytes += is_needed(program, &program->blocks[b], k) ? program->blocks[b].bytes : 0;
    }
    return bytes;
}

/* The use after use u, counted on; UINT32_MAX: the block's life ends with it. */
static uint32_t next_use(const fluid_program *program, const fluid_block *block, uint32_t u)
{
    if (u + 1 < block->n_uses) {
        return block->uses[u + 1].exec;
    }
    return block->persistent ? block->uses[0].exec + program->n_execs : UINT32_MAX;
}

/* The use that wrote what use u leaves behind, and how many periods before; false: none did. */
static bool last_write(const fluid_block *block, uint32_t u, uint32_t *write, uint32_t *periods)
{
    for (uint32_t back = 0; back < block->n_uses; back++) {
        *periods = back > u;
        *write = u + block->n_uses * *periods - back;
        if (*periods && !block->persistent) {
            return false;
        }
        if (block->uses[*write].writes) {
            return true;
        }
    }
    return false;
}

static void add_gaps(const fluid_program *program, uint32_t b, np_timeline *timeline)
{
    const fluid_block *block = &program->blocks[b];
    for (uint32_t u = 0; u < block->n_uses; u++) {
        uint32_t from = block->uses[u].exec;
        uint32_t to = next_use(program, block, u);
        uint32_t shift = from - from % program->n_execs;
        uint32_t write;
        uint32_t periods;
        if (to != UINT32_MAX && to > from + 1) {
            np_gap gap = {.bytes = block->bytes, .block = b, .from = from - shift, .to = to - shift};
            gap.due_ns = np_timeline_start(timeline, gap.to);
            gap.release_ns = -INFINITY;
            if (last_write(block, u, &write, &periods)) {
                gap.release_ns = np_timeline_end(timeline, block->uses[write].exec) -
                                 timeline->period_ns * (periods + shift / program->n_execs);
            }
            ASSERT_OK(np_array_push(timeline->memory, &timeline->gaps, gap));
        }
    }
}

void fluid_timeline(const fluid_program *program, np_timeline *timeline)
{
    np_timeline made = {.memory = np_memory_or_default(NULL), .alignment = 1, .n_execs = program->n_execs};
    for (uint32_t k = 0; k < program->n_execs; k++) {
        made.period_ns += program->pause_ns[k];
        ASSERT_OK(np_array_push(made.memory, &made.start_ns, made.period_ns));
        made.period_ns += program->duration_ns[k];
        ASSERT_OK(np_array_push(made.memory, &made.end_ns, made.period_ns));
        ASSERT_OK(np_array_push(made.memory, &made.times, k));
        ASSERT_OK(np_array_push(made.memory, &made.needed, needed_at(program, k)));
        made.peak_load = needed_at(program, k) > made.peak_load ? needed_at(program, k) : made.peak_load;
    }
    for (uint32_t b = 0; b < program->n_blocks; b++) {
        const fluid_block *block = &program->blocks[b];
        np_swap_block added = {.bytes = block->bytes, .life = b, .n_uses = block->n_uses};
        added.first_use = (uint32_t)made.uses.n;
        added.persistent = block->persistent;
        ASSERT_OK(np_array_push(made.memory, &made.blocks, added));
        for (uint32_t u = 0; u < block->n_uses; u++) {
            ASSERT_OK(np_array_push(made.memory, &made.uses, block->uses[u]));
        }
        add_gaps(program, b, &made);
    }
    *timeline = made;
}

/* ---- the linear program ----
 *
 * Point 2k is the start of exec k, point 2k + 1 its end; slot p lies between points p and p + 1. Rates are constant in
 * a slot without loss: needs, releases and dues change at points alone. Variables:
 *   wait[k]    before exec k, part of slot 2k - 1
 *   low        how far the peak is below the most needed
 *   copied     of a version (what one write left in a block), by slot: bytes copied out
 *   absent     of a gap, by point
 *   fetched    of a gap, by slot: bytes copied in */

typedef struct flow {
    simplex program;
    uint32_t n;
    uint32_t low;
    uint32_t wait[FLUID_EXECS_MAX];
    uint32_t out_row[2 * FLUID_EXECS_MAX];
    uint32_t in_row[2 * FLUID_EXECS_MAX];
    uint32_t both_row[2 * FLUID_EXECS_MAX];
    uint32_t memory_row[2 * FLUID_EXECS_MAX];
} flow;

static uint32_t add_link_row(flow *f, double speed, double slot_ns, uint32_t waiting)
{
    uint32_t row = simplex_add_row(&f->program, speed * slot_ns);
    if (waiting != UINT32_MAX) {
        f->program.a[row][f->wait[waiting]] = -speed;
    }
    return row;
}

/* The rows of every slot and point, and the variables of all: `wait_gain` and `low_gain` are what they count. */
static double begin_flow(flow *f, const fluid_program *program, const np_link *link, double wait_gain, double low_gain)
{
    uint64_t most = 0;
    double both = link->both > 0 ? link->both : link->out + link->in;
    f->n = program->n_execs;
    simplex_clear(&f->program);
    f->low = simplex_add_column(&f->program, low_gain);
    for (uint32_t k = 0; k < f->n; k++) {
        f->wait[k] = simplex_add_column(&f->program, wait_gain);
        most = needed_at(program, k) > most ? needed_at(program, k) : most;
    }
    for (uint32_t p = 0; p < 2 * f->n; p++) {
        uint32_t waiting = p % 2 ? (p / 2 + 1) % f->n : UINT32_MAX;
        double slot_ns = p % 2 ? program->pause_ns[waiting] : program->duration_ns[p / 2];
        f->out_row[p] = add_link_row(f, link->out, slot_ns, waiting);
        f->in_row[p] = add_link_row(f, link->in, slot_ns, waiting);
        f->both_row[p] = add_link_row(f, both, slot_ns, waiting);
        f->memory_row[p] = simplex_add_row(&f->program, (double)(most - needed_at(program, p / 2)));
        f->program.a[f->memory_row[p]][f->low] = 1;
    }
    return (double)most;
}

/* The gap between execs from and to; `copied` are the columns of its version by slot, from slot `released` on (NULL:
 * the host has it already). */
static void add_flow_gap(flow *f, double bytes, uint32_t from, uint32_t to, const uint32_t *copied, uint32_t released)
{
    simplex *program = &f->program;
    uint32_t before = UINT32_MAX; /* row of the slot before the point */
    for (uint32_t p = 2 * (from + 1); p < 2 * to; p++) {
        uint32_t at = p % (2 * f->n);
        uint32_t absent = simplex_add_column(program, 0);
        uint32_t fetched = simplex_add_column(program, 0);
        uint32_t row = simplex_add_row(program, copied ? 0 : bytes);
        program->a[row][absent] = 1;
        for (uint32_t s = released; copied && s < p; s++) {
            program->a[row][copied[s - released]] = -1;
        }
        program->a[f->memory_row[at]][absent] = -1;
        if (before != UINT32_MAX) {
            program->a[before][absent] = -1;
        }
        before = simplex_add_row(program, 0); /* absent now - absent at the next point <= fetched */
        program->a[before][absent] = 1;
        program->a[before][fetched] = -1;
        program->a[f->in_row[at]][fetched] = 1;
        program->a[f->both_row[at]][fetched] = 1;
    }
}

/* All gaps in which the block is as use `write` left it (UINT32_MAX: as nobody wrote it). */
static void add_version(flow *f, const fluid_program *program, const fluid_block *block, uint32_t write)
{
    uint32_t copied[4 * FLUID_EXECS_MAX];
    uint32_t released = write == UINT32_MAX ? 0 : 2 * block->uses[write].exec + 1;
    uint32_t all = UINT32_MAX;
    for (uint32_t s = 0; write != UINT32_MAX && s < 2 * f->n; s++) {
        uint32_t at = (released + s) % (2 * f->n);
        copied[s] = simplex_add_column(&f->program, 0);
        all = s == 0 ? simplex_add_row(&f->program, (double)block->bytes) : all;
        f->program.a[all][copied[s]] = 1;
        f->program.a[f->out_row[at]][copied[s]] = 1;
        f->program.a[f->both_row[at]][copied[s]] = 1;
    }
    for (uint32_t u = 0; u < block->n_uses; u++) {
        uint32_t from = block->uses[u].exec;
        uint32_t to = next_use(program, block, u);
        uint32_t by;
        uint32_t periods = 0;
        if (to == UINT32_MAX || to <= from + 1 || (last_write(block, u, &by, &periods) ? by : UINT32_MAX) != write) {
            continue;
        }
        periods = write == UINT32_MAX ? 0 : periods;
        add_flow_gap(f, (double)block->bytes, from + periods * f->n, to + periods * f->n,
                     write == UINT32_MAX ? NULL : copied, released);
    }
}

static void add_blocks(flow *f, const fluid_program *program)
{
    for (uint32_t b = 0; b < program->n_blocks; b++) {
        const fluid_block *block = &program->blocks[b];
        add_version(f, program, block, UINT32_MAX);
        for (uint32_t u = 0; u < block->n_uses; u++) {
            if (block->uses[u].writes) {
                add_version(f, program, block, u);
            }
        }
    }
}

static flow shared_flow; /* too large for the stack */

double fluid_peak(const fluid_program *program, const np_link *link, double wait_ns)
{
    flow *f = &shared_flow;
    double most = begin_flow(f, program, link, 0, 1);
    uint32_t row = simplex_add_row(&f->program, wait_ns);
    for (uint32_t k = 0; k < f->n; k++) {
        f->program.a[row][f->wait[k]] = 1;
    }
    row = simplex_add_row(&f->program, most);
    f->program.a[row][f->low] = 1;
    add_blocks(f, program);
    return simplex_solve(&f->program) ? most - f->program.x[f->low] : NAN;
}

double fluid_overhead(const fluid_program *program, const np_link *link, double limit)
{
    flow *f = &shared_flow;
    double dear = 10 * 2 * program->n_execs / fmin(link->out, link->in); /* no byte costs this much to be rid of */
    double most = begin_flow(f, program, link, -1, dear);
    double wait_ns = 0;
    uint32_t row = simplex_add_row(&f->program, fmax(most - limit, 0));
    f->program.a[row][f->low] = 1;
    add_blocks(f, program);
    if (!simplex_solve(&f->program)) {
        return NAN;
    }
    for (uint32_t k = 0; k < f->n; k++) {
        wait_ns += f->program.x[f->wait[k]];
    }
    return f->program.x[f->low] < most - limit - 1 ? INFINITY : wait_ns;
}
