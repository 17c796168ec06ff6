/* The filter of a report in words, since every figure depends on it. */
#ifndef PERFKIT_REPORT_FILTER_H
#define PERFKIT_REPORT_FILTER_H

#include "libprof/base/json.h"
#include "libprof/include/prof.h"

/* "from 1.00 s to 2.00 s, process 4711, GPU 0, kernels with \"gemm\"", cut to `size`; "" when
 * everything is reported. Names of the program are clean (utf8.h). */
void prof_report_filter_words(const struct prof_capture *capture, const struct prof_filter *filter,
                              char *out, size_t size);

/* The member "filter" of our JSON. NULL = everything. */
void prof_report_json_filter(struct prof_json *json, const struct prof_filter *filter);

#endif
