/* virtual.h: streams on a clock that does not tick by itself.
 *
 * The host gives work and waits for it; giving takes no time (where it does, tasks of a stream stand for it, which the
 * others wait for). So the clock stands still, at the host's time, until the
 * host waits for a mark: then everything given so far goes on side by side until that mark is reached, and the clock stands
 * at that moment. Work takes the time it says, copies the time that the link takes for their bytes, after its latency.
 * Bytes flow at the link's speed in each direction; when both are busy and the link is shared, each gets its half of the
 * shared speed, or its own if that is less. Its own is less while the program's work runs, where the link says so. A copy
 * is busy from its start on, its latency included: as swap/simulate.h has it.
 *
 * Why the clock must not run ahead of the host: a copy that is given later shares the link with those under way from the
 * moment it starts, which is not before the host's time. Up to that time nothing that is given can change any more, and
 * beyond it everything can. So what lies behind the host's time is final and forgotten, and the queues hold just the work
 * that the host does not know to be done. */
#ifndef NP_DEVICE_VIRTUAL_H
#define NP_DEVICE_VIRTUAL_H

#include "device/device.h"

/* One more stream than a device has: for a host that needs time to give work. */
enum { NP_VIRTUAL_HOST = NP_N_STREAMS, NP_VIRTUAL_STREAMS };

typedef enum np_virtual_kind { NP_VIRTUAL_TASK, NP_VIRTUAL_COPY, NP_VIRTUAL_WAIT } np_virtual_kind;

typedef struct np_virtual_item {
    np_virtual_kind kind;
    np_stream other; /* wait: the stream waited for */
    uint64_t amount; /* task: ns; copy: bytes; wait: the mark */
    np_times *times; /* task: NULL, or to be filled in */
} np_virtual_item;

typedef struct np_virtual_stream {
    np_array(np_virtual_item) items; /* from `head` on; the first is under way where `busy` says so */
    size_t head;
    uint64_t mark; /* of the last work given */
    uint64_t done; /* of the last work that has ended by now */
    bool busy;
    double start_ns; /* of the work under way */
    double end_ns;   /* as things stand */
    /* A copy under way: what was left of it at `since_ns`, when its rate last changed. */
    double since_ns;
    double latency_left; /* ns */
    double bytes_left;
    double rate; /* bytes a ns */
} np_virtual_stream;

typedef struct np_virtual {
    const neap_memory *memory;
    neap_link link;
    double now_ns;
    np_virtual_stream streams[NP_VIRTUAL_STREAMS];
} np_virtual;

void np_virtual_init(np_virtual *time, const neap_memory *memory, const neap_link *link);
void np_virtual_free(np_virtual *time);

/* Room for one more item. The others cannot fail then. */
neap_status np_virtual_reserve(np_virtual *time, np_stream stream);
void np_virtual_launch(np_virtual *time, np_stream stream, uint64_t duration_ns, np_times *times);
/* On NP_STREAM_OUT, NP_STREAM_IN, or another: that takes nothing of the link from those. */
void np_virtual_copy(np_virtual *time, np_stream stream, uint64_t bytes);
void np_virtual_wait(np_virtual *time, np_stream stream, np_stream other, uint64_t mark);

/* Time passes until the mark is reached. All that ends by then has ended. */
void np_virtual_sync(np_virtual *time, np_stream stream, uint64_t mark);

bool np_virtual_is_valid(const np_virtual *time);

#endif
