/* A tiny NVTX tool: attaches to every module the way real tools do, counts the calls, and keeps
 * the last texts and the last declaration of work for the test to look at.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/workloads/injection.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int InitializeInjectionNvtx2(pk_nvtx_get_export_table_fn get_export_table);
EXPORT struct injection_log *injection_log(void);

static struct injection_log seen;
static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER; /* of everything but the counters */
static char domain_object, collective_object;                 /* their addresses are the handles */

/* The first time that the tool comes to the moment that TEST_INJECTION_HOLD names, it writes a byte
 * into descriptor TEST_INJECTION_HOLD_FD and waits for one from there. */
static void hold(const char *moment)
{
    static int held;
    const char *wanted = getenv("TEST_INJECTION_HOLD"), *fd = getenv("TEST_INJECTION_HOLD_FD");
    char byte = 0;

    if (!wanted || strcmp(wanted, moment) != 0 || !fd ||
        __atomic_exchange_n(&held, 1, __ATOMIC_SEQ_CST))
        return;
    if (write(atoi(fd), &byte, 1) != 1 || read(atoi(fd), &byte, 1) != 1)
        abort();
}

__attribute__((constructor)) static void loaded(void)
{
    hold("load");
}

static void count(int *counter)
{
    __atomic_add_fetch(&seen.calls, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static void keep(char *to, const char *text)
{
    pthread_mutex_lock(&text_lock);
    snprintf(to, sizeof seen.last_push, "%s", text);
    pthread_mutex_unlock(&text_lock);
}

static int on_push(const char *text)
{
    count(&seen.pushes);
    keep(seen.last_push, text);
    return 0;
}

static int on_pop(void)
{
    count(&seen.pops);
    return 0;
}

static void on_mark(const char *text)
{
    count(&seen.marks);
    keep(seen.last_mark, text);
}

static pk_nvtx_range_id on_start(const char *text)
{
    count(&seen.starts);
    keep(seen.last_start, text);
    return 77;
}

static void on_end(pk_nvtx_range_id id)
{
    if (id == 77)
        count(&seen.ends);
}

static void on_thread_name(uint32_t tid, const char *name)
{
    count(&seen.thread_names);
    seen.named_tid = tid;
    keep(seen.last_thread, name);
}

static struct pk_nvtx_domain *on_domain_create(const char *name)
{
    count(&seen.domains);
    hold("domain");
    keep(seen.domain_name, name);
    return (struct pk_nvtx_domain *)(void *)(strcmp(name, PERFKIT_NVTX_COLLECTIVE_DOMAIN) == 0
                                                 ? &collective_object
                                                 : &domain_object);
}

static int on_collective(const struct pk_nvtx_event_attributes *event)
{
    if (event->payload_type != PK_NVTX_PAYLOAD_UINT64 || event->reserved0 != 0 ||
        event->message_type != PK_NVTX_MESSAGE_ASCII)
        return 0;
    count(&seen.collectives);
    seen.collective_bytes = event->payload.u64;
    keep(seen.last_collective, event->message.ascii);
    return 0;
}

static int on_domain_push(struct pk_nvtx_domain *domain,
                          const struct pk_nvtx_event_attributes *event)
{
    const struct pk_nvtx_payload_data *data;

    if (domain == (void *)&collective_object)
        return on_collective(event);
    count(&seen.work_pushes);
    pthread_mutex_lock(&text_lock);
    seen.work_domain = domain == (void *)&domain_object ? domain : NULL;
    pthread_mutex_unlock(&text_lock);
    if (event->version != PK_NVTX_VERSION || event->size != 48 ||
        event->payload_type != PK_NVTX_PAYLOAD_EXT || event->reserved0 != 1 ||
        event->message_type != PK_NVTX_MESSAGE_ASCII) {
        seen.bad_work++;
        return 0;
    }
    data = (const struct pk_nvtx_payload_data *)(uintptr_t)event->payload.u64;
    if (data->schema_id != PERFKIT_WORK_SCHEMA || data->size_bytes != sizeof seen.work) {
        seen.bad_work++;
        return 0;
    }
    pthread_mutex_lock(&text_lock);
    memcpy(&seen.work, data->payload, sizeof seen.work);
    pthread_mutex_unlock(&text_lock);
    keep(seen.last_work, event->message.ascii);
    return 0;
}

static int on_domain_pop(struct pk_nvtx_domain *domain)
{
    (void)domain;
    count(&seen.work_pops);
    return 0;
}

static void install(const struct pk_nvtx_export_callbacks *callbacks, uint32_t module,
                    unsigned int expected_count, const pk_nvtx_function *handlers)
{
    pk_nvtx_function_table table = NULL;
    unsigned int table_count = 0;

    if (callbacks->get_module_function_table(module, &table, &table_count) != 1 || !table ||
        table_count < expected_count) {
        seen.bad_tables++;
        return;
    }
    for (unsigned int id = 0; id < table_count; id++) {
        if ((id == 0) != (table[id] == NULL))
            seen.bad_tables++;
        else if (handlers && id < expected_count && handlers[id])
            *table[id] = handlers[id];
    }
}

int InitializeInjectionNvtx2(pk_nvtx_get_export_table_fn get_export_table)
{
    static const pk_nvtx_function core[PK_NVTX_CORE_COUNT] = {
        [PK_NVTX_CORE_MARK_A] = (pk_nvtx_function)on_mark,
        [PK_NVTX_CORE_RANGE_START_A] = (pk_nvtx_function)on_start,
        [PK_NVTX_CORE_RANGE_END] = (pk_nvtx_function)on_end,
        [PK_NVTX_CORE_RANGE_PUSH_A] = (pk_nvtx_function)on_push,
        [PK_NVTX_CORE_RANGE_POP] = (pk_nvtx_function)on_pop,
        [PK_NVTX_CORE_NAME_OS_THREAD_A] = (pk_nvtx_function)on_thread_name,
    };
    static const pk_nvtx_function core2[PK_NVTX_CORE2_COUNT] = {
        [PK_NVTX_CORE2_DOMAIN_RANGE_PUSH_EX] = (pk_nvtx_function)on_domain_push,
        [PK_NVTX_CORE2_DOMAIN_RANGE_POP] = (pk_nvtx_function)on_domain_pop,
        [PK_NVTX_CORE2_DOMAIN_CREATE_A] = (pk_nvtx_function)on_domain_create,
    };
    const struct pk_nvtx_export_callbacks *callbacks = get_export_table(PK_NVTX_EXPORT_CALLBACKS);
    const struct pk_nvtx_export_version_info *version =
        get_export_table(PK_NVTX_EXPORT_VERSION_INFO);

    seen.attached++;
    hold("attach");
    if (!callbacks || callbacks->struct_size < sizeof *callbacks || !version ||
        version->struct_size < sizeof *version || get_export_table(PK_NVTX_EXPORT_INVALID)) {
        seen.bad_tables++;
        return 0;
    }
    seen.client_version = version->version;
    version->set_injection_version(PK_NVTX_VERSION);
    install(callbacks, PK_NVTX_MODULE_CORE, PK_NVTX_CORE_COUNT, core);
    install(callbacks, PK_NVTX_MODULE_CORE2, PK_NVTX_CORE2_COUNT, core2);
    install(callbacks, PK_NVTX_MODULE_CUDA, PK_NVTX_CUDA_COUNT, NULL);
    install(callbacks, PK_NVTX_MODULE_OPENCL, PK_NVTX_OPENCL_COUNT, NULL);
    install(callbacks, PK_NVTX_MODULE_CUDART, PK_NVTX_CUDART_COUNT, NULL);
    install(callbacks, PK_NVTX_MODULE_SYNC, PK_NVTX_SYNC_COUNT, NULL);
    if (callbacks->get_module_function_table(PK_NVTX_MODULE_INVALID, NULL, NULL) != 0 ||
        callbacks->get_module_function_table(PK_NVTX_MODULE_COUNT, NULL, NULL) != 0)
        seen.bad_tables++;
    return getenv("TEST_INJECTION_REFUSES") == NULL;
}

struct injection_log *injection_log(void)
{
    return &seen;
}
