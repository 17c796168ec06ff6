/* What the links between the ranks of a communicator were measured at, which its bus bandwidth is
 * held against. */
#include <math.h>

#include "libprof/analysis/ranks/private.h"
#include "libprof/include/prof_ceilings.h"

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool rank_same_host(const struct rank_work *w, int64_t process, int64_t other)
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
    double slowest; /* NaN: not known of one of them, or beyond this host */
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

/* Ranks that are not here may be anywhere. */
static void set_rate(struct rank_communicator *communicator, const struct reach *reach)
{
    bool whole = reach->units > 1 && reach->units >= communicator->ranks;
    communicator->link_rate = whole ? reach->slowest : NAN;
}

enum prof_status rank_link_rates(struct rank_work *w, struct prof_error *err)
{
    struct prof_ceilings ceilings;
    struct reach *reach = calloc(w->communicators.count + 1, sizeof *reach);
    enum prof_status status =
        reach ? prof_ceilings(w->capture, &ceilings, err) : prof_out_of_memory(err);
    for (size_t i = 0; !status && i < w->events.count; i++)
        add_unit(w, &ceilings, &reach[w->events.data[i].communicator], w->events.data[i].unit);
    for (size_t i = 0; !status && i < w->communicators.count; i++)
        set_rate(&w->communicators.data[i], &reach[i]);
    if (!status)
        prof_ceilings_free(&ceilings);
    free(reach);
    return status;
}
