/* device_figures.h: figures of running programs: a row of the CSV each, judged against what is asked where something is.
 *
 *     name,input,value,unit,asked,met,machine
 *
 * `met` is empty where nothing is asked, `value` where there is none: what was to be measured did not happen. Times are medians; where an interval matters it is the 95 % one of the median,
 * by order statistics, which supposes nothing about how they are spread: with n times, each as likely above the median as
 * below it, the k-th lowest and k-th highest enclose it but for twice the chance of fewer than k heads in n throws. */
#ifndef NEAP_BENCH_DEVICE_FIGURES_H
#define NEAP_BENCH_DEVICE_FIGURES_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

typedef struct figures {
    FILE *csv;
    bool is_quick; /* $NEAP_BENCH_QUICK: a smoke test, whose times mean nothing */
    bool failed;   /* something did not run at all */
    size_t n_asked;
    size_t n_missed;
} figures;

static inline figures figures_open(const char *path)
{
    const char *quick = getenv("NEAP_BENCH_QUICK");
    return (figures){.csv = bench_csv_open(path, "name,input,value,unit,asked,met,machine"),
                     .is_quick = quick && *quick && strcmp(quick, "0") != 0};
}

/* The exit status: 1 where something failed, not where a figure missed what is asked. */
static inline int figures_close(figures *f)
{
    (void)printf("\n%zu of %zu figures missed (%s)\n", f->n_missed, f->n_asked, bench_machine());
    bench_csv_close(f->csv);
    return f->failed ? 1 : 0;
}

static inline void figure_row(figures *f, const char *name, const char *input, double value, const char *unit,
                              const char *asked, const char *met)
{
    char text[32] = "";
    if (!isnan(value)) {
        (void)snprintf(text, sizeof text, "%.7g", value);
    }
    if (f->csv) {
        (void)fprintf(f->csv, "%s,\"%s\",%s,%s,%s,%s,\"%s\"\n", name, input, text, unit, asked, met, bench_machine());
        (void)fflush(f->csv);
    }
}

static inline void figure_note(figures *f, const char *name, const char *input, double value, const char *unit)
{
    figure_row(f, name, input, value, unit, "", "");
}

typedef enum relation { BELOW, AT_MOST, AT_LEAST, EQUAL } relation;

/* A value that is not a number meets nothing. The word is for people: "" or "MISSED". */
static inline const char *figure_judge(figures *f, const char *name, const char *input, double value, const char *unit,
                                       relation r, double target)
{
    static const char *const signs[] = {"<", "<=", ">=", "="};
    const bool is_met = r == BELOW      ? value < target
                        : r == AT_MOST  ? value <= target
                        : r == AT_LEAST ? value >= target
                                        : fabs(value - target) <= 0;
    char asked[48];
    (void)snprintf(asked, sizeof asked, "%s%.7g", signs[r], target);
    figure_row(f, name, input, value, unit, asked, is_met ? "yes" : "no");
    f->n_asked++;
    f->n_missed += !is_met;
    return is_met ? "" : "MISSED";
}

/* ---------------------------------------------------------------- medians ---- */

typedef struct median {
    double value, low, high; /* infinite where there are too few values for an interval */
} median;

static inline int compare_values(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Sorts the values; n above 0. */
static inline median median_of(double *values, size_t n)
{
    median m = {.low = -INFINITY, .high = INFINITY};
    double chance = exp2(-(double)n); /* of just k heads, k = 0 */
    double below = chance;            /* of k or fewer */
    qsort(values, n, sizeof *values, compare_values);
    m.value = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    for (size_t k = 0; k < n / 2 && below <= 0.025; k++) {
        m.low = values[k];
        m.high = values[n - 1 - k];
        chance *= (double)(n - k) / (double)(k + 1);
        below += chance;
    }
    return m;
}

/* Is the median at most the target? "yes" and "no" where the whole interval says so. */
static inline const char *figure_judge_median(figures *f, const char *name, const char *input, median m,
                                              const char *unit, double target)
{
    const char *met = m.high <= target ? "yes" : m.low > target ? "no" : "not resolved";
    char asked[48], bound[64];
    (void)snprintf(asked, sizeof asked, "<=%.7g", target);
    (void)snprintf(bound, sizeof bound, "%s_low", name);
    figure_note(f, bound, input, m.low, unit);
    (void)snprintf(bound, sizeof bound, "%s_high", name);
    figure_note(f, bound, input, m.high, unit);
    figure_row(f, name, input, m.value, unit, asked, met);
    f->n_asked++;
    f->n_missed += strcmp(met, "yes") != 0;
    return strcmp(met, "yes") == 0 ? "" : strcmp(met, "no") == 0 ? "MISSED" : "NOT RESOLVED";
}

#endif
