/* The JSON writer; see json.h. Two spaces per level: the output is also read by people. */
#include "workloads/common/json.h"

#include <inttypes.h>
#include <math.h>

static void quote(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(file, "\\u%04x", *c);
        else
            fputc(*c, file);
    }
    fputc('"', file);
}

static void before(struct json *json, const char *key)
{
    if (json->depth > 0) {
        fprintf(json->file, "%s\n%*s", json->later[json->depth] ? "," : "", 2 * json->depth, "");
        json->later[json->depth] = true;
    }
    if (key) {
        quote(json->file, key);
        fputs(": ", json->file);
    }
}

static void open(struct json *json, const char *key, char bracket)
{
    before(json, key);
    fputc(bracket, json->file);
    json->later[++json->depth] = false;
}

static void close(struct json *json, char bracket)
{
    bool filled = json->later[json->depth--];

    if (filled)
        fprintf(json->file, "\n%*s", 2 * json->depth, "");
    fputc(bracket, json->file);
    if (json->depth == 0)
        fputc('\n', json->file);
}

void json_object_begin(struct json *json, const char *key)
{
    open(json, key, '{');
}

void json_object_end(struct json *json)
{
    close(json, '}');
}

void json_array_begin(struct json *json, const char *key)
{
    open(json, key, '[');
}

void json_array_end(struct json *json)
{
    close(json, ']');
}

void json_text(struct json *json, const char *key, const char *text)
{
    before(json, key);
    if (text)
        quote(json->file, text);
    else
        fputs("null", json->file);
}

void json_number(struct json *json, const char *key, double number)
{
    before(json, key);
    if (isfinite(number))
        fprintf(json->file, "%.9g", number);
    else
        fputs("null", json->file);
}

void json_integer(struct json *json, const char *key, uint64_t number)
{
    before(json, key);
    fprintf(json->file, "%" PRIu64, number);
}

void json_bool(struct json *json, const char *key, bool truth)
{
    before(json, key);
    fputs(truth ? "true" : "false", json->file);
}
