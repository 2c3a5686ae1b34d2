/* svg.h: a plan as a picture: time across, addresses up, every buffer a rectangle, the load above. */
#ifndef CLI_SVG_H
#define CLI_SVG_H

#include <stdbool.h>

#include "neap.h"

/* `name` stands in the title. False, after one line on stderr, where the picture could not be written; then no file is
 * left behind. */
bool svg_write_plan(const char *path, const char *name, const neap_trace *trace, const neap_plan *plan);

#endif
