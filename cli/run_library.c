/* run_library.c: finds libneap_hook.so from where the command itself stands, so that a build folder, an installed tree
 * and a Python environment all work without a setting. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "printable.h"
#include "run.h"

#define LIBRARY "libneap_hook.so"

/* Seen from the command's folder. */
static const char *const places[] = {
    LIBRARY,
    "../lib/neap/" LIBRARY,
#ifdef __x86_64__
    "../lib/x86_64-linux-gnu/neap/" LIBRARY,
#endif
#ifdef __aarch64__
    "../lib/aarch64-linux-gnu/neap/" LIBRARY,
#endif
    "../lib64/neap/" LIBRARY,
};

static bool own_folder(char folder[RUN_PATH_BYTES])
{
    ssize_t n = readlink("/proc/self/exe", folder, RUN_PATH_BYTES - 1);
    if (n <= 0) {
        return false;
    }
    folder[n] = '\0';
    char *slash = strrchr(folder, '/');
    if (!slash) {
        return false;
    }
    *slash = '\0';
    return true;
}

/* The loader takes a list, and has no way to write a blank or a colon in a name. */
static bool check_name(const char *path)
{
    if (strpbrk(path, " :")) {
        printable_say("%s: a library cannot be loaded into a program from a path with a blank or colon", path);
        return false;
    }
    return true;
}

static bool find_given(const char *given, char path[RUN_PATH_BYTES])
{
    char *whole = realpath(given, NULL);
    bool fits = whole && strlen(whole) < RUN_PATH_BYTES && access(whole, R_OK) == 0;
    if (fits) {
        (void)snprintf(path, RUN_PATH_BYTES, "%s", whole);
    } else {
        printable_say("NEAP_HOOK_LIBRARY: %s: %s", given, strerror(whole && !errno ? ERANGE : errno));
    }
    free(whole);
    return fits && check_name(path);
}

bool run_find_library(char path[RUN_PATH_BYTES])
{
    const char *given = getenv("NEAP_HOOK_LIBRARY");
    if (given && *given) {
        return find_given(given, path);
    }
    char folder[RUN_PATH_BYTES] = "";
    char tried[RUN_PATH_BYTES];
    bool has_folder = own_folder(folder);
    for (size_t i = 0; has_folder && i < sizeof places / sizeof places[0]; i++) {
        int n = snprintf(tried, sizeof tried, "%s/%s", folder, places[i]);
        char *whole = n > 0 && (size_t)n < sizeof tried ? realpath(tried, NULL) : NULL;
        if (whole && strlen(whole) < RUN_PATH_BYTES) {
            (void)snprintf(path, RUN_PATH_BYTES, "%s", whole);
            free(whole);
            return check_name(path);
        }
        free(whole);
    }
    (void)fprintf(stderr, "neap: " LIBRARY " was not found: looked in %s", has_folder ? folder : "no folder");
    for (size_t i = 1; has_folder && i < sizeof places / sizeof places[0]; i++) {
        (void)fprintf(stderr, ", %.*s", (int)(strlen(places[i]) - sizeof LIBRARY), places[i]);
    }
    (void)fputs("; NEAP_HOOK_LIBRARY can name it\n", stderr);
    return false;
}
