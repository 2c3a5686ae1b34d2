/* plain.c: every block an allocation of its own, for comparison with the plan.
 *
 * Where device memory is host memory, blocks come from the host's allocator, as a program without neap would have them;
 * elsewhere each has a view that is given up with it. A free waits for the work under way, as cudaFree does. */
#include "run/manager.h"

enum { ALIGNMENT = 512 };

neap_status np_plain_malloc(neap_device *m, uint64_t bytes, neap_block **block)
{
    neap_block *made;
    char *memory;
    uint64_t all = (uint64_t)m->device->n_pages * m->device->page_bytes;
    if (bytes > SIZE_MAX - 2 * ALIGNMENT || m->stats.live > all || bytes > all - m->stats.live) {
        return np_device_fail(NEAP_DEVICE_FULL, "%llu bytes were asked for, %llu of the device's %llu are held",
                              (unsigned long long)bytes, (unsigned long long)m->stats.live, (unsigned long long)all);
    }
    made = np_block_pool_take(&m->blocks, m->memory);
    memory = made ? np_memory_alloc(m->memory, bytes + ALIGNMENT, 1) : NULL;
    if (!memory) {
        if (made) {
            np_block_pool_give(&m->blocks, made);
        }
        return np_device_fail(NEAP_NO_MEMORY, "%s", neap_status_message(NEAP_NO_MEMORY));
    }
    made->kind = NP_BLOCK_PLAIN;
    made->bytes = bytes;
    made->slot = (np_slot){.host = memory, .bytes = bytes + ALIGNMENT};
    made->address = memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT) % ALIGNMENT;
    made->life = NP_NO_LIFE;
    m->plain_bytes += made->slot.bytes;
    m->peak_plain_bytes = m->plain_bytes > m->peak_plain_bytes ? m->plain_bytes : m->peak_plain_bytes;
    np_live_add(m, made);
    *block = made;
    return NEAP_OK;
}

void np_plain_free(neap_device *m, neap_block *block)
{
    (void)np_drain(m);
    np_live_remove(m, block);
    m->plain_bytes -= block->slot.bytes;
    np_memory_free(m->memory, block->slot.host, block->slot.bytes, 1);
    np_block_pool_give(&m->blocks, block);
}
