/* The records of a log, indexed: what the tests of the layer assert on. */
#ifndef PERFKIT_TESTS_OPENCL_READ_LOG_H
#define PERFKIT_TESTS_OPENCL_READ_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/wire/wire.h"

union record {
    struct wire_head head;
    struct wire_call call;
    struct wire_kernel kernel;
    struct wire_transfer transfer;
    struct wire_memset memset;
    struct wire_done done;
    struct wire_sync sync;
    struct wire_alloc alloc;
    struct wire_free free;
    struct wire_string string;
    struct wire_config config;
    struct wire_device device;
    struct wire_context context;
    struct wire_stream stream;
    struct wire_clock clock;
    struct wire_health health;
};

struct logged {
    const union record *record;
    uint64_t time; /* CLOCK_MONOTONIC when it was written */
    uint32_t tid;
    bool definition;
};

struct log {
    void *map;
    struct logged *list;
    size_t count;
    const struct wire_clock **clocks; /* its records of clocks */
    size_t clock_count;
    bool ended;
    uint64_t counts[WIRE_COUNT_SLOTS];
};

bool log_open(struct log *log, const char *path);
void log_close(struct log *log);
/* The text of a string id; "" when it is not defined before record `before`. */
void log_text(const struct log *log, uint32_t id, char *out, size_t room);
/* The first record of the type whose head.aux is `aux`, NULL when there is none. */
const union record *log_find(const struct log *log, enum wire_type type, uint32_t aux);
/* Check what must hold of every log: ids defined, one CALL and at most one DONE for a command,
 * counters that add up, times in order and inside the calls. Returns NULL or what is wrong. */
const char *log_sound(const struct log *log, bool complete);

#endif
