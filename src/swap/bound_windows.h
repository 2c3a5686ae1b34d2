/* bound_windows.h: how much memory is left to hold in a window of execs, however well the copies in it go.
 *
 * Take any moment t of exec k, and execs i < k < j. A byte that is absent at t lies in one gap that covers k, and
 *   - its block was last written by exec i or later: it was copied out between the end of i and t; or
 *   - its block is used next by exec j or earlier: it comes in between t and the start of j; or
 *   - neither: it is one of the F bytes of gaps that cover k, were released before i and are due after j.
 * So at most out * (t - e_i) + in * (s_j - t) + F bytes are absent at t, and this many must be there:
 *
 *   left(i, k, j) = needed at k - F - out * (s_k - e_i) - in * (s_j - e_k) - min(out, in) * (e_k - s_k)
 *
 * where t is the better of the two ends of k. (The last term is needed: while k runs, bytes that were absent can come
 * in as others leave.) Without j there is no way but out, F counts all gaps released before i, and t is the start of k:
 * left = needed - F - out * (s_k - e_i). Without i likewise, from the end of k on: needed - F - in * (s_j - e_k).
 *
 * Times are undisturbed ones. Every ns that the program waits in the window, before an exec of i + 1 .. j (without j:
 * i + 1 .. k; without i: k + 1 .. j), lowers `left` by the speed at most: the greater of the two where both are in
 * play. Nothing is said of what is copied when, in which parts or how often, so it holds for all of it; a link that is
 * shared or has a latency can only do less. Execs, not times, tell what comes before what: waits may fall between equal
 * times.
 *
 * Windows are at most a period long (of more than 6,000 execs, shorter: fewer windows make no bound wrong). All of
 * them are found in the order of (execs)^2 steps: for a fixed i, j goes on exec by exec, and a gap that is due at j is
 * taken out of F for the k behind its own begin. What remains asked is the highest k so far; a k that is not above a
 * later one never will be again. */
#ifndef NP_SWAP_BOUND_WINDOWS_H
#define NP_SWAP_BOUND_WINDOWS_H

#include "swap/link.h"
#include "swap/timeline.h"

/* The most bytes left over all k, by kind of window: waits in it lower `out` by link.out a ns, `in` by link.in, `both`
 * by the greater. -INFINITY: there is no such window. */
typedef struct np_window_left {
    double out;
    double in;
    double both;
} np_window_left;

typedef struct np_window_gap {
    double bytes;
    uint32_t length;  /* execs from the use before to the use after */
    uint32_t written; /* execs from the last write to the use before (table `from`) or after (table `to`);
                       * UINT32_MAX: never written */
} np_window_gap;

/* An exec on the line of two periods. */
typedef struct np_window_exec {
    double start_ns;
    double end_ns;
    double needed;  /* bytes */
    double covered; /* bytes of all gaps that cover it */
    double ways;    /* as the k of a window: in * its end - out * its start - the slower * its length */
    uint32_t from;  /* into `from`: the gaps that begin to cover it, up to from_end */
    uint32_t from_end;
    uint32_t to; /* into `to`: the gaps that end at it, up to to_end */
    uint32_t to_end;
} np_window_exec;

/* A list of execs k, each above all later ones in value; the others stand for the next one in it. */
typedef struct np_highest {
    double *step;     /* [k] value minus that of the one before it in the list */
    uint32_t *next;   /* [k] k itself if listed, else an exec towards the one it stands for */
    uint32_t *before; /* [k] the one before it in the list */
    uint32_t head;
    uint32_t tail;
    double first; /* values of head and tail */
    double last;
    bool empty;
} np_highest;

typedef struct np_windows {
    const np_timeline *timeline;
    np_link link;
    uint32_t longest;      /* execs that a window has at most: a period's, fewer where those would be too many steps */
    double most_needed;    /* bytes, of all execs */
    np_window_exec *execs; /* of two periods */
    np_window_gap *from;   /* the gaps by the exec of the use before */
    np_window_gap *to;     /* the gaps by the exec of the use after, modulo n_execs */
    uint32_t *from_at;     /* [exec] -> range of `from`: n_execs + 1 entries */
    uint32_t *to_at;
    np_highest highest;
    np_window_left *left; /* [m]: of the windows from exec i to i + 1 + m, filled by a sweep */
} np_windows;

/* NEAP_BAD_ARGUMENT: a speed of the link is not above 0. The timeline must outlive the windows. */
neap_status np_windows_init(np_windows *windows, const np_timeline *timeline, const np_link *link);
void np_windows_free(np_windows *windows);

/* All windows that begin after exec i, but for long ones in which no more than `enough` bytes can be left. Returns how
 * many entries of windows->left it filled. */
uint32_t np_windows_sweep(np_windows *windows, uint32_t i, double enough);

#endif
