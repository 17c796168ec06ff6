/* Which line of the program stands behind the worst places of findings, where host stacks were
 * taken: of the operation or call that begins there, else of the one that ends it. A finding has
 * three places, so one look through the tables for these few moments is all it takes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/rules/place_lines.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stack.h"

#define FRAMES 3 /* of a place: who called a function that only launches tells more than itself */

struct moments {
    PROF_ARRAY(struct prof_place *) places;
    PROF_ARRAY(char) list; /* "12,34,...", NUL at the end */
};

static int64_t end_of(const struct prof_place *place)
{
    return prof_add(place->start_ns, place->duration_ns);
}

static bool add_moment(struct moments *m, int64_t moment)
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
            if (!add_moment(m, (*slot)->start_ns) || !add_moment(m, end_of(*slot)))
                return false;
        }
    }
    return true;
}

static void write_line(struct prof_place *place, struct prof_stacks *stacks, int64_t stack,
                       bool ends)
{
    const struct prof_frame *frames;
    size_t count = prof_stack_near(stacks, stack, &frames), used;
    if (!count || prof_frame_nearness(frames) >= PROF_NEAR_LIBRARY_NAME)
        return; /* a function of a library is no place where a program could be mended */
    place->line_ends_it = ends;
    used = prof_frame_text(frames, place->line, sizeof place->line);
    for (size_t i = 1; i < count && i < FRAMES; i++) {
        size_t length = strlen(frames[i].function) + strlen(" < ");
        if (used + length >= sizeof place->line)
            return; /* cut at a frame, or within the first one */
        used += (size_t)snprintf(place->line + used, sizeof place->line - used, " < %s",
                                 frames[i].function);
    }
}

/* A call and what it asked for: the columns of the queries below. */
struct seen {
    int64_t start, call, call_end, thread, stream, stack;
};

static bool is_itself(const struct prof_place *place, const struct seen *seen)
{
    if (place->start_ns == seen->start && (!place->stream || place->stream == seen->stream))
        return true;
    return place->thread == seen->thread &&
           (place->start_ns == seen->call || end_of(place) == seen->call_end);
}

static bool comes_next(const struct prof_place *place, const struct seen *seen)
{
    int64_t end = end_of(place);
    return end == seen->start || (end == seen->call && place->thread == seen->thread);
}

static void match(const struct moments *m, struct prof_stacks *stacks, const struct seen *seen)
{
    for (size_t i = 0; i < m->places.count; i++) {
        struct prof_place *place = m->places.data[i];
        if ((!place->line[0] || place->line_ends_it) && is_itself(place, seen))
            write_line(place, stacks, seen->stack, false);
        else if (!place->line[0] && comes_next(place, seen))
            write_line(place, stacks, seen->stack, true);
    }
}

static enum prof_status look_through(struct prof_capture *capture, const struct moments *m,
                                     struct prof_stacks *stacks, const char *from,
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
        match(m, stacks, &seen);
    }
    return prof_query_end(capture, row, err);
}

#define CALLED_BY(table)                                                                           \
    "SELECT start, start - api_lead AS call, start - api_lead + api_duration AS call_end, "        \
    "thread, stream, stack FROM " table " WHERE stack IS NOT NULL"

enum prof_status prof_place_lines(struct prof_capture *capture, struct prof_findings *findings,
                                  struct prof_error *err)
{
    static const char *const tables[] = {
        CALLED_BY("kernel"),
        CALLED_BY("transfer"),
        CALLED_BY("memset"),
        CALLED_BY("sync"),
        "SELECT start, start AS call, start + duration AS call_end, thread, NULL AS stream, stack "
        "FROM api_call WHERE stack IS NOT NULL",
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
            status = look_through(capture, &m, stacks, tables[i], err);
        prof_end(capture);
    }
    prof_array_free(&m.places);
    prof_array_free(&m.list);
    return status;
}
