/* quick.c: launches that are just what the plan expects, and for which nothing is to be done.
 *
 * They are nearly all launches of a program that is on a plan, and it must not feel them. So there is one way
 * for them that touches little memory, and none of the blocks: the launch is compared with what is remembered of this event
 * (recall.h), counted, and gone. Whatever is not the same goes the long way (sight.c), which finds out what to do, and
 * whether the next launch at this event may be quick. What the long way would do for such a launch, and why it can be left
 * out:
 *
 *   - Its uses are matched with those of the plan: they are the same blocks as then, and the same plan, which was not left
 *     since (n_settled). Blocks that the plan does not know are not among them.
 *   - Waits: there are no operations at this event; blocks from beside the plan were waited for then by this very stream;
 *     of late uses there are none on other streams.
 *   - Writes are counted in the blocks, so that no copy on the host is taken for a true one: those were counted then, and
 *     nothing was copied to the host since (bytes_out). Planned blocks have no copies there at first.
 *   - Streams that have used a block are noted: to know of one less makes a late use wait more.
 *
 * On a plan with swaps, where copies are made all the time and waits are dear, the last two are done for launches that use
 * a block which the plan takes away. No other is copied to the host there. */
#include "base/clock.h"
#include "hook/core.h"
#include "run/pass.h"

void np_hook_quick_follow(np_hook_device *device)
{
    np_hook_recall *recall = &device->recall;
    const neap_device *m = device->manager;
    if (recall->n_settled != m->n_settled) {
        np_hook_recall_forget(recall);
        recall->n_settled = m->n_settled;
    }
    np_hook_recall_follow(recall, m->pattern, m->pattern->program.events.n);
}

static bool uses_swapped(const neap_device *m, const np_given *given)
{
    for (size_t i = 0; i < given->n_uses; i++) {
        uint32_t life = given->uses[i].block->life;
        if (life == NP_NO_LIFE || m->pattern->program.lives.items[life].swapped) {
            return true;
        }
    }
    return false;
}

void np_hook_quick_note(np_hook_device *device, np_hook_memory *memory)
{
    const np_hook_recall *recall = &device->recall;
    const neap_device *m = device->manager;
    bool is_here = m->state == NEAP_STATE_RUN && recall->plan == m->pattern && recall->n_settled == m->n_settled &&
                   m->cursor < recall->n_events && memory == &recall->events[m->cursor];
    memory->is_quick = is_here && np_pass_is_allowed(m, &device->given, &memory->exec);
    memory->bytes_out = m->stats.bytes_out;
    memory->is_swapping = is_here && m->pattern->program.swaps.n > 0;
    memory->notes_uses = memory->is_swapping && uses_swapped(m, &device->given);
    memory->lane = (uint8_t)device->work.stream;
}

/* With swaps, bytes have several addresses, and kernels that overlap need more: the long way knows. */
static bool is_still_quick(const np_hook_device *device, const np_hook_call *call, const np_cupti_data *data,
                           const np_hook_memory *memory)
{
    return memory->is_swapping ? !np_hook_is_overlapping(call, data)
                               : memory->bytes_out == device->manager->stats.bytes_out;
}

static bool has_equal_hits(np_hook_device *device, const np_hook_memory *memory, const np_hook_parameters *parameters)
{
    bool is_timed = device->facts.n_launches % NP_HOOK_TIMED_EVERY == 0;
    uint64_t begin_ns = is_timed ? np_clock_ns() : 0;
    bool is_equal = np_hook_recall_is_equal(memory, &device->index, parameters);
    device->facts.scan_ns += is_timed && is_equal ? NP_HOOK_TIMED_EVERY * (np_clock_ns() - begin_ns) : 0;
    return is_equal;
}

bool np_hook_quick_begin(np_hook_device *device, const np_hook_call *call, const np_cupti_data *data)
{
    const neap_device *m = device->manager;
    const np_hook_recall *recall = &device->recall;
    const np_hook_memory *memory;
    np_hook_parameters parameters;
    if (m->state != NEAP_STATE_RUN || recall->plan != m->pattern || recall->n_settled != m->n_settled ||
        device->n_captures > 0 || m->pattern->timed.state == NP_TIMED_ON) {
        return false;
    }
    memory = np_hook_recall_find(recall, m->cursor, np_hook_pointer_at(data, call->bytes));
    if (!memory || !memory->is_quick || !is_still_quick(device, call, data, memory) ||
        device->streams[memory->lane] != np_hook_stream_of(call, false, data) ||
        (m->has_late && np_pass_is_late_elsewhere(m, memory->lane)) ||
        np_hook_is_early(device, call, data, memory->lane)) {
        return false;
    }
    parameters = np_hook_parameters_of(call, data);
    if (!has_equal_hits(device, memory, &parameters)) {
        return false;
    }
    device->facts.n_launches++;
    device->facts.n_quick++;
    device->facts.n_words += memory->n_words;
    device->quick = memory;
    return true;
}

void np_hook_quick_end(np_hook_device *device)
{
    np_device *d = device->manager->device;
    const np_hook_memory *memory = device->quick;
    device->quick = NULL;
    for (uint32_t i = 0; memory->notes_uses && i < memory->n_uses; i++) {
        memory->uses[i].block->clean.n_writes += memory->uses[i].kind != NEAP_ACCESS_READ;
        memory->uses[i].block->used_by |= 1u << memory->lane;
    }
    np_pass(device->manager, memory->exec, d->api->end(d, memory->lane));
}
