/* The program that the CLI tests record: it tells what a program can see of how it was started, so
 * that the same line can be printed with and without perfkit and compared.
 *
 *     state            descriptors, signal mask and dispositions, limits, ids, arguments in hex
 *     exit N | die N   end with a status, or by a signal
 *     signals SECONDS  print "ready PID", then a signal and how often it came for each one caught;
 *                      end at SIGTERM, or after SECONDS
 *     daemon SECONDS   leave a process behind that sleeps with its descriptors closed
 *     daemon FIFO      the same until something opens FIFO for writing, or for ten minutes */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void print_descriptors(FILE *out)
{
    for (int fd = 0; fd < 64; fd++) {
        char link[64], path[256];
        if (fd == fileno(out) || fcntl(fd, F_GETFD) < 0)
            continue;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, sizeof path - 1);
        path[length > 0 ? length : 0] = '\0';
        fprintf(out, "fd %d %s flags %d\n", fd, path, fcntl(fd, F_GETFL));
    }
}

static void print_signals(FILE *out)
{
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int signal = 1; signal < NSIG; signal++) {
        struct sigaction action;
        if (sigaction(signal, NULL, &action) < 0)
            continue;
        if (sigismember(&mask, signal) == 1)
            fprintf(out, "signal %d blocked\n", signal);
        if (action.sa_handler != SIG_DFL)
            fprintf(out, "signal %d %s\n", signal,
                    action.sa_handler == SIG_IGN ? "ignored" : "handled");
    }
}

static void print_limits(FILE *out)
{
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)i, &limit) == 0)
            fprintf(out, "limit %d %llu %llu\n", i, (unsigned long long)limit.rlim_cur,
                    (unsigned long long)limit.rlim_max);
    }
}

static int state(const char *path, char **argv)
{
    FILE *out = fopen(path, "we");
    char folder[4096];
    if (!out)
        return 1;
    print_descriptors(out);
    print_signals(out);
    print_limits(out);
    mode_t mask = umask(0);
    fprintf(out, "umask %o\nnice %d\nids %d %d %d %d\n", (unsigned)mask,
            getpriority(PRIO_PROCESS, 0), getuid(), geteuid(), getgid(), getegid());
    fprintf(out, "group %d session %d cwd %s\n", getpgrp(), getsid(0), getcwd(folder, 4096));
    for (; *argv; argv++) {
        fprintf(out, "argument");
        for (const char *p = *argv; *p; p++)
            fprintf(out, " %02x", (unsigned char)*p);
        fprintf(out, "\n");
    }
    return fclose(out) != 0;
}

static volatile sig_atomic_t caught[NSIG];

static void catch (int signal)
{
    caught[signal]++;
}

static int signals(int seconds)
{
    static const int wanted[] = {SIGINT,  SIGQUIT, SIGHUP,   SIGUSR1,
                                 SIGUSR2, SIGCONT, SIGWINCH, SIGTERM};
    struct sigaction action = {.sa_handler = catch};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        sigaction(wanted[i], &action, NULL);
    printf("ready %d\n", getpid());
    fflush(stdout);
    int printed[NSIG] = {0};
    time_t end = time(NULL) + seconds;
    while (!printed[SIGTERM] && time(NULL) < end) {
        struct timespec pause = {0, 20000000};
        nanosleep(&pause, NULL);
        for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
            int count = caught[wanted[i]];
            if (count != printed[wanted[i]])
                printf("%s %d\n", sigabbrev_np(wanted[i]), count);
            printed[wanted[i]] = count;
        }
        fflush(stdout);
    }
    return 0;
}

static int leave_daemon(int seconds, const char *fifo)
{
    if (fork() == 0) {
        setsid();
        int null = open("/dev/null", O_RDWR);
        for (int fd = 0; fd <= 2; fd++)
            dup2(null, fd);
        close_range(3, ~0u, 0);
        if (seconds)
            _exit((int)sleep((unsigned)seconds));
        alarm(600);
        _exit(open(fifo, O_RDONLY) < 0);
    }
    printf("left\n");
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    if (strcmp(what, "state") == 0 && argc > 2)
        return state(argv[2], argv + 3);
    if (strcmp(what, "exit") == 0)
        return number;
    if (strcmp(what, "die") == 0) {
        signal(number, SIG_DFL);
        raise(number);
        return 0;
    }
    if (strcmp(what, "signals") == 0)
        return signals(number);
    if (strcmp(what, "daemon") == 0 && argc > 2)
        return leave_daemon(number, argv[2]);
    fprintf(stderr, "usage: target state FILE | exit N | die N | signals S | daemon S|FIFO\n");
    return 2;
}
