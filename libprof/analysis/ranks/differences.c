/* What a rank did otherwise than most: launches of each kernel configuration, bytes copied,
 * collectives. These are exact and the same on every rank of a program that treats its ranks alike,
 * so any difference is one. Also the kernel that is slower on a rank than on the others. */
#include "libprof/analysis/ranks/ranks.h"

PROF_ORDER(by_what, struct rank_count, PROF_ASCENDING(kind), PROF_ASCENDING(key),
           PROF_ASCENDING(key2), PROF_ASCENDING(unit))

static bool is_same(const struct rank_count *a, const struct rank_count *b)
{
    return a->kind == b->kind && a->key == b->key && a->key2 == b->key2;
}

/* The value that most units have; of two, that of the first unit. `scratch` has room for all. */
static int64_t usual_of(const int64_t *values, int64_t *scratch, size_t count, int64_t *ranks)
{
    int64_t usual = values[0];
    memcpy(scratch, values, count * sizeof *values);
    qsort(scratch, count, sizeof *scratch, prof_ascending_int64);
    *ranks = 0;
    for (size_t i = 0; i < count; i++) /* how many have the first unit's */
        *ranks += values[i] == values[0];
    for (size_t i = 0; i < count;) {
        size_t end = i;
        while (end < count && scratch[end] == scratch[i])
            end++;
        if ((int64_t)(end - i) > *ranks) {
            *ranks = (int64_t)(end - i);
            usual = scratch[i];
        }
        i = end;
    }
    return usual;
}

struct differing {
    struct rank_work *w;
    struct prof_ranks *result;
    int64_t *values, *scratch; /* by unit */
    int64_t *sums;
    PROF_ARRAY(struct prof_rank_difference) list;
};

static void describe_difference(const struct rank_work *w, const struct rank_count *count,
                                struct prof_rank_difference *difference)
{
    difference->kind = count->kind;
    switch (count->kind) {
    case PROF_DIFFERS_LAUNCHES:
        difference->config = prof_config(w->capture, count->key);
        difference->name = difference->config ? difference->config->name : NULL;
        difference->shape = prof_launch_shape(difference->config);
        break;
    case PROF_DIFFERS_COPIED:
        difference->name = prof_copy_kind_text((int)count->key);
        break;
    case PROF_DIFFERS_COLLECTIVES:
        difference->name = prof_collective_name((enum prof_collective)count->key);
        break;
    }
}

static bool compare_rank_count(struct differing *d, const struct rank_count *count)
{
    int64_t ranks, usual = usual_of(d->values, d->scratch, d->w->units.count, &ranks);
    for (uint32_t unit = 0; unit < d->w->units.count; unit++) {
        if (d->values[unit] == usual)
            continue;
        struct prof_rank_difference *difference = prof_array_add(&d->list);
        if (!difference)
            return false;
        *difference = (struct prof_rank_difference){
            .rank = unit, .here = d->values[unit], .usual = usual, .usual_ranks = ranks};
        describe_difference(d->w, count, difference);
    }
    return true;
}

/* By how much the kernel took longer on each unit than on the median of the others. */
static void find_slow(struct differing *d, const struct rank_count *count)
{
    const struct prof_config *config = prof_config(d->w->capture, count->key);
    size_t units = d->w->units.count;
    for (size_t unit = 0; unit < units; unit++) {
        size_t others = 0;
        for (size_t i = 0; i < units; i++)
            if (i != unit)
                d->scratch[others++] = d->sums[i];
        if (others == 0)
            return;
        struct prof_rank_row *row = &d->w->units.data[unit].row;
        int64_t more = prof_subtract(d->sums[unit], (int64_t)rank_median(d->scratch, others));
        if (more > row->slow_kernel_ns) {
            row->slow_kernel_ns = more;
            row->slow_kernel = config ? config->name : NULL;
        }
    }
}

static int by_rank_and_kind(const void *a, const void *b)
{
    const struct prof_rank_difference *x = a, *y = b;
    int64_t left = prof_subtract(x->here, x->usual), right = prof_subtract(y->here, y->usual);
    left = left < 0 ? -left : left;
    right = right < 0 ? -right : right;
    return PROF_COMPARE(x->rank, y->rank) ?: PROF_COMPARE(x->kind, y->kind) ?:
           PROF_COMPARE(right, left) ?: prof_compare_texts(x->name, y->name) ?:
           strcmp(x->shape.text, y->shape.text);
}

static bool compare_all(struct differing *d)
{
    struct rank_work *w = d->w;
    for (size_t i = 0; i < w->counts.count;) {
        const struct rank_count *first = &w->counts.data[i];
        memset(d->values, 0, w->units.count * sizeof *d->values);
        memset(d->sums, 0, w->units.count * sizeof *d->sums);
        for (; i < w->counts.count && is_same(first, &w->counts.data[i]); i++) {
            d->values[w->counts.data[i].unit] = w->counts.data[i].count;
            d->sums[w->counts.data[i].unit] = w->counts.data[i].sum_ns;
        }
        if (!compare_rank_count(d, first))
            return false;
        if (first->kind == PROF_DIFFERS_LAUNCHES)
            find_slow(d, first);
    }
    return true;
}

bool rank_differences(struct rank_work *w, struct prof_ranks *result)
{
    struct differing d = {.w = w, .result = result};
    size_t units = w->units.count + 1;
    bool ok = (d.values = calloc(units, sizeof *d.values)) != NULL &&
              (d.scratch = calloc(units, sizeof *d.scratch)) != NULL &&
              (d.sums = calloc(units, sizeof *d.sums)) != NULL;
    prof_array_sort(&w->counts, by_what);
    ok = ok && (w->units.count < 2 || compare_all(&d));
    prof_array_sort(&d.list, by_rank_and_kind);
    result->differences = d.list.data;
    result->difference_count = d.list.count;
    if (d.list.count > PROF_RANKS_DIFFERENCES) {
        result->differences_left_out = (int64_t)(d.list.count - PROF_RANKS_DIFFERENCES);
        result->difference_count = PROF_RANKS_DIFFERENCES;
    }
    free(d.values);
    free(d.scratch);
    free(d.sums);
    return ok;
}
