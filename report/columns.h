/* For the files that describe tables (tables.c, tables_more.c): how a column says where its value
 * lies. */
#ifndef PERFKIT_REPORT_COLUMNS_H
#define PERFKIT_REPORT_COLUMNS_H

#include "report/table.h"

/* clang-format off */
#define INT64(key, title, unit, rank, type, member)                                                \
    {key, title, PROF_UNIT_##unit, rank, PROF_STORED_INT64, offsetof(struct type, member), NULL}
#define REAL(key, title, unit, rank, type, member)                                                 \
    {key, title, PROF_UNIT_##unit, rank, PROF_STORED_DOUBLE, offsetof(struct type, member), NULL}
#define STRING(key, title, unit, rank, type, member)                                               \
    {key, title, PROF_UNIT_##unit, rank, PROF_STORED_STRING, offsetof(struct type, member), NULL}
#define COMPUTED(key, title, unit, rank, function)                                                 \
    {key, title, PROF_UNIT_##unit, rank, PROF_STORED_COMPUTED, 0, function}
/* clang-format on */

/* The distribution of a duration, as every table of times has it. */
#define TIMES(type)                                                                                \
    INT64("total_ns", "Total", NS, 1, type, duration_ns.sum),                                      \
        REAL("share", "Share", SHARE, 1, type, share),                                             \
        REAL("wall_share", "Of wall", SHARE, 3, type, wall_share),                                 \
        INT64("count", "Count", COUNT, 1, type, duration_ns.count),                                \
        REAL("average_ns", "Average", NS, 2, type, duration_ns.mean),                              \
        REAL("median_ns", "Median", NS, 5, type, duration_ns.median),                              \
        INT64("min_ns", "Min", NS, 7, type, duration_ns.min),                                      \
        INT64("max_ns", "Max", NS, 6, type, duration_ns.max),                                      \
        REAL("p95_ns", "p95", NS, 0, type, duration_ns.p95),                                       \
        REAL("p99_ns", "p99", NS, 0, type, duration_ns.p99),                                       \
        REAL("stddev_ns", "StdDev", NS, 0, type, duration_ns.stddev),                              \
        REAL("quantile_error", "Quantile error", SHARE, 0, type, duration_ns.quantile_error)

static inline struct prof_report_value prof_report_text(const char *text)
{
    return (struct prof_report_value){.kind = text ? PROF_VALUE_TEXT : PROF_VALUE_NONE,
                                      .text = text};
}

static inline struct prof_report_value prof_report_int(int64_t value)
{
    return (struct prof_report_value){
        .kind = value == PROF_UNKNOWN ? PROF_VALUE_NONE : PROF_VALUE_INT, .integer = value};
}

static inline struct prof_report_value prof_report_device_name(const struct prof_report_data *data,
                                                               int64_t id)
{
    const struct prof_device *device = prof_device(data->capture, id);
    return prof_report_text(device && device->name ? device->full_name : NULL);
}

/* What shares of wall time are of, where several devices add up; behind `used` bytes of a table's
 * totals. tables.c. */
void prof_report_say_wall(const struct prof_report_data *data, char *out, size_t size, size_t used);

#define ROWS(type, name_)                                                                          \
    .columns = name_##_columns, .row_bytes = sizeof(struct type), .rows = name_##_rows

/* tables_more.c, tables_roofline.c */
#define PROF_REPORT_MORE(name)                                                                     \
    extern const struct prof_report_column name##_columns[];                                       \
    const void *name##_rows(const struct prof_report_data *data, size_t *count)
PROF_REPORT_MORE(prof_report_graph);
PROF_REPORT_MORE(prof_report_overhead);
PROF_REPORT_MORE(prof_report_migration);
PROF_REPORT_MORE(prof_report_jit);
PROF_REPORT_MORE(prof_report_pool);
PROF_REPORT_MORE(prof_report_stream);
PROF_REPORT_MORE(prof_report_context);
PROF_REPORT_MORE(prof_report_thread);
/* tables_lines.c */
PROF_REPORT_MORE(prof_report_line);
void prof_report_line_totals(const struct prof_report_data *data, char *out, size_t size);
/* tables_cpu.c */
PROF_REPORT_MORE(prof_report_host);
PROF_REPORT_MORE(prof_report_host_thread);
void prof_report_host_totals(const struct prof_report_data *data, char *out, size_t size);
/* tables_ranks.c */
PROF_REPORT_MORE(prof_report_rank);
PROF_REPORT_MORE(prof_report_collective);
PROF_REPORT_MORE(prof_report_late);
PROF_REPORT_MORE(prof_report_iteration);
PROF_REPORT_MORE(prof_report_difference);
PROF_REPORT_MORE(prof_report_link);
PROF_REPORT_MORE(prof_report_port);
bool prof_report_rank_worth(const struct prof_report_data *data);
bool prof_report_link_worth(const struct prof_report_data *data);
void prof_report_rank_totals(const struct prof_report_data *data, char *out, size_t size);
void prof_report_collective_totals(const struct prof_report_data *data, char *out, size_t size);
/* tables_counters.c */
PROF_REPORT_MORE(prof_report_counter);
PROF_REPORT_MORE(prof_report_counter_value);
PROF_REPORT_MORE(prof_report_exact);
void prof_report_counter_totals(const struct prof_report_data *data, char *out, size_t size);
bool prof_report_counter_value_worth(const struct prof_report_data *data);
PROF_REPORT_MORE(prof_report_roofline);
PROF_REPORT_MORE(prof_report_roofline_config);
PROF_REPORT_MORE(prof_report_roofline_range);
PROF_REPORT_MORE(prof_report_ceiling);
bool prof_report_roofline_worth(const struct prof_report_data *data);
bool prof_report_roofline_config_worth(const struct prof_report_data *data);
bool prof_report_roofline_range_worth(const struct prof_report_data *data);
bool prof_report_never_worth(const struct prof_report_data *data);
void prof_report_roofline_totals(const struct prof_report_data *data, char *out, size_t size);
void prof_report_roofline_range_totals(const struct prof_report_data *data, char *out, size_t size);
bool prof_report_stream_worth(const struct prof_report_data *data);
bool prof_report_context_worth(const struct prof_report_data *data);
bool prof_report_thread_worth(const struct prof_report_data *data);
void prof_report_graph_totals(const struct prof_report_data *data, char *out, size_t size);
void prof_report_overhead_totals(const struct prof_report_data *data, char *out, size_t size);
void prof_report_migration_totals(const struct prof_report_data *data, char *out, size_t size);
void prof_report_jit_totals(const struct prof_report_data *data, char *out, size_t size);

#endif
