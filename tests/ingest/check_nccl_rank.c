/* Who is which rank, where a program told NCCL and no launcher told the process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libprof/store/ingest_private.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"

static char path[] = "/tmp/check-rank-XXXXXX";
static struct prof_store *store;
static sqlite3 *db;
static int ranges;

static void sql(const char *text)
{
    char *why = NULL;
    ck_assert_msg(sqlite3_exec(db, text, NULL, NULL, &why) == SQLITE_OK, "%s: %s", text, why);
}

static void begin(void)
{
    struct prof_error err = {0};
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    unlink(path);
    ck_assert_msg(prof_store_create(path, false, &store, &err) == PROF_OK, "%s", err.message);
    db = prof_store_db(store);
    ranges = 0;
    sql("INSERT INTO string(id, value) VALUES (1, 'NCCL'), (2, 'ncclCommInitRankConfig'), (3, "
        "'Rank'), "
        "(4, 'No. of ranks'), (5, 'NCCL communicator ID'), (6, 'Mine')");
}

static void end(void)
{
    prof_store_close(store);
    unlink(path);
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
}

/* `launcher`: rank, local rank and size as SQL. */
static void process(int number, const char *launcher)
{
    char text[200];
    snprintf(text, sizeof text,
             "INSERT INTO process(id, pid, rank, local_rank, world_size) VALUES (%d, %d, %s); "
             "INSERT INTO thread(id, process, tid) VALUES (%d, %d, %d)",
             number, 100 + number, launcher, number, number, 100 + number);
    sql(text);
}

static void communicator_in(int domain, int number, const char *rank, int size)
{
    char text[400];
    ranges++;
    snprintf(text, sizeof text,
             "INSERT INTO range(id, start, duration, thread, name, domain) VALUES (%d, 1, 1, %d, "
             "2, %d); INSERT INTO range_field(range, name, value) VALUES (%d, 5, 77), (%d, 4, %d), "
             "(%d, 3, %s)",
             ranges, number, domain, ranges, ranges, size, ranges, rank);
    sql(text);
}

static void communicator(int number, const char *rank, int size)
{
    communicator_in(1, number, rank, size);
}

/* "rank/local rank/size" of all processes. */
static const char *told(void)
{
    static char out[200];
    sqlite3_stmt *row;
    struct prof_ingest ingest = {.db = db};
    ck_assert_int_eq(ingest_ranks_of_nccl(&ingest), PROF_OK);
    ck_assert_int_eq(
        sqlite3_prepare_v2(
            db,
            "SELECT group_concat(ifnull(rank, '-') || '/' || ifnull(local_rank, '-') || "
            "'/' || ifnull(world_size, '-'), ' ') FROM (SELECT * FROM process "
            "ORDER BY id)",
            -1, &row, NULL),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(row), SQLITE_ROW);
    snprintf(out, sizeof out, "%s", (const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    return out;
}

#define UNKNOWN "NULL, NULL, NULL"

START_TEST(without_a_launcher)
{
    begin();
    process(1, UNKNOWN); /* the parent */
    for (int i = 0; i < 3; i++)
        process(2 + i, UNKNOWN);
    communicator(2, "1", 3);
    communicator(3, "0", 3);
    communicator(4, "2", 3);
    communicator(4, "0", 2); /* a smaller one */
    communicator(4, "2", 3); /* the same again */
    ck_assert_str_eq(told(), "-/-/- 1/-/3 0/-/3 2/-/3");
    end();
}
END_TEST

START_TEST(a_launcher_that_started_them_all_at_once)
{
    begin();
    for (int i = 0; i < 3; i++)
        process(1 + i, "0, 0, 1"); /* one task of Slurm, inherited */
    communicator(2, "0", 2);
    communicator(3, "1", 2);
    ck_assert_str_eq(told(), "0/0/1 0/0/2 1/-/2");
    end();
}
END_TEST

START_TEST(a_launcher_that_knows)
{
    begin();
    process(1, "4, 0, 8");
    process(2, "5, 1, 8");
    communicator(1, "0", 2); /* a part of the run */
    communicator(2, "1", 2);
    ck_assert_str_eq(told(), "4/0/8 5/1/8");
    end();
}
END_TEST

START_TEST(what_leaves_doubt)
{
    begin();
    for (int i = 0; i < 7; i++)
        process(1 + i, UNKNOWN);
    communicator(1, "0", 4); /* all devices in one process */
    communicator(1, "1", 4);
    communicator(2, "2", 4); /* two groups of the same size */
    communicator(3, "2", 4);
    communicator(4, "1", 2); /* a smaller one only */
    communicator(5, "4", 4); /* no such rank */
    communicator(6, "'first'", 4);
    communicator_in(6, 7, "3", 4); /* another's domain */
    ck_assert_str_eq(told(), "-/-/- -/-/- -/-/- -/-/- -/-/- -/-/- -/-/-");
    end();
}
END_TEST

CHECK_MAIN("nccl_rank", without_a_launcher, a_launcher_that_started_them_all_at_once,
           a_launcher_that_knows, what_leaves_doubt)
