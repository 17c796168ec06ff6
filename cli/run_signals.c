/* See run_signals.h.
 *
 * A signal from the terminal goes to the whole foreground group, so the target has it already; one
 * from kill(2) to perfkit's pid has reached perfkit alone. si_code tells them apart: the kernel's
 * own are SI_KERNEL, those of processes SI_USER and below. Handing on is done in the handler, so
 * that a busy ingest does not delay it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/process.h"
#include "cli/run_signals.h"

#define CONTINUE_GRACE_MS 20 /* for a SIGCONT to the whole group to reach the target by itself */
#define WATCH_MS 20          /* between two looks at a stopped target */

enum policy {
    HAND_ON,        /* when a process sent it */
    HAND_ON_ALWAYS, /* timers that were set before exec */
    REQUEST,        /* as HAND_ON, and asks perfkit to end once the target has ended */
    DROP,           /* never the target's business, and must not end perfkit */
    CHILD,          /* wakes the main loop */
    CONTINUE,
};

static const struct {
    int signal;
    enum policy policy;
} table[] = {
    {SIGINT, REQUEST},  {SIGQUIT, REQUEST},  {SIGTERM, REQUEST},  {SIGHUP, REQUEST},
    {SIGUSR1, HAND_ON}, {SIGUSR2, HAND_ON},  {SIGWINCH, HAND_ON}, {SIGURG, HAND_ON},
    {SIGIO, HAND_ON},   {SIGPWR, HAND_ON},   {SIGTSTP, HAND_ON},  {SIGALRM, HAND_ON_ALWAYS},
    {SIGTTIN, DROP},    {SIGTTOU, DROP},     {SIGPIPE, DROP},     {SIGXFSZ, DROP},
    {SIGCHLD, CHILD},   {SIGCONT, CONTINUE},
};
#define SIGNALS (sizeof table / sizeof table[0])

static struct sigaction found[SIGNALS];
static sigset_t found_mask, child_only;
static volatile pid_t target_pid;
static volatile sig_atomic_t phase, requests, continued, stop_asked;
static volatile int end_status;
static const char *volatile finishing_first, *volatile finishing_second;

static void write_error_text(const char *text)
{
    if (text && write(STDERR_FILENO, text, strlen(text)) < 0) {
    }
}

static enum policy policy_of(int signal)
{
    for (size_t i = 0; i < SIGNALS; i++)
        if (table[i].signal == signal)
            return table[i].policy;
    return HAND_ON; /* real-time signals */
}

static void request(void)
{
    requests = requests + 1;
    if (phase != SIGNALS_FINISHING)
        return;
    if (requests == 1) {
        write_error_text(finishing_first);
    } else {
        write_error_text(finishing_second);
        signals_end_as(end_status);
    }
}

static void handler(int signal, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    enum policy policy = policy_of(signal);
    bool by_process = info->si_code <= 0;
    if (policy == CONTINUE) {
        continued = 1;
        stop_asked = 0;
    } else if (signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) {
        stop_asked = 1;
    }
    if (phase == SIGNALS_RUNNING && target_pid > 0) {
        if (policy == HAND_ON_ALWAYS || (by_process && (policy == HAND_ON || policy == REQUEST)))
            kill(target_pid, signal);
    } else if (policy == REQUEST && phase != SIGNALS_STARTING) {
        request();
    }
    errno = saved;
}

void signals_install(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &found_mask);
    sigemptyset(&child_only);
    sigaddset(&child_only, SIGCHLD);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(table[i].signal, &action, &found[i]);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++) {
        struct sigaction before;
        if (sigaction(signal, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signal, &action, NULL);
    }
}

int signals_pending_end(void)
{
    sigset_t waiting;
    sigpending(&waiting);
    for (size_t i = 0; i < SIGNALS; i++) {
        int signal = table[i].signal;
        if (table[i].policy == REQUEST && sigismember(&waiting, signal) &&
            !sigismember(&found_mask, signal) && found[i].sa_handler != SIG_IGN)
            return signal;
    }
    return 0;
}

void signals_restore(void)
{
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(table[i].signal, &found[i], NULL);
    /* Handlers of the real-time signals become the default by exec. */
    sigprocmask(SIG_SETMASK, &found_mask, NULL);
}

void signals_release(pid_t target)
{
    target_pid = target;
    phase = target > 0 ? SIGNALS_RUNNING : SIGNALS_STARTING;
    /* Also what perfkit's caller had blocked: the target has that mask, perfkit must hear. */
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

void signals_phase(enum signals_phase next)
{
    phase = (sig_atomic_t)next;
    if (next >= SIGNALS_WAITING)
        target_pid = 0;
    if (next == SIGNALS_FINISHING)
        requests = 0;
}

bool signals_end_requested(void)
{
    return requests > 0;
}

void signals_finishing_texts(const char *first, const char *second)
{
    finishing_first = first;
    finishing_second = second;
}

void signals_remember_end(int wait_status)
{
    end_status = wait_status;
}

void signals_wait(int milliseconds)
{
    sigset_t none;
    sigemptyset(&none);
    struct timespec pause = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    ppoll(NULL, 0, &pause, &none);
}

static void continue_if_stopped(pid_t target)
{
    struct timespec grace = {0, CONTINUE_GRACE_MS * 1000000L};
    nanosleep(&grace, NULL);
    if (process_state(target) == 'T')
        kill(target, SIGCONT);
}

/* Is perfkit the foreground job of a terminal? Then a shell waits for it and must learn of a stop.
 */
static bool in_foreground(void)
{
    int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    bool foreground = terminal >= 0 && tcgetpgrp(terminal) == getpgrp();
    if (terminal >= 0)
        close(terminal);
    return foreground;
}

/* A process that continues perfkit once somebody has continued the target alone: perfkit, stopped,
 * cannot see that. */
static pid_t watch_stopped(pid_t target)
{
    pid_t stopped = getpid();
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t watcher = fork();
    if (watcher == 0) {
        struct timespec pause = {0, WATCH_MS * 1000000L};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == stopped) {
            nanosleep(&pause, NULL);
            if (process_state(stopped) == 'T' && process_state(target) != 'T')
                kill(stopped, SIGCONT);
        }
        _exit(0);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return watcher;
}

void signals_stop_with(pid_t target, int signal)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL}, ours;
    if (process_state(target) != 'T')
        return; /* continued already */
    if (!stop_asked && !in_foreground())
        return; /* somebody stopped the target alone, and will continue it alone */
    continued = 0;
    pid_t watcher = watch_stopped(target);
    bool catchable = signal != SIGSTOP && sigaction(signal, &by_default, &ours) == 0;
    raise(signal);
    if (catchable)
        sigaction(signal, &ours, NULL);
    stop_asked = 0;
    if (watcher > 0) {
        kill(watcher, SIGKILL);
        while (waitpid(watcher, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    /* Nobody stopped us (a process group without a shell): then nobody continues us either, and
     * the target is left as its user put it. */
    if (continued) {
        continued = 0;
        continue_if_stopped(target);
    }
}

void signals_hand_on_continue(pid_t target)
{
    if (continued) {
        continued = 0;
        continue_if_stopped(target);
    }
}

_Noreturn void signals_end_as(int wait_status)
{
    if (!WIFSIGNALED(wait_status))
        _exit(WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 125);
    int signal = WTERMSIG(wait_status);
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    prctl(PR_SET_DUMPABLE, 0); /* a core_pattern that pipes ignores the limit */
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigaction(signal, &by_default, NULL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    raise(signal);
    _exit(128 + signal);
}
