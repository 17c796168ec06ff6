/* The table of statistics, made of the list in stats_columns.h: adding one is a row there, its
 * columns and its walk. And the texts that rows of several of them have in common. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/stats_columns.h"

#define STAT(name, function, title, summary)                                                       \
    {#name, title, summary, prof_stat_##function##_columns, prof_stat_##function, NULL},
#define STAT_BY(name, function, title, summary, needs)                                             \
    {#name,                                                                                        \
     title,                                                                                        \
     summary " (run " needs ")",                                                                   \
     prof_stat_##function##_columns,                                                               \
     prof_stat_##function,                                                                         \
     needs},

const struct prof_report_stat prof_report_stats[] = {PROF_STATS(STAT, STAT_BY){0}};

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
