/* NVTX ranges with the device work inside them, and the flame graph built on the same index. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/analysis/fixture.h"

/* Thread 1: alpha [100,1000) holds beta [200,400) and beta [500,600); thread 2: alpha [100,300).
 * Rows in order of their ends, as ingest writes them. */
static const char nested_sql[] =
    "INSERT INTO range(start, duration, thread, name, depth) VALUES"
    "(100, 200, 2, 1, 0), (200, 200, 1, 2, 1), (500, 100, 1, 2, 1), (100, 900, 1, 1, 0);"
    "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread) "
    "VALUES"
    "(5000, 10, 1, 1, 5, 4750, 5, 1),"           /* called at 250 on thread 1: beta in alpha */
    "(5100, 20, 1, 3, 5, 4700, 5, 1),"           /* called at 400: beta has just ended */
    "(5200, 40, 1, 1, 5, 5000, 5, 2),"           /* called at 200 on thread 2: alpha */
    "(5300, 80, 1, 1, 5, 3300, 5, 1),"           /* called at 2000: outside */
    "(5400, 160, 1, 1, NULL, NULL, NULL, NULL);" /* call unknown */
    "INSERT INTO transfer(start, duration, stream, bytes, kind, api_name, api_lead, thread) "
    "VALUES(6000, 7, 1, 4096, 1, 6, 5450, 1)"; /* called at 550: beta in alpha */

static const struct prof_range_row *row_of(const struct prof_range_summary *s, const char *name,
                                           const char *domain)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct prof_range_row *r = &s->rows[i];
        bool same = domain ? r->domain && !strcmp(r->domain, domain) : !r->domain;
        if (r->name && !strcmp(r->name, name) && same)
            return r;
    }
    ck_abort_msg("no range %s", name);
    return NULL;
}

START_TEST(nested_ranges_and_their_work)
{
    struct prof_capture *c = fixture_with_base(nested_sql);
    struct prof_range_summary s;
    ck_ok(prof_range_summary(c, NULL, &s, &err));
    ck_assert_uint_eq(s.count, 2);
    ck_assert_int_eq(s.ranges, 4);
    const struct prof_range_row *a = row_of(&s, "alpha", NULL), *b = row_of(&s, "beta", NULL);
    ck_assert_int_eq(a->style, PROF_RANGE_PUSH_POP);
    ck_assert_int_eq(a->duration_ns.sum, 1100);
    ck_assert_int_eq(a->self_ns, 800);
    ck_assert_int_eq(a->kernels, 3);
    ck_assert_int_eq(a->kernel_ns, 70);
    ck_assert_int_eq(a->memcpys + a->memsets, 1);
    ck_assert_int_eq(a->memcpy_memset_ns, 7);
    ck_assert_int_eq(b->duration_ns.sum, 300);
    ck_assert_int_eq(b->self_ns, 300);
    ck_assert_int_eq(b->kernels, 1);
    ck_assert_int_eq(b->kernel_ns, 10);
    ck_assert_int_eq(b->memcpys + b->memsets, 1);
    ck_near(a->share, 1100.0 / 1400);
    prof_range_summary_free(&s);
    ck_ok(prof_range_summary(c, &(struct prof_filter){.thread = 2}, &s, &err));
    ck_assert_int_eq(s.ranges, 1);
    ck_assert_int_eq(s.rows[0].kernel_ns, 40);
    prof_range_summary_free(&s);
    ck_ok(prof_range_summary(c, &(struct prof_filter){.begin_ns = 450}, &s, &err));
    ck_assert_int_eq(s.ranges, 1);
    prof_range_summary_free(&s);
    ck_ok(prof_range_summary(c, &(struct prof_filter){.kernel = "beta"}, &s, &err));
    ck_assert_int_eq(row_of(&s, "alpha", NULL)->kernels, 1);
    ck_assert_int_eq(row_of(&s, "alpha", NULL)->memcpys, 0);
    prof_range_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(open_ranges_enclose_to_the_end)
{
    struct prof_capture *c =
        fixture_with_base("INSERT INTO range(start, duration, thread, name, depth) VALUES"
                          "(300, 50, 1, 3, 2), (100, NULL, 1, 1, 0), (200, NULL, 1, 2, 1);"
                          "INSERT INTO kernel(start, duration, stream, config, api_lead, thread) "
                          "VALUES(900000, 10, 1, 1, 100, 1)");
    struct prof_range_summary s;
    ck_ok(prof_range_summary(c, NULL, &s, &err));
    ck_assert_int_eq(s.open, 2);
    ck_assert_int_eq(row_of(&s, "alpha", NULL)->open, 1);
    ck_assert_int_eq(row_of(&s, "alpha", NULL)->kernels, 1);
    ck_assert_int_eq(row_of(&s, "beta", NULL)->kernels, 1);
    ck_assert_int_eq(row_of(&s, "gamma", NULL)->kernels, 0);
    ck_assert_int_eq(row_of(&s, "alpha", NULL)->self_ns, 0);
    prof_range_summary_free(&s);
    prof_close(c);
}
END_TEST

START_TEST(domains_and_styles_are_apart)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO range(start, duration, thread, name, domain, depth) VALUES"
        "(100, 100, 1, 1, NULL, 0), (150, 100, 1, 1, 9, 0),"          /* cross: other domain */
        "(120, 200, 1, 1, NULL, NULL), (130, 100, 1, 1, NULL, NULL)," /* start/end, nested */
        "(310, 100, 1, 1, NULL, NULL);"                               /* and crossing */
        "INSERT INTO kernel(start, duration, stream, config, api_lead, thread) "
        "VALUES(1000, 10, 1, 1, 840, 1)"); /* called at 160: in both domains, two start/end */
    struct prof_range_summary s;
    ck_ok(prof_range_summary(c, NULL, &s, &err));
    ck_assert_uint_eq(s.count, 3);
    ck_assert_int_eq(row_of(&s, "alpha", "iota")->kernels, 1);
    for (size_t i = 0; i < s.count; i++) {
        if (s.rows[i].style != PROF_RANGE_START_END)
            continue;
        ck_assert_int_eq(s.rows[i].duration_ns.count, 3);
        ck_assert_int_eq(s.rows[i].kernels, 2); /* once per range around it */
    }
    prof_range_summary_free(&s);
    prof_close(c);
}
END_TEST

/* Random nested ranges and calls: kernels per name against a plain search. */
START_TEST(attribution_matches_a_plain_search)
{
    enum { RANGES = 300, KERNELS = 400 };
    static struct {
        int begin, end, thread, name;
    } r[RANGES];
    static int call[KERNELS], thread[KERNELS];
    srand(3);
    for (int round = 0; round < 10; round++) {
        FILE *out;
        char *sql = NULL;
        size_t size;
        ck_assert_ptr_nonnull(out = open_memstream(&sql, &size));
        for (int i = 0; i < RANGES; i++) {
            r[i].begin = rand() % 2000;
            r[i].end = r[i].begin + 1 + rand() % (round < 5 ? 40 : 600);
            r[i].thread = 1 + rand() % 2;
            r[i].name = 1 + rand() % 4;
            fprintf(out, "INSERT INTO range(start, duration, thread, name) VALUES(%d, %d, %d, %d);",
                    r[i].begin, r[i].end - r[i].begin, r[i].thread, r[i].name);
        }
        for (int k = 0; k < KERNELS; k++) {
            call[k] = rand() % 2500;
            thread[k] = 1 + rand() % 2;
            fprintf(out,
                    "INSERT INTO kernel(start, duration, stream, config, api_lead, thread) "
                    "VALUES(%d, 3, 1, 1, %d, %d);",
                    call[k] + 100, 100, thread[k]);
        }
        fclose(out);
        struct prof_capture *c = fixture_with_base(sql);
        free(sql);
        struct prof_range_summary s;
        ck_ok(prof_range_summary(c, NULL, &s, &err));
        static const char *const names[] = {NULL, "alpha", "beta", "gamma", "delta"};
        for (int name = 1; name <= 4; name++) {
            int64_t expected = 0;
            for (int k = 0; k < KERNELS; k++)
                for (int i = 0; i < RANGES; i++)
                    expected += r[i].name == name && r[i].thread == thread[k] &&
                                r[i].begin <= call[k] && call[k] < r[i].end;
            ck_assert_int_eq(row_of(&s, names[name], NULL)->kernels, expected);
            ck_assert_int_eq(row_of(&s, names[name], NULL)->kernel_ns, expected * 3);
        }
        prof_range_summary_free(&s);
        prof_close(c);
    }
}
END_TEST

/* All folded lines, "path weight", sorted by path; one string. */
static char *fold(const struct prof_flame *flame)
{
    static char text[4096];
    char *lines[64], path[512];
    size_t count = 0;
    for (size_t i = 0; i < flame->count; i++) {
        if (i)
            ck_assert_uint_lt(flame->nodes[i].parent, i);
        if (!flame->nodes[i].self)
            continue;
        prof_flame_path(flame, i, path, sizeof path);
        ck_assert_int_gt(asprintf(&lines[count], "%s %lld", path, (long long)flame->nodes[i].self),
                         0);
        count++;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            if (strcmp(lines[j], lines[i]) < 0) {
                char *swap = lines[i];
                lines[i] = lines[j];
                lines[j] = swap;
            }
    text[0] = 0;
    for (size_t i = 0; i < count; i++) {
        strcat(strcat(text, lines[i]), "\n");
        free(lines[i]);
    }
    return text;
}

START_TEST(stacks_are_folded)
{
    struct prof_capture *c = fixture_with_base(nested_sql);
    struct prof_flame f;
    ck_ok(prof_flame(c, NULL, PROF_FLAME_DEVICE_NS, &f, &err));
    ck_assert_str_eq(fold(&f), "alpha 160\n"
                               "alpha;beta;epsilon;alpha 10\n"
                               "alpha;beta;zeta;HtoD 7\n"
                               "alpha;epsilon;alpha 40\n"
                               "alpha;epsilon;beta 20\n"
                               "epsilon;alpha 80\n");
    ck_assert_int_eq(f.nodes[0].total, 317);
    ck_assert_int_eq(f.nodes[0].self, 0);
    prof_flame_free(&f);
    ck_ok(prof_flame(c, NULL, PROF_FLAME_BYTES, &f, &err));
    ck_assert_str_eq(fold(&f), "alpha;beta;zeta;HtoD 4096\n");
    prof_flame_free(&f);
    ck_ok(prof_flame(c, NULL, PROF_FLAME_COUNT, &f, &err));
    ck_assert_int_eq(f.nodes[0].total, 6);
    prof_flame_free(&f);
    ck_ok(prof_flame(c, &(struct prof_filter){.kernel = "beta"}, PROF_FLAME_KERNEL_NS, &f, &err));
    ck_assert_str_eq(fold(&f), "alpha;epsilon;beta 20\n");
    prof_flame_free(&f);
    prof_close(c);
}
END_TEST

START_TEST(names_cannot_break_the_folded_format)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO string(id, value) VALUES(30, 'a;b' || char(10) || 'c d');"
        "INSERT INTO launch_config(id, name) VALUES(30, 30);"
        "INSERT INTO kernel(start, duration, stream, config) VALUES(1, 2, 1, 30)");
    struct prof_flame f;
    ck_ok(prof_flame(c, NULL, PROF_FLAME_DEVICE_NS, &f, &err));
    ck_assert_str_eq(fold(&f), "a:b c d 2\n");
    char small[4];
    ck_assert_uint_eq(prof_flame_path(&f, 1, small, sizeof small), 7);
    ck_assert_str_eq(small, "a:b");
    prof_flame_free(&f);
    prof_close(c);
}
END_TEST

/* A graph's kernels belong to the ranges around the call that launched the graph. */
START_TEST(graph_kernels_take_the_call_of_their_launch)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO range(start, duration, thread, name, depth) VALUES(100, 100, 2, 1, 0);"
        "INSERT INTO api_call(start, duration, thread, name, correlation) VALUES(150, 5, 2, 7, 77);"
        "INSERT INTO kernel(start, duration, stream, config, correlation, graph_node) "
        "VALUES(1000, 10, 1, 1, 77, 1), (1010, 20, 1, 3, 77, 2), (1030, 1, 1, 3, 78, 3)");
    struct prof_range_summary s;
    struct prof_flame f;
    ck_ok(prof_range_summary(c, NULL, &s, &err));
    ck_assert_int_eq(s.rows[0].kernels, 2);
    ck_assert_int_eq(s.rows[0].kernel_ns, 30);
    prof_range_summary_free(&s);
    ck_ok(prof_flame(c, NULL, PROF_FLAME_DEVICE_NS, &f, &err));
    ck_assert_str_eq(fold(&f), "alpha;eta;alpha 10\nalpha;eta;beta 20\nbeta 1\n");
    prof_flame_free(&f);
    prof_close(c);
}
END_TEST

START_TEST(several_processes_are_told_apart)
{
    struct prof_capture *c = fixture_with_base(
        "INSERT INTO process(pid, command) VALUES(200, 'child');"
        "INSERT INTO stream(process, device) VALUES(2, 1);"
        "INSERT INTO kernel(start, duration, stream, config) VALUES(1, 2, 1, 1), (3, 4, 3, 1)");
    struct prof_flame f;
    ck_ok(prof_flame(c, NULL, PROF_FLAME_DEVICE_NS, &f, &err));
    ck_assert_str_eq(fold(&f), "./a.out;alpha 2\nchild;alpha 4\n");
    prof_flame_free(&f);
    prof_close(c);
}
END_TEST

CHECK_MAIN("ranges", nested_ranges_and_their_work, open_ranges_enclose_to_the_end,
           domains_and_styles_are_apart, attribution_matches_a_plain_search, stacks_are_folded,
           names_cannot_break_the_folded_format, graph_kernels_take_the_call_of_their_launch,
           several_processes_are_told_apart)
