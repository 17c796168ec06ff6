/* What the tests of kernels share that compare with a reference in double precision. For one source
 * file of a test program. */
#ifndef TESTS_WORKLOADS_ON_DEVICE_REFERENCE_H
#define TESTS_WORKLOADS_ON_DEVICE_REFERENCE_H

#include <math.h>

#include "tests/workloads/on_device.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static inline double *doubles(const float *from, size_t count)
{
    double *out = malloc(count * sizeof out[0]);

    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; i < count; i++)
        out[i] = (double)from[i];
    return out;
}

static inline void launch(const struct dev_module *module, const char *name, struct dev_grid grid,
                          const struct dev_arg *args, size_t count)
{
    struct dev_kernel *kernel;

    done(dev_kernel(dev, module, name, &kernel));
    done(dev_launch(queue, kernel, grid, args, count, NULL));
}

/* Reads a buffer back, frees it, and compares it. */
static inline void expect(struct dev_buffer *buffer, const double *reference, size_t count,
                          double tolerance)
{
    float *out = malloc(count * sizeof out[0]);

    ck_assert_ptr_nonnull(out);
    done(dev_read(queue, buffer, 0, out, count * sizeof out[0], DEV_BLOCKING, NULL));
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(fabs((double)out[i] - reference[i]) <= tolerance, "[%zu] is %g, not %g", i,
                      (double)out[i], reference[i]);
    free(out);
    dev_free(buffer);
}

#endif
