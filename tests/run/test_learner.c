/* test_learner.c: host memory is made while the planner works, as much as any plan within the limit needs; the plan's own
 * need comes on top of that. */
#include "run/learn.h"

#include "run/little_program.h"
#include "testing.h"

enum { MAX_REQUESTS = 16 };

static struct requests {
    const np_device_interface *inner;
    np_device_interface api;
    const neap_device *manager;
    uint64_t bytes[MAX_REQUESTS];
    uint32_t n;
    uint64_t load;    /* at the first: of the plan that was followed, */
    size_t n_planned; /* and plans with swaps that there were */
} requests;

static neap_status note_host_alloc(np_device *device, uint64_t bytes, char **host)
{
    const neap_device *m = requests.manager;
    if (requests.n == 0) {
        requests.load = m->pattern ? m->pattern->program.peak_load : 0;
        for (size_t i = 0; i < m->patterns.n; i++) {
            requests.n_planned += m->patterns.items[i]->program.swaps.n > 0;
        }
    }
    ASSERT_LT(requests.n, MAX_REQUESTS);
    requests.bytes[requests.n++] = bytes;
    return requests.inner->host_alloc(device, bytes, host);
}

static void run_within(little_program *p, neap_device_options device, bool has_thread)
{
    little_options options = {.name = "sim:page=4KiB,memory=64MiB,streams=2,link=4GB/s",
                              .device = device,
                              .is_faulty = true,
                              .has_planner_thread = has_thread};
    little_open(p, &options);
    requests = (struct requests){.inner = p->raw->api, .api = *p->raw->api, .manager = p->device};
    requests.api.host_alloc = note_host_alloc;
    p->raw->api = &requests.api;
    np_beneath_begin(p->device, 0, 0);
    p->device->is_limit_late = true;
    little_begin(p);
    for (int i = 0; i < 400 && !(p->device->state == NEAP_STATE_RUN && !p->device->pattern->is_provisional); i++) {
        little_laps(p, 1);
    }
    ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
}

static void test_least(void **state)
{
    little_program p;
    uint64_t least;
    uint64_t needed = 0;
    (void)state;
    run_within(&p, (neap_device_options){.limit_share = 0.6}, false);
    ASSERT_GT(p.device->pattern->program.swaps.n, 0);
    ASSERT_GT(requests.load, 0);
    ASSERT_EQ(requests.n_planned, 0);
    least = requests.load - (uint64_t)(0.6 * (double)requests.load);
    ASSERT_EQ(requests.bytes[0], (least + 4095) / 4096 * 4096);
    for (uint32_t i = 0; i < requests.n; i++) {
        needed += requests.bytes[i];
    }
    ASSERT_EQ(little_stats(&p).host_bytes, needed); /* nothing that was made early is lost, or made twice */
    little_end(&p);
}

static void test_with_a_thread(void **state)
{
    little_program p;
    (void)state;
    run_within(&p, (neap_device_options){.limit_share = 0.6}, true);
    little_end(&p);
}

static void test_nothing_leaves(void **state)
{
    little_program p;
    (void)state;
    run_within(&p, (neap_device_options){0}, false);
    ASSERT_EQ(requests.n, 0);
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least),
        cmocka_unit_test(test_with_a_thread),
        cmocka_unit_test(test_nothing_leaves),
    };
    return cmocka_run_group_tests_name("run/learner", tests, NULL, NULL);
}
