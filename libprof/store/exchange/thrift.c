/* See thrift.h: numbers are zigzag varints, a field's header holds how far it is from the one
 * before. */
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/store/exchange/thrift.h"

enum { TYPE_TRUE = 1, TYPE_FALSE = 2, TYPE_I64 = 6, TYPE_LIST = 9 };

#define VARINT_BYTES 10

static bool make_thrift_room(struct thrift *out, size_t bytes)
{
    if (!prof_array_room(&out->data, &out->capacity, out->count + bytes, 1))
        out->failed = true;
    return !out->failed;
}

static void put_byte(struct thrift *out, unsigned value)
{
    if (make_thrift_room(out, 1))
        out->data[out->count++] = (unsigned char)value;
}

static void append_thrift_varint(struct thrift *out, uint64_t value)
{
    if (!make_thrift_room(out, VARINT_BYTES))
        return;
    for (; value >= 0x80; value >>= 7)
        out->data[out->count++] = (unsigned char)(value | 0x80);
    out->data[out->count++] = (unsigned char)value;
}

static void put_zigzag(struct thrift *out, int64_t value)
{
    append_thrift_varint(out, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

static void append_thrift_bytes(struct thrift *out, const void *data, size_t length)
{
    append_thrift_varint(out, length);
    if (!length || !make_thrift_room(out, length))
        return;
    memcpy(out->data + out->count, data, length);
    out->count += length;
}

static void put_field(struct thrift *out, int field, unsigned type)
{
    int step = field - out->last[out->depth];
    if (step > 0 && step < 16) {
        put_byte(out, (unsigned)step << 4 | type);
    } else {
        put_byte(out, type);
        put_zigzag(out, field);
    }
    out->last[out->depth] = field;
}

void thrift_bool(struct thrift *out, int field, bool value)
{
    put_field(out, field, value ? TYPE_TRUE : TYPE_FALSE);
}

void thrift_i32(struct thrift *out, int field, int32_t value)
{
    put_field(out, field, THRIFT_I32);
    put_zigzag(out, value);
}

void thrift_i64(struct thrift *out, int field, int64_t value)
{
    put_field(out, field, TYPE_I64);
    put_zigzag(out, value);
}

void thrift_binary(struct thrift *out, int field, const void *data, size_t length)
{
    put_field(out, field, THRIFT_BINARY);
    append_thrift_bytes(out, data, length);
}

void thrift_text(struct thrift *out, int field, const char *text)
{
    thrift_binary(out, field, text, strlen(text));
}

void thrift_struct_begin(struct thrift *out, int field)
{
    if (field)
        put_field(out, field, THRIFT_STRUCT);
    if (out->depth + 1 == THRIFT_DEPTH) {
        out->failed = true;
        return;
    }
    out->last[++out->depth] = 0;
}

void thrift_struct_end(struct thrift *out)
{
    thrift_stop(out);
    if (out->depth > 0)
        out->depth--;
}

void thrift_list(struct thrift *out, int field, enum thrift_type element, size_t count)
{
    put_field(out, field, TYPE_LIST);
    if (count < 15) {
        put_byte(out, (unsigned)(count << 4) | element);
    } else {
        put_byte(out, 15u << 4 | element);
        append_thrift_varint(out, count);
    }
}

void thrift_list_i32(struct thrift *out, int32_t value)
{
    put_zigzag(out, value);
}

void thrift_list_text(struct thrift *out, const char *text)
{
    append_thrift_bytes(out, text, strlen(text));
}

void thrift_stop(struct thrift *out)
{
    put_byte(out, 0);
}

void thrift_clear(struct thrift *out)
{
    out->count = 0;
    out->depth = 0;
    out->last[0] = 0;
}

void thrift_free(struct thrift *out)
{
    free(out->data);
    *out = (struct thrift){0};
}
