/* The tables of an export of Nsight Systems under one set of names, whatever its version lacks. */
#ifndef PERFKIT_STORE_EXCHANGE_NSYS_VIEWS_H
#define PERFKIT_STORE_EXCHANGE_NSYS_VIEWS_H

#include "libprof/store/exchange/nsys.h"

/* Of the tables in the schema `schema` of the connection make temporary views n_KERNEL, n_RUNTIME
 * and so on: every column that nsys.h knows, NULL where the file lacks it or holds another type. A
 * table that is absent reads as an empty one. nsys_string is the table of names. PROF_FORMAT: no
 * such export; PROF_VERSION: another major version; PROF_CORRUPT: a column without which nothing
 * can be told is missing, or a row of it holds no number. The sentence names table and column. */
enum prof_status nsys_views_make(sqlite3 *db, const char *schema, const char *path,
                                 struct prof_error *err);

/* Is it a table of that schema? Only real ones count: a view of a foreign file could be
 * anything. */
bool nsys_has_table(sqlite3 *db, const char *schema, const char *name);

/* The same for one value of META_DATA_EXPORT; "" when it is not there. */
void nsys_meta(sqlite3 *db, const char *name, char *out, size_t size);

#endif
