/* The scenes of counter_scene.h: SQL that is gathered, then run on a fixture. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/analysis/counter_scene.h"

static char sql[1 << 20];
static size_t used;
static struct prof_capture *capture;
static struct prof_counter_summary summary;

void scene_put(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    used += (size_t)vsnprintf(sql + used, sizeof sql - used, format, arguments);
    va_end(arguments);
    ck_assert_uint_lt(used, sizeof sql);
}

void counters_begin(void)
{
    used = 0;
    scene_put(
        "INSERT INTO counter_device(uuid, ordinal, chip, metric_set, interval) "
        "VALUES('GPU-1', 0, 'GH100', 'roofline', 100);"
        "INSERT INTO counter(counter_device, slot, name, unit, metric, kind, clock, peak) VALUES"
        "(1, 0, 'bytes', 'byte', 'dram__bytes.sum', 1, 1, %d),"
        "(1, 1, 'cycles', 'cycle', 'sm__cycles_elapsed.max', 2, NULL, NULL),"
        "(1, 2, 'level', 'percent', 'x.avg.pct', 3, NULL, NULL);",
        SCENE_PEAK);
}

void scene_put_work(const struct scene_work *work, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        long long start = work[i].start, duration = work[i].end - work[i].start;
        if (work[i].config)
            scene_put(
                "INSERT INTO kernel(start, duration, stream, config) VALUES(%lld, %lld, %d, %d);",
                start, duration, work[i].stream, work[i].config);
        else
            scene_put("INSERT INTO transfer(start, duration, stream, bytes, kind) "
                      "VALUES(%lld, %lld, %d, 1000000, 1);",
                      start, duration, work[i].stream);
    }
}

static double counted(const struct scene_work *work, size_t count, int64_t begin_ns, int64_t end_ns)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t from = work[i].start > begin_ns ? work[i].start : begin_ns;
        int64_t to = work[i].end < end_ns ? work[i].end : end_ns;
        sum += to > from ? (double)(to - from) * work[i].rate : 0;
    }
    return sum;
}

void scene_samples(int device, const struct scene_work *work, size_t count, int64_t begin_ns,
                   int64_t end_ns)
{
    for (int64_t at = begin_ns; at < end_ns; at += 100)
        scene_put("INSERT INTO counter_sample(counter_device, start, duration, c0, c1, c2) "
                  "VALUES(%d, %lld, 100, %.17g, %d, 50);",
                  device, (long long)at, counted(work, count, at, at + 100),
                  100 * SCENE_CYCLES_PER_NS);
    scene_put("INSERT INTO counter_burst(counter_device, start, duration, samples, others) "
              "VALUES(%d, %lld, %lld, %lld, 0);",
              device, (long long)begin_ns, (long long)(end_ns - begin_ns),
              (long long)((end_ns - begin_ns) / 100));
}

struct prof_capture *scene_open(void)
{
    return fixture_with_base(sql);
}

const struct prof_counter_summary *scene_summary(enum prof_group group)
{
    capture = scene_open();
    ck_ok(prof_counter_summary(capture, NULL, group, &summary, &err));
    return &summary;
}

void scene_close(void)
{
    prof_counter_summary_free(&summary);
    prof_close(capture);
}

const struct prof_counter_row *scene_row(const struct prof_counter_summary *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++) {
        if (!strcmp(s->rows[i].name, name))
            return &s->rows[i];
    }
    ck_abort_msg("there is no row of %s", name);
}
