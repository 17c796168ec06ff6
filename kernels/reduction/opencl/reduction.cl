/* The largest element on OpenCL 1.2; see reduction.h. */
float larger(float a, float b)
{
    return isnan(a) || a > b ? a : b;
}

__kernel void reduction_max(__global const float *restrict in, __global float *restrict out, uint n,
                            __local float *part)
{
    uint item = (uint)get_local_id(0), items = (uint)get_local_size(0);
    float largest = -INFINITY;

    for (uint i = (uint)get_global_id(0); i < n; i += (uint)get_global_size(0))
        largest = larger(in[i], largest);
    part[item] = largest;
    for (uint span = items / 2; span > 0; span /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < span)
            part[item] = larger(part[item], part[item + span]);
    }
    if (item == 0)
        out[get_group_id(0)] = part[0];
}
