/* Runs with many phases, as of a program each of whose threads has a loop of its own: judging them
 * takes steps in proportion to the run, and what a phase is said to have is what it has. */
#include <stdio.h>
#include <string.h>

#include "libprof/analysis/capture.h"
#include "libprof/analysis/facts/facts.h"
#include "tests/check_main.h"
#include "tests/diagnosis/programs.h"

#define ITERATIONS 10

/* ---- steps ----------------------------------------------------------------------------------- */

/* What walks call for each operation or other thing, by the linker's --wrap. */
static long long steps;

#define COUNT_STEPS(type, name, parameters, ...)                                                   \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        steps++;                                                                                   \
        return __real_##name(__VA_ARGS__);                                                         \
    }
typedef const struct prof_op *next_operation;
COUNT_STEPS(next_operation, prof_facts_next,
            (const struct prof_facts *facts, struct prof_op_walk *walk, enum prof_op_kind *kind),
            facts, walk, kind)
COUNT_STEPS(next_operation, prof_facts_next_in_phase,
            (const struct prof_facts *facts, struct prof_op_walk *walk, enum prof_op_kind *kind),
            facts, walk, kind)
COUNT_STEPS(bool, prof_facts_next_item,
            (const struct prof_facts *facts, const struct prof_phase_items *of, size_t count,
             size_t *at, size_t *item),
            facts, of, count, at, item)

/* What SQLite executed, as each statement ends. */
static int add_sql_steps(unsigned event, void *sum, void *statement, void *ns)
{
    (void)event;
    (void)ns;
    *(long long *)sum += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1);
    return 0;
}

/* ---- programs -------------------------------------------------------------------------------- */

static void loop_of(struct scene *s, const char *name, int config)
{
    scene_push(s, name);
    for (int i = 0; i < ITERATIONS; i++) {
        scene_push(s, "step");
        scene_copy(s, 0, SCENE_UP, SCENE_PAGEABLE, 4096, 3 * US, false);
        scene_fill(s, 0, 4096, 2 * US);
        scene_host(s, 100 * US);
        scene_kernel(s, 0, config, 20 * US);
        scene_kernel(s, 1, config, 20 * US);
        scene_copy(s, 0, SCENE_DOWN, SCENE_PAGEABLE, 4096, 3 * US, i % 2);
        scene_call(s, "cudaMalloc", 30 * US);
        scene_lifetime(s, s->host, s->host + 200 * US, 4096, 3);
        scene_sync(s);
        scene_pop(s);
    }
    scene_pop(s);
}

static void begin_loops(struct scene *s)
{
    scene_open(s, "cuda", "gpu");
    scene_config(s, "work", 264, 256, 32);
    scene_second(s, false, false);
    scene_as(s, 1);
    scene_host(s, 700 * US);
}

/* Threads whose loops overlap; every second one leaves work behind that runs in the next. */
static void loops(struct scene *s, int count)
{
    char name[16];
    for (int p = 0; p < count; p++) {
        scene_as(s, p % 2);
        snprintf(name, sizeof name, "loop %c%c", 'a' + p / 26, 'a' + p % 26);
        loop_of(s, name, 1);
        if (p % 4 == 0)
            scene_kernel(s, 0, 1, 3000 * US);
    }
}

static void sample_devices(struct scene *s)
{
    scene_sql(s,
              "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i * 50000 < "
              "%lld) INSERT INTO device_clock(device, start, sm_mhz, sm_max_mhz, reasons) "
              "SELECT 1, i * 50000, 1000 + i %% 7, 1980, 4 FROM n",
              (long long)s->host);
    scene_sql(s, "INSERT INTO overhead(start, duration, thread, kind) SELECT start, 1000, 1 + id "
                 "%% 2, 2 FROM device_clock");
    scene_sql(s, "INSERT INTO ceiling(device, name, value, measured_at) VALUES(1, 'record_launch', "
                 "1000, 1)");
}

/* Of the whole judging, within the program and within SQLite. */
static void count_steps(int count, long long *own, long long *sql)
{
    struct scene s;
    struct prof_findings findings;
    struct prof_error err = {0};
    begin_loops(&s);
    loops(&s, count);
    sample_devices(&s);
    struct prof_capture *capture = scene_close(&s);
    *sql = 0;
    sqlite3_trace_v2(capture->db, SQLITE_TRACE_PROFILE, add_sql_steps, sql);
    steps = 0;
    ck_assert_msg(!prof_findings(capture, NULL, &findings, &err), "%s", err.message);
    *own = steps;
    ck_assert_uint_eq(findings.phase_count, (size_t)count);
    ck_assert_uint_gt(findings.count, 0);
    scene_done(capture, &findings);
}

/* Four times as many are no more than five times the work; they were ten times. */
START_TEST(judging_takes_steps_in_proportion_to_the_run)
{
    long long few, many, few_sql, many_sql;
    count_steps(25, &few, &few_sql);
    count_steps(100, &many, &many_sql);
    ck_assert_int_gt(few_sql, 0);
    ck_assert_msg(many <= 5 * few, "%lld steps, then %lld", few, many);
    ck_assert_msg(many_sql <= 5 * few_sql, "%lld of SQLite, then %lld", few_sql, many_sql);
}
END_TEST

/* ---- what a phase has ------------------------------------------------------------------------ */

/* Of what a walk comes by and the phase has, in order. */
struct had {
    size_t count;
    uint64_t hash;
};

static void add_had(struct had *had, bool has, int64_t value)
{
    if (!has)
        return;
    had->count++;
    had->hash = had->hash * 31 + (uint64_t)value;
}

#define KINDS 6

static void look_at_phase(const struct prof_facts *f, struct had had[KINDS])
{
    struct prof_op_walk walk = {0};
    const struct prof_op *op;
    enum prof_op_kind kind;
    memset(had, 0, KINDS * sizeof *had);
    while ((op = prof_facts_next_in_phase(f, &walk, &kind)))
        add_had(&had[0], prof_facts_launched(f, op) || prof_facts_has(f, op->start),
                op->start * 4 + (int64_t)kind);
    for (size_t at = 0, i; prof_facts_next_item(f, &f->phase_calls, f->calls.count, &at, &i);) {
        int64_t start = f->calls.data[i].start;
        add_had(&had[1], prof_facts_called(f, start) || prof_facts_has(f, start), start);
    }
    size_t count = f->lifetimes.count;
    for (size_t at = 0, i; prof_facts_next_item(f, &f->phase_lifetimes, count, &at, &i);)
        add_had(&had[2], prof_facts_called(f, f->lifetimes.data[i].start), (int64_t)i);
    count = f->ranges.nodes.count;
    for (size_t at = 0, i; prof_facts_next_item(f, &f->phase_ranges, count, &at, &i);)
        add_had(&had[3], prof_facts_called(f, f->ranges.nodes.data[i].begin), (int64_t)i);
    for (size_t at = 0, i; prof_facts_next_item(f, &f->phase_clocks, f->clocks.count, &at, &i);)
        add_had(&had[4], prof_facts_has(f, f->clocks.data[i].start), (int64_t)i);
    for (size_t at = 0, i; prof_facts_next_item(f, &f->phase_cupti, f->cupti.count, &at, &i);)
        add_had(&had[5], prof_facts_called(f, f->cupti.data[i].start), (int64_t)i);
}

START_TEST(an_index_leaves_out_nothing_of_a_phase)
{
    enum { PHASES = 12 };
    struct scene s;
    struct prof_facts f;
    struct prof_error err = {0};
    struct had all[PHASES][KINDS], indexed[KINDS], sum[KINDS] = {0};
    begin_loops(&s);
    loops(&s, PHASES);
    sample_devices(&s);
    struct prof_capture *capture = scene_close(&s);
    ck_assert_msg(!prof_facts_load(&f, capture, NULL, &err), "%s", err.message);
    ck_assert_uint_eq(f.phases.list.count, PHASES);
    /* Times in which phases launch may overlap, as that of an iteration with a long pause. */
    struct prof_intervals *long_one = &f.phases.list.data[1].host;
    long_one->data[long_one->count - 1].end = f.phases.list.data[6].end;
    for (size_t p = 0; p < PHASES; p++) {
        ck_assert(!prof_facts_phase(&f, p, &err));
        look_at_phase(&f, all[p]);
    }
    ck_assert(prof_facts_index_phases(&f));
    ck_assert_ptr_nonnull(f.phase_ops.first);
    for (size_t p = 0; p < PHASES; p++) {
        ck_assert(!prof_facts_phase(&f, p, &err));
        look_at_phase(&f, indexed);
        for (int k = 0; k < KINDS; k++) {
            ck_assert_uint_eq(indexed[k].count, all[p][k].count);
            ck_assert_uint_eq(indexed[k].hash, all[p][k].hash);
            sum[k].count += indexed[k].count;
        }
    }
    for (int k = 0; k < KINDS; k++)
        ck_assert_uint_gt(sum[k].count, PHASES);
    prof_facts_free(&f);
    prof_close(capture);
}
END_TEST

CHECK_MAIN("many_phases", judging_takes_steps_in_proportion_to_the_run,
           an_index_leaves_out_nothing_of_a_phase)
