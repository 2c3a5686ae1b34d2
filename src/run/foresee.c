/* foresee.c: what a run would plan for a recorded program, before it runs.
 *
 * The planner of a run has constraints that planning on a trace need not have, and each costs something. So nothing is
 * imitated: the recording becomes a lesson, as a running program's does (ask.c, residents.c), and is learned by the same
 * code. It is the lesson of the plan that stays: the program has run on the pool alone by then, its times are known, and
 * everything may stand elsewhere than it does.
 *
 * The lowest limit at a cost is looked for by such plans too: what the planner finds without a limit is where the search
 * begins, but a limit counts only if plans that are made within it do not cost more. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "run/manager.h"
#include "swap/bound_overhead.h"
#include "trace/copy.h"

enum {
    UNIT = 512,         /* bytes: sizes are rounded up to it */
    N_TRIALS = 2,       /* plans that must hold a limit: one may be lucky */
    MAX_LIMITS = 64,    /* that are tried */
    MAX_PAGES = 1 << 24 /* of the device, which has a table of them: 32 TiB with pages of 2 MiB */
};

#define PAGE_BYTES ((uint64_t)2 << 20)
#define MAX_SECONDS 1e6
#define LEAST_OVERHEAD 1e-9 /* none at all: 0 would not be asked for */
#define STEP_SHARE 0.01     /* of the load: how fine limits are told apart */

typedef struct foresight {
    const neap_memory *memory;
    const neap_trace *trace;
    neap_foresee_options options; /* with the defaults filled in */
    neap_error *error;
    np_lesson *lesson; /* the last that was learned */
    np_lesson *best;   /* that of the lowest limit that was held; NULL: none was */
    uint64_t beside;
} foresight;

/* ---- what stands aside ---- */

static neap_status side_take(np_heap *heap, uint64_t slab_bytes, uint64_t bytes, uint32_t *at)
{
    uint64_t size = (bytes + UNIT - 1) / UNIT * UNIT;
    uint32_t block = np_heap_best_fit(heap, size);
    neap_status status = NEAP_OK;
    if (block == NP_HEAP_NONE) {
        status = np_heap_add_chunk(heap, slab_bytes, &block);
    }
    if (status == NEAP_OK) {
        status = np_heap_take(heap, block, size);
    }
    *at = block;
    return status;
}

/* All on one stream: a recording does not tell for which one a block was asked. `at`: by block, its place. */
static neap_status side_replay(const foresight *f, np_heap *heap, uint64_t slab_bytes, uint32_t *at)
{
    const neap_trace *trace = f->trace;
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < trace->blocks.n && status == NEAP_OK; i++) {
        const neap_trace_block *block = &trace->blocks.items[i];
        if (block->malloc_event == NEAP_NEVER && block->bytes < f->options.min_block) {
            status = side_take(heap, slab_bytes, block->bytes, &at[i]);
        }
    }
    for (size_t i = 0; i < trace->events.n && status == NEAP_OK; i++) {
        const neap_event *event = &trace->events.items[i];
        uint64_t bytes = event->kind == NEAP_EVENT_EXEC ? UINT64_MAX : trace->blocks.items[event->subject].bytes;
        if (bytes < f->options.min_block && event->kind == NEAP_EVENT_MALLOC) {
            status = side_take(heap, slab_bytes, bytes, &at[event->subject]);
        } else if (bytes < f->options.min_block) {
            np_heap_give(heap, at[event->subject]);
        }
    }
    return status;
}

/* The range of small blocks grows and never shrinks. Those that `neap record` left out are counted by it. */
static neap_status find_beside(foresight *f)
{
    uint64_t slab_bytes = np_side_slab_bytes(f->options.min_block, f->options.page);
    const char *text = neap_trace_meta(f->trace, "beside_bytes");
    uint64_t recorded = text ? strtoull(text, NULL, 10) : 0;
    uint32_t *at = np_memory_alloc(f->memory, f->trace->blocks.n, sizeof *at);
    np_heap heap;
    neap_status status = at ? NEAP_OK : NEAP_NO_MEMORY;
    np_heap_init(&heap, f->memory);
    if (status == NEAP_OK) {
        status = side_replay(f, &heap, slab_bytes, at);
    }
    f->beside = heap.held + (recorded < NP_TRACE_BYTES_MAX ? recorded : 0);
    f->beside += f->beside > 0 ? slab_bytes : 0; /* and a little room for it to grow */
    np_heap_free(&heap);
    np_memory_free(f->memory, at, f->trace->blocks.n, sizeof *at);
    return status;
}

/* ---- the lesson ---- */

/* Where blocks stand, as in the run (loose.c): it decides where in its page each begins, and behind which other. */
typedef struct standing {
    np_device device; /* its size of pages is all that is asked of it */
    np_pages pages;
    np_space spaces[NP_N_SPACES];
    np_place *places; /* by block */
    uint32_t n_row;
    bool is_paged; /* every block begins at a page */
} standing;

static neap_status stand(const foresight *f, standing *s, uint32_t number)
{
    const neap_trace_block *block = &f->trace->blocks.items[number];
    bool is_packed = !s->is_paged && s->n_row++ >= NP_ROW_LEAST;
    np_space *space = &s->spaces[is_packed ? NP_SPACE_PACKED : NP_SPACE_PAGED];
    neap_status status = np_space_place(space, block->id, block->bytes, &s->places[number]);
    if (status == NEAP_OK) {
        f->lesson->residents.items[f->lesson->residents.n++] =
            (np_resident){.id = block->id,
                          .lead = s->places[number].begin % f->options.page,
                          .neighbour = np_space_neighbour(space, &s->places[number]),
                          .first_page = UINT32_MAX,
                          .life = NP_NO_LIFE};
    } else {
        s->places[number] = NP_NO_PLACE;
    }
    return status;
}

static void fall(standing *s, uint32_t number)
{
    const np_place *place = &s->places[number];
    if (place->entry != NP_HEAP_NONE) {
        np_space_leave(&s->spaces[place->space], place);
    }
    s->n_row = 0;
}

/* Sizes of blocks that live at once add up to no more than a trace may have (trace.h). */
static bool is_too_large(const foresight *f)
{
    const neap_trace *trace = f->trace;
    uint64_t page = f->options.page;
    uint64_t live = 0;
    bool is_above;
    for (size_t i = 0; i < trace->blocks.n; i++) {
        live += trace->blocks.items[i].malloc_event == NEAP_NEVER ? trace->blocks.items[i].bytes : 0;
    }
    is_above = live / page > MAX_PAGES;
    for (size_t i = 0; i < trace->events.n && !is_above; i++) {
        const neap_event *event = &trace->events.items[i];
        uint64_t bytes = event->kind == NEAP_EVENT_EXEC ? 0 : trace->blocks.items[event->subject].bytes;
        live += event->kind == NEAP_EVENT_MALLOC ? bytes : 0;
        is_above = live / page > MAX_PAGES;
        live -= event->kind == NEAP_EVENT_FREE ? bytes : 0;
    }
    return is_above;
}

static neap_status list_standing(const foresight *f, standing *s)
{
    const neap_trace *trace = f->trace;
    neap_status status = is_too_large(f)
                             ? np_fail(f->error, NEAP_TOO_LARGE, "more bytes live at once than a device has")
                             : np_array_reserve(f->memory, &f->lesson->residents, trace->blocks.n);
    for (uint32_t i = 0; i < trace->blocks.n && status == NEAP_OK; i++) {
        if (trace->blocks.items[i].malloc_event == NEAP_NEVER) {
            status = stand(f, s, i);
        }
    }
    for (size_t i = 0; i < trace->events.n && status == NEAP_OK; i++) {
        const neap_event *event = &trace->events.items[i];
        if (event->kind == NEAP_EVENT_MALLOC) {
            status = stand(f, s, event->subject);
        } else if (event->kind == NEAP_EVENT_FREE) {
            fall(s, event->subject);
        }
    }
    return status;
}

/* Who is there when the plan is entered. Of those that are not there all through, none is looked at. */
static neap_status list_residents(const foresight *f)
{
    standing s = {.device = {.memory = f->memory, .page_bytes = f->options.page}, .is_paged = f->options.limit > 0};
    neap_status status = NEAP_NO_MEMORY;
    np_pages_init(&s.pages, &s.device);
    np_space_init(&s.spaces[NP_SPACE_PACKED], &s.pages, NP_SPACE_PACKED, NP_SPACE_UNIT);
    np_space_init(&s.spaces[NP_SPACE_PAGED], &s.pages, NP_SPACE_PAGED, f->options.page);
    s.places = np_memory_alloc(f->memory, f->trace->blocks.n, sizeof *s.places);
    if (s.places) {
        status = list_standing(f, &s);
    }
    np_memory_free(f->memory, s.places, f->trace->blocks.n, sizeof *s.places);
    np_space_free(&s.spaces[NP_SPACE_PACKED]);
    np_space_free(&s.spaces[NP_SPACE_PAGED]);
    np_pages_free(&s.pages);
    return status;
}

/* A lesson for one limit, or, where both are 0, for the cost that is allowed. */
static neap_status make_lesson(foresight *f, uint64_t limit, double limit_share, uint64_t seed)
{
    const neap_foresee_options *options = &f->options;
    np_lesson *lesson = np_memory_alloc_zero(f->memory, 1, sizeof *lesson);
    neap_status status;
    if (!lesson) {
        return NEAP_NO_MEMORY;
    }
    np_lesson_free(f->lesson);
    f->lesson = lesson;
    lesson->memory = f->memory;
    lesson->page_bytes = options->page;
    lesson->limit = limit > 0 && limit < options->page ? options->page : limit - limit % options->page;
    lesson->limit_share = limit_share;
    lesson->overhead = limit == 0 && limit_share <= 0 ? options->overhead : 0;
    lesson->min_block = np_lesson_least_swapped(options->min_block, options->page);
    lesson->beside_bytes = f->beside;
    lesson->margin = options->margin;
    lesson->link = options->link;
    lesson->has_tolls = true;
    lesson->seconds = options->seconds;
    lesson->n_threads = options->n_threads;
    lesson->seed = seed;
    lesson->may_raise = true;
    lesson->is_disturbed = true; /* an iteration is as long as the trace says, or as its execs together */
    status = np_trace_copy_large(f->trace, options->min_block, f->memory, &lesson->trace);
    return status == NEAP_OK ? list_residents(f) : status;
}

static neap_status learn(foresight *f, uint64_t limit, double limit_share, uint64_t seed)
{
    neap_status status = make_lesson(f, limit, limit_share, seed);
    if (status == NEAP_OK) {
        np_lesson_learn(f->lesson);
        status = f->lesson->status;
        *f->error = f->lesson->error;
    }
    if (status == NEAP_NO_PLAN && !f->error->text[0]) {
        status = np_fail(f->error, status,
                         "no plan within %llu bytes, nor above as far as a run would look: nothing is swapped",
                         (unsigned long long)f->lesson->limit_used);
    }
    if (status == NEAP_OK && f->lesson->program.n_execs == 0) {
        status = np_fail(f->error, NEAP_BAD_INPUT,
                         "there are no execs in the period: swapping needs to know when blocks are used");
    }
    return status;
}

/* The planner may have tried once more at the same limit. */
static bool is_raised(const np_lesson *lesson)
{
    double share = lesson->limit_share * (double)lesson->program.peak_load;
    return lesson->limit_used > (lesson->limit > 0 ? lesson->limit : (uint64_t)share);
}

/* ---- the lowest limit at a cost ---- */

/* Plans within it cost no more than is allowed? Then the last of them is the best so far. */
static neap_status try_limit(foresight *f, uint64_t limit, bool *is_held)
{
    neap_status status = NEAP_OK;
    *is_held = true;
    for (uint64_t i = 0; i < N_TRIALS && *is_held && status == NEAP_OK; i++) {
        status = learn(f, limit, 0, f->options.seed + i);
        *is_held = status == NEAP_OK && !is_raised(f->lesson) && np_lesson_overhead(f->lesson) <= f->options.overhead;
        status = status == NEAP_NO_PLAN ? NEAP_OK : status;
        if (*is_held && f->lesson->program.swaps.n == 0) {
            break; /* another will not be worse */
        }
    }
    if (status == NEAP_OK && *is_held) {
        np_lesson_free(f->best);
        f->best = f->lesson;
        f->lesson = NULL;
    }
    return status;
}

/* From a limit that is held, down to where the next is not. */
static neap_status go_down(foresight *f, uint64_t limit, uint64_t step)
{
    neap_status status = NEAP_OK;
    bool is_held = true;
    for (int i = 0; i < MAX_LIMITS && is_held && limit > step && status == NEAP_OK; i++) {
        limit -= step;
        status = try_limit(f, limit, &is_held);
    }
    return status;
}

/* From one that is not, up to one that is, and back as far as can be told. With all that the pool holds nothing is
 * swapped, and it is. */
static neap_status go_up(foresight *f, uint64_t limit, uint64_t step)
{
    neap_status status = NEAP_OK;
    uint64_t low = limit;
    uint64_t stride = step;
    bool is_held = false;
    for (int i = 0; i < MAX_LIMITS && !is_held && status == NEAP_OK; i++) {
        low = limit;
        limit += stride;
        stride += step;
        status = try_limit(f, limit, &is_held);
    }
    while (status == NEAP_OK && is_held && limit - low > step) {
        uint64_t middle = low + (limit - low) / 2;
        bool is_middle_held;
        status = try_limit(f, middle, &is_middle_held);
        *(is_middle_held ? &limit : &low) = middle;
    }
    return status;
}

static uint64_t pages_up(const foresight *f, uint64_t bytes)
{
    return (bytes + f->options.page - 1) / f->options.page * f->options.page;
}

static neap_status find_lowest(foresight *f)
{
    neap_status status = learn(f, 0, 0, f->options.seed);
    uint64_t limit;
    uint64_t step;
    bool is_held;
    if (status != NEAP_OK) {
        return status;
    }
    limit = pages_up(f, f->lesson->program.footprint + f->beside);
    step = pages_up(f, (uint64_t)(STEP_SHARE * (double)f->lesson->program.peak_load));
    status = try_limit(f, limit, &is_held);
    if (status == NEAP_OK) {
        status = is_held ? go_down(f, limit, step) : go_up(f, limit, step);
    }
    if (status == NEAP_OK && !f->best) {
        status = np_fail(f->error, NEAP_NO_PLAN, "no limit was found that is held at this cost");
    }
    if (status == NEAP_OK) {
        f->error->text[0] = '\0';
        np_lesson_free(f->lesson);
        f->lesson = f->best;
        f->best = NULL;
    }
    return status;
}

/* ---- the answer ---- */

/* For unknown directions taken as writes, or for the best possible ones. The lesson's trace has the times it was planned
 * with. */
static neap_status find_bound(const foresight *f, const np_period *period, np_directions directions, uint64_t limit,
                              double *overhead)
{
    np_timeline_options options = {.alignment = UNIT, .slower = 1, .directions = directions};
    np_link link = np_link_from(&f->options.link);
    np_timeline timeline;
    double ns = 0;
    neap_status status = np_timeline_make(period, &options, f->memory, &timeline);
    if (status != NEAP_OK) {
        return status;
    }
    status = np_bound_overhead(&timeline, &link, limit, &ns);
    *overhead = timeline.period_ns > 0 ? ns / timeline.period_ns : 0;
    np_timeline_free(&timeline);
    return status;
}

static neap_status find_bounds(const foresight *f, neap_foreseen *seen)
{
    uint64_t limit = np_lesson_arena_limit(f->lesson, f->lesson->limit_used);
    np_period period;
    neap_status status = np_period_find(f->lesson->trace, f->memory, &period);
    if (status != NEAP_OK) {
        return status;
    }
    status = find_bound(f, &period, NP_DIRECTIONS_CAREFUL, limit, &seen->bound_overhead);
    if (status == NEAP_OK) {
        status = find_bound(f, &period, NP_DIRECTIONS_ANY, limit, &seen->bound_overhead_any);
    }
    np_period_free(&period);
    return status;
}

static neap_status find_peak(const foresight *f, neap_foreseen *seen)
{
    neap_info *info;
    neap_status status = neap_info_make(f->trace, UNIT, f->memory, f->error, &info);
    if (status == NEAP_OK) {
        seen->peak_load = info->peak_load;
        neap_info_free(info);
    }
    return status;
}

static neap_status answer(const foresight *f, neap_foreseen *seen)
{
    const np_lesson *lesson = f->lesson;
    const np_program *program = &lesson->program;
    neap_status status;
    *seen = (neap_foreseen){.planned_load = program->peak_load,
                            .beside = f->beside,
                            .limit = lesson->limit_used,
                            .limit_was_raised = is_raised(lesson),
                            .load_min = lesson->load_min + f->beside,
                            .footprint = program->footprint + f->beside,
                            .iteration_ns = np_lesson_base_ns(lesson),
                            .overhead = np_lesson_overhead(lesson),
                            .looking = np_lesson_looking(lesson),
                            .n_swaps = program->swaps.n,
                            .bytes_out = lesson->forecast.bytes_out,
                            .bytes_in = lesson->forecast.bytes_in};
    status = find_peak(f, seen);
    return status == NEAP_OK ? find_bounds(f, seen) : status;
}

/* ---- from the outside ---- */

static neap_foresee_options with_defaults(const neap_foresee_options *options)
{
    neap_foresee_options filled = *options;
    filled.min_block = filled.min_block ? filled.min_block : NEAP_RUN_MIN_BLOCK;
    filled.overhead = filled.overhead > 0 ? filled.overhead : LEAST_OVERHEAD;
    filled.page = filled.page ? filled.page : PAGE_BYTES;
    filled.seconds = filled.seconds > 0 ? fmin(filled.seconds, MAX_SECONDS) : 2;
    filled.n_threads = filled.n_threads ? filled.n_threads : NEAP_RUN_THREADS;
    return filled;
}

static neap_status check_options(const neap_foresee_options *options, neap_error *error)
{
    const neap_link *link = &options->link;
    if (!(link->out_gbs > 0) || !(link->in_gbs > 0) || !(link->both_gbs >= 0) || !(link->latency_us >= 0) ||
        !(link->busy_share >= 0 && link->busy_share <= 1) || !isfinite(link->out_gbs) || !isfinite(link->in_gbs) ||
        !isfinite(link->latency_us)) {
        return np_fail(error, NEAP_BAD_ARGUMENT, "a link needs a speed above 0 in both directions");
    }
    if (!(options->limit_share >= 0) || options->limit_share > 1 || options->page % UNIT != 0) {
        return np_fail(error, NEAP_BAD_ARGUMENT,
                       "a limit is a number of bytes or a share of the load, 0 to 1; a page is a multiple of %d bytes",
                       UNIT);
    }
    return NEAP_OK;
}

static neap_status foresee(foresight *f, neap_foreseen *seen)
{
    neap_status status = check_options(&f->options, f->error);
    if (status == NEAP_OK) {
        status = find_beside(f);
    }
    if (status == NEAP_OK) {
        bool has_limit = f->options.limit > 0 || f->options.limit_share > 0;
        status = has_limit
                     ? learn(f, f->options.limit, f->options.limit > 0 ? 0 : f->options.limit_share, f->options.seed)
                     : find_lowest(f);
    }
    return status == NEAP_OK ? answer(f, seen) : status;
}

neap_status neap_foresee(const neap_trace *trace, const neap_foresee_options *options, const neap_memory *memory,
                         neap_error *error, neap_foreseen *foreseen)
{
    neap_error nothing;
    uint64_t begin_ns = np_clock_ns();
    foresight f = {.memory = np_memory_or_default(memory),
                   .trace = trace,
                   .options = with_defaults(options),
                   .error = error ? error : &nothing};
    neap_foreseen seen;
    neap_status status;
    f.error->text[0] = '\0';
    status = foresee(&f, &seen);
    np_lesson_free(f.lesson);
    np_lesson_free(f.best);
    if (status == NEAP_OK) {
        seen.seconds = 1e-9 * (double)(np_clock_ns() - begin_ns);
        *foreseen = seen;
    } else if (!f.error->text[0]) {
        (void)np_fail(f.error, status, "%s", neap_status_message(status));
    }
    return status;
}
