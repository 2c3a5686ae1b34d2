/* test_plan_origin.c: what makes an origin another one, and the names of files. */
#include <string.h>
#include <unistd.h>

#include "run/learned.h"
#include "testing.h"

typedef struct refusal {
    np_plan_origin here;
    const char *why;
} refusal;

static void test_other_origins(void **state)
{
    const np_plan_origin origin = learned_origin(LEARNED_PAGE);
    refusal cases[13];
    size_t n = 0;
    neap_error error;
    (void)state;
    for (size_t i = 0; i < 13; i++) {
        cases[i].here = origin;
    }
    strcpy(cases[n].here.version, "1.3.0");
    cases[n++].why = "made by neap 1.2.3, this is 1.3.0";
    strcpy(cases[n].here.machine, "ebb");
    cases[n++].why = "made on the machine tide, this is ebb";
    strcpy(cases[n].here.program, "/opt/infer");
    cases[n++].why = "made for the program /opt/train, this is /opt/infer";
    cases[n].here.command++;
    cases[n++].why = "made for another command line of this program";
    strcpy(cases[n].here.device, "sim");
    cases[n++].why = "made for the device cpu, this is sim";
    cases[n].here.page_bytes = 4096;
    cases[n++].why = "made for a device with pages of 1024 bytes, these have 4096";
    cases[n].here.n_pages = 5;
    cases[n++].why = "made for a device of 1048576 pages, this one has 5";
    cases[n].here.n_streams = 1;
    cases[n++].why = "made for a device with 3 streams, this one has 1";
    cases[n].here.limit = 99;
    cases[n++].why = "made for a limit of 0 bytes, this is 99";
    cases[n].here.min_block = 1024;
    cases[n++].why = "made for swaps of blocks from 512 bytes on, this is 1024";
    cases[n].here.seed = 8;
    cases[n++].why = "made for seed 7, this is 8";
    cases[n].here.limit_share = 0.5;
    cases[n++].why = "made for a limit of 0.6 of the peak load, this is 0.5";
    cases[n].here.link.in_gbs = 11;
    cases[n++].why = "made for a link of 25 GB/s out and 24 in, this one has 25 and 11";
    ASSERT_EQ(n, sizeof cases / sizeof *cases);
    for (size_t i = 0; i < n; i++) {
        ASSERT_STATUS(NEAP_BAD_INPUT, np_plan_origin_compare(&origin, &cases[i].here, &error));
        ASSERT_STR_EQ(error.text, cases[i].why);
    }
    ASSERT_OK(np_plan_origin_compare(&origin, &origin, &error));
}

/* Speeds are measured: what is like another is the same, and what is not known is not compared. */
static void test_like_links(void **state)
{
    np_plan_origin made = learned_origin(LEARNED_PAGE);
    np_plan_origin here = made;
    (void)state;
    here.link = (neap_link){13, 47, 1, 1000, 0};
    ASSERT_OK(np_plan_origin_compare(&made, &here, NULL));
    here.link = (neap_link){0};
    ASSERT_OK(np_plan_origin_compare(&made, &here, NULL));
    ASSERT_OK(np_plan_origin_compare(&here, &made, NULL));
    here.link = (neap_link){.out_gbs = 25};
    ASSERT_STATUS(NEAP_BAD_INPUT, np_plan_origin_compare(&made, &here, NULL));
}

static void test_this_process(void **state)
{
    neap_device_options options = {.limit = 1 << 30, .min_block = 1 << 20, .seed = 3};
    neap_link link = {1, 2, 3, 4, 0};
    np_plan_origin origin;
    np_plan_origin again;
    np_device *device;
    neap_error error;
    char host[256] = "";
    char path[NP_PLAN_PATH_BYTES];
    char other[NP_PLAN_PATH_BYTES];
    (void)state;
    ASSERT_OK(np_device_open("cpu:page=64KiB,memory=16MiB,streams=2", NULL, &error, &device));
    ASSERT_OK(np_plan_origin_make(device, &options, &link, &error, &origin));
    ASSERT_OK(np_plan_origin_make(device, &options, NULL, &error, &again));
    device->api->free(device);
    ASSERT_STR_EQ(origin.version, neap_version());
    ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
    ASSERT_STR_EQ(origin.machine, host);
    ASSERT_CONTAINS(origin.program, "/test_plan_origin");
    ASSERT_STR_EQ(origin.device, "cpu");
    ASSERT_EQ(origin.page_bytes, 64 << 10);
    ASSERT_EQ(origin.n_pages, 256);
    ASSERT_EQ(origin.n_streams, 2);
    ASSERT_EQ(origin.limit, 1 << 30);
    ASSERT_EQ(origin.min_block, 1 << 20);
    ASSERT_EQ(origin.seed, 3);
    ASSERT_OK(np_plan_origin_compare(&origin, &again, &error));
    ASSERT_OK(np_plan_file_name(&origin, "cache", &error, path));
    ASSERT_OK(np_plan_file_name(&again, "cache", &error, other));
    ASSERT_STR_EQ(path, other);
    ASSERT_EQ(strncmp(path, "cache/test_plan_origin-", 23), 0);
    ASSERT_CONTAINS(path, ".neap-plan");
}

static void test_names(void **state)
{
    const np_plan_origin origin = learned_origin(LEARNED_PAGE);
    np_plan_origin others[9];
    char first[NP_PLAN_PATH_BYTES];
    char path[NP_PLAN_PATH_BYTES];
    char folder[NP_PLAN_PATH_BYTES];
    neap_error error;
    (void)state;
    ASSERT_OK(np_plan_file_name(&origin, "/a", NULL, first));
    ASSERT_EQ(strlen(first), strlen("/a/train-.neap-plan") + 16);
    for (size_t i = 0; i < 9; i++) {
        others[i] = origin;
    }
    strcpy(others[0].machine, "ebb");
    strcpy(others[1].program, "/tmp/train");
    others[2].command++;
    strcpy(others[3].device, "sim");
    others[4].page_bytes *= 2;
    others[5].limit++;
    others[6].limit_share = 0.61;
    others[7].seed++;
    others[8].n_streams++;
    for (size_t i = 0; i < 9; i++) {
        ASSERT_OK(np_plan_file_name(&others[i], "/a", NULL, path));
        ASSERT_EQ(strncmp(path, "/a/train-", 9), 0);
        ASSERT_NE(strcmp(path, first), 0);
    }
    others[0] = origin;
    strcpy(others[0].version, "9");
    ASSERT_OK(np_plan_file_name(&others[0], "/a", NULL, path));
    ASSERT_STR_EQ(path, first);
    strcpy(others[0].program, "/x/.a b\n\xc3\xa4");
    ASSERT_OK(np_plan_file_name(&others[0], "/a", NULL, path));
    ASSERT_EQ(strncmp(path, "/a/_a_b___-", 11), 0);
    memset(folder, 'x', sizeof folder);
    folder[sizeof folder - 20] = '\0';
    ASSERT_STATUS(NEAP_TOO_LARGE, np_plan_file_name(&origin, folder, &error, path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_origins),
        cmocka_unit_test(test_like_links),
        cmocka_unit_test(test_this_process),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
