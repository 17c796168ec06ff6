/* What the files of cuda_parity share (parity.cu): calls that are counted as they are made, and
 * what is said of memory and launches. */
#ifndef PERFKIT_TESTS_CUDA_PARITY_H
#define PERFKIT_TESTS_CUDA_PARITY_H

#include <string.h>

#include "did.h"

extern did done;

enum {
    COPY_HTOD = 1,
    COPY_DTOH = 2,
    COPY_HTOA,
    COPY_ATOH,
    COPY_ATOA,
    COPY_ATOD,
    COPY_DTOA,
    COPY_DTOD,
    COPY_HTOH,
    COPY_PTOP
};
enum { PAGEABLE = 1, PINNED, DEVICE, ARRAY, MANAGED, POOL = 9 };

/* Call a runtime function and count the call under its name. */
#define DO(function, ...)                                                                          \
    do {                                                                                           \
        CHECK(function(__VA_ARGS__));                                                              \
        done.n("api", #function);                                                                  \
    } while (0)
#define DO_DRIVER(function, ...)                                                                   \
    do {                                                                                           \
        DRIVER_CHECK(DRIVER(function)(__VA_ARGS__));                                               \
        done.n("api", #function);                                                                  \
    } while (0)
/* kind, CUPTI's number: 1 event, 2 stream for an event, 3 stream, 4 device */
#define WAIT(function, kind, ...)                                                                  \
    do {                                                                                           \
        DO(function, __VA_ARGS__);                                                                 \
        done.n("waits", #function " " #kind);                                                      \
    } while (0)
#define WAIT_DEVICE_NOW()                                                                          \
    do {                                                                                           \
        CHECK(cudaDeviceSynchronize());                                                            \
        done.n("api", "cudaDeviceSynchronize");                                                    \
        done.n("waits", "cudaDeviceSynchronize 4");                                                \
    } while (0)

/* What the program says that it did. `kind` and memory kinds: the enums above. */
void allocated(int kind, size_t bytes);
void freed(int count = 1);
void copied(int kind, int from, int to, size_t bytes, int times = 1);
void filled(size_t bytes, int times = 1);
void launched(const char *name, dim3 grid, dim3 block, size_t dynamic, int times,
              unsigned cluster = 0, bool cooperative = false);

/* Memory, and said to be. */
char *device_memory(size_t bytes);
char *pinned_memory(size_t bytes);
void free_device(void *p);
void free_pinned(void *p);

/* The kernel parity_plain with one block of 32 threads; the same as a node's function. */
void launch_plain(float *data, cudaStream_t stream = 0);
void *plain_kernel();

/* Each in the file of its family, as mode_NAME. */
#define PARITY_MODES(X)                                                                            \
    X(kernels)                                                                                     \
    X(cooperative) X(cluster) X(memory) X(pool) X(managed) X(vmm) X(copies) X(arrays) X(fills)     \
        X(peer) X(events) X(streams) X(threads) X(nvtx) X(graph_capture) X(graph_manual) X(module) \
            X(green) X(profiler)

#define X(name) void mode_##name();
PARITY_MODES(X)
#undef X

#endif
