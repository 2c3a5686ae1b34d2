/* detect_answer.c: what the detector answers, and the rule that prefers iterations to epochs. */
#include "trace/detect_state.h"

/* ---------------------------------------------------------------- epochs ---- */

/* Inner periods that may cover half of two periods. Loops of NP_LOOP_REPEATS or more nest less than 12 deep in 2^32
 * events and else overlap little, so their lengths sum up to less than 40 periods, and one that covers a period is
 * among the frequent ones that Misra and Gries' counters keep. */
#define COUNTERS 40

typedef struct counter {
    uint32_t period;
    uint32_t begin;   /* of one of its runs */
    uint64_t covered; /* events */
} counter;

typedef struct tally {
    counter counters[COUNTERS];
    uint32_t n;
    uint32_t begin, end; /* what lies outside does not count */
    uint32_t period;     /* nor do periods that are not below */
} tally;

/* The part of the loop inside the tally's span, 0 where it is too short there. */
static uint32_t clip(const tally *t, const np_run *loop, uint32_t loop_end, uint32_t *begin)
{
    uint32_t end = loop_end < t->end ? loop_end : t->end;
    *begin = loop->begin > t->begin ? loop->begin : t->begin;
    if (loop->period >= t->period || end <= *begin || (end - *begin) / loop->period < NP_LOOP_REPEATS) {
        return 0;
    }
    return end - *begin;
}

/* First pass: which periods are frequent. */
static void nominate(tally *t, const np_run *loop, uint32_t loop_end)
{
    uint32_t begin, least = clip(t, loop, loop_end, &begin), kept = 0;
    if (!least) {
        return;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->counters[i].period == loop->period) {
            t->counters[i].covered += least;
            return;
        }
    }
    if (t->n < COUNTERS) {
        t->counters[t->n++] = (counter){loop->period, begin, least};
        return;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        least = t->counters[i].covered < least ? (uint32_t)t->counters[i].covered : least;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        t->counters[i].covered -= least;
        if (t->counters[i].covered) {
            t->counters[kept++] = t->counters[i];
        }
    }
    t->n = kept;
}

/* Second pass: how much they cover. */
static void count(tally *t, const np_run *loop, uint32_t loop_end)
{
    uint32_t begin, covered = clip(t, loop, loop_end, &begin);
    for (uint32_t i = 0; covered && i < t->n; i++) {
        if (t->counters[i].period == loop->period) {
            t->counters[i].covered += covered;
            return;
        }
    }
}

static void for_each_loop(const np_detector *d, tally *t, void (*visit)(tally *, const np_run *, uint32_t),
                          uint64_t *work)
{
    for (size_t i = d->loops.n; i > 0 && d->loops.items[i - 1].run.end > t->begin; i--) {
        visit(t, &d->loops.items[i - 1].run, d->loops.items[i - 1].run.end);
        ++*work;
    }
    for (uint32_t i = 0; i < d->n_tracks; i++) {
        if (!d->tracks[i].refused) {
            visit(t, &d->tracks[i].run, d->n);
        }
    }
}

uint32_t np_detector_epoch(const np_detector *d, const np_run *run, uint64_t *work)
{
    tally t;
    const counter *chosen = NULL;
    int64_t swing = -1;

    if (2 * run->period < NP_LOOP_REPEATS) { /* no room for any */
        return 0;
    }
    t.n = 0; /* the counters need no setting: this is called for every run */
    t.begin = run->begin;
    t.end = run->begin + 2 * run->period;
    t.period = run->period;
    for_each_loop(d, &t, nominate, work);
    for (uint32_t i = 0; i < t.n; i++) {
        t.counters[i].covered = 0;
    }
    if (t.n) {
        for_each_loop(d, &t, count, work);
    }
    for (uint32_t i = 0; i < t.n; i++) {
        const counter *c = &t.counters[i];
        bool more =
            !chosen || c->covered > chosen->covered || (c->covered == chosen->covered && c->period < chosen->period);
        if (c->covered < run->period || !more) {
            continue;
        }
        if (swing < 0) {
            swing = np_detector_swing(d, run->begin, run->begin + run->period, work);
        }
        if (swing > 0 && np_detector_swing(d, c->begin, c->begin + c->period, work) >= swing - swing / 2) {
            chosen = c;
        }
    }
    return chosen ? chosen->period : 0;
}

/* ---------------------------------------------------------------- answers ---- */

bool np_detector_current(const np_detector *detector, np_run *run)
{
    if (detector->current == NP_TRACKS_MAX) {
        return false;
    }
    *run = detector->tracks[detector->current].run;
    run->end = detector->n;
    return true;
}

/* Makes *best the longest run of `period` that overlaps [begin, end); every one if period is 0. */
static bool find_longest(const np_detector *d, uint32_t period, uint32_t begin, uint32_t end, np_track *best)
{
    bool found = false;
    for (size_t i = 0; i < d->loops.n + d->n_tracks; i++) {
        np_track t = i < d->loops.n ? d->loops.items[i] : d->tracks[i - d->loops.n];
        t.run.end = i < d->loops.n ? t.run.end : d->n;
        if (!t.refused && (!period || t.run.period == period) && t.run.begin < end && t.run.end > begin &&
            (!found || np_run_is_better(&t.run, &best->run))) {
            *best = t;
            found = true;
        }
    }
    return found;
}

/* A run of two periods and little more may end with the file before its turn to be noticed has come: a recording of
 * two iterations. Tries every period that would make a better answer. */
static void find_at_end(const np_detector *d, np_track *best)
{
    uint64_t work = 0;
    for (uint32_t period = 1; period <= d->n / 2; period++) {
        uint32_t length = best->run.end - best->run.begin + 1;
        np_track t = {.run = {0, d->n, period, NEAP_NEVER, 0}};
        if (length < 2 * period) {
            length = 2 * period;
        }
        if (length <= d->n && np_detector_live_may_repeat(d, period) &&
            np_text_equal(d, d->n, d->n - period, length - period)) {
            t.run.begin = np_detector_find_begin(d, period, &work);
            if (np_detector_judge(d, &t, &work)) {
                *best = t;
            }
        }
    }
}

/* The keys themselves, once: hashes cannot be trusted where somebody made the file to deceive them. */
static bool holds(const np_detector *d, const np_run *run)
{
    const uint64_t *keys = d->keys.items;
    for (uint32_t i = run->begin + run->period; i < run->end; i++) {
        if (keys[i] != keys[i - run->period]) {
            return false;
        }
    }
    return true;
}

void np_detector_best(const np_detector *detector, np_run *run)
{
    np_track best = detector->best, other;
    if (find_longest(detector, 0, 0, UINT32_MAX, &other) &&
        (best.run.period == 0 || np_run_is_better(&other.run, &best.run))) {
        best = other;
    }
    find_at_end(detector, &best);
    /* Epochs of epochs: each step is to a period an eighth as long or less. */
    while (best.inner && find_longest(detector, best.inner, best.run.begin, best.run.end, &other)) {
        best = other;
    }
    *run = holds(detector, &best.run) ? best.run : (np_run){0};
}

uint64_t np_detector_work(const np_detector *detector)
{
    return detector->work;
}

bool np_detector_is_valid(const np_detector *d)
{
    if (d->keys.n != d->n || d->points.n != (size_t)d->n + 1 || !np_recall_is_valid(&d->grams) ||
        !np_recall_is_valid(&d->windows) || (d->current != NP_TRACKS_MAX && d->current >= d->n_tracks)) {
        return false;
    }
    for (uint32_t i = 0; i < d->n_tracks; i++) {
        const np_run *run = &d->tracks[i].run;
        if (run->period == 0 || run->begin > d->n || d->n - run->begin < 2 * run->period) {
            return false;
        }
        for (uint32_t k = run->begin + run->period; k < d->n; k++) {
            if (d->keys.items[k] != d->keys.items[k - run->period]) {
                return false;
            }
        }
        if (run->begin > 0 && d->keys.items[run->begin - 1] == d->keys.items[run->begin - 1 + run->period]) {
            return false;
        }
    }
    for (size_t i = 1; i < d->loops.n; i++) {
        if (d->loops.items[i - 1].run.end > d->loops.items[i].run.end) {
            return false;
        }
    }
    return true;
}
