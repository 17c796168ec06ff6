/* Convolution in double precision: what every backend is compared with. Threads own planes of the
 * output, so the result is the same for any number of threads.
 */
#include "kernels/conv2d/conv2d.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct share {
    const struct conv2d_shape *shape;
    const double *in;
    const float *weight;
    double *out;
    uint32_t first_plane, last_plane;
    pthread_t thread;
};

/* One tap of one input plane into one output plane. */
static void add_tap(const struct conv2d_shape *s, const double *restrict in, double w, int dy,
                    int dx, double *restrict out)
{
    int height = (int)s->height, width = (int)s->width;
    int x_first = dx < 0 ? 1 : 0, x_end = dx > 0 ? width - 1 : width;

    for (int y = 0; y < height; y++) {
        const double *restrict from = in + (ptrdiff_t)(y + dy) * width + dx;
        double *restrict to = out + (ptrdiff_t)y * width;

        if (y + dy < 0 || y + dy >= height)
            continue;
        for (int x = x_first; x < x_end; x++)
            to[x] += w * from[x];
    }
}

static void *compute(void *argument)
{
    const struct share *share = argument;
    const struct conv2d_shape *s = share->shape;
    size_t plane = (size_t)s->height * s->width;

    for (uint32_t p = share->first_plane; p < share->last_plane; p++) {
        uint32_t image = p / s->out_channels, o = p % s->out_channels;
        double *out = share->out + p * plane;

        memset(out, 0, plane * sizeof out[0]);
        for (uint32_t i = 0; i < s->in_channels; i++)
            for (int tap = 0; tap < CONV2D_TAPS; tap++)
                add_tap(s, share->in + ((size_t)image * s->in_channels + i) * plane,
                        (double)share
                            ->weight[((size_t)o * s->in_channels + i) * CONV2D_TAPS + (size_t)tap],
                        tap / 3 - 1, tap % 3 - 1, out);
    }
    return NULL;
}

int conv2d_reference(const struct conv2d_shape *shape, const double *in, const float *weight,
                     uint32_t threads, double *out)
{
    uint64_t planes = (uint64_t)shape->images * shape->out_channels;
    struct share *shares;
    uint32_t started = 0;

    if (threads == 0)
        threads = 1;
    shares = calloc(threads, sizeof shares[0]);
    if (!shares)
        return -1;
    for (uint32_t i = 0; i < threads; i++)
        shares[i] = (struct share){
            .shape = shape,
            .in = in,
            .weight = weight,
            .out = out,
            .first_plane = (uint32_t)(planes * i / threads),
            .last_plane = (uint32_t)(planes * (i + 1) / threads),
        };
    while (started + 1 < threads &&
           pthread_create(&shares[started].thread, NULL, compute, &shares[started]) == 0)
        started++;
    for (uint32_t i = started; i < threads; i++)
        compute(&shares[i]);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(shares[i].thread, NULL);
    free(shares);
    return 0;
}
