/* Set u of opencl_faults: programs with faults of the classes that the other sets have, written
 * after them and scored first. */
#include <stdlib.h>
#include <string.h>

#include "bench/opencl_faults.h"

const char source_u[] =
    "kernel void rays(global float *out, global const float *far, global const float *near,\n"
    "                 int mask, int rounds) {\n"
    "  size_t i = get_global_id(0); float sum = 0; uint at = i * 40503u + 7u;\n"
    "  for (int k = 0; k < rounds; k++, at = at * 69069u + 1u)\n"
    "    sum += far[at & mask] * near[(at >> 7) & mask];\n"
    "  out[i] = sum; }\n"
    "kernel void halve(global float *out, global const float *in) {\n"
    "  size_t i = get_global_id(0); out[i] = 0.5f * (in[2 * i] + in[2 * i + 1]); }\n"
    "kernel void raise(global float *out, global const float *in) {\n"
    "  size_t i = get_global_id(0); out[i] += 0.5f * in[i / 2]; }\n"
    "kernel void smooth(global float *out, global const float *in, int last) {\n"
    "  int i = get_global_id(0);\n"
    "  out[i] = 0.25f * in[max(i - 1, 0)] + 0.5f * in[i] + 0.25f * in[min(i + 1, last)]; }\n"
    "kernel void change(global const float *a, global const float *b, int size,\n"
    "                   global float *out) {\n"
    "  float most = 0; for (int i = 0; i < size; i++) most = fmax(most, fabs(a[i] - b[i]));\n"
    "  *out = most; }\n"
    "kernel void grow(global float *a, int rounds, float rate) {\n"
    "  size_t i = get_global_id(0); float x = a[i];\n"
    "  for (int k = 0; k < rounds; k++) x += rate * x * (1.0f - x);\n"
    "  a[i] = x; }\n"
    "kernel void total(global const float *a, int size, global float *out) {\n"
    "  float sum = 0; for (int i = 0; i < size; i++) sum += a[i];\n"
    "  *out = sum; }\n"
    "kernel void count(global const float *a, int size, global int *bins, int width) {\n"
    "  int part = get_global_id(0), all = get_global_size(0);\n"
    "  for (int i = part; i < size; i += all) bins[part * width + (i * 31) % width]++; }\n"
    "kernel void assign(global float *a, global const int *starts, int width) {\n"
    "  size_t i = get_global_id(0); a[i] = a[i] * 0.5f + starts[i % width]; }\n";

static void finish(cl_command_queue on)
{
    must(clFinish(on), "clFinish");
}

/* Two tables, sent again in pieces although nothing changes them; the camera does change. */
static void u_upload(int step)
{
    static cl_mem far, near, out, camera;
    static float *tables, *view;
    if (!step) {
        tables = host(8 * MIB), view = host(4096);
        far = filled(4 * MIB), near = filled(4 * MIB), out = buffer(MIB), camera = filled(4096);
    }
    view[step % 1024] += 1;
    put(camera, 0, view, 4096, false);
    for (size_t piece = 0; piece < 4 && !fixed; piece++) {
        put(far, piece * MIB, tables + piece * MIB / 4, MIB, false);
        put(near, piece * MIB, tables + (piece + 4) * MIB / 4, MIB, false);
    }
    LAUNCH(queue, "smooth", 1024, MEM(out), MEM(camera), INT(1023));
    LAUNCH(queue, "rays", MIB / 8, MEM(out), MEM(far), MEM(near), INT((1 << 20) - 1), INT(14));
    finish(queue);
}

/* A pyramid whose levels are made for each picture. */
static void u_alloc(int step)
{
    static cl_mem picture, kept[3];
    static float *top;
    if (!step) {
        top = host(512 << 10), picture = filled(8 * MIB);
        for (size_t i = 0; i < 3; i++)
            kept[i] = filled(4 * MIB >> i);
    }
    cl_mem level[3], from = picture;
    for (size_t i = 0; i < 3; i++) {
        level[i] = fixed ? kept[i] : buffer(4 * MIB >> i);
        LAUNCH(queue, "halve", MIB >> i, MEM(level[i]), MEM(from));
        from = level[i];
    }
    for (size_t i = 2; i; i--)
        LAUNCH(queue, "raise", MIB >> (i - 1), MEM(level[i - 1]), MEM(level[i]));
    get(level[0], 0, top, 512 << 10);
    for (size_t i = 0; i < 3 && !fixed; i++)
        clReleaseMemObject(level[i]);
}

/* Relaxation that looks after every sweep whether it is done. */
static void u_level(int step)
{
    static cl_mem a, b, most;
    const cl_int size = 24 << 10;
    float change = 1;
    if (!step)
        a = filled((size_t)size * 4), b = filled((size_t)size * 4), most = filled(4);
    for (int i = 0; i < 24 && change > 1e-12f; i++) {
        LAUNCH(queue, "smooth", (size_t)size, MEM(b), MEM(a), INT(size - 1));
        LAUNCH(queue, "smooth", (size_t)size, MEM(a), MEM(b), INT(size - 1));
        if (fixed && i < 23)
            continue;
        LAUNCH(queue, "change", 1, MEM(a), MEM(b), INT(1 << 10), MEM(most));
        get(most, 0, &change, sizeof change);
    }
}

/* A check sum of what was computed before, by the host, before each launch. */
static void u_host(int step)
{
    static cl_mem field;
    static unsigned char *log;
    if (!step)
        field = filled(MIB), log = host(3 * MIB);
    for (int part = 0; part < 3; part++) {
        unsigned sum = (unsigned)step;
        for (size_t i = 0; i < 3 * MIB && !fixed; i++)
            sum = (sum << 5 | sum >> 27) ^ log[i];
        LAUNCH(queue, "grow", 96 << 10, MEM(field), INT(sum & 1 ? 12 : 13), FLOAT(0.01f));
    }
    finish(queue);
}

/* The columns of a matrix, sent one by one. */
static void u_small(int step)
{
    static cl_mem matrix, out;
    static float *columns;
    if (!step)
        columns = host(80 * 1536), matrix = filled(80 * 1536), out = filled(256 << 10);
    columns[step] = (float)step;
    for (size_t i = 0; i < 80 && !fixed; i++)
        put(matrix, i * 1536, columns + i * 384, 1536, true);
    if (fixed)
        put(matrix, 0, columns, 80 * 1536, true);
    LAUNCH(queue, "rays", 8 << 10, MEM(out), MEM(matrix), MEM(matrix), INT((1 << 14) - 1), INT(60));
    finish(queue);
}

/* Two sums that have nothing to do with each other; the host waits for the first before it asks for
 * the second. */
static void u_queues(int step)
{
    static cl_mem left, right, sums[2];
    if (!step)
        left = filled(2 * MIB), right = filled(2 * MIB), sums[0] = buffer(4), sums[1] = buffer(4);
    for (int i = 0; i < 3; i++) {
        cl_event event;
        const struct argument arguments[] = {MEM(left), INT(400 << 10), MEM(sums[0]), {0, NULL}};
        launch(queue, "total", 1, arguments, NULL, &event);
        clFlush(queue);
        if (!fixed)
            must(clWaitForEvents(1, &event), "clWaitForEvents");
        clReleaseEvent(event);
        LAUNCH(other, "total", 1, MEM(right), INT(400 << 10), MEM(sums[1]));
        clFlush(other);
        if (!fixed)
            finish(other);
    }
    finish(queue);
    finish(other);
}

/* Short kernels of several kinds, each awaited. */
static void u_sync(int step)
{
    static cl_mem a, b;
    if (!step)
        a = filled(96 << 10), b = filled(96 << 10);
    for (int i = 0; i < 9; i++) {
        LAUNCH(queue, "halve", 12 << 10, MEM(b), MEM(a));
        if (!fixed)
            finish(queue);
        LAUNCH(queue, "raise", 12 << 10, MEM(a), MEM(b));
        if (!fixed)
            finish(queue);
        LAUNCH(queue, "grow", 12 << 10, MEM(a), INT(2), FLOAT(0.01f));
        if (!fixed)
            finish(queue);
    }
    finish(queue);
}

/* Bins are counted on the device, added up on the host, and go back. */
static void u_trip(int step)
{
    enum { PARTS = 64, WIDTH = 2048 };
    static cl_mem values, bins, starts;
    static int *counts, *sums;
    if (!step) {
        counts = host(PARTS * WIDTH * 4), sums = host(WIDTH * 4);
        values = filled(2 * MIB), bins = filled(PARTS * WIDTH * 4), starts = filled(WIDTH * 4);
    }
    LAUNCH(queue, "count", PARTS, MEM(values), INT(1 << 18), MEM(bins), INT(WIDTH));
    if (!fixed) {
        get(bins, 0, counts, PARTS * WIDTH * 4);
        memset(sums, 0, WIDTH * 4);
        for (int part = 0; part < PARTS; part++)
            for (int i = 0; i < WIDTH; i++)
                sums[i] += counts[part * WIDTH + i] & 0xffff;
        for (int i = 1; i < WIDTH; i++)
            sums[i] = (sums[i] + sums[i - 1]) & 0xffff;
        put(starts, 0, sums, WIDTH * 4, true);
    }
    LAUNCH(queue, "assign", 1 << 18, MEM(values), MEM(starts), INT(WIDTH));
    finish(queue);
}

/* ---- programs without a fault ---- */

/* New rows in each iteration, into two buffers in turn; nothing waits but for the result. */
static void u_stream(int step)
{
    static cl_mem in[2], out;
    static float *rows[2], *result;
    for (int i = 0; i < 2 && !step; i++)
        in[i] = filled(MIB), rows[i] = host(MIB), out = filled(MIB), result = host(32 << 10);
    float *now = rows[step % 2];
    for (size_t i = 0; i < MIB / 4; i += 64)
        now[i] = (float)step + (float)i;
    put(in[step % 2], 0, now, MIB, false);
    LAUNCH(queue, "smooth", MIB / 4, MEM(out), MEM(in[step % 2]), INT((1 << 18) - 1));
    LAUNCH(queue, "grow", MIB / 4, MEM(out), INT(10), FLOAT(0.02f));
    get(out, 0, result, 32 << 10);
}

/* One number is read when all is done. */
static void u_result(int step)
{
    static cl_mem field, sum;
    static float last;
    if (!step)
        field = filled(2 * MIB), sum = buffer(4);
    for (int i = 0; i < 6; i++)
        LAUNCH(queue, "grow", MIB / 4, MEM(field), INT(8), FLOAT(0.01f));
    LAUNCH(queue, "total", 1, MEM(field), INT(1 << 12), MEM(sum));
    get(sum, 0, &last, sizeof last);
}

/* The host prepares the next rows while the device works. */
static void u_ahead(int step)
{
    static cl_mem field;
    if (!step)
        field = filled(2 * MIB);
    LAUNCH(queue, "grow", MIB / 2, MEM(field), INT(24), FLOAT(0.01f));
    clFlush(queue);
    host_work(600);
    finish(queue);
}

#define ONE(name, steps) ((struct program){#name, name, steps})
const struct program programs_u[] = {
    ONE(u_upload, 30), ONE(u_alloc, 30),  ONE(u_level, 30), ONE(u_host, 25),
    ONE(u_small, 40),  ONE(u_queues, 30), ONE(u_sync, 40),  ONE(u_trip, 40),
    ONE(u_stream, 30), ONE(u_result, 30), ONE(u_ahead, 30), {NULL, NULL, 0},
};
