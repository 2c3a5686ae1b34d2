/* manager.c: the public device: every call, under the lock, on or off the plan. */
#include "run/manager.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "trace/copy.h"

enum { CHECK_EVERY = 32 }; /* events between two looks at the detector */

#define FIRST_PAUSE_NS ((uint64_t)250000000) /* before planning is tried again, doubled each time it fails */

const char *neap_state_name(neap_state state)
{
    static const char *const names[] = {
#define NEAP_STATE_WORD(name, word, text) word,
        NEAP_STATE_MAP(NEAP_STATE_WORD)
#undef NEAP_STATE_WORD
    };
    return (unsigned)state < sizeof names / sizeof *names ? names[state] : "unknown";
}

/* ---- opening and closing ---- */

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
    m->options.plan_seconds = m->options.plan_seconds > 0 ? m->options.plan_seconds : 2;
    m->options.plan_threads = m->options.plan_threads ? m->options.plan_threads : 1;
    m->options.refinements = m->options.refinements == UINT_MAX ? 0
                             : m->options.refinements           ? m->options.refinements
                                                                : 8;
    m->options.log_level = m->options.log_level ? m->options.log_level : NEAP_LOG_WARN;
}

/* Whole pages of the limit; one at the least. */
static uint32_t pages_within(const neap_device *m, uint64_t limit)
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
    if (status == NEAP_OK && pthread_mutex_init(&m->lock, NULL) != 0) {
        np_learner_free(&m->learner);
        status = np_fail_memory(error);
    }
    if (status != NEAP_OK) {
        np_memory_free(memory, m, 1, sizeof *m);
        device->api->free(device);
        return status;
    }
    m->memory = memory;
    m->device = device;
    fill_in_options(m, options);
    np_pages_init(&m->pages, device);
    np_host_init(&m->host, device);
    np_small_init(&m->small, &m->pages);
    np_recorder_init(&m->recorder, memory);
    m->limit_pages = m->options.mode == NEAP_MODE_PLAIN ? UINT32_MAX : pages_within(m, m->options.limit);
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

void np_pattern_drop(neap_device *m, np_pattern *pattern)
{
    for (uint32_t i = 0; i < pattern->n_blocks; i++) {
        np_view_free(&m->pages, &pattern->blocks[i].view, NP_UNCOUNTED);
        np_host_give(&m->host, &pattern->blocks[i].slot);
    }
    np_pattern_free(pattern);
}

static void free_off_plan(neap_device *m, neap_block *block)
{
    if (block->kind == NP_BLOCK_PLAIN) {
        np_plain_free(m, block);
    } else {
        np_loose_free(m, block);
    }
}

void neap_close(neap_device *m)
{
    if (!m) {
        return;
    }
    np_learner_free(&m->learner);
    (void)np_drain(m);
    if (m->state == NEAP_STATE_RUN) {
        np_settle(m);
    }
    while (m->live) {
        free_off_plan(m, m->live);
    }

    np_plans_save(m);
    np_refine_free(m);
    for (size_t i = 0; i < m->patterns.n; i++) {
        np_pattern_drop(m, m->patterns.items[i]);
    }
    np_array_free(m->memory, &m->patterns);
    np_array_free(m->memory, &m->unknown);
    np_array_free(m->memory, &m->touches);
    np_array_free(m->memory, &m->uses);
    np_spares_dissolve(m);
    np_array_free(m->memory, &m->spares);
    np_view_free(&m->pages, &m->arena, NP_UNCOUNTED);
    np_small_free(&m->small);
    np_host_free(&m->host);
    np_recorder_free(&m->recorder);
    np_pages_free(&m->pages);
    m->device->api->free(m->device);
    (void)pthread_mutex_destroy(&m->lock);
    np_memory_free(m->memory, m, 1, sizeof *m);
}

/* ---- learning ---- */

/* Blocks of which several have a home in the same page, at different times, get new ones with every plan. */
static void count_homes(const neap_device *m, uint8_t *n_homes)
{
    for (const neap_block *block = m->live; block; block = block->next) {
        for (uint32_t i = 0; block->home && i < block->n_home; i++) {
            if (block->home[i] != NP_NO_PAGE && n_homes[block->home[i]] < 2) {
                n_homes[block->home[i]]++;
            }
        }
    }
}

static bool owns_home(const neap_block *block, const uint8_t *n_homes)
{
    for (uint32_t i = 0; block->home && i < block->n_home; i++) {
        if (block->home[i] == NP_NO_PAGE || n_homes[block->home[i]] > 1) {
            return false;
        }
    }
    return block->home != NULL;
}

static neap_status add_resident(neap_device *m, np_lesson *lesson, const neap_block *block, const uint8_t *n_homes)
{
    np_resident resident = {.id = block->id,
                            .first_page = UINT32_MAX,
                            .is_outside = block->kind != NP_BLOCK_LOOSE || block->is_extra};
    neap_status status = NEAP_OK;
    if (owns_home(block, n_homes)) {
        resident.first_page = (uint32_t)lesson->home_pages.n;
        for (uint32_t i = 0; i < block->n_home && status == NEAP_OK; i++) {
            status = np_array_push(m->memory, &lesson->home_pages, block->home[i]);
        }
    }
    if (block->kind == NP_BLOCK_LOOSE && resident.is_outside) {
        lesson->beside_bytes += (uint64_t)block->view.n_pages * m->device->page_bytes;
    }
    if (status == NEAP_OK) {
        status = np_array_push(m->memory, &lesson->residents, resident);
    }
    return status;
}

static neap_status list_residents(neap_device *m, np_lesson *lesson)
{
    uint8_t *n_homes = np_memory_alloc_zero(m->memory, m->n_arena, sizeof *n_homes);
    neap_status status = n_homes ? NEAP_OK : NEAP_NO_MEMORY;
    if (n_homes) {
        count_homes(m, n_homes);
    }
    for (neap_block *block = m->live; block && status == NEAP_OK; block = block->next) {
        status = add_resident(m, lesson, block, n_homes);
    }
    np_memory_free(m->memory, n_homes, m->n_arena, sizeof *n_homes);
    lesson->beside_bytes += (uint64_t)m->small.slabs.n * m->small.slab_pages * m->device->page_bytes;
    return status;
}

bool np_ask_for_plan(neap_device *m, const np_plan_wish *wish)
{
    np_lesson *lesson = np_memory_alloc_zero(m->memory, 1, sizeof *lesson);
    neap_status status;
    if (!lesson) {
        neap_trace_free(wish->trace);
        return false;
    }
    lesson->memory = m->memory;
    lesson->trace = wish->trace;
    lesson->is_disturbed = wish->is_disturbed;
    lesson->is_refinement = wish->is_refinement;
    lesson->has_weights = wish->weights != NULL;
    for (int i = 0; i < 4 && wish->weights; i++) {
        lesson->weights[i] = wish->weights[i];
    }
    lesson->page_bytes = m->device->page_bytes;
    lesson->limit = m->limit_pages == UINT32_MAX ? 0 : m->limit_pages * m->device->page_bytes;
    lesson->limit_share = m->options.limit_share;
    lesson->min_block = m->options.min_block;
    lesson->seconds = m->options.plan_seconds;
    lesson->n_threads = m->options.plan_threads;
    lesson->seed = wish->seed;
    status = m->device->api->link(m->device, &lesson->link);
    if (status == NEAP_OK) {
        status = list_residents(m, lesson);
    }
    if (status == NEAP_OK) {
        status = np_learner_give(&m->learner, lesson);
    }
    if (status != NEAP_OK) {
        np_lesson_free(lesson);
    }
    return status == NEAP_OK;
}

/* Hands what was recorded to the planner. All work is waited for, so that its times are known. */
static void plan_recorded(neap_device *m)
{
    if (np_drain(m) == NEAP_OK) {
        np_plan_wish wish = {.is_disturbed = m->recorder.is_disturbed, .seed = m->options.seed};
        wish.trace = np_recorder_take(&m->recorder);
        if (wish.trace) {
            (void)np_ask_for_plan(m, &wish);
        }
        np_recorder_begin(&m->recorder, m->live);
    }
}

/* One for the same events takes the place of an older one that nothing needs any more. */
static void add_pattern(neap_device *m, np_pattern *pattern)
{
    for (size_t i = 0; i < m->patterns.n; i++) {
        np_pattern *old = m->patterns.items[i];
        if (old->hash == pattern->hash && old->n_live == 0 && old != m->pattern) {
            np_pattern_drop(m, old);
            m->patterns.items[i] = pattern;
            return;
        }
    }
    m->patterns.items[m->patterns.n++] = pattern;
}

static neap_status make_pattern(neap_device *m, np_lesson *lesson, np_pattern **pattern)
{
    np_pattern_facts facts = {.exec_ns = lesson->exec_ns.items,
                              .name_at = lesson->name_at.items,
                              .names = lesson->names.items,
                              .names_bytes = lesson->names.n};
    neap_status status = lesson->status;
    if (status == NEAP_OK) {
        status = np_array_reserve(m->memory, &m->patterns, m->patterns.n + 1);
    }
    return status == NEAP_OK ? np_pattern_create(&lesson->program, &facts, m->memory, pattern) : status;
}

static void set_limit(neap_device *m, const np_lesson *lesson)
{
    if (lesson->limit_was_raised) {
        np_log(m, NEAP_LOG_WARN, "the limit is raised to %llu bytes, the lowest that swapping reaches (load_min)",
               (unsigned long long)lesson->limit_used);
    }
    if (lesson->limit_used && (m->limit_pages == UINT32_MAX || lesson->limit_was_raised)) {
        m->limit_pages = pages_within(m, lesson->limit_used);
    }
}

static void take_lesson(neap_device *m, np_lesson *lesson)
{
    np_pattern *pattern = NULL;
    neap_status status = make_pattern(m, lesson, &pattern);
    if (lesson->is_refinement) {
        np_refine_take(m, lesson->trace, pattern);
        lesson->trace = NULL;
    } else if (status != NEAP_OK) {
        m->n_failed_plans++;
        m->plan_not_before_ns = np_clock_ns() + (FIRST_PAUSE_NS << (m->n_failed_plans < 7 ? m->n_failed_plans : 7));
        np_log(m, NEAP_LOG_WARN, "no plan: %s", lesson->error.text[0] ? lesson->error.text : neap_status_message(status));
    } else {
        set_limit(m, lesson);
        pattern->trace = lesson->trace;
        pattern->is_disturbed = lesson->is_disturbed;
        lesson->trace = NULL;
        m->is_saved = false;
        m->n_failed_plans = 0;
        add_pattern(m, pattern);
        np_log(m, NEAP_LOG_INFO, "a plan for %zu events: %llu bytes for a load of %llu, %zu swaps, %.2f %% overhead",
               pattern->program.events.n, (unsigned long long)pattern->program.footprint,
               (unsigned long long)pattern->program.peak_load, pattern->program.swaps.n,
               100 * pattern->program.overhead);
    }
    np_lesson_free(lesson);
}

void np_take_lesson(neap_device *m)
{
    np_lesson *lesson = np_learner_take(&m->learner);
    if (lesson) {
        take_lesson(m, lesson);
    }
}

/* A plan that was not entered yet, and is not refused again and again. */
static bool has_fresh_plan(const neap_device *m)
{
    const np_pattern *last = m->patterns.n > 0 ? m->patterns.items[m->patterns.n - 1] : NULL;
    return last && !last->was_entered && last->n_refused < 2 && m->recorder.n_events < 4 * last->program.events.n;
}

/* Off the plan, after an event: does the program repeat itself? */
static void look_for_pattern(neap_device *m)
{
    bool seen;
    bool is_busy = atomic_load(&m->learner.is_busy);
    if (m->options.mode == NEAP_MODE_PLAIN || m->state == NEAP_STATE_RUN) {
        return;
    }
    if (!m->recorder.trace) {
        if (m->n_unrecorded++ % 1024 == 0 && np_drain(m) == NEAP_OK) {
            np_recorder_begin(&m->recorder, m->live);
        }
        return;
    }
    if (m->recorder.n_events % CHECK_EVERY != 0) {
        return;
    }
    if (np_recorder_is_ready(&m->recorder, &seen) && !is_busy && !has_fresh_plan(m) &&
        np_clock_ns() >= m->plan_not_before_ns) {
        plan_recorded(m);
        is_busy = true;
    }
    if (m->state != NEAP_STATE_LEAVE) {
        bool is_choosing = is_busy && atomic_load(&m->learner.phase) == NP_PHASE_SWAPS;
        m->state = is_choosing                    ? NEAP_STATE_PLAN_SWAPS
                   : is_busy || m->patterns.n > 0 ? NEAP_STATE_PLAN_POOL
                   : seen                         ? NEAP_STATE_DETECT
                                                  : NEAP_STATE_OBSERVE;
    }
}

/* Off the plan, before an event. */
static void look_for_start(neap_device *m, neap_event_kind kind, uint64_t key)
{
    np_take_lesson(m);
    if (m->options.mode == NEAP_MODE_PLAN) {
        np_enter_if_start(m, kind, key);
    }
}

/* ---- malloc, free, exec ---- */

static void note_live(neap_device *m, uint64_t bytes)
{
    m->stats.live += bytes;
    m->stats.peak_live = m->stats.live > m->stats.peak_live ? m->stats.live : m->stats.peak_live;
    m->stats.n_events++;
}

/* Is device memory what the host's allocator gives? */
static bool is_plain(const neap_device *m)
{
    return m->options.mode == NEAP_MODE_PLAIN && strcmp(m->device->kind, "cpu") == 0;
}

static neap_status malloc_locked(neap_device *m, uint64_t bytes, neap_block **block)
{
    bool served = false;
    neap_status status = NEAP_OK;
    if (m->state != NEAP_STATE_RUN) {
        look_for_start(m, NEAP_EVENT_MALLOC, bytes);
    }
    if (m->state == NEAP_STATE_RUN) {
        status = np_follow_malloc(m, bytes, &served, block);
    }
    if (!served && status == NEAP_OK) {
        status = is_plain(m) ? np_plain_malloc(m, bytes, block) : np_loose_malloc(m, bytes, block);
        if (status == NEAP_OK) {
            np_recorder_malloc(&m->recorder, *block);
            look_for_pattern(m);
        }
    }
    if (status == NEAP_OK) {
        note_live(m, bytes);
    }
    return status;
}

neap_status neap_malloc(neap_device *m, uint64_t bytes, neap_block **block)
{
    neap_status status;
    np_device_fail_clear();
    if (bytes == 0) {
        return np_device_fail(NEAP_BAD_ARGUMENT, "a block has one byte at the least");
    }
    (void)pthread_mutex_lock(&m->lock);
    status = malloc_locked(m, bytes, block);
    (void)pthread_mutex_unlock(&m->lock);
    return status;
}

static neap_status free_locked(neap_device *m, neap_block *block)
{
    uint64_t bytes = block->bytes;
    bool served = false;
    neap_status status = NEAP_OK;
    if (m->state != NEAP_STATE_RUN) {
        look_for_start(m, NEAP_EVENT_FREE, bytes);
    }
    if (m->state == NEAP_STATE_RUN) {
        status = np_follow_free(m, block, &served);
    }
    if (!served && status == NEAP_OK) {
        np_recorder_free_block(&m->recorder, block);
        free_off_plan(m, block);
        look_for_pattern(m);
    }
    m->stats.live -= bytes;
    m->stats.n_events++;
    return status;
}

neap_status neap_free(neap_device *m, neap_block *block)
{
    neap_status status;
    np_device_fail_clear();
    if (!block) {
        return NEAP_OK;
    }
    (void)pthread_mutex_lock(&m->lock);
    status = free_locked(m, block);
    (void)pthread_mutex_unlock(&m->lock);
    return status;
}

static neap_status exec_locked(neap_device *m, const neap_work *work, const neap_use *uses, size_t n_uses)
{
    bool served = false;
    neap_status status = NEAP_OK;
    if (m->state != NEAP_STATE_RUN) {
        look_for_start(m, NEAP_EVENT_EXEC, np_program_name_key(work->name, strlen(work->name)));
    }
    if (m->state == NEAP_STATE_RUN) {
        status = np_follow_exec(m, work, uses, n_uses, &served);
    }
    if (!served && status == NEAP_OK) {
        uint64_t copied = m->stats.bytes_in + m->stats.bytes_out;
        np_times *times = np_recorder_times(&m->recorder);
        status = np_loose_exec(m, work, uses, n_uses, times);
        m->recorder.is_disturbed |= copied != m->stats.bytes_in + m->stats.bytes_out;
        if (status == NEAP_OK) {
            np_recorder_exec(&m->recorder, work, uses, n_uses);
            look_for_pattern(m);
        }
    }
    m->stats.n_events += status == NEAP_OK;
    return status;
}

/* Is a block named twice? */
static bool has_twins(const neap_use *uses, size_t n_uses)
{
    for (size_t i = 1; i < n_uses; i++) {
        for (size_t k = 0; k < i; k++) {
            if (uses[k].block == uses[i].block) {
                return true;
            }
        }
    }
    return false;
}

/* The uses with every block named once, in m->uses; one that is read here and written there is both. */
static neap_status merge_twins(neap_device *m, const neap_use *uses, size_t n_uses)
{
    neap_status status = np_array_reserve(m->memory, &m->uses, n_uses);
    m->uses.n = 0;
    for (size_t i = 0; i < n_uses && status == NEAP_OK; i++) {
        size_t k = 0;
        while (k < m->uses.n && m->uses.items[k].block != uses[i].block) {
            k++;
        }
        if (k == m->uses.n) {
            m->uses.items[m->uses.n++] = uses[i];
        } else if (m->uses.items[k].kind != uses[i].kind) {
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

neap_status neap_exec(neap_device *m, const neap_work *work, const neap_use *uses, size_t n_uses)
{
    neap_status status;
    np_device_fail_clear();
    if (!is_one_word(work->name) || work->stream >= m->device->n_streams || work->arg_bytes > NEAP_ARG_MAX ||
        n_uses > UINT16_MAX) {
        return np_device_fail(NEAP_BAD_ARGUMENT,
                              "work has a name of one word, one of %u streams, %d bytes of arguments and %d uses at most",
                              m->device->n_streams, NEAP_ARG_MAX, UINT16_MAX);
    }
    (void)pthread_mutex_lock(&m->lock);
    status = NEAP_OK;
    if (has_twins(uses, n_uses)) {
        status = merge_twins(m, uses, n_uses);
        uses = m->uses.items;
        n_uses = m->uses.n;
    }
    status = status == NEAP_OK ? exec_locked(m, work, uses, n_uses)
                               : np_device_fail(status, "%s", neap_status_message(status));
    (void)pthread_mutex_unlock(&m->lock);
    return status;
}

/* ---- the rest ---- */

void *neap_data(const neap_block *block)
{
    return block->address;
}

uint64_t neap_block_bytes(const neap_block *block)
{
    return block->bytes;
}

neap_status neap_stream_wait(neap_device *m, unsigned stream, unsigned other)
{
    neap_status status;
    np_device_fail_clear();
    if (stream >= m->device->n_streams || other >= m->device->n_streams) {
        return np_device_fail(NEAP_BAD_ARGUMENT, "the device has %u streams", m->device->n_streams);
    }
    (void)pthread_mutex_lock(&m->lock);
    status = stream == other ? NEAP_OK
                             : m->device->api->wait(m->device, stream, other, m->device->api->mark(m->device, other));
    (void)pthread_mutex_unlock(&m->lock);
    return status == NEAP_OK ? NEAP_OK : np_device_fail(status, "%s", neap_status_message(status));
}

neap_status neap_sync(neap_device *m)
{
    neap_status status;
    np_device_fail_clear();
    (void)pthread_mutex_lock(&m->lock);
    status = np_drain(m);
    (void)pthread_mutex_unlock(&m->lock);
    return status == NEAP_OK ? NEAP_OK : np_device_fail(status, "%s", neap_status_message(status));
}

typedef struct host_copy {
    void *to;
    const void *from;
    uint64_t bytes;
} host_copy;

static void run_host_copy(void *arg)
{
    const host_copy *copy = arg;
    memcpy(copy->to, copy->from, copy->bytes);
}

static neap_status copy_host(neap_device *m, const char *name, const neap_block *block, neap_access_kind kind,
                             const host_copy *copy, uint64_t offset)
{
    neap_block *used = (neap_block *)(uintptr_t)block; /* its contents are read only, its bookkeeping is not */
    neap_work work = {.name = name, .run = run_host_copy, .arg = copy, .arg_bytes = sizeof *copy};
    neap_use use = {.block = used, .kind = kind};
    neap_status status;
    if (offset > block->bytes || copy->bytes > block->bytes - offset) {
        return np_device_fail(NEAP_BAD_ARGUMENT, "bytes %llu to %llu of a block of %llu", (unsigned long long)offset,
                              (unsigned long long)(offset + copy->bytes), (unsigned long long)block->bytes);
    }
    status = neap_exec(m, &work, &use, 1);
    if (status == NEAP_OK) { /* of stream 0 alone: others may be waiting for it */
        (void)pthread_mutex_lock(&m->lock);
        status = m->device->api->sync(m->device, 0, m->device->api->mark(m->device, 0));
        (void)pthread_mutex_unlock(&m->lock);
    }
    return status;
}

neap_status neap_write(neap_device *m, neap_block *block, uint64_t offset, const void *from, uint64_t bytes)
{
    host_copy copy = {.to = block->address + offset, .from = from, .bytes = bytes};
    bool is_whole = offset == 0 && bytes == block->bytes;
    return copy_host(m, "neap.write", block, is_whole ? NEAP_ACCESS_WRITE : NEAP_ACCESS_UNKNOWN, &copy, offset);
}

neap_status neap_read(neap_device *m, const neap_block *block, uint64_t offset, void *to, uint64_t bytes)
{
    host_copy copy = {.to = to, .from = block->address + offset, .bytes = bytes};
    return copy_host(m, "neap.read", block, NEAP_ACCESS_READ, &copy, offset);
}

void neap_get_stats(neap_device *m, neap_stats *stats)
{
    uint64_t page = m->device->page_bytes;
    double lap;
    (void)pthread_mutex_lock(&m->lock);
    *stats = m->stats;
    stats->state = m->state;
    stats->limit = m->limit_pages == UINT32_MAX ? 0 : m->limit_pages * page;
    stats->held = m->pages.n_held * page;
    stats->peak_held = m->pages.peak_held * page;
    stats->footprint = m->pattern ? (m->footprint_pages > m->pages.n_held ? m->footprint_pages : m->pages.n_held) * page : 0;
    if (is_plain(m)) {
        stats->held = m->plain_bytes;
        stats->peak_held = m->peak_plain_bytes;
    }
    stats->host_bytes = m->host.held_bytes;
    stats->n_patterns = m->patterns.n;
    stats->overhead = NAN;
    if (m->pattern) {
        np_follow_note_laps(m);
        stats->peak_load = m->pattern->program.peak_load;
        stats->planned_footprint = m->pattern->program.footprint;
        stats->plan_overhead = m->pattern->program.overhead;
        stats->iteration_ns = m->pattern->program.period_ns;
        stats->metadata_bytes = np_pattern_metadata_bytes(m->pattern) / m->pattern->program.events.n;
        lap = np_pattern_lap_ns(m->pattern);
        stats->overhead = lap / m->pattern->program.period_ns - 1;
    }
    (void)pthread_mutex_unlock(&m->lock);
}

/* What is recorded now, or else what the plan at hand was made from. */
static const neap_trace *trace_at_hand(const neap_device *m)
{
    const np_pattern *pattern = m->pattern ? m->pattern : m->patterns.n > 0 ? m->patterns.items[0] : NULL;
    if (m->state == NEAP_STATE_RUN || (m->recorder.trace && m->recorder.n_events == 0)) {
        return pattern && pattern->trace ? pattern->trace : m->refine.trace;
    }
    return m->recorder.trace;
}

neap_status neap_device_trace(neap_device *m, const neap_memory *memory, neap_error *error, neap_trace **trace)
{
    const neap_trace *from;
    neap_status status;
    (void)pthread_mutex_lock(&m->lock);
    status = np_drain(m);
    if (status == NEAP_OK) {
        np_recorder_fill_times(&m->recorder);
        from = trace_at_hand(m);
        status = from ? np_trace_copy(from, np_memory_or_default(memory), trace)
                      : np_fail(error, NEAP_NO_PERIOD, "nothing is recorded at present");
    }
    (void)pthread_mutex_unlock(&m->lock);
    return status;
}
