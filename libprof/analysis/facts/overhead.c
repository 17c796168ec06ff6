/* What recording cost, from pauses in which the program ran unrecorded (--overhead=measure).
 *
 * Each pause is compared with the iterations beside it, so that a run which slowly changes its pace
 * does no harm: one ratio of medians a pause, and over the pauses the mean of their logarithms with
 * its interval by Student's t. Only the later part of a pause counts: a host that does not wait for
 * its device runs ahead of it first.
 *
 * CUPTI goes on costing in a pause. Where the first pause began before the first iteration, nothing
 * had switched CUPTI on yet: what the next pauses take longer than that one is part of the
 * overhead. How much the pace of the program changes from one pause to the next says how sure that
 * is.
 *
 * The time of an iteration is from its begin to the next one's: what
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
#define SETTLED 0.4       /* of a pause */
#define BARE_NS 500000000 /* the last so long before CUPTI is switched on */
#define FIRST_PAUSES 3    /* are compared with that */

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

struct pause_sums {
    double ratio, ratio_squares;        /* of logarithms: recorded / in the pause */
    double paused, first, last, change; /* in pauses; in the first ones; change: squares */
};

static void add_pause_times(struct prof_overhead *out, struct pause_sums *sums, double paused,
                            double recorded)
{
    double ratio = log(recorded / paused), log_paused = log(paused);
    double change = out->pauses_used ? log_paused - sums->last : 0;
    sums->ratio += ratio;
    sums->ratio_squares += ratio * ratio;
    sums->paused += log_paused;
    sums->first += out->pauses_used < FIRST_PAUSES ? log_paused : 0;
    sums->change += change * change;
    sums->last = log_paused;
    out->pauses_used++;
}

static void conclude_overhead(struct prof_overhead *out, const struct pause_sums *sums,
                              double bare_ns)
{
    double n = (double)out->pauses_used, mean = sums->ratio / n;
    double variance = fmax((sums->ratio_squares - n * mean * mean) / (n - 1), 0) / n;
    double left = bare_ns > 0 ? fmax(sums->first / FIRST_PAUSES - log(bare_ns), 0) : 0;
    if (bare_ns > 0) /* half a change's square: the variance of one pause */
        variance += sums->change / (n - 1) / 2 * (1 + 1.0 / FIRST_PAUSES);
    double error = sqrt(variance) * prof_t_quantile(0.025, n - 1);
    out->source = PROF_OVERHEAD_MEASURED;
    out->ratio = exp(mean + left);
    out->low = exp(mean + left - error);
    out->high = exp(mean + left + error);
    out->bare_ns = exp(sums->paused / n - left);
    out->recorded_ns = out->bare_ns * out->ratio;
    out->paused = bare_ns > 0 ? exp(left) : 0;
}

bool prof_overhead_measure(const struct prof_iteration *list, size_t count,
                           const struct prof_intervals *pauses, struct prof_overhead *out)
{
    double bare = 0;
    struct pause_sums sums = {0};
    struct times inside = {0}, beside = {0};
    bool ok = true;
    *out = (struct prof_overhead){.pauses = (int64_t)pauses->count};
    for (size_t p = 0; ok && p < pauses->count; p++) {
        struct prof_interval pause = pauses->data[p];
        int64_t length = prof_subtract(pause.end, pause.begin);
        int64_t settled = (int64_t)((double)length * SETTLED);
        settled = settled > PROF_OVERHEAD_SETTLE_NS ? settled : PROF_OVERHEAD_SETTLE_NS;
        inside.list.count = beside.list.count = 0;
        if (!p && count && pause.begin <= list[0].begin) {
            int64_t half = prof_add(list[0].begin, prof_subtract(pause.end, list[0].begin) / 2);
            int64_t from = prof_max(half, prof_subtract(pause.end, BARE_NS));
            ok = add_times(&inside, list, count, from, pause.end);
            bare = median_time(&inside);
            out->unrecorded += (int64_t)inside.list.count;
            continue;
        }
        length = prof_add(length, length); /* of the stretch on either side */
        int64_t since = p ? prof_add(pauses->data[p - 1].end, PROF_OVERHEAD_SETTLE_NS) : INT64_MIN;
        int64_t until = p + 1 < pauses->count ? pauses->data[p + 1].begin : INT64_MAX;
        int64_t from = prof_subtract(pause.begin, length);
        int64_t again = prof_add(pause.end, PROF_OVERHEAD_SETTLE_NS), to = prof_add(again, length);
        ok = add_times(&inside, list, count, prof_add(pause.begin, settled), pause.end) &&
             add_times(&beside, list, count, from > since ? from : since, pause.begin) &&
             add_times(&beside, list, count, again, to < until ? to : until);
        double paused = median_time(&inside), recorded = median_time(&beside);
        if (paused <= 0 || recorded <= 0)
            continue;
        add_pause_times(out, &sums, paused, recorded);
        out->recorded += (int64_t)beside.list.count;
        out->unrecorded += (int64_t)inside.list.count;
    }
    prof_array_free(&inside.list);
    prof_array_free(&beside.list);
    if (ok && out->pauses_used >= LEAST_PAUSES)
        conclude_overhead(out, &sums, bare);
    return ok;
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
