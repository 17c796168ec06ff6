/* Python frames on their way into the file: an instruction of a code object becomes function, file
 * and line, also when another perfkit goes on; damaged definitions do no harm. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/store/python_lines.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"
#include "tests/ingest/harness.h"

#define VERSION 0x030bu
#define TEXT(sql) run_text(&run, sql)
#define PYTHON(code, offset)                                                                       \
    ((uint64_t)WIRE_ENTRY_PYTHON << WIRE_ENTRY_SHIFT | (uint64_t)(code) << 32 | (uint32_t)(offset))
#define LINE_OF(call)                                                                              \
    "SELECT line FROM api_call a JOIN stack s ON s.id=a.stack JOIN symbol y ON y.frame=s.frame "   \
    "WHERE a.id=" #call
#define NAME_OF(call, what)                                                                        \
    "SELECT value FROM api_call a JOIN stack s ON s.id=a.stack JOIN symbol y ON y.frame=s.frame "  \
    "JOIN string t ON t.id=y." what " WHERE a.id=" #call

static void call_with(uint32_t stack)
{
    uint64_t now = prof_now_ns();
    emit_call_from(stack, now, now + 10, collector_text("clFinish"), WIRE_EXPECTS_NONE,
                   WIRE_CLASS_OTHER, stack);
}

static void call_from(uint32_t stack, uint64_t entry)
{
    define_stack(stack, &entry, 1, 0);
    call_with(stack);
}

/* A part of a table in which every two bytes of code are a line of their own. */
static void define_part(uint32_t id, uint32_t at, uint32_t bytes, uint32_t total)
{
    union {
        struct wire_python_code code;
        unsigned char bytes[WIRE_MAX_RECORD];
    } record = {{.head = {(uint16_t)((sizeof(struct wire_python_code) + bytes + 7) & ~7u),
                          WIRE_PYTHON_CODE, 0, id},
                 .function = collector_text("Model.forward"),
                 .file = collector_text("/home/u/train.py"),
                 .first_line = 100,
                 .version = VERSION,
                 .total = total,
                 .at = at,
                 .bytes = bytes}};
    unsigned char *table = record.bytes + sizeof record.code;
    for (uint32_t i = 0; i < bytes; i++)
        table[i] = (at + i) % 2 ? 2 : 0x80 | 13 << 3; /* one unit, line + 1 */
    collector_define(&record);
}

static void define_code(uint32_t id, uint32_t total)
{
    for (uint32_t at = 0; at < total; at += WIRE_PYTHON_LINES)
        define_part(id, at, total - at < WIRE_PYTHON_LINES ? total - at : WIRE_PYTHON_LINES, total);
}

/* ---- lines and names ------------------------------------------------------------------------- */

static void lines(void *unused)
{
    (void)unused;
    define_code(7, 10000);
    call_from(1, PYTHON(7, 0));
    call_from(2, PYTHON(7, 9998));       /* the last of a table in three parts */
    call_from(3, PYTHON(7, 10000));      /* beyond it */
    call_from(4, PYTHON(7, UINT32_MAX)); /* before the first instruction */
    call_from(5, PYTHON(8, 0));          /* never defined */
    call_from(6, PYTHON(0, 0));          /* had no room */
}

START_TEST(instructions_become_lines)
{
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, lines, NULL);
    run_ingest(&run, 1000);
    ck_assert_int_eq(NUMBER(LINE_OF(1)), 101);
    ck_assert_int_eq(NUMBER(LINE_OF(2)), 100 + 5000);
    ck_assert_str_eq(TEXT(LINE_OF(3)), "");
    ck_assert_int_eq(NUMBER(LINE_OF(4)), 100);
    ck_assert_str_eq(TEXT(NAME_OF(1, "function")), "Model.forward");
    ck_assert_str_eq(TEXT(NAME_OF(1, "file")), "/home/u/train.py");
    ck_assert_str_eq(TEXT(NAME_OF(5, "function")), "(Python)");
    ck_assert_str_eq(TEXT(NAME_OF(6, "function")), "(Python)");
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM frame WHERE kind=2 AND address IS NULL"), 5);
    run_done(&run);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

static void damaged(void *unused)
{
    (void)unused;
    define_part(1, 8, 8, 16); /* its beginning is missing */
    define_part(2, 0, 0, 0);
    define_part(3, 0, 8, UINT32_MAX);
    define_part(3, 4000000000u, 8, UINT32_MAX);
    define_part(4, 0, 8, 16);
    define_part(4, 0, 8, 16); /* twice */
    define_part(0, 0, 8, 8);
    for (uint32_t i = 1; i <= 4; i++)
        call_from(i, PYTHON(i, 0));
    call_from(5, PYTHON(4, 1000));
}

START_TEST(damaged_definitions_do_no_harm)
{
    struct run run;
    run_prepare(&run, NULL);
    run_start(&run, damaged, NULL);
    run_ingest(&run, 1000);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM api_call WHERE stack NOT NULL"), 5);
    ck_assert_str_eq(TEXT(LINE_OF(1)), "");
    ck_assert_int_eq(NUMBER(LINE_OF(3)), 101);
    ck_assert_int_eq(NUMBER(LINE_OF(4)), 101);
    ck_assert_str_eq(TEXT(LINE_OF(5)), "");
    ck_assert_str_eq(TEXT("PRAGMA integrity_check"), "ok");
    run_done(&run);
}
END_TEST

/* ---- another perfkit goes on ----------------------------------------------------------------- */

static int to_target[2], from_target[2];

static void in_two_halves(void *unused)
{
    char byte = 0;
    (void)unused;
    define_code(7, 10000);
    define_part(8, 0, 8, 16);
    call_from(1, PYTHON(7, 0));
    ck_assert_int_eq(write(from_target[1], &byte, 1), 1);
    ck_assert_int_eq(read(to_target[0], &byte, 1), 1);
    define_part(8, 8, 8, 16);
    call_from(2, PYTHON(7, 9998));
    call_from(3, PYTHON(8, 14));
}

static struct prof_ingest *open_again(struct run *run, struct prof_store **store, bool first)
{
    struct prof_error err = {0};
    struct prof_ingest *ingest = NULL;
    struct prof_ingest_about about = {.command = "test", .start_mono_ns = 1};
    enum prof_status status = first ? prof_store_create(run->capture, false, store, &err)
                                    : prof_store_reopen(run->capture, store, &err);
    ck_assert_msg(status == PROF_OK, "%s", err.message);
    status = prof_ingest_open(*store, run->directory, first ? &about : NULL, &ingest, &err);
    ck_assert_msg(status == PROF_OK, "%s", err.message);
    return ingest;
}

START_TEST(definitions_outlive_perfkit)
{
    struct run run;
    struct prof_store *store;
    struct prof_error err = {0};
    char byte = 0;
    run_prepare(&run, NULL);
    ck_assert_int_eq(pipe(to_target) | pipe(from_target), 0);
    run_start(&run, in_two_halves, NULL);
    ck_assert_int_eq(read(from_target[0], &byte, 1), 1);
    struct prof_ingest *ingest = open_again(&run, &store, true);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    prof_ingest_close(ingest); /* without an end, as a killed one */
    prof_store_close(store);
    ingest = open_again(&run, &store, false);
    ck_assert_int_eq(write(to_target[1], &byte, 1), 1);
    ck_assert_int_eq(waitpid(run.target, &run.wait_status, 0), run.target);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_finish(ingest, "recovered", false, &err), PROF_OK);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_ingest_close(ingest);
    prof_store_close(store);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM api_call"), 3);
    ck_assert_int_eq(NUMBER(LINE_OF(1)), 101);
    ck_assert_int_eq(NUMBER(LINE_OF(2)), 100 + 5000);
    ck_assert_int_eq(NUMBER(LINE_OF(3)), 108);
    run_done(&run);
}
END_TEST

/* ---- tables ---------------------------------------------------------------------------------- */

/* The real tables of real interpreters: tests/python/frames.py. */
START_TEST(every_kind_of_entry)
{
    const uint8_t pairs[] = {2, 1, 4, 0x80, 2, 0xff, 0, 5, 2, 0};
    ck_assert_uint_eq(prof_python_line(0x030a, pairs, sizeof pairs, 10, 0), 11);
    ck_assert_uint_eq(prof_python_line(0x030a, pairs, sizeof pairs, 10, 4), 0); /* none */
    ck_assert_uint_eq(prof_python_line(0x030a, pairs, sizeof pairs, 10, 6), 10);
    ck_assert_uint_eq(prof_python_line(0x030a, pairs, sizeof pairs, 10, 8), 15);
    ck_assert_uint_eq(prof_python_line(0x030a, pairs, sizeof pairs, 10, 10), 0); /* beyond */
    const uint8_t entries[] = {
        0x80 | 1,
        0x12, /* short: the same line, two units */
        0x80 | 12 << 3,
        0,
        1, /* one line: + 2 */
        0x80 | 13 << 3,
        0x40 | 3,
        1, /* no column: -(67 >> 1) = -33 */
        0x80 | 14 << 3,
        40,
        0,
        0,
        0x7f,
        1,                  /* long: + 20 */
        0x80 | 15 << 3 | 7, /* none, eight units */
        0x80,
        0,
    };
    const uint32_t lines[] = {100, 100, 102, 69, 89, 0, 0, 0, 0, 0, 0, 0, 0, 89, 0};
    for (uint32_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        ck_assert_uint_eq(prof_python_line(0x030b, entries, sizeof entries, 100, i * 2), lines[i]);
    for (size_t cut = 0; cut < sizeof entries;
         cut++) /* its memory is its own: see the sanitizers */
        for (uint32_t offset = 0; offset < 30; offset += 2) {
            uint8_t *part = malloc(cut + 1);
            memcpy(part, entries, cut);
            prof_python_line(0x030b, part, cut, 100, offset);
            prof_python_line(0x030a, part, cut, 100, offset);
            free(part);
        }
}
END_TEST

CHECK_MAIN("python", instructions_become_lines, damaged_definitions_do_no_harm,
           definitions_outlive_perfkit, every_kind_of_entry)
