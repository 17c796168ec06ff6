/* For the files that describe tables (tables_*.c): how a column says where its value lies. */
#ifndef PERFKIT_REPORT_COLUMNS_H
#define PERFKIT_REPORT_COLUMNS_H

#include <math.h>

#include "report/table.h"

/* The types that table.c reads a column of each storage as. */
#define PROF_IS(type, value) __builtin_types_compatible_p(__typeof__(value), type)
#define PROF_IS_INT64(value) (PROF_IS(int64_t, value) || PROF_IS(uint64_t, value))
#define PROF_IS_INT(value) PROF_IS(int, value)
#define PROF_IS_DOUBLE(value) PROF_IS(double, value)
#define PROF_IS_STRING(value) (PROF_IS(const char *, value) || PROF_IS(char *, value))
#define PROF_IS_CHARS(value) PROF_IS(char[], value)
#define PROF_IS_BOOL(value) PROF_IS(bool, value)
#define PROF_IS_XYZ(value) PROF_IS(int64_t[3], value)
#define PROF_IS_ID(value) PROF_IS(int64_t, value)

/* The offset of a member, which the compiler refuses where it is not of the storage's type. */
#define PROF_MEMBER_AT(kind, type, member)                                                         \
    (offsetof(type, member) + 0 * sizeof(struct {                                                  \
                                  char is_of_the_type;                                             \
                                  _Static_assert(PROF_IS_##kind(((type *)NULL)->member),           \
                                                 #member " is not stored as " #kind);              \
                              }))

/* clang-format off */
#define PROF_COLUMN(key_, title_, unit_, rank_, ...)                                               \
    {.key = key_, .title = title_, .unit = PROF_UNIT_##unit_, .rank = rank_, __VA_ARGS__}
#define PROF_STORED(kind, type, member)                                                            \
    .storage = PROF_STORED_##kind, .offset = PROF_MEMBER_AT(kind, struct type, member)
#define INT64(key, title, unit, rank, type, member)                                                \
    PROF_COLUMN(key, title, unit, rank, PROF_STORED(INT64, type, member))
#define REAL(key, title, unit, rank, type, member)                                                 \
    PROF_COLUMN(key, title, unit, rank, PROF_STORED(DOUBLE, type, member))
#define STRING(key, title, unit, rank, type, member)                                               \
    PROF_COLUMN(key, title, unit, rank, PROF_STORED(STRING, type, member))
#define CHARS(key, title, unit, rank, type, member)                                                \
    PROF_COLUMN(key, title, unit, rank, PROF_STORED(CHARS, type, member))
/* What a function says of the id. */
#define OF_ID(key, title, unit, rank, type, member, function)                                      \
    PROF_COLUMN(key, title, unit, rank, PROF_STORED(ID, type, member), .of_id = function)
#define BOOL(key, title, rank, type, member)                                                       \
    PROF_COLUMN(key, title, WORD, rank, PROF_STORED(BOOL, type, member))
/* Of what a pointer in the row leads to. */
#define THROUGH(kind, type, pointer, member)                                                       \
    .storage = PROF_STORED_##kind, .via = 1 + offsetof(struct type, pointer),                      \
    .offset = PROF_MEMBER_AT(kind, __typeof__(*((struct type *)NULL)->pointer), member)
#define INDIRECT(kind, key, title, unit, rank, type, pointer, member)                              \
    PROF_COLUMN(key, title, unit, rank, THROUGH(kind, type, pointer, member))
/* Of the process, thread, device, context or stream whose id a member is. */
#define OF_OBJECT(kind, type, id, of, member)                                                      \
    .storage = PROF_STORED_##kind, .object = PROF_OBJECT_##of,                                     \
    .via = 1 + PROF_MEMBER_AT(ID, struct type, id),                                                \
    .offset = PROF_MEMBER_AT(kind, struct prof_##of, member)
#define BY_ID(kind, key, title, unit, rank, type, id, of, member)                                  \
    PROF_COLUMN(key, title, unit, rank, OF_OBJECT(kind, type, id, of, member))
#define COMPUTED(key, title, unit, rank, ...)                                                      \
    PROF_COLUMN(key, title, unit, rank, .storage = PROF_STORED_COMPUTED, .compute = __VA_ARGS__)
/* clang-format on */

/* A struct prof_energy; left out where none is known. */
#define ENERGY(title, rank, type, member)                                                          \
    REAL("energy_j", title, JOULES, rank, type, member.joules),                                    \
        REAL("energy_low_j", "Energy at least", JOULES, 0, type, member.low),                      \
        REAL("energy_high_j", "Energy at most", JOULES, 0, type, member.high)

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

static inline struct prof_report_value prof_report_real(double value)
{
    return (struct prof_report_value){.kind = isfinite(value) ? PROF_VALUE_REAL : PROF_VALUE_NONE,
                                      .real = value};
}

static inline struct prof_report_value prof_report_device_name(const struct prof_report_data *data,
                                                               int64_t id)
{
    const struct prof_device *device = prof_device(data->capture, id);
    return prof_report_text(device && device->name ? device->full_name : NULL);
}

/* A computed value: an expression of `row`, and of `data` where it needs more. */
#define CELL(name, ...)                                                                            \
    static struct prof_report_value name(const struct prof_report_data *data, const void *row)     \
    {                                                                                              \
        (void)data, (void)row;                                                                     \
        return __VA_ARGS__;                                                                        \
    }

/* The same of a row of this struct, by a name for it. */
#define ROW_CELL(name, type, variable, ...)                                                        \
    static struct prof_report_value name(const struct prof_report_data *data, const void *row)     \
    {                                                                                              \
        const struct type *variable = row;                                                         \
        (void)data, (void)variable;                                                                \
        return __VA_ARGS__;                                                                        \
    }

/* What shares of wall time are of, where several devices add up; behind `used` bytes of a table's
 * totals. */
void prof_report_append_wall(const struct prof_report_data *data, char *out, size_t size);

/* The offset of a member that is a pointer, not an array. */
#define POINTER_AT(type, member)                                                                   \
    (offsetof(struct type, member) +                                                               \
     0 * sizeof(struct {                                                                           \
         char is_pointer;                                                                          \
         _Static_assert(sizeof((struct type *)NULL)->member == sizeof(void *), #member);           \
     }))

/* The rows of a table: an array that the report's data points to, and how many (a size_t). */
#define ROWS(type, name_, first, number)                                                           \
    .columns = name_##_columns, .row_bytes = sizeof(struct type),                                  \
    .rows_at = POINTER_AT(prof_report_data, first),                                                \
    .count_at = PROF_MEMBER_AT(INT64, struct prof_report_data, number)
/* Or NAME_rows. */
#define COMPUTED_ROWS(type, name_)                                                                 \
    .columns = name_##_columns, .row_bytes = sizeof(struct type), .rows = name_##_rows

/* Every table of a report, in the order in which it is shown: a new one is a word here and
 * prof_report_NAME_table in the file of its family. */
/* clang-format off */
#define PROF_REPORT_TABLES(TABLE)                                                                  \
    TABLE(devices) TABLE(gaps) TABLE(states) TABLE(predictions) TABLE(iteration_series) TABLE(slow_iterations) TABLE(ranks) TABLE(collectives) TABLE(late_ranks)     \
    TABLE(rank_links) TABLE(network) TABLE(rank_differences) TABLE(rank_iterations)                \
    TABLE(estimates) TABLE(kernels) TABLE(counters) TABLE(counter_values) TABLE(exact_counts)      \
    TABLE(stalls) TABLE(stall_lines) TABLE(stall_code) TABLE(roofline)                             \
    TABLE(roofline_configs) TABLE(roofline_ranges) TABLE(ceilings) TABLE(graphs) TABLE(lines)      \
    TABLE(transfers) TABLE(migrations) TABLE(api) TABLE(waits) TABLE(overhead) TABLE(jit)          \
    TABLE(ranges) TABLE(pytorch) TABLE(pytorch_flop) TABLE(host) TABLE(host_threads) TABLE(memory) TABLE(leaks) TABLE(pools) \
    TABLE(streams) TABLE(contexts) TABLE(threads) TABLE(processes) TABLE(balance)
/* clang-format on */

#define PROF_REPORT_DECLARE(name) extern const struct prof_report_table prof_report_##name##_table;
PROF_REPORT_TABLES(PROF_REPORT_DECLARE)
PROF_REPORT_DECLARE(kernel_configs) /* of the HTML page */

/* What `perfkit report --iterations` shows, each ended by NULL. */
extern const struct prof_report_table *const prof_report_iteration_tables[];
extern const struct prof_report_table *const prof_report_why_tables[];
/* And `perfkit report --memory`. */
extern const struct prof_report_table *const prof_report_memory_tables[];

#endif
