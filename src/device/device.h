/* device.h: what the manager needs of a device, and nothing else.
 *
 * Three kinds of things:
 *
 *   page     physical memory of the device, np_device.page_bytes large. Pages are numbered from 0 to n_pages - 1; each is
 *            committed (it exists) or not.
 *   address  a range reserved from the device's address space, in pages. Each page of it is mapped onto one physical page
 *            or none. One physical page may be mapped at several addresses: they show the same bytes.
 *   stream   a queue of work, done in order. Streams 0 .. n_streams - 1 are the program's; NP_STREAM_OUT and NP_STREAM_IN
 *            carry copies to and from the host.
 *
 * Every piece of work given to a stream has a *mark*: 1, 2, 3, ... in the order it was given. A mark stands for that work
 * and all before it; 0 stands for nothing. To wait for a mark is to wait for work that was given: there is no way to wait
 * for what was never recorded.
 *
 * Preconditions of all functions: addresses are multiples of the page size; ranges lie within what was reserved or
 * exists; streams exist; marks were handed out. Calls for one device come from one thread at a time (the manager's lock),
 * `link` and `free` too; only now_ns, host_alloc and host_free may be called at any time. What can fail changes nothing then. */
#ifndef NP_DEVICE_DEVICE_H
#define NP_DEVICE_DEVICE_H

#include "base/memory.h"

enum {
    NP_MAX_STREAMS = 16, /* of the program */
    NP_STREAM_OUT = NP_MAX_STREAMS,
    NP_STREAM_IN,
    NP_N_STREAMS,
};

typedef uint32_t np_stream;
typedef struct np_device np_device;

/* When a piece of work ran, by the device's clock: written once it is done, before its mark counts as done. */
typedef struct np_times {
    uint64_t start_ns;
    uint64_t duration_ns;
} np_times;

/* A piece of the program's work. `arg` is copied. The spans say which bytes it touches: for devices that check. */
typedef struct np_touch {
    const char *address;
    uint64_t bytes;
    bool writes;
} np_touch;

/* The one task that devices know: a copy between the program's own memory and the device's, in stream order. A device whose
 * memory the host cannot touch sees it by its function, and copies in its own way. */
typedef struct np_host_copy {
    void *to;
    const void *from;
    uint64_t bytes;
} np_host_copy;

void np_host_copy_run(void *arg); /* arg: np_host_copy */

typedef struct np_task {
    void (*run)(void *arg);
    const void *arg;
    size_t arg_bytes;        /* at most NEAP_ARG_MAX */
    uint64_t duration_ns;    /* for a device with a virtual clock */
    np_times *times;         /* NULL, or filled in when done; must live until then */
    const np_touch *touches; /* NULL where np_device.wants_touches is false */
    uint32_t n_touches;
} np_task;

typedef struct np_device_interface {
    void (*free)(np_device *device); /* waits for all work first */

    /* memory */
    neap_status (*commit)(np_device *device, uint32_t first_page, uint32_t n_pages);
    void (*release)(np_device *device, uint32_t first_page,
                    uint32_t n_pages); /* unmapped everywhere; contents are lost */
    neap_status (*reserve)(np_device *device, uint64_t n_pages, char **address);
    void (*unreserve)(np_device *device, char *address, uint64_t n_pages); /* nothing is mapped there any more */
    /* Consecutive pages of an address range onto consecutive physical pages, committed before. What was mapped there is
     * replaced. On failure the range is as it was. */
    neap_status (*map)(np_device *device, char *address, uint32_t first_page, uint32_t n_pages);
    void (*unmap)(np_device *device, char *address, uint64_t n_pages);         /* no work under way uses it */
    neap_status (*host_alloc)(np_device *device, uint64_t bytes, char **host); /* fit for fast copies */
    void (*host_free)(np_device *device, char *host, uint64_t bytes);

    /* work */
    neap_status (*launch)(np_device *device, np_stream stream, const np_task *task, uint64_t *mark);
    neap_status (*copy)(np_device *device, np_stream stream, char *to, const char *from, uint64_t bytes,
                        uint64_t *mark);
    neap_status (*wait)(np_device *device, np_stream stream, np_stream other, uint64_t mark); /* later work of `stream`
                                                                                              * waits for the mark */
    uint64_t (*mark)(const np_device *device, np_stream stream); /* of the last work given */
    bool (*is_done)(const np_device *device, np_stream stream, uint64_t mark);
    neap_status (*sync)(np_device *device, np_stream stream, uint64_t mark); /* the caller waits */

    /* (optional) Work that the program gives to the driver by itself, between the two: see np_device_settings.adopts. The
     * times are unknown where `begin` could not be; `end` cannot fail, as the work was given. */
    void (*begin)(np_device *device, np_stream stream, np_times *times);
    uint64_t (*end)(np_device *device, np_stream stream);
    /* (optional) The stream is the one that the driver calls so from now on; what it stood for before comes first. NULL:
     * it is about to go, and another will be adopted before more work is given. */
    neap_status (*adopt)(np_device *device, np_stream stream, void *native);

    /* facts */
    neap_status (*link)(np_device *device,
                        neap_link *link); /* speeds of copies: known, or measured (some milliseconds) */
    /* (optional) What is left of those speeds, once `link` has told them, while the program's work runs: rows of copies are
     * given beside it, and nobody waits. True: they are done, or none were given; the share is 0 where it is not known.
     * `link` tells it from then on. */
    neap_status (*time_busy)(np_device *device, uint32_t n_rounds);
    bool (*take_busy)(np_device *device, double *share);
    uint64_t (*now_ns)(const np_device *device);
    void *(*native)(const np_device *device, np_stream stream); /* (optional) the driver's own name for a stream */
    const char *(*problem)(const np_device *device); /* (optional) what the device found wrong, NULL: nothing */
} np_device_interface;

/* What every device begins with. */
struct np_device {
    const np_device_interface *api;
    const neap_memory *memory;
    const char *kind;    /* "cpu", "sim" */
    uint64_t page_bytes; /* a power of two */
    uint32_t n_pages;    /* that could be committed: what the device has */
    uint32_t n_streams;  /* of the program */
    bool wants_touches;
    uint64_t
        room_bytes; /* of its memory, that measuring copies may take for a moment; UINT64_MAX: as much as that needs */
};

/* By its name and settings, as neap_open takes it. */
neap_status np_device_open(const char *name, const neap_memory *memory, neap_error *error, np_device **device);

#endif
