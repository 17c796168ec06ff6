/* The row that says what was recorded, where and when; and the kernel filter, which it keeps so
 * that a recovered capture has the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/regular.h"
#include "libprof/base/utf8.h"
#include "libprof/store/ingest.h"
#include "libprof/store/ingest_private.h"

static char *read_system_line(const char *path)
{
    char line[256];
    return prof_first_line(path, line, sizeof line) ? strdup(line) : NULL;
}

static char *processor_model(void)
{
    PROF_FILE_CLOSED FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    char *model = NULL;
    while (file && !model && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            line[strcspn(line, "\n")] = '\0';
            model = strdup(colon + 2);
        }
    }
    return model;
}

static enum prof_status run_once(struct prof_ingest *ingest, sqlite3_stmt *sql)
{
    if (!ingest->error.status)
        ingest_check(ingest, sqlite3_step(sql));
    sqlite3_finalize(sql);
    return ingest->error.status;
}

enum prof_status ingest_capture_begin(struct prof_ingest *ingest,
                                      const struct prof_ingest_about *about)
{
    sqlite3_stmt *sql;
    PROF_TRY(ingest_check(ingest, prof_schema_insert(ingest->db, SCHEMA_capture, 1, false, &sql)));
    struct utsname system;
    char kernel[256];
    uname(&system);
    snprintf(kernel, sizeof kernel, "%s %s", system.sysname, system.release);
    char *boot = read_system_line("/proc/sys/kernel/random/boot_id");
    char *model = processor_model();
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, state), "recording");
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, perfkit_version), PERFKIT_VERSION);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, command), about->command);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, directory), about->directory);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, host), system.nodename);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, boot_id), boot);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, kernel), kernel);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, cpu), model);
    ingest_bind(sql, COLUMN_AT(capture, cpu_count), sysconf(_SC_NPROCESSORS_ONLN));
    ingest_bind(sql, COLUMN_AT(capture, start_realtime_ns), (int64_t)about->start_realtime_ns);
    ingest_bind(sql, COLUMN_AT(capture, start_mono_ns), (int64_t)about->start_mono_ns);
    ingest_bind(sql, COLUMN_AT(capture, start_raw_ns), (int64_t)about->start_raw_ns);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, spool), ingest->directory);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, trace), about->trace);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, kernel_filter), about->kernel_filter);
    free(boot);
    free(model);
    ingest->zero_ns = about->start_mono_ns;
    PROF_TRY(run_once(ingest, sql));
    return ingest_filter_load(ingest);
}

enum prof_status ingest_capture_foreign(struct prof_ingest *ingest,
                                        const struct foreign_about *about)
{
    sqlite3_stmt *sql;
    PROF_TRY(ingest_check(ingest, prof_schema_insert(ingest->db, SCHEMA_capture, 1, false, &sql)));
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, state), "recording");
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, perfkit_version), PERFKIT_VERSION);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, command), about->command);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, directory), about->directory);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, host), about->host);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, kernel), about->kernel);
    ingest_bind_text(ingest, sql, COLUMN_AT(capture, cpu), about->cpu);
    ingest_bind_known(sql, COLUMN_AT(capture, cpu_count), about->cpu_count);
    ingest_bind_known(sql, COLUMN_AT(capture, start_realtime_ns), about->start_realtime_ns);
    return run_once(ingest, sql);
}

enum prof_status ingest_capture_end(struct prof_ingest *ingest, const char *state)
{
    uint64_t end = 0;
    for (size_t i = 0; i < ingest->processes.count; i++) {
        if (ingest->processes.data[i].end_ns > end)
            end = ingest->processes.data[i].end_ns;
    }
    return ingest_capture_close(ingest, state,
                                end > ingest->zero_ns ? (int64_t)(end - ingest->zero_ns) : -1);
}

enum prof_status ingest_capture_close(struct prof_ingest *ingest, const char *state,
                                      int64_t duration_ns)
{
    sqlite3_stmt *sql;
    PROF_TRY(ingest_query(ingest,
                          "UPDATE capture SET state=?1,duration=?2,exit_status=?3,exit_signal=?4,"
                          "spool=NULL",
                          &sql));
    int wait_status = ingest->primary_status;
    ingest_bind_text(ingest, sql, 1, state);
    if (duration_ns >= 0)
        ingest_bind(sql, 2, duration_ns);
    if (ingest->has_primary && WIFEXITED(wait_status))
        ingest_bind(sql, 3, WEXITSTATUS(wait_status));
    if (ingest->has_primary && WIFSIGNALED(wait_status))
        ingest_bind(sql, 4, WTERMSIG(wait_status));
    return run_once(ingest, sql);
}

void ingest_filter_free(struct prof_ingest *ingest)
{
    if (ingest->has_kernel_filter)
        regfree(&ingest->kernel_filter);
    ingest->has_kernel_filter = false;
}

static enum prof_status compile_kernel_filter(struct prof_ingest *ingest, const char *text)
{
    const char *excess = prof_pattern_excess(text);
    if (excess)
        return prof_fail(&ingest->error, PROF_INVALID,
                         "kernel filter '%.100s': %s: give a simpler pattern", text, excess);
    int code = regcomp(&ingest->kernel_filter, text, REG_EXTENDED | REG_NOSUB);
    char why[128];
    ingest->has_kernel_filter = code == 0;
    if (code == 0)
        return PROF_OK;
    if (code == REG_ESPACE)
        return ingest_no_memory(ingest, "the kernel filter");
    regerror(code, &ingest->kernel_filter, why, sizeof why);
    return prof_fail(&ingest->error, PROF_INVALID,
                     "kernel filter '%.100s': %s: give a POSIX extended regular expression", text,
                     why);
}

enum prof_status ingest_filter_load(struct prof_ingest *ingest)
{
    sqlite3_stmt *row;
    enum prof_status status = PROF_OK;
    ingest_filter_free(ingest);
    PROF_TRY(ingest_query(ingest, "SELECT kernel_filter FROM capture", &row));
    const char *text =
        sqlite3_step(row) == SQLITE_ROW ? (const char *)sqlite3_column_text(row, 0) : NULL;
    if (text)
        status = compile_kernel_filter(ingest, text);
    else if (sqlite3_column_type(row, 0) != SQLITE_NULL) /* a filter, but which? */
        status = ingest_no_memory(ingest, "the kernel filter");
    return ingest_query_end(ingest, row, status);
}

bool ingest_filters(const struct prof_ingest *ingest, const char *name)
{
    return ingest->has_kernel_filter && regexec(&ingest->kernel_filter, name, 0, NULL, 0) != 0;
}
