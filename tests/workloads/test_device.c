/* The device layer beyond what the kernels' test uses: copies, mapped buffers, the pool, the
 * limit, marks and graphs, on every backend that this machine has. A backend without a device is
 * skipped and named.
 */
#include <string.h>

#include "tests/check_main.h"
#include "tests/workloads/on_device.h"

#define BYTES 4096

static struct dev_buffer *filled(uint8_t byte)
{
    struct dev_buffer *buffer;

    done(dev_alloc(dev, BYTES, &buffer));
    done(dev_fill(queue, buffer, byte, NULL));
    return buffer;
}

static void expect_bytes(struct dev_buffer *buffer, size_t offset, size_t bytes, uint8_t byte)
{
    unsigned char back[BYTES];

    done(dev_read(queue, buffer, offset, back, bytes, DEV_BLOCKING, NULL));
    for (size_t i = 0; i < bytes; i++)
        ck_assert_uint_eq(back[i], byte);
}

START_TEST(copies_between_buffers)
{
    struct dev_buffer *from, *to;
    struct dev_event *event;
    uint64_t ns;

    if (!open_backend(_i))
        return;
    from = filled(1);
    to = filled(2);
    done(dev_copy(queue, from, 256, to, 512, 1024, &event));
    expect_bytes(to, 0, 512, 2);
    expect_bytes(to, 512, 1024, 1);
    expect_bytes(to, 1536, BYTES - 1536, 2);
    done(dev_event_duration_ns(event, &ns));
    dev_event_release(event);
    ck_assert_int_ne(dev_copy(queue, from, 0, to, BYTES - 8, 16, NULL), 0);
    dev_free(from);
    dev_free(to);
    close_backend();
}
END_TEST

START_TEST(pool_hands_out_again)
{
    struct dev_pool *pool;
    struct dev_buffer *first, *second, *other;
    struct dev_pool_stats stats;

    if (!open_backend(_i))
        return;
    done(dev_pool_create(dev, &pool));
    done(dev_pool_alloc(pool, 3000, &first));
    done(dev_pool_alloc(pool, 3000, &second));
    ck_assert_ptr_ne(first, second);
    dev_pool_free(pool, first);
    done(dev_pool_alloc(pool, 4096, &other)); /* the same power of two */
    ck_assert_ptr_eq(other, first);
    done(dev_pool_alloc(pool, 4097, &first));
    done(dev_fill(queue, first, 3, NULL));
    expect_bytes(first, 0, BYTES, 3);
    stats = dev_pool_stats(pool);
    ck_assert_uint_eq(stats.requests, 4);
    ck_assert_uint_eq(stats.allocations, 3);
    ck_assert_uint_eq(stats.held_bytes, 4096 + 4096 + 8192);
    ck_assert_uint_eq(dev_memory(dev).used_bytes, stats.held_bytes);
    dev_pool_destroy(pool);
    ck_assert_uint_eq(dev_memory(dev).used_bytes, 0);
    ck_assert_uint_eq(dev_memory(dev).peak_bytes, stats.held_bytes);
    close_backend();
}
END_TEST

START_TEST(limit_is_kept)
{
    const size_t limit = (size_t)64 << 20;
    struct dev_buffer *half, *more;

    if (!open_backend(_i))
        return;
    done(dev_limit(dev, limit));
    ck_assert_int_ne(dev_limit(dev, limit), 0);
    done(dev_alloc(dev, limit / 2, &half));
    ck_assert_int_ne(dev_alloc(dev, limit, &more), 0);
    ck_assert_ptr_null(more);
    ck_assert_ptr_nonnull(strstr(dev_error_text(dev), "memory"));
    done(dev_alloc(dev, limit / 4, &more));
    dev_free(half);
    dev_free(more);
    close_backend();
}
END_TEST

START_TEST(marks_have_times)
{
    struct dev_event *before, *after;
    struct dev_buffer *buffer;
    uint64_t ns = 0;

    if (!open_backend(_i))
        return;
    done(dev_alloc(dev, (size_t)8 << 20, &buffer));
    done(dev_mark(queue, &before));
    done(dev_fill(queue, buffer, 1, NULL));
    done(dev_mark(queue, &after));
    done(dev_event_wait(after));
    done(dev_elapsed_ns(before, after, &ns));
    ck_assert_uint_gt(ns, 0);
    dev_event_release(before);
    dev_event_release(after);
    dev_free(buffer);
    close_backend();
}
END_TEST

START_TEST(graphs_replay_or_say_why)
{
    struct dev_graph *graph;
    struct dev_buffer *from, *to;
    struct dev_event *event;
    unsigned char back[16];

    if (!open_backend(_i))
        return;
    from = filled(5);
    to = filled(6);
    done(dev_queue_finish(queue));
    if (!dev_info(dev)->graphs) {
        ck_assert_int_ne(dev_graph_begin(queue), 0);
        ck_assert_ptr_nonnull(strstr(dev_error_text(dev), "graphs"));
    } else {
        done(dev_graph_begin(queue));
        ck_assert_int_ne(dev_copy(queue, from, 0, to, 0, BYTES, &event), 0); /* no event there */
        done(dev_copy(queue, from, 0, to, 0, BYTES, NULL));
        done(dev_graph_end(queue, &graph));
        expect_bytes(to, 0, BYTES, 6); /* recorded, not run */
        done(dev_graph_launch(queue, graph, &event));
        expect_bytes(to, 0, BYTES, 5);
        dev_event_release(event);
        dev_graph_free(graph);
        done(dev_graph_begin(queue)); /* waiting for the device cannot be recorded */
        ck_assert_int_ne(dev_read(queue, to, 0, back, sizeof back, DEV_BLOCKING, NULL), 0);
        ck_assert_int_ne(dev_graph_end(queue, &graph), 0);
        expect_bytes(to, 0, BYTES, 5); /* and the queue goes on working */
    }
    dev_free(from);
    dev_free(to);
    close_backend();
}
END_TEST

CHECK_MAIN_LOOPS("device", {copies_between_buffers, 3}, {pool_hands_out_again, 3},
                 {limit_is_kept, 3}, {marks_have_times, 3}, {graphs_replay_or_say_why, 3})
