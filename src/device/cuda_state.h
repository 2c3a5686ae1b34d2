/* cuda_state.h: the cuda device's parts, and what each may ask of the others.
 *
 *   cuda_driver.c   the driver's functions
 *   cuda_context.c  a visit to the driver: context, capture mode, errors
 *   cuda_memory.c   pages, addresses and host memory
 *   cuda_records.c  events that stand for marks
 *   cuda_work.c     launches, copies, waits
 *   cuda_link.c     how fast copies are
 *   cuda_busy.c     and how fast beside the program's work
 *   cuda.c          opening, closing, the table of functions
 */
#ifndef NP_DEVICE_CUDA_STATE_H
#define NP_DEVICE_CUDA_STATE_H

#include "device/cuda.h"
#include "device/cuda_driver.h"
#include "device/pagemap.h"

/* An event that was recorded after the work of a mark: when it is done, so is that work and all before it. */
typedef struct np_cuda_record {
    uint64_t mark;
    np_cu_event event;
    np_cu_event start; /* NULL where no times are asked for */
    np_times *times;   /* to be filled in */
    uint64_t given_ns; /* by the host's clock, before the work was given */
} np_cuda_record;

typedef struct np_cuda_lane {
    np_cu_stream stream;           /* NULL: there is none */
    bool is_adopted;               /* it is the program's own */
    uint64_t mark;                 /* of the last work given */
    uint64_t done;                 /* the highest mark that is known to be done */
    uint64_t waited[NP_N_STREAMS]; /* marks of the others that its later work follows */
    uint64_t owed[NP_N_STREAMS];   /* those that it was told to wait for while there was no stream */
    uint64_t last_end_ns;          /* of the work whose times were filled in last */
    /* A ring of records whose events are not known to be done: marks ascending, above `done`. */
    np_cuda_record *records;
    size_t n_records;
    size_t first_record;
    size_t capacity; /* a power of two, or 0 */
} np_cuda_lane;

/* Events to be used again. There is room for all that exist, so that giving one back cannot fail. */
typedef struct np_cuda_events {
    np_array(np_cu_event) idle;
    size_t n_made;
    unsigned int flags; /* they are made with */
} np_cuda_events;

typedef struct np_cuda_range {
    np_cu_address address;
    uint64_t bytes;
} np_cuda_range;

/* Addresses that were given back (cuda_addresses.c). */
typedef struct np_cuda_resting {
    np_array(np_cuda_range) ranges; /* oldest first */
    uint64_t bytes;                 /* of them all */
} np_cuda_resting;

/* Rows of copies beside the program's work, out and in in turn. */
typedef struct np_cuda_busy {
    np_cu_stream stream; /* NULL: none are under way */
    np_cu_event begin;
    np_cu_event end;
    np_cu_address memory;
    char *host;
    uint64_t bytes; /* of a copy, and of the memory on each side */
    uint32_t n_rounds;
} np_cuda_busy;

typedef struct np_cuda {
    np_device base;
    np_cuda_driver driver;
    np_cu_device ordinal;
    np_cu_context context;
    char problem[320]; /* the last failure of the driver, but for exhausted memory; empty: none */

    np_pagemap pages;
    np_array(np_cu_memory) handles; /* by page; meaningful where the page is committed */

    np_cuda_lane lanes[NP_N_STREAMS];
    bool adopts;          /* the program's streams are its own */
    bool has_begun;       /* work with times is being given, */
    np_cuda_record begun; /* and these are its events */
    np_cuda_events plain;
    np_cuda_events timed;
    np_cu_event base_event; /* done; a timed one that stands for base_ns of the host's clock */
    uint64_t base_ns;

    neap_link link;         /* given or measured; out_gbs 0: not yet */
    uint32_t n_link_probes; /* times that it was measured */
    bool is_link_given;
    np_cuda_busy busy;
    np_cuda_resting resting;
} np_cuda;

/* ---- cuda_context.c ---- */

/* Between the two the device's context is current, and what is called does not disturb a stream capture of the program:
 * not even one of another thread that forbids calls from everywhere. */
typedef struct np_cuda_visit {
    bool has_pushed;
    bool has_mode;
    np_cu_capture_mode mode; /* the thread's own */
} np_cuda_visit;

/* What must be done in any case is done after a failure too: to leave is then to do nothing. */
neap_status np_cuda_enter(np_cuda *cuda, np_cuda_visit *visit);
void np_cuda_leave(np_cuda *cuda, const np_cuda_visit *visit);

/* The same, but what is called is the program's: its captures are its own. */
neap_status np_cuda_enter_as_program(np_cuda *cuda, np_cuda_visit *visit);

/* NEAP_OK, or what the driver said, kept for np_device_interface.problem. `call`: what was asked of it. Out of memory
 * is `when_full`: it is no problem of the device. */
neap_status np_cuda_judge(np_cuda *cuda, np_cu_result result, const char *call, neap_status when_full);

/* ---- cuda_memory.c ---- */
neap_status np_cuda_commit(np_device *device, uint32_t first_page, uint32_t n_pages);
void np_cuda_release(np_device *device, uint32_t first_page, uint32_t n_pages);
neap_status np_cuda_reserve(np_device *device, uint64_t n_pages, char **address);
void np_cuda_unreserve(np_device *device, char *address, uint64_t n_pages);
neap_status np_cuda_map(np_device *device, char *address, uint32_t first_page, uint32_t n_pages);
void np_cuda_unmap(np_device *device, char *address, uint64_t n_pages);
neap_status np_cuda_host_alloc(np_device *device, uint64_t bytes, char **host);
void np_cuda_host_free(np_device *device, char *host, uint64_t bytes);
np_cu_allocation np_cuda_allocation(np_cu_device ordinal); /* what pages are made of */
void np_cuda_memory_free(np_cuda *cuda);                   /* whatever is left; no work is under way */

/* ---- cuda_addresses.c: within a visit ---- */
neap_status np_cuda_addresses_reserve(np_cuda *cuda, uint64_t bytes, np_cu_address *address);
void np_cuda_rest(np_cuda *cuda, np_cu_address address, uint64_t bytes); /* nothing is mapped there any more */
neap_status np_cuda_rest_expect(np_cuda *cuda, size_t n);                /* so many will come: they are made room for */
void np_cuda_rest_free(np_cuda *cuda);                                   /* all of them */

/* ---- cuda_records.c: all within a visit ---- */

/* The events of a record to come, and room for it. What is taken is recorded with it, or given back. */
neap_status np_cuda_records_take(np_cuda *cuda, np_cuda_lane *lane, bool timed, np_cuda_record *record);
void np_cuda_records_give_back(np_cuda *cuda, const np_cuda_record *record);

/* Records the event of what was taken at the lane's end, for its last mark. */
neap_status np_cuda_records_add(np_cuda *cuda, np_cuda_lane *lane, np_cuda_record *record);

/* The first record that stands for the mark or a later one, made now where there is none. The mark is above `done`. */
neap_status np_cuda_records_find(np_cuda *cuda, np_cuda_lane *lane, uint64_t mark, const np_cuda_record **record);

/* The record, one of the lane's, is known to be done. */
void np_cuda_records_retire(np_cuda *cuda, np_cuda_lane *lane, const np_cuda_record *record);
/* All that was given to the lane is known to be done. */
void np_cuda_records_retire_all(np_cuda *cuda, np_cuda_lane *lane);

neap_status np_cuda_records_open(np_cuda *cuda); /* the clock; the lanes' streams exist */
void np_cuda_records_close(np_cuda *cuda);       /* no work is under way */
bool np_cuda_records_are_valid(const np_cuda *cuda);

/* ---- cuda_work.c ---- */
neap_status np_cuda_launch(np_device *device, np_stream stream, const np_task *task, uint64_t *mark);
neap_status np_cuda_copy(np_device *device, np_stream stream, char *to, const char *from, uint64_t bytes,
                         uint64_t *mark);
neap_status np_cuda_wait(np_device *device, np_stream stream, np_stream other, uint64_t mark);
uint64_t np_cuda_mark(const np_device *device, np_stream stream);
bool np_cuda_is_done(const np_device *device, np_stream stream, uint64_t mark);
neap_status np_cuda_sync(np_device *device, np_stream stream, uint64_t mark);
neap_status np_cuda_sync_all(np_cuda *cuda); /* within a visit */
void np_cuda_begin(np_device *device, np_stream stream, np_times *times);
uint64_t np_cuda_end(np_device *device, np_stream stream);
neap_status np_cuda_adopt(np_device *device, np_stream stream, void *native);

/* ---- cuda_link.c ---- */
neap_status np_cuda_link(np_device *device, neap_link *link);

/* ---- cuda_busy.c ---- */
neap_status np_cuda_time_busy(np_device *device, uint32_t n_rounds);
bool np_cuda_take_busy(np_device *device, double *share);
void np_cuda_busy_close(np_cuda *cuda); /* within a visit: waits for the copies */

/* ---- the whole ---- */
bool np_cuda_is_valid(const np_device *device);

#endif
