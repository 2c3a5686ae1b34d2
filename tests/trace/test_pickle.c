/* test_pickle.c: plain data is read, everything else is refused by name, and no input does more than fail. */
#include "trace/pickle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/rng.h"
#include "testing.h"

typedef struct bytes {
    const char *at;
    size_t n;
} bytes;

/* A pickle without its head: what follows "\x80\x04". */
#define BODY(text) ((bytes){"\x80\x04" text, sizeof("\x80\x04" text) - 1})
#define RAW(text) ((bytes){text, sizeof(text) - 1})

static neap_status read_with(bytes from, uint64_t memory_max, const neap_memory *memory, neap_error *error,
                             np_pickle **pickle)
{
    np_pickle_input *input;
    neap_status status = np_pickle_input_open_bytes(from.at, from.n, "file", memory, error, &input);
    if (status == NEAP_OK) {
        status = np_pickle_read(input, memory_max, memory, error, pickle);
        np_pickle_input_close(input);
    }
    return status;
}

static np_pickle *read_good(bytes from)
{
    neap_error error = {""};
    np_pickle *pickle = NULL;
    neap_status status = read_with(from, 0, NULL, &error, &pickle);
    if (status != NEAP_OK) {
        fail_msg("%s", error.text);
    }
    ASSERT_TRUE(np_pickle_is_valid(pickle));
    return pickle;
}

static void assert_refused(bytes from, neap_status expected, const char *part)
{
    neap_error error = {""};
    np_pickle *pickle = NULL;
    ASSERT_STATUS(expected, read_with(from, 0, NULL, &error, &pickle));
    ASSERT_TRUE(pickle == NULL);
    ASSERT_CONTAINS(error.text, "file: byte ");
    ASSERT_CONTAINS(error.text, part);
    ASSERT_TRUE(strchr(error.text, '\n') == NULL);
}

/* ---- values ---- */

static void test_integers(void **state)
{
    static const struct {
        bytes from;
        uint64_t magnitude;
        bool is_negative;
    } cases[] = {
        {BODY("K\x00."), 0, false},
        {BODY("K\xff."), 255, false},
        {BODY("M\xff\xff."), 65535, false},
        {BODY("J\xff\xff\xff\x7f."), INT32_MAX, false},
        {BODY("J\xff\xff\xff\xff."), 1, true},
        {BODY("J\x00\x00\x00\x80."), (uint64_t)1 << 31, true},
        {BODY("\x8a\x00."), 0, false},
        {BODY("\x8a\x01\x80."), 128, true},
        {BODY("\x8a\x02\x00\x80."), 32768, true},
        {BODY("\x8a\x06\x00\x00\x00\x00\x00\x7f."), (uint64_t)0x7f0000000000, false},
        {BODY("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), INT64_MAX, false},
        {BODY("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."), (uint64_t)1 << 63, true},
        {BODY("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00."), UINT64_MAX, false},
        {BODY("\x8a\x09\x01\x00\x00\x00\x00\x00\x00\x00\xff."), UINT64_MAX, true},
        {BODY("\x8b\x02\x00\x00\x00\x39\x30."), 12345, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        np_pickle *pickle = read_good(cases[i].from);
        uint64_t number = 1;
        ASSERT_EQ(pickle->root.kind, NP_PICKLE_INT);
        ASSERT_EQ(pickle->root.as.magnitude, cases[i].magnitude);
        ASSERT_EQ(pickle->root.is_negative, cases[i].is_negative);
        ASSERT_EQ(np_pickle_get_uint(pickle->root, &number), !cases[i].is_negative);
        ASSERT_EQ(number, cases[i].is_negative ? 1 : cases[i].magnitude);
        np_pickle_free(pickle);
    }
}

/* What 64 bits cannot hold is known to be an integer, and no more. */
static void test_large_integers(void **state)
{
    static const bytes cases[] = {
        BODY("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."),
        BODY("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xff."),
        BODY("\x8a\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01."),
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        np_pickle *pickle = read_good(cases[i]);
        uint64_t number;
        ASSERT_EQ(pickle->root.kind, NP_PICKLE_LARGE_INT);
        ASSERT_FALSE(np_pickle_get_uint(pickle->root, &number));
        np_pickle_free(pickle);
    }
}

static void test_single_values(void **state)
{
    static const struct {
        bytes from;
        np_pickle_kind kind;
        const char *text; /* NULL: none */
    } cases[] = {
        {BODY("N."), NP_PICKLE_NONE, NULL},
        {BODY("\x88."), NP_PICKLE_BOOL, NULL},
        {BODY("\x89."), NP_PICKLE_BOOL, NULL},
        {BODY("G\x40\x09\x21\xfb\x54\x44\x2d\x18."), NP_PICKLE_REAL, NULL},
        {BODY("\x8c\x00."), NP_PICKLE_TEXT, ""},
        {BODY("\x8c\x05"
              "alloc."),
         NP_PICKLE_TEXT, "alloc"},
        {BODY("X\x04\x00\x00\x00"
              "addr."),
         NP_PICKLE_TEXT, "addr"},
        {BODY("\x8d\x04\x00\x00\x00\x00\x00\x00\x00size."), NP_PICKLE_TEXT, "size"},
        {BODY("U\x02py."), NP_PICKLE_TEXT, "py"},
        {BODY("T\x02\x00\x00\x00py."), NP_PICKLE_TEXT, "py"},
        {BODY("C\x02py."), NP_PICKLE_BYTES, NULL},
        {BODY("B\x02\x00\x00\x00py."), NP_PICKLE_BYTES, NULL},
        {BODY("\x8e\x02\x00\x00\x00\x00\x00\x00\x00py."), NP_PICKLE_BYTES, NULL},
        {BODY("\x96\x02\x00\x00\x00\x00\x00\x00\x00py."), NP_PICKLE_BYTES, NULL},
        {BODY("\x95\x02\x00\x00\x00\x00\x00\x00\x00N."), NP_PICKLE_NONE, NULL},
        {RAW("\x80\x02N."), NP_PICKLE_NONE, NULL},
        {RAW("\x80\x05N.what follows does not matter"), NP_PICKLE_NONE, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        np_pickle *pickle = read_good(cases[i].from);
        ASSERT_EQ(pickle->root.kind, cases[i].kind);
        ASSERT_EQ(np_pickle_is_text(pickle, pickle->root, cases[i].text ? cases[i].text : ""), cases[i].text != NULL);
        np_pickle_free(pickle);
    }
}

/* ---- objects ---- */

static np_pickle_value find(const np_pickle *pickle, np_pickle_value dict, const char *key)
{
    np_pickle_value found = {0};
    ASSERT_TRUE(np_pickle_find(pickle, dict, key, &found));
    return found;
}

/* {"a": [1, 2, 3], "b": (None, True, False), "a": [4]}: the last "a" counts. */
static void test_objects(void **state)
{
    np_pickle *pickle = read_good(BODY("}(\x8c\x01"
                                       "a](K\x01K\x02K\x03"
                                       "e\x8c\x01"
                                       "bN\x88\x89\x87\x8c\x01"
                                       "a]K\x04"
                                       "au."));
    size_t n;
    const np_pickle_value *items;
    np_pickle_value value;
    (void)state;
    ASSERT_EQ(pickle->root.kind, NP_PICKLE_DICT);
    (void)np_pickle_items(pickle, pickle->root, &n);
    ASSERT_EQ(n, 6);
    items = np_pickle_items(pickle, find(pickle, pickle->root, "a"), &n);
    ASSERT_EQ(n, 1);
    ASSERT_EQ(items[0].as.magnitude, 4);
    items = np_pickle_items(pickle, find(pickle, pickle->root, "b"), &n);
    ASSERT_EQ(n, 3);
    ASSERT_EQ(items[0].kind, NP_PICKLE_NONE);
    ASSERT_EQ(items[1].as.magnitude, 1);
    ASSERT_EQ(items[2].as.magnitude, 0);
    ASSERT_FALSE(np_pickle_find(pickle, pickle->root, "c", &value));
    ASSERT_FALSE(np_pickle_find(pickle, items[0], "a", &value)); /* None has no keys */
    ASSERT_TRUE(np_pickle_items(pickle, items[0], &n) == NULL && n == 0);
    np_pickle_free(pickle);
}

static void test_other_forms(void **state)
{
    static const struct {
        bytes from;
        np_pickle_kind kind;
        size_t n;
    } cases[] = {
        {BODY(")."), NP_PICKLE_TUPLE, 0},
        {BODY("N\x85."), NP_PICKLE_TUPLE, 1},
        {BODY("NN\x86."), NP_PICKLE_TUPLE, 2},
        {BODY("(NNNNt."), NP_PICKLE_TUPLE, 4},
        {BODY("]."), NP_PICKLE_LIST, 0},
        {BODY("(NNl."), NP_PICKLE_LIST, 2},
        {BODY("](e."), NP_PICKLE_LIST, 0},
        {BODY("](N(NNt0e."), NP_PICKLE_LIST, 1}, /* POP of a tuple */
        {BODY("]N2"
              "aNa."),
         NP_PICKLE_NONE, 0},
        {BODY("}."), NP_PICKLE_DICT, 0},
        {BODY("(K\x01Nd."), NP_PICKLE_DICT, 2},
        {BODY("}K\x01Ns."), NP_PICKLE_DICT, 2},
        {BODY("}(N(NN1u."), NP_PICKLE_NONE, 0},
        {BODY("(0]."), NP_PICKLE_LIST, 0}, /* POP of a mark */
        {BODY("]2NaN."), NP_PICKLE_NONE, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        neap_error error;
        np_pickle *pickle = NULL;
        size_t n;
        if (cases[i].kind ==
            NP_PICKLE_NONE) { /* more or fewer values than one in the end, or a key without its value */
            ASSERT_STATUS(NEAP_BAD_INPUT, read_with(cases[i].from, 0, NULL, &error, &pickle));
            continue;
        }
        pickle = read_good(cases[i].from);
        (void)np_pickle_items(pickle, pickle->root, &n);
        ASSERT_EQ(pickle->root.kind, cases[i].kind);
        ASSERT_EQ(n, cases[i].n);
        np_pickle_free(pickle);
    }
}

/* Each way to remember a value and to fetch it again; what was remembered while empty is full when it is fetched. */
static void test_memo(void **state)
{
    static const bytes cases[] = {
        BODY("](]q\x00K\x07"
             "ah\x00"
             "e."),
        BODY("](]\x94K\x07"
             "aj\x00\x00\x00\x00"
             "e."),
        BODY("](]r\x00\x00\x00\x00K\x07"
             "ah\x00"
             "e."),
        BODY("](N\x94"
             "0]q\x00K\x07"
             "ah\x00"
             "e."), /* a number given again: the last counts */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        np_pickle *pickle = read_good(cases[i]);
        size_t n;
        const np_pickle_value *items = np_pickle_items(pickle, pickle->root, &n);
        ASSERT_EQ(n, 2);
        ASSERT_EQ(items[0].as.index, items[1].as.index);
        items = np_pickle_items(pickle, items[1], &n);
        ASSERT_EQ(n, 1);
        ASSERT_EQ(items[0].as.magnitude, 7);
        np_pickle_free(pickle);
    }
}

static void test_contains_itself(void **state)
{
    np_pickle *pickle = read_good(BODY("]\x94h\x00"
                                       "a."));
    size_t n;
    const np_pickle_value *items = np_pickle_items(pickle, pickle->root, &n);
    (void)state;
    ASSERT_EQ(n, 1);
    ASSERT_EQ(items[0].as.index, pickle->root.as.index);
    np_pickle_free(pickle);
}

/* ---- refusing ---- */

/* os.system("touch ...") in every form in which a pickle can ask for it. */
static void test_nothing_is_called(void **state)
{
    static const struct {
        bytes from;
        const char *part;
    } cases[] = {
        {RAW("\x80\x02"
             "cos\nsystem\nU\x04true\x85R."),
         "GLOBAL: would import or call something"},
        {BODY("\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R."), "STACK_GLOBAL: would import or call something"},
        {BODY("(S'true'\nios\nsystem\n."), "STRING"},
        {BODY("(ios\nsystem\n."), "INST: would import"},
        {BODY("(No."), "OBJ: would import"},
        {BODY("N)\x81."), "NEWOBJ: would import"},
        {BODY("N)}\x92."), "NEWOBJ_EX: would import"},
        {BODY("N)R."), "REDUCE: would import"},
        {BODY("NNb."), "BUILD: would import"},
        {BODY("\x82\x01."), "EXT1: would import"},
        {BODY("\x83\x01\x00."), "EXT2: would import"},
        {BODY("\x84\x01\x00\x00\x00."), "EXT4: would import"},
        {BODY("Pid\n."), "PERSID: refers to data outside"},
        {BODY("NQ."), "BINPERSID: refers to data outside"},
        {BODY("\x97."), "NEXT_BUFFER: refers to data outside"},
        {BODY("N\x98."), "READONLY_BUFFER: refers to data outside"},
        {BODY("\x8f."), "EMPTY_SET: "},
        {BODY("(\x91."), "FROZENSET: "},
        {BODY("\x8f(N\x90."), "EMPTY_SET: "},
        {BODY("I1\n."), "INT: belongs to protocol 0 or 1"},
        {BODY("N\x80\x04."), "PROTO: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_refused(cases[i].from, NEAP_BAD_INPUT, cases[i].part);
    }
}

static void test_malformed(void **state)
{
    static const struct {
        bytes from;
        const char *part;
    } cases[] = {
        {RAW(""), "byte 0: expected more"},
        {RAW("\x80"), "byte 1: expected more"},
        {RAW("neap-trace 1\n"), "byte 0: expected a pickle of protocol 2 to 5, found byte 0x6e"},
        {RAW("(dp0\n."), "found byte 0x28"},
        {RAW("\x80\x01N."), "expected pickle protocol 2 to 5, found 1"},
        {RAW("\x80\x06N."), "expected pickle protocol 2 to 5, found 6"},
        {BODY("\xff."), "byte 2: expected an opcode, found byte 0xff"},
        {BODY("."), "STOP: expected one value"},
        {BODY("NN."), "STOP: expected one value"},
        {BODY("(N."), "STOP: expected one value"},
        {BODY("e."), "APPENDS: expected a mark"},
        {BODY("(e."), "APPENDS: expected more values"},
        {BODY("N(Ne."), "APPENDS: expected a list"},
        {BODY("](Nu."), "SETITEMS: expected a dict"},
        {BODY("}(Nu."), "SETITEMS: expected a value for every key"},
        {BODY("(Nd."), "DICT: expected a value for every key"},
        {BODY("a."), "APPEND: expected more values"},
        {BODY("]a."), "APPEND: expected more values"},
        {BODY("](Na."), "APPEND: expected more values"}, /* not across a mark */
        {BODY("N\x86."), "TUPLE2: expected more values"},
        {BODY("N(\x85."), "TUPLE1: expected more values"},
        {BODY("0."), "POP: expected more values"},
        {BODY("1."), "POP_MARK: expected a mark"},
        {BODY("2."), "DUP: expected more values"},
        {BODY("\x94."), "MEMOIZE: expected more values"},
        {BODY("Nq\x01."), "BINPUT: expected memo numbers one after the other"},
        {BODY("Nr\xff\xff\xff\xff."), "LONG_BINPUT: expected memo numbers"},
        {BODY("h\x00."), "BINGET: expected a memo number that was put"},
        {BODY("j\xff\xff\xff\xff."), "LONG_BINGET: expected a memo number"},
        {BODY("\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), "BINUNICODE8: expected at most 64 MiB"},
        {BODY("X\xff\xff\xff\x03."), "expected more of the pickle"}, /* just below the bound, and not there */
        {BODY("\x8b\x00\x01\x00\x00."), "LONG4: expected an integer of at most 255 bytes"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_refused(cases[i].from, NEAP_BAD_INPUT, cases[i].part);
    }
}

/* ---- bounds ---- */

static void test_depth(void **state)
{
    char text[2 + 2 * (NP_PICKLE_DEPTH_MAX + 1) + 1] = "\x80\x04";
    size_t n = 2;
    (void)state;
    for (int i = 0; i < NP_PICKLE_DEPTH_MAX; i++) {
        text[n++] = '(';
    }
    for (int i = 0; i < NP_PICKLE_DEPTH_MAX; i++) {
        text[n++] = 't';
    }
    text[n++] = '.';
    np_pickle_free(read_good((bytes){text, n}));
    memset(text + 2, '(', NP_PICKLE_DEPTH_MAX + 1);
    assert_refused((bytes){text, n}, NEAP_BAD_INPUT, "MARK: expected at most 1000 levels");
}

/* Whatever a file asks for, no more than the bound is held. */
static void test_memory_bound(void **state)
{
    enum { N = 100000, BOUND = 1 << 20 };
    static const char ops[] = "}])N2";
    char *text = malloc(N + 3);
    (void)state;
    for (size_t k = 0; k < sizeof ops - 1; k++) {
        test_memory memory;
        neap_error error;
        np_pickle *pickle = NULL;
        test_memory_init(&memory);
        memcpy(text, "\x80\x04N", 3);
        memset(text + 3, ops[k], N);
        ASSERT_STATUS(NEAP_TOO_LARGE, read_with((bytes){text, N + 3}, BOUND, &memory.hook, &error, &pickle));
        ASSERT_CONTAINS(error.text, "expected a pickle that fits into 1 MiB of memory");
        ASSERT_LE(memory.peak_bytes, 3 * BOUND); /* an array being moved is there twice */
        test_memory_finish(&memory);
    }
    free(text);
}

/* ---- damage ---- */

/* {"segments": [], "device_traces": [[{"action": "alloc", "addr": 0x7f0000000000, ...}, ...]]} */
static const bytes sample = BODY("\x95\x40\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x08segments\x94]\x94\x8c\x0d"
                                 "device_traces\x94]\x94]\x94(}\x94("
                                 "\x8c\x06"
                                 "action\x94\x8c\x05"
                                 "alloc\x94\x8c\x04"
                                 "addr\x94\x8a\x06\x00\x00\x00\x00\x00\x7f\x8c\x04size\x94M\x00\x02\x8c\x06"
                                 "stream\x94K\x00\x8c\x05times\x94G\x3f\xf0\x00\x00\x00\x00\x00\x00u}\x94(h\x06\x8c\x04"
                                 "free\x94h\x08J\x01\x02\x03\x04ueau.");

static void test_cut(void **state)
{
    (void)state;
    np_pickle_free(read_good(sample));
    for (size_t n = 0; n < sample.n; n++) {
        assert_refused((bytes){sample.at, n}, NEAP_BAD_INPUT, "expected more of the pickle, found the end of the file");
    }
}

static void test_mutated(void **state)
{
    np_rng rng = np_rng_make(7);
    char *text = malloc(sample.n);
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 20000 : 200000); round++) {
        neap_error error = {""};
        np_pickle *pickle = NULL;
        neap_status status;
        memcpy(text, sample.at, sample.n);
        for (uint64_t k = 1 + np_rng_below(&rng, 4); k > 0; k--) {
            text[2 + np_rng_below(&rng, sample.n - 2)] = (char)np_rng_below(&rng, 256);
        }
        status = read_with((bytes){text, sample.n}, 1 << 20, NULL, &error, &pickle);
        if (status == NEAP_OK) {
            ASSERT_TRUE(np_pickle_is_valid(pickle));
        } else {
            ASSERT_TRUE(status == NEAP_BAD_INPUT || status == NEAP_TOO_LARGE);
            ASSERT_CONTAINS(error.text, "file: byte ");
        }
        np_pickle_free(pickle);
    }
    free(text);
}

/* ---- gzip ---- */

static size_t gzip(bytes from, char *to, size_t room)
{
    z_stream z = {0};
    ASSERT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (z_const Bytef *)from.at;
    z.avail_in = (uInt)from.n;
    z.next_out = (Bytef *)to;
    z.avail_out = (uInt)room;
    ASSERT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    (void)deflateEnd(&z);
    return room - z.avail_out;
}

static void test_gzip(void **state)
{
    char text[2000];
    size_t n = gzip(sample, text, sizeof text);
    size_t n_twice = n + gzip(RAW("more"), text + n, sizeof text - n);
    (void)state;
    np_pickle_free(read_good((bytes){text, n}));
    np_pickle_free(read_good((bytes){text, n_twice})); /* a second member, behind the pickle's end */
    for (size_t k = 2; k < n; k++) {
        assert_refused((bytes){text, k}, NEAP_BAD_INPUT, "expected more gzip data");
    }
    text[n] = 'x';
    assert_refused((bytes){text, n + 1}, NEAP_BAD_INPUT, "expected the end of the gzip data");
    text[n - 5] = (char)(text[n - 5] ^ 1); /* the checksum, behind the last byte that is looked at */
    assert_refused((bytes){text, n}, NEAP_BAD_INPUT, "expected intact gzip data, found damage");
}

static void test_files(void **state)
{
    char path[TEST_PATH_BYTES];
    neap_error error;
    np_pickle_input *input = NULL;
    np_pickle *pickle = NULL;
    FILE *file;
    (void)state;
    test_temp_path(path, "a.pickle");
    ASSERT_STATUS(NEAP_IO, np_pickle_input_open(path, NULL, &error, &input));
    ASSERT_CONTAINS(error.text, "a.pickle: No such file");
    ASSERT_STATUS(NEAP_IO, np_pickle_input_open("/", NULL, &error, &input)); /* opens, and cannot be read */
    file = fopen(path, "wb");
    ASSERT_TRUE(file && fwrite(sample.at, 1, sample.n, file) == sample.n && fclose(file) == 0);
    ASSERT_OK(np_pickle_input_open(path, NULL, &error, &input));
    ASSERT_OK(np_pickle_read(input, 0, NULL, &error, &pickle));
    ASSERT_EQ(np_pickle_input_at(input), sample.n);
    np_pickle_free(pickle);
    np_pickle_input_close(input);
    (void)remove(path);
}

/* ---- memory ---- */

static neap_status read_once(const neap_memory *memory, void *user)
{
    neap_error error;
    np_pickle *pickle = NULL;
    neap_status status = read_with(*(const bytes *)user, 0, memory, &error, &pickle);
    ASSERT_EQ(pickle != NULL, status == NEAP_OK);
    np_pickle_free(pickle);
    return status;
}

static void test_no_memory(void **state)
{
    char text[2000];
    bytes plain = sample;
    bytes packed = {text, gzip(sample, text, sizeof text)};
    (void)state;
    ASSERT_GE(test_memory_fail_each(read_once, &plain), 10);
    ASSERT_GT(test_memory_fail_each(read_once, &packed), test_memory_fail_each(read_once, &plain));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),        cmocka_unit_test(test_large_integers),
        cmocka_unit_test(test_single_values),   cmocka_unit_test(test_objects),
        cmocka_unit_test(test_other_forms),     cmocka_unit_test(test_memo),
        cmocka_unit_test(test_contains_itself), cmocka_unit_test(test_nothing_is_called),
        cmocka_unit_test(test_malformed),       cmocka_unit_test(test_depth),
        cmocka_unit_test(test_memory_bound),    cmocka_unit_test(test_cut),
        cmocka_unit_test(test_mutated),         cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_files),           cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
