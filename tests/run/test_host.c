/* test_host.c: host memory for absent blocks: slots cut from chunks. */
#include "run/host.h"

#include <string.h>

#include "base/rng.h"
#include "device/faulty.h"
#include "testing.h"

enum { PAGE = 4096, CHUNK = 32 * PAGE };

static void test_slots(void **state)
{
    np_device *device;
    np_host host;
    np_slot a;
    np_slot b;
    np_slot c;
    char *first;
    (void)state;
    ASSERT_OK(np_device_open("cpu:page=4096,memory=1MiB", NULL, NULL, &device));
    np_host_init(&host, device);
    ASSERT_OK(np_host_take(&host, 5000, &a));
    ASSERT_OK(np_host_take(&host, 9000, &b));
    ASSERT_EQ(host.used_bytes, 2 * PAGE + 3 * PAGE);
    ASSERT_EQ(host.held_bytes, CHUNK); /* one chunk for both */
    first = a.host;
    np_host_give(&host, &a);
    ASSERT_TRUE(a.host == NULL);
    ASSERT_EQ(host.held_bytes, CHUNK); /* it is kept */
    ASSERT_OK(np_host_take(&host, 8000, &c));
    ASSERT_TRUE(c.host == first);
    ASSERT_OK(np_host_take(&host, 2 * CHUNK, &a)); /* larger than a chunk: one of its own */
    ASSERT_EQ(host.held_bytes, 3 * CHUNK);
    memset(a.host, 1, 2 * CHUNK);
    ASSERT_TRUE(np_host_is_valid(&host));
    np_host_give(&host, &a);
    np_host_give(&host, &a); /* an empty one */
    np_host_give(&host, &b);
    np_host_give(&host, &c);
    ASSERT_EQ(host.used_bytes, 0);
    ASSERT_TRUE(np_host_is_valid(&host));
    np_host_free(&host);
    ASSERT_EQ(host.held_bytes, 0);
    device->api->free(device);
}

/* Chunks that were made elsewhere serve as well. */
static void test_added(void **state)
{
    np_device *device;
    np_host host;
    np_slot slot;
    char *memory;
    (void)state;
    ASSERT_OK(np_device_open("cpu:page=4096,memory=1MiB", NULL, NULL, &device));
    np_host_init(&host, device);
    ASSERT_OK(device->api->host_alloc(device, 3 * CHUNK, &memory));
    ASSERT_OK(np_host_add(&host, memory, 3 * CHUNK));
    ASSERT_OK(np_host_take(&host, 3 * CHUNK, &slot));
    ASSERT_TRUE(slot.host == memory);
    ASSERT_EQ(host.held_bytes, 3 * CHUNK);
    np_host_give(&host, &slot);
    np_host_free(&host);
    device->api->free(device);
}

/* Where there is no room for a chunk, there may be for what is needed. */
static void test_no_chunk(void **state)
{
    np_device *inner;
    np_device *device;
    np_host host;
    np_slot slot;
    (void)state;
    ASSERT_OK(np_device_open("cpu:page=4096,memory=1MiB", NULL, NULL, &inner));
    device = faulty_wrap(inner);
    np_host_init(&host, device);
    faulty_set(device, &(faulty_plan){.calls = 1u << FAULTY_HOST_ALLOC, .every = 1});
    ASSERT_STATUS(NEAP_NO_MEMORY, np_host_take(&host, 6000, &slot));
    ASSERT_EQ(faulty_n_calls(device, FAULTY_HOST_ALLOC), 2); /* a chunk, then just that */
    ASSERT_EQ(host.held_bytes, 0);
    faulty_set(device, &(faulty_plan){0});
    ASSERT_OK(np_host_take(&host, 6000, &slot));
    np_host_give(&host, &slot);
    np_host_free(&host);
    device->api->free(device);
}

/* No two slots share a byte, whatever the order. */
static void test_random(void **state)
{
    enum { N = 40, STEPS = 4000 };
    np_device *device;
    np_host host;
    np_slot slots[N] = {{0}};
    np_rng rng = np_rng_make(7);
    (void)state;
    ASSERT_OK(np_device_open("cpu:page=4096,memory=1MiB", NULL, NULL, &device));
    np_host_init(&host, device);
    for (int step = 0; step < STEPS; step++) {
        size_t i = np_rng_below(&rng, N);
        if (slots[i].host) {
            for (uint64_t k = 0; k < slots[i].bytes; k += 512) {
                ASSERT_EQ(slots[i].host[k], (char)i);
            }
            np_host_give(&host, &slots[i]);
        } else {
            ASSERT_OK(np_host_take(&host, 1 + np_rng_below(&rng, 2 * CHUNK), &slots[i]));
            memset(slots[i].host, (char)i, slots[i].bytes);
        }
        ASSERT_TRUE(step % 64 != 0 || np_host_is_valid(&host));
    }
    for (size_t i = 0; i < N; i++) {
        np_host_give(&host, &slots[i]);
    }
    np_host_free(&host);
    device->api->free(device);
}

static neap_status take_two(const neap_memory *memory, void *user)
{
    np_device *device;
    np_host host;
    np_slot a = {0};
    np_slot b = {0};
    neap_status status = np_device_open("sim:page=4096,memory=1MiB", memory, NULL, &device);
    (void)user;
    if (status != NEAP_OK) {
        return status;
    }
    np_host_init(&host, device);
    status = np_host_take(&host, CHUNK, &a); /* no smaller one is tried */
    if (status == NEAP_OK) {
        status = np_host_take(&host, 2 * CHUNK, &b);
    }
    ASSERT_TRUE(np_host_is_valid(&host));
    np_host_give(&host, &a);
    np_host_give(&host, &b);
    np_host_free(&host);
    device->api->free(device);
    return status;
}

static void test_no_memory(void **state)
{
    (void)state;
    ASSERT_GE(test_memory_fail_each(take_two, NULL), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots),  cmocka_unit_test(test_added),     cmocka_unit_test(test_no_chunk),
        cmocka_unit_test(test_random), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
