/* listener.c: a process that `neap top` can look at: the hook's own watching thread, over two devices that there are not.
 * It lives until its standard input ends. With "none" it has no device yet. */
#include <string.h>
#include <unistd.h>

#include "hook/report.h"
#include "hook/watch.h"

static size_t n_devices = 2;
static const char *reason = "a \"quoted\" reason";

size_t np_hook_n_devices(void)
{
    return n_devices;
}

bool np_hook_get_facts(size_t index, np_hook_facts *facts)
{
    *facts = (np_hook_facts){
        .ordinal = (int)index,
        .stats = {.state = NEAP_STATE_RUN,
                  .held = 330000000,
                  .limit = 336840000,
                  .peak_load = 481200000,
                  .n_iterations = 1280,
                  .bytes_out = 12100000,
                  .bytes_in = 12000000,
                  .n_departures = 3,
                  .overhead = 0.008},
        .pool_iteration = UINT64_MAX,
        .aside = index == 1 ? reason : NULL,
    };
    return index < n_devices;
}

int main(int argc, char **argv)
{
    char c;
    n_devices = argc > 1 && strcmp(argv[1], "none") == 0 ? 0 : n_devices;
    reason = argc > 1 && strcmp(argv[1], "evil") == 0 ? "a\x1b[2J\x9b\xe2\x80\xae" : reason;
    const np_hook_settings settings = {.mode = NP_HOOK_RUN, .report = "-"};
    np_hook_watch_begin(&settings);
    while (read(STDIN_FILENO, &c, 1) > 0) {}
    np_hook_watch_end();
    return 0;
}
