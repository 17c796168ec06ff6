/* The trust block: what the capture itself says about its completeness, as balances and sentences.
 * Lines of capture_health are (process, subject, item, value, note, level, code); subjects that
 * count calls become balances, all others sentences; who wrote a line gave it a level and a code.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/base/format.h"
#include "libprof/base/saturate.h"
#include "libprof/store/health.h"

struct work {
    struct prof_capture *capture;
    PROF_ARRAY(struct prof_balance) balances, totals;
    PROF_ARRAY(struct prof_statement) statements;
    struct prof_graph_work graphs;
    int64_t lacking; /* device records */
    bool uncounted;  /* some records have no count of calls to be held against */
    bool marks_lost; /* of when recording began and stopped */
    bool out_of_memory;
};

/* ---- balances -------------------------------------------------------------------------------- */

static const struct {
    const char *item;
    size_t offset;
} items[] = {
    {"called", offsetof(struct prof_balance, called)},
    {"recorded", offsetof(struct prof_balance, recorded)},
    {"failed", offsetof(struct prof_balance, failed)},
    {"captured", offsetof(struct prof_balance, captured)},
    {"dropped", offsetof(struct prof_balance, dropped)},
    {"outstanding", offsetof(struct prof_balance, outstanding)},
    {"filtered", offsetof(struct prof_balance, filtered)},
    {"uncalled", offsetof(struct prof_balance, uncalled)},
    {"unanswered", offsetof(struct prof_balance, unanswered)},
    {"unreturned", offsetof(struct prof_balance, unreturned)},
    {"remainder", offsetof(struct prof_balance, remainder)}, /* read, then computed anew */
};
enum { ITEMS = sizeof items / sizeof items[0] };

static const char *const subjects[] = {"launch", "transfer", "memset",   "allocation",
                                       "free",   "range",    "range_end"};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

static const char *subject_word(const char *subject)
{
    return !strcmp(subject, "transfer")    ? "memcpy"
           : !strcmp(subject, "range_end") ? "range end"
                                           : subject;
}

static const char *known_subject(const char *text)
{
    for (size_t i = 0; text && i < SUBJECTS; i++)
        if (!strcmp(text, subjects[i]))
            return subjects[i];
    return NULL;
}

static int64_t *item_of(struct prof_balance *balance, const char *item)
{
    for (size_t i = 0; item && i < ITEMS; i++)
        if (!strcmp(item, items[i].item))
            return (int64_t *)(void *)((char *)balance + items[i].offset);
    return NULL;
}

static struct prof_balance *balance_of(struct work *w, int64_t process, const char *subject)
{
    /* Lines come by process: only the last few balances can be meant. */
    for (size_t i = w->balances.count; i-- > 0 && w->balances.data[i].process == process;)
        if (w->balances.data[i].subject == subject)
            return &w->balances.data[i];
    struct prof_balance *b = prof_array_add(&w->balances);
    if (b)
        *b = (struct prof_balance){.process = process,
                                   .subject = subject,
                                   .called = PROF_UNKNOWN,
                                   .remainder = PROF_UNKNOWN};
    return b;
}

static void close_balance(struct prof_balance *b)
{
    b->remainder = PROF_UNKNOWN;
    if (b->called == PROF_UNKNOWN)
        return;
    int64_t rest = prof_add(b->called, b->uncalled);
    const int64_t parts[] = {b->recorded, b->failed,      b->captured,
                             b->dropped,  b->outstanding, b->filtered};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        rest = prof_subtract(rest, parts[i]);
    b->remainder = rest;
}

static void add_total(struct work *w, const struct prof_balance *b)
{
    struct prof_balance *total = NULL;
    for (size_t i = 0; i < w->totals.count; i++)
        if (w->totals.data[i].subject == b->subject)
            total = &w->totals.data[i];
    if (!total) {
        total = prof_array_add(&w->totals);
        if (!total) {
            w->out_of_memory = true;
            return;
        }
        *total = (struct prof_balance){.subject = b->subject, .remainder = PROF_UNKNOWN};
    }
    if (b->called == PROF_UNKNOWN)
        return;
    for (size_t i = 0; i < ITEMS; i++) {
        int64_t *sum = (int64_t *)(void *)((char *)total + items[i].offset);
        *sum = prof_add(*sum, *(const int64_t *)(const void *)((const char *)b + items[i].offset));
    }
    close_balance(total);
}

/* ---- sentences ------------------------------------------------------------------------------- */

/* A statement of the code's level, which the caller may change; NULL = out of memory. */
static struct prof_statement *state(struct work *w, enum prof_health_code code, int64_t process,
                                    const char *format, ...) __attribute__((format(printf, 4, 5)));

static struct prof_statement *state(struct work *w, enum prof_health_code code, int64_t process,
                                    const char *format, ...)
{
    va_list args;
    char *text;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    struct prof_statement *slot = length < 0 ? NULL : prof_array_add(&w->statements);
    if (slot)
        *slot = (struct prof_statement){.level = (enum prof_trust_level)prof_health[code].level,
                                        .code = prof_health[code].code,
                                        .process = process,
                                        .text = text};
    else if (length >= 0)
        free(text);
    w->out_of_memory |= !slot;
    return slot;
}

struct who {
    char text[160];
};

/* "process 4711: " or ""; in a merged capture "rank 3 (process 4711 on node7): ", because pids of
 * several hosts mean little. */
static struct who who(const struct work *w, int64_t process)
{
    struct who t = {""};
    const struct prof_process *p = prof_process(w->capture, process);
    if (!p || p->pid == PROF_UNKNOWN)
        return t;
    bool merged = w->capture->info.state == PROF_STATE_MERGED;
    const char *on = merged && p->host ? " on " : "", *host = merged && p->host ? p->host : "";
    if (merged && p->rank != PROF_UNKNOWN)
        snprintf(t.text, sizeof t.text, "rank %lld (process %lld%s%.100s): ", (long long)p->rank,
                 (long long)p->pid, on, host);
    else
        snprintf(t.text, sizeof t.text, "process %lld%s%.100s: ", (long long)p->pid, on, host);
    return t;
}

_Static_assert((int)PROF_HEALTH_NOTE == PROF_TRUST_NOTE &&
                   (int)PROF_HEALTH_WARNING == PROF_TRUST_WARNING &&
                   (int)PROF_HEALTH_RISK == PROF_TRUST_RISK &&
                   (int)PROF_HEALTH_LOSS == PROF_TRUST_LOSS,
               "levels");

static enum prof_trust_level level_of(const char *text)
{
    int level = PROF_TRUST_LOSS;
    while (level > PROF_TRUST_NOTE &&
           (!text || strcmp(text, prof_health_level_text((enum prof_health_level)level))))
        level--;
    return (enum prof_trust_level)level;
}

struct line {
    int64_t process, value;
    const char *subject, *item, *note; /* "" = none */
    enum prof_health_code code;
    enum prof_trust_level level;
};

static struct prof_statement *state_words(struct work *w, const struct line *line)
{
    struct who name = who(w, line->process);
    const char *note = line->note, *separator = *note ? ": " : "";
    const char *records = line->value == 1 ? "" : "s";
    switch (line->code) {
    case PROF_HEALTH_risk_device_records:
    case PROF_HEALTH_collector_contended:
    case PROF_HEALTH_collector_yielded:
    case PROF_HEALTH_capture_kept:
    case PROF_HEALTH_budget_kept:
    case PROF_HEALTH_budget_exceeded:
    case PROF_HEALTH_budget_unknown:
    case PROF_HEALTH_graph_ends:
        return state(w, line->code, line->process, "%s%s", name.text, note);
    case PROF_HEALTH_capture_ring:
        if (line->value != PROF_UNKNOWN && *note)
            return state(w, line->code, line->process, "%s; %s deleted", note,
                         prof_counted(line->value, "row", "rows").text);
        break;
    case PROF_HEALTH_end_signal:
        if (line->value != PROF_UNKNOWN)
            return state(w, line->code, line->process, "%sended by %s%s%s", name.text,
                         prof_signal(line->value).text, separator, note);
        /* fallthrough */
    case PROF_HEALTH_end_unseen:
    case PROF_HEALTH_end_running:
    case PROF_HEALTH_end_normal:
        return state(w, line->code, line->process, "%sended by %s%s%s", name.text, line->item,
                     separator, note);
    case PROF_HEALTH_record_room:
        if (*note)
            return state(w, line->code, line->process, "%s%s record%s dropped: %s", name.text,
                         prof_count(line->value).text, records, note);
        break;
    case PROF_HEALTH_record_dropped:
    case PROF_HEALTH_record_marks_dropped:
        if (*note)
            return state(w, line->code, line->process, "%s%s record%s dropped (no room): %s",
                         name.text, prof_count(line->value).text, records, note);
        break;
    default:
        break;
    }
    if (line->value == PROF_UNKNOWN)
        return state(w, line->code, line->process, "%s%s%s%s", name.text, line->item, separator,
                     note);
    if (*note && strcmp(line->subject, "collector"))
        return state(w, line->code, line->process, "%s%s %s (%s)", name.text,
                     prof_count(line->value).text, note, line->item);
    return state(w, line->code, line->process, "%s%s %s%s%s", name.text, line->item,
                 prof_count(line->value).text, separator, note);
}

static void state_line(struct work *w, const struct line *line)
{
    if (line->code == PROF_HEALTH_risk_device_records)
        w->lacking = prof_add(w->lacking, line->value > 0 ? line->value : 0);
    else if (line->level != PROF_TRUST_NOTE && line->value == 0 && strcmp(line->subject, "end"))
        return; /* counted, and there were none */
    w->marks_lost |= line->code == PROF_HEALTH_record_marks_dropped;
    struct prof_statement *statement = state_words(w, line);
    if (statement) {
        statement->level = line->level;
        statement->contended = line->code == PROF_HEALTH_collector_contended ||
                               line->code == PROF_HEALTH_collector_yielded;
    }
}

/* A process at risk: its calls that lack a device record are counted and stated there. */
static bool process_is_at_risk(const struct work *w, int64_t process)
{
    for (size_t i = 0; i < w->statements.count; i++)
        if (w->statements.data[i].level == PROF_TRUST_RISK &&
            w->statements.data[i].process == process)
            return true;
    return false;
}

/* Calls that were counted and whose work was not seen to its end. A memcpy or memset of 0 bytes has
 * no device record; of a launch it is missing, however the process ended. */
static void state_outstanding(struct work *w, const struct prof_balance *b, const char *name,
                              const char *subject)
{
    bool launch = !strcmp(b->subject, "launch"), at_risk = process_is_at_risk(w, b->process);
    bool device = launch || !strcmp(b->subject, "transfer") || !strcmp(b->subject, "memset");
    int64_t rest = prof_subtract(prof_subtract(b->outstanding, b->unanswered), b->unreturned);
    if (device && !at_risk)
        w->lacking = prof_add(w->lacking, prof_add(b->unreturned, launch ? b->unanswered : 0));
    if (b->unreturned > 0)
        state(w, PROF_HEALTH_balance_unreturned, b->process,
              "%s%s: %s had not returned when the process ended and %s no record", name, subject,
              prof_counted(b->unreturned, "call", "calls").text,
              b->unreturned == 1 ? "has" : "have");
    struct prof_statement *unanswered = NULL;
    if (b->unanswered > 0)
        unanswered = state(
            w, PROF_HEALTH_balance_unanswered, b->process, "%s%s: %s %s no device record%s", name,
            subject, prof_counted(b->unanswered, "call", "calls").text,
            b->unanswered == 1 ? "has" : "have", launch ? "" : " (one of 0 bytes makes none)");
    if (unanswered && (!launch || at_risk))
        unanswered->level = PROF_TRUST_WARNING;
    if (rest > 0)
        state(w, PROF_HEALTH_balance_unfinished, b->process,
              "%s%s: %s had not finished when the capture ended", name, subject,
              prof_count(rest).text);
}

static void state_balance(struct work *w, const struct prof_balance *b)
{
    struct who name = who(w, b->process);
    const char *subject = subject_word(b->subject);
    if (b->remainder != PROF_UNKNOWN && b->remainder != 0)
        state(w, PROF_HEALTH_balance_missing, b->process,
              "%s%s: %s called, %s accounted for: %s %s", name.text, subject,
              prof_count(b->called).text, prof_count(prof_subtract(b->called, b->remainder)).text,
              prof_count(b->remainder > 0 ? b->remainder : -b->remainder).text,
              b->remainder > 0 ? "missing" : "too many");
    if (b->dropped > 0)
        state(w, PROF_HEALTH_balance_dropped, b->process, "%s%s: %s dropped (no room)", name.text,
              subject, prof_count(b->dropped).text);
    state_outstanding(w, b, name.text, subject);
    if (b->uncalled > 0)
        state(w, PROF_HEALTH_balance_uncalled, b->process,
              "%s%s: %s recorded without the call: the process was cut off first", name.text,
              subject, prof_count(b->uncalled).text);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int64_t *graph_item(struct prof_graph_work *graphs, const char *item)
{
    const struct {
        const char *item;
        int64_t *value;
    } known[] = {{"launched", &graphs->launched}, {"kernels", &graphs->kernels},
                 {"transfers", &graphs->memcpys}, {"memsets", &graphs->memsets},
                 {"whole", &graphs->whole},       {"filtered", &graphs->filtered}};
    for (size_t i = 0; item && i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(item, known[i].item))
            return known[i].value;
    return NULL;
}

static void read_trust_line(struct work *w, sqlite3_stmt *row)
{
    int64_t process = prof_column_id(row, 0), value = prof_column_int(row, 3);
    const char *subject = (const char *)sqlite3_column_text(row, 1);
    const char *item = (const char *)sqlite3_column_text(row, 2);
    const char *note = (const char *)sqlite3_column_text(row, 4);
    const char *balanced = known_subject(subject);
    int64_t *graphs = subject && !strcmp(subject, "graph") ? graph_item(&w->graphs, item) : NULL;
    if (graphs) {
        *graphs = prof_add(*graphs, value > 0 ? value : 0);
        return;
    }
    if (balanced && value != PROF_UNKNOWN) {
        struct prof_balance *b = balance_of(w, process, balanced);
        int64_t *slot = b ? item_of(b, item) : NULL;
        w->out_of_memory |= !b;
        if (slot)
            *slot = value;
        if (!b || slot)
            return;
    }
    w->uncounted |= subject && !strcmp(subject, "import");
    struct line line = {.process = process,
                        .value = value,
                        .subject = subject ? subject : "",
                        .item = item ? item : "",
                        .note = note ? note : "",
                        .code = prof_health_find((const char *)sqlite3_column_text(row, 6)),
                        .level = level_of((const char *)sqlite3_column_text(row, 5))};
    state_line(w, &line);
}

static enum prof_status read_health(struct work *w, struct prof_error *err)
{
    sqlite3_stmt *row;
    PROF_TRY(prof_query(w->capture,
                        "SELECT process, subject, item, value, note, level, code "
                        "FROM capture_health ORDER BY process, id",
                        &row, err));
    while (!w->out_of_memory && prof_row(row))
        read_trust_line(w, row);
    return prof_query_end(w->capture, row, err);
}

static enum prof_status read_clock_error(struct work *w, int64_t *error_ns, struct prof_error *err)
{
    sqlite3_stmt *row;
    *error_ns = PROF_UNKNOWN;
    PROF_TRY(prof_query(w->capture, "SELECT max(error_ns) FROM clock_sync", &row, err));
    if (prof_row(row))
        *error_ns = prof_column_int(row, 0);
    return prof_query_end(w->capture, row, err);
}

static void state_capture(struct work *w)
{
    const struct prof_info *info = &w->capture->info;
    if (prof_unfinished(info))
        state(w, PROF_HEALTH_capture_unfinished, 0, "the capture is not finished: %s",
              prof_unfinished(info));
    else if (info->state == PROF_STATE_UNKNOWN)
        state(w, PROF_HEALTH_capture_unknown_end, 0, "the capture does not say how it ended");
    else if (info->state == PROF_STATE_RECOVERED)
        state(w, PROF_HEALTH_capture_recovered, 0,
              "finished by perfkit recover after perfkit was killed");
}

static void state_windows(struct work *w, const struct prof_trust *result)
{
    int64_t end = prof_end_ns(w->capture);
    bool known = end != PROF_UNKNOWN; /* not while it is being recorded */
    state(w, PROF_HEALTH_capture_windows, 0, "recorded %s%s%s%s, in %s window%s%s, as requested",
          result->marks_lost ? "about " : "", prof_duration_ns(result->recorded_ns).text,
          known ? " of " : "", known ? prof_duration_ns(end).text : "",
          prof_count(result->windows).text, result->windows == 1 ? "" : "s",
          result->marks_lost ? " or more (some of the marks were dropped)" : "");
}

/* What the user chose to leave out is no loss, but readers of the figures must know. */
static enum prof_status state_scope(struct work *w, struct prof_trust *result,
                                    struct prof_error *err)
{
    const struct prof_info *info = &w->capture->info;
    struct prof_recorded recorded;
    enum prof_status status = prof_recorded(w->capture, NULL, &recorded, err);
    if (!status && recorded.in_part) {
        result->windows = (int64_t)recorded.spans.count;
        result->recorded_ns = prof_recorded_length(&recorded, INT64_MIN, INT64_MAX);
    }
    prof_recorded_free(&recorded);
    result->marks_lost = w->marks_lost;
    if (!status && result->recorded_ns != PROF_UNKNOWN)
        state_windows(w, result);
    if (!status && info->kernel_filter)
        state(w, PROF_HEALTH_capture_filtered, 0,
              "only kernels whose name matches \"%s\" have rows", info->kernel_filter);
    return status;
}

/* Samples of instructions that are missing (--stalls), from the counts beside them. */
static enum prof_status state_stalls(struct work *w, struct prof_error *err)
{
    sqlite3_stmt *row = NULL;
    PROF_TRY(prof_query(
        w->capture,
        "SELECT process, sum(samples), sum(dropped)+sum(left_out), sum(full), max(period) FROM "
        "stall_context GROUP BY process",
        &row, err));
    while (prof_row(row)) {
        int64_t process = prof_column_id(row, 0), all = sqlite3_column_int64(row, 1);
        int64_t dropped = sqlite3_column_int64(row, 2), full = sqlite3_column_int64(row, 3);
        long long longer = sqlite3_column_int64(row, 4) * 4;
        struct who name = who(w, process);
        if (dropped > 0)
            state(w, PROF_HEALTH_stalls_dropped, process,
                  "%s%s of %s samples of instructions are missing: sample less often, as with "
                  "--stalls=%lld",
                  name.text, prof_count(dropped).text, prof_count(all).text, longer);
        if (full > 0)
            state(w, PROF_HEALTH_stalls_full, process,
                  "%sthe hardware's buffer for samples of instructions was full %s time%s: sample "
                  "less often, as with --stalls=%lld",
                  name.text, prof_count(full).text, full == 1 ? "" : "s", longer);
    }
    PROF_TRY(prof_query_end(w->capture, row, err));
    PROF_TRY(prof_query(
        w->capture,
        "SELECT EXISTS(SELECT 1 FROM capture_health WHERE subject='collector' AND item LIKE 'cuda "
        "%') FROM capture_health WHERE subject='collector' AND item='stalls' AND NOT EXISTS(SELECT "
        "1 FROM stall_context WHERE samples>0) AND NOT EXISTS(SELECT 1 FROM capture_health WHERE "
        "subject='collector' AND item='counters degraded') LIMIT 1",
        &row, err));
    if (prof_row(row) && !prof_unfinished(&w->capture->info))
        state(w, PROF_HEALTH_stalls_none, 0, "no instructions were sampled (--stalls): %s",
              sqlite3_column_int(row, 0)
                  ? "no sample fell on a recorded kernel of CUDA; sample more often"
                  : "only kernels of CUDA are sampled, and no process started CUDA");
    return prof_query_end(w->capture, row, err);
}

static int by_process_and_subject(const void *a, const void *b)
{
    const struct prof_balance *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    size_t i = 0, j = 0;
    while (subjects[i] != x->subject)
        i++;
    while (subjects[j] != y->subject)
        j++;
    return PROF_COMPARE(i, j);
}

/* Graver first, otherwise in order of statement. */
static void sort_statements(struct work *w)
{
    for (size_t i = 1; i < w->statements.count; i++) {
        struct prof_statement moving = w->statements.data[i];
        size_t at = i;
        for (; at && w->statements.data[at - 1].level < moving.level; at--)
            w->statements.data[at] = w->statements.data[at - 1];
        w->statements.data[at] = moving;
    }
}

static void conclude(struct work *w, struct prof_trust *result)
{
    for (size_t i = 0; i < w->balances.count; i++)
        close_balance(&w->balances.data[i]);
    prof_array_sort(&w->balances, by_process_and_subject);
    for (size_t i = 0; i < w->balances.count; i++) {
        w->uncounted |= w->balances.data[i].called == PROF_UNKNOWN;
        state_balance(w, &w->balances.data[i]);
        add_total(w, &w->balances.data[i]);
    }
    prof_array_sort(&w->totals, by_process_and_subject);
    sort_statements(w);
    static const enum prof_trust_status statuses[] = {
        [PROF_TRUST_NOTE] = PROF_TRUST_COMPLETE,
        [PROF_TRUST_WARNING] = PROF_TRUST_COMPLETE_WITH_NOTES,
        [PROF_TRUST_RISK] = PROF_TRUST_AT_RISK,
        [PROF_TRUST_LOSS] = PROF_TRUST_INCOMPLETE,
    };
    result->status =
        w->statements.count ? statuses[w->statements.data[0].level] : PROF_TRUST_COMPLETE;
    if (result->status < PROF_TRUST_AT_RISK && (w->uncounted || !w->totals.count))
        result->status = PROF_TRUST_NO_LOSS_KNOWN;
    result->complete = result->status < PROF_TRUST_AT_RISK;
    result->lacking = w->lacking;
}

enum prof_status prof_trust(struct prof_capture *capture, struct prof_trust *result,
                            struct prof_error *err)
{
    struct work w = {.capture = capture};
    *result = (struct prof_trust){.clock_error_ns = PROF_UNKNOWN, .recorded_ns = PROF_UNKNOWN};
    enum prof_status status = read_health(&w, err);
    status = status ?: read_clock_error(&w, &result->clock_error_ns, err);
    status = status ?: state_scope(&w, result, err);
    status = status ?: state_stalls(&w, err);
    if (!status) {
        state_capture(&w);
        conclude(&w, result);
    }
    result->balances = w.balances.data;
    result->balance_count = w.balances.count;
    result->totals = w.totals.data;
    result->total_count = w.totals.count;
    result->statements = w.statements.data;
    result->statement_count = w.statements.count;
    result->graphs = w.graphs;
    if (!status && w.out_of_memory)
        status = prof_out_of_memory(err);
    if (status)
        prof_trust_free(result);
    return status;
}

const char *prof_trust_status_name(enum prof_trust_status status)
{
    static const char *const names[] = {
        [PROF_TRUST_COMPLETE] = "complete",
        [PROF_TRUST_COMPLETE_WITH_NOTES] = "complete with notes",
        [PROF_TRUST_NO_LOSS_KNOWN] = "no loss known",
        [PROF_TRUST_AT_RISK] = "at risk",
        [PROF_TRUST_INCOMPLETE] = "incomplete",
    };
    return names[status];
}

const char *prof_trust_status_words(enum prof_trust_status status)
{
    return status == PROF_TRUST_AT_RISK      ? "AT RISK"
           : status == PROF_TRUST_INCOMPLETE ? "INCOMPLETE"
                                             : prof_trust_status_name(status);
}

void prof_trust_free(struct prof_trust *result)
{
    for (size_t i = 0; i < result->statement_count; i++)
        free(result->statements[i].text);
    free(result->statements);
    free(result->balances);
    free(result->totals);
    *result = (struct prof_trust){0};
}
