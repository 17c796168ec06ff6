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

#define ONE(name, steps) ((struct program){#name, name, steps})
const struct program programs_q[] = {
    ONE(q_options, 200),
    ONE(q_equalise, 300),
    {NULL, NULL, 0},
};
