/* help.h: what `neap` says of itself. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

void help_print_overview(FILE *file);
void help_print_overview_json(void);

#endif
