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
};

/* ---- kernels ------------------------------------------------------------------------------- */

#define DEV_MAX_ARGS 16

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

/* ---- devices ------------------------------------------------------------------------------- */

/* Opens a device. DEV_AUTO takes CUDA, else OpenCL, else the CPU, each when it was built and
 * finds a device. cpu_threads: threads of the CPU backend, 0 for one per core, ignored
 * elsewhere. On failure *out is NULL and `why` (why_bytes long, NUL-terminated) holds one reason
 * for each backend that was tried. */
int dev_open(enum dev_backend backend, uint32_t cpu_threads, struct dev **out, char *why,
             size_t why_bytes);
void dev_close(struct dev *dev);

const struct dev_info *dev_info(const struct dev *dev);
const char *dev_backend_name(enum dev_backend backend);

/* What the last failing call on `dev` was and why, for a person to read. */
const char *dev_error_text(const struct dev *dev);

/* ---- memory --------------------------------------------------------------------------------- */

#define DEV_VIEW_ALIGN_BYTES 256

int dev_alloc(struct dev *dev, size_t bytes, struct dev_buffer **out);

/* A part of a buffer under a handle of its own; offset a multiple of DEV_VIEW_ALIGN_BYTES. To be
 * freed before its parent. */
int dev_view(struct dev_buffer *parent, size_t offset, size_t bytes, struct dev_buffer **out);
void dev_free(struct dev_buffer *buffer); /* NULL is allowed */

/* Page-locked host memory (CUDA: cudaHostAlloc; OpenCL: a mapped CL_MEM_ALLOC_HOST_PTR buffer),
 * mapped for its whole life. */
int dev_alloc_host(struct dev *dev, size_t bytes, struct dev_host **out);
void *dev_host_pointer(const struct dev_host *host);
void dev_free_host(struct dev_host *host); /* NULL is allowed */

/* ---- queues and commands -------------------------------------------------------------------- */

/* Every command takes an optional `event`: where not NULL, *event becomes the command's event,
 * owned by the caller. */

int dev_queue_create(struct dev *dev, struct dev_queue **out);
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

/* Looks a kernel up by name; OpenCL builds the module's source at the first one. Kernels live as
 * long as the device. */
int dev_kernel(struct dev *dev, const struct dev_module *module, const char *name,
               struct dev_kernel **out);
int dev_launch(struct dev_queue *queue, struct dev_kernel *kernel, struct dev_grid grid,
               const struct dev_arg *args, size_t arg_count, struct dev_event **event);

/* Waits for the command on the host. */
int dev_event_wait(struct dev_event *event);

/* How long the command ran on the device, ns; the command must have completed. CUDA measures
 * with a pair of events around the command, so its figure includes their spacing (1-2 us). */
int dev_event_duration_ns(struct dev_event *event, uint64_t *out_ns);
void dev_event_release(struct dev_event *event); /* NULL is allowed */

#endif
