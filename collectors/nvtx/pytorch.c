/* PyTorch's operators, modules and compilations, and Python's garbage collections, as ranges that
 * no text is made for. The hook of `perfkit run --pytorch` (collectors/python/pytorch) switches
 * them on, with the interpreter's lock held.
 *
 * Operators: PyTorch calls back at the begin and end of each, on the operator's thread. Nothing of
 * PyTorch is linked: its functions are found by name, and where the sequence number lies in its
 * at::RecordFunction is found out on objects of our own making before the first operator. What does
 * not behave as known is not used, and the hook takes PyTorch's NVTX ranges instead.
 *
 * Modules: torch.nn.Module.__call__ stays the function that it is; how C calls it changes
 * (PyFunction_SetVectorcall, CPython 3.12). Names are those that the hook gives, once a module. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>

#include "collectors/nvtx/nvtx.h"

#define EXPORT __attribute__((visibility("default")))

/* A range begins; NULL: it is not recorded. */
static struct nvtx_event *named_event(struct nvtx_object *domain, int32_t type, const void *message,
                                      struct nvtx_event *event, bool *captures)
{
    *captures = nvtx_capturing && nvtx_capture_opens(domain, type, message);
    if (!nvtx_records_range(domain, type, message))
        return NULL;
    event->message = type == PK_NVTX_MESSAGE_REGISTERED
                         ? nvtx_object_id(nvtx_object_of(message, NVTX_STRING))
                         : collector_text(message);
    return event;
}

static void push_range(struct nvtx_object *domain, int32_t type, const void *message,
                       struct nvtx_event *event)
{
    bool captures;
    struct nvtx_event *recorded = named_event(domain, type, message, event, &captures);
    nvtx_push(domain, recorded, captures);
}

/* ---- what is open on a thread ----------------------------------------------------------------
 *
 * A program may end an operator (torch.profiler.record_function) on another thread than it began
 * on. That thread has nothing to close; it leaves a note for the one that has, which closes the
 * range, with the time of the note, when its next range begins or ends. */

#define STRAYS 64u
static struct {
    _Atomic uint64_t number; /* 0 = being written */
    _Atomic(const void *) key;
    _Atomic uint64_t time;
} strays[STRAYS];
static _Atomic uint64_t stray_count;

static void leave_stray(const void *key)
{
    uint64_t number = atomic_fetch_add(&stray_count, 1) + 1;
    atomic_store(&strays[number % STRAYS].number, 0);
    atomic_store(&strays[number % STRAYS].key, key);
    atomic_store(&strays[number % STRAYS].time, collector_now());
    atomic_store(&strays[number % STRAYS].number, number);
}

/* When what began when there were `since` notes was ended elsewhere; 0 = it was not. An address
 * may have been another one's before. */
static uint64_t stray_time(const void *key, uint64_t since)
{
    for (unsigned i = 0; i < STRAYS; i++) {
        uint64_t number = atomic_load(&strays[i].number), time = atomic_load(&strays[i].time);
        if (number > since && atomic_load(&strays[i].key) == key &&
            atomic_load(&strays[i].number) == number)
            return time;
    }
    return 0;
}

static void close_strays(struct nvtx_open *open)
{
    uint64_t time;
    while (open->count && !open->deep &&
           open->range[open->count - 1].since != atomic_load(&stray_count) &&
           (time = stray_time(open->range[open->count - 1].key,
                              open->range[open->count - 1].since)) != 0) {
        open->count--;
        nvtx_pop_at(NULL, NULL, 0, time);
    }
}

/* A range of the default domain, found again by its key. */
static void open_range(const void *key, int32_t type, const void *message, struct nvtx_event *event)
{
    struct nvtx_open *open = nvtx_open_ranges();
    if (open)
        close_strays(open);
    if (open && open->count == NVTX_OPEN) {
        open->deep++;
    } else if (open) {
        open->range[open->count].key = key;
        open->range[open->count++].since = atomic_load(&stray_count);
    }
    push_range(NULL, type, message, event);
}

/* False: this thread has not opened it. */
static bool close_range(const void *key)
{
    struct nvtx_open *open = nvtx_open_ranges();
    if (open)
        close_strays(open);
    uint32_t at = open ? open->count : 0;
    while (at > 0 && open->range[at - 1].key != key)
        at--;
    if (at > 0)
        memmove(&open->range[at - 1], &open->range[at], (open->count-- - at) * sizeof *open->range);
    else if (open && open->deep == 0)
        return false;
    else if (open)
        open->deep--;
    nvtx_pop(NULL, NULL, 0);
    return true;
}

struct symbol {
    void *place;
    const char *name;
    bool may_lack;
};

static bool look_up(void *library, const struct symbol *symbols, size_t count)
{
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, symbols[i].name);
        memcpy(symbols[i].place, &found, sizeof found);
        all &= found || symbols[i].may_lack;
    }
    return all;
}

/* ---- operators ------------------------------------------------------------------------------- */

#if defined __x86_64__

enum { SCOPE_FUNCTION, SCOPE_BACKWARD, SCOPE_SCRIPT, SCOPE_CLASS = 4, SCOPE_USER = 7 };
static const uint8_t scopes[] = {SCOPE_FUNCTION, SCOPE_BACKWARD, SCOPE_SCRIPT, SCOPE_CLASS,
                                 SCOPE_USER};
#define SCOPES 8u

/* at::RecordFunctionCallback, followed by zeroes for what a version has more. `start` returns an
 * object that has a destructor, for which the caller gives the place. */
struct callback {
    void **(*start)(void **context, const char *function);
    void (*end)(const char *function, void *context);
    double probability;
    bool scopes[SCOPES];
    bool more[64];
};

/* std::variant<std::string_view, ...>: kind 0 is the text. */
struct descriptor {
    size_t length;
    const char *text;
    uint8_t kind;
};

static struct {
    uint64_t (*add)(struct callback callback);
    void (*remove)(uint64_t handle);
    int (*profiler)(void); /* which one the calling thread has */
    void (*make)(void *function, uint8_t scope);
    void (*destroy)(void *function);
    void (*before)(void *function, struct descriptor what, int64_t sequence);
    void (*before_text)(void *function, const char *text, int64_t sequence); /* until 2.6 */
    const char *(*name)(const void *function);
    bool (*is_async)(const void *function);
} torch;
static size_t sequence_at; /* in an at::RecordFunction */
static uint64_t the_handle;

#define FUNCTION_BYTES 2048u

static struct {
    const char *function; /* the object on trial; other threads have operators of their own */
    int64_t sequence;
    size_t at;
    unsigned begun, ended;
    bool named;
} trial;
static const char trial_text[] = "perfkit: is PyTorch as it is known";

static void **trial_begins(void **context, const char *function)
{
    *context = NULL;
    if (function != trial.function)
        return context;
    trial.begun++;
    const char *name = torch.name(function);
    trial.named = name && strcmp(name, trial_text) == 0;
    unsigned found = 0;
    for (size_t at = 0; at + sizeof trial.sequence <= FUNCTION_BYTES; at += sizeof trial.sequence) {
        if (memcmp(function + at, &trial.sequence, sizeof trial.sequence) == 0 && ++found)
            trial.at = at;
    }
    if (found != 1)
        trial.at = 0;
    return context;
}

static void trial_ends(const char *function, void *context)
{
    trial.ended += function == trial.function && !context;
}

/* One object is begun and ended; *at: where its sequence number lies. */
static bool try_function(uint8_t scope, int64_t sequence, size_t *at)
{
    alignas(64) static char function[FUNCTION_BYTES];
    memset(function, 0, sizeof function);
    memset(&trial, 0, sizeof trial);
    trial.function = function;
    trial.sequence = sequence;
    torch.make(function, scope);
    if (torch.before)
        torch.before(function, (struct descriptor){sizeof trial_text - 1, trial_text, 0}, sequence);
    else
        torch.before_text(function, trial_text, sequence);
    torch.destroy(function);
    trial.function = NULL;
    *at = trial.at;
    return trial.begun == 1 && trial.ended == 1 && trial.named && trial.at;
}

static bool behaves_as_known(void)
{
    struct callback callback = {trial_begins, trial_ends, 1.0, {0}, {0}};
    for (size_t i = 0; i < sizeof scopes; i++)
        callback.scopes[scopes[i]] = true;
    uint64_t handle = torch.add(callback);
    bool as_known = handle != 0;
    for (size_t i = 0; as_known && i < sizeof scopes; i++) {
        size_t at;
        as_known = try_function(scopes[i], (int64_t)(0x5eedc0de5eed0100u >> 1) + (int64_t)i, &at) &&
                   (i == 0 || at == sequence_at);
        sequence_at = at;
    }
    torch.remove(handle);
    return as_known;
}

static int note_library(struct dl_phdr_info *info, size_t size, void *path)
{
    (void)size;
    size_t length = info->dlpi_name ? strlen(info->dlpi_name) : 0;
    if (length == 0 || length >= PATH_MAX || !strstr(info->dlpi_name, "/libtorch_cpu.so"))
        return 0;
    memcpy(path, info->dlpi_name, length + 1);
    return 1;
}

static bool find_torch(void)
{
    static const struct symbol symbols[] = {
        {&torch.add, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", false},
        {&torch.remove, "_ZN2at14removeCallbackEm", false},
        {&torch.profiler, "_ZN5torch8profiler4impl12profilerTypeEv", false},
        {&torch.make, "_ZN2at14RecordFunctionC1ENS_11RecordScopeE", false},
        {&torch.destroy, "_ZN2at14RecordFunctionD1Ev", false},
        {&torch.before,
         "_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEE"
         "St17reference_wrapperIKN3c1014FunctionSchemaEEEEl",
         true},
        {&torch.before_text, "_ZN2at14RecordFunction6beforeEPKcl", true},
        {&torch.name, "_ZNK2at14RecordFunction4nameEv", false},
        {&torch.is_async, "_ZNK2at14RecordFunction7isAsyncEv", false},
    };
    char path[PATH_MAX]; /* distributions give it a version of their own */
    void *library =
        dl_iterate_phdr(note_library, path) ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    /* The library stays: PyTorch is in it. */
    return library && look_up(library, symbols, sizeof symbols / sizeof *symbols) &&
           (torch.before || torch.before_text);
}

/* Those that another thread may end, as collectives of torch.distributed: they are on no thread's
 * stack of ranges. */
#define MOST_STARTED 1024u
static struct {
    _Atomic(const char *) function; /* NULL = free */
    pk_nvtx_range_id id;
} started[MOST_STARTED];

static size_t find_operator(const char *function)
{
    size_t at = 0;
    while (at < MOST_STARTED && atomic_load(&started[at].function) != function)
        at++;
    return at;
}

static bool start_operator(const char *function, const char *name, struct nvtx_event *event)
{
    for (size_t at; (at = find_operator(NULL)) < MOST_STARTED;) {
        const char *none = NULL;
        bool captures;
        if (!atomic_compare_exchange_strong(&started[at].function, &none, function))
            continue; /* another thread was quicker */
        struct nvtx_event *recorded =
            named_event(NULL, PK_NVTX_MESSAGE_ASCII, name, event, &captures);
        started[at].id = nvtx_start(NULL, recorded, captures);
        return true;
    }
    return false;
}

static bool end_started_operator(const char *function)
{
    size_t at = find_operator(function);
    if (at == MOST_STARTED)
        return false;
    nvtx_end(started[at].id);
    atomic_store(&started[at].function, NULL);
    return true;
}

/* Where a program names operators itself (torch.autograd.profiler.emit_nvtx), which is up to each
 * thread and the backward passes that it begins, ours would be there twice. */
static bool program_names_operators(void)
{
    enum { PROFILER_NVTX = 3 };
    return torch.profiler() == PROFILER_NVTX;
}

static void **operator_begins(void **context, const char *function)
{
    int saved = errno;
    *context = NULL;
    if (program_names_operators())
        return context;
    struct nvtx_event event = {0};
    memcpy(&event.sequence, function + sequence_at, sizeof event.sequence);
    event.has_sequence = (int64_t)event.sequence >= 0;
    const char *given = torch.name(function), *name = given ? given : "";
    if (!torch.is_async(function) || !start_operator(function, name, &event))
        open_range(function, PK_NVTX_MESSAGE_ASCII, name, &event);
    errno = saved;
    return context;
}

static void operator_ends(const char *function, void *context)
{
    (void)context;
    if ((!torch.is_async(function) || !end_started_operator(function)) && !close_range(function) &&
        !program_names_operators())
        leave_stray(function);
}

static bool observe(void)
{
    struct callback callback = {operator_begins, operator_ends, 1.0, {0}, {0}};
    for (size_t i = 0; i < sizeof scopes; i++)
        callback.scopes[scopes[i]] = true;
    if (nvtx_wanted() && find_torch() && behaves_as_known())
        the_handle = torch.add(callback);
    return the_handle != 0;
}

#endif

/* Every operator is a range from now on. Returns whether that is so. */
EXPORT int perfkit_pytorch_operators(void);

EXPORT int perfkit_pytorch_operators(void)
{
#if defined __x86_64__
    int saved = errno;
    bool done = the_handle || observe();
    errno = saved;
    return done;
#else
    return 0;
#endif
}

/* ---- modules --------------------------------------------------------------------------------- */

struct object; /* CPython's, not looked into */
typedef struct object *vectorcall(struct object *callable, struct object *const *args, size_t count,
                                  struct object *names);
#define PY_ARGUMENTS_OFFSET ((size_t)1 << (8 * sizeof(size_t) - 1))

static struct {
    void (*set_vectorcall)(struct object *function, vectorcall *call); /* from 3.12 on */
    vectorcall *(*get_vectorcall)(struct object *function);
    struct object *(*call)(struct object *callable, ...);
    void (*keep)(struct object *object);
    void (*drop)(struct object *object);
    void (*clear_error)(void);
    void (*take_error)(struct object **kind, struct object **value, struct object **trace);
    void (*give_error)(struct object *kind, struct object *value, struct object *trace);
    struct object *(*has_error)(void);
    int (*error_is)(struct object *kind);
    struct object **exception; /* the class Exception */
    const char *(*text)(struct object *text);
    struct object *(*item)(struct object *dictionary, const char *key); /* not one to drop */
    long (*number)(struct object *number);
    struct object *none;
} python;
static vectorcall *call_module; /* as Python itself does */
static struct object *name_of, *set_eval_frame;

/* The modules by address. An address stays for ever, what it is called does not. */
#define MODULES (1u << 20)
struct known_module {
    const void *address;
    struct nvtx_object *name;
};
static struct known_module *modules;
static uint32_t addresses;
static __thread uint32_t inside __attribute__((tls_model("initial-exec"))); /* calls of modules */

static struct known_module *named_module_at(const void *address)
{
    uint64_t hash = ((uint64_t)(uintptr_t)address >> 4) * 0x9e3779b97f4a7c15u;
    uint32_t at = (uint32_t)(hash >> 44);
    while (modules[at].address && modules[at].address != address)
        at = (at + 1) % MODULES;
    return &modules[at];
}

/* `name` NULL: the module at this address is gone. */
EXPORT void perfkit_pytorch_module(const void *address, const char *name);

EXPORT void perfkit_pytorch_module(const void *address, const char *name)
{
    struct known_module *module = modules && address ? named_module_at(address) : NULL;
    if (!module || (!module->address && (!name || addresses >= MODULES / 2)))
        return;
    addresses += !module->address;
    module->address = address;
    module->name = name ? nvtx_object_get(NVTX_STRING, NULL, 0, name, strlen(name)) : NULL;
}

/* An error of ours ends here; what interrupts the program (KeyboardInterrupt) is left to it. */
static struct object *call_python(struct object *function, struct object *a, struct object *b)
{
    struct object *result = python.call(function, a, b, NULL);
    if (!result && python.error_is(*python.exception))
        python.clear_error();
    return result;
}

static void drop_python(struct object *object)
{
    if (object)
        python.drop(object);
}

/* The hook says its name. False: the program is interrupted. */
static bool name_module(struct object *module)
{
    /* torch.compile would look at the hook's code as at the program's. */
    struct object *compiler =
        set_eval_frame != python.none ? call_python(set_eval_frame, python.none, NULL) : NULL;
    /* (module) or, of the outermost, (module, module): the hook names all that is in it. */
    drop_python(call_python(name_of, module, inside ? NULL : module));
    if (compiler) {
        struct object *kind, *value, *trace;
        python.take_error(&kind, &value, &trace);
        drop_python(call_python(set_eval_frame, compiler, NULL));
        python.drop(compiler);
        python.give_error(kind, value, trace);
    }
    return !python.has_error();
}

static struct object *module_called(struct object *callable, struct object *const *args,
                                    size_t count, struct object *names)
{
    const struct object *module = count & ~PY_ARGUMENTS_OFFSET ? args[0] : NULL;
    if (module && !named_module_at(module)->name && !name_module(args[0]))
        return NULL;
    struct nvtx_object *name = module ? named_module_at(module)->name : NULL;
    struct nvtx_event event = {0};
    if (name)
        open_range(&event, PK_NVTX_MESSAGE_REGISTERED, name, &event);
    inside++;
    struct object *result = call_module(callable, args, count, names);
    inside--;
    if (name)
        close_range(&event);
    return result;
}

static bool find_python(void)
{
    static const struct symbol symbols[] = {
        {&python.set_vectorcall, "PyFunction_SetVectorcall", true},
        {&python.get_vectorcall, "PyVectorcall_Function", false},
        {&python.call, "PyObject_CallFunctionObjArgs", false},
        {&python.keep, "Py_IncRef", false},
        {&python.drop, "Py_DecRef", false},
        {&python.clear_error, "PyErr_Clear", false},
        {&python.take_error, "PyErr_Fetch", false},
        {&python.give_error, "PyErr_Restore", false},
        {&python.has_error, "PyErr_Occurred", false},
        {&python.error_is, "PyErr_ExceptionMatches", false},
        {&python.exception, "PyExc_Exception", false},
        {&python.text, "PyUnicode_AsUTF8", false},
        {&python.item, "PyDict_GetItemString", false},
        {&python.number, "PyLong_AsLong", false},
        {&python.none, "_Py_NoneStruct", false},
    };
    return look_up(RTLD_DEFAULT, symbols, sizeof symbols / sizeof *symbols);
}

static bool map_modules(void)
{
    void *at = mmap(NULL, sizeof *modules * MODULES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    modules = at == MAP_FAILED ? NULL : at;
    return modules != NULL;
}

/* Before 3.12 by the one word of the function, of `size` bytes, that says how it is called. */
static bool set_vectorcall(struct object *function, size_t size)
{
    vectorcall **place = NULL;
    if (python.set_vectorcall) {
        python.set_vectorcall(function, module_called);
        return true;
    }
    for (size_t at = 0; at + sizeof *place <= size; at += sizeof *place) {
        vectorcall **word = (vectorcall **)(void *)((char *)function + at);
        if (*word == call_module && place)
            return false;
        if (*word == call_module)
            place = word;
    }
    if (place)
        *place = module_called;
    return place != NULL;
}

/* Every call of the function `call`, torch.nn.Module.__call__, is a range from now on. `names` is
 * called for a module that has no name yet: it calls perfkit_pytorch_module. `eval_frame`: torch's
 * set_eval_frame, or None. Returns whether that is so. */
EXPORT int perfkit_pytorch_modules(struct object *call, size_t size, struct object *names,
                                   struct object *eval_frame);

EXPORT int perfkit_pytorch_modules(struct object *call, size_t size, struct object *names,
                                   struct object *eval_frame)
{
    int saved = errno;
    bool done = !call_module && nvtx_wanted() && find_python() && map_modules() &&
                (call_module = python.get_vectorcall(call)) != NULL;
    if (done) {
        name_of = names;
        set_eval_frame = eval_frame;
        python.keep(call);
        python.keep(names);
        python.keep(eval_frame);
        done = set_vectorcall(call, size);
    }
    errno = saved;
    return done;
}

/* ---- garbage collections --------------------------------------------------------------------- */

/* In gc.callbacks: a range of the domain "Python" opens or closes on the calling thread. Called
 * with NULL first, which says whether that can be done. */
EXPORT int perfkit_python_collects(struct object *phase, struct object *info);

EXPORT int perfkit_python_collects(struct object *phase, struct object *info)
{
    static const char text[] = "Python";
    static const char *const names[] = {"garbage collection, generation 0",
                                        "garbage collection, generation 1",
                                        "garbage collection, generation 2"};
    static struct nvtx_object *domain;
    int saved = errno;
    if (!phase && nvtx_wanted() && find_python())
        domain = nvtx_object_get(NVTX_DOMAIN, NULL, 0, text, sizeof text - 1);
    else if (phase && domain && strcmp(python.text(phase), "start") == 0) {
        struct object *generation = python.item(info, "generation");
        long number = generation ? python.number(generation) : -1;
        struct nvtx_event event = {0};
        push_range(domain, PK_NVTX_MESSAGE_ASCII,
                   names[number == 0   ? 0
                         : number == 1 ? 1
                                       : 2],
                   &event);
    } else if (phase && domain) {
        nvtx_pop(domain, NULL, 0);
    }
    errno = saved;
    return domain != NULL;
}

/* ---- compilations ---------------------------------------------------------------------------- */

/* torch.compile begins or ends to compile: from the first that begins to the last that ends, on
 * whatever thread, a range of the domain "PyTorch". The hook calls it, with the interpreter's lock
 * held. */
EXPORT void perfkit_pytorch_compiles(int begins);

EXPORT void perfkit_pytorch_compiles(int begins)
{
    static const char text[] = "PyTorch", name[] = "torch.compile";
    static struct nvtx_object *domain;
    static pk_nvtx_range_id range;
    static unsigned open;
    int saved = errno;
    if (!domain && nvtx_wanted())
        domain = nvtx_object_get(NVTX_DOMAIN, NULL, 0, text, sizeof text - 1);
    if (domain && begins && open++ == 0) {
        bool captures;
        struct nvtx_event event = {0};
        struct nvtx_event *recorded =
            named_event(domain, PK_NVTX_MESSAGE_ASCII, name, &event, &captures);
        range = nvtx_start(domain, recorded, captures);
    } else if (domain && !begins && open && --open == 0) {
        nvtx_end(range);
    }
    errno = saved;
}
