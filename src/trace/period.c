/* period.c: from a trace to the period that the planners use. */
#include "trace/period.h"

#include <string.h>

#include "trace/lives.h"
#include "trace/overlay.h"
#include "trace/variants.h"

np_step np_trace_step(const neap_trace *trace, uint32_t event)
{
    const neap_event *e = &trace->events.items[event];
    const neap_trace_block *block;
    uint32_t age;
    if (e->kind == NEAP_EVENT_EXEC) {
        return np_step_of_exec(e->subject);
    }
    block = &trace->blocks.items[e->subject];
    age = block->malloc_event == NEAP_NEVER ? 0 : event - block->malloc_event;
    return e->kind == NEAP_EVENT_MALLOC ? np_step_of_malloc(block->bytes) : np_step_of_free(block->bytes, age);
}

static neap_status detect(const neap_trace *trace, const neap_memory *memory, np_run *run)
{
    np_detector *detector;
    neap_status status = np_detector_create(memory, &detector);
    if (status != NEAP_OK) {
        return status;
    }
    for (uint32_t i = 0; status == NEAP_OK && i < trace->events.n; i++) {
        status = np_detector_feed(detector, np_trace_step(trace, i));
    }
    if (status == NEAP_OK) {
        np_detector_best(detector, run);
    }
    np_detector_free(detector);
    return status;
}

/* The event of lowest load in the run's first period. Of several, one after a free: there an iteration is over. */
static uint32_t find_cut(const neap_trace *trace, uint32_t begin, uint32_t length)
{
    uint32_t cut = begin;
    int64_t load = 0, low = 0;
    bool after_free = trace->events.items[begin + length - 1].kind == NEAP_EVENT_FREE;
    for (uint32_t i = begin; i + 1 < begin + length; i++) {
        bool is_free = trace->events.items[i].kind == NEAP_EVENT_FREE;
        load += np_trace_step(trace, i).live_bytes_delta;
        if (load < low || (load == low && is_free && !after_free)) {
            low = load;
            cut = i + 1;
            after_free = is_free;
        }
    }
    return cut;
}

static neap_status fill_from_run(np_period *period, const np_run *run)
{
    const neap_memory *memory = period->memory;
    size_t n_blocks = period->trace->blocks.n;
    uint32_t *life_of_block;
    neap_status status;

    period->begin = run->begin;
    period->length = run->period;
    period->run_length = run->end - run->begin;
    period->first_answer = run->first_answer;
    period->leak_bytes = (uint64_t)run->leak_bytes;
    period->origin = period->trace->is_cut ? (run->begin + run->period - 1) / run->period * run->period
                                           : find_cut(period->trace, run->begin, run->period);
    life_of_block = np_memory_alloc(memory, n_blocks, sizeof *life_of_block);
    if (!life_of_block) {
        return NEAP_NO_MEMORY;
    }
    status = np_lives_make(period, life_of_block);
    if (status == NEAP_OK) {
        status = np_overlay_make(period, life_of_block);
    }
    if (status == NEAP_OK) {
        status = np_variants_make(period);
    }
    np_memory_free(memory, life_of_block, n_blocks, sizeof *life_of_block);
    return status;
}

/* A placement problem is one period, from its first event to its last, and so is a snapshot that does not repeat. */
static neap_status fill_from_whole(np_period *period)
{
    const neap_trace *trace = period->trace;
    period->length = period->run_length = (uint32_t)trace->events.n;
    period->first_answer = period->length;
    period->access_at.items = np_memory_alloc_zero(period->memory, (size_t)period->length + 1, sizeof(uint32_t));
    if (!period->access_at.items) {
        return NEAP_NO_MEMORY;
    }
    period->access_at.n = period->access_at.capacity = (size_t)period->length + 1;
    for (uint32_t i = 0; i < trace->blocks.n; i++) {
        const neap_trace_block *block = &trace->blocks.items[i];
        bool always = block->malloc_event == NEAP_NEVER && block->free_event == NEAP_NEVER;
        np_life life = {i, 0, period->length, always, NEAP_NEVER, NEAP_NEVER};
        life.begin = block->malloc_event == NEAP_NEVER ? 0 : block->malloc_event;
        life.end = block->free_event == NEAP_NEVER ? period->length : block->free_event;
        life.end += life.end == 0; /* freed by the first event of all */
        if (np_array_push(period->memory, &period->lives, life) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
    }
    return NEAP_OK;
}

/* What was allocated when memory ran out: a history that goes once, and is worth a look all the same. */
static bool is_snapshot(const neap_trace *trace)
{
    const char *source = neap_trace_meta(trace, "source");
    return source && strcmp(source, "pytorch-snapshot") == 0;
}

neap_status np_period_find(const neap_trace *trace, const neap_memory *memory, np_period *period)
{
    np_period made = {.memory = np_memory_or_default(memory), .trace = trace, .first_answer = NEAP_NEVER};
    np_run run = {0};
    neap_status status = NEAP_OK;
    if (trace->is_csv && trace->events.n) {
        status = fill_from_whole(&made);
    } else if (!trace->is_csv) {
        status = detect(trace, made.memory, &run);
        if (status == NEAP_OK && run.period) {
            status = fill_from_run(&made, &run);
        } else if (status == NEAP_OK && trace->events.n && is_snapshot(trace)) {
            status = fill_from_whole(&made);
        }
    }
    if (status != NEAP_OK) {
        np_period_free(&made);
        return status;
    }
    *period = made;
    return NEAP_OK;
}

void np_period_free(np_period *period)
{
    np_array_free(period->memory, &period->lives);
    np_array_free(period->memory, &period->variants);
    np_array_free(period->memory, &period->access_at);
    np_array_free(period->memory, &period->accesses);
    period->length = 0;
}

/* ---------------------------------------------------------------- validity ---- */

static bool are_lives_valid(const np_period *period)
{
    for (size_t i = 0; i < period->lives.n; i++) {
        const np_life *life = &period->lives.items[i];
        bool used = life->first_use != NEAP_NEVER;
        if (life->block >= period->trace->blocks.n || life->begin >= life->end || life->begin >= period->length ||
            (i > 0 && life->begin < life[-1].begin) || used != (life->last_use != NEAP_NEVER)) {
            return false;
        }
        if (life->persistent && (life->begin != 0 || life->end != period->length)) {
            return false;
        }
        if (used &&
            (life->first_use > life->last_use || life->first_use < life->begin || life->last_use >= life->end)) {
            return false;
        }
    }
    return true;
}

static bool are_accesses_valid(const np_period *period)
{
    const uint32_t *at = period->access_at.items;
    if (period->access_at.n != (size_t)period->length + 1 || at[0] != 0 || at[period->length] != period->accesses.n) {
        return false;
    }
    for (uint32_t t = 0; t < period->length; t++) {
        const neap_event *event = &period->trace->events.items[period->origin + t];
        if (at[t] > at[t + 1] || (at[t] < at[t + 1] && event->kind != NEAP_EVENT_EXEC)) {
            return false;
        }
    }
    for (size_t i = 0; i < period->accesses.n; i++) {
        if (period->accesses.items[i].block >= period->lives.n) {
            return false;
        }
    }
    return true;
}

bool np_period_is_valid(const np_period *period)
{
    uint64_t n_in_variants = 0;
    if (period->length == 0) {
        return period->lives.n == 0 && period->variants.n == 0 && period->accesses.n == 0;
    }
    if (period->origin < period->begin || period->origin - period->begin >= period->length ||
        (uint64_t)period->begin + period->run_length > period->trace->events.n ||
        (uint64_t)period->origin + period->length > (uint64_t)period->begin + period->run_length) {
        return false;
    }
    for (size_t i = 0; i < period->variants.n; i++) {
        const neap_variant *v = &period->variants.items[i];
        n_in_variants += v->length;
        if (v->begin >= period->length || v->length == 0 || v->shared_prefix > v->length) {
            return false;
        }
    }
    return (period->variants.n == 0 || n_in_variants == period->length) && are_lives_valid(period) &&
           are_accesses_valid(period);
}
