/* units.h: bytes and counts as people write and read them. */
#ifndef CLI_UNITS_H
#define CLI_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNITS_CHARS 40 /* room for every text made here */

/* "1048576", "512MiB", "1.5 GB", "8G"; units are powers of 1000 (kB, MB, GB, TB, and k, M, G, T) or of 1024 (KiB, MiB, GiB,
 * TiB), in any case. False where the text is anything else, or the size is 2^64 bytes or more. */
bool units_parse_size(const char *text, uint64_t *bytes);

/* Of a size whose unit is one letter, which others take to be a power of 1024: the text in which that is said ("8GiB" for
 * "8G", UNITS_CHARS), and its bytes. False: it has another unit, or none. */
bool units_binary_form(const char *text, char *binary, uint64_t *bytes);

bool units_parse_uint(const char *text, uint64_t *value);

/* A finite number of 0 or more. */
bool units_parse_seconds(const char *text, double *seconds);

bool units_parse_ratio(const char *text, double *ratio); /* the same without an "s" behind it: 7.5 */
bool units_parse_share(const char *text, double *share); /* "70%", "0.5 %": 0.7, 0.005; "0.7", "1.0": 0.7, 1 */

/* "50GB/s", "13.2/12.1 GB/s", "55/55/100": up to three speeds above 0 with one unit (MB/s, GB/s or TB/s; GB/s where there
 * is none), in 10^9 bytes a second. Returns how many, 0 where the text is anything else. */
#define UNITS_SPEEDS_MAX 3
size_t units_parse_speeds(const char *text, double speeds[UNITS_SPEEDS_MAX]);

/* Each writes into text (UNITS_CHARS at least) and returns it. */
const char *units_bytes(uint64_t bytes, char *text);   /* "503.8 MB": decimal, MB from 100 kB on */
const char *units_count(uint64_t count, char *text);   /* "503,842,816" */
const char *units_seconds(double seconds, char *text); /* "12 ms", "1.30 s" */
const char *units_share(double share, char *text);     /* "29.18 %" */

#endif
