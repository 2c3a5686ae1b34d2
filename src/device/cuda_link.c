/* cuda_link.c: how fast copies between the device and the host are, measured a few times.
 *
 * A machine that is busy elsewhere makes them slower, never faster: each time it is asked for, up to a few times, it is
 * measured again, and the best counts.
 *
 * Large copies, each way alone and then both at once, between events of the device's own clock, the best of a few. A
 * row of small copies, each with a wait before and an event after it, as swaps have them, tells what each of them costs
 * beyond its bytes. All on streams of its own: the device's own may have work that waits for something. A device that is
 * nearly full, or has little room within a limit (room_bytes), is measured with less. */
#include <math.h>

#include "device/cuda_state.h"

enum {
    MOST_BYTES = 16 << 20, /* from which on copies are as fast as they get */
    LEAST_BYTES = 1 << 20,
    SMALL_BYTES = 1 << 20, /* not less: much smaller ones overlap with each other, and cost less */
    ROUNDS = 4,
    N_BIG = 4, /* copies between two events */
    N_SMALL = 16,
    MAX_PROBES = 4,
};

enum way { OUT, IN, N_WAYS };

typedef struct probe {
    np_cuda *cuda;
    np_cu_stream streams[N_WAYS];
    np_cu_event starts[N_WAYS];
    np_cu_event ends[N_WAYS];
    np_cu_address memory[N_WAYS];
    char *host;     /* for both ways */
    uint64_t bytes; /* of a large copy, and of all there is for a way */
} probe;

#define TRY(call, name)                                                                                 \
    do {                                                                                                \
        neap_status try_status = np_cuda_judge(p->cuda, p->cuda->driver.call, #name, NEAP_DEVICE_FULL); \
        if (try_status != NEAP_OK) {                                                                    \
            return try_status;                                                                          \
        }                                                                                               \
    } while (0)

static neap_status probe_open(probe *p)
{
    for (int way = 0; way < N_WAYS; way++) {
        TRY(stream_create(&p->streams[way], NP_CU_STREAM_NON_BLOCKING), cuStreamCreate);
        TRY(event_create(&p->starts[way], NP_CU_EVENT_DEFAULT), cuEventCreate);
        TRY(event_create(&p->ends[way], NP_CU_EVENT_DEFAULT), cuEventCreate);
        TRY(alloc(&p->memory[way], p->bytes), cuMemAlloc);
    }
    return np_cuda_host_alloc(&p->cuda->base, N_WAYS * p->bytes, &p->host);
}

/* Whatever of it there is. */
static void probe_close(probe *p)
{
    const np_cuda_driver *driver = &p->cuda->driver;
    for (int way = 0; way < N_WAYS; way++) {
        if (p->streams[way]) {
            (void)driver->stream_sync(p->streams[way]);
            (void)driver->stream_destroy(p->streams[way]);
        }
        if (p->starts[way]) {
            (void)driver->event_destroy(p->starts[way]);
        }
        if (p->ends[way]) {
            (void)driver->event_destroy(p->ends[way]);
        }
        if (p->memory[way]) {
            (void)driver->free(p->memory[way]);
        }
    }
    if (p->host) {
        np_cuda_host_free(&p->cuda->base, p->host, N_WAYS * p->bytes);
    }
}

/* One after the other, through memory that lies one after the other where there is room. */
static neap_status give_copies(probe *p, enum way way, uint64_t bytes, int n)
{
    uint64_t places = p->bytes / bytes;
    for (int i = 0; i < n; i++) {
        uint64_t offset = (uint64_t)i % places * bytes;
        char *host = p->host + way * p->bytes + offset;
        if (way == OUT) {
            TRY(copy_out(host, p->memory[way] + offset, bytes, p->streams[way]), cuMemcpyDtoHAsync);
        } else {
            TRY(copy_in(p->memory[way] + offset, host, bytes, p->streams[way]), cuMemcpyHtoDAsync);
        }
    }
    return NEAP_OK;
}

/* As swaps are given: each waits for another stream, where nothing is left to do, and has an event of its own. */
static neap_status give_swaps(probe *p, enum way way, uint64_t bytes, int n)
{
    enum way other = way == OUT ? IN : OUT;
    neap_status status = NEAP_OK;
    for (int i = 0; i < n && status == NEAP_OK; i++) {
        TRY(event_record(p->starts[other], p->streams[other]), cuEventRecord);
        TRY(stream_wait(p->streams[way], p->starts[other], 0), cuStreamWaitEvent);
        status = give_copies(p, way, bytes, 1);
        if (status == NEAP_OK) {
            TRY(event_record(p->ends[other], p->streams[way]), cuEventRecord);
        }
    }
    return status;
}

typedef neap_status give_row(probe *p, enum way way, uint64_t bytes, int n);

/* The ns that n copies of a way take, the best of a few; never 0. */
static neap_status time_way(probe *p, enum way way, uint64_t bytes, int n, give_row *give, double *ns)
{
    double best = 1e300;
    for (int round = 0; round < ROUNDS; round++) {
        float ms = 0;
        neap_status status;
        TRY(event_record(p->starts[way], p->streams[way]), cuEventRecord);
        status = give(p, way, bytes, n);
        if (status != NEAP_OK) {
            return status;
        }
        TRY(event_record(p->ends[way], p->streams[way]), cuEventRecord);
        TRY(event_sync(p->ends[way]), cuEventSynchronize);
        TRY(event_elapsed(&ms, p->starts[way], p->ends[way]), cuEventElapsedTime);
        best = (double)ms * 1e6 < best ? (double)ms * 1e6 : best;
    }
    *ns = best > 1 ? best : 1;
    return NEAP_OK;
}

/* The same for both at once: from the common start to the later end. */
static neap_status time_both(probe *p, double *ns)
{
    double best = 1e300;
    for (int round = 0; round < ROUNDS; round++) {
        float ms[N_WAYS] = {0};
        double longer;
        TRY(event_record(p->starts[OUT], p->streams[OUT]), cuEventRecord);
        TRY(stream_wait(p->streams[IN], p->starts[OUT], 0), cuStreamWaitEvent);
        for (int i = 0; i < N_BIG; i++) { /* in turn, so that neither is far ahead when the other begins */
            for (int way = 0; way < N_WAYS; way++) {
                neap_status status = give_copies(p, (enum way)way, p->bytes, 1);
                if (status != NEAP_OK) {
                    return status;
                }
            }
        }
        for (int way = 0; way < N_WAYS; way++) {
            TRY(event_record(p->ends[way], p->streams[way]), cuEventRecord);
        }
        for (int way = 0; way < N_WAYS; way++) {
            TRY(event_sync(p->ends[way]), cuEventSynchronize);
            TRY(event_elapsed(&ms[way], p->starts[OUT], p->ends[way]), cuEventElapsedTime);
        }
        longer = (double)(ms[OUT] > ms[IN] ? ms[OUT] : ms[IN]) * 1e6;
        best = longer < best ? longer : best;
    }
    *ns = best > 1 ? best : 1;
    return NEAP_OK;
}

static neap_status measure(probe *p, neap_link *link)
{
    const double bytes = N_BIG * (double)p->bytes;
    double out_ns = 1;
    double in_ns = 1;
    double both_ns = 1;
    double small_ns = 1;
    double latency_ns;
    neap_status status = time_way(p, OUT, p->bytes, N_BIG, give_copies, &out_ns);
    if (status == NEAP_OK) {
        status = time_way(p, IN, p->bytes, N_BIG, give_copies, &in_ns);
    }
    if (status == NEAP_OK) {
        status = time_both(p, &both_ns);
    }
    if (status == NEAP_OK) {
        status = time_way(p, OUT, SMALL_BYTES, N_SMALL, give_swaps, &small_ns);
    }
    if (status == NEAP_OK) {
        double sum = bytes / out_ns + bytes / in_ns;
        double both = 2 * bytes / both_ns;
        latency_ns = small_ns / N_SMALL - SMALL_BYTES * out_ns / bytes;
        *link = (neap_link){.out_gbs = bytes / out_ns,
                            .in_gbs = bytes / in_ns,
                            .both_gbs = both < sum ? both : 0,
                            .latency_us = latency_ns > 0 ? latency_ns / 1e3 : 0};
    }
    return status;
}

static double small_us(const neap_link *link)
{
    return link->latency_us + SMALL_BYTES / (link->out_gbs * 1e3);
}

/* The better of the two in everything: in what a small copy takes, too, whose bytes take what they take at best. Together
 * they are as fast as both alone where `both_gbs` is 0. */
static neap_link best_of(const neap_link *a, const neap_link *b)
{
    neap_link best = *a;
    best.out_gbs = b->out_gbs > a->out_gbs ? b->out_gbs : a->out_gbs;
    best.in_gbs = b->in_gbs > a->in_gbs ? b->in_gbs : a->in_gbs;
    best.both_gbs = b->both_gbs == 0 || (a->both_gbs > 0 && b->both_gbs > a->both_gbs) ? b->both_gbs : a->both_gbs;
    best.latency_us = 0;
    best.latency_us = fmax(fmin(small_us(a), small_us(b)) - small_us(&best), 0);
    return best; /* what is left of it beside work is a's, which was there first */
}

static neap_status probe_with(np_cuda *cuda, uint64_t bytes)
{
    probe p = {.cuda = cuda, .bytes = bytes};
    neap_link link;
    neap_status status = probe_open(&p);
    if (status == NEAP_OK) {
        status = measure(&p, &link);
    }
    if (status == NEAP_OK) {
        cuda->link = cuda->n_link_probes > 0 ? best_of(&cuda->link, &link) : link;
        cuda->n_link_probes++;
    }
    probe_close(&p);
    return status;
}

/* What is not known yet is measured with the least that there is, whatever it takes. */
static bool has_room(const np_cuda *cuda, uint64_t bytes)
{
    return N_WAYS * bytes <= cuda->base.room_bytes || (bytes == LEAST_BYTES && cuda->n_link_probes == 0);
}

neap_status np_cuda_link(np_device *device, neap_link *link)
{
    np_cuda *cuda = (np_cuda *)device;
    neap_status status = NEAP_OK;
    if (!cuda->is_link_given && cuda->n_link_probes < MAX_PROBES) {
        np_cuda_visit visit;
        status = np_cuda_enter(cuda, &visit);
        if (status != NEAP_OK) {
            return status;
        }
        status = NEAP_DEVICE_FULL;
        for (uint64_t bytes = MOST_BYTES; bytes >= LEAST_BYTES && status == NEAP_DEVICE_FULL; bytes /= 2) {
            if (has_room(cuda, bytes)) {
                status = probe_with(cuda, bytes);
            }
        }
        np_cuda_leave(cuda, &visit);
    }
    if (!cuda->is_link_given && cuda->n_link_probes == 0) {
        return status;
    }
    *link = cuda->link; /* also where it could not be measured once more */
    return NEAP_OK;
}
