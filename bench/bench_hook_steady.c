/* bench_hook_steady.c: what a program that neap runs beneath pays for each of its calls, on the plan, without swaps.
 *
 *     bench_hook_steady [--csv PATH]
 *
 * A made-up iteration like vgg16's at CIFAR sizes: 318 launches, 106 large blocks and 106 small ones, their parameters
 * about 75 words each. The device does nothing, so that what is measured is neap's own work between the program's call and
 * the driver's. Once with everything in the caches, as a loop of calls has it; and once with the near caches emptied before
 * each call, as a program finds them that has run an interpreter in between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device_figures.h"
#include "hook/core.h"

enum { LAYERS = 53, WARM_LAPS = 400, LAPS = 60, QUICK_LAPS = 4, N_PARAMETERS = 8, MOST_WORDS = 64 };
enum { OTHER_BYTES = 8 << 20, BETWEEN_BYTES = 96 << 10, FAR_BYTES = 3 << 19, LINE = 64 };
enum { MOST_SAMPLES = 20000 };

/* ---- a device that does nothing ---- */

static np_device_interface api;
static uint64_t marks[NP_N_STREAMS];
static uint64_t n_driver_calls; /* what would reach the driver */

static void begin_work(np_device *device, np_stream stream, np_times *times)
{
    (void)device;
    (void)stream;
    if (times) {
        *times = (np_times){np_clock_ns(), 1};
        n_driver_calls++;
    }
}

static uint64_t end_work(np_device *device, np_stream stream)
{
    (void)device;
    return ++marks[stream];
}

static neap_status adopt(np_device *device, np_stream stream, void *native)
{
    (void)device;
    (void)stream;
    (void)native;
    n_driver_calls++;
    return NEAP_OK;
}

static neap_status wait_work(np_device *device, np_stream stream, np_stream other, uint64_t mark)
{
    (void)device;
    (void)stream;
    (void)other;
    (void)mark;
    n_driver_calls++;
    return NEAP_OK;
}

static uint64_t last_mark(const np_device *device, np_stream stream)
{
    (void)device;
    return marks[stream];
}

static bool is_done(const np_device *device, np_stream stream, uint64_t mark)
{
    (void)device;
    (void)stream;
    (void)mark;
    n_driver_calls++;
    return true;
}

static neap_status sync_work(np_device *device, np_stream stream, uint64_t mark)
{
    (void)device;
    (void)stream;
    (void)mark;
    n_driver_calls++;
    return NEAP_OK;
}

static const uint32_t sizes[2][N_PARAMETERS] = {{8, 8, 8, 8, 4, 4, 48, 512}, {4, 16, 584, 0}};
static const size_t n_sizes[2] = {8, 3};

static np_cu_result parameter(np_cu_kernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    size_t kind = (uintptr_t)kernel / 16 % 2;
    *offset = 0;
    if (index >= n_sizes[kind]) {
        return NP_CU_INVALID_VALUE;
    }
    *bytes = sizes[kind][index];
    return NP_CU_SUCCESS;
}

static np_hook_device *open_all(void)
{
    neap_device_options options = {.min_block = 1 << 20, .plan_seconds = 0.1, .refinements = UINT32_MAX};
    np_hook_device *device = calloc(1, sizeof *device);
    np_device *raw;
    if (!device || np_device_open("sim:page=65536,memory=4GiB,streams=16,link=50GB/s", NULL, NULL, &raw) != NEAP_OK) {
        abort();
    }
    api = *raw->api;
    api.begin = begin_work;
    api.end = end_work;
    api.adopt = adopt;
    api.wait = wait_work;
    api.mark = last_mark;
    api.is_done = is_done;
    api.sync = sync_work;
    raw->api = &api;
    if (np_manager_open(raw, &options, NULL, &device->manager) != NEAP_OK) {
        abort();
    }
    device->manager->learner.learns_at_once = true;
    np_beneath_begin(device->manager, 0, 0);
    np_hook_index_init(&device->index, &np_memory_default);
    np_hook_kernels_init(&device->kernels, &np_memory_default);
    np_hook_recall_init(&device->recall, &np_memory_default);
    np_caching_init(&device->caching, false, &np_memory_default);
    device->has_baseline = true;
    np_the_hook.driver.kernel_parameter = parameter;
    np_the_hook.settings.mode = NP_HOOK_RUN;
    np_the_hook.devices[0] = device;
    return device;
}

/* ---- calls, and what they take ---- */

enum kind { LAUNCH, MALLOC, FREE, SMALL_MALLOC, SMALL_FREE, N_KINDS };

typedef struct meter {
    np_hook_device *device;
    const np_hook_call *call;
    bool is_counting;
    size_t between_bytes;
    uint32_t n[N_KINDS];
    uint32_t samples[N_KINDS][MOST_SAMPLES];
} meter;

/* What a program does between two calls: it uses memory of its own. */
static void use_memory(size_t bytes)
{
    static volatile unsigned char other[OTHER_BYTES];
    static size_t at;
    for (size_t i = 0; i < bytes; i += LINE) {
        other[at]++;
        at = (at + LINE) % OTHER_BYTES;
    }
}

static void end(meter *m, enum kind kind, uint64_t begin_ns)
{
    uint64_t ns = np_clock_ns() - begin_ns;
    if (m->is_counting && m->n[kind] < MOST_SAMPLES) {
        m->samples[kind][m->n[kind]++] = (uint32_t)ns;
    }
}

static void *get(meter *m, uint64_t bytes)
{
    void *address = NULL;
    use_memory(m->between_bytes);
    uint64_t begin_ns = np_clock_ns();
    if (np_hook_malloc(0, bytes, NULL, &address) != 0) {
        abort();
    }
    end(m, bytes < (1 << 20) ? SMALL_MALLOC : MALLOC, begin_ns);
    return address;
}

static void put(meter *m, void *address, bool is_small)
{
    use_memory(m->between_bytes);
    uint64_t begin_ns = np_clock_ns();
    if (!np_hook_free(address, NULL)) {
        abort();
    }
    end(m, is_small ? SMALL_FREE : FREE, begin_ns);
}

typedef struct launch { /* as CUPTI gives cuLaunchKernel's arguments */
    void *function;
    unsigned int sizes[7];
    void *stream;
    void **parameters;
    void **extra;
} launch;

static void give(meter *m, unsigned kernel, void *a, void *b, void *c, void *d)
{
    uint64_t words[N_PARAMETERS][MOST_WORDS + 10];
    static uint64_t seed;
    void *parameters[N_PARAMETERS];
    launch given = {.function = (void *)(uintptr_t)(0x100000 + kernel * 16), .parameters = parameters};
    np_cupti_data data = {.parameters = &given, .symbol_name = "kernel"};
    char name[32];
    uint64_t begin_ns;
    use_memory(m->between_bytes);
    (void)snprintf(name, sizeof name, "kernel_%u", kernel);
    data.symbol_name = name;
    memset(words, 0, sizeof words);
    for (int i = 0; i < N_PARAMETERS; i++) {
        parameters[i] = words[i];
    }
    void *of[4] = {a, b, c, d};
    if (kernel % 2 == 0) {
        for (int i = 0; i < 4; i++) {
            words[i][0] = (uint64_t)(uintptr_t)of[i];
        }
        words[7][3] = seed++; /* a number that changes, as a seed does */
    } else {
        memcpy(words[2], of, sizeof of);
    }
    begin_ns = np_clock_ns();
    data.site = NP_CUPTI_ENTER;
    np_hook_is_inside = true;
    (void)pthread_mutex_lock(&m->device->manager->lock);
    np_hook_see_before(m->device, m->call, false, &data);
    np_hook_is_inside = false;
    np_hook_is_inside = true;
    data.site = NP_CUPTI_EXIT;
    np_hook_see_after(m->device, m->call, false, &data);
    (void)pthread_mutex_unlock(&m->device->manager->lock);
    np_hook_is_inside = false;
    end(m, LAUNCH, begin_ns);
}

/* ---- the iteration ---- */

static uint64_t size_of(unsigned layer)
{
    return ((uint64_t)2 << 20) + (layer * 7 % 5) * 300000;
}

static void iterate(meter *m, void *const *weights)
{
    void *values[LAYERS + 1];
    void *gradient;
    values[0] = weights[LAYERS];
    for (unsigned i = 0; i < LAYERS; i++) {
        void *scratch = get(m, 2048 + 512 * (i % 7));
        values[i + 1] = get(m, size_of(i));
        give(m, i % 12, values[i], weights[i], values[i + 1], scratch);
        give(m, 12 + i % 12, values[i + 1], values[i + 1], weights[i], scratch);
        give(m, 24 + i % 2, values[i + 1], scratch, scratch, scratch);
        put(m, scratch, true);
    }
    gradient = values[LAYERS];
    for (unsigned i = LAYERS; i-- > 0;) {
        void *scratch = get(m, 4096);
        void *next = get(m, size_of(i) + 4096);
        give(m, 30 + i % 12, gradient, weights[i], next, scratch);
        give(m, 42 + i % 12, gradient, values[i], weights[i], scratch);
        give(m, 54 + i % 3, next, values[i], scratch, scratch);
        put(m, scratch, true);
        put(m, gradient, false);
        gradient = next;
    }
    put(m, gradient, false);
    for (unsigned i = LAYERS - 1; i >= 1; i--) {
        put(m, values[i], false);
    }
}

static int compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* The mean of the middle half: the clock counts in tens of ns, and others use the machine. */
static double middle_of(uint32_t *samples, uint32_t n)
{
    double sum = 0;
    qsort(samples, n, sizeof *samples, compare);
    for (uint32_t i = n / 4; i < n - n / 4; i++) {
        sum += samples[i];
    }
    return n > 0 ? sum / (n - n / 4 - n / 4) : 0;
}

/* What reading the clock takes itself. */
static double clock_costs(void)
{
    static uint32_t samples[1000];
    for (int i = 0; i < 1000; i++) {
        uint64_t begin_ns = np_clock_ns();
        samples[i] = (uint32_t)(np_clock_ns() - begin_ns);
    }
    return middle_of(samples, 1000);
}

static void measure(figures *f, meter *m, void *const *weights, size_t between_bytes, const char *input)
{
    static const char *const names[N_KINDS] = {"steady_launch", "steady_malloc", "steady_free", "steady_small_malloc",
                                               "steady_small_free"};
    int laps = f->is_quick ? QUICK_LAPS : LAPS;
    memset(m->n, 0, sizeof m->n);
    m->between_bytes = between_bytes;
    m->is_counting = true;
    n_driver_calls = 0;
    for (int i = 0; i < laps; i++) {
        iterate(m, weights);
    }
    m->is_counting = false;
    (void)printf("  %-24s", input);
    for (int k = 0; k < N_KINDS; k++) {
        double ns = middle_of(m->samples[k], m->n[k]) - clock_costs();
        figure_note(f, names[k], input, ns, "ns");
        (void)printf(" %13.0f", ns);
    }
    (void)printf(" %13.1f\n", (double)n_driver_calls / laps);
    if (m->device->manager->state != NEAP_STATE_RUN) {
        (void)printf("  it is not on a plan\n");
        f->failed = true;
    }
}

int main(int argc, char **argv)
{
    static meter m;
    const char *path = bench_csv_argument(&argc, &argv);
    figures f = figures_open(path);
    np_hook_device *device = open_all();
    void *weights[LAYERS + 1];
    bool per_thread;
    int status;
    m.device = device;
    m.call = np_hook_call_find("cuLaunchKernel", &per_thread);
    for (unsigned i = 0; i <= LAYERS; i++) {
        weights[i] = get(&m, 3 << 20);
    }
    for (int i = 0; i < WARM_LAPS && device->manager->stats.n_iterations < 20; i++) {
        iterate(&m, weights);
    }
    (void)printf("  %-24s %13s %13s %13s %13s %13s %13s\n", "on the plan, ns a call", "launch", "malloc", "free",
                 "small malloc", "small free", "driver/lap");
    measure(&f, &m, weights, 0, "nothing between");
    measure(&f, &m, weights, BETWEEN_BYTES, "96 KiB used between");
    measure(&f, &m, weights, FAR_BYTES, "1.5 MiB used between");
    status = figures_close(&f);
    (void)fflush(NULL);
    _Exit(status); /* the hook's own end is for programs */
}
