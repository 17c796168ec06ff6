/* Grouping helpers of the summaries; see group.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/group.h"
#include "libprof/base/array.h"
#include "libprof/base/error.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_summaries.h"

static uint32_t number_of_text(struct prof_texts *texts, const char *text, size_t length)
{
    /* NULL and "" are different groups: unknown is not the empty name. */
    char none = 0;
    const char *key = text ? text : &none;
    size_t bytes = text ? length : 1;
    bool fresh;
    uint32_t number = prof_names_number(&texts->by_text, key, bytes, &fresh);
    return number != PROF_NO_GROUP && fresh && !prof_array_push(&texts->list, text) ? PROF_NO_GROUP
                                                                                    : number;
}

uint32_t prof_texts_number(struct prof_texts *texts, struct prof_capture *capture, int64_t id)
{
    uint64_t *known = prof_map_get(&texts->by_id, (uint64_t)id);
    if (known)
        return (uint32_t)*known;
    size_t length;
    const char *text = prof_string(capture, id, &length);
    uint32_t number = number_of_text(texts, text, length);
    if (number == PROF_NO_GROUP || !prof_map_put(&texts->by_id, (uint64_t)id, number))
        return PROF_NO_GROUP;
    return number;
}

void prof_texts_free(struct prof_texts *texts)
{
    prof_map_free(&texts->by_id);
    prof_names_free(&texts->by_text);
    prof_array_free(&texts->list);
}

uint32_t prof_kernel_number(struct prof_texts *texts, const struct prof_capture *capture,
                            int64_t config)
{
    const struct prof_config *its = prof_config(capture, config);
    const char *name = its ? its->name : NULL;
    return number_of_text(texts, name, name ? strlen(name) : 0);
}

uint32_t *prof_kernel_of_configs(const struct prof_capture *capture, bool apart)
{
    size_t count = capture->configs.count;
    uint32_t *kernels = calloc(count + 1, sizeof *kernels);
    struct prof_names names = {0};
    bool ok = kernels != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        const char *name = capture->configs.data[i].name;
        uint32_t *known = apart || !name ? NULL : prof_names_get(&names, name, strlen(name));
        kernels[i] = known ? *known : (uint32_t)i;
        if (!apart && name && !known)
            ok = prof_names_put(&names, name, strlen(name), (uint32_t)i);
    }
    prof_names_free(&names);
    if (!ok)
        free(kernels);
    return ok ? kernels : NULL;
}

uint32_t prof_group_number(struct prof_map *map, uint64_t key, bool *fresh)
{
    uint64_t *known = prof_map_get(map, key);
    *fresh = !known;
    if (known)
        return (uint32_t)*known;
    uint32_t number = (uint32_t)map->count;
    return prof_map_put(map, key, number) ? number : PROF_NO_GROUP;
}

/* ---- groups ---------------------------------------------------------------------------------- */

void *prof_group_add(struct prof_groups *groups)
{
    if (!prof_array_room(&groups->data, &groups->capacity, groups->count + 1, groups->bytes))
        return NULL;
    return memset(prof_group_at(groups, groups->count++), 0, groups->bytes);
}

void *prof_group_of_number(struct prof_groups *groups, uint64_t key, bool *fresh)
{
    uint32_t number = prof_group_number(&groups->by_number, key, fresh);
    if (number == PROF_NO_GROUP)
        return NULL;
    return *fresh ? prof_group_add(groups) : prof_group_at(groups, number);
}

void *prof_group_of_bytes(struct prof_groups *groups, const void *key, size_t length, bool *fresh)
{
    uint32_t number = prof_names_number(&groups->by_bytes, key, length, fresh);
    return number == PROF_NO_GROUP ? NULL
           : *fresh                ? prof_group_add(groups)
                                   : prof_group_at(groups, number);
}

void *prof_groups_take(struct prof_groups *groups)
{
    void *data = groups->data;
    groups->data = NULL;
    groups->count = groups->capacity = 0;
    return data;
}

void prof_groups_free(struct prof_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        struct prof_gather *measures = prof_group_at(groups, i);
        for (size_t k = 0; k < groups->measures; k++)
            prof_gather_free(&measures[k]);
    }
    free(groups->data);
    prof_map_free(&groups->by_number);
    prof_names_free(&groups->by_bytes);
    *groups = (struct prof_groups){0};
}

/* ---- rows ------------------------------------------------------------------------------------ */

double prof_share(int64_t part, int64_t sum)
{
    return sum == PROF_UNKNOWN || sum <= 0 ? NAN : (double)part / (double)sum;
}

enum prof_status prof_scan(struct prof_capture *capture, const char *sql,
                           bool (*add)(void *user, sqlite3_stmt *row), void *user,
                           struct prof_error *err)
{
    sqlite3_stmt *row;
    PROF_TRY(prof_query(capture, sql, &row, err));
    while (prof_row(row)) {
        if (!add(user, row)) {
            sqlite3_finalize(row);
            return prof_out_of_memory(err);
        }
    }
    return prof_query_end(capture, row, err);
}

static struct prof_spread row_duration(const struct prof_row_shape *shape, const char *row)
{
    struct prof_spread duration;
    memcpy(&duration, row + shape->duration, sizeof duration);
    return duration;
}

int64_t prof_finish_rows(const struct prof_row_shape *shape, void *rows, size_t count,
                         int64_t wall_ns)
{
    char *row = rows;
    int64_t listed = 0;
    for (size_t i = 0; i < count; i++)
        listed = prof_add(listed, row_duration(shape, row + i * shape->bytes).sum);
    for (size_t i = 0; i < count; i++, row += shape->bytes) {
        double share = prof_share(row_duration(shape, row).sum, listed);
        double wall_share = prof_share(row_duration(shape, row).within, wall_ns);
        memcpy(row + shape->share, &share, sizeof share);
        memcpy(row + shape->wall_share, &wall_share, sizeof wall_share);
    }
    if (count)
        qsort(rows, count, shape->bytes, shape->order);
    return listed;
}

int prof_order(int64_t sum_a, int64_t sum_b, const char *a, const char *b)
{
    return PROF_COMPARE(sum_b, sum_a) ?: prof_compare_texts(a, b);
}

/* ---- measures -------------------------------------------------------------------------------- */

#define STEP_BITS 8
#define STEPS (1u << STEP_BITS)
#define OCTAVES 64
#define SMALL 1024 /* values a group keeps whatever the budget says */

/* Octave 0 holds 0..255 one by one; octave o > 0 holds [2^(o+7), 2^(o+8)) in 256 steps, each
 * 2^(o-1) wide. */
static unsigned octave_of(uint64_t value)
{
    return value < STEPS ? 0 : (unsigned)(64 - __builtin_clzll(value)) - STEP_BITS;
}

static unsigned step_of(uint64_t value, unsigned octave)
{
    return octave ? (unsigned)(value >> (octave - 1)) & (STEPS - 1) : (unsigned)value;
}

static double middle_of(unsigned octave, unsigned step)
{
    if (!octave)
        return step;
    double width = ldexp(1, (int)octave - 1);
    return ldexp(1, (int)(octave + STEP_BITS - 1)) + width * (double)step + (width - 1) / 2;
}

static void count_in_histogram(struct prof_gather *g, int64_t value)
{
    uint64_t size = value < 0 ? 0 : (uint64_t)value;
    unsigned octave = octave_of(size);
    if (!g->octaves[octave])
        g->octaves[octave] = calloc(STEPS, sizeof **g->octaves);
    if (!g->octaves[octave])
        g->out_of_memory = true;
    else if (g->octaves[octave][step_of(size, octave)] < UINT32_MAX)
        g->octaves[octave][step_of(size, octave)]++;
}

static void go_over(struct prof_gather *g, struct prof_spread_budget *budget, size_t kept)
{
    g->octaves = calloc(OCTAVES, sizeof *g->octaves);
    if (!g->octaves) {
        g->out_of_memory = true;
    } else {
        for (size_t i = 0; i < kept; i++)
            count_in_histogram(g, g->values[i]);
    }
    budget->used -= g->capacity * sizeof *g->values;
    free(g->values);
    g->values = NULL;
    g->capacity = 0;
}

static void keep_value(struct prof_gather *g, struct prof_spread_budget *budget, int64_t value)
{
    size_t kept = (size_t)g->count;
    if (kept == g->capacity) {
        size_t limit = budget->limit ? budget->limit : PROF_SPREAD_BUDGET, old = g->capacity;
        bool fits = kept < SMALL || budget->used + kept * sizeof *g->values / 2 <= limit;
        if (!fits || !prof_array_room(&g->values, &g->capacity, kept + 1, sizeof *g->values)) {
            go_over(g, budget, kept);
            if (g->octaves)
                count_in_histogram(g, value);
            return;
        }
        budget->used += (g->capacity - old) * sizeof *g->values;
    }
    g->values[kept] = value;
}

void prof_gather_add(struct prof_gather *g, struct prof_spread_budget *budget, int64_t value)
{
    if (g->octaves)
        count_in_histogram(g, value);
    else if (!g->out_of_memory)
        keep_value(g, budget, value);
    g->min = g->count && g->min < value ? g->min : value;
    g->max = g->count && g->max > value ? g->max : value;
    g->sum = prof_add(g->sum, value);
    g->count++;
    double delta = (double)value - g->mean;
    g->mean += delta / (double)g->count;
    g->m2 += delta * ((double)value - g->mean);
}

/* Least significant byte first; bytes that are the same everywhere, most of them, cost one
 * count. */
static bool radix_sort(int64_t *values, size_t count)
{
    int64_t *other = malloc(count * sizeof *other), *from = values, *to = other;
    if (!other)
        return false;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t at[256] = {0}, sum = 0;
        uint64_t flip = shift == 56 ? 0x80 : 0; /* the sign */
        for (size_t i = 0; i < count; i++)
            at[((uint64_t)from[i] >> shift & 255) ^ flip]++;
        if (at[((uint64_t)from[0] >> shift & 255) ^ flip] == count)
            continue;
        for (unsigned b = 0; b < 256; b++) {
            size_t here = at[b];
            at[b] = sum;
            sum += here;
        }
        for (size_t i = 0; i < count; i++)
            to[at[((uint64_t)from[i] >> shift & 255) ^ flip]++] = from[i];
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != values)
        memcpy(values, from, count * sizeof *values);
    free(other);
    return true;
}

static void sort_values(struct prof_gather *g)
{
    size_t count = (size_t)g->count;
    if (count < 256 || !radix_sort(g->values, count))
        qsort(g->values, count, sizeof *g->values, prof_ascending_int64);
}

/* Value of a rank (0-based) in the histogram. */
static double histogram_at(const struct prof_gather *g, int64_t rank)
{
    int64_t seen = 0;
    for (unsigned o = 0; o < OCTAVES; o++) {
        for (unsigned s = 0; g->octaves[o] && s < STEPS; s++) {
            seen += g->octaves[o][s];
            if (seen > rank) {
                double value = middle_of(o, s);
                return value < (double)g->min   ? (double)g->min
                       : value > (double)g->max ? (double)g->max
                                                : value;
            }
        }
    }
    return (double)g->max;
}

static double at_rank(const struct prof_gather *g, int64_t rank)
{
    return g->octaves ? histogram_at(g, rank) : (double)g->values[rank];
}

static double gathered_median(const struct prof_gather *g)
{
    double upper = at_rank(g, g->count / 2);
    return g->count & 1 ? upper : (at_rank(g, g->count / 2 - 1) + upper) / 2;
}

static int64_t nearest_rank(int64_t count, double share)
{
    int64_t rank = (int64_t)ceil(share * (double)count) - 1;
    return rank < 0 ? 0 : rank >= count ? count - 1 : rank;
}

struct prof_spread prof_gather_result(struct prof_gather *g)
{
    struct prof_spread s = {.count = g->count,
                            .sum = g->sum,
                            .within = g->within,
                            .min = PROF_UNKNOWN,
                            .max = PROF_UNKNOWN,
                            .mean = NAN,
                            .median = NAN,
                            .p95 = NAN,
                            .p99 = NAN,
                            .stddev = NAN};
    if (!g->count)
        return s;
    s.min = g->min;
    s.max = g->max;
    s.mean = g->sum == INT64_MAX || g->sum <= INT64_MIN + 1 ? g->mean
                                                            : (double)g->sum / (double)g->count;
    if (g->count > 1)
        s.stddev = sqrt(g->m2 / (double)(g->count - 1));
    if (g->out_of_memory) {
        prof_note(PROF_NOMEM);
        return s;
    }
    if (g->octaves)
        s.quantile_error = PROF_SPREAD_ERROR;
    else
        sort_values(g);
    s.median = gathered_median(g);
    s.p95 = at_rank(g, nearest_rank(g->count, 0.95));
    s.p99 = at_rank(g, nearest_rank(g->count, 0.99));
    return s;
}

/* Every value, or every step of the gatherer's own histogram by a value in it. */
static void count_steps(const struct prof_gather *g, int64_t *counts)
{
    for (int64_t i = 0; g->values && i < g->count; i++)
        counts[prof_histogram_step(g->values[i])]++;
    for (unsigned o = 0; g->octaves && o < OCTAVES; o++)
        for (unsigned s = 0; g->octaves[o] && s < STEPS; s++)
            counts[prof_histogram_step((int64_t)middle_of(o, s))] += g->octaves[o][s];
}

bool prof_gather_histogram(const struct prof_gather *g, struct prof_histogram *histogram)
{
    int64_t counts[PROF_HISTOGRAM_STEPS] = {0};
    *histogram = (struct prof_histogram){0};
    if (!g->count || g->out_of_memory)
        return true;
    count_steps(g, counts);
    uint32_t first = prof_histogram_step(g->min), last = prof_histogram_step(g->max);
    histogram->counts = malloc((last - first + 1) * sizeof *counts);
    if (!histogram->counts)
        return false;
    histogram->first = first;
    histogram->count = last - first + 1;
    memcpy(histogram->counts, counts + first, histogram->count * sizeof *counts);
    return true;
}

double prof_gather_median(struct prof_gather *g)
{
    if (!g->count || g->out_of_memory)
        return NAN;
    if (!g->octaves)
        sort_values(g);
    return gathered_median(g);
}

void prof_gather_free(struct prof_gather *g)
{
    for (unsigned o = 0; g->octaves && o < OCTAVES; o++)
        free(g->octaves[o]);
    free(g->octaves);
    free(g->values);
    *g = (struct prof_gather){0};
}

/* ---- histograms ------------------------------------------------------------------------------ */

#define BITS 3
#define PER_OCTAVE (1u << BITS)

/* 0..7 one by one, then [8, 16) in eights of 1, [16, 32) of 2, ... */
uint32_t prof_histogram_step(int64_t value)
{
    uint64_t size = value < 0 ? 0 : (uint64_t)value;
    if (size < PER_OCTAVE)
        return (uint32_t)size;
    uint32_t top = 63 - (uint32_t)__builtin_clzll(size);
    return (top - BITS + 1) * PER_OCTAVE + (uint32_t)(size >> (top - BITS) & (PER_OCTAVE - 1));
}

double prof_histogram_low(uint32_t step)
{
    uint32_t octave = step / PER_OCTAVE;
    return !octave ? step : ldexp((double)(PER_OCTAVE + step % PER_OCTAVE), (int)octave - 1);
}

void prof_histogram_free(struct prof_histogram *histogram)
{
    free(histogram->counts);
    *histogram = (struct prof_histogram){0};
}
