/* A libnccl for memory of the host, so that the workload's way through NCCL is tested on machines
 * without GPUs: what its functions promise, by a file that the ranks share. FAKE_NCCL_FAILS names a
 * function that is to fail. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define CHUNK 4096 /* floats that are added up at a time */

struct id {
    char path[128];
};

struct hall {
    atomic_int ready;
    pthread_barrier_t barrier;
    float chunk[][CHUNK]; /* of each rank */
};

struct fake {
    int ranks, rank;
    size_t bytes;
    struct hall *hall;
};

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4 };

EXPORT int ncclGetUniqueId(struct id *id);
EXPORT int ncclCommInitRank(void **comm, int ranks, struct id id, int rank);
EXPORT int ncclAllReduce(const void *send, void *receive, size_t count, int type, int operation,
                         void *comm, void *stream);
EXPORT int ncclCommDestroy(void *comm);
EXPORT const char *ncclGetErrorString(int status);

static int fails(const char *function)
{
    const char *asked = getenv("FAKE_NCCL_FAILS");

    return asked && strcmp(asked, function) == 0;
}

int ncclGetUniqueId(struct id *id)
{
    const char *folder = getenv("TMPDIR");
    int fd;

    snprintf(id->path, sizeof id->path, "%s/fake-nccl-XXXXXX", folder ? folder : "/tmp");
    fd = mkstemp(id->path);
    if (fd < 0)
        return SYSTEM_ERROR;
    close(fd);
    return SUCCESS;
}

static int map_hall(struct fake *fake, const char *path)
{
    int fd = open(path, O_RDWR);
    void *memory = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)fake->bytes) == 0)
        memory = mmap(NULL, fake->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (memory == MAP_FAILED)
        return SYSTEM_ERROR;
    fake->hall = memory;
    return SUCCESS;
}

static void open_hall(struct fake *fake)
{
    pthread_barrierattr_t attributes;

    if (fake->rank == 0) {
        pthread_barrierattr_init(&attributes);
        pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(&fake->hall->barrier, &attributes, (unsigned)fake->ranks);
        pthread_barrierattr_destroy(&attributes);
        atomic_store(&fake->hall->ready, 1);
    }
    while (!atomic_load(&fake->hall->ready))
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    pthread_barrier_wait(&fake->hall->barrier);
}

int ncclCommInitRank(void **comm, int ranks, struct id id, int rank)
{
    struct fake *fake = fails("ncclCommInitRank") ? NULL : calloc(1, sizeof *fake);

    if (!fake)
        return SYSTEM_ERROR;
    fake->ranks = ranks;
    fake->rank = rank;
    fake->bytes = sizeof(struct hall) + (size_t)ranks * sizeof fake->hall->chunk[0];
    if (map_hall(fake, id.path) != SUCCESS) {
        free(fake);
        return SYSTEM_ERROR;
    }
    open_hall(fake);
    if (rank == 0)
        unlink(id.path);
    *comm = fake;
    return SUCCESS;
}

static void reduce_chunk(struct fake *fake, const float *from, float *to, size_t count)
{
    memcpy(fake->hall->chunk[fake->rank], from, count * sizeof *from);
    pthread_barrier_wait(&fake->hall->barrier);
    for (size_t i = 0; i < count; i++) {
        to[i] = 0;
        for (int rank = 0; rank < fake->ranks; rank++)
            to[i] += fake->hall->chunk[rank][i];
    }
    pthread_barrier_wait(&fake->hall->barrier);
}

int ncclAllReduce(const void *send, void *receive, size_t count, int type, int operation,
                  void *comm, void *stream)
{
    const float *from = send;
    float *to = receive;

    (void)stream;
    if (type != 7 || operation != 0 || fails("ncclAllReduce"))
        return INVALID_ARGUMENT;
    for (size_t at = 0; at < count; at += CHUNK)
        reduce_chunk(comm, from + at, to + at, count - at < CHUNK ? count - at : CHUNK);
    return SUCCESS;
}

int ncclCommDestroy(void *comm)
{
    struct fake *fake = comm;

    munmap(fake->hall, fake->bytes);
    free(fake);
    return SUCCESS;
}

const char *ncclGetErrorString(int status)
{
    return status == SYSTEM_ERROR ? "unhandled system error" : "invalid argument";
}
