/* tables.c: addresses of blocks in what the host copies to the device, or makes a texture of. Whatever uses that later touches
 * blocks that nobody sees it touch: they stay.
 *
 * Copies of up to a MiB are looked through, plain ones and those that a struct describes: rows of rectangles and of boxes,
 * each where its pitch puts it. What lies between rows is not copied, and not read: it need not even be there. */
#include <string.h>

#include "base/checked.h"
#include "hook/core.h"

#define TABLE_BYTES ((size_t)1 << 20)

static void scan_row(np_hook_sight *s, const char *row, size_t bytes, np_hook_reason why)
{
    np_hook_device *device = s->device;
    for (size_t i = 0; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
        const char *address;
        const np_hook_entry *entry;
        memcpy(&address, row + i, sizeof address);
        entry = np_hook_index_find(&device->index, address);
        if (entry && np_hook_fix(device, entry->block, why) != NEAP_OK) {
            s->is_blind = true;
        }
    }
}

/* Memory that the driver does not know is the host's. */
static bool is_of_host(const void *address)
{
    const np_cuda_driver *driver = &np_the_hook.driver;
    unsigned int type = 0;
    np_cu_result result;
    if (!driver->pointer_attribute) {
        return false; /* who could read it? */
    }
    result = driver->pointer_attribute(&type, NP_CU_POINTER_MEMORY_TYPE, (np_cu_address)(uintptr_t)address);
    return result == NP_CU_INVALID_VALUE || (result == NP_CU_SUCCESS && type == NP_CU_MEMORY_HOST);
}

void np_hook_scan_copied(np_hook_sight *s, const np_hook_call *call, const void *from, size_t bytes)
{
    bool is_host = strcmp(call->exec, "memcpy") == 0 ? is_of_host(from) : strcmp(call->exec, "memcpy.htod") == 0;
    if (bytes <= TABLE_BYTES && is_host) {
        scan_row(s, from, bytes, NP_HOOK_OF_TABLE);
    }
}

bool np_hook_hold(np_hook_device *device, const np_hook_call *call, const np_cupti_data *data)
{
    np_hook_sight s = {.device = device};
    const char *described = np_hook_pointer_at(data, call->to);
    if (call->bytes == NP_CALL_NOWHERE) {
        scan_row(&s, (const char *)&described, sizeof described, NP_HOOK_OF_TEXTURE);
    } else if (described) {
        scan_row(&s, described, call->bytes, NP_HOOK_OF_TEXTURE);
    }
    return !s.is_blind;
}

/* ---- copies that a struct describes ---- */

enum { TYPE_HOST = NP_CU_MEMORY_HOST, TYPE_UNIFIED = 4 }; /* CUmemorytype */

/* CUDA_MEMCPY2D and CUDA_MEMCPY3D, as far as they matter. */
typedef struct described {
    size_t x; /* where it begins: bytes of a row, */
    size_t y; /* rows, */
    size_t z; /* slices */
    unsigned int type;
    const char *host;   /* of that type */
    const char *either; /* of a type that the address tells */
    size_t pitch;       /* bytes from row to row */
    size_t n_rows;      /* from slice to slice */
    size_t width;       /* bytes of a row that are copied */
    size_t height;      /* rows */
    size_t depth;       /* slices */
} described;

static size_t size_at(const char *given, size_t offset)
{
    size_t value;
    memcpy(&value, given + offset, sizeof value);
    return value;
}

static const char *pointer_at(const char *given, size_t offset)
{
    const char *value;
    memcpy(&value, given + offset, sizeof value);
    return value;
}

static described read_2d(const char *given)
{
    return (described){.x = size_at(given, 0),
                       .y = size_at(given, 8),
                       .type = (unsigned int)size_at(given, 16), /* what fills it up to 8 bytes is cut off */
                       .host = pointer_at(given, 24),
                       .either = pointer_at(given, 32),
                       .pitch = size_at(given, 48),
                       .width = size_at(given, 112),
                       .height = size_at(given, 120),
                       .depth = 1};
}

static described read_3d(const char *given)
{
    return (described){.x = size_at(given, 0),
                       .y = size_at(given, 8),
                       .z = size_at(given, 16),
                       .type = (unsigned int)size_at(given, 32),
                       .host = pointer_at(given, 40),
                       .either = pointer_at(given, 48),
                       .pitch = size_at(given, 72),
                       .n_rows = size_at(given, 80),
                       .width = size_at(given, 176),
                       .height = size_at(given, 184),
                       .depth = size_at(given, 192)};
}

/* Rows, one right behind the other in one slice, are one: a word may be in two of them. */
static void scan_rows(np_hook_sight *s, const char *base, const described *d)
{
    bool is_one = d->pitch == d->width && d->depth == 1;
    for (size_t z = 0; z < d->depth; z++) {
        for (size_t y = 0; y < (is_one ? 1 : d->height); y++) {
            size_t row = (d->z + z) * d->n_rows + d->y + y;
            scan_row(s, base + row * d->pitch + d->x, is_one ? d->width * d->height : d->width, NP_HOOK_OF_TABLE);
        }
    }
}

void np_hook_scan_described(np_hook_sight *s, const np_hook_call *call, const void *given)
{
    enum { BYTES_3D = 200 };
    described d = call->bytes == BYTES_3D ? read_3d(given) : read_2d(given);
    const char *base = d.type == TYPE_HOST ? d.host : d.type == TYPE_UNIFIED ? d.either : NULL;
    size_t bytes = 0;
    bool is_small = np_mul_size(d.width, d.height, &bytes) && np_mul_size(bytes, d.depth, &bytes) && bytes > 0 &&
                    bytes <= TABLE_BYTES;
    if (is_small && base && (d.type == TYPE_HOST || is_of_host(base))) {
        scan_rows(s, base, &d);
    }
}
