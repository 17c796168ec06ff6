/* The reading side of a spool (see layout.h): perfkit, recover, tests. Trusts nothing it reads: a
 * spool may be cut short, damaged or written by a dying process. Not thread-safe.
 *
 *     while (prof_spool_poll(reader, &spans, &count, err) == PROF_OK && count > 0) {
 *         for each span: prof_spool_load(reader, span, buffer); walk it with prof_spool_next;
 *                        prof_spool_advance(reader, span, tid);
 *         commit what was made of them;
 *         prof_spool_recycle(reader);
 *     } */
#ifndef PERFKIT_SPOOL_READER_H
#define PERFKIT_SPOOL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/base/error.h"
#include "libprof/spool/layout.h"
#include "libprof/wire/wire.h"

struct prof_spool;

/* A committed, not yet consumed stretch of one chunk. */
struct prof_spool_span {
    uint32_t chunk, generation;
    uint32_t from, to; /* byte offsets behind the chunk header */
    uint32_t tid;      /* thread of the record at `from` */
    bool definition;
    bool closed; /* nothing will follow in this generation */
    uint64_t sequence;
};

/* Where reading of a chunk stands; what an ingest keeps in its transactions. */
struct prof_spool_cursor {
    uint32_t chunk, generation, offset, tid;
};

/* Open a spool file. writable: chunks are given back to the writer; else (recover, tests) the file
 * is only read. PROF_FORMAT not a spool (also: not yet complete), PROF_VERSION needs a newer
 * perfkit, PROF_CORRUPT sizes that cannot be. */
enum prof_status prof_spool_open(const char *path, bool writable, struct prof_spool **spool,
                                 struct prof_error *err);

/* The same over `bytes` in memory (copied). */
enum prof_status prof_spool_open_memory(const void *data, size_t bytes, struct prof_spool **spool,
                                        struct prof_error *err);

void prof_spool_close(struct prof_spool *spool);

/* The header in shared memory; fields with _Atomic change under the reader's eyes. */
const struct spool_header *prof_spool_header(const struct prof_spool *spool);

/* Go on from a cursor kept earlier. Cursors of another generation or out of range are ignored. */
void prof_spool_restore(struct prof_spool *spool, const struct prof_spool_cursor *cursor);

/* The stretches that are committed now, in the order in which they must be consumed: definitions,
 * then events. Owned by the spool, valid until the next poll. */
enum prof_status prof_spool_poll(struct prof_spool *spool, const struct prof_spool_span **spans,
                                 size_t *count, struct prof_error *err);

/* Copy the span's bytes into buffer[SPOOL_CHUNK_BYTES], 8-byte aligned; returns how many. */
size_t prof_spool_load(const struct prof_spool *spool, const struct prof_spool_span *span,
                       void *buffer);

/* The next well-formed record of a loaded span, NULL at the end. *offset starts at 0. Records of
 * unknown type are returned too. A malformed record ends the span; *damaged is set then. A record
 * of a known type comes as this version's struct, head.size included: fields that an older writer
 * did not have are 0, what a newer one appended is left out. It lives until the next call of this
 * thread, or as long as the buffer. */
const struct wire_head *prof_spool_next(const void *buffer, size_t bytes, size_t *offset,
                                        bool *damaged);

/* The span is consumed; `tid` is the thread of its last record. */
void prof_spool_advance(struct prof_spool *spool, const struct prof_spool_span *span, uint32_t tid);

/* Give back every closed chunk that is consumed to its end. After the commit, never before. */
void prof_spool_recycle(struct prof_spool *spool);

/* Sum of a conservation counter over all threads. */
uint64_t prof_spool_count(const struct prof_spool *spool, enum wire_count which);

/* Records of a type that found no chunk. */
uint64_t prof_spool_dropped(const struct prof_spool *spool, enum wire_type type);

#endif
