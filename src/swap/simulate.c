#include "swap/simulate.h"

#include <math.h>

#include "swap/simulator.h"

enum {
    MIN_PERIODS = 2,
    MAX_PERIODS = 31, /* sixteen after the last anchor */
};

#define STEADY 1e-9 /* of a period: times that differ by less are alike */

typedef struct engine {
    const np_copy_job *jobs; /* a period's, in the order of the queue */
    uint32_t n_jobs;
    uint32_t next;       /* job to start next */
    int64_t next_period; /* the period it is queued in */
    bool busy;
    int64_t life; /* of the copy under way */
    uint32_t swap;
    double latency_left;
    double bytes_left;
    double began_ns;    /* of the copy under way */
    np_moment *moments; /* [swap]: where ended copies are noted; NULL: nowhere */
} engine;

/* What a simulation moves through. */
typedef struct run_state {
    const np_simulator *simulator;
    np_swap_state *swaps;
    uint64_t limit;
    uint64_t held;
    uint64_t peak;
    double now;
    int64_t n_ended; /* execs that have ended, over all periods */
    bool is_running; /* the next one has begun */
    engine out;
    engine in;
    np_moment *execs; /* [exec]: where execs are noted; NULL: nowhere */
    double begin_ns;  /* of the period under way */
} run_state;

/* ---- the queues ---- */

static void hold(run_state *run, uint64_t bytes)
{
    run->held += bytes;
    run->peak = run->held > run->peak ? run->held : run->peak;
}

static bool has_ended(const run_state *run, int64_t life, int64_t exec)
{
    return life * run->simulator->timeline->n_execs + exec < run->n_ended;
}

/* The copy out is done with: its memory is free once the use before the gap is over too. */
static void finish_out(run_state *run, uint32_t index, int64_t life)
{
    np_swap_state *swap = &run->swaps[index];
    int64_t next = run->n_ended + (run->is_running ? 1 : 0) - life * run->simulator->timeline->n_execs;
    uint32_t absent_from = next > swap->from ? (uint32_t)next : swap->from + 1; /* it may end long before `from` */
    swap->is_out[life % NP_LIVES_AT_ONCE] = true;
    swap->absent_from = absent_from > swap->absent_from ? absent_from : swap->absent_from;
    if (has_ended(run, life, swap->from)) {
        run->held -= swap->bytes;
    }
}

static void finish_in(run_state *run, uint32_t index, int64_t life)
{
    run->swaps[index].is_back[life % NP_LIVES_AT_ONCE] = true;
}

static void begin_copy(const run_state *run, engine *queue, uint32_t swap, int64_t life)
{
    queue->busy = true;
    queue->swap = swap;
    queue->life = life;
    queue->latency_left = run->simulator->link.latency_ns;
    queue->bytes_left = (double)run->swaps[swap].bytes;
    queue->began_ns = run->now;
}

static void end_copy(const run_state *run, engine *queue)
{
    queue->busy = false;
    if (queue->moments) {
        queue->moments[queue->swap] = (np_moment){queue->began_ns, run->now};
    }
}

static void skip_job(engine *queue)
{
    queue->next++;
    if (queue->next == queue->n_jobs) {
        queue->next = 0;
        queue->next_period++;
    }
}

/* Starts what can start now. */
static void start_out(run_state *run)
{
    engine *queue = &run->out;
    while (!queue->busy && queue->n_jobs > 0) {
        const np_copy_job *next = &queue->jobs[queue->next];
        const np_swap_state *swap = &run->swaps[next->swap];
        int64_t life = queue->next_period - next->lap;
        if (life < 0) { /* before the beginning: taken as done */
            skip_job(queue);
            continue;
        }
        if (!has_ended(run, life, swap->release)) {
            return;
        }
        skip_job(queue);
        begin_copy(run, queue, next->swap, life);
    }
}

static void start_in(run_state *run)
{
    engine *queue = &run->in;
    uint32_t n_execs = run->simulator->timeline->n_execs;
    while (!queue->busy && queue->n_jobs > 0) {
        const np_copy_job *next = &queue->jobs[queue->next];
        uint32_t back_from;
        np_swap_state *swap = &run->swaps[next->swap];
        int64_t life = queue->next_period - next->lap;
        if (life < -1 || (life == -1 && swap->to < n_execs)) {
            skip_job(queue);
            continue;
        }
        if (!has_ended(run, life, swap->in_after) || (life >= 0 && !swap->is_out[life % NP_LIVES_AT_ONCE]) ||
            run->held > run->limit || swap->bytes > run->limit - run->held) {
            return;
        }
        hold(run, swap->bytes);
        back_from = (uint32_t)(run->n_ended - life * n_execs);
        swap->back_from = back_from < swap->back_from ? back_from : swap->back_from;
        begin_copy(run, queue, next->swap, life);
        skip_job(queue);
    }
}

static double speed(const run_state *run, bool out)
{
    const np_link *link = &run->simulator->link;
    double own = out ? link->out : link->in;
    double share = link->both / 2;
    return run->out.busy && run->in.busy && link->both > 0 && share < own ? share : own;
}

static double time_left(const run_state *run, const engine *queue, bool out)
{
    return queue->busy ? queue->latency_left + queue->bytes_left / speed(run, out) : INFINITY;
}

static void flow(engine *queue, double ns, double rate)
{
    double waited = ns < queue->latency_left ? ns : queue->latency_left;
    queue->latency_left -= waited;
    queue->bytes_left -= (ns - waited) * rate;
}

static void pass(run_state *run, double ns)
{
    double out_rate = speed(run, true);
    double in_rate = speed(run, false);
    if (run->out.busy) {
        flow(&run->out, ns, out_rate);
    }
    if (run->in.busy) {
        flow(&run->in, ns, in_rate);
    }
    run->now += ns;
}

/* Lets time pass until the next copy ends. False: none is under way. */
static bool next_copy(run_state *run)
{
    double out_left = time_left(run, &run->out, true);
    double in_left = time_left(run, &run->in, false);
    if (out_left == INFINITY && in_left == INFINITY) {
        return false;
    }
    if (out_left <= in_left) {
        pass(run, out_left);
        end_copy(run, &run->out);
        finish_out(run, run->out.swap, run->out.life);
    } else {
        pass(run, in_left);
        end_copy(run, &run->in);
        if (run->in.life >= 0) {
            finish_in(run, run->in.swap, run->in.life);
        } else {
            run->swaps[run->in.swap].is_back[NP_LIVES_AT_ONCE - 1] = true;
        }
    }
    start_out(run);
    start_in(run);
    return true;
}

static void pass_until(run_state *run, double time)
{
    while (fmin(time_left(run, &run->out, true), time_left(run, &run->in, false)) <= time - run->now) {
        (void)next_copy(run);
    }
    if (time > run->now) {
        pass(run, time - run->now);
    }
}

/* ---- execs ---- */

static bool is_back(const np_swap_state *swap, int64_t life)
{
    return swap->is_back[life >= 0 ? life % NP_LIVES_AT_ONCE : NP_LIVES_AT_ONCE - 1];
}

static bool can_begin(const run_state *run, int64_t period, uint32_t k)
{
    const np_simulator *simulator = run->simulator;
    uint64_t wanted = simulator->first_used[k];
    if (wanted > 0 && (run->held > run->limit || wanted > run->limit - run->held)) {
        return false;
    }
    for (uint32_t i = simulator->due_at.items[k]; i < simulator->due_at.items[k + 1]; i++) {
        const np_swap_state *swap = &run->swaps[simulator->due.items[i]];
        if (!is_back(swap, period - swap->to / simulator->timeline->n_execs)) {
            return false;
        }
    }
    for (uint32_t i = simulator->awaited_at.items[k]; i < simulator->awaited_at.items[k + 1]; i++) {
        const np_swap_state *swap = &run->swaps[simulator->awaited.items[i]];
        int64_t life = period - swap->out_before / simulator->timeline->n_execs;
        if (life >= 0 && !swap->is_out[life % NP_LIVES_AT_ONCE]) {
            return false;
        }
    }
    return true;
}

/* The exec is over: memory of last uses is free, and so is that of copies out that ended before it. */
static void end_exec(run_state *run, int64_t period, uint32_t k)
{
    const np_simulator *simulator = run->simulator;
    run->n_ended++;
    run->is_running = false;
    run->held -= simulator->last_used[k];
    for (uint32_t i = simulator->after_at.items[k]; i < simulator->after_at.items[k + 1]; i++) {
        np_swap_state *swap = &run->swaps[simulator->after.items[i]];
        if (swap->clean) {
            finish_out(run, simulator->after.items[i], period);
        } else if (swap->is_out[period % NP_LIVES_AT_ONCE]) {
            run->held -= swap->bytes;
        }
        swap->is_out[(period + 1) % NP_LIVES_AT_ONCE] = false; /* no copy of the next life is released before this */
        swap->is_back[(period + 1) % NP_LIVES_AT_ONCE] = false;
    }
    start_out(run);
    start_in(run);
}

/* One exec, waits included. False: it can never begin. */
static bool run_exec(run_state *run, int64_t period, uint32_t k)
{
    const np_simulator *simulator = run->simulator;
    const np_timeline *timeline = simulator->timeline;
    pass_until(run, run->now + simulator->pause_ns);
    while (!can_begin(run, period, k)) {
        if (!next_copy(run)) {
            return false;
        }
    }
    hold(run, simulator->first_used[k]);
    run->is_running = true;
    if (run->execs) {
        run->execs[k].start_ns = run->now;
    }
    pass_until(run, run->now + (timeline->end_ns.items[k] - timeline->start_ns.items[k]));
    if (run->execs) {
        run->execs[k].end_ns = run->now;
    }
    end_exec(run, period, k);
    return true;
}

/* Everything that is absent over a period's end is absent at the beginning. */
static void begin_run(run_state *run, np_simulator *simulator, uint64_t limit, const np_moments *moments)
{
    uint32_t n_execs = simulator->timeline->n_execs;
    *run = (run_state){.simulator = simulator, .swaps = simulator->swaps.items, .limit = limit};
    run->execs = moments ? moments->execs : NULL;
    run->held = simulator->begin_bytes;
    for (size_t i = 0; i < simulator->swaps.n; i++) {
        if (simulator->swaps.items[i].to >= n_execs) {
            run->held -= simulator->swaps.items[i].bytes;
        }
    }
    run->out = (engine){.jobs = simulator->out_jobs.items, .n_jobs = (uint32_t)simulator->out_jobs.n};
    run->in = (engine){.jobs = simulator->in_jobs.items, .n_jobs = (uint32_t)simulator->in_jobs.n};
    run->out.moments = moments ? moments->outs : NULL;
    run->in.moments = moments ? moments->ins : NULL;
    for (size_t i = 0; i < simulator->out_jobs.n; i++) { /* keys before time 0 are queued before the first period */
        int64_t lap = simulator->out_jobs.items[i].lap;
        run->out.next_period = lap < run->out.next_period ? lap : run->out.next_period;
    }
    for (size_t i = 0; i < simulator->in_jobs.n; i++) {
        int64_t lap = (int64_t)simulator->in_jobs.items[i].lap - 1;
        run->in.next_period = lap < run->in.next_period ? lap : run->in.next_period;
    }
    start_out(run);
    start_in(run);
}

/* ---- the steady state ---- */

/* The end of a period that later ones are compared with. All that the future depends on is where the queues stand. */
typedef struct anchor {
    int64_t period;
    double now;
    engine out;
    engine in;
} anchor;

static anchor set_anchor(run_state *run, int64_t period)
{
    run->peak = run->held;
    for (size_t i = 0; i < run->simulator->swaps.n; i++) {
        run->swaps[i].absent_from = 0;
        run->swaps[i].back_from = UINT32_MAX;
    }
    return (anchor){period, run->now, run->out, run->in};
}

static bool is_alike(const engine *queue, const engine *then, int64_t n_periods, double tolerance_bytes)
{
    if (queue->next != then->next || queue->next_period != then->next_period + n_periods || queue->busy != then->busy) {
        return false;
    }
    return !queue->busy || (queue->swap == then->swap && queue->life == then->life + n_periods &&
                            fabs(queue->latency_left - then->latency_left) <= tolerance_bytes &&
                            fabs(queue->bytes_left - then->bytes_left) <= tolerance_bytes);
}

static bool is_steady(const run_state *run, const anchor *then, int64_t period)
{
    double tolerance = STEADY * run->simulator->timeline->period_ns;
    return is_alike(&run->out, &then->out, period - then->period, tolerance) &&
           is_alike(&run->in, &then->in, period - then->period, tolerance);
}

static np_simulation halt(uint32_t exec)
{
    return (np_simulation){.possible = false, .overhead = INFINITY, .period_ns = INFINITY, .halted_at = exec};
}

/* The averages since the anchor. A queue that is still falling behind will take as long as its copies do. */
static np_simulation summarise(const run_state *run, const anchor *then, int64_t period)
{
    const np_simulator *simulator = run->simulator;
    const np_timeline *timeline = simulator->timeline;
    np_simulation result = {.possible = true, .peak = run->peak};
    double n_out = 0;
    for (size_t i = 0; i < simulator->swaps.n; i++) {
        uint64_t bytes = simulator->swaps.items[i].bytes;
        result.bytes_in += bytes;
        result.bytes_out += simulator->swaps.items[i].clean ? 0 : bytes;
        n_out += simulator->swaps.items[i].clean ? 0 : 1;
    }
    result.period_ns = (run->now - then->now) / (double)(period - then->period);
    result.period_ns =
        fmax(result.period_ns, (double)result.bytes_out / simulator->link.out + n_out * simulator->link.latency_ns);
    result.period_ns = fmax(result.period_ns, (double)result.bytes_in / simulator->link.in +
                                                  (double)simulator->swaps.n * simulator->link.latency_ns);
    result.overhead = result.period_ns / timeline->period_ns - 1;
    result.overhead = result.overhead > 1e-12 ? result.overhead : 0;
    result.waited_ns = fmax(result.period_ns - timeline->period_ns, 0);
    return result;
}

/* From the times of the run to those of its last period. A copy that has not ended yet ended in the period before. */
static void settle_moments(const run_state *run, double period_ns, const np_moments *moments)
{
    for (uint32_t k = 0; k < moments->n_execs; k++) {
        moments->execs[k].start_ns -= run->begin_ns;
        moments->execs[k].end_ns -= run->begin_ns;
    }
    for (uint32_t i = 0; i < 2 * moments->n_swaps; i++) {
        np_moment *copy = i < moments->n_swaps ? &moments->outs[i] : &moments->ins[i - moments->n_swaps];
        double duration_ns = copy->end_ns - copy->start_ns;
        double start_ns = copy->start_ns - run->begin_ns;
        copy->start_ns = start_ns - floor(start_ns / period_ns) * period_ns;
        copy->end_ns = copy->start_ns + duration_ns;
    }
}

/* Periods until one ends as an earlier one did, the anchor, which is moved on in ever longer steps (Brent): a cycle of
 * several periods is found too. */
static np_simulation run_periods(np_simulator *simulator, uint64_t limit, const np_moments *moments)
{
    int64_t next_anchor = 1;
    run_state run;
    anchor then;
    begin_run(&run, simulator, limit, moments);
    if (run.held > limit) {
        return halt(0);
    }
    then = set_anchor(&run, 0);
    for (int64_t period = 1;; period++) {
        run.begin_ns = run.now;
        for (uint32_t k = 0; k < simulator->timeline->n_execs; k++) {
            if (!run_exec(&run, period - 1, k)) {
                return halt(k);
            }
        }
        if ((period >= MIN_PERIODS && is_steady(&run, &then, period)) || period == MAX_PERIODS) {
            np_simulation result = summarise(&run, &then, period);
            if (moments) {
                settle_moments(&run, result.period_ns, moments);
            }
            return result;
        }
        if (period == next_anchor) {
            then = set_anchor(&run, period);
            next_anchor = 2 * period + 1;
        }
    }
}

neap_status np_simulate(np_simulator *simulator, uint64_t limit, const np_swap *swaps, uint32_t n_swaps,
                        np_simulation *result)
{
    neap_status status = np_simulator_prepare(simulator, swaps, n_swaps);
    if (status == NEAP_OK) {
        *result = run_periods(simulator, limit, NULL);
    }
    return status;
}

void np_moments_free(np_moments *moments)
{
    if (moments->memory) {
        np_memory_free(moments->memory, moments->execs, moments->n_execs, sizeof *moments->execs);
        np_memory_free(moments->memory, moments->outs, moments->n_swaps, sizeof *moments->outs);
        np_memory_free(moments->memory, moments->ins, moments->n_swaps, sizeof *moments->ins);
    }
    *moments = (np_moments){0};
}

neap_status np_simulate_moments(np_simulator *simulator, uint64_t limit, const np_swap *swaps, uint32_t n_swaps,
                                np_simulation *result, np_moments *moments)
{
    const neap_memory *memory = simulator->timeline->memory;
    uint32_t n_execs = simulator->timeline->n_execs;
    np_moments made = {.memory = memory, .n_execs = n_execs, .n_swaps = n_swaps};
    neap_status status = np_simulator_prepare(simulator, swaps, n_swaps);
    made.execs = np_memory_alloc_zero(memory, n_execs, sizeof *made.execs);
    made.outs = np_memory_alloc(memory, n_swaps, sizeof *made.outs);
    made.ins = np_memory_alloc(memory, n_swaps, sizeof *made.ins);
    if (!made.execs || !made.outs || !made.ins) {
        status = NEAP_NO_MEMORY;
    }
    if (status != NEAP_OK) {
        np_moments_free(&made);
        return status;
    }
    for (uint32_t i = 0; i < n_swaps; i++) {
        made.outs[i] = made.ins[i] = (np_moment){(double)NAN, (double)NAN};
    }
    *result = run_periods(simulator, limit, &made);
    if (!result->possible) {
        np_moments_free(&made);
    }
    *moments = made;
    return NEAP_OK;
}
