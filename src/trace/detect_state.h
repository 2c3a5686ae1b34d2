/* detect_state.h: what the files of the detector share. detect.c says how it works. */
#ifndef NP_TRACE_DETECT_STATE_H
#define NP_TRACE_DETECT_STATE_H

#include "trace/detect.h"
#include "trace/recall.h"

/* Prefix hashes are polynomials modulo the prime 2^61 - 1. (Modulo 2^64 some strings, Thue and Morse's among them, make
 * every base fail.) */
#define NP_TEXT_PRIME (((uint64_t)1 << 61) - 1)
#define NP_TEXT_BASE ((uint64_t)0x11ac7cd37a9b6a5d)

static inline uint64_t np_text_mul(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    uint64_t sum = (uint64_t)(product & NP_TEXT_PRIME) + (uint64_t)(product >> 61);
    return sum >= NP_TEXT_PRIME ? sum - NP_TEXT_PRIME : sum;
}

static inline uint64_t np_text_sub(uint64_t a, uint64_t b)
{
    return a >= b ? a - b : a + NP_TEXT_PRIME - b;
}

/* The state of the program before an event: point i lies between the events i - 1 and i. */
typedef struct np_point {
    uint64_t sum;  /* hash of all keys before it */
    uint64_t live; /* sum of the hashes of the live sizes, relative to the first point */
    int64_t load;  /* bytes of live blocks, relative to the first point */
} np_point;

/* A run that reaches the present. */
typedef struct np_track {
    np_run run;     /* `end` is kept only when it ends */
    uint32_t inner; /* period of its iterations where it is an epoch, else 0 */
    bool refused;   /* leaves other live blocks behind: no run, kept so that it is not looked at again */
} np_track;

/* Primitive squares that end at one point have periods that grow at least like Fibonacci's numbers: fewer than 47 fit
 * into 2^32 events. */
#define NP_TRACKS_MAX 48

#define NP_SHORT 64  /* periods below are counted one by one */
#define NP_GRAM 56   /* keys in a gram */
#define NP_LEVELS 51 /* the longest is of 3 * 2^30 keys */
#define NP_POWERS 1024

/* Windows of one length (detect_windows.c). */
typedef struct np_level {
    uint32_t length;
    uint32_t grid_log; /* those that end at multiples of 2^grid_log are entered */
    uint32_t stride;   /* so many events apart the last 2^grid_log of them are looked up; a multiple of that */
    uint64_t look_at;  /* the next time */
    uint64_t power;    /* NP_TEXT_BASE to the length */
} np_level;

struct np_detector {
    const neap_memory *memory;
    uint32_t n;    /* events fed */
    uint32_t room; /* events that fit into what is allocated */
    np_array(uint64_t) keys;
    np_array(np_point) points; /* n + 1 of them */

    uint64_t small_powers[NP_POWERS]; /* NP_TEXT_BASE to the i-th */
    np_array(uint64_t) large_powers;  /* NP_TEXT_BASE to the (i * NP_POWERS)-th */

    /* The last NP_SHORT keys, a byte of each: a ring written twice, so that a window of it is contiguous. */
    uint8_t recent[2 * NP_SHORT];
    uint8_t matches[NP_SHORT];       /* [NP_SHORT - p]: equal ones in a row at distance p, at most 255 */
    uint8_t short_periods[NP_SHORT]; /* [NP_SHORT - p]: p */

    uint64_t gram;       /* rolling hash of the last NP_GRAM keys */
    uint64_t gram_power; /* its base to the NP_GRAM-th */
    np_recall grams;     /* chosen grams: where each ended last */
    bool no_grams;       /* they propose nothing: tests of the windows, which grams are quicker than */
    uint32_t fresh;      /* where a chosen gram ended last that had not been seen before; at first NP_GRAM */

    np_recall windows; /* windows seen (detect_windows.c): where each ended last */
    np_level levels[NP_LEVELS];
    uint32_t n_levels;     /* that are not longer than the text will be when there is no more room */
    size_t wake_windows;   /* that one event enters at most: as if they all woke */
    uint32_t n_hidden;     /* levels that sleep since the answer hides them, from the lowest on */
    uint32_t hidden_least; /* one of them wakes when a quarter of the answer's length falls below */
    uint32_t n_ripe;       /* levels, from the lowest on, whose windows fit between `fresh` and the present */
    uint64_t ripe_at;      /* the point at which there will be one more */

    np_track tracks[NP_TRACKS_MAX];
    uint32_t n_tracks;
    uint32_t current; /* index of the track that is the answer, NP_TRACKS_MAX: none */

    np_track best;            /* the best run that has ended; period 0: none */
    np_array(np_track) loops; /* runs of NP_LOOP_REPEATS periods or more that have ended, in order of their ends */
    uint64_t work;
};

/* Whether a is a better last answer than b: the longer run, then the smaller period, then the smaller begin. */
bool np_run_is_better(const np_run *a, const np_run *b);

static inline uint64_t np_text_power(const np_detector *d, uint32_t exponent)
{
    return np_text_mul(d->small_powers[exponent % NP_POWERS], d->large_powers.items[exponent / NP_POWERS]);
}

/* Whether the `length` keys before point a equal those before point b < a. */
static inline bool np_text_equal(const np_detector *d, uint32_t a, uint32_t b, uint32_t length)
{
    const np_point *p = d->points.items;
    return np_text_sub(p[a].sum, p[b].sum) ==
           np_text_mul(np_text_sub(p[a - length].sum, p[b - length].sum), np_text_power(d, length));
}

/* The begin of the run of `period` that reaches the present; its last two periods are known to be equal. */
uint32_t np_detector_find_begin(const np_detector *detector, uint32_t period, uint64_t *work);

/* Looks whether `period` holds at present, and tracks its run if it does. Those below NP_SHORT are left to counters. */
void np_detector_propose(np_detector *detector, uint32_t period);

/* Tracks the run of `period` that has reached the present from `begin` on, unless its period is a multiple of another's. */
void np_detector_track(np_detector *detector, uint32_t period, uint32_t begin);

/* Where proposals come from: detect_short.c and detect_windows.c. Each is called once an event. */
void np_detector_propose_short(np_detector *detector);
void np_detector_end_short(np_detector *detector, const np_run *run); /* a run of a period below NP_SHORT has ended */
void np_detector_propose_by_gram(np_detector *detector);
void np_detector_propose_by_windows(np_detector *detector);

void np_detector_init_levels(np_detector *detector);

/* Counts in the levels that are not longer than n events. */
void np_detector_add_levels(np_detector *detector, uint32_t n);

/* Whether the live sizes at present are those a period ago, but for a growth that may be a leak: to be judged. */
static inline bool np_detector_live_may_repeat(const np_detector *d, uint32_t period)
{
    const np_point *now = &d->points.items[d->n];
    const np_point *then = now - period;
    int64_t growth = (int64_t)((uint64_t)now->load - (uint64_t)then->load);
    return now->live == then->live || (growth > 0 && growth <= NP_LEAK_BYTES_MAX);
}

/* Completes a run that reaches the present, of which begin and period are known. False where the live sizes are not those
 * a period ago, nor those and a small leak. */
bool np_detector_judge(const np_detector *detector, np_track *track, uint64_t *work);

/* Highest minus lowest load at the points of [begin, end]. */
int64_t np_detector_swing(const np_detector *detector, uint32_t begin, uint32_t end, uint64_t *work);

/* The period of the iterations inside where [begin, begin + 2 * period) is two periods of an epoch, else 0. */
uint32_t np_detector_epoch(const np_detector *detector, const np_run *run, uint64_t *work);

#endif
