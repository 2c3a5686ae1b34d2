/* test_busy.c: what copies have of the link beside the program's work: when it is measured, and what is made of it. */
#include "run/busy.h"

#include <math.h>

#include "run/manager.h"
#include "testing.h"

static void test_share_while_work_runs(void **state)
{
    (void)state;
    ASSERT_TRUE(fabs(np_busy_share(0.9, 1) - 0.9) < 1e-12);
    ASSERT_TRUE(fabs(np_busy_share(0.9, 1.4) - 0.9) < 1e-12); /* work of several streams */
    /* half of the time at full speed, half at a half of it: bytes take 1.5 times as long */
    ASSERT_TRUE(fabs(np_busy_share(1 / 1.5, 0.5) - 0.5) < 1e-12);
    ASSERT_TRUE(fabs(np_busy_share(0.3, 0.9) - 0.5) < 1e-12); /* that cannot be the kernels' doing */
}

static void test_nothing_is_known(void **state)
{
    (void)state;
    ASSERT_TRUE(np_busy_share(0, 1) == 0);
    ASSERT_TRUE(np_busy_share(1, 1) == 0);
    ASSERT_TRUE(np_busy_share(0.9, 0.1) == 0); /* the device had hardly anything to do */
    ASSERT_TRUE(np_busy_share(0.9, NAN) == 0);
}

/* ---- when ---- */

/* A device whose copies take as many looks as it is told. */
typedef struct timed_device {
    np_device base;
    neap_status status; /* of giving */
    uint32_t looks_left;
    uint32_t n_rounds; /* given; 0: none */
    uint32_t n_given;
} timed_device;

static neap_status timed_give(np_device *device, uint32_t n_rounds)
{
    timed_device *d = (timed_device *)device;
    d->n_rounds = d->status == NEAP_OK ? n_rounds : 0;
    d->n_given += d->status == NEAP_OK;
    return d->status;
}

static bool timed_take(np_device *device, double *share)
{
    timed_device *d = (timed_device *)device;
    *share = 0.8;
    d->looks_left -= d->looks_left > 0;
    return d->looks_left == 0;
}

static const np_device_interface timed_interface = {.time_busy = timed_give, .take_busy = timed_take};
static const np_device_interface plain_interface = {0};

typedef struct fixture {
    timed_device device;
    neap_device manager;
    np_pattern pattern;
    double laps_ns[3];
} fixture;

static void set_up(fixture *f, double lap_ns)
{
    *f = (fixture){.device = {.base = {.api = &timed_interface}, .looks_left = 2}};
    f->manager.device = &f->device.base;
    f->manager.options.limit_share = 0.7;
    for (int i = 0; i < 3; i++) {
        f->laps_ns[i] = lap_ns;
    }
    f->pattern.is_quick = true;
    f->pattern.laps_ns.items = f->laps_ns;
    f->pattern.laps_ns.n = f->pattern.laps_ns.capacity = 3;
}

static void test_once_before_swaps(void **state)
{
    fixture f;
    uint32_t n_laps = 0;
    (void)state;
    set_up(&f, 50e6);
    while (np_busy_is_awaited(&f.manager, &f.pattern)) {
        np_busy_lap(&f.manager, &f.pattern);
        n_laps++;
    }
    ASSERT_EQ(n_laps, 3); /* given, looked at in vain, taken */
    ASSERT_EQ(f.device.n_given, 1);
    ASSERT_EQ(f.device.n_rounds, 20); /* as long as an iteration */
}

static void test_how_many(void **state)
{
    static const struct {
        double lap_ns;
        uint32_t n_rounds;
    } cases[] = {{1e6, 6}, {1e12, 64}, {25e6, 10}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        set_up(&f, cases[i].lap_ns);
        np_busy_lap(&f.manager, &f.pattern);
        ASSERT_EQ(f.device.n_rounds, cases[i].n_rounds);
    }
}

static void test_not_awaited(void **state)
{
    fixture f;
    (void)state;
    set_up(&f, 1e6);
    f.manager.options.limit_share = 0; /* nothing will be swapped */
    ASSERT_FALSE(np_busy_is_awaited(&f.manager, &f.pattern));
    f.manager.overhead = 0.01;
    ASSERT_TRUE(np_busy_is_awaited(&f.manager, &f.pattern));
    f.pattern.is_quick = false; /* there are swaps in it */
    ASSERT_FALSE(np_busy_is_awaited(&f.manager, &f.pattern));
    f.pattern.is_quick = true;
    f.device.base.api = &plain_interface;
    ASSERT_FALSE(np_busy_is_awaited(&f.manager, &f.pattern));
}

/* A device that is full puts nothing off, and one that is slow only for as long as its copies take. */
static void test_in_vain(void **state)
{
    fixture f;
    uint32_t n_laps = 0;
    (void)state;
    set_up(&f, 1e6);
    f.device.status = NEAP_DEVICE_FULL;
    np_busy_lap(&f.manager, &f.pattern);
    ASSERT_FALSE(np_busy_is_awaited(&f.manager, &f.pattern));
    set_up(&f, 1e6);
    f.device.looks_left = 1000; /* to give them up would be to keep their memory for good */
    for (; np_busy_is_awaited(&f.manager, &f.pattern); n_laps++) {
        np_busy_lap(&f.manager, &f.pattern);
    }
    ASSERT_EQ(n_laps, 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_share_while_work_runs), cmocka_unit_test(test_nothing_is_known),
        cmocka_unit_test(test_once_before_swaps),     cmocka_unit_test(test_how_many),
        cmocka_unit_test(test_not_awaited),           cmocka_unit_test(test_in_vain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
