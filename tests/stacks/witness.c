/* Preloaded into a program, sees calls that give a device work before anything of perfkit does, and
 * writes down from where they came, by the C++ runtime's unwinder: what perfkit's stacks are
 * compared with where no debugger is. One line for each distinct stack into $STACK_WITNESS.PID,
 * when the process ends by exit; offsets are those from a file's lowest page:
 *
 *     COUNT FUNCTION FILE+OFFSET FILE+OFFSET ...      innermost first
 *
 * A trampoline for each function jumps to the true one, so no frame of ours is on the program's
 * stack meanwhile. x86-64 only. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#define MOST_FRAMES 250u
#define MOST_STACKS 4096u

#define FUNCTIONS(X)                                                                               \
    X(cudaLaunchKernel)                                                                            \
    X(__cudaLaunchKernel)                                                                          \
    X(cudaLaunchKernelExC)                                                                         \
    X(cudaMemcpyAsync)                                                                             \
    X(cudaMemsetAsync)                                                                             \
    X(clEnqueueFillBuffer)                                                                         \
    X(clEnqueueNDRangeKernel)

enum function {
#define X(name) FUNCTION_##name,
    FUNCTIONS(X)
#undef X
        FUNCTION_COUNT
};
static const char *const names[] = {
#define X(name) #name,
    FUNCTIONS(X)
#undef X
};

struct trace {
    uint32_t count;
    uint64_t frames[MOST_FRAMES];
};

/* As text, for a library may be gone when the process ends, and another one be in its place. */
static struct {
    char *text;
    unsigned long number;
} stacks[MOST_STACKS]; /* what comes later is not looked at: none of that many */
static unsigned stack_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *found[FUNCTION_COUNT];

static _Unwind_Reason_Code see(struct _Unwind_Context *context, void *argument)
{
    struct trace *trace = argument;
    uint64_t address = _Unwind_GetIP(context);
    if (address == 0 || trace->count == MOST_FRAMES)
        return _URC_END_OF_STACK;
    trace->frames[trace->count++] = address;
    return _URC_NO_REASON;
}

static void *find(enum function function)
{
    static const char *const libraries[] = {"libcudart.so.13", "libcudart.so.12",
                                            "libcudart.so.11.0", "libOpenCL.so.1"};
    void *symbol = dlsym(RTLD_NEXT, names[function]);
    for (unsigned i = 0; !symbol && i < sizeof libraries / sizeof libraries[0]; i++) {
        void *handle = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        symbol = handle ? dlsym(handle, names[function]) : NULL;
    }
    if (!symbol)
        abort();
    return symbol;
}

static void write_place(FILE *file, uint64_t address)
{
    Dl_info info;
    if (dladdr((void *)(uintptr_t)(address - 1), &info) && info.dli_fbase)
        fprintf(file, " %s+%lu", info.dli_fname,
                (unsigned long)(address - (uint64_t)(uintptr_t)info.dli_fbase));
    else
        fprintf(file, " ?+%lu", (unsigned long)address);
}

/* Its own frame and the trampoline's are no part. */
static char *text_of(const struct trace *trace)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    for (unsigned i = 2; file && i < trace->count; i++)
        write_place(file, trace->frames[i]);
    if (file)
        fclose(file);
    return text;
}

static void keep(const char *function, const struct trace *trace)
{
    char *places = text_of(trace), *text = NULL;
    if (!places || asprintf(&text, "%s%s", function, places) < 0)
        abort();
    free(places);
    pthread_mutex_lock(&lock);
    unsigned i = 0;
    while (i < stack_count && strcmp(stacks[i].text, text) != 0)
        i++;
    if (i == stack_count && i < MOST_STACKS) {
        stacks[stack_count++].text = text;
        text = NULL;
    }
    if (i < stack_count)
        stacks[i].number++;
    pthread_mutex_unlock(&lock);
    free(text);
}

/* By the trampolines. Returns the true function. */
__attribute__((visibility("hidden"))) void *witness_saw(enum function function);

void *witness_saw(enum function function)
{
    struct trace trace = {.count = 0};
    void *symbol = __atomic_load_n(&found[function], __ATOMIC_ACQUIRE);
    if (!symbol) {
        symbol = find(function);
        __atomic_store_n(&found[function], symbol, __ATOMIC_RELEASE);
    }
    _Unwind_Backtrace(see, &trace);
    keep(names[function], &trace);
    return symbol;
}

/* The six registers with arguments are kept; the stack is aligned as at a call. */
#define X(name)                                                                                    \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n"    \
            "push %rdi\n.cfi_adjust_cfa_offset 8\npush %rsi\n.cfi_adjust_cfa_offset 8\n"           \
            "push %rdx\n.cfi_adjust_cfa_offset 8\npush %rcx\n.cfi_adjust_cfa_offset 8\n"           \
            "push %r8\n.cfi_adjust_cfa_offset 8\npush %r9\n.cfi_adjust_cfa_offset 8\n"             \
            "sub $8, %rsp\n.cfi_adjust_cfa_offset 8\n"                                             \
            "mov witness_number_" #name "(%rip), %edi\ncall witness_saw\nmov %rax, %r11\n"         \
            "add $8, %rsp\n.cfi_adjust_cfa_offset -8\n"                                            \
            "pop %r9\n.cfi_adjust_cfa_offset -8\npop %r8\n.cfi_adjust_cfa_offset -8\n"             \
            "pop %rcx\n.cfi_adjust_cfa_offset -8\npop %rdx\n.cfi_adjust_cfa_offset -8\n"           \
            "pop %rsi\n.cfi_adjust_cfa_offset -8\npop %rdi\n.cfi_adjust_cfa_offset -8\n"           \
            "jmp *%r11\n.cfi_endproc\n.size " #name ", . - " #name "\n");                          \
    extern const int witness_number_##name;                                                        \
    __attribute__((visibility("hidden"), used)) const int witness_number_##name = FUNCTION_##name;
FUNCTIONS(X)
#undef X

static void forget(void)
{
    stack_count = 0;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(NULL, NULL, forget);
}

__attribute__((destructor)) static void write_all(void)
{
    const char *place = getenv("STACK_WITNESS");
    char path[4200];
    if (!place || stack_count == 0)
        return;
    snprintf(path, sizeof path, "%s.%ld", place, (long)getpid());
    FILE *file = fopen(path, "w");
    for (unsigned i = 0; file && i < stack_count; i++)
        fprintf(file, "%lu %s\n", stacks[i].number, stacks[i].text);
    if (file)
        fclose(file);
}
