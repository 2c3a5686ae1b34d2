/* history.h: which kinds of iterations a program has gone through, and which is to come.
 *
 * A kind is the hash of an iteration's events, whether there is a plan for it or not. */
#ifndef NP_RUN_HISTORY_H
#define NP_RUN_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

enum { NP_HISTORY = 256 }; /* iterations that are looked back on */

typedef struct np_history {
    uint64_t kinds[NP_HISTORY]; /* a ring: the last one before `next` */
    uint32_t n;
    uint32_t next;
} np_history;

void np_history_add(np_history *history, uint64_t kind);

/* How many iterations ago there was one of the kind, 0: it was the last; NP_HISTORY: there was none. */
uint32_t np_history_age(const np_history *history, uint64_t kind);

/* What is expected to come; false: nothing like this was seen before. */
bool np_history_predict(const np_history *history, uint64_t *kind);

#endif
