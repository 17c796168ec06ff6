/* Commands on buffers and images: read, write, copy, rectangles, fill, map, unmap, migrate. Bytes
 * are those that the command covers; whether a map moves any is the driver's secret. */
#include <stdatomic.h>
#include <string.h>

#include "collectors/opencl/ocl.h"

/* What an upload brings; NULL: other commands may write it after the call. */
static const void *ocl_content_of(const void *host, size_t bytes, bool blocking, cl_uint waits);
/* This memory, which was mapped, is about to be unmapped. */
static void ocl_forget_read(const void *host);

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

/* ---- what uploads bring ---------------------------------------------------------------------- */

/* Whether an upload brings what its destination was given before: what a program computes once and
 * sends in each iteration. An upload of other bytes costs a look at 64 words. Where those are as
 * before, all bytes are read: at first, then at every eighth upload while they stay the same, and
 * after 2, 4, .. 64 uploads where they did not. The slots are shared without a lock: two threads
 * that upload to one place at once may both read all bytes, and find no difference that is not
 * there.
 *
 * An upload that does not block may lie behind a read into the memory that it comes from, in the
 * same queue: what it brings is not there yet when the call returns. Memory that was read into or
 * mapped without blocking is therefore noted, and such uploads from it are not compared. When there
 * is no room to note more, none is compared any more, and the capture says so. */

#define LEAST 1024
#define MOST ((size_t)64 << 20)
#define WORDS 64
#define EVERY 8
#define PRIME UINT64_C(0x9e3779b97f4a7c15)

static struct slot {
    _Atomic uint64_t place, sample, whole; /* hashes; whole 0 = not taken */
    _Atomic uint32_t equal, rest, pause; /* samples alike; uploads not to look at; how many next */
    _Atomic bool same;
} slots[256];

#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define PUT(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)

static uint64_t word_at(const unsigned char *data, size_t at)
{
    uint64_t word;
    memcpy(&word, data + at, sizeof word);
    return word;
}

static uint64_t mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * PRIME;
    return hash ^ hash >> 32;
}

static uint64_t sample_of(const unsigned char *data, size_t bytes)
{
    uint64_t hash = bytes;
    size_t step = (bytes - sizeof(uint64_t)) / (WORDS - 1);
    for (size_t i = 0; i < WORDS; i++)
        hash = mixed(hash, word_at(data, i * step));
    return hash;
}

/* Four rows of words side by side, since a product takes the processor some cycles. */
static uint64_t whole_of(const unsigned char *data, size_t bytes)
{
    uint64_t rows[4] = {1, 2, 3, 4};
    size_t at = 0;
    for (; at + 32 <= bytes; at += 32)
        for (size_t i = 0; i < 4; i++)
            rows[i] = mixed(rows[i], word_at(data, at + 8 * i));
    rows[0] = mixed(rows[0], word_at(data, bytes - 8)); /* what is left, some of it twice */
    for (; at + 8 <= bytes; at += 8)
        rows[1] = mixed(rows[1], word_at(data, at));
    return mixed(mixed(rows[0], rows[1]), mixed(rows[2], rows[3])) | 1;
}

static bool forget_content(struct slot *slot, uint64_t place, uint64_t sample)
{
    bool known = GET(slot->place) == place;
    PUT(slot->place, place);
    PUT(slot->sample, sample);
    PUT(slot->whole, 0);
    PUT(slot->equal, 0);
    PUT(slot->same, false);
    if (!known) {
        PUT(slot->rest, 0);
        PUT(slot->pause, 1);
    }
    return false;
}

/* Where commands that did not block write host memory to; without a lock. What was mapped is
 * forgotten when it is unmapped: nothing may be uploaded from there any more. */
#define READS 64u
static struct {
    _Atomic uintptr_t begin, end; /* begin 0 = free */
} reads[READS];
static _Atomic unsigned read_count; /* entries used so far, from the first on */
static _Atomic bool reads_full;     /* anywhere */

static void raise_to(_Atomic uintptr_t *value, uintptr_t least)
{
    uintptr_t other = atomic_load(value);
    while (other < least && !atomic_compare_exchange_weak(value, &other, least)) {
    }
}

/* The entry that begins there; a free one, which then does; READS: none. */
static unsigned read_entry(uintptr_t begin)
{
    unsigned count = atomic_load(&read_count);
    for (unsigned at = 0; at < count; at++)
        if (atomic_load(&reads[at].begin) == begin)
            return at;
    for (unsigned at = 0; at < READS; at++) {
        uintptr_t nobody = 0;
        if (!atomic_compare_exchange_strong(&reads[at].begin, &nobody, begin))
            continue;
        while (count < at + 1 && !atomic_compare_exchange_weak(&read_count, &count, at + 1)) {
        }
        return at;
    }
    return READS;
}

void ocl_note_read(const void *host, uint64_t bytes)
{
    if (!host || atomic_load(&reads_full))
        return;
    unsigned at = read_entry((uintptr_t)host);
    if (at < READS)
        raise_to(&reads[at].end, (uintptr_t)host + bytes);
    else if (!atomic_exchange(&reads_full, true))
        collector_health(WIRE_SOURCE_OPENCL, WIRE_HEALTH_NOTE,
                         "uploads that do not block are no longer checked for repeated content: "
                         "the program reads or maps more than 64 places without blocking",
                         0);
}

static void ocl_forget_read(const void *host)
{
    unsigned count = atomic_load(&read_count);
    for (unsigned at = 0; at < count; at++) {
        uintptr_t begin = (uintptr_t)host;
        if (atomic_load(&reads[at].begin) != begin)
            continue;
        atomic_store(&reads[at].end, 0);
        atomic_compare_exchange_strong(&reads[at].begin, &begin, 0);
    }
}

static bool was_read_into(const void *host, size_t bytes)
{
    uintptr_t begin = (uintptr_t)host;
    unsigned count = atomic_load(&read_count);
    for (unsigned i = 0; i < count; i++) {
        uintptr_t from = atomic_load(&reads[i].begin);
        if (from && from < begin + bytes && begin < atomic_load(&reads[i].end))
            return true;
    }
    return atomic_load(&reads_full);
}

static const void *ocl_content_of(const void *host, size_t bytes, bool blocking, cl_uint waits)
{
    return blocking || (!waits && !was_read_into(host, bytes)) ? host : NULL;
}

bool ocl_is_same_content(cl_mem buffer, size_t offset, size_t bytes, const void *host)
{
    if (bytes < LEAST || bytes > MOST || ocl_svm.count)
        return false;
    uint64_t place = mixed(mixed(mixed(1, (uintptr_t)buffer), offset), bytes) | 1;
    struct slot *slot = &slots[place >> 56];
    if (!host)
        return GET(slot->place) == place && forget_content(slot, place, 0);
    uint64_t sample = sample_of(host, bytes);
    if (GET(slot->place) != place || GET(slot->sample) != sample)
        return forget_content(slot, place, sample);
    uint32_t rest = GET(slot->rest);
    if (rest) {
        PUT(slot->rest, rest - 1);
        return false;
    }
    uint32_t equal = GET(slot->equal) + 1;
    PUT(slot->equal, equal);
    if (equal > 3 && equal % EVERY)
        return GET(slot->same);
    uint64_t whole = whole_of(host, bytes), before = GET(slot->whole);
    PUT(slot->whole, whole);
    PUT(slot->same, before == whole);
    if (before && before != whole) { /* other bytes than those looked at change */
        uint32_t pause = GET(slot->pause) < 64 ? 2 * GET(slot->pause) : 64;
        forget_content(slot, place, sample);
        PUT(slot->pause, pause);
        PUT(slot->rest, pause);
    }
    return before == whole;
}
