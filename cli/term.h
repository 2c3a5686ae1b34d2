/* term.h: what depends on whether a person is watching: colour, bars, progress. */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include <stdbool.h>
#include <stdint.h>

typedef enum term_style { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_GOOD, TERM_WARN } term_style;

/* Called once, before anything is printed: standard streams that are closed are made to fail, a closed pipe and a limit of
 * a file's size become write errors, and the locale's character set is taken. */
void term_begin(void);

/* Before another program takes this one's place: signals and streams are as term_begin found them. */
void term_leave(void);

/* Pushes out standard output; false, with one line on stderr, where anything could not be written. */
bool term_end(void);

bool term_is_utf8(void); /* the locale's character set is */

/* Escape sequences, empty where stdout is no terminal, NO_COLOR is set, or TERM is "dumb". */
const char *term_on(term_style style);
const char *term_off(term_style style);

/* A bar of `fraction` (0 to 1) of `width` columns, in `text` (4 * width + 1 bytes at least). Eighths of a column where
 * the locale is UTF-8, '#' otherwise. */
const char *term_bar(double fraction, unsigned width, char *text);

/* One line on stderr that is overwritten by the next; nothing where stderr is no terminal. */
void term_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void term_progress_clear(void);

/* While on: the first Ctrl-C is only noted (term_interrupted), the second ends the program. */
void term_catch_interrupt(bool on);
bool term_interrupted(void);

#endif
