/* bench_hook.c: what looking through a launch's parameters costs.
 *
 *     bench_hook [--csv PATH]
 *
 * A kernel with 75 words of parameters (what recordings of PyTorch have on average), 8 of them addresses of blocks, among
 * 100, 1000 and 10,000 live blocks; the same for one with 512 words and 300 addresses (a list of tensors). Once as a
 * launch off the plan is looked at, every word of it; and once as one that was seen at the same event before. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "device_figures.h"
#include "hook/core.h"

enum { ROUNDS = 30, LAUNCHES = 2000, MAX_WORDS = 512 };

typedef struct launch { /* as CUPTI gives cuLaunchKernel's arguments */
    void *function;
    unsigned int sizes[7];
    void *stream;
    void **parameters;
    void **extra;
} launch;

static size_t n_words_now;

static np_cu_result parameter(np_cu_kernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    (void)kernel;
    *offset = 0;
    *bytes = n_words_now * sizeof(uint64_t);
    return index == 0 ? NP_CU_SUCCESS : NP_CU_INVALID_VALUE;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* The median of the rounds, ns a launch. */
static double measure(np_hook_device *device, const np_hook_call *call, const np_cupti_data *data)
{
    double rounds[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t begin_ns = np_clock_ns();
        for (int i = 0; i < LAUNCHES; i++) {
            np_hook_sight sight = {.device = device};
            np_hook_gather(&sight, call, data);
        }
        rounds[r] = (double)(np_clock_ns() - begin_ns) / LAUNCHES;
    }
    qsort(rounds, ROUNDS, sizeof *rounds, compare);
    return rounds[ROUNDS / 2];
}

static void fill(np_hook_device *device, neap_block *blocks, size_t n)
{
    np_hook_index_init(&device->index, &np_memory_default);
    for (size_t i = 0; i < n; i++) {
        np_hook_entry entry = {.begin = (char *)(uintptr_t)(((uint64_t)1 << 40) + i * ((uint64_t)4 << 20)),
                               .block = &blocks[i]};
        entry.end = entry.begin + ((uint64_t)3 << 20);
        if (np_hook_index_add(&device->index, &entry) != NEAP_OK) {
            abort();
        }
    }
}

static void look(figures *f, size_t n_blocks, size_t n_words, size_t n_hits)
{
    static uint64_t words[MAX_WORDS];
    static neap_device manager = {.pin = 1};
    static np_program_event event;
    bool per_thread;
    const np_hook_call *call = np_hook_call_find("cuLaunchKernel", &per_thread);
    neap_block *blocks = calloc(n_blocks, sizeof *blocks);
    np_hook_device device = {.manager = &manager};
    np_pattern pattern = {.program = {.events = {.items = &event, .n = 1}}};
    np_rng rng = np_rng_make(1);
    void *parameters[] = {words};
    launch given = {.function = &given, .parameters = parameters};
    np_cupti_data data = {.parameters = &given, .symbol_name = "kernel"};
    char input[64];
    manager.memory = &np_memory_default;
    manager.state = NEAP_STATE_OBSERVE;
    np_the_hook.driver.kernel_parameter = parameter;
    n_words_now = n_words;
    np_hook_kernels_init(&device.kernels, &np_memory_default);
    np_hook_recall_init(&device.recall, &np_memory_default);
    fill(&device, blocks, n_blocks);
    for (size_t i = 0; i < n_words; i++) { /* numbers, and addresses evenly among them */
        bool is_hit = i * n_hits / n_words != (i + 1) * n_hits / n_words;
        words[i] = is_hit ? ((uint64_t)1 << 40) + np_rng_below(&rng, n_blocks) * ((uint64_t)4 << 20) + 512
                          : np_rng_below(&rng, 1u << 20);
    }
    double scanned = measure(&device, call, &data);
    manager.state = NEAP_STATE_RUN;
    manager.pattern = &pattern;
    double seen = measure(&device, call, &data);
    (void)snprintf(input, sizeof input, "%zu words, %zu addresses, %zu blocks", n_words, n_hits, n_blocks);
    const char *met = n_words < 100 ? figure_judge(f, "launch_scan", input, scanned, "ns", BELOW, 500) : "";
    if (n_words >= 100) {
        figure_note(f, "launch_scan", input, scanned, "ns");
    }
    figure_note(f, "launch_recalled", input, seen, "ns");
    (void)printf("  %-44s %8.0f %8.0f   %s\n", input, scanned, seen, met);
    np_hook_kernels_forget(&device.kernels);
    np_hook_recall_free(&device.recall);
    np_hook_index_free(&device.index);
    np_array_free(&np_memory_default, &device.uses);
    np_array_free(&np_memory_default, &device.hits);
    free(blocks);
}

int main(int argc, char **argv)
{
    const char *path = bench_csv_argument(&argc, &argv);
    figures f = figures_open(path);
    (void)printf("  %-44s %8s %8s\n", "a launch's parameters, ns", "scanned", "recalled");
    for (size_t n = 100; n <= 10000; n *= 10) {
        look(&f, n, 75, 8);
    }
    for (size_t n = 1000; n <= 10000; n *= 10) {
        look(&f, n, MAX_WORDS, 300);
    }
    return figures_close(&f);
}
