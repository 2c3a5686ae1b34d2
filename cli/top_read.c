/* top_read.c: finds the sockets of programs that run under neap, asks, and reads the flat objects they answer with. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "printable.h"
#include "top.h"
#include "units.h"

enum { PATIENCE_MS = 5000, LISTED_MAX = 64, FOLDERS = 2 };

/* ---- where ---- */

/* The library takes the first it can; it may have had another environment. */
static bool name_folder(int which, char *folder, size_t bytes)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n = which == 0 ? (runtime && runtime[0] == '/' ? snprintf(folder, bytes, "%s/neap", runtime) : -1)
                       : snprintf(folder, bytes, "/tmp/neap-%u", (unsigned)geteuid());
    return n > 0 && (size_t)n < bytes;
}

/* A connected socket, -1 where nobody listens. */
static int connect_in(const char *folder, long process)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path, sizeof address.sun_path, "%s/%ld.sock", folder, process);
    int file = n > 0 && (size_t)n < sizeof address.sun_path ? socket(AF_UNIX, SOCK_STREAM, 0) : -1;
    if (file != -1 && connect(file, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(file);
        file = -1;
    }
    return file;
}

static int connect_to(long process)
{
    char folder[sizeof((struct sockaddr_un *)NULL)->sun_path];
    int file = -1;
    for (int i = 0; i < FOLDERS && file == -1; i++) {
        file = name_folder(i, folder, sizeof folder) ? connect_in(folder, process) : -1;
    }
    return file;
}

static size_t list_folder(const char *folder, long *processes, size_t n)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries && n < LISTED_MAX && (entry = readdir(entries)) != NULL) {
        char *end;
        long process = strtol(entry->d_name, &end, 10);
        int file = process > 0 && strcmp(end, ".sock") == 0 ? connect_in(folder, process) : -1;
        if (file != -1) { /* one that nobody listens to is left over */
            (void)close(file);
            processes[n++] = process;
        }
    }
    if (entries) {
        (void)closedir(entries);
    }
    return n;
}

bool top_find_only(long *process)
{
    char folder[sizeof((struct sockaddr_un *)NULL)->sun_path];
    long processes[LISTED_MAX];
    size_t n = 0;
    for (int i = 0; i < FOLDERS; i++) {
        n = name_folder(i, folder, sizeof folder) ? list_folder(folder, processes, n) : n;
    }
    if (n == 0) {
        (void)fputs("neap: no program of yours runs under neap, or none has used a device yet\n", stderr);
        return false;
    }
    if (n > 1) {
        (void)fputs("neap: several programs run under neap; which one?", stderr);
        for (size_t i = 0; i < n; i++) {
            (void)fprintf(stderr, " %ld", processes[i]);
        }
        (void)fputs("\n", stderr);
        return false;
    }
    *process = processes[0];
    return true;
}

/* ---- asking ---- */

bool top_connect(long process, top_peer *peer)
{
    *peer = (top_peer){.process = process, .file = connect_to(process)};
    if (peer->file == -1) {
        printable_say("process %ld is not yours, does not run under neap, or has not used a device yet", process);
    }
    return peer->file != -1;
}

void top_disconnect(top_peer *peer)
{
    (void)close(peer->file);
    free(peer->answer);
    *peer = (top_peer){.file = -1};
}

static bool make_room(top_peer *peer, size_t n)
{
    if (n < peer->room) {
        return true;
    }
    size_t room = peer->room ? 2 * peer->room : 8192;
    char *larger = realloc(peer->answer, room);
    if (!larger) {
        return false;
    }
    peer->answer = larger;
    peer->room = room;
    return true;
}

const char *top_ask(top_peer *peer)
{
    size_t n = 0;
    struct pollfd entry = {.fd = peer->file, .events = POLLIN};
    if (send(peer->file, "\n", 1, MSG_NOSIGNAL) != 1) {
        return NULL;
    }
    while (make_room(peer, n + 1) && poll(&entry, 1, PATIENCE_MS) == 1) {
        ssize_t n_read = recv(peer->file, peer->answer + n, peer->room - n - 1, 0);
        if (n_read <= 0) {
            return NULL;
        }
        n += (size_t)n_read;
        if (peer->answer[n - 1] == '\n') {
            peer->answer[n - 1] = '\0';
            return peer->answer;
        }
    }
    return NULL;
}

/* ---- reading ---- */

const char *top_next_object(const char *at)
{
    return strchr(at, '{');
}

/* What stands behind "key": in the object; NULL where there is none. No text of ours has a quote in it that is followed
 * by a colon. */
static const char *find_value(const char *object, const char *key)
{
    char quoted[64];
    (void)snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *end = strchr(object, '}');
    const char *found = strstr(object, quoted);
    return found && end && found < end ? found + strlen(quoted) : NULL;
}

bool top_number(const char *object, const char *key, double *value)
{
    const char *text = find_value(object, key);
    char *end;
    if (!text) {
        return false;
    }
    double number = strtod(text, &end);
    if (end == text) {
        return false;
    }
    *value = number;
    return true;
}

bool top_text(const char *object, const char *key, char *text, size_t bytes)
{
    const char *value = find_value(object, key);
    if (!value || *value != '"') {
        return false;
    }
    size_t n = 0;
    for (value++; *value && *value != '"' && n + 1 < bytes; value++) {
        value += *value == '\\' && value[1];
        text[n++] = *value;
    }
    text[n] = '\0';
    return true;
}
