/* The records of the event streams on their way to rows.
 * For the ingest's files only, see ingest_private.h. */
#ifndef PERFKIT_STORE_INGEST_RECORD_H
#define PERFKIT_STORE_INGEST_RECORD_H

#include "libprof/store/ingest.h"
#include "libprof/store/ingest_spool.h"

struct prof_ingest;

/* ingest_command.c */
enum prof_status ingest_write_call(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   uint32_t tid, const struct wire_call *call);
/* Write the row of a device record with what is known of it. */
enum prof_status ingest_write_command(struct prof_ingest *ingest, struct ingest_spool *spool,
                                      const struct ingest_pending *pending, bool of_graph);
enum prof_status ingest_graph(struct prof_ingest *ingest, struct ingest_spool *spool,
                              const struct wire_graph *graph);
/* A time of the stream's device as CLOCK_MONOTONIC; 0 stays 0. */
uint64_t ingest_device_time(struct ingest_spool *spool, uint32_t stream, uint64_t ns);

/* ingest_activity.c: records that become a row each, whatever else comes */
enum prof_status ingest_activity(struct prof_ingest *ingest, struct ingest_spool *spool,
                                 uint32_t tid, const struct wire_head *head);

/* ingest_event.c */
enum prof_status ingest_event(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                              const struct wire_head *head);
enum prof_status ingest_events_age(struct prof_ingest *ingest, struct ingest_spool *spool);
enum prof_status ingest_events_finish(struct prof_ingest *ingest, struct ingest_spool *spool);

/* ingest_counter.c */
enum prof_status ingest_counter_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                           const struct wire_head *head);
enum prof_status ingest_counter_event(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                      const struct wire_head *head);
enum prof_status ingest_exact_count(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                    const struct wire_exact_count *record);
bool ingest_sampler_is_over(const struct ingest_spool *spool);

/* ingest_cpu.c */
enum prof_status ingest_cpu_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                       const struct wire_head *head);
enum prof_status ingest_cpu_sample(struct prof_ingest *ingest, const struct ingest_spool *spool,
                                   const struct wire_cpu_sample *record);

/* ingest_range.c */
enum prof_status ingest_range(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                              const struct wire_head *head);
enum prof_status ingest_ranges_finish(struct prof_ingest *ingest, struct ingest_spool *spool);
/* The i-th field of an open range as the record that it came in. */
struct wire_field ingest_field_record(const struct ingest_open_range *open, unsigned i);

/* ingest_memory.c */
enum prof_status ingest_alloc(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                              const struct wire_alloc *alloc);
enum prof_status ingest_blocks_finish(struct prof_ingest *ingest);
enum prof_status ingest_device_memory(struct prof_ingest *ingest,
                                      const struct prof_ingest_memory *sample);
enum prof_status ingest_device_clock(struct prof_ingest *ingest, const char *uuid, uint64_t mono_ns,
                                     const struct prof_nvml_reading *reading);
/* ingest_network.c: in a transaction of its own. */
enum prof_status ingest_network(struct prof_ingest *ingest, const struct prof_network_port *ports,
                                size_t count, uint64_t begin_ns, uint64_t end_ns);
enum prof_status ingest_alloc_failed(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     uint32_t tid, const struct wire_alloc_failed *failed);
enum prof_status ingest_free(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                             const struct wire_free *free_record);
bool ingest_live_add(struct ingest_spool *spool, uint32_t source, uint64_t id, uint64_t start,
                     int64_t row);

#endif
