/* The lines of the timeline: live memory, and hardware counters where they were sampled. Each is
 * packed behind the events' columns as triples of time, value and most: from a time on the value
 * holds, and NOT_KNOWN where nothing was sampled. Shares travel as millionths. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "libprof/include/prof_counter_lines.h"
#include "report/html.h"

/* More than any screen is wide. */
#define MEMORY_POINTS 16000
#define COUNTER_POINTS 3000
#define NOT_KNOWN (-1)
#define SHARE_SCALE 1000000

static void put_counter_line_header(struct prof_json *json, const char *label, const char *unit,
                                    size_t points, int64_t scale)
{
    prof_json_object(json, NULL);
    prof_json_string(json, "label", label);
    prof_json_string(json, "unit", unit);
    prof_json_uint(json, "points", points);
    prof_json_int(json, "scale", scale);
    prof_json_end(json);
}

static void pack_point(struct prof_html_pack *pack, int64_t *time, int64_t at, int64_t value,
                       int64_t peak)
{
    prof_html_pack_int(pack, prof_subtract(at, *time));
    prof_html_pack_int(pack, value);
    prof_html_pack_int(pack, peak);
    *time = at;
}

static enum prof_status put_memory_line(struct prof_json *json, struct prof_html_pack *pack,
                                        const struct prof_report_data *data, struct prof_error *err)
{
    struct prof_memory_timeline memory;
    enum prof_status status =
        prof_memory_timeline(data->capture, data->filter, -1, MEMORY_POINTS, &memory, err);
    if (!status && memory.peak_bytes > 0) {
        int64_t time = 0;
        put_counter_line_header(json, "memory", "bytes", memory.count, 1);
        for (size_t i = 0; i < memory.count; i++)
            pack_point(pack, &time, memory.points[i].time_ns, memory.points[i].bytes,
                       memory.points[i].peak_bytes);
    }
    prof_memory_timeline_free(&memory);
    return status;
}

/* Whole numbers; what does not fit into one that the page can hold is its end. */
static int64_t round_scaled(double value, int64_t scale)
{
    double scaled = value * (double)scale;
    return scaled < 0 ? 0 : scaled > 9e15 ? (int64_t)9e15 : llround(scaled);
}

static const char *counter_line_unit(const struct prof_counter_line *line)
{
    bool bytes = line->unit && !strcmp(line->unit, "byte");
    return line->scale == PROF_COUNTER_SHARE ? "share"
           : line->scale == PROF_COUNTER_LEVEL
               ? line->unit && !strcmp(line->unit, "percent") ? "percent" : "number"
           : bytes ? "rate"
                   : "per second";
}

static void pack_counter(struct prof_html_pack *pack, const struct prof_counter_line *line,
                         int64_t scale)
{
    int64_t time = 0;
    for (size_t i = 0; i < line->count; i++) {
        const struct prof_counter_point *p = &line->points[i];
        bool last = i + 1 == line->count;
        pack_point(pack, &time, p->start_ns, round_scaled(p->value, scale),
                   round_scaled(p->peak, scale));
        if (last || line->points[i + 1].start_ns > p->end_ns)
            pack_point(pack, &time, p->end_ns, NOT_KNOWN, NOT_KNOWN);
    }
}

/* As many points as pack_counter packs: each, and one for each end of a stretch. */
static size_t points_of(const struct prof_counter_line *line)
{
    size_t points = line->count;
    for (size_t i = 0; i < line->count; i++)
        points += i + 1 == line->count || line->points[i + 1].start_ns > line->points[i].end_ns;
    return points;
}

static void counter_line_label(struct prof_capture *capture, const struct prof_counter_line *line,
                               char *out, size_t size)
{
    if (line->device)
        snprintf(out, size, "%s %s", prof_report_device_label(prof_device(capture, line->device)),
                 line->name);
    else
        snprintf(out, size, "GPU %lld %s", (long long)line->ordinal, line->name);
}

static enum prof_status put_counter_lines(struct prof_json *json, struct prof_html_pack *pack,
                                          const struct prof_report_data *data,
                                          struct prof_error *err)
{
    struct prof_counter_lines lines;
    enum prof_status status =
        prof_counter_lines(data->capture, data->filter, COUNTER_POINTS, &lines, err);
    for (size_t i = 0; !status && i < lines.count; i++) {
        const struct prof_counter_line *line = &lines.rows[i];
        int64_t scale = line->scale == PROF_COUNTER_SHARE ? SHARE_SCALE : 1;
        char label[256];
        if (!line->count)
            continue;
        counter_line_label(data->capture, line, label, sizeof label);
        put_counter_line_header(json, label, counter_line_unit(line), points_of(line), scale);
        pack_counter(pack, line, scale);
    }
    prof_counter_lines_free(&lines);
    return status;
}

enum prof_status prof_html_put_lines(struct prof_json *json, struct prof_html_pack *pack,
                                     const struct prof_report_data *data, struct prof_error *err)
{
    prof_json_array(json, "lines");
    enum prof_status status = put_memory_line(json, pack, data, err);
    if (!status)
        status = put_counter_lines(json, pack, data, err);
    prof_json_end(json);
    return status;
}
