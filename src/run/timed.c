#include "run/timed.h"

#include "run/price.h"

enum { LAPS_TIMED = 3 };

void np_timed_want(np_timed *timed, uint32_t n_execs, uint32_t n_uses, const neap_memory *memory)
{
    if (timed->state != NP_TIMED_NOT) {
        return;
    }
    timed->times = np_memory_alloc_zero(memory, n_execs, sizeof *timed->times);
    timed->shortest_ns = np_memory_alloc_zero(memory, n_execs, sizeof *timed->shortest_ns);
    timed->is_seen = np_memory_alloc_zero(memory, (size_t)n_uses + 1, sizeof *timed->is_seen);
    timed->n_execs = n_execs;
    timed->n_uses = n_uses;
    timed->state = NP_TIMED_WANTED;
    if (!timed->times || !timed->shortest_ns || !timed->is_seen) {
        np_timed_free(timed, memory);
        timed->state = NP_TIMED_DONE;
    }
}

void np_timed_free(np_timed *timed, const neap_memory *memory)
{
    np_memory_free(memory, timed->times, timed->n_execs, sizeof *timed->times);
    np_memory_free(memory, timed->shortest_ns, timed->n_execs, sizeof *timed->shortest_ns);
    np_memory_free(memory, timed->is_seen, (size_t)timed->n_uses + 1, sizeof *timed->is_seen);
    *timed = (np_timed){0};
}

static bool is_over(const np_timed *timed, np_device *device)
{
    for (np_stream s = 0; s < device->n_streams; s++) {
        if (!device->api->is_done(device, s, timed->marks[s])) {
            return false;
        }
    }
    return true;
}

/* Streams are told apart by nobody: what overlaps is no gap, and the gaps between those of one stream are the most. */
static uint64_t price_of(const np_timed *timed)
{
    np_price price = {0};
    for (uint32_t i = 0; i < timed->n_execs; i++) {
        np_price_add(&price, timed->times[i].start_ns, timed->times[i].duration_ns);
    }
    return np_price_ns(&price);
}

static void take(np_timed *timed)
{
    uint64_t price_ns = price_of(timed);
    for (uint32_t i = 0; i < timed->n_execs; i++) {
        uint64_t ns = np_price_paid(timed->times[i].duration_ns, price_ns);
        uint64_t *shortest = &timed->shortest_ns[i];
        *shortest = ns > 0 && (*shortest == 0 || ns < *shortest) ? ns : *shortest;
    }
    timed->n_laps++;
}

void np_timed_end_lap(np_timed *timed, np_device *device, const np_times *first)
{
    switch (timed->state) {
    case NP_TIMED_WANTED:
        timed->state = NP_TIMED_ON;
        break;
    case NP_TIMED_ON:
        for (np_stream s = 0; s < device->n_streams; s++) {
            timed->marks[s] = device->api->mark(device, s);
        }
        timed->first = first;
        timed->state = NP_TIMED_GIVEN;
        break;
    case NP_TIMED_GIVEN:
        if (is_over(timed, device)) {
            timed->times[0] = *timed->first;
            take(timed);
            timed->state = timed->n_laps < LAPS_TIMED ? NP_TIMED_ON : NP_TIMED_DONE;
        }
        break;
    case NP_TIMED_NOT:
    case NP_TIMED_DONE:
        break;
    }
}

void np_timed_break(np_timed *timed)
{
    if (timed->state == NP_TIMED_ON || timed->state == NP_TIMED_GIVEN) {
        timed->state = NP_TIMED_WANTED;
    }
}

double np_timed_sum(const np_timed *timed)
{
    double sum = 0;
    for (uint32_t i = 0; i < timed->n_execs; i++) {
        sum += (double)timed->shortest_ns[i];
    }
    return sum;
}
