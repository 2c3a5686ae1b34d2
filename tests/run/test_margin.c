/* test_margin.c: uses widened in time, against a way of saying the same that is slow and plain. */
#include "run/margin.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "testing.h"
#include "trace/make_steps.h"

