__device__ __forceinline__ float helper(const float *in, int i)
{
    float x = in[i]; /* line 3 */
    return x * x;
}

extern "C" __global__ void plain(const float *in, float *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i * 32]; /* line 10 */
    out[i] = x + 1.0f;    /* line 11 */
}

extern "C" __global__ void inlined(const float *in, float *out)
{
    int i = threadIdx.x;
    out[i] = helper(in, i) /* line 17 */
             + 2.0f;
}

extern "C" __global__ void fenced(const float *in, float *out)
{
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads(); /* line 25 */
    out[threadIdx.x] = tile[255 - threadIdx.x];
}
