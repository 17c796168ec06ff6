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

#include <cjson/cJSON.h>
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

/* ---- documents ------------------------------------------------------------------------------- */

/* JSON documents of bounded size, as trees of cJSON: what perfkit keeps in JSON and reads back.
 * Reports and traces, which may have any size, are written by json.h; traces of other tools are
 * read as streams.
 *
 * cJSON keeps numbers as doubles and prints them with 15 digits. Here reals are printed with as
 * many digits as they need, and integers above 2^53 are kept as texts of decimal digits. */

#define PROF_DOCUMENT_BYTES                                                                        \
    (64u << 20)                  /* a larger text is refused: its tree takes many times that */
#define PROF_DOCUMENT_MEMBERS 64 /* of one object */

/* Reading. Any bytes may be given; `name` is what messages call them. PROF_FORMAT: no JSON, not
 * UTF-8, too large, nested deeper than CJSON_NESTING_LIMIT, a key twice in one object, or more
 * members than PROF_DOCUMENT_MEMBERS. Freed by cJSON_Delete. */
enum prof_status prof_document_parse(const char *text, size_t length, const char *name,
                                     cJSON **root, struct prof_error *err);
/* A regular file. PROF_NOTFOUND, PROF_IO too. */
enum prof_status prof_document_read(const char *path, cJSON **root, struct prof_error *err);

/* The member's text; NULL when it is none. */
const char *prof_document_text(const cJSON *object, const char *key);
/* The member's number; NaN when it is none. */
double prof_document_real(const cJSON *object, const char *key);
/* False when the item is no integer of 64 bits, as a number up to 2^53 or a text of digits. */
bool prof_document_int(const cJSON *item, int64_t *value);

/* Writing. An item (NULL = out of memory) into an object, or into an array with key NULL; the key
 * must live as long. Returns the item. When memory ran out: NULL, and *failed is set. */
cJSON *prof_document_add(cJSON *to, const char *key, cJSON *item, bool *failed);
void prof_document_add_int(cJSON *to, const char *key, int64_t value, bool *failed);
/* NULL becomes null, bytes that are not UTF-8 become \xNN. */
void prof_document_add_text(cJSON *to, const char *key, const char *text, bool *failed);

/* The document as text, freed with free(); NULL = out of memory. Changes how the tree keeps its
 * numbers: it can only be printed and deleted afterwards. */
char *prof_document_print(cJSON *root, bool indent);
/* Into a file, whole or not at all. PROF_INVALID: more than can be read again. */
enum prof_status prof_document_write(const char *path, cJSON *root, struct prof_error *err);

#endif
