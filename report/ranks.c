/* The report about ranks alone (perfkit report --ranks), in every summary format, and the sentences
 * that go with its tables wherever they are shown. */
#include "report/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "report/columns.h"
#include "report/writers.h"

/* ---- sentences ------------------------------------------------------------------------------- */

/* "rank 3", or "process 1234" where nobody gave it one. */
static struct prof_text rank_words(const struct prof_rank_row *row)
{
    struct prof_text text;
    snprintf(text.text, sizeof text.text, row->rank == PROF_UNKNOWN ? "process %lld" : "rank %lld",
             (long long)(row->rank == PROF_UNKNOWN ? row->pid : row->rank));
    return text;
}

static const struct prof_rank_row *worst_rank(const struct prof_ranks *ranks)
{
    const struct prof_rank_row *worst = NULL;
    for (size_t i = 0; i < ranks->count; i++) {
        if (ranks->rows[i].last_ns > 0 && (!worst || ranks->rows[i].last_ns > worst->last_ns))
            worst = &ranks->rows[i];
    }
    return worst;
}

static void describe_cause(const struct prof_rank_row *row, char *out, size_t size)
{
    char *kernel = prof_report_cut(row->slow_kernel, 40);
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
    free(kernel);
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

void prof_report_rank_notes(const struct prof_report_data *data, struct prof_report_notes *notes)
{
    const struct prof_ranks *ranks = &data->ranks;
    size_t size = sizeof notes->text[0];
    notes->count = ranks->count > 1 && note_worst(ranks, notes->text[0], size);
    if (ranks->missing > 0 && ranks->missing != PROF_UNKNOWN)
        snprintf(notes->text[notes->count++], size,
                 "%s of %s ranks are not in this capture: what they waited for, "
                 "and which ranks waited for them, is not known",
                 prof_count(ranks->missing).text, prof_count(ranks->world_size).text);
    if (ranks->why_unmatched)
        snprintf(notes->text[notes->count++], size, "%s of %s operations have no waiting time: %s",
                 prof_count(ranks->operations - ranks->matched).text,
                 prof_count(ranks->operations).text, ranks->why_unmatched);
    if (ranks->calls_without_kernel)
        snprintf(notes->text[notes->count++], size,
                 "%s made no kernel that is known to be theirs: captured into a "
                 "graph that never ran, or done by a copy engine",
                 prof_counted(ranks->calls_without_kernel, "call of NCCL", "calls of NCCL").text);
    if (ranks->clock_error_ns == PROF_UNKNOWN)
        snprintf(notes->text[notes->count++], size,
                 "the clocks of the hosts could not be compared: which rank was late, and "
                 "which ranks waited, is not known");
    else if (ranks->clock_error_ns > 0)
        snprintf(notes->text[notes->count++], size,
                 "the clocks of different hosts agree to %s: smaller delays are not "
                 "reported as late",
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
    prof_report_rank_notes(data, &notes);
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
    prof_report_rank_notes(data, &notes);
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
    prof_report_rank_notes(data, &notes);
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
