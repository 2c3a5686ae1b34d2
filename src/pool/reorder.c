#include "pool/reorder.h"

#include <string.h>

neap_status np_reorder_init(np_reorder *reorder, const np_sections *sections, const np_part *part, np_order order,
                            uint64_t seed)
{
    const neap_memory *memory = sections->memory;
    np_reorder made = {.sections = sections, .part = part, .excess = UINT64_MAX, .rng = np_rng_make(seed)};
    neap_status status = np_occupied_init(&made.occupied, memory, part->sections);
    if (status != NEAP_OK) {
        return status;
    }
    made.order = np_memory_alloc(memory, part->n_items, sizeof *made.order);
    made.trial = np_memory_alloc(memory, part->n_items, sizeof *made.trial);
    made.too_high = np_memory_alloc(memory, part->n_items, sizeof *made.too_high);
    made.offsets = np_memory_alloc(memory, part->n_items, sizeof *made.offsets);
    status = made.order && made.trial && made.too_high && made.offsets ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = np_fit_order(sections, part, order, made.order);
    }
    if (status != NEAP_OK) {
        np_reorder_free(&made);
        return status;
    }
    *reorder = made;
    return NEAP_OK;
}

void np_reorder_free(np_reorder *reorder)
{
    if (reorder->sections) {
        const neap_memory *memory = reorder->sections->memory;
        size_t n = reorder->part->n_items;
        np_memory_free(memory, reorder->order, n, sizeof *reorder->order);
        np_memory_free(memory, reorder->trial, n, sizeof *reorder->trial);
        np_memory_free(memory, reorder->too_high, n, sizeof *reorder->too_high);
        np_memory_free(memory, reorder->offsets, n, sizeof *reorder->offsets);
        np_occupied_free(&reorder->occupied);
        *reorder = (np_reorder){0};
    }
}

static void move(uint32_t *order, uint32_t from, uint32_t to)
{
    uint32_t item = order[from];
    if (to < from) {
        memmove(&order[to + 1], &order[to], (from - to) * sizeof *order);
    } else {
        memmove(&order[from], &order[from + 1], (to - from) * sizeof *order);
    }
    order[to] = item;
}

static void disturb(np_reorder *reorder)
{
    uint32_t n = reorder->part->n_items;
    uint32_t from = reorder->too_high[np_rng_below(&reorder->rng, reorder->n_too_high)];
    move(reorder->trial, from, (uint32_t)np_rng_below(&reorder->rng, (uint64_t)from + 1));
    if (np_rng_below(&reorder->rng, 3) == 0) {
        move(reorder->trial, (uint32_t)np_rng_below(&reorder->rng, n), (uint32_t)np_rng_below(&reorder->rng, n));
    }
}

static uint64_t excess_over(const np_reorder *reorder, const uint64_t *offsets, uint64_t goal)
{
    uint64_t excess = 0;
    for (uint32_t i = 0; i < reorder->part->n_items; i++) {
        uint32_t item = reorder->part->first_item + i;
        uint64_t size = reorder->sections->items.items[item].size;
        excess += offsets[i] + size > goal ? size : 0;
    }
    return excess;
}

static void keep(np_reorder *reorder, uint64_t excess, uint64_t goal)
{
    uint32_t n = reorder->part->n_items;
    memcpy(reorder->order, reorder->trial, n * sizeof *reorder->order);
    reorder->excess = excess;
    reorder->n_too_high = 0;
    for (uint32_t rank = 0; rank < n; rank++) {
        const np_item *item = &reorder->sections->items.items[reorder->order[rank]];
        if (reorder->offsets[reorder->order[rank] - reorder->part->first_item] + item->size > goal &&
            item->fixed == NEAP_NO_OFFSET) {
            reorder->too_high[reorder->n_too_high++] = rank;
        }
    }
}

neap_status np_reorder_step(np_reorder *reorder, uint64_t goal, const np_stop *stop, uint64_t *height)
{
    uint32_t n = reorder->part->n_items;
    uint64_t excess;
    neap_status status;

    memcpy(reorder->trial, reorder->order, n * sizeof *reorder->trial);
    if (reorder->excess != UINT64_MAX && reorder->n_too_high > 0) {
        disturb(reorder);
    }
    np_occupied_clear(&reorder->occupied);
    status = np_fit_place(reorder->sections, reorder->part, reorder->trial, NP_FIT_FIRST, stop, &reorder->occupied,
                          reorder->offsets, height);
    if (status != NEAP_OK || *height == UINT64_MAX) {
        return status;
    }
    excess = excess_over(reorder, reorder->offsets, goal);
    if (excess <= reorder->excess) {
        keep(reorder, excess, goal);
    }
    return NEAP_OK;
}
