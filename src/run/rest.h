/* rest.h: on a plan without copies and waits, the program's work need not be looked at.
 *
 * Where nothing is swapped every block is there, and where all work is of one stream, its order is the order of uses. What
 * is left to do is to give out addresses. So mallocs and frees alone are compared with the plan, and its execs are passed
 * over: whoever sees the program's work may look away, which a program that the host holds up is glad of. The first malloc
 * or free that is not the planned one ends it, as it ends the plan; so does whoever looked away, before anything that
 * needs sight. All work is waited for then (leave.c), seen or not.
 *
 * Where blocks may be swapped, what looking costs is measured first: laps of the pool alone, a few looked at and a few not, in
 * turns, before the plan with swaps is made. There sight comes back in the middle of the plan, which goes on: nothing is
 * away, and nothing waits. */
#ifndef NP_RUN_REST_H
#define NP_RUN_REST_H

#include <stdbool.h>
#include <stdint.h>

typedef struct neap_device neap_device;
typedef struct np_pattern np_pattern;

typedef struct np_rest {
    bool is_offered; /* there is somebody who can look away */
    bool is_on;
    bool is_measure;            /* it ends by itself */
    uint64_t begin_lap;         /* the pattern's */
    void (*on_end)(void *user); /* work must be seen from here on */
    void *user;
} np_rest;

/* Followed is a plan that needs no sight of the work, and nobody is about to change it. All under the lock. */
bool np_rest_is_possible(const neap_device *m);
void np_rest_begin(neap_device *m, void (*on_end)(void *user), void *user);
void np_rest_end(neap_device *m); /* where it is on: no longer following */

/* Is a rest needed before anything is planned? Not for ever: it may never come. */
bool np_rest_is_awaited(const neap_device *m);

/* At the end of a lap that nobody looked at: where it is measured, its time is taken, and after a few sight comes back. */
void np_rest_lap(neap_device *m);

/* How long one of them took. */
void np_rest_note(np_pattern *pattern, double ns);

/* Passes over the execs at the cursor. */
void np_rest_pass(neap_device *m);

#endif
