/* Offset and drift of two clocks by what happened at the same moment on both: a collective ends on
 * all its ranks within microseconds. Single pairs are off by much more (a rank is descheduled, a
 * kernel's last block is late), so everything here is a median: of blocks of pairs, of the slopes
 * between blocks (Theil and Sen), of what is left.
 *
 * Operations are paired in order. A rank lacks some of the other's: those of a smaller group, those
 * before its recording began, those in a pause of its recording. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "libprof/gpu/collective_name.h"
#include "libprof/store/merge/parts.h"

#define MIN_PAIRS 4u
#define MAX_SHIFT 64 /* operations that one side may lack at its begin */
#define BLOCKS 32u
#define MIN_IN_BLOCK 4u
#define MIN_SPAN_NS 1000000000
#define MAX_DRIFT 1e-3 /* clocks that are kept by a time service are within 500 ppm */
#define MAX_FITTED (1u << 14)
#define TRIED 256u /* operations that are paired from each begin that is tried */
#define PLACES 4u  /* of the source where a begin is tried */
#define RECENT 9u  /* pairs whose median is the offset for the next one */

static int64_t median(int64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, prof_ascending_int64);
    return values[count / 2];
}

static int64_t absolute_difference(int64_t a, int64_t b)
{
    int64_t d = prof_subtract(a, b);
    return d < 0 ? prof_subtract(0, d) : d;
}

/* ---- offset and drift of pairs --------------------------------------------------------------- */

struct pairs {
    int64_t *source, *reference;
    size_t count;
    int64_t *work; /* room for `count` numbers */
};

static int64_t difference(const struct pairs *p, size_t i)
{
    return prof_subtract(p->reference[i], p->source[i]);
}

static int64_t median_difference(const struct pairs *p, size_t from, size_t to)
{
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        p->work[n++] = difference(p, i);
    return median(p->work, n);
}

/* Slope of the medians of blocks, 0 when the pairs span too little. */
static double slope(const struct pairs *p)
{
    size_t blocks = p->count / MIN_IN_BLOCK < BLOCKS ? p->count / MIN_IN_BLOCK : BLOCKS, n = 0;
    double at[BLOCKS], value[BLOCKS], slopes[BLOCKS * (BLOCKS - 1) / 2];
    if (blocks < 4 || prof_subtract(p->source[p->count - 1], p->source[0]) < MIN_SPAN_NS)
        return 0;
    int64_t first = difference(p, 0);
    for (size_t b = 0; b < blocks; b++) {
        size_t from = p->count * b / blocks, to = p->count * (b + 1) / blocks;
        at[b] = (double)prof_subtract(p->source[(from + to) / 2], p->source[0]);
        value[b] = (double)prof_subtract(median_difference(p, from, to), first);
    }
    for (size_t a = 0; a < blocks; a++) {
        for (size_t b = a + 1; b < blocks; b++) {
            if (at[b] > at[a])
                slopes[n++] = (value[b] - value[a]) / (at[b] - at[a]);
        }
    }
    if (!n)
        return 0;
    qsort(slopes, n, sizeof *slopes, prof_ascending_double);
    double found = slopes[n / 2];
    return fabs(found) < MAX_DRIFT ? found : 0;
}

/* Every second, fourth ... pair when there are very many. */
static void thin_pairs(struct pairs *p)
{
    size_t step = p->count / MAX_FITTED + 1, kept = 0;
    for (size_t i = 0; i < p->count; i += step, kept++) {
        p->source[kept] = p->source[i];
        p->reference[kept] = p->reference[i];
    }
    p->count = kept;
}

static void fit_pairs(struct pairs *p, struct merge_fit *fit)
{
    fit->compared = p->count;
    thin_pairs(p);
    fit->middle_ns = p->source[p->count / 2];
    fit->drift = slope(p);
    for (size_t i = 0; i < p->count; i++) {
        double drifted = fit->drift * (double)prof_subtract(p->source[i], fit->middle_ns);
        p->work[i] = prof_subtract(difference(p, i), (int64_t)llrint(drifted));
    }
    fit->offset_ns = median(p->work, p->count);
    for (size_t i = 0; i < p->count; i++) {
        double drifted = fit->drift * (double)prof_subtract(p->source[i], fit->middle_ns);
        p->work[i] = absolute_difference(prof_subtract(difference(p, i), fit->offset_ns),
                                         (int64_t)llrint(drifted));
    }
    fit->error_ns = median(p->work, p->count);
}

/* ---- which operations are the same ----------------------------------------------------------- */

struct side {
    const int64_t *ends; /* rising */
    size_t count;
};

/* From a pair on, forward or backward. What the last pairs differed by is the clocks' offset for
 * the next one, so it follows their drift. */
struct walk {
    struct side source, reference;
    size_t at, its; /* the next pair; before the first operation: after the last one */
    int step;       /* 1 or -1 */
    int64_t offsets[RECENT], rests[RECENT];
    size_t seen;
    uint64_t source_only, reference_only; /* left out because the other side lacks them */
};

static struct walk start_walk(const struct side *source, const struct side *reference, size_t at,
                              size_t its, int64_t offset, int64_t rest)
{
    return (struct walk){*source, *reference, at, its, 1, {offset}, {rest}, 1, 0, 0};
}

static int64_t recent_median(const struct walk *w, const int64_t *values)
{
    int64_t sorted[RECENT];
    size_t n = w->seen < RECENT ? w->seen : RECENT;
    for (size_t i = 0; i < n; i++) {
        size_t to = i;
        for (; to && sorted[to - 1] > values[i]; to--)
            sorted[to] = sorted[to - 1];
        sorted[to] = values[i];
    }
    return sorted[n / 2];
}

/* Index of the end nearest to a time; the earlier one of two as near. */
static size_t nearest(const struct side *side, int64_t time)
{
    size_t low = 0, high = side->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (side->ends[mid] < time)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == side->count || (low && absolute_difference(side->ends[low - 1], time) <=
                                          absolute_difference(side->ends[low], time)))
        return low - 1;
    return low;
}

/* How far a pair is from the offset. */
static int64_t rest_of(const struct walk *w, size_t at, size_t its, int64_t offset)
{
    return absolute_difference(prof_subtract(w->reference.ends[its], w->source.ends[at]), offset);
}

/* Does one side lack operations here? Then leave out the other's: up to that which is the nearest
 * one of this, as this is of it. A late end has no such partner. */
static void pass_gap(struct walk *w, int64_t offset)
{
    int64_t own = rest_of(w, w->at, w->its, offset);
    size_t its = nearest(&w->reference, prof_add(w->source.ends[w->at], offset));
    size_t at = nearest(&w->source, prof_subtract(w->reference.ends[w->its], offset));
    int64_t by_its = (int64_t)(its - w->its) * w->step, by_at = (int64_t)(at - w->at) * w->step;
    if ((by_its <= 0 && by_at <= 0) || own / 8 <= recent_median(w, w->rests))
        return;
    if (by_its > 0 && rest_of(w, w->at, its, offset) < own / 4 &&
        nearest(&w->source, prof_subtract(w->reference.ends[its], offset)) == w->at) {
        w->its = its;
        w->reference_only += (uint64_t)by_its;
    } else if (by_at > 0 && rest_of(w, at, w->its, offset) < own / 4 &&
               nearest(&w->reference, prof_add(w->source.ends[at], offset)) == w->its) {
        w->at = at;
        w->source_only += (uint64_t)by_at;
    }
}

/* Pair up to `most` operations, with how far each is from the offset in `work`. */
static void walk_on(struct walk *w, struct pairs *p, size_t most)
{
    for (size_t n = 0; n < most && w->at < w->source.count && w->its < w->reference.count; n++) {
        int64_t offset = recent_median(w, w->offsets);
        pass_gap(w, offset);
        p->source[p->count] = w->source.ends[w->at];
        p->reference[p->count] = w->reference.ends[w->its];
        p->work[p->count] = rest_of(w, w->at, w->its, offset);
        w->offsets[w->seen % RECENT] = difference(p, p->count);
        w->rests[w->seen++ % RECENT] = p->work[p->count++];
        w->at += (size_t)w->step;
        w->its += (size_t)w->step;
    }
}

/* ---- where to begin -------------------------------------------------------------------------- */

struct trial {
    size_t at, its;
    int64_t error_ns, offset_ns;
    uint64_t gaps; /* operations that one side lacks, in TRIED ones */
};
#define MAX_TRIALS (PLACES * 2 * (2 * MAX_SHIFT + 1))

struct search {
    struct side source, reference;
    int64_t expected_ns; /* of the wall clocks */
    struct pairs *pairs;
    struct trial *trials;
    size_t count;
};

static size_t enough_pairs(const struct search *s)
{
    size_t fewer = s->source.count < s->reference.count ? s->source.count : s->reference.count;
    return fewer < 2 * MIN_PAIRS ? MIN_PAIRS : (fewer < TRIED ? fewer : TRIED) / 2;
}

static void try_begin(struct search *s, size_t at, size_t its)
{
    if (its >= s->reference.count)
        return;
    struct walk w = start_walk(&s->source, &s->reference, at, its,
                               prof_subtract(s->reference.ends[its], s->source.ends[at]), 0);
    struct pairs *p = s->pairs;
    p->count = 0;
    walk_on(&w, p, TRIED);
    if (p->count < enough_pairs(s))
        return;
    struct trial t = {.at = at, .its = its, .error_ns = median(p->work, p->count)};
    t.offset_ns = median_difference(p, 0, p->count < RECENT ? p->count : RECENT);
    /* As many on both sides: the n-th are the same unless that fits badly. */
    if (s->source.count == s->reference.count && at != its)
        t.error_ns = t.error_ns < INT64_MAX / 8 ? t.error_ns * 8 : INT64_MAX;
    t.gaps = (w.source_only + w.reference_only) * TRIED / p->count;
    s->trials[s->count++] = t;
}

static void try_begins(struct search *s)
{
    size_t last = s->source.count - enough_pairs(s);
    for (size_t place = 0; place < PLACES; place++) {
        size_t at = last * place / (PLACES - 1);
        size_t by_wall = s->expected_ns == PROF_MERGE_UNKNOWN
                             ? at
                             : nearest(&s->reference, prof_add(s->source.ends[at], s->expected_ns));
        for (size_t i = 0; i <= 2 * MAX_SHIFT; i++) {
            try_begin(s, at, at + i - MAX_SHIFT);
            if (by_wall != at)
                try_begin(s, at, by_wall + i - MAX_SHIFT);
        }
    }
}

/* Operations that come at even intervals fit almost as well one off: then the wall clock decides.
 */
static int64_t distance_from_expected(const struct search *s, const struct trial *t)
{
    if (s->source.count != s->reference.count && s->expected_ns != PROF_MERGE_UNKNOWN)
        return absolute_difference(t->offset_ns, s->expected_ns);
    return absolute_difference((int64_t)t->at, (int64_t)t->its);
}

/* The least error, in doubt the fewest gaps. NULL: nothing can be compared. */
static const struct trial *best_begin(const struct search *s)
{
    int64_t error = INT64_MAX;
    uint64_t gaps = UINT64_MAX;
    const struct trial *best = NULL;
    for (size_t i = 0; i < s->count; i++)
        error = prof_min(error, s->trials[i].error_ns);
    error = prof_add(error, error);
    for (size_t i = 0; i < s->count; i++)
        if (s->trials[i].error_ns <= error && s->trials[i].gaps < gaps)
            gaps = s->trials[i].gaps;
    for (size_t i = 0; i < s->count; i++) {
        const struct trial *t = &s->trials[i];
        if (t->error_ns <= error && t->gaps <= gaps + gaps / 4 + 1 &&
            (!best || distance_from_expected(s, t) < distance_from_expected(s, best)))
            best = t;
    }
    return best;
}

/* Of the whole, both ways from where to begin. */
static void pair_all(struct search *s, const struct trial *begin, struct merge_fit *fit)
{
    struct pairs *p = s->pairs;
    struct walk on = start_walk(&s->source, &s->reference, begin->at, begin->its, begin->offset_ns,
                                begin->error_ns),
                back = on;
    back.step = -1;
    back.at--;
    back.its--;
    p->count = 0;
    walk_on(&back, p, SIZE_MAX);
    for (size_t i = 0; i < p->count / 2; i++) {
        size_t other = p->count - 1 - i;
        int64_t source = p->source[i], reference = p->reference[i];
        p->source[i] = p->source[other];
        p->reference[i] = p->reference[other];
        p->source[other] = source;
        p->reference[other] = reference;
    }
    walk_on(&on, p, SIZE_MAX);
    fit->source_only = back.source_only + on.source_only;
    fit->reference_only = back.reference_only + on.reference_only;
}

bool merge_fit(const int64_t *source, size_t source_count, const int64_t *reference,
               size_t reference_count, int64_t expected_ns, struct merge_fit *fit)
{
    size_t fewer = source_count < reference_count ? source_count : reference_count;
    *fit = (struct merge_fit){0};
    if (fewer < MIN_PAIRS)
        return false;
    struct pairs pairs = {.source = malloc(3 * fewer * sizeof *pairs.source)};
    struct search s = {.source = {source, source_count},
                       .reference = {reference, reference_count},
                       .expected_ns = expected_ns,
                       .pairs = &pairs,
                       .trials = malloc(MAX_TRIALS * sizeof *s.trials)};
    const struct trial *begin = NULL;
    if (pairs.source && s.trials) {
        pairs.reference = pairs.source + fewer;
        pairs.work = pairs.reference + fewer;
        try_begins(&s);
        begin = best_begin(&s);
    }
    if (begin) {
        pair_all(&s, begin, fit);
        fit_pairs(&pairs, fit);
    }
    free(pairs.source);
    free(s.trials);
    return begin;
}

/* ---- ends of collectives --------------------------------------------------------------------- */

/* When collectives ended on one rank of a file: kernels of NCCL and its like, and NVTX ranges of
 * libraries whose calls return when all ranks have come. Between hosts these ends are the only
 * thing that is known to have happened at the same moment. */

#define MOST_READ (1u << 20)

struct reading {
    sqlite3 *db;
    int64_t start_mono_ns;
    struct prof_map process_of; /* stream.id or thread.id -> process.id */
    struct prof_map operation;  /* launch_config.id or domain and name -> operation */
    sqlite3_stmt *text;         /* of string ?1 */
    int64_t process;            /* the first that has any, 0 = none yet */
    struct merge_ends *ends;
    bool failed; /* out of memory */
};

static void add_process_end(struct reading *r, int64_t process, int kind, int64_t end)
{
    struct merge_ends_of *of = NULL;
    if (!r->process)
        r->process = process;
    if (process != r->process)
        return;
    for (size_t i = 0; i < r->ends->of.count && !of; i++)
        of = r->ends->of.data[i].kind == kind ? &r->ends->of.data[i] : NULL;
    if (!of) {
        of = prof_array_add(&r->ends->of);
        if (of)
            *of = (struct merge_ends_of){.kind = kind};
    }
    if (of && of->ends.count >= MOST_READ)
        return;
    int64_t *slot = of ? prof_array_add(&of->ends) : NULL;
    if (slot)
        *slot = r->start_mono_ns + end;
    r->failed |= !slot;
}

static sqlite3_stmt *prepare_ends_query(const struct reading *r, const char *sql)
{
    sqlite3_stmt *row = NULL;
    return sqlite3_prepare_v2(r->db, sql, -1, &row, NULL) == SQLITE_OK ? row : NULL;
}

static void read_map(struct reading *r, struct prof_map *map, const char *sql)
{
    PROF_FINALIZED sqlite3_stmt *row = prepare_ends_query(r, sql);
    prof_map_clear(map);
    while (row && !r->failed && sqlite3_step(row) == SQLITE_ROW)
        r->failed |= !prof_map_put(map, (uint64_t)sqlite3_column_int64(row, 0),
                                   (uint64_t)sqlite3_column_int64(row, 1));
}

static int64_t mapped(const struct prof_map *map, int64_t key)
{
    const uint64_t *value = prof_map_get(map, (uint64_t)key);
    return value ? (int64_t)*value : 0;
}

static bool read_configs(struct reading *r)
{
    PROF_FINALIZED sqlite3_stmt *row =
        prepare_ends_query(r, "SELECT c.id, s.value FROM launch_config c JOIN "
                              "string s ON s.id = coalesce(c.demangled, c.name)");
    prof_map_clear(&r->operation);
    while (row && !r->failed && sqlite3_step(row) == SQLITE_ROW) {
        enum prof_collective operation =
            prof_collective_kernel((const char *)sqlite3_column_text(row, 1));
        if (prof_collective_joins_all(operation))
            r->failed |= !prof_map_put(&r->operation, (uint64_t)sqlite3_column_int64(row, 0),
                                       (uint64_t)operation);
    }
    return r->operation.count > 0;
}

static void read_kernel_ends(struct reading *r)
{
    if (!read_configs(r))
        return;
    read_map(r, &r->process_of, "SELECT id, process FROM stream");
    PROF_FINALIZED sqlite3_stmt *row =
        prepare_ends_query(r, "SELECT start + duration, config, stream FROM kernel "
                              "WHERE start NOT NULL AND duration NOT NULL");
    while (row && !r->failed && sqlite3_step(row) == SQLITE_ROW) {
        int64_t operation = mapped(&r->operation, sqlite3_column_int64(row, 1));
        if (operation)
            add_process_end(r, mapped(&r->process_of, sqlite3_column_int64(row, 2)),
                            (int)operation * 2, sqlite3_column_int64(row, 0));
    }
}

/* Copied: the second text is read by the same statement. NULL = there is none. */
static char *read_text_copy(const struct reading *r, int64_t id)
{
    char *copy = NULL;
    sqlite3_bind_int64(r->text, 1, id);
    if (sqlite3_step(r->text) == SQLITE_ROW && sqlite3_column_text(r->text, 0))
        copy = strdup((const char *)sqlite3_column_text(r->text, 0));
    sqlite3_reset(r->text);
    return copy;
}

static enum prof_collective operation_of_range(struct reading *r, int64_t domain, int64_t name)
{
    uint64_t key = (uint64_t)domain << 32 ^ (uint64_t)name;
    const uint64_t *known = prof_map_get(&r->operation, key);
    if (known)
        return (enum prof_collective) * known;
    char *domain_text = domain ? read_text_copy(r, domain) : NULL,
         *name_text = read_text_copy(r, name);
    enum prof_collective operation = prof_collective_range(domain_text, name_text);
    free(domain_text);
    free(name_text);
    r->failed |= !prof_map_put(&r->operation, key, (uint64_t)operation);
    return operation;
}

static void read_range_ends(struct reading *r)
{
    r->text = prepare_ends_query(r, "SELECT value FROM string WHERE id = ?1");
    sqlite3_stmt *row = prepare_ends_query(
        r, "SELECT start + duration, domain, name, thread FROM range WHERE duration NOT NULL");
    prof_map_clear(&r->operation);
    read_map(r, &r->process_of, "SELECT id, process FROM thread");
    while (r->text && row && !r->failed && sqlite3_step(row) == SQLITE_ROW) {
        enum prof_collective operation =
            operation_of_range(r, sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2));
        if (prof_collective_joins_all(operation))
            add_process_end(r, mapped(&r->process_of, sqlite3_column_int64(row, 3)),
                            (int)operation * 2 + 1, sqlite3_column_int64(row, 0));
    }
    sqlite3_finalize(row);
    sqlite3_finalize(r->text);
}

bool merge_ends_read(const struct merge_input *input, struct merge_ends *ends)
{
    struct reading r = {.db = input->db,
                        .start_mono_ns =
                            input->start_mono_ns == PROF_MERGE_UNKNOWN ? 0 : input->start_mono_ns,
                        .ends = ends};
    *ends = (struct merge_ends){0};
    read_kernel_ends(&r);
    read_range_ends(&r);
    for (size_t i = 0; i < ends->of.count; i++)
        qsort(ends->of.data[i].ends.data, ends->of.data[i].ends.count, sizeof(int64_t),
              prof_ascending_int64);
    prof_map_free(&r.process_of);
    prof_map_free(&r.operation);
    return !r.failed;
}

void merge_ends_free(struct merge_ends *ends)
{
    for (size_t i = 0; i < ends->of.count; i++)
        prof_array_free(&ends->of.data[i].ends);
    prof_array_free(&ends->of);
}
