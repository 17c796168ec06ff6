/* JSON documents of bounded size, as trees of cJSON: what perfkit keeps in JSON and reads back.
 * Reports and traces, which may have any size, are written by json.h; traces of other tools are
 * read as streams.
 *
 * cJSON keeps numbers as doubles and prints them with 15 digits. Here reals are printed with as
 * many digits as they need, and integers above 2^53 are kept as texts of decimal digits. */
#ifndef PERFKIT_BASE_DOCUMENT_H
#define PERFKIT_BASE_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "libprof/base/error.h"

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
