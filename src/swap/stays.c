#include "swap/stays.h"

#include "base/status.h"
#include "swap/place_problem.h"

void np_stays_free(np_stays *stays)
{
    if (stays->memory) {
        np_array_free(stays->memory, &stays->stays);
        np_memory_free(stays->memory, stays->execs, stays->n_execs, sizeof *stays->execs);
    }
    *stays = (np_stays){0};
}

/* ---- where ---- */

/* From the first exec's event to the one after the last exec's. What is there over the period's end has two stays, and
 * reaches its edges. */
static neap_swap_stay stay_of(const np_timeline *timeline, const np_placed *placed, const np_piece *piece)
{
    const uint32_t *times = timeline->times.items;
    return (neap_swap_stay){
        .block = timeline->period->lives.items[placed->life].block,
        .place = placed->place,
        .at = placed->at,
        .bytes = placed->bytes,
        .offset = placed->offset,
        .begin = piece->begin == 0 ? 0 : times[piece->begin],
        .end = piece->end == timeline->n_execs ? timeline->period->length : times[piece->end - 1] + 1,
    };
}

/* Both lists are by life, place and `at`. */
static neap_status list_stays(const np_timeline *timeline, const np_place_problem *p, const np_layout *layout,
                              np_stays *made)
{
    neap_status status = p->placed.n == layout->placed.n ? NEAP_OK : NEAP_INTERNAL;
    for (size_t i = 0; i < layout->placed.n && status == NEAP_OK; i++) {
        const np_placed *placed = &layout->placed.items[i];
        const np_buffer *buffer = &p->problem.buffers.items[p->spots.items[i].buffer];
        if (p->placed.items[i].life != placed->life || p->placed.items[i].at != placed->at ||
            p->placed.items[i].bytes != placed->bytes) {
            status = NEAP_INTERNAL;
        }
        for (uint32_t k = 0; k < buffer->n_pieces && status == NEAP_OK; k++) {
            const np_piece *piece = &p->problem.pieces.items[buffer->first_piece + k];
            status = np_array_push(made->memory, &made->stays, stay_of(timeline, placed, piece));
        }
    }
    return status;
}

static neap_status find_stays(np_planner *planner, const np_judged *judged, np_stays *made)
{
    np_place_options options = np_planner_place_options(planner, 0, 0);
    np_place_problem problem;
    neap_status status = np_place_problem_make(planner->timeline, planner->simulator, judged->swaps.items,
                                               (uint32_t)judged->swaps.n, &options, &problem);
    if (status == NEAP_OK) {
        status = list_stays(planner->timeline, &problem, &judged->layout, made);
        np_place_problem_free(&problem);
    }
    return status;
}

/* ---- when ---- */

static neap_status list_execs(const np_timeline *timeline, const np_moments *moments, np_stays *made)
{
    made->n_execs = timeline->n_execs;
    made->execs = np_memory_alloc(made->memory, made->n_execs, sizeof *made->execs);
    if (!made->execs) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t k = 0; k < made->n_execs; k++) {
        made->execs[k] = (neap_swap_exec){.event = timeline->period->origin + timeline->times.items[k],
                                          .start_ns = moments->execs[k].start_ns,
                                          .end_ns = moments->execs[k].end_ns};
    }
    return NEAP_OK;
}

static void fill_entries(const np_judged *judged, const np_moments *moments, neap_swap_entry *entries)
{
    for (size_t i = 0; i < judged->swaps.n; i++) {
        entries[i].at = NEAP_NO_OFFSET;
        entries[i].out_start_ns = moments->outs[i].start_ns;
        entries[i].out_end_ns = moments->outs[i].end_ns;
        entries[i].in_start_ns = moments->ins[i].start_ns;
        entries[i].in_end_ns = moments->ins[i].end_ns;
    }
    for (size_t i = 0; i < judged->layout.left.n; i++) {
        entries[judged->layout.left.items[i].swap].at = judged->layout.left.items[i].begin;
    }
}

neap_status np_stays_make(np_planner *planner, const np_judged *judged, neap_swap_entry *entries, np_stays *stays)
{
    np_stays made = {.memory = planner->timeline->memory};
    np_moments moments = {0};
    np_simulation simulation;
    neap_status status = np_simulate_moments(planner->simulator, judged->limit, judged->swaps.items,
                                             (uint32_t)judged->swaps.n, &simulation, &moments);
    if (status == NEAP_OK && !simulation.possible) {
        status = NEAP_INTERNAL; /* it was judged with this limit */
    }
    if (status == NEAP_OK) {
        status = list_execs(planner->timeline, &moments, &made);
    }
    if (status == NEAP_OK) {
        status = find_stays(planner, judged, &made);
    }
    if (status == NEAP_OK) {
        fill_entries(judged, &moments, entries);
        *stays = made;
    } else {
        np_stays_free(&made);
    }
    np_moments_free(&moments);
    return status;
}

/* ---- for tests ---- */

static bool meet(const neap_swap_stay *a, const neap_swap_stay *b)
{
    return a->begin < b->end && b->begin < a->end && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

bool np_stays_is_valid(const np_stays *stays, const np_timeline *timeline, uint64_t footprint)
{
    for (size_t i = 0; i < stays->stays.n; i++) {
        const neap_swap_stay *stay = &stays->stays.items[i];
        if (stay->begin >= stay->end || stay->end > timeline->period->length || stay->bytes == 0 ||
            stay->offset > footprint || stay->bytes > footprint - stay->offset) {
            return false;
        }
        for (size_t k = 0; k < i; k++) {
            if (meet(stay, &stays->stays.items[k])) {
                return false;
            }
        }
    }
    for (uint32_t k = 0; k < stays->n_execs; k++) {
        const neap_swap_exec *exec = &stays->execs[k];
        if (!(exec->start_ns <= exec->end_ns) || (k > 0 && stays->execs[k - 1].end_ns > exec->start_ns)) {
            return false;
        }
    }
    return true;
}
