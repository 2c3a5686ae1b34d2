/* scrub.c: no addresses are left on the program's stack, where neap can help it.
 *
 * What a program, the driver or neap has passed on stays in dead frames: addresses of blocks. Programs build structs of
 * parameters there, and do not set all of their fields; the next kernel carries such an address, and seems to use the
 * block. PyTorch's strided kernels do so by the dozen. Which words it meets depends on what ran there before, neap's own
 * calls among it: on an H200, llama's kernels named blocks on a plan that they had named neither in the recording nor on
 * the plan before, always the same ones. So the stack below is wiped after every call that neap is in, and before a
 * launch for which it had something to do, as CUPTI calls back from further down once that is done: as far down as
 * addresses were found (15 KB), which takes some tenths of a microsecond, and takes up the caches. Only where it matters
 * what seems to be used: where blocks may be swapped, or a recording is kept, and somebody looks. */
#include <string.h>

#include "hook/core.h"

enum { SCRUB_BYTES = 16 << 10 }; /* fibres have small stacks, too */

__attribute__((noinline)) void np_hook_scrub(void)
{
    char bytes[SCRUB_BYTES];
    memset(bytes, 0, sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory"); /* they are looked at, for all that the compiler knows */
}

void np_hook_scrub_where_it_matters(bool is_resting)
{
    const np_hook_settings *settings = &np_the_hook.settings;
    if (is_resting) {
        return;
    }
    if (settings->limit > 0 || settings->limit_share > 0 || settings->overhead > 0 || settings->record) {
        np_hook_scrub();
    }
}
