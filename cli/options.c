/* options.c: parsing and showing option tables. */
#include "options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "printable.h"
#include "term.h"
#include "units.h"

/* ---- which name was meant ---- */

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits that turn a into b: a letter more, less, another, or two swapped. Names of 31 letters at most. */
static size_t edit_distance(const char *a, const char *b)
{
    enum { MAX = 31 };
    size_t n_a = strlen(a);
    size_t n_b = strlen(b);
    if (n_a > MAX || n_b > MAX) {
        return MAX;
    }
    size_t d[MAX + 1][MAX + 1];
    for (size_t i = 0; i <= n_a; i++) {
        for (size_t k = 0; k <= n_b; k++) {
            if (i == 0 || k == 0) {
                d[i][k] = i + k;
                continue;
            }
            d[i][k] = least_of(least_of(d[i - 1][k], d[i][k - 1]) + 1, d[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) {
                d[i][k] = least_of(d[i][k], d[i - 2][k - 2] + 1);
            }
        }
    }
    return d[n_a][n_b];
}

const char *options_nearest(const char *given, const char *(*names)(const void *list, size_t i), const void *list)
{
    size_t n_given = strlen(given);
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    const char *name;
    for (size_t i = 0; (name = names(list, i)) != NULL; i++) {
        bool is_beginning = n_given >= 2 && strncmp(name, given, n_given) == 0;
        size_t distance = is_beginning ? 1 : edit_distance(given, name);
        size_t allowed = strlen(name) < 5 ? 1 : 2 + strlen(name) / 8;
        if (distance <= allowed && distance < least) {
            least = distance;
            nearest = name;
        }
    }
    return nearest;
}

static const char *option_name(const void *list, size_t i)
{
    const verb *v = list;
    return i < v->n_options ? v->options[i].name : NULL;
}

static const char *choice_name(const void *list, size_t i)
{
    return ((const char *const *)list)[i];
}

/* ---- parsing ---- */

bool options_wrong(const verb *v, const char *format, ...)
{
    char line[PRINTABLE_CHARS];
    char shown[PRINTABLE_CHARS];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    (void)fprintf(stderr, "neap %s: %s (see neap %s --help)\n", v->name, printable(line, shown, sizeof shown), v->name);
    return false;
}

static bool parse_choice(const verb *v, const option *o, const char *text, unsigned *choice)
{
    for (unsigned i = 0; o->choices[i]; i++) {
        if (strcmp(text, o->choices[i]) == 0) {
            *choice = i;
            return true;
        }
    }
    const char *nearest = options_nearest(text, choice_name, o->choices);
    if (nearest) {
        return options_wrong(v, "--%s has no '%s'; did you mean '%s'?", o->name, text, nearest);
    }
    return options_wrong(v, "--%s has no '%s'; it takes %s", o->name, text, o->value);
}

static bool parse_number(const verb *v, const option *o, const char *text, uint64_t *number)
{
    uint64_t value;
    bool is_size = o->kind == OPTION_SIZE;
    if (!(is_size ? units_parse_size(text, &value) : units_parse_uint(text, &value))) {
        return options_wrong(v, "--%s takes %s, not '%s'", o->name,
                             is_size ? "a size such as 1048576, 512MiB or 2GB" : "a whole number", text);
    }
    char binary[UNITS_CHARS];
    char count[UNITS_CHARS];
    uint64_t other;
    if (is_size && units_binary_form(text, binary, &other)) {
        printable_say("--%s %s is %s bytes (%s would be %llu)", o->name, text, units_count(value, count), binary,
                      (unsigned long long)other);
    }
    if (value < o->least) {
        return options_wrong(v, "--%s must be at least %llu, not '%s'", o->name, (unsigned long long)o->least, text);
    }
    *number = value;
    return true;
}

static bool parse_value(const verb *v, const option *o, const char *text, void *parsed)
{
    void *target = (char *)parsed + o->offset;
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)target = true;
        return true;
    case OPTION_TEXT:
        if (!*text) {
            return options_wrong(v, "--%s needs a %s that is not empty", o->name, o->value);
        }
        *(const char **)target = text;
        return true;
    case OPTION_SECONDS:
        return units_parse_seconds(text, target) || options_wrong(v, "--%s takes seconds, not '%s'", o->name, text);
    case OPTION_CHOICE:
        return parse_choice(v, o, text, target);
    case OPTION_UINT:
    case OPTION_SIZE:
        return parse_number(v, o, text, target);
    }
    return false;
}

static const option *find_option(const verb *v, const char *name, size_t n_name)
{
    for (size_t i = 0; i < v->n_options; i++) {
        if (strlen(v->options[i].name) == n_name && strncmp(v->options[i].name, name, n_name) == 0) {
            return &v->options[i];
        }
    }
    return NULL;
}

static const option *find_letter(const verb *v, char letter)
{
    for (size_t i = 0; i < v->n_options; i++) {
        if (v->options[i].letter && v->options[i].letter == letter) {
            return &v->options[i];
        }
    }
    return NULL;
}

static bool unknown_option(const verb *v, const char *given)
{
    const char *name = given;
    while (*name == '-') {
        name++;
    }
    char bare[32];
    (void)snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, "="), name);
    const char *nearest = options_nearest(bare, option_name, v);
    int n_given = (int)strcspn(given, "=");
    if (nearest) {
        return options_wrong(v, "unknown option '%.*s'; did you mean '--%s'?", n_given, given, nearest);
    }
    return options_wrong(v, "unknown option '%.*s'", n_given, given);
}

/* The option at args[*at], with its value; *at is left on the last argument used. "--name=value", "--name value",
 * "-nvalue" and "-n value" are the same. */
static bool parse_option(const verb *v, int n_args, char **args, int *at, void *parsed)
{
    const char *given = args[*at];
    bool is_long = given[1] == '-';
    size_t n_name = is_long ? strcspn(given + 2, "=") : 0;
    const option *o = is_long ? find_option(v, given + 2, n_name) : find_letter(v, given[1]);
    if (!o) {
        return unknown_option(v, given);
    }
    const char *rest = given + 2 + n_name;
    const char *value = *rest ? rest + is_long : NULL; /* not the "=" */
    if (o->kind == OPTION_FLAG) {
        return value ? options_wrong(v, "--%s takes no value", o->name) : parse_value(v, o, "", parsed);
    }
    if (!value && *at + 1 < n_args) {
        value = args[++*at];
    }
    return value ? parse_value(v, o, value, parsed) : options_wrong(v, "--%s needs a value: %s", o->name, o->value);
}

static bool asks_for_help(int n_args, char **args)
{
    for (int i = 0; i < n_args && strcmp(args[i], "--") != 0; i++) {
        if (strcmp(args[i], "--help") == 0 || strcmp(args[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

/* "FILE" of "FILE..." and "[FILE]": an operand as a word of a sentence. */
static int operand_word(const verb *v, const char **word)
{
    *word = v->operand + (v->operand[0] == '[');
    return (int)strcspn(*word, ".]");
}

static bool take_operand(const verb *v, char *given, char **args, common_args *parsed)
{
    const char *word;
    int n_word = operand_word(v, &word);
    bool is_list = v->has_program || strstr(v->operand, "...") != NULL;
    if (parsed->n_operands > 0 && !is_list) {
        return options_wrong(v, "one %.*s at a time: '%s' is too many", n_word, word, given);
    }
    args[parsed->n_operands++] = given;
    parsed->operands = args;
    parsed->operand = args[0];
    return true;
}

bool options_parse(const verb *v, int n_args, char **args, common_args *parsed)
{
    if (!v->has_program && asks_for_help(n_args, args)) {
        parsed->help = true;
        for (int i = 0; i < n_args; i++) {
            parsed->json |= strcmp(args[i], "--json") == 0;
        }
        return true;
    }
    bool only_operands = false;
    for (int i = 0; i < n_args; i++) {
        bool is_option = args[i][0] == '-' && args[i][1] != '\0' && !only_operands;
        if (is_option && strcmp(args[i], "--") == 0) {
            only_operands = true;
        } else if (is_option) {
            if (!parse_option(v, n_args, args, &i, parsed)) {
                return false;
            }
        } else if (take_operand(v, args[i], args, parsed)) {
            only_operands |= v->has_program;
        } else {
            return false;
        }
    }
    if (v->has_program && parsed->n_operands > 0) {
        args[parsed->n_operands] = NULL; /* as exec wants it; where nothing moved, it is there already */
    }
    const char *word;
    int n_word = operand_word(v, &word);
    if (!parsed->operand && !parsed->help && v->operand[0] != '[') {
        return options_wrong(v, "no %.*s was given", n_word, word);
    }
    return true;
}

/* ---- showing ---- */

void options_json(const verb *v, json *out, const char *key)
{
    json_object_begin(out, key);
    json_text(out, "verb", v->name);
    json_text(out, "summary", v->summary);
    json_text(out, "operand", v->operand);
    json_array_begin(out, "options");
    for (size_t i = 0; i < v->n_options; i++) {
        if (v->options[i].is_hidden) {
            continue;
        }
        json_object_begin(out, NULL);
        json_text(out, "name", v->options[i].name);
        json_text(out, "value", v->options[i].value);
        json_text(out, "help", v->options[i].help);
        json_object_end(out);
    }
    json_array_end(out);
    json_object_end(out);
}

const char *options_usage(const verb *v, char *text)
{
    bool has_operand = v->operand[0] != '\0';
    (void)snprintf(text, OPTIONS_TEXT_CHARS, "neap %s [options]%s%s%s", v->name, v->has_program ? " [--]" : "",
                   has_operand ? " " : "", v->operand);
    return text;
}

const char *options_left(const option *o, char *text)
{
    char letter[8] = "";
    if (o->letter) {
        (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
    }
    (void)snprintf(text, OPTIONS_TEXT_CHARS, "%s--%s%s%s", letter, o->name, o->value ? " " : "",
                   o->value ? o->value : "");
    return text;
}

void options_help(const verb *v, bool as_json)
{
    char text[OPTIONS_TEXT_CHARS];
    if (as_json) {
        json out = json_begin(stdout);
        options_json(v, &out, NULL);
        json_end(&out);
        return;
    }
    (void)printf("neap %s: %s\n\nusage: %s\n\noptions:\n", v->name, v->summary, options_usage(v, text));
    for (size_t i = 0; i < v->n_options; i++) {
        const option *o = &v->options[i];
        if (o->is_hidden) {
            continue;
        }
        bool is_long = strlen(options_left(o, text)) > 18;
        (void)printf("  %s%-18s%s%s  %s\n", term_on(TERM_BOLD), text, term_off(TERM_BOLD),
                     is_long ? "\n                    " : "", o->help);
    }
    if (v->details) {
        (void)printf("\n%s", v->details);
    }
}
