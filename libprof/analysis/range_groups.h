/* NVTX ranges grouped as reports list them: by name, domain and style. */
#ifndef PERFKIT_ANALYSIS_RANGE_GROUPS_H
#define PERFKIT_ANALYSIS_RANGE_GROUPS_H

#include "libprof/analysis/range_index.h"

struct prof_range_group {
    const char *name, *domain; /* NULL = unknown; default domain */
    enum prof_range_style style;
};

struct prof_range_groups {
    struct prof_capture *capture; /* set before use */
    struct prof_texts texts;
    struct prof_map by_key;
    PROF_ARRAY(struct prof_range_group) list; /* by group number */
};

/* A prof_range_grouper; `user` is the struct prof_range_groups. */
uint32_t prof_range_group_of(void *user, const struct prof_event_row *row);
void prof_range_groups_free(struct prof_range_groups *groups);

#endif
