/* The driver's own count of device memory, and the clocks: samples get rows once the capture knows
 * the device, with what the target's processes use of it. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "libprof/store/store.h"
#include "tests/check_main.h"
#include "tests/ingest/harness.h"

static const char uuid[] = "GPU-11111111-2222-3333-4444-555555555555";

static void one_device(void *unused)
{
    (void)unused;
    struct wire_device device = {
        .head = {sizeof device, WIRE_DEVICE, WIRE_DEVICE_GPU, collector_new_id()},
        .source = WIRE_SOURCE_CUDA,
        .uuid = collector_text(uuid)};
    collector_define(&device);
    emit_mark(1, collector_text("there"));
}

static void take_samples(struct run *run, struct prof_ingest *ingest)
{
    uint32_t pid = (uint32_t)run->target;
    const struct prof_nvml_process both[] = {{pid, 300}, {1, 40}}, silent[] = {{pid, PROF_UNKNOWN}};
    uint64_t now = prof_now_ns();
    struct prof_ingest_memory samples[] = {
        {uuid, now, 1000, 400, both, 2},
        {"GPU-another", now, 1000, 400, both, 2}, /* not of the capture: left out */
        {uuid, now + 1, 1000, 500, NULL, -1},
        {uuid, now + 2, 1000, 600, silent, 1},
        {uuid, now + 3, 1000, 700, NULL, 0},
    };
    struct prof_error err = {0};
    ck_assert(prof_ingest_has_device(ingest, uuid));
    ck_assert(!prof_ingest_has_device(ingest, "GPU-another"));
    ck_assert_int_eq(prof_ingest_device_memory(ingest, samples, 5, &err), PROF_OK);
    struct prof_nvml_reading reading = {.sm_mhz = 1400,
                                        .sm_max_mhz = 1980,
                                        .memory_mhz = PROF_UNKNOWN,
                                        .power_mw = 650000,
                                        .power_limit_mw = 700000,
                                        .temperature_c = PROF_UNKNOWN,
                                        .throttle = 4,
                                        .energy_mj = 123456789012};
    ck_assert_int_eq(prof_ingest_device_clock(ingest, uuid, now, &reading, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_device_clock(ingest, "GPU-another", now, &reading, &err), PROF_OK);
}

START_TEST(samples_of_known_devices)
{
    struct run run;
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_error err = {0};
    struct prof_ingest_about about = {.command = "test", .start_mono_ns = prof_now_ns()};
    run_prepare(&run, NULL);
    run_start(&run, one_device, NULL);
    waitpid(run.target, &run.wait_status, 0);
    ck_assert_int_eq(prof_store_create(run.capture, false, &store, &err), PROF_OK);
    ck_assert_int_eq(prof_ingest_open(store, run.directory, &about, &ingest, &err), PROF_OK);
    ck_assert(!prof_ingest_has_device(ingest, uuid)); /* nothing is read yet */
    ck_assert_int_eq(prof_ingest_step(ingest, NULL, &err), PROF_OK);
    take_samples(&run, ingest);
    ck_assert_int_eq(prof_ingest_finish(ingest, "complete", false, &err), PROF_OK);
    ck_assert_int_eq(prof_store_publish(store, &err), PROF_OK);
    prof_ingest_close(ingest);
    prof_store_close(store);
    ck_assert_str_eq(run_text(&run, "SELECT group_concat(used||' '||ifnull(process_used, 'n/a')) "
                                    "FROM device_memory"),
                     "400 300,500 n/a,600 n/a,700 0");
    ck_assert_int_eq(run_number(&run, "SELECT count(*) FROM device_memory m JOIN device d ON "
                                      "d.id = m.device WHERE total = 1000 AND m.start > 0"),
                     4);
    ck_assert_str_eq(run_text(&run,
                              "SELECT group_concat(sm_mhz||' '||sm_max_mhz||' '||ifnull("
                              "memory_mhz, 'n/a')||' '||power_mw||' '||power_limit_mw||' '||"
                              "ifnull(temperature, 'n/a')||' '||reasons||' '||energy_mj) FROM "
                              "device_clock"),
                     "1400 1980 n/a 650000 700000 n/a 4 123456789012");
    run_done(&run);
}
END_TEST

CHECK_MAIN("device memory", samples_of_known_devices)
