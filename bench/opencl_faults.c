/* Small OpenCL programs with one planted fault each, and the same without it: what findings are
 * judged by, as bench/torch_faults.py for PyTorch.
 *   bench_opencl_faults NAME bad|fixed       bench_opencl_faults --list
 * Names that begin with t_ and s_ (opencl_faults_t.c) are the programs that rules may be tuned on
 * (s_ was scored first; likewise u_, z_, y_ and r_, opencl_faults_u.c and alike), v_ and q_ those
 * that are scored only. Each iteration is an NVTX range "step" but where the program has phases;
 * the last line is "step N ns", the mean. Labels: tests/diagnosis/unseen.tsv. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/opencl_faults.h"
#include "perfkit/annotate.h"

cl_context context;
cl_command_queue queue, other;
bool fixed;
volatile bool over;
cl_mem outcome;
static cl_device_id device;
static cl_program program;

static int64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

void host_work(double us)
{
    for (int64_t end = now_ns() + (int64_t)(us * 1000); now_ns() < end;)
        ;
}

cl_mem buffer(size_t bytes)
{
    return make_buffer(context, bytes, NULL);
}

void put(cl_mem memory, size_t at, const void *data, size_t bytes, bool wait)
{
    must(clEnqueueWriteBuffer(queue, memory, wait, at, bytes, data, 0, NULL, NULL),
         "clEnqueueWriteBuffer");
}

void get(cl_mem memory, size_t at, void *data, size_t bytes)
{
    must(clEnqueueReadBuffer(queue, memory, CL_TRUE, at, bytes, data, 0, NULL, NULL),
         "clEnqueueReadBuffer");
}

void *host(size_t bytes)
{
    float *data = malloc(bytes);
    if (!data)
        must(CL_OUT_OF_HOST_MEMORY, "malloc");
    for (size_t i = 0; i < bytes / sizeof *data; i++)
        data[i] = (float)(i % 1000) * 0.001f;
    return data;
}

cl_mem filled(size_t bytes)
{
    cl_mem memory = buffer(bytes);
    void *data = host(bytes);
    put(memory, 0, data, bytes, true);
    free(data);
    return memory;
}

void launch_range(cl_command_queue on, const char *name, cl_uint dimensions, const size_t *items,
                  const size_t *group, const struct argument *arguments, const cl_event *after,
                  cl_event *event)
{
    static struct {
        const char *name;
        cl_kernel kernel;
    } known[16];
    size_t k = 0;
    while (known[k].name && strcmp(known[k].name, name) != 0)
        k++;
    if (!known[k].name) {
        known[k].name = name;
        known[k].kernel = make_kernel(program, name);
    }
    for (cl_uint i = 0; arguments[i].size; i++)
        must(clSetKernelArg(known[k].kernel, i, arguments[i].size, arguments[i].value), name);
    must(clEnqueueNDRangeKernel(on, known[k].kernel, dimensions, NULL, items, group, after ? 1 : 0,
                                after, event),
         name);
}

void drain(cl_command_queue on)
{
    must(clFinish(on), "clFinish");
}

int *drawn(size_t count, int mask)
{
    static unsigned state = 7;
    int *values = host(count * 4);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (int)(state >> 8) & mask;
    }
    return values;
}

cl_mem drawn_buffer(size_t count, int mask)
{
    int *values = drawn(count, mask);
    cl_mem memory = make_buffer(context, count * 4, values);
    free(values);
    return memory;
}

void launch(cl_command_queue on, const char *name, size_t items, const struct argument *arguments,
            const cl_event *after, cl_event *event)
{
    launch_range(on, name, 1, &items, NULL, arguments, after, event);
}
/* ---- main ---- */

static const struct program *const sets[] = {programs_t, programs_u, programs_v, programs_z,
                                             programs_y, programs_r, programs_q};
#define SETS (sizeof sets / sizeof *sets)

static const struct program *find_program(const char *name)
{
    for (size_t i = 0; i < SETS; i++)
        for (const struct program *one = sets[i]; one->name; one++)
            if (!strcmp(one->name, name))
                return one;
    return NULL;
}

static int list_programs(void)
{
    for (size_t i = 0; i < SETS; i++)
        for (const struct program *one = sets[i]; one->name; one++)
            printf("%s\n", one->name);
    return 0;
}

static void open_device(void)
{
    const char *texts[] = {source_t, source_u, source_v, source_z, source_y, source_r, source_q};
    context = make_context(&device);
    queue = make_queue(context, device, 0);
    other = make_queue(context, device, 0);
    program = make_program(context, device, sizeof texts / sizeof *texts, texts);
}

/* What both forms of a program should end with. */
static void show_outcome(void)
{
    size_t bytes = 0;
    must(clGetMemObjectInfo(outcome, CL_MEM_SIZE, sizeof bytes, &bytes, NULL), "size");
    unsigned char *data = host(bytes);
    get(outcome, 0, data, bytes);
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ data[i]) * 1099511628211u;
    free(data);
    printf("outcome %016llx\n", (unsigned long long)hash);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--list"))
        return list_programs();
    const struct program *one = argc == 3 ? find_program(argv[1]) : NULL;
    if (!one || (strcmp(argv[2], "bad") && strcmp(argv[2], "fixed"))) {
        fprintf(stderr, "usage: bench_opencl_faults NAME bad|fixed, or --list\n");
        return 2;
    }
    fixed = !strcmp(argv[2], "fixed");
    open_device();
    one->step(0);
    must(clFinish(queue), "clFinish");
    bool phases = one->steps == 1;
    int64_t begun = now_ns();
    for (int i = 1; i <= one->steps; i++) {
        if (!phases)
            perfkit_range_push("step");
        one->step(i);
        if (!phases)
            perfkit_range_pop();
    }
    must(clFinish(queue), "clFinish");
    int64_t ended = now_ns();
    if (outcome)
        show_outcome();
    printf("step %lld ns\n", (long long)(ended - begun) / one->steps);
    over = true;
    return 0;
}
