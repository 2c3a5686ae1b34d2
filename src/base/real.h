/* real.h: numbers with a decimal point as text, and back. printf and strtod have the program's locale, in which the point
 * may be a comma: what goes to a file, to a message or comes from the environment is made and read here instead. */
#ifndef NP_BASE_REAL_H
#define NP_BASE_REAL_H

#include <stddef.h>

enum { NP_REAL_CHARS = 400 }; /* the largest double in full, with some 80 decimals; more are cut off */

typedef struct np_real_text {
    char text[NP_REAL_CHARS];
} np_real_text;

/* As "%.*f" and "%.*g" have it in the C locale. The shortest is the one of 6 digits or more that reads back as the same. A
 * text lives as long as the call that it is passed to: np_log(..., "%s ms", np_real_fixed(ms, 3).text). */
np_real_text np_real_fixed(double value, int n_decimals);
np_real_text np_real_digits(double value, int n_digits);
np_real_text np_real_shortest(double value);

/* "12", "1.5", "2e-3" at the start of n bytes: how many of them belong to the number. 0 where there is none, or one that no
 * double holds; there is no sign, no space before it, and a digit on both sides of a point. */
size_t np_real_read(const char *text, size_t n, double *value);

#endif
