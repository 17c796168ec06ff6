/* Does a known number of every kind of OpenCL command and says how many.
 *   exact [--threads N] [--rounds N] [--order in|out] [--share 0|1] [--events 0|1] [--profile 0|1]
 *         [--fail 0|1] [--gate 0|1] [--json FILE|-]
 * share: all threads use one queue; events: the program asks for an event of each command and
 * holds it to the end; fail: calls that the API refuses and commands that end with an error;
 * gate: commands wait for a user event while others pass. The counts are of what the program did,
 * so they are the same with and without perfkit. */
#include <pthread.h>
#include <unistd.h>

#include "tests/opencl/targets/common.h"

static const char source[] =
    "kernel void scale(global float *a, float f) { a[get_global_id(0)] *= f; }\n"
    "kernel void sum_rows(global const float *a, global float *b, local float *t) {\n"
    "  size_t i = get_local_id(0); t[i] = a[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  if (i == 0) b[get_group_id(0)] = t[0]; }\n"
    "kernel void plane(global float *a) { a[get_global_id(1) * 8 + get_global_id(0)] += 1; }\n";

#define ITEMS 256
#define BYTES (ITEMS * sizeof(float))
#define WIDTH 16
#define HEIGHT 8

static struct {
    long threads, rounds, share, events, profile, fail, gate;
    int out_of_order;
} want;
static cl_device_id device;
static cl_context context;
static cl_program program;
static cl_command_queue shared_queue;
static int images, svm, native;

struct worker {
    pthread_t thread;
    struct tally tally;
    cl_command_queue queue;
    cl_event *held;
    size_t held_count, held_room;
};

/* Where the next command's event goes: NULL, or a place in the list of those held. */
static cl_event *event_of(struct worker *w)
{
    if (!want.events)
        return NULL;
    if (w->held_count == w->held_room) {
        w->held_room = w->held_room ? w->held_room * 2 : 64;
        w->held = realloc(w->held, w->held_room * sizeof *w->held);
    }
    return &w->held[w->held_count++];
}

static void finish(struct worker *w)
{
    MUST(clFinish(w->queue));
    w->tally.sync++;
}

static cl_command_queue make_queue(struct tally *tally)
{
    cl_int error;
    cl_command_queue_properties bits =
        (want.out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0) |
        (want.profile ? CL_QUEUE_PROFILING_ENABLE : 0);
    cl_command_queue queue = clCreateCommandQueue(context, device, bits, &error);
    MUST(error);
    tally->queues++;
    return queue;
}

static cl_mem buffer(struct worker *w, size_t bytes)
{
    cl_int error;
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &error);
    MUST(error);
    w->tally.alloc++;
    w->tally.alloc_bytes += bytes;
    return memory;
}

static void release(struct worker *w, cl_mem memory)
{
    MUST(clReleaseMemObject(memory));
    w->tally.freed++;
}

static void kernels(struct worker *w, cl_mem a, cl_mem b)
{
    struct tally *t = &w->tally;
    cl_int error;
    float f = 1.0f;
    size_t global = ITEMS, local = 32, plane[2] = {8, 4};
    cl_kernel scale = clCreateKernel(program, "scale", &error);
    MUST(error);
    cl_kernel rows = clCreateKernel(program, "sum_rows", &error);
    MUST(error);
    cl_kernel two = clCreateKernel(program, "plane", &error);
    MUST(error);
    MUST(clSetKernelArg(scale, 0, sizeof a, &a));
    MUST(clSetKernelArg(scale, 1, sizeof f, &f));
    MUST(clSetKernelArg(rows, 0, sizeof a, &a));
    MUST(clSetKernelArg(rows, 1, sizeof b, &b));
    MUST(clSetKernelArg(rows, 2, local * sizeof(float), NULL));
    MUST(clSetKernelArg(two, 0, sizeof a, &a));
    for (int i = 0; i < 10; i++)
        MUST(clEnqueueNDRangeKernel(w->queue, scale, 1, NULL, &global, NULL, 0, NULL, event_of(w)));
    for (int i = 0; i < 5; i++)
        MUST(
            clEnqueueNDRangeKernel(w->queue, rows, 1, NULL, &global, &local, 0, NULL, event_of(w)));
    MUST(clEnqueueNDRangeKernel(w->queue, two, 2, NULL, plane, plane, 0, NULL, event_of(w)));
    MUST(clEnqueueTask(w->queue, two, 0, NULL, event_of(w)));
    t->launch += 17;
    if (want.fail) {
        size_t huge = (size_t)1 << 20;
        if (clEnqueueNDRangeKernel(w->queue, scale, 1, NULL, &huge, &huge, 0, NULL, NULL) ==
            CL_SUCCESS)
            exit(3);
        cl_kernel bare = clCreateKernel(program, "scale", &error); /* no arguments set */
        MUST(error);
        if (clEnqueueNDRangeKernel(w->queue, bare, 1, NULL, &global, NULL, 0, NULL, NULL) ==
            CL_SUCCESS)
            exit(3);
        MUST(clReleaseKernel(bare));
        t->launch_failed += 2;
    }
    MUST(clReleaseKernel(scale));
    MUST(clReleaseKernel(rows));
    MUST(clReleaseKernel(two));
}

static void buffers(struct worker *w, cl_mem a, cl_mem b, float *host)
{
    struct tally *t = &w->tally;
    cl_command_queue q = w->queue;
    cl_int error;
    MUST(clEnqueueWriteBuffer(q, a, CL_TRUE, 0, BYTES, host, 0, NULL, event_of(w)));
    MUST(clEnqueueWriteBuffer(q, a, CL_FALSE, 0, 64, host, 0, NULL, event_of(w)));
    t->htod += 2;
    t->htod_bytes += BYTES + 64;
    finish(w);
    MUST(clEnqueueReadBuffer(q, a, CL_TRUE, 0, BYTES, host, 0, NULL, event_of(w)));
    MUST(clEnqueueReadBuffer(q, a, CL_FALSE, 4, 60, host, 0, NULL, event_of(w)));
    t->dtoh += 2;
    t->dtoh_bytes += BYTES + 60;
    finish(w);
    MUST(clEnqueueCopyBuffer(q, a, b, 0, 0, 128, 0, NULL, event_of(w)));
    t->dtod++;
    t->dtod_bytes += 128;
    const size_t origin[3] = {0, 0, 0}, region[3] = {16, 4, 2};
    MUST(clEnqueueWriteBufferRect(q, a, CL_TRUE, origin, origin, region, 16, 64, 16, 64, host, 0,
                                  NULL, event_of(w)));
    MUST(clEnqueueReadBufferRect(q, a, CL_TRUE, origin, origin, region, 16, 64, 16, 64, host, 0,
                                 NULL, event_of(w)));
    MUST(clEnqueueCopyBufferRect(q, a, b, origin, origin, region, 16, 64, 16, 64, 0, NULL,
                                 event_of(w)));
    t->htod++, t->dtoh++, t->dtod++;
    t->htod_bytes += 128, t->dtoh_bytes += 128, t->dtod_bytes += 128;
    cl_uint pattern = 0x3f800000;
    MUST(clEnqueueFillBuffer(q, b, &pattern, sizeof pattern, 0, 256, 0, NULL, event_of(w)));
    t->fill++;
    t->fill_bytes += 256;
    void *at = clEnqueueMapBuffer(q, a, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 512, 0, NULL,
                                  event_of(w), &error);
    MUST(error);
    MUST(clEnqueueUnmapMemObject(q, a, at, 0, NULL, event_of(w)));
    t->map++, t->unmap++;
    t->map_bytes += 512, t->unmap_bytes += 512;
    const cl_mem both[2] = {a, b};
    MUST(clEnqueueMigrateMemObjects(q, 2, both, 0, 0, NULL, event_of(w)));
    t->migrate++;
    t->migrate_bytes += 2 * BYTES;
    MUST(clEnqueueMarkerWithWaitList(q, 0, NULL, NULL));
    MUST(clEnqueueBarrierWithWaitList(q, 0, NULL, NULL));
    MUST(clFlush(q));
    t->other += 3;
    if (want.fail) {
        if (clEnqueueReadBuffer(q, a, CL_TRUE, 0, 1 << 30, host, 0, NULL, NULL) == CL_SUCCESS)
            exit(3);
        t->transfer_failed++;
    }
    finish(w);
}

static void sub_buffers(struct worker *w, cl_mem a)
{
    cl_int error;
    cl_buffer_region part = {0, 128};
    cl_mem sub =
        clCreateSubBuffer(a, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &part, &error);
    MUST(error);
    w->tally.alloc++;
    release(w, sub);
    if (want.fail) {
        if (clCreateBuffer(context, CL_MEM_READ_WRITE, 0, NULL, &error) || error == CL_SUCCESS)
            exit(3);
        w->tally.alloc_failed++;
    }
}

static void image_commands(struct worker *w, cl_mem b)
{
    struct tally *t = &w->tally;
    cl_command_queue q = w->queue;
    static const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    const cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = WIDTH, .image_height = HEIGHT};
    const size_t bytes = WIDTH * HEIGHT * 4;
    const size_t origin[3] = {0, 0, 0}, region[3] = {WIDTH, HEIGHT, 1};
    unsigned char pixels[WIDTH * HEIGHT * 4] = {1};
    cl_int error;
    cl_mem image[2];
    for (int i = 0; i < 2; i++) {
        image[i] = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &error);
        MUST(error);
        size_t size = 0;
        MUST(clGetMemObjectInfo(image[i], CL_MEM_SIZE, sizeof size, &size, NULL));
        t->alloc++;
        t->alloc_bytes += size;
    }
    const cl_uint color[4] = {1, 2, 3, 4};
    MUST(clEnqueueWriteImage(q, image[0], CL_TRUE, origin, region, 0, 0, pixels, 0, NULL,
                             event_of(w)));
    MUST(clEnqueueFillImage(q, image[1], color, origin, region, 0, NULL, event_of(w)));
    finish(w);
    MUST(clEnqueueCopyImage(q, image[0], image[1], origin, origin, region, 0, NULL, event_of(w)));
    finish(w);
    MUST(clEnqueueCopyImageToBuffer(q, image[1], b, origin, region, 0, 0, NULL, event_of(w)));
    finish(w);
    MUST(clEnqueueCopyBufferToImage(q, b, image[0], 0, origin, region, 0, NULL, event_of(w)));
    finish(w);
    MUST(clEnqueueReadImage(q, image[1], CL_TRUE, origin, region, 0, 0, pixels, 0, NULL,
                            event_of(w)));
    size_t row = 0, slice = 0;
    void *at = clEnqueueMapImage(q, image[0], CL_TRUE, CL_MAP_READ, origin, region, &row, &slice, 0,
                                 NULL, event_of(w), &error);
    MUST(error);
    MUST(clEnqueueUnmapMemObject(q, image[0], at, 0, NULL, event_of(w)));
    t->htoa++, t->fill++, t->atoa++, t->atod++, t->dtoa++, t->atoh++, t->map++, t->unmap++;
    t->htoa_bytes += bytes, t->fill_bytes += bytes, t->atoa_bytes += bytes, t->atod_bytes += bytes;
    t->dtoa_bytes += bytes, t->atoh_bytes += bytes, t->map_bytes += bytes, t->unmap_bytes += bytes;
    finish(w);
    release(w, image[0]);
    release(w, image[1]);
}

static void svm_commands(struct worker *w, float *host)
{
    struct tally *t = &w->tally;
    cl_command_queue q = w->queue;
    char *at[3];
    /* One thread at a time: NVIDIA's clSVMAlloc fails or crashes when several call it. */
    static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&alone);
    for (int i = 0; i < 3; i++) {
        at[i] = clSVMAlloc(context, CL_MEM_READ_WRITE, 1024, 0);
        if (!at[i])
            exit(2);
        t->alloc++;
        t->alloc_bytes += 1024;
    }
    cl_uint pattern = 7;
    MUST(clEnqueueSVMMemcpy(q, CL_TRUE, at[0] + 256, host, 512, 0, NULL, event_of(w)));
    MUST(clEnqueueSVMMemcpy(q, CL_TRUE, at[1], at[0] + 256, 512, 0, NULL, event_of(w)));
    MUST(clEnqueueSVMMemcpy(q, CL_TRUE, host, at[1], 512, 0, NULL, event_of(w)));
    MUST(clEnqueueSVMMemFill(q, at[1], &pattern, sizeof pattern, 400, 0, NULL, event_of(w)));
    MUST(clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, at[0], 1024, 0, NULL, event_of(w)));
    MUST(clEnqueueSVMUnmap(q, at[0], 0, NULL, event_of(w)));
    t->htod++, t->dtod++, t->dtoh++, t->fill++, t->map++, t->unmap++;
    t->htod_bytes += 512, t->dtod_bytes += 512, t->dtoh_bytes += 512, t->fill_bytes += 400;
    t->map_bytes += 1024, t->unmap_bytes += 1024;
    finish(w);
    clSVMFree(context, at[0]);
    t->freed++;
    void *rest[2] = {at[1], at[2]};
    MUST(clEnqueueSVMFree(q, 2, rest, NULL, NULL, 0, NULL, event_of(w)));
    finish(w);
    t->freed += 2;
    pthread_mutex_unlock(&alone);
}

static void CL_CALLBACK nothing(void *unused)
{
    (void)unused;
}

/* The first command waits for the program; on an out-of-order queue the others pass it. */
static void gate(struct worker *w, cl_mem a)
{
    cl_int error;
    cl_uint pattern = 0;
    if (!want.gate)
        return;
    cl_event go = clCreateUserEvent(context, &error);
    MUST(error);
    MUST(clEnqueueFillBuffer(w->queue, a, &pattern, 4, 0, 4, 1, &go, event_of(w)));
    for (int i = 0; i < 200; i++)
        MUST(clEnqueueFillBuffer(w->queue, a, &pattern, 4, 4, 4, 0, NULL, event_of(w)));
    MUST(clFlush(w->queue));
    MUST(clSetUserEventStatus(go, CL_COMPLETE));
    MUST(clReleaseEvent(go));
    finish(w);
    w->tally.fill += 201;
    w->tally.fill_bytes += 201 * 4;
    w->tally.other++;
}

/* Commands whose user event fails end with an error themselves. A queue of their own. */
static void failing(struct worker *w, cl_mem a)
{
    struct tally *t = &w->tally;
    cl_int error;
    cl_uint pattern = 0;
    if (!want.fail)
        return;
    cl_command_queue queue = make_queue(t);
    cl_event go = clCreateUserEvent(context, &error), last;
    MUST(error);
    MUST(clEnqueueFillBuffer(queue, a, &pattern, 4, 0, 8, 1, &go, &last));
    MUST(clFlush(queue));
    MUST(clSetUserEventStatus(go, -5));
    cl_int status = CL_QUEUED;
    while (status > CL_COMPLETE)
        MUST(clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    /* NVIDIA's driver may say complete for a moment before it says failed. */
    for (int i = 0; i < 100 && status == CL_COMPLETE; i++) {
        usleep(1000);
        MUST(clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    }
    MUST(clReleaseEvent(go));
    MUST(clReleaseEvent(last));
    MUST(clReleaseCommandQueue(queue));
    t->fill++;
    t->fill_bytes += 8;
    t->command_failed += status < 0;
    t->other++;
}

static void *work(void *data)
{
    struct worker *w = data;
    float *host = calloc(1, BYTES);
    w->queue = want.share ? shared_queue : make_queue(&w->tally);
    for (long round = 0; round < want.rounds; round++) {
        cl_mem a = buffer(w, BYTES), b = buffer(w, BYTES);
        buffers(w, a, b, host);
        kernels(w, a, b);
        finish(w);
        sub_buffers(w, a);
        gate(w, a);
        failing(w, a);
        if (images)
            image_commands(w, b);
        if (svm)
            svm_commands(w, host);
        if (native) {
            MUST(clEnqueueNativeKernel(w->queue, nothing, NULL, 0, 0, NULL, NULL, 0, NULL,
                                       event_of(w)));
            w->tally.native++;
            finish(w);
        }
        release(w, a);
        if (round % 2 == 0) {
            release(w, b);
        } else {
            w->tally.leak_bytes += BYTES; /* on purpose */
        }
        for (size_t i = 0; i < w->held_count; i++)
            MUST(clReleaseEvent(w->held[i]));
        w->held_count = 0;
    }
    if (!want.share)
        MUST(clReleaseCommandQueue(w->queue));
    free(w->held);
    free(host);
    return NULL;
}

int main(int argc, char **argv)
{
    want.threads = number(argc, argv, "--threads", 1);
    want.rounds = number(argc, argv, "--rounds", 2);
    want.share = number(argc, argv, "--share", 0);
    want.events = number(argc, argv, "--events", 0);
    want.profile = number(argc, argv, "--profile", 0);
    want.fail = number(argc, argv, "--fail", 0);
    want.gate = number(argc, argv, "--gate", 0);
    want.out_of_order = strcmp(argument(argc, argv, "--order", "in"), "out") == 0;
    const char *json = argument(argc, argv, "--json", NULL);

    cl_int error;
    struct tally total = {0};
    device = first_device();
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    MUST(error);
    cl_bool has_images = CL_FALSE;
    cl_device_svm_capabilities has_svm = 0;
    cl_device_exec_capabilities has_exec = 0;
    MUST(clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof has_images, &has_images, NULL));
    if (clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof has_svm, &has_svm, NULL))
        has_svm = 0;
    MUST(clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof has_exec, &has_exec,
                         NULL));
    images = has_images != CL_FALSE;
    svm = (has_svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
    native = (has_exec & CL_EXEC_NATIVE_KERNEL) != 0;
    program = build(context, device, source);
    total.build++;
    if (want.share)
        shared_queue = make_queue(&total);

    struct worker *workers = calloc((size_t)want.threads, sizeof *workers);
    for (long i = 0; i < want.threads; i++)
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    for (long i = 0; i < want.threads; i++) {
        pthread_join(workers[i].thread, NULL);
        tally_add(&total, &workers[i].tally);
    }
    free(workers);
    if (want.share)
        MUST(clReleaseCommandQueue(shared_queue));
    MUST(clReleaseProgram(program));
    MUST(clReleaseContext(context));
    /* A driver's worker may let go of a command's objects a moment after the command was called
     * complete; what it still holds when the process ends was truly never freed. */
    usleep(300000);
    if (json)
        tally_print(&total, json);
    return 0;
}
