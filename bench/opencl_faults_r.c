/* Set r of opencl_faults: other computations again, several kernels long
 * (opencl_faults_r_kernels.c) and of sizes that change. Written and labelled without a look at the
 * rules; scored once, tuned on since. As in sets z and y, both forms of a pair end with the same
 * bytes in `outcome`, whose hash is printed. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/opencl_faults.h"

/* A telescope looks for pulsars: how late each channel is for each distance goes with each block of
 * samples. */
static void r_pulsar(int step)
{
    enum { CHANNELS = 1024, LENGTH = 1024, TRIALS = 4096 };
    static cl_mem samples, delays, sums;
    static unsigned char *sky;
    static int *late, best[64];
    const size_t trials = 1024 + (size_t)(step % 3) * 256;
    if (!step) {
        sky = (unsigned char *)drawn(CHANNELS * LENGTH / 4, 0xffffff);
        late = drawn(CHANNELS * TRIALS, 0x1ff);
        samples = filled(CHANNELS * LENGTH);
        delays = make_buffer(context, 4 * CHANNELS * TRIALS, late);
        sums = filled(TRIALS * 16), outcome = filled(TRIALS * 4);
    }
    for (int i = 0; i < CHANNELS * LENGTH; i += 64)
        sky[i] = (unsigned char)(i / 64 * 13 + step);
    if (!fixed)
        put(delays, 0, late, (size_t)CHANNELS * TRIALS * 4, false);
    put(samples, 0, sky, CHANNELS * LENGTH, false);
    LAUNCH(queue, "dedisperse", trials, MEM(samples), INT(LENGTH), MEM(delays), INT(CHANNELS),
           INT(TRIALS), INT(step * 512 % 2560), MEM(sums));
    LAUNCH(queue, "pulses", trials, MEM(sums), INT(CHANNELS * 100), MEM(outcome));
    get(outcome, 0, best, sizeof best);
}

/* Particles in a magnet, by a function that makes its buffers from the host's memory in each call.
 */
static void r_magnet(int step)
{
    enum { CELLS = 256 << 10, PARTICLES = 8 << 10 };
    static cl_mem particles, kept;
    static int *map;
    if (!step) {
        map = drawn(CELLS * 4, 1023), kept = make_buffer(context, CELLS * 16, map);
        particles = drawn_buffer(PARTICLES * 4, 0xffffff), outcome = filled(1024);
    }
    for (int leg = 0; leg < 2; leg++) {
        cl_mem field = fixed ? kept : make_buffer(context, CELLS * 16, map);
        LAUNCH(queue, "tracks", PARTICLES, MEM(particles), MEM(field), INT(CELLS - 1),
               INT(leg ? 24 : 16 + step % 16));
        LAUNCH(queue, "absorbed", 256, MEM(particles), INT(PARTICLES / 256), MEM(outcome));
        drain(queue);
        if (!fixed)
            clReleaseMemObject(field);
    }
}

/* Gestures are compared with those known; how long one is says how large the tables are. */
static void r_warping(int step)
{
    enum { KNOWN = 512, LONGEST = 112 };
    static cl_mem templates, gesture, kept;
    static int *motion;
    const int length = LONGEST - step % 4 * 4;
    const size_t bytes = (size_t)(length * length * KNOWN) * 8;
    if (!step) {
        templates = drawn_buffer(KNOWN * LONGEST, 255), gesture = filled(LONGEST * 4);
        motion = drawn(LONGEST, 255), outcome = filled(KNOWN * 4), kept = filled(bytes);
    }
    motion[step % LONGEST] = step & 255;
    put(gesture, 0, motion, LONGEST * 4, false);
    cl_mem cost = fixed ? kept : buffer(bytes);
    LAUNCH(queue, "warp", KNOWN, MEM(templates), MEM(gesture), INT(length), MEM(cost));
    LAUNCH(queue, "way_back", KNOWN, MEM(cost), INT(length), MEM(outcome));
    drain(queue);
    if (!fixed)
        clReleaseMemObject(cost);
}

/* The parts of a picture that hang together; after each round, or each eighth, the host asks
 * whether something changed. */
static void r_components(int step)
{
    enum { WIDTH = 128, PIXELS = WIDTH * 96 };
    static cl_mem kind, label, changed;
    const int rounds = fixed ? 8 : 1;
    if (!step) {
        kind = filled(PIXELS), label = filled(PIXELS * 4), changed = filled(4);
        outcome = filled(PIXELS * 4);
    }
    LAUNCH(queue, "classes", PIXELS, MEM(kind), MEM(label), INT(WIDTH), INT(step));
    for (int more = 1; more;) {
        const int none = 0;
        put(changed, 0, &none, sizeof none, false);
        for (int i = 0; i < rounds; i++)
            LAUNCH(queue, "component", PIXELS, MEM(kind), INT(WIDTH), INT(PIXELS - 1), MEM(label),
                   MEM(changed));
        get(changed, 0, &more, sizeof more);
    }
    LAUNCH(queue, "areas", PIXELS, MEM(label), MEM(outcome));
    drain(queue);
}

/* Points of a cloud that are far from each other: each is the farthest from those before. The host
 * looks which it is to say so to the next launch. */
static void r_cloud(int step)
{
    enum { POINTS = 16 << 10, PARTS = 256, PICKS = 64 };
    static cl_mem points, far, parts, chosen;
    int which = step * 37 % POINTS;
    cl_int error;
    if (!step) {
        points = drawn_buffer(POINTS * 4, 0x3fff), far = filled(POINTS * 4);
        parts = filled(PARTS * 8), chosen = filled(4), outcome = filled(PICKS * 4);
    }
    for (int i = 0; i < PICKS; i++) {
        LAUNCH(queue, "apart", PARTS, MEM(points), INT(POINTS / PARTS), INT(which), MEM(chosen),
               INT(!i), MEM(far), MEM(parts));
        LAUNCH(queue, "pick", 1, MEM(parts), INT(PARTS), INT(i), MEM(chosen), MEM(outcome));
        which = -1;
        if (!fixed) {
            int *seen = clEnqueueMapBuffer(queue, chosen, CL_TRUE, CL_MAP_READ, 0, 4, 0, NULL, NULL,
                                           &error);
            must(error, "clEnqueueMapBuffer"), which = *seen;
            must(clEnqueueUnmapMemObject(queue, chosen, seen, 0, NULL, NULL), "unmap");
        }
    }
    drain(queue);
}

/* The part of a slide that a microscope has seen again, sent row by row or as what it is. */
static void r_slide(int step)
{
    enum { WIDTH = 2048, HEIGHT = 1024, COLUMNS = 320 };
    static cl_mem slide, eroded;
    static unsigned char *seen;
    const size_t rows = 480 + (size_t)(step % 4) * 48, corner = (size_t)(step * 40 % 384);
    const size_t area[2] = {COLUMNS - 8, rows - 8};
    const size_t origin[3] = {corner, corner, 0}, region[3] = {COLUMNS, rows, 1};
    const size_t at = corner * WIDTH + corner;
    if (!step) {
        seen = (unsigned char *)drawn(WIDTH * HEIGHT / 4, 0xffffff);
        slide = make_buffer(context, WIDTH * HEIGHT, seen), eroded = filled(WIDTH * HEIGHT);
        outcome = filled(HEIGHT * 4);
    }
    for (size_t i = 0; i < rows; i++)
        seen[at + i * WIDTH + i % COLUMNS] = (unsigned char)step;
    for (size_t i = 0; i < rows && !fixed; i++)
        put(slide, at + i * WIDTH, seen + at + i * WIDTH, COLUMNS, false);
    if (fixed)
        must(clEnqueueWriteBufferRect(queue, slide, CL_FALSE, origin, origin, region, WIDTH, 0,
                                      WIDTH, 0, seen, 0, NULL, NULL),
             "clEnqueueWriteBufferRect");
    RANGE(queue, "erode", 2, area, NULL, MEM(slide), INT(WIDTH), INT((int)at), INT(4), MEM(eroded));
    RANGE(queue, "erode", 2, area, NULL, MEM(eroded), INT(WIDTH), INT((int)at), INT(2), MEM(slide));
    LAUNCH(queue, "stains", rows - 8, MEM(slide), INT(WIDTH), INT((int)at), INT(COLUMNS - 8),
           MEM(outcome));
    drain(queue);
}

/* What a detector saw is unpacked, sent, filtered and read, slice by slice. */
static void unpack(const unsigned char *packed, int count, int step, int *values)
{
    for (int i = 0, value = step; i < count; i++) {
        value += (packed[i] & 1 ? -packed[i] : packed[i]) / 2;
        values[i] = value = value < 0 ? 0 : value > 4095 ? 4095 : value;
    }
}

static void r_slices(int step)
{
    enum { SLICES = 5, ROWS = 16, COUNT = ROWS << 13 };
    static cl_mem in[2], out[SLICES];
    static int *staging[2], *result[SLICES];
    static unsigned char *packed;
    const size_t rows = ROWS, group = ROWS;
    if (!step)
        packed = (unsigned char *)drawn(COUNT / 2, 0xffffff);
    for (int i = 0; i < SLICES && !step; i++) {
        in[i % 2] = filled(COUNT * 4), staging[i % 2] = host(COUNT * 4);
        outcome = out[i] = filled(COUNT * 4), result[i] = host(COUNT * 4);
    }
    cl_event done[2] = {NULL, NULL};
    for (int i = 0; i < SLICES; i++) {
        if (done[i % 2])
            must(clWaitForEvents(1, &done[i % 2]), "wait"), clReleaseEvent(done[i % 2]);
        unpack(packed + i * 30, COUNT, step + i, staging[i % 2]);
        must(clEnqueueWriteBuffer(queue, in[i % 2], !fixed, 0, COUNT * 4, staging[i % 2], 0, NULL,
                                  &done[i % 2]),
             "clEnqueueWriteBuffer");
        RANGE(queue, "recursion", 1, &rows, &group, MEM(in[i % 2]), INT(COUNT / ROWS), INT(2),
              MEM(out[i]));
        must(clEnqueueReadBuffer(queue, out[i], !fixed, 0, COUNT * 4, result[i], 0, NULL, NULL),
             "clEnqueueReadBuffer");
        clFlush(queue);
    }
    for (int i = 0; i < 2; i++)
        clReleaseEvent(done[i]);
    drain(queue);
}

/* Lorenz's weather, many times: after each day some of it goes to a plotter, on a line that is
 * slow, before the next day is begun or while it is computed. */
static void plot(const cl_int4 *lines, int count)
{
    static char text[64];
    const struct timespec line = {0, count * 1500};
    for (int i = 0; i < count; i += 16)
        snprintf(text, sizeof text, "%d,%d,%d\n", lines[i].s[0], lines[i].s[1], lines[i].s[2]);
    nanosleep(&line, NULL);
}

static void r_weather(int step)
{
    enum { SYSTEMS = 8 << 10, SEEN = 1024, DAYS = 4 };
    static cl_mem seen;
    static cl_int4 lines[SEEN];
    if (!step)
        outcome = drawn_buffer(SYSTEMS * 4, 0xfff), seen = filled(SEEN * 16);
    for (int day = 0; day < DAYS; day++) {
        if (!fixed && (day || step))
            plot(lines, SEEN);
        LAUNCH(queue, "lorenz", SYSTEMS, MEM(outcome), INT(90 + step % 4 * 20));
        LAUNCH(queue, "sample", SEEN, MEM(outcome), INT(SYSTEMS / SEEN), MEM(seen));
        clFlush(queue);
        if (fixed && (day || step))
            plot(lines, SEEN);
        get(seen, 0, lines, sizeof lines);
    }
}

/* Four stations that listen for earthquakes, sample after sample; all wait in one queue. */
static void r_stations(int step)
{
    enum { STATIONS = 4, LONGEST = 256 << 10 };
    static cl_mem raw[STATIONS], plain[STATIONS], alarms[STATIONS];
    for (int i = 0; i < STATIONS; i++) {
        cl_command_queue on = fixed && i % 2 ? other : queue;
        const int count = LONGEST - (step + i / 2) % 3 * (32 << 10);
        if (!step) {
            raw[i] = drawn_buffer(LONGEST, 0xfff), plain[i] = filled(LONGEST * 4);
            outcome = alarms[i] = filled(4);
        }
        LAUNCH(on, "detrend", 1, MEM(raw[i]), INT(count), MEM(plain[i]));
        LAUNCH(on, "band", 1, MEM(plain[i]), INT(count), INT(20 + step % 40));
        LAUNCH(on, "trigger", 1, MEM(plain[i]), INT(count), MEM(alarms[i]));
        clFlush(on);
    }
    drain(other);
    drain(queue);
}

/* Keys of four columns, each shorter than the one before, are sorted by their digits; the host
 * waits for each kernel. */
static void sort_pass(cl_mem from, cl_mem to, cl_mem counts, int count, int shift)
{
    enum { BLOCKS = 64 };
    LAUNCH(queue, "digits", BLOCKS, MEM(from), INT(count / BLOCKS), INT(shift), MEM(counts));
    if (!fixed)
        drain(queue);
    LAUNCH(queue, "offsets", 1, MEM(counts), INT(BLOCKS * 16));
    if (!fixed)
        drain(queue);
    LAUNCH(queue, "place_keys", BLOCKS, MEM(from), INT(count / BLOCKS), INT(shift), MEM(counts),
           MEM(to));
    if (!fixed)
        drain(queue);
}

static void r_digits(int step)
{
    enum { COLUMNS = 4, MOST = 96 << 10 };
    static cl_mem columns[COLUMNS], second, counts;
    if (!step)
        second = filled(MOST * 4), counts = filled(64 * 64);
    for (int i = 0; i < COLUMNS; i++) {
        if (!step)
            outcome = columns[i] = drawn_buffer(MOST, 0xffffff);
        LAUNCH(queue, "stirred", MOST, MEM(columns[i]), INT(step));
        for (int shift = 0; shift < 24; shift += 4)
            sort_pass(shift / 4 % 2 ? second : columns[i], shift / 4 % 2 ? columns[i] : second,
                      counts, MOST >> i, shift);
    }
    drain(queue);
}

/* Outlines of cells, some long and some short: a launch for each, or one for all. */
static void r_outlines(int step)
{
    enum { OUTLINES = 640, POINTS = 1 << 20 };
    static cl_mem points, starts, parts;
    const size_t items[2] = {32, fixed ? OUTLINES : 1};
    if (!step) {
        int *at = host((OUTLINES + 1) * 4);
        for (int i = at[0] = 0; i < OUTLINES; i++)
            at[i + 1] = at[i] + 400 + i * 7919 % 2000;
        starts = make_buffer(context, (OUTLINES + 1) * 4, at), free(at);
        points = drawn_buffer(POINTS * 2, 255), parts = filled(OUTLINES * 32 * 16);
        outcome = filled(OUTLINES * 16);
    }
    LAUNCH(queue, "swung", POINTS, MEM(points), INT(step % 8 + 1));
    for (int i = 0; i < (fixed ? 1 : OUTLINES); i++)
        RANGE(queue, "moments", 2, items, NULL, MEM(points), MEM(starts), INT(i), MEM(parts));
    LAUNCH(queue, "shapes", OUTLINES, MEM(parts), INT(32), INT(step), MEM(outcome));
    drain(queue);
}

/* How green a field is, from two colours of a satellite. */
static void r_leaves(int step)
{
    enum { PIXELS = 4 << 20 };
    static cl_mem red, near, less, plus;
    const int gain = 16 + step % 8;
    if (!step) {
        red = drawn_buffer(PIXELS, 255), near = drawn_buffer(PIXELS, 255);
        less = filled(PIXELS * 4), plus = filled(PIXELS * 4), outcome = filled(PIXELS * 4);
    }
    if (fixed) {
        LAUNCH(queue, "leaf_index", PIXELS, MEM(near), MEM(red), INT(gain), INT(step % 50),
               MEM(outcome));
    } else {
        LAUNCH(queue, "leaf_less", PIXELS, MEM(near), MEM(red), MEM(less));
        LAUNCH(queue, "leaf_plus", PIXELS, MEM(near), MEM(red), MEM(plus));
        LAUNCH(queue, "leaf_ratio", PIXELS, MEM(less), MEM(plus));
        LAUNCH(queue, "leaf_scaled", PIXELS, MEM(less), INT(gain));
        LAUNCH(queue, "leaf_kept", PIXELS, MEM(less), INT(step % 50), MEM(outcome));
    }
    drain(queue);
}

/* Two masks smooth a track, by turns of three; one program is remembered, or one for each. */
static const char mask_source[] =
    "kernel void smoothed(global const int *in, global int *out) {\n"
    "  int i = get_global_id(0), sum = 0;\n"
    "  for (int k = -HALF; k <= HALF; k++) sum += in[i + 16 + k] * (HALF + 1 - abs(k));\n"
    "  out[i] = out[i] / 2 + sum / ((HALF + 1) * (HALF + 1)); }\n";

static cl_kernel mask_of(int half)
{
    static struct {
        int half;
        cl_kernel kernel;
    } known[2];
    const int at = fixed ? half % 2 : 0;
    if (known[at].half != half) {
        const char *text = mask_source;
        char options[32];
        cl_int error;
        cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
        must(error, "clCreateProgramWithSource");
        snprintf(options, sizeof options, "-DHALF=%d", half);
        must(clBuildProgram(program, 0, NULL, options, NULL, NULL), "clBuildProgram");
        if (known[at].kernel)
            clReleaseKernel(known[at].kernel);
        known[at].half = half, known[at].kernel = make_kernel(program, "smoothed");
        clReleaseProgram(program);
    }
    return known[at].kernel;
}

static void r_masks(int step)
{
    enum { POINTS = 1 << 20, AXES = 3 };
    static cl_mem track[AXES], smooth[AXES];
    const size_t items = POINTS;
    cl_kernel kernel = mask_of(step / 3 % 2 ? 9 : 14);
    for (int i = 0; i < AXES; i++) {
        if (!step) {
            track[i] = drawn_buffer(POINTS + 32, 0xfff);
            outcome = smooth[i] = filled(POINTS * 4);
        }
        must(clSetKernelArg(kernel, 0, sizeof track[i], &track[i]), "clSetKernelArg");
        must(clSetKernelArg(kernel, 1, sizeof smooth[i], &smooth[i]), "clSetKernelArg");
        must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL),
             "smoothed");
    }
    drain(queue);
}

/* Strokes of a brush: what the canvas was before each can be had back, of all or of the last four.
 */
static void r_strokes(int step)
{
    enum { PIXELS = 1 << 20 };
    static cl_mem before[4];
    if (!step)
        outcome = drawn_buffer(PIXELS, 0xfffff);
    if (!fixed || step < 4)
        before[step % 4] = buffer(PIXELS * 4);
    must(clEnqueueCopyBuffer(queue, outcome, before[step % 4], 0, 0, PIXELS * 4, 0, NULL, NULL),
         "clEnqueueCopyBuffer");
    LAUNCH(queue, "stroke", PIXELS, MEM(outcome), INT4(step * 5, 40 + step % 99, 0, 0),
           INT(2 + step % 3));
    drain(queue);
}

/* A picture is transformed along its rows and then its columns; the host turns it in between. */
static void r_cosines(int step)
{
    enum { WIDTH = 1040, MOST = WIDTH * 1040 };
    static cl_mem picture, a, b;
    static int *plain, *turned;
    const int height = step % 2 ? 1040 : 784, pixels = WIDTH * height;
    const size_t tiles[2] = {WIDTH / 16, (size_t)height / 16};
    if (!step) {
        picture = drawn_buffer(MOST, 255), a = filled(MOST * 4);
        b = filled(MOST * 4), outcome = filled(MOST * 4);
        plain = host(MOST * 4), turned = host(MOST * 4);
    }
    LAUNCH(queue, "transform", (size_t)pixels / 4, MEM(picture), MEM(a));
    if (fixed) {
        RANGE(queue, "turned", 2, tiles, NULL, MEM(a), INT(WIDTH), INT(height), MEM(b));
    } else {
        get(a, 0, plain, (size_t)pixels * 4);
        for (int y = 0; y < height; y++)
            for (int x = 0; x < WIDTH; x++)
                turned[x * height + y] = plain[y * WIDTH + x];
        put(b, 0, turned, (size_t)pixels * 4, true);
    }
    LAUNCH(queue, "transform", (size_t)pixels / 4, MEM(b), MEM(a));
    LAUNCH(queue, "quantise", (size_t)pixels, MEM(a), INT(3 + step % 5), MEM(outcome));
    drain(queue);
}

/* Depths become points; these are set to zero before each is written. */
static void r_depths(int step)
{
    enum { WIDE = 10, PIXELS = 1 << WIDE << 10 };
    static cl_mem depth, points;
    static unsigned short *seen;
    const int zero = 0;
    if (!step) {
        seen = (unsigned short *)drawn(PIXELS / 2, 0xffffff);
        depth = filled(PIXELS * 2), points = filled(PIXELS * 16), outcome = filled(512 * 16);
    }
    for (int i = 0; i < PIXELS; i += 100)
        seen[i] = (unsigned short)(i / 9 + step);
    put(depth, 0, seen, PIXELS * 2, false);
    if (!fixed)
        must(clEnqueueFillBuffer(queue, points, &zero, sizeof zero, 0, PIXELS * 16, 0, NULL, NULL),
             "clEnqueueFillBuffer");
    LAUNCH(queue, "unproject", PIXELS, MEM(depth), INT(WIDE), INT4(500 + step % 9, 380, 0, 0),
           MEM(points));
    LAUNCH(queue, "extents", 512, MEM(points), INT(PIXELS / 512), MEM(outcome));
    drain(queue);
}

/* How bright a picture is, found by one item, or by many and then by one. */
static void r_exposure(int step)
{
    enum { MOST = 2 << 20 };
    static cl_mem picture, level, sums, gain;
    const int count = MOST - step % 3 * (MOST / 8), parts = fixed ? 256 : 1;
    if (!step) {
        picture = drawn_buffer(MOST, 0xffffff), level = filled(MOST * 4);
        sums = filled(1024), gain = filled(4), outcome = filled(MOST * 4);
    }
    LAUNCH(queue, "luminance", (size_t)count, MEM(picture), INT(step), MEM(level));
    LAUNCH(queue, "darkness", (size_t)parts, MEM(level), INT(count / parts), MEM(sums));
    LAUNCH(queue, "gain_of", 1, MEM(sums), INT(parts), INT(count), MEM(gain));
    LAUNCH(queue, "exposure", (size_t)count, MEM(level), MEM(gain), MEM(outcome));
    drain(queue);
}

/* Where asteroids are on days of a year. Their number is a prime: no group but of one divides it.
 */
static void r_asteroids(int step)
{
    enum { ASTEROIDS = 65521, DAYS = 6 };
    static cl_mem orbits;
    if (!step)
        orbits = drawn_buffer(ASTEROIDS * 2, 0xffff), outcome = filled(ASTEROIDS * 4);
    for (int day = 0; day < DAYS; day++)
        LAUNCH(queue, "kepler", fixed ? 64 << 10 : ASTEROIDS, MEM(orbits), INT(ASTEROIDS),
               INT(step * DAYS + day), INT(4), MEM(outcome));
    drain(queue);
}

/* How often each level is in a picture: all items count in the same bins, or each in its own. */
static void r_tally(int step)
{
    enum { WIDTH = 512, PIXELS = WIDTH * 512, PARTS = 128 };
    static cl_mem levels, parts, bins;
    if (!step) {
        levels = drawn_buffer(PIXELS / 4, 0x3f3f3f), parts = filled(PARTS * 256);
        bins = drawn_buffer(64, 0), outcome = filled(PIXELS * 4);
    }
    if (fixed) {
        LAUNCH(queue, "tally_apart", PARTS, MEM(levels), INT(step), INT(PIXELS / PARTS),
               MEM(parts));
        LAUNCH(queue, "tally_merge", 64, MEM(parts), INT(PARTS), MEM(bins));
    } else {
        LAUNCH(queue, "tally", PIXELS, MEM(levels), INT(step), MEM(bins));
    }
    LAUNCH(queue, "equalise", PIXELS, MEM(levels), INT(WIDTH), INT(PIXELS - 1), MEM(bins),
           MEM(outcome));
    drain(queue);
}

/* ---- programs without a fault ---- */

/* A crystal grows: each state is made of the one before. */
static void r_crystal(int step)
{
    enum { WIDTH = 512, CELLS = WIDTH * 512 };
    static cl_mem second;
    if (!step)
        outcome = drawn_buffer(CELLS, 1023), second = filled(CELLS * 4);
    for (int i = 0; i < 6 + step % 3 * 2; i++)
        LAUNCH(queue, "crystal", CELLS, MEM(i % 2 ? outcome : second),
               MEM(i % 2 ? second : outcome), INT(WIDTH), INT(CELLS - 1), INT(step % 5 + i));
    drain(queue);
}

/* Drones get new wishes, winds and limits for each long flight; the first of them report. */
static void r_drones(int step)
{
    enum { DRONES = 16 << 10 };
    static cl_mem wishes, wind, limits;
    static int wish[1024], blows[128], limit[16], seen[64];
    if (!step) {
        wishes = filled(sizeof wish), wind = filled(sizeof blows), limits = filled(sizeof limit);
        outcome = drawn_buffer(DRONES * 4, 0xffff);
    }
    for (int i = 0; i < 1024; i++)
        wish[i] = (i * 977 + step * 131) & 0xffff, blows[i & 127] = (i ^ step) & 63;
    for (int i = 0; i < 16; i++)
        limit[i] = 200 + (step * 7 + i * 11) % 100;
    put(wishes, 0, wish, sizeof wish, false);
    put(wind, 0, blows, sizeof blows, false);
    put(limits, 0, limit, sizeof limit, false);
    LAUNCH(queue, "drones", DRONES, MEM(outcome), MEM(wishes), MEM(wind), MEM(limits), INT(300));
    get(outcome, 0, seen, sizeof seen);
}

/* A state is changed and looked at; if it became worse, a copy of what it was is taken back. */
static void r_annealing(int step)
{
    enum { NUMBERS = 512 << 10, BYTES = NUMBERS * 4 + 32, PARTS = 128 };
    static cl_mem before, parts;
    static int sums[PARTS];
    static long long best = 1LL << 60;
    if (!step)
        outcome = drawn_buffer(NUMBERS + 8, 0xfff), before = filled(BYTES),
        parts = filled(PARTS * 4);
    must(clEnqueueCopyBuffer(queue, outcome, before, 0, 0, BYTES, 0, NULL, NULL), "copy");
    for (int i = 0; i < 4; i++)
        LAUNCH(queue, "jostle", NUMBERS / 16, MEM(outcome), INT(i % 2 * 8), INT(step * 4 + i),
               INT(64));
    LAUNCH(queue, "tension", PARTS, MEM(outcome), INT(NUMBERS / PARTS), MEM(parts));
    get(parts, 0, sums, sizeof sums);
    long long sum = 0;
    for (int i = 0; i < PARTS; i++)
        sum += sums[i];
    if (sum > best + (1 << 16))
        must(clEnqueueCopyBuffer(queue, before, outcome, 0, 0, BYTES, 0, NULL, NULL), "copy");
    else
        best = sum;
}

/* The best way through a game: sweeps that are long, until none changes much. */
static void r_policy(int step)
{
    enum { STATES = 192 << 10, MASK = (64 << 10) - 1 };
    static cl_mem second, change;
    if (!step)
        outcome = filled(STATES * 4), second = filled(STATES * 4), change = filled(4);
    LAUNCH(queue, "rewards", STATES, MEM(outcome), INT(step));
    for (int more = 1; more;) {
        const int none = 0;
        put(change, 0, &none, sizeof none, false);
        for (int i = 0; i < 2; i++)
            LAUNCH(queue, "improve", STATES, MEM(i ? second : outcome), INT(MASK), INT(step),
                   MEM(i ? outcome : second), MEM(change));
        get(change, 0, &more, sizeof more);
    }
}

/* A sea on one queue, pictures of it on the other, each of which needs its sea. */
static void r_foam(int step)
{
    enum { POINTS = 64 << 10, FRAMES = 4, SEAS = FRAMES + 1 };
    static cl_mem seas[SEAS];
    for (int i = 0; i < SEAS && !step; i++)
        seas[i] = drawn_buffer(POINTS, 0xffff), outcome = filled(POINTS * 4);
    for (int i = 0; i < FRAMES; i++) {
        const cl_mem before = seas[(step * FRAMES + i) % SEAS];
        const cl_mem now = seas[(step * FRAMES + i + 1) % SEAS];
        cl_event ready;
        const struct argument sea[] = {
            MEM(now), MEM(before), INT(POINTS - 1), INT(24 + step % 8), {0, NULL}};
        const struct argument foam[] = {
            MEM(now), INT(POINTS - 1), INT(32), MEM(outcome), {0, NULL}};
        launch(queue, "sea", POINTS, sea, NULL, &ready);
        clFlush(queue);
        launch(other, "foam", POINTS, foam, &ready, NULL);
        clFlush(other);
        clReleaseEvent(ready);
    }
    drain(queue);
    drain(other);
}

#define ONE(name, steps) ((struct program){#name, name, steps})
const struct program programs_r[] = {
    ONE(r_pulsar, 200),   ONE(r_magnet, 250),    ONE(r_warping, 24),   ONE(r_components, 150),
    ONE(r_cloud, 300),    ONE(r_slide, 300),     ONE(r_slices, 250),   ONE(r_weather, 80),
    ONE(r_stations, 250), ONE(r_digits, 180),    ONE(r_outlines, 300), ONE(r_leaves, 120),
    ONE(r_masks, 60),     ONE(r_strokes, 240),   ONE(r_cosines, 350),  ONE(r_depths, 400),
    ONE(r_exposure, 250), ONE(r_asteroids, 350), ONE(r_tally, 250),    ONE(r_crystal, 150),
    ONE(r_drones, 120),   ONE(r_annealing, 160), ONE(r_policy, 100),   ONE(r_foam, 100),
    {NULL, NULL, 0},
};
