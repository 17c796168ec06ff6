/* What recording cost, from pauses in which the program ran unrecorded (--overhead=measure).
 *
 * Each pause is compared with the iterations beside it, so that a run which slowly changes its pace
 * does no harm: one ratio of medians a pause, and over the pauses the mean of their logarithms with
 * its interval by Student's t. The time of an iteration is from its begin to the next one's: what
 * the program does between two ranges counts, and a program that only queues work is held to the
 * pace of its device. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/analysis/recorded.h"
#include "libprof/base/distribution.h"
#include "libprof/base/saturate.h"
#include "libprof/wire/activity.h"

#define LEAST_BEGINS 3 /* two iterations: fewer say nothing of a stretch */
#define LEAST_PAUSES 3

/* ---- the pauses ------------------------------------------------------------------------------ */

enum prof_status prof_pauses_read(struct prof_capture *capture, struct prof_intervals *pauses,
                                  struct prof_error *err)
{
    struct prof_closed_list closed;
    enum prof_status status = prof_closed_read(capture, &closed, err);
    int64_t last = !status && closed.count ? prof_end_ns(capture) : 0;
    for (size_t i = 0; !status && i < closed.count; i++) {
        const struct prof_unrecorded *span = &closed.data[i].span;
        int64_t end = span->end_ns == INT64_MAX ? last : span->end_ns;
        if (span->reason >= WIRE_WINDOW_OVERHEAD &&
            !prof_intervals_add(pauses, span->begin_ns, end))
            status = prof_out_of_memory(err);
    }
    prof_array_free(&closed);
    prof_intervals_normalise(pauses);
    return status;
}

/* ---- the iterations beside and inside of them ------------------------------------------------ */

struct times {
    PROF_ARRAY(int64_t) list;
};

/* The times of iterations of one thread that begin in [from, to), and the next one too. Nothing of
 * a stretch that has too few. */
static bool add_times(struct times *times, const struct prof_iteration *list, size_t count,
                      int64_t from, int64_t to)
{
    size_t first, end;
    bool ok = true;
    PROF_FIND_FIRST(first, at, count, list[at].begin >= from);
    PROF_FIND_FIRST(end, at, count, list[at].begin >= to);
    for (size_t i = first; ok && end >= first + LEAST_BEGINS && i + 1 < end; i++)
        ok = prof_array_push(&times->list, prof_subtract(list[i + 1].begin, list[i].begin));
    return ok;
}

/* Half of them take longer: a hiccup of the machine is no cost of recording. 0: there are none. */
static double median_time(struct times *times)
{
    size_t count = times->list.count;
    if (!count)
        return 0;
    qsort(times->list.data, count, sizeof *times->list.data, prof_ascending_int64);
    return ((double)times->list.data[count / 2] + (double)times->list.data[(count - 1) / 2]) / 2;
}

bool prof_overhead_measure(const struct prof_iteration *list, size_t count,
                           const struct prof_intervals *pauses, struct prof_overhead *out)
{
    double sum = 0, squares = 0, bare_sum = 0;
    struct times inside = {0}, beside = {0};
    bool ok = true;
    *out = (struct prof_overhead){.pauses = (int64_t)pauses->count};
    for (size_t p = 0; ok && p < pauses->count; p++) {
        struct prof_interval pause = pauses->data[p];
        int64_t length = prof_subtract(pause.end, pause.begin);
        length = prof_add(length, length); /* of the stretch on either side */
        int64_t since = p ? prof_add(pauses->data[p - 1].end, PROF_OVERHEAD_SETTLE_NS) : INT64_MIN;
        int64_t until = p + 1 < pauses->count ? pauses->data[p + 1].begin : INT64_MAX;
        int64_t from = prof_subtract(pause.begin, length);
        int64_t again = prof_add(pause.end, PROF_OVERHEAD_SETTLE_NS), to = prof_add(again, length);
        inside.list.count = beside.list.count = 0;
        ok = add_times(&inside, list, count, prof_add(pause.begin, PROF_OVERHEAD_SETTLE_NS),
                       pause.end) &&
             add_times(&beside, list, count, from > since ? from : since, pause.begin) &&
             add_times(&beside, list, count, again, to < until ? to : until);
        double bare = median_time(&inside), recorded = median_time(&beside);
        if (bare <= 0 || recorded <= 0)
            continue;
        double ratio = log(recorded / bare);
        sum += ratio;
        squares += ratio * ratio;
        bare_sum += log(bare);
        out->pauses_used++;
        out->recorded += (int64_t)beside.list.count;
        out->unrecorded += (int64_t)inside.list.count;
    }
    prof_array_free(&inside.list);
    prof_array_free(&beside.list);
    if (!ok || out->pauses_used < LEAST_PAUSES)
        return ok;
    double n = (double)out->pauses_used, mean = sum / n;
    double variance = (squares - n * mean * mean) / (n - 1);
    double error = sqrt(variance > 0 ? variance / n : 0) * prof_t_quantile(0.025, n - 1);
    out->source = PROF_OVERHEAD_MEASURED;
    out->ratio = exp(mean);
    out->low = exp(mean - error);
    out->high = exp(mean + error);
    out->bare_ns = exp(bare_sum / n);
    out->recorded_ns = out->bare_ns * out->ratio;
    return true;
}

/* ---- what to go on recording in a pause ------------------------------------------------------ */

int64_t prof_iterations_period(const struct prof_iterations *it, size_t row, double part)
{
    size_t count = it->main_end - it->main_begin;
    const struct prof_iteration *list = it->list.data + it->main_begin;
    row = count && count - 1 < row ? count - 1 : row;
    size_t rows = count > row ? count - row : 0;
    int64_t *times = rows && row ? malloc(rows * sizeof *times) : NULL;
    if (!times)
        return 0;
    for (size_t i = 0; i < rows; i++)
        times[i] = prof_subtract(list[i + row].begin, list[i].begin);
    qsort(times, rows, sizeof *times, prof_ascending_int64);
    int64_t period = times[(size_t)((double)rows * part)] / (int64_t)row;
    free(times);
    return period > 0 ? period : 1;
}

static enum prof_status describe(const struct prof_iterations *it,
                                 struct prof_iteration_range *range, struct prof_error *err)
{
    size_t count = it->main_end - it->main_begin, length = it->name ? strlen(it->name) : 0;
    const char *domain = it->domain ? it->domain : "";
    if (!it->name || count < LEAST_BEGINS)
        return prof_fail(err, PROF_NOTFOUND, "no NVTX range repeats");
    range->numbered =
        it->source == PROF_ITERATION_STEP && length && isdigit((unsigned char)it->name[length - 1]);
    while (range->numbered && length && isdigit((unsigned char)it->name[length - 1]))
        length--;
    if (length >= sizeof range->name || strlen(domain) >= sizeof range->domain)
        return prof_fail(err, PROF_INVALID, "the name of the range or of its domain is too long");
    memcpy(range->name, it->name, length);
    strcpy(range->domain, domain);
    range->period_ns = prof_iterations_period(it, PROF_IN_A_ROW, 0.5);
    if (!range->period_ns)
        return prof_out_of_memory(err);
    return PROF_OK;
}

enum prof_status prof_iteration_range(struct prof_capture *capture,
                                      const struct prof_filter *filter,
                                      struct prof_iteration_range *range, struct prof_error *err)
{
    struct prof_facts facts;
    *range = (struct prof_iteration_range){0};
    enum prof_status status = prof_facts_load_few(&facts, capture, filter, err);
    if (!status)
        status = describe(&facts.phases.list.data[facts.phases.main].iterations, range, err);
    prof_facts_free(&facts);
    return status;
}
