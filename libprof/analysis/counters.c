/* Counter summary: samples of hardware counters put to the kernels that ran while they were taken.
 *
 * A device counts for everything that runs on it, so a sample says what one kernel did only as far
 * as that kernel was alone in it. What is said of a kernel rests on such samples; those with a few
 * kernels one after the other are divided by the rates that the kernels have elsewhere, because
 * leaving them out would leave out every kernel's beginning and end. What is made of the parts:
 * counters.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/counters.h"
#include "libprof/analysis/group.h"
#include "libprof/base/saturate.h"

/* Estimates for `groups` kernels and the counters of `summary`, and the one block of memory that
 * all their sums lie in; free both. False: out of memory. */
static bool counter_estimates_make(const struct prof_counter_summary *summary, size_t groups,
                                   struct counter_estimate **estimates, double **memory);
/* Levels weigh by time, so that a sum of them over a sum of times is their mean. */
static void counter_tally_add(const struct prof_counter_summary *summary,
                              struct counter_tally *tally, const struct counter_part *part);
static void counter_estimate_add(const struct prof_counter_summary *summary,
                                 struct counter_estimate *e, const struct counter_part *part);
/* To `own`, in the order of time. */
static void counter_estimate_end(const struct prof_counter_summary *summary,
                                 struct counter_estimate *e);

#define LEAST_ALONE 5 /* samples of a kernel alone, before a sample is divided by its rate */

/* What a slot of a device's samples is. */
struct slot {
    int counter; /* index in the result's counters, -1 = nothing */
    int clock;   /* that of the clock its peak counts in, -1 = none */
    double peak;
    double traced; /* what tracing adds to each warp */
};

struct work {
    struct counter_work base;
    struct prof_counter_summary *result;
    size_t counters;
    PROF_ARRAY(struct slot) slots;      /* WIRE_COUNTER_SLOTS per source */
    struct counter_estimate *estimates; /* per group */
    double *memory;                     /* of all sums */
    size_t at;                          /* sample of the scan */
    bool second;
};

#define MOST_COUNTERS 64u /* different names in a capture; any more are not looked at */
#define MOST_SOURCES 256u

/* ---- small tables ---------------------------------------------------------------------------- */

int64_t counter_physical(const struct prof_capture *capture, const char *uuid)
{
    for (size_t i = 0; uuid && i < capture->devices.count; i++) {
        const struct prof_device *d = &capture->devices.data[i];
        if (d->uuid && strcmp(d->uuid, uuid) == 0)
            return d->physical;
    }
    return 0;
}

static bool add_counter_source(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    if (w->base.sources.count >= MOST_SOURCES)
        return true;
    struct counter_source *source = prof_array_add(&w->base.sources);
    if (!source)
        return false;
    *source = (struct counter_source){
        .id = prof_column_id(row, 0),
        .physical = counter_physical(w->base.capture, (const char *)sqlite3_column_text(row, 1)),
        .interval_ns = prof_column_int(row, 2),
    };
    if (w->base.sources.count == 1)
        w->result->interval_ns = source->interval_ns;
    return true;
}

static bool add_burst(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    size_t source = counter_source_of(&w->base, prof_column_id(row, 0));
    int64_t start = prof_column_int(row, 1), duration = prof_column_int(row, 2);
    if (source == SIZE_MAX || start == PROF_UNKNOWN || duration < 0)
        return true;
    w->result->bursts++;
    struct counter_burst *burst = prof_array_add(&w->base.sources.data[source].bursts);
    if (burst)
        *burst = (struct counter_burst){start, prof_add(start, duration),
                                        sqlite3_column_int64(row, 3) > 0};
    return burst != NULL;
}

const char *counter_text(struct prof_capture *capture, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? prof_arena_copy(&capture->string_texts, text,
                                  (size_t)sqlite3_column_bytes(row, column))
                : NULL;
}

int prof_counter_find(const struct prof_counter_summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->counter_count; i++)
        if (strcmp(summary->counters[i].name, name) == 0)
            return (int)i;
    return -1;
}

static bool new_counter(struct work *w, sqlite3_stmt *row, int *index)
{
    struct prof_counter_summary *result = w->result;
    struct prof_counter *grown =
        realloc(result->counters, (result->counter_count + 1) * sizeof *grown);
    if (!grown)
        return false;
    result->counters = grown;
    int kind = sqlite3_column_int(row, 5);
    struct prof_counter *counter = &grown[result->counter_count];
    *counter = (struct prof_counter){
        .name = counter_text(w->base.capture, row, 2),
        .unit = counter_text(w->base.capture, row, 3),
        .metric = counter_text(w->base.capture, row, 4),
        .kind = kind >= PROF_COUNTER_SUM && kind <= PROF_COUNTER_MEAN ? (enum prof_counter_kind)kind
                                                                      : PROF_COUNTER_SUM,
    };
    *index = (int)result->counter_count;
    result->counter_count += counter->name != NULL;
    return counter->name != NULL;
}

static bool add_source_counter(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    size_t source = counter_source_of(&w->base, prof_column_id(row, 0));
    int64_t number = prof_column_int(row, 1);
    const char *name = (const char *)sqlite3_column_text(row, 2);
    if (source == SIZE_MAX || number < 0 || number >= WIRE_COUNTER_SLOTS || !name)
        return true;
    struct slot *slot = &w->slots.data[source * WIRE_COUNTER_SLOTS + (size_t)number];
    slot->counter = prof_counter_find(w->result, name);
    if (slot->counter < 0 && w->result->counter_count >= MOST_COUNTERS)
        return true;
    if (slot->counter < 0 && !new_counter(w, row, &slot->counter))
        return false;
    int64_t clock = prof_column_int(row, 6);
    slot->clock = clock >= 0 && clock < WIRE_COUNTER_SLOTS ? (int)clock : -1; /* a slot as yet */
    if (sqlite3_column_double(row, 7) > 0)                                    /* NULL is 0 */
        slot->peak = sqlite3_column_double(row, 7);
    if (sqlite3_column_double(row, 8) > 0 && slot->counter >= 0) {
        slot->traced = sqlite3_column_double(row, 8);
        w->result->counters[slot->counter].traced = slot->traced;
    }
    return true;
}

/* From the clock's slot to its counter. */
static void find_clocks(struct work *w)
{
    for (size_t i = 0; i < w->slots.count; i++) {
        struct slot *slot = &w->slots.data[i];
        if (slot->clock >= 0)
            slot->clock =
                w->slots.data[i / WIRE_COUNTER_SLOTS * WIRE_COUNTER_SLOTS + (size_t)slot->clock]
                    .counter;
    }
}

static enum prof_status read_tables(struct work *w, struct prof_error *err)
{
    struct prof_capture *capture = w->base.capture;
    enum prof_status status =
        prof_scan(capture, "SELECT id, uuid, interval FROM counter_device ORDER BY id",
                  add_counter_source, w, err);
    size_t slots = w->base.sources.count * WIRE_COUNTER_SLOTS;
    if (!status && slots && !prof_array_reserve(&w->slots, slots))
        status = prof_out_of_memory(err);
    for (size_t i = 0; !status && i < slots; i++)
        w->slots.data[w->slots.count++] = (struct slot){-1, -1, NAN, 0};
    if (!status)
        status = prof_scan(capture,
                           "SELECT counter_device, slot, name, unit, metric, kind, clock, peak, "
                           "traced FROM counter ORDER BY id",
                           add_source_counter, w, err);
    if (!status)
        status = prof_scan(capture,
                           "SELECT counter_device, start, duration, others FROM counter_burst "
                           "ORDER BY start",
                           add_burst, w, err);
    find_clocks(w);
    return status;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Values of a sample in the order of the result's counters, without what tracing added to the
 * kernels in it; false when one is missing. */
static bool read_values(const struct work *w, const struct counter_sampled *sampled,
                        sqlite3_stmt *row, double *values)
{
    const struct slot *slots = &w->slots.data[sampled->source * WIRE_COUNTER_SLOTS];
    double warps = 0;
    for (uint32_t i = 0; i < sampled->count; i++)
        warps += w->base.touches.data[sampled->first + i].warps;
    for (int i = 0; i < (int)WIRE_COUNTER_SLOTS; i++) {
        if (slots[i].counter < 0)
            continue;
        if (sqlite3_column_type(row, 3 + i) == SQLITE_NULL)
            return false;
        values[slots[i].counter] = sqlite3_column_double(row, 3 + i) - slots[i].traced * warps;
    }
    return true;
}

/* ---- the two scans --------------------------------------------------------------------------- */

static const struct counter_touch *touches_of(const struct work *w,
                                              const struct counter_sampled *sampled)
{
    return &w->base.touches.data[sampled->first];
}

static void add_own(struct work *w, const struct counter_sampled *sampled,
                    const struct counter_touch *touch, double busy_ns, const double *values)
{
    struct counter_part part = {.values = values,
                                .kernel_ns = touch->overlap_ns,
                                .busy_ns = busy_ns,
                                .length_ns = sampled->length_ns,
                                .launches = touch->launches,
                                .launch = touch->launch,
                                .burst = sampled->burst};
    counter_estimate_add(w->result, &w->estimates[touch->group], &part);
}

static bool divisible(const struct work *w, const struct counter_sampled *sampled)
{
    const struct counter_touch *t = touches_of(w, sampled);
    if (sampled->kind != COUNTER_SEQUENCE)
        return false;
    for (uint32_t i = 0; i < sampled->count; i++)
        if (w->estimates[t[i].group].alone.samples < LEAST_ALONE)
            return false;
    return true;
}

/* How much of a counter a group would have made in its time in the sample, at its rate elsewhere.
 */
static double expected(const struct work *w, const struct counter_touch *touch, size_t counter)
{
    const struct counter_tally *alone = &w->estimates[touch->group].alone;
    return fmax(0, alone->sums[counter]) / alone->kernel_ns * touch->overlap_ns;
}

static void divide(struct work *w, const struct counter_sampled *sampled, const double *values)
{
    const struct counter_touch *t = touches_of(w, sampled);
    double part[MOST_COUNTERS], time = 0;
    for (uint32_t i = 0; i < sampled->count; i++)
        time += t[i].overlap_ns;
    for (uint32_t i = 0; i < sampled->count; i++) {
        for (size_t k = 0; k < w->counters; k++) {
            double sum = 0, share = t[i].overlap_ns / time;
            for (uint32_t j = 0; j < sampled->count; j++)
                sum += expected(w, &t[j], k);
            if (sum > 0)
                share = expected(w, &t[i], k) / sum;
            part[k] =
                w->result->counters[k].kind == PROF_COUNTER_SUM ? values[k] * share : values[k];
        }
        add_own(w, sampled, &t[i], t[i].overlap_ns / time * sampled->busy_ns, part);
    }
}

static void second_scan(struct work *w, const struct counter_sampled *sampled, const double *values)
{
    const struct counter_touch *t = touches_of(w, sampled);
    for (uint32_t i = 0; i < sampled->count; i++) {
        if (t[i].group == COUNTER_OTHER)
            continue;
        struct counter_estimate *e = &w->estimates[t[i].group];
        struct counter_part whole = {.values = values,
                                     .kernel_ns = sampled->busy_ns,
                                     .busy_ns = sampled->busy_ns,
                                     .length_ns = sampled->length_ns};
        counter_tally_add(w->result, &e->all, &whole);
        e->others |= sampled->others;
    }
    if (sampled->kind == COUNTER_ALONE)
        add_own(w, sampled, t, sampled->busy_ns, values);
    else if (divisible(w, sampled))
        divide(w, sampled, values);
}

static bool add_counter_sample(void *user, sqlite3_stmt *row)
{
    struct work *w = user;
    double values[MOST_COUNTERS] = {0};
    if (w->at >= w->base.samples.count)
        return true;
    const struct counter_sampled *sampled = &w->base.samples.data[w->at];
    bool useless = sampled->kind == COUNTER_IDLE || sampled->kind == COUNTER_UNKNOWN ||
                   (!w->second && sampled->kind != COUNTER_ALONE);
    if (sampled->length_ns && !useless && read_values(w, sampled, row, values)) {
        const struct counter_touch *t = touches_of(w, sampled);
        if (w->second)
            second_scan(w, sampled, values);
        else
            counter_tally_add(w->result, &w->estimates[t->group].alone,
                              &(struct counter_part){.values = values,
                                                     .kernel_ns = t->overlap_ns,
                                                     .busy_ns = sampled->busy_ns,
                                                     .length_ns = sampled->length_ns});
    }
    w->at++;
    return true;
}

static enum prof_status scan_values(struct work *w, struct prof_error *err)
{
    char columns[256] = "", sql[512];
    for (unsigned i = 0; i < WIRE_COUNTER_SLOTS; i++)
        prof_append(columns, sizeof columns, ", c%u", i);
    counter_samples_sql(&w->base, columns, sql, sizeof sql);
    enum prof_status status = PROF_OK;
    for (int i = 0; !status && i < 2; i++) {
        w->at = 0;
        w->second = i == 1;
        status = prof_scan(w->base.capture, sql, add_counter_sample, w, err);
    }
    for (size_t i = 0; i < w->base.groups.count; i++)
        counter_estimate_end(w->result, &w->estimates[i]);
    return status;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void fill_values(const struct work *w, const struct counter_group *g,
                        const struct counter_estimate *e, struct prof_counter_row *row)
{
    const struct counter_tally *tally = row->joint ? &e->all : &e->own;
    const struct slot *slots = &w->slots.data[(size_t)g->source * WIRE_COUNTER_SLOTS];
    for (size_t i = 0; i < w->counters; i++)
        row->values[i] = (struct prof_counter_value){NAN, NAN, NAN, NAN, NAN};
    for (int i = 0; row->known && i < (int)WIRE_COUNTER_SLOTS; i++) {
        if (slots[i].counter < 0)
            continue;
        struct prof_counter_value v = counter_value(w->result, e, tally, (size_t)slots[i].counter);
        if (slots[i].clock >= 0) {
            struct prof_counter_value clock =
                counter_value(w->result, e, tally, (size_t)slots[i].clock);
            double at_once = tally->kernel_ns / tally->busy_ns; /* launches, side by side */
            v.share = v.rate * at_once / (slots[i].peak * clock.rate);
        }
        row->values[slots[i].counter] = v;
    }
}

static struct prof_counter_row counter_row(const struct work *w, size_t group)
{
    const struct counter_group *g = &w->base.groups.data[group];
    const struct counter_estimate *e = &w->estimates[group];
    struct prof_counter_row row = {
        .name = g->config ? g->config->name : NULL,
        .config = g->several_configs ? NULL : g->config,
        .device = w->base.sources.data[g->source].physical,
        .launches = g->launches,
        .time_ns = g->time_ns,
        .covered = g->covered,
        .covered_ns = g->covered_ns,
        .coverage = prof_share(g->covered_ns, g->time_ns),
        .joint = e->own.samples < PROF_COUNTER_MIN_SAMPLES && e->all.samples > e->own.samples,
        .shared = e->others,
    };
    row.samples = row.joint ? e->all.samples : e->own.samples;
    row.known = row.samples >= PROF_COUNTER_MIN_SAMPLES;
    row.joint_share =
        g->covered_ns > 0 ? 1 - fmin(1, e->own.kernel_ns / (double)g->covered_ns) : NAN;
    return row;
}

PROF_ORDER(by_counter_row_time, struct prof_counter_row,
           prof_order(x->time_ns, y->time_ns, x->name, y->name),
           x->config && y->config ? PROF_ASCENDING(config->id) : 0, PROF_ASCENDING(device))

static bool make_counter_rows(struct work *w)
{
    struct prof_counter_summary *result = w->result;
    size_t groups = w->base.groups.count;
    result->rows = calloc(groups + 1, sizeof *result->rows);
    if (!result->rows)
        return false;
    for (size_t i = 0; i < groups; i++) {
        const struct counter_group *g = &w->base.groups.data[i];
        if (!g->wanted || !g->covered)
            continue;
        struct prof_counter_row *row = &result->rows[result->count++];
        *row = counter_row(w, i);
        row->values = calloc(w->counters + 1, sizeof *row->values);
        if (!row->values)
            return false;
        fill_values(w, g, &w->estimates[i], row);
    }
    qsort(result->rows, result->count, sizeof *result->rows, by_counter_row_time);
    return true;
}

/* ---- interface ------------------------------------------------------------------------------- */

static enum prof_status summarise_counters(struct work *w, struct prof_error *err)
{
    enum prof_status status = read_tables(w, err);
    if (status || !w->base.sources.count)
        return status;
    status = counter_touches(&w->base, err);
    w->counters = w->result->counter_count;
    if (!status &&
        !counter_estimates_make(w->result, w->base.groups.count, &w->estimates, &w->memory))
        status = prof_out_of_memory(err);
    status = status ?: scan_values(w, err);
    if (!status && !make_counter_rows(w))
        status = prof_out_of_memory(err);
    w->result->samples = w->base.count;
    w->result->sampled_ns = w->base.sampled_ns;
    return status;
}

static void free_counters_work(struct work *w)
{
    for (size_t i = 0; i < w->base.sources.count; i++)
        prof_array_free(&w->base.sources.data[i].bursts);
    prof_array_free(&w->base.sources);
    prof_array_free(&w->base.groups);
    prof_array_free(&w->base.touches);
    prof_array_free(&w->base.samples);
    prof_map_free(&w->base.group_of);
    free(w->base.kernel_of_config);
    prof_array_free(&w->slots);
    free(w->estimates);
    free(w->memory);
    prof_scope_close(&w->base.scope);
}

enum prof_status prof_counter_summary(struct prof_capture *capture,
                                      const struct prof_filter *filter, enum prof_group group,
                                      struct prof_counter_summary *result, struct prof_error *err)
{
    struct work w = {.base = {.capture = capture, .by = group}, .result = result};
    *result = (struct prof_counter_summary){.interval_ns = PROF_UNKNOWN,
                                            .wall_ns = prof_wall_ns(capture, filter)};
    enum prof_status status = prof_scope_open(&w.base.scope, capture, filter, err);
    status = status ?: summarise_counters(&w, err);
    free_counters_work(&w);
    return status;
}

void prof_counter_summary_free(struct prof_counter_summary *result)
{
    for (size_t i = 0; i < result->count; i++)
        free(result->rows[i].values);
    free(result->rows);
    free(result->counters);
    *result = (struct prof_counter_summary){0};
}

/* ---- estimates ------------------------------------------------------------------------------- */

/* See counters.h. */

#define ARRAYS 11 /* of sums: three tallies, two times four of clusters */

static bool is_level(const struct prof_counter_summary *summary, size_t i)
{
    return summary->counters[i].kind == PROF_COUNTER_MEAN;
}

static double *slice_memory(const struct prof_counter_summary *summary, double *memory,
                            size_t *used)
{
    double *at = memory + *used;
    *used += summary->counter_count;
    return at;
}

static void make_clusters(const struct prof_counter_summary *summary,
                          struct counter_clusters *clusters, double *memory, size_t *used)
{
    clusters->value_value = slice_memory(summary, memory, used);
    clusters->value_time = slice_memory(summary, memory, used);
    clusters->value_launch = slice_memory(summary, memory, used);
    clusters->values = slice_memory(summary, memory, used);
}

static bool counter_estimates_make(const struct prof_counter_summary *summary, size_t groups,
                                   struct counter_estimate **estimates, double **memory)
{
    size_t used = 0;
    *estimates = calloc(groups + 1, sizeof **estimates);
    *memory = calloc(groups * summary->counter_count * ARRAYS + 1, sizeof **memory);
    if (!*estimates || !*memory)
        return false;
    for (size_t i = 0; i < groups; i++) {
        struct counter_estimate *e = &(*estimates)[i];
        e->alone.sums = slice_memory(summary, *memory, &used);
        e->own.sums = slice_memory(summary, *memory, &used);
        e->all.sums = slice_memory(summary, *memory, &used);
        make_clusters(summary, &e->by_launch, *memory, &used);
        make_clusters(summary, &e->by_burst, *memory, &used);
    }
    return true;
}

static void counter_tally_add(const struct prof_counter_summary *summary,
                              struct counter_tally *tally, const struct counter_part *part)
{
    tally->samples++;
    tally->kernel_ns += part->kernel_ns;
    tally->busy_ns += part->busy_ns;
    tally->length_ns += part->length_ns;
    tally->launches += part->launches;
    for (size_t i = 0; i < summary->counter_count; i++)
        tally->sums[i] += part->values[i] * (is_level(summary, i) ? part->kernel_ns : 1);
}

static void close_cluster(const struct prof_counter_summary *summary, struct counter_clusters *c)
{
    if (c->time <= 0)
        return;
    c->count++;
    c->time_time += c->time * c->time;
    c->launch_launch += c->launches * c->launches;
    for (size_t i = 0; i < summary->counter_count; i++) {
        c->value_value[i] += c->values[i] * c->values[i];
        c->value_time[i] += c->values[i] * c->time;
        c->value_launch[i] += c->values[i] * c->launches;
        c->values[i] = 0;
    }
    c->time = c->launches = 0;
}

static void cluster_add(const struct prof_counter_summary *summary, struct counter_clusters *c,
                        uint64_t key, const struct counter_part *part)
{
    if (c->open != key)
        close_cluster(summary, c);
    c->open = key;
    c->time += part->kernel_ns;
    c->launches += part->launches;
    for (size_t i = 0; i < summary->counter_count; i++)
        c->values[i] += part->values[i] * (is_level(summary, i) ? part->kernel_ns : 1);
}

static void counter_estimate_add(const struct prof_counter_summary *summary,
                                 struct counter_estimate *e, const struct counter_part *part)
{
    counter_tally_add(summary, &e->own, part);
    /* a launch that two bursts saw is two clusters */
    cluster_add(summary, &e->by_launch, (uint64_t)part->launch << 32 | part->burst, part);
    cluster_add(summary, &e->by_burst, part->burst, part);
}

static void counter_estimate_end(const struct prof_counter_summary *summary,
                                 struct counter_estimate *e)
{
    close_cluster(summary, &e->by_launch);
    close_cluster(summary, &e->by_burst);
}

/* Standard error of sum(v) / sum(o) over n clusters, from the sums of v v, v o and o o. */
static double ratio_error(int64_t n, double vv, double vo, double oo, double ratio, double sum)
{
    if (n < 2 || !(sum > 0))
        return NAN;
    double squares = vv - 2 * ratio * vo + ratio * ratio * oo;
    return sqrt((squares > 0 ? squares : 0) * (double)n / (double)(n - 1)) / sum;
}

static double rate_error(const struct counter_clusters *c, size_t i, double ratio, double sum)
{
    return ratio_error(c->count, c->value_value[i], c->value_time[i], c->time_time, ratio, sum);
}

static double launch_error(const struct counter_clusters *c, size_t i, double ratio, double sum)
{
    return ratio_error(c->count, c->value_value[i], c->value_launch[i], c->launch_launch, ratio,
                       sum);
}

struct prof_counter_value counter_value(const struct prof_counter_summary *summary,
                                        const struct counter_estimate *e,
                                        const struct counter_tally *tally, size_t i)
{
    struct prof_counter_value v = {NAN, NAN, NAN, NAN, NAN};
    enum prof_counter_kind kind = summary->counters[i].kind;
    bool own = tally == &e->own;
    double time = kind == PROF_COUNTER_CLOCK ? tally->length_ns : tally->kernel_ns;
    double scale = kind == PROF_COUNTER_MEAN ? 1 : 1e9;
    if (time <= 0)
        return v;
    double ratio = tally->sums[i] / time;
    v.rate = fmax(0, ratio) * scale; /* what tracing adds is taken off by its mean */
    if (own && kind != PROF_COUNTER_CLOCK)
        v.rate_error = scale * fmax(rate_error(&e->by_launch, i, ratio, tally->kernel_ns),
                                    rate_error(&e->by_burst, i, ratio, tally->kernel_ns));
    if (!own || kind == PROF_COUNTER_MEAN || !(tally->launches > 0))
        return v;
    if (kind == PROF_COUNTER_CLOCK) {
        v.per_launch = ratio * tally->kernel_ns / tally->launches;
        return v;
    }
    ratio = tally->sums[i] / tally->launches;
    v.per_launch = fmax(0, ratio);
    v.per_launch_error = fmax(launch_error(&e->by_launch, i, ratio, tally->launches),
                              launch_error(&e->by_burst, i, ratio, tally->launches));
    return v;
}
