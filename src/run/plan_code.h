/* plan_code.h: origins and patterns as bytes. For plan_file.c.
 *
 * There are three things: numbers, 7 bits a byte, the lowest first, as short as can be; the 8 bytes of a double; and
 * texts, a number and so many bytes. A reader that runs into anything else becomes *bad*: from then on it gives zeros,
 * so that a caller needs to look only before it loops or allocates. */
#ifndef NP_RUN_PLAN_CODE_H
#define NP_RUN_PLAN_CODE_H

#include "run/plan_file.h"

typedef struct np_plan_writer {
    const neap_memory *memory;
    np_array(unsigned char) bytes;
    neap_status status; /* the first failure; nothing is put after it */
} np_plan_writer;

void np_plan_put_number(np_plan_writer *writer, uint64_t number);
void np_plan_put_double(np_plan_writer *writer, double number);
void np_plan_put_text(np_plan_writer *writer, const char *text, size_t n);
void np_plan_put_raw(np_plan_writer *writer, const void *bytes, size_t n);

typedef struct np_plan_reader {
    const unsigned char *at;
    const unsigned char *end;
    bool is_bad;
} np_plan_reader;

uint64_t np_plan_get_number(np_plan_reader *reader);
uint32_t np_plan_get_below(np_plan_reader *reader, uint64_t end); /* a number below `end`, 2^32 at most */
double np_plan_get_double(np_plan_reader *reader);

/* How many things follow, each of `min_bytes` at least: no more than there are bytes for. */
size_t np_plan_get_count(np_plan_reader *reader, size_t min_bytes);

/* A text inside the reader's bytes. */
const char *np_plan_get_text(np_plan_reader *reader, size_t *n);

enum { NP_PLAN_PERSISTENT = 1, NP_PLAN_SWAPPED = 2 }; /* bits of a life */

/* ---- plan_put.c, plan_get.c ---- */

void np_plan_put_origin(np_plan_writer *writer, const np_plan_origin *origin);
void np_plan_get_origin(np_plan_reader *reader, np_plan_origin *origin);

void np_plan_put_pattern(np_plan_writer *writer, const np_pattern *pattern);

/* NEAP_BAD_INPUT: these are no pattern, or none that is safe on this device; `error` says what is wrong. */
neap_status np_plan_get_pattern(np_plan_reader *reader, const np_plan_origin *device, const neap_memory *memory,
                                neap_error *error, np_pattern **pattern);

/* ---- plan_fits.c ---- */

/* What the manager relies on beyond np_program_is_valid and np_program_check, and what depends on the device: a valid
 * program would not make it leave its own memory. NEAP_BAD_INPUT, and why not. */
neap_status np_plan_fits(const np_program *program, const np_plan_origin *device, const neap_memory *memory,
                         neap_error *error);

#endif
