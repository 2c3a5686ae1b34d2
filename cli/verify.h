/* verify.h: what the files behind `neap verify` share: one run of the program, how two differ, and the search for the
 * launch and the block that make the difference. */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "run.h"

typedef struct verify_request {
    char **program;
    const char *library;
    const char *keep; /* folder for what the runs print; NULL: none */
    unsigned n_runs;  /* so far */
} verify_request;

/* What the library poisons; all of it where end is UINT64_MAX. */
typedef struct verify_range {
    uint64_t first;
    uint64_t end;
} verify_range;

/* One run, and what the library told of it ("neap-verify: ..." on stderr). */
typedef struct verify_output {
    int status; /* as waitpid has it */
    FILE *out;
    FILE *err;
    bool has_told;
    uint64_t n_launches;
    uint64_t n_blocks;
    char kernel[512]; /* of a single launch; "" where there was none */
    uint64_t block_bytes;
    char failure[200]; /* why the library could not go on; "" where it could */
} verify_output;

/* ---- verify_run.c ---- */

/* Plainly, as if there were no neap. False, after one line on stderr, where it could not be begun, or was interrupted. */
bool verify_run_plain(verify_request *request, verify_output *output);

/* With what lies outside the parameters of each launch taken away, for these launches and blocks. */
bool verify_run_poisoned(verify_request *request, verify_range launches, verify_range blocks, verify_output *output);

void verify_close(verify_output *output);

const char *verify_status_text(int status, char text[64]); /* "exit code 3", "signal 11 (Segmentation fault)" */

/* ---- verify_compare.c ---- */

typedef struct verify_difference {
    bool is_status; /* they ended differently; the rest is not looked at */
    uint64_t line;  /* the first that differs, from 1 on */
    char first[200];
    char second[200];
} verify_difference;

/* True where they are alike. */
bool verify_compare(const verify_output *a, const verify_output *b, verify_difference *difference);

uint64_t verify_count_lines(const verify_output *output);
void verify_print_tail(const verify_output *output, FILE *file); /* the last lines of its stderr */

/* ---- verify_search.c ---- */

typedef struct verify_culprit {
    uint64_t launch;
    uint64_t block;
    uint64_t block_bytes; /* 0: the library did not say */
    char kernel[512];     /* "": the same */
    bool is_alone;        /* the launch makes a difference without those before it */
} verify_culprit;

/* With everything poisoned the program differs from `plain`; with nothing, in `bare`, it does not. False, after one line on stderr, where a run could not be. */
bool verify_find_culprit(verify_request *request, const verify_output *plain, const verify_output *bare,
                         verify_culprit *culprit);

#endif
