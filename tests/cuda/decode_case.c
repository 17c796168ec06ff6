/* See decode_case.h. CUPTI's own iterator reads the buffers when a libcupti is there; it works
 * without a driver. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/check_main.h"
#include "tests/cuda/decode_case.h"

bool real_cupti;
uint8_t *data;
size_t size, filled;

static void setup(void)
{
    fake_core_reset();
    static void *library;
    library = dlopen("/usr/local/cuda/lib64/libcupti.so.13", RTLD_NOW);
    real_cupti = library != NULL;
    if (!library)
        library = dlopen(FAKES "/libcupti.so.13", RTLD_NOW);
    ck_assert_ptr_nonnull(library);
    char why[256];
    ck_assert_msg(cupti_load(why, sizeof why), "%s", why); /* finds the copy that is loaded */
    cuda_classes_start();
    ck_assert(cuda_buffers_start() && cuda_calls_start() && cuda_memory_start());
    ck_assert(cuda_correlation_start() && cuda_names_start() && cuda_launch_names_start());
    size_t most;
    cuda_buffers_request(&data, &size, &most);
    ck_assert_uint_eq(most, 0);
    ck_assert_uint_eq((uintptr_t)data % 8, 0);
    filled = 0;
}

void add(const void *record, size_t bytes)
{
    memcpy(data + filled, record, bytes);
    filled += bytes;
}

void decode(uint64_t now)
{
    cuda_buffers_complete(NULL, 0, data, size, filled);
    cuda_decode(cuda_buffers_take(), now);
    cuda_calls_age(true);
    cuda_memory_age(true);
    size_t most;
    cuda_buffers_request(&data, &size, &most);
    filled = 0;
}

const void *first(enum wire_type type)
{
    for (size_t i = 0; i < core.count; i++) {
        if (core.records[i].head.type == type)
            return &core.records[i];
    }
    ck_abort_msg("no record of type %d", (int)type);
}

size_t number(enum wire_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < core.count; i++)
        n += core.records[i].head.type == type;
    return n;
}

_Atomic unsigned flushes, forced;
_Atomic unsigned flush_ms;

static CUptiResult flushed(uint32_t how)
{
    unsigned ms = atomic_exchange(&flush_ms, 0);
    struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};
    atomic_fetch_add(&flushes, 1);
    atomic_fetch_add(&forced, how);
    nanosleep(&pause, NULL);
    return CUPTI_SUCCESS;
}

static CUptiResult nothing_dropped(CUcontext context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = 0;
    return CUPTI_SUCCESS;
}

void begin_flushing(void)
{
    cupti.ActivityFlushAll = flushed;
    cupti.ActivityGetNumDroppedRecords = nothing_dropped;
    cuda_flush_start();
}

int main(void)
{
    Suite *suite = suite_create("cuda_decode");
    static const struct {
        const char *name;
        void (*add_tests)(TCase *cases);
    } parts[] = {
        {"layout", add_layout_tests},  {"records", add_record_tests},
        {"names", add_name_tests},     {"windows", add_window_tests},
        {"threads", add_thread_tests}, {"failures", add_failure_tests},
        {"stacks", add_stack_tests},   {"correlation", add_correlation_tests},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        TCase *cases = check_case(suite, parts[i].name);
        tcase_add_checked_fixture(cases, setup, NULL);
        parts[i].add_tests(cases);
    }
    return check_run_suite(suite);
}
