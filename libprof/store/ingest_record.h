/* The records of the event streams on their way to rows.
 * For the ingest's files only, see ingest_private.h. */
#ifndef PERFKIT_STORE_INGEST_RECORD_H
#define PERFKIT_STORE_INGEST_RECORD_H

#include "libprof/store/ingest.h"
#include "libprof/store/ingest_spool.h"

struct prof_ingest;

/* ingest_command.c */
bool ingest_write_call(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                       const struct wire_call *call);
/* Write the row of a device record with what is known of it. */
bool ingest_write_command(struct prof_ingest *ingest, struct ingest_spool *spool,
                          const struct ingest_pending *pending, bool of_graph);
bool ingest_graph(struct prof_ingest *ingest, struct ingest_spool *spool,
                  const struct wire_graph *graph);
/* A time of the stream's device as CLOCK_MONOTONIC; 0 stays 0. */
uint64_t ingest_device_time(struct ingest_spool *spool, uint32_t stream, uint64_t ns);

/* ingest_activity.c: records that become a row each, whatever else comes */
bool ingest_activity(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                     const struct wire_head *head);

/* ingest_event.c */
bool ingest_event(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                  const struct wire_head *head);
bool ingest_events_age(struct prof_ingest *ingest, struct ingest_spool *spool);
bool ingest_events_finish(struct prof_ingest *ingest, struct ingest_spool *spool);

/* ingest_counter.c */
bool ingest_counter_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                               const struct wire_head *head);
bool ingest_counter_event(struct prof_ingest *ingest, const struct ingest_spool *spool,
                          const struct wire_head *head);
bool ingest_exact_count(struct prof_ingest *ingest, const struct ingest_spool *spool,
                        const struct wire_exact_count *record);
bool ingest_sampler_is_over(const struct ingest_spool *spool);

/* ingest_cpu.c */
bool ingest_cpu_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                           const struct wire_head *head);
bool ingest_cpu_sample(struct prof_ingest *ingest, const struct ingest_spool *spool,
                       const struct wire_cpu_sample *record);

/* ingest_range.c */
bool ingest_range(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                  const struct wire_head *head);
bool ingest_ranges_finish(struct prof_ingest *ingest, struct ingest_spool *spool);
/* The i-th field of an open range as the record that it came in. */
struct wire_field ingest_field_record(const struct ingest_open_range *open, unsigned i);

/* ingest_memory.c */
bool ingest_alloc(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                  const struct wire_alloc *alloc);
bool ingest_blocks_finish(struct prof_ingest *ingest);
bool ingest_device_memory(struct prof_ingest *ingest, const struct prof_ingest_memory *sample);
bool ingest_device_clock(struct prof_ingest *ingest, const char *uuid, uint64_t mono_ns,
                         const struct prof_nvml_reading *reading);
/* ingest_network.c: in a transaction of its own. */
bool ingest_network(struct prof_ingest *ingest, const struct prof_network_port *ports, size_t count,
                    uint64_t begin_ns, uint64_t end_ns);
bool ingest_alloc_failed(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                         const struct wire_alloc_failed *failed);
bool ingest_free(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                 const struct wire_free *free_record);
bool ingest_live_add(struct ingest_spool *spool, uint32_t source, uint64_t id, uint64_t start,
                     int64_t row);

#endif
