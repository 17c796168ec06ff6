/* Small OpenCL programs with one planted fault each, and the same without it: what findings are
 * judged by, as bench/torch_faults.py for PyTorch.
 *   bench_opencl_faults NAME bad|fixed       bench_opencl_faults --list
 * Names that begin with t_ and s_ are the programs that rules may be tuned on (s_ was scored
 * first; likewise u_, z_, y_, r_ and q_, opencl_faults_u.c and alike), v_ (opencl_faults_v.c) those
 * that are scored only. Each iteration is an NVTX range "step" but where the program has phases;
 * the last line is "step N ns", the mean. Labels: tests/diagnosis/unseen.tsv. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/opencl_faults.h"
#include "perfkit/annotate.h"

static const char source[] =
    "kernel void work(global float *a, int rounds) {\n"
    "  size_t i = get_global_id(0); float x = a[i];\n"
    "  for (int k = 0; k < rounds; k++) x = x * 0.999f + 0.001f;\n"
    "  a[i] = x; }\n"
    "kernel void gather(global float *out, global const float *table, int size, int rounds) {\n"
    "  size_t i = get_global_id(0); float sum = 0; uint at = i * 2654435761u;\n"
    "  for (int k = 0; k < rounds; k++, at = at * 1664525u + 1013904223u) sum += table[at % "
    "size];\n"
    "  out[i] = sum; }\n"
    "kernel void axpy(global float *y, global const float *x, float a) {\n"
    "  size_t i = get_global_id(0); y[i] += a * x[i]; }\n"
    "kernel void diffuse(global float *out, global const float *in, int size) {\n"
    "  int i = get_global_id(0); float x = in[i];\n"
    "  for (int k = 0; k < 8; k++) x += 0.1f * (in[min(i + k, size - 1)] - x);\n"
    "  out[i] = x; }\n"
    "kernel void expand(global int *level, global const int *next, int now, global int *more) {\n"
    "  int i = get_global_id(0), n = next[i];\n"
    "  if (level[i] == now && level[n] < 0) { level[n] = now + 1; *more = 1; } }\n"
    "kernel void norm(global const float *a, int size, global double *out) {\n"
    "  double sum = 0; for (int i = 0; i < size; i++) sum += (double)a[i] * a[i];\n"
    "  *out = sum; }\n"
    "kernel void piece(global float *a, int first) {\n"
    "  size_t i = first + get_global_id(0); a[i] = sqrt(a[i] * a[i] + 1.0f); }\n"
    "kernel void sort2(global float *a, int size) {\n"
    "  size_t i = get_global_id(0) * 2; float x = a[i], y = a[i + 1];\n"
    "  a[i] = fmin(x, y); a[i + 1] = fmax(x, y); }\n";

cl_context context;
cl_command_queue queue, other;
bool fixed;
cl_mem outcome;
static cl_device_id device;
static cl_program program;

static int64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

void host_work(double us)
{
    for (int64_t end = now_ns() + (int64_t)(us * 1000); now_ns() < end;)
        ;
}

cl_mem buffer(size_t bytes)
{
    return make_buffer(context, bytes, NULL);
}

void put(cl_mem memory, size_t at, const void *data, size_t bytes, bool wait)
{
    must(clEnqueueWriteBuffer(queue, memory, wait, at, bytes, data, 0, NULL, NULL),
         "clEnqueueWriteBuffer");
}

void get(cl_mem memory, size_t at, void *data, size_t bytes)
{
    must(clEnqueueReadBuffer(queue, memory, CL_TRUE, at, bytes, data, 0, NULL, NULL),
         "clEnqueueReadBuffer");
}

void *host(size_t bytes)
{
    float *data = malloc(bytes);
    if (!data)
        must(CL_OUT_OF_HOST_MEMORY, "malloc");
    for (size_t i = 0; i < bytes / sizeof *data; i++)
        data[i] = (float)(i % 1000) * 0.001f;
    return data;
}

cl_mem filled(size_t bytes)
{
    cl_mem memory = buffer(bytes);
    void *data = host(bytes);
    put(memory, 0, data, bytes, true);
    free(data);
    return memory;
}

void launch_range(cl_command_queue on, const char *name, cl_uint dimensions, const size_t *items,
                  const size_t *group, const struct argument *arguments, const cl_event *after,
                  cl_event *event)
{
    static struct {
        const char *name;
        cl_kernel kernel;
    } known[16];
    size_t k = 0;
    while (known[k].name && strcmp(known[k].name, name) != 0)
        k++;
    if (!known[k].name) {
        known[k].name = name;
        known[k].kernel = make_kernel(program, name);
    }
    for (cl_uint i = 0; arguments[i].size; i++)
        must(clSetKernelArg(known[k].kernel, i, arguments[i].size, arguments[i].value), name);
    must(clEnqueueNDRangeKernel(on, known[k].kernel, dimensions, NULL, items, group, after ? 1 : 0,
                                after, event),
         name);
}

void launch(cl_command_queue on, const char *name, size_t items, const struct argument *arguments,
            const cl_event *after, cl_event *event)
{
    launch_range(on, name, 1, &items, NULL, arguments, after, event);
}

#define N (1 << 18)

/* ---- a table that did not change, uploaded again beside a long kernel ---- */

static void t_upload(int step)
{
    static cl_mem table, out;
    static float *values;
    if (!step) {
        values = host(8 * MIB);
        table = filled(8 * MIB);
        out = buffer(N * 4);
    }
    if (!fixed)
        put(table, 0, values, 8 * MIB, true);
    LAUNCH(queue, "gather", N / 2, MEM(out), MEM(table), INT(2 << 20), INT(24));
    must(clFinish(queue), "clFinish");
}

static void s_upload(int step)
{
    static cl_mem weights, bias, input, out;
    static float *w, *b, *x, *y;
    if (!step) {
        w = host(6 * MIB), b = host(2 * MIB), x = host(MIB / 2), y = host(N);
        weights = filled(6 * MIB), bias = filled(2 * MIB), input = filled(MIB / 2),
        out = filled(MIB / 2);
    }
    x[step] += 1; /* what the program computes is new in each iteration */
    put(input, 0, x, MIB / 2, false);
    if (!fixed) {
        put(weights, 0, w, 6 * MIB, false);
        put(bias, 0, b, 2 * MIB, false);
    }
    LAUNCH(queue, "axpy", MIB / 8, MEM(out), MEM(input), FLOAT(0.5f));
    LAUNCH(queue, "gather", MIB / 8, MEM(out), MEM(weights), INT(3 << 19), INT(20));
    LAUNCH(queue, "axpy", MIB / 8, MEM(out), MEM(bias), FLOAT(1.0f));
    get(out, 0, y, N);
}

/* ---- buffers made and freed in each iteration ---- */

static void t_alloc(int step)
{
    static cl_mem kept, in;
    if (!step)
        in = filled(8 * MIB), kept = buffer(8 * MIB);
    cl_mem scratch = fixed ? kept : buffer(8 * MIB);
    LAUNCH(queue, "axpy", 2 * MIB, MEM(scratch), MEM(in), FLOAT(1));
    LAUNCH(queue, "axpy", 2 * MIB, MEM(in), MEM(scratch), FLOAT(1));
    must(clFinish(queue), "clFinish");
    if (!fixed)
        clReleaseMemObject(scratch);
}

static void s_alloc(int step)
{
    static cl_mem kept[3];
    static float *in, *out;
    cl_mem now[3];
    if (!step) {
        in = host(MIB), out = host(64 << 10);
        for (int i = 0; i < 3; i++)
            kept[i] = filled((size_t)(1 + 3 * i) * MIB);
    }
    for (int i = 0; i < 3; i++)
        now[i] = fixed ? kept[i] : buffer((size_t)(1 + 3 * i) * MIB);
    in[step] = (float)step;
    put(now[0], 0, in, MIB, false);
    LAUNCH(queue, "gather", MIB, MEM(now[1]), MEM(now[0]), INT(1 << 18), INT(4));
    LAUNCH(queue, "gather", MIB, MEM(now[2]), MEM(now[1]), INT(1 << 20), INT(4));
    get(now[2], 0, out, 64 << 10);
    for (int i = 0; i < 3 && !fixed; i++)
        clReleaseMemObject(now[i]);
}

/* ---- a number read back to decide ---- */

static void t_level(int step)
{
    static cl_mem level, next, changed;
    static int *first;
    if (!step) {
        int *chain = host(N);
        first = host(N);
        for (int i = 0; i < N / 4; i++)
            chain[i] = (i + N / 64) % (N / 4), first[i] = i < N / 64 ? 0 : -1;
        level = buffer(N), next = buffer(N), changed = filled(4);
        put(next, 0, chain, N, true);
        free(chain);
    }
    put(level, 0, first, N, false);
    for (int now = 0, more = 1; now < 15 && more; now++) {
        LAUNCH(queue, "expand", N / 4, MEM(level), MEM(next), INT(now), MEM(changed));
        if (!fixed)
            get(changed, 0, &more, sizeof more);
    }
    must(clFinish(queue), "clFinish");
}

static void s_level(int step)
{
    static cl_mem a, b, sum;
    double residual = 1;
    if (!step)
        a = filled(64 << 10), b = filled(64 << 10), sum = buffer(8);
    for (int i = 0; i < 20 && residual > 0; i++) {
        LAUNCH(queue, "diffuse", 16 << 10, MEM(b), MEM(a), INT(16 << 10));
        LAUNCH(queue, "norm", 1, MEM(b), INT(2 << 10), MEM(sum));
        if (!fixed || i == 19)
            get(sum, 0, &residual, sizeof residual);
    }
}

/* ---- the host holds up the launches ---- */

static void t_host(int step)
{
    static cl_mem big, small;
    if (!step)
        big = filled(2 * MIB), small = filled(256 << 10);
    LAUNCH(queue, "work", 64 << 10, MEM(big), INT(30)); /* hides the first of them */
    for (int i = 0; i < 4; i++) {
        if (!fixed)
            host_work(1500); /* parses what it launches next */
        LAUNCH(queue, "work", 16 << 10, MEM(small), INT(20));
    }
    must(clFinish(queue), "clFinish");
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile bool over;

static void *writer(void *data)
{
    (void)data;
    while (!over) {
        struct timespec pause = {0, 300000}, busy = {0, 2500000};
        pthread_mutex_lock(&lock);
        nanosleep(&busy, NULL); /* writes to a slow disk */
        pthread_mutex_unlock(&lock);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void s_host(int step)
{
    static cl_mem a;
    static pthread_t thread;
    if (!step) {
        a = filled(MIB);
        pthread_create(&thread, NULL, writer, NULL);
    }
    for (int i = 0; i < 3; i++) {
        if (!fixed)
            pthread_mutex_lock(&lock);
        LAUNCH(queue, "work", 64 << 10, MEM(a), INT(i ? 10 : 30));
        if (!fixed)
            pthread_mutex_unlock(&lock);
    }
    must(clFinish(queue), "clFinish");
}

/* ---- many small copies ---- */

static void t_small(int step)
{
    static cl_mem in, out;
    static float *rows;
    if (!step)
        rows = host(64 << 10), in = filled(64 << 10), out = filled(64 << 10);
    rows[step] += 1;
    for (size_t i = 0; i < 64 && !fixed; i++)
        put(in, i << 10, rows + (i << 8), 1 << 10, false);
    if (fixed)
        put(in, 0, rows, 64 << 10, false);
    LAUNCH(queue, "gather", 16 << 10, MEM(out), MEM(in), INT(16 << 10), INT(50));
    must(clFinish(queue), "clFinish");
}

static void s_small(int step)
{
    static cl_mem field;
    static float *rows;
    if (!step)
        rows = host(96 << 10), field = filled(96 << 10);
    LAUNCH(queue, "work", 24 << 10, MEM(field), INT(60));
    for (size_t i = 0; i < 48 && !fixed; i++)
        get(field, i << 11, rows + (i << 9), 2 << 10);
    if (fixed)
        get(field, 0, rows, 96 << 10);
}

/* ---- independent queues, one after the other ---- */

static void t_queues(int step)
{
    static cl_mem a, b;
    if (!step)
        a = filled(2 * MIB), b = filled(2 * MIB);
    LAUNCH(queue, "norm", 1, MEM(a), INT(500 << 10), MEM(a));
    LAUNCH(queue, "norm", 1, MEM(a), INT(500 << 10), MEM(a));
    if (!fixed)
        must(clFinish(queue), "clFinish");
    else
        clFlush(queue);
    LAUNCH(other, "norm", 1, MEM(b), INT(500 << 10), MEM(b));
    LAUNCH(other, "norm", 1, MEM(b), INT(500 << 10), MEM(b));
    must(clFinish(other), "clFinish");
    must(clFinish(queue), "clFinish");
}

static void s_queues(int step)
{
    static cl_mem in[2], out[2];
    cl_command_queue queues[2] = {queue, other};
    for (int i = 0; i < 2 && !step; i++)
        in[i] = filled(MIB), out[i] = buffer(8);
    cl_event before = NULL, event = NULL;
    for (int i = 0; i < 6; i++) {
        const struct argument arguments[] = {
            MEM(in[i % 2]), INT(250 << 10), MEM(out[i % 2]), {0, NULL}};
        launch(queues[i % 2], "norm", 1, arguments, before ? &before : NULL, fixed ? NULL : &event);
        clFlush(queues[i % 2]);
        if (before)
            clReleaseEvent(before);
        before = fixed ? NULL : event; /* an order that nothing needs */
    }
    if (before)
        clReleaseEvent(before);
    must(clFinish(queue), "clFinish");
    must(clFinish(other), "clFinish");
}

/* ---- an application: the fault is in one of its phases ---- */

static void phase(const char *name, int count, int step, void (*body)(int))
{
    for (int i = 0; i < count; i++) {
        perfkit_range_push(name);
        body(step * count + i);
        perfkit_range_pop();
    }
}

static cl_mem mesh, forces;

static void assemble(int i)
{
    static cl_mem kept;
    if (!i)
        kept = buffer(8 * MIB);
    cl_mem scratch = fixed ? kept : buffer(8 * MIB);
    LAUNCH(queue, "axpy", 2 * MIB, MEM(scratch), MEM(mesh), FLOAT(1));
    must(clFinish(queue), "clFinish");
    if (!fixed)
        clReleaseMemObject(scratch);
}

static void solve(int i)
{
    (void)i;
    LAUNCH(queue, "work", 64 << 10, MEM(forces), INT(30));
    must(clFinish(queue), "clFinish");
}

static void t_phases(int step)
{
    if (!step)
        mesh = filled(8 * MIB), forces = filled(2 * MIB);
    if (step == 1) {
        phase("assemble", 24, 0, assemble);
        phase("solve", 60, 0, solve);
    }
}

static cl_mem tiles;
static float *pixels;

static void load(int i)
{
    pixels[i] += 1;
    for (size_t k = 0; k < 128 && !fixed; k++)
        put(tiles, k << 10, pixels + (k << 8), 1 << 10, true);
    if (fixed)
        put(tiles, 0, pixels, 128 << 10, true);
    LAUNCH(queue, "work", 32 << 10, MEM(tiles), INT(20));
}

static void sweep(int i)
{
    (void)i;
    LAUNCH(queue, "axpy", MIB, MEM(forces), MEM(mesh), FLOAT(1));
    LAUNCH(queue, "axpy", MIB, MEM(mesh), MEM(forces), FLOAT(1));
    must(clFinish(queue), "clFinish");
}

static void s_phases(int step)
{
    if (!step)
        mesh = filled(8 * MIB), forces = filled(8 * MIB), tiles = filled(128 << 10),
        pixels = host(128 << 10);
    if (step == 1) {
        phase("load", 80, 0, load);
        phase("sweep", 20, 0, sweep);
    }
}

/* ---- waits after each launch ---- */

static void t_sync(int step)
{
    static cl_mem a;
    if (!step)
        a = filled(64 << 10);
    for (int i = 0; i < 24; i++) {
        LAUNCH(queue, i % 2 ? "work" : "piece", 16 << 10, MEM(a), INT(0));
        if (!fixed)
            must(clFinish(queue), "clFinish");
    }
    must(clFinish(queue), "clFinish");
}

static void s_sync(int step)
{
    static cl_mem a, b;
    if (!step)
        a = filled(128 << 10), b = filled(128 << 10);
    for (int i = 0; i < 30; i++) {
        cl_event event;
        cl_mem from = i % 2 ? a : b, to = i % 2 ? b : a;
        const struct argument arguments[] = {MEM(to), MEM(from), FLOAT(0.1f), {0, NULL}};
        launch(queue, "axpy", 32 << 10, arguments, NULL, &event);
        if (!fixed)
            must(clWaitForEvents(1, &event), "clWaitForEvents");
        clReleaseEvent(event);
    }
    must(clFinish(queue), "clFinish");
}

/* ---- pieces launched one by one ---- */

static void t_pieces(int step)
{
    static cl_mem a;
    if (!step)
        a = filled(256 << 10);
    for (int i = 0; i < 64 && !fixed; i++)
        LAUNCH(queue, "piece", 1 << 10, MEM(a), INT(i << 10));
    if (fixed)
        LAUNCH(queue, "piece", 64 << 10, MEM(a), INT(0));
    must(clFinish(queue), "clFinish");
}

static void s_pieces(int step)
{
    static cl_mem a, b;
    if (!step)
        a = filled(128 << 10), b = filled(128 << 10);
    LAUNCH(queue, "work", 16 << 10, MEM(b), INT(100));
    for (int i = 0; i < 100 && !fixed; i++)
        LAUNCH(queue, "piece", 256, MEM(a), INT(i * 256));
    if (fixed)
        LAUNCH(queue, "piece", 25600, MEM(a), INT(0));
    must(clFinish(queue), "clFinish");
}

/* ---- work on the host between two kernels ---- */

static void t_trip(int step)
{
    static cl_mem a;
    static float *values;
    if (!step)
        values = host(MIB), a = filled(MIB);
    LAUNCH(queue, "work", 256 << 10, MEM(a), INT(8));
    if (fixed) {
        LAUNCH(queue, "sort2", 128 << 10, MEM(a), INT(0));
    } else {
        get(a, 0, values, MIB);
        for (int i = 0; i + 1 < N; i += 2) {
            float x = values[i], y = values[i + 1];
            values[i] = fminf(x, y), values[i + 1] = fmaxf(x, y);
        }
        put(a, 0, values, MIB, true);
    }
    LAUNCH(queue, "work", 256 << 10, MEM(a), INT(4));
    must(clFinish(queue), "clFinish");
}

static void s_trip(int step)
{
    static cl_mem a, b;
    static float *values;
    if (!step)
        values = host(2 * MIB), a = filled(2 * MIB), b = filled(MIB / 2);
    LAUNCH(queue, "diffuse", MIB / 8, MEM(a), MEM(b), INT(MIB / 8));
    if (fixed) {
        LAUNCH(queue, "axpy", MIB / 8, MEM(b), MEM(a), FLOAT(0.5f));
    } else {
        get(a, 0, values, 2 * MIB);
        for (size_t i = 0; i < MIB / 8; i++)
            values[i] = values[i] * 0.5f + values[i + MIB / 8];
        put(b, 0, values, MIB / 2, false);
    }
    must(clFinish(queue), "clFinish");
}

/* ---- programs without a fault ---- */

static void halo(int step, size_t row, int rounds)
{
    static cl_mem half[2];
    static float *rows;
    for (int i = 0; i < 2 && !step; i++)
        half[i] = filled(MIB), rows = host(2 * row);
    for (int i = 0; i < 2; i++)
        LAUNCH(queue, "work", 256 << 10, MEM(half[i]), INT(rounds));
    for (size_t i = 0; i < 2; i++)
        get(half[i], i ? 0 : MIB - row, rows + i * row / 4, row);
    for (size_t i = 0; i < 2; i++)
        put(half[!i], i ? MIB - row : 0, rows + i * row / 4, row, false);
}

static void t_halo(int step)
{
    halo(step, 192, 6);
}

static void s_halo(int step)
{
    halo(step, 240, 9);
}

/* Time steps: each needs the one before. */
static void t_depend(int step)
{
    static cl_mem a, b;
    if (!step)
        a = filled(512 << 10), b = filled(512 << 10);
    for (int i = 0; i < 24; i++)
        LAUNCH(queue, "diffuse", 32 << 10, MEM(i % 2 ? a : b), MEM(i % 2 ? b : a), INT(32 << 10));
    must(clFinish(queue), "clFinish");
}

static void s_depend(int step)
{
    static cl_mem a, b, c;
    if (!step)
        a = filled(512 << 10), b = filled(512 << 10), c = filled(512 << 10);
    for (int i = 0; i < 8; i++) {
        LAUNCH(queue, "diffuse", 32 << 10, MEM(b), MEM(a), INT(32 << 10));
        LAUNCH(queue, "gather", 32 << 10, MEM(c), MEM(b), INT(32 << 10), INT(4));
        LAUNCH(queue, "axpy", 32 << 10, MEM(a), MEM(c), FLOAT(0.1f));
    }
    must(clFinish(queue), "clFinish");
}

/* The host's own work is small beside the kernel's. */
static void t_brief(int step)
{
    static cl_mem a;
    if (!step)
        a = filled(2 * MIB);
    LAUNCH(queue, "work", 512 << 10, MEM(a), INT(50));
    must(clFinish(queue), "clFinish");
    host_work(400);
}

static void s_brief(int step)
{
    static cl_mem a;
    static float *result;
    if (!step)
        a = filled(2 * MIB), result = host(64 << 10);
    LAUNCH(queue, "work", 256 << 10, MEM(a), INT(80));
    get(a, 0, result, 64 << 10);
    host_work(300);
}

/* New data in each iteration, from one buffer of the host; a result is read. */
static void t_stream(int step)
{
    static cl_mem in, out;
    static float *data;
    if (!step)
        data = host(2 * MIB), in = filled(2 * MIB), out = filled(2 * MIB);
    for (int i = 0; i < 64; i++)
        data[i * 1000] = (float)(step + i);
    put(in, 0, data, 2 * MIB, true);
    LAUNCH(queue, "diffuse", MIB / 8, MEM(out), MEM(in), INT(1 << 17));
    LAUNCH(queue, "work", MIB / 2, MEM(out), INT(6));
    get(out, 0, data, 64 << 10);
}

static void s_stream(int step)
{
    static cl_mem a, b;
    static float *x, *y;
    if (!step)
        x = host(MIB), y = host(MIB), a = filled(MIB), b = filled(MIB);
    for (int i = 0; i < N; i += 256)
        x[i] += (float)step, y[i] -= 1;
    put(a, 0, x, MIB, false);
    put(b, 0, y, MIB, false);
    LAUNCH(queue, "axpy", N, MEM(a), MEM(b), FLOAT(2));
    LAUNCH(queue, "work", N, MEM(a), INT(12));
    must(clFinish(queue), "clFinish");
}

/* ---- main ---- */

#define ONE(name, steps) ((struct program){#name, name, steps})
#define PAIR(name, steps) ONE(t_##name, steps), ONE(s_##name, steps)
static const struct program programs[] = {
    PAIR(upload, 30), PAIR(alloc, 30),  PAIR(level, 40), PAIR(host, 25),   PAIR(small, 40),
    PAIR(queues, 40), PAIR(phases, 1),  PAIR(sync, 40),  PAIR(pieces, 40), PAIR(trip, 30),
    PAIR(halo, 30),   PAIR(depend, 30), PAIR(brief, 25), PAIR(stream, 30), {NULL, NULL, 0},
};
static const struct program *const sets[] = {programs,   programs_u, programs_v, programs_z,
                                             programs_y, programs_r, programs_q};
#define SETS (sizeof sets / sizeof *sets)

static const struct program *find_program(const char *name)
{
    for (size_t i = 0; i < SETS; i++)
        for (const struct program *one = sets[i]; one->name; one++)
            if (!strcmp(one->name, name))
                return one;
    return NULL;
}

static int list_programs(void)
{
    for (size_t i = 0; i < SETS; i++)
        for (const struct program *one = sets[i]; one->name; one++)
            printf("%s\n", one->name);
    return 0;
}

static void open_device(void)
{
    const char *texts[] = {source, source_u, source_v, source_z, source_y, source_r, source_q};
    context = make_context(&device);
    queue = make_queue(context, device, 0);
    other = make_queue(context, device, 0);
    program = make_program(context, device, sizeof texts / sizeof *texts, texts);
}

/* What both forms of a program should end with. */
static void show_outcome(void)
{
    size_t bytes = 0;
    must(clGetMemObjectInfo(outcome, CL_MEM_SIZE, sizeof bytes, &bytes, NULL), "size");
    unsigned char *data = host(bytes);
    get(outcome, 0, data, bytes);
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ data[i]) * 1099511628211u;
    free(data);
    printf("outcome %016llx\n", (unsigned long long)hash);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--list"))
        return list_programs();
    const struct program *one = argc == 3 ? find_program(argv[1]) : NULL;
    if (!one || (strcmp(argv[2], "bad") && strcmp(argv[2], "fixed"))) {
        fprintf(stderr, "usage: bench_opencl_faults NAME bad|fixed, or --list\n");
        return 2;
    }
    fixed = !strcmp(argv[2], "fixed");
    open_device();
    one->step(0);
    must(clFinish(queue), "clFinish");
    bool phases = one->steps == 1;
    int64_t begun = now_ns();
    for (int i = 1; i <= one->steps; i++) {
        if (!phases)
            perfkit_range_push("step");
        one->step(i);
        if (!phases)
            perfkit_range_pop();
    }
    must(clFinish(queue), "clFinish");
    int64_t ended = now_ns();
    if (outcome)
        show_outcome();
    printf("step %lld ns\n", (long long)(ended - begun) / one->steps);
    over = true;
    return 0;
}
