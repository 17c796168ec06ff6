/* The one JSON writer: owns commas, nesting, escaping and number formats.
 *
 *     struct prof_json json;
 *     prof_json_to_file(&json, stdout, 2);
 *     prof_json_object(&json, NULL);              // NULL: no key (the root, or inside an array)
 *     prof_json_string(&json, "name", text);
 *     prof_json_int(&json, "count", 12);
 *     prof_json_end(&json);
 *     status = prof_json_finish(&json, err);
 *
 * Every value function takes the key as its second argument: NULL inside arrays, non-NULL inside
 * objects. Errors (write error, out of memory, misuse) stick and are returned by prof_json_finish.
 * Text may be any bytes: control characters are escaped, bytes that are not UTF-8 become U+FFFD.
 * Unknown values are written as null. Locale plays no part. Not thread-safe. */
#ifndef PERFKIT_BASE_JSON_H
#define PERFKIT_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libprof/base/error.h"

#define PROF_JSON_DEPTH 64

struct prof_json {
    FILE *file; /* NULL: everything stays in `data` */
    char *data;
    size_t count, capacity;
    int indent; /* spaces per level; 0 = one line */
    int depth;
    enum prof_status status;
    int saved_errno;
    bool started; /* the root value was begun */
    bool spaced;  /* a blank after each colon, also without indent: some readers search for that */
    bool is_array[PROF_JSON_DEPTH];
    bool has_items[PROF_JSON_DEPTH];
};

/* Begin a document that goes to `file` (borrowed) in pieces of 256 KiB. */
void prof_json_to_file(struct prof_json *json, FILE *file, int indent);

/* Begin a document in memory: json->data, json->count bytes, also NUL-terminated after finish. */
void prof_json_to_memory(struct prof_json *json, int indent);

void prof_json_object(struct prof_json *json, const char *key);
void prof_json_array(struct prof_json *json, const char *key);
void prof_json_end(struct prof_json *json); /* the innermost object or array */

/* Members of an object as this writer made them before, without the braces and without indent: for
 * what many objects have in common. */
void prof_json_members(struct prof_json *json, const char *members, size_t length);

void prof_json_string(struct prof_json *json, const char *key, const char *text); /* NULL: null */
void prof_json_bytes(struct prof_json *json, const char *key, const char *text, size_t length);
void prof_json_int(struct prof_json *json, const char *key, int64_t value); /* exact */
void prof_json_uint(struct prof_json *json, const char *key, uint64_t value);
/* Null for PROF_UNKNOWN (libprof/base/format.h), else as prof_json_int. */
void prof_json_known(struct prof_json *json, const char *key, int64_t value);
/* An array of those. */
void prof_json_ints(struct prof_json *json, const char *key, const int64_t *values, size_t count);
/* And of texts. */
void prof_json_strings(struct prof_json *json, const char *key, const char *const *texts,
                       size_t count);
/* Shortest text that reads back as the same double; NaN and infinities are null. */
void prof_json_real(struct prof_json *json, const char *key, double value);
/* With a fixed number of decimals (0..9), for times in us and ms: half the bytes of prof_json_real.
 * NaN and infinities are null. */
void prof_json_fixed(struct prof_json *json, const char *key, double value, int decimals);
/* ns as decimal microseconds with exactly three decimals ("12.345"), exact for all int64. */
void prof_json_us(struct prof_json *json, const char *key, int64_t ns);
void prof_json_bool(struct prof_json *json, const char *key, bool value);
void prof_json_null(struct prof_json *json, const char *key);

/* Close what is open, flush, free (in memory mode: keep data for the caller, who calls
 * prof_json_free). The first error since the beginning; PROF_INVALID for misuse. */
enum prof_status prof_json_finish(struct prof_json *json, struct prof_error *err);
void prof_json_free(struct prof_json *json);

#endif
