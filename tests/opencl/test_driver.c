/* The OpenCL layer over a driver of our own making (made_up_driver.h), for what no driver at hand
 * does: clocks of every kind, refused profiling, missing functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/opencl/hooks.h"
#include "collectors/opencl/ocl.h"
#include "tests/check_main.h"
#include "tests/opencl/made_up_driver.h"
#include "tests/opencl/read_log.h"

static char path[] = "/tmp/ocl_driver_XXXXXX";
static const struct _cl_icd_dispatch *layer;
static const cl_context context = (cl_context)(void *)&context_object;
static const cl_device_id device = (cl_device_id)(void *)&device_object;
static const cl_kernel kernel = (cl_kernel)(void *)&kernel_object;
static const size_t global = 64;

static void start(void)
{
    cl_uint count = 0;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    setenv("OCL_TEST_LOG", path, 1);
    setenv("OCL_TEST_NO_TICK", "1", 1); /* this driver is for one thread */
    ck_assert_int_eq(clInitLayer(sizeof below / sizeof(void *), &below, &count, &layer), 0);
}

static void stop(void)
{
    unlink(path);
}

static cl_command_queue queue_of(cl_command_queue_properties bits)
{
    cl_int error;
    cl_command_queue queue = layer->clCreateCommandQueue(context, device, bits, &error);
    ck_assert_int_eq(error, CL_SUCCESS);
    return queue;
}

static cl_int enqueue(cl_command_queue queue, cl_event *event)
{
    return layer->clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, event);
}

static unsigned of_type(const struct log *log, enum wire_type type)
{
    unsigned count = 0;
    for (size_t i = 0; i < log->count; i++)
        count += log->list[i].record->head.type == type;
    return count;
}

static const struct {
    int clock;
    bool timer;
    const char *name;
} clock_cases[] = {
    {RAW, false, "CLOCK_MONOTONIC_RAW"},
    {MONOTONIC, false, "CLOCK_MONOTONIC"},
    {SHIFTED, true, "device"},
    {SHIFTED, false, "device, by its enqueue calls"},
    {NEARLY, false, "device, by its enqueue calls"},
};

START_TEST(clocks)
{
    struct log log;
    char name[64] = "";
    driver.clock = (enum clock)clock_cases[_i].clock;
    driver.timer = clock_cases[_i].timer;
    cl_command_queue queue = queue_of(0);
    for (int i = 0; i < 5000; i++)
        ck_assert_int_eq(enqueue(queue, NULL), CL_SUCCESS);
    layer->clFinish(queue);
    ck_assert(log_open(&log, path));
    const char *wrong = driver.clock == NEARLY ? NULL : log_sound(&log, true);
    ck_assert_msg(!wrong, "%s", wrong);
    for (size_t i = 0; i < log.count; i++)
        if (log.list[i].record->head.type == WIRE_CLOCK)
            log_text(&log, log.list[i].record->clock.name, name, sizeof name);
    /* RAW and MONOTONIC may be closer to each other than a call is long; then RAW is taken. */
    uint64_t raw = read_clock(CLOCK_MONOTONIC_RAW), mono = read_clock(CLOCK_MONOTONIC);
    bool alike = mono - raw < 3000 || raw - mono < 3000;
    if (!(alike && driver.clock == MONOTONIC))
        ck_assert_str_eq(name, clock_cases[_i].name);
    log_close(&log);
}
END_TEST

START_TEST(profiling_refused)
{
    struct log log;
    driver.refuse = true;
    cl_command_queue queue = queue_of(0);
    cl_event event = NULL;
    ck_assert_int_eq(enqueue(queue, NULL), CL_SUCCESS);
    ck_assert_int_eq(enqueue(queue, &event), CL_SUCCESS);
    ck_assert_int_eq(((struct event *)(void *)event)->references, 1);
    layer->clFinish(queue);
    ck_assert_int_eq(driver.made_with_profiling, 0);
    ck_assert(log_open(&log, path));
    ck_assert_ptr_null(log_sound(&log, true));
    ck_assert_uint_eq(of_type(&log, WIRE_KERNEL), 2);
    ck_assert_uint_eq(of_type(&log, WIRE_DONE), 0);
    ck_assert_uint_eq(log.counts[WIRE_COUNT_UNPROFILED], 2);
    log_close(&log);
}
END_TEST

/* 1000 commands wait at the head while 20000 pass them, and all are told; no event is left. */
START_TEST(out_of_order)
{
    struct log log;
    cl_event held[1000];
    cl_command_queue queue = queue_of(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    driver.hold = true;
    for (int i = 0; i < 1000; i++)
        enqueue(queue, &held[i]);
    driver.hold = false;
    for (int i = 0; i < 20000; i++)
        enqueue(queue, NULL);
    ck_assert_int_lt(driver.live_events, 15000); /* passed ones were let go on the way */
    layer->clFlush(queue);
    for (int i = 999; i >= 0; i--) {
        complete((struct event *)(void *)held[i]);
        layer->clReleaseEvent(held[i]);
    }
    layer->clFinish(queue);
    layer->clFinish(queue);
    ck_assert_int_eq(driver.live_events, 0);
    ck_assert(log_open(&log, path));
    ck_assert_uint_eq(of_type(&log, WIRE_KERNEL), 21000);
    ck_assert_uint_eq(of_type(&log, WIRE_DONE), 21000);
    log_close(&log);
}
END_TEST

/* An in-order queue whose first command does not finish is asked about that one only. */
START_TEST(in_order)
{
    struct log log;
    cl_event first, count_of;
    cl_uint references = 0;
    cl_command_queue queue = queue_of(0);
    driver.hold = true;
    enqueue(queue, &first);
    for (int i = 0; i < 5000; i++)
        enqueue(queue, NULL);
    enqueue(queue, &count_of);
    layer->clGetEventInfo(count_of, CL_EVENT_REFERENCE_COUNT, sizeof references, &references, NULL);
    ck_assert_uint_eq(references, 1);
    ck_assert_int_eq(driver.live_events, 5002);
    cl_ulong end;
    ck_assert_int_eq(
        layer->clGetEventProfilingInfo(first, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL),
        CL_PROFILING_INFO_NOT_AVAILABLE);
    ((struct event *)(void *)first)->status = -5; /* ends with an error, the others never end */
    layer->clFinish(queue);
    ck_assert(log_open(&log, path));
    ck_assert_uint_eq(of_type(&log, WIRE_DONE), 1);
    log_close(&log);
}
END_TEST

static unsigned frees(void)
{
    struct log log;
    ck_assert(log_open(&log, path));
    unsigned count = of_type(&log, WIRE_FREE);
    ck_assert_ptr_null(log_sound(&log, true));
    log_close(&log);
    return count;
}

/* By the program's own references: this driver keeps one for itself and never tells of an end. */
START_TEST(buffers_end)
{
    cl_int error;
    for (unsigned i = 0; i < 3; i++) {
        cl_mem memory = layer->clCreateBuffer(context, 0, 100, NULL, &error);
        below.clRetainMemObject(memory);
        layer->clRetainMemObject(memory);
        layer->clReleaseMemObject(memory);
        ck_assert_uint_eq(frees(), i);
        layer->clReleaseMemObject(memory);
        ck_assert_uint_eq(frees(), i + 1);
        below.clReleaseMemObject(memory);
        ck_assert_int_ne(layer->clReleaseMemObject(memory), CL_SUCCESS);
        ck_assert_uint_eq(frees(), i + 1);
    }
}
END_TEST

START_TEST(a_buffer_lives_as_long_as_its_parts)
{
    cl_int error;
    cl_mem whole = layer->clCreateBuffer(context, 0, 100, NULL, &error);
    cl_mem part = layer->clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL, &error);
    layer->clReleaseMemObject(whole);
    ck_assert_uint_eq(frees(), 0);
    layer->clReleaseMemObject(part);
    ck_assert_uint_eq(frees(), 2);
    whole = layer->clCreateBuffer(context, 0, 100, NULL, &error); /* the same handle again */
    layer->clReleaseMemObject(whole);
    ck_assert_uint_eq(frees(), 3);
}
END_TEST

START_TEST(no_room_for_a_buffer)
{
    struct log log;
    cl_int error;
    driver.no_room = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    ck_assert_ptr_null(layer->clCreateBuffer(context, 0, 12345, NULL, &error));
    ck_assert_int_eq(error, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    driver.no_room = CL_INVALID_VALUE; /* a mistake */
    ck_assert_ptr_null(layer->clCreateBuffer(context, 0, 54321, NULL, &error));
    driver.no_room = CL_INVALID_BUFFER_SIZE; /* another one: no device is too small for nothing */
    ck_assert_ptr_null(layer->clCreateBuffer(context, 0, 0, NULL, &error));
    driver.no_room = CL_SUCCESS;
    ck_assert(log_open(&log, path));
    ck_assert_uint_eq(of_type(&log, WIRE_ALLOC), 0);
    ck_assert_uint_eq(of_type(&log, WIRE_ALLOC_FAILED), 1);
    ck_assert_ptr_null(log_sound(&log, true));
    log_close(&log);
}
END_TEST

START_TEST(functions_that_are_not_there)
{
    ck_assert_ptr_null(layer->clEnqueueSVMMemcpy);
    ck_assert_ptr_null(layer->clGetPlatformIDs);
    ck_assert_ptr_nonnull(layer->clEnqueueNDRangeKernel);
}
END_TEST

START_TEST(extensions)
{
    struct log log;
    cl_int(CL_API_CALL * function)(cl_context, void *);
    void *found = layer->clGetExtensionFunctionAddress("clMemFreeINTEL");
    memcpy(&function, &found, sizeof function);
    ck_assert_int_eq(function(context, NULL), 1);
    ck_assert_int_eq(function(context, NULL), 2);
    ck_assert_ptr_null(layer->clGetExtensionFunctionAddress("clNothing"));
    ck_assert_ptr_nonnull(layer->clGetExtensionFunctionAddress("clCommandSomethingKHR"));
    ck_assert(log_open(&log, path));
    ck_assert_uint_eq(log.counts[WIRE_COUNT_UNSEEN], 2);
    ck_assert_uint_eq(of_type(&log, WIRE_HEALTH), 2); /* running, and the note */
    log_close(&log);
}
END_TEST

START_TEST(inactive)
{
    cl_uint count = 0;
    const void *empty[sizeof below / sizeof(void *)] = {NULL};
    unsetenv("OCL_TEST_LOG");
    ck_assert_int_eq(clInitLayer(sizeof below / sizeof(void *), &below, &count, &layer), 0);
    ck_assert_int_eq(memcmp(layer, empty, sizeof empty), 0);
}
END_TEST

/* Uploads of `bytes` to a place of its own; before each, the word at `changed` becomes another one
 * (SIZE_MAX: none does). How many are seen to bring what was there? */
static int count_same(size_t place, size_t bytes, size_t changed)
{
    static unsigned char data[64 << 10];
    int same = 0;
    for (int i = 0; i < 30; i++) {
        if (changed != SIZE_MAX)
            data[changed]++;
        same += ocl_is_same_content((cl_mem)&memory_object[0], place, bytes, data);
    }
    return same;
}

START_TEST(uploads_of_the_same_bytes)
{
    ck_assert_int_eq(count_same(1, 64 << 10, SIZE_MAX), 28); /* the first two are compared with */
    ck_assert_int_eq(count_same(2, 64 << 10, 0), 0);
    ck_assert_int_eq(count_same(3, 64 << 10, 5000), 0); /* between the words that are looked at */
    ck_assert_int_eq(count_same(4, (64 << 10) - 3, (64 << 10) - 4), 0);
    ck_assert_int_eq(count_same(5, (64 << 10) - 3, (64 << 10) - 12), 0);
    ck_assert_int_eq(count_same(6, 1024, SIZE_MAX), 28);
    ck_assert_int_eq(count_same(7, 1023, SIZE_MAX), 0); /* too little to be worth it */
    ck_assert(!ocl_is_same_content((cl_mem)&memory_object[0], 0, 4096, NULL));
}
END_TEST

/* Which launches are of the arguments of one of the two before them? Letters are buffers; a digit
 * is an offset, a blank is an argument that the layer did not see. */
START_TEST(launches_with_the_same_arguments)
{
    static const struct {
        const char *arguments, *again;
    } cases[] = {{"aaaa", "0111"}, {"abab", "0011"},  {"abcd", "0000"}, {"abca", "0000"},
                 {"aabb", "0101"}, {"a1a2a3", "000"}, {"a1a1", "01"},   {" ", "0"}};
    const char *at = cases[_i].arguments, *again = cases[_i].again;
    cl_command_queue queue = queue_of(0);
    struct log log;
    float factor = 2;
    layer->clSetKernelArg(kernel, 1, sizeof factor, &factor);
    while (*at) {
        cl_mem buffer = (cl_mem)(uintptr_t)*at++;
        size_t offset = *at >= '0' && *at <= '9' ? (size_t)*at++ : 0;
        for (int twice = buffer == (cl_mem)(uintptr_t)' '; twice >= 0; twice--) {
            if (buffer != (cl_mem)(uintptr_t)' ')
                layer->clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
            ck_assert_int_eq(layer->clEnqueueNDRangeKernel(queue, kernel, 1, &offset, &global, NULL,
                                                           0, NULL, NULL),
                             CL_SUCCESS);
        }
    }
    ck_assert(log_open(&log, path));
    for (size_t i = 0; i < log.count; i++)
        if (log.list[i].record->head.type == WIRE_KERNEL)
            ck_assert_int_eq((log.list[i].record->head.flags & WIRE_SAME) != 0,
                             *again && *again++ == '1');
    log_close(&log);
}
END_TEST

/* How many of 30 uploads into `queue` are seen to bring what was there? */
static unsigned count_same_uploads(cl_command_queue queue, const void *data, size_t bytes,
                                   bool blocking, const cl_event *wait)
{
    struct log log;
    unsigned same = 0;
    for (int i = 0; i < 30; i++)
        ck_assert_int_eq(layer->clEnqueueWriteBuffer(queue, (cl_mem)&memory_object[0], blocking, 0,
                                                     bytes, data, wait != NULL, wait, NULL),
                         CL_SUCCESS);
    ck_assert(log_open(&log, path));
    for (size_t i = 0; i < log.count; i++)
        same += log.list[i].record->head.type == WIRE_TRANSFER &&
                log.list[i].record->head.flags & WIRE_SAME;
    log_close(&log);
    return same;
}

/* 1: another command may write what is uploaded until then. 2: it has, as the call has ended. */
START_TEST(uploads_that_wait)
{
    static const unsigned char data[4096];
    cl_command_queue queue = queue_of(0);
    cl_event first = NULL;
    ck_assert_int_eq(enqueue(queue, &first), CL_SUCCESS);
    ck_assert_uint_eq(
        count_same_uploads(queue, data, sizeof data, _i == 2, _i != 0 ? &first : NULL),
        _i == 1 ? 0 : 28);
}
END_TEST

/* A read from `place` on for 1,024 bytes, then uploads of 4,096 bytes from 4,096 on. */
START_TEST(uploads_of_what_is_read)
{
    static unsigned char data[12288];
    static const struct {
        bool rectangle, read_blocks, upload_blocks;
        unsigned place, same;
    } cases[] = {{false, false, false, 4096, 0},  {false, false, false, 8191, 0},
                 {false, false, false, 3073, 0},  {false, false, false, 3072, 28},
                 {false, false, false, 8192, 28}, {false, true, false, 4096, 28},
                 {false, false, true, 4096, 28},  {true, false, false, 4096, 0}};
    cl_command_queue queue = queue_of(0);
    cl_mem buffer = (cl_mem)&memory_object[0];
    const size_t origin[3] = {0}, region[3] = {16, 8, 8};
    void *host = data + cases[_i].place;
    cl_int result =
        cases[_i].rectangle
            ? layer->clEnqueueReadBufferRect(queue, buffer, cases[_i].read_blocks, origin, origin,
                                             region, 16, 128, 16, 128, host, 0, NULL, NULL)
            : layer->clEnqueueReadBuffer(queue, buffer, cases[_i].read_blocks, 0, 1024, host, 0,
                                         NULL, NULL);
    ck_assert_int_eq(result, CL_SUCCESS);
    ck_assert_uint_eq(count_same_uploads(queue, data + 4096, 4096, cases[_i].upload_blocks, NULL),
                      cases[_i].same);
}
END_TEST

/* What is mapped without blocking comes later, but for what the program is to write as a whole. */
START_TEST(uploads_of_what_is_mapped)
{
    static const struct {
        cl_map_flags flags;
        bool map_blocks, upload_blocks;
        unsigned same;
    } cases[] = {
        {CL_MAP_READ, false, false, 0},  {CL_MAP_READ | CL_MAP_WRITE, false, false, 0},
        {CL_MAP_WRITE, false, false, 0}, {CL_MAP_READ, true, false, 28},
        {CL_MAP_READ, false, true, 28},  {CL_MAP_WRITE_INVALIDATE_REGION, false, false, 28}};
    cl_command_queue queue = queue_of(0);
    cl_int result;
    void *at = layer->clEnqueueMapBuffer(queue, (cl_mem)&memory_object[0], cases[_i].map_blocks,
                                         cases[_i].flags, 0, sizeof mapped, 0, NULL, NULL, &result);
    ck_assert_ptr_eq(at, mapped);
    ck_assert_uint_eq(count_same_uploads(queue, at, sizeof mapped, cases[_i].upload_blocks, NULL),
                      cases[_i].same);
}
END_TEST

/* What is unmapped may not be uploaded from, so it takes no room among the places to remember. */
START_TEST(many_maps_one_after_the_other)
{
    static const unsigned char data[4096];
    cl_command_queue queue = queue_of(0);
    cl_mem buffer = (cl_mem)&memory_object[0];
    cl_int result;
    for (size_t i = 0; i < 200; i++) {
        void *at = layer->clEnqueueMapBuffer(queue, buffer, false, CL_MAP_READ, 16 * i, 16, 0, NULL,
                                             NULL, &result);
        ck_assert_ptr_eq(at, mapped + 16 * i);
        ck_assert_int_eq(layer->clEnqueueUnmapMemObject(queue, buffer, at, 0, NULL, NULL),
                         CL_SUCCESS);
    }
    ck_assert_uint_eq(count_same_uploads(queue, data, sizeof data, false, NULL), 28);
}
END_TEST

/* Two maps of one place: it is mapped until both are unmapped. */
START_TEST(two_maps_of_a_place)
{
    cl_command_queue queue = queue_of(0);
    cl_mem buffer = (cl_mem)&memory_object[0];
    cl_int result;
    for (int i = 0; i < 2; i++)
        ck_assert_ptr_eq(layer->clEnqueueMapBuffer(queue, buffer, false, CL_MAP_READ, 0,
                                                   sizeof mapped, 0, NULL, NULL, &result),
                         mapped);
    ck_assert_int_eq(layer->clEnqueueUnmapMemObject(queue, buffer, mapped, 0, NULL, NULL),
                     CL_SUCCESS);
    ck_assert_uint_eq(count_same_uploads(queue, mapped, sizeof mapped, false, NULL), 0);
}
END_TEST

static void do_nothing(void *unused)
{
    (void)unused;
}

/* 0: reads into more places than are noted, which the capture says once. 1: a function of the
 * program. Either may write to anything. */
START_TEST(uploads_of_what_may_be_written)
{
    static unsigned char data[1 << 20];
    cl_command_queue queue = queue_of(0);
    for (size_t i = 0; _i == 0 && i < 200; i++)
        ck_assert_int_eq(layer->clEnqueueReadBuffer(queue, (cl_mem)&memory_object[0], false, 0, 64,
                                                    data + 8192 + i * 64, 0, NULL, NULL),
                         CL_SUCCESS);
    if (_i == 1)
        ck_assert_int_eq(
            layer->clEnqueueNativeKernel(queue, do_nothing, NULL, 0, 0, NULL, NULL, 0, NULL, NULL),
            CL_SUCCESS);
    ck_assert_uint_eq(count_same_uploads(queue, data, 4096, false, NULL), 0);
    ck_assert_uint_eq(count_same_uploads(queue, data, 4096, true, NULL), 28);
    struct log log;
    ck_assert(log_open(&log, path));
    ck_assert_uint_eq(of_type(&log, WIRE_HEALTH), _i == 0 ? 2 : 1); /* running, and the note */
    log_close(&log);
}
END_TEST

/* The layer's table and the list of names class a function alike. */
START_TEST(classes)
{
    enum { WIRE_CLASS_NONE = -1 };
    static const struct {
        const char *name;
        int klass;
    } hooks[] = {
#define X(function, class_) {#function, WIRE_CLASS_##class_},
        OCL_HOOKS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++)
        ck_assert_msg(hooks[i].klass == WIRE_CLASS_NONE ||
                          hooks[i].klass == (int)wire_call_class(hooks[i].name),
                      "%s", hooks[i].name);
}
END_TEST

int main(void)
{
    int failed =
        CHECK_RUN("opencl layer over a made-up driver", start, stop,
                  {clocks, sizeof clock_cases / sizeof clock_cases[0]}, {profiling_refused, 1},
                  {out_of_order, 1}, {in_order, 1}, {buffers_end, 1},
                  {a_buffer_lives_as_long_as_its_parts, 1}, {no_room_for_a_buffer, 1},
                  {functions_that_are_not_there, 1}, {extensions, 1}, {classes, 1},
                  {uploads_of_the_same_bytes, 1}, {launches_with_the_same_arguments, 8},
                  {uploads_that_wait, 3}, {uploads_of_what_is_read, 8},
                  {uploads_of_what_is_mapped, 6}, {many_maps_one_after_the_other, 1},
                  {two_maps_of_a_place, 1}, {uploads_of_what_may_be_written, 2});
    return failed | CHECK_RUN("without perfkit", NULL, NULL, {inactive, 1});
}
