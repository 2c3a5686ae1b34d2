/* completion.c: scripts that let bash, zsh and fish complete what is typed, made from the option tables.
 *
 * What the value of an option can be is told by its kind and by the name that the help gives to it: one of a few words, a
 * FILE, a FOLDER, or something that nobody can guess. An operand is the same. Behind a verb that runs a program, the
 * shell completes that program's command line. */
#include <stdio.h>
#include <string.h>

#include "generate.h"
#include "verbs.h"

/* What can stand in a place. */
typedef enum place { PLACE_ANYTHING, PLACE_FILE, PLACE_FOLDER, PLACE_WORDS, PLACE_PROGRAM } place;

static bool is_named(const char *value, const char *what)
{
    return value && strncmp(value + (value[0] == '['), what, strlen(what)) == 0;
}

static place place_of_name(const char *value)
{
    return is_named(value, "FILE") ? PLACE_FILE : is_named(value, "FOLDER") ? PLACE_FOLDER : PLACE_ANYTHING;
}

static place place_of_option(const option *o)
{
    return o->kind == OPTION_CHOICE ? PLACE_WORDS : place_of_name(o->value);
}

static place place_of_operand(const verb *v)
{
    return v->has_program ? PLACE_PROGRAM : v->operand_name ? PLACE_WORDS : place_of_name(v->operand);
}

static const option *shown_option(const verb *v, size_t i)
{
    return v->options[i].is_hidden ? NULL : &v->options[i];
}

/* Words with a blank between, none before the first. */
static void put_choices(const option *o)
{
    for (size_t i = 0; o->choices[i]; i++) {
        (void)printf("%s%s", i ? " " : "", o->choices[i]);
    }
}

static void put_operand_names(const verb *v)
{
    for (size_t i = 0; v->operand_name(i); i++) {
        (void)printf("%s%s", i ? " " : "", v->operand_name(i));
    }
}

/* The inside of a text in single quotes: `quote` stands for one in it; a backslash is put before those in `special`. */
static void put_quoted(const char *text, const char *quote, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'') {
            (void)fputs(quote, stdout);
        } else {
            (void)fputs(strchr(special, *text) ? "\\" : "", stdout);
            (void)putchar(*text);
        }
    }
}

/* ---- bash ---- */

static void put_bash_action(place what)
{
    static const char *const actions[] = {
        [PLACE_ANYTHING] = "return",
        [PLACE_FILE] = "_neap_paths -f; return",
        [PLACE_FOLDER] = "_neap_paths -d; return",
    };
    (void)fputs(actions[what], stdout);
}

static void put_bash_option(const option *o)
{
    if (o->kind == OPTION_FLAG) {
        return;
    }
    (void)fputs("        ", stdout);
    if (o->letter) {
        (void)printf("-%c | ", o->letter);
    }
    (void)printf("--%s) ", o->name);
    if (place_of_option(o) == PLACE_WORDS) {
        (void)fputs("_neap_words \"", stdout);
        put_choices(o);
        (void)fputs("\"; return", stdout);
    } else {
        put_bash_action(place_of_option(o));
    }
    (void)fputs(" ;;\n", stdout);
}

/* The options that have a value, as a pattern: what follows one is no operand. */
static void put_bash_valued(const verb *v)
{
    (void)fputs("        valued=' ", stdout);
    for (size_t i = 0; i < v->n_options; i++) {
        const option *o = shown_option(v, i);
        if (o && o->kind != OPTION_FLAG) {
            (void)printf("--%s ", o->name);
        }
        if (o && o->kind != OPTION_FLAG && o->letter) {
            (void)printf("-%c ", o->letter);
        }
    }
    (void)fputs("'\n        _neap_program && return\n", stdout);
}

static void put_bash_verb(const verb *v)
{
    (void)printf("    %s)\n", v->name);
    if (v->has_program) {
        put_bash_valued(v);
    }
    (void)fputs("        case $prev in\n", stdout);
    for (size_t i = 0; i < v->n_options; i++) {
        if (shown_option(v, i)) {
            put_bash_option(&v->options[i]);
        }
    }
    (void)fputs("        esac\n        case $cur in\n        -*) _neap_words \"", stdout);
    const char *blank = "";
    for (size_t i = 0; i < v->n_options; i++) {
        if (shown_option(v, i)) {
            (void)printf("%s--%s", blank, v->options[i].name);
            blank = " ";
        }
    }
    (void)fputs("\" ;;\n        *) ", stdout);
    if (place_of_operand(v) == PLACE_WORDS) {
        (void)fputs("_neap_words \"", stdout);
        put_operand_names(v);
        (void)fputs("\"", stdout);
    } else if (place_of_operand(v) == PLACE_PROGRAM) {
        (void)fputs("mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")", stdout);
    } else {
        put_bash_action(place_of_operand(v));
    }
    (void)fputs(" ;;\n        esac\n        ;;\n", stdout);
}

void completion_bash(void)
{
    (void)printf("# bash completion for neap %s, made by `neap help --completion bash`\n", neap_version());
    (void)fputs("_neap_words() {\n"
                "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
                "}\n"
                "_neap_paths() {\n"
                "    compopt -o filenames 2> /dev/null\n"
                "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
                "}\n"
                "# The command line of a program behind the options, where the cursor is in it.\n"
                "_neap_program() {\n"
                "    local i word\n"
                "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
                "        word=${COMP_WORDS[i]}\n"
                "        if [[ $valued == *\" $word \"* ]]; then\n"
                "            [[ ${COMP_WORDS[i + 1]} == = ]] && ((i++))\n"
                "            ((i++))\n"
                "        elif [[ $word != -* || $word == -- ]]; then\n"
                "            [[ $word == -- ]] && ((i++))\n"
                "            ((i > COMP_CWORD)) && return 1\n"
                "            if declare -F _command_offset > /dev/null; then\n"
                "                _command_offset \"$i\"\n"
                "            elif ((i == COMP_CWORD)); then\n"
                "                mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
                "            else\n"
                "                _neap_paths -f\n"
                "            fi\n"
                "            return 0\n"
                "        fi\n"
                "    done\n"
                "    return 1\n"
                "}\n"
                "_neap() {\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} prev= valued=\n"
                "    COMPREPLY=()\n"
                "    ((COMP_CWORD > 0)) && prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                "    # --name=value comes as three words\n"
                "    if [[ $cur == = ]]; then\n"
                "        cur=\n"
                "    elif [[ $prev == = ]] && ((COMP_CWORD > 1)); then\n"
                "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
                "    fi\n"
                "    if ((COMP_CWORD == 1)); then\n"
                "        _neap_words \"",
                stdout);
    for (size_t i = 0; all_verbs[i]; i++) {
        (void)printf("%s ", all_verbs[i]->name);
    }
    (void)fputs("--help --version\"\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", stdout);
    for (size_t i = 0; all_verbs[i]; i++) {
        put_bash_verb(all_verbs[i]);
    }
    (void)fputs("    esac\n}\ncomplete -F _neap neap\n", stdout);
}

/* ---- zsh ---- */

#define ZSH_QUOTE "'\\''"

/* ":message:action" of _arguments. */
static void put_zsh_place(const char *value, place what)
{
    static const char *const actions[] = {
        [PLACE_ANYTHING] = ": ", [PLACE_FILE] = ":_files", [PLACE_FOLDER] = ":_files -/", [PLACE_WORDS] = ":("};
    (void)putchar(':');
    put_quoted(value, ZSH_QUOTE, ":\\");
    (void)fputs(actions[what], stdout);
}

static void put_zsh_option(const option *o)
{
    if (o->letter) {
        (void)printf("        '(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter, o->value ? "+" : "",
                     o->name, o->value ? "=" : "");
    } else {
        (void)printf("        '--%s%s[", o->name, o->value ? "=" : "");
    }
    put_quoted(o->help, ZSH_QUOTE, "[]\\");
    (void)putchar(']');
    if (o->value) {
        put_zsh_place(o->value, place_of_option(o));
        if (place_of_option(o) == PLACE_WORDS) {
            put_choices(o);
            (void)putchar(')');
        }
    }
    (void)fputs("' \\\n", stdout);
}

static void put_zsh_verb(const verb *v)
{
    (void)printf("    %s)\n        _arguments -S \\\n", v->name);
    for (size_t i = 0; i < v->n_options; i++) {
        if (shown_option(v, i)) {
            put_zsh_option(&v->options[i]);
        }
    }
    if (v->has_program) {
        (void)fputs("        '(-)1:program:_command_names -e' '*::argument:_normal'\n        ;;\n", stdout);
        return;
    }
    (void)printf("        '%s", strstr(v->operand, "...") ? "*" : "1");
    put_zsh_place(v->operand, place_of_operand(v));
    if (place_of_operand(v) == PLACE_WORDS) {
        put_operand_names(v);
        (void)putchar(')');
    }
    (void)fputs("'\n        ;;\n", stdout);
}

void completion_zsh(void)
{
    (void)printf("#compdef neap\n# zsh completion for neap %s, made by `neap help --completion zsh`\n", neap_version());
    (void)fputs("_neap() {\n    local -a verbs\n    local curcontext=$curcontext state line\n    typeset -A opt_args\n"
                "    verbs=(\n",
                stdout);
    for (size_t i = 0; all_verbs[i]; i++) {
        (void)printf("        '%s:", all_verbs[i]->name);
        put_quoted(all_verbs[i]->summary, ZSH_QUOTE, ":\\");
        (void)fputs("'\n", stdout);
    }
    (void)fputs("    )\n"
                "    _arguments -C '(- *)'{-h,--help}'[what neap can do]' '(- *)'{-V,--version}'[the version]' \\\n"
                "        '1: :->verb' '*:: :->rest' && return\n"
                "    if [[ $state == verb ]]; then\n        _describe verb verbs\n        return\n    fi\n"
                "    case $words[1] in\n",
                stdout);
    for (size_t i = 0; all_verbs[i]; i++) {
        put_zsh_verb(all_verbs[i]);
    }
    (void)fputs("    esac\n}\n"
                "if [[ $funcstack[1] == _neap ]]; then\n    _neap \"$@\"\nelse\n    compdef _neap neap\nfi\n",
                stdout);
}

/* ---- fish ---- */

#define FISH_QUOTE "\\'"

static void put_fish_option(const verb *v, const option *o)
{
    (void)printf("complete -c neap -n '__neap_verb %s' -l %s", v->name, o->name);
    if (o->letter) {
        (void)printf(" -s %c", o->letter);
    }
    switch (o->value ? place_of_option(o) : PLACE_PROGRAM) {
    case PLACE_FILE:
        (void)fputs(" -r -F", stdout);
        break;
    case PLACE_FOLDER:
        (void)fputs(" -x -a '(__fish_complete_directories)'", stdout);
        break;
    case PLACE_WORDS:
        (void)fputs(" -x -a '", stdout);
        put_choices(o);
        (void)putchar('\'');
        break;
    case PLACE_ANYTHING:
        (void)fputs(" -x", stdout);
        break;
    case PLACE_PROGRAM: /* a flag: it has no value */
        break;
    }
    (void)fputs(" -d '", stdout);
    put_quoted(o->help, FISH_QUOTE, "\\");
    (void)fputs("'\n", stdout);
}

/* Which words take another behind them, for fish to find where a program begins. */
static void put_fish_program(const verb *v)
{
    (void)printf("complete -c neap -n '__neap_verb %s' -x -a '(__fish_complete_subcommand --fcs-skip=2", v->name);
    for (size_t i = 0; i < v->n_options; i++) {
        const option *o = shown_option(v, i);
        if (o && o->value) {
            (void)printf(" --%s", o->name);
        }
        if (o && o->value && o->letter) {
            (void)printf(" -%c", o->letter);
        }
    }
    (void)fputs(")'\n", stdout);
}

static void put_fish_verb(const verb *v)
{
    place operand = place_of_operand(v);
    (void)printf("complete -c neap -n __neap_no_verb -a %s -d '", v->name);
    put_quoted(v->summary, FISH_QUOTE, "\\");
    (void)fputs("'\n", stdout);
    for (size_t i = 0; i < v->n_options; i++) {
        if (shown_option(v, i)) {
            put_fish_option(v, &v->options[i]);
        }
    }
    if (operand == PLACE_PROGRAM) {
        put_fish_program(v);
    } else if (operand == PLACE_FILE) {
        (void)printf("complete -c neap -n '__neap_verb %s' -F\n", v->name);
    } else if (operand == PLACE_WORDS) {
        (void)printf("complete -c neap -n '__neap_verb %s' -a '", v->name);
        put_operand_names(v);
        (void)fputs("'\n", stdout);
    }
}

void completion_fish(void)
{
    (void)printf("# fish completion for neap %s, made by `neap help --completion fish`\n", neap_version());
    (void)fputs("function __neap_no_verb\n    test (count (commandline -opc)) -eq 1\nend\n"
                "function __neap_verb --argument-names verb\n    set -l words (commandline -opc)\n"
                "    test (count $words) -ge 2; and test $words[2] = $verb\nend\n"
                "complete -c neap -f\n"
                "complete -c neap -n __neap_no_verb -s h -l help -d 'what neap can do'\n"
                "complete -c neap -n __neap_no_verb -s V -l version -d 'the version'\n",
                stdout);
    for (size_t i = 0; all_verbs[i]; i++) {
        put_fish_verb(all_verbs[i]);
    }
}
