/* Reads the events of the HTML timeline, with NVTX ranges as they are on the device, and keeps
 * their number within what a page can hold. When there are too many, neighbours in a row that fit
 * together into a span of merge_ns become one block; merge_ns grows until it is enough. So the
 * densest places merge first, long events and lonely ones stay as they are, and one pass over the
 * capture in bounded memory does it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "libprof/include/prof_cpu.h"
#include "report/html.h"
#include "report/trace.h"

#define KINDS 16 /* numbers of links: record_id * KINDS + record_kind */

static bool add_track(struct prof_html_events *e, enum prof_html_lane lane, int64_t id,
                      int64_t process, uint32_t *index)
{
    uint64_t key = (uint64_t)id * 8 + (uint64_t)lane;
    const uint64_t *known = prof_map_get(&e->track_index, key);
    if (known) {
        *index = (uint32_t)*known;
        return true;
    }
    struct prof_html_track *track = prof_array_add(&e->tracks);
    if (!track)
        return false;
    *track = (struct prof_html_track){.lane = lane, .id = id, .process = process};
    *index = (uint32_t)(e->tracks.count - 1);
    return prof_map_put(&e->track_index, key, *index);
}

static bool add_name(struct prof_html_events *e, const char *name, uint32_t *index)
{
    if (!name)
        name = "n/a";
    size_t length = strlen(name);
    const uint32_t *known = prof_names_get(&e->name_index, name, length);
    if (known) {
        *index = *known;
        return true;
    }
    const char **room = prof_array_add(&e->names);
    if (!room)
        return false;
    *room = name;
    *index = (uint32_t)(e->names.count - 1);
    return prof_names_put(&e->name_index, name, length, *index);
}

/* "HtoD pageable": the kind of a memcpy or memset, and memory at its ends that is not a device's
 * own. */
static bool add_copy_name(struct prof_html_events *e, const struct prof_event *event,
                          uint32_t *index)
{
    const int ends[] = {event->source_kind, event->target_kind};
    char name[96];
    snprintf(name, sizeof name, "%s", event->name ? event->name : "n/a");
    for (int i = 0; i < 2; i++) {
        const char *memory = ends[i] > 0 ? prof_memory_kind_text(ends[i]) : "device";
        if (strcmp(memory, "device") != 0)
            prof_append(name, sizeof name, " %s", memory);
    }
    const uint32_t *known = prof_names_get(&e->name_index, name, strlen(name));
    char **room = known ? NULL : prof_array_add(&e->copy_names);
    if (known)
        *index = *known;
    else if (room)
        *room = strdup(name);
    return known || (room && *room && add_name(e, *room, index));
}

static int64_t html_event_end(const struct prof_html_event *event)
{
    return prof_add(event->start, event->duration > 0 ? event->duration : 0);
}

static void merge_into_block(struct prof_html_event *block, const struct prof_html_event *event)
{
    int64_t end = html_event_end(event), own = html_event_end(block);
    block->duration = prof_subtract(end > own ? end : own, block->start);
    block->count += event->count;
    block->busy = prof_add(block->busy, event->busy);
    block->link = 0;
    block->stack = 0;
    if (event->longest > block->longest) {
        block->longest = event->longest;
        block->name = event->name;
        block->kind = event->kind;
        block->extra = event->extra;
    }
}

/* Rows of all tracks as one number, to find the last event kept in each. */
static void lane_bases(const struct prof_html_events *e, size_t *bases, size_t *total)
{
    *total = 0;
    for (size_t i = 0; i < e->tracks.count; i++) {
        bases[i] = *total;
        *total += e->tracks.data[i].rows;
    }
}

static bool merge_short_events(struct prof_html_events *e, int64_t span)
{
    size_t total, kept = 0;
    PROF_FREED size_t *bases = malloc((e->tracks.count + 1) * sizeof *bases);
    if (!bases)
        return false;
    lane_bases(e, bases, &total);
    e->last.count = 0;
    if (!prof_array_reserve(&e->last, total + 1))
        return false;
    if (total)
        memset(e->last.data, 0, total * sizeof *e->last.data);
    for (size_t i = 0; i < e->events.count; i++) {
        struct prof_html_event event = e->events.data[i];
        size_t *last = &e->last.data[bases[event.track] + event.row];
        struct prof_html_event *block = *last ? &e->events.data[*last - 1] : NULL;
        if (block && html_event_end(&event) - block->start <= span) {
            merge_into_block(block, &event);
        } else {
            e->events.data[kept++] = event;
            *last = kept;
        }
    }
    e->events.count = kept;
    return true;
}

/* Merge until at most `limit` events stay, or merging no longer helps. What came since the last
 * time is first merged with the span of then, which may be enough: else every call would double it.
 */
static bool reduce_events(struct prof_html_events *e, size_t limit)
{
    int64_t span = e->end_ns > e->begin_ns ? prof_subtract(e->end_ns, e->begin_ns) : 1;
    if (e->events.count > limit && e->merge_ns && !merge_short_events(e, e->merge_ns))
        return false;
    while (e->events.count > limit && e->merge_ns <= span) {
        e->merge_ns = e->merge_ns ? e->merge_ns + e->merge_ns / 2 + 1 : span / 1000000 + 1;
        if (!merge_short_events(e, e->merge_ns))
            return false;
    }
    return true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static enum prof_html_kind html_event_kind(const struct prof_event *event)
{
    switch (event->kind) {
    case PROF_EVENT_KERNEL:
    case PROF_EVENT_GRAPH:
        return PROF_HTML_KERNEL;
    case PROF_EVENT_TRANSFER:
        return PROF_HTML_COPY;
    case PROF_EVENT_MEMSET:
        return PROF_HTML_FILL;
    case PROF_EVENT_RANGE:
        return PROF_HTML_RANGE;
    case PROF_EVENT_MARKER:
        return PROF_HTML_MARK;
    case PROF_EVENT_API:
        return event->record_kind == PROF_EVENT_SYNC ? PROF_HTML_WAIT : PROF_HTML_API;
    case PROF_EVENT_OVERHEAD:
    case PROF_EVENT_JIT:
        return PROF_HTML_OVERHEAD;
    default:
        return PROF_HTML_WAIT;
    }
}

static bool is_device_kind(enum prof_html_kind kind)
{
    return kind <= PROF_HTML_FILL;
}

/* A row's number and its table in one. Unsigned: a damaged capture numbers rows as it likes. */
static int64_t link_to(int64_t id, enum prof_event_kind kind)
{
    return (int64_t)((uint64_t)id * KINDS + (uint64_t)kind);
}

static void fill_html_event(const struct prof_html_events *e, const struct prof_event *event,
                            struct prof_html_event *out)
{
    out->kind = html_event_kind(event);
    out->start = event->start_ns;
    out->duration = event->duration_ns == PROF_UNKNOWN ? -1 : event->duration_ns;
    out->count = 1;
    if (is_device_kind(out->kind)) {
        out->link = event->api_start_ns == PROF_UNKNOWN ? 0 : link_to(event->id, event->kind);
        out->extra =
            out->kind == PROF_HTML_KERNEL ? (event->config ? event->config->id : 0) : event->bytes;
    } else if (out->kind == PROF_HTML_API && event->record_kind != PROF_EVENT_API) {
        out->link = link_to(event->record_id, event->record_kind);
    } else if (out->kind == PROF_HTML_RANGE && out->duration < 0) {
        out->duration = e->end_ns > out->start ? prof_subtract(e->end_ns, out->start) : 0;
        out->extra = 1;
    }
    if ((out->kind == PROF_HTML_API || out->kind == PROF_HTML_WAIT) &&
        event->result != PROF_UNKNOWN)
        out->extra = event->result;
    out->busy = out->longest = out->duration > 0 ? out->duration : 0;
}

/* A device record whose call is shown has that one's. */
static bool add_event_stack(struct prof_html_events *e, const struct prof_event *event,
                            struct prof_html_event *entry)
{
    bool own = entry->kind == PROF_HTML_API || entry->kind == PROF_HTML_WAIT ||
               (is_device_kind(entry->kind) && !entry->link);
    return !own || prof_report_stacks_node(&e->stacks, event->stack, &entry->stack);
}

static bool place_event(struct prof_html_events *e, struct prof_html_event *entry)
{
    struct prof_html_track *track = &e->tracks.data[entry->track];
    int64_t end = html_event_end(entry);
    size_t row;
    bool fresh;
    if (!prof_report_lane(&e->lanes, entry->track, entry->start, end, false, &row, &fresh))
        return false;
    entry->row = (uint32_t)row;
    track->rows = entry->row >= track->rows ? entry->row + 1 : track->rows;
    e->begin_ns = entry->start < e->begin_ns ? entry->start : e->begin_ns;
    e->end_ns = end > e->end_ns ? end : e->end_ns;
    struct prof_html_event *room = prof_array_add(&e->events);
    if (room)
        *room = *entry;
    return room != NULL;
}

static bool add_html_event(struct prof_html_events *e, const struct prof_event *event)
{
    struct prof_html_event entry = {0};
    if (event->kind == PROF_EVENT_SYNC && (event->api_name || !event->thread))
        return true; /* its call is an event of its own */
    if (html_event_kind(event) == PROF_HTML_OVERHEAD && !event->thread)
        return true; /* of the tools' own threads: in the table only */
    fill_html_event(e, event, &entry);
    e->counts[entry.kind]++;
    if (entry.start == PROF_UNKNOWN) {
        e->not_shown++;
        return true;
    }
    enum prof_html_lane lane = is_device_kind(entry.kind) ? PROF_HTML_STREAM
                               : entry.kind == PROF_HTML_RANGE || entry.kind == PROF_HTML_MARK
                                   ? PROF_HTML_RANGES
                                   : PROF_HTML_CALLS;
    int64_t id = lane == PROF_HTML_STREAM ? event->stream : event->thread;
    bool copies = entry.kind == PROF_HTML_COPY || entry.kind == PROF_HTML_FILL;
    if (!add_track(e, lane, id, event->process, &entry.track) ||
        !(copies ? add_copy_name(e, event, &entry.name) : add_name(e, event->name, &entry.name)) ||
        !add_event_stack(e, event, &entry))
        return false;
    uint32_t domain;
    if (lane == PROF_HTML_RANGES && event->domain) {
        if (!add_name(e, event->domain, &domain))
            return false;
        entry.extra |= ((int64_t)domain + 1) * 2;
    }
    return place_event(e, &entry);
}

/* ---- NVTX ranges on the device --------------------------------------------------------------- */

/* More are too many to be read, or ranges that overlap without nesting: then there is none. */
#define MOST_PROJECTED 200000
#define MOST_LANES 64

/* A range, a call, or what a call launched: one record, so `calls` holds only those still awaited.
 * False: out of memory. */
static bool project_event(const struct prof_html_events *e, struct prof_trace_ranges *ranges,
                          struct prof_map *calls, size_t i)
{
    const struct prof_html_event *event = &e->events.data[i];
    int64_t thread = e->tracks.data[event->track].id;
    if (event->kind == PROF_HTML_RANGE)
        return prof_trace_ranges_add(ranges, thread,
                                     &(struct prof_trace_range){.id = (int64_t)i,
                                                                .start_ns = event->start,
                                                                .end_ns = html_event_end(event)});
    if (event->kind == PROF_HTML_API && event->link)
        return prof_map_put(calls, (uint64_t)event->link, i);
    uint64_t at;
    bool found = is_device_kind(event->kind) && event->link &&
                 prof_map_remove(calls, (uint64_t)event->link, &at);
    const struct prof_html_event *call = found ? &e->events.data[at] : NULL;
    return !call || prof_trace_ranges_work(ranges, e->tracks.data[call->track].id, call->start,
                                           event->track, event->start, html_event_end(event));
}

/* Of each range and stream the time from the first to the last operation whose API call was made
 * inside the range, on its thread; the outer ones first, so that they are above. */
static bool project_ranges(struct prof_html_events *e)
{
    struct prof_trace_ranges ranges = {0};
    struct prof_map calls = {0};
    bool ok = true;
    if (!e->counts[PROF_HTML_RANGE])
        return true;
    e->not_projected = e->counts[PROF_HTML_RANGE] > PROF_TRACE_RANGES_MOST;
    for (size_t i = 0; ok && !e->not_projected && i < e->events.count; i++) {
        ok = project_event(e, &ranges, &calls, i);
        size_t count = ranges.projections.count;
        e->not_projected = count > MOST_PROJECTED || (count && ranges.most_lanes > MOST_LANES);
    }
    prof_trace_ranges_sort(&ranges);
    for (size_t i = 0; ok && !e->not_projected && i < ranges.projections.count; i++) {
        const struct prof_trace_projection *one = &ranges.projections.data[i];
        struct prof_html_track stream = e->tracks.data[one->stream];
        struct prof_html_event event = {.start = one->start_ns,
                                        .duration = prof_subtract(one->end_ns, one->start_ns),
                                        .name = e->events.data[ranges.all.data[one->range].id].name,
                                        .count = 1,
                                        .kind = PROF_HTML_PROJECTED};
        event.busy = event.longest = event.duration;
        ok = add_track(e, PROF_HTML_ON_STREAM, stream.id, stream.process, &event.track) &&
             place_event(e, &event);
    }
    prof_trace_ranges_free(&ranges);
    prof_map_free(&calls);
    return ok;
}

/* More than `full` events are too many for a page. */
static bool keep_within(struct prof_html_events *e, size_t limit, size_t *full)
{
    if (e->events.count < *full)
        return true;
    bool ok = reduce_events(e, limit);
    if (e->events.count > limit)
        *full = e->events.count * 2; /* nothing more to merge: more rows than events */
    return ok;
}

struct sampling {
    struct prof_html_events *e;
    int64_t begin_ns;
    size_t limit, full;
};

/* By the function that it ran. */
static const char *sample_name(struct prof_html_events *e, const struct prof_cpu_sample *sample)
{
    const struct prof_frame *frame =
        e->stacks.stacks ? prof_stack_place(e->stacks.stacks, sample->stack) : NULL;
    if (sample->state == PROF_CPU_BLOCKED || sample->state == PROF_CPU_PREEMPTED)
        return sample->state == PROF_CPU_BLOCKED ? "blocked" : "preempted";
    return frame && frame->function ? frame->function : "running";
}

/* A sample on a processor represents the time before it, back to the sample before. */
static bool add_html_sample(void *user, const struct prof_cpu_sample *sample)
{
    struct sampling *s = user;
    struct prof_html_events *e = s->e;
    const struct prof_thread *thread = prof_thread(e->capture, sample->thread);
    struct prof_html_event entry = {.count = 1, .kind = PROF_HTML_RUNNING};
    if (!add_track(e, PROF_HTML_SAMPLES, sample->thread, thread ? thread->process : 0,
                   &entry.track))
        return false;
    struct prof_html_track *track = &e->tracks.data[entry.track];
    int64_t least = track->end_ns > s->begin_ns ? track->end_ns : s->begin_ns;
    if (sample->state == PROF_CPU_BLOCKED || sample->state == PROF_CPU_PREEMPTED) {
        entry.kind = sample->state == PROF_CPU_BLOCKED ? PROF_HTML_BLOCKED : PROF_HTML_PREEMPTED;
        entry.start = sample->start_ns;
        entry.duration = sample->duration_ns;
    } else {
        entry.start = prof_subtract(sample->start_ns, sample->weight_ns);
        entry.start = entry.start > least ? entry.start : least;
        entry.duration = prof_subtract(sample->start_ns, entry.start);
    }
    entry.duration = entry.duration > 0 ? entry.duration : 0;
    entry.busy = entry.longest = entry.duration;
    track->end_ns = html_event_end(&entry);
    e->counts[entry.kind]++;
    return add_name(e, sample_name(e, sample), &entry.name) &&
           prof_report_stacks_node(&e->stacks, sample->stack, &entry.stack) &&
           place_event(e, &entry) && keep_within(e, s->limit, &s->full);
}

static void set_timeline_window(struct prof_html_events *e,
                                const struct prof_report_options *options)
{
    const struct prof_filter *filter = options ? options->filter : NULL;
    int64_t end = prof_end_ns(e->capture);
    e->begin_ns = filter ? filter->begin_ns : 0;
    if (filter && filter->end_ns && end != PROF_UNKNOWN && filter->end_ns < end)
        end = filter->end_ns;
    e->end_ns = end == PROF_UNKNOWN || end < e->begin_ns ? e->begin_ns : end;
}

enum prof_status prof_html_collect(struct prof_capture *capture,
                                   const struct prof_report_options *options,
                                   struct prof_html_events *e, struct prof_error *err)
{
    const uint32_t kinds = PROF_EVENTS_DEVICE | PROF_EVENTS(PROF_EVENT_API) |
                           PROF_EVENTS(PROF_EVENT_SYNC) | PROF_EVENTS(PROF_EVENT_RANGE) |
                           PROF_EVENTS(PROF_EVENT_MARKER) | PROF_EVENTS(PROF_EVENT_OVERHEAD) |
                           PROF_EVENTS(PROF_EVENT_JIT);
    struct prof_report_walk *walk;
    const struct prof_event *event;
    size_t limit = options && options->events ? options->events : PROF_HTML_EVENTS;
    bool ok = true;
    *e = (struct prof_html_events){.capture = capture};
    set_timeline_window(e, options);
    struct sampling samples = {e, e->begin_ns, limit, limit + limit / 4 + 1};
    enum prof_status status = prof_report_stacks_open(&e->stacks, capture, err);
    status = status ?: prof_report_walk_open(capture, options, kinds, &walk, err);
    if (status)
        return status;
    while (ok && (event = prof_report_walk_next(walk))) {
        ok = add_html_event(e, event) && keep_within(e, limit, &samples.full);
    }
    status = prof_report_walk_close(walk, err);
    if (!status && ok)
        status = prof_cpu_samples(capture, options ? options->filter : NULL, add_html_sample,
                                  &samples, err);
    if (!status && ok && !e->merge_ns)
        ok = project_ranges(e);
    if (!status && ok)
        ok = reduce_events(e, limit);
    if (!status && !ok)
        status = prof_fail(err, PROF_NOMEM, "cannot write the timeline: out of memory");
    return status;
}

void prof_html_events_free(struct prof_html_events *e)
{
    prof_array_free(&e->events);
    prof_array_free(&e->tracks);
    prof_array_free(&e->names);
    for (size_t i = 0; i < e->copy_names.count; i++)
        free(e->copy_names.data[i]);
    prof_array_free(&e->copy_names);
    prof_names_free(&e->name_index);
    prof_map_free(&e->track_index);
    prof_report_lanes_free(&e->lanes);
    prof_report_stacks_close(&e->stacks);
    prof_array_free(&e->last);
}
