/* A capture made of records that come from a file of another tool, not from spools: the same
 * records, through the same code, so that one place knows the tables. Used by store/exchange.
 *
 * Times in records are nanoseconds after the start of the capture plus FOREIGN_ZERO_NS (0 means
 * unknown there). Everything is lost when it is closed before it is finished. */
#ifndef PERFKIT_STORE_INGEST_FOREIGN_H
#define PERFKIT_STORE_INGEST_FOREIGN_H

#include "libprof/store/ingest.h"
#include "libprof/wire/wire.h"

#define FOREIGN_ZERO_NS 1u

/* Unknown = NULL or 0. */
struct foreign_about {
    const char *command, *host, *cpu, *kernel, *directory;
    int64_t cpu_count;
    int64_t start_realtime_ns;
};

struct foreign_process; /* owned by the ingest */

enum prof_status foreign_open(struct prof_store *store, const struct foreign_about *about,
                              struct prof_ingest **out, struct prof_error *err);

/* A process and the scope of its ids: NULL when it fails. A negative rank is not
 * known. */
struct foreign_process *foreign_process(struct prof_ingest *ingest, uint32_t pid,
                                        const char *command, int64_t rank, int64_t world_size);

/* One record. When this or the next ones fail, foreign_fail says why. */
enum prof_status foreign_feed(struct prof_ingest *ingest, struct foreign_process *process,
                              uint32_t tid, const struct wire_head *head);

/* A text of any length as string id `id`. */
enum prof_status foreign_string(struct prof_ingest *ingest, struct foreign_process *process,
                                uint32_t id, const char *text, size_t length);

/* A frame whose name the source knows; string ids, 0 = unknown. */
struct foreign_frame {
    uint64_t address;
    uint32_t function, module;
    bool missing; /* the callers from here on are not known */
};

/* Stack `id` of the calls that follow: frames innermost first. */
enum prof_status foreign_stack(struct prof_ingest *ingest, struct foreign_process *process,
                               uint32_t id, const struct foreign_frame *frames, size_t count);

/* A line of the trust block. */
enum prof_status foreign_health(struct prof_ingest *ingest, enum prof_health_code code,
                                const char *item, const char *note);

/* Why the last call failed, as a sentence. */
enum prof_status foreign_fail(const struct prof_ingest *ingest, struct prof_error *err);

/* Open ranges and the like are written, capture.state = "imported". `duration_ns` < 0: unknown. */
enum prof_status foreign_finish(struct prof_ingest *ingest, int64_t duration_ns,
                                struct prof_error *err);

#endif
