/* plan_file.h: patterns with their plans, kept in a file from one run of a program to the next.
 *
 * A plan is good for the program it was made for and nothing else. Every file therefore says where it comes from, its
 * *origin*: the library, the machine, the program with its command line, the device and what was asked of it. A file of
 * another origin is refused, and so is one that is damaged; the program then learns its plan anew.
 *
 * What a file holds is not trusted. It is read within bounds, every index is looked at, and a program is taken only if
 * it fits the device (np_plan_fits) and passes the independent check of program_check.c: no file can make the manager
 * touch memory that is not its own. docs/plan-format.md has the format. */
#ifndef NP_RUN_PLAN_FILE_H
#define NP_RUN_PLAN_FILE_H

#include "device/device.h"
#include "run/pattern.h"

enum {
    NP_PLAN_FORMAT = 1,         /* the number of the format; a file of any other is refused */
    NP_PLAN_PATH_BYTES = 4096,  /* of a path, with its '\0' */
    NP_PLAN_MAX_PATTERNS = 256, /* in a file */
};

#define NP_PLAN_MAX_BYTES ((uint64_t)1 << 30) /* of a file */

typedef struct np_plan_origin {
    char version[32];                 /* of neap */
    char machine[256];                /* host name */
    char program[NP_PLAN_PATH_BYTES]; /* path of the executable */
    uint64_t command;                 /* hash of the command line */
    char device[32];                  /* kind: "cpu", "sim" */
    uint64_t page_bytes;              /* a power of two */
    uint32_t n_pages;                 /* that the device has */
    uint32_t n_streams;               /* of the program */
    uint64_t limit;                   /* bytes, as asked for; 0: limit_share */
    double limit_share;
    uint64_t min_block;
    uint64_t seed;
    neap_link link; /* out_gbs 0: not known, and not compared */
} np_plan_origin;

/* ---- origin: plan_origin.c ---- */

/* This process on this device. `options` as they are in effect; `link` may be NULL. NEAP_IO where the system does not
 * say what program this is: then there is no place for its plans either. */
neap_status np_plan_origin_make(const np_device *device, const neap_device_options *options, const neap_link *link,
                                neap_error *error, np_plan_origin *origin);

/* NEAP_OK, or NEAP_BAD_INPUT and the first thing that differs: "made by neap 0.1.0, this is 0.2.0". Speeds of links are
 * measured, and may differ by a factor of two. */
neap_status np_plan_origin_compare(const np_plan_origin *made, const np_plan_origin *here, neap_error *error);

/* A file in the folder: "FOLDER/train-0123456789abcdef.neap-plan". The number stands for all of the origin but the
 * version, whose files take each other's place, and the link. NEAP_TOO_LARGE: the path is too long. */
neap_status np_plan_file_name(const np_plan_origin *origin, const char *folder, neap_error *error,
                              char path[NP_PLAN_PATH_BYTES]);

/* ---- files: plan_file.c ---- */

/* Puts the patterns where the path says, in place of what was there. Its folder is made where it is missing (not the
 * folders above). `limit_used`: what the plans keep to, in bytes, a page at
 * least; 0: no limit. NEAP_IO: nothing was changed or left
 * behind, and `error` says why. Several processes may save to the same path: the last one's file is there in the end. */
neap_status np_plan_file_save(const char *path, const np_plan_origin *origin, uint64_t limit_used,
                              const np_pattern *const *patterns, size_t n_patterns, const neap_memory *memory,
                              neap_error *error);

/* The patterns of a file, `capacity` at most, to be freed with np_pattern_free. NEAP_IO with an empty text: there is no
 * such file. NEAP_BAD_INPUT: it is of another origin, or no plan file, or damaged, and `error` says which. */
neap_status np_plan_file_load(const char *path, const np_plan_origin *expected, const neap_memory *memory,
                              neap_error *error, uint64_t *limit_used, np_pattern **patterns, size_t capacity,
                              size_t *n_patterns);

/* The same from bytes in memory; `name` stands for the file in messages. */
neap_status np_plan_file_parse(const void *bytes, size_t n_bytes, const char *name, const np_plan_origin *expected,
                               const neap_memory *memory, neap_error *error, uint64_t *limit_used,
                               np_pattern **patterns, size_t capacity, size_t *n_patterns);

#endif
