/* What the network ports of the ranks' hosts carried. */
#include <math.h>

#include "libprof/analysis/ranks/private.h"

struct ports {
    struct rank_work *w;
    PROF_ARRAY(struct prof_rank_port) list;
};

static const char *kept(struct rank_work *w, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? prof_arena_copy(&w->capture->string_texts, text, strlen(text)) : NULL;
}

static bool same_port(const struct rank_work *w, const struct prof_rank_port *a,
                      const struct prof_rank_port *b)
{
    return strcmp(a->name, b->name) == 0 && rank_same_host(w, a->process, b->process);
}

/* Where each rank had a perfkit of its own, all of them saw the ports of their host: whoever looked
 * longest counts. */
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
        if (!same_port(ports->w, known, &port))
            continue;
        if (port.duration_ns > known->duration_ns)
            *known = port;
        return true;
    }
    return prof_array_push(&ports->list, port);
}

static int most_first(const void *a, const void *b)
{
    const struct prof_rank_port *x = a, *y = b;
    int64_t left = prof_add(x->received, x->sent), right = prof_add(y->received, y->sent);
    if (left != right)
        return left < right ? 1 : -1;
    return x->process != y->process ? (x->process > y->process) - (x->process < y->process)
                                    : strcmp(x->name, y->name);
}

enum prof_status rank_ports(struct rank_work *w, struct prof_ranks *result, struct prof_error *err)
{
    struct ports ports = {.w = w};
    enum prof_status status = prof_scan(w->capture,
                                        "SELECT process, name, kind, duration, link_rate, "
                                        "received, sent FROM network_port ORDER BY id",
                                        add_port, &ports, err);
    if (ports.list.count)
        qsort(ports.list.data, ports.list.count, sizeof *ports.list.data, most_first);
    result->ports = ports.list.data;
    result->port_count = ports.list.count;
    return status;
}
