/* man.c: man pages and the tables of docs/cli.md.
 *
 * Texts are those of --help. Paragraphs are filled anew, indented lines stay as they are. In roff a backslash begins an
 * escape, a period or an apostrophe at the start of a line begins a request, and a bare '-' may become a hyphen. */
#include <stdio.h>
#include <string.h>

#include "generate.h"
#include "topics.h"
#include "verbs.h"

/* ---- text as roff ---- */

static void put_char(char c)
{
    if (c == '\\') {
        (void)fputs("\\e", stdout);
    } else if (c == '-') {
        (void)fputs("\\-", stdout);
    } else if (c == '\'') {
        (void)fputs("\\(aq", stdout);
    } else if (c == '^') {
        (void)fputs("\\(ha", stdout);
    } else if (c == '~') {
        (void)fputs("\\(ti", stdout);
    } else {
        (void)putchar(c);
    }
}

static void put_text(const char *text, size_t n)
{
    if (n > 0 && text[0] == '.') {
        (void)fputs("\\&", stdout);
    }
    for (size_t i = 0; i < n; i++) {
        put_char(text[i]);
    }
}

static void put_word(const char *text)
{
    put_text(text, strlen(text));
}

/* Titles are in capitals; `dash` stands for every '-'. */
static void put_upper(const char *text, const char *dash)
{
    for (; *text; text++) {
        if (*text == '-') {
            (void)fputs(dash, stdout);
        } else {
            (void)putchar(*text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text);
        }
    }
}

/* Paragraphs, and what is indented as it stands. */
static void put_paragraphs(const char *text)
{
    enum { NOTHING, FILLED, AS_IS } mode = NOTHING;
    bool is_first = true;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        bool is_indented = n > 0 && line[0] == ' ';
        if (n == 0 || (mode == AS_IS && !is_indented)) {
            (void)fputs(mode == AS_IS ? ".fi\n.RE\n" : "", stdout);
            mode = NOTHING;
        }
        if (n > 0 && mode == NOTHING) {
            (void)fputs(is_first ? "" : ".PP\n", stdout);
            (void)fputs(is_indented ? ".RS 4\n.nf\n" : "", stdout);
            mode = is_indented ? AS_IS : FILLED;
            is_first = false;
        }
        if (n > 0) {
            size_t skip = is_indented && strncmp(line, "    ", 4) == 0 ? 4 : 0; /* .RS has them */
            put_text(line + skip, n - skip);
            (void)putchar('\n');
        }
        line += n + (line[n] == '\n');
    }
    (void)fputs(mode == AS_IS ? ".fi\n.RE\n" : "", stdout);
}

/* ---- parts of a page ---- */

static void put_head(const char *name, const char *summary)
{
    (void)fputs(".TH ", stdout);
    put_upper(name, "\\-");
    (void)printf(" 1 \"\" \"neap %s\" \"neap\"\n.SH NAME\n%s \\- ", neap_version(), name);
    put_word(summary);
    (void)putchar('\n');
}

static void put_topic(const topic *t)
{
    (void)fputs(".SH \"", stdout);
    put_upper(t->name, " ");
    (void)fputs("\"\n", stdout);
    put_paragraphs(t->text);
}

static void put_options(const verb *v)
{
    (void)fputs(".SH OPTIONS\n", stdout);
    for (size_t i = 0; i < v->n_options; i++) {
        const option *o = &v->options[i];
        if (o->is_hidden) {
            continue;
        }
        (void)fputs(".TP\n", stdout);
        if (o->letter) {
            (void)printf("\\fB\\-%c\\fR, ", o->letter);
        }
        (void)fputs("\\fB\\-\\-", stdout);
        put_word(o->name);
        (void)fputs("\\fR", stdout);
        if (o->value) {
            (void)fputs(" \\fI", stdout);
            put_word(o->value);
            (void)fputs("\\fR", stdout);
        }
        (void)putchar('\n');
        put_word(o->help);
        (void)putchar('\n');
    }
}

static void put_see_also(const verb *but)
{
    (void)fputs(".SH \"SEE ALSO\"\n", stdout);
    const char *comma = "";
    if (but) {
        (void)fputs(".BR neap (1)", stdout);
        comma = ",\n";
    }
    for (size_t i = 0; all_verbs[i]; i++) {
        if (all_verbs[i] != but) {
            (void)printf("%s.BR neap\\-%s (1)", comma, all_verbs[i]->name);
            comma = ",\n";
        }
    }
    (void)putchar('\n');
}

static void print_verb_page(const verb *v)
{
    char text[OPTIONS_TEXT_CHARS];
    (void)snprintf(text, sizeof text, "neap-%s", v->name);
    put_head(text, v->summary);
    (void)fputs(".SH SYNOPSIS\n", stdout);
    put_word(options_usage(v, text));
    (void)putchar('\n');
    if (v->details) {
        (void)fputs(".SH DESCRIPTION\n", stdout);
        put_paragraphs(v->details);
    }
    put_options(v);
    if (topics_find(v->name)) {
        put_topic(topics_find(v->name));
    }
    put_topic(topics_find("exit-codes"));
    put_see_also(v);
}

static void print_command_page(void)
{
    char text[OPTIONS_TEXT_CHARS];
    put_head("neap", "lowers the high-water mark of GPU memory in programs that repeat themselves");
    (void)fputs(".SH SYNOPSIS\nneap \\fIVERB\\fR [options] ...\n.SH VERBS\n", stdout);
    for (size_t i = 0; all_verbs[i]; i++) {
        (void)fputs(".TP\n\\fB", stdout);
        put_word(options_usage(all_verbs[i], text));
        (void)fputs("\\fR\n", stdout);
        put_word(all_verbs[i]->summary);
        (void)putchar('\n');
    }
    (void)fputs(".PP\nEvery verb takes \\fB\\-\\-help\\fR, and \\fB\\-\\-json\\fR for one JSON document on standard "
                "output.\n\\fBneap \\-\\-version\\fR prints the version.\n",
                stdout);
    for (const topic *t = all_topics; t->name; t++) {
        put_topic(t);
    }
    put_see_also(NULL);
}

void man_print(const verb *v)
{
    if (v) {
        print_verb_page(v);
    } else {
        print_command_page();
    }
}

/* ---- the tables of docs/cli.md ---- */

/* A bar would end the cell, and what looks like an element would vanish. */
static void put_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|') {
            (void)fputs("\\|", stdout);
        } else if (*text == '<') {
            (void)fputs("&lt;", stdout);
        } else {
            (void)putchar(*text);
        }
    }
}

void markdown_print(const verb *v)
{
    char text[OPTIONS_TEXT_CHARS];
    (void)fputs("| option | meaning |\n|---|---|\n", stdout);
    for (size_t i = 0; i < v->n_options; i++) {
        if (!v->options[i].is_hidden) {
            (void)fputs("| `", stdout);
            put_cell(options_left(&v->options[i], text));
            (void)fputs("` | ", stdout);
            put_cell(v->options[i].help);
            (void)fputs(" |\n", stdout);
        }
    }
}
