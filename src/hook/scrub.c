/* scrub.c: nothing of neap's is left on the program's stack.
 *
 * neap works in the program's threads, on their stacks. What it has given to the driver stays in dead frames: addresses of
 * blocks that have just left, of all things. Programs build structs of parameters there, and do not set all of their
 * fields; the next kernel would carry such an address, and seem to use the block. So where copies were given, the stack
 * below is wiped, as far down as the driver may have gone. */
#include <string.h>

#include "hook/core.h"

enum { SCRUB_BYTES = 16 << 10 }; /* fibres have small stacks, too */

uint64_t np_hook_copied(const np_hook_device *device)
{
    const neap_stats *stats = &device->manager->stats;
    return stats->bytes_out + stats->bytes_in;
}

__attribute__((noinline)) void np_hook_scrub(void)
{
    char bytes[SCRUB_BYTES];
    memset(bytes, 0, sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory"); /* they are looked at, for all that the compiler knows */
}
