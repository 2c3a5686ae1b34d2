/* zmemory.c: zlib's allocations through the library's memory hook.
 *
 * The hook wants to know a block's size when it is freed and zlib does not tell, so each block carries it in front. */
#include "trace/zmemory.h"

#include "base/checked.h"

typedef union header {
    size_t bytes; /* of the whole allocation, this header included */
    max_align_t alignment;
} header;

static voidpf allocate(voidpf opaque, uInt n, uInt elem_bytes)
{
    size_t bytes;
    header *made;
    if (!np_mul_size(n, elem_bytes, &bytes) || !np_add_size(bytes, sizeof *made, &bytes)) {
        return Z_NULL;
    }
    made = np_memory_alloc(opaque, bytes, 1);
    if (!made) {
        return Z_NULL;
    }
    made->bytes = bytes;
    return made + 1;
}

static void release(voidpf opaque, voidpf block)
{
    header *made = (header *)block - 1;
    np_memory_free(opaque, made, made->bytes, 1);
}

void np_zmemory_use(z_stream *stream, const neap_memory *memory)
{
    stream->zalloc = allocate;
    stream->zfree = release;
    stream->opaque = (voidpf)(uintptr_t)memory; /* zlib's type has no const; the hook is only called through */
}
