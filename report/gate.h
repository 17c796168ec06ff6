/* What `perfkit gate`, `ab` and `diff` print about a comparison (prof_compare.h), one table of
 * writers looked up by name. As with the reports: names of the program are data, each format's
 * quoting has one owner, nothing here prints on its own. */
#ifndef PERFKIT_REPORT_GATE_H
#define PERFKIT_REPORT_GATE_H

#include <stdio.h>

#include "libprof/include/prof_compare.h"

#ifdef __cplusplus
extern "C" {
#endif

struct prof_gate_report {
    const struct prof_comparison *comparison;
    const char *base, *cand;  /* what they are, for people: "baseline main: 12 sessions, ..." */
    const char *base_name;    /* of the baseline; NULL = it is no baseline */
    const char *const *files; /* of the candidate; NULL entries = not kept */
    size_t file_count;
    const char *config;       /* path of the configuration; NULL = none */
    const char *const *notes; /* whole sentences to print: overrides that expired, ... */
    size_t note_count;
    bool judged; /* false: diff, which gives no verdict */
    bool strict;
    int exit_status;
    size_t top;   /* rows per list; 0 = the writer's choice */
    size_t width; /* text: columns, 0 = 100 */
    bool colour;  /* text */
};

struct prof_gate_writer {
    const char *name;
    enum prof_status (*write)(const struct prof_gate_report *report, FILE *out,
                              struct prof_error *err);
};

/* "text", "markdown", "junit", "github", "json"; ended by one without a name. Static. */
extern const struct prof_gate_writer prof_gate_writers[];
/* "text", "markdown", "json": of a comparison without a verdict. */
extern const struct prof_gate_writer prof_diff_writers[];

/* NULL when there is none. */
const struct prof_gate_writer *prof_gate_writer(const struct prof_gate_writer *table,
                                                const char *name);

/* Into a file, whole or not at all. */
enum prof_status prof_gate_save(const struct prof_gate_writer *writer,
                                const struct prof_gate_report *report, const char *path,
                                struct prof_error *err);

/* The stacks of two captures as `stack BASE CAND`, in ns of device time, the input of difffolded
 * flame graphs. is_empty: which of them has none, as all of the other then looks new or gone. */
enum prof_status prof_gate_flamegraph(struct prof_capture *base, struct prof_capture *cand,
                                      FILE *out, bool is_empty[2], struct prof_error *err);

#ifdef __cplusplus
}
#endif

#endif
