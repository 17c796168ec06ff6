/* Repeats a CUDA program's kernels at its end: for bench/outside_pairs, whose programs run the
 * kernel that they are about for 20 us, once, and have nothing of it to sample. Linked into the
 * program with --wrap for the functions below. With OUTSIDE_REPEAT=N in the environment memory
 * stays allocated until main returns or calls exit; then all launches run N more times, in their
 * order and with their arguments, each time from the memory that the first of them found. Memory
 * that did not change since is not copied. Without OUTSIDE_REPEAT everything passes through. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BLOCKS 64
#define MOST_LAUNCHES 4096
#define MOST_PARAMETERS 64

typedef CUresult parameter_info(CUkernel, size_t, size_t *, size_t *);

struct block {
    char *device, *before; /* `before`: on the host, as the first launch found it */
    void *copy;            /* the same on the device, of a block that changed */
    size_t bytes;
};

struct launch {
    cudaKernel_t kernel;
    dim3 grid, threads;
    size_t shared;
    cudaStream_t stream;
    void **arguments;
};

static struct block blocks[MOST_BLOCKS];
static struct launch launches[MOST_LAUNCHES];
static size_t block_count, launch_count;
static int repeats = -1;

int __real_main(int argc, char **argv);
void __real_exit(int status) __attribute__((noreturn));
cudaError_t __real_cudaMalloc(void **pointer, size_t bytes);
cudaError_t __real_cudaFree(void *pointer);
cudaError_t __real_cudaDeviceReset(void);
cudaError_t __real___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 threads,
                                      void **arguments, size_t shared, cudaStream_t stream);

static void must(cudaError_t code, const char *call)
{
    if (code == cudaSuccess)
        return;
    fprintf(stderr, "outside_repeat: %s: %s\n", call, cudaGetErrorString(code));
    _Exit(9);
}

#define MUST(call) must(call, #call)

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory)
        must(cudaErrorMemoryAllocation, "malloc");
    return memory;
}

static int is_repeating(void)
{
    if (repeats < 0) {
        const char *text = getenv("OUTSIDE_REPEAT");
        repeats = text ? atoi(text) : 0;
    }
    return repeats > 0;
}

static void copy_changed_blocks(void)
{
    for (size_t i = 0; i < block_count; i++) {
        struct block *block = &blocks[i];
        if (!block->before) /* allocated later */
            continue;
        char *now = allocate(block->bytes);
        MUST(cudaMemcpy(now, block->device, block->bytes, cudaMemcpyDeviceToHost));
        if (memcmp(now, block->before, block->bytes)) {
            MUST(__real_cudaMalloc(&block->copy, block->bytes));
            MUST(cudaMemcpy(block->copy, block->before, block->bytes, cudaMemcpyHostToDevice));
        }
        free(now);
    }
}

static void repeat_launches(void)
{
    int times = launch_count > 0 ? repeats : 0;
    if (times <= 0)
        return;
    repeats = 0;
    MUST(cudaDeviceSynchronize());
    copy_changed_blocks();
    for (int n = 0; n < times; n++) {
        for (size_t i = 0; i < block_count; i++) {
            if (blocks[i].copy)
                MUST(cudaMemcpyAsync(blocks[i].device, blocks[i].copy, blocks[i].bytes,
                                     cudaMemcpyDeviceToDevice, 0));
        }
        for (size_t i = 0; i < launch_count; i++) {
            struct launch *l = &launches[i];
            MUST(__real___cudaLaunchKernel(l->kernel, l->grid, l->threads, l->arguments, l->shared,
                                           l->stream));
        }
    }
    MUST(cudaDeviceSynchronize());
}

static void keep_blocks(void)
{
    MUST(cudaDeviceSynchronize());
    for (size_t i = 0; i < block_count; i++) {
        blocks[i].before = allocate(blocks[i].bytes);
        MUST(cudaMemcpy(blocks[i].before, blocks[i].device, blocks[i].bytes,
                        cudaMemcpyDeviceToHost));
    }
}

static void **copy_arguments(cudaKernel_t kernel, void **arguments)
{
    static parameter_info *info;
    size_t offset, bytes;
    if (!info)
        MUST(cudaGetDriverEntryPointByVersion("cuKernelGetParamInfo", (void **)&info, 12040,
                                              cudaEnableDefault, NULL));
    void **copies = allocate(MOST_PARAMETERS * sizeof *copies);
    for (size_t i = 0; i < MOST_PARAMETERS && !info((CUkernel)kernel, i, &offset, &bytes); i++) {
        copies[i] = allocate(bytes);
        memcpy(copies[i], arguments[i], bytes);
    }
    return copies;
}

cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 threads,
                                      void **arguments, size_t shared, cudaStream_t stream)
{
    if (is_repeating()) {
        if (launch_count == 0)
            keep_blocks();
        if (launch_count == MOST_LAUNCHES)
            must(cudaErrorUnknown, "more launches than are kept");
        launches[launch_count++] = (struct launch){
            .kernel = kernel,
            .grid = grid,
            .threads = threads,
            .shared = shared,
            .stream = stream,
            .arguments = copy_arguments(kernel, arguments),
        };
    }
    return __real___cudaLaunchKernel(kernel, grid, threads, arguments, shared, stream);
}

cudaError_t __wrap_cudaMalloc(void **pointer, size_t bytes)
{
    cudaError_t code = __real_cudaMalloc(pointer, bytes);
    if (code == cudaSuccess && is_repeating()) {
        if (block_count == MOST_BLOCKS)
            must(cudaErrorUnknown, "more allocations than are kept");
        blocks[block_count++] = (struct block){.device = *pointer, .bytes = bytes};
    }
    return code;
}

cudaError_t __wrap_cudaFree(void *pointer)
{
    return is_repeating() ? cudaSuccess : __real_cudaFree(pointer);
}

cudaError_t __wrap_cudaDeviceReset(void)
{
    return is_repeating() ? cudaSuccess : __real_cudaDeviceReset();
}

int __wrap_main(int argc, char **argv)
{
    int status = __real_main(argc, argv);
    repeat_launches();
    return status;
}

void __wrap_exit(int status)
{
    repeat_launches();
    __real_exit(status);
}
