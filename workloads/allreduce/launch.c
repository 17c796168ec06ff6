/* The ranks as processes of their own, as torchrun starts them: each has its rank in its
 * environment, and executes the program anew, because a device that one process opened must not be
 * forked. */
#include "workloads/allreduce/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workloads/allreduce/meet.h"

#define MOMENT_NS 10000000
#define MOMENTS 100
#define SOCKETS "PERFKIT_ALLREDUCE_SOCKETS" /* a rank's descriptors, separated by commas */

bool launch_inherited(struct meet *meet)
{
    const char *at = getenv(SOCKETS);
    uint32_t first = meet->rank == 0 ? 1 : 0, end = meet->rank == 0 ? meet->ranks : 1;

    if (!at)
        return false;
    for (uint32_t i = first; i < end && *at; i++) {
        char *next;

        meet->peers[i] = (int)strtol(at, &next, 10);
        at = *next == ',' ? next + 1 : next;
    }
    return true;
}

static void set_number(const char *name, uint32_t number)
{
    char text[16];

    snprintf(text, sizeof text, "%u", number);
    setenv(name, text, 1);
}

/* Descriptors of `pairs` that rank keeps; the other ends are closed, or the ranks would not see
 * each other go. */
static void keep_sockets(int (*pairs)[2], uint32_t ranks, uint32_t rank)
{
    char *list = malloc(12 * (size_t)ranks);
    size_t used = 0;

    if (!list)
        _exit(2);
    list[0] = '\0';
    for (uint32_t r = 1; r < ranks; r++) {
        int keep = rank == 0 ? pairs[r][0] : r == rank ? pairs[r][1] : -1;

        for (int end = 0; end < 2; end++)
            if (pairs[r][end] != keep)
                close(pairs[r][end]);
        if (keep >= 0)
            used += (size_t)snprintf(list + used, 12, "%s%d", used ? "," : "", keep);
    }
    setenv(SOCKETS, list, 1);
    free(list);
}

/* The rank in the child; does not return. */
static void become_rank(const char *program, int (*pairs)[2], uint32_t ranks, uint32_t rank,
                        pid_t launcher, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
        _exit(2);
    keep_sockets(pairs, ranks, rank);
    set_number("RANK", rank);
    set_number("WORLD_SIZE", ranks);
    set_number("LOCAL_RANK", rank);
    set_number("LOCAL_WORLD_SIZE", ranks);
    execv("/proc/self/exe", argv);
    fprintf(stderr, "%s: rank %u: %s\n", program, rank, strerror(errno));
    _exit(2);
}

static int status_of(const char *program, uint32_t rank, int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "%s: rank %u: ended by signal %d\n", program, rank, WTERMSIG(status));
    return 2;
}

/* Those that still run wait for one that is gone. */
static void end_others(const pid_t *pids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
}

/* What became of the ranks, of which `pid` ended: the status of the first that failed. */
static int note_end(const char *program, pid_t *pids, uint32_t ranks, pid_t pid, int status)
{
    for (uint32_t rank = 0; rank < ranks; rank++)
        if (pids[rank] == pid) {
            pids[rank] = 0;
            return status == 0 ? 0 : status_of(program, rank, status);
        }
    return 0;
}

/* Once one has failed the others have a moment to say what they know of it. */
static int wait_for_ranks(const char *program, pid_t *pids, uint32_t ranks)
{
    int result = 0, status, moments = MOMENTS;
    pid_t pid;

    while ((pid = waitpid(-1, &status, result && moments ? WNOHANG : 0)) >= 0 || errno == EINTR) {
        if (pid > 0) {
            int one = note_end(program, pids, ranks, pid, status);

            result = result ? result : one;
        } else if (pid == 0) {
            nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
            if (--moments == 0)
                end_others(pids, ranks);
        }
    }
    return result;
}

static int open_pairs(int (*pairs)[2], uint32_t ranks)
{
    for (uint32_t rank = 1; rank < ranks; rank++)
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[rank]) != 0)
            return -1;
    return 0;
}

int meet_launch(const char *program, uint32_t ranks, char **argv)
{
    int(*pairs)[2] = calloc(ranks, sizeof pairs[0]);
    pid_t *pids = calloc(ranks, sizeof pids[0]), self = getpid();
    int result = pairs && pids && open_pairs(pairs, ranks) == 0 ? 0 : 2;

    if (result != 0)
        fprintf(stderr, "%s: --ranks %u: %s: take fewer\n", program, ranks, strerror(errno));
    fflush(NULL);
    for (uint32_t rank = 0; rank < ranks && result == 0; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0)
            become_rank(program, pairs, ranks, rank, self, argv);
        if (pids[rank] < 0) {
            fprintf(stderr, "%s: --ranks %u: %s: take fewer\n", program, ranks, strerror(errno));
            end_others(pids, rank);
            result = 2;
        }
    }
    for (uint32_t rank = 1; pairs && rank < ranks; rank++)
        for (int end = 0; end < 2; end++)
            if (pairs[rank][end] > 0)
                close(pairs[rank][end]);
    if (pids) {
        int waited = wait_for_ranks(program, pids, ranks);

        result = result ? result : waited;
    }
    free(pairs);
    free(pids);
    return result;
}
