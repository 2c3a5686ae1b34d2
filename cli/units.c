/* units.c: sizes are parsed in integers, so that what is asked for is what is used: 0.1GB is 100,000,000 bytes. Six
 * digits after the point count; a rest below a byte is dropped. */
#include "units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct unit {
    const char *name;
    uint64_t bytes;
} units[] = {
    {"", 1},
    {"B", 1},
    {"k", 1000}, /* as kB: 8G is 8GB */
    {"M", 1000000},
    {"G", 1000000000},
    {"T", 1000000000000},
    {"kB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
};

static bool find_unit(const char *name, uint64_t *bytes)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcasecmp(units[i].name, name) == 0) {
            *bytes = units[i].bytes;
            return true;
        }
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits at *text into value; false on overflow. No digits give 0. */
static bool read_digits(const char **text, uint64_t *value)
{
    *value = 0;
    for (; is_digit(**text); (*text)++) {
        uint64_t digit = (uint64_t)(**text - '0');
        if (*value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        *value = *value * 10 + digit;
    }
    return true;
}

bool units_parse_size(const char *text, uint64_t *bytes)
{
    uint64_t whole;
    if (!is_digit(*text) || !read_digits(&text, &whole)) {
        return false;
    }
    const char *fraction = NULL;
    if (*text == '.') {
        fraction = ++text;
        while (is_digit(*text)) {
            text++;
        }
        if (text == fraction) {
            return false;
        }
    }
    while (*text == ' ') {
        text++;
    }
    uint64_t unit;
    if (!find_unit(text, &unit) || whole > UINT64_MAX / unit) {
        return false;
    }
    uint64_t sum = whole * unit;
    uint64_t rest = 0; /* the fraction's digits as a number, of `scale` */
    uint64_t scale = 1;
    for (; fraction && is_digit(*fraction) && scale < 1000000; fraction++) {
        rest = rest * 10 + (uint64_t)(*fraction - '0');
        scale *= 10;
    }
    uint64_t part = rest * unit / scale; /* below 10^6 * 2^40 */
    if (sum > UINT64_MAX - part) {
        return false;
    }
    *bytes = sum + part;
    return true;
}

bool units_binary_form(const char *text, char *binary, uint64_t *bytes)
{
    size_t n = strlen(text);
    bool is_letter = n > 1 && n + 3 < UNITS_CHARS && strchr("kKmMgGtT", text[n - 1]);
    if (!is_letter) {
        return false;
    }
    char letter = (char)(text[n - 1] & ~0x20); /* in capitals */
    (void)snprintf(binary, UNITS_CHARS, "%.*s%ciB", (int)(n - 1), text, letter);
    return units_parse_size(binary, bytes);
}

bool units_parse_uint(const char *text, uint64_t *value)
{
    uint64_t parsed;
    if (!is_digit(*text) || !read_digits(&text, &parsed) || *text != '\0') {
        return false;
    }
    *value = parsed;
    return true;
}

/* The finite number of 0 or more at *text, which is moved behind it. */
static bool read_real(const char **text, double *value)
{
    if (!is_digit(**text) && **text != '.') {
        return false; /* no spaces, signs, "inf" or "nan" */
    }
    char *end;
    errno = 0;
    double parsed = strtod(*text, &end);
    if (end == *text || errno != 0 || !isfinite(parsed) || parsed < 0) {
        return false;
    }
    *text = end;
    *value = parsed;
    return true;
}

bool units_parse_seconds(const char *text, double *seconds)
{
    double parsed;
    if (!read_real(&text, &parsed) || (*text == 's' ? text[1] : *text) != '\0') {
        return false;
    }
    *seconds = parsed;
    return true;
}

bool units_parse_ratio(const char *text, double *ratio)
{
    double parsed;
    if (!read_real(&text, &parsed) || *text != '\0') {
        return false;
    }
    *ratio = parsed;
    return true;
}

bool units_parse_share(const char *text, double *share)
{
    const char *begin = text;
    double parsed;
    if (!read_real(&text, &parsed)) {
        return false;
    }
    bool is_fraction = memchr(begin, '.', (size_t)(text - begin)) && parsed <= 1;
    text += strspn(text, " ");
    if (strcmp(text, "%") != 0 && !(*text == '\0' && is_fraction)) {
        return false;
    }
    *share = *text ? parsed / 100 : parsed;
    return true;
}

size_t units_parse_speeds(const char *text, double speeds[UNITS_SPEEDS_MAX])
{
    static const struct {
        const char *name;
        double gbs;
    } speed_units[] = {{"", 1}, {"MB/s", 1e-3}, {"GB/s", 1}, {"TB/s", 1e3}};
    double parsed[UNITS_SPEEDS_MAX];
    size_t n = 0;
    do {
        if (n == UNITS_SPEEDS_MAX || !read_real(&text, &parsed[n]) || !(parsed[n] > 0)) {
            return 0;
        }
        n++;
    } while (*text == '/' && text++);
    text += strspn(text, " ");
    for (size_t i = 0; i < sizeof speed_units / sizeof speed_units[0]; i++) {
        if (strcasecmp(speed_units[i].name, text) == 0) {
            for (size_t k = 0; k < n; k++) {
                speeds[k] = parsed[k] * speed_units[i].gbs;
            }
            return n;
        }
    }
    return 0;
}

const char *units_bytes(uint64_t bytes, char *text)
{
    if (bytes < 1000) {
        (void)snprintf(text, UNITS_CHARS, "%u B", (unsigned)bytes);
    } else if (bytes < 100000) {
        (void)snprintf(text, UNITS_CHARS, "%.1f kB", (double)bytes / 1e3);
    } else if (bytes < 10000000) {
        (void)snprintf(text, UNITS_CHARS, "%.3f MB", (double)bytes / 1e6);
    } else {
        (void)snprintf(text, UNITS_CHARS, "%.1f MB", (double)bytes / 1e6);
    }
    return text;
}

const char *units_count(uint64_t count, char *text)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    char *out = text;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) {
            *out++ = ',';
        }
        *out++ = digits[i];
    }
    *out = '\0';
    return text;
}

const char *units_seconds(double seconds, char *text)
{
    if (seconds < 0.001) {
        (void)snprintf(text, UNITS_CHARS, "%.0f us", seconds * 1e6);
    } else if (seconds < 1) {
        (void)snprintf(text, UNITS_CHARS, "%.1f ms", seconds * 1e3);
    } else {
        (void)snprintf(text, UNITS_CHARS, "%.2f s", seconds);
    }
    return text;
}

const char *units_share(double share, char *text)
{
    double percent = share * 100;
    (void)snprintf(text, UNITS_CHARS, "%.2f %%", percent < 0 && percent > -0.005 ? 0.0 : percent);
    return text;
}
