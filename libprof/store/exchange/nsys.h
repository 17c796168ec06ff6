/* The shape of an Nsight Systems SQLite export: its tables, their columns and its numbers. Facts
 * from NVIDIA's reference of the export's schema, and from files of schema 3.20 to 3.25. */
#ifndef PERFKIT_STORE_EXCHANGE_NSYS_H
#define PERFKIT_STORE_EXCHANGE_NSYS_H

#include "libprof/store/exchange/parts.h"
#include "libprof/store/exchange/feed.h"

/* globalTid = 1 << 48 | pid << 24 | tid; globalPid the same without tid. */
#define NSYS_VM "281474976710656"
#define NSYS_GLOBAL_PID_MASK "-16777216" /* ~0xffffff, of a signed number */
#define NSYS_NO_EVENT "4294967295"

#define NSYS_SCHEMA_MAJOR 3
#define NSYS_SCHEMA_MINOR 25
#define NSYS_PRODUCT "perfkit"
#define NSYS_CALLERS_UNKNOWN "[callers unknown]" /* a frame of ours, where a stack was cut */

/* The member of NVTX_EVENTS.jsonText of a staged trace that becomes a row of range_inputs. */
#define NSYS_OPERATOR_INPUTS "PyTorch inputs"

/* Every table that is written or read: name, and its columns with blanks between. A column holds
 * whole numbers unless its type follows behind ':'; '!' ends one that is never NULL, '*' one that
 * is never NULL and part of the key. Ends with NULL. */
struct nsys_table {
    const char *name, *columns;
    bool always; /* also when it has no rows: readers use it without checking */
};
extern const struct nsys_table nsys_tables[];

struct nsys_column {
    char name[40], type[8]; /* INTEGER, TEXT, REAL */
    bool needed, in_key;
};
/* The column at *at, which moves to the next; false at the end. */
bool nsys_next_column(const char **at, struct nsys_column *column);

/* Make the table where it is not there yet; `strict` = with NOT NULL. False: an error of the
 * database, or out of memory. */
bool nsys_make_table(sqlite3 *db, const struct nsys_table *table, bool strict);

/* What fills a table: a SELECT over a capture with the temporary tables of nsys_export.c, whose
 * columns are the first ones of the table. Ends with NULL. */
struct nsys_source {
    const char *table, *select;
};
extern const struct nsys_source nsys_sources[];

/* ENUM_* tables: (id, name, label), with what all names begin with; rows are "id name label" with
 * "; " between. Ends with a NULL table. */
struct nsys_enum {
    const char *table, *prefix, *rows;
};
extern const struct nsys_enum nsys_enums[];

/* ---- views of the source (nsys_import.c) ------------------------------------------------------ */

/* The tables of an export of Nsight Systems under one set of names, whatever its version lacks. */

/* Of the tables in the schema `schema` of the connection make temporary views n_KERNEL, n_RUNTIME
 * and so on: every column that nsys.h knows, NULL where the file lacks it or holds another type. A
 * table that is absent reads as an empty one. nsys_string is the table of names. PROF_FORMAT: no
 * such export; PROF_VERSION: another major version; PROF_CORRUPT: a necessary column is missing, or
 * a row of it holds no number. The sentence names table and column. */
enum prof_status nsys_views_make(sqlite3 *db, const char *schema, const char *path,
                                 struct prof_error *err);

/* Is it a table of that schema? Only real ones count: a view of a foreign file could be
 * anything. */
bool nsys_has_table(sqlite3 *db, const char *schema, const char *name);

/* All tables of nsys_tables, in an empty database that other tools' files are laid down in: without
 * NOT NULL, for they know less. False: an error of the database, or out of memory. */
bool nsys_make_tables(sqlite3 *db);

/* The same for one value of META_DATA_EXPORT; "" when it is not there. */
void nsys_meta(sqlite3 *db, const char *name, char *out, size_t size);

/* ---- import of events ------------------------------------------------------------------------ */

/* Events of an Nsight Systems export, of whose tables nsys_import.c has made views, to records. */

#define NSYS_NONE 4294967295 /* "no event", "no stream" */

/* Whose the work of a device is, in a staged trace that does not say */
#define NSYS_MAIN_PROCESS                                                                          \
    "(SELECT CAST(value AS INTEGER) FROM n_META_DATA_EXPORT WHERE name = 'PERFKIT_MAIN_PROCESS')"

/* The device of a synchronization or event: nsys writes 0 for any, so it is the one whose work
 * names the same context in the process. */
#define NSYS_OWNER(row)                                                                            \
    "coalesce((SELECT max(o.device) FROM nsys_owner o WHERE o.pid = " row                          \
    ".globalPid AND o.context = " row ".contextId AND o.device = " row                             \
    ".deviceId), (SELECT min(o.device) FROM nsys_owner o WHERE o.pid = " row                       \
    ".globalPid AND o.context = " row ".contextId), " row ".deviceId)"

/* Memory kinds there are CUPTI's, shifted by one; 7 is unknown. */
static inline uint8_t nsys_memory_kind(int64_t kind)
{
    return kind >= 0 && kind <= 6 ? (uint8_t)(kind + 1) : WIRE_MEMORY_UNKNOWN;
}

/* The number of an event or of its recording; 0 = none */
static inline uint64_t nsys_event_number(sqlite3_stmt *row, int at)
{
    int64_t number = feed_int(row, at);
    return feed_has(row, at) && number != NSYS_NONE && number > 0 ? (uint64_t)number : 0;
}

/* The time of the first event; 0 without events. */
enum prof_status nsys_first_time(sqlite3 *db, const char *path, int64_t *first,
                                 struct prof_error *err);

/* Every event, in the order in which the ingest wants them. */
enum prof_status nsys_import_events(struct feed *feed);

/* nsys_calls.c: API calls with the device records they made */
enum prof_status nsys_import_calls(struct feed *feed);

/* nsys_ranges.c: NVTX */
enum prof_status nsys_import_ranges(struct feed *feed);

/* Run a query and give each row to `row`, which returns false when feed->err is filled. */
enum prof_status nsys_each(struct feed *feed, const char *sql,
                           bool (*row)(struct feed *, sqlite3_stmt *));

/* ---- captures of AMD's rocprofv3, laid down as these tables (rocpd.c) ------------------------ */

/* Do the tables of rocpd stand in the schema `schema` of the connection? */
bool rocpd_is(sqlite3 *db, const char *schema);

/* Read those of the schema `src` of the connection into its schema main, which is empty: the tables
 * of nsys.h. What a capture has no place for is counted in rows PERFKIT_NOTE of META_DATA_EXPORT.
 */
enum prof_status rocpd_stage(sqlite3 *db, const char *path, struct prof_error *err);

#endif
