/* The environment as settings: each name, what is wrong and said, and nothing where the library is not asked for. */
#include "hook/settings.h"

#include <stdlib.h>
#include <string.h>

#include "comma.h"
#include "hook_parts/capture.h"
#include "testing.h"

static const char *const names[] = {
    "NEAP_HOOK",        "NEAP_LIMIT",           "NEAP_OVERHEAD",      "NEAP_REPORT",
    "NEAP_REPORT_JSON", "NEAP_RECORD",          "NEAP_TELL_LIMIT",    "NEAP_LOG",
    "NEAP_LIVE",        "NEAP_MIN_BLOCK",       "NEAP_MARGIN",        "NEAP_PLAN_CACHE",
    "NEAP_VERIFIED",    "NEAP_VERIFY_LAUNCHES", "NEAP_VERIFY_BLOCKS", "NEAP_VERIFY_TELL",
    "NEAP_PID",         "NEAP_PLAN_SECONDS",
};

static int forget_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unsetenv(names[i]);
    }
    return 0;
}

/* Reads, and gives what was said on stderr. */
static np_hook_settings read_settings(char said[512])
{
    np_hook_settings settings;
    stderr_capture capture = capture_begin();
    np_hook_settings_read(&settings);
    capture_end(&capture, said, 512);
    return settings;
}

static bool is_near(double a, double b)
{
    return a > b - 1e-12 && a < b + 1e-12;
}

static void test_nothing_is_asked_for(void **state)
{
    char said[512];
    (void)state;
    (void)setenv("NEAP_LIMIT", "nonsense", 1);
    np_hook_settings settings = read_settings(said);
    ASSERT_EQ(settings.mode, NP_HOOK_OFF);
    ASSERT_EQ(settings.limit, 0);
    ASSERT_STR_EQ(said, ""); /* programs that are not run by neap hear nothing of it */
}

static void test_defaults(void **state)
{
    char said[512];
    (void)state;
    (void)setenv("NEAP_HOOK", "run", 1);
    (void)setenv("NEAP_LIMIT", "", 1); /* empty is not set */
    np_hook_settings settings = read_settings(said);
    ASSERT_EQ(settings.mode, NP_HOOK_RUN);
    ASSERT_EQ(settings.limit, 0);
    ASSERT_TRUE(settings.limit_share == 0 && settings.overhead == 0);
    ASSERT_EQ(settings.min_block, NP_HOOK_MIN_BLOCK);
    ASSERT_EQ(settings.margin, NP_HOOK_MARGIN);
    ASSERT_EQ(settings.log_level, NEAP_LOG_WARN);
    ASSERT_FALSE(settings.tells_limit || settings.is_live || settings.report_json || settings.is_verified);
    ASSERT_TRUE(!settings.report && !settings.record && !settings.plan_cache);
    ASSERT_EQ(settings.verify_launches.first, 0);
    ASSERT_EQ(settings.verify_launches.end, UINT64_MAX);
    ASSERT_EQ(settings.verify_blocks.end, UINT64_MAX);
    ASSERT_EQ(settings.process, 0);
    ASSERT_STR_EQ(said, "");
}

static void test_each_name(void **state)
{
    static const char *const values[] = {"verify", "8GiB", "1%",     "/tmp/r", "1",   "/tmp/t", "1", "debug", "1",
                                         "64KiB",  "5",    "/tmp/p", "1",      "3-9", "0-1",    "1", "42",    "2.5"};
    char said[512];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)setenv(names[i], values[i], 1);
    }
    np_hook_settings settings = read_settings(said);
    ASSERT_STR_EQ(said, "");
    ASSERT_EQ(settings.mode, NP_HOOK_VERIFY);
    ASSERT_EQ(settings.limit, (uint64_t)8 << 30);
    ASSERT_TRUE(is_near(settings.overhead, 0.01));
    (void)setenv("NEAP_REPORT", "changed", 1); /* the texts are copies */
    ASSERT_STR_EQ(settings.report, "/tmp/r");
    ASSERT_STR_EQ(settings.record, "/tmp/t");
    ASSERT_STR_EQ(settings.plan_cache, "/tmp/p");
    ASSERT_TRUE(settings.report_json && settings.tells_limit && settings.is_live && settings.is_verified);
    ASSERT_TRUE(settings.tells_verified);
    ASSERT_EQ(settings.log_level, NEAP_LOG_DEBUG);
    ASSERT_EQ(settings.min_block, 65536);
    ASSERT_EQ(settings.margin, 5);
    ASSERT_EQ(settings.verify_launches.first, 3);
    ASSERT_EQ(settings.verify_launches.end, 9);
    ASSERT_EQ(settings.verify_blocks.first, 0);
    ASSERT_EQ(settings.verify_blocks.end, 1);
    ASSERT_EQ(settings.process, 42);
    ASSERT_TRUE(is_near(settings.plan_seconds, 2.5));
    np_hook_settings_free(&settings);
    ASSERT_TRUE(!settings.report && !settings.record && !settings.plan_cache);
}

static void test_limits(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
        double share;
    } cases[] = {
        {"1", 1, 0},
        {"123456789012345678", UINT64_C(123456789012345678), 0},
        {"1.5GB", 1500000000, 0},
        {"8G", UINT64_C(8000000000), 0},
        {"8g", UINT64_C(8000000000), 0},
        {"8gib", UINT64_C(8) << 30, 0},
        {"0.7", 0, 0.7},
        {"1.0", 0, 1},
        {"512MiB", (uint64_t)512 << 20, 0},
        {"70%", 0, 0.7},
        {"0.5%", 0, 0.005},
        {"100%", 0, 1},
    };
    char said[512];
    (void)state;
    (void)setenv("NEAP_HOOK", "run", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)setenv("NEAP_LIMIT", cases[i].text, 1);
        np_hook_settings settings = read_settings(said);
        ASSERT_STR_EQ(said, "");
        ASSERT_EQ(settings.limit, cases[i].bytes);
        ASSERT_TRUE(is_near(settings.limit_share, cases[i].share));
    }
}

/* One line each, which names the setting, and the default. */
static void test_what_cannot_be_read_is_said(void **state)
{
    static const char *const wrong[][2] = {
        {"NEAP_HOOK", "runn"},
        {"NEAP_LIMIT", "8parsecs"},
        {"NEAP_LIMIT", "0"},
        {"NEAP_LIMIT", "0%"},
        {"NEAP_LIMIT", "101%"},
        {"NEAP_LIMIT", "-5"},
        {"NEAP_LIMIT", "20000000TiB"},
        {"NEAP_LIMIT", "%"},
        {"NEAP_OVERHEAD", "none"},
        {"NEAP_OVERHEAD", "0"},
        {"NEAP_OVERHEAD", "1%%"},
        {"NEAP_REPORT_JSON", "yes"},
        {"NEAP_LOG", "loud"},
        {"NEAP_MIN_BLOCK", "0"},
        {"NEAP_MARGIN", "4294967296"},
        {"NEAP_MARGIN", "-1"},
        {"NEAP_PLAN_SECONDS", "soon"},
        {"NEAP_PLAN_SECONDS", "0"},
        {"NEAP_PLAN_SECONDS", "1000001"},
        {"NEAP_PLAN_SECONDS", "2.5s"},
        {"NEAP_VERIFY_LAUNCHES", "9-3"},
        {"NEAP_VERIFY_LAUNCHES", "9"},
        {"NEAP_VERIFY_BLOCKS", "1-2-3"},
        {"NEAP_MIN_BLOCK", "18446744073709551616000000"},
    };
    char said[512];
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void)forget_all(NULL);
        (void)setenv("NEAP_HOOK", "run", 1);
        (void)setenv(wrong[i][0], wrong[i][1], 1);
        np_hook_settings settings = read_settings(said);
        ASSERT_CONTAINS(said, wrong[i][0]);
        ASSERT_CONTAINS(said, wrong[i][1]);
        ASSERT_TRUE(strncmp(said, "neap: ", 6) == 0 && strchr(said, '\n') == said + strlen(said) - 1);
        ASSERT_EQ(settings.mode, i == 0 ? NP_HOOK_OFF : NP_HOOK_RUN);
        ASSERT_EQ(settings.limit, 0);
        ASSERT_TRUE(settings.limit_share == 0 && settings.overhead == 0);
        ASSERT_EQ(settings.min_block, NP_HOOK_MIN_BLOCK);
        ASSERT_EQ(settings.margin, NP_HOOK_MARGIN);
        ASSERT_EQ(settings.log_level, NEAP_LOG_WARN);
        ASSERT_EQ(settings.verify_launches.end, UINT64_MAX);
        ASSERT_EQ(settings.verify_blocks.end, UINT64_MAX);
    }
}

/* A value of any length is said in one line. */
static void test_long_nonsense_is_cut(void **state)
{
    char value[4000];
    (void)state;
    memset(value, 'x', sizeof value);
    value[sizeof value - 1] = '\0';
    (void)setenv("NEAP_HOOK", "run", 1);
    (void)setenv("NEAP_LIMIT", value, 1);
    stderr_capture capture = capture_begin();
    np_hook_settings settings;
    np_hook_settings_read(&settings);
    char all[5000];
    capture_end(&capture, all, sizeof all);
    ASSERT_LT(strlen(all), 1500);
    ASSERT_TRUE(all[strlen(all) - 1] == '\n');
}

/* As `neap run --plan-seconds` writes them. */
static void test_plan_seconds(void **state)
{
    static const struct {
        const char *text;
        double seconds;
    } cases[] = {{"2.5", 2.5}, {"1e-05", 1e-5}, {"1000000", 1e6}};
    char said[512];
    (void)state;
    (void)setenv("NEAP_HOOK", "run", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)setenv("NEAP_PLAN_SECONDS", cases[i].text, 1);
        np_hook_settings settings = read_settings(said);
        ASSERT_STR_EQ(said, "");
        ASSERT_TRUE(settings.plan_seconds == cases[i].seconds);
    }
}

static void test_any_locale(void **state)
{
    test_comma_begin();
    test_each_name(state);
    (void)forget_all(state);
    test_limits(state);
    test_comma_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nothing_is_asked_for, forget_all),
        cmocka_unit_test_setup(test_defaults, forget_all),
        cmocka_unit_test_setup(test_each_name, forget_all),
        cmocka_unit_test_setup(test_limits, forget_all),
        cmocka_unit_test_setup(test_plan_seconds, forget_all),
        cmocka_unit_test_setup(test_what_cannot_be_read_is_said, forget_all),
        cmocka_unit_test_setup(test_long_nonsense_is_cut, forget_all),
        cmocka_unit_test_setup(test_any_locale, forget_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
