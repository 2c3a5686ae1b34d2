/* report_data_plans.c: the plans of a subject: figures, where blocks stand, what is copied when. */
#include "report_data.h"

void report_put_pool(json *out, const neap_plan_summary *summary)
{
    json_uint(out, "load", summary->load);
    json_uint(out, "bound", summary->bound);
    json_uint(out, "footprint", summary->footprint);
    json_real(out, "ratio", summary->ratio);
    json_bool(out, "optimal", summary->optimal);
    json_uint(out, "buffers", summary->n_buffers);
    json_uint(out, "periods", summary->n_periods);
    json_text(out, "found_by", summary->found_by);
    json_real(out, "seconds", summary->seconds);
}

static void put_pool(const report_writer *w)
{
    const neap_plan_buffer *b = w->buffers;
    json_object_begin(w->out, "pool");
    report_put_pool(w->out, w->pool);
    json_object_begin(w->out, "stays");
    PUT_COLUMN(w, "block", w->n_buffers, w->row_of[b[i].block]);
    PUT_COLUMN(w, "bytes", w->n_buffers, b[i].size);
    PUT_COLUMN(w, "offset", w->n_buffers, b[i].offset);
    PUT_COLUMN(w, "begin", w->n_buffers, b[i].begin);
    PUT_COLUMN(w, "end", w->n_buffers, b[i].end);
    json_object_end(w->out);
    json_object_end(w->out);
}

void report_put_limit(json *out, const report_limit *limit)
{
    if (limit->percent) {
        json_uint(out, "percent", limit->percent);
    } else {
        json_null(out, "percent");
    }
    if (!limit->plan) {
        json_null(out, "footprint");
        json_text(out, "reason", limit->error.text);
        return;
    }
    const neap_swap_summary *summary = neap_swap_get_summary(limit->plan);
    json_uint(out, "limit", limit->limit);
    json_uint(out, "footprint", summary->footprint);
    json_uint(out, "footprint_bound", summary->footprint_bound);
    json_uint(out, "planned_peak", summary->planned_peak);
    json_real(out, "overhead", summary->overhead);
    json_real(out, "bound_overhead", limit->bound_overhead);
    json_uint(out, "swaps", summary->n_swaps);
    json_uint(out, "bytes_out", summary->bytes_out);
    json_uint(out, "bytes_in", summary->bytes_in);
    json_real(out, "seconds", summary->seconds);
}

static void put_stays(const report_writer *w, const neap_swap_plan *plan)
{
    size_t n;
    const neap_swap_stay *s = neap_swap_stays(plan, &n);
    json_object_begin(w->out, "stays");
    PUT_COLUMN(w, "block", n, w->row_of[s[i].block]);
    PUT_COLUMN(w, "at", n, s[i].at);
    PUT_COLUMN(w, "bytes", n, s[i].bytes);
    PUT_COLUMN(w, "offset", n, s[i].offset);
    PUT_COLUMN(w, "begin", n, s[i].begin);
    PUT_COLUMN(w, "end", n, s[i].end);
    json_object_end(w->out);
}

static void put_swaps(const report_writer *w, const neap_swap_plan *plan)
{
    size_t n;
    uint32_t begin = neap_swap_get_summary(plan)->begin;
    const neap_swap_entry *e = neap_swap_entries(plan, &n);
    json_object_begin(w->out, "moves");
    PUT_COLUMN(w, "block", n, w->row_of[e[i].block]);
    PUT_COLUMN(w, "bytes", n, e[i].bytes);
    PUT_TIMES(w, "at", n, e[i].at == NEAP_NO_OFFSET ? (double)NAN : (double)e[i].at);
    PUT_COLUMN(w, "used_before", n, e[i].used_before - begin);
    PUT_COLUMN(w, "used_after", n, e[i].used_after - begin);
    PUT_TIMES(w, "gap", n, e[i].gap_ns);
    PUT_TIMES(w, "out_start", n, e[i].out_start_ns);
    PUT_TIMES(w, "out_end", n, e[i].out_end_ns);
    PUT_TIMES(w, "in_start", n, e[i].in_start_ns);
    PUT_TIMES(w, "in_end", n, e[i].in_end_ns);
    json_object_end(w->out);
}

static void put_limits(const report_writer *w)
{
    json_array_begin(w->out, "limits");
    for (size_t k = 0; k < w->subject->n_limits; k++) {
        const report_limit *limit = &w->subject->limits[k];
        json_object_begin(w->out, NULL);
        report_put_limit(w->out, limit);
        if (limit->plan) {
            size_t n;
            const neap_swap_exec *execs = neap_swap_execs(limit->plan, &n);
            PUT_TIMES(w, "exec_start", n, execs[i].start_ns);
            PUT_TIMES(w, "exec_end", n, execs[i].end_ns);
            put_stays(w, limit->plan);
            put_swaps(w, limit->plan);
        }
        json_object_end(w->out);
    }
    json_array_end(w->out);
}

void report_put_plans(const report_writer *w)
{
    put_pool(w);
    put_limits(w);
}
