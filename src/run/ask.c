/* ask.c: when a plan is asked for, what the planner is told, and what becomes of what it has made. */
#include "base/clock.h"
#include "base/real.h"
#include "run/manager.h"
#include "run/unseen.h"

enum { UNPLANNED_EVENTS = 20000 }; /* without a plan, before it is said that this is slow */
enum { CHECK_EVERY = 32 };         /* events between two looks at the detector */
enum { MANY_ITERATIONS = 4 };      /* as many events are more than an iteration of another kind */

#define URGENT_SHARE 0.25                    /* of the time for planning */
#define FIRST_PAUSE_NS ((uint64_t)250000000) /* before planning is tried again, doubled each time it fails */

static bool is_same_link(const neap_link *a, const neap_link *b)
{
    return a->out_gbs == b->out_gbs && a->in_gbs == b->in_gbs && a->both_gbs == b->both_gbs &&
           a->latency_us == b->latency_us;
}

/* Once, and where it is another: plans are as good as what is known of it. */
static void say_link(neap_device *m, const neap_link *link)
{
    if (!is_same_link(&m->link, link)) {
        double both = link->both_gbs > 0 ? link->both_gbs : link->out_gbs + link->in_gbs;
        np_log(m, NEAP_LOG_INFO, "copies: %s GB/s out, %s in, %s together, %s us each",
               np_real_fixed(link->out_gbs, 1).text, np_real_fixed(link->in_gbs, 1).text, np_real_fixed(both, 1).text,
               np_real_fixed(link->latency_us, 1).text);
        m->link = *link;
    }
}

/* Measuring takes memory of the device: no more than there is room for. */
neap_status np_find_link(neap_device *m, neap_link *link)
{
    neap_status status;
    if (m->asked_pages == UINT32_MAX && m->options.limit_share <= 0 && m->overhead <= 0) {
        return neap_link_find(neap_link_name(0), link); /* nothing is copied */
    }
    m->device->room_bytes = np_room_left(m);
    status = m->device->api->link(m->device, link);
    if (status == NEAP_OK) {
        say_link(m, link);
    }
    return status;
}

static neap_status copy_doubts(neap_device *m, const np_plan_wish *wish, np_lesson *lesson)
{
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < m->doubted.n && status == NEAP_OK; i++) {
        status = np_array_push(m->memory, &lesson->doubted_ids, m->doubted.items[i]);
    }
    for (uint32_t i = 0; i < wish->n_doubted && status == NEAP_OK; i++) {
        status = np_array_push(m->memory, &lesson->doubted_lives, wish->doubted[i]);
    }
    for (size_t i = 0; i < wish->n_doubts && status == NEAP_OK; i++) {
        status = np_array_push(m->memory, &lesson->doubts, wish->doubts[i]);
    }
    return status;
}

static neap_status copy_forks(neap_device *m, const np_plan_wish *wish, np_lesson *lesson)
{
    neap_status status = NEAP_OK;
    for (size_t i = 0; wish->forks && i < wish->forks->n && status == NEAP_OK; i++) {
        status = np_array_push(m->memory, &lesson->forks, wish->forks->items[i]);
    }
    return status;
}

/* What was found out on the plan, or for the one before it. */
static neap_status copy_unseen(neap_device *m, const np_pattern *pattern, np_lesson *lesson)
{
    neap_status status = NEAP_OK;
    if (pattern && pattern->timed.state == NP_TIMED_DONE && pattern->timed.is_seen && pattern->unseen.n == 0) {
        return np_unseen_list(&pattern->program, pattern->timed.is_seen, m->memory, &lesson->unseen);
    }
    for (size_t i = 0; pattern && i < pattern->unseen.n && status == NEAP_OK; i++) {
        status = np_array_push(m->memory, &lesson->unseen, pattern->unseen.items[i]);
    }
    return status;
}

static neap_status copy_times(neap_device *m, const np_timed *timed, np_lesson *lesson)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; timed && timed->state == NP_TIMED_DONE && i < timed->n_execs && status == NEAP_OK; i++) {
        status = np_array_push(m->memory, &lesson->measured_ns, timed->shortest_ns[i]);
    }
    return status;
}

/* Of all iterations that have a plan: a share of the load is one of the highest. */
uint64_t np_highest_load(const neap_device *m)
{
    uint64_t load = 0;
    for (size_t i = 0; i < m->patterns.n; i++) {
        load = m->patterns.items[i]->program.peak_load > load ? m->patterns.items[i]->program.peak_load : load;
    }
    return load;
}

static bool has_swaps(const neap_device *m)
{
    for (size_t i = 0; i < m->patterns.n; i++) {
        if (m->patterns.items[i]->program.swaps.n > 0) {
            return true;
        }
    }
    return false;
}

/* Host memory for what is above the limit at the peak. Of the load as it is on a plan: what a program needs once, at its
 * start, is no reason to pin memory. */
static uint64_t least_host(const neap_device *m, const np_lesson *lesson)
{
    uint64_t load = m->state == NEAP_STATE_RUN ? m->pattern->program.peak_load : 0;
    uint64_t limit = lesson->limit ? lesson->limit : (uint64_t)(lesson->limit_share * (double)load);
    return limit > 0 && limit < load && !lesson->is_quick ? load - limit : 0;
}

/* The limit is in force, and no work needed more yet. */
static bool is_held_without_plan(const neap_device *m)
{
    return m->is_beneath && m->limit_pages != UINT32_MAX && m->most_raised == 0;
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
    lesson->limit = m->asked_pages == UINT32_MAX ? 0 : m->asked_pages * m->device->page_bytes;
    lesson->limit_share = m->options.limit_share;
    lesson->highest_load = np_highest_load(m);
    lesson->min_block =
        m->is_beneath ? np_lesson_least_swapped(m->options.min_block, m->device->page_bytes) : m->options.min_block;
    lesson->seconds = m->options.plan_seconds * (wish->is_urgent ? URGENT_SHARE : 1);
    lesson->n_threads = m->options.plan_threads;
    lesson->seed = wish->seed;
    lesson->margin = m->margin;
    lesson->is_quick = wish->is_quick;
    lesson->is_replan = wish->is_replan;
    lesson->may_raise = m->is_beneath && !wish->is_replan && !has_swaps(m);
    lesson->is_cast_by_size = m->is_beneath;
    lesson->is_held = is_held_without_plan(m);
    lesson->is_hurried = m->is_beneath && (wish->is_urgent || (m->state != NEAP_STATE_RUN && !wish->is_replan));
    lesson->lap_ns = wish->lap_ns;
    lesson->rested_ns = wish->rested_ns;
    lesson->overhead = m->overhead;
    lesson->has_tolls = m->is_beneath;
    lesson->host_device = m->is_beneath ? m->device : NULL;
    lesson->host_bytes = m->host.held_bytes; /* of which the plan before this one gives its own back */
    lesson->host_least = least_host(m, lesson);
    status = copy_doubts(m, wish, lesson);
    if (status == NEAP_OK) {
        status = copy_times(m, wish->timed, lesson);
    }
    if (status == NEAP_OK) {
        status = copy_unseen(m, wish->unseen_of, lesson);
    }
    if (status == NEAP_OK) {
        status = copy_forks(m, wish, lesson);
    }
    if (status == NEAP_OK) {
        status = np_find_link(m, &lesson->link);
    }
    if (status == NEAP_OK) {
        status = np_list_residents(m, wish->is_anew, lesson);
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
        np_plan_wish wish = {
            .is_disturbed = m->recorder.is_disturbed, .seed = m->options.seed, .is_quick = m->is_beneath};
        wish.trace = np_recorder_take(&m->recorder);
        if (wish.trace) {
            (void)np_ask_for_plan(m, &wish);
        }
        np_recorder_begin(&m->recorder, m->live);
    }
}

/* Can the pattern be given up? */
static bool is_idle(const neap_device *m, const np_pattern *pattern)
{
    return pattern != m->pattern && pattern->n_live == 0;
}

/* The idle pattern whose kind came longest ago; as many as there are: none is idle. */
static size_t find_oldest(const neap_device *m, uint32_t *age)
{
    size_t oldest = m->patterns.n;
    *age = 0;
    for (size_t i = m->patterns.n; i-- > 0;) {
        uint32_t its_age = np_history_age(&m->history, m->patterns.items[i]->hash);
        if (is_idle(m, m->patterns.items[i]) && its_age >= *age) {
            *age = its_age;
            oldest = i;
        }
    }
    return oldest;
}

bool np_has_room_for_pattern(const neap_device *m)
{
    uint32_t age;
    return m->patterns.n < NP_MAX_PATTERNS || (find_oldest(m, &age) < m->patterns.n && age == NP_HISTORY);
}

static void give_up(neap_device *m, size_t index)
{
    np_refine_forget(m, m->patterns.items[index]);
    np_pattern_drop(m, m->patterns.items[index]);
    m->patterns.n--;
    for (size_t i = index; i < m->patterns.n; i++) {
        m->patterns.items[i] = m->patterns.items[i + 1];
    }
}

/* One for the same events takes the place of an older one that nothing needs any more; where there are too many, the one
 * that came longest ago makes room. False: none can. */
static bool add_pattern(neap_device *m, np_pattern *pattern)
{
    uint32_t age;
    for (size_t i = m->patterns.n; i-- > 0;) {
        if (m->patterns.items[i]->hash == pattern->hash && is_idle(m, m->patterns.items[i])) {
            give_up(m, i);
        }
    }
    if (m->patterns.n >= NP_MAX_PATTERNS) {
        size_t oldest = find_oldest(m, &age);
        if (oldest == m->patterns.n) {
            return false;
        }
        give_up(m, oldest);
    }
    m->patterns.items[m->patterns.n++] = pattern;
    return true;
}

/* Forks that were found while the plan was made. */
static void take_forks(neap_device *m, np_pattern *pattern)
{
    for (size_t i = 0; i < m->patterns.n; i++) {
        const np_pattern *other = m->patterns.items[i];
        for (size_t k = 0; k < other->forks.n && other->hash == pattern->hash; k++) {
            np_fork_note(m, pattern, other->forks.items[k]);
        }
    }
}

static neap_status make_pattern(neap_device *m, np_lesson *lesson, np_pattern **pattern)
{
    np_pattern_facts facts = {.exec_ns = lesson->exec_ns.items,
                              .name_at = lesson->name_at.items,
                              .names = lesson->names.items,
                              .names_bytes = lesson->names.n,
                              .forks = lesson->forks.items,
                              .n_forks = lesson->forks.n};
    neap_status status = lesson->status;
    if (status == NEAP_OK) {
        status = np_array_reserve(m->memory, &m->patterns, m->patterns.n + 1);
    }
    if (status == NEAP_OK) {
        status = np_pattern_create(&lesson->program, &facts, m->device->page_bytes, m->memory, pattern);
    }
    if (status == NEAP_OK) {
        (*pattern)->quiet_ns = lesson->lap_ns;
        (*pattern)->rested_ns = lesson->rested_ns;
    }
    return status;
}

/* Where a plan without swaps is followed meanwhile, the limit holds from the entering of this one on. */
static void set_limit(neap_device *m, const np_lesson *lesson, np_pattern *pattern)
{
    if (lesson->is_quick) {
        return;
    }
    if (lesson->limit_was_raised) {
        np_log(m, NEAP_LOG_WARN, "the limit is raised to %llu bytes, the lowest reached by swapping (load_min is %llu)",
               (unsigned long long)lesson->limit_used, (unsigned long long)lesson->load_min);
    }
    if (lesson->limit_used && (m->asked_pages == UINT32_MAX || lesson->limit_was_raised || lesson->overhead > 0)) {
        pattern->limit_pages = np_pages_within(m, lesson->limit_used);
        if (!m->is_beneath && !lesson->limit_was_raised) {
            m->asked_pages = pattern->limit_pages;
            np_limit_update(m);
        }
    }
}

/* A plan for these events that is there already, and no worse than this one; NULL: there is none. */
static np_pattern *find_no_worse(const neap_device *m, const np_pattern *pattern)
{
    for (size_t i = 0; i < m->patterns.n && pattern->program.swaps.n == 0; i++) {
        np_pattern *other = m->patterns.items[i];
        if (m->is_beneath && other->hash == pattern->hash && other->program.swaps.n == 0 &&
            other->n_forks_made >= pattern->n_forks_made && np_arena_could_fit(m, other) &&
            pattern->program.footprint >= other->program.footprint) {
            return other;
        }
    }
    return NULL;
}

/* Nothing comes to take their place. */
static void none_is_outdated(neap_device *m)
{
    for (size_t i = 0; i < m->patterns.n; i++) {
        m->patterns.items[i]->is_outdated = false;
    }
}

/* A share of the peak load is a limit as soon as the peak is known, with a plan or without. */
static void note_failure(neap_device *m, const np_lesson *lesson, neap_status status)
{
    m->n_failed_plans++;
    m->plan_not_before_ns = np_clock_ns() + (FIRST_PAUSE_NS << (m->n_failed_plans < 7 ? m->n_failed_plans : 7));
    if (lesson->is_replan) {
        none_is_outdated(m);
        np_log(m, NEAP_LOG_INFO, "no better plan within the limit: the one there is stays");
        return;
    }
    if (lesson->limit_used && m->asked_pages == UINT32_MAX && m->is_beneath && m->state == NEAP_STATE_RUN) {
        np_log(m, NEAP_LOG_WARN, "no plan within %llu bytes: %s; the limit is raised to %llu, what the pool holds",
               (unsigned long long)lesson->limit_used,
               lesson->error.text[0] ? lesson->error.text : neap_status_message(status),
               (unsigned long long)m->pattern->program.footprint);
        return;
    }
    if (lesson->limit_used && m->asked_pages == UINT32_MAX) {
        m->asked_pages = np_pages_within(m, lesson->limit_used);
        np_limit_update(m);
    }
    np_log(m, NEAP_LOG_WARN, "no plan: %s%s", lesson->error.text[0] ? lesson->error.text : neap_status_message(status),
           m->limit_pages == UINT32_MAX ? "" : "; blocks that were not used lately leave where the limit needs it");
}

/* The plan at hand stays, and what was measured since it was made is of it. */
static void hand_over_times(np_lesson *lesson, const np_pattern *pattern, np_pattern *kept)
{
    neap_trace *trace = kept->trace;
    if (lesson->lap_ns > 0 && trace) {
        kept->program.period_ns = pattern->program.period_ns;
        kept->trace = lesson->trace;
        lesson->trace = trace; /* freed with the lesson */
    }
}

static void keep(neap_device *m, np_lesson *lesson, np_pattern *pattern)
{
    np_pattern *no_worse;
    set_limit(m, lesson, pattern);
    take_forks(m, pattern);
    no_worse = find_no_worse(m, pattern);
    m->n_failed_plans = 0;
    if (no_worse && !lesson->is_quick) {
        np_plan_is_final(m, no_worse);
        hand_over_times(lesson, pattern, no_worse);
    }
    if (no_worse || !add_pattern(m, pattern)) {
        np_pattern_drop(m, pattern);
        none_is_outdated(m);
        return;
    }
    pattern->is_quick = pattern->is_provisional = lesson->is_quick;
    pattern->is_hurried = lesson->is_hurried && pattern->program.swaps.n > 0;
    pattern->taken_at = m->recorder.n_events;
    pattern->n_iterations = lesson->n_iterations;
    for (size_t i = 0; i < lesson->doubted_lives.n; i++) {
        pattern->doubted[lesson->doubted_lives.items[i]] = true;
    }
    for (size_t i = 0; i < lesson->doubts.n; i++) {
        (void)np_array_push(m->memory, &pattern->doubts, lesson->doubts.items[i]); /* or it is seen once more */
    }
    for (size_t i = 0; i < lesson->unseen.n; i++) {
        if (np_array_push(m->memory, &pattern->unseen, lesson->unseen.items[i]) != NEAP_OK) {
            break; /* the rest is planned with */
        }
    }
    pattern->trace = lesson->trace;
    pattern->is_disturbed = lesson->is_disturbed;
    lesson->trace = NULL;
    m->is_saved = false;
    np_log(m, NEAP_LOG_INFO, "a plan for %zu events: %llu bytes for a load of %llu, %zu swaps, %s %% overhead",
           pattern->program.events.n, (unsigned long long)pattern->program.footprint,
           (unsigned long long)pattern->program.peak_load, pattern->program.swaps.n,
           np_real_fixed(100 * np_pattern_plan_overhead(pattern), 2).text);
}

/* Something else was more urgent: whatever it was to make better is asked for again when there is time. */
static void ask_later(neap_device *m, const np_lesson *lesson, np_pattern *pattern)
{
    if (pattern) {
        np_pattern_drop(m, pattern);
    }
    if (lesson->is_refinement) {
        np_refine_take(m, NULL);
    }
    for (size_t i = 0; i < m->patterns.n; i++) {
        np_pattern *outdated = m->patterns.items[i];
        outdated->is_hurried |= outdated->is_outdated && outdated->program.swaps.n > 0;
        outdated->has_new_fork |= outdated->is_outdated && outdated->forks.n > outdated->n_forks_made;
        outdated->is_outdated = false;
    }
}

static void take_lesson(neap_device *m, np_lesson *lesson)
{
    np_pattern *pattern = NULL;
    neap_status status = make_pattern(m, lesson, &pattern);
    while (lesson->chunks.n > 0) {
        const np_slot *chunk = &lesson->chunks.items[lesson->chunks.n - 1];
        if (np_host_add(&m->host, chunk->host, chunk->bytes) != NEAP_OK) {
            break; /* given back with the lesson */
        }
        lesson->chunks.n--;
    }
    if (status == NEAP_OK && lesson->margin_used < lesson->margin) {
        np_log(m, NEAP_LOG_INFO,
               "within the limit, blocks leave right after their last use: there is no room for a margin");
    }
    if (lesson->is_cancelled) {
        ask_later(m, lesson, pattern);
    } else if (lesson->is_refinement) {
        np_refine_take(m, pattern);
    } else if (status != NEAP_OK) {
        note_failure(m, lesson, status);
    } else {
        keep(m, lesson, pattern);
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
    return last && last->n_entered == 0 && last->n_refused < 2 &&
           m->recorder.n_events < last->taken_at + 4 * last->program.events.n;
}

/* An iteration of a kind that has no plan is under way: at the next start it is known whole (replay.c). Equal layers in it
 * repeat, too, and are no iteration. One that goes on for much longer than any known one is a loop of its own. */
static bool is_within_iteration(const neap_device *m)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < m->patterns.n; i++) {
        uint64_t n = m->patterns.items[i]->program.events.n;
        longest = n > longest ? n : longest;
    }
    return m->state == NEAP_STATE_LEAVE && m->recorder.is_whole && m->recorder.n_events < MANY_ITERATIONS * longest;
}

/* Said once: a program that is slow for that reason should know it. */
static void say_unplanned(neap_device *m)
{
    if (!m->is_unplanned_said && m->is_beneath && m->limit_pages != UINT32_MAX && m->patterns.n == 0 &&
        m->stats.bytes_out > 0 && m->stats.n_events >= UNPLANNED_EVENTS) {
        m->is_unplanned_said = true;
        np_log(m, NEAP_LOG_WARN,
               "no iteration repeats so far: the limit of %llu bytes is held by moving blocks when work needs "
               "them, and the program waits for each. Where sizes differ in each iteration, fewer of "
               "them (padding to a few lengths) help",
               (unsigned long long)m->limit_pages * m->device->page_bytes);
    }
}

void np_look_for_pattern(neap_device *m)
{
    bool seen = false;
    bool is_ready;
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
    say_unplanned(m);
    if (m->is_beneath) {
        np_beneath_replan(m);
        is_busy = atomic_load(&m->learner.is_busy);
    }
    is_ready = !is_within_iteration(m) && np_recorder_is_ready(&m->recorder, &seen);
    if (is_ready) {
        np_limit_put_in_force(m);
    }
    if (is_ready && !is_busy && !has_fresh_plan(m) && np_clock_ns() >= m->plan_not_before_ns) {
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

void np_look_for_start(neap_device *m, neap_event_kind kind, uint64_t key)
{
    np_take_lesson(m);
    if (m->options.mode == NEAP_MODE_PLAN && !m->is_blind) {
        np_enter_if_start(m, kind, key);
    }
}
