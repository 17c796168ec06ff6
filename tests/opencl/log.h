/* The log that the tests' core (fake_core.c) writes and the tests read. */
#ifndef PERFKIT_TESTS_OPENCL_LOG_H
#define PERFKIT_TESTS_OPENCL_LOG_H

#include <stdatomic.h>
#include <stdint.h>

#include "libprof/wire/wire.h"

#define LOG_BYTES (256ull << 20) /* sparse */

struct log_header {
    _Atomic uint64_t used; /* bytes, this header included */
    _Atomic uint64_t ended;
    _Atomic uint64_t counts[WIRE_COUNT_SLOTS];
};

enum { LOG_UNFINISHED = 0, LOG_EVENT, LOG_DEFINITION };

struct log_entry { /* followed by the record */
    _Atomic uint32_t stream;
    uint32_t tid;
    uint64_t time;
};

#endif
