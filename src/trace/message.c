#include "trace/message.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

bool np_message_printable(const char *text, size_t n, char *out, size_t n_out)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_plain = c >= ' ' && c < 0x7f;
        if (at + (is_plain ? 1 : 4) >= n_out) {
            break;
        }
        if (is_plain) {
            out[at++] = (char)c;
        } else {
            out[at++] = '\\';
            out[at++] = 'x';
            out[at++] = digits[c >> 4];
            out[at++] = digits[c & 15];
        }
    }
    out[at] = '\0';
    return i == n;
}

void np_message_path(const char *path, char out[NP_MESSAGE_PATH_BYTES])
{
    size_t n = strlen(path);
    size_t n_kept = NP_MESSAGE_PATH_BYTES / 4 - 1; /* every byte may take four characters */
    if (!np_message_printable(path, n, out, NP_MESSAGE_PATH_BYTES)) {
        size_t n_dropped = n > n_kept ? n - n_kept : 0;
        memcpy(out, "...", 3);
        (void)np_message_printable(path + n_dropped, n - n_dropped, out + 3, NP_MESSAGE_PATH_BYTES - 3);
    }
}

neap_status np_message_errno(const char *path, int number, neap_error *error)
{
    char name[NP_MESSAGE_PATH_BYTES];
    char text[128];
    np_message_path(path, name);
    if (strerror_r(number, text, sizeof text) != 0) {
        (void)snprintf(text, sizeof text, "error %d", number);
    }
    return np_fail(error, NEAP_IO, "%s: %s", name, text);
}
