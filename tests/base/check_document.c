/* JSON documents: what is refused, and numbers and texts that come back as they were. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/base/json.h"
#include "libprof/base/utf8.h"
#include "tests/check_main.h"
#include "tests/failing_json.h"

static struct prof_error err;

static enum prof_status parse(const char *text)
{
    cJSON *root;
    enum prof_status status = prof_document_parse(text, strlen(text), "it", &root, &err);
    ck_assert_int_eq(status != PROF_OK, root == NULL);
    cJSON_Delete(root);
    return status;
}

START_TEST(what_is_no_json)
{
    static const char *const right[] = {"{}", " [1, 2]\n", "null", "\"\\u00e4\"",
                                        "[{},{\"a\":{\"a\":1}}]"};
    static const char *const wrong[] = {
        "",          " ",           "{",        "{]",         "{} {}",    "[1,]",  "nul", "\"a",
        "{\"a\" 1}", "\"\\ud800\"", "\"\xff\"", "[\"\xc3\"]", "\xef\xbb", "[1-2]", "[1]x"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        ck_assert_msg(!parse(right[i]), "%s: %s", right[i], err.message);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(parse(wrong[i]) == PROF_FORMAT, "%s", wrong[i]);
    cJSON *root;
    ck_assert_int_eq(prof_document_parse("\"a\0b\"", 5, "it", &root, &err), PROF_FORMAT);
    ck_assert_int_eq(parse("{\n\"a\": 1,\n\"b\" 2}"), PROF_FORMAT);
    ck_assert_str_eq(err.message, "it is not JSON: line 3 is wrong or cut short");
}
END_TEST

/* `count` times `piece`, between `head` and `tail`. */
static char *repeat(const char *head, const char *piece, size_t count, const char *tail)
{
    size_t length = strlen(piece), at = strlen(head);
    char *text = malloc(at + count * length + strlen(tail) + 1);
    strcpy(text, head);
    for (size_t i = 0; i < count; i++, at += length)
        memcpy(text + at, piece, length);
    strcpy(text + at, tail);
    return text;
}

START_TEST(what_is_too_much)
{
    for (size_t depth = 100; depth <= 1000000; depth *= 100) {
        char *open = repeat("", "[", depth, ""), *both = repeat(open, "]", depth, "");
        ck_assert_int_eq(parse(open), PROF_FORMAT);
        ck_assert_int_eq(parse(both), depth > CJSON_NESTING_LIMIT ? PROF_FORMAT : PROF_OK);
        free(open);
        free(both);
    }
    char *objects = repeat("", "{\"a\":", 1000000, "1");
    ck_assert_int_eq(parse(objects), PROF_FORMAT);
    free(objects);
    char *large = repeat("[", " ", PROF_DOCUMENT_BYTES, "]");
    ck_assert_int_eq(parse(large), PROF_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "larger than the 64 MiB"));
    free(large);
    char many[4096] = "{", *at = many + 1;
    for (int i = 0; i <= PROF_DOCUMENT_MEMBERS; i++)
        at += sprintf(at, "%s\"k%d\":1", i ? "," : "", i);
    strcpy(at, "}");
    ck_assert_int_eq(parse(many), PROF_FORMAT);
    ck_assert_int_eq(parse("[{\"a\":1,\"b\":[{\"c\":1,\"c\":2}]}]"), PROF_FORMAT);
    ck_assert_str_eq(err.message, "it has the key \"c\" twice in one object");
    ck_assert_int_eq(parse("{\"a\":1,\"A\":2}"), PROF_OK);
}
END_TEST

START_TEST(numbers_are_exact)
{
    static const int64_t ints[] = {0,
                                   -1,
                                   INT32_MAX,
                                   2147483648,
                                   999999999999999,
                                   9007199254740991,
                                   9007199254740992,
                                   9007199254740993,
                                   -9007199254740993,
                                   INT64_MAX,
                                   INT64_MIN};
    static const double reals[] = {
        0.1, -0.3, 1.0 / 3, 1e15 + 0.125, 9007199254740991.0, 1e300, 5e-324, 0.30000000000000004,
        1e22};
    enum { INTS = sizeof ints / sizeof ints[0], REALS = sizeof reals / sizeof reals[0] };
    bool failed = false;
    cJSON *root = cJSON_CreateArray(), *row;
    for (size_t i = 0; i < INTS; i++)
        prof_document_add_int(root, NULL, ints[i], &failed);
    for (size_t i = 0; i < REALS; i++) {
        row = prof_document_add(root, NULL, cJSON_CreateObject(), &failed);
        prof_document_add(row, "x", cJSON_CreateNumber(reals[i]), &failed);
    }
    row = prof_document_add(root, NULL, cJSON_CreateObject(), &failed);
    prof_document_add(row, "x", cJSON_CreateNumber(NAN), &failed);
    ck_assert(!failed);
    char *text = prof_document_print(root, false);
    cJSON_Delete(root);
    ck_assert_int_eq(prof_document_parse(text, strlen(text), "it", &root, &err), PROF_OK);
    for (int i = 0; i < INTS; i++) {
        int64_t value = 7;
        ck_assert(prof_document_int(cJSON_GetArrayItem(root, i), &value));
        ck_assert_int_eq(value, ints[i]);
    }
    for (int i = 0; i < REALS; i++)
        ck_assert(prof_document_real(cJSON_GetArrayItem(root, INTS + i), "x") == reals[i]);
    ck_assert(isnan(prof_document_real(cJSON_GetArrayItem(root, INTS + REALS), "x")));
    cJSON_Delete(root);
    free(text);
}
END_TEST

START_TEST(what_is_no_integer)
{
    static const char list[] = "[1.5, 1e300, -1e17, true, null, [], \"\", \"-\", \"+1\", \" 1\", "
                               "\"1 \", \"0x1\", \"9223372036854775808\"]";
    cJSON *root, *item;
    int64_t value = 7;
    ck_assert_int_eq(prof_document_parse(list, strlen(list), "it", &root, &err), PROF_OK);
    cJSON_ArrayForEach(item, root) ck_assert(!prof_document_int(item, &value));
    ck_assert(!prof_document_int(NULL, &value));
    cJSON_Delete(root);
}
END_TEST

START_TEST(texts_of_any_bytes)
{
    bool failed = false;
    cJSON *root = cJSON_CreateObject();
    prof_document_add_text(root, "bad", "a\xff\xc3\xa4\xc3\x1b\"", &failed);
    prof_document_add_text(root, "none", NULL, &failed);
    char *text = prof_document_print(root, false);
    cJSON_Delete(root);
    ck_assert(!failed);
    ck_assert_str_eq(text, "{\"bad\":\"a\\\\xff\xc3\xa4\\\\xc3\\u001b\\\"\",\"none\":null}");
    ck_assert_int_eq(prof_document_parse(text, strlen(text), "it", &root, &err), PROF_OK);
    ck_assert_str_eq(prof_document_text(root, "bad"), "a\\xff\xc3\xa4\\xc3\x1b\"");
    ck_assert_ptr_null(prof_document_text(root, "none"));
    ck_assert_ptr_null(prof_document_text(root, "BAD"));
    cJSON_Delete(root);
    free(text);
}
END_TEST

/* Every allocation of making and of reading a document fails once: told as a lack of memory, and
 * nothing is left out in silence. */
START_TEST(out_of_memory)
{
    static const char json[] = "{\"a\":[1,\"two\",{\"b\":0.1}],\"c\":12345678901}";
    bool made = false, read = false;
    let_json_fail();
    for (long most = 0; !made || !read; most++) {
        bool failed = false;
        cJSON *root;
        allocations_allowed = most;
        enum prof_status status = prof_document_parse(json, strlen(json), "it", &root, &err);
        ck_assert(status == PROF_OK || status == PROF_NOMEM);
        read = status == PROF_OK;
        cJSON_Delete(root);
        allocations_allowed = most;
        root = cJSON_CreateObject();
        cJSON *list = prof_document_add(root, "a", cJSON_CreateArray(), &failed);
        prof_document_add_int(list, NULL, INT64_MAX, &failed);
        prof_document_add(list, NULL, cJSON_CreateNumber(0.1), &failed);
        prof_document_add_text(root, "t", "two", &failed);
        char *text = failed ? NULL : prof_document_print(root, false);
        made = text != NULL;
        if (made)
            ck_assert_str_eq(text, "{\"a\":[\"9223372036854775807\",0.1],\"t\":\"two\"}");
        cJSON_Delete(root);
        free(text);
        ck_assert_int_lt(most, 100);
    }
    cJSON_InitHooks(NULL);
}
END_TEST

START_TEST(files)
{
    char folder[] = "/tmp/check_document.XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.json", folder);
    cJSON *root;
    ck_assert_int_eq(prof_document_read(path, &root, &err), PROF_NOTFOUND);
    ck_assert_int_eq(prof_document_read(folder, &root, &err), PROF_IO);
    ck_assert_int_eq(prof_document_read("/dev/zero", &root, &err), PROF_IO);
    root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "x", 0.1);
    ck_assert_int_eq(prof_document_write(path, root, &err), PROF_OK);
    cJSON_Delete(root);
    ck_assert_int_eq(prof_document_read(path, &root, &err), PROF_OK);
    ck_assert(prof_document_real(root, "x") == 0.1);
    ck_assert_int_eq(prof_document_write("/nowhere/a.json", root, &err), PROF_IO);
    cJSON_Delete(root);
    char *large = repeat("", "x", PROF_DOCUMENT_BYTES, "");
    root = cJSON_CreateString(large);
    ck_assert_int_eq(prof_document_write(path, root, &err), PROF_INVALID);
    cJSON_Delete(root);
    free(large);
    ck_assert_int_eq(truncate(path, PROF_DOCUMENT_BYTES + 1), 0);
    ck_assert_int_eq(prof_document_read(path, &root, &err), PROF_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "larger than"));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0); /* no other file is left */
}
END_TEST

CHECK_MAIN("document", what_is_no_json, what_is_too_much, numbers_are_exact, what_is_no_integer,
           texts_of_any_bytes, out_of_memory, files)
