/* options.h: the command line as tables.
 *
 * Every verb has one table of options. It parses the arguments, makes `--help` and its JSON form, and knows which name
 * was meant by a mistyped one. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"

enum { EXIT_GOOD = 0, EXIT_NO = 1, EXIT_BAD = 2 };

typedef enum option_kind {
    OPTION_FLAG,    /* bool: true */
    OPTION_TEXT,    /* const char * */
    OPTION_UINT,    /* uint64_t */
    OPTION_SIZE,    /* uint64_t: bytes, with an optional unit */
    OPTION_SECONDS, /* double */
    OPTION_CHOICE,  /* unsigned: index into `choices` */
} option_kind;

typedef struct option {
    const char *name; /* without the dashes */
    char letter;      /* "-o" beside "--output"; 0: none */
    bool is_hidden;   /* taken, but in no help text: for the build, not for people */
    option_kind kind;
    const char *value; /* what its value is called in the help, FILE and FOLDER where it is one; NULL for a flag */
    const char *help;
    size_t offset;              /* of its value in the verb's arguments */
    const char *const *choices; /* OPTION_CHOICE: names, NULL at the end */
    uint64_t least;             /* OPTION_UINT, OPTION_SIZE: smallest value allowed */
} option;

typedef struct verb {
    const char *name;
    const char *operand; /* "FILE"; "FILE...": one or more; "[NAME]": may be left out */
    bool has_program;    /* the operand is a command line: all after its first word is its own, "-x" too */
    const char *(*operand_name)(size_t i); /* what the operand can be, NULL after the last; NULL: anything */
    const char *summary;                   /* one line */
    const char *details;                   /* paragraphs below the options; may be NULL */
    const option *options;
    size_t n_options;
    int (*run)(const struct verb *verb, int n_args, char **args); /* exit code */
} verb;

/* What every verb has; the first member of its arguments. */
typedef struct common_args {
    bool json;
    bool help;
    const char *operand; /* the first; NULL: none */
    char **operands;     /* all of them, at the front of the arguments, then NULL where the arguments end in one */
    size_t n_operands;
} common_args;

#define COMMON_JSON_OPTION(text)                                                                   \
    {                                                                                              \
        .name = "json", .kind = OPTION_FLAG, .help = (text), .offset = offsetof(common_args, json) \
    }
#define COMMON_HELP_OPTION                                                            \
    {                                                                                 \
        .name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "show this text", \
        .offset = offsetof(common_args, help)                                         \
    }
#define COMMON_OPTIONS COMMON_JSON_OPTION("print one JSON document"), COMMON_HELP_OPTION

/* Fills `parsed`, which is the first member of the verb's arguments and holds the defaults. False, after one line on
 * stderr, where the arguments are wrong; --help anywhere makes everything else right. Operands move to the front of
 * `args`; a verb with a program finds its whole command line there, ended as `args` is. */
bool options_parse(const verb *v, int n_args, char **args, common_args *parsed);

/* One line on stderr about arguments that are wrong, and where to read more. False. */
bool options_wrong(const verb *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

void options_help(const verb *v, bool as_json);

/* "neap plan [options] FILE" and "-o, --output FOLDER": as they stand in every help text. */
#define OPTIONS_TEXT_CHARS 160
const char *options_usage(const verb *v, char *text);
const char *options_left(const option *o, char *text);

/* One verb as a JSON object, for `neap help --json`. */
void options_json(const verb *v, json *out, const char *key);

/* The name nearest to `given`, NULL where none is near. names(i) gives NULL at the end. */
const char *options_nearest(const char *given, const char *(*names)(const void *list, size_t i), const void *list);

#endif
