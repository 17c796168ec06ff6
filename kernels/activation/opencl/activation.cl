/* GELU on OpenCL 1.2; activation.h describes the kernel. */

#ifndef ACTIVATION_ONCE
#define ACTIVATION_ONCE
#define ITEM_ELEMENTS 8 /* ACTIVATION_GROUP / ACTIVATION_ITEMS */
#endif

__kernel void NAME(gelu)(__global const element *in, __global element *out, uint n)
{
    uint items = (uint)get_local_size(0);
    uint first = (uint)get_group_id(0) * ITEM_ELEMENTS * items + (uint)get_local_id(0);

#pragma unroll
    for (uint k = 0; k < ITEM_ELEMENTS; k++) {
        uint i = first + k * items;

        if (i < n) {
            float x = load(i, in);

            store(x / (1.0f + exp(-1.5957691f * x * (1.0f + 0.044715f * x * x))), i, out);
        }
    }
}
