/* perfkit merge, in order: what the files are, whose clock differs by how much, then table by table
 * their rows. Files are opened again for their rows, as many at once as the process may; where
 * there are more, groups of them become captures of ours, which are merged in turn. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/regular.h"
#include "libprof/base/saturate.h"
#include "libprof/store/exchange/parts.h"
#include "libprof/store/merge/parts.h"

static void merge_input_free(struct merge_input *in);

#define MOST_OPEN 1024 /* about 0.3 MB each */
#define OTHER_FILES 32 /* descriptors for everything else */
#define FILES_EACH 2   /* a capture that is still being written needs more */

enum prof_status merge_write_fail(struct merge *m)
{
    return exchange_sql_fail(m->out, "write", m->output, m->err);
}

enum prof_status merge_look_up(struct merge *m)
{
    const struct prof_exchange_options *o = &m->options->file;
    if (!o->progress || o->progress(o->user, m->result->rows))
        return PROF_OK;
    return prof_fail(m->err, PROF_INVALID, "interrupted: nothing was written");
}

int64_t merge_mono(const struct merge *m, const struct merge_input *in, int64_t mono_ns)
{
    int64_t zero = in->start_mono_ns == PROF_MERGE_UNKNOWN ? 0 : in->start_mono_ns;
    return prof_add(merge_time(in, prof_subtract(mono_ns, zero)), m->zero_mono_ns);
}

/* ---- the files ------------------------------------------------------------------------------- */

/* Cut too short to be recognised as a capture: mostly empty. */
static bool ends_in_head(const char *path)
{
    static const char begin[] = "SQLite format 3"; /* and a zero */
    char head[sizeof begin];
    struct stat info;
    if (stat(path, &info) || !S_ISREG(info.st_mode)) /* a pipe would be waited for without end */
        return false;
    PROF_FILE_CLOSED FILE *file = fopen(path, "re");
    size_t bytes = file ? fread(head, 1, sizeof head, file) : sizeof head;
    bool ends = bytes < sizeof head && !ferror(file) && memcmp(head, begin, bytes) == 0;
    return ends;
}

static enum prof_status describe_input(struct merge *m, struct merge_input *in)
{
    struct prof_error why = {0};
    enum prof_status status = merge_input_open(in, &why);
    if (status == PROF_CORRUPT || (status == PROF_FORMAT && ends_in_head(in->path))) {
        in->gone = in->part->left_out = true;
        return merge_lacks(in->part, "it is damaged or cut short: copy it again")
                   ? PROF_OK
                   : prof_out_of_memory(m->err);
    }
    if (status) {
        if (m->err)
            *m->err = why;
        return status;
    }
    merge_input_close(in);
    if (in->host)
        in->part->host = strdup(in->host);
    return PROF_OK;
}

static enum prof_status describe_all(struct merge *m)
{
    enum prof_status status = PROF_OK;
    size_t readable = 0;
    for (size_t i = 0; !status && i < m->count; i++) {
        status = describe_input(m, &m->inputs[i]);
        readable += !m->inputs[i].gone;
        status = status ?: merge_look_up(m);
    }
    if (!status && !readable)
        return prof_fail(m->err, PROF_CORRUPT, "none of the files can be read: %s",
                         m->result->parts[0].missing);
    return status;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The file is not visible before it is whole, so nothing has to be undone. */
static enum prof_status create_output(struct merge *m, const char *path, struct prof_store **store)
{
    PROF_TRY(prof_store_create_alone(path, store, m->err));
    m->out = prof_store_db(*store);
    return prof_sql_run(m->out, "PRAGMA cache_size=-65536") && prof_sql_run(m->out, "BEGIN")
               ? PROF_OK
               : merge_write_fail(m);
}

static enum prof_status open_inputs(struct merge *m)
{
    for (size_t i = 0; i < m->count; i++) {
        struct merge_input *in = &m->inputs[i];
        PROF_TRY(in->gone ? PROF_OK : merge_input_open(in, m->err));
    }
    return PROF_OK;
}

static enum prof_status merge_tables(struct merge *m)
{
    enum prof_status status = PROF_OK;
    for (int i = 0; !status && i < m->plan.count; i++) {
        int table = m->plan.order[i];
        enum merge_way way = m->plan.tables[table].way;
        if (way == MERGE_BY_TIME)
            status = merge_events(m, table);
        else if (way != MERGE_LEAVE)
            status = merge_copy(m, table);
    }
    status = status ?: merge_sums(m);
    return status ?: merge_finish_parts(m);
}

static enum prof_status check_reads(struct merge *m)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct merge_input *in = &m->inputs[i];
        if (in->failed == PROF_NOMEM)
            return prof_out_of_memory(m->err);
        if (in->failed)
            return prof_fail(m->err, in->failed, "cannot read back %s: %s", in->path,
                             prof_status_text(in->failed));
    }
    return PROF_OK;
}

/* The rows of m->inputs into a new capture. `last`: it is the result. */
static enum prof_status merge_into(struct merge *m, const char *path, bool last)
{
    struct prof_store *store = NULL;
    memset(m->last, 0, sizeof m->last);
    m->rollup.last = 0;
    m->sums = last;
    enum prof_status status = create_output(m, path, &store);
    status = status ?: open_inputs(m);
    status = status ?: merge_tables(m);
    status = status ?: check_reads(m);
    for (size_t i = 0; i < m->count; i++)
        merge_input_close(&m->inputs[i]);
    if (!status && last)
        status = merge_write_capture(m);
    if (!status && last)
        status = merge_write_lines(m);
    if (!status && !prof_sql_run(m->out, "COMMIT"))
        status = merge_write_fail(m);
    rollup_sums_free(&m->rollup);
    prof_store_close(store);
    m->out = NULL;
    return status;
}

/* ---- more files than may be open ------------------------------------------------------------- */

struct passing {
    struct merge_input *inputs; /* of ours */
    char **paths;
    size_t count;
};

static size_t max_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return MOST_OPEN;
    size_t room = limit.rlim_cur > OTHER_FILES ? (limit.rlim_cur - OTHER_FILES) / FILES_EACH : 0;
    return room > MOST_OPEN ? MOST_OPEN : room < 2 ? 2 : room;
}

static void passing_free(struct passing *p)
{
    for (size_t i = 0; i < p->count; i++) {
        merge_input_free(&p->inputs[i]);
        if (p->paths[i])
            unlink(p->paths[i]);
        free(p->paths[i]);
    }
    free(p->inputs);
    free(p->paths);
    *p = (struct passing){0};
}

/* Its times are those of the result already. */
static struct merge_input passing_input(const struct merge *m, const char *path)
{
    return (struct merge_input){.path = path,
                                .described = true,
                                .merged = true,
                                .passing = true,
                                .start_mono_ns = m->zero_mono_ns};
}

static enum prof_status merge_groups(struct merge *m, size_t most, struct passing *p)
{
    struct merge_input *inputs = m->inputs;
    size_t count = m->count, groups = (count + most - 1) / most;
    enum prof_status status = PROF_OK;
    p->inputs = calloc(groups, sizeof *p->inputs);
    p->paths = calloc(groups, sizeof *p->paths);
    if (!p->inputs || !p->paths)
        return prof_out_of_memory(m->err);
    for (size_t i = 0; !status && i < groups; i++) {
        status = exchange_temporary(m->output, &p->paths[i], m->err);
        if (status)
            break;
        p->inputs[p->count++] = passing_input(m, p->paths[i]);
        m->inputs = inputs + count * i / groups;
        m->count = count * (i + 1) / groups - count * i / groups;
        status = merge_into(m, p->paths[i], false);
    }
    m->inputs = inputs;
    m->count = count;
    return status;
}

/* Until few enough are left, which m->inputs then are. */
static enum prof_status merge_in_passes(struct merge *m, struct passing *current)
{
    size_t most = max_open_files();
    enum prof_status status = PROF_OK;
    while (!status && m->count > most) {
        struct passing next = {0};
        status = merge_groups(m, most, &next);
        passing_free(current);
        *current = next;
        m->inputs = next.inputs;
        m->count = next.count;
    }
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum prof_status write_result(struct merge *m, const char *temporary)
{
    struct passing passing = {0};
    enum prof_status status = merge_in_passes(m, &passing);
    status = status ?: merge_into(m, temporary, true);
    passing_free(&passing);
    m->inputs = m->all;
    m->count = m->all_count;
    return status;
}

static enum prof_status begin_merge(struct merge *m, const char *const *paths, size_t count)
{
    m->inputs = m->all = calloc(count + 1, sizeof *m->inputs);
    m->result->parts = calloc(count + 1, sizeof *m->result->parts);
    if (!m->inputs || !m->result->parts)
        return prof_out_of_memory(m->err);
    m->count = m->all_count = m->result->count = count;
    m->result->complete = true;
    for (size_t i = 0; i < count; i++) {
        m->result->parts[i] =
            (struct prof_merge_part){.path = paths[i], .error_ns = PROF_MERGE_UNKNOWN};
        m->inputs[i] = (struct merge_input){.path = paths[i], .part = &m->result->parts[i]};
    }
    merge_plan_make(&m->plan, m->options->summary);
    return PROF_OK;
}

static enum prof_status output_free(const struct merge *m)
{
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < m->count; i++)
        status =
            exchange_output_free(m->output, m->inputs[i].path, m->options->file.overwrite, m->err);
    return status;
}

static enum prof_status make_merged_file(struct merge *m)
{
    PROF_FREED char *temporary = NULL;
    enum prof_status status = output_free(m);
    status = status ?: describe_all(m);
    status = status ?: merge_check(m);
    status = status ?: merge_clocks(m);
    if (!status && m->options->summary &&
        !merge_note(m, PROF_HEALTH_part_summary,
                    "no single events, as requested: only what each kernel took in each second"))
        status = prof_out_of_memory(m->err);
    PROF_TRY(status ?: exchange_temporary(m->output, &temporary, m->err));
    status = write_result(m, temporary);
    status = status ?: exchange_sync(temporary, m->output, m->err);
    status =
        status ? status : exchange_put(temporary, m->output, m->options->file.overwrite, m->err);
    if (status)
        unlink(temporary);
    return status;
}

enum prof_status prof_merge(const char *const *paths, size_t count, const char *output,
                            const struct prof_merge_options *options,
                            struct prof_merge_result *result, struct prof_error *err)
{
    struct merge *m = calloc(1, sizeof *m); /* too large for the stack of a small thread */
    *result = (struct prof_merge_result){0};
    if (!m)
        return prof_out_of_memory(err);
    *m = (struct merge){.options = options, .result = result, .err = err, .output = output};
    enum prof_status status = begin_merge(m, paths, count);
    status = status ?: make_merged_file(m);
    for (size_t i = 0; i < m->all_count; i++)
        merge_input_free(&m->all[i]);
    free(m->all);
    merge_free_lines(m);
    free(m);
    if (status)
        prof_merge_result_free(result);
    return status;
}

void prof_merge_result_free(struct prof_merge_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        free(result->parts[i].host);
        free(result->parts[i].ranks);
        free(result->parts[i].missing);
    }
    free(result->parts);
    for (int i = 0; i < result->note_count; i++)
        free(result->notes[i]);
    free(result->notes);
    *result = (struct prof_merge_result){0};
}

/* ---- one file -------------------------------------------------------------------------------- */

/* One file of a merge: what its own row of `capture` and its processes say. */

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

static void merge_input_free(struct merge_input *in)
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
