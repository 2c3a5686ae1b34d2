#include "trace/make_steps.h"

#include <stdlib.h>
#include <string.h>

void steps_free(steps *s)
{
    free(s->items);
    free(s->bytes);
    *s = (steps){0};
}

void steps_add(steps *s, np_step step, uint64_t bytes)
{
    if (s->n == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 256;
        s->items = realloc(s->items, s->capacity * sizeof *s->items);
        s->bytes = realloc(s->bytes, s->capacity * sizeof *s->bytes);
        if (!s->items || !s->bytes) {
            abort();
        }
    }
    s->bytes[s->n] = bytes;
    s->items[s->n++] = step;
}

steps steps_make_text(const char *text, size_t n)
{
    steps s = {0};
    for (size_t i = 0; i < n; i++) {
        steps_add(&s, np_step_of_exec((uint64_t)(unsigned char)text[i]), 0);
    }
    return s;
}

/* ---------------------------------------------------------------- random programs ---- */

/* An operation of a program: exec of a name; malloc into, free of, or replacement of what a variable holds. */
typedef enum op_kind { OP_EXEC, OP_MALLOC, OP_FREE, OP_REPLACE, OP_LEAK } op_kind;

typedef struct op {
    op_kind kind;
    uint32_t variable;
    uint64_t value; /* a name or a size */
} op;

#define OPS_MAX 4096
#define VARIABLES 64

typedef struct program {
    op ops[OPS_MAX];
    size_t n;
    uint32_t n_variables;
    uint64_t n_names;
} program;

static void add_op(program *p, op_kind kind, uint32_t variable, uint64_t value)
{
    if (p->n < OPS_MAX) {
        p->ops[p->n++] = (op){kind, variable, value};
    }
}

static uint64_t random_size(np_rng *rng)
{
    static const uint64_t sizes[] = {512, 512, 4096, 65536, 65536, 1 << 20};
    return sizes[np_rng_below(rng, 6)];
}

/* A body with loops inside; scopes free what they malloc. */
static void make_body(program *p, np_rng *rng, unsigned depth)
{
    size_t n_items = 1 + np_rng_below(rng, 4);
    for (size_t i = 0; i < n_items; i++) {
        uint64_t what = np_rng_below(rng, depth ? 10 : 5);
        if (what < 5) {
            add_op(p, OP_EXEC, 0, np_rng_below(rng, p->n_names));
        } else if (what < 7 && p->n_variables < VARIABLES) {
            uint32_t variable = p->n_variables++;
            add_op(p, OP_MALLOC, variable, random_size(rng));
            make_body(p, rng, depth - 1);
            add_op(p, OP_FREE, variable, 0);
        } else if (what < 8 && p->n_variables < VARIABLES) {
            add_op(p, OP_REPLACE, p->n_variables++, random_size(rng));
        } else {
            size_t begin = p->n, length;
            uint64_t times = 2 + np_rng_below(rng, np_rng_below(rng, 3) ? 3 : 12);
            make_body(p, rng, depth - 1);
            length = p->n - begin;
            for (uint64_t k = 1; k < times && p->n + length <= OPS_MAX; k++) {
                memcpy(p->ops + p->n, p->ops + begin, length * sizeof *p->ops);
                p->n += length;
            }
        }
    }
}

typedef struct machine {
    steps out;
    uint64_t size_of[VARIABLES]; /* 0: holds nothing */
    size_t made_at[VARIABLES];
} machine;

static void free_variable(machine *m, uint32_t variable)
{
    uint64_t bytes = m->size_of[variable];
    if (bytes) {
        steps_add(&m->out, np_step_of_free(bytes, m->out.n - m->made_at[variable]), bytes);
        m->size_of[variable] = 0;
    }
}

static void run_op(machine *m, op o)
{
    switch (o.kind) {
    case OP_EXEC:
        steps_add(&m->out, np_step_of_exec(o.value), 0);
        break;
    case OP_FREE:
        free_variable(m, o.variable);
        break;
    case OP_LEAK:
        steps_add(&m->out, np_step_of_malloc(o.value), o.value);
        break;
    case OP_MALLOC:
    case OP_REPLACE: { /* a variable that still holds the last iteration's block lets it go after the malloc */
        uint64_t old = m->size_of[o.variable];
        size_t old_at = m->made_at[o.variable];
        size_t at = m->out.n;
        steps_add(&m->out, np_step_of_malloc(o.value), o.value);
        if (old) {
            steps_add(&m->out, np_step_of_free(old, m->out.n - old_at), old);
        }
        m->size_of[o.variable] = o.value;
        m->made_at[o.variable] = at;
        break;
    }
    }
}

static void make_phase(machine *m, np_rng *rng, size_t n)
{
    program *p = calloc(1, sizeof *p);
    size_t end = m->out.n + n;
    uint64_t noise = np_rng_below(rng, 4) ? 0 : 20 + np_rng_below(rng, 200);
    if (!p) {
        abort();
    }
    p->n_names = 1 + np_rng_below(rng, 5);
    while (p->n < 2) {
        make_body(p, rng, 1 + (unsigned)np_rng_below(rng, 4));
    }
    if (np_rng_below(rng, 3) == 0) {
        add_op(p, OP_LEAK, 0, np_rng_below(rng, 2) ? 512 : 65536);
    }
    while (m->out.n < end) {
        for (size_t i = 0; i < p->n && m->out.n < end; i++) {
            run_op(m, p->ops[i]);
            if (noise && np_rng_below(rng, noise) == 0) {
                run_op(m, (op){OP_EXEC, 0, np_rng_below(rng, 8)});
            }
        }
    }
    for (uint32_t v = 0; v < VARIABLES; v++) {
        free_variable(m, v);
    }
    free(p);
}

steps steps_make_random(uint64_t seed, size_t n)
{
    np_rng rng = np_rng_make(seed);
    machine m = {0};
    while (m.out.n < n) {
        make_phase(&m, &rng, 1 + np_rng_below(&rng, n));
    }
    return m.out;
}

/* ---------------------------------------------------------------- the literal detector ---- */

#define SIZES 16

struct naive {
    const steps *s;
    size_t n;              /* fed */
    uint64_t sizes[SIZES]; /* the distinct sizes of the whole string */
    size_t n_sizes;
    int32_t (*live)[SIZES]; /* [point][size]: how many more than at the first point */
    int64_t *load;          /* [point] */
    uint32_t *matches;      /* [p]: equal keys in a row at distance p */
    np_run best;            /* of the ended ones */
    uint32_t *epoch_begin;  /* [p]: the run last asked for, and what came out */
    uint32_t *epoch_inner;
};

static void *must_alloc(size_t n, size_t bytes)
{
    void *p = calloc(n, bytes);
    if (!p) {
        abort();
    }
    return p;
}

static size_t size_index(naive *d, uint64_t bytes)
{
    size_t i = 0;
    while (i < d->n_sizes && d->sizes[i] != bytes) {
        i++;
    }
    if (i == d->n_sizes) {
        if (i == SIZES) {
            abort();
        }
        d->sizes[d->n_sizes++] = bytes;
    }
    return i;
}

naive *naive_create(const steps *s)
{
    naive *d = must_alloc(1, sizeof *d);
    d->s = s;
    d->live = must_alloc(s->n + 1, sizeof *d->live);
    d->load = must_alloc(s->n + 1, sizeof *d->load);
    d->matches = must_alloc(s->n + 1, sizeof *d->matches);
    d->epoch_begin = must_alloc(s->n + 1, sizeof *d->epoch_begin);
    d->epoch_inner = must_alloc(s->n + 1, sizeof *d->epoch_inner);
    memset(d->epoch_begin, 0xff, (s->n + 1) * sizeof *d->epoch_begin);
    for (size_t i = 0; i < s->n; i++) {
        memcpy(d->live[i + 1], d->live[i], sizeof *d->live);
        d->load[i + 1] = d->load[i] + s->items[i].live_bytes_delta;
        if (s->bytes[i]) {
            d->live[i + 1][size_index(d, s->bytes[i])] += s->items[i].live_bytes_delta > 0 ? 1 : -1;
        }
    }
    return d;
}

void naive_free(naive *d)
{
    free(d->live);
    free(d->load);
    free(d->matches);
    free(d->epoch_begin);
    free(d->epoch_inner);
    free(d);
}

static int64_t swing_of(const naive *d, size_t begin, size_t end)
{
    int64_t low = d->load[begin], high = low;
    for (size_t i = begin; i <= end; i++) {
        low = d->load[i] < low ? d->load[i] : low;
        high = d->load[i] > high ? d->load[i] : high;
    }
    return high - low;
}

static bool live_repeats(const naive *d, size_t begin, size_t p, int64_t *leak)
{
    *leak = 0;
    if (memcmp(d->live[begin], d->live[begin + p], sizeof *d->live) == 0) {
        return true;
    }
    *leak = d->load[begin + p] - d->load[begin];
    return *leak > 0 && *leak <= NP_LEAK_BYTES_MAX && *leak <= swing_of(d, begin, begin + p) / NP_LEAK_SHARE;
}

/* The maximal run of q through point i, where the keys at i and i + q are equal. */
static void extend(const naive *d, size_t i, size_t q, size_t *begin, size_t *end)
{
    const np_step *k = d->s->items;
    for (*begin = i; *begin > 0 && k[*begin - 1].key == k[*begin - 1 + q].key; --*begin) {}
    for (*end = i + q; *end < d->n && k[*end].key == k[*end - q].key; ++*end) {}
}

/* Whether a part of q holds all through the run too: then the run is not q's but that one's. */
static bool is_multiple(const naive *d, size_t begin, size_t end, size_t q)
{
    for (size_t part = 1; part < q; part++) {
        size_t i = begin;
        while (q % part == 0 && i + part < end && d->s->items[i].key == d->s->items[i + part].key) {
            i++;
        }
        if (q % part == 0 && i + part == end) {
            return true;
        }
    }
    return false;
}

static uint32_t find_inner(const naive *d, size_t begin, size_t p)
{
    size_t limit = begin + 2 * p, chosen = 0, most = 0;
    int64_t swing = swing_of(d, begin, begin + p);
    for (size_t q = 1; q < p; q++) {
        size_t covered = 0, example = 0;
        for (size_t i = begin; i + q < limit;) {
            size_t b, e;
            int64_t leak;
            if (d->s->items[i].key != d->s->items[i + q].key) {
                i++;
                continue;
            }
            extend(d, i, q, &b, &e);
            size_t from = b > begin ? b : begin, to = e < limit ? e : limit;
            if (to > from && (to - from) / q >= NP_LOOP_REPEATS && live_repeats(d, b, q, &leak) &&
                !is_multiple(d, b, e, q)) {
                example = covered ? example : from;
                covered += to - from;
            }
            i = e - q + 1;
        }
        if (swing > 0 && covered >= p && covered > most && 2 * swing_of(d, example, example + q) >= swing) {
            most = covered;
            chosen = q;
        }
    }
    return (uint32_t)chosen;
}

static uint32_t inner_of(naive *d, size_t begin, size_t p)
{
    if (d->epoch_begin[p] != begin) {
        d->epoch_begin[p] = (uint32_t)begin;
        d->epoch_inner[p] = find_inner(d, begin, p);
    }
    return d->epoch_inner[p];
}

static bool better(const np_run *a, const np_run *b)
{
    uint32_t la = a->end - a->begin, lb = b->end - b->begin;
    return la != lb ? la > lb : a->period != b->period ? a->period < b->period : a->begin < b->begin;
}

/* The run of p that reaches the present or has just ended. */
static bool run_of(const naive *d, size_t p, size_t end, np_run *run)
{
    size_t begin = end - p - d->matches[p];
    int64_t leak;
    if (d->matches[p] < p || !live_repeats(d, begin, p, &leak)) {
        return false;
    }
    *run = (np_run){(uint32_t)begin, (uint32_t)end, (uint32_t)p, NEAP_NEVER, leak};
    return true;
}

void naive_feed(naive *d)
{
    size_t n = d->n++;
    for (size_t p = 1; p <= n; p++) {
        np_run run;
        if (d->s->items[n].key == d->s->items[n - p].key) {
            d->matches[p]++;
        } else {
            if (d->matches[p] && run_of(d, p, n, &run) && (!d->best.period || better(&run, &d->best))) {
                d->best = run;
            }
            d->matches[p] = 0;
        }
    }
}

bool naive_current(naive *d, np_run *best)
{
    np_run run;
    best->period = 0;
    for (size_t p = 1; 2 * p <= d->n; p++) {
        if (run_of(d, p, d->n, &run) && (!best->period || better(&run, best)) && !inner_of(d, run.begin, p)) {
            *best = run;
        }
    }
    return best->period != 0;
}

/* The longest run of q that overlaps [from, to). */
static np_run longest_inside(const naive *d, size_t q, size_t from, size_t to)
{
    np_run best = {0}, run;
    for (size_t i = 0; i + q < d->n;) {
        size_t b, e;
        int64_t leak;
        if (d->s->items[i].key != d->s->items[i + q].key) {
            i++;
            continue;
        }
        extend(d, i, q, &b, &e);
        run = (np_run){(uint32_t)b, (uint32_t)e, (uint32_t)q, NEAP_NEVER, 0};
        if (b < to && e > from && e - b >= 2 * q && live_repeats(d, b, q, &leak) && !is_multiple(d, b, e, q) &&
            (!best.period || better(&run, &best))) {
            best = run;
            best.leak_bytes = leak;
        }
        i = e - q + 1;
    }
    return best;
}

void naive_best(naive *d, np_run *best, np_run *longest)
{
    np_run run;
    uint32_t inner;
    *best = d->best;
    for (size_t p = 1; 2 * p <= d->n; p++) {
        if (run_of(d, p, d->n, &run) && (!best->period || better(&run, best))) {
            *best = run;
        }
    }
    *longest = *best;
    while (best->period && (inner = find_inner(d, best->begin, best->period)) != 0) {
        *best = longest_inside(d, inner, best->begin, best->end);
    }
}
