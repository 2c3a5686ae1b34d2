/* cuda_addresses.c: addresses that nothing else looks like.
 *
 * Kernels' parameters are looked through for addresses, and not every word there that could be one is. Two small numbers
 * side by side make a low address: 1 and 98 are 0x6200000001, just where the driver puts what it reserves, and its
 * convolutions have such pairs. So addresses are asked for far up, where the upper half would be a number that programs
 * seldom have. (The driver may give others; they will do.)
 *
 * And programs keep old addresses in places that they do not clear. Whoever looks for addresses there would take a new
 * block for used, if it had the address of an old one. So those that are given back rest: they stay reserved, in a long
 * row. Addresses are many, and nothing is mapped. */
#include <stdatomic.h>
#include <string.h>

#include "device/cuda_state.h"

enum { MAX_RESTING = 1 << 14 };

#define MAX_RESTING_BYTES ((uint64_t)16 << 40) /* of the 128 TiB that there are */

/* Upper halves from 18193 on: above what most sizes and strides are, and far from powers of two and their halves. */
#define FIRST_WANTED ((np_cu_address)0x4711 << 32)
#define END_WANTED ((np_cu_address)0x5000 << 32) /* below what the loader and the kernel use */

static _Atomic np_cu_address next_wanted = FIRST_WANTED; /* of the process: its devices share the addresses */

/* Ever further up, and in the end from the beginning again, where some may be taken. 0: there are not so many. */
static np_cu_address choose(uint64_t bytes)
{
    np_cu_address at = atomic_load(&next_wanted);
    np_cu_address chosen;
    if (bytes >= END_WANTED - FIRST_WANTED) {
        return 0;
    }
    do {
        chosen = bytes < END_WANTED - at ? at : FIRST_WANTED;
    } while (!atomic_compare_exchange_weak(&next_wanted, &at, chosen + bytes));
    return chosen;
}

static neap_status reserve_anywhere(np_cuda *cuda, uint64_t bytes, np_cu_address *address)
{
    return np_cuda_judge(cuda, cuda->driver.reserve(address, bytes, cuda->base.page_bytes, 0, 0), "cuMemAddressReserve",
                         NEAP_NO_MEMORY);
}

neap_status np_cuda_addresses_reserve(np_cuda *cuda, uint64_t bytes, np_cu_address *address)
{
    neap_status status;
    if (cuda->driver.reserve(address, bytes, cuda->base.page_bytes, choose(bytes), 0) == NP_CU_SUCCESS) {
        return NEAP_OK;
    }
    status = reserve_anywhere(cuda, bytes, address); /* there are devices that have none up there */
    if (status != NEAP_OK && cuda->resting.ranges.n > 0) {
        np_cuda_rest_free(cuda);
        status = reserve_anywhere(cuda, bytes, address);
    }
    return status;
}

static void give_back(np_cuda *cuda, np_cuda_range range)
{
    (void)np_cuda_judge(cuda, cuda->driver.unreserve(range.address, range.bytes), "cuMemAddressFree", NEAP_NO_MEMORY);
}

/* The older half, so that moving the rest up is seldom. */
static void make_room(np_cuda *cuda)
{
    np_cuda_resting *resting = &cuda->resting;
    size_t n = resting->ranges.n - resting->ranges.n / 2;
    for (size_t i = 0; i < n; i++) {
        resting->bytes -= resting->ranges.items[i].bytes;
        give_back(cuda, resting->ranges.items[i]);
    }
    resting->ranges.n -= n;
    memmove(resting->ranges.items, resting->ranges.items + n, resting->ranges.n * sizeof *resting->ranges.items);
}

neap_status np_cuda_rest_expect(np_cuda *cuda, size_t n)
{
    return np_array_reserve(cuda->base.memory, &cuda->resting.ranges, cuda->resting.ranges.n + n);
}

void np_cuda_rest(np_cuda *cuda, np_cu_address address, uint64_t bytes)
{
    np_cuda_resting *resting = &cuda->resting;
    np_cuda_range range = {address, bytes};
    if (resting->ranges.n >= MAX_RESTING || (resting->ranges.n > 0 && resting->bytes + bytes > MAX_RESTING_BYTES)) {
        make_room(cuda);
    }
    if (np_array_push(cuda->base.memory, &resting->ranges, range) == NEAP_OK) {
        resting->bytes += bytes;
    } else { /* more than were expected */
        give_back(cuda, range);
    }
}

void np_cuda_rest_free(np_cuda *cuda)
{
    for (size_t i = 0; i < cuda->resting.ranges.n; i++) {
        give_back(cuda, cuda->resting.ranges.items[i]);
    }
    np_array_free(cuda->base.memory, &cuda->resting.ranges);
    cuda->resting.bytes = 0;
}
