/* Brings the times of all files to one clock: that of the kernel on which the first file was
 * recorded.
 *
 * Files of one boot have the same CLOCK_MONOTONIC: nothing is estimated. Between boots there is
 * first the wall clock, a pair of readings in every file, as good as the hosts' time service (and
 * hours off where there is none); then the ends of collectives, which beat it by orders of
 * magnitude. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "libprof/store/merge/parts.h"

#define MOST_FILES_LOOKED_AT 4 /* of a host, until one has collectives */
#define MOST_ERROR_NS 10000000 /* what fits no better were not the same operations */

struct group {
    size_t first;    /* index of a file */
    int64_t wall_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC, PROF_MERGE_UNKNOWN */
    enum prof_merge_clock clock;
    struct merge_fit fit; /* to the reference's clock */
    struct merge_ends ends;
};
struct groups {
    PROF_ARRAY(struct group) list;
    size_t reference;
    struct prof_names by_boot;
};

static int64_t zero_of(const struct merge_input *in)
{
    return in->start_mono_ns == PROF_MERGE_UNKNOWN ? 0 : in->start_mono_ns;
}

static int64_t wall_of(const struct merge_input *in)
{
    return in->start_realtime_ns == PROF_MERGE_UNKNOWN
               ? PROF_MERGE_UNKNOWN
               : prof_subtract(in->start_realtime_ns, zero_of(in));
}

static bool add_clock_group(struct groups *groups, struct merge *m, size_t at)
{
    struct merge_input *in = &m->inputs[at];
    const char *boot = in->merged ? in->merged_boot_id : in->boot_id;
    bool shared = boot && in->start_mono_ns != PROF_MERGE_UNKNOWN;
    uint32_t *known = shared ? prof_names_get(&groups->by_boot, boot, strlen(boot)) : NULL;
    if (known) {
        in->group = (int)*known;
        return true;
    }
    struct group *g = prof_array_add(&groups->list);
    if (!g)
        return false;
    *g = (struct group){.first = at, .wall_ns = wall_of(in)};
    in->group = (int)groups->list.count - 1;
    return !shared || prof_names_put(&groups->by_boot, boot, strlen(boot), (uint32_t)in->group);
}

/* Of the group's first files the first that has collectives. */
static enum prof_status read_ends(struct merge *m, struct groups *groups, int number)
{
    struct group *g = &groups->list.data[number];
    int looked = 0;
    for (size_t i = g->first; i < m->count && looked < MOST_FILES_LOOKED_AT && !g->ends.of.count;
         i++) {
        struct merge_input *in = &m->inputs[i];
        if (in->gone || in->group != number)
            continue;
        looked++;
        if (merge_input_open(in, NULL))
            continue; /* reported when its rows are read */
        bool ok = merge_ends_read(in, &g->ends);
        merge_input_close(in);
        if (!ok)
            return prof_out_of_memory(m->err);
        PROF_TRY(merge_look_up(m));
    }
    return PROF_OK;
}

/* Operations of every kind are compared; those of a communicator within one host fit badly. */
static bool fit_ends(struct group *g, const struct group *reference, int64_t expected_ns)
{
    bool any = false;
    for (size_t i = 0; i < g->ends.of.count; i++) {
        const struct merge_ends_of *mine = &g->ends.of.data[i];
        for (size_t j = 0; j < reference->ends.of.count; j++) {
            const struct merge_ends_of *its = &reference->ends.of.data[j];
            struct merge_fit fit;
            if (mine->kind != its->kind ||
                !merge_fit(mine->ends.data, mine->ends.count, its->ends.data, its->ends.count,
                           expected_ns, &fit) ||
                fit.error_ns > MOST_ERROR_NS)
                continue;
            if (!any || fit.error_ns < g->fit.error_ns)
                g->fit = fit;
            any = true;
        }
    }
    return any;
}

static void align(struct merge *m, struct group *g, const struct group *reference)
{
    int64_t expected = g->wall_ns == PROF_MERGE_UNKNOWN || reference->wall_ns == PROF_MERGE_UNKNOWN
                           ? PROF_MERGE_UNKNOWN
                           : prof_subtract(g->wall_ns, reference->wall_ns);
    if (fit_ends(g, reference, expected)) {
        g->clock = PROF_MERGE_COLLECTIVES;
        return;
    }
    g->fit = (struct merge_fit){.error_ns = PROF_MERGE_UNKNOWN};
    g->clock = expected == PROF_MERGE_UNKNOWN ? PROF_MERGE_NONE : PROF_MERGE_REALTIME;
    g->fit.offset_ns =
        expected != PROF_MERGE_UNKNOWN
            ? expected
            : prof_subtract(zero_of(&m->inputs[reference->first]), zero_of(&m->inputs[g->first]));
}

/* A reading of the input's CLOCK_MONOTONIC on the reference's. */
static int64_t on_reference(const struct group *g, int64_t mono_ns)
{
    double drifted = g->fit.drift * (double)prof_subtract(mono_ns, g->fit.middle_ns);
    return prof_add(prof_add(mono_ns, g->fit.offset_ns), (int64_t)llrint(drifted));
}

static void set_clock(struct merge *m, struct merge_input *in, const struct group *g)
{
    int64_t zero = zero_of(in);
    in->shift_ns = prof_subtract(prof_add(zero, g->fit.offset_ns), m->zero_mono_ns);
    in->drift = g->fit.drift;
    in->middle_ns = prof_subtract(g->fit.middle_ns, zero);
    in->part->clock = g->clock;
    in->part->offset_ns = prof_subtract(on_reference(g, zero), zero);
    in->part->drift = g->fit.drift * 1e9;
    in->part->error_ns = g->clock == PROF_MERGE_SAME ? 0 : g->fit.error_ns;
    in->part->compared = g->fit.compared;
}

static void find_zero(struct merge *m, const struct groups *groups)
{
    m->zero_mono_ns = INT64_MAX;
    for (size_t i = 0; i < m->count; i++) {
        const struct merge_input *in = &m->inputs[i];
        if (in->gone)
            continue;
        int64_t begin = on_reference(&groups->list.data[in->group], zero_of(in));
        m->zero_mono_ns = begin < m->zero_mono_ns ? begin : m->zero_mono_ns;
    }
    int64_t wall = groups->list.data[groups->reference].wall_ns;
    m->zero_realtime_ns =
        wall == PROF_MERGE_UNKNOWN ? PROF_MERGE_UNKNOWN : prof_add(m->zero_mono_ns, wall);
}

static void find_end(struct merge *m)
{
    m->duration_ns = PROF_MERGE_UNKNOWN;
    for (size_t i = 0; i < m->count; i++) {
        const struct merge_input *in = &m->inputs[i];
        if (in->gone || in->duration_ns == PROF_MERGE_UNKNOWN)
            continue;
        int64_t end = merge_time(in, in->duration_ns);
        m->duration_ns = end > m->duration_ns ? end : m->duration_ns;
    }
}

/* One sentence for all hosts of which only the wall clock is known. */
static bool note_assumed_clocks(struct merge *m, const struct groups *groups)
{
    size_t by_wall = 0, by_nothing = 0, example = SIZE_MAX;
    for (size_t i = 0; i < groups->list.count; i++) {
        const struct group *g = &groups->list.data[i];
        by_wall += g->clock == PROF_MERGE_REALTIME;
        by_nothing += g->clock == PROF_MERGE_NONE;
        if (g->clock != PROF_MERGE_SAME && g->clock != PROF_MERGE_COLLECTIVES &&
            example == SIZE_MAX)
            example = g->first;
    }
    const char *path = example == SIZE_MAX ? "" : m->inputs[example].path;
    return (!by_wall || merge_note(m, PROF_HEALTH_clock_assumed,
                                   "times of %zu of %zu hosts (as in %s) are only as near to the "
                                   "others' as their wall clocks: no collectives to compare",
                                   by_wall, groups->list.count, path)) &&
           (!by_nothing ||
            merge_note(m, PROF_HEALTH_clock_unknown,
                       "%zu of %zu files (as %s) have no wall clock: they begin with the first one",
                       by_nothing, groups->list.count, path));
}

static enum prof_status make_groups(struct merge *m, struct groups *groups)
{
    for (size_t i = 0; i < m->count; i++) {
        if (!m->inputs[i].gone && !add_clock_group(groups, m, i))
            return prof_out_of_memory(m->err);
    }
    return PROF_OK;
}

/* Hosts before the reference have been looked at: they have no collectives. */
static enum prof_status find_reference(struct merge *m, struct groups *groups)
{
    size_t count = groups->list.count;
    enum prof_status status = PROF_OK;
    for (size_t i = 0; count > 1 && i < count && !status; i++) {
        status = read_ends(m, groups, (int)i);
        if (groups->list.data[i].ends.of.count) {
            groups->reference = i;
            return status;
        }
    }
    return status;
}

static enum prof_status align_all(struct merge *m, struct groups *groups)
{
    const struct group *reference = &groups->list.data[groups->reference];
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < groups->list.count; i++) {
        struct group *g = &groups->list.data[i];
        if (g == reference)
            continue;
        if (i > groups->reference && reference->ends.of.count)
            status = read_ends(m, groups, (int)i);
        if (!status)
            align(m, g, reference);
        merge_ends_free(&g->ends);
    }
    return status;
}

enum prof_status merge_clocks(struct merge *m)
{
    struct groups groups = {0};
    enum prof_status status = make_groups(m, &groups);
    status = status ?: find_reference(m, &groups);
    status = status ?: align_all(m, &groups);
    if (!status) {
        find_zero(m, &groups);
        for (size_t i = 0; i < m->count; i++) {
            if (!m->inputs[i].gone)
                set_clock(m, &m->inputs[i], &groups.list.data[m->inputs[i].group]);
        }
        find_end(m);
        if (!note_assumed_clocks(m, &groups))
            status = prof_out_of_memory(m->err);
    }
    for (size_t i = 0; i < groups.list.count; i++)
        merge_ends_free(&groups.list.data[i].ends);
    prof_array_free(&groups.list);
    prof_names_free(&groups.by_boot);
    return status;
}

/* ---- fits ------------------------------------------------------------------------------------ */

/* Two clocks by what happened at the same moment on both: a collective ends on all its ranks within
 * microseconds. Single pairs are off by much more (a rank is descheduled, a kernel's last block is
 * late), so everything here is a median: of blocks of pairs, of the slopes between blocks (Theil
 * and Sen), of what is left. */

#define LEAST_PAIRS 4u
#define MOST_SHIFT 64 /* operations that one side may lack */
#define BLOCKS 32u
#define LEAST_IN_BLOCK 4u
#define LEAST_SPAN_NS 1000000000
#define MOST_DRIFT 1e-3 /* clocks that are kept by a time service are within 500 ppm */
#define TRIED 256u      /* pairs looked at while the pairing is sought */

static int64_t median(int64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, prof_ascending_int64);
    return values[count / 2];
}

struct pairs {
    const int64_t *source, *reference;
    size_t count;
    int64_t *work; /* room for `count` numbers */
};

static int64_t difference(const struct pairs *p, size_t i)
{
    return prof_subtract(p->reference[i], p->source[i]);
}

/* Median of the differences of pairs `from` to `to`. */
static int64_t median_difference(const struct pairs *p, size_t from, size_t to, size_t step)
{
    size_t n = 0;
    for (size_t i = from; i < to; i += step)
        p->work[n++] = difference(p, i);
    return median(p->work, n);
}

static int64_t left_over(const struct pairs *p, const struct merge_fit *fit, size_t step)
{
    size_t n = 0;
    for (size_t i = 0; i < p->count; i += step) {
        double drifted = fit->drift * (double)prof_subtract(p->source[i], fit->middle_ns);
        int64_t rest = prof_subtract(prof_subtract(difference(p, i), fit->offset_ns),
                                     (int64_t)llrint(drifted));
        p->work[n++] = rest < 0 ? -rest : rest;
    }
    return median(p->work, n);
}

/* Slope of the medians of blocks, 0 when the pairs span too little. */
static double slope(const struct pairs *p)
{
    size_t blocks = p->count / LEAST_IN_BLOCK < BLOCKS ? p->count / LEAST_IN_BLOCK : BLOCKS, n = 0;
    double at[BLOCKS], value[BLOCKS], slopes[BLOCKS * (BLOCKS - 1) / 2];
    if (blocks < 4 || prof_subtract(p->source[p->count - 1], p->source[0]) < LEAST_SPAN_NS)
        return 0;
    int64_t first = difference(p, 0);
    for (size_t b = 0; b < blocks; b++) {
        size_t from = p->count * b / blocks, to = p->count * (b + 1) / blocks;
        at[b] = (double)prof_subtract(p->source[(from + to) / 2], p->source[0]);
        value[b] = (double)prof_subtract(median_difference(p, from, to, 1), first);
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
    return fabs(found) < MOST_DRIFT ? found : 0;
}

static void fit_pairs(const struct pairs *p, struct merge_fit *fit)
{
    *fit = (struct merge_fit){.compared = p->count, .middle_ns = p->source[p->count / 2]};
    fit->drift = slope(p);
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++) {
        double drifted = fit->drift * (double)prof_subtract(p->source[i], fit->middle_ns);
        p->work[n++] = prof_subtract(difference(p, i), (int64_t)llrint(drifted));
    }
    fit->offset_ns = median(p->work, n);
    fit->error_ns = left_over(p, fit, 1);
}

/* Pair source[i] with reference[i + shift]. */
static bool paired(const int64_t *source, size_t sources, const int64_t *reference,
                   size_t references, long shift, struct pairs *p)
{
    size_t skip_source = shift < 0 ? (size_t)-shift : 0,
           skip_reference = shift > 0 ? (size_t)shift : 0;
    if (skip_source >= sources || skip_reference >= references)
        return false;
    p->source = source + skip_source;
    p->reference = reference + skip_reference;
    sources -= skip_source;
    references -= skip_reference;
    p->count = sources < references ? sources : references;
    return p->count >= LEAST_PAIRS;
}

struct trial {
    long shift;
    int64_t error_ns, offset_ns;
};

static int64_t absolute_difference(int64_t a, int64_t b)
{
    int64_t d = prof_subtract(a, b);
    return d < 0 ? prof_subtract(0, d) : d;
}

/* Operations that come at even intervals fit almost as well one off: then the wall clock decides.
 */
static bool is_better(const struct trial *a, const struct trial *b, int64_t expected_ns)
{
    if (a->error_ns < b->error_ns / 2 || b->error_ns < a->error_ns / 2)
        return a->error_ns < b->error_ns;
    if (expected_ns == PROF_MERGE_UNKNOWN)
        return labs(a->shift) < labs(b->shift);
    return absolute_difference(a->offset_ns, expected_ns) <
           absolute_difference(b->offset_ns, expected_ns);
}

static long best_shift(const int64_t *source, size_t sources, const int64_t *reference,
                       size_t references, int64_t expected_ns, int64_t *work)
{
    struct trial best = {0};
    bool any = false;
    long most = sources == references ? 0 : MOST_SHIFT;
    for (long shift = -most; shift <= most; shift++) {
        struct pairs p = {.work = work};
        if (!paired(source, sources, reference, references, shift, &p))
            continue;
        size_t step = p.count / TRIED + 1;
        struct merge_fit rough = {.offset_ns = median_difference(&p, 0, p.count, step)};
        struct trial trial = {shift, left_over(&p, &rough, step), rough.offset_ns};
        if (!any || is_better(&trial, &best, expected_ns))
            best = trial;
        any = true;
    }
    return best.shift;
}

bool merge_fit(const int64_t *source, size_t source_count, const int64_t *reference,
               size_t reference_count, int64_t expected_ns, struct merge_fit *fit)
{
    size_t most = source_count < reference_count ? source_count : reference_count;
    struct pairs p = {.work = malloc((most + 1) * sizeof *p.work)};
    *fit = (struct merge_fit){0};
    if (!p.work)
        return false;
    long shift = best_shift(source, source_count, reference, reference_count, expected_ns, p.work);
    bool enough = paired(source, source_count, reference, reference_count, shift, &p);
    if (enough)
        fit_pairs(&p, fit);
    free(p.work);
    return enough;
}
