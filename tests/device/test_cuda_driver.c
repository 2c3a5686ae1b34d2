/* test_cuda_driver.c: drivers that are not there, lack a function or see no GPU; the names of cuda devices. */
#define _GNU_SOURCE /* setenv */
#include "device/cuda_driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda_state.h"
#include "device/device_tools.h"
#include "device/kinds.h"
#include "device/standin_device.h"
#include "testing.h"

/* NULL: not set. */
static void set(const char *name, const char *value)
{
    ASSERT_EQ(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void refuse(neap_status expected, const char *name, const char *part, const char *other_part)
{
    neap_error error = {""};
    np_device *device = NULL;
    ASSERT_STATUS(expected, np_device_open(name, NULL, &error, &device));
    ASSERT_CONTAINS(error.text, part);
    ASSERT_CONTAINS(error.text, other_part);
    ASSERT_TRUE(strchr(error.text, '\n') == NULL);
    ASSERT_TRUE(device == NULL);
    ASSERT_STATUS(expected, np_device_open(name, NULL, NULL, &device));
}

static void test_no_driver(void **state)
{
    void *real = dlopen("libcuda.so.1", RTLD_NOW);
    (void)state;
    set("NEAP_CUDA_DRIVER", "/nowhere/libcuda.so.1");
    refuse(NEAP_DEVICE_FAILED, "cuda:0", "no NVIDIA driver was found (/nowhere/libcuda.so.1)", "No such file");
    set("NEAP_CUDA_DRIVER", __FILE__); /* something, but no library */
    refuse(NEAP_DEVICE_FAILED, "cuda:0", "no NVIDIA driver was found (", "test_cuda_driver.c");
    set("NEAP_CUDA_DRIVER", NULL);
    if (real) {
        (void)dlclose(real);
        SKIP("this machine has a driver: what is said without one was not looked at");
    }
    refuse(NEAP_DEVICE_FAILED, "cuda:0", "no NVIDIA driver was found (libcuda.so.1)", "libcuda.so.1");
    set("NEAP_CUDA_DRIVER", "");
    refuse(NEAP_DEVICE_FAILED, "cuda", "no NVIDIA driver was found (libcuda.so.1)", "libcuda.so.1");
}

/* What the program is told. */
static void test_no_driver_for_programs(void **state)
{
    neap_error error = {""};
    neap_device *device = NULL;
    (void)state;
    set("NEAP_CUDA_DRIVER", "/nowhere/libcuda.so.1");
    ASSERT_STATUS(NEAP_DEVICE_FAILED, neap_open("cuda:0", NULL, NULL, &error, &device));
    ASSERT_CONTAINS(error.text, "no NVIDIA driver was found");
}

static void test_a_function_is_missing(void **state)
{
    (void)state;
    set("NEAP_CUDA_DRIVER", NEAP_STANDIN_DIR "/standin_without.so");
    refuse(NEAP_DEVICE_FAILED, "cuda:0", "has no function cuMemUnmap", "too old");
}

static void test_no_device(void **state)
{
    (void)state;
    standin_use(65536);
    set("STANDIN_DEVICES", "0");
    refuse(NEAP_DEVICE_FAILED, "cuda:0", "no NVIDIA GPU was found", "the driver is there");
    set("STANDIN_DEVICES", "2"); /* for the tests that follow */
}

static void test_it_does_not_start(void **state)
{
    const standin_control *control = standin_get();
    neap_error error = {""};
    np_device *device;
    (void)state;
    standin_use(65536);
    for (int i = 0; i < 2; i++) {
        control->fail_call(i == 0 ? "cuInit" : "cuDeviceGetCount", 1, NP_CU_UNKNOWN, true);
        refuse(NEAP_DEVICE_FAILED, "cuda:0", "the NVIDIA driver could not be started",
               "CUDA_ERROR_UNKNOWN: unknown error");
        control->fail_call(NULL, 0, 0, false);
    }
    control->fail_call("cuInit", 1, NP_CU_NO_DEVICE, false);
    ASSERT_STATUS(NEAP_DEVICE_FAILED, np_device_open("cuda:0", NULL, &error, &device));
    ASSERT_CONTAINS(error.text, "no NVIDIA GPU was found");
}

static void test_numbers(void **state)
{
    np_device *device;
    (void)state;
    standin_use(65536);
    refuse(NEAP_BAD_ARGUMENT, "cuda:2", "no device cuda:2", "there are 2");
    refuse(NEAP_BAD_ARGUMENT, "cuda:1023", "no device cuda:1023", "there are 2");
    refuse(NEAP_BAD_ARGUMENT, "cuda:1024", "device cuda has no setting \"1024\"", "the device's number");
    refuse(NEAP_BAD_ARGUMENT, "cuda:0,1", "device cuda has no setting \"1\"", "the device's number");
    refuse(NEAP_BAD_ARGUMENT, "cuda:-1", "device cuda has no setting \"-1\"", "memory=BYTES");
    refuse(NEAP_BAD_ARGUMENT, "cuda:1.5", "device cuda has no setting \"1.5\"", "memory=BYTES");
    refuse(NEAP_BAD_ARGUMENT, "cuda:1x", "device cuda has no setting \"1x\"", "memory=BYTES");
    refuse(NEAP_BAD_ARGUMENT, "cuda:memory=1MiB,0", "device cuda has no setting \"0\"", "memory=BYTES");
    refuse(NEAP_BAD_ARGUMENT, "cuda0", "no device \"cuda0\"", "cpu, sim, cuda");
    for (int i = 0; i < 2; i++) {
        device = device_open(i == 0 ? "cuda" : "cuda:1", NULL);
        ASSERT_EQ(((np_cuda *)standin_inner(device))->ordinal, i);
        ASSERT_STR_EQ(device->kind, "cuda");
        device_close(device);
    }
}

static void test_settings(void **state)
{
    static const struct {
        const char *name;
        uint64_t page_bytes;
        uint32_t n_pages;
        uint32_t n_streams;
    } cases[] = {
        {"cuda:0", 65536, 16384, 1}, /* of 1 GiB */
        {"cuda:0,memory=1MiB,streams=3", 65536, 16, 3},
        {"cuda:memory=1MiB,page=128KiB", 131072, 8, 1},
        {"cuda:1,memory=4GiB,streams=16", 65536, 65536, 16}, /* more than there is: it is full before */
    };
    neap_link link;
    np_device *device;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        device = device_open(cases[i].name, NULL);
        ASSERT_EQ(device->page_bytes, cases[i].page_bytes);
        ASSERT_EQ(device->n_pages, cases[i].n_pages);
        ASSERT_EQ(device->n_streams, cases[i].n_streams);
        ASSERT_FALSE(device->wants_touches);
        ASSERT_TRUE(np_cuda_is_valid(standin_inner(device)));
        device_close(device);
    }
    device = device_open("cuda:0,link=12.5GB/s", NULL);
    ASSERT_OK(device->api->link(device, &link));
    ASSERT_TRUE(link.out_gbs == 12.5 && link.in_gbs == 12.5 && link.both_gbs == 0 && link.latency_us == 0);
    device_close(device);
    refuse(NEAP_BAD_ARGUMENT, "cuda:0,page=4KiB", "pages of 4096 bytes are not possible", "65536 is the least");
    refuse(NEAP_BAD_ARGUMENT, "cuda:0,memory=65535", "the memory of device cuda is less than one page", "65536");
}

static void test_no_virtual_memory(void **state)
{
    (void)state;
    standin_use(65536);
    set("STANDIN_NO_VIRTUAL_MEMORY", "1");
    refuse(NEAP_DEVICE_FAILED, "cuda:0", "cuda:0 (Stand-in)", "no virtual memory management");
    set("STANDIN_NO_VIRTUAL_MEMORY", NULL);
}

/* A driver without the functions that are optional does all the same. */
static void test_an_old_driver(void **state)
{
    np_device *device = NULL;
    np_times times = {0};
    neap_error error = {""};
    np_task task = {.times = &times};
    uint64_t mark;
    (void)state;
    standin_use(65536);
    set("NEAP_CUDA_DRIVER", NEAP_STANDIN_DIR "/standin_old.so");
    ASSERT_OK(np_device_open("cuda:0,memory=1MiB", NULL, &error, &device));
    ASSERT_TRUE(((np_cuda *)device)->driver.exchange_capture_mode == NULL);
    ASSERT_OK(device->api->launch(device, 0, &task, &mark));
    ASSERT_OK(device->api->sync(device, 0, mark));
    ASSERT_GT(times.start_ns, 0);
    device_close(device);
}

static void test_explanations(void **state)
{
    np_cuda_driver driver;
    char text[NP_CUDA_ERROR_CHARS];
    (void)state;
    standin_use(65536);
    ASSERT_OK(np_cuda_driver_load(&driver, NULL));
    np_cuda_driver_explain(&driver, NP_CU_OUT_OF_MEMORY, text);
    ASSERT_STR_EQ(text, "CUDA_ERROR_OUT_OF_MEMORY: out of memory");
    np_cuda_driver_explain(&driver, (np_cu_result)12345, text);
    ASSERT_STR_EQ(text, "CUDA error 12345");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_driver),
        cmocka_unit_test(test_no_driver_for_programs),
        cmocka_unit_test(test_a_function_is_missing),
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_it_does_not_start),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_no_virtual_memory),
        cmocka_unit_test(test_an_old_driver),
        cmocka_unit_test(test_explanations),
    };
    return cmocka_run_group_tests_name("device/cuda_driver", tests, NULL, NULL);
}
