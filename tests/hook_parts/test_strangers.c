/* Calls of the driver as CUPTI tells of them (test_inject.c): whose they are, whether they are looked at, and what is made of
 * those of other contexts. CUPTI and everything behind the callback are doubles. */
#include <string.h>

#include "hook/core.h"
#include "hook/report.h"
#include "testing.h"

/* ---- CUPTI ---- */

/* By their numbers, from 1 on. */
static const char *const names[] = {"cuLaunchKernel",          "cuMemcpyDtoDAsync_v2", "cuMemcpyPeerAsync",
                                    "cuGraphDestroy",          "cuLibraryUnload",      "cuCtxEnablePeerAccess",
                                    "cuMemPoolSetAccess",      "cuIpcGetMemHandle",    "cuTexObjectCreate",
                                    "cuStreamWriteValue32_v2", "cuStreamSynchronize"};

enum { N_NAMES = sizeof names / sizeof *names };

static np_cupti_callback *told;
static uint32_t n_disabled;

static int tell_name(int domain, uint32_t id, const char **name)
{
    ASSERT_EQ(domain, NP_CUPTI_DRIVER);
    *name = id <= N_NAMES ? names[id - 1] : NULL;
    return *name ? 0 : 1;
}

static int subscribe(void **subscriber, np_cupti_callback *callback, void *user)
{
    (void)user;
    *subscriber = &told;
    told = callback;
    return 0;
}

static int enable(uint32_t is_on, void *subscriber, int domain, uint32_t id)
{
    n_disabled += is_on == 0;
    ASSERT_TRUE(subscriber == &told);
    ASSERT_EQ(domain, NP_CUPTI_DRIVER);
    ASSERT_TRUE(id >= 1 && id <= N_NAMES);
    return 0;
}

int np_cupti_subscribe(const np_cupti *cupti, bool is_alone, np_cupti_callback *callback, void **subscriber,
                       char other[NP_CUPTI_NAME_BYTES])
{
    (void)is_alone;
    other[0] = '\0';
    return cupti->subscribe(subscriber, callback, NULL);
}

bool np_cupti_load(np_cupti *cupti, const char **why)
{
    (void)why;
    cupti->name = tell_name;
    cupti->subscribe = subscribe;
    cupti->enable = enable;
    return true;
}

/* ---- the process ---- */

np_hook np_the_hook;
NP_HOOK_THREAD bool np_hook_is_inside;
NP_HOOK_THREAD np_hook_device *np_hook_held;
NP_HOOK_THREAD bool np_hook_is_copier;
const char np_hook_elsewhere[] = "elsewhere";
const char np_hook_peers[] = "peers";

static neap_device manager = {.lock = PTHREAD_MUTEX_INITIALIZER};
static np_hook_device device;
static bool is_open; /* the device is */
static int context, other_context;
static uint32_t n_before, n_after;

np_hook_device *np_hook_device_of_context(const void *asked)
{
    return is_open && asked == &context ? &device : NULL;
}

np_hook_device *np_hook_first_device(void)
{
    return is_open ? &device : NULL;
}

size_t np_hook_n_devices(void)
{
    return is_open;
}

void np_hook_report_write(const np_hook_settings *settings)
{
    (void)settings;
}

bool np_hook_is_on(void)
{
    return true;
}

bool np_hook_is_over(void)
{
    return false;
}

void np_hook_step_aside(const char *why)
{
    np_the_hook.aside = why;
}

bool np_hook_rest_passes(np_hook_device *of, const np_hook_call *call)
{
    (void)of;
    (void)call;
    return false;
}

void np_hook_see_before(np_hook_device *of, const np_hook_call *call, bool per_thread, const np_cupti_data *data)
{
    (void)call;
    (void)per_thread;
    (void)data;
    ASSERT_TRUE(of == &device && np_hook_held == &device && np_hook_is_inside);
    n_before++;
}

void np_hook_see_after(np_hook_device *of, const np_hook_call *call, bool per_thread, const np_cupti_data *data)
{
    (void)call;
    (void)per_thread;
    (void)data;
    ASSERT_TRUE(of == &device);
    n_after++;
}

void np_hook_scrub_where_it_matters(bool is_resting)
{
    (void)is_resting;
}

int InitializeInjection(void);

static void start(bool has_device)
{
    if (!told) {
        ASSERT_EQ(InitializeInjection(), 1);
        ASSERT_TRUE(told != NULL && np_the_hook.is_seeing);
    }
    device = (np_hook_device){.manager = &manager};
    np_the_hook.settings.mode = NP_HOOK_RUN;
    np_the_hook.aside = NULL;
    np_the_hook.n_orphans = 0;
    np_hook_held = NULL;
    is_open = has_device;
    n_before = n_after = n_disabled = 0;
}

static void tell(int site, const char *name, void *of)
{
    np_cupti_data data = {.site = site, .function_name = name, .context = of};
    uint32_t id = 1;
    while (strcmp(names[id - 1], name) != 0) {
        id++;
        ASSERT_LE(id, N_NAMES);
    }
    told(NULL, NP_CUPTI_DRIVER, id, &data);
}

static void call(const char *name, void *of)
{
    tell(NP_CUPTI_ENTER, name, of);
    tell(NP_CUPTI_EXIT, name, of);
    ASSERT_TRUE(np_hook_held == NULL && !np_hook_is_inside);
    ASSERT_EQ(pthread_mutex_trylock(&manager.lock), 0);
    (void)pthread_mutex_unlock(&manager.lock);
}

/* ---- tests ---- */

static void test_own_context(void **state)
{
    (void)state;
    start(true);
    call("cuLaunchKernel", &context);
    call("cuMemcpyPeerAsync", &context);
    call("cuStreamSynchronize", &context); /* of no interest */
    ASSERT_EQ(n_before, 2);
    ASSERT_EQ(n_after, 2);
    call("cuLaunchKernel", NULL); /* it must be somebody's */
    ASSERT_EQ(n_before, 3);
    ASSERT_TRUE(np_the_hook.aside == NULL);
}

/* Of the process, not of a context. */
static void test_any_context(void **state)
{
    static const char *const of_any[] = {"cuGraphDestroy", "cuLibraryUnload", "cuIpcGetMemHandle", "cuTexObjectCreate"};
    uint32_t n = 0;
    (void)state;
    start(true);
    for (size_t i = 0; i < sizeof of_any / sizeof *of_any; i++) {
        call(of_any[i], &other_context);
        call(of_any[i], NULL);
        n += 2;
        ASSERT_EQ(n_before, n);
        ASSERT_EQ(n_after, n);
    }
    ASSERT_TRUE(np_the_hook.aside == NULL);
    start(false);
    call("cuGraphDestroy", NULL);
    ASSERT_EQ(n_before, 0);
}

/* Work of another device, or of a green context, may name blocks of this one. */
static void test_other_contexts(void **state)
{
    static const char *const work[] = {"cuLaunchKernel", "cuMemcpyDtoDAsync_v2", "cuMemcpyPeerAsync",
                                       "cuStreamWriteValue32_v2"};
    (void)state;
    for (size_t i = 0; i < sizeof work / sizeof *work; i++) {
        start(true);
        call("cuStreamSynchronize", &other_context);
        ASSERT_TRUE(np_the_hook.aside == NULL);
        call(work[i], &other_context);
        ASSERT_TRUE(np_the_hook.aside == np_hook_elsewhere);
        ASSERT_EQ(n_before, 0);
    }
}

/* Whoever it is enabled for, and also before anything was asked for. */
static void test_peers(void **state)
{
    static const char *const peers[] = {"cuCtxEnablePeerAccess", "cuMemPoolSetAccess"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        start(i < 2);
        call(peers[i % 2], &other_context);
        ASSERT_TRUE(np_the_hook.aside == np_hook_peers);
    }
}

/* Stepping aside: calls are looked at until everything is home, and one that is under way to its end. */
static void test_until_home(void **state)
{
    (void)state;
    start(true);
    np_the_hook.aside = "some reason";
    call("cuLaunchKernel", &context);
    ASSERT_EQ(n_before, 1);
    tell(NP_CUPTI_ENTER, "cuLaunchKernel", &context);
    device.is_left = true;
    tell(NP_CUPTI_EXIT, "cuLaunchKernel", &context);
    ASSERT_TRUE(np_hook_held == NULL);
    ASSERT_EQ(n_before, 2);
    ASSERT_EQ(n_after, 2);
    ASSERT_EQ(n_disabled, 2); /* launches and copies: nobody waits for them to be told any more */
    call("cuLaunchKernel", &context);
    ASSERT_EQ(n_before, 2);
}

/* A program whose memory comes by ways of its own. */
static void test_orphans(void **state)
{
    (void)state;
    start(false);
    for (int i = 0; i < 19999; i++) {
        call("cuLaunchKernel", &context);
    }
    ASSERT_TRUE(np_the_hook.aside == NULL);
    call("cuLaunchKernel", &context);
    ASSERT_CONTAINS(np_the_hook.aside, "a CUDA runtime of its own");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_context), cmocka_unit_test(test_any_context), cmocka_unit_test(test_other_contexts),
        cmocka_unit_test(test_peers),       cmocka_unit_test(test_until_home),  cmocka_unit_test(test_orphans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
