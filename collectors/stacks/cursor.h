/* Reading the tables: each read is checked against the end, and after one that failed all others
 * give 0. For cfi.c and expression.c. */
#ifndef PERFKIT_COLLECTORS_STACKS_CURSOR_H
#define PERFKIT_COLLECTORS_STACKS_CURSOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const unsigned char *at, *end;
    bool bad;
};

static inline uint64_t cursor_left(const struct cursor *cursor)
{
    return cursor->bad ? 0 : (uint64_t)(cursor->end - cursor->at);
}

static inline void cursor_skip(struct cursor *cursor, uint64_t bytes)
{
    if (bytes > cursor_left(cursor))
        cursor->bad = true;
    else
        cursor->at += bytes;
}

/* The next `bytes` (1, 2, 4 or 8), little-endian. */
static inline uint64_t cursor_take(struct cursor *cursor, unsigned bytes)
{
    uint64_t value = 0;
    if (bytes > cursor_left(cursor)) {
        cursor->bad = true;
        return 0;
    }
    memcpy(&value, cursor->at, bytes);
    cursor->at += bytes;
    return value;
}

static inline uint64_t cursor_signed(struct cursor *cursor, unsigned bytes)
{
    uint64_t value = cursor_take(cursor, bytes);
    uint64_t sign = 1ull << (bytes * 8 - 1);
    return (value ^ sign) - sign;
}

/* LEB128; bits above the 64th are lost. */
static inline uint64_t cursor_leb(struct cursor *cursor, bool is_signed)
{
    uint64_t value = 0;
    for (unsigned shift = 0; cursor_left(cursor) > 0; shift += 7) {
        uint64_t byte = *cursor->at++;
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if (is_signed && byte & 0x40 && shift + 7 < 64)
            value |= ~0ull << (shift + 7);
        return value;
    }
    cursor->bad = true;
    return 0;
}

static inline uint64_t cursor_uleb(struct cursor *cursor)
{
    return cursor_leb(cursor, false);
}

static inline int64_t cursor_sleb(struct cursor *cursor)
{
    return (int64_t)cursor_leb(cursor, true);
}

#endif
