/* The names in kernel records. They are CUPTI's memory and die when their module is unloaded: the
 * same address then holds another name, or nothing. Records come up to 100 ms late, so before code
 * is unloaded the helper thread reads what CUPTI has (callback.c), and for what still comes later
 * its time decides: a kernel that ran before the last unloading gets the name its address had then.
 * When that was never seen, or while code is being unloaded, the name is read without trust in the
 * address, and the capture says so. */
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/cuda/map.h"
#include "collectors/cuda/parts.h"

#define MAX_NAME_BYTES 65536u /* of a mangled name */
#define UNSURE_BYTES 4096u    /* of a name at an address that may be gone */

#define NAMES 65536u /* addresses remembered */
#define UNLOADS 128u /* times remembered; what is older counts as unloaded since */

static struct cuda_map index_of; /* address -> index of the last name there */
static struct known_name {
    uint32_t id;
    uint64_t time; /* a kernel of that name ran then */
} * names;         /* [NAMES] */
static uint32_t name_count;
static _Atomic uint64_t unloads[UNLOADS]; /* when unloading began and when it was done */
static _Atomic uint32_t unloading;        /* threads that are unloading code */
static _Atomic uint64_t unload_count, last_unload;
static uint32_t unsure;              /* names read without trust */
static _Atomic bool launches_wanted; /* code has been unloaded: launches have callbacks */

bool cuda_names_start(void)
{
    return names || (names = cuda_reserve(sizeof *names * NAMES));
}

static void note_module_unload(uint64_t time)
{
    atomic_store(&unloads[atomic_fetch_add(&unload_count, 1) % UNLOADS], time);
    atomic_store(&last_unload, time);
}

void cuda_names_unloading(uint64_t time)
{
    atomic_fetch_add(&unloading, 1);
    note_module_unload(time);
}

void cuda_names_unloaded(uint64_t time)
{
    note_module_unload(time);
    uint32_t now = atomic_load(&unloading);
    while (now > 0 && !atomic_compare_exchange_weak(&unloading, &now, now - 1)) {
    }
}

bool cuda_names_wants_callback(enum cuda_domain domain, uint32_t cbid)
{
    static const char *const words[] = {"ModuleUnload",
                                        "LibraryUnload",
                                        "CtxDestroy",
                                        "DeviceReset",
                                        "DevicePrimaryCtxRelease",
                                        "PrimaryCtxReset",
                                        NULL};
    return cuda_function_is_any(domain, cbid, words);
}

static void begin_launch_names(void)
{
    cuda_correlation_use(CUDA_LAUNCH_NAME);
    if (!atomic_exchange(&launches_wanted, true))
        cuda_callback_enable(CUDA_LAUNCH_NAMES);
}

/* A runtime call nests the driver's, and both come here; the second one finds little to flush. */
void cuda_names_on_callback(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call)
{
    (void)domain, (void)cbid;
    if (call->callbackSite == CUPTI_API_ENTER) {
        cuda_flush_wait_tick();
        cuda_names_unloading(collector_now());
    } else {
        cuda_names_unloaded(collector_now());
        begin_launch_names();
    }
}

bool cuda_names_die(void)
{
    return atomic_load(&unloading) != 0 || atomic_load(&last_unload) != 0;
}

/* Was code unloaded after `from` and before `to`? */
static bool unloaded_between(uint64_t from, uint64_t to)
{
    uint64_t count = atomic_load(&unload_count);
    if (count > UNLOADS && from < atomic_load(&unloads[count % UNLOADS]))
        return true; /* further back than we remember */
    for (uint64_t i = 0; i < count && i < UNLOADS; i++) {
        uint64_t time = atomic_load(&unloads[i]);
        if (from < time && time < to)
            return true;
    }
    return false;
}

/* Through the kernel, which answers with an error where the program would crash. */
size_t cuda_names_read(const char *at, char *text, size_t size)
{
    size_t bytes = size - 1, page = 4096 - (uintptr_t)at % 4096; /* at the end of what is mapped */
    if (page > bytes)
        page = bytes;
    struct iovec to = {text, bytes};
    struct iovec from[2] = {{(void *)(uintptr_t)at, page},
                            {(void *)((uintptr_t)at + page), bytes - page}};
    long got = syscall(SYS_process_vm_readv, getpid(), &to, 1ul, from, 2ul, 0ul);
    text[got > 0 ? got : 0] = '\0';
    return strlen(text);
}

static uint32_t read_unsure(const char *name)
{
    static char text[UNSURE_BYTES + 1];
    size_t length = cuda_names_read(name, text, sizeof text);
    if (unsure++ == 0)
        collector_health(
            WIRE_SOURCE_CUDA, WIRE_HEALTH_NOTE,
            "kernels that ran while their code was being unloaded may have the name of "
            "another kernel, or none",
            0);
    return length > 0 ? collector_string(text, length) : 0;
}

static void remember_kernel_name(const char *name, const uint32_t *index, uint32_t id,
                                 uint64_t time)
{
    uint32_t at = index ? *index : name_count;
    if (!index) {
        if (at == NAMES || !cuda_map_put(&index_of, (uintptr_t)name, at))
            return;
        name_count++;
        names[at].time = 0;
    }
    names[at].id = id;
    if (time > names[at].time)
        names[at].time = time;
}

uint32_t cuda_kernel_name(const char *name, uint64_t start)
{
    if (!name)
        return 0;
    uint32_t *index = cuda_map_get(&index_of, (uintptr_t)name);
    bool dying = atomic_load(&unloading) != 0;
    uint64_t last = atomic_load(&last_unload);
    if (dying || start < last) {
        bool same = index && start != 0 && !unloaded_between(names[*index].time, start) &&
                    !unloaded_between(start, names[*index].time);
        return same ? names[*index].id : read_unsure(name);
    }
    uint32_t id = collector_string(name, strnlen(name, MAX_NAME_BYTES));
    if (id)
        remember_kernel_name(name, index, id, start);
    return id;
}

void cuda_names_forked(void)
{
    cuda_map_clear(&index_of);
    name_count = 0;
    atomic_store(&unload_count, 0);
    atomic_store(&last_unload, 0);
    atomic_store(&unloading, 0);
    unsure = 0;
}

/* ---- Launches after code has been unloaded ---------------------------------------------------
 *
 * CUPTI 13.0 keeps names by the function's address and does not forget them when the module goes;
 * the next module's functions come to lie at the same addresses, and their records carry the old
 * names (docs/dev/cupti-notes.md). So from the first unloading on launches have callbacks, which
 * query the driver for the function's name at the moment of its launch; the decoder finds it by the
 * launch's id. Programs that unload nothing pay nothing. Kernels of graphs are launched all at once
 * and keep what CUPTI says. */

bool cuda_launch_names_start(void)
{
    return cuda_correlation_reserve(CUDA_LAUNCH_NAME);
}

bool cuda_launch_names_wants_callback(enum cuda_domain domain, uint32_t cbid)
{
    const struct cuda_function *function = cuda_function(domain, cbid);
    return atomic_load_explicit(&launches_wanted, memory_order_relaxed) &&
           function->klass == WIRE_CLASS_LAUNCH && function->expects == WIRE_EXPECTS_ONE;
}

/* cuLaunchKernel takes both kinds of handle. */
static const char *query_launch_name(const void *function)
{
    const char *name = NULL;
    if (function && cuda_driver.FuncGetName &&
        cuda_driver.FuncGetName(&name, function) != CUDA_SUCCESS)
        name = NULL;
    if (function && !name && cuda_driver.KernelGetName &&
        cuda_driver.KernelGetName(&name, function) != CUDA_SUCCESS)
        name = NULL;
    return name;
}

/* The handle of the function that a driver call launches; of a runtime launch only CUPTI has it. */
static const void *launched_function(enum cuda_domain domain, uint32_t cbid,
                                     const CUpti_CallbackData *call)
{
    const void *const *parameters = call->functionParams;
    if (!parameters || domain == CUDA_DOMAIN_RUNTIME)
        return NULL;
    bool extended = strncmp(cuda_function(domain, cbid)->name, "cuLaunchKernelEx", 16) == 0;
    return parameters[extended ? 1 : 0]; /* cuLaunchKernelEx has the configuration first */
}

void cuda_launch_names_on_callback(enum cuda_domain domain, uint32_t cbid,
                                   const CUpti_CallbackData *call)
{
    if (call->callbackSite != CUPTI_API_ENTER)
        return;
    const char *name = query_launch_name(launched_function(domain, cbid, call));
    if (!name)
        name = call->symbolName;
    cuda_correlation_keep(CUDA_LAUNCH_NAME, call->correlationId,
                          name ? collector_string(name, strnlen(name, MAX_NAME_BYTES)) : 0);
}

void cuda_launch_names_forked(void)
{
    atomic_store(&launches_wanted, false);
}
