/* heed.c: what an iteration that left its plan tells about the plan.
 *
 * Where work uses a block that is away, the plan is left, and made anew with that use in it. Such uses seldom come alone:
 * words that stand among a kernel's parameters by chance do so in every layer. So the whole of the iteration is looked at
 * when it is over, on the plan or off it, and all uses in it that the plan does not know go into the next: also those of
 * blocks that were there, since the next plan has others away. But only as long as these are few: words that are others in
 * every iteration would leave nothing to be swapped. Then only what was away counts. */
#include "run/manager.h"

enum { FEW_PART = 16 }; /* of the planned uses */

static const np_program_event *planned_event(const np_pattern *pattern, size_t i)
{
    return &pattern->program.events.items[i];
}

/* Whose part each block of the recorded iteration has. */
static void find_lives(const np_pattern *pattern, const neap_trace *trace, uint32_t *life_of)
{
    for (size_t i = 0; i < trace->blocks.n; i++) {
        life_of[i] = NP_NO_LIFE;
    }
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        const neap_block *block = pattern->program.lives.items[i].persistent ? pattern->actors[i].now[0] : NULL;
        uint32_t found = block ? np_trace_find_block(trace, block->id) : NP_MAP_NONE;
        if (found != NP_MAP_NONE) {
            life_of[found] = i;
        }
    }
    for (size_t i = 0; i < trace->events.n; i++) {
        const neap_event *event = &trace->events.items[i];
        const np_program_event *planned = planned_event(pattern, i);
        if (event->kind != NEAP_EVENT_EXEC && planned->kind == event->kind && planned->subject != NP_NO_LIFE) {
            life_of[event->subject] = planned->subject;
        }
    }
}

static bool is_known_use(const np_pattern *pattern, const np_program_event *event, uint32_t life)
{
    for (uint32_t i = 0; i < event->n_uses; i++) {
        if (pattern->program.uses.items[event->first_use + i].life == life) {
            return true;
        }
    }
    for (size_t i = 0; i < pattern->doubts.n; i++) {
        if (pattern->doubts.items[i].life == life && pattern->doubts.items[i].exec == event->subject) {
            return true;
        }
    }
    return false;
}

/* ---- who is away ---- */

typedef struct heeding {
    neap_device *m;
    np_pattern *pattern;
    const neap_trace *trace;
    uint32_t *life_of; /* by block of the trace */
    uint32_t *n_away;  /* by life: parts of it */
    bool takes_all;    /* of what is there, too */
} heeding;

static void begin_swaps(heeding *h)
{
    for (size_t i = 0; i < h->pattern->program.swaps.n; i++) {
        const np_program_swap *swap = &h->pattern->program.swaps.items[i];
        h->n_away[swap->life] += swap->starts_absent;
    }
}

static void follow_ops(heeding *h, uint32_t first, uint32_t n)
{
    const np_program *program = &h->pattern->program;
    for (uint32_t i = first; i < first + n; i++) {
        const np_op *op = &program->ops.items[i];
        if (op->kind == NP_OP_OUT) {
            h->n_away[program->swaps.items[op->index].life]++;
        } else if (op->kind == NP_OP_IN) {
            h->n_away[program->swaps.items[op->index].life]--;
        }
    }
}

/* ---- what was used ---- */

static void heed_exec(heeding *h, size_t i)
{
    const neap_event *event = &h->trace->events.items[i];
    const np_program_event *planned = planned_event(h->pattern, i);
    for (uint32_t k = 0; k < event->n_accesses; k++) {
        uint32_t life = h->life_of[h->trace->accesses.items[event->first_access + k].block];
        np_doubt doubt = {.life = life, .exec = planned->subject};
        if (life == NP_NO_LIFE || is_known_use(h->pattern, planned, life)) {
            continue;
        }
        if (h->takes_all) {
            h->pattern->has_doubts |= np_array_push(h->m->memory, &h->pattern->doubts, doubt) == NEAP_OK;
        } else if (h->n_away[life] > 0) {
            np_beneath_doubt_life(h->m, h->pattern, life, planned->subject);
        }
    }
}

bool np_heed_takes_all(const np_pattern *pattern)
{
    return pattern->doubts.n < pattern->program.uses.n / FEW_PART;
}

static void heed_events(heeding *h)
{
    h->takes_all = np_heed_takes_all(h->pattern);
    find_lives(h->pattern, h->trace, h->life_of);
    begin_swaps(h);
    for (size_t i = 0; i < h->trace->events.n; i++) {
        const np_program_event *planned = planned_event(h->pattern, i);
        follow_ops(h, planned->first_op, planned->n_before);
        if (planned->kind == NEAP_EVENT_EXEC) {
            heed_exec(h, i);
        }
        follow_ops(h, planned->first_op + planned->n_before, planned->n_after);
    }
}

void np_heed_iteration(neap_device *m, np_pattern *pattern)
{
    heeding h = {.m = m, .pattern = pattern, .trace = m->recorder.trace};
    if (!h.trace || h.trace->events.n != pattern->program.events.n) {
        return;
    }
    h.life_of = np_memory_alloc(m->memory, h.trace->blocks.n, sizeof *h.life_of);
    h.n_away = np_memory_alloc_zero(m->memory, pattern->program.lives.n, sizeof *h.n_away);
    if (h.life_of && h.n_away) { /* otherwise they are seen one by one */
        heed_events(&h);
    }
    np_memory_free(m->memory, h.life_of, h.trace->blocks.n, sizeof *h.life_of);
    np_memory_free(m->memory, h.n_away, pattern->program.lives.n, sizeof *h.n_away);
}
