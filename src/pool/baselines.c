/* baselines.c: what other allocators hold at most on the same trace.
 *
 * The online allocators are replayed over all mallocs and frees, the blocks that were alive before the first event
 * first. None of them gives memory back, so the bytes held at the end are the most ever held. The paper's pools plan
 * the period, as neap does. */
#include "base/checked.h"
#include "base/memory.h"
#include "base/status.h"
#include "neap.h"
#include "pool/caching.h"
#include "pool/cnmem.h"

#define GREEDY_SECONDS 3.0

/* The allocators of one replay, and where each of the trace's blocks stands in them. */
typedef struct replay {
    const neap_memory *memory;
    uint64_t alignment;
    uint64_t load;
    uint64_t peak_load;
    np_cnmem cnmem;
    np_caching caching;
    np_caching expandable;
    struct place {
        uint32_t cnmem;
        np_caching_block caching;
        np_caching_block expandable;
    } * places; /* one a block of the trace */
    size_t n_places;
} replay;

static neap_status replay_init(replay *r, size_t n_blocks, uint64_t alignment, const neap_memory *memory)
{
    *r = (replay){.memory = memory, .alignment = alignment, .n_places = n_blocks};
    np_cnmem_init(&r->cnmem, memory);
    np_caching_init(&r->caching, false, memory);
    np_caching_init(&r->expandable, true, memory);
    r->places = np_memory_alloc(memory, n_blocks, sizeof *r->places);
    return r->places ? NEAP_OK : NEAP_NO_MEMORY;
}

static void replay_free(replay *r)
{
    np_memory_free(r->memory, r->places, r->n_places, sizeof *r->places);
    np_caching_free(&r->expandable);
    np_caching_free(&r->caching);
    np_cnmem_free(&r->cnmem);
}

static neap_status replay_malloc(replay *r, size_t block, uint64_t bytes)
{
    uint64_t size;
    if (!np_round_up(bytes, r->alignment, &size) || !np_add_u64(r->load, size, &r->load)) {
        return NEAP_TOO_LARGE;
    }
    r->peak_load = r->load > r->peak_load ? r->load : r->peak_load;
    struct place *place = &r->places[block];
    neap_status status = np_cnmem_take(&r->cnmem, bytes, &place->cnmem);
    if (status == NEAP_OK) {
        status = np_caching_take(&r->caching, bytes, &place->caching);
    }
    if (status == NEAP_OK) {
        status = np_caching_take(&r->expandable, bytes, &place->expandable);
    }
    return status;
}

static void replay_release(replay *r, size_t block, uint64_t bytes)
{
    uint64_t rest = bytes % r->alignment;
    r->load -= bytes + (rest ? r->alignment - rest : 0);
    np_cnmem_give(&r->cnmem, r->places[block].cnmem);
    np_caching_give(&r->caching, r->places[block].caching);
    np_caching_give(&r->expandable, r->places[block].expandable);
}

static neap_status replay_trace(replay *r, const neap_trace *trace)
{
    size_t n_blocks;
    size_t n_events;
    const neap_trace_block *blocks = neap_trace_blocks(trace, &n_blocks);
    const neap_event *events = neap_trace_events(trace, &n_events);
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < n_blocks && status == NEAP_OK; i++) {
        if (blocks[i].malloc_event == NEAP_NEVER) {
            status = replay_malloc(r, i, blocks[i].bytes);
        }
    }
    for (size_t i = 0; i < n_events && status == NEAP_OK; i++) {
        size_t block = events[i].subject;
        if (events[i].kind == NEAP_EVENT_MALLOC) {
            status = replay_malloc(r, block, blocks[block].bytes);
        } else if (events[i].kind == NEAP_EVENT_FREE) {
            replay_release(r, block, blocks[block].bytes);
        }
    }
    return status;
}

/* A pool of hundreds of thousands of buffers can take minutes to plan the paper's way: not for a figure to compare to. */
static bool within_limit(void *user, double seconds, uint64_t footprint, uint64_t bound)
{
    (void)user;
    (void)footprint;
    (void)bound;
    return seconds < GREEDY_SECONDS;
}

/* The footprint of one of the paper's pools, 0 where the trace has no period to plan, or planning takes too long. */
static neap_status greedy_footprint(const neap_trace *trace, neap_solver solver, uint64_t alignment,
                                    const neap_memory *memory, neap_error *error, uint64_t *footprint)
{
    const neap_plan_options options = {
        .solver = solver, .alignment = alignment, .n_threads = 1, .progress = within_limit};
    neap_plan *plan;
    neap_status status = neap_plan_make(trace, &options, memory, error, &plan);
    if (status == NEAP_OK) {
        *footprint = neap_plan_get_summary(plan)->footprint;
        neap_plan_free(plan);
    } else if (status == NEAP_NO_PERIOD || status == NEAP_NO_PLAN) {
        *footprint = 0;
        status = NEAP_OK;
    }
    return status;
}

neap_status neap_baselines_make(const neap_trace *trace, uint64_t alignment, const neap_memory *memory,
                                neap_error *error, neap_baselines *baselines)
{
    if (alignment == 0) {
        alignment = neap_trace_is_csv(trace) ? 1 : 512;
    }
    memory = np_memory_or_default(memory);
    size_t n_blocks;
    (void)neap_trace_blocks(trace, &n_blocks);

    replay r;
    neap_baselines result = {0};
    neap_status status = replay_init(&r, n_blocks, alignment, memory);
    if (status == NEAP_OK) {
        status = replay_trace(&r, trace);
    }
    if (status == NEAP_OK) {
        result.cudamalloc = r.peak_load;
        result.cnmem = r.cnmem.heap.held;
        status = np_caching_held(&r.caching, &result.caching);
    }
    if (status == NEAP_OK) {
        status = np_caching_held(&r.expandable, &result.expandable);
    }
    replay_free(&r);
    if (status != NEAP_OK) {
        return np_fail(error, status, "replaying other allocators: %s", neap_status_message(status));
    }
    status = greedy_footprint(trace, NEAP_SOLVER_BESTFIT, alignment, memory, error, &result.bestfit);
    if (status == NEAP_OK) {
        status = greedy_footprint(trace, NEAP_SOLVER_FIRSTFIT, alignment, memory, error, &result.firstfit);
    }
    if (status == NEAP_OK) {
        *baselines = result;
        if (error) {
            error->text[0] = '\0';
        }
    }
    return status;
}
