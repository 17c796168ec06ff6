/* The two entry points through which NVTX attaches.
 *
 * NVTX v3 is header-only: every executable and shared object has its own slots and attaches at its
 * first call, so InitializeInjectionNvtx2 is called once for each of them, and the extensions
 * (payloads, counters) attach on their own. All share the state of this collector. Attaching makes
 * no spool; the first event does. */
#include <string.h>

#include "collectors/nvtx/nvtx.h"
#include "libprof/spool/control.h"

static _Atomic uint32_t generation = 1; /* of the spool; +1 in every forked child with events */
static _Atomic uint32_t greeted;        /* the last generation whose spool knows about us */
static _Atomic uint64_t notes[NVTX_NOTES];
static _Atomic uint32_t noted[NVTX_NOTES]; /* generation in which it was said */

static const char *const note_text[NVTX_NOTES] = {
    [NVTX_NOTE_PAYLOAD] =
        "fields of NVTX payloads are kept of ranges, where they are single numbers or texts",
    [NVTX_NOTE_EVENT] = "NVTX events submitted with times of their own are not kept",
    [NVTX_NOTE_COUNTER] = "NVTX counters are not kept",
};

static void nvtx_after_fork(void)
{
    atomic_fetch_add(&generation, 1);
    for (unsigned i = 0; i < NVTX_NOTES; i++)
        atomic_store(&notes[i], 0);
}

/* How much was not kept is known at the end only. */
static void nvtx_at_exit(void)
{
    for (unsigned i = 0; i < NVTX_NOTES; i++) {
        uint64_t n = atomic_load(&notes[i]);
        if (n > 1)
            collector_health(WIRE_SOURCE_NVTX, WIRE_HEALTH_NOTE, note_text[i],
                             n > UINT32_MAX ? UINT32_MAX : (uint32_t)n);
    }
}

static const struct collector_source source = {
    .source = WIRE_SOURCE_NVTX,
    .at_exit = nvtx_at_exit,
    .forked = nvtx_after_fork,
};

uint32_t nvtx_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

bool nvtx_greeted(void)
{
    return atomic_load(&greeted) == atomic_load(&generation);
}

static void report_nvtx_note(enum nvtx_note note)
{
    uint32_t now = nvtx_generation();
    if (atomic_exchange(&noted[note], now) != now)
        collector_health(WIRE_SOURCE_NVTX, WIRE_HEALTH_NOTE, note_text[note], 1);
}

/* What only prepares events (a counter's registration) brings up no spool: its note waits. */
void nvtx_note(enum nvtx_note note)
{
    atomic_fetch_add(&notes[note], 1);
    if (nvtx_greeted() &&
        atomic_load_explicit(&noted[note], memory_order_relaxed) != nvtx_generation())
        report_nvtx_note(note);
}

static void greet(uint32_t now)
{
    uint32_t before = atomic_load(&greeted);
    if (before == now || !atomic_compare_exchange_strong(&greeted, &before, now))
        return;
    collector_health(WIRE_SOURCE_NVTX, WIRE_HEALTH_RUNNING, NULL, 0);
    nvtx_define_categories();
    for (unsigned i = 0; i < NVTX_NOTES; i++) {
        if (atomic_load(&notes[i]) > 0)
            report_nvtx_note((enum nvtx_note)i);
    }
}

bool nvtx_begin(void)
{
    if (!collector_active())
        return false;
    uint32_t now = nvtx_generation();
    if (__builtin_expect(atomic_load_explicit(&greeted, memory_order_relaxed) != now, 0))
        greet(now);
    return true;
}

bool nvtx_records(void)
{
    return nvtx_begin() && collector_recording();
}

bool nvtx_records_range(const struct nvtx_object *domain, int32_t type, const void *message)
{
    const struct control_page *page = nvtx_begin() ? collector_pause() : NULL;
    bool iteration = page && strcmp(domain ? domain->text : "", page->iteration_domain) == 0 &&
                     nvtx_message_is(type, message, page->iteration, page->numbered);
    if (iteration)
        collector_iteration();
    return iteration || nvtx_records();
}

bool nvtx_wanted(void)
{
    if (!collector_traces("nvtx"))
        return false;
    nvtx_capture_start();
    nvtx_torch_start();
    collector_register(&source);
    return true;
}

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(pk_nvtx_get_export_table_fn get_export_table);

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(pk_nvtx_get_export_table_fn get_export_table)
{
    static const struct {
        uint32_t module;
        void (*fill)(pk_nvtx_function_table table, unsigned count);
    } families[] = {
        {PK_NVTX_MODULE_CORE, nvtx_fill_core},
        {PK_NVTX_MODULE_CORE2, nvtx_fill_core2},
        {PK_NVTX_MODULE_CUDA, nvtx_fill_cuda},
        {PK_NVTX_MODULE_CUDART, nvtx_fill_cudart},
    };
    /* The naming functions of OpenCL objects and the sync module keep their empty slots: the client
     * then does nothing. */
    if (!get_export_table || !nvtx_wanted())
        return 0;
    const struct pk_nvtx_export_version_info *version =
        get_export_table(PK_NVTX_EXPORT_VERSION_INFO);
    if (version && version->struct_size >= sizeof *version && version->set_injection_version)
        version->set_injection_version(PK_NVTX_VERSION);
    const struct pk_nvtx_export_callbacks *callbacks = get_export_table(PK_NVTX_EXPORT_CALLBACKS);
    if (!callbacks || callbacks->struct_size < sizeof *callbacks)
        return 0;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        pk_nvtx_function_table table = NULL;
        unsigned count = 0;
        if (callbacks->get_module_function_table(families[i].module, &table, &count) == 1 && table)
            families[i].fill(table, count);
    }
    return 1;
}
