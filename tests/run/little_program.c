#include "run/little_program.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "device/device_tools.h"
#include "device/standin_device.h"
#include "testing.h"

/* ---- the log ---- */

static void note_line(void *user, neap_log_level level, const char *line)
{
    little_program *p = user;
    (void)pthread_mutex_lock(&p->lock);
    if (p->n_lines < LITTLE_LINES) {
        p->lines[p->n_lines].level = level;
        (void)snprintf(p->lines[p->n_lines].text, sizeof p->lines->text, "%s", line);
    }
    p->n_lines++;
    (void)pthread_mutex_unlock(&p->lock);
}

size_t little_count(little_program *p, const char *part)
{
    size_t n = 0;
    (void)pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->n_lines && i < LITTLE_LINES; i++) {
        n += strstr(p->lines[i].text, part) != NULL;
    }
    (void)pthread_mutex_unlock(&p->lock);
    return n;
}

void little_forget(little_program *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->n_lines = 0;
    (void)pthread_mutex_unlock(&p->lock);
}

/* ---- opening and closing ---- */

static void fill_in(little_program *p)
{
    little_options *o = &p->options;
    o->name = o->name ? o->name : "sim:page=4KiB,memory=64MiB,link=4GB/s";
    o->n_layers = o->n_layers ? o->n_layers : 6;
    o->weight_bytes = o->weight_bytes ? o->weight_bytes : 2 * LITTLE_PAGE;
    o->act_bytes = o->act_bytes ? o->act_bytes : 8 * LITTLE_PAGE;
    o->exec_ns = o->exec_ns ? o->exec_ns : 20000;
    o->device.log = note_line;
    o->device.log_user = p;
    o->device.log_level = o->device.log_level ? o->device.log_level : NEAP_LOG_DEBUG;
    o->device.min_block = o->device.min_block ? o->device.min_block : LITTLE_PAGE;
    o->device.plan_seconds = o->device.plan_seconds > 0 ? o->device.plan_seconds : 0.2;
    o->device.refinements = o->device.refinements ? o->device.refinements : UINT_MAX;
    ASSERT_LE(o->n_layers, LITTLE_LAYERS);
}

void little_open(little_program *p, const little_options *options)
{
    static const little_options none;
    neap_error error = {{0}};
    memset(p, 0, sizeof *p);
    p->options = options ? *options : none;
    (void)pthread_mutex_init(&p->lock, NULL);
    fill_in(p);
    if (strncmp(p->options.name, "cuda", 4) == 0) {
        standin_use(LITTLE_PAGE);
    }
    p->raw = device_open(p->options.name, p->options.memory);
    if (p->options.is_faulty) {
        p->raw = p->faulty = faulty_wrap(p->raw);
    }
    ASSERT_OK(np_manager_open(p->raw, &p->options.device, &error, &p->device));
    p->device->learner.learns_at_once = !p->options.has_planner_thread;
    p->device->packing = p->options.shares_pages ? NP_PACK_ALL : p->device->packing;
    shadow_report_init(&p->report, true);
    shadow_streams_init(&p->streams, p->device, &p->report, p->raw->n_streams, 1);
}

void little_begin(little_program *p)
{
    for (uint32_t i = 0; i < p->options.n_layers; i++) {
        ASSERT_OK(shadow_malloc(&p->streams, p->options.weight_bytes, &p->weights[i]));
        p->weights_at[i] = neap_data(p->weights[i].block);
        ASSERT_OK(shadow_host_write(&p->streams, &p->weights[i], true));
    }
}

void little_start(little_program *p, const little_options *options)
{
    little_open(p, options);
    little_begin(p);
}

void little_check(little_program *p)
{
    const char *flaw;
    const char *problem;
    ASSERT_OK(shadow_sync(&p->streams));
    if (atomic_load(&p->report.is_bad)) {
        test_fail(__FILE__, __LINE__, "%s", p->report.text);
    }
    for (uint32_t i = 0; i < p->options.n_layers; i++) {
        ASSERT_TRUE(!p->weights[i].block || neap_data(p->weights[i].block) == p->weights_at[i]);
    }
    flaw = np_manager_find_flaw(p->device);
    problem = p->raw->api->problem ? p->raw->api->problem(p->raw) : NULL;
    if (flaw || problem) {
        test_fail(__FILE__, __LINE__, "%s", flaw ? flaw : problem);
    }
}

void little_close(little_program *p)
{
    little_check(p);
    neap_close(p->device);
    if (atomic_load(&p->report.is_bad)) {
        test_fail(__FILE__, __LINE__, "%s", p->report.text);
    }
    shadow_report_free(&p->report);
    (void)pthread_mutex_destroy(&p->lock);
}

void little_end(little_program *p)
{
    for (uint32_t i = 0; i < p->options.n_layers; i++) {
        ASSERT_OK(shadow_host_read(&p->streams, &p->weights[i], 0, p->weights[i].bytes));
    }
    little_check(p);
    for (uint32_t i = 0; i < p->options.n_layers; i++) {
        ASSERT_OK(shadow_free(&p->streams, &p->weights[i]));
    }
    if (p->kept.block) {
        little_free(p, &p->kept);
    }
    if (p->crossing[0].block) {
        little_free(p, &p->crossing[0]);
    }
    ASSERT_EQ(little_stats(p).live, 0);
    little_close(p);
}

neap_stats little_stats(little_program *p)
{
    neap_stats stats;
    neap_get_stats(p->device, &stats);
    return stats;
}

/* ---- events ---- */

static void look(little_program *p)
{
    if (p->after_event) {
        p->after_event(p);
    }
}

static void take(little_program *p, uint64_t bytes, shadow_block *block)
{
    ASSERT_OK(shadow_malloc(&p->streams, bytes, block));
    look(p);
}

static void give(little_program *p, shadow_block *block)
{
    ASSERT_OK(shadow_free(&p->streams, block));
    look(p);
}

void little_exec(little_program *p, const char *name, unsigned stream, const shadow_use *uses, uint32_t n_uses)
{
    shadow_use changed[SHADOW_USES];
    neap_status status;
    if (n_uses > 0) {
        memcpy(changed, uses, n_uses * sizeof *uses);
    }
    if (p->change_uses) {
        n_uses = p->change_uses(p, changed, n_uses);
    }
    status = shadow_exec(&p->streams, name, stream, p->options.exec_ns, changed, n_uses);
    if (p->device->visit.is_torn && status == NEAP_DEVICE_FAILED) { /* there is nothing right to go on with */
        p->n_refused++;
    } else {
        ASSERT_OK(status);
    }
    look(p);
}

void little_malloc(little_program *p, uint64_t bytes, shadow_block *block)
{
    take(p, bytes, block);
    little_exec(p, "make", 0, (shadow_use[]){{block, SHADOW_WRITE}}, 1);
}

void little_free(little_program *p, shadow_block *block)
{
    little_exec(p, "look", 0, (shadow_use[]){{block, SHADOW_READ}}, 1);
    give(p, block);
}

/* ---- an iteration ---- */

static bool is_here(little_twist twist, little_twist_kind kind, uint32_t layer)
{
    return twist.kind == kind && twist.layer == layer;
}

static void extra(little_program *p)
{
    shadow_block block;
    little_malloc(p, p->options.act_bytes / 2, &block);
    little_free(p, &block);
}

static void forward(little_program *p, little_twist twist, uint32_t i)
{
    shadow_use uses[4] = {{&p->acts[i], SHADOW_READ}, {&p->acts[i + 1], SHADOW_WRITE}, {&p->weights[i], SHADOW_READ}};
    uint32_t n = is_here(twist, LITTLE_OTHER_USES, i) ? 2 : 3;
    take(p, p->options.act_bytes + (is_here(twist, LITTLE_OTHER_SIZE, i) ? LITTLE_PAGE : 0), &p->acts[i + 1]);
    if (is_here(twist, LITTLE_EXTRA_MALLOC, i)) {
        extra(p);
    }
    if (is_here(twist, LITTLE_KEPT_MALLOC, i)) {
        little_malloc(p, p->options.act_bytes, &p->kept);
    }
    if (is_here(twist, LITTLE_KEPT_USE, i)) {
        uses[n++] = (shadow_use){&p->kept, SHADOW_UPDATE};
    }
    if (is_here(twist, LITTLE_OTHER_CHANGE, i)) {
        uses[0].kind = SHADOW_UPDATE;
    }
    little_exec(p, is_here(twist, LITTLE_OTHER_WORK, i) ? "sideways" : "forward",
                is_here(twist, LITTLE_OTHER_STREAM, i) || is_here(twist, LITTLE_OTHER_CHANGE, i) ? 1 : 0, uses, n);
    if (is_here(twist, LITTLE_EXTRA_WORK, i)) {
        little_exec(p, "log", 0, (shadow_use[]){{&p->acts[i + 1], SHADOW_READ}}, 1);
    }
}

/* Made in the second layer's forward pass, read through the backward pass and in the next iteration's second layer, and freed
 * some layers later. */
static void cross(little_program *p, uint32_t i)
{
    shadow_block *before = &p->crossing[0];
    shadow_block *now = &p->crossing[1];
    if (i == 1) {
        take(p, p->options.act_bytes, now);
        little_exec(p, "cross", 0, (shadow_use[]){{now, SHADOW_WRITE}, {before, SHADOW_READ}}, before->block ? 2 : 1);
    }
    if (i == p->options.n_layers - 2) {
        if (before->block) {
            little_exec(p, "crossed", 0, (shadow_use[]){{now, SHADOW_READ}, {before, SHADOW_READ}}, 2);
            give(p, before);
        }
        *before = *now;
        *now = (shadow_block){0};
    }
}

static void backward(little_program *p, little_twist twist, uint32_t i)
{
    bool is_early = is_here(twist, LITTLE_EARLY_FREE, i);
    shadow_use uses[6] = {{&p->weights[i], SHADOW_UPDATE}, {&p->gradient, SHADOW_READ}, {&p->acts[i], SHADOW_READ}};
    uint32_t n = 3;
    shadow_block next;
    take(p, p->options.act_bytes, &next);
    little_exec(p, "backward", 0,
                (shadow_use[]){{&p->gradient, SHADOW_READ}, {&p->acts[i + 1], SHADOW_READ}, {&next, SHADOW_WRITE}}, 3);
    if (is_early) {
        give(p, &p->acts[i + 1]);
    }
    if (is_here(twist, LITTLE_OTHER_BLOCK, i)) {
        uses[n++] = (shadow_use){&p->acts[i - 2], SHADOW_READ};
    }
    if (twist.kind == LITTLE_OTHER_BLOCKS && i >= 2) {
        uses[n++] = (shadow_use){&p->acts[i - 2], SHADOW_READ};
        uses[n++] = (shadow_use){&p->weights[i - 2], SHADOW_READ};
    }
    if (twist.kind == LITTLE_OTHER_BLOCKS && i + 2 < p->options.n_layers) {
        uses[n++] = (shadow_use){&p->weights[i + 2], SHADOW_READ};
    }
    little_exec(p, "update", p->options.update_stream, uses, n);
    if (p->crossing[0].block) {
        little_exec(p, "still", 0, (shadow_use[]){{&p->crossing[0], SHADOW_READ}}, 1);
    }
    if (!is_early && !is_here(twist, LITTLE_LATE_FREE, i)) {
        give(p, &p->acts[i + 1]);
    }
    give(p, &p->gradient);
    p->gradient = next;
}

static void free_acts(little_program *p)
{
    for (uint32_t i = LITTLE_LAYERS + 1; i-- > 0;) {
        if (p->acts[i].block) {
            give(p, &p->acts[i]);
        }
    }
}

/* The rest of an iteration after its forward pass. */
static void train(little_program *p, little_twist twist)
{
    uint32_t n = p->options.n_layers;
    take(p, p->options.act_bytes, &p->gradient);
    little_exec(p, "loss", 0, (shadow_use[]){{&p->acts[n], SHADOW_READ}, {&p->gradient, SHADOW_WRITE}}, 2);
    for (uint32_t i = n; i-- > 0;) {
        backward(p, twist, i);
    }
    give(p, &p->gradient);
}

void little_lap(little_program *p, little_twist twist)
{
    take(p, p->options.act_bytes, &p->acts[0]);
    little_exec(p, "input", 0, (shadow_use[]){{&p->acts[0], SHADOW_WRITE}}, 1);
    for (uint32_t i = 0; i < p->options.n_layers; i++) {
        forward(p, twist, i);
        if (p->options.has_crossing) {
            cross(p, i);
        }
        if (twist.kind == LITTLE_FORWARD_ONLY) {
            give(p, &p->acts[i]);
        }
        if (is_here(twist, LITTLE_CUT_SHORT, i)) {
            break;
        }
    }
    if (twist.kind != LITTLE_CUT_SHORT && twist.kind != LITTLE_FORWARD_ONLY) {
        train(p, twist);
    }
    free_acts(p);
}

void little_laps(little_program *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        little_lap(p, (little_twist){LITTLE_PLAIN, 0});
    }
}

uint32_t little_run_until_plan(little_program *p, uint32_t most)
{
    uint32_t n = 0;
    while (little_stats(p).state != NEAP_STATE_RUN && n < most) {
        little_laps(p, 1);
        n++;
    }
    if (little_stats(p).state != NEAP_STATE_RUN) {
        test_fail(__FILE__, __LINE__, "no plan is followed after %u iterations; the last that was said: %s", most,
                  p->n_lines > 0 && p->n_lines <= LITTLE_LINES ? p->lines[p->n_lines - 1].text : "nothing");
    }
    return n;
}
