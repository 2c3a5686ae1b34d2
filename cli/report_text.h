/* report_text.h: the page's own text, before and after the data. The bytes are made from cli/page/ by the build. */
#ifndef CLI_REPORT_TEXT_H
#define CLI_REPORT_TEXT_H

#include <stddef.h>

extern const unsigned char report_text_head[];
extern const size_t report_text_head_bytes;
extern const unsigned char report_text_tail[];
extern const size_t report_text_tail_bytes;

#endif
