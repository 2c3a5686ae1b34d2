/* test_read.c: reading traces: good ones, and the exact words about each kind of bad one. */
#include "trace/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "testing.h"

static neap_trace *parse_good(const char *text)
{
    neap_error error;
    neap_trace *trace = NULL;
    neap_status status = neap_trace_parse(text, strlen(text), "f", NULL, &error, &trace);
    ASSERT_STR_EQ(error.text, "");
    ASSERT_OK(status);
    ASSERT_TRUE(np_trace_is_valid(trace));
    return trace;
}

static void assert_bad(const void *bytes, size_t n, neap_status expected, const char *message)
{
    neap_error error;
    neap_trace *const untouched = (neap_trace *)&error;
    neap_trace *trace = untouched;
    neap_status status = neap_trace_parse(bytes, n, "f", NULL, &error, &trace);
    ASSERT_STR_EQ(error.text, message);
    ASSERT_STATUS(expected, status);
    ASSERT_TRUE(trace == untouched);
    ASSERT_STATUS(expected, neap_trace_parse(bytes, n, "f", NULL, NULL, &trace)); /* nobody asks why */
}

/* zlib's bytes for text, with a gzip header; the caller frees them. */
static unsigned char *gzip(const void *bytes, size_t n, size_t *n_gzip)
{
    z_stream z = {0};
    unsigned char *out;
    ASSERT_EQ(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    *n_gzip = deflateBound(&z, n) + 64;
    out = malloc(*n_gzip);
    ASSERT_TRUE(out != NULL);
    z.next_in = (z_const Bytef *)bytes;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)*n_gzip;
    ASSERT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    *n_gzip = z.total_out;
    ASSERT_EQ(deflateEnd(&z), Z_OK);
    return out;
}

static const char good_text[] = "neap-trace 1\n"
                                "meta model=vgg batch=100\n"
                                "meta step_ms=1.5 empty=\n"
                                "live 5 4096\n"
                                "iteration\n"
                                "malloc 6 18446744073709551\n"
                                "exec k<1> 18446744073709551615 0 r5 w6 x6\n"
                                "exec idle 0 7\n"
                                "free 5\n"
                                "iteration\n";

static void test_good(void **state)
{
    neap_trace *trace = parse_good(good_text);
    (void)state;
    ASSERT_EQ(trace->events.n, 4);
    ASSERT_EQ(trace->blocks.n, 2);
    ASSERT_EQ(trace->blocks.items[1].bytes, 18446744073709551u);
    ASSERT_EQ(trace->events.items[1].start_ns, UINT64_MAX);
    ASSERT_EQ(trace->events.items[1].n_accesses, 3);
    ASSERT_EQ(trace->accesses.items[0].kind, NEAP_ACCESS_READ);
    ASSERT_EQ(trace->accesses.items[1].kind, NEAP_ACCESS_WRITE);
    ASSERT_EQ(trace->accesses.items[2].kind, NEAP_ACCESS_UNKNOWN);
    ASSERT_EQ(trace->events.items[2].n_accesses, 0);
    ASSERT_STR_EQ(neap_trace_exec_name(trace, trace->events.items[1].subject), "k<1>");
    ASSERT_STR_EQ(neap_trace_meta(trace, "step_ms"), "1.5");
    ASSERT_STR_EQ(neap_trace_meta(trace, "empty"), "");
    ASSERT_EQ(trace->marks.n, 2);
    ASSERT_EQ(trace->marks.items[0], 0);
    ASSERT_EQ(trace->marks.items[1], 4);
    ASSERT_FALSE(neap_trace_is_csv(trace));
    neap_trace_free(trace);
}

/* Other ways to write the same. */
static void test_leniency(void **state)
{
    static const char *const texts[] = {
        "neap-trace 1\nlive 1 2\nmalloc 3 4\nexec k 5 6 r1 w3\nfree 1\n",
        "neap-trace 1\nlive 1 2\nmalloc 3 4\nexec k 5 6 r1 w3\nfree 1",
        "neap-trace 1\r\nlive 1 2\r\nmalloc 3 4\r\nexec k 5 6 r1 w3\r\nfree 1\r\n",
        "neap-trace 1\r\nlive 1 2\r\nmalloc 3 4\r\nexec k 5 6 r1 w3\r\nfree 1\r",
        "neap-trace\t1 \nlive  1\t2 \nmalloc 3   4\t\nexec  k 5 6  r1 w3 \nfree 1 \n",
        "neap-trace 1\nlive 01 000000000000000000000000000002\nmalloc 3 4\nexec k 5 6 r1 w003\nfree 1\n",
    };
    neap_trace *first = parse_good(texts[0]);
    (void)state;
    for (size_t i = 1; i < sizeof texts / sizeof *texts; i++) {
        neap_trace *other = parse_good(texts[i]);
        ASSERT_TRUE(np_trace_is_equal(first, other));
        neap_trace_free(other);
    }
    neap_trace_free(first);
    neap_trace_free(parse_good("neap-trace 1\n"));
    neap_trace_free(parse_good("neap-trace 1"));
}

#define HEAD "neap-trace 1\n"
#define RECORDS "exec, malloc, free, live, iteration or meta"
#define ACCESS "an access (r, w or x and a block number)"
#define FORTY "abcdefghijabcdefghijabcdefghijabcdefghij"

static const struct {
    const char *text;
    const char *message;
} bad_texts[] = {
    /* the header */
    {"", "f:1: expected \"neap-trace 1\" or a CSV header, found an empty file"},
    {"\n", "f:1: expected \"neap-trace 1\" or a CSV header (id,lower,upper,size), found the end of the line"},
    {"hello\n", "f:1: expected \"neap-trace 1\" or a CSV header (id,lower,upper,size), found \"hello\""},
    {"neap-tracer 1\n",
     "f:1: expected \"neap-trace 1\" or a CSV header (id,lower,upper,size), found \"neap-tracer 1\""},
    {"live 1 2\n", "f:1: expected \"neap-trace 1\" or a CSV header (id,lower,upper,size), found \"live 1 2\""},
    {"neap-trac", "f:1: expected \"neap-trace 1\" or a CSV header (id,lower,upper,size), found \"neap-trac\""},
    {"neap-trace\n", "f:1: expected version 1 of neap-trace, found the end of the line"},
    {"neap-trace 2\n", "f:1: expected version 1 of neap-trace, found \"2\""},
    {"neap-trace 10\n", "f:1: expected version 1 of neap-trace, found \"10\""},
    {"neap-trace 1 x\n", "f:1: expected the end of the line, found \"x\""},
    /* records */
    {HEAD "mallok 1 2\n", "f:2: expected " RECORDS ", found \"mallok\""},
    {HEAD "mall", "f:2: expected " RECORDS ", found \"mall\""},
    {HEAD "\n", "f:2: expected " RECORDS ", found the end of the line"},
    {HEAD " free 1\n", "f:2: expected " RECORDS ", found \" \""},
    {HEAD "neap-trace 1\n", "f:2: expected " RECORDS ", found \"neap-trace\""},
    {HEAD "\x1b[31m\n", "f:2: expected " RECORDS ", found \"\\x1b[31m\""},
    {HEAD "\xc3\xa4\n", "f:2: expected " RECORDS ", found \"\\xc3\\xa4\""},
    {HEAD FORTY "\n", "f:2: expected " RECORDS ", found \"" FORTY "\""},
    {HEAD FORTY "k\n", "f:2: expected " RECORDS ", found \"" FORTY "...\""},
    {HEAD "iteration 1\n", "f:2: expected the end of the line, found \"1\""},
    /* malloc and live */
    {HEAD "malloc\n", "f:2: expected a block number, found the end of the line"},
    {HEAD "malloc 1", "f:2: expected a size in bytes, found the end of the line"},
    {HEAD "malloc 1 \n", "f:2: expected a size in bytes, found the end of the line"},
    {HEAD "malloc x 2\n", "f:2: expected a block number, found \"x\""},
    {HEAD "malloc -1 2\n", "f:2: expected a block number, found \"-1\""},
    {HEAD "malloc +1 2\n", "f:2: expected a block number, found \"+1\""},
    {HEAD "malloc 1x 2\n", "f:2: expected a block number, found \"1x\""},
    {HEAD "malloc 1 -2\n", "f:2: expected a size in bytes, found \"-2\""},
    {HEAD "malloc 1 2.0\n", "f:2: expected a size in bytes, found \"2.0\""},
    {HEAD "malloc 1 0x2\n", "f:2: expected a size in bytes, found \"0x2\""},
    {HEAD "malloc 18446744073709551616 2\n", "f:2: expected a block number below 2^64, found \"18446744073709551616\""},
    {HEAD "malloc 1 99999999999999999999\n",
     "f:2: expected a size in bytes below 2^64, found \"99999999999999999999\""},
    {HEAD "malloc 1 2 3\n", "f:2: expected the end of the line, found \"3\""},
    {HEAD "malloc 1 0\n", "f:2: expected a size above 0, found \"0\""},
    {HEAD "malloc 1 2\nmalloc 1 3\n", "f:3: expected a block number not used before, found \"1\""},
    {HEAD "malloc 1 2\nfree 1\nmalloc 1 3\n", "f:4: expected a block number not used before, found \"1\""},
    {HEAD "malloc 1 9223372036854775808\n",
     "f:2: expected less than 2^63 bytes live at once, found \"9223372036854775808\""},
    {HEAD "live 1 9223372036854775807\nmalloc 2 1\n", "f:3: expected less than 2^63 bytes live at once, found \"1\""},
    {HEAD "live 1\n", "f:2: expected a size in bytes, found the end of the line"},
    {HEAD "live 1 2\nlive 1 2\n", "f:3: expected a block number not used before, found \"1\""},
    {HEAD "live 1 2\nmalloc 1 2\n", "f:3: expected a block number not used before, found \"1\""},
    {HEAD "malloc 1 2\nlive 2 3\n", "f:3: expected every \"live\" before the first event, found one after it"},
    /* free */
    {HEAD "free\n", "f:2: expected a block number, found the end of the line"},
    {HEAD "free 1\n", "f:2: expected a block that was allocated before, found \"1\""},
    {HEAD "live 1 2\nfree 1\nfree 1\n", "f:4: expected a block that is not freed yet, found \"1\""},
    {HEAD "live 1 2\nfree 1 2\n", "f:3: expected the end of the line, found \"2\""},
    {HEAD "live 1 2\nfree -1\n", "f:3: expected a block number, found \"-1\""},
    /* exec */
    {HEAD "exec\n", "f:2: expected the name of an exec, found the end of the line"},
    {HEAD "exec k\n", "f:2: expected a start time in ns, found the end of the line"},
    {HEAD "exec k 1", "f:2: expected a duration in ns, found the end of the line"},
    {HEAD "exec k -1 2\n", "f:2: expected a start time in ns, found \"-1\""},
    {HEAD "exec k 1 1e3\n", "f:2: expected a duration in ns, found \"1e3\""},
    {HEAD "exec k 1 18446744073709551616\n",
     "f:2: expected a duration in ns below 2^64, found \"18446744073709551616\""},
    {HEAD "live 1 2\nexec k 1 2 q1\n", "f:3: expected " ACCESS ", found \"q1\""},
    {HEAD "live 1 2\nexec k 1 2 1\n", "f:3: expected " ACCESS ", found \"1\""},
    {HEAD "live 1 2\nexec k 1 2 r\n", "f:3: expected " ACCESS ", found \"r\""},
    {HEAD "live 1 2\nexec k 1 2 r1,w1\n", "f:3: expected " ACCESS ", found \"r1,w1\""},
    {HEAD "live 1 2\nexec k 1 2 r-1\n", "f:3: expected " ACCESS ", found \"r-1\""},
    {HEAD "live 1 2\nexec k 1 2 r1 w18446744073709551616\n",
     "f:3: expected an access to a block number below 2^64, found \"w18446744073709551616\""},
    {HEAD "live 1 2\nexec k 1 2 r1 r2\n", "f:3: expected a block that was allocated before, found \"r2\""},
    {HEAD "live 1 2\nfree 1\nexec k 1 2 x1\n", "f:4: expected a block that is not freed yet, found \"x1\""},
    {HEAD "exec a\vb 1 2\n", "f:2: expected a start time in ns, found \"\\x0bb\""},
    /* meta */
    {HEAD "meta\n", "f:2: expected KEY=VALUE, found the end of the line"},
    {HEAD "meta a\n", "f:2: expected KEY=VALUE, found \"a\""},
    {HEAD "meta a=1 =2\n", "f:2: expected KEY=VALUE, found \"=2\""},
    {HEAD "meta a=\x01\n", "f:2: expected KEY=VALUE, found \"a=\\x01\""},
};

static void test_bad_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_texts / sizeof *bad_texts; i++) {
        size_t n_gzip;
        size_t n = strlen(bad_texts[i].text);
        unsigned char *bytes = gzip(bad_texts[i].text, n, &n_gzip);
        assert_bad(bad_texts[i].text, n, NEAP_BAD_INPUT, bad_texts[i].message);
        assert_bad(bytes, n_gzip, NEAP_BAD_INPUT, bad_texts[i].message);
        free(bytes);
    }
}

static void test_nul_bytes(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        const char *message;
    } cases[] = {
#define CASE(text, message) {text, sizeof(text) - 1, message}
        CASE("\0", "f:1: expected \"neap-trace 1\" or a CSV header (id,lower,upper,size), found \"\\x00\""),
        CASE("neap-trace 1\0\n", "f:1: expected the end of the line, found \"\\x00\""),
        CASE(HEAD "malloc\0 1 2\n", "f:2: expected a block number, found \"\\x00\""),
        CASE(HEAD "malloc 1\0 2\n", "f:2: expected a block number, found \"1\\x00\""),
        CASE(HEAD "malloc 1 2\0\n", "f:2: expected a size in bytes, found \"2\\x00\""),
        CASE(HEAD "exec k\0k 1 2\n", "f:2: expected a start time in ns, found \"\\x00k\""),
        CASE(HEAD "iteration\0\n", "f:2: expected the end of the line, found \"\\x00\""),
        CASE(HEAD "meta a\0=2\n", "f:2: expected KEY=VALUE, found \"a\\x00=2\""),
#undef CASE
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_bad(cases[i].text, cases[i].n, NEAP_BAD_INPUT, cases[i].message);
    }
}

/* A file cut anywhere is a good shorter one or a bad one, and never anything else. */
static void test_every_prefix(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof good_text; n++) {
        neap_error error;
        neap_trace *trace;
        neap_status status = neap_trace_parse(good_text, n, "f", NULL, &error, &trace);
        if (status == NEAP_OK) {
            ASSERT_TRUE(np_trace_is_valid(trace));
            neap_trace_free(trace);
        } else {
            ASSERT_EQ(status, NEAP_BAD_INPUT);
            ASSERT_CONTAINS(error.text, "expected");
        }
    }
}

/* ---------------------------------------------------------------- gzip ---- */

static void test_gzip_truncated(void **state)
{
    size_t n;
    unsigned char *bytes = gzip(good_text, sizeof good_text - 1, &n);
    neap_error error;
    neap_trace *trace;
    (void)state;
    for (size_t i = 2; i < n; i++) {
        ASSERT_STATUS(NEAP_BAD_INPUT, neap_trace_parse(bytes, i, "f", NULL, &error, &trace));
        ASSERT_CONTAINS(error.text, ": expected more gzip data, found the end of the file");
    }
    /* All the text is there and its checksum is not: the line is the one after the last. */
    assert_bad(bytes, n - 8, NEAP_BAD_INPUT, "f:11: expected more gzip data, found the end of the file");
    free(bytes);
}

static void test_gzip_damaged(void **state)
{
    size_t n;
    unsigned char *bytes = gzip(good_text, sizeof good_text - 1, &n);
    unsigned char *longer = malloc(n + 4);
    neap_error error;
    neap_trace *trace;
    (void)state;
    bytes[n - 5] ^= 1; /* the checksum */
    assert_bad(bytes, n, NEAP_BAD_INPUT, "f:11: expected intact gzip data, found damage");
    bytes[n - 5] ^= 1;
    bytes[n - 1] ^= 1; /* the length */
    assert_bad(bytes, n, NEAP_BAD_INPUT, "f:11: expected intact gzip data, found damage");
    bytes[n - 1] ^= 1;
    bytes[2] = 7; /* the method */
    assert_bad(bytes, n, NEAP_BAD_INPUT, "f:1: expected intact gzip data, found damage");
    bytes[2] = 8;
    for (size_t i = 10; i < n; i++) { /* past the header, where names and times may stand */
        bytes[i] ^= 0x10;
        ASSERT_STATUS(NEAP_BAD_INPUT, neap_trace_parse(bytes, n, "f", NULL, &error, &trace));
        bytes[i] ^= 0x10;
    }
    ASSERT_TRUE(longer != NULL);
    memcpy(longer, bytes, n);
    memcpy(longer + n, "junk", 4);
    assert_bad(longer, n + 4, NEAP_BAD_INPUT, "f:11: expected the end of the gzip data, found other bytes after it");
    memset(longer + n, 0, 4);
    assert_bad(longer, n + 1, NEAP_BAD_INPUT, "f:11: expected the end of the gzip data, found other bytes after it");
    memcpy(longer + n, "\x1f\x8b\x08", 3);
    assert_bad(longer, n + 3, NEAP_BAD_INPUT, "f:11: expected more gzip data, found the end of the file");
    memcpy(longer + n, "\x1fxyz", 4);
    assert_bad(longer, n + 4, NEAP_BAD_INPUT, "f:11: expected intact gzip data, found damage");
    free(longer);
    free(bytes);
}

/* As `cat a.gz b.gz` makes them, cut at every byte of the text, so that lines span members; some are empty. */
static void test_gzip_members(void **state)
{
    neap_trace *whole = parse_good(good_text);
    size_t n_empty;
    unsigned char *empty = gzip("", 0, &n_empty);
    (void)state;
    for (size_t cut = 0; cut < sizeof good_text; cut++) {
        size_t n_a;
        size_t n_b;
        unsigned char *a = gzip(good_text, cut, &n_a);
        unsigned char *b = gzip(good_text + cut, sizeof good_text - 1 - cut, &n_b);
        unsigned char *both = malloc(n_a + n_empty + n_b);
        neap_trace *trace;
        ASSERT_TRUE(both != NULL);
        memcpy(both, a, n_a);
        memcpy(both + n_a, empty, n_empty);
        memcpy(both + n_a + n_empty, b, n_b);
        ASSERT_OK(neap_trace_parse(both, n_a + n_empty + n_b, "f", NULL, NULL, &trace));
        ASSERT_TRUE(np_trace_is_equal(trace, whole));
        neap_trace_free(trace);
        free(both);
        free(b);
        free(a);
    }
    free(empty);
    neap_trace_free(whole);
}

/* ---------------------------------------------------------------- long lines ---- */

/* The longest line there may be, and one byte more; with and without its end. */
static void test_line_limit(void **state)
{
    static const char message[] = "f:2: expected a line of at most 4 MiB, found a longer one";
    size_t n_head = strlen(HEAD);
    char *text = malloc(n_head + NP_SOURCE_LINE_MAX + 4);
    char *line = text + n_head;
    neap_trace *trace;
    (void)state;
    ASSERT_TRUE(text != NULL);
    memcpy(text, HEAD, n_head);
    memcpy(line, "meta a=", 7);
    memset(line + 7, 'v', NP_SOURCE_LINE_MAX - 6);
    for (int end = 0; end < 3; end++) {
        static const char *const ends[] = {"", "\n", "\r\n"};
        size_t n_end = strlen(ends[end]);
        memcpy(line + NP_SOURCE_LINE_MAX, ends[end], n_end);
        ASSERT_OK(neap_trace_parse(text, n_head + NP_SOURCE_LINE_MAX + n_end, "f", NULL, NULL, &trace));
        ASSERT_EQ(strlen(neap_trace_meta(trace, "a")), NP_SOURCE_LINE_MAX - 7);
        neap_trace_free(trace);
        line[NP_SOURCE_LINE_MAX] = 'v';
        memcpy(line + NP_SOURCE_LINE_MAX + 1, ends[end], n_end);
        assert_bad(text, n_head + NP_SOURCE_LINE_MAX + 1 + n_end, NEAP_BAD_INPUT, message);
    }
    free(text);
}

static void assert_small_and_fast(const char *path)
{
    static const char end[] = ":2: expected a line of at most 4 MiB, found a longer one";
    test_memory memory;
    neap_error error;
    neap_trace *trace;
    uint64_t start = test_cpu_ns();
    test_memory_init(&memory);
    ASSERT_STATUS(NEAP_BAD_INPUT, neap_trace_read(path, &memory.hook, &error, &trace));
    ASSERT_STR_EQ(error.text + strlen(error.text) - (sizeof end - 1), end);
    ASSERT_LT(memory.peak_bytes, (size_t)16 << 20); /* a resize that moves holds both for a moment */
    ASSERT_LT(test_cpu_ns() - start, 2000000000u);
    test_memory_finish(&memory);
}

/* 10 GB without a line's end: a file with a hole, which costs no disk. */
static void test_huge_line(void **state)
{
    char path[TEST_PATH_BYTES];
    FILE *file;
    (void)state;
    test_temp_path(path, "huge.neap");
    file = fopen(path, "wb");
    ASSERT_TRUE(file != NULL);
    ASSERT_EQ(fputs(HEAD, file) >= 0, 1);
    ASSERT_EQ(fflush(file), 0);
    ASSERT_EQ(ftruncate(fileno(file), 10000000000), 0);
    ASSERT_EQ(fclose(file), 0);
    assert_small_and_fast(path);
    ASSERT_EQ(unlink(path), 0);
}

/* The same as a gzip bomb: 10 GB of zeros are many equal members, each of 1 GB would take seconds to make, so of 16 MiB. */
static void test_gzip_bomb(void **state)
{
    size_t n_zeros = (size_t)16 << 20;
    char *zeros = calloc(n_zeros, 1);
    char path[TEST_PATH_BYTES];
    size_t n_head;
    size_t n;
    unsigned char *head = gzip(HEAD, strlen(HEAD), &n_head);
    unsigned char *bomb;
    FILE *file;
    (void)state;
    ASSERT_TRUE(zeros != NULL);
    bomb = gzip(zeros, n_zeros, &n);
    test_temp_path(path, "bomb.neap.gz");
    file = fopen(path, "wb");
    ASSERT_TRUE(file != NULL);
    ASSERT_EQ(fwrite(head, 1, n_head, file), n_head);
    for (uint64_t total = 0; total < 10000000000u; total += n_zeros) {
        ASSERT_EQ(fwrite(bomb, 1, n, file), n);
    }
    ASSERT_EQ(fclose(file), 0);
    free(bomb);
    free(head);
    free(zeros);
    assert_small_and_fast(path);
    ASSERT_EQ(unlink(path), 0);
}

/* ---------------------------------------------------------------- files ---- */

static void test_missing_files(void **state)
{
    neap_error error;
    neap_trace *trace;
    char path[1024];
    (void)state;
    ASSERT_STATUS(NEAP_IO, neap_trace_read("/nowhere/at\nall", NULL, &error, &trace));
    ASSERT_STR_EQ(error.text, "/nowhere/at\\x0aall: No such file or directory");
    ASSERT_STATUS(NEAP_IO, neap_trace_read("/", NULL, &error, &trace));
    ASSERT_STR_EQ(error.text, "/: Is a directory");
    ASSERT_STATUS(NEAP_BAD_INPUT, neap_trace_read("/dev/null", NULL, &error, &trace));
    ASSERT_STR_EQ(error.text, "/dev/null:1: expected \"neap-trace 1\" or a CSV header, found an empty file");
    memset(path, '/', sizeof path - 1);
    memcpy(path + sizeof path - 6, "x.gz", 5);
    ASSERT_STATUS(NEAP_IO, neap_trace_read(path, NULL, &error, &trace));
    ASSERT_CONTAINS(error.text, "...//");
    ASSERT_CONTAINS(error.text, "//x.gz: No such file or directory");
}

/* A pipe delivers what its writer wrote, piece by piece: here one byte at first. */
static void test_standard_input(void **state)
{
    int kept = dup(STDIN_FILENO);
    (void)state;
    for (int as_gzip = 0; as_gzip < 2; as_gzip++) {
        size_t n_gzip;
        unsigned char *compressed = gzip(good_text, sizeof good_text - 1, &n_gzip);
        const void *bytes = as_gzip ? (const void *)compressed : good_text;
        size_t n = as_gzip ? n_gzip : sizeof good_text - 1;
        int ends[2];
        neap_error error;
        neap_trace *trace;
        neap_trace *expected = parse_good(good_text);
        pid_t child;
        ASSERT_EQ(pipe(ends), 0);
        child = fork();
        if (child == 0) {
            struct timespec pause = {0, 50000000};
            (void)close(ends[0]);
            for (size_t i = 0; i < n; i++) {
                if (write(ends[1], (const char *)bytes + i, 1) != 1) {
                    _exit(1);
                }
                if (i < 2) {
                    (void)nanosleep(&pause, NULL);
                }
            }
            _exit(0);
        }
        ASSERT_GT(child, 0);
        ASSERT_EQ(close(ends[1]), 0);
        ASSERT_EQ(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
        ASSERT_EQ(close(ends[0]), 0);
        ASSERT_OK(neap_trace_read("-", NULL, &error, &trace));
        ASSERT_EQ(waitpid(child, NULL, 0), child);
        ASSERT_TRUE(np_trace_is_equal(trace, expected));
        neap_trace_free(expected);
        neap_trace_free(trace);
        /* What follows on the same stream is nothing, and its name is in the message. */
        ASSERT_STATUS(NEAP_BAD_INPUT, neap_trace_read("-", NULL, &error, &trace));
        ASSERT_STR_EQ(error.text, "stdin:1: expected \"neap-trace 1\" or a CSV header, found an empty file");
        free(compressed);
    }
    ASSERT_EQ(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    ASSERT_EQ(close(kept), 0);
}

static neap_status parse_action(const neap_memory *memory, void *user)
{
    const char *path = user;
    neap_error error;
    neap_trace *trace;
    neap_status status = path ? neap_trace_read(path, memory, &error, &trace)
                              : neap_trace_parse(good_text, sizeof good_text - 1, "f", memory, &error, &trace);
    if (status == NEAP_OK) {
        neap_trace_free(trace);
    } else {
        ASSERT_STR_EQ(error.text, "host memory is exhausted");
    }
    return status;
}

static void test_no_memory(void **state)
{
    char path[TEST_PATH_BYTES];
    (void)state;
    ASSERT_GT(test_memory_fail_each(parse_action, NULL), 5);
    test_data_path(path, "traces/vgg11-100-32.neap.gz");
    ASSERT_GT(test_memory_fail_each(parse_action, path), 20);
}

/* Counts that were made by other means (zcat and grep). */
static void test_recordings(void **state)
{
    static const struct {
        const char *name;
        size_t n_events;
        size_t n_blocks;
        size_t n_accesses;
        size_t n_marks;
    } files[] = {
        {"traces/gpt2-8.neap.gz", 12260, 4716, 26464, 4},
        {"traces/lstm-64.neap.gz", 13488, 269, 33328, 4},
        {"traces/resnet18-100-32-fp32.neap.gz", 3240, 1129, 4680, 4},
        {"traces/resnet18-100-log.neap.gz", 11384, 3609, 15568, 12},
        {"traces/vgg11-100-32.neap.gz", 2032, 716, 2756, 4},
        {"traces/vgg16-100-32.neap.gz", 2996, 1051, 4100, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[TEST_PATH_BYTES];
        neap_trace *trace;
        neap_error error;
        test_data_path(path, files[i].name);
        ASSERT_OK(neap_trace_read(path, NULL, &error, &trace));
        ASSERT_TRUE(np_trace_is_valid(trace));
        ASSERT_EQ(trace->events.n, files[i].n_events);
        ASSERT_EQ(trace->blocks.n, files[i].n_blocks);
        ASSERT_EQ(trace->accesses.n, files[i].n_accesses);
        ASSERT_EQ(trace->marks.n, files[i].n_marks);
        ASSERT_STR_EQ(neap_trace_meta(trace, "gpu"), "H200");
        neap_trace_free(trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),           cmocka_unit_test(test_leniency),
        cmocka_unit_test(test_bad_text),       cmocka_unit_test(test_nul_bytes),
        cmocka_unit_test(test_every_prefix),   cmocka_unit_test(test_gzip_truncated),
        cmocka_unit_test(test_gzip_damaged),   cmocka_unit_test(test_gzip_members),
        cmocka_unit_test(test_line_limit),     cmocka_unit_test(test_huge_line),
        cmocka_unit_test(test_gzip_bomb),      cmocka_unit_test(test_missing_files),
        cmocka_unit_test(test_standard_input), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_recordings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
