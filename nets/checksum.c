/* checksum.c: what a net has learned, as two numbers: how much there is, and a hash of it. */
#include <stdlib.h>

#include "net.h"
#include "rng.h"

uint64_t nets_n_parameters(const nets *net)
{
    uint64_t n = 0;
    for (size_t i = 0; i < net->n_parameters; i++) {
        n += net->parameters[i].n;
    }
    return n;
}

/* Goes on with the hash of a block's floats, in their order. */
static uint64_t hash_block(nets *net, uint64_t hash, const neap_block *block)
{
    uint64_t bytes = neap_block_bytes(block);
    uint32_t *words = malloc((size_t)bytes);
    if (!words) {
        net->status = net->status == NEAP_OK ? NEAP_NO_MEMORY : net->status;
        return hash;
    }
    nets_fail(net, neap_read(net->device, block, 0, words, bytes));
    for (size_t i = 0; net->status == NEAP_OK && i < bytes / sizeof *words; i++) {
        hash = nets_mix(hash ^ words[i]);
    }
    free(words);
    return hash;
}

neap_status nets_checksum(nets *net, neap_error *error, uint64_t *checksum)
{
    uint64_t hash = 0;
    nets_begin(net);
    for (size_t i = 0; i < net->n_parameters && net->status == NEAP_OK; i++) {
        hash = hash_block(net, hash, net->parameters[i].value);
    }
    for (size_t i = 0; i < net->n_parts && net->status == NEAP_OK; i++) {
        const nets_part *part = &net->parts[i];
        for (size_t k = 0; k < part->n_units && net->status == NEAP_OK; k++) {
            hash = hash_block(net, hash, part->units[k].running);
        }
        if (part->has_shortcut && net->status == NEAP_OK) {
            hash = hash_block(net, hash, part->shortcut.running);
        }
    }
    if (net->status != NEAP_OK) {
        if (error) {
            *error = net->error;
        }
        return net->status;
    }
    *checksum = hash;
    return NEAP_OK;
}
