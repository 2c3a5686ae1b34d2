/* without.c: a driver that lacks one function, for the message that names it. What it has does nothing. Which one is
 * missing is said by the build: -DcuMemUnmap=cuMemUnmap_missing. */
#include "device/cuda_driver.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* gcc does not mind those that a macro names, clang does */

#define STUB(need, field, symbol, parameters) \
    np_cu_result symbol parameters            \
    {                                         \
        return NP_CU_UNKNOWN;                 \
    }
NP_CUDA_SYMBOLS(STUB)
