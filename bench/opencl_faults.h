/* What the programs of opencl_faults*.c share: a device with two queues, and
 * short forms of the calls, which end the program where they fail. */
#ifndef PERFKIT_BENCH_OPENCL_FAULTS_H
#define PERFKIT_BENCH_OPENCL_FAULTS_H

#define CL_TARGET_OPENCL_VERSION 120
#include <stdbool.h>
#include <stddef.h>

#include "bench/opencl.h"

struct program {
    const char *name;
    void (*step)(int); /* step 0 sets up */
    int steps;
};
/* Each ended by one without a name. */
extern const struct program programs_t[], programs_u[], programs_v[], programs_z[], programs_y[],
    programs_r[], programs_q[];
extern const char source_t[], source_u[], source_v[], source_z[], source_y[], source_r[],
    source_q[];

extern cl_context context;
extern cl_command_queue queue, other;
extern bool fixed;
extern volatile bool over; /* the last step has ended */
extern cl_mem outcome;     /* if set: both forms end with the same bytes in it */

/* The host's own work: busy for so long. */
void host_work(double us);
cl_mem buffer(size_t bytes);
cl_mem filled(size_t bytes);
void *host(size_t bytes);
void put(cl_mem memory, size_t at, const void *data, size_t bytes, bool wait);
void get(cl_mem memory, size_t at, void *data, size_t bytes);

struct argument {
    size_t size;
    const void *value;
};
#define ARGUMENT(type, x) ((struct argument){sizeof(type), &(type){x}})
#define MEM(x) ARGUMENT(cl_mem, x)
#define INT(x) ARGUMENT(cl_int, x)
#define INT4(...) ((struct argument){sizeof(cl_int4), &(cl_int4){{__VA_ARGS__}}})
#define FLOAT(x) ARGUMENT(cl_float, x)
#define LAUNCH(queue, name, items, ...)                                                            \
    launch(queue, name, items, (const struct argument[]){__VA_ARGS__, {0, NULL}}, NULL, NULL)

void launch(cl_command_queue on, const char *name, size_t items, const struct argument *arguments,
            const cl_event *after, cl_event *event);
/* In up to three dimensions, and in groups of a size that `group` names if it is not NULL. */
void launch_range(cl_command_queue on, const char *name, cl_uint dimensions, const size_t *items,
                  const size_t *group, const struct argument *arguments, const cl_event *after,
                  cl_event *event);

#define RANGE(queue, name, dimensions, items, group, ...)                                          \
    launch_range(queue, name, dimensions, items, group,                                            \
                 (const struct argument[]){__VA_ARGS__, {0, NULL}}, NULL, NULL)
void drain(cl_command_queue on); /* waits for all that was launched */
/* Numbers below a power of two, mask + 1, that any run has alike; to be freed. */
int *drawn(size_t count, int mask);
cl_mem drawn_buffer(size_t count, int mask);

#define MIB ((size_t)1 << 20)

#endif
