/* Processes: starting the target, signals while it runs, and what /proc says. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/process.h"
#include "libprof/base/regular.h"

/* ---- /proc ----------------------------------------------------------------------------------- */

/* /proc/PID/stat: the command name may hold spaces and brackets, so fields are counted after the
 * last closing bracket. */

/* Field `number` (3 = state) copied into out[size]. */
static bool stat_field(pid_t pid, int number, char *out, size_t size)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    PROF_FILE_CLOSED FILE *in = fopen(path, "re");
    text[in ? fread(text, 1, sizeof text - 1, in) : 0] = '\0';
    char *at = strrchr(text, ')'); /* the name may hold a line's end, too */
    for (int field = 2; field < number && at; field++)
        at = strchr(at + 1, ' ');
    if (at)
        snprintf(out, size, "%.*s", (int)strcspn(at + 1, " \n"), at + 1);
    return at != NULL;
}

/* The state letter of /proc/PID/stat ('T' = stopped), or 0. */
static char process_state(pid_t pid)
{
    char text[8];
    return stat_field(pid, 3, text, sizeof text) ? text[0] : '\0';
}

uint64_t process_start_ticks(pid_t pid)
{
    char text[32];
    return stat_field(pid, 22, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

pid_t process_parent(pid_t pid)
{
    char text[32];
    return stat_field(pid, 4, text, sizeof text) ? (pid_t)strtol(text, NULL, 10) : 0;
}

/* Read in pieces: an environment may be megabytes. */
bool process_variable(pid_t pid, const char *name, char *value, size_t size)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    PROF_FILE_CLOSED FILE *in = fopen(path, "re");
    PROF_FREED char *entry = NULL;
    size_t room = 0, length = strlen(name);
    bool found = false;
    while (in && !found && getdelim(&entry, &room, '\0', in) > 0) {
        found = strncmp(entry, name, length) == 0 && entry[length] == '=' &&
                strlen(entry + length + 1) < size;
        if (found)
            strcpy(value, entry + length + 1);
    }
    return found;
}

unsigned process_count_with(const char *name, const char *value)
{
    char its[PATH_MAX];
    PROF_DIR_CLOSED DIR *dir = opendir("/proc");
    unsigned count = 0;
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        count += pid > 0 && pid != getpid() && process_variable(pid, name, its, sizeof its) &&
                 !strcmp(its, value);
    }
    return count;
}

/* ---- signals --------------------------------------------------------------------------------- */

/* A signal from the terminal goes to the whole foreground group, so the target has it already; one
 * from kill(2) to perfkit's pid has reached perfkit alone. si_code distinguishes them: the kernel's
 * own are SI_KERNEL, those of processes SI_USER and below. Handing on is done in the handler, so
 * that a busy ingest does not delay it. */

#define CONTINUE_GRACE_MS 20 /* for a SIGCONT to the whole group to reach the target by itself */
#define WATCH_MS 20          /* between two looks at a stopped target */

enum policy {
    HAND_ON,        /* when a process sent it */
    HAND_ON_ALWAYS, /* timers that were set before exec */
    REQUEST,        /* as HAND_ON, and requests that perfkit ends once the target has ended */
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
static volatile sig_atomic_t phase, requests, continued, stop_asked, keep_signal, keeps;
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
    if (signal == keep_signal) {
        keeps = keeps + 1;
        errno = saved;
        return;
    }
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

/* In the child between fork and exec: dispositions and mask as perfkit found them. Async-safe. */
static void signals_restore(void)
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
    /* Also what perfkit's caller had blocked: the target has that mask, perfkit must get the
     * signals. */
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

void signals_keep(int signal)
{
    keep_signal = signal;
}

unsigned signals_keeps(void)
{
    return (unsigned)keeps;
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

/* A process that continues perfkit once the target alone has been continued: perfkit, stopped,
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

int process_wait(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

void signals_stop_with(pid_t target, int signal)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL}, ours;
    if (process_state(target) != 'T')
        return; /* continued already */
    if (!stop_asked && !in_foreground())
        return; /* another process stopped the target alone, and will continue it alone */
    continued = 0;
    pid_t watcher = watch_stopped(target);
    bool catchable = signal != SIGSTOP && sigaction(signal, &by_default, &ours) == 0;
    raise(signal);
    if (catchable)
        sigaction(signal, &ours, NULL);
    stop_asked = 0;
    if (watcher > 0) {
        kill(watcher, SIGKILL);
        process_wait(watcher);
    }
    /* No stop signal came (a process group without a shell): then none continues us either, and the
     * target is left as its user put it. */
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

/* ---- starting the target --------------------------------------------------------------------- */

/* fork and exec with a pipe that shows whether exec worked: the pipe closes by itself when it did.
 * Nothing is changed for the target: same process group, terminal, descriptors, umask and limits;
 * everything perfkit opened is close-on-exec. */

void inherited_list(struct inherited_fds *inherited)
{
    *inherited = (struct inherited_fds){0};
    PROF_DIR_CLOSED DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return;
    int room = 0;
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        int fd = atoi(entry->d_name);
        if (fd <= STDERR_FILENO || fd == dirfd(dir) || (fcntl(fd, F_GETFD) & FD_CLOEXEC))
            continue;
        if (inherited->count == room) {
            room = room ? room * 2 : 16;
            int *more = realloc(inherited->fds, (size_t)room * sizeof *more);
            if (!more)
                break;
            inherited->fds = more;
        }
        inherited->fds[inherited->count++] = fd;
    }
}

void inherited_free(struct inherited_fds *inherited)
{
    free(inherited->fds);
    *inherited = (struct inherited_fds){0};
}

void inherited_let_go(struct inherited_fds *inherited)
{
    for (int i = 0; i < inherited->count; i++)
        close(inherited->fds[i]);
    inherited_free(inherited);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return;
    dup3(null, STDIN_FILENO, O_CLOEXEC);
    dup3(null, STDOUT_FILENO, O_CLOEXEC);
    if (null > STDERR_FILENO)
        close(null);
}

/* A small file size limit is meant for the program, not for its capture. */
static void raise_own_limits(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_FSIZE, &limit);
    }
}

static void close_both(const int ends[2])
{
    int saved = errno;
    close(ends[0]);
    close(ends[1]);
    errno = saved;
}

/* Until the writing end is closed everywhere. */
static void wait_for_end(const int ends[2])
{
    char byte;
    close(ends[1]);
    while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
    }
}

int spawn_target(char *const argv[], char *const envp[], const struct spawn_hold *hold,
                 _Atomic uint32_t *started, pid_t *pid, int *in_exec)
{
    int ends[2], holding[2];
    *in_exec = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    if (hold && pipe2(holding, O_CLOEXEC) < 0) {
        close_both(ends);
        return errno;
    }
    *pid = fork();
    if (*pid < 0) {
        close_both(ends);
        if (hold)
            close_both(holding);
        return errno;
    }
    if (*pid == 0) {
        if (hold)
            wait_for_end(holding);
        atomic_store(started, (uint32_t)getpid());
        signals_restore();
        execvpe(argv[0], argv, envp);
        int failed = errno;
        if (write(ends[1], &failed, sizeof failed) < 0) {
        }
        _exit(127);
    }
    close(ends[1]);
    if (hold) {
        hold->held(hold->context, *pid);
        close_both(holding);
    }
    int failed = 0;
    ssize_t got;
    do
        got = read(ends[0], &failed, sizeof failed);
    while (got < 0 && errno == EINTR);
    close(ends[0]);
    if (got == (ssize_t)sizeof failed) {
        process_wait(*pid);
        *in_exec = 1;
        return failed;
    }
    raise_own_limits();
    return 0;
}

/* ---- perfkit beside itself ------------------------------------------------------------------- */

bool process_spawn_self(char *const argv[], int out, int err, pid_t *pid)
{
    const struct rlimit most = {4ull << 30, 4ull << 30}; /* of what a query sorts in */
    posix_spawn_file_actions_t files;
    extern char **environ;
    if (posix_spawn_file_actions_init(&files))
        return false;
    bool ran = !posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0) &&
               !posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO) &&
               !posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO) &&
               !posix_spawn(pid, "/proc/self/exe", &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (ran)
        prlimit(*pid, RLIMIT_FSIZE, &most, NULL);
    return ran;
}

/* ---- signals of other commands --------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    interrupted = signal;
}

void cli_catch_interrupts(void)
{
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN) /* as under nohup */
        sigaction(SIGHUP, &action, NULL);
}

int cli_interrupted(void)
{
    return interrupted;
}
