/* Ranks and their collectives, on captures whose answers are known by how they are made. */
#include <math.h>
#include <stdio.h>

#include "tests/analysis/rank_fixture.h"

/* ---- waiting --------------------------------------------------------------------------------- */

START_TEST(who_comes_last_is_told_with_the_cause)
{
    scene_training(4, (long[]){200, 200, 500, 260}, (long[]){0, 0, 0, 0}, COMMUNICATOR);
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_uint_eq(ranks->count, 4);
    ck_assert_str_eq(ranks->iteration_name, "step");
    ck_assert_int_eq(ranks->operations, 4 * STEPS);
    ck_assert_int_eq(ranks->matched, 4 * STEPS);
    ck_assert_ptr_null(ranks->why_unmatched);
    ck_assert_int_eq(ranks->missing, 0);
    const struct prof_rank_row *fast = &ranks->rows[0], *slow = &ranks->rows[2];
    ck_assert_int_eq(slow->rank, 2);
    ck_assert_int_eq(slow->analysed, STEPS);
    ck_assert_int_eq(slow->last_count, STEPS);
    ck_assert_int_eq(slow->last_ns, STEPS * 240 * US);
    ck_assert_int_eq(slow->caused_ns, STEPS * (300 + 300 + 240) * US);
    ck_assert_int_eq(slow->cause, PROF_CAUSE_COMPUTE);
    ck_assert_int_eq(slow->excess_ns[PROF_CAUSE_COMPUTE], STEPS * 300 * US);
    ck_assert_str_eq(slow->slow_kernel, "gemm");
    ck_assert_int_eq(slow->slow_kernel_ns, STEPS * 300 * US);
    ck_assert_int_eq(slow->wait_ns, 0);
    ck_assert_int_eq(fast->wait_ns, STEPS * 300 * US);
    ck_assert_int_eq(fast->last_count, 0);
    ck_assert_int_eq(fast->iterations, STEPS);
    ck_near(fast->iteration_ns, 1000.0 * US);
    ck_assert_int_eq(fast->window_ns, STEPS * 1000 * US);
    ck_assert_int_eq(fast->compute_ns, STEPS * 200 * US);
    ck_assert_int_eq(fast->collective_ns, STEPS * 400 * US);
    ck_assert_int_eq(fast->exposed_ns, STEPS * 400 * US);
    ck_assert_int_eq(fast->busy_ns, STEPS * 600 * US);
    ck_assert_int_eq(fast->idle_ns, STEPS * 400 * US);
    ck_near(ranks->imbalance, 500 / 290.0 - 1);

    ck_assert_uint_eq(ranks->late_count, STEPS);
    ck_assert_uint_eq(ranks->late[0].rank, 2);
    ck_assert_int_eq(ranks->late[0].late_ns, 240 * US);
    ck_assert_int_eq(ranks->late[0].skew_ns, 300 * US);
    ck_assert_int_eq(ranks->late[0].iteration, 0);
    ck_assert_int_eq(ranks->late[4].iteration, 4);
    ck_assert_int_eq(ranks->late[0].cause, PROF_CAUSE_COMPUTE);

    ck_assert_uint_eq(ranks->collective_count, 1);
    const struct prof_collective_row *all = &ranks->collectives[0];
    ck_assert_int_eq(all->operation, PROF_COLLECTIVE_ALL_REDUCE);
    ck_assert_str_eq(all->reduction, "Sum");
    ck_assert(all->communicator == COMMUNICATOR && all->has_communicator);
    ck_assert_int_eq(all->ranks, 4);
    ck_assert_int_eq(all->bytes, 8 * MEBI);
    ck_assert_int_eq(all->count, 4 * STEPS);
    ck_assert_int_eq(all->calls, 4 * STEPS);
    ck_near(all->transfer_ns, 100.0 * US);
    ck_near(all->skew_ns, 300.0 * US);
    ck_assert_int_eq(all->wait_ns, STEPS * 840 * US);
    ck_near(all->algorithm_rate, 8 * MEBI / 100e-6);
    ck_near(all->bus_rate, 1.5 * 8 * MEBI / 100e-6);

    ck_assert_uint_eq(ranks->iteration_count, 4 * STEPS);
    for (size_t i = 0; i < ranks->iteration_count; i++) {
        ck_assert_int_eq(ranks->iterations[i].iteration, (int64_t)i / 4);
        ck_assert_int_eq(ranks->iterations[i].slowest, i % 4 == 2);
    }
    ck_assert_int_eq(ranks->iterations[0].wait_ns, 300 * US);
    ck_assert_uint_eq(ranks->difference_count, 0);
    ranks_done(capture, ranks);
}
END_TEST

START_TEST(a_late_host_is_no_slow_kernel)
{
    scene_training(3, (long[]){200, 200, 200}, (long[]){0, 150, 0}, 0);
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_int_eq(ranks->matched, 3 * STEPS); /* without a communicator's number too */
    ck_assert_int_eq(ranks->rows[1].last_count, STEPS);
    ck_assert_int_eq(ranks->rows[1].cause, PROF_CAUSE_HOST);
    ck_assert_int_eq(ranks->rows[1].excess_ns[PROF_CAUSE_HOST], STEPS * 150 * US);
    ck_assert_ptr_null(ranks->rows[1].slow_kernel);
    ck_assert(!ranks->collectives[0].has_communicator);
    ck_assert_int_eq(ranks->collectives[0].ranks, 3);
    ranks_done(capture, ranks);
}
END_TEST

/* Rank 1's device begins every step 400 us late, and computes as long as the other beside three
 * all-reduces: it comes last to all of them, for one reason, which costs 400 us and not 580. */
START_TEST(a_rank_that_stays_behind_is_late_once)
{
    static const long ends[] = {620, 720, 820};
    scene_begin();
    for (int r = 0; r < 2; r++) {
        long behind = r * 400, free_at = 0;
        scene_rank(r);
        scene_comm_init(r, (long long)COMMUNICATOR, 2);
        for (long step = 0; step < STEPS; step++) {
            long at = 1000 * (step + 1), ready = at + 10 + behind;
            scene_range(r, STEP, 0, at, at + 1000);
            for (int k = 0; k < 3; k++) {
                long done_at = ready + (k ? 100 : 200);
                scene_kernel(r, GEMM_CONFIG, at + 1 + 10 * k, ready, done_at);
                scene_all_reduce(r, at + 4 + 10 * k, (long long)COMMUNICATOR, 8 * MEBI);
                scene_kernel(r, ALL_REDUCE_CONFIG, at + 5 + 10 * k,
                             done_at > free_at ? done_at : free_at, at + ends[k]);
                ready = done_at;
                free_at = at + ends[k];
            }
        }
    }
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    const struct prof_rank_row *late = &ranks->rows[1];
    ck_assert_int_eq(ranks->matched, 2 * 3 * STEPS);
    ck_assert_int_eq(late->last_count, 3 * STEPS);
    ck_assert_int_eq(late->cause, PROF_CAUSE_HOST);
    ck_assert_int_eq(late->last_ns, STEPS * 400 * US);
    ck_assert_int_eq(late->caused_ns, STEPS * (400 + 90 + 90) * US);
    ck_assert_int_eq(late->excess_ns[PROF_CAUSE_COMPUTE], 0);
    for (size_t i = 0; i < ranks->late_count; i++)
        ck_assert_int_eq(ranks->late[i].cause, PROF_CAUSE_HOST);
    ranks_done(capture, ranks);
}
END_TEST

/* An all-reduce of 300 us, of which a kernel covers 100. */
START_TEST(what_a_kernel_covers_is_not_exposed)
{
    scene_begin();
    scene_process(0, "0");
    scene_kernel(0, ALL_REDUCE_CONFIG, 5, 100, 400);
    scene_kernel(0, GEMM_CONFIG, 6, 50, 200);
    scene_kernel(0, GEMM_CONFIG, 7, 60, 150); /* two at once count once */
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_uint_eq(ranks->count, 1);
    ck_assert_int_eq(ranks->rows[0].collective_ns, 300 * US);
    ck_assert_int_eq(ranks->rows[0].exposed_ns, 200 * US);
    ck_assert_int_eq(ranks->rows[0].compute_ns, 150 * US);
    ck_assert_int_eq(ranks->rows[0].window_ns, 350 * US);
    ck_assert_int_eq(ranks->rows[0].idle_ns, 0);
    ck_assert(isnan(ranks->rows[0].iteration_ns));
    ck_assert_int_eq(ranks->collectives[0].bytes, PROF_UNKNOWN); /* its name is all there is */
    ck_assert(isnan(ranks->collectives[0].bus_rate));
    ck_assert_int_eq(ranks->missing, 3);
    ranks_done(capture, ranks);
}
END_TEST

/* ---- calls and kernels ----------------------------------------------------------------------- */

START_TEST(groups_share_kernels)
{
    scene_begin();
    scene_process(0, "0");
    scene_range(0, GROUP_START, NCCL, 10, 11); /* three calls, one kernel */
    for (int i = 0; i < 3; i++)
        scene_all_reduce(0, 12 + 6 * i, COMMUNICATOR, MEBI);
    scene_range(0, GROUP_END, NCCL, 40, 50);
    scene_kernel(0, ALL_REDUCE_CONFIG, 45, 60, 100);
    scene_range(0, GROUP_START, NCCL, 110, 111); /* two communicators, two kernels */
    scene_all_reduce(0, 112, COMMUNICATOR, MEBI);
    scene_all_reduce(0, 120, 77, 2 * MEBI);
    scene_all_reduce(0, 130, 77, 2 * MEBI);
    scene_range(0, GROUP_END, NCCL, 140, 150);
    scene_kernel(0, ALL_REDUCE_CONFIG, 142, 160, 170);
    scene_kernel(0, ALL_REDUCE_CONFIG, 144, 170, 190);
    /* A send by itself has a group inside, and its kernel in that; another is in a group. */
    int send = scene_range(0, SEND, NCCL, 200, 220);
    scene_field(send, F_BYTES, 4 * MEBI);
    scene_field(send, F_PEER, 1);
    scene_range(0, GROUP_START, NCCL, 201, 202);
    scene_range(0, GROUP_END, NCCL, 203, 219);
    scene_kernel(0, SEND_RECV_CONFIG, 210, 300, 400);
    scene_range(0, GROUP_START, NCCL, 410, 411);
    for (int i = 0; i < 2; i++) {
        int call = scene_range(0, i ? RECV : SEND, NCCL, 412 + 6 * i, 416 + 6 * i);
        scene_field(call, F_BYTES, MEBI);
        scene_field(call, F_PEER, 3);
        scene_range(0, GROUP_START, NCCL, 413 + 6 * i, 414 + 6 * i);
        scene_range(0, GROUP_END, NCCL, 414 + 6 * i, 415 + 6 * i);
    }
    scene_range(0, GROUP_END, NCCL, 430, 440);
    scene_kernel(0, SEND_RECV_CONFIG, 435, 500, 600);
    scene_kernel(0, SEND_RECV_CONFIG, 700, 700, 710); /* by nobody's call */
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_int_eq(ranks->operations, 6);
    ck_assert_int_eq(ranks->calls_without_kernel, 0);
    int64_t seen = 0;
    for (size_t i = 0; i < ranks->collective_count; i++) {
        const struct prof_collective_row *row = &ranks->collectives[i];
        int64_t us = row->duration_ns.sum / US;
        seen += us;
        ck_assert_int_eq(row->count, 1);
        if (us == 40) {
            ck_assert_int_eq(row->calls, 3);
            ck_assert_int_eq(row->bytes, MEBI);
        } else if (us == 10 && row->operation == PROF_COLLECTIVE_ALL_REDUCE) {
            ck_assert(row->communicator == COMMUNICATOR && row->calls == 1);
        } else if (us == 20) {
            ck_assert(row->communicator == 77 && row->calls == 2 && row->bytes == 2 * MEBI);
        } else if (us == 100 && row->operation == PROF_COLLECTIVE_SEND) {
            ck_assert(row->calls == 1 && row->bytes == 4 * MEBI);
        } else if (us == 100) {
            ck_assert_int_eq(row->operation, PROF_COLLECTIVE_SEND_RECV);
            ck_assert(row->calls == 2 && row->bytes == MEBI);
        } else {
            ck_assert_int_eq(row->operation, PROF_COLLECTIVE_SEND_RECV);
            ck_assert(us == 10 && row->calls == PROF_UNKNOWN && row->bytes == PROF_UNKNOWN);
        }
    }
    ck_assert_int_eq(seen, 40 + 10 + 20 + 100 + 100 + 10);
    ck_assert_uint_eq(ranks->link_count, 1); /* of the send whose peer is known */
    ck_assert(ranks->links[0].from == 0 && ranks->links[0].to == 1);
    ck_near(ranks->links[0].bus_rate, floor(4 * MEBI / 100e-6));
    ranks_done(capture, ranks);
}
END_TEST

/* Captured once, launched twice, as a clone of the program's node; another graph computes only. */
START_TEST(captured_calls_serve_every_launch)
{
    scene_begin();
    scene_process(0, "0");
    scene_all_reduce(0, 10, COMMUNICATOR, MEBI);
    scene_add(
        "INSERT INTO graph_node(start, thread, node, graph, original, class) VALUES(12000, 1, 5, "
        "1, "
        "NULL, 1), (13000, 1, 6, 1, NULL, 1), (20000, 1, 50, 2, NULL, 1), (20000, 1, 50, 2, 5, 1), "
        "(20000, 1, 51, 2, 51, 1)");
    for (int i = 0; i < 2; i++)
        scene_add("INSERT INTO kernel(start, duration, stream, config, correlation, graph_node) "
                  "VALUES(%d, 1000, 2, %d, %d, 50), (%d, 10, 1, %d, %d, 51)",
                  100000 + 10000 * i, ALL_REDUCE_CONFIG, i, 100000 + 10000 * i, GEMM_CONFIG, i);
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_uint_eq(ranks->collective_count, 1);
    ck_assert_int_eq(ranks->collectives[0].count, 2);
    ck_assert_int_eq(ranks->collectives[0].in_graphs, 2);
    ck_assert_int_eq(ranks->collectives[0].bytes, MEBI);
    ck_assert(ranks->collectives[0].communicator == COMMUNICATOR);
    ck_assert_int_eq(ranks->calls_without_kernel, 0);
    ranks_done(capture, ranks);
}
END_TEST

/* A communicator that does not block launches on a thread of its own. */
START_TEST(launches_of_another_thread_go_by_order)
{
    scene_begin();
    scene_process(0, "0");
    scene_add("INSERT INTO thread(id, process, tid) VALUES(9, 1, 999)");
    for (int i = 0; i < 3; i++) {
        scene_all_reduce(0, 10 + 10 * i, COMMUNICATOR, (i + 1) * MEBI);
        scene_add(
            "INSERT INTO kernel(start, duration, stream, config, api_lead, api_duration, thread) "
            "VALUES(%d, %d, 2, %d, 1000, 500, 9)",
            (100 + 10 * i) * US, (i + 1) * US, ALL_REDUCE_CONFIG);
    }
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_uint_eq(ranks->collective_count, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(ranks->collectives[i].bytes,
                         ranks->collectives[i].duration_ns.sum / US * MEBI);
    ranks_done(capture, ranks);
}
END_TEST

START_TEST(operations_of_the_host)
{
    scene_begin();
    for (int r = 0; r < 2; r++) {
        scene_process(r, "NULL"); /* no launcher said anything */
        for (int i = 0; i < 4; i++) {
            int at = 1000 * (i + 1) + 100 * r;
            int own = scene_range(r, OWN_ALL_REDUCE, OWN, at, 1000 * (i + 1) + 300);
            scene_add("UPDATE range SET payload=%d WHERE id=%d", 4 * MEBI, own);
            scene_kernel(r, GEMM_CONFIG, at, at, at + 50); /* the program goes on meanwhile */
            scene_range(r, MPI_BARRIER, 0, 1000 * (i + 1) + 400 + 100 * r, 1000 * (i + 1) + 550);
        }
    }
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_uint_eq(ranks->count, 2);
    ck_assert_int_eq(ranks->rows[0].rank, PROF_UNKNOWN);
    ck_assert_int_eq(ranks->rows[0].pid, 100);
    ck_assert_int_eq(ranks->operations, 16);
    ck_assert_int_eq(ranks->matched, 16);
    ck_assert_int_eq(ranks->rows[0].wait_ns, 4 * 200 * US);
    ck_assert_int_eq(ranks->rows[1].last_count, 8);
    ck_assert_int_eq(ranks->rows[0].exposed_ns, 4 * (250 + 150) * US);
    const struct prof_collective_row *all = &ranks->collectives[0];
    ck_assert_int_eq(all->operation, PROF_COLLECTIVE_ALL_REDUCE);
    ck_near(all->bus_rate, 4 * MEBI / 200e-6); /* 2 ranks: 2(n-1)/n = 1 */
    ck_assert_int_eq(ranks->collectives[1].operation, PROF_COLLECTIVE_BARRIER);
    ck_assert(isnan(ranks->collectives[1].bus_rate));
    ranks_done(capture, ranks);
}
END_TEST

/* ---- what does not go together --------------------------------------------------------------- */

START_TEST(a_rank_that_began_later_is_counted_from_the_end)
{
    scene_training(3, (long[]){200, 300, 200}, (long[]){0, 0, 0}, COMMUNICATOR);
    scene_add("DELETE FROM kernel WHERE start < 3000000 AND stream > 4"); /* rank 2: three steps */
    scene_add("DELETE FROM range WHERE start < 3000000 AND thread = 3");
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_int_eq(ranks->matched, 3 * 3);
    ck_assert_ptr_nonnull(ranks->why_unmatched);
    ck_assert_int_eq(ranks->rows[1].last_count, 3);
    ck_assert_int_eq(ranks->rows[2].wait_ns, 3 * 100 * US);
    ranks_done(capture, ranks);
}
END_TEST

START_TEST(groups_that_cannot_be_told_apart_are_not_matched)
{
    scene_training(4, (long[]){200, 300, 200, 200}, (long[]){0, 0, 0, 0}, 0);
    scene_add("UPDATE kernel SET start = start + 500000000 WHERE stream > 4"); /* ranks 2, 3:
                                                                                  another group */
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_int_eq(ranks->matched, 0);
    ck_assert_ptr_nonnull(ranks->why_unmatched);
    ck_assert_int_eq(ranks->rows[0].wait_ns, 0);
    ck_assert_uint_eq(ranks->late_count, 0);
    ck_assert(ranks->collectives[0].duration_ns.count > 0);
    ranks_done(capture, ranks);
}
END_TEST

START_TEST(a_rank_that_does_otherwise_is_named)
{
    scene_training(4, (long[]){200, 200, 200, 200}, (long[]){0, 0, 0, 0}, COMMUNICATOR);
    scene_kernel(3, EXTRA_CONFIG, 2500, 2600, 2610);
    scene_add("INSERT INTO transfer(start, duration, stream, bytes, kind) VALUES(2700000, 1000, 3, "
              "4096, 2)");
    scene_kernel(0, EXTRA_CONFIG, 500, 600, 610); /* before the steps: no part of them */
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_uint_eq(ranks->difference_count, 2);
    const struct prof_rank_difference *copied = &ranks->differences[0], *extra = copied + 1;
    ck_assert(copied->rank == 1 && copied->kind == PROF_DIFFERS_COPIED);
    ck_assert(copied->here == 4096 && copied->usual == 0 && copied->usual_ranks == 3);
    ck_assert_str_eq(copied->name, "DtoH");
    ck_assert(extra->rank == 3 && extra->kind == PROF_DIFFERS_LAUNCHES);
    ck_assert_str_eq(extra->name, "extra");
    ck_assert_int_eq(extra->config->id, EXTRA_CONFIG);
    ck_assert(extra->here == 1 && extra->usual == 0);
    ranks_done(capture, ranks);
}
END_TEST

/* Two hosts: what the clocks' error may be is no lateness; nothing is known where it is not. */
START_TEST(clocks_of_several_hosts)
{
    static const struct {
        const char *error;
        int64_t told, late;
    } clocks[] = {{"50000", 50 * US, STEPS}, {"300000", 300 * US, 0}, {"NULL", PROF_UNKNOWN, 0}};
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        scene_training(2, (long[]){200, 400}, (long[]){0, 0}, COMMUNICATOR);
        scene_add("INSERT INTO merged_part(file, host, boot_id, clock_error) VALUES('a', 'one', "
                  "'x', NULL), "
                  "('b', 'one', 'x', NULL), ('c', 'two', 'y', %s)",
                  clocks[i].error);
        struct prof_capture *capture = scene_made();
        const struct prof_ranks *ranks = ranks_of(capture);
        ck_assert_int_eq(ranks->clock_error_ns, clocks[i].told);
        ck_assert_int_eq(ranks->rows[1].last_count, clocks[i].late);
        ck_assert_int_eq(ranks->matched, 2 * STEPS);
        ck_assert_int_eq(ranks->rows[0].wait_ns > 0, clocks[i].told != PROF_UNKNOWN);
        ck_near(ranks->collectives[0].transfer_ns, 100.0 * US); /* durations need no common clock */
        ranks_done(capture, ranks);
    }
}
END_TEST

START_TEST(one_process_with_several_devices)
{
    scene_begin();
    for (int r = 0; r < 2; r++)
        scene_process(r, "0");
    scene_add("UPDATE device SET process = 1; UPDATE stream SET process = 1; DELETE FROM process "
              "WHERE id=2;"
              "UPDATE thread SET process = 1");
    for (int r = 0; r < 2; r++) {
        scene_comm_init(r, COMMUNICATOR, 2);
        scene_all_reduce(r, 100 + 10 * r, COMMUNICATOR, MEBI);
        scene_kernel(r, ALL_REDUCE_CONFIG, 101 + 10 * r, 200 + 50 * r, 300);
    }
    struct prof_capture *capture = scene_made();
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert_uint_eq(ranks->count, 2);
    ck_assert_int_eq(ranks->rows[0].rank, 0);
    ck_assert_int_eq(ranks->rows[1].rank, 1); /* as NCCL was told */
    ck_assert_int_eq(ranks->rows[0].wait_ns, 50 * US);
    ranks_done(capture, ranks);
}
END_TEST

START_TEST(nothing_and_nonsense)
{
    struct prof_capture *capture = fixture_with_base(NULL);
    const struct prof_ranks *ranks = ranks_of(capture);
    ck_assert(ranks->count == 0 && ranks->collective_count == 0);
    bool present = true;
    ck_ok(prof_ranks_present(capture, &present, &err));
    ck_assert(!present);
    ranks_done(capture, ranks);

    scene_training(2, (long[]){200, 300}, (long[]){0, 0}, COMMUNICATOR);
    scene_add(
        "UPDATE kernel SET duration = -5 WHERE id = 2; UPDATE kernel SET start = NULL WHERE id = 4;"
        "UPDATE kernel SET duration = 9223372036854775807 WHERE id = 6;"
        "UPDATE kernel SET stream = 99, thread = 99 WHERE id = 8;"
        "UPDATE kernel SET start = -9223372036854775807 WHERE id = 10;"
        "UPDATE range SET duration = 9223372036854775807, thread = 77 WHERE id = 3;"
        "UPDATE range SET start = NULL WHERE id = 5; UPDATE range SET duration = NULL WHERE id = 7;"
        "UPDATE range_field SET value = 'text' WHERE id %% 3 = 0;"
        "UPDATE range_field SET name = 99, range = 0 WHERE id = 5;"
        "UPDATE process SET rank = -3, world_size = -1 WHERE id = 1;"
        "INSERT INTO range_field(range, name, value) VALUES(2, 16, -1), (2, 18, 0), (NULL, NULL, "
        "NULL);"
        "INSERT INTO graph_node(start, thread, node, original) VALUES(1, 1, 7, 8), (1, 1, 8, 7);"
        "UPDATE kernel SET graph_node = 7 WHERE id = 12");
    capture = scene_made();
    ranks = ranks_of(capture);
    ck_assert_uint_eq(ranks->count, 2);
    ranks_done(capture, ranks);
}
END_TEST

START_TEST(a_filter_by_time)
{
    scene_training(2, (long[]){200, 300}, (long[]){0, 0}, COMMUNICATOR);
    struct prof_capture *capture = scene_made();
    struct prof_filter filter = {.begin_ns = 2000 * US, .end_ns = 4000 * US, .skips = true};
    struct prof_ranks ranks;
    ck_ok(prof_ranks(capture, &filter, &ranks, &err));
    ck_assert_int_eq(ranks.operations, 2 * 2);
    ck_assert_int_eq(ranks.rows[0].wait_ns, 2 * 100 * US);
    ck_assert_int_eq(ranks.rows[0].iterations, 2);
    prof_ranks_free(&ranks);
    prof_close(capture);
}
END_TEST

CHECK_MAIN("ranks", who_comes_last_is_told_with_the_cause, a_late_host_is_no_slow_kernel,
           a_rank_that_stays_behind_is_late_once, what_a_kernel_covers_is_not_exposed,
           groups_share_kernels, captured_calls_serve_every_launch,
           launches_of_another_thread_go_by_order, operations_of_the_host,
           a_rank_that_began_later_is_counted_from_the_end,
           groups_that_cannot_be_told_apart_are_not_matched, a_rank_that_does_otherwise_is_named,
           clocks_of_several_hosts, one_process_with_several_devices, nothing_and_nonsense,
           a_filter_by_time)
