/* What `perfkit report --memory` and the page's section on memory show: the memory profile, and the
 * lists that are parts of it. */
#ifndef PERFKIT_REPORT_MEMORY_H
#define PERFKIT_REPORT_MEMORY_H

#include "libprof/include/prof_memory.h"
#include "report/table.h"

/* How many of a place's freed allocations lived so long. */
struct prof_report_lifetime {
    const struct prof_memory_place *place;
    double from_ns, to_ns; /* to: INFINITY for the last */
    int64_t count;
    double share; /* of the place's */
    struct prof_memory_longest longest;
};

/* One of those that held the memory when there was no room. */
struct prof_report_holder {
    const struct prof_memory_failure *failure;
    const struct prof_memory_site *site;
    int64_t bytes;
};

struct prof_report_memory {
    struct prof_memory_profile profile;
    struct prof_memory_site *held;  /* alive at the peak, by bytes */
    struct prof_memory_site *kept;  /* never freed: leaks first, by growth; then by bytes */
    struct prof_memory_site *brief; /* by the time of their calls, then by number */
    size_t held_count, kept_count, brief_count;
    struct prof_report_lifetime *lifetimes;
    size_t lifetime_count;
    struct prof_report_holder *holders; /* of all failures, in order */
    size_t holder_count;
};

/* Into data->usage, freed by prof_report_unload. */
enum prof_status prof_report_load_memory(struct prof_report_data *data, struct prof_error *err);
void prof_report_unload_memory(struct prof_report_data *data);

/* The tables of the memory report, ended by one without a name. Static. */
extern const struct prof_report_table *const prof_report_memory_tables[];

#endif
