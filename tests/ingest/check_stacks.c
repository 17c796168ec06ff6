/* Stacks on their way into the file: what they share is there once, addresses belong to the object
 * that was at their place then, and broken records do no harm. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/store/ingest_private.h"
#include "libprof/store/ingest_stack.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"
#include "tests/ingest/harness.h"

#define PC(address) ((uint64_t)WIRE_ENTRY_PC << WIRE_ENTRY_SHIFT | (address))

static void call_with(uint32_t stack)
{
    uint64_t now = prof_now_ns();
    emit_call_from(stack, now, now + 10, collector_text("clFinish"), WIRE_EXPECTS_NONE,
                   WIRE_CLASS_OTHER, stack);
}

/* ---- sharing --------------------------------------------------------------------------------- */

static void three_stacks(void *unused)
{
    (void)unused;
    define_module("/lib/one.so", "0123", 0x10000, 0x1000);
    define_module("/lib/two.so", "4567", 0x20000, 0x1000);
    const uint64_t a[] = {PC(0x10010), 0x20021, 0x20031}, b[] = {PC(0x10011), 0x20021, 0x20031},
                   c[] = {0x20021, 0x20031}, again[] = {PC(0x10010), 0x20021, 0x20031};
    define_stack(1, a, 3, 0);
    define_stack(2, b, 3, 0);
    define_stack(3, c, 2, 0);
    define_stack(4, again, 3, 0);
    for (uint32_t i = 1; i <= 4; i++)
        call_with(i);
    struct wire_alloc alloc = {.head = {sizeof alloc, WIRE_ALLOC, WIRE_SOURCE_OPENCL, 0},
                               .time = prof_now_ns(),
                               .id = 1,
                               .bytes = 64,
                               .stack = 2};
    collector_count(WIRE_COUNT_ALLOC_CALLED, 1);
    collector_emit(&alloc);
    struct wire_graph_node node = {.head = {sizeof node, WIRE_GRAPH_NODE, 1, 0},
                                   .time = prof_now_ns(),
                                   .node = 1,
                                   .graph = 1,
                                   .stack = 3};
    collector_emit(&node);
}

START_TEST(what_stacks_share_is_there_once)
{
    CASE(three_stacks);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM stack"), 4);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM frame"), 4);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM stack WHERE parent>=id"), 0);
    ck_assert_int_eq(NUMBER("SELECT count(DISTINCT stack) FROM api_call"), 3);
    ck_assert_int_eq(
        NUMBER("SELECT x.stack=y.stack FROM api_call x, api_call y WHERE x.id=1 AND y.id=4"), 1);
    /* Return addresses less one, sampled ones as they are. */
    ck_assert_int_eq(
        NUMBER("SELECT offset FROM api_call a JOIN stack s ON s.id=a.stack JOIN frame f "
               "ON f.id=s.frame WHERE a.id=1"),
        0x10);
    ck_assert_int_eq(
        NUMBER("SELECT offset FROM stack s JOIN frame f ON f.id=s.frame WHERE depth=1"), 0x30);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM frame f JOIN module m ON m.id=f.module WHERE "
                            "path='/lib/two.so'"),
                     2);
    ck_assert_int_eq(NUMBER("SELECT a.stack=c.stack FROM allocation a, api_call c WHERE c.id=2"),
                     1);
    ck_assert_int_eq(NUMBER("SELECT n.stack=c.stack FROM graph_node n, api_call c WHERE c.id=3"),
                     1);
    run_done(&run);
}
END_TEST

/* ---- objects that come and go ---------------------------------------------------------------- */

static void reloads(void *unused)
{
    (void)unused;
    const uint64_t place[] = {PC(0x30010)};
    define_module("/lib/first.so", "11", 0x30000, 0x1000);
    define_stack(1, place, 1, 0);
    define_module("/lib/second.so", "22", 0x30000, 0x2000); /* the first went unnoticed */
    define_stack(2, place, 1, 0);
    define_module("/lib/first.so", "11", 0x30000, 0x1000); /* and is back */
    define_stack(3, place, 1, 0);
    define_module("/lib/first.so", "33", 0x30000, 0x1000); /* built anew */
    define_stack(4, place, 1, 0);
    struct wire_module gone = {.head = {sizeof gone, WIRE_MODULE, WIRE_MODULE_UNLOADED, 0},
                               .time = prof_now_ns(),
                               .address = 0x30000};
    collector_define(&gone);
    define_stack(5, place, 1, 0);
    for (uint32_t i = 1; i <= 5; i++)
        call_with(i);
}

START_TEST(an_address_is_of_what_was_there_then)
{
    CASE(reloads);
#define BUILD_ID(call)                                                                             \
    run_text(&run, "SELECT build_id FROM api_call a JOIN stack s ON s.id=a.stack JOIN frame f ON " \
                   "f.id=s.frame LEFT JOIN module m ON m.id=f.module WHERE a.id=" #call)
    ck_assert_str_eq(BUILD_ID(1), "11");
    ck_assert_str_eq(BUILD_ID(2), "22");
    ck_assert_str_eq(BUILD_ID(3), "11");
    ck_assert_str_eq(BUILD_ID(4), "33");
    ck_assert_str_eq(BUILD_ID(5), "");
    ck_assert_int_eq(
        NUMBER("SELECT count(*) FROM module WHERE path LIKE '/lib/%.so' AND bytes<8193"), 3);
    ck_assert_int_eq(NUMBER("SELECT build_id='33' FROM module WHERE end NOT NULL"), 1);
    ck_assert_int_eq(NUMBER("SELECT x.stack=y.stack FROM api_call x, api_call y WHERE x.id=1 AND "
                            "y.id=3"),
                     1);
    run_done(&run);
}
END_TEST

/* ---- hostile records ------------------------------------------------------------------------- */

static void broken(void *unused)
{
    (void)unused;
    uint64_t many[WIRE_STACK_ENTRIES];
    for (size_t i = 0; i < WIRE_STACK_ENTRIES; i++)
        many[i] = UINT64_MAX - i; /* kinds that do not exist */
    define_stack(1, many, WIRE_STACK_ENTRIES, 0);
    for (size_t i = 0; i < WIRE_STACK_ENTRIES; i++)
        many[i] = i; /* return address 0 too */
    define_stack(2, many, WIRE_STACK_ENTRIES, WIRE_STACK_CUT);
    define_stack(3, many, 0, 0);
    define_stack(4, many, 0, WIRE_STACK_ENDED);
    define_stack(0, many, 1, 0);
    define_module("/lib/all", "", 0, UINT64_MAX);
    define_module("/lib/end", "", UINT64_MAX, UINT64_MAX);
    define_module("", "", 5, 0);
    const uint64_t top[] = {PC(WIRE_ENTRY_VALUE), PC(0)};
    define_stack(UINT32_MAX, top, 2, 0);
    for (uint32_t i = 0; i <= 5; i++)
        call_with(i);
    call_with(UINT32_MAX);
}

START_TEST(broken_records_do_no_harm)
{
    CASE(broken);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM api_call"), 7);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM api_call WHERE stack NOT NULL"), 3);
    /* 510 entries, and what stands for the callers that are missing */
    ck_assert_int_eq(NUMBER("SELECT max(depth) FROM stack"), (int64_t)WIRE_STACK_ENTRIES + 1);
    ck_assert_int_eq(
        NUMBER("SELECT count(*) FROM stack s JOIN frame f ON f.id=s.frame WHERE kind=0 "
               "AND parent IS NULL AND depth=1"),
        1);
    ck_assert_str_eq(run_text(&run, "PRAGMA integrity_check"), "ok");
    run_done(&run);
}
END_TEST

/* ---- stacks that perfkit itself takes -------------------------------------------------------- */

static bool names(struct prof_ingest *ingest, int64_t *first, int64_t *second)
{
    const struct ingest_mapping whole = {"/lib/a.so", "aa", 0x100000, 0x10000, -1, 1},
                                segment = {"/lib/a.so", "aa", 0x102000, 0x3000, 0x2000, 2},
                                apart = {"/lib/b.so", NULL, 0x202000, 0x1000, 0x5000, 3};
    const struct ingest_entry entries[] = {{.kind = PROF_STORE_FRAME_NATIVE, .address = 0x102010},
                                           {.kind = PROF_STORE_FRAME_KERNEL, .address = ~0xfffull},
                                           {.kind = PROF_STORE_FRAME_NATIVE, .address = 0x202004}};
    bool ok = !ingest_mapped(ingest, 77, &whole) && !ingest_mapped(ingest, 77, &segment) &&
              !ingest_mapped(ingest, 77, &apart) && !ingest_unmapped(ingest, 78, 0x100000, 4);
    *first = ingest_stack(ingest, 77, entries, 3);
    *second = ingest_stack(ingest, 78, entries, 3); /* of another process: nothing is known there */
    return ok && ingest_stack(ingest, 77, entries, 0) == -1 &&
           ingest_stack(ingest, 77, entries, 3) == *first;
}

START_TEST(stacks_of_perfkit_itself)
{
    struct run run;
    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_about about = {.command = "test", .start_mono_ns = 1};
    int64_t first, second;
    run_prepare(&run, NULL);
    ck_assert_int_eq(prof_store_create(run.capture, false, &store, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_open(store, run.directory, &about, &ingest, &err), PROF_OK);
    ck_assert(names(ingest, &first, &second));
    ck_assert_int_ne(first, second);
    prof_ingest_close(ingest);
    /* Another perfkit goes on with it and finds the same rows. */
    int64_t again, other;
    ck_assert_msg(prof_ingest_open(store, run.directory, NULL, &ingest, &err) == PROF_OK, "%s",
                  err.message);
    ck_assert(names(ingest, &again, &other));
    ck_assert_int_eq(again, first);
    ck_assert_int_eq(other, second);
    ck_assert_int_eq(prof_ingest_finish(ingest, "complete", false, &err), PROF_OK);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_ingest_close(ingest);
    prof_store_close(store);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM module"),
                     2); /* the segment is part of the whole */
    ck_assert_int_eq(NUMBER("SELECT segment FROM module WHERE path='/lib/b.so'"), 0x5000);
    ck_assert_int_eq(NUMBER("SELECT offset FROM frame WHERE address=0x102010 AND module"), 0x2010);
    ck_assert_int_eq(NUMBER("SELECT offset FROM frame WHERE address=0x202004 AND module"), 4);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM frame WHERE process=78 AND module NOT NULL"), 0);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM frame WHERE kind=3 AND module IS NULL AND "
                            "address=-4096"),
                     2);
    run_done(&run);
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

/* A step that fails says why, whether SQLite failed or something else; the next step reads the same
 * records again. */
START_TEST(a_failure_is_named_where_it_happens)
{
    struct run run;
    struct prof_error err = {0};
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_about about = {.command = "test", .start_mono_ns = 1};
    run_prepare(&run, NULL);
    run_start(&run, three_stacks, NULL);
    waitpid(run.target, &run.wait_status, 0);
    ck_assert_int_eq(prof_store_create(run.capture, false, &store, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_open(store, run.directory, &about, &ingest, &err), PROF_OK);

    ingest->last_stack = UINT32_MAX; /* SQLite has no part in this one */
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_FULL);
    ck_assert_msg(strstr(err.message, "different call stacks") != NULL, "%s", err.message);

    static const char refuse[] = "CREATE TRIGGER refuse BEFORE INSERT ON allocation BEGIN "
                                 "SELECT raise(ABORT, 'no allocations today'); END";
    ck_assert_int_eq(sqlite3_exec(prof_store_db(store), refuse, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_SQL);
    ck_assert_msg(strstr(err.message, "no allocations today") != NULL, "%s", err.message);

    ck_assert_int_eq(sqlite3_exec(prof_store_db(store), "DROP TRIGGER refuse", NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_finish(ingest, "complete", false, &err), PROF_OK);
    prof_ingest_close(ingest);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_store_close(store);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM stack"), 4);
    ck_assert_int_eq(NUMBER("SELECT count(*) FROM allocation"), 1);
    run_done(&run);
}
END_TEST

CHECK_MAIN("stacks", what_stacks_share_is_there_once, an_address_is_of_what_was_there_then,
           broken_records_do_no_harm, stacks_of_perfkit_itself, a_failure_is_named_where_it_happens)
