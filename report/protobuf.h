/* A writer of protocol buffers' wire format (https://protobuf.dev/programming-guides/encoding):
 * what the messages mean is their users' business.
 *
 *     struct prof_protobuf message = {0};
 *     prof_protobuf_int(&message, 1, 42);
 *     prof_protobuf_string(&message, 2, "text");
 *     prof_protobuf_take(&outer, 3, &message);   // and frees it
 *
 * Running out of memory sticks (`failed`) and passes on to what the message is put into. */
#ifndef PERFKIT_REPORT_PROTOBUF_H
#define PERFKIT_REPORT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prof_protobuf {
    unsigned char *data;
    size_t count, capacity;
    bool failed;
};

/* A number without its field: for packed repeated fields. */
void prof_protobuf_varint(struct prof_protobuf *message, uint64_t value);

/* int32, int64, uint64, bool, enum. 0 is written as well. */
void prof_protobuf_int(struct prof_protobuf *message, unsigned field, int64_t value);

/* fixed64 and double. */
void prof_protobuf_fixed64(struct prof_protobuf *message, unsigned field, uint64_t value);
void prof_protobuf_double(struct prof_protobuf *message, unsigned field, double value);

/* Bytes as they are: fields that were made before. */
void prof_protobuf_raw(struct prof_protobuf *message, const void *data, size_t length);

/* string and bytes; a string must be UTF-8 for strict readers: that is the caller's care. */
void prof_protobuf_bytes(struct prof_protobuf *message, unsigned field, const void *data,
                         size_t length);
void prof_protobuf_string(struct prof_protobuf *message, unsigned field, const char *text);

/* A string of the program's: what is not UTF-8 becomes U+FFFD, all else stays as it was given. */
void prof_protobuf_text(struct prof_protobuf *message, unsigned field, const char *text);

/* A message, or the numbers of a packed field, inside another. */
void prof_protobuf_message(struct prof_protobuf *message, unsigned field,
                           const struct prof_protobuf *inner);
/* The same of one that is not needed any more: it is empty, and its memory freed. */
void prof_protobuf_take(struct prof_protobuf *message, unsigned field, struct prof_protobuf *inner);

void prof_protobuf_clear(struct prof_protobuf *message); /* empty, keeps the memory */
void prof_protobuf_free(struct prof_protobuf *message);

#endif
