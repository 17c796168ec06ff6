/* Small questions about processes, answered from /proc. */
#ifndef PERFKIT_CLI_PROCESS_H
#define PERFKIT_CLI_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The state letter of /proc/PID/stat ('T' = stopped), or 0. */
char process_state(pid_t pid);

/* Field 22 of /proc/PID/stat: tells a reused pid apart. 0 = unknown. */
uint64_t process_start_ticks(pid_t pid);

/* 0 = unknown. */
pid_t process_parent(pid_t pid);

/* The value of a variable in the environment that the process was started with. */
bool process_variable(pid_t pid, const char *name, char *value, size_t size);

/* How many other processes were started with NAME=VALUE in their environment, as far as we may
 * look: the descendants of a command, also those that its end has orphaned. */
unsigned process_count_with(const char *variable);

#endif
