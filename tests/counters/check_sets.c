/* The metric sets against the real CUPTI, whose host API knows every chip without a GPU: each set
 * is known and fits one pass on each chip that it lists. Skips (77) where there is no CUPTI that
 * samples. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/cuda/exact_subjects.h"
#include "collectors/cuda/profiler_api.h"
#include "samplers/counters/pm_api.h"
#include "samplers/counters/sets.h"
#include "tests/check_main.h"

/* The metrics of a set on a chip; returns how many. */
static size_t metrics_of(const struct counter_set *set, enum counter_family family,
                         const char *metrics[COUNTER_SET_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (!set->rows[i].metric[family])
            continue;
        ck_assert_uint_lt(count, COUNTER_SET_MAX);
        metrics[count++] = set->rows[i].metric[family];
    }
    return count;
}

/* Passes that the metrics need on the chip; a negative result of CUPTI when they cannot be. */
static int passes_of(int profiler, const char *chip, const char *const *metrics, size_t count)
{
    struct pm_host_open open = {
        .size = PM_SIZE(pm_host_open, host), .profiler = profiler, .chip = chip};
    int result = pm.ProfilerHostInitialize(&open);
    if (result)
        return -result;
    struct pm_host_add add = {
        .size = PM_SIZE(pm_host_add, count), .host = open.host, .metrics = metrics, .count = count};
    struct pm_host_config_size size = {.size = PM_SIZE(pm_host_config_size, bytes),
                                       .host = open.host};
    result = pm.ProfilerHostConfigAddMetrics(&add);
    result = result ? result : pm.ProfilerHostGetConfigImageSize(&size);
    struct pm_host_config get = {.size = PM_SIZE(pm_host_config, config),
                                 .host = open.host,
                                 .bytes = size.bytes,
                                 .config = malloc(size.bytes + 1)};
    result = result ? result : pm.ProfilerHostGetConfigImage(&get);
    struct pm_host_passes ask = {
        .size = PM_SIZE(pm_host_passes, passes), .bytes = size.bytes, .config = get.config};
    result = result ? result : pm.ProfilerHostGetNumOfPasses(&ask);
    free(get.config);
    pm.ProfilerHostDeinitialize(
        &(struct pm_host_close){.size = PM_SIZE(pm_host_close, host), .host = open.host});
    return result ? -result : (int)ask.passes;
}

static int passes(const char *chip, const char *const *metrics, size_t count)
{
    return passes_of(PM_PROFILER_PM_SAMPLING, chip, metrics, count);
}

START_TEST(every_set_is_one_pass_on_every_chip)
{
    for (size_t s = 0; s < counter_set_count; s++) {
        for (size_t c = 0; c < counter_chip_count; c++) {
            const char *metrics[COUNTER_SET_MAX];
            const char *chip = counter_chips[c].name;
            size_t count = metrics_of(&counter_sets[s], counter_chips[c].family, metrics);
            ck_assert_uint_gt(count, 0);
            for (size_t i = 0; i < count; i++)
                ck_assert_msg(passes(chip, &metrics[i], 1) == 1, "%s: %s", chip, metrics[i]);
            int needed = passes(chip, metrics, count);
            ck_assert_msg(needed == 1, "%s on %s: %d passes", counter_sets[s].name, chip, needed);
        }
    }
}
END_TEST

START_TEST(every_exact_pass_is_one_run_of_a_kernel)
{
    static const char *const chips[] = {"GA100", "GA102", "AD102", "AD107", "GH100"};
    for (size_t c = 0; c < sizeof chips / sizeof chips[0]; c++) {
        size_t count;
        const struct exact_pass *all = exact_passes_of(chips[c], &count);
        ck_assert_ptr_nonnull(all);
        for (size_t i = 0; i < count; i++) {
            const char *metrics[EXACT_MAX_COUNTS];
            for (size_t k = 0; k < all[i].count; k++)
                metrics[k] = all[i].counters[k].metric;
            int needed = passes_of(RANGE_PROFILER, chips[c], metrics, all[i].count);
            ck_assert_msg(needed == 1, "%s on %s: %d", metrics[0], chips[c], needed);
        }
    }
}
END_TEST

/* That a pass is a real limit: else the test above would prove nothing. */
START_TEST(cupti_does_count_passes)
{
    static const char *const plain[] = {"sm__inst_executed_pipe_fma.sum",
                                        "sm__pipe_tensor_cycles_active.sum"};
    static const char *const unknown[] = {"sm__no_such_counter.sum"};
    ck_assert_int_eq(passes("GH100", plain, 2), 2);
    ck_assert_int_lt(passes("GH100", unknown, 1), 0);
    ck_assert_int_lt(passes("GX999", plain, 1), 0);
}
END_TEST

START_TEST(tables_are_sound)
{
    for (size_t s = 0; s < counter_set_count; s++) {
        const struct counter_set *set = &counter_sets[s];
        ck_assert_ptr_eq(counter_set_find(set->name), set);
        for (size_t i = 0; i < set->count; i++) {
            const struct counter_row *row = &set->rows[i];
            bool clock_known = !row->clock;
            ck_assert(row->kind >= WIRE_COUNTER_SUM && row->kind <= WIRE_COUNTER_MEAN);
            for (size_t k = 0; k < set->count; k++) {
                ck_assert(k == i || strcmp(set->rows[k].name, row->name) != 0);
                clock_known |= row->clock && strcmp(set->rows[k].name, row->clock) == 0 &&
                               set->rows[k].kind == WIRE_COUNTER_CLOCK;
            }
            ck_assert_msg(clock_known, "%s counts in cycles of %s", row->name, row->clock);
        }
    }
    ck_assert_ptr_null(counter_set_find("none"));
    ck_assert_int_eq(counter_family_of("GH100"), COUNTER_GH100);
    ck_assert_int_eq(counter_family_of("TU102"), COUNTER_FAMILIES);
    ck_assert_uint_eq(counter_traced(COUNTER_GH100, "alu", 130000), 4);
    ck_assert_uint_eq(counter_traced(COUNTER_GH100, "fma", 130000), 0);
    ck_assert_uint_eq(counter_traced(COUNTER_GH100, "alu", 120900), 0);
    ck_assert_uint_eq(counter_traced(COUNTER_GA100, "alu", 130000), 0);
}
END_TEST

/* The pass that tells of tensors comes before those that are for such kernels only, and no counter
 * is in two passes: its launches would be counted twice. */
START_TEST(exact_passes_are_sound)
{
    static const char *const chips[] = {"GA100", "AD102", "GH100"};
    size_t count;
    ck_assert_ptr_null(exact_passes_of("GB100", &count));
    ck_assert_ptr_null(exact_passes_of("", &count));
    for (size_t c = 0; c < sizeof chips / sizeof chips[0]; c++) {
        const struct exact_pass *all = exact_passes_of(chips[c], &count);
        const char *names[EXACT_MAX_PASSES * EXACT_MAX_COUNTS];
        size_t seen = 0;
        bool told = false;
        ck_assert_uint_le(count, EXACT_MAX_PASSES);
        for (size_t i = 0; i < count; i++) {
            ck_assert(all[i].tensor == (i > 1) && all[i].count <= EXACT_MAX_COUNTS);
            for (size_t k = 0; k < all[i].count; k++) {
                for (size_t n = 0; n < seen; n++)
                    ck_assert_str_ne(names[n], all[i].counters[k].name);
                names[seen++] = all[i].counters[k].name;
                told |= i < 2 && strcmp(all[i].counters[k].name, EXACT_TENSOR) == 0;
            }
        }
        ck_assert(told);
    }
}
END_TEST

/* The pass that the device is set up for comes first, and is not taken from others at once. */
START_TEST(passes_change_when_nobody_needs_them)
{
    size_t count;
    bool fresh;
    double values[EXACT_MAX_COUNTS] = {1, 1, 1, 1, 0};
    const struct exact_pass *all = exact_passes_of("GH100", &count);
    struct exact_shape shape = {{1, 2, 3}, {4, 5, 6}, 7}, other = {{1, 2, 3}, {4, 5, 6}, 8};
    ck_assert(exact_subjects_start());
    struct exact_subject *a = exact_subject_of(5, &shape, &fresh);
    ck_assert(fresh && a && !exact_anybody_needs(all, count));
    ck_assert_uint_eq(exact_choose(a, all, count, SIZE_MAX), SIZE_MAX); /* not wanted */
    ck_assert_ptr_eq(exact_subject_of(5, &shape, &fresh), a);
    ck_assert(!fresh);
    struct exact_subject *b = exact_subject_of(5, &other, &fresh);
    ck_assert(fresh && b != a);
    a->wanted = b->wanted = true;
    ck_assert_uint_eq(exact_choose(a, all, count, SIZE_MAX), 0);
    for (unsigned i = 0; i < EXACT_REPEATS; i++)
        ck_assert(!exact_counted(a, all, count, 0, values));
    for (unsigned i = 1; i < EXACT_PATIENCE; i++)
        ck_assert_uint_eq(exact_choose(a, all, count, 0), SIZE_MAX); /* b needs it */
    ck_assert_uint_eq(exact_choose(a, all, count, 0), 1);
    ck_assert_uint_eq(exact_choose(b, all, count, 1), 1); /* it needs both */
    ck_assert(exact_counted(a, all, count, 1, values));   /* tensors are not used: complete */
    ck_assert(!exact_counted(a, all, count, 1, values));
    exact_counted(a, all, count, 1, values);
    ck_assert_uint_eq(exact_choose(a, all, count, 1), SIZE_MAX);
    b->given_up = true;
    ck_assert(!exact_anybody_needs(all, count));
    exact_subjects_forget();
    for (uint32_t i = 1; exact_subject_of(i, &shape, &fresh); i++)
        ck_assert(i < 100000);
    exact_subjects_forget();
}
END_TEST

START_TEST(symbols_have_the_names_of_their_source)
{
    static const struct {
        const char *symbol, *name; /* NULL = none */
    } cases[] = {
        {"_Z4gemmPf", "gemm"},
        {"_ZN2at6native13reduce_kernelILi512ELi1EEEvT_", "at::native::reduce_kernel"},
        {"_ZN12_GLOBAL__N_13addEPf", "(anonymous namespace)::add"},
        {"_ZL6staticPf", "static"},
        {"_ZNK3box3runEv", "box::run"},
        {"_ZSt4swapIfEvRT_S1_", "std::swap"},
        {"gemm", NULL},
        {"_Z", NULL},
        {"_Z99gemm", NULL},
        {"_ZN", NULL},
        {"_Z99999999999999999999gemm", NULL},
    };
    char name[32], little[6];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool found = cuda_kernel_plain_name(cases[i].symbol, name, sizeof name);
        ck_assert_msg(found == (cases[i].name != NULL), "%s", cases[i].symbol);
        if (found)
            ck_assert_str_eq(name, cases[i].name);
    }
    ck_assert(!cuda_kernel_plain_name("_ZN3abc3defEv", little, sizeof little));
}
END_TEST

int main(void)
{
    const struct check_test tests[] = {
        {tables_are_sound, 1},
        {exact_passes_are_sound, 1},
        {passes_change_when_nobody_needs_them, 1},
        {symbols_have_the_names_of_their_source, 1},
        {every_set_is_one_pass_on_every_chip, 1},
        {cupti_does_count_passes, 1},
        {every_exact_pass_is_one_run_of_a_kernel, 1},
    };
    enum { TABLES = 4 }; /* need no CUPTI */
    char why[256];
    bool there = pm_load(NULL, why, sizeof why);
    int failed = check_run("counter sets", NULL, NULL, tests,
                           there ? sizeof tests / sizeof tests[0] : TABLES);
    if (!there && !failed)
        printf("skipped but for the tables: %s\n", why);
    return failed ? 1 : there ? 0 : 77;
}
