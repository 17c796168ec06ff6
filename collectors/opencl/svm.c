/* Shared virtual memory: allocation, release, copies, fills, maps. A pointer may lie anywhere in an
 * allocation, and a copy may have host memory at either end, so the allocations are kept by
 * address. */
#include <string.h>
#include <sys/mman.h>

#include "collectors/opencl/ocl.h"

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
