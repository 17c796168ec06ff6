/* The kernel's records of a program's threads on their way to rows: made by hand here, so that it
 * needs no rights and the times are known. */
#include <check.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "samplers/cpu/perf_events.h"
#include "samplers/cpu/records.h"
#include "libprof/base/clock.h"
#include "tests/check_main.h"
#include "tests/ingest/harness.h"

#define PERIOD 1000000u
#define CLOCK_EVENT 1u
#define SWITCH_EVENT 2u
#define PID 4100000u /* above the kernel's limit: no such process */
#define SCENE_NUMBER(sql) run_number(&scene.run, sql)

struct scene {
    struct run run;
    struct cpu_ring ring;
    struct cpu_perf perf;
    struct cpu_records records;
    uint64_t zero; /* a moment that times are told from */
};

static struct scene scene;

static void nothing(void *unused)
{
    (void)unused;
}

static void begin(void)
{
    scene = (struct scene){.ring = {.clock = -1, .switches = -1, .switch_id = SWITCH_EVENT},
                           .perf = {.count = 1, .period_ns = PERIOD}};
    run_prepare(&scene.run, NULL);
    scene.zero = prof_now_ns(); /* the kernel sees a process before it tells of itself */
    run_start(&scene.run, nothing, NULL);
    scene.perf.rings = &scene.ring;
    scene.records = (struct cpu_records){.perf = &scene.perf, .tasks = {.period_ns = PERIOD}};
    ck_assert(cpu_out_open(&scene.records.out, scene.run.directory));
}

static void end(void)
{
    cpu_out_close(&scene.records.out);
    cpu_tasks_free(&scene.records.tasks);
    cpu_unwinder_free(&scene.records.unwinder);
    run_ingest(&scene.run, 1000);
}

/* ---- records --------------------------------------------------------------------------------- */

struct made {
    _Alignas(8) unsigned char bytes[1024];
    size_t used;
};

static void put(struct made *made, const void *data, size_t bytes)
{
    ck_assert(made->used + bytes <= sizeof made->bytes);
    memcpy(made->bytes + made->used, data, bytes);
    made->used += bytes;
}

static void put_number(struct made *made, uint64_t number)
{
    put(made, &number, sizeof number);
}

static void put_pair(struct made *made, uint32_t a, uint32_t b)
{
    put(made, (uint32_t[]){a, b}, 8);
}

static struct made start_record(uint32_t type, uint16_t misc)
{
    struct made made = {.used = 0};
    struct perf_event_header head = {.type = type, .misc = misc};
    put(&made, &head, sizeof head);
    return made;
}

static void finish_record(struct made *made)
{
    uint16_t size = (uint16_t)made->used;
    memcpy(made->bytes + offsetof(struct perf_event_header, size), &size, sizeof size);
}

/* Behind every record but samples. */
static void put_trailer(struct made *made, uint32_t pid, uint32_t tid, uint64_t time)
{
    put_pair(made, pid, tid);
    put_number(made, time);
    put_pair(made, 3, 0); /* processor */
    put_number(made, CLOCK_EVENT);
    finish_record(made);
}

static void give(const struct made *made, uint64_t time)
{
    cpu_records_take(&scene.records, (const struct perf_event_header *)(const void *)made->bytes,
                     time);
}

static struct made sample(uint32_t pid, uint32_t tid, uint64_t time, uint64_t event, uint16_t mode,
                          const uint64_t *chain, uint64_t frames)
{
    struct made made = start_record(PERF_RECORD_SAMPLE, mode);
    put_number(&made, event);
    put_pair(&made, pid, tid);
    put_number(&made, time);
    put_pair(&made, 3, 0);
    put_number(&made, frames);
    for (uint64_t i = 0; i < frames; i++)
        put_number(&made, chain[i]);
    finish_record(&made);
    return made;
}

static void give_sample(uint32_t pid, uint32_t tid, uint64_t at, uint64_t event, uint16_t mode,
                        const uint64_t *chain, uint64_t frames)
{
    struct made made = sample(pid, tid, scene.zero + at, event, mode, chain, frames);
    give(&made, scene.zero + at);
}

static void give_switch(uint32_t pid, uint32_t tid, uint64_t at, uint16_t misc)
{
    struct made made = start_record(PERF_RECORD_SWITCH, misc);
    put_trailer(&made, pid, tid, scene.zero + at);
    give(&made, scene.zero + at);
}

static void sleeps(uint32_t tid, uint64_t from, uint64_t to, bool preempted)
{
    give_switch(PID, tid, from,
                (uint16_t)(PERF_RECORD_MISC_SWITCH_OUT |
                           (preempted ? PERF_RECORD_MISC_SWITCH_OUT_PREEMPT : 0)));
    give_switch(PID, tid, to, 0);
}

static void give_task(uint32_t type, uint32_t pid, uint32_t parent, uint32_t tid, uint64_t at)
{
    struct made made = start_record(type, 0);
    put_pair(&made, pid, parent);
    put_pair(&made, tid, parent);
    put_number(&made, scene.zero + at);
    put_trailer(&made, pid, tid, scene.zero + at);
    give(&made, scene.zero + at);
}

static void give_name(uint32_t pid, const char *name, bool exec, uint64_t at)
{
    struct made made = start_record(PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
    char text[16] = "";
    snprintf(text, sizeof text, "%s", name);
    put_pair(&made, pid, pid);
    put(&made, text, sizeof text);
    put_trailer(&made, pid, pid, scene.zero + at);
    give(&made, scene.zero + at);
}

static void give_mapping(uint32_t pid, uint64_t address, uint64_t bytes, uint64_t offset,
                         const char *path, uint64_t at)
{
    struct made made = start_record(PERF_RECORD_MMAP2, 0);
    char text[64] = "";
    snprintf(text, sizeof text, "%s", path);
    put_pair(&made, pid, pid);
    put_number(&made, address);
    put_number(&made, bytes);
    put_number(&made, offset);
    for (int i = 0; i < 3; i++)
        put_number(&made, 0); /* the inode */
    put_pair(&made, 5, 2);
    put(&made, text, sizeof text);
    put_trailer(&made, pid, pid, scene.zero + at);
    give(&made, scene.zero + at);
}

/* A sample in the kernel with the user's registers and no stack: rcx and where it was. */
static void give_registers(uint32_t tid, uint64_t at, uint64_t event, uint64_t rcx, uint64_t rip)
{
    struct made made = sample(PID, tid, scene.zero + at, event, PERF_RECORD_MISC_KERNEL, NULL, 0);
    put_number(&made, PERF_SAMPLE_REGS_ABI_64);
    for (int i = 0; i < 17; i++)
        put_number(&made, i == 2 ? rcx : i == 8 ? rip : 0x1000);
    put_number(&made, 8); /* of stack */
    put_number(&made, 0);
    put_number(&made, 8);
    finish_record(&made);
    give(&made, scene.zero + at);
}

/* ---- on a processor -------------------------------------------------------------------------- */

START_TEST(samples_become_rows)
{
    static const uint64_t in_program[] = {PERF_CONTEXT_USER, 0x401000, 0x402005, 0x403009};
    static const uint64_t in_kernel[] = {PERF_CONTEXT_USER, 0x401777, 0x402005};
    begin();
    give_mapping(PID, 0x400000, 0x10000, 0x1000, "/nowhere/program", 0);
    give_sample(PID, PID, 10, CLOCK_EVENT, PERF_RECORD_MISC_USER, in_program, 4);
    give_sample(PID, PID, 20, CLOCK_EVENT, PERF_RECORD_MISC_USER, in_program, 4);
    give_sample(PID, PID + 1, 30, CLOCK_EVENT, PERF_RECORD_MISC_KERNEL, in_kernel, 3);
    give_sample(PID, PID, 40, CLOCK_EVENT, PERF_RECORD_MISC_USER, NULL, 0); /* no stack */
    give_sample(0, 0, 50, CLOCK_EVENT, PERF_RECORD_MISC_KERNEL, NULL, 0);   /* the idle task */
    end();
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample"), 4);
    ck_assert_int_eq(SCENE_NUMBER("SELECT sum(weight) FROM cpu_sample WHERE duration IS NULL"),
                     4 * PERIOD);
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample WHERE kind=1 AND cpu=3"), 3);
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample WHERE kind=4"), 1);
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(DISTINCT stack) FROM cpu_sample"), 2);
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample WHERE stack IS NULL"), 1);
    /* the instruction itself, callers inside theirs */
    ck_assert_int_eq(SCENE_NUMBER("SELECT f.address FROM cpu_sample c JOIN stack s ON s.id=c.stack "
                                  "JOIN frame f ON f.id=s.frame WHERE c.kind=1"),
                     0x401000);
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM frame WHERE address IN (4202500,4206600)"),
                     2);
    ck_assert_int_eq(SCENE_NUMBER("SELECT max(depth) FROM stack"), 3);
    ck_assert_int_eq(SCENE_NUMBER("SELECT segment FROM module WHERE path='/nowhere/program'"),
                     0x1000);
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM process WHERE pid=4100000"), 1);
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM thread WHERE tid IN (4100000,4100001)"), 2);
    run_done(&scene.run);
}
END_TEST

/* In the kernel, by no system call, while the thread's count of page faults rises. */
START_TEST(time_in_page_faults_is_told_from_calls)
{
    struct cpu_fault_stretch stretch;
    begin();
    scene.perf.stack_bytes = 8;
    give_registers(PID, 10, CLOCK_EVENT, 1, 2); /* nothing was counted yet */
    struct cpu_faults *faults = &cpu_tasks_find(&scene.records.tasks, PID)->faults;
    ck_assert(!cpu_faults_take(faults, scene.zero + 100, 5000, 1, &stretch)); /* before it began */
    ck_assert(cpu_faults_take(faults, scene.zero + 200, 5000, 1, &stretch)); /* none, but counted */
    ck_assert_uint_eq(stretch.count, 0);
    ck_assert(!cpu_faults_take(faults, scene.zero + 300, 5000, 1, &stretch));
    ck_assert(cpu_faults_take(faults, scene.zero + 400, 5007, 2, &stretch));
    ck_assert_uint_eq(stretch.count, 7);
    ck_assert_uint_eq(stretch.major, 1);
    ck_assert(cpu_faults_take(faults, scene.zero + 500, 5008, 2, &stretch));
    ck_assert_uint_eq(stretch.start_ns, scene.zero + 400);
    ck_assert(!cpu_faults_take(faults, scene.zero + 600, 5008, 2, &stretch));
    ck_assert(cpu_faults_take(faults, scene.zero + 700, 5009, 2, &stretch)); /* another rise */
    give_registers(PID, 250, CLOCK_EVENT, 1, 2);                             /* an interrupt */
    give_registers(PID, 350, CLOCK_EVENT, 2, 2);                             /* a call */
    give_registers(PID, 351, CLOCK_EVENT, 1, 2);
    give_registers(PID, 450, CLOCK_EVENT, 1, 2);
    give_registers(PID, 550, CLOCK_EVENT, 1, 2);
    give_registers(PID, 450, SWITCH_EVENT, 1, 2); /* and blocked in one */
    sleeps(PID, 450, 450 + 2 * PERIOD, false);
    end();
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample WHERE kind=4"), 4);
    ck_assert_int_eq(
        SCENE_NUMBER("SELECT count(*) FROM cpu_sample WHERE kind=5 AND duration IS NULL"), 2);
    ck_assert_int_eq(SCENE_NUMBER("SELECT duration FROM cpu_sample WHERE duration IS NOT NULL"),
                     2 * PERIOD);
    ck_assert_int_eq(SCENE_NUMBER("SELECT kind FROM cpu_sample WHERE duration IS NOT NULL"), 5);
    run_done(&scene.run);
}
END_TEST

/* The kernel's count of this thread, against what the thread learns of itself. */
START_TEST(page_faults_are_counted_exactly)
{
    enum { PAGES = 700 };
    struct cpu_faults faults = {.read_ns = 0};
    struct cpu_fault_stretch stretch;
    struct rusage before, after;
    uint64_t count, major;
    uint32_t self = (uint32_t)getpid();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    getrusage(RUSAGE_THREAD, &before);
    ck_assert(!cpu_faults_read(&faults, self, self, &stretch));
    char *fresh =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(fresh != MAP_FAILED);
    madvise(fresh, PAGES * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PAGES; i++)
        fresh[i * page] = 1;
    ck_assert(cpu_faults_read(&faults, self, self, &stretch));
    getrusage(RUSAGE_THREAD, &after);
    munmap(fresh, PAGES * page);
    ck_assert_uint_ge(stretch.count, PAGES);
    ck_assert_uint_le(stretch.count, (uint64_t)(after.ru_minflt + after.ru_majflt -
                                                before.ru_minflt - before.ru_majflt));
    ck_assert(stretch.end_ns > stretch.start_ns);
    cpu_faults_close(&faults);
    ck_assert(!cpu_faults_read(&faults, PID, PID, &stretch));
    ck_assert(cpu_faults_parse("7 (a) R 1 (b) S 1 1 1 0 -1 4194304 12 99 3 0 0", &count, &major));
    ck_assert_uint_eq(count, 15);
    ck_assert_uint_eq(major, 3);
    ck_assert(!cpu_faults_parse("7 (a) R 1 1", &count, &major));
    ck_assert(!cpu_faults_parse("", &count, &major));
}
END_TEST

START_TEST(a_known_process_keeps_its_row)
{
    begin();
    give_name((uint32_t)scene.run.target, "program", true, 5);
    give_sample((uint32_t)scene.run.target, (uint32_t)scene.run.target, 10, CLOCK_EVENT,
                PERF_RECORD_MISC_USER, NULL, 0);
    give_sample((uint32_t)scene.run.target, (uint32_t)scene.run.target, 20, CLOCK_EVENT,
                PERF_RECORD_MISC_USER, NULL, 0);
    end();
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM process"), 1);
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM thread"), 1);
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample"), 2);
    ck_assert_str_eq(run_text(&scene.run, "SELECT end_reason FROM process"), "exit");
    run_done(&scene.run);
}
END_TEST

/* ---- off the processor ----------------------------------------------------------------------- */

START_TEST(a_long_sleep_is_a_row)
{
    static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x401000, 0x402005};
    begin();
    give_sample(PID, PID, 100, SWITCH_EVENT, PERF_RECORD_MISC_KERNEL, chain, 3);
    sleeps(PID, 100, 100 + 50 * (uint64_t)PERIOD, false);
    sleeps(PID, 60 * (uint64_t)PERIOD, 64 * (uint64_t)PERIOD, true);
    end();
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample"), 2);
    ck_assert_int_eq(SCENE_NUMBER("SELECT duration FROM cpu_sample WHERE kind=2"), 50 * PERIOD);
    ck_assert_int_eq(
        SCENE_NUMBER("SELECT weight BETWEEN 49000000 AND 51000000 AND weight % 1000000 = 0 "
                     "FROM cpu_sample WHERE kind=2"),
        1);
    ck_assert_int_eq(SCENE_NUMBER("SELECT stack NOT NULL FROM cpu_sample WHERE kind=2"), 1);
    ck_assert_int_eq(SCENE_NUMBER("SELECT duration FROM cpu_sample WHERE kind=3"), 4 * PERIOD);
    ck_assert_int_eq(SCENE_NUMBER("SELECT stack IS NULL FROM cpu_sample WHERE kind=3"), 1);
    run_done(&scene.run);
}
END_TEST

START_TEST(short_sleeps_add_up)
{
    begin();
    for (uint64_t i = 0; i < 10000; i++)
        sleeps(PID, i * 20000, i * 20000 + 10000, false);
    end();
    int64_t rows = SCENE_NUMBER("SELECT count(*) FROM cpu_sample");
    ck_assert_int_ge(rows, 99); /* 100 ms in all, in periods of 1 ms */
    ck_assert_int_le(rows, 101);
    ck_assert_int_eq(SCENE_NUMBER("SELECT sum(weight) FROM cpu_sample"), rows * PERIOD);
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample WHERE duration != 10000"), 0);
    run_done(&scene.run);
}
END_TEST

START_TEST(who_sleeps_at_the_end_is_told)
{
    begin();
    give_switch(PID, PID, 0, PERF_RECORD_MISC_SWITCH_OUT);
    give_switch(PID, PID + 1, 0, PERF_RECORD_MISC_SWITCH_OUT);
    give_task(PERF_RECORD_EXIT, PID, PID, PID + 1, 10); /* this one is gone */
    cpu_records_end(&scene.records, scene.zero + 7 * (uint64_t)PERIOD);
    end();
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample"), 1);
    ck_assert_int_eq(SCENE_NUMBER("SELECT duration FROM cpu_sample"), 7 * PERIOD);
    run_done(&scene.run);
}
END_TEST

/* A thread that is not there any more slept for a while that nobody knows: its end was lost. */
START_TEST(an_end_that_was_lost_is_no_sleep)
{
    uint32_t own = (uint32_t)getpid();
    begin();
    give_switch(PID, PID, 0, PERF_RECORD_MISC_SWITCH_OUT);
    give_switch(PID, PID + 1, 0, PERF_RECORD_MISC_SWITCH_OUT);
    give_switch(PID, PID + 2, 0, PERF_RECORD_MISC_SWITCH_OUT);
    give_switch(own, own, 0, PERF_RECORD_MISC_SWITCH_OUT);
    cpu_tasks_mark_gone(&scene.records.tasks);
    give_task(PERF_RECORD_EXIT, PID, PID, PID + 2, 10); /* was in the buffers only: not lost */
    ck_assert_uint_eq(cpu_tasks_forget_gone(&scene.records.tasks), 2);
    ck_assert_uint_eq(cpu_tasks_forget_gone(&scene.records.tasks), 0);
    cpu_records_end(&scene.records, scene.zero + 7 * (uint64_t)PERIOD);
    end();
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample"), 1);
    ck_assert_int_eq(SCENE_NUMBER("SELECT p.pid FROM cpu_sample s JOIN thread t ON t.id = s.thread "
                                  "JOIN process p ON p.id = t.process"),
                     own);
    run_done(&scene.run);
}
END_TEST

/* Exec from another thread than the first: it takes over the first one's number, whose end is told,
 * and its own vanishes. */
START_TEST(exec_of_another_thread_loses_no_end)
{
    begin();
    give_task(PERF_RECORD_FORK, PID, PID - 1, PID, 0);
    give_task(PERF_RECORD_FORK, PID, PID, PID + 1, 1);
    give_switch(PID, PID + 1, 2, PERF_RECORD_MISC_SWITCH_OUT);
    give_task(PERF_RECORD_EXIT, PID, PID, PID, 3);
    give_name(PID, "next", true, 4);
    give_sample(PID, PID, 5, CLOCK_EVENT, PERF_RECORD_MISC_USER, NULL, 0);
    const struct cpu_process *process = cpu_tasks_process(&scene.records.tasks, PID, 6);
    ck_assert_uint_eq(process->threads, 1);
    ck_assert_uint_eq(process->parent, PID - 1);
    give_task(PERF_RECORD_EXIT, PID, PID - 1, PID, 7);
    cpu_tasks_mark_gone(&scene.records.tasks);
    ck_assert_uint_eq(cpu_tasks_forget_gone(&scene.records.tasks), 0);
    ck_assert_uint_eq(scene.records.tasks.threads.count, 0);
    ck_assert_uint_eq(scene.records.tasks.processes.count, 0);
    end();
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample"), 1);
    run_done(&scene.run);
}
END_TEST

/* As of a thread whose memory is gone already: registers, and nothing of the stack. */
START_TEST(a_stack_of_no_bytes)
{
    static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x401000};
    begin();
    scene.perf.stack_bytes = 512;
    struct made made =
        sample(PID, PID, scene.zero, SWITCH_EVENT, PERF_RECORD_MISC_KERNEL, chain, 2);
    put_number(&made, PERF_SAMPLE_REGS_ABI_64);
    for (int i = 0; i < 17; i++)
        put_number(&made, 0x401000);
    put_number(&made, 8);
    put_number(&made, 0); /* the bytes */
    put_number(&made, 0); /* how many of them count */
    finish_record(&made);
    give(&made, scene.zero);
    sleeps(PID, 0, 5 * PERIOD, false);
    end();
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample WHERE stack NOT NULL"), 1);
    run_done(&scene.run);
}
END_TEST

/* ---- processes ------------------------------------------------------------------------------- */

START_TEST(children_share_and_programs_replace)
{
    static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x401000};
    begin();
    give_name(PID, "parent", true, 0);
    give_mapping(PID, 0x400000, 0x10000, 0, "/nowhere/parent", 1);
    give_task(PERF_RECORD_FORK, PID + 5, PID, PID + 5, 2);
    give_sample(PID + 5, PID + 5, 3, CLOCK_EVENT, PERF_RECORD_MISC_USER, chain, 2);
    give_name(PID + 5, "child", true, 4);
    give_mapping(PID + 5, 0x400000, 0x10000, 0, "/nowhere/child", 5);
    give_sample(PID + 5, PID + 5, 6, CLOCK_EVENT, PERF_RECORD_MISC_USER, chain, 2);
    give_task(PERF_RECORD_EXIT, PID + 5, PID, PID + 5, 7);
    end();
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM process WHERE pid=4100005"), 2);
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM process WHERE pid=4100000"),
                     0); /* no sample */
    ck_assert_str_eq(
        run_text(&scene.run, "SELECT group_concat(birth||' '||command) FROM (SELECT * FROM process "
                             "WHERE pid=4100005 ORDER BY start)"),
        "fork parent,start child");
    ck_assert_str_eq(
        run_text(&scene.run,
                 "SELECT group_concat(path) FROM (SELECT m.path FROM cpu_sample c JOIN "
                 "stack s ON s.id=c.stack JOIN frame f ON f.id=s.frame JOIN module m ON "
                 "m.id=f.module ORDER BY c.start)"),
        "/nowhere/parent,/nowhere/child");
    run_done(&scene.run);
}
END_TEST

START_TEST(windows_leave_out)
{
    static struct control_page page;
    begin();
    page = (struct control_page){.magic = CONTROL_MAGIC, .version = CONTROL_VERSION};
    control_flip(&page, scene.zero + 100, WIRE_WINDOW_CONTROL); /* opens */
    control_flip(&page, scene.zero + 200, WIRE_WINDOW_CONTROL);
    scene.records.control = &page;
    for (uint64_t at = 50; at <= 250; at += 100)
        give_sample(PID, PID, at, CLOCK_EVENT, PERF_RECORD_MISC_USER, NULL, 0);
    sleeps(PID, 260, 20 * PERIOD, false);
    end();
    ck_assert_int_eq(SCENE_NUMBER("SELECT count(*) FROM cpu_sample"), 1);
    run_done(&scene.run);
}
END_TEST

START_TEST(losses_are_counted)
{
    begin();
    struct made lost = start_record(PERF_RECORD_LOST, 0);
    put_number(&lost, CLOCK_EVENT);
    put_number(&lost, 17);
    put_trailer(&lost, PID, PID, scene.zero);
    give(&lost, scene.zero);
    ck_assert_uint_eq(scene.records.lost, 17);
    end();
    run_done(&scene.run);
}
END_TEST

/* ---- the queue ------------------------------------------------------------------------------- */

#define RING_BYTES 4096u

struct fake_ring {
    struct cpu_perf perf;
    struct cpu_ring ring;
    struct perf_event_mmap_page *page;
    unsigned char *data;
};

static struct fake_ring make_ring(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct fake_ring made = {.perf = {.ring_bytes = RING_BYTES}};
    made.page = aligned_alloc(page, page + RING_BYTES);
    ck_assert_ptr_nonnull(made.page);
    memset(made.page, 0, page + RING_BYTES);
    made.data = (unsigned char *)made.page + page;
    made.ring.page = made.page;
    return made;
}

static void write_ring(struct fake_ring *ring, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ring->data[(ring->page->data_head + i) & (RING_BYTES - 1)] =
            ((const unsigned char *)bytes)[i];
    ring->page->data_head += count;
}

static uint64_t order[64];
static size_t ordered;

static void note_order(void *unused, const struct perf_event_header *record, uint64_t time_ns)
{
    (void)unused;
    ck_assert_uint_eq(record->type, PERF_RECORD_SAMPLE);
    order[ordered++] = time_ns;
}

START_TEST(records_come_by_time_and_wrap)
{
    struct cpu_queue queue = {0};
    struct fake_ring a = make_ring(), b = make_ring();
    a.page->data_head = a.page->data_tail = RING_BYTES - 20; /* the first record wraps */
    static const uint64_t times[2][3] = {{10, 40, 90}, {20, 30, 80}};
    for (int i = 0; i < 3; i++) {
        struct made one = sample(1, 1, times[0][i], CLOCK_EVENT, 0, NULL, 0);
        struct made two = sample(1, 1, times[1][i], CLOCK_EVENT, 0, NULL, 0);
        write_ring(&a, one.bytes, one.used);
        write_ring(&b, two.bytes, two.used);
    }
    ordered = 0;
    ck_assert(cpu_queue_take(&queue, &a.perf, &a.ring, NULL, NULL) &&
              cpu_queue_take(&queue, &b.perf, &b.ring, NULL, NULL));
    ck_assert_uint_eq(a.page->data_tail, a.page->data_head);
    cpu_queue_hand_over(&queue, 50, note_order, NULL);
    ck_assert_uint_eq(ordered, 4);
    struct made late = sample(1, 1, 85, CLOCK_EVENT, 0, NULL, 0);
    write_ring(&a, late.bytes, late.used);
    ck_assert(cpu_queue_take(&queue, &a.perf, &a.ring, NULL, NULL));
    cpu_queue_hand_over(&queue, UINT64_MAX, note_order, NULL);
    static const uint64_t expected[] = {10, 20, 30, 40, 80, 85, 90};
    ck_assert_uint_eq(ordered, 7);
    ck_assert_mem_eq(order, expected, sizeof expected);
    ck_assert_uint_eq(queue.damaged, 0);
    cpu_queue_free(&queue);
    free(a.page);
    free(b.page);
}
END_TEST

static void swallow(void *context, const struct perf_event_header *record, uint64_t time_ns)
{
    cpu_records_take(context, record, time_ns);
}

/* Whatever stands in the buffers, also under the sanitizers: nothing is read that is not there. */
START_TEST(garbage_is_survived)
{
    struct cpu_queue queue = {0};
    struct fake_ring ring = make_ring();
    begin();
    scene.perf.stack_bytes = 512;
    srandom(1);
    for (int round = 0; round < 3000; round++) {
        struct made made =
            sample(PID, PID, scene.zero, (uint64_t)random() % 3, (uint16_t)(random() % 4), NULL, 0);
        for (int i = 0; i < 40; i++)
            put_number(&made, (uint64_t)random() << (random() % 34));
        finish_record(&made);
        struct perf_event_header head;
        memcpy(&head, made.bytes, sizeof head);
        static const uint32_t types[] = {
            PERF_RECORD_SAMPLE, PERF_RECORD_MMAP2,  PERF_RECORD_COMM, PERF_RECORD_FORK,
            PERF_RECORD_EXIT,   PERF_RECORD_SWITCH, PERF_RECORD_LOST, 999};
        head.type = types[random() % 8];
        if (random() % 4 == 0)
            head.size = (uint16_t)(random() % 400);
        memcpy(made.bytes, &head, sizeof head);
        for (int i = 0; i < 4; i++) /* anything but the head */
            made.bytes[8 + random() % (long)(made.used - 8)] = (unsigned char)random();
        write_ring(&ring, made.bytes, made.used);
        ck_assert(cpu_queue_take(&queue, &ring.perf, &ring.ring, NULL, NULL));
        cpu_queue_hand_over(&queue, UINT64_MAX, swallow, &scene.records);
    }
    ck_assert_uint_gt(queue.damaged, 0);
    cpu_queue_free(&queue);
    free(ring.page);
    end();
    run_done(&scene.run);
}
END_TEST

CHECK_MAIN("cpu records", samples_become_rows, a_stack_of_no_bytes, a_known_process_keeps_its_row,
           time_in_page_faults_is_told_from_calls, page_faults_are_counted_exactly,
           a_long_sleep_is_a_row, short_sleeps_add_up, who_sleeps_at_the_end_is_told,
           an_end_that_was_lost_is_no_sleep, exec_of_another_thread_loses_no_end,
           children_share_and_programs_replace, windows_leave_out, losses_are_counted,
           records_come_by_time_and_wrap, garbage_is_survived)
