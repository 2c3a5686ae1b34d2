/* test_doubt.c: blocks that every iteration uses alike, and blocks that it does not. */
#include "run/doubt.h"

#include <stdio.h>
#include <string.h>

#include "testing.h"

enum { N_LIVE = 6, MAX_TEXT = 1 << 14 };

/* Blocks 1 to 6 are live from before. 1 is used by all, 2 and 3 in turn, 4 by all and once more by the third, 5 by
 * none, 6 by all but the fourth. */
static void write_text(char *text, uint32_t n_periods)
{
    int n = snprintf(text, MAX_TEXT, "neap-trace 1\n");
    for (uint32_t i = 1; i <= N_LIVE; i++) {
        n += snprintf(text + n, (size_t)(MAX_TEXT - n), "live %u 4096\n", i);
    }
    for (uint32_t i = 0; i < n_periods; i++) {
        n += snprintf(
            text + n, (size_t)(MAX_TEXT - n),
            "malloc %u 1000\nexec first %u 1 w%u r1\nexec second %u 1 x%u x4\nexec third %u 1 r%u%s%s\nfree %u\n",
            100 + i, 10 * i, 100 + i, 10 * i + 1, 2 + i % 2, 10 * i + 2, 100 + i, i == 2 ? " r4" : "",
            i == 3 ? "" : " r6", 100 + i);
    }
}

static neap_status find(const neap_memory *memory, void *user)
{
    const neap_trace *trace = user;
    bool doubtful[32] = {false};
    np_period period = {0};
    neap_status status = np_period_find(trace, memory, &period);
    if (status != NEAP_OK) {
        return status;
    }
    ASSERT_GT(period.length, 0);
    ASSERT_LT(period.lives.n, 32);
    status = np_doubt_find(&period, doubtful);
    for (size_t i = 0; i < period.lives.n && status == NEAP_OK; i++) {
        uint64_t id = trace->blocks.items[period.lives.items[i].block].id;
        ASSERT_EQ(doubtful[i], period.lives.items[i].persistent && (id == 2 || id == 3 || id == 4 || id == 6));
    }
    np_period_free(&period);
    return status;
}

static void test_who_is_doubtful(void **state)
{
    static char text[MAX_TEXT];
    (void)state;
    for (uint32_t n = 5; n < 40; n += 7) {
        neap_trace *trace = NULL;
        neap_error error;
        write_text(text, n);
        ASSERT_OK(neap_trace_parse(text, strlen(text), "text", NULL, &error, &trace));
        ASSERT_OK(find(&np_memory_default, trace));
        if (n == 5) {
            ASSERT_GT(test_memory_fail_each(find, trace), 3);
        }
        neap_trace_free(trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_doubtful),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
