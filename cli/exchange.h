/* What `export`, `import` and `merge` share: Ctrl-C, progress, and the notes. */
#ifndef PERFKIT_CLI_EXCHANGE_H
#define PERFKIT_CLI_EXCHANGE_H

#include <stdbool.h>

#include "cli/command.h"
#include "libprof/store/exchange.h"

/* Progress on a terminal, and whether a signal asked to stop. */
struct exchange_shown {
    const char *command, *what;
    bool quiet, drawn;
    uint64_t start_ns, last_ns;
};

/* False, said, when `output` is standard output: files that are not written in order. */
bool exchange_is_file(const struct cli_command *command, const char *output);
/* From now on SIGINT, SIGTERM and SIGHUP make exchange_show return false. */
void exchange_begin(struct exchange_shown *shown, const char *command, const char *what,
                    bool quiet);
/* prof_exchange_progress; `user` is the struct. */
bool exchange_show(void *user, uint64_t done);
/* Wipe the progress; say why nothing was written to `output`, if so. Returns the exit status. */
int exchange_end(const struct exchange_shown *shown, const char *output, enum prof_status status,
                 const struct prof_error *err);

typedef enum prof_status exchange_call(const char *path, const char *output,
                                       const struct prof_exchange_options *options,
                                       struct prof_exchange_result *result, struct prof_error *err);

/* Make the call; say what became of it. `what` as in "1,234 <what> written to OUT". Returns the
 * exit status: CLI_USAGE when the input or the name of the output is to blame. */
int exchange_run(const struct cli_command *command, exchange_call *call, const char *path,
                 const char *output, bool force, bool quiet, const char *what);

#endif
