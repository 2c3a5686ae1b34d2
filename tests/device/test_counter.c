/* test_counter.c: nobody returns early, nobody sleeps for ever, and what was written before is seen. */
#include "device/counter.h"

#include <time.h>

#include "testing.h"

enum { N_WAITERS = 6 };

static void test_values(void **state)
{
    np_counter counter;
    (void)state;
    ASSERT_TRUE(np_counter_init(&counter));
    ASSERT_EQ(np_counter_value(&counter), 0);
    np_counter_wait(&counter, 0);
    np_counter_raise(&counter, 1);
    np_counter_wait(&counter, 1);
    np_counter_raise(&counter, 100);
    np_counter_wait(&counter, 99);
    ASSERT_EQ(np_counter_value(&counter), 100);
    np_counter_destroy(&counter);
}

typedef struct waiters {
    np_counter counter;
    unsigned *written; /* [value]: plain, ordered by the counter alone */
    unsigned n_values;
    unsigned n_wrong[N_WAITERS];
} waiters;

typedef struct waiter {
    waiters *all;
    unsigned index;
} waiter;

static void *wait_for_values(void *user)
{
    const waiter *own = user;
    waiters *all = own->all;
    unsigned step = 1 + own->index * 7; /* each wants others of the values */
    for (unsigned value = step; value <= all->n_values; value += step) {
        np_counter_wait(&all->counter, value);
        for (unsigned i = value - step + 1; i <= value; i++) {
            all->n_wrong[own->index] += all->written[i] != i;
        }
        all->n_wrong[own->index] += np_counter_value(&all->counter) < value;
    }
    return NULL;
}

static void run_waiters(bool spins, unsigned n_values, bool naps)
{
    static unsigned written[20001];
    static waiters all;
    pthread_t threads[N_WAITERS];
    waiter own[N_WAITERS];
    all = (waiters){.written = written, .n_values = n_values};
    ASSERT_TRUE(np_counter_init(&all.counter));
    all.counter.spins = spins;
    for (unsigned i = 0; i <= n_values; i++) {
        written[i] = 0;
    }
    for (unsigned i = 0; i < N_WAITERS; i++) {
        own[i] = (waiter){&all, i};
        ASSERT_EQ(pthread_create(&threads[i], NULL, wait_for_values, &own[i]), 0);
    }
    for (unsigned value = 1; value <= n_values; value++) {
        written[value] = value;
        np_counter_raise(&all.counter, value);
        if (naps && value % 16 == 0) { /* long enough for them to fall asleep */
            const struct timespec nap = {0, 60000};
            (void)nanosleep(&nap, NULL);
        }
    }
    for (unsigned i = 0; i < N_WAITERS; i++) {
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
        ASSERT_EQ(all.n_wrong[i], 0);
    }
    np_counter_destroy(&all.counter);
}

static void test_many_threads_wait(void **state)
{
    (void)state;
    run_waiters(true, TEST_SANITIZED ? 2000 : 20000, false);
    run_waiters(false, TEST_SANITIZED ? 2000 : 20000, false);
    run_waiters(true, 400, true);
    run_waiters(false, 400, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_many_threads_wait),
    };
    return cmocka_run_group_tests_name("device/counter", tests, NULL, NULL);
}
