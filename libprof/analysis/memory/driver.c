/* The driver's own count against what was seen. perfkit samples how full a device is; at each
 * sample that must be what others hold, plus the allocations that are alive, plus what pools
 * reserve, plus what CUDA's granularity adds, plus contexts and code. The last is what is over in
 * every sample; a rest above it is memory that was not reported. */
#include <stdlib.h>

#include "libprof/analysis/memory/profile.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/memory.h"

#define GRANULE (INT64_C(2) << 20) /* of CUDA's device memory */
#define SHARED (INT64_C(1) << 20)  /* smaller allocations share granules */
#define SETTLED_NS 1000000         /* a sample is of no exact moment */

enum what { LARGE, SMALL, POOL, PADDING };
struct change {
    int64_t time, bytes;
    enum what what;
};

struct sample {
    int64_t device, time, total, used, process_used;
    int64_t live[PADDING + 1];
    bool settled;
};

struct drivers {
    struct memory_work *work;
    PROF_ARRAY(struct sample) samples; /* by device, then time */
    PROF_ARRAY(struct change) changes; /* of one device */
    struct prof_map pools;             /* pool -> reserved */
};

/* ---- reading --------------------------------------------------------------------------------- */

static bool add_driver_sample(void *user, sqlite3_stmt *row)
{
    struct drivers *d = user;
    const struct prof_device *device = prof_device(d->work->capture, prof_column_id(row, 0));
    struct sample sample = {
        .device = device ? device->physical : 0,
        .time = prof_column_int(row, 1),
        .total = prof_column_int(row, 2),
        .used = prof_column_int(row, 3),
        .process_used = prof_column_int(row, 4),
    };
    bool usable = sample.device && sample.time != PROF_UNKNOWN && sample.used >= 0 &&
                  sample.used <= INT64_MAX / 4 && sample.process_used <= INT64_MAX / 4;
    struct sample *slot = usable ? prof_array_add(&d->samples) : NULL;
    if (slot)
        *slot = sample;
    return slot || !usable;
}

PROF_ORDER(by_device_and_time, struct sample, PROF_ASCENDING(device), PROF_ASCENDING(time))

static bool add_driver_change(struct drivers *d, int64_t time, int64_t bytes, enum what what)
{
    struct change *slot = bytes ? prof_array_add(&d->changes) : NULL;
    if (slot)
        *slot = (struct change){time, bytes, what};
    return slot || !bytes;
}

static int64_t padding(int64_t bytes)
{
    return bytes >= SHARED ? (GRANULE - bytes % GRANULE) % GRANULE : 0;
}

/* An allocation comes and goes; what is from a pool is in what the pool reserves. */
static bool add_driver_item(struct drivers *d, const struct memory_item *item, bool cuda)
{
    int64_t sign = 1, time = item->start;
    for (int i = 0; i < 2; i++, sign = -1, time = item->until) {
        if (time == INT64_MAX)
            break;
        if (!add_driver_change(d, time, sign * item->bytes, item->bytes < SHARED ? SMALL : LARGE) ||
            (cuda && !add_driver_change(d, time, sign * padding(item->bytes), PADDING)))
            return false;
    }
    return true;
}

struct pool_rows {
    struct drivers *drivers;
    int64_t device;
};

static bool add_pool(void *user, sqlite3_stmt *row)
{
    struct pool_rows *rows = user;
    struct drivers *d = rows->drivers;
    const struct prof_device *device = prof_device(d->work->capture, prof_column_id(row, 2));
    int64_t bytes = prof_column_int(row, 3), time = prof_column_int(row, 4);
    if (!device || device->physical != rows->device || time == PROF_UNKNOWN)
        return true;
    if (prof_column_id(row, 5) == WIRE_POOL_DESTROYED)
        bytes = 0;
    if (bytes < 0 || bytes > INT64_MAX / 4)
        return true; /* not known */
    uint64_t key =
        (uint64_t)prof_column_id(row, 1) * 0x9e3779b97f4a7c15ull + (uint64_t)prof_column_id(row, 0);
    uint64_t *before = prof_map_get(&d->pools, key);
    int64_t grown = bytes - (before ? (int64_t)*before : 0);
    return prof_map_put(&d->pools, key, (uint64_t)bytes) && add_driver_change(d, time, grown, POOL);
}

PROF_ORDER(by_change_time, struct change, PROF_ASCENDING(time))

static enum prof_status list_changes(struct drivers *d, int64_t device, struct prof_error *err)
{
    struct pool_rows rows = {d, device};
    const struct prof_device *its = prof_device(d->work->capture, device);
    bool cuda = its && its->api && !strcmp(its->api, "cuda");
    d->changes.count = 0;
    prof_map_clear(&d->pools);
    enum prof_status status =
        prof_scan(d->work->capture,
                  "SELECT process, pool, device, bytes, start, operation FROM memory_pool "
                  "ORDER BY start, id",
                  add_pool, &rows, err);
    bool from_pools = d->changes.count > 0;
    for (size_t i = 0; !status && i < d->work->items.count; i++) {
        const struct memory_item *item = &d->work->items.data[i];
        const struct prof_memory_site *site = &d->work->sites.data[item->site].row;
        if (item->block || site->host || site->device != device ||
            (from_pools && site->kind == WIRE_MEMORY_POOL))
            continue;
        if (!add_driver_item(d, item, cuda))
            status = prof_out_of_memory(err);
    }
    prof_array_sort(&d->changes, by_change_time);
    return status;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void fill_samples(const struct drivers *d, struct sample *samples, size_t count)
{
    const struct change *changes = d->changes.data;
    int64_t live[PADDING + 1] = {0};
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        for (; at < d->changes.count && changes[at].time <= samples[i].time; at++)
            live[changes[at].what] = prof_add(live[changes[at].what], changes[at].bytes);
        bool before = at && prof_subtract(samples[i].time, changes[at - 1].time) < SETTLED_NS;
        bool after =
            at < d->changes.count && prof_subtract(changes[at].time, samples[i].time) < SETTLED_NS;
        memcpy(samples[i].live, live, sizeof live);
        samples[i].settled = !before && !after;
    }
}

static int64_t tracked_of(const struct sample *s)
{
    return prof_add(prof_add(s->live[LARGE], s->live[SMALL]), s->live[POOL]);
}

static int64_t granularity_of(const struct sample *s, bool cuda)
{
    int64_t small = s->live[SMALL] > 0 ? (GRANULE - s->live[SMALL] % GRANULE) % GRANULE : 0;
    return cuda ? prof_add(s->live[PADDING], small) : 0;
}

static int64_t other_of(const struct sample *s, int64_t before)
{
    return s->process_used == PROF_UNKNOWN ? before : prof_subtract(s->used, s->process_used);
}

/* Of what is in use, that which no allocation explains. */
static int64_t over_of(const struct sample *s, int64_t before, bool cuda)
{
    int64_t known = prof_add(tracked_of(s), granularity_of(s, cuda));
    return prof_subtract(s->used, prof_add(other_of(s, before), known));
}

static struct prof_memory_driver compare_with_driver(const struct drivers *d,
                                                     const struct sample *samples, size_t count)
{
    const struct prof_device *device = prof_device(d->work->capture, samples[0].device);
    bool cuda = device && device->api && !strcmp(device->api, "cuda");
    /* The first sample is of before the program had the device, unless something lives already. */
    int64_t before = tracked_of(&samples[0]) ? 0 : samples[0].used;
    int64_t context = INT64_MAX;
    struct prof_memory_driver row = {.device = samples[0].device, .samples = (int64_t)count};
    const struct sample *most = &samples[0];
    for (size_t i = 0; i < count; i++) {
        const struct sample *s = &samples[i];
        if (!s->settled || !tracked_of(s))
            continue;
        row.compared++;
        int64_t over = over_of(s, before, cuda);
        context = over < context ? over : context;
        if (!tracked_of(most) || s->used > most->used)
            most = s;
    }
    context = context == INT64_MAX || context < 0 ? 0 : context;
    for (size_t i = 0; i < count; i++) {
        const struct sample *s = &samples[i];
        int64_t rest = prof_subtract(over_of(s, before, cuda), context);
        double share = s->used > 0 ? (double)llabs(rest) / (double)s->used : 0;
        if (s->settled && tracked_of(s) && share > row.worst_share)
            row.worst_share = share;
    }
    row.time_ns = most->time;
    row.total_bytes = most->total;
    row.used_bytes = most->used;
    row.other_bytes = other_of(most, before);
    row.tracked_bytes = tracked_of(most);
    row.granularity_bytes = granularity_of(most, cuda);
    row.context_bytes = context;
    row.rest_bytes = prof_subtract(over_of(most, before, cuda), context);
    return row;
}

enum prof_status memory_drivers(struct memory_work *w, struct prof_memory_profile *result,
                                struct prof_error *err)
{
    struct drivers d = {.work = w};
    if (w->scope->by_time || w->scope->by_place || w->scope->by_range)
        return PROF_OK; /* the driver knows no parts */
    enum prof_status status = prof_scan(w->capture,
                                        "SELECT device, start, total, used, process_used FROM "
                                        "device_memory",
                                        add_driver_sample, &d, err);
    if (!status && d.samples.count) {
        prof_array_sort(&d.samples, by_device_and_time);
        result->drivers = calloc(d.samples.count, sizeof *result->drivers);
        status = result->drivers ? PROF_OK : prof_out_of_memory(err);
    }
    for (size_t from = 0, to; !status && from < d.samples.count; from = to) {
        int64_t device = d.samples.data[from].device;
        for (to = from; to < d.samples.count && d.samples.data[to].device == device;)
            to++;
        status = list_changes(&d, device, err);
        if (status)
            break;
        fill_samples(&d, &d.samples.data[from], to - from);
        result->drivers[result->driver_count++] =
            compare_with_driver(&d, &d.samples.data[from], to - from);
    }
    prof_array_free(&d.samples);
    prof_array_free(&d.changes);
    prof_map_free(&d.pools);
    return status;
}
