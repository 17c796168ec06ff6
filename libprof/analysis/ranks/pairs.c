/* Sends and their receives: the n-th from one rank to another goes with the n-th that this one
 * receives from it. A receive waits until its send has begun; a send waits for its receive where it
 * could not end before. That is no lateness of anybody: stages of a pipeline wait by design.
 *
 * As in match.c it is believed where numbers and sizes agree and hardly any receive is over before
 * its send has begun. */
#include <stdlib.h>

#include "libprof/analysis/ranks/private.h"

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

/* What it was told when the communicator was made; else its rank, where that is of all. */
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
    if (x->communicator != y->communicator)
        return x->communicator < y->communicator ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Sends of a way first, in order. */
static int by_way_and_direction(const void *a, const void *b)
{
    const struct side *x = a, *y = b;
    int way = by_way(x, y);
    if (way)
        return way;
    if (x->receives != y->receives)
        return x->receives ? 1 : -1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

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

bool rank_pairs(struct rank_work *w)
{
    struct pairing p = {.w = w};
    bool ok = w->clock_unknown || add_sides(&p);
    if (p.sides.count)
        qsort(p.sides.data, p.sides.count, sizeof *p.sides.data, by_way_and_direction);
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
