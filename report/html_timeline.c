/* The timeline's data in the page: which tracks there are, in the order they are drawn, and the
 * events as packed columns, row by row. The events of a row do not overlap, so a start is written
 * as the distance from the end before it; a call and its device record as the distance between
 * their positions. What the page needs at once (counts, whether something was merged) is in its
 * JSON. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_counters.h"
#include "report/html.h"

/* ---- lines ----------------------------------------------------------------------------------- */

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

/* The timeline's lines (memory, counters): a member of its head, their points behind the events. */
static enum prof_status put_line_columns(struct prof_json *json, struct prof_html_pack *pack,
                                         const struct prof_report_data *data,
                                         struct prof_error *err)
{
    prof_json_array(json, "lines");
    enum prof_status status = put_memory_line(json, pack, data, err);
    status = status ?: put_counter_lines(json, pack, data, err);
    prof_json_end(json);
    return status;
}

/* ---- tracks and events ----------------------------------------------------------------------- */

#define FUNCTION_CELLS 240 /* names of C++ may have kilobytes */
#define NAME_BYTES 300u    /* of a thread's or stream's own name */

/* COUNT and BUSY only where events were merged: else each is itself. STACK only where some has one.
 */
enum column { START, DURATION, NAME, KIND, EXTRA, CALL, COUNT, BUSY, STACK, COLUMNS };

struct order {
    int64_t process, lane, id;
    enum prof_html_lane of_thread;
    size_t track;
};

PROF_ORDER(by_process_and_lane, struct order, PROF_ASCENDING(process), PROF_ASCENDING(lane),
           PROF_ASCENDING(id), PROF_ASCENDING(of_thread), PROF_ASCENDING(track))

/* Streams first: threads may be many. Ranges of a thread stand directly above its calls. */
static struct order *order_tracks(const struct prof_html_events *e)
{
    struct order *order = malloc((e->tracks.count + 1) * sizeof *order);
    for (size_t i = 0; order && i < e->tracks.count; i++) {
        const struct prof_html_track *track = &e->tracks.data[i];
        bool stream = track->lane >= PROF_HTML_STREAM;
        order[i] = (struct order){.process = track->process,
                                  .lane = !stream,
                                  .id = track->id,
                                  .of_thread = track->lane,
                                  .track = i};
    }
    if (order && e->tracks.count)
        qsort(order, e->tracks.count, sizeof *order, by_process_and_lane);
    return order;
}

static void put_track_name(struct prof_json *json, struct prof_capture *capture,
                           const struct prof_html_track *track)
{
    char label[512];
    const struct prof_process *process = prof_process(capture, track->process);
    prof_json_known(json, "pid", process ? process->pid : PROF_UNKNOWN);
    prof_json_string(json, "command", process ? process->command : NULL);
    prof_json_int(json, "process", track->process);
    prof_json_int(json, track->lane >= PROF_HTML_STREAM ? "stream" : "thread", track->id);
    if (track->lane >= PROF_HTML_STREAM) {
        const struct prof_stream *stream = prof_stream(capture, track->id);
        const struct prof_device *on = stream ? prof_device(capture, stream->device) : NULL;
        const char *device = prof_report_device_label(on);
        prof_json_int(json, "device", on ? on->physical : 0);
        prof_json_string(json, "device_label", device);
        if (stream && stream->name)
            snprintf(label, sizeof label, "%s %.*s", device,
                     prof_report_head(stream->name, NAME_BYTES), stream->name);
        else if (stream && stream->native > 0 && stream->native < 100000)
            snprintf(label, sizeof label, "%s stream %lld", device, (long long)stream->native);
        else
            snprintf(label, sizeof label, "%s queue %lld", device, (long long)track->id);
        bool projected = track->lane != PROF_HTML_STREAM;
        if (projected)
            strncat(label, " NVTX", sizeof label - strlen(label) - 1);
        prof_json_string(json, "lane", projected ? "projected" : "stream");
    } else {
        const struct prof_thread *thread = prof_thread(capture, track->id);
        const char *what = track->lane == PROF_HTML_RANGES  ? "NVTX"
                           : track->lane == PROF_HTML_CALLS ? "API"
                                                            : "CPU";
        if (thread && thread->name)
            snprintf(label, sizeof label, "%.*s %lld %s",
                     prof_report_head(thread->name, NAME_BYTES), thread->name,
                     (long long)thread->tid, what);
        else
            snprintf(label, sizeof label, "thread %lld %s", (long long)(thread ? thread->tid : 0),
                     what);
        prof_json_string(json, "lane",
                         track->lane == PROF_HTML_RANGES  ? "ranges"
                         : track->lane == PROF_HTML_CALLS ? "calls"
                                                          : "samples");
    }
    prof_json_string(json, "label", label);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Where the events stand in the page: by track as drawn, row, start. */
struct written {
    struct order *order; /* tracks, as drawn */
    size_t *first;       /* [rows of all tracks + 1]: of each row, in `at` */
    size_t *at;          /* indices of events */
    size_t *bases;       /* by track: its first row */
    size_t rows;
};

static void free_written(struct written *w)
{
    free(w->order);
    free(w->first);
    free(w->at);
    free(w->bases);
}

/* Events come by start, so that sorting them by row by counting keeps them in order. */
static bool sort_by_row(const struct prof_html_events *e, struct written *w)
{
    w->order = order_tracks(e);
    w->bases = malloc((e->tracks.count + 1) * sizeof *w->bases);
    if (!w->order || !w->bases)
        return false;
    for (size_t i = 0; i < e->tracks.count; i++) {
        w->bases[w->order[i].track] = w->rows;
        w->rows += e->tracks.data[w->order[i].track].rows;
    }
    w->first = calloc(w->rows + 2, sizeof *w->first);
    w->at = malloc((e->events.count + 1) * sizeof *w->at);
    if (!w->first || !w->at)
        return false;
    for (size_t i = 0; i < e->events.count; i++)
        w->first[w->bases[e->events.data[i].track] + e->events.data[i].row + 2]++;
    for (size_t r = 1; r < w->rows + 2; r++)
        w->first[r] += w->first[r - 1];
    for (size_t i = 0; i < e->events.count; i++)
        w->at[w->first[w->bases[e->events.data[i].track] + e->events.data[i].row + 1]++] = i;
    return true;
}

static const struct prof_html_event *written_event(const struct prof_html_events *e,
                                                   const struct written *w, size_t i)
{
    return &e->events.data[w->at[i]];
}

static void pack_starts(struct prof_html_pack *pack, const struct prof_html_events *e,
                        const struct written *w)
{
    for (size_t r = 0; r < w->rows; r++) {
        int64_t before = e->begin_ns;
        for (size_t i = w->first[r]; i < w->first[r + 1]; i++) {
            const struct prof_html_event *event = written_event(e, w, i);
            prof_html_pack_int(pack, prof_subtract(event->start, before));
            before = prof_add(event->start, event->duration > 0 ? event->duration : 0);
        }
    }
}

static int64_t event_cell(const struct prof_html_event *event, enum column column)
{
    switch (column) {
    case DURATION:
        return event->duration;
    case NAME:
        return event->name;
    case KIND:
        return event->kind;
    case EXTRA:
        return event->extra == PROF_UNKNOWN ? -1 : event->extra;
    case COUNT:
        return event->count;
    case BUSY:
        return event->busy;
    case STACK:
        return event->stack;
    default:
        return 0;
    }
}

/* Of each device record the place of its call: 0 = none, else 1 or more, as the distance from the
 * one before it, which is what repeats. */
static void pack_calls(struct prof_html_pack *pack, const struct prof_html_events *e,
                       const struct written *w)
{
    struct prof_map calls = {0};
    int64_t before = 0;
    for (size_t i = 0; i < e->events.count && !pack->failed; i++) {
        const struct prof_html_event *event = written_event(e, w, i);
        if (event->link && event->kind == PROF_HTML_API)
            pack->failed = !prof_map_put(&calls, (uint64_t)event->link, i + 1);
    }
    for (size_t i = 0; i < e->events.count; i++) {
        const struct prof_html_event *event = written_event(e, w, i);
        const uint64_t *call = event->link && event->kind != PROF_HTML_API
                                   ? prof_map_get(&calls, (uint64_t)event->link)
                                   : NULL;
        int64_t place = call ? (int64_t)*call : before;
        prof_html_pack_int(pack, call ? place - before : INT32_MIN);
        before = place;
    }
    prof_map_free(&calls);
}

static bool events_have_column(const struct prof_html_events *e, enum column column)
{
    if (column == COUNT || column == BUSY)
        return e->merge_ns != 0;
    return column != STACK || e->stacks.nodes.count;
}

static void pack_columns(struct prof_json *json, struct prof_html_pack *pack,
                         const struct prof_html_events *e, const struct written *w)
{
    static const char *const names[] = {
        [START] = "start", [DURATION] = "duration", [NAME] = "name",
        [KIND] = "kind",   [EXTRA] = "extra",       [CALL] = "call",
        [COUNT] = "count", [BUSY] = "busy",         [STACK] = "stack",
    };
    prof_json_object(json, "columns");
    for (enum column column = START; column < COLUMNS; column++) {
        size_t before = pack->columns.count;
        if (!events_have_column(e, column))
            continue;
        if (column == START)
            pack_starts(pack, e, w);
        else if (column == CALL)
            pack_calls(pack, e, w);
        else
            for (size_t i = 0; i < e->events.count; i++)
                prof_html_pack_int(pack, event_cell(written_event(e, w, i), column));
        prof_json_uint(json, names[column], pack->columns.count - before);
    }
    prof_json_end(json);
}

static void put_tracks(struct prof_json *json, const struct prof_html_events *e,
                       const struct written *w)
{
    size_t r = 0;
    prof_json_array(json, "tracks");
    for (size_t i = 0; i < e->tracks.count; i++) {
        const struct prof_html_track *track = &e->tracks.data[w->order[i].track];
        prof_json_object(json, NULL);
        put_track_name(json, e->capture, track);
        prof_json_array(json, "rows"); /* how many events each has */
        for (uint32_t row = 0; row < track->rows; row++, r++)
            prof_json_uint(json, NULL, w->first[r + 1] - w->first[r]);
        prof_json_end(json);
        prof_json_end(json);
    }
    prof_json_end(json);
}

static void put_configs(struct prof_json *json, struct prof_capture *capture)
{
    const struct prof_config *configs;
    size_t count = prof_configs(capture, &configs);
    prof_json_object(json, "configs");
    for (size_t i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "%lld", (long long)configs[i].id);
        const struct prof_config *c = &configs[i];
        prof_json_ints(json, key,
                       (int64_t[]){c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1],
                                   c->block[2], c->registers, c->shared_static, c->shared_dynamic},
                       9);
    }
    prof_json_end(json);
}

/* "places": [function, file, line, module, nearness] each; "nodes": caller's node and place of node
 * 1, of node 2, ... False: out of memory. */
static bool put_stacks(struct prof_json *json, const struct prof_report_stacks *stacks)
{
    bool ok = true;
    prof_json_object(json, "stacks");
    prof_json_array(json, "places");
    for (uint32_t i = 0; ok && i < stacks->places.count; i++) {
        const struct prof_frame *frame = prof_report_stacks_frame(stacks, i);
        PROF_FREED char *function = prof_report_fit(frame->function, FUNCTION_CELLS);
        ok = function != NULL;
        prof_json_array(json, NULL);
        prof_json_string(json, NULL, function);
        prof_json_string(json, NULL, frame->file);
        prof_json_known(json, NULL, frame->line);
        prof_json_string(json, NULL, frame->module);
        prof_json_int(json, NULL, prof_frame_nearness(frame));
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_array(json, "nodes");
    for (size_t i = 0; i < stacks->nodes.count; i++) {
        prof_json_uint(json, NULL, stacks->nodes.data[i].parent);
        prof_json_uint(json, NULL, stacks->nodes.data[i].place);
    }
    prof_json_end(json);
    prof_json_end(json);
    return ok;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void put_kind_counts(struct prof_json *json, const char *key,
                            const struct prof_html_events *e)
{
    static const char *const kinds[] = {
        [PROF_HTML_KERNEL] = "kernel",       [PROF_HTML_COPY] = "copy",
        [PROF_HTML_FILL] = "fill",           [PROF_HTML_API] = "call",
        [PROF_HTML_WAIT] = "wait",           [PROF_HTML_RANGE] = "range",
        [PROF_HTML_MARK] = "mark",           [PROF_HTML_OVERHEAD] = "overhead",
        [PROF_HTML_RUNNING] = "running",     [PROF_HTML_BLOCKED] = "blocked",
        [PROF_HTML_PREEMPTED] = "preempted", [PROF_HTML_PROJECTED] = "projected",
    };
    prof_json_object(json, key);
    prof_json_int(json, "begin_ns", e->begin_ns);
    prof_json_int(json, "end_ns", e->end_ns);
    prof_json_uint(json, "shown", e->events.count);
    prof_json_int(json, "not_started", e->not_shown);
    prof_json_int(json, "merge_ns", e->merge_ns);
    prof_json_bool(json, "not_projected", e->not_projected || e->merge_ns);
    prof_json_strings(json, "kinds", kinds, PROF_HTML_KINDS);
    prof_json_ints(json, "counts", e->counts, PROF_HTML_KINDS);
    prof_json_end(json);
}

/* More than a screen is wide; of more, the longest. */
#define UNRECORDED_SPANS 5000

PROF_ORDER(longest_unrecorded, struct prof_unrecorded,
           PROF_COMPARE(prof_subtract(y->end_ns, y->begin_ns),
                        prof_subtract(x->end_ns, x->begin_ns)))

/* [begin, end, reason] of what was not recorded. */
static enum prof_status put_html_unrecorded(struct prof_json *json,
                                            const struct prof_report_data *data,
                                            struct prof_error *err)
{
    struct prof_unrecorded_list list;
    enum prof_status status = prof_unrecorded(data->capture, data->filter, &list, err);
    if (list.count > UNRECORDED_SPANS) {
        qsort(list.data, list.count, sizeof *list.data, longest_unrecorded);
        list.count = UNRECORDED_SPANS;
    }
    prof_json_array(json, "unrecorded");
    for (size_t i = 0; i < list.count; i++) {
        prof_json_array(json, NULL);
        prof_json_int(json, NULL, list.data[i].begin_ns);
        prof_json_int(json, NULL, list.data[i].end_ns);
        prof_json_string(json, NULL, prof_unrecorded_reason(list.data[i].reason));
        prof_json_end(json);
    }
    prof_json_end(json);
    free(list.data);
    return status;
}

static enum prof_status pack_all(struct prof_html_pack *pack, struct prof_html_events *e,
                                 const struct written *w, const struct prof_report_data *data,
                                 struct prof_error *err)
{
    struct prof_json head;
    prof_json_to_memory(&head, 0);
    prof_json_object(&head, NULL);
    prof_json_strings(&head, "names", e->names.data, e->names.count);
    put_configs(&head, data->capture);
    put_tracks(&head, e, w);
    pack_columns(&head, pack, e, w);
    enum prof_status status = PROF_OK;
    if (e->stacks.nodes.count && !put_stacks(&head, &e->stacks))
        status = prof_fail(err, PROF_NOMEM, "cannot write the timeline: out of memory");
    status = status ?: put_html_unrecorded(&head, data, err);
    status = status ?: put_line_columns(&head, pack, data, err);
    prof_json_end(&head);
    status = status ?: prof_json_finish(&head, err);
    if (!status)
        prof_html_pack_head(pack, head.data, head.count);
    prof_json_free(&head);
    return status;
}

enum prof_status prof_html_put_timeline(struct prof_json *json, const char *key,
                                        struct prof_html_pack *pack,
                                        const struct prof_report_data *data,
                                        const struct prof_report_options *options,
                                        struct prof_error *err)
{
    struct prof_html_events e;
    struct written w = {0};
    enum prof_status status = prof_html_collect(data->capture, options, &e, err);
    if (!status && !sort_by_row(&e, &w))
        status = prof_fail(err, PROF_NOMEM, "cannot write the timeline: out of memory");
    if (!status) {
        put_kind_counts(json, key, &e);
        status = pack_all(pack, &e, &w, data, err);
    }
    free_written(&w);
    prof_html_events_free(&e);
    return status;
}
