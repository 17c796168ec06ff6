/* Set y of opencl_faults: other computations again (opencl_faults_y_kernels.c), and faults that
 * users of OpenCL make. Written and labelled without a look at the rules; scored once, tuned on
 * since. As in set z, both forms of a pair end with the same bytes in `outcome`, whose hash is
 * printed. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/opencl_faults.h"

/* A genome's index of short words, sent with each batch of reads. */
static void y_reads(int step)
{
    enum { READS = 12 << 10, LENGTH = 32, WORDS = 2 << 20 };
    static cl_mem index, reads;
    static int *words;
    static unsigned char *letters;
    if (!step) {
        words = drawn(WORDS, 0xffff), letters = host(READS * LENGTH);
        index = make_buffer(context, WORDS * 4, words);
        reads = filled(READS * LENGTH), outcome = filled(READS * 4);
    }
    for (int i = 0; i < READS * LENGTH; i += 16)
        letters[i] = (unsigned char)(i / 16 * 7 + step);
    if (!fixed)
        put(index, 0, words, WORDS * 4, true);
    put(reads, 0, letters, READS * LENGTH, true);
    LAUNCH(queue, "seeds", READS, MEM(reads), INT(LENGTH), MEM(index), INT(WORDS - 1),
           MEM(outcome));
    drain(queue);
}

/* Lines in a picture: the votes are cleared by sending zeros, or by the kernel. */
static void y_zeros(int step)
{
    enum { ANGLES = 1024, RADII = 2048, EDGES = 800 };
    static cl_mem bins, edges;
    static int *points, *zeros;
    if (!step) {
        points = drawn(EDGES * 2, 1023), zeros = calloc(ANGLES * RADII, 4);
        bins = make_buffer(context, ANGLES * RADII * 4, zeros);
        edges = filled(EDGES * 8), outcome = filled(ANGLES * 4);
    }
    for (int i = 0; i < EDGES; i++)
        points[2 * i] = (points[2 * i] + i) & 1023;
    put(edges, 0, points, EDGES * 8, false);
    if (!fixed)
        put(bins, 0, zeros, ANGLES * RADII * 4, false);
    LAUNCH(queue, "hough", ANGLES, MEM(edges), INT(EDGES), INT(RADII), INT(fixed), MEM(bins));
    LAUNCH(queue, "peaks", ANGLES, MEM(bins), INT(RADII), MEM(outcome));
    drain(queue);
}

/* The rate at which a bond's payments are worth its price, by halving; the host does the halving.
 */
static void y_rate(int step)
{
    enum { PARTS = 256, EACH = 192, HALVINGS = 24 };
    static cl_mem flows, parts, total;
    int range[2] = {0, 4096};
    const cl_long target = 3000000 + 10000 * step;
    if (!step) {
        flows = drawn_buffer(PARTS * EACH, 1023), parts = filled(PARTS * 8);
        total = filled(8), outcome = filled(8);
    }
    put(outcome, 0, range, 8, true);
    for (int i = 0; i < HALVINGS; i++) {
        int middle = (range[0] + range[1]) >> 1;
        LAUNCH(queue, "present", PARTS, MEM(flows), INT(EACH), INT(fixed ? -1 : middle),
               MEM(outcome), MEM(parts));
        LAUNCH(queue, "narrow", 1, MEM(parts), INT(PARTS), ARGUMENT(cl_long, target), MEM(outcome),
               MEM(total));
        if (!fixed) {
            cl_long sum = 0;
            get(total, 0, &sum, sizeof sum);
            range[sum > target ? 0 : 1] = middle;
        }
    }
    get(outcome, 0, range, 8);
}

/* A picture less its means over boxes, by sums that get buffers of their own for each picture. */
static void y_boxes(int step)
{
    enum { WIDTH = 1040, HEIGHT = 1008, PIXELS = WIDTH * HEIGHT };
    static cl_mem kept[3];
    cl_mem now[3];
    if (!step)
        outcome = drawn_buffer(PIXELS, 0xffff);
    for (int i = 0; i < 3; i++) {
        if (!step)
            kept[i] = filled(PIXELS * 4);
        now[i] = fixed ? kept[i] : buffer(PIXELS * 4);
    }
    LAUNCH(queue, "along_rows", HEIGHT, MEM(outcome), INT(WIDTH), MEM(now[0]));
    LAUNCH(queue, "down_columns", WIDTH, MEM(now[0]), INT(HEIGHT), MEM(now[1]));
    LAUNCH(queue, "box", PIXELS, MEM(now[1]), INT(WIDTH), INT(8), INT(PIXELS - 1), MEM(now[2]));
    LAUNCH(queue, "unsharp", PIXELS, MEM(now[2]), MEM(outcome));
    drain(queue);
    for (int i = 0; i < 3 && !fixed; i++)
        clReleaseMemObject(now[i]);
}

/* A library's function that builds its program in each call. */
static const char fletcher_source[] =
    "kernel void fletcher(global const uchar *data, int each, global uint *sums) {\n"
    "  int i = get_global_id(0); uint a = sums[i] & 255, b = 0;\n"
    "  for (int k = 0; k < each; k++) a = (a + data[i * each + k]) % 65535, b = (b + a) % 65535;\n"
    "  sums[i] = b << 16 | a; }\n";

static void y_sums(int step)
{
    enum { BLOCKS = 6 << 10, EACH = 1024 };
    static cl_mem data;
    static cl_kernel kernel;
    const size_t items = BLOCKS;
    const cl_int each = EACH;
    if (!step)
        data = drawn_buffer(BLOCKS * EACH / 4, 0xffffff), outcome = filled(BLOCKS * 4);
    if (!kernel) {
        const char *text = fletcher_source;
        cl_int error;
        cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
        must(error, "clCreateProgramWithSource");
        must(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), "clBuildProgram");
        kernel = make_kernel(program, "fletcher");
        clReleaseProgram(program);
    }
    must(clSetKernelArg(kernel, 0, sizeof data, &data), "clSetKernelArg");
    must(clSetKernelArg(kernel, 1, sizeof each, &each), "clSetKernelArg");
    must(clSetKernelArg(kernel, 2, sizeof outcome, &outcome), "clSetKernelArg");
    must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL),
         "clEnqueueNDRangeKernel");
    drain(queue);
    if (!fixed)
        clReleaseKernel(kernel), kernel = NULL;
}

/* Two fields that drive each other, with a wait after each half of a time step. */
static void y_fields(int step)
{
    enum { CELLS = 96 << 10, HALVES = 80 };
    static cl_mem second;
    if (!step)
        outcome = drawn_buffer(CELLS, 0xffff), second = drawn_buffer(CELLS, 0xffff);
    for (int i = 0; i < HALVES; i++) {
        LAUNCH(queue, "field", CELLS, MEM(i % 2 ? outcome : second), MEM(i % 2 ? second : outcome),
               INT(i % 2 ? 1 : -1), INT(CELLS - 1));
        if (!fixed)
            drain(queue);
    }
    drain(queue);
}

/* Prices that changed, sent one by one. */
static void y_ticks(int step)
{
    enum { PRICES = 4096, TICKS = 400, ACCOUNTS = 4096, HELD = 160 };
    static cl_mem prices, ticks;
    static int changed[TICKS][2];
    if (!step)
        prices = drawn_buffer(PRICES * 2, 0xffff), ticks = filled(TICKS * 8),
        outcome = filled(ACCOUNTS * 4);
    for (int i = 0; i < TICKS; i++)
        changed[i][0] = (i * 17 + step * 5) % PRICES, changed[i][1] = (i * i + step) & 0xffff;
    for (int i = 0; i < TICKS && !fixed; i++)
        put(prices, (size_t)changed[i][0] * 8, changed[i], 8, false);
    if (fixed) {
        put(ticks, 0, changed, TICKS * 8, false);
        LAUNCH(queue, "quotes", TICKS, MEM(prices), MEM(ticks));
    }
    LAUNCH(queue, "worth", ACCOUNTS, MEM(prices), INT(PRICES - 1), INT(HELD), MEM(outcome));
    drain(queue);
}

/* Edges of a picture, row by row. */
static void y_rows(int step)
{
    enum { WIDTH = 1024, ROWS = 512 };
    static cl_mem picture;
    const size_t all[2] = {WIDTH, ROWS};
    if (!step)
        picture = drawn_buffer((size_t)WIDTH * (ROWS + 2), 0xfff),
        outcome = drawn_buffer((size_t)WIDTH * (ROWS + 2), 0xff);
    for (int i = 0; i < ROWS && !fixed; i++)
        LAUNCH(queue, "sobel", WIDTH, MEM(picture), INT(WIDTH), INT(i), MEM(outcome));
    if (fixed)
        RANGE(queue, "sobel", 2, all, NULL, MEM(picture), INT(WIDTH), INT(0), MEM(outcome));
    drain(queue);
}

/* A camera is asked for a picture when the one before is done with, or meanwhile. */
static void picture_of(int *frame, int pixels, int step)
{
    const struct timespec exposure = {0, 2000000};
    nanosleep(&exposure, NULL);
    for (int i = 0; i < pixels; i += 64)
        frame[i] = (i / 64 * 37 + step * 11) & 0xffff;
}

static void y_camera(int step)
{
    enum { PIXELS = 128 << 10 };
    static cl_mem seen;
    static int *frames[2];
    if (!step) {
        frames[0] = drawn(PIXELS, 0xffff), frames[1] = host(PIXELS * 4);
        memcpy(frames[1], frames[0], PIXELS * 4);
        seen = filled(PIXELS * 4), outcome = filled(PIXELS * 4);
    }
    if (!fixed || !step)
        picture_of(frames[step % 2], PIXELS, step);
    put(seen, 0, frames[step % 2], PIXELS * 4, false);
    LAUNCH(queue, "background", PIXELS, MEM(seen), MEM(outcome), INT(60));
    clFlush(queue);
    if (fixed)
        picture_of(frames[!(step % 2)], PIXELS, step + 1);
    drain(queue);
}

/* Runs of equal numbers get their places from the host. */
static void y_runs(int step)
{
    enum { COUNT = 1 << 20, BLOCKS = 1024 };
    static cl_mem data, first, sums;
    static int *places;
    if (!step) {
        data = drawn_buffer(COUNT, 0xff), first = filled(COUNT * 4), sums = filled(BLOCKS * 4);
        outcome = filled(COUNT * 4), places = host(COUNT * 4);
    }
    LAUNCH(queue, "heads", COUNT, MEM(data), INT(step % 7), MEM(first));
    if (fixed) {
        LAUNCH(queue, "block_sums", BLOCKS, MEM(first), INT(COUNT / BLOCKS), MEM(sums));
        LAUNCH(queue, "scan_sums", 1, MEM(sums), INT(BLOCKS));
        LAUNCH(queue, "scan_blocks", BLOCKS, MEM(first), INT(COUNT / BLOCKS), MEM(sums));
    } else {
        get(first, 0, places, COUNT * 4);
        for (int i = 1; i < COUNT; i++)
            places[i] += places[i - 1];
        put(first, 0, places, COUNT * 4, true);
    }
    LAUNCH(queue, "runs", COUNT, MEM(data), MEM(first), MEM(outcome));
    drain(queue);
}

/* Brightness and colour, made black and white by one item each; the host waits for the first. */
static void y_dither(int step)
{
    enum { WIDTH = 1024, HEIGHT = 768 };
    static cl_mem planes[2], errors[2], out[2];
    for (int i = 0; i < 2 && !step; i++) {
        planes[i] = drawn_buffer(WIDTH * HEIGHT, 255), errors[i] = filled(WIDTH * 4);
        out[i] = outcome = filled(WIDTH * HEIGHT * 4);
    }
    for (int i = 0; i < 2; i++) {
        cl_event event;
        const struct argument arguments[] = {MEM(planes[i]), INT(WIDTH),  INT(HEIGHT),
                                             MEM(errors[i]), MEM(out[i]), {0, NULL}};
        launch(i ? other : queue, "dither", 1, arguments, NULL, &event);
        clFlush(i ? other : queue);
        if (!fixed)
            must(clWaitForEvents(1, &event), "clWaitForEvents");
        clReleaseEvent(event);
    }
    drain(other);
    drain(queue);
}

/* Bands of a picture from a satellite, each told by its difference to the one before. */
static cl_event band_copy(cl_mem band, bool up, int *values, size_t bytes, const cl_event *after)
{
    cl_event event;
    cl_command_queue on = fixed ? other : queue;
    cl_int error =
        up ? clEnqueueWriteBuffer(on, band, !fixed, 0, bytes, values, !!after, after, &event)
           : clEnqueueReadBuffer(on, band, !fixed, 0, bytes, values, !!after, after, &event);
    must(error, "copy of a band");
    clFlush(on);
    return event;
}

static void y_bands(int step)
{
    enum { BANDS = 6, PIXELS = 512 << 10 };
    static cl_mem coded[BANDS], plain[BANDS + 1];
    static int *sent[BANDS], *result[BANDS];
    cl_event ready[BANDS], decoded[BANDS];
    for (int i = 0; i < BANDS && !step; i++) {
        coded[i] = filled(PIXELS * 4), sent[i] = drawn(PIXELS, 255), result[i] = host(PIXELS * 4);
        plain[i] = filled(PIXELS * 4), plain[i + 1] = outcome = filled(PIXELS * 4);
    }
    for (int i = 0; i < BANDS && fixed; i++) {
        sent[i][step] = step;
        ready[i] = band_copy(coded[i], true, sent[i], PIXELS * 4, NULL);
    }
    for (int i = 0; i < BANDS; i++) {
        const struct argument arguments[] = {
            MEM(coded[i]), MEM(plain[i]), INT(PIXELS / 4), MEM(plain[i + 1]), {0, NULL}};
        if (!fixed) {
            sent[i][step] = step;
            ready[i] = band_copy(coded[i], true, sent[i], PIXELS * 4, NULL);
        }
        launch(queue, "decode", 1, arguments, &ready[i], &decoded[i]);
        clFlush(queue);
        clReleaseEvent(ready[i]);
        clReleaseEvent(band_copy(plain[i + 1], false, result[i], PIXELS * 4, &decoded[i]));
        clReleaseEvent(decoded[i]);
    }
    drain(queue);
    drain(other);
}

/* A film's pictures go into memory of the host and from there to the device, or there at once. */
static void y_film(int step)
{
    enum { WIDTH = 2080, HEIGHT = 1008, BYTES = WIDTH * HEIGHT * 4 };
    static cl_mem frame;
    static int *film, *picture;
    const size_t quarters[2] = {WIDTH / 4, HEIGHT / 4};
    cl_int error;
    if (!step) {
        film = drawn(WIDTH * HEIGHT, 0xffff), picture = host(BYTES);
        frame = clCreateBuffer(context, CL_MEM_READ_WRITE | (fixed ? CL_MEM_ALLOC_HOST_PTR : 0),
                               BYTES, NULL, &error);
        must(error, "clCreateBuffer"), outcome = filled(BYTES / 16);
    }
    film[step] = step;
    if (fixed)
        picture = clEnqueueMapBuffer(queue, frame, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                     BYTES, 0, NULL, NULL, &error);
    memcpy(picture, film, BYTES);
    if (fixed)
        must(clEnqueueUnmapMemObject(queue, frame, picture, 0, NULL, NULL), "unmap");
    else
        put(frame, 0, picture, BYTES, true);
    RANGE(queue, "quarter", 2, quarters, NULL, MEM(frame), INT(WIDTH), INT(4), MEM(outcome));
    drain(queue);
}

/* Which points are inside of triangles, in groups of one. */
static void y_triangles(int step)
{
    static cl_mem x, y;
    const size_t items = 64 << 10, one = 1, many = 128;
    if (!step)
        x = drawn_buffer(items, 4095), y = drawn_buffer(items, 4095), outcome = filled(items * 4);
    for (int i = 0; i < 4; i++) {
        const cl_int2 corner = {{2000 + step, 100 * i}};
        RANGE(queue, "inside", 1, &items, fixed ? &many : &one, MEM(x), MEM(y),
              INT4(step, i, 900 * i, 4000 - step), {sizeof corner, &corner}, MEM(outcome));
    }
    drain(queue);
}

/* Stars that pull at each other. The host asks in a loop whether the device is done. */
static void y_stars(int step)
{
    enum { STARS = 4096 };
    static cl_mem places;
    cl_event event;
    cl_int state = CL_QUEUED;
    if (!step)
        places = drawn_buffer(2 * STARS, 0xffff), outcome = filled(STARS * 8);
    const struct argument arguments[] = {MEM(places), INT(STARS), MEM(outcome), {0, NULL}};
    launch(queue, "pulls", STARS, arguments, NULL, &event);
    clFlush(queue);
    while (!fixed && state > CL_COMPLETE)
        must(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL),
             "clGetEventInfo");
    drain(queue);
    clReleaseEvent(event);
}

/* Two threads pack a bag each, one item of the device for each of them. What they share is the
 * kernel's arguments; the bad form has its result before it lets the other go on. */
static pthread_mutex_t bags_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t bags_begin, bags_end;

static void pack_bag(cl_command_queue on, cl_mem things, cl_mem best)
{
    enum { THINGS = 200, ROOM = 4095 };
    for (int i = 0; i < 4; i++) {
        int worth;
        pthread_mutex_lock(&bags_lock);
        LAUNCH(on, "knapsack", 1, MEM(things), INT(THINGS), INT(ROOM), MEM(best));
        if (fixed)
            pthread_mutex_unlock(&bags_lock);
        must(clEnqueueReadBuffer(on, best, CL_TRUE, ROOM * 4, sizeof worth, &worth, 0, NULL, NULL),
             "clEnqueueReadBuffer");
        if (!fixed)
            pthread_mutex_unlock(&bags_lock);
    }
}

static cl_mem bag_things, other_bag;

static void *second_packer(void *data)
{
    for (;;) {
        pthread_barrier_wait(&bags_begin);
        pack_bag(other, bag_things, other_bag);
        pthread_barrier_wait(&bags_end);
    }
    return data;
}

static void y_bags(int step)
{
    static pthread_t thread;
    if (!step) {
        bag_things = drawn_buffer(256, 0xffff);
        outcome = drawn_buffer(4096, 7), other_bag = drawn_buffer(4096, 7);
        pthread_barrier_init(&bags_begin, NULL, 2), pthread_barrier_init(&bags_end, NULL, 2);
        pthread_create(&thread, NULL, second_packer, NULL);
    }
    pthread_barrier_wait(&bags_begin);
    pack_bag(queue, bag_things, outcome);
    pthread_barrier_wait(&bags_end);
}

/* The energy of a plate is summed after each sweep; it is looked at after the last. */
static void y_plate(int step)
{
    enum { WIDTH = 512, CELLS = WIDTH * 512, PARTS = 512, SWEEPS = 8 };
    static cl_mem second, sums;
    static cl_long energies[PARTS];
    if (!step)
        outcome = drawn_buffer(CELLS, 0xffff), second = filled(CELLS * 4), sums = filled(PARTS * 8);
    for (int i = 0; i < SWEEPS; i++) {
        cl_mem from = i % 2 ? second : outcome, to = i % 2 ? outcome : second;
        LAUNCH(queue, "heat", CELLS, MEM(to), MEM(from), INT(WIDTH), INT(CELLS - 1));
        if (!fixed || i == SWEEPS - 1)
            LAUNCH(queue, "energy", PARTS, MEM(to), INT(CELLS / PARTS), MEM(sums));
    }
    get(sums, 0, energies, sizeof energies);
}

/* A landscape that stays as it is, under a sun that moves: its slopes are found for each picture.
 */
static void y_slopes(int step)
{
    enum { WIDTH = 512, POINTS = WIDTH * 512 };
    static cl_mem height, slopes;
    if (!step)
        height = drawn_buffer(POINTS, 255), slopes = filled(POINTS * 16),
        outcome = filled(POINTS * 4);
    if (!fixed || !step)
        LAUNCH(queue, "normals", POINTS, MEM(height), INT(WIDTH), INT(POINTS - 1), MEM(slopes));
    for (int i = 0; i < 6; i++)
        LAUNCH(queue, "light", POINTS, MEM(slopes), INT4(step, i * 40 - step, 99, 0), MEM(outcome));
    drain(queue);
}

/* Magnets that cool down: what a sweep needs goes into a buffer first, or is an argument. */
static void y_magnets(int step)
{
    enum { SPINS = 64 << 10, SWEEPS = 60 };
    static cl_mem settings;
    if (!step)
        outcome = drawn_buffer(SPINS, 1), settings = filled(sizeof(cl_int4));
    for (int i = 0; i < SWEEPS; i++) {
        const cl_int4 now = {{step * 977 + i * 131, 3000 - 40 * i, i, 0}};
        if (fixed) {
            LAUNCH(queue, "spins_of", SPINS, MEM(outcome), INT(SPINS - 1), {sizeof now, &now});
        } else {
            put(settings, 0, &now, sizeof now, true);
            LAUNCH(queue, "spins", SPINS, MEM(outcome), INT(SPINS - 1), MEM(settings));
        }
    }
    drain(queue);
}

/* A signal's echoes, all in one group. */
static void y_echoes(int step)
{
    enum { SAMPLES = 48 << 10 };
    static cl_mem signal;
    const size_t lags = 1024, few = 64;
    if (!step)
        signal = drawn_buffer(SAMPLES + lags, 0xff), outcome = filled(lags * 4);
    put(signal, 0, &step, sizeof step, true);
    RANGE(queue, "echoes", 1, &lags, fixed ? &few : &lags, MEM(signal), INT(SAMPLES), MEM(outcome));
    drain(queue);
}

/* The tones of a picture, by a kernel for each change of a pixel. */
static void y_tones(int step)
{
    enum { PIXELS = 8 << 20 };
    int by = 250 + step % 20;
    if (!step)
        outcome = drawn_buffer(PIXELS, 4095);
    if (fixed) {
        LAUNCH(queue, "tone", PIXELS, MEM(outcome), INT(by));
    } else {
        LAUNCH(queue, "expose", PIXELS, MEM(outcome), INT(by));
        LAUNCH(queue, "bend", PIXELS, MEM(outcome));
        LAUNCH(queue, "steepen", PIXELS, MEM(outcome));
        LAUNCH(queue, "bound", PIXELS, MEM(outcome));
    }
    drain(queue);
}

/* ---- programs without a fault ---- */

/* A gas of particles that move and collide on a grid; one of its cells is looked at. */
static void y_gas(int step)
{
    enum { WIDTH = 2048, CELLS = WIDTH * 1024 };
    static cl_mem second;
    static unsigned char cell;
    if (!step)
        outcome = drawn_buffer(CELLS / 4, 0x0f0f0f), second = filled(CELLS);
    for (int i = 0; i < 8; i++)
        LAUNCH(queue, "gas", CELLS, MEM(i % 2 ? outcome : second), MEM(i % 2 ? second : outcome),
               INT(WIDTH), INT(CELLS - 1));
    get(outcome, CELLS / 2, &cell, sizeof cell);
}

/* Options are priced in a batch: what they are is new, what they are worth is read. */
static void y_options(int step)
{
    enum { OPTIONS = 4096 };
    static cl_mem options;
    static int *terms, *values;
    if (!step) {
        terms = drawn(OPTIONS * 4, 4095), values = host(OPTIONS * 4);
        options = filled(OPTIONS * 16), outcome = filled(OPTIONS * 4);
    }
    for (int i = 0; i < OPTIONS; i++)
        terms[4 * i] = (terms[4 * i] + i + step) & 4095;
    put(options, 0, terms, OPTIONS * 16, false);
    LAUNCH(queue, "american", OPTIONS, MEM(options), INT(64), MEM(outcome));
    get(outcome, 0, values, OPTIONS * 4);
}

/* Where the blocks of a picture were in the picture before. */
static void y_blocks(int step)
{
    enum { WIDTH = 640, HEIGHT = 384, REACH = 8 };
    static cl_mem pictures[2];
    static int *vectors;
    const size_t blocks[2] = {WIDTH / 8 - 2, HEIGHT / 8 - 2};
    if (!step) {
        pictures[0] = drawn_buffer(WIDTH * HEIGHT / 4, 0xffffff);
        pictures[1] = drawn_buffer(WIDTH * HEIGHT / 4, 0xffffff);
        outcome = filled(blocks[0] * blocks[1] * 4), vectors = host(blocks[0] * blocks[1] * 4);
    }
    RANGE(queue, "blocks", 2, blocks, NULL, MEM(pictures[step % 2]), MEM(pictures[!(step % 2)]),
          INT(WIDTH), INT(REACH), INT(step), MEM(outcome));
    get(outcome, 0, vectors, blocks[0] * blocks[1] * 4);
}

/* Two channels, filtered on two queues at once. */
static void y_channels(int step)
{
    enum { SAMPLES = 256 << 10, TAPS = 48 };
    static cl_mem channels[2], out[2];
    for (int i = 0; i < 2 && !step; i++)
        channels[i] = drawn_buffer(SAMPLES + TAPS, 0xfff), out[i] = outcome = filled(SAMPLES * 4);
    for (int i = 0; i < 2; i++) {
        LAUNCH(i ? other : queue, "filter", SAMPLES, MEM(channels[i]), INT(TAPS), INT(step),
               MEM(out[i]));
        clFlush(i ? other : queue);
    }
    drain(queue);
    drain(other);
}

/* The corners of a mesh are turned; some are looked at where they are. */
static void y_mesh(int step)
{
    enum { POINTS = 128 << 10 };
    static cl_mem points;
    static int highest;
    cl_int error;
    if (!step)
        points = drawn_buffer(POINTS * 4, 0xffff), outcome = filled(POINTS * 16);
    LAUNCH(queue, "turn", POINTS, MEM(points), INT4(250, 240 + step, 255, 256),
           INT4(40, 30, step, 0), INT(40), MEM(outcome));
    int *seen = clEnqueueMapBuffer(queue, outcome, CL_TRUE, CL_MAP_READ, 0, POINTS * 16, 0, NULL,
                                   NULL, &error);
    must(error, "clEnqueueMapBuffer");
    for (int i = 0; i < POINTS * 4; i += 1024)
        highest = seen[i] > highest ? seen[i] : highest;
    must(clEnqueueUnmapMemObject(queue, outcome, seen, 0, NULL, NULL), "unmap");
    drain(queue);
}

#define ONE(name, steps) ((struct program){#name, name, steps})
const struct program programs_y[] = {
    ONE(y_reads, 650),    ONE(y_zeros, 1200),    ONE(y_rate, 600),    ONE(y_boxes, 400),
    ONE(y_sums, 50),      ONE(y_fields, 250),    ONE(y_ticks, 1200),  ONE(y_rows, 450),
    ONE(y_camera, 250),   ONE(y_runs, 600),      ONE(y_dither, 500),  ONE(y_bands, 280),
    ONE(y_film, 300),     ONE(y_triangles, 900), ONE(y_stars, 120),   ONE(y_bags, 350),
    ONE(y_plate, 450),    ONE(y_slopes, 700),    ONE(y_magnets, 220), ONE(y_echoes, 450),
    ONE(y_tones, 550),    ONE(y_gas, 90),        ONE(y_options, 750), ONE(y_blocks, 250),
    ONE(y_channels, 900), ONE(y_mesh, 250),      {NULL, NULL, 0},
};
