/* What the files of collectors/cuda share. inject.c has the table of the parts; inject.c starts
 * CUPTI and the parts; buffers.c gives CUPTI memory; flush.c fetches full buffers on the helper
 * thread; decode.c, calls.c, memory.c and streams.c turn them into wire records, with what
 * correlation.c knows of each call; classes.c has the API functions; kinds.c switches what is
 * recorded; callback.c gets CUPTI's callbacks and calls the parts that want them.
 *
 * Threads: request and complete (buffers.c), the callback (callback.c) and the opening of a
 * recording window (kinds.c) run on any thread of the program or of CUPTI. Everything else runs on
 * the helper thread, or before it can run (inject.c). */
#ifndef PERFKIT_COLLECTORS_CUDA_PARTS_H
#define PERFKIT_COLLECTORS_CUDA_PARTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/cuda/cupti_api.h"
#include "collectors/cuda/dump.h"
#include "collectors/cuda/records.h"
#include "libprof/wire/wire.h"

/* ---- classes.c */
enum cuda_domain { CUDA_DOMAIN_RUNTIME, CUDA_DOMAIN_DRIVER, CUDA_DOMAINS };

/* ---- inject.c: the table of the parts. A part is registered there and nowhere else; any function
 * may be NULL. */
struct cuda_part {
    const char *name;
    bool (*reserve)(void);   /* maps the tables, before CUPTI is subscribed; false: no memory */
    void (*start)(void);     /* within cuInit, CUPTI is ours */
    void (*tick)(bool last); /* helper thread: the records of a flush have been decoded */
    void (*end)(void);       /* helper thread: the last tick is over */
    void (*forked)(void);    /* in the child of a fork: forget the parent's state */
    /* Does the part want callbacks for this API function? Evaluated at the start, so that a launch
     * calls only the parts that want it. A part with on_callback and without wants_callback gets
     * the callbacks that others want. */
    bool (*wants_callback)(enum cuda_domain domain, uint32_t cbid);
    /* The program's thread calls the function, or returns from it. */
    void (*on_callback)(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call);
};
#define CUDA_MAX_PARTS 32u
extern const struct cuda_part cuda_parts[];
extern const unsigned cuda_part_count;

/* ---- inject.c */
CUpti_SubscriberHandle cuda_subscriber(void); /* of CUPTI; NULL before */
uint32_t cuda_cupti_version(void);            /* what cuptiGetVersion said; 0 before */
bool cuda_holds_cupti(void); /* is CUPTI ours in this process, or will it be? Any thread. */

/* ---- buffers.c */
struct cuda_buffer {
    _Atomic uint32_t next; /* free and full lists: number + 1, 0 = end */
    uint32_t number;
    uint32_t valid;                  /* bytes that hold records */
    uint32_t spill;                  /* to be thrown away: the helper thread is too far behind */
    uint32_t requested_by, given_by; /* threads */
    uint64_t given_ns;
    _Atomic uint64_t requested_ns; /* by CUPTI; 0 = read, and free again */
};

bool cuda_buffers_start(void); /* maps the first few; false: no memory */
void cuda_buffers_request(uint8_t **buffer, size_t *size, size_t *max_records);
void cuda_buffers_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                           size_t valid);
bool cuda_buffers_used(void); /* has CUPTI ever requested one? */

/* When CUPTI requested the oldest buffer whose records have not been read, 0 = there is none. */
uint64_t cuda_buffers_oldest(void);

/* All full buffers, oldest first, as a list by `next`; NULL when there is none. Helper only. */
struct cuda_buffer *cuda_buffers_take(void);
struct cuda_buffer *cuda_buffers_next(const struct cuda_buffer *buffer);
uint8_t *cuda_buffers_data(struct cuda_buffer *buffer);
void cuda_buffers_give_back(struct cuda_buffer *buffer); /* after decoding; zeroes it */
void cuda_buffers_top_up(bool last);                     /* keep a few free ones ready */
void cuda_buffers_forked(void);

/* ---- classes.c */
#define CUDA_MAX_CBID 2048u /* 13.0 has 523 runtime and 808 driver functions */

struct cuda_function {
    const char *name; /* CUPTI's, static; NULL = not known */
    uint32_t id;      /* string id of our name, 0 = not interned yet */
    uint8_t klass;    /* enum wire_class */
    uint8_t expects;  /* enum wire_expects */
    bool wanted;      /* recorded at all */
};

/* Learn every function's name from CUPTI and class it. */
void cuda_classes_start(void);
const struct cuda_function *cuda_function(enum cuda_domain domain, uint32_t cbid);
uint32_t cuda_function_name(enum cuda_domain domain, uint32_t cbid); /* string id */

/* Class one function by CUPTI's name for it; exposed for the tests. */
struct cuda_function cuda_classify(const char *name);

/* CUPTI's name without version and default-stream suffixes, as the program's source has it;
 * returns its length. */
size_t cuda_plain_name(const char *name, char *plain, size_t size);

/* ---- correlation.c: the table of what is known of calls by their ids */
enum cuda_fact {
    CUDA_OUTER_CALL,  /* of a driver call with an id of its own: the runtime call around it */
    CUDA_CALL_THREAD, /* of an allocation or a batch of operations (calls.c) */
    CUDA_LAUNCH_NAME, /* string id (names.c) */
    CUDA_CALL_STACK,  /* number of the stack (calls.c) */
    CUDA_FACTS
};
struct cuda_fact_column {
    _Atomic uint64_t *words; /* id << 32 | value, at the low bits of the id; 0 = empty */
    uint32_t mask;
    _Atomic bool used;
    _Atomic uint32_t lost;
};
extern struct cuda_fact_column cuda_fact_columns[CUDA_FACTS];
#define CUDA_FACT_READ (1u << 31) /* in the value of a stack, which is needed once */

bool cuda_correlation_start(void);
bool cuda_correlation_reserve(enum cuda_fact fact); /* maps a column; false: no memory */
void cuda_correlation_use(
    enum cuda_fact fact); /* before a cuda_correlation_keep: it is looked up */

/* Any thread, on the launch path. `id` is CUPTI's; 0 for either has no effect. */
static inline void cuda_correlation_keep(enum cuda_fact fact, uint32_t id, uint32_t value)
{
    struct cuda_fact_column *column = &cuda_fact_columns[fact];
    _Atomic uint64_t *at = &column->words[id & column->mask];
    uint64_t word = (uint64_t)id << 32 | value, before;
    if (!id || !value)
        return;
    if (fact != CUDA_CALL_STACK) {
        atomic_store_explicit(at, word, memory_order_release);
        return;
    }
    before = atomic_exchange_explicit(at, word, memory_order_acq_rel);
    if (before && !(before & CUDA_FACT_READ))
        atomic_fetch_add_explicit(&column->lost, 1, memory_order_relaxed);
}

/* 0 = not known. Any thread; counts what has been overwritten too early. */
uint32_t cuda_correlation_find(enum cuda_fact fact, uint32_t id);
/* Helper: the 64-bit correlation of an id; of a call's own record, and of any record, led back to
 * the outermost call. 0 stays 0. */
uint64_t cuda_correlation_of_call(uint32_t id);
uint64_t cuda_correlation(uint32_t id);
/* Helper: was a record's call made outside every recording window? `time`, its own (0 = none),
 * decides when the call is not known. */
bool cuda_correlation_is_outside(uint64_t correlation, uint64_t time);
bool cuda_calls_recorded(uint64_t correlation, uint64_t time); /* counts what is left out */
/* Helper: has the call before this one of its thread the same id? Then its device records are not
 * known by it. */
bool cuda_correlation_repeats(uint32_t tid, uint64_t correlation);
void cuda_correlation_tick(bool last); /* removes facts before their ids come again */
void cuda_correlation_end(void);       /* reports what was overwritten too early */
void cuda_correlation_forked(void);

/* ---- calls.c */
/* A call's record is read at most so many flushes after those made inside it. */
#define CUDA_HOLD_TICKS 2u
bool cuda_calls_start(void); /* maps the tables; false: no memory */
void cuda_call_record(const void *record);
/* A tick went by: driver calls that waited long enough for an enclosing runtime call are sent.
 * `all`: send every one, the process ends. */
void cuda_calls_age(bool all);
uint32_t cuda_calls_thread(uint64_t correlation); /* of a recent allocation call; 0 = not known */
bool cuda_calls_many(uint64_t correlation); /* a recent call that makes several device records */
void cuda_calls_forked(void);

/* ---- streams.c: ids, defined in the spool at first sight */
uint32_t cuda_device(uint32_t ordinal);
uint32_t cuda_context(uint32_t context, uint32_t ordinal);
uint32_t cuda_stream(uint32_t context, uint32_t stream, uint32_t ordinal);
uint32_t cuda_context_device(uint32_t context); /* id of its device, 0 = not known */
#define CUDA_NO_DEVICE UINT32_MAX               /* for `ordinal`: take the context's */
void cuda_device_record(const void *record);
void cuda_context_record(const void *record);
void cuda_stream_record(const void *record);
void cuda_streams_forked(void);

/* ---- names.c */
bool cuda_names_start(void);
/* The string id of a kernel's name. `start` is the kernel's, 0 = unknown. Helper only. */
uint32_t cuda_kernel_name(const char *name, uint64_t start);
void cuda_names_unloading(uint64_t time); /* code is about to be unloaded; any thread */
void cuda_names_unloaded(uint64_t time);  /* and it was */
bool cuda_names_wants_callback(enum cuda_domain domain, uint32_t cbid);
/* Code is unloaded: the program's thread waits until the helper thread has read the names. */
void cuda_names_on_callback(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call);
bool cuda_names_die(void); /* has code been unloaded, or is it just now? */
/* The text at an address that may be gone, NUL-terminated. Its length, 0 when there is none. */
size_t cuda_names_read(const char *at, char *text, size_t size);
void cuda_names_forked(void);
bool cuda_launch_names_start(void);
#define CUDA_LAUNCH_NAMES "launch names"
bool cuda_launch_names_wants_callback(enum cuda_domain domain, uint32_t cbid);
void cuda_launch_names_on_callback(enum cuda_domain domain, uint32_t cbid,
                                   const CUpti_CallbackData *call);
void cuda_launch_names_forked(void);

/* ---- memory.c */
bool cuda_memory_start(void);
void cuda_memory_record(const void *record);
void cuda_memory_age(bool all); /* a tick went by: records that waited for their call are sent */
void cuda_memory_forked(void);
void cuda_pool_record(const void *record);
void cuda_managed_record(const void *record);

/* ---- memory.c */
bool cuda_failures_wants_callback(enum cuda_domain domain, uint32_t cbid);
void cuda_failures_on_callback(enum cuda_domain domain, uint32_t cbid,
                               const CUpti_CallbackData *call);
void cuda_failures_tick(bool last); /* what was noted is sent */
void cuda_failures_forked(void);

/* ---- calls.c */
bool cuda_stacks_start(void); /* without --stacks there is no table */
bool cuda_stacks_wants_callback(enum cuda_domain domain, uint32_t cbid);
void cuda_stacks_on_callback(enum cuda_domain domain, uint32_t cbid,
                             const CUpti_CallbackData *call);
uint32_t cuda_stacks_node(void); /* of the thread, which makes a node of a graph; 0 = not taken */
/* The stack of a call, by its correlation or, if that is another's, by the id of the record.
 * Helper. */
uint32_t cuda_stacks_of(uint64_t correlation, uint32_t own);
void cuda_stacks_forked(void);

/* ---- exact.c, exact_launches.c: --counters=exact. On the program's thread, or as it says ---- */
void cuda_exact_start(void); /* within cuInit */
bool cuda_exact_wants_callback(enum cuda_domain domain, uint32_t cbid);
void cuda_exact_on_callback(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call);
/* The record of a kernel is read, by CUPTI's correlation id of its launch. Helper. */
void cuda_exact_kernel(uint32_t id, uint32_t config, uint32_t stream, uint64_t correlation);
/* Of a counted launch, whose record may come late: the runtime's call around it, and its name by
 * CUDA_LAUNCH_NAME. 0 = none, or it is not counted. Helper. */
uint32_t cuda_exact_outer(uint32_t id);
uint32_t cuda_exact_name(uint32_t id);
void cuda_exact_end(void); /* the last records are read. Helper. */
void cuda_exact_forked(void);

/* ---- stalls.c: --stalls */
bool cuda_stalls_reserve(void);
void cuda_stalls_start(void);
bool cuda_stalls_on(void);
void cuda_stalls_context(CUcontext handle);      /* it was made; in a callback of CUPTI's */
void cuda_stalls_context_ends(CUcontext handle); /* the same */
bool cuda_stalls_wants_callback(enum cuda_domain domain, uint32_t cbid);
void cuda_stalls_on_callback(enum cuda_domain domain, uint32_t cbid,
                             const CUpti_CallbackData *call);
void cuda_stalls_tick(bool last);
void cuda_stalls_forked(void);

/* ---- cubins.c: machine code that was sampled */
bool cuda_cubins_reserve(void);
void cuda_cubins_start(void);
void cuda_cubins_keep(uint64_t hash); /* of wire_cubin_hash; helper thread */
void cuda_cubins_forked(void);

/* ---- cupti_api.c: functions of the driver */
/* NULL: the driver has no such function (names: before CUDA 12.3, CtxRecordEvent: before 12.5). Any
 * thread, after the start. */
extern struct cuda_driver {
    CUresult (*CtxGetDevice)(CUdevice *device); /* of the thread's context */
    CUresult (*CtxPopCurrent)(CUcontext *context);
    CUresult (*CtxPushCurrent)(CUcontext context);
    CUresult (*CtxRecordEvent)(CUcontext context, CUevent event);
    CUresult (*DeviceGetCount)(int *count);
    CUresult (*DeviceGetUuid)(unsigned char uuid[16], CUdevice device);
    CUresult (*EventCreate)(CUevent *event, unsigned flags);
    CUresult (*EventDestroy)(CUevent event);
    CUresult (*EventQuery)(CUevent event);
    CUresult (*FuncGetName)(const char **name, const void *function);
    CUresult (*KernelGetName)(const char **name, const void *kernel);
    CUresult (*ThreadExchangeStreamCaptureMode)(CUstreamCaptureMode *mode);
} cuda_driver;
void cuda_driver_start(void); /* within cuInit */

/* ---- memory.c */
void cuda_managed_start(void);
bool cuda_managed_wants_callback(enum cuda_domain domain, uint32_t cbid);
void cuda_managed_on_callback(enum cuda_domain domain, uint32_t cbid,
                              const CUpti_CallbackData *call);
void cuda_managed_context(void); /* a context exists; in a callback of CUPTI's */
void cuda_managed_tick(bool last);
bool cuda_managed_on(void);
void cuda_managed_forked(void);

/* ---- kinds.c */
void cuda_kinds_start(void);
void cuda_kinds_recording(bool open); /* a window opened or closed; any thread */
void cuda_kinds_tick(bool last);
/* Just before they were last switched on? What was called then may have no records of its work. */
bool cuda_kinds_were_off(uint64_t time);
bool cuda_kinds_on(void);      /* have kernels that are launched now records? */
bool cuda_kinds_windows(void); /* has recording ever been off? */
bool cuda_kinds_begin(void);   /* may kinds be configured now? True: exit waits for the end */
void cuda_kinds_end(void);
void cuda_kinds_managed(void); /* unified memory is configured: record it within the windows */
bool cuda_kinds_wants_callback(enum cuda_domain domain, uint32_t cbid);
void cuda_kinds_on_callback(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call);
void cuda_kinds_context(void); /* one was created */
void cuda_kinds_forked(void);

/* ---- decode.c: the table of the kinds of CUPTI's records */
enum cuda_kind_group {
    CUDA_KIND_NEVER, /* read, but not switched on */
    CUDA_KIND_CALLS, /* inside windows, without the functions that are not wanted */
    CUDA_KIND_ALWAYS,
    CUDA_KIND_WINDOW,      /* inside windows */
    CUDA_KIND_WHOLE_GRAPH, /* ... with a record for each launch of a graph, not for its nodes */
    CUDA_KIND_MANAGED,     /* ... once unified memory could be configured */
    CUDA_KIND_USED,        /* ... once the program uses it */
};
struct cuda_kind {
    CUpti_ActivityKind kind;
    uint8_t group;  /* enum cuda_kind_group: when it is switched on */
    uint8_t pass;   /* over the buffers of a flush in which it is read */
    uint32_t since; /* CUPTI's version; older ones do not know the kind */
    const char *call;
    void (*read)(const void *record); /* one of records.h. Helper. */
    const char *const *used_by; /* parts of the names of functions that use it; NULL ends them */
    bool between_contexts;      /* used as soon as the process has two contexts */
};
extern const struct cuda_kind cuda_kinds[]; /* switched on in that order */
extern const size_t cuda_kind_count;
/* Records of a list of buffers into the spool: definitions, then calls, then what the device did.
 * `now`: CLOCK_MONOTONIC after the flush; no true device time is later. */
void cuda_decode(struct cuda_buffer *list, uint64_t now);
/* Passes over a buffer so far: while this grows, the helper thread gets on. */
uint32_t cuda_decoded(void);

/* ---- callback.c */
/* Of a call that returned: results of both APIs are enums whose 0 is success. */
static inline bool cuda_call_succeeded(const CUpti_CallbackData *call)
{
    const int *result = call->functionReturnValue;
    return !result || *result == 0;
}
void cuda_callback(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                   const void *data);
void cuda_callback_start(void); /* enables what the parts want */
/* A started part wants more callbacks than before. Any thread. */
void cuda_callback_enable(const char *part);
bool cuda_function_is_any(enum cuda_domain domain, uint32_t cbid, const char *const *words);
bool cuda_window_wants_callback(enum cuda_domain domain, uint32_t cbid);
void cuda_window_on_callback(enum cuda_domain domain, uint32_t cbid,
                             const CUpti_CallbackData *call);
void cuda_window_forked(void);

/* ---- dump.c: all that CUPTI delivers, into a file, with the option cupti-dump */
void cuda_dump_start(void);
void cuda_dump_flush(uint32_t how);
void cuda_dump_buffers(struct cuda_buffer *list);
void cuda_dump_dropped(uint64_t count);
void cuda_dump_reasons(uint32_t context, size_t count, const uint32_t *indexes,
                       const char (*names)[PC_REASON_BYTES]);
void cuda_dump_cubin(const char *path, size_t bytes); /* the file that was kept */
void cuda_dump_samples(uint32_t context, const struct pc_data *data);
void cuda_dump_end(void);
void cuda_dump_forked(void);
void cuda_dump_on_callback(enum cuda_domain domain, uint32_t cbid, const CUpti_CallbackData *call);
/* From any thread; fills in time and tid. One load when there is no dump. */
void cuda_dump_callback(const struct dump_callback *what);

/* ---- flush.c */
void cuda_tick(void);
void cuda_at_exit(void);
void cuda_flush_start(void);
/* Sleep. The calling thread cannot be cancelled in it, as it could in nanosleep. Any thread. */
void cuda_pause(long ns);
/* Wait until what CUPTI has is read; any thread of the program, in an API callback at most. */
void cuda_flush_wait_tick(void);
void cuda_flush_forked(void);

#endif
