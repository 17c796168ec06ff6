/* Many captures made one: what `perfkit merge` does. */
#ifndef PERFKIT_STORE_MERGE_H
#define PERFKIT_STORE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/error.h"
#include "libprof/store/exchange.h"

#define PROF_MERGE_UNKNOWN INT64_MIN

/* How the times of a capture were brought to those of the result, as merged_part.clock.
 */
#define PROF_MERGE_CLOCK_MAP(X)                                                                    \
    X(SAME, "same")               /* the same kernel's clock: exact */                             \
    X(COLLECTIVES, "collectives") /* collectives end together */                                   \
    X(REALTIME, "realtime")       /* as good as the hosts' wall clocks */                          \
    X(NONE, "none")               /* nothing to compare: both begin at the same time */

enum prof_merge_clock {
#define X(name, text) PROF_MERGE_##name,
    PROF_MERGE_CLOCK_MAP(X)
#undef X
};

struct prof_merge_options {
    struct prof_exchange_options file; /* overwrite, progress (rows written) */
    bool summary; /* no event rows: kernels per second and configuration, processes, trust */
    bool subset;  /* ranks that no file has are left out on purpose */
};

/* What became of one file. */
struct prof_merge_part {
    const char *path; /* as given */
    char *host;       /* NULL = unknown */
    char *ranks;      /* "0-3,7"; NULL = none is known */
    enum prof_merge_clock clock;
    int64_t offset_ns; /* added to its CLOCK_MONOTONIC, at its start */
    double drift;      /* ns added for each second after that, in ns */
    int64_t error_ns;  /* half of the compared collectives agree within; 0 = exact; UNKNOWN */
    uint64_t compared; /* collectives */
    uint64_t rows;     /* events */
    bool twice;        /* left out because it, or a copy of it, is given before */
    bool left_out;     /* nothing of it is in the result; `missing` says why */
    char *missing;     /* what it lacks; NULL = nothing */
};

/* Owned by the result. */
struct prof_merge_result {
    struct prof_merge_part *parts; /* one for each path, in that order */
    size_t count;
    uint64_t rows; /* events */
    bool complete; /* nothing that belongs to the run is known to be missing */
    char **notes;  /* sentences for people, about the whole */
    int note_count;
};

/* Merge the captures at paths[0 ... count-1] into a new capture at `output`, which appears under
 * its name only when it is whole. Event rows of all are interleaved by time; names and launch
 * configurations that are alike are one row; every process keeps its counts. Memory is bounded by
 * the number of files and of names, not of events; at most as many files are open at once as the
 * process may have, further ones go through captures beside `output` that are removed.
 *
 * A file that is cut short or damaged is left out, or holds what could be read; a file that is
 * given twice counts once: both are reported in the parts. Errors, after which nothing is written:
 * those of prof_store_open but PROF_CORRUPT, which stands only when no file can be read;
 * PROF_INVALID two files that hold the same processes, or stopped by the progress function;
 * PROF_EXISTS; PROF_IO and PROF_FULL while writing. */
enum prof_status prof_merge(const char *const *paths, size_t count, const char *output,
                            const struct prof_merge_options *options,
                            struct prof_merge_result *result, struct prof_error *err);

void prof_merge_result_free(struct prof_merge_result *result);

#endif
