/* Set v of opencl_faults: programs with faults of the classes that the other sets have, written
 * after rules were changed for what set u had shown, and scored only. */
#include <stdlib.h>
#include <string.h>

#include "bench/opencl_faults.h"

const char source_v[] =
    "kernel void shade(global float *out, global const float *curve, int last, int rounds) {\n"
    "  size_t i = get_global_id(0); float x = (float)(i % 977) / 977.0f;\n"
    "  for (int k = 0; k < rounds; k++) x = 0.5f * x + 0.5f * curve[(int)(x * last)];\n"
    "  out[i] = x; }\n"
    "kernel void blend(global float *a, global const float *b, float part) {\n"
    "  size_t i = get_global_id(0); a[i] = (1.0f - part) * a[i] + part * b[i]; }\n"
    "kernel void step_of(global float *speed, global float *place, float dt) {\n"
    "  size_t i = get_global_id(0); float v = speed[i] - dt * place[i];\n"
    "  speed[i] = v; place[i] += dt * v; }\n"
    "kernel void push(global float *place, int first, int rounds, float force) {\n"
    "  size_t i = first + get_global_id(0); float x = place[i];\n"
    "  for (int k = 0; k < rounds; k++) x += 0.02f * (force - x * x);\n"
    "  place[i] = x; }\n"
    "kernel void farthest(global const float *a, int size, global float *out) {\n"
    "  float far = 0; for (int i = 0; i < size; i++) far = fmax(far, a[i]);\n"
    "  *out = far; }\n"
    "kernel void clip(global float *a, global const float *scale) {\n"
    "  size_t i = get_global_id(0); a[i] = a[i] / fmax(*scale, 1.0f); }\n"
    "kernel void merge(global float *out, global const float *in, int apart) {\n"
    "  int i = get_global_id(0); out[i] = fmin(in[i], in[(i + apart) % (2 * apart)]); }\n";

static void finish(cl_command_queue on)
{
    must(clFinish(on), "clFinish");
}

/* A curve for colours that nobody changes goes with every picture; the picture's own eight numbers
 * do change. */
static void v_upload(int step)
{
    enum { CURVE = 6 << 20 };
    static cl_mem curve, picture, camera;
    static float *values, *view;
    if (!step) {
        values = host(CURVE), view = host(32);
        curve = filled(CURVE), picture = filled(MIB), camera = filled(32);
    }
    view[0] = (float)step;
    put(camera, 0, view, 32, false);
    if (!fixed)
        put(curve, 0, values, CURVE, true);
    LAUNCH(queue, "shade", MIB / 8, MEM(picture), MEM(curve), INT(CURVE / 4 - 1), INT(6));
    LAUNCH(queue, "blend", 8, MEM(picture), MEM(camera), FLOAT(0.5f));
    finish(queue);
}

/* Each of five stages makes the buffer of its result and frees the one of its input. */
static void v_alloc(int step)
{
    static cl_mem source, kept[2];
    static float *result;
    if (!step) {
        source = filled(6 * MIB), result = host(4096);
        for (int i = 0; i < 2; i++)
            kept[i] = filled(6 * MIB);
    }
    cl_mem from = source;
    for (int stage = 0; stage < 5; stage++) {
        cl_mem to = fixed ? kept[stage % 2] : buffer(6 * MIB);
        LAUNCH(queue, "merge", 3 * MIB / 2, MEM(to), MEM(from), INT(3 * MIB / 4));
        if (!fixed && from != source)
            clReleaseMemObject(from);
        from = to;
    }
    get(from, 0, result, 4096);
    if (!fixed)
        clReleaseMemObject(from);
}

/* The time step of a simulation, chosen by the host from the largest speed. */
static void v_level(int step)
{
    static cl_mem speed, place, far;
    float largest = 1;
    if (!step)
        speed = filled(80 << 10), place = filled(80 << 10), far = filled(4);
    for (int i = 0; i < 16; i++) {
        LAUNCH(queue, "step_of", 20 << 10, MEM(speed), MEM(place), FLOAT(0.01f));
        LAUNCH(queue, "farthest", 1, MEM(speed), INT(3 << 10), MEM(far));
        if (fixed) {
            LAUNCH(queue, "clip", 20 << 10, MEM(speed), MEM(far));
            continue;
        }
        get(far, 0, &largest, sizeof largest);
        if (largest > 1e9f)
            break;
        LAUNCH(queue, "clip", 20 << 10, MEM(speed), MEM(far));
    }
    finish(queue);
}

/* Sorts the order of its work on the host before it launches any of it. */
static int ascending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

static void v_host(int step)
{
    enum { COUNT = 40000 };
    static cl_mem place;
    static int *order;
    if (!step)
        place = filled(MIB), order = host(COUNT * 4);
    for (int part = 0; part < 2; part++) {
        for (int i = 0; i < COUNT && !fixed; i++)
            order[i] = (int)((unsigned)(i + step + part) * 2654435761u >> 8);
        if (!fixed)
            qsort(order, COUNT, sizeof *order, ascending);
        LAUNCH(queue, "push", 64 << 10, MEM(place), INT(0), INT(20), FLOAT(0.1f));
        LAUNCH(queue, "push", 64 << 10, MEM(place), INT(1 << 16), INT(20), FLOAT(0.2f));
    }
    finish(queue);
}

/* Reads one record of each body, body by body. */
static void v_small(int step)
{
    enum { BODIES = 72, RECORD = 640 };
    static cl_mem bodies;
    static unsigned char *records;
    if (!step)
        records = host(BODIES * RECORD), bodies = filled(MIB);
    LAUNCH(queue, "push", 32 << 10, MEM(bodies), INT(0), INT(20), FLOAT(0.3f));
    for (size_t i = 0; i < BODIES && !fixed; i++)
        get(bodies, i * RECORD, records + i * RECORD, RECORD);
    if (fixed)
        get(bodies, 0, records, BODIES * RECORD);
}

/* Four scenes that have nothing to do with each other, on two queues; the host finishes each before
 * it begins the next. */
static void v_queues(int step)
{
    static cl_mem scene[4], far[4];
    cl_command_queue queues[2] = {queue, other};
    for (int i = 0; i < 4 && !step; i++)
        scene[i] = filled(2 * MIB), far[i] = buffer(4);
    for (int i = 0; i < 4; i++) {
        LAUNCH(queues[i % 2], "farthest", 1, MEM(scene[i]), INT(350 << 10), MEM(far[i]));
        clFlush(queues[i % 2]);
        if (!fixed)
            finish(queues[i % 2]);
    }
    finish(queue);
    finish(other);
}

/* One launch for each row of a matrix. */
static void v_pieces(int step)
{
    enum { ROWS = 90, COLUMNS = 512 };
    static cl_mem matrix;
    if (!step)
        matrix = filled((size_t)ROWS * COLUMNS * 4);
    for (int row = 0; row < ROWS && !fixed; row++)
        LAUNCH(queue, "push", COLUMNS, MEM(matrix), INT(row * COLUMNS), INT(1), FLOAT(0.1f));
    if (fixed)
        LAUNCH(queue, "push", ROWS * COLUMNS, MEM(matrix), INT(0), INT(1), FLOAT(0.1f));
    finish(queue);
}

/* A mean is taken off on the host, between two kernels. */
static void v_trip(int step)
{
    static cl_mem field, means;
    static float *values;
    const size_t size = MIB / 4;
    if (!step)
        values = host(size * 4), field = filled(size * 4), means = filled(size * 4);
    LAUNCH(queue, "push", size, MEM(field), INT(0), INT(3), FLOAT(0.05f));
    if (fixed) {
        LAUNCH(queue, "blend", size, MEM(field), MEM(means), FLOAT(0.1f));
    } else {
        get(field, 0, values, size * 4);
        float mean = 0;
        for (size_t i = 0; i < size; i++)
            mean += values[i] / (float)size;
        for (size_t i = 0; i < size; i++)
            values[i] -= mean;
        put(field, 0, values, size * 4, true);
    }
    LAUNCH(queue, "push", size, MEM(field), INT(0), INT(3), FLOAT(0.07f));
    finish(queue);
}

/* ---- programs without a fault ---- */

/* A long chain on one queue: large kernels, each of which needs the one before; a small result. */
static void v_chain(int step)
{
    static cl_mem a, b;
    static float result[256];
    if (!step)
        a = filled(2 * MIB), b = filled(2 * MIB);
    for (int i = 0; i < 5; i++) {
        LAUNCH(queue, "push", MIB / 4, MEM(a), INT(0), INT(12), FLOAT(0.1f));
        LAUNCH(queue, "merge", MIB / 2, MEM(b), MEM(a), INT(MIB / 4));
        LAUNCH(queue, "blend", MIB / 2, MEM(a), MEM(b), FLOAT(0.3f));
    }
    get(a, 0, result, sizeof result);
}

/* Two halves, each with a queue of its own; the host fills one while the device works on the other.
 */
static void v_double(int step)
{
    enum { ROWS = 128 << 10 };
    static cl_mem side[2];
    static float *rows[2];
    for (int i = 0; i < 2 && !step; i++)
        side[i] = filled(ROWS * 4), rows[i] = host(ROWS * 4);
    int now = step % 2;
    cl_command_queue on = now ? other : queue;
    finish(on);
    for (int i = 0; i < ROWS; i += 16)
        rows[now][i] = (float)(i + step);
    must(clEnqueueWriteBuffer(on, side[now], false, 0, ROWS * 4, rows[now], 0, NULL, NULL),
         "clEnqueueWriteBuffer");
    LAUNCH(on, "push", ROWS, MEM(side[now]), INT(0), INT(60), FLOAT(0.1f));
    clFlush(on);
}

#define ONE(name, steps) ((struct program){#name, name, steps})
const struct program programs_v[] = {
    ONE(v_upload, 30), ONE(v_alloc, 30),  ONE(v_level, 30),  ONE(v_host, 25),
    ONE(v_small, 40),  ONE(v_queues, 30), ONE(v_pieces, 40), ONE(v_trip, 40),
    ONE(v_chain, 30),  ONE(v_double, 40), {NULL, NULL, 0},
};
