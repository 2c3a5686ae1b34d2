/* export_events.c: one event a line of Chrome's JSON trace format, which Perfetto reads.
 *
 * Times are microseconds with three decimals there, and nanoseconds here. */
#include <inttypes.h>

#include "export.h"
#include "units.h"

/* Names come from traces: whatever they are, this is a JSON string. */
static void put_text(FILE *file, const char *text)
{
    (void)fputc('"', file);
    for (const char *at = text; *at; at++) {
        if (*at == '"' || *at == '\\') {
            (void)fputc('\\', file);
        }
        (void)fputc(*at >= ' ' && *at <= '~' ? *at : '?', file);
    }
    (void)fputc('"', file);
}

static void put_time(FILE *file, const char *key, uint64_t ns)
{
    (void)fprintf(file, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

/* Everything up to the members that not every event has. */
static void open_event(perfetto *out, char phase, int process, const char *name)
{
    (void)fprintf(out->file, "%s{\"ph\":\"%c\",\"pid\":%d,\"name\":", out->n_events ? ",\n" : "", phase, process);
    put_text(out->file, name);
    out->n_events++;
}

void perfetto_begin(perfetto *out, FILE *file)
{
    *out = (perfetto){.file = file};
    (void)fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file);
}

void perfetto_end(perfetto *out)
{
    (void)fputs("\n]}\n", out->file);
}

void perfetto_name(perfetto *out, int process, int lane, const char *name, int rank)
{
    bool is_lane = lane != PERFETTO_NO_THREAD;
    for (int is_rank = 0; is_rank < 2; is_rank++) {
        open_event(out, 'M', process,
                   is_lane ? (is_rank ? "thread_sort_index" : "thread_name")
                           : (is_rank ? "process_sort_index" : "process_name"));
        if (is_lane) {
            (void)fprintf(out->file, ",\"tid\":%d", lane);
        }
        if (is_rank) {
            (void)fprintf(out->file, ",\"args\":{\"sort_index\":%d}}", rank);
        } else {
            (void)fputs(",\"args\":{\"name\":", out->file);
            put_text(out->file, name);
            (void)fputs("}}", out->file);
        }
    }
}

void perfetto_slice(perfetto *out, int process, int lane, const char *name, uint64_t start_ns, uint64_t end_ns,
                    uint32_t event, uint64_t bytes)
{
    open_event(out, 'X', process, name);
    (void)fprintf(out->file, ",\"tid\":%d", lane);
    put_time(out->file, "ts", start_ns);
    put_time(out->file, "dur", end_ns - start_ns);
    (void)fputs(",\"args\":{", out->file);
    if (event != NEAP_NEVER) {
        (void)fprintf(out->file, "\"event\":%" PRIu32 "%s", event, bytes ? "," : "");
    }
    if (bytes) {
        (void)fprintf(out->file, "\"bytes\":%" PRIu64, bytes);
    }
    (void)fputs("}}", out->file);
}

void perfetto_counter(perfetto *out, int process, const char *name, uint64_t at_ns, uint64_t bytes)
{
    open_event(out, 'C', process, name);
    put_time(out->file, "ts", at_ns);
    (void)fprintf(out->file, ",\"args\":{\"bytes\":%" PRIu64 "}}", bytes);
}

/* The viewer puts lives of one name on the same rows where they do not overlap: blocks of a size share theirs. */
void perfetto_life(perfetto *out, int process, bool is_begin, const neap_trace_block *block, uint64_t at_ns)
{
    char size[UNITS_CHARS];
    char name[UNITS_CHARS + 8];
    (void)snprintf(name, sizeof name, "%s block", units_bytes(block->bytes, size));
    open_event(out, is_begin ? 'b' : 'e', process, name);
    (void)fprintf(out->file, ",\"cat\":\"block\",\"id\":\"0x%" PRIx64 "\",\"tid\":0", block->id);
    put_time(out->file, "ts", at_ns);
    if (is_begin) {
        (void)fprintf(out->file, ",\"args\":{\"block\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", block->id, block->bytes);
    }
    (void)fputs("}", out->file);
}
