/* check_period.h: whether a period says the truth about its trace. */
#ifndef NEAP_CHECK_PERIOD_H
#define NEAP_CHECK_PERIOD_H

#include "trace/period.h"

/* Asserts that the period is valid, that it repeats through its run, and that its lives add up at every time to the load
 * replayed from the trace (less what the run has leaked). */
void check_period(const np_period *period);

/* The trace tests/data/traces/<name>.neap.gz, or the one among the recordings; NULL where it is not there. */
neap_trace *read_recording(const char *name);

#endif
