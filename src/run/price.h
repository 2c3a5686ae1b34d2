/* price.h: what it costs to time an exec.
 *
 * An exec is timed by an event of the device before it and one after it, and each takes the device a while. Where the host
 * is ahead, nothing else is between the end of one exec and the begin of the next: the distance is the price of an
 * event, and about what an exec seems to be longer by. */
#ifndef NP_RUN_PRICE_H
#define NP_RUN_PRICE_H

#include <stdint.h>

enum { NP_PRICE_BINS = 128 };

typedef struct np_price {
    uint32_t n_gaps[NP_PRICE_BINS]; /* by length */
    uint32_t n;
    uint64_t last_end_ns; /* 0: none yet */
} np_price;

/* Execs of one stream, in their order. Begin with a zeroed price. */
void np_price_add(np_price *price, uint64_t start_ns, uint64_t duration_ns);

/* The median; 0 where too little is known. */
uint64_t np_price_ns(const np_price *price);

/* A duration without it: never less than a part of what was seen. */
uint64_t np_price_paid(uint64_t duration_ns, uint64_t price_ns);

#endif
