/* Ranks that find each other; see meet.h. A star around rank 0 is slow and simple, which is right
 * for what goes this way: a few hundred bytes, a few times a run. */
#include "workloads/allreduce/meet.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "kernels/device/clock.h"
#include "workloads/allreduce/launch.h"

#define WHY_BYTES 160
#define PATIENCE_NS 60000000000u /* ranks of a scheduler do not start at the same moment */

/* ---- who this is ----------------------------------------------------------------------------- */

/* The number in a variable; false where there is none. */
static bool variable(const char *name, uint32_t *out)
{
    const char *text = getenv(name);
    char *end;
    unsigned long number;

    if (!text || *text < '0' || *text > '9')
        return false;
    number = strtoul(text, &end, 10);
    *out = (uint32_t)number;
    return !*end && number <= MEET_RANKS;
}

bool meet_identity(struct meet *meet)
{
    static const struct {
        const char *rank, *ranks, *local_rank, *local_ranks;
    } launchers[] = {
        {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
         "OMPI_COMM_WORLD_LOCAL_SIZE"},
        {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
    };

    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        *meet = (struct meet){.ranks = 0};
        if (!variable(launchers[i].rank, &meet->rank) ||
            !variable(launchers[i].ranks, &meet->ranks) || meet->rank >= meet->ranks)
            continue;
        /* Slurm's own variables are also in a job's only shell, from which ranks are to start. */
        if (meet->ranks == 1 && i > 0)
            continue;
        if (!variable(launchers[i].local_rank, &meet->local_rank))
            meet->local_rank = meet->rank;
        variable(launchers[i].local_ranks, &meet->local_ranks);
        return true;
    }
    *meet = (struct meet){.ranks = 0};
    return false;
}

/* ---- sockets --------------------------------------------------------------------------------- */

static int send_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes > 0) {
        ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        at += sent;
        bytes -= (size_t)sent;
    }
    return 0;
}

static int receive_all(int fd, void *data, size_t bytes)
{
    char *at = data;

    while (bytes > 0) {
        ssize_t got = recv(fd, at, bytes, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        at += got;
        bytes -= (size_t)got;
    }
    return 0;
}

static int refuse(char *why, size_t why_bytes, const char *what)
{
    snprintf(why, why_bytes, "%s: %s", what, strerror(errno));
    return -1;
}

/* torchrun's own store keeps MASTER_PORT for itself when its agent holds it. */
static void master(char *host, size_t host_bytes, char *port, size_t port_bytes)
{
    const char *address = getenv("MASTER_ADDR"), *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    const char *number = getenv("MASTER_PORT");
    unsigned long at = number ? strtoul(number, NULL, 10) : 29500;

    if (!address)
        address = getenv("SLURM_LAUNCH_NODE_IPADDR");
    snprintf(host, host_bytes, "%s", address ? address : "127.0.0.1");
    snprintf(port, port_bytes, "%lu", at + (agent && strcmp(agent, "True") == 0));
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Tries again until rank 0 listens. */
static int dial(struct meet *meet, char *why, size_t why_bytes)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    uint64_t deadline = now_ns() + PATIENCE_NS;
    char host[256], port[16];
    int fd = -1;

    master(host, sizeof host, port, sizeof port);
    while (fd < 0 && now_ns() < deadline) {
        struct addrinfo *found = NULL;

        if (getaddrinfo(host, port, &hints, &found) == 0)
            for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
                fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
                if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
                    close(fd);
                    fd = -1;
                }
            }
        if (found)
            freeaddrinfo(found);
        if (fd < 0)
            pause_ms(50);
    }
    if (fd < 0 || send_all(fd, &meet->rank, sizeof meet->rank) != 0) {
        snprintf(why, why_bytes, "no rank 0 at %s, port %s (MASTER_ADDR, MASTER_PORT)", host, port);
        return -1;
    }
    meet->peers[0] = fd;
    return 0;
}

static int listen_at(char *why, size_t why_bytes)
{
    const struct addrinfo hints = {
        .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char host[256], port[16];
    int fd, on = 1;

    master(host, sizeof host, port, sizeof port);
    if (getaddrinfo(NULL, port, &hints, &found) != 0)
        return refuse(why, why_bytes, "MASTER_PORT");
    fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, MEET_RANKS) != 0) {
        refuse(why, why_bytes, "MASTER_PORT");
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static int welcome(struct meet *meet, char *why, size_t why_bytes)
{
    const struct timeval patience = {.tv_sec = PATIENCE_NS / 1000000000u};
    int listener = listen_at(why, why_bytes);

    if (listener < 0)
        return -1;
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (uint32_t come = 1; come < meet->ranks;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        uint32_t rank = 0;

        if (fd < 0) {
            refuse(why, why_bytes, "not all ranks came");
            close(listener);
            return -1;
        }
        if (receive_all(fd, &rank, sizeof rank) != 0 || rank == 0 || rank >= meet->ranks ||
            meet->peers[rank] >= 0) {
            close(fd); /* somebody else */
            continue;
        }
        meet->peers[rank] = fd;
        come++;
    }
    close(listener);
    return 0;
}

int meet_open(struct meet *meet, char *why, size_t why_bytes)
{
    size_t count = meet->rank == 0 ? meet->ranks : 1;

    meet->peers = malloc(count * sizeof meet->peers[0]);
    if (!meet->peers)
        return refuse(why, why_bytes, "ranks");
    for (size_t i = 0; i < count; i++)
        meet->peers[i] = -1;
    if (meet->ranks == 1 || launch_inherited(meet))
        return 0;
    return meet->rank == 0 ? welcome(meet, why, why_bytes) : dial(meet, why, why_bytes);
}

void meet_close(struct meet *meet)
{
    size_t count = meet->rank == 0 ? meet->ranks : 1;

    for (size_t i = 0; meet->peers && i < count; i++)
        if (meet->peers[i] >= 0)
            close(meet->peers[i]);
    free(meet->peers);
    meet->peers = NULL;
}

/* ---- telling each other ---------------------------------------------------------------------- */

int meet_gather(struct meet *meet, const void *mine, size_t bytes, void *all)
{
    if (meet->rank > 0)
        return send_all(meet->peers[0], mine, bytes) != 0 ||
                       receive_all(meet->peers[0], all, bytes * meet->ranks) != 0
                   ? -1
                   : 0;
    memcpy(all, mine, bytes);
    for (uint32_t rank = 1; rank < meet->ranks; rank++)
        if (receive_all(meet->peers[rank], (char *)all + rank * bytes, bytes) != 0)
            return -1;
    for (uint32_t rank = 1; rank < meet->ranks; rank++)
        if (send_all(meet->peers[rank], all, bytes * meet->ranks) != 0)
            return -1;
    return 0;
}

bool meet_agree(struct meet *meet, bool yes, char *why, size_t why_bytes)
{
    struct answer {
        bool yes;
        char why[WHY_BYTES];
    } mine = {.yes = yes}, *all = malloc(meet->ranks * sizeof *all);
    bool agreed = all != NULL;

    if (!yes)
        snprintf(mine.why, sizeof mine.why, "%s", why);
    if (all && meet_gather(meet, &mine, sizeof mine, all) != 0) {
        snprintf(why, why_bytes, "a rank is gone");
        agreed = false;
    }
    for (uint32_t rank = 0; agreed && rank < meet->ranks; rank++) {
        agreed = all[rank].yes;
        if (!agreed)
            snprintf(why, why_bytes, "%s", all[rank].why);
    }
    free(all);
    return agreed;
}
