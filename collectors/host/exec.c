/* exec and posix_spawn: the environment is completed, and the core is called before an exec that
 * replaces this program, because nothing of ours runs after it.
 *
 * The C library's own functions call each other internally, so every member of the family needs a
 * hook. All of it may happen in a vfork child, on the stack and in the memory of its parent: the
 * new environment is built on the stack, and the core distinguishes such a child from a process of
 * its own (collector_end does nothing there). */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/host/host.h"
#include "libprof/spool/lifecycle.h"

/* A larger environment (2,000 variables) is built in a mapping, which exec takes down, or which is
 * unmapped when it fails. */
#define STACK_BYTES 16384u

enum how { EXECVE, EXECVPE, FEXECVE, EXECVEAT, SPAWN, SPAWNP };

struct request {
    enum how how;
    const char *path;
    int fd;
    int flags;
    char *const *argv;
    char *const *envp;
    pid_t *pid;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
};

static bool takes_preload(const struct request *request)
{
    switch (request->how) {
    case EXECVE:
    case SPAWN:
        return host_elf_takes_preload(request->path);
    case EXECVPE:
    case SPAWNP:
        return host_elf_takes_preload_file(request->path);
    case FEXECVE:
        return host_elf_takes_preload_fd(request->fd);
    default: /* execveat: relative to a descriptor, with flags; hardly ever used */
        return true;
    }
}

static int call_real_exec(const struct request *r, char *const *envp)
{
    switch (r->how) {
    case EXECVE:
        return host_real.execve(r->path, r->argv, envp);
    case EXECVPE:
        return host_real.execvpe(r->path, r->argv, envp);
    case FEXECVE:
        return host_real.fexecve(r->fd, r->argv, envp);
    case EXECVEAT:
        return host_real.execveat(r->fd, r->path, r->argv, envp, r->flags);
    case SPAWN:
        return host_real.spawn(r->pid, r->path, r->actions, r->attributes, r->argv, envp);
    case SPAWNP:
        return host_real.spawnp(r->pid, r->path, r->actions, r->attributes, r->argv, envp);
    }
    return -1;
}

static int announce_exec(const struct request *request, char *const *envp)
{
    if (request->how == SPAWN || request->how == SPAWNP)
        return call_real_exec(request, envp);
    int saved = errno;
    collector_end(LIFECYCLE_EXEC, 0);
    errno = saved;
    int result = call_real_exec(request, envp);
    saved = errno; /* it failed, or we would not be here */
    collector_revive();
    errno = saved;
    return result;
}

static int run_with(const struct request *request, const struct host_plan *plan)
{
    char *room[plan->bytes / sizeof(char *) + 1];
    return announce_exec(request, host_plan_apply(plan, request->envp, room));
}

static int run_exec_request(const struct request *request)
{
    struct host_plan plan;
    int saved = errno, cancel;
    if (!host_real.execve)
        host_real_find();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* exec is no place to end in */
    host_plan_make(&plan, request->envp, !host_environment_preloads() || takes_preload(request));
    if (plan.ours && request->how != SPAWN && request->how != SPAWNP)
        collector_check_reach();
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
    if (plan.bytes == 0)
        return announce_exec(request, request->envp);
    if (plan.bytes <= STACK_BYTES)
        return run_with(request, &plan);
    void *room = mmap(NULL, plan.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        errno = saved;
        return announce_exec(request, request->envp);
    }
    int result = announce_exec(request, host_plan_apply(&plan, request->envp, room));
    saved = errno;
    munmap(room, plan.bytes);
    errno = saved;
    return result;
}

HOST_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    return run_exec_request(
        &(struct request){.how = EXECVE, .path = path, .argv = argv, .envp = envp});
}

HOST_EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

HOST_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    return run_exec_request(
        &(struct request){.how = EXECVPE, .path = file, .argv = argv, .envp = envp});
}

HOST_EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

HOST_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    return run_exec_request(
        &(struct request){.how = FEXECVE, .fd = fd, .argv = argv, .envp = envp});
}

HOST_EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[],
                         int flags)
{
    return run_exec_request(&(struct request){
        .how = EXECVEAT, .fd = fd, .path = path, .argv = argv, .envp = envp, .flags = flags});
}

HOST_EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                            const posix_spawnattr_t *attributes, char *const argv[],
                            char *const envp[])
{
    return run_exec_request(&(struct request){.how = SPAWN,
                                              .path = path,
                                              .argv = argv,
                                              .envp = envp,
                                              .pid = pid,
                                              .actions = actions,
                                              .attributes = attributes});
}

HOST_EXPORT int posix_spawnp(pid_t *pid, const char *file,
                             const posix_spawn_file_actions_t *actions,
                             const posix_spawnattr_t *attributes, char *const argv[],
                             char *const envp[])
{
    return run_exec_request(&(struct request){.how = SPAWNP,
                                              .path = file,
                                              .argv = argv,
                                              .envp = envp,
                                              .pid = pid,
                                              .actions = actions,
                                              .attributes = attributes});
}

/* The forms with the arguments in a row: counted, then copied to the stack. */
static size_t count_arguments(va_list arguments)
{
    size_t n = 1;
    while (va_arg(arguments, char *))
        n++;
    return n;
}

/* libc declares the first argument as never NULL, but an empty list is a list. */
static inline char *first_argument(const char *first)
{
    __asm__("" : "+r"(first));
    return (char *)(uintptr_t)first;
}

#define GATHER(argv, first)                                                                        \
    va_list arguments;                                                                             \
    char *first_ = first_argument(first);                                                          \
    va_start(arguments, first);                                                                    \
    size_t count_ = first_ ? count_arguments(arguments) : 0;                                       \
    va_end(arguments);                                                                             \
    char *argv[count_ + 1];                                                                        \
    va_start(arguments, first);                                                                    \
    argv[0] = first_;                                                                              \
    for (size_t i_ = 1; i_ <= count_; i_++)                                                        \
    argv[i_] = va_arg(arguments, char *)

HOST_EXPORT int execl(const char *path, const char *first, ...)
{
    GATHER(argv, first);
    va_end(arguments);
    return execve(path, argv, environ);
}

HOST_EXPORT int execlp(const char *file, const char *first, ...)
{
    GATHER(argv, first);
    va_end(arguments);
    return execvpe(file, argv, environ);
}

HOST_EXPORT int execle(const char *path, const char *first, ...)
{
    GATHER(argv, first);
    char *const *envp = va_arg(arguments, char *const *);
    va_end(arguments);
    return execve(path, argv, envp);
}
