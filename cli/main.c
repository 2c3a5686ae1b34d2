/* main.c: the `neap` command: finds the verb and runs it.
 *
 * Exit codes: 0 good, 1 the answer is no, 2 bad usage or input, or the answer could not be written. */
#include <stdio.h>
#include <string.h>

#include "help.h"
#include "printable.h"
#include "term.h"
#include "verbs.h"

const verb *const all_verbs[] = {
    &verb_run,   &verb_record, &verb_verify, &verb_top,    &verb_info,    &verb_plan,
    &verb_swap,  &verb_report, &verb_export, &verb_import, &verb_figures,
#ifdef NEAP_HAS_NETS
    &verb_train,
#endif
    &verb_help,  NULL,
};

static const char *verb_name(const void *list, size_t i)
{
    const verb *const *verbs = list;
    return verbs[i] ? verbs[i]->name : NULL;
}

static const char *early_name(const void *list, size_t i)
{
    return ((const char *const *)list)[i];
}

int report_unknown(const char *what, const char *given, const char *dashes, const char *nearest)
{
    if (nearest) {
        printable_say("unknown %s '%s'; did you mean '%s%s'? (see neap --help)", what, given, dashes, nearest);
    } else {
        printable_say("unknown %s '%s' (see neap --help)", what, given);
    }
    return EXIT_BAD;
}

const verb *verb_find(const char *name)
{
    for (size_t i = 0; all_verbs[i]; i++) {
        if (strcmp(all_verbs[i]->name, name) == 0) {
            return all_verbs[i];
        }
    }
    return NULL;
}

/* ---- what the verbs share ---- */

int report_failure(const char *path, neap_status status, const neap_error *error)
{
    if (error->text[0]) {
        printable_say("%s", error->text);
    } else {
        printable_say("%s: %s", path, neap_status_message(status));
    }
    return status == NEAP_NO_PERIOD || status == NEAP_NO_PLAN ? EXIT_NO : EXIT_BAD;
}

const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* ---- neap --help, neap --version ---- */

static int print_version(bool as_json)
{
    if (as_json) {
        json out = json_begin(stdout);
        json_object_begin(&out, NULL);
        json_text(&out, "name", "neap");
        json_text(&out, "version", neap_version());
        json_object_end(&out);
        json_end(&out);
    } else {
        (void)printf("neap %s\n", neap_version());
    }
    return EXIT_GOOD;
}

/* Options before the verb: --help, --version and, with either, --json. */
static int run_without_verb(int n_args, char **args)
{
    static const char *const early_options[] = {"help", "version", "json", NULL};
    bool as_json = false;
    const char *what = NULL;
    for (int i = 0; i < n_args; i++) {
        if (strcmp(args[i], "--json") == 0) {
            as_json = true;
        } else if (!what && (strcmp(args[i], "--help") == 0 || strcmp(args[i], "-h") == 0)) {
            what = "help";
        } else if (!what && (strcmp(args[i], "--version") == 0 || strcmp(args[i], "-V") == 0)) {
            what = "version";
        } else if (args[i][0] == '-') {
            return report_unknown("option", args[i], "--",
                                  options_nearest(args[i] + strspn(args[i], "-"), early_name, early_options));
        } else {
            printable_say("options follow the verb: neap %s %s", args[i], args[0]);
            return EXIT_BAD;
        }
    }
    if (!what) {
        help_print_overview(stderr);
        return EXIT_BAD;
    }
    if (strcmp(what, "version") == 0) {
        return print_version(as_json);
    }
    if (as_json) {
        help_print_overview_json();
    } else {
        help_print_overview(stdout);
    }
    return EXIT_GOOD;
}

int main(int argc, char **argv)
{
    term_begin();
    int code;
    if (argc < 2 || argv[1][0] == '-') {
        code = run_without_verb(argc > 0 ? argc - 1 : 0, argv + 1);
    } else {
        const verb *v = verb_find(argv[1]);
        code = v ? v->run(v, argc - 2, argv + 2)
                 : report_unknown("verb", argv[1], "", options_nearest(argv[1], verb_name, all_verbs));
    }
    return term_end() ? code : EXIT_BAD;
}
