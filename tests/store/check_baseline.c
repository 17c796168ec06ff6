/* The file of baselines: what is saved is read, nothing is lost when several processes save or are
 * killed, and files that are not ours are told and left alone. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "libprof/store/baseline.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"

static char folder[64], path[128];
static struct prof_error err;

static void enter(void)
{
    snprintf(folder, sizeof folder, "/tmp/check_baseline.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/.perfkit/baselines.sqlite", folder);
}

static void leave(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static struct prof_baseline_file *open_file(bool write)
{
    struct prof_baseline_file *file;
    ck_assert_msg(prof_baseline_open(path, write, &file, &err) == PROF_OK, "%s", err.message);
    return file;
}

static void write_text(const char *name, const char *text)
{
    FILE *out = fopen(name, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    fclose(out);
}

/* One run that says `number`, in the session called `label` (NULL: one of its own). */
static enum prof_status save(struct prof_baseline_file *file, const char *name, const char *label,
                             int number, size_t *added)
{
    char identity[32], metrics[32];
    snprintf(identity, sizeof identity, "host-%d", number);
    struct prof_baseline_run run = {
        .identity = identity,
        .capture = "a.sqlite",
        .recorded_s = 1000 + number,
        .metrics = metrics,
    };
    snprintf(metrics, sizeof metrics, "{\"number\":%d}", number);
    struct prof_baseline_session session = {.label = (char *)label, .runs = &run, .run_count = 1};
    return prof_baseline_append(file, name, &session, 1, added, &err);
}

static size_t runs_of(struct prof_baseline_file *file, const char *name)
{
    struct prof_baseline baseline;
    size_t runs = 0;
    ck_assert_msg(prof_baseline_load(file, name, 0, &baseline, &err) == PROF_OK, "%s", err.message);
    for (size_t i = 0; i < baseline.session_count; i++)
        runs += baseline.sessions[i].run_count;
    prof_baseline_free(&baseline);
    return runs;
}

START_TEST(what_is_saved_is_read)
{
    enter();
    size_t added;
    struct prof_baseline_file *file = open_file(true);
    ck_assert_int_eq(save(file, "main", "job 1", 1, &added), PROF_OK);
    ck_assert_int_eq(save(file, "main", "job 1", 2, &added), PROF_OK);
    ck_assert_int_eq(save(file, "main", NULL, 3, &added), PROF_OK);
    ck_assert_uint_eq(added, 1);
    ck_assert_int_eq(save(file, "main", NULL, 3, &added), PROF_OK); /* again */
    ck_assert_uint_eq(added, 0);
    ck_assert_int_eq(save(file, "other", NULL, 3, &added), PROF_OK);
    ck_assert_uint_eq(added, 1);
    prof_baseline_close(file);

    struct prof_baseline baseline;
    file = open_file(false);
    ck_assert_int_eq(prof_baseline_load(file, "main", 0, &baseline, &err), PROF_OK);
    ck_assert_uint_eq(baseline.session_count, 2);
    ck_assert_str_eq(baseline.sessions[0].label, "job 1");
    ck_assert_ptr_null(baseline.sessions[1].label);
    ck_assert_int_lt(baseline.sessions[0].id, baseline.sessions[1].id);
    ck_assert_uint_eq(baseline.sessions[0].run_count, 2);
    struct prof_baseline_run *run = &baseline.sessions[0].runs[1];
    ck_assert_str_eq(run->metrics, "{\"number\":2}");
    ck_assert_int_eq(run->recorded_s, 1002);
    prof_baseline_free(&baseline);

    ck_assert_int_eq(prof_baseline_load(file, "main", 1, &baseline, &err), PROF_OK);
    ck_assert_uint_eq(baseline.session_count, 1); /* the last one */
    ck_assert_ptr_null(baseline.sessions[0].label);
    prof_baseline_free(&baseline);
    ck_assert_int_eq(prof_baseline_load(file, "mian", 0, &baseline, &err), PROF_NOTFOUND);
    ck_assert_ptr_nonnull(strstr(err.message, "main, other"));

    struct prof_baseline_list list;
    ck_assert_int_eq(prof_baseline_summaries(file, &list, &err), PROF_OK);
    ck_assert_uint_eq(list.count, 2);
    ck_assert_int_eq(list.rows[0].runs, 3);
    ck_assert_int_eq(list.rows[0].sessions, 2);
    ck_assert_int_eq(list.rows[0].metrics_bytes, 36);
    prof_baseline_summaries_free(&list);
    prof_baseline_close(file);
    leave();
}
END_TEST

START_TEST(removing_keeps_the_rest)
{
    enter();
    size_t added, removed;
    struct prof_baseline_file *file = open_file(true);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(save(file, "main", NULL, i, &added), PROF_OK);
    ck_assert_int_eq(save(file, "other", NULL, 1, &added), PROF_OK);
    ck_assert_int_eq(prof_baseline_remove(file, "main", 2, &removed, &err), PROF_OK);
    ck_assert_uint_eq(removed, 3);
    ck_assert_uint_eq(runs_of(file, "main"), 2);
    ck_assert_int_eq(prof_baseline_remove(file, "main", 0, &removed, &err), PROF_OK);
    ck_assert_uint_eq(removed, 2);
    ck_assert_int_eq(prof_baseline_remove(file, "main", 0, &removed, &err), PROF_NOTFOUND);
    ck_assert_uint_eq(runs_of(file, "other"), 1);
    prof_baseline_close(file);
    leave();
}
END_TEST

START_TEST(a_baseline_moves_to_another_file)
{
    enter();
    char away[128];
    size_t added;
    struct prof_baseline baseline;
    struct prof_baseline_file *file = open_file(true);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(save(file, "main", i ? NULL : "first", i, &added), PROF_OK);
    ck_assert_int_eq(prof_baseline_load(file, "main", 0, &baseline, &err), PROF_OK);
    snprintf(away, sizeof away, "%s/away.json", folder);
    ck_assert_int_eq(prof_baseline_export(&baseline, away, false, &err), PROF_OK);
    ck_assert_int_eq(prof_baseline_export(&baseline, away, false, &err), PROF_EXISTS);
    ck_assert_int_eq(prof_baseline_export(&baseline, away, true, &err), PROF_OK);
    unlink(away);
    ck_assert_int_eq(mkfifo(away, 0600), 0); /* as /dev/null, nothing that a file may replace */
    ck_assert_int_eq(prof_baseline_export(&baseline, away, true, &err), PROF_INVALID);
    unlink(away);
    ck_assert_int_eq(prof_baseline_export(&baseline, away, true, &err), PROF_OK);
    prof_baseline_free(&baseline);

    ck_assert_int_eq(save(file, "main", NULL, 7, &added), PROF_OK);
    ck_assert_int_eq(prof_baseline_read_export(away, &baseline, &err), PROF_OK);
    ck_assert_str_eq(baseline.name, "main");
    ck_assert_uint_eq(baseline.session_count, 3);
    ck_assert_str_eq(baseline.sessions[0].label, "first");
    ck_assert_int_gt(baseline.sessions[0].saved_s, 0);
    const struct prof_baseline_run *run = &baseline.sessions[2].runs[0];
    ck_assert_str_eq(run->metrics, "{\"number\":2}");
    ck_assert_str_eq(run->identity, "host-2");
    ck_assert_int_eq(
        prof_baseline_append(file, "main", baseline.sessions, baseline.session_count, &added, &err),
        PROF_OK);
    ck_assert_uint_eq(added, 0); /* all there */
    ck_assert_uint_eq(runs_of(file, "main"), 4);
    ck_assert_int_eq(
        prof_baseline_append(file, "copy", baseline.sessions, baseline.session_count, &added, &err),
        PROF_OK);
    ck_assert_uint_eq(added, 3);
    prof_baseline_free(&baseline);
    prof_baseline_close(file);
    leave();
}
END_TEST

/* Exports that a user, or a transfer, damaged: refused, whatever is wrong. */
START_TEST(exports_that_are_damaged)
{
#define HEAD "{\"perfkit_baseline\":1,\"name\":\"main\",\"sessions\":"
#define RUN "{\"identity\":\"a\",\"recorded_s\":1,\"metrics\":{}}"
    static const char *const right[] = {HEAD "[]}", HEAD "[{\"saved_s\":1,\"runs\":[" RUN
                                                         "],\"a word of tomorrow\":1}]}"};
    static const char *const wrong[] = {
        "",
        "main",
        "[]",
        "{}",
        HEAD "[]",
        HEAD "{}}",
        HEAD "[1]}",
        HEAD "[{}]}",
        "{\"perfkit_baseline\":2,\"name\":\"main\",\"sessions\":[]}",
        "{\"perfkit_baseline\":1,\"name\":7,\"sessions\":[]}",
        HEAD "[{\"saved_s\":1}]}",
        HEAD "[{\"saved_s\":1.5,\"runs\":[]}]}",
        HEAD "[{\"saved_s\":1,\"runs\":[{}]}]}",
        HEAD "[{\"saved_s\":1,\"runs\":[{\"identity\":\"a\",\"recorded_s\":1,"
             "\"metrics\":\"{}\"}]}]}",
        HEAD "[{\"saved_s\":1,\"runs\":[{\"identity\":7,\"recorded_s\":1,\"metrics\":{}}]}]}"};
    enter();
    char away[128];
    struct prof_baseline baseline;
    snprintf(away, sizeof away, "%s/away.json", folder);
    ck_assert_int_eq(prof_baseline_read_export(away, &baseline, &err), PROF_NOTFOUND);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        write_text(away, right[i]);
        ck_assert_msg(!prof_baseline_read_export(away, &baseline, &err), "%s", right[i]);
        prof_baseline_free(&baseline);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_text(away, wrong[i]);
        ck_assert_msg(prof_baseline_read_export(away, &baseline, &err) == PROF_FORMAT, "%s",
                      wrong[i]);
    }
    struct prof_baseline_run run = {.identity = (char *)"a", .metrics = (char *)"PKRN\2"};
    struct prof_baseline_session session = {.runs = &run, .run_count = 1};
    baseline = (struct prof_baseline){(char *)"main", &session, 1};
    ck_assert_int_eq(prof_baseline_export(&baseline, away, true, &err), PROF_CORRUPT);
    leave();
}
END_TEST

#define WRITERS 6
#define EACH 10

/* Processes that all begin with no file at all. */
START_TEST(writers_at_once_lose_nothing)
{
    enter();
    pid_t writers[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        writers[w] = fork();
        if (writers[w])
            continue;
        bool good = true;
        for (int i = 0; good && i < EACH; i++) {
            size_t added = 0;
            struct prof_baseline_file *file;
            good = !prof_baseline_open(path, true, &file, &err) &&
                   !save(file, "main", i % 2 ? "shared" : NULL, w * EACH + i, &added) && added == 1;
            prof_baseline_close(file);
        }
        if (!good)
            fprintf(stderr, "writer %d: %s\n", w, err.message);
        _exit(good ? 0 : 1);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        ck_assert_int_eq(waitpid(writers[w], &status, 0), writers[w]);
        ck_assert_int_eq(status, 0);
    }
    struct prof_baseline_file *file = open_file(false);
    ck_assert_uint_eq(runs_of(file, "main"), WRITERS * EACH);
    prof_baseline_close(file);
    leave();
}
END_TEST

/* Killed at any point, what was said to be saved is there and the file is whole. */
START_TEST(a_killed_writer_leaves_a_whole_file)
{
    enter();
    prof_baseline_close(open_file(true));
    for (int round = 0; round < 12; round++) {
        int ends[2];
        ck_assert_int_eq(pipe(ends), 0);
        pid_t writer = fork();
        if (!writer) {
            struct prof_baseline_file *file;
            size_t added;
            if (prof_baseline_open(path, true, &file, &err))
                _exit(1);
            for (int i = 0;; i++)
                if (save(file, "main", NULL, round * 100000 + i, &added) ||
                    write(ends[1], "x", 1) != 1)
                    _exit(1);
        }
        char told[4096];
        close(ends[1]);
        ck_assert_int_eq(read(ends[0], told, 1), 1); /* it is in the midst of it */
        usleep((useconds_t)round * 700);
        kill(writer, SIGKILL);
        waitpid(writer, NULL, 0);
        size_t saved = 1;
        ssize_t got;
        while ((got = read(ends[0], told, sizeof told)) > 0)
            saved += (size_t)got;
        close(ends[0]);
        struct prof_baseline_file *file = open_file(false);
        struct prof_baseline baseline;
        ck_assert_int_eq(prof_baseline_load(file, "main", 0, &baseline, &err), PROF_OK);
        size_t mine = 0;
        for (size_t i = 0; i < baseline.session_count; i++)
            mine += (baseline.sessions[i].runs[0].recorded_s - 1000) / 100000 == round;
        ck_assert_uint_ge(mine, saved);
        prof_baseline_free(&baseline);
        prof_baseline_close(file);
    }
    leave();
}
END_TEST

static void write_file(const void *bytes, size_t count)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, count), (ssize_t)count);
    close(fd);
}

/* Reading and writing are both refused, and not a byte is changed. */
static void refused(enum prof_status expected, const char *word)
{
    struct stat before, after;
    struct prof_baseline_file *file;
    ck_assert_int_eq(stat(path, &before), 0);
    for (int write = 0; write < 2; write++) {
        err.message[0] = '\0';
        enum prof_status status = prof_baseline_open(path, write, &file, &err);
        ck_assert_ptr_null(file);
        ck_assert_msg(status == expected, "status %d: %s", status, err.message);
        ck_assert_msg(strstr(err.message, word), "%s", err.message);
        ck_assert_ptr_null(strchr(err.message, '\n'));
    }
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_int_eq(before.st_size, after.st_size);
    ck_assert_int_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

static void run_sql(const char *sql)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(!sqlite3_exec(db, sql, NULL, NULL, NULL), "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

START_TEST(other_files_are_refused_and_left_alone)
{
    enter();
    struct prof_baseline_file *file;
    ck_assert_int_eq(prof_baseline_open(path, false, &file, &err), PROF_NOTFOUND);
    prof_baseline_close(open_file(true));
    static const char text[] = "this is a text file, which is longer than sixteen bytes\n";
    write_file(text, sizeof text);
    refused(PROF_FORMAT, "not a file of baselines");
    write_file(text, 3);
    refused(PROF_FORMAT, "not a file of baselines");
    unlink(path);
    run_sql("CREATE TABLE baseline(id, name); CREATE TABLE session(x)");
    refused(PROF_FORMAT, "another program");
    struct prof_store *capture;
    unlink(path);
    ck_assert_int_eq(prof_store_create(path, false, &capture, &err), PROF_OK);
    ck_assert_int_eq(prof_store_publish(capture, &err), PROF_OK);
    prof_store_close(capture);
    refused(PROF_FORMAT, "a capture");
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0666), 0);
    refused(PROF_FORMAT, "not a regular file");
    leave();
}
END_TEST

START_TEST(damaged_and_newer_files_are_told)
{
    enter();
    size_t added;
    struct prof_baseline_file *file = open_file(true);
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(save(file, "main", NULL, i, &added), PROF_OK);
    prof_baseline_close(file);
    char bytes[200000];
    int fd = open(path, O_RDONLY);
    ssize_t size = read(fd, bytes, sizeof bytes);
    close(fd);
    ck_assert_int_gt(size, 8192);
    ck_assert_int_lt(size, (ssize_t)sizeof bytes);
    static const double parts[] = {0.2, 0.5, 0.8, 0.999};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        write_file(bytes, (size_t)((double)size * parts[i]));
        refused(PROF_CORRUPT, "damaged");
    }
    write_file(bytes, 60);
    refused(PROF_CORRUPT, "cut short");
    write_file(bytes, (size_t)size);
    run_sql("PRAGMA user_version=99");
    refused(PROF_VERSION, "newer perfkit");
    write_file(bytes, (size_t)size);
    run_sql("CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END");
    refused(PROF_CORRUPT, "changed by another program");
    write_file(bytes, (size_t)size);
    run_sql("ALTER TABLE run DROP COLUMN metrics");
    refused(PROF_CORRUPT, "changed by another program");
    leave();
}
END_TEST

START_TEST(names_are_checked)
{
    char name[PROF_BASELINE_NAME_BYTES + 2];
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(prof_baseline_check_name(name, &err), PROF_INVALID);
    name[PROF_BASELINE_NAME_BYTES] = '\0';
    ck_assert_int_eq(prof_baseline_check_name(name, &err), PROF_OK);
    ck_assert_int_eq(prof_baseline_check_name("", &err), PROF_INVALID);
    ck_assert_int_eq(prof_baseline_check_name("a\nb", &err), PROF_INVALID);
}
END_TEST

CHECK_MAIN("baseline", what_is_saved_is_read, removing_keeps_the_rest,
           a_baseline_moves_to_another_file, exports_that_are_damaged, writers_at_once_lose_nothing,
           a_killed_writer_leaves_a_whole_file, other_files_are_refused_and_left_alone,
           damaged_and_newer_files_are_told, names_are_checked)
