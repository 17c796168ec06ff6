/* A library that tests preload into perfkit: it stops the process (SIGSTOP) before the STOP_AT-th
 * of its calls that change a file or a lock, and appends each call up to that one to STOP_LOG. So a
 * test can hold a recorder at any moment at which others may look at what it has written. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pid_t own; /* 0 = not perfkit: what it starts inherits the library */
static int log_fd = -1;
static unsigned stop_at;
static _Atomic unsigned calls;

__attribute__((constructor)) static void stop_at_begin(void)
{
    char exe[4096] = "";
    const char *at = getenv("STOP_AT"), *log = getenv("STOP_LOG");
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    const char *slash = length > 0 ? strrchr(exe, '/') : NULL;
    if (!at || !log || !slash || strcmp(slash, "/perfkit") != 0)
        return;
    stop_at = (unsigned)atoi(at);
    log_fd = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
    own = getpid();
}

static void before_call(const char *what, int fd, const char *path)
{
    if (!own || getpid() != own)
        return;
    int saved = errno;
    char link[40], file[4096], line[4200];
    unsigned number = atomic_fetch_add(&calls, 1) + 1;
    if (!path) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, file, sizeof file - 1);
        file[length > 0 ? length : 0] = '\0';
        path = file;
    }
    int length = snprintf(line, sizeof line, "%u %s %s\n", number, what, path);
    if (stop_at == 0 || number <= stop_at)
        dprintf(log_fd, "%.*s", length, line);
    if (number == stop_at)
        kill(own, SIGSTOP);
    errno = saved;
}

#define CALL(type, name, fd, path, parameters, arguments)                                          \
    type name parameters                                                                           \
    {                                                                                              \
        static __typeof__(&name) real;                                                             \
        if (!real)                                                                                 \
            real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                     \
        before_call(#name, fd, path);                                                              \
        return real arguments;                                                                     \
    }
CALL(ssize_t, pwrite64, fd, NULL, (int fd, const void *data, size_t size, off64_t at),
     (fd, data, size, at))
CALL(int, ftruncate64, fd, NULL, (int fd, off64_t size), (fd, size))
CALL(int, fsync, fd, NULL, (int fd), (fd))
CALL(int, unlink, -1, path, (const char *path), (path))
CALL(int, rename, -1, to, (const char *from, const char *to), (from, to))
CALL(int, linkat, -1, to, (int from_fd, const char *from, int to_fd, const char *to, int flags),
     (from_fd, from, to_fd, to, flags))

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        static __typeof__(&name) real;                                                             \
        if (!real)                                                                                 \
            real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                     \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        int makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;                           \
        mode_t mode = makes ? va_arg(more, mode_t) : 0;                                            \
        va_end(more);                                                                              \
        if (flags & O_CREAT)                                                                       \
            before_call(#name, -1, path);                                                          \
        return real(path, flags, mode);                                                            \
    }
OPEN(open)
OPEN(open64)

#define LOCK(name)                                                                                 \
    int name(int fd, int command, ...)                                                             \
    {                                                                                              \
        static __typeof__(&name) real;                                                             \
        if (!real)                                                                                 \
            real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                     \
        va_list more;                                                                              \
        va_start(more, command);                                                                   \
        void *argument = va_arg(more, void *);                                                     \
        va_end(more);                                                                              \
        if (command == F_SETLK)                                                                    \
            before_call(#name, fd, NULL);                                                          \
        return real(fd, command, argument);                                                        \
    }
LOCK(fcntl)
LOCK(fcntl64)
