/* open.c: opening a device and closing it. */
#include <limits.h>
#include <string.h>

#include "base/status.h"
#include "run/manager.h"

#define MAX_SECONDS 1e9 /* of planning: for ever, and yet a number of nanoseconds */

static neap_status check_options(const neap_device_options *options, neap_error *error)
{
    if (!(options->limit_share >= 0) || options->limit_share > 1 || !(options->plan_seconds >= 0) ||
        (unsigned)options->mode > NEAP_MODE_PLAIN) {
        return np_fail(error, NEAP_BAD_ARGUMENT,
                       "a limit is a number of bytes or a share of the peak load, 0 to 1; planning takes some seconds");
    }
    return NEAP_OK;
}

static void fill_in_options(neap_device *m, const neap_device_options *options)
{
    static const neap_device_options none;
    m->options = options ? *options : none;
    m->options.min_block = m->options.min_block ? m->options.min_block : (uint64_t)1 << 20;
    m->options.plan_seconds = m->options.plan_seconds > MAX_SECONDS ? MAX_SECONDS
                              : m->options.plan_seconds > 0         ? m->options.plan_seconds
                                                                    : 2;
    m->options.plan_threads = m->options.plan_threads ? m->options.plan_threads : 1;
    m->options.refinements = m->options.refinements == UINT_MAX ? 0
                             : m->options.refinements           ? m->options.refinements
                                                                : 12;
    m->options.log_level = m->options.log_level ? m->options.log_level : NEAP_LOG_WARN;
}

/* Whole pages of the limit; one at the least. */
uint32_t np_pages_within(const neap_device *m, uint64_t limit)
{
    uint64_t n = limit / m->device->page_bytes;
    return limit == 0 ? UINT32_MAX : n == 0 ? 1 : n < UINT32_MAX ? (uint32_t)n : UINT32_MAX - 1;
}

neap_status np_manager_open(np_device *device, const neap_device_options *options, neap_error *error,
                            neap_device **opened)
{
    const neap_memory *memory = device->memory;
    neap_device *m = NULL;
    neap_status status = options ? check_options(options, error) : NEAP_OK;
    if (status == NEAP_OK) {
        m = np_memory_alloc_zero(memory, 1, sizeof *m);
        status = m ? np_learner_init(&m->learner) : np_fail_memory(error);
    }
    if (m && status == NEAP_OK && pthread_mutex_init(&m->lock, NULL) != 0) {
        np_learner_free(&m->learner);
        status = np_fail_memory(error);
    }
    if (!m || status != NEAP_OK) {
        np_memory_free(memory, m, 1, sizeof *m);
        device->api->free(device);
        return status;
    }
    m->memory = memory;
    m->device = device;
    fill_in_options(m, options);
    np_process_init(&m->process);
    np_pages_init(&m->pages, device);
    np_space_init(&m->spaces[NP_SPACE_PACKED], &m->pages, NP_SPACE_PACKED, NP_SPACE_UNIT);
    np_space_init(&m->spaces[NP_SPACE_PAGED], &m->pages, NP_SPACE_PAGED, device->page_bytes);
    m->packing = m->options.limit == 0 && m->options.limit_share <= 0 ? NP_PACK_ALL : NP_PACK_NONE;
    np_host_init(&m->host, device);
    np_small_init(&m->small, &m->pages);
    np_recorder_init(&m->recorder, memory);
    np_limit_begin(m);
    m->pin = 1;
    m->next_id = 1;
    if (m->options.mode == NEAP_MODE_PLAN) {
        np_recorder_begin(&m->recorder, NULL);
        np_plans_load(m);
    }
    *opened = m;
    return NEAP_OK;
}

neap_status neap_open(const char *name, const neap_device_options *options, const neap_memory *memory,
                      neap_error *error, neap_device **device)
{
    np_device *opened;
    neap_status status = np_device_open(name, np_memory_or_default(memory), error, &opened);
    return status == NEAP_OK ? np_manager_open(opened, options, error, device) : status;
}

/* Blocks of it may stand for lives of another plan: it is freed when they are. */
void np_pattern_drop(neap_device *m, np_pattern *pattern)
{
    if (pattern->n_live > 0) {
        pattern->next_outlived = m->outlived;
        m->outlived = pattern;
        return;
    }
    if (pattern->n_entered > 0) { /* work on blocks that were freed may be under way, on another plan */
        (void)np_drain(m);
    }
    for (uint32_t i = 0; i < pattern->n_blocks; i++) {
        np_view_free(&m->pages, &pattern->blocks[i].view, NP_UNCOUNTED);
        np_host_give(&m->host, &pattern->blocks[i].slot);
    }
    np_pattern_free(pattern);
}

void np_patterns_drop_outlived(neap_device *m)
{
    np_pattern **link = &m->outlived;
    while (*link) {
        np_pattern *pattern = *link;
        if (pattern->n_live == 0) {
            *link = pattern->next_outlived;
            np_pattern_drop(m, pattern);
        } else {
            link = &pattern->next_outlived;
        }
    }
}

/* Is device memory what the host's allocator gives? */
bool np_is_plain(const neap_device *m)
{
    return m->options.mode == NEAP_MODE_PLAIN && strcmp(m->device->kind, "cpu") == 0;
}

void neap_close(neap_device *device)
{
    if (!device || np_process_is_child(&device->process)) {
        return; /* its threads are the parent's, and its memory is shared with it */
    }
    np_learner_free(&device->learner);
    (void)np_drain(device);
    if (device->state == NEAP_STATE_RUN) {
        np_settle(device);
    }
    while (device->live) {
        np_free_off_plan(device, device->live);
    }

    np_refine_free(device);
    np_plans_save(device);
    for (size_t i = 0; i < device->patterns.n; i++) {
        np_pattern_drop(device, device->patterns.items[i]);
    }
    np_patterns_drop_outlived(device);
    np_array_free(device->memory, &device->patterns);
    np_array_free(device->memory, &device->unknown);
    np_array_free(device->memory, &device->touches);
    np_array_free(device->memory, &device->uses);
    np_array_free(device->memory, &device->doubted);
    np_visit_free(device);
    np_retired_give_back(device);
    np_array_free(device->memory, &device->retired);
    for (int i = 0; i < NP_N_SPACES; i++) {
        np_space_free(&device->spaces[i]);
    }
    np_view_free(&device->pages, &device->arena, NP_UNCOUNTED);
    np_small_free(&device->small);
    np_side_close(device);
    np_host_free(&device->host);
    np_recorder_free(&device->recorder);
    np_block_pool_free(&device->blocks, device->memory);
    np_pages_free(&device->pages);
    device->device->api->free(device->device);
    (void)pthread_mutex_destroy(&device->lock);
    np_process_free(&device->process);
    np_memory_free(device->memory, device, 1, sizeof *device);
}
