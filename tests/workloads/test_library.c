/* The search for the best product of matrices that a library has, with a library that computes
 * nothing, on the processor; and what is run for a second. */
#include <dlfcn.h>
#include <string.h>

#include "kernels/ceiling/ceiling.h"
#include "kernels/ceiling/library.h"
#include "kernels/ceiling/sustain.h"
#include "tests/check_main.h"
#include "tests/workloads/fake_cublas.h"

static struct dev *dev;
static struct dev_queue *queue;
static void *object;
static struct fake_cublas_counts *counts;
static char why[256];

static void enter(void)
{
    ck_assert_int_eq(dev_open(DEV_CPU, 1, &dev, why, sizeof why), 0);
    ck_assert_int_eq(dev_queue_create(dev, &queue), 0);
    object = dlopen(TEST_FAKE_CUBLAS, RTLD_NOW | RTLD_LOCAL);
    ck_assert_ptr_nonnull(object);
    counts = dlsym(object, "fake_cublas");
}

static void leave(void)
{
    dev_queue_destroy(queue);
    dev_close(dev);
    dlclose(object);
}

struct seen {
    size_t count;
    struct ceiling_result rows[8];
};

static void see(void *user, const struct ceiling_result *result)
{
    struct seen *seen = user;

    ck_assert_uint_lt(seen->count, 8);
    seen->rows[seen->count++] = *result;
}

START_TEST(the_best_way_is_found)
{
    const struct ceiling_plan plan = {.quick = true};
    struct seen seen = {0};

    enter();
    ck_assert_int_eq(ceiling_matmul(dev, object, &plan, see, &seen, why, sizeof why), 0);
    /* types that need a capability are left out without a word: a processor has none */
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_str_eq(seen.rows[0].name, "matmul_fp64");
    ck_assert_str_eq(seen.rows[0].pipe, "tensor_fp64");
    ck_assert_str_eq(seen.rows[1].name, "matmul_fp32");
    for (size_t i = 0; i < 2; i++) {
        ck_assert_msg(seen.rows[i].ok, "%s", seen.rows[i].how);
        ck_assert(seen.rows[i].value > 0);
        ck_assert_ptr_nonnull(strstr(seen.rows[i].how, "cuBLAS 130101, 512 x 512 x 512"));
    }
    ck_assert_int_gt(counts->own_choice, 0);
    ck_assert_int_gt(counts->algorithm[0], 0);
    /* of two types, the first matrix transposed or not: one that fails is not tried again, and one
     * whose turn comes late on a busy machine not at all */
    ck_assert_int_le(counts->algorithm[1], 4);
    ck_assert_int_eq(counts->algorithm[2], 0);
    ck_assert_int_eq(counts->open, 0);
    leave();
}
END_TEST

START_TEST(names_choose)
{
    const struct ceiling_plan one = {.quick = true, .only = "launch,matmul_fp32"};
    const struct ceiling_plan none = {.quick = true, .only = "fp32"};
    struct seen seen = {0};

    enter();
    ck_assert(ceiling_matmul_wanted(&one));
    ck_assert(!ceiling_matmul_wanted(&none));
    ck_assert_int_eq(ceiling_matmul(dev, object, &one, see, &seen, why, sizeof why), 0);
    ck_assert_uint_eq(seen.count, 1);
    ck_assert_str_eq(seen.rows[0].name, "matmul_fp32");
    leave();
}
END_TEST

START_TEST(a_library_that_does_not_start)
{
    const struct ceiling_plan plan = {.quick = true};
    struct seen seen = {0};
    void *other;

    enter();
    counts->refuse = 1;
    ck_assert_int_eq(ceiling_matmul(dev, object, &plan, see, &seen, why, sizeof why), -1);
    ck_assert_str_eq(why, "cublasCreate: error 1");
    counts->refuse = 0;
    other = dlopen(NULL, RTLD_NOW); /* has no such functions */
    ck_assert_int_eq(ceiling_matmul(dev, other, &plan, see, &seen, why, sizeof why), -1);
    ck_assert_str_eq(why, "libcublas.so lacks a function");
    dlclose(other);
    ck_assert_uint_eq(seen.count, 0);
    leave();
}
END_TEST

/* Every type is described as the library wants it, also those that no processor measures. */
START_TEST(all_types_are_described)
{
    struct library *library;

    enter();
    library = library_open(dev, object, why, sizeof why);
    ck_assert_ptr_nonnull(library);
    for (size_t i = 0; i < library_type_count; i++) {
        for (int transposed = 0; transposed < 2; transposed++) {
            bool small = library_types[i].bytes == 1;
            struct library_product product = {.library = library,
                                              .type = &library_types[i],
                                              .shape = {384, 128, 256, transposed}};
            int status = library_product_open(&product);

            ck_assert_int_eq(status, small && !transposed ? -1 : 0);
            if (status == 0)
                ck_assert_uint_eq(product.way_count, small ? 2 : 3);
            library_product_close(&product);
        }
    }
    library_close(library);
    ck_assert_int_eq(counts->open, 0);
    leave();
}
END_TEST

/* ---- for a second ---------------------------------------------------------------------------- */

static int nothing(void *stream, void *context)
{
    (void)stream;
    ++*(int *)context;
    return 0;
}

static int enqueue(void *context, struct dev_queue *on, struct dev_event **event)
{
    return *(int *)context == 5 ? -1 : dev_call(on, nothing, context, event);
}

START_TEST(as_often_as_fits_into_a_second)
{
    double ns = 0;
    int calls = 100;

    enter();
    ck_assert_int_eq(sustain(queue, enqueue, &calls, 50000000, &ns), 0);
    ck_assert_int_eq(calls, 100 + 22);
    ck_assert(ns > 0);
    calls = 100;
    ck_assert_int_eq(sustain(queue, enqueue, &calls, 1, &ns), 0); /* the queue holds no more */
    ck_assert_int_eq(calls, 100 + 256);
    calls = 100;
    ck_assert_int_eq(sustain(queue, enqueue, &calls, 3000000000, &ns), 0);
    ck_assert_int_eq(calls, 100 + 2);
    calls = 0;
    ck_assert_int_eq(sustain(queue, enqueue, &calls, 100000000, &ns),
                     -1); /* and lets go of events */
    calls = 3;
    ck_assert_int_eq(sustain(queue, enqueue, &calls, 500000000, &ns), -1);
    leave();
}
END_TEST

CHECK_MAIN("library", the_best_way_is_found, names_choose, a_library_that_does_not_start,
           all_types_are_described, as_often_as_fits_into_a_second)
