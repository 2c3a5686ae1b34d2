/* Statuses have names and words; a failing call says one line. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#include "testing.h"

static void test_every_status_has_a_name_and_words(void **state)
{
    (void)state;
#define CHECK(name, text)                           \
    ASSERT_STR_EQ(neap_status_name(name), #name);   \
    ASSERT_STR_EQ(neap_status_message(name), text); \
    ASSERT_GT(strlen(text), 0);
    NEAP_STATUS_MAP(CHECK)
#undef CHECK
    ASSERT_EQ(NEAP_OK, 0);
    ASSERT_STR_EQ(neap_status_name((neap_status)1000), "unknown status");
    ASSERT_STR_EQ(neap_status_message((neap_status)1000), "unknown status");
}

static void test_version_is_the_header_s(void **state)
{
    char text[32];
    (void)state;
    (void)snprintf(text, sizeof text, "%d.%d.%d", NEAP_VERSION_MAJOR, NEAP_VERSION_MINOR, NEAP_VERSION_PATCH);
    ASSERT_STR_EQ(NEAP_VERSION_STRING, text);
    ASSERT_STR_EQ(neap_version(), text);
}

static void test_fail_writes_a_line_and_returns(void **state)
{
    neap_error error;
    (void)state;
    ASSERT_STATUS(NEAP_BAD_INPUT, np_fail(&error, NEAP_BAD_INPUT, "%s:%d: expected a size", "a.neap", 3));
    ASSERT_STR_EQ(error.text, "a.neap:3: expected a size");
    ASSERT_STATUS(NEAP_IO, np_fail(NULL, NEAP_IO, "nobody listens to %d", 1));
    ASSERT_STATUS(NEAP_NO_MEMORY, np_fail_memory(&error));
    ASSERT_STR_EQ(error.text, neap_status_message(NEAP_NO_MEMORY));
    ASSERT_STATUS(NEAP_NO_MEMORY, np_fail_memory(NULL));
}

static void test_fail_cuts_what_is_too_long(void **state)
{
    neap_error error;
    char name[2 * sizeof error.text];
    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ASSERT_STATUS(NEAP_IO, np_fail(&error, NEAP_IO, "%s: cannot be read", name));
    ASSERT_EQ(strlen(error.text), sizeof error.text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_status_has_a_name_and_words),
        cmocka_unit_test(test_version_is_the_header_s),
        cmocka_unit_test(test_fail_writes_a_line_and_returns),
        cmocka_unit_test(test_fail_cuts_what_is_too_long),
    };
    return cmocka_run_group_tests_name("base/status", tests, NULL, NULL);
}
