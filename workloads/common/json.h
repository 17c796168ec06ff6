/* The results of a workload as one JSON document, which is printed at the end of its outermost
 * object. Numbers that JSON lacks (NaN, infinity) become null. */
#ifndef WORKLOADS_COMMON_JSON_H
#define WORKLOADS_COMMON_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

struct json {
    FILE *file;
    int depth;
    cJSON *open[16];
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
