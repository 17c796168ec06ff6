/* A capture reduced to a run: loads the facts that the rules use too, finds the iterations, and
 * lets each part add its families. One pass over each table. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/compare/extract.h"
#include "libprof/analysis/compare/metric.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/saturate.h"

static enum prof_status prof_extract_environment(struct prof_extract *x, struct prof_error *err);

const char *prof_extract_text(struct prof_extract *x, const char *text)
{
    const char *copy = prof_run_text(x->run, text ? text : "", text ? strlen(text) : 0, &x->failed);
    return copy ? copy : "";
}

struct prof_metric *prof_extract_add(struct prof_extract *x, enum prof_metric_family family,
                                     const char *name, const char *place)
{
    struct prof_metric *metric = prof_array_add(&x->metrics);
    if (!metric) {
        x->failed = true;
        return NULL;
    }
    *metric =
        (struct prof_metric){.family = family, .name = name, .place = place, .iteration_ns = NAN};
    return metric;
}

/* Where the metric stands by its texts; made when it is new. As much of a name as the key has: two
 * of one key are one metric. UINT32_MAX: out of memory. */
static uint32_t counter_of(struct prof_extract *x, enum prof_metric_family family, const char *name,
                           const char *place)
{
    char key[1200];
    int length = snprintf(key, sizeof key, "%d\n%s\n%s", (int)family, place, name);
    size_t bytes = length < (int)sizeof key ? (size_t)length : sizeof key - 1;
    uint32_t *known = prof_names_get(&x->metric_index, key, bytes);
    if (known)
        return *known;
    const struct prof_metric *metric =
        prof_extract_add(x, family, prof_extract_text(x, name), place);
    uint32_t number = metric ? (uint32_t)(metric - x->metrics.data) : UINT32_MAX;
    if (metric && prof_names_put(&x->metric_index, key, bytes, number))
        return number;
    x->failed = true;
    return UINT32_MAX;
}

/* The same texts come by the same pointers, a million times: they are a short cut, which a pointer
 * that was used again for another text does not mislead. */
static uint32_t counter_by_pointers(struct prof_extract *x, enum prof_metric_family family,
                                    const char *name, const char *place)
{
    uint64_t short_cut =
        ((uint64_t)(uintptr_t)name * 31 + (uint64_t)(uintptr_t)place) * 64 + (uint64_t)family;
    uint64_t *known = prof_map_get(&x->metric_pointers, short_cut);
    if (known) {
        const struct prof_metric *metric = &x->metrics.data[*known];
        if (metric->family == family && metric->place == place && !strcmp(metric->name, name))
            return (uint32_t)*known;
    }
    uint32_t number = counter_of(x, family, name, place);
    if (number != UINT32_MAX && !prof_map_put(&x->metric_pointers, short_cut, number))
        x->failed = true;
    return number;
}

void prof_extract_count(struct prof_extract *x, enum prof_metric_family family, const char *name,
                        const char *place, size_t iteration, int64_t amount)
{
    uint32_t number = counter_by_pointers(x, family, name ? name : "", place);
    if (number == UINT32_MAX)
        return;
    struct prof_metric *metric = &x->metrics.data[number];
    int64_t *sum = prof_extract_is_steady(x, iteration) ? &metric->inside : &metric->outside;
    *sum = prof_add(*sum, amount);
}

void prof_extract_sketch(struct prof_extract *x, struct prof_metric *metric, const double *values,
                         size_t count)
{
    if (metric && !prof_sketch_make(values, count, &metric->sketch))
        x->failed = true;
}

/* ---- sums by iteration ----------------------------------------------------------------------- */

/* Events come nearly in order of their iterations: those of several threads take turns. */
bool prof_iteration_sums_add(struct prof_iteration_sums *sums, size_t iteration, double value)
{
    struct prof_iteration_sum *last =
        sums->list.count ? &sums->list.data[sums->list.count - 1] : NULL;
    if (!last || last->iteration != iteration) {
        last = prof_array_add(&sums->list);
        if (!last)
            return false;
        *last = (struct prof_iteration_sum){iteration, 0};
    }
    last->sum += value;
    return true;
}

PROF_ORDER(by_iteration, struct prof_iteration_sum, PROF_ASCENDING(iteration))

double prof_iteration_sums_finish(struct prof_extract *x, struct prof_iteration_sums *sums)
{
    struct prof_iteration_sum *all = sums->list.data;
    size_t count = 0;
    PROF_FREED double *values = malloc((sums->list.count + 1) * sizeof *values);
    struct prof_sketch sketch = {0};
    if (values && sums->list.count) {
        bool sorted = true;
        for (size_t i = 1; i < sums->list.count && sorted; i++)
            sorted = all[i - 1].iteration <= all[i].iteration;
        if (!sorted)
            qsort(all, sums->list.count, sizeof *all, by_iteration);
        for (size_t i = 0; i < sums->list.count; i++)
            if (i && all[i].iteration == all[i - 1].iteration)
                values[count - 1] += all[i].sum;
            else
                values[count++] = all[i].sum;
    }
    x->failed |= !values || !prof_sketch_make(values, count, &sketch);
    prof_array_free(&sums->list);
    if (!count || x->failed)
        return NAN;
    return exp(sketch.log_mean) * (double)count / (double)x->iterations.steady;
}

/* ---- findings -------------------------------------------------------------------------------- */

/* A rule may speak of several devices: the worst counts. 1 info, 2 warning, 3 critical. */
static enum prof_status extract_findings(struct prof_extract *x, struct prof_error *err)
{
    struct prof_findings findings = {0};
    if (x->capture->info.kernel_filter || x->facts.kept)
        return PROF_OK;
    enum prof_status status = prof_judge_facts(x->capture, NULL, &x->facts, &findings, err);
    for (size_t i = 0; !status && i < findings.count; i++) {
        const struct prof_finding *finding = &findings.rows[i];
        const char *name = finding->subject ? finding->subject : finding->rule->id;
        struct prof_metric *metric = NULL;
        for (size_t k = 0; k < x->metrics.count; k++)
            if (x->metrics.data[k].family == PROF_METRIC_FINDING &&
                !strcmp(x->metrics.data[k].name, name))
                metric = &x->metrics.data[k];
        int64_t severity = (int64_t)finding->severity + 1;
        if (finding->hint)
            continue;
        if (!metric)
            metric = prof_extract_add(
                x, PROF_METRIC_FINDING, prof_extract_text(x, name),
                prof_extract_text(x, finding->place_count ? finding->places[0].path : ""));
        if (metric && severity > metric->outside)
            metric->outside = severity;
    }
    prof_findings_free(&findings);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void finish_extraction(struct prof_extract *x)
{
    struct prof_run *run = x->run;
    const struct prof_iterations *it = &x->iterations;
    run->iteration = it->name ? prof_extract_text(x, it->name) : NULL;
    run->iteration_source = it->source;
    run->iterations = it->steady;
    run->skipped = it->skipped;
    run->steady_ns = 0;
    for (size_t i = 0; i < it->list.count; i++) {
        if (it->list.data[i].steady)
            run->steady_ns = prof_add(run->steady_ns, it->list.data[i].time_ns);
    }
    prof_array_sort(&x->metrics, prof_metric_order);
    run->metrics = x->metrics.data;
    run->count = x->metrics.count;
    x->metrics.data = NULL;
}

static enum prof_status make_all(struct prof_extract *x, const struct prof_run_options *options,
                                 struct prof_error *err)
{
    x->path_of_node = calloc(x->facts.ranges.nodes.count + 1, sizeof *x->path_of_node);
    const char **none = prof_array_add(&x->paths);
    if (!x->path_of_node || !none)
        return prof_out_of_memory(err);
    *none = "";
    prof_extract_device(x);
    prof_extract_ranges(x);
    enum prof_status status = prof_extract_host(x, err);
    if (!status && !(options && options->no_findings))
        status = extract_findings(x, err);
    status = status ?: prof_extract_environment(x, err);
    if (!status)
        finish_extraction(x);
    return status ? status : x->failed ? prof_out_of_memory(err) : PROF_OK;
}

enum prof_status prof_run_extract(struct prof_capture *capture,
                                  const struct prof_run_options *options, struct prof_run *run,
                                  struct prof_error *err)
{
    struct prof_extract x = {.capture = capture, .run = run};
    struct prof_filter filter = {.iteration = options ? options->iteration : NULL,
                                 .skips = options && options->skip != PROF_UNKNOWN,
                                 .skip = options ? options->skip : PROF_UNKNOWN};
    prof_run_init(run);
    PROF_TRY(prof_begin(capture, err));
    enum prof_status status = prof_facts_load_few(&x.facts, capture, &filter, err);
    if (!status && x.facts.impossible)
        status = prof_fail(err, PROF_CORRUPT,
                           "cannot compare %s: it holds times or sizes that cannot be",
                           capture->info.path);
    status = status ?: prof_iterations_find(&x.iterations, &x.facts, true, err);
    status = status ?: make_all(&x, options, err);
    prof_end(capture);
    prof_facts_free(&x.facts);
    prof_iterations_free(&x.iterations);
    prof_array_free(&x.metrics);
    prof_names_free(&x.metric_index);
    prof_map_free(&x.metric_pointers);
    prof_names_free(&x.path_index);
    prof_array_free(&x.paths);
    free(x.path_of_node);
    if (status)
        prof_run_free(run);
    return status;
}

/* ---- paths of NVTX ranges -------------------------------------------------------------------- */

/* Where things happen: the names of the NVTX ranges around them, outermost first. */

#define MAX_BYTES 480

/* The last path that there is room for holds all that come after it. */
static const char others[] = "(others)";

static uint32_t path_number(struct prof_extract *x, const char *text, size_t length)
{
    uint32_t *known = prof_names_get(&x->path_index, text, length);
    if (!known && x->paths.count >= PROF_EXTRACT_MAX_PATHS - 1) {
        text = others;
        length = sizeof others - 1;
        known = prof_names_get(&x->path_index, text, length);
    }
    if (known)
        return *known;
    const char **slot = prof_array_add(&x->paths);
    if (!slot) {
        x->failed = true;
        return 0;
    }
    *slot = prof_run_text(x->run, text, length, &x->failed);
    if (!*slot || !prof_names_put(&x->path_index, text, length, (uint32_t)x->paths.count - 1)) {
        x->failed = true;
        *slot = "";
    }
    return (uint32_t)x->paths.count - 1;
}

/* Parents stand before their children in the index: no recursion deeper than what is not made yet.
 */
uint32_t prof_extract_path_of_node(struct prof_extract *x, uint32_t node)
{
    const struct prof_range_node *n = &x->facts.ranges.nodes.data[node];
    if (x->path_of_node[node])
        return x->path_of_node[node] - 1;
    uint32_t chain[64];
    size_t depth = 0;
    uint32_t up = node;
    for (; up != PROF_NO_RANGE && !x->path_of_node[up] && depth < 64;
         up = x->facts.ranges.nodes.data[up].parent)
        chain[depth++] = up;
    uint32_t path = up == PROF_NO_RANGE || !x->path_of_node[up] ? 0 : x->path_of_node[up] - 1;
    while (depth--) {
        char text[2 * MAX_BYTES];
        n = &x->facts.ranges.nodes.data[chain[depth]];
        const char *name = x->facts.range_texts.list.data[n->group];
        const char *around = x->paths.data[path];
        int length = snprintf(text, MAX_BYTES, "%s%s%s", around, *around ? "/" : "",
                              name ? name : "(unnamed)");
        path = path_number(x, text, length < MAX_BYTES ? (size_t)length : MAX_BYTES - 1);
        x->path_of_node[chain[depth]] = path + 1;
    }
    return path;
}

uint32_t prof_extract_path(struct prof_extract *x, int64_t thread, int64_t time)
{
    struct prof_range_thread *t = prof_range_thread(&x->facts.ranges, thread);
    uint32_t best = PROF_NO_RANGE;
    const struct prof_range_node *nodes = x->facts.ranges.nodes.data;
    for (size_t l = 0; t && l < t->lanes.count; l++) {
        if (t->lanes.data[l].domain && prof_lane_declares_work(&x->facts, &t->lanes.data[l]))
            continue;
        uint32_t node = prof_range_at(&x->facts.ranges, &t->lanes.data[l], time);
        if (node != PROF_NO_RANGE &&
            (best == PROF_NO_RANGE || nodes[node].begin > nodes[best].begin))
            best = node;
    }
    return best == PROF_NO_RANGE ? 0 : prof_extract_path_of_node(x, best);
}

/* ---- where and how a run was made ------------------------------------------------------------ */

/* Where and how a run was made, as far as a capture shows, and whether its times may be compared at
 * all. Nothing that is different each time belongs here: a fingerprint of live clocks or load would
 * make every run incomparable. */

#define MOST 24

struct list {
    struct prof_extract *x;
    struct prof_environment *rows;
    size_t count;
};

static void add_environment(struct list *list, enum prof_environment_level level, const char *name,
                            const char *value)
{
    if (list->count < MOST)
        list->rows[list->count++] = (struct prof_environment){
            name, value && *value ? prof_extract_text(list->x, value) : NULL, level};
}

static void add_number(struct list *list, enum prof_environment_level level, const char *name,
                       int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    add_environment(list, level, name, value == PROF_UNKNOWN ? NULL : text);
}

/* How the program ended. What crashed or gave up did other work than what went through. */
static void add_end(struct list *list, const struct prof_info *info)
{
    char text[32] = "";
    if (info->exit_signal > 0)
        snprintf(text, sizeof text, "signal %lld", (long long)info->exit_signal);
    else if (info->exit_status != PROF_UNKNOWN)
        snprintf(text, sizeof text, "%lld", (long long)info->exit_status);
    add_environment(list, PROF_ENVIRONMENT_HARD, "exit status", text);
}

/* ---- devices --------------------------------------------------------------------------------- */

enum part { NAME, UUID, DRIVER, API, UNITS, MEMORY };

static void print_part(const struct prof_device *d, enum part part, char *out, size_t size)
{
    const char *texts[] = {
        [NAME] = d->name, [UUID] = d->uuid, [DRIVER] = d->driver, [API] = d->api};
    int64_t number = part == UNITS ? d->units : d->memory_bytes;
    if (part < UNITS)
        snprintf(out, size, "%s", texts[part] ? texts[part] : "");
    else if (number == PROF_UNKNOWN)
        *out = 0;
    else
        snprintf(out, size, "%lld", (long long)number);
}

/* The devices that worked, each hardware once, in the order of their ordinals. */
static void add_devices(struct list *list, enum prof_environment_level level, const char *name,
                        enum part part)
{
    char all[512] = "";
    const struct prof_facts *f = &list->x->facts;
    for (size_t i = 0; i < f->devices.count; i++) {
        char one[256];
        if (!f->devices.data[i].device)
            continue;
        /* what a CPU device has is the host's, and some report what is free of it at the moment */
        if (part == MEMORY &&
            (!f->devices.data[i].device->kind || strcmp(f->devices.data[i].device->kind, "gpu")))
            continue;
        print_part(f->devices.data[i].device, part, one, sizeof one);
        prof_append(all, sizeof all, "%s%s", *all ? "; " : "", one);
    }
    add_environment(list, level, name, all);
}

/* ---- clock ----------------------------------------------------------------------------------- */

/* Mean cycles a second of the multiprocessors while kernels ran, where counters were sampled. */
static enum prof_status find_clock(struct prof_extract *x, struct prof_error *err)
{
    struct prof_counter_summary counters;
    enum prof_status status = prof_counter_summary(x->capture, NULL, PROF_BY_NAME, &counters, err);
    int clock = status ? -1 : prof_counter_find(&counters, "sm_cycles");
    double cycles = 0, seconds = 0;
    for (size_t i = 0; clock >= 0 && i < counters.count; i++) {
        const struct prof_counter_row *row = &counters.rows[i];
        double rate = row->known ? row->values[clock].rate : NAN;
        if (!isfinite(rate))
            continue;
        cycles += rate * (double)row->covered_ns;
        seconds += (double)row->covered_ns;
    }
    x->run->clock_hz = seconds > 0 ? cycles / seconds : NAN;
    if (!status)
        prof_counter_summary_free(&counters);
    return status;
}

/* ---- trust ----------------------------------------------------------------------------------- */

static enum prof_status take_trust(struct prof_extract *x, struct list *list,
                                   struct prof_error *err)
{
    struct prof_trust trust;
    PROF_TRY(prof_trust(x->capture, &trust, err));
    enum prof_state state = x->capture->info.state;
    /* What may be missing at the end of a process that died leaves the rest comparable; what is
     * known to be missing does not. */
    bool at_risk = trust.status == PROF_TRUST_AT_RISK && trust.lacking == 0;
    x->run->complete =
        ((trust.complete && trust.lacking == 0) || at_risk) && state != PROF_STATE_RECORDING;
    add_environment(list, PROF_ENVIRONMENT_SOFT, "records of the end",
                    at_risk ? "may be missing" : "all there");
    if (state == PROF_STATE_RECORDING)
        x->run->why_incomplete = prof_extract_text(x, prof_unfinished(&x->capture->info));
    else if (trust.complete && trust.lacking > 0)
        x->run->why_incomplete =
            prof_extract_text(x, prof_counted(trust.lacking, "call has no device record",
                                              "calls have no device record")
                                     .text);
    else if (!x->run->complete)
        x->run->why_incomplete = prof_extract_text(
            x, trust.statement_count ? trust.statements[0].text : "its trust block says so");
    prof_trust_free(&trust);
    return PROF_OK;
}

static enum prof_status prof_extract_environment(struct prof_extract *x, struct prof_error *err)
{
    const struct prof_info *info = prof_info(x->capture);
    struct prof_run *run = x->run;
    run->environment = calloc(MOST, sizeof *run->environment);
    if (!run->environment)
        return prof_out_of_memory(err);
    struct list list = {.x = x, .rows = run->environment};
    add_devices(&list, PROF_ENVIRONMENT_HARD, "device", NAME);
    add_devices(&list, PROF_ENVIRONMENT_HARD, "device units", UNITS);
    add_devices(&list, PROF_ENVIRONMENT_HARD, "device memory", MEMORY);
    add_environment(&list, PROF_ENVIRONMENT_HARD, "trace", info->trace);
    add_environment(&list, PROF_ENVIRONMENT_HARD, "kernel filter", info->kernel_filter);
    add_devices(&list, PROF_ENVIRONMENT_HARD, "api", API);
    add_end(&list, info);
    add_devices(&list, PROF_ENVIRONMENT_SOFT, "device uuid", UUID);
    add_devices(&list, PROF_ENVIRONMENT_SOFT, "driver", DRIVER);
    add_environment(&list, PROF_ENVIRONMENT_SOFT, "cpu", info->cpu);
    add_number(&list, PROF_ENVIRONMENT_SOFT, "cpu count", info->cpu_count);
    add_environment(&list, PROF_ENVIRONMENT_SOFT, "system", info->kernel);
    add_environment(&list, PROF_ENVIRONMENT_SOFT, "perfkit", info->perfkit_version);
    if (x->facts.pauses.count)
        add_environment(&list, PROF_ENVIRONMENT_INFO, PROF_ENVIRONMENT_PAUSES,
                        x->facts.sampled.count ? PROF_ENVIRONMENT_SAMPLED : "yes");
    add_environment(&list, PROF_ENVIRONMENT_INFO, "host", info->host);
    add_environment(&list, PROF_ENVIRONMENT_INFO, "command", info->command);
    run->wall_ns = info->duration_ns;
    enum prof_status status = take_trust(x, &list, err);
    run->environment_count = list.count;
    return status ? status : find_clock(x, err);
}
