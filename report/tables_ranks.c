/* The tables about the ranks of a distributed run, the sentences that go with them wherever they
 * are shown, and the report about ranks alone (perfkit report --ranks). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libprof/base/array.h"
#include "libprof/base/saturate.h"
#include "libprof/base/utf8.h"
#include "report/columns.h"
#include "report/writers.h"

/* ---- sentences ------------------------------------------------------------------------------- */

/* "rank 3", or "process 1234" without one. */
static struct prof_text rank_words(const struct prof_rank_row *row)
{
    struct prof_text text;
    snprintf(text.text, sizeof text.text, row->rank == PROF_UNKNOWN ? "process %lld" : "rank %lld",
             (long long)(row->rank == PROF_UNKNOWN ? row->pid : row->rank));
    return text;
}

#define LEAST_LATE 1e-4 /* of the time: less is not worth a sentence */

static const struct prof_rank_row *worst_rank(const struct prof_ranks *ranks)
{
    const struct prof_rank_row *worst = NULL;
    for (size_t i = 0; i < ranks->count; i++) {
        const struct prof_rank_row *row = &ranks->rows[i];
        if ((double)row->last_ns > LEAST_LATE * (double)row->window_ns &&
            (!worst || row->last_ns > worst->last_ns))
            worst = row;
    }
    return worst;
}

static void describe_cause(const struct prof_rank_row *row, char *out, size_t size)
{
    PROF_FREED char *kernel = prof_report_cut(row->slow_kernel, 40);
    out[0] = '\0';
    if (row->cause == PROF_CAUSE_COMPUTE && row->slow_kernel)
        snprintf(out, size, ", because its kernels took longer (%s: %s more than the others)",
                 kernel ? kernel : "", prof_duration_ns(row->slow_kernel_ns).text);
    else if (row->cause == PROF_CAUSE_COMPUTE)
        snprintf(out, size, ", because its kernels took longer");
    else if (row->cause == PROF_CAUSE_COPY)
        snprintf(out, size, ", because its memcpys took longer");
    else if (row->cause == PROF_CAUSE_HOST)
        snprintf(out, size, ", because its device waited for the host");
}

static bool note_worst(const struct prof_ranks *ranks, char *out, size_t size)
{
    const struct prof_rank_row *worst = worst_rank(ranks);
    char cause[200];
    if (!worst)
        return false;
    describe_cause(worst, cause, sizeof cause);
    snprintf(out, size, "%s came last to %s of %s collectives, %s after the others in all%s",
             rank_words(worst).text, prof_count(worst->last_count).text,
             prof_count(worst->analysed).text, prof_duration_ns(worst->last_ns).text, cause);
    return true;
}

/* ---- whose kernels take longest ---------------------------------------------------------------
 * Where ranks wait in sends and receives, as the stages of a pipeline do, none is late for what all
 * do together: then the rank that computes longest is what they wait for. */

#define UNEVEN 0.05 /* of the iterations, what the longest takes above the median rank */
#define NAMED_RANKS 3

struct longest_ranks {
    int64_t *times; /* that each rank was the one, by index of ranks->rows */
    int64_t iterations, more_ns, all_ns;
};

static void add_longest(struct longest_ranks *longest, const struct prof_rank_iteration *rows,
                        size_t count, int64_t *values)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        values[i] = rows[i].compute_ns;
        most = rows[i].compute_ns > rows[most].compute_ns ? i : most;
    }
    qsort(values, count, sizeof *values, prof_ascending_int64);
    longest->times[rows[most].rank]++;
    longest->iterations++;
    longest->more_ns = prof_add(longest->more_ns, rows[most].compute_ns - values[(count - 1) / 2]);
    longest->all_ns = prof_add(longest->all_ns, rows[most].duration_ns);
}

static void name_longest(const struct prof_ranks *ranks, struct longest_ranks *longest, char *out,
                         size_t size)
{
    size_t different = 0;
    for (size_t i = 0; i < ranks->count; i++)
        different += longest->times[i] > 0;
    snprintf(out, size,
             "the rank that computes longest needs %s more than the median rank in all (%.1f %% "
             "of the iteration time): it is",
             prof_duration_ns(longest->more_ns).text,
             100 * (double)longest->more_ns / (double)longest->all_ns);
    for (size_t k = 0; k < different && k < NAMED_RANKS; k++) {
        size_t most = 0;
        for (size_t i = 0; i < ranks->count; i++)
            most = longest->times[i] > longest->times[most] ? i : most;
        prof_append(out, size, "%s %s in %s", k ? "," : "", rank_words(&ranks->rows[most]).text,
                    prof_count(longest->times[most]).text);
        longest->times[most] = 0;
    }
    if (different > NAMED_RANKS)
        prof_append(out, size, ", %s others in the rest",
                    prof_count((int64_t)(different - NAMED_RANKS)).text);
    prof_append(out, size, " of %s iterations", prof_count(longest->iterations).text);
}

static bool note_longest(const struct prof_ranks *ranks, char *out, size_t size)
{
    struct longest_ranks longest = {.times = calloc(ranks->count + 1, sizeof *longest.times)};
    PROF_FREED int64_t *values = calloc(ranks->count + 1, sizeof *values);
    for (size_t i = 0, end; longest.times && values && i < ranks->iteration_count; i = end) {
        for (end = i; end < ranks->iteration_count &&
                      ranks->iterations[end].iteration == ranks->iterations[i].iteration;)
            end++;
        if (end - i == ranks->count)
            add_longest(&longest, &ranks->iterations[i], end - i, values);
    }
    const struct prof_rank_row *worst = worst_rank(ranks);
    bool said = worst && worst->cause == PROF_CAUSE_COMPUTE && longest.times &&
                longest.times[worst - ranks->rows] == longest.iterations;
    bool uneven =
        !said && longest.all_ns > 0 && (double)longest.more_ns >= UNEVEN * (double)longest.all_ns;
    if (uneven)
        name_longest(ranks, &longest, out, size);
    free(longest.times);
    return uneven;
}

/* What the tables do not say by themselves: which rank holds the others up, what could not be
 * matched, which ranks are missing. Names inside are cleaned and shortened. */
static void describe_ranks(const struct prof_report_data *data, struct prof_report_notes *notes)
{
    const struct prof_ranks *ranks = &data->ranks;
    size_t size = sizeof notes->text[0];
    notes->count = ranks->count > 1 && note_worst(ranks, notes->text[0], size);
    notes->count += ranks->count > 1 && note_longest(ranks, notes->text[notes->count], size);
    if (ranks->missing > 0 && ranks->missing != PROF_UNKNOWN)
        snprintf(notes->text[notes->count++], size,
                 "%s of %s ranks are not in this capture: what they waited for, and which ranks "
                 "waited for them, is not known",
                 prof_count(ranks->missing).text, prof_count(ranks->world_size).text);
    if (ranks->why_unmatched)
        snprintf(notes->text[notes->count++], size, "%s of %s operations have no waiting time: %s",
                 prof_count(ranks->operations - ranks->matched).text,
                 prof_count(ranks->operations).text, ranks->why_unmatched);
    if (ranks->calls_without_kernel)
        snprintf(notes->text[notes->count++], size,
                 "%s made no kernel that is known to be theirs: captured into a graph that never "
                 "ran, or done by a copy engine",
                 prof_counted(ranks->calls_without_kernel, "call of NCCL", "calls of NCCL").text);
    if (ranks->clock_error_ns == PROF_UNKNOWN)
        snprintf(notes->text[notes->count++], size,
                 "the clocks of the hosts could not be compared: which rank was late, and which "
                 "ranks waited, is not known");
    else if (ranks->clock_error_ns > 0)
        snprintf(
            notes->text[notes->count++], size,
            "the clocks of different hosts agree to %s: smaller delays are not reported as late",
            prof_duration_ns(ranks->clock_error_ns).text);
    if (ranks->differences_left_out)
        snprintf(notes->text[notes->count++], size,
                 "%s more differences between ranks are left out",
                 prof_count(ranks->differences_left_out).text);
}

/* ---- the report about ranks alone ------------------------------------------------------------ */

static const char *why_nothing(const struct prof_report_data *data)
{
    if (data->ranks.count || data->ranks.collective_count)
        return NULL;
    for (size_t i = 0; i < data->process_count; i++) {
        if (data->processes[i].rank == PROF_UNKNOWN)
            continue;
        return data->info->summary ? "ranks are known, but a summary (perfkit merge --summary) has "
                                     "no events of them"
                                   : "ranks are known, but no device operations or collectives of "
                                     "them were recorded";
    }
    return "no ranks and no collective operations: no launcher's variables, NCCL or MPI were seen";
}

static void ranks_text_head(const struct prof_report_page *page,
                            const struct prof_report_data *data)
{
    struct prof_report_notes notes;
    const char *why = why_nothing(data);
    if (why)
        prof_report_wrap(page, 0, "", why);
    describe_ranks(data, &notes);
    for (size_t i = 0; i < notes.count; i++)
        prof_report_wrap(page, 2, "- ", notes.text[i]);
}

static void ranks_json_members(struct prof_json *json, const struct prof_report_data *data)
{
    const struct prof_ranks *ranks = &data->ranks;
    struct prof_report_notes notes;
    prof_json_known(json, "world_size", ranks->world_size);
    prof_json_known(json, "missing", ranks->missing);
    prof_json_string(json, "iteration", ranks->iteration_name);
    prof_json_int(json, "operations", ranks->operations);
    prof_json_int(json, "matched", ranks->matched);
    prof_json_string(json, "why_unmatched", ranks->why_unmatched);
    prof_json_int(json, "calls_without_kernel", ranks->calls_without_kernel);
    prof_json_known(json, "clock_error_ns", ranks->clock_error_ns);
    prof_json_real(json, "imbalance", ranks->imbalance);
    prof_json_array(json, "notes");
    describe_ranks(data, &notes);
    for (size_t i = 0; i < notes.count; i++)
        prof_json_string(json, NULL, notes.text[i]);
    prof_json_end(json);
}

static void ranks_markdown_head(FILE *out, const struct prof_report_data *data)
{
    struct prof_report_notes notes;
    const char *why = why_nothing(data);
    prof_report_markdown_head(out, data);
    if (why)
        fprintf(out, "\n%s\n", why);
    describe_ranks(data, &notes);
    prof_report_markdown_notes(out, &notes);
}

static const struct prof_report_table *const rank_tables[] = {
    &prof_report_ranks_table,           &prof_report_collectives_table,
    &prof_report_late_ranks_table,      &prof_report_rank_links_table,
    &prof_report_network_table,         &prof_report_rank_differences_table,
    &prof_report_rank_iterations_table, NULL,
};

const struct prof_report_document prof_report_ranks_document = {
    .key = "perfkit_ranks",
    .shape = 2,
    .tables = rank_tables,
    .load = prof_report_load_ranks,
    .text_head = ranks_text_head,
    .text_tail = prof_report_text_trust,
    .json_members = ranks_json_members,
    .markdown_head = ranks_markdown_head,
};

/* ---- tables ---------------------------------------------------------------------------------- */

static const struct prof_rank_row *rank_at(const struct prof_report_data *data, uint32_t rank)
{
    return rank < data->ranks.count ? &data->ranks.rows[rank] : NULL;
}

/* The number of a rank, or the process without one. */
static struct prof_report_value rank_number(const struct prof_report_data *data, uint32_t rank)
{
    const struct prof_rank_row *row = rank_at(data, rank);
    return prof_report_int(row ? row->rank : PROF_UNKNOWN);
}

static struct prof_report_value rank_pid(const struct prof_report_data *data, uint32_t rank)
{
    const struct prof_rank_row *row = rank_at(data, rank);
    return prof_report_int(row ? row->pid : PROF_UNKNOWN);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

ROW_CELL(rank_cause, prof_rank_row, rank,
         prof_report_text(rank->last_count ? prof_rank_cause_text(rank->cause) : NULL))

ROW_CELL(slow_ns, prof_rank_row, rank,
         prof_report_int(rank->slow_kernel ? rank->slow_kernel_ns : PROF_UNKNOWN))

/* How long it waited, and which rank came last, is known of operations that were found on other
 * ranks too; a rank without any has no share in them either. */
#define OF_OPERATIONS(name, known, value)                                                          \
    ROW_CELL(name, prof_rank_row, rank, prof_report_int(rank->known ? rank->value : PROF_UNKNOWN))
#define SHARE_OF_OPERATIONS(name, known, value)                                                    \
    ROW_CELL(name, prof_rank_row, rank, prof_report_real(rank->known ? rank->value : (double)NAN))
OF_OPERATIONS(collective_ns, collectives, collective_ns)
SHARE_OF_OPERATIONS(collective_share, collectives, collective_share)
OF_OPERATIONS(exposed_ns, collectives, exposed_ns)
SHARE_OF_OPERATIONS(exposed_share, collectives, exposed_share)
OF_OPERATIONS(wait_ns, analysed, wait_ns)
SHARE_OF_OPERATIONS(wait_share, analysed, wait_share)
OF_OPERATIONS(last_count, analysed, last_count)
OF_OPERATIONS(last_ns, analysed, last_ns)
OF_OPERATIONS(caused_ns, analysed, caused_ns)
OF_OPERATIONS(excess_compute_ns, analysed, excess_ns[PROF_CAUSE_COMPUTE])
OF_OPERATIONS(excess_copy_ns, analysed, excess_ns[PROF_CAUSE_COPY])
OF_OPERATIONS(excess_host_ns, analysed, excess_ns[PROF_CAUSE_HOST])

static const struct prof_report_column rank_columns[] = {
    INT64("rank", "Rank", NUMBER, 1, prof_rank_row, rank),
    INT64("pid", "Process", NUMBER, 3, prof_rank_row, pid),
    INT64("begin_ns", "From", MOMENT, 0, prof_rank_row, begin_ns),
    INT64("window_ns", "Analysed", NS, 0, prof_rank_row, window_ns),
    INT64("iterations", "Iterations", COUNT, 0, prof_rank_row, iterations),
    REAL("iteration_ns", "Iteration", NS, 2, prof_rank_row, iteration_ns),
    INT64("busy_ns", "Busy", NS, 0, prof_rank_row, busy_ns),
    INT64("compute_ns", "Compute", NS, 1, prof_rank_row, compute_ns),
    INT64("copy_ns", "Copies", NS, 6, prof_rank_row, copy_ns),
    COMPUTED("collective_ns", "Collectives", NS, 5, collective_ns),
    COMPUTED("collective_share", "Collective share", SHARE, 0, collective_share),
    COMPUTED("exposed_ns", "Exposed", NS, 1, exposed_ns),
    COMPUTED("exposed_share", "Of time", SHARE, 4, exposed_share),
    COMPUTED("wait_ns", "Waiting", NS, 1, wait_ns),
    COMPUTED("wait_share", "Waiting share", SHARE, 0, wait_share),
    INT64("idle_ns", "Idle", NS, 2, prof_rank_row, idle_ns),
    REAL("idle_share", "Idle share", SHARE, 0, prof_rank_row, idle_share),
    INT64("kernels", "Kernels", COUNT, 0, prof_rank_row, kernels),
    INT64("collectives", "Operations", COUNT, 0, prof_rank_row, collectives),
    INT64("analysed", "Analysed operations", COUNT, 0, prof_rank_row, analysed),
    COMPUTED("last_count", "Came last", COUNT, 1, last_count),
    COMPUTED("last_ns", "Late by", NS, 1, last_ns),
    COMPUTED("caused_ns", "Others waited", NS, 5, caused_ns),
    COMPUTED("cause", "Because of", WORD, 1, rank_cause),
    COMPUTED("excess_compute_ns", "Compute excess", NS, 0, excess_compute_ns),
    COMPUTED("excess_copy_ns", "Copy excess", NS, 0, excess_copy_ns),
    COMPUTED("excess_host_ns", "Host excess", NS, 0, excess_host_ns),
    COMPUTED("slow_kernel_ns", "Slower by", NS, 6, slow_ns),
    STRING("slow_kernel", "Slowest kernel", NAME, 6, prof_rank_row, slow_kernel),
    STRING("host", "Host", NAME, 0, prof_rank_row, host),
    OF_ID("device", "Device", NAME, 0, prof_rank_row, device, prof_report_device_name),
    {0},
};

/* A process by itself is no news. */
static bool rank_worth(const struct prof_report_data *data)
{
    return data->ranks.count > 1;
}

static void rank_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_ranks *ranks = &data->ranks;
    snprintf(out, size, "%s", prof_count((int64_t)ranks->count).text);
    if (ranks->missing > 0)
        prof_append(out, size, " of %s", prof_count(ranks->world_size).text);
    if (!isnan(ranks->imbalance))
        prof_append(out, size, "; the most compute is %s above the mean",
                    prof_percent(ranks->imbalance).text);
}

const struct prof_report_table prof_report_ranks_table = {
    .name = "ranks",
    .part = PROF_PART_RANKS,
    .notes = describe_ranks,
    .title = "Ranks",
    .none = "no ranks",
    .help = "Times are unions within the iterations, or from first to last operation: exposed is "
            "collectives while no other kernel ran, waiting is in them until the last rank had "
            "come; came last counts the collectives that all others waited for.",
    .screen_rows = 16,
    .optional = true,
    .worth = rank_worth,
    .totals = rank_totals,
    .least_rows = 2,
    .first_rows = 8,
    ROWS(prof_rank_row, rank, ranks.rows, ranks.count),
};

/* ---- collectives ----------------------------------------------------------------------------- */

ROW_CELL(collective_communicator, prof_collective_row, collective,
         prof_report_text(collective->has_communicator ? collective->communicator_text : NULL))

static const struct prof_report_column collective_columns[] = {
    INT64("total_ns", "Total", NS, 1, prof_collective_row, duration_ns.sum),
    INT64("count", "Count", COUNT, 1, prof_collective_row, count),
    INT64("calls", "Calls", COUNT, 0, prof_collective_row, calls),
    INT64("in_graphs", "In graphs", COUNT, 0, prof_collective_row, in_graphs),
    INT64("bytes", "Message", BYTES, 1, prof_collective_row, bytes),
    REAL("median_ns", "Median", NS, 2, prof_collective_row, duration_ns.median),
    INT64("min_ns", "Min", NS, 0, prof_collective_row, duration_ns.min),
    INT64("max_ns", "Max", NS, 0, prof_collective_row, duration_ns.max),
    REAL("transfer_ns", "Without waiting", NS, 1, prof_collective_row, transfer_ns),
    REAL("skew_ns", "Skew", NS, 2, prof_collective_row, skew_ns),
    INT64("wait_ns", "Waiting", NS, 4, prof_collective_row, wait_ns),
    INT64("matched", "Matched", COUNT, 0, prof_collective_row, matched),
    REAL("algorithm_bytes_per_s", "Algorithm", RATE, 5, prof_collective_row, algorithm_rate),
    REAL("bus_bytes_per_s", "Bus", RATE, 1, prof_collective_row, bus_rate),
    REAL("link_bytes_per_s", "Link", RATE, 6, prof_collective_row, link_rate),
    REAL("link_share", "Of link", SHARE, 3, prof_collective_row, link_share),
    INT64("ranks", "Ranks", COUNT, 2, prof_collective_row, ranks),
    INT64("seen_ranks", "Seen ranks", COUNT, 0, prof_collective_row, seen_ranks),
    STRING("reduction", "Reduction", WORD, 6, prof_collective_row, reduction),
    COMPUTED("communicator", "Communicator", WORD, 3, collective_communicator),
    STRING("name", "Operation", WORD, 1, prof_collective_row, name),
    {0},
};

static void collective_totals(const struct prof_report_data *data, char *out, size_t size)
{
    int64_t exposed = 0, time = 0;
    for (size_t i = 0; i < data->ranks.count; i++) {
        exposed = prof_add(exposed, data->ranks.rows[i].exposed_ns);
        time = prof_add(time, data->ranks.rows[i].collective_ns);
    }
    snprintf(out, size, "%s; %s of their %s exposed",
             prof_counted(data->ranks.operations, "operation", "operations").text,
             prof_percent(time > 0 ? (double)exposed / (double)time : NAN).text,
             prof_duration_ns(time).text);
}

const struct prof_report_table prof_report_collectives_table = {
    .name = "collectives",
    .part = PROF_PART_RANKS,
    .title = "Collectives",
    .none = "no collective operations",
    .help = "By communicator, operation and message, over all ranks; without waiting is the time "
            "from the last arrival on; algorithm and bus bandwidth are those of nccl-tests.",
    .screen_rows = 8,
    .optional = true,
    .totals = collective_totals,
    .first_rows = 3,
    ROWS(prof_collective_row, collective, ranks.collectives, ranks.collective_count),
};

/* ---- ranks that came late -------------------------------------------------------------------- */

#define LATE(row) ((const struct prof_rank_late *)(row))

CELL(late_rank, rank_number(data, LATE(row)->rank))
CELL(late_pid, rank_pid(data, LATE(row)->rank))
CELL(late_cause, prof_report_text(prof_rank_cause_text(LATE(row)->cause)))
CELL(late_operation, prof_report_text(prof_collective_name(LATE(row)->operation)))

static const struct prof_report_column late_columns[] = {
    COMPUTED("rank", "Rank", NUMBER, 1, late_rank),
    COMPUTED("pid", "Process", NUMBER, 4, late_pid),
    INT64("start_ns", "At", MOMENT, 2, prof_rank_late, start_ns),
    INT64("iteration", "Iteration", NUMBER, 1, prof_rank_late, iteration),
    INT64("late_ns", "Late by", NS, 1, prof_rank_late, late_ns),
    INT64("skew_ns", "After the first", NS, 3, prof_rank_late, skew_ns),
    INT64("caused_ns", "Others waited", NS, 1, prof_rank_late, caused_ns),
    INT64("excess_ns", "Excess", NS, 2, prof_rank_late, excess_ns),
    COMPUTED("cause", "Because of", WORD, 1, late_cause),
    INT64("bytes", "Bytes", BYTES, 3, prof_rank_late, bytes),
    INT64("sequence", "Sequence", NUMBER, 0, prof_rank_late, sequence),
    COMPUTED("name", "Operation", WORD, 1, late_operation),
    {0},
};

const struct prof_report_table prof_report_late_ranks_table = {
    .name = "late_ranks",
    .part = PROF_PART_RANKS,
    .title = "Latest arrivals",
    .none = "no rank came late",
    .help = "Collectives that all others waited for: late is after the second last, the cause what "
            "its device did longer than the others' since the collective before.",
    .screen_rows = 8,
    .optional = true,
    ROWS(prof_rank_late, late, ranks.late, ranks.late_count),
};

/* ---- iterations ------------------------------------------------------------------------------ */

#define ITERATION(row) ((const struct prof_rank_iteration *)(row))

CELL(iteration_rank, rank_number(data, ITERATION(row)->rank))
CELL(iteration_pid, rank_pid(data, ITERATION(row)->rank))
CELL(iteration_mark, prof_report_text(ITERATION(row)->slowest ? "slowest" : NULL))

static const struct prof_report_column iteration_columns[] = {
    INT64("iteration", "Iteration", NUMBER, 1, prof_rank_iteration, iteration),
    COMPUTED("rank", "Rank", NUMBER, 1, iteration_rank),
    COMPUTED("pid", "Process", NUMBER, 4, iteration_pid),
    INT64("start_ns", "Start", MOMENT, 2, prof_rank_iteration, start_ns),
    INT64("duration_ns", "Duration", NS, 1, prof_rank_iteration, duration_ns),
    INT64("compute_ns", "Compute", NS, 1, prof_rank_iteration, compute_ns),
    INT64("copy_ns", "Copies", NS, 3, prof_rank_iteration, copy_ns),
    INT64("exposed_ns", "Exposed", NS, 1, prof_rank_iteration, exposed_ns),
    INT64("wait_ns", "Waiting", NS, 1, prof_rank_iteration, wait_ns),
    INT64("idle_ns", "Idle", NS, 2, prof_rank_iteration, idle_ns),
    COMPUTED("mark", "Is", WORD, 1, iteration_mark),
    {0},
};

const struct prof_report_table prof_report_rank_iterations_table = {
    .name = "rank_iterations",
    .part = PROF_PART_RANKS,
    .title = "Iterations across ranks",
    .none = "no range repeats on every rank",
    .help = "What each rank's device did in each iteration; slowest is the one that waited least, "
            "for which the others waited.",
    .screen_rows = 16,
    .optional = true,
    .worth = rank_worth,
    ROWS(prof_rank_iteration, iteration, ranks.iterations, ranks.iteration_count),
};

/* ---- differences ----------------------------------------------------------------------------- */

#define DIFFERENCE(row) ((const struct prof_rank_difference *)(row))

CELL(difference_rank, rank_number(data, DIFFERENCE(row)->rank))
CELL(difference_pid, rank_pid(data, DIFFERENCE(row)->rank))

static struct prof_report_value difference_kind(const struct prof_report_data *data,
                                                const void *row)
{
    static const char *const kinds[] = {[PROF_DIFFERS_LAUNCHES] = "launches",
                                        [PROF_DIFFERS_COPIED] = "bytes copied",
                                        [PROF_DIFFERS_COLLECTIVES] = "collectives"};
    (void)data;
    return prof_report_text(kinds[DIFFERENCE(row)->kind]);
}

static const struct prof_report_column difference_columns[] = {
    COMPUTED("rank", "Rank", NUMBER, 1, difference_rank),
    COMPUTED("pid", "Process", NUMBER, 3, difference_pid),
    COMPUTED("kind", "What", WORD, 1, difference_kind),
    INT64("here", "Here", COUNT, 1, prof_rank_difference, here),
    INT64("usual", "Usual", COUNT, 1, prof_rank_difference, usual),
    INT64("usual_ranks", "Ranks with it", COUNT, 2, prof_rank_difference, usual_ranks),
    CHARS("shape", "Grid x block", WORD, 4, prof_rank_difference, shape.text),
    STRING("name", "Of", NAME, 1, prof_rank_difference, name),
    {0},
};

const struct prof_report_table prof_report_rank_differences_table = {
    .name = "rank_differences",
    .part = PROF_PART_RANKS,
    .title = "What ranks do otherwise",
    .none = "all do the same",
    .help = "Exact counts within the iterations that differ from those of most ranks.",
    .screen_rows = 8,
    .optional = true,
    ROWS(prof_rank_difference, difference, ranks.differences, ranks.difference_count),
};

/* ---- links ----------------------------------------------------------------------------------- */

#define LINK(row) ((const struct prof_rank_link *)(row))

CELL(link_share, prof_report_real(LINK(row)->bus_rate / LINK(row)->usual_rate))
CELL(link_communicator,
     prof_report_text(LINK(row)->has_communicator ? LINK(row)->communicator_text : NULL))

static const struct prof_report_column link_columns[] = {
    REAL("bus_bytes_per_s", "Bus", RATE, 1, prof_rank_link, bus_rate),
    REAL("link_bytes_per_s", "Link", RATE, 4, prof_rank_link, link_rate),
    REAL("usual_bytes_per_s", "Usual", RATE, 1, prof_rank_link, usual_rate),
    COMPUTED("share", "Of usual", SHARE, 1, link_share),
    INT64("count", "Count", COUNT, 2, prof_rank_link, count),
    INT64("bytes", "Bytes", BYTES, 3, prof_rank_link, bytes),
    INT64("ranks", "Ranks", COUNT, 1, prof_rank_link, ranks),
    INT64("from", "From", NUMBER, 1, prof_rank_link, from),
    INT64("to", "To", NUMBER, 1, prof_rank_link, to),
    COMPUTED("communicator", "Communicator", WORD, 1, link_communicator),
    {0},
};

/* One way alone has nothing to be compared with. */
static bool link_worth(const struct prof_report_data *data)
{
    return data->ranks.link_count > 1;
}

const struct prof_report_table prof_report_rank_links_table = {
    .name = "rank_links",
    .part = PROF_PART_RANKS,
    .title = "Bandwidth between ranks",
    .none = "none is known",
    .help = "Of messages of 1 MiB and more, by communicator, or by sender and receiver; usual is "
            "the median of the others of as many ranks.",
    .screen_rows = 8,
    .optional = true,
    .worth = link_worth,
    ROWS(prof_rank_link, link, ranks.links, ranks.link_count),
};

/* ---- the network ----------------------------------------------------------------------------- */

static const struct prof_report_column port_columns[] = {
    STRING("host", "Host", WORD, 1, prof_rank_port, host),
    STRING("port", "Port", WORD, 1, prof_rank_port, name),
    STRING("kind", "Kind", WORD, 2, prof_rank_port, kind),
    INT64("sent_bytes", "Sent", BYTES, 1, prof_rank_port, sent),
    INT64("received_bytes", "Received", BYTES, 1, prof_rank_port, received),
    REAL("send_bytes_per_s", "Sends", RATE, 2, prof_rank_port, send_rate),
    REAL("receive_bytes_per_s", "Receives", RATE, 2, prof_rank_port, receive_rate),
    REAL("link_bytes_per_s", "Link", RATE, 3, prof_rank_port, link_rate),
    REAL("link_share", "Of link", SHARE, 2, prof_rank_port, link_share),
    INT64("duration_ns", "In", NS, 4, prof_rank_port, duration_ns),
    {0},
};

const struct prof_report_table prof_report_network_table = {
    .name = "network",
    .part = PROF_PART_RANKS,
    .title = "Network ports",
    .none = "no network port carried anything",
    .help = "Bytes of all programs of the host while perfkit recorded; of link is the larger rate "
            "of both directions.",
    .screen_rows = 8,
    .optional = true,
    .not_in_text = true,
    ROWS(prof_rank_port, port, ranks.ports, ranks.port_count),
};
