/* memory.c: handles, reservations and mappings over one file in memory.
 *
 * A reservation is mapped with no access. So is a mapping until its access is set, and an address that was unmapped. A
 * handle's bytes lie in the file; they are garbage at first. */
#define _GNU_SOURCE /* memfd_create, MAP_ANONYMOUS */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "standin/ranges.h"
#include "standin/standin_state.h"

typedef struct memory {
    object base;   /* dead once it is released */
    size_t offset; /* in the file */
    size_t bytes;
    unsigned n_mappings;
    int device;
} memory;

static ranges reservations, mappings;
static int file = -1;
static unsigned char *units; /* of the file, a granularity each: in use? */
static size_t n_units;
static size_t used[MAX_DEVICES]; /* bytes */

static char *pointer(np_cu_address address)
{
    return (char *)(uintptr_t)address;
}

/* ---- handles ---- */

void memory_open(void)
{
    file = file < 0 ? memfd_create("standin", MFD_CLOEXEC) : file;
    if (file < 0) {
        misuse("no memory file can be made");
    }
}

np_cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    size_t in_use;
    BEGIN(NEEDS_CONTEXT, free_bytes, total_bytes);
    in_use = used[current_context()->device];
    *total_bytes = standin.memory_bytes;
    *free_bytes = in_use < standin.memory_bytes ? standin.memory_bytes - in_use : 0;
    return end(NP_CU_SUCCESS);
}

static bool is_usual(const np_cu_allocation *a)
{
    return a->type == NP_CU_ALLOCATION_PINNED && a->location.type == NP_CU_LOCATION_DEVICE && a->location.id >= 0 &&
           a->location.id < standin.n_devices && a->handle_types == 0 && a->win32_meta == NULL && a->flags.usage == 0;
}

np_cu_result cuDeviceTotalMem_v2(size_t *bytes, np_cu_device device)
{
    BEGIN(NEEDS_INIT, bytes, device);
    *bytes = standin.memory_bytes;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuMemGetAllocationGranularity(size_t *bytes, const np_cu_allocation *allocation, np_cu_granularity option)
{
    BEGIN(NEEDS_INIT, bytes, allocation, option);
    if (!is_usual(allocation) || option > NP_CU_GRANULARITY_RECOMMENDED) {
        return end(NP_CU_INVALID_VALUE);
    }
    *bytes = standin.granularity;
    return end(NP_CU_SUCCESS);
}

/* Units of the file that follow each other. */
static size_t find_units(size_t n)
{
    size_t run = 0;
    for (size_t i = 0; i < n_units; i++) {
        run = units[i] ? 0 : run + 1;
        if (run == n) {
            return i + 1 - n;
        }
    }
    return n_units - run;
}

static size_t take_units(size_t n)
{
    size_t first = find_units(n);
    if (first + n > n_units) {
        size_t grown = first + n + n_units / 2;
        units = realloc(units, grown);
        if (!units || ftruncate(file, (off_t)(grown * standin.granularity)) != 0) {
            misuse("the machine has no memory left");
        }
        memset(units + n_units, 0, grown - n_units);
        n_units = grown;
    }
    memset(units + first, 1, n);
    return first * standin.granularity;
}

/* What nobody wrote holds anything. */
static void spoil(size_t offset, size_t bytes)
{
    char garbage[4096];
    memset(garbage, 0xa5, sizeof garbage);
    for (size_t i = 0; i < bytes; i += sizeof garbage) {
        size_t n = bytes - i < sizeof garbage ? bytes - i : sizeof garbage;
        if (pwrite(file, garbage, n, (off_t)(offset + i)) != (ssize_t)n) {
            misuse("the machine has no memory left");
        }
    }
}

np_cu_result cuMemCreate(np_cu_memory *made, size_t bytes, const np_cu_allocation *allocation, unsigned long long flags)
{
    memory *m;
    BEGIN(NEEDS_INIT | IS_UNSAFE, made, bytes, allocation, flags);
    if (!is_usual(allocation) || bytes == 0 || bytes % standin.granularity != 0 || flags != 0) {
        return end(NP_CU_INVALID_VALUE);
    }
    if (!memory_take(allocation->location.id, bytes)) {
        return end(NP_CU_OUT_OF_MEMORY);
    }
    m = object_make(sizeof *m, MEMORY);
    m->bytes = bytes;
    m->device = allocation->location.id;
    m->offset = take_units(bytes / standin.granularity);
    spoil(m->offset, bytes);
    standin.counts.n_memories++;
    *made = (np_cu_memory)(uintptr_t)m;
    return end(NP_CU_SUCCESS);
}

static void free_if_unused(memory *m)
{
    if (!m->base.is_alive && m->n_mappings == 0) {
        memset(units + m->offset / standin.granularity, 0, m->bytes / standin.granularity);
        memory_give(m->device, m->bytes);
        standin.counts.n_memories--;
    }
}

np_cu_result cuMemRelease(np_cu_memory handle)
{
    memory *m;
    BEGIN(NEEDS_INIT | IS_UNSAFE, handle);
    m = object_check((void *)(uintptr_t)handle, MEMORY, "cuMemRelease");
    m->base.is_alive = false;
    free_if_unused(m);
    return end(NP_CU_SUCCESS);
}

/* ---- reservations ---- */

static void close_addresses(char *at, size_t bytes)
{
    if (mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
        misuse("the system's table of mappings is full");
    }
}

np_cu_result cuMemAddressReserve(np_cu_address *address, size_t bytes, size_t alignment, np_cu_address hint,
                                 unsigned long long flags)
{
    char *found;
    char *aligned;
    BEGIN(NEEDS_INIT | IS_UNSAFE, address, bytes, alignment, hint, flags);
    if (bytes == 0 || bytes % standin.granularity != 0 || (alignment & (alignment - 1)) != 0 || flags != 0 ||
        (hint != 0 && standin.refuses_hints)) {
        return end(NP_CU_INVALID_VALUE);
    }
    alignment = alignment > standin.granularity ? alignment : standin.granularity;
    if (bytes > SIZE_MAX / 4) {
        return end(NP_CU_OUT_OF_MEMORY);
    }
    found =
        mmap((void *)(uintptr_t)hint, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) {
        return end(NP_CU_OUT_OF_MEMORY);
    }
    aligned = found + (alignment - (uintptr_t)found % alignment) % alignment;
    if (aligned > found) {
        (void)munmap(found, (size_t)(aligned - found));
    }
    (void)munmap(aligned + bytes, (size_t)(found + alignment - aligned));
    ranges_add(&reservations, (range){.at = aligned, .bytes = bytes});
    standin.counts.n_reservations++;
    *address = (np_cu_address)(uintptr_t)aligned;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuMemAddressFree(np_cu_address address, size_t bytes)
{
    range *r;
    BEGIN(NEEDS_INIT | IS_UNSAFE, address, bytes);
    r = ranges_find(&reservations, pointer(address));
    if (!r || r->at != pointer(address) || r->bytes != bytes) {
        misuse("cuMemAddressFree: no such reservation: %p, %zu bytes", (void *)pointer(address), bytes);
    }
    if (ranges_overlap(&mappings, r->at, bytes)) {
        misuse("cuMemAddressFree: something is still mapped at %p", (void *)r->at);
    }
    (void)munmap(r->at, bytes);
    ranges_drop(&reservations, r);
    standin.counts.n_reservations--;
    return end(NP_CU_SUCCESS);
}

/* ---- mappings ---- */

np_cu_result cuMemMap(np_cu_address address, size_t bytes, size_t offset, np_cu_memory handle, unsigned long long flags)
{
    char *at = pointer(address);
    const range *r;
    memory *m;
    BEGIN(NEEDS_INIT | IS_UNSAFE, address, bytes, offset, handle, flags);
    m = object_check((void *)(uintptr_t)handle, MEMORY, "cuMemMap");
    if (bytes == 0 || address % standin.granularity != 0 || bytes % standin.granularity != 0 || offset != 0 ||
        bytes > m->bytes || flags != 0) {
        return end(NP_CU_INVALID_VALUE);
    }
    r = ranges_find(&reservations, at);
    if (!r || at + bytes > r->at + r->bytes) {
        misuse("cuMemMap: %p, %zu bytes, is not reserved", (void *)at, bytes);
    }
    if (ranges_overlap(&mappings, at, bytes)) {
        misuse("cuMemMap: something is mapped at %p already", (void *)at);
    }
    if (mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, (off_t)m->offset) == MAP_FAILED) {
        close_addresses(at, bytes);
        return end(NP_CU_OUT_OF_MEMORY);
    }
    (void)madvise(at, bytes, MADV_DONTFORK); /* a child has no device */
    m->n_mappings++;
    ranges_add(&mappings, (range){.at = at, .bytes = bytes, .memory = m});
    standin.counts.n_mappings++;
    return end(NP_CU_SUCCESS);
}

/* The mappings of [at, at + bytes), which must be covered by whole ones: the index of the first. */
static size_t check_covered(const char *at, size_t bytes, const char *symbol)
{
    size_t first = ranges_first_after(&mappings, at);
    const char *seen = at;
    for (size_t i = first; seen < at + bytes; i++) {
        if (i == mappings.n || mappings.items[i].at != seen || seen + mappings.items[i].bytes > at + bytes) {
            misuse("%s: %p, %zu bytes, is not a range of whole mappings: see %p", symbol, (const void *)at, bytes,
                   (const void *)seen);
        }
        seen += mappings.items[i].bytes;
    }
    return first;
}

np_cu_result cuMemUnmap(np_cu_address address, size_t bytes)
{
    char *at = pointer(address);
    size_t first;
    BEGIN(NEEDS_INIT | IS_UNSAFE, address, bytes);
    first = check_covered(at, bytes, "cuMemUnmap");
    streams_check_unused(at, bytes, "cuMemUnmap");
    close_addresses(at, bytes);
    while (first < mappings.n && mappings.items[first].at < at + bytes) {
        memory *m = mappings.items[first].memory;
        m->n_mappings--;
        free_if_unused(m);
        ranges_drop(&mappings, &mappings.items[first]);
        standin.counts.n_mappings--;
    }
    return end(NP_CU_SUCCESS);
}

np_cu_result cuMemSetAccess(np_cu_address address, size_t bytes, const np_cu_access *access, size_t n)
{
    char *at = pointer(address);
    bool can_be_used;
    BEGIN(NEEDS_INIT | IS_UNSAFE, address, bytes, access, n);
    if (n != 1 || access->location.type != NP_CU_LOCATION_DEVICE ||
        (access->flags != 0 && access->flags != NP_CU_ACCESS_READ_WRITE)) {
        return end(NP_CU_INVALID_VALUE);
    }
    can_be_used = access->flags != 0;
    for (size_t i = check_covered(at, bytes, "cuMemSetAccess"); i < mappings.n && mappings.items[i].at < at + bytes;
         i++) {
        mappings.items[i].can_be_used = can_be_used;
        mappings.items[i].device = access->location.id;
    }
    if (mprotect(at, bytes, can_be_used ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
        misuse("cuMemSetAccess: the system's table of mappings is full");
    }
    return end(NP_CU_SUCCESS);
}

/* ---- for others ---- */

bool memory_take(int device, size_t bytes)
{
    if (bytes > standin.memory_bytes || used[device] > standin.memory_bytes - bytes) {
        return false;
    }
    used[device] += bytes;
    standin.counts.device_bytes += bytes;
    return true;
}

void memory_give(int device, size_t bytes)
{
    used[device] -= bytes;
    standin.counts.device_bytes -= bytes;
}

bool memory_is_mapped(const void *at, size_t bytes)
{
    const char *seen = at;
    const char *to = seen + bytes;
    while (seen < to) {
        const range *r = ranges_find(&mappings, seen);
        if (!r || !r->can_be_used) {
            return false;
        }
        seen = r->at + r->bytes;
    }
    return true;
}

bool memory_is_reserved(const void *at)
{
    return ranges_find(&reservations, at) != NULL;
}
