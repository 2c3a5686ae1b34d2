/* Calls that CUPTI tells of: each is held under the device's lock from its begin to its end, whatever comes between them. CUPTI
 * is a double that hands out the callback; what is made of a call is written down. */
#include <pthread.h>
#include <string.h>

#include "hook/core.h"
#include "hook/report.h"
#include "testing.h"

/* ---- doubles ---- */

np_hook np_the_hook; /* core.c and its like are left out */
NP_HOOK_THREAD bool np_hook_is_inside;
NP_HOOK_THREAD np_hook_device *np_hook_held;
NP_HOOK_THREAD bool np_hook_is_copier;

static neap_device manager;
static np_hook_device device = {.manager = &manager};
static np_cupti_callback *told; /* what CUPTI calls */
static const char *aside;
static uint32_t n_before;
static uint32_t n_after;
static uint32_t n_failed; /* of those after */
static uint32_t n_home;

bool np_hook_is_on(void)
{
    return true;
}

bool np_hook_is_over(void)
{
    return false;
}

const char np_hook_elsewhere[] = "elsewhere";
const char np_hook_peers[] = "peers";

np_hook_device *np_hook_first_device(void)
{
    return &device;
}

void np_hook_report_write(const np_hook_settings *settings)
{
    (void)settings;
}

size_t np_hook_n_devices(void)
{
    return 1;
}

void np_hook_step_aside(const char *why)
{
    aside = why;
}

np_hook_device *np_hook_device_of_context(const void *context)
{
    return context == &device ? &device : NULL;
}

bool np_hook_rest_passes(np_hook_device *of, const np_hook_call *call)
{
    (void)of;
    return call->kind == NP_CALL_COPY; /* as if the program was not looked at */
}

void np_hook_scrub_where_it_matters(bool is_resting)
{
    (void)is_resting;
}

/* The lock is held by the thread that has the call. */
static bool is_locked(void)
{
    if (pthread_mutex_trylock(&manager.lock) == 0) {
        ASSERT_EQ(pthread_mutex_unlock(&manager.lock), 0);
        return false;
    }
    return true;
}

void np_hook_see_before(np_hook_device *of, const np_hook_call *call, bool per_thread, const np_cupti_data *data)
{
    (void)call;
    (void)per_thread;
    (void)data;
    ASSERT_TRUE(of == &device && np_hook_is_inside && is_locked());
    n_before++;
}

void np_hook_see_after(np_hook_device *of, const np_hook_call *call, bool per_thread, const np_cupti_data *data)
{
    (void)per_thread;
    int result = 0;
    (void)call;
    ASSERT_TRUE(of == &device && np_hook_is_inside && is_locked());
    memcpy(&result, data->result, sizeof result);
    n_after++;
    n_failed += result != 0;
}

static neap_status home(np_hook_device *of)
{
    ASSERT_TRUE(of == &device && is_locked());
    n_home++;
    return NEAP_OK;
}

static const np_hook_keeper keeper = {.home = home};

/* ---- CUPTI ---- */

static const char *const names[] = {NULL, "cuLaunchKernel", "cuGraphLaunch", "cuMemcpyAsync"};
enum { LAUNCH = 1, GRAPH, COPY, N_NAMES };

static int subscribe(void **subscriber, np_cupti_callback *callback, void *user)
{
    (void)user;
    *subscriber = &told;
    told = callback;
    return 0;
}

static int enable(uint32_t is_enabled, void *subscriber, int domain, uint32_t id)
{
    (void)subscriber;
    (void)domain;
    return is_enabled == 1 && id < N_NAMES ? 0 : 1;
}

static int name_of(int domain, uint32_t id, const char **name)
{
    (void)domain;
    *name = id < N_NAMES ? names[id] : NULL;
    return 0;
}

int np_cupti_subscribe(const np_cupti *cupti, bool is_alone, np_cupti_callback *callback, void **subscriber,
                       char other[NP_CUPTI_NAME_BYTES])
{
    ASSERT_FALSE(is_alone);
    other[0] = '\0';
    return cupti->subscribe(subscriber, callback, NULL);
}

bool np_cupti_load(np_cupti *cupti, const char **why)
{
    (void)why;
    cupti->subscribe = subscribe;
    cupti->enable = enable;
    cupti->name = name_of;
    return true;
}

static void call(uint32_t id, int site, void *context)
{
    int result = 0;
    const np_cupti_data data = {.site = site, .function_name = names[id], .context = context, .result = &result};
    told(NULL, NP_CUPTI_DRIVER, id, &data);
    ASSERT_FALSE(np_hook_is_inside);
}

static int begin(void **state)
{
    pthread_mutexattr_t checked; /* who would wait for himself does not */
    (void)state;
    if (!told) {
        (void)pthread_mutexattr_init(&checked);
        (void)pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
        (void)pthread_mutex_init(&manager.lock, &checked);
        np_hook_subscribe();
    }
    n_before = n_after = n_failed = n_home = 0;
    device.keeper = NULL;
    return told && !aside ? 0 : 1;
}

/* ---- tests ---- */

static void test_call(void **state)
{
    (void)state;
    call(LAUNCH, NP_CUPTI_ENTER, &device);
    ASSERT_TRUE(is_locked() && np_hook_held == &device);
    call(LAUNCH, NP_CUPTI_EXIT, &device);
    ASSERT_FALSE(is_locked());
    ASSERT_TRUE(!np_hook_held && n_before == 1 && n_after == 1 && n_failed == 0);
    call(COPY, NP_CUPTI_ENTER, &device); /* it is passed over */
    ASSERT_FALSE(is_locked());
    call(COPY, NP_CUPTI_EXIT, &device);
    ASSERT_TRUE(n_before == 1 && n_after == 1);
}

/* Calls within a call: the outer one has the lock to its end, and for a keeper everything is home. */
static void test_within(void **state)
{
    (void)state;
    for (int has_keeper = 0; has_keeper < 2; has_keeper++) {
        device.keeper = has_keeper ? &keeper : NULL;
        n_before = n_after = 0;
        call(GRAPH, NP_CUPTI_ENTER, &device);
        call(LAUNCH, NP_CUPTI_ENTER, &device);
        call(LAUNCH, NP_CUPTI_ENTER, &device);
        call(LAUNCH, NP_CUPTI_EXIT, &device);
        call(LAUNCH, NP_CUPTI_EXIT, &device);
        call(COPY, NP_CUPTI_ENTER, &device);
        call(COPY, NP_CUPTI_EXIT, &device);
        ASSERT_TRUE(is_locked() && n_before == 1 && n_after == 0);
        call(GRAPH, NP_CUPTI_EXIT, &device);
        ASSERT_FALSE(is_locked());
        ASSERT_TRUE(n_before == 1 && n_after == 1);
        ASSERT_EQ(n_home, has_keeper ? 3 : 0);
    }
}

static void *end_within(void *user)
{
    call(LAUNCH, NP_CUPTI_ENTER, &device);
    if (user) {
        call(LAUNCH, NP_CUPTI_ENTER, &device);
    }
    pthread_exit(NULL);
}

/* A thread that ends within a call leaves the lock to others, and its work is taken for failed. */
static void test_thread_end(void **state)
{
    pthread_t thread;
    (void)state;
    for (int is_within = 0; is_within < 2; is_within++) {
        ASSERT_EQ(pthread_create(&thread, NULL, end_within, is_within ? &thread : NULL), 0);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        ASSERT_FALSE(is_locked());
        ASSERT_EQ(n_failed, 1 + is_within);
    }
    call(LAUNCH, NP_CUPTI_ENTER, &device);
    call(LAUNCH, NP_CUPTI_EXIT, &device);
    ASSERT_TRUE(n_before == 3 && n_after == 3 && n_failed == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_call, begin),
        cmocka_unit_test_setup(test_within, begin),
        cmocka_unit_test_setup(test_thread_end, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
