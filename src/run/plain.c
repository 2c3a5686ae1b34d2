/* plain.c: every block an allocation of its own, for comparison with the plan.
 *
 * Where device memory is host memory, blocks come from the host's allocator, as a program without neap would have them;
 * elsewhere each has a view that is given up with it. A block that work under way may still use is freed when that is
 * done. */
#include <string.h>

#include "run/manager.h"

enum { ALIGNMENT = 512 };

static void give(neap_device *m, np_plain *plain)
{
    np_memory_free(m->memory, plain->memory, plain->bytes, 1);
    m->plain_bytes -= plain->bytes;
}

static bool is_over(const neap_device *m, const np_plain *plain)
{
    for (np_stream s = 0; s < m->device->n_streams; s++) {
        if (!m->device->api->is_done(m->device, s, plain->after[s])) {
            return false;
        }
    }
    return true;
}

/* Those freed first, as far as their work is done. */
static void give_over(neap_device *m)
{
    size_t n = 0;
    while (n < m->plain.n && is_over(m, &m->plain.items[n])) {
        give(m, &m->plain.items[n++]);
    }
    if (n > 0) {
        m->plain.n -= n;
        memmove(m->plain.items, &m->plain.items[n], m->plain.n * sizeof *m->plain.items);
    }
}

neap_status np_plain_malloc(neap_device *m, uint64_t bytes, neap_block **block)
{
    neap_block *made;
    char *memory;
    give_over(m);
    if (bytes > SIZE_MAX - 2 * ALIGNMENT) {
        return np_device_fail(NEAP_DEVICE_FULL, "%llu bytes were asked for", (unsigned long long)bytes);
    }
    made = np_memory_alloc_zero(m->memory, 1, sizeof *made);
    memory = made ? np_memory_alloc(m->memory, bytes + ALIGNMENT, 1) : NULL;
    if (!memory) {
        np_memory_free(m->memory, made, 1, sizeof *made);
        return np_device_fail(NEAP_NO_MEMORY, "%s", neap_status_message(NEAP_NO_MEMORY));
    }
    made->kind = NP_BLOCK_PLAIN;
    made->bytes = bytes;
    made->slot.host = memory;
    made->slot.bytes = bytes + ALIGNMENT;
    made->address = memory + (ALIGNMENT - (uintptr_t)memory % ALIGNMENT) % ALIGNMENT;
    made->life = NP_NO_LIFE;
    made->home = NP_NO_HOME;
    m->plain_bytes += made->slot.bytes;
    m->peak_plain_bytes = m->plain_bytes > m->peak_plain_bytes ? m->plain_bytes : m->peak_plain_bytes;
    np_live_add(m, made);
    *block = made;
    return NEAP_OK;
}

void np_plain_free(neap_device *m, neap_block *block)
{
    np_plain plain = {.memory = block->slot.host, .bytes = block->slot.bytes};
    np_live_remove(m, block);
    np_memory_free(m->memory, block, 1, sizeof *block);
    for (np_stream s = 0; s < m->device->n_streams; s++) {
        plain.after[s] = m->device->api->mark(m->device, s);
    }
    give_over(m);
    if (is_over(m, &plain)) {
        give(m, &plain);
    } else if (np_array_push(m->memory, &m->plain, plain) != NEAP_OK) {
        (void)np_drain(m);
        give(m, &plain);
    }
}

void np_plain_give_all(neap_device *m)
{
    for (size_t i = 0; i < m->plain.n; i++) {
        give(m, &m->plain.items[i]);
    }
    np_array_free(m->memory, &m->plain);
}
