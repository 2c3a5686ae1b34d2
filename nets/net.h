/* net.h: a network as it is held: its parts in order, their parameters, and what the forward pass saves for the backward
 * one.
 *
 *   unit       a convolution, batch norm and, mostly, ReLU
 *   part       one unit, one max pooling, or a residual block of two or three units beside a shortcut
 *   head       what makes ten numbers of the last part's output: linear layers, with an average or a dropout before
 *   parameter  an array that learns
 *
 * There is no graph: step.c goes through the parts forwards, then backwards. */
#ifndef NETS_NET_H
#define NETS_NET_H

#include "data.h"
#include "layers.h"
#include "nets.h"

typedef struct nets_parameter {
    size_t n;             /* floats */
    neap_block *value;    /* lives as long as the net */
    neap_block *velocity; /* likewise: the optimizer's momentum */
    neap_block *gradient; /* from the backward pass to the update */
} nets_parameter;

typedef struct nets_unit {
    nets_conv_shape shape;
    bool has_relu;
    size_t weight;       /* index of a parameter: (out_c,in_c,kernel,kernel) */
    size_t scale;        /* (2,out_c): batch norm's gamma and beta */
    neap_block *running; /* (2,out_c): batch norm's mean and variance over batches; lives as long as the net */
    /* from forward to backward */
    neap_block *x;     /* the input; not the unit's own */
    neap_block *conv;  /* the convolution's result, which batch norm looks at again */
    neap_block *stats; /* (2,out_c): mean and 1 / standard deviation of the batch */
    neap_block *y;     /* the output, after ReLU where there is one */
} nets_unit;

typedef enum nets_part_kind { NETS_PART_CONV, NETS_PART_POOL, NETS_PART_RESIDUAL } nets_part_kind;

typedef struct nets_part {
    nets_part_kind kind;
    size_t n_units; /* NETS_PART_POOL: 0 */
    nets_unit units[3];
    bool has_shortcut; /* NETS_PART_RESIDUAL: a unit of its own; otherwise the input itself is added */
    nets_unit shortcut;
    size_t planes;       /* NETS_PART_POOL: N * C, */
    size_t size;         /* and rows and columns in */
    neap_block *y;       /* the output: of the last unit, or of the pooling */
    neap_block *largest; /* NETS_PART_POOL: which of each four it was, from forward to backward */
} nets_part;

typedef struct nets_linear {
    size_t in;
    size_t out;
    size_t weight; /* index of a parameter: (out,in) */
    size_t bias;   /* (out) */
} nets_linear;

typedef struct nets_head {
    size_t n_features; /* channels of the last part, */
    size_t size;       /* and its rows and columns: averaged where above 1 */
    bool has_hidden;   /* a linear layer, ReLU and dropout before the last linear one */
    nets_linear hidden_layer;
    nets_linear output_layer;
    /* from forward to backward; all (N,features) */
    neap_block *x;       /* averages, or the last part's result itself, which is not the head's own */
    neap_block *hidden;  /* after ReLU */
    neap_block *dropped; /* after dropout */
    neap_block *mask;    /* bytes: what dropout kept */
} nets_head;

struct nets {
    neap_device *device;
    size_t batch;
    uint64_t seed;
    float learning_rate;
    float momentum;
    float weight_decay;
    nets_data data;
    nets_part *parts;
    size_t n_parts;
    nets_head head;
    nets_parameter *parameters;
    size_t n_parameters;
    uint64_t step;      /* number of the next one */
    float loss;         /* of the last one that was done */
    neap_status status; /* of the work given since it was last reset: the first failure, */
    neap_error error;   /* and its reason */
};

/* What random numbers are for: each use has its own key. */
enum { NETS_KEY_PARAMETER = 1, NETS_KEY_DROPOUT };

/* ---- the device, with failures kept (work.c) ----
 * After the first failure nets_take gives NULL and nets_exec does nothing, but nets_drop still frees: a pass over the
 * network always goes to its end, and leaves nothing behind. */

void nets_begin(nets *net); /* forgets an earlier failure */
void nets_fail(nets *net, neap_status status);

neap_block *nets_take(nets *net, size_t n_floats); /* NULL: failed */
neap_block *nets_take_bytes(nets *net, uint64_t bytes);
void nets_drop(nets *net, neap_block *block); /* NULL is allowed */
void *nets_data_of(const neap_block *block);  /* NULL is allowed */

/* Uses without a block are left out. `flops`: of matrix products; a simulated device is told how long the work takes. */
void nets_exec(nets *net, const neap_work *work, double flops, const neap_use *uses, size_t n_uses);

#define NETS_READ(block)          \
    {                             \
        (block), NEAP_ACCESS_READ \
    }
#define NETS_WRITE(block)          \
    {                              \
        (block), NEAP_ACCESS_WRITE \
    }
#define NETS_CHANGE(block)           \
    {                                \
        (block), NEAP_ACCESS_UNKNOWN \
    } /* reads and writes */

/* NETS_EXEC(net, conv_forward, args, flops, uses...) runs nets_conv_forward as work of that name. */
#define NETS_EXEC(net, name_, args, flops, ...)                                                                   \
    nets_exec((net),                                                                                              \
              &(const neap_work){.name = #name_, .run = nets_##name_, .arg = &(args), .arg_bytes = sizeof(args)}, \
              (flops), (const neap_use[]){__VA_ARGS__}, sizeof((const neap_use[]){__VA_ARGS__}) / sizeof(neap_use))

/* ---- the passes (unit.c, head.c) ----
 * Forward functions give a new block, which the unit or the head frees in its backward pass; backward functions free the
 * gradient they are given, and give the one by their input. */

size_t nets_floats_in(const nets_conv_shape *shape);
size_t nets_floats_out(const nets_conv_shape *shape);

/* y (N,C,H,W) = ReLU(batch norm(convolution(x))), kept in unit->y */
neap_block *nets_unit_forward(nets *net, nets_unit *unit, neap_block *x);

/* `keeps_dy`: dy is needed elsewhere and not freed. Without `wants_dx` gives NULL: the input was no layer's result. */
neap_block *nets_unit_backward(nets *net, nets_unit *unit, neap_block *dy, bool keeps_dy, bool wants_dx);

/* The gradient by what ReLU was given. Frees y too. */
neap_block *nets_back_through_relu(nets *net, size_t n, neap_block *y, neap_block *dy);

/* logits (N,10) of the last part's result (N,C,H,W) */
neap_block *nets_head_forward(nets *net, neap_block *x);
neap_block *nets_head_backward(nets *net, neap_block *dlogits);

/* The gradient by the logits; the loss itself goes to net->loss. Frees the logits. */
neap_block *nets_loss_gradient(nets *net, neap_block *logits, neap_block *labels);

#endif
