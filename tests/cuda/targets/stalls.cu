/* Kernels whose warps wait for a known cause at a known line, for `perfkit run --stalls`: the line
 * with "@ reasons" behind it is where most samples of the kernel above must fall, within two lines,
 * and the dominant reason must be one of those given. "after KERNEL": the same work without the
 * fault. device_stalls.py reads these marks.
 *
 *     cuda_stalls [KERNEL,... [REPEATS [reset]]]     all of them without a list; cudaDeviceReset at the end */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_fp16.h>
#include <mma.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_));                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const size_t N = 1 << 26; /* words of each array: 256 MiB */

__global__ void chase(const uint32_t *next, uint32_t *out, int steps)
{
    uint32_t at = (blockIdx.x * blockDim.x + threadIdx.x) * 977u & (uint32_t)(N - 1);
    for (int i = 0; i < steps; i++)
        at = next[at]; // @ long_scoreboard
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

__global__ void chase_near(const uint32_t *next, uint32_t *out, int steps) // after chase
{
    uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < steps; i++)
        at = next[at]; // @ long_scoreboard
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

__global__ void uncoalesced(const float *in, float *out, int steps)
{
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < steps; k++)
        sum += in[(i * 1031 + (size_t)k * 32) & (N - 1)]; // @ long_scoreboard lg_throttle
    out[i] = sum;
}

__global__ void coalesced(const float *in, float *out, int steps) // after uncoalesced
{
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < steps; k++)
        sum += in[(i + (size_t)k * gridDim.x * blockDim.x) & (N - 1)]; // @ long_scoreboard
    out[i] = sum;
}

__global__ void bank_conflicts(float *out, int steps)
{
    __shared__ float tile[32 * 33 * 8];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (unsigned i = threadIdx.x; i < sizeof tile / 4; i += blockDim.x)
        tile[i] = (float)i;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < steps; k++)
        sum += tile[(lane * 32 + ((unsigned)k + warp) % 32) & 1023]; // @ short_scoreboard mio_throttle
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void no_conflicts(float *out, int steps) // after bank_conflicts
{
    __shared__ float tile[32 * 33 * 8];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (unsigned i = threadIdx.x; i < sizeof tile / 4; i += blockDim.x)
        tile[i] = (float)i;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < steps; k++)
        sum += tile[(lane * 33 + ((unsigned)k + warp) % 32) & 2047]; // @ short_scoreboard mio_throttle
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void one_address(float *counter, float *out, int steps)
{
    float sum = (float)threadIdx.x;
    for (int k = 0; k < steps; k++)
        sum += atomicAdd(counter, sum); // @ long_scoreboard lg_throttle
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void many_addresses(float *counters, float *out, int steps) // after one_address
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = (float)threadIdx.x;
    for (int k = 0; k < steps; k++)
        sum += atomicAdd(counters + i, sum); // @ long_scoreboard lg_throttle
    out[i] = sum;
}

__global__ void barriers(float *out, int steps)
{
    float sum = 0;
    for (int k = 0; k < steps; k++) {
        if (threadIdx.x < 32) {
#pragma unroll 1
            for (int j = 0; j < 200; j++)
                sum = sum * 1.0001f + 1.0f;
        }
        __syncthreads(); // @ barrier
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void even_barriers(float *out, int steps) // after barriers
{
    float sum = 0;
    for (int k = 0; k < steps; k++) {
#pragma unroll 1
        for (int j = 0; j < 25; j++)
            sum = sum * 1.0001f + 1.0f; // @ wait not_selected barrier
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void doubles(double *out, int steps)
{
    double a[8];
    for (int j = 0; j < 8; j++)
        a[j] = threadIdx.x + j;
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
#pragma unroll
        for (int j = 0; j < 8; j++)
            a[j] = a[j] * 1.0000001 + 1e-9; // @ math_pipe_throttle
    }
    double sum = 0;
    for (int j = 0; j < 8; j++)
        sum += a[j];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void floats(float *out, int steps) // after doubles
{
    float a[8];
    for (int j = 0; j < 8; j++)
        a[j] = (float)(threadIdx.x + j);
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
#pragma unroll
        for (int j = 0; j < 8; j++)
            a[j] = a[j] * 1.0000001f + 1e-9f; // @ math_pipe_throttle not_selected wait dispatch_stall
    }
    float sum = 0;
    for (int j = 0; j < 8; j++)
        sum += a[j];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void fma_chain(float *out, int steps)
{
    float x = (float)threadIdx.x;
#pragma unroll 16
    for (int k = 0; k < steps; k++)
        x = x * 1.0001f + 0.5f; // @ wait
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

__global__ void fma_chains(float *out, int steps) // after fma_chain
{
    float x = (float)threadIdx.x, y = x + 1, z = x + 2, w = x + 3;
#pragma unroll 4
    for (int k = 0; k < steps / 4; k++) {
        x = x * 1.0001f + 0.5f, y = y * 1.0001f + 0.5f, z = z * 1.0001f + 0.5f, w = w * 1.0001f + 0.5f; // @ wait not_selected dispatch_stall math_pipe_throttle
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x + y + z + w;
}

__global__ void tensor(float *out, int steps)
{
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c[4];
    wmma::fill_fragment(a, __float2half(0.5f));
    wmma::fill_fragment(b, __float2half(0.5f));
    for (int j = 0; j < 4; j++)
        wmma::fill_fragment(c[j], 0.0f);
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            wmma::mma_sync(c[j], a, b, c[j]); // @ math_pipe_throttle
    }
    for (int j = 1; j < 4; j++)
        for (int i = 0; i < c[0].num_elements; i++)
            c[0].x[i] += c[j].x[i];
    wmma::store_matrix_sync(out + (size_t)(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 256,
                            c[0], 16, wmma::mem_row_major);
}

#ifndef SMALL
#define STEP4(i) x = x * 1.0001f + (float)(i), y = y * 0.999f + x, z = z * 1.01f + y, w = w + z;
#define STEP16(i) STEP4(i) STEP4((i) + 1) STEP4((i) + 2) STEP4((i) + 3)
#define STEP64(i) STEP16(i) STEP16((i) + 4) STEP16((i) + 8) STEP16((i) + 12)
#define STEP256(i) STEP64(i) STEP64((i) + 16) STEP64((i) + 32) STEP64((i) + 48)
#define STEP1024(i) STEP256(i) STEP256((i) + 64) STEP256((i) + 128) STEP256((i) + 192)
#define STEP4096(i) STEP1024(i) STEP1024((i) + 256) STEP1024((i) + 512) STEP1024((i) + 768)
#define STEP16384(i) STEP4096(i) STEP4096((i) + 1024) STEP4096((i) + 2048) STEP4096((i) + 3072)
/* Each warp is at another place of 256 KiB of code. */
__global__ void big_code(float *out, int steps)
{
    float x = (float)threadIdx.x, y = 1, z = 2, w = 3;
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
        STEP16384(k) // @ no_instruction
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x + y + z + w;
}

__global__ void small_code(float *out, int steps) // after big_code
{
    float x = (float)threadIdx.x, y = 1, z = 2, w = 3;
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
#pragma unroll 64
        for (int j = 0; j < 4096; j++) {
            STEP4(k + j) // @ wait not_selected
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x + y + z + w;
}

__global__ void __launch_bounds__(1024, 2) spills(const float *in, float *out, int steps)
{
    float a[96];
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int j = 0; j < 96; j++)
        a[j] = in[(i + (size_t)j * 4096) & (N - 1)];
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
#pragma unroll
        for (int j = 0; j < 96; j++)
            a[j] = a[j] * a[(j * 37 + 11) % 96] + 0.5f; // @ long_scoreboard lg_throttle
    }
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 96; j++)
        sum += a[j];
    out[i] = sum;
}

__global__ void __launch_bounds__(256, 2) no_spills(const float *in, float *out, int steps) // after spills
{
    float a[96];
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll
    for (int j = 0; j < 96; j++)
        a[j] = in[(i + (size_t)j * 4096) & (N - 1)];
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
#pragma unroll
        for (int j = 0; j < 96; j++)
            a[j] = a[j] * a[(j * 37 + 11) % 96] + 0.5f; // @ wait not_selected dispatch_stall
    }
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 96; j++)
        sum += a[j];
    out[i] = sum;
}

#endif

__global__ void few_warps(const float *in, float *out, int steps) /* a block of one warp an SM */
{
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < steps; k++)
        sum += in[(i + (size_t)k * 1048583) & (N - 1)]; // @ long_scoreboard
    out[i] = sum;
}

__global__ void more_warps(const float *in, float *out, int steps) // after few_warps
{
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < steps; k++)
        sum += in[(i + (size_t)k * 1048583) & (N - 1)]; // @ long_scoreboard
    out[i] = sum;
}

__global__ void divergent(float *out, int steps)
{
    float x = (float)threadIdx.x;
    unsigned lane = threadIdx.x % 32;
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
        unsigned which = (lane * 2654435761u + (unsigned)k) >> 3;
        switch (which % 8) { // @ branch_resolving wait no_instruction
        case 0: x = __sinf(x); break;
        case 1: x = x * x + 0.1f; break;
        case 2: x = sqrtf(x + 1.0f); break;
        case 3: x = x / 3.1f; break;
        case 4: x = fabsf(x) - 0.5f; break;
        case 5: x = __expf(-x); break;
        case 6: x = __logf(x + 2.0f); break;
        default: x = x + 1.0f; break;
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

__global__ void uniform(float *out, int steps) // after divergent
{
    float x = (float)threadIdx.x;
    unsigned lane = threadIdx.x / 32;
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
        unsigned which = (lane * 2654435761u + (unsigned)k) >> 3;
        switch (which % 8) { // @ branch_resolving wait no_instruction short_scoreboard not_selected
        case 0: x = __sinf(x); break;
        case 1: x = x * x + 0.1f; break;
        case 2: x = sqrtf(x + 1.0f); break;
        case 3: x = x / 3.1f; break;
        case 4: x = fabsf(x) - 0.5f; break;
        case 5: x = __expf(-x); break;
        case 6: x = __logf(x + 2.0f); break;
        default: x = x + 1.0f; break;
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

__global__ void fences(uint32_t *out, int steps)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < steps; k++) {
        out[i] = (uint32_t)k;
        __threadfence(); // @ membar
    }
}

__global__ void one_fence(uint32_t *out, int steps) // after fences
{
    volatile uint32_t *at = out + blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < steps; k++)
        *at = (uint32_t)k; // @ lg_throttle long_scoreboard drain
    __threadfence();
}

__global__ void sleeps(float *out, int steps)
{
    for (int k = 0; k < steps; k++)
        __nanosleep(1000); // @ sleeping
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__global__ void shuffle_links(uint32_t *next) /* one cycle through all, in large steps */
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
        next[i] = (uint32_t)((i * 1664525u + 1013904223u) & (N - 1));
}

__global__ void near_links(uint32_t *next) /* neighbours go on to neighbours */
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
        next[i] = (uint32_t)((i + 33792) & (N - 1));
}

/* Is it one of the words of the list? */
static bool wanted(const char *list, const char *name)
{
    size_t length = strlen(name);
    if (!list || strcmp(list, "all") == 0)
        return true;
    for (const char *at = list; at; at = strchr(at, ','), at += at ? 1 : 0) {
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    }
    return false;
}

#define RUN(kernel, grid, block, ...)                                                              \
    if (wanted(only, #kernel)) {                                                                   \
        for (int i = 0; i < repeats; i++)                                                          \
            kernel<<<grid, block>>>(__VA_ARGS__);                                                  \
        CHECK(cudaGetLastError());                                                                 \
        CHECK(cudaDeviceSynchronize());                                                            \
    }

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    int repeats = argc > 2 ? atoi(argv[2]) : 10;
    uint32_t *links;
    float *in, *out;
    CHECK(cudaMalloc(&links, N * 4));
    CHECK(cudaMalloc(&in, N * 4));
    CHECK(cudaMalloc(&out, N * 4));
    CHECK(cudaMemset(in, 0, N * 4));
    CHECK(cudaMemset(out, 0, N * 4));
    shuffle_links<<<1056, 256>>>(links);
    CHECK(cudaDeviceSynchronize());
    RUN(chase, 132, 256, links, (uint32_t *)out, 2000)
    near_links<<<1056, 256>>>(links);
    CHECK(cudaDeviceSynchronize());
    RUN(chase_near, 132, 256, links, (uint32_t *)out, 2000)
    RUN(uncoalesced, 1056, 256, in, out, 200)
    RUN(coalesced, 1056, 256, in, out, 200)
    RUN(bank_conflicts, 1056, 256, out, 2000)
    RUN(no_conflicts, 1056, 256, out, 2000)
    RUN(one_address, 132, 128, out + N - 1, out, 20)
    RUN(many_addresses, 132, 128, out + N / 2, out, 20)
    RUN(barriers, 1056, 256, out, 200)
    RUN(even_barriers, 1056, 256, out, 200)
    RUN(doubles, 1056, 256, (double *)out, 1000)
    RUN(floats, 1056, 256, out, 1000)
    RUN(fma_chain, 132, 128, out, 200000)
    RUN(fma_chains, 132, 128, out, 200000)
    RUN(tensor, 528, 256, out, 1000)
#ifndef SMALL
    RUN(big_code, 528, 256, out, 6)
    RUN(small_code, 528, 256, out, 6)
    RUN(spills, 264, 1024, in, out, 40)
    RUN(no_spills, 1056, 256, in, out, 40)
#endif
    RUN(few_warps, 132, 32, in, out, 3200)
    RUN(more_warps, 2112, 32, in, out, 200)
    RUN(divergent, 1056, 256, out, 500)
    RUN(uniform, 1056, 256, out, 500)
    RUN(fences, 264, 256, (uint32_t *)out, 200)
    RUN(one_fence, 264, 256, (uint32_t *)out, 200)
    RUN(sleeps, 264, 256, out, 500)
    if (argc > 3 && strcmp(argv[3], "reset") == 0)
        CHECK(cudaDeviceReset());
    return 0;
}
