/* A streaming JSON writer that owns commas and quoting, so that no name from a device or a user
 * can break the output. Numbers that JSON lacks (NaN, infinity) become null. */
#ifndef WORKLOADS_COMMON_JSON_H
#define WORKLOADS_COMMON_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *file;
    int depth;
    bool later[16]; /* per depth: something stands before the next value */
};

/* `key` is NULL inside arrays and at the top. */
void json_object_begin(struct json *json, const char *key);
void json_object_end(struct json *json);
void json_array_begin(struct json *json, const char *key);
void json_array_end(struct json *json);
void json_text(struct json *json, const char *key, const char *text); /* NULL: null */
void json_number(struct json *json, const char *key, double number);
void json_integer(struct json *json, const char *key, uint64_t number);
void json_bool(struct json *json, const char *key, bool truth);

#endif
