/* test_memfd.c: memory that is taken when committed and given back when released; addresses that need few mappings of
 * the kernel's. */
#include "device/memfd.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "device/device_tools.h"
#include "testing.h"

static uint64_t bytes_held(const np_memfd *memfd)
{
    struct stat facts;
    ASSERT_EQ(fstat(memfd->file, &facts), 0);
    return (uint64_t)facts.st_blocks * 512;
}

static void test_memory_is_held_while_committed(void **state)
{
    np_memfd memfd;
    (void)state;
    ASSERT_OK(np_memfd_open(&memfd, 65536));
    ASSERT_EQ(bytes_held(&memfd), 0);
    ASSERT_OK(np_memfd_commit(&memfd, 10, 4));
    ASSERT_EQ(bytes_held(&memfd), 4 * 65536);
    ASSERT_OK(np_memfd_commit(&memfd, 1000000, 1)); /* far away: what lies between costs nothing */
    ASSERT_OK(np_memfd_commit(&memfd, 5, 0));
    ASSERT_EQ(bytes_held(&memfd), 5 * 65536);
    np_memfd_release(&memfd, 11, 2);
    np_memfd_release(&memfd, 11, 0);
    ASSERT_EQ(bytes_held(&memfd), 3 * 65536);
    np_memfd_release(&memfd, 10, 1);
    np_memfd_release(&memfd, 13, 1);
    np_memfd_release(&memfd, 1000000, 1);
    ASSERT_EQ(bytes_held(&memfd), 0);
    np_memfd_close(&memfd);
}

static void test_large_pages_are_aligned(void **state)
{
    static const uint64_t page_bytes[] = {4096, 65536, 2 << 20, 64 << 20};
    (void)state;
    for (size_t i = 0; i < sizeof page_bytes / sizeof *page_bytes; i++) {
        np_memfd memfd;
        char *addresses[5];
        ASSERT_OK(np_memfd_open(&memfd, page_bytes[i]));
        for (uint64_t k = 0; k < 5; k++) {
            ASSERT_OK(np_memfd_reserve(&memfd, k + 1, &addresses[k]));
            ASSERT_EQ((uintptr_t)addresses[k] % page_bytes[i], 0);
            ASSERT_FALSE(device_is_readable(addresses[k]));
            ASSERT_FALSE(device_is_readable(addresses[k] + (k + 1) * page_bytes[i] - 1));
        }
        for (uint64_t k = 0; k < 5; k++) {
            np_memfd_unreserve(&memfd, addresses[k], k + 1);
        }
        np_memfd_close(&memfd);
    }
}

/* Lines of the kernel's list that lie within a range. */
static size_t n_mappings(const char *begin, const char *end)
{
    FILE *list = fopen("/proc/self/maps", "r");
    char line[512];
    size_t n = 0;
    if (!list) {
        SKIP("the system has no /proc/self/maps");
    }
    while (fgets(line, sizeof line, list)) {
        unsigned long long from, to;
        if (sscanf(line, "%llx-%llx", &from, &to) == 2) {
            n += from < (uintptr_t)end && to > (uintptr_t)begin;
        }
    }
    (void)fclose(list);
    return n;
}

static void test_neighbours_melt_together(void **state)
{
    np_memfd memfd;
    char *at;
    (void)state;
    ASSERT_OK(np_memfd_open(&memfd, 65536));
    ASSERT_OK(np_memfd_commit(&memfd, 0, 1000));
    ASSERT_OK(np_memfd_reserve(&memfd, 1000, &at));
    for (uint32_t i = 0; i < 1000; i++) { /* one by one, in no order of use */
        uint32_t page = i * 7 % 1000;
        ASSERT_OK(np_memfd_map(&memfd, at + page * (uint64_t)65536, page, 1));
    }
    ASSERT_LE(n_mappings(at, at + 65536000), 2);
    for (uint32_t i = 0; i < 1000; i++) {
        np_memfd_unmap(&memfd, at + i * (uint64_t)65536, 1);
    }
    ASSERT_LE(n_mappings(at, at + 65536000), 2);
    np_memfd_unreserve(&memfd, at, 1000);
    np_memfd_close(&memfd);
}

static void test_what_does_not_fit(void **state)
{
    np_memfd memfd;
    char *at = NULL;
    (void)state;
    ASSERT_OK(np_memfd_open(&memfd, 4096));
    ASSERT_STATUS(NEAP_NO_MEMORY, np_memfd_reserve(&memfd, UINT64_MAX / 2, &at));
    ASSERT_STATUS(NEAP_NO_MEMORY, np_memfd_reserve(&memfd, (uint64_t)1 << 50, &at));
    ASSERT_STATUS(NEAP_NO_MEMORY, np_memfd_reserve(&memfd, 0, &at));
    ASSERT_TRUE(at == NULL);
    np_memfd_close(&memfd);
}

/* A limit on files stands for a machine without memory. */
static void test_a_full_device(void **state)
{
    struct rlimit before;
    struct rlimit small;
    np_memfd memfd;
    char *at;
    (void)state;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){10 * 4096, before.rlim_max};
    ASSERT_OK(np_memfd_open(&memfd, 4096));
    ASSERT_TRUE(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    ASSERT_OK(np_memfd_commit(&memfd, 0, 10));
    ASSERT_STATUS(NEAP_DEVICE_FULL, np_memfd_commit(&memfd, 10, 1));
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    ASSERT_EQ(bytes_held(&memfd), 10 * 4096);
    ASSERT_OK(np_memfd_reserve(&memfd, 10, &at));
    ASSERT_OK(np_memfd_map(&memfd, at, 0, 10));
    memset(at, 1, 10 * 4096); /* what was committed is there */
    np_memfd_unreserve(&memfd, at, 10);
    np_memfd_close(&memfd);
}

#if !TEST_SANITIZED /* a sanitizer needs mappings of its own */
/* The kernel has room for so many mappings and no more. */
static void test_a_full_table(void **state)
{
    enum { MOST = 200000, AREA = 16 };
    np_memfd memfd;
    neap_status status = NEAP_OK;
    uint64_t n = AREA;
    char *at;
    (void)state;
    ASSERT_OK(np_memfd_open(&memfd, 4096));
    ASSERT_OK(np_memfd_commit(&memfd, 0, AREA));
    ASSERT_OK(np_memfd_reserve(&memfd, MOST, &at));
    ASSERT_OK(np_memfd_map(&memfd, at, 0, AREA)); /* one mapping */
    for (int i = 0; i < AREA; i++) {
        at[i * 4096] = (char)i;
    }
    for (; n < MOST && status == NEAP_OK; n++) { /* and one for each of these: they do not follow each other */
        status = np_memfd_map(&memfd, at + n * 4096, 3, 1);
    }
    if (n < MOST) {
        neap_status again = np_memfd_map(&memfd, at + 8 * 4096, 5, 1); /* would be two more, in the midst of one */
        bool is_readable = device_is_readable(at + (n - 1) * 4096);
        char last = at[(n - 2) * 4096];
        char middle = at[8 * 4096];
        char next = at[9 * 4096];
        np_memfd_unmap(&memfd, at + AREA * 4096, MOST - AREA); /* room for the rest of this test */
        ASSERT_STATUS(NEAP_NO_MEMORY, status);
        ASSERT_FALSE(is_readable);
        ASSERT_EQ(last, 3);
        ASSERT_STATUS(NEAP_NO_MEMORY, again);
        ASSERT_EQ(middle, 8);
        ASSERT_EQ(next, 9);
        ASSERT_OK(np_memfd_map(&memfd, at + 8 * 4096, 5, 1));
        ASSERT_EQ(at[8 * 4096], 5);
    }
    np_memfd_unreserve(&memfd, at, MOST);
    np_memfd_close(&memfd);
    if (n == MOST) {
        SKIP("the kernel has room for more than %d mappings", (int)MOST);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_held_while_committed),
        cmocka_unit_test(test_large_pages_are_aligned),
        cmocka_unit_test(test_neighbours_melt_together),
        cmocka_unit_test(test_what_does_not_fit),
        cmocka_unit_test(test_a_full_device),
#if !TEST_SANITIZED
        cmocka_unit_test(test_a_full_table),
#endif
    };
    return cmocka_run_group_tests_name("device/memfd", tests, NULL, NULL);
}
