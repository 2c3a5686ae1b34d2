/* enter.c: a start of a known pattern: blocks take their places, and from here on the plan is followed.
 *
 * All work is waited for first. Persistent blocks have their home in the arena: when the arena is made, around the pages
 * they already have, so that nothing is copied; later they go home if they are elsewhere. Then the views of swapped blocks
 * are mapped, slots on the host are taken, and what the plan says is absent at its start leaves. Until the very end every
 * step leaves the device in a state that the way off the plan can go on from. */
#include "run/manager.h"

enum { ARENA_SPARE = 4 }; /* without a limit, addresses are reserved for so many times the first plan's arena */

/* ---- is this a start? ---- */

static bool begins_with(const np_pattern *pattern, neap_event_kind kind, uint64_t key)
{
    return pattern->program.events.items[0].kind == kind && np_pattern_key(pattern, 0) == key;
}

/* Were the last recorded events the last of the pattern? */
static bool ends_with(const neap_device *m, const np_pattern *pattern)
{
    uint32_t length = (uint32_t)pattern->program.events.n;
    if (!m->recorder.trace || pattern->n_tail == 0 || pattern->n_tail > length ||
        m->recorder.n_events < pattern->n_tail) {
        return false;
    }
    for (uint32_t i = 1; i <= pattern->n_tail; i++) {
        neap_event_kind kind = (neap_event_kind)pattern->program.events.items[length - i].kind;
        if (m->recorder.recent[(m->recorder.n_events - i) % NP_RECENT_KEYS] !=
            np_pattern_hash(0, kind, np_pattern_key(pattern, length - i))) {
            return false;
        }
    }
    return true;
}

static bool is_crossing(const np_pattern *pattern, const np_program_life *life)
{
    return !life->persistent && life->end > pattern->program.events.n;
}

/* Blocks that are no part of what lives at the start, and were not there at an earlier one. After cast. */
static bool has_strangers(const neap_device *m)
{
    for (const neap_block *block = m->live; block; block = block->next) {
        if (!block->is_standing && !block->is_extra && block->kind != NP_BLOCK_SMALL) {
            return true;
        }
    }
    return false;
}

/* ---- who stands for whom ---- */

/* The live block that is the j-th last of a life that crosses the period's end. */
static neap_block *find_crossing(const neap_device *m, const np_pattern *pattern, uint32_t index, uint32_t laps_ago)
{
    const np_program_life *life = &pattern->program.lives.items[index];
    uint64_t ago = (uint64_t)laps_ago * pattern->program.events.n - life->begin;
    for (neap_block *block = m->live; block; block = block->next) {
        bool is_planned = block->pattern == pattern && block->life == index && laps_ago == 1;
        bool is_recorded = !block->pattern && m->recorder.n_events >= ago &&
                           block->malloc_event == m->recorder.n_events - ago && block->bytes == life->bytes;
        if (is_planned || is_recorded) {
            return block;
        }
    }
    return NULL;
}

static bool cast_crossing(neap_device *m, np_pattern *pattern, uint32_t index)
{
    const np_program_life *life = &pattern->program.lives.items[index];
    uint32_t n = (life->end - 1) / (uint32_t)pattern->program.events.n; /* alive at the start */
    np_actor *actor = &pattern->actors[index];
    for (uint32_t j = 0; j < life->n_places; j++) {
        actor->now[j] = NULL;
    }
    if (n > life->n_places) {
        return false;
    }
    for (uint32_t j = 0; j < n; j++) {
        neap_block *block = find_crossing(m, pattern, index, n - j);
        uint32_t turn = block && block->pattern ? block->turn : j;
        if (!block || (block->pattern && n > 1)) {
            return false;
        }
        actor->now[turn] = block;
        actor->next_free = turn;
        actor->next_malloc = (turn + 1) % life->n_places;
    }
    if (n > 1) {
        actor->next_free = 0;
        actor->next_malloc = n % life->n_places;
    }
    return true;
}

static neap_block *find_standing(const neap_device *m, const np_program_life *life)
{
    for (neap_block *block = m->live; block; block = block->next) {
        if (block->id == life->id && block->bytes == life->bytes && !block->pattern) {
            return block;
        }
    }
    return NULL;
}

/* Finds a block for every life that is alive at the start; false: one is missing, or one is in the way. */
static bool cast(neap_device *m, np_pattern *pattern)
{
    for (neap_block *block = m->live; block; block = block->next) {
        block->is_standing = false;
        if (block->pattern && (block->pattern != pattern ||
                               !is_crossing(pattern, &pattern->program.lives.items[block->life]))) {
            return false; /* a planned block of an iteration that did not end as planned */
        }
    }
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        const np_program_life *life = &pattern->program.lives.items[i];
        np_actor *actor = &pattern->actors[i];
        if (life->persistent) {
            neap_block *block = find_standing(m, life);
            if (!block || (block->home != NP_NO_HOME && block->home != pattern->homes[i])) {
                return false;
            }
            actor->now[0] = block;
            block->is_standing = true;
        } else if (is_crossing(pattern, life)) {
            if (!cast_crossing(m, pattern, i)) {
                return false;
            }
            for (uint32_t j = 0; j < life->n_places; j++) {
                if (actor->now[j]) {
                    actor->now[j]->is_standing = true;
                }
            }
        } else {
            actor->now[0] = NULL;
            actor->next_malloc = actor->next_free = 0;
        }
    }
    return true;
}

/* ---- the arena ---- */

static uint32_t arena_pages_of(const neap_device *m, const np_pattern *pattern)
{
    return (uint32_t)((pattern->program.footprint + m->device->page_bytes - 1) / m->device->page_bytes);
}

/* Blocks that borrowed pages of the arena leave. */
static neap_status return_borrowed(neap_device *m)
{
    neap_status status = NEAP_OK;
    for (neap_block *block = m->live; block && status == NEAP_OK; block = block->next) {
        bool borrows = false;
        for (uint32_t i = 0; i < block->view.n_pages && !borrows; i++) {
            uint32_t number = block->view.numbers[i];
            borrows = number != NP_NO_PAGE && np_pages_is_arena(&m->pages, number) &&
                      number != np_block_home_page(m, block, i);
        }
        if (borrows) {
            status = np_block_depart(m, block);
        }
    }
    return status;
}

/* The pages that persistent blocks already have, for the arena's pages from `first` on. */
static void find_own_pages(const np_pattern *pattern, uint32_t first, uint32_t n, uint32_t *numbers)
{
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        const neap_block *block = pattern->actors[i].now ? pattern->actors[i].now[0] : NULL;
        uint32_t home = pattern->homes[i];
        if (!pattern->program.lives.items[i].persistent || home == NP_NO_HOME || block->home != NP_NO_HOME) {
            continue;
        }
        for (uint32_t k = 0; k < block->view.n_pages; k++) {
            if (home + k >= first && home + k < first + n) {
                numbers[home + k - first] = block->view.numbers[k];
            }
        }
    }
}

/* New pages for those that have none; *taken lists them. */
static neap_status take_missing(neap_device *m, uint32_t n, uint32_t *numbers, uint32_t *taken, uint32_t *n_taken)
{
    neap_status status;
    *n_taken = 0;
    for (uint32_t i = 0; i < n; i++) {
        *n_taken += numbers[i] == NP_NO_PAGE;
    }
    status = *n_taken > 0 ? np_room_take(m, *n_taken, taken) : NEAP_OK;
    for (uint32_t i = 0, k = 0; i < n && status == NEAP_OK; i++) {
        if (numbers[i] == NP_NO_PAGE) {
            numbers[i] = taken[k++];
        }
    }
    *n_taken = status == NEAP_OK ? *n_taken : 0;
    return status;
}

static neap_status grow_arena(neap_device *m, const np_pattern *pattern, uint32_t n_pages)
{
    uint32_t first = m->n_arena;
    uint32_t n = n_pages - first;
    uint32_t *numbers = np_memory_alloc(m->memory, n, sizeof *numbers);
    uint32_t *taken = np_memory_alloc(m->memory, n, sizeof *taken);
    uint32_t n_taken = 0;
    neap_status status = numbers && taken ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        for (uint32_t i = 0; i < n; i++) {
            numbers[i] = NP_NO_PAGE;
        }
        find_own_pages(pattern, first, n, numbers);
        status = take_missing(m, n, numbers, taken, &n_taken);
    }
    if (status == NEAP_OK) {
        status = np_view_map(&m->pages, &m->arena, first, n, numbers);
        if (status != NEAP_OK) {
            np_pages_unuse(&m->pages, taken, n_taken);
        }
    }
    if (status == NEAP_OK) {
        for (uint32_t i = 0; i < n; i++) {
            np_pages_join_arena(&m->pages, numbers[i]);
        }
        np_pages_unuse(&m->pages, taken, n_taken);
        m->n_arena = n_pages;
    }
    np_memory_free(m->memory, numbers, n, sizeof *numbers);
    np_memory_free(m->memory, taken, n, sizeof *taken);
    return status;
}

static neap_status make_arena(neap_device *m, const np_pattern *pattern)
{
    uint32_t n = arena_pages_of(m, pattern);
    neap_status status = NEAP_OK;
    if (!m->arena.numbers) {
        uint64_t n_reserved = (uint64_t)n * ARENA_SPARE + 64;
        n_reserved = n_reserved < m->device->n_pages ? n_reserved : m->device->n_pages;
        status = n <= n_reserved ? np_view_make(&m->pages, (uint32_t)n_reserved, &m->arena) : NEAP_NO_PLAN;
    }
    if (status == NEAP_OK && n > m->arena.n_pages) {
        return NEAP_NO_PLAN;
    }
    if (status == NEAP_OK && n > m->n_arena) {
        status = grow_arena(m, pattern, n);
    }
    return status;
}

/* ---- blocks to their places ---- */

static bool is_home(const neap_device *m, const neap_block *block)
{
    for (uint32_t i = 0; i < block->view.n_pages; i++) {
        if (block->view.numbers[i] != np_block_home_page(m, block, i)) {
            return false;
        }
    }
    return true;
}

static bool has_home(const neap_block *block)
{
    return block->kind == NP_BLOCK_SWAPPED || (block->kind == NP_BLOCK_LOOSE && block->home != NP_NO_HOME);
}

/* Those with a home that are elsewhere leave, so that nobody is in another's way. */
static neap_status leave_foreign_places(neap_device *m)
{
    neap_status status = NEAP_OK;
    for (neap_block *block = m->live; block && status == NEAP_OK; block = block->next) {
        if (has_home(block) && !is_home(m, block)) {
            status = np_block_depart(m, block);
        }
    }
    return status;
}

static neap_status bring_all(neap_device *m, np_pattern *pattern)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < pattern->n_now && status == NEAP_OK; i++) {
        neap_block *block = pattern->now[i];
        if (block && block->is_live) {
            status = np_block_return(m, block);
            if (status == NEAP_OK && has_home(block) && !is_home(m, block)) {
                status = NEAP_NO_PLAN;
            }
        }
    }
    return status;
}

/* ---- what following needs ---- */

static void set_flat_addresses(neap_device *m, np_pattern *pattern)
{
    for (uint32_t i = 0; i < pattern->n_blocks; i++) {
        neap_block *block = &pattern->blocks[i];
        const np_program_life *life = &pattern->program.lives.items[block->life];
        if (block->kind == NP_BLOCK_FLAT) {
            const np_placed *placed = &pattern->program.placed.items[life->first_placed + block->turn * life->n_placed];
            block->address = m->arena.address + placed->offset;
        }
    }
}

static neap_status map_view(neap_device *m, neap_block *block)
{
    uint32_t n = (uint32_t)((block->bytes + m->device->page_bytes - 1) / m->device->page_bytes);
    uint32_t *numbers;
    neap_status status = NEAP_OK;
    if (!block->view.numbers) {
        status = np_view_make(&m->pages, n, &block->view);
        block->address = status == NEAP_OK ? block->view.address : NULL;
    }
    if (status != NEAP_OK || block->is_live || block->view.n_missing == 0) {
        return status;
    }
    numbers = np_memory_alloc(m->memory, n, sizeof *numbers);
    status = numbers ? NEAP_OK : NEAP_NO_MEMORY;
    for (uint32_t i = 0; i < n && numbers; i++) {
        numbers[i] = np_block_home_page(m, block, i);
    }
    if (status == NEAP_OK) {
        status = np_view_map(&m->pages, &block->view, 0, n, numbers);
    }
    np_memory_free(m->memory, numbers, n, sizeof *numbers);
    return status;
}

static neap_status map_views(neap_device *m, np_pattern *pattern)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < pattern->n_blocks && status == NEAP_OK; i++) {
        if (pattern->blocks[i].kind == NP_BLOCK_SWAPPED) {
            status = map_view(m, &pattern->blocks[i]);
        }
    }
    return status;
}

/* The block that a life's swaps copy: the persistent one, or the planned. */
static neap_block *swapped_block(const np_pattern *pattern, uint32_t life)
{
    return pattern->actors[life].planned ? pattern->actors[life].planned : pattern->actors[life].now[0];
}

static neap_status take_slots(neap_device *m, np_pattern *pattern)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < pattern->program.swaps.n && status == NEAP_OK; i++) {
        neap_block *block = swapped_block(pattern, pattern->program.swaps.items[i].life);
        if (!block->slot.host) {
            status = np_host_take(&m->host, (uint64_t)block->view.n_pages * m->device->page_bytes, &block->slot);
        }
    }
    return status;
}

/* What is absent at the plan's start leaves now. */
static neap_status send_absent(neap_device *m, np_pattern *pattern)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < pattern->program.swaps.n && status == NEAP_OK; i++) {
        const np_program_swap *swap = &pattern->program.swaps.items[i];
        neap_block *block = pattern->actors[swap->life].now[0];
        uint64_t mark;
        pattern->is_out[i] = false;
        if (!swap->starts_absent || !block || !has_home(block)) {
            continue;
        }
        status = m->device->api->copy(m->device, NP_STREAM_OUT, block->slot.host + swap->begin,
                                      block->address + swap->begin, swap->end - swap->begin, &mark);
        if (status == NEAP_OK) {
            m->stats.bytes_out += swap->end - swap->begin;
            np_clean_note(&block->clean, swap->begin, swap->end);
            pattern->is_out[i] = true;
        }
    }
    return status == NEAP_OK ? np_drain(m) : status;
}

void np_recount_arena(neap_device *m)
{
    np_pages_clear_arena(&m->pages);
    for (neap_block *block = m->live; block; block = block->next) {
        if (block->kind == NP_BLOCK_FLAT && !block->is_absent) {
            uint32_t first;
            uint32_t end;
            np_block_arena_pages(m, block, &first, &end);
            for (uint32_t k = first; k < end; k++) {
                np_pages_use(&m->pages, m->arena.numbers[k]);
            }
        }
        for (uint32_t i = 0; i < block->view.n_pages; i++) {
            if (block->view.numbers[i] != NP_NO_PAGE && np_pages_is_arena(&m->pages, block->view.numbers[i])) {
                np_pages_use(&m->pages, block->view.numbers[i]);
            }
        }
    }
}

static neap_status prepare(neap_device *m, np_pattern *pattern)
{
    neap_status status = np_drain(m);
    if (status == NEAP_OK) {
        np_spares_dissolve(m);
        m->pin++;
        for (uint32_t i = 0; i < pattern->n_now; i++) {
            if (pattern->now[i]) {
                pattern->now[i]->pinned_by = m->pin;
            }
        }
        status = return_borrowed(m);
    }
    if (status == NEAP_OK) {
        status = make_arena(m, pattern);
    }
    if (status != NEAP_OK) {
        return status;
    }
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        if (pattern->program.lives.items[i].persistent && pattern->homes[i] != NP_NO_HOME) {
            pattern->actors[i].now[0]->home = pattern->homes[i];
        }
    }
    status = leave_foreign_places(m);
    if (status == NEAP_OK) {
        status = bring_all(m, pattern);
    }
    if (status == NEAP_OK) {
        set_flat_addresses(m, pattern);
        status = map_views(m, pattern);
    }
    if (status == NEAP_OK) {
        status = take_slots(m, pattern);
    }
    return status == NEAP_OK ? send_absent(m, pattern) : status;
}

/* From here on nothing can fail. */
static void take_over(neap_device *m, np_pattern *pattern)
{
    neap_block *next;
    for (neap_block *block = m->live; block; block = next) {
        next = block->next;
        block->life = block->pattern ? block->life : NP_NO_LIFE;
        block->is_extra = !block->is_standing;
        if (block->pattern) { /* the pattern knows its own */
            np_recent_remove(m, block);
            np_live_remove(m, block);
            block->is_live = true;
        }
    }
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        for (uint32_t j = 0; j < pattern->program.lives.items[i].n_places; j++) {
            if (pattern->actors[i].now[j]) {
                pattern->actors[i].now[j]->life = i;
            }
        }
    }
    for (uint32_t i = 0; i < pattern->program.n_execs; i++) {
        pattern->exec_marks[i] = 0;
    }
    for (uint32_t i = 0; i < pattern->program.swaps.n; i++) {
        pattern->out_marks[i] = pattern->in_marks[i] = 0;
    }
    np_pages_clear_arena(&m->pages);
    pattern->was_entered = true;
    pattern->n_laps = pattern->n_noted = 0;
    pattern->last_lap_start_ns = 0;
    m->pattern = pattern;
    m->cursor = 0;
    m->state = NEAP_STATE_RUN;
    m->footprint_pages = m->footprint_pages > m->pages.n_held ? m->footprint_pages : m->pages.n_held;
}

static bool enter(neap_device *m, np_pattern *pattern)
{
    neap_status status;
    if (!cast(m, pattern)) {
        pattern->n_refused++;
        return false;
    }
    m->is_entering = true;
    status = prepare(m, pattern);
    m->is_entering = false;
    if (status != NEAP_OK) {
        np_recount_arena(m);
        pattern->n_refused++;
        np_log(m, NEAP_LOG_WARN, "the plan could not be entered: %s", neap_status_message(status));
        return false;
    }
    take_over(m, pattern);
    return true;
}

/* ---- which pattern comes next ---- */

/* What followed, the last time, on the longest run of iterations like the ones just seen. */
static uint32_t predict(const neap_device *m)
{
    enum { LONGEST = 16 };
    uint32_t n = m->n_history;
    uint32_t best = 0;
    uint32_t best_length = 0;
    for (uint32_t at = n; at-- > 1;) { /* history[at] would be the one to come */
        uint32_t length = 0;
        while (length < LONGEST && length < at && m->history[at - 1 - length] == m->history[n - 1 - length]) {
            length++;
        }
        if (length > best_length) {
            best = m->history[at];
            best_length = length;
        }
    }
    return best_length > 0 && best < m->patterns.n ? best : (uint32_t)m->patterns.n;
}

void np_history_add(neap_device *m, const np_pattern *pattern)
{
    uint32_t kind = 0;
    while (kind < m->patterns.n && m->patterns.items[kind] != pattern) {
        kind++;
    }
    if (m->n_history == NP_HISTORY) {
        for (uint32_t i = 1; i < NP_HISTORY; i++) {
            m->history[i - 1] = m->history[i];
        }
        m->n_history--;
    }
    m->history[m->n_history++] = (uint8_t)(kind < m->patterns.n ? kind : UINT8_MAX);
}

/* Is the event the first of the pattern, and are the blocks what they are at its start? */
static bool is_start(neap_device *m, np_pattern *pattern, neap_event_kind kind, uint64_t key)
{
    return begins_with(pattern, kind, key) && cast(m, pattern) && (ends_with(m, pattern) || !has_strangers(m));
}

/* Enters the pattern that is expected, or else another, latest first. */
static bool start_any(neap_device *m, neap_event_kind kind, uint64_t key)
{
    size_t first = m->patterns.n;
    uint32_t expected;
    while (first > 0 && !is_start(m, m->patterns.items[first - 1], kind, key)) {
        first--;
    }
    if (first == 0) {
        return false;
    }
    np_unknown_note(m);
    expected = predict(m);
    if (expected < m->patterns.n && is_start(m, m->patterns.items[expected], kind, key) &&
        enter(m, m->patterns.items[expected])) {
        return true;
    }
    for (size_t i = first; i-- > 0;) {
        if (i != expected && is_start(m, m->patterns.items[i], kind, key) && enter(m, m->patterns.items[i])) {
            return true;
        }
    }
    return false;
}

void np_enter_if_start(neap_device *m, neap_event_kind kind, uint64_t key)
{
    if (m->patterns.n > 0) {
        (void)start_any(m, kind, key);
    }
}

void np_enter_next_lap(neap_device *m, neap_event_kind kind, uint64_t key)
{
    np_pattern *pattern = m->pattern;
    uint32_t expected = m->patterns.n > 1 ? predict(m) : 0;
    bool stay = expected >= m->patterns.n || m->patterns.items[expected] == pattern;
    bool is_switch = stay && np_refine_wants_switch(m);
    m->cursor = 0;
    if (stay && !is_switch && begins_with(pattern, kind, key)) {
        return;
    }
    np_settle(m); /* another one, or none */
    if (is_switch) {
        pattern = np_refine_switch(m);
        if (begins_with(pattern, kind, key) && enter(m, pattern)) {
            return;
        }
    }
    if (!start_any(m, kind, key)) {
        np_leave_note(m, kind == NEAP_EVENT_MALLOC ? NEAP_DEPARTURE_MALLOC
                         : kind == NEAP_EVENT_FREE ? NEAP_DEPARTURE_FREE
                                                   : NEAP_DEPARTURE_EXEC,
                      "at the start of an iteration");
    }
}
