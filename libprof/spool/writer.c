/* The writing side of a spool: making the file, reserving room ahead, handing out chunks.
 *
 * Everything here runs inside the target process. The file is reopened by name each time it
 * grows, because programs close descriptors they do not know and would then hand us one of theirs.
 * Room is reserved (fallocate) before a chunk reaches the free list, so that a full disk shows up
 * as an error here and never as SIGBUS in the program. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/spool/writer.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define MIN_CHUNKS 4u

static bool over_file_limit(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           bytes > limit.rlim_cur;
}

/* Give the file room for [offset, offset + bytes). File systems without fallocate get zeros
 * written, which reserves as well. */
static bool reserve_file_range(int fd, uint64_t offset, uint64_t bytes)
{
    static const char zeros[4096];
    if (over_file_limit(offset + bytes)) {
        errno = EFBIG;
        return false;
    }
    int rc;
    do
        rc = fallocate(fd, 0, (off_t)offset, (off_t)bytes);
    while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return true;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return false;
    for (uint64_t done = 0; done < bytes;) {
        uint64_t left = bytes - done;
        ssize_t n =
            pwrite(fd, zeros, left < sizeof zeros ? left : sizeof zeros, (off_t)(offset + done));
        if (n <= 0) {
            if (n < 0 && errno == EINTR)
                continue;
            return false;
        }
        done += (uint64_t)n;
    }
    return true;
}

/* Fault the pages in now rather than under a launch. */
static void populate(unsigned char *start, size_t bytes)
{
    if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0)
        return;
    for (size_t at = 0; at < bytes; at += 4096) {
        volatile unsigned char *page = start + at;
        *page = *page;
    }
}

static struct spool_chunk *list_pop(struct spool_writer *writer, _Atomic uint64_t *head)
{
    uint64_t old = atomic_load_explicit(head, memory_order_acquire);
    for (;;) {
        uint32_t number = (uint32_t)old;
        if (number == 0 || number > writer->max_chunks)
            return NULL;
        struct spool_chunk *chunk = spool_chunk_at(writer, number - 1);
        uint32_t next = atomic_load_explicit(&chunk->next, memory_order_relaxed);
        uint64_t new = ((old >> 32) + 1) << 32 | next;
        if (atomic_compare_exchange_weak_explicit(head, &old, new, memory_order_acq_rel,
                                                  memory_order_acquire))
            return chunk;
    }
}

static bool no_room(struct spool_header *header, uint32_t why)
{
    atomic_store(&header->room_error, why);
    atomic_store(&header->no_room, 1);
    return false;
}

/* Chunks that the reader has reserved, at most what the mapping has room for. */
static uint32_t granted(const struct spool_writer *writer)
{
    uint32_t chunks = atomic_load_explicit(&writer->header->granted, memory_order_acquire);
    return chunks < writer->max_chunks ? chunks : writer->max_chunks;
}

static void wake_reader(struct spool_writer *writer, uint32_t chunks)
{
    uint32_t limit = writer->max_chunks;
    atomic_store(&writer->header->wanted, chunks < limit ? chunks : limit);
}

bool spool_writer_was_granted(const struct spool_writer *writer)
{
    return granted(writer) > atomic_load(&writer->header->reserved);
}

void spool_writer_check(struct spool_writer *writer, uint32_t more)
{
    struct stat info;
    uint32_t have = atomic_load(&writer->header->reserved);
    if (atomic_load(&writer->header->wanted) <= have && stat(writer->path, &info) != 0)
        wake_reader(writer, have + more);
}

bool spool_writer_grow(struct spool_writer *writer, uint32_t more)
{
    struct spool_header *header = writer->header;
    uint32_t have = atomic_load(&header->reserved);
    if (more > writer->max_chunks - have)
        more = writer->max_chunks - have;
    if (more == 0)
        return no_room(header, SPOOL_AT_LIMIT);
    bool ok = granted(writer) > have;
    int fd = ok ? -1 : open(writer->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    int why = errno;
    if (ok)
        more = granted(writer) - have;
    else if (fd < 0)
        wake_reader(writer, have + more);
    while (fd >= 0) {
        ok = reserve_file_range(fd, SPOOL_FIRST_CHUNK + (uint64_t)have * SPOOL_CHUNK_BYTES,
                                (uint64_t)more * SPOOL_CHUNK_BYTES);
        why = errno;
        if (ok || more == 1)
            break;
        more /= 2; /* take what is left of a nearly full disk */
    }
    if (fd >= 0)
        close(fd);
    if (!ok)
        return no_room(header, (uint32_t)why);
    populate(writer->chunks + (size_t)have * SPOOL_CHUNK_BYTES, (size_t)more * SPOOL_CHUNK_BYTES);
    atomic_store(&header->reserved, have + more);
    atomic_store(&header->no_room, 0);
    atomic_fetch_add(&header->free_count, more);
    for (uint32_t i = more; i-- > 0;) /* lowest number first out */
        spool_list_push(&header->free_list, writer->chunks, have + i);
    return true;
}

/* Zero, as the file comes, means unknown. */
static void fill_rank(struct spool_header *header, const struct prof_rank *rank)
{
    header->rank = (uint32_t)(rank->rank + 1);
    header->local_rank = (uint32_t)(rank->local_rank + 1);
    header->world_size = (uint32_t)(rank->world_size + 1);
    memcpy(header->job, rank->job, sizeof header->job);
}

static void fill_header(struct spool_header *header, const struct spool_about *about,
                        uint32_t max_chunks)
{
    header->min_reader = WIRE_MIN_READER;
    header->version = WIRE_VERSION;
    header->chunk_bytes = SPOOL_CHUNK_BYTES;
    header->first_chunk = SPOOL_FIRST_CHUNK;
    header->counter_rows = SPOOL_COUNTER_ROWS;
    header->counter_slots = WIRE_COUNT_SLOTS;
    header->pid = about->pid;
    header->parent = about->parent;
    header->forked = about->forked;
    header->features = about->features;
    header->entry = about->entry;
    header->start_ns = about->start_ns;
    header->realtime_ns = about->realtime_ns;
    header->raw_ns = about->raw_ns;
    header->max_chunks = max_chunks;
    header->command_bytes = about->command_bytes < sizeof header->command
                                ? about->command_bytes
                                : (uint32_t)sizeof header->command;
    memcpy(header->command, about->command, header->command_bytes);
    if (about->rank)
        fill_rank(header, about->rank);
    atomic_store_explicit(&header->magic, SPOOL_MAGIC, memory_order_release);
}

bool spool_writer_create(struct spool_writer *writer, const char *directory,
                         const struct spool_about *about, uint64_t limit_bytes,
                         uint32_t first_chunks)
{
    memset(writer, 0, sizeof *writer);
    int length = snprintf(writer->path, sizeof writer->path, "%s/%u-%llu" SPOOL_SUFFIX, directory,
                          about->pid, (unsigned long long)about->start_ns);
    if (length < 0 || (size_t)length >= sizeof writer->path) {
        errno = ENAMETOOLONG;
        return false;
    }
    int fd = open(writer->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;

    uint64_t chunks = limit_bytes / SPOOL_CHUNK_BYTES;
    if (chunks > SPOOL_MAX_CHUNKS)
        chunks = SPOOL_MAX_CHUNKS;
    if (chunks < MIN_CHUNKS)
        chunks = MIN_CHUNKS;
    void *base = MAP_FAILED;
    bool ok = reserve_file_range(fd, 0, SPOOL_FIRST_CHUNK);
    for (; ok && chunks >= MIN_CHUNKS; chunks /= 2) {
        writer->mapped_bytes = SPOOL_FIRST_CHUNK + (size_t)chunks * SPOOL_CHUNK_BYTES;
        base = mmap(NULL, writer->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                    fd, 0);
        if (base != MAP_FAILED)
            break;
    }
    int saved = errno;
    close(fd);
    if (base == MAP_FAILED) {
        unlink(writer->path);
        errno = saved;
        return false;
    }
    writer->header = base;
    writer->chunks = (unsigned char *)base + SPOOL_FIRST_CHUNK;
    writer->max_chunks = (uint32_t)chunks;
    populate(base, SPOOL_FIRST_CHUNK);
    spool_writer_grow(writer, first_chunks); /* none at all: everything is dropped and counted */
    fill_header(writer->header, about, writer->max_chunks);
    return true;
}

void spool_writer_forget(struct spool_writer *writer)
{
    if (writer->header)
        munmap(writer->header, writer->mapped_bytes);
    memset(writer, 0, sizeof *writer);
}

struct spool_chunk *spool_writer_take(struct spool_writer *writer, uint32_t tid,
                                      enum spool_chunk_state state)
{
    struct spool_header *header = writer->header;
    struct spool_chunk *chunk = list_pop(writer, &header->free_list);
    if (!chunk)
        return NULL;
    atomic_fetch_sub_explicit(&header->free_count, 1, memory_order_relaxed);
    atomic_store_explicit(&chunk->tid, tid, memory_order_relaxed);
    atomic_store_explicit(&chunk->committed, 0, memory_order_relaxed);
    atomic_store_explicit(&chunk->sequence,
                          atomic_fetch_add_explicit(&header->sequence, 1, memory_order_acq_rel) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&chunk->state, state, memory_order_release);
    return chunk;
}

struct spool_chunk *spool_writer_take_partial(struct spool_writer *writer)
{
    struct spool_chunk *chunk = list_pop(writer, &writer->header->partial_list);
    if (!chunk)
        return NULL;
    atomic_store_explicit(&chunk->state, SPOOL_EVENTS, memory_order_release);
    return chunk;
}

void spool_writer_leave(struct spool_writer *writer, struct spool_chunk *chunk)
{
    /* Not worth continuing when little is left; the reader then recycles it. */
    uint32_t used = atomic_load_explicit(&chunk->committed, memory_order_relaxed);
    if (SPOOL_CHUNK_CAPACITY - used < WIRE_MAX_RECORD) {
        atomic_store_explicit(&chunk->state, SPOOL_EVENTS_FULL, memory_order_release);
        return;
    }
    atomic_store_explicit(&chunk->state, SPOOL_PARTIAL, memory_order_release);
    uint32_t number =
        (uint32_t)((size_t)((unsigned char *)chunk - writer->chunks) / SPOOL_CHUNK_BYTES);
    spool_list_push(&writer->header->partial_list, writer->chunks, number);
}
