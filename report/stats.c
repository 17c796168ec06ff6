/* The table of statistics: adding one is a row here, its columns and its walk. And the texts that
 * rows of several of them have in common. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/stats_columns.h"

#define STAT(name, function, title, summary)                                                       \
    {                                                                                              \
        name, title, summary, prof_stat_##function##_columns, prof_stat_##function, NULL           \
    }
#define STAT_BY(name, function, title, summary, needs)                                             \
    {                                                                                              \
        name, title, summary " (run " needs ")", prof_stat_##function##_columns,                   \
            prof_stat_##function, needs                                                            \
    }

/* clang-format off */
const struct prof_report_stat prof_report_stats[] = {
    STAT("cuda_api_sum", api_sum, "CUDA API Summary",
         "API calls by name"),
    STAT("cuda_api_trace", api_trace, "CUDA API Trace",
         "every API call in order of time"),
    STAT("cuda_gpu_kern_sum", kern_sum, "CUDA GPU Kernel Summary",
         "kernels by name"),
    STAT("cuda_gpu_kern_gb_sum", kern_gb_sum, "CUDA GPU Kernel/Grid/Block Summary",
         "kernels by name, grid and block"),
    STAT("cuda_gpu_mem_time_sum", mem_time_sum, "CUDA GPU MemOps Summary (by Time)",
         "copies and fills by direction: how long they took"),
    STAT("cuda_gpu_mem_size_sum", mem_size_sum, "CUDA GPU MemOps Summary (by Size)",
         "copies and fills by direction: how much they moved"),
    STAT("cuda_gpu_sum", gpu_sum, "CUDA GPU Summary (Kernels/MemOps)",
         "everything that ran on devices, by name"),
    STAT("cuda_api_gpu_sum", api_gpu_sum, "CUDA Summary (API/Kernels/MemOps)",
         "API calls and everything that ran on devices, by name"),
    STAT("cuda_gpu_trace", gpu_trace, "CUDA GPU Trace",
         "every kernel, copy and fill in order of time"),
    STAT("cuda_kern_exec_sum", kern_exec_sum, "CUDA Kernel Launch & Exec Time Summary",
         "launches by thread, device, call and kernel: total (T), call (A), waiting in the queue "
         "(Q), kernel (K)"),
    STAT("cuda_kern_exec_trace", kern_exec_trace, "CUDA Kernel Launch & Exec Time Trace",
         "every launch with its call, its time in the queue and its kernel"),
    STAT("nvtx_sum", nvtx_sum, "NVTX Range Summary",
         "NVTX ranges by name and style, on the host"),
    STAT("nvtx_pushpop_sum", nvtx_pushpop_sum, "NVTX Push/Pop Range Summary",
         "NVTX push/pop ranges by name, on the host"),
    STAT("nvtx_startend_sum", nvtx_startend_sum, "NVTX Start/End Range Summary",
         "NVTX start/end ranges by name, on the host"),
    STAT("nvtx_pushpop_trace", nvtx_pushpop_trace, "NVTX Push/Pop Range Trace",
         "every NVTX push/pop range in order of time"),
    STAT("nvtx_gpu_proj_sum", nvtx_gpu_proj_sum, "NVTX GPU Projection Summary",
         "NVTX ranges by name: from the first start to the last end of the device work called in "
         "them"),
    STAT("nvtx_gpu_proj_trace", nvtx_gpu_proj_trace, "NVTX GPU Projection Trace",
         "every NVTX range with device work, as the device saw it"),
    STAT("nvtx_kern_sum", nvtx_kern_sum, "NVTX GPU Kernel Summary",
         "kernels by the NVTX ranges around their launch"),
    STAT_BY("pytorch_sum", pytorch_sum, "PyTorch Operator Summary",
            "device work of PyTorch's operators by the line that called them, the backward pass "
            "included", "--pytorch --stacks, of a program that uses PyTorch"),
    STAT_BY("stack_api_sum", stack_api_sum, "API Calls by Host Stack",
            "API calls by name and by the host stack that made them: where the host launches, "
            "allocates and waits", "--stacks"),
    STAT_BY("stack_kern_sum", stack_kern_sum, "Kernels and Copies by Host Stack (Bottom-up)",
            "kernels, copies and fills by name and by the host stack that asked for them",
            "--stacks"),
    STAT_BY("stack_line_sum", stack_line_sum, "Device Work by Host Line (Top-down)",
            "lines of the program by the device work asked for through them and by them",
            "--stacks"),
    STAT("um_sum", um_sum, "Unified Memory Analysis Summary",
         "unified memory by address: what moved, and page faults"),
    STAT("um_total_sum", um_total_sum, "Unified Memory Totals Summary",
         "unified memory in all"),
    {0},
};
/* clang-format on */

const struct prof_report_stat *prof_report_stat_find(const char *name, size_t length)
{
    for (const struct prof_report_stat *stat = prof_report_stats; stat->name; stat++) {
        if (strlen(stat->name) == length && !memcmp(stat->name, name, length))
            return stat;
    }
    return NULL;
}

struct prof_report_value prof_report_stat_value(const struct prof_report_data *data,
                                                const struct prof_report_column *column,
                                                const void *row)
{
    struct prof_report_value value = prof_report_value(data, column, row);
    double scale = column->unit == PROF_UNIT_SHARE   ? 100
                   : column->unit == PROF_UNIT_BYTES ? 1e-6
                   : column->unit == PROF_UNIT_RATE  ? 1e-6
                                                     : 1;
    if (scale == 1 || (value.kind != PROF_VALUE_INT && value.kind != PROF_VALUE_REAL))
        return value;
    double real = value.kind == PROF_VALUE_INT ? (double)value.integer : value.real;
    /* Dividing keeps 167772160 bytes at 167.77216 MB; 1e-6 has no exact double. */
    value.real = scale > 1 ? real * scale : real / 1e6;
    value.kind = PROF_VALUE_REAL;
    return value;
}

/* ---- texts ----------------------------------------------------------------------------------- */

const char *prof_stat_print(struct prof_stat_text *text, const char *format, ...)
{
    va_list first, again;
    va_start(first, format);
    va_copy(again, first);
    int length = vsnprintf(text->text, text->room, format, first);
    va_end(first);
    if (length >= 0 && (size_t)length >= text->room) {
        size_t room = (size_t)length + 1;
        char *grown = realloc(text->text, room + room / 2);
        if (grown) {
            text->text = grown;
            text->room = room + room / 2;
            vsnprintf(text->text, text->room, format, again);
        } else {
            length = -1;
        }
    }
    va_end(again);
    return length < 0 ? NULL : text->text;
}

bool prof_stat_range_name(struct prof_stat_text *text, const char *domain, const char *name,
                          const char **out)
{
    *out = name ? prof_stat_print(text, "%s:%s", domain ? domain : "", name) : NULL;
    return !name || *out;
}

const char *prof_stat_style(enum prof_range_style style)
{
    return style == PROF_RANGE_PUSH_POP ? "PushPop" : "StartEnd";
}

/* In the order of transfer.kind. */
#define OPERATIONS(api)                                                                            \
    {                                                                                              \
        "[" api " memcpy Unknown]", "[" api " memcpy Host-to-Device]",                             \
            "[" api " memcpy Device-to-Host]", "[" api " memcpy Host-to-Array]",                   \
            "[" api " memcpy Array-to-Host]", "[" api " memcpy Array-to-Array]",                   \
            "[" api " memcpy Array-to-Device]", "[" api " memcpy Device-to-Array]",                \
            "[" api " memcpy Device-to-Device]", "[" api " memcpy Host-to-Host]",                  \
            "[" api " memcpy Peer-to-Peer]", "[" api " map]", "[" api " unmap]",                   \
            "[" api " migrate]", "[" api " memset]",                                               \
    }
enum { COPY_KINDS = 14, MEMSET = COPY_KINDS };

const char *prof_stat_operation(const char *api, int kind)
{
    static const char *const cuda[] = OPERATIONS("CUDA"), *const opencl[] = OPERATIONS("OpenCL"),
                             *const other[] = OPERATIONS("GPU");
    const char *const *names = api && !strcmp(api, "cuda")     ? cuda
                               : api && !strcmp(api, "opencl") ? opencl
                                                               : other;
    if (kind == PROF_COPY_MEMSET)
        return names[MEMSET];
    return names[kind > 0 && kind < COPY_KINDS ? kind : 0];
}

const char *prof_stat_xyz(const int64_t xyz[3], char *out, size_t size)
{
    for (int i = 0; i < 3; i++) {
        if (xyz[i] == PROF_UNKNOWN)
            return NULL;
    }
    snprintf(out, size, "%4lld %4lld %4lld", (long long)xyz[0], (long long)xyz[1],
             (long long)xyz[2]);
    return out;
}

struct prof_report_value prof_stat_pid(const struct prof_report_data *data, int64_t process)
{
    const struct prof_process *its = prof_process(data->capture, process);
    return prof_report_int(its ? its->pid : PROF_UNKNOWN);
}

struct prof_report_value prof_stat_tid(const struct prof_report_data *data, int64_t thread)
{
    const struct prof_thread *its = prof_thread(data->capture, thread);
    return prof_report_int(its ? its->tid : PROF_UNKNOWN);
}

struct prof_report_value prof_stat_ordinal(const struct prof_report_data *data, int64_t device)
{
    const struct prof_device *its = prof_device(data->capture, device);
    return prof_report_int(its ? its->ordinal : PROF_UNKNOWN);
}
