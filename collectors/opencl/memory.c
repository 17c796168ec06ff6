/* Buffers, images, pipes: when they begin and when they end.
 *
 * A memory object ends when its last reference goes, which may be a sub-buffer's, an image's or a
 * command's, on any thread. Only the driver knows the moment, and tells it to a destructor
 * callback. Ours is registered at creation, before the program can register one, and callbacks run
 * in the reverse order of their registration, so the program's see what they always saw. The
 * callback gets the allocation's number, never the handle. Drivers without callbacks (OpenCL 1.0)
 * are asked for the reference count at each release instead; an end by a sub-object is missed. */
#include "collectors/opencl/ocl.h"

static struct ocl_table counted = OCL_TABLE; /* objects without a callback: their numbers */
static _Atomic bool any_counted;
static _Atomic uint64_t last_id;

/* The release call that this thread is in, for the record of the end. */
static _Thread_local uint64_t releasing __attribute__((tls_model("initial-exec")));

uint64_t ocl_allocation_id(void)
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

void ocl_emit_alloc(const struct ocl_call *call, cl_context context, uint64_t id,
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

void ocl_emit_alloc_failed(const struct ocl_call *call, cl_context context, uint64_t bytes,
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

/* What a callback gets: the number and, in the bits above, the process that it is of (a forked child
 * knows none). */
#define ID_BITS 48

static uint64_t of_this_process(void)
{
    return (uint64_t)atomic_load(&ocl_epoch) << ID_BITS;
}

static uint64_t packed(uint64_t id)
{
    return of_this_process() | id;
}

static void ended(uint64_t value, uint64_t correlation)
{
    uint64_t id = value & (((uint64_t)1 << ID_BITS) - 1);
    if (ocl_on() && value - id == of_this_process())
        ocl_emit_free(id, collector_now(), correlation);
}

static void CL_CALLBACK destroyed(cl_mem memory, void *data)
{
    (void)memory;
    ended((uintptr_t)data, releasing);
}

/* A new object: define it and watch for its end. */
static void begun(const struct ocl_call *call, cl_context context, cl_mem memory, cl_int result,
                  const void *address, uint64_t bytes, enum wire_memory_kind kind)
{
    if (!call->on)
        return;
    ocl_call_end(call, result, WIRE_EXPECTS_NONE);
    if (result != CL_SUCCESS && call->hook != OCL_clCreateSubBuffer)
        ocl_emit_alloc_failed(call, context, bytes, kind, result);
    if (result != CL_SUCCESS || !memory)
        return;
    int saved = errno;
    uint64_t id = ocl_allocation_id();
    ocl_emit_alloc(call, context, id, address, bytes, kind);
    void *data = (void *)(uintptr_t)packed(id);
    if (!ocl_next.clSetMemObjectDestructorCallback ||
        OCL_CALL(clSetMemObjectDestructorCallback, memory, destroyed, data) != CL_SUCCESS) {
        atomic_store(&any_counted, true);
        ocl_table_put(&counted, memory, packed(id));
    }
    errno = saved;
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

/* ---- hooks ----------------------------------------------------------------------------------- */

cl_mem CL_API_CALL ocl_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                      void *host, cl_int *error)
{
    struct ocl_call call;
    cl_int result = CL_SUCCESS;
    ocl_call_begin(&call, OCL_clCreateBuffer);
    cl_mem memory = OCL_TIMED(&call, clCreateBuffer, context, flags, bytes, host, &result);
    begun(&call, context, memory, result, host_address(flags, host), bytes, buffer_kind(flags));
    if (error)
        *error = result;
    return memory;
}

cl_mem CL_API_CALL ocl_clCreateBufferWithProperties(cl_context context,
                                                    const cl_mem_properties *properties,
                                                    cl_mem_flags flags, size_t bytes, void *host,
                                                    cl_int *error)
{
    struct ocl_call call;
    cl_int result = CL_SUCCESS;
    ocl_call_begin(&call, OCL_clCreateBufferWithProperties);
    cl_mem memory = OCL_TIMED(&call, clCreateBufferWithProperties, context, properties, flags,
                              bytes, host, &result);
    begun(&call, context, memory, result, host_address(flags, host), bytes, buffer_kind(flags));
    if (error)
        *error = result;
    return memory;
}

cl_mem CL_API_CALL ocl_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags,
                                         cl_buffer_create_type type, const void *about,
                                         cl_int *error)
{
    struct ocl_call call;
    cl_int result = CL_SUCCESS;
    ocl_call_begin(&call, OCL_clCreateSubBuffer);
    cl_mem memory = OCL_TIMED(&call, clCreateSubBuffer, buffer, flags, type, about, &result);
    cl_context context = NULL;
    if (call.on && memory)
        OCL_CALL(clGetMemObjectInfo, memory, CL_MEM_CONTEXT, sizeof context, &context, NULL);
    begun(&call, context, memory, result, NULL, 0, WIRE_MEMORY_DEVICE);
    if (error)
        *error = result;
    return memory;
}

cl_mem CL_API_CALL ocl_clCreateImage(cl_context context, cl_mem_flags flags,
                                     const cl_image_format *format, const cl_image_desc *desc,
                                     void *host, cl_int *error)
{
    struct ocl_call call;
    cl_int result = CL_SUCCESS;
    ocl_call_begin(&call, OCL_clCreateImage);
    cl_mem memory = OCL_TIMED(&call, clCreateImage, context, flags, format, desc, host, &result);
    begun(&call, context, memory, result, host_address(flags, host),
          image_bytes(&call, memory, desc), WIRE_MEMORY_ARRAY);
    if (error)
        *error = result;
    return memory;
}

cl_mem CL_API_CALL ocl_clCreateImageWithProperties(
    cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
    const cl_image_format *format, const cl_image_desc *desc, void *host, cl_int *error)
{
    struct ocl_call call;
    cl_int result = CL_SUCCESS;
    ocl_call_begin(&call, OCL_clCreateImageWithProperties);
    cl_mem memory = OCL_TIMED(&call, clCreateImageWithProperties, context, properties, flags,
                              format, desc, host, &result);
    begun(&call, context, memory, result, host_address(flags, host),
          image_bytes(&call, memory, desc), WIRE_MEMORY_ARRAY);
    if (error)
        *error = result;
    return memory;
}

cl_mem CL_API_CALL ocl_clCreateImage2D(cl_context context, cl_mem_flags flags,
                                       const cl_image_format *format, size_t width, size_t height,
                                       size_t row, void *host, cl_int *error)
{
    struct ocl_call call;
    cl_int result = CL_SUCCESS;
    ocl_call_begin(&call, OCL_clCreateImage2D);
    cl_mem memory = OCL_TIMED(&call, clCreateImage2D, context, flags, format, width, height, row,
                              host, &result);
    begun(&call, context, memory, result, host_address(flags, host),
          image_bytes(&call, memory, NULL), WIRE_MEMORY_ARRAY);
    if (error)
        *error = result;
    return memory;
}

cl_mem CL_API_CALL ocl_clCreateImage3D(cl_context context, cl_mem_flags flags,
                                       const cl_image_format *format, size_t width, size_t height,
                                       size_t depth, size_t row, size_t slice, void *host,
                                       cl_int *error)
{
    struct ocl_call call;
    cl_int result = CL_SUCCESS;
    ocl_call_begin(&call, OCL_clCreateImage3D);
    cl_mem memory = OCL_TIMED(&call, clCreateImage3D, context, flags, format, width, height, depth,
                              row, slice, host, &result);
    begun(&call, context, memory, result, host_address(flags, host),
          image_bytes(&call, memory, NULL), WIRE_MEMORY_ARRAY);
    if (error)
        *error = result;
    return memory;
}

cl_mem CL_API_CALL ocl_clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet,
                                    cl_uint packets, const cl_pipe_properties *properties,
                                    cl_int *error)
{
    struct ocl_call call;
    cl_int result = CL_SUCCESS;
    ocl_call_begin(&call, OCL_clCreatePipe);
    cl_mem memory =
        OCL_TIMED(&call, clCreatePipe, context, flags, packet, packets, properties, &result);
    begun(&call, context, memory, result, NULL, (uint64_t)packet * packets, WIRE_MEMORY_DEVICE);
    if (error)
        *error = result;
    return memory;
}

cl_int CL_API_CALL ocl_clReleaseMemObject(cl_mem memory)
{
    struct ocl_call call;
    ocl_call_begin(&call, OCL_clReleaseMemObject);
    if (call.live)
        ocl_harvest_all(4 * OCL_POLL_EVERY); /* an event of ours may keep the object alive */
    uint64_t value = 0;
    cl_uint references = 0;
    if (call.live && atomic_load_explicit(&any_counted, memory_order_relaxed)) {
        value = ocl_table_get(&counted, memory);
        if (value && (OCL_CALL(clGetMemObjectInfo, memory, CL_MEM_REFERENCE_COUNT,
                               sizeof references, &references, NULL) != CL_SUCCESS ||
                      references != 1))
            value = 0;
        if (value)
            ocl_table_put(&counted, memory, 0);
    }
    uint64_t outer = releasing;
    releasing = call.on ? call.correlation : 0;
    cl_int result = OCL_TIMED(&call, clReleaseMemObject, memory);
    releasing = outer;
    ocl_call_end(&call, result, WIRE_EXPECTS_NONE);
    if (value && result == CL_SUCCESS)
        ended(value, call.correlation);
    return result;
}
