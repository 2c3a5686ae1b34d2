/* test_write.c: what is written is read back the same, and what cannot be written leaves nothing behind. */
#include "trace/write.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/status.h"
#include "testing.h"
#include "trace/source.h"

typedef np_array(char) text_array;

static neap_status put_text(void *user, const void *bytes, size_t n_bytes, neap_error *error)
{
    text_array *text = user;
    (void)error;
    ASSERT_OK(np_array_reserve(NULL, text, text->n + n_bytes));
    memcpy(text->items + text->n, bytes, n_bytes);
    text->n += n_bytes;
    return NEAP_OK;
}

static void assert_round_trip(const neap_trace *trace)
{
    for (int as_gzip = 0; as_gzip < 2; as_gzip++) {
        text_array text = {0};
        neap_error error;
        neap_trace *again;
        ASSERT_OK((as_gzip ? np_write_gzip : np_write_text)(trace, put_text, &text, &error));
        ASSERT_EQ(memcmp(text.items, "\x1f\x8b", 2) == 0, as_gzip);
        ASSERT_OK(neap_trace_parse(text.items, text.n, "again", NULL, &error, &again));
        ASSERT_TRUE(np_trace_is_valid(again));
        ASSERT_TRUE(np_trace_is_equal(trace, again));
        neap_trace_free(again);
        np_array_free(NULL, &text);
    }
}

static neap_trace *parse(const char *text)
{
    neap_error error;
    neap_trace *trace;
    ASSERT_OK(neap_trace_parse(text, strlen(text), "f", NULL, &error, &trace));
    return trace;
}

/* What is canonical is written as it was. */
static void test_exact_text(void **state)
{
    static const char expected[] = "neap-trace 1\n"
                                   "meta a=1 b= a=2\n"
                                   "live 18446744073709551615 5\n"
                                   "iteration\n"
                                   "iteration\n"
                                   "malloc 0 9007199254740993\n"
                                   "exec k 0 18446744073709551615 r0 w18446744073709551615 x0\n"
                                   "exec void(*)[\xc3\xa4] 1 2\n"
                                   "free 18446744073709551615\n"
                                   "iteration\n";
    neap_trace *trace = parse(expected);
    text_array text = {0};
    (void)state;
    ASSERT_OK(np_write_text(trace, put_text, &text, NULL));
    ASSERT_OK(np_array_push(NULL, &text, '\0'));
    ASSERT_STR_EQ(text.items, expected);
    assert_round_trip(trace);
    np_array_free(NULL, &text);
    neap_trace_free(trace);
}

static void test_small_traces(void **state)
{
    static const char *const texts[] = {"neap-trace 1\n", "neap-trace 1\niteration\n", "neap-trace 1\nlive 1 2\n",
                                        "neap-trace 1\nmeta a=b\n"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        neap_trace *trace = parse(texts[i]);
        assert_round_trip(trace);
        neap_trace_free(trace);
    }
}

/* Long names, long `meta`, many accesses: records that do not fit in the writer's page. */
static void test_long_records(void **state)
{
    size_t n_name = 200000;
    char *name = malloc(n_name);
    np_rng rng = np_rng_make(3);
    neap_trace *trace;
    (void)state;
    ASSERT_TRUE(name != NULL);
    ASSERT_OK(np_trace_create(NULL, &trace));
    for (size_t i = 0; i < n_name; i++) {
        name[i] = (char)('!' + np_rng_below(&rng, 90));
    }
    ASSERT_OK(np_trace_add_live(trace, UINT64_MAX, 1));
    for (size_t i = 0; i < 40; i++) {
        ASSERT_OK(np_trace_add_meta(trace, "key", 3, name, 7 * i));
        ASSERT_OK(np_trace_add_exec(trace, name, 65500 + i, i, i));
        for (size_t j = 0; j < 1000 * i; j++) {
            ASSERT_OK(np_trace_add_access(trace, UINT64_MAX, (neap_access_kind)(j % 3)));
        }
    }
    ASSERT_OK(np_trace_add_meta(trace, "key", 3, name, n_name));
    ASSERT_OK(np_trace_add_exec(trace, name, n_name, 0, 0));
    assert_round_trip(trace);
    neap_trace_free(trace);
    free(name);
}

/* No reader would take the line. */
static void test_too_long_record(void **state)
{
    char path[TEST_PATH_BYTES];
    neap_trace *trace;
    neap_error error;
    (void)state;
    test_temp_path(path, "toolong.neap");
    ASSERT_OK(np_trace_create(NULL, &trace));
    ASSERT_OK(np_trace_add_live(trace, 1000000, 1));
    ASSERT_OK(np_trace_add_exec(trace, "k", 1, 0, 0));
    for (size_t i = 0; i < NP_SOURCE_LINE_MAX / 9 + 1; i++) {
        ASSERT_OK(np_trace_add_access(trace, 1000000, NEAP_ACCESS_READ));
    }
    ASSERT_STATUS(NEAP_TOO_LARGE, neap_trace_write(trace, path, &error));
    ASSERT_STR_EQ(error.text, "a record is longer than the 4194304 bytes that a line may have");
    ASSERT_NE(access(path, F_OK), 0);
    neap_trace_free(trace);
}

static void test_fixed_offsets(void **state)
{
    neap_trace *trace = parse("id,lower,upper,size,offset\n1,0,2,5,\n7,1,3,5,64\n");
    neap_error error;
    (void)state;
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_trace_write(trace, "/nowhere", &error));
    ASSERT_STR_EQ(error.text, "a trace cannot say that block 7 has a fixed offset");
    ASSERT_NE(access("/nowhere", F_OK), 0);
    neap_trace_free(trace);
}

/* Without fixed offsets a CSV is a trace like any other, but for what it was. */
static void test_csv_as_trace(void **state)
{
    neap_trace *trace = parse("id,lower,upper,size\n1,0,2,5\n7,1,3,5\n0,2,3,1\n");
    (void)state;
    trace->is_csv = false;
    assert_round_trip(trace);
    neap_trace_free(trace);
}

static void test_recordings(void **state)
{
    static const char *const names[] = {"vgg11-100-32", "vgg16-100-32", "resnet18-100-log",
                                        "lstm-64",      "gpt2-8",       "resnet18-100-32-fp32"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        char path[TEST_PATH_BYTES];
        neap_trace *trace;
        (void)snprintf(name, sizeof name, "traces/%s.neap.gz", names[i]);
        test_data_path(path, name);
        ASSERT_OK(neap_trace_read(path, NULL, NULL, &trace));
        assert_round_trip(trace);
        neap_trace_free(trace);
    }
}

static void test_shared_recordings(void **state)
{
    char folder[TEST_PATH_BYTES];
    DIR *directory;
    struct dirent *entry;
    size_t n = 0;
    (void)state;
    if (!test_shared_path(folder, "traces")) {
        skip();
    }
    directory = opendir(folder);
    ASSERT_TRUE(directory != NULL);
    while ((entry = readdir(directory))) {
        char path[TEST_PATH_BYTES + 300];
        neap_trace *trace;
        if (!strstr(entry->d_name, ".neap.gz")) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        ASSERT_OK(neap_trace_read(path, NULL, NULL, &trace));
        ASSERT_TRUE(np_trace_is_valid(trace));
        assert_round_trip(trace);
        neap_trace_free(trace);
        n++;
    }
    ASSERT_EQ(closedir(directory), 0);
    ASSERT_GE(n, 20);
}

/* ---------------------------------------------------------------- files ---- */

/* A new folder of its own, so that leftovers show. */
static void make_folder(char folder[TEST_PATH_BYTES], const char *name)
{
    test_temp_path(folder, name);
    ASSERT_EQ(mkdir(folder, 0700), 0);
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

static void test_files(void **state)
{
    static const char *const names[] = {"a.neap", "a.neap.gz", "gz", ".gz"};
    neap_trace *trace = parse("neap-trace 1\nlive 1 2\n");
    char folder[TEST_PATH_BYTES];
    mode_t mask = umask(022);
    (void)state;
    make_folder(folder, "files");
    for (size_t i = 0; i < 4; i++) {
        char path[TEST_PATH_BYTES + 16];
        unsigned char magic[2] = {0};
        struct stat info;
        neap_trace *again;
        FILE *file;
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        ASSERT_OK(neap_trace_write(trace, path, NULL));
        ASSERT_OK(neap_trace_write(trace, path, NULL)); /* over itself */
        file = fopen(path, "rb");
        ASSERT_TRUE(file != NULL);
        ASSERT_EQ(fread(magic, 1, 2, file), 2);
        ASSERT_EQ(fclose(file), 0);
        ASSERT_EQ(magic[0] == 0x1f && magic[1] == 0x8b, i % 2);
        ASSERT_EQ(stat(path, &info), 0);
        ASSERT_EQ(info.st_mode & 0777, 0644);
        ASSERT_OK(neap_trace_read(path, NULL, NULL, &again));
        ASSERT_TRUE(np_trace_is_equal(trace, again));
        neap_trace_free(again);
        ASSERT_EQ(unlink(path), 0);
        ASSERT_EQ(count_files(folder), 0);
    }
    ASSERT_EQ(rmdir(folder), 0);
    (void)umask(mask);
    neap_trace_free(trace);
}

static void test_impossible_paths(void **state)
{
    neap_trace *trace = parse("neap-trace 1\nlive 1 2\n");
    neap_error error;
    (void)state;
    ASSERT_STATUS(NEAP_IO, neap_trace_write(trace, "/nowhere/a.neap", &error));
    ASSERT_STR_EQ(error.text, "/nowhere/a.neap: No such file or directory");
    ASSERT_STATUS(NEAP_IO, neap_trace_write(trace, "/", &error));
    ASSERT_STR_EQ(error.text, "/: Is a directory");
    ASSERT_STATUS(NEAP_IO, neap_trace_write(trace, "", &error));
    neap_trace_free(trace);
}

/* A device is written to, never replaced; this one is always full. */
static void test_full_device(void **state)
{
    neap_trace *trace = parse("neap-trace 1\nlive 1 2\n");
    struct stat info;
    neap_error error;
    (void)state;
    if (access("/dev/full", W_OK) != 0) {
        neap_trace_free(trace);
        SKIP("there is no /dev/full");
    }
    ASSERT_STATUS(NEAP_IO, neap_trace_write(trace, "/dev/full", &error));
    ASSERT_STR_EQ(error.text, "/dev/full: No space left on device");
    ASSERT_EQ(stat("/dev/full", &info), 0);
    ASSERT_TRUE(S_ISCHR(info.st_mode));
    neap_trace_free(trace);
}

/* A file that may not grow stands for a disk that is full: nothing is left, and what was there before stays. */
static void test_full_disk(void **state)
{
    static const char *const names[] = {"traces/gpt2-8.neap", "traces/gpt2-8.neap.gz"};
    char source[TEST_PATH_BYTES];
    char folder[TEST_PATH_BYTES];
    neap_trace *trace;
    neap_trace *small = parse("neap-trace 1\nlive 1 2\n");
    struct rlimit kept;
    struct rlimit limit;
    (void)state;
    make_folder(folder, "full");
    test_data_path(source, names[1]);
    ASSERT_OK(neap_trace_read(source, NULL, NULL, &trace));
    (void)signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &kept), 0);
    for (size_t i = 0; i < 2; i++) {
        char path[TEST_PATH_BYTES + 16];
        neap_error error;
        neap_trace *again;
        (void)snprintf(path, sizeof path, "%s/%s", folder, strrchr(names[i], '/') + 1);
        for (int exists = 0; exists < 2; exists++) {
            neap_status status;
            limit = (struct rlimit){10000, kept.rlim_max};
            ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
            status = neap_trace_write(trace, path, &error);
            ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &kept), 0);
            ASSERT_STATUS(NEAP_IO, status);
            ASSERT_CONTAINS(error.text, ": File too large");
            ASSERT_EQ(count_files(folder), exists);
            if (!exists) {
                ASSERT_OK(neap_trace_write(small, path, NULL));
            }
        }
        ASSERT_OK(neap_trace_read(path, NULL, NULL, &again));
        ASSERT_TRUE(np_trace_is_equal(small, again));
        neap_trace_free(again);
        ASSERT_EQ(unlink(path), 0);
    }
    ASSERT_EQ(rmdir(folder), 0);
    (void)signal(SIGXFSZ, SIG_DFL);
    neap_trace_free(small);
    neap_trace_free(trace);
}

static neap_status refuse(void *user, const void *bytes, size_t n_bytes, neap_error *error)
{
    size_t *n_calls = user;
    (void)bytes;
    (void)n_bytes;
    return --*n_calls ? NEAP_OK : np_fail(error, NEAP_IO, "enough");
}

/* Whichever call of the sink fails, it is the last. */
static void test_failing_sink(void **state)
{
    char path[TEST_PATH_BYTES];
    neap_trace *trace;
    (void)state;
    test_data_path(path, "traces/lstm-64.neap.gz");
    ASSERT_OK(neap_trace_read(path, NULL, NULL, &trace));
    for (int as_gzip = 0; as_gzip < 2; as_gzip++) {
        neap_status status = NEAP_IO;
        size_t n_failed = 0;
        while (status != NEAP_OK) {
            size_t n_calls = n_failed + 1;
            neap_error error = {""};
            status = (as_gzip ? np_write_gzip : np_write_text)(trace, refuse, &n_calls, &error);
            if (status != NEAP_OK) {
                ASSERT_EQ(n_calls, 0);
                ASSERT_STR_EQ(error.text, "enough");
                n_failed++;
            }
        }
        ASSERT_GE(n_failed, as_gzip ? 2 : 8);
    }
    neap_trace_free(trace);
}

/* Makes a trace and writes it: the writer's memory is the trace's. */
static neap_status write_action(const neap_memory *memory, void *user)
{
    neap_trace *trace;
    neap_error error;
    neap_status status = np_trace_create(memory, &trace);
    if (status != NEAP_OK) {
        return status;
    }
    status = np_trace_add_live(trace, 1, 2);
    if (status == NEAP_OK) {
        status = neap_trace_write(trace, user, &error);
        if (status == NEAP_NO_MEMORY) {
            ASSERT_NE(access(user, F_OK), 0);
        }
    }
    if (status == NEAP_OK) {
        ASSERT_EQ(unlink(user), 0);
    }
    neap_trace_free(trace);
    return status;
}

static void test_no_memory(void **state)
{
    static const char *const names[] = {"memory.neap", "memory.neap.gz"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char path[TEST_PATH_BYTES];
        test_temp_path(path, names[i]);
        ASSERT_GT(test_memory_fail_each(write_action, path), 3 + 4 * i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_text),    cmocka_unit_test(test_small_traces),
        cmocka_unit_test(test_long_records),  cmocka_unit_test(test_too_long_record),
        cmocka_unit_test(test_fixed_offsets), cmocka_unit_test(test_csv_as_trace),
        cmocka_unit_test(test_recordings),    cmocka_unit_test(test_shared_recordings),
        cmocka_unit_test(test_files),         cmocka_unit_test(test_impossible_paths),
        cmocka_unit_test(test_full_device),   cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_failing_sink),  cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
