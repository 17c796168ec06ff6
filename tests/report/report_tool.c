/* For the report tests: makes small captures with SQL and runs one writer on one of them.
 *     report_tool make SQLFILE CAPTURE
 *     report_tool tables
 *     report_tool write FORMAT CAPTURE OUT [top=N] [width=N] [lines=N] [colour] [all] [kernel=TEXT]
 * [begin=N] [end=N] [pattern=REGEX] [range=NAME] [events=N] [baseline=CAPTURE ...] OUT "-" is
 * standard output. The command line of perfkit is not used, so that a report test fails for what
 * report/ does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/store/store.h"
#include "report/columns.h"
#include "report/data.h"
#include "report/report.h"
#include "report/table.h"

static int fail(const struct prof_error *err)
{
    fprintf(stderr, "report_tool: %s\n", err->message);
    return 1;
}

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t size = 0, room = 1 << 16;
    char *text = malloc(room);
    while (file && text) {
        size += fread(text + size, 1, room - size - 1, file);
        if (size + 1 < room)
            break;
        room *= 2;
        text = realloc(text, room);
    }
    if (!file || !text) {
        perror(path);
        exit(1);
    }
    fclose(file);
    text[size] = 0;
    return text;
}

static int make(const char *sql_path, const char *capture)
{
    struct prof_error err = {0};
    struct prof_store *store;
    char *message = NULL, *sql = read_all(sql_path);
    if (prof_store_create(capture, true, &store, &err))
        return fail(&err);
    /* The calls of fixtures are classed by their names, as those of earlier captures. */
    const char *unclassed = "ALTER TABLE api_call DROP COLUMN class";
    if (sqlite3_exec(prof_store_db(store), unclassed, NULL, NULL, &message) ||
        sqlite3_exec(prof_store_db(store), sql, NULL, NULL, &message)) {
        fprintf(stderr, "report_tool: %s: %s\n", sql_path, message);
        return 1;
    }
    free(sql);
    if (prof_store_publish(store, &err))
        return fail(&err);
    prof_store_close(store);
    return 0;
}

/* The summary formats are the first writers, in the order of their numbers. */
static enum prof_report_format format_of(const char *name)
{
    unsigned at = 0;
    while (at < PROF_REPORT_MARKDOWN && strcmp(prof_report_writers[at].name, name) != 0)
        at++;
    return (enum prof_report_format)at;
}

static int write_report(int argc, char **argv)
{
    struct prof_error err = {0};
    struct prof_capture *capture;
    struct prof_filter filter = {0};
    struct prof_report_options options = {0};
    struct prof_report_other others[4] = {0};
    const char *paths[4];
    const struct prof_report_writer *writer = prof_report_find(argv[0]);
    bool ranks = false;
    for (int i = 3; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        value = value ? value + 1 : "";
        if (!strncmp(argv[i], "top=", 4))
            options.top = strtoul(value, NULL, 10);
        else if (!strncmp(argv[i], "lines=", 6))
            options.lines = strtoul(value, NULL, 10);
        else if (!strncmp(argv[i], "width=", 6))
            options.width = strtoul(value, NULL, 10);
        else if (!strcmp(argv[i], "colour"))
            options.colour = true;
        else if (!strcmp(argv[i], "ranks"))
            ranks = true;
        else if (!strcmp(argv[i], "all"))
            options.all = true;
        else if (!strncmp(argv[i], "events=", 7))
            options.events = strtoul(value, NULL, 10);
        else if (!strncmp(argv[i], "kernel=", 7))
            filter.kernel = value;
        else if (!strncmp(argv[i], "pattern=", 8))
            filter.kernel_pattern = value;
        else if (!strncmp(argv[i], "range=", 6))
            filter.range = value;
        else if (!strncmp(argv[i], "baseline=", 9) && options.other_count < 4)
            paths[options.other_count++] = value;
        else if (!strncmp(argv[i], "begin=", 6))
            filter.begin_ns = strtoll(value, NULL, 10);
        else if (!strncmp(argv[i], "end=", 4))
            filter.end_ns = strtoll(value, NULL, 10);
    }
    if (filter.kernel || filter.kernel_pattern || filter.range || filter.begin_ns || filter.end_ns)
        options.filter = &filter;
    if (!writer) {
        fprintf(stderr, "report_tool: no writer %s\n", argv[0]);
        return 1;
    }
    options.others = others;
    for (size_t i = 0; i < options.other_count; i++)
        if (prof_open(paths[i], &others[i].capture, &err))
            return fail(&err);
    if (prof_open(argv[1], &capture, &err))
        return fail(&err);
    enum prof_status status =
        ranks ? prof_report_write_ranks(capture, &options, format_of(argv[0]), stdout, &err)
        : strcmp(argv[2], "-") ? prof_report_save(writer, capture, &options, argv[2], &err)
                               : writer->write(capture, &options, stdout, &err);
    prof_close(capture);
    for (size_t i = 0; i < options.other_count; i++)
        prof_close(others[i].capture);
    return status ? fail(&err) : 0;
}

/* The columns of every table with what JSON may hold in them, for the schema. */
static int list_tables(const struct prof_report_table *const *tables)
{
    static const char *const stored[PROF_STORED_COMPUTED + 1] = {[PROF_STORED_INT64] = "integer",
                                                                 [PROF_STORED_INT] = "integer",
                                                                 [PROF_STORED_DOUBLE] = "number",
                                                                 [PROF_STORED_BOOL] = "boolean"};
    struct prof_json json;
    struct prof_error err = {0};
    prof_json_to_file(&json, stdout, 1);
    prof_json_object(&json, NULL);
    for (; *tables; tables++) {
        const struct prof_report_table *table = *tables;
        prof_json_object(&json, table->name);
        prof_json_string(&json, "title", table->title);
        prof_json_string(&json, "help", table->help);
        prof_json_bool(&json, "all", table->total_row != NULL);
        prof_json_object(&json, "columns");
        for (const struct prof_report_column *c = table->columns; c->key; c++) {
            bool text = c->unit == PROF_UNIT_NAME || c->unit == PROF_UNIT_WORD ||
                        c->unit == PROF_UNIT_PROSE;
            prof_json_string(&json, c->key,
                             stored[c->storage] ? stored[c->storage]
                             : text             ? "string"
                                                : "number");
        }
        prof_json_end(&json);
        prof_json_end(&json);
    }
    prof_json_end(&json);
    return prof_json_finish(&json, &err) ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "tables"))
        return list_tables(prof_report_tables);
    if (argc == 3 && !strcmp(argv[1], "tables") && !strcmp(argv[2], "memory"))
        return list_tables(prof_report_memory_tables);
    if (argc == 3 && !strcmp(argv[1], "tables") && !strcmp(argv[2], "iterations"))
        return list_tables(prof_report_iteration_tables);
    if (argc == 3 && !strcmp(argv[1], "tables") && !strcmp(argv[2], "why"))
        return list_tables(prof_report_why_tables);
    if (argc == 4 && !strcmp(argv[1], "make"))
        return make(argv[2], argv[3]);
    if (argc >= 5 && !strcmp(argv[1], "write"))
        return write_report(argc - 2, argv + 2);
    fprintf(stderr, "usage: report_tool make SQL CAPTURE | write FORMAT CAPTURE OUT [option...]\n");
    return 2;
}
