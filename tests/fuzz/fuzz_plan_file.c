/* fuzz_plan_file.c: any bytes given to the reader of plan files.
 *
 * A checksum stands before the content, and so the first byte of an input chooses: the rest is a whole file, or one
 * pattern. What is accepted must be a program that passes every check, and come back the same. */
#include "fuzz.h"
#include "run/plan_code.h"

static const np_plan_origin origin = {.version = "1.2.3",
                                      .machine = "tide",
                                      .program = "/opt/train",
                                      .device = "cpu",
                                      .page_bytes = 1024,
                                      .n_pages = 1 << 20,
                                      .n_streams = 3};

/* As bytes: in the form in which neap writes it. */
static void check_pattern(const np_pattern *pattern)
{
    np_plan_writer written[2];
    np_plan_reader r;
    np_pattern *again = NULL;
    neap_error error = {""};

    FUZZ_ASSERT(np_pattern_is_valid(pattern));
    FUZZ_ASSERT(np_program_check(&pattern->program, &error) == NEAP_OK);
    for (int i = 0; i < 2; i++) {
        written[i] = (np_plan_writer){.memory = &np_memory_default};
        np_plan_put_pattern(&written[i], i == 0 ? pattern : again);
        FUZZ_ASSERT(written[i].status == NEAP_OK);
        if (i == 0) {
            r = (np_plan_reader){.at = written[0].bytes.items, .end = written[0].bytes.items + written[0].bytes.n};
            FUZZ_ASSERT(np_plan_get_pattern(&r, &origin, NULL, &error, &again) == NEAP_OK);
            FUZZ_ASSERT(r.at == r.end && again->hash == pattern->hash);
        }
    }
    FUZZ_ASSERT(written[0].bytes.n == written[1].bytes.n);
    FUZZ_ASSERT(memcmp(written[0].bytes.items, written[1].bytes.items, written[0].bytes.n) == 0);
    np_pattern_free(again);
    np_array_free(NULL, &written[0].bytes);
    np_array_free(NULL, &written[1].bytes);
}

/* What was accepted met no end of memory, and meets none from here on. */
static void check_success(fuzz_memory *memory)
{
    FUZZ_ASSERT(!memory->failed);
    memory->n_left = SIZE_MAX;
}

static void check_failure(neap_status status, const fuzz_memory *memory, const neap_error *error)
{
    FUZZ_ASSERT((status == NEAP_NO_MEMORY) == memory->failed);
    FUZZ_ASSERT(status == NEAP_NO_MEMORY || status == NEAP_BAD_INPUT);
    FUZZ_ASSERT(error->text[0] != '\0' && !strchr(error->text, '\n'));
}

static void read_file(const uint8_t *data, size_t n, fuzz_memory *memory)
{
    np_pattern *patterns[4];
    size_t n_patterns = 0;
    uint64_t limit;
    neap_error error;
    neap_status status =
        np_plan_file_parse(data, n, "fuzz", &origin, &memory->hook, &error, &limit, patterns, 4, &n_patterns);
    if (status == NEAP_OK) {
        check_success(memory);
    } else {
        FUZZ_ASSERT(n_patterns == 0);
        check_failure(status, memory, &error);
    }
    for (size_t i = 0; i < n_patterns; i++) {
        check_pattern(patterns[i]);
        np_pattern_free(patterns[i]);
    }
}

static void read_pattern(const uint8_t *data, size_t n, fuzz_memory *memory)
{
    np_plan_reader r = {.at = data, .end = data + n};
    np_pattern *pattern = NULL;
    neap_error error = {""};
    neap_status status = np_plan_get_pattern(&r, &origin, &memory->hook, &error, &pattern);
    if (status == NEAP_OK) {
        check_success(memory);
        check_pattern(pattern);
        np_pattern_free(pattern);
    } else {
        FUZZ_ASSERT(pattern == NULL);
        check_failure(status, memory, &error);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fuzz_memory memory;
    fuzz_memory_init(&memory, data, n);
    if (n > 0) {
        (data[0] == 'f' ? read_file : read_pattern)(data + 1, n - 1, &memory);
    }
    return 0;
}
