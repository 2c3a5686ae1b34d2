/* CUPTI as it is loaded: the layout of what it hands over, against its own header; which library is taken. */
#define _GNU_SOURCE /* setenv */
#include "hook/cupti.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

#if __has_include(<cupti.h>) && __has_include(<cuda.h>)
#include <cupti.h>

#define SAME_PLACE(field, real_field)                                                                  \
    do {                                                                                               \
        ASSERT_EQ(offsetof(np_cupti_data, field), offsetof(CUpti_CallbackData, real_field));           \
        ASSERT_EQ(sizeof(((np_cupti_data *)0)->field), sizeof(((CUpti_CallbackData *)0)->real_field)); \
    } while (0)

static void test_layout(void **state)
{
    (void)state;
    SAME_PLACE(site, callbackSite);
    SAME_PLACE(function_name, functionName);
    SAME_PLACE(parameters, functionParams);
    SAME_PLACE(result, functionReturnValue);
    SAME_PLACE(symbol_name, symbolName);
    SAME_PLACE(context, context);
    SAME_PLACE(context_uid, contextUid);
    SAME_PLACE(correlation_data, correlationData);
    SAME_PLACE(correlation_id, correlationId);
    ASSERT_EQ(sizeof(np_cupti_data), sizeof(CUpti_CallbackData));
    ASSERT_EQ(NP_CUPTI_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
    ASSERT_EQ(NP_CUPTI_ENTER, CUPTI_API_ENTER);
    ASSERT_EQ(NP_CUPTI_EXIT, CUPTI_API_EXIT);
    ASSERT_EQ(sizeof(CUpti_CallbackId), sizeof(uint32_t));
    ASSERT_EQ(sizeof(CUpti_CallbackDomain), sizeof(int));
    ASSERT_EQ(sizeof(CUptiResult), sizeof(int));
    ASSERT_EQ(sizeof(CUpti_SubscriberHandle), sizeof(void *));
#if CUPTI_API_VERSION >= 130000
    ASSERT_EQ(offsetof(np_cupti_subscription, struct_bytes), offsetof(CUpti_SubscriberParams, structSize));
    ASSERT_EQ(offsetof(np_cupti_subscription, name), offsetof(CUpti_SubscriberParams, subscriberName));
    ASSERT_EQ(offsetof(np_cupti_subscription, other), offsetof(CUpti_SubscriberParams, oldSubscriberName));
    ASSERT_EQ(offsetof(np_cupti_subscription, other_bytes), offsetof(CUpti_SubscriberParams, oldSubscriberSize));
    ASSERT_EQ(NP_CUPTI_NAME_BYTES, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
    ASSERT_EQ(NP_CUPTI_TAKEN, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
#endif
#if CUPTI_API_VERSION >= 130200
    ASSERT_EQ(offsetof(np_cupti_subscription, allows_others),
              offsetof(CUpti_SubscriberParams, allowMultipleSubscribers));
    ASSERT_EQ(sizeof(np_cupti_subscription), CUpti_SubscriberParams_STRUCT_SIZE);
#endif
}

#else

static void test_layout(void **state)
{
    (void)state;
    SKIP("there is no cupti.h to compare with");
}

#endif

/* ---- loading ---- */

static bool load(const char *given, np_cupti *cupti, const char **why)
{
    ASSERT_EQ(given ? setenv("NEAP_CUPTI", given, 1) : unsetenv("NEAP_CUPTI"), 0);
    *why = NULL;
    return np_cupti_load(cupti, why);
}

static void test_given_library(void **state)
{
    np_cupti cupti = {0};
    const char *why;
    const char *text = NULL;
    (void)state;
    ASSERT_TRUE(load(NEAP_STANDIN_DIR "/libcupti.so.13", &cupti, &why));
    ASSERT_TRUE(why == NULL);
    ASSERT_TRUE(cupti.library && cupti.subscribe && cupti.unsubscribe && cupti.enable && cupti.name && cupti.explain);
    ASSERT_TRUE((void *)(uintptr_t)cupti.enable == dlsym(cupti.library, "cuptiEnableCallback"));
    ASSERT_EQ(cupti.name(NP_CUPTI_DRIVER, 1, &text), 0);
    ASSERT_TRUE(text != NULL);
}

/* The one given and no other: where it is not there, there is none. */
static void test_no_library(void **state)
{
    np_cupti cupti = {0};
    const char *why;
    (void)state;
    ASSERT_FALSE(load("/nowhere/libcupti.so", &cupti, &why));
    ASSERT_CONTAINS(why, "was not found");
    ASSERT_TRUE(cupti.library == NULL);
}

/* A library of that name that is something else. */
static void test_other_library(void **state)
{
    np_cupti cupti = {0};
    const char *why;
    (void)state;
    ASSERT_FALSE(load(NEAP_STANDIN_DIR "/standin.so", &cupti, &why));
    ASSERT_CONTAINS(why, "lacks");
    ASSERT_TRUE(cupti.library == NULL);
}

/* The one that the process has is taken before any other. */
static void test_loaded_library(void **state)
{
    np_cupti cupti = {0};
    const char *why;
    void *loaded = dlopen(NEAP_STANDIN_DIR "/libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
    (void)state;
    ASSERT_TRUE(loaded != NULL);
    ASSERT_TRUE(load(NULL, &cupti, &why));
    ASSERT_TRUE(cupti.library == loaded);
    ASSERT_TRUE(load("", &cupti, &why)); /* the same as none given */
    ASSERT_TRUE(cupti.library == loaded);
}

/* ---- subscribing ---- */

/* Over the stand-in driver, which it asks for by its name. */
static void load_over_driver(const char *given, np_cupti *cupti)
{
    const char *why;
    ASSERT_TRUE(dlopen(NEAP_STANDIN_DIR "/libcuda.so.1", RTLD_NOW) != NULL);
    ASSERT_TRUE(load(given, cupti, &why));
}

static void ignore(void *user, int domain, uint32_t id, const np_cupti_data *data)
{
    (void)user;
    (void)domain;
    (void)id;
    (void)data;
}

/* Another subscriber, before or after. */
static int subscribe_other(const np_cupti *cupti, uint8_t allows_others, void **subscriber)
{
    np_cupti_subscription other = {sizeof other, "a profiler", NULL, 0, allows_others, {0}};
    return cupti->subscribe_beside(subscriber, ignore, NULL, &other);
}

static void test_beside(void **state)
{
    np_cupti cupti = {0};
    char other[NP_CUPTI_NAME_BYTES];
    void *ours;
    void *theirs;
    (void)state;
    load_over_driver(NEAP_STANDIN_DIR "/libcupti.so.13", &cupti);
    ASSERT_EQ(np_cupti_subscribe(&cupti, false, ignore, &ours, other), 0);
    ASSERT_STR_EQ(other, "");
    ASSERT_EQ(subscribe_other(&cupti, 1, &theirs), 0);
    ASSERT_EQ(cupti.unsubscribe(ours), 0);
    ASSERT_EQ(np_cupti_subscribe(&cupti, false, ignore, &ours, other), 0); /* after them as well as before */
    ASSERT_EQ(cupti.unsubscribe(theirs), 0);
    ASSERT_EQ(cupti.subscribe(&theirs, ignore, NULL), NP_CUPTI_TAKEN); /* they do not allow it */
    ASSERT_EQ(cupti.unsubscribe(ours), 0);
}

static void test_taken(void **state)
{
    np_cupti cupti = {0};
    char other[NP_CUPTI_NAME_BYTES];
    void *ours;
    void *theirs;
    (void)state;
    load_over_driver(NEAP_STANDIN_DIR "/libcupti.so.13", &cupti);
    ASSERT_EQ(subscribe_other(&cupti, 0, &theirs), 0);
    ASSERT_EQ(np_cupti_subscribe(&cupti, false, ignore, &ours, other), NP_CUPTI_TAKEN);
    ASSERT_STR_EQ(other, "CUPTI for a profiler");
    ASSERT_EQ(cupti.unsubscribe(theirs), 0);
    ASSERT_EQ(cupti.subscribe(&theirs, ignore, NULL), 0);
    ASSERT_EQ(np_cupti_subscribe(&cupti, false, ignore, &ours, other), NP_CUPTI_TAKEN);
    ASSERT_STR_EQ(other, "");
    ASSERT_EQ(cupti.unsubscribe(theirs), 0);
}

static void test_alone(void **state)
{
    np_cupti cupti = {0};
    char other[NP_CUPTI_NAME_BYTES];
    void *ours;
    void *theirs;
    (void)state;
    load_over_driver(NEAP_STANDIN_DIR "/libcupti.so.13", &cupti);
    ASSERT_EQ(np_cupti_subscribe(&cupti, true, ignore, &ours, other), 0);
    ASSERT_EQ(subscribe_other(&cupti, 1, &theirs), NP_CUPTI_TAKEN);
    ASSERT_EQ(cupti.unsubscribe(ours), 0);
}

static uint32_t n_refused;

static int refuse(void **subscriber, np_cupti_callback *callback, void *user, np_cupti_subscription *subscription)
{
    (void)subscriber;
    (void)callback;
    (void)user;
    ASSERT_EQ(subscription->struct_bytes, sizeof *subscription);
    ASSERT_TRUE(subscription->allows_others == 1);
    n_refused++;
    return 1; /* CUPTI_ERROR_INVALID_PARAMETER: a larger struct than it knows */
}

/* One that has no such function, or one that refuses what it does not know. */
static void test_old(void **state)
{
    np_cupti cupti = {0};
    char other[NP_CUPTI_NAME_BYTES];
    void *ours;
    (void)state;
    load_over_driver(NEAP_STANDIN_DIR "/cupti_13_0/libcupti.so.13", &cupti);
    ASSERT_TRUE(cupti.subscribe_beside == NULL);
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(np_cupti_subscribe(&cupti, false, ignore, &ours, other), 0);
        ASSERT_EQ(cupti.unsubscribe(ours), 0);
        ASSERT_EQ(n_refused, i);
        cupti.subscribe_beside = refuse;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout), cmocka_unit_test(test_given_library), cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_beside), cmocka_unit_test(test_taken),         cmocka_unit_test(test_alone),
        cmocka_unit_test(test_old),    cmocka_unit_test(test_other_library), cmocka_unit_test(test_loaded_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
