/* fixed.c: blocks that never leave, since somebody holds their addresses whose work is not seen: how many bytes they are, and
 * one line for each reason the first time there is one. */
#include "hook/core.h"

static const char *const reasons[NP_HOOK_N_REASONS] = {
    [NP_HOOK_OF_GRAPH] = "that a CUDA graph names",
    [NP_HOOK_OF_OTHERS] = "that are exported or registered for others",
    [NP_HOOK_OF_KERNEL] = "that are given to kernels which keep addresses (collectives, makers of tables)",
    [NP_HOOK_OF_TABLE] = "whose addresses the program copies to the device",
    [NP_HOOK_OF_TEXTURE] = "that textures are made of",
};

void np_hook_say_fixed(np_hook_device *device, np_hook_reason why)
{
    if (device->is_reason_said[why] || np_the_hook.settings.log_level < NEAP_LOG_WARN || device->keeper) {
        return;
    }
    device->is_reason_said[why] = true;
    np_hook_say("cuda:%d: blocks %s stay where they are", device->ordinal, reasons[why]);
}

neap_status np_hook_fix(np_hook_device *device, neap_block *block, np_hook_reason why)
{
    bool was_fixed = block->is_fixed;
    neap_status status = device->keeper ? device->keeper->fix(device, block)
                                        : np_beneath_fix(device->manager, block, why == NP_HOOK_OF_OTHERS);
    if (status != NEAP_OK || was_fixed || device->keeper) {
        return status;
    }
    device->fixed_bytes += block->bytes;
    device->fixed_high = device->fixed_bytes > device->fixed_high ? device->fixed_bytes : device->fixed_high;
    if (why != NP_HOOK_OF_OTHERS) { /* who may yet be refused */
        np_hook_say_fixed(device, why);
    }
    return NEAP_OK;
}

neap_status np_hook_free_block(np_hook_device *device, neap_block *block)
{
    if (device->keeper) {
        device->keeper->release(device, block);
        return NEAP_OK;
    }
    device->fixed_bytes -= block->is_fixed ? block->bytes : 0;
    return np_free_locked(device->manager, block);
}
