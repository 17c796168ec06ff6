/* Records out of the ring buffers of all processors, put into the order of their times. */
#ifndef PERFKIT_SAMPLERS_CPU_PERF_QUEUE_H
#define PERFKIT_SAMPLERS_CPU_PERF_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/perf_event.h>

#include "samplers/cpu/perf_open.h"
#include "libprof/base/array.h"

struct cpu_queued {
    uint64_t time_ns;
    size_t at; /* in `bytes` */
};

struct cpu_queue {
    PROF_ARRAY(unsigned char) bytes, spare;
    PROF_ARRAY(struct cpu_queued) records;
    uint64_t damaged; /* stretches that were no records */
};

/* Copy what the ring holds and give its room back. False: out of memory; the ring keeps it. */
bool cpu_queue_take(struct cpu_queue *queue, const struct cpu_perf *perf,
                    const struct cpu_ring *ring);

/* Hand over, by time, all records before `until_ns`; the others stay. */
typedef void (*cpu_record_found)(void *context, const struct perf_event_header *record,
                                 uint64_t time_ns);
void cpu_queue_hand_over(struct cpu_queue *queue, uint64_t until_ns, cpu_record_found found,
                         void *context);

void cpu_queue_free(struct cpu_queue *queue);

#endif
