#ifndef TESTS_STANDIN_CUPTI_NAMES_H
#define TESTS_STANDIN_CUPTI_NAMES_H

#include <stddef.h>

extern const char *const driver_names[];
extern const size_t n_driver_names;

#endif
