#include "trace/make_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static void must(neap_status status)
{
    if (status != NEAP_OK) {
        fprintf(stderr, "make_trace: %s\n", neap_status_name(status));
        abort();
    }
}

/* ---------------------------------------------------------------- training ---- */

#define LAYERS_MAX 256
#define LONG_MAX 8
#define QUEUE_MAX 256

typedef struct maker {
    const training *options;
    neap_trace *trace;
    np_rng rng;
    uint64_t next_id;
    uint64_t time_ns;
    uint32_t n_layers;
    uint64_t scale;              /* of the batch */
    uint64_t weight[LAYERS_MAX]; /* ids */
    uint64_t size[LAYERS_MAX];
    uint64_t gradient[LAYERS_MAX]; /* 0: none */
    uint64_t activation[LAYERS_MAX];
    uint64_t loss;
    uint64_t longs[LONG_MAX][3]; /* blocks that live for two iterations and a half, youngest first */
    uint64_t queue[QUEUE_MAX];   /* a ring */
    uint32_t queue_at;
    uint64_t freed_once;
} maker;

static uint64_t make_block(maker *m, uint64_t bytes)
{
    must(np_trace_add_malloc(m->trace, m->next_id, bytes));
    return m->next_id++;
}

static void drop(maker *m, uint64_t *id)
{
    if (*id) {
        must(np_trace_add_free(m->trace, *id));
        *id = 0;
    }
}

static void run_kernel(maker *m, const char *name, uint32_t layer, const uint64_t *blocks, size_t n_blocks)
{
    char full[64];
    int n = snprintf(full, sizeof full, "%s%u", name, (unsigned)(layer % 5));
    uint64_t duration = 1000 + 10 * (uint64_t)layer;
    must(np_trace_add_exec(m->trace, full, (size_t)n, m->time_ns, duration));
    m->time_ns += duration + 100;
    for (size_t i = 0; i < n_blocks; i++) {
        if (blocks[i]) {
            must(np_trace_add_access(m->trace, blocks[i], NEAP_ACCESS_UNKNOWN));
        }
    }
    if (m->options->false_accesses && np_rng_below(&m->rng, 5u * m->n_layers) < m->options->false_accesses) {
        must(np_trace_add_access(m->trace, m->weight[np_rng_below(&m->rng, m->n_layers)], NEAP_ACCESS_READ));
    }
}

static void drop_gradients(maker *m)
{
    for (uint32_t i = 0; i < m->n_layers; i++) {
        drop(m, &m->gradient[i]);
    }
}

static void run_time_steps(maker *m)
{
    for (uint32_t i = 0; i < m->options->n_time_steps; i++) {
        uint64_t id = m->options->step_bytes ? make_block(m, m->options->step_bytes) : 0;
        uint64_t blocks[] = {m->weight[0], id};
        run_kernel(m, "step", 0, blocks, 2);
        run_kernel(m, "gate", 1, blocks, 2);
        drop(m, &id);
    }
}

static void run_forward(maker *m)
{
    for (uint32_t i = 0; i < m->n_layers; i++) {
        uint64_t workspace = make_block(m, m->size[i] / 2 + 512);
        uint64_t blocks[] = {m->weight[i], i ? m->activation[i - 1] : 0, 0, workspace};
        m->activation[i] = make_block(m, m->size[i] * m->scale);
        blocks[2] = m->activation[i];
        run_kernel(m, "forward", i, blocks, 4);
        drop(m, &workspace);
        if (i == m->n_layers / 2) {
            run_time_steps(m);
        }
    }
}

static void run_loss(maker *m)
{
    uint64_t fresh = make_block(m, 4);
    uint64_t blocks[] = {m->activation[m->n_layers - 1], fresh};
    if (m->options->leak_bytes) {
        (void)make_block(m, m->options->leak_bytes);
    }
    run_kernel(m, "loss", 0, blocks, 2);
    drop(m, &m->loss);
    m->loss = fresh;
    if (!m->options->loss_kept) {
        drop(m, &m->loss);
    }
}

static void run_backward(maker *m)
{
    uint64_t blocks[] = {0, 0, 0};
    for (uint32_t i = m->n_layers; i-- > 0;) {
        m->gradient[i] = m->gradient[i] ? m->gradient[i] : make_block(m, m->size[i]);
        blocks[0] = m->weight[i];
        blocks[1] = m->activation[i];
        blocks[2] = m->gradient[i];
        run_kernel(m, "backward", i, blocks, 3);
        drop(m, &m->activation[i]);
    }
}

static void run_update(maker *m)
{
    uint64_t blocks[] = {0, 0};
    for (uint32_t i = 0; i < m->n_layers; i++) {
        blocks[0] = m->weight[i];
        blocks[1] = m->gradient[i];
        run_kernel(m, "update", i, blocks, 2);
    }
}

/* Each of them is malloc'd at the start of an iteration and freed in the middle of the second after it. */
static void make_long(maker *m)
{
    for (uint32_t i = 0; i < m->options->long_lives && i < LONG_MAX; i++) {
        memmove(m->longs[i] + 1, m->longs[i], 2 * sizeof m->longs[i][0]);
        m->longs[i][0] = make_block(m, 4096u * (i + 1));
        run_kernel(m, "long", i, m->longs[i], 1);
    }
}

static void drop_long(maker *m)
{
    for (uint32_t i = 0; i < m->options->long_lives && i < LONG_MAX; i++) {
        drop(m, &m->longs[i][2]);
    }
}

static uint32_t queue_width(const training *o)
{
    return o->queue_width ? o->queue_width : 1;
}

/* New ones come in before or after the old ones go, in turn. */
static void run_queue(maker *m)
{
    const training *o = m->options;
    for (uint32_t i = 0; o->queue_depth && i < queue_width(o); i++) {
        uint64_t *oldest = &m->queue[m->queue_at], fresh = i % 2 ? 0 : make_block(m, 8192);
        drop(m, oldest);
        *oldest = fresh ? fresh : make_block(m, 8192);
        run_kernel(m, "enqueue", i, oldest, 1);
        m->queue_at = (m->queue_at + 1) % (o->queue_depth * queue_width(o));
    }
}

static void fill_queue(maker *m)
{
    uint32_t n = m->options->queue_depth * queue_width(m->options);
    must(n <= QUEUE_MAX ? NEAP_OK : NEAP_BAD_ARGUMENT);
    for (uint32_t i = 0; i < n; i++) {
        m->queue[i] = m->next_id++;
        must(np_trace_add_live(m->trace, m->queue[i], 8192));
    }
}

static void run_iteration(maker *m, uint32_t index)
{
    const training *o = m->options;
    must(np_trace_add_mark(m->trace));
    m->scale = o->other_every && index % o->other_every == o->other_every - 1 ? 2 : 1;
    make_long(m);
    if (o->zero_grad_at_start) {
        drop_gradients(m);
    }
    for (uint32_t i = 0; i < (o->n_micro ? o->n_micro : 1); i++) {
        run_forward(m);
        run_loss(m);
        drop_long(m);
        run_backward(m);
    }
    drop(m, &m->freed_once);
    run_queue(m);
    run_update(m);
    if (o->log_every && index % o->log_every == o->log_every - 1) {
        uint64_t norm = make_block(m, 1024);
        run_kernel(m, "norm", 0, &norm, 1);
        run_kernel(m, "clip", 0, &norm, 1);
        drop(m, &norm);
    }
    if (o->stats_every && index % o->stats_every == o->stats_every - 1) {
        run_kernel(m, "stats", 0, m->weight, 1);
    }
    if (!o->zero_grad_at_start) {
        drop_gradients(m);
    }
}

neap_trace *make_training(const training *options)
{
    maker *m = calloc(1, sizeof *m);
    neap_trace *trace;
    if (!m) {
        return NULL;
    }
    m->options = options;
    m->rng = np_rng_make(options->seed);
    m->next_id = 1;
    m->n_layers = options->n_layers ? options->n_layers : 8;
    must(m->n_layers <= LAYERS_MAX ? NEAP_OK : NEAP_BAD_ARGUMENT);
    must(np_trace_create(NULL, &m->trace));
    for (uint32_t i = 0; i < m->n_layers; i++) {
        m->size[i] = 512 * (64 + np_rng_below(&m->rng, 4096));
        m->weight[i] = m->next_id++;
        must(np_trace_add_live(m->trace, m->weight[i], m->size[i]));
    }
    must(np_trace_add_live(m->trace, m->next_id++, 1 << 20)); /* nobody touches it */
    fill_queue(m);
    if (options->freed_once) {
        m->freed_once = m->next_id++;
        must(np_trace_add_live(m->trace, m->freed_once, 4096));
    }
    for (uint32_t i = 0; i < (options->n_iterations ? options->n_iterations : 4); i++) {
        run_iteration(m, i);
    }
    trace = m->trace;
    free(m);
    return trace;
}

/* ---------------------------------------------------------------- splicing ---- */

#define SOURCES_MAX 8

typedef struct source {
    const neap_trace *trace;
    uint64_t *id_of; /* [block]: its number in the new trace, 0: none */
} source;

typedef struct splicer {
    neap_trace *trace;
    source sources[SOURCES_MAX];
    size_t n_sources;
    uint64_t next_id;
} splicer;

static bool lives_before(const neap_trace_block *block, uint32_t event)
{
    return (block->malloc_event == NEAP_NEVER || block->malloc_event < event) &&
           (block->free_event == NEAP_NEVER || block->free_event >= event);
}

static source *source_of(splicer *s, const piece *p)
{
    source *made = &s->sources[s->n_sources];
    for (size_t i = 0; i < s->n_sources; i++) {
        if (s->sources[i].trace == p->from) {
            return &s->sources[i];
        }
    }
    must(s->n_sources < SOURCES_MAX ? NEAP_OK : NEAP_BAD_ARGUMENT);
    s->n_sources++;
    made->trace = p->from;
    made->id_of = calloc(p->from->blocks.n + 1, sizeof *made->id_of);
    must(made->id_of ? NEAP_OK : NEAP_NO_MEMORY);
    for (size_t i = 0; i < p->from->blocks.n; i++) {
        if (lives_before(&p->from->blocks.items[i], p->begin)) {
            made->id_of[i] = s->next_id;
            must(np_trace_add_live(s->trace, s->next_id++, p->from->blocks.items[i].bytes));
        }
    }
    return made;
}

static void copy_event(splicer *s, source *from, const neap_event *event)
{
    const neap_trace *t = from->trace;
    if (event->kind == NEAP_EVENT_EXEC) {
        const char *name = neap_trace_exec_name(t, event->subject);
        must(np_trace_add_exec(s->trace, name, strlen(name), event->start_ns, event->duration_ns));
        for (uint32_t k = 0; k < event->n_accesses; k++) {
            neap_access a = t->accesses.items[event->first_access + k];
            if (from->id_of[a.block]) {
                must(np_trace_add_access(s->trace, from->id_of[a.block], a.kind));
            }
        }
    } else if (event->kind == NEAP_EVENT_MALLOC) {
        from->id_of[event->subject] = s->next_id;
        must(np_trace_add_malloc(s->trace, s->next_id++, t->blocks.items[event->subject].bytes));
    } else if (from->id_of[event->subject]) {
        must(np_trace_add_free(s->trace, from->id_of[event->subject]));
        from->id_of[event->subject] = 0;
    }
}

static void copy_piece(splicer *s, const piece *p)
{
    source *from = source_of(s, p);
    if (p->leak_bytes) {
        must(np_trace_add_malloc(s->trace, s->next_id++, p->leak_bytes));
    }
    for (uint32_t i = p->begin; i < p->end; i++) {
        copy_event(s, from, &p->from->events.items[i]);
    }
    for (uint32_t i = p->begin; p->release && i < p->end; i++) {
        const neap_event *event = &p->from->events.items[i];
        if (event->kind == NEAP_EVENT_MALLOC && from->id_of[event->subject]) {
            must(np_trace_add_free(s->trace, from->id_of[event->subject]));
            from->id_of[event->subject] = 0;
        }
    }
}

neap_trace *splice(const piece *pieces, size_t n_pieces)
{
    splicer s = {.next_id = 1};
    must(np_trace_create(NULL, &s.trace));
    for (size_t i = 0; i < n_pieces; i++) {
        (void)source_of(&s, &pieces[i]);
    }
    for (size_t i = 0; i < n_pieces; i++) {
        copy_piece(&s, &pieces[i]);
    }
    for (size_t i = 0; i < s.n_sources; i++) {
        free(s.sources[i].id_of);
    }
    return s.trace;
}
