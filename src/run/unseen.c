#include "run/unseen.h"

void np_unseen_note(const np_program *program, const np_program_event *event, const neap_use *uses, size_t n_uses,
                    bool *is_seen)
{
    for (size_t i = 0; i < n_uses; i++) {
        for (uint32_t k = event->first_use; k < event->first_use + event->n_uses; k++) {
            is_seen[k] |= program->uses.items[k].life == uses[i].block->life;
        }
    }
}

neap_status np_unseen_list(const np_program *program, const bool *is_seen, const neap_memory *memory,
                           np_doubt_array *unseen)
{
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < program->events.n && status == NEAP_OK; i++) {
        const np_program_event *event = &program->events.items[i];
        for (uint32_t k = 0; event->kind == NEAP_EVENT_EXEC && k < event->n_uses && status == NEAP_OK; k++) {
            np_doubt use = {.life = program->uses.items[event->first_use + k].life, .exec = event->subject};
            if (!is_seen[event->first_use + k]) {
                status = np_array_push(memory, unseen, use);
            }
        }
    }
    return status;
}

/* The first of those of an exec, or of the next that has any. */
static size_t find_exec(const np_doubt *unseen, size_t n_unseen, uint32_t exec)
{
    size_t low = 0;
    size_t high = n_unseen;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (unseen[middle].exec < exec) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_unseen(const np_doubt *unseen, size_t n_unseen, uint32_t exec, uint32_t life)
{
    for (size_t i = find_exec(unseen, n_unseen, exec); i < n_unseen && unseen[i].exec == exec; i++) {
        if (unseen[i].life == life) {
            return true;
        }
    }
    return false;
}

void np_unseen_drop(np_period *period, const np_doubt *unseen, size_t n_unseen)
{
    uint32_t exec = 0;
    uint32_t n_kept = 0;
    uint32_t next = period->accesses.n > 0 ? period->access_at.items[0] : 0;
    for (uint32_t t = 0; t < period->length && period->accesses.n > 0; t++) {
        bool is_exec = period->trace->events.items[period->origin + t].kind == NEAP_EVENT_EXEC;
        uint32_t end = period->access_at.items[t + 1];
        period->access_at.items[t] = n_kept;
        for (; next < end; next++) {
            neap_access access = period->accesses.items[next];
            if (!is_exec || !is_unseen(unseen, n_unseen, exec, access.block)) {
                period->accesses.items[n_kept++] = access;
            }
        }
        exec += is_exec;
    }
    if (period->accesses.n > 0) {
        period->access_at.items[period->length] = n_kept;
        period->accesses.n = n_kept;
    }
}
