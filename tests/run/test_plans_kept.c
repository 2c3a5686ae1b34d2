/* test_plans_kept.c: plans from one device to the next through a folder: the second starts on the plan, one that is
 * not for it is refused in a line, and whatever is wrong with files does the program no harm. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/little_program.h"
#include "run/plan_file.h"
#include "testing.h"

#define SIM "sim:page=4KiB,memory=64MiB,link=4GB/s"

static char folder[TEST_PATH_BYTES];

/* ---- files ---- */

static void clear_folder(void)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        char path[2 * TEST_PATH_BYTES];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        (void)unlink(path);
    }
    if (dir) {
        (void)closedir(dir);
        (void)rmdir(folder);
    }
}

static size_t count_files(void)
{
    DIR *dir = opendir(folder);
    size_t n = 0;
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        n += entry->d_name[0] != '.';
    }
    if (dir) {
        (void)closedir(dir);
    }
    return n;
}

static int set_up(void **state)
{
    (void)state;
    test_temp_path(folder, "plans");
    clear_folder();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    clear_folder();
    return 0;
}

/* Where this device keeps its plans, and where it says that they come from. */
static void find_file(little_program *p, np_plan_origin *origin, char path[NP_PLAN_PATH_BYTES])
{
    neap_link link;
    neap_error error;
    ASSERT_OK(p->raw->api->link(p->raw, &link));
    ASSERT_OK(np_plan_origin_make(p->raw, &p->device->options, &link, &error, origin));
    ASSERT_OK(np_plan_file_name(origin, folder, &error, path));
}

static size_t read_file(const char *path, char *bytes, size_t capacity)
{
    FILE *file = fopen(path, "rb");
    size_t n;
    ASSERT_TRUE(file != NULL);
    n = fread(bytes, 1, capacity, file);
    ASSERT_LT(n, capacity);
    (void)fclose(file);
    return n;
}

static void write_file(const char *path, const char *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    ASSERT_TRUE(file != NULL);
    ASSERT_EQ(fwrite(bytes, 1, n, file), n);
    ASSERT_EQ(fclose(file), 0);
}

/* ---- a program that is run again ---- */

static little_options options_of(double share)
{
    return (little_options){.name = SIM, .device = {.limit_share = share, .plan_cache = folder}};
}

/* The first run: learns its plan, and leaves it behind. */
static void run_first(const little_options *options)
{
    little_program p;
    little_start(&p, options);
    ASSERT_FALSE(little_stats(&p).plan_was_loaded);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 5);
    ASSERT_EQ(count_files(), 1); /* not only when it is closed */
    little_end(&p);
    ASSERT_EQ(count_files(), 1);
}

/* The second: on the plan with the first event of its first iteration. */
static void run_second(const little_options *options)
{
    little_program p;
    neap_stats stats;
    little_start(&p, options);
    stats = little_stats(&p);
    ASSERT_TRUE(stats.plan_was_loaded);
    ASSERT_EQ(stats.n_patterns, 1);
    ASSERT_OK(shadow_malloc(&p.streams, p.options.act_bytes, &p.acts[0]));
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_OK(shadow_free(&p.streams, &p.acts[0]));
    little_laps(&p, 4);
    stats = little_stats(&p);
    ASSERT_EQ(stats.state, NEAP_STATE_RUN);
    ASSERT_EQ(stats.n_iterations, 3); /* and the last is about to be counted */
    ASSERT_TRUE(stats.limit == 0 || (stats.bytes_out > 0 && stats.held <= stats.limit));
    ASSERT_EQ(little_count(&p, "plan for"), 0); /* none was made */
    little_end(&p);
}

/* A run that must do without, and says why, or does not. */
static void run_without(const little_options *options, const char *why)
{
    little_program p;
    little_start(&p, options);
    ASSERT_FALSE(little_stats(&p).plan_was_loaded);
    ASSERT_EQ(little_count(&p, "no saved plan is used"), why ? 1 : 0);
    ASSERT_EQ(p.n_lines, why ? 1 : 0);
    ASSERT_TRUE(!why || little_count(&p, why) == 1);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 4);
    little_end(&p);
}

static void test_second_run(void **state)
{
    static const double shares[] = {0, 0.6};
    (void)state;
    for (int i = 0; i < 2; i++) {
        little_options options = options_of(shares[i]);
        clear_folder();
        run_first(&options);
        run_second(&options);
        run_second(&options);
    }
}

/* Weights that do not begin at pages: a kept plan is for blocks that begin where its own did, whether a limit was known
 * from the start or not. */
static void test_odd_sizes(void **state)
{
    static const double shares[] = {0, 0.6};
    (void)state;
    for (int i = 0; i < 2; i++) {
        little_options options = options_of(shares[i]);
        options.weight_bytes = 3 * LITTLE_PAGE + 1536;
        options.shares_pages = true;
        clear_folder();
        run_first(&options);
        run_second(&options);
    }
}

static void open_beneath(little_program *p, const little_options *options, uint32_t margin, double overhead)
{
    little_open(p, options);
    np_beneath_begin(p->device, margin, overhead);
    p->device->is_limit_late = true;
    little_begin(p);
}

/* Beneath a program the first plan is a quick one, which is not kept: a run that ends before the real one has come leaves
 * nothing behind. And a plan is for one margin and one overhead. */
static void test_beneath(void **state)
{
    little_options options = options_of(0.6);
    little_program p;
    (void)state;
    open_beneath(&p, &options, 1, 0);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 4);
    ASSERT_EQ(little_stats(&p).limit, 0);
    little_end(&p);
    ASSERT_EQ(count_files(), 0);

    open_beneath(&p, &options, 1, 0);
    for (int lap = 0; lap < 200 && little_stats(&p).bytes_out == 0; lap++) {
        little_laps(&p, 1);
    }
    ASSERT_GT(little_stats(&p).bytes_out, 0);
    little_laps(&p, 10);
    little_end(&p);
    ASSERT_EQ(count_files(), 1);

    open_beneath(&p, &options, 1, 0);
    ASSERT_TRUE(little_stats(&p).plan_was_loaded);
    little_laps(&p, 4);
    ASSERT_EQ(little_stats(&p).n_iterations, 3);
    ASSERT_GT(little_stats(&p).bytes_out, 0);
    little_end(&p);
    open_beneath(&p, &options, 2, 0);
    ASSERT_FALSE(little_stats(&p).plan_was_loaded);
    little_end(&p);
    open_beneath(&p, &options, 1, 0.01);
    ASSERT_FALSE(little_stats(&p).plan_was_loaded);
    little_end(&p);
}

/* A program of the same sizes that frees something in between: its weights begin elsewhere in their pages, and the plan is
 * not for them. */
static void test_other_begins(void **state)
{
    little_options options = options_of(0.6);
    (void)state;
    options.weight_bytes = 3 * LITTLE_PAGE + 1536;
    options.shares_pages = true;
    for (int is_second = 0; is_second < 2; is_second++) {
        little_program p;
        little_open(&p, &options);
        ASSERT_EQ(little_stats(&p).plan_was_loaded, is_second == 1);
        little_malloc(&p, 3 * LITTLE_PAGE + 512, &p.kept);
        if (is_second) {
            p.device->packing = NP_PACK_NONE; /* as where a limit in bytes holds */
        }
        little_begin(&p);
        ASSERT_EQ(p.weights[0].block->view.lead, is_second ? 0 : 512);
        (void)little_run_until_plan(&p, 10);
        little_laps(&p, 5);
        ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
        ASSERT_GT(little_stats(&p).bytes_out, 0);
        ASSERT_GE(little_count(&p, "a plan for"), 1);
        little_exec(&p, "look", 0, (shadow_use[]){{&p.kept, SHADOW_READ}}, 1);
        little_check(&p);
        little_free(&p, &p.kept);
        little_end(&p);
    }
}

static void test_environment(void **state)
{
    little_options options = options_of(0.6);
    (void)state;
    options.device.plan_cache = NULL;
    ASSERT_EQ(setenv("NEAP_PLAN_CACHE", folder, 1), 0);
    run_first(&options);
    run_second(&options);
    ASSERT_EQ(setenv("NEAP_PLAN_CACHE", "", 1), 0);
    run_without(&options, NULL);
    ASSERT_EQ(unsetenv("NEAP_PLAN_CACHE"), 0);
    run_without(&options, NULL);
}

/* A limit that was raised is kept with the plan: the second run need not find out again. */
static void test_raised_limit(void **state)
{
    little_options options = options_of(0.3);
    little_program p;
    uint64_t limit;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 4);
    ASSERT_EQ(little_count(&p, "load_min"), 1);
    limit = little_stats(&p).limit;
    little_end(&p);
    little_start(&p, &options);
    ASSERT_EQ(little_stats(&p).limit, limit);
    little_laps(&p, 3);
    ASSERT_EQ(little_stats(&p).limit, limit);
    ASSERT_LE(little_stats(&p).peak_held, limit);
    ASSERT_EQ(little_stats(&p).n_iterations, 2);
    ASSERT_EQ(p.n_lines, little_count(&p, "entered the plan"));
    little_end(&p);
}

/* Several patterns, and the plan that refining ended with. */
static void test_all_patterns(void **state)
{
    little_options options = options_of(0.6);
    little_program p;
    double overhead;
    (void)state;
    options.name = "sim:page=4KiB,memory=64MiB,link=600MB/s";
    options.device.refinements = 3;
    little_start(&p, &options);
    for (int lap = 0; lap < 150 || little_count(&p, "refined in") == 0; lap++) {
        little_lap(&p, (little_twist){lap % 19 == 18 ? LITTLE_FORWARD_ONLY : LITTLE_PLAIN, 0});
    }
    ASSERT_EQ(little_count(&p, "refined in 3 trials"), 1);
    little_laps(&p, 9); /* back to the fastest */
    ASSERT_EQ(little_stats(&p).n_patterns, 2);
    overhead = little_stats(&p).plan_overhead;
    little_end(&p);
    little_start(&p, &options);
    ASSERT_EQ(little_stats(&p).n_patterns, 2);
    little_lap(&p, (little_twist){LITTLE_FORWARD_ONLY, 0});
    little_laps(&p, 3);
    ASSERT_TRUE(little_stats(&p).plan_overhead == overhead);
    ASSERT_EQ(little_count(&p, "plan for"), 0);
    little_end(&p);
}

static bool is_trying_another(const neap_device *m)
{
    return m->refine.best && m->refine.best->program.overhead != m->pattern->program.overhead;
}

/* What is saved while a worse plan is being tried is the best so far. */
static void test_closed_while_refining(void **state)
{
    little_options options = options_of(0.6);
    little_program p;
    double overhead;
    (void)state;
    options.name = "sim:page=4KiB,memory=64MiB,link=600MB/s";
    options.device.refinements = 20;
    little_start(&p, &options);
    for (int lap = 0; lap < 300 && !is_trying_another(p.device); lap++) {
        little_laps(&p, 1);
    }
    ASSERT_TRUE(is_trying_another(p.device));
    overhead = p.device->refine.best->program.overhead;
    p.device->is_saved = false;
    little_end(&p);
    little_start(&p, &options);
    little_laps(&p, 1);
    ASSERT_TRUE(little_stats(&p).plan_overhead == overhead);
    little_end(&p);
}

/* ---- not for this one ---- */

/* With other settings another file is looked for; and what is found there but was made for others is refused. */
static void refuse_moved(const little_options *first, const little_options *second, const char *why)
{
    static char bytes[1 << 20];
    little_program p;
    np_plan_origin origin;
    char from[NP_PLAN_PATH_BYTES];
    char to[NP_PLAN_PATH_BYTES];
    size_t n;
    clear_folder();
    run_first(first);
    little_open(&p, first);
    find_file(&p, &origin, from);
    little_close(&p);
    n = read_file(from, bytes, sizeof bytes);
    run_without(second, NULL);
    ASSERT_EQ(count_files(), 2);
    little_open(&p, second);
    find_file(&p, &origin, to);
    little_close(&p);
    ASSERT_TRUE(strcmp(from, to) != 0);
    write_file(to, bytes, n);
    run_without(second, why);
    run_second(second); /* what it has learned took the place of what was refused */
    run_second(first);
}

static void test_other_settings(void **state)
{
    little_options first = options_of(0.6);
    little_options second = first;
    (void)state;
    second.device.limit_share = 0.7;
    refuse_moved(&first, &second, "limit");
    second = first;
    second.device.limit_share = 0;
    second.device.limit = 60 * LITTLE_PAGE;
    refuse_moved(&first, &second, "limit");
    second = first;
    second.name = "sim:page=4KiB,memory=32MiB,link=4GB/s";
    refuse_moved(&first, &second, "pages");
    second.name = "cpu:page=4KiB,memory=64MiB,link=4GB/s";
    refuse_moved(&first, &second, "cpu");
}

/* Another command line, another version, another machine: by the same name, or under it. */
static void test_other_origin(void **state)
{
    little_options options = options_of(0.6);
    np_plan_origin origin;
    char path[NP_PLAN_PATH_BYTES];
    neap_error error;
    (void)state;
    for (int i = 0; i < 4; i++) {
        static const char *const why[] = {"command line", "made by neap", "on the machine", "link"};
        little_program p;
        clear_folder();
        little_start(&p, &options);
        (void)little_run_until_plan(&p, 10);
        find_file(&p, &origin, path);
        origin.command += i == 0;
        origin.version[0] = i == 1 ? '9' : origin.version[0];
        origin.machine[0] = i == 2 ? '_' : origin.machine[0];
        origin.link.out_gbs *= i == 3 ? 3 : 1;
        p.device->options.plan_cache = NULL; /* it does not save its own */
        ASSERT_TRUE(mkdir(folder, 0777) == 0 || errno == EEXIST);
        ASSERT_OK(np_plan_file_save(path, &origin, little_stats(&p).limit,
                                    (const np_pattern *const *)p.device->patterns.items, p.device->patterns.n, NULL,
                                    &error));
        little_end(&p);
        run_without(&options, why[i]);
        run_second(&options);
    }
}

/* ---- files that are no plans ---- */

static void test_damaged(void **state)
{
    static char bytes[1 << 20];
    little_options options = options_of(0.6);
    little_program p;
    np_plan_origin origin;
    char path[NP_PLAN_PATH_BYTES];
    size_t n;
    (void)state;
    run_first(&options);
    little_open(&p, &options);
    find_file(&p, &origin, path);
    little_close(&p);
    n = read_file(path, bytes, sizeof bytes);
    write_file(path, bytes, n - 1);
    run_without(&options, "cut short");
    bytes[n / 2] ^= 4;
    write_file(path, bytes, n);
    run_without(&options, "damaged");
    write_file(path, "", 0);
    run_without(&options, "no plan file");
    run_second(&options);
}

/* A folder that cannot be written to, a file in its place: a line, and nothing else. */
static void test_unwritable(void **state)
{
    little_options options = options_of(0.6);
    little_program p;
    (void)state;
    options.device.plan_cache = "/dev/null/plans";
    little_start(&p, &options);
    ASSERT_EQ(p.n_lines, 0);
    (void)little_run_until_plan(&p, 10);
    little_forget(&p);
    little_laps(&p, 10);
    ASSERT_EQ(little_count(&p, "the plan was not saved: "), 1);
    ASSERT_EQ(little_count(&p, "/dev/null/plans"), 1);
    ASSERT_EQ(p.n_lines, 1);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_EQ(little_stats(&p).n_departures, 0);
    little_end(&p);
}

/* ---- a program that is not what it was ---- */

static void test_other_program(void **state)
{
    little_options options = options_of(0.6);
    (void)state;
    run_first(&options);
    for (int i = 0; i < 3; i++) { /* under the name of the first: other weights, other activations, another loop */
        little_options other = options;
        little_program p;
        other.weight_bytes = i == 0 ? 3 * LITTLE_PAGE : 0;
        other.act_bytes = i == 1 ? 7 * LITTLE_PAGE : 0;
        other.n_layers = i == 2 ? 7 : 6;
        little_start(&p, &other);
        ASSERT_TRUE(little_stats(&p).plan_was_loaded);
        little_laps(&p, 12);
        ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
        ASSERT_GE(little_stats(&p).n_iterations, 3);
        ASSERT_GE(little_count(&p, "a plan for"), 1);
        p.device->options.plan_cache = NULL; /* the file stays the first's */
        little_end(&p);
    }
}

/* An iteration across whose begin a block lives, of the size of the weight. */
static void cross(little_program *p, shadow_block *weight, shadow_block *crossing)
{
    shadow_block other;
    little_exec(p, "first", 0, &(shadow_use){crossing, SHADOW_UPDATE}, 1);
    ASSERT_OK(shadow_malloc(&p->streams, 6 * LITTLE_PAGE, &other));
    ASSERT_OK(shadow_free(&p->streams, crossing));
    little_exec(p, "second", 0, (shadow_use[]){{&other, SHADOW_WRITE}, {weight, SHADOW_UPDATE}}, weight ? 2 : 1);
    ASSERT_OK(shadow_malloc(&p->streams, 4 * LITTLE_PAGE, crossing));
    ASSERT_OK(shadow_free(&p->streams, &other));
}

/* Another program, by the same name, has no weight. The block across its first begin has the weight's number and size, and
 * was malloc'd as long ago as the one that crosses in the plan. It cannot stand for both: the plan is not entered. */
static void test_two_lives(void **state)
{
    little_options options = options_of(0);
    (void)state;
    for (int has_weight = 1; has_weight >= 0; has_weight--) {
        little_program p;
        shadow_block weight;
        shadow_block crossing;
        little_open(&p, &options);
        if (has_weight) {
            little_malloc(&p, 4 * LITTLE_PAGE, &weight);
        }
        little_malloc(&p, 4 * LITTLE_PAGE, &crossing);
        ASSERT_EQ(little_stats(&p).plan_was_loaded, !has_weight);
        if (!has_weight) { /* as if all were well, but for that */
            const np_program *program = &p.device->patterns.items[0]->program;
            const np_program_life *crosses = &program->lives.items[program->lives.n - 1];
            ASSERT_EQ(program->lives.items[0].id, crossing.block->id);
            ASSERT_TRUE(program->lives.items[0].persistent && program->lives.items[0].bytes == crossing.bytes);
            ASSERT_EQ(program->events.n - crosses->begin, 2); /* its malloc, and "make" */
            ASSERT_TRUE(crosses->end > program->events.n && crosses->bytes == crossing.bytes);
        }
        for (int i = 0; i < 20; i++) {
            cross(&p, has_weight ? &weight : NULL, &crossing);
            ASSERT_TRUE(has_weight || i > 0 || little_stats(&p).state != NEAP_STATE_RUN);
            little_check(&p);
        }
        ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN); /* on a plan of its own */
        ASSERT_EQ(little_stats(&p).n_departures, 0);
        little_free(&p, &crossing);
        if (has_weight) {
            little_free(&p, &weight);
        }
        little_close(&p);
    }
}

/* A file in which two weights are the same block: whoever wrote it, the plan is not entered, and another is learned. */
static void test_one_number_twice(void **state)
{
    static const double shares[] = {0, 0.6};
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        little_options options = options_of(shares[i]);
        little_program p;
        np_program *program;
        clear_folder();
        run_first(&options);
        little_open(&p, &options);
        program = &p.device->patterns.items[0]->program;
        ASSERT_TRUE(program->lives.items[0].persistent && program->lives.items[1].persistent);
        ASSERT_NE(program->lives.items[0].id, program->lives.items[1].id);
        program->lives.items[1].id = program->lives.items[0].id;
        p.device->is_saved = false;
        np_plans_save(p.device);
        little_close(&p);
        little_start(&p, &options);
        ASSERT_TRUE(little_stats(&p).plan_was_loaded);
        little_laps(&p, 1);
        ASSERT_NE(little_stats(&p).state, NEAP_STATE_RUN);
        (void)little_run_until_plan(&p, 20);
        little_laps(&p, 5);
        ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
        little_end(&p);
    }
}

/* Beneath a program the quick plan stays beside the one that replaces it. It is not kept, and what is kept is written
 * once, not with every iteration. */
static void test_quick_plan(void **state)
{
    little_options options = options_of(0.6);
    little_program p;
    (void)state;
    little_open(&p, &options);
    np_beneath_begin(p.device, 0, 0);
    p.device->is_limit_late = true;
    little_begin(&p);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 10);
    ASSERT_EQ(little_stats(&p).bytes_out, 0);
    ASSERT_EQ(count_files(), 0); /* the swap plan is still to come */
    for (int i = 0; i < 40 && count_files() == 0; i++) {
        little_laps(&p, 5);
    }
    ASSERT_GT(little_stats(&p).bytes_out, 0);
    ASSERT_EQ(little_stats(&p).n_patterns, 2);
    ASSERT_EQ(count_files(), 1);
    clear_folder();
    little_laps(&p, 10);
    ASSERT_EQ(count_files(), 0);
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_second_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_odd_sizes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_beneath, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_begins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_environment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_raised_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_patterns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_closed_while_refining, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_settings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_origin, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unwritable, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_program, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_quick_plan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_lives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_number_twice, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
