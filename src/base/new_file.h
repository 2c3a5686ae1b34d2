/* new_file.h: a file that appears whole or not at all, and bytes to a file without a death.
 *
 * It is written beside its place and renamed into it when it is on the disk; then the folder is synchronised, so that the
 * name is on the disk too. A full disk, a crash, or another process that writes the same at the same moment leaves under
 * the path what was there before, or one whole file. Functions return 0, or an errno. */
#ifndef NP_BASE_NEW_FILE_H
#define NP_BASE_NEW_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { NP_NEW_FILE_SUFFIX = 48 }; /* room that a temporary name takes beyond the path, with its '\0' */

typedef struct np_new_file {
    const char *path;
    char *temporary;
    int fd;
} np_new_file;

/* `temporary` has strlen(path) + NP_NEW_FILE_SUFFIX bytes, the caller's until the file is closed. */
int np_new_file_open(np_new_file *file, const char *path, mode_t mode, char *temporary);

/* Is all well so far, it takes its place; otherwise it is gone. */
int np_new_file_close(np_new_file *file, bool is_good);

/* All bytes. A reader that has gone, and a limit of the file's size, are errors: the signals that would end the program
 * (SIGPIPE, SIGXFSZ) are held back, and signals that the program caused itself are left as they were. */
int np_file_put(int fd, const void *bytes, size_t n_bytes);

#endif
