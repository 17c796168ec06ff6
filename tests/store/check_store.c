/* Capture files: what is made, what is refused and with which words, readers while writing, and the
 * way back to one file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/store/exchange/parts.h"
#include "libprof/store/schema.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"

static char folder[] = "/tmp/check_store.XXXXXX";
static char path[64], path_wal[72];
static struct prof_error err;

/* Each test runs in a process of its own, in a folder of its own. */
static void enter(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/c.sqlite", folder);
    snprintf(path_wal, sizeof path_wal, "%s-wal", path);
}

static void leave(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static struct prof_store *create(void)
{
    struct prof_store *store;
    ck_assert_msg(prof_store_create(path, false, &store, &err) == PROF_OK, "%s", err.message);
    return store;
}

static void run(struct prof_store *store, const char *sql)
{
    char *message = NULL;
    ck_assert_msg(!sqlite3_exec(prof_store_db(store), sql, NULL, NULL, &message), "%s", message);
}

static long long ask(struct prof_store *store, const char *sql)
{
    sqlite3_stmt *statement;
    ck_assert_int_eq(sqlite3_prepare_v2(prof_store_db(store), sql, -1, &statement, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    long long value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static void write_file(const void *bytes, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, length), (ssize_t)length);
    close(fd);
}

static void refuse(enum prof_status status, const char *words)
{
    struct prof_store *store;
    ck_assert_int_eq(prof_store_open(path, &store, &err), status);
    ck_assert_ptr_null(store);
    ck_assert_int_eq(err.status, status);
    ck_assert_msg(strstr(err.message, words) && strstr(err.message, path), "%s", err.message);
    ck_assert_ptr_null(strchr(err.message, '\n'));
}

START_TEST(a_new_capture_has_all_tables_and_views)
{
    enter();
    struct prof_store *store = create();
    ck_assert_int_eq(ask(store, "PRAGMA application_id"), PROF_APPLICATION_ID);
    ck_assert_int_eq(ask(store, "PRAGMA user_version"), PROF_FORMAT_VERSION);
    for (const struct prof_table *t = prof_tables; t->name; t++) {
        for (const struct prof_column *c = t->columns; c->name; c++) {
            char sql[256];
            snprintf(sql, sizeof sql,
                     "SELECT count(*) FROM pragma_table_info('%s') WHERE name = '%s'", t->name,
                     c->name);
            ck_assert_msg(ask(store, sql) == 1, "%s.%s", t->name, c->name);
        }
    }
    for (const struct prof_view *v = prof_views; v->name; v++) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM \"%s\"", v->name);
        ck_assert_int_eq(ask(store, sql), 0);
    }
    prof_store_close(store);
    leave();
}
END_TEST

START_TEST(an_existing_file_is_kept_unless_asked)
{
    enter();
    struct prof_store *store = create(), *second;
    run(store, "INSERT INTO capture(state) VALUES('complete')");
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_store_close(store);
    ck_assert_int_eq(prof_store_create(path, false, &second, &err), PROF_EXISTS);
    ck_assert_ptr_null(second);
    ck_assert_int_eq(prof_store_open(path, &store, &err), PROF_OK);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM capture"), 1);
    prof_store_close(store);
    ck_assert_int_eq(prof_store_create(path, true, &store, &err), PROF_OK);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM capture"), 0);
    prof_store_close(store);
    leave();
}
END_TEST

#define NEW_CAPTURES 60

static void name_capture(int number)
{
    snprintf(path, sizeof path, "%s/%d.sqlite", folder, number);
}

/* Reads each capture as soon as it is there, until the last one has its tables. */
static void read_eagerly(void)
{
    for (int i = 0; i < NEW_CAPTURES;) {
        struct prof_store *store;
        name_capture(i);
        if (!prof_store_open(path, &store, &err)) {
            prof_store_close(store);
            i++;
        } else if (strstr(err.message, "no such table")) {
            _exit(1);
        }
    }
    _exit(0);
}

START_TEST(eager_readers_do_no_harm_to_a_new_capture)
{
    enter();
    pid_t readers[2];
    int ended;
    for (int i = 0; i < 2; i++) {
        readers[i] = fork();
        if (!readers[i])
            read_eagerly();
    }
    for (int i = 0; i < NEW_CAPTURES; i++) {
        name_capture(i);
        struct prof_store *store = create();
        run(store, "INSERT INTO capture(state) VALUES('recording')");
        prof_store_close(store);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(waitpid(readers[i], &ended, 0), readers[i]);
        ck_assert_msg(ended == 0, "saw a capture without its tables");
    }
    leave();
}
END_TEST

/* The -wal of a killed run must not be replayed into the capture that takes its name. */
START_TEST(old_side_files_do_not_enter_a_new_capture)
{
    enter();
    pid_t child = fork();
    if (!child) {
        struct prof_store *store = create();
        run(store, "INSERT INTO capture(state) VALUES('recording')");
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(access(path_wal, F_OK), 0);
    ck_assert_int_eq(unlink(path), 0);
    struct prof_store *store;
    ck_assert_int_eq(prof_store_create(path, false, &store, NULL), PROF_EXISTS);
    ck_assert_int_eq(access(path_wal, F_OK), 0);
    ck_assert_int_eq(prof_store_create(path, true, &store, NULL), PROF_OK);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM capture"), 0);
    prof_store_close(store);
    leave();
}
END_TEST

/* Who writes has its side files from the moment at which another may find the file: they stay. */
START_TEST(the_second_of_a_name_leaves_the_first_alone)
{
    enter();
    struct prof_store *first, *second;
    ck_assert_int_eq(prof_store_begin(path, false, &first, NULL), PROF_OK);
    ck_assert_int_eq(prof_store_begin(path, false, &second, NULL), PROF_OK);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(prof_store_appear(first, NULL), PROF_OK);
    run(first, "INSERT INTO capture(state) VALUES('recording')");
    ck_assert_int_eq(prof_store_appear(second, NULL), PROF_EXISTS);
    prof_store_close(second);
    struct prof_store *reader;
    ck_assert_int_eq(prof_store_open(path, &reader, NULL), PROF_OK);
    ck_assert_int_eq(ask(reader, "SELECT count(*) FROM capture"), 1);
    prof_store_close(reader);
    prof_store_close(first);
    leave();
}
END_TEST

START_TEST(an_unwritable_place_is_told)
{
    enter();
    struct prof_store *store;
    char nowhere[96];
    snprintf(nowhere, sizeof nowhere, "%s/no/such/c.sqlite", folder);
    ck_assert_int_eq(prof_store_create(nowhere, false, &store, &err), PROF_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "No such file or directory"));
    ck_assert_int_eq(prof_store_create(folder, true, &store, &err), PROF_INVALID);
    leave();
}
END_TEST

START_TEST(a_published_capture_is_one_file)
{
    enter();
    struct prof_store *store = create();
    run(store, "INSERT INTO capture(state) VALUES('complete')");
    ck_assert_int_eq(access(path_wal, F_OK), 0);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    ck_assert_int_ne(access(path_wal, F_OK), 0);
    prof_store_close(store);
    ck_assert_int_eq(prof_store_open(path, &store, &err), PROF_OK);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM capture"), 1);
    ck_assert_int_eq(ask(store, "PRAGMA integrity_check") == 0, 1); /* 'ok' */
    prof_store_close(store);
    leave();
}
END_TEST

START_TEST(readers_see_whole_transactions_of_a_growing_capture)
{
    enter();
    struct prof_store *writer = create(), *reader;
    run(writer, "INSERT INTO capture(state) VALUES('recording')");
    ck_assert_int_eq(prof_store_open(path, &reader, &err), PROF_OK);
    ck_assert_int_eq(ask(reader, "SELECT count(*) FROM kernel"), 0);
    run(writer, "BEGIN; INSERT INTO kernel(start) VALUES(1)");
    ck_assert_int_eq(ask(reader, "SELECT count(*) FROM kernel"), 0);
    run(writer, "INSERT INTO kernel(start) VALUES(2); COMMIT");
    ck_assert_int_eq(ask(reader, "SELECT count(*) FROM kernel"), 2);
    ck_assert_int_ne(sqlite3_exec(prof_store_db(reader), "DELETE FROM kernel", NULL, NULL, NULL),
                     SQLITE_OK);
    prof_store_close(reader);
    prof_store_close(writer);
    leave();
}
END_TEST

START_TEST(an_attached_reader_delays_publication_by_3_s)
{
    enter();
    struct prof_store *writer = create(), *reader;
    run(writer, "INSERT INTO capture(state) VALUES('complete')");
    ck_assert_int_eq(prof_store_open(path, &reader, &err), PROF_OK);
    ck_assert_int_eq(ask(reader, "SELECT count(*) FROM capture"), 1);
    uint64_t start = prof_now_ns();
    ck_assert_int_eq(prof_store_publish(writer, &err), PROF_BUSY);
    ck_assert_uint_gt(prof_now_ns() - start, 2900000000u);
    ck_assert_ptr_nonnull(strstr(err.message, "-wal"));
    ck_assert_int_eq(ask(reader, "SELECT count(*) FROM capture"), 1);
    prof_store_close(writer);
    prof_store_close(reader);
    leave();
}
END_TEST

/* Left in WAL because a reader was attached, joined by the next one that may write. */
START_TEST(a_capture_left_in_wal_settles_later)
{
    enter();
    pid_t child = fork();
    if (!child) {
        struct prof_store *store = create();
        run(store, "INSERT INTO capture(state) VALUES('complete')");
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    struct prof_store *store;
    ck_assert_int_eq(prof_store_open(path, &store, &err), PROF_OK);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM capture"), 1);
    ck_assert(!prof_store_settle(path));
    prof_store_close(store);
    ck_assert(prof_store_settle(path));
    ck_assert_int_ne(access(path_wal, F_OK), 0);
    ck_assert(prof_store_settle(path)); /* nothing to do */
    ck_assert_int_eq(prof_store_open(path, &store, &err), PROF_OK);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM capture"), 1);
    prof_store_close(store);
    leave();
}
END_TEST

/* As another process sees it. */
static bool is_locked(void)
{
    pid_t child = fork();
    int status = 0;
    if (!child) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(path, O_RDWR);
        _exit(fd < 0 || fcntl(fd, F_GETLK, &lock) ? 2 : lock.l_type != F_UNLCK);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status);
}

/* The writer reads its own capture, as perfkit run --overhead=PERCENT does: what it closes must not
 * take away its locks, or the next program that may write takes itself for the last one and deletes
 * the log. */
START_TEST(a_writer_that_reads_keeps_its_locks)
{
    enter();
    struct prof_store *writer = create(), *reader;
    run(writer, "INSERT INTO capture(state) VALUES('recording')");
    ck_assert(is_locked());
    ck_assert_int_eq(prof_store_open(path, &reader, &err), PROF_OK);
    ck_assert_int_eq(ask(reader, "SELECT count(*) FROM capture"), 1);
    prof_store_close(reader);
    prof_store_settle(path);
    ck_assert(is_locked());
    prof_store_close(writer);
    ck_assert_int_eq(prof_store_reopen(path, &writer, &err), PROF_OK);
    ck_assert_int_eq(prof_store_open(path, &reader, &err), PROF_OK);
    prof_store_close(reader);
    ck_assert(is_locked());
    prof_store_close(writer);
    leave();
}
END_TEST

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* A reader's locks are those of its process: what else looks at the file there must leave them, or
 * the writer ends the capture under the reader. Also those of SQLite that perfkit did not open, as
 * Python's. */
START_TEST(looks_at_a_capture_keep_a_readers_locks)
{
    enter();
    struct prof_store *store = create(), *second;
    run(store, "INSERT INTO capture(state) VALUES('complete')");
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_store_close(store);
    int before = descriptors();
    sqlite3 *reader;
    ck_assert_int_eq(sqlite3_open(path, &reader), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(reader, "BEGIN; SELECT * FROM capture", NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert(is_locked());
    for (int i = 0, first = 0; i < 3; i++) {
        ck_assert(!prof_store_is_written(path));
        ck_assert(is_locked());
        ck_assert_int_eq(prof_store_open(path, &second, &err), PROF_OK);
        prof_store_close(second);
        ck_assert(is_locked());
        ck_assert(prof_store_settle(path));
        ck_assert(is_locked());
        first = i ? first : descriptors();
        ck_assert_int_eq(descriptors(), first); /* those left open are used again */
    }
    sqlite3_close(reader);
    ck_assert(!prof_store_is_written(path));
    ck_assert_int_eq(descriptors(), before);
    leave();
}
END_TEST

START_TEST(a_capture_in_the_making_is_not_settled)
{
    enter();
    struct prof_store *store = create();
    run(store, "INSERT INTO capture(state) VALUES('recording')");
    prof_store_close(store);
    prof_store_settle(path);
    ck_assert_int_eq(prof_store_reopen(path, &store, &err), PROF_OK);
    run(store, "UPDATE capture SET state = 'recovered'");
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_store_close(store);
    leave();
}
END_TEST

START_TEST(what_is_not_a_capture_is_refused_with_the_reason)
{
    enter();
    refuse(PROF_NOTFOUND, "no such file");
    write_file("", 0);
    refuse(PROF_FORMAT, "empty");
    write_file("{\"traceEvents\": []}", 19);
    refuse(PROF_FORMAT, "perfkit import");
    write_file("text", 4);
    refuse(PROF_FORMAT, "not an SQLite file");
    write_file("SQLite format 3\0....", 20);
    refuse(PROF_CORRUPT, "cut short");
    ck_assert_int_eq(unlink(path), 0);
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start)", 0, 0, 0),
                     SQLITE_OK);
    sqlite3_close(db);
    refuse(PROF_FORMAT, "another program");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    refuse(PROF_FORMAT, "not a regular file");
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    refuse(PROF_FORMAT, "not a regular file"); /* and does not wait for a writer */
    leave();
}
END_TEST

START_TEST(views_for_tables_are_refused)
{
    enter();
    sqlite3 *db;
    struct prof_store *store = create();
    run(store, "CREATE VIEW mine AS SELECT * FROM kernel"); /* a user's own does no harm */
    prof_store_close(store);
    ck_assert_int_eq(prof_store_open(path, &store, &err), PROF_OK);
    prof_store_close(store);
    ck_assert_int_eq(prof_store_create(path, true, &store, &err), PROF_OK);
    run(store, "DROP TABLE capture; CREATE VIEW Capture AS WITH RECURSIVE n(id) AS (SELECT 1 UNION "
               "ALL SELECT id FROM n) SELECT id, 'complete' AS state FROM n WHERE id > 1");
    prof_store_close(store);
    refuse(PROF_FORMAT, "views for tables");
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert(!prof_store_settle(path)); /* nor read by who would only tidy up */
    leave();
}
END_TEST

START_TEST(a_newer_version_is_refused)
{
    enter();
    struct prof_store *store = create();
    run(store, "INSERT INTO capture(state) VALUES('complete'); PRAGMA user_version = 99");
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_store_close(store);
    refuse(PROF_VERSION, "update perfkit");
    leave();
}
END_TEST

START_TEST(a_truncated_capture_is_refused)
{
    enter();
    struct prof_store *store = create();
    run(store, "INSERT INTO capture(state) VALUES('complete')");
    run(store, "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) "
               "INSERT INTO kernel(start, duration) SELECT i, i FROM n");
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_store_close(store);
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(truncate(path, info.st_size / 2), 0);
    refuse(PROF_CORRUPT, "cut short");
    ck_assert_int_eq(truncate(path, 16384 + 5), 0);
    refuse(PROF_CORRUPT, "cut short");
    leave();
}
END_TEST

/* Pages of noise in the middle: opening may succeed, but nothing crashes and errors are told. */
START_TEST(a_damaged_capture_is_survived)
{
    enter();
    struct prof_store *store = create();
    run(store, "INSERT INTO capture(state) VALUES('complete')");
    run(store, "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) "
               "INSERT INTO kernel(start, duration) SELECT i, i FROM n");
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_store_close(store);
    srand(7);
    for (int round = 0; round < 50; round++) {
        int fd = open(path, O_RDWR);
        struct stat info;
        ck_assert_int_eq(fstat(fd, &info), 0);
        for (int i = 0; i < 64; i++) {
            unsigned char noise = (unsigned char)rand();
            ck_assert_int_eq(pwrite(fd, &noise, 1, 100 + rand() % (info.st_size - 100)), 1);
        }
        close(fd);
        enum prof_status status = prof_store_open(path, &store, &err);
        if (status) {
            ck_assert_ptr_nonnull(strstr(err.message, path));
            continue;
        }
        sqlite3_exec(prof_store_db(store), "SELECT * FROM kernel", NULL, NULL, NULL);
        prof_store_close(store);
    }
    leave();
}
END_TEST

/* As another user sees a finished capture in a folder that is not theirs. */
START_TEST(a_read_only_folder_is_enough)
{
    enter();
    struct prof_store *store = create();
    run(store, "INSERT INTO capture(state) VALUES('complete')");
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    /* In WAL mode without -wal: what remains when a writer that could not publish closes. */
    run(store, "PRAGMA journal_mode = WAL");
    prof_store_close(store);
    ck_assert_int_ne(access(path_wal, F_OK), 0);
    ck_assert_int_eq(chmod(path, 0444), 0);
    ck_assert_int_eq(chmod(folder, 0555), 0);
    pid_t child = fork();
    if (!child) {
        if (!geteuid() && (setgid(65534) || setuid(65534)))
            _exit(77);
        _exit(prof_store_open(path, &store, &err) ? 1 : 0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    ck_assert(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
    leave();
}
END_TEST

/* recover, of a capture that the perfkit before an update had begun. */
START_TEST(an_older_capture_is_completed)
{
    enter();
    struct prof_store *store = create();
    run(store, "INSERT INTO capture(state) VALUES('recording');"
               "INSERT INTO context(process, api, native) VALUES(1, 'cuda', 5);"
               "DROP TABLE jit; DROP TABLE recording;"
               "CREATE TABLE old (\n \"id\" INTEGER PRIMARY KEY, -- row\n \"process\" INTEGER, "
               "\"device\" INTEGER, \"api\" TEXT,\n  \"native\" INTEGER -- the API's\n);"
               "INSERT INTO old SELECT id, process, device, api, native FROM context;"
               "DROP TABLE context; ALTER TABLE old RENAME TO context");
    prof_store_close(store);
    ck_assert_msg(prof_store_open(path, &store, &err) == PROF_OK, "%s", err.message);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM jit"), 0);
    ck_assert_int_eq(ask(store, "SELECT native=5 AND green IS NULL FROM context"), 1);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM main.sqlite_master WHERE name='jit'"), 0);
    prof_store_close(store);
    ck_assert_msg(prof_store_reopen(path, &store, &err) == PROF_OK, "%s", err.message);
    run(store,
        "INSERT INTO jit(start, operation) VALUES(1, 3); INSERT INTO recording(begins) VALUES(1)");
    run(store, "UPDATE context SET green=1, units=8, name='x' WHERE native=5");
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM main.sqlite_master WHERE name='jit'"), 1);
    prof_store_close(store);
    ck_assert_msg(prof_store_open(path, &store, &err) == PROF_OK, "%s", err.message);
    ck_assert_int_eq(ask(store, "SELECT units FROM context WHERE green=1"), 8);
    ck_assert_int_eq(ask(store, "SELECT operation FROM jit"), 3);
    prof_store_close(store);
    leave();
}
END_TEST

/* As `perfkit symbolize` does, that is killed in the middle. */
START_TEST(what_a_killed_writer_began_is_undone)
{
    enter();
    struct prof_store *store = create();
    run(store, "INSERT INTO capture(state) VALUES('complete');"
               "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
               "INSERT INTO string(value) SELECT hex(zeroblob(100)) FROM n");
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_store_close(store);
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db;
        bool begun =
            !sqlite3_open(path, &db) &&
            !sqlite3_exec(db, "PRAGMA cache_size = 2; BEGIN; UPDATE string SET value = 'half'",
                          NULL, NULL, NULL);
        _exit(!begun);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    char journal[80];
    snprintf(journal, sizeof journal, "%s-journal", path);
    ck_assert_int_eq(access(journal, F_OK), 0);
    ck_assert_msg(!prof_store_open(path, &store, &err), "%s", err.message);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM string WHERE value = 'half'"), 0);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM string"), 2000);
    prof_store_close(store);
    ck_assert_int_ne(access(journal, F_OK), 0);
    leave();
}
END_TEST

static int interrupt_it(void *unused)
{
    (void)unused;
    return 1;
}

START_TEST(an_export_that_cannot_read_the_state_says_so)
{
    enter();
    struct prof_store *store = create();
    run(store, "INSERT INTO capture(state) VALUES('recording')");
    struct prof_exchange_result result = {0};
    sqlite3_progress_handler(prof_store_db(store), 1, interrupt_it, NULL);
    ck_assert_int_ne(exchange_note_unfinished(prof_store_db(store), path, &result, &err), PROF_OK);
    sqlite3_progress_handler(prof_store_db(store), 0, NULL, NULL);
    ck_assert_int_eq(exchange_note_unfinished(prof_store_db(store), path, &result, &err), PROF_OK);
    ck_assert_int_eq(result.note_count, 1);
    prof_exchange_result_free(&result);
    prof_store_close(store);
    leave();
}
END_TEST

CHECK_MAIN("store", an_export_that_cannot_read_the_state_says_so,
           a_new_capture_has_all_tables_and_views, an_existing_file_is_kept_unless_asked,
           eager_readers_do_no_harm_to_a_new_capture, old_side_files_do_not_enter_a_new_capture,
           the_second_of_a_name_leaves_the_first_alone, an_unwritable_place_is_told,
           a_published_capture_is_one_file, readers_see_whole_transactions_of_a_growing_capture,
           an_attached_reader_delays_publication_by_3_s, a_capture_left_in_wal_settles_later,
           a_writer_that_reads_keeps_its_locks, looks_at_a_capture_keep_a_readers_locks,
           a_capture_in_the_making_is_not_settled, what_is_not_a_capture_is_refused_with_the_reason,
           views_for_tables_are_refused, a_newer_version_is_refused, an_older_capture_is_completed,
           a_truncated_capture_is_refused, a_damaged_capture_is_survived,
           a_read_only_folder_is_enough, what_a_killed_writer_began_is_undone)
