/* See capture.h: the marks of each process make its intervals, their union is what was recorded.
 * What is between them in the life of a process, and in none of the union, was not. */
#include <stdlib.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/events.h"
#include "libprof/analysis/scope.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/activity.h"

struct work {
    struct prof_capture *capture;
    const struct prof_filter *filter;
    struct prof_intervals spans;
    struct prof_closed_list closed;
    bool *marked;                /* per process of the capture */
    int64_t end;                 /* of the capture */
    int64_t process, open_since; /* whose marks are read; PROF_UNKNOWN = not recording */
    int64_t closed_since;        /* PROF_UNKNOWN = recording */
    int closed_by;               /* the reason of that mark */
    bool first;                  /* no mark of it was read yet */
    bool out_of_memory;
};

static int64_t process_begin(const struct prof_process *p)
{
    return p && p->start_ns != PROF_UNKNOWN && p->start_ns > 0 ? p->start_ns : 0;
}

static int64_t process_end(const struct work *w, const struct prof_process *p)
{
    return p && p->end_ns != PROF_UNKNOWN ? p->end_ns : w->end;
}

static void add_recorded_span(struct work *w, int64_t begin, int64_t end)
{
    w->out_of_memory |= !prof_intervals_add(&w->spans, begin, end);
}

static void add_closed_span(struct work *w, int64_t end, int reason)
{
    struct prof_closed span = {w->process, {w->closed_since, end, reason}};
    if (w->closed_since != PROF_UNKNOWN && end > w->closed_since)
        w->out_of_memory |= !prof_array_push(&w->closed, span);
    w->closed_since = PROF_UNKNOWN;
}

static void close_process(struct work *w)
{
    const struct prof_process *p = prof_process(w->capture, w->process);
    if (w->open_since != PROF_UNKNOWN)
        add_recorded_span(w, w->open_since, process_end(w, p));
    add_closed_span(w, p && p->end_ns != PROF_UNKNOWN ? p->end_ns : INT64_MAX, w->closed_by);
    w->open_since = PROF_UNKNOWN;
}

static void add_mark(struct work *w, int64_t process, int64_t time, bool begins, int reason)
{
    if (process != w->process) {
        close_process(w);
        w->process = process;
        w->first = true;
    }
    int64_t since = process_begin(prof_process(w->capture, process));
    size_t at = prof_index_of(&w->capture->processes, process);
    if (at != SIZE_MAX)
        w->marked[at] = true;
    if (begins && w->first) {
        w->closed_since = since;
        w->closed_by = reason;
    }
    if (begins && w->open_since == PROF_UNKNOWN) {
        w->open_since = time;
        add_closed_span(w, time, w->closed_by);
    } else if (!begins && w->first) { /* it had recorded from its start */
        add_recorded_span(w, since, time);
    } else if (!begins && w->open_since != PROF_UNKNOWN) {
        add_recorded_span(w, w->open_since, time);
        w->open_since = PROF_UNKNOWN;
    }
    if (!begins && w->closed_since == PROF_UNKNOWN) {
        w->closed_since = time;
        w->closed_by = reason;
    }
    w->first = false;
}

/* Is this process one whose marks count? */
static bool in_filter(const struct work *w, int64_t process)
{
    const struct prof_filter *f = w->filter;
    const struct prof_device *devices;
    if (f && f->process && !prof_same_process(w->capture, f->process, process))
        return false;
    if (!f || !f->device)
        return true;
    size_t count = prof_devices(w->capture, &devices);
    for (size_t i = 0; i < count; i++)
        if (devices[i].process == process && devices[i].physical == f->device)
            return true;
    return false;
}

/* Fills spans and closed; *marks: how many there are. */
static enum prof_status read_marks(struct work *w, size_t *marks, struct prof_error *err)
{
    sqlite3_stmt *row;
    enum prof_status status = prof_query(w->capture,
                                         "SELECT process, start, begins, reason FROM recording "
                                         "WHERE start NOT NULL ORDER BY process, start, id",
                                         &row, err);
    *marks = 0;
    if (status)
        return status;
    w->process = -1;
    w->open_since = w->closed_since = PROF_UNKNOWN;
    w->marked = calloc(w->capture->processes.count + 1, sizeof *w->marked);
    w->out_of_memory = !w->marked;
    while (!w->out_of_memory && prof_row(row)) {
        if (!in_filter(w, prof_column_id(row, 0)))
            continue;
        if (!(*marks)++)
            w->end = prof_end_ns(w->capture);
        add_mark(w, prof_column_id(row, 0), prof_column_int(row, 1),
                 sqlite3_column_int64(row, 2) != 0, sqlite3_column_int(row, 3));
    }
    status = prof_query_end(w->capture, row, err);
    close_process(w);
    for (size_t i = 0; *marks && !w->out_of_memory && i < w->capture->processes.count; i++) {
        const struct prof_process *p = &w->capture->processes.data[i];
        if (p->has_events && !w->marked[i] && in_filter(w, p->id))
            add_recorded_span(w, process_begin(p), process_end(w, p));
    }
    free(w->marked);
    prof_intervals_normalise(&w->spans);
    return !status && w->out_of_memory ? prof_out_of_memory(err) : status;
}

enum prof_status prof_recorded(struct prof_capture *capture, const struct prof_filter *filter,
                               struct prof_recorded *result, struct prof_error *err)
{
    struct work w = {.capture = capture, .filter = filter};
    size_t marks;
    enum prof_status status = read_marks(&w, &marks, err);
    prof_array_free(&w.closed);
    *result = (struct prof_recorded){marks != 0, w.spans};
    return status;
}

enum prof_status prof_closed_read(struct prof_capture *capture, struct prof_closed_list *list,
                                  struct prof_error *err)
{
    struct work w = {.capture = capture};
    size_t marks;
    enum prof_status status = read_marks(&w, &marks, err);
    prof_array_free(&w.spans);
    *list = w.closed;
    return status;
}

void prof_recorded_free(struct prof_recorded *result)
{
    prof_array_free(&result->spans);
}

int64_t prof_recorded_length(const struct prof_recorded *recorded, int64_t begin, int64_t end)
{
    int64_t length = 0;
    const struct prof_intervals *spans = &recorded->spans;
    size_t i;
    if (!recorded->in_part)
        return end > begin ? prof_subtract(end, begin) : 0;
    PROF_FIND_FIRST(i, at, spans->count, spans->data[at].end > begin);
    for (; i < spans->count && spans->data[i].begin < end; i++) {
        int64_t from = spans->data[i].begin > begin ? spans->data[i].begin : begin;
        int64_t to = spans->data[i].end < end ? spans->data[i].end : end;
        if (to > from)
            length = prof_add(length, prof_subtract(to, from));
    }
    return length;
}

/* ---- what was not recorded ------------------------------------------------------------------- */

const char *prof_unrecorded_reason(int reason)
{
    static const char *const texts[] = {
        [WIRE_WINDOW_UNKNOWN] = "no reason is known",
        [WIRE_WINDOW_TIME] = "--delay or --duration",
        [WIRE_WINDOW_CONTROL] = "perfkit ctl, or --dormant",
        [WIRE_WINDOW_PROFILER] = "outside cudaProfilerStart and cudaProfilerStop",
        [WIRE_WINDOW_RANGE] = "outside the range of --capture-range",
        [WIRE_WINDOW_RING] = "--ring deletes what is older",
        [WIRE_WINDOW_OVERHEAD] = "a pause of --overhead",
        [WIRE_WINDOW_SAMPLE] = "iterations that --overhead=PERCENT leaves out",
    };
    size_t count = sizeof texts / sizeof *texts;
    _Static_assert(sizeof texts / sizeof *texts == WIRE_WINDOW_REASONS, "a text for each");
    return reason >= 0 && (size_t)reason < count ? texts[reason] : texts[WIRE_WINDOW_UNKNOWN];
}

PROF_ORDER(earlier_closed, struct prof_closed, PROF_ASCENDING(span.begin_ns),
           PROF_ASCENDING(span.end_ns))

/* The parts of a gap between two recorded spans, by what closed the recording; a neighbour's reason
 * holds also where no process ran. *at: the first closed span that may touch it or a later gap. */
static bool add_unrecorded(struct prof_unrecorded_list *list, const struct work *w, size_t *at,
                           struct prof_interval gap)
{
    size_t first = list->count;
    bool ok = true;
    while (*at < w->closed.count && w->closed.data[*at].span.end_ns <= gap.begin)
        ++*at;
    for (size_t i = *at; ok && i < w->closed.count && w->closed.data[i].span.begin_ns < gap.end;
         i++) {
        const struct prof_unrecorded *span = &w->closed.data[i].span;
        struct prof_unrecorded *last = list->count > first ? &list->data[list->count - 1] : NULL;
        bool within = last && (span->reason == last->reason || span->begin_ns <= last->begin_ns);
        if (span->end_ns <= gap.begin || within)
            continue;
        if (last)
            last->end_ns = span->begin_ns;
        struct prof_unrecorded part = {last ? span->begin_ns : gap.begin, gap.end, span->reason};
        ok = prof_array_push(list, part);
    }
    return ok;
}

enum prof_status prof_unrecorded(struct prof_capture *capture, const struct prof_filter *filter,
                                 struct prof_unrecorded_list *list, struct prof_error *err)
{
    struct work w = {.capture = capture, .filter = filter};
    PROF_FREED struct prof_intervals gaps = {0};
    size_t marks, at = 0;
    *list = (struct prof_unrecorded_list){0};
    enum prof_status status = read_marks(&w, &marks, err);
    struct prof_interval window = {filter ? filter->begin_ns : 0,
                                   filter && filter->end_ns ? filter->end_ns : w.end};
    bool ok = true;
    if (!status && marks) {
        ok = prof_intervals_gaps(&w.spans, window, &gaps);
        prof_array_sort(&w.closed, earlier_closed);
    }
    for (size_t i = 0; ok && i < gaps.count; i++)
        ok = add_unrecorded(list, &w, &at, gaps.data[i]);
    prof_array_free(&w.closed);
    prof_array_free(&w.spans);
    return !status && !ok ? prof_out_of_memory(err) : status;
}

/* ---- wall time ------------------------------------------------------------------------------- */

/* A capture that is being recorded, or was recovered without its end, lasts until the last thing it
 * knows of. Only the last rows of each table are looked at: enough for a live view, and cheap. */
static bool see_event_end(void *user, const struct prof_event_row *row)
{
    int64_t *last = user;
    int64_t length = row->duration_ns == PROF_UNKNOWN ? 0 : row->duration_ns;
    if (row->start_ns != PROF_UNKNOWN && prof_add(row->start_ns, length) > *last)
        *last = prof_add(row->start_ns, length);
    return true;
}

static int64_t last_known(struct prof_capture *capture)
{
    static const struct prof_event_query query = {
        .tables = PROF_OPS_DEVICE | PROF_OPS(CALL) | PROF_OPS(SYNC) | PROF_OPS(RANGE),
        .fields = PROF_FIELD(START) | PROF_FIELD(DURATION),
        .last = 10000,
    };
    int64_t last = PROF_UNKNOWN;
    if (prof_event_rows(capture, &query, see_event_end, &last, NULL))
        return PROF_UNKNOWN;
    int64_t end = prof_sql_number(capture->db, PROF_UNKNOWN, "SELECT max(\"end\") FROM process");
    return end > last ? end : last;
}

int64_t prof_end_ns(struct prof_capture *capture)
{
    int64_t end = capture->info.duration_ns;
    return end == PROF_UNKNOWN ? last_known(capture) : end;
}

int64_t prof_wall_ns(struct prof_capture *capture, const struct prof_filter *filter)
{
    struct prof_recorded recorded;
    int64_t begin = 0, end = prof_end_ns(capture);
    if (end == PROF_UNKNOWN)
        return PROF_UNKNOWN;
    if (filter && filter->begin_ns > begin)
        begin = filter->begin_ns;
    if (filter && filter->end_ns && filter->end_ns < end)
        end = filter->end_ns;
    if (prof_recorded(capture, filter, &recorded, NULL))
        recorded.in_part = false; /* the next reader of events reports the error */
    int64_t wall = prof_recorded_length(&recorded, begin, end);
    prof_recorded_free(&recorded);
    return wall;
}
