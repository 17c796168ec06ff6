/* Questions to vendor libraries are asked in a child process: what is loaded may crash, hang,
 * print, start threads or change signal handlers, and nothing of that may reach perfkit. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/probe.h"
#include "libprof/base/clock.h"

#define PROBE_MS 10000

static _Noreturn void probe_child(void (*probe)(void *context, char *reply, size_t size),
                                  void *context, int out, size_t size)
{
    char reply[PROBE_REPLY] = "";
    /* Drivers talk to stderr, and some to stdout. */
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
        _exit(1);
    size = size < sizeof reply ? size : sizeof reply;
    probe(context, reply, size);
    size_t length = strnlen(reply, size - 1);
    _exit(write(out, reply, length) == (ssize_t)length ? 0 : 1);
}

bool probe_run(void (*probe)(void *context, char *reply, size_t size), void *context, char *reply,
               size_t size)
{
    int ends[2];
    reply[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        probe_child(probe, context, ends[1], size);
    }
    close(ends[1]);
    size_t used = 0;
    uint64_t deadline = prof_now_ns() + PROBE_MS * 1000000ull;
    bool timed_out = false;
    while (pid > 0 && used + 1 < size) {
        uint64_t now = prof_now_ns();
        struct pollfd waiting = {.fd = ends[0], .events = POLLIN};
        timed_out =
            now >= deadline || poll(&waiting, 1, (int)((deadline - now) / 1000000u) + 1) == 0;
        if (timed_out)
            break;
        ssize_t got = read(ends[0], reply + used, size - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    reply[used] = '\0';
    close(ends[0]);
    if (timed_out)
        kill(pid, SIGKILL);
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return false;
    if (timed_out)
        snprintf(reply, size, "did not answer within %d s", PROBE_MS / 1000);
    else if (WIFSIGNALED(status))
        snprintf(reply, size, "crashed (%s)", strsignal(WTERMSIG(status)));
    return !timed_out && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
