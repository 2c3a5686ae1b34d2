/* fuzz_csv.c: any rows given to the CSV importer. The first byte chooses the header, so that most inputs get past it. */
#include "fuzz.h"

static const char *const headers[] = {
    "id,lower,upper,size\n",
    "id,lower,upper,size,offset\n",
    "offset, size ,upper,lower,id\r\n",
    "",
};

static bool has_fixed_offset(const neap_trace *trace)
{
    for (size_t i = 0; i < trace->blocks.n; i++) {
        if (trace->blocks.items[i].fixed_offset != NEAP_NO_OFFSET) {
            return true;
        }
    }
    return false;
}

/* Without fixed offsets it is a trace like any other, but for the mark that it is a CSV. */
static void check(neap_trace *trace)
{
    fuzz_text text = {0};
    if (has_fixed_offset(trace)) {
        FUZZ_ASSERT(np_write_text(trace, fuzz_put, &text, NULL) == NEAP_BAD_ARGUMENT);
        FUZZ_ASSERT(text.n == 0);
        return;
    }
    trace->is_csv = false;
    fuzz_round_trip(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *header = headers[n ? data[0] % 4 : 3];
    size_t n_header = strlen(header);
    size_t n_rows = n ? n - 1 : 0;
    uint8_t *text = malloc(n_header + n_rows + 1);
    neap_trace *trace;

    FUZZ_ASSERT(text != NULL);
    memcpy(text, header, n_header);
    if (n_rows) {
        memcpy(text + n_header, data + 1, n_rows);
    }
    trace = fuzz_parse(text, n_header + n_rows);
    if (trace && neap_trace_is_csv(trace)) {
        check(trace);
    }
    neap_trace_free(trace);
    free(text);
    return 0;
}
