/* doubt.c: the uses of each persistent block in the whole run, counted, are those of one period times the periods;
 * where they are not, some periods have one that others lack. */
#include "run/doubt.h"

#define NONE UINT32_MAX

static void count_certain(const np_period *period, uint64_t *n_uses)
{
    for (size_t i = 0; i < period->accesses.n; i++) {
        n_uses[period->accesses.items[i].block]++;
    }
}

/* In the whole periods of the run. */
static void count_all(const np_period *period, uint32_t n_periods, const uint32_t *life_of, uint64_t *n_uses)
{
    const neap_trace *trace = period->trace;
    for (uint32_t i = period->begin; i < period->begin + n_periods * period->length; i++) {
        const neap_event *event = &trace->events.items[i];
        for (uint32_t k = 0; event->kind == NEAP_EVENT_EXEC && k < event->n_accesses; k++) {
            uint32_t life = life_of[trace->accesses.items[event->first_access + k].block];
            if (life != NONE) {
                n_uses[life]++;
            }
        }
    }
}

static void compare(const np_period *period, uint32_t *life_of, uint64_t *n_certain, uint64_t *n_all, bool *doubtful)
{
    uint32_t n_periods = period->run_length / period->length;
    for (size_t i = 0; i < period->trace->blocks.n; i++) {
        life_of[i] = NONE;
    }
    for (uint32_t i = 0; i < period->lives.n; i++) {
        if (period->lives.items[i].persistent) {
            life_of[period->lives.items[i].block] = i;
        }
    }
    count_certain(period, n_certain);
    count_all(period, n_periods, life_of, n_all);
    for (size_t i = 0; i < period->lives.n; i++) {
        doubtful[i] = period->lives.items[i].persistent && n_all[i] != n_certain[i] * n_periods;
    }
}

neap_status np_doubt_find(const np_period *period, bool *doubtful)
{
    const neap_memory *memory = period->memory;
    size_t n_lives = period->lives.n;
    size_t n_blocks = period->trace->blocks.n;
    uint32_t *life_of = np_memory_alloc(memory, n_blocks, sizeof *life_of);
    uint64_t *n_certain = np_memory_alloc_zero(memory, n_lives, sizeof *n_certain);
    uint64_t *n_all = np_memory_alloc_zero(memory, n_lives, sizeof *n_all);
    neap_status status = life_of && n_certain && n_all ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        compare(period, life_of, n_certain, n_all, doubtful);
    }
    np_memory_free(memory, life_of, n_blocks, sizeof *life_of);
    np_memory_free(memory, n_certain, n_lives, sizeof *n_certain);
    np_memory_free(memory, n_all, n_lives, sizeof *n_all);
    return status;
}
