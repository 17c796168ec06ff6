/* prof_compare.h: runs reduced to their metrics, and what differs between runs of two versions.
 *
 *     struct prof_run base[5], cand[5];
 *     prof_run_extract(capture, NULL, &base[0], &err);        // ... one for each capture
 *     struct prof_comparison result;
 *     struct prof_compare_options options = {.interleaved = true};
 *     prof_compare((struct prof_runs){base, 5}, (struct prof_runs){cand, 5}, &options, &result,
 * &err);
 *     ... result.verdict, result.rows[i] ...
 *     prof_comparison_free(&result);
 *     prof_run_free(&base[0]);
 *
 * Conventions as in prof.h, with one difference: a run owns all its texts and lives on without its
 * capture. Rows of a comparison borrow the texts of its runs: free the comparison first.
 *
 * Two kinds of metrics. Exact ones (launches, bytes, registers) are the same in every run of the
 * same program: any difference is a change. Noisy ones (times) are judged by the spread between
 * runs, never by that within one: launches of one run say little about the next run.
 *
 * Statistics, for times: y = 10 % trimmed mean of ln(time) per metric and unit (a run of an
 * interleaved comparison, else a session: its runs averaged); what all metrics of a unit have in
 * common is taken out as far as noise explains it; variances are moderated over metrics (Smyth,
 * Stat. Appl. Genet. Mol. Biol. 3 (2004) 3); one-sided t, adjusted by Holm over all metrics that
 * are gated. docs/dev/gate-statistics.md has the formulas. Results depend on no order, of metrics
 * or of runs, and on no clock; there is no random number in them. */
#ifndef PERFKIT_PROF_COMPARE_H
#define PERFKIT_PROF_COMPARE_H

#include "libprof/include/prof.h"
#include "libprof/include/prof_findings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- metrics --------------------------------------------------------------------------------- */

enum prof_metric_unit {
    PROF_METRIC_COUNT,
    PROF_METRIC_BYTES,
    PROF_METRIC_NS,
    PROF_METRIC_NS_PER_BYTE,
    PROF_METRIC_MJ /* millijoules */
};

/* What is done when an exact metric grew, or a noisy one certainly got slower. */
enum prof_action {
    PROF_ACTION_FAIL,
    PROF_ACTION_WARN,   /* reported as changed; the run's verdict stays */
    PROF_ACTION_INFO,   /* likewise, and not counted among the warnings */
    PROF_ACTION_IGNORE, /* not compared */
};

/* Family, name in configuration and output, class, unit, what is done by default, words.
 * EXACT: in each iteration unless the words say "run". Lower is better in all of them. */
#define PROF_METRIC_FAMILIES(X)                                                                    \
    X(WALL, "wall", NOISY, NS, FAIL, "time of an iteration")                                       \
    X(BUSY, "gpu-busy", NOISY, NS, FAIL, "time in which a device worked, per iteration")           \
    X(IDLE, "gpu-idle", NOISY, NS, WARN, "time in which no device worked, per iteration")          \
    X(ENERGY, "energy", NOISY, MJ, WARN, "energy of the devices per iteration")                    \
    X(KERNEL, "kernel", NOISY, NS, FAIL, "time of a kernel")                                       \
    X(COPY, "copy", NOISY, NS_PER_BYTE, FAIL, "time of a copy or fill, per byte")                  \
    X(RANGE, "range", NOISY, NS, FAIL, "time of an NVTX range")                                    \
    X(LAUNCHES, "launches", EXACT, COUNT, FAIL, "launches of a kernel")                            \
    X(RANGE_LAUNCHES, "range-launches", EXACT, COUNT, FAIL, "launches directly in an NVTX range")  \
    X(REGISTERS, "registers", EXACT, COUNT, WARN, "registers of a thread")                         \
    X(SHARED_BYTES, "shared-bytes", EXACT, BYTES, WARN, "shared memory of a block")                \
    X(LOCAL_BYTES, "local-bytes", EXACT, BYTES, FAIL, "local memory of a thread (spills)")         \
    X(COPIES, "copies", EXACT, COUNT, FAIL, "copies or fills of a kind, in an NVTX range")         \
    X(COPY_BYTES, "copy-bytes", EXACT, BYTES, FAIL, "bytes of them")                               \
    X(PAGEABLE_BYTES, "pageable-bytes", EXACT, BYTES, FAIL, "bytes of them in pageable memory")    \
    X(ALLOCATIONS, "allocations", EXACT, COUNT, FAIL, "allocations of a kind of memory")           \
    X(ALLOCATED_BYTES, "allocated-bytes", EXACT, BYTES, FAIL, "bytes of them")                     \
    X(PEAK_BYTES, "peak-bytes", EXACT, BYTES, FAIL, "most bytes live at once, in the run")         \
    X(LEAKED_BYTES, "leaked-bytes", EXACT, BYTES, FAIL, "bytes never freed, in the run")           \
    X(SYNCS, "syncs", EXACT, COUNT, FAIL, "waits of the host, in an NVTX range")                   \
    X(API_CALLS, "api-calls", EXACT, COUNT, WARN, "calls of an API function")                      \
    X(FINDING, "finding", EXACT, COUNT, INFO, "a finding of perfkit's rules")

enum prof_metric_family {
#define PROF_METRIC_ROW(family, name, class_, unit, action, text) PROF_METRIC_##family,
    PROF_METRIC_FAMILIES(PROF_METRIC_ROW)
#undef PROF_METRIC_ROW
        PROF_METRICS
};

struct prof_metric_info {
    const char *name; /* "kernel" */
    const char *text; /* "time of a kernel" */
    bool exact;
    enum prof_metric_unit unit;
    enum prof_action action;
};

/* Static; NULL after the last. */
const struct prof_metric_info *prof_metric_info(enum prof_metric_family family);
/* The family of that name; PROF_METRICS when there is none. */
enum prof_metric_family prof_metric_named(const char *name);

/* The shape of a distribution of times, in order of events and in order of size. */
#define PROF_SKETCH_BATCHES 16
#define PROF_SKETCH_QUANTILES 15 /* at prof_sketch_at: 0 .01 .05 .1 .2 ... .9 .95 .99 1 */
extern const double prof_sketch_at[PROF_SKETCH_QUANTILES];

struct prof_sketch {
    int64_t count;
    double sum;      /* in the metric's unit */
    double log_mean; /* mean of ln(value) without the lowest and the highest tenth */
    /* Means of ln(value), drawn in to the 10th and 90th percentile, of `batches` equal parts of the
     * events in their order: 16, 8 or count / 2. They carry autocorrelation and drift. */
    int batches;
    float batch[PROF_SKETCH_BATCHES];
    float quantile[PROF_SKETCH_QUANTILES]; /* nearest rank */
};

/* Values (> 0; others are taken as the smallest step) in order of their events; sorts a copy.
 * False: out of memory. */
bool prof_sketch_make(const double *values, size_t count, struct prof_sketch *sketch);

struct prof_metric {
    enum prof_metric_family family;
    /* What is measured: a kernel's name, "HtoD pageable > device", a function, a path of ranges, a
     * rule's id; "" where the family has one member. */
    const char *name;
    const char
        *place; /* NVTX ranges around it, "step/forward"; "" = none. Noisy metrics and launches
                   of kernels: where most of it was; else part of what the metric is */
    int64_t grid[3], block[3]; /* kernels, else 0; block PROF_UNKNOWN = chosen by the runtime */
    int64_t device;            /* ordinal of the device; 0 where devices play no part */
    int64_t order;             /* kernels: place in the order of their first launches */
    /* Exact: `inside` is the sum over the steady iterations, `outside` over the rest of the run.
     * Families of the whole run have it in `outside`. Noisy: `inside` is the time of all of it over
     * the steady iterations, ns. */
    int64_t inside, outside;
    /* Noisy: of its sums in the iterations that have it, the mean of ln without the lowest and the
     * highest tenth, back as a time, times the part of the steady iterations that have it. NaN, 0 =
     * not kept. */
    double iteration_ns;
    struct prof_sketch sketch; /* noisy; count 0 = too little time to be kept */
};

/* What a difference of the environment means. */
enum prof_environment_level {
    PROF_ENVIRONMENT_HARD, /* times of the one say nothing about times of the other */
    PROF_ENVIRONMENT_SOFT, /* they may: reported as a warning */
    PROF_ENVIRONMENT_INFO, /* kept to be looked up */
};
const char *prof_environment_level_text(enum prof_environment_level level); /* "hard", ... */

/* The property of runs with --overhead=measure, and its value with --overhead=PERCENT. */
#define PROF_ENVIRONMENT_PAUSES "pauses"
#define PROF_ENVIRONMENT_SAMPLED "sampled"

/* One property of where and how a run was made: "device", "driver", "cpu", "command", "trace", ...
 * Nothing that is different each time (live clocks, temperatures). */
struct prof_environment {
    const char *name, *value; /* value NULL = unknown: differs from nothing */
    enum prof_environment_level level;
};

/* A run reduced to what is compared. Freed by prof_run_free, never copied. */
struct prof_run {
    int64_t session; /* set by the caller: runs of one session share their noise; 0 = its own */
    const char *iteration; /* name of the range; NULL = no range */
    enum prof_iteration_source iteration_source;
    int64_t iterations;         /* steady ones */
    int64_t skipped;            /* before them, as warm-up */
    int64_t steady_ns;          /* sum of their times */
    int64_t wall_ns;            /* of the whole run */
    bool complete;              /* the trust block; times of an incomplete run are not judged */
    const char *why_incomplete; /* the first loss; NULL when complete */
    struct prof_environment *environment;
    size_t environment_count;
    double clock_hz;             /* mean clock of the device while it worked; NaN = not recorded */
    struct prof_metric *metrics; /* by family, name, place, grid, block, device */
    size_t count;
    int64_t left_out; /* noisy metrics of too little time for a sketch */
    void *texts;      /* private */
};

struct prof_run_options {
    const char *iteration; /* as prof_filter.iteration; NULL = chosen */
    int64_t skip;          /* iterations to leave out as warm-up; PROF_UNKNOWN, or NULL options: as
                              prof_filter without `skips` */
    bool no_findings;      /* leave out the rules, and the metrics that they make */
};

/* Reduce a capture. PROF_NOTFOUND: the range of that name does not exist. Memory: 24 to 40 bytes
 * per device operation. 1,000,000 events: see docs/lab/performance.md. */
enum prof_status prof_run_extract(struct prof_capture *capture,
                                  const struct prof_run_options *options, struct prof_run *run,
                                  struct prof_error *err);
void prof_run_free(struct prof_run *run);

/* A run as a JSON document, for keeping; docs/reference/kept-files.md describes it. Freed with
 * free(). session and label are not in it. */
enum prof_status prof_run_encode(const struct prof_run *run, char **text, struct prof_error *err);
/* PROF_CORRUPT, PROF_VERSION (of a later perfkit): any text may be given. */
enum prof_status prof_run_decode(const char *text, struct prof_run *run, struct prof_error *err);

/* The metric as one text, "kernel:gemm<128> (264,1,1)x(256,1,1)", "copies:HtoD @step/upload": what
 * patterns in configurations are matched with. Like snprintf. */
size_t prof_metric_text(const struct prof_metric *metric, char *out, size_t size);

/* ---- comparing ------------------------------------------------------------------------------- */

/* What matters, for one metric. The callback of the options may change it. */
struct prof_policy {
    enum prof_action action;
    double min_effect; /* noisy: relative change that matters, 0.02 = 2 %. Default 0.03 for wall,
                          else 0.02 */
    double target;     /* noisy: a change that must not stay hidden; default 0.05 */
    double min_share; /* noisy: gated from this share of the time on; default 0.005 for device time,
                         0.01 for ranges */
    double tolerance; /* exact: relative growth that is let pass; default 0 */
    int64_t tolerance_absolute; /* likewise in the metric's unit; the larger of both counts */
    const char *reason;         /* why it is ignored or accepted: printed in the row. Borrowed */
};

/* Changes a policy for the metrics whose text fits a pattern; of several that fit the last counts,
 * field by field. */
struct prof_override {
    const char *match; /* as fnmatch(3), over prof_metric_text: "kernel:reduce_*", "peak-bytes:*" */
    bool has_action;
    enum prof_action action;
    double min_effect, target, min_share, tolerance; /* NaN = unchanged */
    int64_t tolerance_absolute;                      /* PROF_UNKNOWN = unchanged */
    const char *reason;                              /* NULL = unchanged. Borrowed by the result */
};

/* The policy of a family without overrides. */
struct prof_policy prof_policy_default(enum prof_metric_family family);

struct prof_compare_options {
    double alpha;     /* false alarms per comparison, all metrics together; 0 = 0.01 */
    unsigned looks;   /* how often the comparison may be made, with more runs each time, until it is
                         decided: each has an equal part of alpha; 0 = once */
    bool interleaved; /* the runs of both sides took turns on one machine: each run is a unit.
                         False: sessions are, runs of one session are averaged first */
    bool allow_single; /* let fewer than three units fail by times (weaker: see reason SINGLE) */
    const char *refuse_times; /* why times cannot be compared; NULL = they can, as far as the
                                 environments of the runs show */
    const struct prof_override *overrides;
    size_t override_count;
};

/* name, text. What a metric comes to. */
#define PROF_VERDICTS(X)                                                                           \
    X(PASS, "PASS", "no change that matters, and it would have been seen")                         \
    X(IMPROVED, "IMPROVED", "clearly better")                                                      \
    X(CHANGED, "CHANGED", "a metric differs, which is reported and accepted")                      \
    X(UNDERPOWERED, "UNDERPOWERED", "not decided: noise may hide a change that matters")                   \
    X(SUSPECT, "SUSPECT", "probably worse; more runs are needed to decide")                        \
    X(ENV, "ENV", "worse, as the device's clock was")                                              \
    X(FAIL, "FAIL", "worse, beyond doubt")                                                         \
    X(REFUSED, "REFUSED", "cannot be compared")                                                    \
    X(NONE, "-", "not analysed")

enum prof_verdict {
#define PROF_VERDICT_ROW(id, name, text) PROF_VERDICT_##id,
    PROF_VERDICTS(PROF_VERDICT_ROW)
#undef PROF_VERDICT_ROW
        PROF_VERDICT_COUNT
};
const char *prof_verdict_name(enum prof_verdict verdict); /* "PASS"; never NULL */
const char *prof_verdict_text(enum prof_verdict verdict);

/* Why. Codes are for machines, texts for people. */
#define PROF_REASONS(X)                                                                            \
    X(NONE, "", "")                                                                                \
    X(SAME, "same", "exactly the same")                                                            \
    X(TOLERATED, "tolerated", "within its tolerance")                                              \
    X(GREW, "grew", "more than in the baseline")                                                   \
    X(SHRANK, "shrank", "less than in the baseline")                                               \
    X(ADDED, "added", "not in the baseline")                                                       \
    X(REMOVED, "removed", "in the baseline only")                                                  \
    X(VARIES, "varies", "differs between runs of the baseline, and lies within their range")       \
    X(SLOWER, "slower", "slower by more than noise explains")                                      \
    X(FASTER, "faster", "faster by more than noise explains")                                      \
    X(HIGHER, "higher", "higher by more than noise explains")                                      \
    X(LOWER, "lower", "lower by more than noise explains")                                         \
    X(NO_CHANGE, "no-change", "a change of the target's size would have been seen")                \
    X(NOISE, "noise", "differences between runs hide a change of the target's size")               \
    X(HOST_NOISE, "host-noise",                                                                    \
      "the host's noise hides a change of the target's size; device times "                        \
      "are analysed")                                                                              \
    X(COVERED, "covered",                                                                          \
      "too noisy by itself; the iteration's time, of which it is part, is "                        \
      "analysed")                                                                                  \
    X(FEW_RUNS, "few-runs",                                                                        \
      "too few runs: a verdict takes 3 of the candidate, and 2 runs or sessions of the baseline")  \
    X(SINGLE, "single", "one run or session on each side: how runs vary is not known")             \
    X(NOT_SURE, "not-sure", "worse, but not beyond doubt")                                         \
    X(CLOCK, "clock", "slower in time, but not in clock cycles of the device")                     \
    X(THROTTLED, "throttled", "everything grew slower while it ran")                               \
    X(SMALL, "small", "too small a share of the time to be gated")                                 \
    X(PARTIAL, "partial", "some runs do not have it, or too little of it")                         \
    X(DEFERRED, "deferred", "more, but the runtime frees memory when it likes: record more runs")  \
    X(PAUSES, "pauses",                                                                            \
      "a run was recorded with pauses (--overhead=measure): some of it is missing")                \
    X(SAMPLED, "sampled",                                                                          \
      "a run is a sample of its iterations (--overhead=PERCENT): its counts are estimates")        \
    X(IGNORED, "ignored", "ignored by the configuration")                                          \
    X(TIMES_REFUSED, "times-refused", "times cannot be compared")

enum prof_reason {
#define PROF_REASON_ROW(id, code, text) PROF_REASON_##id,
    PROF_REASONS(PROF_REASON_ROW)
#undef PROF_REASON_ROW
        PROF_REASON_COUNT
};
const char *prof_reason_code(enum prof_reason reason); /* never NULL */
const char *prof_reason_text(enum prof_reason reason);

/* How a metric of the candidate was found in the baseline. */
enum prof_match {
    PROF_MATCH_EXACT,
    PROF_MATCH_SHAPE,    /* the same kernel with another grid or block */
    PROF_MATCH_TEMPLATE, /* the same kernel with other template arguments */
    PROF_MATCH_RENAMED,  /* another name, launched at the same place as often */
    PROF_MATCH_SPLIT,    /* one kernel became several, launched at its place */
    PROF_MATCH_MERGED,   /* several became one */
    PROF_MATCH_ADDED,
    PROF_MATCH_REMOVED,
};
const char *prof_match_text(enum prof_match match); /* "same", "other shape", ...; never NULL */

struct prof_compared {
    enum prof_metric_family family;
    const struct prof_metric *base, *cand; /* of one run each; NULL = not there. SPLIT, MERGED: the
                                              first of the several */
    const char *base_name, *cand_name;     /* NULL = not there; of several "a + b" */
    const char *place;                     /* of the candidate's, else the baseline's */
    bool moved; /* counts what is in NVTX ranges inside `place` that only one side has, too */
    enum prof_match match;
    enum prof_verdict verdict;
    enum prof_reason reason;
    struct prof_policy policy; /* as it was applied */
    int override;              /* the last of options.overrides that applied; -1 = none */
    bool gated;                /* it can change the verdict of the whole */
    /* Means over units. Exact: per iteration, or of the run (NaN = not there). Noisy: ns of a
     * typical iteration (prof_metric.iteration_ns, exp of the mean of ln over units); idle time is
     * what busy time leaves of it. */
    double base_value, cand_value;
    /* Noisy: of a typical launch, copy (per byte) or range, exp of the mean of y: what is judged.
     * NaN where sums are (`summed`), and of idle time, which is judged as a part of the iteration.
     */
    double base_typical, cand_typical;
    double base_sd, cand_sd; /* of the typical ones over runs, ns; NaN with fewer than two */
    /* Noisy: launches, copies, ranges in an iteration; NaN = not there. */
    double base_count, cand_count;
    bool summed; /* noisy: sums of iterations are judged, since the counts differ, or one side has
                    none or too little, or several kernels were one */
    /* Exact metrics: where the baseline's runs disagree, their range. */
    double base_low, base_high;
    double outside_base, outside_cand; /* exact: outside iterations, per run */
    /* Noisy; NaN where it was not judged. Relative: 0.05 = 5 % slower. What all metrics have in
     * common is in `effect` and taken out of the rest as far as noise explains it. */
    double effect;   /* cand_value / base_value - 1; NaN where there is nothing to divide by */
    double residual; /* the effect that is judged; of idle time as a part of the iteration */
    double ci_low, ci_high; /* 95 %, of the residual */
    double p, p_adjusted;   /* one-sided, of "slower"; Holm over the gated ones */
    double p_faster;        /* adjusted, of "faster" */
    double mde;             /* smallest slowdown that would be found in 95 of 100 comparisons */
    bool noisy;             /* that is more than the target: it must show more before it fails */
    double df;
    int64_t runs_needed; /* units a side for the target; PROF_UNKNOWN = more than 1000 */
    double share;        /* of the baseline's time: devices' for device time, iterations' else */
    double delta_ns;     /* noisy: cand_value - base_value, 0 for what is not there; exact: NaN */
    bool multimodal, drifts, correlated; /* in some unit: several modes, a trend over the run,
                                            neighbours alike */
};

/* A property in which the two sides differ. */
struct prof_environment_difference {
    const char *name, *base, *cand;
    enum prof_environment_level level;
};

struct prof_comparison {
    enum prof_verdict verdict;
    enum prof_reason reason; /* of the row that decided */
    const char *note; /* why times were refused, or what one unit on each side means; NULL = none */
    struct prof_compared *rows; /* worst verdict first, then by |delta_ns|, family and name */
    size_t count;
    size_t verdicts[PROF_VERDICT_COUNT];             /* of the gated rows */
    struct prof_environment_difference *differences; /* hard ones first */
    size_t difference_count;
    bool times_refused; /* a hard difference, an incomplete run, one of the candidate in which no
                           device worked though one did in all of the baseline's, or
                           options.refuse_times */
    size_t base_units, cand_units; /* runs, or sessions */
    size_t base_runs, cand_runs;
    double alpha;          /* of this look */
    const char *iteration; /* as in the runs of the baseline */
    enum prof_iteration_source iteration_source;
    double base_iterations, cand_iterations; /* steady ones, per run */
    /* What is common to all device times: a clock, a neighbour. NaN = fewer than 8 metrics. */
    double shift, shift_removed, shift_p;
    double overdispersion; /* factor on all standard errors, 1 = none needed */
    double median_mde;     /* over the gated times */
    double wall_mde;
    int64_t runs_needed;       /* units a side until no gated metric of a tenth of the time is
                                  underpowered; PROF_UNKNOWN = more than 1000, 0 = enough */
    size_t small_underpowered; /* underpowered ones below a tenth of the time: they do not make the
                                  whole UNDERPOWERED */
    bool limited; /* nor does wall time that the host's noise hides, where the device's time is
                     judged: the whole says nothing about the host */
    void *texts;  /* private */
};

struct prof_runs {
    const struct prof_run *data;
    size_t count;
};

/* Compare. The verdict of the whole is the first of: FAIL, REFUSED (times), ENV, SUSPECT,
 * UNDERPOWERED (wall, busy, or a metric of a tenth of the time or more; a range only where wall
 * time is not judged; wall time only where busy time is not: see `limited`), IMPROVED, PASS. With
 * fewer than three units of the candidate, or two of the baseline, times end in SUSPECT at most.
 * PROF_INVALID: a side without runs, runs whose iterations are different ranges, the same run
 * twice. PROF_NOMEM. */
enum prof_status prof_compare(struct prof_runs base, struct prof_runs cand,
                              const struct prof_compare_options *options,
                              struct prof_comparison *result, struct prof_error *err);
/* Sorts the rows anew for readers who want no verdicts: what moved most time first, otherwise as
 * prof_compare left them. */
void prof_comparison_by_move(struct prof_comparison *result);
void prof_comparison_free(struct prof_comparison *result);

/* Is it undecided: SUSPECT, UNDERPOWERED or ENV? */
bool prof_comparison_undecided(const struct prof_comparison *result);
/* Is it, and may up to `units` a side decide it? */
bool prof_comparison_wants(const struct prof_comparison *result, size_t units);
/* More runs would show more: it is undecided, or a metric that is to warn is SUSPECT. */
bool prof_comparison_open(const struct prof_comparison *result);
/* A metric whose action is to warn got worse, or probably did. */
bool prof_compared_warns(const struct prof_compared *row);

#ifdef __cplusplus
}
#endif

#endif
