/* A dump of CUPTI's buffers in memory: its records, the buffers they came in, what happened when,
 * and where in a record what stands. See replay_dump.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/cuda/records.h"
#include "tests/cuda/fakes/internal.h"
#include "tests/cuda/fakes/replay_dump.h"
#include "tests/cuda/fakes/replay_threads.h"

#define MAX_TEXT_BYTES 65536u

struct replay_dump dump;
static size_t sizes[256];
static struct {
    uint64_t address;
    char *text;
} * texts;
static size_t text_count, text_room;
static size_t untold; /* happenings from here on are texts of the next buffer */

static void *grown(void *array, size_t *room, size_t count, size_t size)
{
    if (count < *room)
        return array;
    *room = *room ? *room * 2 : 256;
    void *bigger = realloc(array, *room * size);
    if (!bigger)
        abort();
    return bigger;
}
#define ADD(array, value)                                                                          \
    do {                                                                                           \
        dump.array##s =                                                                            \
            grown(dump.array##s, &dump.array##_room, dump.array##_count, sizeof dump.array##s[0]); \
        dump.array##s[dump.array##_count++] = (value);                                             \
    } while (0)

void replay_add(struct happening happening)
{
    happening.order = dump.happening_count;
    ADD(happening, happening);
}

/* ---- fields of records */

bool replay_is_call(uint32_t kind)
{
    return kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER;
}

static const struct place {
    uint32_t kind, at;
} time_places[] =
    {
#define X(kind, offset) {kind, offset},
        DUMP_TIMES(X)},
  text_places[] = {DUMP_STRINGS(X)
#undef X
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The correlation id's offset; 0 = has none. */
size_t replay_correlation_at(uint32_t kind)
{
    switch ((int)kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return offsetof(CUpti_ActivityKernel10, correlationId);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        return offsetof(CUpti_ActivityMemcpy6, correlationId);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        return offsetof(CUpti_ActivityMemcpyPtoP4, correlationId);
    case CUPTI_ACTIVITY_KIND_MEMSET:
        return offsetof(CUpti_ActivityMemset4, correlationId);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API:
        return offsetof(CUpti_ActivityAPI, correlationId);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        return offsetof(CUpti_ActivitySynchronization2, correlationId);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
        return offsetof(CUpti_ActivityMemory4, correlationId);
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
        return offsetof(CUpti_ActivityMemoryPool3, correlationId);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return offsetof(CUpti_ActivityOverhead3, correlationId);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
        return offsetof(CUpti_ActivityCudaEvent2, correlationId);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return offsetof(CUpti_ActivityGraphTrace2, correlationId);
    case CUPTI_ACTIVITY_KIND_JIT:
        return offsetof(CUpti_ActivityJit2, correlationId);
    default:
        return 0;
    }
}

uint64_t replay_first_time(const struct record *record)
{
    for (size_t i = 0; i < COUNT(time_places); i++) {
        if (time_places[i].kind == get32(record->at) && time_places[i].at + 8 <= record->size)
            return get64(record->at + time_places[i].at);
    }
    return 0;
}

/* Call `change` on each time of the record that is one. */
void replay_each_time(struct record *record, void (*change)(uint8_t *))
{
    for (size_t i = 0; i < COUNT(time_places); i++) {
        if (time_places[i].kind == get32(record->at) && time_places[i].at + 8 <= record->size &&
            get64(record->at + time_places[i].at) != 0)
            change(record->at + time_places[i].at);
    }
}

/* ---- reading */

static void put_text(size_t i, const struct dump_block *block)
{
    size_t length = block->bytes - sizeof(struct dump_string);
    memcpy(texts[i].text, (const uint8_t *)(block + 1) + sizeof(struct dump_string), length);
    texts[i].text[length] = '\0';
}

static size_t text_number(uint64_t address)
{
    size_t i = 0;
    while (i < text_count && texts[i].address != address)
        i++;
    return i;
}

/* A buffer that was played before may be undecoded yet, so a new text gets a place of its own,
 * unless the replay waits for the collector's flushes. */
static void add_text(const struct dump_block *block)
{
    uint64_t address = get64((const uint8_t *)(block + 1));
    size_t i = text_number(address);
    bool is_new = i == text_count;
    if (is_new) {
        texts = grown(texts, &text_room, text_count, sizeof texts[0]);
        texts[text_count++].address = address;
    }
    if (is_new || !dump.in_place)
        texts[i].text = malloc(dump.in_place ? MAX_TEXT_BYTES + 1 : block->bytes);
    if (!texts[i].text)
        abort();
    if (dump.in_place) {
        texts[i].text[0] = '\0';
        replay_add((struct happening){.what = TEXT, .text = block});
    } else {
        put_text(i, block);
    }
}

const char *replay_text(uint64_t address)
{
    size_t i = text_number(address);
    return i < text_count ? texts[i].text : NULL;
}

static void add_record(uint8_t *at, size_t size)
{
    struct record record = {at, size, UNDECIDED};
    for (size_t i = 0; i < COUNT(text_places); i++) {
        if (text_places[i].kind == get32(at) && text_places[i].at + 8 <= size)
            put64(at + text_places[i].at, (uintptr_t)replay_text(get64(at + text_places[i].at)));
    }
    ADD(record, record);
}

static void add_buffer(const struct dump_block *block, uint8_t *body)
{
    struct buffer buffer = {
        .head = (const void *)body, .time = block->time, .first = dump.record_count};
    size_t at = sizeof(struct dump_buffer);
    while (at + 8 <= block->bytes) {
        uint32_t kind = get32(body + at);
        size_t size = kind < COUNT(sizes) ? sizes[kind] : 0;
        if (size == 0 || at + size > block->bytes)
            break; /* the dump's own buffer was damaged here */
        add_record(body + at, size);
        at += size;
    }
    buffer.count = dump.record_count - buffer.first;
    ADD(buffer, buffer);
}

static void add_block(const struct dump_block *block, uint8_t *body)
{
    struct happening happening = {.time = block->time};
    switch (block->type) {
    case DUMP_SIZE:
        if (get32(body) < COUNT(sizes))
            sizes[get32(body)] = get32(body + 4);
        fake_set_size(get32(body), get32(body + 4));
        break;
    case DUMP_STRING:
        if (block->bytes >= sizeof(struct dump_string) &&
            block->bytes <= sizeof(struct dump_string) + MAX_TEXT_BYTES)
            add_text(block);
        break;
    case DUMP_BUFFER:
        add_buffer(block, body);
        for (; untold < dump.happening_count; untold++) {
            if (dump.happenings[untold].what == TEXT)
                dump.happenings[untold].time = block->time;
        }
        happening.what = BUFFER;
        happening.buffer = dump.buffer_count - 1;
        replay_add(happening);
        break;
    case DUMP_CALLBACK:
        happening.what = CALLBACK;
        happening.callback = (const void *)body;
        if (happening.callback->domain < COUNT(dump.api_told))
            dump.api_told[happening.callback->domain] = true;
        replay_add(happening);
        break;
    case DUMP_FLUSH:
        happening.what = FLUSH;
        replay_add(happening);
        break;
#ifndef FAKE_CUPTI_OLD
    case DUMP_REASONS:
    case DUMP_SAMPLES:
        fake_pc_block(block);
        break;
    case DUMP_CUBIN:
        fake_pc_cubin(block);
        break;
#endif
    case DUMP_DROPPED:
        if (get32(body + 8) == DUMP_LOST_RECORDS)
            fake_tell_dropped(get64(body));
        break;
    default:
        break;
    }
}

static bool read_file(const char *path)
{
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return false;
    fseek(stream, 0, SEEK_END);
    long bytes = ftell(stream);
    rewind(stream);
    dump.file = malloc(bytes > 0 ? (size_t)bytes : 1);
    dump.file_bytes = fread(dump.file, 1, bytes > 0 ? (size_t)bytes : 0, stream);
    fclose(stream);
    return true;
}

bool replay_load(const char *path)
{
    if (!read_file(path))
        return false;
    const struct dump_header *header = (const void *)dump.file;
    if (dump.file_bytes < sizeof *header || memcmp(header->magic, DUMP_MAGIC, 8) != 0 ||
        header->version != DUMP_VERSION)
        return false;
    fake_set_version(header->cupti_version);
    replay_worker_of(header->pid); /* the main thread's, which is the caller */
    for (size_t at = header->bytes; at + sizeof(struct dump_block) <= dump.file_bytes;) {
        const struct dump_block *block = (const void *)(dump.file + at);
        at += sizeof *block;
        if (block->bytes > dump.file_bytes - at)
            break; /* the process was killed here */
        add_block(block, dump.file + at);
        at += (block->bytes + 7u) & ~(size_t)7;
    }
    return true;
}

void replay_change_text(const struct dump_block *block)
{
    put_text(text_number(get64((const uint8_t *)(block + 1))), block);
}
