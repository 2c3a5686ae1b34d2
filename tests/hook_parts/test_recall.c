/* Launches that were seen before: what is taken for the same launch, and what is not. */
#include "hook/recall.h"

#include <string.h>

#include "base/rng.h"
#include "testing.h"

enum { N_EVENTS = 40 };

static int plans[2]; /* addresses only */

static neap_block *block_of(uintptr_t number)
{
    return (neap_block *)(0x1000 * (number + 1));
}

static void test_same_launch(void **state)
{
    uint32_t sizes[] = {8, 4, 24};
    np_hook_kernel kernel = {.function = &sizes, .sizes = sizes, .n_parameters = 3, .is_known = true};
    unsigned char a[8] = {1};
    unsigned char b[4] = {2};
    unsigned char c[24] = {3};
    void *parameters[] = {a, b, c};
    neap_use uses[] = {{block_of(1), NEAP_ACCESS_UNKNOWN}, {block_of(2), NEAP_ACCESS_READ}};
    const np_hook_memory *found;
    np_hook_recall recall;
    (void)state;
    np_hook_recall_init(&recall, &np_memory_default);
    np_hook_recall_keep(&recall, 3, &kernel, parameters, uses, 2); /* no plan: nothing is kept */
    ASSERT_TRUE(np_hook_recall_find(&recall, &plans[0], N_EVENTS, 3, &kernel, parameters) == NULL);
    np_hook_recall_keep(&recall, 3, &kernel, parameters, uses, 2);
    found = np_hook_recall_find(&recall, &plans[0], N_EVENTS, 3, &kernel, parameters);
    ASSERT_TRUE(found != NULL);
    ASSERT_EQ(found->n_uses, 2);
    ASSERT_TRUE(found->uses[1].block == block_of(2) && found->uses[1].kind == NEAP_ACCESS_READ);
    ASSERT_EQ(found->n_bytes, 36);
    for (int i = 0; i < 36; i++) { /* every byte counts */
        unsigned char *byte = i < 8 ? &a[i] : i < 12 ? &b[i - 8] : &c[i - 12];
        *byte ^= 0x80;
        ASSERT_TRUE(np_hook_recall_find(&recall, &plans[0], N_EVENTS, 3, &kernel, parameters) == NULL);
        *byte ^= 0x80;
    }
    ASSERT_TRUE(np_hook_recall_find(&recall, &plans[0], N_EVENTS, 4, &kernel, parameters) == NULL);
    ASSERT_TRUE(np_hook_recall_find(&recall, &plans[0], N_EVENTS, N_EVENTS, &kernel, parameters) == NULL);
    np_hook_recall_keep(&recall, N_EVENTS, &kernel, parameters, uses, 2); /* no such event */
    np_hook_recall_forget(&recall);
    ASSERT_TRUE(np_hook_recall_find(&recall, &plans[0], N_EVENTS, 3, &kernel, parameters) == NULL);
    np_hook_recall_keep(&recall, 3, &kernel, parameters, uses, 1);
    ASSERT_TRUE(np_hook_recall_find(&recall, &plans[1], N_EVENTS, 3, &kernel, parameters) == NULL); /* another plan */
    ASSERT_TRUE(np_hook_recall_find(&recall, &plans[0], N_EVENTS, 3, &kernel, parameters) == NULL);
    np_hook_recall_free(&recall);
}

/* A module was unloaded, and the handle stands for another kernel, with fewer parameters or more: bytes that begin alike are
 * not the same launch, and nothing is read beyond what was kept (a sanitizer sees that). */
static void test_other_kernel(void **state)
{
    uint32_t sizes[] = {8, 16};
    uint32_t fewer[] = {8};
    uint32_t more[] = {8, 16, 64};
    int handle;
    np_hook_kernel kernel = {.function = &handle, .sizes = sizes, .n_parameters = 2, .is_known = true};
    np_hook_kernel shorter = {.function = &handle, .sizes = fewer, .n_parameters = 1, .is_known = true};
    np_hook_kernel longer = {.function = &handle, .sizes = more, .n_parameters = 3, .is_known = true};
    unsigned char bytes[64] = {1};
    void *parameters[] = {bytes, bytes, bytes};
    neap_use use = {block_of(1), NEAP_ACCESS_UNKNOWN};
    np_hook_recall recall;
    (void)state;
    np_hook_recall_init(&recall, &np_memory_default);
    ASSERT_TRUE(np_hook_recall_find(&recall, &plans[0], N_EVENTS, 0, &kernel, parameters) == NULL);
    np_hook_recall_keep(&recall, 0, &kernel, parameters, &use, 1);
    ASSERT_TRUE(np_hook_recall_find(&recall, &plans[0], N_EVENTS, 0, &kernel, parameters) != NULL);
    ASSERT_TRUE(np_hook_recall_find(&recall, &plans[0], N_EVENTS, 0, &shorter, parameters) == NULL);
    ASSERT_TRUE(np_hook_recall_find(&recall, &plans[0], N_EVENTS, 0, &longer, parameters) == NULL);
    np_hook_recall_free(&recall);
}

/* ---- random ---- */

/* A launch is four numbers at most; what is remembered of an event is what was kept last, if nothing was forgotten. */
static void test_random(void **state)
{
    np_rng rng = np_rng_make(9);
    uint64_t kept[N_EVENTS] = {0}; /* the parameter, or 0 */
    uint64_t numbers[N_EVENTS] = {0};
    uint32_t sizes[] = {8};
    int handle;
    np_hook_kernel kernel = {.function = &handle, .sizes = sizes, .n_parameters = 1, .is_known = true};
    np_hook_recall recall;
    int plan = 0;
    (void)state;
    np_hook_recall_init(&recall, &np_memory_default);
    for (int i = 0; i < 20000; i++) {
        size_t event = np_rng_below(&rng, N_EVENTS);
        uint64_t value = 1 + np_rng_below(&rng, 3);
        void *parameters[] = {&value};
        const np_hook_memory *found = np_hook_recall_find(&recall, &plans[plan], N_EVENTS, event, &kernel, parameters);
        ASSERT_EQ(found != NULL, kept[event] == value);
        ASSERT_TRUE(!found || (found->n_uses == 1 && found->uses[0].block == block_of(numbers[event])));
        if (!found) {
            neap_use use = {block_of(numbers[event] = np_rng_below(&rng, 100)), NEAP_ACCESS_UNKNOWN};
            np_hook_recall_keep(&recall, event, &kernel, parameters, &use, 1);
            kept[event] = value;
        }
        if (np_rng_below(&rng, 300) == 0) {
            np_hook_recall_forget(&recall);
            memset(kept, 0, sizeof kept);
        } else if (np_rng_below(&rng, 300) == 0) {
            plan = 1 - plan;
            memset(kept, 0, sizeof kept);
        }
    }
    np_hook_recall_free(&recall);
}

/* Without host memory nothing is remembered, and nothing else happens. */
static void test_host_memory(void **state)
{
    bool goes_on = true;
    (void)state;
    for (size_t n = 1; goes_on; n++) {
        uint32_t sizes[] = {8};
        uint64_t value = 7;
        void *parameters[] = {&value};
        np_hook_kernel kernel = {.function = &value, .sizes = sizes, .n_parameters = 1, .is_known = true};
        neap_use use = {block_of(1), NEAP_ACCESS_READ};
        np_hook_recall recall;
        test_memory memory;
        test_memory_init(&memory);
        memory.fail_at = n;
        np_hook_recall_init(&recall, &memory.hook);
        for (size_t event = 0; event < 3; event++) {
            ASSERT_TRUE(np_hook_recall_find(&recall, &plans[0], 3, event, &kernel, parameters) == NULL);
            np_hook_recall_keep(&recall, event, &kernel, parameters, &use, 1);
        }
        for (size_t event = 0; event < 3; event++) {
            const np_hook_memory *found = np_hook_recall_find(&recall, &plans[0], 3, event, &kernel, parameters);
            ASSERT_TRUE(!found || found->uses[0].block == block_of(1));
            ASSERT_TRUE(found || memory.n_failed > 0);
        }
        goes_on = memory.n_failed > 0;
        np_hook_recall_free(&recall);
        test_memory_finish(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_launch),
        cmocka_unit_test(test_other_kernel),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
