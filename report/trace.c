/* Walks a capture and gives it to a sink; see trace.h. */
#include <stdlib.h>
#include <string.h>

#include "report/trace.h"
#include "report/walk.h"

void prof_trace_known(struct prof_trace *t, const char *key, int64_t value)
{
    if (value != PROF_UNKNOWN)
        t->sink->integer(t, key, value);
}

const char *prof_trace_kept(const struct prof_trace *t, uint64_t key)
{
    const uint64_t *at = prof_map_get(&t->text_of, key);
    return at ? t->texts.data[*at - 1] : NULL;
}

const char *prof_trace_keep(struct prof_trace *t, uint64_t key, const char *text)
{
    char **slot = prof_array_add(&t->texts), *copy = slot ? strdup(text) : NULL;
    if (slot)
        *slot = copy;
    if (!copy || !prof_map_put(&t->text_of, key, t->texts.count)) {
        t->no_memory = true;
        return "";
    }
    return copy;
}

/* Work of a device that nobody described: its pid gets a name with its first track. */
static void name_unknown_device(struct prof_trace *t, int64_t pid)
{
    if (t->has_unknown_device || pid != prof_trace_device_pid(&t->names, 0))
        return;
    t->has_unknown_device = true;
    t->sink->process(t, &(struct prof_trace_process){.pid = pid,
                                                     .name = "unknown device",
                                                     .label = "unknown device",
                                                     .sort = INT32_MAX,
                                                     .device = true});
}

int64_t prof_trace_place(struct prof_trace *t, enum prof_trace_lane what, int64_t id, int64_t pid,
                         int64_t own_tid, int64_t start, int64_t duration)
{
    size_t number;
    bool fresh, nests = what == PROF_TRACE_THREAD || what == PROF_TRACE_RANGES;
    struct prof_report_lane *lane =
        prof_report_lane(&t->lanes, (uint64_t)id * PROF_TRACE_LANES + (uint64_t)what, start,
                         start + duration, nests, &number, &fresh);
    if (!lane) {
        t->no_memory = true;
        return own_tid;
    }
    if (fresh) {
        bool own = !number && what != PROF_TRACE_RANGES && what != PROF_TRACE_MIGRATIONS;
        struct prof_trace_track track = {.pid = pid,
                                         .tid = own ? own_tid : prof_trace_extra_tid(&t->names)};
        lane->tid = track.tid;
        prof_trace_name_track(&t->names, what, id, number, &track);
        if (track.device)
            name_unknown_device(t, pid);
        t->sink->track(t, &track);
    }
    return lane->tid;
}

struct prof_trace_call *prof_trace_call_slot(struct prof_trace_call *table, int64_t a, int64_t b,
                                             uint64_t *key)
{
    uint64_t x = (uint64_t)a * 0x9e3779b97f4a7c15u ^ (uint64_t)b;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    *key = x ? x : 1;
    return &table[*key & (PROF_TRACE_SLOTS - 1)];
}

static enum prof_status out_of_memory(struct prof_error *err)
{
    return prof_fail(err, PROF_NOMEM, "cannot write the trace: out of memory");
}

static void put_processes(struct prof_trace *t)
{
    struct prof_trace_process process;
    for (size_t at = 0; prof_trace_next_process(&t->names, &at, &process);)
        t->sink->process(t, &process);
}

static enum prof_status put_events(struct prof_trace *t, struct prof_error *err)
{
    struct prof_report_walk *walk;
    const struct prof_event *event;
    enum prof_status status =
        prof_report_walk_open(t->capture, t->options, PROF_EVENTS_ALL, &walk, err);
    if (status)
        return status;
    prof_report_walk_ahead(walk);
    while (!t->no_memory && !t->sink->failed(t) && (event = prof_report_walk_next(walk))) {
        if (PROF_EVENTS(event->kind) & PROF_EVENTS_DEVICE)
            prof_trace_put_device(t, event);
        else
            prof_trace_put_host(t, event);
    }
    status = prof_report_walk_close(walk, err);
    return !status && t->no_memory ? out_of_memory(err) : status;
}

enum prof_status prof_trace_write(struct prof_trace *t, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    t->end_ns = prof_end_ns(t->capture);
    t->strays = calloc(PROF_TRACE_SLOTS, sizeof *t->strays);
    t->graphs = calloc(PROF_TRACE_SLOTS, sizeof *t->graphs);
    if (!t->strays || !t->graphs || !prof_trace_names_init(&t->names, t->capture))
        status = out_of_memory(err);
    if (!status)
        status = t->sink->head(t, err);
    if (!status) {
        put_processes(t);
        status = put_events(t, err);
    }
    prof_trace_names_free(&t->names);
    prof_report_lanes_free(&t->lanes);
    prof_array_free(&t->usage);
    for (size_t i = 0; i < t->texts.count; i++)
        free(t->texts.data[i]);
    prof_array_free(&t->texts);
    prof_map_free(&t->text_of);
    free(t->strays);
    free(t->graphs);
    return status;
}
