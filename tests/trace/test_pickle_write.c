/* test_pickle_write.c: what is put is read back the same, in the few opcodes that the viewer knows. */
#include "trace/pickle_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "testing.h"

typedef np_array(unsigned char) byte_array;

static neap_status put_bytes(void *user, const void *bytes, size_t n_bytes, neap_error *error)
{
    byte_array *to = user;
    (void)error;
    ASSERT_OK(np_array_reserve(NULL, to, to->n + n_bytes));
    memcpy(to->items + to->n, bytes, n_bytes);
    to->n += n_bytes;
    return NEAP_OK;
}

static np_pickle_writer *start(byte_array *to, neap_error *error)
{
    np_pickle_writer *w = malloc(sizeof *w);
    np_pickle_put_start(w, put_bytes, to, error);
    return w;
}

/* Ends the writing, and reads what was written. */
static np_pickle *finish(np_pickle_writer *w, byte_array *from)
{
    neap_error error = {""};
    np_pickle_input *input = NULL;
    np_pickle *pickle = NULL;
    ASSERT_OK(np_pickle_put_finish(w));
    free(w);
    ASSERT_OK(np_pickle_input_open_bytes(from->items, from->n, "file", NULL, &error, &input));
    ASSERT_OK(np_pickle_read(input, 0, NULL, &error, &pickle));
    ASSERT_EQ(np_pickle_input_at(input), from->n);
    np_pickle_input_close(input);
    ASSERT_TRUE(np_pickle_is_valid(pickle));
    np_array_free(NULL, from);
    return pickle;
}

static void test_numbers(void **state)
{
    static const uint64_t numbers[] = {
        0,         1,        127,        128,        255,        256,        32767,      65535,         65536,
        INT32_MAX, 1u << 31, UINT32_MAX, 1ull << 39, 1ull << 40, 1ull << 47, 1ull << 55, INT64_MAX - 1, INT64_MAX,
    };
    enum { N = sizeof numbers / sizeof *numbers };
    byte_array bytes = {0};
    np_pickle_writer *w = start(&bytes, NULL);
    np_pickle *pickle;
    const np_pickle_value *items;
    size_t n;
    (void)state;
    np_pickle_put_begin(w, NP_PICKLE_LIST);
    for (size_t i = 0; i < N; i++) {
        np_pickle_put_uint(w, numbers[i]);
    }
    np_pickle_put_end(w);
    pickle = finish(w, &bytes);
    items = np_pickle_items(pickle, pickle->root, &n);
    ASSERT_EQ(n, N);
    for (size_t i = 0; i < N; i++) {
        ASSERT_EQ(items[i].kind, NP_PICKLE_INT);
        ASSERT_FALSE(items[i].is_negative);
        ASSERT_EQ(items[i].as.magnitude, numbers[i]);
    }
    np_pickle_free(pickle);
}

static void test_every_kind(void **state)
{
    byte_array bytes = {0};
    np_pickle_writer *w = start(&bytes, NULL);
    np_pickle *pickle;
    np_pickle_value found;
    const np_pickle_value *items;
    size_t n;
    (void)state;
    np_pickle_put_begin(w, NP_PICKLE_DICT);
    np_pickle_put_text(w, "yes", 3);
    np_pickle_put_bool(w, true);
    np_pickle_put_text(w, "no", 2);
    np_pickle_put_bool(w, false);
    np_pickle_put_text(w, "pair", 4);
    np_pickle_put_uint_pair(w, 3, 1ull << 33);
    np_pickle_put_text(w, "empty", 5);
    np_pickle_put_begin(w, NP_PICKLE_LIST);
    np_pickle_put_end(w);
    np_pickle_put_text(w, "dict", 4);
    np_pickle_put_begin(w, NP_PICKLE_DICT);
    np_pickle_put_end(w);
    np_pickle_put_end(w);
    pickle = finish(w, &bytes);
    ASSERT_TRUE(np_pickle_find(pickle, pickle->root, "yes", &found));
    ASSERT_TRUE(found.kind == NP_PICKLE_BOOL && found.as.magnitude == 1);
    ASSERT_TRUE(np_pickle_find(pickle, pickle->root, "no", &found));
    ASSERT_TRUE(found.kind == NP_PICKLE_BOOL && found.as.magnitude == 0);
    ASSERT_TRUE(np_pickle_find(pickle, pickle->root, "pair", &found));
    items = np_pickle_items(pickle, found, &n);
    ASSERT_TRUE(found.kind == NP_PICKLE_TUPLE && n == 2 && items[1].as.magnitude == 1ull << 33);
    ASSERT_TRUE(np_pickle_find(pickle, pickle->root, "empty", &found));
    ASSERT_EQ(found.kind, NP_PICKLE_LIST);
    ASSERT_TRUE(np_pickle_find(pickle, pickle->root, "dict", &found));
    ASSERT_EQ(found.kind, NP_PICKLE_DICT);
    np_pickle_free(pickle);
}

/* The viewer hands each batch to one call: none has more than 1000 items, also where the items are lists. */
static void test_batches(void **state)
{
    (void)state;
    for (unsigned n_items = 999; n_items <= 2001; n_items += n_items == 999 || n_items == 2000 ? 1 : 500) {
        byte_array bytes = {0};
        np_pickle_writer *w = start(&bytes, NULL);
        np_pickle *pickle;
        size_t n_batches = 0;
        size_t n;
        np_pickle_put_begin(w, NP_PICKLE_LIST);
        for (unsigned i = 0; i < n_items; i++) {
            np_pickle_put_begin(w, NP_PICKLE_LIST);
            np_pickle_put_end(w);
        }
        np_pickle_put_end(w);
        for (size_t i = 0; i < bytes.n; i++) { /* all still in the page */
            n_batches += bytes.items[i] == 'e';
        }
        for (size_t i = 0; i < w->n; i++) {
            n_batches += w->page[i] == 'e';
        }
        ASSERT_EQ(n_batches, (n_items + 999) / 1000);
        pickle = finish(w, &bytes);
        (void)np_pickle_items(pickle, pickle->root, &n);
        ASSERT_EQ(n, n_items);
        np_pickle_free(pickle);
    }
}

/* Numbers of one byte and of four. */
static void test_memo(void **state)
{
    enum { N = 600 };
    byte_array bytes = {0};
    np_pickle_writer *w = start(&bytes, NULL);
    np_pickle *pickle;
    const np_pickle_value *items;
    uint32_t memo[N];
    size_t n;
    (void)state;
    np_pickle_put_begin(w, NP_PICKLE_LIST);
    for (unsigned i = 0; i < N; i++) {
        char text[2] = {(char)('a' + i % 26), (char)('0' + i % 10)};
        np_pickle_put_text(w, text, 2);
        memo[i] = np_pickle_put_memo(w);
        ASSERT_EQ(memo[i], i);
    }
    for (unsigned i = 0; i < N; i++) {
        np_pickle_put_again(w, memo[i]);
    }
    np_pickle_put_end(w);
    pickle = finish(w, &bytes);
    items = np_pickle_items(pickle, pickle->root, &n);
    ASSERT_EQ(n, 2 * N);
    for (unsigned i = 0; i < N; i++) {
        ASSERT_EQ(items[i].kind, NP_PICKLE_TEXT);
        ASSERT_EQ(items[i].as.index, items[N + i].as.index);
    }
    np_pickle_free(pickle);
}

/* Longer than the page, twice. */
static void test_long_text(void **state)
{
    size_t n_text = 3 * (size_t)NP_PICKLE_PAGE_BYTES + 17;
    char *text = malloc(n_text + 1);
    byte_array bytes = {0};
    np_pickle_writer *w = start(&bytes, NULL);
    np_pickle *pickle;
    (void)state;
    memset(text, 'x', n_text);
    text[n_text] = '\0';
    np_pickle_put_text(w, text, n_text);
    pickle = finish(w, &bytes);
    ASSERT_TRUE(np_pickle_is_text(pickle, pickle->root, text));
    np_pickle_free(pickle);
    free(text);
}

typedef struct full_disk {
    unsigned n_left;
    unsigned n_calls;
} full_disk;

static neap_status put_some(void *user, const void *bytes, size_t n_bytes, neap_error *error)
{
    full_disk *disk = user;
    (void)bytes;
    (void)n_bytes;
    disk->n_calls++;
    return disk->n_left-- ? NEAP_OK : np_fail(error, NEAP_IO, "full");
}

static void test_failure(void **state)
{
    full_disk disk = {.n_left = 2};
    neap_error error = {""};
    np_pickle_writer *w = malloc(sizeof *w);
    (void)state;
    np_pickle_put_start(w, put_some, &disk, &error);
    np_pickle_put_begin(w, NP_PICKLE_LIST);
    for (unsigned i = 0; i < 10 * NP_PICKLE_PAGE_BYTES; i++) {
        np_pickle_put_uint(w, i);
    }
    np_pickle_put_end(w);
    ASSERT_STATUS(NEAP_IO, np_pickle_put_finish(w));
    ASSERT_EQ(disk.n_calls, 3); /* nothing is put after the first failure */
    ASSERT_STR_EQ(error.text, "full");
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_every_kind), cmocka_unit_test(test_batches),
        cmocka_unit_test(test_memo),    cmocka_unit_test(test_long_text),  cmocka_unit_test(test_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
