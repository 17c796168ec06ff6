/* Processes: starting the target, signals while it runs, and what /proc says. */
#ifndef PERFKIT_CLI_PROCESS_H
#define PERFKIT_CLI_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- /proc ----------------------------------------------------------------------------------- */

/* Field 22 of /proc/PID/stat: differs for a reused pid. 0 = unknown. */
uint64_t process_start_ticks(pid_t pid);

/* 0 = unknown. */
pid_t process_parent(pid_t pid);

/* The value of a variable in the environment that the process was started with. */
bool process_variable(pid_t pid, const char *name, char *value, size_t size);

/* How many other processes were started with NAME=VALUE in their environment, as far as we may
 * look: the descendants of a command, also those that its end has orphaned. */
unsigned process_count_with(const char *name, const char *value);

/* ---- starting the target --------------------------------------------------------------------- */

/* Start the target so that it finds what it would have found without perfkit. */

/* Descriptors above stderr that perfkit was started with. They belong to the target: call before
 * opening anything, and close them once the target has its own copies. */
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
 * blocked. *started, in shared memory: the process writes its pid there before exec, so that it is
 * known to run even if perfkit is killed now. */
int spawn_target(char *const argv[], char *const envp[], const struct spawn_hold *hold,
                 _Atomic uint32_t *started, pid_t *pid, int *in_exec);

/* ---- signals --------------------------------------------------------------------------------- */

/* Signals while a target runs: perfkit stays out of the way of those that reach the target by
 * themselves, hands on those sent to perfkit alone, stops and continues with the target, and ends
 * the way the target ended. One run in a process: the state is static, because handlers need it. */

enum signals_phase {
    SIGNALS_STARTING,  /* nothing to hand on to yet; kept for later */
    SIGNALS_RUNNING,   /* the target lives: hand on */
    SIGNALS_WAITING,   /* it ended, others of it live: a request to end means wait no longer */
    SIGNALS_FINISHING, /* the capture is being finished: the second request leaves it */
};

/* Install the handlers; everything is blocked until signals_release. */
void signals_install(void);

/* Before signals_release: the number of a waiting signal by which the user wants perfkit to end, 0
 * = none. It would not reach a target that is started later: the terminal has sent it already. */
int signals_pending_end(void);

/* Unblock: from now on signals go to `target`. */
void signals_release(pid_t target);

void signals_phase(enum signals_phase phase);

/* In WAITING: a request to end has come. */
bool signals_end_requested(void);

/* A signal that is counted for perfkit and not handed on; how many came. */
void signals_keep(int signal);
unsigned signals_keeps(void);

/* In FINISHING: what is printed on stderr at the first and second request to end. The second one
 * ends perfkit at once, the way the target ended. Static storage or NULL. */
void signals_finishing_texts(const char *first, const char *second);

/* Sleep until a child changes state or the time is over. */
void signals_wait(int milliseconds);

/* The target stopped by `signal`. When that is job control's doing (perfkit got a stop signal too,
 * or is the foreground job of a terminal), stop as well, until perfkit or the target is continued;
 * see that the target then is. */
void signals_stop_with(pid_t target, int signal);

/* perfkit was continued without having been stopped: hand that on when still needed. */
void signals_hand_on_continue(pid_t target);

/* End as a process with this wait status ended: exit with its status, or die by its signal without
 * a core file. */
_Noreturn void signals_end_as(int wait_status);

/* What signals_end_as is to be called with when the second request comes. */
void signals_remember_end(int wait_status);

/* Start this program again with other arguments: reads nothing, writes to two descriptors, and at
 * most 4 GB into a file. */
bool process_spawn_self(char *const argv[], int out, int err, pid_t *pid);

/* Wait for the end of a child; its wait status, -1 where there is no such child. */
int process_wait(pid_t pid);

/* From now on SIGINT, SIGTERM and SIGHUP end nothing, the second time excepted: cli_interrupted
 * says which one came, 0 = none. */
void cli_catch_interrupts(void);
int cli_interrupted(void);

#endif
