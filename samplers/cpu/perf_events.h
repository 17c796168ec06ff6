/* The kernel's events of a process that is about to be replaced by a program: one ring buffer for
 * each processor, filled while the program, its threads and its children run there. */
#ifndef PERFKIT_SAMPLERS_CPU_PERF_EVENTS_H
#define PERFKIT_SAMPLERS_CPU_PERF_EVENTS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libprof/base/array.h"

struct cpu_ring {
    int clock, switches; /* descriptors; -1 = none */
    uint64_t switch_id;  /* by which samples of `switches` are known */
    void *page;          /* the kernel's control page, the records behind it */
};

struct cpu_perf {
    struct cpu_ring *rings;
    unsigned count;
    size_t ring_bytes; /* of records, a power of two */
    uint64_t period_ns;
    uint32_t stack_bytes; /* copied of each stack; 0 = the kernel follows frame pointers */
    bool kernel;          /* time inside the kernel is sampled too */
    bool switches;        /* threads that stop running are seen */
    bool switch_stacks;   /* and where they were */
};

struct cpu_perf_options {
    pid_t pid;
    unsigned hz;
    uint32_t stack_bytes; /* as above; ignored where CPU_CAN_COPY is 0 */
    bool switches;
};

/* Unwinding outside of the process knows the registers of this machine. */
#ifdef __x86_64__
#define CPU_CAN_COPY 1
#else
#define CPU_CAN_COPY 0
#endif

#define CPU_MOST_FRAMES 64u
#define CPU_MOST_HZ 10000u

/* Open and map everything, to start when `pid` calls exec. What a user without rights may not have
 * is left out and reported by the fields above. False: nothing was opened, and *why has the reason
 * and the remedy. Call it with the caller's own pid to learn whether it would work. */
bool cpu_perf_open(struct cpu_perf *perf, const struct cpu_perf_options *options, char *why,
                   size_t size);
void cpu_perf_close(struct cpu_perf *perf);

/* kernel.perf_event_paranoid; false when there is none: a kernel without perf events. */
bool cpu_perf_paranoid(int *level);

/* Is it a sample of where a thread stopped, and not one of the clock? */
bool cpu_perf_is_stop(const struct cpu_perf *perf, const struct perf_event_header *sample);

/* ---- Records of all rings by time ------------------------------------------------------------
 *
 * Records out of the ring buffers of all processors, put into the order of their times. */

struct cpu_queued {
    uint64_t time_ns;
    size_t at; /* in `bytes` */
};

struct cpu_queue {
    PROF_ARRAY(unsigned char) bytes, spare;
    PROF_ARRAY(struct cpu_queued) records;
    uint64_t damaged; /* stretches that were no records */
};

typedef void (*cpu_record_found)(void *context, const struct perf_event_header *record,
                                 uint64_t time_ns);

/* Copy what the ring holds and give its room back; `fresh` (may be NULL) sees each record, in the
 * order of this ring. False: out of memory; the ring keeps it. */
bool cpu_queue_take(struct cpu_queue *queue, const struct cpu_perf *perf,
                    const struct cpu_ring *ring, cpu_record_found fresh, void *context);

/* Hand over, by time, all records before `until_ns`; the others stay. */
void cpu_queue_hand_over(struct cpu_queue *queue, uint64_t until_ns, cpu_record_found found,
                         void *context);

void cpu_queue_free(struct cpu_queue *queue);

#endif
