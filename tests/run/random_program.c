#include "run/random_program.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/standin_device.h"
#include "run/random_actor.h"
#include "testing.h"

enum { MAX_THREADS = 3 };

static bool chance(np_rng *rng, uint32_t per_cent)
{
    return np_rng_below(rng, 100) < per_cent;
}

random_settings random_settings_make(uint64_t seed)
{
    np_rng rng = np_rng_make(seed ^ 0x5eed);
    random_settings s = {.seed = seed,
                         .is_sim = chance(&rng, 80),
                         .n_streams = chance(&rng, 50) ? 1 : 2 + (uint32_t)np_rng_below(&rng, 2),
                         .n_threads = chance(&rng, 3) ? 2 + (uint32_t)np_rng_below(&rng, 2) : 1,
                         .page_bytes = chance(&rng, 90) ? 4096 : 16384,
                         .plan_seconds = 0.002,
                         .learns_at_once = chance(&rng, 90),
                         .is_valid_each_event = chance(&rng, 3),
                         .is_valid_each_lap = chance(&rng, 30),
                         .all_words = chance(&rng, 6),
                         .watches_memory = chance(&rng, 15),
                         .is_plain = chance(&rng, 2),
                         .refines = chance(&rng, 10),
                         .uses_cache = chance(&rng, 4)};
    uint64_t limits = np_rng_below(&rng, 10);
    s.limit_share = limits < 3 ? 0.5 + 0.5 * np_rng_unit(&rng) : 0;
    s.limit_bytes_share = limits >= 3 && limits < 5 ? 0.5 + 0.5 * np_rng_unit(&rng) : 0;
    s.memory_share = chance(&rng, 15) ? 0.2 + np_rng_unit(&rng) : 0;
    s.builds = chance(&rng, 40);
    return s;
}

/* ---- the device ---- */

typedef struct program {
    const random_settings *settings;
    test_memory memory;
    np_device *raw;
    np_device *faulty; /* the same, where there are faults */
    neap_device *device;
    shadow_report report;
    shadow_streams streams; /* of what the actors share */
    shadow_block shared[ACTOR_SHARED];
    actor *actors;
    uint32_t peak_pages;
    char cache[TEST_PATH_BYTES]; /* folder of plans, or empty */
} program;

static void log_line(void *user, neap_log_level level, const char *line)
{
    (void)user;
    (void)fprintf(stderr, "[%d] %s\n", (int)level, line);
}

static neap_status open_device(program *p)
{
    const random_settings *s = p->settings;
    uint64_t needed = (uint64_t)p->peak_pages * s->page_bytes;
    uint64_t memory_bytes = s->memory_share > 0 ? (uint64_t)(s->memory_share * (double)needed) : needed * 64;
    neap_device_options options = {.mode = s->is_plain ? NEAP_MODE_PLAIN : NEAP_MODE_PLAN,
                                   .limit_share = s->limit_share,
                                   .limit = (uint64_t)(s->limit_bytes_share * (double)needed),
                                   .min_block = s->page_bytes,
                                   .plan_seconds = s->plan_seconds,
                                   .plan_cache = p->cache[0] ? p->cache : NULL,
                                   .refinements = s->refines ? 4 : UINT32_MAX,
                                   .seed = s->seed,
                                   .log = s->is_loud ? log_line : NULL,
                                   .log_level = NEAP_LOG_DEBUG};
    neap_error error = {""};
    char name[120];
    neap_status status;
    memory_bytes = memory_bytes > 16 * s->page_bytes ? memory_bytes : 16 * s->page_bytes;
    (void)snprintf(name, sizeof name, "%s:page=%llu,memory=%llu,streams=%u,link=%s",
                   s->is_cuda  ? "cuda"
                   : s->is_sim ? "sim"
                               : "cpu",
                   (unsigned long long)s->page_bytes, (unsigned long long)memory_bytes, s->n_streams,
                   s->is_sim ? "4GB/s" : "50GB/s");
    if (s->is_loud) {
        (void)fprintf(stderr, "%s limit %llu share %g\n", name, (unsigned long long)options.limit, s->limit_share);
    }
    status = np_device_open(name, s->watches_memory ? &p->memory.hook : NULL, &error, &p->raw);
    if (status == NEAP_OK && s->is_cuda) {
        p->raw = standin_wrap(p->raw);
    }
    if (status == NEAP_OK && s->faults.calls) {
        p->raw = p->faulty = faulty_wrap(p->raw);
    }
    if (status == NEAP_OK) {
        status = np_manager_open(p->raw, &options, &error, &p->device);
    }
    if (status != NEAP_OK) {
        if (!s->memory_fails_at || status != NEAP_NO_MEMORY) {
            shadow_say(&p->report, "%s could not be opened: %s", name, error.text);
        }
        return status;
    }
    p->device->learner.learns_at_once = s->learns_at_once;
    p->device->margin = s->margin;
    p->device->packing = s->builds ? NP_PACK_ALL : p->device->packing;
    if (s->is_beneath && s->beneath_from == 0) {
        np_beneath_begin(p->device, s->margin, s->overhead);
    }
    return NEAP_OK;
}

/* ---- threads ---- */

static void share_blocks(program *p)
{
    shadow_streams_init(&p->streams, p->device, &p->report, p->settings->n_streams, 1u << 30);
    for (int i = 0; i < ACTOR_SHARED; i++) {
        neap_status status =
            shadow_malloc(&p->streams, p->settings->page_bytes * (uint64_t)(2 * i + 1) - 100u, &p->shared[i]);
        if (status == NEAP_OK) {
            status = shadow_host_write(&p->streams, &p->shared[i], true);
        }
        if (status != NEAP_OK) {
            shadow_say(&p->report, "a shared block: %s", neap_status_name(status));
        }
    }
}

static void *run_actor(void *user)
{
    actor_run(user);
    return NULL;
}

/* What failed for a fault will not always; what has no room never will. */
static neap_status retry(void *user, neap_status status)
{
    actor *a = user;
    bool is_hopeless = status == NEAP_DEVICE_FULL && a->settings->memory_share > 0;
    a->n_failed++;
    if (a->settings->memory_fails_at && a->n_failed >= a->settings->n_memory_fails) {
        (void)pthread_mutex_lock(&a->memory->lock);
        a->memory->fail_at = 0;
        (void)pthread_mutex_unlock(&a->memory->lock);
    }
    return is_hopeless ? status : NEAP_OK;
}

static void run_actors(program *p)
{
    uint32_t n = p->settings->n_threads;
    pthread_t threads[MAX_THREADS];
    if (n > 1) {
        share_blocks(p);
    }
    if (p->faulty) {
        faulty_set(p->faulty, &p->settings->faults);
    }
    for (uint32_t i = 0; i < n; i++) {
        actor *a = &p->actors[i];
        a->device = p->device;
        a->report = &p->report;
        a->has_shared = n > 1;
        memcpy(a->shared, p->shared, sizeof a->shared);
        shadow_streams_init(&a->streams, p->device, &p->report, p->settings->n_streams, 1 + (i << 20));
        a->memory = &p->memory;
        if (p->settings->tries_again) {
            a->streams.retry = retry;
            a->streams.retry_user = a;
        }
    }
    if (n == 1) {
        actor_run(&p->actors[0]);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        ASSERT_EQ(pthread_create(&threads[i], NULL, run_actor, &p->actors[i]), 0);
    }
    for (uint32_t i = 0; i < n; i++) {
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
    }
}

/* ---- the whole ---- */

static void judge(program *p, random_outcome *outcome)
{
    neap_stats stats;
    neap_get_stats(p->device, &stats);
    outcome->n_events += stats.n_events;
    outcome->has_planned |= stats.n_iterations > 0;
    outcome->has_departed |= stats.n_departures > 0;
    outcome->has_loaded |= stats.plan_was_loaded;
    outcome->n_late += p->device->n_late;
    outcome->n_visits += p->device->stats.n_visits;
    for (uint32_t i = 0; i < p->settings->n_threads; i++) {
        const actor *a = &p->actors[i];
        outcome->has_swapped |= a->has_swapped;
        outcome->has_resumed |= a->has_resumed;
        outcome->has_several |= a->has_several;
        outcome->n_full += a->n_full;
        outcome->n_blurred += a->n_blurred;
        outcome->n_home += a->n_home;
        outcome->n_strays += a->n_strays;
        outcome->n_failed += a->n_failed;
    }
    if (p->faulty) {
        for (int i = 0; i < FAULTY_N_CALLS; i++) {
            outcome->n_faults += faulty_n_failed(p->faulty, (faulty_call)i);
        }
    }
}

static void check_memory(program *p)
{
    if (p->memory.n_misuses > 0) {
        shadow_say(&p->report, "host memory was misused: %s", p->memory.misuse);
    } else if (p->memory.live_blocks > 0) {
        shadow_say(&p->report, "%zu blocks of host memory were not freed", p->memory.live_blocks);
    }
}

static void run_once(program *p, random_outcome *outcome)
{
    const random_settings *settings = p->settings;
    test_memory_init(&p->memory);
    p->memory.fail_at = settings->memory_fails_at;
    p->memory.fail_from_then = settings->n_memory_fails > 0;
    p->peak_pages = 0;
    for (uint32_t i = 0; i < settings->n_threads; i++) {
        actor_make(&p->actors[i], settings, settings->seed + i * 1000003u);
        p->peak_pages += actor_peak_pages(&p->actors[i]);
    }
    if (open_device(p) == NEAP_OK) {
        run_actors(p);
        judge(p, outcome);
        neap_close(p->device);
    }
    check_memory(p);
    outcome->n_memory_calls += p->memory.n_calls;
    outcome->n_memory_fails += p->memory.n_failed;
    (void)pthread_mutex_destroy(&p->memory.lock);
}

/* The folder and the plans in it, whatever their names. */
static void remove_cache(const char *folder)
{
    DIR *files = opendir(folder);
    for (struct dirent *file = files ? readdir(files) : NULL; file; file = readdir(files)) {
        char path[TEST_PATH_BYTES + 256];
        if (file->d_name[0] != '.') {
            (void)snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
            (void)unlink(path);
        }
    }
    if (files) {
        (void)closedir(files);
    }
    (void)rmdir(folder);
}

void random_program_run(const random_settings *settings, random_outcome *outcome)
{
    program p = {.settings = settings};
    *outcome = (random_outcome){0};
    shadow_report_init(&p.report, settings->all_words);
    p.actors = calloc(settings->n_threads, sizeof *p.actors);
    ASSERT_TRUE(p.actors);
    if (settings->uses_cache) {
        test_temp_path(p.cache, "random-plans");
        (void)mkdir(p.cache, 0700);
    }
    run_once(&p, outcome);
    if (settings->uses_cache) {
        if (!atomic_load(&p.report.is_bad)) {
            run_once(&p, outcome);
        }
        remove_cache(p.cache);
    }
    outcome->is_good = !atomic_load(&p.report.is_bad);
    (void)snprintf(outcome->text, sizeof outcome->text, "%s", p.report.text);
    free(p.actors);
    shadow_report_free(&p.report);
}
