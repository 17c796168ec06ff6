/* Collectives by kind and size, and ways between ranks with their bandwidth. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/ranks/ranks.h"
#include "libprof/include/prof_roofline.h"

/* ---- measured rates of links ----------------------------------------------------------------- */

/* What the links between the ranks of a communicator were measured at, which its bus bandwidth is
 * held against. */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool rank_same_host(const struct rank_work *w, int64_t process, int64_t other)
{
    const struct prof_process *a = prof_process(w->capture, process);
    const struct prof_process *b = prof_process(w->capture, other);
    return a && b && same_text(a->host, b->host) && same_text(a->boot_id, b->boot_id);
}

/* NaN when its device was not measured with another beside it. */
static double peer_rate(const struct rank_work *w, const struct prof_ceilings *ceilings,
                        const struct rank_unit *unit)
{
    const struct prof_device *device = prof_device(w->capture, unit->device);
    const struct prof_ceiling *peer =
        device ? prof_ceiling_find(ceilings, device->physical, PROF_CEILING_PEER_COPY) : NULL;
    return peer ? peer->value : NAN;
}

/* Of a communicator while its ranks are gone through, whose events stand together. */
struct reach {
    const struct rank_unit *first; /* NULL = none yet */
    uint32_t last;
    int64_t units;
    double slowest; /* NaN: not known of one of them, or outside this host */
};

static void add_unit(const struct rank_work *w, const struct prof_ceilings *ceilings,
                     struct reach *reach, uint32_t number)
{
    const struct rank_unit *unit = &w->units.data[number];
    double rate = NAN;
    if (reach->first && reach->last == number)
        return;
    if (!reach->first)
        *reach = (struct reach){.first = unit, .slowest = INFINITY};
    if (rank_same_host(w, reach->first->process, unit->process))
        rate = peer_rate(w, ceilings, unit);
    if (isnan(rate) || rate < reach->slowest) /* what is NaN stays so */
        reach->slowest = rate;
    reach->last = number;
    reach->units++;
}

enum prof_status rank_link_rates(struct rank_work *w, struct prof_error *err)
{
    struct prof_ceilings ceilings;
    PROF_FREED struct reach *reach = calloc(w->communicators.count + 1, sizeof *reach);
    enum prof_status status =
        reach ? prof_ceilings(w->capture, &ceilings, err) : prof_out_of_memory(err);
    for (size_t i = 0; !status && i < w->events.count; i++)
        add_unit(w, &ceilings, &reach[w->events.data[i].communicator], w->events.data[i].unit);
    for (size_t i = 0; !status && i < w->communicators.count; i++) {
        struct rank_communicator *its = &w->communicators.data[i];
        bool whole = reach[i].units > 1 && reach[i].units >= its->ranks;
        its->link_rate = whole ? reach[i].slowest : NAN; /* ranks not here may be anywhere */
    }
    if (!status)
        prof_ceilings_free(&ceilings);
    return status;
}

/* ---- sums ------------------------------------------------------------------------------------ */

#define LEAST_LINK_BYTES                                                                           \
    (INT64_C(1) << 20) /* smaller messages measure latency, not the link                           \
                        */

/* Ranks of a communicator: as it was recorded, else those that were seen in it. */
static int64_t communicator_ranks(const struct rank_work *w, uint32_t communicator, int64_t seen)
{
    int64_t told = w->communicators.data[communicator].ranks;
    return told != PROF_UNKNOWN ? told : seen > 1 ? seen : PROF_UNKNOWN;
}

static void name_communicator(uint64_t number, char text[20])
{
    text[0] = '\0';
    if (number)
        snprintf(text, 20, "0x%" PRIx64, number);
}

/* ---- collectives ----------------------------------------------------------------------------- */

struct building {
    struct prof_gather duration, transfer, skew;
    int64_t bytes; /* of all calls of one operation */
    uint32_t communicator;
    uint32_t last_unit;
};

struct tables {
    struct rank_work *w;
    struct prof_names rows_at;
    PROF_ARRAY(struct prof_collective_row) rows;
    PROF_ARRAY(struct building) building;
    struct prof_spread_budget budget;
    uint32_t *row_of; /* by event */
};

static uint32_t collective_row_number(struct tables *t, const struct rank_event *event)
{
    struct {
        int64_t message, bytes;
        const char *reduction;
        uint32_t communicator, operation;
    } key = {event->said.message, event->said.bytes, event->said.reduction, event->communicator,
             event->said.operation};
    const uint32_t *known = prof_names_get(&t->rows_at, (const char *)&key, sizeof key);
    if (known)
        return *known;
    const struct rank_communicator *c = &t->w->communicators.data[event->communicator];
    if (!prof_array_reserve(&t->rows, 1) || !prof_array_reserve(&t->building, 1) ||
        !prof_names_put(&t->rows_at, (const char *)&key, sizeof key, (uint32_t)t->rows.count))
        return PROF_NO_GROUP;
    t->building.data[t->building.count++] = (struct building){
        .bytes = event->said.bytes, .communicator = event->communicator, .last_unit = PROF_NO_RANK};
    t->rows.data[t->rows.count++] =
        (struct prof_collective_row){.operation = event->said.operation,
                                     .name = prof_collective_name(event->said.operation),
                                     .reduction = event->said.reduction,
                                     .has_communicator = c->number != 0,
                                     .communicator = c->number,
                                     .bytes = event->said.message};
    name_communicator(c->number, t->rows.data[t->rows.count - 1].communicator_text);
    return (uint32_t)t->rows.count - 1;
}

static bool add_collective_event(struct tables *t, size_t number)
{
    const struct rank_event *event = &t->w->events.data[number];
    uint32_t at = t->row_of[number] = collective_row_number(t, event);
    if (at == PROF_NO_GROUP)
        return false;
    struct prof_collective_row *row = &t->rows.data[at];
    row->count++;
    row->calls = row->calls == PROF_UNKNOWN || event->said.calls == PROF_UNKNOWN
                     ? PROF_UNKNOWN
                     : prof_add(row->calls, event->said.calls);
    row->in_graphs += event->in_graph;
    row->matched += event->wait != PROF_UNKNOWN;
    if (event->wait != PROF_UNKNOWN)
        row->wait_ns = prof_add(row->wait_ns, event->wait);
    /* Events of one communicator and unit stand together. */
    row->seen_ranks += t->building.data[at].last_unit != event->unit;
    t->building.data[at].last_unit = event->unit;
    prof_gather_add(&t->building.data[at].duration, &t->budget,
                    prof_subtract(event->end, event->start));
    if (event->transfer > 0)
        prof_gather_add(&t->building.data[at].transfer, &t->budget, event->transfer);
    return true;
}

static void finish_collective_row(struct tables *t, size_t i)
{
    struct prof_collective_row *row = &t->rows.data[i];
    struct building *b = &t->building.data[i];
    row->ranks = communicator_ranks(t->w, b->communicator, row->seen_ranks);
    row->duration_ns = prof_gather_result(&b->duration);
    row->transfer_ns = prof_gather_median(&b->transfer);
    row->skew_ns = prof_gather_median(&b->skew);
    double ns = isnan(row->transfer_ns) ? row->duration_ns.median : row->transfer_ns;
    row->algorithm_rate =
        ns > 0 ? prof_collective_bytes(row->operation, b->bytes, row->ranks) * 1e9 / ns : NAN;
    row->bus_rate = row->algorithm_rate * prof_collective_bus_factor(row->operation, row->ranks);
    row->link_rate = t->w->communicators.data[b->communicator].link_rate;
    row->link_share = row->bus_rate / row->link_rate;
    prof_gather_free(&b->duration);
    prof_gather_free(&b->transfer);
    prof_gather_free(&b->skew);
}

PROF_ORDER(longest_collective_first, struct prof_collective_row, PROF_DESCENDING(duration_ns.sum),
           PROF_ASCENDING(operation), PROF_ASCENDING(communicator), PROF_DESCENDING(bytes))

bool rank_collectives(struct rank_work *w, struct prof_ranks *result)
{
    struct tables t = {.w = w};
    bool ok = (t.row_of = calloc(w->events.count + 1, sizeof *t.row_of)) != NULL;
    for (size_t i = 0; ok && i < w->events.count; i++)
        ok = add_collective_event(&t, i);
    for (size_t i = 0; ok && i < w->sets.count; i++) {
        struct building *b = &t.building.data[t.row_of[w->sets.data[i].last]];
        prof_gather_add(&b->transfer, &t.budget, w->sets.data[i].transfer);
        prof_gather_add(&b->skew, &t.budget, w->sets.data[i].skew);
    }
    for (size_t i = 0; i < t.rows.count; i++)
        finish_collective_row(&t, i);
    prof_array_sort(&t.rows, longest_collective_first);
    result->collectives = t.rows.data;
    result->collective_count = t.rows.count;
    prof_array_free(&t.building);
    prof_names_free(&t.rows_at);
    free(t.row_of);
    return ok;
}

/* ---- links ----------------------------------------------------------------------------------- */

struct link_rates {
    int64_t *values; /* bytes/s */
    size_t count, capacity;
};

struct links {
    struct rank_work *w;
    struct prof_names at;
    PROF_ARRAY(struct prof_rank_link) list;
    PROF_ARRAY(struct link_rates) rates;
};

static bool add_link_rate(struct links *l, uint32_t communicator, int64_t from, int64_t to,
                          int64_t ranks, double bytes, double rate)
{
    struct {
        int64_t from, to;
        uint64_t communicator;
    } key = {from, to, communicator};
    if (!(bytes >= (double)LEAST_LINK_BYTES) || !(rate > 0) || rate > 1e18)
        return true;
    const uint32_t *known = prof_names_get(&l->at, (const char *)&key, sizeof key);
    size_t at = known ? *known : l->list.count;
    const struct rank_communicator *c = &l->w->communicators.data[communicator];
    if (!known) {
        if (!prof_array_reserve(&l->list, 1) || !prof_array_reserve(&l->rates, 1) ||
            !prof_names_put(&l->at, (const char *)&key, sizeof key, (uint32_t)at))
            return false;
        l->rates.data[l->rates.count++] = (struct link_rates){0};
        l->list.data[l->list.count++] = (struct prof_rank_link){.has_communicator = c->number != 0,
                                                                .communicator = c->number,
                                                                .link_rate = c->link_rate,
                                                                .from = from,
                                                                .to = to,
                                                                .ranks = ranks};
        name_communicator(c->number, l->list.data[at].communicator_text);
    }
    struct link_rates *rates = &l->rates.data[at];
    if (!prof_array_room(&rates->values, &rates->capacity, rates->count + 1, sizeof *rates->values))
        return false;
    rates->values[rates->count++] = (int64_t)rate;
    l->list.data[at].count++;
    l->list.data[at].bytes = prof_add(l->list.data[at].bytes, (int64_t)bytes);
    return true;
}

static bool add_set_rate(struct links *l, const struct rank_set *set)
{
    const struct rank_event *event = &l->w->events.data[set->last];
    int64_t ranks = communicator_ranks(l->w, set->communicator, (int64_t)set->count);
    double bytes = prof_collective_bytes(event->said.operation, event->said.bytes, ranks);
    double factor = prof_collective_bus_factor(event->said.operation, ranks);
    return set->transfer <= 0 ||
           add_link_rate(l, set->communicator, PROF_UNKNOWN, PROF_UNKNOWN, ranks, bytes,
                         bytes * factor * 1e9 / (double)set->transfer);
}

static bool add_send(struct links *l, const struct rank_event *event)
{
    int64_t ns = event->transfer > 0 ? event->transfer : prof_subtract(event->end, event->start);
    if (event->said.operation != PROF_COLLECTIVE_SEND || event->said.peer == PROF_UNKNOWN ||
        ns <= 0)
        return true;
    return add_link_rate(l, event->communicator, l->w->units.data[event->unit].rank,
                         event->said.peer, 2, (double)event->said.bytes,
                         (double)event->said.bytes * 1e9 / (double)ns);
}

static bool are_alike(const struct prof_rank_link *a, const struct prof_rank_link *b)
{
    return a != b && a->ranks == b->ranks && (a->to == PROF_UNKNOWN) == (b->to == PROF_UNKNOWN);
}

static bool compare_links(struct links *l)
{
    PROF_FREED int64_t *others = calloc(l->list.count + 1, sizeof *others);
    if (!others)
        return false;
    for (size_t i = 0; i < l->list.count; i++)
        l->list.data[i].bus_rate = rank_median(l->rates.data[i].values, l->rates.data[i].count);
    for (size_t i = 0; i < l->list.count; i++) {
        size_t count = 0;
        for (size_t k = 0; k < l->list.count; k++)
            if (are_alike(&l->list.data[i], &l->list.data[k]))
                others[count++] = (int64_t)l->list.data[k].bus_rate;
        l->list.data[i].usual_rate = rank_median(others, count);
    }
    return true;
}

static int slowest_first(const void *a, const void *b)
{
    const struct prof_rank_link *x = a, *y = b;
    double left = x->bus_rate / x->usual_rate, right = y->bus_rate / y->usual_rate;
    if (isnan(left) != isnan(right))
        return isnan(left) ? 1 : -1;
    if (!isnan(left) && fabs(left - right) > 0)
        return left < right ? -1 : 1;
    return PROF_COMPARE(x->communicator, y->communicator) ?: PROF_COMPARE(x->from, y->from) ?:
           PROF_COMPARE(x->to, y->to);
}

bool rank_links(struct rank_work *w, struct prof_ranks *result)
{
    struct links l = {.w = w};
    bool ok = true;
    for (size_t i = 0; ok && i < w->sets.count; i++)
        ok = add_set_rate(&l, &w->sets.data[i]);
    for (size_t i = 0; ok && i < w->events.count; i++)
        ok = add_send(&l, &w->events.data[i]);
    ok = ok && compare_links(&l);
    prof_array_sort(&l.list, slowest_first);
    result->links = l.list.data;
    result->link_count = l.list.count;
    for (size_t i = 0; i < l.rates.count; i++)
        free(l.rates.data[i].values);
    prof_array_free(&l.rates);
    prof_names_free(&l.at);
    return ok;
}

/* ---- network ports --------------------------------------------------------------------------- */

/* What the network ports of the ranks' hosts carried. */

struct ports {
    struct rank_work *w;
    PROF_ARRAY(struct prof_rank_port) list;
};

static const char *kept(struct rank_work *w, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? prof_arena_copy(&w->capture->string_texts, text, strlen(text)) : NULL;
}

/* Where each rank had a perfkit of its own, all of them saw the ports of their host: the one that
 * looked longest counts. */
static bool add_port(void *user, sqlite3_stmt *row)
{
    struct ports *ports = user;
    struct prof_rank_port port = {
        .process = prof_column_id(row, 0),
        .name = kept(ports->w, row, 1),
        .kind = kept(ports->w, row, 2),
        .duration_ns = prof_column_size(row, 3),
        .link_rate =
            sqlite3_column_type(row, 4) == SQLITE_NULL ? NAN : sqlite3_column_double(row, 4),
        .received = prof_column_int(row, 5),
        .sent = prof_column_int(row, 6),
    };
    const struct prof_process *process = prof_process(ports->w->capture, port.process);
    if (!port.name || !process || port.duration_ns <= 0 || port.received < 0 || port.sent < 0)
        return true;
    port.host = process->host;
    port.receive_rate = (double)port.received * 1e9 / (double)port.duration_ns;
    port.send_rate = (double)port.sent * 1e9 / (double)port.duration_ns;
    port.link_share = fmax(port.receive_rate, port.send_rate) / port.link_rate;
    for (size_t i = 0; i < ports->list.count; i++) {
        struct prof_rank_port *known = &ports->list.data[i];
        if (strcmp(known->name, port.name) != 0 ||
            !rank_same_host(ports->w, known->process, port.process))
            continue;
        if (port.duration_ns > known->duration_ns)
            *known = port;
        return true;
    }
    return prof_array_push(&ports->list, port);
}

PROF_ORDER(most_first, struct prof_rank_port,
           PROF_COMPARE(prof_add(y->received, y->sent), prof_add(x->received, x->sent)),
           PROF_ASCENDING(process), strcmp(x->name, y->name))

enum prof_status rank_ports(struct rank_work *w, struct prof_ranks *result, struct prof_error *err)
{
    struct ports ports = {.w = w};
    enum prof_status status = prof_scan(w->capture,
                                        "SELECT process, name, kind, duration, link_rate, "
                                        "received, sent FROM network_port ORDER BY id",
                                        add_port, &ports, err);
    prof_array_sort(&ports.list, most_first);
    result->ports = ports.list.data;
    result->port_count = ports.list.count;
    return status;
}
