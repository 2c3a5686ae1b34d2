/* little_program.h: a small training loop on a device, every byte of it checked at every use (shadow.h).
 *
 * An iteration is an input, a forward pass over some layers, a loss, and a backward pass that updates each layer's
 * weight:
 *
 *     malloc a0, input;  each layer: malloc a, forward;  malloc g, loss;
 *     each layer, last first: malloc h, backward, update, free a, free g, g = h;  free g, free a0
 *
 * Weights live for ever, activations from the forward pass to the backward pass. A *twist* makes one iteration differ.
 * Failures end the test. Plans are made at once in the caller, so that nothing depends on time, unless the planner's
 * thread is asked for. */
#ifndef TESTS_RUN_LITTLE_PROGRAM_H
#define TESTS_RUN_LITTLE_PROGRAM_H

#include "device/faulty.h"
#include "run/manager.h"
#include "run/shadow.h"

enum { LITTLE_LAYERS = 24, LITTLE_LINES = 256, LITTLE_PAGE = 4096 };

typedef struct little_options {
    const char *name;           /* of the device; NULL: "sim:page=4KiB,memory=64MiB,link=4GB/s" */
    neap_device_options device; /* log and log_user are the program's own; a level of 0: NEAP_LOG_DEBUG; min_block and
                                 * plan_seconds 0: a page, 0.2 s; refinements 0: none */
    const neap_memory *memory;
    bool has_planner_thread;
    bool is_faulty;         /* the device is wrapped (faulty.h) */
    bool shares_pages;      /* blocks share pages under a limit too */
    uint32_t n_layers;      /* 0: 6 */
    uint64_t weight_bytes;  /* 0: two pages */
    uint64_t act_bytes;     /* 0: eight pages */
    uint64_t exec_ns;       /* 0: 20 us; on "sim" only */
    unsigned update_stream; /* of the updates */
    bool has_crossing;      /* a block of each iteration lives on into the next: two take turns */
} little_options;

typedef enum little_twist_kind {
    LITTLE_PLAIN,        /* the iteration as it is */
    LITTLE_EXTRA_MALLOC, /* a block more before the work of the layer's forward pass, used and freed */
    LITTLE_KEPT_MALLOC,  /* the same, but it is kept: little_program.kept */
    LITTLE_OTHER_SIZE,   /* the layer's activation is a page larger */
    LITTLE_EARLY_FREE,   /* the layer's activation is freed before its update, which then does without it */
    LITTLE_LATE_FREE,    /* it is freed at the end of the iteration */
    LITTLE_OTHER_WORK,   /* the layer's forward pass has another name */
    LITTLE_EXTRA_WORK,   /* the layer's forward pass is followed by a look at its result: a step that logs */
    LITTLE_OTHER_USES,   /* the layer's forward pass does without its weight */
    LITTLE_OTHER_BLOCK,  /* the layer's update uses the activation two layers below too, absent or not */
    LITTLE_OTHER_BLOCKS, /* so do the updates of all layers, and the weights two layers below and above */
    LITTLE_KEPT_USE,     /* the layer's forward pass uses `kept` too */
    LITTLE_OTHER_STREAM, /* the layer's forward pass is stream 1's */
    LITTLE_OTHER_CHANGE, /* the same, and it changes what it is to read */
    LITTLE_CUT_SHORT,    /* after the layer's forward pass everything is freed, and the iteration is over */
    LITTLE_FORWARD_ONLY, /* no loss, no backward pass; each activation is freed with the next: an evaluation */
} little_twist_kind;

typedef struct little_twist {
    little_twist_kind kind;
    uint32_t layer;
} little_twist;

typedef struct little_line {
    neap_log_level level;
    char text[256];
} little_line;

typedef struct little_program {
    little_options options; /* as they are in effect */
    np_device *raw;
    np_device *faulty; /* the same, where it was asked for */
    neap_device *device;
    shadow_report report;
    shadow_streams streams;
    shadow_block weights[LITTLE_LAYERS];
    const void *weights_at[LITTLE_LAYERS]; /* since their malloc */
    shadow_block acts[LITTLE_LAYERS + 1];
    shadow_block gradient;
    shadow_block kept;
    shadow_block crossing[2];                      /* of the iteration before, and of this one */
    void (*after_event)(struct little_program *p); /* NULL, or called after each event of an iteration */
    /* NULL, or called before each work with its uses, SHADOW_USES at most: it may change them, and add some; how many
     * there are then */
    uint32_t (*change_uses)(struct little_program *p, shadow_use *uses, uint32_t n_uses);
    void *user;
    pthread_mutex_t lock; /* of the lines */
    little_line lines[LITTLE_LINES];
    size_t n_lines;     /* that were said, kept or not */
    uint32_t n_refused; /* execs, since a visit could not be ended */
} little_program;

/* Opens the device; nothing is malloc'd yet. */
void little_open(little_program *p, const little_options *options);
/* Mallocs the weights and writes them. */
void little_begin(little_program *p);
/* Both. */
void little_start(little_program *p, const little_options *options);

void little_lap(little_program *p, little_twist twist);
void little_laps(little_program *p, uint32_t n); /* plain ones */

/* Plain laps until a plan is followed, `most` at most; how many it took. */
uint32_t little_run_until_plan(little_program *p, uint32_t most);

/* One block of that many bytes, written by work; and its end, checked. For what a test does between iterations. */
void little_malloc(little_program *p, uint64_t bytes, shadow_block *block);
void little_free(little_program *p, shadow_block *block);
void little_exec(little_program *p, const char *name, unsigned stream, const shadow_use *uses, uint32_t n_uses);

neap_stats little_stats(little_program *p);

/* Lines of the log with this in them. */
size_t little_count(little_program *p, const char *part);
void little_forget(little_program *p); /* the lines so far */

/* No byte was wrong, no weight has another address, the manager's parts agree, the device found nothing. */
void little_check(little_program *p);

/* Reads all weights, checks, frees and closes. */
void little_end(little_program *p);
/* Checks and closes, with all that is live. */
void little_close(little_program *p);

#endif
