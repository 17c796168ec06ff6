/* fork and exec with a pipe that tells whether exec worked: the pipe closes by itself when it did.
 * Nothing is changed for the target: same process group, terminal, descriptors, umask and limits;
 * everything perfkit opened is close-on-exec. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run_signals.h"
#include "cli/run_spawn.h"

void inherited_list(struct inherited_fds *inherited)
{
    *inherited = (struct inherited_fds){0};
    DIR *dir = opendir("/proc/self/fd");
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
    closedir(dir);
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

int spawn_target(char *const argv[], char *const envp[], const struct spawn_hold *hold, pid_t *pid,
                 int *in_exec)
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
        while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR) {
        }
        *in_exec = 1;
        return failed;
    }
    raise_own_limits();
    return 0;
}
