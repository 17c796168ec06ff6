/* The reading side of a spool: snapshots in an order that never shows an id before its definition
 * nor a thread's record before its predecessor (the protocol is in layout.h), private copies of
 * what is parsed, and the return of consumed chunks. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/array.h"
#include "libprof/base/regular.h"
#include "libprof/spool/reader.h"
#include "libprof/spool/layout.h"

#define GRANT_AHEAD 256u /* chunks: 16 MiB */

struct chunk_cursor {
    uint32_t generation, offset, tid;
    bool closed; /* as of the span consumed last */
};

struct prof_spool {
    unsigned char *base;
    size_t mapped;
    size_t file_bytes;
    int fd;        /* -1: memory */
    bool writable; /* chunks are given back */
    uint32_t max_chunks;
    PROF_ARRAY(struct chunk_cursor) cursors;
    PROF_ARRAY(struct prof_spool_span) spans;
    PROF_ARRAY(uint32_t) consumed; /* chunks advanced since the last recycle */
};

static struct spool_header *header_of(const struct prof_spool *spool)
{
    return (struct spool_header *)(void *)spool->base;
}

static struct spool_chunk *chunk_of(const struct prof_spool *spool, uint32_t number)
{
    return (struct spool_chunk *)(void *)(spool->base + SPOOL_FIRST_CHUNK +
                                          (size_t)number * SPOOL_CHUNK_BYTES);
}

static enum prof_status check_spool_header(const struct prof_spool *spool, struct prof_error *err)
{
    const struct spool_header *header = header_of(spool);
    if (atomic_load_explicit(&header->magic, memory_order_acquire) != SPOOL_MAGIC)
        return prof_fail(err, PROF_FORMAT, "not a perfkit spool");
    if (header->min_reader > WIRE_VERSION)
        return prof_fail(err, PROF_VERSION,
                         "spool of version %u needs a newer perfkit: use the one that recorded it",
                         header->version);
    if (header->chunk_bytes != SPOOL_CHUNK_BYTES || header->first_chunk != SPOOL_FIRST_CHUNK ||
        header->counter_rows != SPOOL_COUNTER_ROWS || header->counter_slots != WIRE_COUNT_SLOTS ||
        header->max_chunks > SPOOL_MAX_CHUNKS)
        return prof_fail(err, PROF_CORRUPT, "spool with a damaged header");
    return PROF_OK;
}

/* Map the first `bytes` of the file, in place of what was mapped of it. */
static enum prof_status map_spool(struct prof_spool *spool, const char *path, size_t bytes,
                                  struct prof_error *err)
{
    if (spool->base)
        munmap(spool->base, spool->mapped);
    void *base = mmap(NULL, bytes, spool->writable ? PROT_READ | PROT_WRITE : PROT_READ,
                      MAP_SHARED | MAP_NORESERVE, spool->fd, 0);
    spool->base = base == MAP_FAILED ? NULL : base;
    spool->mapped = bytes;
    return spool->base ? PROF_OK : prof_fail_errno(err, PROF_IO, "cannot map %s", path);
}

static enum prof_status map_spool_file(struct prof_spool *spool, const char *path,
                                       struct prof_error *err)
{
    struct stat st;
    if (fstat(spool->fd, &st) != 0)
        return prof_fail_errno(err, PROF_IO, "cannot read %s", path);
    if (!S_ISREG(st.st_mode) || (size_t)st.st_size < SPOOL_FIRST_CHUNK)
        return prof_fail(err, PROF_FORMAT, "%s is not a perfkit spool, or cut short", path);
    spool->file_bytes = (size_t)st.st_size;
    /* The first look is at the header only: it says how far the file may grow. */
    enum prof_status status = map_spool(spool, path, SPOOL_FIRST_CHUNK, err);
    if (status == PROF_OK)
        status = check_spool_header(spool, err);
    if (status != PROF_OK)
        return status;
    spool->max_chunks = header_of(spool)->max_chunks;
    return map_spool(spool, path, SPOOL_FIRST_CHUNK + (size_t)spool->max_chunks * SPOOL_CHUNK_BYTES,
                     err);
}

enum prof_status prof_spool_open(const char *path, bool writable, struct prof_spool **out,
                                 struct prof_error *err)
{
    *out = NULL;
    int fd = prof_open_regular(AT_FDCWD, path, (writable ? O_RDWR : O_RDONLY) | O_NOFOLLOW);
    if (fd < 0)
        return prof_fail_errno(err, errno == ENOENT ? PROF_NOTFOUND : PROF_IO, "cannot open %s",
                               path);
    struct prof_spool *spool = calloc(1, sizeof *spool);
    if (!spool) {
        close(fd);
        return prof_out_of_memory(err);
    }
    spool->fd = fd;
    spool->writable = writable;
    enum prof_status status = map_spool_file(spool, path, err);
    if (status != PROF_OK) {
        prof_spool_close(spool);
        return status;
    }
    *out = spool;
    return PROF_OK;
}

enum prof_status prof_spool_open_memory(const void *data, size_t bytes, struct prof_spool **out,
                                        struct prof_error *err)
{
    *out = NULL;
    if (bytes < SPOOL_FIRST_CHUNK)
        return prof_fail(err, PROF_FORMAT, "not a perfkit spool, or cut short");
    struct prof_spool *spool = calloc(1, sizeof *spool);
    void *copy = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    if (!spool || !copy) {
        free(spool);
        free(copy);
        return prof_out_of_memory(err);
    }
    memcpy(copy, data, bytes);
    spool->fd = -1;
    spool->base = copy;
    spool->mapped = spool->file_bytes = bytes;
    enum prof_status status = check_spool_header(spool, err);
    if (status != PROF_OK) {
        prof_spool_close(spool);
        return status;
    }
    spool->max_chunks = header_of(spool)->max_chunks;
    *out = spool;
    return PROF_OK;
}

void prof_spool_close(struct prof_spool *spool)
{
    if (!spool)
        return;
    if (spool->fd >= 0) {
        if (spool->base)
            munmap(spool->base, spool->mapped);
        close(spool->fd);
    } else
        free(spool->base);
    prof_array_free(&spool->cursors);
    prof_array_free(&spool->spans);
    prof_array_free(&spool->consumed);
    free(spool);
}

const struct spool_header *prof_spool_header(const struct prof_spool *spool)
{
    return header_of(spool);
}

/* Chunks that may be looked at: reserved by the writer and really in the file. */
static uint32_t chunks_present(struct prof_spool *spool)
{
    uint32_t reserved = atomic_load_explicit(&header_of(spool)->reserved, memory_order_acquire);
    if (reserved > spool->max_chunks)
        reserved = spool->max_chunks;
    struct stat st;
    if (spool->fd >= 0 && fstat(spool->fd, &st) == 0)
        spool->file_bytes = (size_t)st.st_size;
    if (spool->file_bytes < SPOOL_FIRST_CHUNK)
        return 0;
    size_t whole = (spool->file_bytes - SPOOL_FIRST_CHUNK) / SPOOL_CHUNK_BYTES;
    return reserved < whole ? reserved : (uint32_t)whole;
}

static bool room_for_cursors(struct prof_spool *spool, uint32_t chunks)
{
    while (spool->cursors.count < chunks) {
        struct chunk_cursor *cursor = prof_array_add(&spool->cursors);
        if (!cursor)
            return false;
        *cursor = (struct chunk_cursor){0};
    }
    return true;
}

void prof_spool_restore(struct prof_spool *spool, const struct prof_spool_cursor *cursor)
{
    if (cursor->chunk >= chunks_present(spool) || cursor->offset > SPOOL_CHUNK_CAPACITY ||
        !room_for_cursors(spool, cursor->chunk + 1))
        return;
    if (atomic_load(&chunk_of(spool, cursor->chunk)->generation) != cursor->generation)
        return;
    spool->cursors.data[cursor->chunk] =
        (struct chunk_cursor){cursor->generation, cursor->offset, cursor->tid, false};
}

/* Add the span of one chunk when it has something new, or is closed and not yet known to be. */
static bool add_chunk_span(struct prof_spool *spool, uint32_t number, uint32_t state)
{
    struct spool_chunk *chunk = chunk_of(spool, number);
    struct chunk_cursor *cursor = &spool->cursors.data[number];
    uint32_t generation = atomic_load_explicit(&chunk->generation, memory_order_acquire);
    uint32_t committed = atomic_load_explicit(&chunk->committed, memory_order_acquire);
    uint32_t first_tid = atomic_load_explicit(&chunk->tid, memory_order_relaxed);
    if (committed > SPOOL_CHUNK_CAPACITY)
        committed = SPOOL_CHUNK_CAPACITY;
    if (cursor->generation != generation)
        *cursor = (struct chunk_cursor){generation, 0, first_tid, false};
    else if (cursor->offset == 0 && !cursor->closed)
        cursor->tid = first_tid;
    bool closed = state == SPOOL_EVENTS_FULL || state == SPOOL_DEFINITIONS_FULL;
    if (committed <= cursor->offset && !(closed && !cursor->closed))
        return true;
    struct prof_spool_span *span = prof_array_add(&spool->spans);
    if (!span)
        return false;
    *span = (struct prof_spool_span){
        .chunk = number,
        .generation = generation,
        .from = cursor->offset,
        .to = committed > cursor->offset ? committed : cursor->offset,
        .tid = cursor->tid,
        .definition = state == SPOOL_DEFINITIONS || state == SPOOL_DEFINITIONS_FULL,
        .closed = closed,
        .sequence = atomic_load_explicit(&chunk->sequence, memory_order_relaxed),
    };
    return true;
}

PROF_ORDER(by_sequence, struct prof_spool_span, PROF_DESCENDING(definition),
           PROF_ASCENDING(sequence), PROF_ASCENDING(chunk))

PROF_ORDER(latest_first, struct prof_spool_span, by_sequence(y, x))

static bool is_events(uint32_t state)
{
    return state == SPOOL_EVENTS || state == SPOOL_EVENTS_FULL || state == SPOOL_PARTIAL;
}

static bool is_definitions(uint32_t state)
{
    return state == SPOOL_DEFINITIONS || state == SPOOL_DEFINITIONS_FULL;
}

static uint64_t sequence_now(const struct prof_spool *spool)
{
    return atomic_load_explicit(&header_of(spool)->sequence, memory_order_acquire);
}

static uint64_t sequence_of(const struct prof_spool *spool, uint32_t number)
{
    return atomic_load_explicit(&chunk_of(spool, number)->sequence, memory_order_relaxed);
}

/* The process cannot open its spool any more and requests room. Somewhat more than that: until the
 * next poll it has nothing else. */
static void grant(struct prof_spool *spool)
{
    struct spool_header *header = (struct spool_header *)(void *)spool->base;
    uint32_t wanted = atomic_load(&header->wanted), have = atomic_load(&header->granted);
    if (!spool->writable || spool->fd < 0 || wanted <= have || wanted > spool->max_chunks)
        return;
    uint32_t more =
        spool->max_chunks - wanted < GRANT_AHEAD ? spool->max_chunks : wanted + GRANT_AHEAD;
    off_t bytes = (off_t)(SPOOL_FIRST_CHUNK + (uint64_t)more * SPOOL_CHUNK_BYTES);
    if (posix_fallocate(spool->fd, 0, bytes) == 0)
        atomic_store_explicit(&header->granted, more, memory_order_release);
}

enum prof_status prof_spool_poll(struct prof_spool *spool, const struct prof_spool_span **spans,
                                 size_t *count, struct prof_error *err)
{
    spool->spans.count = 0;
    *count = 0;
    grant(spool);
    uint64_t taken = sequence_now(spool);
    uint32_t chunks = chunks_present(spool);
    bool ok = room_for_cursors(spool, chunks) && prof_array_reserve(&spool->spans, chunks);

    /* (1) which event chunks exist, with the state they have before (2) their length is read: a
     * chunk seen as full is final, one whose thread went on to a later listed chunk too. Those
     * taken while we look are left for the next poll: a thread's earlier one may have been passed
     * by. */
    size_t listed = 0;
    for (uint32_t i = 0; ok && i < chunks; i++) {
        uint32_t state = atomic_load_explicit(&chunk_of(spool, i)->state, memory_order_acquire);
        if (is_events(state) && sequence_of(spool, i) <= taken)
            spool->spans.data[listed++] = (struct prof_spool_span){
                .chunk = i, .from = state, .sequence = sequence_of(spool, i)};
    }
    /* Latest first: a write that a signal handler interrupted ends in its thread's earlier chunk
     * while the thread goes on in a later one; what is seen of the later one is then not ahead of
     * it. The list is kept in place: span k is written after listed span k was read. */
    if (listed)
        qsort(spool->spans.data, listed, sizeof *spool->spans.data, latest_first);
    for (size_t k = 0; ok && k < listed; k++) {
        struct prof_spool_span seen = spool->spans.data[k];
        ok = add_chunk_span(spool, seen.chunk, seen.from);
    }
    /* (3) definitions last, so they cover every id of the prefixes above. */
    taken = sequence_now(spool);
    uint32_t now = chunks_present(spool);
    ok = ok && room_for_cursors(spool, now);
    for (uint32_t i = 0; ok && i < now; i++) {
        uint32_t state = atomic_load_explicit(&chunk_of(spool, i)->state, memory_order_acquire);
        if (is_definitions(state) && sequence_of(spool, i) <= taken)
            ok = add_chunk_span(spool, i, state);
    }
    if (!ok)
        return prof_fail(err, PROF_NOMEM, "out of memory while reading a spool");
    prof_array_sort(&spool->spans, by_sequence);
    *spans = spool->spans.data;
    *count = spool->spans.count;
    return PROF_OK;
}

size_t prof_spool_load(const struct prof_spool *spool, const struct prof_spool_span *span,
                       void *buffer)
{
    const unsigned char *at = (const unsigned char *)chunk_of(spool, span->chunk);
    memcpy(buffer, at + SPOOL_CHUNK_HEADER_BYTES + span->from, span->to - span->from);
    return span->to - span->from;
}

/* Bytes of each type: in the first version that had it, and now (0: more follow). */
static const struct {
    uint16_t first, now;
} sizes[WIRE_TYPES] = {
#define X(name, definition, record, first, now, text) {first, now},
    WIRE_TYPE_MAP(X)
#undef X
};

static bool is_well_formed(const struct wire_head *head, size_t left)
{
    if (left < sizeof *head || head->size < sizeof *head || head->size % 8 != 0 ||
        head->size > left || head->size > WIRE_MAX_RECORD)
        return false;
    if (head->type >= WIRE_TYPES)
        return true;
    if (head->size < sizes[head->type].first)
        return false;
    const void *record = head;
    size_t more = head->size - sizes[head->type].first;
    switch (head->type) {
    case WIRE_STRING:
        return ((const struct wire_string *)record)->length <= more;
    case WIRE_STACK:
        return ((const struct wire_stack *)record)->count <= more / sizeof(uint64_t);
    case WIRE_CPU_STACK:
        return ((const struct wire_cpu_stack *)record)->count <= more / sizeof(uint64_t);
    case WIRE_PYTHON_CODE: {
        const struct wire_python_code *code = record;
        return code->bytes <= more && code->at <= code->total &&
               code->bytes <= code->total - code->at;
    }
    default:
        return true;
    }
}

/* The record as this version knows it, in storage of the calling thread. */
static const struct wire_head *fitted(const struct wire_head *head, size_t bytes)
{
    _Alignas(8) static _Thread_local unsigned char record[WIRE_MAX_RECORD];
    size_t known = head->size < bytes ? head->size : bytes;
    memcpy(record, head, known);
    memset(record + known, 0, bytes - known);
    struct wire_head *out = (struct wire_head *)(void *)record;
    out->size = (uint16_t)bytes;
    return out;
}

const struct wire_head *prof_spool_next(const void *buffer, size_t bytes, size_t *offset,
                                        bool *damaged)
{
    if (*offset >= bytes)
        return NULL;
    const struct wire_head *head =
        (const struct wire_head *)(const void *)((const unsigned char *)buffer + *offset);
    if (!is_well_formed(head, bytes - *offset)) {
        *damaged = true;
        *offset = bytes;
        return NULL;
    }
    *offset += head->size;
    size_t fixed = head->type < WIRE_TYPES ? sizes[head->type].now : 0;
    return fixed == 0 || head->size == fixed ? head : fitted(head, fixed);
}

void prof_spool_advance(struct prof_spool *spool, const struct prof_spool_span *span, uint32_t tid)
{
    struct chunk_cursor *cursor = &spool->cursors.data[span->chunk];
    *cursor = (struct chunk_cursor){span->generation, span->to, tid, span->closed};
    if (span->closed) {
        uint32_t *slot = prof_array_add(&spool->consumed);
        if (slot)
            *slot = span->chunk; /* without memory the chunk is merely not reused */
    }
}

void prof_spool_recycle(struct prof_spool *spool)
{
    if (spool->writable) {
        struct spool_header *header = header_of(spool);
        for (size_t i = 0; i < spool->consumed.count; i++) {
            uint32_t number = spool->consumed.data[i];
            struct spool_chunk *chunk = chunk_of(spool, number);
            /* FREE first: killed half-way, the chunk is leaked and never read twice. */
            atomic_store_explicit(&chunk->state, SPOOL_FREE, memory_order_release);
            atomic_store_explicit(&chunk->committed, 0, memory_order_relaxed);
            uint32_t generation = atomic_load(&chunk->generation) + 1;
            atomic_store_explicit(&chunk->generation, generation, memory_order_release);
            spool->cursors.data[number] = (struct chunk_cursor){generation, 0, 0, false};
            spool_list_push(&header->free_list, spool->base + SPOOL_FIRST_CHUNK, number);
            atomic_fetch_add(&header->free_count, 1);
        }
    }
    spool->consumed.count = 0;
}

uint64_t prof_spool_count(const struct prof_spool *spool, enum wire_count which)
{
    const _Atomic uint64_t *counters =
        (const _Atomic uint64_t *)(const void *)(spool->base + SPOOL_HEADER_BYTES);
    uint64_t sum = 0;
    for (uint32_t row = 0; row < SPOOL_COUNTER_ROWS; row++)
        sum +=
            atomic_load_explicit(&counters[row * WIRE_COUNT_SLOTS + which], memory_order_relaxed);
    return sum;
}

uint64_t prof_spool_dropped(const struct prof_spool *spool, enum wire_type type)
{
    return atomic_load_explicit(&header_of(spool)->dropped[type], memory_order_relaxed);
}
