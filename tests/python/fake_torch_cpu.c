/* Stands for libtorch_cpu.so: at::RecordFunction and its global callbacks, by PyTorch's names, as
 * far as operators are observed through them. PERFKIT_TEST_TORCH=twice: an object that begins
 * twice, which PyTorch's own does not: it is to be found out. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define SCOPES 10
#define MOST 4
#define DEEPEST 64

struct function;
struct callback {
    void **(*start)(void **context, const struct function *function);
    void (*end)(const struct function *function, void *context);
    double probability;
    bool scopes[SCOPES];
    bool inputs, outputs, ids;
};
struct known {
    struct callback callback;
    uint64_t handle; /* 0 = free */
};
struct function {
    uint64_t count;
    struct callback callbacks[MOST];
    void *contexts[MOST];
    char name[200];
    uint8_t scope;
    bool begun, is_async;
    int64_t sequence;
};
struct descriptor {
    size_t length;
    const char *text;
    uint8_t kind;
};

static struct known known[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct function stack[DEEPEST];
static __thread unsigned depth;

EXPORT uint64_t fake_add(struct callback callback) __asm__(
    "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
EXPORT void fake_remove(uint64_t handle) __asm__("_ZN2at14removeCallbackEm");
EXPORT int fake_profiler(void) __asm__("_ZN5torch8profiler4impl12profilerTypeEv");
EXPORT void set_profiler(int type);
EXPORT void fake_make(struct function *f,
                      uint8_t scope) __asm__("_ZN2at14RecordFunctionC1ENS_11RecordScopeE");
EXPORT void fake_destroy(struct function *f) __asm__("_ZN2at14RecordFunctionD1Ev");
EXPORT void fake_before(struct function *f, struct descriptor what, int64_t sequence) __asm__(
    "_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17"
    "reference_wrapperIKN3c1014FunctionSchemaEEEEl");
EXPORT const char *fake_name(const struct function *f) __asm__("_ZNK2at14RecordFunction4nameEv");
EXPORT bool fake_is_async(const struct function *f) __asm__("_ZNK2at14RecordFunction7isAsyncEv");
EXPORT struct function *collective_begin(const char *name, int is_async);
EXPORT void collective_end(struct function *f);
EXPORT void operator_begin(const char *name, int64_t sequence, int backward);
EXPORT void operator_end(void);

static uint64_t change(uint64_t handle, const struct callback *callback)
{
    static uint64_t last;
    pthread_mutex_lock(&lock);
    uint64_t result = 0;
    for (unsigned i = 0; !result && i < MOST; i++) {
        if (known[i].handle != handle)
            continue;
        if (callback)
            known[i] = (struct known){*callback, ++last};
        else
            known[i].handle = 0;
        result = callback ? last : handle;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

uint64_t fake_add(struct callback callback)
{
    if (callback.inputs || callback.outputs || callback.ids || callback.probability < 1)
        abort(); /* what costs PyTorch more than is needed */
    return change(0, &callback);
}

void fake_remove(uint64_t handle)
{
    change(handle, NULL);
}

static __thread int profiler; /* as torch::profiler::impl::ActiveProfilerType */

int fake_profiler(void)
{
    return profiler;
}

void set_profiler(int type)
{
    profiler = type;
}

void fake_make(struct function *f, uint8_t scope)
{
    *f = (struct function){.scope = scope, .sequence = -1};
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < MOST; i++)
        if (known[i].handle && known[i].callback.scopes[scope])
            f->callbacks[f->count++] = known[i].callback;
    pthread_mutex_unlock(&lock);
}

void fake_before(struct function *f, struct descriptor what, int64_t sequence)
{
    const char *mode = getenv("PERFKIT_TEST_TORCH");
    memcpy(f->name, what.text, what.length);
    f->sequence = sequence;
    f->begun = true;
    for (unsigned times = mode && strcmp(mode, "twice") == 0 ? 2 : 1; times > 0; times--)
        for (unsigned i = 0; i < f->count; i++)
            f->callbacks[i].start(&f->contexts[i], f);
}

void fake_destroy(struct function *f)
{
    for (unsigned i = 0; f->begun && i < f->count; i++)
        f->callbacks[i].end(f, f->contexts[i]);
}

const char *fake_name(const struct function *f)
{
    return f->name;
}

bool fake_is_async(const struct function *f)
{
    return f->is_async;
}

struct function *collective_begin(const char *name, int is_async)
{
    struct function *f = malloc(sizeof *f);
    if (!f)
        abort();
    fake_make(f, 0);
    f->is_async = is_async;
    fake_before(f, (struct descriptor){strlen(name), name, 0}, -1);
    return f;
}

void collective_end(struct function *f)
{
    fake_destroy(f);
    free(f);
}

void operator_begin(const char *name, int64_t sequence, int backward)
{
    struct function *f = &stack[depth++ % DEEPEST];
    fake_make(f, backward ? 1 : 0);
    fake_before(f, (struct descriptor){strlen(name), name, 0}, sequence);
}

void operator_end(void)
{
    fake_destroy(&stack[--depth % DEEPEST]);
}
