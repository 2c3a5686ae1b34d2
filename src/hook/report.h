/* report.h: what a run was like, for people and for programs. */
#ifndef NP_HOOK_REPORT_H
#define NP_HOOK_REPORT_H

#include "hook/facts.h"
#include "hook/settings.h"

/* Which of several processes of one job this is: what torchrun and its like say in RANK or LOCAL_RANK. -1: one alone. */
int np_hook_report_rank(void);

/* The name of the file that this process writes where it was told `file`: in a job of several processes FILE.rankN, and
 * FILE.rankN.gz for FILE.gz. False: it is too long. */
bool np_hook_report_name(const char *file, char *path, size_t bytes);

/* Writes at most `bytes`, ended by '\0'; returns the length of the whole, as snprintf does. */
size_t np_hook_report_text(const np_hook_facts *facts, char *text, size_t bytes); /* some lines, each begins "neap: " */
size_t np_hook_report_json(const np_hook_facts *facts, char *text, size_t bytes); /* one object, on one line */
size_t np_hook_report_line(const np_hook_facts *facts, char *text, size_t bytes); /* one line for a terminal */

/* The report of all devices, to where the settings say: at exit, and on SIGUSR1. A process that used no device says so
 * only where it is the one that `neap run` became and nothing else was said. */
void np_hook_report_write(const np_hook_settings *settings);

/* A document to where the settings' `file` stands for in this process: whole or not at all; NULL: stderr. */
void np_hook_report_put(const char *file, const char *text, size_t n);

/* An empty one, to the same place: "[]", or the line that says why. */
void np_hook_report_write_none(const np_hook_settings *settings);

/* What Python sees: the JSON of all devices as one array. The text is the thread's own until its next call; never NULL,
 * "[]" where there is no device or no memory. */
const char *neap_hook_stats(void);

#endif
