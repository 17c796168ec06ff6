/* The measurement behind the table of rules in kernels/hash_embedding/plan.c, and the seed's claim
 * about the choice of kernel: all kernels that apply, interleaved, at every power of two of records
 * from tiny to large, in typical and in dense plots, sorted and not.
 */
#include <stdio.h>

#include "workloads/common/report.h"
#include "workloads/hash_embedding/sweep_point.h"

#define FIRST_RECORDS (1u << 10)
#define LAST_ON_GPU (1u << 24)
#define LAST_ON_CPU (1u << 20) /* whose memory such a sweep would fill, and its time */

/* Records per plot: what the seed's data has; and so many that the output is tiny. */
enum density { TYPICAL, DENSE, DENSITIES };

/* The sweep as it goes on: rows are printed when all were measured, JSON at once. */
struct progress {
    const struct hash_options *options;
    struct session *session;
    struct output out;
    struct table failures;
    uint32_t points, passed;
    double worst;         /* of auto over best, */
    char worst_text[120]; /* and where */
    uint32_t last_records;
};

/* Which choice is wrong, and by more than the noise? */
static void note_failure(struct progress *progress, const struct point *point)
{
    static const char *const spreads[] = {"records", "plots",  "<order",  "basic", "+-",
                                          "shared",  "+-",     "chunked", "+-",    "<auto",
                                          "<best",   "rounds", NULL};

    if (progress->failures.rows == 0)
        table_begin(&progress->failures, spreads);
    point_spread_row(&progress->failures, point);
}

static void note_point(struct progress *progress, const struct point *point)
{
    progress->points++;
    progress->passed += point_passed(point);
    if (!(point_loss(point) <= progress->worst)) { /* NaN stays */
        progress->worst = point_loss(point);
        point_text(point, progress->worst_text, sizeof progress->worst_text);
    }
    if (progress->options->common.json) {
        point_json(&progress->out.json, point);
        return;
    }
    point_row(&progress->out.table, point);
    if (!point_passed(point))
        note_failure(progress, point);
}

static int measure_size(struct progress *progress, uint32_t records)
{
    for (int kind = 0; kind < 2 * DENSITIES; kind++) {
        struct point point = {.shape = {.records = records,
                                        .plots = kind / 2 == DENSE ? 64 : records * 2 / 25,
                                        .dim = progress->options->dim,
                                        .sorted = kind % 2 == 0}};

        if (point_measure(progress->options, progress->session, &point) != 0)
            return -1;
        note_point(progress, &point);
    }
    return 0;
}

static int measure_all(struct progress *progress)
{
    static const char *const header[] = {"records", "plots", "<order",    "basic",        "shared",
                                         "chunked", "<auto", "auto/best", "<within 10 %", NULL};
    const struct hash_options *options = progress->options;
    const struct dev_info *info = dev_info(progress->session->dev);
    int status = 0;

    output_begin(&progress->out, "hash_embedding", info, &options->common);
    output_setting(&progress->out, "dim", options->dim);
    output_line(&progress->out,
                "--sweep: kernel times, medians of %u to %u samples, more of the short ones, after "
                "%u for warm-up; dim %u\n",
                options->common.iterations, POINT_MOST_ROUNDS * options->common.iterations,
                options->common.warmup, options->dim);
    if (options->common.json)
        json_array_begin(&progress->out.json, "sweep");
    else
        table_begin(&progress->out.table, header);
    for (uint64_t records = FIRST_RECORDS; records <= progress->last_records && status == 0;
         records *= 2)
        status = measure_size(progress, (uint32_t)records);
    if (options->common.json)
        json_array_end(&progress->out.json);
    table_end(&progress->out.table, NULL);
    table_end(&progress->failures, "\nFAILED, with the median deviation of each kernel\n");
    return status;
}

static void conclude(struct progress *progress, bool passed)
{
    struct claims claims = {0};
    struct claim *claim = claims_add(&claims, "kernel choice", "the best of three");

    if (claim) {
        snprintf(claim->at, sizeof claim->at, "rows %u to %u", FIRST_RECORDS,
                 progress->last_records);
        snprintf(claim->after, sizeof claim->after, "auto over best, the worst");
        claim->after_value = progress->worst;
        claim->unit = CLAIM_RATIO;
        claim->test = CLAIM_AT_MOST;
        claim->claimed = ALLOWED_LOSS;
        snprintf(claim->figure, sizeof claim->figure, "%u of %u shapes; the worst: %s",
                 progress->passed, progress->points, progress->worst_text);
    }
    if (output_json(&progress->out))
        json_bool(&progress->out.json, "passed", passed);
    output_end(&progress->out, &claims);
    output_line(&progress->out, "\n%s: auto within 10 %% of the best at %u of %u shapes",
                passed ? "PASSED" : "FAILED", progress->passed, progress->points);
    claims_free(&claims);
}

int sweep(const struct hash_options *options, struct dev *dev)
{
    struct session session;
    struct progress progress = {.options = options, .session = &session};
    int status = session_open(&session, dev);
    bool passed;

    if (status == 0) {
        progress.last_records = options->sweep_to       ? options->sweep_to
                                : dev_info(dev)->is_cpu ? LAST_ON_CPU
                                                        : LAST_ON_GPU;
        status = measure_all(&progress);
        passed = status == 0 && progress.points > 0 && progress.passed == progress.points;
        conclude(&progress, passed);
        session_close(&session);
    }
    if (status != 0) {
        fprintf(stderr, "hash_embedding: sweep: %s\n", dev_error_text(dev));
        return 2;
    }
    return passed ? 0 : 1;
}
