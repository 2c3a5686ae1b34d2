/* pickle_input.h: the bytes of a file or of memory, gzip'd or not, one after the other.
 *
 * A pickle has no lines (source.h), so a message names the byte. Memory is one window of input and one of what was
 * inflated, whatever the input. */
#ifndef NP_TRACE_PICKLE_INPUT_H
#define NP_TRACE_PICKLE_INPUT_H

#include "base/memory.h"

typedef struct np_pickle_input np_pickle_input;

/* `path` "-" is standard input. */
neap_status np_pickle_input_open(const char *path, const neap_memory *memory, neap_error *error,
                                 np_pickle_input **input);

/* The bytes must stay until the input is closed. */
neap_status np_pickle_input_open_bytes(const void *bytes, size_t n_bytes, const char *name, const neap_memory *memory,
                                       neap_error *error, np_pickle_input **input);
void np_pickle_input_close(np_pickle_input *input); /* NULL is allowed */

/* The next n bytes. Where the input ends before that: NEAP_BAD_INPUT. */
neap_status np_pickle_input_take(np_pickle_input *input, neap_error *error, void *bytes, size_t n);

/* Reads what is left, so that damage behind the last byte of interest (a gzip checksum) is found too. */
neap_status np_pickle_input_finish(np_pickle_input *input, neap_error *error);

uint64_t np_pickle_input_at(const np_pickle_input *input);      /* bytes taken so far */
const char *np_pickle_input_name(const np_pickle_input *input); /* printable */

#endif
