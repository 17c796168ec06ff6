/* A writer of Thrift's compact protocol, in which Parquet writes its headers and its footer
 * (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md): what the
 * structures mean is their users' business.
 *
 *     struct thrift out = {0};
 *     thrift_i32(&out, 1, 42);
 *     thrift_struct_begin(&out, 2);
 *     thrift_text(&out, 1, "text");
 *     thrift_struct_end(&out);
 *     thrift_stop(&out);                       // of the outermost structure
 *     thrift_free(&out);
 *
 * Fields of a structure in rising order. Running out of memory sticks (`failed`). */
#ifndef PERFKIT_STORE_EXCHANGE_THRIFT_H
#define PERFKIT_STORE_EXCHANGE_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum thrift_type { THRIFT_I32 = 5, THRIFT_BINARY = 8, THRIFT_STRUCT = 12 };

#define THRIFT_DEPTH 8

struct thrift {
    unsigned char *data;
    size_t count, capacity;
    bool failed;
    int last[THRIFT_DEPTH]; /* field written last, of each open structure */
    int depth;
};

void thrift_bool(struct thrift *out, int field, bool value);
void thrift_i32(struct thrift *out, int field, int32_t value);
void thrift_i64(struct thrift *out, int field, int64_t value);
void thrift_binary(struct thrift *out, int field, const void *data, size_t length);
void thrift_text(struct thrift *out, int field, const char *text);

/* A structure as a field, or (field 0) as an element of a list; at most THRIFT_DEPTH - 1 deep. */
void thrift_struct_begin(struct thrift *out, int field);
void thrift_struct_end(struct thrift *out);

/* `count` elements follow: structures with field 0, or those of the next two. */
void thrift_list(struct thrift *out, int field, enum thrift_type element, size_t count);
void thrift_list_i32(struct thrift *out, int32_t value);
void thrift_list_text(struct thrift *out, const char *text);

void thrift_stop(struct thrift *out);

void thrift_clear(struct thrift *out); /* empty, keeps the memory */
void thrift_free(struct thrift *out);

#endif
