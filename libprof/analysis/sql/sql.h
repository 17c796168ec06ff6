/* Tables that perfkit sql has more than the file: what analyses find, one row each. */
#ifndef PERFKIT_ANALYSIS_SQL_H
#define PERFKIT_ANALYSIS_SQL_H

#include "libprof/analysis/capture.h"
#include "libprof/store/schema.h"

struct prof_computed {
    const char *name, *text;
    const struct prof_view_column *columns; /* .sql: the type */
    enum prof_status (*fill)(struct prof_capture *capture, sqlite3_stmt *insert,
                             struct prof_error *err);
};
/* Ends with a NULL name. */
extern const struct prof_computed prof_computed_tables[];

/* Make the temporary table, empty. */
enum prof_status prof_computed_make(struct prof_capture *capture, const struct prof_computed *table,
                                    struct prof_error *err);
enum prof_status prof_computed_fill(struct prof_capture *capture, const struct prof_computed *table,
                                    struct prof_error *err);

#endif
