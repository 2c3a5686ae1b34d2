/* bench_swap.c: what swapping reaches on recorded training loops, beside what it must reach and what nothing can beat.
 *
 *     bench_swap [--csv PATH] [--seconds S] FILE...
 *
 *     without overhead   50 GB/s each way: how much less is held, beside the bound and what a simple greedy reached
 *     the paper's GPU    the same on a link and a GPU like the paper's, beside the paper's figures
 *     60 % less          than NVIDIA's CnMem there, for under 15 % overhead, where floor and bound allow it
 *     over all limits    from the peak down to the floor: the search beside the paper's methods and the bound
 *     speed              also of a made training loop of 10,000 events
 *
 * The CSV has a row a figure: trace,figure,value,target,ok. `ok` is empty without a target, "floor" or "bound" where what
 * is asked for is proved to be impossible. It leaves with 1 where a plan failed, not where a target was missed. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "neap.h"
#include "swap/bound_overhead.h"
#include "swap_figures.h"
#include "swap_inputs.h"

enum { N_STEPS = 20, N_SCORES = 4 };

static double less(const neap_swap_summary *s, double bytes)
{
    return s->peak_load ? 1 - bytes / (double)s->peak_load : 0;
}

/* ---------------------------------------------------------------- planning ---- */

static neap_swap_options options_of(const bench *b)
{
    return (neap_swap_options){
        .method = NEAP_SWAP_SEARCH, .link = {.out_gbs = 50, .in_gbs = 50}, .slower = 1, .seconds = b->seconds};
}

static neap_swap_options paper_options_of(const bench *b)
{
    neap_swap_options options = options_of(b);
    if (neap_link_find("1080ti-pcie3", &options.link) != NEAP_OK) {
        (void)fputs("bench_swap: the paper's link is not known\n", stderr);
        exit(2);
    }
    options.slower = 7.5;
    return options;
}

/* The plan's summary; false, after a line on stderr, where there is none. */
static bool plan(bench *b, const input *in, const neap_swap_options *options, neap_swap_summary *summary)
{
    neap_error error = {""};
    neap_swap_plan *made;
    neap_status status = neap_swap_make(in->trace, options, NULL, &error, &made);
    if (status != NEAP_OK) {
        (void)fprintf(stderr, "bench_swap: %s: %s\n", in->name, error.text);
        b->failed = b->failed || status != NEAP_NO_PLAN; /* none at this limit: a target missed */
        return false;
    }
    *summary = *neap_swap_get_summary(made);
    neap_swap_free(made);
    return true;
}

/* ---------------------------------------------------------------- without overhead ---- */

typedef struct zero_tallies {
    tally below_bound; /* bound - reached */
    tally placing;     /* reached by the load - by the footprint */
    tally seconds;
} zero_tallies;

static void against_reference(bench *b, const char *name, const neap_swap_summary *s, double reached, double bound)
{
    const struct reference *r = reference_of(name);
    const char *plan_ok = "", *bound_ok = "";
    if (!r) {
        (void)printf("%25s\n", "");
        return;
    }
    note(b, name, "reference_reduction", r->parts / 100);
    note(b, name, "reference_bound_reduction", r->bound / 100);
    note(b, name, "reference_bound_reduction_any_directions", r->bound_any / 100);
    note(b, name, "bound_reduction_any_minus_reference", less(s, s->bound_peak_any) - r->bound_any / 100);
    note(b, name, "floor_reduction_minus_reference", less(s, (double)s->floor) - r->floor / 100);
    plan_ok = judge(b, name, "reduction_minus_reference", reached - r->parts / 100, AT_LEAST, -0.01);
    bound_ok = judge(b, name, "bound_reduction_minus_reference", bound - r->bound / 100, AT_MOST, 0.003);
    (void)printf(" %8.1f %6.1f %6.1f %6.1f   %s %s\n", r->parts, r->bound, r->bound_any, r->floor,
                 strcmp(plan_ok, "yes") == 0 ? "" : "PLAN MISSED", strcmp(bound_ok, "yes") == 0 ? "" : "BOUND MISSED");
}

static void without_overhead(bench *b, const input *in, zero_tallies *t)
{
    const neap_swap_options options = options_of(b);
    neap_swap_summary s;
    if (!plan(b, in, &options, &s)) {
        return;
    }
    double reached = less(&s, (double)s.lowest_peak), held = less(&s, (double)s.footprint);
    double bound = less(&s, s.bound_peak);
    tally_add(&t->below_bound, bound - reached);
    tally_add(&t->placing, reached - held);
    tally_add(&t->seconds, s.seconds);
    note(b, in->name, "peak_load", (double)s.peak_load);
    note(b, in->name, "reduction", reached);
    note(b, in->name, "footprint_reduction", held);
    note(b, in->name, "bound_reduction", bound);
    note(b, in->name, "bound_reduction_any_directions", less(&s, s.bound_peak_any));
    note(b, in->name, "floor_reduction", less(&s, (double)s.floor));
    note(b, in->name, "reduction_minus_footprint_reduction", reached - held);
    (void)judge(b, in->name, "overhead", s.overhead, AT_MOST, 0.001);
    (void)judge(b, in->name, "bound_minus_reduction", bound - reached, AT_MOST, 0.015);
    (void)printf("  %-22s %6" PRIu32 " %8.0f %7.1f %6.1f %6.1f %6.1f %6.1f %7.2f", in->name, in->n_events,
                 (double)s.peak_load * 1e-6, reached * 100, held * 100, bound * 100, less(&s, s.bound_peak_any) * 100,
                 less(&s, (double)s.floor) * 100, s.seconds);
    against_reference(b, in->name, &s, reached, bound);
    (void)fflush(stdout);
}

static void all_without_overhead(bench *b, const input *inputs, size_t n)
{
    zero_tallies t = {0};
    (void)printf("\nwithout overhead, 50 GB/s each way: %% less than the peak load%38s reference\n", "");
    (void)printf("  %-22s %6s %8s %7s %6s %6s %6s %6s %7s %8s %6s %6s %6s\n", "trace", "events", "peak MB", "reached",
                 "placed", "bound", "any", "floor", "s", "reached", "bound", "any", "floor");
    for (size_t i = 0; i < n; i++) {
        without_overhead(b, &inputs[i], &t);
    }
    note(b, "all", "worst_bound_minus_reduction", t.below_bound.worst);
    note(b, "all", "worst_reduction_minus_footprint_reduction", t.placing.worst);
    (void)printf("  below the bound: mean %.2f points (0.5 allowed: %s), worst %.2f (1.5 allowed)\n",
                 tally_mean(&t.below_bound) * 100,
                 judge(b, "all", "mean_bound_minus_reduction", tally_mean(&t.below_bound), AT_MOST, 0.005),
                 t.below_bound.worst * 100);
    (void)printf("  placing costs: mean %.2f points (1.5 allowed: %s), worst %.2f\n", tally_mean(&t.placing) * 100,
                 judge(b, "all", "mean_reduction_minus_footprint_reduction", tally_mean(&t.placing), AT_MOST, 0.015),
                 t.placing.worst * 100);
    (void)printf("  planning: mean %.2f s, worst %.2f\n", tally_mean(&t.seconds), t.seconds.worst);
}

/* ---------------------------------------------------------------- the paper's GPU ---- */

static void on_the_papers_gpu(bench *b, const input *in)
{
    const neap_swap_options options = paper_options_of(b);
    for (size_t i = 0; i < sizeof paper_figures / sizeof *paper_figures; i++) {
        const struct paper_figure *f = &paper_figures[i];
        neap_swap_summary s;
        if (strcmp(f->name, in->name) != 0 || !plan(b, in, &options, &s)) {
            continue;
        }
        double reached = less(&s, (double)s.lowest_peak);
        note(b, in->name, "paper_regime_footprint_reduction", less(&s, (double)s.footprint));
        note(b, in->name, "paper_regime_bound_reduction", less(&s, s.bound_peak));
        (void)printf("  %-22s %7.1f %6.1f %6.1f %9.1f   %.0f to be reached: %s\n", in->name, reached * 100,
                     less(&s, (double)s.footprint) * 100, less(&s, s.bound_peak) * 100, f->paper, f->target,
                     judge(b, in->name, "paper_regime_reduction", reached, AT_LEAST, f->target / 100));
        (void)fflush(stdout);
    }
}

/* The least overhead under a limit, where there is no plan to tell it; 0 where it cannot be found out. */
static double bound_at(const input *in, const neap_swap_options *options, uint64_t limit)
{
    np_timeline_options of_line = {.alignment = 512, .slower = options->slower};
    np_link link = np_link_from(&options->link);
    np_period period;
    np_timeline timeline;
    double ns = 0;
    if (np_period_find(in->trace, NULL, &period) != NEAP_OK) {
        return 0;
    }
    if (np_timeline_make(&period, &of_line, NULL, &timeline) == NEAP_OK) {
        if (np_bound_overhead(&timeline, &link, limit, &ns) == NEAP_OK && timeline.period_ns > 0) {
            ns /= timeline.period_ns;
        }
        np_timeline_free(&timeline);
    }
    np_period_free(&period);
    return ns;
}

/* No plan was found: is that a miss? */
static const char *verdict_without_plan(bench *b, const input *in, double bound)
{
    note(b, in->name, "less_60_bound_overhead", bound);
    if (bound > 0.15) {
        write_figure(b, in->name, "less_60_overhead", INFINITY, "<=0.15", "bound");
        return "impossible: the bound is above 15 %; no plan was found";
    }
    (void)judge(b, in->name, "less_60_overhead", INFINITY, AT_MOST, 0.15);
    return "MISSED: no plan was found";
}

/* The word for the table, and the row of the CSV. */
static const char *verdict_of(bench *b, const input *in, const neap_swap_summary *s, double limit)
{
    if (limit < (double)s->floor) {
        write_figure(b, in->name, "less_60_overhead", INFINITY, "<=0.15", "floor");
        return "impossible: one exec needs more than that";
    }
    if (s->overhead > 0.15 && s->bound_overhead > 0.15) {
        write_figure(b, in->name, "less_60_overhead", s->overhead, "<=0.15", "bound");
        return "impossible: the bound is above 15 %";
    }
    return judge(b, in->name, "less_60_overhead", s->overhead, AT_MOST, 0.15);
}

static void sixty_less(bench *b, const input *in)
{
    neap_swap_options options = paper_options_of(b);
    neap_swap_summary s;
    double limit = 0.4 * (double)in->cnmem;
    options.method = NEAP_SWAP_DOA; /* only the floor is asked for */
    options.limit_share = 1;
    if (!plan(b, in, &options, &s)) {
        return;
    }
    note(b, in->name, "less_60_limit", limit);
    note(b, in->name, "less_60_floor", (double)s.floor);
    if (limit >= (double)s.floor) {
        options.method = NEAP_SWAP_SEARCH;
        options.limit = (uint64_t)limit;
        if (!plan(b, in, &options, &s)) {
            double bound = bound_at(in, &options, options.limit);
            (void)printf("  %-22s %9.0f %9.0f %9s %9s %9.2f   %s\n", in->name, limit * 1e-6, (double)s.floor * 1e-6, "",
                         "", bound * 100, verdict_without_plan(b, in, bound));
            return;
        }
        note(b, in->name, "less_60_bound_overhead", s.bound_overhead);
        note(b, in->name, "less_60_footprint", (double)s.footprint);
        (void)printf("  %-22s %9.0f %9.0f %9.0f %9.2f %9.2f   ", in->name, limit * 1e-6, (double)s.floor * 1e-6,
                     (double)s.footprint * 1e-6, s.overhead * 100, s.bound_overhead * 100);
    } else {
        (void)printf("  %-22s %9.0f %9.0f %9s %9s %9s   ", in->name, limit * 1e-6, (double)s.floor * 1e-6, "", "", "");
    }
    (void)printf("%s\n", verdict_of(b, in, &s, limit));
    (void)fflush(stdout);
}

static void all_on_the_papers_gpu(bench *b, const input *inputs, size_t n)
{
    (void)printf("\non the paper's GPU and link, no overhead: %% less than the peak load\n");
    (void)printf("  %-22s %7s %6s %6s %9s\n", "trace", "reached", "placed", "bound", "the paper");
    for (size_t i = 0; i < n; i++) {
        on_the_papers_gpu(b, &inputs[i]);
    }
    (void)printf("\n60 %% less than CnMem holds, on the paper's GPU and link, for under 15 %% overhead\n");
    (void)printf("  %-22s %9s %9s %9s %9s %9s\n", "trace", "limit MB", "floor MB", "held MB", "overhead", "bound");
    for (size_t i = 0; i < n; i++) {
        sixty_less(b, &inputs[i]);
    }
}

/* ---------------------------------------------------------------- over all limits ---- */

typedef struct sweep_tallies {
    tally above_bound; /* search - bound, of an iteration */
    tally below_bo;    /* 1 - search / bo where bo costs more than 0.1 % */
    tally saved;       /* (bo - search) / (bo - bound) where bo is more than 0.1 % above the bound */
    size_t n_unordered;
    size_t n_without; /* limits at which the search found nothing */
} sweep_tallies;

static double best_score(const neap_sweep_row *row)
{
    static const neap_swap_method scores[N_SCORES] = {NEAP_SWAP_DOA, NEAP_SWAP_AOA, NEAP_SWAP_WDOA, NEAP_SWAP_SWDOA};
    double best = INFINITY;
    for (size_t i = 0; i < N_SCORES; i++) {
        best = fmin(best, row->overhead[scores[i]]);
    }
    return best;
}

static void add_row(const neap_sweep_row *row, sweep_tallies *t)
{
    double search = row->overhead[NEAP_SWAP_SEARCH], bo = row->overhead[NEAP_SWAP_BO];
    t->n_unordered += search > bo + 1e-6 || bo > best_score(row) + 1e-6;
    if (!isfinite(search)) {
        t->n_without++;
        return;
    }
    tally_add(&t->above_bound, search - row->bound_overhead);
    if (isfinite(bo) && bo > 0.001) {
        tally_add(&t->below_bo, 1 - search / bo);
    }
    if (isfinite(bo) && bo - row->bound_overhead > 0.001) {
        tally_add(&t->saved, (bo - search) / (bo - row->bound_overhead));
    }
}

static void tallies_add(sweep_tallies *all, const sweep_tallies *one)
{
    tally *into[] = {&all->above_bound, &all->below_bo, &all->saved};
    const tally *from[] = {&one->above_bound, &one->below_bo, &one->saved};
    for (size_t i = 0; i < sizeof into / sizeof *into; i++) {
        into[i]->worst = into[i]->n == 0 || from[i]->worst > into[i]->worst ? from[i]->worst : into[i]->worst;
        into[i]->sum += from[i]->sum;
        into[i]->n += from[i]->n;
    }
    all->n_unordered += one->n_unordered;
    all->n_without += one->n_without;
}

static void write_sweep(bench *b, const char *name, const sweep_tallies *t, bool is_all)
{
    note(b, name, "sweep_worst_above_bound", t->above_bound.worst);
    note(b, name, "sweep_share_saved", tally_mean(&t->saved));
    (void)judge(b, name, "sweep_limits_out_of_order", (double)t->n_unordered, AT_MOST, 0);
    (void)judge(b, name, "sweep_limits_without_plan", (double)t->n_without, AT_MOST, 0);
    if (is_all) {
        (void)judge(b, name, "sweep_mean_above_bound", tally_mean(&t->above_bound), AT_MOST, 0.05);
        (void)judge(b, name, "sweep_search_below_bo", tally_mean(&t->below_bo), AT_LEAST, 0.1);
    } else {
        note(b, name, "sweep_mean_above_bound", tally_mean(&t->above_bound));
        note(b, name, "sweep_search_below_bo", tally_mean(&t->below_bo));
    }
    (void)printf("  %-22s %9.2f %9.2f %9.1f %7zu %9.1f %9zu %8zu", name, tally_mean(&t->above_bound) * 100,
                 t->above_bound.worst * 100, tally_mean(&t->below_bo) * 100, t->below_bo.n, tally_mean(&t->saved) * 100,
                 t->n_unordered, t->n_without);
}

static void sweep(bench *b, const input *in, sweep_tallies *all)
{
    neap_swap_options options = options_of(b);
    neap_sweep_row rows[N_STEPS];
    neap_error error = {""};
    sweep_tallies t = {0};
    uint64_t begin = np_clock_ns();
    options.on_load = true;
    neap_status status = neap_swap_sweep(in->trace, &options, N_STEPS, NULL, &error, rows);
    if (status != NEAP_OK) {
        (void)fprintf(stderr, "bench_swap: %s: %s\n", in->name, error.text);
        b->failed = true;
        return;
    }
    for (size_t i = 0; i < N_STEPS; i++) {
        add_row(&rows[i], &t);
    }
    tallies_add(all, &t);
    write_sweep(b, in->name, &t, false);
    (void)printf(" %8.1f\n", (double)(np_clock_ns() - begin) * 1e-9);
    (void)fflush(stdout);
}

static void all_sweeps(bench *b, const input *inputs, size_t n)
{
    sweep_tallies all = {0};
    (void)printf("\nover %d limits from the peak to the floor, 50 GB/s each way: %% of an iteration\n", N_STEPS);
    (void)printf("  %-22s %9s %9s %9s %7s %9s %9s %8s %8s\n", "search:", "above the", "worst", "below bo", "limits",
                 "% of what", "not <= bo", "without", "s");
    (void)printf("  %-22s %9s %9s %9s %7s %9s %9s %8s\n", "", "bound", "", "by %", "", "was to save", "<= scores",
                 "a plan");
    for (size_t i = 0; i < n; i++) {
        sweep(b, &inputs[i], &all);
    }
    write_sweep(b, "all", &all, true);
    (void)printf("\n  to be reached: at most 5 above the bound; 10 %% below bo; always search <= bo <= the scores\n");
}

/* ---------------------------------------------------------------- speed ---- */

/* At a limit halfway between the peak and the floor; what is allowed grows with the events above 10,000. */
static void speed(bench *b, const input *in)
{
    static const char *const figures[NEAP_SWAP_N_METHODS] = {"search_seconds", "bo_seconds",   "doa_seconds",
                                                             "aoa_seconds",    "wdoa_seconds", "swdoa_seconds"};
    neap_swap_options options = options_of(b);
    neap_swap_summary s;
    double scale = fmax(1, in->n_events / 10000.0);
    const char *verdict = "yes";
    options.method = NEAP_SWAP_DOA;
    options.limit_share = 1;
    if (!plan(b, in, &options, &s)) {
        return;
    }
    options.limit = s.floor + (s.peak_load - s.floor) / 2;
    (void)printf("  %-22s %6" PRIu32, in->name, in->n_events);
    for (int m = 0; m < NEAP_SWAP_N_METHODS; m++) {
        const char *ok = "yes";
        options.method = (neap_swap_method)m;
        uint64_t begin = np_clock_ns();
        (void)plan(b, in, &options, &s);
        double seconds = (double)(np_clock_ns() - begin) * 1e-9;
        if (m == NEAP_SWAP_BO) {
            note(b, in->name, figures[m], seconds);
        } else {
            ok = judge(b, in->name, figures[m], seconds, AT_MOST, (m == NEAP_SWAP_SEARCH ? 2 : 0.2) * scale);
        }
        verdict = strcmp(ok, "yes") == 0 ? verdict : ok;
        (void)printf(" %7.3f", seconds);
    }
    (void)printf("   %s\n", verdict);
    (void)fflush(stdout);
}

static void all_speeds(bench *b, const input *inputs, size_t n)
{
    input made = made_input();
    (void)printf("\nspeed, at a limit halfway between peak and floor: 2 s for the search, 0.2 s for a score\n");
    (void)printf("  %-22s %6s", "trace", "events");
    for (int m = 0; m < NEAP_SWAP_N_METHODS; m++) {
        (void)printf(" %7s", neap_swap_method_name((neap_swap_method)m));
    }
    (void)putchar('\n');
    for (size_t i = 0; i < n; i++) {
        speed(b, &inputs[i]);
    }
    speed(b, &made);
    neap_trace_free(made.trace);
}

/* ---------------------------------------------------------------- the command line ---- */

int main(int argc, char **argv)
{
    bench b = {0};
    const char *path = bench_csv_argument(&argc, &argv);
    if (argc > 2 && strcmp(argv[1], "--seconds") == 0) {
        b.seconds = strtod(argv[2], NULL);
        argc -= 2;
        argv += 2;
    }
    if (argc < 2) {
        (void)fputs("usage: bench_swap [--csv PATH] [--seconds S] FILE...\n", stderr);
        return 2;
    }
    size_t n = (size_t)argc - 1;
    input *inputs = calloc(n, sizeof *inputs);
    if (!inputs) {
        return 2;
    }
    b.csv = bench_csv_open(path, "trace,figure,value,target,ok");
    for (size_t i = 0; i < n; i++) {
        if (!read_input(argv[i + 1], &inputs[i])) {
            return 2;
        }
    }
    all_without_overhead(&b, inputs, n);
    all_on_the_papers_gpu(&b, inputs, n);
    all_sweeps(&b, inputs, n);
    all_speeds(&b, inputs, n);
    (void)printf("\n%zu of %zu targets missed (%s)\n", b.n_missed, b.n_targets, bench_machine());
    bench_csv_close(b.csv);
    for (size_t i = 0; i < n; i++) {
        neap_trace_free(inputs[i].trace);
    }
    free(inputs);
    return b.failed ? 1 : 0;
}
