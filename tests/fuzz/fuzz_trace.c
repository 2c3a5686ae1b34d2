/* fuzz_trace.c: any bytes given to the reader, gzip'd ones too. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    neap_trace *trace = fuzz_parse(data, n);
    if (trace && !neap_trace_is_csv(trace)) {
        fuzz_round_trip(trace);
    }
    neap_trace_free(trace);
    return 0;
}
