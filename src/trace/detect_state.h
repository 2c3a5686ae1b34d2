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
    bool refused;   /* leaks too much to be a run: kept so that it is not looked at again */
} np_track;

/* Primitive squares that end at one point have periods that grow at least like Fibonacci's numbers: fewer than 47 fit
 * into 2^32 events. */
#define NP_TRACKS_MAX 48

#define NP_SHORT 32 /* periods below are counted one by one */
#define NP_GRAM 56  /* keys in a gram, looked up at every event */
#define NP_LAG 8    /* grams are looked up so many events later, less one, where their table is large */
#define NP_LEVELS 52
#define NP_POWERS 1024

struct np_detector {
    const neap_memory *memory;
    uint32_t n; /* events fed */
    np_array(uint64_t) keys;
    np_array(np_point) points; /* n + 1 of them */

    uint64_t small_powers[NP_POWERS]; /* NP_TEXT_BASE to the i-th */
    np_array(uint64_t) large_powers;  /* NP_TEXT_BASE to the (i * NP_POWERS)-th */

    uint16_t recent[2 * NP_SHORT]; /* the last NP_SHORT keys, shortened: a ring written twice, so that a window of it is
                                    * contiguous */
    uint16_t matches[NP_SHORT];    /* [NP_SHORT - p]: equal ones in a row at distance p, modulo 2^16 */

    uint64_t gram;              /* rolling hash of the last NP_GRAM keys */
    uint64_t gram_power;        /* its base to the NP_GRAM-th */
    uint32_t gram_tags[NP_LAG]; /* of the grams that ended at the last points */
    uint32_t n_grams;           /* looked up */
    np_recall grams;            /* grams seen: where each ended last */
    uint32_t fresh;             /* where a gram ended last that had not been seen before */

    np_recall windows;                  /* windows seen (detect_windows.c): where each ended last */
    np_recall_entry pending[NP_LEVELS]; /* to be entered there soon */
    uint32_t n_pending;
    uint32_t asleep;     /* levels not looked at now, from the lowest on */
    uint32_t wake_below; /* one of them wakes when a quarter of the answer's length falls below */
    size_t wake_windows; /* windows they will enter when they wake */

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
void np_detector_propose_by_windows(np_detector *detector);

/* Whether the live sizes at present are those a period ago, but for a growth that may be a leak: to be judged. */
bool np_detector_live_may_repeat(const np_detector *detector, uint32_t period);

/* Completes a run that reaches the present, of which begin and period are known. False where it leaks too much. */
bool np_detector_judge(const np_detector *detector, np_track *track, uint64_t *work);

/* Highest minus lowest load at the points of [begin, end]. */
int64_t np_detector_swing(const np_detector *detector, uint32_t begin, uint32_t end, uint64_t *work);

/* The period of the iterations inside where [begin, begin + 2 * period) is two periods of an epoch, else 0. */
uint32_t np_detector_epoch(const np_detector *detector, const np_run *run, uint64_t *work);

#endif
