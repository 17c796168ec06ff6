/* Every kernel of every backend that this machine has, against the references: odd shapes, the
 * exact cells of the hash, views, fills, and two queues. A backend without a device is skipped
 * and named.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gather/gather.h"
#include "kernels/hash_embedding/hash_embedding.h"
#include "kernels/loss/loss.h"
#include "tests/check_main.h"
#include "tests/workloads/on_device.h"

static uint32_t next_number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Runs one plan over records whose abundance is 1: sums of whole numbers are exact in float, so
 * a backend that hashes one record to another cell or sign cannot pass. */
static void check_hash(const struct hash_plan *plan, const struct hash_shape *shape)
{
    size_t n = shape->records, cells = (size_t)shape->plots * shape->dim;
    uint32_t *plot = malloc(n * 4), *genus = malloc(n * 4), *family = malloc(n * 4), state = 7;
    float *abundance = malloc(n * 4), *out = malloc(cells * 4);
    double *reference = malloc(cells * 8);
    struct hash_records records = {plot, genus, family, abundance};
    struct hash_buffers buffers;
    struct dev_kernel *kernel;
    struct dev_arg args[DEV_MAX_ARGS];
    struct dev_event *event;
    uint64_t ns = 0;

    for (size_t i = 0; i < n; i++) {
        plot[i] = next_number(&state) % shape->plots;
        genus[i] = next_number(&state) * 251u;
        family[i] = next_number(&state) % 97;
        abundance[i] = 1;
    }
    if (shape->sorted)
        qsort(plot, n, sizeof plot[0], by_value);
    buffers = (struct hash_buffers){put_bytes(plot, n * 4), put_bytes(genus, n * 4),
                                    put_bytes(family, n * 4), put_bytes(abundance, n * 4),
                                    put_bytes(out, cells * 4)};
    ck_assert_int_eq(dev_fill(queue, buffers.out, plan->clear_first ? 0 : 0xff, NULL), 0);
    ck_assert_msg(dev_kernel(dev, &hash_embedding_module, plan->kernel, &kernel) == 0, "%s",
                  dev_error_text(dev));
    ck_assert_msg(dev_launch(queue, kernel, plan->grid, args,
                             hash_arguments(plan, shape, &buffers, args), &event) == 0,
                  "%s", dev_error_text(dev));
    ck_assert_int_eq(dev_read(queue, buffers.out, 0, out, cells * 4, DEV_BLOCKING, NULL), 0);
    ck_assert_int_eq(dev_event_wait(event), 0);
    ck_assert_int_eq(dev_event_duration_ns(event, &ns), 0);
    dev_event_release(event);
    hash_reference(shape, &records, 1 + shape->plots % 3, reference);
    for (size_t i = 0; i < cells; i++)
        ck_assert_msg((double)out[i] == reference[i], "%s: cell %zu is %g instead of %g",
                      plan->kernel, i, (double)out[i], reference[i]);
    dev_free(buffers.plot);
    dev_free(buffers.genus);
    dev_free(buffers.family);
    dev_free(buffers.abundance);
    dev_free(buffers.out);
    free(plot);
    free(genus);
    free(family);
    free(abundance);
    free(out);
    free(reference);
}

START_TEST(hash_fills_the_same_cells)
{
    static const struct hash_shape shapes[] = {
        {1, 1, 1, true},      {5, 1000, 3, true},     {257, 13, 32, true},    {5000, 400, 32, true},
        {5000, 3, 100, true}, {20000, 64, 32, false}, {4097, 900, 48, false}, {3000, 7, 5000, true},
    };
    struct hash_plan plan;

    if (!open_backend(_i))
        return;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int v = 0; v <= HASH_AUTO; v++) {
            if (!hash_applies(dev_info(dev), &shapes[s], (enum hash_variant)v))
                continue;
            hash_make_plan(dev_info(dev), &shapes[s], (enum hash_variant)v, &plan);
            check_hash(&plan, &shapes[s]);
        }
        if (!shapes[s].sorted)
            continue;
        /* The form of chunked that this kind of device does not choose. */
        plan = (struct hash_plan){.variant = HASH_CHUNKED,
                                  .kernel = "hash_chunked_item",
                                  .chunk_records = 3,
                                  .grid = dev_grid_for((shapes[s].records + 2) / 3, 16)};
        plan.clear_first = true;
        check_hash(&plan, &shapes[s]);
        if (dev_info(dev)->backend == DEV_CPU)
            continue; /* has no group form */
        plan = (struct hash_plan){.variant = HASH_CHUNKED,
                                  .kernel = "hash_chunked_group",
                                  .chunk_records = 100,
                                  .local_cells = 2048,
                                  .clear_first = true,
                                  .grid = {(shapes[s].records + 99) / 100, 64}};
        check_hash(&plan, &shapes[s]);
    }
    close_backend();
}
END_TEST

START_TEST(auto_is_one_of_the_three)
{
    const char *reason = NULL;
    struct hash_shape shape = {.dim = 32};

    if (!open_backend(_i))
        return;
    for (shape.records = 1; shape.records < 1u << 24; shape.records *= 3) {
        for (shape.plots = 1; shape.plots < 1u << 20; shape.plots *= 5) {
            for (int sorted = 0; sorted < 2; sorted++) {
                enum hash_variant v;

                shape.sorted = sorted;
                v = hash_choose(dev_info(dev), &shape, &reason);
                ck_assert(v < HASH_AUTO && hash_applies(dev_info(dev), &shape, v));
                ck_assert_ptr_nonnull(reason);
            }
        }
    }
    close_backend();
}
END_TEST

START_TEST(lookups_copy_rows)
{
    enum { PLOTS = 137, TOP_K = 3, EMBED = 8, GENERA = 19, FAMILIES = 5 };
    float tables[TOP_K * (GENERA + FAMILIES) * EMBED], one[PLOTS * EMBED],
        all[2 * TOP_K * PLOTS * EMBED];
    uint32_t ids[2][PLOTS * TOP_K], state = 3;
    struct dev_buffer *table_buffer, *id_buffer[2], *one_buffer, *all_buffer;
    struct dev_kernel *gather_one, *gather_fused;

    if (!open_backend(_i))
        return;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        tables[i] = (float)i;
    for (int i = 0; i < PLOTS * TOP_K; i++) {
        ids[0][i] = next_number(&state) % GENERA;
        ids[1][i] = next_number(&state) % FAMILIES;
    }
    table_buffer = put_bytes(tables, sizeof tables);
    id_buffer[0] = put_bytes(ids[0], sizeof ids[0]);
    id_buffer[1] = put_bytes(ids[1], sizeof ids[1]);
    one_buffer = put_bytes(one, sizeof one);
    all_buffer = put_bytes(all, sizeof all);
    ck_assert_int_eq(dev_fill(queue, all_buffer, 0xff, NULL), 0);
    ck_assert_int_eq(dev_kernel(dev, &gather_module, "gather_one", &gather_one), 0);
    ck_assert_int_eq(dev_kernel(dev, &gather_module, "gather_fused", &gather_fused), 0);
    {
        const struct dev_arg args[] = {
            dev_arg_buffer(table_buffer), dev_arg_buffer(id_buffer[0]),
            dev_arg_buffer(id_buffer[1]), dev_arg_buffer(all_buffer),
            dev_arg_u32(PLOTS),           dev_arg_u32((uint32_t)gather_embed_log2(EMBED)),
            dev_arg_u32(TOP_K),           dev_arg_u32(GENERA),
            dev_arg_u32(FAMILIES),        dev_arg_u32(gather_slab_groups(PLOTS, EMBED))};

        ck_assert_msg(dev_launch(queue, gather_fused, gather_fused_grid(PLOTS, EMBED, TOP_K), args,
                                 sizeof args / sizeof args[0], NULL) == 0,
                      "%s", dev_error_text(dev));
    }
    ck_assert_int_eq(dev_read(queue, all_buffer, 0, all, sizeof all, DEV_BLOCKING, NULL), 0);
    for (uint32_t lookup = 0; lookup < 2 * TOP_K; lookup++) {
        bool family = lookup >= TOP_K;
        uint32_t rank = family ? lookup - TOP_K : lookup;
        uint32_t first = family ? TOP_K * GENERA + rank * FAMILIES : rank * GENERA;
        const struct dev_arg args[] = {dev_arg_buffer(table_buffer),
                                       dev_arg_buffer(id_buffer[family]),
                                       dev_arg_buffer(one_buffer),
                                       dev_arg_u32(PLOTS),
                                       dev_arg_u32((uint32_t)gather_embed_log2(EMBED)),
                                       dev_arg_u32(TOP_K),
                                       dev_arg_u32(rank),
                                       dev_arg_u32(first)};

        ck_assert_int_eq(dev_fill(queue, one_buffer, 0xff, NULL), 0);
        ck_assert_int_eq(dev_launch(queue, gather_one, dev_grid_for(PLOTS * EMBED, 64), args,
                                    sizeof args / sizeof args[0], NULL),
                         0);
        ck_assert_int_eq(dev_read(queue, one_buffer, 0, one, sizeof one, DEV_BLOCKING, NULL), 0);
        for (uint32_t i = 0; i < PLOTS * EMBED; i++) {
            uint32_t row = first + ids[family][i / EMBED * TOP_K + rank];
            float expected = tables[row * EMBED + i % EMBED];

            ck_assert_float_eq(one[i], expected);
            ck_assert_float_eq(all[lookup * PLOTS * EMBED + i], expected);
        }
    }
    dev_free(table_buffer);
    dev_free(id_buffer[0]);
    dev_free(id_buffer[1]);
    dev_free(one_buffer);
    dev_free(all_buffer);
    close_backend();
}
END_TEST

START_TEST(views_fills_and_queues)
{
    struct dev_buffer *buffer, *view;
    struct dev_queue *second;
    struct dev_event *event;
    struct dev_host *host;
    unsigned char *bytes, back[1024];

    if (!open_backend(_i))
        return;
    ck_assert_int_eq(dev_alloc(dev, sizeof back, &buffer), 0);
    ck_assert_int_eq(dev_alloc_host(dev, 256, &host), 0);
    ck_assert_int_eq(dev_queue_create(dev, &second), 0);
    bytes = dev_host_pointer(host);
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    ck_assert_int_eq(dev_view(buffer, 512, 256, &view), 0);
    ck_assert_int_eq(dev_fill(queue, buffer, 0x5a, NULL), 0);
    ck_assert_int_eq(dev_queue_finish(queue), 0);
    ck_assert_int_eq(dev_write(second, view, 0, bytes, 256, DEV_ASYNC, &event), 0);
    ck_assert_int_eq(dev_queue_wait(queue, event), 0);
    ck_assert_int_eq(dev_read(queue, buffer, 0, back, sizeof back, DEV_BLOCKING, NULL), 0);
    for (int i = 0; i < (int)sizeof back; i++)
        ck_assert_uint_eq(back[i], i >= 512 && i < 768 ? (unsigned int)i - 512 : 0x5a);
    dev_event_release(event);
    dev_free(view);
    ck_assert_int_ne(dev_view(buffer, 1, 256, &view), 0);   /* not aligned */
    ck_assert_int_ne(dev_view(buffer, 768, 512, &view), 0); /* beyond the end */
    ck_assert_int_ne(dev_write(queue, buffer, 1000, back, 100, DEV_BLOCKING, NULL), 0);
    ck_assert_str_ne(dev_error_text(dev), "");
    dev_queue_destroy(second);
    dev_free_host(host);
    dev_free(buffer);
    close_backend();
}
END_TEST

START_TEST(reasons_are_given)
{
    static const struct dev_module empty = {.name = "empty"};
    struct dev_kernel *kernel;

    if (!open_backend(_i))
        return;
    ck_assert_int_ne(dev_kernel(dev, &empty, "nothing", &kernel), 0);
    ck_assert_ptr_null(kernel);
    ck_assert_ptr_nonnull(strstr(dev_error_text(dev), "empty"));
    close_backend();
}
END_TEST

CHECK_MAIN_LOOPS("kernels", {hash_fills_the_same_cells, 3}, {auto_is_one_of_the_three, 3},
                 {lookups_copy_rows, 3}, {views_fills_and_queues, 3}, {reasons_are_given, 3})
