/* Statistics (--stats): tables under the names and columns of nsys' reports. For the files that
 * describe them: the list, columns, and the texts that rows have in common. Adding one is a row of
 * PROF_STATS, its columns and its walk; `--stats list`, all formats and docs/reference/stats.md
 * follow. */
#ifndef PERFKIT_REPORT_STATS_COLUMNS_H
#define PERFKIT_REPORT_STATS_COLUMNS_H

#include "libprof/include/prof_stats.h"
#include "report/columns.h"

/* clang-format off */
#define STAT_INT(heading, unit, type, member)                                                      \
    INT64(heading, heading, unit, 1, type, member)
#define STAT_REAL(heading, unit, type, member)                                                     \
    REAL(heading, heading, unit, 1, type, member)
#define STAT_TEXT(heading, type, member)                                                           \
    STRING(heading, heading, NAME, 1, type, member)
#define STAT_WORD(heading, type, member)                                                           \
    STRING(heading, heading, WORD, 1, type, member)
#define STAT_MAY(heading, unit, function)                                                          \
    COMPUTED(heading, heading, unit, 1, function, .blank = true)
#define STAT_MAY_INT(heading, unit, type, member)                                                  \
    PROF_COLUMN(heading, heading, unit, 1, PROF_STORED(INT64, type, member), .blank = true)
#define STAT_CHARS(heading, unit, type, member)                                                    \
    CHARS(heading, heading, unit, 1, type, member)
#define STAT_ID(heading, type, id, of, member)                                                     \
    BY_ID(INT64, heading, heading, NUMBER, 1, type, id, of, member)
#define STAT_MAY_ID(kind, heading, unit, type, id, of, member)                                     \
    PROF_COLUMN(heading, heading, unit, 1, OF_OBJECT(kind, type, id, of, member), .blank = true)
#define STAT_OF(heading, unit, function)                                                           \
    COMPUTED(heading, heading, unit, 1, function)
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

/* Bytes a second. */
static inline struct prof_report_value prof_stat_rate(int64_t bytes, int64_t ns)
{
    bool known = bytes != PROF_UNKNOWN && ns != PROF_UNKNOWN && ns > 0;
    return prof_report_real(known ? (double)bytes * 1e9 / (double)ns : (double)NAN);
}

/* "   4    1    1"; NULL when one of the three is not known. */
const char *prof_stat_xyz(const int64_t xyz[3], char *out, size_t size);

/* Every statistic: its name, the FUNCTION of its columns prof_stat_FUNCTION_columns and of its walk
 * prof_stat_FUNCTION, its title, what it is; BY: and the options of `perfkit run` that it takes. */
/* clang-format off */
#define PROF_STATS(STAT, BY)                                                                       \
    STAT(cuda_api_sum, api_sum, "CUDA API Summary",                                                \
         "API calls by name")                                                                      \
    STAT(cuda_api_trace, api_trace, "CUDA API Trace",                                              \
         "every API call in order of time")                                                        \
    STAT(cuda_gpu_kern_sum, kern_sum, "CUDA GPU Kernel Summary",                                   \
         "kernels by name")                                                                        \
    STAT(cuda_gpu_kern_gb_sum, kern_gb_sum, "CUDA GPU Kernel/Grid/Block Summary",                  \
         "kernels by name, grid and block")                                                        \
    STAT(cuda_gpu_mem_time_sum, mem_time_sum, "CUDA GPU MemOps Summary (by Time)",                 \
         "memcpys by direction, and memsets: how long they took")                                  \
    STAT(cuda_gpu_mem_size_sum, mem_size_sum, "CUDA GPU MemOps Summary (by Size)",                 \
         "memcpys by direction, and memsets: how much they moved")                                 \
    STAT(cuda_gpu_sum, gpu_sum, "CUDA GPU Summary (Kernels/MemOps)",                               \
         "everything that ran on devices, by name")                                                \
    STAT(cuda_api_gpu_sum, api_gpu_sum, "CUDA Summary (API/Kernels/MemOps)",                       \
         "API calls and everything that ran on devices, by name")                                  \
    STAT(cuda_gpu_trace, gpu_trace, "CUDA GPU Trace",                                              \
         "every kernel, memcpy and memset in order of time")                                       \
    STAT(cuda_kern_exec_sum, kern_exec_sum, "CUDA Kernel Launch & Exec Time Summary",              \
         "launches by thread, device, call and kernel: total (T), call (A), waiting in the queue " \
         "(Q), kernel (K)")                                                                        \
    STAT(cuda_kern_exec_trace, kern_exec_trace, "CUDA Kernel Launch & Exec Time Trace",            \
         "every launch with its call, its time in the queue and its kernel")                       \
    STAT(nvtx_sum, nvtx_sum, "NVTX Range Summary",                                                 \
         "NVTX ranges by name and style, on the host")                                             \
    STAT(nvtx_pushpop_sum, nvtx_pushpop_sum, "NVTX Push/Pop Range Summary",                        \
         "NVTX push/pop ranges by name, on the host")                                              \
    STAT(nvtx_startend_sum, nvtx_startend_sum, "NVTX Start/End Range Summary",                     \
         "NVTX start/end ranges by name, on the host")                                             \
    STAT(nvtx_pushpop_trace, nvtx_pushpop_trace, "NVTX Push/Pop Range Trace",                      \
         "every NVTX push/pop range in order of time")                                             \
    STAT(nvtx_gpu_proj_sum, nvtx_gpu_proj_sum, "NVTX GPU Projection Summary",                      \
         "NVTX ranges by name: from the first start to the last end of the device work called in " \
         "them")                                                                                   \
    STAT(nvtx_gpu_proj_trace, nvtx_gpu_proj_trace, "NVTX GPU Projection Trace",                    \
         "every NVTX range with device work, as the device saw it")                                \
    STAT(nvtx_kern_sum, nvtx_kern_sum, "NVTX GPU Kernel Summary",                                  \
         "kernels by the NVTX ranges around their launch")                                         \
    BY(pytorch_sum, pytorch_sum, "PyTorch Operator Summary",                                       \
       "device work of PyTorch's operators by the line that called them, the backward pass "       \
       "included", "--pytorch --stacks, of a program that uses PyTorch")                           \
    BY(stack_api_sum, stack_api_sum, "API Calls by Host Stack",                                    \
       "API calls by name and by the host stack that made them: where the host launches, "         \
       "allocates and waits", "--stacks")                                                          \
    BY(stack_kern_sum, stack_kern_sum, "Kernels and Copies by Host Stack (Bottom-up)",             \
       "kernels, memcpys and memsets by name and by the host stack that launched them",           \
       "--stacks")                                                                                 \
    BY(stack_line_sum, stack_line_sum, "Device Work by Host Line (Top-down)",                      \
       "lines of the program by the device work that they, and what they call, launched",               \
       "--stacks")                                                                                 \
    STAT(um_sum, um_sum, "Unified Memory Analysis Summary",                                        \
         "unified memory by address: what moved, and page faults")                                 \
    STAT(um_total_sum, um_total_sum, "Unified Memory Totals Summary",                              \
         "unified memory in all")
/* clang-format on */

#define PROF_STAT_DECLARE(name, function, ...)                                                     \
    extern const struct prof_report_column prof_stat_##function##_columns[];                       \
    enum prof_status prof_stat_##function(struct prof_report_row_walk *walk,                       \
                                          struct prof_error *err);
PROF_STATS(PROF_STAT_DECLARE, PROF_STAT_DECLARE)

/* A walk that is another with arguments. */
#define STAT_WALK(function, ...)                                                                   \
    enum prof_status prof_stat_##function(struct prof_report_row_walk *walk,                       \
                                          struct prof_error *err)                                  \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }

/* In the order of PROF_STATS, ended by one without a name. Static. */
extern const struct prof_report_table prof_report_stats[];

const struct prof_report_table *prof_report_stat_find(const char *name, size_t length);

#endif
