/* Deaths by signals and by abort(): the last device records are fetched before the process ends.
 *
 * When the spool is made, signals whose default action ends the process and whose disposition is
 * the default get a handler. It has the core flush (collector_death), gives the default action back
 * and sends the same signal, with the same siginfo, to its own thread, where it is blocked until
 * the handler returns: the process ends where it was stopped, by the signal, with the status and
 * the core dump that it would have had. The program never learns of the handler: what sigaction and
 * related functions return for it is the default, and where the program sets the default it gets
 * the handler. All of that is read from the kernel's own table, so that it holds in forked and
 * vforked children; nothing is kept here.
 *
 * The program's own handlers are left alone. The usual ones print, set the default and raise: then
 * it is ours again. abort() with such a handler, or with SIGABRT ignored, flushes first.
 *
 * Without LD_PRELOAD nothing here is done: a program that saw the handler could call it. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/host/host.h"

static const int deadly[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,
                             SIGBUS,  SIGFPE,  SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE,
                             SIGALRM, SIGTERM, SIGXCPU, SIGXFSZ};
#define DEADLY (sizeof deadly / sizeof deadly[0])

static _Atomic bool armed; /* stays in a forked child, as the handlers do */

static bool is_deadly(int number)
{
    for (size_t i = 0; i < DEADLY; i++) {
        if (deadly[i] == number)
            return true;
    }
    return false;
}

static void on_death(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    sigset_t all;
    (void)context;
    sigfillset(&all);
    sigdelset(&all, SIGSYS);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* until we return */
    collector_death();
    struct sigaction plain = {.sa_handler = SIG_DFL};
    host_real.sigaction(number, &plain, NULL);
    long process = syscall(SYS_getpid), thread = syscall(SYS_gettid);
    if (syscall(SYS_rt_tgsigqueueinfo, process, thread, number, info) != 0)
        syscall(SYS_tgkill, process, thread, number);
    errno = saved;
}

static bool handler_is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_death;
}

static bool is_default(const struct sigaction *action)
{
    return action->sa_handler == SIG_DFL;
}

/* Ours in the place of a default action. The other flags and the mask stay, to be read back. */
static struct sigaction in_place_of(const struct sigaction *plain)
{
    struct sigaction action = *plain;
    action.sa_sigaction = on_death;
    action.sa_flags &= ~(int)(SA_RESETHAND | SA_NODEFER);
    action.sa_flags |= SA_SIGINFO | SA_ONSTACK;
    return action;
}

static void hide(struct sigaction *action)
{
    if (!handler_is_ours(action))
        return;
    action->sa_handler = SIG_DFL;
    action->sa_flags &= ~(SA_SIGINFO | SA_ONSTACK);
}

static void arm(int number)
{
    struct sigaction now, before;
    if (host_real.sigaction(number, NULL, &now) != 0 || !is_default(&now))
        return;
    now = in_place_of(&now);
    if (host_real.sigaction(number, &now, &before) == 0 && !is_default(&before) &&
        !handler_is_ours(&before))
        host_real.sigaction(number, &before, NULL); /* another thread of the program was quicker */
}

static void born(void)
{
    if (!host_real.sigaction || !host_real.abort_now)
        return;
    atomic_store(&armed, true);
    for (size_t i = 0; i < DEADLY; i++)
        arm(deadly[i]);
}

/* The helper thread works for a process that dies, perhaps on a heap in ruins. Should it crash, the
 * process still ends by the signal that it dies of: the handler keeps the helper where it is. */
static void at_exit(void)
{
    static const int own[] = {SIGILL, SIGBUS, SIGFPE, SIGSEGV, SIGTRAP, SIGABRT};
    sigset_t let;
    sigemptyset(&let);
    if (!atomic_load(&armed) || !collector_is_helper())
        return;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        struct sigaction now;
        if (host_real.sigaction(own[i], NULL, &now) == 0 && handler_is_ours(&now))
            sigaddset(&let, own[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &let, NULL);
}

void host_signals_start(void)
{
    static const struct collector_source source = {
        .source = WIRE_SOURCE_HOST,
        .at_exit = at_exit,
        .born = born,
    };
    collector_register(&source);
}

HOST_EXPORT int sigaction(int number, const struct sigaction *restrict action,
                          struct sigaction *restrict before)
{
    struct sigaction ours;
    if (!host_real.sigaction)
        host_real_find();
    bool watched = atomic_load(&armed) && is_deadly(number);
    if (watched && action && is_default(action)) {
        ours = in_place_of(action);
        action = &ours;
    }
    int result = host_real.sigaction(number, action, before);
    if (watched && result == 0 && before)
        hide(before);
    return result;
}

/* The C library's other ways call its own sigaction: what they say and what they set is put right
 * afterwards. */
static host_handler *after_handler_change(int number, host_handler *set, host_handler *before)
{
    if (!atomic_load(&armed) || !is_deadly(number) || before == SIG_ERR)
        return before;
    int saved = errno;
    if (set == SIG_DFL)
        arm(number);
    errno = saved;
    return (void (*)(int, siginfo_t *, void *))(void (*)(void))before == on_death ? SIG_DFL
                                                                                  : before;
}

#define SIGNAL_FUNCTION(name, real)                                                                \
    HOST_EXPORT host_handler *name(int number, host_handler *handler)                              \
    {                                                                                              \
        if (!host_real.real)                                                                       \
            host_real_find();                                                                      \
        return after_handler_change(number, handler, host_real.real(number, handler));             \
    }

_Noreturn void abort(void);
host_handler *bsd_signal(int number, host_handler *handler);
host_handler *sysv_signal(int number, host_handler *handler);
host_handler *__sysv_signal(int number, host_handler *handler);
host_handler *sigset(int number, host_handler *handler);

SIGNAL_FUNCTION(signal, signal)
SIGNAL_FUNCTION(bsd_signal, signal)
SIGNAL_FUNCTION(ssignal, signal)
SIGNAL_FUNCTION(sysv_signal, sysv_signal)
SIGNAL_FUNCTION(__sysv_signal, sysv_signal)
SIGNAL_FUNCTION(sigset, sigset)

HOST_EXPORT _Noreturn void abort(void)
{
    struct sigaction now;
    if (!host_real.abort_now)
        host_real_find();
    if (atomic_load(&armed) && host_real.sigaction(SIGABRT, NULL, &now) == 0 &&
        !handler_is_ours(&now))
        collector_death();
    if (host_real.abort_now)
        host_real.abort_now();
    for (;;)
        __builtin_trap();
}
