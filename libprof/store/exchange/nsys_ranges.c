/* NVTX of an Nsight Systems export. A capture wants pushes and pops; an export has ranges with both
 * ends, so per thread and domain the ends that are still to come are kept. A range that outlives
 * the one around it cannot have been pushed: it becomes a start/end range. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/exchange/nsys.h"
#include "libprof/wire/operator_name.h"

enum {
    START,
    END,
    TYPE,
    TID,
    END_TID,
    TEXT,
    TEXT_ID,
    DOMAIN,
    CATEGORY,
    COLOR,
    INTEGER,
    REAL,
    RANGE_ID,
    FIELDS,
    OPERATOR
};

static const char ranges_sql[] =
    "SELECT start, end, eventType, globalTid, endGlobalTid, text, textId, coalesce(domainId, 0), "
    "category, color, "
    "coalesce(int64Value, uint64Value, int32Value, uint32Value), coalesce(doubleValue, "
    "floatValue), rangeId, CASE WHEN json_valid(jsonText) THEN jsonText END, CASE WHEN "
    "coalesce(text, (SELECT value FROM nsys_string WHERE id = textId)) LIKE '%, op_id = %' THEN "
    "coalesce(text, (SELECT value FROM nsys_string WHERE id = textId)) END FROM "
    "n_NVTX_EVENTS WHERE eventType IN (34, 59, 60, 70, 71) AND globalTid NOT NULL "
    "ORDER BY start, coalesce(end, 9223372036854775807) DESC, eventType";

#define NEVER INT64_MAX

struct lane { /* a thread in a domain */
    int64_t tid, domain;
    struct feed_process *process;
    uint32_t domain_id;
    PROF_ARRAY(int64_t) ends; /* of the open ranges, outermost first */
};

struct lanes {
    struct feed *feed;
    struct prof_names by_key;
    PROF_ARRAY(struct lane) list;
    uint64_t last_range;  /* number given to a start/end range */
    sqlite3_stmt *fields; /* of a payload; NULL until the first */
};

/* Domain numbers are each process's own: their names are rows of type 75. */
static bool domain_name(struct feed *feed, struct feed_process *process, int64_t domain,
                        uint32_t *id)
{
    PROF_FINALIZED sqlite3_stmt *row = NULL;
    *id = 0;
    if (!domain)
        return true;
    enum prof_status status =
        exchange_prepare(feed->source, feed->path,
                         "SELECT coalesce(text, (SELECT value FROM nsys_string WHERE id = textId)) "
                         "FROM n_NVTX_EVENTS WHERE eventType = 75 "
                         "AND domainId = ?1 AND (globalTid & 281474959933440) = ?2 LIMIT 1",
                         &row, feed->err);
    if (status)
        return false;
    sqlite3_bind_int64(row, 1, domain);
    sqlite3_bind_int64(row, 2, process->global & 281474959933440); /* the pid's bits */
    char number[40];
    snprintf(number, sizeof number, "domain %lld", (long long)domain);
    const char *name =
        sqlite3_step(row) == SQLITE_ROW ? (const char *)sqlite3_column_text(row, 0) : NULL;
    return feed_text(feed, process, name ? name : number, id);
}

static struct lane *lane_of(struct lanes *lanes, int64_t tid, int64_t domain)
{
    const int64_t key[] = {tid, domain};
    uint32_t *known = prof_names_get(&lanes->by_key, (const char *)key, sizeof key);
    if (known)
        return &lanes->list.data[*known];
    struct feed_process *process = feed_process(lanes->feed, tid & ~(int64_t)0xffffff);
    uint32_t id;
    if (!process || !domain_name(lanes->feed, process, domain, &id))
        return NULL;
    struct lane *lane = prof_array_add(&lanes->list);
    if (!lane || !prof_names_put(&lanes->by_key, (const char *)key, sizeof key,
                                 (uint32_t)lanes->list.count - 1)) {
        lanes->list.count -= lane != NULL;
        prof_out_of_memory(lanes->feed->err);
        return NULL;
    }
    *lane = (struct lane){.tid = tid, .domain = domain, .process = process, .domain_id = id};
    return lane;
}

/* Pops of what ends at `until` or before. Ranges without an end stay open to the end of the
 * capture. */
static bool pop_until(struct feed *feed, struct lane *lane, int64_t until)
{
    while (lane->ends.count && lane->ends.data[lane->ends.count - 1] <= until &&
           lane->ends.data[lane->ends.count - 1] != NEVER) {
        struct wire_range_end pop = {.time = feed_time(feed, lane->ends.data[--lane->ends.count])};
        FEED_HEAD(pop, WIRE_RANGE_POP, 0, lane->domain_id);
        if (!feed_record(feed, lane->process, (uint32_t)(lane->tid & 0xffffff), &pop))
            return false;
        feed->result->rows--; /* counted with its push */
    }
    return true;
}

static void set_payload(sqlite3_stmt *row, struct wire_range *range)
{
    double real = sqlite3_column_double(row, REAL);
    if (feed_has(row, INTEGER)) {
        range->head.flags = WIRE_PAYLOAD_I64;
        range->payload = (uint64_t)feed_int(row, INTEGER);
    } else if (feed_has(row, REAL)) {
        range->head.flags = WIRE_PAYLOAD_F64;
        memcpy(&range->payload, &real, sizeof real);
    }
}

static bool name_range(struct feed *feed, struct feed_process *process, sqlite3_stmt *row,
                       uint32_t *id)
{
    if (feed_has(row, OPERATOR)) {
        const char *text = (const char *)sqlite3_column_text(row, OPERATOR);
        struct wire_operator_name name = wire_operator_name(text, strlen(text));
        char *alone = strndup(text, name.length);
        bool ok = alone && feed_text(feed, process, alone, id);
        if (!alone)
            prof_out_of_memory(feed->err);
        free(alone);
        return ok;
    }
    if (feed_has(row, TEXT_ID))
        return feed_string(feed, process, feed_int(row, TEXT_ID), id);
    return feed_text(feed, process, (const char *)sqlite3_column_text(row, TEXT), id);
}

static bool put_range_field(struct lanes *lanes, struct lane *lane, uint64_t id, const char *name,
                      uint8_t type, uint64_t value)
{
    struct feed *feed = lanes->feed;
    struct wire_field field = {.id = id, .value = value, .domain = lane->domain_id};
    uint32_t number = 0;
    if (name && !feed_text(feed, lane->process, name, &number))
        return false;
    FEED_HEAD(field, WIRE_FIELD, type, number);
    bool ok = feed_record(feed, lane->process, (uint32_t)(lane->tid & 0xffffff), &field);
    feed->result->rows -= ok;
    return ok;
}

/* What PyTorch writes behind the name of an operator. */
static bool put_operator(struct lanes *lanes, struct lane *lane, sqlite3_stmt *range, uint64_t id)
{
    const char *text = (const char *)sqlite3_column_text(range, OPERATOR);
    if (!text)
        return true;
    struct wire_operator_name name = wire_operator_name(text, strlen(text));
    char inputs[WIRE_INPUTS_BYTES];
    uint32_t number;
    if (name.has_sequence &&
        !put_range_field(lanes, lane, id, "seq", WIRE_PAYLOAD_I64, name.sequence))
        return false;
    if (!name.sizes)
        return true;
    wire_operator_inputs(&name, inputs);
    return feed_text(lanes->feed, lane->process, inputs, &number) &&
           put_range_field(lanes, lane, id, NULL, WIRE_PAYLOAD_INPUTS, number);
}

/* What the range's payload says, by name; values within values are left out. */
static bool put_fields(struct lanes *lanes, struct lane *lane, sqlite3_stmt *range, uint64_t id)
{
    struct feed *feed = lanes->feed;
    if (!feed_has(range, FIELDS))
        return put_operator(lanes, lane, range, id);
    if (!lanes->fields &&
        exchange_prepare(feed->source, feed->path,
                         "SELECT key, atom FROM json_each(?1) WHERE atom NOT NULL AND "
                         "typeof(key) = 'text'",
                         &lanes->fields, feed->err))
        return false;
    sqlite3_stmt *row = lanes->fields;
    bool ok = true;
    sqlite3_bind_value(row, 1, sqlite3_column_value(range, FIELDS));
    while (ok && sqlite3_step(row) == SQLITE_ROW) {
        int type = sqlite3_column_type(row, 1);
        const char *key = (const char *)sqlite3_column_text(row, 0);
        bool inputs = type == SQLITE_TEXT && !strcmp(key, NSYS_OPERATOR_INPUTS);
        double real = sqlite3_column_double(row, 1);
        uint64_t value = (uint64_t)feed_int(row, 1);
        uint32_t text = 0;
        if (type == SQLITE_TEXT) {
            ok = feed_text(feed, lane->process, (const char *)sqlite3_column_text(row, 1), &text);
            value = text;
        } else if (type == SQLITE_FLOAT) {
            memcpy(&value, &real, sizeof real);
        }
        ok = ok && put_range_field(lanes, lane, id, inputs ? NULL : key,
                             inputs                   ? WIRE_PAYLOAD_INPUTS
                             : type == SQLITE_TEXT    ? WIRE_PAYLOAD_TEXT
                             : type == SQLITE_INTEGER ? WIRE_PAYLOAD_I64
                                                      : WIRE_PAYLOAD_F64,
                             value);
    }
    sqlite3_reset(row);
    return ok;
}

static bool put_started(struct lanes *lanes, struct lane *lane, sqlite3_stmt *row,
                        struct wire_range *range, int64_t end)
{
    struct feed *feed = lanes->feed;
    uint32_t tid = (uint32_t)(lane->tid & 0xffffff);
    range->id = ++lanes->last_range;
    range->head.type = WIRE_RANGE_START;
    if (!feed_record(feed, lane->process, tid, range) || !put_fields(lanes, lane, row, range->id))
        return false;
    if (end == NEVER)
        return true;
    struct wire_range_end ended = {.time = feed_time(feed, end), .id = range->id};
    FEED_HEAD(ended, WIRE_RANGE_END, 0, lane->domain_id);
    feed->result->rows--;
    return feed_record(feed, lane->process,
                       feed_has(row, END_TID) ? (uint32_t)(feed_int(row, END_TID) & 0xffffff) : tid,
                       &ended);
}

static bool put_pushed(struct lanes *lanes, struct lane *lane, sqlite3_stmt *row,
                       struct wire_range *range, int64_t end)
{
    size_t open = lane->ends.count;
    if (open && end > lane->ends.data[open - 1])
        return put_started(lanes, lane, row, range, end);
    int64_t *slot = prof_array_add(&lane->ends);
    if (!slot) {
        prof_out_of_memory(lanes->feed->err);
        return false;
    }
    *slot = end;
    range->head.type = WIRE_RANGE_PUSH;
    return feed_record(lanes->feed, lane->process, (uint32_t)(lane->tid & 0xffffff), range) &&
           put_fields(lanes, lane, row, 0);
}

static bool put_range(struct lanes *lanes, sqlite3_stmt *row)
{
    struct feed *feed = lanes->feed;
    int64_t start = feed_int(row, START), type = feed_int(row, TYPE);
    struct lane *lane = lane_of(lanes, feed_int(row, TID), feed_int(row, DOMAIN));
    struct wire_range range = {.time = feed_time(feed, start),
                               .category = feed_u32(row, CATEGORY),
                               .color = (uint32_t)feed_int(row, COLOR),
                               .has_color = feed_has(row, COLOR)};
    if (!lane)
        return false;
    FEED_HEAD(range, WIRE_MARK, 0, lane->domain_id);
    set_payload(row, &range);
    if (!name_range(feed, lane->process, row, &range.message) || !pop_until(feed, lane, start))
        return false;
    if (type == 34)
        return feed_record(feed, lane->process, (uint32_t)(lane->tid & 0xffffff), &range);
    int64_t end = feed_has(row, END) ? feed_int(row, END) : NEVER;
    if (end != NEVER && !feed_end(feed, start, end))
        end = NEVER;
    return type == 60 || type == 71 ? put_started(lanes, lane, row, &range, end)
                                    : put_pushed(lanes, lane, row, &range, end);
}

static bool put_category(struct feed *feed, sqlite3_stmt *row)
{
    struct feed_process *process = feed_process(feed, feed_int(row, 0) & ~(int64_t)0xffffff);
    struct wire_name name = {.object = feed_u32(row, 1)};
    FEED_HEAD(name, WIRE_NAME, 0, WIRE_NAMED_CATEGORY);
    return process && domain_name(feed, process, feed_int(row, 2), &name.domain) &&
           feed_text(feed, process, (const char *)sqlite3_column_text(row, 3), &name.name) &&
           foreign_feed(feed->ingest, process->scope, 0, &name.head);
}

enum prof_status nsys_import_ranges(struct feed *feed)
{
    struct lanes lanes = {.feed = feed};
    sqlite3_stmt *rows = NULL;
    enum prof_status status =
        exchange_prepare(feed->source, feed->path, ranges_sql, &rows, feed->err);
    int rc = SQLITE_DONE;
    while (!status && (rc = sqlite3_step(rows)) == SQLITE_ROW)
        status = put_range(&lanes, rows) ? PROF_OK : feed->err->status;
    if (!status && rc != SQLITE_DONE)
        status = exchange_sql_fail(feed->source, "read", feed->path, feed->err);
    sqlite3_finalize(rows);
    sqlite3_finalize(lanes.fields);
    for (size_t i = 0; i < lanes.list.count; i++) {
        if (!status && !pop_until(feed, &lanes.list.data[i], NEVER - 1))
            status = feed->err->status;
        prof_array_free(&lanes.list.data[i].ends);
    }
    prof_array_free(&lanes.list);
    prof_names_free(&lanes.by_key);
    if (!status)
        status = nsys_each(
            feed,
            "SELECT globalTid, category, coalesce(domainId, 0), coalesce(text, (SELECT value FROM "
            "nsys_string WHERE id = textId)) FROM n_NVTX_EVENTS WHERE eventType = 33 AND globalTid "
            "NOT NULL AND category NOT NULL",
            put_category);
    return status;
}
