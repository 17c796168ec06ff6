/* The table of writers. */
#include <errno.h>
#include <string.h>

#include "report/writers.h"

const struct prof_report_writer prof_report_writers[] = {
    {"text", ".txt", "tables for people, on a terminal", true, prof_report_write_text},
    {"json", ".json", "every summary with exact numbers, for programs", true,
     prof_report_write_json},
    {"csv", ".csv", "the summary tables, for spreadsheets", true, prof_report_write_csv},
    {"markdown", ".md", "the summary tables, to paste into an issue", true,
     prof_report_write_markdown},
    {"html", ".html", "one self-contained page: tables, timeline, flame graph", false,
     prof_report_write_html},
    {"chrome-trace", ".json", "every event in Chrome's trace format, for Perfetto and the like",
     false, prof_report_write_chrome_trace},
    {"perfetto", ".pftrace", "the same in Perfetto's own format, for large captures", false,
     prof_report_write_perfetto},
    {"flamegraph", ".folded", "folded stacks of ranges, calls and kernels, weighted by device ns",
     false, prof_report_write_flamegraph},
    {"speedscope", ".speedscope.json", "the same stacks by time, bytes and number, for speedscope",
     false, prof_report_write_speedscope},
    {"pprof", ".pb.gz", "the same stacks in pprof's format", false, prof_report_write_pprof},
    {"prometheus", ".prom", "totals of kernels, transfers and devices, for Prometheus", false,
     prof_report_write_prometheus},
    {"roofline-svg", ".svg", "the roofline, drawn by gnuplot", false,
     prof_report_write_roofline_svg},
    {"roofline-png", ".png", "the roofline, drawn by gnuplot", false,
     prof_report_write_roofline_png},
    {"roofline-script", ".gp", "the gnuplot script of that figure, to be changed by hand", false,
     prof_report_write_roofline_script},
    {0},
};

const struct prof_report_writer *prof_report_find(const char *name)
{
    for (const struct prof_report_writer *writer = prof_report_writers; writer->name; writer++) {
        if (name && !strcmp(writer->name, name))
            return writer;
    }
    return NULL;
}

enum prof_status prof_report_flush(FILE *out, struct prof_error *err)
{
    if (fflush(out) || ferror(out)) {
        if (!errno)
            errno = EIO;
        return prof_fail_errno(err, PROF_IO, "cannot write the report");
    }
    return PROF_OK;
}
