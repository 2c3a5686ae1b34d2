#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nets/data.h"
#include "testing.h"

enum { RECORD = 1 + NETS_PIXELS, RECORDS = 10000, N = 64 };

/* ---- a folder as CIFAR-10's is, made of holes but for a few records ---- */

typedef struct folder {
    char path[TEST_PATH_BYTES];
} folder;

static void file_path(const folder *f, int number, char path[TEST_PATH_BYTES + 32])
{
    (void)snprintf(path, TEST_PATH_BYTES + 32, "%s/data_batch_%d.bin", f->path, number);
}

static void resize(const folder *f, int number, long bytes)
{
    char path[TEST_PATH_BYTES + 32];
    file_path(f, number, path);
    FILE *file = fopen(path, "ab");
    ASSERT_TRUE(file != NULL);
    ASSERT_EQ(fclose(file), 0);
    ASSERT_EQ(truncate(path, bytes), 0);
}

static void put(const folder *f, int number, long offset, int byte)
{
    char path[TEST_PATH_BYTES + 32];
    file_path(f, number, path);
    FILE *file = fopen(path, "rb+");
    ASSERT_TRUE(file != NULL);
    ASSERT_EQ(fseek(file, offset, SEEK_SET), 0);
    ASSERT_EQ(fputc(byte, file), byte);
    ASSERT_EQ(fclose(file), 0);
}

static folder folder_make(void)
{
    folder f;
    test_temp_path(f.path, "cifar");
    ASSERT_EQ(mkdir(f.path, 0700), 0);
    for (int i = 1; i <= 5; i++) {
        resize(&f, i, (long)RECORD * RECORDS);
    }
    return f;
}

static void folder_remove(const folder *f)
{
    char path[TEST_PATH_BYTES + 32];
    for (int i = 1; i <= 5; i++) {
        file_path(f, i, path);
        (void)unlink(path);
    }
    (void)rmdir(f->path);
}

static void refuse(const folder *f, neap_status expected, const char *file, const char *why)
{
    nets_data data = {.n_records = 77};
    neap_error error = {""};
    ASSERT_STATUS(expected, nets_data_open(f->path, 1, &error, &data));
    ASSERT_CONTAINS(error.text, file);
    ASSERT_CONTAINS(error.text, why);
    ASSERT_STATUS(expected, nets_data_open(f->path, 1, NULL, &data));
    ASSERT_EQ(data.n_records, 77);
}

static void test_wrong_files_are_named(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES + 32];
    folder f = folder_make();
    resize(&f, 2, (long)RECORD * RECORDS - 1);
    refuse(&f, NEAP_BAD_INPUT, "data_batch_2.bin", "30,730,000 bytes");
    resize(&f, 2, (long)RECORD * RECORDS + 1);
    refuse(&f, NEAP_BAD_INPUT, "data_batch_2.bin", "30,730,000 bytes");
    resize(&f, 2, 0);
    refuse(&f, NEAP_BAD_INPUT, "data_batch_2.bin", "30,730,000 bytes");
    resize(&f, 2, (long)RECORD * RECORDS);
    put(&f, 3, (long)RECORD * 9999, 10);
    refuse(&f, NEAP_BAD_INPUT, "data_batch_3.bin", "label");
    put(&f, 3, (long)RECORD * 9999, 9);
    file_path(&f, 5, path);
    ASSERT_EQ(unlink(path), 0);
    refuse(&f, NEAP_IO, "data_batch_5.bin", "No such file");
    ASSERT_EQ(mkdir(path, 0700), 0);
    refuse(&f, NEAP_IO, "data_batch_5.bin", "directory");
    ASSERT_EQ(rmdir(path), 0);
    folder_remove(&f);
    refuse(&f, NEAP_IO, "data_batch_1.bin", "No such file");
}

/* ---- what a batch is ---- */

typedef struct batch {
    float x[N * NETS_PIXELS];
    int32_t labels[N];
} batch;

static batch a, b;

static void load(batch *to, const nets_data *data, uint64_t step)
{
    memset(to, 0xff, sizeof *to);
    nets_batch_args args = {.data = data, .step = step, .n = N, .x = to->x, .labels = to->labels};
    nets_batch_load(&args);
}

static void test_records_come_once_in_a_pass_in_another_order_each(void **state)
{
    (void)state;
    folder f = folder_make();
    put(&f, 1, 0, 3); /* one image has label 3, its first pixel white; all others are black and 0 */
    put(&f, 1, 1, 255);
    put(&f, 1, 2, 51);
    nets_data data;
    ASSERT_OK(nets_data_open(f.path, 1, NULL, &data));
    folder_remove(&f);
    ASSERT_EQ(data.n_records, 5 * RECORDS);

    uint64_t found[2] = {0};
    for (uint64_t pass = 0; pass < 2; pass++) {
        size_t n_found = 0;
        for (uint64_t i = pass * data.n_records; i < (pass + 1) * data.n_records; i++) {
            nets_batch_args args = {.data = &data, .step = i, .n = 1, .x = a.x, .labels = a.labels};
            nets_batch_load(&args);
            if (a.labels[0] == 3) {
                ASSERT_TRUE(a.x[0] == 2 && a.x[1] < 0 && a.x[1] > -1.3f && a.x[2] == -2);
                found[pass] = i % data.n_records;
                n_found++;
            }
            i += TEST_SANITIZED && n_found ? data.n_records : 0; /* there it is enough to find it */
        }
        ASSERT_EQ(n_found, 1);
    }
    ASSERT_NE(found[0], found[1]);
    nets_data_close(&data);
}

static void test_synthetic_images_follow_from_seed_and_step(void **state)
{
    (void)state;
    nets_data data, other;
    ASSERT_OK(nets_data_open(NULL, 1, NULL, &data));
    ASSERT_OK(nets_data_open(NULL, 2, NULL, &other));
    load(&a, &data, 5);
    load(&b, &data, 5);
    ASSERT_EQ(memcmp(&a, &b, sizeof a), 0);
    load(&b, &data, 6);
    ASSERT_NE(memcmp(&a, &b, sizeof a), 0);
    load(&b, &other, 5);
    ASSERT_NE(memcmp(&a, &b, sizeof a), 0);
    nets_data_close(&data);
    nets_data_close(&other);
}

/* Images of one class are nearer to each other than to those of other classes: there is something to learn. */
static void test_synthetic_images_can_be_told_apart(void **state)
{
    (void)state;
    nets_data data;
    ASSERT_OK(nets_data_open(NULL, 1, NULL, &data));
    load(&a, &data, 0);
    double distance[2] = {0};
    double n[2] = {0};
    for (size_t i = 0; i < N; i++) {
        ASSERT_TRUE(a.labels[i] >= 0 && a.labels[i] < NETS_CLASSES);
        for (size_t k = 0; k < i; k++) {
            size_t is_same = a.labels[i] == a.labels[k];
            for (size_t p = 0; p < NETS_PIXELS; p += 7) {
                double d = (double)(a.x[i * NETS_PIXELS + p] - a.x[k * NETS_PIXELS + p]);
                distance[is_same] += d * d;
            }
            n[is_same]++;
        }
    }
    ASSERT_TRUE(n[0] > 100 && n[1] > 100);
    ASSERT_TRUE(distance[1] / n[1] < 0.5 * distance[0] / n[0]);
    nets_data_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_files_are_named),
        cmocka_unit_test(test_records_come_once_in_a_pass_in_another_order_each),
        cmocka_unit_test(test_synthetic_images_follow_from_seed_and_step),
        cmocka_unit_test(test_synthetic_images_can_be_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
