/* The history of PyTorch's allocator as its hook leaves it in the spool folder: blocks with their
 * Python frames, lines that make no sense, files of processes that nobody knows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"
#include "tests/ingest/harness.h"

static void one_device(void *unused)
{
    (void)unused;
    struct wire_device device = {
        .head = {sizeof device, WIRE_DEVICE, WIRE_DEVICE_GPU, collector_new_id()},
        .source = WIRE_SOURCE_CUDA,
        .ordinal = 1};
    collector_define(&device);
    emit_mark(1, collector_text("there"));
}

static void write_history(const struct run *run, int pid, const char *lines)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%d.blocks", run->directory, pid);
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fprintf(out, "perfkit-blocks 1 %d\n%s", pid, lines);
    fclose(out);
}

/* Also what a hostile or broken writer leaves. */
static const char lines_format[] = "F 1 7 /src/model.py\tforward\n"
                                   "F 2 90 \tmain\n"
                                   "S 1 1,2\n"
                                   "A 1 %lld 4096 1000 1\n"
                                   "A 1 %lld 8192 2000 0\n"
                                   "D 1 %lld 8192\n"
                                   "D 1 %lld 777\n" /* not known: from before the history */
                                   "F 9 1 out.py\tof order\n"
                                   "F 3 1 no tab\n"
                                   "S 2 5\n"
                                   "S 2 \n"
                                   "A 1 99999999999999999999 1 1 0\n"
                                   "A 1 5 1 1 99\n"
                                   "A -1 5 1 1 0\n"
                                   "A 9999999 %lld 12288 5 0\n" /* a device that there is not */
                                   "nonsense\n"
                                   "\n"
                                   "A 1";

static void finish(struct run *run, int64_t now_us)
{
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_error err = {0};
    struct prof_ingest_about about = {.command = "test",
                                      .start_mono_ns = prof_now_ns(),
                                      .start_realtime_ns = (uint64_t)now_us * 1000u};
    ck_assert_int_eq(prof_store_create(run->capture, false, &store, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_open(store, run->directory, &about, &ingest, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    ck_assert_msg(prof_ingest_finish(ingest, "complete", false, &err) == PROF_OK, "%s",
                  err.message);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_ingest_close(ingest);
    prof_store_close(store);
}

START_TEST(blocks_with_their_frames)
{
    struct run run;
    char lines[2048];
    const long long us = 1700000000000000;
    run_prepare(&run, NULL);
    run_start(&run, one_device, NULL);
    waitpid(run.target, &run.wait_status, 0);
    snprintf(lines, sizeof lines, lines_format, us + 10, us + 20, us + 50, us + 60, us + 70);
    write_history(&run, (int)run.target, lines);
    write_history(&run, 1, "A 1 5 1 1 0\n"); /* of no process of the run */
    finish(&run, us);
    ck_assert_str_eq(run_text(&run, "SELECT group_concat(start||' '||ifnull(\"end\", 'n/a')||' '||"
                                    "bytes||' '||address||' '||ifnull(device, 'n/a'), ', ') "
                                    "FROM block"),
                     "10000 n/a 1000 4096 1, 20000 50000 2000 8192 1, 70000 n/a 5 12288 n/a");
    ck_assert_str_eq(run_text(&run,
                              "SELECT v.value||' '||f.value||':'||y.line FROM block b "
                              "JOIN stack s ON s.id = b.stack JOIN symbol y ON y.frame = s.frame "
                              "JOIN string v ON v.id = y.function JOIN string f ON f.id = y.file"),
                     "forward /src/model.py:7");
    ck_assert_int_eq(run_number(&run, "SELECT value FROM capture_health WHERE subject = 'block'"),
                     10);
    run_done(&run);
}
END_TEST

CHECK_MAIN("blocks", blocks_with_their_frames)
