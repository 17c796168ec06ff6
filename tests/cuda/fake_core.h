/* A recording stand-in for collectors/core: what the collector under test sends is kept in memory.
 */
#ifndef PERFKIT_TESTS_CUDA_FAKE_CORE_H
#define PERFKIT_TESTS_CUDA_FAKE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/core/collector.h"

#define FAKE_CORE_RECORDS 4096u

struct fake_core {
    union {
        struct wire_head head;
        struct wire_call call;
        struct wire_kernel kernel;
        struct wire_transfer transfer;
        struct wire_memset memset;
        struct wire_sync sync;
        struct wire_alloc alloc;
        struct wire_alloc_failed alloc_failed;
        struct wire_free free;
        struct wire_device device;
        struct wire_context context;
        struct wire_stream stream;
        struct wire_config config;
        struct wire_graph graph;
        struct wire_overhead overhead;
        struct wire_event event;
        struct wire_pool pool;
        struct wire_migration migration;
        struct wire_jit jit;
        struct wire_graph_node graph_node;
    } records[FAKE_CORE_RECORDS];
    size_t count;
    uint64_t counts[WIRE_COUNT_SLOTS];
    char texts[256][1024]; /* by string id */
    uint32_t text_count;
    char health[512]; /* the last one's reason */
    enum wire_health_state health_state;
    bool helper, ended; /* collector_is_helper, collector_ended */
    _Atomic unsigned wakes;
    void (*_Atomic meanwhile)(void); /* done once, after the next answer of collector_recording */
    uint64_t ahead_ns;               /* collector_now is so far ahead */
    _Atomic unsigned asked_time;     /* calls of collector_now */
    bool tracing;                    /* collector_traces and collector_active */
    _Atomic uint64_t window_from,
        window_to;  /* collector_recorded_at; recording = window_to is UINT64_MAX */
    bool unlimited; /* no windows are expected */
    bool pauses;    /* collector_pauses */
    const struct collector_source *source;
};
extern struct fake_core core;

void fake_core_reset(void);

#endif
