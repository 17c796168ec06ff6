/* A program that is hard on what records it, and keeps its own account of what it called: NVTX
 * marks named "record" with payload slot << 32 | n, OpenCL fills with pattern slot << 24 | n, n =
 * 0, 1, 2 ... of each slot (a thread, or one of its lives). One byte a call in a shared file that
 * outlives every end:
 *     u8 state[SLOTS][CALLS]    1: the call began, 2: it returned
 *
 *   attack HOW FILE MS     status 7; HOW is in the table below. It takes about MS milliseconds, and
 * a slot makes at most 1,000 calls for each
 *
 * A jump or a cancellation leaves a call that began; whether that one is recorded nobody can say.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/targets/calls.h"

#define SLOTS 64
#define CALLS 100000
#define THREADS 4
#define STATUS 7

enum { BEGAN = 1, RETURNED = 2 };

static _Atomic unsigned char (*state)[CALLS];
static _Atomic bool stop;
static long milliseconds;
static unsigned limit; /* calls of a slot */

static void sleep_us(long us)
{
    struct timespec end, now;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += us % 1000000 * 1000;
    end.tv_sec += us / 1000000 + end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    do
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
    while (clock_gettime(CLOCK_MONOTONIC, &now) == 0 &&
           (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec)));
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void mark_named(unsigned slot, unsigned n, const char *name)
{
    atomic_store(&state[slot][n], BEGAN);
    mark_payload((uint64_t)slot << 32 | n, name);
    atomic_store(&state[slot][n], RETURNED);
}

static void mark(unsigned slot, unsigned n)
{
    mark_named(slot, n, "record");
}

/* Every name is new: it has to be defined. */
static void mark_new_name(unsigned slot, unsigned n)
{
    char name[48];
    snprintf(name, sizeof name, "name %u of %u in %d", n, slot, (int)getpid());
    mark_named(slot, n, name);
}

/* At another depth of the stack each time. */
static __attribute__((noinline)) void mark_deeper(unsigned slot, unsigned n, unsigned depth)
{
    volatile char room[512];
    room[0] = (char)depth;
    if (depth == 0)
        mark(slot, n);
    else
        mark_deeper(slot, n, depth - 1);
    room[1] = room[0];
}

static void mark_anywhere(unsigned slot, unsigned n)
{
    mark_deeper(slot, n, n % 17);
}

#ifdef HAVE_OPENCL
/* Two queues for all threads, which then meet on them. */
static cl_command_queue shared[2];
static cl_mem shared_memory;

static void open_shared(void)
{
    cl_int error;
    open_device();
    for (unsigned i = 0; i < 2; i++) {
        shared[i] = clCreateCommandQueue(context, device, 0, &error);
        must(error, "clCreateCommandQueue");
    }
    shared_memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &error);
    must(error, "clCreateBuffer");
    must(clFinish(shared[0]), "clFinish"); /* the functions are bound */
}

static void fill_shared(unsigned slot, unsigned n)
{
    cl_uint pattern = slot << 24 | n;
    atomic_store(&state[slot][n], BEGAN);
    must(clEnqueueFillBuffer(shared[n % 2], shared_memory, &pattern, 4, 0, 256, 0, NULL, NULL),
         "fill");
    atomic_store(&state[slot][n], RETURNED);
    if (n % 256 == 255)
        must(clFinish(shared[n / 256 % 2]), "clFinish");
}

static void *fills(void *data)
{
    unsigned slot = (unsigned)(uintptr_t)data;
    cl_mem memory;
    cl_command_queue queue = open_queue(&memory);
    for (unsigned n = 0; n < limit && !atomic_load(&stop); n++) {
        cl_uint pattern = slot << 24 | n;
        atomic_store(&state[slot][n], BEGAN);
        cl_int error = clEnqueueFillBuffer(queue, memory, &pattern, 4, 0, 256, 0, NULL, NULL);
        if (error) { /* the driver is being taken down */
            atomic_store(&state[slot][n], 0);
            pause();
        }
        atomic_store(&state[slot][n], RETURNED);
        if (n % 32 == 31)
            clFinish(queue);
    }
    return NULL;
}
#else
static void open_shared(void)
{
    open_device();
}
static void fill_shared(unsigned slot, unsigned n)
{
    (void)slot, (void)n;
}
static void *fills(void *data)
{
    return data;
}
#endif

/* ---- jumps out of signal handlers ------------------------------------------------------------ */

static __thread sigjmp_buf again __attribute__((tls_model("initial-exec")));
static __thread volatile sig_atomic_t may_jump __attribute__((tls_model("initial-exec")));
static __thread volatile unsigned next_n __attribute__((tls_model("initial-exec")));
static __thread volatile unsigned in_handler __attribute__((tls_model("initial-exec")));
static _Atomic int running;
static __thread unsigned my_slot __attribute__((tls_model("initial-exec")));

enum { JUMP = 1, MARK = 2, ALTSTACK = 4 };
static int handling;
static void (*calling)(unsigned, unsigned);

static void on_signal(int number)
{
    (void)number;
    if (!may_jump)
        return;
    if (handling & MARK && in_handler < limit)
        mark(my_slot + THREADS, in_handler++);
    if (handling & JUMP && (!(handling & MARK) || in_handler % 2))
        siglongjmp(again, 1);
}

static void *jumped_at(void *data)
{
    my_slot = (unsigned)(uintptr_t)data;
    static char stacks[THREADS][65536];
    stack_t stack = {.ss_sp = stacks[my_slot], .ss_size = sizeof stacks[0]};
    if (handling & ALTSTACK)
        sigaltstack(&stack, NULL);
    sigsetjmp(again, 1);
    may_jump = 1;
    while (next_n < limit && !atomic_load(&stop)) {
        unsigned n = next_n++;
        calling(my_slot, n);
    }
    may_jump = 0;
    atomic_fetch_sub(&running, 1);
    stack.ss_flags = SS_DISABLE;
    if (handling & ALTSTACK)
        sigaltstack(&stack, NULL);
    return NULL;
}

static void run_threads(pthread_t *threads, void *(*function)(void *))
{
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, function, (void *)i) != 0)
            _exit(98);
}

static void join_threads(const pthread_t *threads)
{
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void stop_after(long us)
{
    sleep_us(us);
    atomic_store(&stop, true);
}

static void storm(int flags, void (*call)(unsigned, unsigned))
{
    pthread_t threads[THREADS];
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = flags & ALTSTACK ? SA_ONSTACK : 0};
    handling = flags;
    calling = call;
    atomic_store(&running, THREADS);
    sigaction(SIGUSR1, &action, NULL);
    mark(SLOTS - 1, 0); /* attached: not even the C library's loader bears a jump */
    run_threads(threads, jumped_at);
    while (atomic_load(&running) > 0)
        for (unsigned i = 0; i < THREADS; i++)
            pthread_kill(threads[i], SIGUSR1); /* they are joined below */
    join_threads(threads);
}

/* One thread and its timer, as a time-out guard has it. */
static void jump_alone(void)
{
    struct itimerval each = {.it_interval = {0, 20}, .it_value = {0, 20}}, none = {0};
    struct sigaction action = {.sa_handler = on_signal};
    handling = JUMP;
    calling = mark;
    mark(SLOTS - 1, 0);
    sigaction(SIGALRM, &action, NULL);
    sigsetjmp(again, 1);
    may_jump = 1;
    setitimer(ITIMER_REAL, &each, NULL);
    while (next_n < limit) {
        unsigned n = next_n++;
        mark(0, n);
    }
    may_jump = 0;
    setitimer(ITIMER_REAL, &none, NULL);
}

/* ---- cancellation ---------------------------------------------------------------------------- */

static void *cancelled(void *data)
{
    unsigned slot = (unsigned)(uintptr_t)data;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (unsigned n = 0;; n++) {
        if (n < limit)
            calling(slot, n);
        else
            pthread_testcancel();
    }
    return NULL;
}

static void *called(void *data)
{
    for (unsigned n = 0; n < limit; n++)
        calling((unsigned)(uintptr_t)data, n);
    return NULL;
}

static void cancel(void (*call)(unsigned, unsigned))
{
    calling = call;
    mark(SLOTS - 1, 0);
    for (uintptr_t slot = 0; slot + THREADS < SLOTS; slot += THREADS) {
        pthread_t threads[THREADS];
        for (uintptr_t i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, cancelled, (void *)(slot + i)) != 0)
                _exit(98);
        sleep_us(milliseconds * 1000 / (SLOTS / THREADS) / 2 + (long)slot * 7 % 500);
        for (unsigned i = 0; i < THREADS; i++)
            pthread_cancel(threads[i]);
        join_threads(threads);
    }
}

/* ---- ends, while the other threads go on ----------------------------------------------------- */

static void *marks(void *data)
{
    unsigned slot = (unsigned)(uintptr_t)data;
    for (unsigned n = 0; n < limit && !atomic_load(&stop); n++) {
        mark(slot, n);
        if (n % 256 == 255)
            sleep_us(100);
    }
    return NULL;
}

static void begin(void *(*function)(void *))
{
    pthread_t threads[THREADS];
    if (function == fills)
        open_device();
    run_threads(threads, function);
    for (unsigned i = 0; i < THREADS; i++) /* a busy machine takes its time to start them */
        while (atomic_load(&state[i][0]) != RETURNED)
            sleep_us(1000);
    sleep_us(milliseconds * 1000);
}

static void in_exit_handler(void)
{
    for (unsigned n = 0; n < 1000; n++)
        mark(SLOTS - 2, n);
}

/* ---- the end of a stack ---------------------------------------------------------------------- */

/* Recursion until the stack ends; the handler, on its own stack, jumps out. */
static sigjmp_buf before_overflow;
static volatile unsigned overflow_n;

static void on_overflow(int number)
{
    (void)number;
    siglongjmp(before_overflow, 1);
}

static __attribute__((noinline)) unsigned recurse(unsigned depth)
{
    volatile char room[64];
    room[0] = (char)depth;
    if (overflow_n < limit)
        mark(0, overflow_n++);
    return depth == UINT32_MAX ? 0 : recurse(depth + 1) + (unsigned)room[0];
}

static void *overflow(void *unused)
{
    static char signal_stack[65536];
    stack_t stack = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    sigaltstack(&stack, NULL);
    for (volatile unsigned i = 0; i < 50; i++)
        if (sigsetjmp(before_overflow, 1) == 0)
            recurse(0);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
    return unused;
}

static void overflow_stack(void)
{
    struct sigaction action = {.sa_handler = on_overflow, .sa_flags = SA_ONSTACK | SA_NODEFER};
    pthread_attr_t attributes;
    pthread_t thread;
    mark(SLOTS - 1, 0);
    sigaction(SIGSEGV, &action, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    if (pthread_create(&thread, &attributes, overflow, NULL) != 0)
        _exit(98);
    pthread_join(thread, NULL);
}

/* ---- threads that end, and what runs then ---------------------------------------------------- */

static pthread_key_t last_words;

static void say_last_words(void *value)
{
    unsigned slot = (unsigned)(uintptr_t)value - 1;
    for (unsigned n = 10; n < 20; n++)
        mark(slot, n);
}

static void *short_life(void *data)
{
    unsigned slot = (unsigned)(uintptr_t)data;
    pthread_setspecific(last_words, (void *)(uintptr_t)(slot + 1));
    for (unsigned n = 0; n < 10; n++)
        mark(slot, n);
    if (slot % 2)
        pthread_exit(NULL);
    return NULL;
}

static void thread_ends(void)
{
    pthread_t threads[SLOTS];
    pthread_key_create(&last_words, say_last_words);
    for (uintptr_t i = 0; i < SLOTS; i++)
        if (pthread_create(&threads[i], NULL, short_life, (void *)i) != 0)
            _exit(98);
    for (unsigned i = 0; i < SLOTS; i++)
        pthread_join(threads[i], NULL);
}

/* The main thread ends first; the last of the others ends the process, with status 0. */
static void *outlives(void *data)
{
    marks(data);
    if (data == NULL) {
        sleep_us(milliseconds * 1000);
        exit(STATUS);
    }
    return NULL;
}

static void main_ends(void)
{
    pthread_t threads[THREADS];
    run_threads(threads, outlives);
    pthread_exit(NULL);
}

/* Children that share the memory of their parent until they exec or end. */
static void vfork_while_marked(void)
{
    pthread_t threads[THREADS];
    run_threads(threads, marks);
    for (unsigned child = 0; child < 32; child++) {
        pid_t pid = vfork();
        if (pid == 0) {
            if (child % 2)
                execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        while (waitpid(pid, NULL, 0) < 0)
            ;
    }
    join_threads(threads);
}

/* Two kinds of signals that interrupt each other's handlers, and both mark. */
static void on_either(int number)
{
    static __thread volatile unsigned next[2] __attribute__((tls_model("initial-exec")));
    unsigned kind = number == SIGUSR1;
    unsigned n = next[kind];
    if (!may_jump || n >= limit)
        return;
    next[kind] = n + 1;
    mark(my_slot + THREADS * (1 + kind), n);
    if (kind && n % 64 == 0)
        siglongjmp(again, 1);
}

static void *interrupted(void *data)
{
    my_slot = (unsigned)(uintptr_t)data;
    sigsetjmp(again, 1);
    may_jump = 1;
    while (next_n < limit) {
        unsigned n = next_n++;
        mark(my_slot, n);
    }
    may_jump = 0;
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void handlers_in_handlers(void)
{
    pthread_t threads[THREADS];
    struct sigaction action = {.sa_handler = on_either};
    atomic_store(&running, THREADS);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    mark(SLOTS - 1, 0);
    run_threads(threads, interrupted);
    for (unsigned i = 0; atomic_load(&running) > 0; i++) {
        pthread_kill(threads[i % THREADS], SIGUSR1);
        pthread_kill(threads[i % THREADS], SIGUSR2);
    }
    join_threads(threads);
}

/* ---- ends inside a handler ------------------------------------------------------------------- */

static void end_fast(int number)
{
    (void)number;
    _exit(STATUS);
}

static void end_orderly(int number)
{
    (void)number;
    exit(STATUS);
}

/* The timer finds one of the threads, wherever it is. */
static void end_in_handler(void (*handler)(int), void (*call)(unsigned, unsigned))
{
    struct itimerval once = {.it_value = {0, milliseconds * 1000 + getpid() % 1000}};
    struct sigaction action = {.sa_handler = handler};
    mark(SLOTS - 1, 0);
    sigaction(SIGALRM, &action, NULL);
    calling = call;
    pthread_t threads[THREADS];
    setitimer(ITIMER_REAL, &once, NULL);
    run_threads(threads, called);
    for (unsigned n = 0;; n++)
        if (n < limit)
            call(THREADS, n);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void handler_fast_exit(void)
{
    open_shared();
    end_in_handler(end_fast, fill_shared);
}
static void handler_exit(void)
{
    end_in_handler(end_orderly, mark_new_name);
}
static void jump_marks(void)
{
    storm(JUMP, mark);
}
static void jump_names(void)
{
    storm(JUMP, mark_new_name);
}
static void jump_depths(void)
{
    storm(JUMP, mark_anywhere);
}
static void jump_altstack(void)
{
    storm(JUMP | ALTSTACK | MARK, mark_anywhere);
}
static void handler_marks(void)
{
    storm(MARK, mark);
}
static void handler_marks_jump(void)
{
    storm(MARK | JUMP, mark);
}
static void jump_fills(void)
{
    open_shared();
    storm(JUMP, fill_shared);
}
static void cancel_fills(void)
{
    open_shared();
    limit = limit < 30000 ? limit : 30000; /* the driver has so many events */
    cancel(fill_shared);
}
static void cancel_marks(void)
{
    cancel(mark);
}
static void cancel_names(void)
{
    cancel(mark_new_name);
}
static void fork_while_marked(void)
{
    pthread_t threads[THREADS];
    mark(SLOTS - 1, 0);
    run_threads(threads, marks);
    for (unsigned child = 0; child < 16; child++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (unsigned n = 0; n < 200; n++)
                mark_named(16 + child, n, "record");
            _exit(0);
        }
        while (waitpid(pid, NULL, 0) < 0)
            ;
    }
    stop_after(milliseconds * 1000);
    join_threads(threads);
}
static void exit_handler(void)
{
    atexit(in_exit_handler);
    begin(marks);
    exit(STATUS);
}
static void marks_return(void)
{
    begin(marks);
}
static void fills_return(void)
{
    begin(fills);
}
static void fills_exit(void)
{
    begin(fills);
    exit(STATUS);
}
static void fills_fast_exit(void)
{
    begin(fills);
    _exit(STATUS);
}
static void fills_quick_exit(void)
{
    begin(fills);
    quick_exit(STATUS);
}
static void fills_exec(void)
{
    begin(fills);
    execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
}
static void outlive_main(void)
{
    begin(marks);
    atomic_store(&stop, true);
    sleep_us(20000);
    exit(STATUS);
}

static const struct {
    const char *name;
    void (*run)(void);
} attacks[] = {
    {"jump-alone", jump_alone},
    {"jump-marks", jump_marks},
    {"jump-names", jump_names},
    {"jump-depths", jump_depths},
    {"jump-altstack", jump_altstack},
    {"handler-marks", handler_marks},
    {"handler-marks-jump", handler_marks_jump},
    {"cancel-marks", cancel_marks},
    {"cancel-names", cancel_names},
    {"jump-fills", jump_fills},
    {"cancel-fills", cancel_fills},
    {"fork", fork_while_marked},
    {"exit-handler", exit_handler},
    {"marks-return", marks_return},
    {"fills-return", fills_return},
    {"fills-exit", fills_exit},
    {"fills-_exit", fills_fast_exit},
    {"fills-quick_exit", fills_quick_exit},
    {"fills-exec", fills_exec},
    {"outlive-main", outlive_main},
    {"overflow", overflow_stack},
    {"thread-ends", thread_ends},
    {"main-ends", main_ends},
    {"vfork", vfork_while_marked},
    {"handler-exit", handler_exit},
    {"handler-_exit", handler_fast_exit},
    {"handlers-in-handlers", handlers_in_handlers},
};

int main(int argc, char **argv)
{
    int fd = argc == 4 ? open(argv[2], O_RDWR) : -1;
    void *at = fd < 0
                   ? MAP_FAILED
                   : mmap(NULL, sizeof *state * SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return 99;
    close(fd);
    state = at;
    milliseconds = strtol(argv[3], NULL, 10);
    limit = milliseconds < 100 ? (unsigned)milliseconds * (CALLS / 100) : CALLS;
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++)
        if (strcmp(attacks[i].name, argv[1]) == 0) {
            attacks[i].run();
            return STATUS;
        }
    return 97;
}
