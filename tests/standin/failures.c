/* failures.c: calls are counted, and fail on demand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin/standin_state.h"

enum { MAX_SYMBOLS = 512, NAME_BYTES = 48 };

static struct called {
    char name[NAME_BYTES];
    uint64_t n;
} called[MAX_SYMBOLS];

static size_t n_called;

static struct {
    char symbol[NAME_BYTES]; /* empty: any */
    uint64_t left;           /* calls until it fails; 0: none does */
    int code;
    bool sticky;
    uint64_t n_failed;
} wanted;

static struct called *entry_of(const char *symbol)
{
    for (size_t i = 0; i < n_called; i++) {
        if (strcmp(called[i].name, symbol) == 0) {
            return &called[i];
        }
    }
    if (n_called == MAX_SYMBOLS) {
        misuse("there are more than %d functions", MAX_SYMBOLS);
    }
    (void)snprintf(called[n_called].name, NAME_BYTES, "%s", symbol);
    return &called[n_called++];
}

np_cu_result failure_of_call(const char *symbol)
{
    entry_of(symbol)->n++;
    standin.counts.n_calls++;
    if (wanted.left == 0 || (wanted.symbol[0] && strcmp(wanted.symbol, symbol) != 0)) {
        return NP_CU_SUCCESS;
    }
    if (wanted.left > 1) {
        wanted.left--;
        return NP_CU_SUCCESS;
    }
    wanted.left = wanted.sticky ? 1 : 0;
    wanted.n_failed++;
    return (np_cu_result)wanted.code;
}

static void want(const char *symbol, uint64_t n, int code, bool sticky)
{
    memset(&wanted, 0, sizeof wanted);
    (void)snprintf(wanted.symbol, NAME_BYTES, "%s", symbol ? symbol : "");
    wanted.left = n;
    wanted.code = code;
    wanted.sticky = sticky;
}

void failures_from_environment(void)
{
    const char *text = getenv("STANDIN_FAIL");
    char symbol[NAME_BYTES];
    unsigned long long n;
    int code;
    if (text && sscanf(text, "%47[^:]:%llu:%d", symbol, &n, &code) == 3) {
        want(symbol, n, code, false);
    } else if (text && *text) {
        misuse("STANDIN_FAIL is not SYMBOL:N:CODE: %s", text);
    }
}

/* ---- for tests ---- */

static void control_fail(const char *symbol, uint64_t n, int code, bool sticky)
{
    lock();
    want(symbol, n, code, sticky);
    unlock();
}

static uint64_t control_n_failed(void)
{
    uint64_t n;
    lock();
    n = wanted.n_failed;
    unlock();
    return n;
}

static uint64_t control_n_calls(const char *symbol)
{
    uint64_t n;
    lock();
    n = entry_of(symbol)->n;
    unlock();
    return n;
}

static const char *control_nth_symbol(size_t index)
{
    const char *name;
    lock();
    name = index < n_called ? called[index].name : NULL;
    unlock();
    return name;
}

static void control_count(standin_counts *counts)
{
    lock();
    *counts = standin.counts;
    unlock();
}

static void control_set_memory(uint64_t bytes)
{
    lock();
    standin.memory_bytes = bytes;
    unlock();
}

static void control_set_delay(uint64_t longest_us)
{
    lock();
    standin.longest_delay_us = longest_us;
    unlock();
}

static void control_set_hints(bool are_refused)
{
    lock();
    standin.refuses_hints = are_refused;
    unlock();
}

int standin_launch(void *handle, void (*run)(void *arg), const void *arg, size_t arg_bytes);
standin_kernel *standin_kernel_create(const char *name, void (*run)(void **), size_t n, const size_t *bytes);
void standin_kernel_free(standin_kernel *kernel);

const standin_control *standin_get_control(void)
{
    static const standin_control control = {
        .count = control_count,
        .fail_call = control_fail,
        .n_failed = control_n_failed,
        .n_calls = control_n_calls,
        .nth_symbol = control_nth_symbol,
        .set_memory = control_set_memory,
        .set_delay = control_set_delay,
        .set_hints = control_set_hints,
        .launch = standin_launch,
        .kernel_create = standin_kernel_create,
        .kernel_free = standin_kernel_free,
    };
    return &control;
}
