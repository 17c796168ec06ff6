/* The JSON writer: its text, byte by byte. */
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"
#include "libprof/base/json.h"
#include "tests/check_main.h"

static struct prof_json json;

static void expect(const char *text)
{
    struct prof_error err = {0};
    ck_assert_msg(prof_json_finish(&json, &err) == PROF_OK, "%s", err.message);
    ck_assert_str_eq(json.data, text);
    prof_json_free(&json);
}

START_TEST(nesting_and_commas)
{
    prof_json_to_memory(&json, 0);
    prof_json_object(&json, NULL);
    prof_json_array(&json, "a");
    prof_json_int(&json, NULL, 1);
    prof_json_object(&json, NULL);
    prof_json_end(&json);
    prof_json_array(&json, NULL);
    prof_json_end(&json);
    prof_json_end(&json);
    prof_json_bool(&json, "b", true);
    prof_json_null(&json, "c");
    prof_json_string(&json, "d", NULL);
    expect("{\"a\":[1,{},[]],\"b\":true,\"c\":null,\"d\":null}");
}
END_TEST

START_TEST(indentation)
{
    prof_json_to_memory(&json, 2);
    prof_json_object(&json, NULL);
    prof_json_array(&json, "a");
    prof_json_int(&json, NULL, 1);
    expect("{\n  \"a\": [\n    1\n  ]\n}\n");
}
END_TEST

START_TEST(members_made_before_are_put_in)
{
    struct prof_json part;
    prof_json_to_memory(&part, 0);
    prof_json_object(&part, NULL);
    prof_json_int(&part, "b", 2);
    prof_json_string(&part, "c", "x");
    ck_assert_int_eq(prof_json_finish(&part, NULL), PROF_OK);
    prof_json_to_memory(&json, 0);
    prof_json_object(&json, NULL);
    prof_json_members(&json, "", 0);
    prof_json_members(&json, part.data + 1, part.count - 2);
    prof_json_members(&json, part.data + 1, part.count - 2);
    json.spaced = true;
    prof_json_int(&json, "d", 3);
    expect("{\"b\":2,\"c\":\"x\",\"b\":2,\"c\":\"x\",\"d\": 3}");
    prof_json_free(&part);
    prof_json_to_memory(&json, 0);
    prof_json_array(&json, NULL);
    prof_json_members(&json, "\"a\":1", 5);
    ck_assert_int_eq(prof_json_finish(&json, NULL), PROF_INVALID);
    prof_json_free(&json);
}
END_TEST

/* Each special byte at each place among plain ones: texts are looked at in words. */
START_TEST(escapes_are_found_wherever_they_stand)
{
    static const char special[] = {'"', '\\', 0x7f, 0x1f, '\n', '\xff', 1};
    for (size_t length = 1; length < 40; length++) {
        for (size_t at = 0; at < length; at++) {
            for (size_t i = 0; i < sizeof special; i++) {
                char text[40];
                memset(text, 'a' + (char)at % 26, length);
                text[at] = special[i];
                prof_json_to_memory(&json, 0);
                prof_json_bytes(&json, NULL, text, length);
                ck_assert_int_eq(prof_json_finish(&json, NULL), PROF_OK);
                size_t extra =
                    special[i] == '"' || special[i] == '\\' || special[i] == '\n' ? 1 : 5;
                ck_assert_uint_eq(json.count, length + 2 + extra);
                ck_assert_int_eq(json.data[1 + at], '\\');
                prof_json_free(&json);
            }
        }
    }
}
END_TEST

START_TEST(texts_are_escaped)
{
    prof_json_to_memory(&json, 0);
    prof_json_array(&json, NULL);
    prof_json_string(&json, NULL, "q\" b\\ n\n t\t r\r b\b f\f e\x1b d\x7f");
    prof_json_bytes(&json, NULL, "nul\0.", 5);
    prof_json_string(&json, NULL, "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    prof_json_string(&json, NULL, "");
    expect("[\"q\\\" b\\\\ n\\n t\\t r\\r b\\b f\\f e\\u001b d\\u007f\",\"nul\\u0000.\","
           "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\",\"\"]");
}
END_TEST

/* Lone continuation, overlong, surrogate, above U+10FFFF, cut sequences: one mark per bad byte. */
START_TEST(bad_utf8_is_replaced)
{
    prof_json_to_memory(&json, 0);
    prof_json_array(&json, NULL);
    prof_json_string(&json, NULL, "a\xff" "b\x80");
    prof_json_string(&json, NULL, "\xc0\xaf");
    prof_json_string(&json, NULL, "\xed\xa0\x80");
    prof_json_string(&json, NULL, "\xf4\x90\x80\x80");
    prof_json_string(&json, NULL, "\xe2\x82");
    expect("[\"a\\ufffdb\\ufffd\",\"\\ufffd\\ufffd\",\"\\ufffd\\ufffd\\ufffd\","
           "\"\\ufffd\\ufffd\\ufffd\\ufffd\",\"\\ufffd\\ufffd\"]");
}
END_TEST

START_TEST(numbers_are_exact)
{
    prof_json_to_memory(&json, 0);
    prof_json_array(&json, NULL);
    prof_json_int(&json, NULL, INT64_MIN);
    prof_json_int(&json, NULL, INT64_MAX);
    prof_json_uint(&json, NULL, UINT64_MAX);
    prof_json_known(&json, NULL, PROF_UNKNOWN);
    prof_json_known(&json, NULL, -5);
    prof_json_real(&json, NULL, 0.1);
    prof_json_real(&json, NULL, 1e300);
    prof_json_real(&json, NULL, NAN);
    prof_json_real(&json, NULL, -INFINITY);
    prof_json_us(&json, NULL, 1234567);
    prof_json_us(&json, NULL, -7);
    prof_json_us(&json, NULL, INT64_MIN);
    prof_json_fixed(&json, NULL, 2.345, 1);
    prof_json_fixed(&json, NULL, NAN, 1);
    expect("[-9223372036854775808,9223372036854775807,18446744073709551615,null,-5,0.1,1e+300,"
           "null,null,1234.567,-0.007,-9223372036854775.808,2.3,null]");
}
END_TEST

START_TEST(reals_read_back_the_same)
{
    static const double values[] = {0,     1.0 / 3, 1e-320, 123456789.123456789, -2.5e-9,
                                    5e-324, 1.7976931348623157e308};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        prof_json_to_memory(&json, 0);
        prof_json_real(&json, NULL, values[i]);
        ck_assert_int_eq(prof_json_finish(&json, NULL), PROF_OK);
        ck_assert(strtod(json.data, NULL) == values[i]);
        prof_json_free(&json);
    }
}
END_TEST

START_TEST(the_locale_plays_no_part)
{
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "ps_AF.UTF-8"};
    for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
        if (!setlocale(LC_ALL, locales[i]))
            continue;
        prof_json_to_memory(&json, 0);
        prof_json_real(&json, NULL, 1234.5678);
        expect("1234.5678");
        ck_assert_str_eq(prof_duration(1234567).text, "1.23 ms");
    }
}
END_TEST

START_TEST(misuse_is_told)
{
    prof_json_to_memory(&json, 0);
    prof_json_object(&json, NULL);
    prof_json_int(&json, NULL, 1); /* no key */
    ck_assert_int_eq(prof_json_finish(&json, NULL), PROF_INVALID);
    prof_json_free(&json);

    prof_json_to_memory(&json, 0);
    prof_json_array(&json, NULL);
    prof_json_int(&json, "key", 1);
    ck_assert_int_eq(prof_json_finish(&json, NULL), PROF_INVALID);
    prof_json_free(&json);

    prof_json_to_memory(&json, 0);
    prof_json_end(&json);
    ck_assert_int_eq(prof_json_finish(&json, NULL), PROF_INVALID);
    prof_json_free(&json);

    prof_json_to_memory(&json, 0);
    for (int i = 0; i < PROF_JSON_DEPTH + 1; i++)
        prof_json_array(&json, NULL);
    ck_assert_int_eq(prof_json_finish(&json, NULL), PROF_INVALID);
    prof_json_free(&json);
}
END_TEST

START_TEST(a_full_disk_is_told)
{
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        return;
    struct prof_error err = {0};
    prof_json_to_file(&json, full, 0);
    prof_json_array(&json, NULL);
    for (int i = 0; i < 100000; i++)
        prof_json_int(&json, NULL, i);
    ck_assert_int_eq(prof_json_finish(&json, &err), PROF_FULL);
    ck_assert_str_eq(err.message, "cannot write JSON: No space left on device");
    fclose(full);
}
END_TEST

CHECK_MAIN("json", nesting_and_commas, indentation, members_made_before_are_put_in,
           escapes_are_found_wherever_they_stand, texts_are_escaped, bad_utf8_is_replaced,
           numbers_are_exact, reals_read_back_the_same, the_locale_plays_no_part, misuse_is_told,
           a_full_disk_is_told)
