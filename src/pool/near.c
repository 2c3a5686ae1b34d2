#include "pool/near.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "pool/fit.h"

typedef struct hinted {
    uint64_t offset; /* where it stood */
    uint64_t size;
    uint32_t item;
} hinted;

/* What stood lowest first; what stood nowhere last, the largest first. */
static int compare_hinted(const void *left, const void *right)
{
    const hinted *a = left;
    const hinted *b = right;
    if (a->offset != b->offset) {
        return a->offset < b->offset ? -1 : 1;
    }
    if (a->size != b->size) {
        return a->size > b->size ? -1 : 1;
    }
    return a->item < b->item ? -1 : a->item > b->item;
}

static neap_status order_near(const np_sections *sections, const np_part *part, const uint64_t *offsets,
                              uint32_t *order)
{
    hinted *sorted = np_memory_alloc(sections->memory, part->n_items, sizeof *sorted);
    if (!sorted) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < part->n_items; i++) {
        const np_item *item = &sections->items.items[part->first_item + i];
        sorted[i] = (hinted){offsets[item->buffer], item->size, part->first_item + i};
    }
    qsort(sorted, part->n_items, sizeof *sorted, compare_hinted);
    for (uint32_t i = 0; i < part->n_items; i++) {
        order[i] = sorted[i].item;
    }
    np_memory_free(sections->memory, sorted, part->n_items, sizeof *sorted);
    return NEAP_OK;
}

static void promote(const np_sections *sections, const np_part *part, const uint64_t *offsets, uint64_t goal,
                    np_rng *rng, uint32_t *order)
{
    for (uint32_t rank = 0; rank < part->n_items; rank++) {
        uint32_t item = order[rank];
        uint64_t end = offsets[item - part->first_item] + sections->items.items[item].size;
        if (end > goal) { /* by a random share of the way */
            uint32_t to = (uint32_t)np_rng_below(rng, (uint64_t)rank + 1);
            memmove(&order[to + 1], &order[to], (rank - to) * sizeof *order);
            order[to] = item;
        }
    }
}

static uint64_t excess_over(const np_sections *sections, const np_part *part, const uint64_t *offsets, uint64_t goal)
{
    uint64_t excess = 0;
    for (uint32_t i = 0; i < part->n_items; i++) {
        uint64_t size = sections->items.items[part->first_item + i].size;
        excess += offsets[i] + size > goal ? size : 0;
    }
    return excess;
}

/* What placing works on, for one part after the other. */
typedef struct nearing {
    const np_sections *sections;
    const np_near_options *options;
    uint64_t goal;   /* above the base */
    uint64_t *best;  /* offsets by item */
    uint64_t *trial; /* of one part */
    uint32_t *order;
    uint64_t height;
    uint64_t excess;
    np_rng rng;
} nearing;

static neap_status place_part(nearing *n, const np_part *part)
{
    uint64_t least = UINT64_MAX;
    uint64_t height_of_least = 0;
    np_occupied occupied;
    neap_status status = order_near(n->sections, part, n->options->offsets, n->order);
    if (status == NEAP_OK) {
        status = np_occupied_init(&occupied, n->sections->memory, part->sections);
    }
    if (status != NEAP_OK) {
        return status;
    }
    for (uint32_t i = 0; i <= n->options->n_steps && status == NEAP_OK && least > 0; i++) {
        uint64_t height;
        uint64_t excess;
        np_occupied_clear(&occupied);
        status = np_fit_place(n->sections, part, n->order, NP_FIT_FIRST, NULL, &occupied, n->trial, &height);
        excess = status == NEAP_OK ? excess_over(n->sections, part, n->trial, n->goal) : UINT64_MAX;
        if (excess < least) {
            least = excess;
            height_of_least = height;
            memcpy(&n->best[part->first_item], n->trial, part->n_items * sizeof *n->trial);
        }
        if (status == NEAP_OK) {
            promote(n->sections, part, n->trial, n->goal, &n->rng, n->order);
        }
    }
    np_occupied_free(&occupied);
    n->height = height_of_least > n->height ? height_of_least : n->height;
    n->excess += least;
    return status;
}

static neap_status place_parts(nearing *n)
{
    const neap_memory *memory = n->sections->memory;
    size_t n_items = n->sections->items.n;
    neap_status status = NEAP_OK;
    n->trial = np_memory_alloc(memory, n_items, sizeof *n->trial);
    n->order = np_memory_alloc(memory, n_items, sizeof *n->order);
    if (!n->trial || !n->order) {
        status = NEAP_NO_MEMORY;
    }
    for (size_t p = 0; p < n->sections->parts.n && status == NEAP_OK; p++) {
        status = place_part(n, &n->sections->parts.items[p]);
    }
    np_memory_free(memory, n->trial, n_items, sizeof *n->trial);
    np_memory_free(memory, n->order, n_items, sizeof *n->order);
    return status;
}

neap_status np_solve_near(const np_problem *problem, const np_near_options *options, neap_error *error,
                          np_solution *solution, uint64_t *excess)
{
    np_sections sections;
    nearing n = {.sections = &sections, .options = options, .rng = np_rng_make(options->seed)};
    neap_status status = np_sections_make(problem, &sections);
    if (status != NEAP_OK) {
        return status;
    }
    n.goal = options->goal > sections.base ? options->goal - sections.base : 0;
    n.best = np_memory_alloc(problem->memory, sections.items.n, sizeof *n.best);
    status = n.best ? np_solve_check_fixed(problem, &sections, error) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = place_parts(&n);
    }
    if (status == NEAP_OK) {
        np_solved solved = {.item_offsets = n.best, .height = n.height, .bound = sections.load, .found_by = "near-fit"};
        status = np_solution_make(problem, &sections, &solved, error, solution);
    }
    if (status == NEAP_OK) { /* what was set aside counts where even that is too high */
        *excess = n.excess + (sections.base > options->goal ? sections.base - options->goal : 0);
    }
    np_memory_free(problem->memory, n.best, sections.items.n, sizeof *n.best);
    np_sections_free(&sections);
    return status;
}
