/* Run tests/host/targets/ways in one way: its stdout and stderr as text, its wait status. A program
 * that hangs is killed. */
#ifndef PERFKIT_TESTS_HOST_RUN_WAY_H
#define PERFKIT_TESTS_HOST_RUN_WAY_H

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUN_WAY_MS 20000

static inline int run_way(const char *ways, const char *way, char *const *environment, char *output,
                          size_t size)
{
    int ends[2], status = -1;
    output[0] = '\0';
    if (pipe(ends) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        char *argv[] = {(char *)(uintptr_t)ways, (char *)(uintptr_t)way, NULL};
        execve(ways, argv, environment);
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0;
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    while (used < size - 1) {
        if (poll(&ready, 1, RUN_WAY_MS) == 0) {
            kill(pid, SIGKILL);
            break;
        }
        ssize_t n = read(ends[0], output + used, size - 1 - used);
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    output[used] = '\0';
    close(ends[0]);
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

#endif
