/* Writing the sampler's records. Chunks are reserved when they run out, on the thread that writes:
 * no process waits for the sampler. */
#include <sys/syscall.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/spool/lifecycle.h"
#include "samplers/counters/spool_out.h"

#define LIMIT_BYTES (64ull << 20) /* several minutes of samples that are not read */
#define GROW_CHUNKS 8u

bool spool_out_open(struct spool_out *out, const char *directory, const char *name,
                    enum wire_source source)
{
    struct spool_about about = {
        .pid = (uint32_t)getpid(),
        .parent = (uint32_t)getppid(),
        .features = SPOOL_OF_SAMPLER,
        .start_ns = prof_now_ns(),
        .realtime_ns = prof_clock_ns(CLOCK_REALTIME),
        .raw_ns = prof_clock_ns(CLOCK_MONOTONIC_RAW),
        .command = name,
        .command_bytes = (uint32_t)strlen(name) + 1,
    };
    *out = (struct spool_out){.source = (uint32_t)source};
    return spool_writer_create(&out->writer, directory, &about, LIMIT_BYTES, GROW_CHUNKS);
}

static struct spool_chunk *spool_out_claim(struct spool_out *out, enum spool_chunk_state state)
{
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    struct spool_chunk *chunk = spool_writer_take(&out->writer, tid, state);
    if (!chunk && spool_writer_grow(&out->writer, GROW_CHUNKS))
        chunk = spool_writer_take(&out->writer, tid, state);
    return chunk;
}

static bool spool_out_append(struct spool_out *out, struct spool_chunk **chunk,
                             enum spool_chunk_state state, enum spool_chunk_state full,
                             const void *record)
{
    const struct wire_head *head = record;
    if (!out->writer.header)
        return false;
    if (*chunk && spool_append(*chunk, record, head->size))
        return true;
    if (*chunk)
        atomic_store_explicit(&(*chunk)->state, full, memory_order_release);
    *chunk = spool_out_claim(out, state);
    if (*chunk && spool_append(*chunk, record, head->size))
        return true;
    out->dropped++;
    return false;
}

bool spool_out_define(struct spool_out *out, const void *record)
{
    return spool_out_append(out, &out->definitions, SPOOL_DEFINITIONS, SPOOL_DEFINITIONS_FULL,
                            record);
}

bool spool_out_emit(struct spool_out *out, const void *record)
{
    return spool_out_append(out, &out->events, SPOOL_EVENTS, SPOOL_EVENTS_FULL, record);
}

uint32_t spool_out_id(struct spool_out *out)
{
    return ++out->ids;
}

uint32_t spool_out_text(struct spool_out *out, const char *text)
{
    _Alignas(8) unsigned char buffer[WIRE_MAX_RECORD] = {0};
    struct wire_string *string = (struct wire_string *)(void *)buffer;
    size_t length = strlen(text), room = sizeof buffer - sizeof *string;
    if (length > room)
        length = room;
    *string = (struct wire_string){.head = {(uint16_t)((sizeof *string + length + 7) & ~(size_t)7),
                                            WIRE_STRING, 0, out->ids + 1},
                                   .length = (uint32_t)length};
    memcpy(string->text, text, length);
    return spool_out_define(out, string) ? ++out->ids : 0;
}

void spool_out_health(struct spool_out *out, enum wire_health_state state, const char *why)
{
    struct wire_health health = {
        .head = {sizeof health, WIRE_HEALTH, (uint8_t)state, out->source},
        .time = prof_now_ns(),
        .why = spool_out_text(out, why),
    };
    spool_out_define(out, &health);
}

void spool_out_heartbeat(struct spool_out *out)
{
    if (out->writer.header)
        atomic_store(&out->writer.header->heartbeat_ns, prof_now_ns());
}

void spool_out_close(struct spool_out *out)
{
    struct spool_header *header = out->writer.header;
    if (!header)
        return;
    atomic_store(&header->end_ns, prof_now_ns());
    atomic_store(&header->ended, (uint32_t)LIFECYCLE_EXIT + 1);
    spool_writer_forget(&out->writer);
}
