/* Statistics: tables under the names and columns that users know from nsys' reports. One table of
 * descriptions (stats.c); `--stats list`, the writers and docs/reference/stats.md follow from it.
 *
 * A statistic hands its rows to whoever writes them one by one, so that a trace of any length
 * passes through in constant memory. */
#ifndef PERFKIT_REPORT_STATS_H
#define PERFKIT_REPORT_STATS_H

#include "report/table.h"

struct prof_report_stat_walk {
    struct prof_capture *capture;
    const struct prof_filter *filter;
    /* Called once for each row, which lives until it returns. False: enough. */
    bool (*row)(void *user, const void *row);
    void *user;
    /* Set before the first row by tables whose "Time (%)" is a share of the rows. */
    int64_t listed_ns, wall_ns;
    bool brief;     /* where people read: stacks without what stands between their lines */
    bool stackless; /* set by tables that tell where work was called from: no row does */
};

struct prof_report_stat {
    const char *name;    /* "cuda_gpu_kern_sum" */
    const char *title;   /* "CUDA GPU Kernel Summary" */
    const char *summary; /* one sentence for --stats list and the documentation */
    /* Ended by a NULL key; key and title are nsys' heading, with its unit. `rank` says what
     * stands in text where a value is absent: */
    const struct prof_report_column *columns;
    enum prof_status (*walk)(struct prof_report_stat_walk *walk, struct prof_error *err);
    /* What a capture has it by: options of perfkit run that are not its defaults; NULL = none. */
    const char *needs;
};
enum {
    PROF_STAT_KNOWN, /* "n/a": every row should have it */
    PROF_STAT_BLANK, /* nothing: it does not apply to every row */
};

/* Ended by one without a name. Static. */
extern const struct prof_report_stat prof_report_stats[];

const struct prof_report_stat *prof_report_stat_find(const char *name, size_t length);

/* The next name of a list with commas and its length; NULL at the end. */
const char *prof_report_stat_next(const char **list, size_t *length);

/* What a column's heading promises: percent, MB (10^6 bytes) and MB/s instead of 0..1 and bytes. */
struct prof_report_value prof_report_stat_value(const struct prof_report_data *data,
                                                const struct prof_report_column *column,
                                                const void *row);

#endif
