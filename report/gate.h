/* What `perfkit gate`, `ab` and `diff` print about a comparison (prof_compare.h), one table of
 * writers looked up by name. As with the reports: names of the program are data, each format's
 * quoting has one owner, nothing here prints on its own. */
#ifndef PERFKIT_REPORT_GATE_H
#define PERFKIT_REPORT_GATE_H

#include <stdio.h>

#include "libprof/base/format.h"
#include "libprof/include/prof_compare.h"

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

/* ---- words --------------------------------------------------------------------------------- */

/* The words of a comparison that all its writers share; a text that there is no memory for is NULL,
 * and a note (prof_note) makes the writer fail. Texts with names of the program are as the
 * program gave them: each writer cleans and quotes. */

/* A value of the row's metric as people read it: "1.20 ms", "8.0 KiB", "12", "24.6 GB/s". */
struct prof_text prof_gate_value(const struct prof_compared *row, double value);

/* A mean of counts: whole in most programs; where it is not, two decimals are enough. */
struct prof_text prof_gate_count(double value);

/* 0.052 as "+5.2 %"; n/a for NaN. */
struct prof_text prof_gate_percent(double effect);
/* A size: "5.2 %", at most "10x". A few noisy runs make huge ones: those say only that nothing
 * would be found. */
struct prof_text prof_gate_slowdown(double effect);
#define PROF_GATE_MAX_SLOWDOWN 9 /* 10x: what could hide more says nothing of the program */
/* The same for a row of times; "new", "gone" where one side does not have it. */
struct prof_text prof_gate_time_change(const struct prof_compared *row);
/* How many of it an iteration has: "40 launches"; "40 -> 1 launch" where sums are compared; "" for
 * times of an iteration. */
struct prof_text prof_gate_events(const struct prof_compared *row);

/* The metric: "kernel gemm<128> (264,1,1)x(256,1,1) in step/forward", and for one that was found
 * under another name, what it was. Names are cut to `cells` columns; 0 = as they are. malloc'ed;
 * NULL = out of memory. */
char *prof_gate_subject(const struct prof_compared *row, size_t cells);

/* What became of it, in our own words only: "1.20 ms -> 1.26 ms, +5.2 % (95 %: +3.5 % to +6.8 %),
 * +60.0 us per iteration, 1 launch". malloc'ed. */
char *prof_gate_change(const struct prof_comparison *c, const struct prof_compared *row);
/* What values are of: "iteration", or "run" where nothing repeats. */
const char *prof_gate_unit(const struct prof_comparison *c);

/* Why it has its verdict, with the configuration's reason and the findings that appeared at its
 * place: "slower by more than noise explains; new finding there: pageable-copy". malloc'ed. */
char *prof_gate_why(const struct prof_comparison *comparison, const struct prof_compared *row);

/* A copy, malloc'ed; NULL stays NULL. */
char *prof_gate_copy(const char *text);
/* printf into a malloc'ed text; NULL and a note of PROF_NOMEM: out of memory. */
char *prof_gate_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A stream into memory; `end` gives its text, malloc'ed. NULL and a note of PROF_NOMEM: out of
 * memory. */
struct prof_gate_text {
    FILE *out;
    char *data;
    size_t size;
};
bool prof_gate_text_begin(struct prof_gate_text *text);
char *prof_gate_text_end(struct prof_gate_text *text);

/* ---- the whole (gate_text.c) ----------------------------------------------------------------- */

/* One line: "FAIL: 2 of 61 metrics are worse". malloc'ed. */
char *prof_gate_headline(const struct prof_gate_report *report);
/* How much slower or faster an iteration became, with its 95 % interval and the spread over runs;
 * NULL where times say nothing. A measurement, which leaves the verdict to the headline: "is
 * slower" only of what is decided, "no difference" only of what passes. */
char *prof_gate_answer(const struct prof_gate_report *report);

/* "NVTX range step: 100 steady iterations in the baseline, 98 in the candidate". malloc'ed. */
char *prof_gate_iteration(const struct prof_comparison *comparison);

/* "smallest slowdown that would be found: wall time 1.4 %, other times 2.6 % (median)".
 * malloc'ed. */
char *prof_gate_sensitivity(const struct prof_comparison *comparison);

/* ---- without a verdict: perfkit diff, the comparison of the HTML page ------------------------ */

/* Families of times, in the order in which they are listed, with their headings. */
enum { PROF_GATE_TIMES = 6 };
struct prof_gate_times {
    enum prof_metric_family family;
    const char *title;
};
extern const struct prof_gate_times prof_gate_times[PROF_GATE_TIMES];

/* How to read the times. */
extern const char prof_gate_times_note[];
/* What two runs can say. */
extern const char prof_gate_runs_note[];

/* A time that moved; a count or size that differs, inside the iterations or outside. */
bool prof_gate_time_moved(const struct prof_compared *row);
bool prof_gate_count_differs(const struct prof_compared *row);

/* Rows that a report for people lists, in groups. */
enum prof_gate_group {
    PROF_GATE_WORSE,   /* FAIL */
    PROF_GATE_UNSURE,  /* SUSPECT, ENV, UNDERPOWERED that are gated */
    PROF_GATE_WARNED,  /* worse, or probably so, where the configuration only warns */
    PROF_GATE_CHANGES, /* CHANGED, added, removed, renamed */
    PROF_GATE_BETTER,  /* IMPROVED */
    PROF_GATE_IGNORED,
    PROF_GATE_GROUPS,
};
const char *prof_gate_group_title(enum prof_gate_group group);

/* The group of a row; PROF_GATE_GROUPS = in none. */
enum prof_gate_group prof_gate_group(const struct prof_compared *row);

/* Rows of the group. */
size_t prof_gate_group_count(const struct prof_comparison *comparison, enum prof_gate_group group);

/* ---- writers --------------------------------------------------------------------------------- */

#define PROF_GATE_WRITER(name)                                                                     \
    enum prof_status name(const struct prof_gate_report *report, FILE *out, struct prof_error *err)

PROF_GATE_WRITER(prof_gate_write_text);
PROF_GATE_WRITER(prof_gate_write_markdown);
PROF_GATE_WRITER(prof_gate_write_junit);
PROF_GATE_WRITER(prof_gate_write_github);
PROF_GATE_WRITER(prof_gate_write_json);
PROF_GATE_WRITER(prof_diff_write_text);
PROF_GATE_WRITER(prof_diff_write_markdown);

#endif
