/* What the files of the OpenCL layer share.
 *
 * layer.c   entry points of the loader, dispatch table     call.c     CALL and device records
 * queue.c   queues, the FIFO of events in flight           harvest.c  times of finished commands
 * clock.c   which clock a device stamps, anchors           device.c   devices and contexts
 * queue.c    what the program must not notice               layer.c      extension entry points
 * launch.c, transfer.c, memory.c, memory.c, sync.c            the wrappers by kind of command
 * table.c   handle -> state, lock-free to read
 *
 * Rules: no lock is held across a driver call, but for the harvest of a queue, which no thread
 * waits for longer than its timeout; what a lock protects is in order between any two instructions,
 * because a signal handler may jump out of them (core/lock.h); memory comes from mmap and is never
 * given back to a reader that may still look (objects here are replaced in place, not freed). */
#ifndef PERFKIT_COLLECTORS_OPENCL_OCL_H
#define PERFKIT_COLLECTORS_OPENCL_OCL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/core/collector.h"
#include "collectors/core/lock.h"
#include "collectors/opencl/hooks.h"

/* ---- the driver's functions ------------------------------------------------------------------ */

extern struct _cl_icd_dispatch ocl_next; /* the functions below the layer; NULL = not there */

/* The stack frame of the outermost driver call made through the layer that this thread is inside
 * of, 0 = none. Harvesting is left out meanwhile: a callback of the driver, or a signal handler,
 * may be running. One that was left (a handler jumped out) is found out by the next call. */
extern _Thread_local uintptr_t ocl_inside __attribute__((tls_model("initial-exec")));

/* Around a driver call, in the same function. ocl_enter returns what ocl_inside is to be after it.
 */
static inline __attribute__((always_inline)) uintptr_t ocl_enter(void)
{
    uintptr_t here = COLLECTOR_FRAME(), outer = ocl_inside;
    if (__builtin_expect(outer == 0, 1) || collector_left(here, outer)) {
        ocl_inside = here;
        return 0;
    }
    return outer;
}

/* Call the driver's function. The value is the function's. */
#define OCL_CALL(function, ...)                                                                    \
    __extension__({                                                                                \
        uintptr_t ocl_outer_ = ocl_enter();                                                        \
        __auto_type ocl_result_ = ocl_next.function(__VA_ARGS__);                                  \
        ocl_inside = ocl_outer_;                                                                   \
        ocl_result_;                                                                               \
    })

/* Is perfkit recording? To the very end of the process: while one thread is in exit() the others go
 * on. Also brings up a forked child's state (see ocl_epoch). */
static inline bool ocl_on(void)
{
    return collector_active();
}

/* Counts the forks survived: ids defined under another epoch are unknown in this process. */
extern _Atomic uint32_t ocl_epoch;

/* ---- memory and tables ----------------------------------------------------------------------- */

/* Zeroed memory that is never returned; NULL when there is none. Thread-safe. */
void *ocl_alloc(size_t bytes);

/* Handle -> 64-bit value. Reading takes no lock; entries are added and replaced, never removed
 * (so there are at most as many as there were distinct addresses). 0 = not there. */
struct ocl_slots;
struct ocl_table {
    struct collector_lock lock;
    _Atomic(struct ocl_slots *) slots;
};
uint64_t ocl_table_get(struct ocl_table *table, const void *key);
bool ocl_table_put(struct ocl_table *table, const void *key, uint64_t value);
/* Put unless the key has a value already; the value that it has then (0: no memory). */
uint64_t ocl_table_add(struct ocl_table *table, const void *key, uint64_t value);
void ocl_table_forked(struct ocl_table *table);

/* Address ranges in use: SVM allocations, mapped regions. */
struct ocl_region {
    uintptr_t address;
    size_t bytes;
    uint64_t id;
    uint32_t count; /* how often it was added */
};
struct ocl_regions {
    struct collector_lock lock;
    struct ocl_region *list; /* by rising address */
    _Atomic size_t count;    /* may be looked at without the lock */
    size_t room;
};
bool ocl_region_add(struct ocl_regions *regions, const void *address, size_t bytes, uint64_t id);
/* Take one count off the region that begins at address; false when there is none. */
bool ocl_region_take(struct ocl_regions *regions, const void *address, struct ocl_region *out);

/* ---- devices, contexts, kernels -------------------------------------------------------------- */

struct ocl_device {
    cl_device_id handle;
    struct wire_device about; /* as first described; its texts: */
    char name[128], vendor[64], driver[64], uuid[33];
    bool known;
    _Atomic uint32_t epoch; /* of the ids; written last */
    _Atomic uint32_t defining;
    _Atomic uint32_t id, clock;
    struct ocl_device *next;
    /* clock.c; all but the atomics belong to the thread that set busy */
    _Atomic uint32_t busy;
    _Atomic uint32_t method;
    unsigned candidates;       /* bits of host clocks that fit what was seen so far */
    unsigned observed;         /* commands compared */
    _Atomic uint64_t anchored; /* CLOCK_MONOTONIC of the last anchor */
    int64_t low, high;         /* of device time - CLOCK_MONOTONIC, as of bounds_at (0: none) */
    uint64_t bounds_at;
    unsigned strikes; /* commands that did not fit the clock settled on */
    int64_t doubt;    /* the largest contradiction among bounds */
    uint64_t source;  /* the last anchor by bounds, */
    int64_t offset;   /* and its device time - CLOCK_MONOTONIC */
};
struct ocl_device *ocl_device_of(cl_device_id handle); /* defined; NULL: no memory */
uint32_t ocl_device_id(cl_device_id handle);
uint32_t ocl_context_id(cl_context handle);
uint32_t ocl_context_device(cl_context handle); /* device id, 0 when it has several */
void ocl_device_forked(void);

/* ---- queues ---------------------------------------------------------------------------------- */

enum ocl_entry_kind {
    OCL_ENTRY_COMMAND,   /* DONE of `correlation` */
    OCL_ENTRY_FREE,      /* FREE of allocation id `correlation` */
    OCL_ENTRY_ABANDONED, /* already reported: only the event is to be released */
};
struct ocl_entry {
    cl_event event; /* held by us; NULL = a hole */
    uint64_t correlation;
    uint64_t start; /* CLOCK_MONOTONIC before the enqueue */
    uint32_t kind;  /* enum ocl_entry_kind */
};

#define OCL_LIST_MAX 32 /* numbers in a remembered property list */

struct ocl_ring {
    size_t room; /* a power of two */
    struct ocl_entry entry[];
};

static inline struct ocl_entry *ocl_ring_at(struct ocl_ring *ring, uint64_t position)
{
    return &ring->entry[position & (ring->room - 1)];
}

struct ocl_queue {
    struct collector_lock lock; /* ring, head, tail; never held across a driver call */
    struct ocl_ring *ring;      /* NULL = none yet */
    uint64_t head, tail;        /* entry i is at i & (room - 1) */
    _Atomic uint64_t pushed;    /* ever; written under the lock */
    uint64_t ticked;            /* pushed at the last tick; the helper thread's */
    uint64_t scan;              /* where an out-of-order harvest goes on */
    _Atomic uint64_t pending;   /* entries that are not holes */
    _Atomic uint64_t
        launched[2]; /* hashes of the last kernels with their arguments, newest first */
    struct collector_lock harvester;

    cl_command_queue handle;
    cl_context context;
    struct ocl_device *device;
    _Atomic uint32_t epoch; /* of the stream id; written last */
    _Atomic uint32_t stream;
    bool out_of_order;
    bool profiled;                    /* the driver stamps this queue's commands */
    _Atomic bool profiling_requested; /* the program itself requested profiling */
    bool on_device;
    bool has_list;       /* created from a property list: */
    unsigned list_count; /* numbers in it with the final 0; 0 = the program gave none */
    cl_queue_properties list[OCL_LIST_MAX];
    struct ocl_queue *next; /* all queues, newest first */
};

/* The state of a queue, adopted when the layer did not see its creation; NULL: not a queue. */
struct ocl_queue *ocl_queue_of(cl_command_queue handle);
struct ocl_queue *ocl_queue_known(cl_command_queue handle); /* NULL when never seen */
struct ocl_queue *ocl_queue_of_event(cl_event event);       /* as known, of its queue */
struct ocl_queue *ocl_queue_all(void);
uint32_t ocl_queue_stream(struct ocl_queue *queue); /* stream id, defined */
/* Create a queue with profiling forced on, else as the program wants it. `maker` calls the driver
 * with a property list; is_list: so did the program (not by the old call with bits). */
typedef cl_command_queue (*ocl_queue_maker)(void *real, cl_context context, cl_device_id device,
                                            const cl_queue_properties *list, cl_int *error);
cl_command_queue ocl_queue_create(ocl_queue_maker maker, void *real, cl_context context,
                                  cl_device_id device, const cl_queue_properties *list,
                                  bool is_list, cl_int *error);
/* Take over one reference of the event until it is harvested. Returns how many were pushed. */
uint64_t ocl_queue_push(struct ocl_queue *queue, const struct ocl_entry *entry);
void ocl_queue_forked(void);

#define OCL_POLL_EVERY 64          /* enqueues between two polls */
#define OCL_PENDING_MAX (1u << 20) /* events held per queue; times of more are given up */

/* Publish the times of finished commands. Never waits. `limit`: entries to look at, 0 = all. */
void ocl_harvest(struct ocl_queue *queue, unsigned limit);
void ocl_harvest_all(unsigned limit);
/* The helper thread's part: queues that the program leaves alone, until the driver may be gone. */
void ocl_harvest_idle(void);
/* Harvest and then keep the queue to ourselves, so that no event is half way between held and
 * released; ocl_settled lets go. Gives up after a bounded moment (returns false). */
bool ocl_settle(struct ocl_queue *queue);
void ocl_settled(struct ocl_queue *queue);
void ocl_harvest_start(void); /* there is a queue, so the driver is up: set the exit hook */
void ocl_harvest_last(void);  /* the process ends: publish what is complete, mark the rest */
void ocl_harvest_close(void); /* the driver goes away: no more calls into it of our own accord */
void ocl_harvest_forked(void);

/* clock.c */
struct ocl_observed {
    uint64_t start;
    struct wire_times times;
};
/* Compare a finished command with the host's clocks, then make sure that an anchor later than
 * every time in the batch is defined. Called after the last status was read. */
void ocl_clock_batch(struct ocl_device *device, const struct ocl_observed *seen, unsigned count);
void ocl_clock_reset(struct ocl_device *device); /* after a fork */

/* ---- calls ----------------------------------------------------------------------------------- */

struct ocl_call {
    uint64_t correlation, start, end;
    uint32_t stack; /* id, 0 = not taken */
    enum ocl_hook hook;
    bool live; /* perfkit is recording */
    bool on;   /* recorded: it began inside a window */
};
void ocl_call_begin(struct ocl_call *call, enum ocl_hook hook);
void ocl_call_end(const struct ocl_call *call, cl_int result, enum wire_expects expects);
void ocl_call_forked(void);

/* Call the driver between two readings of the clock. */
#define OCL_TIMED(call, function, ...)                                                             \
    __extension__({                                                                                \
        struct ocl_call *ocl_call_ = (call);                                                       \
        if (ocl_call_->on)                                                                         \
            ocl_call_->start = collector_now();                                                    \
        __auto_type ocl_timed_ = OCL_CALL(function, __VA_ARGS__);                                  \
        if (ocl_call_->on)                                                                         \
            ocl_call_->end = collector_now();                                                      \
        ocl_timed_;                                                                                \
    })

/* A command: its call, its queue, and the event that the driver is to fill. */
struct ocl_command {
    struct ocl_call call;
    struct ocl_queue *queue;
    cl_event *event; /* what the driver gets */
    cl_event own;    /* used when the program wants no event */
};
union ocl_record { /* KERNEL, TRANSFER and MEMSET begin as DONE does */
    struct wire_done done;
    struct wire_kernel kernel;
    struct wire_transfer transfer;
    struct wire_memset memset;
};
void ocl_begin(struct ocl_command *command, enum ocl_hook hook, cl_command_queue queue,
               cl_event *event);
/* Publish the call and its device record (type and size in its head, payload filled). */
void ocl_end(struct ocl_command *command, cl_int result, union ocl_record *record, bool blocking);
/* The same for the common kinds. */
cl_int ocl_end_transfer(struct ocl_command *command, cl_int result, uint64_t bytes,
                        enum wire_copy_kind kind, enum wire_memory_kind from,
                        enum wire_memory_kind to, bool blocking);
/* Of clEnqueueWriteBuffer. */
cl_int ocl_end_upload(struct ocl_command *command, cl_int result, cl_mem buffer, size_t offset,
                      size_t bytes, const void *host, bool blocking);
/* Of those that read; `host` and what follows it up to `extent` bytes are written to. */
cl_int ocl_end_read(struct ocl_command *command, cl_int result, uint64_t bytes,
                    enum wire_copy_kind kind, const void *host, uint64_t extent, bool blocking);
/* Commands that have not ended may write to this memory of the host. */
void ocl_note_read(const void *host, uint64_t bytes);
/* Has this part of the buffer been given these bytes before, by the upload before? Now and then all
 * bytes are read, else 64 words of them; false where that is not known. `host` NULL: it is given
 * bytes that are not known. */
bool ocl_is_same_content(cl_mem buffer, size_t offset, size_t bytes, const void *host);
cl_int ocl_end_memset(struct ocl_command *command, cl_int result, uint64_t bytes,
                      const void *pattern, size_t pattern_bytes, enum wire_memory_kind kind);

/* The wrapper of a function that puts a command into a queue: its parameters but for the wait list
 * and the event (OCL_WAITS), its arguments likewise, and what ends it, with `command` and `result`.
 */
#define OCL_WAITS cl_uint waits, const cl_event *wait_list, cl_event *event
#define OCL_LIST(...) __VA_ARGS__
#define OCL_COMMAND(function, parameters, arguments, ended)                                        \
    cl_int CL_API_CALL ocl_##function parameters                                                   \
    {                                                                                              \
        struct ocl_command command;                                                                \
        ocl_begin(&command, OCL_##function, queue, event);                                         \
        cl_int result = OCL_TIMED(&command.call, function, OCL_LIST arguments, waits, wait_list,   \
                                  command.event);                                                  \
        return ended;                                                                              \
    }

/* ---- memory ---------------------------------------------------------------------------------- */

void ocl_memory_forked(void);
/* The call gave no memory; bytes 0 = not known. Does nothing when the reason is another than a lack
 * of memory. */
void ocl_emit_free(uint64_t id, uint64_t time, uint64_t correlation);
size_t ocl_mem_size(cl_mem memory);
extern struct ocl_regions ocl_svm;    /* clSVMAlloc */
extern struct ocl_regions ocl_mapped; /* what clEnqueueMap* returned */
void ocl_regions_forked(struct ocl_regions *regions);

static inline uint64_t ocl_region_bytes(const size_t region[3])
{
    return region ? (uint64_t)region[0] * region[1] * region[2] : 0;
}

/* ---- launch.c: kernels -----------------------------------------------------------------------
 *
 * A launch needs the kernel's name and memory needs, queried from the driver once. */

/* What is known of a kernel object; replaced in place when the handle is used again. */
#define OCL_ARGUMENTS 16 /* of kernels with more they are not compared */
struct ocl_kernel {
    _Atomic uint32_t epoch;         /* 0 or another epoch: query again */
    _Atomic uint32_t name;          /* string id */
    _Atomic uint64_t local_bytes;   /* per work-group, set arguments included; UINT64_MAX unknown */
    _Atomic uint64_t private_bytes; /* per work-item; UINT64_MAX unknown */

    /* The last launch's sizes and configuration: a loop of launches needs no look-up. Even
     * version: whole; readers compare the version before and after. */
    _Atomic uint32_t version;
    _Atomic uint32_t config; /* config id, 0 = none */
    _Atomic uint64_t sizes[7];

    /* What its arguments were set to, as hashes; 0 = not known. A thread at a time sets them. */
    _Atomic uint32_t argument_count;
    _Atomic uint64_t arguments[OCL_ARGUMENTS];
};

void ocl_kernel_forked(void);

#endif
