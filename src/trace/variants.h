/* variants.h: the iterations inside a period that has several. */
#ifndef NP_TRACE_VARIANTS_H
#define NP_TRACE_VARIANTS_H

#include "trace/period.h"

/* Fills the variants of a period whose run and origin are known. */
neap_status np_variants_make(np_period *period);

#endif
