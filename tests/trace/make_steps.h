/* make_steps.h: programs that repeat themselves, made at random, as the detector sees them: loops within loops, blocks
 * that live inside them or across their ends, leaks, noise before and after. The literal detector tells what is right. */
#ifndef NEAP_MAKE_STEPS_H
#define NEAP_MAKE_STEPS_H

#include "base/rng.h"
#include "trace/detect.h"

typedef struct steps {
    np_step *items;
    uint64_t *bytes; /* of a malloc or free, else 0 */
    size_t n;
    size_t capacity;
} steps;

void steps_free(steps *s);
void steps_add(steps *s, np_step step, uint64_t bytes);

/* A random program of about n events. */
steps steps_make_random(uint64_t seed, size_t n);

/* Strings of execs: each letter of the text is one name. */
steps steps_make_text(const char *text, size_t n);

/* The definition of detect.h taken at its word, in quadratic time. */
typedef struct naive naive;
naive *naive_create(const steps *s);
void naive_free(naive *detector);
void naive_feed(naive *detector); /* the next of the steps */
bool naive_current(naive *detector, np_run *run);
/* `longest`: the longest run, where `best` may be of its iterations. */
void naive_best(naive *detector, np_run *best, np_run *longest);

#endif
