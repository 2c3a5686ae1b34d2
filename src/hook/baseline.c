/* baseline.c: what PyTorch's own allocator would have held for the same requests, of all sizes, by a model of it
 * (pool/caching.h).
 *
 * On the plan nothing is counted: the program repeats itself, and what it would hold is known. What stands for a small
 * block is found by where the block begins, in units of the side pool. Without host memory it is simply not known. */
#include "hook/core.h"

enum { UNIT = 512 }; /* small blocks begin at multiples of it */

#define OF_SMALL_HEAP (UINT32_C(1) << 31)

static bool take(np_hook_device *device, uint64_t bytes, np_caching_block *block)
{
    uint64_t held = 0;
    if (device->manager->state == NEAP_STATE_RUN || !device->has_baseline) {
        return false;
    }
    if (np_caching_take(&device->caching, bytes, block) != NEAP_OK ||
        np_caching_held(&device->caching, &held) != NEAP_OK) {
        device->has_baseline = false;
        return false;
    }
    device->caching_bytes = held > device->caching_bytes ? held : device->caching_bytes;
    return true;
}

void np_hook_baseline_take(np_hook_device *device, uint64_t bytes, np_hook_entry *entry)
{
    np_caching_block block;
    if (take(device, bytes, &block)) {
        entry->baseline = block.block;
        entry->is_baseline_small = block.is_small;
        entry->has_baseline = true;
    }
}

void np_hook_baseline_give(np_hook_device *device, const np_hook_entry *entry)
{
    if (entry->has_baseline) {
        np_caching_give(&device->caching, (np_caching_block){entry->baseline, entry->is_baseline_small});
    }
}

static size_t unit_of(const np_hook_device *device, const char *address)
{
    return (size_t)(address - device->manager->side.view.address) / UNIT;
}

/* By unit: 0, or one more than the number in its heap. */
void np_hook_baseline_take_small(np_hook_device *device, uint64_t bytes, const char *address)
{
    const neap_device *m = device->manager;
    size_t unit = unit_of(device, address);
    size_t n_units = m->side.slabs.n * (m->side.slab_bytes / UNIT);
    np_caching_block block;
    if (!take(device, bytes, &block)) {
        return;
    }
    if (np_array_reserve(m->memory, &device->side_baseline, n_units) != NEAP_OK || block.block >= OF_SMALL_HEAP - 1) {
        np_caching_give(&device->caching, block);
        device->has_baseline = false;
        return;
    }
    while (device->side_baseline.n < n_units) {
        device->side_baseline.items[device->side_baseline.n++] = 0;
    }
    device->side_baseline.items[unit] = (block.block + 1) | (block.is_small ? OF_SMALL_HEAP : 0);
}

void np_hook_baseline_give_small(np_hook_device *device, const char *address)
{
    size_t unit = unit_of(device, address);
    uint32_t found = unit < device->side_baseline.n ? device->side_baseline.items[unit] : 0;
    if (found != 0) {
        device->side_baseline.items[unit] = 0;
        np_caching_give(&device->caching,
                        (np_caching_block){(found & (OF_SMALL_HEAP - 1)) - 1, (found & OF_SMALL_HEAP) != 0});
    }
}
