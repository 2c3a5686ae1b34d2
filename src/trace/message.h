/* message.h: text from outside (paths, bits of files) as part of a one-line message. */
#ifndef NP_TRACE_MESSAGE_H
#define NP_TRACE_MESSAGE_H

#include "neap.h"

#define NP_MESSAGE_PATH_BYTES 201 /* of a path in a message, with its '\0' */

/* Copies text so that it is one printable line: "\x0a" for a newline. False if not all of it fits in n_out bytes with
 * its '\0'. */
bool np_message_printable(const char *text, size_t n, char *out, size_t n_out);

/* A path made printable; of a long one, its end, which tells more than its beginning. */
void np_message_path(const char *path, char out[NP_MESSAGE_PATH_BYTES]);

/* NEAP_IO and "PATH: what the system says about `number`", an errno. */
neap_status np_message_errno(const char *path, int number, neap_error *error);

#endif
