/* A column's values while their row group fills, and their encoding: numbers first go into a
 * dictionary, because most columns of a capture have few different values (threads, streams,
 * configurations, kinds), and are taken out of it again where there are too many (times, ids). */
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/store/exchange/parquet.h"

#define MOST_ENTRIES 16384u /* of a dictionary of numbers */
#define LONGEST_BOUND 256u  /* bytes of text in statistics */
#define NO_VALUE UINT32_MAX /* index of a key whose value is NULL */
#define SHORTEST_RUN 8u

static void append_chunk_bytes(struct parquet_chunk *chunk, parquet_bytes *to, const void *data,
                               size_t length)
{
    if (!prof_array_append(to, data, length))
        chunk->failed = true;
}

static void put_u32(struct parquet_chunk *chunk, parquet_bytes *to, uint32_t value)
{
    unsigned char bytes[4] = {(unsigned char)value, (unsigned char)(value >> 8),
                              (unsigned char)(value >> 16), (unsigned char)(value >> 24)};
    append_chunk_bytes(chunk, to, bytes, sizeof bytes);
}

static void put_u64(struct parquet_chunk *chunk, parquet_bytes *to, uint64_t value)
{
    put_u32(chunk, to, (uint32_t)value);
    put_u32(chunk, to, (uint32_t)(value >> 32));
}

/* ---- least and greatest ---------------------------------------------------------------------- */

static void bound_int(struct parquet_bounds *b, int64_t value)
{
    if (!b->any || value < b->least_int)
        b->least_int = value;
    if (!b->any || value > b->most_int)
        b->most_int = value;
    b->any = true;
}

static void bound_double(struct parquet_bounds *b, double value)
{
    b->unordered |= value != value;
    if (!b->any || value < b->least_double)
        b->least_double = value;
    if (!b->any || value > b->most_double)
        b->most_double = value;
    if (b->least_double == 0) /* readers may not distinguish the zeros */
        b->least_double = -0.0;
    if (b->most_double == 0)
        b->most_double = 0.0;
    b->any = true;
}

/* By bytes, which is the order of UTF-8. */
static bool is_before(const parquet_bytes *in, struct parquet_span a, struct parquet_span b)
{
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common ? memcmp(in->data + a.offset, in->data + b.offset, common) : 0;
    return order ? order < 0 : a.length < b.length;
}

/* `text` was just put into `in`. */
static void bound_text(struct parquet_bounds *b, const parquet_bytes *in, size_t length)
{
    struct parquet_span text = {in->count - length, length};
    if (!b->any || is_before(in, text, b->least))
        b->least = text;
    if (!b->any || is_before(in, b->most, text))
        b->most = text;
    b->any = true;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void append_definition(struct parquet_chunk *chunk, bool has_value)
{
    unsigned char *defined = prof_array_add(&chunk->defined);
    if (defined)
        *defined = has_value;
    else
        chunk->failed = true;
    chunk->values += has_value;
}

static void put_index(struct parquet_chunk *chunk, uint32_t index)
{
    uint32_t *at = index == NO_VALUE ? NULL : prof_array_add(&chunk->indices);
    if (at)
        *at = index;
    else if (index != NO_VALUE)
        chunk->failed = true;
    append_definition(chunk, index != NO_VALUE);
}

static void remember(struct parquet_chunk *chunk, uint64_t key, uint32_t index)
{
    if (!prof_map_put(&chunk->known, key, index))
        chunk->failed = true;
}

bool chunk_by_key(struct parquet_chunk *chunk, int64_t key)
{
    const uint64_t *index = prof_map_get(&chunk->known, (uint64_t)key);
    if (index) {
        put_index(chunk, (uint32_t)*index);
        return true;
    }
    chunk->key = key;
    chunk->key_is_set = true;
    return false;
}

void chunk_null(struct parquet_chunk *chunk)
{
    if (chunk->key_is_set)
        remember(chunk, (uint64_t)chunk->key, NO_VALUE);
    chunk->key_is_set = false;
    append_definition(chunk, false);
}

/* From a dictionary back to the values themselves. */
static void spill(struct parquet_chunk *chunk)
{
    for (size_t i = 0; i < chunk->indices.count; i++)
        append_chunk_bytes(chunk, &chunk->plain,
                           chunk->dictionary.data + (size_t)8 * chunk->indices.data[i], 8);
    chunk->indices.count = 0;
    chunk->dictionary.count = 0;
    chunk->entries = 0;
    prof_map_clear(&chunk->known);
}

static void put_entry(struct parquet_chunk *chunk, uint64_t key)
{
    remember(chunk, key, chunk->entries);
    put_index(chunk, chunk->entries++);
    chunk->key_is_set = false;
}

/* Eight bytes, a number of any type. */
static void append_number_value(struct parquet_chunk *chunk, uint64_t bits)
{
    bool keyed = chunk->key_is_set;
    const uint64_t *index =
        keyed || chunk->no_dictionary ? NULL : prof_map_get(&chunk->known, bits);
    if (index) {
        put_index(chunk, (uint32_t)*index);
        return;
    }
    if (!keyed && !chunk->no_dictionary && chunk->entries == MOST_ENTRIES) {
        spill(chunk);
        chunk->no_dictionary = true;
    }
    if (!keyed && chunk->no_dictionary) {
        put_u64(chunk, &chunk->plain, bits);
        append_definition(chunk, true);
        return;
    }
    put_u64(chunk, &chunk->dictionary, bits);
    put_entry(chunk, keyed ? (uint64_t)chunk->key : bits);
}

void chunk_int(struct parquet_chunk *chunk, int64_t value)
{
    bound_int(&chunk->bounds, value);
    append_number_value(chunk, (uint64_t)value);
}

void chunk_double(struct parquet_chunk *chunk, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bound_double(&chunk->bounds, value);
    append_number_value(chunk, bits);
}

void chunk_text(struct parquet_chunk *chunk, const char *text, size_t length)
{
    parquet_bytes *to = chunk->key_is_set ? &chunk->dictionary : &chunk->plain;
    put_u32(chunk, to, (uint32_t)length);
    append_chunk_bytes(chunk, to, text, length);
    if (chunk->failed)
        return;
    bound_text(&chunk->bounds, to, length);
    if (chunk->key_is_set)
        put_entry(chunk, (uint64_t)chunk->key);
    else
        append_definition(chunk, true);
}

/* ---- runs and packed numbers ----------------------------------------------------------------- */

/* Definition levels or indices. */
struct numbers {
    const unsigned char *bytes;
    const uint32_t *words; /* where bytes is NULL */
    size_t count;
    unsigned width; /* bits */
};

static uint32_t number_at(const struct numbers *n, size_t i)
{
    return n->bytes ? n->bytes[i] : n->words[i];
}

static size_t run_at(const struct numbers *n, size_t i)
{
    size_t end = i + 1;
    while (end < n->count && number_at(n, end) == number_at(n, i))
        end++;
    return end - i;
}

static void append_chunk_varint(struct parquet_chunk *chunk, parquet_bytes *out, uint64_t value)
{
    unsigned char bytes[10];
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[length++] = (unsigned char)(value | 0x80);
    bytes[length++] = (unsigned char)value;
    append_chunk_bytes(chunk, out, bytes, length);
}

static void append_repeated_run(struct parquet_chunk *chunk, parquet_bytes *out, uint32_t value,
                                size_t length, unsigned width)
{
    append_chunk_varint(chunk, out, (uint64_t)length << 1);
    for (unsigned bits = 0; bits < width; bits += 8) {
        unsigned char byte = (unsigned char)(value >> bits);
        append_chunk_bytes(chunk, out, &byte, 1);
    }
}

/* Eight numbers, those after the end as 0: `width` bytes, least significant bits first. */
static void append_packed_group(struct parquet_chunk *chunk, parquet_bytes *out,
                                const struct numbers *n, size_t first)
{
    uint64_t held = 0;
    unsigned bits = 0;
    for (size_t i = first; i < first + 8; i++) {
        held |= (uint64_t)(i < n->count ? number_at(n, i) : 0) << bits;
        for (bits += n->width; bits >= 8; bits -= 8, held >>= 8) {
            unsigned char byte = (unsigned char)held;
            append_chunk_bytes(chunk, out, &byte, 1);
        }
    }
}

/* The hybrid of runs and packed groups. Groups hold eight, so a run begins where one ends. */
static void put_numbers(struct parquet_chunk *chunk, parquet_bytes *out, const struct numbers *n)
{
    for (size_t i = 0; i < n->count;) {
        size_t run = run_at(n, i), end = i;
        if (run >= SHORTEST_RUN) {
            append_repeated_run(chunk, out, number_at(n, i), run, n->width);
            i += run;
            continue;
        }
        do
            end += 8;
        while (end < n->count && run_at(n, end) < SHORTEST_RUN);
        append_chunk_varint(chunk, out, (uint64_t)(end - i) / 8 << 1 | 1);
        for (; i < end; i += 8)
            append_packed_group(chunk, out, n, i);
        if (i > n->count)
            i = n->count;
    }
}

/* ---- pages ----------------------------------------------------------------------------------- */

size_t chunk_bytes(const struct parquet_chunk *chunk)
{
    return chunk->defined.count + chunk->plain.count + chunk->dictionary.count +
           chunk->indices.count * sizeof(uint32_t);
}

bool chunk_has_dictionary(const struct parquet_chunk *chunk)
{
    return chunk->entries > 0;
}

void chunk_finish(struct parquet_chunk *chunk, bool keyed)
{
    if (!keyed && chunk->entries > chunk->values / 2)
        spill(chunk);
}

static unsigned index_width(uint32_t entries)
{
    unsigned width = 1; /* not 0 for a single one: some readers stumble */
    while (width < 32 && entries > 1u << width)
        width++;
    return width;
}

static void put_levels(struct parquet_chunk *chunk, parquet_bytes *out)
{
    struct numbers levels = {
        .bytes = chunk->defined.data, .count = chunk->defined.count, .width = 1};
    size_t at = out->count;
    put_u32(chunk, out, 0);
    put_numbers(chunk, out, &levels);
    if (chunk->failed)
        return;
    uint32_t length = (uint32_t)(out->count - at - 4);
    for (size_t i = 0; i < 4; i++)
        out->data[at + i] = (unsigned char)(length >> 8 * i);
}

bool chunk_page(struct parquet_chunk *chunk, bool required, parquet_bytes *out)
{
    if (!required)
        put_levels(chunk, out);
    if (chunk_has_dictionary(chunk)) {
        struct numbers indices = {.words = chunk->indices.data,
                                  .count = chunk->indices.count,
                                  .width = index_width(chunk->entries)};
        unsigned char width = (unsigned char)indices.width;
        append_chunk_bytes(chunk, out, &width, 1);
        put_numbers(chunk, out, &indices);
    } else {
        append_chunk_bytes(chunk, out, chunk->plain.data, chunk->plain.count);
    }
    return !chunk->failed;
}

bool chunk_bounds(const struct parquet_chunk *chunk, enum parquet_type type, const void **least,
                  size_t *least_length, const void **most, size_t *most_length)
{
    const struct parquet_bounds *b = &chunk->bounds;
    const parquet_bytes *in = chunk_has_dictionary(chunk) ? &chunk->dictionary : &chunk->plain;
    if (!b->any || b->unordered || type == PARQUET_BYTES)
        return false;
    *least_length = *most_length = 8;
    switch (type) {
    case PARQUET_INT64:
        *least = &b->least_int;
        *most = &b->most_int;
        return true;
    case PARQUET_DOUBLE:
        *least = &b->least_double;
        *most = &b->most_double;
        return true;
    case PARQUET_TEXT:
    case PARQUET_BYTES:
        break;
    }
    *least = in->data + b->least.offset;
    *most = in->data + b->most.offset;
    *least_length = b->least.length;
    *most_length = b->most.length;
    return b->least.length <= LONGEST_BOUND && b->most.length <= LONGEST_BOUND;
}

void chunk_clear(struct parquet_chunk *chunk)
{
    chunk->defined.count = chunk->plain.count = chunk->dictionary.count = chunk->indices.count = 0;
    chunk->values = 0;
    chunk->entries = 0;
    chunk->bounds = (struct parquet_bounds){0};
    prof_map_clear(&chunk->known);
}

void chunk_free(struct parquet_chunk *chunk)
{
    prof_array_free(&chunk->defined);
    prof_array_free(&chunk->plain);
    prof_array_free(&chunk->dictionary);
    prof_array_free(&chunk->indices);
    prof_map_free(&chunk->known);
    *chunk = (struct parquet_chunk){0};
}

/* ---- Thrift ---------------------------------------------------------------------------------- */

/* Numbers are zigzag varints, a field's header holds how far it is from the one
 * before. */

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
