/* printable.h: text from outside (names of files, of kernels, of devices) on a terminal. */
#ifndef CLI_PRINTABLE_H
#define CLI_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of the UTF-8 sequence at text and the character it stands for; 0 where there is no valid one. */
size_t printable_read(const char *text, uint32_t *code);

/* Does the character show as what it is? Controls do not, nor what is drawn as nothing or turns the direction of others. */
bool printable_is(uint32_t code);

/* Copies text into out (n bytes at least one of them), ended by '\0': what does not show, byte for byte as "\x1b"; where
 * the locale is not UTF-8, all but ASCII. Cut where there is no more room. Returns out. */
const char *printable(const char *text, char *out, size_t n);

#define PRINTABLE_CHARS 1024 /* enough for a line */

/* One line on stderr, "neap: " before it, made printable. */
void printable_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same on stdout, without "neap: ". */
void printable_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The file's name in bold, and an empty line: the head of every table. */
void printable_title(const char *path);

#endif
