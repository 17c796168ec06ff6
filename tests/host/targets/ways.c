/* Target: starts, forks, execs and ends in every way there is, one way a run (first argument; no
 * argument lists them). Prints through stdio and marks itself through NVTX, so that what perfkit
 * changes in output, status or records shows. Ways that start a program start this one again. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perfkit/annotate.h"

extern char **environ;
static char *self;

static int wait_for(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    printf("child: %s %d\n", WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return 0;
}

static void at_exit_handler(void)
{
    perfkit_mark("exit handler");
    printf("exit handler\n");
}
static void at_quick_exit_handler(void)
{
    perfkit_mark("quick exit handler");
    write(1, "quick exit handler\n", 19);
}
__attribute__((destructor)) static void destructor(void)
{
    if (getenv("WAYS_DESTRUCTOR"))
        printf("destructor\n");
}

/* ---- ends ------------------------------------------------------------------------------------ */

static int way_return(void)
{
    return 7;
}
static int way_exit(void)
{
    exit(200);
}
static int way_exit_big(void)
{
    exit(256 + 3);
}
static int way_exit_handler(void)
{
    atexit(at_exit_handler);
    exit(4);
}
static void exit_again(void)
{
    fflush(stdout);
    _exit(9);
}
static int way_exit_in_handler(void)
{
    atexit(exit_again);
    return 0;
}
static void *exit_thread(void *unused)
{
    (void)unused;
    exit(5);
}
static int way_exit_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, exit_thread, NULL);
    pthread_join(thread, NULL);
    return 0;
}
static int way_last_thread(void)
{
    pthread_exit(NULL);
}
static int way_fast(void)
{
    fflush(stdout);
    _exit(6);
}
static int way_Fast(void)
{
    printf("lost in the buffer\n");
    _Exit(8);
}
static int way_quick(void)
{
    at_quick_exit(at_quick_exit_handler);
    quick_exit(11);
}
static int way_raw(void)
{
    fflush(stdout);
    return (int)syscall(SYS_exit_group, 12);
}
static int way_abort(void)
{
    abort();
}
static int way_crash(void)
{
    raise(SIGSEGV);
    return 0;
}
static int way_term(void)
{
    raise(SIGTERM);
    return 0;
}
static int way_kill(void)
{
    raise(SIGKILL);
    return 0;
}

/* ---- other programs -------------------------------------------------------------------------- */

static char *again(char *way, char **argv)
{
    fflush(stdout);
    argv[0] = self;
    argv[1] = way;
    argv[2] = NULL;
    return self;
}

static int way_exec(void)
{
    char *argv[3];
    return execve(again("return", argv), argv, environ);
}
static int way_exec_fails(void)
{
    char *argv[3];
    again("return", argv);
    errno = 0;
    int result = execv("/nonexistent/program", argv);
    printf("execv: %d, %s\n", result, strerror(errno));
    result = execlp("no-such-program-anywhere", "x", (char *)NULL);
    printf("execlp: %d, %s\n", result, strerror(errno));
    perfkit_mark("after the failed exec");
    return 3;
}
static int way_exec_null(void)
{
    char *argv[3];
    char *volatile none = NULL; /* the kernel takes it for an empty environment */
    return execve(again("env", argv), argv, (char **)(void *)none);
}
static int way_exec_clean(void)
{
    char *argv[3], *envp[] = {"ONLY=this", NULL};
    return execve(again("env", argv), argv, envp);
}
static int way_exec_cleared(void)
{
    clearenv();
    char *argv[3];
    return execv(again("env", argv), argv);
}
static int way_exec_overwritten(void)
{
    setenv("NVTX_INJECTION64_PATH", "/somebody/elses.so", 1);
    setenv("LD_PRELOAD", "", 1);
    perfkit_mark("before");
    char *argv[3];
    return execv(again("env", argv), argv);
}
static int way_exec_other_perfkit(void)
{
    char *argv[3], *envp[] = {"PERFKIT_DIR=/another", NULL};
    return execve(again("env", argv), argv, envp);
}
static int way_exec_many(void)
{
    enum { MANY = 5000 };
    static char text[MANY][16];
    static char *envp[MANY + 1];
    for (int i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof text[i], "V%d=%d", i, i);
        envp[i] = text[i];
    }
    char *argv[3];
    return execve(again("env", argv), argv, envp);
}
static int way_execl(void)
{
    fflush(stdout);
    return execl(self, self, "arguments", "1", "two words", "3", (char *)NULL);
}
static int way_execlp(void)
{
    fflush(stdout);
    return execlp(self, self, "arguments", "1", (char *)NULL);
}
static int way_execle(void)
{
    char *envp[] = {"ONLY=this", NULL};
    fflush(stdout);
    return execle(self, self, "env", (char *)NULL, envp);
}
static int way_execvp(void)
{
    char *argv[3];
    again("return", argv);
    return execvp(self, argv);
}
static int way_execvpe(void)
{
    char *argv[3], *envp[] = {"ONLY=this", NULL};
    again("env", argv);
    return execvpe(self, argv, envp);
}
static int way_fexecve(void)
{
    char *argv[3];
    again("return", argv);
    return fexecve(open(self, O_RDONLY | O_CLOEXEC), argv, environ);
}
static int way_execveat(void)
{
    char *argv[3];
    again("return", argv);
    return execveat(AT_FDCWD, self, argv, environ, 0);
}

/* ---- children -------------------------------------------------------------------------------- */

static int way_fork(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        perfkit_mark("in the child");
        exit(21);
    }
    return wait_for(pid);
}
static int way_fork_fast(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(22);
    return wait_for(pid);
}
static int way_fork_exec(void)
{
    char *argv[3];
    again("return", argv);
    pid_t pid = fork();
    if (pid == 0) {
        execv(self, argv);
        _exit(127);
    }
    return wait_for(pid);
}
static int way_vfork_exec(void)
{
    char *argv[3];
    again("return", argv);
    pid_t pid = vfork();
    if (pid == 0) {
        execv(self, argv);
        _exit(127);
    }
    wait_for(pid);
    perfkit_mark("parent goes on");
    return 0;
}
static int way_vfork_clean(void)
{
    char *argv[3], *envp[] = {NULL};
    again("env", argv);
    pid_t pid = vfork();
    if (pid == 0) {
        execve(self, argv, envp);
        _exit(127);
    }
    return wait_for(pid);
}
static int way_vfork_fails(void)
{
    char *argv[] = {"x", NULL};
    pid_t pid = vfork();
    if (pid == 0) {
        execv("/nonexistent/program", argv);
        _exit(127);
    }
    wait_for(pid);
    perfkit_mark("parent goes on");
    return 0;
}
static int way_spawn(void)
{
    char *argv[3];
    pid_t pid;
    again("return", argv);
    if (posix_spawn(&pid, self, NULL, NULL, argv, environ) != 0)
        return 1;
    return wait_for(pid);
}
static int way_spawnp_clean(void)
{
    char *argv[3], *envp[] = {"ONLY=this", NULL};
    pid_t pid;
    again("env", argv);
    if (posix_spawnp(&pid, self, NULL, NULL, argv, envp) != 0)
        return 1;
    return wait_for(pid);
}
static int way_spawn_fails(void)
{
    char *argv[] = {"x", NULL};
    pid_t pid = 0;
    errno = 0;
    int error = posix_spawnp(&pid, "no-such-program-anywhere", NULL, NULL, argv, environ);
    printf("%s, errno %d\n", strerror(error), errno);
    return 0;
}
static int way_system(void)
{
    fflush(stdout);
    return system("exit 17") >> 8;
}
static int way_clone(void)
{
    fflush(stdout);
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); /* no atfork handlers */
    if (pid == 0) {
        perfkit_mark("in the raw child");
        _exit(23);
    }
    return wait_for(pid);
}
static int way_daemon(void)
{
    /* The grandchild tells through a pipe that it has lived, so that the order is certain. */
    int ends[2];
    char byte;
    if (pipe(ends) != 0)
        return 1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        if (fork() == 0) {
            perfkit_mark("in the daemon");
            write(ends[1], "x", 1);
            _exit(0);
        }
        _exit(0);
    }
    wait_for(pid);
    close(ends[1]);
    while (read(ends[0], &byte, 1) > 0) /* until the daemon is gone */
        ;
    return 0;
}

/* ---- what the started programs do ------------------------------------------------------------ */

static int way_env(void)
{
    size_t others = 0;
    for (char **at = environ; *at; at++) {
        if (strncmp(*at, "PERFKIT_", 8) == 0 || strncmp(*at, "LD_PRELOAD=", 11) == 0 ||
            strncmp(*at, "ONLY=", 5) == 0 || strstr(*at, "INJECTION64_PATH=") ||
            strncmp(*at, "OPENCL_LAYERS=", 14) == 0)
            printf("%s\n", *at);
        else
            others++;
    }
    printf("%zu others\n", others);
    return 0;
}
static int way_nothing(void)
{
    return 0;
}

static const struct {
    const char *name, *what;
    int (*run)(void);
} ways[] = {
    {"return", "return 7 from main", way_return},
    {"exit", "exit(200)", way_exit},
    {"exit_big", "exit(259): only the low byte reaches the parent", way_exit_big},
    {"exit_handler", "exit(4) with an atexit handler that prints and marks", way_exit_handler},
    {"exit_in_handler", "return 0, then _exit(9) out of an atexit handler", way_exit_in_handler},
    {"exit_thread", "exit(5) from a second thread", way_exit_thread},
    {"last_thread", "the main thread ends with pthread_exit", way_last_thread},
    {"fast", "_exit(6)", way_fast},
    {"Fast", "_Exit(8), output left in the buffer", way_Fast},
    {"quick", "quick_exit(11) with a handler", way_quick},
    {"raw", "the exit_group system call itself, 12", way_raw},
    {"abort", "abort()", way_abort},
    {"crash", "SIGSEGV", way_crash},
    {"term", "SIGTERM to itself", way_term},
    {"kill", "SIGKILL to itself", way_kill},
    {"exec", "execve of itself, which returns 7", way_exec},
    {"exec_fails", "execv and execlp of programs that do not exist, then return 3", way_exec_fails},
    {"exec_null", "execve with a NULL environment", way_exec_null},
    {"exec_clean", "execve with an environment of its own", way_exec_clean},
    {"exec_cleared", "execv after clearenv", way_exec_cleared},
    {"exec_overwritten", "execv after setting one of perfkit's variables", way_exec_overwritten},
    {"exec_other_perfkit", "execve with another PERFKIT_DIR", way_exec_other_perfkit},
    {"exec_many", "execve with 5,000 variables", way_exec_many},
    {"execl", "execl", way_execl},
    {"execlp", "execlp", way_execlp},
    {"execle", "execle with an environment of its own", way_execle},
    {"execvp", "execvp", way_execvp},
    {"execvpe", "execvpe with an environment of its own", way_execvpe},
    {"fexecve", "fexecve", way_fexecve},
    {"execveat", "execveat", way_execveat},
    {"fork", "fork, the child marks and exits with 21", way_fork},
    {"fork_fast", "fork, the child ends with _exit(22)", way_fork_fast},
    {"fork_exec", "fork and exec", way_fork_exec},
    {"vfork_exec", "vfork and exec", way_vfork_exec},
    {"vfork_clean", "vfork and exec with an empty environment", way_vfork_clean},
    {"vfork_fails", "vfork, exec fails, _exit(127)", way_vfork_fails},
    {"spawn", "posix_spawn", way_spawn},
    {"spawnp_clean", "posix_spawnp with an environment of its own", way_spawnp_clean},
    {"spawn_fails", "posix_spawnp of a program that does not exist", way_spawn_fails},
    {"system", "system(\"exit 17\")", way_system},
    {"clone", "the clone system call itself: no fork handlers", way_clone},
    {"daemon", "two forks, the middle process ends", way_daemon},
    {"env", "prints the variables that perfkit cares for", way_env},
    {"arguments", "prints its arguments", way_nothing},
    {"nothing", "returns 0", way_nothing},
};

int main(int argc, char **argv)
{
    self = argv[0];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (argc < 2) {
            printf("%-20s %s\n", ways[i].name, ways[i].what);
        } else if (strcmp(argv[1], ways[i].name) == 0) {
            perfkit_mark(ways[i].name);
            for (int k = 1; k < argc; k++)
                printf("%s%s", argv[k], k + 1 < argc ? "|" : "\n");
            return ways[i].run();
        }
    }
    return argc < 2 ? 0 : 2;
}
