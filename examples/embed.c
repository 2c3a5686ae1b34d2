/* embed.c: neap inside a larger program: its messages go to the program's own log, and its plans to a folder of the
 * program's choosing, so that the second run needs no planning. embed [FOLDER] */
#include <stdio.h>

#include "neap.h"

enum { BLOCKS = 6, BYTES = 300000, ROUNDS_MAX = 20000 };

static void log_line(void *user, neap_log_level level, const char *line) /* from any thread */
{
    (void)fprintf(stderr, "[%s] %s%s\n", (const char *)user, level == NEAP_LOG_WARN ? "warning: " : "", line);
}

static void work(void *arg)
{
    (*(char **)arg)[0] = 1;
}

static neap_status iterate(neap_device *device)
{
    neap_block *blocks[BLOCKS] = {NULL};
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < BLOCKS && status == NEAP_OK; i++) {
        if ((status = neap_malloc(device, BYTES * (i + 1), &blocks[i])) == NEAP_OK) {
            char *x = neap_data(blocks[i]);
            neap_work touch = {.name = "touch", .run = work, .arg = &x, .arg_bytes = sizeof x};
            status = neap_exec(device, &touch, &(neap_use){blocks[i], NEAP_ACCESS_UNKNOWN}, 1);
        }
        (void)neap_free(device, i > 0 ? blocks[i - 1] : NULL);
    }
    (void)neap_free(device, blocks[BLOCKS - 1]);
    return status;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "neap-plans";
    neap_stats stats = {0};
    for (int run = 0; run < 2; run++) {
        neap_device_options options = {.plan_cache = folder, .log_level = NEAP_LOG_INFO, .log = log_line};
        options.log_user = run == 0 ? "first run" : "second run";
        neap_device *device = NULL;
        stats = (neap_stats){0};
        neap_status status = neap_open("cpu", &options, NULL, NULL, &device);
        for (int i = 0; i < ROUNDS_MAX && status == NEAP_OK && stats.n_iterations < 10; i++) {
            status = iterate(device);
            neap_get_stats(device, &stats);
        }
        (void)printf("embed: %llu iterations from a plan %s\n", (unsigned long long)stats.n_iterations,
                     stats.plan_was_loaded ? "of the folder" : "made now");
        neap_close(device);
    }
    return stats.plan_was_loaded ? 0 : 1;
}
