/* test_open.c: devices by name: what can be set, what is refused, and what the refusal says. */
#include "device/device.h"

#include <string.h>

#include "comma.h"
#include "device/device_tools.h"
#include "device/memfd.h"
#include "testing.h"

static void test_defaults(void **state)
{
    np_device *cpu = device_open("cpu", NULL);
    np_device *sim = device_open("sim", NULL);
    neap_link link;
    (void)state;
    ASSERT_STR_EQ(cpu->kind, "cpu");
    ASSERT_EQ(cpu->page_bytes, np_memfd_system_page());
    ASSERT_EQ(cpu->n_pages, np_memfd_system_memory() / np_memfd_system_page());
    ASSERT_EQ(cpu->n_streams, 1);
    ASSERT_FALSE(cpu->wants_touches);
    ASSERT_STR_EQ(sim->kind, "sim");
    ASSERT_TRUE(sim->wants_touches);
    ASSERT_EQ(sim->n_streams, 1);
    ASSERT_OK(sim->api->link(sim, &link)); /* the first known link's */
    ASSERT_TRUE(link.out_gbs == 55 && link.in_gbs == 55 && link.both_gbs == 100 && link.latency_us == 2);
    device_close(sim);
    device_close(cpu);
}

static void test_settings(void **state)
{
    static const struct {
        const char *name;
        uint64_t page_bytes;
        uint32_t n_pages;
        uint32_t n_streams;
        double out_gbs; /* 0: do not ask */
    } cases[] = {
        {"cpu:page=64KiB,memory=1MiB,streams=2,link=2GB/s", 65536, 16, 2, 2},
        {"cpu:memory=1000000", 4096, 244, 1, 0},
        {"cpu:memory=1MB,page=4096B", 4096, 244, 1, 0},
        {"cpu:memory=0.5GiB,page=2MiB", 2097152, 256, 1, 0},
        {"cpu:memory=100kB", 4096, 24, 1, 0},
        {"cpu:memory=1m,page=4kib", 4096, 244, 1, 0},
        {"cpu:memory=1G,page=1MIB", 1048576, 953, 1, 0},
        {"cpu:memory=100KB", 4096, 24, 1, 0},
        {"cpu:memory=1GB,page=1MiB", 1048576, 953, 1, 0},
        {"cpu:streams=16,memory=2GiB,page=1GiB", 1073741824, 2, 16, 0},
        {"cpu:link=500MB/s,memory=8KiB", 4096, 2, 1, 0.5},
        {"cpu:link=2.25GB/s,memory=8KiB", 4096, 2, 1, 2.25},
        {"cpu:memory=8KiB,memory=16KiB", 4096, 4, 1, 0}, /* the last one counts */
        {"cpu:,memory=8KiB", 0, 0, 0, 0},
        {"sim:a100-pcie4,page=64KiB,memory=128KiB", 65536, 2, 1, 26},
        {"sim:1080ti-pcie3,streams=3,memory=8KiB", 4096, 2, 3, 13.2},
        {"sim:link=50GB/s,memory=8KiB", 4096, 2, 1, 50},
        {"sim:a100-pcie4,link=3GB/s,memory=8KiB", 4096, 2, 1, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        np_device *device;
        neap_link link;
        if (cases[i].page_bytes == 0) {
            ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_device_open(cases[i].name, NULL, NULL, &device));
            continue;
        }
        device = device_open(cases[i].name, NULL);
        ASSERT_EQ(device->page_bytes, cases[i].page_bytes);
        ASSERT_EQ(device->n_pages, cases[i].n_pages);
        ASSERT_EQ(device->n_streams, cases[i].n_streams);
        if (cases[i].out_gbs > 0) {
            ASSERT_OK(device->api->link(device, &link));
            ASSERT_TRUE(link.out_gbs == cases[i].out_gbs);
        }
        device_close(device);
    }
}

/* A speed alone says all about a link: both ways, no sharing, no latency. */
static void test_link_by_speed(void **state)
{
    np_device *device = device_open("sim:h200-pcie5,link=50GB/s", NULL);
    neap_link link;
    (void)state;
    ASSERT_OK(device->api->link(device, &link));
    ASSERT_TRUE(link.out_gbs == 50 && link.in_gbs == 50 && link.both_gbs == 0 && link.latency_us == 0);
    device_close(device);
}

static void test_refusals_say_what_there_is(void **state)
{
    static const struct {
        const char *name;
        const char *says[3];
    } cases[] = {
        {"", {"no device \"\"", "cpu, sim"}},
        {"gpu", {"no device \"gpu\"", "cpu, sim"}},
        {"CPU", {"no device \"CPU\"", "cpu, sim"}},
        {"cpux", {"cpu, sim"}},
        {"cp", {"cpu, sim"}},
        {"cpu,page=4KiB", {"no device \"cpu,page=4KiB\""}},
        {"cpu:pages=4KiB", {"\"pages=4KiB\"", "page=BYTES", "memory=BYTES"}},
        {"cpu:pag=4KiB", {"\"pag=4KiB\"", "streams=N", "link=SPEED"}},
        {"cpu:page", {"\"page\"", "page=BYTES"}},
        {"cpu:h200-pcie5", {"device cpu has no setting \"h200-pcie5\"", "page=BYTES"}},
        {"sim:h100", {"device sim has no setting \"h100\"", "h200-pcie5, a100-pcie4, 1080ti-pcie3"}},
        {"sim:page=4KiB,h200-pcie5", {"\"h200-pcie5\""}}, /* the link comes first */
        {"cpu:page=", {"page=: expected page=BYTES (a power of two, 4KiB at least)"}},
        {"cpu:page=3KiB", {"page=3KiB: expected"}},
        {"cpu:page=12KiB", {"page=12KiB: expected"}},
        {"cpu:page=2KiB", {"page=2KiB: expected"}},
        {"cpu:page=64kbi", {"page=64kbi: expected"}},
        {"cpu:page=4 KiB", {"expected page=BYTES"}},
        {"cpu:page=-4096", {"expected page=BYTES"}},
        {"cpu:memory=0", {"memory=0: expected memory=BYTES"}},
        {"cpu:memory=0.3B", {"memory=0.3B: expected"}},
        {"cpu:memory=1.", {"memory=1.: expected"}},
        {"cpu:memory=.5GiB", {"expected memory=BYTES"}},
        {"cpu:memory=99999999999999999999GiB", {"expected memory=BYTES"}},
        {"cpu:memory=4095", {"less than one page of 4096 bytes"}},
        {"sim:memory=1MiB,page=2MiB", {"less than one page of 2097152 bytes"}},
        {"cpu:streams=0", {"streams=0: expected streams=N (1 to 16)"}},
        {"cpu:streams=17", {"streams=17: expected"}},
        {"cpu:streams=1.5", {"streams=1.5: expected"}},
        {"cpu:streams=2x", {"streams=2x: expected"}},
        {"cpu:link=2", {"link=2: expected link=SPEED (as 2.5GB/s)"}},
        {"cpu:link=0GB/s", {"link=0GB/s: expected"}},
        {"cpu:link=2GB", {"link=2GB: expected"}},
        {"cpu:link=2GiB/s", {"link=2GiB/s: expected"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        neap_error error = {{0}};
        np_device *device = NULL;
        ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_device_open(cases[i].name, NULL, &error, &device));
        ASSERT_TRUE(device == NULL);
        for (size_t k = 0; k < 3 && cases[i].says[k]; k++) {
            ASSERT_CONTAINS(error.text, cases[i].says[k]);
        }
        ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_device_open(cases[i].name, NULL, NULL, &device));
    }
}

static void test_long_names(void **state)
{
    static char name[5000];
    neap_error error;
    np_device *device;
    (void)state;
    memset(name, 'x', sizeof name - 1);
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_device_open(name, NULL, &error, &device));
    ASSERT_CONTAINS(error.text, "cpu, sim");
    memcpy(name, "cpu:", 4);
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_device_open(name, NULL, &error, &device));
    ASSERT_CONTAINS(error.text, "link=SPEED");
    memcpy(name, "cpu:page=", 9);
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_device_open(name, NULL, &error, &device));
    ASSERT_CONTAINS(error.text, "expected page=BYTES");
}

static neap_status open_close(const neap_memory *memory, void *user)
{
    np_device *device;
    neap_error error;
    neap_status status = np_device_open(user, memory, &error, &device);
    if (status == NEAP_OK) {
        ASSERT_STR_EQ(error.text, "");
        device_close(device);
    } else {
        ASSERT_CONTAINS(error.text, neap_status_message(NEAP_NO_MEMORY));
    }
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    ASSERT_GE(test_memory_fail_each(open_close, "cpu:streams=3"), 10);
    ASSERT_GE(test_memory_fail_each(open_close, "sim"), 2);
}

static void test_any_locale(void **state)
{
    test_comma_begin();
    test_settings(state);
    test_link_by_speed(state);
    test_comma_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),      cmocka_unit_test(test_settings),
        cmocka_unit_test(test_link_by_speed), cmocka_unit_test(test_refusals_say_what_there_is),
        cmocka_unit_test(test_long_names),    cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_any_locale),
    };
    return cmocka_run_group_tests_name("device/open", tests, NULL, NULL);
}
