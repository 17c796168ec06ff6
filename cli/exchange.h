/* What `export` and `import` share: Ctrl-C, progress, and the notes. */
#ifndef PERFKIT_CLI_EXCHANGE_H
#define PERFKIT_CLI_EXCHANGE_H

#include <stdbool.h>

#include "cli/command.h"
#include "libprof/store/exchange.h"

typedef enum prof_status exchange_call(const char *path, const char *output,
                                       const struct prof_exchange_options *options,
                                       struct prof_exchange_result *result, struct prof_error *err);

/* Make the call; say what became of it. `what` as in "1,234 <what> written to OUT". Returns the
 * exit status: CLI_USAGE when the input or the name of the output is to blame. */
int exchange_run(const struct cli_command *command, exchange_call *call, const char *path,
                 const char *output, bool force, bool quiet, const char *what);

#endif
