/* The records of a call, and of a command that a call put into a queue. A command is published at
 * once as pending, so that a killed process keeps it; its device times follow as DONE when the
 * harvest finds it finished. The conservation counters go up before the driver is called: a process
 * that dies inside the call shows it as outstanding. */
#include <string.h>

#include "collectors/opencl/ocl.h"
#include "collectors/stacks/stacks.h"

static const struct {
    const char *name;
    uint8_t klass;
    uint8_t silent; /* makes no CALL record */
} hooks[OCL_HOOK_COUNT] = {
#define WIRE_CLASS_NONE 255
#define X(function, class_) {#function, WIRE_CLASS_##class_ & 255, WIRE_CLASS_##class_ == 255},
    OCL_HOOKS(X)
#undef X
};

static _Atomic uint32_t names[OCL_HOOK_COUNT]; /* string ids */

static uint32_t hook_name_id(enum ocl_hook hook)
{
    uint32_t id = atomic_load_explicit(&names[hook], memory_order_relaxed);
    if (id == 0) {
        id = collector_text(hooks[hook].name);
        atomic_store_explicit(&names[hook], id, memory_order_relaxed);
    }
    return id;
}

void ocl_call_forked(void)
{
    for (size_t i = 0; i < OCL_HOOK_COUNT; i++)
        atomic_store_explicit(&names[i], 0, memory_order_relaxed);
}

/* Which counters a class of calls goes to; WIRE_COUNTS = none. */
static const struct {
    enum wire_count called, failed;
} counters[] = {
    [WIRE_CLASS_OTHER] = {WIRE_COUNTS, WIRE_COUNTS},
    [WIRE_CLASS_LAUNCH] = {WIRE_COUNT_LAUNCH_CALLED, WIRE_COUNT_LAUNCH_FAILED},
    [WIRE_CLASS_TRANSFER] = {WIRE_COUNT_TRANSFER_CALLED, WIRE_COUNT_TRANSFER_FAILED},
    [WIRE_CLASS_MEMSET] = {WIRE_COUNT_MEMSET_CALLED, WIRE_COUNT_MEMSET_FAILED},
    [WIRE_CLASS_GRAPH_LAUNCH] = {WIRE_COUNTS, WIRE_COUNTS},
    [WIRE_CLASS_SYNC] = {WIRE_COUNTS, WIRE_COUNTS},
    [WIRE_CLASS_ALLOC] = {WIRE_COUNT_ALLOC_CALLED, WIRE_COUNT_ALLOC_FAILED},
    [WIRE_CLASS_FREE] = {WIRE_COUNTS, WIRE_COUNTS},
    [WIRE_CLASS_BUILD] = {WIRE_COUNTS, WIRE_COUNTS},
    [WIRE_CLASS_FREE_ASYNC] = {WIRE_COUNTS, WIRE_COUNTS},
    [WIRE_CLASS_SUBALLOC] = {WIRE_COUNT_ALLOC_CALLED, WIRE_COUNT_ALLOC_FAILED},
};

void ocl_call_begin(struct ocl_call *call, enum ocl_hook hook)
{
    *call = (struct ocl_call){.hook = hook, .live = ocl_on()};
    call->on = call->live && collector_recording();
    if (!call->on)
        return;
    int saved = errno;
    call->correlation = collector_correlation();
    enum stacks_kind kind = stacks_kind_of(hooks[hook].klass);
    if (stacks_wanted(kind))
        call->stack = stacks_take(kind);
    enum wire_count called = counters[hooks[hook].klass].called;
    if (called != WIRE_COUNTS)
        collector_count(called, 1);
    errno = saved;
}

void ocl_call_end(const struct ocl_call *call, cl_int result, enum wire_expects expects)
{
    if (!call->on)
        return;
    int saved = errno;
    unsigned klass = hooks[call->hook].klass;
    struct wire_call record = {
        .head = {sizeof record, WIRE_CALL, WIRE_SOURCE_OPENCL, 0},
        .correlation = call->correlation,
        .start = call->start,
        .end = call->end,
        .name = hook_name_id(call->hook),
        .result = result,
        .stack = call->stack,
        .expects = (uint8_t)expects,
        .klass = (uint8_t)klass,
    };
    if (result != CL_SUCCESS && counters[klass].failed != WIRE_COUNTS)
        collector_count(counters[klass].failed, 1);
    collector_emit(&record);
    errno = saved;
}

void ocl_begin(struct ocl_command *command, enum ocl_hook hook, cl_command_queue queue,
               cl_event *event)
{
    ocl_call_begin(&command->call, hook);
    command->queue = NULL;
    command->event = event;
    command->own = NULL;
    if (!command->call.on)
        return;
    command->queue = ocl_queue_of(queue);
    if (command->queue && command->queue->profiled && !event)
        command->event = &command->own;
}

static void harvest_after(struct ocl_queue *queue, uint64_t pushed, bool blocking)
{
    if (blocking)
        ocl_harvest(queue, 0);
    else if (pushed % OCL_POLL_EVERY == 0)
        ocl_harvest(queue, 4 * OCL_POLL_EVERY);
}

void ocl_end(struct ocl_command *command, cl_int result, union ocl_record *record, bool blocking)
{
    struct ocl_call *call = &command->call;
    if (!call->on)
        return;
    int saved = errno;
    struct ocl_queue *queue = command->queue;
    ocl_call_end(call, result, WIRE_EXPECTS_ONE);
    if (result != CL_SUCCESS) {
        errno = saved;
        return;
    }
    /* The program's event is its own: a reference of ours keeps it until the harvest. */
    cl_event held = command->event && queue && queue->profiled ? *command->event : NULL;
    if (held && atomic_load_explicit(&queue->pending, memory_order_relaxed) >= OCL_PENDING_MAX) {
        if (held == command->own)
            OCL_CALL(clReleaseEvent, held);
        held = NULL;
        collector_count(WIRE_COUNT_TIME_MISSING, 1);
    } else if (held && held != command->own && OCL_CALL(clRetainEvent, held) != CL_SUCCESS) {
        held = NULL;
        collector_count(WIRE_COUNT_TIME_MISSING, 1);
    } else if (!held) {
        collector_count(WIRE_COUNT_UNPROFILED, 1);
    }
    record->done.head.flags |= (uint8_t)(WIRE_OPENCL | (held ? WIRE_PENDING : 0));
    record->done.head.aux = queue ? ocl_queue_stream(queue) : 0;
    record->done.correlation = call->correlation;
    collector_emit(record);
    if (held) {
        struct ocl_entry entry = {
            .event = held,
            .correlation = call->correlation,
            .start = call->start,
            .kind = OCL_ENTRY_COMMAND,
        };
        harvest_after(queue, ocl_queue_push(queue, &entry), blocking);
    } else if (queue && blocking) {
        ocl_harvest(queue, 0);
    }
    errno = saved;
}

static cl_int end_transfer(struct ocl_command *command, cl_int result, uint64_t bytes,
                           enum wire_copy_kind kind, enum wire_memory_kind from,
                           enum wire_memory_kind to, bool blocking, uint8_t flags)
{
    if (command->call.on) {
        union ocl_record record = {.transfer = {
                                       .head = {sizeof record.transfer, WIRE_TRANSFER, flags, 0},
                                       .bytes = bytes,
                                       .copy_kind = (uint8_t)kind,
                                       .source_kind = (uint8_t)from,
                                       .target_kind = (uint8_t)to,
                                       .blocking = blocking,
                                   }};
        ocl_end(command, result, &record, blocking);
    }
    return result;
}

cl_int ocl_end_transfer(struct ocl_command *command, cl_int result, uint64_t bytes,
                        enum wire_copy_kind kind, enum wire_memory_kind from,
                        enum wire_memory_kind to, bool blocking)
{
    return end_transfer(command, result, bytes, kind, from, to, blocking, 0);
}

cl_int ocl_end_read(struct ocl_command *command, cl_int result, uint64_t bytes,
                    enum wire_copy_kind kind, const void *host, uint64_t extent, bool blocking)
{
    if (command->call.live && result == CL_SUCCESS && !blocking)
        ocl_note_read(host, extent);
    return end_transfer(command, result, bytes, kind,
                        kind == WIRE_COPY_ATOH ? WIRE_MEMORY_ARRAY : WIRE_MEMORY_DEVICE,
                        WIRE_MEMORY_PAGEABLE, blocking, 0);
}

cl_int ocl_end_upload(struct ocl_command *command, cl_int result, cl_mem buffer, size_t offset,
                      size_t bytes, const void *host, bool blocking)
{
    bool same = command->call.on && result == CL_SUCCESS &&
                ocl_is_same_content(buffer, offset, bytes, host);
    return end_transfer(command, result, bytes, WIRE_COPY_HTOD, WIRE_MEMORY_PAGEABLE,
                        WIRE_MEMORY_DEVICE, blocking, same ? WIRE_SAME : 0);
}

cl_int ocl_end_memset(struct ocl_command *command, cl_int result, uint64_t bytes,
                      const void *pattern, size_t pattern_bytes, enum wire_memory_kind kind)
{
    if (command->call.on) {
        union ocl_record record = {.memset = {
                                       .head = {sizeof record.memset, WIRE_MEMSET, 0, 0},
                                       .bytes = bytes,
                                       .memory_kind = (uint8_t)kind,
                                   }};
        if (result == CL_SUCCESS && pattern)
            memcpy(&record.memset.value, pattern,
                   pattern_bytes < sizeof record.memset.value ? pattern_bytes
                                                              : sizeof record.memset.value);
        ocl_end(command, result, &record, false);
    }
    return result;
}
