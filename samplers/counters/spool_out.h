/* The spool of a sampler, which is part of perfkit: one thread, no hurry, so plainer than the
 * collector's core. */
#ifndef PERFKIT_SAMPLERS_COUNTERS_SPOOL_OUT_H
#define PERFKIT_SAMPLERS_COUNTERS_SPOOL_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/spool/writer.h"
#include "libprof/wire/definition.h"

struct spool_out {
    struct spool_writer writer;
    struct spool_chunk *definitions, *events;
    uint32_t ids;     /* given out */
    uint32_t source;  /* enum wire_source */
    uint64_t dropped; /* records that found no room */
};

/* Make the spool in the run's folder; `name` stands for its command. False with errno. */
bool spool_out_open(struct spool_out *out, const char *directory, const char *name,
                    enum wire_source source);

/* An id for what is to be defined: one space for all kinds. */
uint32_t spool_out_id(struct spool_out *out);

/* Append a record of the definition stream, or of the event stream. False: no room, counted. */
bool spool_out_define(struct spool_out *out, const void *record);
bool spool_out_emit(struct spool_out *out, const void *record);

/* A string id for the text; 0 when there was no room. Texts are not compared: the caller keeps ids.
 */
uint32_t spool_out_text(struct spool_out *out, const char *text);

/* A sentence for the trust block. */
void spool_out_health(struct spool_out *out, enum wire_health_state state, const char *why);

/* The sampler lives; its last word. */
void spool_out_heartbeat(struct spool_out *out);
void spool_out_close(struct spool_out *out);

#endif
