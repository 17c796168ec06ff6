/* The shape of an Nsight Systems SQLite export: its tables, their columns and its numbers. Facts
 * from NVIDIA's reference of the export's schema, and from files of schema 3.20 to 3.25. */
#ifndef PERFKIT_STORE_EXCHANGE_NSYS_H
#define PERFKIT_STORE_EXCHANGE_NSYS_H

#include "libprof/store/exchange/parts.h"

/* globalTid = 1 << 48 | pid << 24 | tid; globalPid the same without tid. */
#define NSYS_VM "281474976710656"
#define NSYS_GLOBAL_PID_MASK "-16777216" /* ~0xffffff, of a signed number */
#define NSYS_NO_EVENT "4294967295"

#define NSYS_SCHEMA_MAJOR 3
#define NSYS_SCHEMA_MINOR 25
#define NSYS_PRODUCT "perfkit"

/* Every table that is written or read: name, and its columns as SQL declares them. Ends with NULL.
 */
struct nsys_table {
    const char *name, *columns;
    bool always; /* also when it has no rows: readers ask for it without looking */
};
extern const struct nsys_table nsys_tables[];

/* What fills a table: a SELECT over a capture with the temporary tables of nsys_export.c, whose
 * columns are the first ones of the table. Ends with NULL. */
struct nsys_source {
    const char *table, *select;
};
extern const struct nsys_source nsys_sources[];

/* ENUM_* tables: (id, name, label). Ends with a NULL table. */
struct nsys_enum {
    const char *table;
    int id;
    const char *name, *label;
};
extern const struct nsys_enum nsys_enums[];

#endif
