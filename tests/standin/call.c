/* call.c: the begin and the end of every call: tracing, failures on demand, the lock, what a call needs. */
#include "standin/call.h"

#include <stdatomic.h>

#include "standin/standin_state.h"

static _Atomic(standin_tracer) tracer;
static atomic_uint n_correlations;
static _Thread_local api_call *current;

void standin_set_tracer(standin_tracer set);

void standin_set_tracer(standin_tracer set)
{
    atomic_store(&tracer, set);
}

/* Without the lock: the tracer makes calls of its own. */
static void tell_begin(api_call *c)
{
    const context *in = current_context();
    c->tracer = atomic_load(&tracer);
    if (!c->tracer) {
        return;
    }
    c->traced = (standin_traced){
        .symbol = c->symbol,
        .parameters = c->parameters,
        .kernel = c->kernel ? kernel_name_of(c->kernel) : NULL,
        .context = (void *)(uintptr_t)in,
        .context_id = in ? (unsigned)in->device + 1 : 0,
        .correlation = atomic_fetch_add(&n_correlations, 1) + 1,
        .data = &c->data,
    };
    c->tracer(&c->traced);
}

np_cu_result begin(const char *symbol, unsigned needs)
{
    np_cu_result result;
    if (is_stream_thread) {
        misuse("%s is called by work of a stream", symbol);
    }
    lock();
    result = failure_of_call(symbol);
    if (result == NP_CU_SUCCESS && (standin.is_child || ((needs & NEEDS_INIT) && !standin.is_ready))) {
        result = (np_cu_result)CU_NOT_INITIALIZED;
    }
    if (result == NP_CU_SUCCESS && (needs & NEEDS_CONTEXT) == NEEDS_CONTEXT && !current_context()) {
        result = (np_cu_result)CU_INVALID_CONTEXT;
    }
    if (result == NP_CU_SUCCESS && (needs & IS_UNSAFE) && capture_forbids()) {
        result = (np_cu_result)CU_CAPTURE_UNSUPPORTED;
    }
    if (result != NP_CU_SUCCESS) {
        unlock();
    }
    return result;
}

np_cu_result call_begin(api_call *c, unsigned needs)
{
    c->outer = current;
    current = c;
    if (!is_stream_thread) { /* an end in words is near otherwise */
        tell_begin(c);
    }
    c->result = begin(c->symbol, needs);
    return c->result;
}

np_cu_result end(np_cu_result result)
{
    current->result = result;
    unlock();
    return result;
}

void call_end(api_call *c)
{
    if (c->tracer && c->tracer == atomic_load(&tracer)) {
        c->traced.result = &c->result;
        c->tracer(&c->traced);
    }
    current = c->outer;
}
