#include "baselines.h"

const baseline baselines_list[BASELINES_N] = {
    {"cudamalloc", "cudaMalloc (the load itself)", offsetof(neap_baselines, cudamalloc)},
    {"cnmem", "NVIDIA CnMem", offsetof(neap_baselines, cnmem)},
    {"caching", "PyTorch caching allocator", offsetof(neap_baselines, caching)},
    {"expandable", "PyTorch expandable segments", offsetof(neap_baselines, expandable)},
    {"bestfit", "largest first, best-fit", offsetof(neap_baselines, bestfit)},
    {"firstfit", "largest first, first-fit", offsetof(neap_baselines, firstfit)},
};

uint64_t baselines_value(const neap_baselines *baselines, size_t i)
{
    return *(const uint64_t *)(const void *)((const char *)baselines + baselines_list[i].offset);
}
