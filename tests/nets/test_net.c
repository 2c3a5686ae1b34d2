/* Whole networks on the cpu device: narrow ones, so that they are quick; what is checked does not depend on the width. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nets/gradient.h"
#include "nets/net.h"
#include "testing.h"

enum { BATCH = 4 };

static const neap_device_options plain = {.mode = NEAP_MODE_PLAIN};

static neap_device *open_device(const char *name, const neap_device_options *options)
{
    static const neap_device_options quick = {.plan_seconds = 0.05};
    neap_device *device = NULL;
    neap_error error = {""};
    ASSERT_OK(neap_open(name, options ? options : &quick, NULL, &error, &device));
    return device;
}

static nets *create(neap_device *device, const char *name, size_t batch, size_t width, uint64_t seed)
{
    nets *net = NULL;
    neap_error error = {""};
    const nets_options options = {.net = name, .batch = batch, .width = width, .seed = seed, .learning_rate = 0.05};
    ASSERT_OK(nets_create(device, &options, &error, &net));
    return net;
}

static float step(nets *net)
{
    float loss = NAN;
    ASSERT_OK(nets_step(net, NULL, &loss));
    return loss;
}

static uint64_t live_bytes(neap_device *device)
{
    neap_stats stats;
    ASSERT_OK(neap_sync(device));
    neap_get_stats(device, &stats);
    return stats.live;
}

static void test_all_nets_run(void **state)
{
    (void)state;
    neap_device *device = open_device("cpu", NULL);
    size_t n_nets = 0;
    for (; nets_name(n_nets); n_nets++) {
        nets *net = create(device, nets_name(n_nets), 2, 4, 1);
        uint64_t before = live_bytes(device);
        for (int i = 0; i < 2; i++) {
            float loss = step(net);
            ASSERT_TRUE(loss > 0 && loss < 50);
        }
        ASSERT_EQ(live_bytes(device), before); /* a step frees all it takes */
        nets_free(net);
        ASSERT_EQ(live_bytes(device), 0);
    }
    ASSERT_EQ(n_nets, 9);
    neap_close(device);
}

static void test_sizes_are_those_published(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t n_parameters;
    } known[] = {{"resnet18", 11173962}, {"resnet50", 23520842}, {"vgg16", 14986698}};
    neap_device *device = open_device("cpu", NULL);
    for (size_t i = 0; i < (TEST_SANITIZED ? 1 : 3); i++) {
        nets *net = create(device, known[i].name, 1, 0, 1);
        ASSERT_EQ(nets_n_parameters(net), known[i].n_parameters);
        nets_free(net);
    }
    neap_close(device);
}

/* ---- gradients ---- */

static float *copy_of(neap_device *device, const neap_block *block)
{
    float *copy = malloc((size_t)neap_block_bytes(block));
    ASSERT_TRUE(copy != NULL);
    ASSERT_OK(neap_read(device, block, 0, copy, neap_block_bytes(block)));
    return copy;
}

/* The loss with a parameter moved by `by` along its gradient. The weights stay, and so do the images and the dropout. */
static double loss_moved(nets *net, const nets_parameter *p, const float *value, const float *gradient, double by)
{
    float *moved = malloc(p->n * sizeof *moved);
    ASSERT_TRUE(moved != NULL);
    for (size_t i = 0; i < p->n; i++) {
        moved[i] = (float)((double)value[i] + by * (double)gradient[i]);
    }
    ASSERT_OK(neap_write(net->device, p->value, 0, moved, p->n * sizeof *moved));
    free(moved);
    net->step = 0;
    return (double)step(net);
}

/* Moving a parameter along its gradient g by t changes the loss by t * |g|^2. */
static void check_parameter(nets *net, size_t index)
{
    nets_parameter *p = &net->parameters[index];
    float *value = copy_of(net->device, p->value);
    float *gradient = copy_of(net->device, p->velocity);
    double squares = 0;
    double values = 0;
    for (size_t i = 0; i < p->n; i++) {
        squares += (double)gradient[i] * (double)gradient[i];
        values += (double)value[i] * (double)value[i];
    }
    double by = 2e-4 * sqrt(fmax(values, 0.01 * (double)p->n) / squares); /* further away are too many kinks */
    double above = loss_moved(net, p, value, gradient, by);
    double below = loss_moved(net, p, value, gradient, -by);
    ASSERT_OK(neap_write(net->device, p->value, 0, value, p->n * sizeof *value));
    double found = (above - below) / (2 * by);
    if (!(fabs(found - squares) <= 0.05 * squares + 1e-6 / by)) {
        test_fail(__FILE__, __LINE__, "parameter %zu: |gradient|^2 is %.6g, the loss says %.6g (moved by %g)", index,
                  squares, found, by);
    }
    free(value);
    free(gradient);
}

static void check_gradients(const char *name, size_t width, size_t every)
{
    neap_device *device = open_device("cpu", &plain);
    nets *net = create(device, name, BATCH, width, 3);
    net->learning_rate = 0; /* the weights stay; */
    net->momentum = 0;      /* the velocity becomes the gradient itself */
    net->weight_decay = 0;
    for (size_t i = 0; i < net->n_parameters; i += TEST_RACES       ? net->n_parameters
                                                   : TEST_SANITIZED ? 12 * every
                                                                    : every) {
        net->step = 0;
        (void)step(net);
        check_parameter(net, i);
    }
    nets_free(net);
    neap_close(device);
}

static void test_gradients_of_vgg(void **state)
{
    (void)state;
    check_gradients("vgg11", 4, 1);
}

static void test_gradients_of_resnet(void **state)
{
    (void)state;
    check_gradients("resnet18", 4, 1);
}

static void test_gradients_of_bottlenecks(void **state)
{
    (void)state;
    check_gradients("resnet50", 2, 3);
}

/* ---- learning ---- */

static void check_learns(const char *name)
{
    enum { STEPS = 40, FEW = 5 };
    neap_device *device = open_device("cpu", &plain);
    nets *net = create(device, name, 16, 4, 1);
    double first = 0;
    double last = 0;
    for (int i = 0; i < STEPS; i++) {
        double loss = (double)step(net);
        first += i < FEW ? loss / FEW : 0;
        last += i >= STEPS - FEW ? loss / FEW : 0;
    }
    if (!(last < 0.6 * first)) {
        test_fail(__FILE__, __LINE__, "%s: the loss only falls from %g to %g", name, first, last);
    }
    nets_free(net);
    neap_close(device);
}

static void test_loss_falls(void **state)
{
    (void)state;
    if (!TEST_RACES) {
        check_learns("vgg11");
    }
    if (!TEST_SANITIZED) {
        check_learns("resnet18");
    }
}

/* ---- the same seed, the same bits ---- */

/* Trains for n_steps, or until `n_planned` iterations were served from a plan. Gives the steps, and a hash of the
 * weights. */
static int train(const char *device_name, const neap_device_options *options, const char *name, uint64_t seed,
                 int n_steps, uint64_t n_planned, uint64_t *checksum)
{
    neap_device *device = open_device(device_name, options);
    nets *net = create(device, name, BATCH, 8, seed);
    neap_stats stats = {0};
    int n = 0;
    while (n < n_steps && (n_planned == 0 || stats.n_iterations < n_planned)) {
        float loss;
        ASSERT_OK(nets_step(net, NULL, n % 2 ? &loss : NULL)); /* waiting or not makes no difference */
        n++;
        neap_get_stats(device, &stats);
    }
    ASSERT_OK(nets_checksum(net, NULL, checksum));
    nets_free(net);
    neap_close(device);
    return n;
}

static void test_same_seed_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "resnet18" : "vgg11";
        uint64_t first, again, other, longer;
        (void)train("cpu", NULL, name, 7, 3, 0, &first);
        (void)train("cpu", NULL, name, 7, 3, 0, &again);
        (void)train("cpu", NULL, name, 8, 3, 0, &other);
        (void)train("cpu", NULL, name, 7, 4, 0, &longer);
        ASSERT_EQ(again, first);
        ASSERT_NE(other, first);
        ASSERT_NE(longer, first);
    }
}

static void test_same_bits_however_memory_is_served(void **state)
{
    (void)state;
    enum { STEPS_MAX = 10000, PLANNED = 5 }; /* so many only where no plan comes at all */
    static const neap_device_options pool = {.plan_seconds = 0.1};
    static const neap_device_options swap = {.limit_share = 0.6, .min_block = 4096, .plan_seconds = 0.1};
    for (int i = 0; i < (TEST_RACES ? 2 : 4); i++) {
        const char *name = i / 2 ? "resnet18" : "vgg11";
        uint64_t planned, expected;
        int n = train("cpu:page=4KiB", i % 2 ? &swap : &pool, name, 7, STEPS_MAX, PLANNED, &planned);
        ASSERT_LT(n, STEPS_MAX);
        (void)train("cpu", &plain, name, 7, n, 0, &expected);
        ASSERT_EQ(planned, expected);
    }
}

/* ---- what can go wrong ---- */

static void refuse(neap_device *device, const nets_options *options, const char *why)
{
    nets *net = NULL;
    neap_error error = {""};
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, nets_create(device, options, &error, &net));
    ASSERT_CONTAINS(error.text, why);
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, nets_create(device, options, NULL, &net));
    ASSERT_TRUE(net == NULL);
}

static void test_bad_options_are_refused(void **state)
{
    (void)state;
    neap_device *device = open_device("cpu", NULL);
    refuse(device, &(nets_options){.net = "vgg17"}, "no net 'vgg17'");
    refuse(device, &(nets_options){.net = "vgg17"}, "resnet152");
    refuse(device, &(nets_options){.net = NULL}, "no net");
    refuse(device, &(nets_options){.net = "vgg11", .batch = NETS_BATCH_MAX + 1}, "4096 images");
    refuse(device, &(nets_options){.net = "vgg11", .width = NETS_WIDTH_MAX + 1}, "1024 channels");
    refuse(device, &(nets_options){.net = "vgg11", .learning_rate = -1}, "rates");
    refuse(device, &(nets_options){.net = "vgg11", .momentum = NAN}, "rates");
    ASSERT_EQ(live_bytes(device), 0);
    nets_free(NULL);
    neap_close(device);
}

static void test_a_device_too_small_for_the_weights(void **state)
{
    (void)state;
    nets *net = NULL;
    neap_error error = {""};
    neap_device *device = open_device("cpu:page=4KiB,memory=64KiB", NULL); /* its largest filters have 147 KiB */
    const nets_options options = {.net = "vgg11", .batch = 64, .width = 8};
    ASSERT_STATUS(NEAP_DEVICE_FULL, nets_create(device, &options, &error, &net));
    ASSERT_NE(error.text[0], '\0');
    ASSERT_TRUE(net == NULL);
    ASSERT_EQ(live_bytes(device), 0);
    neap_close(device);
}

static void test_a_device_too_small_for_one_layer(void **state)
{
    (void)state;
    neap_error error = {""};
    float loss = -1;
    neap_device *device = open_device("cpu:page=4KiB,memory=3MiB", NULL);
    nets *net = create(device, "vgg11", 64, 8, 1); /* 1.2 MB; its first batch norm needs 4.2 MB at once */
    uint64_t before = live_bytes(device);
    for (int i = 0; i < 2; i++) {
        ASSERT_STATUS(NEAP_DEVICE_FULL, nets_step(net, &error, &loss));
        ASSERT_NE(error.text[0], '\0');
        ASSERT_TRUE(loss == -1);
        ASSERT_EQ(live_bytes(device), before);
    }
    nets_free(net);
    ASSERT_EQ(live_bytes(device), 0);
    neap_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_nets_run),
        cmocka_unit_test(test_sizes_are_those_published),
        cmocka_unit_test(test_gradients_of_vgg),
        cmocka_unit_test(test_gradients_of_resnet),
        cmocka_unit_test(test_gradients_of_bottlenecks),
        cmocka_unit_test(test_loss_falls),
        cmocka_unit_test(test_same_seed_same_bits),
        cmocka_unit_test(test_same_bits_however_memory_is_served),
        cmocka_unit_test(test_bad_options_are_refused),
        cmocka_unit_test(test_a_device_too_small_for_the_weights),
        cmocka_unit_test(test_a_device_too_small_for_one_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
