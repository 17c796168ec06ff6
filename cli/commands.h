/* The commands, one file each; main.c lists them. */
#ifndef PERFKIT_CLI_COMMANDS_H
#define PERFKIT_CLI_COMMANDS_H

#include "cli/command.h"

extern const struct cli_command run_command;
extern const struct cli_command report_command;
extern const struct cli_command explain_command;
extern const struct cli_command top_command;
extern const struct cli_command ctl_command;
extern const struct cli_command baseline_command;
extern const struct cli_command gate_command;
extern const struct cli_command ab_command;
extern const struct cli_command diff_command;
extern const struct cli_command recover_command;
extern const struct cli_command symbolize_command;
extern const struct cli_command merge_command;
extern const struct cli_command export_command;
extern const struct cli_command import_command;
extern const struct cli_command device_command;
extern const struct cli_command doctor_command;
extern const struct cli_command version_command;

#endif
