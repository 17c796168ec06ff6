/* The scenes of roofline_scene.h: SQL that is appended to the caller's text. */
#include <stdio.h>
#include <string.h>

#include "tests/analysis/roofline_scene.h"

void roofline_kernel(char *sql, int config, int start, int duration, int call)
{
    sprintf(sql + strlen(sql),
            "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, "
            "thread) VALUES(%d, %d, 1, %d, 5, %d, 2000, 1);",
            start, duration, config, start - call);
}

void roofline_declare(char *sql, int id, int begin, const char *flop, const char *read,
                      const char *written)
{
    sprintf(sql + strlen(sql),
            "INSERT INTO range(id, start, duration, thread, name, domain, depth) "
            "VALUES(%d, %d, 100, 1, 4, 9, 0);"
            "INSERT INTO work(range, flop, bytes_read, bytes_written) VALUES(%d, %s, %s, %s);",
            id, begin, id, flop, read, written);
}

struct prof_roofline_point roofline_point(const char *sql, const struct prof_filter *filter)
{
    struct prof_capture *c = fixture_with_base(sql);
    struct prof_roofline r;
    ck_ok(prof_roofline(c, filter, PROF_ROOFLINE_KERNELS, &r, &err));
    ck_assert_uint_eq(r.count, 1);
    struct prof_roofline_point p = r.points[0];
    prof_roofline_free(&r);
    prof_close(c);
    return p;
}
