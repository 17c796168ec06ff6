/* The last part of every recording, for `run` and for `recover`: read what is left in the spools,
 * finish the capture, move it to its final path, remove the spool folder. */
#ifndef PERFKIT_CLI_CAPTURE_END_H
#define PERFKIT_CLI_CAPTURE_END_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cli/spool_folder.h"
#include "libprof/store/ingest.h"
#include "libprof/store/store.h"
#include "libprof/store/symbolize.h"

struct capture_end {
    const char *command;      /* "run" or "recover", for messages */
    struct prof_store *store; /* both are closed */
    struct prof_ingest *ingest;
    struct spool_folder *spool; /* removed on success, left otherwise */
    const char *live, *final;
    const char *state; /* of capture.state */
    bool abandon;      /* processes still run: do not wait for their last record */
    bool keep_spool;
    bool without_costs; /* --overhead=off */
    bool (*stop)(void); /* naming stacks may take long: true ends it. NULL = never */
    pid_t pid;          /* the process whose end ingest does not know yet; 0 = none */
    int wait_status;
    uint64_t full_since_ns; /* private: start with 0 */
};

/* True when the capture is whole at `final`. False when it is not: said on stderr, with how to get
 * it later; what was recorded is still in the spool folder and the live file. */
bool capture_end(struct capture_end *end);

/* Put what was measured of this machine's devices into a capture; `costs`: also what recording
 * costs, for estimates. */
void capture_attach_ceilings(const char *command, struct prof_store *store, bool costs);

/* ---- what is said of it ---------------------------------------------------------------------- */

/* The few lines that `run` and `recover` print at the end. */

/* `shown` is the path as the user knows it; `reason` says why nothing was recorded, should that be
 * so (NULL = not known). On stderr. */
void capture_summary(const char *command, const char *path, const char *shown, const char *reason);

/* A path as text for a shell, quoted where it must be, into out. Returns out. */
const char *shell_quoted(const char *text, char *out, unsigned long size);

/* ---- names of the frames of stacks (symbolize.c) --------------------------------------------- */

#define SYMBOLIZER "perfkit_symbolizer"

/* Where perfkit_symbolizer is; false: it was not installed, `out` is then the folder of perfkit. */
bool stack_names_helper(char out[PATH_MAX]);

/* prof_symbolize with progress on a terminal, after a second. `stop` (NULL = never) is called
 * between files. */
enum prof_status stack_names(const char *command, struct prof_store *store,
                             const char *const *folders, bool quiet, bool (*stop)(void),
                             struct prof_symbolize_result *result, struct prof_error *err);

#endif
