/* The trust block of the text report: what was called against what was recorded, and every loss
 * that is known. It ends the report, because it says how far the figures above can be believed. */
#include <stdlib.h>
#include <string.h>

#include "report/table.h"
#include "libprof/base/utf8.h"

/* Statements told at most, but for losses: on the one screen, and where everything is asked for. */
#define SCREEN_STATEMENTS 4
#define STATEMENTS 20

static bool balance_is_even(const struct prof_balance *row)
{
    return row->called == row->recorded && row->called != PROF_UNKNOWN && !row->uncalled;
}

static void print_balance(const struct prof_report_page *page, const struct prof_balance *row)
{
    const struct {
        const char *word;
        int64_t value;
    } parts[] = {{"failed", row->failed},         {"captured into graphs", row->captured},
                 {"dropped", row->dropped},       {"outstanding", row->outstanding},
                 {"filtered out", row->filtered}, {"without their call", row->uncalled},
                 {"missing", row->remainder}};
    char *subject = prof_report_cut(row->subject, 40);
    fprintf(page->out, "  %-11s %s called, %s recorded", subject ? subject : "n/a",
            prof_count(row->called).text, prof_count(row->recorded).text);
    free(subject);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].value != 0 && parts[i].value != PROF_UNKNOWN)
            fprintf(page->out, ", %s %s", prof_count(parts[i].value).text, parts[i].word);
    }
    fputc('\n', page->out);
}

/* What a subject of the trust block is called when there are several. */
static const char *plural(const char *subject)
{
    static const struct {
        const char *one, *many;
    } words[] = {{"launch", "launches"},        {"transfer", "memcpys"}, {"memset", "memsets"},
                 {"allocation", "allocations"}, {"free", "frees"},       {"range", "ranges"},
                 {"range_end", "range ends"}};
    for (size_t i = 0; subject && i < sizeof words / sizeof *words; i++) {
        if (!strcmp(words[i].one, subject))
            return words[i].many;
    }
    return subject ? subject : "n/a";
}

/* Work of graphs has no calls of its own to be balanced with. */
static void print_graph_work(const struct prof_report_page *page,
                             const struct prof_graph_work *work)
{
    const struct {
        const char *word;
        int64_t value;
    } parts[] = {{"kernels", work->kernels},
                 {"memcpys", work->memcpys},
                 {"memsets", work->memsets},
                 {"executions recorded as a whole", work->whole},
                 {"kernels filtered out", work->filtered}};
    int64_t any = work->launched;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        any |= parts[i].value;
    if (!any)
        return;
    fprintf(page->out, "  %-11s %s launched", "graph", prof_count(work->launched).text);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].value)
            fprintf(page->out, ", %s %s", prof_count(parts[i].value).text, parts[i].word);
    }
    fputc('\n', page->out);
}

/* What balances without a rest shares one line; the rest has one each. */
static void print_balances(const struct prof_report_page *page, const struct prof_trust *trust,
                           bool whole_run)
{
    /* Calls are counted when they are made, whatever a report asks for afterwards. */
    char line[1024];
    size_t n = (size_t)snprintf(line, sizeof line,
                                "called and recorded%s:", whole_run ? " in the whole run" : "");
    size_t even = 0;
    if (!trust->total_count)
        fputs("  no calls were counted\n", page->out);
    for (size_t i = 0; i < trust->total_count; i++) {
        const struct prof_balance *row = &trust->totals[i];
        if (!balance_is_even(row)) {
            print_balance(page, row);
            continue;
        }
        char *subject = prof_report_cut(row->called == 1 ? row->subject : plural(row->subject), 40);
        int wrote = snprintf(line + n, sizeof line - n, "%s %s %s", even++ ? "," : "",
                             prof_count(row->called).text, subject ? subject : "n/a");
        free(subject);
        if (wrote > 0 && (size_t)wrote < sizeof line - n)
            n += (size_t)wrote;
    }
    print_graph_work(page, &trust->graphs);
    if (even)
        prof_report_wrap(page, 2, "", line);
}

/* Every loss is told; of warnings, and of notes where everything is told, as many as people read.
 */
static void print_statements(const struct prof_report_page *page, const struct prof_trust *trust)
{
    static const char *const marks[] = {
        [PROF_TRUST_NOTE] = "  note",
        [PROF_TRUST_WARNING] = "  warning",
        [PROF_TRUST_RISK] = "  RISK",
        [PROF_TRUST_LOSS] = "  LOSS",
    };
    size_t shown = 0, left = 0;
    for (size_t i = 0; i < trust->statement_count; i++) {
        const struct prof_statement *statement = &trust->statements[i];
        bool loss = statement->level >= PROF_TRUST_RISK;
        if (!page->all && statement->level == PROF_TRUST_NOTE)
            continue;
        if (!loss && shown >= (page->all ? STATEMENTS : SCREEN_STATEMENTS)) {
            left++;
            continue;
        }
        char *text = prof_report_clean(statement->text);
        prof_report_wrap(page, 11, marks[statement->level], text ? text : "");
        free(text);
        shown++;
    }
    if (left)
        fprintf(page->out, "  ... and %s more (--format json lists all)\n",
                prof_count((int64_t)left).text);
}

void prof_report_text_trust(const struct prof_report_page *page,
                            const struct prof_report_data *data)
{
    const struct prof_trust *trust = &data->trust;
    fprintf(page->out, "\n%sTrust%s: %s", prof_report_tone(page, PROF_TONE_HEAD),
            prof_report_plain(page), prof_trust_status_words(trust->status));
    if (trust->clock_error_ns != PROF_UNKNOWN)
        fprintf(page->out, "; device times are off by at most %s",
                prof_duration_ns(trust->clock_error_ns).text);
    fputc('\n', page->out);
    print_balances(page, trust, data->filter != NULL);
    print_statements(page, trust);
}
