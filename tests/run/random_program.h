/* random_program.h: programs made at random, run on a device, every block checked at every access.
 *
 * A program is a loop (random_loop.h), or two that take turns, with departures: things it does in one iteration and not in
 * others. What it does is legal always: streams are ordered where they share a block, and only live blocks are used. All
 * follows from the settings, and those from a seed; but where planning has a thread of its own, or stops by the clock,
 * when plans begin does not. */
#ifndef TESTS_RUN_RANDOM_PROGRAM_H
#define TESTS_RUN_RANDOM_PROGRAM_H

#include "device/faulty.h"
#include "neap.h"

typedef struct random_settings {
    uint64_t seed;
    bool is_sim;
    uint32_t n_streams;
    uint32_t n_threads; /* of the host, each with a loop of its own */
    uint64_t page_bytes;
    double memory_share;      /* of what the loop needs: the device's memory; 0: plenty */
    double limit_share;       /* of the peak load, as an option; 0: none */
    double limit_bytes_share; /* of what the loop needs, as a limit in bytes from the start on; 0: none */
    double plan_seconds;
    bool learns_at_once;      /* in the caller, so that plans come at once */
    bool is_valid_each_event; /* walks the manager after every event, */
    bool is_valid_each_lap;   /* or after every iteration */
    bool all_words;           /* looks at every word of every block */
    bool watches_memory;      /* the library's host memory is test_memory */
    bool is_steady;           /* no departures, and one loop */
    bool is_plain;            /* nothing is planned */
    bool builds;              /* what lasts are many blocks of odd sizes, malloc'd in a row, and now and then again */
    bool is_cuda;             /* on a cuda device, over the stand-in driver: in place of the cpu */
    bool refines;             /* plans are tried and changed as the program runs */
    bool is_beneath;          /* uses are what was seen, and there is more (random_beneath.h); */
    uint32_t margin;          /* see np_beneath_begin */
    double overhead;          /* the same */
    uint32_t beneath_from;    /* iteration; plans from before it have swaps at once, without laps measured first */
    bool uses_cache;          /* it runs twice, and plans are kept from the first time to the second */
    faulty_plan faults;       /* calls 0: none */
    bool tries_again;         /* where a call fails with a fault, until it does not; otherwise it goes without */
    size_t memory_fails_at;   /* the n-th allocation of host memory fails, counted from 1; 0: none does, */
    uint32_t n_memory_fails;  /* and so do all after it, until so many calls of the library have failed; 0: it alone */
    bool is_loud;             /* prints what it does */
} random_settings;

typedef struct random_outcome {
    bool is_good;
    char text[1024];   /* what was wrong */
    bool has_planned;  /* it ran an iteration on a plan, */
    bool has_swapped;  /* with swaps, */
    bool has_departed; /* left it, */
    bool has_resumed;  /* and was back on one later */
    bool has_several;  /* more than one pattern was followed */
    bool has_loaded;   /* a plan came from the cache */
    uint64_t n_events;
    uint64_t n_visits;     /* of what was away */
    uint64_t n_late;       /* uses that no plan expected, of what was there */
    uint64_t n_blurred;    /* uses made up */
    uint64_t n_home;       /* times that everything came home */
    uint64_t n_strays;     /* pieces of work that were no events, on a plan */
    uint64_t n_full;       /* calls that gave NEAP_DEVICE_FULL */
    uint64_t n_faults;     /* calls of the device that were made to fail */
    uint64_t n_failed;     /* calls of the library that failed with them, or with host memory */
    size_t n_memory_calls; /* allocations of host memory, where it is watched */
    size_t n_memory_fails; /* of them, made to fail */
} random_outcome;

random_settings random_settings_make(uint64_t seed);

void random_program_run(const random_settings *settings, random_outcome *outcome);

#endif
