/* replay.c: iterations that no plan was made for.
 *
 * When a program leaves its plan in the middle of an iteration, the recording begins with the events that the plan has
 * served, so that it holds the iteration whole. At the next known start the iteration is over. One that has been seen
 * twice (an evaluation, another batch size, a step that logs) is a pattern like the first: it is laid out three times in a
 * row, as a program that does nothing else would, and planned. */
#include <string.h>

#include "run/manager.h"

/* ---- what the plan has served ---- */

typedef struct replay {
    neap_device *m;
    const np_pattern *pattern;
    uint64_t *ids;    /* by place of the pattern's actors: of its block at present */
    uint32_t *malloc; /* by life: the turn of its next malloc, */
    uint32_t *free;   /* and free, as the replay goes on */
    np_array(uint64_t) use_ids;
    np_array(neap_access_kind) use_kinds;
} replay;

static bool can_be_replayed(const neap_device *m, const np_pattern *pattern)
{
    for (uint32_t i = 0; i < m->cursor; i++) {
        const np_program_event *event = &pattern->program.events.items[i];
        if (event->kind != NEAP_EVENT_EXEC && event->subject == NP_NO_LIFE) {
            return false;
        }
    }
    return true;
}

static uint32_t place_of(const replay *r, uint32_t life, uint32_t turn)
{
    return (uint32_t)(r->pattern->actors[life].now - r->pattern->now) + turn;
}

static uint32_t turn_after(const replay *r, uint32_t life, uint32_t turn)
{
    return (turn + 1) % r->pattern->program.lives.items[life].n_places;
}

static uint32_t turn_before(const replay *r, uint32_t life, uint32_t turn)
{
    uint32_t n = r->pattern->program.lives.items[life].n_places;
    return (turn + n - 1) % n;
}

/* A block of the life that was live at the iteration's start, or would have been: one that is not live any more has been
 * freed since, or none stood for the life. */
static void replay_live(replay *r, uint32_t life, uint32_t turn, bool is_freed)
{
    const neap_block *block = r->pattern->actors[life].now[turn];
    uint32_t place = place_of(r, life, turn);
    r->ids[place] = block ? block->id : r->pattern->ids[place];
    if (block || is_freed) {
        np_recorder_add_live(&r->m->recorder, r->ids[place], r->pattern->program.lives.items[life].bytes);
    }
}

/* The blocks of a life that were live at the iteration's start, oldest first. */
static void replay_life(replay *r, uint32_t i)
{
    const np_program_life *life = &r->pattern->program.lives.items[i];
    const np_actor *actor = &r->pattern->actors[i];
    uint32_t length = (uint32_t)r->pattern->program.events.n;
    uint32_t n_live = life->persistent ? 1 : life->end / length;
    bool is_new = !life->persistent && life->begin < r->m->cursor;
    bool is_freed = !life->persistent && life->end % length < r->m->cursor;
    r->malloc[i] = is_new ? turn_before(r, i, actor->next_malloc) : actor->next_malloc;
    r->free[i] = is_freed ? turn_before(r, i, actor->next_free) : actor->next_free;
    for (uint32_t k = 0, turn = r->free[i]; k < n_live && k < life->n_places; k++) {
        replay_live(r, i, turn, k == 0 && is_freed);
        turn = turn_after(r, i, turn);
    }
}

static void replay_start(replay *r)
{
    neap_device *m = r->m;
    for (uint32_t i = 0; i < r->pattern->program.lives.n; i++) {
        replay_life(r, i);
    }
    for (neap_block *block = m->live; block; block = block->next) {
        block->malloc_event = UINT64_MAX;
        if (block->life == NP_NO_LIFE) {
            np_recorder_add_live(&m->recorder, block->id, block->bytes);
        }
    }
}

static void replay_malloc(replay *r, uint32_t life)
{
    neap_device *m = r->m;
    uint32_t turn = r->malloc[life];
    uint32_t place = place_of(r, life, turn);
    neap_block *block = r->pattern->actors[life].now[turn];
    r->malloc[life] = turn_after(r, life, turn);
    r->ids[place] = block ? block->id : m->next_id++;
    if (block) {
        block->malloc_event = m->recorder.n_events;
    }
    np_recorder_add_malloc(&m->recorder, r->ids[place], r->pattern->program.lives.items[life].bytes);
}

static void replay_free(replay *r, uint32_t life)
{
    uint32_t place = place_of(r, life, r->free[life]);
    r->free[life] = turn_after(r, life, r->free[life]);
    np_recorder_add_free(&r->m->recorder, r->ids[place], r->pattern->program.lives.items[life].bytes);
}

/* Of several blocks the one that was malloc'd last: buffers that take turns are used while they are new. */
static uint64_t used_id(const replay *r, uint32_t life)
{
    uint32_t turn = r->pattern->program.lives.items[life].persistent ? 0 : turn_before(r, life, r->malloc[life]);
    return r->ids[place_of(r, life, turn)];
}

static neap_status replay_exec(replay *r, const np_program_event *event)
{
    const np_pattern *pattern = r->pattern;
    const np_program_use *uses = &pattern->program.uses.items[event->first_use];
    neap_status status = np_array_reserve(r->m->memory, &r->use_ids, event->n_uses + 1u);
    if (status == NEAP_OK) {
        status = np_array_reserve(r->m->memory, &r->use_kinds, event->n_uses + 1u);
    }
    for (uint32_t i = 0; i < event->n_uses && status == NEAP_OK; i++) {
        r->use_ids.items[i] = used_id(r, uses[i].life);
        r->use_kinds.items[i] = (neap_access_kind)uses[i].kind;
    }
    if (status == NEAP_OK) {
        np_recorder_add_exec(&r->m->recorder, pattern->names + pattern->name_at[event->subject], event->stream,
                             pattern->exec_ns[event->subject], r->use_ids.items, r->use_kinds.items, event->n_uses);
    }
    return status;
}

static neap_status replay_events(replay *r)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < r->m->cursor && status == NEAP_OK; i++) {
        const np_program_event *event = &r->pattern->program.events.items[i];
        switch ((neap_event_kind)event->kind) {
        case NEAP_EVENT_MALLOC:
            replay_malloc(r, event->subject);
            break;
        case NEAP_EVENT_FREE:
            replay_free(r, event->subject);
            break;
        case NEAP_EVENT_EXEC:
            status = replay_exec(r, event);
            break;
        }
    }
    return status;
}

void np_replay_lap(neap_device *m)
{
    const np_pattern *pattern = m->pattern;
    size_t n_lives = pattern->program.lives.n;
    replay r = {.m = m, .pattern = pattern};
    neap_status status = NEAP_NO_MEMORY;
    m->n_settled++;
    r.ids = np_memory_alloc_zero(m->memory, pattern->n_now, sizeof *r.ids);
    r.malloc = np_memory_alloc_zero(m->memory, n_lives, sizeof *r.malloc);
    r.free = np_memory_alloc_zero(m->memory, n_lives, sizeof *r.free);
    if (r.ids && r.malloc && r.free && can_be_replayed(m, pattern)) {
        np_recorder_begin_empty(&m->recorder);
        replay_start(&r);
        status = replay_events(&r);
    }
    if (status != NEAP_OK) {
        np_recorder_begin(&m->recorder, m->live);
    }
    m->recorder.is_whole = (status == NEAP_OK || m->cursor == 0) && m->recorder.trace;
    np_memory_free(m->memory, r.ids, pattern->n_now, sizeof *r.ids);
    np_memory_free(m->memory, r.malloc, n_lives, sizeof *r.malloc);
    np_memory_free(m->memory, r.free, n_lives, sizeof *r.free);
    np_array_free(m->memory, &r.use_ids);
    np_array_free(m->memory, &r.use_kinds);
}

/* ---- an iteration three times in a row ---- */

enum { REPEATS = 3 };

typedef struct repetition {
    const neap_memory *memory;
    const neap_trace *one;
    neap_trace *all;
    uint64_t *ids;       /* by block of `one`: its number in the repetition at hand */
    bool *is_paired;     /* by block of `one` that outlives it: it is a successor */
    uint32_t *successor; /* by block of `one` that was live before and is freed: the block, malloc'd and not freed, that
                          * takes its part in the next repetition */
    uint64_t next_id;
} repetition;

/* A block from before that the iteration frees, and for which no other stands yet. */
static bool is_unpaired(const repetition *r, uint32_t k)
{
    const neap_trace_block *block = &r->one->blocks.items[k];
    return block->malloc_event == NEAP_NEVER && block->free_event != NEAP_NEVER && r->successor[k] == NEAP_NEVER;
}

/* The one that was malloc'd first, of those from before for which no other stands yet; as many as there are: there is none. */
static uint32_t find_first(const repetition *r, bool is_size_equal, uint64_t bytes)
{
    const neap_trace_block *blocks = r->one->blocks.items;
    uint32_t n = (uint32_t)r->one->blocks.n;
    uint32_t first = n;
    for (uint32_t k = 0; k < n; k++) {
        bool is_earlier = first == n || blocks[k].id < blocks[first].id;
        if (is_unpaired(r, k) && (!is_size_equal || blocks[k].bytes == bytes) && is_earlier) {
            first = k;
        }
    }
    return first;
}

/* Blocks of one size first, in the order of their mallocs; then, in that order, of other sizes: what an iteration of another
 * kind has left. */
static void pair_blocks(repetition *r, bool is_size_equal)
{
    const neap_trace_block *blocks = r->one->blocks.items;
    size_t n = r->one->blocks.n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k;
        if (blocks[i].malloc_event == NEAP_NEVER || blocks[i].free_event != NEAP_NEVER || r->is_paired[i]) {
            continue; /* it does not outlive the iteration that malloc'd it */
        }
        k = find_first(r, is_size_equal, blocks[i].bytes);
        if (k < n) {
            r->successor[k] = i;
            r->is_paired[i] = true;
        }
    }
}

/* Pairs what the iteration frees of earlier ones with what it leaves to later ones; false: they are not as many, so that
 * the iteration could not be repeated. */
static bool pair_crossing(repetition *r)
{
    const neap_trace_block *blocks = r->one->blocks.items;
    for (uint32_t i = 0; i < r->one->blocks.n; i++) {
        r->successor[i] = NEAP_NEVER;
    }
    pair_blocks(r, true);
    pair_blocks(r, false);
    for (uint32_t i = 0; i < r->one->blocks.n; i++) {
        bool is_left = blocks[i].malloc_event != NEAP_NEVER && blocks[i].free_event == NEAP_NEVER;
        if (is_unpaired(r, i) || (is_left && !r->is_paired[i])) {
            return false;
        }
    }
    return true;
}

static neap_status repeat_exec(repetition *r, const neap_event *event)
{
    const char *name = neap_trace_exec_name(r->one, event->subject);
    neap_status status = np_trace_add_exec(r->all, name, strlen(name), 0, event->duration_ns);
    for (uint32_t i = 0; i < event->n_accesses && status == NEAP_OK; i++) {
        const neap_access *access = &r->one->accesses.items[event->first_access + i];
        status = np_trace_add_access(r->all, r->ids[access->block], access->kind);
    }
    if (status == NEAP_OK) {
        r->all->events.items[r->all->events.n - 1].stream = event->stream;
    }
    return status;
}

static neap_status repeat_once(repetition *r)
{
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < r->one->events.n && status == NEAP_OK; i++) {
        const neap_event *event = &r->one->events.items[i];
        switch (event->kind) {
        case NEAP_EVENT_MALLOC:
            r->ids[event->subject] = r->next_id++;
            status = np_trace_add_malloc(r->all, r->ids[event->subject], r->one->blocks.items[event->subject].bytes);
            break;
        case NEAP_EVENT_FREE:
            status = np_trace_add_free(r->all, r->ids[event->subject]);
            break;
        case NEAP_EVENT_EXEC:
            status = repeat_exec(r, event);
            break;
        }
    }
    for (size_t i = 0; i < r->one->blocks.n; i++) {
        if (r->successor[i] != NEAP_NEVER) {
            r->ids[i] = r->ids[r->successor[i]];
        }
    }
    return status;
}

static neap_status repeat(repetition *r, uint64_t next_id)
{
    neap_status status = NEAP_OK;
    r->next_id = next_id;
    for (size_t i = 0; i < r->one->blocks.n && status == NEAP_OK; i++) {
        const neap_trace_block *block = &r->one->blocks.items[i];
        r->ids[i] = block->id;
        if (block->malloc_event == NEAP_NEVER) { /* as large as it is in an iteration after one of this kind */
            uint32_t successor = r->successor[i];
            status = np_trace_add_live(r->all, block->id,
                                       successor == NEAP_NEVER ? block->bytes : r->one->blocks.items[successor].bytes);
        }
    }
    for (int i = 0; i < REPEATS && status == NEAP_OK; i++) {
        status = repeat_once(r);
    }
    return status;
}

/* NULL: it cannot be repeated. */
static neap_trace *repeat_trace(const neap_trace *one, uint64_t next_id, const neap_memory *memory)
{
    repetition r = {.memory = memory, .one = one};
    neap_status status = np_trace_create(memory, &r.all);
    if (status != NEAP_OK) {
        return NULL;
    }
    r.all->is_cut = true;
    r.ids = np_memory_alloc_zero(memory, one->blocks.n, sizeof *r.ids);
    r.successor = np_memory_alloc_zero(memory, one->blocks.n, sizeof *r.successor);
    r.is_paired = np_memory_alloc_zero(memory, one->blocks.n, sizeof *r.is_paired);
    status = r.ids && r.successor && r.is_paired && pair_crossing(&r) ? repeat(&r, next_id) : NEAP_NO_PLAN;
    np_memory_free(memory, r.ids, one->blocks.n, sizeof *r.ids);
    np_memory_free(memory, r.successor, one->blocks.n, sizeof *r.successor);
    np_memory_free(memory, r.is_paired, one->blocks.n, sizeof *r.is_paired);
    if (status != NEAP_OK) {
        neap_trace_free(r.all);
        return NULL;
    }
    return r.all;
}

/* ---- iterations seen ---- */

enum { SEEN_OFTEN = 2, RECENT_LAPS = 48 };

/* There may be several for the same events: the one that was followed last is meant. */
static np_pattern *find_pattern(const neap_device *m, uint64_t hash)
{
    if (m->pattern && m->pattern->hash == hash) {
        return m->pattern;
    }
    for (size_t i = 0; i < m->patterns.n; i++) {
        if (m->patterns.items[i]->hash == hash) {
            return m->patterns.items[i];
        }
    }
    return NULL;
}

/* How often it has been seen, this time included. */
static uint32_t count_seen(neap_device *m, uint64_t hash)
{
    np_unknown unknown = {.hash = hash, .n_seen = 1};
    for (size_t i = 0; i < m->unknown.n; i++) {
        if (m->unknown.items[i].hash == hash) {
            return ++m->unknown.items[i].n_seen;
        }
    }
    if (m->unknown.n == NP_MAX_UNKNOWN) { /* the one longest ago makes room */
        memmove(&m->unknown.items[0], &m->unknown.items[1], (NP_MAX_UNKNOWN - 1) * sizeof unknown);
        m->unknown.n--;
    }
    return np_array_push(m->memory, &m->unknown, unknown) == NEAP_OK ? 1u : 0u;
}

/* Does a kind wait for its plan? That comes before better plans for other kinds. */
bool np_unknown_waits(const neap_device *m)
{
    for (size_t i = 0; i < m->unknown.n; i++) {
        const np_unknown *unknown = &m->unknown.items[i];
        if (unknown->n_seen >= SEEN_OFTEN && np_history_age(&m->history, unknown->hash) < RECENT_LAPS &&
            !find_pattern(m, unknown->hash)) {
            return true;
        }
    }
    return false;
}

void np_unknown_note(neap_device *m)
{
    uint64_t hash = m->recorder.hash;
    np_pattern *known = find_pattern(m, hash);
    bool is_wanted;
    if (m->state != NEAP_STATE_LEAVE || !m->recorder.is_whole || m->recorder.n_events == 0) {
        return;
    }
    np_history_add(&m->history, hash);
    np_log(m, NEAP_LOG_DEBUG, "an iteration of %llu events has ended off the plan: kind %016llx, which has %s plan",
           (unsigned long long)m->recorder.n_events, (unsigned long long)hash, known ? "a" : "no");
    if (m->is_beneath) {
        if (known && known == m->pattern && known->has_doubts) {
            np_heed_iteration(m, known);
        }
        m->recorder.is_whole = false; /* nothing more is waited for */
        np_beneath_replan(m);
    }
    is_wanted = !known && count_seen(m, hash) >= SEEN_OFTEN && np_has_room_for_pattern(m);
    if (is_wanted) {
        np_learner_cancel(&m->learner);
    }
    if (is_wanted && !atomic_load(&m->learner.is_busy) && np_drain(m) == NEAP_OK) {
        neap_trace *one = np_recorder_take(&m->recorder);
        neap_trace *all = one ? repeat_trace(one, m->next_id, m->memory) : NULL;
        np_u32_array forks = {0};
        if (all && np_forks_find(m, one, &forks) == NEAP_OK) {
            np_plan_wish wish = {.trace = all, .is_disturbed = true, .seed = m->options.seed, .forks = &forks};
            (void)np_ask_for_plan(m, &wish);
        } else {
            neap_trace_free(all);
        }
        np_array_free(m->memory, &forks);
        neap_trace_free(one);
    }
    m->recorder.is_whole = false; /* it is noted */
}
