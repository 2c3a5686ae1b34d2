/* capture.h: what a piece of code writes to stderr, as text. */
#ifndef HOOK_PARTS_CAPTURE_H
#define HOOK_PARTS_CAPTURE_H

#include <stddef.h>

typedef struct stderr_capture {
    int kept;  /* the stderr there was */
    int reads; /* a file's */
} stderr_capture;

stderr_capture capture_begin(void);

/* Gives stderr back. Writes at most `bytes`, ended by '\0'. */
void capture_end(stderr_capture *capture, char *text, size_t bytes);

#endif
