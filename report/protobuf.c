/* See protobuf.h. */
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/base/utf8.h"
#include "report/protobuf.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2 };

/* The longest tag and number. */
#define NUMBER_BYTES 10

static inline bool reserve_message(struct prof_protobuf *message, size_t length)
{
    if (message->capacity - message->count >= length)
        return !message->failed;
    if (!prof_array_room(&message->data, &message->capacity, message->count + length, 1))
        message->failed = true;
    return !message->failed;
}

static inline void append_varint(struct prof_protobuf *message, uint64_t value)
{
    unsigned char *at = message->data + message->count;
    for (; value >= 0x80; value >>= 7)
        *at++ = (unsigned char)(value | 0x80);
    *at++ = (unsigned char)value;
    message->count = (size_t)(at - message->data);
}

void prof_protobuf_raw(struct prof_protobuf *message, const void *data, size_t length)
{
    if (!length || !reserve_message(message, length))
        return;
    memcpy(message->data + message->count, data, length);
    message->count += length;
}

void prof_protobuf_varint(struct prof_protobuf *message, uint64_t value)
{
    if (reserve_message(message, NUMBER_BYTES))
        append_varint(message, value);
}

static inline void append_field(struct prof_protobuf *message, unsigned field, unsigned wire,
                                uint64_t value)
{
    if (!reserve_message(message, 2 * NUMBER_BYTES))
        return;
    append_varint(message, (uint64_t)field << 3 | wire);
    append_varint(message, value);
}

void prof_protobuf_int(struct prof_protobuf *message, unsigned field, int64_t value)
{
    append_field(message, field, WIRE_VARINT, (uint64_t)value);
}

void prof_protobuf_fixed64(struct prof_protobuf *message, unsigned field, uint64_t value)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    prof_protobuf_varint(message, (uint64_t)field << 3 | WIRE_FIXED64);
    prof_protobuf_raw(message, bytes, sizeof bytes);
}

void prof_protobuf_double(struct prof_protobuf *message, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    prof_protobuf_fixed64(message, field, bits);
}

void prof_protobuf_bytes(struct prof_protobuf *message, unsigned field, const void *data,
                         size_t length)
{
    append_field(message, field, WIRE_LENGTH, length);
    prof_protobuf_raw(message, data, length);
}

void prof_protobuf_string(struct prof_protobuf *message, unsigned field, const char *text)
{
    prof_protobuf_bytes(message, field, text, strlen(text));
}

void prof_protobuf_text(struct prof_protobuf *message, unsigned field, const char *text)
{
    struct prof_protobuf clean = {0};
    uint32_t code;
    size_t length = strlen(text), good = 0, bytes;
    while (good < length && (bytes = prof_report_utf8(text + good, length - good, &code)))
        good += bytes;
    if (good == length) {
        prof_protobuf_bytes(message, field, text, length);
        return;
    }
    for (size_t i = 0; i < length; i += bytes ? bytes : 1) {
        bytes = prof_report_utf8(text + i, length - i, &code);
        prof_protobuf_raw(&clean, bytes ? text + i : "\xef\xbf\xbd", bytes ? bytes : 3);
    }
    prof_protobuf_take(message, field, &clean);
}

void prof_protobuf_message(struct prof_protobuf *message, unsigned field,
                           const struct prof_protobuf *inner)
{
    prof_protobuf_bytes(message, field, inner->data, inner->count);
    message->failed |= inner->failed;
}

void prof_protobuf_take(struct prof_protobuf *message, unsigned field, struct prof_protobuf *inner)
{
    prof_protobuf_message(message, field, inner);
    prof_protobuf_free(inner);
}

void prof_protobuf_clear(struct prof_protobuf *message)
{
    message->count = 0;
}

void prof_protobuf_free(struct prof_protobuf *message)
{
    free(message->data);
    *message = (struct prof_protobuf){0};
}
