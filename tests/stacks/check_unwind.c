/* The unwinder against chains of functions that know where they return to (chain.h): every frame
 * between the innermost function and the test must be there, in order, and nothing else. */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collectors/stacks/unwind.h"
#include "tests/check_main.h"
#include "tests/stacks/chain.h"
#include "tests/stacks/fake_core.h"

static struct unwind_rules rules;
static struct stacks_modules modules;
static struct unwound seen;

static void start(void)
{
    stacks_modules_start();
}

static __attribute__((noinline)) void take(unsigned depth)
{
    struct unwind_start here;
    UNWIND_START(&here);
    unwind(&rules, &modules, &here, depth, &seen);
}

static uint64_t address(unsigned frame)
{
    return seen.frame[frame] & UNWIND_ADDRESS;
}

static bool is_exact(unsigned frame)
{
    return seen.frame[frame] >> WIRE_ENTRY_SHIFT == WIRE_ENTRY_PC;
}

/* Frame `from` and those after it are the chain, from its innermost link on. Returns how many. */
static unsigned assert_chain(const struct chain *chain, unsigned from)
{
    unsigned known = 0;
    for (unsigned i = chain->count; i-- > 0 && from + known < seen.count; known++)
        ck_assert_uint_eq(address(from + known), chain->returns[i]);
    return known;
}

/* And around the chain what the C library finds there too. */
static void assert_outer(unsigned from)
{
    void *theirs[300];
    int count = backtrace(theirs, 300);
    for (unsigned i = seen.count; i-- > from && count > 0;)
        ck_assert_uint_eq(address(i), (uint64_t)(uintptr_t)theirs[--count]);
}

/* take(), its caller and that one's come first. */
#define OWN_FRAMES 3u

static void innermost(struct chain *chain)
{
    take(UNWIND_DEPTH);
    ck_assert(!seen.cut);
    ck_assert(!seen.ended);
    ck_assert(is_exact(0));
    unsigned known = assert_chain(chain, OWN_FRAMES);
    ck_assert_uint_eq(known, chain->count);
    ck_assert_uint_gt(seen.count, OWN_FRAMES + known);
    assert_outer(OWN_FRAMES + known);
    for (unsigned i = 1; i < seen.count; i++)
        ck_assert(!is_exact(i));
}

static struct chain chain_of(unsigned links, void (*function)(struct chain *))
{
    return (struct chain){.innermost = function, .left = links};
}

static chain_run *const ways[] = {
    chain_plain, chain_unoptimised, chain_no_pointer, chain_pointer, chain_vectors,
#ifdef HAVE_CXX
    chain_cxx,
#endif
};
#define WAYS ((int)(sizeof ways / sizeof ways[0]))

START_TEST(every_way)
{
    for (unsigned known = 0; known < 4; known++) { /* rules that are new, and that are known */
        stacks_unloads_seen = known >= 2;
        struct chain chain = chain_of(40, innermost);
        ways[_i](&chain);
        ck_assert_uint_gt(chain.count, 80);
    }
}
END_TEST

static void *in_thread(void *way)
{
    struct chain chain = chain_of(30, innermost);
    (*(chain_run *const *)way)(&chain);
    return NULL;
}

START_TEST(threads)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, in_thread, (void *)&ways[_i]), 0);
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(after_fork)
{
    struct chain chain = chain_of(10, innermost);
    pid_t child = fork();
    if (child == 0) {
        memset(&rules, 0, sizeof rules); /* as a page that fork wipes */
        memset(&modules, 0, sizeof modules);
        chain_plain(&chain);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

static void innermost_of_deep(struct chain *chain)
{
    take(UNWIND_DEPTH);
    ck_assert(seen.cut);
    ck_assert(!seen.ended);
    ck_assert_uint_eq(seen.count, UNWIND_DEPTH);
    ck_assert_uint_eq(assert_chain(chain, OWN_FRAMES), UNWIND_DEPTH - OWN_FRAMES);
    take(5);
    ck_assert(seen.cut);
    ck_assert_uint_eq(seen.count, 5);
}

START_TEST(deep_recursion)
{
    static struct chain chain;
    chain = chain_of(2000, innermost_of_deep);
    chain_plain(&chain);
}
END_TEST

/* ---- signals */

static struct chain *interrupted;
static volatile sig_atomic_t handled;

static unsigned frame_of(uint64_t wanted)
{
    unsigned i = 0;
    while (i < seen.count && address(i) != wanted)
        i++;
    return i;
}

static void on_signal(int number)
{
    (void)number;
    take(UNWIND_DEPTH);
    handled++;
    ck_assert(!seen.ended);
    unsigned from = frame_of(interrupted->returns[interrupted->count - 1]);
    ck_assert_uint_lt(from, seen.count);
    ck_assert_uint_eq(assert_chain(interrupted, from), interrupted->count);
    unsigned exact = 0;
    for (unsigned i = 1; i < from; i++)
        exact += is_exact(i);
    ck_assert_uint_eq(exact, 1);
    assert_outer(from + interrupted->count);
}

static void innermost_raises(struct chain *chain)
{
    interrupted = chain;
    raise(SIGUSR1);
}

static void handle(int flags)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
}

START_TEST(signal_frame)
{
    struct chain chain = chain_of(20, innermost_raises);
    handle(0);
    ways[_i](&chain);
    ck_assert_int_eq(handled, 1);
}
END_TEST

START_TEST(alternate_stack)
{
    struct chain chain = chain_of(20, innermost_raises);
    size_t bytes = 256 << 10;
    char *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {.ss_sp = room, .ss_size = bytes};
    ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
    handle(SA_ONSTACK);
    ways[_i](&chain);
    ck_assert_int_eq(handled, 1);
}
END_TEST

/* ---- code without tables */

#if defined(__x86_64__)
/* untold: keeps a frame pointer, and no table tells. untold_bare: does not, either. */
void call_untold(void (*function)(void));
void call_untold_bare(void (*function)(void));
__asm__(".text\n"
        ".globl call_untold\n.type call_untold, @function\n"
        "call_untold: push %rbp\n mov %rsp, %rbp\n sub $48, %rsp\n call *%rdi\n leave\n ret\n"
        ".size call_untold, . - call_untold\n"
        ".globl call_untold_bare\n.type call_untold_bare, @function\n"
        "call_untold_bare: push %rbp\n xor %ebp, %ebp\n sub $48, %rsp\n call *%rdi\n"
        "add $48, %rsp\n pop %rbp\n ret\n"
        ".size call_untold_bare, . - call_untold_bare\n");

static void take_all(void)
{
    take(UNWIND_DEPTH);
    __asm__ volatile(""); /* a call, no jump */
}

static void through_untold(struct chain *chain)
{
    call_untold(take_all);
    ck_assert(!seen.ended);
    unsigned from = frame_of(chain->returns[chain->count - 1]);
    ck_assert_uint_eq(from, 5); /* take, take_all, call_untold, this function, its caller */
    ck_assert_uint_eq(assert_chain(chain, from), chain->count);
}

static void through_bare(struct chain *chain)
{
    (void)chain;
    call_untold_bare(take_all);
    ck_assert(seen.ended); /* and not led astray */
    ck_assert_uint_eq(seen.count, 3);
}

START_TEST(assembler_with_frame_pointer)
{
    struct chain chain = chain_of(20, through_untold);
    chain_plain(&chain);
}
END_TEST

START_TEST(assembler_without)
{
    struct chain chain = chain_of(20, through_bare);
    chain_plain(&chain);
}
END_TEST

/* The same code, as a compiler at run time would write it. */
static void through_generated(struct chain *chain)
{
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83,
                                         0xec, 0x30, 0xff, 0xd7, 0xc9, 0xc3};
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*function)(void (*)(void));
    memcpy(page, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    memcpy(&function, &page, sizeof page);
    function(take_all);
    ck_assert(!seen.ended);
    unsigned from = frame_of(chain->returns[chain->count - 1]);
    ck_assert_uint_eq(from, 5);
    ck_assert_uint_eq(unwind_module(seen.frame[2]), 0);
    ck_assert_uint_eq(assert_chain(chain, from), chain->count);
}

START_TEST(generated_code)
{
    struct chain chain = chain_of(20, through_generated);
    chain_plain(&chain);
}
END_TEST
#endif

static void innermost_hammers(struct chain *chain)
{
    (void)chain;
    for (unsigned i = 0; i < 1000; i++)
        take(UNWIND_DEPTH);
}

START_TEST(no_module_twice)
{
    struct chain chain = chain_of(20, innermost_hammers);
    chain_plain(&chain);
    for (unsigned i = 0; i < fake_core.module_count; i++) {
        for (unsigned k = 0; k < i; k++)
            ck_assert_uint_ne(fake_core.modules[i].address, fake_core.modules[k].address);
    }
    ck_assert_uint_ge(fake_core.module_count, 2); /* the program, the C library */
}
END_TEST

/* The kernel's own object has no file; it is known, and has tables. */
START_TEST(vdso)
{
    uint64_t at = getauxval(AT_SYSINFO_EHDR);
    if (!at)
        return;
    uint32_t number = stacks_module_at(&modules, at + 64);
    ck_assert_uint_ne(number, 0);
    ck_assert_str_eq(fake_core_text(fake_core.modules[0].path), "[vdso]");
    ck_assert_uint_eq(fake_core.modules[0].address, at);
    ck_assert_uint_ne(modules.slots[number - 1].tables.header, 0);
    ck_assert_uint_eq(stacks_module_at(&modules, at + 64), number);
    ck_assert_uint_eq(stacks_module_at(&modules, 64), 0);
}
END_TEST

/* A C library that cannot be asked for an address: modules are those that were listed. */
START_TEST(listed_modules)
{
    struct chain chain = chain_of(20, innermost);
    void *one;
    backtrace(&one, 1); /* loads a library when it is first called */
    stacks_modules_look(&modules);
    ck_assert_uint_ge(fake_core.module_count, 2);
    unsigned listed = fake_core.module_count;
    chain_plain(&chain);
    stacks_modules_look(&modules);
    ck_assert_uint_eq(fake_core.module_count, listed);
}
END_TEST

static uint64_t load_plugin(const char *path, void **handle)
{
    *handle = dlopen(path, RTLD_NOW);
    ck_assert_msg(*handle, "%s", dlerror());
    return (uint64_t)(uintptr_t)dlsym(*handle, "plugin_call");
}

static int take_inside(void *unused)
{
    (void)unused;
    take(UNWIND_DEPTH);
    return (int)seen.count;
}

static bool take_through(uint64_t function)
{
    int (*call)(int (*)(void *), void *);
    memcpy(&call, &function, sizeof call);
    call(take_inside, NULL);
    return !seen.ended;
}

/* A module that finds no slot: the stack ends in it and says so, no word is sent of it. One that
 * has a slot keeps it, also when it comes back; and what has one may be asked whether it is there.
 */
START_TEST(beyond_the_table)
{
    void *small, *large;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t at = load_plugin(PLUGINS "/small.so", &small);
        ck_assert(take_through(at));
        uint32_t number = stacks_module_at(&modules, at);
        ck_assert_uint_ne(number, MODULE_BEYOND);
        ck_assert(stacks_module_is_at(&modules, number, at));
        atomic_store(&modules.count, MODULES);
        uint64_t other = load_plugin(PLUGINS "/large.so", &large);
        unsigned told = fake_core.module_count;
        for (unsigned again = 0; again < 2; again++) {
            ck_assert(!take_through(other));
            ck_assert(seen.no_slot);
            ck_assert_uint_eq(seen.count, 3); /* take, take_inside, the plugin */
            ck_assert_uint_eq(unwind_module(seen.frame[2]), MODULE_BEYOND);
            ck_assert(!seen.cut);
        }
        ck_assert_uint_eq(fake_core.module_count, told);
        dlclose(large);
        dlclose(small);
        ck_assert(!stacks_module_is_at(&modules, number, at));
        stacks_modules_look(&modules);
        ck_assert_uint_eq(stacks_module_at(&modules, at), 0);
    }
}
END_TEST

/* There too nothing goes by the tables of a library that is gone: after dlclose, and when another
 * one has its place before anybody looked. */
START_TEST(listed_modules_go)
{
    void *handle;
    uint64_t small = load_plugin(PLUGINS "/small.so", &handle);
    stacks_modules_look(&modules);
    ck_assert_uint_ne(stacks_module_at(&modules, small), 0);
    dlclose(handle);
    stacks_modules_look(&modules);
    ck_assert_uint_eq(stacks_module_at(&modules, small), 0);
    for (unsigned i = 0; i < 2; i++) {
        const char *path = i == 0 ? PLUGINS "/small.so" : PLUGINS "/large.so";
        uint64_t at = load_plugin(path, &handle);
        stacks_modules_look(&modules);
        uint32_t number = stacks_module_at(&modules, at);
        ck_assert_uint_ne(number, 0);
        ck_assert_str_eq(fake_core_text(modules.slots[number - 1].path), path);
        dlclose(handle);
    }
}
END_TEST

int main(void)
{
    const struct check_test tests[] = {
        {every_way, WAYS},
        {threads, WAYS},
        {after_fork, 1},
        {deep_recursion, 1},
        {signal_frame, WAYS},
        {alternate_stack, WAYS},
#if defined(__x86_64__)
        {assembler_with_frame_pointer, 1},
        {assembler_without, 1},
        {generated_code, 1},
#endif
        {no_module_twice, 1},
        {vdso, 1},
        {beyond_the_table, 1},
    };
    /* stacks_modules_start has not found the function */
    const struct check_test old_c_library[] = {{listed_modules, 1}, {listed_modules_go, 1}};
    int failed = check_run("unwind", start, NULL, tests, sizeof tests / sizeof tests[0]);
    return failed | check_run("unwind: old C library", NULL, NULL, old_c_library,
                              sizeof old_c_library / sizeof old_c_library[0]);
}
