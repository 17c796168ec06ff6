/* The parts of report/ that can be tested without a capture: widths, cleaning and shortening of
 * names, lanes, the table of writers, column descriptions, saving. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "report/data.h"
#include "report/findings.h"
#include "report/walk.h"
#include "report/stats_columns.h"
#include "report/table.h"
#include "report/trace.h"
#include "libprof/base/utf8.h"
#include "report/writers.h"
#include "tests/check_main.h"

static void expect_text(char *text, const char *expected)
{
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(wide_and_combining_characters_count_as_terminals_draw_them)
{
    ck_assert_uint_eq(prof_report_cells("kernel"), 6);
    ck_assert_uint_eq(prof_report_cells("\xe6\xa0\xb8\xe5\xbf\x83"), 4); /* two CJK letters */
    ck_assert_uint_eq(prof_report_cells("e\xcc\x81"), 1);                /* e, combining acute */
    ck_assert_uint_eq(prof_report_cells("\xf0\x9f\x9a\x80"), 2);         /* an emoji */
    ck_assert_uint_eq(prof_report_cells("\xc3\xa9"), 1);
    ck_assert_uint_eq(prof_report_cells(""), 0);
}
END_TEST

START_TEST(nothing_that_moves_the_cursor_survives_cleaning)
{
    expect_text(prof_report_clean("a\033[31mb\007"), "a\\x1b[31mb\\x07");
    ck_assert_int_eq(prof_report_head("abc", 5), 3);
    ck_assert_int_eq(prof_report_head("abc", 2), 2);
    ck_assert_int_eq(prof_report_head("a\xc3\xa9", 3), 3);
    ck_assert_int_eq(prof_report_head("a\xc3\xa9", 2), 1);
    ck_assert_int_eq(prof_report_head("\xf0\x9f\x98\x80", 3), 0);
    ck_assert_int_eq(prof_report_head("ab\xf0\x9f\x98\x80", 4), 2);
    ck_assert_int_eq(prof_report_head("a\x80\x80\x80\x80", 4), 4); /* no characters: cut anywhere */
    ck_assert_int_eq(prof_report_head("a\xff\xff", 2), 2);
    ck_assert_int_eq(prof_report_head("", 4), 0);
    expect_text(prof_report_clean("a\nb\tc\rd"), "a\\nb\\tc\\rd");
    expect_text(prof_report_clean("x\xff\xc3(y"), "x\\xff\\xc3(y");
    expect_text(prof_report_clean("a\xe2\x80\xae"
                                  "b"),
                "a\\u{202e}b"); /* right-to-left override */
    expect_text(prof_report_clean("\xc2\x9b"
                                  "31m"),
                "\\u{9b}31m");                                         /* 8-bit escape sequence */
    expect_text(prof_report_clean("\xed\xa0\x80"), "\\xed\\xa0\\x80"); /* a surrogate */
    expect_text(prof_report_clean(NULL), "n/a");
    expect_text(prof_report_clean(""), "(empty)");
    expect_text(prof_report_clean("caf\xc3\xa9"), "caf\xc3\xa9");
}
END_TEST

START_TEST(other_work_is_named_where_little_is_analysed)
{
    struct prof_phase_row phase = {.name = "step", .iterations = 8, .end_ns = 1000000};
    struct prof_findings findings = {
        .phases = &phase,
        .phase_count = 1,
        .window_ns = 1000000,
        .coverage = {.device_ns = 1000000,
                     .analysed_ns = 600000,
                     .set_up_ns = 50000,
                     .other = {{"profile", 200000}, {"copy", 140000}, {NULL, 9000}},
                     .other_count = 3}};
    char line[600];
    prof_report_findings_analysed(&findings, line, sizeof line);
    ck_assert_ptr_nonnull(strstr(line, "35.0 % in other work: 20.0 % in \"profile\", 14.0 % in "
                                       "\"copy\")"));
    findings.coverage.other[2].device_ns = 10000;
    prof_report_findings_analysed(&findings, line, sizeof line);
    ck_assert_ptr_nonnull(strstr(line, "\"copy\", 1.0 % outside of ranges)"));
    findings.coverage.other[0] = (struct prof_coverage_range){NULL, 350000};
    findings.coverage.other_count = 1;
    prof_report_findings_analysed(&findings, line, sizeof line);
    ck_assert_ptr_nonnull(strstr(line, "35.0 % in other work)"));
}
END_TEST

START_TEST(kernel_names_lose_their_least_telling_parts_first)
{
    const char *name = "void gemm<float, 128>(Params<float>, int)";
    expect_text(prof_report_fit(name, 60), name);
    expect_text(prof_report_fit(name, 38), "gemm<float, 128>(Params<float>, int)");
    expect_text(prof_report_fit(name, 20), "gemm<float, 128>");
    expect_text(prof_report_fit(name, 12), "gemm<f...28>");
    /* A bracket inside the template arguments is no argument list. */
    expect_text(prof_report_fit("void gemm<(Layout)0, 1>(int)", 21), "gemm<(Layout)0, 1>");
    expect_text(prof_report_fit("a_plain_c_name_of_some_length", 15), "a_plain_...ngth");
    expect_text(prof_report_fit("opencl_alloc (opencl.c:71) ... > step", 28),
                "opencl_alloc (o... > step");
    expect_text(prof_report_fit("operator()(int)", 13), "operator()");
    /* Where a function is stays while there is room for some of its name. */
    expect_text(prof_report_fit("backward of step (train.py:36)", 24), "backwar... (train.py:36)");
    expect_text(prof_report_fit("backward of step (train.py:36)", 20), "backward of...py:36)");
    expect_text(prof_report_fit_apart("void gemm_f32_f32_tn_n_tile32x32x8_stage3_kernel",
                                      "void gemm_f32_f32_tn_n_tile64x32x8_stage3_kernel", 30),
                "gemm_f32_f...tile32x32x8_st...");
    expect_text(prof_report_fit_apart("one_name_that_ends_in_a", "one_name_that_ends_in_b", 18),
                "one_na...ends_in_a");
    expect_text(prof_report_fit_apart("int f(\xc3\xa9)", "int f(\xc3\xa8)", 20), "int f(\xc3\xa9)");
    expect_text(prof_report_fit("f (a_file_with_a_long_name.c:1)", 20), "f (a_file_w...e.c:1)");
}
END_TEST

/* Names as PyTorch, CUTLASS and NCCL have them: what is left tells one kernel from the next. */
START_TEST(templates_keep_what_tells_them_apart)
{
    const char *fill = "void at::native::vectorized_elementwise_kernel<4, "
                       "at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, "
                       "at::native::FillFunctor<float>, std::array<char*, 1ul>)";
    expect_text(prof_report_fit(fill, 60), "vectorized_elementwise_kernel<FillFunctor<float>>");
    expect_text(prof_report_fit(fill, 44), "vectorized_elementwis...<FillFunctor<float>>");
    expect_text(prof_report_fit(fill, 24), "vectoriz...<FillFunctor>");
    expect_text(
        prof_report_fit("void vectorized_kernel<4, clamp_scalar_kernel_impl<float> >(int)", 24),
        "vect...<clamp...el_impl>");
    const char *sum =
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
        "at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()"
        "(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4, 4> >(int)";
    expect_text(prof_report_fit(sum, 44), "reduce_kernel<func_wrapper_t<sum_functor>>");
    expect_text(prof_report_fit(sum, 30), "reduce_kernel<sum_functor>");
    const char *copy = "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<"
                       "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}"
                       "::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&, "
                       "int const&)::{lambda(int)#1}>(int)";
    expect_text(prof_report_fit(copy, 50), "elementwise_kernel<direct_copy_kernel_cuda>");
    expect_text(prof_report_fit("void a::(anonymous namespace)::f<a::(anonymous namespace)::G<4u>, "
                                "int>(int)",
                                16),
                "a::f<G<4u>, int>");
    expect_text(prof_report_fit("void cutlass::device_kernel<cutlass::GemmUniversal<cute::tuple<int"
                                ">, cutlass::CollectiveMma<4, cute::tuple<cute::C<2> > >, "
                                "cutlass::PersistentScheduler> >(int)",
                                64),
                "device_kernel<GemmUniversal<CollectiveMma, PersistentScheduler>>");
    expect_text(prof_report_fit("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclArgs<4096ul>)", 40),
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    expect_text(
        prof_report_fit("std::vector<int, std::allocator<int> >::push_back(int const&)", 38),
        "vector<int, allocator<int>>::push_back");
    /* What is no such name is cut as any other text. */
    expect_text(prof_report_fit("step <3> of the 10 that were asked for", 20),
                "step <3> of...ed for");
    expect_text(prof_report_fit("</script><script>alert()</script>", 20), "</script><s...cript>");
    expect_text(prof_report_fit("f<g<h>, i, k, l, m, n, o, p", 16), "f<g<h>, ... o, p");
    expect_text(prof_report_fit("a::operator<<b, c, d, e, f, g>", 16), "a::opera...f, g>");
}
END_TEST

START_TEST(a_cut_never_splits_a_character_or_passes_its_width)
{
    const char *text = "\xe6\xa0\xb8\xe5\xbf\x83\xe3\x82\xab\xe3\x83\xbc\xe3\x83\x8d\xe3\x83\xab"
                       "e\xcc\x81\xf0\x9f\x9a\x80 and more of it";
    for (size_t cells = 8; cells < 40; cells++) {
        char *cut = prof_report_fit(text, cells);
        ck_assert_uint_le(prof_report_cells(cut), cells);
        uint32_t code;
        for (const char *p = cut; *p;) {
            size_t bytes = prof_report_utf8(p, strlen(p), &code);
            ck_assert_uint_gt(bytes, 0);
            p += bytes;
        }
        free(cut);
    }
    char *all = malloc(10001);
    memset(all, 'x', 10000);
    all[10000] = 0;
    char *cut = prof_report_cut(all, 50);
    ck_assert_uint_eq(strlen(cut), 50);
    free(cut);
    free(all);
}
END_TEST

static size_t lane_of(struct prof_report_lanes *lanes, int64_t start, int64_t end, bool nests)
{
    size_t number;
    bool fresh;
    ck_assert_ptr_nonnull(prof_report_lane(lanes, 5, start, end, nests, &number, &fresh));
    return number;
}

START_TEST(slices_that_cross_get_lanes_of_their_own)
{
    struct prof_report_lanes lanes = {0};
    ck_assert_uint_eq(lane_of(&lanes, 0, 100, true), 0);
    ck_assert_uint_eq(lane_of(&lanes, 10, 50, true), 0);  /* inside */
    ck_assert_uint_eq(lane_of(&lanes, 40, 60, true), 1);  /* crosses the inner one */
    ck_assert_uint_eq(lane_of(&lanes, 50, 100, true), 0); /* touches, ends with the outer */
    ck_assert_uint_eq(lane_of(&lanes, 70, 130, true), 1); /* crosses the outer */
    ck_assert_uint_eq(lane_of(&lanes, 100, 110, true), 0);
    prof_report_lanes_free(&lanes);
    lanes = (struct prof_report_lanes){0};
    ck_assert_uint_eq(lane_of(&lanes, 0, 100, false), 0);
    ck_assert_uint_eq(lane_of(&lanes, 10, 50, false), 1);
    ck_assert_uint_eq(lane_of(&lanes, 20, 30, false), 2);
    ck_assert_uint_eq(lane_of(&lanes, 60, 70, false), 1);
    ck_assert_uint_eq(lane_of(&lanes, 100, 100, false), 0);
    ck_assert_uint_eq(lane_of(&lanes, 110, INT64_MAX, false), 0);
    ck_assert_uint_eq(lane_of(&lanes, INT64_MAX, INT64_MAX, false),
                      0); /* times of a damaged file */
    prof_report_lanes_free(&lanes);
}
END_TEST

/* The arrow of a call that was forgotten begins on another track. */
START_TEST(calls_of_one_kind_keep_their_slots)
{
    struct prof_trace_call *table = calloc(PROF_TRACE_SLOTS, sizeof *table);
    uint64_t key;
    ck_assert_ptr_nonnull(table);
    for (int64_t id = 1; id <= PROF_TRACE_SLOTS; id++) {
        struct prof_trace_call *slot =
            prof_trace_call_slot(table, PROF_EVENT_TRANSFER, 5000000 + id, &key);
        ck_assert_uint_eq(slot->key, 0);
        slot->key = key;
    }
    free(table);
}
END_TEST

/* Ranges that nest, cross and lie apart, against asking each of them. */
START_TEST(projections_are_those_of_every_range_around_the_call)
{
    enum { RANGES = 400, CALLS = 2000 };
    static int64_t begin[RANGES], end[RANGES], found[RANGES][2];
    struct prof_trace_ranges ranges = {0};
    unsigned seed = 7;
    for (int i = 0; i < RANGES; i++) {
        seed = seed * 1664525u + 1013904223u;
        begin[i] = i * 10 + (int64_t)(seed >> 30);
        end[i] = i % 97 == 96 ? INT64_MAX : begin[i] + (seed >> 8) % (i % 5 ? 60 : 900);
        found[i][0] = found[i][1] = 0;
        ck_assert(prof_trace_ranges_add(
            &ranges, i % 2, &(struct prof_trace_range){.start_ns = begin[i], .end_ns = end[i]}));
    }
    for (int i = 0; i < CALLS; i++) {
        seed = seed * 1664525u + 1013904223u;
        int64_t call = i * 2 - (int64_t)(seed >> 8) % 500, thread = seed >> 31,
                stream = seed >> 30 & 1;
        ck_assert(prof_trace_ranges_work(&ranges, thread, call, stream, call + 5, call + 9));
        for (int k = (int)thread; k < RANGES; k += 2)
            found[k][stream] += begin[k] <= call && call < end[k];
    }
    prof_trace_ranges_sort(&ranges);
    size_t expected = 0;
    for (int k = 0; k < RANGES; k++)
        expected += (size_t)((found[k][0] > 0) + (found[k][1] > 0));
    ck_assert_uint_eq(ranges.projections.count, expected);
    for (size_t i = 0; i < ranges.projections.count; i++) {
        const struct prof_trace_projection *p = &ranges.projections.data[i];
        ck_assert_int_eq(p->operations, found[p->range][p->stream]);
        ck_assert(i == 0 || p[-1].start_ns <= p->start_ns);
        ck_assert(p->start_ns >= begin[p->range] + 5 && p->end_ns > p->start_ns);
    }
    prof_trace_ranges_free(&ranges);
}
END_TEST

START_TEST(every_statistic_is_described)
{
    size_t count = 0;
    for (const struct prof_report_table *stat = prof_report_stats; stat->name; stat++, count++) {
        ck_assert(*stat->title && *stat->help && stat->walk);
        ck_assert_ptr_eq(prof_report_stat_find(stat->name, strlen(stat->name)), stat);
        ck_assert_str_eq(prof_report_stats_name(count), stat->name);
        size_t columns = 0;
        for (const struct prof_report_column *a = stat->columns; a->key; a++, columns++) {
            ck_assert_str_eq(a->key, a->title);
            for (const struct prof_report_column *b = stat->columns; b != a; b++)
                ck_assert_msg(strcmp(a->key, b->key), "%s has %s twice", stat->name, a->key);
            /* The unit stands in the heading. */
            const char *unit = a->unit == PROF_UNIT_NS || a->unit == PROF_UNIT_MOMENT ? "(ns)"
                               : a->unit == PROF_UNIT_BYTES                           ? "(MB)"
                               : a->unit == PROF_UNIT_RATE                            ? "(MB/s)"
                               : a->unit == PROF_UNIT_SHARE                           ? "(%)"
                                                                                      : "";
            ck_assert_msg(strstr(a->title, unit), "%s: %s", stat->name, a->title);
        }
        ck_assert(columns > 1 && columns <= 40); /* what the text writer has room for */
    }
    ck_assert_uint_ge(count, 20);
    ck_assert_ptr_null(prof_report_stats_name(count));
    ck_assert_ptr_null(prof_report_stat_find("cuda", 4));
    ck_assert_int_eq(prof_report_stats_check("nvtx_sum,cuda_api_sum", NULL), PROF_OK);
    ck_assert_int_eq(prof_report_stats_check("nvtx_sum,", NULL), PROF_OK);
    ck_assert_int_eq(prof_report_stats_check("", NULL), PROF_NOTFOUND);
    ck_assert_int_eq(prof_report_stats_check("nvtx_sum,,um_sum", NULL), PROF_NOTFOUND);
}
END_TEST

/* A heading stands alone on a screen: "Per iteration" says of what neither how much nor which way.
 */
START_TEST(what_an_iteration_adds_is_named)
{
    size_t told = 0;
    for (const struct prof_report_table *const *t = prof_report_memory_tables; *t; t++)
        for (const struct prof_report_column *c = (*t)->columns; c->key; c++) {
            const char *step = strstr(c->title, " per iteration");
            told += step != NULL;
            ck_assert_msg(!step || step - c->title > 3, "%s.%s: %s", (*t)->name, c->key, c->title);
        }
    ck_assert_uint_eq(told, 3);
}
END_TEST

START_TEST(every_writer_and_column_is_described)
{
    for (const struct prof_report_writer *w = prof_report_writers; w->name; w++) {
        ck_assert_ptr_eq(prof_report_find(w->name), w);
        ck_assert_ptr_nonnull(w->write);
        ck_assert(w->extension[0] == '.' && *w->description);
    }
    ck_assert_ptr_null(prof_report_find("none"));
    ck_assert_ptr_null(prof_report_find(NULL));
    for (const struct prof_report_table *const *next = prof_report_tables; *next; next++) {
        const struct prof_report_table *t = *next;
        ck_assert(*t->title && *t->none && *t->help && (t->rows || t->rows_at) && t->row_bytes);
        for (const struct prof_report_column *a = t->columns; a->key; a++) {
            ck_assert(*a->title);
            ck_assert_msg((a->via ? a->via - 1 : a->offset) < t->row_bytes, "%s.%s", t->name,
                          a->key);
            /* The unit stands in the key: at its end, or before what is said of the value. */
            const char *unit = a->unit == PROF_UNIT_NS || a->unit == PROF_UNIT_MOMENT    ? "_ns"
                               : a->unit == PROF_UNIT_JOULES                             ? "_j"
                               : a->unit == PROF_UNIT_RATE || a->unit == PROF_UNIT_FLOPS ? "_per_s"
                                                                                         : "";
            ck_assert_msg(strstr(a->key, unit), "%s.%s", t->name, a->key);
            for (const struct prof_report_column *b = a + 1; b->key; b++)
                ck_assert_msg(strcmp(a->key, b->key), "%s.%s twice", t->name, a->key);
        }
    }
}
END_TEST

/* A table that is about no capture, in every format. */
struct sample {
    const char *name;
    int64_t count, bytes;
    bool on;
    int64_t grid[3];
};

static struct prof_report_value sample_grid(const struct prof_report_data *data, const void *row)
{
    (void)data;
    return (struct prof_report_value){.kind = PROF_VALUE_XYZ,
                                      .xyz = ((const struct sample *)row)->grid};
}

static const struct prof_report_column sample_columns[] = {
    STRING("name", "Name", NAME, 1, sample, name),
    INT64("count", "Count", COUNT, 4, sample, count),
    INT64("bytes", "Size", BYTES, 2, sample, bytes),
    BOOL("on", "On", 1, sample, on),
    COMPUTED("grid", "Grid", WORD, 3, sample_grid),
    INT64("note", "Note", NUMBER, 0, sample, bytes),
    {0},
};
static const struct prof_report_table samples_table = {
    .name = "samples",
    .title = "Samples",
    .none = "no samples",
    .columns = sample_columns,
    .row_bytes = sizeof(struct sample),
};

static char *write_samples(enum prof_report_format format, const struct sample *rows, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct prof_json json;
    struct prof_report_output output = {.format = format, .page = {.out = out}, .json = &json};
    prof_json_to_file(&json, out, 0);
    prof_json_object(&json, NULL);
    ck_assert_int_eq(prof_report_put_rows(&output, &samples_table, rows, count, NULL), PROF_OK);
    if (format == PROF_REPORT_JSON)
        ck_assert_int_eq(prof_json_finish(&json, NULL), PROF_OK);
    else
        prof_json_free(&json);
    fclose(out);
    return text;
}

START_TEST(rows_of_no_capture_are_written_in_every_format)
{
    static const struct sample rows[] = {{"a|b,c", 0, 2048, true, {4, 2, 1}},
                                         {"d", 0, PROF_UNKNOWN, false, {1, 1, 1}}};
    static const struct {
        enum prof_report_format format;
        const char *text, *none;
    } expected[] = {
        {PROF_REPORT_TEXT,
         "Samples\n  Name       Size  On   Grid\n  a|b,c  2.00 KiB  yes  4x2x1\n"
         "  d           n/a  no   1x1x1\n",
         "Samples: no samples\n"},
        {PROF_REPORT_CSV,
         "table,name,count,bytes,on,grid,note\r\nsamples,\"a|b,c\",0,2048,yes,4x2x1,2048\r\n"
         "samples,d,0,,no,1x1x1,\r\n\r\n",
         "table,name,count,bytes,on,grid,note\r\n\r\n"},
        {PROF_REPORT_JSON,
         "{\"samples\":{\"total_rows\":2,\"rows\":[{\"name\":\"a|b,c\",\"count\":0,"
         "\"bytes\":2048,\"on\":true,\"grid\":[4,2,1],\"note\":2048},{\"name\":\"d\","
         "\"count\":0,\"bytes\":null,\"on\":false,\"grid\":[1,1,1],\"note\":null}]}}",
         "{\"samples\":{\"total_rows\":0,\"rows\":[]}}"},
        {PROF_REPORT_MARKDOWN,
         "\n## Samples\n\n| Name | Count | Size | On | Grid |\n| :-- | --: | --: | :-- | :-- |\n"
         "| a\\|b,c | 0 | 2.00 KiB | yes | 4x2x1 |\n| d | 0 | n/a | no | 1x1x1 |\n",
         "\n## Samples\n\nno samples\n"},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char *text = write_samples(expected[i].format, rows, 2);
        char *none = write_samples(expected[i].format, rows, 0);
        ck_assert_str_eq(text, expected[i].text);
        ck_assert_str_eq(none, expected[i].none);
        free(text);
        free(none);
    }
}
END_TEST

static enum prof_status write_some(struct prof_capture *capture,
                                   const struct prof_report_options *options, FILE *out,
                                   struct prof_error *err)
{
    (void)capture;
    (void)options;
    for (int i = 0; i < 20000; i++)
        fputs("some text\n", out);
    return prof_report_flush(out, err);
}

static enum prof_status write_and_fail(struct prof_capture *capture,
                                       const struct prof_report_options *options, FILE *out,
                                       struct prof_error *err)
{
    write_some(capture, options, out, err);
    return prof_fail(err, PROF_CORRUPT, "broken on purpose");
}

START_TEST(saving_leaves_a_whole_file_or_the_old_one)
{
    const struct prof_report_writer good = {.name = "good", .write = write_some};
    const struct prof_report_writer bad = {.name = "bad", .write = write_and_fail};
    struct prof_error err = {0};
    struct stat st;
    char folder[] = "/tmp/check_report.XXXXXX", path[64], link[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    ck_assert_int_eq(prof_report_save(&bad, NULL, NULL, path, &err), PROF_CORRUPT);
    ck_assert_int_ne(stat(path, &st), 0);
    ck_assert_int_eq(prof_report_save(&good, NULL, NULL, path, &err), PROF_OK);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 200000);
    /* What is there stays on failure; its mode and a link to it stay on success. */
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(symlink("out", link), 0);
    ck_assert_int_eq(prof_report_save(&bad, NULL, NULL, link, &err), PROF_CORRUPT);
    ck_assert_int_eq(prof_report_save(&good, NULL, NULL, link, &err), PROF_OK);
    ck_assert(!lstat(link, &st) && S_ISLNK(st.st_mode));
    ck_assert(!stat(path, &st) && (st.st_mode & 0777) == 0600);
    unlink(link);
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0); /* no temporary file stayed */
}
END_TEST

static void abandon_and_end(int number)
{
    (void)number;
    prof_report_abandon();
    _exit(7);
}

static enum prof_status write_half(struct prof_capture *capture,
                                   const struct prof_report_options *options, FILE *out,
                                   struct prof_error *err)
{
    (void)capture, (void)options, (void)err;
    fprintf(out, "half");
    fflush(out);
    raise(SIGTERM);
    return PROF_OK;
}

START_TEST(an_interrupted_save_leaves_what_was_there)
{
    const struct prof_report_writer good = {.name = "good", .write = write_some};
    const struct prof_report_writer half = {.name = "half", .write = write_half};
    char folder[] = "/tmp/perfkit-report-XXXXXX", path[64];
    struct stat st;
    int ending;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out", folder);
    ck_assert_int_eq(prof_report_save(&good, NULL, NULL, path, NULL), PROF_OK);
    pid_t child = fork();
    if (!child) {
        signal(SIGTERM, abandon_and_end);
        prof_report_save(&half, NULL, NULL, path, NULL);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &ending, 0), child);
    ck_assert(WIFEXITED(ending) && WEXITSTATUS(ending) == 7);
    ck_assert(!stat(path, &st) && st.st_size == 200000);
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(a_name_that_ends_with_gz_is_compressed_once)
{
    const struct prof_report_writer plain = {.name = "plain", .write = write_some};
    const struct prof_report_writer packed = {
        .name = "packed", .extension = ".pb.gz", .write = write_some};
    char folder[] = "/tmp/perfkit-report-XXXXXX", path[64], bytes[200001];
    struct prof_error err = {0};
    struct stat st;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out.gz", folder);
    ck_assert_int_eq(prof_report_save(&packed, NULL, NULL, path, &err), PROF_OK);
    ck_assert(!stat(path, &st) && st.st_size == 200000);
    ck_assert_int_eq(prof_report_save(&plain, NULL, NULL, path, &err), PROF_OK);
    ck_assert(!stat(path, &st) && st.st_size < 20000);
    gzFile file = gzopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(gzread(file, bytes, sizeof bytes), 200000);
    gzclose(file);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(a_full_disk_and_a_missing_folder_are_told)
{
    const struct prof_report_writer good = {.name = "good", .write = write_some};
    struct prof_error err = {0};
    ck_assert_int_eq(prof_report_save(&good, NULL, NULL, "/dev/full", &err), PROF_FULL);
    ck_assert(strstr(err.message, "/dev/full: No space") != NULL);
    ck_assert_int_ne(prof_report_save(&good, NULL, NULL, "/nonexistent/x.html", &err), PROF_OK);
    ck_assert(strstr(err.message, "/nonexistent/x.html") != NULL);
    ck_assert_int_eq(prof_report_save(&good, NULL, NULL, "/tmp", &err), PROF_IO);
    ck_assert(strstr(err.message, "folder") != NULL);
    ck_assert_int_eq(prof_report_save(&good, NULL, NULL, "/dev/null", &err), PROF_OK);
}
END_TEST

/* A kernel is the place to start only where no fault costs more; lines are asked for once. */
START_TEST(next_steps_begin_with_what_costs_most)
{
    struct prof_info info = {.state = PROF_STATE_COMPLETE};
    struct prof_kernel_row kernel = {
        .name = "heavy", .share = 0.8, .wall_share = 0.2, .duration_ns = {.count = 1, .sum = 200}};
    struct prof_finding finding = {.rule = prof_rule_find("small-transfers"),
                                   .severity = PROF_SEVERITY_CRITICAL,
                                   .bound_ns = 700,
                                   .place_count = 1};
    struct prof_report_data data = {.info = &info,
                                    .trust = {.complete = true},
                                    .kernels = {.rows = &kernel, .count = 1, .kernels = 1},
                                    .findings = {.rows = &finding, .count = 1}};
    char steps[PROF_REPORT_STEPS][PROF_REPORT_STEP_BYTES];
    ck_assert_uint_eq(prof_report_next_steps(&data, steps), 2);
    ck_assert_str_eq(steps[0],
                     "perfkit run --stacks names the source lines behind small-transfers.");
    ck_assert_str_eq(steps[1], "Of the kernels heavy comes first: 80.0 % of their time, 20.0 % of "
                               "the wall time; small-transfers can bring more.");
    strcpy(finding.places[0].line, "upload (a.c:14)");
    finding.bound_ns = 100;
    ck_assert_uint_eq(prof_report_next_steps(&data, steps), 1);
    ck_assert_str_eq(steps[0], "heavy takes 80.0 % of the kernel time and 20.0 % of the wall time: "
                               "start with it.");
}
END_TEST

START_TEST(energy_has_its_unit_and_is_left_out_where_unknown)
{
    struct prof_utilisation_row row = {.energy = {39345, 39300, 39400}, .energy_ns = 62552000000};
    char text[80];
    prof_report_energy(&row, text, sizeof text);
    ck_assert_str_eq(text, "39.3 kJ, 629 W on average");
    ck_assert_str_eq(prof_joules(0.0123).text, "12.3 mJ");
    ck_assert_str_eq(prof_joules(645).text, "645 J");
    ck_assert_str_eq(prof_joules(NAN).text, "n/a");
    size_t columns = 0;
    for (const struct prof_report_table *const *next = prof_report_tables; *next; next++)
        for (const struct prof_report_column *c = (*next)->columns; c->key; c++)
            if (!strcmp(c->key, "energy_j")) {
                ck_assert(prof_report_hides_zero(c));
                columns++;
            }
    ck_assert_uint_ge(columns, 3); /* devices, ranges, iterations in the mean */
}
END_TEST

CHECK_MAIN("report", energy_has_its_unit_and_is_left_out_where_unknown,
           wide_and_combining_characters_count_as_terminals_draw_them,
           nothing_that_moves_the_cursor_survives_cleaning,
           other_work_is_named_where_little_is_analysed,
           kernel_names_lose_their_least_telling_parts_first, templates_keep_what_tells_them_apart,
           a_cut_never_splits_a_character_or_passes_its_width,
           slices_that_cross_get_lanes_of_their_own, calls_of_one_kind_keep_their_slots,
           projections_are_those_of_every_range_around_the_call, every_statistic_is_described,
           every_writer_and_column_is_described, rows_of_no_capture_are_written_in_every_format,
           what_an_iteration_adds_is_named, saving_leaves_a_whole_file_or_the_old_one,
           an_interrupted_save_leaves_what_was_there, a_name_that_ends_with_gz_is_compressed_once,
           a_full_disk_and_a_missing_folder_are_told, next_steps_begin_with_what_costs_most)
