/* test_faulty.c: the device that fails on demand fails as told, and is its inner device otherwise. */
#include "device/faulty.h"

#include "device/device_tools.h"
#include "testing.h"

static void test_it_is_what_it_wraps(void **state)
{
    np_device *inner = device_open("sim:a100-pcie4,page=64KiB,memory=1MiB,streams=2", NULL);
    np_device *device = faulty_wrap(inner);
    np_device *cpu;
    neap_link link;
    char *at;
    (void)state;
    ASSERT_TRUE(faulty_inner(device) == inner);
    ASSERT_STR_EQ(device->kind, "sim");
    ASSERT_EQ(device->page_bytes, 65536);
    ASSERT_EQ(device->n_pages, 16);
    ASSERT_EQ(device->n_streams, 2);
    ASSERT_TRUE(device->wants_touches);
    ASSERT_OK(device->api->link(device, &link));
    ASSERT_TRUE(link.out_gbs == 26);
    at = device_map(device, 0, 2);
    device_sync(device, 1, device_fill(device, 1, at, 100, 5));
    ASSERT_EQ(at[99], 5);
    device_sync(device, 0, device_pause(device, 0, 77, NULL));
    ASSERT_EQ(device->api->now_ns(device), 77);
    ASSERT_EQ(inner->api->mark(inner, 1), 1);
    device_unmap(device, at, 0, 2);
    ASSERT_EQ(faulty_n_calls(device, FAULTY_LAUNCH), 2);
    ASSERT_EQ(faulty_n_calls(device, FAULTY_MAP), 1);
    ASSERT_EQ(faulty_n_failed(device, FAULTY_MAP), 0);
    device_close(device);

    cpu = faulty_wrap(device_open("cpu:memory=1MiB", NULL));
    ASSERT_TRUE(cpu->api->problem == NULL);
    device_close(cpu);
}

/* One call of each kind; bit 1 << call is set where it failed. */
static unsigned call_all(np_device *device, char *at, char *host)
{
    const np_device_interface *api = device->api;
    unsigned failed = 0;
    uint64_t mark = UINT64_MAX;
    char *address = NULL;
    char *more = NULL;
    np_task task = {0};
    if (api->commit(device, 8, 1) == NEAP_OK) {
        api->release(device, 8, 1);
    } else {
        failed |= 1u << FAULTY_COMMIT;
    }
    if (api->reserve(device, 1, &address) == NEAP_OK) {
        api->unreserve(device, address, 1);
    } else {
        failed |= 1u << FAULTY_RESERVE;
    }
    failed |= api->map(device, at, 0, 1) == NEAP_OK ? 0 : 1u << FAULTY_MAP;
    if (api->host_alloc(device, 10, &more) == NEAP_OK) {
        api->host_free(device, more, 10);
    } else {
        failed |= 1u << FAULTY_HOST_ALLOC;
    }
    failed |= api->launch(device, 0, &task, &mark) == NEAP_OK ? 0 : 1u << FAULTY_LAUNCH;
    failed |= api->copy(device, NP_STREAM_OUT, host, at, 10, &mark) == NEAP_OK ? 0 : 1u << FAULTY_COPY;
    failed |= api->wait(device, 0, NP_STREAM_OUT, 0) == NEAP_OK ? 0 : 1u << FAULTY_WAIT;
    device_sync_all(device);
    return failed;
}

static void test_fails_as_told(void **state)
{
    np_device *device = faulty_wrap(device_open("sim:memory=1MiB", NULL));
    char *at = device_map(device, 0, 1);
    char *host;
    uint64_t n_failed = 0;
    (void)state;
    ASSERT_OK(device->api->host_alloc(device, 10, &host));
    ASSERT_EQ(call_all(device, at, host), 0);
    for (unsigned call = 0; call < FAULTY_N_CALLS; call++) {
        uint64_t before = faulty_n_failed(device, call);
        faulty_set(device, &(faulty_plan){.calls = 1u << call, .every = 1});
        ASSERT_EQ(call_all(device, at, host), 1u << call);
        ASSERT_EQ(faulty_n_failed(device, call), before + 1);
    }
    faulty_set(device, &(faulty_plan){.calls = FAULTY_ALL, .every = 3}); /* the third and the sixth */
    ASSERT_EQ(call_all(device, at, host), 1u << FAULTY_MAP | 1u << FAULTY_COPY);
    ASSERT_EQ(call_all(device, at, host), 1u << FAULTY_RESERVE | 1u << FAULTY_LAUNCH); /* the ninth and the twelfth */
    faulty_set(device, &(faulty_plan){.calls = FAULTY_ALL, .every = 1, .status = NEAP_IO});
    ASSERT_STATUS(NEAP_IO, device->api->commit(device, 9, 1));
    faulty_set(device, &(faulty_plan){.calls = 1u << FAULTY_COMMIT, .probability = 0.5, .seed = 1});
    for (int i = 0; i < 100; i++) {
        n_failed += call_all(device, at, host) != 0;
    }
    ASSERT_GT(n_failed, 25);
    ASSERT_LT(n_failed, 75);
    faulty_set(device, &(faulty_plan){0});
    ASSERT_EQ(call_all(device, at, host), 0);
    device->api->host_free(device, host, 10);
    device_unmap(device, at, 0, 1);
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_what_it_wraps),
        cmocka_unit_test(test_fails_as_told),
    };
    return cmocka_run_group_tests_name("device/faulty", tests, NULL, NULL);
}
