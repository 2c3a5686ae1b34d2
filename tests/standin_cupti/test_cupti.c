/* test_cupti.c: the stand-in CUPTI over the stand-in driver: what it tells of calls, and the layouts it does it in, which
 * are compared with the real ones where there are such headers. */
#define _GNU_SOURCE /* setenv */
#include "standin_cupti/cupti.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda_driver.h"
#include "device/standin_device.h"
#include "testing.h"

#if __has_include(<cupti.h>) && __has_include(<cuda.h>)
#include <cupti.h>
#define HAS_REAL 1
#else
#define HAS_REAL 0
#endif

enum { PAGE = 65536 };

static np_cuda_driver driver;
static np_cu_context context;
static void *library;
static void *subscriber;
static int (*subscribe)(void **handle, standin_cupti_callback callback, void *user);
static int (*unsubscribe)(void *handle);
static int (*enable)(uint32_t enable, void *handle, int domain, uint32_t id);
static int (*enable_domain)(uint32_t enable, void *handle, int domain);
static int (*get_name)(int domain, uint32_t id, const char **name);
static int (*get_text)(int result, const char **text);
static int (*finalize)(void);

static void find(void *from, const char *symbol, void *function)
{
    void *found = dlsym(from, symbol);
    ASSERT_TRUE(found != NULL);
    memcpy(function, &found, sizeof found);
}

static void start(void)
{
    standin_use(PAGE);
    ASSERT_EQ(setenv("CUDA_INJECTION64_PATH", NEAP_STANDIN_DIR "/injected.so", 1), 0);
    ASSERT_OK(np_cuda_driver_load(&driver, NULL));
    ASSERT_EQ(driver.primary_retain(&context, 0), NP_CU_SUCCESS);
    ASSERT_EQ(driver.context_push(context), NP_CU_SUCCESS);
    library = dlopen(NEAP_STANDIN_DIR "/libcupti.so.13", RTLD_NOW);
    ASSERT_TRUE(library != NULL);
    find(library, "cuptiSubscribe", &subscribe);
    find(library, "cuptiUnsubscribe", &unsubscribe);
    find(library, "cuptiEnableCallback", &enable);
    find(library, "cuptiEnableDomain", &enable_domain);
    find(library, "cuptiGetCallbackName", &get_name);
    find(library, "cuptiGetResultString", &get_text);
    find(library, "cuptiFinalize", &finalize);
}

static void stop(void)
{
    np_cu_context popped;
    ASSERT_EQ(driver.context_pop(&popped), NP_CU_SUCCESS);
    ASSERT_EQ(driver.primary_release(0), NP_CU_SUCCESS);
}

static uint32_t id_of(const char *wanted)
{
    const char *name;
    for (uint32_t id = 1; get_name(STANDIN_CUPTI_DRIVER_API, id, &name) == 0; id++) {
        if (strcmp(name, wanted) == 0) {
            return id;
        }
    }
    return 0;
}

/* ---- what was told of ---- */

enum { MAX_TOLD = 64, PARAMETERS_BYTES = 64 };

static struct told {
    standin_cupti_data data;
    uint32_t id;
    int result;
    unsigned char parameters[PARAMETERS_BYTES]; /* as far as the call has them */
} told[MAX_TOLD];
static size_t n_told;
static size_t parameters_bytes;
static bool is_calling; /* the callback makes calls of its own */
static bool is_inside;

static void note(void *user, int domain, uint32_t id, const void *given)
{
    struct told *t = &told[n_told];
    ASSERT_TRUE(user == &n_told);
    ASSERT_EQ(domain, STANDIN_CUPTI_DRIVER_API);
    ASSERT_TRUE(n_told < MAX_TOLD);
    n_told++;
    memcpy(&t->data, given, sizeof t->data);
    t->id = id;
    t->result = -1;
    if (t->data.result) {
        memcpy(&t->result, t->data.result, sizeof t->result);
    }
    if (t->data.parameters) {
        memcpy(t->parameters, t->data.parameters, parameters_bytes);
    }
    if (t->data.site == STANDIN_CUPTI_ENTER) {
        *t->data.data = 1000 + n_told;
    } else {
        ASSERT_TRUE(*t->data.data > 1000);
    }
    if (is_calling && !is_inside) {
        int n;
        is_inside = true;
        ASSERT_EQ(driver.device_count(&n), NP_CU_SUCCESS);
        is_inside = false;
    }
}

static void listen_to(const char *symbol, size_t bytes)
{
    n_told = 0;
    parameters_bytes = bytes;
    ASSERT_EQ(subscribe(&subscriber, note, &n_told), STANDIN_CUPTI_SUCCESS);
    ASSERT_EQ(enable(1, subscriber, STANDIN_CUPTI_DRIVER_API, id_of(symbol)), STANDIN_CUPTI_SUCCESS);
}

/* ---- tests ---- */

static void test_injection(void **state)
{
    void *injected;
    int *n_injected;
    int *result;
    (void)state;
    start();
    injected = dlopen(NEAP_STANDIN_DIR "/injected.so", RTLD_NOW | RTLD_NOLOAD);
    ASSERT_TRUE(injected != NULL);
    n_injected = dlsym(injected, "n_injected");
    result = dlsym(injected, "result_in_injection");
    ASSERT_EQ(driver.init(0), NP_CU_SUCCESS);
    ASSERT_EQ(*n_injected, 1);
    ASSERT_EQ(*result, 3); /* CUDA_ERROR_NOT_INITIALIZED */
    stop();
}

static void test_subscribing(void **state)
{
    void *second = NULL;
    const char *text;
    (void)state;
    start();
    ASSERT_EQ(subscribe(&subscriber, note, NULL), STANDIN_CUPTI_SUCCESS);
    ASSERT_EQ(subscribe(&second, note, NULL), STANDIN_CUPTI_MULTIPLE_SUBSCRIBERS);
    ASSERT_EQ(get_text(STANDIN_CUPTI_MULTIPLE_SUBSCRIBERS, &text), STANDIN_CUPTI_SUCCESS);
    ASSERT_TRUE(strcmp(text, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED") == 0);
    ASSERT_EQ(unsubscribe(subscriber), STANDIN_CUPTI_SUCCESS);
    ASSERT_EQ(unsubscribe(subscriber), STANDIN_CUPTI_INVALID_PARAMETER);
    ASSERT_EQ(enable(1, subscriber, STANDIN_CUPTI_DRIVER_API, 1), STANDIN_CUPTI_INVALID_PARAMETER);
    ASSERT_EQ(subscribe(&second, note, NULL), STANDIN_CUPTI_SUCCESS);
    ASSERT_EQ(finalize(), STANDIN_CUPTI_SUCCESS); /* by anybody */
    ASSERT_EQ(unsubscribe(second), STANDIN_CUPTI_INVALID_PARAMETER);
    stop();
}

static void test_names(void **state)
{
    static const char *const some[] = {"cuLaunchKernel",      "cuLaunchKernel_ptsz", "cuMemcpyHtoDAsync_v2",
                                       "cuGraphLaunch",       "cuMemcpyBatchAsync",  "cuLaunchKernelEx",
                                       "cuFutureGatherAsync", "cuMemcpyFutureAsync", "cuIpcGetMemHandle",
                                       "cuMemAllocAsync",     "cuMemFreeAsync_ptsz", "cuLaunchCooperativeKernel"};
    const char *name;
    (void)state;
    start();
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        ASSERT_TRUE(id_of(some[i]) > 0);
    }
    ASSERT_EQ(get_name(STANDIN_CUPTI_DRIVER_API, 0, &name), STANDIN_CUPTI_INVALID_PARAMETER);
    ASSERT_EQ(get_name(STANDIN_CUPTI_DRIVER_API, 100000, &name), STANDIN_CUPTI_INVALID_PARAMETER);
    ASSERT_TRUE(id_of("cuInit") != 1 || id_of("cuDriverGetVersion") != 2 || id_of("cuDeviceGet") != 3); /* shuffled */
    stop();
}

static void test_begin_and_end(void **state)
{
    static char host[64];
    np_cu_address at = 0;
    struct {
        np_cu_address to;
        const void *from;
        size_t bytes;
        np_cu_stream stream;
    } parameters;
    (void)state;
    start();
    ASSERT_EQ(driver.alloc(&at, sizeof host), NP_CU_SUCCESS);
    listen_to("cuMemcpyHtoDAsync_v2", sizeof parameters);
    ASSERT_EQ(driver.copy_in(at, host, sizeof host, NULL), NP_CU_SUCCESS);
    ASSERT_EQ(driver.copy_out(host, at, sizeof host, NULL), NP_CU_SUCCESS); /* is not asked for */
    ASSERT_EQ(n_told, 2);
    memcpy(&parameters, told[0].parameters, sizeof parameters);
    ASSERT_TRUE(parameters.to == at && parameters.from == host && parameters.bytes == sizeof host);
    ASSERT_EQ(told[0].data.site, STANDIN_CUPTI_ENTER);
    ASSERT_EQ(told[1].data.site, STANDIN_CUPTI_EXIT);
    ASSERT_EQ(told[0].result, -1);
    ASSERT_EQ(told[1].result, 0);
    ASSERT_EQ(told[0].data.correlation, told[1].data.correlation);
    ASSERT_TRUE(told[0].data.data == told[1].data.data);
    ASSERT_TRUE(told[0].data.context == context);
    ASSERT_TRUE(strcmp(told[0].data.function, "cuMemcpyHtoDAsync_v2") == 0);
    ASSERT_TRUE(told[0].data.symbol == NULL);
    ASSERT_EQ(told[0].id, id_of("cuMemcpyHtoDAsync_v2"));
    standin_get()->fail_call("cuMemcpyHtoDAsync_v2", 1, 700, false);
    ASSERT_EQ(driver.copy_in(at, host, sizeof host, NULL), 700);
    ASSERT_EQ(n_told, 4);
    ASSERT_EQ(told[3].result, 700);
    ASSERT_EQ(enable(0, subscriber, STANDIN_CUPTI_DRIVER_API, id_of("cuMemcpyHtoDAsync_v2")), 0);
    ASSERT_EQ(driver.copy_in(at, host, sizeof host, NULL), NP_CU_SUCCESS);
    ASSERT_EQ(n_told, 4);
    ASSERT_EQ(unsubscribe(subscriber), 0);
    ASSERT_EQ(driver.free(at), NP_CU_SUCCESS);
    stop();
}

/* The tracer is told of its own calls too. */
static void test_calls_inside(void **state)
{
    int n;
    (void)state;
    start();
    listen_to("cuDeviceGetCount", 0);
    is_calling = true;
    ASSERT_EQ(driver.device_count(&n), NP_CU_SUCCESS);
    is_calling = false;
    ASSERT_EQ(n_told, 6); /* two of each of its own in the two of the call */
    ASSERT_EQ(unsubscribe(subscriber), 0);
    n_told = 0;
    ASSERT_EQ(subscribe(&subscriber, note, &n_told), 0);
    ASSERT_EQ(enable_domain(1, subscriber, STANDIN_CUPTI_DRIVER_API), 0);
    ASSERT_EQ(driver.device_count(&n), NP_CU_SUCCESS);
    ASSERT_EQ(driver.context_get(&context), NP_CU_SUCCESS);
    ASSERT_EQ(n_told, 4);
    ASSERT_EQ(unsubscribe(subscriber), 0);
    stop();
}

static void run_nothing(void **parameters)
{
    (void)parameters;
}

static void test_kernel_names(void **state)
{
    static const size_t bytes[] = {8};
    standin_kernel *kernel;
    uint64_t number = 5;
    void *parameters[] = {&number};
    struct {
        void *function;
        unsigned int numbers[7];
        np_cu_stream stream;
        void **parameters;
        void **extra;
    } seen;
    int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  np_cu_stream stream, void **parameters, void **extra);
    (void)state;
    start();
    find(driver.library, "cuLaunchKernel", &launch);
    kernel = standin_get()->kernel_create("_Z7nothingm", run_nothing, 1, bytes);
    listen_to("cuLaunchKernel", sizeof seen);
    ASSERT_EQ(launch(kernel, 1, 2, 3, 4, 5, 6, 7, NULL, parameters, NULL), 0);
    ASSERT_EQ(n_told, 2);
    ASSERT_TRUE(strcmp(told[0].data.symbol, "_Z7nothingm") == 0);
    memcpy(&seen, told[0].parameters, sizeof seen);
    ASSERT_TRUE(seen.function == kernel && seen.parameters == parameters && seen.stream == NULL);
    ASSERT_EQ(seen.numbers[6], 7);
    ASSERT_EQ(unsubscribe(subscriber), 0);
    standin_get()->kernel_free(kernel);
    stop();
}

static void test_real_layouts(void **state)
{
    (void)state;
#if HAS_REAL
#define SAME(own, real) ASSERT_EQ(offsetof(standin_cupti_data, own), offsetof(CUpti_CallbackData, real))
    SAME(site, callbackSite);
    SAME(function, functionName);
    SAME(parameters, functionParams);
    SAME(result, functionReturnValue);
    SAME(symbol, symbolName);
    SAME(context, context);
    SAME(context_id, contextUid);
    SAME(data, correlationData);
    SAME(correlation, correlationId);
    ASSERT_EQ(sizeof(standin_cupti_data), sizeof(CUpti_CallbackData));
    ASSERT_EQ(STANDIN_CUPTI_INVALID_PARAMETER, CUPTI_ERROR_INVALID_PARAMETER);
    ASSERT_EQ(STANDIN_CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
    ASSERT_EQ(STANDIN_CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    ASSERT_EQ(STANDIN_CUPTI_DRIVER_API, CUPTI_CB_DOMAIN_DRIVER_API);
    ASSERT_EQ(STANDIN_CUPTI_EXIT, CUPTI_API_EXIT);
    ASSERT_EQ(offsetof(cuLaunchKernel_params, hStream), 40);
    ASSERT_EQ(offsetof(cuLaunchKernel_params, kernelParams), 48);
#else
    SKIP("there are no headers of CUPTI");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_injection),     cmocka_unit_test(test_subscribing),  cmocka_unit_test(test_names),
        cmocka_unit_test(test_begin_and_end), cmocka_unit_test(test_calls_inside), cmocka_unit_test(test_kernel_names),
        cmocka_unit_test(test_real_layouts),
    };
    return cmocka_run_group_tests_name("standin_cupti/cupti", tests, NULL, NULL);
}
