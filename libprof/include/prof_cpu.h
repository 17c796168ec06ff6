/* prof_cpu.h: where the threads of the program were, from samples of the processors (perfkit run
 * --cpu-sample), and where they were while the devices had nothing to do. Part of prof.h's
 * interface; its conventions hold. */
#ifndef PERFKIT_PROF_CPU_H
#define PERFKIT_PROF_CPU_H

#include "libprof/include/prof.h"

enum prof_cpu_state {
    PROF_CPU_USER,      /* on a processor, in the program */
    PROF_CPU_KERNEL,    /* on a processor, inside the operating system */
    PROF_CPU_BLOCKED,   /* waiting for something: a lock, data, time */
    PROF_CPU_PREEMPTED, /* waiting for a processor */
    PROF_CPU_STATES
};

/* Time of threads: of several at once it adds up to more than the time that passed. */
struct prof_cpu_times {
    int64_t samples;
    int64_t ns[PROF_CPU_STATES];
    int64_t idle_ns[PROF_CPU_STATES]; /* of it, while no device worked */
};

/* A function as prof_stack_place shows it: the innermost one with a source line, else with a name.
 */
struct prof_cpu_function {
    char *where;          /* "load_batch (loader.c:118)"; owned by the result */
    const char *function; /* never NULL */
    const char *file;     /* of the place in it that was seen longest; NULL = unknown */
    int64_t line;         /* likewise; PROF_UNKNOWN */
    const char *module;   /* path, or NULL */
    bool launches;        /* of threads that give devices work; else of the others */
    struct prof_cpu_times times;
};

struct prof_cpu_thread {
    int64_t thread; /* id */
    bool launches;
    struct prof_cpu_times times;
};

struct prof_stacks;
struct prof_cpu {
    /* Those of launching threads first, by idle time, then by time; the others without what they
     * were blocked. */
    struct prof_cpu_function *functions;
    size_t function_count;
    struct prof_cpu_thread *threads; /* likewise */
    size_t thread_count;
    struct prof_cpu_times launching, others; /* sums */
    /* From the first operation of a device to the end of the last one, and of it the time in which
     * none ran. PROF_UNKNOWN without any. */
    int64_t window_ns, idle_ns;
    /* Of all threads' time: in CPython's interpreter, and which function of the program it ran is
     * not known (docs/guide/cpu-samples.md, Python). */
    int64_t interpreter_ns;
    struct prof_stacks *stacks; /* holds the texts */
};

/* Sum up the samples. Empty for a capture without. A filter may choose time, process, device (whose
 * idle time is meant) and thread (of the samples). Reads the device tables once when there are
 * samples; 16 bytes for each stretch of device work. */
enum prof_status prof_cpu(struct prof_capture *capture, const struct prof_filter *filter,
                          struct prof_cpu *result, struct prof_error *err);
void prof_cpu_free(struct prof_cpu *result);

/* One sample: a point on a processor, or a stretch off it. */
struct prof_cpu_sample {
    int64_t start_ns;
    int64_t duration_ns; /* 0 = a point */
    int64_t weight_ns;   /* of the thread's time that it stands for; above 0 */
    int64_t thread;      /* id */
    int64_t stack;       /* id; 0 = unknown */
    enum prof_cpu_state state;
};
/* False: out of memory. */
typedef bool prof_on_cpu_sample(void *user, const struct prof_cpu_sample *sample);

/* Every sample in order of start; the filter as that of prof_cpu. `seen` must not read the capture.
 */
enum prof_status prof_cpu_samples(struct prof_capture *capture, const struct prof_filter *filter,
                                  prof_on_cpu_sample *seen, void *user, struct prof_error *err);

static inline int64_t prof_cpu_total(const int64_t ns[PROF_CPU_STATES])
{
    return ns[PROF_CPU_USER] + ns[PROF_CPU_KERNEL] + ns[PROF_CPU_BLOCKED] + ns[PROF_CPU_PREEMPTED];
}

#endif
