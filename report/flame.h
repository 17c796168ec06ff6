/* The flame graph as profile formats want it: a list of frames, and samples that name them. */
#ifndef PERFKIT_REPORT_FLAME_H
#define PERFKIT_REPORT_FLAME_H

#include "libprof/include/prof.h"
#include "report/report.h"

struct prof_report_frame {
    const char *name; /* never NULL; bytes as the program gave them */
    const char *kind; /* "NVTX range", "API call", "kernel", ... */
    const char *file; /* of the source, or of the object; else as `kind` */
    int64_t line;     /* PROF_UNKNOWN = none */
};

/* Frames of a stack at most; deeper ones lose their outermost frames. */
#define PROF_REPORT_STACK 512

/* What a stack weighs. Those of the host follow: samples of the processors (perfkit run
 * --cpu-sample), whose stacks are beside those of device work. */
enum prof_report_weight {
    PROF_REPORT_WEIGHT_COUNT,
    PROF_REPORT_WEIGHT_DEVICE_NS,
    PROF_REPORT_WEIGHT_BYTES,
    PROF_REPORT_WEIGHT_IDLE_NS,
    PROF_REPORT_WEIGHT_CPU_NS,
    PROF_REPORT_WEIGHT_BLOCKED_NS,
};

struct prof_report_samples {
    struct prof_flame flame; /* of device work every event weighs 1; behind it the host's */
    size_t cpu, blocked;     /* where their nodes begin in it; all from `blocked` on are of that */
    bool has_host;
    struct prof_report_frame *frames; /* distinct by name and kind; of the host's stacks by line */
    size_t frame_count;
    char **process_names; /* per process of the capture: its frame's name, unique by its pid */
    size_t process_count;
    uint32_t *frame_of; /* per node of `flame`; the root has none */
    uint32_t *nodes;    /* those where stacks end, stacks with a common beginning side by side */
    size_t count;
};

/* Free the result whatever the outcome. */
enum prof_status prof_report_samples(struct prof_capture *capture,
                                     const struct prof_report_options *options,
                                     struct prof_report_samples *samples, struct prof_error *err);
void prof_report_samples_free(struct prof_report_samples *samples);

int64_t prof_report_sample_weight(const struct prof_report_samples *samples, size_t index,
                                  enum prof_report_weight weight);

/* Frames of the stack that ends at samples->nodes[index], innermost first; returns how many. */
size_t prof_report_sample_stack(const struct prof_report_samples *samples, size_t index,
                                uint32_t frames[PROF_REPORT_STACK]);

#endif
