/* Folded stacks for flamegraph.pl, speedscope and their kin: "range;range;call;kernel NANOSECONDS",
 * one line per distinct stack, sorted by bytes so that two captures can be compared with diff. */
#include <inttypes.h>

#include "report/flame_lines.h"
#include "report/writers.h"

enum prof_status prof_report_write_flamegraph(struct prof_capture *capture,
                                              const struct prof_report_options *options, FILE *out,
                                              struct prof_error *err)
{
    struct prof_flame_lines lines;
    enum prof_status status =
        prof_flame_lines(capture, options ? options->filter : NULL,
                         options ? options->weight : PROF_FLAME_DEVICE_NS, &lines, err);
    if (status)
        return status;
    if (options && options->stacks)
        *options->stacks = lines.count;
    for (size_t i = 0; i < lines.count; i++)
        fprintf(out, "%s %" PRId64 "\n", lines.rows[i].stack, lines.rows[i].weight);
    prof_flame_lines_free(&lines);
    return prof_report_flush(out, err);
}
