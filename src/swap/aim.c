#include "swap/aim.h"

#include <math.h>

#include "base/clock.h"
#include "swap/stall.h"

enum { AGAIN_STEPS = 8, NEAR_PART = 16 };

#define PLAN_SHARE 0.1   /* of the time left, for filling idle time, */
#define PLACE_SHARE 0.03 /* and for one placement of the search, */
#define LEAST_PLACE_SECONDS 0.02
#define QUICK_PLACE_SECONDS 0.01 /* for the paper's scores, which are there to compare with */

static double seconds_left(const np_planner *planner)
{
    uint64_t now = np_clock_ns();
    return planner->deadline_ns > now ? 1e-9 * (double)(planner->deadline_ns - now) : 0;
}

double np_aim_place_seconds(const np_planner *planner)
{
    return fmax(PLACE_SHARE * seconds_left(planner), LEAST_PLACE_SECONDS);
}

bool np_aim_is_near(const np_judged *judged, uint64_t limit)
{
    return judged->place.footprint <= limit + limit / NEAR_PART;
}

/* By one order of filling alone. */
static neap_status search_quickly(np_planner *planner, uint64_t aim, const uint64_t *extra, np_judged *trial,
                                  bool *found)
{
    np_stall_options options = {.limit = aim,
                                .min_block = planner->min_block,
                                .page = planner->page,
                                .least_part = planner->least_part,
                                .seed = planner->seed,
                                .n_rounds = 1,
                                .extra = extra};
    options.is_stopping = planner->is_stopping;
    options.deadline_ns = np_clock_ns() + (uint64_t)(PLAN_SHARE * 1e9 * seconds_left(planner));
    return np_stall_search(planner->timeline, &planner->link, &options, &trial->swaps, &trial->simulation, found);
}

/* By the search, or by the paper's mix where that costs less; once it is late, by the first that finds any, and by one
 * score instead of the mix, which takes as long as thirty-six. */
static neap_status plan_cheaper(np_planner *planner, np_chooser *by, uint64_t aim, np_judged *trial, bool *found)
{
    np_judged other = {0};
    bool other_found = false;
    neap_status status = NEAP_OK;
    *found = false;
    if (!by->whole) {
        status = search_quickly(planner, aim, by->extra, trial, found);
    }
    if (status == NEAP_OK && !by->extra &&
        !(*found && (trial->simulation.overhead == 0 || np_planner_is_late(planner)))) {
        np_method method = np_planner_is_late(planner) ? NP_METHOD_SWDOA : NP_METHOD_BO;
        status = np_plan_load_by_paper(planner, method, NULL, aim, &other.swaps, &other.simulation, &other_found);
    }
    if (status == NEAP_OK && other_found &&
        (!*found || np_planner_cost(planner, &other) < np_planner_cost(planner, trial))) {
        np_judged_exchange(trial, &other);
        *found = by->whole = true;
    }
    np_judged_free(&other, planner->timeline->memory);
    return status;
}

/* What stands too high is given a better place, if there is one. */
static neap_status place_again(np_planner *planner, uint64_t limit, np_judged *trial)
{
    np_place_options options = np_planner_place_options(planner, 0, limit);
    np_layout layout = {0};
    np_place_result place;
    uint64_t excess;
    neap_status status =
        np_place_near(planner->timeline, planner->simulator, trial->swaps.items, (uint32_t)trial->swaps.n, &options,
                      &trial->layout, AGAIN_STEPS, planner->error, &place, &layout, &excess);
    if (status == NEAP_OK && excess == 0) {
        np_layout old = trial->layout;
        trial->layout = layout;
        trial->place = place;
        layout = old;
    }
    np_layout_free(&layout);
    return status;
}

neap_status np_aim_place(np_planner *planner, const np_chooser *by, uint64_t aim, uint64_t limit, np_judged *trial,
                         bool *fits)
{
    double seconds = np_chooser_is_search(by) ? np_aim_place_seconds(planner) : QUICK_PLACE_SECONDS;
    neap_status status = np_planner_judge(planner, aim, seconds, limit, trial);
    if (status == NEAP_OK && np_chooser_is_search(by) && trial->simulation.possible && trial->place.footprint > limit &&
        np_aim_is_near(trial, limit)) {
        status = place_again(planner, limit, trial);
    }
    *fits = status == NEAP_OK && trial->place.footprint <= limit;
    return status;
}

neap_status np_aim_plan(np_planner *planner, np_chooser *by, uint64_t aim, uint64_t limit, np_judged *trial, bool *fits)
{
    bool found = false;
    neap_status status;
    if (np_chooser_is_search(by)) {
        status = plan_cheaper(planner, by, aim, trial, &found);
    } else {
        np_method method = by->weights ? NP_METHOD_WEIGHTS : np_planner_paper_method(by->method);
        status = np_plan_load_by_paper(planner, method, by->weights, aim, &trial->swaps, &trial->simulation, &found);
    }
    *fits = false;
    trial->place = (np_place_result){.footprint = UINT64_MAX};
    return status == NEAP_OK && found ? np_aim_place(planner, by, aim, limit, trial, fits) : status;
}
