#include "run/margin.h"

#include <string.h>

/* What is being widened: by exec of the period, the lives it uses, and those it is going to. */
typedef struct widening {
    np_period *period;
    uint32_t *exec_times; /* by exec */
    uint32_t n_execs;
    const np_doubt *doubts;
    size_t n_doubts;
    uint32_t *seen; /* by life: the exec that was last given it, plus one */
    np_array(neap_access) accesses;
} widening;

static void list_execs(widening *w)
{
    const np_period *period = w->period;
    for (uint32_t t = 0; t < period->length; t++) {
        if (period->trace->events.items[period->origin + t].kind == NEAP_EVENT_EXEC) {
            w->exec_times[w->n_execs++] = t;
        }
    }
}

/* Does the life hold at a time of the period? One that crosses its end holds at both ends. */
static bool is_alive(const np_period *period, uint32_t life, uint32_t time)
{
    const np_life *l = &period->lives.items[life];
    return l->persistent || (l->begin < time && time < l->end) || time + period->length < l->end;
}

static neap_status add(widening *w, uint32_t exec, neap_access access)
{
    if (w->seen[access.block] == exec + 1) {
        return NEAP_OK;
    }
    w->seen[access.block] = exec + 1;
    return np_array_push(w->period->memory, &w->accesses, access);
}

/* Those of an exec itself come first, in their order: they are what is compared with. */
static neap_status gather(widening *w, uint32_t exec, uint32_t margin)
{
    const np_period *period = w->period;
    uint32_t time = w->exec_times[exec];
    neap_status status = NEAP_OK;
    for (uint32_t i = period->access_at.items[time]; i < period->access_at.items[time + 1] && status == NEAP_OK; i++) {
        status = add(w, exec, period->accesses.items[i]);
    }
    for (size_t i = 0; i < w->n_doubts && status == NEAP_OK; i++) {
        if (w->doubts[i].exec == exec && w->doubts[i].life < period->lives.n &&
            is_alive(period, w->doubts[i].life, time)) {
            status = add(w, exec, (neap_access){w->doubts[i].life, NEAP_ACCESS_UNKNOWN});
        }
    }
    for (uint32_t k = 1; k <= 2 * margin && status == NEAP_OK; k++) {
        uint32_t away = (k + 1) / 2;
        uint32_t near = k % 2 ? exec + away : exec + w->n_execs - away;
        uint32_t other = w->exec_times[near % w->n_execs];
        for (uint32_t i = period->access_at.items[other]; i < period->access_at.items[other + 1] && status == NEAP_OK;
             i++) {
            uint32_t life = period->accesses.items[i].block;
            if (away < w->n_execs && is_alive(period, life, time)) {
                status = add(w, exec, (neap_access){life, NEAP_ACCESS_UNKNOWN});
            }
        }
    }
    return status;
}

static neap_status widen(widening *w, uint32_t margin, uint32_t *at)
{
    uint32_t exec = 0;
    neap_status status = NEAP_OK;
    list_execs(w);
    for (uint32_t t = 0; t < w->period->length && status == NEAP_OK; t++) {
        at[t] = (uint32_t)w->accesses.n;
        if (exec < w->n_execs && w->exec_times[exec] == t) {
            status = gather(w, exec++, margin);
        }
    }
    at[w->period->length] = (uint32_t)w->accesses.n;
    return status;
}

neap_status np_margin_widen(np_period *period, uint32_t margin, const np_doubt *doubts, size_t n_doubts)
{
    widening w = {.period = period, .doubts = doubts, .n_doubts = n_doubts};
    uint32_t *at;
    neap_status status = NEAP_NO_MEMORY;
    if ((margin == 0 && n_doubts == 0) || period->accesses.n == 0) {
        return NEAP_OK;
    }
    w.exec_times = np_memory_alloc(period->memory, period->length, sizeof *w.exec_times);
    w.seen = np_memory_alloc_zero(period->memory, period->lives.n + 1, sizeof *w.seen);
    at = np_memory_alloc(period->memory, (size_t)period->length + 1, sizeof *at);
    if (w.exec_times && w.seen && at) {
        status = widen(&w, margin, at);
    }
    if (status == NEAP_OK) {
        memcpy(period->access_at.items, at, ((size_t)period->length + 1) * sizeof *at);
        np_array_free(period->memory, &period->accesses);
        period->accesses.items = w.accesses.items;
        period->accesses.n = w.accesses.n;
        period->accesses.capacity = w.accesses.capacity;
    } else {
        np_array_free(period->memory, &w.accesses);
    }
    np_memory_free(period->memory, at, (size_t)period->length + 1, sizeof *at);
    np_memory_free(period->memory, w.exec_times, period->length, sizeof *w.exec_times);
    np_memory_free(period->memory, w.seen, period->lives.n + 1, sizeof *w.seen);
    return status;
}
