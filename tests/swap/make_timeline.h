/* make_timeline.h: timelines from a few numbers, or at random, without a trace behind them. */
#ifndef NEAP_MAKE_TIMELINE_H
#define NEAP_MAKE_TIMELINE_H

#include "base/rng.h"
#include "swap/timeline.h"

#define SHAPE_USES 16

typedef struct block_shape {
    uint64_t bytes;
    bool persistent;
    uint32_t n_uses;
    uint32_t uses[SHAPE_USES]; /* execs, ascending; beyond the number of execs where it lives across the period's end */
    uint32_t reads;            /* bit i set: use i only reads */
} block_shape;

typedef struct timeline_shape {
    uint32_t n_execs;
    double pause_ns;            /* before every exec */
    const double *durations_ns; /* [exec] */
    const block_shape *blocks;
    uint32_t n_blocks;
} timeline_shape;

/* Counted out exec by exec, use by use; it shares no code with the library. No blocks are pinned, `period` is NULL,
 * `peak_load` is the highest need. The caller frees it with np_timeline_free. */
void make_timeline(const timeline_shape *shape, const neap_memory *memory, np_timeline *timeline);

typedef struct random_timeline {
    uint32_t max_execs; /* 4 at least */
    uint32_t max_blocks;
    uint64_t max_bytes; /* of a block */
    bool reads;         /* some uses only read */
} random_timeline;

/* Some blocks are persistent, some live across the period's end. Half of the timelines look like training: what is made
 * first is used last. */
void make_random_timeline(const random_timeline *random, np_rng *rng, const neap_memory *memory, np_timeline *timeline);

/* The load of exec k, block by block, with the listed gaps absent from the execs strictly inside them. */
uint64_t load_with_gaps_away(const np_timeline *timeline, uint32_t k, const uint32_t *gaps, size_t n_gaps);

/* Does the gap have exec k, 0 <= k < n_execs, strictly inside? */
bool gap_has_inside(const np_timeline *timeline, const np_gap *gap, uint32_t k);

#endif
