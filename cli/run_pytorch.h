/* `perfkit run --pytorch`: names of PyTorch's operators and modules, switched on from outside. */
#ifndef PERFKIT_CLI_RUN_PYTORCH_H
#define PERFKIT_CLI_RUN_PYTORCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define PYTORCH_ALL "ops,modules"

extern const char *const pytorch_words[]; /* what its list can name; ends with NULL */

/* `list` as given, NULL = not asked for. False, said on stderr, when it cannot work. */
bool pytorch_check(const char *command, const char *list, const char *trace);

/* Option for the collector and the hook, begun with a comma; "" without --pytorch. False: it does
 * not fit. */
bool pytorch_hand_over(const char *list, char *text, size_t size);

/* The folder of the hook, beside the collector; false when it is not there. */
bool pytorch_folder(const char *collector, char folder[PATH_MAX]);

#endif
