/* random_beneath.h: what a random program does where neap runs beneath it (random_settings.is_beneath): uses that are more
 * and fewer than usual, everything brought home, and blocks fixed, at any moment. What is fixed is looked at after every
 * event: it is there, and where its pages are others' too, on the same pages. */
#ifndef TESTS_RUN_RANDOM_BENEATH_H
#define TESTS_RUN_RANDOM_BENEATH_H

#include "run/random_actor.h"

/* Changes the uses of an exec that is about to be given; returns how many there are then. */
uint32_t actor_blur_uses(actor *a, shadow_use *uses, uint32_t n);

/* From here on neap is beneath the program. */
void actor_go_beneath(actor *a);

/* Between two steps: something, or nothing. */
void actor_disturb(actor *a);

/* After an event: is all that was fixed still there? */
void actor_look_at_fixed(actor *a);
void actor_forget_fixed(actor *a, const neap_block *block); /* it is about to be freed */

#endif
