/* One file of a merge: what its own row of `capture` and its processes say. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/saturate.h"
#include "libprof/store/merge/parts.h"

static char *copy_column_text(sqlite3_stmt *row, int at)
{
    const char *value = (const char *)sqlite3_column_text(row, at);
    return value ? strdup(value) : NULL;
}

static int64_t column_or_unknown(sqlite3_stmt *row, int at)
{
    return sqlite3_column_type(row, at) == SQLITE_NULL ? PROF_MERGE_UNKNOWN
                                                       : sqlite3_column_int64(row, at);
}

static enum prof_status read_capture(struct merge_input *in, struct prof_error *err)
{
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(
            in->db,
            "SELECT state, perfkit_version, command, directory, host, boot_id, kernel, cpu, trace, "
            "kernel_filter, cpu_count, start_mono_ns, start_realtime_ns, start_raw_ns, duration, "
            "exit_status, exit_signal, EXISTS(SELECT 1 FROM merged_part), EXISTS(SELECT 1 FROM "
            "capture_health WHERE code='part_summary'), "
            /* the boot whose clock a merged capture has, where its parts leave no doubt */
            "(SELECT max(boot_id) FROM merged_part WHERE clock='same' HAVING count(DISTINCT "
            "boot_id)=1 AND count(boot_id)=count(*)) FROM capture ORDER BY id LIMIT 1",
            -1, &row, NULL))
        return prof_store_fail(in->store, "read", err);
    int64_t *const numbers[] = {&in->cpu_count,    &in->start_mono_ns, &in->start_realtime_ns,
                                &in->start_raw_ns, &in->duration_ns,   &in->status,
                                &in->signal};
    char **const texts[] = {&in->state,   &in->version, &in->command, &in->directory, &in->host,
                            &in->boot_id, &in->kernel,  &in->cpu,     &in->trace,     &in->filter};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        *numbers[i] = PROF_MERGE_UNKNOWN;
    if (sqlite3_step(row) == SQLITE_ROW) {
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            *texts[i] = copy_column_text(row, (int)i);
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
            *numbers[i] = column_or_unknown(row, 10 + (int)i);
        in->merged = sqlite3_column_int(row, 17) != 0;
        in->summary = sqlite3_column_int(row, 18) != 0;
        in->merged_boot_id = copy_column_text(row, 19);
    }
    return sqlite3_finalize(row) ? prof_store_fail(in->store, "read", err) : PROF_OK;
}

static bool add_input_process(struct merge_input *in, sqlite3_stmt *row)
{
    struct merge_process *p = prof_array_add(&in->processes);
    if (!p)
        return false;
    int64_t zero = in->start_mono_ns == PROF_MERGE_UNKNOWN ? 0 : in->start_mono_ns;
    *p = (struct merge_process){
        .pid = sqlite3_column_int64(row, 0),
        .start_ns = prof_add(zero, sqlite3_column_int64(row, 1)),
        .rank = sqlite3_column_type(row, 2) == SQLITE_NULL ? -1 : sqlite3_column_int64(row, 2),
        .world = sqlite3_column_type(row, 3) == SQLITE_NULL ? -1 : sqlite3_column_int64(row, 3),
        .has_events = sqlite3_column_int(row, 4) != 0,
    };
    if (!in->job)
        in->job = copy_column_text(row, 5);
    return true;
}

static enum prof_status read_processes(struct merge_input *in, struct prof_error *err)
{
    sqlite3_stmt *row;
    bool ok = true;
    if (sqlite3_prepare_v2(
            in->db,
            "SELECT pid, start, rank, world_size, spool NOT NULL, job FROM process ORDER BY id", -1,
            &row, NULL))
        return prof_store_fail(in->store, "read", err);
    while (ok && sqlite3_step(row) == SQLITE_ROW)
        ok = add_input_process(in, row);
    int code = sqlite3_finalize(row);
    if (!ok)
        return prof_fail(err, PROF_NOMEM, "cannot read %s: out of memory", in->path);
    return code ? prof_store_fail_code(in->store, code, "read", err) : PROF_OK;
}

enum prof_status merge_input_open(struct merge_input *in, struct prof_error *err)
{
    PROF_TRY(prof_store_open(in->path, &in->store, err));
    in->db = prof_store_db(in->store);
    enum prof_status status = PROF_OK;
    /* Thousands may be open at once: little memory for each. One state of a file that still grows.
     */
    if (sqlite3_exec(in->db, "PRAGMA cache_size=6; BEGIN", NULL, NULL, NULL))
        status = prof_store_fail(in->store, "read", err);
    if (!status && !in->described) {
        in->described = true;
        status = read_capture(in, err);
        status = status ?: read_processes(in, err);
    }
    if (status)
        merge_input_close(in);
    return status;
}

void merge_input_close(struct merge_input *in)
{
    prof_store_close(in->store);
    in->store = NULL;
    in->db = NULL;
    for (int i = 0; i < MERGE_MOST_TABLES; i++)
        merge_ids_free(&in->ids[i]);
}

void merge_input_free(struct merge_input *in)
{
    char *const texts[] = {in->state, in->version, in->command, in->directory,
                           in->host,  in->boot_id, in->kernel,  in->cpu,
                           in->trace, in->filter,  in->job,     in->merged_boot_id};
    merge_input_close(in);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    prof_array_free(&in->processes);
}

bool merge_lacks(struct prof_merge_part *part, const char *format, ...)
{
    char *added = NULL, *joined = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&added, format, args);
    va_end(args);
    if (length < 0)
        return false;
    if (!part->missing) {
        part->missing = added;
        return true;
    }
    length = asprintf(&joined, "%s; %s", part->missing, added);
    free(added);
    if (length < 0)
        return false;
    free(part->missing);
    part->missing = joined;
    return true;
}

void merge_input_damaged(struct merge_input *in, enum prof_status why)
{
    static const char words[] = "the file is damaged: what could be read of it is here";
    if (in->failed)
        return;
    if (!in->part || why == PROF_NOMEM)
        in->failed = why;
    else if ((!in->part->missing || !strstr(in->part->missing, words)) &&
             !merge_lacks(in->part, "%s", words))
        in->failed = PROF_NOMEM;
}

void merge_input_end(struct merge_input *in, sqlite3_stmt *rows)
{
    int code = rows ? sqlite3_finalize(rows) : sqlite3_errcode(in->db);
    if (code != SQLITE_OK)
        merge_input_damaged(in, prof_sql_status(code));
}

int64_t merge_time(const struct merge_input *in, int64_t time_ns)
{
    int64_t moved = prof_add(time_ns, in->shift_ns);
    if (in->drift == 0)
        return moved;
    return prof_add(moved,
                    (int64_t)llrint(in->drift * (double)prof_subtract(time_ns, in->middle_ns)));
}
