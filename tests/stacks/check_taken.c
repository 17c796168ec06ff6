/* How stacks get their numbers and what is sent of them: places, rates, threads, fork, libraries
 * that come and go, other stacks, signal handlers. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "collectors/stacks/stacks.h"
#include "tests/check_main.h"
#include "tests/stacks/fake_core.h"

/* Before the collector reads its options */
__attribute__((constructor(101))) static void choose_options(void)
{
    fake_core.options = "stacks=launch+alloc:3,stack-depth=60";
}

static __attribute__((noinline)) uint32_t take_here(void)
{
    uint32_t number = stacks_take(STACKS_LAUNCH);
    __asm__ volatile("");
    return number;
}

static __attribute__((noinline)) uint32_t take_there(void)
{
    uint32_t number = stacks_take(STACKS_LAUNCH);
    __asm__ volatile("nop");
    return number;
}

static volatile unsigned several = 3; /* keeps loops loops: one place in the code */

static const struct fake_stack *stack_of(uint32_t number)
{
    const struct fake_stack *stack = fake_core_stack(number);
    ck_assert_ptr_nonnull(stack);
    return stack;
}

START_TEST(places)
{
    uint32_t here = 0, there = 0;
    for (unsigned i = 0; i < several; i++) {
        uint32_t number = take_here();
        ck_assert_uint_ne(number, 0);
        ck_assert(i == 0 || number == here);
        here = number;
    }
    for (unsigned i = 0; i < several; i++)
        there = take_there();
    ck_assert_uint_ne(there, here);
    ck_assert_uint_eq(fake_core.stack_count, 2);
    ck_assert_uint_eq(stack_of(here)->flags, 0);
    ck_assert_uint_gt(stack_of(here)->count, 4);
    for (uint32_t i = 0; i < stack_of(here)->count; i++) /* no trace of the modules' numbers */
        ck_assert_uint_lt(stack_of(here)->entries[i] & WIRE_ENTRY_VALUE, 1ull << 48);
    ck_assert_uint_ge(fake_core.module_count, 2);
    char self[4096] = "";
    ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
    ck_assert_str_eq(fake_core_text(fake_core.modules[0].path), self);
}
END_TEST

START_TEST(rates)
{
    unsigned taken = 0;
    for (unsigned i = 0; i < several * 4; i++)
        taken += stacks_take(STACKS_ALLOC) != 0;
    ck_assert_uint_eq(taken, several * 4 / 3);
    ck_assert(!stacks_wanted(STACKS_SYNC));
    ck_assert_uint_eq(stacks_take(STACKS_SYNC), 0);
    ck_assert_uint_eq(stacks_take(STACKS_NONE), 0);
    ck_assert_int_eq(stacks_kind_of(WIRE_CLASS_TRANSFER), STACKS_LAUNCH);
    ck_assert_int_eq(stacks_kind_of(WIRE_CLASS_FREE), STACKS_NONE);
    ck_assert_int_eq(stacks_kind_of(WIRE_CLASS_GRAPH_MAKE), STACKS_BUILD);
    ck_assert_uint_eq(stacks_every[STACKS_BUILD], 1); /* with launches, whatever their rate */
}
END_TEST

static __attribute__((noinline)) uint32_t deep(unsigned left)
{
    uint32_t number = left ? deep(left - 1) : take_here();
    __asm__ volatile("");
    return number;
}

START_TEST(depth)
{
    const struct fake_stack *stack = stack_of(deep(20));
    ck_assert_uint_eq(stack->flags, 0);
    ck_assert_uint_eq(fake_core.counts[WIRE_COUNT_STACK_CUT], 0);
    stack = stack_of(deep(100));
    ck_assert_uint_eq(stack->flags, WIRE_STACK_CUT);
    ck_assert_uint_le(stack->count, 60);
    ck_assert_uint_eq(fake_core.counts[WIRE_COUNT_STACK_CUT], 1);
    ck_assert_uint_ne(deep(101), 0); /* what is left of it is the same: one number */
    ck_assert_uint_eq(fake_core.stack_count, 2);
}
END_TEST

START_TEST(no_room)
{
    ck_assert_uint_ne(take_there(), 0); /* modules are known */
    fake_core.refuse = true;
    for (unsigned i = 0; i < several + 1; i++) {
        if (i == several)
            fake_core.refuse = false;
        ck_assert_int_eq(take_here() != 0, i == several);
    }
    ck_assert_uint_eq(fake_core.counts[WIRE_COUNT_STACK_UNSENT], several);
}
END_TEST

/* No heap, no errno. What the first ones leave behind (names of modules) is the fake's. */
START_TEST(leaves_no_trace)
{
    uint32_t number = 0;
    for (unsigned i = 0; i < several; i++) {
        if (i == 1)
            number = take_here();
        size_t before = mallinfo2().uordblks;
        errno = 77;
        if (i != 1)
            ck_assert_uint_ne(deep(several * i), 0);
        ck_assert_int_eq(errno, 77);
        if (i > 1)
            ck_assert_uint_eq(mallinfo2().uordblks, before);
    }
    ck_assert_uint_ne(number, 0);
}
END_TEST

static void *many_takes(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < 2000; i++)
        ck_assert_uint_ne(deep(i % 50), 0);
    return NULL;
}

START_TEST(threads)
{
    pthread_t ids[4];
    for (unsigned i = 0; i < 4; i++)
        pthread_create(&ids[i], NULL, many_takes, NULL);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
    /* 50 depths; one that two threads defined at the same moment was sent twice */
    ck_assert_uint_ge(fake_core.stack_count, 50);
    ck_assert_uint_le(fake_core.stack_count, 200);
    unsigned known = fake_core.stack_count;
    pthread_create(&ids[0], NULL, many_takes, NULL);
    pthread_join(ids[0], NULL);
    ck_assert_uint_eq(fake_core.stack_count, known);
}
END_TEST

START_TEST(forked_child)
{
    uint32_t mine = 0;
    for (unsigned i = 0; i < several - 1; i++) {
        uint32_t number = take_here();
        if (i == 0) {
            mine = number;
            ck_assert_uint_eq(fake_core.stack_count, 1);
            pid_t child = fork();
            if (child != 0) {
                int status;
                waitpid(child, &status, 0);
                ck_assert_int_eq(status, 0);
                return;
            }
            fake_core.stack_count = fake_core.module_count = 0;
        } else { /* in the child: numbers begin anew, all is sent again */
            _exit(number == 1 && mine == 1 && fake_core.stack_count == 1 &&
                          fake_core.module_count > 0
                      ? 0
                      : 1);
        }
    }
}
END_TEST

/* ---- libraries */

struct plugin {
    void *handle;
    int (*call)(int (*function)(void *), void *argument);
    uint64_t address;
};

static struct plugin load(const char *name)
{
    char path[4200];
    struct plugin plugin;
    Dl_info info;
    snprintf(path, sizeof path, PLUGINS "/%s", name);
    plugin.handle = dlopen(path, RTLD_NOW);
    ck_assert_msg(plugin.handle, "%s", dlerror());
    void *symbol = dlsym(plugin.handle, "plugin_call");
    memcpy(&plugin.call, &symbol, sizeof symbol);
    ck_assert(dladdr(symbol, &info));
    plugin.address = (uint64_t)(uintptr_t)info.dli_fbase;
    return plugin;
}

static void unload(struct plugin *plugin)
{
    ck_assert_int_eq(dlclose(plugin->handle), 0);
    fake_core.source->unloaded();
}

static int take_inside(void *number)
{
    *(uint32_t *)number = take_here();
    return 0;
}

static __attribute__((noinline)) uint32_t take_through(const struct plugin *plugin)
{
    uint32_t number = 0;
    plugin->call(take_inside, &number);
    __asm__ volatile("");
    return number;
}

static const struct wire_module *last_module(void)
{
    return &fake_core.modules[fake_core.module_count - 1];
}

/* What was said last of the library. */
static const struct wire_module *module_of(const struct plugin *plugin)
{
    unsigned i = fake_core.module_count;
    while (i > 0 && fake_core.modules[i - 1].address != plugin->address)
        i--;
    ck_assert_uint_gt(i, 0);
    return &fake_core.modules[i - 1];
}

START_TEST(library_comes_and_goes)
{
    uint32_t first = 0, second = 0;
    for (unsigned i = 0; i < several; i++) {
        struct plugin plugin = load(i == 1 ? "large.so" : "small.so");
        unsigned stacks = fake_core.stack_count;
        uint32_t number = take_through(&plugin);
        const struct wire_module *module = module_of(&plugin);
        ck_assert_uint_eq(module->head.flags, 0);
        ck_assert_ptr_nonnull(
            strstr(fake_core_text(module->path), i == 1 ? "large.so" : "small.so"));
        ck_assert_uint_ne(module->build_id, 0);
        if (fake_core.stack_count > stacks) {
            const struct fake_stack *stack = stack_of(number);
            ck_assert_uint_eq(stack->flags, 0); /* and not by the rules of the other one */
            ck_assert_uint_ge(stack->entries[3], plugin.address);
            ck_assert_uint_lt(stack->entries[3], plugin.address + module->bytes);
        }
        if (i == 0)
            first = number;
        else if (i == 1)
            second = number;
        else
            ck_assert_uint_ne(number, second);
        unload(&plugin);
        ck_assert_uint_eq(last_module()->head.flags, WIRE_MODULE_UNLOADED);
        ck_assert_uint_eq(last_module()->address, plugin.address);
    }
    ck_assert_uint_ne(first, 0);
    ck_assert_uint_ne(second, first);
    ck_assert_uint_eq(fake_core.counts[WIRE_COUNT_STACK_ENDED], 0);
}
END_TEST

/* dlclose was not seen: the helper thread sees that it is gone. */
START_TEST(library_goes_unseen)
{
    struct plugin plugin = load("small.so");
    ck_assert_uint_ne(take_through(&plugin), 0);
    unsigned known = fake_core.module_count;
    fake_core.source->tick();
    ck_assert_uint_eq(fake_core.module_count, known);
    dlclose(plugin.handle);
    fake_core.source->tick();
    ck_assert_uint_eq(fake_core.module_count, known + 1);
    ck_assert_uint_eq(last_module()->head.flags, WIRE_MODULE_UNLOADED);
}
END_TEST

/* ... and another one was loaded before that. */
START_TEST(library_is_replaced_unseen)
{
    uint32_t numbers[2] = {0};
    struct plugin plugin;
    for (unsigned i = 0; i + 1 < several; i++) { /* the same code, but for the size of its frame */
        plugin = load(i == 0 ? "medium.so" : "large.so");
        numbers[i] = take_through(&plugin);
        ck_assert_uint_ne(numbers[i], 0);
        if (i == 0)
            dlclose(plugin.handle);
    }
    ck_assert_uint_ne(numbers[0], numbers[1]);
    const struct fake_stack *stack = stack_of(numbers[1]);
    ck_assert_uint_eq(stack->count, stack_of(numbers[0])->count);
    const struct wire_module *module = module_of(&plugin);
    ck_assert_ptr_nonnull(strstr(fake_core_text(module->path), "large.so"));
    ck_assert_uint_eq(stack->flags, 0);
    ck_assert_uint_ge(stack->entries[3], plugin.address);
    ck_assert_uint_lt(stack->entries[3], plugin.address + module->bytes);
}
END_TEST

START_TEST(relative_path)
{
    ck_assert_int_eq(chdir(PLUGINS), 0);
    void *handle = dlopen("./small.so", RTLD_NOW);
    ck_assert_ptr_nonnull(handle);
    struct plugin plugin = load("small.so"); /* the same */
    ck_assert_uint_ne(take_through(&plugin), 0);
    const char *path = fake_core_text(module_of(&plugin)->path);
    ck_assert_int_eq(path[0], '/');
    ck_assert_ptr_nonnull(strstr(path, "small.so"));
}
END_TEST

static size_t merged_count;
static uint64_t merged_first;
static size_t too_many(const uint64_t *frames, const uint64_t *cfas, size_t count, uint64_t *merged,
                       size_t room)
{
    ck_assert_uint_ne(cfas[0], 0);
    merged_count = count;
    merged_first = frames[0];
    for (size_t i = 0; i < room; i++)
        merged[i] = (uint64_t)WIRE_ENTRY_PYTHON << WIRE_ENTRY_SHIFT | (uint64_t)0xabc << 48 | i;
    return room + 1;
}

START_TEST(merged_frames)
{
    stacks_set_merge(too_many);
    const struct fake_stack *stack = stack_of(take_here());
    ck_assert_uint_gt(merged_count, 3);
    ck_assert_uint_ne(merged_first >> 48 & 0xfff, 0);
    ck_assert_uint_eq(stack->flags, WIRE_STACK_CUT);
    ck_assert_uint_eq(stack->entries[7],
                      (uint64_t)WIRE_ENTRY_PYTHON << 60 | (uint64_t)0xabc << 48 | 7);
}
END_TEST

#ifndef __SANITIZE_THREAD__ /* does not know such stacks, and holds signals back */
/* ---- other stacks */

static ucontext_t main_context, other_context;
static uint32_t taken_by_other;

static void other(void)
{
    taken_by_other = deep(30);
    swapcontext(&other_context, &main_context);
}

static __attribute__((noinline)) void run_on(void *room, size_t bytes)
{
    getcontext(&other_context);
    other_context.uc_stack.ss_sp = room;
    other_context.uc_stack.ss_size = bytes;
    makecontext(&other_context, other, 0);
    swapcontext(&main_context, &other_context);
}

START_TEST(coroutines)
{
    uint32_t number = 0;
    for (unsigned i = 0; i < 100; i++) { /* each on memory that came and goes */
        size_t bytes = (64 << 10) + i % 7 * 4096;
        void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        run_on(room, bytes);
        munmap(room, bytes);
        ck_assert_uint_ne(taken_by_other, 0);
        ck_assert(i == 0 || taken_by_other == number);
        number = taken_by_other;
    }
    ck_assert_uint_gt(stack_of(number)->count, 31); /* to the coroutine's first function */
}
END_TEST

static volatile sig_atomic_t handled;

static void on_timer(int number)
{
    (void)number;
    if (deep(5) != 0)
        handled++;
}

START_TEST(in_signal_handlers)
{
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned i = 0; handled < 300; i++)
        ck_assert_uint_ne(deep(i % 40), 0);
    setitimer(ITIMER_REAL, &never, NULL);
    /* One ends in a module that nothing was known of when its definition was turned away. */
    ck_assert_uint_le(fake_core.counts[WIRE_COUNT_STACK_ENDED], fake_core.turned_away);
}
END_TEST

#endif

int main(void)
{
    const struct check_test tests[] = {
        {places, 1},
        {rates, 1},
        {depth, 1},
        {no_room, 1},
        {leaves_no_trace, 1},
        {threads, 1},
        {forked_child, 1},
        {library_comes_and_goes, 1},
        {library_goes_unseen, 1},
        {library_is_replaced_unseen, 1},
        {relative_path, 1},
        {merged_frames, 1},
#ifndef __SANITIZE_THREAD__
        {coroutines, 1},
        {in_signal_handlers, 1},
#endif
    };
    return check_run("stacks", NULL, NULL, tests, sizeof tests / sizeof tests[0]);
}
