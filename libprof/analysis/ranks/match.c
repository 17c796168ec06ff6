/* The same operation on all ranks: the n-th of its communicator on each. Only operations that no
 * rank can leave before every rank has come: then the last arrival is what all wait for.
 *
 * Nothing but their order says that two are the same. It is believed where operations and sizes
 * agree and hardly any rank leaves before another comes; else nothing is said of waiting at all. A
 * rank whose recording began later has fewer: then they are counted from the end. */

#include "libprof/analysis/ranks/ranks.h"

/* ---- sends and their receives ---------------------------------------------------------------- */

/* The n-th from one rank to another goes with the n-th that this one receives from it. A receive
 * waits until its send has begun; a send waits for its receive where it could not end before. That
 * is no rank's lateness: stages of a pipeline wait by design. Believed as other operations are,
 * where numbers and sizes agree and hardly any receive is over before its send has begun. */

/* One side of a transfer; ranks are those of the communicator. */
struct side {
    uint32_t communicator, event;
    int64_t from, to, start;
    bool receives;
};

struct pairing {
    struct rank_work *w;
    PROF_ARRAY(struct side) sides;
};

/* What was recorded when the communicator was made; else its rank, where that is of all. */
static int64_t rank_in(const struct rank_work *w, const struct rank_unit *unit,
                       const struct rank_communicator *communicator)
{
    const struct prof_device *device = prof_device(w->capture, unit->device);
    bool several = false;
    int64_t rank = PROF_UNKNOWN;
    for (size_t i = 0; i < w->calls.count; i++) {
        const struct rank_call *call = &w->calls.data[i];
        if (call->kind != RANK_CALL_INIT || call->process != unit->process ||
            call->communicator != communicator->number)
            continue;
        if (device && call->device == device->ordinal)
            return call->rank;
        several = rank != PROF_UNKNOWN && rank != call->rank;
        rank = call->rank;
    }
    return several ? PROF_UNKNOWN : rank != PROF_UNKNOWN ? rank : unit->rank;
}

static bool add_sides(struct pairing *p)
{
    struct rank_work *w = p->w;
    const struct rank_event *before = NULL;
    int64_t own = PROF_UNKNOWN;
    for (size_t i = 0; i < w->events.count; i++) {
        const struct rank_event *event = &w->events.data[i];
        bool receives = event->said.operation == PROF_COLLECTIVE_RECV;
        if ((!receives && event->said.operation != PROF_COLLECTIVE_SEND) ||
            event->said.peer == PROF_UNKNOWN)
            continue;
        if (!before || before->unit != event->unit || before->communicator != event->communicator)
            own = rank_in(w, &w->units.data[event->unit],
                          &w->communicators.data[event->communicator]);
        before = event;
        if (own == PROF_UNKNOWN)
            continue;
        if (!prof_array_push(&p->sides, (struct side){.communicator = event->communicator,
                                                      .event = (uint32_t)i,
                                                      .from = receives ? event->said.peer : own,
                                                      .to = receives ? own : event->said.peer,
                                                      .start = event->start,
                                                      .receives = receives}))
            return false;
    }
    return true;
}

static int by_way(const struct side *x, const struct side *y)
{
    return PROF_COMPARE(x->communicator, y->communicator) ?: PROF_COMPARE(x->from, y->from) ?:
           PROF_COMPARE(x->to, y->to);
}

/* Sends of a way first, in order. */
PROF_ORDER(by_way_and_direction, struct side, by_way(x, y), PROF_ASCENDING(receives),
           PROF_ASCENDING(start), PROF_ASCENDING(event))

static bool send_fits_receive(const struct rank_work *w, const struct rank_event *send,
                              const struct rank_event *receive)
{
    if (send->unit == receive->unit ||
        (send->said.bytes != receive->said.bytes && send->said.bytes != PROF_UNKNOWN &&
         receive->said.bytes != PROF_UNKNOWN))
        return false;
    return prof_subtract(send->start, receive->end) <= prof_add(RANK_FIT_SLACK_NS, w->clock_error);
}

/* It was there since its start and could go on when the other had come, or it was over. */
static bool set_wait(struct rank_work *w, struct rank_event *event, int64_t other)
{
    int64_t until = event->end < other ? event->end : other;
    struct prof_intervals *waits = &w->units.data[event->unit].waits.set;
    event->wait = until > event->start ? until - event->start : 0;
    if (event->wait == 0)
        return true;
    return prof_array_push(waits, (struct prof_interval){event->start, until});
}

static bool join_pair(struct rank_work *w, struct rank_event *send, struct rank_event *receive,
                      int64_t number)
{
    int64_t both = send->start > receive->start ? send->start : receive->start;
    bool waited = send->end > receive->start; /* else its bytes lay ready somewhere */
    send->sequence = receive->sequence = number;
    send->joined = receive->joined = ++w->joined;
    receive->transfer = prof_subtract(receive->end, both);
    send->transfer = prof_subtract(send->end, waited ? both : send->start);
    return set_wait(w, receive, send->start) &&
           set_wait(w, send, waited ? receive->start : send->start);
}

/* All of one way: sides [first, end). */
static bool join_way(struct pairing *p, size_t first, size_t end)
{
    struct rank_work *w = p->w;
    const struct side *sides = &p->sides.data[first];
    size_t count = (end - first) / 2, fitting = 0;
    if ((end - first) % 2 || sides[count - 1].receives || !sides[count].receives)
        return true; /* one of them lacks some */
    for (size_t i = 0; i < count; i++)
        fitting += send_fits_receive(w, &w->events.data[sides[i].event],
                                     &w->events.data[sides[count + i].event]);
    if ((double)fitting < RANK_LEAST_FITTING * (double)count)
        return true;
    for (size_t i = 0; i < count; i++) {
        struct rank_event *send = &w->events.data[sides[i].event];
        struct rank_event *receive = &w->events.data[sides[count + i].event];
        if (send_fits_receive(w, send, receive) && !join_pair(w, send, receive, (int64_t)i))
            return false;
    }
    return true;
}

static bool match_pairs(struct rank_work *w)
{
    struct pairing p = {.w = w};
    bool ok = w->clock_unknown || add_sides(&p);
    prof_array_sort(&p.sides, by_way_and_direction);
    for (size_t i = 0; ok && i < p.sides.count;) {
        size_t end = i;
        while (end < p.sides.count && by_way(&p.sides.data[i], &p.sides.data[end]) == 0)
            end++;
        ok = end - i < 2 || join_way(&p, i, end);
        i = end;
    }
    prof_array_free(&p.sides);
    return ok;
}

/* ---- collectives ----------------------------------------------------------------------------- */

PROF_ORDER(by_communicator_and_unit, struct rank_event, PROF_ASCENDING(communicator),
           PROF_ASCENDING(unit), PROF_ASCENDING(start), PROF_ASCENDING(end))

/* The events of a communicator on one unit that count: indices [first, first + count) of `order`.
 */
struct lane {
    size_t first, count;
};

struct matching {
    struct rank_work *w;
    PROF_ARRAY(uint32_t) order;
    PROF_ARRAY(struct lane) lanes;
    size_t sets; /* shortest lane */
    size_t events;
};

static struct rank_event *event_at(const struct matching *m, size_t lane, size_t set, bool from_end)
{
    const struct lane *l = &m->lanes.data[lane];
    size_t at = from_end ? l->count - m->sets + set : set;
    return &m->w->events.data[m->order.data[l->first + at]];
}

static bool same_operation(const struct rank_event *a, const struct rank_event *b)
{
    return a->said.operation == b->said.operation &&
           (a->said.bytes == b->said.bytes || a->said.bytes == PROF_UNKNOWN ||
            b->said.bytes == PROF_UNKNOWN);
}

/* Does no rank leave before the last one comes, and do all do the same? */
static bool lanes_match(const struct matching *m, size_t set, bool from_end)
{
    const struct rank_event *first = event_at(m, 0, set, from_end);
    int64_t last_start = first->start, first_end = first->end;
    for (size_t lane = 1; lane < m->lanes.count; lane++) {
        const struct rank_event *event = event_at(m, lane, set, from_end);
        if (!same_operation(first, event))
            return false;
        last_start = event->start > last_start ? event->start : last_start;
        first_end = event->end < first_end ? event->end : first_end;
    }
    /* Clocks that could not be compared say nothing against it. */
    return m->w->clock_unknown ||
           prof_subtract(last_start, first_end) <= prof_add(RANK_FIT_SLACK_NS, m->w->clock_error);
}

static size_t count_fitting(const struct matching *m, bool from_end)
{
    size_t count = 0;
    for (size_t set = 0; set < m->sets; set++)
        count += lanes_match(m, set, from_end);
    return count;
}

static bool add_matched_set(const struct matching *m, size_t set, bool from_end)
{
    struct rank_work *w = m->w;
    if (!prof_array_reserve(&w->sets, 1) || !prof_array_reserve(&w->members, m->lanes.count))
        return false;
    struct rank_set *made = &w->sets.data[w->sets.count++];
    const struct rank_event *first = event_at(m, 0, set, from_end);
    *made = (struct rank_set){.first = w->members.count,
                              .count = m->lanes.count,
                              .communicator = first->communicator,
                              .transfer = INT64_MAX};
    int64_t earliest = INT64_MAX, last = INT64_MIN, before = INT64_MIN;
    for (size_t lane = 0; lane < m->lanes.count; lane++) {
        const struct rank_event *event = event_at(m, lane, set, from_end);
        uint32_t number = (uint32_t)(event - w->events.data);
        int64_t duration = prof_subtract(event->end, event->start);
        w->members.data[w->members.count++] = number;
        made->transfer = duration < made->transfer ? duration : made->transfer;
        earliest = event->start < earliest ? event->start : earliest;
        if (event->start > last) {
            before = last;
            last = event->start;
            made->last = number;
        } else if (event->start > before) {
            before = event->start;
        }
    }
    w->joined++;
    made->late = prof_subtract(last, before);
    made->skew = prof_subtract(last, earliest);
    for (size_t lane = 0; lane < m->lanes.count; lane++) {
        struct rank_event *event = event_at(m, lane, set, from_end);
        int64_t until = event->end < last ? event->end : last;
        event->sequence = (int64_t)set;
        event->joined = w->joined;
        event->wait = until > event->start && !m->w->clock_unknown ? until - event->start : 0;
        made->caused = prof_add(made->caused, event->wait);
        struct prof_intervals *waits = &w->units.data[event->unit].waits.set;
        if (!prof_array_reserve(waits, 1))
            return false;
        if (event->wait > 0)
            waits->data[waits->count++] = (struct prof_interval){event->start, until};
    }
    return true;
}

static bool match_lanes(struct matching *m)
{
    m->sets = SIZE_MAX;
    bool even = true;
    for (size_t lane = 0; lane < m->lanes.count; lane++) {
        size_t count = m->lanes.data[lane].count;
        even &= lane == 0 || count == m->lanes.data[0].count;
        m->sets = count < m->sets ? count : m->sets;
    }
    if (m->lanes.count < 2 || m->sets == 0)
        return true;
    size_t fit = count_fitting(m, false), fit_end = even ? 0 : count_fitting(m, true);
    bool from_end = fit_end > fit;
    if ((double)(from_end ? fit_end : fit) < RANK_LEAST_FITTING * (double)m->sets) {
        m->w->why_unmatched =
            "collectives of the ranks do not go together in order: different ones, "
            "or groups that look alike, or clocks that disagree";
        return true;
    }
    if (!even)
        m->w->why_unmatched = "ranks have different numbers of collectives";
    for (size_t set = 0; set < m->sets; set++)
        if (lanes_match(m, set, from_end) && !add_matched_set(m, set, from_end))
            return false;
    return true;
}

/* One communicator: events [first, end), by unit and time. */
static bool match_communicator(struct matching *m, size_t first, size_t end)
{
    m->order.count = m->lanes.count = 0;
    for (size_t i = first; i < end; i++) {
        const struct rank_event *event = &m->w->events.data[i];
        bool fresh = i == first || event->unit != m->w->events.data[i - 1].unit;
        if (!prof_array_reserve(&m->lanes, 1) || !prof_array_reserve(&m->order, 1))
            return false;
        if (fresh)
            m->lanes.data[m->lanes.count++] = (struct lane){m->order.count, 0};
        if (!prof_collective_joins_all(event->said.operation))
            continue;
        m->order.data[m->order.count++] = (uint32_t)i;
        m->lanes.data[m->lanes.count - 1].count++;
    }
    /* A rank that only sends and receives on it has no part in the others. */
    size_t kept = 0;
    for (size_t lane = 0; lane < m->lanes.count; lane++) {
        if (m->lanes.data[lane].count)
            m->lanes.data[kept++] = m->lanes.data[lane];
    }
    m->lanes.count = kept;
    return match_lanes(m);
}

bool rank_match(struct rank_work *w)
{
    struct matching m = {.w = w};
    bool ok = true;
    prof_array_sort(&w->events, by_communicator_and_unit);
    for (size_t i = 0; ok && i < w->events.count;) {
        size_t end = i;
        while (end < w->events.count &&
               w->events.data[end].communicator == w->events.data[i].communicator)
            end++;
        ok = match_communicator(&m, i, end);
        i = end;
    }
    prof_array_free(&m.order);
    prof_array_free(&m.lanes);
    ok = ok && match_pairs(w);
    for (size_t i = 0; ok && i < w->units.count; i++)
        ok = rank_cover_finish(&w->units.data[i].waits);
    return ok;
}
