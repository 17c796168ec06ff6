/* Two clocks by what happened at the same moment on both: a collective ends on all its ranks within
 * microseconds. Single pairs are off by much more (a rank is descheduled, a kernel's last block is
 * late), so everything here is a median: of blocks of pairs, of the slopes between blocks (Theil
 * and Sen), of what is left. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "libprof/store/merge/parts.h"

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

static int by_real(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
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

/* Slope of the medians of blocks, 0 when the pairs span too little to tell. */
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
    qsort(slopes, n, sizeof *slopes, by_real);
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
