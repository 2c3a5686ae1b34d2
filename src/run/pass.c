#include "run/pass.h"

bool np_pass_is_allowed(const neap_device *m, const np_given *given, uint32_t *exec)
{
    const np_program_event *event = &m->pattern->program.events.items[m->cursor];
    if (!given->is_planned || given->is_late || given->is_elsewhere || given->times || event->n_before > 0 ||
        event->n_after > 0) {
        return false;
    }
    for (size_t i = 0; i < given->n_uses; i++) {
        if (given->uses[i].block->life == NP_NO_LIFE) {
            return false;
        }
    }
    *exec = event->subject;
    return true;
}

bool np_pass_is_late_elsewhere(const neap_device *m, np_stream stream)
{
    for (np_stream s = 0; s < m->device->n_streams; s++) {
        if (m->late[s] > 0 && s != stream) {
            return true;
        }
    }
    return false;
}
