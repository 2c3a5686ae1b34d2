/* log.c: what the manager says, and why a call failed. */
#include <stdarg.h>
#include <stdio.h>

#include "run/manager.h"

enum { LINE = 512 };

static _Thread_local char last_failure[LINE];

void np_log(neap_device *m, neap_log_level level, const char *format, ...)
{
    char line[LINE];
    va_list arguments;
    if (!m->options.log || level > m->options.log_level) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    m->options.log(m->options.log_user, level, line);
}

neap_status np_device_fail(neap_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(last_failure, sizeof last_failure, format, arguments);
    va_end(arguments);
    return status;
}

void np_device_fail_clear(void)
{
    last_failure[0] = '\0';
}

const char *neap_device_error(void)
{
    return last_failure;
}
