/* The writing side of a spool (see layout.h). Used inside the target, so: no heap, no stdio, no
 * lock, no file descriptor kept (programs close descriptors they do not know), no page touched that
 * is not reserved. The caller (collectors/core) keeps threads apart and owns growing. */
#ifndef PERFKIT_SPOOL_WRITER_H
#define PERFKIT_SPOOL_WRITER_H

#include <stdbool.h>
#include <string.h>

#include "libprof/spool/layout.h"
#include "libprof/wire/record.h"

struct spool_writer {
    struct spool_header *header;
    unsigned char *chunks; /* chunk 0 */
    size_t mapped_bytes;
    uint32_t max_chunks; /* what the mapping has room for */
    char path[240];
};

static inline struct spool_chunk *spool_chunk_at(const struct spool_writer *writer, uint32_t number)
{
    return (struct spool_chunk *)(void *)(writer->chunks + (size_t)number * SPOOL_CHUNK_BYTES);
}

/* Append a record of `size` bytes (a multiple of 8) to an owned chunk. False: full. Left half-way
 * it has appended nothing. */
static inline bool spool_append(struct spool_chunk *chunk, const void *record, uint32_t size)
{
    uint32_t offset = atomic_load_explicit(&chunk->committed, memory_order_relaxed);
    if (size > SPOOL_CHUNK_CAPACITY - offset)
        return false;
    memcpy((unsigned char *)chunk + SPOOL_CHUNK_HEADER_BYTES + offset, record, size);
    atomic_store_explicit(&chunk->committed, offset + size, memory_order_release);
    return true;
}

/* Make `directory`/PID-STARTNS.spool with `first_chunks` reserved, mapped for at most limit_bytes
 * (less where address space is short). header fields pid..command are filled from *about. False
 * with errno when that is not possible; nothing is left behind then. */
struct spool_about {
    uint32_t pid, parent, forked, entry;
    uint64_t features;
    uint64_t start_ns, realtime_ns, raw_ns;
    const char *command;
    uint32_t command_bytes;
    const struct prof_rank *rank; /* NULL = unknown */
};
bool spool_writer_create(struct spool_writer *writer, const char *directory,
                         const struct spool_about *about, uint64_t limit_bytes,
                         uint32_t first_chunks);

/* Forget the mapping (in a forked child: the parent's spool). The file stays. */
void spool_writer_forget(struct spool_writer *writer);

/* Reserve room for `more` further chunks and put them on the free list. One caller at a time.
 * False, with header.no_room and room_error set, when there is no room: a full disk, RLIMIT_FSIZE,
 * the limit, or a file that cannot be opened from here, for which the request goes to the reader.
 */
bool spool_writer_grow(struct spool_writer *writer, uint32_t more);

/* Has the reader reserved room that spool_writer_grow can hand out without opening the file? */
bool spool_writer_was_granted(const struct spool_writer *writer);

/* Now and then: requests `more` chunks from the reader when the file is out of reach, before they
 * are needed. */
void spool_writer_check(struct spool_writer *writer, uint32_t more);

/* Take a chunk for thread `tid` in `state` (EVENTS or DEFINITIONS); NULL when none is free. */
struct spool_chunk *spool_writer_take(struct spool_writer *writer, uint32_t tid,
                                      enum spool_chunk_state state);

/* Continue a chunk that an ended thread left; only for a thread that has had no chunk yet. NULL =
 * none. The caller writes a THREAD record first. */
struct spool_chunk *spool_writer_take_partial(struct spool_writer *writer);

/* An ending thread leaves its chunk. */
void spool_writer_leave(struct spool_writer *writer, struct spool_chunk *chunk);

#endif
