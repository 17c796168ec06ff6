/* Start the target so that it finds what it would have found without perfkit. */
#ifndef PERFKIT_CLI_RUN_SPAWN_H
#define PERFKIT_CLI_RUN_SPAWN_H

#include <sys/types.h>

/* Descriptors above stderr that perfkit was started with. They belong to the target: call before
 * opening anything, and let go of them once the target has its own copies. */
struct inherited_fds {
    int *fds;
    int count;
};
void inherited_list(struct inherited_fds *inherited);

/* Forget them without closing. */
void inherited_free(struct inherited_fds *inherited);

/* Close perfkit's copies, and its stdin and stdout, so that pipes end and locks go when the target
 * ends. */
void inherited_let_go(struct inherited_fds *inherited);

/* What is to be done with the process while it is still perfkit's own, before its exec; or NULL. */
struct spawn_hold {
    void (*held)(void *context, pid_t pid);
    void *context;
};

/* Fork and exec with signals_restore in between. Returns 0 and *pid, or the errno of what failed;
 * *in_exec = 1 when it was the exec (the command's fault), 0 when it was fork. Signals must be
 * blocked. */
int spawn_target(char *const argv[], char *const envp[], const struct spawn_hold *hold, pid_t *pid,
                 int *in_exec);

#endif
