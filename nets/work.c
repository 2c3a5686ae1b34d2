/* work.c: giving work to the device, and keeping the first failure. */
#include <stdio.h>

#include "net.h"

void nets_begin(nets *net)
{
    net->status = NEAP_OK;
    net->error.text[0] = '\0';
}

void nets_fail(nets *net, neap_status status)
{
    if (net->status == NEAP_OK && status != NEAP_OK) {
        net->status = status;
        (void)snprintf(net->error.text, sizeof net->error.text, "%s", neap_device_error());
    }
}

neap_block *nets_take_bytes(nets *net, uint64_t bytes)
{
    neap_block *block = NULL;
    if (net->status == NEAP_OK && bytes > 0) {
        nets_fail(net, neap_malloc(net->device, bytes, &block));
    }
    return block;
}

neap_block *nets_take(nets *net, size_t n_floats)
{
    return nets_take_bytes(net, n_floats * sizeof(float));
}

void nets_drop(nets *net, neap_block *block)
{
    if (block) {
        nets_fail(net, neap_free(net->device, block));
    }
}

void *nets_data_of(const neap_block *block)
{
    return block ? neap_data(block) : NULL;
}

void nets_exec(nets *net, const neap_work *work, double flops, const neap_use *uses, size_t n_uses)
{
    enum { USES_MAX = 8 };
    neap_use present[USES_MAX];
    size_t n = 0;
    double bytes = 0;
    if (net->status != NEAP_OK) {
        return;
    }
    for (size_t i = 0; i < n_uses && n < USES_MAX; i++) {
        if (uses[i].block) {
            present[n++] = uses[i];
            bytes += (double)neap_block_bytes(uses[i].block);
        }
    }
    /* A GPU of 20 * 10^12 operations and 2 * 10^12 bytes a second: for devices with a clock of their own. */
    neap_work timed = *work;
    timed.duration_ns = (uint64_t)(2000 + flops / 20e3 + bytes / 2e3);
    nets_fail(net, neap_exec(net->device, &timed, present, n));
}
