/* Texts made from the command tables at build time. */
#ifndef PERFKIT_CLI_GENERATE_H
#define PERFKIT_CLI_GENERATE_H

#include <stdio.h>

#include "cli/command.h"

/* generate_man.c: NULL = perfkit(1) */
void generate_man(FILE *out, const struct cli_command *command);

/* generate_shell.c */
void generate_bash(FILE *out);
void generate_zsh(FILE *out);
void generate_fish(FILE *out);

#endif
