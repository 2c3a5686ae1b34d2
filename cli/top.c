/* top.c: `neap top PID`: what a program that runs under neap does with memory, now.
 *
 * The library listens on a socket in a folder of the user's own (src/hook/watch.h) and answers each newline with one
 * line: an array of flat objects, one a device. top_read.c has the asking; here it becomes lines for people. */
#include "top.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "printable.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

typedef struct top_args {
    common_args common;
    bool once;
} top_args;

enum { TEXT_CHARS = 1024 };

/* ---- a line a device ---- */

/* ", NAME SIZE" where the object has such a number. */
static void put_bytes(const char *object, const char *key, const char *before, const char *after)
{
    char text[UNITS_CHARS];
    double value;
    if (top_number(object, key, &value) && value > 0) {
        (void)printf("%s%s%s", before, units_bytes((uint64_t)value, text), after);
    }
}

static void put_count(const char *object, const char *key, const char *before, const char *after)
{
    char text[UNITS_CHARS];
    double value;
    if (top_number(object, key, &value) && value > 0) {
        (void)printf("%s%s%s", before, units_count((uint64_t)value, text), after);
    }
}

/* A text of the object as it may be shown, in room of TEXT_CHARS; "?" where there is none. The socket may be another's work. */
static const char *shown_text(const char *object, const char *key, char *room)
{
    char text[TEXT_CHARS];
    return top_text(object, key, text, sizeof text) ? printable(text, room, TEXT_CHARS) : "?";
}

static void print_device(const char *object)
{
    char text[TEXT_CHARS];
    double value;
    if (top_number(object, "rank", &value)) {
        (void)printf("rank %.0f: ", value);
    }
    (void)printf("%s%s%s: ", term_on(TERM_BOLD), shown_text(object, "device", text), term_off(TERM_BOLD));
    if (top_text(object, "aside", text, sizeof text)) {
        (void)printf("%sstepped aside%s: %s", term_on(TERM_WARN), term_off(TERM_WARN),
                     shown_text(object, "aside", text));
        return;
    }
    (void)printf("%s", shown_text(object, "state", text));
    put_bytes(object, "held", ", holds ", "");
    put_bytes(object, "limit", " of ", "");
    put_bytes(object, "peak_load", ", peak load ", "");
    put_count(object, "n_iterations", ", ", " iterations");
    put_bytes(object, "bytes_out", ", ", " out");
    put_bytes(object, "bytes_in", ", ", " in");
    if (top_number(object, "overhead", &value)) {
        (void)printf(", overhead %s", units_share(value, text));
    }
    put_count(object, "n_departures", ", left the plan ", "x");
}

/* Returns how many lines it printed. */
static unsigned print_devices(const char *answer, bool is_terminal)
{
    unsigned n = 0;
    const char *object = answer;
    while ((object = top_next_object(object)) != NULL) {
        print_device(object);
        (void)printf("%s\n", is_terminal ? "\033[K" : "");
        object++;
        n++;
    }
    if (n == 0) {
        (void)printf("no device is used yet%s\n", is_terminal ? "\033[K" : "");
        n = 1;
    }
    (void)fflush(stdout);
    return n;
}

/* ---- again and again ---- */

static void rest(void)
{
    const struct timespec second = {1, 0};
    (void)nanosleep(&second, NULL);
}

/* Until the program ends, or output does. */
static int watch(top_peer *peer, const top_args *args)
{
    const char *answer;
    bool is_terminal = term_on(TERM_BOLD)[0] != '\0' && isatty(STDOUT_FILENO);
    unsigned n_lines = 0;
    bool was_answered = false;
    while (!ferror(stdout) && (answer = top_ask(peer)) != NULL) {
        was_answered = true;
        if (args->common.json) {
            (void)printf("%s\n", answer);
            (void)fflush(stdout);
        } else {
            if (is_terminal && n_lines > 0) {
                (void)printf("\033[%uA", n_lines);
            }
            n_lines = print_devices(answer, is_terminal);
        }
        if (args->once) {
            return EXIT_GOOD;
        }
        rest();
    }
    if (!was_answered) {
        printable_say("process %ld does not answer", peer->process);
    }
    return was_answered ? EXIT_GOOD : EXIT_NO;
}

/* ---- the verb ---- */

static int find_process(const verb *self, const char *given, long *process)
{
    uint64_t number;
    if (!given) {
        return top_find_only(process) ? EXIT_GOOD : EXIT_NO;
    }
    if (!units_parse_uint(given, &number) || number == 0 || number > INT32_MAX) {
        (void)options_wrong(self, "PID is the number of a process, not '%s'", given);
        return EXIT_BAD;
    }
    *process = (long)number;
    return EXIT_GOOD;
}

static int run_top(const verb *self, int n_args, char **args)
{
    top_args parsed = {0};
    top_peer peer;
    long process;
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
        return EXIT_GOOD;
    }
    int code = find_process(self, parsed.common.operand, &process);
    if (code != EXIT_GOOD) {
        return code;
    }
    if (!top_connect(process, &peer)) {
        return EXIT_NO;
    }
    code = watch(&peer, &parsed);
    top_disconnect(&peer);
    return code;
}

static const option top_options[] = {
    {.name = "once", .kind = OPTION_FLAG, .help = "look once, not every second", .offset = offsetof(top_args, once)},
    COMMON_JSON_OPTION("print one JSON document a look, each on a line"),
    COMMON_HELP_OPTION,
};

const verb verb_top = {
    .name = "top",
    .operand = "[PID]",
    .summary = "looks at a program that runs under neap",
    .details =
        "Without PID: the one program of this user that runs under neap; where there are several, they are listed.\n"
        "Ends when the program does. Exit code 1: there is none, or it does not answer.\n",
    .options = top_options,
    .n_options = sizeof top_options / sizeof top_options[0],
    .run = run_top,
};
