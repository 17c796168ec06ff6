/* Where the capture of `perfkit run` goes: its name, the check that it can be written before the
 * program starts, and how it gets there from the spool folder when the folder is on a network. */
#ifndef PERFKIT_CLI_RUN_OUTPUT_H
#define PERFKIT_CLI_RUN_OUTPUT_H

#include <limits.h>
#include <stdbool.h>

#include "libprof/base/error.h"
#include "libprof/store/store.h"

struct run_output {
    char final[PATH_MAX]; /* absolute */
    char live[PATH_MAX];  /* the file that is written to; differs from final on a network */
    char aside[PATH_MAX]; /* the file that --force replaces, until the program has started */
    bool network;
    bool made; /* `final` exists because of us */
};

/* Choose the name: `asked` (-o), or <program>.sqlite, <program>-2.sqlite ... in the current folder.
 * Only looks; output_create makes the file. */
enum prof_status output_choose(struct run_output *output, const char *asked, const char *program,
                               bool force, struct prof_error *err);

/* Make the capture and reserve its name. `spool` is where it grows when the folder is on a network.
 * An automatic name taken meanwhile gives way to the next one. */
enum prof_status output_create(struct run_output *output, const char *asked, const char *program,
                               bool force, const char *spool, struct prof_store **store,
                               struct prof_error *err);

/* The program runs: what --force replaced is gone for good. */
void output_started(struct run_output *output);

/* The program did not start: leave the folder as it was found. */
void output_discard(struct run_output *output);

/* Bring a closed and published live file to its final place. Also used by recover. */
enum prof_status output_move(const char *live, const char *final, struct prof_error *err);

#endif
