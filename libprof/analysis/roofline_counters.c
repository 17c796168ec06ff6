/* See roofline_counters.h. */
#include <math.h>
#include <string.h>

#include "libprof/analysis/roofline.h"
#include "libprof/base/saturate.h"

/* The counters of a pipe; chips differ in which of them they have. */
static const struct {
    const char *counter;
    enum prof_ceiling_kind pipe;
    bool assumed;
} pipes[] = {
    {"fma", PROF_CEILING_FP32, false},
    {"fma_busy", PROF_CEILING_FP32, false},
    {"fma_heavy", PROF_CEILING_FP32, false},
    {"fp64", PROF_CEILING_FP64, false},
    {"fp64_instructions", PROF_CEILING_FP64, false},
    {"tensor", PROF_CEILING_TENSOR_FP16, true},
};

static uint64_t config_and_device_key(const struct prof_capture *capture,
                                      const struct prof_config *config, int64_t device)
{
    size_t c = prof_config_index(capture, config ? config->id : 0);
    size_t d = prof_index_of(&capture->devices, device);
    return (uint64_t)(uint32_t)c << 32 | (uint32_t)d;
}

enum prof_status prof_roofline_counters_open(struct prof_roofline_counters *counters,
                                             struct prof_capture *capture,
                                             const struct prof_filter *filter,
                                             enum prof_group group, struct prof_error *err)
{
    *counters = (struct prof_roofline_counters){.capture = capture};
    enum prof_status status = prof_counter_summary(capture, filter, group, &counters->summary, err);
    for (size_t i = 0; !status && group == PROF_BY_CONFIG && i < counters->summary.count; i++) {
        const struct prof_counter_row *row = &counters->summary.rows[i];
        if (!prof_map_put(&counters->by_config,
                          config_and_device_key(capture, row->config, row->device), i))
            status = prof_out_of_memory(err);
    }
    return status;
}

void prof_roofline_counters_close(struct prof_roofline_counters *counters)
{
    prof_map_free(&counters->by_config);
    prof_counter_summary_free(&counters->summary);
}

static const struct prof_counter_row *find_row(const struct prof_roofline_counters *counters,
                                               const char *name, const struct prof_config *config,
                                               int64_t device)
{
    const struct prof_counter_summary *all = &counters->summary;
    if (config) {
        uint64_t *at = prof_map_get(&counters->by_config,
                                    config_and_device_key(counters->capture, config, device));
        return at ? &all->rows[*at] : NULL;
    }
    for (size_t i = 0; i < all->count; i++) {
        const struct prof_counter_row *row = &all->rows[i];
        if (row->device == device && row->name && name && strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

static const struct prof_counter_value *
roofline_counter_value(const struct prof_roofline_counters *counters,
                       const struct prof_counter_row *row, const char *name)
{
    int at = prof_counter_find(&counters->summary, name);
    return at < 0 ? NULL : &row->values[at];
}

static double roofline_counter_rate(const struct prof_roofline_counters *counters,
                                    const struct prof_counter_row *row, const char *name)
{
    const struct prof_counter_value *value = roofline_counter_value(counters, row, name);
    return value ? value->rate : NAN;
}

bool prof_roofline_counted(const struct prof_roofline_counters *counters, const char *name,
                           const struct prof_config *config, int64_t device,
                           struct prof_roofline_rates *rates)
{
    const struct prof_counter_row *row = find_row(counters, name, config, device);
    *rates = (struct prof_roofline_rates){
        .dram = NAN, .l2 = NAN, .pipe = PROF_CEILINGS, .pipe_share = NAN};
    if (!row || !row->known || row->joint || row->shared)
        return false;
    rates->dram = roofline_counter_rate(counters, row, "dram_read_bytes") +
                  roofline_counter_rate(counters, row, "dram_write_bytes");
    rates->l2 = roofline_counter_rate(counters, row, "l2_bytes");
    double busiest = -1;
    for (size_t i = 0; i < sizeof pipes / sizeof pipes[0]; i++) {
        const struct prof_counter_value *value =
            roofline_counter_value(counters, row, pipes[i].counter);
        if (!value || !(value->share > busiest))
            continue;
        rates->pipe = pipes[i].pipe;
        rates->pipe_assumed = pipes[i].assumed;
        rates->pipe_share = busiest = value->share;
    }
    /* Half precision in the same pipe, two numbers to an instruction. */
    if (rates->pipe == PROF_CEILING_FP32 && roofline_counter_rate(counters, row, "fma_fp16") >
                                                0.5 * roofline_counter_rate(counters, row, "fma"))
        rates->pipe = PROF_CEILING_FP16;
    return true;
}

static void count_roof(struct prof_roof *roof, double rate, int64_t ns)
{
    if (isnan(rate))
        return;
    roof->source = PROF_WORK_COUNTERS;
    roof->bytes = rate * (double)ns * 1e-9;
}

void prof_roofline_count(struct prof_roofline_point *point, struct prof_roofline_facts *facts,
                         const struct prof_roofline_rates *rates)
{
    if (!point->flop_source) { /* else the bytes are those of the launches whose FLOP are known */
        point->worked = point->count;
        point->worked_ns = point->time_ns;
    }
    count_roof(&point->roofs[PROF_ROOF_DRAM], rates->dram, point->worked_ns);
    count_roof(&point->roofs[PROF_ROOF_L2], rates->l2, point->worked_ns);
    /* exact counts know better than samples of pipes */
    if (point->flop_source == PROF_WORK_COUNTERS)
        return;
    facts->pipe_counted = rates->pipe != PROF_CEILINGS;
    if (facts->pipe_counted) {
        point->pipe = rates->pipe;
        point->pipe_assumed = rates->pipe_assumed;
        point->pipe_share = rates->pipe_share;
    }
}

/* ---- work that programs declare -------------------------------------------------------------- */

PROF_ORDER(by_declared_begin, struct prof_declaration, PROF_ASCENDING(thread),
           PROF_ASCENDING(begin))

/* NULL, and numbers that no work can be, are not known. */
static double amount(sqlite3_stmt *row, int column)
{
    double value =
        sqlite3_column_type(row, column) == SQLITE_NULL ? NAN : sqlite3_column_double(row, column);
    return value >= 0 && isfinite(value) ? value : NAN;
}

enum prof_status prof_declared_open(struct prof_declared *declared, struct prof_capture *capture,
                                    struct prof_error *err)
{
    *declared = (struct prof_declared){0};
    sqlite3_stmt *row;
    PROF_TRY(prof_query(capture,
                        "SELECT range.id, thread, start, duration, flop, bytes_read, bytes_written "
                        "FROM work JOIN range ON range.id = work.range",
                        &row, err));
    while (prof_row(row)) {
        struct prof_declaration *d = prof_array_add(&declared->list);
        if (!d) {
            sqlite3_finalize(row);
            return prof_out_of_memory(err);
        }
        int64_t begin = prof_column_int(row, 2), duration = prof_column_size(row, 3);
        *d = (struct prof_declaration){
            .range = prof_column_id(row, 0),
            .thread = prof_column_id(row, 1),
            .begin = begin,
            .end = duration == PROF_UNKNOWN ? INT64_MAX : prof_add(begin, duration),
            .flop = amount(row, 4),
            .bytes = amount(row, 5) + amount(row, 6),
        };
    }
    prof_array_sort(&declared->list, by_declared_begin);
    return prof_query_end(capture, row, err);
}

void prof_declared_close(struct prof_declared *declared)
{
    prof_array_free(&declared->list);
}

struct prof_declaration *prof_declared_at(struct prof_declared *declared, int64_t thread,
                                          int64_t call_ns)
{
    struct prof_declaration *list = declared->list.data;
    size_t low;
    PROF_FIND_FIRST(low, at, declared->list.count,
                    list[at].thread > thread ||
                        (list[at].thread == thread && list[at].begin > call_ns));
    struct prof_declaration *last = low ? &list[low - 1] : NULL;
    return last && last->thread == thread && call_ns < last->end ? last : NULL;
}

void prof_declared_launch(struct prof_declaration *d, uint32_t point, bool counted,
                          int64_t duration_ns)
{
    if (d->launches && d->point != point)
        d->mixed = true;
    d->point = point;
    d->launches++;
    if (!counted || duration_ns == PROF_UNKNOWN)
        d->incomplete = true;
    else
        d->duration_ns = prof_add(d->duration_ns, duration_ns);
}
