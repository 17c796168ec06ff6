/* Holds, wastes and forgets device memory in known ways, in steps that are NVTX ranges, and says
 * what and at which of its lines: weights to the end, activations of every step from the driver's
 * pool, pinned staging memory, a table that grows three times (state, no leak), 1 KiB that every
 * step forgets.
 *
 *     cuda_holders [STEPS] */
#include "did.h"
#include "perfkit/annotate.h"

#define MIB ((size_t)1 << 20)
#define WEIGHTS (256 * MIB)
#define ACTIVATIONS (64 * MIB)
#define STAGING (8 * MIB)
#define TABLE (2 * MIB)
#define FORGOTTEN ((size_t)1024)
#define GROWTHS 3

static int lines[5];
enum { AT_WEIGHTS, AT_ACTIVATIONS, AT_STAGING, AT_TABLE, AT_FORGOTTEN };

static void must(cudaError_t result, const char *what)
{
    if (result == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(result));
    exit(1);
}
#define MUST(what, call) (lines[what] = __LINE__, must((call), #call))

/* Not inlined: each has its own frame. */
#define FUNCTION static __attribute__((noinline))

FUNCTION void *weights()
{
    void *memory;
    MUST(AT_WEIGHTS, cudaMalloc(&memory, WEIGHTS));
    return memory;
}

FUNCTION void *activations(cudaStream_t stream)
{
    void *memory;
    MUST(AT_ACTIVATIONS, cudaMallocAsync(&memory, ACTIVATIONS, stream));
    return memory;
}

FUNCTION void *staging()
{
    void *memory;
    MUST(AT_STAGING, cudaMallocHost(&memory, STAGING));
    return memory;
}

FUNCTION void table()
{
    void *memory;
    MUST(AT_TABLE, cudaMalloc(&memory, TABLE));
}

FUNCTION void forget()
{
    void *memory;
    MUST(AT_FORGOTTEN, cudaMalloc(&memory, FORGOTTEN));
}

FUNCTION void step(int number, cudaStream_t stream)
{
    perfkit_range_push("step");
    void *held = activations(stream);
    if (number < GROWTHS)
        table();
    forget();
    must(cudaMemsetAsync(held, 0, ACTIVATIONS, stream), "cudaMemsetAsync");
    must(cudaFreeAsync(held, stream), "cudaFreeAsync");
    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    perfkit_range_pop();
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 20;
    cudaStream_t stream;
    must(cudaStreamCreate(&stream), "cudaStreamCreate");
    void *model = weights(), *buffer = staging();
    for (int i = 0; i < steps; i++)
        step(i, stream);
    must(cudaFree(model), "cudaFree");
    must(cudaFreeHost(buffer), "cudaFreeHost");
    printf("{\"steps\": %d, \"weights\": [%d, %zu], \"activations\": [%d, %zu], \"staging\": [%d, "
           "%zu], "
           "\"table\": [%d, %zu], \"forget\": [%d, %zu]}\n",
           steps, lines[AT_WEIGHTS], WEIGHTS, lines[AT_ACTIVATIONS], ACTIVATIONS, lines[AT_STAGING],
           STAGING, lines[AT_TABLE], TABLE * GROWTHS, lines[AT_FORGOTTEN], FORGOTTEN);
    return 0;
}
