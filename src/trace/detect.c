/* detect.c: the online period detector.
 *
 * Every run that reaches the present is tracked: one comparison of keys an event each, and the run ends at its first
 * failure. What remains is to notice that a run has begun, and that takes proposals: periods p that might hold. A
 * proposal is checked in O(1), by hashes of the last p and of the p keys before them and by the sum of the live sizes'
 * hashes; one that holds is extended to its begin by a galloping search on the prefix hashes. Proposals come from
 *
 *   - counters for each p below 32: equal keys in a row at distance p;
 *   - grams: the distance to where the last 56 keys ended before. That finds nearly everything, at the end of the second
 *     period or a few events later, but not a period in which every 56 keys occur more than once;
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
    made->gram_power = 1;
    for (uint32_t i = 0; i < NP_GRAM; i++) {
        made->gram_power *= NP_TEXT_BASE;
    }
    made->small_powers[0] = 1;
    for (uint32_t i = 1; i < NP_POWERS; i++) {
        made->small_powers[i] = np_text_mul(made->small_powers[i - 1], NP_TEXT_BASE);
    }
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

/* Room for all that one event can add, so that nothing fails halfway. */
static neap_status reserve(np_detector *d)
{
    if (d->n >= NP_DETECTOR_EVENTS_MAX) {
        return NEAP_TOO_LARGE;
    }
    if (np_array_reserve(d->memory, &d->keys, d->keys.n + 1) != NEAP_OK ||
        np_array_reserve(d->memory, &d->points, d->points.n + 1) != NEAP_OK ||
        np_array_reserve(d->memory, &d->large_powers, d->large_powers.n + 1) != NEAP_OK ||
        np_array_reserve(d->memory, &d->loops, d->loops.n + d->n_tracks) != NEAP_OK ||
        np_recall_reserve(&d->grams, d->memory, NP_LAG) != NEAP_OK ||
        np_recall_reserve(&d->windows, d->memory, 2 * NP_LEVELS + d->wake_windows) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    return NEAP_OK;
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

/* Chooses the answer anew; called where a track came or went. */
static void choose_current(np_detector *d)
{
    uint32_t chosen = NP_TRACKS_MAX;
    for (uint32_t i = 0; i < d->n_tracks; i++) {
        const np_run *a = &d->tracks[i].run;
        const np_run *b = &d->tracks[chosen == NP_TRACKS_MAX ? i : chosen].run;
        bool wins = a->begin != b->begin ? a->begin < b->begin : a->period < b->period;
        if (!d->tracks[i].refused && !d->tracks[i].inner && (chosen == NP_TRACKS_MAX || wins)) {
            chosen = i;
        }
    }
    for (uint32_t i = 0; i < d->n_tracks; i++) {
        np_run *run = &d->tracks[i].run;
        run->first_answer = i != chosen ? NEAP_NEVER : run->first_answer == NEAP_NEVER ? d->n : run->first_answer;
    }
    d->current = chosen;
    d->work += d->n_tracks;
}

bool np_detector_live_may_repeat(const np_detector *d, uint32_t period)
{
    const np_point *now = &d->points.items[d->n];
    const np_point *then = now - period;
    int64_t growth = (int64_t)((uint64_t)now->load - (uint64_t)then->load);
    return now->live == then->live || (growth > 0 && growth <= NP_LEAK_BYTES_MAX);
}

bool np_detector_judge(const np_detector *d, np_track *t, uint64_t *work)
{
    const np_point *now = &d->points.items[d->n];
    const np_point *then = now - t->run.period;
    if (now->live != then->live) {
        t->run.leak_bytes = now->load - then->load;
        if (t->run.leak_bytes >
            np_detector_swing(d, t->run.begin, t->run.begin + t->run.period, work) / NP_LEAK_SHARE) {
            return false;
        }
    }
    t->inner = np_detector_epoch(d, &t->run, work);
    return true;
}

/* Tracks the run of `period` that reaches the present. */
static void track(np_detector *d, uint32_t period, uint32_t begin)
{
    np_track made = {.run = {begin, d->n, period, NEAP_NEVER, 0}};
    for (uint32_t i = 0; i < d->n_tracks; i++) {
        if (period % d->tracks[i].run.period == 0 && d->tracks[i].run.begin <= begin) {
            return;
        }
    }
    if (d->n_tracks < NP_TRACKS_MAX) {
        made.refused = !np_detector_judge(d, &made, &d->work);
        d->tracks[d->n_tracks++] = made;
        choose_current(d);
    }
}

static void finish(np_detector *d, np_track ended)
{
    ended.run.end = d->n - 1;
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

/* Compares the newest key with the one a period ago in every track. */
static void follow(np_detector *d)
{
    const uint64_t *now = &d->keys.items[d->n - 1];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < d->n_tracks; i++) {
        if (*now == *(now - d->tracks[i].run.period)) {
            if (kept != i) {
                d->tracks[kept] = d->tracks[i];
            }
            kept++;
        } else {
            finish(d, d->tracks[i]);
        }
    }
    d->work += d->n_tracks;
    if (kept != d->n_tracks) {
        d->n_tracks = kept;
        choose_current(d);
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
        track(d, period, np_detector_find_begin(d, period, &d->work));
    }
}

/* A counter has reached its period: by equal keys, or by keys that agree in the part the counters see. */
static void propose_counted(np_detector *d, uint32_t period)
{
    const uint64_t *end = d->keys.items + d->n;
    uint32_t equal = 0;
    while (equal < period && end[-1 - (ptrdiff_t)equal] == end[-1 - (ptrdiff_t)(equal + period)]) {
        equal++;
    }
    d->work += equal;
    d->matches[NP_SHORT - period] = (uint16_t)equal;
    if (equal == period && np_detector_live_may_repeat(d, period)) {
        track(d, period, np_detector_find_begin(d, period, &d->work));
    }
}

static void propose_short(np_detector *d)
{
    uint16_t letter = (uint16_t)(d->keys.items[d->n - 1] >> 48);
    uint32_t at = (d->n - 1) % NP_SHORT;
    uint16_t window[NP_SHORT]; /* the last NP_SHORT letters, oldest first; a copy, so that the loop can be vectorised */
    uint16_t any = 0;
    memcpy(window, d->recent + at, sizeof window);
    for (uint16_t i = 0; i < NP_SHORT; i++) {
        uint16_t longer = (uint16_t)(d->matches[i] + 1);
        d->matches[i] = window[i] == letter ? longer : 0;
        any |= (uint16_t)(d->matches[i] == NP_SHORT - i);
    }
    d->recent[at] = d->recent[at + NP_SHORT] = letter;
    d->work++;
    for (uint32_t period = 1; any && period < NP_SHORT && 2 * period <= d->n; period++) {
        if (d->matches[NP_SHORT - period] == period) {
            propose_counted(d, period);
        }
    }
}

/* Looks up the gram that ended at a point not long ago. */
static void recall_gram(np_detector *d, uint32_t end)
{
    uint32_t before = np_recall_swap(&d->grams, d->gram_tags[end % NP_LAG], end);
    if (before == NP_RECALL_NONE) {
        d->fresh = end;
    } else {
        np_detector_propose(d, end - before);
    }
}

static void propose_by_gram(np_detector *d)
{
    uint32_t lag = np_recall_is_large(&d->grams) ? NP_LAG - 1 : 0;
    d->gram = d->gram * NP_TEXT_BASE + d->keys.items[d->n - 1];
    if (d->n > NP_GRAM) {
        d->gram -= d->gram_power * d->keys.items[d->n - 1 - NP_GRAM];
    }
    d->gram_tags[d->n % NP_LAG] = (uint32_t)(d->gram >> 32);
    np_recall_prefetch(&d->grams, d->gram_tags[d->n % NP_LAG]);
    while (d->n - d->n_grams > lag) {
        recall_gram(d, ++d->n_grams);
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
    propose_short(detector);
    propose_by_gram(detector);
    np_detector_propose_by_windows(detector);
    return NEAP_OK;
}
