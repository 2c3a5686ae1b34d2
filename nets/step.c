/* step.c: one step of training, read from top to bottom: a batch forward through the parts and the head, the loss, the
 * same way backward, then the update.
 *
 * Who owns which block, as in frameworks:
 *
 *   - A unit's result stays until its own backward pass: it is the next convolution's input, and the mask of its ReLU.
 *     So does what batch norm looks at again.
 *   - A gradient by an activation is freed as soon as the layer before has made its own from it.
 *   - Scratch lives for one piece of work.
 *   - Gradients by parameters stay until the update, which comes after the whole backward pass. */
#include "net.h"

/* ---- one part ---- */

/* y += x */
static void add(nets *net, size_t n, neap_block *y, neap_block *x)
{
    nets_add_args args = {.n = n, .x = nets_data_of(x), .y = nets_data_of(y)};
    NETS_EXEC(net, add, args, 0, NETS_CHANGE(y), NETS_READ(x));
}

/* y (N,C,H/2,W/2) = the maxima of x (N,C,H,W) */
static neap_block *pool_forward(nets *net, nets_part *p, neap_block *x)
{
    size_t n_out = p->planes * (p->size / 2) * (p->size / 2);
    p->y = nets_take(net, n_out);
    p->largest = nets_take_bytes(net, n_out);
    nets_pool_args pool = {
        .planes = p->planes,
        .h = p->size,
        .w = p->size,
        .x = nets_data_of(x),
        .y = nets_data_of(p->y),
        .largest = nets_data_of(p->largest),
    };
    NETS_EXEC(net, pool_max_forward, pool, 0, NETS_READ(x), NETS_WRITE(p->y), NETS_WRITE(p->largest));
    return p->y;
}

static neap_block *pool_backward(nets *net, nets_part *p, neap_block *dy)
{
    neap_block *dx = nets_take(net, p->planes * p->size * p->size);
    nets_pool_args pool = {
        .planes = p->planes,
        .h = p->size,
        .w = p->size,
        .dy = nets_data_of(dy),
        .dx = nets_data_of(dx),
        .largest = nets_data_of(p->largest),
    };
    NETS_EXEC(net, pool_max_backward, pool, 0, NETS_READ(p->largest), NETS_READ(dy), NETS_WRITE(dx));
    nets_drop(net, dy);
    nets_drop(net, p->largest);
    nets_drop(net, p->y);
    p->y = p->largest = NULL;
    return dx;
}

/* y = ReLU(units(x) + x), or + shortcut(x); the sum and ReLU are done in place in the last unit's result */
static neap_block *residual_forward(nets *net, nets_part *p, neap_block *x)
{
    neap_block *y = x;
    for (size_t i = 0; i < p->n_units; i++) {
        y = nets_unit_forward(net, &p->units[i], y);
    }
    size_t n = nets_floats_out(&p->units[p->n_units - 1].shape);
    if (p->has_shortcut) {
        add(net, n, y, nets_unit_forward(net, &p->shortcut, x));
        nets_drop(net, p->shortcut.y); /* a sum needs nothing of it again */
        p->shortcut.y = NULL;
    } else {
        add(net, n, y, x);
    }
    nets_relu_args relu = {.n = n, .y = nets_data_of(y)};
    NETS_EXEC(net, relu_forward, relu, 0, NETS_CHANGE(y));
    p->y = y;
    return y;
}

static neap_block *residual_backward(nets *net, nets_part *p, neap_block *dy)
{
    nets_unit *first = &p->units[0];
    nets_unit *last = &p->units[p->n_units - 1];
    neap_block *dsum = nets_back_through_relu(net, nets_floats_out(&last->shape), p->y, dy); /* goes both ways */
    p->y = last->y = NULL;
    neap_block *dx = nets_unit_backward(net, last, dsum, true, true);
    for (size_t i = p->n_units - 1; i > 0; i--) {
        dx = nets_unit_backward(net, &p->units[i - 1], dx, false, true);
    }
    neap_block *other = p->has_shortcut ? nets_unit_backward(net, &p->shortcut, dsum, false, true) : dsum;
    add(net, nets_floats_in(&first->shape), dx, other);
    nets_drop(net, other);
    return dx;
}

static neap_block *part_forward(nets *net, nets_part *p, neap_block *x)
{
    switch (p->kind) {
    case NETS_PART_POOL:
        return pool_forward(net, p, x);
    case NETS_PART_RESIDUAL:
        return residual_forward(net, p, x);
    case NETS_PART_CONV:
    default:
        return nets_unit_forward(net, &p->units[0], x);
    }
}

/* The gradient by the part's input; nobody wants that by the images themselves. */
static neap_block *part_backward(nets *net, nets_part *p, neap_block *dy)
{
    switch (p->kind) {
    case NETS_PART_POOL:
        return pool_backward(net, p, dy);
    case NETS_PART_RESIDUAL:
        return residual_backward(net, p, dy);
    case NETS_PART_CONV:
    default:
        return nets_unit_backward(net, &p->units[0], dy, false, p != net->parts);
    }
}

/* ---- the whole ---- */

/* Every parameter learns, and its gradient is freed. */
static void update(nets *net)
{
    for (size_t i = 0; i < net->n_parameters; i++) {
        nets_parameter *p = &net->parameters[i];
        nets_sgd_args args = {
            .n = p->n,
            .rate = net->learning_rate,
            .momentum = net->momentum,
            .decay = net->weight_decay,
            .gradient = nets_data_of(p->gradient),
            .weight = nets_data_of(p->value),
            .velocity = nets_data_of(p->velocity),
        };
        NETS_EXEC(net, sgd, args, 0, NETS_READ(p->gradient), NETS_CHANGE(p->value), NETS_CHANGE(p->velocity));
        nets_drop(net, p->gradient);
        p->gradient = NULL;
    }
}

neap_status nets_step(nets *net, neap_error *error, float *loss)
{
    nets_begin(net);

    neap_block *images = nets_take(net, net->batch * NETS_PIXELS);
    neap_block *labels = nets_take_bytes(net, net->batch * sizeof(int32_t));
    nets_batch_args batch = {
        .data = &net->data,
        .step = net->step,
        .n = net->batch,
        .x = nets_data_of(images),
        .labels = nets_data_of(labels),
    };
    NETS_EXEC(net, batch_load, batch, 0, NETS_WRITE(images), NETS_WRITE(labels));

    neap_block *y = images;
    for (size_t i = 0; i < net->n_parts; i++) {
        y = part_forward(net, &net->parts[i], y);
    }
    neap_block *logits = nets_head_forward(net, y);
    neap_block *dlogits = nets_loss_gradient(net, logits, labels);
    neap_block *dy = nets_head_backward(net, dlogits);
    for (size_t i = net->n_parts; i > 0; i--) {
        dy = part_backward(net, &net->parts[i - 1], dy);
    }
    nets_drop(net, labels);
    nets_drop(net, images);
    update(net);
    net->step++;

    if (loss && net->status == NEAP_OK) {
        nets_fail(net, neap_sync(net->device));
    }
    if (net->status != NEAP_OK) {
        if (error) {
            *error = net->error;
        }
        return net->status;
    }
    if (loss) {
        *loss = net->loss;
    }
    return NEAP_OK;
}
