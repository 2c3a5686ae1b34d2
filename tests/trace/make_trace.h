/* make_trace.h: traces for tests: made like training, or spliced from pieces of other traces. */
#ifndef NEAP_MAKE_TRACE_H
#define NEAP_MAKE_TRACE_H

#include "trace/trace.h"

/* A training loop over layers: forward, backward, update. Marks are at the starts of its iterations. */
typedef struct training {
    uint64_t seed;           /* sizes and kernel names */
    uint32_t n_layers;       /* 0: 8 */
    uint32_t n_iterations;   /* 0: 4 */
    uint32_t n_time_steps;   /* an inner loop of so many equal steps, in the middle of the forward pass */
    uint64_t step_bytes;     /* each of which mallocs and frees that much; 0: it only executes */
    bool loss_kept;          /* until the next iteration has made its own */
    uint64_t leak_bytes;     /* malloc'd and kept each iteration */
    bool zero_grad_at_start; /* gradients live across the iteration's end */
    uint32_t log_every;      /* every so many iterations do a little more; 0: none do */
    uint32_t stats_every;    /* and every so many something else; 0: none do */
    uint32_t other_every;    /* every so many have another batch size; 0: none have */
    uint32_t false_accesses; /* this many execs an iteration, chosen at random, have a false access */
    uint32_t long_lives;     /* this many blocks live for two and a half iterations */
    uint32_t queue_depth; /* blocks live for so many iterations, and at the start there are as many as later; 0: none */
    uint32_t queue_width; /* how many of them an iteration mallocs and frees; 0: 1 */
    bool freed_once;      /* a block from before is freed in the first iteration */
    uint32_t n_micro;     /* batches whose gradients are added up before an update; 0: 1 */
} training;

/* NULL only where memory fails. */
neap_trace *make_training(const training *options);

/* A piece of another trace. Blocks that live before the first piece of their trace are live from the start. */
typedef struct piece {
    const neap_trace *from;
    uint32_t begin, end; /* events */
    uint64_t leak_bytes; /* malloc'd before it, and never freed; 0: nothing */
    bool release;        /* what it malloc'd and did not free is freed at its end: a forward pass alone */
} piece;

/* The pieces one after the other, with new block numbers and without marks. */
neap_trace *splice(const piece *pieces, size_t n_pieces);

#endif
