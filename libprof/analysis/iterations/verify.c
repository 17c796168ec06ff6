/* Did a change do what was predicted: each rule's bound per iteration before and after it, and the
 * time of the median iteration, with the noise that single iterations have. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/iterations/iterations.h"
#include "libprof/include/prof_verify.h"

#define GONE 0.1
#define PARTLY 0.7
#define SAME_COUNT 0.1
#define SURE 0.5 /* of the confidence */
/* What of a prediction that came true in the findings alone is elsewhere. */
#define ELSEWHERE 0.5
/* A new finding costs so much of the iteration. */
#define WORTH_NAMING 0.01

static const struct prof_words verdicts[] = {PROF_VERIFY_VERDICTS(PROF_WORDS)};

const char *prof_verify_name(enum prof_verify_verdict verdict)
{
    return verdicts[verdict].name;
}

const char *prof_verify_text(enum prof_verify_verdict verdict)
{
    return verdicts[verdict].text;
}

struct run {
    struct prof_findings findings;
    struct prof_iteration_list iterations;
    const struct prof_iteration_series *series; /* whose iterations are compared; NULL = none */
};

static enum prof_status load_run(struct run *run, struct prof_capture *capture,
                                 const struct prof_filter *filter, struct prof_error *err)
{
    const struct prof_overview_parts parts = {.findings = &run->findings,
                                              .iterations = &run->iterations};
    return prof_overview(capture, filter, &parts, err);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* A rule's findings in one run, per iteration. */
struct rule_sum {
    bool any, above;   /* one; one that is more than info and no hint */
    double bound_ns;   /* NaN where it has none */
    double confidence; /* prof_finding.rule_confidence */
    double typical_ns; /* of it, without what single iterations are out of line by */
    double count;      /* of what the rule counts first: allocations, launches */
};

static double iterations_of(const struct run *run, const struct prof_finding *finding)
{
    int64_t known = run->findings.phases[finding->phase].iterations;
    return known > 0 ? (double)known : 1;
}

/* What the rule counts first: allocations, launches. Gaps are as many as operations, however short
 * they become. */
static double first_count(const struct run *run, const struct prof_finding *finding)
{
    for (size_t n = 0; n < finding->number_count; n++)
        if (finding->numbers[n].unit == PROF_NUMBER_COUNT &&
            strcmp(finding->numbers[n].name, "gaps") != 0)
            return finding->numbers[n].value / iterations_of(run, finding);
    return 0;
}

static bool has_name(const char *name, const char *phase)
{
    return name && phase ? !strcmp(name, phase) : name == phase;
}

static bool is_same_phase(const struct run runs[2], const struct prof_finding *a,
                          const struct prof_finding *b)
{
    return !strcmp(a->rule->id, b->rule->id) &&
           has_name(runs[0].findings.phases[a->phase].name, runs[1].findings.phases[b->phase].name);
}

/* Does it happen as often per iteration in the phases that both runs have it in: in those with most
 * of what it costs? */
static bool is_as_often(const struct run runs[2], const struct prof_rule_page *rule)
{
    double same = 0, other = 0;
    for (size_t i = 0; i < runs[0].findings.count; i++) {
        const struct prof_finding *before = &runs[0].findings.rows[i];
        for (size_t k = 0; k < runs[1].findings.count && before->rule == rule; k++) {
            const struct prof_finding *after = &runs[1].findings.rows[k];
            double count = first_count(&runs[0], before);
            double cost = before->bound_ns > 0 ? (double)before->bound_ns : 0;
            if (!is_same_phase(runs, before, after) || count <= 0)
                continue;
            if (fabs(first_count(&runs[1], after) / count - 1) < SAME_COUNT)
                same += cost;
            else
                other += cost;
        }
    }
    return same > other;
}

/* In the phase whose iterations are compared? Without iterations, in the run. */
static bool is_in_compared_phase(const struct run *run, const struct prof_finding *finding)
{
    return !run->series || has_name(run->findings.phases[finding->phase].name,
                                    run->iterations.phases[run->series->phase].name);
}

/* compared: only in the phase whose iterations are. */
static struct rule_sum sum_of_rule(const struct run *run, const struct prof_rule_page *rule,
                                   bool compared)
{
    struct rule_sum sum = {0};
    for (size_t i = 0; i < run->findings.count; i++) {
        const struct prof_finding *one = &run->findings.rows[i];
        if (strcmp(one->rule->id, rule->id) != 0 || (compared && !is_in_compared_phase(run, one)))
            continue;
        sum.any = true;
        sum.confidence = one->rule_confidence;
        sum.above |= one->severity > PROF_SEVERITY_INFO && !one->hint;
        int64_t typical = one->typical_ns == PROF_UNKNOWN ? one->bound_ns : one->typical_ns;
        sum.typical_ns += (double)typical / iterations_of(run, one);
        sum.bound_ns = one->bound_ns == PROF_UNKNOWN
                           ? NAN
                           : sum.bound_ns + (double)one->bound_ns / iterations_of(run, one);
    }
    return sum;
}

static bool was_not_checked(const struct run *run, const struct prof_rule_page *rule)
{
    for (size_t i = 0; i < run->findings.abstention_count; i++)
        if (!strcmp(run->findings.abstentions[i].rule->id, rule->id))
            return true;
    return run->findings.why_none != NULL;
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* The series with most time, of the phase that has this name where there is one. */
static const struct prof_iteration_series *main_series(const struct run *run, const char *phase)
{
    const struct prof_iteration_series *best = NULL;
    bool best_named = false;
    for (size_t s = 0; s < run->iterations.series_count; s++) {
        const struct prof_iteration_series *one = &run->iterations.series[s];
        bool named = phase && has_name(run->iterations.phases[one->phase].name, phase);
        if (one->count && (!best || named > best_named ||
                           (named == best_named && one->total_ns > best->total_ns))) {
            best = one;
            best_named = named;
        }
    }
    return best;
}

static bool measure_side(const struct run *run, const struct prof_iteration_series *series,
                         struct prof_verify_side *side)
{
    int64_t *values = malloc((run->iterations.count + 1) * sizeof *values);
    size_t count = 0;
    for (size_t i = 0; values && series && i < run->iterations.count; i++) {
        const struct prof_iteration_row *row = &run->iterations.rows[i];
        if (&run->iterations.series[row->series] == series && !row->warm_up)
            values[count++] = row->duration_ns;
    }
    struct prof_median median = prof_median_interval(values, count);
    side->median_ns = median.median;
    side->low_ns = median.low;
    side->high_ns = median.high;
    if (count) {
        const char *name = run->iterations.phases[series->phase].name;
        side->count = (int64_t)count;
        side->spread_ns = (double)(series->high_ns - series->low_ns) / 2;
        snprintf(side->phase, sizeof side->phase, "%s", name ? name : "");
    }
    free(values);
    return values != NULL;
}

static void measure_saving(struct prof_verify *v)
{
    const struct prof_verify_side *a = &v->sides[0], *b = &v->sides[1];
    v->saved_ns = a->median_ns - b->median_ns;
    v->saved_low_ns = v->saved_ns - hypot(a->median_ns - a->low_ns, b->high_ns - b->median_ns);
    v->saved_high_ns = v->saved_ns + hypot(a->high_ns - a->median_ns, b->median_ns - b->low_ns);
}

/* ---- what cannot be compared ----------------------------------------------------------------- */

/* What a capture lacks may be the finding that seems to be gone. As in perfkit gate, the end of a
 * process that died may be missing. */
static enum prof_status check_trust(struct prof_verify *v, size_t at, struct prof_capture *capture,
                                    struct prof_error *err)
{
    static const char *const reasons[2][3] = {
        {"the capture before is incomplete: perfkit report says what is missing",
         "the capture before is still being recorded",
         "the capture before is not finished: perfkit recover finishes it"},
        {"the capture after is incomplete: perfkit report says what is missing",
         "the capture after is still being recorded",
         "the capture after is not finished: perfkit recover finishes it"}};
    struct prof_verify_side *side = &v->sides[at];
    struct prof_trust trust;
    enum prof_status status = prof_trust(capture, &trust, err);
    if (status)
        return status;
    side->trust = trust.status;
    side->recording = prof_unfinished(prof_info(capture)) != NULL;
    bool whole = trust.lacking == 0 && (trust.complete || trust.status == PROF_TRUST_AT_RISK);
    if (side->recording || !whole)
        v->why_none = reasons[at][side->recording + prof_info(capture)->abandoned];
    prof_trust_free(&trust);
    return PROF_OK;
}

static bool ends_with_phase(const char *path, const char *name)
{
    size_t length = strlen(path), tail = strlen(name);
    return length >= tail && !strcmp(path + length - tail, name) &&
           (length == tail || path[length - tail - 1] == '/');
}

/* Of the phases with names; the ranges around a name are in it only where two are to be kept
 * apart. */
static bool share_a_phase(const struct run runs[2])
{
    const struct prof_iteration_list *a = &runs[0].iterations, *b = &runs[1].iterations;
    size_t named = 0;
    for (size_t i = 0; i < a->phase_count; i++) {
        for (size_t k = 0; k < b->phase_count; k++) {
            const char *before = a->phases[i].name, *after = b->phases[k].name;
            if (!before || !after)
                continue;
            if (ends_with_phase(before, after) || ends_with_phase(after, before))
                return true;
            named++;
        }
    }
    return !named;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* What happens as often as before is there, whatever it took in these two runs; of what takes less
 * time the iterations must do so too; and of rules that are not sure what single iterations had
 * does not count as fixed where the others had less than they differ by. */
static enum prof_verify_verdict verdict_of(const struct prof_verify *v, double noise_ns,
                                           const struct rule_sum *before,
                                           const struct rule_sum *after, bool as_often, bool judged)
{
    double less = before->bound_ns - after->bound_ns;
    if (!after->any && !judged)
        return PROF_VERIFY_UNKNOWN;
    if (after->any && (as_often || isnan(less)))
        return PROF_VERIFY_STILL;
    if (!after->any && before->confidence < SURE && before->typical_ns <= noise_ns &&
        before->typical_ns < before->bound_ns / 2)
        return PROF_VERIFY_NOISE;
    if (!after->any || isnan(less) || after->bound_ns <= GONE * before->bound_ns)
        return PROF_VERIFY_GONE;
    bool partly = after->bound_ns <= PARTLY * before->bound_ns && less > noise_ns;
    return partly && v->saved_low_ns > 0 ? PROF_VERIFY_PARTLY : PROF_VERIFY_STILL;
}

static bool add_verify_row(struct prof_verify *v, const struct run runs[2],
                           const struct prof_rule_page *rule, const char *wanted)
{
    struct rule_sum before = sum_of_rule(&runs[0], rule, false);
    struct rule_sum after = sum_of_rule(&runs[1], rule, false);
    const struct prof_verify_side *a = &v->sides[0], *b = &v->sides[1];
    double noise = hypot(a->spread_ns, b->spread_ns);
    double less = before.bound_ns - after.bound_ns;
    bool is_new =
        after.above && !before.any && !wanted && after.bound_ns >= WORTH_NAMING * b->median_ns;
    if (!is_new && !(before.any && (before.above || wanted)))
        return true;
    struct prof_verify_row *slot = realloc(v->rows, (v->count + 1) * sizeof *slot);
    if (!slot)
        return false;
    v->rows = slot;
    bool judged = !was_not_checked(&runs[1], rule);
    v->rows[v->count++] = (struct prof_verify_row){
        .rule = rule,
        .verdict = is_new ? PROF_VERIFY_NEW
                          : verdict_of(v, noise, &before, &after, is_as_often(runs, rule), judged),
        .before_ns = before.bound_ns,
        .after_ns = after.bound_ns,
        .low_ns = less - noise,
        .high_ns = less + noise};
    return true;
}

/* By which a rule costs less in the iterations that are compared; 0: not known. */
static double less_compared(const struct run runs[2], const struct prof_rule_page *rule)
{
    double less =
        sum_of_rule(&runs[0], rule, true).bound_ns - sum_of_rule(&runs[1], rule, true).bound_ns;
    return isnan(less) ? 0 : less;
}

static bool is_fixed(const struct prof_verify_row *row)
{
    return row->verdict == PROF_VERIFY_GONE || row->verdict == PROF_VERIFY_PARTLY;
}

/* What is gone in the findings alone: the iteration takes as long, and another rule costs more. */
static void find_moved(struct prof_verify *v, const struct run runs[2])
{
    for (size_t i = 0; i < v->count; i++) {
        struct prof_verify_row *row = &v->rows[i];
        double less = less_compared(runs, row->rule), most = ELSEWHERE * less;
        if (!is_fixed(row) || !(v->saved_high_ns < (1 - ELSEWHERE) * less))
            continue;
        const struct prof_rule_page *other;
        for (size_t r = 0; (other = prof_rule_page(r)); r++) {
            double more = -less_compared(runs, other);
            if (sum_of_rule(&runs[1], other, true).above && more > most) {
                most = more;
                row->moved_to = other;
                row->verdict = PROF_VERIFY_MOVED;
            }
        }
    }
}

static int by_verify_order(const void *a, const void *b)
{
    const struct prof_verify_row *x = a, *y = b;
    double of_x = isnan(x->before_ns) ? 0 : x->before_ns;
    double of_y = isnan(y->before_ns) ? 0 : y->before_ns;
    return PROF_COMPARE(x->verdict == PROF_VERIFY_NEW, y->verdict == PROF_VERIFY_NEW)
               ?: PROF_COMPARE(of_y, of_x)
               ?: strcmp(x->rule->id, y->rule->id);
}

static enum prof_status compare_findings(struct prof_verify *v, struct run runs[2],
                                         const char *wanted, struct prof_error *err)
{
    const struct prof_rule_page *rule;
    runs[0].series = main_series(&runs[0], NULL);
    runs[1].series = main_series(
        &runs[1], runs[0].series ? runs[0].iterations.phases[runs[0].series->phase].name : NULL);
    v->why_none = v->why_none ? v->why_none : runs[0].findings.why_none;
    v->phases = runs[0].findings.phase_count > runs[1].findings.phase_count
                    ? runs[0].findings.phase_count
                    : runs[1].findings.phase_count;
    if (!measure_side(&runs[0], runs[0].series, &v->sides[0]) ||
        !measure_side(&runs[1], runs[1].series, &v->sides[1]))
        return prof_out_of_memory(err);
    if (share_a_phase(runs)) {
        measure_saving(v);
    } else {
        v->saved_ns = v->saved_low_ns = v->saved_high_ns = NAN;
        v->why_none = v->why_none ? v->why_none
                                  : "the two runs have no phase of the same name: --iteration "
                                    "RANGE names one";
    }
    /* What one iteration costs cannot be compared with what a whole run does. */
    if (!v->why_none && !v->sides[0].count != !v->sides[1].count)
        v->why_none = v->sides[0].count ? "nothing repeats in the run after"
                                        : "nothing repeats in the run before";
    for (size_t r = 0; !v->why_none && (rule = prof_rule_page(r)); r++) {
        if ((!wanted || !strcmp(wanted, rule->id)) && !add_verify_row(v, runs, rule, wanted))
            return prof_out_of_memory(err);
    }
    find_moved(v, runs);
    for (size_t i = 0; i < v->count; i++)
        v->predicted_ns += is_fixed(&v->rows[i]) ? less_compared(runs, v->rows[i].rule) : 0;
    if (v->predicted_ns <= 0)
        v->predicted_ns = NAN;
    if (v->count)
        qsort(v->rows, v->count, sizeof *v->rows, by_verify_order);
    if (wanted && !v->count && !v->why_none)
        return prof_fail(err, PROF_NOTFOUND, "the run before has no finding %s", wanted);
    return PROF_OK;
}

enum prof_status prof_verify(struct prof_capture *before, struct prof_capture *after,
                             const struct prof_filter *filter, const char *rule,
                             struct prof_verify *result, struct prof_error *err)
{
    struct run runs[2] = {0};
    *result = (struct prof_verify){0};
    enum prof_status status = load_run(&runs[0], before, filter, err);
    if (!status)
        status = load_run(&runs[1], after, filter, err);
    status = status ? status : check_trust(result, 0, before, err);
    status = status ? status : check_trust(result, 1, after, err);
    if (!status)
        status = compare_findings(result, runs, rule, err);
    for (int side = 0; side < 2; side++) {
        prof_findings_free(&runs[side].findings);
        prof_iteration_list_free(&runs[side].iterations);
    }
    if (status)
        prof_verify_free(result);
    return status;
}

PROF_FREE_ROWS(prof_verify)
