/* The tables `iterations` and `findings` of perfkit sql: made of the analyses when a statement
 * names them. */

#include "libprof/analysis/sql/sql.h"
#include "libprof/include/prof_iterations.h"

static const struct prof_view_column iteration_columns[] = {
    {"number", "INTEGER", "from 1, of all iterations in order of start"},
    {"phase", "TEXT", "NVTX range or period that repeats"},
    {"pid", "INTEGER", "process"},
    {"tid", "INTEGER", "thread that ran it"},
    {"device", "INTEGER", "number of the device that this thread launches most on"},
    {"start_ns", "INTEGER", "since capture start"},
    {"duration_ns", "INTEGER", "until it and all device work launched in it is done"},
    {"warm_up", "INTEGER", "1 = not compared with the others"},
    {"slow", "INTEGER", "1 = unusually long for its phase and thread"},
    {"device_ns", "INTEGER", "while an operation of the device ran"},
    {"api_ns", "INTEGER", "in API calls of the thread"},
    {"sync_ns", "INTEGER", "in synchronizations of the thread"},
    {"launches", "INTEGER", "kernels, and graphs recorded as a whole"},
    {"transfers", "INTEGER", "memcpys and memsets"},
    {"bytes", "INTEGER", "of them"},
    {"allocations", "INTEGER", "how many were made"},
    {"allocated_bytes", "INTEGER", "their sizes, added up"},
    {"synchronizations", "INTEGER", "how often the host waited for the device"},
    {"energy_j", "REAL", "of the device's board; NULL = not known within a quarter"},
    {0},
};

static const struct prof_view_column finding_columns[] = {
    {"rule", "TEXT", "as perfkit explain takes it"},
    {"severity", "TEXT", "info, warning, critical"},
    {"title", "TEXT", "what is wrong, in one line"},
    {"phase", "TEXT", "NVTX range or period that was analysed; NULL = the whole run"},
    {"device", "INTEGER", "number of the device; NULL = none in particular"},
    {"bound_ns", "INTEGER", "the most that fixing it saves; NULL = it is not about time"},
    {"bound_share", "REAL", "of the analysed time, 0 to 1"},
    {"alone_ns", "INTEGER", "the same where nothing else is fixed"},
    {"rule_bound_ns", "INTEGER",
     "the bounds of all phases of the rule summed; phases below 1 % of the run have no row"},
    {"rule_phases", "INTEGER", "in which the rule found something"},
    {"bytes", "INTEGER", "of findings about memory"},
    {"confidence", "REAL", "0 to 1"},
    {"hint", "INTEGER", "1 = no fault by itself"},
    {"seen", "TEXT", "what was seen, one paragraph"},
    {"fix", "TEXT", "what to change"},
    {"place", "TEXT", "ranges around the costliest place"},
    {"name", "TEXT", "kernel, memcpy or call there"},
    {"line", "TEXT", "source line that called it"},
    {0},
};

/* Columns bound one after the other: -1 is left to SQLite as NULL. */
struct row {
    sqlite3_stmt *sql;
    int at;
};

static void put_int(struct row *row, int64_t value)
{
    row->at++;
    if (value == PROF_UNKNOWN)
        sqlite3_bind_null(row->sql, row->at);
    else
        sqlite3_bind_int64(row->sql, row->at, value);
}

static void put_real(struct row *row, double value)
{
    sqlite3_bind_double(row->sql, ++row->at, value); /* NaN is NULL */
}

static void put_text(struct row *row, const char *value)
{
    sqlite3_bind_text(row->sql, ++row->at, value && *value ? value : NULL, -1, SQLITE_TRANSIENT);
}

static enum prof_status end_row(struct row *row, struct prof_capture *capture,
                                struct prof_error *err)
{
    int code = sqlite3_step(row->sql);
    sqlite3_reset(row->sql);
    row->at = 0;
    return code == SQLITE_DONE ? PROF_OK : prof_store_fail(capture->store, "query", err);
}

static int64_t device_number(const struct prof_capture *capture, int64_t id)
{
    const struct prof_device *device = id ? prof_device(capture, id) : NULL;
    return device ? device->ordinal : PROF_UNKNOWN;
}

static enum prof_status put_iteration_values(struct row *row, struct prof_capture *capture,
                                             const struct prof_iteration_list *list, size_t i,
                                             struct prof_error *err)
{
    const struct prof_iteration_row *it = &list->rows[i];
    const struct prof_thread *thread = prof_thread(capture, it->thread);
    const struct prof_process *process = thread ? prof_process(capture, thread->process) : NULL;
    const int64_t rest[] = {
        it->start_ns,    it->duration_ns,     it->warm_up,         it->slow,      it->device_ns,
        it->api_ns,      it->sync_ns,         it->launches,        it->transfers, it->bytes,
        it->allocations, it->allocated_bytes, it->synchronizations};
    put_int(row, it->number);
    put_text(row, list->phases[list->series[it->series].phase].name);
    put_int(row, process ? process->pid : PROF_UNKNOWN);
    put_int(row, thread ? thread->tid : PROF_UNKNOWN);
    put_int(row, device_number(capture, it->device));
    for (size_t k = 0; k < sizeof rest / sizeof *rest; k++)
        put_int(row, rest[k]);
    put_real(row, it->energy.joules);
    return end_row(row, capture, err);
}

static enum prof_status fill_iterations_table(struct prof_capture *capture, sqlite3_stmt *insert,
                                              struct prof_error *err)
{
    struct prof_iteration_list list;
    struct row row = {insert, 0};
    enum prof_status status = prof_iteration_list(capture, NULL, NULL, &list, err);
    for (size_t i = 0; !status && i < list.count; i++)
        status = put_iteration_values(&row, capture, &list, i, err);
    prof_iteration_list_free(&list);
    return status;
}

static enum prof_status put_finding_values(struct row *row, struct prof_capture *capture,
                                           const struct prof_findings *findings,
                                           const struct prof_finding *finding,
                                           struct prof_error *err)
{
    static const char *const severities[] = {[PROF_SEVERITY_INFO] = "info",
                                             [PROF_SEVERITY_WARNING] = "warning",
                                             [PROF_SEVERITY_CRITICAL] = "critical"};
    const struct prof_place *place = finding->place_count ? finding->places : NULL;
    put_text(row, finding->rule->id);
    put_text(row, severities[finding->severity]);
    put_text(row, finding->rule->title);
    put_text(row,
             finding->phase < findings->phase_count ? findings->phases[finding->phase].name : NULL);
    put_int(row, device_number(capture, finding->device));
    put_int(row, finding->bound_ns);
    put_real(row, finding->bound_share);
    put_int(row, finding->alone_ns);
    put_int(row, finding->rule_bound_ns);
    put_int(row, (int64_t)finding->phases);
    put_int(row, finding->bytes);
    put_real(row, finding->confidence);
    put_int(row, finding->hint);
    put_text(row, finding->seen);
    put_text(row, finding->fix);
    put_text(row, place ? place->path : NULL);
    put_text(row, place ? place->name : NULL);
    put_text(row, place ? place->line : NULL);
    return end_row(row, capture, err);
}

static enum prof_status fill_findings_table(struct prof_capture *capture, sqlite3_stmt *insert,
                                            struct prof_error *err)
{
    struct prof_findings findings;
    struct row row = {insert, 0};
    enum prof_status status = prof_findings(capture, NULL, &findings, err);
    for (size_t i = 0; !status && i < findings.count; i++)
        status = put_finding_values(&row, capture, &findings, &findings.rows[i], err);
    prof_findings_free(&findings);
    return status;
}

const struct prof_computed prof_computed_tables[] = {
    {"iterations", "The iterations of the program one by one.", iteration_columns,
     fill_iterations_table},
    {"findings", "What perfkit report finds, the worst first.", finding_columns,
     fill_findings_table},
    {0},
};

static enum prof_status run_made(struct prof_capture *capture, sqlite3_str *sql,
                                 struct prof_error *err)
{
    PROF_SQL_FREED char *text = sqlite3_str_finish(sql);
    enum prof_status status = PROF_OK;
    if (!text)
        status = prof_out_of_memory(err);
    else if (!prof_sql_run(capture->db, text))
        status = prof_store_fail(capture->store, "query", err);
    return status;
}

enum prof_status prof_computed_make(struct prof_capture *capture, const struct prof_computed *table,
                                    struct prof_error *err)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql, "CREATE TEMP TABLE IF NOT EXISTS \"%w\"(", table->name);
    for (const struct prof_view_column *c = table->columns; c->name; c++)
        sqlite3_str_appendf(sql, "%s\"%w\" %s", c == table->columns ? "" : ",", c->name, c->sql);
    sqlite3_str_appendf(sql, "); DELETE FROM temp.\"%w\"", table->name);
    return run_made(capture, sql, err);
}

enum prof_status prof_computed_fill(struct prof_capture *capture, const struct prof_computed *table,
                                    struct prof_error *err)
{
    sqlite3_stmt *insert = NULL;
    sqlite3_str *sql = sqlite3_str_new(NULL);
    sqlite3_str_appendf(sql, "INSERT INTO temp.\"%w\" VALUES(?", table->name);
    for (const struct prof_view_column *c = table->columns + 1; c->name; c++)
        sqlite3_str_appendall(sql, ",?");
    sqlite3_str_appendall(sql, ")");
    char *text = sqlite3_str_finish(sql);
    enum prof_status status =
        text ? prof_query(capture, text, &insert, err) : prof_out_of_memory(err);
    sqlite3_free(text);
    if (!status && !prof_sql_run(capture->db, "SAVEPOINT computed"))
        status = prof_store_fail(capture->store, "query", err);
    status = status ?: table->fill(capture, insert, err);
    sqlite3_finalize(insert);
    prof_sql_run(capture->db, "RELEASE computed");
    return status;
}
