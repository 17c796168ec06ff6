/* Folded stacks as lines: each distinct stack once, sorted by bytes. */
#ifndef PERFKIT_REPORT_FLAME_LINES_H
#define PERFKIT_REPORT_FLAME_LINES_H

#include "libprof/include/prof.h"

struct prof_flame_line {
    char *stack;    /* "range;range;call;kernel", clean */
    int64_t weight; /* more than 0 */
};

struct prof_flame_lines {
    struct prof_flame_line *rows;
    size_t count;
};

enum prof_status prof_flame_lines(struct prof_capture *capture, const struct prof_filter *filter,
                                  enum prof_flame_weight weight, struct prof_flame_lines *result,
                                  struct prof_error *err);
void prof_flame_lines_free(struct prof_flame_lines *result);

#endif
