/* See json.h. A tree of cJSON, printed when it is whole: a program that dies prints no half of it.
 * Numbers are given to cJSON as texts, since its own have 15 digits at most and are doubles. */
#include "workloads/common/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Results that lack a member would be wrong. */
static void require_memory(bool done)
{
    if (!done) {
        fputs("out of memory for the results\n", stderr);
        exit(1);
    }
}

static void add(struct json *json, const char *key, cJSON *item)
{
    cJSON *to = json->depth ? json->open[json->depth - 1] : NULL;

    require_memory(item);
    if (to)
        require_memory(key ? cJSON_AddItemToObject(to, key, item) : cJSON_AddItemToArray(to, item));
}

static void json_begin(struct json *json, const char *key, cJSON *item)
{
    add(json, key, item);
    json->open[json->depth++] = item;
}

static void json_end(struct json *json)
{
    cJSON *item = json->open[--json->depth];
    char *text;

    if (json->depth)
        return;
    text = cJSON_Print(item);
    require_memory(text);
    fprintf(json->file, "%s\n", text);
    cJSON_free(text);
    cJSON_Delete(item);
}

void json_object_begin(struct json *json, const char *key)
{
    json_begin(json, key, cJSON_CreateObject());
}

void json_object_end(struct json *json)
{
    json_end(json);
}

void json_array_begin(struct json *json, const char *key)
{
    json_begin(json, key, cJSON_CreateArray());
}

void json_array_end(struct json *json)
{
    json_end(json);
}

void json_text(struct json *json, const char *key, const char *text)
{
    add(json, key, text ? cJSON_CreateString(text) : cJSON_CreateNull());
}

void json_number(struct json *json, const char *key, double number)
{
    char text[32];

    snprintf(text, sizeof text, "%.9g", number);
    add(json, key, isfinite(number) ? cJSON_CreateRaw(text) : cJSON_CreateNull());
}

void json_integer(struct json *json, const char *key, uint64_t number)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRIu64, number);
    add(json, key, cJSON_CreateRaw(text));
}

void json_bool(struct json *json, const char *key, bool truth)
{
    add(json, key, cJSON_CreateBool(truth));
}
