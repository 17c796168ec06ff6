/* The queries of docs/reference/format.md, run on a small capture: each must be valid and find
 * something. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/store/store.h"
#include "tests/check_main.h"

static const char rows[] =
    "INSERT INTO string(value) VALUES('alpha'), ('cudaLaunchKernel'), ('step');"
    "INSERT INTO process(pid) VALUES(1); INSERT INTO thread(process, tid) VALUES(1, 1);"
    "INSERT INTO device(process) VALUES(1); INSERT INTO stream(process, device) VALUES(1, 1);"
    "INSERT INTO launch_config(name) VALUES(1);"
    "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread) "
    "VALUES(1000, 100, 1, 1, 2, 300, 40, 1);"
    "INSERT INTO transfer(start, duration, stream, bytes, kind) VALUES(2000, 10, 1, 64, 1);"
    "INSERT INTO range(start, duration, thread, name, depth) VALUES(600, 200, 1, 3, 0);"
    "INSERT INTO allocation(process, start, bytes, kind, thread) VALUES(1, 5, 8, 3, 1);"
    "INSERT INTO kernel(start, duration, stream, config, graph_node) VALUES(3000, 50, 1, 1, 2);"
    "INSERT INTO graph_node(start, thread, node, graph, original) VALUES(1, 1, 2, 2, 1);"
    "INSERT INTO overhead(start, duration, kind) VALUES(1, 1, 7);"
    "INSERT INTO capture_health(process, subject, item, value) VALUES(1, 'launch', 'called', 1);";

static char *page_text(void)
{
    FILE *page = fopen(FORMAT_PAGE, "r");
    char *text = NULL;
    size_t size = 0;
    ck_assert_ptr_nonnull(page);
    ck_assert_int_gt(getdelim(&text, &size, 0, page), 0);
    fclose(page);
    return text;
}

START_TEST(every_example_runs)
{
    char path[64];
    struct prof_store *store;
    struct prof_error err = {0};
    snprintf(path, sizeof path, "/tmp/check_examples.%ld.sqlite", (long)getpid());
    ck_assert_msg(!prof_store_create(path, true, &store, &err), "%s", err.message);
    sqlite3 *db = prof_store_db(store);
    ck_assert_int_eq(sqlite3_exec(db, rows, NULL, NULL, NULL), SQLITE_OK);
    char *text = page_text(), *at = text;
    int examples = 0;
    for (; (at = strstr(at, "```sql\n")); examples++) {
        at += strlen("```sql\n");
        char *end = strstr(at, "```");
        ck_assert_ptr_nonnull(end);
        sqlite3_stmt *statement;
        ck_assert_msg(!sqlite3_prepare_v2(db, at, (int)(end - at), &statement, NULL),
                      "%s in:\n%.*s", sqlite3_errmsg(db), (int)(end - at), at);
        ck_assert_msg(sqlite3_step(statement) == SQLITE_ROW, "nothing found by:\n%.*s",
                      (int)(end - at), at);
        sqlite3_finalize(statement);
        at = end + 3;
    }
    ck_assert_int_ge(examples, 5);
    free(text);
    prof_store_close(store);
    unlink(path);
}
END_TEST

CHECK_MAIN("examples", every_example_runs)
