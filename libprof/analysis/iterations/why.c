/* Why an iteration is slow: its parts against those of the iterations that take the usual time, and
 * of the parts that make it slow the one that deviates first in time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/iterations/iterations.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"

/* So many iterations, those nearest the median, say what is usual in each part. */
#define COMPARED 48

/* ---- which are compared ---------------------------------------------------------------------- */

static const struct prof_iteration_series *series_of_row(const struct prof_explaining *w,
                                                         const struct prof_iteration_row *row)
{
    return &w->list->series[row->series];
}

struct near_median {
    const struct prof_iteration_row *row;
    double distance;
};

PROF_ORDER(by_distance_of_median, struct near_median, PROF_ASCENDING(distance),
           PROF_ASCENDING(row->number))

static bool add_dissected(struct prof_explaining *w, const struct prof_iteration_row *row,
                          bool with_pieces)
{
    const struct prof_phase *phase = &w->facts->phases.list.data[series_of_row(w, row)->phase];
    return prof_array_push(&w->parts.list, (struct prof_dissected){.row = row,
                                                                   .group = phase->iterations.group,
                                                                   .with_pieces = with_pieces});
}

static bool is_explained(const struct prof_explaining *w, const struct prof_iteration_row *row)
{
    for (size_t i = 0; i < w->list->why_count; i++)
        if (w->list->whys[i].number == row->number)
            return true;
    return false;
}

static bool has_explained(const struct prof_explaining *w, size_t series)
{
    for (size_t i = 0; i < w->list->why_count; i++)
        if (w->list->rows[w->list->whys[i].number - 1].series == series)
            return true;
    return false;
}

#define NEAR (COMPARED + 1)

/* The NEAR first ones of all, in order. */
static void keep_nearest(struct near_median near[NEAR], size_t *count, struct near_median one)
{
    size_t at = *count < NEAR ? (*count)++ : NEAR;
    for (; at && by_distance_of_median(&one, &near[at - 1]) < 0; at--)
        if (at < NEAR)
            near[at] = near[at - 1];
    if (at < NEAR)
        near[at] = one;
}

/* Those that are explained, and of their series those nearest the median, one more than are
 * compared: an iteration is not compared with itself. */
static bool choose_dissected(struct prof_explaining *w)
{
    const struct prof_iteration_list *list = w->list;
    struct near_median near[NEAR];
    bool ok = true;
    for (size_t s = 0; ok && s < list->series_count; s++) {
        size_t count = 0;
        if (!has_explained(w, s))
            continue;
        for (size_t i = 0; ok && i < list->count; i++) {
            const struct prof_iteration_row *row = &list->rows[i];
            if (row->series != s)
                continue;
            if (is_explained(w, row))
                ok = add_dissected(w, row, true);
            double distance = fabs((double)row->duration_ns - list->series[s].median_ns);
            if (!row->warm_up)
                keep_nearest(near, &count, (struct near_median){row, distance});
        }
        for (size_t i = 0, model = 0; ok && i < count; i++) {
            if (is_explained(w, near[i].row))
                continue;
            ok = add_dissected(w, near[i].row, !model++);
        }
    }
    return ok;
}

static bool is_compared(const struct prof_dissected *one, const struct prof_iteration_row *with)
{
    return one->row->series == with->series && one->row != with && !one->row->warm_up &&
           !(one->row->slow && one->with_pieces);
}

/* ---- what is usual --------------------------------------------------------------------------- */

/* Whole numbers that add up to `total`, as `sums` do: what is lost by rounding down goes to those
 * that lose most. */
static bool apportion(struct prof_iteration_part *parts, const int64_t *sums, size_t count,
                      int64_t total)
{
    __extension__ typedef __int128 wide;
    int64_t all = 0, left = total;
    double *lost = malloc((count + 1) * sizeof *lost);
    for (size_t p = 0; p < count; p++)
        all = prof_add(all, sums[p]);
    for (size_t p = 0; lost && p < count; p++) {
        wide share = all > 0 ? (wide)sums[p] * (wide)total : 0;
        parts[p].usual_ns = all > 0 ? (int64_t)(share / (wide)all) : 0;
        lost[p] = all > 0 ? (double)(share % (wide)all) / (double)all : 0;
        left -= parts[p].usual_ns;
    }
    while (lost && left > 0 && all > 0) {
        size_t most = 0;
        for (size_t p = 1; p < count; p++)
            most = lost[p] > lost[most] ? p : most;
        parts[most].usual_ns++;
        lost[most] = -1;
        left--;
    }
    free(lost);
    return lost != NULL;
}

static bool sum_usual(const struct prof_explaining *w, const struct prof_iteration_row *row,
                      struct prof_usual *u)
{
    size_t parts = w->parts.parts.count;
    *u = (struct prof_usual){.sums = calloc(parts + 1, sizeof *u->sums),
                             .most = calloc(parts + 1, sizeof *u->most),
                             .counts = calloc(parts + 1, sizeof *u->counts),
                             .work = calloc(parts + 1, sizeof *u->work),
                             .most_count = calloc(parts + 1, sizeof *u->most_count)};
    if (!u->sums || !u->most || !u->counts || !u->work || !u->most_count)
        return false;
    for (size_t i = 0; i < w->parts.list.count; i++) {
        const struct prof_dissected *one = &w->parts.list.data[i];
        if (!is_compared(one, row))
            continue;
        u->others++;
        for (size_t p = 0; p < one->cells.count; p++) {
            const struct prof_part_cell *cell = &one->cells.data[p];
            u->sums[p] = prof_add(u->sums[p], cell->ns);
            u->most[p] = cell->ns > u->most[p] ? cell->ns : u->most[p];
            u->counts[p] += (double)cell->count;
            u->most_count[p] = prof_max(u->most_count[p], cell->count);
            u->work[p] += (double)cell->work_ns;
        }
    }
    for (size_t p = 0; u->others && p < parts; p++) {
        u->counts[p] /= (double)u->others;
        u->work[p] /= (double)u->others;
    }
    return true;
}

static void free_usual(struct prof_usual *u)
{
    free(u->sums);
    free(u->most);
    free(u->counts);
    free(u->work);
    free(u->most_count);
}

/* ---- the first cause ------------------------------------------------------------------------- */

/* A part makes the iteration slow with a tenth of what it takes more, more than in any other that
 * it is compared with; of these, those with a quarter of the largest are compared by when they
 * begin. */
#define OF_ALL 0.1
#define OF_LARGEST 0.25

/* What waits for something rather than takes the time itself: a cause only where nothing else is.
 */
static bool is_consequence(enum prof_part_kind kind)
{
    return kind == PROF_PART_OF_QUEUED || kind == PROF_PART_OF_DEPENDENCY ||
           kind == PROF_PART_OF_LAUNCH;
}

/* Where a part has taken more than the model by a tenth of all that it takes more, all of its
 * pieces up to there and their counterparts added up; what the model lacks is so by all of its
 * length. The longest piece where none is. */
static const struct prof_part_piece *onset(const struct prof_dissected *one,
                                           const struct prof_dissected *model, uint32_t part,
                                           int64_t more)
{
    const struct prof_part_piece *longest = NULL;
    int64_t excess = 0;
    size_t m = 0;
    for (size_t i = 0; i < one->pieces.count; i++) {
        const struct prof_part_piece *piece = &one->pieces.data[i];
        if (piece->part != part)
            continue;
        while (model && m < model->pieces.count && model->pieces.data[m].part != part)
            m++;
        bool has = model && m < model->pieces.count;
        int64_t own = piece->end - piece->begin;
        int64_t usual = has ? model->pieces.data[m].end - model->pieces.data[m].begin : 0;
        m += has;
        excess += own - usual;
        if (excess > more / 10 || own - usual > more / 10)
            return piece;
        if (!longest || own > longest->end - longest->begin)
            longest = piece;
    }
    return longest;
}

struct candidate {
    size_t part;
    const struct prof_part_piece *piece;
};

static bool part_may_be_cause(const struct prof_iteration_part *part, const struct prof_usual *u,
                              size_t p, int64_t more, int64_t largest)
{
    /* Samples estimate the time of page faults; their number is exact. */
    bool counted = part->kind != PROF_PART_OF_FAULTS || part->count > u->most_count[p];
    return (double)part->more_ns >= OF_ALL * (double)more && part->ns > u->most[p] && counted &&
           (double)part->more_ns >= OF_LARGEST * (double)largest;
}

/* Does the thread, where the device waits for it, take page faults for longer than it computes? By
 * samples: what one represents may be longer than a short piece. */
static bool faults_dominate(const struct prof_explaining *w, const struct prof_dissected *one)
{
    int64_t faults = 0, others = 0;
    for (size_t i = 0; i < one->pieces.count; i++) {
        const struct prof_part_piece *piece = &one->pieces.data[i];
        enum prof_part_kind kind = w->parts.parts.data[piece->part].kind;
        if (kind == PROF_PART_OF_HOST || kind == PROF_PART_OF_FAULTS)
            prof_overlays_weigh(w->parts.overlays, piece->thread, piece->begin, piece->end, &faults,
                                &others);
    }
    return faults > others;
}

static struct candidate first_cause(const struct prof_explaining *w,
                                    const struct prof_dissected *one,
                                    const struct prof_dissected *model,
                                    const struct prof_iteration_part *parts,
                                    const struct prof_usual *u, int64_t more)
{
    struct candidate first = {.piece = NULL};
    size_t count = w->parts.parts.count;
    int64_t largest = 0;
    bool direct = false, computes = false, faults = false;
    for (size_t p = 0; p < count; p++)
        if (part_may_be_cause(&parts[p], u, p, more, 0) && parts[p].more_ns > largest)
            largest = parts[p].more_ns;
    for (size_t p = 0; p < count; p++) {
        bool may_be = part_may_be_cause(&parts[p], u, p, more, largest);
        computes |= parts[p].kind == PROF_PART_OF_HOST && may_be;
        faults |= parts[p].kind == PROF_PART_OF_FAULTS && may_be;
    }
    bool dominate = faults && faults_dominate(w, one);
    for (size_t p = 0; p < count; p++) {
        const struct prof_iteration_part *part = &parts[p];
        /* A thread that computes longer is preempted more often, too. Between its page faults it
         * runs: what it does for longer is the cause. */
        bool follows = is_consequence(part->kind) ||
                       (part->kind == PROF_PART_OF_PREEMPTED && (computes || faults)) ||
                       (part->kind == PROF_PART_OF_HOST && faults && dominate) ||
                       (part->kind == PROF_PART_OF_FAULTS && computes && !dominate);
        if (!part_may_be_cause(part, u, p, more, largest) || (direct && follows))
            continue;
        const struct prof_part_piece *piece = onset(one, model, (uint32_t)p, part->more_ns);
        bool better = !direct && !follows;
        if (piece && (!first.piece || better || piece->begin < first.piece->begin))
            first = (struct candidate){p, piece};
        direct |= piece && !follows;
    }
    return first;
}

/* ---- all ------------------------------------------------------------------------------------- */

PROF_ORDER(by_more, struct prof_iteration_part, PROF_COMPARE(llabs(y->more_ns), llabs(x->more_ns)),
           PROF_DESCENDING(ns), PROF_ASCENDING(kind), prof_compare_texts(x->name, y->name))

/* Parts without time in either go; names are kept with the result, which outlives the facts. */
static bool keep_parts(struct prof_iteration_why *why, size_t count, size_t cause)
{
    const struct prof_iteration_part was =
        why->has_cause ? why->parts[cause] : (struct prof_iteration_part){0};
    size_t bytes = 1;
    for (size_t p = 0; p < count; p++) {
        if (!why->parts[p].ns && !why->parts[p].usual_ns)
            continue;
        bytes += why->parts[p].name ? strlen(why->parts[p].name) + 1 : 0;
        why->parts[why->part_count++] = why->parts[p];
    }
    qsort(why->parts, why->part_count, sizeof *why->parts, by_more);
    for (size_t p = 0; p < why->part_count && why->has_cause; p++)
        if (why->parts[p].kind == was.kind && why->parts[p].name == was.name)
            why->cause = p;
    char *text = why->texts = malloc(bytes);
    for (size_t p = 0; text && p < why->part_count; p++) {
        if (!why->parts[p].name)
            continue;
        size_t length = strlen(why->parts[p].name) + 1;
        why->parts[p].name = memcpy(text, why->parts[p].name, length);
        text += length;
    }
    return text != NULL;
}

static void judge_iteration(struct prof_explaining *w, struct prof_iteration_why *why,
                            const struct prof_dissected *one, const struct prof_usual *u)
{
    const struct prof_iteration_series *series = series_of_row(w, one->row);
    const struct prof_dissected *model = NULL;
    int64_t more = why->duration_ns - why->usual_ns;
    for (size_t i = 0; i < w->parts.list.count; i++)
        if (w->parts.list.data[i].with_pieces && is_compared(&w->parts.list.data[i], one->row))
            model = &w->parts.list.data[i];
    if (series->limit_ns == PROF_UNKNOWN || !u->others) {
        PROF_SAY_WHY(why, u->others ? "Too few other iterations to say whether it is slow"
                                    : "There is no other iteration to compare it with");
        return;
    }
    if (why->duration_ns <= series->limit_ns) {
        PROF_SAY_WHY(why,
                     "Not slow: half of the iterations take %s to %s, and slow ones more than %s",
                     prof_duration_ns(series->low_ns).text, prof_duration_ns(series->high_ns).text,
                     prof_duration_ns(series->limit_ns).text);
        return;
    }
    struct candidate first = first_cause(w, one, model, why->parts, u, more);
    if (!first.piece) {
        PROF_SAY_WHY(why, "No single part stands out");
        return;
    }
    why->has_cause = true;
    why->cause = first.part;
    prof_place_piece(w, one, first.piece, why->parts[first.part].kind, &why->place);
    prof_say_cause(w, one, why, first.part, u, first.piece);
}

static bool explain_iteration(struct prof_explaining *w, struct prof_iteration_why *why,
                              const struct prof_dissected *one)
{
    size_t count = w->parts.parts.count;
    struct prof_usual u;
    double median = series_of_row(w, one->row)->median_ns;
    why->parts = calloc(count + 1, sizeof *why->parts);
    bool ok = sum_usual(w, one->row, &u) && why->parts;
    why->duration_ns = one->row->duration_ns;
    why->compared = (int64_t)u.others;
    why->usual_ns = ok && u.others && isfinite(median) ? (int64_t)median : 0;
    ok = ok && apportion(why->parts, u.sums, count, why->usual_ns);
    for (size_t p = 0; ok && p < count; p++) {
        const struct prof_part_key *key = &w->parts.parts.data[p];
        struct prof_part_cell cell = prof_part_cell(one, p);
        struct prof_iteration_part *part = &why->parts[p];
        part->kind = key->kind;
        part->name = key->name;
        part->ns = cell.ns;
        part->more_ns = cell.ns - part->usual_ns;
        part->count = key->counts ? cell.count : PROF_UNKNOWN;
        part->usual_count = key->counts ? u.counts[p] : NAN;
    }
    if (ok)
        judge_iteration(w, why, one, &u);
    ok = ok && keep_parts(why, count, why->cause);
    free_usual(&u);
    return ok;
}

PROF_ORDER(by_extra, struct near_median, by_distance_of_median(y, x))

PROF_ORDER(by_iteration_number, struct prof_iteration_why, PROF_ASCENDING(number))

static enum prof_status choose_explained(struct prof_iteration_list *list,
                                         const struct prof_iteration_choice *explain,
                                         struct prof_error *err)
{
    size_t count = 0, most = explain->number ? 1 : explain->slow;
    struct near_median *slow = malloc((list->count + 1) * sizeof *slow);
    list->whys = calloc(most + 1, sizeof *list->whys);
    if (!slow || !list->whys) {
        free(slow);
        return prof_out_of_memory(err);
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct prof_iteration_row *row = &list->rows[i];
        if (explain->number ? row->number == explain->number : row->slow)
            slow[count++] = (struct near_median){row, (double)row->duration_ns -
                                                          list->series[row->series].median_ns};
    }
    qsort(slow, count, sizeof *slow, by_extra);
    for (size_t i = 0; i < count && i < most; i++)
        list->whys[list->why_count++].number = slow[i].row->number;
    qsort(list->whys, list->why_count, sizeof *list->whys, by_iteration_number);
    free(slow);
    if (explain->number && !count)
        return prof_fail(err, PROF_NOTFOUND,
                         "there is no iteration %lld: they are numbered 1 to %zu",
                         (long long)explain->number, list->count);
    return PROF_OK;
}

static enum prof_status find_cause_lines(struct prof_explaining *w, struct prof_error *err)
{
    struct prof_iteration_list *list = w->list;
    struct prof_findings places = {.rows = calloc(list->why_count + 1, sizeof *places.rows),
                                   .count = list->why_count};
    if (!places.rows)
        return prof_out_of_memory(err);
    for (size_t i = 0; i < list->why_count; i++) {
        places.rows[i].place_count = list->whys[i].has_cause;
        places.rows[i].places[0] = list->whys[i].place;
    }
    enum prof_status status = prof_place_lines(w->facts->capture, &places, err);
    for (size_t i = 0; i < list->why_count; i++)
        list->whys[i].place = places.rows[i].places[0];
    free(places.rows);
    return status;
}

enum prof_status prof_iterations_explain(struct prof_facts *facts,
                                         const struct prof_iteration_choice *explain,
                                         struct prof_iteration_list *list, struct prof_error *err)
{
    struct prof_explaining w = {.facts = facts, .list = list, .parts = {.facts = facts}};
    enum prof_status status = choose_explained(list, explain, err);
    if (!status && !choose_dissected(&w))
        status = prof_out_of_memory(err);
    if (!status && list->why_count)
        status = prof_dissect(&w.parts, err);
    bool collective = false;
    for (size_t p = 0; p < w.parts.parts.count; p++)
        collective |= w.parts.parts.data[p].kind == PROF_PART_OF_COLLECTIVE;
    if (!status && collective)
        status = prof_rank_parts_read(facts, NULL, &w.ranks, err);
    for (size_t i = 0; !status && i < w.parts.list.count; i++) {
        const struct prof_dissected *one = &w.parts.list.data[i];
        for (size_t k = 0; k < list->why_count; k++)
            if (list->whys[k].number == one->row->number &&
                !explain_iteration(&w, &list->whys[k], one))
                status = prof_out_of_memory(err);
    }
    if (!status && list->why_count)
        status = find_cause_lines(&w, err);
    prof_dissection_free(&w.parts);
    prof_array_free(&w.ranks);
    return status;
}
