/* bench.h: what the benchmark programs share: results as CSV, and the machine they were measured on. */
#ifndef NEAP_BENCH_H
#define NEAP_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "MODEL, N cores": enough to judge a time by, and nothing that names one machine among its like. */
static inline const char *bench_machine(void)
{
    static char text[160];
    char line[256], model[96] = "unknown processor";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        line[strcspn(line, "\n\"")] = '\0';
        if (strncmp(line, "model name", 10) == 0 && colon && colon[1] == ' ') {
            (void)snprintf(model, sizeof model, "%.90s", colon + 2);
            break;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    (void)snprintf(text, sizeof text, "%s, %ld cores", model, sysconf(_SC_NPROCESSORS_ONLN));
    return text;
}

/* Opens a results file to append to; an empty one gets its header. NULL where no path is given. */
static inline FILE *bench_csv_open(const char *path, const char *header)
{
    FILE *file = path ? fopen(path, "a") : NULL;
    if (path && !file) {
        perror(path);
        exit(2);
    }
    if (file && fseek(file, 0, SEEK_END) == 0 && ftell(file) == 0) {
        (void)fprintf(file, "%s\n", header);
    }
    return file;
}

static inline void bench_csv_close(FILE *file)
{
    if (file && fclose(file) != 0) {
        perror("results");
        exit(2);
    }
}

/* The value of "--csv PATH" as first arguments, which are then skipped. */
static inline const char *bench_csv_argument(int *argc, char ***argv)
{
    const char *path = NULL;
    if (*argc > 2 && strcmp((*argv)[1], "--csv") == 0) {
        path = (*argv)[2];
        *argc -= 2;
        *argv += 2;
    }
    return path;
}

static inline const char *bench_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif
