/* Everything the summary formats show, computed once: text, json, csv, markdown and the head of the
 * HTML page are different words for the same numbers. */
#ifndef PERFKIT_REPORT_DATA_H
#define PERFKIT_REPORT_DATA_H

#include "libprof/include/prof_cpu.h"
#include "libprof/include/prof_stack.h"
#include "libprof/include/prof_stalls.h"
#include "libprof/include/prof_ranks.h"
#include "libprof/include/prof_findings.h"
#include "libprof/include/prof_iterations.h"
#include "libprof/include/prof_memory.h"
#include "report/report.h"

/* A gap of utilisation with its device, so that gaps are one flat table. */
struct prof_report_gap {
    int64_t device;
    struct prof_gap gap;
};

/* A state of a device in the time that was judged, so that waterfalls are one flat table. */
struct prof_report_state {
    int64_t device;
    enum prof_slice slice;
    int64_t ns;
};

/* A stream that did something, or that the program named. */
struct prof_report_stream {
    struct prof_stream stream;
    int64_t operations; /* kernels, whole graphs, copies, fills */
};

/* One counter of one kernel, so that they are one flat table. */
struct prof_report_counter_value {
    const struct prof_counter_row *row;
    const struct prof_counter *counter;
    const struct prof_counter_value *value;
};

/* What `perfkit report --memory` and the page's section on memory show: the memory profile, and the
 * lists that are parts of it. */

/* How many of a place's freed allocations lived so long. */
struct prof_report_lifetime {
    const struct prof_memory_place *place;
    double from_ns, to_ns; /* to: INFINITY for the last */
    int64_t count;
    double share; /* of the place's */
    struct prof_memory_longest longest;
};

/* One of those that held the memory when there was no room. */
struct prof_report_holder {
    const struct prof_memory_failure *failure;
    const struct prof_memory_site *site;
    int64_t bytes;
};

struct prof_report_memory {
    struct prof_memory_profile profile;
    struct prof_memory_site *held;  /* live at the peak, by bytes */
    struct prof_memory_site *kept;  /* never freed: leaks first, by growth; then by bytes */
    struct prof_memory_site *brief; /* by the time of their calls, then by number */
    size_t held_count, kept_count, brief_count;
    struct prof_report_lifetime *lifetimes;
    size_t lifetime_count;
    struct prof_report_holder *holders; /* of all failures, in order */
    size_t holder_count;
};

struct prof_report_data {
    struct prof_capture *capture; /* borrowed, outlives this */
    const struct prof_filter *filter;
    const struct prof_info *info;
    int64_t wall_ns;
    const struct prof_process *processes;
    size_t process_count;
    struct prof_trust trust;
    struct prof_findings findings;
    struct prof_utilisation utilisation;
    struct prof_report_gap *gaps; /* all devices, longest first */
    size_t gap_count;
    struct prof_report_state *states; /* device by device, longest first; none without time */
    size_t state_count;
    struct prof_estimates estimates; /* none of a capture that is no sample */
    struct prof_kernel_summary kernels;
    struct prof_transfer_summary transfers;
    struct prof_api_summary api;
    struct prof_sync_summary waits;
    struct prof_range_summary ranges;
    struct prof_pytorch_part *pytorch_parts; /* of the rows of `ranges` */
    size_t pytorch_part_count;
    struct prof_pytorch_flop pytorch_flop; /* rows of `iterations` */
    struct prof_memory_summary memory;
    struct prof_activity_summary activities[PROF_ACTIVITIES];
    struct prof_pool_summary pools;
    struct prof_launch_lines lines;
    struct prof_cpu cpu;
    struct prof_roofline roofline;         /* of kernels */
    struct prof_roofline roofline_configs; /* empty when no kernel's work is known */
    struct prof_roofline roofline_ranges;
    struct prof_counter_summary counters; /* by launch configuration */
    struct prof_exact exact;              /* counts of single launches */
    struct prof_stalls stalls;
    struct prof_stall_row *stall_code; /* around the hottest instruction of the hottest kernels */
    size_t stall_code_count;
    struct prof_report_counter_value *counter_values;
    size_t counter_value_count;
    struct prof_report_stream *streams;
    size_t stream_count;
    struct prof_report_memory *usage; /* allocations by call path ; NULL unless requested */
    struct prof_ranks ranks;
    struct prof_iteration_list iterations; /* empty on the one screen */
};

#define PROF_REPORT_EXPLAINED 10 /* of the slow iterations */

/* Run the analyses. `data` may be freed whatever the outcome. */
enum prof_status prof_report_load(struct prof_capture *capture,
                                  const struct prof_report_options *options,
                                  struct prof_report_data *data, struct prof_error *err);
/* Only what the one screen of the text report shows: of a large capture a third of the time. The
 * rest of *data says nothing, as for a capture without it. */
enum prof_status prof_report_load_screen(struct prof_capture *capture,
                                         const struct prof_report_options *options,
                                         struct prof_report_data *data, struct prof_error *err);
/* Only what the report about ranks shows. */
enum prof_status prof_report_load_ranks(struct prof_capture *capture,
                                        const struct prof_report_options *options,
                                        struct prof_report_data *data, struct prof_error *err);
/* Only what the capture may be trusted with. */
enum prof_status prof_report_load_trust(struct prof_capture *capture,
                                        const struct prof_report_options *options,
                                        struct prof_report_data *data, struct prof_error *err);
void prof_report_unload(struct prof_report_data *data);

/* Into data->usage, freed by prof_report_unload. */
enum prof_status prof_report_load_memory(struct prof_report_data *data, struct prof_error *err);
void prof_report_unload_memory(struct prof_report_data *data);

/* "exit status 0", "killed by signal 9 (Killed)", "still running", "n/a"; out: at least 96 bytes.
 */
void prof_report_ending(const struct prof_info *info, char *out, size_t size);

/* Wall clock as "2026-08-01 02:13:05 UTC"; "n/a" when unknown; out: at least 32 bytes. */
void prof_report_when(int64_t realtime_ns, char *out, size_t size);

/* "39.3 kJ, 629 W on average": of a device whose energy is known. */
void prof_report_energy(const struct prof_utilisation_row *row, char *out, size_t size);

/* Executions of kernels by graphs. */
int64_t prof_report_kernels_in_graphs(const struct prof_report_data *data);

/* How a device is called everywhere: its title; "device n/a" for NULL. */
static inline const char *prof_report_device_label(const struct prof_device *device)
{
    return device ? device->title : "device n/a";
}

/* The program still runs: what has not been freed yet is no leak. */
static inline bool prof_report_is_live(const struct prof_info *info)
{
    return info->state == PROF_STATE_RECORDING || info->state == PROF_STATE_CLOSING;
}

/* A kept copy of a recording that went on. */
static inline bool prof_report_ran_on(const struct prof_info *info)
{
    return info->state == PROF_STATE_KEPT && info->duration_ns == PROF_UNKNOWN;
}

#define PROF_REPORT_STEPS 6
#define PROF_REPORT_STEP_BYTES 400

/* Where to look next, from the facts in `data`: sentences, most important first. Returns how many
 * (at most PROF_REPORT_STEPS). Names inside are cleaned and shortened. */
size_t prof_report_next_steps(const struct prof_report_data *data,
                              char steps[PROF_REPORT_STEPS][PROF_REPORT_STEP_BYTES]);

#endif
