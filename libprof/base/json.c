/* The JSON writer; see json.h. Kernel names, NVTX texts and command lines come from the program
 * under test and may hold anything, so escaping lives here and nowhere else. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/array.h"
#include "libprof/base/format.h"
#include "libprof/base/json.h"
#include "libprof/base/regular.h"
#include "libprof/base/utf8.h"

#define FLUSH_BYTES (256u << 10) /* four times as large as a pipe, and fewer, cheaper writes */
#define BLOCK_BYTES 4096u        /* whole ones pass through stdio uncopied, and stay aligned */
#define KEY_BYTES 64u            /* keys up to here are copied without checking for room again */
#define NUMBER_BYTES 32u         /* of the longest integer or time */

/* Write what is in the buffer, but for the last, incomplete block unless `all`. */
static void flush_json(struct prof_json *json, bool all)
{
    size_t now = all ? json->count : json->count - json->count % BLOCK_BYTES;
    if (!json->file || json->status)
        return;
    if (now && fwrite(json->data, 1, now, json->file) != now) {
        json->status = PROF_IO;
        json->saved_errno = errno;
    }
    json->count -= now;
    if (json->count)
        memmove(json->data, json->data + now, json->count);
}

/* Room for `length` bytes more; a document that goes to a file makes it by writing. */
static bool make_json_room(struct prof_json *json, size_t length)
{
    size_t need = json->count + length + 1;
    if (json->status)
        return false;
    if (json->file) {
        if (json->capacity)
            flush_json(json, false);
        need = json->count + length < FLUSH_BYTES ? FLUSH_BYTES : json->count + length;
    }
    if (!json->status && !prof_array_room(&json->data, &json->capacity, need, 1))
        json->status = PROF_NOMEM;
    return !json->status;
}

/* Where `length` bytes more may be put, whose number is then added to json->count; NULL after an
 * error. A trace passes here a hundred million times. */
static inline char *room(struct prof_json *json, size_t length)
{
    if (json->capacity - json->count < length && !make_json_room(json, length))
        return NULL;
    return json->data + json->count;
}

static inline void append_bytes(struct prof_json *json, const char *text, size_t length)
{
    char *at = room(json, length);
    if (!at)
        return;
    memcpy(at, text, length);
    json->count += length;
}

static void append_text(struct prof_json *json, const char *text)
{
    append_bytes(json, text, strlen(text));
}

static void newline(struct prof_json *json)
{
    static const char spaces[] = "                                ";
    if (!json->indent)
        return;
    append_bytes(json, "\n", 1);
    for (size_t left = (size_t)(json->indent * json->depth); left;) {
        size_t now = left < sizeof spaces - 1 ? left : sizeof spaces - 1;
        append_bytes(json, spaces, now);
        left -= now;
    }
}

/* Bytes of the well-formed UTF-8 sequence at text, 0 when it is none (RFC 3629: no overlong forms,
 * no surrogates, nothing above U+10FFFF). */
static size_t utf8_length(const unsigned char *text, size_t left)
{
    unsigned char c = text[0];
    size_t length = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (!length || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f) ||
        (c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

static void append_escaped(struct prof_json *json, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char shorts[] = {['"'] = '"',  ['\\'] = '\\', ['\n'] = 'n', ['\r'] = 'r',
                                  ['\t'] = 't', ['\b'] = 'b',  ['\f'] = 'f'};
    if (c < sizeof shorts && shorts[c])
        append_bytes(json, (char[]){'\\', shorts[c]}, 2);
    else
        append_bytes(json, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
}

/* In a text: neither escaped nor part of a longer sequence. */
static inline bool is_unescaped(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* True when none of eight bytes needs a look: all in 0x20..0x7e, no quote, no backslash. Each line
 * sets the top bit of the bytes that do; borrows may set it too often, never too seldom. */
static bool eight_plain(const unsigned char *s)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t x;
    memcpy(&x, s, sizeof x);
    uint64_t quote = x ^ ones * '"', backslash = x ^ ones * '\\', rubout = x ^ ones * 0x7f;
    uint64_t special =
        x | (x - ones * 0x20) | (quote - ones) | (backslash - ones) | (rubout - ones);
    return !(special & tops);
}

static void append_quoted(struct prof_json *json, const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t plain = 0; /* start of the run that needs no escape */
    append_bytes(json, "\"", 1);
    for (size_t i = 0; i < length;) {
        if (length - i >= 8 && eight_plain(s + i)) {
            i += 8;
            continue;
        }
        if (is_unescaped(s[i])) {
            i++;
            continue;
        }
        size_t bytes = s[i] < 0x80 ? 0 : utf8_length(s + i, length - i);
        if (bytes) {
            i += bytes;
            continue;
        }
        append_bytes(json, text + plain, i - plain);
        if (s[i] < 0x80)
            append_escaped(json, s[i]);
        else
            append_bytes(json, "\\ufffd", 6);
        plain = ++i;
    }
    append_bytes(json, text + plain, length - plain);
    append_bytes(json, "\"", 1);
}

/* The key with its quotes and colon in one go. False, and nothing was put: it is not a short text
 * without escapes, as almost all keys are, or there is an error. */
static inline bool append_short_key(struct prof_json *json, const char *key)
{
    char *at = room(json, KEY_BYTES + sizeof "\"\": ");
    size_t length = 0;
    if (!at)
        return false;
    *at++ = '"';
    for (; length < KEY_BYTES && is_unescaped((unsigned char)key[length]); length++)
        at[length] = key[length];
    if (key[length])
        return false;
    at += length;
    *at++ = '"';
    *at++ = ':';
    if (json->indent || json->spaced)
        *at++ = ' ';
    json->count = (size_t)(at - json->data);
    return true;
}

/* What stands before every value: comma, line break, key. */
static void begin_value(struct prof_json *json, const char *key)
{
    if (json->status)
        return;
    if (!json->depth) {
        if (json->started || key)
            json->status = PROF_INVALID;
        json->started = true;
        return;
    }
    int level = json->depth - 1;
    if (json->is_array[level] == (key != NULL)) {
        json->status = PROF_INVALID;
        return;
    }
    if (json->has_items[level])
        append_bytes(json, ",", 1);
    json->has_items[level] = true;
    newline(json);
    if (key && !append_short_key(json, key)) {
        append_quoted(json, key, strlen(key));
        append_bytes(json, ": ", json->indent || json->spaced ? 2 : 1);
    }
}

static void begin_container(struct prof_json *json, const char *key, bool is_array)
{
    begin_value(json, key);
    if (json->status)
        return;
    if (json->depth >= PROF_JSON_DEPTH) {
        json->status = PROF_INVALID;
        return;
    }
    append_bytes(json, is_array ? "[" : "{", 1);
    json->is_array[json->depth] = is_array;
    json->has_items[json->depth] = false;
    json->depth++;
}

void prof_json_to_file(struct prof_json *json, FILE *file, int indent)
{
    *json = (struct prof_json){.file = file, .indent = indent};
}

void prof_json_to_memory(struct prof_json *json, int indent)
{
    *json = (struct prof_json){.indent = indent};
}

void prof_json_object(struct prof_json *json, const char *key)
{
    begin_container(json, key, false);
}

void prof_json_array(struct prof_json *json, const char *key)
{
    begin_container(json, key, true);
}

void prof_json_end(struct prof_json *json)
{
    if (json->status)
        return;
    if (!json->depth) {
        json->status = PROF_INVALID;
        return;
    }
    int level = --json->depth;
    if (json->has_items[level])
        newline(json);
    append_bytes(json, json->is_array[level] ? "]" : "}", 1);
}

void prof_json_members(struct prof_json *json, const char *members, size_t length)
{
    if (json->status || !length)
        return;
    if (!json->depth || json->is_array[json->depth - 1] || json->indent) {
        json->status = PROF_INVALID;
        return;
    }
    if (json->has_items[json->depth - 1])
        append_bytes(json, ",", 1);
    json->has_items[json->depth - 1] = true;
    append_bytes(json, members, length);
}

void prof_json_string(struct prof_json *json, const char *key, const char *text)
{
    prof_json_bytes(json, key, text, text ? strlen(text) : 0);
}

void prof_json_bytes(struct prof_json *json, const char *key, const char *text, size_t length)
{
    begin_value(json, key);
    if (text)
        append_quoted(json, text, length);
    else
        append_text(json, "null");
}

void prof_json_int(struct prof_json *json, const char *key, int64_t value)
{
    begin_value(json, key);
    char *at = room(json, NUMBER_BYTES);
    if (at)
        json->count += prof_print_int(at, value);
}

void prof_json_uint(struct prof_json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    char *at = room(json, NUMBER_BYTES);
    if (at)
        json->count += prof_print_uint(at, value);
}

void prof_json_known(struct prof_json *json, const char *key, int64_t value)
{
    if (value == PROF_UNKNOWN)
        prof_json_null(json, key);
    else
        prof_json_int(json, key, value);
}

void prof_json_ints(struct prof_json *json, const char *key, const int64_t *values, size_t count)
{
    prof_json_array(json, key);
    for (size_t i = 0; i < count; i++)
        prof_json_known(json, NULL, values[i]);
    prof_json_end(json);
}

void prof_json_strings(struct prof_json *json, const char *key, const char *const *texts,
                       size_t count)
{
    prof_json_array(json, key);
    for (size_t i = 0; i < count; i++)
        prof_json_string(json, NULL, texts[i]);
    prof_json_end(json);
}

void prof_json_real(struct prof_json *json, const char *key, double value)
{
    char text[64];
    if (!isfinite(value)) {
        prof_json_null(json, key);
        return;
    }
    begin_value(json, key);
    append_bytes(json, text, prof_print_real(text, value));
}

void prof_json_fixed(struct prof_json *json, const char *key, double value, int decimals)
{
    char text[64];
    if (!isfinite(value)) {
        prof_json_null(json, key);
        return;
    }
    if (fabs(value) >= 1e15) {
        prof_json_real(json, key, value);
        return;
    }
    begin_value(json, key);
    append_bytes(json, text, prof_print_fixed(text, value, decimals));
}

void prof_json_us(struct prof_json *json, const char *key, int64_t ns)
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    unsigned part = (unsigned)(size % 1000);
    begin_value(json, key);
    char *at = room(json, NUMBER_BYTES);
    if (!at)
        return;
    if (ns < 0)
        *at++ = '-';
    at += prof_print_uint(at, size / 1000);
    *at++ = '.';
    *at++ = (char)('0' + part / 100);
    *at++ = (char)('0' + part / 10 % 10);
    *at++ = (char)('0' + part % 10);
    json->count = (size_t)(at - json->data);
}

void prof_json_bool(struct prof_json *json, const char *key, bool value)
{
    begin_value(json, key);
    append_text(json, value ? "true" : "false");
}

void prof_json_null(struct prof_json *json, const char *key)
{
    begin_value(json, key);
    append_text(json, "null");
}

enum prof_status prof_json_finish(struct prof_json *json, struct prof_error *err)
{
    while (json->depth && !json->status)
        prof_json_end(json);
    if (json->indent)
        append_bytes(json, "\n", 1);
    if (json->file) {
        flush_json(json, true);
        if (!json->status && fflush(json->file)) {
            json->status = PROF_IO;
            json->saved_errno = errno;
        }
    } else if (!json->status && prof_array_room(&json->data, &json->capacity, json->count + 1, 1)) {
        json->data[json->count] = 0;
    }
    enum prof_status status = json->status;
    if (json->file)
        prof_json_free(json);
    if (status == PROF_IO) {
        errno = json->saved_errno;
        return prof_fail_errno(err, status, "cannot write JSON");
    }
    if (status)
        return prof_fail(err, status, "cannot write JSON: %s",
                         status == PROF_INVALID ? "values and keys do not nest"
                                                : prof_status_text(status));
    return PROF_OK;
}

void prof_json_free(struct prof_json *json)
{
    free(json->data);
    json->data = NULL;
    json->count = json->capacity = 0;
}

/* ---- documents ------------------------------------------------------------------------------- */

/* What cJSON leaves to its callers: limits, UTF-8, keys that stand twice, exact numbers, and
 * whether memory was lacking or the text is wrong. */

#define EXACT 9007199254740992.0 /* 2^53: up to here a double is one integer */

/* ---- reading --------------------------------------------------------------------------------- */

/* cJSON compares nothing: of two members with one name the first would count. */
static enum prof_status check_members(const cJSON *item, const char *name, struct prof_error *err)
{
    int count = 0;
    const cJSON *child, *other;
    cJSON_ArrayForEach(child, item)
    {
        if (child->string && ++count > PROF_DOCUMENT_MEMBERS)
            return prof_fail(err, PROF_FORMAT, "%s has an object of more than %d members", name,
                             PROF_DOCUMENT_MEMBERS);
        for (other = item->child; child->string && other != child; other = other->next)
            if (!strcmp(other->string, child->string))
                return prof_fail(err, PROF_FORMAT, "%s has the key \"%.60s\" twice in one object",
                                 name, child->string);
        PROF_TRY(check_members(child, name, err));
    }
    return PROF_OK;
}

static size_t document_line(const char *text, const char *at)
{
    size_t line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

enum prof_status prof_document_parse(const char *text, size_t length, const char *name,
                                     cJSON **root, struct prof_error *err)
{
    const char *end = text;
    *root = NULL;
    if (length > PROF_DOCUMENT_BYTES)
        return prof_fail(err, PROF_FORMAT, "%s is larger than the %u MiB that are read", name,
                         PROF_DOCUMENT_BYTES >> 20);
    if (memchr(text, 0, length) || !prof_is_utf8(text, length))
        return prof_fail(err, PROF_FORMAT, "%s is not JSON: it holds bytes that are not UTF-8",
                         name);
    errno = 0;
    cJSON *made = cJSON_ParseWithLengthOpts(text, length, &end, false);
    if (!made && errno == ENOMEM)
        return prof_out_of_memory(err);
    while (made && end < text + length && strchr(" \t\r\n", *end))
        end++;
    if (!made || end < text + length) {
        cJSON_Delete(made);
        return prof_fail(err, PROF_FORMAT, "%s is not JSON: line %zu is wrong or cut short", name,
                         document_line(text, end));
    }
    enum prof_status status = check_members(made, name, err);
    if (status)
        cJSON_Delete(made);
    else
        *root = made;
    return status;
}

enum prof_status prof_document_read(const char *path, cJSON **root, struct prof_error *err)
{
    struct stat info;
    PROF_FILE_CLOSED FILE *in = prof_read_regular(path);
    *root = NULL;
    if (!in)
        return prof_fail_errno(err, errno == ENOENT || errno == ENOTDIR ? PROF_NOTFOUND : PROF_IO,
                               "cannot read %s", path);
    /* One byte more than is there or may be: a file that grows is cut short. */
    size_t room = fstat(fileno(in), &info) || info.st_size > PROF_DOCUMENT_BYTES
                      ? PROF_DOCUMENT_BYTES + 1
                      : (size_t)info.st_size + 1;
    char *text = malloc(room);
    size_t length = text ? fread(text, 1, room, in) : 0;
    enum prof_status status = !text        ? prof_out_of_memory(err)
                              : ferror(in) ? prof_fail_errno(err, PROF_IO, "cannot read %s", path)
                                           : prof_document_parse(text, length, path, root, err);
    free(text);
    return status;
}

const char *prof_document_text(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

double prof_document_real(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

bool prof_document_int(const cJSON *item, int64_t *value)
{
    if (cJSON_IsNumber(item) && fabs(item->valuedouble) <= EXACT &&
        item->valuedouble == floor(item->valuedouble)) {
        *value = (int64_t)item->valuedouble;
        return true;
    }
    const char *text = cJSON_IsString(item) ? item->valuestring : "";
    const char *digits = text + (*text == '-');
    if (!*digits || digits[strspn(digits, "0123456789")])
        return false;
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return !errno;
}

/* ---- writing --------------------------------------------------------------------------------- */

cJSON *prof_document_add(cJSON *to, const char *key, cJSON *item, bool *failed)
{
    if (item && (key ? cJSON_AddItemToObjectCS(to, key, item) : cJSON_AddItemToArray(to, item)))
        return item;
    cJSON_Delete(item);
    *failed = true;
    return NULL;
}

void prof_document_add_int(cJSON *to, const char *key, int64_t value, bool *failed)
{
    char digits[64];
    prof_print_int(digits, value);
    bool exact = value >= -(int64_t)EXACT && value <= (int64_t)EXACT;
    prof_document_add(
        to, key, exact ? cJSON_CreateNumber((double)value) : cJSON_CreateString(digits), failed);
}

void prof_document_add_text(cJSON *to, const char *key, const char *text, bool *failed)
{
    PROF_FREED char *clean = text ? prof_escape_utf8(text, strlen(text)) : NULL;
    if (text && !clean)
        *failed = true;
    else
        prof_document_add(to, key, text ? cJSON_CreateString(clean) : cJSON_CreateNull(), failed);
}

/* cJSON's own digits are exact for small integers only. */
static bool print_numbers(cJSON *item)
{
    char digits[64];
    if (cJSON_IsNumber(item) && isfinite(item->valuedouble) &&
        item->valuedouble != (double)item->valueint) {
        size_t length = prof_print_real(digits, item->valuedouble);
        item->valuestring = cJSON_malloc(length + 1);
        if (!item->valuestring)
            return false;
        memcpy(item->valuestring, digits, length + 1);
        item->type = (item->type & ~0xff) | cJSON_Raw;
    }
    for (cJSON *child = item->child; child; child = child->next)
        if (!print_numbers(child))
            return false;
    return true;
}

char *prof_document_print(cJSON *root, bool indent)
{
    if (!root || !print_numbers(root))
        return NULL;
    return indent ? cJSON_Print(root) : cJSON_PrintUnformatted(root);
}

enum prof_status prof_document_write(const char *path, cJSON *root, struct prof_error *err)
{
    char *fresh = NULL, *text = prof_document_print(root, true);
    if (!text || asprintf(&fresh, "%s.%ld.part", path, (long)getpid()) < 0) {
        free(text);
        return prof_out_of_memory(err);
    }
    size_t length = strlen(text);
    if (length > PROF_DOCUMENT_BYTES) {
        free(fresh);
        free(text);
        return prof_fail(err, PROF_INVALID, "cannot write %s: it has %zu MiB, and %u can be read",
                         path, length >> 20, PROF_DOCUMENT_BYTES >> 20);
    }
    FILE *out = fopen(fresh, "we");
    bool written = out && fputs(text, out) >= 0 && fputc('\n', out) >= 0;
    written = out && fclose(out) == 0 && written;
    enum prof_status status = written && rename(fresh, path) == 0
                                  ? PROF_OK
                                  : prof_fail_errno(err, PROF_IO, "cannot write %s", path);
    if (status && out)
        unlink(fresh);
    free(fresh);
    free(text);
    return status;
}
