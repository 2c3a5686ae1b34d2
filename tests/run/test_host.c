/* test_host.c: host memory for absent blocks, kept by size. */
#include "run/host.h"

#include "device/faulty.h"
#include "testing.h"

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
    ASSERT_EQ(host.held_bytes, 14000);
    first = a.host;
    np_host_give(&host, &a);
    ASSERT_TRUE(a.host == NULL);
    ASSERT_EQ(host.held_bytes, 14000); /* it is kept */
    ASSERT_OK(np_host_take(&host, 4000, &c));
    ASSERT_TRUE(c.host != first); /* another size */
    ASSERT_OK(np_host_take(&host, 5000, &a));
    ASSERT_TRUE(a.host == first);
    ASSERT_EQ(host.held_bytes, 18000);
    np_host_give(&host, &a);
    np_host_give(&host, &a); /* an empty one */
    np_host_give(&host, &b);
    np_host_give(&host, &c);
    np_host_free(&host);
    ASSERT_EQ(host.held_bytes, 0);
    device->api->free(device);
}

/* What is kept is given up before a call fails. */
static void test_gives_up_spare(void **state)
{
    np_device *inner;
    np_device *device;
    np_host host;
    np_slot a;
    np_slot b;
    (void)state;
    ASSERT_OK(np_device_open("cpu:page=4096,memory=1MiB", NULL, NULL, &inner));
    device = faulty_wrap(inner);
    np_host_init(&host, device);
    ASSERT_OK(np_host_take(&host, 5000, &a));
    np_host_give(&host, &a);
    faulty_set(device, &(faulty_plan){.calls = 1u << FAULTY_HOST_ALLOC, .every = 1});
    ASSERT_STATUS(NEAP_NO_MEMORY, np_host_take(&host, 6000, &b));
    ASSERT_EQ(host.held_bytes, 0);
    ASSERT_EQ(faulty_n_calls(device, FAULTY_HOST_ALLOC), 3); /* asked again, then */
    faulty_set(device, &(faulty_plan){0});
    ASSERT_OK(np_host_take(&host, 6000, &b));
    ASSERT_EQ(host.held_bytes, 6000);
    np_host_give(&host, &b);
    np_host_free(&host);
    device->api->free(device);
}

/* No room to keep a slot in: it is given back. */
static neap_status keep_one(const neap_memory *memory, void *user)
{
    np_device *device;
    np_host host;
    np_slot a = {0};
    neap_status status = np_device_open("sim:page=4096,memory=1MiB", memory, NULL, &device);
    (void)user;
    if (status != NEAP_OK) {
        return status;
    }
    np_host_init(&host, device);
    status = np_host_take(&host, 5000, &a);
    if (status == NEAP_OK) {
        np_host_give(&host, &a);
        status = host.held_bytes == 5000 ? NEAP_OK : NEAP_NO_MEMORY;
    }
    np_host_free(&host);
    device->api->free(device);
    return status;
}

static void test_no_memory(void **state)
{
    (void)state;
    ASSERT_GE(test_memory_fail_each(keep_one, NULL), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_gives_up_spare),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
