/* An OpenCL driver of our own making, for one thread: clocks of every kind, refused profiling,
 * commands that finish when the test says so. */
#ifndef PERFKIT_TESTS_OPENCL_MADE_UP_DRIVER_H
#define PERFKIT_TESTS_OPENCL_MADE_UP_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "collectors/opencl/ocl.h"

struct event {
    int references;
    cl_int status;
    cl_ulong times[4];
    cl_command_queue queue;
    struct event *next; /* spare ones: handles are used again at once */
};

struct made_up_driver {
    enum clock { MONOTONIC, RAW, SHIFTED, NEARLY } clock;
    bool timer;     /* clGetDeviceAndHostTimer works */
    bool refuse;    /* profiling is refused */
    bool hold;      /* commands do not finish by themselves */
    cl_int no_room; /* what creating a buffer answers */
    int stamps, created, made_with_profiling, live_events, mem_references[2];
};
extern struct made_up_driver driver;
extern const struct _cl_icd_dispatch below; /* its functions */

/* What its handles point at. */
extern int context_object, device_object, kernel_object;
extern int memory_object[2];       /* the second is made from the first */
extern unsigned char mapped[4096]; /* where buffers are mapped */

uint64_t read_clock(clockid_t id);
void complete(struct event *event);

#endif
