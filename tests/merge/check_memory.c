/* Merging while SQLite runs out of memory: the result is whole, or there is none and the error says
 * why. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/store/merge.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"
#include "tests/failing_sqlite.h"

#define FILES 2
#define NAME_BYTES 2200 /* little else in SQLite has that size: a copy of a name is what fails */

/* Two hosts' ranks of one program: most names and launch configurations are alike. */
static void make_capture(const char *path, int rank)
{
    struct prof_error err = {0};
    struct prof_store *store;
    char *sql = sqlite3_mprintf(
        "INSERT INTO capture(state, perfkit_version, command, host, duration, start_mono_ns) "
        " VALUES('complete', '0.1.0', './train', 'node%d', 1000000, 0);"
        "INSERT INTO process(id, pid, command, start, end, host, rank, world_size, spool)"
        " VALUES(1, 40, './train', 0, 1000000, 'node%d', %d, 2, 's');"
        "INSERT INTO thread(id, process, tid) VALUES(1, 1, 40);"
        "INSERT INTO device(id, process, api, ordinal, name, kind) VALUES(1, 1, 'cuda', 0, 'G', "
        "'gpu');"
        "INSERT INTO stream(id, process, device, api, native) VALUES(1, 1, 1, 'cuda', 7);"
        "WITH n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 8)"
        " INSERT INTO string(id, value) SELECT n, printf('%%0*d', %d, n + 2 * %d) FROM n;"
        "INSERT INTO launch_config(id, name, grid_x, block_x) SELECT id, id, 1, 64 FROM string;"
        "INSERT INTO kernel(start, duration, stream, config, thread)"
        " SELECT 1000 * id, 500, 1, id, 1 FROM launch_config;"
        "INSERT INTO capture_health(process, subject, item, value, note, level)"
        " VALUES(1, 'cuda', 'running', NULL, 'a line of one process', 'note');",
        rank, rank, rank, NAME_BYTES, rank);
    ck_assert_int_eq(prof_store_create(path, true, &store, &err), PROF_OK);
    char *reason = NULL;
    sqlite3_exec(prof_store_db(store), sql, NULL, NULL, &reason);
    ck_assert_msg(!reason, "%s", reason);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_store_close(store);
    sqlite3_free(sql);
}

/* What stands in the result, as one text. */
static char *contents(const char *path)
{
    static const char sql[] =
        "SELECT (SELECT group_concat(id || value, ';') FROM string) || "
        "(SELECT group_concat(id || ':' || name, ';') FROM launch_config) || "
        "(SELECT group_concat(start || ':' || config, ';') FROM kernel) || "
        "(SELECT group_concat(config || ':' || count, ';') FROM rollup) || "
        "(SELECT group_concat(host || rank || command, ';') FROM process) || "
        "(SELECT group_concat(ifnull(note, 'none') || item, ';') FROM capture_health) || "
        "(SELECT group_concat(file || host, ';') FROM merged_part)";
    sqlite3 *db;
    sqlite3_stmt *row;
    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(row), SQLITE_ROW);
    const char *text = (const char *)sqlite3_column_text(row, 0);
    ck_assert_ptr_nonnull(text);
    char *copy = strdup(text);
    sqlite3_finalize(row);
    sqlite3_close(db);
    return copy;
}

START_TEST(without_memory_no_row_is_lost_or_doubled)
{
    struct prof_merge_options options = {.file.overwrite = true};
    char folder[] = "/tmp/perfkit-merge-XXXXXX", *wanted = NULL;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    let_sqlite_fail(NAME_BYTES, NAME_BYTES + 40);
    make_capture("0.sqlite", 0);
    make_capture("1.sqlite", 1);
    long failures = 0, left = 0;
    for (long n = 0; left == 0; n++) {
        const char *const paths[FILES] = {"0.sqlite", "1.sqlite"};
        struct prof_merge_result result;
        struct prof_error err = {0};
        failing_until = n;
        enum prof_status status = prof_merge(paths, FILES, "out.sqlite", &options, &result, &err);
        left = n ? failing_until : 0;
        failing_until = 0;
        if (status) {
            failures++;
            ck_assert_msg(status == PROF_NOMEM, "allocation %ld: %s", n, err.message);
            ck_assert_int_ne(access("out.sqlite", F_OK), 0);
            continue;
        }
        char *got = contents("out.sqlite");
        ck_assert_msg(result.complete, "allocation %ld: %s", n, result.parts[0].missing);
        if (wanted)
            ck_assert_msg(strcmp(got, wanted) == 0, "allocation %ld: other rows", n);
        else
            wanted = strdup(got);
        free(got);
        prof_merge_result_free(&result);
        unlink("out.sqlite");
    }
    ck_assert_int_gt(failures, 20);
    free(wanted);
    unlink("0.sqlite");
    unlink("1.sqlite");
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

CHECK_MAIN("merge_memory", without_memory_no_row_is_lost_or_doubled)
