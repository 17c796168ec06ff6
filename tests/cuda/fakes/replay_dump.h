/* What the replayer knows of a dump (collectors/cuda/dump.h). Records lie in the file's bytes and
 * are changed there. */
#ifndef PERFKIT_TESTS_CUDA_FAKES_REPLAY_DUMP_H
#define PERFKIT_TESTS_CUDA_FAKES_REPLAY_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "collectors/cuda/dump.h"

struct record {
    uint8_t *at;
    size_t size;
    enum { UNDECIDED, WANTED, UNWANTED } state;
};

struct buffer {
    const struct dump_buffer *head;
    uint64_t time;
    size_t first, count; /* records */
    bool calls;          /* API records only, or (knob calls=late) all but those */
    bool split;
};

/* What happens, ordered by time. */
enum what { DECIDE, API_CALL, CALLBACK, TEXT, BUFFER, FLUSH };
struct happening {
    uint64_t time;
    size_t order;
    enum what what;
    union {
        size_t record;
        size_t buffer;
        const struct dump_callback *callback;
        const struct dump_block *text;
    };
    int site; /* of an API_CALL */
};

extern struct replay_dump {
    uint8_t *file;
    size_t file_bytes;
    struct record *records;
    size_t record_count, record_room;
    struct buffer *buffers;
    size_t buffer_count, buffer_room;
    struct happening *happenings;
    size_t happening_count, happening_room;
    bool in_place;    /* a text that changed in the dump changes under its address here too */
    bool api_told[3]; /* domains whose callbacks are in the dump */
} dump;

/* The text at an address of the dump, or NULL. */
const char *replay_text(uint64_t address);
/* False: it cannot be read, or is none. */
bool replay_load(const char *path);
/* Its place among those of the same time is behind all others. */
void replay_add(struct happening happening);
/* A text of the dump is now what the block says. */
void replay_change_text(const struct dump_block *block);

bool replay_is_call(uint32_t kind);
/* The correlation id's offset; 0 = has none. */
size_t replay_correlation_at(uint32_t kind);
uint64_t replay_first_time(const struct record *record);
/* Call `change` on each time of the record that is one. */
void replay_each_time(struct record *record, void (*change)(uint8_t *));

static inline uint32_t get32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t get64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline void put32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

static inline void put64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof value);
}

#endif
