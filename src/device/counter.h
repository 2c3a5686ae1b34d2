/* counter.h: a number that only grows, and that threads can wait for.
 *
 * What was written before the number was raised is seen by whoever saw it raised. Raising costs one atomic exchange and a
 * load, as long as nobody sleeps for that value. Who waits spins first, for some microseconds: work often follows at
 * once, and waking a thread costs more than that. */
#ifndef NP_DEVICE_COUNTER_H
#define NP_DEVICE_COUNTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct np_counter {
    _Atomic uint64_t value;
    _Atomic uint64_t wanted; /* the lowest value that a thread sleeps for, or less; UINT64_MAX: none does */
    bool spins;              /* there is another core on which the number may be raised meanwhile */
    pthread_mutex_t lock;    /* of sleeping and waking */
    pthread_cond_t raised;
} np_counter;

bool np_counter_init(np_counter *counter); /* at 0; false: the system has no room for it */
void np_counter_destroy(np_counter *counter);

static inline uint64_t np_counter_value(const np_counter *counter)
{
    return atomic_load_explicit(&counter->value, memory_order_acquire);
}

/* By one thread at a time, to ever higher values. */
void np_counter_raise(np_counter *counter, uint64_t value);

/* Returns once the number is `value` or more. */
void np_counter_wait(np_counter *counter, uint64_t value);

#endif
