/* The history of a baseline as a page of charts: what each session measured, oldest first. */
#ifndef PERFKIT_REPORT_TREND_H
#define PERFKIT_REPORT_TREND_H

#include <stdio.h>

#include "libprof/base/error.h"
#include "libprof/include/prof_compare.h"

struct prof_trend_session {
    int64_t id, saved_s;        /* seconds since 1970 */
    const char *label, *commit; /* NULL = not known */
};

/* All borrowed. */
struct prof_trend {
    const char *name;
    const struct prof_trend_session *sessions; /* oldest first */
    size_t session_count;
    struct prof_runs runs; /* of these sessions, in their order: prof_run.session is the id */
};

/* For prof_report_save_as; `trend`: a struct prof_trend. */
enum prof_status prof_trend_write_html(void *trend, FILE *out, struct prof_error *err);

#endif
