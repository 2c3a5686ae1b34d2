#include "swap/recorded.h"

#include <stdio.h>

#include "testing.h"

const char *recorded_name(uint32_t index)
{
    static const char *const names[N_RECORDED] = {"vgg11-100-32",     "vgg16-100-32", "resnet18-100-32-fp32",
                                                  "resnet18-100-log", "lstm-64",      "gpt2-8"};
    return names[index];
}

void recorded_open(recorded *r, const char *name)
{
    np_timeline_options options = {.alignment = 512, .slower = 1, .directions = NP_DIRECTIONS_CAREFUL};
    char file[64];
    char path[TEST_PATH_BYTES];
    (void)snprintf(file, sizeof file, "traces/%s.neap.gz", name);
    test_data_path(path, file);
    ASSERT_OK(neap_trace_read(path, NULL, NULL, &r->trace));
    ASSERT_OK(np_period_find(r->trace, NULL, &r->period));
    ASSERT_GT(r->period.length, 0);
    ASSERT_OK(np_timeline_make(&r->period, &options, NULL, &r->timeline));
    ASSERT_TRUE(np_timeline_is_valid(&r->timeline));
}

void recorded_close(recorded *r)
{
    np_timeline_free(&r->timeline);
    np_period_free(&r->period);
    neap_trace_free(r->trace);
}
