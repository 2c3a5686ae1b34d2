// A training-like loop on a GPU through neap's interface: layers forward and backward, weights updated, every number
// checked against the same loop on plain memory. loop DEVICE LIMIT_SHARE ITERATIONS FLOATS ODD
//   ODD n: every n-th iteration does something else (a departure); 0: never
#include <cuda_runtime.h>
#include <neap.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static const int kLayers = 12;

__global__ void fill(float *out, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        out[i] = (float)(i % 97) * 0.01f;
}
__global__ void forward(float *out, const float *in, const float *w, size_t n, size_t n_w) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        out[i] = in[i] * 0.5f + w[i % n_w];
}
__global__ void backward(float *out, const float *in, size_t n, int repeats) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        float x = in[i];
        for (int k = 0; k < repeats; k++) x = x * 0.999f + 0.0001f;
        out[i] = x * 0.25f;
    }
}
__global__ void update(float *w, const float *g, const float *act, size_t n_w, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n_w; i += (size_t)gridDim.x * blockDim.x)
        w[i] -= 0.01f * (g[i % n] + act[i % n]);
}

struct Args {
    int kind;
    float *a;
    const float *b, *c;
    size_t n, n_w;
    cudaStream_t stream;
};

static void launch(void *p) {
    const Args *x = (const Args *)p;
    const int blocks = 528, threads = 256;
    switch (x->kind) {
    case 0: fill<<<blocks, threads, 0, x->stream>>>(x->a, x->n); break;
    case 1: forward<<<blocks, threads, 0, x->stream>>>(x->a, x->b, x->c, x->n, x->n_w); break;
    case 2: backward<<<blocks, threads, 0, x->stream>>>(x->a, x->b, x->n, 200); break;
    case 3: update<<<blocks, threads, 0, x->stream>>>(x->a, x->b, x->c, x->n_w, x->n); break;
    }
    cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess) fprintf(stderr, "launch: %s\n", cudaGetErrorString(e)), exit(3);
}

static neap_device *device;
static cudaStream_t stream;

#define OK(call)                                                                                              \
    do {                                                                                                      \
        neap_status s_ = (call);                                                                              \
        if (s_ != NEAP_OK) fprintf(stderr, "%s: %s: %s\n", #call, neap_status_name(s_), neap_device_error()), exit(2); \
    } while (0)

static float *data(neap_block *b) { return (float *)neap_data(b); }

static void exec(const char *name, Args args, const neap_use *uses, size_t n) {
    args.stream = stream;
    neap_work work = {name, 0, launch, &args, sizeof args, 0};
    OK(neap_exec(device, &work, uses, n));
}

static uint64_t train(const char *name, double share, int iterations, size_t n, int odd, neap_stats *stats) {
    const size_t n_w = n / 4;
    neap_device_options options;
    neap_error error;
    neap_block *w[kLayers], *a[kLayers + 1];
    memset(&options, 0, sizeof options);
    options.limit_share = share > 0 && share <= 1 ? share : 0;
    options.limit = share > 1 ? (uint64_t)share : 0;
    options.mode = share < 0 ? NEAP_MODE_PLAIN : NEAP_MODE_PLAN;
    options.log_level = NEAP_LOG_INFO;
    options.log = [](void *, neap_log_level level, const char *line) { fprintf(stderr, "  [%d] %s\n", level, line); };
    if (neap_open(name, &options, nullptr, &error, &device) != NEAP_OK) fprintf(stderr, "%s\n", error.text), exit(1);
    stream = (cudaStream_t)neap_stream_native(device, 0);
    std::vector<float> host(n_w);
    for (int i = 0; i < kLayers; i++) {
        for (size_t k = 0; k < n_w; k++) host[k] = (float)i;
        OK(neap_malloc(device, n_w * 4, &w[i]));
        OK(neap_write(device, w[i], 0, host.data(), n_w * 4));
    }
    for (int it = 0; it < iterations; it++) {
        OK(neap_malloc(device, n * 4, &a[0]));
        neap_use u0[] = {{a[0], NEAP_ACCESS_WRITE}};
        exec("fill", Args{0, data(a[0]), nullptr, nullptr, n, n_w}, u0, 1);
        for (int i = 0; i < kLayers; i++) {
            OK(neap_malloc(device, n * 4, &a[i + 1]));
            neap_use u[] = {{a[i + 1], NEAP_ACCESS_WRITE}, {a[i], NEAP_ACCESS_READ}, {w[i], NEAP_ACCESS_READ}};
            exec("forward", Args{1, data(a[i + 1]), data(a[i]), data(w[i]), n, n_w}, u, 3);
        }
        if (odd > 0 && it % odd == odd - 1) {
            neap_block *q;
            OK(neap_malloc(device, n * 2, &q));
            neap_use u[] = {{q, NEAP_ACCESS_WRITE}, {a[3], NEAP_ACCESS_READ}};
            exec("peek", Args{2, data(q), data(a[3]), nullptr, n / 2, n_w}, u, 2);
            OK(neap_free(device, q));
        }
        neap_block *g;
        OK(neap_malloc(device, n * 4, &g));
        neap_use ul[] = {{g, NEAP_ACCESS_WRITE}, {a[kLayers], NEAP_ACCESS_READ}};
        exec("loss", Args{2, data(g), data(a[kLayers]), nullptr, n, n_w}, ul, 2);
        OK(neap_free(device, a[kLayers]));
        for (int i = kLayers - 1; i >= 0; i--) {
            neap_block *h;
            OK(neap_malloc(device, n * 4, &h));
            neap_use ub[] = {{h, NEAP_ACCESS_WRITE}, {g, NEAP_ACCESS_READ}};
            exec("backward", Args{2, data(h), data(g), nullptr, n, n_w}, ub, 2);
            neap_use uu[] = {{w[i], NEAP_ACCESS_UNKNOWN}, {g, NEAP_ACCESS_READ}, {a[i], NEAP_ACCESS_READ}};
            exec("update", Args{3, data(w[i]), data(g), data(a[i]), n, n_w}, uu, 3);
            OK(neap_free(device, g));
            OK(neap_free(device, a[i]));
            g = h;
        }
        OK(neap_free(device, g));
        if (it == iterations / 3) { // let the planner finish
            neap_get_stats(device, stats);
            for (int k = 0; k < 400 && (stats->state == NEAP_STATE_PLAN_SWAPS || k < 40); k++) {
                struct timespec t = {0, 10000000};
                nanosleep(&t, nullptr);
                neap_get_stats(device, stats);
            }
        }
    }
    OK(neap_sync(device));
    neap_get_stats(device, stats);
    uint64_t hash = 1469598103934665603ull;
    for (int i = 0; i < kLayers; i++) {
        OK(neap_read(device, w[i], 0, host.data(), n_w * 4));
        const unsigned char *b = (const unsigned char *)host.data();
        for (size_t k = 0; k < n_w * 4; k++) hash = (hash ^ b[k]) * 1099511628211ull;
    }
    neap_close(device);
    return hash;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "cuda:0";
    double share = argc > 2 ? atof(argv[2]) : 0;
    int iterations = argc > 3 ? atoi(argv[3]) : 40;
    size_t n = argc > 4 ? (size_t)atol(argv[4]) : 4000000;
    int odd = argc > 5 ? atoi(argv[5]) : 0;
    neap_stats plain, stats;
    uint64_t expected = train(name, -1, iterations, n, odd, &plain);
    uint64_t hash = train(name, share, iterations, n, odd, &stats);
    printf("%s limit %.2f: %s; state %s, %llu iterations on the plan, %llu departures, load %.1f MB, footprint %.1f MB, "
           "limit %.1f MB, out %.1f MB, in %.1f MB, iteration %.3f ms, overhead %.2f %% (planned %.2f %%)\n",
           name, share, hash == expected ? "identical" : "DIFFERENT", neap_state_name(stats.state),
           (unsigned long long)stats.n_iterations, (unsigned long long)stats.n_departures, stats.peak_load / 1e6,
           stats.footprint / 1e6, stats.limit / 1e6, stats.bytes_out / 1e6, stats.bytes_in / 1e6,
           stats.iteration_ns / 1e6, 100 * stats.overhead, 100 * stats.plan_overhead);
    return hash == expected ? 0 : 4;
}
