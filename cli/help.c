/* help.c: `neap help`: what the verbs do, what the words mean, and, for the build, both in other forms. */
#include "help.h"

#include <stdio.h>
#include <string.h>

#include "generate.h"
#include "term.h"
#include "topics.h"
#include "verbs.h"

typedef struct help_args {
    common_args common;
    unsigned shell; /* index into shells, or NO_SHELL */
    bool man;
    bool markdown;
} help_args;

#define NO_SHELL 3
static const char *const shell_names[] = {"bash", "zsh", "fish", NULL};

/* ---- what can be asked about ---- */

/* Every verb, then every topic that is not the name of one. */
static const char *subject_name(size_t i)
{
    size_t n_verbs = 0;
    while (all_verbs[n_verbs]) {
        n_verbs++;
    }
    if (i < n_verbs) {
        return all_verbs[i]->name;
    }
    size_t left = i - n_verbs;
    for (const topic *t = all_topics; t->name; t++) {
        if (!verb_find(t->name) && left-- == 0) {
            return t->name;
        }
    }
    return NULL;
}

static const char *listed_subject(const void *list, size_t i)
{
    (void)list;
    return subject_name(i);
}

/* ---- the overview ---- */

void help_print_overview(FILE *file)
{
    int n_name = 0;
    int n_operand = 0;
    for (size_t i = 0; all_verbs[i]; i++) {
        int n = (int)strlen(all_verbs[i]->name);
        int m = (int)strlen(all_verbs[i]->operand);
        n_name = n > n_name ? n : n_name;
        n_operand = m > n_operand ? m : n_operand;
    }
    (void)fputs("neap lowers the high-water mark of GPU memory in programs that repeat themselves.\n\n"
                "usage: neap VERB [options] ...\n\nverbs:\n",
                file);
    for (size_t i = 0; all_verbs[i]; i++) {
        const verb *v = all_verbs[i];
        (void)fprintf(file, "  %-*s %-*s  %s\n", n_name, v->name, n_operand, v->operand, v->summary);
    }
    (void)fputs("\ntopics, for neap help TOPIC:\n", file);
    for (const topic *t = all_topics; t->name; t++) {
        (void)fprintf(file, "  %-13s %s\n", t->name, t->summary);
    }
    (void)fputs("\nEvery verb takes --help, and --json for one JSON document on standard output.\n"
                "neap --version prints the version.\n"
                "Exit codes: 0 good; 1 the answer is no; 2 bad usage or input.\n",
                file);
}

static void put_topic(json *out, const topic *t)
{
    json_object_begin(out, NULL);
    json_text(out, "topic", t->name);
    json_text(out, "summary", t->summary);
    json_text(out, "text", t->text);
    json_object_end(out);
}

void help_print_overview_json(void)
{
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    json_text(&out, "name", "neap");
    json_text(&out, "version", neap_version());
    json_array_begin(&out, "verbs");
    for (size_t i = 0; all_verbs[i]; i++) {
        options_json(all_verbs[i], &out, NULL);
    }
    json_array_end(&out);
    json_array_begin(&out, "topics");
    for (const topic *t = all_topics; t->name; t++) {
        put_topic(&out, t);
    }
    json_array_end(&out);
    json_object_end(&out);
    json_end(&out);
}

/* ---- one verb or topic ---- */

static void print_topic(const topic *t, bool as_json)
{
    if (as_json) {
        json out = json_begin(stdout);
        put_topic(&out, t);
        json_end(&out);
    } else {
        (void)printf("%s%s%s: %s\n\n%s", term_on(TERM_BOLD), t->name, term_off(TERM_BOLD), t->summary, t->text);
    }
}

static int print_subject(const char *name, bool as_json)
{
    const verb *v = verb_find(name);
    const topic *t = topics_find(name);
    if (!v && !t) {
        return report_unknown("verb or topic", name, "", options_nearest(name, listed_subject, NULL));
    }
    if (v) {
        options_help(v, as_json);
    }
    if (t && !(v && as_json)) {
        (void)fputs(v ? "\n" : "", stdout);
        print_topic(t, as_json);
    }
    return EXIT_GOOD;
}

/* ---- for the build ---- */

static int print_generated(const help_args *args)
{
    static void (*const completions[])(void) = {completion_bash, completion_zsh, completion_fish};
    const verb *v = args->common.operand ? verb_find(args->common.operand) : NULL;
    if ((args->common.operand || args->markdown) && !v) {
        return options_wrong(&verb_help, "a verb is needed"), EXIT_BAD;
    }
    if (args->shell != NO_SHELL) {
        completions[args->shell]();
    } else if (args->man) {
        man_print(v);
    } else {
        markdown_print(v);
    }
    return EXIT_GOOD;
}

/* ---- the verb ---- */

static int run_help(const verb *self, int n_args, char **args)
{
    help_args parsed = {.shell = NO_SHELL};
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
    } else if (parsed.shell != NO_SHELL || parsed.man || parsed.markdown) {
        return print_generated(&parsed);
    } else if (parsed.common.operand) {
        return print_subject(parsed.common.operand, parsed.common.json);
    } else if (parsed.common.json) {
        help_print_overview_json();
    } else {
        help_print_overview(stdout);
    }
    return EXIT_GOOD;
}

#define HELP_OPTION(option_name, option_kind, field, ...)                                                              \
    {                                                                                                                  \
        .name = option_name, .kind = option_kind, .offset = offsetof(help_args, field), .is_hidden = true, __VA_ARGS__ \
    }

static const option help_options[] = {
    HELP_OPTION("completion", OPTION_CHOICE, shell, .value = "bash|zsh|fish", .choices = shell_names,
                .help = "print a completion script"),
    HELP_OPTION("man", OPTION_FLAG, man, .help = "print a man page"),
    HELP_OPTION("markdown", OPTION_FLAG, markdown, .help = "print a verb's options as docs/cli.md has them"),
    COMMON_OPTIONS,
};

const verb verb_help = {
    .name = "help",
    .operand = "[VERB|TOPIC]",
    .operand_name = subject_name,
    .summary = "what neap can do, what one verb does, or what a word means",
    .options = help_options,
    .n_options = sizeof help_options / sizeof help_options[0],
    .run = run_help,
};
