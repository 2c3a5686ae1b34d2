#include "run/study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "run/busy.h"
#include "run/doubt.h"
#include "run/timing.h"
#include "run/unseen.h"
#include "swap/bound.h"
#include "swap/candidates.h"
#include "swap/planner.h"

enum {
    LEAST_PART = 256
}; /* of the peak load: what leaves at once, where each swap costs something beside its copies */

#define HURRY_ITERATIONS 4 /* for a plan that the program waits for, */
#define HURRY_LEAST 0.15   /* and seconds */

#define HOST_CHUNK ((uint64_t)256 << 20) /* bytes, at the most: the driver is busy with one for some 10 ms */

void np_lesson_free(np_lesson *lesson)
{
    if (lesson) {
        const neap_memory *memory = lesson->memory;
        neap_trace_free(lesson->trace);
        np_array_free(memory, &lesson->residents);
        np_array_free(memory, &lesson->doubted_ids);
        np_array_free(memory, &lesson->doubted_lives);
        np_array_free(memory, &lesson->doubts);
        np_array_free(memory, &lesson->unseen);
        np_array_free(memory, &lesson->forks);
        np_array_free(memory, &lesson->measured_ns);
        for (size_t i = 0; i < lesson->chunks.n; i++) {
            np_device *device = lesson->host_device;
            device->api->host_free(device, lesson->chunks.items[i].host, lesson->chunks.items[i].bytes);
        }
        np_array_free(memory, &lesson->chunks);
        if (lesson->program.memory) {
            np_program_free(&lesson->program);
        }
        np_array_free(memory, &lesson->exec_ns);
        np_array_free(memory, &lesson->is_awaited);
        np_array_free(memory, &lesson->home_pages);
        np_array_free(memory, &lesson->names);
        np_array_free(memory, &lesson->name_at);
        np_memory_free(memory, lesson, 1, sizeof *lesson);
    }
}

double np_lesson_base_ns(const np_lesson *lesson)
{
    double period_ns = lesson->program.period_ns;
    return lesson->rested_ns > 0 && lesson->rested_ns < period_ns ? lesson->rested_ns : period_ns;
}

double np_lesson_looking(const np_lesson *lesson)
{
    double base_ns = np_lesson_base_ns(lesson);
    return base_ns > 0 ? lesson->program.period_ns / base_ns - 1 : 0;
}

double np_lesson_overhead(const np_lesson *lesson)
{
    const np_program *program = &lesson->program;
    return program->swaps.n == 0 ? 0 : program->overhead + (1 + program->overhead) * np_lesson_looking(lesson);
}

/* ---- the period ---- */

static uint32_t event_at(const np_period *period, uint32_t time)
{
    return period->origin + time;
}

static neap_status find_period(np_study *s)
{
    np_lesson *lesson = s->lesson;
    neap_status status = np_period_find(lesson->trace, lesson->memory, &s->period);
    if (status == NEAP_OK && s->period.length == 0) {
        status = NEAP_NO_PERIOD;
    }
    if (status == NEAP_OK) {
        np_timing_settle(lesson->trace, &s->period, lesson->measured_ns.items, lesson->measured_ns.n, lesson->lap_ns);
    }
    if (status == NEAP_OK && (!lesson->is_disturbed || lesson->lap_ns > 0)) {
        status = np_timing_add_step(lesson->trace, &s->period, lesson->lap_ns);
    }
    if (status == NEAP_OK && lesson->rested_ns > 0) {
        status = np_timing_add_rest(lesson->trace, &s->period, lesson->rested_ns);
    } else if (status == NEAP_OK) {
        lesson->rested_ns = np_timing_rest_ns(lesson->trace, &s->period);
    }
    return status;
}

/* Lives that were named as doubted, or of which a block in any period was. */
static void mark_doubted(const np_study *s, bool *doubtful)
{
    const np_lesson *lesson = s->lesson;
    const np_period *period = &s->period;
    const neap_trace *trace = lesson->trace;
    for (size_t i = 0; i < lesson->doubted_lives.n; i++) {
        doubtful[lesson->doubted_lives.items[i]] |= lesson->doubted_lives.items[i] < period->lives.n;
    }
    for (size_t i = 0; i < lesson->doubted_ids.n; i++) {
        uint32_t block = np_trace_find_block(trace, lesson->doubted_ids.items[i]);
        uint32_t event = block == NP_MAP_NONE ? NEAP_NEVER : trace->blocks.items[block].malloc_event;
        bool is_repeated = event != NEAP_NEVER && event >= period->begin;
        uint32_t time = is_repeated ? (event - period->begin) % period->length : NEAP_NEVER;
        uint32_t origin = (period->origin - period->begin) % period->length;
        for (uint32_t k = 0; k < period->lives.n && block != NP_MAP_NONE; k++) {
            const np_life *life = &period->lives.items[k];
            doubtful[k] |= life->persistent ? life->block == block
                                            : is_repeated && (life->begin + origin) % period->length == time;
        }
    }
}

/* ---- homes ---- */

static int compare_residents(const void *left, const void *right)
{
    const np_resident *a = left;
    const np_resident *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

static np_resident *resident_of(const np_lesson *lesson, uint64_t id)
{
    np_resident key = {.id = id};
    return lesson->residents.n == 0
               ? NULL
               : bsearch(&key, lesson->residents.items, lesson->residents.n, sizeof key, compare_residents);
}

/* Is the block alive where another iteration parts from this one? It may be at another place there. */
static bool is_at_fork(const np_lesson *lesson, const np_life *life)
{
    for (size_t i = 0; i < lesson->forks.n; i++) {
        if (!life->persistent && life->begin < lesson->forks.items[i] && lesson->forks.items[i] <= life->end) {
            return true;
        }
    }
    return false;
}

/* What is known of the persistent blocks. One that is no resident any more has gone, and with it the pattern, unless another
 * block of its size may stand for it. */
static neap_status settle_homes(np_study *s)
{
    np_lesson *lesson = s->lesson;
    const np_period *period = &s->period;
    s->homes = np_memory_alloc_zero(lesson->memory, period->lives.n + 1, sizeof *s->homes);
    if (!s->homes) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < period->lives.n; i++) {
        const np_life *life = &period->lives.items[i];
        np_resident *resident =
            life->persistent ? resident_of(lesson, lesson->trace->blocks.items[life->block].id) : NULL;
        s->homes[i].neighbour = NP_NO_HOME;
        s->homes[i].is_view = is_at_fork(lesson, life);
        if (life->persistent) {
            s->homes[i].is_outside = resident ? resident->is_outside : !lesson->is_cast_by_size;
        }
        if (resident && !resident->is_outside) {
            resident->life = i;
            s->homes[i].lead = resident->lead;
        }
        if (resident && !resident->is_outside && resident->first_page != UINT32_MAX) {
            s->homes[i].pages = &lesson->home_pages.items[resident->first_page];
        }
    }
    for (size_t i = 0; i < lesson->residents.n; i++) {
        const np_resident *resident = &lesson->residents.items[i];
        const np_resident *neighbour =
            resident->neighbour == NP_NO_NEIGHBOUR ? NULL : resident_of(lesson, resident->neighbour);
        if (resident->life != NP_NO_LIFE && neighbour && neighbour->life != NP_NO_LIFE) {
            s->homes[resident->life].neighbour = neighbour->life;
        }
    }
    return NEAP_OK;
}

/* ---- planning ---- */

/* Blocks outside of the arena are not the planner's business: they count for nothing, and are not swapped. Nor are those of
 * which it is not known when they are used. */
static void leave_out(np_study *s)
{
    np_timeline *timeline = &s->timeline;
    uint64_t outside = 0;
    size_t n_kept = 0;
    for (size_t i = 0; i < timeline->blocks.n; i++) {
        outside += s->homes[timeline->blocks.items[i].life].is_outside ? timeline->blocks.items[i].bytes : 0;
    }
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        timeline->needed.items[k] -= outside;
    }
    for (size_t i = 0; i < timeline->gaps.n; i++) {
        uint32_t life = timeline->blocks.items[timeline->gaps.items[i].block].life;
        if (!s->homes[life].is_outside && !s->doubtful[life]) {
            timeline->gaps.items[n_kept++] = timeline->gaps.items[i];
        }
    }
    timeline->gaps.n = n_kept;
}

static neap_status keep_exact(np_study *s)
{
    const np_period *period = &s->period;
    const neap_memory *memory = s->lesson->memory;
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < period->access_at.n && status == NEAP_OK; i++) {
        status = np_array_push(memory, &s->exact_at, period->access_at.items[i]);
    }
    for (size_t i = 0; i < period->accesses.n && status == NEAP_OK; i++) {
        status = np_array_push(memory, &s->exact, period->accesses.items[i]);
    }
    return status;
}

/* What is not to be swapped is found before uses are widened: it is told by counting them. */
static neap_status find_doubtful(np_study *s)
{
    s->doubtful = np_memory_alloc_zero(s->lesson->memory, s->period.lives.n + 1, sizeof *s->doubtful);
    if (!s->doubtful) {
        return NEAP_NO_MEMORY;
    }
    neap_status status = np_traffic_find(&s->period, &s->traffic);
    if (status == NEAP_OK) {
        status = np_doubt_find(&s->period, s->doubtful);
    }
    mark_doubted(s, s->doubtful);
    np_unseen_drop(&s->period, s->lesson->unseen.items, s->lesson->unseen.n);
    return status == NEAP_OK ? keep_exact(s) : status;
}

/* By the margin at hand, from what was found. */
static neap_status widen(np_study *s)
{
    np_period *period = &s->period;
    neap_status status = np_array_reserve(period->memory, &period->accesses, s->exact.n);
    if (status != NEAP_OK) {
        return status;
    }
    memcpy(period->access_at.items, s->exact_at.items, s->exact_at.n * sizeof *s->exact_at.items);
    if (s->exact.n > 0) {
        memcpy(period->accesses.items, s->exact.items, s->exact.n * sizeof *s->exact.items);
    }
    period->accesses.n = s->exact.n;
    return np_margin_widen(period, s->margin, s->lesson->doubts.items, s->lesson->doubts.n);
}

/* What swaps cost beside their bytes, and how fast these are beside the program's work. */
static void find_costs(np_study *s)
{
    double sum = 0;
    s->link = s->lesson->link;
    for (uint32_t k = 0; k < s->timeline.n_execs; k++) {
        sum += (double)s->lesson->trace->events.items[event_at(&s->period, s->timeline.times.items[k])].duration_ns;
    }
    if (s->lesson->has_tolls && s->timeline.n_execs > 0) {
        s->toll = np_toll_of(&s->traffic, sum / s->timeline.n_execs);
    }
    s->link.busy_share = np_busy_share(s->link.busy_share, s->timeline.period_ns > 0 ? sum / s->timeline.period_ns : 0);
}

static neap_status set_up(np_study *s)
{
    np_lesson *lesson = s->lesson;
    np_timeline_options options = {.alignment = 512, .slower = 1, .directions = NP_DIRECTIONS_CAREFUL, .held = true};
    neap_status status = widen(s);
    if (status == NEAP_OK) {
        status = np_timeline_make(&s->period, &options, lesson->memory, &s->timeline);
    }
    if (status != NEAP_OK) {
        return status;
    }
    leave_out(s);
    if (lesson->is_hurried) {
        lesson->seconds = fmin(lesson->seconds, fmax(HURRY_ITERATIONS * 1e-9 * s->timeline.period_ns, HURRY_LEAST));
    }
    find_costs(s);
    s->planner = (np_planner){.timeline = &s->timeline,
                              .link = np_link_busy(&s->link),
                              .min_block = lesson->min_block,
                              .page = lesson->page_bytes,
                              .swap_ns = 2 * s->toll.copy_ns,
                              .byte_ns = s->toll.byte_ns,
                              .least_part = lesson->has_tolls ? s->timeline.peak_load / LEAST_PART : 0,
                              .seed = lesson->seed,
                              .n_threads = lesson->n_threads,
                              .deadline_ns = s->begin_ns + (uint64_t)(lesson->seconds * 1e9),
                              .held = true,
                              .is_stopping = lesson->is_stopping,
                              .homes = s->homes,
                              .error = &lesson->error};
    return s->timeline.n_execs > 0 ? np_simulator_create(&s->timeline, &s->planner.link, &s->planner.simulator)
                                   : NEAP_OK;
}

/* ---- handing over ---- */

/* Whoever copies to the host wants to look at it: a loss, nearly always. */
static bool is_awaited(const char *name)
{
    return strcmp(name, "memcpy.dtoh") == 0;
}

static neap_status keep_execs(np_study *s)
{
    np_lesson *lesson = s->lesson;
    const neap_trace *trace = lesson->trace;
    neap_status status = NEAP_OK;
    for (uint32_t k = 0; k < s->timeline.n_execs && status == NEAP_OK; k++) {
        const neap_event *event = &trace->events.items[event_at(&s->period, s->timeline.times.items[k])];
        const char *name = neap_trace_exec_name(trace, event->subject);
        status = np_array_push(lesson->memory, &lesson->exec_ns, event->duration_ns);
        if (status == NEAP_OK) {
            status = np_array_push(lesson->memory, &lesson->is_awaited, is_awaited(name));
        }
        if (status == NEAP_OK) {
            status = np_array_push(lesson->memory, &lesson->name_at, (uint32_t)lesson->names.n);
        }
        for (size_t i = 0, n = strlen(name) + 1; i < n && status == NEAP_OK; i++) {
            status = np_array_push(lesson->memory, &lesson->names, name[i]);
        }
    }
    return status;
}

/* Off the plan blocks leave and return page by page. */
static bool has_whole_pages(const np_program *program, uint64_t page_bytes)
{
    for (size_t i = 0; i < program->swaps.n; i++) {
        const np_program_swap *swap = &program->swaps.items[i];
        uint64_t lead = np_program_lead(program, swap->life, page_bytes);
        bool is_end = swap->end >= program->lives.items[swap->life].bytes;
        if ((swap->begin != 0 && (swap->begin + lead) % page_bytes != 0) ||
            ((swap->end + lead) % page_bytes != 0 && !is_end)) {
            return false;
        }
    }
    return true;
}

/* What a program takes. Execs that may run at the same time make it seem shorter than the period is. */
static neap_status foretell(const np_study *s, np_program *program, np_forecast *forecast)
{
    const np_lesson *lesson = s->lesson;
    neap_status status = NEAP_OK;
    double tolls;
    if (program->swaps.n > 0) {
        np_exec_times execs = {.ns = lesson->exec_ns.items, .is_awaited = lesson->is_awaited.items};
        status = np_program_forecast(program, &execs, &s->link, &s->toll, lesson->memory, forecast);
        tolls = np_toll_ns(&s->toll, (double)forecast->bytes_out + (double)forecast->bytes_in, program->swaps.n);
        program->overhead = fmax(forecast->period_ns - program->period_ns, tolls) / program->period_ns;
    }
    return status;
}

neap_status np_study_foretell(const np_study *s, double *overhead)
{
    np_program program;
    np_forecast forecast;
    neap_status status = np_program_make(&s->timeline, s->judged.swaps.items, (uint32_t)s->judged.swaps.n,
                                         &s->judged.layout, s->lesson->memory, &program);
    if (status == NEAP_OK) {
        status = foretell(s, &program, &forecast);
        *overhead = program.overhead;
        np_program_free(&program);
    }
    return status;
}

static neap_status make_program(np_study *s)
{
    np_lesson *lesson = s->lesson;
    np_program *program = &lesson->program;
    neap_status status = np_program_make(&s->timeline, s->judged.swaps.items, (uint32_t)s->judged.swaps.n,
                                         &s->judged.layout, lesson->memory, program);
    if (status != NEAP_OK) {
        return status;
    }
    status = has_whole_pages(program, lesson->page_bytes)
                 ? np_program_check(program, &lesson->error)
                 : np_fail(&lesson->error, NEAP_INTERNAL, "a swap is not of whole pages");
    return status == NEAP_OK ? foretell(s, program, &lesson->forecast) : status;
}

/* In chunks. What cannot be had now is looked for when the plan is entered. */
static void prepare_host(np_lesson *lesson, uint64_t needed)
{
    uint64_t page = lesson->page_bytes;
    while (needed > lesson->host_bytes && !(lesson->is_stopping && atomic_load(lesson->is_stopping))) {
        np_slot chunk = {.bytes = needed - lesson->host_bytes};
        chunk.bytes = chunk.bytes < HOST_CHUNK ? (chunk.bytes + page - 1) / page * page : HOST_CHUNK;
        if (np_array_reserve(lesson->memory, &lesson->chunks, lesson->chunks.n + 1) != NEAP_OK ||
            lesson->host_device->api->host_alloc(lesson->host_device, chunk.bytes, &chunk.host) != NEAP_OK) {
            return;
        }
        lesson->chunks.items[lesson->chunks.n++] = chunk;
        lesson->host_bytes += chunk.bytes;
    }
}

void np_lesson_prepare_least(np_lesson *lesson)
{
    if (lesson->host_device) {
        prepare_host(lesson, lesson->host_least);
    }
}

void np_lesson_prepare_host(np_lesson *lesson)
{
    uint64_t page = lesson->page_bytes;
    uint64_t needed = 0;
    bool is_needed = lesson->status == NEAP_OK && lesson->host_device && lesson->program.swaps.n > 0;
    for (size_t i = 0; is_needed && i < lesson->program.lives.n; i++) {
        const np_program_life *life = &lesson->program.lives.items[i];
        uint64_t lead = np_program_lead(&lesson->program, (uint32_t)i, page);
        needed += life->swapped ? (lead + life->bytes + page - 1) / page * page : 0;
    }
    prepare_host(lesson, needed);
}

static neap_status plan(np_study *s)
{
    neap_status status = set_up(s);
    if (status == NEAP_OK && s->lesson->exec_ns.n == 0) {
        status = keep_execs(s);
    }
    return status == NEAP_OK ? np_study_plan(s) : status;
}

static void end_plan(np_study *s)
{
    np_judged_free(&s->judged, s->lesson->memory);
    np_simulator_free(s->planner.simulator);
    if (s->timeline.memory) {
        np_timeline_free(&s->timeline);
    }
    s->judged = (np_judged){0};
    s->planner = (np_planner){0};
    s->timeline = (np_timeline){0};
}

/* There is no plan within the limit where blocks stay for some execs longer than they are used: there may be one where they
 * do not. */
static bool narrow(np_study *s)
{
    np_lesson *lesson = s->lesson;
    if (s->margin == 0 || lesson->limit_used == 0 || lesson->overhead > 0 ||
        (lesson->is_stopping && atomic_load(lesson->is_stopping))) {
        return false;
    }
    end_plan(s);
    s->margin = 0;
    s->begin_ns = np_clock_ns();
    lesson->error = (neap_error){{0}};
    return true;
}

void np_lesson_learn(np_lesson *lesson)
{
    np_study s = {.lesson = lesson, .begin_ns = np_clock_ns()};
    neap_status status;
    if (lesson->residents.n > 0) {
        qsort(lesson->residents.items, lesson->residents.n, sizeof *lesson->residents.items, compare_residents);
    }
    status = find_period(&s);
    if (status == NEAP_OK) {
        lesson->n_iterations = (uint32_t)s.period.variants.n;
        status = settle_homes(&s);
    }
    if (status == NEAP_OK) {
        status = find_doubtful(&s);
    }
    s.margin = lesson->margin;
    if (status == NEAP_OK) {
        status = plan(&s);
    }
    while (status == NEAP_NO_PLAN && narrow(&s)) {
        status = plan(&s);
    }
    if (status == NEAP_OK) {
        status = make_program(&s);
    }
    lesson->margin_used = s.margin;
    end_plan(&s);
    np_array_free(lesson->memory, &s.exact_at);
    np_array_free(lesson->memory, &s.exact);
    np_memory_free(lesson->memory, s.homes, s.period.lives.n + 1, sizeof *s.homes);
    np_memory_free(lesson->memory, s.doubtful, s.period.lives.n + 1, sizeof *s.doubtful);
    if (s.period.memory) {
        np_period_free(&s.period);
    }
    lesson->status = status;
}
