/* One interface to the devices that the kernels run on: CUDA, OpenCL, or the CPU's own threads.
 *
 * As thin as it can be while a workload still says what it computes and not on what: buffers,
 * copies, in-order queues, launches of named kernels, and the device's own times. A call maps to
 * one call of the API below it, so that a profile of a workload shows the workload and not this
 * layer.
 *
 * Functions that return int give 0 for success and -1 for failure; dev_error_text then says what
 * failed and why. A device and what was made from it belong to one thread at a time. Objects are
 * released by their own function, all of them before dev_close.
 */
#ifndef KERNELS_DEVICE_DEVICE_H
#define KERNELS_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/device/cuda_kernel.h"

enum dev_backend { DEV_AUTO, DEV_CUDA, DEV_OPENCL, DEV_CPU };

struct dev;
struct dev_buffer; /* memory of the device */
struct dev_host;   /* page-locked memory of the host */
struct dev_queue;  /* commands of one queue run in order */
struct dev_event;  /* one command: its completion and its times */
struct dev_kernel;

struct dev_info {
    enum dev_backend backend;
    bool is_cpu; /* the device's compute units are the host's cores */
    char name[128];
    char platform[128]; /* the implementation and its version */
    uint32_t compute_units;
    uint32_t max_group_items;
    size_t local_bytes; /* memory shared by a group */
    size_t global_bytes;
    uint32_t arch;      /* CUDA compute capability, 90 for 9.0; 0 elsewhere */
    bool fp16;          /* computes in half precision; every backend can store it */
    bool bf16;          /* computes in bfloat16 */
    bool graphs;        /* dev_graph_begin works */
    size_t cache_bytes; /* the cache that all compute units share; 0: not known */
};

/* ---- kernels --------------------------------------------------------------------------------- */

#define DEV_MAX_ARGS 24

/* What a CPU kernel sees of its launch. Argument i is the address of the scalar, or for a buffer
 * the memory itself; local arguments are NULL, a CPU kernel brings its own scratch. */
struct dev_cpu_launch {
    uint32_t groups;
    uint32_t group_items;
    uint32_t threads; /* how many threads run this launch: 1 needs no atomics */
    void *arg[DEV_MAX_ARGS];
};

/* Computes groups first .. last-1; called at the same time from several threads. */
typedef void (*dev_cpu_function)(const struct dev_cpu_launch *launch, uint32_t first,
                                 uint32_t last);

struct dev_cpu_kernel {
    const char *name;
    dev_cpu_function function;
};

/* The kernels of one computation, on every backend that was built. A kernel has the same name
 * and the same arguments on each. Tables end with a NULL name. */
struct dev_module {
    const char *name;
    const char *opencl_source; /* NULL when not built */
    const struct dev_cuda_kernel *cuda;
    const struct dev_cpu_kernel *cpu;
};

#ifdef PERFKIT_HAVE_OPENCL
#define DEV_WITH_OPENCL(VALUE) VALUE
#else
#define DEV_WITH_OPENCL(VALUE) NULL
#endif
#ifdef PERFKIT_HAVE_CUDA
#define DEV_WITH_CUDA(VALUE) VALUE
#else
#define DEV_WITH_CUDA(VALUE) NULL
#endif

/* Defines NAME_module in the file that has NAME_cpu_kernels: with the text of opencl/NAME.cl and
 * the kernels of cuda/NAME.cu where these backends are built. */
#define DEV_MODULE(NAME)                                                                           \
    extern const char NAME##_opencl_source[];                                                      \
    extern const struct dev_cuda_kernel NAME##_cuda_kernels[];                                     \
    const struct dev_module NAME##_module = {                                                      \
        .name = #NAME,                                                                             \
        .opencl_source = DEV_WITH_OPENCL(NAME##_opencl_source),                                    \
        .cuda = DEV_WITH_CUDA(NAME##_cuda_kernels),                                                \
        .cpu = NAME##_cpu_kernels,                                                                 \
    }

enum dev_arg_kind { DEV_ARG_BUFFER, DEV_ARG_U32, DEV_ARG_F32, DEV_ARG_LOCAL };

struct dev_arg {
    enum dev_arg_kind kind;
    union {
        struct dev_buffer *buffer;
        uint32_t u32;
        float f32;
        size_t local_bytes;
    } value;
};

static inline struct dev_arg dev_arg_buffer(struct dev_buffer *buffer)
{
    return (struct dev_arg){.kind = DEV_ARG_BUFFER, .value.buffer = buffer};
}

static inline struct dev_arg dev_arg_u32(uint32_t number)
{
    return (struct dev_arg){.kind = DEV_ARG_U32, .value.u32 = number};
}

static inline struct dev_arg dev_arg_f32(float number)
{
    return (struct dev_arg){.kind = DEV_ARG_F32, .value.f32 = number};
}

/* Group memory of a size chosen at launch. A pointer parameter in OpenCL; in CUDA the kernel's
 * dynamic shared memory, so at most one, and no parameter. */
static inline struct dev_arg dev_arg_local(size_t bytes)
{
    return (struct dev_arg){.kind = DEV_ARG_LOCAL, .value.local_bytes = bytes};
}

/* One dimension: groups x group_items work items. */
struct dev_grid {
    uint32_t groups;
    uint32_t group_items;
};

/* The grid that covers `items` with groups of `group_items`, at least one group. */
static inline struct dev_grid dev_grid_for(size_t items, uint32_t group_items)
{
    size_t groups = (items + group_items - 1) / group_items;

    return (struct dev_grid){.groups = groups ? (uint32_t)groups : 1, .group_items = group_items};
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Opens a device. DEV_AUTO takes CUDA, else OpenCL, else the CPU, each when it was built and
 * finds a device. cpu_threads: threads of the CPU backend, 0 for one per core, ignored
 * elsewhere. On failure *out is NULL and `why` (why_bytes long, NUL-terminated) holds one reason
 * for each backend that was tried. */
int dev_open(enum dev_backend backend, uint32_t cpu_threads, struct dev **out, char *why,
             size_t why_bytes);
void dev_close(struct dev *dev);

/* The same for one of several devices: 0 is what dev_open takes. CUDA counts as its runtime does;
 * OpenCL counts GPUs over all platforms, then accelerators, then the rest; the CPU backend has one.
 * DEV_AUTO is not allowed. */
int dev_open_nth(enum dev_backend backend, uint32_t nth, uint32_t cpu_threads, struct dev **out,
                 char *why, size_t why_bytes);

const struct dev_info *dev_info(const struct dev *dev);
const char *dev_backend_name(enum dev_backend backend);

/* What the last failing call on `dev` was and why, for a person to read. */
const char *dev_error_text(const struct dev *dev);

/* Forgets it, so that a failure that names no reason (the host's memory ran out, say) does not get
 * the one of an earlier call. */
void dev_clear_error(struct dev *dev);

/* Notes "WHAT: WHY" as the device's last error; returns -1. For what is built on this layer and
 * fails in its own way (a library that is loaded at run time, say). */
int dev_fail(struct dev *dev, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- memory ---------------------------------------------------------------------------------- */

#define DEV_VIEW_ALIGN_BYTES 256

int dev_alloc(struct dev *dev, size_t bytes, struct dev_buffer **out);

/* A part of a buffer under a handle of its own; offset a multiple of DEV_VIEW_ALIGN_BYTES. To be
 * freed before its parent. */
int dev_view(struct dev_buffer *parent, size_t offset, size_t bytes, struct dev_buffer **out);
void dev_free(struct dev_buffer *buffer); /* NULL is allowed */

/* What this layer's buffers take of the device: now, at most so far, and the limit (0: none). */
struct dev_memory {
    size_t used_bytes;
    size_t peak_bytes;
    size_t limit_bytes;
};

struct dev_memory dev_memory(const struct dev *dev);

/* From now on buffers of more than `bytes` in all cannot be had, as if the device were that
 * small: this layer counts. On CUDA a ballast takes the rest of the free memory too, less 32 MiB
 * that the driver needs for itself, so that for a request well beyond the limit it is the driver
 * that says no, and a profiler sees it. Once per device. */
int dev_limit(struct dev *dev, size_t bytes);

/* Freed buffers are kept by size, rounded up to a power of two, and handed out again: after the
 * first round a program that allocates for each operation asks the driver for nothing. A buffer
 * of a pool may be handed out again at once: right for commands of one in-order queue. */
struct dev_pool;

struct dev_pool_stats {
    uint64_t requests;
    uint64_t allocations; /* of those, how many the device had to serve */
    size_t held_bytes;    /* by buffers in use and kept ones */
};

int dev_pool_create(struct dev *dev, struct dev_pool **out);
void dev_pool_destroy(struct dev_pool *pool); /* with all its buffers; NULL is allowed */
int dev_pool_alloc(struct dev_pool *pool, size_t bytes, struct dev_buffer **out);
void dev_pool_free(struct dev_pool *pool, struct dev_buffer *buffer); /* NULL is allowed */
struct dev_pool_stats dev_pool_stats(const struct dev_pool *pool);

/* Page-locked host memory (CUDA: cudaHostAlloc; OpenCL: a mapped CL_MEM_ALLOC_HOST_PTR buffer),
 * mapped for its whole life. */
int dev_alloc_host(struct dev *dev, size_t bytes, struct dev_host **out);
void *dev_host_pointer(const struct dev_host *host);
void dev_free_host(struct dev_host *host); /* NULL is allowed */

/* ---- queues and commands --------------------------------------------------------------------- */

/* Every command takes an optional `event`: where not NULL, *event becomes the command's event,
 * owned by the caller. */

int dev_queue_create(struct dev *dev, struct dev_queue **out);
/* Its commands need not have the device's times (dev_event_duration_ns may fail), which cost time
 * with OpenCL. */
int dev_queue_create_untimed(struct dev *dev, struct dev_queue **out);
void dev_queue_destroy(struct dev_queue *queue); /* NULL is allowed */
int dev_queue_finish(struct dev_queue *queue);

/* Sees to it that the device starts on what was enqueued while the host does something else. */
int dev_queue_flush(struct dev_queue *queue);

/* Later commands of `queue` start after `event`, a command of another queue. */
int dev_queue_wait(struct dev_queue *queue, struct dev_event *event);

enum dev_sync { DEV_ASYNC, DEV_BLOCKING };

int dev_write(struct dev_queue *queue, struct dev_buffer *to, size_t offset, const void *from,
              size_t bytes, enum dev_sync sync, struct dev_event **event);
int dev_read(struct dev_queue *queue, const struct dev_buffer *from, size_t offset, void *to,
             size_t bytes, enum dev_sync sync, struct dev_event **event);
int dev_fill(struct dev_queue *queue, struct dev_buffer *to, uint8_t byte,
             struct dev_event **event);

/* Between two buffers, or two parts of one that do not overlap. */
int dev_copy(struct dev_queue *queue, const struct dev_buffer *from, size_t from_offset,
             struct dev_buffer *to, size_t to_offset, size_t bytes, struct dev_event **event);

/* Looks a kernel up by name; OpenCL builds the module's source at the first one. Kernels live as
 * long as the device. */
int dev_kernel(struct dev *dev, const struct dev_module *module, const char *name,
               struct dev_kernel **out);
int dev_launch(struct dev_queue *queue, struct dev_kernel *kernel, struct dev_grid grid,
               const struct dev_arg *args, size_t arg_count, struct dev_event **event);

/* What the compiler and the hardware make of a kernel in groups of `group_items`. */
struct dev_kernel_shape {
    uint32_t registers;   /* per work item */
    size_t spill_bytes;   /* of private memory per work item */
    size_t local_bytes;   /* static, per group */
    uint32_t unit_groups; /* groups that one compute unit holds at a time */
    double occupancy;     /* work items held over those that the unit could hold */
};

/* -1 where the backend does not tell (all but CUDA). */
int dev_kernel_shape(struct dev_kernel *kernel, uint32_t group_items, size_t dynamic_local_bytes,
                     struct dev_kernel_shape *out);

/* Lets `call` enqueue work of a library on the queue's native stream (CUDA: cudaStream_t; the CPU
 * backend has none, and the call does its work at once) as one command. `call` returns 0, or -1
 * after dev_fail. Fails on OpenCL. */
int dev_call(struct dev_queue *queue, int (*call)(void *stream, void *context), void *context,
             struct dev_event **event);

/* The native address of a buffer's memory, for dev_call: CUDA's device pointer, the CPU's own;
 * NULL on OpenCL. */
void *dev_buffer_address(const struct dev_buffer *buffer);

/* ---- other devices --------------------------------------------------------------------------- */

/* Devices of the same kind beside this one; 0 where the backend cannot copy to them (all but CUDA).
 */
uint32_t dev_peers(const struct dev *dev);

struct dev_peer {
    uint64_t best_ns; /* of the rounds, by the device's clock */
    uint32_t ordinal; /* as dev_open_nth counts */
    bool direct;      /* else by way of the host's memory */
};

/* Copies `bytes` of this device's memory to that of its peer 0 ... dev_peers - 1, `rounds` times
 * one after the other, each waited for. */
int dev_peer_copy(struct dev_queue *queue, uint32_t peer, size_t bytes, int rounds,
                  struct dev_peer *out);

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Commands of a queue recorded once and replayed with one call. While recording, commands are not
 * run, take no event, and must not wait for the device; a command that cannot be recorded fails,
 * and dev_graph_end with it. dev_graph_end must follow each successful dev_graph_begin. Where
 * dev_info.graphs is false dev_graph_begin fails and says why. */
struct dev_graph;

int dev_graph_begin(struct dev_queue *queue);
int dev_graph_end(struct dev_queue *queue, struct dev_graph **out);
int dev_graph_launch(struct dev_queue *queue, struct dev_graph *graph, struct dev_event **event);
void dev_graph_free(struct dev_graph *graph); /* NULL is allowed */

/* ---- times ----------------------------------------------------------------------------------- */

/* An event of its own behind all that was enqueued so far. */
int dev_mark(struct dev_queue *queue, struct dev_event **event);

/* From the end of one completed command or mark to the end of a later one, ns. */
int dev_elapsed_ns(struct dev_event *from, struct dev_event *to, uint64_t *out_ns);

/* Waits for the command on the host. */
int dev_event_wait(struct dev_event *event);

/* How long the command ran on the device, ns; the command must have completed. CUDA measures
 * with a pair of events around the command, so its figure includes their spacing (1-2 us). */
int dev_event_duration_ns(struct dev_event *event, uint64_t *out_ns);
void dev_event_release(struct dev_event *event); /* NULL is allowed */

#endif
