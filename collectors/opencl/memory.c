/* Buffers, images, pipes: when they begin and when they end.
 *
 * A memory object ends when the program has released what it retained, and every sub-buffer and
 * image made from it has ended too. That is counted here: the driver reports the end only to a
 * destructor callback, which comes when the last command that used the object has gone, on any
 * thread, and never when the process is quicker. The number of an object is kept by its handle,
 * which drivers hand out again and again. */
#include <string.h>
#include <sys/mman.h>

#include "collectors/opencl/ocl.h"

struct object {
    _Atomic uint64_t value;          /* its allocation's number (packed), 0 = not recorded */
    _Atomic uint32_t holders;        /* the program's references and the objects made from it */
    _Atomic(struct object *) parent; /* what it was made from */
};
static struct ocl_table objects;
static _Atomic uint64_t last_id;

static uint64_t ocl_allocation_id(void)
{
    return atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
}

size_t ocl_mem_size(cl_mem memory)
{
    size_t bytes = 0;
    if (OCL_CALL(clGetMemObjectInfo, memory, CL_MEM_SIZE, sizeof bytes, &bytes, NULL) != CL_SUCCESS)
        return 0;
    return bytes;
}

static void ocl_emit_alloc(const struct ocl_call *call, cl_context context, uint64_t id,
                           const void *address, uint64_t bytes, enum wire_memory_kind kind)
{
    int saved = errno;
    struct wire_alloc alloc = {
        .head = {sizeof alloc, WIRE_ALLOC, WIRE_SOURCE_OPENCL, ocl_context_id(context)},
        .time = call->end,
        .id = id,
        .address = (uintptr_t)address,
        .bytes = bytes,
        .correlation = call->correlation,
        .device = ocl_context_device(context),
        .stack = call->stack,
        .memory_kind = (uint8_t)kind,
    };
    collector_emit(&alloc);
    errno = saved;
}

/* Codes that say there is no room; the other refusals are mistakes in the arguments, whose context
 * is not to be trusted. A buffer may be too large, and of 0 bytes. */
static bool is_for_want_of_room(cl_int result, uint64_t bytes)
{
    switch (result) {
    case CL_INVALID_BUFFER_SIZE:
        return bytes != 0;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_IMAGE_SIZE:
        return true;
    default:
        return false;
    }
}

static void ocl_emit_alloc_failed(const struct ocl_call *call, cl_context context, uint64_t bytes,
                                  enum wire_memory_kind kind, cl_int result)
{
    if (!is_for_want_of_room(result, bytes))
        return;
    int saved = errno;
    struct wire_alloc_failed failed = {
        .head = {sizeof failed, WIRE_ALLOC_FAILED, WIRE_SOURCE_OPENCL, ocl_context_id(context)},
        .time = call->end,
        .bytes = bytes,
        .correlation = call->correlation,
        .device = ocl_context_device(context),
        .stack = call->stack,
        .result = result,
        .memory_kind = (uint8_t)kind,
    };
    collector_emit(&failed);
    errno = saved;
}

void ocl_emit_free(uint64_t id, uint64_t time, uint64_t correlation)
{
    int saved = errno;
    struct wire_free record = {
        .head = {sizeof record, WIRE_FREE, WIRE_SOURCE_OPENCL, 0},
        .time = time,
        .id = id,
        .correlation = correlation,
    };
    collector_count(WIRE_COUNT_FREE_CALLED, 1);
    collector_emit(&record);
    errno = saved;
}

/* The number of an allocation and, in the bits above, the process that it is of (a forked child
 * knows none). */
#define ID_BITS 48

static uint64_t of_this_process(void)
{
    return (uint64_t)atomic_load(&ocl_epoch) << ID_BITS;
}

static struct object *object_of(cl_mem memory)
{
    return (struct object *)(uintptr_t)ocl_table_get(&objects, memory);
}

/* One more holder, or one less, of an object that has any. Returns how many there were. */
static uint32_t change_holders(struct object *object, uint32_t by)
{
    uint32_t before = object ? atomic_load(&object->holders) : 0;
    while (before != 0 && !atomic_compare_exchange_weak(&object->holders, &before, before + by)) {
    }
    return before;
}

/* The last holder has gone: so has the object, and it holds its parent no longer. */
static void ended(uint64_t value, struct object *parent, uint64_t correlation)
{
    for (;;) {
        uint64_t id = value & (((uint64_t)1 << ID_BITS) - 1);
        if (id != 0 && value - id == of_this_process())
            ocl_emit_free(id, collector_now(), correlation);
        if (change_holders(parent, (uint32_t)-1) != 1)
            return;
        value = atomic_exchange(&parent->value, 0);
        parent = atomic_load(&parent->parent);
    }
}

/* A new object at `memory`, of the program's one reference. */
static void watch_memory_object(cl_mem memory, cl_mem made_from, uint64_t id)
{
    struct object *object = object_of(memory), *parent = object_of(made_from);
    if (!object) {
        object = ocl_alloc(sizeof *object);
        if (object)
            object = (struct object *)(uintptr_t)ocl_table_add(&objects, memory, (uintptr_t)object);
        if (!object)
            return;
    }
    if (change_holders(parent, 1) == 0)
        parent = NULL;
    atomic_store(&object->parent, parent);
    atomic_store(&object->value, id ? of_this_process() | id : 0);
    atomic_store(&object->holders, 1);
}

/* A new object: define it and watch for its end. */
static void record_allocation_start(const struct ocl_call *call, cl_int result, cl_mem memory,
                                    cl_context context, cl_mem made_from, const void *address,
                                    uint64_t bytes, enum wire_memory_kind kind)
{
    if (!call->live)
        return;
    ocl_call_end(call, result, WIRE_EXPECTS_NONE);
    if (call->on && result != CL_SUCCESS && call->hook != OCL_clCreateSubBuffer)
        ocl_emit_alloc_failed(call, context, bytes, kind, result);
    if (result != CL_SUCCESS || !memory)
        return;
    int saved = errno;
    uint64_t id = call->on ? ocl_allocation_id() : 0;
    if (call->on)
        ocl_emit_alloc(call, context, id, address, bytes, kind);
    watch_memory_object(memory, made_from, id);
    errno = saved;
}

void ocl_memory_forked(void)
{
    ocl_table_forked(&objects);
}

static enum wire_memory_kind buffer_kind(cl_mem_flags flags)
{
    return flags & (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR) ? WIRE_MEMORY_PINNED
                                                                 : WIRE_MEMORY_DEVICE;
}

static const void *host_address(cl_mem_flags flags, const void *host)
{
    return flags & CL_MEM_USE_HOST_PTR ? host : NULL;
}

/* An image over a buffer or another image has no bytes of its own. */
static uint64_t image_bytes(const struct ocl_call *call, cl_mem image, const cl_image_desc *desc)
{
    if (!call->on || !image || (desc && desc->mem_object))
        return 0;
    return ocl_mem_size(image);
}

static cl_context context_of_object(const struct ocl_call *call, cl_mem memory)
{
    cl_context context = NULL;
    if (call->on && memory)
        OCL_CALL(clGetMemObjectInfo, memory, CL_MEM_CONTEXT, sizeof context, &context, NULL);
    return context;
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/* The wrapper of a function that makes a memory object: its parameters, its arguments but for the
 * error's place, and what record_allocation_start takes of the result, with `call` and `memory`. */
#define CREATES(function, parameters, arguments, ...)                                              \
    cl_mem CL_API_CALL ocl_##function parameters                                                   \
    {                                                                                              \
        struct ocl_call call;                                                                      \
        cl_int result = CL_SUCCESS;                                                                \
        ocl_call_begin(&call, OCL_##function);                                                     \
        cl_mem memory = OCL_TIMED(&call, function, OCL_LIST arguments, &result);                   \
        record_allocation_start(&call, result, memory, __VA_ARGS__);                               \
        if (error)                                                                                 \
            *error = result;                                                                       \
        return memory;                                                                             \
    }

CREATES(clCreateBuffer,
        (cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error),
        (context, flags, bytes, host), context, NULL, host_address(flags, host), bytes,
        buffer_kind(flags))

CREATES(clCreateBufferWithProperties,
        (cl_context context, const cl_mem_properties *properties, cl_mem_flags flags, size_t bytes,
         void *host, cl_int *error),
        (context, properties, flags, bytes, host), context, NULL, host_address(flags, host), bytes,
        buffer_kind(flags))

CREATES(clCreateSubBuffer,
        (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *about,
         cl_int *error),
        (buffer, flags, type, about), context_of_object(&call, memory), buffer, NULL, 0,
        WIRE_MEMORY_DEVICE)

CREATES(clCreateImage,
        (cl_context context, cl_mem_flags flags, const cl_image_format *format,
         const cl_image_desc *desc, void *host, cl_int *error),
        (context, flags, format, desc, host), context, desc ? desc->mem_object : NULL,
        host_address(flags, host), image_bytes(&call, memory, desc), WIRE_MEMORY_ARRAY)

CREATES(clCreateImageWithProperties,
        (cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
         const cl_image_format *format, const cl_image_desc *desc, void *host, cl_int *error),
        (context, properties, flags, format, desc, host), context, desc ? desc->mem_object : NULL,
        host_address(flags, host), image_bytes(&call, memory, desc), WIRE_MEMORY_ARRAY)

CREATES(clCreateImage2D,
        (cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
         size_t height, size_t row, void *host, cl_int *error),
        (context, flags, format, width, height, row, host), context, NULL,
        host_address(flags, host), image_bytes(&call, memory, NULL), WIRE_MEMORY_ARRAY)

CREATES(clCreateImage3D,
        (cl_context context, cl_mem_flags flags, const cl_image_format *format, size_t width,
         size_t height, size_t depth, size_t row, size_t slice, void *host, cl_int *error),
        (context, flags, format, width, height, depth, row, slice, host), context, NULL,
        host_address(flags, host), image_bytes(&call, memory, NULL), WIRE_MEMORY_ARRAY)

CREATES(clCreatePipe,
        (cl_context context, cl_mem_flags flags, cl_uint packet, cl_uint packets,
         const cl_pipe_properties *properties, cl_int *error),
        (context, flags, packet, packets, properties), context, NULL, NULL,
        (uint64_t)packet *packets, WIRE_MEMORY_DEVICE)

cl_int CL_API_CALL ocl_clRetainMemObject(cl_mem memory)
{
    cl_int result = OCL_CALL(clRetainMemObject, memory);
    if (result == CL_SUCCESS && ocl_on())
        change_holders(object_of(memory), 1);
    return result;
}

cl_int CL_API_CALL ocl_clReleaseMemObject(cl_mem memory)
{
    struct ocl_call call;
    ocl_call_begin(&call, OCL_clReleaseMemObject);
    struct object *object = NULL, *parent = NULL;
    uint64_t value = 0;
    uint32_t before = 0;
    if (call.live) {
        ocl_harvest_all(4 * OCL_POLL_EVERY); /* an event of ours may keep the object alive */
        /* Before the call: right after it another thread may be given the same handle. */
        object = object_of(memory);
        before = change_holders(object, (uint32_t)-1);
        if (before == 1) {
            value = atomic_exchange(&object->value, 0);
            parent = atomic_load(&object->parent);
        }
    }
    cl_int result = OCL_TIMED(&call, clReleaseMemObject, memory);
    ocl_call_end(&call, result, WIRE_EXPECTS_NONE);
    if (before == 1 && result == CL_SUCCESS) {
        ended(value, parent, call.correlation);
    } else if (before != 0 && result != CL_SUCCESS) { /* nothing was released */
        if (before == 1)
            atomic_store(&object->value, value);
        atomic_fetch_add(&object->holders, 1);
    }
    return result;
}

/* ---- shared virtual memory ------------------------------------------------------------------- */

/* Shared virtual memory: allocation, release, copies, fills, maps. A pointer may lie anywhere in an
 * allocation, and a copy may have host memory at either end, so the allocations are kept by
 * address. */

/* ---- Address ranges ---------------------------------------------------------------------------
 *
 * Which SVM allocation a pointer lies in, how many bytes a mapped pointer covers. A sorted array
 * under a mutex: programs hold few of these, look-ups need interior pointers, and a driver call
 * that makes one costs microseconds. */

/* The first region whose address is above `address`. */
static size_t above(const struct ocl_regions *regions, uintptr_t address)
{
    size_t low = 0, high = regions->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (regions->list[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool grow_region_table(struct ocl_regions *regions)
{
    if (regions->count < regions->room)
        return true;
    size_t room = regions->room ? regions->room * 2 : 512;
    int saved = errno;
    void *list = mmap(NULL, room * sizeof *regions->list, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (list != MAP_FAILED) { /* the old list stays mapped, as an outgrown ring does */
        if (regions->list)
            memcpy(list, regions->list, regions->count * sizeof *regions->list);
        regions->list = list;
        atomic_signal_fence(memory_order_seq_cst); /* never more room than there is */
        regions->room = room;
    }
    errno = saved;
    return list != MAP_FAILED;
}

bool ocl_region_add(struct ocl_regions *regions, const void *address, size_t bytes, uint64_t id)
{
    bool done = true;
    if (!collector_lock(&regions->lock))
        return false;
    size_t at = above(regions, (uintptr_t)address);
    if (at > 0 && regions->list[at - 1].address == (uintptr_t)address) {
        regions->list[at - 1].bytes = bytes;
        regions->list[at - 1].id = id;
        regions->list[at - 1].count++;
    } else if (grow_region_table(regions)) {
        struct ocl_region *list = regions->list;
        memmove(&list[at + 1], &list[at], (regions->count - at) * sizeof *list);
        list[at] = (struct ocl_region){(uintptr_t)address, bytes, id, 1};
        regions->count++;
    } else {
        done = false;
    }
    collector_unlock(&regions->lock);
    return done;
}

bool ocl_region_take(struct ocl_regions *regions, const void *address, struct ocl_region *out)
{
    if (!collector_lock(&regions->lock))
        return false;
    size_t at = above(regions, (uintptr_t)address);
    bool found = at > 0 && regions->list[at - 1].address == (uintptr_t)address;
    if (found) {
        struct ocl_region *list = regions->list;
        *out = list[--at];
        if (--list[at].count == 0) {
            memmove(&list[at], &list[at + 1], (regions->count - 1 - at) * sizeof *list);
            regions->count--;
        }
    }
    collector_unlock(&regions->lock);
    return found;
}

/* The region that holds address. */
static bool find_region(struct ocl_regions *regions, const void *address, struct ocl_region *out)
{
    if (!collector_lock(&regions->lock))
        return false;
    size_t at = above(regions, (uintptr_t)address);
    bool found = at > 0 && (uintptr_t)address - regions->list[at - 1].address <
                               (regions->list[at - 1].bytes ? regions->list[at - 1].bytes : 1);
    if (found)
        *out = regions->list[at - 1];
    collector_unlock(&regions->lock);
    return found;
}

/* In a forked child. A thread of the parent may have been half way through a change: when the lock
 * is taken, all is forgotten. */
void ocl_regions_forked(struct ocl_regions *regions)
{
    if (atomic_exchange(&regions->lock.owner, 0) != 0)
        regions->count = 0;
}

/* ---- Shared virtual memory ------------------------------------------------------------------- */

struct ocl_regions ocl_svm;

static enum wire_memory_kind svm_memory_kind(const void *address)
{
    struct ocl_region region;
    return find_region(&ocl_svm, address, &region) ? WIRE_MEMORY_SVM : WIRE_MEMORY_PAGEABLE;
}

void *CL_API_CALL ocl_clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t bytes,
                                 cl_uint alignment)
{
    struct ocl_call call;
    ocl_call_begin(&call, OCL_clSVMAlloc);
    void *at = OCL_TIMED(&call, clSVMAlloc, context, flags, bytes, alignment);
    ocl_call_end(&call, at ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE, WIRE_EXPECTS_NONE);
    /* It does not say why: without a context, or bytes, it is a mistake, else there was no room. */
    if (!at && call.on && context && bytes)
        ocl_emit_alloc_failed(&call, context, bytes, WIRE_MEMORY_SVM,
                              CL_MEM_OBJECT_ALLOCATION_FAILURE);
    if (at && call.live) {
        uint64_t id = call.on ? ocl_allocation_id() : 0; /* 0 = not recorded, so its end is not */
        ocl_region_add(&ocl_svm, at, bytes, id);
        if (call.on)
            ocl_emit_alloc(&call, context, id, at, bytes, WIRE_MEMORY_SVM);
    }
    return at;
}

void CL_API_CALL ocl_clSVMFree(cl_context context, void *at)
{
    struct ocl_call call;
    struct ocl_region region;
    ocl_call_begin(&call, OCL_clSVMFree);
    /* Before the call: right after it another thread may be given the same address. */
    bool known = call.live && at && ocl_region_take(&ocl_svm, at, &region);
    if (call.on || known)
        call.start = collector_now();
    uintptr_t outer = ocl_enter();
    ocl_next.clSVMFree(context, at);
    ocl_inside = outer;
    if (call.on)
        call.end = collector_now();
    ocl_call_end(&call, CL_SUCCESS, WIRE_EXPECTS_NONE);
    if (known && region.id)
        ocl_emit_free(region.id, call.start, call.correlation);
}

/* The memory goes when the command runs: one entry in the queue's ring for each allocation. */
cl_int CL_API_CALL ocl_clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void *list[],
                                        void(CL_CALLBACK *function)(cl_command_queue, cl_uint,
                                                                    void *[], void *),
                                        void *data, cl_uint waits, const cl_event *wait_list,
                                        cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueSVMFree, queue, event);
    struct ocl_region known[64];
    unsigned taken = 0;
    for (cl_uint i = 0; command.call.live && list && i < count && taken < 64; i++)
        taken += ocl_region_take(&ocl_svm, list[i], &known[taken]);
    cl_int result = OCL_TIMED(&command.call, clEnqueueSVMFree, queue, count, list, function, data,
                              waits, wait_list, command.event);
    ocl_call_end(&command.call, result, WIRE_EXPECTS_NONE);
    bool profiled = command.queue && command.queue->profiled;
    for (unsigned i = 0; i < taken; i++) {
        if (result != CL_SUCCESS) {
            ocl_region_add(&ocl_svm, (void *)known[i].address, known[i].bytes, known[i].id);
        } else if (known[i].id == 0) {
            continue;
        } else if (profiled && OCL_CALL(clRetainEvent, *command.event) == CL_SUCCESS) {
            struct ocl_entry entry = {.event = *command.event,
                                      .correlation = known[i].id,
                                      .start = command.call.start,
                                      .kind = OCL_ENTRY_FREE};
            ocl_queue_push(command.queue, &entry);
        } else {
            ocl_emit_free(known[i].id, command.call.on ? command.call.end : collector_now(),
                          command.call.correlation);
        }
    }
    if (result == CL_SUCCESS && command.own)
        OCL_CALL(clReleaseEvent, command.own);
    return result;
}

cl_int CL_API_CALL ocl_clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void *to,
                                          const void *from, size_t bytes, cl_uint waits,
                                          const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueSVMMemcpy, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueSVMMemcpy, queue, blocking, to, from, bytes,
                              waits, wait_list, command.event);
    if (!command.call.on)
        return result;
    enum wire_memory_kind source = svm_memory_kind(from), target = svm_memory_kind(to);
    bool in = source == WIRE_MEMORY_PAGEABLE, out = target == WIRE_MEMORY_PAGEABLE;
    enum wire_copy_kind kind = in && out ? WIRE_COPY_HTOH
                               : in      ? WIRE_COPY_HTOD
                               : out     ? WIRE_COPY_DTOH
                                         : WIRE_COPY_DTOD;
    return ocl_end_transfer(&command, result, bytes, kind, source, target, blocking);
}

OCL_COMMAND(clEnqueueSVMMemFill,
            (cl_command_queue queue, void *at, const void *pattern, size_t pattern_bytes,
             size_t bytes, OCL_WAITS),
            (queue, at, pattern, pattern_bytes, bytes),
            ocl_end_memset(&command, result, bytes, pattern, pattern_bytes, WIRE_MEMORY_SVM))

cl_int CL_API_CALL ocl_clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking, cl_map_flags flags,
                                       void *at, size_t bytes, cl_uint waits,
                                       const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueSVMMap, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueSVMMap, queue, blocking, flags, at, bytes,
                              waits, wait_list, command.event);
    if (result == CL_SUCCESS && command.call.live)
        ocl_region_add(&ocl_mapped, at, bytes, 0);
    return ocl_end_transfer(&command, result, bytes, WIRE_COPY_MAP, WIRE_MEMORY_SVM,
                            WIRE_MEMORY_SVM, blocking);
}

cl_int CL_API_CALL ocl_clEnqueueSVMUnmap(cl_command_queue queue, void *at, cl_uint waits,
                                         const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    struct ocl_region region = {0};
    ocl_begin(&command, OCL_clEnqueueSVMUnmap, queue, event);
    bool taken = command.call.live && ocl_region_take(&ocl_mapped, at, &region);
    cl_int result =
        OCL_TIMED(&command.call, clEnqueueSVMUnmap, queue, at, waits, wait_list, command.event);
    if (taken && result != CL_SUCCESS)
        ocl_region_add(&ocl_mapped, at, region.bytes, 0);
    return ocl_end_transfer(&command, result, region.bytes, WIRE_COPY_UNMAP, WIRE_MEMORY_SVM,
                            WIRE_MEMORY_SVM, false);
}

cl_int CL_API_CALL ocl_clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint count,
                                              const void **list, const size_t *sizes,
                                              cl_mem_migration_flags flags, cl_uint waits,
                                              const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueSVMMigrateMem, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueSVMMigrateMem, queue, count, list, sizes,
                              flags, waits, wait_list, command.event);
    uint64_t bytes = 0;
    struct ocl_region region;
    for (cl_uint i = 0; command.call.on && result == CL_SUCCESS && i < count; i++) {
        if (sizes && sizes[i])
            bytes += sizes[i];
        else if (find_region(&ocl_svm, list[i], &region)) /* 0 = the whole allocation */
            bytes += region.bytes;
    }
    return ocl_end_transfer(&command, result, bytes, WIRE_COPY_MIGRATE, WIRE_MEMORY_SVM,
                            WIRE_MEMORY_SVM, false);
}
