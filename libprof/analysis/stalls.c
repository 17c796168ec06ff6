/* Samples of instructions, summed up by kernel and by line. A kernel that several contexts run, or
 * several processes, is one; instructions are distinguished by the machine code that they are in.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/group.h"
#include "libprof/analysis/scope.h"
#include "libprof/base/regular.h"
#include "libprof/include/prof_stalls.h"
#include "libprof/wire/sampler.h"

static const struct {
    const char *name, *text;
} reasons[] = {
#define X(slot, name, text) {#name, text},
    WIRE_STALL_MAP(X)
#undef X
};
_Static_assert((int)PROF_STALL_REASONS == (int)WIRE_STALL_REASONS, "reasons");
_Static_assert((int)PROF_STALL_OTHER == (int)WIRE_STALL_OTHER &&
                   (int)PROF_STALL_BARRIER == (int)WIRE_STALL_BARRIER &&
                   (int)PROF_STALL_DRAIN == (int)WIRE_STALL_DRAIN,
               "order of the reasons");

const char *prof_stall_name(enum prof_stall_reason reason)
{
    return reasons[reason].name;
}

const char *prof_stall_text(enum prof_stall_reason reason)
{
    return reasons[reason].text;
}

struct work {
    struct prof_capture *capture;
    struct prof_scope scope;
    PROF_ARRAY(struct prof_stall_row) rows, lines, instructions;
    int64_t name, cubin; /* of the last row that was read */
};

static void add_sums(struct prof_stall_sums *to, const struct prof_stall_sums *from)
{
    to->samples = prof_add(to->samples, from->samples);
    to->stalled = prof_add(to->stalled, from->stalled);
    to->not_issued = prof_add(to->not_issued, from->not_issued);
    for (int i = 0; i < PROF_STALL_REASONS; i++)
        to->of[i] = prof_add(to->of[i], from->of[i]);
}

static void finish_stall_row(struct prof_stall_row *row, int64_t all)
{
    struct prof_stall_sums *sums = &row->sums;
    sums->reason = PROF_STALL_LONG_SCOREBOARD;
    for (enum prof_stall_reason i = PROF_STALL_LONG_SCOREBOARD; i < PROF_STALL_REASONS; i++) {
        if (sums->of[i] > sums->of[sums->reason])
            sums->reason = i;
    }
    sums->reason_share =
        sums->stalled > 0 ? (double)sums->of[sums->reason] / (double)sums->samples : NAN;
    row->share = all > 0 ? (double)sums->samples / (double)all : NAN;
}

static const char *stall_text(struct work *w, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? prof_arena_copy(&w->capture->string_texts, text,
                                  (size_t)sqlite3_column_bytes(row, column))
                : NULL;
}

enum {
    NAME,
    CONFIG,
    CUBIN,
    OFFSET,
    LINE,
    NO_LINES,
    PROCESS,
    DEVICE,
    NAME_TEXT,
    FILE_TEXT,
    SASS,
    NOT_ISSUED,
    FIRST_REASON
};

static const char *stall_address(struct work *w, int64_t offset)
{
    char text[32];
    int length = snprintf(text, sizeof text, "0x%llx", (unsigned long long)offset);
    return prof_arena_copy(&w->capture->string_texts, text, (size_t)length);
}

static const char *stall_where(struct work *w, const struct prof_stall_row *row)
{
    char text[512];
    if (row->file)
        snprintf(text, sizeof text, "%.400s:%lld", prof_file_name(row->file), (long long)row->line);
    else
        snprintf(text, sizeof text, "+%s", row->address);
    return prof_arena_copy(&w->capture->string_texts, text, strlen(text));
}

static bool stall_passes(const struct work *w, sqlite3_stmt *sql, int64_t config)
{
    return (!prof_scope_only_kernels(&w->scope) ||
            (config && prof_scope_config(&w->scope, config))) &&
           prof_scope_place(&w->scope, 0, 0, prof_column_id(sql, PROCESS),
                            prof_column_id(sql, DEVICE));
}

static bool begin_stall_kernel(struct work *w, sqlite3_stmt *sql, int64_t config)
{
    struct prof_stall_row *row = prof_array_add(&w->rows);
    size_t at = config ? prof_config_index(w->capture, config) : SIZE_MAX;
    if (!row)
        return false;
    *row = (struct prof_stall_row){.line = PROF_UNKNOWN, .offset = PROF_UNKNOWN};
    if (at != SIZE_MAX) {
        row->config = &w->capture->configs.data[at];
        row->name = row->config->name;
        row->full_name = row->config->full_name;
    }
    if (!row->name)
        row->name = row->full_name = stall_text(w, sql, NAME_TEXT);
    row->no_lines = stall_text(w, sql, NO_LINES);
    row->kernel = w->rows.count - 1;
    return true;
}

/* Rows come by name, cubin and offset; several contexts may have the same. */
static bool add_stall(void *user, sqlite3_stmt *sql)
{
    struct work *w = user;
    int64_t config = prof_column_id(sql, CONFIG), name = prof_column_id(sql, NAME);
    int64_t cubin = prof_column_id(sql, CUBIN), offset = prof_column_int(sql, OFFSET);
    if (!stall_passes(w, sql, config))
        return true;
    if ((!w->rows.count || name != w->name) && !begin_stall_kernel(w, sql, config))
        return false;
    struct prof_stall_row *kernel = &w->rows.data[w->rows.count - 1];
    struct prof_stall_row *last =
        w->instructions.count ? &w->instructions.data[w->instructions.count - 1] : NULL;
    if (!last || name != w->name || cubin != w->cubin || offset != last->offset) {
        last = prof_array_add(&w->instructions);
        if (!last)
            return false;
        *last = (struct prof_stall_row){.name = kernel->name,
                                        .full_name = kernel->full_name,
                                        .config = kernel->config,
                                        .file = stall_text(w, sql, FILE_TEXT),
                                        .line = prof_column_int(sql, LINE),
                                        .offset = offset,
                                        .sass = stall_text(w, sql, SASS),
                                        .instructions = 1,
                                        .kernel = kernel->kernel,
                                        .number = w->instructions.count - 1};
    }
    if (!last->where && !(last->address = stall_address(w, offset)))
        return false;
    if (!last->where)
        last->where = stall_where(w, last);
    w->name = name;
    w->cubin = cubin;
    if (last->file)
        kernel->no_lines = NULL;
    last->sums.not_issued = prof_add(last->sums.not_issued, sqlite3_column_int64(sql, NOT_ISSUED));
    for (int i = 0; i < PROF_STALL_REASONS; i++) {
        int64_t samples = sqlite3_column_int64(sql, FIRST_REASON + i);
        if (samples <= 0)
            continue;
        last->sums.of[i] = prof_add(last->sums.of[i], samples);
        last->sums.samples = prof_add(last->sums.samples, samples);
        if (i > PROF_STALL_NOT_SELECTED)
            last->sums.stalled = prof_add(last->sums.stalled, samples);
    }
    return true;
}

PROF_ORDER(by_line, struct prof_stall_row, PROF_ASCENDING(kernel),
           x->file && y->file ? strcmp(x->file, y->file)
                              : PROF_COMPARE(x->file != NULL, y->file != NULL),
           PROF_ASCENDING(line), PROF_ASCENDING(offset))

PROF_ORDER(by_samples, struct prof_stall_row, PROF_DESCENDING(sums.samples), by_line(x, y))

/* Of several cubins with the kernel, one after the other: qsort need not keep an order. */
PROF_ORDER(by_code, struct prof_stall_row, PROF_ASCENDING(kernel), PROF_ASCENDING(number))

PROF_ORDER(by_kernel_samples, struct prof_stall_row, PROF_DESCENDING(sums.samples),
           PROF_ASCENDING(kernel))

/* Kernels get their sums and their order, which instructions then follow. */
static bool order_kernels(struct work *w, int64_t *all)
{
    for (size_t i = 0; i < w->instructions.count; i++) {
        struct prof_stall_row *row = &w->instructions.data[i], *kernel = &w->rows.data[row->kernel];
        add_sums(&kernel->sums, &row->sums);
        kernel->instructions++;
        kernel->spills += row->sass && (strstr(row->sass, "LDL") || strstr(row->sass, "STL"));
        *all = prof_add(*all, row->sums.samples);
    }
    prof_array_sort(&w->rows, by_kernel_samples);
    PROF_FREED size_t *place = calloc(w->rows.count + 1, sizeof *place);
    if (!place)
        return false;
    for (size_t i = 0; i < w->rows.count; i++) {
        place[w->rows.data[i].kernel] = i;
        w->rows.data[i].kernel = i;
        finish_stall_row(&w->rows.data[i], *all);
    }
    for (size_t i = 0; i < w->instructions.count; i++) {
        struct prof_stall_row *row = &w->instructions.data[i];
        row->kernel = place[row->kernel];
        finish_stall_row(row, w->rows.data[row->kernel].sums.samples);
    }
    return true;
}

static bool sum_lines(struct work *w)
{
    struct prof_stall_row *sorted = calloc(w->instructions.count + 1, sizeof *sorted);
    if (!sorted)
        return false;
    if (w->instructions.count)
        memcpy(sorted, w->instructions.data, w->instructions.count * sizeof *sorted);
    qsort(sorted, w->instructions.count, sizeof *sorted, by_line);
    struct prof_stall_row *line = NULL;
    int64_t most = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < w->instructions.count; i++) {
        struct prof_stall_row *row = &sorted[i];
        bool same = line && line->kernel == row->kernel && line->file && row->file &&
                    strcmp(line->file, row->file) == 0 && line->line == row->line;
        if (same) {
            add_sums(&line->sums, &row->sums);
            line->instructions++;
        } else {
            line = prof_array_add(&w->lines);
            ok = line != NULL;
            if (ok)
                *line = *row;
        }
        if (ok && (!same || row->sums.samples > most)) {
            most = row->sums.samples;
            line->offset = row->offset;
            line->address = row->address;
            line->sass = row->sass;
        }
    }
    free(sorted);
    for (size_t i = 0; i < w->lines.count; i++)
        finish_stall_row(&w->lines.data[i], w->rows.data[w->lines.data[i].kernel].sums.samples);
    return ok;
}

/* A kernel's hottest line and instruction. */
static void name_hottest(struct work *w)
{
    for (size_t i = w->lines.count; i-- > 0;) {
        const struct prof_stall_row *line = &w->lines.data[i];
        struct prof_stall_row *kernel = &w->rows.data[line->kernel];
        kernel->file = line->file;
        kernel->line = line->line;
        kernel->offset = line->offset;
        kernel->where = line->where;
    }
}

static bool name_subjects(struct work *w)
{
    for (size_t i = 0; i < w->rows.count; i++) {
        struct prof_stall_row *row = &w->rows.data[i];
        char text[512];
        snprintf(text, sizeof text, "%.400s: %s", row->name ? row->name : "",
                 prof_stall_name(row->sums.reason));
        row->subject = prof_arena_copy(&w->capture->string_texts, text, strlen(text));
        if (!row->subject)
            return false;
    }
    return true;
}

static enum prof_status finish_stalls(struct work *w, struct prof_stalls *result,
                                      struct prof_error *err)
{
    if (!order_kernels(w, &result->samples) || !sum_lines(w) || !name_subjects(w))
        return prof_fail(err, PROF_NOMEM, "no memory for samples of instructions");
    prof_array_sort(&w->lines, by_samples);
    prof_array_sort(&w->instructions, by_code);
    name_hottest(w);
    return PROF_OK;
}

enum prof_status prof_stalls(struct prof_capture *capture, const struct prof_filter *filter,
                             struct prof_stalls *result, struct prof_error *err)
{
    struct work w = {.capture = capture};
    char sql[4096];
    snprintf(sql, sizeof sql,
             "SELECT f.name, c.id, f.cubin, s.offset, s.line, f.lines, "
             "x.process, x.device, n.value, p.value, t.value, s.not_issued");
    *result = (struct prof_stalls){0};
    for (int i = 0; i < PROF_STALL_REASONS; i++)
        prof_append(sql, sizeof sql, ", s.%s", reasons[i].name);
    prof_append(
        sql, sizeof sql,
        " FROM stall s JOIN stall_function f ON f.id=s.function LEFT JOIN context x ON "
        "x.id=f.context LEFT JOIN string n ON n.id=f.name LEFT JOIN string p ON p.id=s.file "
        "LEFT JOIN string t ON t.id=s.sass LEFT JOIN (SELECT name, min(id) id FROM "
        "launch_config GROUP BY name) c ON c.name=f.name ORDER BY f.name, f.cubin, s.offset, s.id");
    PROF_TRY(prof_scope_open(&w.scope, capture, filter, err));
    enum prof_status status = prof_scan(capture, sql, add_stall, &w, err);
    status = status ?: finish_stalls(&w, result, err);
    prof_scope_close(&w.scope);
    result->rows = w.rows.data;
    result->count = w.rows.count;
    result->lines = w.lines.data;
    result->line_count = w.lines.count;
    result->instructions = w.instructions.data;
    result->instruction_count = w.instructions.count;
    if (status)
        prof_stalls_free(result);
    return status;
}

void prof_stalls_free(struct prof_stalls *result)
{
    free(result->rows);
    free(result->lines);
    free(result->instructions);
    *result = (struct prof_stalls){0};
}
