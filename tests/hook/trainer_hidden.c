/* trainer_hidden.c: a block that a kernel uses and no parameter shows: its address is in a table in device memory, which a
 * kernel has made that nobody knows to make any. */
#include "hook/trainer_network.h"

enum { SECRET_BYTES = 24 << 10 }; /* no other block has as many */

/* ---- kernels ---- */

static void run_hidden_table(void **parameters)
{
    table_entry *table = *(table_entry **)parameters[0];
    *table = (table_entry){*(word **)parameters[1], *(size_t *)parameters[2]};
}

static void run_write_by_table(void **parameters)
{
    const table_entry *table = *(const table_entry **)parameters[0];
    word *to = (word *)(uintptr_t)table->at;
    for (size_t i = 0; i < table->bytes / sizeof *to; i += STEP) {
        to[i] = to[i] * 5 + *(const word *)parameters[1];
    }
}

static const size_t table_sizes[] = {8, 8, 8};
static const size_t write_sizes[] = {8, 4};

static const standin_image_kernel hidden_table = {"_ZN5train12hidden_tableEP11table_entryPjm", run_hidden_table, NULL,
                                                  3, table_sizes};
static const standin_image_kernel write_by_table = {"_ZN5train14write_by_tableEPK11table_entryj", run_write_by_table,
                                                    NULL, 2, write_sizes};

void hidden_register(void)
{
    standin_register(&hidden_table, &hidden_table);
    standin_register(&write_by_table, &write_by_table);
}

static void launch(const standin_image_kernel *kernel, void **parameters, cudaStream_t stream)
{
    const dim3 one = {1, 1, 1};
    CHECK(cudaLaunchKernel(kernel, one, one, parameters, 0, stream));
}

/* ---- the places ---- */

void hidden_begin(network *net)
{
    size_t bytes = SECRET_BYTES;
    void *parameters[] = {&net->secret_table, &net->secret, &bytes};
    if (option.hidden) {
        net->secret = get(bytes, net->stream);
        net->secret_table = get(sizeof(table_entry), net->stream);
        fill(net->secret, bytes, 11, net->stream);
        launch(&hidden_table, parameters, net->stream);
        CHECK(cudaStreamSynchronize(net->stream)); /* other streams use it too */
    }
}

void hidden_end(network *net)
{
    if (option.hidden) {
        put(net->secret, net->stream);
        put(net->secret_table, net->stream);
    }
}

void hidden_use(network *net, unsigned long place, word *sum, cudaStream_t stream)
{
    word iteration = net->iteration;
    void *parameters[] = {&net->secret_table, &iteration};
    if (option.hidden == place && place == HIDDEN_WRITE) {
        launch(&write_by_table, parameters, stream);
    } else if (option.hidden == place) {
        by_table(sum, net->secret_table, 1, stream);
    }
}

void hidden_look(const network *net, word *sum)
{
    if (option.hidden == HIDDEN_WRITE) {
        reduce(sum, net->secret, SECRET_BYTES, net->stream);
    }
}
