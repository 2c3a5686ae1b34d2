/* test_plan_file.c: what is saved is loaded the same, and only where it belongs; what is damaged is refused. */
#include "run/plan_file.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/learned.h"
#include "testing.h"

enum { CAPACITY = 8 };

typedef np_array(unsigned char) byte_array;

/* ---------------------------------------------------------------- tools ---- */

static void make_folder(char folder[TEST_PATH_BYTES], const char *name)
{
    test_temp_path(folder, name);
    ASSERT_EQ(mkdir(folder, 0700), 0);
}

static void in_folder(char path[TEST_PATH_BYTES], const char *folder, const char *name)
{
    int n = snprintf(path, TEST_PATH_BYTES, "%s/%s", folder, name);
    ASSERT_TRUE(n > 0 && n < TEST_PATH_BYTES);
}

static size_t count_files(const char *folder)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    size_t n = 0;
    ASSERT_TRUE(directory != NULL);
    while ((entry = readdir(directory))) {
        n += entry->d_name[0] != '.';
    }
    ASSERT_EQ(closedir(directory), 0);
    return n;
}

static byte_array read_bytes(const char *path)
{
    byte_array bytes = {0};
    FILE *file = fopen(path, "rb");
    int c;
    ASSERT_TRUE(file != NULL);
    while ((c = getc(file)) != EOF) {
        ASSERT_OK(np_array_push(NULL, &bytes, (unsigned char)c));
    }
    ASSERT_EQ(fclose(file), 0);
    return bytes;
}

static void write_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    ASSERT_TRUE(file != NULL);
    ASSERT_EQ(fwrite(bytes, 1, n, file), n);
    ASSERT_EQ(fclose(file), 0);
}

static neap_status save_one(const char *path, const np_plan_origin *origin, const np_pattern *pattern,
                            neap_error *error)
{
    return np_plan_file_save(path, origin, 4096, &pattern, 1, NULL, error);
}

/* The patterns of a file, loaded and dropped. */
static neap_status try_load(const char *path, const np_plan_origin *origin, neap_error *error)
{
    np_pattern *patterns[CAPACITY];
    size_t n = 0;
    uint64_t limit;
    neap_status status = np_plan_file_load(path, origin, NULL, error, &limit, patterns, CAPACITY, &n);
    for (size_t i = 0; i < n; i++) {
        np_pattern_free(patterns[i]);
    }
    return status;
}

static void assert_round_trip(const char *path, const np_plan_origin *origin, np_pattern *const *patterns, size_t n)
{
    np_pattern *again[CAPACITY];
    size_t n_again = 0;
    uint64_t limit = 0;
    neap_error error;
    ASSERT_OK(np_plan_file_save(path, origin, 1 << 30, (const np_pattern *const *)patterns, n, NULL, &error));
    ASSERT_STR_EQ(error.text, "");
    (void)np_plan_file_load(path, origin, NULL, &error, &limit, again, CAPACITY, &n_again);
    ASSERT_STR_EQ(error.text, "");
    ASSERT_EQ(limit, 1 << 30);
    ASSERT_EQ(n_again, n);
    for (size_t i = 0; i < n; i++) {
        ASSERT_TRUE(np_pattern_is_valid(again[i]));
        ASSERT_TRUE(patterns_are_equal(patterns[i], again[i]));
        np_pattern_free(again[i]);
    }
    ASSERT_EQ(unlink(path), 0);
}

/* ---------------------------------------------------------------- round trips ---- */

static void test_random_patterns(void **state)
{
    np_plan_origin origin = learned_origin(LEARNED_PAGE);
    char folder[TEST_PATH_BYTES];
    char path[TEST_PATH_BYTES];
    uint64_t seed = 1;
    size_t n_swaps = 0;
    size_t n_places = 0;
    size_t n_streams = 0;
    (void)state;
    make_folder(folder, "random");
    in_folder(path, folder, "a.neap-plan");
    for (int round = 0; round < (TEST_SANITIZED ? 5 : 15); round++) {
        np_pattern *patterns[3];
        for (size_t i = 0; i < 3; i++) {
            const np_program *program;
            patterns[i] = learn_random_pattern(&seed);
            program = &patterns[i]->program;
            n_swaps += program->swaps.n;
            for (size_t k = 0; k < program->lives.n; k++) {
                n_places += program->lives.items[k].n_places > 1;
            }
            for (size_t k = 0; k < program->n_execs; k++) {
                n_streams += patterns[i]->exec_streams[k] > 0;
            }
        }
        for (size_t n = 0; n <= 3; n++) {
            assert_round_trip(path, &origin, patterns, n);
        }
        for (size_t i = 0; i < 3; i++) {
            np_pattern_free(patterns[i]);
        }
    }
    ASSERT_GT(n_swaps, 10);
    ASSERT_GT(n_places, 3);
    ASSERT_GT(n_streams, 10);
    ASSERT_EQ(count_files(folder), 0);
    ASSERT_EQ(rmdir(folder), 0);
}

static void test_recordings(void **state)
{
    static const char *const names[] = {"vgg11-100-32", "lstm-64", "resnet18-100-log"};
    learned_options options = {.page_bytes = 64 << 10, .min_block = 1 << 20, .limit_share = 0.8};
    np_plan_origin origin = learned_origin(64 << 10);
    char path[TEST_PATH_BYTES];
    size_t n_swaps = 0;
    (void)state;
    options.link_gbs = 25;
    origin.n_streams = NP_MAX_STREAMS;
    test_temp_path(path, "recorded.neap-plan");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char source[TEST_PATH_BYTES];
        char name[64];
        np_pattern *pattern;
        neap_trace *trace;
        neap_status status;
        (void)snprintf(name, sizeof name, "traces/%s.neap.gz", names[i]);
        test_data_path(source, name);
        options.seconds = 0.5;
        for (int n = 1;; n++) { /* on a busy machine it may take a while */
            ASSERT_OK(neap_trace_read(source, NULL, NULL, &trace));
            pattern = learn_pattern(trace, &options, &status);
            options.seconds *= 4;
            if (status != NEAP_NO_PLAN || n == TEST_TRIES) {
                break;
            }
            test_retried(names[i], n);
        }
        ASSERT_OK(status);
        n_swaps += pattern->program.swaps.n;
        assert_round_trip(path, &origin, &pattern, 1);
        np_pattern_free(pattern);
    }
    ASSERT_GT(n_swaps, 0);
}

/* What differs is for test_plan_origin.c; here, that it is asked. */
static void test_other_origin(void **state)
{
    np_plan_origin origin = learned_origin(LEARNED_PAGE);
    np_plan_origin here = origin;
    char path[TEST_PATH_BYTES];
    char expected[TEST_PATH_BYTES + 64];
    neap_error error;
    (void)state;
    strcpy(here.version, "1.3.0");
    test_temp_path(path, "origin.neap-plan");
    (void)snprintf(expected, sizeof expected, "%s: made by neap 1.2.3, this is 1.3.0", path);
    ASSERT_OK(np_plan_file_save(path, &origin, 0, NULL, 0, NULL, &error));
    ASSERT_STATUS(NEAP_BAD_INPUT, try_load(path, &here, &error));
    ASSERT_STR_EQ(error.text, expected);
    ASSERT_OK(try_load(path, &origin, &error));
    ASSERT_EQ(unlink(path), 0);
}

/* ---------------------------------------------------------------- damage ---- */

/* A file of a small pattern, which has swaps. */
static byte_array make_small_file(const np_plan_origin *origin)
{
    char path[TEST_PATH_BYTES];
    byte_array bytes = {0};
    uint64_t seed = 1;
    test_temp_path(path, "small.neap-plan");
    do {
        np_pattern *pattern = learn_random_pattern(&seed);
        np_array_free(NULL, &bytes);
        if (pattern->program.swaps.n > 0) {
            ASSERT_OK(save_one(path, origin, pattern, NULL));
            bytes = read_bytes(path);
            ASSERT_EQ(unlink(path), 0);
        }
        np_pattern_free(pattern);
    } while (bytes.n == 0 || bytes.n > 600);
    return bytes;
}

static neap_status try_parse(const unsigned char *bytes, size_t n_bytes, const np_plan_origin *origin,
                             neap_error *error)
{
    unsigned char *copy = malloc(n_bytes + 1); /* its end is watched by sanitizers */
    np_pattern *patterns[CAPACITY];
    size_t n = 0;
    uint64_t limit;
    neap_status status;
    ASSERT_TRUE(copy != NULL);
    copy = realloc(copy, n_bytes ? n_bytes : 1);
    memcpy(copy, bytes, n_bytes);
    status = np_plan_file_parse(copy, n_bytes, "file", origin, NULL, error, &limit, patterns, CAPACITY, &n);
    for (size_t i = 0; i < n; i++) {
        np_pattern_free(patterns[i]);
    }
    free(copy);
    return status;
}

static void test_cut_short(void **state)
{
    np_plan_origin origin = learned_origin(LEARNED_PAGE);
    byte_array bytes = make_small_file(&origin);
    neap_error error;
    (void)state;
    ASSERT_OK(try_parse(bytes.items, bytes.n, &origin, &error));
    for (size_t n = 0; n < bytes.n; n++) {
        ASSERT_STATUS(NEAP_BAD_INPUT, try_parse(bytes.items, n, &origin, &error));
        ASSERT_EQ(strncmp(error.text, "file: ", 6), 0);
        ASSERT_STR_EQ(strchr(error.text, ' ') + 1, n < 10 ? "this is no plan file"
                                                   : n < 12
                                                       ? "a plan file of another format"
                                                       : "the plan file is cut short, or longer than it should be");
    }
    ASSERT_OK(np_array_push(NULL, &bytes, 0));
    ASSERT_STATUS(NEAP_BAD_INPUT, try_parse(bytes.items, bytes.n, &origin, &error));
    np_array_free(NULL, &bytes);
}

static void test_flipped_bytes(void **state)
{
    np_plan_origin origin = learned_origin(LEARNED_PAGE);
    byte_array bytes = make_small_file(&origin);
    neap_error error;
    (void)state;
    for (size_t i = 0; i < bytes.n; i++) {
        for (unsigned flip = 1; flip < 256; flip += i < 40 || !TEST_SANITIZED ? 1 : 17) {
            bytes.items[i] ^= (unsigned char)flip;
            ASSERT_STATUS(NEAP_BAD_INPUT, try_parse(bytes.items, bytes.n, &origin, &error));
            ASSERT_NE(error.text[0], '\0');
            bytes.items[i] ^= (unsigned char)flip;
        }
    }
    ASSERT_OK(try_parse(bytes.items, bytes.n, &origin, &error));
    bytes.items[10] = '2';
    ASSERT_STATUS(NEAP_BAD_INPUT, try_parse(bytes.items, bytes.n, &origin, &error));
    ASSERT_STR_EQ(error.text, "file: a plan file of another format");
    np_array_free(NULL, &bytes);
}

/* ---------------------------------------------------------------- files ---- */

static void test_folders(void **state)
{
    np_plan_origin origin = learned_origin(LEARNED_PAGE);
    char folder[TEST_PATH_BYTES];
    char deep[TEST_PATH_BYTES];
    char path[TEST_PATH_BYTES];
    uint64_t seed = 1;
    np_pattern *pattern = learn_random_pattern(&seed);
    neap_error error = {"x"};
    (void)state;
    test_temp_path(folder, "made");
    in_folder(path, folder, "a.neap-plan");
    ASSERT_STATUS(NEAP_IO, try_load(path, &origin, &error)); /* no folder, no file: nothing to be said about it */
    ASSERT_STR_EQ(error.text, "");
    ASSERT_OK(save_one(path, &origin, pattern, &error));
    ASSERT_OK(save_one(path, &origin, pattern, &error)); /* over itself */
    ASSERT_OK(try_load(path, &origin, &error));
    ASSERT_EQ(count_files(folder), 1);
    in_folder(deep, path, "b.neap-plan");
    ASSERT_STATUS(NEAP_IO, try_load(deep, &origin, &error));
    ASSERT_STR_EQ(error.text, "");
    ASSERT_STATUS(NEAP_IO, save_one(deep, &origin, pattern, &error));
    ASSERT_CONTAINS(error.text, "/a.neap-plan/b.neap-plan: Not a directory");
    in_folder(deep, folder, "no/where/b.neap-plan");
    ASSERT_STATUS(NEAP_IO, save_one(deep, &origin, pattern, &error));
    ASSERT_CONTAINS(error.text, "/no/where: No such file or directory");
    ASSERT_STATUS(NEAP_BAD_INPUT, try_load(folder, &origin, &error));
    ASSERT_CONTAINS(error.text, ": this is no plan file");
    ASSERT_STATUS(NEAP_IO, save_one(folder, &origin, pattern, &error));
    ASSERT_CONTAINS(error.text, ": Is a directory");
    ASSERT_STATUS(NEAP_IO, save_one("/proc/neap/a", &origin, pattern, &error));
    ASSERT_CONTAINS(error.text, "/proc/neap: ");
    ASSERT_EQ(count_files(folder), 1);
    ASSERT_EQ(unlink(path), 0);
    write_bytes(path, "", 0);
    ASSERT_STATUS(NEAP_BAD_INPUT, try_load(path, &origin, &error));
    ASSERT_EQ(unlink(path), 0);
    ASSERT_EQ(rmdir(folder), 0);
    np_pattern_free(pattern);
}

static void test_unwritable_folder(void **state)
{
    np_plan_origin origin = learned_origin(LEARNED_PAGE);
    char folder[TEST_PATH_BYTES];
    char path[TEST_PATH_BYTES];
    uid_t user = geteuid();
    neap_error error;
    neap_status status;
    (void)state;
    make_folder(folder, "closed");
    in_folder(path, folder, "a.neap-plan");
    ASSERT_EQ(chmod(folder, 0555), 0);
    if (user == 0 && seteuid(65534) != 0) { /* root may write anywhere */
        ASSERT_EQ(rmdir(folder), 0);
        SKIP("root cannot become anyone else here");
    }
    status = np_plan_file_save(path, &origin, 0, NULL, 0, NULL, &error);
    ASSERT_TRUE(user != 0 || seteuid(0) == 0);
    ASSERT_STATUS(NEAP_IO, status);
    ASSERT_CONTAINS(error.text, ": Permission denied");
    ASSERT_EQ(rmdir(folder), 0);
}

/* A file that may not grow stands for a disk that is full: nothing is left, not even the folder, and what was there
 * before stays. The signal that comes with it, which would end the program, does not reach it. */
static void test_full_disk(void **state)
{
    np_plan_origin origin = learned_origin(LEARNED_PAGE);
    char folder[TEST_PATH_BYTES];
    char path[TEST_PATH_BYTES];
    uint64_t seed = 1;
    np_pattern *pattern = learn_random_pattern(&seed);
    struct rlimit kept;
    struct rlimit limit;
    (void)state;
    test_temp_path(folder, "full");
    in_folder(path, folder, "a.neap-plan");
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &kept), 0);
    limit = (struct rlimit){100, kept.rlim_max};
    for (int exists = 0; exists < 2; exists++) {
        neap_error error;
        neap_status status;
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
        status = save_one(path, &origin, pattern, &error);
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &kept), 0);
        ASSERT_STATUS(NEAP_IO, status);
        ASSERT_CONTAINS(error.text, "a.neap-plan: File too large");
        if (exists) {
            ASSERT_EQ(count_files(folder), 1);
            ASSERT_OK(try_load(path, &origin, &error));
        } else {
            ASSERT_NE(access(folder, F_OK), 0);
            ASSERT_OK(save_one(path, &origin, pattern, &error));
        }
    }
    ASSERT_EQ(unlink(path), 0);
    ASSERT_EQ(rmdir(folder), 0);
    np_pattern_free(pattern);
}

/* Saves again and again until it is stopped, or something goes wrong. */
static _Noreturn void save_for_ever(const char *path, const np_plan_origin *origin, const np_pattern *pattern)
{
    while (save_one(path, origin, pattern, NULL) == NEAP_OK) {}
    _exit(1);
}

/* Processes that save to one path at once: there is a whole file at every moment. */
static void test_many_writers(void **state)
{
    enum { N = 3 };
    np_plan_origin origin = learned_origin(LEARNED_PAGE);
    char folder[TEST_PATH_BYTES];
    char path[TEST_PATH_BYTES];
    uint64_t seed = 1;
    np_pattern *patterns[N];
    pid_t writers[N];
    int n_loaded = 0;
    (void)state;
    test_temp_path(folder, "writers");
    in_folder(path, folder, "a.neap-plan");
    for (int i = 0; i < N; i++) {
        patterns[i] = learn_random_pattern(&seed);
    }
    ASSERT_OK(save_one(path, &origin, patterns[0], NULL));
    for (int i = 0; i < N; i++) {
        writers[i] = fork();
        ASSERT_GE(writers[i], 0);
        if (writers[i] == 0) {
            save_for_ever(path, &origin, patterns[i]);
        }
    }
    for (int i = 0; i < 300; i++) {
        n_loaded += try_load(path, &origin, NULL) == NEAP_OK;
    }
    for (int i = 0; i < N; i++) {
        int result;
        ASSERT_EQ(kill(writers[i], SIGKILL), 0);
        ASSERT_EQ(waitpid(writers[i], &result, 0), writers[i]);
        ASSERT_TRUE(WIFSIGNALED(result));
    }
    ASSERT_EQ(n_loaded, 300);
    ASSERT_OK(save_one(path, &origin, patterns[0], NULL)); /* whatever those who were killed left behind */
    ASSERT_OK(try_load(path, &origin, NULL));
    ASSERT_LE(count_files(folder), 1 + N);
    for (int i = 0; i < N; i++) {
        char left[TEST_PATH_BYTES + 64];
        (void)snprintf(left, sizeof left, "%s.%ld-0.tmp", path, (long)writers[i]);
        (void)unlink(left);
        np_pattern_free(patterns[i]);
    }
    ASSERT_EQ(unlink(path), 0);
    ASSERT_EQ(rmdir(folder), 0);
}

static void test_too_many(void **state)
{
    np_plan_origin origin = learned_origin(LEARNED_PAGE);
    char path[TEST_PATH_BYTES];
    char long_path[NP_PLAN_PATH_BYTES + 1];
    uint64_t seed = 1;
    const np_pattern *patterns[NP_PLAN_MAX_PATTERNS + 1];
    np_pattern *pattern = learn_random_pattern(&seed);
    neap_error error;
    (void)state;
    test_temp_path(path, "many.neap-plan");
    for (size_t i = 0; i <= NP_PLAN_MAX_PATTERNS; i++) {
        patterns[i] = pattern;
    }
    ASSERT_OK(np_plan_file_save(path, &origin, 0, patterns, CAPACITY + 1, NULL, &error));
    ASSERT_STATUS(NEAP_BAD_INPUT, try_load(path, &origin, &error));
    ASSERT_CONTAINS(error.text, ": it has too many patterns");
    ASSERT_EQ(unlink(path), 0);
    ASSERT_STATUS(NEAP_TOO_LARGE,
                  np_plan_file_save(path, &origin, 0, patterns, NP_PLAN_MAX_PATTERNS + 1, NULL, &error));
    memset(long_path, 'a', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    ASSERT_STATUS(NEAP_TOO_LARGE, save_one(long_path, &origin, pattern, &error));
    np_pattern_free(pattern);
}

/* The manager counts it in pages: one at the least, and fewer than 2^32 - 1. */
static void test_limits(void **state)
{
    static const struct {
        uint64_t limit;
        neap_status status;
    } cases[] = {
        {0, NEAP_OK},
        {1, NEAP_BAD_INPUT},
        {LEARNED_PAGE - 1, NEAP_BAD_INPUT},
        {LEARNED_PAGE, NEAP_OK},
        {LEARNED_PAGE * (uint64_t)UINT32_MAX - 1, NEAP_OK},
        {LEARNED_PAGE * (uint64_t)UINT32_MAX, NEAP_BAD_INPUT},
        {UINT64_MAX, NEAP_BAD_INPUT},
    };
    np_plan_origin origin = learned_origin(LEARNED_PAGE);
    char path[TEST_PATH_BYTES];
    (void)state;
    test_temp_path(path, "limit.neap-plan");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        neap_error error;
        ASSERT_OK(np_plan_file_save(path, &origin, cases[i].limit, NULL, 0, NULL, &error));
        ASSERT_STATUS(cases[i].status, try_load(path, &origin, &error));
        ASSERT_EQ(error.text[0] != '\0', cases[i].status != NEAP_OK);
    }
    ASSERT_EQ(unlink(path), 0);
}

/* ---------------------------------------------------------------- no memory ---- */

typedef struct memory_case {
    const char *path;
    np_plan_origin origin;
    np_pattern *patterns[2];
} memory_case;

static neap_status save_action(const neap_memory *memory, void *user)
{
    const memory_case *c = user;
    neap_error error;
    neap_status status =
        np_plan_file_save(c->path, &c->origin, 4096, (const np_pattern *const *)c->patterns, 2, memory, &error);
    if (status == NEAP_NO_MEMORY) {
        ASSERT_NE(access(c->path, F_OK), 0);
        ASSERT_STR_EQ(error.text, neap_status_message(NEAP_NO_MEMORY));
    } else {
        ASSERT_EQ(unlink(c->path), 0);
    }
    return status;
}

static neap_status load_action(const neap_memory *memory, void *user)
{
    const memory_case *c = user;
    np_pattern *patterns[2];
    neap_error error;
    uint64_t limit;
    size_t n = 0;
    neap_status status = np_plan_file_load(c->path, &c->origin, memory, &error, &limit, patterns, 2, &n);
    if (status == NEAP_NO_MEMORY) {
        ASSERT_STR_EQ(error.text, neap_status_message(NEAP_NO_MEMORY));
    }
    for (size_t i = 0; i < n; i++) {
        ASSERT_TRUE(patterns_are_equal(patterns[i], c->patterns[i]));
        np_pattern_free(patterns[i]);
    }
    return status;
}

static void test_no_memory(void **state)
{
    char path[TEST_PATH_BYTES];
    memory_case c = {.path = path, .origin = learned_origin(LEARNED_PAGE)};
    uint64_t seed = 5;
    (void)state;
    test_temp_path(path, "memory.neap-plan");
    c.patterns[0] = learn_random_pattern(&seed);
    c.patterns[1] = learn_random_pattern(&seed);
    ASSERT_GT(test_memory_fail_each(save_action, &c), 10);
    ASSERT_OK(np_plan_file_save(path, &c.origin, 4096, (const np_pattern *const *)c.patterns, 2, NULL, NULL));
    ASSERT_GT(test_memory_fail_each(load_action, &c), 50);
    ASSERT_EQ(unlink(path), 0);
    np_pattern_free(c.patterns[0]);
    np_pattern_free(c.patterns[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_patterns),
        cmocka_unit_test(test_recordings),
        cmocka_unit_test(test_other_origin),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_flipped_bytes),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_unwritable_folder),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_many_writers),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
