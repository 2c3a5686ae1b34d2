/* limit.c: what a limit was understood to be is said before hours are spent under another one. */
#include "limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "printable.h"
#include "units.h"

static const uint64_t least = UINT64_C(1) << 20; /* of what can have been meant */

static void say_bytes(const char *text, uint64_t bytes, limit_says says)
{
    char other[UNITS_CHARS];
    char count[UNITS_CHARS];
    char size[UNITS_CHARS];
    uint64_t binary;
    bool is_letter = units_binary_form(text, other, &binary);
    if (says == LIMIT_SILENT) {
        return;
    }
    if (bytes < least) {
        printable_say(
            "warning: --limit %s is %s bytes: a device's memory comes in larger pages, and no program fits; a "
            "size has a unit, as 8GB or 8GiB",
            text, units_count(bytes, count));
    } else if (is_letter) {
        printable_say("--limit %s is %s, %s bytes (%s would be %" PRIu64 ")", text, units_bytes(bytes, size),
                      units_count(bytes, count), other, binary);
    } else if (says == LIMIT_ALL) {
        printable_say("limit %s, %s bytes", units_bytes(bytes, size), units_count(bytes, count));
    }
}

bool limit_parse(const verb *v, const char *text, limit_says says, limit *parsed)
{
    char percent[UNITS_CHARS];
    *parsed = (limit){0};
    if (units_parse_share(text, &parsed->share)) {
        if (!(parsed->share > 0) || parsed->share > 1) {
            return options_wrong(v, "--limit is above 0%% and at most 100%%, not '%s'", text);
        }
        if (!strchr(text, '%') && says != LIMIT_SILENT) {
            printable_say("--limit %s is %s of the peak load", text, units_share(parsed->share, percent));
        } else if (says == LIMIT_ALL) {
            printable_say("limit %s of the peak load", units_share(parsed->share, percent));
        }
        return true;
    }
    if (!units_parse_size(text, &parsed->bytes)) {
        return options_wrong(
            v, "--limit takes a size such as 8GB or 8GiB, or a share of the peak load such as 70%%, not '%s'", text);
    }
    if (parsed->bytes == 0) {
        return options_wrong(v, "--limit must be above 0");
    }
    say_bytes(text, parsed->bytes, says);
    return true;
}
