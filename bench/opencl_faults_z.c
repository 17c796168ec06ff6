/* Set z of opencl_faults: other computations than the other sets have, written and labelled without
 * a look at the rules, scored once and then tuned on. All of them count in whole numbers, so that
 * both forms of a pair end with the same bytes in `outcome`, whose hash is printed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/opencl_faults.h"

const char source_z[] =
    "uint mixed(uint x) { x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu;\n"
    "  return x ^ x >> 16; }\n"
    "kernel void scatter(global int *a, uint seed, int mask) {\n"
    "  uint i = get_global_id(0); a[i] = mixed(i * 2654435761u + seed) & mask; }\n"
    "kernel void nearest(global const int4 *points, global const int4 *centres, int count,\n"
    "                    global int *label) {\n"
    "  size_t i = get_global_id(0); int best = 0, least = INT_MAX;\n"
    "  for (int k = 0; k < count; k++) { int4 d = points[i] - centres[k]; d *= d;\n"
    "    int far = d.x + d.y + d.z + d.w; if (far < least) least = far, best = k; }\n"
    "  label[i] = best; }\n"
    "kernel void sums(global const int4 *points, global const int *label, int each, int count,\n"
    "                 global int4 *sum, global int *members) {\n"
    "  int part = get_global_id(0);\n"
    "  for (int k = part * count; k < (part + 1) * count; k++) sum[k] = 0, members[k] = 0;\n"
    "  for (int i = part * each; i < (part + 1) * each; i++) {\n"
    "    int at = part * count + label[i]; sum[at] += points[i]; members[at]++; } }\n"
    "kernel void means(global const int4 *sum, global const int *members, int parts,\n"
    "                  global int4 *centres) {\n"
    "  int k = get_global_id(0), count = get_global_size(0), all = 0; int4 total = 0;\n"
    "  for (int part = 0; part < parts; part++)\n"
    "    total += sum[part * count + k], all += members[part * count + k];\n"
    "  if (all) centres[k] = total / all; }\n"
    "kernel void rows_of(global const int *columns, global const int *x, int each,\n"
    "                    global int *y) {\n"
    "  size_t i = get_global_id(0); int sum = 0;\n"
    "  for (int k = 0; k < each; k++) sum += (k + 1) * x[columns[i * each + k]];\n"
    "  y[i] = sum; }\n"
    "kernel void shrink(global int *out, global const int *in, int shift) {\n"
    "  size_t i = get_global_id(0); out[i] = (in[i] ^ in[i] >> shift) & 0xffff; }\n"
    "kernel void colour(global int *colours, int size, int now, global int *left) {\n"
    "  const int apart[8] = {1, -1, 37, -37, 211, -211, 503, -503};\n"
    "  int i = get_global_id(0), first = 1;\n"
    "  if (colours[i] < now) return;\n"
    "  for (int k = 0; k < 8; k++) { int n = (i + apart[k] + size) % size;\n"
    "    uint mine = mixed(i) % 9973u, its = mixed(n) % 9973u;\n"
    "    if (colours[n] >= now && (its > mine || (its == mine && n > i))) first = 0; }\n"
    "  if (first) colours[i] = now; else left[now] = 1; }\n"
    "kernel void forget(global int *colours, global int *left, int rounds) {\n"
    "  int i = get_global_id(0); colours[i] = 1 << 20; if (i < rounds) left[i] = 0; }\n"
    "kernel void match(global const uchar *text, int each, int patterns, global int *hits) {\n"
    "  int i = get_global_id(0), found = 0;\n"
    "  for (int at = i * each; at < (i + 1) * each; at++)\n"
    "    for (int p = 0; p < patterns; p++)\n"
    "      found += text[at] == p && text[at + 1] == (p * 5 & 63) && text[at + 2] > p;\n"
    "  hits[i] += found; }\n"
    "kernel void life(global uint *out, global const uint *in, int size) {\n"
    "  int i = get_global_id(0); uint x = in[i];\n"
    "  for (int k = 0; k < 6; k++) x ^= in[(i + k * 33) % size] >> 1 ^ x << 3;\n"
    "  out[i] = x; }\n"
    "kernel void median(global int *out, global const int *in, int last) {\n"
    "  int i = get_global_id(0), v[3];\n"
    "  for (int k = 0; k < 3; k++) v[k] = in[clamp(i + k - 1, 0, last)];\n"
    "  out[i] = max(min(v[0], v[1]), min(max(v[0], v[1]), v[2])); }\n"
    "kernel void align(global const uchar *queries, int length, global const uchar *text,\n"
    "                  int windows, global int *scores) {\n"
    "  int i = get_global_id(0), row[65], best = 0;\n"
    "  global const uchar *q = queries + i / windows * length, *t = text + i % windows * 48;\n"
    "  for (int k = 0; k <= 64; k++) row[k] = 0;\n"
    "  for (int a = 0; a < length; a++) for (int b = 1, before = 0; b <= 64; b++) {\n"
    "    int score = before + (q[a] == t[b - 1] ? 3 : -2); before = row[b];\n"
    "    row[b] = max(max(score, 0), max(row[b], row[b - 1]) - 1); best = max(best, row[b]); }\n"
    "  scores[i] = best; }\n"
    "kernel void butterfly(global int *a, int first, int points, int apart) {\n"
    "  int i = get_global_id(0), in = i % (points / 2);\n"
    "  global int *x = a + first + i / (points / 2) * points + in / apart * 2 * apart + in % "
    "apart;\n"
    "  int p = x[0], q = x[apart]; x[0] = (p + q) & 0xffff; x[apart] = (p - q) & 0xffff; }\n"
    "kernel void bitonic(global int *a, int block, int apart) {\n"
    "  int i = get_global_id(0), at = i / apart * 2 * apart + i % apart;\n"
    "  int x = a[at], y = a[at + apart]; bool up = !(at & block);\n"
    "  if ((x > y) == up) a[at] = y, a[at + apart] = x; }\n"
    "kernel void walks(global int *hits, int paths, uint seed) {\n"
    "  uint state = seed; int found = 0;\n"
    "  for (int k = 0; k < paths; k++) { state = state * 1664525u + 1013904223u;\n"
    "    uint x = state >> 17, y = mixed(state) >> 17; found += x * x + y * y < 1u << 30; }\n"
    "  hits[0] += found; }\n"
    "kernel void drift(global int2 *place, global const int *cell) {\n"
    "  size_t i = get_global_id(0); int near = cell[i] == cell[i ^ 1];\n"
    "  place[i] = (place[i] * 5 + (int2)(near, 7 - near)) & 0xffff; }\n"
    "kernel void cell_of(global const int2 *place, global int *cell) {\n"
    "  size_t i = get_global_id(0); cell[i] = (place[i].x >> 12) + (place[i].y >> 12) * 16; }\n"
    "kernel void collatz(global int *longest, int first, int count) {\n"
    "  for (int n = first; n < first + count; n++) { uint x = n; int length = 0;\n"
    "    for (; x > 1; length++) x = x & 1 ? 3 * x + 1 : x / 2;\n"
    "    *longest = max(*longest, length); } }\n"
    "#ifndef LIMIT\n#define LIMIT limit\n#endif\n"
    "kernel void mandelbrot(global int *out, int limit) {\n"
    "  int i = get_global_id(0), a = (i % 256) * 48 - 8192, b = (i / 256) * 48 - 6144;\n"
    "  int x = 0, y = 0, k = 0;\n"
    "  for (; k < LIMIT && x * x + y * y < 1 << 26; k++) {\n"
    "    int z = ((x * x - y * y) >> 12) + a; y = (x * y >> 11) + b; x = z; }\n"
    "  out[i] += k; }\n"
    "kernel void pivot(global int *far, int size, int k) {\n"
    "  size_t i = get_global_id(0);\n"
    "  far[i] = min(far[i], far[i / size * size + k] + far[k * size + i % size]); }\n"
    "kernel void motion(global int *out, global const int *before, int step) {\n"
    "  int i = get_global_id(0); out[i] = (before[i] * 3 + (i ^ step)) & 0xffff; }\n"
    "kernel void react(global int *out, global const int *in, int last) {\n"
    "  int i = get_global_id(0), x = in[i];\n"
    "  out[i] = (x + ((in[max(i - 1, 0)] + in[min(i + 1, last)] - 2 * x) >> 2) + 3) & 0xffff; }\n"
    "kernel void roots(global uint *table) {\n"
    "  uint i = get_global_id(0); ulong power = 3, value = 1;\n"
    "  for (uint n = i; n; n >>= 1, power = power * power % 998244353u)\n"
    "    if (n & 1) value = value * power % 998244353u;\n"
    "  table[i] = value; }\n"
    "kernel void twist(global uint *a, global const uint *table) {\n"
    "  size_t i = get_global_id(0); a[i] = (ulong)a[i] * table[i] % 998244353u; }\n"
    "kernel void products(global const int *matrix, global int *x, int size, int down,\n"
    "                     int across) {\n"
    "  int i = get_global_id(0), sum = 0;\n"
    "  for (int k = 0; k < size; k++) sum += matrix[i * across + k * down] * (k & 7);\n"
    "  x[i] += sum; }\n"
    "kernel void wave(global int *next, global const int *now, int last) {\n"
    "  int i = get_global_id(0), sides = now[max(i - 1, 0)] + now[min(i + 1, last)];\n"
    "  next[i] = (sides - next[i] + (now[i] >> 3)) & 0xfffff; }\n"
    "kernel void vote(global const int *rows, global const int *trees, int count, int depth,\n"
    "                 global int *votes) {\n"
    "  int i = get_global_id(0), sum = 0;\n"
    "  for (int t = 0; t < count; t++) { int node = 1;\n"
    "    for (int d = 0; d < depth; d++)\n"
    "      node = 2 * node + (rows[i * 8 + (node + d & 7)] > trees[(t << depth) + node]);\n"
    "    sum += node; }\n"
    "  votes[i] = sum; }\n"
    "kernel void march(global int *out, global const int *height, int mask, int slope) {\n"
    "  int i = get_global_id(0), eye = 3 << 14, k = 0;\n"
    "  for (; k < 96 && eye > height[(i + k * 41) & mask]; k++) eye -= slope + (i & 15);\n"
    "  out[i] = k; }\n"
    "kernel void search(global const int *table, int size, global const int *keys,\n"
    "                   global int *found) {\n"
    "  int i = get_global_id(0), low = 0, high = size;\n"
    "  while (low < high) { int at = (low + high) / 2;\n"
    "    if (table[at] < keys[i]) low = at + 1; else high = at; }\n"
    "  found[i] += low; }\n";

static void finish(cl_command_queue on)
{
    must(clFinish(on), "clFinish");
}

/* Numbers below a power of two, made on the device. */
static cl_mem scattered(size_t count, int mask)
{
    static int seed;
    cl_mem memory = buffer(count * 4);
    LAUNCH(queue, "scatter", count, MEM(memory), INT(++seed), INT(mask));
    return memory;
}

/* k-means: the points, that stay the same, go with each round. */
static void z_points(int step)
{
    enum { POINTS = 1 << 18, CENTRES = 6, PARTS = 64 };
    static cl_mem points, label, sum, members;
    static int *values;
    if (!step) {
        points = scattered(4 * POINTS, 4095), outcome = scattered(4 * CENTRES, 4095);
        label = buffer(POINTS * 4), values = host(POINTS * 16);
        sum = buffer(PARTS * CENTRES * 16), members = buffer(PARTS * CENTRES * 4);
        get(points, 0, values, POINTS * 16);
    }
    if (!fixed)
        put(points, 0, values, POINTS * 16, false);
    LAUNCH(queue, "nearest", POINTS, MEM(points), MEM(outcome), INT(CENTRES), MEM(label));
    LAUNCH(queue, "sums", PARTS, MEM(points), MEM(label), INT(POINTS / PARTS), INT(CENTRES),
           MEM(sum), MEM(members));
    LAUNCH(queue, "means", CENTRES, MEM(sum), MEM(members), INT(PARTS), MEM(outcome));
    finish(queue);
}

/* A sparse matrix times a vector, with vectors for what is between made in each iteration. */
static void z_sparse(int step)
{
    enum { ROWS = 1 << 20, EACH = 3 };
    static cl_mem columns, kept[2];
    if (!step) {
        columns = scattered(ROWS * EACH, ROWS - 1), outcome = scattered(ROWS, 255);
        kept[0] = filled(ROWS * 4), kept[1] = filled(ROWS * 4);
    }
    cl_mem product = fixed ? kept[0] : buffer(ROWS * 4);
    cl_mem small = fixed ? kept[1] : buffer(ROWS * 4);
    LAUNCH(queue, "rows_of", ROWS, MEM(columns), MEM(outcome), INT(EACH), MEM(product));
    LAUNCH(queue, "shrink", ROWS, MEM(small), MEM(product), INT(5));
    LAUNCH(queue, "shrink", ROWS, MEM(outcome), MEM(small), INT(3));
    finish(queue);
    if (!fixed)
        clReleaseMemObject(product), clReleaseMemObject(small);
}

/* A graph gets its colours; after each round the host asks whether vertices are left. */
static void z_colours(int step)
{
    enum { VERTICES = 1280, ROUNDS = 16 };
    static cl_mem left;
    int more = 1;
    if (!step)
        outcome = buffer(VERTICES * 4), left = buffer(ROUNDS * 4);
    LAUNCH(queue, "forget", VERTICES, MEM(outcome), MEM(left), INT(ROUNDS));
    for (int now = 0; now < ROUNDS && more; now++) {
        LAUNCH(queue, "colour", VERTICES, MEM(outcome), INT(VERTICES), INT(now), MEM(left));
        if (!fixed || now == ROUNDS - 1)
            get(left, (size_t)now * 4, &more, sizeof more);
    }
}

/* Texts are decoded while the device waits, and searched while the host waits. */
static void z_texts(int step)
{
    enum { TEXTS = 4, LENGTH = 128 << 10, PIECES = 1 };
    static cl_mem texts[TEXTS];
    static unsigned char *coded, *decoded[TEXTS];
    for (int i = 0; i < TEXTS && !step; i++)
        texts[i] = filled(LENGTH + 64), decoded[i] = host(LENGTH + 64);
    if (!step)
        coded = host(LENGTH), outcome = filled(PIECES * 4);
    for (int i = 0; i < TEXTS; i++) {
        unsigned key = (unsigned)(step * TEXTS + i);
        for (int at = 0; at < LENGTH; at++) {
            key = (key << 3 | key >> 29) + coded[at] * 2654435761u;
            decoded[i][at] = (unsigned char)(key % 61);
        }
        put(texts[i], 0, decoded[i], LENGTH, !fixed);
        LAUNCH(queue, "match", PIECES, MEM(texts[i]), INT(LENGTH / PIECES), INT(16), MEM(outcome));
        if (fixed)
            clFlush(queue);
        else
            finish(queue);
    }
    finish(queue);
}

/* A journal of what it launches, written before each launch though nobody reads it. */
static void z_parse(int step)
{
    enum { CELLS = 128 << 10 };
    static cl_mem board;
    static char line[128];
    if (!step)
        board = scattered(CELLS, 0xffffff), outcome = scattered(CELLS, 0xffffff);
    for (int i = 0; i < 4; i++) {
        for (int part = 0; part < 5000 && !fixed; part++)
            snprintf(line, sizeof line, "step %d of %d: part %d, weight %.6f", step, i, part,
                     part * 0.37);
        LAUNCH(queue, "life", CELLS, MEM(i % 2 ? outcome : board), MEM(i % 2 ? board : outcome),
               INT(CELLS));
        clFlush(queue);
    }
    finish(queue);
}

/* A picture in tiles, each sent, filtered and read before the next is sent. */
static void z_tiles(int step)
{
    enum { TILES = 6, PIXELS = 128 << 10 };
    static cl_mem in[TILES], out[TILES];
    static int *picture, *result;
    for (int i = 0; i < TILES && !step; i++)
        in[i] = filled(PIXELS * 4), out[i] = filled(PIXELS * 4), outcome = out[i];
    if (!step)
        picture = host(TILES * PIXELS * 4), result = host(TILES * PIXELS * 4);
    for (int i = 0; i < TILES * PIXELS; i += 16)
        picture[i] = i * 7 + step;
    for (int i = 0; i < TILES; i++) {
        cl_command_queue on = fixed && i % 2 ? other : queue;
        must(clEnqueueWriteBuffer(on, in[i], !fixed, 0, PIXELS * 4, picture + i * PIXELS, 0, NULL,
                                  NULL),
             "clEnqueueWriteBuffer");
        LAUNCH(on, "median", PIXELS, MEM(out[i]), MEM(in[i]), INT(PIXELS - 1));
        must(clEnqueueReadBuffer(on, out[i], !fixed, 0, PIXELS * 4, result + i * PIXELS, 0, NULL,
                                 NULL),
             "clEnqueueReadBuffer");
        clFlush(on);
    }
    finish(queue);
    finish(other);
}

/* Sequences to align with a text, sent one by one. */
static void z_queries(int step)
{
    enum { QUERIES = 90, LENGTH = 64, WINDOWS = 2 };
    static cl_mem queries, text;
    static unsigned char *letters;
    if (!step) {
        queries = filled(QUERIES * LENGTH), text = scattered(1024, 0x03030303);
        letters = host(QUERIES * LENGTH), outcome = filled(QUERIES * WINDOWS * 4);
    }
    for (int i = 0; i < QUERIES * LENGTH; i++)
        letters[i] = (unsigned)(i * i + step) / 3 % 4;
    for (size_t i = 0; i < QUERIES && !fixed; i++)
        put(queries, i * LENGTH, letters + i * LENGTH, LENGTH, true);
    if (fixed)
        put(queries, 0, letters, QUERIES * LENGTH, true);
    LAUNCH(queue, "align", QUERIES * WINDOWS, MEM(queries), INT(LENGTH), MEM(text), INT(WINDOWS),
           MEM(outcome));
    finish(queue);
}

/* Hadamard's transform of signals, one by one. */
static void z_butterflies(int step)
{
    enum { SIGNALS = 24, POINTS = 512 };
    if (!step)
        outcome = scattered(SIGNALS * POINTS, 0xffff);
    for (int apart = 1; apart < POINTS; apart *= 2) {
        for (int i = 0; i < SIGNALS && !fixed; i++)
            LAUNCH(queue, "butterfly", POINTS / 2, MEM(outcome), INT(i * POINTS), INT(POINTS),
                   INT(apart));
        if (fixed)
            LAUNCH(queue, "butterfly", SIGNALS * POINTS / 2, MEM(outcome), INT(0), INT(POINTS),
                   INT(apart));
    }
    finish(queue);
}

/* A sorting network whose every layer is awaited. */
static void z_network(int step)
{
    enum { KEYS = 8 << 10 };
    if (!step)
        outcome = buffer(KEYS * 4);
    LAUNCH(queue, "scatter", KEYS, MEM(outcome), INT(step), INT(0xffffff));
    for (int block = 2; block <= KEYS; block *= 2)
        for (int apart = block / 2; apart; apart /= 2) {
            LAUNCH(queue, "bitonic", KEYS / 2, MEM(outcome), INT(block), INT(apart));
            if (!fixed)
                finish(queue);
        }
    finish(queue);
}

/* Two Monte Carlo sums on two queues, with barriers between them that nothing needs. */
static void z_paths(int step)
{
    static cl_mem second;
    if (!step)
        outcome = filled(4), second = filled(4);
    for (int i = 0; i < 4; i++) {
        cl_command_queue on = i % 2 ? other : queue, next = i % 2 ? queue : other;
        const struct argument arguments[] = {
            MEM(i % 2 ? second : outcome), INT(250000), INT(step * 4 + i), {0, NULL}};
        cl_event event;
        launch(on, "walks", 1, arguments, NULL, &event);
        clFlush(on);
        if (!fixed)
            must(clEnqueueBarrierWithWaitList(next, 1, &event, NULL), "clEnqueueBarrier");
        clReleaseEvent(event);
    }
    finish(queue);
    finish(other);
}

/* The cells that particles are in, found by the host. */
static void z_lists(int step)
{
    enum { COUNT = 384 << 10 };
    static cl_mem cells;
    static int *places, *found;
    if (!step) {
        outcome = scattered(2 * COUNT, 0xffff), cells = filled(COUNT * 4);
        places = host(COUNT * 8), found = host(COUNT * 4);
    }
    if (fixed) {
        LAUNCH(queue, "cell_of", COUNT, MEM(outcome), MEM(cells));
    } else {
        get(outcome, 0, places, COUNT * 8);
        for (int i = 0; i < COUNT; i++)
            found[i] = (places[2 * i] >> 12) + (places[2 * i + 1] >> 12) * 16;
        put(cells, 0, found, COUNT * 4, false);
    }
    LAUNCH(queue, "drift", COUNT, MEM(outcome), MEM(cells));
    finish(queue);
}

/* Two threads with a queue each. What they share is the kernel's arguments; the bad form holds its
 * lock until the device is done. */
static pthread_mutex_t arguments_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin, end;

static void chains(cl_command_queue on, cl_mem longest, int first)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&arguments_lock);
        LAUNCH(on, "collatz", 1, MEM(longest), INT(first + i * 4000), INT(4000));
        if (!fixed)
            finish(on);
        pthread_mutex_unlock(&arguments_lock);
        finish(on);
    }
}

static void *second_thread(void *longest)
{
    for (;;) {
        pthread_barrier_wait(&begin);
        chains(other, longest, 50000);
        pthread_barrier_wait(&end);
    }
    return NULL;
}

static void z_lock(int step)
{
    static pthread_t thread;
    if (!step) {
        outcome = filled(4);
        pthread_barrier_init(&begin, NULL, 2), pthread_barrier_init(&end, NULL, 2);
        pthread_create(&thread, NULL, second_thread, filled(4));
    }
    pthread_barrier_wait(&begin);
    chains(queue, outcome, 1 + step * 100);
    pthread_barrier_wait(&end);
}

/* A kernel built anew for each limit, which could be an argument. */
static void z_build(int step)
{
    enum { PIXELS = 48 << 10 };
    int limit = 40 + step;
    if (!step)
        outcome = filled(PIXELS * 4);
    if (fixed) {
        LAUNCH(queue, "mandelbrot", PIXELS, MEM(outcome), INT(limit));
    } else {
        char options[64];
        const char *text = source_z;
        cl_int error, unused = 0;
        size_t items = PIXELS;
        snprintf(options, sizeof options, "-DLIMIT=%d", limit);
        cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
        must(error, "clCreateProgramWithSource");
        must(clBuildProgram(program, 0, NULL, options, NULL, NULL), "clBuildProgram");
        cl_kernel kernel = make_kernel(program, "mandelbrot");
        must(clSetKernelArg(kernel, 0, sizeof outcome, &outcome), "clSetKernelArg");
        must(clSetKernelArg(kernel, 1, sizeof unused, &unused), "clSetKernelArg");
        must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL),
             "clEnqueueNDRangeKernel");
        clReleaseKernel(kernel), clReleaseProgram(program);
    }
    finish(queue);
}

/* Shortest ways: the matrix is set to infinity, and then written from end to end. */
static void z_infinite(int step)
{
    enum { SIZE = 1024 };
    static int *lengths;
    const cl_int infinity = 1 << 28;
    if (!step)
        outcome = filled(SIZE * SIZE * 4), lengths = host(SIZE * SIZE * 4);
    for (int i = 0; i < SIZE * SIZE; i++)
        lengths[i] = (i * 7 + step) & 1023;
    if (!fixed)
        must(clEnqueueFillBuffer(queue, outcome, &infinity, sizeof infinity, 0, SIZE * SIZE * 4, 0,
                                 NULL, NULL),
             "clEnqueueFillBuffer");
    put(outcome, 0, lengths, SIZE * SIZE * 4, false);
    LAUNCH(queue, "pivot", SIZE * SIZE, MEM(outcome), INT(SIZE), INT(step));
    finish(queue);
}

/* Pictures of a film; each needs the one before, and all are kept. */
static void z_leak(int step)
{
    enum { PIXELS = 1 << 20 };
    static cl_mem kept;
    if (!step)
        outcome = filled(PIXELS * 4), kept = filled(PIXELS * 4);
    cl_mem now = fixed ? kept : buffer(PIXELS * 4);
    LAUNCH(queue, "motion", PIXELS, MEM(now), MEM(outcome), INT(step));
    finish(queue);
    kept = outcome, outcome = now;
}

/* All of a field is read to look at its first row. */
static void z_pages(int step)
{
    enum { CELLS = 2 << 20, ROW = 1024 };
    static cl_mem field;
    static int *values, sum;
    if (!step)
        outcome = scattered(CELLS, 0xffff), field = filled(CELLS * 4), values = host(CELLS * 4);
    cl_mem before = outcome;
    LAUNCH(queue, "react", CELLS, MEM(field), MEM(before), INT(CELLS - 1));
    outcome = field, field = before;
    get(outcome, 0, values, fixed ? ROW * 4 : CELLS * 4);
    for (int i = 0; i < ROW; i++)
        sum ^= values[i];
}

/* A field is copied back after each sweep, where the two could change roles. */
static void z_swap(int step)
{
    enum { CELLS = 1 << 20 };
    static cl_mem next;
    if (!step)
        outcome = scattered(CELLS, 0xffff), next = filled(CELLS * 4);
    for (int i = 0; i < 4; i++) {
        cl_mem from = fixed && i % 2 ? next : outcome, to = fixed && i % 2 ? outcome : next;
        LAUNCH(queue, "react", CELLS, MEM(to), MEM(from), INT(CELLS - 1));
        if (!fixed)
            must(clEnqueueCopyBuffer(queue, to, from, 0, 0, CELLS * 4, 0, NULL, NULL),
                 "clEnqueueCopyBuffer");
    }
    finish(queue);
}

/* Powers of a root, that never change, computed for each transform. */
static void z_roots(int step)
{
    enum { POINTS = 64 << 10 };
    static cl_mem table;
    if (!step)
        outcome = scattered(POINTS, 0xffff), table = filled(POINTS * 4);
    if (!fixed || !step)
        LAUNCH(queue, "roots", POINTS, MEM(table));
    for (int i = 0; i < 8; i++)
        LAUNCH(queue, "twist", POINTS, MEM(outcome), MEM(table));
    finish(queue);
}

/* A matrix, equal to itself turned over, times a vector: along its rows or down its columns. */
static void z_strides(int step)
{
    enum { SIZE = 1024 };
    static cl_mem matrix;
    if (!step) {
        int *values = host(SIZE * SIZE * 4);
        for (int i = 0; i < SIZE * SIZE; i++)
            values[i] = (i / SIZE) * (i % SIZE) & 1023;
        matrix = make_buffer(context, SIZE * SIZE * 4, values), outcome = filled(SIZE * 4);
        free(values);
    }
    for (int i = 0; i < 3; i++)
        LAUNCH(queue, "products", SIZE, MEM(matrix), MEM(outcome), INT(SIZE), INT(fixed ? 1 : SIZE),
               INT(fixed ? SIZE : 1));
    finish(queue);
}

/* ---- programs without a fault ---- */

/* Waves: two fields in turn, and one number of the last. */
static void z_wave(int step)
{
    enum { CELLS = 1 << 20 };
    static cl_mem before;
    static int probe;
    if (!step)
        before = scattered(CELLS, 0xffff), outcome = scattered(CELLS, 0xffff);
    for (int i = 0; i < 6; i++)
        LAUNCH(queue, "wave", CELLS, MEM(i % 2 ? outcome : before), MEM(i % 2 ? before : outcome),
               INT(CELLS - 1));
    get(outcome, 4096, &probe, sizeof probe);
}

/* Decision trees stay on the device; rows are new, their votes are read. */
static void z_forest(int step)
{
    enum { ROWS = 32 << 10, TREES = 10, DEPTH = 8 };
    static cl_mem trees, rows;
    static int *values, *votes;
    if (!step) {
        trees = scattered(TREES << DEPTH, 0xffff), rows = filled(ROWS * 32);
        outcome = filled(ROWS * 4), values = host(ROWS * 32), votes = host(ROWS * 4);
    }
    for (int i = 0; i < ROWS * 8; i++)
        values[i] = (int)((unsigned)i * 40503u + (unsigned)step) & 0xffff;
    put(rows, 0, values, ROWS * 32, false);
    LAUNCH(queue, "vote", ROWS, MEM(rows), MEM(trees), INT(TREES), INT(DEPTH), MEM(outcome));
    get(outcome, 0, votes, ROWS * 4);
}

/* Shortest ways: each pivot needs the one before. */
static void z_floyd(int step)
{
    enum { SIZE = 640, PIVOTS = 12 };
    if (!step)
        outcome = scattered(SIZE * SIZE, 0xffff);
    for (int i = 0; i < PIVOTS; i++)
        LAUNCH(queue, "pivot", SIZE * SIZE, MEM(outcome), INT(SIZE),
               INT((step * PIVOTS + i) % SIZE));
    finish(queue);
}

/* Two views of a landscape on two queues at once. */
static void z_march(int step)
{
    enum { PIXELS = 24 << 10, POINTS = 1 << 16 };
    static cl_mem height, second;
    if (!step) {
        height = scattered(POINTS, 0x7fff), outcome = buffer(PIXELS * 4);
        second = buffer(PIXELS * 4);
    }
    LAUNCH(queue, "march", PIXELS, MEM(outcome), MEM(height), INT(POINTS - 1), INT(step));
    LAUNCH(other, "march", PIXELS, MEM(second), MEM(height), INT(POINTS - 1), INT(step + 9));
    clFlush(queue);
    finish(other);
    finish(queue);
}

/* Keys are searched; the host makes the next ones meanwhile. */
static void z_search(int step)
{
    enum { KEYS = 24 << 10, TABLE = 1 << 16 };
    static cl_mem table, keys;
    static int *values[2];
    if (!step) {
        values[0] = host(KEYS * 4), values[1] = host(KEYS * 4);
        table = filled(TABLE * 4), keys = filled(KEYS * 4), outcome = filled(KEYS * 4);
        int *sorted = host(TABLE * 4);
        for (int i = 0; i < TABLE; i++)
            sorted[i] = i * 3;
        put(table, 0, sorted, TABLE * 4, true);
        free(sorted);
    }
    put(keys, 0, values[step % 2], KEYS * 4, false);
    for (int i = 0; i < 2; i++)
        LAUNCH(queue, "search", KEYS, MEM(table), INT(TABLE), MEM(keys), MEM(outcome));
    clFlush(queue);
    for (int i = 0; i < KEYS; i++)
        values[!(step % 2)][i] = (int)((unsigned)(i + step) * 2654435761u >> 15);
    finish(queue);
}

#define ONE(name, steps) ((struct program){#name, name, steps})
const struct program programs_z[] = {
    ONE(z_points, 30),  ONE(z_sparse, 30),   ONE(z_colours, 60), ONE(z_texts, 25),
    ONE(z_parse, 25),   ONE(z_tiles, 30),    ONE(z_queries, 40), ONE(z_butterflies, 40),
    ONE(z_network, 30), ONE(z_paths, 30),    ONE(z_lists, 40),   ONE(z_lock, 30),
    ONE(z_build, 8),    ONE(z_infinite, 30), ONE(z_leak, 40),    ONE(z_pages, 30),
    ONE(z_swap, 30),    ONE(z_roots, 40),    ONE(z_strides, 30), ONE(z_wave, 30),
    ONE(z_forest, 30),  ONE(z_floyd, 30),    ONE(z_march, 30),   ONE(z_search, 40),
    {NULL, NULL, 0},
};
