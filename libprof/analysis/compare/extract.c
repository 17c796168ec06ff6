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
