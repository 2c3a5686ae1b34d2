#include "run/pattern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { LAPS_MEASURED = 8, RESTS_MEASURED = 4, MANY_LAPS = 60 };

#define MEASURED_NS 5e8

uint64_t np_pattern_hash(uint64_t hash, neap_event_kind kind, uint64_t key)
{
    return np_hash_combine(hash, np_hash_combine((uint64_t)kind, kind == NEAP_EVENT_FREE ? 0 : key));
}

static bool is_planned(const np_program_life *life)
{
    return !life->persistent && life->n_placed > 0;
}

void np_pattern_free(np_pattern *pattern)
{
    const neap_memory *memory;
    size_t n_lives;
    size_t n_execs;
    size_t n_swaps;
    if (!pattern) {
        return;
    }
    memory = pattern->memory;
    n_lives = pattern->program.lives.n;
    n_execs = pattern->program.n_execs;
    n_swaps = pattern->program.swaps.n;
    np_memory_free(memory, pattern->actors, n_lives, sizeof *pattern->actors);
    np_memory_free(memory, pattern->blocks, pattern->n_blocks, sizeof *pattern->blocks);
    np_memory_free(memory, pattern->now, pattern->n_now, sizeof *pattern->now);
    np_memory_free(memory, pattern->ids, pattern->n_now, sizeof *pattern->ids);
    np_array_free(memory, &pattern->forks);
    np_memory_free(memory, pattern->exec_streams, n_execs, sizeof *pattern->exec_streams);
    np_memory_free(memory, pattern->exec_ns, n_execs, sizeof *pattern->exec_ns);
    np_memory_free(memory, pattern->exec_marks, n_execs, sizeof *pattern->exec_marks);
    np_memory_free(memory, pattern->out_marks, n_swaps, sizeof *pattern->out_marks);
    np_memory_free(memory, pattern->in_marks, n_swaps, sizeof *pattern->in_marks);
    np_memory_free(memory, pattern->is_out, n_swaps, sizeof *pattern->is_out);
    np_memory_free(memory, pattern->doubted, n_lives, sizeof *pattern->doubted);
    np_memory_free(memory, pattern->late, n_lives, sizeof *pattern->late);
    np_memory_free(memory, pattern->late_stream, n_lives, sizeof *pattern->late_stream);
    np_memory_free(memory, pattern->names, pattern->names_bytes, 1);
    np_memory_free(memory, pattern->name_at, n_execs, sizeof *pattern->name_at);
    np_array_free(memory, &pattern->laps_ns);
    np_array_free(memory, &pattern->rests_ns);
    np_timed_free(&pattern->timed, memory);
    np_array_free(memory, &pattern->doubts);
    np_array_free(memory, &pattern->visitors);
    np_array_free(memory, &pattern->unseen);
    neap_trace_free(pattern->trace);
    np_program_free(&pattern->program);
    np_memory_free(memory, pattern, 1, sizeof *pattern);
}

static neap_status make_tables(np_pattern *pattern)
{
    const neap_memory *memory = pattern->memory;
    const np_program *program = &pattern->program;
    for (size_t i = 0; i < program->lives.n; i++) {
        const np_program_life *life = &program->lives.items[i];
        pattern->n_now += life->n_places;
        pattern->n_blocks += is_planned(life) ? life->n_places : 0;
    }
    pattern->actors = np_memory_alloc_zero(memory, program->lives.n, sizeof *pattern->actors);
    pattern->blocks = np_memory_alloc_zero(memory, pattern->n_blocks, sizeof *pattern->blocks);
    pattern->now = np_memory_alloc_zero(memory, pattern->n_now, sizeof *pattern->now);
    pattern->ids = np_memory_alloc_zero(memory, pattern->n_now, sizeof *pattern->ids);
    pattern->exec_streams = np_memory_alloc_zero(memory, program->n_execs, sizeof *pattern->exec_streams);
    pattern->exec_ns = np_memory_alloc_zero(memory, program->n_execs, sizeof *pattern->exec_ns);
    pattern->exec_marks = np_memory_alloc_zero(memory, program->n_execs, sizeof *pattern->exec_marks);
    pattern->out_marks = np_memory_alloc_zero(memory, program->swaps.n, sizeof *pattern->out_marks);
    pattern->in_marks = np_memory_alloc_zero(memory, program->swaps.n, sizeof *pattern->in_marks);
    pattern->is_out = np_memory_alloc_zero(memory, program->swaps.n, sizeof *pattern->is_out);
    pattern->doubted = np_memory_alloc_zero(memory, program->lives.n, sizeof *pattern->doubted);
    pattern->late = np_memory_alloc_zero(memory, program->lives.n, sizeof *pattern->late);
    pattern->late_stream = np_memory_alloc_zero(memory, program->lives.n, sizeof *pattern->late_stream);
    pattern->names = np_memory_alloc_zero(memory, pattern->names_bytes, 1);
    pattern->name_at = np_memory_alloc_zero(memory, program->n_execs, sizeof *pattern->name_at);
    if (!pattern->actors || !pattern->blocks || !pattern->now || !pattern->ids || !pattern->exec_streams ||
        !pattern->exec_ns || !pattern->exec_marks || !pattern->out_marks || !pattern->in_marks || !pattern->is_out ||
        !pattern->doubted || !pattern->late || !pattern->late_stream || !pattern->names || !pattern->name_at) {
        return NEAP_NO_MEMORY;
    }
    return np_array_reserve(memory, &pattern->laps_ns, 64);
}

static bool is_at_fork(const np_pattern *pattern, const np_program_life *life)
{
    for (size_t i = 0; i < pattern->forks.n; i++) {
        if (life->begin < pattern->forks.items[i] && pattern->forks.items[i] <= life->end) {
            return true;
        }
    }
    return false;
}

/* Does each of its blocks have a view? Blocks that live across the period's end do, or where another iteration parts from
 * this one, unless the plan is an older one, in which they begin anywhere. */
static bool is_view(const np_pattern *pattern, const np_program_life *life, uint64_t page_bytes)
{
    bool may_move = (!life->persistent && life->end >= pattern->program.events.n) || is_at_fork(pattern, life);
    for (uint32_t turn = 0; turn < life->n_places && may_move; turn++) {
        may_move = pattern->program.placed.items[life->first_placed + turn * life->n_placed].offset % page_bytes == 0;
    }
    return life->swapped || life->n_placed > 1 || may_move;
}

static void make_actors(np_pattern *pattern, uint64_t page_bytes)
{
    neap_block *blocks = pattern->blocks;
    neap_block **now = pattern->now;
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        const np_program_life *life = &pattern->program.lives.items[i];
        np_actor *actor = &pattern->actors[i];
        actor->now = now;
        now += life->n_places;
        if (!is_planned(life)) {
            continue;
        }
        actor->planned = blocks;
        blocks += life->n_places;
        for (uint32_t turn = 0; turn < life->n_places; turn++) {
            actor->planned[turn] =
                (neap_block){.bytes = life->bytes,
                             .life = i,
                             .own_life = i,
                             .turn = turn,
                             .kind = is_view(pattern, life, page_bytes) ? NP_BLOCK_SWAPPED : NP_BLOCK_FLAT,
                             .place = NP_NO_PLACE,
                             .malloc_event = UINT64_MAX,
                             .pattern = pattern};
        }
    }
}

uint64_t np_pattern_key(const np_pattern *pattern, uint32_t event)
{
    const np_program_event *e = &pattern->program.events.items[event];
    return e->kind == NEAP_EVENT_FREE ? 0 : e->key;
}

uint32_t np_pattern_arena_page(const np_pattern *pattern, uint32_t life, uint32_t turn, uint32_t k, uint64_t page_bytes)
{
    const np_program_life *l = &pattern->program.lives.items[life];
    const np_placed *placed = &pattern->program.placed.items[l->first_placed + turn * l->n_placed];
    uint64_t lead = np_program_lead(&pattern->program, life, page_bytes);
    uint64_t at = k == 0 ? 0 : k * page_bytes - lead;
    while (at >= placed->at + placed->bytes) {
        placed++;
    }
    return (uint32_t)((placed->offset + (at - placed->at)) / page_bytes);
}

static bool is_like(const np_pattern *pattern, uint32_t a, uint32_t b)
{
    const np_program_event *events = pattern->program.events.items;
    return events[a].kind == events[b].kind && np_pattern_key(pattern, a) == np_pattern_key(pattern, b);
}

/* One more than the longest run of last events that is found anywhere else on the circle. */
static uint32_t find_tail(const np_pattern *pattern)
{
    uint32_t n = (uint32_t)pattern->program.events.n;
    uint32_t longest = 0;
    for (uint32_t end = 0; end + 1 < n; end++) {
        uint32_t length = 0;
        while (length < NP_RECENT_KEYS && length < n && is_like(pattern, n - 1 - length, (end + n - length) % n)) {
            length++;
        }
        longest = length > longest ? length : longest;
    }
    return longest + 1 < NP_RECENT_KEYS ? longest + 1 : 0;
}

static void read_events(np_pattern *pattern)
{
    const np_program *program = &pattern->program;
    for (uint32_t i = 0; i < program->events.n; i++) {
        const np_program_event *event = &program->events.items[i];
        if (event->kind == NEAP_EVENT_EXEC) {
            pattern->exec_streams[event->subject] = event->stream;
        }
        pattern->hash = np_pattern_hash(pattern->hash, (neap_event_kind)event->kind, np_pattern_key(pattern, i));
    }
    pattern->n_tail = find_tail(pattern);
}

neap_status np_pattern_create(np_program *program, const np_pattern_facts *facts, uint64_t page_bytes,
                              const neap_memory *memory, np_pattern **pattern)
{
    np_pattern *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    neap_status status;
    if (!made) {
        np_program_free(program);
        return NEAP_NO_MEMORY;
    }
    made->memory = memory;
    made->program = *program;
    *program = (np_program){0};
    made->names_bytes = facts->names_bytes;
    status = make_tables(made);
    for (size_t i = 0; i < facts->n_forks && status == NEAP_OK; i++) {
        status = np_array_push(memory, &made->forks, facts->forks[i]);
    }
    made->n_forks_made = (uint32_t)made->forks.n;
    if (status != NEAP_OK) {
        np_pattern_free(made);
        return status;
    }
    if (made->program.n_execs > 0) {
        memcpy(made->exec_ns, facts->exec_ns, made->program.n_execs * sizeof *facts->exec_ns);
        memcpy(made->name_at, facts->name_at, made->program.n_execs * sizeof *facts->name_at);
        memcpy(made->names, facts->names, facts->names_bytes);
    }
    make_actors(made, page_bytes);
    read_events(made);
    *pattern = made;
    return NEAP_OK;
}

uint64_t np_pattern_metadata_bytes(const np_pattern *pattern)
{
    const np_program *program = &pattern->program;
    size_t n_lives = program->lives.n;
    return sizeof *pattern + program->events.n * sizeof *program->events.items +
           program->uses.n * sizeof *program->uses.items + program->ops.n * sizeof *program->ops.items +
           n_lives * (sizeof *program->lives.items + sizeof *pattern->actors) +
           program->placed.n * sizeof *program->placed.items + pattern->n_blocks * sizeof *pattern->blocks +
           pattern->n_now * (sizeof *pattern->now + sizeof *pattern->ids) + program->n_execs * (8 + 8 + 4 + 1) +
           pattern->names_bytes + program->swaps.n * (sizeof *program->swaps.items + 8 + 8 + 1) +
           pattern->laps_ns.capacity * sizeof *pattern->laps_ns.items;
}

static int compare_doubles(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;
    return *a < *b ? -1 : *a > *b;
}

/* The last ones, in order; how many. */
static size_t sort_laps(const double *laps_ns, size_t n_laps, double sorted[64])
{
    size_t n = n_laps < 64 ? n_laps : 64;
    if (n > 0) {
        memcpy(sorted, laps_ns, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, compare_doubles);
    }
    return n;
}

/* The mean of the middle half: laps may take turns in being longer and shorter, and some are disturbed by others. */
static double middle_ns(const double *laps_ns, size_t n_laps)
{
    double sorted[64];
    double sum = 0;
    size_t n = sort_laps(laps_ns, n_laps, sorted);
    size_t first = n / 4;
    size_t n_middle = n - 2 * first;
    if (n < 3) {
        return NAN;
    }
    for (size_t i = first; i < first + n_middle; i++) {
        sum += sorted[i];
    }
    return sum / (double)n_middle;
}

double np_pattern_lap_ns(const np_pattern *pattern)
{
    return middle_ns(pattern->laps_ns.items, pattern->laps_ns.n);
}

double np_pattern_rest_ns(const np_pattern *pattern)
{
    return middle_ns(pattern->rests_ns.items, pattern->rests_ns.n);
}

/* Short iterations vary more, and more of them fit into the same time. */
static bool is_enough(size_t n, size_t least, double lap_ns)
{
    return n >= MANY_LAPS || (n >= least && (double)n * lap_ns > MEASURED_NS);
}

bool np_pattern_is_measured(const np_pattern *pattern)
{
    return is_enough(pattern->laps_ns.n, LAPS_MEASURED, np_pattern_lap_ns(pattern));
}

bool np_pattern_is_rest_measured(const np_pattern *pattern)
{
    return is_enough(pattern->rests_ns.n, RESTS_MEASURED, np_pattern_rest_ns(pattern));
}

double np_pattern_base_ns(const np_pattern *pattern)
{
    double period_ns = pattern->program.period_ns;
    bool is_known = pattern->program.swaps.n > 0 && pattern->rested_ns > 0 && pattern->rested_ns < period_ns;
    return is_known ? pattern->rested_ns : period_ns;
}

double np_pattern_plan_overhead(const np_pattern *pattern)
{
    const np_program *program = &pattern->program;
    double base_ns = np_pattern_base_ns(pattern);
    double looking = base_ns > 0 ? program->period_ns / base_ns - 1 : 0; /* without execs there is no time */
    return program->overhead + (1 + program->overhead) * looking;
}

double np_pattern_quiet_lap_ns(const np_pattern *pattern)
{
    double sorted[64];
    size_t n = sort_laps(pattern->laps_ns.items, pattern->laps_ns.n, sorted);
    return n < 3 ? NAN : sorted[n / 4];
}

bool np_pattern_is_valid(const np_pattern *pattern)
{
    uint32_t n_live = 0;
    if (!np_program_is_valid(&pattern->program)) {
        return false;
    }
    for (uint32_t i = 0; i < pattern->n_blocks; i++) {
        n_live += pattern->blocks[i].is_live;
    }
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        const np_program_life *life = &pattern->program.lives.items[i];
        const np_actor *actor = &pattern->actors[i];
        if (actor->next_malloc >= life->n_places || actor->next_free >= life->n_places) {
            return false;
        }
    }
    return n_live == pattern->n_live;
}
