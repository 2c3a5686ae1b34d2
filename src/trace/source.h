/* source.h: the lines of a file or of bytes in memory, gzip'd or not.
 *
 * Memory is bounded whatever the input: one window of input, and one buffer of text that holds the longest line allowed.
 * What a message needs, the name and the number of the line, is known here, so messages are made here too. */
#ifndef NP_TRACE_SOURCE_H
#define NP_TRACE_SOURCE_H

#include "base/memory.h"

#define NP_SOURCE_LINE_MAX ((size_t)4 << 20) /* bytes, without the line's end */

typedef struct np_source np_source;

/* `path` "-" is standard input. */
neap_status np_source_open(const char *path, const neap_memory *memory, neap_error *error, np_source **source);

/* The bytes must stay until the source is closed. */
neap_status np_source_open_bytes(const void *bytes, size_t n_bytes, const char *name, const neap_memory *memory,
                                 neap_error *error, np_source **source);
void np_source_close(np_source *source); /* NULL is allowed */

/* The next line, without "\n" or "\r\n"; NULL at the end. It stays until the next call. The byte after its last one can be
 * read and is no digit and no blank, so that scanning a number needs no other end. */
neap_status np_source_next(np_source *source, neap_error *error, const char **line, size_t *n_bytes);

/* "FILE:LINE: expected EXPECTED, found "FOUND"" about the line given last, as NEAP_BAD_INPUT. `found` is shortened and
 * made printable. */
neap_status np_source_expected(const np_source *source, neap_error *error, const char *expected, const char *found,
                               size_t n_found);

/* The same with words of one's own: "FILE:LINE: TEXT", and about any line. */
neap_status np_source_fail_at(const np_source *source, neap_error *error, neap_status status, uint64_t line,
                              const char *text);

uint64_t np_source_line(const np_source *source); /* number of the line given last, from 1 */

#endif
