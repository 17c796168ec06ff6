/* Annotations for programs that want to be readable in a profile: ranges, marks, thread names,
 * and the work (floating-point operations and bytes) that a launch is meant to do.
 *
 * A complete, minimal client of the NVTX v3 injection protocol (nvtx_abi.h): the first call looks
 * at NVTX_INJECTION64_PATH; when a tool put its library there, the library fills our function
 * slots, otherwise every later call is two loads and a branch. So annotations show in perfkit, in
 * nsys and in any other NVTX tool, and cost nothing without one.
 *
 * Header only, links nothing (dlopen is part of libc since glibc 2.34; older ones need -ldl).
 * C11, C++11 and .cu sources of one executable or shared object share one attachment, the way
 * the protocol wants it: one per module of the process. All functions are thread-safe. Messages
 * are copied or interned by the tool, so a buffer may be reused as soon as a call returns.
 * Nothing here prints, fails or changes errno.
 */
#ifndef PERFKIT_ANNOTATE_H
#define PERFKIT_ANNOTATE_H

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "perfkit/nvtx_abi.h"

#ifdef __cplusplus
extern "C" {
#else
long syscall(long number, ...); /* hidden by a strict -std=c11, and gettid has no other name */
#endif

/* ---- the attachment of this module; not part of the interface -------------------------------- */

/* Otherwise the state holds the tid of the thread that does the work now. */
enum { PERFKIT_ONCE_FRESH = 0, PERFKIT_ONCE_DONE = -1 };

/* Of declared work, and of collective operations. */
enum { PERFKIT_DOMAIN_WORK, PERFKIT_DOMAIN_COLLECTIVE, PERFKIT_DOMAINS };

struct perfkit_annotate_state {
    int attach_once; /* PERFKIT_ONCE_*: our slots below are final for reading when done */
    int loading;     /* dlopen brings a library into the process: not to be done over */
    int domain_once[PERFKIT_DOMAINS];
    struct pk_nvtx_domain *domain[PERFKIT_DOMAINS]; /* made at their first use */
    /* A tool may request any module and write to any valid id, so each has real slots. */
    pk_nvtx_function slot[PK_NVTX_MODULE_COUNT][PK_NVTX_CORE_COUNT];
    pk_nvtx_function *table[PK_NVTX_MODULE_COUNT][PK_NVTX_CORE_COUNT + 1];
    struct pk_nvtx_export_callbacks callbacks;
    struct pk_nvtx_export_version_info version_info;
};

/* Weak: the copies of one link merge. Hidden: two shared objects never share. The suffix changes
 * with the structure, so that objects built against different perfkits do not merge. */
__attribute__((weak, visibility("hidden"))) struct perfkit_annotate_state perfkit_annotate_state_3;

/* True for the one caller that has to do the work and then call perfkit_annotate_done; false when
 * another thread has done it, after waiting for it, and in a signal handler that interrupted the
 * work. In a child that was forked while another thread did the work, no thread ends it: a holder
 * that is no thread of this process is replaced. */
static inline int perfkit_annotate_begin(int *once)
{
    int self = (int)syscall(SYS_gettid), seen = PERFKIT_ONCE_FRESH, saved_errno = errno;

    while (!__atomic_compare_exchange_n(once, &seen, self, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        if (seen == PERFKIT_ONCE_DONE || seen == self)
            break;
        if (syscall(SYS_tgkill, getpid(), seen, 0) == 0 || errno != ESRCH) {
            sched_yield();
            seen = PERFKIT_ONCE_FRESH;
        }
    }
    errno = saved_errno;
    return seen != PERFKIT_ONCE_DONE && seen != self;
}

static inline void perfkit_annotate_done(int *once)
{
    __atomic_store_n(once, PERFKIT_ONCE_DONE, __ATOMIC_RELEASE);
}

static inline int perfkit_annotate_get_table(uint32_t module, pk_nvtx_function_table *out_table,
                                             unsigned int *out_count)
{
    static const unsigned int count[PK_NVTX_MODULE_COUNT] = {0,
                                                             PK_NVTX_CORE_COUNT,
                                                             PK_NVTX_CUDA_COUNT,
                                                             PK_NVTX_OPENCL_COUNT,
                                                             PK_NVTX_CUDART_COUNT,
                                                             PK_NVTX_CORE2_COUNT,
                                                             PK_NVTX_SYNC_COUNT};

    if (module == PK_NVTX_MODULE_INVALID || module >= PK_NVTX_MODULE_COUNT)
        return 0;
    if (out_table)
        *out_table = perfkit_annotate_state_3.table[module];
    if (out_count)
        *out_count = count[module];
    return 1;
}

static inline void perfkit_annotate_set_version(uint32_t version)
{
    (void)version;
}

static inline const void *perfkit_annotate_get_export(uint32_t export_table_id)
{
    if (export_table_id == PK_NVTX_EXPORT_CALLBACKS)
        return &perfkit_annotate_state_3.callbacks;
    if (export_table_id == PK_NVTX_EXPORT_VERSION_INFO)
        return &perfkit_annotate_state_3.version_info;
    return NULL;
}

/* Loads the library that the environment names and lets it attach; leaves every slot NULL when
 * there is none, when it is not an injection library, or when it refuses. */
static inline void perfkit_annotate_load(struct perfkit_annotate_state *state)
{
    const char *path = getenv(PK_NVTX_ENV_INJECTION);
    pk_nvtx_initialize_injection_fn initialize = NULL;
    void *library, *symbol;

    if (!path || !*path)
        return;
    if (state->loading) /* this is a child, and the library is half in: annotate nothing */
        return;
    library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) {
        state->loading = 1;
        library = dlopen(path, RTLD_LAZY);
        state->loading = 0;
    }
    if (!library)
        return;
    symbol = dlsym(library, PK_NVTX_SYMBOL_INIT);
    memcpy(&initialize, &symbol, sizeof initialize);
    if (symbol && initialize(perfkit_annotate_get_export))
        return; /* the library stays loaded: its handlers are in our slots */
    memset(state->slot, 0, sizeof state->slot);
    dlclose(library);
}

static inline void perfkit_annotate_attach(void)
{
    struct perfkit_annotate_state *state = &perfkit_annotate_state_3;
    int saved_errno = errno;
    unsigned int module, id, count = 0;

    if (perfkit_annotate_begin(&state->attach_once)) {
        state->callbacks.struct_size = sizeof state->callbacks;
        state->callbacks.get_module_function_table = perfkit_annotate_get_table;
        state->version_info.struct_size = sizeof state->version_info;
        state->version_info.version = PK_NVTX_VERSION;
        state->version_info.set_injection_version = perfkit_annotate_set_version;
        for (module = 1; module < PK_NVTX_MODULE_COUNT; module++) {
            perfkit_annotate_get_table(module, NULL, &count);
            for (id = 1; id < count; id++) /* id 0 of every module is invalid, as is the end */
                state->table[module][id] = &state->slot[module][id];
        }
        perfkit_annotate_load(state);
        perfkit_annotate_done(&state->attach_once);
    }
    errno = saved_errno;
}

/* The handler in one slot, NULL when no tool wants the call. Read on every call, because a tool
 * may detach by clearing it. */
static inline pk_nvtx_function perfkit_annotate_slot(unsigned int module, unsigned int id)
{
    struct perfkit_annotate_state *state = &perfkit_annotate_state_3;

    if (__atomic_load_n(&state->attach_once, __ATOMIC_ACQUIRE) != PERFKIT_ONCE_DONE)
        perfkit_annotate_attach();
    return __atomic_load_n(&state->slot[module][id], __ATOMIC_RELAXED);
}

static inline struct pk_nvtx_domain *perfkit_annotate_domain(int which)
{
    static const char *const names[PERFKIT_DOMAINS] = {PERFKIT_NVTX_DOMAIN,
                                                       PERFKIT_NVTX_COLLECTIVE_DOMAIN};
    struct perfkit_annotate_state *state = &perfkit_annotate_state_3;
    pk_nvtx_domain_create_a_fn create;

    if (__atomic_load_n(&state->domain_once[which], __ATOMIC_ACQUIRE) != PERFKIT_ONCE_DONE &&
        perfkit_annotate_begin(&state->domain_once[which])) {
        create = (pk_nvtx_domain_create_a_fn)perfkit_annotate_slot(PK_NVTX_MODULE_CORE2,
                                                                   PK_NVTX_CORE2_DOMAIN_CREATE_A);
        state->domain[which] = create ? create(names[which]) : NULL;
        perfkit_annotate_done(&state->domain_once[which]);
    }
    return state->domain[which];
}

static inline void perfkit_annotate_pop(int which)
{
    pk_nvtx_domain_range_pop_fn pop = (pk_nvtx_domain_range_pop_fn)perfkit_annotate_slot(
        PK_NVTX_MODULE_CORE2, PK_NVTX_CORE2_DOMAIN_RANGE_POP);

    if (pop)
        pop(perfkit_annotate_domain(which));
}

/* ---- interface ------------------------------------------------------------------------------- */

/* Opens a range on the calling thread; ranges of a thread nest. `name`: NUL-terminated text, not
 * NULL; the same text for the same phase, so that reports can add them up. */
static inline void perfkit_range_push(const char *name)
{
    pk_nvtx_range_push_a_fn push = (pk_nvtx_range_push_a_fn)perfkit_annotate_slot(
        PK_NVTX_MODULE_CORE, PK_NVTX_CORE_RANGE_PUSH_A);

    if (push)
        push(name);
}

/* Closes the range that the calling thread opened last. One pop for each push. */
static inline void perfkit_range_pop(void)
{
    pk_nvtx_range_pop_fn pop =
        (pk_nvtx_range_pop_fn)perfkit_annotate_slot(PK_NVTX_MODULE_CORE, PK_NVTX_CORE_RANGE_POP);

    if (pop)
        pop();
}

/* Records a moment on the calling thread. */
static inline void perfkit_mark(const char *text)
{
    pk_nvtx_mark_a_fn mark =
        (pk_nvtx_mark_a_fn)perfkit_annotate_slot(PK_NVTX_MODULE_CORE, PK_NVTX_CORE_MARK_A);

    if (mark)
        mark(text);
}

/* Opens a range of the process: it may overlap others and end on another thread. Returns the id
 * for perfkit_range_end, 0 when no tool is attached. */
static inline uint64_t perfkit_range_start(const char *name)
{
    pk_nvtx_range_start_a_fn start = (pk_nvtx_range_start_a_fn)perfkit_annotate_slot(
        PK_NVTX_MODULE_CORE, PK_NVTX_CORE_RANGE_START_A);

    return start ? start(name) : 0;
}

/* Closes the range that perfkit_range_start returned `id` for; 0 is ignored. */
static inline void perfkit_range_end(uint64_t id)
{
    pk_nvtx_range_end_fn end =
        (pk_nvtx_range_end_fn)perfkit_annotate_slot(PK_NVTX_MODULE_CORE, PK_NVTX_CORE_RANGE_END);

    if (end && id != 0)
        end(id);
}

/* Names the calling thread in profiles; the name that ps and top show is left alone. */
static inline void perfkit_thread_name(const char *name)
{
    pk_nvtx_name_os_thread_a_fn name_thread = (pk_nvtx_name_os_thread_a_fn)perfkit_annotate_slot(
        PK_NVTX_MODULE_CORE, PK_NVTX_CORE_NAME_OS_THREAD_A);

    if (name_thread)
        name_thread((uint32_t)syscall(SYS_gettid), name);
}

/* Opens a range in the domain "perfkit" that declares work, so that a roofline needs no hardware
 * counters: `flop` floating-point operations (a fused multiply-add is 2), `bytes_read` and
 * `bytes_written` between the device's memory and its chips, all for one pass through the range.
 * Give NaN for what is not known; 0 means that there is none.
 *
 * A declaration belongs to the launches made by this thread inside its range. With exactly one
 * launch inside, it is that launch's work; with several it describes the range as a whole and is
 * not split. Declarations do not nest: close one before opening the next. */
static inline void perfkit_work_push(const char *label, double flop, double bytes_read,
                                     double bytes_written)
{
    pk_nvtx_domain_range_push_ex_fn push = (pk_nvtx_domain_range_push_ex_fn)perfkit_annotate_slot(
        PK_NVTX_MODULE_CORE2, PK_NVTX_CORE2_DOMAIN_RANGE_PUSH_EX);
    struct pk_nvtx_event_attributes event;
    struct pk_nvtx_payload_data payload;
    struct perfkit_work work;

    if (!push)
        return;
    work.flop = flop;
    work.bytes_read = bytes_read;
    work.bytes_written = bytes_written;
    payload.schema_id = PERFKIT_WORK_SCHEMA;
    payload.size_bytes = sizeof work;
    payload.payload = &work;
    memset(&event, 0, sizeof event);
    event.version = PK_NVTX_VERSION;
    event.size = (uint16_t)sizeof event;
    event.payload_type = PK_NVTX_PAYLOAD_EXT;
    event.reserved0 = 1;
    event.payload.u64 = (uint64_t)(uintptr_t)&payload;
    event.message_type = PK_NVTX_MESSAGE_ASCII;
    event.message.ascii = label;
    push(perfkit_annotate_domain(PERFKIT_DOMAIN_WORK), &event);
}

/* Closes the declaration that the calling thread opened last. */
static inline void perfkit_work_pop(void)
{
    perfkit_annotate_pop(PERFKIT_DOMAIN_WORK);
}

/* Opens a range in the domain "perfkit.collective" around an operation that several processes do
 * together, for those who have a way of their own (NCCL and MPI wrappers are seen by themselves):
 * `operation` is all_reduce, all_gather, reduce_scatter, broadcast, reduce, gather, scatter,
 * all_to_all, send, recv or barrier, `bytes` the size of the message on this rank, as NCCL counts
 * it. The range's host times are the operation's. */
static inline void perfkit_collective_push(const char *operation, uint64_t bytes)
{
    pk_nvtx_domain_range_push_ex_fn push = (pk_nvtx_domain_range_push_ex_fn)perfkit_annotate_slot(
        PK_NVTX_MODULE_CORE2, PK_NVTX_CORE2_DOMAIN_RANGE_PUSH_EX);
    struct pk_nvtx_event_attributes event;

    if (!push)
        return;
    memset(&event, 0, sizeof event);
    event.version = PK_NVTX_VERSION;
    event.size = (uint16_t)sizeof event;
    event.payload_type = PK_NVTX_PAYLOAD_UINT64;
    event.payload.u64 = bytes;
    event.message_type = PK_NVTX_MESSAGE_ASCII;
    event.message.ascii = operation;
    push(perfkit_annotate_domain(PERFKIT_DOMAIN_COLLECTIVE), &event);
}

/* Closes the operation that the calling thread opened last. */
static inline void perfkit_collective_pop(void)
{
    perfkit_annotate_pop(PERFKIT_DOMAIN_COLLECTIVE);
}

#ifdef __cplusplus
}
#endif

#endif
