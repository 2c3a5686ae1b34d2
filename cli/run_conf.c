/* run_conf.c: PYTORCH_CUDA_ALLOC_CONF, "name:value,name:[a:1,b:2],...".
 *
 * Under neap, PyTorch asks for every tensor by cudaMallocAsync, so that neap sees each. What tunes PyTorch's own caching
 * allocator means nothing then, and PyTorch warns about it; the rest, and what a later version may bring, is kept. */
#include <stdio.h>
#include <string.h>

#include "run.h"

static const char backend[] = "backend:cudaMallocAsync";

static const char *const native_options[] = {
    "expandable_segments",         "garbage_collection_threshold", "graph_capture_record_stream_reuse",
    "large_segment_size_mb",       "max_non_split_rounding_mb",    "max_split_size_mb",
    "per_process_memory_fraction", "release_lock_on_cudamalloc",   "roundup_bypass_threshold_mb",
    "roundup_power2_divisions",    "throw_on_cudamalloc_oom",      NULL,
};

/* One option; commas inside brackets are its own. */
static size_t option_length(const char *text)
{
    size_t n = 0;
    unsigned depth = 0;
    for (; text[n] && (text[n] != ',' || depth > 0); n++) {
        depth += text[n] == '[';
        depth -= text[n] == ']' && depth > 0;
    }
    return n;
}

static bool has_name(const char *text, size_t n_name, const char *name)
{
    return strlen(name) == n_name && strncmp(text, name, n_name) == 0;
}

static bool is_native(const char *text, size_t n_name)
{
    for (size_t i = 0; native_options[i]; i++) {
        if (has_name(text, n_name, native_options[i])) {
            return true;
        }
    }
    return false;
}

static bool append(char *list, const char *piece, size_t n, const char *mark)
{
    size_t used = strlen(list);
    int put = snprintf(list + used, RUN_PATH_BYTES - used, "%s%.*s", used ? mark : "", (int)n, piece);
    return put >= 0 && (size_t)put < RUN_PATH_BYTES - used;
}

bool run_merge_conf(const char *conf, char *merged, char *dropped)
{
    bool fits = true;
    (void)snprintf(merged, RUN_PATH_BYTES, "%s", backend);
    dropped[0] = '\0';
    while (conf && *conf && fits) {
        conf += strspn(conf, " ,");
        size_t n = option_length(conf);
        size_t n_name = strcspn(conf, ": ,");
        n_name = n_name < n ? n_name : n;
        if (has_name(conf, n_name, "backend")) {
            if (n != strlen(backend) || strncmp(conf, backend, n) != 0) {
                fits = append(dropped, conf, n, ", ");
            }
        } else if (is_native(conf, n_name)) {
            fits = append(dropped, conf, n_name, ", ");
        } else if (n > 0) {
            size_t n_kept = n;
            while (n_kept > 0 && conf[n_kept - 1] == ' ') {
                n_kept--;
            }
            fits = append(merged, conf, n_kept, ",");
        }
        conf += n;
    }
    return fits;
}
