/* Set q of opencl_faults: further computations, several kernels long (opencl_faults_q_kernels.c).
 * Written and labelled without a look at the rules; scored once, tuned on since. Both forms of a
 * pair end with the same bytes in `outcome`, whose hash is printed. */
#include <stdlib.h>
#include <time.h>

#include "bench/opencl_faults.h"

#define SPAN(queue, name, width, height, ...)                                                      \
    launch_range(queue, name, 2, (const size_t[]){width, height}, NULL,                            \
                 (const struct argument[]){__VA_ARGS__, {0, NULL}}, NULL, NULL)

static void settle(cl_command_queue on)
{
    must(clFinish(on), "clFinish");
}

/* Numbers below a power of two, that any run has alike. */
static int *dealt(size_t count, int mask)
{
    static unsigned state = 11;
    int *values = host(count * 4);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (int)(state >> 8) & mask;
    }
    return values;
}

static cl_mem dealt_buffer(size_t count, int mask)
{
    int *values = dealt(count, mask);
    cl_mem memory = make_buffer(context, count * 4, values);
    free(values);
    return memory;
}

/* A part of the market's options is priced in each step. Whenever a quote of the feed is late, all
 * contracts go to the device once more, though they are as they were. */
static void q_options(int step)
{
    enum { CONTRACTS = 1 << 20, PART = 64 << 10, SHARES = 4096, ACCOUNTS = 512 };
    static cl_mem contracts, spots, price;
    static int *terms, worth[ACCOUNTS];
    if (!step) {
        terms = dealt(CONTRACTS * 4, 0xffffff);
        contracts = make_buffer(context, CONTRACTS * 16, terms);
        spots = dealt_buffer(SHARES, 0xffff), price = filled(PART * 4);
        outcome = filled(ACCOUNTS * 4);
    }
    if (!fixed && step % 5 < 3)
        put(contracts, 0, terms, CONTRACTS * 16, false);
    LAUNCH(queue, "feed_quotes", SHARES, MEM(spots), INT(step));
    LAUNCH(queue, "binomial", PART, MEM(contracts), INT(step % 8 * PART), MEM(spots),
           INT(SHARES - 1), MEM(price));
    LAUNCH(queue, "accounts", ACCOUNTS, MEM(price), INT(PART / ACCOUNTS), MEM(outcome));
    get(outcome, 0, worth, sizeof worth);
}

/* A camera's pictures get all shades: the host maps each picture and looks its pixels up in the
 * curve, or a kernel does. */
static void q_equalise(int step)
{
    enum { WIDTH = 2048, HEIGHT = 1024, PIXELS = WIDTH * HEIGHT, BLOCKS = 128 };
    static cl_mem picture, parts, curve;
    static unsigned char shades[256];
    if (!step) {
        picture = filled(PIXELS), parts = filled(BLOCKS * 1024), curve = filled(256);
        outcome = filled(PIXELS);
    }
    SPAN(queue, "camera", WIDTH, HEIGHT, MEM(picture), INT(WIDTH), INT(step));
    LAUNCH(queue, "bins", BLOCKS, MEM(picture), INT(PIXELS / BLOCKS), MEM(parts));
    LAUNCH(queue, "levels", 1, MEM(parts), INT(BLOCKS), INT(PIXELS), MEM(curve));
    if (fixed) {
        LAUNCH(queue, "spread", PIXELS, MEM(picture), MEM(curve));
    } else {
        cl_int error;
        get(curve, 0, shades, sizeof shades);
        unsigned char *pixel = clEnqueueMapBuffer(
            queue, picture, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, PIXELS, 0, NULL, NULL, &error);
        must(error, "clEnqueueMapBuffer");
        for (int i = 0; i < PIXELS; i++)
            pixel[i] = shades[pixel[i]];
        must(clEnqueueUnmapMemObject(queue, picture, pixel, 0, NULL, NULL), "unmap");
    }
    SPAN(queue, "sharpen", WIDTH - 2, HEIGHT - 2, MEM(picture), INT(WIDTH), MEM(outcome));
    settle(queue);
}

/* Pairs of sequences are aligned by antidiagonals: a launch for each pair's, or one for all. */
static void q_align(int step)
{
    enum { PAIRS = 10, LENGTH = 512, ROWS = PAIRS * 4 * (LENGTH + 1) };
    static cl_mem pairs, rows;
    const int zero = 0, each = fixed ? PAIRS : 1;
    if (!step)
        pairs = filled(PAIRS * 2 * LENGTH), rows = filled(ROWS * 4), outcome = filled(PAIRS * 4);
    LAUNCH(queue, "letters", PAIRS * 2 * LENGTH, MEM(pairs), INT(step));
    must(clEnqueueFillBuffer(queue, rows, &zero, 4, 0, ROWS * 4, 0, NULL, NULL), "fill");
    for (int d = 0; d < 240; d++)
        for (int pair = 0; pair < PAIRS; pair += each)
            SPAN(queue, "antidiagonal", LENGTH, (size_t)each, MEM(pairs), INT(pair), INT(LENGTH),
                 INT(d), MEM(rows));
    LAUNCH(queue, "best_score", PAIRS, MEM(rows), INT(LENGTH), MEM(outcome));
    settle(queue);
}

/* A sparse system is relaxed; the host reads after each sweep, or each eighth, whether it may end.
 */
static void q_solver(int step)
{
    enum { UNKNOWNS = 8 << 10, SWEEPS = 64, PARTS = 256 };
    static cl_mem columns, right, x, y, parts, residual;
    const int often = fixed ? 16 : 1;
    int left = 1;
    if (!step) {
        columns = dealt_buffer(UNKNOWNS * 12, 511), right = filled(UNKNOWNS * 4);
        outcome = x = dealt_buffer(UNKNOWNS, 0xfff), y = filled(UNKNOWNS * 4);
        parts = filled(PARTS * 4), residual = filled(4);
    }
    LAUNCH(queue, "forces_at", UNKNOWNS, MEM(right), INT(step));
    for (int i = 1; i <= SWEEPS && left; i++) {
        LAUNCH(queue, "relax", UNKNOWNS, MEM(columns), MEM(right), MEM(i % 2 ? x : y),
               INT(UNKNOWNS - 1), MEM(i % 2 ? y : x));
        if (i % often)
            continue;
        LAUNCH(queue, "residues", PARTS, MEM(x), MEM(y), INT(UNKNOWNS / PARTS), MEM(parts));
        LAUNCH(queue, "residual_of", 1, MEM(parts), INT(PARTS), MEM(residual));
        get(residual, 0, &left, sizeof left);
    }
}

/* Resonators part a sound into bands, in two queues; each waits for the event of the one before,
 * though only what mixes them needs it. */
static void q_resonators(int step)
{
    enum { BANDS = 6, COUNT = 96 << 10, SLOW = COUNT / 64 };
    static cl_mem sound, bands[BANDS], slow[BANDS], all;
    static int *samples;
    cl_event before = NULL;
    if (!step) {
        samples = dealt(COUNT, 0xffff), sound = filled(COUNT * 4);
        all = filled(BANDS * SLOW * 4), outcome = filled(SLOW * 4);
    }
    for (int i = 0; i < COUNT; i += 100)
        samples[i] = (i + step * 77) & 0xffff;
    put(sound, 0, samples, COUNT * 4, true);
    for (int i = 0; i < BANDS; i++) {
        cl_command_queue on = i % 2 ? other : queue;
        if (!step)
            bands[i] = filled(COUNT * 4), slow[i] = filled(SLOW * 4);
        const struct argument tuned[] = {
            MEM(sound), INT(COUNT), INT(900 + i * 150), MEM(bands[i]), {0, NULL}};
        const struct argument followed[] = {MEM(bands[i]), INT(COUNT), MEM(slow[i]), {0, NULL}};
        launch(on, "resonator", 1, tuned, fixed ? NULL : before ? &before : NULL, NULL);
        if (before)
            clReleaseEvent(before);
        launch(on, "envelope", 1, followed, NULL, &before);
        clFlush(on);
    }
    must(clWaitForEvents(1, &before), "clWaitForEvents");
    clReleaseEvent(before);
    for (size_t i = 0; i < BANDS; i++)
        must(clEnqueueCopyBuffer(queue, slow[i], all, 0, i * SLOW * 4, SLOW * 4, 0, NULL, NULL),
             "clEnqueueCopyBuffer");
    LAUNCH(queue, "mixed_bands", SLOW, MEM(all), INT(SLOW), INT(BANDS), MEM(outcome));
    settle(queue);
}

/* Particles follow three robots; each kernel's event is waited for, as a helper from the days of
 * debugging does. */
static void tracked(const char *name, size_t items, const struct argument *arguments)
{
    cl_event event;
    launch(queue, name, items, arguments, NULL, &event);
    if (!fixed)
        must(clWaitForEvents(1, &event), name);
    clReleaseEvent(event);
}

#define TRACKED(name, items, ...)                                                                  \
    tracked(name, items, (const struct argument[]){__VA_ARGS__, {0, NULL}})

static void q_particles(int step)
{
    enum { ROBOTS = 6, COUNT = 4 << 10, PARTS = 128 };
    static cl_mem now[ROBOTS], next, weights, sums;
    if (!step)
        next = filled(COUNT * 8), weights = filled(COUNT * 4), sums = filled(PARTS * 4 + 4);
    for (int i = 0; i < ROBOTS; i++) {
        const int x = (step * 300 + i * 999) & 0xffff, y = step * 200 & 0xffff;
        if (!step)
            now[i] = dealt_buffer(COUNT * 2, 0xffff);
        for (int look = 0; look < 4; look++) {
            cl_mem from = look % 2 ? next : now[i], to = look % 2 ? now[i] : next;
            TRACKED("predicted", COUNT, MEM(from), INT(step * 4 + look));
            TRACKED("weighed", COUNT, MEM(from), INT(x), INT(y), MEM(weights));
            TRACKED("weight_sums", PARTS, MEM(weights), INT(COUNT / PARTS), MEM(sums));
            TRACKED("sums_before", 1, MEM(sums), INT(PARTS));
            TRACKED("resampled", COUNT, MEM(from), MEM(sums), INT(PARTS), INT(COUNT / PARTS),
                    MEM(to));
        }
        outcome = now[i];
    }
    settle(queue);
}

#define ONE(name, steps) ((struct program){#name, name, steps})
const struct program programs_q[] = {
    ONE(q_options, 150),    ONE(q_equalise, 300),  ONE(q_align, 100), ONE(q_solver, 100),
    ONE(q_resonators, 250), ONE(q_particles, 150), {NULL, NULL, 0},
};
