/* What a kernel launch costs: launches of a tiny kernel in a loop, clFinish at intervals as a
 * program would do. Prints one line: ns per launch to enqueue, in all, and of processor time in the
 * program (user), which other work on the machine disturbs less. Run it bare and under
 * perfkit, interleaved; POCL_DEVICES=basic runs kernels inside clEnqueueNDRangeKernel or clFinish
 * on the calling thread, POCL_DEVICES=pthread on workers. --profile 1 is the floor of any collector
 * that wants device times: a profiling queue, an event a launch, its times read every 64 launches.
 * --ranges 1 puts an NVTX range "step" around the launches up to each clFinish, and also prints the
 * median time from one to the next. --rate N: no faster than so many launches a second of a thread.
 * With BENCH_TURNS (turns.h) a thread makes a round of all launches at each turn, on one queue, and
 * gives the processor time of the process, all its threads, in each.
 *   opencl_launch [--launches N] [--items N] [--finish-every N] [--threads N] [--profile 0|1]
 *                 [--ranges 0|1] [--rate N] */
#define CL_TARGET_OPENCL_VERSION 120
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/opencl.h"
#include "perfkit/annotate.h"
#include "turns.h"

static const char source[] = "kernel void touch(global int *a) { a[get_global_id(0)] += 1; }\n";

static long launches = 50000, items = 64, finish_every = 1000, threads = 1;
static long profile, ranges, rate;
static cl_context context;
static cl_device_id device;
static cl_program program;

struct timing {
    pthread_t thread;
    uint64_t enqueue_ns, total_ns, step_ns;
};

static double user_ns(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_utime.tv_sec * 1e9 + (double)used.ru_utime.tv_usec * 1e3;
}

static double process_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e9 + (double)used.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

#define BATCH 64

/* Read what a profiler reads and let the events go. */
static void harvest(cl_event *events, int count)
{
    static const cl_profiling_info wanted[] = {
        CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT, CL_PROFILING_COMMAND_START,
        CL_PROFILING_COMMAND_END};
    cl_ulong time;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < 4; k++)
            clGetEventProfilingInfo(events[i], wanted[k], sizeof time, &time, NULL);
        clReleaseEvent(events[i]);
    }
}

/* All launches, as fast as the rate allows. step_ns: room for one for each clFinish. Returns how
 * many are in it. */
static size_t launch_all(cl_command_queue queue, cl_kernel kernel, struct timing *timing,
                         uint64_t *step_ns)
{
    cl_event events[BATCH];
    int held = 0;
    size_t global = (size_t)items, steps = 0;
    uint64_t begun = turns_now_ns(), step_begun = begun;
    for (long i = 0; i < launches; i++) {
        if (ranges && i % finish_every == 0)
            perfkit_range_push("step");
        must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &global, 0, NULL,
                                    profile ? &events[held++] : NULL),
             "clEnqueueNDRangeKernel");
        if (held == BATCH) {
            harvest(events, held);
            held = 0;
        }
        if (finish_every > 0 && i % finish_every == finish_every - 1) {
            uint64_t before = turns_now_ns();
            must(clFinish(queue), "clFinish");
            uint64_t after = turns_now_ns();
            for (uint64_t due = rate ? (uint64_t)(i + 1) * 1000000000u / (uint64_t)rate : 0;
                 after - begun < due; after = turns_now_ns())
                nanosleep(&(struct timespec){.tv_nsec = (long)(due - (after - begun)) % 1000000000},
                          NULL);
            timing->enqueue_ns -= after - before;
            if (ranges) {
                perfkit_range_pop();
                step_ns[steps++] = after - step_begun;
                step_begun = after;
            }
        }
    }
    timing->enqueue_ns += turns_now_ns() - begun;
    must(clFinish(queue), "clFinish");
    timing->total_ns += turns_now_ns() - begun;
    harvest(events, held);
    return steps;
}

static void *loop(void *data)
{
    struct timing *timing = data;
    struct turns turns;
    size_t global = (size_t)items, steps = 0;
    cl_command_queue queue = make_queue(context, device, profile ? CL_QUEUE_PROFILING_ENABLE : 0);
    cl_kernel kernel = make_kernel(program, "touch");
    cl_mem memory = make_buffer(context, global * sizeof(cl_int), NULL);
    must(clSetKernelArg(kernel, 0, sizeof memory, &memory), "clSetKernelArg");
    for (int warm = 0; warm < 100; warm++)
        must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &global, 0, NULL, NULL),
             "clEnqueueNDRangeKernel");
    must(clFinish(queue), "clFinish");
    uint64_t *step_ns =
        calloc(finish_every > 0 ? (size_t)(launches / finish_every) + 1 : 1, sizeof *step_ns);
    turns_open(&turns, 1);
    while (turns_next(&turns)) {
        double before = process_ns();
        steps = launch_all(queue, kernel, timing, step_ns);
        if (turns.go < 0)
            continue;
        fprintf(turns.out, "{\"ns_per_launch\": %.3f}\n",
                (process_ns() - before) / (double)launches);
        fflush(turns.out);
    }
    if (turns.go >= 0)
        turns_end(&turns, 0, 0);
    qsort(step_ns, steps, sizeof *step_ns, ascending);
    timing->step_ns = step_ns[steps / 2];
    free(step_ns);
    clReleaseMemObject(memory);
    clReleaseKernel(kernel);
    clReleaseCommandQueue(queue);
    return NULL;
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        long value = strtol(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--launches") == 0)
            launches = value;
        else if (strcmp(argv[i], "--items") == 0)
            items = value;
        else if (strcmp(argv[i], "--finish-every") == 0)
            finish_every = value;
        else if (strcmp(argv[i], "--threads") == 0)
            threads = value;
        else if (strcmp(argv[i], "--profile") == 0)
            profile = value;
        else if (strcmp(argv[i], "--ranges") == 0)
            ranges = value;
        else if (strcmp(argv[i], "--rate") == 0)
            rate = value;
    }
    if (argc % 2 == 0 || (getenv("BENCH_TURNS") && threads != 1) || launches < 1 || items < 1 ||
        threads < 1 || (ranges && finish_every < 1)) {
        fprintf(stderr, "usage: opencl_launch [--launches N] [--items N] [--finish-every N] "
                        "[--threads N] [--profile 0|1] [--ranges 0|1] [--rate N]\n");
        return 2;
    }
    const char *text = source;
    context = make_context(&device);
    program = make_program(context, device, 1, &text);
    struct timing *timings = calloc((size_t)threads, sizeof *timings);
    uint64_t enqueue = 0, total = 0;
    double user = user_ns();
    for (long i = 0; i < threads; i++)
        pthread_create(&timings[i].thread, NULL, loop, &timings[i]);
    for (long i = 0; i < threads; i++) {
        pthread_join(timings[i].thread, NULL);
        enqueue += timings[i].enqueue_ns;
        total += timings[i].total_ns;
    }
    double count = (double)launches * (double)threads;
    printf("enqueue %.1f ns/launch, total %.1f ns/launch, user %.1f ns/launch\n",
           (double)enqueue / count, (double)total / count, (user_ns() - user) / count);
    if (ranges)
        printf("step %llu ns\n", (unsigned long long)timings[0].step_ns);
    free(timings);
    clReleaseProgram(program);
    clReleaseContext(context);
    return 0;
}
