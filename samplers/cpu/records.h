/* What the kernel's records mean: tasks are kept up to date, samples and sleeps are written. */
#ifndef PERFKIT_SAMPLERS_CPU_RECORDS_H
#define PERFKIT_SAMPLERS_CPU_RECORDS_H

#include <linux/perf_event.h>

#include "libprof/spool/control.h"
#include "libprof/wire/sampler.h"
#include "libprof/wire/definition.h"
#include "samplers/counters/spool_out.h"
#include "samplers/cpu/perf_events.h"
#include "samplers/cpu/python.h"
#include "samplers/cpu/tasks.h"
#include "samplers/cpu/unwind.h"

/* Samples as wire records, in the sampler's spool. */
struct cpu_out {
    struct spool_out spool;
    struct prof_names stacks; /* process and frames -> id */
    uint64_t samples;
};

struct cpu_sample {
    enum wire_cpu_kind kind;
    uint64_t start_ns, duration_ns, weight_ns;
    uint32_t tid, cpu; /* cpu: WIRE_CPU_UNKNOWN = not known */
};

bool cpu_out_open(struct cpu_out *out, const char *directory);

void cpu_out_close(struct cpu_out *out);

struct cpu_records {
    const struct cpu_perf *perf;
    const struct control_page *control; /* NULL = everything is to be recorded */
    struct cpu_tasks tasks;
    struct cpu_unwinder unwinder;
    struct cpu_out out;
    struct cpu_pythons pythons;
    PROF_ARRAY(uint32_t) sampled; /* tids: page faults are to be counted */
    uint64_t lost;                /* records that found no room in the kernel's buffers */
    uint64_t throttled;           /* times that the kernel held the events back */
};

/* A record came out of the kernel's buffers, before those of other processors are known. */
void cpu_records_note(struct cpu_records *records, const struct perf_event_header *record);

/* Count the page faults of the threads that were sampled since the last call. */
void cpu_records_count_faults(struct cpu_records *records);

/* In the order of their times. */
void cpu_records_take(struct cpu_records *records, const struct perf_event_header *record,
                      uint64_t time_ns);

/* Nothing more comes: what still does not run is written as it stands. */
void cpu_records_end(struct cpu_records *records, uint64_t now_ns);

#endif
