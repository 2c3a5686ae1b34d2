/* open.c: devices by name: kind[:profile][,key=value...], "sim:h200-pcie5,page=64KiB". A profile is a link's name or,
 * where there are several of a kind, a number: "cuda:1".
 *
 * Three tables say all there is: the kinds, their settings, and the links that neap_link_find knows. A name that does
 * not fit is refused with the table it was looked up in. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/real.h"
#include "base/status.h"
#include "device/kinds.h"
#include "device/memfd.h"

typedef struct text {
    const char *at;
    size_t n;
} text;

/* What a name asks for; 0 where it does not say. */
typedef struct wishes {
    uint64_t page_bytes;
    uint64_t memory_bytes;
    uint32_t n_streams;
    uint32_t number;
    neap_link link;
} wishes;

static const struct kind {
    const char *name;
    bool has_links;   /* a link's name may follow */
    bool has_numbers; /* a number may follow; such devices know their pages and memory themselves */
    neap_status (*open)(const np_device_settings *settings, const neap_memory *memory, neap_error *error,
                        np_device **device);
} kinds[] = {
    {"cpu", false, false, np_cpu_open},
    {"sim", true, false, np_sim_open},
    {"cuda", false, true, np_cuda_open},
};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* ---- texts ---- */

static bool text_is(text t, const char *word)
{
    return strlen(word) == t.n && memcmp(t.at, word, t.n) == 0;
}

static bool text_is_unit(text t, const char *word) /* in any case */
{
    return strlen(word) == t.n && strncasecmp(t.at, word, t.n) == 0;
}

/* What stands before the first `mark` in t, or all of it. *rest is what follows the mark. */
static text text_until(text t, char mark, text *rest)
{
    const char *found = t.n > 0 ? memchr(t.at, mark, t.n) : NULL;
    text before = {t.at, found ? (size_t)(found - t.at) : t.n};
    size_t n_used = before.n + (found ? 1 : 0);
    *rest = (text){t.at + n_used, t.n - n_used};
    return before;
}

/* "12", "1.5" and what follows. Sizes above 2^53 are no more exact than a double, and no machine has them. */
static bool read_number(text t, double *number, text *unit)
{
    size_t n = np_real_read(t.at, t.n, number);
    *unit = (text){t.at + n, t.n - n};
    return n > 0;
}

static const struct unit {
    const char *name;
    double bytes;
} units[] = {
    {"", 1},     {"B", 1},    {"k", 1e3},   {"M", 1e6},      {"G", 1e9},      {"T", 1e12},     {"kB", 1e3},
    {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
};

static bool read_bytes(text t, uint64_t *bytes)
{
    double number;
    text unit;
    if (!read_number(t, &number, &unit)) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (text_is_unit(unit, units[i].name)) {
            double value = number * units[i].bytes;
            if (value < 1 || value > 0x1p53 || value != (double)(uint64_t)value) {
                return false;
            }
            *bytes = (uint64_t)value;
            return true;
        }
    }
    return false;
}

/* ---- settings ---- */

static bool set_page(text value, wishes *wanted)
{
    uint64_t bytes;
    if (!read_bytes(value, &bytes) || (bytes & (bytes - 1)) != 0 || bytes < np_memfd_system_page() ||
        bytes > (uint64_t)1 << 40) {
        return false;
    }
    wanted->page_bytes = bytes;
    return true;
}

static bool set_memory(text value, wishes *wanted)
{
    return read_bytes(value, &wanted->memory_bytes);
}

static bool set_streams(text value, wishes *wanted)
{
    double number;
    text rest;
    if (!read_number(value, &number, &rest) || rest.n > 0 || number < 1 || number > NP_MAX_STREAMS ||
        number != (double)(uint32_t)number) {
        return false;
    }
    wanted->n_streams = (uint32_t)number;
    return true;
}

static bool set_link(text value, wishes *wanted)
{
    double number;
    text unit;
    if (!read_number(value, &number, &unit) || !(number > 0)) {
        return false;
    }
    if (text_is(unit, "MB/s")) {
        number /= 1e3;
    } else if (!text_is(unit, "GB/s")) {
        return false;
    }
    wanted->link = (neap_link){.out_gbs = number, .in_gbs = number};
    return true;
}

static const struct setting {
    const char *name;
    const char *form;
    bool (*set)(text value, wishes *wanted);
} settings[] = {
    {"page", "page=BYTES (a power of two, 4KiB at least)", set_page},
    {"memory", "memory=BYTES", set_memory},
    {"streams", "streams=N (1 to 16)", set_streams},
    {"link", "link=SPEED (as 2.5GB/s)", set_link},
};

enum { N_SETTINGS = sizeof settings / sizeof *settings };

/* ---- what there is, in words ---- */

enum { LIST_CHARS = 320 };

static void list_add(char list[LIST_CHARS], const char *word)
{
    size_t n = strlen(list);
    (void)snprintf(list + n, LIST_CHARS - n, "%s%s", n > 0 ? ", " : "", word);
}

static neap_status no_such_kind(text name, neap_error *error)
{
    char list[LIST_CHARS] = "";
    for (size_t i = 0; i < N_KINDS; i++) {
        list_add(list, kinds[i].name);
    }
    return np_fail(error, NEAP_BAD_ARGUMENT, "no device \"%.*s\": there are %s", (int)(name.n < 80 ? name.n : 80),
                   name.at, list);
}

static neap_status no_such_setting(text given, const struct kind *kind, neap_error *error)
{
    char list[LIST_CHARS] = "";
    for (size_t i = 0; i < N_SETTINGS; i++) {
        list_add(list, settings[i].form);
    }
    for (size_t i = 0; kind->has_links && neap_link_name(i); i++) {
        list_add(list, neap_link_name(i));
    }
    if (kind->has_numbers) {
        list_add(list, "the device's number (0 where none is given)");
    }
    return np_fail(error, NEAP_BAD_ARGUMENT, "device %s has no setting \"%.*s\": there are %s", kind->name,
                   (int)(given.n < 80 ? given.n : 80), given.at, list);
}

/* ---- reading a name ---- */

static neap_status read_setting(text given, const struct kind *kind, neap_error *error, wishes *wanted)
{
    text value;
    text key = text_until(given, '=', &value);
    for (size_t i = 0; i < N_SETTINGS; i++) {
        if (key.n < given.n && text_is(key, settings[i].name)) {
            if (settings[i].set(value, wanted)) {
                return NEAP_OK;
            }
            return np_fail(error, NEAP_BAD_ARGUMENT, "%.*s: expected %s", (int)(given.n < 80 ? given.n : 80), given.at,
                           settings[i].form);
        }
    }
    return no_such_setting(given, kind, error);
}

/* A link's name; false where it is none. */
static bool read_profile(text given, neap_link *link)
{
    for (size_t i = 0; neap_link_name(i); i++) {
        if (text_is(given, neap_link_name(i))) {
            return neap_link_find(neap_link_name(i), link) == NEAP_OK;
        }
    }
    return false;
}

/* A device's number; false where it is none. */
static bool read_which(text given, uint32_t *number)
{
    double value;
    text rest;
    if (!read_number(given, &value, &rest) || rest.n > 0 || value > 1023 || value != (double)(uint32_t)value) {
        return false;
    }
    *number = (uint32_t)value;
    return true;
}

static neap_status read_settings(text all, const struct kind *kind, neap_error *error, wishes *wanted)
{
    bool is_first = true;
    while (all.n > 0) {
        text given = text_until(all, ',', &all);
        bool is_profile = is_first && ((kind->has_links && read_profile(given, &wanted->link)) ||
                                       (kind->has_numbers && read_which(given, &wanted->number)));
        if (!is_profile) {
            neap_status status = read_setting(given, kind, error, wanted);
            if (status != NEAP_OK) {
                return status;
            }
        }
        is_first = false;
    }
    return NEAP_OK;
}

static neap_status resolve(const wishes *wanted, const struct kind *kind, neap_error *error, np_device_settings *result)
{
    uint64_t page_bytes = wanted->page_bytes ? wanted->page_bytes : np_memfd_system_page();
    uint64_t n_pages = (wanted->memory_bytes ? wanted->memory_bytes : np_memfd_system_memory()) / page_bytes;
    if (kind->has_numbers) {
        *result = (np_device_settings){.page_bytes = wanted->page_bytes,
                                       .memory_bytes = wanted->memory_bytes,
                                       .number = wanted->number,
                                       .n_streams = wanted->n_streams ? wanted->n_streams : 1,
                                       .link = wanted->link};
        return NEAP_OK;
    }
    if (n_pages == 0) {
        return np_fail(error, NEAP_BAD_ARGUMENT, "the memory of device %s is less than one page of %llu bytes",
                       kind->name, (unsigned long long)page_bytes);
    }
    *result = (np_device_settings){.page_bytes = page_bytes,
                                   .n_pages = n_pages < UINT32_MAX ? (uint32_t)n_pages : UINT32_MAX,
                                   .n_streams = wanted->n_streams ? wanted->n_streams : 1,
                                   .link = wanted->link};
    if (kind->has_links && !(result->link.out_gbs > 0)) {
        return neap_link_find(neap_link_name(0), &result->link);
    }
    return NEAP_OK;
}

neap_status np_device_open(const char *name, const neap_memory *memory, neap_error *error, np_device **device)
{
    text all = {name, strlen(name)};
    text rest;
    text kind_name = text_until(all, ':', &rest);
    if (error) {
        error->text[0] = '\0';
    }
    for (size_t i = 0; i < N_KINDS; i++) {
        if (text_is(kind_name, kinds[i].name)) {
            wishes wanted = {0};
            np_device_settings resolved;
            neap_status status = read_settings(rest, &kinds[i], error, &wanted);
            if (status == NEAP_OK) {
                status = resolve(&wanted, &kinds[i], error, &resolved);
            }
            return status == NEAP_OK ? kinds[i].open(&resolved, np_memory_or_default(memory), error, device) : status;
        }
    }
    return no_such_kind(kind_name, error);
}
