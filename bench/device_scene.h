/* A stream and kernels by name, for programs of bench/ that write records of work nobody did. */
#ifndef PERFKIT_BENCH_DEVICE_SCENE_H
#define PERFKIT_BENCH_DEVICE_SCENE_H

#include <stdio.h>

#include "collectors/core/collector.h"

/* Sets the ids of `count` configurations: kernel_0 with one block of 128 threads, and so on.
 * Returns the stream. */
static inline uint32_t define_stream_and_kernels(uint32_t *configs, unsigned count)
{
    struct wire_device device = {
        .head = {sizeof device, WIRE_DEVICE, WIRE_DEVICE_GPU, collector_new_id()}};
    collector_define(&device);
    struct wire_stream stream = {.head = {sizeof stream, WIRE_STREAM, 0, collector_new_id()},
                                 .device = device.head.aux};
    collector_define(&stream);
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "kernel_%u", i);
        struct wire_config config = {
            .name = collector_text(name), .grid = {i + 1, 1, 1}, .block = {128, 1, 1}};
        configs[i] = collector_config(&config);
    }
    return stream.head.aux;
}

#endif
