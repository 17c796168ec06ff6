/* range.h: NVTX: ranges, marks, what they were given. See wire.h. */
#ifndef PERFKIT_WIRE_RANGE_H
#define PERFKIT_WIRE_RANGE_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/wire/record.h"

enum wire_payload {
    WIRE_PAYLOAD_NONE,
    WIRE_PAYLOAD_U64,
    WIRE_PAYLOAD_I64,
    WIRE_PAYLOAD_F64,
    WIRE_PAYLOAD_U32,
    WIRE_PAYLOAD_I32,
    WIRE_PAYLOAD_F32,  /* 0..6 equal NVTX's */
    WIRE_PAYLOAD_TEXT, /* FIELD only: string id */
};

/* RANGE_PUSH, RANGE_START, MARK. head.aux = string id of the domain (0 = default);
 * flags = enum wire_payload */
struct wire_range {
    struct wire_head head;
    uint64_t time;
    uint64_t id; /* RANGE_START: the range's id; else 0 */
    uint64_t payload;
    uint32_t message; /* string id */
    uint32_t category;
    uint32_t color; /* ARGB, valid when has_color */
    uint8_t has_color;
    uint8_t reserved[3];
};

/* RANGE_POP, RANGE_END. head.aux as above */
struct wire_range_end {
    struct wire_head head;
    uint64_t time;
    uint64_t id;
};

/* After the start of a range, or before its RANGE_POP: a value of the innermost open range of
 * `domain` on this thread, or of the started range `id`. head.aux = string id of the field's name;
 * flags = enum wire_payload */
struct wire_field {
    struct wire_head head;
    uint64_t id; /* of a started range, else 0 */
    uint64_t value;
    uint32_t domain; /* string id, 0 = default */
    uint32_t reserved;
};

/* Directly after the RANGE_PUSH it belongs to, same thread, same domain. NaN = not declared. */
struct wire_work {
    struct wire_head head;
    double flop;
    double bytes_read, bytes_written;
};

WIRE_ASSERT(wire_range, 48);
WIRE_ASSERT(wire_range_end, 24);
WIRE_ASSERT(wire_work, 32);
WIRE_ASSERT(wire_field, 32);
_Static_assert(offsetof(struct wire_range, message) == 32, "wire_range.message");

#endif
