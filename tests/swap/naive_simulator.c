#include "swap/naive_simulator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

enum { LIFE_STATES = 5 }; /* lives around a period whose copies can be under way */

/* What has happened to one swap in one period. */
typedef struct life {
    bool out_begun, out_ended, in_begun, in_ended;
    double out_end_ns, in_begin_ns;
} life;

typedef struct turn { /* in a queue */
    double key;
    int32_t period;
    uint32_t swap;
} turn;

typedef struct copy {
    bool busy;
    turn what;
    double latency_ns, bytes;
} copy;

typedef enum phase { PAUSING, WAITING, RUNNING } phase;

typedef struct naive {
    const np_timeline *timeline;
    const np_link *link;
    uint64_t limit;
    const np_swap *swaps;
    uint32_t n_swaps, max_periods;
    life *lives;      /* [period + 1][swap], from the period before the first */
    turn *outs, *ins; /* all there will ever be, in order */
    size_t n_outs, n_ins, next_out, next_in;
    copy out, in;
    phase phase;
    uint32_t exec; /* that comes next or runs, over all periods */
    double now_ns, until_ns;
    double *begin_ns, *end_ns;                             /* [exec] over all periods */
    uint64_t peak, *peaks;                                 /* of this period; [period] */
    uint64_t copied_out, copied_in, *out_until, *in_until; /* in all; [period]: when it ended */
    double *states;                                        /* [period][n_state]: when it ended */
    size_t n_state;
} naive;

static life *life_of(const naive *s, int32_t period, uint32_t swap)
{
    return &s->lives[(size_t)(period + 1) * s->n_swaps + swap];
}

static bool exec_has_ended(const naive *s, int64_t exec)
{
    return exec < (int64_t)s->exec;
}

static bool exec_has_begun(const naive *s, int64_t exec)
{
    return exec < (int64_t)s->exec || (exec == (int64_t)s->exec && s->phase == RUNNING);
}

/* ---- what the timeline says ---- */

static const np_use *uses_of(const naive *s, uint32_t gap, const np_swap_block **block, uint32_t *before)
{
    const np_gap *g = &s->timeline->gaps.items[gap];
    const np_use *uses;
    *block = &s->timeline->blocks.items[g->block];
    uses = &s->timeline->uses.items[(*block)->first_use];
    *before = 0;
    while (uses[*before].exec % s->timeline->n_execs != g->from) {
        ++*before;
        ASSERT_LT(*before, (*block)->n_uses);
    }
    return uses;
}

/* The exec whose end lets the copy out begin, counted as the gap is; INT64_MIN: nothing ever writes the block. */
static int64_t release_exec(const naive *s, uint32_t gap)
{
    const np_swap_block *block;
    uint32_t before;
    const np_use *uses = uses_of(s, gap, &block, &before);
    int64_t n = s->timeline->n_execs;
    int64_t shift = uses[before].exec - (int64_t)s->timeline->gaps.items[gap].from;
    for (int64_t i = before; i >= 0; i--) {
        if (uses[i].writes) {
            return uses[i].exec - shift;
        }
    }
    for (int64_t i = (int64_t)block->n_uses - 1; block->persistent && i > before; i--) {
        if (uses[i].writes) {
            return uses[i].exec - shift - n;
        }
    }
    return INT64_MIN;
}

/* Has the host what the swap would copy? Nothing ever wrote it, or the whole block left in the gap before (the swap listed
 * before) and was only read since. */
static bool is_clean(const naive *s, uint32_t swap)
{
    const np_swap_block *block, *other;
    uint32_t before, earlier;
    const np_use *uses = uses_of(s, s->swaps[swap].gap, &block, &before);
    if (release_exec(s, s->swaps[swap].gap) == INT64_MIN) {
        return true;
    }
    if (swap == 0 || s->swaps[swap - 1].gap + 1 != s->swaps[swap].gap || s->swaps[swap].bytes != block->bytes ||
        s->swaps[swap - 1].bytes != block->bytes) {
        return false;
    }
    (void)uses_of(s, s->swaps[swap - 1].gap, &other, &earlier);
    if (other != block) {
        return false;
    }
    for (uint32_t i = earlier + 1; i <= before; i++) {
        if (uses[i].writes) {
            return false;
        }
    }
    return true;
}

/* ---- memory, counted anew ---- */

static uint64_t count_held(const naive *s)
{
    uint32_t n = s->timeline->n_execs;
    int64_t period = s->exec / n;
    uint64_t bytes = 0;
    for (size_t b = 0; b < s->timeline->blocks.n; b++) {
        const np_swap_block *block = &s->timeline->blocks.items[b];
        const np_use *uses = &s->timeline->uses.items[block->first_use];
        if (block->persistent) {
            bytes += block->bytes;
            continue;
        }
        for (int64_t p = period - 2; p <= period; p++) {
            bool begun = exec_has_begun(s, p * n + uses[0].exec);
            bytes += begun && !exec_has_ended(s, p * n + uses[block->n_uses - 1].exec) ? block->bytes : 0;
        }
    }
    for (int32_t p = (int32_t)period - 2; p <= (int32_t)period; p++) {
        for (uint32_t i = 0; p >= -1 && i < s->n_swaps; i++) {
            const life *l = life_of(s, p, i);
            uint32_t from = s->timeline->gaps.items[s->swaps[i].gap].from;
            if (l->out_ended && !l->in_begun && exec_has_ended(s, (int64_t)p * n + from)) {
                ASSERT_GE(bytes, s->swaps[i].bytes);
                bytes -= s->swaps[i].bytes;
            }
        }
    }
    return bytes;
}

static uint64_t wanted(const naive *s)
{
    uint64_t bytes = 0;
    for (size_t b = 0; b < s->timeline->blocks.n; b++) {
        const np_swap_block *block = &s->timeline->blocks.items[b];
        uint32_t first = s->timeline->uses.items[block->first_use].exec;
        bytes += !block->persistent && first == s->exec % s->timeline->n_execs ? block->bytes : 0;
    }
    return bytes;
}

static void look(naive *s)
{
    uint64_t held = count_held(s);
    ASSERT_LE(held, s->limit);
    s->peak = held > s->peak ? held : s->peak;
}

/* ---- what may happen now; each says whether it did ---- */

static bool end_copy(naive *s, copy *c, bool out)
{
    life *l;
    if (!c->busy || c->latency_ns > 0 || c->bytes > 0) {
        return false;
    }
    c->busy = false;
    l = life_of(s, c->what.period, c->what.swap);
    if (out) {
        l->out_ended = true;
        l->out_end_ns = s->now_ns;
    } else {
        l->in_ended = true;
    }
    return true;
}

static bool end_exec(naive *s)
{
    if (s->phase != RUNNING || s->now_ns < s->until_ns) {
        return false;
    }
    s->end_ns[s->exec] = s->now_ns;
    for (uint32_t i = 0; i < s->n_swaps; i++) { /* what need not be copied is gone at once */
        uint32_t from = s->timeline->gaps.items[s->swaps[i].gap].from;
        if (from == s->exec % s->timeline->n_execs && is_clean(s, i)) {
            life *l = life_of(s, (int32_t)(s->exec / s->timeline->n_execs), i);
            l->out_begun = l->out_ended = true;
            l->out_end_ns = s->now_ns;
        }
    }
    s->exec++;
    s->phase = PAUSING;
    s->until_ns = s->now_ns + s->timeline->start_ns.items[0];
    return true;
}

static void begin_copy(const naive *s, copy *c, turn what)
{
    *c = (copy){true, what, s->link->latency_ns, (double)s->swaps[what.swap].bytes};
}

static bool begin_out(naive *s)
{
    turn t;
    life *l;
    if (s->out.busy || s->next_out == s->n_outs) {
        return false;
    }
    t = s->outs[s->next_out];
    l = life_of(s, t.period, t.swap);
    if (!exec_has_ended(s, (int64_t)t.period * s->timeline->n_execs + release_exec(s, s->swaps[t.swap].gap))) {
        return false;
    }
    s->next_out++;
    l->out_begun = true;
    begin_copy(s, &s->out, t);
    s->copied_out += s->swaps[t.swap].bytes;
    return true;
}

static bool begin_in(naive *s)
{
    turn t;
    life *l;
    if (s->in.busy || s->next_in == s->n_ins) {
        return false;
    }
    t = s->ins[s->next_in];
    l = life_of(s, t.period, t.swap);
    if (!l->out_ended || !exec_has_ended(s, (int64_t)t.period * s->timeline->n_execs + s->swaps[t.swap].in_after) ||
        s->swaps[t.swap].bytes > s->limit - count_held(s)) {
        return false;
    }
    s->next_in++;
    l->in_begun = true;
    l->in_begin_ns = s->now_ns;
    begin_copy(s, &s->in, t);
    s->copied_in += s->swaps[t.swap].bytes;
    return true;
}

static bool begin_exec(naive *s)
{
    uint32_t n = s->timeline->n_execs;
    int32_t period = (int32_t)(s->exec / n);
    if (s->phase == PAUSING && s->now_ns >= s->until_ns) {
        s->phase = WAITING;
    }
    if (s->phase != WAITING || wanted(s) > s->limit - count_held(s)) {
        return false;
    }
    for (uint32_t i = 0; i < s->n_swaps; i++) {
        uint32_t to = s->timeline->gaps.items[s->swaps[i].gap].to;
        if (to % n == s->exec % n && !life_of(s, period - (int32_t)(to / n), i)->in_ended) {
            return false;
        }
    }
    for (uint32_t i = 0; i < s->n_swaps; i++) {
        uint32_t before = s->swaps[i].out_before;
        int32_t born = period - (int32_t)(before / n);
        if (before > 0 && before % n == s->exec % n && born >= 0 && !life_of(s, born, i)->out_ended) {
            return false;
        }
    }
    s->phase = RUNNING;
    s->begin_ns[s->exec] = s->now_ns;
    s->until_ns = s->now_ns + (s->timeline->end_ns.items[s->exec % n] - s->timeline->start_ns.items[s->exec % n]);
    return true;
}

/* Ends come before beginnings; copies in take memory before execs do. */
static void settle(naive *s)
{
    while (end_copy(s, &s->out, true) || end_copy(s, &s->in, false) || end_exec(s) || begin_out(s) || begin_in(s) ||
           begin_exec(s)) {
        look(s);
        if (s->exec % s->timeline->n_execs == 0 && s->phase == PAUSING && s->exec > 0) {
            s->peaks[s->exec / s->timeline->n_execs - 1] = s->peak;
        }
    }
}

/* ---- time ---- */

static double rate(const naive *s, bool out)
{
    double own = out ? s->link->out : s->link->in;
    bool shared = s->out.busy && s->in.busy && s->link->both > 0;
    return shared ? fmin(own, s->link->both / 2) : own;
}

static double left_ns(const naive *s, const copy *c, bool out)
{
    return c->busy ? c->latency_ns + c->bytes / rate(s, out) : INFINITY;
}

static void flow(copy *c, double ns, double left, double bytes_a_ns)
{
    if (c->busy && left <= ns * (1 + 1e-15)) {
        c->latency_ns = c->bytes = 0;
    } else if (c->busy) {
        double first = fmin(ns, c->latency_ns);
        c->latency_ns -= first;
        c->bytes -= (ns - first) * bytes_a_ns;
    }
}

/* False: nothing will ever happen. */
static bool pass(naive *s)
{
    double out_left = left_ns(s, &s->out, true), in_left = left_ns(s, &s->in, false);
    double own = s->phase == WAITING ? INFINITY : s->until_ns - s->now_ns;
    double ns = fmin(own, fmin(out_left, in_left));
    double out_rate = rate(s, true), in_rate = rate(s, false);
    if (ns == INFINITY) {
        return false;
    }
    flow(&s->out, ns, out_left, out_rate);
    flow(&s->in, ns, in_left, in_rate);
    s->now_ns = ns == own ? s->until_ns : s->now_ns + ns;
    return true;
}

/* ---- beginning and end ---- */

static int compare_turns(const void *left, const void *right)
{
    const turn *a = left, *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->swap < b->swap ? -1 : a->swap > b->swap;
}

static void *zeroed(size_t n, size_t bytes)
{
    void *made = calloc(n + 1, bytes);
    ASSERT_TRUE(made);
    return made;
}

static void begin(naive *s)
{
    size_t n_lives = (size_t)s->max_periods + 3;
    size_t n_execs = ((size_t)s->max_periods + 2) * s->timeline->n_execs;
    s->lives = zeroed(n_lives * s->n_swaps, sizeof *s->lives);
    s->outs = zeroed(n_lives * s->n_swaps, sizeof *s->outs);
    s->ins = zeroed(n_lives * s->n_swaps, sizeof *s->ins);
    s->begin_ns = zeroed(n_execs, sizeof *s->begin_ns);
    s->end_ns = zeroed(n_execs, sizeof *s->end_ns);
    s->peaks = zeroed(s->max_periods + 2, sizeof *s->peaks);
    s->out_until = zeroed(s->max_periods + 2, sizeof *s->out_until);
    s->in_until = zeroed(s->max_periods + 2, sizeof *s->in_until);
    s->n_state = (size_t)LIFE_STATES * s->n_swaps + 8;
    s->states = zeroed((s->max_periods + 2) * s->n_state, sizeof *s->states);
    s->until_ns = s->timeline->start_ns.items[0];
    for (int32_t p = -1; p <= (int32_t)s->max_periods; p++) {
        for (uint32_t i = 0; i < s->n_swaps; i++) {
            double shift = p * s->timeline->period_ns;
            bool crosses = s->timeline->gaps.items[s->swaps[i].gap].to >= s->timeline->n_execs;
            if (p < 0) { /* what is absent over the end of a period is absent at the beginning */
                *life_of(s, p, i) = (life){true, true, !crosses, !crosses, -INFINITY, -INFINITY};
            } else if (!is_clean(s, i)) {
                s->outs[s->n_outs++] = (turn){shift + s->swaps[i].out_key, p, i};
            }
            if (p >= 0 || crosses) {
                s->ins[s->n_ins++] = (turn){shift + s->swaps[i].in_key, p, i};
            }
        }
    }
    qsort(s->outs, s->n_outs, sizeof *s->outs, compare_turns);
    qsort(s->ins, s->n_ins, sizeof *s->ins, compare_turns);
}

/* All that the future depends on, as numbers. */
static void write_state(naive *s, uint32_t period)
{
    double *to = &s->states[period * s->n_state];
    size_t n = 0;
    for (int32_t p = (int32_t)period - 2; p < (int32_t)period - 2 + LIFE_STATES; p++) {
        for (uint32_t i = 0; i < s->n_swaps; i++) {
            const life *l = p >= -1 && p <= (int32_t)s->max_periods ? life_of(s, p, i) : NULL;
            to[n++] = !l ? -1 : l->out_begun + 2 * l->out_ended + 4 * l->in_begun + 8 * l->in_ended;
        }
    }
    to[n++] = s->out.busy ? s->out.latency_ns : -1;
    to[n++] = s->out.busy ? s->out.bytes : -1;
    to[n++] = s->in.busy ? s->in.latency_ns : -1;
    to[n++] = s->in.busy ? s->in.bytes : -1;
    to[n++] = s->phase;
    to[n++] = s->phase == WAITING ? 0 : s->until_ns - s->now_ns;
}

static bool states_are_alike(const naive *s, uint32_t a, uint32_t b)
{
    for (size_t i = 0; i < s->n_state; i++) {
        double x = s->states[a * s->n_state + i], y = s->states[b * s->n_state + i];
        if (fabs(x - y) > 1e-7 * (1 + fabs(x))) {
            return false;
        }
    }
    return true;
}

/* The execs strictly inside the gap that found it away from their begin to their end. */
static naive_absence absence_of(const naive *s, uint32_t swap, int32_t period)
{
    const np_gap *gap = &s->timeline->gaps.items[s->swaps[swap].gap];
    const life *l = life_of(s, period, swap);
    size_t first = (size_t)period * s->timeline->n_execs;
    naive_absence found = {gap->to, gap->to, false};
    for (uint32_t k = gap->to; k-- > gap->from + 1;) {
        found.absent_from = s->begin_ns[first + k] >= l->out_end_ns ? k : found.absent_from;
        found.back_from = s->end_ns[first + k] > l->in_begin_ns ? k : found.back_from;
        found.tie = found.tie || s->end_ns[first + k] == l->in_begin_ns;
    }
    return found;
}

static void report(const naive *s, uint32_t first, uint32_t last, naive_result *result)
{
    uint32_t n = s->timeline->n_execs;
    double begun = first == 0 ? 0 : s->end_ns[first * n - 1];
    result->n_cycle = last - first;
    result->n_until = first;
    result->period_ns = (s->end_ns[last * n - 1] - begun) / result->n_cycle;
    for (uint32_t p = 0; p < last; p++) {
        result->peak_ever = s->peaks[p] > result->peak_ever ? s->peaks[p] : result->peak_ever;
        result->peak = p >= first && s->peaks[p] > result->peak ? s->peaks[p] : result->peak;
    }
    result->bytes_out = (s->out_until[last] - s->out_until[first]) / result->n_cycle;
    result->bytes_in = (s->in_until[last] - s->in_until[first]) / result->n_cycle;
    result->absences = zeroed(s->n_swaps, sizeof *result->absences);
    for (uint32_t i = 0; i < s->n_swaps && last >= 2; i++) {
        result->absences[i] = absence_of(s, i, (int32_t)last - 2);
    }
}

/* Goes on until the state at the end of a period was there before; a cycle found early is gone round again, so that its
 * lives have all been seen. */
static void run(naive *s, naive_result *result)
{
    uint32_t n = s->timeline->n_execs;
    uint32_t n_periods = 0;
    settle(s);
    write_state(s, 0);
    while (n_periods < s->max_periods) {
        if (!pass(s)) {
            result->halted_at = s->exec % n;
            return;
        }
        settle(s);
        if (s->exec / n > n_periods) {
            n_periods = s->exec / n;
            write_state(s, n_periods);
            s->out_until[n_periods] = s->copied_out;
            s->in_until[n_periods] = s->copied_in;
            s->peak = count_held(s);
            for (uint32_t p = n_periods; n_periods > 3 && p-- > 2;) {
                if (states_are_alike(s, p, n_periods)) {
                    result->possible = result->steady = true;
                    report(s, p, n_periods, result);
                    return;
                }
            }
        }
    }
    result->possible = true;
    report(s, n_periods / 2, n_periods, result);
}

naive_result naive_simulate(const np_timeline *timeline, const np_link *link, uint64_t limit, const np_swap *swaps,
                            uint32_t n_swaps, uint32_t max_periods)
{
    naive s = {.timeline = timeline, .link = link, .limit = limit, .swaps = swaps, .n_swaps = n_swaps};
    naive_result result = {0};
    s.max_periods = max_periods;
    begin(&s);
    if (count_held(&s) <= limit) {
        run(&s, &result);
    }
    free(s.lives);
    free(s.outs);
    free(s.ins);
    free(s.begin_ns);
    free(s.end_ns);
    free(s.peaks);
    free(s.out_until);
    free(s.in_until);
    free(s.states);
    return result;
}
