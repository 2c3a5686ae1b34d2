/* verify_run.c: one run of the program, its output caught in files.
 *
 * The files have no name, so that nothing is left behind however this ends, unless they are to be kept. Standard input is
 * empty: every run must read the same. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "printable.h"
#include "term.h"
#include "verify.h"

/* ---- files ---- */

static FILE *open_output(const verify_request *request, const char *kind, const char *stream)
{
    char path[RUN_PATH_BYTES];
    if (!request->keep) {
        return tmpfile();
    }
    int n = snprintf(path, sizeof path, "%s/%02u-%s.%s", request->keep, request->n_runs, kind, stream);
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return fopen(path, "w+");
}

void verify_close(verify_output *output)
{
    if (output->out) {
        (void)fclose(output->out);
    }
    if (output->err) {
        (void)fclose(output->err);
    }
    *output = (verify_output){0};
}

/* ---- the process ---- */

typedef struct verify_step {
    const char *kind; /* part of a kept file's name */
    bool is_poisoned;
    verify_range launches;
    verify_range blocks;
} verify_step;

static bool set_range(const char *name, verify_range range)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%" PRIu64 "-%" PRIu64, range.first, range.end);
    return run_set(name, range.end == UINT64_MAX ? NULL : text);
}

static bool set_poisoning(const verify_request *request, const verify_step *step)
{
    return run_set_library(request->library, "verify", true) && run_set("NEAP_REPORT", "-") &&
           run_set("NEAP_VERIFY_TELL", "1") && run_set("NEAP_LIVE", NULL) &&
           set_range("NEAP_VERIFY_LAUNCHES", step->launches) && set_range("NEAP_VERIFY_BLOCKS", step->blocks);
}

static void become_program(const verify_request *request, const verify_step *step, const verify_output *output)
{
    int nothing = open("/dev/null", O_RDONLY);
    bool is_ready = nothing != -1 && dup2(nothing, STDIN_FILENO) != -1 &&
                    (step->is_poisoned ? set_poisoning(request, step) : run_set("NEAP_HOOK", NULL));
    if (!is_ready || dup2(fileno(output->out), STDOUT_FILENO) == -1) {
        _exit(EXIT_CANNOT_RUN);
    }
    (void)dup2(fileno(output->err), STDERR_FILENO);
    _exit(run_become(request->program)); /* a line about why it cannot be is in the file */
}

static bool wait_for(pid_t child, int *status)
{
    while (waitpid(child, status, 0) == -1) {
        if (errno != EINTR) {
            printable_say("cannot wait for the program: %s", strerror(errno));
            return false;
        }
    }
    return true;
}

/* ---- what the library told ---- */

static const char told[] = "neap-verify: ";
static const char failed[] = "failed: ";

/* `word` and the number behind it at *text, which is moved behind both. */
static bool take(const char **text, const char *word, uint64_t *number)
{
    size_t n = strlen(word);
    char *end;
    if (strncmp(*text, word, n) != 0 || !strchr("0123456789", (*text)[n]) || !(*text)[n]) {
        return false;
    }
    *number = strtoull(*text + n, &end, 10);
    *text = end;
    return true;
}

static char *find_last(char *text, const char *part)
{
    char *last = strstr(text, part);
    for (char *next = last; next; next = strstr(next + 1, part)) {
        last = next;
    }
    return last;
}

static void read_told(char *line, verify_output *output)
{
    const char *at = line;
    uint64_t n_launches;
    uint64_t n_blocks;
    uint64_t ignored;
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, failed, sizeof failed - 1) == 0) {
        (void)snprintf(output->failure, sizeof output->failure, "%s", line + sizeof failed - 1);
    } else if (take(&at, "launches ", &n_launches)) {
        if (take(&at, " blocks ", &n_blocks)) {
            output->has_told = true; /* of several processes, the one that did most */
            output->n_launches = n_launches > output->n_launches ? n_launches : output->n_launches;
            output->n_blocks = n_blocks > output->n_blocks ? n_blocks : output->n_blocks;
        }
    } else if (take(&at, "launch ", &ignored)) {
        char *block = find_last(line, ", block "); /* the name of a C++ kernel may have commas and blanks of its own */
        const char *size = block;
        if (size && take(&size, ", block ", &ignored) && take(&size, " (", &output->block_bytes)) {
            *block = '\0';
        }
        (void)snprintf(output->kernel, sizeof output->kernel, "%s", at + strspn(at, " "));
    }
}

static void read_all_told(verify_output *output)
{
    char *line = NULL;
    size_t room = 0;
    rewind(output->err);
    while (getline(&line, &room, output->err) > 0) {
        if (strncmp(line, told, sizeof told - 1) == 0) {
            read_told(line + sizeof told - 1, output);
        }
    }
    free(line);
}

/* ---- a run ---- */

static bool execute(verify_request *request, const verify_step *step, verify_output *output)
{
    request->n_runs++;
    *output =
        (verify_output){.out = open_output(request, step->kind, "out"), .err = open_output(request, step->kind, "err")};
    if (!output->out || !output->err) {
        printable_say("cannot keep what the program prints: %s", strerror(errno));
        verify_close(output);
        return false;
    }
    (void)fflush(NULL); /* what is ours must not be printed by the child too */
    pid_t child = fork();
    if (child == 0) {
        become_program(request, step, output);
    }
    if (child == -1) {
        printable_say("cannot begin a process: %s", strerror(errno));
    }
    if (child == -1 || !wait_for(child, &output->status)) {
        verify_close(output);
        return false;
    }
    if (term_interrupted()) {
        term_progress_clear();
        (void)fputs("neap verify: interrupted\n", stderr);
        verify_close(output);
        return false;
    }
    read_all_told(output);
    return true;
}

bool verify_run_plain(verify_request *request, verify_output *output)
{
    const verify_step step = {.kind = "plain"};
    return execute(request, &step, output);
}

bool verify_run_poisoned(verify_request *request, verify_range launches, verify_range blocks, verify_output *output)
{
    const verify_step step = {.kind = "verify", .is_poisoned = true, .launches = launches, .blocks = blocks};
    return execute(request, &step, output);
}

const char *verify_status_text(int status, char text[64])
{
    if (WIFSIGNALED(status)) {
        (void)snprintf(text, 64, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        (void)snprintf(text, 64, "exit code %d", WEXITSTATUS(status));
    }
    return text;
}
