/* Ranks that find each other; see meet.h. A star around rank 0 is slow and simple, which is right
 * for what goes this way: a few hundred bytes, a few times a run. */
#include "workloads/allreduce/meet.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "kernels/device/clock.h"
#include "workloads/allreduce/launch.h"

#define WHY_BYTES 160
#define SILENT_NS 3000000000u /* ranks of a scheduler do not start at the same moment */
#define HELLO_MS 2000         /* who connects and says nothing is no rank */

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

struct place {
    char host[256], port[16];
};

/* torchrun's own store keeps MASTER_PORT for itself when its agent holds it. */
static int find_master(struct place *place, char *why, size_t why_bytes)
{
    const char *address = getenv("MASTER_ADDR"), *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    const char *number = getenv("MASTER_PORT");
    char *end = "";
    unsigned long at = number ? strtoul(number, &end, 10) : 29500;

    at += agent && strcmp(agent, "True") == 0;
    if (*end || at == 0 || at > UINT16_MAX) {
        snprintf(why, why_bytes, "MASTER_PORT=%s: take one from 1 to 65534", number ? number : "");
        return -1;
    }
    if (!address)
        address = getenv("SLURM_LAUNCH_NODE_IPADDR");
    snprintf(place->host, sizeof place->host, "%s", address ? address : "127.0.0.1");
    snprintf(place->port, sizeof place->port, "%lu", at);
    return 0;
}

/* How long there is to wait, and whether it was said. */
struct patience {
    uint64_t begin_ns, end_ns;
    bool said;
};

static struct patience patience_of(const struct meet *meet)
{
    uint64_t now = now_ns();

    return (struct patience){now, now + meet->patience_s * UINT64_C(1000000000), false};
}

/* Whether to go on; says once for whom it waits when that takes long. */
static bool wait_on(struct patience *patience, const struct meet *meet, uint32_t come,
                    const struct place *place)
{
    uint64_t now = now_ns();

    if (!patience->said && now - patience->begin_ns >= SILENT_NS) {
        patience->said = true;
        if (meet->rank == 0)
            fprintf(
                stderr,
                "allreduce: rank 0 has waited 3 s at port %s for %u of %u other ranks; it waits "
                "%u s in all\n",
                place->port, meet->ranks - come, meet->ranks - 1, meet->patience_s);
        else
            fprintf(stderr,
                    "allreduce: rank %u has waited 3 s for rank 0 at %s, port %s; it waits %u s in "
                    "all\n",
                    meet->rank, place->host, place->port, meet->patience_s);
    }
    return now < patience->end_ns;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* A descriptor, or -1. */
static int try_master(const struct place *place)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int fd = -1;

    if (getaddrinfo(place->host, place->port, &hints, &found) != 0)
        return -1;
    for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

/* Tries again until rank 0 listens. */
static int dial(struct meet *meet, const struct place *place, char *why, size_t why_bytes)
{
    struct patience patience = patience_of(meet);
    int fd = try_master(place);

    while (fd < 0 && wait_on(&patience, meet, 0, place)) {
        pause_ms(50);
        fd = try_master(place);
    }
    if (fd < 0 || send_all(fd, &meet->rank, sizeof meet->rank) != 0) {
        snprintf(why, why_bytes, "no rank 0 at %s, port %s (MASTER_ADDR, MASTER_PORT) within %u s",
                 place->host, place->port, meet->patience_s);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    meet->peers[0] = fd;
    return 0;
}

static int listen_at(const struct place *place, char *why, size_t why_bytes)
{
    const struct addrinfo hints = {
        .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    int fd, on = 1;

    if (getaddrinfo(NULL, place->port, &hints, &found) != 0)
        return refuse(why, why_bytes, "MASTER_PORT");
    fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                found->ai_protocol);
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

static bool readable(int fd, int ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, ms) == 1;
}

/* One who connected; not when it is somebody else. */
static bool take_in(struct meet *meet, int fd)
{
    uint32_t rank = 0;

    if (fd < 0)
        return false;
    if (readable(fd, HELLO_MS) && receive_all(fd, &rank, sizeof rank) == 0 && rank > 0 &&
        rank < meet->ranks && meet->peers[rank] < 0) {
        meet->peers[rank] = fd;
        return true;
    }
    close(fd);
    return false;
}

/* The first that did not come, for the sentence. */
static uint32_t first_missing(const struct meet *meet)
{
    uint32_t rank = 1;

    while (rank < meet->ranks && meet->peers[rank] >= 0)
        rank++;
    return rank;
}

static int welcome(struct meet *meet, const struct place *place, char *why, size_t why_bytes)
{
    struct patience patience = patience_of(meet);
    int listener = listen_at(place, why, why_bytes);
    uint32_t come = 1;

    if (listener < 0)
        return -1;
    while (come < meet->ranks && wait_on(&patience, meet, come, place)) {
        if (readable(listener, 100))
            come += take_in(meet, accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    }
    close(listener);
    if (come == meet->ranks)
        return 0;
    snprintf(why, why_bytes,
             "%u of %u ranks came to port %s within %u s; rank %u, for one, did not", come,
             meet->ranks, place->port, meet->patience_s, first_missing(meet));
    return -1;
}

int meet_open(struct meet *meet, char *why, size_t why_bytes)
{
    size_t count = meet->rank == 0 ? meet->ranks : 1;
    struct place place;

    meet->peers = malloc(count * sizeof meet->peers[0]);
    if (!meet->peers)
        return refuse(why, why_bytes, "ranks");
    for (size_t i = 0; i < count; i++)
        meet->peers[i] = -1;
    if (meet->ranks == 1 || launch_inherited(meet))
        return 0;
    if (find_master(&place, why, why_bytes) != 0)
        return -1;
    return meet->rank == 0 ? welcome(meet, &place, why, why_bytes)
                           : dial(meet, &place, why, why_bytes);
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
