/* Buffer commands: read, write, copy, rectangles, fill, map, unmap, migrate. Bytes are those that
 * the command covers; whether a map moves any is the driver's secret. */
#include "collectors/opencl/ocl.h"

struct ocl_regions ocl_mapped;

cl_int CL_API_CALL ocl_clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                           size_t offset, size_t bytes, void *host, cl_uint waits,
                                           const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueReadBuffer, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueReadBuffer, queue, buffer, blocking, offset,
                              bytes, host, waits, wait_list, command.event);
    return ocl_end_transfer(&command, result, bytes, WIRE_COPY_DTOH, WIRE_MEMORY_DEVICE,
                            WIRE_MEMORY_PAGEABLE, blocking);
}

cl_int CL_API_CALL ocl_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                            size_t offset, size_t bytes, const void *host,
                                            cl_uint waits, const cl_event *wait_list,
                                            cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueWriteBuffer, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueWriteBuffer, queue, buffer, blocking, offset,
                              bytes, host, waits, wait_list, command.event);
    return ocl_end_transfer(&command, result, bytes, WIRE_COPY_HTOD, WIRE_MEMORY_PAGEABLE,
                            WIRE_MEMORY_DEVICE, blocking);
}

cl_int CL_API_CALL ocl_clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                           size_t from_offset, size_t to_offset, size_t bytes,
                                           cl_uint waits, const cl_event *wait_list,
                                           cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueCopyBuffer, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueCopyBuffer, queue, from, to, from_offset,
                              to_offset, bytes, waits, wait_list, command.event);
    return ocl_end_transfer(&command, result, bytes, WIRE_COPY_DTOD, WIRE_MEMORY_DEVICE,
                            WIRE_MEMORY_DEVICE, false);
}

cl_int CL_API_CALL ocl_clEnqueueReadBufferRect(cl_command_queue queue, cl_mem buffer,
                                               cl_bool blocking, const size_t *buffer_origin,
                                               const size_t *host_origin, const size_t *region,
                                               size_t buffer_row, size_t buffer_slice,
                                               size_t host_row, size_t host_slice, void *host,
                                               cl_uint waits, const cl_event *wait_list,
                                               cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueReadBufferRect, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueReadBufferRect, queue, buffer, blocking,
                              buffer_origin, host_origin, region, buffer_row, buffer_slice,
                              host_row, host_slice, host, waits, wait_list, command.event);
    return ocl_end_transfer(&command, result, ocl_region_bytes(region), WIRE_COPY_DTOH,
                            WIRE_MEMORY_DEVICE, WIRE_MEMORY_PAGEABLE, blocking);
}

cl_int CL_API_CALL ocl_clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem buffer,
                                                cl_bool blocking, const size_t *buffer_origin,
                                                const size_t *host_origin, const size_t *region,
                                                size_t buffer_row, size_t buffer_slice,
                                                size_t host_row, size_t host_slice,
                                                const void *host, cl_uint waits,
                                                const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueWriteBufferRect, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueWriteBufferRect, queue, buffer, blocking,
                              buffer_origin, host_origin, region, buffer_row, buffer_slice,
                              host_row, host_slice, host, waits, wait_list, command.event);
    return ocl_end_transfer(&command, result, ocl_region_bytes(region), WIRE_COPY_HTOD,
                            WIRE_MEMORY_PAGEABLE, WIRE_MEMORY_DEVICE, blocking);
}

cl_int CL_API_CALL ocl_clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem from, cl_mem to,
                                               const size_t *from_origin, const size_t *to_origin,
                                               const size_t *region, size_t from_row,
                                               size_t from_slice, size_t to_row, size_t to_slice,
                                               cl_uint waits, const cl_event *wait_list,
                                               cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueCopyBufferRect, queue, event);
    cl_int result =
        OCL_TIMED(&command.call, clEnqueueCopyBufferRect, queue, from, to, from_origin, to_origin,
                  region, from_row, from_slice, to_row, to_slice, waits, wait_list, command.event);
    return ocl_end_transfer(&command, result, ocl_region_bytes(region), WIRE_COPY_DTOD,
                            WIRE_MEMORY_DEVICE, WIRE_MEMORY_DEVICE, false);
}

cl_int CL_API_CALL ocl_clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer,
                                           const void *pattern, size_t pattern_bytes, size_t offset,
                                           size_t bytes, cl_uint waits, const cl_event *wait_list,
                                           cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueFillBuffer, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueFillBuffer, queue, buffer, pattern,
                              pattern_bytes, offset, bytes, waits, wait_list, command.event);
    return ocl_end_memset(&command, result, bytes, pattern, pattern_bytes, WIRE_MEMORY_DEVICE);
}

/* ---- maps ------------------------------------------------------------------------------------ */

void *CL_API_CALL ocl_clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                         cl_map_flags flags, size_t offset, size_t bytes,
                                         cl_uint waits, const cl_event *wait_list, cl_event *event,
                                         cl_int *error)
{
    struct ocl_command command;
    cl_int result = CL_SUCCESS;
    ocl_begin(&command, OCL_clEnqueueMapBuffer, queue, event);
    void *at = OCL_TIMED(&command.call, clEnqueueMapBuffer, queue, buffer, blocking, flags, offset,
                         bytes, waits, wait_list, command.event, &result);
    if (at && command.call.live)
        ocl_region_add(&ocl_mapped, at, bytes, 0);
    ocl_end_transfer(&command, result, bytes, WIRE_COPY_MAP, WIRE_MEMORY_DEVICE,
                     WIRE_MEMORY_PAGEABLE, blocking);
    if (error)
        *error = result;
    return at;
}

cl_int CL_API_CALL ocl_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void *at,
                                               cl_uint waits, const cl_event *wait_list,
                                               cl_event *event)
{
    struct ocl_command command;
    struct ocl_region region = {0};
    ocl_begin(&command, OCL_clEnqueueUnmapMemObject, queue, event);
    /* Before the call: right after it another thread may be given the same address. */
    bool taken = command.call.live && ocl_region_take(&ocl_mapped, at, &region);
    cl_int result = OCL_TIMED(&command.call, clEnqueueUnmapMemObject, queue, memory, at, waits,
                              wait_list, command.event);
    if (taken && result != CL_SUCCESS)
        ocl_region_add(&ocl_mapped, at, region.bytes, 0);
    return ocl_end_transfer(&command, result, region.bytes, WIRE_COPY_UNMAP, WIRE_MEMORY_PAGEABLE,
                            WIRE_MEMORY_DEVICE, false);
}

cl_int CL_API_CALL ocl_clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count,
                                                  const cl_mem *list, cl_mem_migration_flags flags,
                                                  cl_uint waits, const cl_event *wait_list,
                                                  cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueMigrateMemObjects, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueMigrateMemObjects, queue, count, list, flags,
                              waits, wait_list, command.event);
    uint64_t bytes = 0;
    for (cl_uint i = 0; command.call.on && result == CL_SUCCESS && i < count; i++)
        bytes += ocl_mem_size(list[i]);
    bool to_host = flags & CL_MIGRATE_MEM_OBJECT_HOST;
    return ocl_end_transfer(&command, result, bytes, WIRE_COPY_MIGRATE,
                            to_host ? WIRE_MEMORY_DEVICE : WIRE_MEMORY_UNKNOWN,
                            to_host ? WIRE_MEMORY_PAGEABLE : WIRE_MEMORY_DEVICE, false);
}

/* ---- Image commands --------------------------------------------------------------------------
 *
 * Image commands. Bytes are the region's elements times the image's element size, which is queried
 * from the driver after the command is in the queue. */

static uint64_t region_bytes(const struct ocl_command *command, cl_int result, cl_mem image,
                             const size_t *region)
{
    size_t element = 0;
    if (!command->call.live || result != CL_SUCCESS ||
        OCL_CALL(clGetImageInfo, image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, NULL) !=
            CL_SUCCESS)
        return 0;
    return element * ocl_region_bytes(region);
}

cl_int CL_API_CALL ocl_clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                          const size_t *origin, const size_t *region, size_t row,
                                          size_t slice, void *host, cl_uint waits,
                                          const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueReadImage, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueReadImage, queue, image, blocking, origin,
                              region, row, slice, host, waits, wait_list, command.event);
    return ocl_end_transfer(&command, result, region_bytes(&command, result, image, region),
                            WIRE_COPY_ATOH, WIRE_MEMORY_ARRAY, WIRE_MEMORY_PAGEABLE, blocking);
}

cl_int CL_API_CALL ocl_clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                           const size_t *origin, const size_t *region, size_t row,
                                           size_t slice, const void *host, cl_uint waits,
                                           const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueWriteImage, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueWriteImage, queue, image, blocking, origin,
                              region, row, slice, host, waits, wait_list, command.event);
    return ocl_end_transfer(&command, result, region_bytes(&command, result, image, region),
                            WIRE_COPY_HTOA, WIRE_MEMORY_PAGEABLE, WIRE_MEMORY_ARRAY, blocking);
}

cl_int CL_API_CALL ocl_clEnqueueCopyImage(cl_command_queue queue, cl_mem from, cl_mem to,
                                          const size_t *from_origin, const size_t *to_origin,
                                          const size_t *region, cl_uint waits,
                                          const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueCopyImage, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueCopyImage, queue, from, to, from_origin,
                              to_origin, region, waits, wait_list, command.event);
    return ocl_end_transfer(&command, result, region_bytes(&command, result, from, region),
                            WIRE_COPY_ATOA, WIRE_MEMORY_ARRAY, WIRE_MEMORY_ARRAY, false);
}

cl_int CL_API_CALL ocl_clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                                  const size_t *origin, const size_t *region,
                                                  size_t offset, cl_uint waits,
                                                  const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueCopyImageToBuffer, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueCopyImageToBuffer, queue, from, to, origin,
                              region, offset, waits, wait_list, command.event);
    return ocl_end_transfer(&command, result, region_bytes(&command, result, from, region),
                            WIRE_COPY_ATOD, WIRE_MEMORY_ARRAY, WIRE_MEMORY_DEVICE, false);
}

cl_int CL_API_CALL ocl_clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem from, cl_mem to,
                                                  size_t offset, const size_t *origin,
                                                  const size_t *region, cl_uint waits,
                                                  const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueCopyBufferToImage, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueCopyBufferToImage, queue, from, to, offset,
                              origin, region, waits, wait_list, command.event);
    return ocl_end_transfer(&command, result, region_bytes(&command, result, to, region),
                            WIRE_COPY_DTOA, WIRE_MEMORY_DEVICE, WIRE_MEMORY_ARRAY, false);
}

cl_int CL_API_CALL ocl_clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void *color,
                                          const size_t *origin, const size_t *region, cl_uint waits,
                                          const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueFillImage, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueFillImage, queue, image, color, origin,
                              region, waits, wait_list, command.event);
    return ocl_end_memset(&command, result, region_bytes(&command, result, image, region), color,
                          sizeof(cl_uint), WIRE_MEMORY_ARRAY);
}

void *CL_API_CALL ocl_clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
                                        cl_map_flags flags, const size_t *origin,
                                        const size_t *region, size_t *row, size_t *slice,
                                        cl_uint waits, const cl_event *wait_list, cl_event *event,
                                        cl_int *error)
{
    struct ocl_command command;
    cl_int result = CL_SUCCESS;
    ocl_begin(&command, OCL_clEnqueueMapImage, queue, event);
    void *at = OCL_TIMED(&command.call, clEnqueueMapImage, queue, image, blocking, flags, origin,
                         region, row, slice, waits, wait_list, command.event, &result);
    uint64_t bytes = region_bytes(&command, result, image, region);
    if (at && command.call.live)
        ocl_region_add(&ocl_mapped, at, bytes, 0);
    ocl_end_transfer(&command, result, bytes, WIRE_COPY_MAP, WIRE_MEMORY_ARRAY,
                     WIRE_MEMORY_PAGEABLE, blocking);
    if (error)
        *error = result;
    return at;
}
