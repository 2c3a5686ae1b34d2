#include "comma.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "testing.h"

static const char script[] =
    "mkdir '%s' && cd '%s' && echo 'LC_NUMERIC\ndecimal_point \"<U002C>\"\nthousands_sep \"\"\n"
    "grouping -1\nEND LC_NUMERIC' >source && "
    "localedef -c --no-archive -i ./source ./comma >/dev/null 2>&1; test -e comma/LC_NUMERIC";

void test_comma_begin(void)
{
    char folder[TEST_PATH_BYTES];
    char command[sizeof script + 2 * TEST_PATH_BYTES];
    char number[16] = "";
    bool is_made;
    test_temp_path(folder, "comma");
    (void)snprintf(command, sizeof command, script, folder, folder);
    is_made = system(command) == 0 && setenv("LOCPATH", folder, 1) == 0 && setlocale(LC_NUMERIC, "comma") != NULL;
    (void)snprintf(number, sizeof number, "%.1f", 0.5);
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    if (system(command) != 0 || !is_made) {
        SKIP("localedef, which makes a locale with a decimal comma, is not there or cannot");
    }
    ASSERT_STR_EQ(number, "0,5");
}

void test_comma_end(void)
{
    (void)setlocale(LC_NUMERIC, "C");
    (void)unsetenv("LOCPATH");
}
