/* verify.c: does a kernel touch more than it is seen to touch?
 *
 * Before each piece of work every block that it is not seen to use is copied away and filled with 0xFF; what it is seen to
 * use is put back. A program whose output is the same as without has been seen in full. Slow: every call waits for all
 * work. Ranges of launches and of blocks narrow a difference down (cli/verify.c does). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hook/core.h"

enum { ERROR_MEMORY = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static neap_device fake = {.pin = 1}; /* only its pin and its memory are used */
static np_hook_device device = {.manager = &fake};
static np_cu_stream copier;
static uint64_t n_launches;
static uint64_t n_blocks;
static uint32_t n_captures;

static bool is_within(const np_hook_range *range, uint64_t number)
{
    return number >= range->first && number < range->end;
}

/* ---- moving a block's bytes ---- */

/* Neither the program's captures nor its streams notice. */
static bool begin_copying(np_cu_capture_mode *mode)
{
    const np_cuda_driver *driver = &np_the_hook.driver;
    *mode = NP_CU_CAPTURE_RELAXED;
    if (driver->exchange_capture_mode) {
        (void)driver->exchange_capture_mode(mode);
    }
    return copier || driver->stream_create(&copier, NP_CU_STREAM_NON_BLOCKING) == NP_CU_SUCCESS;
}

static void end_copying(np_cu_capture_mode mode)
{
    if (np_the_hook.driver.exchange_capture_mode) {
        (void)np_the_hook.driver.exchange_capture_mode(&mode);
    }
}

static void fail(const char *what)
{
    np_hook_say("verify: %s failed on the device: the test means nothing from here on", what);
    abort();
}

static void take_away(neap_block *block)
{
    const np_cuda_driver *driver = &np_the_hook.driver;
    np_cu_address address = (np_cu_address)(uintptr_t)block->address;
    if (!block->slot.host) {
        block->slot.host = np_memory_alloc(&np_memory_default, block->bytes, 1);
    }
    if (!block->slot.host) {
        return; /* it stays: less is tested */
    }
    if (driver->copy_out(block->slot.host, address, block->bytes, copier) != NP_CU_SUCCESS ||
        driver->stream_sync(copier) != NP_CU_SUCCESS ||
        driver->fill(address, 0xFF, block->bytes, copier) != NP_CU_SUCCESS ||
        driver->stream_sync(copier) != NP_CU_SUCCESS) {
        fail("taking a block away");
    }
    block->is_absent = true;
}

static void put_back(neap_block *block)
{
    const np_cuda_driver *driver = &np_the_hook.driver;
    if (block->is_absent && (driver->copy_in((np_cu_address)(uintptr_t)block->address, block->slot.host, block->bytes,
                                             copier) != NP_CU_SUCCESS ||
                             driver->stream_sync(copier) != NP_CU_SUCCESS)) {
        fail("putting a block back");
    }
    block->is_absent = false;
}

static void put_all_back(void)
{
    neap_block *block;
    for (size_t leaf = 0, at = 0; (block = np_hook_index_next(&device.index, &leaf, &at)) != NULL;) {
        put_back(block);
    }
}

/* ---- malloc and free ---- */

static bool set_up(void)
{
    neap_error error = {""};
    if (!np_the_hook.driver.library && np_cuda_driver_load(&np_the_hook.driver, &error) != NEAP_OK) {
        np_hook_step_aside("the driver could not be loaded");
        return false;
    }
    if (!fake.memory) {
        fake.memory = &np_memory_default;
        np_hook_index_init(&device.index, &np_memory_default);
        np_hook_kernels_init(&device.kernels, &np_memory_default);
        np_hook_recall_init(&device.recall, &np_memory_default);
        (void)atexit(np_hook_verify_tell);
    }
    return true;
}

int np_hook_verify_malloc(uint64_t bytes, void **address)
{
    neap_block *block = np_memory_alloc_zero(&np_memory_default, 1, sizeof *block);
    np_hook_entry entry = {.block = block};
    int result = block ? np_hook_real_malloc(address, bytes) : ERROR_MEMORY;
    (void)pthread_mutex_lock(&lock);
    if (result == 0 && set_up()) {
        block->kind = NP_BLOCK_SMALL; /* nothing is done with it but what is done here */
        block->address = *address;
        block->bytes = bytes;
        block->id = n_blocks++;
        block->is_fixed = n_captures > 0;
        entry.begin = block->address;
        entry.end = block->address + bytes;
        result = np_hook_index_add(&device.index, &entry) == NEAP_OK ? 0 : ERROR_MEMORY;
    }
    (void)pthread_mutex_unlock(&lock);
    if (result != 0) {
        np_memory_free(&np_memory_default, block, 1, sizeof *block);
    }
    return result;
}

bool np_hook_verify_free(void *address)
{
    np_hook_entry entry;
    bool is_found;
    (void)pthread_mutex_lock(&lock);
    is_found = fake.memory && np_hook_index_remove(&device.index, address, &entry);
    (void)pthread_mutex_unlock(&lock);
    if (is_found) {
        np_memory_free(&np_memory_default, entry.block->slot.host, entry.block->bytes, 1);
        if (!entry.block->is_fixed) { /* a graph may name it: it is the process's to the end */
            (void)np_hook_real_free(address);
        }
        np_memory_free(&np_memory_default, entry.block, 1, sizeof *entry.block);
    }
    return is_found;
}

/* ---- calls ---- */

static void tell_launch(const char *name)
{
    const np_hook_settings *settings = &np_the_hook.settings;
    if (!settings->tells_verified || settings->verify_launches.end - settings->verify_launches.first != 1) {
        return;
    }
    const neap_block *block;
    for (size_t leaf = 0, at = 0; (block = np_hook_index_next(&device.index, &leaf, &at)) != NULL;) {
        if (block->is_absent && is_within(&settings->verify_blocks, block->id)) {
            (void)fprintf(stderr, "neap-verify: launch %llu %s, block %llu (%llu bytes)\n",
                          (unsigned long long)n_launches, name, (unsigned long long)block->id,
                          (unsigned long long)block->bytes);
        }
    }
}

static void poison_others(const np_hook_sight *sight, const char *name)
{
    const np_hook_settings *settings = &np_the_hook.settings;
    for (size_t i = 0; i < device.uses.n; i++) {
        put_back(device.uses.items[i].block);
    }
    if (sight->is_blind || !is_within(&settings->verify_launches, n_launches)) {
        put_all_back();
        return;
    }
    neap_block *block;
    for (size_t leaf = 0, at = 0; (block = np_hook_index_next(&device.index, &leaf, &at)) != NULL;) {
        if (block->pinned_by != fake.pin && !block->is_absent && !block->is_fixed &&
            is_within(&settings->verify_blocks, block->id)) {
            take_away(block);
        }
    }
    tell_launch(name);
}

static void see_work(const np_hook_call *call, const np_cupti_data *data)
{
    np_hook_sight sight = {.device = &device};
    np_cu_capture_mode mode;
    np_hook_gather(&sight, call, data);
    if (n_captures > 0) { /* what captured work names stays as it is for good */
        for (size_t i = 0; i < device.uses.n; i++) {
            device.uses.items[i].block->is_fixed = true;
        }
        return;
    }
    if (np_the_hook.driver.context_sync() == NP_CU_SUCCESS && begin_copying(&mode)) {
        poison_others(&sight, sight.kernel ? sight.kernel->name : data->function_name);
        end_copying(mode);
    }
    n_launches++;
}

void np_hook_verify_before(const np_hook_call *call, const np_cupti_data *data)
{
    np_cu_capture_mode mode;
    (void)pthread_mutex_lock(&lock);
    if (fake.memory) {
        switch ((np_hook_call_kind)call->kind) {
        case NP_CALL_CAPTURE_BEGIN:
            (void)np_the_hook.driver.context_sync();
            if (begin_copying(&mode)) {
                put_all_back();
                end_copying(mode);
            }
            n_captures++;
            break;
        case NP_CALL_UNLOAD:
            np_hook_kernels_forget(&device.kernels);
            break;
        case NP_CALL_LAUNCH:
        case NP_CALL_LAUNCH_EX:
        case NP_CALL_COPY:
        case NP_CALL_DESCRIBED:
        case NP_CALL_GRAPH_LAUNCH:
        case NP_CALL_UNKNOWN:
            see_work(call, data);
            break;
        default:
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

void np_hook_verify_after(const np_hook_call *call, const np_cupti_data *data)
{
    (void)data;
    if (call->kind == NP_CALL_CAPTURE_END) {
        (void)pthread_mutex_lock(&lock);
        n_captures -= n_captures > 0;
        (void)pthread_mutex_unlock(&lock);
    }
}

void np_hook_verify_tell(void)
{
    if (np_the_hook.settings.tells_verified && !np_hook_is_over()) {
        (void)fprintf(stderr, "neap-verify: launches %llu blocks %llu\n", (unsigned long long)n_launches,
                      (unsigned long long)n_blocks);
    }
}
