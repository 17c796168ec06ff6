/* All-reduce through memory that the ranks of a machine share: for machines without NCCL, and
 * beside it as the way by the host. Each rank's gradient comes to a place of its own; when all are
 * there each rank adds up a part of the elements, always in the order of ranks, so that every rank
 * gets the same sums bit by bit; when all parts are there each brings them to its device.
 *
 * The copies to the host are enqueued where the gradient is made and nobody waits for them there:
 * the host adds up the first pieces while the device makes the last. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfkit/annotate.h"
#include "workloads/allreduce/comm.h"
#include "workloads/common/grow.h"

/* The beginning of the shared memory; behind it the sums, then the gradient of each rank. */
struct hall {
    pthread_barrier_t barrier;
};
#define HALL_BYTES 4096

_Static_assert(sizeof(struct hall) <= HALL_BYTES, "the barrier's page");

struct piece {
    size_t first, count;
    struct dev_event *copied; /* to the host */
};

struct shared {
    struct comm base;
    int fd; /* rank 0's, until all have opened it */
    size_t floats, bytes;
    void *memory;
    struct dev_host *own; /* page-locked, as large as the gradient: copies that nobody waits for */
    struct piece *pieces; /* of the running step */
    size_t piece_count, piece_capacity;
    double busy_ns; /* in the operations of the running step */
};

static struct shared *self(struct comm *comm)
{
    return (struct shared *)comm;
}

static float *sums(const struct shared *s)
{
    return (float *)(void *)((char *)s->memory + HALL_BYTES);
}

static float *gradient_of(const struct shared *s, uint32_t rank)
{
    return sums(s) + (rank + 1) * s->floats;
}

static float *own_memory(const struct shared *s)
{
    return dev_host_pointer(s->own);
}

/* ---- a step ---------------------------------------------------------------------------------- */

static int shared_reduce(struct comm *comm, size_t first, size_t count)
{
    struct shared *s = self(comm);
    void *pieces = s->pieces;
    struct piece *piece =
        grow(&pieces, &s->piece_count, &s->piece_capacity, 1, sizeof s->pieces[0]);
    struct dev_queue *queue = comm->session->queue;

    s->pieces = pieces;
    if (!piece)
        return dev_fail(comm->session->dev, "buckets", "out of host memory");
    *piece = (struct piece){.first = first, .count = count};
    if (dev_read(queue, comm->gradient, first * sizeof(float), own_memory(s) + first,
                 count * sizeof(float), DEV_ASYNC, &piece->copied) != 0)
        return -1;
    return dev_queue_flush(queue);
}

static void add_part(const struct shared *s, const struct piece *piece)
{
    uint32_t rank = s->base.meet->rank, ranks = s->base.meet->ranks;
    size_t from = piece->first + piece->count * rank / ranks;
    size_t end = piece->first + piece->count * (rank + 1) / ranks;
    float *to = sums(s);

    memcpy(to + from, gradient_of(s, 0) + from, (end - from) * sizeof *to);
    for (uint32_t r = 1; r < ranks; r++) {
        const float *other = gradient_of(s, r);

        for (size_t i = from; i < end; i++)
            to[i] += other[i];
    }
}

static int reduce_piece(struct shared *s, const struct piece *piece)
{
    struct hall *hall = s->memory;
    size_t bytes = piece->count * sizeof(float);
    float *own = own_memory(s) + piece->first;
    uint64_t start;

    if (dev_event_wait(piece->copied) != 0)
        return -1;
    start = now_ns();
    perfkit_collective_push("all_reduce", bytes);
    memcpy(gradient_of(s, s->base.meet->rank) + piece->first, own, bytes);
    pthread_barrier_wait(&hall->barrier);
    add_part(s, piece);
    pthread_barrier_wait(&hall->barrier);
    memcpy(own, sums(s) + piece->first, bytes);
    perfkit_collective_pop();
    s->busy_ns += (double)(now_ns() - start);
    return dev_write(s->base.session->queue, s->base.gradient, piece->first * sizeof(float), own,
                     bytes, DEV_ASYNC, NULL);
}

static int shared_finish(struct comm *comm)
{
    struct shared *s = self(comm);
    int result = 0;

    s->busy_ns = 0;
    for (size_t i = 0; i < s->piece_count; i++) {
        if (result == 0)
            result = reduce_piece(s, &s->pieces[i]);
        dev_event_release(s->pieces[i].copied);
    }
    s->piece_count = 0;
    return result;
}

static int shared_take_time(struct comm *comm, double *ns)
{
    *ns = self(comm)->busy_ns;
    return 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void shared_close(struct comm *comm)
{
    struct shared *s = self(comm);

    for (size_t i = 0; i < s->piece_count; i++)
        dev_event_release(s->pieces[i].copied);
    free(s->pieces);
    dev_free_host(s->own);
    if (s->memory)
        munmap(s->memory, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

static const struct comm_ops shared_ops = {
    .name = "shared memory",
    .reduce = shared_reduce,
    .finish = shared_finish,
    .take_time = shared_take_time,
    .close = shared_close,
};

static bool map(struct shared *s, int fd, char *why, size_t why_bytes)
{
    void *memory = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED) {
        snprintf(why, why_bytes, "shared memory of %zu bytes: %s", s->bytes, strerror(errno));
        return false;
    }
    s->memory = memory;
    return true;
}

/* Memory without a name: nothing is left behind, however the ranks end. */
static bool make_hall(struct shared *s, char *why, size_t why_bytes)
{
    pthread_barrierattr_t attributes;
    struct hall *hall;
    bool ready;

    s->fd = memfd_create("perfkit-allreduce", MFD_CLOEXEC);
    if (s->fd < 0 || ftruncate(s->fd, (off_t)s->bytes) != 0) {
        snprintf(why, why_bytes, "shared memory of %zu bytes: %s", s->bytes, strerror(errno));
        return false;
    }
    if (!map(s, s->fd, why, why_bytes))
        return false;
    hall = s->memory;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    ready = pthread_barrier_init(&hall->barrier, &attributes, s->base.meet->ranks) == 0;
    pthread_barrierattr_destroy(&attributes);
    if (!ready)
        snprintf(why, why_bytes, "no barrier in shared memory");
    return ready;
}

static bool enter_hall(struct shared *s, const char *path, char *why, size_t why_bytes)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat info;
    bool ready = fd >= 0 && fstat(fd, &info) == 0 && (size_t)info.st_size == s->bytes;

    if (ready)
        ready = map(s, fd, why, why_bytes);
    else
        snprintf(why, why_bytes, "rank 0's memory is not at %s: are all ranks on one machine?",
                 path);
    if (fd < 0)
        return false;
    close(fd);
    return ready;
}

static bool share(struct shared *s, char *why, size_t why_bytes)
{
    struct meet *meet = s->base.meet;
    char mine[64] = "", (*all)[64] = calloc(meet->ranks, sizeof all[0]);
    bool ready = all != NULL;

    if (!ready)
        snprintf(why, why_bytes, "out of memory");
    else if (meet->rank == 0)
        ready = make_hall(s, why, why_bytes);
    snprintf(mine, sizeof mine, "/proc/%ld/fd/%d", (long)getpid(), s->fd);
    ready =
        meet_agree(meet, ready, why, why_bytes) && meet_gather(meet, mine, sizeof mine, all) == 0;
    if (ready) {
        if (meet->rank > 0)
            ready = enter_hall(s, all[0], why, why_bytes);
        ready = meet_agree(meet, ready, why, why_bytes);
    }
    free(all);
    return ready;
}

void comm_open_shared(struct meet *meet, struct session *session, size_t floats, struct comm **out,
                      char *why, size_t why_bytes)
{
    struct shared *s = calloc(1, sizeof *s);
    bool ready;

    *out = NULL;
    if (s) {
        s->base = (struct comm){.ops = &shared_ops, .meet = meet, .session = session};
        s->fd = -1;
        s->floats = floats;
        s->bytes = HALL_BYTES + (meet->ranks + (size_t)1) * floats * sizeof(float);
    } else {
        snprintf(why, why_bytes, "out of memory");
    }
    ready = s && dev_alloc_host(session->dev, floats * sizeof(float), &s->own) == 0;
    if (s && !ready)
        snprintf(why, why_bytes, "%s", dev_error_text(session->dev));
    if (meet_agree(meet, ready, why, why_bytes) && share(s, why, why_bytes))
        *out = &s->base;
    else if (s)
        shared_close(&s->base);
}
