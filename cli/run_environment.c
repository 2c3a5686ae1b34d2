/* run_environment.c: the environment of a program that runs under neap (src/hook/settings.h has what the library reads
 * of it), and the step into that program. It takes this process's place: its exit code and its signals are its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "printable.h"
#include "run.h"
#include "term.h"

bool run_set(const char *name, const char *value)
{
    if ((value ? setenv(name, value, 1) : unsetenv(name)) == 0) {
        return true;
    }
    printable_say("cannot set %s: %s", name, strerror(errno));
    return false;
}

bool run_set_path(const char *name, const char *path)
{
    char folder[RUN_PATH_BYTES];
    char whole[2 * RUN_PATH_BYTES];
    if (path[0] == '/' || strcmp(path, "-") == 0) {
        return run_set(name, path);
    }
    if (!getcwd(folder, sizeof folder)) {
        printable_say("this folder has no name: %s", strerror(errno));
        return false;
    }
    int n = snprintf(whole, sizeof whole, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, path);
    if (n < 0 || (size_t)n >= sizeof whole) {
        printable_say("%.60s...: the name is too long", path);
        return false;
    }
    return run_set(name, whole);
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Ours first; once, also where neap runs under neap. */
static bool set_preload(const char *library)
{
    const char *before = environment("LD_PRELOAD");
    size_t n = strlen(library);
    if (!before) {
        return run_set("LD_PRELOAD", library);
    }
    if (strncmp(before, library, n) == 0 && strchr(" :", before[n])) {
        return true; /* strchr finds the end too */
    }
    char *both = malloc(n + strlen(before) + 2);
    if (!both) {
        (void)fputs("neap: out of memory\n", stderr);
        return false;
    }
    (void)sprintf(both, "%s:%s", library, before);
    bool is_set = run_set("LD_PRELOAD", both);
    free(both);
    return is_set;
}

/* PyTorch reads the second name where the first is not set; older versions know only the second. */
static bool set_pytorch(bool is_quiet)
{
    static const char *const names[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"};
    const char *name = environment(names[0]) ? names[0] : names[1];
    const char *conf = environment(name);
    char merged[RUN_PATH_BYTES];
    char dropped[RUN_PATH_BYTES];
    if (!run_merge_conf(conf, merged, dropped)) {
        printable_say("%s is too long", name);
        return false;
    }
    if (dropped[0] && !is_quiet) {
        printable_say("%s: left out, as only PyTorch's own allocator has it: %s", name, dropped);
    }
    return run_set(names[0], merged) && run_set(names[1], merged);
}

bool run_set_library(const char *library, const char *mode, bool is_quiet)
{
    const char *other = environment("CUDA_INJECTION64_PATH");
    if (other && strcmp(other, library) != 0 && !is_quiet) {
        printable_say("CUDA_INJECTION64_PATH was %s: not loaded, there can be one alone", other);
    }
    char process[32];
    (void)snprintf(process, sizeof process, "%ld", (long)getpid());
    return set_preload(library) && run_set("CUDA_INJECTION64_PATH", library) && run_set("NEAP_HOOK", mode) &&
           run_set("NEAP_PID", process) && set_pytorch(is_quiet);
}

int run_become(char **program)
{
    term_leave();
    (void)execvp(program[0], program);
    int why = errno;
    bool is_missing = why == ENOENT || why == ENOTDIR;
    printable_say("%s: %s", program[0], is_missing ? "there is no such program" : strerror(why));
    return is_missing ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
