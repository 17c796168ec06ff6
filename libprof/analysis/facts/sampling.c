/* A run with a budget (perfkit run --overhead=PERCENT): rows of iterations were recorded, and
 * between them others only timed. What recording costs follows from each row against those that
 * were left out before and after it, so that a run which slowly changes its pace does no harm.
 *
 * The time of an iteration is from its begin to the next one's. Means, not medians, because a
 * program may do something longer every so many iterations; but a time counts at most MOST times
 * the median, so that a hiccup of the machine is no cost. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/facts/facts.h"
#include "libprof/analysis/facts/iteration_parts.h"
#include "libprof/base/distribution.h"
#include "libprof/wire/activity.h"

#define LEAST_ROWS 3
#define LEAST_CLEAR 2 /* iterations that nothing of the row before them slows */
#define MOST 10
#define ENOUGH_BEGINS 8   /* of iterations in one gap: they have the name */
#define WARM 64           /* iterations: of more in the first row, only the last count */
#define BARE_NS 500000000 /* before CUPTI is switched on the last so long counts */
#define NEXT_GAPS 5       /* are compared with that */

/* ---- stretches ------------------------------------------------------------------------------- */

static double time_of(const int64_t *begins, size_t i, double most)
{
    double time = (double)prof_subtract(begins[i + 1], begins[i]);
    return time < most ? time : most;
}

static double sum_of(const int64_t *begins, size_t first, size_t end, double most)
{
    double sum = 0;
    for (size_t i = first; i < end; i++)
        sum += time_of(begins, i, most);
    return sum;
}

/* The first iterations of a gap may still pay for the row before, whose records are fetched. The
 * last of all iterations has no time. */
static bool time_gap(struct prof_stretch *gap, const int64_t *begins, size_t count, bool bare)
{
    size_t end = gap->end < count ? gap->end : count - 1, clear = gap->first;
    int64_t middle = prof_subtract(begins[end], begins[gap->first]) / 2;
    int64_t settled = bare ? prof_subtract(begins[end], begins[gap->first]) - BARE_NS : 0;
    settled = bare && settled < middle ? middle : settled;
    settled = settled > PROF_OVERHEAD_SETTLE_NS ? settled : PROF_OVERHEAD_SETTLE_NS;
    PROF_FREED double *times = malloc((end - gap->first + 1) * sizeof *times);
    if (!times)
        return false;
    while (clear < end && prof_subtract(begins[clear], begins[gap->first]) < settled)
        clear++;
    if (end - clear < LEAST_CLEAR)
        clear = end > gap->first + LEAST_CLEAR ? end - LEAST_CLEAR : gap->first;
    for (size_t i = clear; i < end; i++)
        times[i - clear] = time_of(begins, i, INFINITY);
    if (end > clear) {
        qsort(times, end - clear, sizeof *times, prof_ascending_double);
        double most = MOST * times[(end - clear) / 2];
        gap->bare_ns = sum_of(begins, clear, end, most) / (double)(end - clear);
        gap->slowed_ns =
            sum_of(begins, gap->first, clear, most) - (double)(clear - gap->first) * gap->bare_ns;
    }
    return true;
}

static double stretch_length(const struct prof_stretch *stretch)
{
    return stretch ? (double)(stretch->end - stretch->first) : 0;
}

/* A gap stands half for the row before it and half for the one after it; the first row of the run,
 * when nothing was left out yet, only for itself, where there is another. */
static void weigh_row(struct prof_stretches *list, size_t at, const int64_t *begins)
{
    struct prof_stretch *row = &list->data[at];
    const struct prof_stretch *before = at ? row - 1 : NULL;
    const struct prof_stretch *after = at + 1 < list->count ? row + 1 : NULL;
    bool last = at + 2 >= list->count;
    double sum = (before ? before->bare_ns : 0) + (after ? after->bare_ns : 0);
    bool both = before && after && before->bare_ns > 0 && after->bare_ns > 0;
    row->bare_ns = both ? sum / 2 : sum;
    row->cost_ns = NAN;
    size_t first = !at && row->end > WARM ? row->end - WARM : row->first;
    first = first > row->first ? first : row->first;
    if (after && row->bare_ns > 0)
        row->cost_ns = (sum_of(begins, first, row->end, MOST * row->bare_ns) + after->slowed_ns) /
                           (double)(row->end - first) -
                       row->bare_ns;
    row->stands_for = stretch_length(row) + stretch_length(before) * (at > 2 ? 0.5 : 1) +
                      (at || last ? stretch_length(after) * (last ? 1 : 0.5) : 0);
}

/* From the begins of the iterations, in order. False: out of memory. */
static bool find_stretches(const int64_t *begins, size_t count, const struct prof_intervals *gaps,
                           struct prof_stretches *out)
{
    for (size_t i = 0; i < count; i++) {
        bool left_out = prof_intervals_has(gaps, begins[i]);
        struct prof_stretch fresh = {.first = i, .left_out = left_out};
        if ((!out->count || out->data[out->count - 1].left_out != left_out) &&
            !prof_array_push(out, fresh))
            return false;
        out->data[out->count - 1].end = i + 1;
    }
    out->bare =
        count && gaps->count && gaps->data[0].begin <= begins[0] && begins[0] < gaps->data[0].end;
    for (size_t s = 0; s < out->count; s++)
        if (out->data[s].left_out && !time_gap(&out->data[s], begins, count, out->bare && !s))
            return false;
    for (size_t s = 0; s < out->count; s++)
        if (!out->data[s].left_out)
            weigh_row(out, s, begins);
    return true;
}

/* The first row has what the program does once, at its start, or is compared with iterations before
 * CUPTI was on: it counts where it is the only one. */
static bool is_known(const struct prof_stretches *list, size_t at)
{
    return !list->data[at].left_out && list->data[at].cost_ns > -INFINITY &&
           (at > list->bare || list->count < 4);
}

/* How much longer iterations that are left out take since CUPTI was on; 0 = not known. */
static double left_since_bare(const struct prof_stretches *list)
{
    double sum = 0, n = 0;
    for (size_t s = 2; list->bare && s < list->count && n < NEXT_GAPS; s += 2) {
        if (list->data[s].bare_ns > 0) {
            sum += log(list->data[s].bare_ns);
            n++;
        }
    }
    bool known = n > 0 && list->data[0].bare_ns > 0;
    return known ? fmax(exp(sum / n) / list->data[0].bare_ns, 1) : 0;
}

/* What they say together. Its source is UNKNOWN where there are too few for an interval: the other
 * figures are there as soon as there is one row. */
static void sum_stretches(const struct prof_stretches *list, struct prof_overhead *out)
{
    double n = 0, weight = 0, cost = 0, bare = 0, squares = 0;
    *out = (struct prof_overhead){0};
    for (size_t s = 0; s < list->count; s++) {
        const struct prof_stretch *one = &list->data[s];
        *(one->left_out ? &out->unrecorded : &out->recorded) += (int64_t)stretch_length(one);
        out->pauses += one->left_out;
        if (!is_known(list, s))
            continue;
        n++;
        weight += stretch_length(one);
        cost += one->cost_ns * stretch_length(one);
        bare += one->bare_ns * stretch_length(one);
    }
    out->pauses_used = (int64_t)n;
    if (bare <= 0)
        return;
    /* The ratio of two sums over rows (W. G. Cochran, Sampling Techniques, 3rd ed. (1977), 6.4). */
    double share = cost / bare, iterations = (double)(out->recorded + out->unrecorded);
    out->ratio = 1 + share;
    out->bare_ns = bare / weight;
    out->recorded_ns = out->bare_ns * out->ratio;
    double left = left_since_bare(list);
    double later = iterations - (left > 0 ? stretch_length(&list->data[0]) : 0);
    out->of_run = share * (double)out->recorded / iterations;
    if (left > 0)
        out->of_run = out->of_run * left + (left - 1) * later / iterations;
    out->paused = left;
    if (n < LEAST_ROWS)
        return;
    for (size_t s = 0; s < list->count; s++) {
        const struct prof_stretch *one = &list->data[s];
        double off = stretch_length(one) * (one->cost_ns - share * one->bare_ns);
        squares += is_known(list, s) ? off * off : 0;
    }
    double error = sqrt(n / (n - 1) * squares) / bare * prof_t_quantile(0.025, n - 1);
    out->source = PROF_OVERHEAD_SAMPLED;
    out->low = fmax(1 + share - error, 0); /* no iteration takes less */
    out->high = 1 + share + error;
}

/* ---- the capture ----------------------------------------------------------------------------- */

struct begun {
    int64_t row, begin, end, thread, process;
};

struct seen {
    PROF_ARRAY(struct begun) list; /* by process, thread, then begin */
};

/* Its instances with rows after `after`; `order`: of them. */
static enum prof_status query_instances(struct prof_capture *capture,
                                        const struct prof_iteration_range *range, int64_t after,
                                        const char *order, sqlite3_stmt **row,
                                        struct prof_error *err)
{
    char sql[700];
    snprintf(sql, sizeof sql,
             "SELECT range.id, range.start, range.start + duration, thread, thread.process FROM "
             "range JOIN string ON string.id = range.name JOIN thread ON thread.id = thread "
             "WHERE range.id > ?1 AND substr(value, 1, length(?2)) = ?2 AND CASE ?3 WHEN 0 THEN "
             "length(value) = length(?2) ELSE length(value) > length(?2) AND "
             "substr(value, length(?2) + 1) NOT GLOB '*[^0-9]*' END AND "
             "ifnull((SELECT value FROM string WHERE id = domain), '') = ?4 ORDER BY %s",
             order);
    PROF_TRY(prof_query(capture, sql, row, err));
    sqlite3_bind_int64(*row, 1, after);
    sqlite3_bind_text(*row, 2, range->name, -1, SQLITE_STATIC);
    sqlite3_bind_int(*row, 3, range->numbered);
    sqlite3_bind_text(*row, 4, range->domain, -1, SQLITE_STATIC);
    return PROF_OK;
}

enum prof_status prof_live_iterations(struct prof_capture *capture,
                                      const struct prof_iteration_range *range, int64_t *after,
                                      void (*on_iteration)(void *context, int64_t duration_ns),
                                      void *context, struct prof_error *err)
{
    struct prof_live_marks there;
    sqlite3_stmt *row;
    PROF_TRY(prof_live_marks(capture, &there, err));
    PROF_TRY(query_instances(capture, range, *after, "range.id", &row, err));
    if (there.ranges > *after)
        *after = there.ranges;
    while (prof_row(row)) {
        int64_t id = prof_column_id(row, 0);
        if (sqlite3_column_type(row, 2) != SQLITE_NULL)
            on_iteration(context, prof_subtract(prof_column_int(row, 2), prof_column_int(row, 1)));
        *after = id > *after ? id : *after;
    }
    return prof_query_end(capture, row, err);
}

static enum prof_status read_begins(struct prof_capture *capture,
                                    const struct prof_iteration_range *range, int64_t after,
                                    struct seen *seen, struct prof_error *err)
{
    sqlite3_stmt *row;
    bool ok = true;
    PROF_TRY(
        query_instances(capture, range, after, "thread.process, thread, range.start", &row, err));
    while (ok && prof_row(row)) {
        struct begun one = {prof_column_int(row, 0), prof_column_int(row, 1),
                            prof_column_int(row, 2), prof_column_int(row, 3),
                            prof_column_int(row, 4)};
        ok = prof_array_push(&seen->list, one);
    }
    enum prof_status status = prof_query_end(capture, row, err);
    return status || ok ? status : prof_out_of_memory(err);
}

static struct prof_sampled_process *new_process(struct prof_sampled *sampled, int64_t process)
{
    struct prof_sampled_process *last = sampled->count ? &sampled->list[sampled->count - 1] : NULL;
    if (last && last->process == process)
        return last;
    if (!prof_array_room(&sampled->list, &sampled->capacity, sampled->count + 1, sizeof *last))
        return NULL;
    last = &sampled->list[sampled->count++];
    *last = (struct prof_sampled_process){.process = process};
    return last;
}

/* Of the processes that have some. */
static enum prof_status read_gaps(struct prof_capture *capture, struct prof_sampled *sampled,
                                  struct prof_error *err)
{
    struct prof_closed_list closed;
    enum prof_status status = prof_closed_read(capture, &closed, err);
    for (size_t i = 0; !status && i < closed.count; i++) {
        const struct prof_closed *one = &closed.data[i];
        if (one->span.reason != WIRE_WINDOW_SAMPLE)
            continue;
        struct prof_sampled_process *of = new_process(sampled, one->process);
        if (!of || !prof_intervals_add(&of->gaps, one->span.begin_ns, one->span.end_ns))
            status = prof_out_of_memory(err);
    }
    prof_array_free(&closed);
    for (size_t i = 0; i < sampled->count; i++)
        prof_intervals_normalise(&sampled->list[i].gaps);
    return status;
}

/* In a gap only iterations are recorded, and what another thread began at that moment: the name
 * that is there most often, without the number by which instances differ. */
static enum prof_status find_sampled_range(struct prof_capture *capture,
                                           struct prof_sampled *sampled, struct prof_error *err)
{
    sqlite3_stmt *row;
    struct prof_iteration_range *range = &sampled->range;
    int64_t most = 0;
    PROF_TRY(prof_query(
        capture,
        "SELECT rtrim(value, '0123456789') AS stem, min(value), count(DISTINCT value) > 1, "
        "count(*), ifnull((SELECT value FROM string WHERE id = domain), '') "
        "FROM range JOIN string ON string.id = range.name JOIN thread ON thread.id = thread "
        "WHERE thread.process = ?1 AND range.start >= ?2 AND range.start < ?3 "
        "GROUP BY stem, domain ORDER BY count(*) DESC LIMIT 1",
        &row, err));
    for (size_t i = 0; i < sampled->count; i++) {
        const struct prof_sampled_process *p = &sampled->list[i];
        for (size_t g = 0; g < p->gaps.count && g < 4 && most < ENOUGH_BEGINS; g++) {
            sqlite3_bind_int64(row, 1, p->process);
            sqlite3_bind_int64(row, 2, p->gaps.data[g].begin);
            sqlite3_bind_int64(row, 3, p->gaps.data[g].end);
            if (prof_row(row) && prof_column_int(row, 3) > most) {
                most = prof_column_int(row, 3);
                range->numbered = sqlite3_column_int(row, 2) != 0;
                snprintf(range->name, sizeof range->name, "%s",
                         sqlite3_column_text(row, range->numbered ? 0 : 1));
                snprintf(range->domain, sizeof range->domain, "%s", sqlite3_column_text(row, 4));
            }
            sqlite3_reset(row);
        }
    }
    return prof_query_end(capture, row, err);
}

/* The iterations [first, end) are all of the process. */
static bool take_iterations(struct prof_sampled_process *p, const struct seen *seen, size_t first,
                            size_t end)
{
    size_t best = first;
    for (size_t from = first, to; from < end; from = to) {
        for (to = from; to < end && seen->list.data[to].thread == seen->list.data[from].thread;)
            to++;
        best = to - from > p->count ? from : best;
        p->count = to - from > p->count ? to - from : p->count;
    }
    p->begins = malloc((p->count + 1) * sizeof *p->begins);
    for (size_t i = 0; p->begins && i < p->count; i++)
        p->begins[i] = seen->list.data[best + i].begin;
    if (p->count)
        p->last_end = seen->list.data[best + p->count - 1].end;
    return p->begins && find_stretches(p->begins, p->count, &p->gaps, &p->stretches);
}

static enum prof_status read_iterations(struct prof_capture *capture, struct prof_sampled *sampled,
                                        struct seen *seen, int64_t after, struct prof_error *err)
{
    enum prof_status status = read_begins(capture, &sampled->range, after, seen, err);
    size_t from = 0, to;
    for (size_t i = 0; !status && i < sampled->count; i++) {
        struct prof_sampled_process *p = &sampled->list[i];
        while (from < seen->list.count && seen->list.data[from].process < p->process)
            from++;
        for (to = from; to < seen->list.count && seen->list.data[to].process == p->process;)
            to++;
        if (!take_iterations(p, seen, from, to))
            status = prof_out_of_memory(err);
        from = to;
    }
    return status;
}

enum prof_status prof_sampled_read(struct prof_capture *capture, struct prof_sampled *sampled,
                                   struct prof_error *err)
{
    struct seen seen = {0};
    *sampled = (struct prof_sampled){0};
    enum prof_status status = read_gaps(capture, sampled, err);
    if (!status && sampled->count)
        status = find_sampled_range(capture, sampled, err);
    if (!status && sampled->range.name[0])
        status = read_iterations(capture, sampled, &seen, 0, err);
    prof_array_free(&seen.list);
    return status;
}

void prof_sampled_free(struct prof_sampled *sampled)
{
    for (size_t i = 0; i < sampled->count; i++) {
        prof_array_free(&sampled->list[i].gaps);
        prof_array_free(&sampled->list[i].stretches);
        free(sampled->list[i].begins);
    }
    free(sampled->list);
    *sampled = (struct prof_sampled){0};
}

const struct prof_sampled_process *prof_sampled_process(const struct prof_sampled *sampled,
                                                        int64_t process)
{
    for (size_t i = 0; i < sampled->count; i++)
        if (sampled->list[i].process == process)
            return &sampled->list[i];
    return NULL;
}

bool prof_is_paused(const struct prof_facts *facts, int64_t thread, int64_t begin, int64_t end)
{
    const struct prof_intervals *pauses = &facts->pauses;
    if (facts->sampled.count) {
        const struct prof_thread *of = prof_thread(facts->capture, thread);
        const struct prof_sampled_process *p =
            of ? prof_sampled_process(&facts->sampled, of->process) : NULL;
        if (!p)
            return false;
        pauses = &p->gaps;
    }
    size_t begun = prof_intervals_begun(pauses, end - 1);
    return begun && pauses->data[begun - 1].end > begin;
}

static const struct prof_sampled_process *main_process(const struct prof_sampled *sampled)
{
    const struct prof_sampled_process *most = sampled->list;
    for (size_t i = 1; i < sampled->count; i++)
        most = sampled->list[i].count > most->count ? &sampled->list[i] : most;
    return sampled->count ? most : NULL;
}

void prof_sampled_overhead(const struct prof_sampled *sampled, struct prof_overhead *out)
{
    const struct prof_sampled_process *main = main_process(sampled);
    *out = (struct prof_overhead){0};
    if (main)
        sum_stretches(&main->stretches, out);
}

/* ---- while it is recorded -------------------------------------------------------------------- */

#define ROWS_KEPT 16 /* the next look compares so many again */

enum prof_status prof_sampling_look(struct prof_capture *capture,
                                    const struct prof_iteration_range *range, int64_t *after,
                                    struct prof_overhead *out, struct prof_error *err)
{
    struct seen seen = {0};
    struct prof_sampled sampled = {.range = *range};
    *out = (struct prof_overhead){0};
    enum prof_status status = read_gaps(capture, &sampled, err);
    if (!status)
        status = read_iterations(capture, &sampled, &seen, *after, err);
    const struct prof_sampled_process *main = status ? NULL : main_process(&sampled);
    if (main)
        sum_stretches(&main->stretches, out);
    if (main && main->stretches.count > 2 * ROWS_KEPT) {
        const struct prof_stretch *first =
            &main->stretches.data[main->stretches.count - 2 * ROWS_KEPT];
        int64_t since = main->begins[first->first], row = INT64_MAX;
        for (size_t i = 0; i < seen.list.count; i++)
            if (seen.list.data[i].begin >= since && seen.list.data[i].row < row)
                row = seen.list.data[i].row;
        *after = row - 1;
    }
    prof_array_free(&seen.list);
    prof_sampled_free(&sampled);
    return status;
}
