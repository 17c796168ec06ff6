/* Ask a library something in a child process. */
#ifndef PERFKIT_CLI_PROBE_H
#define PERFKIT_CLI_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#define PROBE_REPLY 400 /* bytes that a probe may answer */

/* Run `probe` in a child. Its answer is the text it leaves in reply[size]; by agreement one that
 * starts with '!' says what is missing. False: it crashed or took longer than ten seconds; `reply`
 * then says which. Descriptors 1 and 2 of the child go nowhere. */
bool probe_run(void (*probe)(void *context, char *reply, size_t size), void *context, char *reply,
               size_t size);

#endif
