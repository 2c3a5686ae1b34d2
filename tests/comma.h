/* comma.h: a locale whose decimal point is a comma, as a program may have set it. It is made on the spot, by localedef
 * from five lines: none needs to be installed. */
#ifndef NEAP_TESTING_COMMA_H
#define NEAP_TESTING_COMMA_H

void test_comma_begin(void); /* skips the test where it cannot be made */
void test_comma_end(void);

#endif
