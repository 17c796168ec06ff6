/* For the files that describe statistics: columns, and the texts that rows have in common. */
#ifndef PERFKIT_REPORT_STATS_COLUMNS_H
#define PERFKIT_REPORT_STATS_COLUMNS_H

#include "libprof/include/prof_stats.h"
#include "report/columns.h"
#include "report/stats.h"

/* clang-format off */
#define STAT_INT(heading, unit, type, member)                                                      \
    INT64(heading, heading, unit, PROF_STAT_KNOWN, type, member)
#define STAT_REAL(heading, unit, type, member)                                                     \
    REAL(heading, heading, unit, PROF_STAT_KNOWN, type, member)
#define STAT_TEXT(heading, type, member)                                                           \
    STRING(heading, heading, NAME, PROF_STAT_KNOWN, type, member)
#define STAT_WORD(heading, type, member)                                                           \
    STRING(heading, heading, WORD, PROF_STAT_KNOWN, type, member)
#define STAT_MAY(heading, unit, function)                                                          \
    COMPUTED(heading, heading, unit, PROF_STAT_BLANK, function)
#define STAT_OF(heading, unit, function)                                                           \
    COMPUTED(heading, heading, unit, PROF_STAT_KNOWN, function)
/* clang-format on */

/* A distribution with the unit of its headings ("Avg (ns)"). */
#define STAT_SPREAD(prefix, unit, text, type, member)                                              \
    STAT_REAL(prefix "Avg (" text ")", unit, type, member.mean),                                   \
        STAT_REAL(prefix "Med (" text ")", unit, type, member.median),                             \
        STAT_INT(prefix "Min (" text ")", unit, type, member.min),                                 \
        STAT_INT(prefix "Max (" text ")", unit, type, member.max),                                 \
        STAT_REAL(prefix "StdDev (" text ")", unit, type, member.stddev)

/* Share, sum, number and distribution of durations; `row` leads to share and duration_ns. */
#define STAT_TIMES(counted, type, row)                                                             \
    STAT_REAL("Time (%)", SHARE, type, row.share),                                                 \
        STAT_INT("Total Time (ns)", NS, type, row.duration_ns.sum),                                \
        STAT_INT(counted, COUNT, type, row.duration_ns.count),                                     \
        STAT_SPREAD("", NS, "ns", type, row.duration_ns)

/* A text that is made for each row, in memory that is used again. */
struct prof_stat_text {
    char *text;
    size_t room;
};

/* NULL when out of memory. */
const char *prof_stat_print(struct prof_stat_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "DOMAIN:NAME", ":NAME" in the default domain; NULL for unknown names. False: out of memory. */
bool prof_stat_range_name(struct prof_stat_text *text, const char *domain, const char *name,
                          const char **out);

/* "PushPop", "StartEnd" */
const char *prof_stat_style(enum prof_range_style style);

/* "[CUDA memcpy Host-to-Device]", "[OpenCL memset]"; static. */
const char *prof_stat_operation(const char *api, int kind);

/* "   4    1    1"; NULL when one of the three is not known. */
const char *prof_stat_xyz(const int64_t xyz[3], char *out, size_t size);

struct prof_report_value prof_stat_pid(const struct prof_report_data *data, int64_t process);
struct prof_report_value prof_stat_tid(const struct prof_report_data *data, int64_t thread);
/* As the program counts devices. */
struct prof_report_value prof_stat_ordinal(const struct prof_report_data *data, int64_t device);

#define PROF_STAT(name)                                                                            \
    extern const struct prof_report_column prof_stat_##name##_columns[];                           \
    enum prof_status prof_stat_##name(struct prof_report_stat_walk *walk, struct prof_error *err)
PROF_STAT(api_sum);
PROF_STAT(api_trace);
PROF_STAT(kern_sum);
PROF_STAT(kern_gb_sum);
PROF_STAT(mem_time_sum);
PROF_STAT(mem_size_sum);
PROF_STAT(gpu_sum);
PROF_STAT(api_gpu_sum);
PROF_STAT(gpu_trace);
PROF_STAT(kern_exec_sum);
PROF_STAT(kern_exec_trace);
PROF_STAT(nvtx_sum);
PROF_STAT(nvtx_pushpop_sum);
PROF_STAT(nvtx_startend_sum);
PROF_STAT(nvtx_pushpop_trace);
PROF_STAT(nvtx_gpu_proj_sum);
PROF_STAT(nvtx_gpu_proj_trace);
PROF_STAT(nvtx_kern_sum);
PROF_STAT(pytorch_sum);
PROF_STAT(stack_api_sum);
PROF_STAT(stack_kern_sum);
PROF_STAT(stack_line_sum);
PROF_STAT(um_sum);
PROF_STAT(um_total_sum);

#endif
