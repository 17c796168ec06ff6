/* Which line of the program stands behind the worst places of findings. */
#ifndef PERFKIT_ANALYSIS_RULES_PLACE_LINES_H
#define PERFKIT_ANALYSIS_RULES_PLACE_LINES_H

#include "libprof/include/prof_findings.h"

/* Fill in `line` and `line_ends_it` of all places, where the capture has stacks. */
enum prof_status prof_place_lines(struct prof_capture *capture, struct prof_findings *findings,
                                  struct prof_error *err);

#endif
