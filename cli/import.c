/* perfkit import: a capture made of another tool's file, on which every report and finding works.
 */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/exchange.h"
#include "cli/option_rows.h"

struct import_options {
    const char *output;
    bool force, quiet;
};

#define AT(field) .offset = offsetof(struct import_options, field)
static const struct cli_option import_options[] = {
    {.name = "output",
     .letter = 'o',
     .type = CLI_FILE,
     AT(output),
     .argument = "OUT",
     .text = "capture to write (needed)"},
    CLI_FORCE_ROW(import_options, force, "replace the file if it exists"),
    CLI_QUIET_ROW(import_options, quiet, "print no notes, only errors"),
    {0},
};

static const struct cli_text_row import_examples[] = {
    {"perfkit import nsys.sqlite -o train.sqlite",
     "From `nsys export --type sqlite`, schema 3.20 to 3.28."},
    {"perfkit import rank0.pt.trace.json.gz -o rank0.sqlite",
     "From torch.profiler, or any Chrome trace."},
    {0},
};

static int import_run(const struct cli_command *command, int argc, char **argv)
{
    struct import_options asked = {0};
    struct cli_operands operands;
    int exit_status;
    if (!cli_parse(command, argc, argv, &asked, &operands, &exit_status))
        return exit_status;
    if (!asked.output) {
        cli_say(command->name, "where to? name the capture to write with -o");
        return CLI_USAGE;
    }
    return exchange_run(command, prof_import, operands.values[0], asked.output, asked.force,
                        asked.quiet, "events");
}

const struct cli_command import_command = {
    .name = "import",
    .summary = "make a capture of another tool's file",
    .operands = "FILE -o OUT",
    .text = "Reads an SQLite export of Nsight Systems or a Chrome trace (of torch.profiler or any "
            "other, .json or "
            ".json.gz) and writes a capture. Reports and findings work on it as on one that was "
            "recorded. What the "
            "source does not contain is not available, and the trust block says so.",
    .options = import_options,
    .examples = import_examples,
    .operand = CLI_FILE,
    .least = 1,
    .most = 1,
    .usage_status = CLI_USAGE,
    .run = import_run,
};
