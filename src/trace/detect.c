/* detect.c: the online period detector.
 *
 * Every run that reaches the present is tracked: one comparison of keys an event each, and the run ends at its first
 * failure. What remains is to notice that a run has begun, and that takes proposals: periods p that might hold. A
 * proposal is checked in O(1), by hashes of the last p and of the p keys before them and by the sum of the live sizes'
 * hashes; one that holds is extended to its begin by a galloping search on the prefix hashes. Proposals come from
 *
 *   - counters for each p below 64 (detect_short.c): equal keys in a row at distance p;
 *   - grams: the distance to where one of the last 56-grams ended before, for one in eight of them. That finds nearly
 *     everything at the end of the second period or a few events later, but not a period in which every 56 keys occur
 *     more than once;
 *   - windows of many lengths (detect_windows.c), which leave no run of three periods unknown.
 *
 * Multiples of a period are never tracked, since they say nothing new; so the tracks are primitive squares that end at
 * the present, of which there are fewer than 47 at a time and a handful in practice. */
#include "trace/detect.h"

#include <string.h>

#include "base/hash.h"
#include "trace/detect_state.h"

/* ---------------------------------------------------------------- keys ---- */

enum { SALT_MALLOC = 1, SALT_FREE, SALT_EXEC, SALT_LIVE };

np_step np_step_of_malloc(uint64_t bytes)
{
    return (np_step){np_hash_combine(SALT_MALLOC, bytes), np_hash_combine(SALT_LIVE, bytes), (int64_t)bytes};
}

np_step np_step_of_free(uint64_t bytes, uint64_t age)
{
    uint64_t key = np_hash_combine(np_hash_combine(SALT_FREE, bytes), age);
    return (np_step){key, 0 - np_hash_combine(SALT_LIVE, bytes), -(int64_t)bytes};
}

np_step np_step_of_exec(uint64_t name_hash)
{
    return (np_step){np_hash_combine(SALT_EXEC, name_hash), 0, 0};
}

/* ---------------------------------------------------------------- making ---- */

neap_status np_detector_create(const neap_memory *memory, np_detector **detector)
{
    np_detector *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    if (!made) {
        return NEAP_NO_MEMORY;
    }
    made->memory = np_memory_or_default(memory);
    made->current = NP_TRACKS_MAX;
    made->fresh = NP_GRAM;
    made->gram_power = 1;
    for (uint32_t i = 0; i < NP_GRAM; i++) {
        made->gram_power *= NP_TEXT_BASE;
    }
    for (uint32_t i = 0; i < NP_SHORT; i++) {
        made->short_periods[i] = (uint8_t)(NP_SHORT - i);
    }
    made->small_powers[0] = 1;
    for (uint32_t i = 1; i < NP_POWERS; i++) {
        made->small_powers[i] = np_text_mul(made->small_powers[i - 1], NP_TEXT_BASE);
    }
    np_detector_init_levels(made);
    if (np_array_push(made->memory, &made->points, ((np_point){0})) != NEAP_OK ||
        np_array_push(made->memory, &made->large_powers, (uint64_t)1) != NEAP_OK) {
        np_detector_free(made);
        return NEAP_NO_MEMORY;
    }
    *detector = made;
    return NEAP_OK;
}

void np_detector_free(np_detector *detector)
{
    if (!detector) {
        return;
    }
    np_array_free(detector->memory, &detector->keys);
    np_array_free(detector->memory, &detector->points);
    np_array_free(detector->memory, &detector->large_powers);
    np_array_free(detector->memory, &detector->loops);
    np_recall_free(&detector->grams, detector->memory);
    np_recall_free(&detector->windows, detector->memory);
    np_memory_free(detector->memory, detector, 1, sizeof *detector);
}

#define ROOM 64 /* events for which room is made at once */

static neap_status make_room(np_detector *d)
{
    uint32_t n = d->n < NP_DETECTOR_EVENTS_MAX - ROOM ? d->n + ROOM : NP_DETECTOR_EVENTS_MAX;
    if (d->n >= NP_DETECTOR_EVENTS_MAX) {
        return NEAP_TOO_LARGE;
    }
    np_detector_add_levels(d, n);
    if (np_array_reserve(d->memory, &d->keys, n) != NEAP_OK ||
        np_array_reserve(d->memory, &d->points, (size_t)n + 1) != NEAP_OK ||
        np_array_reserve(d->memory, &d->large_powers, d->large_powers.n + 1) != NEAP_OK ||
        np_array_reserve(d->memory, &d->loops, d->loops.n + NP_TRACKS_MAX) != NEAP_OK ||
        np_recall_reserve(&d->grams, d->memory, ROOM) != NEAP_OK ||
        np_recall_reserve(&d->windows, d->memory, d->wake_windows) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    d->room = n;
    return NEAP_OK;
}

/* Room for all that one event can add, so that nothing fails halfway. */
static inline neap_status reserve(np_detector *d)
{
    bool fits = d->n < d->room && d->loops.n + d->n_tracks <= d->loops.capacity &&
                np_recall_has_room(&d->windows, d->wake_windows);
    return fits ? NEAP_OK : make_room(d);
}

static void append(np_detector *d, np_step step)
{
    const np_point *last = &d->points.items[d->n];
    uint64_t letter = step.key >> 3;
    uint64_t sum = np_text_mul(last->sum, NP_TEXT_BASE) + (letter == NP_TEXT_PRIME ? 0 : letter);
    d->points.items[d->n + 1] = (np_point){
        .sum = sum >= NP_TEXT_PRIME ? sum - NP_TEXT_PRIME : sum,
        .live = last->live + step.live_hash_delta,
        /* Relative loads of a program stay far below 2^63; modulo 2^64 keeps nonsense defined. */
        .load = (int64_t)((uint64_t)last->load + (uint64_t)step.live_bytes_delta),
    };
    if ((d->n + 1) % NP_POWERS == 0) {
        uint64_t whole = np_text_mul(d->small_powers[NP_POWERS - 1], NP_TEXT_BASE);
        d->large_powers.items[d->large_powers.n] = np_text_mul(d->large_powers.items[d->large_powers.n - 1], whole);
        d->large_powers.n++;
    }
    d->keys.items[d->n] = step.key;
    d->keys.n = ++d->n;
    d->points.n = (size_t)d->n + 1;
}

/* ---------------------------------------------------------------- text ---- */

uint32_t np_detector_find_begin(const np_detector *d, uint32_t period, uint64_t *work)
{
    uint32_t most = d->n - period;          /* keys that have one a period before them */
    uint32_t good = period, bad = most + 1; /* that many are equal, that many are not */
    for (uint32_t step = period; bad - good > step; step *= 2) {
        ++*work;
        if (!np_text_equal(d, d->n, most, good + step)) {
            bad = good + step;
            break;
        }
        good += step;
        if (step > UINT32_MAX / 2) {
            break;
        }
    }
    while (bad - good > 1) {
        uint32_t middle = good + (bad - good) / 2;
        ++*work;
        if (np_text_equal(d, d->n, most, middle)) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    return most - good;
}

/* ---------------------------------------------------------------- tracks ---- */

bool np_run_is_better(const np_run *a, const np_run *b)
{
    uint32_t length_a = a->end - a->begin, length_b = b->end - b->begin;
    if (length_a != length_b) {
        return length_a > length_b;
    }
    return a->period != b->period ? a->period < b->period : a->begin < b->begin;
}

int64_t np_detector_swing(const np_detector *d, uint32_t begin, uint32_t end, uint64_t *work)
{
    int64_t low = d->points.items[begin].load, high = low;
    for (uint32_t i = begin + 1; i <= end; i++) {
        int64_t load = d->points.items[i].load;
        low = load < low ? load : low;
        high = load > high ? load : high;
    }
    *work += end - begin;
    return high - low;
}

/* Whether a is a better answer now than b. Both reach the present, so the longer one began first. */
static bool is_better_now(const np_track *a, const np_track *b)
{
    return a->run.begin != b->run.begin ? a->run.begin < b->run.begin : a->run.period < b->run.period;
}

static bool may_answer(const np_track *t)
{
    return !t->refused && !t->inner;
}

/* Makes a track the answer where it is better than the present one. */
static void offer(np_detector *d, uint32_t index)
{
    np_track *t = &d->tracks[index];
    if (!may_answer(t) || (d->current != NP_TRACKS_MAX && !is_better_now(t, &d->tracks[d->current]))) {
        return;
    }
    if (d->current != NP_TRACKS_MAX) {
        d->tracks[d->current].run.first_answer = NEAP_NEVER;
    }
    t->run.first_answer = d->n;
    d->current = index;
}

/* The answer has ended: chooses the best of the others. */
static void choose_current(np_detector *d)
{
    uint32_t chosen = NP_TRACKS_MAX;
    for (uint32_t i = 0; i < d->n_tracks; i++) {
        if (may_answer(&d->tracks[i]) &&
            (chosen == NP_TRACKS_MAX || is_better_now(&d->tracks[i], &d->tracks[chosen]))) {
            chosen = i;
        }
    }
    if (chosen != NP_TRACKS_MAX) {
        d->tracks[chosen].run.first_answer = d->n;
    }
    d->current = chosen;
    d->work += d->n_tracks;
}

bool np_detector_judge(const np_detector *d, np_track *t, uint64_t *work)
{
    const np_point *now = &d->points.items[d->n];
    const np_point *then = now - t->run.period;
    if (now->live != then->live) {
        if (!np_detector_live_may_repeat(d, t->run.period)) {
            return false;
        }
        t->run.leak_bytes = now->load - then->load;
        if (t->run.leak_bytes >
            np_detector_swing(d, t->run.begin, t->run.begin + t->run.period, work) / NP_LEAK_SHARE) {
            return false;
        }
    }
    t->inner = np_detector_epoch(d, &t->run, work);
    return true;
}

void np_detector_track(np_detector *d, uint32_t period, uint32_t begin)
{
    np_track made = {.run = {begin, d->n, period, NEAP_NEVER, 0}};
    for (uint32_t i = 0; i < d->n_tracks; i++) {
        if (d->tracks[i].run.begin <= begin && period % d->tracks[i].run.period == 0) {
            return;
        }
    }
    if (d->n_tracks < NP_TRACKS_MAX) {
        made.refused = !np_detector_judge(d, &made, &d->work);
        d->tracks[d->n_tracks++] = made;
        offer(d, d->n_tracks - 1);
    }
}

static void finish(np_detector *d, np_track ended)
{
    ended.run.end = d->n - 1;
    if (ended.run.period < NP_SHORT) {
        np_detector_end_short(d, &ended.run);
    }
    if (ended.refused) {
        return;
    }
    if (d->best.run.period == 0 || np_run_is_better(&ended.run, &d->best.run)) {
        d->best = ended;
    }
    if ((ended.run.end - ended.run.begin) / ended.run.period >= NP_LOOP_REPEATS) {
        d->loops.items[d->loops.n++] = ended;
    }
}

/* Ends the tracks in which the newest key is not the one a period ago, from the first such one on. */
static void end_tracks(np_detector *d, uint32_t first)
{
    const uint64_t *now = &d->keys.items[d->n - 1];
    uint32_t kept = first, current = d->current < first ? d->current : NP_TRACKS_MAX;
    for (uint32_t i = first; i < d->n_tracks; i++) {
        if (*now != *(now - d->tracks[i].run.period)) {
            finish(d, d->tracks[i]);
            continue;
        }
        current = i == d->current ? kept : current;
        d->tracks[kept++] = d->tracks[i];
    }
    d->n_tracks = kept;
    if (current != d->current && current == NP_TRACKS_MAX) {
        choose_current(d);
    } else {
        d->current = current;
    }
}

/* Compares the newest key with the one a period ago in every track. */
static void follow(np_detector *d)
{
    const uint64_t *now = &d->keys.items[d->n - 1];
    d->work += d->n_tracks;
    for (uint32_t i = 0; i < d->n_tracks; i++) {
        if (*now != *(now - d->tracks[i].run.period)) {
            end_tracks(d, i);
            return;
        }
    }
}

/* ---------------------------------------------------------------- proposals ---- */

/* Multiples of a tracked period need no look: they start where it does. */
void np_detector_propose(np_detector *d, uint32_t period)
{
    d->work++;
    if (period < NP_SHORT || period > d->n / 2 || !np_detector_live_may_repeat(d, period)) {
        return;
    }
    for (uint32_t i = 0; i < d->n_tracks; i++) {
        const np_run *run = &d->tracks[i].run;
        if (run->period == period || (period % run->period == 0 && d->n - run->begin >= 2 * period)) {
            return;
        }
    }
    if (np_text_equal(d, d->n, d->n - period, period)) {
        np_detector_track(d, period, np_detector_find_begin(d, period, &d->work));
    }
}

neap_status np_detector_feed(np_detector *detector, np_step step)
{
    neap_status status = reserve(detector);
    if (status != NEAP_OK) {
        return status;
    }
    append(detector, step);
    follow(detector);
    np_detector_propose_short(detector);
    np_detector_propose_by_gram(detector);
    np_detector_propose_by_windows(detector);
    return NEAP_OK;
}
