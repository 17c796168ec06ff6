/* What a backend implements and what its objects look like; for the files of this folder only. */
#ifndef KERNELS_DEVICE_BACKEND_H
#define KERNELS_DEVICE_BACKEND_H

#include "kernels/device/device.h"

struct dev_ops {
    void (*close)(struct dev *dev);
    int (*alloc)(struct dev *dev, struct dev_buffer *buffer);
    int (*view)(struct dev_buffer *view, size_t offset);
    int (*limit)(struct dev *dev, size_t bytes); /* NULL: counted by the layer alone */
    void (*free)(struct dev_buffer *buffer);
    int (*alloc_host)(struct dev *dev, struct dev_host *host);
    void (*free_host)(struct dev_host *host);
    int (*queue_create)(struct dev_queue *queue);
    void (*queue_destroy)(struct dev_queue *queue);
    int (*queue_finish)(struct dev_queue *queue);
    int (*queue_flush)(struct dev_queue *queue);
    int (*queue_wait)(struct dev_queue *queue, struct dev_event *event);
    int (*write)(struct dev_queue *queue, struct dev_buffer *to, size_t offset, const void *from,
                 size_t bytes, enum dev_sync sync, struct dev_event *event);
    int (*read)(struct dev_queue *queue, const struct dev_buffer *from, size_t offset, void *to,
                size_t bytes, enum dev_sync sync, struct dev_event *event);
    int (*fill)(struct dev_queue *queue, struct dev_buffer *to, uint8_t byte,
                struct dev_event *event);
    int (*copy)(struct dev_queue *queue, const struct dev_buffer *from, size_t from_offset,
                struct dev_buffer *to, size_t to_offset, size_t bytes, struct dev_event *event);
    int (*mark)(struct dev_queue *queue, struct dev_event *event);
    int (*elapsed_ns)(struct dev_event *from, struct dev_event *to, uint64_t *out_ns);
    int (*call)(struct dev_queue *queue, int (*call)(void *stream, void *context), void *context,
                struct dev_event *event); /* NULL: not available, as the next ones */
    uint32_t (*peers)(void);
    int (*peer_copy)(struct dev_queue *queue, uint32_t peer, size_t bytes, int rounds,
                     struct dev_peer *out);
    int (*kernel_shape)(struct dev_kernel *kernel, uint32_t group_items, size_t dynamic_bytes,
                        struct dev_kernel_shape *out);
    int (*graph_begin)(struct dev_queue *queue);
    int (*graph_end)(struct dev_queue *queue, struct dev_graph *graph);
    int (*graph_launch)(struct dev_queue *queue, struct dev_graph *graph, struct dev_event *event);
    void (*graph_free)(struct dev_graph *graph);
    int (*kernel)(struct dev *dev, const struct dev_module *module, struct dev_kernel *kernel);
    void (*kernel_free)(struct dev_kernel *kernel);
    int (*launch)(struct dev_queue *queue, struct dev_kernel *kernel, struct dev_grid grid,
                  const struct dev_arg *args, size_t arg_count, struct dev_event *event);
    int (*event_wait)(struct dev_event *event);
    int (*event_duration_ns)(struct dev_event *event, uint64_t *out_ns);
    void (*event_release)(struct dev_event *event);
};

/* A backend's own device structure has this as its first member. */
struct dev {
    const struct dev_ops *ops;
    struct dev_info info;
    struct dev_kernel *kernels; /* all that were looked up, freed by dev_close */
    struct dev_memory memory;
    char error[1024];
};

struct dev_buffer {
    struct dev *dev;
    struct dev_buffer *parent; /* of a view, else NULL */
    size_t bytes;
    void *handle; /* cl_mem, CUDA device pointer, host memory */
};

struct dev_host {
    struct dev *dev;
    size_t bytes;
    void *pointer;
    void *handle;
};

struct dev_queue {
    struct dev *dev;
    void *handle;
    bool recording; /* into a graph */
    bool untimed;   /* commands have no times of the device */
};

struct dev_graph {
    struct dev *dev;
    void *handle;
};

struct dev_event {
    struct dev *dev;
    void *handle;  /* cl_event, or the CUDA event after the command */
    void *started; /* the CUDA event before the command */
    uint64_t duration_ns;
    uint64_t end_ns; /* CPU only */
};

struct dev_kernel {
    struct dev *dev;
    struct dev_kernel *next;
    const struct dev_module *module;
    const char *name;
    void *handle;
    dev_cpu_function cpu;
    const void *cuda;
    size_t cuda_dynamic_bytes; /* of shared memory that the kernel was allowed so far */
};

/* Each opens a device or writes into `why`. Those that were not built say so. */
struct dev *dev_open_cuda(uint32_t nth, char *why, size_t why_bytes);
struct dev *dev_open_opencl(uint32_t nth, char *why, size_t why_bytes);
struct dev *dev_open_cpu(uint32_t threads, char *why, size_t why_bytes);

/* cuda_peer.c: of the CUDA backend's table. */
uint32_t cuda_peers(void);
int cuda_peer_copy(struct dev_queue *queue, uint32_t peer, size_t bytes, int rounds,
                   struct dev_peer *out);

#endif
