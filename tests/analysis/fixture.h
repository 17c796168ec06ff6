/* Captures for tests: made through prof_store_create, filled with SQL, opened through prof.h. */
#ifndef PERFKIT_TESTS_ANALYSIS_FIXTURE_H
#define PERFKIT_TESTS_ANALYSIS_FIXTURE_H

#include "libprof/include/prof.h"
#include "tests/check_main.h"

/* A capture with the rows of `sql` (NULL = none), open for reading. Failures end the test. The file
 * is unlinked at once. */
struct prof_capture *fixture(const char *sql);

/* As above, with `base` first: one process (id 1, pid 100), threads 1 and 2, one GPU (device 1),
 * streams 1 and 2, strings 1..9 "alpha" .. "iota", launch configurations 1 (alpha, grid 4, block
 * 256), 2 (alpha, grid 8, block 256), 3 (beta), and capture.duration 1000000. */
struct prof_capture *fixture_with_base(const char *sql);

/* Run SQL on the fixture's file through a second connection, as ingest would. Only for fixtures
 * made by fixture_kept, whose file stays until fixture_remove. */
struct prof_capture *fixture_kept(const char *sql);
void fixture_write(const char *sql);
void fixture_remove(struct prof_capture *capture);

/* |a - b| small, or both NaN */
#define ck_near(a, b)                                                                              \
    do {                                                                                           \
        double a_ = (a), b_ = (b);                                                                 \
        ck_assert_msg((isnan(a_) && isnan(b_)) || fabs(a_ - b_) <= 1e-9 * (1 + fabs(b_)),          \
                      "%s is %.12g, not %.12g", #a, a_, b_);                                       \
    } while (0)

/* The call must succeed; prints its message otherwise. */
#define ck_ok(call)                                                                                \
    do {                                                                                           \
        struct prof_error err = {0};                                                               \
        ck_assert_msg((call) == PROF_OK, "%s: %s", #call, err.message);                            \
    } while (0)

#endif
