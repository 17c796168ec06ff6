/* What the network carried: two readings of the ports' counters, at the beginning and at the end.
 */
#include "cli/run_network.h"

#include <string.h>

#include "libprof/base/clock.h"

#define SYS_CLASS "/sys/class"

void network_watch_begin(struct network_watch *watch)
{
    watch->begin_ns = prof_now_ns();
    watch->count = prof_network_read(SYS_CLASS, watch->before);
}

static const struct prof_network_port *find_port_before(const struct network_watch *watch,
                                                        const char *name)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (strcmp(watch->before[i].name, name) == 0)
            return &watch->before[i];
    }
    return NULL;
}

/* Counters that went back were reset by somebody: then nothing is known. */
void network_watch_end(const struct network_watch *watch, struct prof_ingest *ingest)
{
    struct prof_network_port now[PROF_NETWORK_PORTS];
    size_t count = prof_network_read(SYS_CLASS, now), kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct prof_network_port *then = find_port_before(watch, now[i].name);
        if (!then || now[i].received < then->received || now[i].sent < then->sent)
            continue;
        now[kept] = now[i];
        now[kept].received -= then->received;
        now[kept].sent -= then->sent;
        kept += now[kept].received > 0 || now[kept].sent > 0;
    }
    prof_ingest_network(ingest, now, kept, watch->begin_ns, prof_now_ns(), NULL);
}
