/* What devices did: kernels by name, grid and block, copies by kind and size, each with its times,
 * and how often in which NVTX range. Operations of one shape (prof_facts) are one key or part of
 * one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/compare/extract.h"
#include "libprof/base/saturate.h"

/* Keys of less time keep their sums, not their sketches: nothing more can be said about them. */
#define LEAST_SHARE 0.0005
#define LEAST_FOR_COLD                                                                             \
    4 /* launches, of which the first is warm-up where the run is the iteration */

enum { RESOURCES = 3 };
static const enum prof_metric_family resources[RESOURCES] = {
    PROF_METRIC_REGISTERS, PROF_METRIC_SHARED_BYTES, PROF_METRIC_LOCAL_BYTES};

struct key {
    const struct prof_shape *shape; /* the first of the shapes that it is made of */
    const char *name;               /* of the run */
    int64_t device;                 /* ordinal */
    uint32_t path;                  /* of its first steady operation, + 1; 0 = none yet */
    int64_t order;
    int64_t inside, outside;
    double sum; /* of the steady ones, ns */
    double *values;
    size_t count, room;
    struct prof_iteration_sums sums;
    int64_t resources[RESOURCES];
    bool others; /* many kernels: their time is a sum, and their launches are those of the ranges */
};

struct work {
    struct prof_extract *x;
    struct prof_names by_text;
    PROF_ARRAY(struct key) keys;
    uint32_t *key_of_shape;
    int64_t *first_of; /* iteration -> start of its first operation */
};

/* ---- keys ------------------------------------------------------------------------------------ */

static int64_t ordinal_of(const struct prof_extract *x, const struct prof_shape *shape)
{
    const struct prof_device *device = x->facts.devices.data[shape->device].device;
    return device && device->ordinal > 0 ? device->ordinal : 0;
}

static const char *kernel_name(const struct work *w, const struct prof_shape *shape)
{
    if (w->x->facts.kept && !shape->config && shape->kind == PROF_OP_KERNEL)
        return "(others)";
    if (shape->kind == PROF_OP_GRAPH)
        return "(CUDA graph)";
    return shape->config && shape->config->name ? shape->config->name : "(unknown)";
}

/* "HtoD pageable > device, 64 KiB": bytes by powers of two, since bandwidth depends on them. */
static int copy_name(const struct prof_shape *shape, char *out, size_t size)
{
    int class_ = shape->bytes > 0 ? 63 - __builtin_clzll((uint64_t)shape->bytes) : 0;
    const char *target = prof_memory_kind_text(shape->target_kind);
    if (shape->kind == PROF_OP_MEMSET)
        return snprintf(out, size, "memset %s, 2^%d bytes", target, class_);
    return snprintf(out, size, "%s %s > %s, 2^%d bytes", prof_copy_kind_text(shape->copy_kind),
                    prof_memory_kind_text(shape->source_kind), target, class_);
}

static uint32_t new_key(struct work *w, const struct prof_shape *shape, const char *name)
{
    struct key *key = prof_array_add(&w->keys);
    if (!key)
        return PROF_NO_GROUP;
    *key =
        (struct key){.shape = shape,
                     .name = prof_extract_text(w->x, name),
                     .device = ordinal_of(w->x, shape),
                     .order = INT64_MAX,
                     .others = w->x->facts.kept && shape->kind == PROF_OP_KERNEL && !shape->config};
    return (uint32_t)(w->keys.count - 1);
}

/* Bytes that are the same for the same key: numbers, then the name. */
static uint32_t find_key(struct work *w, const struct prof_shape *shape)
{
    char copy[128];
    const char *name = prof_is_kernel(shape) ? kernel_name(w, shape) : copy;
    if (!prof_is_kernel(shape))
        copy_name(shape, copy, sizeof copy);
    int64_t numbers[8] = {prof_is_kernel(shape), ordinal_of(w->x, shape)};
    if (shape->config) {
        memcpy(numbers + 2, shape->config->grid, sizeof shape->config->grid);
        memcpy(numbers + 5, shape->config->block, sizeof shape->config->block);
    }
    size_t length = strlen(name);
    PROF_FREED char *bytes = malloc(sizeof numbers + length);
    if (!bytes)
        return PROF_NO_GROUP;
    memcpy(bytes, numbers, sizeof numbers);
    memcpy(bytes + sizeof numbers, name, length);
    uint32_t *known = prof_names_get(&w->by_text, bytes, sizeof numbers + length);
    uint32_t key = known ? *known : new_key(w, shape, name);
    if (!known && key != PROF_NO_GROUP &&
        !prof_names_put(&w->by_text, bytes, sizeof numbers + length, key))
        key = PROF_NO_GROUP;
    return key;
}

static bool make_keys(struct work *w)
{
    const struct prof_facts *f = &w->x->facts;
    w->key_of_shape = calloc(f->shapes.count + 1, sizeof *w->key_of_shape);
    for (size_t i = 0; w->key_of_shape && i < f->shapes.count; i++) {
        w->key_of_shape[i] = find_key(w, &f->shapes.data[i]);
        if (w->key_of_shape[i] == PROF_NO_GROUP)
            return false;
    }
    return w->key_of_shape != NULL;
}

/* ---- operations ------------------------------------------------------------------------------ */

static bool add_value(struct key *key, double value)
{
    if (!prof_array_room(&key->values, &key->room, key->count + 1, sizeof *key->values))
        return false;
    key->values[key->count++] = value;
    return true;
}

static void add_busy(struct work *w, size_t iteration, const struct prof_op *op)
{
    if (iteration == PROF_NO_ITERATION)
        return;
    struct prof_iteration *it = &w->x->iterations.list.data[iteration];
    int64_t end = op->start + op->duration;
    if (it->covered == INT64_MIN)
        w->first_of[iteration] = op->start;
    int64_t begin = op->start > it->covered ? op->start : it->covered;
    if (end <= begin)
        return;
    it->busy_ns += end - begin;
    it->covered = end;
}

static void count_copy(struct prof_extract *x, const struct prof_shape *shape, uint32_t path,
                       size_t iteration)
{
    const char *place = x->paths.data[path];
    const char *name = prof_copy_kind_text(shape->copy_kind);
    bool pageable = shape->source_kind == 1 || shape->target_kind == 1;
    int64_t bytes = shape->bytes > 0 ? shape->bytes : 0;
    prof_extract_count(x, PROF_METRIC_COPIES, name, place, iteration, 1);
    prof_extract_count(x, PROF_METRIC_COPY_BYTES, name, place, iteration, bytes);
    if (shape->kind == PROF_OP_TRANSFER)
        prof_extract_count(x, PROF_METRIC_PAGEABLE_BYTES, name, place, iteration,
                           pageable ? bytes : 0);
}

static bool extract_operation(struct work *w, const struct prof_op *op, int64_t order)
{
    struct prof_extract *x = w->x;
    const struct prof_shape *shape = &x->facts.shapes.data[op->shape];
    struct key *key = &w->keys.data[w->key_of_shape[op->shape]];
    int64_t asked = op->call == PROF_UNKNOWN ? op->start : op->call;
    size_t iteration = prof_iteration_at(&x->iterations, op->thread, asked);
    bool steady = prof_extract_is_steady(x, iteration);
    uint32_t path = prof_extract_path(x, op->thread, asked);
    add_busy(w, iteration, op);
    if (order < key->order)
        key->order = order;
    if (prof_is_kernel(shape))
        prof_extract_count(x, PROF_METRIC_RANGE_LAUNCHES, "", x->paths.data[path], iteration, 1);
    else
        count_copy(x, shape, path, iteration);
    if (!steady) {
        key->outside++;
        return true;
    }
    if (!key->inside++)
        key->path = path + 1;
    double ns = op->duration > 0 ? (double)op->duration : 1;
    double value = prof_is_kernel(shape) || shape->bytes <= 0 ? ns : ns / (double)shape->bytes;
    key->sum += (double)op->duration;
    if (!prof_iteration_sums_add(&key->sums, iteration, (double)op->duration))
        return false;
    return key->others || add_value(key, value);
}

static void extract_operations(struct work *w)
{
    struct prof_op_walk at = {0};
    enum prof_op_kind kind;
    const struct prof_op *op;
    int64_t order = 0;
    while (!w->x->failed && (op = prof_facts_next(&w->x->facts, &at, &kind))) {
        if (!extract_operation(w, op, order++))
            w->x->failed = true;
    }
}

/* Operations of an iteration that run before the one before is done, or after the end of its own
 * time, are not of its time: what is left of that would be less than none. Seldom: only then all
 * are walked once more. */
static void clip_busy(struct work *w)
{
    struct prof_extract *x = w->x;
    struct prof_op_walk at = {0};
    enum prof_op_kind kind;
    const struct prof_op *op;
    bool beyond = false;
    for (size_t i = 0; i < x->iterations.list.count; i++) {
        const struct prof_iteration *it = &x->iterations.list.data[i];
        beyond |= it->covered != INT64_MIN &&
                  (w->first_of[i] < it->from || it->covered > it->from + it->time_ns);
    }
    if (!beyond)
        return;
    for (size_t i = 0; i < x->iterations.list.count; i++) {
        x->iterations.list.data[i].covered = x->iterations.list.data[i].from;
        x->iterations.list.data[i].busy_ns = 0;
    }
    while ((op = prof_facts_next(&x->facts, &at, &kind))) {
        int64_t asked = op->call == PROF_UNKNOWN ? op->start : op->call;
        size_t iteration = prof_iteration_at(&x->iterations, op->thread, asked);
        if (iteration == PROF_NO_ITERATION)
            continue;
        struct prof_iteration *it = &x->iterations.list.data[iteration];
        int64_t begin = op->start > it->covered ? op->start : it->covered;
        int64_t end = op->start + op->duration, last = it->from + it->time_ns;
        end = end < last ? end : last;
        if (end > begin) {
            it->busy_ns += end - begin;
            it->covered = end;
        }
    }
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void shape_metric(struct prof_metric *metric, const struct key *key)
{
    metric->device = key->device;
    metric->order = key->order;
    if (prof_is_kernel(key->shape) && key->shape->config) {
        memcpy(metric->grid, key->shape->config->grid, sizeof metric->grid);
        memcpy(metric->block, key->shape->config->block, sizeof metric->block);
    }
}

static const char *key_path(const struct work *w, const struct key *key)
{
    return w->x->paths.data[key->path ? key->path - 1 : 0];
}

/* Once in every iteration: then a launch is the sum of its iteration. */
static bool comes_once_each(const struct prof_extract *x, const struct key *key)
{
    size_t steady = (size_t)x->iterations.steady;
    if (key->count != steady || key->sums.list.count != steady)
        return false;
    for (size_t i = 1; i < steady; i++)
        if (key->sums.list.data[i].iteration <= key->sums.list.data[i - 1].iteration)
            return false;
    return true;
}

static void add_duration_metric(struct work *w, struct key *key, double total)
{
    struct prof_extract *x = w->x;
    size_t skip = x->iterations.source == PROF_ITERATION_RUN && key->count >= LEAST_FOR_COLD;
    if (!key->inside)
        return;
    struct prof_metric *metric =
        prof_extract_add(x, prof_is_kernel(key->shape) ? PROF_METRIC_KERNEL : PROF_METRIC_COPY,
                         key->name, key_path(w, key));
    if (!metric)
        return;
    shape_metric(metric, key);
    metric->inside = (int64_t)key->sum;
    if (key->others || key->sum < LEAST_SHARE * total)
        x->run->left_out++;
    else
        prof_extract_sketch(x, metric, key->values + skip, key->count - skip);
    if (prof_is_kernel(key->shape) && metric->sketch.count == x->iterations.steady &&
        comes_once_each(x, key))
        metric->iteration_ns = exp(metric->sketch.log_mean);
    else
        metric->iteration_ns = prof_iteration_sums_finish(x, &key->sums);
}

/* Numbers of the launch configuration, where they are known: the largest of the key's shapes. */
static void take_resources(struct work *w)
{
    for (size_t i = 0; i < w->keys.count; i++) {
        for (int r = 0; r < RESOURCES; r++)
            w->keys.data[i].resources[r] = PROF_UNKNOWN;
    }
    for (size_t i = 0; i < w->x->facts.shapes.count; i++) {
        const struct prof_config *c = w->x->facts.shapes.data[i].config;
        int64_t *most = w->keys.data[w->key_of_shape[i]].resources;
        if (!c)
            continue;
        int64_t dynamic = c->shared_dynamic == PROF_UNKNOWN ? 0 : c->shared_dynamic;
        int64_t shared = c->shared_static == PROF_UNKNOWN ? c->shared_dynamic
                                                          : prof_add(c->shared_static, dynamic);
        const int64_t values[RESOURCES] = {c->registers, shared, c->local_bytes};
        for (int r = 0; r < RESOURCES; r++)
            most[r] = values[r] > most[r] ? values[r] : most[r];
    }
}

static void add_exact(struct work *w, const struct key *key, enum prof_metric_family family,
                      int64_t inside, int64_t outside)
{
    struct prof_metric *metric = outside == PROF_UNKNOWN
                                     ? NULL
                                     : prof_extract_add(w->x, family, key->name, key_path(w, key));
    if (!metric)
        return;
    shape_metric(metric, key);
    metric->inside = inside;
    metric->outside = outside;
}

static void add_metrics(struct work *w)
{
    double total = 0;
    take_resources(w);
    for (size_t i = 0; i < w->keys.count; i++)
        total += w->keys.data[i].sum;
    for (uint32_t i = 0; i < w->keys.count && !w->x->failed; i++) {
        struct key *key = &w->keys.data[i];
        add_duration_metric(w, key, total);
        if (!prof_is_kernel(key->shape) || key->others)
            continue;
        add_exact(w, key, PROF_METRIC_LAUNCHES, key->inside, key->outside);
        for (int r = 0; r < RESOURCES; r++)
            add_exact(w, key, resources[r], 0, key->resources[r]);
    }
}

void prof_extract_device(struct prof_extract *x)
{
    struct work w = {.x = x};
    w.first_of = calloc(x->iterations.list.count + 1, sizeof *w.first_of);
    if (!w.first_of || !make_keys(&w))
        x->failed = true;
    if (!x->failed)
        extract_operations(&w);
    x->to_completion = prof_iterations_time(&x->iterations);
    if (!x->failed && x->to_completion)
        clip_busy(&w);
    if (!x->failed)
        add_metrics(&w);
    for (size_t i = 0; i < w.keys.count; i++) {
        free(w.keys.data[i].values);
        prof_array_free(&w.keys.data[i].sums.list);
    }
    prof_array_free(&w.keys);
    prof_names_free(&w.by_text);
    free(w.key_of_shape);
    free(w.first_of);
}
