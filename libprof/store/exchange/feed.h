/* The writing side of an import: names, devices, contexts, streams and launch configurations of the
 * source get the ids of records as they are first needed; times become those of the capture. */
#ifndef PERFKIT_STORE_EXCHANGE_FEED_H
#define PERFKIT_STORE_EXCHANGE_FEED_H

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "libprof/store/exchange/parts.h"
#include "libprof/store/ingest.h"

#define FEED_FARTHEST_NS                                                                           \
    ((int64_t)1 << 61) /* a later time is damage: sums of two must not overflow */

struct feed_process {
    int64_t global; /* globalPid of the source */
    uint32_t pid;
    struct foreign_process *scope;
    uint32_t last_id;
    struct prof_map strings, devices, contexts, stacks; /* number there -> id */
    struct prof_names streams, configs, texts;          /* bytes -> id */
    uint32_t first_device;
};

struct feed {
    sqlite3 *source; /* has the views of nsys_import.c */
    const char *path;
    struct prof_ingest *ingest;
    const struct prof_exchange_options *options;
    struct prof_exchange_result *result;
    struct prof_error *err;
    int64_t zero_ns, end_ns;   /* of the source: time 0 of the capture, latest event */
    uint64_t backwards;        /* events that end before they begin */
    uint64_t unnamed;          /* numbers of names that are not there */
    uint64_t correlation;      /* last number given to a pair of call and record */
    struct prof_map by_global; /* globalPid -> index */
    PROF_ARRAY(struct feed_process *) processes;
    sqlite3_stmt *string, *command, *device, *stream, *context, *chain;
};

/* Prepare the look-ups. */
enum prof_status feed_open(struct feed *feed);
void feed_close(struct feed *feed);

/* Time of a record. Unknown (0) stays so. */
uint64_t feed_time(struct feed *feed, int64_t source_ns);
/* An end: 0 = unknown when it lies before its start. */
uint64_t feed_end(struct feed *feed, int64_t start, int64_t end);

/* All return NULL or 0 and fill feed->err when they fail. */
struct feed_process *feed_process(struct feed *feed, int64_t global);
bool feed_string(struct feed *feed, struct feed_process *process, int64_t number, uint32_t *id);
bool feed_text(struct feed *feed, struct feed_process *process, const char *text, uint32_t *id);
bool feed_device(struct feed *feed, struct feed_process *process, int64_t number, uint32_t *id);
bool feed_context(struct feed *feed, struct feed_process *process, int64_t device, int64_t number,
                  uint32_t *id);
bool feed_stream(struct feed *feed, struct feed_process *process, int64_t device, int64_t context,
                 int64_t number, uint32_t *id);
/* `config` without its id and name; `name` is a number of StringIds. */
bool feed_config(struct feed *feed, struct feed_process *process, int64_t name,
                 struct wire_config *config, uint32_t *id);

/* A row of CUDA_CALLCHAINS; *id is 0 when it is not there. */
bool feed_stack(struct feed *feed, struct feed_process *process, int64_t number, uint32_t *id);

/* One record, counted when it is an event; looks for an interruption now and then. */
bool feed_record(struct feed *feed, struct feed_process *process, uint32_t tid, const void *record);

/* Columns. */
static inline bool feed_has(sqlite3_stmt *row, int at)
{
    return sqlite3_column_type(row, at) != SQLITE_NULL;
}
static inline int64_t feed_int(sqlite3_stmt *row, int at)
{
    return sqlite3_column_int64(row, at);
}
/* What does not fit is unknown. */
static inline uint32_t feed_u32(sqlite3_stmt *row, int at)
{
    int64_t value = sqlite3_column_int64(row, at);
    return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

#define FEED_HEAD(record, wire_type, flag_bits, number)                                            \
    (record).head = (struct wire_head)                                                             \
    {                                                                                              \
        sizeof(record), wire_type, (uint8_t)(flag_bits), (number)                                  \
    }

#endif
