/* Commands on buffers and images: read, write, copy, rectangles, fill, map, unmap, migrate. Bytes
 * are those that the command covers; whether a map moves any is the driver's secret. */
#include "collectors/opencl/ocl.h"

struct ocl_regions ocl_mapped;

OCL_COMMAND(clEnqueueReadBuffer,
            (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
             void *host, OCL_WAITS),
            (queue, buffer, blocking, offset, bytes, host),
            ocl_end_read(&command, result, bytes, WIRE_COPY_DTOH, host, bytes, blocking))

OCL_COMMAND(clEnqueueWriteBuffer,
            (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
             const void *host, OCL_WAITS),
            (queue, buffer, blocking, offset, bytes, host),
            ocl_end_upload(&command, result, buffer, offset, bytes,
                           ocl_content_of(host, bytes, blocking, waits), blocking))

OCL_COMMAND(clEnqueueCopyBuffer,
            (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
             size_t bytes, OCL_WAITS),
            (queue, from, to, from_offset, to_offset, bytes),
            ocl_end_transfer(&command, result, bytes, WIRE_COPY_DTOD, WIRE_MEMORY_DEVICE,
                             WIRE_MEMORY_DEVICE, false))

/* Of a rectangle in the host's memory: the bytes from the memory's begin on, if not fewer. */
static uint64_t rectangle_end(const size_t *origin, const size_t *region, size_t row, size_t slice)
{
    if (!origin || !region)
        return 0;
    row = row ? row : region[0];
    slice = slice ? slice : row * region[1];
    return (origin[2] + region[2]) * slice + (origin[1] + region[1]) * row + origin[0] + region[0];
}

OCL_COMMAND(clEnqueueReadBufferRect,
            (cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *buffer_origin,
             const size_t *host_origin, const size_t *region, size_t buffer_row,
             size_t buffer_slice, size_t host_row, size_t host_slice, void *host, OCL_WAITS),
            (queue, buffer, blocking, buffer_origin, host_origin, region, buffer_row, buffer_slice,
             host_row, host_slice, host),
            ocl_end_read(&command, result, ocl_region_bytes(region), WIRE_COPY_DTOH, host,
                         rectangle_end(host_origin, region, host_row, host_slice), blocking))

OCL_COMMAND(clEnqueueWriteBufferRect,
            (cl_command_queue queue, cl_mem buffer, cl_bool blocking, const size_t *buffer_origin,
             const size_t *host_origin, const size_t *region, size_t buffer_row,
             size_t buffer_slice, size_t host_row, size_t host_slice, const void *host, OCL_WAITS),
            (queue, buffer, blocking, buffer_origin, host_origin, region, buffer_row, buffer_slice,
             host_row, host_slice, host),
            ocl_end_transfer(&command, result, ocl_region_bytes(region), WIRE_COPY_HTOD,
                             WIRE_MEMORY_PAGEABLE, WIRE_MEMORY_DEVICE, blocking))

OCL_COMMAND(clEnqueueCopyBufferRect,
            (cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_origin,
             const size_t *to_origin, const size_t *region, size_t from_row, size_t from_slice,
             size_t to_row, size_t to_slice, OCL_WAITS),
            (queue, from, to, from_origin, to_origin, region, from_row, from_slice, to_row,
             to_slice),
            ocl_end_transfer(&command, result, ocl_region_bytes(region), WIRE_COPY_DTOD,
                             WIRE_MEMORY_DEVICE, WIRE_MEMORY_DEVICE, false))

OCL_COMMAND(clEnqueueFillBuffer,
            (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_bytes,
             size_t offset, size_t bytes, OCL_WAITS),
            (queue, buffer, pattern, pattern_bytes, offset, bytes),
            ocl_end_memset(&command, result, bytes, pattern, pattern_bytes, WIRE_MEMORY_DEVICE))

/* ---- maps ------------------------------------------------------------------------------------ */

/* A map that does not block may bring what is there only when it has ended. */
static void note_map(const struct ocl_command *command, void *at, uint64_t bytes, uint64_t extent,
                     cl_bool blocking, cl_map_flags flags)
{
    if (!at || !command->call.live)
        return;
    ocl_region_add(&ocl_mapped, at, bytes, 0);
    if (!blocking && !(flags & CL_MAP_WRITE_INVALIDATE_REGION))
        ocl_note_read(at, extent);
}

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
    note_map(&command, at, bytes, bytes, blocking, flags);
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
    bool last = taken && region.count == 1;
    if (last)
        ocl_forget_read(at);
    cl_int result = OCL_TIMED(&command.call, clEnqueueUnmapMemObject, queue, memory, at, waits,
                              wait_list, command.event);
    if (taken && result != CL_SUCCESS) {
        ocl_region_add(&ocl_mapped, at, region.bytes, 0);
        if (last)
            ocl_note_read(at, region.bytes);
    }
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
 * Bytes are the region's elements times the image's element size, which is queried
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

/* Of an image in the host's memory, with what lies between its rows and slices. */
static uint64_t image_extent(uint64_t bytes, const size_t *region, size_t row, size_t slice)
{
    uint64_t rows = region && row ? row * region[1] * region[2] : bytes;
    uint64_t slices = region && slice ? slice * region[2] : 0;
    return rows > slices ? rows : slices;
}

static cl_int end_image_read(struct ocl_command *command, cl_int result, uint64_t bytes,
                             const void *host, const size_t *region, size_t row, size_t slice,
                             bool blocking)
{
    return ocl_end_read(command, result, bytes, WIRE_COPY_ATOH, host,
                        image_extent(bytes, region, row, slice), blocking);
}

OCL_COMMAND(clEnqueueReadImage,
            (cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin,
             const size_t *region, size_t row, size_t slice, void *host, OCL_WAITS),
            (queue, image, blocking, origin, region, row, slice, host),
            end_image_read(&command, result, region_bytes(&command, result, image, region), host,
                           region, row, slice, blocking))

OCL_COMMAND(clEnqueueWriteImage,
            (cl_command_queue queue, cl_mem image, cl_bool blocking, const size_t *origin,
             const size_t *region, size_t row, size_t slice, const void *host, OCL_WAITS),
            (queue, image, blocking, origin, region, row, slice, host),
            ocl_end_transfer(&command, result, region_bytes(&command, result, image, region),
                             WIRE_COPY_HTOA, WIRE_MEMORY_PAGEABLE, WIRE_MEMORY_ARRAY, blocking))

OCL_COMMAND(clEnqueueCopyImage,
            (cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_origin,
             const size_t *to_origin, const size_t *region, OCL_WAITS),
            (queue, from, to, from_origin, to_origin, region),
            ocl_end_transfer(&command, result, region_bytes(&command, result, from, region),
                             WIRE_COPY_ATOA, WIRE_MEMORY_ARRAY, WIRE_MEMORY_ARRAY, false))

OCL_COMMAND(clEnqueueCopyImageToBuffer,
            (cl_command_queue queue, cl_mem from, cl_mem to, const size_t *origin,
             const size_t *region, size_t offset, OCL_WAITS),
            (queue, from, to, origin, region, offset),
            ocl_end_transfer(&command, result, region_bytes(&command, result, from, region),
                             WIRE_COPY_ATOD, WIRE_MEMORY_ARRAY, WIRE_MEMORY_DEVICE, false))

OCL_COMMAND(clEnqueueCopyBufferToImage,
            (cl_command_queue queue, cl_mem from, cl_mem to, size_t offset, const size_t *origin,
             const size_t *region, OCL_WAITS),
            (queue, from, to, offset, origin, region),
            ocl_end_transfer(&command, result, region_bytes(&command, result, to, region),
                             WIRE_COPY_DTOA, WIRE_MEMORY_DEVICE, WIRE_MEMORY_ARRAY, false))

OCL_COMMAND(clEnqueueFillImage,
            (cl_command_queue queue, cl_mem image, const void *color, const size_t *origin,
             const size_t *region, OCL_WAITS),
            (queue, image, color, origin, region),
            ocl_end_memset(&command, result, region_bytes(&command, result, image, region), color,
                           sizeof(cl_uint), WIRE_MEMORY_ARRAY))

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
    note_map(&command, at, bytes,
             at ? image_extent(bytes, region, row ? *row : 0, slice ? *slice : 0) : 0, blocking,
             flags);
    ocl_end_transfer(&command, result, bytes, WIRE_COPY_MAP, WIRE_MEMORY_ARRAY,
                     WIRE_MEMORY_PAGEABLE, blocking);
    if (error)
        *error = result;
    return at;
}
