/* prof_activities.h: what is neither kernel, copy, call nor range, by kind.
 * Conventions as in prof.h. */
#ifndef PERFKIT_PROF_ACTIVITIES_H
#define PERFKIT_PROF_ACTIVITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/include/prof_summaries.h"

#ifdef __cplusplus
extern "C" {
#endif

enum prof_activity {
    PROF_ACTIVITY_GRAPHS,   /* executions of whole CUDA graphs; kind = graph id (of its process) */
    PROF_ACTIVITY_OVERHEAD, /* time the driver or the tools took from the program; overhead.kind */
    PROF_ACTIVITY_MIGRATIONS, /* unified memory; migration.kind */
    PROF_ACTIVITY_JIT,        /* device code compiled at run time; jit.operation */
    PROF_ACTIVITIES
};

struct prof_activity_row {
    int64_t kind;
    int64_t process;       /* id, for graphs; else 0 */
    const char *kind_text; /* words for the kind; NULL for graphs */
    struct prof_spread duration_ns;
    int64_t moments; /* of them without a duration (page faults); not in duration_ns */
    int64_t count;   /* all of them */
    int64_t bytes;   /* moved or mapped; PROF_UNKNOWN where none has any */
    int64_t faults;  /* page faults; PROF_UNKNOWN where none has any */
    double share;
    double wall_share; /* plain sum over prof_wall_ns: above 1 where they overlap */
};

struct prof_activity_summary {
    struct prof_activity_row *rows; /* by sum of duration, largest first */
    size_t count;
    int64_t events;
    int64_t listed_ns, wall_ns;
};

/* One family of activities by kind. filter->kernel excludes all of them. */
enum prof_status prof_activity_summary(struct prof_capture *capture,
                                       const struct prof_filter *filter, enum prof_activity which,
                                       struct prof_activity_summary *result,
                                       struct prof_error *err);
void prof_activity_summary_free(struct prof_activity_summary *result);

/* Words for overhead.kind, migration.kind and jit.operation; never NULL. */
const char *prof_overhead_kind_text(int kind);
const char *prof_migration_kind_text(int kind);
const char *prof_jit_operation_text(int operation);

#ifdef __cplusplus
}
#endif

#endif
