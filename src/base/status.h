/* status.h: how a failing call says what went wrong. */
#ifndef NP_BASE_STATUS_H
#define NP_BASE_STATUS_H

#include "neap.h"

/* Writes one line into error (if there is one) and returns status, so that a failure is one statement:
 *     return np_fail(error, NEAP_BAD_INPUT, "%s:%zu: expected a size", file, line); */
neap_status np_fail(neap_error *error, neap_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* np_fail with NEAP_NO_MEMORY and the status's own message. */
neap_status np_fail_memory(neap_error *error);

#endif
