/* file.c: written under another name in the same folder, then renamed: a reader never sees half a picture, and a full
 * disk leaves the old one. Devices and pipes (/dev/stdout) cannot be replaced and are written directly. */
#include "file.h"
#include "printable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool failed(const new_file *file, int why)
{
    printable_say("cannot write %s: %s", file->path, strerror(why));
    return false;
}

static void abandon(new_file *file)
{
    if (file->temporary) {
        (void)unlink(file->temporary);
        free(file->temporary);
        file->temporary = NULL;
    }
}

static int open_temporary(new_file *file)
{
    static const char suffix[] = ".XXXXXX";
    size_t n_path = strlen(file->path);
    file->temporary = malloc(n_path + sizeof suffix);
    if (!file->temporary) {
        return -1;
    }
    memcpy(file->temporary, file->path, n_path);
    memcpy(file->temporary + n_path, suffix, sizeof suffix);
    int fd = mkstemp(file->temporary);
    if (fd == -1) {
        int why = errno;
        free(file->temporary);
        file->temporary = NULL;
        errno = why;
        return -1;
    }
    mode_t mask = umask(0); /* mkstemp is stricter than a new file is */
    (void)umask(mask);
    (void)fchmod(fd, 0666 & ~mask);
    return fd;
}

bool file_create(const char *path, new_file *file)
{
    *file = (new_file){.path = path};
    struct stat existing;
    bool exists = stat(path, &existing) == 0;
    if (exists && S_ISDIR(existing.st_mode)) {
        return failed(file, EISDIR);
    }
    if (exists && !S_ISREG(existing.st_mode)) {
        file->stream = fopen(path, "w");
        return file->stream || failed(file, errno);
    }
    int fd = open_temporary(file);
    if (fd != -1) {
        file->stream = fdopen(fd, "w");
    }
    if (!file->stream) {
        int why = errno;
        if (fd != -1) {
            (void)close(fd);
        }
        abandon(file);
        return failed(file, why);
    }
    return true;
}

bool file_commit(new_file *file)
{
    errno = 0;
    bool is_bad = ferror(file->stream) != 0;
    is_bad |= fclose(file->stream) != 0;
    file->stream = NULL;
    if (!is_bad && file->temporary) {
        is_bad = rename(file->temporary, file->path) != 0;
    }
    if (is_bad) {
        int why = errno ? errno : EIO;
        abandon(file);
        return failed(file, why);
    }
    free(file->temporary);
    file->temporary = NULL;
    return true;
}
