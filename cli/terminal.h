/* What the terminal allows: colour, width, a line that is written over. */
#ifndef PERFKIT_CLI_TERMINAL_H
#define PERFKIT_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Columns to wrap at: the terminal's, at most 100; 80 when it is no terminal. */
size_t terminal_width(FILE *stream);

/* COLUMNS of the environment, when somebody set it to a usable number; else 0. */
size_t terminal_columns_set(void);

/* True on a terminal unless NO_COLOR is set or TERM is "dumb". */
bool terminal_colour(FILE *stream);

#endif
