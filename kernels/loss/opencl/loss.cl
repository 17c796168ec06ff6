/* The training loss on OpenCL 1.2; loss.h describes the kernels and their arguments. */

#define ITEM_ELEMENTS 16 /* LOSS_ITEM_ELEMENTS */

/* The k-th element of this item; neighbours have neighbouring elements. */
uint element(uint k)
{
    return ((uint)get_group_id(0) * ITEM_ELEMENTS + k) * (uint)get_local_size(0) +
           (uint)get_local_id(0);
}

float smape_term(float p, float t, float eps)
{
    return fabs(p - t) / ((fabs(p) + fabs(t)) * 0.5f + eps);
}

float band_term(float p, float t, float eps, float band)
{
    return fmax(0.0f, fabs(p - t) / (fabs(t) + eps) - band);
}

/* Adds up the values of a group of 256; item 0 gets the sum. Two levels of 16 instead of a binary
 * tree: on a CPU device each barrier is a pass over all items of the group. */
float group_sum(__local float *values, float mine)
{
    uint lane = (uint)get_local_id(0);
    float sum = 0.0f;
    uint j;

    values[lane] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < 16)
        for (j = 0; j < 16; j++)
            sum += values[lane + 16 * j];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < 16)
        values[lane] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = 0.0f;
    if (lane == 0)
        for (j = 0; j < 16; j++)
            sum += values[j];
    return sum;
}

__kernel void loss_smape_terms(__global const float *pred, __global const float *target,
                               __global float *terms, uint n, float eps)
{
    uint i = (uint)get_global_id(0);

    if (i < n)
        terms[i] = smape_term(pred[i], target[i], eps);
}

__kernel void loss_band_terms(__global const float *pred, __global const float *target,
                              __global float *terms, uint n, float eps, float band)
{
    uint i = (uint)get_global_id(0);

    if (i < n)
        terms[i] = band_term(pred[i], target[i], eps, band);
}

__kernel void loss_sum(__global const float *terms, __global float *partial, uint n,
                       __local float *values)
{
    float sum = 0.0f;
    uint k;

#pragma unroll
    for (k = 0; k < ITEM_ELEMENTS; k++) {
        uint i = element(k);

        sum += i < n ? terms[i] : 0.0f;
    }
    sum = group_sum(values, sum);
    if (get_local_id(0) == 0)
        partial[get_group_id(0)] = sum;
}

__kernel void loss_sum_finish(__global const float *partial, __global float *result, uint groups,
                              uint index, float scale, __local float *values)
{
    float sum = 0.0f;
    uint i;

    for (i = (uint)get_local_id(0); i < groups; i += (uint)get_local_size(0))
        sum += partial[i];
    sum = group_sum(values, sum);
    if (get_local_id(0) == 0)
        result[index] = sum * scale;
}

__kernel void loss_total(__global float *result)
{
    if (get_global_id(0) == 0)
        result[2] = result[0] + result[1];
}

__kernel void loss_fused(__global const float *pred, __global const float *target,
                         __global float *partial, uint n, float eps, float band,
                         __local float *values)
{
    float smape = 0.0f, penalty = 0.0f;
    uint k;

#pragma unroll
    for (k = 0; k < ITEM_ELEMENTS; k++) {
        uint i = element(k);
        float p = i < n ? pred[i] : 1.0f; /* 1 against 1 adds nothing, without a branch */
        float t = i < n ? target[i] : 1.0f;

        smape += smape_term(p, t, eps);
        penalty += band_term(p, t, eps, band);
    }
    smape = group_sum(values, smape);
    penalty = group_sum(values + get_local_size(0), penalty);
    if (get_local_id(0) == 0) {
        partial[2 * get_group_id(0)] = smape;
        partial[2 * get_group_id(0) + 1] = penalty;
    }
}

__kernel void loss_fused_finish(__global const float *partial, __global float *result, uint groups,
                                float scale, __local float *values)
{
    float smape = 0.0f, penalty = 0.0f;
    uint i;

    for (i = (uint)get_local_id(0); i < groups; i += (uint)get_local_size(0)) {
        smape += partial[2 * i];
        penalty += partial[2 * i + 1];
    }
    smape = group_sum(values, smape);
    penalty = group_sum(values + get_local_size(0), penalty);
    if (get_local_id(0) == 0) {
        result[0] = smape * scale;
        result[1] = penalty * scale;
        result[2] = (smape + penalty) * scale;
    }
}
