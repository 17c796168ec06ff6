/* Signals while a target runs: perfkit stays out of the way of those that reach the target by
 * themselves, hands on those sent to perfkit alone, stops and continues with the target, and ends
 * the way the target ended. One run in a process: the state is static, because handlers need it. */
#ifndef PERFKIT_CLI_RUN_SIGNALS_H
#define PERFKIT_CLI_RUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

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

/* In the child between fork and exec: dispositions and mask as perfkit found them. Async-safe. */
void signals_restore(void);

/* Unblock: from now on signals go to `target`. */
void signals_release(pid_t target);

void signals_phase(enum signals_phase phase);

/* In WAITING: a request to end has come. */
bool signals_end_requested(void);

/* In FINISHING: what is printed on stderr at the first and second request to end. The second one
 * ends perfkit at once, the way the target ended. Static storage or NULL. */
void signals_finishing_texts(const char *first, const char *second);

/* Sleep until a child changes state or the time is over. */
void signals_wait(int milliseconds);

/* The target stopped by `signal`. When that is job control's doing (perfkit got a stop signal too,
 * or is the foreground job of a terminal), stop as well, until perfkit or the target is continued;
 * see that the target then is. */
void signals_stop_with(pid_t target, int signal);

/* Somebody continued perfkit without it having been stopped: hand that on when still needed. */
void signals_hand_on_continue(pid_t target);

/* End as a process with this wait status ended: exit with its status, or die by its signal without
 * a core file. */
_Noreturn void signals_end_as(int wait_status);

/* What signals_end_as is to be called with when the second request comes. */
void signals_remember_end(int wait_status);

#endif
