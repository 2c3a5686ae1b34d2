#include "run/side.h"

#include "run/manager.h"

enum { UNIT = 512 };

#define MOST_BYTES ((uint64_t)64 << 30) /* of the range, on devices of any size */
#define SLAB_BYTES ((uint64_t)2 << 20)  /* at the least */

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

uint64_t np_side_slab_bytes(uint64_t min_block, uint64_t page_bytes)
{
    uint64_t least = 2 * round_up(min_block, UNIT);
    if (page_bytes < SLAB_BYTES) { /* small pages, small slabs */
        return round_up(least, page_bytes);
    }
    return round_up(least > SLAB_BYTES ? least : SLAB_BYTES, page_bytes);
}

static neap_status begin(neap_device *m)
{
    np_side *side = &m->side;
    uint64_t page = m->device->page_bytes;
    uint64_t bytes = m->device->n_pages * page;
    neap_status status;
    side->slab_bytes = np_side_slab_bytes(m->options.min_block, page);
    bytes = round_up(bytes < MOST_BYTES ? bytes : MOST_BYTES, side->slab_bytes);
    status = np_view_make(&m->pages, (uint32_t)(bytes / page), &side->view);
    for (np_stream s = 0; s < NP_SIDE_HEAPS && status == NEAP_OK; s++) {
        np_heap_init(&side->heaps[s].heap, m->memory);
    }
    return status;
}

static neap_status map_slab(neap_device *m, uint32_t slab)
{
    np_side *side = &m->side;
    uint32_t n = (uint32_t)(side->slab_bytes / m->device->page_bytes);
    uint32_t *numbers = np_memory_alloc(m->memory, n, sizeof *numbers);
    m->pin++; /* whatever was pinned can leave */
    neap_status status = numbers ? np_room_take_new(m, n, numbers) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = np_view_map(&m->pages, &side->view, slab * n, n, numbers);
        if (status != NEAP_OK) {
            np_pages_unuse(&m->pages, numbers, n);
        }
    }
    np_memory_free(m->memory, numbers, n, sizeof *numbers);
    return status;
}

/* One more slab for a stream. What fails leaves at most a slab mapped that nobody uses yet. */
static neap_status grow(neap_device *m, np_stream stream)
{
    np_side *side = &m->side;
    np_side_heap *own = &side->heaps[stream];
    size_t n_units = side->slab_bytes / UNIT;
    np_side_slab slab = {.stream = stream, .chunk = (uint32_t)own->slabs.n};
    uint32_t block;
    neap_status status = np_array_reserve(m->memory, &side->slabs, side->slabs.n + 1);
    if (status == NEAP_OK) {
        status = np_array_reserve(m->memory, &own->slabs, own->slabs.n + 1);
    }
    if (status != NEAP_OK || (side->slabs.n + 1) * side->slab_bytes > side->view.n_pages * m->device->page_bytes) {
        return status == NEAP_OK ? NEAP_DEVICE_FULL : status;
    }
    slab.block_at = np_memory_alloc(m->memory, n_units, sizeof *slab.block_at);
    status = slab.block_at ? map_slab(m, (uint32_t)side->slabs.n) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = np_heap_add_chunk(&own->heap, side->slab_bytes, &block);
        if (status != NEAP_OK) {
            uint32_t n = (uint32_t)(side->slab_bytes / m->device->page_bytes);
            np_view_unmap(&m->pages, &side->view, (uint32_t)side->slabs.n * n, n, NP_COUNTED);
        }
    }
    if (status != NEAP_OK) {
        np_memory_free(m->memory, slab.block_at, n_units, sizeof *slab.block_at);
        return status;
    }
    for (size_t i = 0; i < n_units; i++) {
        slab.block_at[i] = NP_HEAP_NONE;
    }
    own->slabs.items[own->slabs.n++] = (uint32_t)side->slabs.n;
    side->slabs.items[side->slabs.n++] = slab;
    return NEAP_OK;
}

neap_status np_side_malloc(neap_device *m, uint64_t bytes, np_stream stream, char **address)
{
    np_side *side = &m->side;
    np_heap *heap = &side->heaps[stream].heap;
    uint64_t size = round_up(bytes, UNIT);
    uint64_t within;
    uint32_t slab;
    uint32_t block;
    neap_status status = side->view.numbers ? NEAP_OK : begin(m);
    if (status != NEAP_OK) {
        return status;
    }
    block = np_heap_best_fit(heap, size);
    if (block == NP_HEAP_NONE) {
        status = grow(m, stream);
        block = status == NEAP_OK ? np_heap_best_fit(heap, size) : block;
    }
    status = status == NEAP_OK ? np_heap_take(heap, block, size) : status;
    if (status != NEAP_OK) {
        return status;
    }
    slab = side->heaps[stream].slabs.items[heap->blocks.items[block].address / side->slab_bytes];
    within = heap->blocks.items[block].address % side->slab_bytes;
    side->slabs.items[slab].block_at[within / UNIT] = block;
    side->live_bytes += size;
    side->peak_bytes = side->live_bytes > side->peak_bytes ? side->live_bytes : side->peak_bytes;
    side->n_live++;
    *address = side->view.address + slab * side->slab_bytes + within;
    return NEAP_OK;
}

bool np_side_has(const neap_device *m, const char *address)
{
    const np_side *side = &m->side;
    return side->view.numbers && address >= side->view.address &&
           address < side->view.address + side->slabs.n * side->slab_bytes;
}

bool np_side_is_captured(const neap_device *m, const char *address)
{
    const np_side *side = &m->side;
    return side->slabs.items[(uint64_t)(address - side->view.address) / side->slab_bytes].stream == NP_SIDE_CAPTURED;
}

/* Where a live block begins; NULL: none does there. */
static uint32_t *find(np_side *side, const char *address, np_stream *stream)
{
    uint64_t offset = (uint64_t)(address - side->view.address);
    np_side_slab *slab = &side->slabs.items[offset / side->slab_bytes];
    uint32_t *at = &slab->block_at[offset % side->slab_bytes / UNIT];
    *stream = slab->stream;
    return offset % UNIT == 0 && *at != NP_HEAP_NONE ? at : NULL;
}

/* A wait that the program gave to the freeing stream is no work of it, but what it waits for is somebody's. */
static neap_status wait_for_users(neap_device *m, np_stream own, np_stream stream)
{
    np_device *device = m->device;
    neap_status status = NEAP_OK;
    if (own >= NP_MAX_STREAMS || stream >= NP_MAX_STREAMS) { /* one that is not known */
        return np_drain(m);
    }
    for (np_stream s = 0; s < device->n_streams && own != stream && status == NEAP_OK; s++) {
        status = device->api->wait(device, own, s, device->api->mark(device, s));
    }
    return status == NEAP_OK ? NEAP_OK : np_drain(m);
}

neap_status np_side_free(neap_device *m, const char *address, np_stream stream)
{
    np_stream own;
    uint32_t *at = find(&m->side, address, &own);
    if (!at) {
        return NEAP_BAD_ARGUMENT;
    }
    if (wait_for_users(m, own, stream) == NEAP_OK) { /* else it is kept: nobody knows when it is no longer used */
        m->side.live_bytes -= m->side.heaps[own].heap.blocks.items[*at].size;
        m->side.n_live--;
        np_heap_give(&m->side.heaps[own].heap, *at);
        *at = NP_HEAP_NONE;
    }
    return NEAP_OK;
}

uint64_t np_side_bytes(neap_device *m, const char *address)
{
    np_stream own;
    uint32_t *at = find(&m->side, address, &own);
    return at ? m->side.heaps[own].heap.blocks.items[*at].size : 0;
}

void np_side_close(neap_device *m)
{
    np_side *side = &m->side;
    if (!side->view.numbers) {
        return;
    }
    for (size_t i = 0; i < side->slabs.n; i++) {
        np_memory_free(m->memory, side->slabs.items[i].block_at, side->slab_bytes / UNIT, sizeof(uint32_t));
    }
    np_array_free(m->memory, &side->slabs);
    for (np_stream s = 0; s < NP_SIDE_HEAPS; s++) {
        np_heap_free(&side->heaps[s].heap);
        np_array_free(m->memory, &side->heaps[s].slabs);
    }
    np_view_free(&m->pages, &side->view, NP_COUNTED);
}

bool np_side_is_valid(const np_side *side)
{
    uint64_t live = 0;
    uint64_t n_live = 0;
    for (size_t i = 0; i < side->slabs.n; i++) {
        const np_side_slab *slab = &side->slabs.items[i];
        const np_side_heap *own = &side->heaps[slab->stream];
        if (slab->chunk >= own->slabs.n || own->slabs.items[slab->chunk] != i) {
            return false;
        }
        for (uint64_t unit = 0; unit < side->slab_bytes / UNIT; unit++) {
            uint32_t at = slab->block_at[unit];
            if (at != NP_HEAP_NONE) {
                if (!own->heap.blocks.items[at].used ||
                    own->heap.blocks.items[at].address != slab->chunk * side->slab_bytes + unit * UNIT) {
                    return false;
                }
                live += own->heap.blocks.items[at].size;
                n_live++;
            }
        }
    }
    for (np_stream s = 0; s < NP_SIDE_HEAPS && side->view.numbers; s++) {
        if (!np_heap_is_valid(&side->heaps[s].heap)) {
            return false;
        }
    }
    return live == side->live_bytes && n_live == side->n_live;
}
