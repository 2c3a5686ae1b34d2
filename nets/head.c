/* head.c: from the last part's result to the loss, and back: an average over the image where it has more than one pixel,
 * and linear layers. */
#include "net.h"
#include "rng.h"

static const float dropout_share = 0.5f;

/* y (N,out) = x (N,in) * weight' + bias */
static neap_block *linear_forward(nets *net, const nets_linear *l, neap_block *x)
{
    const nets_parameter *weight = &net->parameters[l->weight];
    const nets_parameter *bias = &net->parameters[l->bias];
    neap_block *y = nets_take(net, net->batch * l->out);
    nets_linear_args args = {
        .n = net->batch,
        .in = l->in,
        .out = l->out,
        .x = nets_data_of(x),
        .weight = nets_data_of(weight->value),
        .bias = nets_data_of(bias->value),
        .y = nets_data_of(y),
    };
    NETS_EXEC(net, linear_forward, args, 2.0 * (double)(net->batch * l->in * l->out), NETS_READ(x),
              NETS_READ(weight->value), NETS_READ(bias->value), NETS_WRITE(y));
    return y;
}

/* The gradient by x; those by weight and bias go to their parameters. Frees dy. */
static neap_block *linear_backward(nets *net, const nets_linear *l, neap_block *x, neap_block *dy)
{
    nets_parameter *weight = &net->parameters[l->weight];
    nets_parameter *bias = &net->parameters[l->bias];
    double flops = 2.0 * (double)(net->batch * l->in * l->out);
    neap_block *dx = nets_take(net, net->batch * l->in);
    weight->gradient = nets_take(net, weight->n);
    bias->gradient = nets_take(net, bias->n);
    nets_linear_args args = {
        .n = net->batch,
        .in = l->in,
        .out = l->out,
        .x = nets_data_of(x),
        .weight = nets_data_of(weight->value),
        .dy = nets_data_of(dy),
        .dx = nets_data_of(dx),
        .dweight = nets_data_of(weight->gradient),
        .dbias = nets_data_of(bias->gradient),
    };
    NETS_EXEC(net, linear_backward_input, args, flops, NETS_READ(weight->value), NETS_READ(dy), NETS_WRITE(dx));
    NETS_EXEC(net, linear_backward_weight, args, flops, NETS_READ(x), NETS_READ(dy), NETS_WRITE(weight->gradient),
              NETS_WRITE(bias->gradient));
    nets_drop(net, dy);
    return dx;
}

neap_block *nets_head_forward(nets *net, neap_block *x)
{
    nets_head *head = &net->head;
    size_t n = net->batch * head->n_features;
    head->x = x;
    if (head->size > 1) {
        head->x = nets_take(net, n);
        nets_pool_args pool = {
            .planes = n, .h = head->size, .w = head->size, .x = nets_data_of(x), .y = nets_data_of(head->x)};
        NETS_EXEC(net, pool_average_forward, pool, 0, NETS_READ(x), NETS_WRITE(head->x));
    }
    if (!head->has_hidden) {
        return linear_forward(net, &head->output_layer, head->x);
    }
    head->hidden = linear_forward(net, &head->hidden_layer, head->x);
    nets_relu_args relu = {.n = n, .y = nets_data_of(head->hidden)};
    NETS_EXEC(net, relu_forward, relu, 0, NETS_CHANGE(head->hidden));
    head->dropped = nets_take(net, n);
    head->mask = nets_take_bytes(net, n);
    nets_dropout_args dropout = {
        .n = n,
        .key = nets_key(net->seed, NETS_KEY_DROPOUT, net->step),
        .drop = dropout_share,
        .x = nets_data_of(head->hidden),
        .y = nets_data_of(head->dropped),
        .mask = nets_data_of(head->mask),
    };
    NETS_EXEC(net, dropout_forward, dropout, 0, NETS_READ(head->hidden), NETS_WRITE(head->dropped),
              NETS_WRITE(head->mask));
    return linear_forward(net, &head->output_layer, head->dropped);
}

neap_block *nets_head_backward(nets *net, neap_block *dlogits)
{
    nets_head *head = &net->head;
    size_t n = net->batch * head->n_features;
    neap_block *dy = linear_backward(net, &head->output_layer, head->has_hidden ? head->dropped : head->x, dlogits);
    if (head->has_hidden) {
        nets_drop(net, head->dropped);
        neap_block *dhidden = nets_take(net, n);
        nets_dropout_args dropout = {
            .n = n,
            .drop = dropout_share,
            .dy = nets_data_of(dy),
            .dx = nets_data_of(dhidden),
            .mask = nets_data_of(head->mask),
        };
        NETS_EXEC(net, dropout_backward, dropout, 0, NETS_READ(head->mask), NETS_READ(dy), NETS_WRITE(dhidden));
        nets_drop(net, dy);
        nets_drop(net, head->mask);
        dy = nets_back_through_relu(net, n, head->hidden, dhidden);
        dy = linear_backward(net, &head->hidden_layer, head->x, dy);
    }
    if (head->size > 1) {
        neap_block *dx = nets_take(net, n * head->size * head->size);
        nets_pool_args pool = {
            .planes = n, .h = head->size, .w = head->size, .dy = nets_data_of(dy), .dx = nets_data_of(dx)};
        NETS_EXEC(net, pool_average_backward, pool, 0, NETS_READ(dy), NETS_WRITE(dx));
        nets_drop(net, dy);
        nets_drop(net, head->x);
        dy = dx;
    }
    return dy;
}

neap_block *nets_loss_gradient(nets *net, neap_block *logits, neap_block *labels)
{
    size_t n = net->batch * NETS_CLASSES;
    neap_block *probabilities = nets_take(net, n);
    neap_block *loss = nets_take(net, 1);
    nets_loss_args args = {
        .n = net->batch,
        .classes = NETS_CLASSES,
        .logits = nets_data_of(logits),
        .labels = nets_data_of(labels),
        .probabilities = nets_data_of(probabilities),
        .loss = nets_data_of(loss),
        .to = &net->loss,
    };
    NETS_EXEC(net, loss_forward, args, 0, NETS_READ(logits), NETS_READ(labels), NETS_WRITE(probabilities),
              NETS_WRITE(loss));
    NETS_EXEC(net, loss_read, args, 0, NETS_READ(loss));
    nets_drop(net, logits);
    nets_drop(net, loss);
    neap_block *dlogits = nets_take(net, n);
    args.dlogits = nets_data_of(dlogits);
    NETS_EXEC(net, loss_backward, args, 0, NETS_READ(probabilities), NETS_READ(labels), NETS_WRITE(dlogits));
    nets_drop(net, probabilities);
    return dlogits;
}
