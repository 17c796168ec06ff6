/* perfkit sql: a query on a capture, written by people in SQL or by its name, through the one table
 * writer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "cli/command.h"
#include "cli/find_capture.h"
#include "libprof/include/prof_sql.h"
#include "report/columns.h"
#include "report/writers.h"

#define MAX_WIDTH 10000         /* of a line that no terminal shows */
#define MAX_NAME 100            /* cells of a text in it: csv and json have all of it */
#define MAX_HEAP (512ll << 20)  /* bytes of SQLite's: one row may have 2000 cells of 16 MiB */
#define MAX_QUERY (1024 * 1024) /* bytes on standard input */

struct sql_options {
    unsigned format, top;
    uint64_t timeout_ns;
    bool list, json;
};

static const struct cli_option sql_options_table[] = {
    CLI_OPTION(
        sql_options, list, "list", 'l', FLAG, NULL,
        "print the ready queries, and the views and tables with their columns; with the name "
        "of a view or table, what its columns hold"),
    CLI_FORMAT_ROWS(sql_options, format, json),
    CLI_OPTION(sql_options, top, "top", 'n', COUNT, "N", "print N rows at most", .fallback = "all"),
    CLI_OPTION(sql_options, timeout_ns, "timeout", 0, TIME, "TIME", "stop the query after TIME",
               .fallback = "never"),
    {0},
};

static const struct cli_text_row sql_examples[] = {
    {"perfkit sql --list", "The ready queries, and what can be named in FROM."},
    {"perfkit sql --list kernels", "What the columns of kernels hold."},
    {"perfkit sql train.sqlite top_kernels", "A ready query on a capture."},
    {"perfkit sql train.sqlite \"SELECT name, count(*) FROM kernels GROUP BY 1\"", "Your own."},
    {"perfkit sql --format csv train.sqlite < query.sql > rows.csv", "From a file, for a program."},
    {0},
};

/* ---- the list -------------------------------------------------------------------------------- */

static const struct prof_report_column ready_columns[] = {
    STRING("name", "Query", WORD, 1, prof_sql_ready, name),
    STRING("text", "What it shows", PROSE, 1, prof_sql_ready, text),
    STRING("sql", "SQL", PROSE, 0, prof_sql_ready, sql),
    {0},
};
static const struct prof_report_table ready_table = {.name = "queries",
                                                     .title = "Ready queries",
                                                     .columns = ready_columns,
                                                     .row_bytes = sizeof(struct prof_sql_ready)};

static const struct prof_report_column source_columns[] = {
    STRING("name", "FROM", WORD, 1, prof_sql_source, name),
    STRING("text", "What it holds", PROSE, 0, prof_sql_source, text),
    CHARS("columns", "Columns", PROSE, 1, prof_sql_source, columns),
    {0},
};
static const struct prof_report_table source_table = {.name = "sources",
                                                      .title = "Views and tables",
                                                      .columns = source_columns,
                                                      .row_bytes = sizeof(struct prof_sql_source)};

static const struct prof_report_column column_columns[] = {
    STRING("name", "Column", WORD, 1, prof_sql_column, name),
    STRING("text", "What it holds", PROSE, 1, prof_sql_column, text),
    {0},
};
static const struct prof_report_table column_table = {.name = "columns",
                                                      .title = "Columns",
                                                      .columns = column_columns,
                                                      .row_bytes = sizeof(struct prof_sql_column)};

static enum prof_status print_source(const char *name, struct prof_report_output *output,
                                     struct prof_error *err)
{
    struct prof_sql_source source;
    struct prof_sql_column columns[64];
    size_t at = 0, count = 0;
    while (prof_sql_source(at, &source) && strcmp(source.name, name) != 0)
        at++;
    while (count < 64 && prof_sql_column(at, count, &columns[count]))
        count++;
    return count ? prof_report_put_rows(output, &column_table, columns, count, err)
                 : prof_fail(err, PROF_INVALID, "%s: no such view or table: `--list` prints them",
                             name);
}

static enum prof_status print_lists(struct prof_report_output *output, struct prof_error *err)
{
    struct prof_sql_source sources[16];
    struct prof_sql_ready ready[64];
    size_t count = 0, queries = 0;
    const struct prof_sql_ready *query;
    while (count < 16 && prof_sql_source(count, &sources[count]))
        count++;
    while (queries < 64 && (query = prof_sql_ready(queries)))
        ready[queries++] = *query;
    enum prof_status status = prof_report_put_rows(output, &ready_table, ready, queries, err);
    if (!status && output->format == PROF_REPORT_TEXT)
        putchar('\n');
    return status ? status : prof_report_put_rows(output, &source_table, sources, count, err);
}

/* ---- a query --------------------------------------------------------------------------------- */

/* Standard input to its end; NULL: no memory, or more than a query has. */
static char *read_query(void)
{
    char *text = malloc(MAX_QUERY + 1);
    size_t length = text ? fread(text, 1, MAX_QUERY + 1, stdin) : 0;
    if (text && length > MAX_QUERY) {
        free(text);
        return NULL;
    }
    if (text)
        text[length] = 0;
    return text;
}

/* One word that no ready query has is NULL: it is no SQL. */
static const char *ready_sql(const char *text)
{
    const struct prof_sql_ready *ready;
    for (size_t i = 0; (ready = prof_sql_ready(i)); i++)
        if (!strcmp(ready->name, text))
            return ready->sql;
    return *text && !text[strcspn(text, " \t\n;(")] ? NULL : text;
}

static enum prof_status print_query(const char *path, const char *query, uint64_t limit_ns,
                                    struct prof_report_output *output, struct prof_error *err)
{
    CLI_CLOSED struct prof_capture *capture = NULL;
    struct prof_sql *sql = NULL;
    const char *text = ready_sql(query);
    sqlite3_hard_heap_limit64(MAX_HEAP);
    enum prof_status status =
        text ? cli_open_capture("sql", path, &capture, err)
             : prof_fail(err, PROF_INVALID,
                         "%s: no such file and no ready query: `perfkit sql --list` prints these",
                         query);
    status = status ?: prof_sql_open(capture, text, limit_ns, &sql, err);
    status = status ?: prof_report_put_sql(output, sql, err);
    prof_sql_close(sql);
    return status;
}

/* One operand is a file, if there is one of that name, else a query on the newest capture. */
static int sql_run(const struct cli_command *command, void *given,
                   const struct cli_operands *operands, struct prof_error *err)
{
    const struct sql_options *args = given;
    struct prof_json json;
    struct prof_report_output output = {
        .format = args->json ? PROF_REPORT_JSON : (enum prof_report_format)args->format,
        .page = {.out = stdout,
                 .top = args->top,
                 .width = isatty(STDOUT_FILENO) ? terminal_width(stdout) : MAX_WIDTH},
        .bare = !args->list,
        .flush = true,
        .name_max = args->list ? 0 : MAX_NAME};
    struct stat info;
    bool is_file = operands->count == 2 ||
                   (operands->count && !stat(operands->values[0], &info) && !S_ISDIR(info.st_mode));
    const char *path = is_file ? operands->values[0] : NULL;
    const char *query = operands->count > is_file ? operands->values[is_file] : NULL;
    PROF_FREED char *from_input = query || args->list || isatty(STDIN_FILENO) ? NULL : read_query();
    query = query ? query : from_input;
    if (!query && !args->list)
        return cli_fail(CLI_USAGE, command->name,
                        "give a query, or the name of one that `perfkit sql --list` prints");
    if (output.format == PROF_REPORT_JSON) {
        prof_json_to_file(&json, stdout, 2);
        output.json = &json;
        if (args->list)
            prof_json_object(&json, NULL);
    }
    enum prof_status status = args->list && query ? print_source(query, &output, err)
                              : args->list
                                  ? print_lists(&output, err)
                                  : print_query(path, query, args->timeout_ns, &output, err);
    if (!status && output.json) {
        if (args->list)
            prof_json_end(&json);
        return cli_finish_json(command->name, &json);
    }
    if (output.json)
        prof_json_free(&json);
    return (int)cli_exit_status(status);
}

const struct cli_command sql_command = {
    .name = "sql",
    .summary = "run a query on a capture",
    .operands = "[FILE] [QUERY]",
    .text = "Runs one SELECT, or a ready query by its name, on the views and tables of a capture, "
            "and prints the rows. Without a file: the newest capture of the current folder; "
            "without a query: what standard input holds. Beside what is in the file, iterations "
            "and findings are tables.\n\n"
            "Times in results are nanoseconds since the start of the capture. In text, columns "
            "whose names end in _ns, bytes or _share are shown with their unit; csv and json have "
            "the plain numbers. The capture is never changed.",
    .options = sql_options_table,
    CLI_OPTIONS_ARE(sql_options, 0),
    .examples = sql_examples,
    .operand = CLI_FILE,
    .most = 2,
    .run = sql_run,
};
