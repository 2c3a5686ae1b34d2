/* snapshot.c: the importer has named the largest blocks that are live at the peak (`block.ID` in the trace's meta); here they
 * are summed up by name. */
#include "snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "units.h"

enum { NAMED_MAX = 2000, SHOWN = 12 }; /* as many as the importer names */

static const char nameless[] = "(no stack was recorded)";

neap_status snapshot_or_trace_read(const char *path, neap_error *error, neap_trace **trace)
{
    neap_error why;
    neap_status status = neap_trace_read(path, NULL, error, trace);
    if (status == NEAP_BAD_INPUT && strcmp(path, "-") != 0 &&
        neap_trace_read_snapshot(path, NEAP_ANY_DEVICE, NULL, &why, trace) == NEAP_OK) {
        error->text[0] = '\0';
        return NEAP_OK;
    }
    return status;
}

bool snapshot_is(const neap_trace *trace)
{
    const char *source = neap_trace_meta(trace, "source");
    return source && strcmp(source, "pytorch-snapshot") == 0;
}

/* ---- who holds it ---- */

typedef struct holder {
    const char *name;
    uint64_t bytes;
    uint64_t n_blocks;
} holder;

typedef struct holders {
    holder *items; /* the most bytes first */
    size_t n;
    bool has_names;
} holders;

static uint32_t find_peak(const neap_trace *trace)
{
    size_t n_events;
    size_t n_blocks;
    const neap_event *events = neap_trace_events(trace, &n_events);
    const neap_trace_block *blocks = neap_trace_blocks(trace, &n_blocks);
    uint64_t load = 0;
    uint64_t highest;
    uint32_t at = NEAP_NEVER;
    for (size_t i = 0; i < n_blocks; i++) {
        load += blocks[i].malloc_event == NEAP_NEVER ? blocks[i].bytes : 0;
    }
    highest = load;
    for (uint32_t i = 0; i < n_events; i++) {
        if (events[i].kind != NEAP_EVENT_EXEC) {
            uint64_t bytes = blocks[events[i].subject].bytes;
            load = events[i].kind == NEAP_EVENT_MALLOC ? load + bytes : load - bytes;
        }
        if (load > highest) {
            highest = load;
            at = i;
        }
    }
    return at;
}

static bool is_live_after(const neap_trace_block *block, uint32_t event)
{
    bool has_begun = block->malloc_event == NEAP_NEVER || (event != NEAP_NEVER && block->malloc_event <= event);
    return has_begun && (block->free_event == NEAP_NEVER || event == NEAP_NEVER || block->free_event > event);
}

static int by_bytes(const void *left, const void *right)
{
    const holder *a = left;
    const holder *b = right;
    return a->bytes != b->bytes ? (a->bytes > b->bytes ? -1 : 1) : strcmp(a->name, b->name);
}

static int by_name(const void *left, const void *right)
{
    const holder *a = left;
    const holder *b = right;
    return strcmp(a->name, b->name);
}

/* One for each live block, the largest first; then named, and those of one name melted together. */
static holders find_holders(const neap_trace *trace)
{
    holders found = {0};
    size_t n_blocks;
    const neap_trace_block *blocks = neap_trace_blocks(trace, &n_blocks);
    uint32_t peak = find_peak(trace);
    size_t n = 0;
    found.items = calloc(n_blocks + 1, sizeof *found.items);
    if (!found.items) {
        return found;
    }
    for (size_t i = 0; i < n_blocks; i++) {
        if (is_live_after(&blocks[i], peak)) {
            found.items[found.n++] =
                (holder){nameless, blocks[i].bytes, blocks[i].id}; /* n_blocks: its number, for now */
        }
    }
    qsort(found.items, found.n, sizeof *found.items, by_bytes);
    for (size_t i = 0; i < found.n; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "block.%llu", (unsigned long long)found.items[i].n_blocks);
        const char *name = i < NAMED_MAX ? neap_trace_meta(trace, key) : NULL;
        found.items[i].name = name ? name : nameless;
        found.items[i].n_blocks = 1;
        found.has_names |= name != NULL;
    }
    qsort(found.items, found.n, sizeof *found.items, by_name);
    for (size_t i = 0; i < found.n; i++) {
        if (n > 0 && strcmp(found.items[n - 1].name, found.items[i].name) == 0) {
            found.items[n - 1].bytes += found.items[i].bytes;
            found.items[n - 1].n_blocks++;
        } else {
            found.items[n++] = found.items[i];
        }
    }
    found.n = n;
    qsort(found.items, found.n, sizeof *found.items, by_bytes);
    return found;
}

/* ---- where memory ran out ---- */

static bool number_of(const neap_trace *trace, const char *key, uint64_t *number)
{
    const char *text = neap_trace_meta(trace, key);
    return text && units_parse_uint(text, number);
}

static bool print_oom(const neap_trace *trace)
{
    const char *at = neap_trace_meta(trace, "oom_at");
    char text[UNITS_CHARS];
    uint64_t asked;
    uint64_t left;
    if (!number_of(trace, "oom_bytes", &asked)) {
        return false;
    }
    table t = table_begin("lrll");
    table_row_of_bytes(&t, TERM_WARN, "out of memory", asked, at ? at : "");
    if (number_of(trace, "oom_free", &left)) {
        TABLE_ROW(&t, TERM_PLAIN, "  free then", units_bytes(left, text), "", "of the device");
    }
    (void)fputc('\n', stdout);
    table_end(&t, 2, stdout);
    return true;
}

bool snapshot_print_holders(const neap_trace *trace)
{
    holders found = find_holders(trace);
    bool is_known = print_oom(trace);
    char size[UNITS_CHARS];
    char count[UNITS_CHARS];
    uint64_t rest = 0;
    uint64_t n_rest = 0;
    table t = table_begin("lrr");
    TABLE_ROW(&t, TERM_DIM, "made by", "at the peak", "blocks");
    for (size_t i = 0; i < found.n; i++) {
        if (i < SHOWN) {
            TABLE_ROW(&t, TERM_PLAIN, found.items[i].name, units_bytes(found.items[i].bytes, size),
                      units_count(found.items[i].n_blocks, count));
        } else {
            rest += found.items[i].bytes;
            n_rest += found.items[i].n_blocks;
        }
    }
    if (n_rest > 0) {
        TABLE_ROW(&t, TERM_PLAIN, "(others)", units_bytes(rest, size), units_count(n_rest, count));
    }
    if (found.has_names) {
        (void)fputc('\n', stdout);
        table_end(&t, 2, stdout);
    } else {
        table_drop(&t);
    }
    free(found.items);
    return is_known || found.has_names;
}

void snapshot_put_holders(json *out, const neap_trace *trace)
{
    holders found = find_holders(trace);
    uint64_t number;
    if (number_of(trace, "oom_bytes", &number)) {
        const char *at = neap_trace_meta(trace, "oom_at");
        json_object_begin(out, "oom");
        json_uint(out, "bytes", number);
        number_of(trace, "oom_free", &number) ? json_uint(out, "free", number) : json_null(out, "free");
        at ? json_text(out, "at", at) : json_null(out, "at");
        json_object_end(out);
    } else {
        json_null(out, "oom");
    }
    json_array_begin(out, "holders");
    for (size_t i = 0; i < found.n && found.has_names; i++) {
        json_object_begin(out, NULL);
        found.items[i].name == nameless ? json_null(out, "name") : json_text(out, "name", found.items[i].name);
        json_uint(out, "bytes", found.items[i].bytes);
        json_uint(out, "blocks", found.items[i].n_blocks);
        json_object_end(out);
    }
    json_array_end(out);
    free(found.items);
}
