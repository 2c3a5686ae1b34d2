#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint32_t test_rounds(uint32_t few, uint32_t many)
{
    const char *soak = getenv("NEAP_SOAK");
    return soak && *soak ? many : few;
}

uint64_t test_cpu_ns(void)
{
    struct timespec time;
    ASSERT_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time), 0);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void test_retried(const char *what, int n_tries)
{
    (void)printf("[  RETRIED ] %s: try %d of %d\n", what, n_tries, TEST_TRIES);
    (void)fflush(stdout);
}

/* ---------------------------------------------------------------- assertions ---- */

void test_fail(const char *file, int line, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("%s\n", text);
    _fail(file, line);
    abort(); /* not reached: _fail leaves by longjmp */
}

void test_fail_compare(const char *file, int line, const char *text_a, const char *relation, const char *text_b,
                       test_integer a, test_integer b)
{
    test_fail(file, line, "%s %s %s\n  is false: %s%llu %s %s%llu", text_a, relation, text_b, a.negative ? "-" : "",
              a.magnitude, relation, b.negative ? "-" : "", b.magnitude);
}

void test_status(const char *file, int line, const char *call, neap_status expected, neap_status actual)
{
    if (expected != actual) {
        test_fail(file, line, "%s\n  gave %s, not %s", call, neap_status_name(actual), neap_status_name(expected));
    }
}

void test_strings(const char *file, int line, const char *text_a, const char *a, bool part, const char *text_b,
                  const char *b)
{
    bool good = a && b && (part ? strstr(a, b) != NULL : strcmp(a, b) == 0);
    if (!good) {
        test_fail(file, line, "%s %s %s\n  is false:\n  \"%s\"\n  \"%s\"", text_a, part ? "contains" : "==", text_b,
                  a ? a : "(NULL)", b ? b : "(NULL)");
    }
}

void test_skip_reason(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_message("[  REASON  ] %s\n", text);
}

/* ---------------------------------------------------------------- host memory that can fail ---- */

#define BLOCK_LIVE 0x6e6561706c697665u
#define BLOCK_DEAD 0x6e65617064656164u
#define GUARD_BYTES 8
#define GUARD_VALUE 0xa5
#define FRESH_VALUE 0xcd
#define FREED_VALUE 0xdd

typedef union header { /* stands before each block */
    struct {
        uint64_t state; /* BLOCK_LIVE or BLOCK_DEAD */
        size_t bytes;
    } is;
    max_align_t align;
} header;

static void misuse(test_memory *memory, const char *what, size_t a, size_t b)
{
    if (memory->n_misuses++ == 0) {
        (void)snprintf(memory->misuse, sizeof memory->misuse, "%s (%zu, %zu)", what, a, b);
    }
}

static unsigned char *bytes_of(header *block)
{
    return (unsigned char *)(block + 1);
}

static void check_block(test_memory *memory, header *block, size_t old_bytes)
{
    if (block->is.state != BLOCK_LIVE) {
        misuse(memory, "a block that is not live", 0, 0);
        return;
    }
    if (block->is.bytes != old_bytes) {
        misuse(memory, "a wrong old_bytes: the block's size, what was said", block->is.bytes, old_bytes);
    }
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        if (bytes_of(block)[block->is.bytes + i] != GUARD_VALUE) {
            misuse(memory, "a write over a block's end: its size, how far", block->is.bytes, i);
            return;
        }
    }
}

static void drop_block(test_memory *memory, header *block)
{
    memory->live_blocks--;
    memory->live_bytes -= block->is.bytes;
    memset(bytes_of(block), FREED_VALUE, block->is.bytes);
    block->is.state = BLOCK_DEAD;
    free(block);
}

static header *make_block(test_memory *memory, size_t bytes)
{
    header *block;
    if (bytes > SIZE_MAX - sizeof *block - GUARD_BYTES) {
        return NULL;
    }
    block = malloc(sizeof *block + bytes + GUARD_BYTES);
    if (!block) {
        return NULL;
    }
    block->is.state = BLOCK_LIVE;
    block->is.bytes = bytes;
    memset(bytes_of(block), FRESH_VALUE, bytes);
    memset(bytes_of(block) + bytes, GUARD_VALUE, GUARD_BYTES);
    memory->live_blocks++;
    memory->live_bytes += bytes;
    if (memory->peak_bytes < memory->live_bytes) {
        memory->peak_bytes = memory->live_bytes;
    }
    return block;
}

static bool must_fail(test_memory *memory)
{
    bool fails;
    memory->n_calls++;
    fails = memory->fail_at != 0 &&
            (memory->n_calls == memory->fail_at || (memory->fail_from_then && memory->n_calls > memory->fail_at));
    memory->n_failed += fails;
    return fails;
}

static void *resize_locked(test_memory *memory, void *old, size_t old_bytes, size_t new_bytes)
{
    header *old_block = old ? (header *)old - 1 : NULL;
    header *block;

    if (old_block) {
        check_block(memory, old_block, old_bytes);
        if (old_block->is.state != BLOCK_LIVE) {
            return NULL;
        }
    } else if (old_bytes != 0 || new_bytes == 0) {
        misuse(memory, "no block, but a size, or no size: old, new", old_bytes, new_bytes);
    }
    if (new_bytes == 0) {
        if (old_block) {
            drop_block(memory, old_block);
        }
        return NULL;
    }
    block = must_fail(memory) ? NULL : make_block(memory, new_bytes);
    if (!block) {
        return NULL;
    }
    if (old_block) {
        memcpy(bytes_of(block), old, old_block->is.bytes < new_bytes ? old_block->is.bytes : new_bytes);
        drop_block(memory, old_block);
    }
    return bytes_of(block);
}

static void *resize(void *user, void *block, size_t old_bytes, size_t new_bytes)
{
    test_memory *memory = user;
    void *result;
    (void)pthread_mutex_lock(&memory->lock);
    result = resize_locked(memory, block, old_bytes, new_bytes);
    (void)pthread_mutex_unlock(&memory->lock);
    return result;
}

void test_memory_init(test_memory *memory)
{
    *memory = (test_memory){.hook = {resize, memory}};
    (void)pthread_mutex_init(&memory->lock, NULL);
}

void test_memory_finish_at(const char *file, int line, test_memory *memory)
{
    if (memory->n_misuses) {
        test_fail(file, line, "host memory was misused %zu times, first: %s", memory->n_misuses, memory->misuse);
    }
    if (memory->live_blocks) {
        test_fail(file, line, "%zu blocks of host memory were never freed (%zu bytes; fail_at was %zu)",
                  memory->live_blocks, memory->live_bytes, memory->fail_at);
    }
    (void)pthread_mutex_destroy(&memory->lock);
}

size_t test_memory_fail_each_at(const char *file, int line, test_action action, void *user)
{
    for (size_t n = 1;; n += n < 200 ? 1 : n / 8) {
        test_memory memory;
        neap_status status;
        neap_status expected;

        test_memory_init(&memory);
        memory.fail_at = n;
        status = action(&memory.hook, user);
        expected = memory.n_failed ? NEAP_NO_MEMORY : NEAP_OK;
        if (status != expected) {
            test_fail(file, line, "with allocation %zu of %zu failing the action gave %s, not %s", n, memory.n_calls,
                      neap_status_name(status), neap_status_name(expected));
        }
        test_memory_finish_at(file, line, &memory);
        if (!memory.n_failed) {
            return memory.n_calls;
        }
    }
}

/* ---------------------------------------------------------------- files ---- */

static void join(char path[TEST_PATH_BYTES], const char *folder, const char *name)
{
    int n = snprintf(path, TEST_PATH_BYTES, "%s/%s", folder, name);
    ASSERT_TRUE(n >= 0 && n < TEST_PATH_BYTES);
}

bool test_shared_path(char path[TEST_PATH_BYTES], const char *name)
{
    const char *folder = getenv("NEAP_SHARED");
    join(path, folder && *folder ? folder : NEAP_SOURCE_DIR "/../shared", name);
    if (access(path, R_OK) != 0) {
        test_skip_reason("shared/%s is not there (NEAP_SHARED names its folder)", name);
        return false;
    }
    return true;
}

void test_data_path(char path[TEST_PATH_BYTES], const char *name)
{
    join(path, NEAP_SOURCE_DIR "/tests/data", name);
}

void test_temp_path(char path[TEST_PATH_BYTES], const char *name)
{
    const char *folder = getenv("TMPDIR");
    int n =
        snprintf(path, TEST_PATH_BYTES, "%s/neap-%ld-%s", folder && *folder ? folder : "/tmp", (long)getpid(), name);
    ASSERT_TRUE(n >= 0 && n < TEST_PATH_BYTES);
}
