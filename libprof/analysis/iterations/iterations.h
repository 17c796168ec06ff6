/* Iterations one by one: rows (rows.c), what is usual among them (series.c), and why one is slow
 * (parts.c, why.c). What an iteration is, facts/iterations.h decides. */
#ifndef PERFKIT_ANALYSIS_ITERATIONS_ITERATIONS_H
#define PERFKIT_ANALYSIS_ITERATIONS_ITERATIONS_H

#include "libprof/analysis/facts/facts.h"
#include "libprof/analysis/ranks/ranks.h"
#include "libprof/include/prof_iterations.h"

/* Fewer others say nothing of what is usual. */
#define PROF_LEAST_SIBLINGS 7

/* The list from facts, whose phase does not hold afterwards. *list was empty but for why_none;
 * explain: NULL = none. */
enum prof_status prof_iterations_of_facts(struct prof_facts *facts,
                                          const struct prof_iteration_choice *explain,
                                          struct prof_iteration_list *list, struct prof_error *err);

/* Sums of a series over its rows, in order; marks those that are slow. False: out of memory. */
bool prof_series_measure(struct prof_iteration_series *series, struct prof_iteration_row **rows,
                         size_t count);

/* What is above the spread of `count` sorted values: Tukey's far fence, wider where few
 * values say little of the quartiles. PROF_UNKNOWN: too few. */
int64_t prof_upper_fence(const int64_t *sorted, size_t count);

/* The median, with its 95 % interval between the order statistics n/2 -+ 0.98 sqrt(n) (Conover,
 * Practical Nonparametric Statistics, 3.2). Orders the values; NaN for none. */
struct prof_median {
    double median, low, high;
};
struct prof_median prof_median_interval(int64_t *values, size_t count);

/* ---- parts of single iterations (parts.c) ---------------------------------------------------- */

/* Of one part in one iteration. */
struct prof_part_cell {
    int64_t ns;             /* of the iteration's time */
    int64_t count, work_ns; /* operations or calls that begin in it, and their durations */
    int64_t major;          /* of the count of page faults */
};

/* A stretch of an iteration that is explained, or of the one that it is held against. */
struct prof_part_piece {
    uint32_t part;
    uint32_t shape, stream, thread, call; /* as in struct prof_piece */
    int64_t begin, end;
};

/* An iteration that is taken apart. */
struct prof_dissected {
    const struct prof_iteration_row *row;
    uint32_t group;   /* of the range that is the iteration, in facts.range_texts */
    bool with_pieces; /* `pieces` are wanted */
    PROF_ARRAY(struct prof_part_cell) cells;   /* by part; shorter where it has none of the last */
    PROF_ARRAY(struct prof_part_piece) pieces; /* by begin */
};

struct prof_part_key {
    enum prof_part_kind kind;
    const char *name; /* borrowed of the capture, or static; NULL */
    bool counts;      /* operations or calls are counted for it */
};

struct prof_dissection {
    struct prof_facts *facts;
    PROF_ARRAY(struct prof_dissected) list; /* by start */
    PROF_ARRAY(struct prof_part_key) parts;
    struct prof_names by_key;
    struct prof_overlays *overlays;
    int64_t longest_ns;
    bool failed;
};

/* Take the iterations of `list` apart, which are set before. Free it also after a failure. */
enum prof_status prof_dissect(struct prof_dissection *dissection, struct prof_error *err);
void prof_dissection_free(struct prof_dissection *dissection);

static inline struct prof_part_cell prof_part_cell(const struct prof_dissected *one, size_t part)
{
    return part < one->cells.count ? one->cells.data[part] : (struct prof_part_cell){0};
}

/* ---- what else happened meanwhile (overlays.c) ----------------------------------------------- */

/* Stretches that say more of the host's time than its calls do. */
struct prof_overlays;

/* Of what overlaps the set `within`. */
enum prof_status prof_overlays_read(struct prof_overlays **overlays, struct prof_capture *capture,
                                    const struct prof_intervals *within, struct prof_error *err);
void prof_overlays_free(struct prof_overlays *overlays);

/* What applies to a thread in this state of the device at `time`, up to *end (lowered where
 * something else begins earlier); false: nothing. That it was off the processor says something only
 * where it was in no call that takes its time. */
bool prof_overlay_at(const struct prof_overlays *overlays, uint32_t thread, enum prof_slice slice,
                     int64_t time, int64_t *end, enum prof_part_kind *kind, const char **name);

/* Page faults of a thread in a stretch of time. */
struct prof_fault_row {
    int64_t begin, end, count, major;
    uint32_t thread;
};

/* Those that were counted and are more than none; borrowed. */
const struct prof_fault_row *prof_overlays_faults(const struct prof_overlays *overlays,
                                                  size_t *count);

/* Add what samples of the thread in a stretch of time represent: in page faults, and otherwise on a
 * processor. */
void prof_overlays_weigh(const struct prof_overlays *overlays, uint32_t thread, int64_t begin,
                         int64_t end, int64_t *faults, int64_t *others);

/* Where the thread was longest between two moments, by samples of the processors: "compute
 * (train.c:12), computing". False: not known. */
bool prof_overlays_place(const struct prof_overlays *overlays, struct prof_capture *capture,
                         uint32_t thread, int64_t begin, int64_t end, char *out, size_t size);

/* ---- why (why.c) and its words (why_words.c) ------------------------------------------------- */

/* Explain what was chosen of the list. */
enum prof_status prof_iterations_explain(struct prof_facts *facts,
                                         const struct prof_iteration_choice *explain,
                                         struct prof_iteration_list *list, struct prof_error *err);

struct prof_explaining {
    struct prof_facts *facts;
    struct prof_iteration_list *list;
    struct prof_dissection parts;
    struct prof_rank_parts ranks;
};

/* What is usual in the iterations that one is compared with. */
struct prof_usual {
    size_t others;
    int64_t *sums, *most; /* by part */
    double *counts, *work;
    int64_t *most_count; /* by part */
};

#define PROF_SAY_WHY(why, ...) prof_append((why)->seen, sizeof(why)->seen, __VA_ARGS__)

/* The cause, part `p` whose piece is the first that deviates, in why->seen. */
void prof_say_cause(const struct prof_explaining *w, const struct prof_dissected *one,
                    struct prof_iteration_why *why, size_t p, const struct prof_usual *u,
                    const struct prof_part_piece *piece);

/* Where the call, or the operation, of a piece is: what lines are found by. */
void prof_place_piece(const struct prof_explaining *w, const struct prof_dissected *one,
                      const struct prof_part_piece *piece, enum prof_part_kind kind,
                      struct prof_place *place);

#endif
