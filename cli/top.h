/* top.h: the asking side of `neap top`. */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct top_peer {
    long process;
    int file;
    char *answer; /* the last one */
    size_t room;
} top_peer;

/* The one process that listens. False, after a line on stderr, where there is none, or a list where there are several. */
bool top_find_only(long *process);

/* False, after one line on stderr. */
bool top_connect(long process, top_peer *peer);
void top_disconnect(top_peer *peer);

/* One line, its end cut off; the peer's until the next. NULL where the program has ended. */
const char *top_ask(top_peer *peer);

/* The first '{' at or behind `at`; NULL: none. */
const char *top_next_object(const char *at);

/* A member of the flat object at `object`. False where there is none of that kind: null is none. */
bool top_number(const char *object, const char *key, double *value);
bool top_text(const char *object, const char *key, char *text, size_t bytes);

#endif
