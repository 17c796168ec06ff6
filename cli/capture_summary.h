/* The few lines that `run` and `recover` print at the end. */
#ifndef PERFKIT_CLI_CAPTURE_SUMMARY_H
#define PERFKIT_CLI_CAPTURE_SUMMARY_H

/* `shown` is the path as the user knows it; `reason` says why nothing was recorded, should that be
 * so (NULL = not known). On stderr. */
void capture_summary(const char *command, const char *path, const char *shown, const char *reason);

/* A path as text for a shell, quoted where it must be, into out. Returns out. */
const char *shell_quoted(const char *text, char *out, unsigned long size);

#endif
