/* enter.c: a start of a known pattern: blocks take their places, and from here on the plan is followed.
 *
 * All work is waited for first. The arena is put together around the pages that live blocks have (arena.c); what the plan
 * says is absent at its start leaves; what could not stay where it was goes by the host; and the views of planned blocks
 * are mapped. Until the very end every step leaves the device in a state that the way off the plan can go on from. */
#include "base/clock.h"
#include "run/manager.h"

static bool is_view_kind(const np_pattern *pattern, uint32_t life)
{
    return pattern->actors[life].planned && pattern->actors[life].planned[0].kind == NP_BLOCK_SWAPPED;
}

bool np_block_has_place(const np_pattern *pattern, uint32_t life, const neap_block *block)
{
    const np_program_life *l = &pattern->program.lives.items[life];
    if (l->persistent) {
        return (block->kind == NP_BLOCK_LOOSE || block->kind == NP_BLOCK_SWAPPED) && l->n_placed > 0;
    }
    return is_view_kind(pattern, life) && !block->is_exported &&
           (block->kind == NP_BLOCK_SWAPPED || (block->kind == NP_BLOCK_LOOSE && block->view.lead == 0));
}

bool np_block_can_lend(const np_pattern *pattern, uint32_t life, const neap_block *block)
{
    const np_program_life *l = &pattern->program.lives.items[life];
    return !l->persistent && !l->swapped && is_view_kind(pattern, life) && block->kind == NP_BLOCK_LOOSE &&
           !block->is_exported && !np_block_has_place(pattern, life, block);
}

/* ---- what leaves ---- */

static neap_status take_slot(neap_device *m, neap_block *block)
{
    return block && !block->slot.host ? np_host_take(&m->host, np_block_host_bytes(m, block), &block->slot) : NEAP_OK;
}

/* For the blocks that a life's swaps copy: the planned one, and what stands for it at the start. */
static neap_status take_slots(neap_device *m, np_pattern *pattern)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < pattern->program.swaps.n && status == NEAP_OK; i++) {
        uint32_t life = pattern->program.swaps.items[i].life;
        neap_block *now = pattern->actors[life].now[0];
        status = take_slot(m, pattern->actors[life].planned);
        if (status == NEAP_OK && now && np_block_has_place(pattern, life, now)) {
            status = take_slot(m, now);
        }
    }
    return status;
}

/* Has a swap's copy out been given before the event, and its copy in not? */
static bool is_absent_at(const np_program *program, uint32_t swap, uint32_t cursor)
{
    bool is_absent = program->swaps.items[swap].starts_absent;
    for (uint32_t i = 0; i < cursor; i++) {
        const np_program_event *event = &program->events.items[i];
        for (uint32_t k = event->first_op; k < event->first_op + event->n_before + event->n_after; k++) {
            const np_op *op = &program->ops.items[k];
            bool is_own = op->index == swap;
            is_absent = is_own && op->kind == NP_OP_OUT ? true : is_own && op->kind == NP_OP_IN ? false : is_absent;
        }
    }
    return is_absent;
}

/* What the plan has absent before the event that is to come. */
static neap_status send_absent(neap_device *m, np_pattern *pattern, uint32_t cursor)
{
    uint64_t page = m->device->page_bytes;
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < pattern->program.swaps.n && status == NEAP_OK; i++) {
        const np_program_swap *swap = &pattern->program.swaps.items[i];
        neap_block *block = pattern->actors[swap->life].now[0];
        pattern->is_out[i] = false;
        if (block && is_absent_at(&pattern->program, i, cursor) && np_block_has_place(pattern, swap->life, block)) {
            status = np_block_depart_pages(m, block, np_view_page_of(&block->view, swap->begin, page),
                                           np_view_page_of(&block->view, swap->end + page - 1, page));
            pattern->is_out[i] = status == NEAP_OK;
        }
    }
    return status;
}

/* Is the page one of those that stand behind the block's place, in some order? */
static bool is_lent(const neap_device *m, const np_pattern *pattern, const neap_block *block, uint32_t number)
{
    uint32_t n = (uint32_t)(block->bytes / m->device->page_bytes);
    for (uint32_t j = 0; j < pattern->program.lives.items[block->life].n_places; j++) {
        for (uint32_t k = 0; k < n && pattern->actors[block->life].now[j] == block; k++) {
            uint32_t at = np_pattern_arena_page(pattern, block->life, j, k, m->device->page_bytes);
            if (m->arena.numbers[at] == number) {
                return true;
            }
        }
    }
    return false;
}

/* Is a page of a view somewhere in the arena where the plan does not want it, or elsewhere though it has a place? */
static bool is_astray(const neap_device *m, const np_pattern *pattern, const neap_block *block, uint32_t page)
{
    uint32_t number = block->view.numbers[page];
    uint32_t home = block->is_standing || block->pattern == pattern ? np_block_home_page(m, block, page) : NP_NO_PAGE;
    if (number == NP_NO_PAGE || number == home || (home == NP_NO_PAGE && !np_pages_is_arena(&m->pages, number))) {
        return false;
    }
    return !block->is_lending || !is_lent(m, pattern, block, number);
}

/* One that is no part of the plan comes back to pages beside the arena, if there is room. */
static neap_status return_extra(neap_device *m, neap_block *block)
{
    bool is_extra = block->view.n_pages > 0 && !block->is_standing;
    bool has_room = (uint64_t)m->pages.n_held + block->view.n_missing <= m->limit_pages;
    neap_status status = is_extra && has_room ? np_block_return(m, block) : NEAP_OK;
    return status == NEAP_DEVICE_FULL ? NEAP_OK : status;
}

static neap_status send_astray(neap_device *m, const np_pattern *pattern)
{
    neap_status status = NEAP_OK;
    for (neap_block *block = m->live; block && status == NEAP_OK; block = block->next) {
        bool was_here = np_block_is_here(block);
        for (uint32_t i = 0; i < block->view.n_pages && status == NEAP_OK;) {
            uint32_t end = i;
            while (end < block->view.n_pages && is_astray(m, pattern, block, end)) {
                end++;
            }
            if (end > i) {
                status = np_block_depart_pages(m, block, i, end);
            }
            i = end + 1;
        }
        if (status == NEAP_OK && was_here) {
            status = return_extra(m, block);
        }
    }
    return status;
}

/* ---- who comes ---- */

static neap_status make_home(neap_device *m, neap_block *block)
{
    if (!block->home) {
        block->home = np_memory_alloc(m->memory, block->view.n_pages, sizeof *block->home);
        if (!block->home) {
            return NEAP_NO_MEMORY;
        }
        block->n_home = block->view.n_pages;
        for (uint32_t k = 0; k < block->view.n_pages; k++) {
            block->home[k] = NP_NO_PAGE;
        }
    }
    return NEAP_OK;
}

/* What stands for a life, and is not the plan's own, needs to know of its place. */
static neap_status make_homes(neap_device *m, np_pattern *pattern)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        for (uint32_t j = 0; j < pattern->program.lives.items[i].n_places && status == NEAP_OK; j++) {
            neap_block *block = pattern->actors[i].now[j];
            if (block && np_block_has_place(pattern, i, block) && block->pattern != pattern) {
                status = make_home(m, block);
            }
        }
    }
    return status;
}

static void set_home(const neap_device *m, const np_pattern *pattern, uint32_t life, uint32_t turn, neap_block *block)
{
    for (uint32_t k = 0; k < block->view.n_pages && block->home; k++) {
        block->home[k] = np_pattern_arena_page(pattern, life, turn, k, m->device->page_bytes);
    }
}

/* The homes of live blocks are those of this plan from now on. */
static void set_homes(neap_device *m, np_pattern *pattern)
{
    for (neap_block *block = m->live; block; block = block->next) {
        for (uint32_t k = 0; k < block->view.n_pages && block->home; k++) {
            block->home[k] = NP_NO_PAGE;
        }
    }
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        for (uint32_t j = 0; j < pattern->program.lives.items[i].n_places; j++) {
            neap_block *block = pattern->actors[i].now[j];
            if (block && np_block_has_place(pattern, i, block)) {
                set_home(m, pattern, i, j, block);
            }
        }
    }
}

/* Marks, in `absent`, the pages that the plan has absent at its start. */
static void mark_absent(const neap_device *m, const np_pattern *pattern, uint32_t life, const neap_block *block,
                        bool *absent)
{
    uint64_t page = m->device->page_bytes;
    for (uint32_t k = 0; k < block->view.n_pages; k++) {
        absent[k] = false;
    }
    for (uint32_t i = 0; i < pattern->program.swaps.n; i++) {
        const np_program_swap *swap = &pattern->program.swaps.items[i];
        uint32_t first = np_view_page_of(&block->view, swap->begin, page);
        uint32_t end = np_view_page_of(&block->view, swap->end + page - 1, page);
        for (uint32_t k = first; swap->life == life && pattern->is_out[i] && k < end; k++) {
            absent[k] = true;
        }
    }
}

/* Brings what a plan has present at its start to its place. */
static neap_status bring_home(neap_device *m, const np_pattern *pattern, uint32_t life, neap_block *block)
{
    uint32_t n = block->view.n_pages;
    bool *absent = np_memory_alloc(m->memory, n, sizeof *absent);
    neap_status status = absent ? NEAP_OK : NEAP_NO_MEMORY;
    if (absent) {
        mark_absent(m, pattern, life, block, absent);
    }
    for (uint32_t i = 0; i < n && status == NEAP_OK;) {
        uint32_t end = i;
        while (end < n && !absent[end] && block->view.numbers[end] == NP_NO_PAGE) {
            end++;
        }
        if (end > i) {
            status = np_block_return_home(m, block, i, end);
        }
        i = end + 1;
    }
    np_memory_free(m->memory, absent, n, sizeof *absent);
    return status;
}

/* Pages that blocks without a place in the plan need beside its arena. */
static uint32_t n_missing_beside(const np_pattern *pattern)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        for (uint32_t j = 0; j < pattern->program.lives.items[i].n_places; j++) {
            const neap_block *block = pattern->actors[i].now[j];
            n += block && !np_block_has_place(pattern, i, block) ? block->view.n_missing : 0;
        }
    }
    return n;
}

static neap_status bring_all(neap_device *m, np_pattern *pattern)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < pattern->program.lives.n && status == NEAP_OK; i++) {
        for (uint32_t j = 0; j < pattern->program.lives.items[i].n_places && status == NEAP_OK; j++) {
            neap_block *block = pattern->actors[i].now[j];
            if (block && np_block_has_place(pattern, i, block)) {
                status = bring_home(m, pattern, i, block);
            } else if (block) {
                status = np_block_return(m, block);
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

/* Maps what is missing of a view onto its places. While the plan runs, nothing more is mapped. */
static neap_status map_missing(neap_device *m, neap_block *block)
{
    uint32_t n = block->view.n_pages;
    uint32_t *numbers = np_memory_alloc(m->memory, n, sizeof *numbers);
    neap_status status = numbers ? NEAP_OK : NEAP_NO_MEMORY;
    for (uint32_t i = 0; i < n && status == NEAP_OK;) {
        uint32_t end = i;
        while (end < n && block->view.numbers[end] == NP_NO_PAGE) {
            numbers[end] = np_block_home_page(m, block, end);
            end++;
        }
        if (end > i) {
            status = np_view_map(&m->pages, &block->view, i, end - i, &numbers[i]);
        }
        i = end + 1;
    }
    np_memory_free(m->memory, numbers, n, sizeof *numbers);
    return status;
}

/* Another plan may have had the block elsewhere, or the arena other pages. */
static void unmap_wrong(neap_device *m, neap_block *block)
{
    for (uint32_t k = 0; k < block->view.n_pages; k++) {
        uint32_t number = block->view.numbers[k];
        if (number != NP_NO_PAGE && number != np_block_home_page(m, block, k)) {
            np_view_unmap(&m->pages, &block->view, k, 1, NP_UNCOUNTED);
        }
    }
}

static neap_status map_planned(neap_device *m, np_pattern *pattern)
{
    uint64_t page = m->device->page_bytes;
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < pattern->n_blocks && status == NEAP_OK; i++) {
        neap_block *block = &pattern->blocks[i];
        if (block->kind == NP_BLOCK_SWAPPED && !block->view.numbers) {
            status = np_view_make(&m->pages, (uint32_t)((block->bytes + page - 1) / page), &block->view);
            block->address = block->view.address;
        }
        if (status == NEAP_OK && block->kind == NP_BLOCK_SWAPPED && !block->is_live) {
            unmap_wrong(m, block);
        }
        if (status == NEAP_OK && block->kind == NP_BLOCK_SWAPPED && block->view.n_missing > 0) {
            status = map_missing(m, block);
        }
    }
    return status;
}

/* What stands for a life and is absent: while the plan runs, nothing is mapped. */
static neap_status map_standing(neap_device *m, np_pattern *pattern)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        for (uint32_t j = 0; j < pattern->program.lives.items[i].n_places && status == NEAP_OK; j++) {
            neap_block *block = pattern->actors[i].now[j];
            if (block && block->pattern != pattern && np_block_has_place(pattern, i, block) &&
                block->view.n_missing > 0) {
                status = map_missing(m, block);
            }
        }
    }
    return status;
}

/* What stands for which life is known to the blocks, too. */
static void note_standing(neap_device *m, np_pattern *pattern)
{
    for (neap_block *block = m->live; block; block = block->next) {
        block->is_lending = false;
    }
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        for (uint32_t j = 0; j < pattern->program.lives.items[i].n_places; j++) {
            neap_block *block = pattern->actors[i].now[j];
            if (block && block->pattern == pattern && block->home) {
                np_block_forget_home(m, block); /* it is back on its own plan */
            }
            if (block) {
                block->life = i;
                block->pinned_by = m->pin;
            }
        }
    }
}

static neap_status prepare(neap_device *m, np_pattern *pattern, uint32_t cursor)
{
    neap_status status = np_drain(m);
    if (status == NEAP_OK) {
        np_retired_give_back(m);
        for (uint32_t k = 0; k < m->n_arena; k++) {
            np_room_unback(m, m->arena.numbers[k]);
        }
        if (pattern->limit_pages && pattern->n_entered == 0) {
            m->is_limited_anew = true;
        }
        m->limit_pages = np_limit_with(m, pattern);
        m->pin++;
        note_standing(m, pattern);
        status = take_slots(m, pattern);
    }
    if (status == NEAP_OK) {
        status = make_homes(m, pattern);
    }
    if (status == NEAP_OK) {
        status = send_absent(m, pattern, cursor);
    }
    if (status == NEAP_OK) {
        status = np_arena_arrange(m, pattern);
    }
    if (status == NEAP_OK) {
        set_homes(m, pattern);
        status = send_astray(m, pattern);
    }
    if (status == NEAP_OK && (uint64_t)m->pages.n_held + n_missing_beside(pattern) > np_room_usual(m)) {
        np_arena_shrink_for(m, pattern);
    }
    if (status == NEAP_OK) {
        status = bring_all(m, pattern);
    }
    if (status == NEAP_OK) {
        status = np_beneath_return_fixed(m);
    }
    if (status == NEAP_OK) {
        set_flat_addresses(m, pattern);
        status = map_planned(m, pattern);
    }
    if (status == NEAP_OK) {
        status = np_room_take(m, 0, NULL); /* what else is held must fit beside the arena */
    }
    return status == NEAP_OK ? map_standing(m, pattern) : status;
}

/* From here on nothing can fail. */
static void take_over(neap_device *m, np_pattern *pattern, uint32_t cursor)
{
    neap_block *next;
    for (neap_block *block = m->live; block; block = next) {
        next = block->next;
        block->life = NP_NO_LIFE;
        block->is_extra = !block->is_standing;
        if (block->pattern && block->is_standing) { /* the pattern knows it */
            np_recent_remove(m, block);
            np_live_remove(m, block);
            block->is_live = true;
        }
    }
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        for (uint32_t j = 0; j < pattern->program.lives.items[i].n_places; j++) {
            if (pattern->actors[i].now[j]) {
                pattern->actors[i].now[j]->life = i;
                pattern->actors[i].now[j]->used_by = UINT32_MAX; /* all work before is done */
            }
        }
    }
    for (uint32_t i = 0; i < pattern->program.n_execs; i++) {
        pattern->exec_marks[i] = 0;
    }
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        pattern->late[i] = 0;
    }
    for (np_stream s = 0; s < NP_MAX_STREAMS; s++) {
        m->late[s] = 0;
    }
    m->has_late = false;
    for (uint32_t i = 0; i < pattern->program.swaps.n; i++) {
        pattern->out_marks[i] = pattern->in_marks[i] = 0;
    }
    np_pages_clear_arena(&m->pages, false);
    pattern->n_entered++;
    pattern->n_laps = pattern->n_noted = pattern->looked_since = 0;
    pattern->last_lap_start_ns = 0;
    if (!m->pattern || m->is_limited_anew) { /* what is held counts from here on */
        m->pages.recent_peak = m->pages.n_held;
        m->is_limited_anew = false;
    }
    if (m->first_plan_ns == 0) {
        m->first_plan_ns = np_clock_ns();
        m->first_plan_events = m->stats.n_events;
    }
    if (m->first_swap_ns == 0 && pattern->program.swaps.n > 0) {
        m->first_swap_ns = np_clock_ns();
    }
    m->pattern = pattern;
    m->cursor = cursor;
    m->state = NEAP_STATE_RUN;
}

bool np_enter_cast(neap_device *m, np_pattern *pattern, uint32_t cursor)
{
    neap_status status;
    m->sizes_at_start = cursor == 0 ? m->listed_sizes : m->sizes_at_start;
    m->is_entering = true;
    status = prepare(m, pattern, cursor);
    m->is_entering = false;
    if (status != NEAP_OK) {
        np_unmap_absent(m, pattern);
        np_recount_arena(m);
        (void)np_beneath_return_fixed(m);
        pattern->n_refused++;
        np_log(m, NEAP_LOG_WARN, "the plan could not be entered: %s", neap_status_message(status));
        return false;
    }
    take_over(m, pattern, cursor);
    np_log(m, NEAP_LOG_DEBUG, "entered the plan of %zu events at event %u: kind %016llx", pattern->program.events.n,
           cursor, (unsigned long long)pattern->hash);
    return true;
}

bool np_enter(neap_device *m, np_pattern *pattern, np_casting how)
{
    if (!np_arena_could_fit(m, pattern) || !np_cast(m, pattern, how)) {
        pattern->n_refused++;
        return false;
    }
    return np_enter_cast(m, pattern, 0);
}
