/* Set q of opencl_faults: further computations, several kernels long (opencl_faults_q_kernels.c).
 * Written and labelled without a look at the rules; scored once, tuned on since. Both forms of a
 * pair end with the same bytes in `outcome`, whose hash is printed. */
#include <stdlib.h>
#include <time.h>

#include "bench/opencl_faults.h"

#define SPAN(queue, name, width, height, ...)                                                      \
    launch_range(queue, name, 2, (const size_t[]){width, height}, NULL,                            \
                 (const struct argument[]){__VA_ARGS__, {0, NULL}}, NULL, NULL)

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
    enum { CONTRACTS = 1 << 20, PART = 40 << 10, SHARES = 4096, ACCOUNTS = 512 };
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
    drain(queue);
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
    drain(queue);
}

/* A sparse system is relaxed; the host reads after each sweep, or each eighth, whether it may end.
 */
static void q_solver(int step)
{
    enum { UNKNOWNS = 4 << 10, SWEEPS = 64, PARTS = 256 };
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
    enum { BANDS = 6, COUNT = 192 << 10, SLOW = COUNT / 64 };
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
    drain(queue);
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
    enum { ROBOTS = 3, COUNT = 24 << 10, PARTS = 128 };
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
    drain(queue);
}

/* A picture as wavelets, level by level: what a level has made is copied to where the next one
 * reads, though it could read it where it is. */
static void q_wavelets(int step)
{
    enum { WIDTH = 1024, HEIGHT = 768, PIXELS = WIDTH * HEIGHT, LEVELS = 4 };
    static cl_mem picture, a, b;
    static int *pixels;
    if (!step) {
        pixels = dealt(PIXELS, 255), picture = filled(PIXELS * 4), a = filled(PIXELS * 4);
        b = filled(PIXELS * 4), outcome = filled(PIXELS * 4);
    }
    for (int i = step % 7; i < PIXELS; i += 501)
        pixels[i] = step & 255;
    put(picture, 0, pixels, PIXELS * 4, true);
    for (int level = 0; level < LEVELS; level++) {
        const size_t width = WIDTH >> level, height = HEIGHT >> level;
        cl_mem from = level ? b : picture;
        SPAN(queue, "wave_rows", width / 2, height, MEM(from), INT(WIDTH), MEM(a));
        if (!fixed) {
            LAUNCH(queue, "wave_kept", PIXELS, MEM(a), MEM(picture));
            SPAN(queue, "wave_columns", width, height / 2, MEM(picture), INT(WIDTH), MEM(b));
        } else {
            SPAN(queue, "wave_columns", width, height / 2, MEM(a), INT(WIDTH), MEM(b));
        }
        SPAN(queue, "wave_coded", width, height, MEM(b), INT(WIDTH), INT(4 + step % 8),
             MEM(outcome));
    }
    drain(queue);
}

/* Queries come over a line that takes its time; the next ones are awaited before those that are
 * there are sent, or while they are answered. A second queue counts the votes. */
static void await_queries(int *asked, int count, int round)
{
    const struct timespec line = {0, 1500000};
    nanosleep(&line, NULL);
    for (int i = 0; i < count; i++)
        asked[i] = (i * 7919 + round * 104729) & 0x1fff;
}

static void q_neighbours(int step)
{
    enum { KNOWN = 3 << 10, QUERIES = 1024, PARTS = 4, ROUNDS = 3 };
    static cl_mem known, kinds, asked, nearest, found;
    static int *line[2];
    if (!step) {
        known = dealt_buffer(KNOWN * 4, 0x1fff), kinds = dealt_buffer(KNOWN, 15);
        asked = filled(QUERIES * 16), nearest = filled(QUERIES * PARTS * 8);
        found = filled(QUERIES * 4), outcome = filled(QUERIES * 4);
        line[0] = host(QUERIES * 16), line[1] = host(QUERIES * 16);
        await_queries(line[0], QUERIES * 4, 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        const int round = step * ROUNDS + i;
        const struct argument voted[] = {MEM(found), MEM(kinds), MEM(outcome), {0, NULL}};
        cl_event ready;
        if (!fixed)
            await_queries(line[!(round % 2)], QUERIES * 4, round + 1);
        put(asked, 0, line[round % 2], QUERIES * 16, false);
        SPAN(queue, "distances", QUERIES, PARTS, MEM(known), INT(KNOWN / PARTS), MEM(asked),
             MEM(nearest));
        const struct argument merged[] = {MEM(nearest), INT(PARTS), MEM(found), {0, NULL}};
        launch(queue, "nearest_of", QUERIES, merged, NULL, &ready);
        clFlush(queue);
        launch(other, "votes", QUERIES, voted, &ready, NULL);
        clFlush(other);
        clReleaseEvent(ready);
        if (fixed)
            await_queries(line[!(round % 2)], QUERIES * 4, round + 1);
        drain(other);
    }
}

/* Blocks are enciphered: each work-item makes the round keys of the key itself, or a kernel makes
 * them once. */
static void q_cipher(int step)
{
    enum { BLOCKS = 32 << 10, TAGS = 256 };
    static cl_mem blocks, boxes, keys;
    static unsigned tags[TAGS];
    const cl_uint key = 977u + (cl_uint)step;
    if (!step) {
        blocks = dealt_buffer(BLOCKS * 2, 0xffffff), boxes = dealt_buffer(1024, 0xffffff);
        keys = filled(64), outcome = filled(TAGS * 4);
    }
    for (int round = 0; round < 2; round++) {
        if (fixed) {
            LAUNCH(queue, "key_schedule", 1, ARGUMENT(cl_uint, key), MEM(keys));
            LAUNCH(queue, "cipher_given", BLOCKS, MEM(blocks), MEM(boxes), MEM(keys));
        } else {
            LAUNCH(queue, "cipher_own", BLOCKS, MEM(blocks), MEM(boxes), ARGUMENT(cl_uint, key),
                   INT(1));
        }
        LAUNCH(queue, "chained", TAGS, MEM(blocks), INT(BLOCKS / TAGS), MEM(outcome));
    }
    get(outcome, 0, tags, sizeof tags);
}

/* Without a fault: rays that march over hills. One long kernel; the host reads how far the middle
 * is, since its own rule of thumb focuses the next picture by it. */
static void q_marching(int step)
{
    enum { WIDTH = 320, HEIGHT = 240, HILLS = 512 * 512 };
    static cl_mem hills, hits, depth;
    static int focus = 0, seen;
    if (!step) {
        hills = dealt_buffer(HILLS, 0xfff), hits = filled(WIDTH * HEIGHT * 8);
        depth = filled(4), outcome = filled(WIDTH * HEIGHT * 4);
    }
    SPAN(queue, "marched", WIDTH, HEIGHT, MEM(hills), INT(HILLS - 1), INT(step * 64), INT(focus),
         INT(WIDTH), MEM(hits));
    SPAN(queue, "shaded", WIDTH - 2, HEIGHT, MEM(hits), INT(WIDTH), MEM(outcome));
    LAUNCH(queue, "focused", 1, MEM(hits), INT(WIDTH), INT(HEIGHT), MEM(depth));
    get(depth, 0, &seen, sizeof seen);
    focus += seen > 60 ? 3 : -2;
}

/* Without a fault: a graph is coloured; how many rounds it takes is known by the data alone, and
 * the host asks after each sixth. */
static void q_colouring(int step)
{
    enum { NODES = 24 << 10, PARTS = 1024 };
    static cl_mem next, a, b, left;
    int more = 1;
    if (!step) {
        next = dealt_buffer(NODES * 8, 0x3fff), a = filled(NODES * 4), b = filled(NODES * 4);
        left = filled(4), outcome = a;
    }
    LAUNCH(queue, "uncoloured", NODES, MEM(a), INT(step), MEM(left));
    for (int round = 0; round < 60 && more; round += 6) {
        const int none = 0;
        for (int i = 0; i < 3; i++) {
            LAUNCH(queue, "coloured", NODES, MEM(next), MEM(a), MEM(b));
            LAUNCH(queue, "coloured", NODES, MEM(next), MEM(b), MEM(a));
        }
        put(left, 0, &none, sizeof none, false);
        LAUNCH(queue, "left_over", PARTS, MEM(a), INT(NODES / PARTS), MEM(left));
        get(left, 0, &more, sizeof more);
    }
}

/* Without a fault: each new picture is sent in a second queue while the one before loses its
 * noise; events keep the order, and the small result is read. */
static void q_denoise(int step)
{
    enum { WIDTH = 640, HEIGHT = 480, PIXELS = WIDTH * HEIGHT, PICTURES = 3 };
    static cl_mem in[2], out, small;
    static unsigned char *pictures[PICTURES], *seen;
    static cl_event sent[2];
    const int at = step % 2, after = (step + 1) % 2;
    for (int i = 0; i < PICTURES && !step; i++)
        pictures[i] = (unsigned char *)dealt(PIXELS / 4, 0xffffff);
    if (!step) {
        in[0] = make_buffer(context, PIXELS, pictures[0]), in[1] = filled(PIXELS);
        out = filled(PIXELS), small = filled(PIXELS / 4), seen = host(PIXELS / 4);
        outcome = small;
    }
    unsigned char *picture = pictures[(step + 1) % PICTURES];
    for (int i = 0; i < PIXELS; i += 97)
        picture[i] = (unsigned char)(i + step);
    must(
        clEnqueueWriteBuffer(other, in[after], CL_FALSE, 0, PIXELS, picture, 0, NULL, &sent[after]),
        "clEnqueueWriteBuffer");
    clFlush(other);
    const struct argument cleaned[] = {
        MEM(in[at]), INT(WIDTH), INT(24 + step % 16), MEM(out), {0, NULL}};
    const size_t inner[2] = {WIDTH - 6, HEIGHT - 6};
    launch_range(queue, "denoised", 2, inner, NULL, cleaned, sent[at] ? &sent[at] : NULL, NULL);
    if (sent[at])
        clReleaseEvent(sent[at]);
    SPAN(queue, "halved", WIDTH / 2, HEIGHT / 2, MEM(out), INT(WIDTH), MEM(small));
    get(small, 0, seen, PIXELS / 4);
}

/* Without a fault: more and more reads of a genome come in a batch; a buffer is made anew, twice as
 * large, when they no longer fit, which is seldom. */
static void q_reads(int step)
{
    enum { GENOME = 1 << 20, HITS = 8 };
    static cl_mem genome, reads, found, best;
    static size_t room;
    static int first[64];
    const size_t count = 6144 + (size_t)(step / 8) * 512;
    if (!step)
        genome = dealt_buffer(GENOME, 0xffff);
    if (count > room) {
        if (room)
            clReleaseMemObject(reads), clReleaseMemObject(found), clReleaseMemObject(best);
        room = room ? room * 2 : count;
        reads = buffer(room * 4), found = buffer(room * HITS * 8), best = buffer(room * 4);
    }
    LAUNCH(queue, "reads_drawn", count, MEM(reads), INT((int)count), INT(step));
    LAUNCH(queue, "read_seeds", count, MEM(reads), MEM(genome), INT(GENOME - 1), INT(HITS),
           MEM(found));
    LAUNCH(queue, "extended", count, MEM(found), INT(HITS), MEM(genome), INT(GENOME - 1),
           MEM(best));
    get(best, 0, first, sizeof first);
}

#define ONE(name, steps) ((struct program){#name, name, steps})
const struct program programs_q[] = {
    ONE(q_options, 200),    ONE(q_equalise, 300),  ONE(q_align, 100),     ONE(q_solver, 150),
    ONE(q_resonators, 200), ONE(q_particles, 150), ONE(q_wavelets, 350),  ONE(q_neighbours, 100),
    ONE(q_cipher, 200),     ONE(q_marching, 80),   ONE(q_colouring, 100), ONE(q_denoise, 100),
    ONE(q_reads, 400),      {NULL, NULL, 0},
};
