/* real.c: writing is the C library's, with whatever it has for a point replaced; reading is by hand.
 *
 * The first 19 digits are a whole number of 64 bits, those after them only count: the result is that number, times or
 * divided by a power of ten, in a long double. So it is the nearest double or, rarely, its neighbour. */
#include "base/real.h"

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DIGITS = 19,
    MOST_EXPONENT = 1000000, /* as far as is counted */
    FAR_EXPONENT = 1000,     /* no double is so large, with any 19 digits, nor so small */
};

/* ---- writing ---- */

/* Any bytes that belong to no number are the locale's point. */
static void put_point(char *text)
{
    size_t begin = strspn(text, "+-0123456789eE");
    size_t n = strcspn(text + begin, "0123456789");
    if (n > 0 && text[begin + n]) {
        text[begin] = '.';
        memmove(text + begin + 1, text + begin + n, strlen(text + begin + n) + 1);
    }
}

np_real_text np_real_fixed(double value, int n_decimals)
{
    np_real_text made;
    (void)snprintf(made.text, sizeof made.text, "%.*f", n_decimals, value);
    put_point(made.text);
    return made;
}

np_real_text np_real_digits(double value, int n_digits)
{
    np_real_text made;
    (void)snprintf(made.text, sizeof made.text, "%.*g", n_digits, value);
    put_point(made.text);
    return made;
}

np_real_text np_real_shortest(double value)
{
    np_real_text made;
    int n_digits = 6;
    do { /* written and read in the same locale, whatever it is */
        (void)snprintf(made.text, sizeof made.text, "%.*g", n_digits, value);
    } while (n_digits++ < DBL_DECIMAL_DIG && !(strtod(made.text, NULL) == value));
    put_point(made.text);
    return made;
}

/* ---- reading ---- */

typedef struct number {
    uint64_t digits;
    int n_digits; /* from the first that is not 0 */
    int exponent; /* of ten */
} number;

static bool is_digit(const char *text, size_t n, size_t i)
{
    return i < n && text[i] >= '0' && text[i] <= '9';
}

/* The digits from i on; returns where they end. */
static size_t take_digits(const char *text, size_t n, size_t i, bool are_decimals, number *x)
{
    for (; is_digit(text, n, i); i++) {
        bool is_taken = x->n_digits < MOST_DIGITS;
        if (is_taken) {
            x->digits = x->digits * 10 + (uint64_t)(text[i] - '0');
            x->n_digits += x->digits > 0;
        }
        if (is_taken == are_decimals && x->exponent > -MOST_EXPONENT && x->exponent < MOST_EXPONENT) {
            x->exponent += are_decimals ? -1 : 1;
        }
    }
    return i;
}

/* "e3", "E-5" at i; returns where it ends: i where there is none. */
static size_t take_exponent(const char *text, size_t n, size_t i, number *x)
{
    size_t at = i + 1;
    int exponent = 0;
    bool is_negative = at < n && text[at] == '-';
    if (i >= n || (text[i] != 'e' && text[i] != 'E')) {
        return i;
    }
    at += at < n && (text[at] == '-' || text[at] == '+');
    if (!is_digit(text, n, at)) {
        return i;
    }
    for (; is_digit(text, n, at); at++) {
        exponent = exponent < MOST_EXPONENT ? exponent * 10 + (text[at] - '0') : exponent;
    }
    x->exponent += is_negative ? -exponent : exponent;
    return at;
}

static long double scaled(const number *x)
{
    int n = x->exponent < 0 ? -x->exponent : x->exponent;
    long double factor = 10;
    long double power = 1;
    for (n = n < FAR_EXPONENT ? n : FAR_EXPONENT; n > 0; n /= 2) {
        power *= n % 2 ? factor : 1;
        factor *= factor;
    }
    return x->exponent < 0 ? (long double)x->digits / power : (long double)x->digits * power;
}

size_t np_real_read(const char *text, size_t n, double *value)
{
    number x = {0};
    size_t end = take_digits(text, n, 0, false, &x);
    if (end == 0) {
        return 0;
    }
    if (end < n && text[end] == '.' && is_digit(text, n, end + 1)) {
        end = take_digits(text, n, end + 1, true, &x);
    }
    end = take_exponent(text, n, end, &x);
    long double result = x.digits ? scaled(&x) : 0;
    if (!(result <= (long double)DBL_MAX)) {
        return 0;
    }
    *value = (double)result;
    return end;
}
