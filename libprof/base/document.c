/* What cJSON leaves to its callers: limits, UTF-8, keys that stand twice, exact numbers, and
 * whether memory was lacking or the text is wrong. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/document.h"
#include "libprof/base/format.h"
#include "libprof/base/regular.h"
#include "libprof/base/utf8.h"

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
