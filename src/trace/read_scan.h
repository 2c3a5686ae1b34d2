/* read_scan.h: fields of one line. Inline, because a trace is little else.
 *
 * The byte at `end` can be read and is no digit and no blank (source.h). */
#ifndef NP_TRACE_READ_SCAN_H
#define NP_TRACE_READ_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct np_scan {
    const char *at;
    const char *end;
} np_scan;

static inline bool np_scan_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Moves over blanks; false if there is none. */
static inline bool np_scan_blanks(np_scan *scan)
{
    const char *begin = scan->at;
    while (np_scan_is_blank(*scan->at)) {
        scan->at++;
    }
    return scan->at != begin;
}

static inline bool np_scan_at_end(const np_scan *scan)
{
    return scan->at == scan->end;
}

/* Moves over decimal digits. False, and unmoved, where there is none or the number does not fit in 64 bits. */
static inline bool np_scan_number(np_scan *scan, uint64_t *number)
{
    const char *at = scan->at;
    uint64_t value = 0;
    for (;; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';
        if (digit > 9) {
            break;
        }
        if (value >= UINT64_MAX / 10 && (value > UINT64_MAX / 10 || digit > UINT64_MAX % 10)) {
            return false;
        }
        value = 10 * value + digit;
    }
    if (at == scan->at) {
        return false;
    }
    scan->at = at;
    *number = value;
    return true;
}

/* Moves over everything up to a blank or a control character (the line's end is one). The number of bytes. */
static inline size_t np_scan_field(np_scan *scan)
{
    const char *begin = scan->at;
    while (scan->at != scan->end && (unsigned char)*scan->at > ' ') {
        scan->at++;
    }
    return (size_t)(scan->at - begin);
}

/* Bytes up to the next blank, for messages. */
static inline size_t np_scan_found(const np_scan *scan)
{
    const char *at = scan->at;
    while (at != scan->end && !np_scan_is_blank(*at)) {
        at++;
    }
    return (size_t)(at - scan->at);
}

/* Whether nothing but digits comes before the next blank: a number, if one that is too large. */
static inline bool np_scan_is_digits(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
    }
    return n > 0;
}

#endif
