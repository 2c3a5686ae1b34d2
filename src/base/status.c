#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

const char *neap_version(void)
{
    return NEAP_VERSION_STRING;
}

const char *neap_status_name(neap_status status)
{
    switch (status) {
#define STATUS_NAME(name, text) \
    case name:                  \
        return #name;
        NEAP_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
    }
    return "unknown status";
}

const char *neap_status_message(neap_status status)
{
    switch (status) {
#define STATUS_MESSAGE(name, text) \
    case name:                     \
        return text;
        NEAP_STATUS_MAP(STATUS_MESSAGE)
#undef STATUS_MESSAGE
    }
    return "unknown status";
}

neap_status np_fail(neap_error *error, neap_status status, const char *format, ...)
{
    if (error) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
    }
    return status;
}

neap_status np_fail_memory(neap_error *error)
{
    return np_fail(error, NEAP_NO_MEMORY, "%s", neap_status_message(NEAP_NO_MEMORY));
}
