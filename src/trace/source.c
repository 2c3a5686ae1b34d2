/* source.c: the lines of a file or of bytes in memory, gzip'd or not.
 *
 * Input passes through a fixed window into a buffer of text: copied, or inflated if its first two bytes are gzip's. A line
 * is handed out where it lies in that buffer. The buffer grows when a line does not fit, up to the longest line allowed:
 * a line of 10 GB, or a gzip bomb of one, ends there.
 *
 * A failure (damaged gzip, a read error) waits until every whole line before it has been handed out, so that it is
 * reported with the line it cut short, the same whatever the sizes of the buffers. */
#include "trace/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "trace/message.h"
#include "trace/zmemory.h"

#define WINDOW_BYTES ((size_t)64 << 10)
#define TEXT_BYTES ((size_t)256 << 10) /* at first */
#define FOUND_CHARS 40

struct np_source {
    const neap_memory *memory;
    char name[NP_MESSAGE_PATH_BYTES]; /* printable */

    int fd; /* -1: the input is bytes in memory */
    bool owns_fd;
    const unsigned char *bytes; /* what is left of those */
    size_t n_bytes;
    unsigned char *window;    /* what was read from fd last */
    const unsigned char *raw; /* input not used yet: in the window or in the bytes */
    size_t n_raw;

    bool is_gzip;
    bool in_member; /* inside a gzip member: the input may not end here */
    z_stream inflater;

    char *text; /* capacity + 1 bytes, so that the last line can be ended too */
    size_t capacity;
    size_t begin; /* of the text not handed out yet */
    size_t end;
    size_t searched; /* no line ends in [begin, searched) */
    bool at_end;     /* no text will follow */
    uint64_t line;

    neap_status pending; /* the failure that ends the text, or NEAP_OK */
    const char *pending_text;
    int pending_errno;
};

/* ---------------------------------------------------------------- messages ---- */

neap_status np_source_fail_at(const np_source *source, neap_error *error, neap_status status, uint64_t line,
                              const char *text)
{
    return np_fail(error, status, "%s:%llu: %s", source->name, (unsigned long long)line, text);
}

neap_status np_source_expected(const np_source *source, neap_error *error, const char *expected, const char *found,
                               size_t n_found)
{
    char text[4 * FOUND_CHARS + 1];
    bool is_long = n_found > FOUND_CHARS;

    if (n_found == 0) {
        return np_fail(error, NEAP_BAD_INPUT, "%s:%llu: expected %s, found the end of the line", source->name,
                       (unsigned long long)source->line, expected);
    }
    (void)np_message_printable(found, is_long ? FOUND_CHARS : n_found, text, sizeof text);
    return np_fail(error, NEAP_BAD_INPUT, "%s:%llu: expected %s, found \"%s%s\"", source->name,
                   (unsigned long long)source->line, expected, text, is_long ? "..." : "");
}

uint64_t np_source_line(const np_source *source)
{
    return source->line;
}

static neap_status report_pending(const np_source *source, neap_error *error)
{
    switch (source->pending) {
    case NEAP_NO_MEMORY:
        return np_fail_memory(error);
    case NEAP_IO:
        return np_message_errno(source->name, source->pending_errno, error);
    default:
        return np_source_fail_at(source, error, source->pending, source->line + 1, source->pending_text);
    }
}

static void set_pending(np_source *source, neap_status status, const char *text)
{
    source->pending = status;
    source->pending_text = text;
    source->at_end = true;
}

/* ---------------------------------------------------------------- opening ---- */

static neap_status create(const char *name, const neap_memory *memory, np_source **source)
{
    np_source *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    if (!made) {
        return NEAP_NO_MEMORY;
    }
    made->memory = np_memory_or_default(memory);
    made->fd = -1;
    np_message_path(name, made->name);
    made->text = np_memory_alloc(memory, TEXT_BYTES + 1, 1);
    if (!made->text) {
        np_source_close(made);
        return NEAP_NO_MEMORY;
    }
    made->capacity = TEXT_BYTES;
    *source = made;
    return NEAP_OK;
}

void np_source_close(np_source *source)
{
    if (!source) {
        return;
    }
    if (source->is_gzip) {
        (void)inflateEnd(&source->inflater);
    }
    if (source->owns_fd) {
        (void)close(source->fd);
    }
    np_memory_free(source->memory, source->window, WINDOW_BYTES, 1);
    if (source->text) {
        np_memory_free(source->memory, source->text, source->capacity + 1, 1);
    }
    np_memory_free(source->memory, source, 1, sizeof *source);
}

/* At least one byte of input in `raw`, unless the input has ended or failed. */
static void refill(np_source *source)
{
    ssize_t n;
    if (source->n_raw || source->pending != NEAP_OK) {
        return;
    }
    if (source->fd < 0) {
        source->raw = source->bytes;
        source->n_raw = source->n_bytes < WINDOW_BYTES ? source->n_bytes : WINDOW_BYTES;
        source->bytes += source->n_raw;
        source->n_bytes -= source->n_raw;
        return;
    }
    do {
        n = read(source->fd, source->window, WINDOW_BYTES);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        source->pending_errno = errno;
        set_pending(source, NEAP_IO, NULL);
        return;
    }
    source->raw = source->window;
    source->n_raw = (size_t)n;
}

/* Tells gzip from text by its first two bytes. A pipe may deliver them one at a time. */
static neap_status start(np_source *source, neap_error *error)
{
    refill(source);
    if (source->pending != NEAP_OK) {
        return report_pending(source, error);
    }
    if (source->n_raw == 1 && source->fd >= 0) {
        ssize_t n;
        do {
            n = read(source->fd, source->window + 1, WINDOW_BYTES - 1);
        } while (n < 0 && errno == EINTR);
        source->n_raw += n > 0 ? (size_t)n : 0;
    }
    if (source->n_raw < 2 || source->raw[0] != 0x1f || source->raw[1] != 0x8b) {
        return NEAP_OK;
    }
    np_zmemory_use(&source->inflater, source->memory);
    if (inflateInit2(&source->inflater, 16 + MAX_WBITS) != Z_OK) {
        return np_fail_memory(error);
    }
    source->is_gzip = true;
    source->in_member = true;
    return NEAP_OK;
}

neap_status np_source_open(const char *path, const neap_memory *memory, neap_error *error, np_source **source)
{
    np_source *made;
    bool is_stdin = strcmp(path, "-") == 0;
    neap_status status = create(is_stdin ? "stdin" : path, memory, &made);
    if (status != NEAP_OK) {
        return np_fail_memory(error);
    }
    made->window = np_memory_alloc(memory, WINDOW_BYTES, 1);
    if (!made->window) {
        np_source_close(made);
        return np_fail_memory(error);
    }
    made->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    made->owns_fd = !is_stdin && made->fd >= 0;
    if (made->fd < 0) {
        status = np_message_errno(made->name, errno, error);
    } else {
        status = start(made, error);
    }
    if (status != NEAP_OK) {
        np_source_close(made);
        return status;
    }
    *source = made;
    return NEAP_OK;
}

neap_status np_source_open_bytes(const void *bytes, size_t n_bytes, const char *name, const neap_memory *memory,
                                 neap_error *error, np_source **source)
{
    np_source *made;
    neap_status status = create(name, memory, &made);
    if (status != NEAP_OK) {
        return np_fail_memory(error);
    }
    made->bytes = n_bytes ? bytes : (const unsigned char *)"";
    made->n_bytes = n_bytes;
    status = start(made, error);
    if (status != NEAP_OK) {
        np_source_close(made);
        return status;
    }
    *source = made;
    return NEAP_OK;
}

/* ---------------------------------------------------------------- text ---- */

static void copy_some(np_source *source)
{
    size_t room = source->capacity - source->end;
    size_t n;
    refill(source);
    n = source->n_raw < room ? source->n_raw : room;
    if (n == 0) {
        source->at_end = true;
        return;
    }
    memcpy(source->text + source->end, source->raw, n);
    source->raw += n;
    source->n_raw -= n;
    source->end += n;
}

/* After a member of a gzip file: the end, or another member. */
static bool start_member(np_source *source)
{
    if (source->raw[0] != 0x1f) {
        set_pending(source, NEAP_BAD_INPUT, "expected the end of the gzip data, found other bytes after it");
        return false;
    }
    (void)inflateReset(&source->inflater);
    source->in_member = true;
    return true;
}

static void inflate_some(np_source *source)
{
    z_stream *z = &source->inflater;
    size_t end_before = source->end;
    while (source->end == end_before && !source->at_end) {
        size_t room = source->capacity - source->end;
        int result;
        refill(source);
        if (source->n_raw == 0) {
            if (source->in_member && source->pending == NEAP_OK) {
                set_pending(source, NEAP_BAD_INPUT, "expected more gzip data, found the end of the file");
            }
            source->at_end = true;
            return;
        }
        if (!source->in_member && !start_member(source)) {
            return;
        }
        z->next_in = (z_const Bytef *)source->raw;
        z->avail_in = (uInt)source->n_raw; /* at most WINDOW_BYTES */
        z->next_out = (Bytef *)source->text + source->end;
        z->avail_out = (uInt)room; /* at most NP_SOURCE_LINE_MAX + TEXT_BYTES */
        result = inflate(z, Z_NO_FLUSH);
        source->raw += source->n_raw - z->avail_in;
        source->n_raw = z->avail_in;
        source->end += room - z->avail_out;
        if (result == Z_STREAM_END) {
            source->in_member = false;
        } else if (result == Z_MEM_ERROR) {
            set_pending(source, NEAP_NO_MEMORY, NULL);
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            set_pending(source, NEAP_BAD_INPUT, "expected intact gzip data, found damage");
        }
    }
}

/* Room for more text behind the line that has begun. */
static neap_status make_room(np_source *source, neap_error *error)
{
    size_t n_kept = source->end - source->begin;
    size_t wanted = 2 * source->capacity;
    char *grown;

    if (n_kept > NP_SOURCE_LINE_MAX + 1) { /* + 1: a "\r" that is not part of it */
        source->line++;
        return np_source_fail_at(source, error, NEAP_BAD_INPUT, source->line,
                                 "expected a line of at most 4 MiB, found a longer one");
    }
    if (source->begin) {
        memmove(source->text, source->text + source->begin, n_kept);
        source->searched -= source->begin;
        source->begin = 0;
        source->end = n_kept;
    }
    if (n_kept < source->capacity) {
        return NEAP_OK;
    }
    if (wanted > NP_SOURCE_LINE_MAX + TEXT_BYTES) {
        wanted = NP_SOURCE_LINE_MAX + TEXT_BYTES;
    }
    grown = source->memory->resize(source->memory->user, source->text, source->capacity + 1, wanted + 1);
    if (!grown) {
        return np_fail_memory(error);
    }
    source->text = grown;
    source->capacity = wanted;
    return NEAP_OK;
}

neap_status np_source_next(np_source *source, neap_error *error, const char **line, size_t *n_bytes)
{
    char *end;
    size_t n;
    while (!(end = source->end > source->searched
                       ? memchr(source->text + source->searched, '\n', source->end - source->searched)
                       : NULL)) {
        source->searched = source->end;
        if (source->at_end) {
            if (source->pending != NEAP_OK) {
                return report_pending(source, error);
            }
            if (source->begin == source->end) {
                *line = NULL;
                *n_bytes = 0;
                return NEAP_OK;
            }
            end = source->text + source->end;
            *end = '\n';
            source->end++;
            break;
        }
        neap_status status = make_room(source, error);
        if (status != NEAP_OK) {
            return status;
        }
        source->is_gzip ? inflate_some(source) : copy_some(source);
        if (source->pending == NEAP_NO_MEMORY) {
            return report_pending(source, error); /* not a fault of the text: nothing to wait for */
        }
    }
    n = (size_t)(end - source->text) - source->begin;
    *line = source->text + source->begin;
    source->begin += n + 1;
    source->searched = source->begin;
    source->line++;
    n -= n && (*line)[n - 1] == '\r';
    if (n > NP_SOURCE_LINE_MAX) {
        return np_source_fail_at(source, error, NEAP_BAD_INPUT, source->line,
                                 "expected a line of at most 4 MiB, found a longer one");
    }
    *n_bytes = n;
    return NEAP_OK;
}
