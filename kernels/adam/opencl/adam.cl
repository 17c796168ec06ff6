/* Adam on OpenCL 1.2; see adam.h. */

#define B1 0.9f   /* ADAM_B1 */
#define B2 0.999f /* ADAM_B2 */
#define EPS 1e-8f /* ADAM_EPS */

__kernel void adam(__global float *restrict weights, __global const float *restrict gradients,
                   __global float *restrict m, __global float *restrict v, uint n, float scale,
                   float rate, float mean_factor, float square_factor)
{
    uint i = (uint)get_global_id(0);
    float4 g, mean, square;

    if (i >= n / 4)
        return;
    g = scale * vload4(i, gradients);
    mean = B1 * vload4(i, m) + (1 - B1) * g;
    square = B2 * vload4(i, v) + (1 - B2) * g * g;
    vstore4(mean, i, m);
    vstore4(square, i, v);
    vstore4(vload4(i, weights) - rate * (mean * mean_factor) / (sqrt(square * square_factor) + EPS),
            i, weights);
}
