/* settings.c: the environment as settings: one table has every name, how it is read, and what it takes.
 *
 * `neap run` has checked what it passes on, so a line about a bad value is for those who set it by hand. Numbers are read
 * without the C library, whose decimal point is the program's locale's. */
#include "hook/settings.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/real.h"
#include "hook/put.h"

/* ---- numbers ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The whole number at *text, which is moved behind it. */
static bool take_uint(const char **text, uint64_t *value)
{
    const char *at = *text;
    uint64_t number = 0;
    for (; is_digit(*at); at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (number > (UINT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    if (at == *text) {
        return false;
    }
    *text = at;
    *value = number;
    return true;
}

/* "12", "1.5" */
static bool take_real(const char **text, double *value)
{
    size_t n = np_real_read(*text, strlen(*text), value);
    *text += n;
    return n > 0;
}

static bool read_uint(const char *text, uint64_t *value)
{
    uint64_t number;
    if (!take_uint(&text, &number) || *text) {
        return false;
    }
    *value = number;
    return true;
}

static bool read_bytes(const char *text, uint64_t *bytes)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"B", 1}, {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {"k", 1e3}, {"M", 1e6},
                 {"", 1},  {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"G", 1e9}, {"T", 1e12}};
    double number;
    if (read_uint(text, bytes)) {
        return true; /* exact */
    }
    if (!take_real(&text, &number)) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcasecmp(text, units[i].name) == 0 && number * units[i].bytes < 0x1p63) {
            *bytes = (uint64_t)(number * units[i].bytes);
            return true;
        }
    }
    return false;
}

/* "1%", or 0.01 */
static bool read_share(const char *text, double *share)
{
    double number;
    if (!take_real(&text, &number) || (*text && strcmp(text, "%") != 0)) {
        return false;
    }
    *share = *text ? number / 100 : number;
    return true;
}

/* ---- one setting each ---- */

static bool set_mode(const char *text, np_hook_settings *settings)
{
    static const char *const names[] = {
        [NP_HOOK_OFF] = "off", [NP_HOOK_RUN] = "run", [NP_HOOK_RECORD] = "record", [NP_HOOK_VERIFY] = "verify"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            settings->mode = (np_hook_mode)i;
            return true;
        }
    }
    return false;
}

static bool set_limit(const char *text, np_hook_settings *settings)
{
    size_t n = strlen(text);
    uint64_t bytes;
    double share;
    bool is_fraction = strchr(text, '.') && read_share(text, &share) && share <= 1 && text[n - 1] != '%'; /* 0.7 */
    if (is_fraction || (n > 0 && text[n - 1] == '%')) {
        if (!read_share(text, &share) || !(share > 0) || share > 1) {
            return false;
        }
        settings->limit_share = share;
        return true;
    }
    if (!read_bytes(text, &bytes) || bytes == 0) {
        return false;
    }
    settings->limit = bytes;
    return true;
}

static bool set_overhead(const char *text, np_hook_settings *settings)
{
    double share;
    if (!read_share(text, &share) || !(share > 0)) {
        return false;
    }
    settings->overhead = share;
    return true;
}

static bool set_log(const char *text, np_hook_settings *settings)
{
    static const char *const names[] = {
        [NEAP_LOG_NONE] = "none", [NEAP_LOG_WARN] = "warn", [NEAP_LOG_INFO] = "info", [NEAP_LOG_DEBUG] = "debug"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            settings->log_level = (neap_log_level)i;
            return true;
        }
    }
    return false;
}

static bool set_min_block(const char *text, np_hook_settings *settings)
{
    uint64_t bytes;
    if (!read_bytes(text, &bytes) || bytes == 0) {
        return false;
    }
    settings->min_block = bytes;
    return true;
}

static bool set_margin(const char *text, np_hook_settings *settings)
{
    uint64_t launches;
    if (!read_uint(text, &launches) || launches > UINT32_MAX) {
        return false;
    }
    settings->margin = (uint32_t)launches;
    return true;
}

static bool set_plan_seconds(const char *text, np_hook_settings *settings)
{
    double seconds;
    if (!take_real(&text, &seconds) || *text || !(seconds > 0) || seconds > 1e6) {
        return false;
    }
    settings->plan_seconds = seconds;
    return true;
}

static bool set_process(const char *text, np_hook_settings *settings)
{
    return read_uint(text, &settings->process);
}

static bool read_range(const char *text, np_hook_range *range)
{
    np_hook_range read;
    if (!take_uint(&text, &read.first) || *text++ != '-' || !read_uint(text, &read.end) || read.first > read.end) {
        return false;
    }
    *range = read;
    return true;
}

static bool set_launches(const char *text, np_hook_settings *settings)
{
    return read_range(text, &settings->verify_launches);
}

static bool set_blocks(const char *text, np_hook_settings *settings)
{
    return read_range(text, &settings->verify_blocks);
}

/* ---- the table ---- */

typedef enum setting_kind { SETTING_READ, SETTING_FLAG, SETTING_TEXT } setting_kind;

static const struct setting {
    const char *name;
    setting_kind kind;
    bool (*read)(const char *text, np_hook_settings *settings); /* SETTING_READ */
    size_t offset;                                              /* of the bool or the text otherwise */
    const char *takes;
} table[] = {
    {"NEAP_HOOK", SETTING_READ, set_mode, 0, "run, record or verify"},
    {"NEAP_LIMIT", SETTING_READ, set_limit, 0, "bytes, or a share of the peak load such as 70%"},
    {"NEAP_OVERHEAD", SETTING_READ, set_overhead, 0, "a share of the iteration above 0, such as 1%"},
    {"NEAP_REPORT", SETTING_TEXT, NULL, offsetof(np_hook_settings, report), "a file"},
    {"NEAP_REPORT_JSON", SETTING_FLAG, NULL, offsetof(np_hook_settings, report_json), "0 or 1"},
    {"NEAP_RECORD", SETTING_TEXT, NULL, offsetof(np_hook_settings, record), "a file"},
    {"NEAP_TELL_LIMIT", SETTING_FLAG, NULL, offsetof(np_hook_settings, tells_limit), "0 or 1"},
    {"NEAP_LIMIT_LATE", SETTING_FLAG, NULL, offsetof(np_hook_settings, is_limit_late), "0 or 1"},
    {"NEAP_KEEP_BACKEND", SETTING_FLAG, NULL, offsetof(np_hook_settings, keeps_backend), "0 or 1"},
    {"NEAP_CUPTI_ALONE", SETTING_FLAG, NULL, offsetof(np_hook_settings, is_cupti_alone), "0 or 1"},
    {"NEAP_LOG", SETTING_READ, set_log, 0, "none, warn, info or debug"},
    {"NEAP_LIVE", SETTING_FLAG, NULL, offsetof(np_hook_settings, is_live), "0 or 1"},
    {"NEAP_MIN_BLOCK", SETTING_READ, set_min_block, 0, "bytes above 0"},
    {"NEAP_MARGIN", SETTING_READ, set_margin, 0, "a number of launches"},
    {"NEAP_PLAN_SECONDS", SETTING_READ, set_plan_seconds, 0, "seconds above 0"},
    {"NEAP_PLAN_CACHE", SETTING_TEXT, NULL, offsetof(np_hook_settings, plan_cache), "a folder"},
    {"NEAP_VERIFY_LAUNCHES", SETTING_READ, set_launches, 0, "FIRST-END"},
    {"NEAP_VERIFY_BLOCKS", SETTING_READ, set_blocks, 0, "FIRST-END"},
    {"NEAP_VERIFY_TELL", SETTING_FLAG, NULL, offsetof(np_hook_settings, tells_verified), "0 or 1"},
    {"NEAP_VERIFIED", SETTING_FLAG, NULL, offsetof(np_hook_settings, is_verified), "0 or 1"},
    {"NEAP_PID", SETTING_READ, set_process, 0, "a process"},
};

static bool copy_text(const char *text, const char **copy)
{
    size_t n = strlen(text) + 1;
    char *made = np_memory_alloc(NULL, n, 1);
    if (made) {
        *copy = memcpy(made, text, n);
    }
    return made != NULL;
}

static bool apply(const struct setting *setting, const char *text, np_hook_settings *settings)
{
    void *field = (char *)settings + setting->offset;
    switch (setting->kind) {
    case SETTING_READ:
        return setting->read(text, settings);
    case SETTING_TEXT:
        return copy_text(text, field);
    case SETTING_FLAG:
        if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) {
            return false;
        }
        *(bool *)field = *text == '1';
        return true;
    }
    return false;
}

void np_hook_settings_read(np_hook_settings *settings)
{
    *settings = (np_hook_settings){
        .mode = NP_HOOK_OFF,
        .min_block = NP_HOOK_MIN_BLOCK,
        .margin = NP_HOOK_MARGIN,
        .log_level = NEAP_LOG_WARN,
        .verify_launches = {0, UINT64_MAX},
        .verify_blocks = {0, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *text = getenv(table[i].name); /* NOLINT(concurrency-mt-unsafe): as every program does */
        if (text && *text && !apply(&table[i], text, settings)) {
            np_hook_say("%s takes %s, not '%s': left out", table[i].name, table[i].takes, text);
        }
        if (i == 0 && settings->mode == NP_HOOK_OFF) {
            return; /* the library is not asked for: nothing else is looked at, nor said */
        }
    }
}

void np_hook_settings_free(np_hook_settings *settings)
{
    const char **texts[] = {&settings->report, &settings->record, &settings->plan_cache};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (*texts[i]) {
            np_memory_free(NULL, (char *)*texts[i], strlen(*texts[i]) + 1, 1);
            *texts[i] = NULL;
        }
    }
}
