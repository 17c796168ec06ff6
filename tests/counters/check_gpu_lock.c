/* Who counts on a GPU (collectors/cuda/gpu_lock.c). */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collectors/cuda/profiler_api.h"
#include "tests/check_main.h"

static const char *own_uuid(void)
{
    static char text[CUDA_UUID_BYTES];
    unsigned char bytes[16] = {0};
    snprintf((char *)bytes, sizeof bytes, "%ld", (long)getpid());
    cuda_uuid_text(bytes, text);
    return text;
}

START_TEST(a_gpu_is_held_by_one)
{
    int first, second;
    ck_assert(gpu_lock_take(own_uuid(), &first));
    ck_assert(gpu_lock_is(first));
    ck_assert(!gpu_lock_take(own_uuid(), &second));
    ck_assert_int_eq(second, -1);
    close(first);
    ck_assert(gpu_lock_take(own_uuid(), &second));
    ck_assert(!gpu_lock_is(STDERR_FILENO));
    close(second);
}
END_TEST

/* Nobody else is to blame where there is no socket to be had. */
START_TEST(no_descriptor_is_nobody_else)
{
    int lock = 0;
    struct rlimit old, none;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){0, old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool free_gpu = gpu_lock_take(own_uuid(), &lock);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    ck_assert(free_gpu);
    ck_assert_int_eq(lock, -1);
}
END_TEST

START_TEST(a_uuid_as_nvidia_smi_prints_it)
{
    char text[CUDA_UUID_BYTES];
    unsigned char bytes[16];
    for (unsigned i = 0; i < 16; i++)
        bytes[i] = (unsigned char)(i * 17);
    ck_assert_uint_eq(cuda_uuid_text(bytes, text), 40);
    ck_assert_str_eq(text, "GPU-00112233-4455-6677-8899-aabbccddeeff");
}
END_TEST

CHECK_MAIN("gpu_lock", a_gpu_is_held_by_one, no_descriptor_is_nobody_else,
           a_uuid_as_nvidia_smi_prints_it)
