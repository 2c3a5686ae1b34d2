#include "run/toll.h"

/* Iterations whose copies were all hidden. Of resnet50, vit-b16 and mobilenet-v2 (224 x 64), whose kernels use 0.50, 0.14 and
 * 0.28 of 4.5 GB a ms: with 0.9, 4.2 and 0.48 GB copied they took 0.8, 0.9 and 0.2 ms longer. */
#define BYTE_WEIGHT 6.0

/* Of resnet50 in single precision (32 x 32), whose kernels take 67 us: with 16, 32, 37, 42 and 70 swaps they took 0.4, 1.0,
 * 1.1, 1.6 and 2.3 ms longer, a few tenths of it for their bytes. vgg16 in single precision, 42 us: 16 swaps, 0.18 ms. Where
 * kernels take 150 us and more, hardly anything of it is left. */
#define SWAP_NS 20e3
#define SHORT_NS 60e3

np_toll np_toll_of(const np_traffic *traffic, double mean_exec_ns)
{
    return (np_toll){.copy_ns = SWAP_NS / 2 * (mean_exec_ns > SHORT_NS ? SHORT_NS / mean_exec_ns : 1),
                     .byte_ns = traffic->peak > 0 ? BYTE_WEIGHT * traffic->use / traffic->peak : 0};
}

double np_toll_ns(const np_toll *toll, double bytes, size_t n_swaps)
{
    return toll->byte_ns * bytes + 2 * toll->copy_ns * (double)n_swaps;
}
