/* Files of measured ceilings: what is kept, what is refused, and their way into a capture. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/store/ceiling.h"
#include "tests/check_main.h"

static char folder[] = "/tmp/check_ceiling.XXXXXX";
static struct prof_error err;

static void enter(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void leave(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static struct prof_ceiling_file device(const char *uuid, const char *driver)
{
    struct prof_ceiling_file file = {.api = "cuda", .name = "GPU"};
    snprintf(file.uuid, sizeof file.uuid, "%s", uuid);
    snprintf(file.driver, sizeof file.driver, "%s", driver);
    return file;
}

START_TEST(what_is_written_is_read)
{
    enter();
    struct prof_ceiling_file file = device("GPU-1", "580.1"), read = device("GPU-1", "580.1");
    ck_assert(prof_ceiling_set(&file, "fp32", 6.123456789012345e13, 1763744000, "chains"));
    ck_assert(prof_ceiling_set(&file, "launch", 4321.5, 1763744001, ""));
    ck_assert(prof_ceiling_set(&file, "launch", 4000, 1763744002, "again")); /* replaces */
    ck_assert_int_eq(prof_ceiling_write(folder, &file, &err), PROF_OK);
    ck_assert_int_eq(prof_ceiling_read(folder, &read, &err), PROF_OK);
    ck_assert_uint_eq(read.count, 2);
    ck_assert_str_eq(read.rows[0].name, "fp32");
    ck_assert(read.rows[0].value == 6.123456789012345e13);
    ck_assert_int_eq(read.rows[0].date_s, 1763744000);
    ck_assert_str_eq(read.rows[0].how, "chains");
    ck_assert_str_eq(read.rows[1].how, "again");
    struct prof_ceiling_file newer = device("GPU-1", "590.0"), other = device("GPU-2", "580.1");
    ck_assert_int_eq(prof_ceiling_read(folder, &newer, &err), PROF_NOTFOUND);
    ck_assert_int_eq(prof_ceiling_read(folder, &other, &err), PROF_NOTFOUND);
    leave();
}
END_TEST

START_TEST(what_is_no_ceiling_is_not_kept)
{
    struct prof_ceiling_file file = device("GPU-1", "1");
    ck_assert(!prof_ceiling_set(&file, "", 1, 0, ""));
    ck_assert(!prof_ceiling_set(&file, "a name of more than thirty-one bytes", 1, 0, ""));
    ck_assert(!prof_ceiling_set(&file, "fp32", 0, 0, ""));
    ck_assert(!prof_ceiling_set(&file, "fp32", -1, 0, ""));
    ck_assert(!prof_ceiling_set(&file, "fp32", NAN, 0, ""));
    ck_assert(!prof_ceiling_set(&file, "fp32", INFINITY, 0, ""));
    ck_assert_uint_eq(file.count, 0);
    char name[16];
    for (int i = 0; i < 2 * PROF_CEILING_ROWS; i++) {
        snprintf(name, sizeof name, "n%d", i);
        ck_assert(prof_ceiling_set(&file, name, 1, 0, "") == (i < PROF_CEILING_ROWS));
    }
}
END_TEST

START_TEST(hostile_names_stay_in_the_folder)
{
    enter();
    struct prof_ceiling_file file = {.api = "opencl",
                                     .name = "../../etc/x\n\tceiling\tfp32\t1\t1\ty $(touch z) `'",
                                     .driver = "/.."};
    ck_assert(prof_ceiling_set(&file, "fp32", 5, 1, "one\n\"},\xff{\"name\":\"fp64\" two"));
    ck_assert_int_eq(prof_ceiling_write(folder, &file, &err), PROF_OK);
    char path[256];
    ck_assert_int_eq(prof_ceiling_path(folder, &file, path, sizeof path, &err), PROF_OK);
    ck_assert_ptr_null(strchr(path + strlen(folder) + 1, '/'));
    ck_assert_int_eq(access(path, R_OK), 0);
    struct prof_ceiling_file read = file;
    ck_assert_int_eq(prof_ceiling_read(folder, &read, &err), PROF_OK);
    ck_assert_uint_eq(read.count, 1);
    ck_assert_str_eq(read.rows[0].how, "one \"}, {\"name\":\"fp64\" two");
    ck_assert_int_eq(prof_ceiling_path(folder, &file, path, 8, &err), PROF_INVALID);
    leave();
}
END_TEST

static void put(const struct prof_ceiling_file *file, const char *text)
{
    char path[256];
    ck_assert_int_eq(prof_ceiling_path(folder, file, path, sizeof path, &err), PROF_OK);
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    fclose(out);
}

#define HEAD "{\"perfkit_ceilings\": 1, \"api\": \"cuda\", \"driver\": \"1\", "

START_TEST(damaged_files)
{
    static const char *const wrong[] = {
        "",
        "something else",
        "[1]",
        "{}",
        "{\"perfkit_ceilings\": 2, \"api\": \"cuda\", \"driver\": \"1\", \"uuid\": \"GPU-1\"}",
        HEAD "\"uuid\": \"GPU-2\", \"ceilings\": [{\"name\": \"fp32\", \"value\": 1, "
             "\"measured_at_s\": 1}]}",
        HEAD "\"uuid\": \"GPU-1\", \"uuid\": \"GPU-1\"}",
        HEAD "\"uuid\": \"GPU-1\", \"ceilings\": [{\"name\": \"fp32\", \"value\": 1,",
        "perfkit-ceilings\t1\napi\tcuda\nuuid\tGPU-1\ndriver\t1\nceiling\tfp32\t1\t1\t\n"};
    enter();
    struct prof_ceiling_file file = device("GPU-1", "1");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        put(&file, wrong[i]);
        ck_assert_msg(prof_ceiling_read(folder, &file, &err) == PROF_FORMAT, "%s", wrong[i]);
        ck_assert_ptr_nonnull(strstr(err.message, "measure again, with perfkit device --measure"));
        ck_assert_uint_eq(file.count, 0);
    }
    put(&file, HEAD "\"uuid\": \"GPU-1\", \"a word of tomorrow\": {}, \"ceilings\": [1, null, {}, "
                    "{\"name\": \"fp32\"}, {\"name\": 7, \"value\": 1, \"measured_at_s\": 1}, "
                    "{\"name\": \"fp32\", \"value\": \"1\", \"measured_at_s\": 1}, "
                    "{\"name\": \"fp64\", \"value\": -3, \"measured_at_s\": 1}, "
                    "{\"name\": \"fp16\", \"value\": 1e999, \"measured_at_s\": 1}, "
                    "{\"name\": \"l2_read\", \"value\": 7, \"measured_at_s\": 12}]}");
    ck_assert_int_eq(prof_ceiling_read(folder, &file, &err), PROF_OK);
    ck_assert_uint_eq(file.count, 1);
    ck_assert_str_eq(file.rows[0].name, "l2_read");
    leave();
}
END_TEST

static int64_t ask(struct prof_store *store, const char *sql)
{
    sqlite3_stmt *row;
    ck_assert_int_eq(sqlite3_prepare_v2(prof_store_db(store), sql, -1, &row, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(row), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    return value;
}

START_TEST(captures_get_those_of_their_devices)
{
    enter();
    char path[64];
    struct prof_store *store;
    struct prof_ceiling_file gpu = device("GPU-1", "1"), unnamed = {.api = "opencl", .name = "CPU"};
    prof_ceiling_set(&gpu, "fp32", 5e13, 1763744000, "chains");
    prof_ceiling_set(&gpu, "record_launch", 4000, 1763744000, "");
    prof_ceiling_set(&unnamed, "fp32", 2e11, 1763744000, "");
    ck_assert_int_eq(prof_ceiling_write(folder, &gpu, &err), PROF_OK);
    ck_assert_int_eq(prof_ceiling_write(folder, &unnamed, &err), PROF_OK);
    snprintf(path, sizeof path, "%s/c.sqlite", folder);
    ck_assert_int_eq(prof_store_create(path, false, &store, &err), PROF_OK);
    ck_assert_int_eq(sqlite3_exec(prof_store_db(store),
                                  "INSERT INTO device(api, name, uuid, driver) VALUES"
                                  "('cuda', 'GPU', 'GPU-1', '1'), ('opencl', 'CPU', NULL, NULL),"
                                  "('opencl', 'GPU', 'GPU-1', '1'), ('cuda', 'GPU', 'GPU-1', '2'),"
                                  "(NULL, NULL, NULL, NULL)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    for (int i = 0; i < 2; i++) { /* once more changes nothing: recover may come after run */
        ck_assert_int_eq(prof_ceiling_attach(store, folder, true, &err), PROF_OK);
        ck_assert_int_eq(ask(store, "SELECT count(*) FROM ceiling"), 3);
        ck_assert_int_eq(ask(store, "SELECT count(*) FROM ceiling WHERE device = 1"), 2);
        ck_assert_int_eq(ask(store, "SELECT value FROM ceiling WHERE device = 2"), 200000000000);
        ck_assert_int_eq(ask(store, "SELECT count(*) FROM ceiling WHERE how = 'chains'"), 1);
        ck_assert_int_eq(ask(store, "SELECT count(*) FROM ceiling WHERE how IS NULL"), 2);
    }
    /* without what recording costs */
    ck_assert_int_eq(prof_ceiling_attach(store, folder, false, &err), PROF_OK);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM ceiling WHERE name = 'fp32'"), 2);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM ceiling"), 2);
    ck_assert_int_eq(prof_ceiling_attach(store, "/nowhere", true, &err), PROF_OK);
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM ceiling"), 0);

    /* What an earlier perfkit wrote is told, and the other devices have theirs. */
    ck_assert_int_eq(prof_ceiling_path(folder, &unnamed, path, sizeof path, &err), PROF_OK);
    FILE *old = fopen(path, "w");
    ck_assert(old && fputs("perfkit ceilings 1\n", old) > 0 && !fclose(old));
    ck_assert_int_eq(prof_ceiling_attach(store, folder, true, &err), PROF_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, path));
    ck_assert_ptr_nonnull(strstr(err.message, "measure again"));
    ck_assert_int_eq(ask(store, "SELECT count(*) FROM ceiling"), 2);
    ck_assert_int_eq(prof_ceiling_write(folder, &unnamed, &err), PROF_OK);
    snprintf(path, sizeof path, "%s/c.sqlite", folder);

    /* A commit that fails, here for a reader, leaves no transaction in the way of what comes next. */
    sqlite3 *reader;
    ck_assert_int_eq(sqlite3_exec(prof_store_db(store), "PRAGMA journal_mode=DELETE", NULL, NULL, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_open(path, &reader), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(reader, "BEGIN; SELECT * FROM device", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_busy_timeout(prof_store_db(store), 0);
    ck_assert_int_eq(prof_ceiling_attach(store, folder, true, &err), PROF_BUSY);
    ck_assert(sqlite3_get_autocommit(prof_store_db(store)));
    sqlite3_close(reader);
    ck_assert_int_eq(prof_ceiling_attach(store, folder, true, &err), PROF_OK);
    prof_store_close(store);
    leave();
}
END_TEST

CHECK_MAIN("ceiling", what_is_written_is_read, what_is_no_ceiling_is_not_kept,
           hostile_names_stay_in_the_folder, damaged_files, captures_get_those_of_their_devices)
