/* swap_figures.h: figures of bench_swap.c: written as rows, judged against targets, summed over traces. */
#ifndef NEAP_BENCH_SWAP_FIGURES_H
#define NEAP_BENCH_SWAP_FIGURES_H

#include <stdbool.h>
#include <stdio.h>

typedef struct bench {
    FILE *csv;
    double seconds; /* 0: neap's default */
    bool failed;
    size_t n_targets;
    size_t n_missed;
} bench;

/* ---------------------------------------------------------------- figures ---- */

static inline void write_figure(bench *b, const char *trace, const char *figure, double value, const char *target,
                                const char *ok)
{
    if (b->csv) {
        (void)fprintf(b->csv, "%s,%s,%.6g,%s,%s\n", trace, figure, value, target, ok);
        (void)fflush(b->csv);
    }
}

static inline void note(bench *b, const char *trace, const char *figure, double value)
{
    write_figure(b, trace, figure, value, "", "");
}

typedef enum relation { AT_LEAST, AT_MOST } relation;

/* Figures are compared as they are shown: a millionth is no difference. */
static inline const char *judge(bench *b, const char *trace, const char *figure, double value, relation r,
                                double target)
{
    char text[48];
    bool is_met = r == AT_LEAST ? value >= target - 1e-6 : value <= target + 1e-6;
    (void)snprintf(text, sizeof text, "%s%.6g", r == AT_LEAST ? ">=" : "<=", target);
    write_figure(b, trace, figure, value, text, is_met ? "yes" : "no");
    b->n_targets++;
    b->n_missed += !is_met;
    return is_met ? "yes" : "MISSED";
}

/* Sums of a figure over the traces. */
typedef struct tally {
    double sum, worst;
    size_t n;
} tally;

static inline void tally_add(tally *t, double value)
{
    t->worst = t->n == 0 || value > t->worst ? value : t->worst;
    t->sum += value;
    t->n++;
}

static inline double tally_mean(const tally *t)
{
    return t->n ? t->sum / (double)t->n : 0;
}

#endif
