/* verify.c: does a kernel touch more than it is seen to touch?
 *
 * Before each piece of work every block that it is not seen to use is copied away and filled with 0xFF; what it is seen to
 * use is put back. What must stay for `neap run` stays here too: the blocks of tables and graphs, what others hold. A
 * program whose output is the same as without has been seen in full. Slow: every call waits for all work. Ranges of
 * launches and of blocks narrow a difference down (cli/verify.c does).
 *
 * While a stream is captured everything is there, and stays: not all work can be waited for then. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "hook/core.h"

enum { ERROR_MEMORY = 2 };

typedef struct verified {
    neap_device manager; /* what of it a keeper's device has: lock, pin, memory, live bytes */
    np_cu_stream copier;
    np_array(char *) leaving; /* freed by the program, and still to be given back to the driver */
} verified;

static atomic_uint_fast64_t n_launches; /* of all devices: their numbers, and those of blocks, tell where to look */
static atomic_uint_fast64_t n_blocks;

static verified *verified_of(const np_hook_device *device)
{
    return (verified *)device->manager;
}

static bool is_within(const np_hook_range *range, uint64_t number)
{
    return number >= range->first && number < range->end;
}

static void tell_failure(const char *what)
{
    (void)fprintf(stderr, "neap-verify: failed: %s\n", what);
    abort();
}

/* ---- moving blocks' bytes, between begin_moving() and end_moving() ---- */

static np_cu_capture_mode relax(np_cu_capture_mode mode)
{
    if (np_the_hook.driver.exchange_capture_mode) {
        (void)np_the_hook.driver.exchange_capture_mode(&mode);
    }
    return mode;
}

/* All work has been done then. False: the device has failed, and the program will hear of it by itself. */
static bool begin_moving(np_hook_device *device, np_cu_capture_mode *mode)
{
    const np_cuda_driver *driver = &np_the_hook.driver;
    verified *v = verified_of(device);
    np_cu_context popped;
    if (driver->context_push(device->context) != NP_CU_SUCCESS) {
        return false;
    }
    *mode = relax(NP_CU_CAPTURE_RELAXED); /* captures of other devices do not notice */
    if (driver->context_sync() != NP_CU_SUCCESS) {
        (void)relax(*mode);
        (void)driver->context_pop(&popped);
        return false;
    }
    if (!v->copier && driver->stream_create(&v->copier, NP_CU_STREAM_NON_BLOCKING) != NP_CU_SUCCESS) {
        tell_failure("there is no stream to move blocks on");
    }
    return true;
}

static void end_moving(np_hook_device *device, np_cu_capture_mode mode)
{
    const np_cuda_driver *driver = &np_the_hook.driver;
    np_cu_context popped;
    if (driver->stream_sync(verified_of(device)->copier) != NP_CU_SUCCESS) {
        tell_failure("blocks could not be moved on the device");
    }
    (void)relax(mode);
    (void)driver->context_pop(&popped);
}

static void take_away(const verified *v, neap_block *block)
{
    const np_cuda_driver *driver = &np_the_hook.driver;
    np_cu_address address = (np_cu_address)(uintptr_t)block->address;
    if (!block->slot.host) {
        block->slot.host = np_memory_alloc(v->manager.memory, block->bytes, 1);
    }
    if (!block->slot.host) {
        tell_failure("there is no host memory for all that is to be taken away");
    }
    if (driver->copy_out(block->slot.host, address, block->bytes, v->copier) != NP_CU_SUCCESS ||
        driver->fill(address, 0xFF, block->bytes, v->copier) != NP_CU_SUCCESS) {
        tell_failure("a block could not be taken away");
    }
    block->is_absent = true;
}

static void put_back(const verified *v, neap_block *block)
{
    if (block->is_absent && np_the_hook.driver.copy_in((np_cu_address)(uintptr_t)block->address, block->slot.host,
                                                       block->bytes, v->copier) != NP_CU_SUCCESS) {
        tell_failure("a block could not be put back");
    }
    block->is_absent = false;
}

static void put_all_back(const np_hook_device *device)
{
    neap_block *block;
    for (size_t leaf = 0, at = 0; (block = np_hook_index_next(&device->index, &leaf, &at)) != NULL;) {
        put_back(verified_of(device), block);
    }
}

/* ---- what stays ---- */

static neap_status home(np_hook_device *device)
{
    np_cu_capture_mode mode;
    if (device->n_captures > 0) {
        return NEAP_OK;
    }
    if (!begin_moving(device, &mode)) {
        return NEAP_DEVICE_FAILED;
    }
    put_all_back(device);
    end_moving(device, mode);
    return NEAP_OK;
}

static neap_status fix(np_hook_device *device, neap_block *block)
{
    np_cu_capture_mode mode;
    if (block->is_absent) {
        if (!begin_moving(device, &mode)) {
            return NEAP_DEVICE_FAILED;
        }
        put_back(verified_of(device), block);
        end_moving(device, mode);
    }
    block->is_fixed = true;
    return NEAP_OK;
}

/* ---- malloc and free ---- */

/* A call of the thread's own may be under way. */
static bool hold(np_hook_device *device)
{
    return np_hook_held != device && pthread_mutex_lock(&device->manager->lock) == 0;
}

static void let_go(np_hook_device *device, bool is_held)
{
    if (is_held) {
        (void)pthread_mutex_unlock(&device->manager->lock);
    }
}

/* The driver waits for work when memory is given back: not while a stream is captured, and not under the lock, which
 * others may want while they hold some lock of the driver's. */
static void give_back(np_hook_device *device)
{
    verified *v = verified_of(device);
    char *address;
    do {
        bool is_held = hold(device);
        address = is_held && device->n_captures == 0 && v->leaving.n > 0 ? v->leaving.items[--v->leaving.n] : NULL;
        let_go(device, is_held);
        if (address) {
            np_cu_capture_mode mode = relax(NP_CU_CAPTURE_RELAXED);
            (void)np_hook_real_free(address);
            (void)relax(mode);
        }
    } while (address);
}

static void release(np_hook_device *device, neap_block *block)
{
    verified *v = verified_of(device);
    np_memory_free(v->manager.memory, block->slot.host, block->bytes, 1);
    (void)np_array_push(v->manager.memory, &v->leaving, block->address); /* or it is the process's to the end */
    np_memory_free(v->manager.memory, block, 1, sizeof *block);
}

/* What the program is told where it asks for the use of its pool. */
static void note_live(np_hook_device *device, int64_t bytes)
{
    uint64_t live = device->manager->stats.live += (uint64_t)bytes;
    device->used_high = live > device->used_high ? live : device->used_high;
    device->reserved_high = device->used_high;
}

static int take(np_hook_device *device, uint64_t bytes, void **address)
{
    const neap_memory *memory = device->manager->memory;
    neap_block *block = np_memory_alloc_zero(memory, 1, sizeof *block);
    np_hook_entry entry = {.block = block};
    np_cu_capture_mode mode;
    void *made = NULL;
    int result;
    give_back(device);
    mode = relax(NP_CU_CAPTURE_RELAXED); /* it is not the program's call that is made, and a capture may be under way */
    result = block ? np_hook_real_malloc(&made, bytes) : ERROR_MEMORY;
    (void)relax(mode);
    if (result == 0) {
        bool is_held = hold(device);
        block->address = made;
        block->bytes = bytes;
        block->id = atomic_fetch_add(&n_blocks, 1);
        block->is_fixed = device->n_captures > 0; /* a graph may be about to name it */
        entry.begin = block->address;
        entry.end = entry.begin + bytes;
        result = np_hook_index_add(&device->index, &entry) == NEAP_OK ? 0 : ERROR_MEMORY;
        if (result == 0) {
            note_live(device, (int64_t)bytes);
        }
        let_go(device, is_held);
    }
    if (result == 0) {
        *address = made;
        return 0;
    }
    if (made) {
        (void)np_hook_real_free(made);
    }
    np_memory_free(memory, block, 1, sizeof *block);
    return result;
}

static bool drop(np_hook_device *device, void *address)
{
    np_hook_entry entry;
    bool is_held = hold(device);
    bool is_found = np_hook_index_remove(&device->index, address, &entry);
    if (is_found) {
        note_live(device, -(int64_t)entry.block->bytes);
    }
    if (is_found && !np_hook_capture_free(device, entry.block)) {
        release(device, entry.block);
    }
    let_go(device, is_held);
    give_back(device);
    return is_found;
}

/* ---- work ---- */

static void tell_launch(const np_hook_device *device, uint64_t launch, const char *name)
{
    const np_hook_settings *settings = &np_the_hook.settings;
    const neap_block *block;
    if (!settings->tells_verified || settings->verify_launches.end - settings->verify_launches.first != 1) {
        return;
    }
    for (size_t leaf = 0, at = 0; (block = np_hook_index_next(&device->index, &leaf, &at)) != NULL;) {
        if (block->is_absent && is_within(&settings->verify_blocks, block->id)) {
            (void)fprintf(stderr, "neap-verify: launch %" PRIu64 " %s, block %" PRIu64 " (%" PRIu64 " bytes)\n", launch,
                          name, block->id, block->bytes);
        }
    }
}

static void poison_others(np_hook_device *device)
{
    const np_hook_range *range = &np_the_hook.settings.verify_blocks;
    neap_block *block;
    for (size_t i = 0; i < device->uses.n; i++) {
        put_back(verified_of(device), device->uses.items[i].block);
    }
    for (size_t leaf = 0, at = 0; (block = np_hook_index_next(&device->index, &leaf, &at)) != NULL;) {
        if (block->pinned_by != device->manager->pin && !block->is_absent && !block->is_fixed &&
            is_within(range, block->id)) {
            take_away(verified_of(device), block);
        }
    }
}

static void ready(const np_hook_sight *sight, const char *name)
{
    np_hook_device *device = sight->device;
    uint64_t launch = atomic_fetch_add(&n_launches, 1);
    bool is_tested = !sight->is_blind && is_within(&np_the_hook.settings.verify_launches, launch);
    np_cu_capture_mode mode;
    if (device->n_captures > 0 || !begin_moving(device, &mode)) {
        return;
    }
    if (is_tested) {
        poison_others(device);
        tell_launch(device, launch, name);
    } else {
        put_all_back(device);
    }
    end_moving(device, mode);
}

void np_hook_verify_tell(void)
{
    if (np_the_hook.settings.tells_verified) {
        (void)fprintf(stderr, "neap-verify: launches %" PRIu64 " blocks %" PRIu64 "\n",
                      (uint64_t)atomic_load(&n_launches), (uint64_t)atomic_load(&n_blocks));
    }
}

/* ---- a device ---- */

static const np_hook_keeper keeper = {
    .malloc = take,
    .free = drop,
    .home = home,
    .fix = fix,
    .release = release,
    .ready = ready,
};

neap_status np_hook_verify_open(np_hook_device *device, neap_error *error)
{
    np_cuda_driver *driver = &np_the_hook.driver;
    neap_status status = driver->library ? NEAP_OK : np_cuda_driver_load(driver, error);
    np_cu_device number;
    np_cu_context context = NULL;
    verified *v;
    if (status == NEAP_OK &&
        (!driver->context_sync || !driver->fill || driver->device_get(&number, device->ordinal) != NP_CU_SUCCESS ||
         driver->primary_retain(&context, number) != NP_CU_SUCCESS)) {
        status = NEAP_DEVICE_FAILED;
    }
    v = status == NEAP_OK ? np_memory_alloc_zero(&np_memory_default, 1, sizeof *v) : NULL;
    if (!v || pthread_mutex_init(&v->manager.lock, NULL) != 0) {
        np_memory_free(&np_memory_default, v, 1, sizeof *v);
        return status == NEAP_OK ? NEAP_NO_MEMORY : status;
    }
    v->manager.memory = &np_memory_default;
    device->context = context;
    device->manager = &v->manager;
    device->keeper = &keeper;
    return NEAP_OK;
}
