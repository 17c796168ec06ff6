/* Grouping rows by what they are called. The same text may stand under several string ids (merged
 * captures), so groups are by text; ids are only a short cut. */
#ifndef PERFKIT_ANALYSIS_GROUP_H
#define PERFKIT_ANALYSIS_GROUP_H

#include "libprof/analysis/capture.h"

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

/* Numbers for 64-bit keys: 0, 1, 2 ... in order of first sight; *fresh tells a new one.
 * PROF_NO_GROUP: out of memory. */
uint32_t prof_group_number(struct prof_map *map, uint64_t key, bool *fresh);

/* share of a sum, NaN when the sum is 0 or unknown */
double prof_share(int64_t part, int64_t sum);

#endif
