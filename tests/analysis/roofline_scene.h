/* Kernels with known work under known roofs. `sql` has room for what is appended to it. */
#ifndef PERFKIT_TESTS_ANALYSIS_ROOFLINE_SCENE_H
#define PERFKIT_TESTS_ANALYSIS_ROOFLINE_SCENE_H

#include "tests/analysis/fixture.h"

/* Per ns: DRAM 1,000 bytes, L2 4,000 bytes, FP32 10,000 FLOP; a launch takes 1,000 ns; L2 of 1 MB.
 */
#define ROOFS                                                                                      \
    "UPDATE device SET l2_bytes = 1000000;"                                                        \
    "INSERT INTO ceiling(device, name, value, measured_at, how) VALUES"                            \
    "(1, 'dram_copy', 0.9e12, 1700000000, 'a copy'), (1, 'dram_read', 1e12, 1700000000, NULL),"    \
    "(1, 'l2_read', 4e12, 1700000000, NULL), (1, 'fp32', 1e13, 1700000000, NULL),"                 \
    "(1, 'htod_pinned', 1e10, 1700000000, NULL), (1, 'launch', 1000, 1700000000, NULL);"

/* A kernel of `config`, called at `call`. Times in ns. */
void roofline_kernel(char *sql, int config, int start, int duration, int call);

/* Work declared by thread 1 during [begin, begin + 100), in the domain "iota". */
void roofline_declare(char *sql, int id, int begin, const char *flop, const char *read,
                      const char *written);

/* The one point of a capture. */
struct prof_roofline_point roofline_point(const char *sql, const struct prof_filter *filter);

#endif
