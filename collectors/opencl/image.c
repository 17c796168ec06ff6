/* Image commands. Bytes are the region's elements times the image's element size, which is queried
 * from the driver after the command is in the queue. */
#include "collectors/opencl/ocl.h"

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
