/* What perfkit makes of NVML's answers, with a library that makes them up
 * (tests/counters/fake_nvml.c): two samples are a stretch of time, what a GPU does not have is
 * unknown, and PCIe, which the driver measures for 40 ms, is asked of one GPU at a time. */
#include <math.h>
#include <stdlib.h>

#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "libprof/gpu/nvml.h"
#include "tests/check_main.h"

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static struct prof_nvml *open_with(const char *gpm)
{
    if (gpm)
        setenv("FAKE_GPM", gpm, 1);
    else
        unsetenv("FAKE_GPM");
    struct prof_nvml *nvml = prof_nvml_open();
    ck_assert_ptr_nonnull(nvml);
    return nvml;
}

START_TEST(two_samples_are_a_stretch)
{
    struct prof_nvml *nvml = open_with("yes");
    struct prof_nvml_reading r = prof_nvml_read(nvml, "GPU-1");
    ck_assert(r.has_activity);
    ck_assert(isnan(r.activity.units)); /* one sample says nothing */
    ck_assert_int_eq(r.activity.span_ns, PROF_UNKNOWN);
    ck_assert_int_eq(r.pcie_rx_bytes_s, PROF_UNKNOWN);
    wait_ms(110);
    uint64_t before = prof_now_ns();
    r = prof_nvml_read(nvml, "GPU-1");
    ck_assert_double_eq_tol(r.activity.units, 0.02, 1e-9);
    ck_assert_double_eq_tol(r.activity.occupancy, 0.03, 1e-9);
    ck_assert_double_eq_tol(r.activity.tensor, 0.05, 1e-9);
    ck_assert_double_eq_tol(r.activity.dram, 0.10, 1e-9);
    ck_assert(isnan(r.activity.fp32)); /* its status is an error */
    ck_assert_double_eq_tol(r.activity.nvlink_rx, 60 * 1048576.0, 1);
    ck_assert_int_eq(r.pcie_rx_bytes_s, 21 * 1048576);
    ck_assert_int_eq(r.pcie_tx_bytes_s, 20 * 1048576);
    ck_assert_int_ge(r.activity.span_ns, 100000000);
    r = prof_nvml_read(nvml, "GPU-1"); /* too soon for another: as it was */
    if (prof_now_ns() - before < 50000000)
        ck_assert_double_eq_tol(r.activity.units, 0.02, 1e-9);
    prof_nvml_close(nvml);
}
END_TEST

START_TEST(each_gpu_has_its_own_samples)
{
    struct prof_nvml *nvml = open_with("yes");
    prof_nvml_read(nvml, "GPU-1");
    prof_nvml_read(nvml, "GPU-2");
    wait_ms(110);
    struct prof_nvml_reading one = prof_nvml_read(nvml, "GPU-1");
    struct prof_nvml_reading two = prof_nvml_read(nvml, "GPU-2");
    /* the fake numbers samples over all GPUs: two lie between */
    ck_assert_double_eq_tol(one.activity.units, 0.04, 1e-9);
    ck_assert_double_eq_tol(two.activity.units, 0.04, 1e-9);
    prof_nvml_close(nvml);
}
END_TEST

/* Without the activity, which takes its time. */
START_TEST(clocks_alone)
{
    setenv("FAKE_CLOCKS", "1", 1);
    struct prof_nvml *nvml = open_with("yes");
    struct prof_nvml_reading r = prof_nvml_clocks(nvml, "GPU-1");
    ck_assert_int_eq(r.sm_mhz, 1400);
    ck_assert_int_eq(r.sm_max_mhz, 1980);
    ck_assert_int_eq(r.memory_mhz, 2619);
    ck_assert_int_eq(r.throttle, 4);
    ck_assert_int_eq(r.power_mw, PROF_UNKNOWN);
    ck_assert_int_eq(r.pcie_rx_bytes_s, PROF_UNKNOWN);
    ck_assert(!r.has_activity);
    ck_assert_int_eq(prof_nvml_clocks(nvml, "other").sm_mhz, PROF_UNKNOWN);
    ck_assert_int_eq(prof_nvml_clocks(NULL, "GPU-1").sm_mhz, PROF_UNKNOWN);
    int64_t energy = prof_nvml_energy(nvml, "GPU-1");
    wait_ms(110); /* the counter moves every 100 ms */
    ck_assert_int_gt(energy, 0);
    ck_assert_int_ge(prof_nvml_energy(nvml, "GPU-1") - energy, 50000);
    unsetenv("FAKE_CLOCKS");
    ck_assert_int_eq(prof_nvml_clocks(nvml, "GPU-1").throttle, PROF_UNKNOWN);
    ck_assert_int_eq(prof_nvml_energy(nvml, "GPU-1"), PROF_UNKNOWN);
    prof_nvml_close(nvml);
}
END_TEST

START_TEST(what_a_gpu_does_not_have_is_unknown)
{
    static const char *const kinds[] = {NULL, "none", "fails"};
    for (int i = 0; i < 3; i++) {
        struct prof_nvml *nvml = open_with(kinds[i]);
        prof_nvml_read(nvml, "GPU-1");
        wait_ms(110);
        struct prof_nvml_reading r = prof_nvml_read(nvml, "GPU-1");
        ck_assert_int_eq(r.has_activity, i == 2);
        ck_assert(isnan(r.activity.units) && isnan(r.activity.nvlink_tx));
        ck_assert_int_eq(r.gpu_percent, PROF_UNKNOWN);
        prof_nvml_close(nvml);
    }
    struct prof_nvml_reading r = prof_nvml_read(NULL, "GPU-1");
    ck_assert(isnan(r.activity.dram) && !r.has_activity);
}
END_TEST

START_TEST(pcie_is_asked_of_one_gpu_in_a_look)
{
    static const char *const uuids[] = {"GPU-1", "GPU-2", "GPU-3"};
    struct prof_nvml *nvml = open_with(NULL);
    bool known[3] = {false};
    for (int look = 0; look < 3; look++) {
        int fresh = 0;
        uint64_t before = prof_now_ns();
        for (int i = 0; i < 3; i++) {
            bool is = prof_nvml_read(nvml, uuids[i]).pcie_rx_bytes_s != PROF_UNKNOWN;
            fresh += is && !known[i];
            known[i] |= is;
        }
        ck_assert_int_ge(fresh, look < 1);
        if (prof_now_ns() - before < 150000000) /* else there was time for another */
            ck_assert_int_le(fresh, 1);
        wait_ms(210);
    }
    ck_assert(known[0] && known[1] && known[2]);
    prof_nvml_close(nvml);
}
END_TEST

CHECK_MAIN("nvml", two_samples_are_a_stretch, each_gpu_has_its_own_samples, clocks_alone,
           what_a_gpu_does_not_have_is_unknown, pcie_is_asked_of_one_gpu_in_a_look)
