/* keeper.c: who has the blocks.
 *
 * What is seen of a program's calls is the same whoever asks: which blocks a call uses, which of them must stay, what a graph
 * names. What is done about it is the manager's, as everywhere but in `neap verify`, which has a keeper in its place: so what
 * is proven there is what is relied on here. */
#include "hook/core.h"

neap_status np_hook_home(np_hook_device *device, const char *why)
{
    return device->keeper ? device->keeper->home(device) : np_beneath_home(device->manager, why);
}

neap_status np_hook_wait(np_hook_device *device)
{
    return device->keeper ? NEAP_OK : np_drain(device->manager); /* a keeper's home() has waited */
}
