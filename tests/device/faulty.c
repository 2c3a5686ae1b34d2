#include "device/faulty.h"

#include <stdlib.h>

#include "base/rng.h"
#include "testing.h"

typedef struct faulty_device {
    np_device base;
    np_device_interface api;
    np_device *inner;
    faulty_plan plan;
    np_rng rng;
    uint64_t n_chosen; /* calls that could have failed since faulty_set */
    uint64_t n_calls[FAULTY_N_KINDS];
    uint64_t n_failed[FAULTY_N_KINDS];
} faulty_device;

static faulty_device *faulty_of(np_device *device)
{
    return (faulty_device *)device;
}

static np_device *inner_of(const np_device *device)
{
    return ((const faulty_device *)device)->inner;
}

/* What this call is to fail with; NEAP_OK: not at all. */
static neap_status fault(np_device *device, faulty_call call)
{
    static const neap_status usual[FAULTY_N_KINDS] = {NEAP_DEVICE_FULL,   NEAP_NO_MEMORY,     NEAP_NO_MEMORY,
                                                      NEAP_NO_MEMORY,     NEAP_DEVICE_FAILED, NEAP_DEVICE_FAILED,
                                                      NEAP_DEVICE_FAILED, NEAP_DEVICE_FAILED};
    faulty_device *f = faulty_of(device);
    bool fails;
    f->n_calls[call]++;
    if (!(f->plan.calls & 1u << call)) {
        return NEAP_OK;
    }
    f->n_chosen++;
    fails = f->plan.every == 0    ? np_rng_unit(&f->rng) < f->plan.probability
            : f->plan.is_once     ? f->n_chosen == f->plan.every
            : f->plan.is_for_good ? f->n_chosen >= f->plan.every
                                  : f->n_chosen % f->plan.every == 0;
    if (!fails) {
        return NEAP_OK;
    }
    f->n_failed[call]++;
    return f->plan.status != NEAP_OK ? f->plan.status : usual[call];
}

static void faulty_free(np_device *device)
{
    np_device *inner = inner_of(device);
    inner->api->free(inner);
    free(device);
}

static neap_status faulty_commit(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    np_device *inner = inner_of(device);
    neap_status status = fault(device, FAULTY_COMMIT);
    return status == NEAP_OK ? inner->api->commit(inner, first_page, n_pages) : status;
}

static void faulty_release(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    np_device *inner = inner_of(device);
    inner->api->release(inner, first_page, n_pages);
}

static neap_status faulty_reserve(np_device *device, uint64_t n_pages, char **address)
{
    np_device *inner = inner_of(device);
    neap_status status = fault(device, FAULTY_RESERVE);
    return status == NEAP_OK ? inner->api->reserve(inner, n_pages, address) : status;
}

static void faulty_unreserve(np_device *device, char *address, uint64_t n_pages)
{
    np_device *inner = inner_of(device);
    inner->api->unreserve(inner, address, n_pages);
}

static neap_status faulty_map(np_device *device, char *address, uint32_t first_page, uint32_t n_pages)
{
    np_device *inner = inner_of(device);
    neap_status status = fault(device, FAULTY_MAP);
    return status == NEAP_OK ? inner->api->map(inner, address, first_page, n_pages) : status;
}

static void faulty_unmap(np_device *device, char *address, uint64_t n_pages)
{
    np_device *inner = inner_of(device);
    inner->api->unmap(inner, address, n_pages);
}

static neap_status faulty_host_alloc(np_device *device, uint64_t bytes, char **host)
{
    np_device *inner = inner_of(device);
    neap_status status = fault(device, FAULTY_HOST_ALLOC);
    return status == NEAP_OK ? inner->api->host_alloc(inner, bytes, host) : status;
}

static void faulty_host_free(np_device *device, char *host, uint64_t bytes)
{
    np_device *inner = inner_of(device);
    inner->api->host_free(inner, host, bytes);
}

static neap_status faulty_launch(np_device *device, np_stream stream, const np_task *task, uint64_t *mark)
{
    np_device *inner = inner_of(device);
    neap_status status = fault(device, FAULTY_LAUNCH);
    return status == NEAP_OK ? inner->api->launch(inner, stream, task, mark) : status;
}

static neap_status faulty_copy(np_device *device, np_stream stream, char *to, const char *from, uint64_t bytes,
                               uint64_t *mark)
{
    np_device *inner = inner_of(device);
    neap_status status = fault(device, FAULTY_COPY);
    return status == NEAP_OK ? inner->api->copy(inner, stream, to, from, bytes, mark) : status;
}

static neap_status faulty_wait(np_device *device, np_stream stream, np_stream other, uint64_t mark)
{
    np_device *inner = inner_of(device);
    neap_status status = fault(device, FAULTY_WAIT);
    return status == NEAP_OK ? inner->api->wait(inner, stream, other, mark) : status;
}

static uint64_t faulty_mark(const np_device *device, np_stream stream)
{
    return inner_of(device)->api->mark(inner_of(device), stream);
}

static bool faulty_is_done(const np_device *device, np_stream stream, uint64_t mark)
{
    return inner_of(device)->api->is_done(inner_of(device), stream, mark);
}

static neap_status faulty_sync(np_device *device, np_stream stream, uint64_t mark)
{
    np_device *inner = inner_of(device);
    neap_status status = fault(device, FAULTY_SYNC);
    return status == NEAP_OK ? inner->api->sync(inner, stream, mark) : status;
}

static neap_status faulty_link(np_device *device, neap_link *link)
{
    np_device *inner = inner_of(device);
    return inner->api->link(inner, link);
}

static uint64_t faulty_now_ns(const np_device *device)
{
    return inner_of(device)->api->now_ns(inner_of(device));
}

static const char *faulty_problem(const np_device *device)
{
    return inner_of(device)->api->problem(inner_of(device));
}

static const np_device_interface faulty_interface = {
    .free = faulty_free,
    .commit = faulty_commit,
    .release = faulty_release,
    .reserve = faulty_reserve,
    .unreserve = faulty_unreserve,
    .map = faulty_map,
    .unmap = faulty_unmap,
    .host_alloc = faulty_host_alloc,
    .host_free = faulty_host_free,
    .launch = faulty_launch,
    .copy = faulty_copy,
    .wait = faulty_wait,
    .mark = faulty_mark,
    .is_done = faulty_is_done,
    .sync = faulty_sync,
    .link = faulty_link,
    .now_ns = faulty_now_ns,
    .problem = faulty_problem,
};

np_device *faulty_wrap(np_device *inner)
{
    faulty_device *made = calloc(1, sizeof *made);
    ASSERT_TRUE(made);
    made->base = *inner;
    made->inner = inner;
    made->api = faulty_interface;
    if (!inner->api->problem) {
        made->api.problem = NULL; /* optional slots stay empty */
    }
    made->base.api = &made->api;
    return &made->base;
}

void faulty_set(np_device *faulty, const faulty_plan *plan)
{
    faulty_of(faulty)->plan = *plan;
    faulty_of(faulty)->rng = np_rng_make(plan->seed);
    faulty_of(faulty)->n_chosen = 0;
}

uint64_t faulty_n_calls(const np_device *faulty, faulty_call call)
{
    return ((const faulty_device *)faulty)->n_calls[call];
}

uint64_t faulty_n_failed(const np_device *faulty, faulty_call call)
{
    return ((const faulty_device *)faulty)->n_failed[call];
}

np_device *faulty_inner(np_device *faulty)
{
    return inner_of(faulty);
}
