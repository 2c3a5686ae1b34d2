/* events.c: malloc, free and exec: under the lock, on the plan or off it. */
#include <string.h>

#include "run/manager.h"
#include "run/stray.h"

void np_free_off_plan(neap_device *m, neap_block *block)
{
    if (block->kind == NP_BLOCK_PLAIN) {
        np_plain_free(m, block);
    } else {
        np_loose_free(m, block);
    }
}

static void note_live(neap_device *m, uint64_t bytes)
{
    m->stats.live += bytes;
    if (!m->is_deferring) { /* otherwise it is asked for only to see whether it is there */
        m->stats.peak_live = m->stats.live > m->stats.peak_live ? m->stats.live : m->stats.peak_live;
    }
    m->stats.n_events++;
    if (2 * m->stats.live >= m->stats.peak_live) {
        m->last_high_event = m->stats.n_events;
    }
    np_limit_note_load(m);
}

neap_status np_malloc_locked(neap_device *m, uint64_t bytes, neap_block **block)
{
    bool served = false;
    neap_status status = NEAP_OK;
    if (m->state != NEAP_STATE_RUN) {
        np_look_for_start(m, NEAP_EVENT_MALLOC, bytes);
    }
    if (m->state == NEAP_STATE_RUN) {
        status = np_follow_malloc(m, bytes, &served, block);
        if (!served && m->state != NEAP_STATE_RUN) {
            np_boundary_note(m, NEAP_EVENT_MALLOC);
        }
    }
    if (!served && status == NEAP_OK) {
        status = np_is_plain(m) ? np_plain_malloc(m, bytes, block) : np_loose_malloc(m, bytes, block);
        if (status == NEAP_OK) {
            np_recorder_malloc(&m->recorder, *block);
            np_look_for_pattern(m);
        }
    }
    if (status == NEAP_OK) {
        note_live(m, bytes);
    }
    return status;
}

bool np_is_live_block(const neap_device *m, const neap_block *block)
{
    bool is_known = m->pattern && np_block_is_among(block, m->pattern->blocks, m->pattern->n_blocks);
    for (size_t i = 0; i < m->patterns.n && !is_known; i++) {
        is_known = np_block_is_among(block, m->patterns.items[i]->blocks, m->patterns.items[i]->n_blocks);
    }
    for (const np_pattern *p = m->outlived; p && !is_known; p = p->next_outlived) {
        is_known = np_block_is_among(block, p->blocks, p->n_blocks);
    }
    return (is_known || np_block_pool_has(&m->blocks, block)) && block->is_live;
}

neap_status np_check_process(const neap_device *m)
{
    return np_process_is_child(&m->process)
               ? np_device_fail(NEAP_DEVICE_FAILED, "the device is the parent's: a forked child opens one of its own")
               : NEAP_OK;
}

neap_status neap_malloc(neap_device *device, uint64_t bytes, neap_block **block)
{
    neap_status status;
    np_device_fail_clear();
    if (bytes == 0) {
        return np_device_fail(NEAP_BAD_ARGUMENT, "a block has one byte at the least");
    }
    if (np_check_process(device) != NEAP_OK) {
        return NEAP_DEVICE_FAILED;
    }
    (void)pthread_mutex_lock(&device->lock);
    status = np_malloc_locked(device, bytes, block);
    (void)pthread_mutex_unlock(&device->lock);
    return status;
}

neap_status np_free_locked(neap_device *m, neap_block *block)
{
    uint64_t bytes = block->bytes;
    bool served = false;
    neap_status status = NEAP_OK;
    if (m->state != NEAP_STATE_RUN) {
        np_look_for_start(m, NEAP_EVENT_FREE, bytes);
    }
    if (m->state == NEAP_STATE_RUN) {
        status = np_follow_free(m, block, &served);
    }
    if (!served && status == NEAP_OK) {
        np_recorder_free_block(&m->recorder, block);
        np_free_off_plan(m, block);
        np_look_for_pattern(m);
    }
    m->stats.live -= bytes;
    m->stats.n_events++;
    np_limit_note_load(m);
    return status;
}

neap_status neap_free(neap_device *device, neap_block *block)
{
    neap_status status;
    np_device_fail_clear();
    if (!block) {
        return NEAP_OK;
    }
    if (np_check_process(device) != NEAP_OK) {
        return NEAP_DEVICE_FAILED;
    }
    (void)pthread_mutex_lock(&device->lock);
    status = np_is_live_block(device, block)
                 ? np_free_locked(device, block)
                 : np_device_fail(NEAP_BAD_ARGUMENT, "no block of this device: it was freed before, or is another's");
    (void)pthread_mutex_unlock(&device->lock);
    return status;
}

neap_status np_exec_ready(neap_device *m, const neap_work *work, uint64_t key, const neap_use *uses, size_t n_uses,
                          np_given *given)
{
    neap_status status = NEAP_OK;
    *given = (np_given){.work = work, .uses = uses, .n_uses = n_uses};
    if (m->visit.is_torn) {
        return NEAP_DEVICE_FAILED;
    }
    if (m->state != NEAP_STATE_RUN) {
        np_look_for_start(m, NEAP_EVENT_EXEC, key);
    }
    if (m->state == NEAP_STATE_RUN && np_stray_is_beside(m, key, given) && np_stray_ready_beside(m, given)) {
        return NEAP_OK;
    }
    if (m->state == NEAP_STATE_RUN) {
        status = np_follow_ready(m, key, given, &given->is_planned);
    }
    if (!given->is_planned && status == NEAP_OK) {
        given->times = np_recorder_times(&m->recorder);
        status = np_loose_ready(m, given);
    }
    return status;
}

void np_exec_given(neap_device *m, const np_given *given, uint64_t mark)
{
    if (given->is_stray) {
        np_stray_given(m, given, mark);
        return;
    }
    m->stats.n_events++;
    if (given->is_planned) {
        np_follow_given(m, given, mark);
        return;
    }
    np_loose_given(m, given);
    np_recorder_exec(&m->recorder, given->work, given->uses, given->n_uses);
    np_look_for_pattern(m);
}

static neap_status exec_locked(neap_device *m, const neap_work *work, const neap_use *uses, size_t n_uses)
{
    uint64_t key = np_program_name_key(work->name, strlen(work->name));
    np_given given;
    uint64_t mark;
    neap_status status = np_exec_ready(m, work, key, uses, n_uses, &given);
    if (status == NEAP_OK) {
        status = np_launch(m, &given, &mark);
        if (status != NEAP_OK && given.is_planned) {
            np_follow_failed(m, &given);
        }
    }
    if (status != NEAP_OK) {
        return np_device_fail(status,
                              "%s could not be given to the device: %s; nothing is lost, and it can be tried again",
                              work->name, neap_status_message(status));
    }
    np_exec_given(m, &given, mark);
    return NEAP_OK;
}

/* Is a block named twice? */
static bool has_twins(neap_device *m, const neap_use *uses, size_t n_uses)
{
    m->pin++;
    for (size_t i = 0; i < n_uses; i++) {
        if (uses[i].block->pinned_by == m->pin) {
            return true;
        }
        uses[i].block->pinned_by = m->pin;
    }
    return false;
}

/* The uses with every block named once, in m->uses; one that is read here and written there is both. */
static neap_status merge_twins(neap_device *m, const neap_use *uses, size_t n_uses)
{
    neap_status status = np_array_reserve(m->memory, &m->uses, n_uses);
    m->uses.n = 0;
    m->pin++;
    for (size_t i = 0; i < n_uses && status == NEAP_OK; i++) {
        size_t k = 0;
        if (uses[i].block->pinned_by != m->pin) {
            uses[i].block->pinned_by = m->pin;
            m->uses.items[m->uses.n++] = uses[i];
            continue;
        }
        while (m->uses.items[k].block != uses[i].block) {
            k++;
        }
        if (m->uses.items[k].kind != uses[i].kind) {
            m->uses.items[k].kind = NEAP_ACCESS_UNKNOWN;
        }
    }
    return status;
}

static bool is_one_word(const char *name)
{
    if (!name || !*name) {
        return false;
    }
    for (; *name; name++) {
        if ((unsigned char)*name <= ' ' || *name == 127) {
            return false;
        }
    }
    return true;
}

neap_status neap_exec(neap_device *device, const neap_work *work, const neap_use *uses, size_t n_uses)
{
    neap_status status;
    np_device_fail_clear();
    if (!is_one_word(work->name) || work->stream >= device->device->n_streams || work->arg_bytes > NEAP_ARG_MAX ||
        n_uses > UINT16_MAX) {
        return np_device_fail(
            NEAP_BAD_ARGUMENT,
            "work has a name of one word, one of %u streams, %d bytes of arguments and %d uses at most",
            device->device->n_streams, NEAP_ARG_MAX, UINT16_MAX);
    }
    if (np_check_process(device) != NEAP_OK) {
        return NEAP_DEVICE_FAILED;
    }
    (void)pthread_mutex_lock(&device->lock);
    status = NEAP_OK;
    if (has_twins(device, uses, n_uses)) {
        status = merge_twins(device, uses, n_uses);
        uses = device->uses.items;
        n_uses = device->uses.n;
    }
    status = status == NEAP_OK ? exec_locked(device, work, uses, n_uses)
                               : np_device_fail(status, "%s", neap_status_message(status));
    (void)pthread_mutex_unlock(&device->lock);
    return status;
}
