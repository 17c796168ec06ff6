/* The report about ranks alone (perfkit report --ranks), in every summary format, and the sentences
 * that go with its tables wherever they are shown. */
#include "report/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "report/filter.h"
#include "report/text.h"
#include "report/writers.h"

#define SHAPE 2

const char *const prof_report_rank_tables[] = {"ranks",           "collectives", "late_ranks",
                                               "rank_links",      "network",     "rank_differences",
                                               "rank_iterations", NULL};

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

size_t prof_report_rank_notes(const struct prof_report_data *data,
                              char notes[PROF_REPORT_RANK_NOTES][PROF_REPORT_RANK_NOTE_BYTES])
{
    const struct prof_ranks *ranks = &data->ranks;
    size_t count = 0, size = PROF_REPORT_RANK_NOTE_BYTES;
    if (ranks->count > 1 && note_worst(ranks, notes[count], size))
        count++;
    if (ranks->missing > 0 && ranks->missing != PROF_UNKNOWN)
        snprintf(notes[count++], size,
                 "%s of %s ranks are not in this capture: what they waited for, "
                 "and which ranks waited for them, is not known",
                 prof_count(ranks->missing).text, prof_count(ranks->world_size).text);
    if (ranks->why_unmatched)
        snprintf(notes[count++], size, "%s of %s operations have no waiting time: %s",
                 prof_count(ranks->operations - ranks->matched).text,
                 prof_count(ranks->operations).text, ranks->why_unmatched);
    if (ranks->calls_without_kernel)
        snprintf(notes[count++], size,
                 "%s made no kernel that is known to be theirs: captured into a "
                 "graph that never ran, or done by a copy engine",
                 prof_counted(ranks->calls_without_kernel, "call of NCCL", "calls of NCCL").text);
    if (ranks->clock_error_ns == PROF_UNKNOWN)
        snprintf(notes[count++], size,
                 "the clocks of the hosts could not be compared: which rank was late, and "
                 "which ranks waited, is not known");
    else if (ranks->clock_error_ns > 0)
        snprintf(notes[count++], size,
                 "the clocks of different hosts agree to %s: smaller delays are not "
                 "reported as late",
                 prof_duration_ns(ranks->clock_error_ns).text);
    if (ranks->differences_left_out)
        snprintf(notes[count++], size, "%s more differences between ranks are left out",
                 prof_count(ranks->differences_left_out).text);
    return count;
}

/* ---- formats --------------------------------------------------------------------------------- */

static const char *why_nothing(const struct prof_report_data *data)
{
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

static enum prof_status write_ranks_text(const struct prof_report_options *options,
                                         const struct prof_report_data *data, FILE *out,
                                         struct prof_error *err)
{
    struct prof_report_page page = {.out = out, .width = 100};
    enum prof_status status = PROF_OK;
    char notes[PROF_REPORT_RANK_NOTES][PROF_REPORT_RANK_NOTE_BYTES];
    if (options) {
        page.top = options->top;
        page.colour = options->colour;
        page.all = options->all;
        if (options->width)
            page.width = options->width < 60 ? 60 : options->width;
    }
    if (!data->ranks.count && !data->ranks.collective_count)
        prof_report_wrap(&page, 0, "", why_nothing(data));
    size_t count = prof_report_rank_notes(data, notes);
    for (size_t i = 0; i < count; i++)
        prof_report_wrap(&page, 2, "- ", notes[i]);
    for (const char *const *name = prof_report_rank_tables; *name && !status; name++) {
        const struct prof_report_table *table = prof_report_table(*name);
        if (!prof_report_worth(data, table))
            continue;
        fputc('\n', out);
        status = prof_report_text_table(&page, data, table, 0, err);
    }
    if (!status)
        prof_report_text_trust(&page, data);
    return status;
}

static enum prof_status write_ranks_json(const struct prof_report_options *options,
                                         const struct prof_report_data *data, FILE *out,
                                         struct prof_error *err)
{
    const struct prof_ranks *ranks = &data->ranks;
    char notes[PROF_REPORT_RANK_NOTES][PROF_REPORT_RANK_NOTE_BYTES];
    struct prof_json json;
    prof_json_to_file(&json, out, 2);
    prof_json_object(&json, NULL);
    prof_json_int(&json, "perfkit_ranks", SHAPE);
    prof_report_json_capture(&json, data);
    prof_report_json_filter(&json, data->filter);
    prof_report_json_trust(&json, data);
    prof_json_known(&json, "world_size", ranks->world_size);
    prof_json_known(&json, "missing", ranks->missing);
    prof_json_string(&json, "iteration", ranks->iteration_name);
    prof_json_int(&json, "operations", ranks->operations);
    prof_json_int(&json, "matched", ranks->matched);
    prof_json_string(&json, "why_unmatched", ranks->why_unmatched);
    prof_json_int(&json, "calls_without_kernel", ranks->calls_without_kernel);
    prof_json_known(&json, "clock_error_ns", ranks->clock_error_ns);
    prof_json_real(&json, "imbalance", ranks->imbalance);
    prof_json_array(&json, "notes");
    size_t count = prof_report_rank_notes(data, notes);
    for (size_t i = 0; i < count; i++)
        prof_json_string(&json, NULL, notes[i]);
    prof_json_end(&json);
    for (const char *const *name = prof_report_rank_tables; *name; name++)
        prof_report_json_table(&json, data, prof_report_table(*name), options ? options->top : 0);
    prof_json_end(&json);
    return prof_json_finish(&json, err);
}

static void write_ranks_csv(const struct prof_report_options *options,
                            const struct prof_report_data *data, FILE *out)
{
    for (const char *const *name = prof_report_rank_tables; *name; name++)
        prof_report_csv_table(out, data, prof_report_table(*name), options ? options->top : 0);
    prof_report_csv_trust(out, &data->trust);
}

static void write_ranks_markdown(const struct prof_report_options *options,
                                 const struct prof_report_data *data, FILE *out)
{
    prof_report_markdown_head(out, data);
    if (!data->ranks.count && !data->ranks.collective_count)
        fprintf(out, "\n%s\n", why_nothing(data));
    prof_report_markdown_rank_notes(out, data);
    for (const char *const *name = prof_report_rank_tables; *name; name++) {
        if (prof_report_worth(data, prof_report_table(*name)))
            prof_report_markdown_table(out, data, prof_report_table(*name),
                                       options ? options->top : 0);
    }
}

enum prof_status prof_report_write_ranks(struct prof_capture *capture,
                                         const struct prof_report_options *options,
                                         enum prof_report_format format, FILE *out,
                                         struct prof_error *err)
{
    struct prof_report_data data;
    enum prof_status status = prof_report_load_ranks(capture, options, &data, err);
    if (!status) {
        switch (format) {
        case PROF_REPORT_TEXT:
            status = write_ranks_text(options, &data, out, err);
            break;
        case PROF_REPORT_JSON:
            status = write_ranks_json(options, &data, out, err);
            break;
        case PROF_REPORT_CSV:
            write_ranks_csv(options, &data, out);
            break;
        case PROF_REPORT_MARKDOWN:
            write_ranks_markdown(options, &data, out);
            break;
        }
    }
    if (!status)
        status = prof_report_flush(out, err);
    prof_report_unload(&data);
    return status;
}
