/* topics.h: what a word of neap's means, for `neap help WORD` and the man pages. */
#ifndef CLI_TOPICS_H
#define CLI_TOPICS_H

#include <stddef.h>

typedef struct topic {
    const char *name;    /* one word; a verb may have the same: then the topic is shown below its options */
    const char *summary; /* one line */
    const char *text;    /* paragraphs parted by empty lines; indented lines stay as they are */
} topic;

extern const topic all_topics[]; /* a NULL name at the end */

const topic *topics_find(const char *name); /* NULL: there is none */

#endif
