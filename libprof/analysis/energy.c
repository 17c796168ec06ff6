/* See energy.h. The driver's counter moves in steps: on an H200 (driver 580.159) every 100 ms, to
 * what was used until 0 to 10 ms before. A value that is read is therefore up to a step old, plus
 * the time that the reading takes (3 to 10 ms there). From this follow bounds that assume nothing
 * of the power in between: until `t` at least what was read last before `t` was used, and at most
 * what was read first from one step after `t` on. */
#include "libprof/analysis/energy.h"

#include <math.h>

#include "libprof/analysis/group.h"
#include "libprof/base/saturate.h"

#define STEP_NS 120000000.0 /* of an H200's counter, with the time of a reading and a margin */
#define SLOW_NS 180000000.0 /* a value that stays so long has longer steps */
#define NEAR_NS 80000000    /* readings closer than this say no more than one */
#define MEAN_NS 500000000   /* power is taken of no shorter time: without it nothing is known */
#define MARGIN 1.25         /* of the power where nothing was read any more */
#define MOST_MJ (INT64_C(1) << 53)

static const struct prof_energy unknown = {NAN, NAN, NAN};

static struct prof_energy_counter *energy_counter_of(struct prof_energy_counters *counters,
                                                     int64_t device)
{
    struct prof_energy_counter *fresh;
    for (size_t i = 0; i < counters->list.count; i++)
        if (counters->list.data[i].device == device)
            return &counters->list.data[i];
    fresh = prof_array_add(&counters->list);
    if (fresh)
        *fresh = (struct prof_energy_counter){.device = device, .age_ns = STEP_NS};
    return fresh;
}

static void find_most_watts(struct prof_energy_counter *c)
{
    const struct prof_energy_sample *all = c->samples.data;
    for (size_t from = 0, to = 1; to < c->samples.count; to++) {
        while (all[to].at - all[from + 1].at >= MEAN_NS)
            from++;
        if (all[to].at - all[from].at >= MEAN_NS)
            c->most_watts = fmax(c->most_watts, (all[to].joules - all[from].joules) * 1e9 /
                                                    (double)(all[to].at - all[from].at));
    }
}

struct reading {
    struct prof_capture *capture;
    struct prof_energy_counters *counters;
};

static bool add_energy_sample(void *user, sqlite3_stmt *row)
{
    struct reading *r = user;
    const struct prof_device *device = prof_device(r->capture, prof_column_id(row, 0));
    int64_t at = prof_column_int(row, 1), mj = prof_column_int(row, 2);
    if (!device || at == PROF_UNKNOWN || mj < 0 || mj > MOST_MJ)
        return true;
    struct prof_energy_counter *c = energy_counter_of(r->counters, device->physical);
    if (!c)
        return false;
    struct prof_energy_sample *last =
        c->samples.count ? &c->samples.data[c->samples.count - 1] : NULL;
    double joules = (double)mj / 1000;
    if (last && joules < last->joules && at - last->at < NEAR_NS)
        return true; /* of two recorders of one device, one took longer to write down the time */
    if (!last || joules != last->joules) {
        c->moved_after = last ? c->read_at : at;
        c->still_since = at;
    }
    double still = (double)prof_subtract(at, c->still_since);
    c->age_ns =
        fmax(c->age_ns, still > SLOW_NS ? (double)prof_subtract(at, c->moved_after) : still);
    c->read_at = at;
    c->reset |= last && joules < last->joules;
    if (last && c->samples.count > 1 && last->at - last[-1].at < NEAR_NS) {
        *last = (struct prof_energy_sample){at, joules};
        return true;
    }
    return prof_array_push(&c->samples, (struct prof_energy_sample){at, joules});
}

enum prof_status prof_energy_read(struct prof_capture *capture,
                                  struct prof_energy_counters *counters, struct prof_error *err)
{
    struct reading r = {capture, counters};
    PROF_TRY(prof_scan(capture,
                       "SELECT device, start, energy_mj FROM device_clock "
                       "WHERE energy_mj IS NOT NULL ORDER BY start",
                       add_energy_sample, &r, err));
    for (size_t i = 0; i < counters->list.count; i++)
        find_most_watts(&counters->list.data[i]);
    return PROF_OK;
}

void prof_energy_free(struct prof_energy_counters *counters)
{
    for (size_t i = 0; i < counters->list.count; i++)
        prof_array_free(&counters->list.data[i].samples);
    prof_array_free(&counters->list);
}

/* NULL: nothing is known of the device. */
static const struct prof_energy_counter *
readable_counter(const struct prof_energy_counters *counters, int64_t device)
{
    for (size_t i = 0; i < counters->list.count; i++) {
        const struct prof_energy_counter *c = &counters->list.data[i];
        if (c->device == device)
            return c->reset || c->most_watts <= 0 ? NULL : c;
    }
    return NULL;
}

/* Used until `t`, since the driver was loaded. */
static struct prof_energy used_until(const struct prof_energy_counter *c, int64_t t)
{
    const struct prof_energy_sample *all = c->samples.data;
    size_t count = c->samples.count, after, newer;
    double time = (double)t, watts = c->most_watts * MARGIN / 1e9;
    PROF_FIND_FIRST(after, i, count, all[i].at > t);
    PROF_FIND_FIRST(newer, i, count, (double)all[i].at - c->age_ns >= time);
    struct prof_energy e = {
        .low = after ? all[after - 1].joules : all[0].joules - watts * ((double)all[0].at - time),
        .high = newer < count ? all[newer].joules
                              : all[count - 1].joules +
                                    watts * (time + c->age_ns - (double)all[count - 1].at)};
    /* A value is, on average, half a step old. */
    size_t to;
    double then = time + c->age_ns / 2;
    PROF_FIND_FIRST(to, i, count, (double)all[i].at > then);
    to = to < 1 ? 1 : to == count ? count - 1 : to;
    const struct prof_energy_sample *a = &all[to - 1], *b = &all[to];
    double part = (then - (double)a->at) / fmax(1, (double)(b->at - a->at));
    e.joules = fmin(e.high, fmax(e.low, a->joules + part * (b->joules - a->joules)));
    return e;
}

bool prof_energy_covers(const struct prof_energy_counters *counters, int64_t device, int64_t *begin,
                        int64_t *end)
{
    const struct prof_energy_counter *c = readable_counter(counters, device);
    if (!c)
        return false;
    int64_t first = c->samples.data[0].at, last = c->samples.data[c->samples.count - 1].at;
    *begin = *begin > first ? *begin : first;
    *end = *end < last ? *end : last;
    return *begin < *end;
}

struct prof_energy prof_energy_between(const struct prof_energy_counters *counters, int64_t device,
                                       int64_t begin, int64_t end)
{
    const struct prof_energy_counter *c = readable_counter(counters, device);
    int64_t from = begin, to = end;
    if (!c || !prof_energy_covers(counters, device, &from, &to) ||
        (double)prof_subtract(from, begin) > c->age_ns ||
        (double)prof_subtract(end, to) > c->age_ns)
        return unknown;
    struct prof_energy a = used_until(c, begin), b = used_until(c, end);
    return (struct prof_energy){.joules = fmax(0, b.joules - a.joules),
                                .low = fmax(0, b.low - a.high),
                                .high = b.high - a.low};
}

bool prof_energy_is_sharp(const struct prof_energy *energy)
{
    return energy->joules > 0 && energy->high - energy->low <= energy->joules / 2;
}
