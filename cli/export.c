/* perfkit export: a capture in the shape that another tool's files have. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/exchange.h"
#include "cli/newest.h"
#include "cli/option_rows.h"
#include "libprof/include/prof.h"
#include "libprof/store/store.h"

struct export_options {
    unsigned shape;
    const char *output;
    bool force, quiet;
};

static const char *const shapes[] = {"nsys", "parquet", NULL};
static exchange_call *const calls[] = {prof_export_nsys, prof_export_parquet};

#define AT(field) .offset = offsetof(struct export_options, field)
static const struct cli_option export_options[] = {
    {.name = "to",
     .type = CLI_CHOICE,
     AT(shape),
     .argument = "SHAPE",
     .words = shapes,
     .fallback = "nsys",
     .text =
         "nsys: the SQLite file that `nsys export` makes, schema 3.25; parquet: a folder with a "
         "file for each table, for DuckDB, Spark and others"},
    {.name = "output",
     .letter = 'o',
     .type = CLI_FILE,
     AT(output),
     .argument = "OUT",
     .text = "file or folder to write; the same as OUT behind FILE"},
    CLI_FORCE_ROW(export_options, force,
                  "replace the file, or the folder of Parquet files, if it exists"),
    CLI_QUIET_ROW(export_options, quiet, "print no notes, only errors"),
    {0},
};

static const struct cli_text_row export_examples[] = {
    {"perfkit export train.sqlite --to nsys train-nsys.sqlite",
     "For scripts made for Nsight Systems."},
    {"perfkit export train.sqlite --to parquet train.parquet", "For queries over many runs."},
    {"nsys stats --report cuda_gpu_kern_sum train-nsys.sqlite", "Its own reports on it."},
    {0},
};

static int export_run(const struct cli_command *command, int argc, char **argv)
{
    struct export_options asked = {0};
    struct cli_operands operands;
    struct prof_error err = {0};
    char newest[PATH_MAX];
    int exit_status;
    if (!cli_parse(command, argc, argv, &asked, &operands, &exit_status))
        return exit_status;
    int files = asked.output ? operands.count : operands.count - 1;
    if (files < 0 || files > 1) {
        cli_say(command->name, files < 0 ? "where to? name the file to write"
                                         : "OUT is named twice: give it once");
        return CLI_USAGE;
    }
    const char *output = asked.output ? asked.output : operands.values[files];
    const char *path = operands.values[0];
    if (!files && is_capture_file(AT_FDCWD, output)) {
        cli_say(command->name, "where to? %s is a capture: name the file to write, too", output);
        return CLI_USAGE;
    }
    if (!files) {
        if (newest_capture(".", newest, &err)) {
            cli_say(command->name, "%s", err.message);
            return CLI_USAGE;
        }
        path = newest;
    }
    prof_store_settle(path);
    return exchange_run(command, calls[asked.shape], path, output, asked.force, asked.quiet,
                        "rows");
}

const struct cli_command export_command = {
    .name = "export",
    .summary = "write a capture in the shape of another tool's files",
    .operands = "[FILE] OUT",
    .text = "Writes what a capture holds into a file, or a folder of files, of its own that other "
            "tools can open. Without FILE: the "
            "newest capture of the current folder. What the format cannot hold is left out, with a "
            "note. "
            "Traces and profiles for viewers are made by `perfkit report`.",
    .options = export_options,
    .examples = export_examples,
    .operand = CLI_FILE,
    .most = 2,
    .usage_status = CLI_USAGE,
    .run = export_run,
};
