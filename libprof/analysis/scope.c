/* Filters; see scope.h. Conditions are tested in C on the few columns every query reads anyway:
 * event tables carry no index, so SQL could not skip rows either. */
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/group.h"
#include "libprof/analysis/events.h"
#include "libprof/analysis/scope.h"
#include "libprof/base/utf8.h"

/* ---- kernels by name ------------------------------------------------------------------------- */

struct choice {
    struct prof_scope *scope;
    const regex_t *pattern; /* NULL = none */
};

static bool is_chosen(const struct choice *choice, const char *name)
{
    const char *part = choice->scope->filter.kernel;
    return name && (!part || strstr(name, part)) &&
           (!choice->pattern || !regexec(choice->pattern, name, 0, NULL, 0));
}

static bool choose_other(void *user, sqlite3_stmt *row)
{
    const struct choice *choice = user;
    return !is_chosen(choice, (const char *)sqlite3_column_text(row, 1)) ||
           prof_map_put(&choice->scope->other_configs, (uint64_t)prof_column_id(row, 0), 1);
}

static enum prof_status choose_scope_configs(struct prof_capture *capture,
                                             const struct choice *choice, struct prof_error *err)
{
    for (size_t i = 0; i < capture->configs.count; i++)
        choice->scope->configs[i] = is_chosen(choice, capture->configs.data[i].name);
    if (!capture->has_other_configs)
        return PROF_OK;
    return prof_scan(capture,
                     "SELECT launch_config.id, coalesce(shown.value, given.value) FROM "
                     "launch_config LEFT JOIN string AS given ON given.id = name LEFT JOIN string "
                     "AS shown ON shown.id = demangled WHERE launch_config.id NOT IN (SELECT id "
                     "FROM temp.kept_config)",
                     choose_other, (void *)(uintptr_t)choice, err);
}

static enum prof_status compile_kernel_pattern(const char *pattern, regex_t *out,
                                               struct prof_error *err)
{
    char why[128];
    const char *excess = prof_pattern_excess(pattern);
    if (excess)
        return prof_fail(err, PROF_INVALID, "cannot choose kernels by '%.80s': %s", pattern,
                         excess);
    int code = regcomp(out, pattern, REG_EXTENDED | REG_NOSUB);
    if (!code)
        return PROF_OK;
    regerror(code, out, why, sizeof why);
    return prof_fail(err, PROF_INVALID,
                     "cannot choose kernels by '%.80s': %s: put a backslash before characters that "
                     "mean themselves",
                     pattern, why);
}

static enum prof_status open_kernels(struct prof_scope *scope, struct prof_capture *capture,
                                     struct prof_error *err)
{
    regex_t pattern;
    const char *text = scope->filter.kernel_pattern;
    if (!text && !scope->filter.kernel)
        return PROF_OK;
    scope->configs = calloc(scope->capture->configs.count + 1, sizeof *scope->configs);
    if (!scope->configs)
        return prof_out_of_memory(err);
    enum prof_status status = text ? compile_kernel_pattern(text, &pattern, err) : PROF_OK;
    if (!status) {
        struct choice choice = {scope, text ? &pattern : NULL};
        status = choose_scope_configs(capture, &choice, err);
        if (text)
            regfree(&pattern);
    }
    return status;
}

/* ---- NVTX ranges ----------------------------------------------------------------------------- */

/* An instant is a nanosecond, so that a range lies in itself. */
static bool add_scope_range(void *user, const struct prof_event_row *row)
{
    struct prof_scope *scope = user;
    int64_t start = row->start_ns;
    int64_t end = row->duration_ns == PROF_UNKNOWN ? INT64_MAX : prof_add(start, row->duration_ns);
    struct prof_scope_span *span = prof_array_add(&scope->spans);
    if (span)
        *span =
            (struct prof_scope_span){row->thread, start, end > start ? end : prof_add(start, 1)};
    return span;
}

PROF_ORDER(by_thread_and_begin, struct prof_scope_span, PROF_ASCENDING(thread),
           PROF_ASCENDING(begin))

/* By thread and begin; those that touch become one. */
static void join_spans(struct prof_scope *scope)
{
    struct prof_scope_span *spans = scope->spans.data;
    size_t kept = 0;
    prof_array_sort(&scope->spans, by_thread_and_begin);
    for (size_t i = 0; i < scope->spans.count; i++) {
        struct prof_scope_span *last = kept ? &spans[kept - 1] : NULL;
        if (last && last->thread == spans[i].thread && spans[i].begin <= last->end)
            last->end = spans[i].end > last->end ? spans[i].end : last->end;
        else
            spans[kept++] = spans[i];
    }
    scope->spans.count = kept;
}

static enum prof_status read_spans(struct prof_scope *scope, struct prof_capture *capture,
                                   struct prof_error *err)
{
    const char *domain = scope->filter.range_domain; /* NULL: any; "": the default one */
    char *of_domain =
        !domain   ? sqlite3_mprintf("1")
        : *domain ? sqlite3_mprintf("domain IN (SELECT id FROM string WHERE value = %Q)", domain)
                  : sqlite3_mprintf("domain IS NULL");
    char *where = of_domain ? sqlite3_mprintf("name IN (SELECT id FROM string WHERE value = %Q) "
                                              "AND %z",
                                              scope->filter.range, of_domain)
                            : NULL;
    struct prof_event_query query = {
        .tables = PROF_OPS(RANGE),
        .fields = PROF_FIELD(DURATION) | PROF_FIELD(THREAD),
        .started = true,
        .where = where,
    };
    enum prof_status status = where ? prof_event_rows(capture, &query, add_scope_range, scope, err)
                                    : prof_out_of_memory(err);
    sqlite3_free(where);
    join_spans(scope);
    return status;
}

static bool in_span(const struct prof_scope *scope, int64_t thread, int64_t time)
{
    const struct prof_scope_span *spans = scope->spans.data;
    size_t low;
    PROF_FIND_FIRST(low, at, scope->spans.count,
                    spans[at].thread > thread ||
                        (spans[at].thread == thread && spans[at].begin > time));
    return low && spans[low - 1].thread == thread && time < spans[low - 1].end;
}

static bool add_scope_launch(void *user, const struct prof_event_row *call)
{
    struct prof_scope *scope = user;
    const struct prof_thread *its = prof_thread(scope->capture, call->thread);
    return !in_span(scope, call->thread, call->start_ns) ||
           prof_map_put(&scope->graph_calls,
                        prof_call_key(its ? its->process : 0, call->correlation), 1);
}

static enum prof_status read_graph_calls(struct prof_scope *scope, struct prof_capture *capture,
                                         struct prof_error *err)
{
    static const struct prof_event_query query = {
        .tables = PROF_OPS(CALL),
        .fields = PROF_FIELD(THREAD) | PROF_FIELD(CORRELATION),
        .started = true,
        .where = "correlation NOT NULL",
    };
    return prof_event_rows(capture, &query, add_scope_launch, scope, err);
}

static enum prof_status open_scope_ranges(struct prof_scope *scope, struct prof_capture *capture,
                                          struct prof_error *err)
{
    scope->by_range = scope->filter.range != NULL;
    if (!scope->by_range)
        return PROF_OK;
    enum prof_status status = read_spans(scope, capture, err);
    return status ? status : read_graph_calls(scope, capture, err);
}

bool prof_scope_called_slow(const struct prof_scope *scope, int64_t thread, int64_t call_ns,
                            int64_t stream, int64_t correlation)
{
    if (call_ns != PROF_UNKNOWN)
        return in_span(scope, thread, call_ns);
    if (correlation == PROF_UNKNOWN)
        return false;
    const struct prof_stream *its = prof_stream(scope->capture, stream);
    return prof_map_get(&scope->graph_calls, prof_call_key(its ? its->process : 0, correlation));
}

/* ---- all of it ------------------------------------------------------------------------------- */

enum prof_status prof_scope_open(struct prof_scope *scope, struct prof_capture *capture,
                                 const struct prof_filter *filter, struct prof_error *err)
{
    *scope = (struct prof_scope){.capture = capture, .end_ns = INT64_MAX};
    PROF_TRY(prof_begin(capture, err));
    scope->reading = capture;
    if (!filter)
        return PROF_OK;
    scope->filter = *filter;
    scope->begin_ns = filter->begin_ns;
    if (filter->end_ns)
        scope->end_ns = filter->end_ns;
    if (scope->end_ns < scope->begin_ns) {
        prof_scope_close(scope);
        return prof_fail(err, PROF_INVALID, "the time range ends before it begins");
    }
    scope->by_time = filter->begin_ns || filter->end_ns;
    scope->by_device = filter->device || filter->stream || filter->stream_count;
    scope->by_place = scope->by_device || filter->process || filter->thread;
    enum prof_status status = open_kernels(scope, capture, err);
    status = status ?: open_scope_ranges(scope, capture, err);
    if (status)
        prof_scope_close(scope);
    return status;
}

void prof_scope_close(struct prof_scope *scope)
{
    if (scope->reading)
        prof_end(scope->reading);
    scope->reading = NULL;
    free(scope->configs);
    scope->configs = NULL;
    prof_map_free(&scope->other_configs);
    prof_array_free(&scope->spans);
    prof_map_free(&scope->graph_calls);
}

struct prof_scope prof_scope_of_ranges(const struct prof_scope *scope)
{
    struct prof_scope places = *scope;
    places.by_device = false;
    places.by_place = scope->filter.process || scope->filter.thread;
    places.filter.device = places.filter.stream = 0;
    places.filter.stream_count = 0;
    return places;
}

static bool listed(const struct prof_filter *filter, int64_t stream)
{
    for (size_t i = 0; i < filter->stream_count; i++)
        if (filter->streams[i] == stream)
            return true;
    return !filter->stream_count;
}

bool prof_same_process(const struct prof_capture *capture, int64_t wanted, int64_t its)
{
    if (its == wanted)
        return true;
    const struct prof_process *a = prof_process(capture, wanted), *b = prof_process(capture, its);
    return a && b && a->pid == b->pid && a->pid != PROF_UNKNOWN &&
           (a->host == b->host || (a->host && b->host && !strcmp(a->host, b->host)));
}

bool prof_scope_place_slow(const struct prof_scope *scope, int64_t stream, int64_t thread,
                           int64_t process, int64_t device)
{
    const struct prof_filter *f = &scope->filter;
    const struct prof_stream *s = prof_stream(scope->capture, stream);
    const struct prof_thread *t = prof_thread(scope->capture, thread);
    if ((f->stream && stream != f->stream) || !listed(f, stream))
        return false;
    if (f->thread && thread != f->thread)
        return false;
    if (f->process && !prof_same_process(scope->capture, f->process,
                                         s   ? s->process
                                         : t ? t->process
                                             : process))
        return false;
    if (f->device) {
        const struct prof_device *its = prof_device(scope->capture, s ? s->device : device);
        const struct prof_device *wanted = prof_device(scope->capture, f->device);
        if (!its || !wanted || its->physical != wanted->physical)
            return false;
    }
    return true;
}

bool prof_scope_config(const struct prof_scope *scope, int64_t config)
{
    if (!scope->configs)
        return true;
    size_t i = prof_index_of(&scope->capture->configs, config);
    return i != SIZE_MAX ? scope->configs[i]
                         : prof_map_get(&scope->other_configs, (uint64_t)config) != NULL;
}
