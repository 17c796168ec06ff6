/* Grouping rows by what they are called. The same text may stand under several string ids (merged
 * captures), so groups are by text; ids are only a short cut. */
#ifndef PERFKIT_ANALYSIS_GROUP_H
#define PERFKIT_ANALYSIS_GROUP_H

#include "libprof/analysis/capture.h"
#include "libprof/analysis/events.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof.h"
#include "libprof/include/prof_summaries.h"

#define PROF_NO_GROUP UINT32_MAX

struct prof_texts {
    struct prof_map by_id; /* string id + 1 -> number */
    struct prof_names by_text;
    PROF_ARRAY(const char *) list; /* number -> text, NULL for unknown */
};

/* The number of a string id's text: 0, 1, 2 ... in order of first sight. Id 0 and ids without a
 * string share one number whose text is NULL. PROF_NO_GROUP: out of memory. */
uint32_t prof_texts_number(struct prof_texts *texts, struct prof_capture *capture, int64_t id);
void prof_texts_free(struct prof_texts *texts);

/* The number of a launch configuration's kernel, by readable name, so that configurations of one
 * kernel are one; unknown ones and those without a name share one. PROF_NO_GROUP: out of memory. */
uint32_t prof_kernel_number(struct prof_texts *texts, const struct prof_capture *capture,
                            int64_t config);

/* What counts as one kernel: of each index of capture->configs the first one with its name, also of
 * those without a name; with `apart` its own. Free it. NULL: out of memory. */
uint32_t *prof_kernel_of_configs(const struct prof_capture *capture, bool apart);

/* Numbers for 64-bit keys: 0, 1, 2 ... in order of first sight; *fresh is set for a new one.
 * PROF_NO_GROUP: out of memory. */
uint32_t prof_group_number(struct prof_map *map, uint64_t key, bool *fresh);

/* Gathers how one quantity spreads over many events: what struct prof_spread reports.
 *
 * Values are kept (and quantiles exact) within a budget shared by all gatherers of a result; past
 * it, the gatherer that wants to grow, which is a large one, turns into a log-linear histogram with
 * 256 steps per octave: relative error at most 1/512. */
#define PROF_SPREAD_BUDGET (32u << 20) /* bytes */
#define PROF_SPREAD_ERROR (1.0 / 512)

struct prof_spread_budget {
    size_t limit; /* bytes; 0 = PROF_SPREAD_BUDGET */
    size_t used;
};

struct prof_gather {
    int64_t count, min, max;
    int64_t sum;
    int64_t within;  /* prof_spread.within: prof_measure_event adds to it */
    double mean, m2; /* Welford's running mean and sum of squared differences */
    int64_t *values; /* `count` of them, NULL once in the histogram */
    size_t capacity;
    uint32_t **octaves; /* 64 pointers, NULL while exact */
    bool out_of_memory; /* quantiles are lost; reported as NaN */
};

/* Count one value; negative ones are taken as 0 in the histogram. Starts as {0}. */
void prof_gather_add(struct prof_gather *gather, struct prof_spread_budget *budget, int64_t value);

/* What was gathered. Sorts the values in place. */
struct prof_spread prof_gather_result(struct prof_gather *gather);

/* The same as a histogram, whose steps are coarser than the gatherer's: none is counted in the
 * wrong one. Empty when the values were lost; false = out of memory. */
bool prof_gather_histogram(const struct prof_gather *gather, struct prof_histogram *histogram);

/* Only the median; NaN without values. */
double prof_gather_median(struct prof_gather *gather);

void prof_gather_free(struct prof_gather *gather);

/* Groups of rows with what is measured of each. A group is a struct of the caller's that begins
 * with its `measures` struct prof_gather. Starts as PROF_GROUPS(struct, measures). */
struct prof_groups {
    size_t bytes, measures;
    char *data;
    size_t count, capacity;
    struct prof_map by_number;
    struct prof_names by_bytes;
    struct prof_spread_budget budget;
};
#define PROF_GROUPS(type, measures)                                                                \
    {                                                                                              \
        sizeof(type), measures, NULL, 0, 0, {0}, {0},                                              \
        {                                                                                          \
            0, 0                                                                                   \
        }                                                                                          \
    }

/* The group of a key (of one kind for all groups), made when it is new: *fresh, all zeros. Valid
 * until the next is made. NULL: out of memory. */
void *prof_group_of_number(struct prof_groups *groups, uint64_t key, bool *fresh);
void *prof_group_of_bytes(struct prof_groups *groups, const void *key, size_t length, bool *fresh);

/* A group that no key leads to. */
void *prof_group_add(struct prof_groups *groups);

/* In order of first sight. */
static inline void *prof_group_at(const struct prof_groups *groups, size_t number)
{
    return groups->data + number * groups->bytes;
}

/* Add a value to a measure where it is known. */
static inline void prof_measure(struct prof_groups *groups, struct prof_gather *measure,
                                int64_t value)
{
    if (value != PROF_UNKNOWN)
        prof_gather_add(measure, &groups->budget, value);
}

/* The same of an event's duration. */
static inline void prof_measure_event(struct prof_groups *groups, struct prof_gather *measure,
                                      const struct prof_event_row *row)
{
    prof_measure(groups, measure, row->duration_ns);
    if (row->duration_ns != PROF_UNKNOWN)
        measure->within = prof_add(measure->within, row->within_ns);
}

/* The groups as an array that is the caller's to free; none are left. Without measures only. */
void *prof_groups_take(struct prof_groups *groups);
void prof_groups_free(struct prof_groups *groups);

/* Take every row of a query. `add` returns false when it is out of memory. */
enum prof_status prof_scan(struct prof_capture *capture, const char *sql,
                           bool (*add)(void *user, sqlite3_stmt *row), void *user,
                           struct prof_error *err);

/* Where a summary's rows have what all of them have. */
struct prof_row_shape {
    size_t bytes, duration, share, wall_share;
    int (*order)(const void *, const void *);
};
#define PROF_ROW_SHAPE(type, order)                                                                \
    {                                                                                              \
        sizeof(struct type), offsetof(struct type, duration_ns), offsetof(struct type, share),     \
            offsetof(struct type, wall_share), order                                               \
    }

/* Fill in both shares of filled rows and put them in order; returns the sum of their durations. */
int64_t prof_finish_rows(const struct prof_row_shape *shape, void *rows, size_t count,
                         int64_t wall_ns);

/* Largest sum first, then by name (NULL = ""): how most summaries are ordered. */
int prof_order(int64_t sum_a, int64_t sum_b, const char *a, const char *b);

/* share of a sum, NaN when the sum is 0 or unknown */
double prof_share(int64_t part, int64_t sum);

#endif
