/* Python's frames out of a process that may hold anything: this one, with an interpreter that is
 * made by hand (made_python.c). */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "samplers/cpu/perf_events.h"
#include "samplers/cpu/python.h"
#include "tests/check_main.h"
#include "tests/ingest/harness.h"

struct object {
    _Alignas(64) unsigned char bytes[256];
};

static struct {
    struct run run;
    struct spool_out spool;
    struct cpu_perf perf;
    struct cpu_tasks tasks;
    struct cpu_pythons pythons;
    const struct python_layout *layout;
    struct object state, code, name, file, lines, shim;
    struct object frames[3];
    unsigned char interpreter[65536];
    uint64_t *runtime, code_type, text_type, bytes_type;
} s;

static void nothing(void *unused)
{
    (void)unused;
}

static uint64_t at(const void *object)
{
    return (uint64_t)(uintptr_t)object;
}

static void set(void *object, unsigned offset, uint64_t value)
{
    memcpy((unsigned char *)object + offset, &value, sizeof value);
}

static void set_text(struct object *object, const char *text)
{
    memset(object, 0, sizeof *object);
    set(object, PYTHON_OBJECT_TYPE, s.text_type);
    set(object, PYTHON_TEXT_LENGTH, strlen(text));
    set(object, PYTHON_TEXT_STATE, 1u << 2 | 1u << 5 | 1u << 6); /* of one byte, compact, ASCII */
    memcpy(object->bytes + s.layout->text_ascii, text, strlen(text));
}

static void set_lines(uint64_t size, unsigned char fill)
{
    memset(&s.lines, fill, sizeof s.lines);
    set(&s.lines, PYTHON_OBJECT_TYPE, s.bytes_type);
    set(&s.lines, PYTHON_OBJECT_SIZE, size);
}

/* Three frames of one function, the loop's own frame behind them; one thread. */
static void make_process(void)
{
    const struct python_layout *l = s.layout;
    memset(&s.state, 0, sizeof s.state);
    memset(&s.shim, 0, sizeof s.shim);
    memset(&s.code, 0, sizeof s.code);
    memset(s.interpreter, 0, sizeof s.interpreter);
    set(s.runtime, l->runtime_main, at(s.interpreter));
    set(s.interpreter, l->interpreter_threads, at(&s.state));
    set(&s.state, l->thread_interpreter, at(s.interpreter));
    set(&s.state, l->thread_native_id, (uint64_t)getpid());
    set_text(&s.name, "work");
    set_text(&s.file, "work.py");
    set_lines(16, 1);
    set(&s.code, PYTHON_OBJECT_TYPE, s.code_type);
    set(&s.code, l->code_name, at(&s.name));
    set(&s.code, l->code_file, at(&s.file));
    set(&s.code, l->code_lines, at(&s.lines));
    for (unsigned i = 0; i < 3; i++) {
        memset(&s.frames[i], 0, sizeof s.frames[i]);
        set(&s.frames[i], l->frame_code, at(&s.code));
        set(&s.frames[i], l->frame_instruction, at(&s.code) + l->code_bytes + 2 * i);
        set(&s.frames[i], l->frame_previous, i < 2 ? at(&s.frames[i + 1]) : at(&s.shim));
    }
    s.shim.bytes[l->frame_owner] = PYTHON_OWNER_C_STACK;
    /* 3.12: the state leads to the loop's record, and that to the frame. */
    set(s.interpreter, 32768, at(&s.frames[0]));
    set(&s.state, l->thread_loop, at(s.interpreter) + 32768 - l->loop_frame);
}

static void begin(void)
{
    void *library = dlopen(MADE_PYTHON, RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
    memset(&s, 0, sizeof s);
    s.layout = python_layout(PYTHON_3_12);
    s.runtime = dlsym(library, "_PyRuntime");
    s.code_type = at(dlsym(library, "PyCode_Type"));
    s.text_type = at(dlsym(library, "PyUnicode_Type"));
    s.bytes_type = at(dlsym(library, "PyBytes_Type"));
    make_process();
    run_prepare(&s.run, NULL);
    run_start(&s.run, nothing, NULL);
    ck_assert(spool_out_open(&s.spool, s.run.directory, "made", WIRE_SOURCE_CPU));
    s.tasks.period_ns = 1000000;
    s.pythons.spool = &s.spool;
    s.pythons.tasks = &s.tasks;
    s.pythons.late_ns = UINT64_MAX / 2;
    uint32_t pid = (uint32_t)getpid();
    struct cpu_thread *thread = cpu_tasks_thread(&s.tasks, pid, pid, 1);
    static const unsigned char no_id[1];
    struct cpu_mapping mapping = {0, 4096, 0, 1, 0};
    ck_assert(thread != NULL);
    cpu_tasks_map(&s.tasks, thread->process, MADE_PYTHON, no_id, 0, &mapping);
}

static void end(void)
{
    spool_out_close(&s.spool);
    cpu_tasks_free(&s.tasks);
    cpu_pythons_free(&s.pythons);
    run_ingest(&s.run, 1000);
    run_done(&s.run);
}

/* A sample of this thread: what of Python is in its chain. */
static struct cpu_chain sampled(void)
{
    static uint64_t cfas[CPU_MOST_FRAMES];
    uint64_t now = prof_now_ns();
    uint32_t pid = (uint32_t)getpid();
    struct {
        struct perf_event_header head;
        uint64_t event;
        uint32_t pid, tid;
        uint64_t time, rest[4];
    } record = {{PERF_RECORD_SAMPLE, 0, sizeof record}, 1, pid, pid, now, {0}};
    struct cpu_chain chain = {.count = 0};
    cpu_python_note(&s.pythons, &s.perf, &record.head, now);
    cpu_python_read(&s.pythons);
    cpu_python_merge(cpu_tasks_find(&s.tasks, pid), now, UINT64_MAX, cfas, &chain);
    return chain;
}

static uint32_t id_in(const struct cpu_chain *chain, unsigned frame)
{
    ck_assert_uint_lt(frame, chain->count);
    ck_assert_uint_eq(chain->frames[frame] >> WIRE_ENTRY_SHIFT, WIRE_ENTRY_PYTHON);
    return (uint32_t)((chain->frames[frame] & WIRE_ENTRY_VALUE) >> 32);
}

START_TEST(frames_are_read)
{
    begin();
    struct cpu_chain chain = sampled();
    ck_assert_uint_eq(chain.count, 3);
    ck_assert_uint_ne(id_in(&chain, 0), 0);
    ck_assert_uint_eq(chain.frames[2] & UINT32_MAX, 4);
    ck_assert_uint_eq(s.pythons.readings, 1);
    end();
}
END_TEST

/* compile(text, "", "exec") has an empty file: it keeps its function, and is sent once. */
START_TEST(empty_names_are_sent_once)
{
    begin();
    set_text(_i ? &s.name : &s.file, "");
    struct cpu_chain chain = sampled();
    ck_assert_uint_ne(id_in(&chain, 0), 0);
    uint32_t ids = s.spool.ids;
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(sampled().count, 3);
    ck_assert_uint_eq(s.spool.ids, ids);
    ck_assert_uint_eq(s.pythons.torn, 0);
    end();
}
END_TEST

/* What is no code of Python, or cannot be read whole, leaves nothing in the spool. */
START_TEST(torn_code_is_not_sent)
{
    begin();
    if (_i == 0)
        set(&s.file, PYTHON_OBJECT_TYPE, s.bytes_type);
    else if (_i == 1)
        set(&s.code, s.layout->code_lines, 4096);
    else
        set(&s.code, s.layout->code_name, UINT64_MAX - 7);
    uint32_t ids = s.spool.ids;
    ck_assert_uint_eq(sampled().count, 0);
    ck_assert_uint_eq(s.spool.ids, ids);
    ck_assert_uint_eq(s.pythons.torn, 1);
    end();
}
END_TEST

/* Code that was made anew where other code was, of the same names, is another. */
START_TEST(other_code_at_the_same_address)
{
    begin();
    struct cpu_chain first = sampled();
    set_lines(16, 2);
    struct cpu_chain second = sampled();
    ck_assert_uint_ne(id_in(&first, 0), id_in(&second, 0));
    end();
}
END_TEST

/* Lists that lead back into themselves. */
START_TEST(cycles_end)
{
    begin();
    if (_i == 0)
        set(&s.frames[2], s.layout->frame_previous, at(&s.frames[0]));
    else if (_i == 1)
        set(&s.shim, s.layout->frame_previous, at(&s.frames[0]));
    else
        set(&s.shim, s.layout->frame_previous, at(&s.shim));
    struct cpu_chain chain = sampled();
    ck_assert(chain.cut);
    make_process();
    set(&s.state, s.layout->thread_native_id, 1);
    set(&s.state, s.layout->thread_next, at(&s.state));
    ck_assert_uint_eq(sampled().count, 0);
    end();
}
END_TEST

/* Lengths that no text has, and characters that are none. */
START_TEST(texts_have_bounds)
{
    char text[PYTHON_TEXT_MOST];
    begin();
    struct cpu_memory *memory = calloc(1, sizeof *memory);
    struct python_interpreter it = {.layout = s.layout, .text_type = s.text_type};
    ck_assert(memory != NULL);
    cpu_memory_begin(memory, (uint32_t)getpid());
    set(&s.name, PYTHON_TEXT_LENGTH, UINT64_MAX);
    ck_assert_uint_le(python_text(&it, &memory->reader, at(&s.name), text, sizeof text),
                      sizeof text);
    memset(&s.name, 0xff, sizeof s.name);
    set(&s.name, PYTHON_OBJECT_TYPE, s.text_type);
    set(&s.name, PYTHON_TEXT_LENGTH, 1);
    set(&s.name, PYTHON_TEXT_STATE, 4u << 2 | 1u << 5);
    cpu_memory_forget(memory);
    ck_assert_uint_eq(python_text(&it, &memory->reader, at(&s.name), text, sizeof text), 3);
    ck_assert(memcmp(text, "\xef\xbf\xbd", 3) == 0);
    free(memory);
    end();
}
END_TEST

/* One reading asks the kernel so often at most. */
START_TEST(readings_are_bounded)
{
    uint64_t word;
    begin();
    struct cpu_memory *memory = calloc(1, sizeof *memory);
    ck_assert(memory != NULL);
    cpu_memory_begin(memory, (uint32_t)getpid());
    for (unsigned i = 0; i < CPU_MOST_READS; i++)
        ck_assert(!python_load(&memory->reader, 4096, &word, sizeof word));
    ck_assert(!python_load(&memory->reader, at(&s.name), &word, sizeof word));
    cpu_memory_begin(memory, (uint32_t)getpid());
    ck_assert(python_load(&memory->reader, at(&s.name), &word, sizeof word));
    free(memory);
    end();
}
END_TEST

/* Any word of the process may be anything. */
START_TEST(garbage_is_survived)
{
    begin();
    struct object *const objects[] = {&s.state, &s.code, &s.name,      &s.file,
                                      &s.lines, &s.shim, &s.frames[0], &s.frames[2]};
    srandom(7);
    for (int round = 0; round < 3000; round++) {
        make_process();
        for (int i = 0; i < 3; i++) {
            struct object *object = objects[random() % 8];
            uint64_t value = random() % 3 == 0   ? at(objects[random() % 8])
                             : random() % 2 == 0 ? (uint64_t)random() << 33 ^ (uint64_t)random()
                                                 : (uint64_t)(random() % 300);
            set(object, (unsigned)(random() % 31) * 8, value);
        }
        ck_assert_uint_le(sampled().count, CPU_MOST_ENTRIES);
    }
    ck_assert_uint_gt(s.pythons.readings, 0);
    ck_assert_uint_gt(s.pythons.torn, 0);
    end();
}
END_TEST

#define MISSING_BYTES 65536u

/* A child with memory that it promises to fill when it is touched, and never does. */
static void keep_memory_missing(int to)
{
    int file = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);
    int every = (int)syscall(SYS_userfaultfd, O_CLOEXEC); /* where that is allowed */
    struct uffdio_api api = {.api = UFFD_API};
    char *memory =
        mmap(NULL, MISSING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {at(memory), MISSING_BYTES},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    file = every < 0 ? file : every;
    if (file < 0 || memory == MAP_FAILED || ioctl(file, UFFDIO_API, &api) ||
        ioctl(file, UFFDIO_REGISTER, &range) ||
        write(to, &memory, sizeof memory) != (ssize_t)sizeof memory)
        _exit(77);
    for (;;)
        pause();
}

struct reader {
    struct cpu_memory *memory;
    uint64_t address;
    _Atomic bool returned;
};

static void *read_missing(void *context)
{
    struct reader *reader = context;
    char value;
    python_load(&reader->memory->reader, reader->address, &value, sizeof value);
    atomic_store(&reader->returned, true);
    return NULL;
}

/* The same, taken away between the look and the reading. Nothing is freed: the thread stays. */
static void leave_a_reader(struct cpu_memory *memory, uint64_t address, pid_t child)
{
    struct reader *reader = calloc(1, sizeof *reader);
    pthread_t thread;
    *reader = (struct reader){.memory = memory, .address = address};
    cpu_memory_begin(memory, (uint32_t)child);
    ck_assert(!cpu_memory_leave(memory, atomic_load(&memory->gate)));
    memory->pagemap = -1; /* nothing to look at */
    ck_assert_int_eq(pthread_create(&thread, NULL, read_missing, reader), 0);
    while (atomic_load(&memory->gate) % 2 == 0)
        sched_yield();
    uint64_t gate = atomic_load(&memory->gate);
    ck_assert(!cpu_memory_leave(memory, gate + 2));
    ck_assert(cpu_memory_leave(memory, gate));
    kill(child, SIGKILL); /* ends the reading */
    waitpid(child, NULL, 0);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++; /* a thread that is not left would return */
    ck_assert_int_eq(pthread_timedjoin_np(thread, NULL, &until), ETIMEDOUT);
    ck_assert(!atomic_load(&reader->returned));
}

/* A read of such memory would last as long as that process. */
START_TEST(memory_that_is_missing_is_not_read)
{
    int ends[2];
    char *missing, value = 1;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        keep_memory_missing(ends[1]);
    }
    close(ends[1]);
    if (read(ends[0], &missing, sizeof missing) == (ssize_t)sizeof missing) {
        struct cpu_memory *memory = calloc(1, sizeof *memory);
        cpu_memory_begin(memory, (uint32_t)child);
        alarm(600); /* kills this test */
        ck_assert(!python_load(&memory->reader, at(missing) + 4096, &value, sizeof value));
        ck_assert_int_eq(memory->error, EFAULT);
        ck_assert(!python_load(&memory->reader, at(missing), &s, MISSING_BYTES));
        ck_assert_uint_eq(memory->refused, 2);
        ck_assert(python_load(&memory->reader, at(ends), &value, sizeof value));
        ck_assert_uint_eq(memory->refused, 2);
        alarm(0);
        leave_a_reader(memory, at(missing), child);
    }
    close(ends[0]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
END_TEST

int main(void)
{
    const struct check_test tests[] = {
        {frames_are_read, 1},
        {empty_names_are_sent_once, 2},
        {torn_code_is_not_sent, 3},
        {other_code_at_the_same_address, 1},
        {cycles_end, 3},
        {texts_have_bounds, 1},
        {readings_are_bounded, 1},
        {memory_that_is_missing_is_not_read, 1},
        {garbage_is_survived, 1},
    };
    uint64_t probe = 1, found = 0;
    struct iovec here = {&found, sizeof found}, there = {&probe, sizeof probe};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)sizeof found)
        return 77; /* no process may read another one here */
    return check_run("python of another process", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
