/* The views of a capture: its events with names in place of row numbers, for people who write SQL.
 * Columns of times and sizes say their unit in their names; what is unknown is NULL as in the
 * tables. docs/reference/format.md is made from this list, and the file has the texts as comments.
 * Also the script that makes the tables and views of a file.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/base/error.h"
#include "libprof/store/schema.h"

#define MEMORY(kind)                                                                               \
    "CASE " kind " WHEN 1 THEN 'pageable' WHEN 2 THEN 'pinned' WHEN 3 THEN 'device' WHEN 4 THEN "  \
    "'array' WHEN 5 THEN 'managed' WHEN 6 THEN 'device static' WHEN 7 THEN 'managed static' WHEN " \
    "8 THEN 'SVM' WHEN 9 THEN 'pool' END"
#define COPY(kind)                                                                                 \
    "CASE " kind " WHEN 1 THEN 'HtoD' WHEN 2 THEN 'DtoH' WHEN 3 THEN 'HtoA' WHEN 4 THEN 'AtoH' "   \
    "WHEN 5 THEN 'AtoA' WHEN 6 THEN 'AtoD' WHEN 7 THEN 'DtoA' WHEN 8 THEN 'DtoD' WHEN 9 THEN "     \
    "'HtoH' WHEN 10 THEN 'PtoP' WHEN 11 THEN 'map' WHEN 12 THEN 'unmap' WHEN 13 THEN 'migrate' "   \
    "ELSE 'unknown' END"
#define XYZ(c, what) c "." what "_x || 'x' || " c "." what "_y || 'x' || " c "." what "_z"
#define STRING(id) "(SELECT value FROM string WHERE string.id = " id ")"

/* Columns that events have in common; the rows are e, their stream s, device d, thread t and
 * process p. */
#define ID(table)                                                                                  \
    {                                                                                              \
        "id", "e.id", "row of `" table "`"                                                         \
    }
#define TIMES                                                                                      \
    {"start_ns", "e.start", "since capture start; NULL = never seen to start"},                    \
    {                                                                                              \
        "duration_ns", "e.duration", "from start to end; NULL = not seen to end"                   \
    }
#define PLACE                                                                                      \
    {"pid", "p.pid", "process"}, {"tid", "t.tid", "thread that made the call; NULL = unknown"},    \
        {"device", "d.ordinal", "number of the device in its process"},                            \
        {"device_name", "d.name", "as the driver names it"},                                       \
    {                                                                                              \
        "stream", "s.native", "the API's number of the stream or queue"                            \
    }
#define CALL                                                                                       \
    {"call", STRING("e.api_name"), "API call that launched it; NULL = unknown"},                   \
        {"call_start_ns",                                                                          \
         "CASE WHEN e.start IS NULL THEN e.api_lead ELSE e.start - e.api_lead "                    \
         "END",                                                                                    \
         "since capture start"},                                                                   \
        {"call_duration_ns", "e.api_duration", "how long that call took"},                         \
        {"launch_latency_ns", "CASE WHEN e.start NOT NULL THEN e.api_lead END",                    \
         "from the call's start to the start on the device"},                                      \
        {"graph_node", "e.graph_node", "of a replayed CUDA graph, or NULL"},                       \
        {"correlation", "e.correlation", "number shared with the call that launched the graph"},   \
    {                                                                                              \
        "stack", "e.stack", "row of `stack`, or NULL"                                              \
    }
#define FROM(table)                                                                                \
    table " e LEFT JOIN stream s ON s.id = e.stream LEFT JOIN device d ON d.id = s.device LEFT "   \
          "JOIN process p ON p.id = s.process LEFT JOIN thread t ON t.id = e.thread"
#define OF_THREAD                                                                                  \
    {"pid", "p.pid", "process"}, {"tid", "t.tid", "thread"},                                       \
    {                                                                                              \
        "thread", "t.name", "its name, or NULL"                                                    \
    }
#define FROM_THREAD(table)                                                                         \
    table " e LEFT JOIN thread t ON t.id = e.thread LEFT JOIN process p ON p.id = t.process"

static const struct prof_view_column kernels[] = {
    ID("kernel"),
    {"name", STRING("coalesce(c.demangled, c.name)"), "readable where the API gives a mangled one"},
    TIMES,
    PLACE,
    {"grid", XYZ("c", "grid"), "blocks, as 264x1x1"},
    {"block", XYZ("c", "block"), "threads; NULL = chosen by the runtime"},
    {"registers", "c.registers", "per thread"},
    {"shared_bytes", "c.shared_static + c.shared_dynamic", "per block"},
    CALL,
    {0},
};

/* Memcpys have both ends, memsets the one they write. */
static const struct prof_view_column copies[] = {
    {"source", "'transfer'", "table of the row"},
    ID("transfer"),
    {"kind", COPY("e.kind"), "HtoD, DtoH, DtoD, ..., or memset"},
    TIMES,
    {"bytes", "e.bytes", "copied, or set"},
    {"from_memory", MEMORY("e.source_kind"), "pageable, pinned, device, managed, ...; or NULL"},
    {"to_memory", MEMORY("e.target_kind"), "likewise"},
    {"blocking", "e.blocking", "1 = the call waited, 0 = it did not, NULL = unknown"},
    PLACE,
    CALL,
    {0},
};
static const struct prof_view_column memsets[] = {
    {"source", "'memset'", ""},
    ID("memset"),
    {"kind", "'memset'", ""},
    TIMES,
    {"bytes", "e.bytes", ""},
    {"from_memory", "NULL", ""},
    {"to_memory", MEMORY("e.memory_kind"), ""},
    {"blocking", "NULL", ""},
    PLACE,
    CALL,
    {0},
};

static const struct prof_view_column calls[] = {
    {"source", "e.place", "table of the row that holds the call"},
    {"id", "e.id", "row of that table"},
    {"name", STRING("e.name"), "API function"},
    {"start_ns", "e.start", "since capture start"},
    {"duration_ns", "e.duration", "from call to return"},
    OF_THREAD,
    {"result", "e.result", "the API's code; NULL = success"},
    {0},
};

static const struct prof_view_column synchronizations[] = {
    ID("sync"),
    {"kind",
     "CASE e.kind WHEN 1 THEN 'event' WHEN 2 THEN 'stream waits for event' WHEN 3 THEN 'stream' "
     "WHEN 4 THEN 'context' ELSE 'unknown' END",
     "what was waited for"},
    TIMES,
    {"call", STRING("e.api_name"), "API call, or NULL"},
    {"call_duration_ns", "e.api_duration", "how long the host was blocked in it"},
    PLACE,
    {"stack", "e.stack", "row of `stack`, or NULL"},
    {0},
};

static const struct prof_view_column ranges[] = {
    ID("range"),
    {"name", STRING("e.name"), "text given with the range"},
    {"domain", STRING("e.domain"), "NVTX domain; NULL = the default one"},
    {"start_ns", "e.start", "since capture start"},
    {"duration_ns", "e.duration", "NULL = still open at the end of the capture"},
    {"depth", "e.depth",
     "nesting in its thread and domain, 0 = outermost; NULL = a start/end "
     "range"},
    {"category",
     "(SELECT c.name FROM category c WHERE c.process = t.process AND c.domain IS e.domain AND "
     "c.category = e.category)",
     "or NULL"},
    {"payload", "e.payload", "number given with the range, or NULL"},
    OF_THREAD,
    {0},
};

static const struct prof_view_column allocations[] = {
    ID("allocation"),
    {"kind", MEMORY("e.kind"), "device, pinned, managed, ..."},
    {"bytes", "e.bytes", "allocated"},
    {"start_ns", "e.start", "since capture start"},
    {"end_ns", "e.\"end\"", "when it was freed; NULL = never"},
    {"duration_ns", "e.\"end\" - e.start", "how long it lived; NULL = to the end"},
    {"address", "e.address", "or NULL"},
    {"pid", "p.pid", "process"},
    {"tid", "t.tid", "thread that allocated"},
    {"device", "d.ordinal", "number of the device in its process; NULL = host memory"},
    {"device_name", "d.name", "as the driver names it"},
    {"stack", "e.stack", "row of `stack`, or NULL"},
    {0},
};

const struct prof_view prof_views[] = {
    {.name = "api_all",
     .text = "Every API call once, those that live in a device record's row too.",
     .select =
         "SELECT start, duration, thread, name, result, source, correlation, 'api_call' AS place, "
         "id "
         "FROM api_call UNION ALL "
         "SELECT CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END, api_duration, "
         "thread, "
         "api_name, NULL, NULL, NULL, 'kernel', id FROM kernel WHERE api_name NOT NULL UNION ALL "
         "SELECT CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END, api_duration, "
         "thread, "
         "api_name, NULL, NULL, NULL, 'transfer', id FROM transfer WHERE api_name NOT NULL UNION "
         "ALL "
         "SELECT CASE WHEN start IS NULL THEN api_lead ELSE start - api_lead END, api_duration, "
         "thread, "
         "api_name, NULL, NULL, NULL, 'memset', id FROM memset WHERE api_name NOT NULL UNION ALL "
         "SELECT start - api_lead, api_duration, thread, "
         "api_name, NULL, NULL, NULL, 'sync', id FROM sync WHERE api_name NOT NULL"},
    {"kernels",
     "Kernel executions with names.",
     NULL,
     {{kernels, FROM("kernel") " LEFT JOIN "
                               "launch_config c ON c.id = e.config"}}},
    {"transfers",
     "Memcpys and memsets with names.",
     NULL,
     {{copies, FROM("transfer")}, {memsets, FROM("memset")}}},
    {"calls", "API calls with names, each once.", NULL, {{calls, FROM_THREAD("api_all")}}},
    {"synchronizations",
     "Waits of the host, and of a stream for an event, with names.",
     NULL,
     {{synchronizations, FROM("sync")}}},
    {"ranges", "NVTX ranges with names.", NULL, {{ranges, FROM_THREAD("range")}}},
    {"allocations",
     "Allocations with names.",
     NULL,
     {{allocations, "allocation e LEFT JOIN process p ON p.id = e.process LEFT JOIN thread t ON "
                    "t.id = e.thread LEFT JOIN device d ON d.id = e.device"}}},
    {0},
};

/* Column texts go into the file as SQL comments: `.schema` of the
 * sqlite3 shell then explains the capture without perfkit. */
char *prof_schema_script(void)
{
    char *script = NULL;
    size_t size = 0;
    FILE *out = prof_open_memory(&script, &size);
    if (!out)
        return NULL;
    for (const struct prof_table *t = prof_tables; t->name; t++) {
        fprintf(out, "CREATE TABLE \"%s\" ( -- %s\n", t->name, t->text);
        for (const struct prof_column *c = t->columns; c->name; c++) {
            fprintf(out, "  \"%s\"%s%s%s -- ", c->name, *c->type ? " " : "", c->type,
                    c[1].name ? "," : "");
            bool has_unit = prof_column_print_unit(c, out);
            fprintf(out, "%s%s\n", has_unit && *c->text ? ", " : "", c->text);
        }
        fprintf(out, ");\n");
    }
    bool ok = true;
    for (const struct prof_view *v = prof_views; v->name; v++) {
        char *select = prof_view_select(v);
        ok = ok && select;
        fprintf(out, "CREATE VIEW \"%s\" AS -- %s\n%s;\n", v->name, v->text, select ? select : "");
        sqlite3_free(select);
    }
    if (!prof_close_stream(out) || !ok) {
        free(script);
        return NULL;
    }
    return script;
}
