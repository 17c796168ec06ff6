/* Why an iteration is slow: its parts against those of the iterations that take the usual time, and
 * of the parts that make it slow the one that deviates first in time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/iterations/iterations.h"
#include "libprof/analysis/ranks/ranks.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/analysis/rules/place_lines.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"

/* So many iterations, those nearest the median, say what is usual in each part. */
#define COMPARED 48

static const struct prof_words kinds[] = {PROF_ITERATION_PARTS(PROF_WORDS)};

const char *prof_part_kind_name(enum prof_part_kind kind)
{
    return kinds[kind].name;
}

const char *prof_part_kind_text(enum prof_part_kind kind)
{
    return kinds[kind].text;
}

struct work {
    struct prof_facts *facts;
    struct prof_iteration_list *list;
    struct prof_dissection parts;
    struct prof_rank_parts ranks;
};

/* ---- which are compared ---------------------------------------------------------------------- */

static const struct prof_iteration_series *series_of_row(const struct work *w,
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

static bool add_dissected(struct work *w, const struct prof_iteration_row *row, bool with_pieces)
{
    const struct prof_phase *phase = &w->facts->phases.list.data[series_of_row(w, row)->phase];
    return prof_array_push(&w->parts.list, (struct prof_dissected){.row = row,
                                                                   .group = phase->iterations.group,
                                                                   .with_pieces = with_pieces});
}

static bool is_explained(const struct work *w, const struct prof_iteration_row *row)
{
    for (size_t i = 0; i < w->list->why_count; i++)
        if (w->list->whys[i].number == row->number)
            return true;
    return false;
}

static bool has_explained(const struct work *w, size_t series)
{
    for (size_t i = 0; i < w->list->why_count; i++)
        if (w->list->rows[w->list->whys[i].number - 1].series == series)
            return true;
    return false;
}

/* Those that are explained, and of their series those nearest the median, one more than are
 * compared: an iteration is not compared with itself. */
static bool choose_dissected(struct work *w)
{
    const struct prof_iteration_list *list = w->list;
    struct near_median *near = malloc((list->count + 1) * sizeof *near);
    bool ok = near != NULL;
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
            if (!row->warm_up)
                near[count++] = (struct near_median){
                    row, fabs((double)row->duration_ns - list->series[s].median_ns)};
        }
        qsort(near, count, sizeof *near, by_distance_of_median);
        for (size_t i = 0, model = 0; ok && i < count && i <= COMPARED; i++) {
            if (is_explained(w, near[i].row))
                continue;
            ok = add_dissected(w, near[i].row, !model++);
        }
    }
    free(near);
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

struct usual {
    size_t others;
    int64_t *sums, *most; /* by part */
    double *counts, *work;
};

static bool sum_usual(const struct work *w, const struct prof_iteration_row *row, struct usual *u)
{
    size_t parts = w->parts.parts.count;
    *u = (struct usual){.sums = calloc(parts + 1, sizeof *u->sums),
                        .most = calloc(parts + 1, sizeof *u->most),
                        .counts = calloc(parts + 1, sizeof *u->counts),
                        .work = calloc(parts + 1, sizeof *u->work)};
    if (!u->sums || !u->most || !u->counts || !u->work)
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
            u->work[p] += (double)cell->work_ns;
        }
    }
    for (size_t p = 0; u->others && p < parts; p++) {
        u->counts[p] /= (double)u->others;
        u->work[p] /= (double)u->others;
    }
    return true;
}

static void free_usual(struct usual *u)
{
    free(u->sums);
    free(u->most);
    free(u->counts);
    free(u->work);
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

static bool part_may_be_cause(const struct prof_iteration_part *part, const struct usual *u,
                              size_t p, int64_t more, int64_t largest)
{
    return (double)part->more_ns >= OF_ALL * (double)more && part->ns > u->most[p] &&
           (double)part->more_ns >= OF_LARGEST * (double)largest;
}

static struct candidate first_cause(const struct work *w, const struct prof_dissected *one,
                                    const struct prof_dissected *model,
                                    const struct prof_iteration_part *parts, const struct usual *u,
                                    int64_t more)
{
    struct candidate first = {.piece = NULL};
    size_t count = w->parts.parts.count;
    int64_t largest = 0;
    bool direct = false, computes = false;
    for (size_t p = 0; p < count; p++)
        if (part_may_be_cause(&parts[p], u, p, more, 0) && parts[p].more_ns > largest)
            largest = parts[p].more_ns;
    for (size_t p = 0; p < count; p++)
        computes |=
            parts[p].kind == PROF_PART_OF_HOST && part_may_be_cause(&parts[p], u, p, more, largest);
    for (size_t p = 0; p < count; p++) {
        const struct prof_iteration_part *part = &parts[p];
        /* A thread that computes longer is preempted more often, too. */
        bool follows =
            is_consequence(part->kind) || (computes && part->kind == PROF_PART_OF_PREEMPTED);
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

/* ---- words ----------------------------------------------------------------------------------- */

#define SAY(why, ...) prof_append((why)->seen, sizeof(why)->seen, __VA_ARGS__)

/* The device's clock is read ten times a second: most iterations have no sample of their own. Then
 * the last one before and the first one after, where they are near, say what it may have been. */
#define CLOCK_NEAR_NS INT64_C(200000000)

struct clock_means {
    const struct work *w;
    int64_t device, begin, end;
    double own, others;
    int64_t own_count, other_count;
    int64_t before, after, before_mhz, after_mhz; /* distances; of the nearest samples outside */
};

static bool add_clock_mean(void *user, sqlite3_stmt *row)
{
    struct clock_means *m = user;
    const struct prof_device *device = prof_device(m->w->facts->capture, prof_column_id(row, 0));
    int64_t start = prof_column_int(row, 1), mhz = prof_column_int(row, 2);
    if (!device || device->physical != m->device || mhz <= 0 || mhz > 1000000)
        return true;
    if (start >= m->begin && start < m->end) {
        m->own += (double)mhz;
        m->own_count++;
        return true;
    }
    m->others += (double)mhz;
    m->other_count++;
    bool later = start >= m->end;
    int64_t distance = later ? prof_subtract(start, m->end) : prof_subtract(m->begin, start);
    int64_t *nearest = later ? &m->after : &m->before;
    if (distance < *nearest) {
        *nearest = distance;
        *(later ? &m->after_mhz : &m->before_mhz) = mhz;
    }
    return true;
}

#define LOWER_CLOCK 0.95

/* Kernels that are slower where the clock is lower. */
static bool say_clock(const struct work *w, const struct prof_dissected *one,
                      struct prof_iteration_why *why)
{
    struct clock_means m = {.w = w,
                            .device = one->row->device,
                            .begin = one->row->start_ns,
                            .end = prof_add(one->row->start_ns, one->row->duration_ns),
                            .before = CLOCK_NEAR_NS,
                            .after = CLOCK_NEAR_NS};
    if (prof_scan(w->facts->capture, "SELECT device, start, sm_mhz FROM device_clock",
                  add_clock_mean, &m, NULL) ||
        m.other_count < 2)
        return false;
    bool after = m.after_mhz && (!m.before_mhz || m.after_mhz < m.before_mhz);
    double near = (double)(after ? m.after_mhz : m.before_mhz);
    double own = m.own_count ? m.own / (double)m.own_count : near;
    double others = m.own_count ? m.others / (double)m.other_count
                                : (m.others - near) / (double)(m.other_count - 1);
    if (own <= 0 || own >= LOWER_CLOCK * others)
        return false;
    SAY(why, "; the device ran at %.0f MHz%s%s%s, usually at %.0f MHz", own,
        m.own_count ? "" : ", read ",
        m.own_count ? "" : prof_duration_ns(after ? m.after : m.before).text,
        m.own_count ? ""
        : after     ? " after it"
                    : " before it",
        others);
    return true;
}

/* Work of another stream at the same time, that the others do not have. */
static void say_beside(const struct work *w, const struct prof_dissected *one, size_t cause,
                       const struct usual *u, struct prof_iteration_why *why)
{
    double most = 0;
    size_t other = SIZE_MAX;
    for (size_t p = 0; p < one->cells.count; p++) {
        const struct prof_part_key *key = &w->parts.parts.data[p];
        double more = (double)one->cells.data[p].work_ns - u->work[p];
        bool device = key->kind <= PROF_PART_OF_MEMSET;
        if (p == cause || !device || more <= most ||
            (double)one->cells.data[p].count <= u->counts[p])
            continue;
        most = more;
        other = p;
    }
    if (other == SIZE_MAX)
        return;
    const struct prof_part_key *key = &w->parts.parts.data[other];
    SAY(why, "; beside it ran %s %s, which usually does not", prof_part_kind_text(key->kind),
        key->name ? key->name : "");
}

/* The rank whose part in the operation, or where it was not matched in one of the same name, began
 * last while this one waited, if that is most of what the collective takes more. */
static void say_late_rank(const struct work *w, const struct prof_dissected *one,
                          const struct prof_part_piece *piece, int64_t more,
                          struct prof_iteration_why *why)
{
    const struct prof_facts *f = w->facts;
    const struct prof_shape *shape = &f->shapes.data[piece->shape];
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    int64_t latest = piece->begin;
    const struct prof_process *late = NULL;
    uint32_t joined = prof_rank_operation(&w->ranks, why->place.start_ns, why->place.stream);
    bool others = false;
    prof_facts_seek(f, &walk, one->row->start_ns);
    while ((op = prof_facts_next(f, &walk, &kind)) && op->start < piece->end) {
        const struct prof_shape *its = &f->shapes.data[op->shape];
        const struct prof_thread *thread = prof_thread(f->capture, op->thread);
        if (its->device == shape->device || !its->collective ||
            prof_add(op->start, op->duration) <= piece->begin ||
            (joined ? prof_rank_operation(&w->ranks, op->start, op->stream) != joined
                    : strcmp(prof_shape_name(its), prof_shape_name(shape)) != 0))
            continue;
        others = true;
        if (op->start <= latest)
            continue;
        latest = op->start;
        late = thread ? prof_process(f->capture, thread->process) : NULL;
    }
    if (others && latest - piece->begin < more / 2)
        SAY(why, "; the last rank came after %s: the collective itself took longer",
            prof_duration_ns(latest - piece->begin).text);
    else if (late && late->rank != PROF_UNKNOWN)
        SAY(why, "; it waited for rank %lld, which came %s later", (long long)late->rank,
            prof_duration_ns(latest - piece->begin).text);
    else
        SAY(why, "; a collective that takes longer waits for a late rank");
}

static void say_kernels(const struct work *w, const struct prof_dissected *one, size_t p,
                        const struct usual *u, const struct prof_part_piece *piece,
                        struct prof_iteration_why *why)
{
    struct prof_part_cell cell = prof_part_cell(one, p);
    const struct prof_part_key *key = &w->parts.parts.data[p];
    double usual = u->counts[p] > 0 ? u->work[p] / u->counts[p] : 0;
    bool more = (double)cell.count > u->counts[p] + 0.5;
    bool longer = cell.count > 0 && (double)cell.work_ns / (double)cell.count > 1.2 * usual;
    SAY(why, "%s%s%s: ", prof_part_kind_text(key->kind), key->name ? " " : "",
        key->name ? key->name : "");
    if (more && u->counts[p] <= 0)
        SAY(why, "%s of %s each, usually none", prof_count(cell.count).text,
            prof_duration_ns(cell.work_ns / cell.count).text);
    else if (more && !longer)
        SAY(why, "%s times, usually %.3g", prof_count(cell.count).text, u->counts[p]);
    else if (more)
        SAY(why, "%s times and %s each, usually %.3g times and %s", prof_count(cell.count).text,
            prof_duration_ns(cell.work_ns / cell.count).text, u->counts[p],
            prof_duration_ns((int64_t)usual).text);
    else
        SAY(why, "%s each, usually %s",
            prof_duration_ns(cell.count ? cell.work_ns / cell.count : 0).text,
            prof_duration_ns((int64_t)usual).text);
    if (key->kind == PROF_PART_OF_COLLECTIVE)
        say_late_rank(w, one, piece, why->parts[p].more_ns, why);
    else if (key->kind == PROF_PART_OF_KERNEL && !more && !say_clock(w, one, why))
        say_beside(w, one, p, u, why);
}

#define SEARCHED_PIECES 64

/* Where the host was in the first piece; if no sample lies in that, in the next one that has some.
 */
static bool place_of_part(const struct work *w, const struct prof_dissected *one,
                          const struct prof_part_piece *piece, char *out, size_t size)
{
    const struct prof_part_piece *end = one->pieces.data + one->pieces.count;
    int searched = 0;
    for (const struct prof_part_piece *next = piece; next < end && searched < SEARCHED_PIECES;
         next++)
        if (next->part == piece->part && ++searched &&
            prof_overlays_place(w->parts.overlays, w->facts->capture, next->thread, next->begin,
                                next->end, out, size))
            return true;
    return false;
}

static void say_cause(const struct work *w, const struct prof_dissected *one,
                      struct prof_iteration_why *why, size_t p, const struct usual *u,
                      const struct prof_part_piece *piece)
{
    const struct prof_part_key *key = &w->parts.parts.data[p];
    struct prof_part_cell cell = prof_part_cell(one, p);
    if (key->kind <= PROF_PART_OF_MEMSET) {
        say_kernels(w, one, p, u, piece, why);
        return;
    }
    SAY(why, "%s%s%s", prof_part_kind_text(key->kind),
        !key->name                       ? ""
        : key->kind == PROF_PART_OF_HOST ? " in range "
                                         : ": ",
        key->name ? key->name : "");
    if (key->counts && (double)cell.count > u->counts[p] + 0.5)
        SAY(why, ", called %s times, usually %.3g", prof_count(cell.count).text, u->counts[p]);
    else if (key->counts && piece->call)
        SAY(why, ", in one call of %s", prof_duration_ns(why->place.duration_ns).text);
    if (!key->name && piece->shape != PROF_NO_SHAPE)
        SAY(why, " before %s", prof_shape_name(&w->facts->shapes.data[piece->shape]));
    char place[200];
    if (place_of_part(w, one, piece, place, sizeof place))
        SAY(why, ", in %s", place);
}

/* Where the call, or the operation, of a piece is: what lines are found by. */
static void place_piece(const struct work *w, const struct prof_dissected *one,
                        const struct prof_part_piece *piece, enum prof_part_kind kind,
                        struct prof_place *place)
{
    const struct prof_facts *f = w->facts;
    *place = (struct prof_place){.stream = piece->stream,
                                 .thread = piece->thread,
                                 .start_ns = piece->begin,
                                 .duration_ns = piece->end - piece->begin};
    if (kind <= PROF_PART_OF_MEMSET && piece->shape != PROF_NO_SHAPE) {
        struct prof_op_walk walk = {0};
        const struct prof_op *op;
        enum prof_op_kind op_kind;
        place->name = prof_shape_name(&f->shapes.data[piece->shape]);
        prof_facts_seek(f, &walk, one->row->start_ns);
        while ((op = prof_facts_next(f, &walk, &op_kind)) && op->start < piece->end) {
            if (op->shape != piece->shape || op->start + op->duration <= piece->begin)
                continue;
            place->start_ns = op->start;
            place->duration_ns = op->duration;
            place->stream = op->stream;
            place->thread = op->thread;
        }
    } else if (piece->call) {
        size_t count, low;
        const struct prof_call *calls = prof_facts_calls(f, piece->thread, &count);
        place->name = prof_string(f->capture, piece->call, NULL);
        place->stream = 0;
        PROF_FIND_FIRST(low, at, count, calls[at].start >= piece->end);
        if (low && calls[low - 1].name == piece->call) {
            place->start_ns = calls[low - 1].start;
            place->duration_ns = calls[low - 1].duration;
        }
    }
    prof_range_path_text(f, (uint32_t)place->thread, piece->begin, place->path, sizeof place->path);
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

static void judge_iteration(struct work *w, struct prof_iteration_why *why,
                            const struct prof_dissected *one, const struct usual *u)
{
    const struct prof_iteration_series *series = series_of_row(w, one->row);
    const struct prof_dissected *model = NULL;
    int64_t more = why->duration_ns - why->usual_ns;
    for (size_t i = 0; i < w->parts.list.count; i++)
        if (w->parts.list.data[i].with_pieces && is_compared(&w->parts.list.data[i], one->row))
            model = &w->parts.list.data[i];
    if (series->limit_ns == PROF_UNKNOWN || !u->others) {
        SAY(why, u->others ? "Too few other iterations to say whether it is slow"
                           : "There is no other iteration to compare it with");
        return;
    }
    if (why->duration_ns <= series->limit_ns) {
        SAY(why, "Not slow: half of the iterations take %s to %s, and slow ones more than %s",
            prof_duration_ns(series->low_ns).text, prof_duration_ns(series->high_ns).text,
            prof_duration_ns(series->limit_ns).text);
        return;
    }
    struct candidate first = first_cause(w, one, model, why->parts, u, more);
    if (!first.piece) {
        SAY(why, "No single part stands out");
        return;
    }
    why->has_cause = true;
    why->cause = first.part;
    place_piece(w, one, first.piece, why->parts[first.part].kind, &why->place);
    say_cause(w, one, why, first.part, u, first.piece);
}

static bool explain_iteration(struct work *w, struct prof_iteration_why *why,
                              const struct prof_dissected *one)
{
    size_t count = w->parts.parts.count;
    struct usual u;
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

static enum prof_status find_cause_lines(struct work *w, struct prof_error *err)
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
    struct work w = {.facts = facts, .list = list, .parts = {.facts = facts}};
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
