/* test_cuda_addresses.c: where the addresses of the cuda device are, over the stand-in driver, which gives those that it
 * is asked for where they are free. (Under the thread sanitizer they never are, and there are no threads here.) */
#include "device/cuda_state.h"

#include <stdlib.h>

#include "device/device_tools.h"
#include "device/standin_device.h"
#include "testing.h"

enum { N = 64 };

#define PAGE ((uint64_t)2 << 20)
#define TIB_PAGES (((uint64_t)1 << 40) / PAGE)

static const char name[] = "cuda:0,memory=64MiB";

static uint64_t upper_half(const char *address)
{
    return (uint64_t)(uintptr_t)address >> 32;
}

/* As upper half, a number that programs seldom have. */
static void check_wanted(const char *address, uint64_t n_pages)
{
    ASSERT_GE(upper_half(address), 0x4711);
    ASSERT_LT(upper_half(address + n_pages * PAGE - 1), 0x5000);
}

static void check_apart(char *const *addresses, const uint64_t *n_pages, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ASSERT_EQ((uintptr_t)addresses[i] % PAGE, 0);
        for (size_t k = 0; k < i; k++) {
            ASSERT_TRUE(addresses[i] + n_pages[i] * PAGE <= addresses[k] ||
                        addresses[k] + n_pages[k] * PAGE <= addresses[i]);
        }
    }
}

static void check_no_problem(np_device *device)
{
    ASSERT_EQ(((np_cuda *)standin_inner(device))->problem[0], 0);
    ASSERT_TRUE(device->api->problem(device) == NULL);
}

static uint64_t n_reservations(void)
{
    standin_counts counts;
    standin_get()->count(&counts);
    return counts.n_reservations;
}

static void end_device(np_device *device)
{
    check_no_problem(device);
    device_close(device);
    ASSERT_EQ(n_reservations(), 0);
}

/* Ever further up, those of two devices among each other. */
static void test_far_up(void **state)
{
    np_device *devices[2] = {device_open(name, NULL), device_open("cuda:1,memory=64MiB", NULL)};
    char *addresses[N];
    uint64_t n_pages[N];
    (void)state;
    for (size_t i = 0; i < N; i++) {
        np_device *device = devices[i % 3 == 0];
        n_pages[i] = 1 + i % 7 * 100;
        ASSERT_OK(device->api->reserve(device, n_pages[i], &addresses[i]));
        check_wanted(addresses[i], n_pages[i]);
        ASSERT_TRUE(i == 0 || addresses[i] > addresses[i - 1]);
    }
    check_apart(addresses, n_pages, N);
    device_close(devices[1]);
    end_device(devices[0]);
}

/* They can be used: pages are mapped there, as elsewhere. */
static void test_can_be_used(void **state)
{
    np_device *device = device_open(name, NULL);
    char *at = device_map(device, 0, 3);
    (void)state;
    check_wanted(at, 3);
    device_sync(device, 0, device_fill(device, 0, at, 3 * PAGE, 7));
    ASSERT_EQ(at[0], 7);
    ASSERT_EQ(at[3 * PAGE - 1], 7);
    device_unmap(device, at, 0, 3);
    end_device(device);
}

/* A driver that has none up there gives others, and that is no problem. */
static void test_refused(void **state)
{
    const standin_control *control = standin_get();
    np_device *device = device_open(name, NULL);
    uint64_t n_calls = control->n_calls("cuMemAddressReserve");
    char *addresses[N];
    uint64_t n_pages[N];
    (void)state;
    control->set_hints(true);
    for (size_t i = 0; i < N; i++) {
        n_pages[i] = 1 + i % 5;
        ASSERT_OK(device->api->reserve(device, n_pages[i], &addresses[i]));
        check_no_problem(device);
    }
    ASSERT_EQ(control->n_calls("cuMemAddressReserve") - n_calls, 2 * N); /* each was asked for up there first */
    check_apart(addresses, n_pages, N);
    control->set_hints(false);
    end_device(device);
}

/* Where there are no others either, those that rest are the driver's again. */
static void test_what_rests_is_given_back(void **state)
{
    const standin_control *control = standin_get();
    np_device *device = device_open(name, NULL);
    uint64_t before = n_reservations();
    char *address;
    (void)state;
    for (int i = 0; i < 10; i++) {
        ASSERT_OK(device->api->reserve(device, 2, &address));
        device->api->unreserve(device, address, 2);
    }
    ASSERT_EQ(n_reservations(), before + 10);
    control->set_hints(true);
    control->fail_call("cuMemAddressReserve", 2, NP_CU_OUT_OF_MEMORY, false);
    ASSERT_OK(device->api->reserve(device, 2, &address));
    ASSERT_EQ(control->n_failed(), 1);
    ASSERT_EQ(n_reservations(), before + 1);
    check_no_problem(device);
    /* Nothing rests now: it is not asked a third time. */
    control->fail_call("cuMemAddressReserve", 2, NP_CU_OUT_OF_MEMORY, true);
    ASSERT_STATUS(NEAP_NO_MEMORY, device->api->reserve(device, 2, &address));
    ASSERT_EQ(control->n_failed(), 1);
    control->fail_call(NULL, 0, 0, false);
    control->set_hints(false);
    end_device(device);
}

/* Nor do too many rest: the older half is given back then. */
static void test_few_tib_rest(void **state)
{
    np_device *device = device_open(name, NULL);
    uint64_t before = n_reservations();
    uint64_t most = 0;
    char *address;
    (void)state;
    for (int i = 0; i < 40; i++) {
        ASSERT_OK(device->api->reserve(device, TIB_PAGES, &address));
        device->api->unreserve(device, address, TIB_PAGES);
        ASSERT_GE(n_reservations(), before + (i < 8 ? (uint64_t)i + 1 : 8));
        most = n_reservations() - before > most ? n_reservations() - before : most;
    }
    ASSERT_EQ(most, 16);
    end_device(device);
}

/* At the end of the wanted ones it begins anew, where all was given back since. */
static void test_begins_anew(void **state)
{
    uint64_t highest = 0;
    uint64_t n_anew = 0;
    (void)state;
    for (int round = 0; round < 12; round++) {
        np_device *device = device_open(name, NULL);
        char *addresses[3];
        uint64_t n_pages[3];
        for (uint64_t i = 0; i < 3; i++) {
            n_pages[i] = i == 1 ? 3 : TIB_PAGES + i;
            ASSERT_OK(device->api->reserve(device, n_pages[i], &addresses[i]));
            check_wanted(addresses[i], n_pages[i]);
            n_anew += upper_half(addresses[i]) < highest;
            highest = upper_half(addresses[i]);
        }
        check_apart(addresses, n_pages, 3);
        end_device(device);
    }
    ASSERT_GE(n_anew, 2); /* 24 TiB of about 9 */
}

/* Where nothing was given back, others will do. */
static void test_all_taken(void **state)
{
    enum { N_LARGE = 12 };
    np_device *device = device_open(name, NULL);
    char *addresses[N_LARGE];
    uint64_t n_pages[N_LARGE];
    (void)state;
    for (size_t i = 0; i < N_LARGE; i++) {
        n_pages[i] = TIB_PAGES;
        ASSERT_OK(device->api->reserve(device, n_pages[i], &addresses[i]));
    }
    check_apart(addresses, n_pages, N_LARGE);
    end_device(device);
}

/* More than there are up there: they come from elsewhere, and the next ones from up there again. */
static void test_too_many(void **state)
{
    np_device *device = device_open(name, NULL);
    char *addresses[3];
    uint64_t n_pages[3] = {10 * TIB_PAGES, 2, 2};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        ASSERT_OK(device->api->reserve(device, n_pages[i], &addresses[i]));
        if (i > 0) {
            check_wanted(addresses[i], n_pages[i]);
        }
    }
    check_apart(addresses, n_pages, 3);
    end_device(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_far_up),       cmocka_unit_test(test_can_be_used),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_what_rests_is_given_back),
        cmocka_unit_test(test_few_tib_rest), cmocka_unit_test(test_begins_anew),
        cmocka_unit_test(test_all_taken),    cmocka_unit_test(test_too_many),
    };
    standin_use(PAGE);
    (void)setenv("STANDIN_DEVICES", "2", 1);
    return cmocka_run_group_tests_name("device/cuda_addresses", tests, NULL, NULL);
}
