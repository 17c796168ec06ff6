/* Counters over time: the samples of a device summed up in spans of equal length. A share is the
 * sum of counts over the sum of what the peak allows in the cycles that passed, so that spans of
 * different clocks weigh right; see prof_counters.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/analysis/counters.h"
#include "libprof/analysis/group.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_counters.h"

#define MOST_SOURCES 64
#define LEAST_POINTS 16
#define SAMPLE_COLUMNS 3 /* before the values */

struct slot {
    const char *name, *unit; /* NULL = nothing */
    enum prof_counter_kind kind;
    int clock; /* slot, -1 = none */
    double peak;
};

struct span {
    int64_t start_ns, end_ns, sampled_ns; /* sampled_ns 0: no sample */
    double sums[WIRE_COUNTER_SLOTS];      /* of levels: times the time */
    double peaks[WIRE_COUNTER_SLOTS];
};

struct source {
    int64_t id, physical, ordinal;
    struct slot slots[WIRE_COUNTER_SLOTS];
    struct span *spans;
};

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    PROF_ARRAY(struct source) sources;
    int64_t begin_ns, span_ns;
    size_t spans;
};

/* ---- what is counted ------------------------------------------------------------------------- */

static bool add_line_source(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    const char *uuid = (const char *)sqlite3_column_text(row, 1);
    if (w->sources.count >= MOST_SOURCES)
        return true;
    struct source source = {.id = prof_column_id(row, 0),
                            .physical = counter_physical(w->capture, uuid),
                            .ordinal = prof_column_int(row, 2)};
    const struct prof_device *wanted = prof_device(w->capture, w->scope.filter.device);
    if (w->scope.filter.device && (!wanted || wanted->physical != source.physical))
        return true;
    return prof_array_push(&w->sources, source);
}

static struct source *find_line_source(struct work *w, int64_t id)
{
    for (size_t i = 0; i < w->sources.count; i++)
        if (w->sources.data[i].id == id)
            return &w->sources.data[i];
    return NULL;
}

static bool add_line_counter(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    struct source *source = find_line_source(w, prof_column_id(row, 0));
    int64_t number = prof_column_int(row, 1), clock = prof_column_int(row, 5);
    if (!source || number < 0 || number >= WIRE_COUNTER_SLOTS)
        return true;
    int kind = sqlite3_column_int(row, 4);
    struct slot *slot = &source->slots[number];
    *slot = (struct slot){
        .name = counter_text(w->capture, row, 2),
        .unit = counter_text(w->capture, row, 3),
        .kind = kind >= PROF_COUNTER_SUM && kind <= PROF_COUNTER_MEAN ? (enum prof_counter_kind)kind
                                                                      : PROF_COUNTER_SUM,
        .clock = clock >= 0 && clock < WIRE_COUNTER_SLOTS ? (int)clock : -1,
        .peak = sqlite3_column_double(row, 6), /* NULL is 0 */
    };
    return true;
}

/* ---- samples --------------------------------------------------------------------------------- */

static enum prof_counter_scale scale_of(const struct source *source, const struct slot *slot)
{
    if (slot->kind == PROF_COUNTER_MEAN)
        return PROF_COUNTER_LEVEL;
    return slot->clock >= 0 && source->slots[slot->clock].name && slot->peak > 0
               ? PROF_COUNTER_SHARE
               : PROF_COUNTER_RATE;
}

/* Of sums over `ns` of sampled time; NaN where the device's clock did not move. */
static double slot_value(const struct source *source, size_t i, const double *sums, double ns)
{
    const struct slot *slot = &source->slots[i];
    switch (scale_of(source, slot)) {
    case PROF_COUNTER_SHARE:
        return sums[slot->clock] > 0 ? sums[i] / (slot->peak * sums[slot->clock]) : NAN;
    case PROF_COUNTER_LEVEL:
        return sums[i] / ns;
    default:
        return sums[i] * 1e9 / ns;
    }
}

static void add_values(const struct source *source, struct span *span, sqlite3_stmt *row, double ns)
{
    double sums[WIRE_COUNTER_SLOTS];
    for (size_t i = 0; i < WIRE_COUNTER_SLOTS; i++) {
        double value = sqlite3_column_double(row, SAMPLE_COLUMNS + (int)i); /* NULL is 0 */
        sums[i] = source->slots[i].kind == PROF_COUNTER_MEAN ? value * ns : value;
        span->sums[i] += sums[i];
    }
    for (size_t i = 0; i < WIRE_COUNTER_SLOTS; i++) {
        double value = source->slots[i].name ? slot_value(source, i, sums, ns) : NAN;
        if (isfinite(value) && value > span->peaks[i])
            span->peaks[i] = value;
    }
}

static bool add_line_sample(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    struct source *source = find_line_source(w, prof_column_id(row, 0));
    int64_t start = prof_column_int(row, 1), duration = prof_column_int(row, 2);
    int64_t end = prof_add(start, duration);
    if (!source || start == PROF_UNKNOWN || duration <= 0 || !prof_scope_time(&w->scope, start))
        return true;
    int64_t at = prof_subtract(start, w->begin_ns);
    if (at < 0 || (size_t)(at / w->span_ns) >= w->spans)
        return true;
    if (!source->spans)
        source->spans = calloc(w->spans, sizeof *source->spans);
    if (!source->spans)
        return false;
    struct span *span = &source->spans[at / w->span_ns];
    if (!span->sampled_ns || start < span->start_ns)
        span->start_ns = start;
    if (!span->sampled_ns || end > span->end_ns)
        span->end_ns = end;
    span->sampled_ns = prof_add(span->sampled_ns, duration);
    add_values(source, span, row, (double)duration);
    return true;
}

static void set_spans(struct work *w, size_t max_points)
{
    int64_t end = w->scope.by_time ? w->scope.end_ns : prof_end_ns(w->capture);
    if (end == INT64_MAX || end == PROF_UNKNOWN)
        end = prof_end_ns(w->capture);
    w->begin_ns = w->scope.by_time ? w->scope.begin_ns : 0;
    w->spans = max_points < LEAST_POINTS ? LEAST_POINTS : max_points;
    int64_t length = end == PROF_UNKNOWN ? 0 : prof_subtract(end, w->begin_ns);
    w->span_ns = length > 0 ? length / (int64_t)w->spans + 1 : 1;
}

static enum prof_status read_counter_samples(struct work *w, struct prof_error *err)
{
    char sql[512];
    snprintf(sql, sizeof sql, "SELECT counter_device, start, duration");
    for (unsigned i = 0; i < WIRE_COUNTER_SLOTS; i++)
        prof_append(sql, sizeof sql, ", c%u", i);
    prof_append(sql, sizeof sql, " FROM counter_sample");
    enum prof_status status =
        prof_scan(w->capture, "SELECT id, uuid, ordinal FROM counter_device ORDER BY id",
                  add_line_source, w, err);
    if (!status && w->sources.count)
        status = prof_scan(w->capture,
                           "SELECT counter_device, slot, name, unit, kind, clock, peak "
                           "FROM counter ORDER BY id",
                           add_line_counter, w, err);
    if (!status && w->sources.count)
        status = prof_scan(w->capture, sql, add_line_sample, w, err);
    return status;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The last sample of a span may reach into the next: points stay apart. */
static bool fill_points(const struct work *w, const struct source *source, size_t slot,
                        struct prof_counter_line *line)
{
    line->points = calloc(w->spans, sizeof *line->points);
    for (size_t i = 0; line->points && i < w->spans; i++) {
        const struct span *span = &source->spans[i];
        double value =
            span->sampled_ns ? slot_value(source, slot, span->sums, (double)span->sampled_ns) : NAN;
        int64_t before = line->count ? line->points[line->count - 1].end_ns : INT64_MIN;
        int64_t start = span->start_ns > before ? span->start_ns : before;
        if (isfinite(value) && span->end_ns > start)
            line->points[line->count++] =
                (struct prof_counter_point){start, span->end_ns, value, span->peaks[slot]};
    }
    return line->points != NULL;
}

static bool add_source_lines(const struct work *w, const struct source *source,
                             struct prof_counter_lines *result)
{
    for (size_t i = 0; source->spans && i < WIRE_COUNTER_SLOTS; i++) {
        const struct slot *slot = &source->slots[i];
        if (!slot->name)
            continue;
        struct prof_counter_line *grown =
            realloc(result->rows, (result->count + 1) * sizeof *grown);
        if (!grown)
            return false;
        result->rows = grown;
        struct prof_counter_line *line = &grown[result->count++];
        *line = (struct prof_counter_line){.name = slot->name,
                                           .unit = slot->unit,
                                           .device = source->physical,
                                           .ordinal = source->ordinal,
                                           .scale = scale_of(source, slot)};
        if (!fill_points(w, source, i, line))
            return false;
    }
    return true;
}

enum prof_status prof_counter_lines(struct prof_capture *capture, const struct prof_filter *filter,
                                    size_t max_points, struct prof_counter_lines *result,
                                    struct prof_error *err)
{
    struct work w = {.capture = capture};
    *result = (struct prof_counter_lines){0};
    enum prof_status status = prof_scope_open(&w.scope, capture, filter, err);
    if (!status) {
        set_spans(&w, max_points);
        status = read_counter_samples(&w, err);
    }
    for (size_t i = 0; !status && i < w.sources.count; i++)
        if (!add_source_lines(&w, &w.sources.data[i], result))
            status = prof_out_of_memory(err);
    for (size_t i = 0; i < w.sources.count; i++)
        free(w.sources.data[i].spans);
    prof_array_free(&w.sources);
    prof_scope_close(&w.scope);
    return status;
}

void prof_counter_lines_free(struct prof_counter_lines *result)
{
    for (size_t i = 0; i < result->count; i++)
        free(result->rows[i].points);
    free(result->rows);
    *result = (struct prof_counter_lines){0};
}
