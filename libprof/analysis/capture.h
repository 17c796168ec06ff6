/* An open capture inside libprof: the small tables in memory, strings on demand, and the helpers
 * that every analysis reads rows with. */
#ifndef PERFKIT_ANALYSIS_CAPTURE_H
#define PERFKIT_ANALYSIS_CAPTURE_H

#include <sqlite3.h>

#include "libprof/analysis/intervals.h"
#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof.h"
#include "libprof/store/store.h"

/* What the values of an enum are called, of a list with rows of value, name and text. */
struct prof_words {
    const char *name, *text;
};
#define PROF_WORDS(value, name, text) {name, text},

struct prof_arena {
    char *block;
    size_t used, size;
    PROF_ARRAY(char *) blocks;
};

/* A copy of `length` bytes with a NUL, freed with the arena; NULL when out of memory. */
const char *prof_arena_copy(struct prof_arena *arena, const char *text, size_t length);
void prof_arena_free(struct prof_arena *arena);

struct prof_text_slot {
    const char *text;
    size_t length;
};

struct prof_capture {
    struct prof_store *store;
    sqlite3 *db;
    struct prof_info info;
    PROF_ARRAY(struct prof_process) processes;
    PROF_ARRAY(struct prof_thread) threads;
    PROF_ARRAY(struct prof_device) devices;
    PROF_ARRAY(struct prof_context) contexts;
    PROF_ARRAY(struct prof_stream) streams;
    PROF_ARRAY(struct prof_config)
    configs;                /* PROF_MOST_CONFIGS, and one that stands for all others */
    bool has_other_configs; /* the last one does */
    int64_t other_kernels;  /* that it stands for */
    PROF_ARRAY(const char *) category_texts;
    struct prof_names categories;   /* (process, domain, category) -> index into category_texts */
    struct prof_arena lookup_texts; /* replaced by prof_refresh */
    struct prof_arena string_texts; /* kept until prof_close */
    struct prof_map strings;        /* string id -> index into string_slots */
    PROF_ARRAY(struct prof_text_slot) string_slots;
    sqlite3_stmt *string_query;
    struct prof_error lost_string; /* why one could not be read; the next prof_query_end fails */
    struct prof_stacks *stacks;    /* read at first use; NULL before */
    struct prof_launch_wrappers *wrappers[PROF_STACK_USES]; /* likewise */
    int transactions; /* open cursors that share one read transaction */
};

/* Launch configurations that are kept apart. A capture with more (code generators give every launch
 * a name of its own) has those in memory on which most time was spent, and one for the rest. */
#define PROF_MOST_CONFIGS 50000

/* Index into capture->configs, that of the rest for one that is not there; SIZE_MAX = unknown. */
size_t prof_config_index(const struct prof_capture *capture, int64_t id);

/* UNKNOWN also for no text. */
enum prof_state prof_state_named(const char *text);

/* Prepare a statement; an error is reported as "cannot read FILE: ...". */
enum prof_status prof_query(struct prof_capture *capture, const char *sql, sqlite3_stmt **statement,
                            struct prof_error *err);

/* The next row: true. False at the end or on an error, which the finish reports. */
static inline bool prof_row(sqlite3_stmt *statement)
{
    return sqlite3_step(statement) == SQLITE_ROW;
}

/* Finalise (NULL allowed); PROF_OK when all steps went well, and every string was read
 * (prof_string). */
enum prof_status prof_query_end(struct prof_capture *capture, sqlite3_stmt *statement,
                                struct prof_error *err);

/* Column values: NULL becomes PROF_UNKNOWN, or 0 for ids. The type is read only where the
 * number is 0: one entry into SQLite instead of two. */
static inline int64_t prof_column_int(sqlite3_stmt *statement, int column)
{
    int64_t value = sqlite3_column_int64(statement, column); /* of NULL: 0 */
    return value || sqlite3_column_type(statement, column) != SQLITE_NULL ? value : PROF_UNKNOWN;
}

/* A length or a number of bytes: below zero in damaged captures only, and as good as unknown. */
static inline int64_t prof_size(int64_t value)
{
    return value < 0 ? PROF_UNKNOWN : value;
}

static inline int64_t prof_column_size(sqlite3_stmt *statement, int column)
{
    return prof_size(prof_column_int(statement, column));
}

/* The same of a row of rollup as a whole: a condition. */
#define PROF_SOUND_ROLLUP "coalesce(min(count, sum, min, max), 0) >= 0"

/* An id in a cell of an ordered row: 0 where it is not known. */
static inline int64_t prof_cell_id(int64_t cell)
{
    return cell == PROF_UNKNOWN ? 0 : cell;
}

/* A code of 0 to 255; 0 for any other value. */
static inline int prof_column_code(sqlite3_stmt *statement, int column)
{
    int64_t value = sqlite3_column_int64(statement, column);
    return value < 0 || value > 255 ? 0 : (int)value;
}

/* Adds a value to a sum where it is known; a sum of no known value is PROF_UNKNOWN. */
static inline void prof_add_known(int64_t *sum, int64_t value)
{
    if (value != PROF_UNKNOWN)
        *sum = *sum == PROF_UNKNOWN ? value : prof_add(*sum, value);
}

static inline int64_t prof_column_id(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_int64(statement, column);
}

/* Share one read transaction between nested users: one consistent state for several statements. */
enum prof_status prof_begin(struct prof_capture *capture, struct prof_error *err);
void prof_end(struct prof_capture *capture);

/* The capture's call stacks, read at first use and kept until prof_close or prof_refresh; NULL when
 * there are none. */
enum prof_status prof_capture_stacks(struct prof_capture *capture, struct prof_stacks **stacks,
                                     struct prof_error *err);

/* Of a path of places, innermost first, those that are nearest to the reader: indices into it, into
 * near[depth]. Returns how many. */
size_t prof_path_near(const struct prof_frame *places, const uint32_t *path, size_t depth,
                      uint32_t *near);

/* Read what prof_info and the lookups return. */
enum prof_status prof_load_lookups(struct prof_capture *capture, struct prof_error *err);
void prof_free_lookups(struct prof_capture *capture);
/* Fill physical, title and full_name of all devices; false when memory ran out. */
bool prof_tell_devices_apart(struct prof_capture *capture);

/* Name of an NVTX category (domain: string id, 0 = default); NULL = unnamed. */
const char *prof_category_name(const struct prof_capture *capture, int64_t process, int64_t domain,
                               int64_t category);

/* Defines NAME_free of a result whose one allocation are its rows. */
#define PROF_FREE_ROWS(name)                                                                       \
    void name##_free(struct name *result)                                                          \
    {                                                                                              \
        free(result->rows);                                                                        \
        *result = (struct name){0};                                                                \
    }

/* ---- occupancy (devices.c) ------------------------------------------------------------------- */

/* How many blocks of a kernel fit on one multiprocessor, and what limits them. */

enum prof_occupancy_limit {
    PROF_LIMIT_THREADS, /* block size */
    PROF_LIMIT_BLOCKS,
    PROF_LIMIT_REGISTERS,
    PROF_LIMIT_SHARED,
};

struct prof_occupancy {
    int64_t blocks; /* per unit */
    double share;   /* of the unit's threads, 0..1 */
    enum prof_occupancy_limit limit;
};

/* CUDA programming guide, "Occupancy": threads per unit, blocks per unit (by compute capability),
 * registers in steps of 256 per warp, shared memory in steps of 128 bytes with 1 KiB per block that
 * the system keeps from 8.0 on. False where the device or the launch reports too little. */
bool prof_occupancy_of(const struct prof_device *device, const struct prof_config *config,
                       struct prof_occupancy *result);

const char *prof_occupancy_limit_text(enum prof_occupancy_limit limit);

/* Blocks (work-groups) of a launch; 0 = unknown. The same, but the threads, which are no fewer,
 * where the runtime chooses the blocks. Threads of a block; 0 = chosen by the runtime. Threads of
 * all blocks. */
int64_t prof_config_blocks(const struct prof_config *config);
int64_t prof_config_most_blocks(const struct prof_config *config);
int64_t prof_config_threads(const struct prof_config *config);
int64_t prof_config_items(const struct prof_config *config);

/* ---- when it recorded ------------------------------------------------------------------------ */

/* When a capture recorded: all the time, or only between marks (--delay, perfkit ctl, ...). */

/* The set of times in which at least one process with events was being recorded. */
struct prof_recorded {
    bool in_part; /* there are marks; else it was recorded all the time and there are no spans */
    struct prof_intervals spans;
};

/* Read the marks; few, so each user reads them anew. Of a filter the process and the device hold
 * (those processes that use it); NULL = all processes. Free the result also after a failure. */
enum prof_status prof_recorded(struct prof_capture *capture, const struct prof_filter *filter,
                               struct prof_recorded *result, struct prof_error *err);
void prof_recorded_free(struct prof_recorded *result);

/* Times in which one process was not recorded. */
struct prof_closed {
    int64_t process;
    struct prof_unrecorded
        span; /* ends at INT64_MAX where neither a mark nor the process ends it */
};

struct prof_closed_list {
    struct prof_closed *data; /* by process, then time */
    size_t count, capacity;
};

/* Of all processes. Free `data`, also after a failure. */
enum prof_status prof_closed_read(struct prof_capture *capture, struct prof_closed_list *list,
                                  struct prof_error *err);

/* How much of [begin, end) was recorded. */
int64_t prof_recorded_length(const struct prof_recorded *recorded, int64_t begin, int64_t end);

#endif
