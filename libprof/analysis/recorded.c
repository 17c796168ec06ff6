/* See recorded.h: the marks of each process make its intervals, their union is what was recorded.
 */
#include <stdlib.h>

#include "libprof/analysis/recorded.h"
#include "libprof/base/saturate.h"

struct span {
    int64_t begin, end;
};

struct work {
    struct prof_capture *capture;
    PROF_ARRAY(struct span) spans;
    bool *marked; /* per process of the capture */
    int64_t wall;
    int64_t process, open_since; /* whose marks are read; PROF_UNKNOWN = not recording */
    bool first;                  /* no mark of it was read yet */
    bool out_of_memory;
};

static int64_t begin_of(const struct prof_process *p)
{
    return p && p->start_ns != PROF_UNKNOWN && p->start_ns > 0 ? p->start_ns : 0;
}

static int64_t end_of(const struct work *w, const struct prof_process *p)
{
    return p && p->end_ns != PROF_UNKNOWN ? p->end_ns : w->wall;
}

static void add_span(struct work *w, int64_t begin, int64_t end)
{
    struct span *span = end > begin ? prof_array_add(&w->spans) : NULL;
    if (span)
        *span = (struct span){begin, end};
    w->out_of_memory |= end > begin && !span;
}

static void close_process(struct work *w)
{
    if (w->open_since != PROF_UNKNOWN)
        add_span(w, w->open_since, end_of(w, prof_process(w->capture, w->process)));
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
        add_span(w, begin_of(prof_process(w->capture, process)), time);
    else if (!begins && w->open_since != PROF_UNKNOWN) {
        add_span(w, w->open_since, time);
        w->open_since = PROF_UNKNOWN;
    }
    w->first = false;
}

static int by_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void unite(struct work *w, int64_t *windows, int64_t *recorded_ns)
{
    int64_t until = INT64_MIN;
    *recorded_ns = 0;
    if (w->spans.count)
        qsort(w->spans.data, w->spans.count, sizeof *w->spans.data, by_begin);
    for (size_t i = 0; i < w->spans.count; i++) {
        struct span span = w->spans.data[i];
        if (span.begin > until)
            ++*windows;
        else
            span.begin = until;
        if (span.end > span.begin)
            *recorded_ns = prof_add(*recorded_ns, prof_subtract(span.end, span.begin));
        if (span.end > until)
            until = span.end;
    }
}

enum prof_status prof_recorded(struct prof_capture *capture, int64_t *windows, int64_t *recorded_ns,
                               struct prof_error *err)
{
    struct work w = {.capture = capture,
                     .process = -1,
                     .open_since = PROF_UNKNOWN,
                     .wall = prof_wall_ns(capture, NULL)};
    size_t marks = 0;
    sqlite3_stmt *row;
    *windows = 0;
    *recorded_ns = PROF_UNKNOWN;
    enum prof_status status = prof_query(capture,
                                         "SELECT process, start, begins FROM recording "
                                         "WHERE start NOT NULL ORDER BY process, start, id",
                                         &row, err);
    if (status)
        return status;
    w.marked = calloc(capture->processes.count + 1, sizeof *w.marked);
    w.out_of_memory = !w.marked;
    for (; !w.out_of_memory && prof_row(row); marks++)
        add_mark(&w, prof_column_id(row, 0), prof_column_int(row, 1),
                 sqlite3_column_int64(row, 2) != 0);
    status = prof_query_end(capture, row, err);
    close_process(&w);
    for (size_t i = 0; marks && !w.out_of_memory && i < capture->processes.count; i++) {
        const struct prof_process *p = &capture->processes.data[i];
        if (p->has_events && !w.marked[i])
            add_span(&w, begin_of(p), end_of(&w, p));
    }
    if (!status && w.out_of_memory)
        status = prof_out_of_memory(err);
    if (!status && marks)
        unite(&w, windows, recorded_ns);
    free(w.marked);
    prof_array_free(&w.spans);
    return status;
}
