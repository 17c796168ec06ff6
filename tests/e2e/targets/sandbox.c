/* Leaves marks, shuts itself in, leaves more, and ends with status 17.
 *
 *   sandbox deadly    from now on this thread dies when it opens a file
 *   sandbox early     before its first mark; it dies at any call that makes a spool; its child too
 *   sandbox trap      every thread's opens, stats and fallocates raise SIGSYS, which answers EPERM
 *   sandbox blocked   blocks all signals before its first mark, SIGSYS pending
 *   sandbox left      moves into another root folder and goes on for long, in bursts
 *   sandbox user      becomes nobody and forks a child that leaves marks
 *   sandbox root      moves into another root folder and forks a child that leaves marks
 * Status 77: it may not. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "perfkit/annotate.h"

#define BEFORE 10
#define AFTER 20000 /* more than the room that is reserved ahead */
#define NOBODY 65534
#define BURSTS 40
#define BURST 5000 /* less than what was reserved ahead holds */

static void marks(int count)
{
    for (int i = 0; i < count; i++)
        perfkit_mark("mark");
}

static void refuse(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
#if defined(__x86_64__)
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
    ((ucontext_t *)context)->uc_mcontext.regs[0] = (unsigned long long)-EPERM;
#endif
}

/* What the helper thread does at each tick, and what reserves room. */
static const int calls[] = {SYS_openat, SYS_fallocate,
#ifdef SYS_newfstatat
                            SYS_newfstatat,
#endif
                            SYS_statx};

static bool shut_in(size_t count, unsigned answer, unsigned flags)
{
    struct sock_filter filter[2 + 2 * sizeof calls / sizeof calls[0]];
    unsigned short n = 0;
    filter[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++) {
        filter[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0;
}

/* How it ended, as waitpid() says. */
static int child(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        marks(BEFORE);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    struct sigaction action = {.sa_sigaction = refuse, .sa_flags = SA_SIGINFO};
    struct timespec ticks = {.tv_nsec = 300000000};
    if (strcmp(how, "blocked") == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        raise(SIGSYS);
        marks(BEFORE);
        return 17;
    }
    if (strcmp(how, "early") == 0) {
        if (!shut_in(sizeof calls / sizeof calls[0], SECCOMP_RET_KILL_PROCESS, 0))
            return 77;
        marks(BEFORE);
        return child() == 0 ? 17 : 1;
    }
    marks(BEFORE);
    if (strcmp(how, "deadly") == 0) {
        if (!shut_in(1, SECCOMP_RET_KILL_PROCESS, 0))
            return 77;
        marks(BEFORE);
    } else if (strcmp(how, "trap") == 0) {
        sigaction(SIGSYS, &action, NULL);
        if (!shut_in(sizeof calls / sizeof calls[0], SECCOMP_RET_TRAP, SECCOMP_FILTER_FLAG_TSYNC))
            return 77;
        nanosleep(&ticks, NULL);
        marks(AFTER);
    } else {
        bool user = strcmp(how, "user") == 0;
        if (user ? setgid(NOBODY) || setuid(NOBODY) : chroot("/sys") || chdir("/"))
            return 77;
        for (int i = 0; strcmp(how, "left") == 0 && i < BURSTS; i++) {
            nanosleep(&ticks, NULL);
            ticks.tv_nsec = 20000000;
            marks(BURST);
        }
        if (strcmp(how, "left") != 0)
            child();
    }
    return 17;
}
