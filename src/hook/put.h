/* put.h: bytes to a file that is not ours to break: the program's stderr, a peer's socket. */
#ifndef NP_HOOK_PUT_H
#define NP_HOOK_PUT_H

#include <stdbool.h>
#include <stddef.h>

/* All of them, or false with errno. A reader that has gone is an error here, never a SIGPIPE to the program. */
bool np_hook_put(int file, const char *bytes, size_t n);

/* One line on stderr, "neap: " before it and a newline behind. */
void np_hook_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool np_hook_has_said(void); /* anything so far */

#endif
