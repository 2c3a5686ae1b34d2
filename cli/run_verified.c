/* run_verified.c: which programs `neap verify` has passed for: a small file for each, named by a hash, in
 * $XDG_CACHE_HOME/neap/verified.
 *
 * The hash is of the library, of every word of the command line, and of the contents of each file that a word names: the
 * program itself, found as the shell would, and scripts. A change of any of them asks for another look. Of large files
 * (data) size and time stand for the contents. What a program imports is not seen. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "printable.h"
#include "run.h"

#define WHOLE_BYTES_MAX ((off_t)64 << 20)

/* ---- hashing: FNV-1a, 64 bits ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t hash_word(uint64_t hash, const char *word)
{
    return hash_bytes(hash, word, strlen(word) + 1);
}

static uint64_t hash_file(uint64_t hash, const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0 || !S_ISREG(found.st_mode)) {
        return hash;
    }
    hash = hash_bytes(hash, &found.st_size, sizeof found.st_size);
    FILE *file = found.st_size <= WHOLE_BYTES_MAX ? fopen(path, "rb") : NULL;
    if (!file) {
        return hash_bytes(hash, &found.st_mtim, sizeof found.st_mtim);
    }
    char bytes[65536];
    size_t n;
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0) {
        hash = hash_bytes(hash, bytes, n);
    }
    (void)fclose(file);
    return hash;
}

/* The file that a shell would run; false where there is none. */
static bool find_program(const char *name, char path[RUN_PATH_BYTES])
{
    const char *folders = getenv("PATH");
    if (strchr(name, '/')) {
        int n = snprintf(path, RUN_PATH_BYTES, "%s", name);
        return n > 0 && n < RUN_PATH_BYTES;
    }
    while (folders && *folders) {
        size_t n_folder = strcspn(folders, ":");
        int n = snprintf(path, RUN_PATH_BYTES, "%.*s%s%s", (int)n_folder, folders, n_folder ? "/" : "", name);
        if (n > 0 && n < RUN_PATH_BYTES && access(path, X_OK) == 0) {
            return true;
        }
        folders += n_folder + (folders[n_folder] == ':');
    }
    return false;
}

uint64_t run_identity(const char *library, char *const *program)
{
    char path[RUN_PATH_BYTES];
    uint64_t hash = hash_file(UINT64_C(0xcbf29ce484222325), library);
    if (find_program(program[0], path)) {
        hash = hash_file(hash, path);
    }
    for (size_t i = 0; program[i]; i++) {
        hash = hash_word(hash, program[i]);
        if (i > 0) {
            hash = hash_file(hash, program[i]);
        }
    }
    return hash;
}

/* ---- remembering ---- */

static bool name_entry(uint64_t identity, char path[RUN_PATH_BYTES])
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    bool has_cache = cache && cache[0] == '/';
    if (!has_cache && !(home && home[0] == '/')) {
        return false;
    }
    int n = snprintf(path, RUN_PATH_BYTES, "%s%s/neap/verified/%016" PRIx64, has_cache ? cache : home,
                     has_cache ? "" : "/.cache", identity);
    return n > 0 && n < RUN_PATH_BYTES;
}

bool run_is_verified(uint64_t identity)
{
    char path[RUN_PATH_BYTES];
    return name_entry(identity, path) && access(path, R_OK) == 0;
}

/* Every folder on the way to the file. */
static bool make_folders(char *path)
{
    for (char *at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        bool is_there = mkdir(path, S_IRWXU) == 0 || errno == EEXIST;
        int why = errno;
        *at = '/';
        if (!is_there) {
            printable_say("cannot make the folder of %s: %s", path, strerror(why));
            return false;
        }
    }
    return true;
}

bool run_remember_verified(uint64_t identity, char *const *program)
{
    char path[RUN_PATH_BYTES];
    new_file file;
    if (!name_entry(identity, path)) {
        (void)fputs("neap: not remembered: neither XDG_CACHE_HOME nor HOME is set\n", stderr);
        return false;
    }
    if (!make_folders(path) || !file_create(path, &file)) {
        return false;
    }
    for (size_t i = 0; program[i]; i++) { /* for people who look */
        (void)fprintf(file.stream, "%s\n", program[i]);
    }
    return file_commit(&file);
}
