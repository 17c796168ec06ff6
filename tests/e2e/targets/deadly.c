/* Makes one mark, so that perfkit has something to record, and then dies or handles signals in the
 * way that its argument names. Everything it sees of its own dispositions it prints: the output and
 * the status must be the same with and without perfkit. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perfkit/annotate.h"

static sigjmp_buf back;
static struct sigaction before;
static char alternate[1 << 16];
static volatile int zero, sink;
static int *volatile nowhere;

static void put(const char *text)
{
    if (write(1, text, strlen(text)) < 0)
        _exit(99);
}

static void print_and_exit(int number)
{
    (void)number;
    put("handled\n");
    _exit(7);
}

static void print(int number)
{
    (void)number;
    put("handled\n");
}

static void jump(int number)
{
    siglongjmp(back, number);
}

/* What crash reporters do: give the old action back, and let the instruction run again. */
static void report_and_return(int number)
{
    put("crash report\n");
    sigaction(number, &before, NULL);
}

static void report_and_raise(int number)
{
    put("crash report\n");
    signal(number, SIG_DFL);
    raise(number);
}

static void fault_again(int number)
{
    (void)number;
    put("faulting in the handler\n");
    sink = *nowhere;
}

static void set(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(number, &action, &before);
}

static void describe(const char *what, const struct sigaction *a)
{
    printf("%s: %s, flags %x, mask %d%d\n", what,
           a->sa_handler == SIG_DFL   ? "default"
           : a->sa_handler == SIG_IGN ? "ignored"
           : a->sa_handler == print   ? "print"
                                      : "another",
           (unsigned)a->sa_flags & ~0x04000000u, sigismember(&a->sa_mask, SIGUSR1),
           sigismember(&a->sa_mask, SIGTERM));
}

static void show(const char *what, int number)
{
    struct sigaction now;
    sigaction(number, NULL, &now);
    describe(what, &now);
}

static const char *name(void (*handler)(int))
{
    return handler == SIG_DFL   ? "default"
           : handler == SIG_IGN ? "ignored"
           : handler == print   ? "print"
                                : "another";
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* sigset */
static void dispositions(void)
{
    for (int number = 1; number < 32; number++) {
        char what[32];
        struct sigaction plain = {.sa_handler = SIG_DFL, .sa_flags = SA_RESTART}, was;
        if (number == SIGKILL || number == SIGSTOP)
            continue;
        snprintf(what, sizeof what, "signal %d", number);
        show(what, number);
        printf("signal() returns %s, ", name(signal(number, print)));
        printf("then %s\n", name(signal(number, SIG_DFL)));
        show("set to the default", number);
        sigaddset(&plain.sa_mask, SIGUSR1);
        sigaction(number, &plain, &was);
        describe("replaced", &was);
        show("with flags", number);
        printf("sysv %s, ", name(sysv_signal(number, SIG_IGN)));
        printf("sigset %s\n", name(sigset(number, SIG_DFL)));
    }
    raise(SIGINT);
}

static void in_child(void (*act)(void))
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        perfkit_mark("in the child");
        act();
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("child: signal %d, core %d, status %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0,
           !!WCOREDUMP(status), WIFEXITED(status) ? WEXITSTATUS(status) : 0);
    fflush(stdout);
}

static void dump(void)
{
    struct rlimit some = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_CORE, &some);
}

static void null_pointer(void)
{
    sink = *nowhere;
}

static void dump_and_abort(void)
{
    dump();
    abort();
}

static void dump_and_fault(void)
{
    dump();
    null_pointer();
}

static void *fault_in_thread(void *unused)
{
    null_pointer();
    return unused;
}

static int overflow(int depth)
{
    volatile char room[4096];
    room[0] = (char)depth;
    return depth < 0 ? 0 : overflow(depth + 1) + room[0];
}

static void on_alternate_stack(void (*handler)(int))
{
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    sigaltstack(&stack, NULL);
    set(SIGSEGV, handler, SA_ONSTACK);
}

static void bus(void)
{
    char path[] = "/tmp/deadlyXXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    volatile char *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    sink = at[0];
}

static void jump_out(void)
{
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0) {
            set(SIGSEGV, jump, 0);
            null_pointer();
        }
        put("back\n");
    }
    if (sigsetjmp(back, 1) == 0) {
        set(SIGABRT, jump, 0);
        abort();
    }
    put("back from abort\n");
    perfkit_mark("it lives on");
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void vforked(void)
{
    int status;
    pid_t child = vfork();
    if (child == 0) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGTERM);
        _exit(0);
    }
    waitpid(child, &status, 0);
    printf("child: signal %d\n", WTERMSIG(status));
    show("SIGPIPE", SIGPIPE);
}

static void waited_for(void)
{
    sigset_t one;
    int number;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigaddset(&one, SIGTERM);
    sigprocmask(SIG_BLOCK, &one, NULL);
    kill(getpid(), SIGUSR1);
    sigdelset(&one, SIGTERM);
    sigwait(&one, &number);
    printf("waited for %d\n", number);
    fflush(stdout);
    kill(getpid(), SIGTERM);
    sigaddset(&one, SIGTERM);
    put("unblocking\n");
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static void free_twice(void)
{
    void *volatile at = malloc(4096), *volatile wall = malloc(16);
    free(at);
    sink = wall != NULL;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuse-after-free"
    free(at);
#pragma GCC diagnostic pop
}

static void act(const char *way)
{
    pthread_t thread;
#define WAY(text) else if (strcmp(way, text) == 0)
    if (strncmp(way, "raise ", 6) == 0)
        raise(atoi(way + 6));
    WAY("abort") abort();
    WAY("assert") assert(zero);
    WAY("free twice") free_twice();
    WAY("null") null_pointer();
    WAY("divide") sink = 1 / zero;
    WAY("trap") __builtin_trap();
    WAY("bus") bus();
    WAY("overflow") sink = overflow(1);
    WAY("overflow handled")
    {
        on_alternate_stack(print_and_exit);
        sink = overflow(1);
    }
    WAY("overflow reported")
    {
        on_alternate_stack(report_and_return);
        sink = overflow(1);
    }
    WAY("thread")
    {
        pthread_create(&thread, NULL, fault_in_thread, NULL);
        pthread_join(thread, NULL);
    }
    WAY("reported")
    {
        set(SIGSEGV, report_and_return, 0);
        null_pointer();
    }
    WAY("raised again")
    {
        set(SIGSEGV, report_and_raise, SA_NODEFER);
        null_pointer();
    }
    WAY("reset")
    {
        set(SIGTERM, print, (int)SA_RESETHAND);
        raise(SIGTERM);
        raise(SIGTERM);
    }
    WAY("twice")
    {
        set(SIGSEGV, fault_again, 0);
        null_pointer();
    }
    WAY("twice, open")
    {
        set(SIGSEGV, fault_again, (int)(SA_NODEFER | SA_RESETHAND));
        null_pointer();
    }
    WAY("abort handled")
    {
        set(SIGABRT, print, 0);
        abort();
    }
    WAY("abort exits")
    {
        set(SIGABRT, print_and_exit, 0);
        abort();
    }
    WAY("abort ignored")
    {
        signal(SIGABRT, SIG_IGN);
        abort();
    }
    WAY("ignored")
    {
        signal(SIGTERM, SIG_IGN);
        raise(SIGTERM);
        put("alive\n");
        _exit(4);
    }
    WAY("jump") jump_out();
    WAY("children")
    {
        in_child(abort);
        in_child(null_pointer);
        in_child(dump_and_abort);
        in_child(dump_and_fault);
        in_child(free_twice);
    }
    WAY("vfork") vforked();
    WAY("waited for") waited_for();
    WAY("dispositions") dispositions();
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    perfkit_mark("before the end");
    act(argc > 1 ? argv[1] : "");
    put("alive at the end\n");
    return 3;
}
