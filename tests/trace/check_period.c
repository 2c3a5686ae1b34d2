#include "trace/check_period.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "testing.h"

/* Bytes alive after each event of the chosen period, by the lives. */
static uint64_t *add_up_lives(const np_period *period)
{
    uint64_t *load = calloc(period->length, sizeof *load);
    assert_non_null(load);
    for (size_t i = 0; i < period->lives.n; i++) {
        const np_life *life = &period->lives.items[i];
        for (uint32_t t = life->begin; t < life->end; t++) {
            load[t % period->length] += period->trace->blocks.items[life->block].bytes;
        }
    }
    return load;
}

static uint64_t replay_until(const neap_trace *trace, uint32_t event)
{
    uint64_t load = 0;
    for (size_t i = 0; i < trace->blocks.n; i++) {
        const neap_trace_block *block = &trace->blocks.items[i];
        if ((block->malloc_event == NEAP_NEVER || block->malloc_event < event) &&
            (block->free_event == NEAP_NEVER || block->free_event >= event)) {
            load += block->bytes;
        }
    }
    return load;
}

static void check_loads(const np_period *period)
{
    const neap_trace *trace = period->trace;
    uint64_t *by_lives = add_up_lives(period);
    uint64_t load = replay_until(trace, period->origin), leaked = 0,
             leaked_before = load - by_lives[period->length - 1];
    ASSERT_LE(leaked_before, period->leak_bytes);
    for (uint32_t t = 0; t < period->length; t++) {
        const neap_event *event = &trace->events.items[period->origin + t];
        uint64_t bytes = event->kind == NEAP_EVENT_EXEC ? 0 : trace->blocks.items[event->subject].bytes;
        load += event->kind == NEAP_EVENT_MALLOC ? bytes : 0 - bytes;
        if (load - leaked_before - leaked != by_lives[t]) { /* only a leak may have come between */
            ASSERT_EQ(event->kind, NEAP_EVENT_MALLOC);
            leaked += bytes;
            ASSERT_EQ(load - leaked_before - leaked, by_lives[t]);
        }
    }
    ASSERT_EQ(leaked, period->leak_bytes);
    ASSERT_EQ(period->n_leaked > 0, leaked > 0);
    free(by_lives);
}

void check_period(const np_period *period)
{
    ASSERT_TRUE(np_period_is_valid(period));
    ASSERT_GT(period->length, 0);
    ASSERT_GE(period->run_length, 2 * period->length);
    for (uint32_t i = 0; i < period->run_length - period->length; i++) {
        ASSERT_EQ(np_trace_step(period->trace, period->begin + i).key,
                  np_trace_step(period->trace, period->begin + i + period->length).key);
    }
    check_loads(period);
}

neap_trace *read_recording(const char *name)
{
    char file[256], path[TEST_PATH_BYTES];
    neap_trace *trace = NULL;
    neap_error error;
    snprintf(file, sizeof file, "traces/%s.neap.gz", name);
    test_data_path(path, file);
    if (access(path, R_OK) != 0 && !test_shared_path(path, file)) {
        return NULL;
    }
    if (neap_trace_read(path, NULL, &error, &trace) != NEAP_OK) {
        test_fail(__FILE__, __LINE__, "%s", error.text);
    }
    trace->marks.n = 0; /* for people; nothing here may need them */
    return trace;
}
