/* residents.c: what the planner is told of the blocks that are live: where each stands, and who shares a page with whom.
 *
 * A block that has a place in the arena keeps it from plan to plan, unless others have theirs in the same bytes at other
 * times. One that has none yet gets one; where it begins in the page in which another ends, the two are to stay
 * neighbours. */
#include <stdlib.h>

#include "base/checked.h"
#include "run/manager.h"

/* Bytes [begin, end) of a page are a block's. */
typedef struct claim {
    uint32_t page;
    uint64_t begin;
    uint64_t end;
} claim;

typedef np_array(claim) claims;

static int compare_claims(const void *left, const void *right)
{
    const claim *a = left;
    const claim *b = right;
    if (a->page != b->page) {
        return a->page < b->page ? -1 : 1;
    }
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static void sort_claims(claims *all)
{
    if (all->n > 0) {
        qsort(all->items, all->n, sizeof *all->items, compare_claims);
    }
}

static claim claim_of(const neap_device *m, const neap_block *block, uint32_t k, uint32_t page)
{
    uint64_t page_bytes = m->device->page_bytes;
    uint64_t end = block->view.lead + block->bytes - k * page_bytes;
    return (claim){page, k == 0 ? block->view.lead : 0, end < page_bytes ? end : page_bytes};
}

/* ---- homes ---- */

static neap_status list_homes(neap_device *m, claims *homes)
{
    neap_status status = NEAP_OK;
    for (const neap_block *block = m->live; block; block = block->next) {
        for (uint32_t k = 0; block->home && k < block->n_home && status == NEAP_OK; k++) {
            if (block->home[k] != NP_NO_PAGE) {
                status = np_array_push(m->memory, homes, claim_of(m, block, k, block->home[k]));
            }
        }
    }
    sort_claims(homes);
    return status;
}

/* Marks the pages of the arena in which bytes are several blocks' homes, at different times. */
static void mark_contested(const claims *homes, bool *is_contested)
{
    uint64_t end = 0;
    for (size_t i = 0; i < homes->n; i++) {
        const claim *home = &homes->items[i];
        bool is_first = i == 0 || homes->items[i - 1].page != home->page;
        is_contested[home->page] |= !is_first && home->begin < end;
        end = is_first || home->end > end ? home->end : end;
    }
}

static bool owns_home(const neap_block *block, const bool *is_contested)
{
    for (uint32_t i = 0; block->home && i < block->n_home; i++) {
        if (block->home[i] == NP_NO_PAGE || is_contested[block->home[i]]) {
            return false;
        }
    }
    return block->home != NULL;
}

/* ---- the list ---- */

static uint64_t neighbour_of(const neap_device *m, const neap_block *block)
{
    return np_space_neighbour(&m->spaces[block->place.space], &block->place);
}

static neap_status add_resident(neap_device *m, np_lesson *lesson, const neap_block *block, const bool *is_contested)
{
    bool is_loose = block->kind == NP_BLOCK_LOOSE;
    bool is_movable = is_loose || (m->is_beneath && block->kind == NP_BLOCK_SWAPPED); /* of another plan */
    np_resident resident = {.id = block->id,
                            .lead = block->view.lead,
                            .neighbour = is_loose ? neighbour_of(m, block) : NP_NO_NEIGHBOUR,
                            .first_page = UINT32_MAX,
                            .life = NP_NO_LIFE,
                            .is_outside = !is_movable || block->is_extra || block->is_exported};
    neap_status status = NEAP_OK;
    if (is_contested && owns_home(block, is_contested)) {
        resident.first_page = (uint32_t)lesson->home_pages.n;
        for (uint32_t i = 0; i < block->n_home && status == NEAP_OK; i++) {
            status = np_array_push(m->memory, &lesson->home_pages, block->home[i]);
        }
    }
    if (is_loose && resident.is_outside) {
        lesson->beside_bytes += (uint64_t)block->view.n_pages * m->device->page_bytes;
    }
    if (status == NEAP_OK) {
        status = np_array_push(m->memory, &lesson->residents, resident);
    }
    return status;
}

neap_status np_list_residents(neap_device *m, bool is_anew, np_lesson *lesson)
{
    bool *is_contested = np_memory_alloc_zero(m->memory, m->arena.n_pages, sizeof *is_contested);
    claims homes = {0};
    neap_status status = is_contested ? list_homes(m, &homes) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        mark_contested(&homes, is_contested);
    }
    for (neap_block *block = m->live; block && status == NEAP_OK; block = block->next) {
        status = add_resident(m, lesson, block, is_anew ? NULL : is_contested);
    }
    np_array_free(m->memory, &homes);
    np_memory_free(m->memory, is_contested, m->arena.n_pages, sizeof *is_contested);
    lesson->beside_bytes += (uint64_t)m->small.slabs.n * m->small.slab_pages * m->device->page_bytes;
    if (m->side.view.numbers) { /* and a little room for it to grow */
        lesson->beside_bytes += (m->side.slabs.n + 1) * m->side.slab_bytes;
    }
    return status;
}
