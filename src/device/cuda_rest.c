/* cuda_rest.c: addresses that were given back rest before they can come again.
 *
 * Programs keep old addresses in places that they do not clear: unused parameters of kernels. Whoever looks for addresses
 * there would take a new block for used, if it had the address of an old one. The driver gives the lowest addresses that
 * are free. So those that are given back stay reserved, in a long row: addresses are many, and nothing is mapped. */
#include <string.h>

#include "device/cuda_state.h"

enum { MAX_RESTING = 1 << 14 };

#define MAX_RESTING_BYTES ((uint64_t)16 << 40) /* of the 128 TiB that there are */

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
