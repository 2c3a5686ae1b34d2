/* build.c: the nine networks: a line each in a table, laid out as parts, and given their first weights. */
#include <assert.h>
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "rng.h"

typedef struct plan_of_net {
    const char *name;
    bool is_resnet;
    bool is_bottleneck; /* residual blocks of 1 x 1, 3 x 3, 1 x 1, the last four times as wide */
    size_t n_stages;
    size_t counts[5]; /* VGG: convolutions before each pooling; ResNet: blocks of equal width */
} plan_of_net;

static const plan_of_net plans[] = {
    {"vgg11", false, false, 5, {1, 1, 2, 2, 2}}, {"vgg13", false, false, 5, {2, 2, 2, 2, 2}},
    {"vgg16", false, false, 5, {2, 2, 3, 3, 3}}, {"vgg19", false, false, 5, {2, 2, 4, 4, 4}},
    {"resnet18", true, false, 4, {2, 2, 2, 2}},  {"resnet34", true, false, 4, {3, 4, 6, 3}},
    {"resnet50", true, true, 4, {3, 4, 6, 3}},   {"resnet101", true, true, 4, {3, 4, 23, 3}},
    {"resnet152", true, true, 4, {3, 8, 36, 3}},
};
enum { N_PLANS = sizeof plans / sizeof plans[0], EXPANSION = 4 };

const char *nets_name(size_t index)
{
    return index < N_PLANS ? plans[index].name : NULL;
}

/* ---- the layout: parts, shapes, and numbers of parameters ---- */

static nets_unit make_unit(nets *net, size_t in_c, size_t in_size, size_t out_c, size_t kernel, size_t stride,
                           bool relu)
{
    nets_unit unit = {
        .shape = nets_conv_shape_make(net->batch, in_c, in_size, out_c, kernel, stride),
        .has_relu = relu,
        .weight = net->n_parameters,
        .scale = net->n_parameters + 1,
    };
    net->n_parameters += 2;
    return unit;
}

static nets_linear make_linear(nets *net, size_t in, size_t out)
{
    nets_linear linear = {.in = in, .out = out, .weight = net->n_parameters, .bias = net->n_parameters + 1};
    net->n_parameters += 2;
    return linear;
}

static void lay_out_vgg(nets *net, const plan_of_net *plan, size_t width)
{
    size_t c = NETS_CHANNELS;
    size_t size = NETS_SIZE;
    for (size_t stage = 0; stage < plan->n_stages; stage++) {
        size_t out_c = width << (stage < 3 ? stage : 3);
        for (size_t i = 0; i < plan->counts[stage]; i++) {
            nets_part *part = &net->parts[net->n_parts++];
            *part = (nets_part){.kind = NETS_PART_CONV, .n_units = 1};
            part->units[0] = make_unit(net, c, size, out_c, 3, 1, true);
            c = out_c;
        }
        net->parts[net->n_parts++] = (nets_part){.kind = NETS_PART_POOL, .planes = net->batch * c, .size = size};
        size /= 2;
    }
    net->head = (nets_head){.n_features = c, .size = size, .has_hidden = true};
    net->head.hidden_layer = make_linear(net, c, c);
    net->head.output_layer = make_linear(net, c, NETS_CLASSES);
}

static nets_part make_residual(nets *net, bool is_bottleneck, size_t in_c, size_t in_size, size_t c, size_t stride)
{
    nets_part part = {.kind = NETS_PART_RESIDUAL};
    size_t size = in_size / stride;
    size_t out_c = is_bottleneck ? c * EXPANSION : c;
    if (is_bottleneck) {
        part.units[part.n_units++] = make_unit(net, in_c, in_size, c, 1, 1, true);
        part.units[part.n_units++] = make_unit(net, c, in_size, c, 3, stride, true);
        part.units[part.n_units++] = make_unit(net, c, size, out_c, 1, 1, false);
    } else {
        part.units[part.n_units++] = make_unit(net, in_c, in_size, c, 3, stride, true);
        part.units[part.n_units++] = make_unit(net, c, size, out_c, 3, 1, false);
    }
    if (stride != 1 || in_c != out_c) {
        part.has_shortcut = true;
        part.shortcut = make_unit(net, in_c, in_size, out_c, 1, stride, false);
    }
    return part;
}

static void lay_out_resnet(nets *net, const plan_of_net *plan, size_t width)
{
    size_t c = width;
    size_t size = NETS_SIZE;
    nets_part *stem = &net->parts[net->n_parts++];
    *stem = (nets_part){.kind = NETS_PART_CONV, .n_units = 1};
    stem->units[0] = make_unit(net, NETS_CHANNELS, size, c, 3, 1, true);
    for (size_t stage = 0; stage < plan->n_stages; stage++) {
        for (size_t i = 0; i < plan->counts[stage]; i++) {
            size_t stride = i == 0 && stage > 0 ? 2 : 1;
            net->parts[net->n_parts++] = make_residual(net, plan->is_bottleneck, c, size, width << stage, stride);
            c = (width << stage) * (plan->is_bottleneck ? EXPANSION : 1);
            size /= stride;
        }
    }
    net->head = (nets_head){.n_features = c, .size = size};
    net->head.output_layer = make_linear(net, c, NETS_CLASSES);
}

static neap_status lay_out(nets *net, const plan_of_net *plan, size_t width)
{
    size_t n_parts = plan->is_resnet ? 1 : plan->n_stages; /* the stem, or the poolings */
    for (size_t stage = 0; stage < plan->n_stages; stage++) {
        n_parts += plan->counts[stage];
    }
    net->parts = calloc(n_parts, sizeof *net->parts);
    if (!net->parts) {
        return NEAP_NO_MEMORY;
    }
    if (plan->is_resnet) {
        lay_out_resnet(net, plan, width);
    } else {
        lay_out_vgg(net, plan, width);
    }
    assert(net->n_parameters > 0);
    net->parameters = calloc(net->n_parameters, sizeof *net->parameters);
    return net->parameters ? NEAP_OK : NEAP_NO_MEMORY;
}

/* ---- the first weights ---- */

/* Takes room for a parameter and its momentum, which starts at 0. */
static nets_parameter *take_parameter(nets *net, size_t index, size_t n)
{
    nets_parameter *parameter = &net->parameters[index];
    parameter->n = n;
    parameter->value = nets_take(net, n);
    parameter->velocity = nets_take(net, n);
    nets_fill_args zero = {.n = n, .bound = 0, .y = nets_data_of(parameter->velocity)};
    NETS_EXEC(net, fill, zero, 0, NETS_WRITE(parameter->velocity));
    return parameter;
}

static void fill_parameter(nets *net, size_t index, size_t n, double bound)
{
    nets_parameter *parameter = take_parameter(net, index, n);
    nets_fill_args args = {
        .n = n,
        .bound = (float)bound,
        .key = nets_key(net->seed, NETS_KEY_PARAMETER, index),
        .y = nets_data_of(parameter->value),
    };
    NETS_EXEC(net, fill, args, 0, NETS_WRITE(parameter->value));
}

static void init_unit(nets *net, nets_unit *unit, float gamma)
{
    const nets_conv_shape *s = &unit->shape;
    size_t inputs = s->in_c * s->kernel * s->kernel;
    /* Variance 2 / inputs: what ReLU takes away, this gives back. */
    fill_parameter(net, unit->weight, s->out_c * inputs, sqrt(6.0 / (double)inputs));
    nets_parameter *scale = take_parameter(net, unit->scale, 2 * s->out_c);
    unit->running = nets_take(net, 2 * s->out_c);
    nets_norm_args args = {
        .c = s->out_c,
        .gamma = gamma,
        .y = nets_data_of(scale->value),
        .running = nets_data_of(unit->running),
    };
    NETS_EXEC(net, norm_init, args, 0, NETS_WRITE(scale->value), NETS_WRITE(unit->running));
}

static void init_linear(nets *net, const nets_linear *linear)
{
    double bound = 1 / sqrt((double)linear->in);
    fill_parameter(net, linear->weight, linear->out * linear->in, bound);
    fill_parameter(net, linear->bias, linear->out, bound);
}

static neap_status init_all(nets *net)
{
    for (size_t i = 0; i < net->n_parts; i++) {
        nets_part *part = &net->parts[i];
        for (size_t k = 0; k < part->n_units; k++) {
            /* A residual block begins as hardly more than its shortcut: deep networks learn from the start. */
            bool ends_residual = part->kind == NETS_PART_RESIDUAL && k == part->n_units - 1;
            init_unit(net, &part->units[k], ends_residual ? 0.1f : 1);
        }
        if (part->has_shortcut) {
            init_unit(net, &part->shortcut, 1);
        }
    }
    if (net->head.has_hidden) {
        init_linear(net, &net->head.hidden_layer);
    }
    init_linear(net, &net->head.output_layer);
    return net->status;
}

/* ---- making and freeing ---- */

static neap_status find_plan(const char *name, neap_error *error, const plan_of_net **plan)
{
    char names[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < N_PLANS; i++) {
        if (name && strcmp(plans[i].name, name) == 0) {
            *plan = &plans[i];
            return NEAP_OK;
        }
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", plans[i].name);
    }
    if (error) {
        (void)snprintf(error->text, sizeof error->text, "there is no net '%.64s'; there are %s", name ? name : "",
                       names);
    }
    return NEAP_BAD_ARGUMENT;
}

static neap_status check_options(const nets_options *options, neap_error *error)
{
    const char *what = options->batch > NETS_BATCH_MAX   ? "a batch is of 1 to 4096 images"
                       : options->width > NETS_WIDTH_MAX ? "a net is 1 to 1024 channels wide"
                       : !(options->learning_rate >= 0) || !(options->momentum >= 0) || !(options->weight_decay >= 0)
                           ? "rates are 0 or above"
                           : NULL;
    if (what && error) {
        (void)snprintf(error->text, sizeof error->text, "%s", what);
    }
    return what ? NEAP_BAD_ARGUMENT : NEAP_OK;
}

static float given_or(double given, double otherwise)
{
    return (float)(given > 0 ? given : otherwise);
}

neap_status nets_create(neap_device *device, const nets_options *options, neap_error *error, nets **net)
{
    const plan_of_net *plan;
    neap_status status = find_plan(options->net, error, &plan);
    status = status == NEAP_OK ? check_options(options, error) : status;
    if (status != NEAP_OK) {
        return status;
    }
    nets *made = calloc(1, sizeof *made);
    if (!made) {
        return NEAP_NO_MEMORY;
    }
    made->device = device;
    made->batch = options->batch ? options->batch : 16;
    made->seed = options->seed;
    made->learning_rate = given_or(options->learning_rate, 0.01);
    made->momentum = given_or(options->momentum, 0.9);
    made->weight_decay = given_or(options->weight_decay, 0.0005);
    openblas_set_num_threads(1); /* one order of every sum, and times that do not depend on who else is there */

    status = nets_data_open(options->data, options->seed, error, &made->data);
    if (status == NEAP_OK) {
        status = lay_out(made, plan, options->width ? options->width : 64);
    }
    if (status == NEAP_OK) {
        status = init_all(made);
        if (status != NEAP_OK && error) {
            *error = made->error;
        }
    }
    if (status != NEAP_OK) {
        nets_free(made);
        return status;
    }
    *net = made;
    return NEAP_OK;
}

static void free_unit(nets *net, const nets_unit *unit)
{
    nets_drop(net, unit->running); /* all else is freed by the step that takes it */
}

void nets_free(nets *net)
{
    if (!net) {
        return;
    }
    (void)neap_sync(net->device); /* work under way looks at the data, and writes its loss */
    for (size_t i = 0; i < net->n_parts; i++) {
        for (size_t k = 0; k < net->parts[i].n_units; k++) {
            free_unit(net, &net->parts[i].units[k]);
        }
        if (net->parts[i].has_shortcut) {
            free_unit(net, &net->parts[i].shortcut);
        }
    }
    for (size_t i = 0; net->parameters && i < net->n_parameters; i++) {
        nets_drop(net, net->parameters[i].value);
        nets_drop(net, net->parameters[i].velocity);
    }
    free(net->parameters);
    free(net->parts);
    nets_data_close(&net->data);
    free(net);
}
