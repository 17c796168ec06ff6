/* prof.h: read a perfkit capture and run the analyses over it.
 *
 *     struct prof_capture *capture;
 *     struct prof_error err = {0};
 *     if (prof_open("run.sqlite", &capture, &err))
 *         ... err.message says what is wrong and how to fix it ...
 *     struct prof_kernel_summary kernels;
 *     if (!prof_kernel_summary(capture, NULL, PROF_BY_NAME, &kernels, &err))
 *         for (size_t i = 0; i < kernels.count; i++)
 *             ... kernels.rows[i].name, kernels.rows[i].duration_ns.sum ...
 *     prof_kernel_summary_free(&kernels);
 *     prof_close(capture);
 *
 * Each family of results has a header of its own; this one brings those below. Beside it, to be
 * included by name: prof_compare.h, prof_counters.h, prof_cpu.h, prof_stack.h,
 * prof_events.h, prof_memory.h, prof_findings.h, prof_stack.h, prof_ranks.h, prof_stack.h,
 * prof_stack.h, prof_stats.h, prof_findings.h.
 *
 * Conventions, for all of them:
 * - Times are nanoseconds since the start of the capture (CLOCK_MONOTONIC; prof_info gives the wall
 *   clock of that start), sizes are bytes, rates are bytes per second, shares are 0..1.
 * - Unknown is PROF_UNKNOWN in int64_t, NaN in double, NULL in pointers, 0 in ids. It is never 0 of
 *   a quantity: print it as "n/a" (text) or null (JSON).
 * - Ids are the row numbers of the capture file, from 1, unique within their table and file.
 * - Functions that fail return a status other than PROF_OK and fill *err (NULL allowed). Their
 *   result is then empty and may be freed all the same.
 * - Results belong to the caller and are freed by the function of the same name with _free, which
 *   accepts an empty one. Every const char * and const struct * in a result belongs to the capture
 *   and lives until prof_close. Free results before the capture.
 * - A capture and what came from it is used by one thread at a time; different captures (also of
 *   the same file) may be used by different threads at once.
 * - Texts are bytes as the program gave them, normally UTF-8, NUL-terminated.
 * - A capture that is still being written may be read; each call sees one consistent state, two
 *   calls may see two. No call keeps a transaction open, except a cursor until it is closed.
 */
#ifndef PERFKIT_PROF_H
#define PERFKIT_PROF_H

#include "libprof/include/prof_summaries.h"
#include "libprof/include/prof_memory.h"
#include "libprof/include/prof_capture.h"
#include "libprof/include/prof_roofline.h"
#include "libprof/include/prof_counters.h"
#include "libprof/include/prof_events.h"
#include "libprof/include/prof_findings.h"
#include "libprof/include/prof_stack.h"

#endif
