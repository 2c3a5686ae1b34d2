/* run.h: what `neap run`, `record` and `verify` share: the library that is put in front of a program, and the
 * environment that tells it what to do. */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 }; /* as shells have them */

#define RUN_PATH_BYTES 4096

/* ---- run_library.c ---- */

/* The path of libneap_hook.so. False, after one line on stderr that says where it was looked for. */
bool run_find_library(char path[RUN_PATH_BYTES]);

/* ---- run_environment.c ---- */

/* Sets what makes a program load the library, in this process's environment. `mode` is NEAP_HOOK's value. With is_quiet
 * nothing is said about settings of the user's that have to give way. False, after one line on stderr, where it cannot be. */
bool run_set_library(const char *library, const char *mode, bool is_quiet);

/* One variable; with a NULL value, none. False, after one line on stderr. */
bool run_set(const char *name, const char *value);

/* The same for a file's name, made absolute: the program may change its folder. */
bool run_set_path(const char *name, const char *path);

/* The program takes this process's place. Returns only where that failed, after one line on stderr: the exit code. */
int run_become(char **program);

/* ---- run_conf.c ---- */

/* PyTorch's allocator settings with its asynchronous backend, and without the options that its own allocator alone has.
 * `merged` has RUN_PATH_BYTES; `dropped` too: the names of the options left out, "" where none was. False where it is
 * too long. */
bool run_merge_conf(const char *conf, char *merged, char *dropped);

/* ---- run_verified.c ---- */

/* What tells one program from another: its command line, and the contents of the files named there. */
uint64_t run_identity(const char *library, char *const *program);

/* `neap verify` has passed for it; remembers that it has. False, after one line on stderr, where it could not. */
bool run_is_verified(uint64_t identity);
bool run_remember_verified(uint64_t identity, char *const *program);

#endif
