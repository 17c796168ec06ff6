/* A run as a JSON document and back: texts and numbers that any program can read, and SQLite in the
 * file of baselines too. What is 0, empty or unknown is left out. docs/reference/kept-files.md
 * describes it.
 *
 * Reading takes any text: each value is checked for its type and range. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/compare/metric.h"
#include "libprof/base/json.h"
#include "libprof/base/utf8.h"

#define VERSION 1

static const char *const iteration_sources[PROF_ITERATION_SOURCES] = {
    [PROF_ITERATION_ASKED] = "asked",         [PROF_ITERATION_STEP] = "step",
    [PROF_ITERATION_REPEATING] = "repeating", [PROF_ITERATION_RUN] = "run",
    [PROF_ITERATION_LAUNCHES] = "launches",
};

/* ---- runs and their texts -------------------------------------------------------------------- */

const char *prof_run_text(struct prof_run *run, const char *text, size_t length, bool *failed)
{
    if (!text)
        return NULL;
    if (!run->texts)
        run->texts = calloc(1, sizeof(struct prof_arena));
    /* Here and not when it is written: a run that was kept has the same names as a new one. */
    PROF_FREED char *clean = prof_is_utf8(text, length) ? NULL : prof_escape_utf8(text, length);
    const char *copy = NULL;
    if (run->texts && (clean || prof_is_utf8(text, length)))
        copy = prof_arena_copy(run->texts, clean ? clean : text, clean ? strlen(clean) : length);
    if (!copy)
        *failed = true;
    return copy;
}

void prof_run_init(struct prof_run *run)
{
    *run = (struct prof_run){.iteration_source = PROF_ITERATION_RUN,
                             .steady_ns = PROF_UNKNOWN,
                             .wall_ns = PROF_UNKNOWN,
                             .clock_hz = NAN};
}

void prof_run_free(struct prof_run *run)
{
    free(run->metrics);
    free(run->environment);
    if (run->texts)
        prof_arena_free(run->texts);
    free(run->texts);
    *run = (struct prof_run){0};
}

/* ---- writing --------------------------------------------------------------------------------- */

static void add_known_int(cJSON *to, const char *key, int64_t value, bool *failed)
{
    if (value == PROF_UNKNOWN)
        prof_document_add(to, key, cJSON_CreateNull(), failed);
    else if (value || !key)
        prof_document_add_int(to, key, value, failed);
}

static void add_known_real(cJSON *to, const char *key, double value, bool *failed)
{
    if (!isnan(value))
        prof_document_add(to, key, cJSON_CreateNumber(value), failed);
}

static void add_known_text(cJSON *to, const char *key, const char *text, bool *failed)
{
    if (text && *text)
        prof_document_add_text(to, key, text, failed);
}

/* As the shortest decimal that reads back as the same float: half the digits. */
static void add_floats(cJSON *to, const char *key, const float *values, int count, bool *failed)
{
    cJSON *list = NULL;
    bool any = false;
    char digits[32];
    for (int i = 0; i < count; i++)
        any |= values[i] != 0;
    if (any)
        list = prof_document_add(to, key, cJSON_CreateArray(), failed);
    for (int i = 0; list && i < count; i++) {
        for (int precision = 6; precision <= 9; precision++) {
            snprintf(digits, sizeof digits, "%.*g", precision, (double)values[i]);
            if (strtof(digits, NULL) == values[i])
                break;
        }
        prof_document_add(list, NULL, cJSON_CreateNumber(strtod(digits, NULL)), failed);
    }
}

static void add_shape(cJSON *to, const char *key, const int64_t shape[3], bool *failed)
{
    cJSON *list = prof_document_add(to, key, cJSON_CreateArray(), failed);
    for (int i = 0; list && i < 3; i++)
        add_known_int(list, NULL, shape[i], failed);
}

static void add_sketch(cJSON *to, const struct prof_sketch *s, bool *failed)
{
    add_known_int(to, "count", s->count, failed);
    if (!s->count)
        return;
    add_known_real(to, "sum", s->sum, failed);
    add_known_real(to, "log_mean", s->log_mean, failed);
    add_known_int(to, "batches", s->batches, failed);
    add_floats(to, "batch", s->batch, s->batches, failed);
    add_floats(to, "quantile", s->quantile, PROF_SKETCH_QUANTILES, failed);
}

static void add_metric(cJSON *to, const struct prof_metric *m, bool *failed)
{
    const struct prof_metric_info *info = prof_metric_info(m->family);
    add_known_text(to, "family", info->name, failed);
    add_known_text(to, "name", m->name, failed);
    add_known_text(to, "place", m->place, failed);
    if (prof_metric_has_shape(m->family)) {
        add_shape(to, "grid", m->grid, failed);
        add_shape(to, "block", m->block, failed);
    }
    add_known_int(to, "device", m->device, failed);
    add_known_int(to, "order", m->order, failed);
    add_known_int(to, "inside", m->inside, failed);
    if (info->exact) {
        add_known_int(to, "outside", m->outside, failed);
    } else {
        add_known_real(to, "iteration_ns", m->iteration_ns, failed);
        add_sketch(to, &m->sketch, failed);
    }
}

static void add_run(cJSON *to, const struct prof_run *run, bool *failed)
{
    prof_document_add_int(to, "perfkit_run", VERSION, failed);
    add_known_text(to, "iteration", run->iteration, failed);
    add_known_text(to, "iteration_source", iteration_sources[run->iteration_source], failed);
    add_known_int(to, "iterations", run->iterations, failed);
    add_known_int(to, "skipped", run->skipped, failed);
    add_known_int(to, "steady_ns", run->steady_ns, failed);
    add_known_int(to, "wall_ns", run->wall_ns, failed);
    prof_document_add(to, "complete", cJSON_CreateBool(run->complete), failed);
    add_known_text(to, "why_incomplete", run->why_incomplete, failed);
    add_known_real(to, "clock_hz", run->clock_hz, failed);
    add_known_int(to, "left_out", run->left_out, failed);
    cJSON *list = prof_document_add(to, "environment", cJSON_CreateArray(), failed);
    for (size_t i = 0; list && i < run->environment_count; i++) {
        const struct prof_environment *e = &run->environment[i];
        cJSON *row = prof_document_add(list, NULL, cJSON_CreateObject(), failed);
        add_known_text(row, "name", e->name, failed);
        prof_document_add_text(row, "value", e->value, failed);
        add_known_text(row, "level", prof_environment_level_text(e->level), failed);
    }
    list = prof_document_add(to, "metrics", cJSON_CreateArray(), failed);
    for (size_t i = 0; list && i < run->count; i++)
        add_metric(prof_document_add(list, NULL, cJSON_CreateObject(), failed), &run->metrics[i],
                   failed);
}

enum prof_status prof_run_encode(const struct prof_run *run, char **text, struct prof_error *err)
{
    cJSON *root = cJSON_CreateObject();
    bool failed = !root;
    add_run(root, run, &failed);
    *text = failed ? NULL : prof_document_print(root, false);
    cJSON_Delete(root);
    return *text ? PROF_OK : prof_out_of_memory(err);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
    struct prof_run *run;
    bool damaged, failed; /* failed: out of memory */
};

/* The member, NULL where it is not there or null; damaged when it is not of the type. */
static const cJSON *read_member(struct reader *r, const cJSON *object, const char *key, int type)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item || cJSON_IsNull(item))
        return NULL;
    if ((item->type & type) == 0) {
        r->damaged = true;
        return NULL;
    }
    return item;
}

static const char *read_text(struct reader *r, const cJSON *object, const char *key)
{
    const cJSON *item = read_member(r, object, key, cJSON_String);
    return item ? prof_run_text(r->run, item->valuestring, strlen(item->valuestring), &r->failed)
                : NULL;
}

static int64_t read_int_item(struct reader *r, const cJSON *item)
{
    int64_t value = 0;
    if (cJSON_IsNull(item))
        return PROF_UNKNOWN;
    if (item && !prof_document_int(item, &value))
        r->damaged = true;
    return value;
}

static int64_t read_int(struct reader *r, const cJSON *object, const char *key)
{
    return read_int_item(r, cJSON_GetObjectItemCaseSensitive(object, key));
}

static double read_real(struct reader *r, const cJSON *object, const char *key)
{
    const cJSON *item = read_member(r, object, key, cJSON_Number);
    if (item && !isfinite(item->valuedouble))
        r->damaged = true;
    return item ? item->valuedouble : NAN;
}

static void read_iteration_source(struct reader *r, const cJSON *root)
{
    const char *text = prof_document_text(root, "iteration_source");
    unsigned i = 0;
    while (text && i < PROF_ITERATION_SOURCES && strcmp(text, iteration_sources[i]) != 0)
        i++;
    r->damaged |= !text || i == PROF_ITERATION_SOURCES;
    if (!r->damaged)
        r->run->iteration_source = (enum prof_iteration_source)i;
}

static enum prof_environment_level read_environment_level(struct reader *r, const cJSON *row)
{
    const char *text = prof_document_text(row, "level");
    for (enum prof_environment_level level = 0; text && level <= PROF_ENVIRONMENT_INFO; level++)
        if (!strcmp(text, prof_environment_level_text(level)))
            return level;
    r->damaged = true;
    return PROF_ENVIRONMENT_INFO;
}

static void read_shape(struct reader *r, const cJSON *object, const char *key, int64_t shape[3])
{
    const cJSON *item, *list = read_member(r, object, key, cJSON_Array);
    int count = 0;
    cJSON_ArrayForEach(item, list)
    {
        if (count < 3)
            shape[count] = read_int_item(r, item);
        count++;
    }
    if (count != 3)
        r->damaged = true;
}

static void read_floats(struct reader *r, const cJSON *object, const char *key, float *values,
                        int count)
{
    const cJSON *item, *list = read_member(r, object, key, cJSON_Array);
    int at = 0;
    cJSON_ArrayForEach(item, list)
    {
        if (at < count && cJSON_IsNumber(item) && fabs(item->valuedouble) <= FLT_MAX)
            values[at] = (float)item->valuedouble;
        else
            r->damaged = true;
        at++;
    }
    if (list && at != count)
        r->damaged = true;
}

static void read_sketch(struct reader *r, const cJSON *object, struct prof_sketch *s)
{
    s->count = read_int(r, object, "count");
    if (!s->count)
        return;
    s->sum = read_real(r, object, "sum");
    s->log_mean = read_real(r, object, "log_mean");
    int64_t batches = read_int(r, object, "batches");
    if (s->count < 0 || batches < 0 || batches > PROF_SKETCH_BATCHES || isnan(s->sum) ||
        !(fabs(s->log_mean) <= 100)) {
        r->damaged = true;
        return;
    }
    s->batches = (int)batches;
    read_floats(r, object, "batch", s->batch, s->batches);
    read_floats(r, object, "quantile", s->quantile, PROF_SKETCH_QUANTILES);
}

static void read_metric(struct reader *r, const cJSON *object, struct prof_metric *m)
{
    const char *family = prof_document_text(object, "family");
    *m = (struct prof_metric){.family = family ? prof_metric_named(family) : PROF_METRICS};
    if (m->family == PROF_METRICS) {
        r->damaged = true;
        return;
    }
    m->name = read_text(r, object, "name");
    m->place = read_text(r, object, "place");
    m->name = m->name ? m->name : "";
    m->place = m->place ? m->place : "";
    if (prof_metric_has_shape(m->family)) {
        read_shape(r, object, "grid", m->grid);
        read_shape(r, object, "block", m->block);
    }
    m->device = read_int(r, object, "device");
    m->order = read_int(r, object, "order");
    m->inside = read_int(r, object, "inside");
    if (prof_metric_info(m->family)->exact) {
        m->outside = read_int(r, object, "outside");
    } else {
        m->iteration_ns = read_real(r, object, "iteration_ns");
        r->damaged |= m->iteration_ns < 0;
        read_sketch(r, object, &m->sketch);
    }
}

static void read_environment(struct reader *r, const cJSON *list)
{
    struct prof_run *run = r->run;
    const cJSON *row;
    run->environment = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *run->environment);
    r->failed |= !run->environment;
    cJSON_ArrayForEach(row, list)
    {
        if (r->damaged || r->failed)
            return;
        struct prof_environment *e = &run->environment[run->environment_count++];
        e->name = read_text(r, row, "name");
        e->value = read_text(r, row, "value");
        e->level = read_environment_level(r, row);
        r->damaged |= !e->name;
    }
}

static void read_metrics(struct reader *r, const cJSON *list)
{
    struct prof_run *run = r->run;
    const cJSON *row;
    run->metrics = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof *run->metrics);
    r->failed |= !run->metrics;
    cJSON_ArrayForEach(row, list)
    {
        if (r->damaged || r->failed)
            return;
        read_metric(r, row, &run->metrics[run->count++]);
    }
    if (run->count && !r->damaged)
        qsort(run->metrics, run->count, sizeof *run->metrics, prof_metric_order);
    for (size_t i = 1; i < run->count && !r->damaged; i++)
        r->damaged = !prof_metric_order(&run->metrics[i - 1], &run->metrics[i]);
}

static void read_run_document(struct reader *r, const cJSON *root)
{
    struct prof_run *run = r->run;
    run->iteration = read_text(r, root, "iteration");
    read_iteration_source(r, root);
    run->iterations = read_int(r, root, "iterations");
    run->skipped = read_int(r, root, "skipped");
    run->steady_ns = read_int(r, root, "steady_ns");
    run->wall_ns = read_int(r, root, "wall_ns");
    run->complete = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "complete"));
    run->why_incomplete = read_text(r, root, "why_incomplete");
    run->clock_hz = read_real(r, root, "clock_hz");
    run->left_out = read_int(r, root, "left_out");
    r->damaged |= run->iterations < 0;
    read_environment(r, read_member(r, root, "environment", cJSON_Array));
    if (!r->damaged && !r->failed)
        read_metrics(r, read_member(r, root, "metrics", cJSON_Array));
}

enum prof_status prof_run_decode(const char *text, struct prof_run *run, struct prof_error *err)
{
    struct reader r = {.run = run};
    int64_t version = 0;
    cJSON *root;
    prof_run_init(run);
    enum prof_status status = prof_document_parse(text, strlen(text), "a kept run", &root, err);
    if (status == PROF_FORMAT) {
        status = PROF_CORRUPT;
        if (err)
            err->status = status;
    }
    if (status)
        return status;
    prof_document_int(cJSON_GetObjectItemCaseSensitive(root, "perfkit_run"), &version);
    if (version == VERSION)
        read_run_document(&r, root);
    else
        r.damaged = true;
    cJSON_Delete(root);
    if (!r.damaged && !r.failed)
        return PROF_OK;
    prof_run_free(run);
    if (r.failed)
        return prof_out_of_memory(err);
    return version > VERSION
               ? prof_fail(err, PROF_VERSION,
                           "cannot read a kept run of version %lld: a later perfkit wrote it",
                           (long long)version)
               : prof_fail(err, PROF_CORRUPT, "cannot read a kept run: it is damaged");
}
