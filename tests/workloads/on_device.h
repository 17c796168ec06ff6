/* What the tests of kernels share: one device at a time, buffers of random numbers, and a failed
 * call that says why. For one source file of a test program. */
#ifndef TESTS_WORKLOADS_ON_DEVICE_H
#define TESTS_WORKLOADS_ON_DEVICE_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/device/device.h"

static const enum dev_backend backends[] = {DEV_CUDA, DEV_OPENCL, DEV_CPU};

static struct dev *dev;
static struct dev_queue *queue;
static uint32_t random_state;

static inline void done(int result)
{
    ck_assert_msg(result == 0, "%s", dev_error_text(dev));
}

/* False, after saying why, where there is no such device. */
static inline bool open_backend(int index)
{
    char why[512];

    random_state = 1;
    if (dev_open(backends[index], 3, &dev, why, sizeof why) != 0) {
        printf("SKIP %s\n", why);
        return false;
    }
    done(dev_queue_create(dev, &queue));
    return true;
}

static inline void close_backend(void)
{
    dev_queue_destroy(queue);
    dev_close(dev);
}

/* -1 .. 1 */
static inline float next_float(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(random_state >> 8) / 8388608.0f - 1.0f;
}

static inline float *floats(size_t count)
{
    float *out = malloc(count * sizeof out[0]);

    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; i < count; i++)
        out[i] = next_float();
    return out;
}

static inline struct dev_buffer *put_bytes(const void *from, size_t bytes)
{
    struct dev_buffer *buffer;

    done(dev_alloc(dev, bytes, &buffer));
    done(dev_write(queue, buffer, 0, from, bytes, DEV_BLOCKING, NULL));
    return buffer;
}

static inline struct dev_buffer *put(const float *from, size_t count)
{
    return put_bytes(from, count * sizeof from[0]);
}

#endif
