/* unit.c: a convolution, batch norm and ReLU, forward and backward. Every layer is one piece of work, which names the
 * blocks it reads and writes. */
#include "net.h"

static const float norm_momentum = 0.1f;
static const float norm_epsilon = 1e-5f;

size_t nets_floats_in(const nets_conv_shape *s)
{
    return s->n * s->in_c * s->in_h * s->in_w;
}

size_t nets_floats_out(const nets_conv_shape *s)
{
    return s->n * s->out_c * s->out_h * s->out_w;
}

static double flops_of(const nets_conv_shape *s)
{
    return 2.0 * (double)nets_floats_out(s) * (double)(s->in_c * s->kernel * s->kernel);
}

neap_block *nets_unit_forward(nets *net, nets_unit *u, neap_block *x)
{
    const nets_conv_shape *s = &u->shape;
    const nets_parameter *weight = &net->parameters[u->weight];
    const nets_parameter *scale = &net->parameters[u->scale];
    u->x = x;

    u->conv = nets_take(net, nets_floats_out(s));
    neap_block *work = nets_take(net, nets_conv_work(s));
    nets_conv_args conv = {
        .shape = *s,
        .x = nets_data_of(x),
        .weight = nets_data_of(weight->value),
        .y = nets_data_of(u->conv),
        .work = nets_data_of(work),
    };
    NETS_EXEC(net, conv_forward, conv, flops_of(s), NETS_READ(x), NETS_READ(weight->value), NETS_WRITE(u->conv),
              NETS_WRITE(work));
    nets_drop(net, work);

    u->y = nets_take(net, nets_floats_out(s));
    u->stats = nets_take(net, 2 * s->out_c);
    nets_norm_args norm = {
        .n = s->n,
        .c = s->out_c,
        .hw = s->out_h * s->out_w,
        .momentum = norm_momentum,
        .epsilon = norm_epsilon,
        .x = nets_data_of(u->conv),
        .scale = nets_data_of(scale->value),
        .y = nets_data_of(u->y),
        .saved = nets_data_of(u->stats),
        .running = nets_data_of(u->running),
    };
    NETS_EXEC(net, norm_forward, norm, 0, NETS_READ(u->conv), NETS_READ(scale->value), NETS_WRITE(u->y),
              NETS_WRITE(u->stats), NETS_CHANGE(u->running));

    if (u->has_relu) {
        nets_relu_args relu = {.n = nets_floats_out(s), .y = nets_data_of(u->y)};
        NETS_EXEC(net, relu_forward, relu, 0, NETS_CHANGE(u->y));
    }
    return u->y;
}

neap_block *nets_back_through_relu(nets *net, size_t n, neap_block *y, neap_block *dy)
{
    neap_block *dx = nets_take(net, n);
    nets_relu_args relu = {.n = n, .y = nets_data_of(y), .dy = nets_data_of(dy), .dx = nets_data_of(dx)};
    NETS_EXEC(net, relu_backward, relu, 0, NETS_READ(y), NETS_READ(dy), NETS_WRITE(dx));
    nets_drop(net, dy);
    nets_drop(net, y);
    return dx;
}

/* The gradient by what batch norm was given, and by its scale. Frees what it had saved. */
static neap_block *norm_backward(nets *net, nets_unit *u, neap_block *dy)
{
    const nets_conv_shape *s = &u->shape;
    nets_parameter *scale = &net->parameters[u->scale];
    neap_block *dx = nets_take(net, nets_floats_out(s));
    scale->gradient = nets_take(net, scale->n);
    nets_norm_args norm = {
        .n = s->n,
        .c = s->out_c,
        .hw = s->out_h * s->out_w,
        .x = nets_data_of(u->conv),
        .scale = nets_data_of(scale->value),
        .saved = nets_data_of(u->stats),
        .dy = nets_data_of(dy),
        .dx = nets_data_of(dx),
        .dscale = nets_data_of(scale->gradient),
    };
    NETS_EXEC(net, norm_backward, norm, 0, NETS_READ(u->conv), NETS_READ(scale->value), NETS_READ(u->stats),
              NETS_READ(dy), NETS_WRITE(dx), NETS_WRITE(scale->gradient));
    nets_drop(net, u->conv);
    nets_drop(net, u->stats);
    u->conv = u->stats = NULL;
    return dx;
}

/* The gradient by the convolution's weights, and by its input where that is wanted. Frees dy. */
static neap_block *conv_backward(nets *net, nets_unit *u, neap_block *dy, bool wants_dx)
{
    const nets_conv_shape *s = &u->shape;
    nets_parameter *weight = &net->parameters[u->weight];
    neap_block *dx = NULL;
    weight->gradient = nets_take(net, weight->n);
    neap_block *work = nets_take(net, nets_conv_work(s));
    nets_conv_args conv = {
        .shape = *s,
        .x = nets_data_of(u->x),
        .weight = nets_data_of(weight->value),
        .dy = nets_data_of(dy),
        .dweight = nets_data_of(weight->gradient),
        .work = nets_data_of(work),
    };
    NETS_EXEC(net, conv_backward_weight, conv, flops_of(s), NETS_READ(u->x), NETS_READ(dy),
              NETS_WRITE(weight->gradient), NETS_WRITE(work));
    nets_drop(net, work);
    if (wants_dx) {
        dx = nets_take(net, nets_floats_in(s));
        work = nets_take(net, nets_conv_work(s));
        conv.dx = nets_data_of(dx);
        conv.work = nets_data_of(work);
        NETS_EXEC(net, conv_backward_input, conv, flops_of(s), NETS_READ(weight->value), NETS_READ(dy), NETS_WRITE(dx),
                  NETS_WRITE(work));
        nets_drop(net, work);
    }
    nets_drop(net, dy);
    u->x = NULL;
    return dx;
}

neap_block *nets_unit_backward(nets *net, nets_unit *u, neap_block *dy, bool keeps_dy, bool wants_dx)
{
    if (u->has_relu) {
        dy = nets_back_through_relu(net, nets_floats_out(&u->shape), u->y, dy);
        u->y = NULL;
    }
    neap_block *dconv = norm_backward(net, u, dy);
    if (!keeps_dy) {
        nets_drop(net, dy);
    }
    return conv_backward(net, u, dconv, wants_dx);
}
