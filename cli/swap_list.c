/* swap_list.c: which blocks leave, when they return, and why there is time for
 * it.
 *
 * Entries of a plan may be parts of one block in one gap; people see them as
 * one. Times are those of the undisturbed iteration: execs one after the other
 * from the plan's first event, an even pause before each. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "file.h"
#include "swap.h"
#include "table.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

enum { NAME_CHARS = 28 };

typedef struct clock_face {
    uint32_t begin;  /* event of the trace that is time 0 */
    uint32_t length; /* events */
    double *end_ns;  /* [event - begin]: of an exec, when it ends; of another
                      event, when the exec before it does */
} clock_face;

static bool no_memory(void)
{
    (void)fputs("neap: host memory is exhausted\n", stderr);
    return false;
}

/* ---- when ---- */

/* iteration_ns says how long all pauses are together: what the durations leave
 * of it. */
static bool make_clock(const swap_request *request, const neap_trace *trace, double iteration_ns, clock_face *face)
{
    neap_error error = {""};
    neap_info *info;
    neap_status status = neap_info_make(trace, request->options.alignment, NULL, &error, &info);
    if (status != NEAP_OK) {
        (void)report_failure(request->path, status, &error);
        return false;
    }
    *face = (clock_face){.begin = info->cut, .length = info->period_length};
    neap_info_free(info);
    size_t n_events;
    const neap_event *events = neap_trace_events(trace, &n_events);
    face->end_ns = calloc((size_t)face->length + 1, sizeof *face->end_ns);
    if (!face->end_ns) {
        return no_memory();
    }
    double slower = request->options.slower;
    double busy_ns = 0;
    double n_execs = 0;
    for (uint32_t i = 0; i < face->length && face->begin + i < n_events; i++) {
        if (events[face->begin + i].kind == NEAP_EVENT_EXEC) {
            busy_ns += (double)events[face->begin + i].duration_ns * slower;
            n_execs++;
        }
    }
    double pause_ns = n_execs > 0 ? fmax(0, (iteration_ns - busy_ns) / n_execs) : 0;
    double now_ns = 0;
    for (uint32_t i = 0; i < face->length && face->begin + i < n_events; i++) {
        if (events[face->begin + i].kind == NEAP_EVENT_EXEC) {
            now_ns += pause_ns + (double)events[face->begin + i].duration_ns * slower;
        }
        face->end_ns[i] = now_ns;
    }
    return true;
}

static double end_of(const clock_face *face, uint32_t event)
{
    return event >= face->begin && event - face->begin < face->length ? face->end_ns[event - face->begin] : 0;
}

/* ---- parts of one gap as one ---- */

static int by_gap(const void *a, const void *b)
{
    const neap_swap_entry *x = a;
    const neap_swap_entry *y = b;
    if (x->block != y->block) {
        return x->block < y->block ? -1 : 1;
    }
    if (x->used_before != y->used_before) {
        return x->used_before < y->used_before ? -1 : 1;
    }
    return (x->back_after > y->back_after) - (x->back_after < y->back_after);
}

static int by_size(const void *a, const void *b)
{
    const neap_swap_entry *x = a;
    const neap_swap_entry *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return by_gap(a, b);
}

/* Copies the entries, the largest first, the parts of a gap added up. NULL: no
 * memory. */
static neap_swap_entry *merged_entries(const neap_swap_plan *plan, size_t *n_merged)
{
    size_t n;
    const neap_swap_entry *entries = neap_swap_entries(plan, &n);
    neap_swap_entry *merged = calloc(n + 1, sizeof *merged);
    if (!merged) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        merged[i] = entries[i];
    }
    qsort(merged, n, sizeof *merged, by_gap);
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        neap_swap_entry *last = n_kept > 0 ? &merged[n_kept - 1] : NULL;
        if (last && last->block == merged[i].block && last->used_before == merged[i].used_before) {
            last->bytes += merged[i].bytes;
            last->copies_ns += merged[i].copies_ns;
        } else {
            merged[n_kept++] = merged[i];
        }
    }
    qsort(merged, n_kept, sizeof *merged, by_size);
    *n_merged = n_kept;
    return merged;
}

/* ---- for people ---- */

static const char *milliseconds(double ns, char *text)
{
    (void)snprintf(text, UNITS_CHARS, "%.2f ms", ns * 1e-6);
    return text;
}

static void row_of_swap(table *t, const neap_trace *trace, const clock_face *face, const neap_swap_entry *entry)
{
    size_t n;
    const neap_trace_block *block = &neap_trace_blocks(trace, &n)[entry->block];
    const neap_event *events = neap_trace_events(trace, &n);
    double leaves_ns = end_of(face, entry->used_before);
    char id[UNITS_CHARS];
    char bytes[2 * UNITS_CHARS];
    char whole[UNITS_CHARS];
    char part[UNITS_CHARS];
    char leaves[UNITS_CHARS];
    char returns[UNITS_CHARS];
    char gap[UNITS_CHARS];
    char copies[UNITS_CHARS];
    char before[NAME_CHARS + 1];
    char after[NAME_CHARS + 8];
    bool is_next = entry->used_after <= entry->used_before;
    (void)snprintf(id, sizeof id, "%" PRIu64, block->id);
    (void)units_bytes(block->bytes, whole);
    (void)units_bytes(entry->bytes, part);
    (void)snprintf(bytes, sizeof bytes, entry->bytes < block->bytes ? "%s of %s" : "%s", part, whole);
    (void)snprintf(before, sizeof before, "%s", neap_trace_exec_name(trace, events[entry->used_before].subject));
    (void)snprintf(after, sizeof after, "%.*s%s", NAME_CHARS,
                   neap_trace_exec_name(trace, events[entry->used_after].subject), is_next ? " (next)" : "");
    TABLE_ROW(t, entry->copies_ns > entry->gap_ns ? TERM_WARN : TERM_PLAIN, id, bytes, milliseconds(leaves_ns, leaves),
              before, milliseconds(leaves_ns + entry->gap_ns, returns), after, milliseconds(entry->gap_ns, gap),
              milliseconds(entry->copies_ns, copies));
}

static void print_entries(const swap_request *request, const neap_trace *trace, const clock_face *face,
                          const neap_swap_entry *entries, size_t n_entries)
{
    size_t n_shown = request->n_largest < n_entries ? request->n_largest : n_entries;
    size_t n_tight = 0;
    char count[UNITS_CHARS];
    table t = table_begin("rrrlrlrr");
    TABLE_ROW(&t, TERM_DIM, "block", "size", "leaves at", "after", "back at", "for", "gap", "copies");
    for (size_t i = 0; i < n_shown; i++) {
        row_of_swap(&t, trace, face, &entries[i]);
    }
    for (size_t i = 0; i < n_entries; i++) {
        n_tight += entries[i].copies_ns > entries[i].gap_ns;
    }
    (void)putchar('\n');
    table_end(&t, 2, stdout);
    if (n_shown < n_entries) {
        (void)printf("  ... and %s smaller ones; --list FILE writes them all\n",
                     units_count(n_entries - n_shown, count));
    }
    (void)printf("\n  Nothing uses a block in its gap, so it can be away for "
                 "what its copies, out and in, leave of it.\n");
    if (n_tight > 0) {
        (void)printf("  In %s of them the copies take longer than the gap: the "
                     "program waits for these.\n",
                     units_count(n_tight, count));
    }
}

bool swap_print_largest(const swap_request *request, const neap_trace *trace, const neap_swap_plan *plan)
{
    size_t n_entries;
    clock_face face = {0};
    neap_swap_entry *entries = merged_entries(plan, &n_entries);
    if (!entries) {
        return no_memory();
    }
    bool is_made = true;
    if (n_entries == 0) {
        (void)printf("\n  Nothing has to leave the device.\n");
    } else if (request->n_largest > 0) {
        is_made = make_clock(request, trace, neap_swap_get_summary(plan)->iteration_ns, &face);
        if (is_made) {
            print_entries(request, trace, &face, entries, n_entries);
        }
        free(face.end_ns);
    }
    free(entries);
    return is_made;
}

/* ---- for programs ---- */

bool swap_write_list(const char *path, const neap_trace *trace, const neap_swap_plan *plan)
{
    new_file file;
    if (!file_create(path, &file)) {
        return false;
    }
    size_t n;
    size_t n_blocks;
    const neap_swap_entry *entries = neap_swap_entries(plan, &n);
    const neap_trace_block *blocks = neap_trace_blocks(trace, &n_blocks);
    (void)fputs("block,bytes,used_before,back_after,used_after,gap_ns,copies_ns\n", file.stream);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(file.stream, "%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%.0f,%.0f\n",
                      blocks[entries[i].block].id, entries[i].bytes, entries[i].used_before, entries[i].back_after,
                      entries[i].used_after, entries[i].gap_ns, entries[i].copies_ns);
    }
    return file_commit(&file);
}
