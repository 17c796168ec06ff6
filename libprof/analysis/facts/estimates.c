/* What the whole run did, from the iterations that were recorded (perfkit run --overhead=PERCENT).
 *
 * Rows of iterations are the clusters of a sample: a row of m iterations that stands for w of them
 * and has the sum y of something contributes w y / m. The variance of such a ratio estimator over n
 * clusters is that of their residuals, less the share m / w that is no sample: W. G. Cochran,
 * Sampling Techniques, 3rd ed. (1977), sections 6.4 and 9A.1; Student's t with n - 1 degrees of
 * freedom. What happened before the first iteration and after the last one is added as it is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/events.h"
#include "libprof/analysis/facts/facts.h"
#include "libprof/analysis/group.h"
#include "libprof/base/distribution.h"
#include "libprof/include/prof_summaries.h"

#define OUTSIDE UINT32_MAX /* of the iterations */

/* What a row of iterations has of a subject. */
struct cell {
    uint32_t subject, row;
    double count, timed, ns; /* how many, how many with a duration, and its sum */
};

struct row {
    int64_t begin;
    double recorded, stands_for;
};

struct work {
    struct prof_capture *capture;
    struct prof_sampled sampled;
    PROF_ARRAY(struct row) rows;     /* of all processes */
    PROF_ARRAY(size_t) first_row;    /* by process in `sampled`, and behind the last */
    double sampled_rows, iterations; /* of rows that stand for others: how many, and for what */
    struct prof_texts names;
    struct prof_map subjects;
    struct prof_groups cells;
    struct prof_estimates *result;
};

static bool list_rows(struct work *w)
{
    bool ok = prof_array_push(&w->first_row, 0);
    for (size_t i = 0; ok && i < w->sampled.count; i++) {
        const struct prof_sampled_process *p = &w->sampled.list[i];
        for (size_t s = 0; ok && s < p->stretches.count; s++) {
            const struct prof_stretch *one = &p->stretches.data[s];
            struct row row = {p->begins[one->first], (double)(one->end - one->first),
                              one->stands_for};
            ok = one->left_out || prof_array_push(&w->rows, row);
            w->result->iterations += (int64_t)row.recorded;
            w->result->recorded += one->left_out ? 0 : (int64_t)row.recorded;
            if (one->left_out || row.stands_for <= row.recorded)
                continue;
            w->sampled_rows++;
            w->iterations += row.stands_for;
        }
        ok = ok && prof_array_push(&w->first_row, w->rows.count);
    }
    return ok;
}

/* The last row that had begun when it was launched. */
static uint32_t row_of(const struct work *w, const struct prof_event_row *event)
{
    const struct prof_stream *stream = prof_stream(w->capture, event->stream);
    const struct prof_thread *thread = prof_thread(w->capture, event->thread);
    const struct prof_sampled_process *p =
        prof_sampled_process(&w->sampled, stream   ? stream->process
                                          : thread ? thread->process
                                                   : 0);
    bool launched = event->call_ns != PROF_UNKNOWN;
    int64_t time = launched ? event->call_ns : event->start_ns;
    if (!p || (launched && p->last_end != PROF_UNKNOWN && time > p->last_end))
        return OUTSIDE;
    size_t first = w->first_row.data[p - w->sampled.list];
    size_t count = w->first_row.data[p - w->sampled.list + 1] - first, begun;
    PROF_FIND_FIRST(begun, at, count, w->rows.data[first + at].begin > time);
    return begun ? (uint32_t)(first + begun - 1) : OUTSIDE;
}

/* The number of what the event is one of, with a row of the result. */
static uint32_t subject_of(struct work *w, const struct prof_event_row *event)
{
    static const char *const kinds[] = {"kernel", "memcpy", "memset", "graph"};
    bool kernel = event->kind == PROF_OP_KERNEL, fresh;
    uint32_t name = kernel ? prof_kernel_number(&w->names, w->capture, event->config)
                           : (uint32_t)event->copy_kind;
    uint32_t subject =
        name == PROF_NO_GROUP
            ? PROF_NO_GROUP
            : prof_group_number(&w->subjects, (uint64_t)event->kind << 32 | name, &fresh);
    if (subject == PROF_NO_GROUP || !fresh)
        return subject;
    struct prof_estimates *all = w->result;
    if (!prof_array_room(&all->rows, &all->capacity, all->count + 1, sizeof *all->rows))
        return PROF_NO_GROUP;
    const struct prof_config *config = kernel ? prof_config(w->capture, event->config) : NULL;
    all->rows[all->count++] = (struct prof_estimate_row){
        .kind = kinds[event->kind - PROF_OP_KERNEL],
        .name = kernel                            ? config ? config->name : NULL
                : event->kind == PROF_OP_TRANSFER ? prof_copy_kind_text(event->copy_kind)
                                                  : kinds[event->kind - PROF_OP_KERNEL],
    };
    return subject;
}

static bool add_estimated_event(void *user, const struct prof_event_row *event)
{
    struct work *w = user;
    bool fresh;
    uint32_t subject = subject_of(w, event), row = row_of(w, event);
    if (subject == PROF_NO_GROUP)
        return false;
    const uint32_t key[] = {subject, row};
    struct cell *cell = prof_group_of_bytes(&w->cells, key, sizeof key, &fresh);
    if (!cell)
        return false;
    cell->subject = subject;
    cell->row = row;
    cell->count++;
    bool timed = event->duration_ns != PROF_UNKNOWN;
    cell->timed += timed;
    cell->ns += timed ? (double)event->duration_ns : 0;
    return true;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Of one quantity of a subject: in all, of what is sampled, as recorded, and the squares of
 * residuals. */
struct sum {
    double all, sampled, recorded, squares;
};

/* What has no duration takes as long as the others of its name do on average; `sums`, by subject,
 * is zeroed and comes back so. */
static void time_the_rest(struct work *w, struct sum *sums)
{
    for (size_t i = 0; i < w->cells.count; i++) {
        const struct cell *c = prof_group_at(&w->cells, i);
        sums[c->subject].recorded += c->timed;
        sums[c->subject].all += c->ns;
    }
    for (size_t i = 0; i < w->cells.count; i++) {
        struct cell *c = prof_group_at(&w->cells, i);
        const struct sum *of = &sums[c->subject];
        c->ns += of->recorded > 0 ? (c->count - c->timed) * of->all / of->recorded : 0;
    }
    memset(sums, 0, w->result->count * sizeof *sums);
}

static void sum_cells(const struct work *w, struct sum *counts, struct sum *times)
{
    for (size_t i = 0; i < w->cells.count; i++) {
        const struct cell *c = prof_group_at(&w->cells, i);
        struct sum *of[] = {&counts[c->subject], &times[c->subject]};
        const double y[] = {c->count, c->ns};
        const struct row *row = c->row == OUTSIDE ? NULL : &w->rows.data[c->row];
        double weight = row ? row->stands_for / row->recorded : 1;
        for (size_t q = 0; q < 2; q++) {
            of[q]->all += weight * y[q];
            of[q]->recorded += y[q];
            of[q]->sampled += weight > 1 ? weight * y[q] : 0;
        }
    }
}

/* The residual of a row that has `y` (in all that it stands for), squared. */
static double square_of(const struct row *row, double y, double rate)
{
    double off = y - rate * row->stands_for;
    return off * off * (1 - row->recorded / row->stands_for);
}

/* Rows without the subject have a residual, too: all rows first, then those with it anew. */
static void square_cells(const struct work *w, struct sum *counts, struct sum *times)
{
    double absent = 0;
    for (size_t i = 0; i < w->rows.count; i++)
        if (w->rows.data[i].stands_for > w->rows.data[i].recorded)
            absent += square_of(&w->rows.data[i], 0, 1);
    for (size_t s = 0; s < w->result->count; s++) {
        struct sum *of[] = {&counts[s], &times[s]};
        for (size_t q = 0; q < 2; q++) {
            double rate = w->iterations > 0 ? of[q]->sampled / w->iterations : 0;
            of[q]->squares = rate * rate * absent;
        }
    }
    for (size_t i = 0; i < w->cells.count; i++) {
        const struct cell *c = prof_group_at(&w->cells, i);
        struct sum *of[] = {&counts[c->subject], &times[c->subject]};
        const double y[] = {c->count, c->ns};
        const struct row *row = c->row == OUTSIDE ? NULL : &w->rows.data[c->row];
        if (!row || row->stands_for <= row->recorded)
            continue;
        for (size_t q = 0; q < 2; q++) {
            double rate = of[q]->sampled / w->iterations;
            of[q]->squares += square_of(row, y[q] * row->stands_for / row->recorded, rate) -
                              square_of(row, 0, rate);
        }
    }
}

static struct prof_estimate estimate_of(const struct work *w, const struct sum *sum)
{
    double n = w->sampled_rows;
    struct prof_estimate out = {sum->all, sum->all, sum->all};
    if (sum->sampled <= 0)
        return out;
    double squares = sum->squares > 0 ? sum->squares : 0; /* rounding */
    double error = n > 1 ? sqrt(n / (n - 1) * squares) * prof_t_quantile(0.025, n - 1) : INFINITY;
    out.low = fmax(sum->all - error, sum->recorded);
    out.high = sum->all + error;
    return out;
}

PROF_ORDER(by_estimated_time, struct prof_estimate_row, PROF_DESCENDING(total_ns.value))

static bool fill_estimates(struct work *w)
{
    struct prof_estimates *all = w->result;
    PROF_FREED struct sum *sums = calloc(2 * all->count + 1, sizeof *sums);
    if (!sums)
        return false;
    time_the_rest(w, sums);
    sum_cells(w, sums, sums + all->count);
    square_cells(w, sums, sums + all->count);
    for (size_t i = 0; i < w->cells.count; i++) {
        const struct cell *c = prof_group_at(&w->cells, i);
        all->rows[c->subject].recorded += (int64_t)c->count;
    }
    for (size_t s = 0; s < all->count; s++) {
        all->rows[s].count = estimate_of(w, &sums[s]);
        all->rows[s].total_ns = estimate_of(w, &sums[all->count + s]);
    }
    if (all->count)
        qsort(all->rows, all->count, sizeof *all->rows, by_estimated_time);
    return true;
}

enum prof_status prof_estimates(struct prof_capture *capture, struct prof_estimates *result,
                                struct prof_error *err)
{
    static const struct prof_event_query device = {
        .tables = PROF_OPS_DEVICE,
        .fields = PROF_FIELD(START) | PROF_FIELD(DURATION) | PROF_FIELD(STREAM) |
                  PROF_FIELD(THREAD) | PROF_FIELD(CALL) | PROF_FIELD(LAUNCH) | PROF_FIELD(CONFIG) |
                  PROF_FIELD(COPY_KIND),
    };
    struct work w = {.capture = capture, .cells = PROF_GROUPS(struct cell, 0), .result = result};
    *result = (struct prof_estimates){0};
    enum prof_status status = prof_sampled_read(capture, &w.sampled, err);
    bool some = !status && w.sampled.count;
    if (some && !list_rows(&w))
        status = prof_out_of_memory(err);
    if (some && !status)
        status = prof_event_rows(capture, &device, add_estimated_event, &w, err);
    if (some && !status && !fill_estimates(&w))
        status = prof_out_of_memory(err);
    prof_sampled_free(&w.sampled);
    prof_array_free(&w.rows);
    prof_array_free(&w.first_row);
    prof_texts_free(&w.names);
    prof_map_free(&w.subjects);
    prof_groups_free(&w.cells);
    return status;
}

void prof_estimates_free(struct prof_estimates *result)
{
    free(result->rows);
    *result = (struct prof_estimates){0};
}
