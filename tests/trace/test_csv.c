/* test_csv.c: placement CSVs become traces whose lifetimes overlap where those of the rows do. */
#include "trace/csv.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "testing.h"

static neap_trace *parse_bytes(const char *text, size_t n)
{
    neap_error error;
    neap_trace *trace = NULL;
    neap_status status = neap_trace_parse(text, n, "f", NULL, &error, &trace);
    ASSERT_STR_EQ(error.text, "");
    ASSERT_OK(status);
    ASSERT_TRUE(np_trace_is_valid(trace));
    ASSERT_TRUE(neap_trace_is_csv(trace));
    ASSERT_EQ(trace->events.n, 2 * trace->blocks.n);
    return trace;
}

static neap_trace *parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static const neap_trace_block *block_of(const neap_trace *trace, uint64_t id)
{
    uint32_t index = np_trace_find_block(trace, id);
    ASSERT_NE(index, NP_MAP_NONE);
    return &trace->blocks.items[index];
}

static void test_good(void **state)
{
    neap_trace *trace = parse("id,lower,upper,size,offset\n"
                              "7,10,20,100,\n"
                              "3,0,10,200,-1\n"
                              "9,5,18446744073709551615,300,4096\n"
                              "4,20,21,1,0\n");
    static const uint64_t ids[] = {3, 9, 3, 7, 7, 4, 4, 9};
    static const char kinds[] = "mmfmfmff";
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        const neap_event *event = &trace->events.items[i];
        ASSERT_EQ(trace->blocks.items[event->subject].id, ids[i]);
        ASSERT_EQ(event->kind, kinds[i] == 'm' ? NEAP_EVENT_MALLOC : NEAP_EVENT_FREE);
    }
    ASSERT_EQ(block_of(trace, 7)->fixed_offset, NEAP_NO_OFFSET);
    ASSERT_EQ(block_of(trace, 3)->fixed_offset, NEAP_NO_OFFSET);
    ASSERT_EQ(block_of(trace, 9)->fixed_offset, 4096);
    ASSERT_EQ(block_of(trace, 4)->fixed_offset, 0);
    ASSERT_EQ(block_of(trace, 9)->bytes, 300);
    neap_trace_free(trace);
}

/* Other ways to write the same. */
static void test_leniency(void **state)
{
    static const char *const texts[] = {
        "id,lower,upper,size\n1,2,3,4\n5,2,4,1\n",
        "id,lower,upper,size\n1,2,3,4\n5,2,4,1",
        "id,lower,upper,size\r\n1,2,3,4\r\n5,2,4,1\r\n",
        "size,upper,id,lower\n4,3,1,2\n1,4,5,2\n",
        " id , lower,\tupper,size \n 1 ,2 , 3,\t4 \n5,2,4,1\n",
        "id,lower,upper,size\n\n1,2,3,4\n  \n5,2,4,1\n\n\n",
        "offset,id,lower,upper,size\n,1,2,3,4\n-1,5,2,4,1\n",
        "id,lower,upper,size,offset\n1,2,3,4,\n5,2,4,1, -1 \n",
        "id,lower,upper,size\n001,2,3,4\n5,2,4,01\n",
    };
    neap_trace *first = parse(texts[0]);
    (void)state;
    for (size_t i = 1; i < sizeof texts / sizeof *texts; i++) {
        neap_trace *other = parse(texts[i]);
        ASSERT_TRUE(np_trace_is_equal(first, other));
        neap_trace_free(other);
    }
    neap_trace_free(first);
    first = parse("id,lower,upper,size\n");
    ASSERT_EQ(first->blocks.n, 0);
    neap_trace_free(first);
}

/* Where one id is a text, every buffer is known by its row. */
static void test_labels(void **state)
{
    neap_trace *trace = parse("id,lower,upper,size\nconv 1/w,0,2,10\n0,0,2,20\n18446744073709551616,1,2,30\n");
    (void)state;
    ASSERT_EQ(block_of(trace, 0)->bytes, 10);
    ASSERT_EQ(block_of(trace, 1)->bytes, 20);
    ASSERT_EQ(block_of(trace, 2)->bytes, 30);
    neap_trace_free(trace);
}

#define HEAD "id,lower,upper,size\n"
#define COLUMN "a column named id, lower, upper, size or offset, each once"

static const struct {
    const char *text;
    const char *message;
} bad_texts[] = {
    {"id,lower,upper\n", "f:1: expected a column named size, found none"},
    {"lower,upper,size\n", "f:1: expected a column named id, found none"},
    {"id,lower,upper,size,alignment\n", "f:1: expected " COLUMN ", found \"alignment\""},
    {"id,lower,upper,size,size\n", "f:1: expected " COLUMN ", found \"size\""},
    {"id,lower,upper,size,\n", "f:1: expected " COLUMN ", found nothing"},
    {"ID,lower,upper,size\n", "f:1: expected " COLUMN ", found \"ID\""},
    {"1,2,3,4\n", "f:1: expected " COLUMN ", found \"1\""},
    {",\n", "f:1: expected " COLUMN ", found nothing"},
    {HEAD "1,2,3\n", "f:2: expected 4 fields, found 3"},
    {HEAD "1\n", "f:2: expected 4 fields, found 1"},
    {HEAD "1,2,3,4,5\n", "f:2: expected 4 fields, found more"},
    {HEAD "1,2,3,4,\n", "f:2: expected 4 fields, found more"},
    {HEAD "1,2,3,\n", "f:2: expected a size in bytes, found nothing"},
    {HEAD ",2,3,4\n", "f:2: expected an id, found nothing"},
    {HEAD "a\x01,2,3,4\n", "f:2: expected an id without control characters, found \"a\\x01\""},
    {HEAD "1,-2,3,4\n", "f:2: expected a lower time, found \"-2\""},
    {HEAD "1,2,3.5,4\n", "f:2: expected an upper time, found \"3.5\""},
    {HEAD "1,2,3 4,4\n", "f:2: expected an upper time, found \"3 4\""},
    {HEAD "1,2,3,x\n", "f:2: expected a size in bytes, found \"x\""},
    {HEAD "1,2,3,4x\n", "f:2: expected a size in bytes, found \"4x\""},
    {HEAD "1,2,3,-4\n", "f:2: expected a size in bytes, found \"-4\""},
    {HEAD "1,2,3,18446744073709551616\n", "f:2: expected a size in bytes below 2^64, found \"18446744073709551616\""},
    {HEAD "1,18446744073709551616,3,1\n", "f:2: expected a lower time below 2^64, found \"18446744073709551616\""},
    {HEAD "1,3,3,4\n", "f:2: expected upper above lower, found lower 3 and upper 3"},
    {HEAD "\n1,2,3,4\n2,4,3,4\n", "f:4: expected upper above lower, found lower 4 and upper 3"},
    {HEAD "1,2,3,0\n", "f:2: expected a size above 0, found \"0\""},
    {HEAD "5,2,3,4\n6,2,3,4\n\n5,0,1,4\n", "f:5: expected an id not used before, found 5, which line 2 has"},
    {HEAD "1,2,3,9223372036854775808\n", "f:2: expected less than 2^63 bytes live at once, found more"},
    {HEAD "1,2,4,1\n2,1,3,9223372036854775807\n3,3,5,9223372036854775806\n4,3,5,1\n",
     "f:2: expected less than 2^63 bytes live at once, found more"},
    {"id,lower,upper,size,offset\n1,2,3,4,-2\n", "f:2: expected an offset, -1 or nothing, found \"-2\""},
    {"id,lower,upper,size,offset\n1,2,3,4,x\n", "f:2: expected an offset, -1 or nothing, found \"x\""},
    {"id,lower,upper,size,offset\n1,2,3,4\n", "f:2: expected 5 fields, found 4"},
    {"id,lower,upper,size,offset\n1,2,3,4,18446744073709551616\n",
     "f:2: expected an offset below 2^63, found \"18446744073709551616\""},
    {"id,lower,upper,size,offset\n1,2,3,4,18446744073709551615\n",
     "f:2: expected an offset below 2^63, found \"18446744073709551615\""},
    {"id,lower,upper,size,offset\n1,2,3,4,9223372036854775804\n", "f:2: expected offset + size below 2^63, found more"},
};

static void test_bad_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_texts / sizeof *bad_texts; i++) {
        neap_error error;
        neap_trace *const untouched = (neap_trace *)&error;
        neap_trace *trace = untouched;
        neap_status status = neap_trace_parse(bad_texts[i].text, strlen(bad_texts[i].text), "f", NULL, &error, &trace);
        ASSERT_STR_EQ(error.text, bad_texts[i].message);
        ASSERT_STATUS(NEAP_BAD_INPUT, status);
        ASSERT_TRUE(trace == untouched);
    }
}

/* ---------------------------------------------------------------- many rows ---- */

typedef struct csv_row {
    uint64_t lower;
    uint64_t upper;
} csv_row;

static char *make_text(np_rng *rng, csv_row *rows, size_t n_rows, uint64_t n_times, uint64_t scale, size_t *n_bytes)
{
    char *text = malloc(64 + n_rows * 80);
    size_t n;
    ASSERT_TRUE(text != NULL);
    n = (size_t)sprintf(text, HEAD);
    for (size_t i = 0; i < n_rows; i++) {
        rows[i].lower = np_rng_below(rng, n_times) * scale;
        rows[i].upper = rows[i].lower + (1 + np_rng_below(rng, n_times)) * scale;
        n += (size_t)sprintf(text + n, "%zu,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", i, rows[i].lower, rows[i].upper,
                             1 + np_rng_below(rng, 1000000));
    }
    *n_bytes = n;
    return text;
}

/* Two buffers are alive together as events exactly if they are as numbers. */
static void test_overlaps(void **state)
{
    np_rng rng = np_rng_make(5);
    (void)state;
    for (int round = 0; round < 200; round++) {
        csv_row rows[30];
        size_t n_rows = (size_t)np_rng_below(&rng, 30);
        uint64_t n_times = 1 + np_rng_below(&rng, 12);
        size_t n_bytes;
        char *text = make_text(&rng, rows, n_rows, n_times, round % 2 ? 1 : UINT64_MAX / 25, &n_bytes);
        neap_trace *trace = parse_bytes(text, n_bytes);
        for (size_t i = 0; i < n_rows; i++) {
            for (size_t j = 0; j < n_rows; j++) {
                const neap_trace_block *a = block_of(trace, i);
                const neap_trace_block *b = block_of(trace, j);
                bool as_numbers = rows[i].lower < rows[j].upper && rows[j].lower < rows[i].upper;
                bool as_events = a->malloc_event < b->free_event && b->malloc_event < a->free_event;
                ASSERT_EQ(as_numbers, as_events);
            }
        }
        neap_trace_free(trace);
        free(text);
    }
}

static void test_million_rows(void **state)
{
    size_t n_rows = TEST_SANITIZED ? 100000 : 1000000;
    np_rng rng = np_rng_make(6);
    csv_row *rows = malloc(n_rows * sizeof *rows);
    size_t n_bytes;
    char *text;
    neap_trace *trace;
    uint64_t start;
    (void)state;
    ASSERT_TRUE(rows != NULL);
    text = make_text(&rng, rows, n_rows, 1000000000, 1, &n_bytes);
    start = test_cpu_ns();
    ASSERT_OK(neap_trace_parse(text, n_bytes, "f", NULL, NULL, &trace));
    ASSERT_LT(test_cpu_ns() - start, 5000000000u); /* it takes half a second */
    ASSERT_EQ(trace->blocks.n, n_rows);
    ASSERT_TRUE(np_trace_is_valid(trace));
    neap_trace_free(trace);
    free(text);
    free(rows);
}

static neap_status parse_action(const neap_memory *memory, void *user)
{
    const char *text = user;
    neap_error error;
    neap_trace *trace;
    neap_status status = neap_trace_parse(text, strlen(text), "f", memory, &error, &trace);
    if (status == NEAP_OK) {
        neap_trace_free(trace);
    } else {
        ASSERT_STR_EQ(error.text, "host memory is exhausted");
    }
    return status;
}

static void test_no_memory(void **state)
{
    np_rng rng = np_rng_make(7);
    csv_row rows[500];
    size_t n_bytes;
    char *text = make_text(&rng, rows, 500, 100, 1, &n_bytes);
    (void)state;
    ASSERT_GT(test_memory_fail_each(parse_action, text), 20);
    free(text);
    ASSERT_GT(test_memory_fail_each(parse_action, HEAD "2,0,1,1\n1,0,1,1\n"), 8); /* ids that do not ascend */
}

static void test_shared_instances(void **state)
{
    char folder[TEST_PATH_BYTES];
    DIR *directory;
    struct dirent *entry;
    size_t n = 0;
    (void)state;
    if (!test_shared_path(folder, "dsa")) {
        skip();
    }
    directory = opendir(folder);
    ASSERT_TRUE(directory != NULL);
    while ((entry = readdir(directory))) {
        char path[TEST_PATH_BYTES + 300];
        neap_trace *trace;
        if (!strstr(entry->d_name, ".csv")) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        ASSERT_OK(neap_trace_read(path, NULL, NULL, &trace));
        ASSERT_TRUE(neap_trace_is_csv(trace));
        ASSERT_TRUE(np_trace_is_valid(trace));
        neap_trace_free(trace);
        n++;
    }
    ASSERT_EQ(closedir(directory), 0);
    ASSERT_GE(n, 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),      cmocka_unit_test(test_leniency),         cmocka_unit_test(test_labels),
        cmocka_unit_test(test_bad_text),  cmocka_unit_test(test_overlaps),         cmocka_unit_test(test_million_rows),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_shared_instances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
