#include "run/small.h"

#include <string.h>

enum { SLAB_BYTES = 1 << 16 };

void np_small_init(np_small *small, np_pages *pages)
{
    uint64_t page = pages->device->page_bytes;
    *small = (np_small){.pages = pages, .slab_pages = (uint32_t)(page < SLAB_BYTES ? SLAB_BYTES / page : 1)};
}

static void slab_free(np_small *small, np_slab *slab)
{
    const neap_memory *memory = small->pages->device->memory;
    np_view_free(small->pages, &slab->view, NP_COUNTED);
    np_array_free(memory, &slab->chunks);
    np_memory_free(memory, slab, 1, sizeof *slab);
}

void np_small_free(np_small *small)
{
    for (size_t i = 0; i < small->slabs.n; i++) {
        slab_free(small, small->slabs.items[i]);
    }
    np_array_free(small->pages->device->memory, &small->slabs);
}

static uint32_t units_of(uint64_t bytes)
{
    return (uint32_t)((bytes + NP_SMALL_UNIT - 1) / NP_SMALL_UNIT);
}

/* The smallest free chunk that holds so many units. */
static np_slab *find_chunk(const np_small *small, uint32_t n_units, size_t *chunk)
{
    np_slab *best = NULL;
    uint32_t best_units = UINT32_MAX;
    for (size_t i = 0; i < small->slabs.n; i++) {
        np_slab *slab = small->slabs.items[i];
        for (size_t k = 0; k < slab->chunks.n; k++) {
            uint32_t units = slab->chunks.items[k].end - slab->chunks.items[k].begin;
            if (units >= n_units && units < best_units) {
                best = slab;
                best_units = units;
                *chunk = k;
            }
        }
    }
    return best;
}

uint32_t np_small_pages_needed(const np_small *small, uint64_t bytes)
{
    size_t chunk;
    return find_chunk(small, units_of(bytes), &chunk) ? 0 : small->slab_pages;
}

neap_status np_small_grow(np_small *small, const uint32_t *numbers)
{
    const neap_memory *memory = small->pages->device->memory;
    np_slab *slab = np_memory_alloc_zero(memory, 1, sizeof *slab);
    neap_status status = slab ? np_view_make(small->pages, small->slab_pages, &slab->view) : NEAP_NO_MEMORY;
    if (!slab) {
        return NEAP_NO_MEMORY;
    }
    slab->n_units = units_of((uint64_t)small->slab_pages * small->pages->device->page_bytes);
    if (status == NEAP_OK) { /* room for every chunk there can be: giving back cannot fail */
        status = np_array_reserve(memory, &slab->chunks, slab->n_units / 2 + 1);
    }
    if (status == NEAP_OK) {
        status = np_array_reserve(memory, &small->slabs, small->slabs.n + 1);
    }
    if (status == NEAP_OK) {
        status = np_view_map(small->pages, &slab->view, 0, small->slab_pages, numbers);
    }
    if (status != NEAP_OK) {
        slab_free(small, slab);
        return status;
    }
    slab->chunks.items[slab->chunks.n++] = (np_chunk){0, slab->n_units};
    small->slabs.items[small->slabs.n++] = slab;
    return NEAP_OK;
}

static void remove_chunk(np_slab *slab, size_t at)
{
    slab->chunks.n--;
    memmove(&slab->chunks.items[at], &slab->chunks.items[at + 1], (slab->chunks.n - at) * sizeof *slab->chunks.items);
}

static neap_status copy_after(np_small *small, const np_slab *slab, neap_block *block)
{
    np_device *device = small->pages->device;
    if (!slab->was_freed || device->n_streams == 1) {
        return NEAP_OK;
    }
    block->after = np_memory_alloc(device->memory, device->n_streams, sizeof *block->after);
    if (!block->after) {
        return NEAP_NO_MEMORY;
    }
    memcpy(block->after, slab->after, device->n_streams * sizeof *block->after);
    block->after_left = (1u << device->n_streams) - 1;
    return NEAP_OK;
}

neap_status np_small_take(np_small *small, uint64_t bytes, neap_block *block)
{
    uint32_t n_units = units_of(bytes);
    size_t at = 0;
    np_slab *slab = find_chunk(small, n_units, &at);
    neap_status status = copy_after(small, slab, block);
    if (status != NEAP_OK) {
        return status;
    }
    block->address = slab->view.address + (uint64_t)slab->chunks.items[at].begin * NP_SMALL_UNIT;
    slab->chunks.items[at].begin += n_units;
    if (slab->chunks.items[at].begin == slab->chunks.items[at].end) {
        remove_chunk(slab, at);
    }
    slab->n_blocks++;
    return NEAP_OK;
}

static size_t slab_of(const np_small *small, const char *address)
{
    size_t i = 0;
    while (address < small->slabs.items[i]->view.address ||
           address >= small->slabs.items[i]->view.address + (uint64_t)small->slabs.items[i]->n_units * NP_SMALL_UNIT) {
        i++;
    }
    return i;
}

static void insert_chunk(np_slab *slab, np_chunk chunk)
{
    size_t at = 0;
    while (at < slab->chunks.n && slab->chunks.items[at].begin < chunk.begin) {
        at++;
    }
    if (at > 0 && slab->chunks.items[at - 1].end == chunk.begin) {
        slab->chunks.items[at - 1].end = chunk.end;
        if (at < slab->chunks.n && slab->chunks.items[at].begin == chunk.end) {
            slab->chunks.items[at - 1].end = slab->chunks.items[at].end;
            remove_chunk(slab, at);
        }
    } else if (at < slab->chunks.n && slab->chunks.items[at].begin == chunk.end) {
        slab->chunks.items[at].begin = chunk.begin;
    } else {
        memmove(&slab->chunks.items[at + 1], &slab->chunks.items[at],
                (slab->chunks.n - at) * sizeof *slab->chunks.items);
        slab->chunks.items[at] = chunk;
        slab->chunks.n++;
    }
}

static bool is_idle(const np_small *small, const np_slab *slab)
{
    np_device *device = small->pages->device;
    for (np_stream s = 0; s < device->n_streams; s++) {
        if (!device->api->is_done(device, s, slab->after[s])) {
            return false;
        }
    }
    return true;
}

void np_small_give(np_small *small, const neap_block *block)
{
    np_device *device = small->pages->device;
    size_t index = slab_of(small, block->address);
    np_slab *slab = small->slabs.items[index];
    uint32_t begin = (uint32_t)((uint64_t)(block->address - slab->view.address) / NP_SMALL_UNIT);
    insert_chunk(slab, (np_chunk){begin, begin + units_of(block->bytes)});
    slab->was_freed = true;
    slab->n_blocks--;
    for (np_stream s = 0; s < device->n_streams; s++) {
        slab->after[s] = device->api->mark(device, s);
    }
    if (slab->n_blocks == 0 && small->slabs.n > 1 && is_idle(small, slab)) {
        small->slabs.items[index] = small->slabs.items[--small->slabs.n];
        slab_free(small, slab);
    }
}

bool np_small_is_valid(const np_small *small)
{
    for (size_t i = 0; i < small->slabs.n; i++) {
        const np_slab *slab = small->slabs.items[i];
        uint32_t past = 0;
        if (!np_view_is_valid(small->pages, &slab->view) || slab->view.n_missing > 0) {
            return false;
        }
        for (size_t k = 0; k < slab->chunks.n; k++) {
            np_chunk chunk = slab->chunks.items[k];
            if (chunk.begin >= chunk.end || chunk.end > slab->n_units || (k > 0 && chunk.begin <= past)) {
                return false;
            }
            past = chunk.end;
        }
        if (slab->n_blocks == 0 && (slab->chunks.n != 1 || slab->chunks.items[0].end != slab->n_units)) {
            return false;
        }
    }
    return true;
}
