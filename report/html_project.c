/* NVTX ranges as they are on the device: of each range and stream the time from the first to the
 * last operation whose API call was made inside the range, on its thread. */
#include <stdlib.h>

#include "libprof/base/saturate.h"
#include "report/html_events.h"

/* More are too many to be read, or ranges that overlap without nesting: then there is none. */
#define MOST_PROJECTED 200000
#define DEEPEST 64

struct projected {
    int64_t start, end;
    size_t range;    /* index of its event */
    uint32_t stream; /* index of its track */
};

struct projection {
    struct prof_html_events *e;
    uint32_t *outer;           /* by event: range around it, its index + 1; 0 = none */
    struct prof_map innermost; /* thread -> index + 1 of the range that began last */
    struct prof_map calls;     /* link -> index + 1 of the call */
    struct prof_map known;     /* range and stream -> index + 1 in `list` */
    PROF_ARRAY(struct projected) list;
    bool too_many;
};

static int64_t end_of(const struct prof_html_event *event)
{
    return prof_add(event->start, event->duration > 0 ? event->duration : 0);
}

/* Note the range in which a range or call of a thread begins. */
static bool note_range_around(struct projection *p, size_t i)
{
    const struct prof_html_event *events = p->e->events.data;
    uint64_t thread = (uint64_t)p->e->tracks.data[events[i].track].id;
    const uint64_t *known = prof_map_get(&p->innermost, thread);
    uint32_t at = known ? (uint32_t)*known : 0;
    while (at && end_of(&events[at - 1]) <= events[i].start)
        at = p->outer[at - 1];
    p->outer[i] = at;
    if (events[i].kind == PROF_HTML_RANGE)
        at = (uint32_t)i + 1;
    return prof_map_put(&p->innermost, thread, at);
}

static bool extend_projected(struct projection *p, size_t range, size_t operation)
{
    const struct prof_html_event *event = &p->e->events.data[operation];
    uint64_t key = (uint64_t)range << 24 | event->track;
    const uint64_t *known = prof_map_get(&p->known, key);
    if (known) {
        struct projected *one = &p->list.data[*known - 1];
        one->end = end_of(event) > one->end ? end_of(event) : one->end;
        one->start = event->start < one->start ? event->start : one->start;
        return true;
    }
    struct projected *one = prof_array_add(&p->list);
    if (!one)
        return false;
    *one = (struct projected){event->start, end_of(event), range, event->track};
    return prof_map_put(&p->known, key, p->list.count);
}

static bool project_operation(struct projection *p, size_t i)
{
    const struct prof_html_event *events = p->e->events.data;
    const uint64_t *call = prof_map_get(&p->calls, (uint64_t)events[i].link);
    uint32_t at = call ? p->outer[*call - 1] : 0;
    for (int depth = 0; at && depth < DEEPEST; depth++, at = p->outer[at - 1])
        if (end_of(&events[at - 1]) > events[*call - 1].start && !extend_projected(p, at - 1, i))
            return false;
    p->too_many |= at || p->list.count > MOST_PROJECTED;
    return true;
}

/* False: out of memory. */
static bool find_projected(struct projection *p)
{
    for (size_t i = 0; i < p->e->events.count && !p->too_many; i++) {
        const struct prof_html_event *event = &p->e->events.data[i];
        bool ok = true;
        if (event->kind == PROF_HTML_RANGE || event->kind == PROF_HTML_API)
            ok = note_range_around(p, i);
        if (ok && event->kind == PROF_HTML_API && event->link && p->outer[i])
            ok = prof_map_put(&p->calls, (uint64_t)event->link, i + 1);
        else if (ok && event->kind <= PROF_HTML_FILL && event->link)
            ok = project_operation(p, i);
        if (!ok)
            return false;
    }
    return true;
}

/* The outer ones first, so that they are above. */
PROF_ORDER(as_drawn, struct projected, PROF_ASCENDING(start), PROF_DESCENDING(end),
           PROF_ASCENDING(range))

static bool add_projected(struct projection *p)
{
    struct prof_html_events *e = p->e;
    for (size_t i = 0; i < p->list.count; i++) {
        const struct projected *one = &p->list.data[i];
        struct prof_html_track stream = e->tracks.data[one->stream];
        struct prof_html_event event = {.start = one->start,
                                        .duration = prof_subtract(one->end, one->start),
                                        .name = e->events.data[one->range].name,
                                        .count = 1,
                                        .kind = PROF_HTML_PROJECTED};
        event.busy = event.longest = event.duration;
        if (!prof_html_add_track(e, PROF_HTML_ON_STREAM, stream.id, stream.process, &event.track) ||
            !prof_html_place_event(e, &event))
            return false;
    }
    return true;
}

bool prof_html_project_ranges(struct prof_html_events *e)
{
    struct projection p = {.e = e, .outer = calloc(e->events.count + 1, sizeof *p.outer)};
    bool ok = p.outer && find_projected(&p);
    e->not_projected = p.too_many;
    if (ok && p.list.count && !e->not_projected) {
        qsort(p.list.data, p.list.count, sizeof *p.list.data, as_drawn);
        ok = add_projected(&p);
    }
    free(p.outer);
    prof_map_free(&p.innermost);
    prof_map_free(&p.calls);
    prof_map_free(&p.known);
    prof_array_free(&p.list);
    return ok;
}
