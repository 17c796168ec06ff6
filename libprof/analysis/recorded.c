/* See recorded.h: the marks of each process make its intervals, their union is what was recorded.
 */
#include <stdlib.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/recorded.h"
#include "libprof/base/saturate.h"

struct work {
    struct prof_capture *capture;
    struct prof_intervals spans;
    bool *marked;                /* per process of the capture */
    int64_t end;                 /* of the capture */
    int64_t process, open_since; /* whose marks are read; PROF_UNKNOWN = not recording */
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

static void close_process(struct work *w)
{
    if (w->open_since != PROF_UNKNOWN)
        add_recorded_span(w, w->open_since, process_end(w, prof_process(w->capture, w->process)));
    w->open_since = PROF_UNKNOWN;
}

static void add_mark(struct work *w, int64_t process, int64_t time, bool begins)
{
    if (process != w->process) {
        close_process(w);
        w->process = process;
        w->first = true;
    }
    size_t at = prof_index_of(&w->capture->processes, process);
    if (at != SIZE_MAX)
        w->marked[at] = true;
    if (begins && w->open_since == PROF_UNKNOWN)
        w->open_since = time;
    else if (!begins && w->first) /* it had recorded from its start */
        add_recorded_span(w, process_begin(prof_process(w->capture, process)), time);
    else if (!begins && w->open_since != PROF_UNKNOWN) {
        add_recorded_span(w, w->open_since, time);
        w->open_since = PROF_UNKNOWN;
    }
    w->first = false;
}

enum prof_status prof_recorded(struct prof_capture *capture, struct prof_recorded *result,
                               struct prof_error *err)
{
    struct work w = {.capture = capture, .process = -1, .open_since = PROF_UNKNOWN};
    size_t marks = 0;
    sqlite3_stmt *row;
    *result = (struct prof_recorded){0};
    enum prof_status status = prof_query(capture,
                                         "SELECT process, start, begins FROM recording "
                                         "WHERE start NOT NULL ORDER BY process, start, id",
                                         &row, err);
    if (status)
        return status;
    w.marked = calloc(capture->processes.count + 1, sizeof *w.marked);
    w.out_of_memory = !w.marked;
    for (; !w.out_of_memory && prof_row(row); marks++) {
        if (!marks)
            w.end = prof_end_ns(capture);
        add_mark(&w, prof_column_id(row, 0), prof_column_int(row, 1),
                 sqlite3_column_int64(row, 2) != 0);
    }
    status = prof_query_end(capture, row, err);
    close_process(&w);
    for (size_t i = 0; marks && !w.out_of_memory && i < capture->processes.count; i++) {
        const struct prof_process *p = &capture->processes.data[i];
        if (p->has_events && !w.marked[i])
            add_recorded_span(&w, process_begin(p), process_end(&w, p));
    }
    if (!status && w.out_of_memory)
        status = prof_out_of_memory(err);
    prof_intervals_normalise(&w.spans);
    *result = (struct prof_recorded){marks != 0, w.spans};
    free(w.marked);
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
    int64_t last = PROF_UNKNOWN, end = PROF_UNKNOWN;
    sqlite3_stmt *row;
    if (prof_event_rows(capture, &query, see_event_end, &last, NULL))
        return PROF_UNKNOWN;
    if (prof_query(capture, "SELECT max(\"end\") FROM process", &row, NULL))
        return PROF_UNKNOWN;
    if (prof_row(row))
        end = prof_column_int(row, 0);
    sqlite3_finalize(row);
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
    if (prof_recorded(capture, &recorded, NULL))
        recorded.in_part = false; /* the next reader of events reports the error */
    int64_t wall = prof_recorded_length(&recorded, begin, end);
    prof_recorded_free(&recorded);
    return wall;
}
