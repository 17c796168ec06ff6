/* The commands in the order in which `perfkit help` lists them: a new one is a word here and
 * NAME_command in a file of its own. main.c adds `help`. */
#ifndef PERFKIT_CLI_COMMANDS_H
#define PERFKIT_CLI_COMMANDS_H

#include "cli/command.h"

/* clang-format off */
#define CLI_COMMANDS(COMMAND)                                                                      \
    COMMAND(run) COMMAND(top) COMMAND(ctl) COMMAND(report) COMMAND(explain) COMMAND(baseline)      \
    COMMAND(gate) COMMAND(ab) COMMAND(diff) COMMAND(recover) COMMAND(symbolize) COMMAND(merge)     \
    COMMAND(export) COMMAND(import) COMMAND(device) COMMAND(doctor) COMMAND(version)
/* clang-format on */

#define CLI_DECLARE(name) extern const struct cli_command name##_command;
CLI_COMMANDS(CLI_DECLARE)

#endif
