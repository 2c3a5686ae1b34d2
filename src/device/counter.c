/* counter.c: the order of one exchange decides who sees whom. The raiser stores the value, then looks for sleepers; the
 * sleeper says what it wants, then looks at the value. Both are sequentially consistent, so one of the two sees the other,
 * and no wake-up is lost. */
#include "device/counter.h"

#include <sched.h>

#include "base/clock.h"
#include "base/parallel.h"

enum { SPIN_NS = 30000, LOOKS = 16 };

bool np_counter_init(np_counter *counter)
{
    atomic_init(&counter->value, 0);
    atomic_init(&counter->wanted, UINT64_MAX);
    counter->spins = np_parallel_cores() > 1;
    if (pthread_mutex_init(&counter->lock, NULL) != 0) {
        return false;
    }
    if (pthread_cond_init(&counter->raised, NULL) != 0) {
        (void)pthread_mutex_destroy(&counter->lock);
        return false;
    }
    return true;
}

void np_counter_destroy(np_counter *counter)
{
    (void)pthread_cond_destroy(&counter->raised);
    (void)pthread_mutex_destroy(&counter->lock);
}

void np_counter_raise(np_counter *counter, uint64_t value)
{
    atomic_store(&counter->value, value);
    if (atomic_load(&counter->wanted) <= value) {
        (void)pthread_mutex_lock(&counter->lock);
        atomic_store(&counter->wanted, UINT64_MAX); /* who wants more will say so again */
        (void)pthread_cond_broadcast(&counter->raised);
        (void)pthread_mutex_unlock(&counter->lock);
    }
}

static void pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Whether the value came while looking for it. */
static bool spin(const np_counter *counter, uint64_t value)
{
    uint64_t until = np_clock_ns() + SPIN_NS;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (np_counter_value(counter) >= value) {
                return true;
            }
            pause_core();
        }
        (void)sched_yield(); /* where cores are scarce, the one who raises may be waiting for this one */
    } while (np_clock_ns() < until);
    return false;
}

void np_counter_wait(np_counter *counter, uint64_t value)
{
    if (np_counter_value(counter) >= value || (counter->spins && spin(counter, value))) {
        return;
    }
    (void)pthread_mutex_lock(&counter->lock);
    for (;;) {
        if (value < atomic_load(&counter->wanted)) {
            atomic_store(&counter->wanted, value);
        }
        if (atomic_load(&counter->value) >= value) {
            break;
        }
        (void)pthread_cond_wait(&counter->raised, &counter->lock);
    }
    (void)pthread_mutex_unlock(&counter->lock);
}
