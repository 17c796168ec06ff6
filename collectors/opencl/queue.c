/* Queues: the properties that the program requested, those the driver got, and the ring of events
 * in flight.
 *
 * Threads that enqueue take the queue's lock for a few instructions to append; the harvest (one
 * thread at a time, see harvest.c) copies entries out, queries the driver with no lock held, and
 * takes the finished ones off. A queue's state is never freed: it stays behind its handle until the
 * driver gives the same handle to a new queue, because events outlive the program's reference. */
#include <string.h>
#include <sys/mman.h>

#include "collectors/opencl/ocl.h"

#define FIRST_ROOM 128 /* entries: one page */

static struct ocl_table queues;
static _Atomic(struct ocl_queue *) all_queues;

struct ocl_queue *ocl_queue_all(void)
{
    return atomic_load_explicit(&all_queues, memory_order_acquire);
}

struct ocl_queue *ocl_queue_known(cl_command_queue handle)
{
    return (struct ocl_queue *)(uintptr_t)ocl_table_get(&queues, handle);
}

struct ocl_queue *ocl_queue_of_event(cl_event event)
{
    cl_command_queue handle = NULL;
    if (OCL_CALL(clGetEventInfo, event, CL_EVENT_COMMAND_QUEUE, sizeof handle, &handle, NULL) !=
        CL_SUCCESS)
        return NULL;
    return ocl_queue_known(handle);
}

/* ---- the ring -------------------------------------------------------------------------------- */

/* Double the ring, under the lock. Logical positions stay. The old ring stays mapped (all of them
 * together are no larger than the last): a thread that was given up as the lock's holder may still
 * read it.
 *  */
static bool grow_queue_ring(struct ocl_queue *queue)
{
    struct ocl_ring *old = queue->ring;
    size_t room = old ? old->room * 2 : FIRST_ROOM;
    struct ocl_ring *ring = mmap(NULL, sizeof *ring + room * sizeof ring->entry[0],
                                 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring == MAP_FAILED)
        return false;
    ring->room = room;
    for (uint64_t i = queue->head; old && i < queue->tail; i++)
        *ocl_ring_at(ring, i) = *ocl_ring_at(old, i);
    atomic_signal_fence(memory_order_seq_cst);
    queue->ring = ring;
    return true;
}

uint64_t ocl_queue_push(struct ocl_queue *queue, const struct ocl_entry *entry)
{
    bool locked = collector_lock(&queue->lock);
    bool room = locked && ((queue->ring && queue->tail - queue->head < queue->ring->room) ||
                           grow_queue_ring(queue));
    uint64_t pushed = atomic_load_explicit(&queue->pushed, memory_order_relaxed) + 1;
    if (room) {
        *ocl_ring_at(queue->ring, queue->tail) = *entry;
        atomic_store_explicit(&queue->pending,
                              atomic_load_explicit(&queue->pending, memory_order_relaxed) + 1,
                              memory_order_relaxed); /* written under the lock only */
        atomic_signal_fence(memory_order_seq_cst);
        queue->tail++;
    }
    if (locked) {
        atomic_store_explicit(&queue->pushed, pushed, memory_order_relaxed);
        collector_unlock(&queue->lock);
    }
    if (room)
        return pushed;
    /* No room in the ring: the command ends here, without times. */
    OCL_CALL(clReleaseEvent, entry->event);
    if (entry->kind == OCL_ENTRY_COMMAND) {
        struct wire_done done = {.head = {sizeof done, WIRE_DONE, WIRE_OPENCL, 0},
                                 .correlation = entry->correlation};
        done.head.aux = ocl_queue_stream(queue);
        collector_count(WIRE_COUNT_TIME_MISSING, 1);
        collector_emit(&done);
    }
    return 1;
}

/* is it in the ring? */
static bool ocl_holds(struct ocl_queue *queue, cl_event event)
{
    bool found = false;
    if (!collector_lock(&queue->lock))
        return false;
    for (uint64_t i = queue->head; i < queue->tail && !found; i++)
        found = ocl_ring_at(queue->ring, i)->event == event;
    collector_unlock(&queue->lock);
    return found;
}

/* ---- definitions ----------------------------------------------------------------------------- */

uint32_t ocl_queue_stream(struct ocl_queue *queue)
{
    uint32_t epoch = atomic_load_explicit(&ocl_epoch, memory_order_relaxed);
    if (atomic_load_explicit(&queue->epoch, memory_order_acquire) == epoch)
        return atomic_load_explicit(&queue->stream, memory_order_relaxed);
    uint32_t device = queue->device ? ocl_device_id(queue->device->handle) : 0;
    struct wire_stream stream = {
        .head = {sizeof stream, WIRE_STREAM, 0, collector_new_id()},
        .native = (uintptr_t)queue->handle,
        .source = WIRE_SOURCE_OPENCL,
        .context = ocl_context_id(queue->context),
        .device = device,
        .clock = queue->device ? atomic_load(&queue->device->clock) : 0,
    };
    if (queue->out_of_order)
        stream.head.flags |= WIRE_STREAM_OUT_OF_ORDER;
    if (atomic_load(&queue->profiling_requested))
        stream.head.flags |= WIRE_STREAM_PROFILED;
    collector_define(&stream);
    /* Two threads at once define two ids for one queue; the later one stays. */
    atomic_store_explicit(&queue->stream, stream.head.aux, memory_order_relaxed);
    atomic_store_explicit(&queue->epoch, epoch, memory_order_release);
    return stream.head.aux;
}

/* ---- birth ----------------------------------------------------------------------------------- */

static struct ocl_queue *enlist(cl_command_queue handle, const struct ocl_queue *about)
{
    struct ocl_queue *queue = ocl_alloc(sizeof *queue);
    if (!queue)
        return NULL;
    ocl_harvest_start();
    *queue = *about;
    queue->handle = handle;
    struct ocl_queue *first = atomic_load(&all_queues);
    do
        queue->next = first;
    while (!atomic_compare_exchange_weak(&all_queues, &first, queue));
    return queue;
}

/* A queue with nothing in flight that the program has let go, to be used again; only by its
 * handle's next owner, because no other thread can be reading it. */
static struct ocl_queue *reuse(cl_command_queue handle, const struct ocl_queue *about)
{
    struct ocl_queue *queue = ocl_queue_known(handle);
    if (!queue || !ocl_settle(queue))
        return NULL;
    bool free_now = atomic_load(&queue->pending) == 0 && collector_lock(&queue->lock);
    if (free_now) {
        queue->context = about->context;
        queue->device = about->device;
        queue->out_of_order = about->out_of_order;
        queue->profiled = about->profiled;
        queue->on_device = about->on_device;
        queue->has_list = about->has_list;
        queue->list_count = about->list_count;
        memcpy(queue->list, about->list, sizeof queue->list);
        atomic_store(&queue->profiling_requested, atomic_load(&about->profiling_requested));
        atomic_store(&queue->epoch, 0);
        collector_unlock(&queue->lock);
    }
    ocl_settled(queue);
    return free_now ? queue : NULL;
}

static struct ocl_queue *new_ocl_queue(cl_command_queue handle, const struct ocl_queue *about)
{
    struct ocl_queue *queue = reuse(handle, about);
    if (!queue) {
        queue = enlist(handle, about);
        if (queue)
            ocl_table_put(&queues, handle, (uintptr_t)queue);
    }
    if (queue)
        ocl_queue_stream(queue);
    return queue;
}

/* Made before the layer was there, or by a function that it does not see. */
static struct ocl_queue *adopt_unseen_queue(cl_command_queue handle)
{
    struct ocl_queue about;
    memset(&about, 0, sizeof about);
    cl_device_id device = NULL;
    cl_command_queue_properties bits = 0;
    if (!handle ||
        OCL_CALL(clGetCommandQueueInfo, handle, CL_QUEUE_CONTEXT, sizeof about.context,
                 &about.context, NULL) != CL_SUCCESS ||
        OCL_CALL(clGetCommandQueueInfo, handle, CL_QUEUE_DEVICE, sizeof device, &device, NULL) !=
            CL_SUCCESS ||
        OCL_CALL(clGetCommandQueueInfo, handle, CL_QUEUE_PROPERTIES, sizeof bits, &bits, NULL) !=
            CL_SUCCESS)
        return NULL;
    about.device = ocl_device_of(device);
    about.out_of_order = bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    about.profiled = bits & CL_QUEUE_PROFILING_ENABLE;
    atomic_init(&about.profiling_requested, about.profiled);
    struct ocl_queue *queue = enlist(handle, &about);
    uint64_t there = queue ? ocl_table_add(&queues, handle, (uintptr_t)queue) : 0;
    return (struct ocl_queue *)(uintptr_t)there;
}

struct ocl_queue *ocl_queue_of(cl_command_queue handle)
{
    struct ocl_queue *queue = ocl_queue_known(handle);
    return queue ? queue : adopt_unseen_queue(handle);
}

cl_command_queue ocl_queue_create(ocl_queue_maker maker, void *real, cl_context context,
                                  cl_device_id device, const cl_queue_properties *list,
                                  bool is_list, cl_int *error)
{
    cl_queue_properties forced[OCL_LIST_MAX + 2];
    struct ocl_queue about;
    memset(&about, 0, sizeof about);
    cl_command_queue_properties bits = 0;
    unsigned count = 0, bits_at = 0;
    while (list && list[count] != 0 && count + 2 < OCL_LIST_MAX) {
        if (list[count] == CL_QUEUE_PROPERTIES) {
            bits = list[count + 1];
            bits_at = count + 1;
        }
        forced[count] = list[count];
        forced[count + 1] = list[count + 1];
        count += 2;
    }
    bool whole = !list || list[count] == 0;
    if (bits_at == 0) {
        forced[count] = CL_QUEUE_PROPERTIES;
        bits_at = count + 1;
        forced[count + 2] = 0;
    } else {
        forced[count] = 0;
    }
    forced[bits_at] = bits | CL_QUEUE_PROFILING_ENABLE;
    about.on_device = bits & CL_QUEUE_ON_DEVICE;
    atomic_init(&about.profiling_requested, bits & CL_QUEUE_PROFILING_ENABLE);
    bool force = ocl_on() && whole && !atomic_load(&about.profiling_requested) && !about.on_device;

    cl_int result = CL_SUCCESS;
    cl_command_queue queue = NULL;
    if (force)
        queue = maker(real, context, device, forced, &result);
    about.profiled = queue || atomic_load(&about.profiling_requested);
    if (!queue)
        queue = maker(real, context, device, list, &result);
    if (queue && ocl_on()) {
        int saved = errno;
        about.context = context;
        about.device = ocl_device_of(device);
        about.out_of_order = bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        about.has_list = is_list;
        about.list_count = list && whole ? count + 1 : 0;
        if (about.list_count)
            memcpy(about.list, list, about.list_count * sizeof about.list[0]);
        new_ocl_queue(queue, &about);
        errno = saved;
    }
    if (error)
        *error = result;
    return queue;
}

/* In a forked child: no driver call, the events are leaked there as the parent's whole context is.
 */
void ocl_queue_forked(void)
{
    ocl_table_forked(&queues);
    ocl_harvest_forked();
    for (struct ocl_queue *queue = ocl_queue_all(); queue; queue = queue->next) {
        atomic_store(&queue->lock.owner, 0);
        atomic_store(&queue->harvester.owner, 0);
        queue->head = queue->tail = queue->scan = 0;
        atomic_store(&queue->pending, 0);
    }
}

/* ---- what the program must not notice -------------------------------------------------------- */

/* What the program must not notice: that its queues stamp times which it did not request, and that
 * the layer holds events until they are harvested. Queues are created with profiling forced on and
 * queries about them answer as the program created them; its own profiling queries fail as they
 * would have; and before a reference count is returned or an object may end, finished events are
 * released. What remains held then are commands in flight, which a driver holds anyway. */

/* ---- creating queues ------------------------------------------------------------------------- */

static cl_command_queue make_old(void *real, cl_context context, cl_device_id device,
                                 const cl_queue_properties *list, cl_int *error)
{
    (void)real;
    return OCL_CALL(clCreateCommandQueue, context, device, list[1], error);
}

static cl_command_queue make_from_list(void *real, cl_context context, cl_device_id device,
                                       const cl_queue_properties *list, cl_int *error)
{
    (void)real;
    return OCL_CALL(clCreateCommandQueueWithProperties, context, device, list, error);
}

cl_command_queue CL_API_CALL ocl_clCreateCommandQueue(cl_context context, cl_device_id device,
                                                      cl_command_queue_properties bits,
                                                      cl_int *error)
{
    const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, bits, 0};
    return ocl_queue_create(make_old, NULL, context, device, list, false, error);
}

cl_command_queue CL_API_CALL ocl_clCreateCommandQueueWithProperties(cl_context context,
                                                                    cl_device_id device,
                                                                    const cl_queue_properties *list,
                                                                    cl_int *error)
{
    return ocl_queue_create(make_from_list, NULL, context, device, list, true, error);
}

/* The release may be the last: the queue, and the context with it, must end now if it would end
 * now without us. Afterwards the handle may be dead, its state here is not. */
cl_int CL_API_CALL ocl_clReleaseCommandQueue(cl_command_queue handle)
{
    struct ocl_queue *queue = ocl_on() ? ocl_queue_known(handle) : NULL;
    if (queue && ocl_settle(queue))
        ocl_settled(queue);
    cl_int result = OCL_CALL(clReleaseCommandQueue, handle);
    if (queue)
        ocl_harvest(queue, 0);
    return result;
}

static void settle_all(void)
{
    int saved = errno;
    for (struct ocl_queue *queue = ocl_queue_all(); queue && ocl_on(); queue = queue->next) {
        if (atomic_load_explicit(&queue->pending, memory_order_relaxed) && ocl_settle(queue))
            ocl_settled(queue);
    }
    errno = saved;
}

cl_int CL_API_CALL ocl_clReleaseContext(cl_context context)
{
    settle_all();
    return OCL_CALL(clReleaseContext, context);
}

/* The program turns profiling on or off by the function of OpenCL 1.0. */
cl_int CL_API_CALL ocl_clSetCommandQueueProperty(cl_command_queue handle,
                                                 cl_command_queue_properties bits, cl_bool enable,
                                                 cl_command_queue_properties *before)
{
    cl_int result = OCL_CALL(clSetCommandQueueProperty, handle, bits, enable, before);
    struct ocl_queue *queue = result == CL_SUCCESS ? ocl_queue_known(handle) : NULL;
    if (queue) {
        if (before && !atomic_load(&queue->profiling_requested))
            *before &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
        if (bits & CL_QUEUE_PROFILING_ENABLE)
            atomic_store(&queue->profiling_requested, enable != CL_FALSE);
    }
    return result;
}

/* ---- answers --------------------------------------------------------------------------------- */

static cl_int own_list(const struct ocl_queue *queue, size_t size, void *value, size_t *size_ret)
{
    size_t bytes = queue->list_count * sizeof queue->list[0];
    if (value && size < bytes)
        return CL_INVALID_VALUE;
    if (value)
        memcpy(value, queue->list, bytes);
    if (size_ret)
        *size_ret = bytes;
    return CL_SUCCESS;
}

/* What the driver would return for the list. Drivers differ (PoCL repeats it, NVIDIA's returns only
 * the properties it acted on), so an unknown driver is queried about a queue made as the program
 * wanted it, which is released at once. Programs rarely query it. */
static cl_int list_beneath(const struct ocl_queue *queue, size_t size, void *value,
                           size_t *size_ret)
{
    cl_int result = CL_SUCCESS;
    const cl_queue_properties *list = queue->list_count ? queue->list : NULL;
    cl_command_queue twin = NULL;
    if (queue->device && ocl_next.clCreateCommandQueueWithProperties)
        twin = OCL_CALL(clCreateCommandQueueWithProperties, queue->context, queue->device->handle,
                        list, &result);
    if (!twin)
        return own_list(queue, size, value, size_ret);
    result =
        OCL_CALL(clGetCommandQueueInfo, twin, CL_QUEUE_PROPERTIES_ARRAY, size, value, size_ret);
    OCL_CALL(clReleaseCommandQueue, twin);
    return result;
}

cl_int CL_API_CALL ocl_clGetCommandQueueInfo(cl_command_queue handle, cl_command_queue_info what,
                                             size_t size, void *value, size_t *size_ret)
{
    struct ocl_queue *queue = ocl_queue_known(handle);
    if (!queue)
        return OCL_CALL(clGetCommandQueueInfo, handle, what, size, value, size_ret);
    bool hidden = queue->profiled && !atomic_load(&queue->profiling_requested);
    bool alone = what == CL_QUEUE_REFERENCE_COUNT && ocl_on() && ocl_settle(queue);
    cl_int result;
    if (what == CL_QUEUE_PROPERTIES_ARRAY && hidden && queue->has_list) {
        result = list_beneath(queue, size, value, size_ret);
    } else {
        result = OCL_CALL(clGetCommandQueueInfo, handle, what, size, value, size_ret);
        if (what == CL_QUEUE_PROPERTIES && hidden && result == CL_SUCCESS && value) {
            cl_command_queue_properties bits;
            memcpy(&bits, value, sizeof bits);
            bits &= ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
            memcpy(value, &bits, sizeof bits);
        }
    }
    if (alone)
        ocl_settled(queue);
    return result;
}

cl_int CL_API_CALL ocl_clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t size,
                                               void *value, size_t *size_ret)
{
    struct ocl_queue *queue = event ? ocl_queue_of_event(event) : NULL;
    if (queue && queue->profiled && !atomic_load(&queue->profiling_requested))
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    return OCL_CALL(clGetEventProfilingInfo, event, what, size, value, size_ret);
}

cl_int CL_API_CALL ocl_clGetEventInfo(cl_event event, cl_event_info what, size_t size, void *value,
                                      size_t *size_ret)
{
    struct ocl_queue *queue = NULL;
    if (what == CL_EVENT_REFERENCE_COUNT && event && ocl_on())
        queue = ocl_queue_of_event(event);
    bool alone = queue && ocl_settle(queue);
    cl_int result = OCL_CALL(clGetEventInfo, event, what, size, value, size_ret);
    if (queue && result == CL_SUCCESS && value && ocl_holds(queue, event)) {
        cl_uint count;
        memcpy(&count, value, sizeof count);
        count -= count > 1;
        memcpy(value, &count, sizeof count);
    }
    if (alone)
        ocl_settled(queue);
    return result;
}

/* Objects that commands hold. */
#define COUNTED(function, type, info, counted)                                                     \
    cl_int CL_API_CALL ocl_##function(type object, info what, size_t size, void *value,            \
                                      size_t *size_ret)                                            \
    {                                                                                              \
        if (what == (counted))                                                                     \
            settle_all();                                                                          \
        return OCL_CALL(function, object, what, size, value, size_ret);                            \
    }
COUNTED(clGetContextInfo, cl_context, cl_context_info, CL_CONTEXT_REFERENCE_COUNT)
COUNTED(clGetMemObjectInfo, cl_mem, cl_mem_info, CL_MEM_REFERENCE_COUNT)
COUNTED(clGetKernelInfo, cl_kernel, cl_kernel_info, CL_KERNEL_REFERENCE_COUNT)
COUNTED(clGetProgramInfo, cl_program, cl_program_info, CL_PROGRAM_REFERENCE_COUNT)
