/* Reports: what `perfkit report` can write about a capture, one table of writers looked up by name.
 *
 *     const struct prof_report_writer *writer = prof_report_find("html");
 *     struct prof_report_options options = {.top = 20};
 *     status = prof_report_save(writer, capture, &options, "run.html", &err);   // a file, or
 *     status = writer->write(capture, &options, stdout, &err);                  // a stream
 *
 * Writers read through prof.h only. Names that come from the program under test are data: each
 * format's quoting has one owner (libprof/base/json.h, html.c, table_write.c, utf8.h for
 * terminals). Unknown is "n/a" in text and markdown, null in JSON, an empty field in CSV.
 * Nothing here prints on its own, exits, or looks at the terminal or the environment. */
#ifndef PERFKIT_REPORT_REPORT_H
#define PERFKIT_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libprof/base/error.h"
#include "libprof/include/prof.h"
#include "libprof/include/prof_compare.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many findings a report for people has; JSON has all. */
enum prof_report_findings {
    PROF_REPORT_FINDINGS_TOP, /* the first three */
    PROF_REPORT_FINDINGS_ALL, /* with what the rules could not judge */
    PROF_REPORT_FINDINGS_NONE,
};

/* A capture beside that of an HTML page; both borrowed. */
struct prof_report_other {
    struct prof_capture *capture;
    const struct prof_filter *filter; /* NULL = everything */
};

/* {0}, or NULL instead of it, is what most people want. */
struct prof_report_options {
    const struct prof_filter *filter; /* NULL = everything; borrowed */
    size_t top;   /* rows per table, for every writer that has tables; 0 = the writer's own choice:
                     about a screenful in text and markdown, all rows elsewhere */
    bool all;     /* text: every table, not only what fits on one screen */
    size_t width; /* text: columns of the terminal; 0 = 100; below 60 counts as 60 */
    size_t lines; /* text: of the one screen; 0 = any number */
    bool colour;  /* text: ANSI colour */
    enum prof_report_findings findings;
    enum prof_roofline_group roofline; /* what the roofline's figure draws */
    enum prof_flame_weight weight;     /* folded stacks: what they are weighed by */
    int64_t why;                       /* number of an iteration to explain; 0 = none */
    size_t *stacks;                    /* folded stacks: set to how many; NULL = not needed */
    const struct prof_report_other
        *others; /* HTML: to compare with, the baseline first; borrowed */
    size_t other_count;
    size_t events; /* HTML: of the timeline; more are merged; 0 = the writer's choice, 2 million */
    /* Called now and then by writers that walk the events: done of total (0 = not known). */
    void (*progress)(void *context, int64_t done, int64_t total);
    void *progress_context;
};

/* The summary formats, in the order in which help names them. */
enum prof_report_format {
    PROF_REPORT_TEXT,
    PROF_REPORT_JSON,
    PROF_REPORT_CSV,
    PROF_REPORT_MARKDOWN,
    /* Parts of the HTML page: its tables as data, and as markup. */
    PROF_REPORT_PAGE,
    PROF_REPORT_MARKUP,
};

/* Statistics: tables under the names and columns of nsys' reports (stats.c lists them). `names`:
 * separated by commas. Times are ns, sizes MB of 10^6 bytes, as the headings say; CSV and JSON have
 * all digits. PROF_NOTFOUND: an unknown name (prof_report_stats_check finds it without a
 * capture). */
enum prof_status prof_report_write_stats(struct prof_capture *capture,
                                         const struct prof_report_options *options,
                                         const char *names, enum prof_report_format format,
                                         FILE *out, struct prof_error *err);
enum prof_status prof_report_stats_check(const char *names, struct prof_error *err);
/* The name of the i-th statistic, NULL after the last. */
const char *prof_report_stats_name(size_t i);
/* The names with what they are for. */
enum prof_status prof_report_list_stats(enum prof_report_format format, FILE *out,
                                        struct prof_error *err);

/* What the ranks of a distributed run did, and what they did together: the tables whose names begin
 * with `rank`, `collectives` and `late_ranks` by themselves. */
enum prof_status prof_report_write_ranks(struct prof_capture *capture,
                                         const struct prof_report_options *options,
                                         enum prof_report_format format, FILE *out,
                                         struct prof_error *err);

/* Who allocates: memory by device, kind and call path, what is never freed, what lives briefly,
 * what did not fit, and the driver's own count. */
enum prof_status prof_report_write_memory(struct prof_capture *capture,
                                          const struct prof_report_options *options,
                                          enum prof_report_format format, FILE *out,
                                          struct prof_error *err);

/* The iterations one by one: what is usual, which are slow and why; with options->why only that
 * one. PROF_NOTFOUND: no iteration has that number. */
enum prof_status prof_report_write_iterations(struct prof_capture *capture,
                                              const struct prof_report_options *options,
                                              enum prof_report_format format, FILE *out,
                                              struct prof_error *err);

struct prof_report_writer {
    const char *name; /* "text", "json", "csv", "markdown", "chrome-trace", "flamegraph", "html" */
    const char *extension;   /* with its dot, as a file of this kind is usually called: ".html" */
    const char *description; /* one line, for help and documentation */
    bool summary; /* a --format: small, made for stdout; else made for a file of its own */
    /* Write the whole report to `out` (borrowed, not closed). The writer checks for write errors up
     * to and including fflush. PROF_IO, PROF_FULL (full disk), and what prof.h's analyses return.
     */
    enum prof_status (*write)(struct prof_capture *capture,
                              const struct prof_report_options *options, FILE *out,
                              struct prof_error *err);
};

/* All writers, ended by one without a name. Static. */
extern const struct prof_report_writer prof_report_writers[];

/* The writer of that name; NULL when there is none. */
const struct prof_report_writer *prof_report_find(const char *name);

/* Write into a temporary file beside `path` and rename it there, so that a full disk leaves no half
 * report; an existing report is replaced. A path that is no regular file (a pipe, /dev/stdout) is
 * written to directly. A path that ends with ".gz" is compressed. One save at a time in a process.
 */
enum prof_status prof_report_save(const struct prof_report_writer *writer,
                                  struct prof_capture *capture,
                                  const struct prof_report_options *options, const char *path,
                                  struct prof_error *err);

/* The same for what is not a report on one capture: `write` gets the context and the stream. */
enum prof_status prof_report_save_as(const char *path, void *context,
                                     enum prof_status (*write)(void *context, FILE *out,
                                                               struct prof_error *err),
                                     struct prof_error *err);

/* Remove the temporary file of a running save, if there is one: for the handler of a signal
 * that is about to end the process. Async-signal-safe. */
void prof_report_abandon(void);

/* The pictures of `--plots DIR`. Draws every figure as FOLDER/NAME.svg and FOLDER/NAME.png by
 * gnuplot; the folder is made unless it is there. A figure without data says "n/a" and why.
 * *written: how many pictures; those before an error stay. PROF_UNSUPPORTED: gnuplot is not
 * installed. */
enum prof_status prof_report_plots(struct prof_capture *capture,
                                   const struct prof_report_options *options, const char *folder,
                                   size_t *written, struct prof_error *err);

/* ---- the history of a baseline, as a page of charts (trend.c) -------------------------------- */

struct prof_trend_session {
    int64_t id, saved_s;        /* seconds since 1970 */
    const char *label, *commit; /* NULL = not known */
};

/* All borrowed. */
struct prof_trend {
    const char *name;
    const struct prof_trend_session *sessions; /* oldest first */
    size_t session_count;
    struct prof_runs runs; /* of these sessions, in their order: prof_run.session is the id */
};

/* For prof_report_save_as; `trend`: a struct prof_trend. */
enum prof_status prof_trend_write_html(void *trend, FILE *out, struct prof_error *err);

#ifdef __cplusplus
}
#endif

#endif
