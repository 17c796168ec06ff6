/* What the first screen of a report tells, in one pass over the device tables: prof_findings and
 * prof_utilisation read the same operations. */
#ifndef PERFKIT_PROF_OVERVIEW_H
#define PERFKIT_PROF_OVERVIEW_H

#include "libprof/include/prof.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The findings, and the utilisation with `gaps` and `buckets` as prof_utilisation takes them; both
 * are what those functions return, and are freed as theirs. Needs 24 bytes for each operation while
 * it runs. utilisation: NULL = not wanted. */
enum prof_status prof_overview(struct prof_capture *capture, const struct prof_filter *filter,
                               size_t gaps, size_t buckets, struct prof_findings *findings,
                               struct prof_utilisation *utilisation, struct prof_error *err);

#ifdef __cplusplus
}
#endif

#endif
