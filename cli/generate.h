/* generate.h: what the build makes of the option tables and topics: nothing about an option is written twice.
 *
 * Each prints to standard output whatever verbs there are in all_verbs. */
#ifndef CLI_GENERATE_H
#define CLI_GENERATE_H

#include "options.h"

/* A completion script for a shell. */
void completion_bash(void);
void completion_zsh(void);
void completion_fish(void);

/* neap(1), or neap-VERB(1). NULL: of the command. */
void man_print(const verb *v);

/* The table of a verb's options, as docs/cli.md has it. */
void markdown_print(const verb *v);

#endif
