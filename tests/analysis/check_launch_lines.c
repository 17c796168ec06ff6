/* Device work by the line that asked for it: functions that only launch give way to their callers,
 * lines of packages to the program's, the backward pass of PyTorch to the line that called forward.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/include/prof_stack.h"
#include "libprof/include/prof_memory.h"
#include "tests/analysis/fixture.h"

static const struct prof_launch_line *row_of(const struct prof_launch_lines *lines,
                                             const char *where)
{
    for (size_t i = 0; i < lines->count; i++) {
        if (!strcmp(lines->rows[i].where, where))
            return &lines->rows[i];
    }
    ck_abort_msg("no row %s", where);
    return NULL;
}

/* main calls one (line 10) and two (11); both launch through helper (30), one alpha, two beta. main
 * itself launches both from one line (12), and nobody but main reaches it. Stacks: 3 = one, 5 =
 * two, 6 = main. */
static const char wrapper_sql[] =
    "INSERT INTO string(id, value) VALUES(20, 'main'), (21, 'one'), (22, 'two'), (23, 'helper'), "
    "(24, '/src/a.c'), (30, 'cuLaunchKernel');"
    "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 1), (2, 1, 1, 2), (3, 1, 1, 3), "
    "(4, 1, 1, 4), (5, 1, 1, 5), (6, 1, 1, 6);"
    "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 24, 10), "
    "(2, 0, 21, 24, 20), (3, 0, 23, 24, 30), (4, 0, 20, 24, 11), (5, 0, 22, 24, 25), "
    "(6, 0, 20, 24, 12);"
    "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), (3, 2, 3, "
    "3), "
    "(4, NULL, 4, 1), (5, 4, 5, 2), (6, 5, 3, 3), (7, NULL, 6, 1);";

START_TEST(a_function_that_only_launches_gives_way)
{
    char sql[4096];
    snprintf(sql, sizeof sql, "%s%s", wrapper_sql,
             "INSERT INTO kernel(start, duration, stream, config, thread, stack) VALUES"
             "(1000, 100, 1, 1, 1, 3), (2000, 100, 1, 2, 1, 3), (3000, 50, 1, 3, 1, 6), "
             "(4000, 7, 1, 1, 1, 7), (5000, 6, 1, 3, 1, 7), (6000, 5, 1, 3, 1, NULL);");
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_launch_lines lines;
    ck_ok(prof_launch_lines(c, NULL, &lines, &err));
    ck_assert_uint_eq(lines.count, 3);
    ck_assert_int_eq(lines.operations, 6);
    ck_assert_int_eq(lines.device_ns, 268);
    ck_assert_int_eq(lines.unknown_operations, 1);
    ck_assert_int_eq(lines.unknown_ns, 5);
    const struct prof_launch_line *one = row_of(&lines, "one (a.c:20)");
    ck_assert_ptr_eq(one, &lines.rows[0]); /* most time first */
    ck_assert_str_eq(one->via, "helper");
    ck_assert_int_eq(one->device_ns, 200);
    ck_assert_int_eq(one->count, 2);
    ck_assert_int_eq(one->works, 1); /* two configurations of one kernel */
    ck_assert_str_eq(one->work, "alpha");
    ck_near(one->share, 200.0 / 268);
    ck_assert_str_eq(row_of(&lines, "two (a.c:25)")->work, "beta");
    const struct prof_launch_line *main_line = row_of(&lines, "main (a.c:12)");
    ck_assert_ptr_null(main_line->via);
    ck_assert_int_eq(main_line->works, 2);
    ck_assert_str_eq(main_line->work, "alpha");
    ck_assert_int_eq(main_line->work_ns, 7);
    prof_launch_lines_free(&lines);
    ck_ok(prof_launch_lines(c, &(struct prof_filter){.end_ns = 1025}, &lines, &err));
    ck_assert_int_eq(lines.rows[0].device_ns, 100);
    ck_near(lines.rows[0].wall_share, 25.0 / 1025);
    prof_launch_lines_free(&lines);
    prof_close(c);
}
END_TEST

/* A helper for copies is known by their sizes: there is but one name. */
START_TEST(so_does_one_that_only_copies)
{
    char sql[4096];
    snprintf(sql, sizeof sql, "%s%s", wrapper_sql,
             "INSERT INTO transfer(start, duration, stream, bytes, kind, thread, stack) VALUES"
             "(1000, 9, 1, 4096, 1, 1, 3), (2000, 4, 1, 1000000, 1, 1, 6);");
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_launch_lines lines;
    ck_ok(prof_launch_lines(c, NULL, &lines, &err));
    ck_assert_uint_eq(lines.count, 2);
    ck_assert_int_eq(row_of(&lines, "one (a.c:20)")->bytes, 4096);
    ck_assert_int_eq(row_of(&lines, "two (a.c:25)")->bytes, 1000000);
    ck_assert_str_eq(lines.rows[0].work, "HtoD");
    prof_launch_lines_free(&lines);
    prof_close(c);
}
END_TEST

/* main calls a, b and c; each calls gemm (25), which launches all kernels through product (26) and
 * enqueue (30), and each gets memory through allocate (41): no place has fewer
 * kernels than the one that it calls. Stacks: 5, 9, 13; 14, 16, 18. */
static const char nested_sql[] =
    "INSERT INTO string(id, value) VALUES(20, 'main'), (21, 'a'), (22, 'b'), (23, 'c'), "
    "(24, '/src/a.c'), (25, 'gemm'), (26, 'product'), (27, 'enqueue'), (28, 'allocate');"
    "INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 1), (2, 1, 1, 2), (3, 1, 1, 3), "
    "(4, 1, 1, 4), (5, 1, 1, 5), (6, 1, 1, 6), (7, 1, 1, 7), (8, 1, 1, 8);"
    "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 24, 10), "
    "(2, 0, 21, 24, 20), (3, 0, 22, 24, 21), (4, 0, 23, 24, 22), (5, 0, 25, 24, 25), "
    "(6, 0, 26, 24, 26), (7, 0, 27, 24, 30), (8, 0, 28, 24, 41);"
    "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), "
    "(2, 1, 2, 2), (3, 2, 5, 3), (4, 3, 6, 4), (5, 4, 7, 5), "
    "(6, 1, 3, 2), (7, 6, 5, 3), (8, 7, 6, 4), (9, 8, 7, 5), "
    "(10, 1, 4, 2), (11, 10, 5, 3), (12, 11, 6, 4), (13, 12, 7, 5), "
    "(14, 2, 8, 3), (16, 6, 8, 3), (18, 10, 8, 3);"
    "INSERT INTO kernel(start, duration, stream, config, thread, stack) VALUES"
    "(1000, 100, 1, 1, 1, 5), (2000, 100, 1, 3, 1, 5), (3000, 30, 1, 1, 1, 9), "
    "(4000, 30, 1, 3, 1, 9), (5000, 7, 1, 1, 1, 13), (6000, 7, 1, 3, 1, 13);"
    "INSERT INTO allocation(process, start, \"end\", bytes, kind, stack) VALUES"
    "(1, 10, 7000, 4096, 3, 14), (1, 11, 7000, 4096, 3, 16), (1, 12, 7000, 4096, 3, 18);";

START_TEST(so_does_a_nest_of_functions_through_which_everything_goes)
{
    struct prof_capture *c = fixture_with_base(nested_sql);
    struct prof_launch_lines lines;
    const struct prof_frame *frames, *via;
    ck_ok(prof_launch_lines(c, NULL, &lines, &err));
    ck_assert_uint_eq(lines.count, 3);
    ck_assert_int_eq(row_of(&lines, "a (a.c:20)")->device_ns, 200);
    ck_assert_int_eq(row_of(&lines, "b (a.c:21)")->device_ns, 60);
    ck_assert_int_eq(row_of(&lines, "c (a.c:22)")->device_ns, 14);
    ck_assert_str_eq(lines.rows[0].via, "enqueue");
    prof_launch_lines_free(&lines);
    ck_assert_uint_eq(prof_stack_callers(c, PROF_STACK_WORK, 9, &frames, &via), 2);
    ck_assert_str_eq(frames[0].function, "b");
    ck_assert_str_eq(frames[1].function, "main");
    ck_assert_str_eq(via->function, "enqueue");
    ck_assert_uint_eq(prof_stack_callers(c, PROF_STACK_MEMORY, 18, &frames, &via), 2);
    ck_assert_str_eq(frames[0].function, "c");
    ck_assert_str_eq(via->function, "allocate");
    /* Nobody waited: there is nothing that speaks against the innermost line. */
    ck_assert_uint_eq(prof_stack_callers(c, PROF_STACK_WAITS, 18, &frames, &via), 3);
    ck_assert_ptr_null(via);
    struct prof_caller_sums sums;
    ck_ok(prof_caller_sums(c, NULL, &sums, &err));
    ck_assert_uint_eq(sums.count, 6);
    for (size_t i = 0; i < sums.count; i++)
        ck_assert_int_eq(sums.places[sums.rows[i].path[sums.rows[i].told]].function[1], 0);
    prof_caller_sums_free(&sums);
    struct prof_memory_profile profile;
    ck_ok(prof_memory_profile(c, NULL, &profile, &err));
    ck_assert_uint_eq(profile.site_count, 3);
    for (size_t i = 0; i < profile.site_count; i++)
        ck_assert_msg(strstr(profile.sites[i].brief, " < main (a.c:10) via allocate (a.c:41)") ==
                          profile.sites[i].brief + strlen("a (a.c:20)"),
                      "%s", profile.sites[i].brief);
    prof_memory_profile_free(&profile);
    prof_close(c);
}
END_TEST

/* train.py:36 -> a package's relu -> aten; the engine's thread has frames of libraries alone. */
static const char torch_sql[] =
    "INSERT INTO string(id, value) VALUES(20, 'main'), (21, 'relu'), (22, '/home/me/train.py'), "
    "(23, '/venv/lib/python3.12/site-packages/torch/nn/functional.py'), (24, 'torch::engine'), "
    "(25, 'seq'), (26, 'aten::relu'), (27, 'ReluBackward0'), "
    "(28, 'autograd::engine::evaluate_function: ReluBackward0'), "
    "(29, 'autograd::engine::evaluate_function: AccumulateGrad');"
    "INSERT INTO module(id, process, path, address, bytes) VALUES"
    "(1, 1, '/venv/lib/python3.12/site-packages/torch/lib/libtorch.so', 4096, 8192);"
    "INSERT INTO frame(id, process, kind, address, module, offset) VALUES(1, 1, 2, NULL, NULL, "
    "NULL), "
    "(2, 1, 2, NULL, NULL, NULL), (3, 1, 1, 4100, 1, 4);"
    "INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 20, 22, 36), "
    "(2, 0, 21, 23, 1723), (3, 0, 24, NULL, NULL);"
    "INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2), "
    "(3, NULL, 3, 1);"
    "INSERT INTO range(id, start, duration, thread, name, depth) VALUES(1, 100, 100, 1, 26, 0), "
    "(2, 500, 100, 2, 28, 0), (3, 510, 50, 2, 27, 1), (4, 700, 100, 2, 29, 0);"
    "INSERT INTO kernel(start, duration, stream, config, api_lead, api_duration, thread, stack) "
    "VALUES"
    "(150, 10, 1, 1, 10, 5, 1, 2), (550, 20, 1, 2, 10, 5, 2, 3), (580, 7, 1, 2, 10, 5, 2, 3), "
    "(750, 3, 1, 3, 10, 5, 2, 3);"; /* that at 580: the engine sums a gradient */

/* The sequence number stands on the engine's range in some versions, inside of it in others. */
static void backward_has_its_line(const char *numbers)
{
    char sql[4096];
    snprintf(sql, sizeof sql, "%s%s", torch_sql, numbers);
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_launch_lines lines;
    ck_ok(prof_launch_lines(c, NULL, &lines, &err));
    ck_assert_uint_eq(lines.count, 3);
    ck_assert_int_eq(row_of(&lines, "main (train.py:36)")->device_ns, 10);
    const struct prof_launch_line *backward = row_of(&lines, "backward of main (train.py:36)");
    ck_assert(backward->backward);
    ck_assert_int_eq(backward->device_ns, 27);
    ck_assert_int_eq(row_of(&lines, "torch::engine (libtorch.so)")->device_ns, 3);
    prof_launch_lines_free(&lines);
    struct prof_pytorch_summary torch;
    ck_ok(prof_pytorch_summary(c, NULL, &torch, &err));
    ck_assert_uint_eq(torch.count, 1);
    ck_assert_int_eq(torch.rows[0].forward_ns, 10);
    ck_assert_int_eq(torch.rows[0].backward_ns, 27);
    ck_assert_int_eq(torch.rows[0].line, 36);
    ck_assert_int_eq(torch.unmatched_ns, 3);
    prof_pytorch_summary_free(&torch);
    prof_close(c);
}

START_TEST(backward_work_belongs_to_the_forward_line)
{
    backward_has_its_line(
        "INSERT INTO range_field(range, name, value) VALUES(1, 25, 5), (3, 25, 5);");
    backward_has_its_line(
        "INSERT INTO range_field(range, name, value) VALUES(1, 25, 5), (2, 25, 5), "
        "(3, 25, 5);");
}
END_TEST

START_TEST(parts_of_pytorch_have_names)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO string(id, value) VALUES(50, 'my domain'), "
        "(51, 'enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__'), "
        "(52, 'Optimizer.step#AdamW.step'), (53, 'aten::_scaled_dot_product_cudnn_attention'), "
        "(54, 'aten::_scaled_dot_product_cudnn_attention_backward'), "
        "(55, 'garbage collection, generation 2'), (56, 'Optimizer.zero_grad#AdamW.zero_grad'), "
        "(57, 'Optimizer.step#' || printf('%.*c', 62, 'x') || 'é.step');"
        "INSERT INTO range(start, duration, thread, name, domain, depth) VALUES"
        "(100, 90, 1, 51, NULL, 0), (200, 80, 1, 52, NULL, 0), (300, 70, 1, 53, NULL, 0), "
        "(400, 60, 1, 54, NULL, 0), (500, 50, 1, 55, NULL, 0), (600, 40, 1, 56, NULL, 0), "
        "(700, 30, 1, 52, 50, 0), (800, 5, 1, 51, NULL, 0), (900, 4, 1, 57, NULL, 0);");
    static const struct {
        const char *what, *which;
        int64_t count, total;
    } wanted[] = {{"data loading", "waiting for workers", 2, 95},
                  {"optimizer", "AdamW", 1, 80},
                  {"attention", "cuDNN", 1, 70},
                  {"attention, backward", "cuDNN", 1, 60},
                  {"garbage collection", "generation 2", 1, 50}};
    struct prof_range_summary ranges;
    struct prof_pytorch_part *parts;
    size_t count;
    ck_ok(prof_range_summary(c, NULL, &ranges, &err));
    ck_ok(prof_pytorch_parts(&ranges, &parts, &count, &err));
    ck_assert_uint_eq(count, 6); /* the range of a domain of the program's is none */
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(parts[i].what, wanted[i].what);
        ck_assert_str_eq(parts[i].which, wanted[i].which);
        ck_assert_int_eq(parts[i].range->duration_ns.count, wanted[i].count);
        ck_assert_int_eq(parts[i].range->duration_ns.sum, wanted[i].total);
    }
    ck_assert_uint_eq(strlen(parts[5].which), 62); /* not half a character */
    free(parts);
    prof_range_summary_free(&ranges);
    prof_close(c);
}
END_TEST

START_TEST(nodes_of_graphs_belong_to_where_they_were_made)
{
    char sql[4096];
    snprintf(sql, sizeof sql, "%s%s", wrapper_sql,
             "INSERT INTO graph_node(start, thread, node, graph, original, class, stack) VALUES"
             "(10, 1, 7, 1, NULL, 1, 2), (20, 1, 8, 2, 7, 1, NULL);"
             "INSERT INTO api_call(start, duration, thread, name, correlation, stack) "
             "VALUES(2990, 5, 1, 30, 77, 7);"
             "INSERT INTO kernel(start, duration, stream, config, correlation, graph_node) VALUES"
             "(3000, 7, 1, 3, 77, 8), (3010, 3, 1, 3, 77, 9);");
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_launch_lines lines;
    ck_ok(prof_launch_lines(c, NULL, &lines, &err));
    ck_assert_int_eq(row_of(&lines, "one (a.c:20)")->device_ns, 7);
    ck_assert_int_eq(row_of(&lines, "main (a.c:12)")->device_ns, 3); /* its launch */
    prof_launch_lines_free(&lines);
    prof_close(c);
}
END_TEST

START_TEST(without_stacks_there_are_no_lines)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO kernel(start, duration, stream, config) VALUES(5, 5, 1, 1);");
    struct prof_launch_lines lines;
    ck_ok(prof_launch_lines(c, NULL, &lines, &err));
    ck_assert_uint_eq(lines.count, 0);
    ck_assert_int_eq(lines.operations, 0);
    prof_launch_lines_free(&lines);
    prof_close(c);
}
END_TEST

CHECK_MAIN("launch lines", a_function_that_only_launches_gives_way, so_does_one_that_only_copies,
           so_does_a_nest_of_functions_through_which_everything_goes,
           backward_work_belongs_to_the_forward_line, parts_of_pytorch_have_names,
           nodes_of_graphs_belong_to_where_they_were_made, without_stacks_there_are_no_lines)
