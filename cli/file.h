/* file.h: files that appear whole or not at all. */
#ifndef CLI_FILE_H
#define CLI_FILE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct new_file {
    const char *path;
    char *temporary; /* the name it has until file_commit; NULL: written in place (a device, a pipe) */
    FILE *stream;
} new_file;

/* False, after one line on stderr, where it cannot be made. `path` must outlive the file. */
bool file_create(const char *path, new_file *file);

/* Gives the file its name, if everything could be written; otherwise one line on stderr, and nothing is left behind. */
bool file_commit(new_file *file);

#endif
