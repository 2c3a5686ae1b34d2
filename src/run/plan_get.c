/* plan_get.c: origins and patterns from bytes that nobody vouches for. */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "run/plan_code.h"

#define N_U32 ((uint64_t)1 << 32)

/* ---- origin ---- */

static void get_string(np_plan_reader *r, char *out, size_t n_out)
{
    size_t n;
    const char *text = np_plan_get_text(r, &n);
    if (n >= n_out || memchr(text, '\0', n)) {
        r->is_bad = true;
        n = 0;
    }
    memcpy(out, text, n);
    out[n] = '\0';
}

void np_plan_get_origin(np_plan_reader *r, np_plan_origin *origin)
{
    get_string(r, origin->version, sizeof origin->version);
    get_string(r, origin->machine, sizeof origin->machine);
    get_string(r, origin->program, sizeof origin->program);
    origin->command = np_plan_get_number(r);
    get_string(r, origin->device, sizeof origin->device);
    origin->page_bytes = np_plan_get_number(r);
    origin->n_pages = np_plan_get_below(r, N_U32);
    origin->n_streams = np_plan_get_below(r, N_U32);
    origin->limit = np_plan_get_number(r);
    origin->limit_share = np_plan_get_double(r);
    origin->min_block = np_plan_get_number(r);
    origin->seed = np_plan_get_number(r);
    origin->link.out_gbs = np_plan_get_double(r);
    origin->link.in_gbs = np_plan_get_double(r);
    origin->link.both_gbs = np_plan_get_double(r);
    origin->link.latency_us = np_plan_get_double(r);
}

/* ---- patterns ---- */

/* A name of the file. */
typedef struct known_name {
    uint64_t key;
    uint32_t at; /* into `names` */
} known_name;

typedef struct reading {
    np_plan_reader *r;
    const neap_memory *memory;
    np_program program;
    np_array(known_name) known;
    np_array(char) names;
    np_array(uint32_t) name_at;
    np_array(uint64_t) exec_ns;
} reading;

static bool is_one_word(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] <= ' ' || text[i] == 127) {
            return false;
        }
    }
    return n > 0;
}

static neap_status get_names(reading *g)
{
    size_t n_names = np_plan_get_count(g->r, 2);
    for (size_t i = 0; i < n_names && !g->r->is_bad; i++) {
        size_t n;
        const char *text = np_plan_get_text(g->r, &n);
        known_name known = {np_program_name_key(text, n), (uint32_t)g->names.n};
        if (!is_one_word(text, n)) {
            g->r->is_bad = true;
            return NEAP_OK;
        }
        if (np_array_push(g->memory, &g->known, known) != NEAP_OK ||
            np_array_reserve(g->memory, &g->names, g->names.n + n + 1) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
        memcpy(g->names.items + g->names.n, text, n);
        g->names.items[g->names.n + n] = '\0';
        g->names.n += n + 1;
    }
    return NEAP_OK;
}

static neap_status get_places(reading *g, np_program_life *life)
{
    uint64_t at = 0;
    size_t n;
    life->n_places = np_plan_get_below(g->r, N_U32);
    life->n_placed = np_plan_get_below(g->r, N_U32);
    life->first_placed = (uint32_t)g->program.placed.n;
    if ((uint64_t)life->n_places * life->n_placed > (size_t)(g->r->end - g->r->at) / 2) {
        g->r->is_bad = true;
        return NEAP_OK;
    }
    n = (size_t)life->n_places * life->n_placed;
    for (size_t i = 0; i < n && !g->r->is_bad; i++) {
        np_placed placed = {.life = (uint32_t)g->program.lives.n, .place = (uint32_t)(i / life->n_placed)};
        at = i % life->n_placed == 0 ? 0 : at;
        placed.at = at;
        placed.bytes = np_plan_get_number(g->r);
        placed.offset = np_plan_get_number(g->r);
        at += placed.bytes; /* that it does not wrap is seen later (np_program_is_valid) */
        if (np_array_push(g->memory, &g->program.placed, placed) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
    }
    return NEAP_OK;
}

static neap_status get_lives(reading *g)
{
    size_t n_lives = np_plan_get_count(g->r, 7);
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < n_lives && !g->r->is_bad && status == NEAP_OK; i++) {
        np_program_life life = {.bytes = np_plan_get_number(g->r)};
        uint32_t flags;
        life.id = np_plan_get_number(g->r);
        flags = np_plan_get_below(g->r, 4);
        life.persistent = (flags & NP_PLAN_PERSISTENT) != 0;
        life.swapped = (flags & NP_PLAN_SWAPPED) != 0;
        life.begin = np_plan_get_below(g->r, N_U32);
        life.end = np_plan_get_below(g->r, N_U32);
        status = get_places(g, &life);
        if (status == NEAP_OK) {
            status = np_array_push(g->memory, &g->program.lives, life);
        }
    }
    return status;
}

static neap_status get_swaps(reading *g)
{
    size_t n_swaps = np_plan_get_count(g->r, 4);
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < n_swaps && !g->r->is_bad && status == NEAP_OK; i++) {
        np_program_swap swap = {.life = np_plan_get_below(g->r, N_U32)};
        swap.begin = np_plan_get_number(g->r);
        swap.end = np_plan_get_number(g->r);
        swap.starts_absent = np_plan_get_below(g->r, 2) == 1;
        status = np_array_push(g->memory, &g->program.swaps, swap);
    }
    return status;
}

static neap_status get_ops(reading *g, np_program_event *event)
{
    neap_status status = NEAP_OK;
    uint32_t n;
    event->first_op = (uint32_t)g->program.ops.n;
    if (event->kind == NEAP_EVENT_EXEC) {
        event->n_before = (uint16_t)np_plan_get_below(g->r, UINT16_MAX + 1);
    }
    event->n_after = (uint16_t)np_plan_get_below(g->r, UINT16_MAX + 1);
    n = (uint32_t)event->n_before + event->n_after;
    for (uint32_t i = 0; i < n && !g->r->is_bad && status == NEAP_OK; i++) {
        uint64_t number = np_plan_get_number(g->r);
        np_op op = {.index = (uint32_t)(number / 8), .kind = (uint8_t)(number % 8)};
        g->r->is_bad |= number / 8 > UINT32_MAX;
        op.stream = op.kind == NP_OP_OUT  ? NP_STREAM_OUT
                    : op.kind == NP_OP_IN ? NP_STREAM_IN
                                          : (uint8_t)np_plan_get_below(g->r, NP_N_STREAMS);
        status = np_array_push(g->memory, &g->program.ops, op);
    }
    return status;
}

static neap_status get_uses(reading *g, np_program_event *event)
{
    neap_status status = NEAP_OK;
    event->first_use = (uint32_t)g->program.uses.n;
    event->n_uses = (uint16_t)np_plan_get_below(g->r, UINT16_MAX + 1);
    for (uint32_t i = 0; i < event->n_uses && !g->r->is_bad && status == NEAP_OK; i++) {
        uint64_t number = np_plan_get_number(g->r);
        np_program_use use = {(uint32_t)(number / 4), (uint32_t)(number % 4)};
        g->r->is_bad |= number / 4 > UINT32_MAX;
        status = np_array_push(g->memory, &g->program.uses, use);
    }
    return status;
}

static neap_status get_exec(reading *g, np_program_event *event)
{
    const known_name *known;
    uint32_t name = np_plan_get_below(g->r, g->known.n);
    if (g->r->is_bad || name >= g->known.n) {
        return NEAP_OK;
    }
    known = &g->known.items[name];
    event->key = known->key;
    event->subject = g->program.n_execs++;
    event->stream = (uint8_t)np_plan_get_below(g->r, NP_MAX_STREAMS);
    if (np_array_push(g->memory, &g->name_at, known->at) != NEAP_OK ||
        np_array_push(g->memory, &g->exec_ns, np_plan_get_number(g->r)) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    return get_uses(g, event);
}

static void get_subject(reading *g, np_program_event *event)
{
    uint32_t subject = np_plan_get_below(g->r, g->program.lives.n + 1);
    event->subject = subject == 0 ? NP_NO_LIFE : subject - 1;
    if (subject == 0) {
        event->key = np_plan_get_number(g->r);
    } else if (event->kind == NEAP_EVENT_MALLOC && subject <= g->program.lives.n) {
        event->key = g->program.lives.items[subject - 1].bytes;
    }
}

static neap_status get_events(reading *g)
{
    size_t n_events = np_plan_get_count(g->r, 3);
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < n_events && !g->r->is_bad && status == NEAP_OK; i++) {
        np_program_event event = {.kind = (uint8_t)np_plan_get_below(g->r, NEAP_EVENT_EXEC + 1)};
        if (event.kind == NEAP_EVENT_EXEC) {
            status = get_exec(g, &event);
        } else {
            get_subject(g, &event);
        }
        if (status == NEAP_OK) {
            status = get_ops(g, &event);
        }
        if (status == NEAP_OK) {
            status = np_array_push(g->memory, &g->program.events, event);
        }
    }
    return status;
}

static neap_status get_all(reading *g)
{
    np_program *program = &g->program;
    neap_status status;
    program->footprint = np_plan_get_number(g->r);
    program->peak_load = np_plan_get_number(g->r);
    program->period_ns = np_plan_get_double(g->r);
    program->overhead = np_plan_get_double(g->r);
    status = get_names(g);
    if (status == NEAP_OK) {
        status = get_lives(g);
    }
    if (status == NEAP_OK) {
        status = get_swaps(g);
    }
    if (status == NEAP_OK) {
        status = get_events(g);
    }
    return status;
}

/* May the manager be given this? */
static neap_status check(const reading *g, const np_plan_origin *device, neap_error *error)
{
    const np_program *program = &g->program;
    neap_error why = {""};
    neap_status status;
    if (g->r->is_bad || !isfinite(program->period_ns) || !isfinite(program->overhead) ||
        !np_program_is_valid(program)) {
        return np_fail(error, NEAP_BAD_INPUT, "a number is out of its range");
    }
    status = np_plan_fits(program, device, g->memory, error);
    if (status == NEAP_OK) {
        status = np_program_check(program, &why);
        if (status != NEAP_OK && status != NEAP_NO_MEMORY) {
            return np_fail(error, NEAP_BAD_INPUT, "%.200s", why.text);
        }
    }
    return status == NEAP_NO_MEMORY ? np_fail_memory(error) : status;
}

neap_status np_plan_get_pattern(np_plan_reader *r, const np_plan_origin *device, const neap_memory *memory,
                                neap_error *error, np_pattern **pattern)
{
    reading g = {.r = r, .memory = np_memory_or_default(memory)};
    neap_status status;
    g.program.memory = g.memory;
    status = get_all(&g);
    status = status == NEAP_OK ? check(&g, device, error) : np_fail_memory(error);
    if (status == NEAP_OK) {
        np_pattern_facts facts = {
            .exec_ns = g.exec_ns.items, .name_at = g.name_at.items, .names = g.names.items, .names_bytes = g.names.n};
        status = np_pattern_create(&g.program, &facts, device->page_bytes, g.memory, pattern);
        status = status == NEAP_OK ? NEAP_OK : np_fail_memory(error);
    } else {
        np_program_free(&g.program);
    }
    np_array_free(g.memory, &g.known);
    np_array_free(g.memory, &g.names);
    np_array_free(g.memory, &g.name_at);
    np_array_free(g.memory, &g.exec_ns);
    return status;
}
