/* pickle_input.c: the bytes of a file or of memory, gzip'd or not, one after the other.
 *
 * What was read lies in a window; gzip'd input (told by its first two bytes) is inflated into a second one. Bytes are
 * handed out from whichever is last. */
#include "trace/pickle_input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "trace/message.h"
#include "trace/zmemory.h"

#define WINDOW_BYTES ((size_t)64 << 10)

struct np_pickle_input {
    const neap_memory *memory;
    char name[NP_MESSAGE_PATH_BYTES]; /* printable */
    int fd;                           /* -1: the input is bytes in memory */
    bool owns_fd;
    unsigned char *window;    /* what was read from fd last; NULL for bytes in memory */
    const unsigned char *raw; /* input not used yet */
    size_t n_raw;
    bool is_gzip;
    bool in_member;          /* inside a gzip member: the input may not end here */
    unsigned char *inflated; /* gzip only */
    z_stream inflater;
    const unsigned char *next; /* bytes to hand out, */
    size_t n_next;             /* so many */
    uint64_t at;
};

uint64_t np_pickle_input_at(const np_pickle_input *input)
{
    return input->at;
}

const char *np_pickle_input_name(const np_pickle_input *input)
{
    return input->name;
}

static neap_status fail(const np_pickle_input *input, neap_error *error, const char *text)
{
    return np_fail(error, NEAP_BAD_INPUT, "%s: byte %llu: %s", input->name, (unsigned long long)input->at, text);
}

/* ---------------------------------------------------------------- raw input ---- */

/* Up to `room` bytes of the file; 0 at its end. */
static neap_status read_some(const np_pickle_input *input, neap_error *error, unsigned char *to, size_t room,
                             size_t *n_read)
{
    ssize_t n;
    do {
        n = read(input->fd, to, room);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return np_message_errno(input->name, errno, error);
    }
    *n_read = (size_t)n;
    return NEAP_OK;
}

/* At least one byte in `raw`, unless the input has ended. */
static neap_status refill(np_pickle_input *input, neap_error *error)
{
    if (input->n_raw || input->fd < 0) {
        return NEAP_OK;
    }
    input->raw = input->window;
    return read_some(input, error, input->window, WINDOW_BYTES, &input->n_raw);
}

/* ---------------------------------------------------------------- gzip ---- */

/* After a member of a gzip file: another one, or bytes that do not belong there. */
static neap_status start_member(np_pickle_input *input, neap_error *error)
{
    if (input->raw[0] != 0x1f) {
        return fail(input, error, "expected the end of the gzip data, found other bytes after it");
    }
    (void)inflateReset(&input->inflater);
    input->in_member = true;
    return NEAP_OK;
}

static neap_status inflate_once(np_pickle_input *input, neap_error *error)
{
    z_stream *z = &input->inflater;
    uInt n_in = (uInt)(input->n_raw < WINDOW_BYTES ? input->n_raw : WINDOW_BYTES);
    int result;
    z->next_in = (z_const Bytef *)input->raw;
    z->avail_in = n_in;
    z->next_out = input->inflated;
    z->avail_out = (uInt)WINDOW_BYTES;
    result = inflate(z, Z_NO_FLUSH);
    input->raw += n_in - z->avail_in;
    input->n_raw -= n_in - z->avail_in;
    input->next = input->inflated;
    input->n_next = WINDOW_BYTES - z->avail_out;
    if (result == Z_STREAM_END) {
        input->in_member = false;
    } else if (result == Z_MEM_ERROR) {
        return np_fail_memory(error);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return fail(input, error, "expected intact gzip data, found damage");
    }
    return NEAP_OK;
}

static neap_status inflate_some(np_pickle_input *input, neap_error *error)
{
    neap_status status = NEAP_OK;
    while (status == NEAP_OK && input->n_next == 0) {
        status = refill(input, error);
        if (status == NEAP_OK && input->n_raw == 0) {
            return input->in_member ? fail(input, error, "expected more gzip data, found the end of the file")
                                    : NEAP_OK;
        }
        if (status == NEAP_OK && !input->in_member) {
            status = start_member(input, error);
        }
        if (status == NEAP_OK) {
            status = inflate_once(input, error);
        }
    }
    return status;
}

/* ---------------------------------------------------------------- opening ---- */

static neap_status create(const char *name, const neap_memory *memory, np_pickle_input **input)
{
    np_pickle_input *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    if (!made) {
        return NEAP_NO_MEMORY;
    }
    made->memory = np_memory_or_default(memory);
    made->fd = -1;
    np_message_path(name, made->name);
    *input = made;
    return NEAP_OK;
}

void np_pickle_input_close(np_pickle_input *input)
{
    if (!input) {
        return;
    }
    if (input->is_gzip) {
        (void)inflateEnd(&input->inflater);
    }
    if (input->owns_fd) {
        (void)close(input->fd);
    }
    np_memory_free(input->memory, input->window, WINDOW_BYTES, 1);
    np_memory_free(input->memory, input->inflated, WINDOW_BYTES, 1);
    np_memory_free(input->memory, input, 1, sizeof *input);
}

/* Tells gzip from anything else by its first two bytes. A pipe may deliver them one at a time. */
static neap_status start(np_pickle_input *input, neap_error *error)
{
    neap_status status = refill(input, error);
    if (status == NEAP_OK && input->n_raw == 1 && input->fd >= 0) {
        size_t n = 0;
        status = read_some(input, error, input->window + 1, WINDOW_BYTES - 1, &n);
        input->n_raw += n;
    }
    if (status != NEAP_OK || input->n_raw < 2 || input->raw[0] != 0x1f || input->raw[1] != 0x8b) {
        return status;
    }
    input->inflated = np_memory_alloc(input->memory, WINDOW_BYTES, 1);
    np_zmemory_use(&input->inflater, input->memory);
    if (!input->inflated || inflateInit2(&input->inflater, 16 + MAX_WBITS) != Z_OK) {
        return np_fail_memory(error);
    }
    input->is_gzip = true;
    input->in_member = true;
    return NEAP_OK;
}

static neap_status open_file(np_pickle_input *input, const char *path, bool is_stdin, neap_error *error)
{
    input->window = np_memory_alloc(input->memory, WINDOW_BYTES, 1);
    if (!input->window) {
        return np_fail_memory(error);
    }
    input->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    input->owns_fd = !is_stdin && input->fd >= 0;
    return input->fd < 0 ? np_message_errno(input->name, errno, error) : start(input, error);
}

neap_status np_pickle_input_open(const char *path, const neap_memory *memory, neap_error *error,
                                 np_pickle_input **input)
{
    np_pickle_input *made;
    bool is_stdin = strcmp(path, "-") == 0;
    neap_status status = create(is_stdin ? "stdin" : path, memory, &made);
    if (status != NEAP_OK) {
        return np_fail_memory(error);
    }
    status = open_file(made, path, is_stdin, error);
    if (status != NEAP_OK) {
        np_pickle_input_close(made);
        return status;
    }
    *input = made;
    return NEAP_OK;
}

neap_status np_pickle_input_open_bytes(const void *bytes, size_t n_bytes, const char *name, const neap_memory *memory,
                                       neap_error *error, np_pickle_input **input)
{
    np_pickle_input *made;
    neap_status status = create(name, memory, &made);
    if (status != NEAP_OK) {
        return np_fail_memory(error);
    }
    made->raw = n_bytes ? bytes : (const unsigned char *)"";
    made->n_raw = n_bytes;
    status = start(made, error);
    if (status != NEAP_OK) {
        np_pickle_input_close(made);
        return status;
    }
    *input = made;
    return NEAP_OK;
}

/* ---------------------------------------------------------------- taking ---- */

/* At least one byte to hand out, unless the input has ended. */
static neap_status prepare(np_pickle_input *input, neap_error *error)
{
    neap_status status;
    if (input->n_next) {
        return NEAP_OK;
    }
    if (input->is_gzip) {
        return inflate_some(input, error);
    }
    status = refill(input, error);
    input->next = input->raw;
    input->n_next = input->n_raw;
    input->n_raw = 0;
    return status;
}

neap_status np_pickle_input_take(np_pickle_input *input, neap_error *error, void *bytes, size_t n)
{
    unsigned char *to = bytes;
    while (n) {
        neap_status status = prepare(input, error);
        size_t part = n < input->n_next ? n : input->n_next;
        if (status != NEAP_OK) {
            return status;
        }
        if (part == 0) {
            return fail(input, error, "expected more of the pickle, found the end of the file");
        }
        memcpy(to, input->next, part);
        to += part;
        n -= part;
        input->next += part;
        input->n_next -= part;
        input->at += part;
    }
    return NEAP_OK;
}

neap_status np_pickle_input_finish(np_pickle_input *input, neap_error *error)
{
    neap_status status = NEAP_OK;
    do {
        input->at += input->n_next;
        input->n_next = 0;
        status = input->is_gzip ? inflate_some(input, error) : NEAP_OK;
    } while (status == NEAP_OK && input->n_next);
    return status;
}
