/* PyTorch's operators by the line that called them forward. */
#include "libprof/base/saturate.h"
#include "libprof/include/prof_pytorch.h"
#include "report/stats_columns.h"

struct pytorch_line {
    struct prof_pytorch_row row;
    int64_t total_ns;
};

const struct prof_report_column prof_stat_pytorch_sum_columns[] = {
    STAT_REAL("Time (%)", SHARE, pytorch_line, row.share),
    STAT_INT("Total Time (ns)", NS, pytorch_line, total_ns),
    STAT_INT("Forward (ns)", NS, pytorch_line, row.forward_ns),
    STAT_INT("Backward (ns)", NS, pytorch_line, row.backward_ns),
    STAT_INT("Calls", COUNT, pytorch_line, row.calls),
    STAT_INT("Forward Ops", COUNT, pytorch_line, row.forward_operations),
    STAT_INT("Backward Ops", COUNT, pytorch_line, row.backward_operations),
    STAT_TEXT("Operator", pytorch_line, row.op),
    STAT_TEXT("Module", pytorch_line, row.module),
    STAT_TEXT("Function", pytorch_line, row.function),
    STAT_TEXT("File", pytorch_line, row.file),
    STAT_INT("Line", NUMBER, pytorch_line, row.line),
    {0}};

/* What could not be brought home is a row of its own: the sum is that of the operators. */
static bool unmatched(struct prof_report_row_walk *walk, const struct prof_pytorch_summary *all)
{
    struct pytorch_line line = {
        .row = {.op = "(backward, of an operator that is not known)",
                .line = PROF_UNKNOWN,
                .backward_ns = all->unmatched_ns,
                .backward_operations = all->unmatched_operations},
        .total_ns = all->unmatched_ns,
    };
    line.row.share = (double)line.total_ns / (double)walk->listed_ns;
    return walk->row(walk->user, &line);
}

enum prof_status prof_stat_pytorch_sum(struct prof_report_row_walk *walk, struct prof_error *err)
{
    struct prof_pytorch_summary all;
    enum prof_status status = prof_pytorch_summary(walk->capture, walk->filter, &all, err);
    bool more = true;
    walk->wall_ns = all.wall_ns;
    walk->listed_ns = prof_add(all.listed_ns, all.unmatched_ns);
    for (size_t i = 0; more && !status && i < all.count; i++) {
        struct pytorch_line line = {.row = all.rows[i]};
        line.total_ns = prof_add(line.row.forward_ns, line.row.backward_ns);
        line.row.share = (double)line.total_ns / (double)walk->listed_ns;
        more = walk->row(walk->user, &line);
    }
    if (more && !status && all.unmatched_operations)
        unmatched(walk, &all);
    prof_pytorch_summary_free(&all);
    return status;
}
