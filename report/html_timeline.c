/* The timeline's data in the page: tracks in the order they are drawn, each with its events as
 * columns of numbers (starts as differences, names as indices), which is a third of the size of one
 * object for every event. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "report/html.h"
#include "report/html_events.h"

struct order {
    int64_t process, lane, id;
    bool calls;
    size_t track;
};

static int by_place(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    if (x->calls != y->calls)
        return x->calls ? 1 : -1;
    return x->track < y->track ? -1 : x->track > y->track;
}

/* Ranges of a thread stand directly above its calls; streams follow the threads. */
static struct order *order_tracks(const struct prof_html_events *e)
{
    struct order *order = malloc((e->tracks.count + 1) * sizeof *order);
    for (size_t i = 0; order && i < e->tracks.count; i++) {
        const struct prof_html_track *track = &e->tracks.data[i];
        bool stream = track->lane == PROF_HTML_STREAM;
        order[i] = (struct order){.process = track->process,
                                  .lane = stream,
                                  .id = track->id,
                                  .calls = track->lane == PROF_HTML_CALLS,
                                  .track = i};
    }
    if (order && e->tracks.count)
        qsort(order, e->tracks.count, sizeof *order, by_place);
    return order;
}

static void put_track_name(struct prof_json *json, struct prof_capture *capture,
                           const struct prof_html_track *track)
{
    char label[512], device[64];
    const struct prof_process *process = prof_process(capture, track->process);
    prof_json_known(json, "pid", process ? process->pid : PROF_UNKNOWN);
    prof_json_string(json, "process", process ? process->command : NULL);
    if (track->lane == PROF_HTML_STREAM) {
        const struct prof_stream *stream = prof_stream(capture, track->id);
        prof_report_device_label(stream ? prof_device(capture, stream->device) : NULL, device,
                                 sizeof device);
        if (stream && stream->name)
            snprintf(label, sizeof label, "%s %.300s", device, stream->name);
        else if (stream && stream->native > 0 && stream->native < 100000)
            snprintf(label, sizeof label, "%s stream %lld", device, (long long)stream->native);
        else
            snprintf(label, sizeof label, "%s queue %lld", device, (long long)track->id);
        prof_json_string(json, "lane", "stream");
    } else {
        const struct prof_thread *thread = prof_thread(capture, track->id);
        const char *what = track->lane == PROF_HTML_RANGES ? "NVTX" : "API";
        if (thread && thread->name)
            snprintf(label, sizeof label, "%.300s %lld %s", thread->name, (long long)thread->tid,
                     what);
        else
            snprintf(label, sizeof label, "thread %lld %s", (long long)(thread ? thread->tid : 0),
                     what);
        prof_json_string(json, "lane", track->lane == PROF_HTML_RANGES ? "ranges" : "calls");
    }
    prof_json_string(json, "label", label);
}

/* One column of the events of a track. `at` lists their indices. */
enum column { START, DURATION, NAME, KIND, ROW, COUNT, BUSY, LINK, EXTRA };

static int64_t cell(const struct prof_html_event *event, enum column column, int64_t *before)
{
    int64_t delta = prof_subtract(event->start, *before);
    switch (column) {
    case START:
        *before = event->start;
        return delta;
    case DURATION:
        return event->duration;
    case NAME:
        return event->name;
    case KIND:
        return event->kind;
    case ROW:
        return event->row;
    case COUNT:
        return event->count;
    case BUSY:
        return event->busy;
    case LINK:
        return event->link;
    case EXTRA:
        return event->extra == PROF_UNKNOWN ? -1 : event->extra;
    }
    return 0;
}

static void put_column(struct prof_json *json, const char *key, const struct prof_html_events *e,
                       const size_t *at, size_t count, enum column column)
{
    int64_t before = e->begin_ns;
    prof_json_array(json, key);
    for (size_t i = 0; i < count; i++)
        prof_json_int(json, NULL, cell(&e->events.data[at[i]], column, &before));
    prof_json_end(json);
}

static void put_track(struct prof_json *json, const struct prof_html_events *e, size_t track,
                      const size_t *at, size_t count)
{
    prof_json_object(json, NULL);
    put_track_name(json, e->capture, &e->tracks.data[track]);
    prof_json_uint(json, "rows", e->tracks.data[track].rows);
    put_column(json, "start", e, at, count, START);
    put_column(json, "duration", e, at, count, DURATION);
    put_column(json, "name", e, at, count, NAME);
    put_column(json, "kind", e, at, count, KIND);
    put_column(json, "row", e, at, count, ROW);
    put_column(json, "link", e, at, count, LINK);
    put_column(json, "extra", e, at, count, EXTRA);
    if (e->merge_ns) { /* else every event is itself */
        put_column(json, "count", e, at, count, COUNT);
        put_column(json, "busy", e, at, count, BUSY);
    }
    prof_json_end(json);
}

/* Event indices by track: `first[t]` to `first[t + 1]` in `at`, in order of start. */
static bool sort_by_track(const struct prof_html_events *e, size_t **first, size_t **at)
{
    *first = calloc(e->tracks.count + 2, sizeof **first);
    *at = malloc((e->events.count + 1) * sizeof **at);
    if (!*first || !*at)
        return false;
    for (size_t i = 0; i < e->events.count; i++)
        (*first)[e->events.data[i].track + 2]++;
    for (size_t t = 1; t < e->tracks.count + 2; t++)
        (*first)[t] += (*first)[t - 1];
    for (size_t i = 0; i < e->events.count; i++)
        (*at)[(*first)[e->events.data[i].track + 1]++] = i;
    return true;
}

static void put_configs(struct prof_json *json, struct prof_capture *capture)
{
    const struct prof_config *configs;
    size_t count = prof_configs(capture, &configs);
    prof_json_object(json, "configs");
    for (size_t i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "%lld", (long long)configs[i].id);
        prof_json_array(json, key);
        for (int k = 0; k < 3; k++)
            prof_json_known(json, NULL, configs[i].grid[k]);
        for (int k = 0; k < 3; k++)
            prof_json_known(json, NULL, configs[i].block[k]);
        prof_json_known(json, NULL, configs[i].registers);
        prof_json_known(json, NULL, configs[i].shared_static);
        prof_json_known(json, NULL, configs[i].shared_dynamic);
        prof_json_end(json);
    }
    prof_json_end(json);
}

static void put_head(struct prof_json *json, const struct prof_html_events *e)
{
    static const char *const kinds[] = {
        [PROF_HTML_KERNEL] = "kernel", [PROF_HTML_COPY] = "copy",
        [PROF_HTML_FILL] = "fill",     [PROF_HTML_API] = "call",
        [PROF_HTML_WAIT] = "wait",     [PROF_HTML_RANGE] = "range",
        [PROF_HTML_MARK] = "mark",     [PROF_HTML_OVERHEAD] = "overhead",
    };
    prof_json_int(json, "begin_ns", e->begin_ns);
    prof_json_int(json, "end_ns", e->end_ns);
    prof_json_uint(json, "shown", e->events.count);
    prof_json_int(json, "not_started", e->not_shown);
    prof_json_int(json, "merge_ns", e->merge_ns);
    prof_json_array(json, "kinds");
    for (size_t i = 0; i < PROF_HTML_KINDS; i++)
        prof_json_string(json, NULL, kinds[i]);
    prof_json_end(json);
    prof_json_array(json, "counts");
    for (size_t i = 0; i < PROF_HTML_KINDS; i++)
        prof_json_int(json, NULL, e->counts[i]);
    prof_json_end(json);
    prof_json_array(json, "names");
    for (size_t i = 0; i < e->names.count; i++)
        prof_json_string(json, NULL, e->names.data[i]);
    prof_json_end(json);
}

enum prof_status prof_html_put_timeline(struct prof_json *json, const struct prof_report_data *data,
                                        const struct prof_report_options *options,
                                        struct prof_error *err)
{
    struct prof_html_events e;
    struct order *order = NULL;
    size_t *first = NULL, *at = NULL;
    enum prof_status status = prof_html_collect(data->capture, options, &e, err);
    if (!status) {
        order = order_tracks(&e);
        if (!order || !sort_by_track(&e, &first, &at))
            status = prof_fail(err, PROF_NOMEM, "cannot write the timeline: out of memory");
    }
    if (!status) {
        prof_json_object(json, "timeline");
        put_head(json, &e);
        put_configs(json, data->capture);
        prof_json_array(json, "tracks");
        for (size_t i = 0; i < e.tracks.count; i++) {
            size_t track = order[i].track;
            put_track(json, &e, track, at + first[track], first[track + 1] - first[track]);
        }
        prof_json_end(json);
        prof_json_end(json);
    }
    free(order);
    free(first);
    free(at);
    prof_html_events_free(&e);
    return status;
}
