/* From what rules found in each phase to the rows of a report: how severe each rule is over the
 * phases, which findings are one fault seen from several sides, and what is read first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/rules/judge.h"
#include "libprof/base/saturate.h"
#include "libprof/include/prof_stack.h"

/* Limits of the severities, see severity_over_phases: expected to save 20 % of the phases' time and
 * 5 % of the run is critical, 5 % and 1 % a warning. What saves at most 1 % is not reported. */
#define CRITICAL 0.20
#define WARNING 0.05
#define INFO 0.01

int prof_compare_subjects(const struct prof_finding *a, const struct prof_finding *b)
{
    return prof_compare_texts(a->subject, b->subject);
}

/* ---- a rule over the phases ------------------------------------------------------------------ */

static bool is_priced(const struct prof_finding *finding)
{
    return finding->bound_ns != PROF_UNKNOWN;
}

static bool is_same_rule(const struct prof_finding *a, const struct prof_finding *b)
{
    return is_priced(a) && is_priced(b) && a->rule == b->rule && a->hint == b->hint &&
           prof_compare_subjects(a, b) == 0;
}

static double share_of(int64_t ns, int64_t of)
{
    return of > 0 ? (double)ns / (double)of : 0;
}

/* How severe a rule's rows `first` to `end` are together: by what they are expected to save (bound
 * x confidence) of the run, and of each phase's own time, averaged with what each saves as its
 * weight. A phase that comes to the other side of a limit in another run changes that little. */
static enum prof_severity severity_over_phases(const struct prof_findings *result, size_t first,
                                               size_t end)
{
    double sum = 0, weighted = 0;
    for (size_t i = first; i < end && !result->rows[i].hint; i++) {
        const struct prof_finding *row = &result->rows[i];
        double expected = (double)row->typical_ns * row->confidence;
        sum += expected;
        weighted += expected * row->confidence * share_of(row->typical_ns, row->typical_phase_ns);
    }
    double of_run = result->typical_ns > 0 ? sum / (double)result->typical_ns : 0;
    double of_phases = sum > 0 ? weighted / sum : 0;
    if (of_phases >= CRITICAL && of_run >= WARNING)
        return PROF_SEVERITY_CRITICAL;
    return of_phases >= WARNING && of_run >= INFO ? PROF_SEVERITY_WARNING : PROF_SEVERITY_INFO;
}

PROF_ORDER(by_rule, struct prof_finding, strcmp(x->rule->id, y->rule->id), PROF_ASCENDING(hint),
           prof_compare_subjects(x, y), PROF_DESCENDING(typical_ns), PROF_DESCENDING(bound_ns),
           PROF_ASCENDING(phase))

/* The rows of a rule become those of its worst phase and of others that are something to the run by
 * themselves; none, where all of them together are not, neither as recorded nor typically. */
static size_t choose_rows_of(struct prof_findings *result, size_t first, size_t end, size_t kept,
                             int64_t window)
{
    struct prof_finding *rows = result->rows;
    int64_t bound = 0, price = 0, typical = 0;
    for (size_t i = first; i < end; i++) {
        bound += rows[i].bound_ns;
        price += (rows[i].hint ? rows[i].alone_ns : rows[i].bound_ns) - rows[i].slowed_ns;
        typical += rows[i].typical_ns;
    }
    if (share_of(price, window) < INFO && share_of(typical, result->typical_ns) < INFO)
        return kept;
    enum prof_severity severity = severity_over_phases(result, first, end);
    severity = severity < rows[first].severity ? severity : rows[first].severity;
    double confidence = rows[first].confidence;
    for (size_t i = first; i < end; i++) {
        int64_t own = (rows[i].hint ? rows[i].alone_ns : rows[i].bound_ns) - rows[i].slowed_ns;
        if (i > first && share_of(own, window) < INFO)
            continue;
        rows[kept] = rows[i];
        rows[kept].severity = severity;
        rows[kept].rule_bound_ns = bound;
        rows[kept].rule_confidence = confidence;
        rows[kept++].phases = end - first;
    }
    return kept;
}

static void choose_rows(struct prof_findings *result, int64_t window)
{
    size_t kept = 0, end;
    if (result->count)
        qsort(result->rows, result->count, sizeof *result->rows, by_rule);
    for (size_t first = 0; first < result->count; first = end) {
        for (end = first + 1;
             end < result->count && is_same_rule(&result->rows[first], &result->rows[end]); end++)
            ;
        if (is_priced(&result->rows[first]))
            kept = choose_rows_of(result, first, end, kept, window);
        else
            result->rows[kept++] = result->rows[first];
    }
    result->count = kept;
}

/* Say in the finding that names the cause what else comes of it. */
static void add_to_chain(struct prof_finding *cause, const struct prof_finding *effect)
{
    static const char begin[] = " With it goes: ";
    char *at = strstr(cause->seen, begin);
    size_t used = strlen(cause->seen), length = strlen(effect->rule->id);
    if (used + sizeof begin + length + 2 >= sizeof cause->seen ||
        (at && strstr(at, effect->rule->id)))
        return;
    if (at)
        cause->seen[--used] = 0; /* its full stop */
    prof_append(cause->seen, sizeof cause->seen, "%s%s.", at ? ", " : begin, effect->rule->id);
}

/* Rows of launches and waits say why the host is late; that it is late elsewhere too, without a
 * reason that anything recorded gives, is the same program's way of launching. */
static bool is_why_host_is_late(const struct prof_finding *finding)
{
    enum prof_advice advice = ((const struct prof_rule *)(const void *)finding->rule)->advice;
    return !finding->names_no_cause &&
           (advice == PROF_ADVICE_LAUNCHES || advice == PROF_ADVICE_WAITS);
}

static bool is_effect(const struct prof_finding *row, const struct prof_finding *cause)
{
    bool claimed = row->same_cause == cause->rule;
    bool unexplained = row->names_no_cause && is_why_host_is_late(cause) &&
                       ((const struct prof_rule *)(const void *)row->rule)->advice;
    return (claimed || unexplained) && !cause->same_cause && cause->severity >= row->severity &&
           cause->rule_bound_ns >= row->rule_bound_ns;
}

/* One that was given less than half of what it claims is the same fault seen from another side: no
 * more than information, where the one that has its time is more. One that still saves more than
 * that one is a fault of its own. */
static void combine_rows(struct prof_findings *result)
{
    for (size_t i = 0; i < result->count; i++) {
        struct prof_finding *row = &result->rows[i];
        for (size_t k = 0; k < result->count && row->severity > PROF_SEVERITY_INFO; k++) {
            struct prof_finding *cause = &result->rows[k];
            if (cause->rule == row->rule || cause->device != row->device || !is_effect(row, cause))
                continue;
            row->severity = PROF_SEVERITY_INFO;
            row->same_cause = cause->rule;
            add_to_chain(cause, row);
        }
    }
}

/* Who reads three findings acts on them. More are shown above info where they are independent:
 * nothing of what they claim was given to those before. Rows are in their order. */
#define SHOWN 3

static void keep_few(struct prof_findings *result)
{
    size_t shown = 0;
    const struct prof_rule_page *last = NULL;
    for (size_t i = 0; i < result->count; i++) {
        struct prof_finding *row = &result->rows[i];
        if (row->severity == PROF_SEVERITY_INFO)
            continue;
        shown += row->rule != last;
        last = row->rule;
        if (shown > SHOWN && is_priced(row) && row->alone_ns > row->bound_ns)
            row->severity = PROF_SEVERITY_INFO;
    }
}

/* What can be expected: a bound that is hardly ever reached stands behind one that is. */
static double expected_ns(const struct prof_finding *finding)
{
    return is_priced(finding) ? (double)finding->rule_bound_ns * finding->rule_confidence : 0;
}

/* Memory that runs out ends the run: it comes first where it is above info. */
static int is_behind(const struct prof_finding *finding)
{
    return is_priced(finding) || finding->severity == PROF_SEVERITY_INFO;
}

/* Rows of a rule by what is printed of them. */
PROF_ORDER(largest_bound_first, struct prof_finding, strcmp(x->rule->id, y->rule->id),
           prof_compare_subjects(x, y), PROF_DESCENDING(bound_ns), by_rule(x, y))

PROF_ORDER(worst_finding_first, struct prof_finding, PROF_DESCENDING(severity),
           PROF_ASCENDING(hint), is_behind(x) - is_behind(y), PROF_ASCENDING(names_no_cause),
           PROF_COMPARE(expected_ns(y), expected_ns(x)), largest_bound_first(x, y))

void prof_order_findings(struct prof_findings *result, int64_t window_ns)
{
    choose_rows(result, window_ns);
    combine_rows(result);
    if (result->count)
        qsort(result->rows, result->count, sizeof *result->rows, worst_finding_first);
    keep_few(result);
    if (result->count)
        qsort(result->rows, result->count, sizeof *result->rows, worst_finding_first);
}

/* ---- lines of the worst places --------------------------------------------------------------- */

/* Which line of the program stands behind the worst places of findings, where host stacks were
 * taken: of the operation or call that begins there, else of the one that ends it. A finding has
 * three places, so one look through the tables for these few moments is all it takes. */

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
