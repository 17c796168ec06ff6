/* Convolution in double precision: what every backend is compared with. Threads own planes of the
 * output, so the result is the same for any number of threads.
 */
#include "kernels/conv2d/conv2d.h"

#include <string.h>

#include "kernels/device/parallel.h"

struct task {
    const struct conv2d_shape *shape;
    const double *in;
    const float *weight;
    double *out;
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

static void convolve_planes(void *context, uint64_t first_plane, uint64_t end_plane)
{
    const struct task *task = context;
    const struct conv2d_shape *s = task->shape;
    size_t plane = (size_t)s->height * s->width;

    for (uint64_t p = first_plane; p < end_plane; p++) {
        uint64_t image = p / s->out_channels, o = p % s->out_channels;
        double *out = task->out + p * plane;

        memset(out, 0, plane * sizeof out[0]);
        for (uint32_t i = 0; i < s->in_channels; i++)
            for (int tap = 0; tap < CONV2D_TAPS; tap++)
                add_tap(s, task->in + (image * s->in_channels + i) * plane,
                        (double)task->weight[(o * s->in_channels + i) * CONV2D_TAPS + (size_t)tap],
                        tap / 3 - 1, tap % 3 - 1, out);
    }
}

void conv2d_reference(const struct conv2d_shape *shape, const double *in, const float *weight,
                      uint32_t threads, double *out)
{
    struct task task = {shape, in, weight, out};

    parallel_for(threads, (uint64_t)shape->images * shape->out_channels, convolve_planes, &task);
}
