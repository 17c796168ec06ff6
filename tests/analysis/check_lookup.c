/* Opening captures and the lookups: what the file says, what it does not, and growth. */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/store/store.h"
#include "tests/analysis/fixture.h"

START_TEST(an_empty_capture_answers_everything)
{
    struct prof_capture *c = fixture(NULL);
    ck_assert_int_eq(prof_info(c)->state, PROF_STATE_UNKNOWN);
    ck_assert_int_eq(prof_info(c)->duration_ns, PROF_UNKNOWN);
    ck_assert_ptr_null(prof_info(c)->command);
    ck_assert_int_eq(prof_wall_ns(c, NULL), PROF_UNKNOWN);
    const struct prof_process *p;
    ck_assert_uint_eq(prof_processes(c, &p), 0);
    ck_assert_ptr_null(prof_process(c, 1));
    ck_assert_ptr_null(prof_string(c, 1, NULL));

    struct prof_kernel_summary kernels;
    struct prof_transfer_summary transfers;
    struct prof_api_summary calls;
    struct prof_sync_summary waits;
    struct prof_range_summary ranges;
    struct prof_memory_summary memory;
    struct prof_memory_timeline timeline;
    struct prof_utilisation utilisation;
    struct prof_trust trust;
    struct prof_flame flame;
    ck_ok(prof_kernel_summary(c, NULL, PROF_BY_NAME, &kernels, &err));
    ck_ok(prof_transfer_summary(c, NULL, &transfers, &err));
    ck_ok(prof_api_summary(c, NULL, &calls, &err));
    ck_ok(prof_sync_summary(c, NULL, &waits, &err));
    ck_ok(prof_range_summary(c, NULL, &ranges, &err));
    ck_ok(prof_memory_summary(c, NULL, 5, &memory, &err));
    ck_ok(prof_memory_timeline(c, NULL, -1, 0, &timeline, &err));
    ck_ok(prof_utilisation(c, NULL, 5, 10, &utilisation, &err));
    ck_ok(prof_trust(c, &trust, &err));
    ck_ok(prof_flame(c, NULL, PROF_FLAME_DEVICE_NS, &flame, &err));
    ck_assert_uint_eq(kernels.count + transfers.count + calls.count + waits.count + ranges.count +
                          memory.count + memory.leak_count + utilisation.count,
                      0);
    ck_assert_int_eq(memory.total.peak_ns, PROF_UNKNOWN);
    ck_assert_uint_eq(flame.count, 1);
    ck_assert(!trust.complete);
    prof_kernel_summary_free(&kernels);
    prof_transfer_summary_free(&transfers);
    prof_api_summary_free(&calls);
    prof_sync_summary_free(&waits);
    prof_range_summary_free(&ranges);
    prof_memory_summary_free(&memory);
    prof_memory_timeline_free(&timeline);
    prof_utilisation_free(&utilisation);
    prof_trust_free(&trust);
    prof_flame_free(&flame);

    struct prof_events *events;
    struct prof_event event;
    ck_ok(prof_events_open(c, NULL, PROF_EVENTS_ALL, &events, &err));
    ck_assert(!prof_events_next(events, &event));
    ck_ok(prof_events_close(events, &err));
    prof_close(c);
}
END_TEST

START_TEST(lookups_tell_what_the_file_says)
{
    struct prof_capture *c =
        fixture_with_base("INSERT INTO launch_config(id, name, demangled, registers, ragged) "
                          "VALUES(50, 3, 4, 32, 1);"
                          "INSERT INTO string(id, value) VALUES(40, x'610062')");
    const struct prof_info *info = prof_info(c);
    ck_assert_int_eq(info->state, PROF_STATE_COMPLETE);
    ck_assert_str_eq(info->command, "./a.out");
    ck_assert_int_eq(info->duration_ns, 1000000);
    ck_assert_int_eq(info->exit_status, PROF_UNKNOWN);
    ck_assert_int_gt(info->file_bytes, 0);
    const struct prof_process *p = prof_process(c, 1);
    ck_assert_int_eq(p->pid, 100);
    ck_assert_int_eq(p->parent_pid, PROF_UNKNOWN);
    ck_assert_str_eq(p->host, "box"); /* from the capture */
    ck_assert(p->has_events);
    ck_assert_str_eq(prof_thread(c, 1)->name, "main");
    ck_assert_ptr_null(prof_thread(c, 2)->name);
    ck_assert_int_eq(prof_device(c, 1)->units, 132);
    ck_assert_int_eq(prof_device(c, 1)->memory_bytes, PROF_UNKNOWN);
    ck_assert_int_eq(prof_stream(c, 2)->native, 13);
    ck_assert_int_eq(prof_context(c, 1)->device, 1);
    const struct prof_config *k = prof_config(c, 50);
    ck_assert_str_eq(k->name, "delta");
    ck_assert_str_eq(k->full_name, "gamma");
    ck_assert_int_eq(k->registers, 32);
    ck_assert_int_eq(k->grid[0], PROF_UNKNOWN);
    ck_assert(k->ragged);
    ck_assert_str_eq(prof_config(c, 1)->name, "alpha");
    ck_assert_int_eq(prof_config(c, 3)->block[0], PROF_UNKNOWN);
    ck_assert_ptr_null(prof_config(c, 4));
    ck_assert_ptr_null(prof_config(c, -1));
    size_t length;
    ck_assert_mem_eq(prof_string(c, 40, &length), "a\0b", 4);
    ck_assert_uint_eq(length, 3);
    ck_assert_ptr_eq(prof_string(c, 40, NULL), prof_string(c, 40, NULL));
    ck_assert_ptr_null(prof_string(c, 999, &length));
    ck_assert_str_eq(prof_copy_kind_text(1), "HtoD");
    ck_assert_str_eq(prof_copy_kind_text(PROF_COPY_MEMSET), "memset");
    ck_assert_str_eq(prof_copy_kind_text(50), "unknown");
    ck_assert_str_eq(prof_memory_kind_text(-1), "unknown");
    prof_close(c);
}
END_TEST

START_TEST(one_gpu_of_several_processes_is_one_device)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO process(pid, host) VALUES(200, NULL), (300, 'other');"
        "INSERT INTO device(process, uuid) VALUES(2, 'GPU-1'), (3, 'GPU-1'), (2, NULL), (2, NULL)");
    ck_assert_int_eq(prof_device(c, 1)->physical, 1);
    ck_assert_int_eq(prof_device(c, 2)->physical, 1);
    ck_assert_int_eq(prof_device(c, 3)->physical, 3); /* another host */
    ck_assert_int_eq(prof_device(c, 4)->physical, 4);
    ck_assert_int_eq(prof_device(c, 5)->physical, 5);
    prof_close(c);
}
END_TEST

static void expect_title(struct prof_capture *c, int64_t device, const char *title,
                         const char *name)
{
    ck_assert_str_eq(prof_device(c, device)->title, title);
    ck_assert_str_eq(prof_device(c, device)->full_name, name);
}

START_TEST(devices_of_one_number_are_told_apart)
{
    struct prof_capture *c = fixture(
        "INSERT INTO process(id, pid, host, rank) VALUES(2, 20, 'a', 0), (3, 21, 'a', 1), "
        "(4, 21, 'b', NULL), (5, 21, 'c\x1b', NULL), (6, 30, 'a', NULL), "
        "(7, 40, NULL, NULL), (8, 41, NULL, NULL);"
        "INSERT INTO device(process, api, kind, ordinal, name, uuid) VALUES"
        "(2, 'opencl', 'cpu', 0, 'EPYC', NULL), (3, 'opencl', 'cpu', 0, 'EPYC', NULL),"
        "(2, 'cuda', 'gpu', 0, 'H200', 'u0'), (4, 'cuda', 'gpu', 0, 'H200', 'u1'),"
        "(5, 'cuda', 'gpu', 0, 'H200', 'u1'), (3, 'cuda', 'gpu', 0, 'H200', 'u0'),"
        "(6, 'opencl', 'other', 0, 'board', NULL), (6, 'opencl', 'other', 0, 'board', NULL),"
        "(4, 'opencl', 'other', 1, 'a', NULL), (5, 'opencl', 'other', 1, 'b', NULL),"
        "(3, 'cuda', 'gpu', 7, 'L4', 'u2'), (2, 'opencl', 'gpu', 7, 'L4', NULL), "
        "(7, 'cuda', 'gpu', 5, 'A', 'u5'), (8, 'cuda', 'gpu', 5, 'B', 'u6')");
    expect_title(c, 1, "CPU 0 (rank 0)", "CPU 0 (rank 0) EPYC");
    expect_title(c, 2, "CPU 0 (rank 1)", "CPU 0 (rank 1) EPYC");
    expect_title(c, 3, "GPU 0 (a)", "GPU 0 (a) H200");
    expect_title(c, 4, "GPU 0 (b)", "GPU 0 (b) H200");
    expect_title(c, 5, "GPU 0 (c?)", "GPU 0 (c?) H200"); /* nothing that a terminal obeys */
    expect_title(c, 6, "GPU 0 (a)", "GPU 0 (a) H200");   /* seen by another rank */
    expect_title(c, 7, "device 0 (number 7 of the file)", "device 0 (number 7 of the file) board");
    expect_title(c, 9, "device 1 (process 21 on b)", "a");
    expect_title(c, 11, "GPU 7 (cuda)", "GPU 7 (cuda) L4");
    expect_title(c, 12, "GPU 7 (opencl)", "GPU 7 (opencl) L4");
    expect_title(c, 13, "GPU 5 (process 40)", "A");
    expect_title(c, 14, "GPU 5 (process 41)", "B");
    prof_close(c);
}
END_TEST

START_TEST(wall_time_is_cut_to_the_filter)
{
    struct prof_capture *c = fixture_with_base(NULL);
    ck_assert_int_eq(prof_wall_ns(c, NULL), 1000000);
    ck_assert_int_eq(prof_wall_ns(c, &(struct prof_filter){.begin_ns = 400000}), 600000);
    ck_assert_int_eq(prof_wall_ns(c, &(struct prof_filter){.begin_ns = 400000, .end_ns = 500000}),
                     100000);
    ck_assert_int_eq(prof_wall_ns(c, &(struct prof_filter){.begin_ns = 2000000}), 0);
    struct prof_kernel_summary kernels;
    struct prof_error err = {0};
    ck_assert_int_eq(prof_kernel_summary(c, &(struct prof_filter){.begin_ns = 9, .end_ns = 5},
                                         PROF_BY_NAME, &kernels, &err),
                     PROF_INVALID);
    prof_kernel_summary_free(&kernels);
    prof_close(c);
}
END_TEST

START_TEST(a_growing_capture_is_seen_to_grow)
{
    struct prof_capture *c = fixture_kept("UPDATE capture SET state = 'recording', duration = NULL;"
                                          "INSERT INTO kernel(start, duration, stream, config) "
                                          "VALUES(100, 50, 1, 1)");
    struct prof_kernel_summary kernels;
    ck_assert_int_eq(prof_info(c)->state, PROF_STATE_RECORDING);
    fixture_write("INSERT INTO string(id, value) VALUES(60, 'fresh');"
                  "INSERT INTO launch_config(id, name) VALUES(9, 60);"
                  "INSERT INTO kernel(start, duration, stream, config) VALUES(5000000, 70, 1, 9)");
    ck_ok(prof_refresh(c, &err));
    ck_ok(prof_kernel_summary(c, NULL, PROF_BY_NAME, &kernels, &err));
    ck_assert_uint_eq(kernels.count, 2);
    ck_assert_str_eq(kernels.rows[0].name, "fresh");
    ck_assert_int_eq(kernels.wall_ns, 5000070);
    prof_kernel_summary_free(&kernels);
    fixture_write("UPDATE capture SET state = 'complete', duration = 6000000");
    ck_ok(prof_refresh(c, &err));
    ck_assert_int_eq(prof_info(c)->state, PROF_STATE_COMPLETE);
    ck_assert_int_eq(prof_wall_ns(c, NULL), 6000000);
    fixture_remove(c);
}
END_TEST

/* A writer at work on the finished file, between its first and last change: 0 if it could end. */
static int write_slowly(const char *path, int tell)
{
    sqlite3 *db;
    bool ok =
        !sqlite3_open(path, &db) &&
        !sqlite3_exec(
            db, "PRAGMA synchronous=OFF; BEGIN EXCLUSIVE; INSERT INTO string(value) VALUES('late')",
            NULL, NULL, NULL) &&
        write(tell, "", 1) == 1;
    usleep(100000);
    return !ok || sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
}

/* While the writer makes it one plain file there is a journal, which a reader may not undo. */
START_TEST(a_capture_that_is_being_closed_opens_a_moment_later)
{
    char folder[] = "/tmp/check_lookup.XXXXXX", path[64], journal[80], byte;
    struct prof_store *store;
    struct prof_capture *c;
    struct prof_error why = {0};
    int told[2], status;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/c.sqlite", folder);
    snprintf(journal, sizeof journal, "%s-journal", path);
    ck_ok(prof_store_create(path, false, &store, &err));
    ck_ok(prof_store_publish(store, &err));
    prof_store_close(store);
    ck_assert_int_eq(pipe(told), 0);
    pid_t child = fork();
    if (!child)
        _exit(write_slowly(path, told[1]));
    close(told[1]);
    ck_assert_int_eq(read(told[0], &byte, 1), 1);
    close(told[0]);
    ck_assert_msg(!prof_open(path, &c, &why), "%s", why.message);
    ck_assert_str_eq(why.message, "");
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(prof_string(c, 1, NULL), "late");
    prof_close(c);
    ck_assert_int_ne(access(journal, F_OK), 0);
    unlink(path);
    rmdir(folder);
}
END_TEST

CHECK_MAIN("lookup", a_capture_that_is_being_closed_opens_a_moment_later,
           an_empty_capture_answers_everything, lookups_tell_what_the_file_says,
           one_gpu_of_several_processes_is_one_device, devices_of_one_number_are_told_apart,
           wall_time_is_cut_to_the_filter, a_growing_capture_is_seen_to_grow)
