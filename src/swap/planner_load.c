/* planner_load.c: swaps that hold a load, places not looked at. */
#include <string.h>

#include "base/clock.h"
#include "swap/planner.h"
#include "swap/stall.h"

neap_status np_plan_load_by_paper(np_planner *planner, np_method method, const double *weights, uint64_t limit,
                                  np_swap_array *swaps, np_simulation *simulation, bool *found)
{
    np_method_options options = {
        .method = method, .limit = limit, .min_bytes = planner->min_block, .seed = planner->seed};
    np_chosen chosen;
    neap_status status;
    if (weights) {
        memcpy(options.weights, weights, sizeof options.weights);
    }
    status = np_swap_by_method(planner->timeline, &planner->link, &options, &chosen);
    *found = false;
    if (status == NEAP_NO_PLAN) {
        return NEAP_OK;
    }
    if (status != NEAP_OK) {
        return status;
    }
    if (chosen.simulation.possible) {
        status = np_array_reserve(planner->timeline->memory, swaps, chosen.swaps.n + 1);
        if (status == NEAP_OK) {
            if (swaps->items && chosen.swaps.n > 0) {
                memcpy(swaps->items, chosen.swaps.items, chosen.swaps.n * sizeof *swaps->items);
            }
            swaps->n = chosen.swaps.n;
            *simulation = chosen.simulation;
            *found = true;
        }
    }
    np_chosen_free(&chosen);
    return status;
}

np_method np_planner_paper_method(neap_swap_method method)
{
    switch (method) {
    case NEAP_SWAP_DOA:
        return NP_METHOD_DOA;
    case NEAP_SWAP_AOA:
        return NP_METHOD_AOA;
    case NEAP_SWAP_WDOA:
        return NP_METHOD_WDOA;
    case NEAP_SWAP_SWDOA:
        return NP_METHOD_SWDOA;
    case NEAP_SWAP_BO:
    case NEAP_SWAP_SEARCH:
    case NEAP_SWAP_N_METHODS:
        break;
    }
    return NP_METHOD_BO;
}

neap_status np_plan_load(np_planner *planner, neap_swap_method method, uint64_t limit, np_swap_array *swaps,
                         np_simulation *simulation, bool *found)
{
    const neap_memory *memory = planner->timeline->memory;
    np_stall_options options = {
        .limit = limit, .min_block = planner->min_block, .page = planner->page, .least_part = planner->least_part};
    np_swap_array other = {0};
    np_simulation other_simulation;
    bool other_found = false;
    uint64_t now = np_clock_ns();
    neap_status status;

    if (method != NEAP_SWAP_SEARCH) {
        return np_plan_load_by_paper(planner, np_planner_paper_method(method), NULL, limit, swaps, simulation, found);
    }
    options.seed = planner->seed;
    options.is_stopping = planner->is_stopping;
    options.deadline_ns = now + (planner->deadline_ns > now ? (planner->deadline_ns - now) / 6 : 0);
    status = np_stall_search(planner->timeline, &planner->link, &options, swaps, simulation, found);
    if (status == NEAP_OK && (!*found || simulation->overhead > 0)) { /* never worse than the mix */
        status = np_plan_load_by_paper(planner, NP_METHOD_BO, NULL, limit, &other, &other_simulation, &other_found);
    }
    if (status == NEAP_OK && other_found && (!*found || other_simulation.overhead < simulation->overhead)) {
        np_swap_array old = *swaps;
        *swaps = other;
        other = old;
        *simulation = other_simulation;
        *found = true;
    }
    np_array_free(memory, &other);
    return status;
}
