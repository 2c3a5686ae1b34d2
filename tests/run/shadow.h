/* shadow.h: what every block must hold, known beside the device.
 *
 * A block's contents follow from a serial number of the block and a version, one for each of its halves. Work checks what
 * it reads against the versions that were current when it was given, and writes the next ones. So a byte that came from
 * another block, another place, or another time is found by the first work that reads it, on whatever thread that runs.
 *
 * The order of streams is kept here too: a shadow knows which work of one stream another has waited for, and waits where
 * the program must. */
#ifndef TESTS_RUN_SHADOW_H
#define TESTS_RUN_SHADOW_H

#include <pthread.h>
#include <stdatomic.h>

#include "neap.h"

enum { SHADOW_STREAMS = 4, SHADOW_USES = 8 };

/* The first thing found wrong, by any thread. */
typedef struct shadow_report {
    pthread_mutex_t lock;
    atomic_bool is_bad;
    char text[512];
    bool all_words; /* every word is written and checked, otherwise the first and the last of each 512 bytes */
} shadow_report;

void shadow_report_init(shadow_report *report, bool all_words);
void shadow_report_free(shadow_report *report);
void shadow_say(shadow_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct shadow_block {
    neap_block *block;
    uint64_t bytes;
    uint32_t serial;
    uint32_t versions[2];                /* of its halves; 0: never written */
    uint64_t last_use[SHADOW_STREAMS];   /* by stream: number of the last work that used it, */
    uint64_t last_write[SHADOW_STREAMS]; /* and wrote it; 0: none */
} shadow_block;

/* How work uses a block. */
typedef enum shadow_kind {
    SHADOW_READ,
    SHADOW_WRITE,  /* all of it, without a look */
    SHADOW_UPDATE, /* reads, writes all: NEAP_ACCESS_UNKNOWN */
    SHADOW_PART,   /* reads, writes one half: NEAP_ACCESS_UNKNOWN */
    SHADOW_UNSEEN, /* reads, and the device is not told */
    SHADOW_N_KINDS,
} shadow_kind;

typedef struct shadow_use {
    shadow_block *block;
    shadow_kind kind;
} shadow_use;

/* One thread's streams, and what it knows of their order. */
typedef struct shadow_streams {
    neap_device *device;
    shadow_report *report;
    uint32_t n_streams;
    uint64_t n_given[SHADOW_STREAMS];
    uint64_t known[SHADOW_STREAMS][SHADOW_STREAMS];      /* [a][b]: work of b that a has waited for, */
    uint64_t work_knows[SHADOW_STREAMS][SHADOW_STREAMS]; /* and had, when its last work was given */
    uint32_t next_serial;
    neap_status (*retry)(void *user, neap_status status); /* NULL, or whether to try once more: NEAP_OK: yes */
    void *retry_user;
} shadow_streams;

/* Threads that share a device have serial numbers of their own: first_serial is far apart. */
void shadow_streams_init(shadow_streams *streams, neap_device *device, shadow_report *report, uint32_t n_streams,
                         uint32_t first_serial);

neap_status shadow_malloc(shadow_streams *streams, uint64_t bytes, shadow_block *block);
neap_status shadow_free(shadow_streams *streams, shadow_block *block); /* `block->block` is NULL then */

/* Work that checks and writes the blocks; the same one may be named twice, unless it is to be written unseen. Waits for
 * other streams first, where they used what it uses. Where it fails nothing has happened. */
neap_status shadow_exec(shadow_streams *streams, const char *name, unsigned stream, uint64_t duration_ns,
                        const shadow_use *uses, uint32_t n_uses);

/* The same, of one block, as work that comes when it likes (stray.h). */
neap_status shadow_stray(shadow_streams *streams, const char *name, unsigned stream, uint64_t duration_ns,
                         const shadow_use *use);

neap_status shadow_wait(shadow_streams *streams, unsigned stream, unsigned other);
neap_status shadow_sync(shadow_streams *streams);

/* By neap_write and neap_read: a part of the block, or all of it. */
neap_status shadow_host_write(shadow_streams *streams, shadow_block *block, bool is_whole);
neap_status shadow_host_read(shadow_streams *streams, const shadow_block *block, uint64_t offset, uint64_t bytes);

#endif
