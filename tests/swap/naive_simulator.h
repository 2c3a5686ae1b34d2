/* naive_simulator.h: what a set of swaps costs, found again in the plainest way.
 *
 * Written from the words of swap/simulate.h alone. Nothing is kept up to date: at every moment the bytes on the device
 * are counted anew over all blocks and all swaps of all periods, and whatever may happen then happens. Slow; it is there
 * to be compared with. */
#ifndef NEAP_NAIVE_SIMULATOR_H
#define NEAP_NAIVE_SIMULATOR_H

#include "swap/simulate.h"

typedef struct naive_absence {
    uint32_t absent_from; /* as np_absence */
    uint32_t back_from;
    bool tie; /* the copy in began at the very moment an exec ended: it may be counted with that one or the next */
} naive_absence;

typedef struct naive_result {
    bool possible;
    bool steady;        /* the states repeated within the periods it was given */
    uint32_t n_cycle;   /* periods until they did: 1, as a rule */
    uint32_t n_until;   /* periods before the cycle */
    uint32_t halted_at; /* exec, where not possible */
    double period_ns;   /* on average over the cycle */
    uint64_t peak;      /* bytes, in the cycle */
    uint64_t peak_ever; /* and from the beginning */
    uint64_t bytes_out; /* copied in the cycle, a period */
    uint64_t bytes_in;
    naive_absence *absences; /* [swap], of the last life in the cycle; free() it */
} naive_result;

/* Fails the test where its own rules are broken. */
naive_result naive_simulate(const np_timeline *timeline, const np_link *link, uint64_t limit, const np_swap *swaps,
                            uint32_t n_swaps, uint32_t max_periods);

#endif
