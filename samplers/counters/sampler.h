/* The sampler: all GPUs of a run, in bursts, until a stop is requested. */
#ifndef PERFKIT_SAMPLERS_COUNTERS_SAMPLER_H
#define PERFKIT_SAMPLERS_COUNTERS_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sampler_options {
    const char *directory; /* the run's spool folder */
    const char *set;       /* name of a metric set */
    const char *cupti;     /* libcupti to use, or NULL */
    uint64_t interval_ns;  /* 0 = SAMPLER_INTERVAL_NS */
    double duty;           /* share of the time to sample; 0 = by the budget */
    int stop_fd;           /* end of file: stop */
    int ready_fd;          /* closed once sampling has begun, or cannot */
};

#define SAMPLER_INTERVAL_NS 20000ull

/* Runs until stop_fd ends or a request to end comes. What goes wrong is said in the spool: there is
 * always a capture to say it in, and the run goes on without counters. Returns the exit status. */
int sampler_run(const struct sampler_options *options);

/* From a signal handler: stop soon. */
void sampler_stop(void);

/* ---- sampler.c ----------------------------------------------------------------------------------
 *
 * When to sample: bursts, spaced so that what the sampler costs stays within a budget. Pure
 * arithmetic. */

#define PACE_BUDGET 0.10        /* of a core, for all that the sampler does */
#define PACE_BURST_SAMPLES 400u /* must fit what device.c decodes at a time, with room to spare */
#define PACE_MOST_NS 1000000000ull /* of a burst, when the interval is long */

/* Account of CPU time: a share of all time that goes by is earned, what the sampler uses is spent.
 */
struct pace {
    uint64_t burst_ns;
    double duty;            /* share of the time to be sampled; 0 = whatever the budget allows */
    uint64_t random;        /* state of the generator */
    uint64_t next_ns;       /* no burst begins before */
    uint64_t at_ns, cpu_ns; /* when the account was last made up, and all CPU time until then */
    double credit_ns;       /* earned and not spent; below 0: to be earned yet */
    double cost_ns;         /* what a burst is expected to cost */
};

/* The first burst may begin at once. now_ns: any clock, the same in all calls; cpu_ns: CPU time of
 * the sampler until then, of its threads and children. duty 0 = by the budget. The seed makes a
 * sequence repeatable. */
void pace_begin(struct pace *pace, uint64_t interval_ns, double duty, uint64_t seed,
                uint64_t now_ns, uint64_t cpu_ns);

/* Make up the account; at the latest when a burst begins. */
void pace_spend(struct pace *pace, uint64_t now_ns, uint64_t cpu_ns);

/* A burst that began at began_ns lasted length_ns; all that belongs to it is done now. Returns when
 * the next should begin (pace.next_ns); may be past already. By the end of each burst but the first
 * no more than the budget is spent, as long as bursts cost no more than before. Of budget that was
 * not used one burst's is saved up: after a quiet time the sampler does not catch up at the
 * program's expense. */
uint64_t pace_next(struct pace *pace, uint64_t began_ns, uint64_t length_ns, uint64_t now_ns,
                   uint64_t cpu_ns);

/* ---- sampler.c: who else uses a GPU, by NVML -------------------------------------------------- */

/* Open NVML. False when there is none: then nothing is known of others. */
bool others_open(void);

/* NVML's handle of the GPU with this UUID ("GPU-..."); NULL = not known. */
void *others_device(const char *uuid);

struct others {
    bool known;      /* false: NVML does not say, or its pids mean nothing here (a container) */
    unsigned ours;   /* processes on the GPU that belong to the run */
    unsigned others; /* that do not */
};

/* Look at who is on the GPU. A process is of the run when PERFKIT_DIR of its environment is
 * `directory`, or its spool is there. Takes milliseconds. */
struct others others_look(void *device, const char *directory);

/* ---- self_test.c ----------------------------------------------------------------------------- */

struct counter_self_test {
    unsigned device, bursts;
    double burst_ms, pause_ms;
    uint64_t interval_ns;
    bool own_clock; /* samples in CLOCK_MONOTONIC by CUPTI's timestamp callback */
    bool context;   /* with a CUDA context of its own on the GPU */
    bool edges;     /* print when DRAM reads start and end */
    bool steps;     /* print each call into CUPTI before it is made */
    bool keep_oldest, no_peaks;
    uint64_t hardware_bytes; /* 0 = as the sampler */
    uint32_t batch;
    const char *counters;   /* names separated by commas; NULL = the whole set */
    const char *cupti_path; /* or NULL */
};

/* Prints on stdout. Exit status: 0 when samples came. */
int counter_self_test(const struct counter_self_test *options);

#endif
