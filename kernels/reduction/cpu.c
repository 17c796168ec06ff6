/* The largest element, on CPU threads: a group takes one contiguous share. */
#include <math.h>

#include "kernels/reduction/reduction.h"

static void reduction_max(const struct dev_cpu_launch *launch, uint32_t first, uint32_t last)
{
    const float *in = launch->arg[0];
    float *out = launch->arg[1];
    size_t n = *(const uint32_t *)launch->arg[2];
    size_t share = (n + launch->groups - 1) / launch->groups;

    for (uint32_t group = first; group < last; group++) {
        size_t begin = group * share, end = begin + share < n ? begin + share : n;
        float largest = -INFINITY;

        for (size_t i = begin; i < end; i++)
            largest = in[i] > largest || isnan(in[i]) ? in[i] : largest;
        out[group] = largest;
    }
}

static const struct dev_cpu_kernel reduction_cpu_kernels[] = {
    {"reduction_max", reduction_max},
    {NULL, NULL},
};

DEV_MODULE(reduction);
