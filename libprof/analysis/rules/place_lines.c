/* Which line of the program stands behind the worst places of findings, where host stacks were
 * taken: of the operation or call that begins there, else of the one that ends it. A finding has
 * three places, so one look through the tables for these few moments is all it takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stack.h"

#define FRAMES 3 /* of a place: the one that distinguishes callers, and its callers */

struct moments {
    PROF_ARRAY(struct prof_place *) places;
    PROF_ARRAY(char) list; /* "12,34,...", NUL at the end */
};

static int64_t location_end(const struct prof_place *place)
{
    return prof_add(place->start_ns, place->duration_ns);
}

static bool add_location_moment(struct moments *m, int64_t moment)
{
    char text[32];
    size_t length =
        (size_t)snprintf(text, sizeof text, "%s%lld", m->list.count ? "," : "", (long long)moment);
    if (!prof_array_reserve(&m->list, length + 1))
        return false;
    memcpy(m->list.data + m->list.count, text, length + 1);
    m->list.count += length;
    return true;
}

static bool collect(struct moments *m, struct prof_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        for (size_t k = 0; k < findings->rows[i].place_count; k++) {
            struct prof_place **slot = prof_array_add(&m->places);
            if (!slot)
                return false;
            *slot = &findings->rows[i].places[k];
            if (!add_location_moment(m, (*slot)->start_ns) ||
                !add_location_moment(m, location_end(*slot)))
                return false;
        }
    }
    return true;
}

/* Behind the callers the wrapper that made the call: " < NAME" or " via NAME". */
static void append_function(struct prof_place *place, const char *between, const char *name)
{
    if (strlen(place->line) + strlen(between) + strlen(name) <
        sizeof place->line) /* else cut at a frame */
        prof_append(place->line, sizeof place->line, "%s%s", between, name);
}

static void write_line(struct prof_place *place, struct prof_capture *capture,
                       enum prof_stack_use use, int64_t stack, bool ends)
{
    const struct prof_frame *frames, *via;
    size_t count = prof_stack_callers(capture, use, stack, &frames, &via);
    if (!count || prof_frame_nearness(frames) >= PROF_NEAR_LIBRARY_NAME)
        return; /* a function of a library is no place where a program could be fixed */
    place->line_ends_it = ends;
    prof_frame_text(frames, place->line, sizeof place->line);
    for (size_t i = 1; i < count && i < FRAMES; i++)
        append_function(place, " < ", frames[i].function);
    if (via)
        append_function(place, " via ", via->function);
}

/* A call and what it launched: the columns of the queries below. */
struct seen {
    int64_t start, call, call_end, thread, stream, stack;
};

static bool is_itself(const struct prof_place *place, const struct seen *seen)
{
    if (place->start_ns == seen->start && (!place->stream || place->stream == seen->stream))
        return true;
    return place->thread == seen->thread &&
           (place->start_ns == seen->call || location_end(place) == seen->call_end);
}

static bool comes_next(const struct prof_place *place, const struct seen *seen)
{
    int64_t end = location_end(place);
    return end == seen->start || (end == seen->call && place->thread == seen->thread);
}

static void match(const struct moments *m, struct prof_capture *capture, enum prof_stack_use use,
                  const struct seen *seen)
{
    for (size_t i = 0; i < m->places.count; i++) {
        struct prof_place *place = m->places.data[i];
        if ((!place->line[0] || place->line_ends_it) && is_itself(place, seen))
            write_line(place, capture, use, seen->stack, false);
        else if (!place->line[0] && comes_next(place, seen))
            write_line(place, capture, use, seen->stack, true);
    }
}

static enum prof_status look_through(struct prof_capture *capture, const struct moments *m,
                                     enum prof_stack_use use, const char *from,
                                     struct prof_error *err)
{
    sqlite3_stmt *row;
    const char *list = m->list.data;
    char *sql = sqlite3_mprintf("SELECT start, call, call_end, thread, stream, stack FROM (%s) "
                                "WHERE start IN (%s) OR call IN (%s) OR call_end IN (%s)",
                                from, list, list, list);
    if (!sql)
        return prof_out_of_memory(err);
    enum prof_status status = prof_query(capture, sql, &row, err);
    sqlite3_free(sql);
    if (status)
        return status;
    while (prof_row(row)) {
        struct seen seen = {prof_column_int(row, 0), prof_column_int(row, 1),
                            prof_column_int(row, 2), prof_column_id(row, 3),
                            prof_column_id(row, 4),  prof_column_id(row, 5)};
        match(m, capture, use, &seen);
    }
    return prof_query_end(capture, row, err);
}

#define CALLED_BY(table)                                                                           \
    "SELECT start, start - api_lead AS call, start - api_lead + api_duration AS call_end, "        \
    "thread, stream, stack FROM " table " WHERE stack IS NOT NULL"

enum prof_status prof_place_lines(struct prof_capture *capture, struct prof_findings *findings,
                                  struct prof_error *err)
{
    static const struct {
        enum prof_stack_use use;
        const char *from;
    } tables[] = {
        {PROF_STACK_WORK, CALLED_BY("kernel")},
        {PROF_STACK_WORK, CALLED_BY("transfer")},
        {PROF_STACK_WORK, CALLED_BY("memset")},
        {PROF_STACK_WAITS, CALLED_BY("sync")},
        {PROF_STACK_CALLS, "SELECT start, start AS call, start + duration AS call_end, thread, "
                           "NULL AS stream, stack FROM api_call WHERE stack IS NOT NULL"},
    };
    struct prof_stacks *stacks;
    struct moments m = {0};
    enum prof_status status = prof_capture_stacks(capture, &stacks, err);
    if (status || !stacks)
        return status;
    if (!collect(&m, findings))
        status = prof_out_of_memory(err);
    if (!status && m.places.count)
        status = prof_begin(capture, err);
    if (!status && m.places.count) {
        for (size_t i = 0; !status && i < sizeof tables / sizeof tables[0]; i++)
            status = look_through(capture, &m, tables[i].use, tables[i].from, err);
        prof_end(capture);
    }
    prof_array_free(&m.places);
    prof_array_free(&m.list);
    return status;
}
