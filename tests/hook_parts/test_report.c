/* Reports: what is said and what is left out, numbers in any locale, files that appear whole, and no harm to the program. */
#include "hook/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comma.h"
#include "hook/put.h"
#include "hook_parts/capture.h"
#include "testing.h"

/* ---- the devices of a process that there is not ---- */

enum { DEVICES_MAX = 3 };

static np_hook_facts devices[DEVICES_MAX];
static size_t n_devices;

size_t np_hook_n_devices(void)
{
    return n_devices;
}

bool np_hook_get_facts(size_t index, np_hook_facts *facts)
{
    if (index >= n_devices) {
        return false;
    }
    *facts = devices[index];
    return true;
}

static np_hook_facts quiet_device(int ordinal)
{
    return (np_hook_facts){
        .ordinal = ordinal,
        .stats = {.peak_live = 1000000, .peak_held = 2097152, .held = 2097152, .overhead = NAN},
        .seconds = 0.25,
        .pool_iteration = UINT64_MAX,
    };
}

static np_hook_facts busy_device(void)
{
    np_hook_facts facts = {
        .ordinal = 0,
        .stats =
            {
                .state = NEAP_STATE_RUN,
                .limit = 336840000,
                .live = 300000000,
                .held = 330000000,
                .peak_live = 481000000,
                .peak_held = 700000000,
                .peak_load = 481200000,
                .footprint = 336000000,
                .planned_footprint = 335000000,
                .bytes_out = 12100000000,
                .bytes_in = 12000000000,
                .host_bytes = 160000000,
                .n_iterations = 128,
                .n_patterns = 2,
                .n_departures = 3,
                .overhead = 0.008,
                .plan_overhead = 0.005,
                .iteration_ns = 6.1e6,
            },
        .seconds = 12.5,
        .caching_bytes = 700100000,
        .held_fixed = 3000000,
        .peak_fixed = 4000000,
        .n_launches = 100000,
        .n_unknown = 1,
        .pool_iteration = 4,
        .pool_seconds = 2.1,
        .swap_seconds = 3.3,
        .is_verified = true,
    };
    facts.stats.departures[NEAP_DEPARTURE_MALLOC] = 2;
    facts.stats.departures[NEAP_DEPARTURE_EXEC] = 1;
    return facts;
}

static int begin(void **state)
{
    (void)state;
    (void)unsetenv("RANK");
    (void)unsetenv("LOCAL_RANK");
    devices[0] = busy_device();
    n_devices = 1;
    return 0;
}

/* ---- lines ---- */

static void test_text_of_a_busy_device(void **state)
{
    static const char expected[] =
        "neap: cuda:0: peak load 481.2 MB, held 336.0 MB (x 0.6983); PyTorch's own allocator would have held 700.1 MB\n"
        "neap: cuda:0: limit     336.8 MB, 70.00 % of the peak load\n"
        "neap: cuda:0: swapped   12100.0 MB out, 12000.0 MB in; host memory 160.0 MB; verified\n"
        "neap: cuda:0: overhead  0.80 % measured, 0.50 % planned, of an iteration of 6.1 ms\n"
        "neap: cuda:0: plan      128 iterations on it; active after 4 iterations, 2.1 s, with swaps after 3.3 s; 2 "
        "patterns\n"
        "neap: cuda:0: left plan 3 times: an allocation that was not planned (2), work that was not planned (1)\n"
        "neap: cuda:0: fixed     4.000 MB that never leave: graphs, exports, collectives, tables of pointers\n"
        "neap: cuda:0: unknown   1 driver call of a kind that neap does not know\n";
    char text[4096];
    (void)state;
    size_t n = np_hook_report_text(&devices[0], text, sizeof text);
    ASSERT_STR_EQ(text, expected);
    ASSERT_EQ(n, strlen(expected));
}

static void test_text_of_a_quiet_device(void **state)
{
    char text[4096];
    (void)state;
    np_hook_facts facts = quiet_device(1);
    (void)np_hook_report_text(&facts, text, sizeof text);
    ASSERT_STR_EQ(text, "neap: cuda:1: peak load 1.000 MB, held 2.097 MB (x 2.0972)\n"
                        "neap: cuda:1: no plan   in 250.0 ms: nothing repeats yet\n");

    facts.aside = "another library subscribed to CUPTI first";
    (void)np_hook_report_text(&facts, text, sizeof text);
    ASSERT_CONTAINS(text, "neap: cuda:1: aside     another library subscribed to CUPTI first\n");

    facts = (np_hook_facts){.pool_iteration = UINT64_MAX};
    (void)np_hook_report_text(&facts, text, sizeof text);
    ASSERT_CONTAINS(text, "peak load 0 B, held 0 B\n");

    facts.stats.footprint = 1; /* when a plan became active is not known */
    facts.stats.n_iterations = 1;
    (void)np_hook_report_text(&facts, text, sizeof text);
    ASSERT_CONTAINS(text, "plan      1 iteration on it\n");
}

static void test_text_says_what_went_wrong(void **state)
{
    char text[4096];
    (void)state;
    devices[0].stats.footprint = devices[0].stats.limit + 1;
    devices[0].is_verified = false;
    devices[0].stats.plan_was_loaded = true;
    (void)np_hook_report_text(&devices[0], text, sizeof text);
    ASSERT_CONTAINS(text, "; more was held\n");
    ASSERT_CONTAINS(text, "; not verified (see neap verify)\n");
    ASSERT_CONTAINS(text, "; loaded; active after 4 iterations");
}

static void test_line(void **state)
{
    char text[512];
    (void)state;
    (void)np_hook_report_line(&devices[0], text, sizeof text);
    ASSERT_STR_EQ(text, "neap: cuda:0: run, holds 330.0 MB of 336.8 MB, peak load 481.2 MB, 128 iterations, 12100.0 MB "
                        "out, overhead 0.80 %, left 3");
    np_hook_facts facts = quiet_device(0);
    (void)np_hook_report_line(&facts, text, sizeof text);
    ASSERT_STR_EQ(text, "neap: cuda:0: observe, holds 2.097 MB");
    facts.aside = "no CUPTI";
    (void)np_hook_report_line(&facts, text, sizeof text);
    ASSERT_STR_EQ(text, "neap: cuda:0: stepped aside: no CUPTI");
}

/* As snprintf: cut anywhere, ended by '\0', nothing beyond, the same length. */
static void test_room_of_any_size(void **state)
{
    size_t (*const forms[])(const np_hook_facts *, char *, size_t) = {np_hook_report_text, np_hook_report_json,
                                                                      np_hook_report_line};
    char whole[8192];
    char cut[8193];
    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        size_t n = forms[f](&devices[0], whole, sizeof whole);
        ASSERT_LT(n, sizeof whole);
        ASSERT_EQ(forms[f](&devices[0], NULL, 0), n);
        for (size_t bytes = 1; bytes <= n + 1; bytes++) {
            memset(cut, '#', sizeof cut);
            ASSERT_EQ(forms[f](&devices[0], cut, bytes), n);
            ASSERT_TRUE(memcmp(cut, whole, bytes - 1) == 0 && cut[bytes - 1] == '\0' && cut[bytes] == '#');
        }
    }
}

/* ---- the object ---- */

static const char *value_of(const char *json, const char *name, char value[128])
{
    char key[64];
    (void)snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(json, key);
    ASSERT_TRUE(at != NULL);
    at += strlen(key);
    (void)snprintf(value, 128, "%.*s", (int)strcspn(at, ",}"), at);
    return value;
}

static void test_json_has_every_fact(void **state)
{
    static const char *const names[] = {"device",
                                        "ordinal",
                                        "pid",
                                        "rank",
                                        "state",
                                        "aside",
                                        "seconds",
                                        "ratio",
                                        "limit",
                                        "live",
                                        "held",
                                        "peak_live",
                                        "peak_held",
                                        "peak_load",
                                        "footprint",
                                        "planned_footprint",
                                        "bytes_out",
                                        "bytes_in",
                                        "host_bytes",
                                        "waits",
                                        "giving_ns",
                                        "n_events",
                                        "n_iterations",
                                        "n_patterns",
                                        "n_departures",
                                        "departures_malloc",
                                        "departures_size",
                                        "departures_free",
                                        "departures_exec",
                                        "departures_uses",
                                        "departures_absent",
                                        "departures_stream",
                                        "departures_failed",
                                        "plan_overhead",
                                        "overhead",
                                        "iteration_ns",
                                        "metadata_bytes",
                                        "plan_was_loaded",
                                        "is_planning",
                                        "side_bytes",
                                        "side_live",
                                        "held_fixed",
                                        "peak_fixed",
                                        "caching_bytes",
                                        "n_launches",
                                        "n_quick",
                                        "n_rests",
                                        "n_strays",
                                        "n_words",
                                        "scan_ns",
                                        "n_unknown",
                                        "n_doubtful",
                                        "pool_iteration",
                                        "pool_seconds",
                                        "swap_seconds",
                                        "is_learning",
                                        "is_verified"};
    char json[8192];
    char value[128];
    (void)state;
    (void)np_hook_report_json(&devices[0], json, sizeof json);
    ASSERT_TRUE(json[0] == '{' && json[strlen(json) - 1] == '}' && !strchr(json, '\n'));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)value_of(json, names[i], value);
    }
    ASSERT_STR_EQ(value_of(json, "device", value), "\"cuda:0\"");
    ASSERT_STR_EQ(value_of(json, "bytes_out", value), "12100000000");
    ASSERT_STR_EQ(value_of(json, "overhead", value), "0.008");
    ASSERT_STR_EQ(value_of(json, "departures_malloc", value), "2");
    ASSERT_STR_EQ(value_of(json, "pool_iteration", value), "4");
    ASSERT_STR_EQ(value_of(json, "is_verified", value), "true");
    ASSERT_STR_EQ(value_of(json, "rank", value), "null");
}

static void test_json_of_what_is_not_known(void **state)
{
    static const char *const unknown[] = {"limit",        "peak_load",    "overhead",       "plan_overhead",
                                          "iteration_ns", "swap_seconds", "pool_iteration", "caching_bytes",
                                          "aside",        "pool_seconds"};
    char json[8192];
    char value[128];
    (void)state;
    np_hook_facts facts = quiet_device(0);
    facts.seconds = INFINITY;
    (void)np_hook_report_json(&facts, json, sizeof json);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        ASSERT_STR_EQ(value_of(json, unknown[i], value), "null");
    }
    ASSERT_STR_EQ(value_of(json, "seconds", value), "null");
    facts.aside = "a \"quoted\\\" line\twith a tab";
    (void)np_hook_report_json(&facts, json, sizeof json);
    ASSERT_CONTAINS(json, "\"a \\\"quoted\\\\\\\" line\\u0009with a tab\"");
}

static void test_numbers_have_points_in_any_locale(void **state)
{
    char json[8192];
    char text[4096];
    char value[128];
    (void)state;
    test_comma_begin();
    (void)np_hook_report_json(&devices[0], json, sizeof json);
    (void)np_hook_report_text(&devices[0], text, sizeof text);
    test_comma_end();
    ASSERT_STR_EQ(value_of(json, "overhead", value), "0.008");
    ASSERT_CONTAINS(text, "peak load 481.2 MB");
}

static void test_ranks(void **state)
{
    char text[4096];
    char value[128];
    char path[32];
    (void)state;
    (void)setenv("LOCAL_RANK", "1", 1);
    ASSERT_EQ(np_hook_report_rank(), 1);
    (void)setenv("RANK", "11", 1); /* among all, not those of one machine */
    ASSERT_EQ(np_hook_report_rank(), 11);
    ASSERT_TRUE(np_hook_report_name("a/b.neap", path, sizeof path));
    ASSERT_STR_EQ(path, "a/b.neap.rank11");
    ASSERT_TRUE(np_hook_report_name("a/b.neap.gz", path, sizeof path));
    ASSERT_STR_EQ(path, "a/b.neap.rank11.gz");
    ASSERT_TRUE(np_hook_report_name(".gz", path, sizeof path));
    ASSERT_STR_EQ(path, ".gz.rank11");
    ASSERT_FALSE(np_hook_report_name("a/b.neap", path, 15));
    (void)np_hook_report_text(&devices[0], text, sizeof text);
    ASSERT_TRUE(strncmp(text, "neap: rank 11: cuda:0: peak load ", 33) == 0);
    (void)np_hook_report_json(&devices[0], text, sizeof text);
    ASSERT_STR_EQ(value_of(text, "rank", value), "11");
    (void)setenv("RANK", "many", 1);
    ASSERT_EQ(np_hook_report_rank(), 1);
    (void)setenv("LOCAL_RANK", "-1", 1);
    ASSERT_EQ(np_hook_report_rank(), -1);
}

/* ---- where they go ---- */

static void test_stderr(void **state)
{
    char said[8192];
    char line[4096];
    (void)state;
    devices[1] = quiet_device(1);
    n_devices = 2;
    np_hook_settings settings = {.mode = NP_HOOK_RUN};
    stderr_capture capture = capture_begin();
    np_hook_report_write(&settings);
    capture_end(&capture, said, sizeof said);
    size_t n = np_hook_report_text(&devices[0], line, sizeof line);
    ASSERT_TRUE(strncmp(said, line, n) == 0);
    (void)np_hook_report_text(&devices[1], line, sizeof line);
    ASSERT_STR_EQ(said + n, line);

    settings.report_json = true;
    capture = capture_begin();
    np_hook_report_write(&settings);
    capture_end(&capture, said, sizeof said);
    ASSERT_TRUE(strncmp(said, "[{", 2) == 0);
    ASSERT_CONTAINS(said, "}, {\"device\": \"cuda:1\"");
    ASSERT_STR_EQ(said + strlen(said) - 3, "}]\n");
}

static void test_silence(void **state)
{
    char said[1024];
    (void)state;
    np_hook_settings settings = {.mode = NP_HOOK_RUN, .report = "-", .process = (uint64_t)getpid()};
    stderr_capture capture = capture_begin();
    np_hook_report_write(&settings);
    const np_hook_settings recording = {.mode = NP_HOOK_RECORD};
    np_hook_report_write(&recording);
    n_devices = 0;
    np_hook_report_write(&settings);
    settings.report = NULL;
    settings.process = 1; /* one of many processes of the program: it has nothing to say */
    np_hook_report_write(&settings);
    capture_end(&capture, said, sizeof said);
    ASSERT_STR_EQ(said, "");

    settings.process = (uint64_t)getpid();
    capture = capture_begin();
    np_hook_report_write(&settings);
    capture_end(&capture, said, sizeof said);
    ASSERT_CONTAINS(said, "used no CUDA memory that neap can see\n");
    capture = capture_begin();
    np_hook_report_write(&settings); /* something was said: that is enough */
    capture_end(&capture, said, sizeof said);
    ASSERT_STR_EQ(said, "");
}

static size_t read_whole(const char *path, char *text, size_t bytes)
{
    FILE *file = fopen(path, "r");
    ASSERT_TRUE(file != NULL);
    size_t n = fread(text, 1, bytes - 1, file);
    text[n] = '\0';
    (void)fclose(file);
    return n;
}

static size_t count_files(const char *folder)
{
    size_t n = 0;
    DIR *entries = opendir(folder);
    ASSERT_TRUE(entries != NULL);
    while (readdir(entries)) {
        n++;
    }
    (void)closedir(entries);
    return n - 2;
}

static void make_folder(char folder[TEST_PATH_BYTES])
{
    test_temp_path(folder, "reports");
    ASSERT_EQ(mkdir(folder, 0700), 0);
}

static void test_files_appear_whole(void **state)
{
    char folder[TEST_PATH_BYTES];
    char path[TEST_PATH_BYTES + 32];
    char rank_path[TEST_PATH_BYTES + 64];
    char text[8192];
    (void)state;
    make_folder(folder);
    (void)snprintf(path, sizeof path, "%s/report.json", folder);
    (void)snprintf(rank_path, sizeof rank_path, "%s.rank2", path);
    np_hook_settings settings = {.mode = NP_HOOK_RUN, .report = path, .report_json = true};
    np_hook_report_write(&settings);
    devices[0].stats.n_iterations = 129;
    np_hook_report_write(&settings);
    (void)read_whole(path, text, sizeof text);
    ASSERT_CONTAINS(text, "\"n_iterations\": 129,");
    ASSERT_EQ(count_files(folder), 1); /* the old one is gone, and nothing is left over */

    (void)setenv("RANK", "2", 1);
    np_hook_report_write(&settings);
    (void)read_whole(rank_path, text, sizeof text);
    ASSERT_CONTAINS(text, "\"rank\": 2,");
    ASSERT_EQ(unlink(rank_path), 0);
    ASSERT_EQ(unlink(path), 0);
    ASSERT_EQ(rmdir(folder), 0);
}

static void test_files_that_cannot_be_written(void **state)
{
    char folder[TEST_PATH_BYTES];
    char long_path[5000];
    char said[8192];
    (void)state;
    make_folder(folder);
    memset(long_path, 'x', sizeof long_path);
    long_path[sizeof long_path - 1] = '\0';
    const char *const paths[] = {"/no/such/folder/report", folder, "/dev/full", long_path};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        np_hook_settings settings = {.mode = NP_HOOK_RUN, .report = paths[i]};
        stderr_capture capture = capture_begin();
        np_hook_report_write(&settings);
        capture_end(&capture, said, sizeof said);
        ASSERT_TRUE(strncmp(said, "neap: cannot write ", 19) == 0);
        ASSERT_TRUE(strchr(said, '\n') == said + strlen(said) - 1);
    }
    ASSERT_EQ(rmdir(folder), 0); /* empty */
}

/* A pipe that nobody reads: an error, no signal; and one that the program had coming stays. */
static void test_no_signal_reaches_the_program(void **state)
{
    int ends[2];
    sigset_t pipe_signal;
    sigset_t before;
    sigset_t pending;
    (void)state;
    ASSERT_EQ(pipe(ends), 0);
    (void)close(ends[0]);
    ASSERT_FALSE(np_hook_put(ends[1], "x", 1)); /* alive */
    ASSERT_EQ(errno, EPIPE);
    (void)sigemptyset(&pipe_signal);
    (void)sigaddset(&pipe_signal, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ASSERT_FALSE(np_hook_put(ends[1], "x", 1));
    (void)sigpending(&pending);
    ASSERT_FALSE(sigismember(&pending, SIGPIPE));
    (void)raise(SIGPIPE);
    ASSERT_FALSE(np_hook_put(ends[1], "x", 1));
    (void)sigpending(&pending);
    ASSERT_TRUE(sigismember(&pending, SIGPIPE));
    const struct timespec no_time = {0};
    ASSERT_EQ(sigtimedwait(&pipe_signal, NULL, &no_time), SIGPIPE);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)close(ends[1]);
}

/* ---- Python ---- */

static void *other_thread(void *text)
{
    *(bool *)text = strncmp(neap_hook_stats(), "[{", 2) == 0;
    return NULL;
}

static void test_stats_for_python(void **state)
{
    (void)state;
    const char *mine = neap_hook_stats();
    ASSERT_TRUE(strncmp(mine, "[{\"device\": \"cuda:0\"", 19) == 0);
    ASSERT_TRUE(mine[strlen(mine) - 1] == ']');
    devices[0].ordinal = 7;
    pthread_t thread;
    bool is_good = false;
    ASSERT_EQ(pthread_create(&thread, NULL, other_thread, &is_good), 0);
    (void)pthread_join(thread, NULL);
    ASSERT_TRUE(is_good);
    ASSERT_CONTAINS(mine, "cuda:0"); /* not the other's */
    ASSERT_CONTAINS(neap_hook_stats(), "cuda:7");
    n_devices = 0;
    ASSERT_STR_EQ(neap_hook_stats(), "[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_text_of_a_busy_device, begin),
        cmocka_unit_test_setup(test_text_of_a_quiet_device, begin),
        cmocka_unit_test_setup(test_text_says_what_went_wrong, begin),
        cmocka_unit_test_setup(test_line, begin),
        cmocka_unit_test_setup(test_room_of_any_size, begin),
        cmocka_unit_test_setup(test_json_has_every_fact, begin),
        cmocka_unit_test_setup(test_json_of_what_is_not_known, begin),
        cmocka_unit_test_setup(test_numbers_have_points_in_any_locale, begin),
        cmocka_unit_test_setup(test_ranks, begin),
        cmocka_unit_test_setup(test_stderr, begin),
        cmocka_unit_test_setup(test_silence, begin),
        cmocka_unit_test_setup(test_files_appear_whole, begin),
        cmocka_unit_test_setup(test_files_that_cannot_be_written, begin),
        cmocka_unit_test_setup(test_no_signal_reaches_the_program, begin),
        cmocka_unit_test_setup(test_stats_for_python, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
