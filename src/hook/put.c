/* put.c: writing beside a program.
 *
 * The library shares its file descriptors and its signals with a program that knows nothing of it. So nothing goes
 * through stdio, whose buffers are the program's, and no signal of a write that fails reaches it (base/new_file.h). */
#include "hook/put.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/new_file.h"
#include "trace/message.h"

enum { LINE_BYTES = 1024 };

static atomic_bool has_said;

bool np_hook_put(int file, const char *bytes, size_t n)
{
    int why = np_file_put(file, bytes, n);
    errno = why ? why : errno;
    return why == 0;
}

void np_hook_say(const char *format, ...)
{
    static const char begin[] = "neap: ";
    char text[LINE_BYTES];
    char line[LINE_BYTES]; /* cut where it is too long, but still a line */
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0) {
        return;
    }
    memcpy(line, begin, sizeof begin);
    (void)np_message_printable(text, strlen(text), line + sizeof begin - 1,
                               sizeof line - sizeof begin); /* kernels' names */
    size_t length = strlen(line);
    line[length] = '\n';
    atomic_store(&has_said, true);
    (void)np_hook_put(STDERR_FILENO, line, length + 1);
}

bool np_hook_has_said(void)
{
    return atomic_load(&has_said);
}
