/* Statistics by the host's stacks: what each line of the program cost on the device, which
 * stacks launched each kernel, and where calls are made. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/array.h"
#include "libprof/base/saturate.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_stack.h"
#include "report/stats_columns.h"

#define FUNCTION_CELLS 48 /* of a function's name where people read */
#define OWN_FRAMES 6      /* of the program, and ... */
#define LIBRARY_FRAMES 3  /* ... of libraries where it has none */

static double part_share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* "/src/model.c:42" */
static const char *line_text(struct prof_stat_text *text, const struct prof_frame *place)
{
    if (!place->file)
        return NULL;
    if (place->line == PROF_UNKNOWN)
        return place->file;
    return prof_stat_print(text, "%s:%lld", place->file, (long long)place->line);
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct line_line {
    struct prof_line_row row;
    double share;
    const char *function, *line, *module;
};

const struct prof_report_column prof_stat_stack_line_sum_columns[] = {
    STAT_REAL("Time (%)", SHARE, line_line, share),
    STAT_INT("Total Time (ns)", NS, line_line, row.total.device_ns),
    STAT_INT("Self Time (ns)", NS, line_line, row.self.device_ns),
    STAT_INT("Count", COUNT, line_line, row.total.count),
    STAT_INT("Self Count", COUNT, line_line, row.self.count),
    STAT_INT("Moved (MB)", BYTES, line_line, row.total.bytes),
    STAT_INT("Idle Before (ns)", NS, line_line, row.total.idle_ns),
    STAT_TEXT("Function", line_line, function),
    STAT_TEXT("Line", line_line, line),
    STAT_TEXT("Module", line_line, module),
    {0}};

/* Lines of the program itself before all else, in their order otherwise: a stack of a framework has
 * dozens of frames that are not the user's. */
PROF_ORDER(self_time_first, struct prof_line_row,
           PROF_COMPARE(prof_frame_nearness(x->place), prof_frame_nearness(y->place)),
           PROF_DESCENDING(total.device_ns), PROF_ASCENDING(place->number))

enum prof_status prof_stat_stack_line_sum(struct prof_report_row_walk *walk, struct prof_error *err)
{
    struct prof_line_sums sums;
    struct prof_stat_text text = {0};
    enum prof_status status = prof_line_sums(walk->capture, walk->filter, &sums, err);
    if (walk->brief && sums.count)
        qsort(sums.rows, sums.count, sizeof *sums.rows, self_time_first);
    for (size_t i = 0; i < sums.count; i++) {
        const struct prof_frame *place = sums.rows[i].place;
        struct line_line line = {.row = sums.rows[i],
                                 .share =
                                     part_share(sums.rows[i].total.device_ns, sums.all.device_ns),
                                 .function = place->function,
                                 .line = line_text(&text, place),
                                 .module = place->module};
        if (!walk->row(walk->user, &line))
            break;
    }
    free(text.text);
    prof_line_sums_free(&sums);
    return status;
}

/* ---- callers --------------------------------------------------------------------------------- */

struct caller_line {
    struct prof_caller_row row;
    double share, work_share;
    const char *stack;
};

const struct prof_report_column prof_stat_stack_kern_sum_columns[] = {
    STAT_REAL("Time (%)", SHARE, caller_line, share),
    STAT_REAL("Of Its Name (%)", SHARE, caller_line, work_share),
    STAT_INT("Total Time (ns)", NS, caller_line, row.cost.device_ns),
    STAT_INT("Count", COUNT, caller_line, row.cost.count),
    STAT_INT("Moved (MB)", BYTES, caller_line, row.cost.bytes),
    STAT_INT("Idle Before (ns)", NS, caller_line, row.cost.idle_ns),
    STAT_TEXT("Name", caller_line, row.work),
    STAT_TEXT("Called From", caller_line, stack),
    {0}};

static bool append_stack_text(struct prof_stat_text *text, size_t *used, const char *what)
{
    size_t length = strlen(what);
    if (*used + length + 1 > text->room) {
        size_t room = (*used + length + 1) * 2;
        char *grown = realloc(text->text, room);
        if (!grown)
            return false;
        text->text = grown;
        text->room = room;
    }
    memcpy(text->text + *used, what, length + 1);
    *used += length;
    return true;
}

static bool append_location(struct prof_stat_text *text, size_t *used,
                            const struct prof_frame *place, bool brief)
{
    struct prof_frame frame = *place;
    PROF_FREED char *name = brief ? prof_report_fit(place->function, FUNCTION_CELLS) : NULL;
    if (name)
        frame.function = name;
    PROF_FREED char *whole = prof_frame_text_new(&frame, "");
    return whole && (name || !brief) && append_stack_text(text, used, whole);
}

/* Which frames of a stack the text shows. */
struct shown_frames {
    enum prof_nearness farthest; /* but for the innermost one */
    size_t max;
};

static struct shown_frames choose_shown_frames(const struct prof_frame *places,
                                               const uint32_t *path, size_t depth, bool brief)
{
    struct shown_frames shown = {PROF_NEAR_RUNTIME, depth};
    for (size_t i = 0; brief && i < depth; i++) {
        enum prof_nearness near = prof_frame_nearness(&places[path[i]]);
        shown.farthest = near < shown.farthest ? near : shown.farthest;
    }
    if (brief)
        shown.max = shown.farthest <= PROF_NEAR_OWN_NAME ? OWN_FRAMES : LIBRARY_FRAMES;
    return shown;
}

/* "launch (a.c:5) < step (a.c:9) < main (a.c:20)". In brief it begins with the
 * frame in which callers differ, and what is not the program's own is left out behind it: "gemm
 * (libx.so) < ... < main (a.c:20)". False: out of memory. */
static bool path_text(const struct prof_frame *places, const uint32_t *path, size_t depth,
                      size_t first_shown, bool brief, struct prof_stat_text *text)
{
    struct shown_frames shown = choose_shown_frames(places, path, depth, brief);
    size_t used = 0, count = 0;
    bool gap = false, ok = true;
    for (size_t i = brief ? first_shown : 0; ok && i < depth; i++) {
        const struct prof_frame *place = &places[path[i]];
        bool first = !count && (place->named || !brief);
        if (count == shown.max || (!first && prof_frame_nearness(place) > shown.farthest)) {
            gap = count > 0;
            continue;
        }
        if (count++)
            ok = append_stack_text(text, &used, gap ? " < ... < " : " < ");
        ok = ok && append_location(text, &used, place, brief);
        gap = false;
    }
    return ok && (!gap || count < shown.max || append_stack_text(text, &used, " < ..."));
}

enum prof_status prof_stat_stack_kern_sum(struct prof_report_row_walk *walk, struct prof_error *err)
{
    struct prof_caller_sums sums;
    struct prof_stat_text text = {0};
    enum prof_status status = prof_caller_sums(walk->capture, walk->filter, &sums, err);
    walk->stackless = true;
    for (size_t i = 0; !status && i < sums.count; i++) {
        const struct prof_caller_row *row = &sums.rows[i];
        if (!path_text(sums.places, row->path, row->depth, row->told, walk->brief, &text))
            status = prof_out_of_memory(err);
        struct caller_line line = {.row = *row,
                                   .share = part_share(row->cost.device_ns, sums.all.device_ns),
                                   .work_share = part_share(row->cost.device_ns, row->work_ns),
                                   .stack = row->depth ? text.text : NULL};
        walk->stackless &= !line.stack;
        if (status || !walk->row(walk->user, &line))
            break;
    }
    free(text.text);
    prof_caller_sums_free(&sums);
    return status;
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct call_line {
    struct prof_call_row row;
    double share, average;
    const char *stack;
};

const struct prof_report_column prof_stat_stack_api_sum_columns[] = {
    STAT_REAL("Time (%)", SHARE, call_line, share),
    STAT_INT("Total Time (ns)", NS, call_line, row.total_ns),
    STAT_INT("Num Calls", COUNT, call_line, row.count),
    STAT_REAL("Avg (ns)", NS, call_line, average),
    STAT_INT("Max (ns)", NS, call_line, row.max_ns),
    STAT_TEXT("Name", call_line, row.name),
    STAT_TEXT("Called From", call_line, stack),
    {0}};

enum prof_status prof_stat_stack_api_sum(struct prof_report_row_walk *walk, struct prof_error *err)
{
    struct prof_call_sums sums;
    struct prof_stat_text text = {0};
    enum prof_status status = prof_call_sums(walk->capture, walk->filter, &sums, err);
    walk->stackless = true;
    for (size_t i = 0; !status && i < sums.count; i++) {
        const struct prof_call_row *row = &sums.rows[i];
        if (!path_text(sums.places, row->path, row->depth, row->told, walk->brief, &text))
            status = prof_out_of_memory(err);
        struct call_line line = {.row = *row,
                                 .share = part_share(row->total_ns, sums.total_ns),
                                 .average = (double)row->total_ns / (double)row->count,
                                 .stack = row->depth ? text.text : NULL};
        walk->stackless &= !line.stack;
        if (status || !walk->row(walk->user, &line))
            break;
    }
    free(text.text);
    prof_call_sums_free(&sums);
    return status;
}

/* ---- PyTorch's operators --------------------------------------------------------------------- */

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
    STAT_REAL("FLOP", RATIO, pytorch_line, row.flop),
    STAT_REAL("FLOP/s", FLOPS, pytorch_line, row.flop_rate),
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
                .flop = NAN,
                .flop_rate = NAN,
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
