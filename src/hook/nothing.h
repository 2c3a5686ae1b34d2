/* nothing.h: where a report or a trace was asked for and there is nothing to report: one line, and empty documents. */
#ifndef NP_HOOK_NOTHING_H
#define NP_HOOK_NOTHING_H

/* This process uses a device, and will report: the process that `neap run` became hears of it. */
void np_hook_nothing_is_wrong(void);

/* In place of _exit and _Exit. */
_Noreturn void np_hook_exit(int status);

#endif
