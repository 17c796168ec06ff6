/* A comparison as annotations of GitHub Actions (workflow commands on standard output). GitHub
 * shows ten errors and ten warnings of a step and drops the rest without a word: the nine worst of
 * each are written, and one that says how many more there are. */
#include <stdlib.h>
#include <string.h>

#include "report/gate_writers.h"
#include "libprof/base/utf8.h"
#include "report/writers.h"

#define MOST 9

/* Texts are cleaned first, so that no line of theirs begins another command; what the runner would
 * take for its own is then written as it asks. `property`: between the command's colons. */
static void put_github_escaped(FILE *out, const char *text, bool property)
{
    char *clean = prof_report_clean(text);
    for (const char *p = clean ? clean : "n/a"; *p; p++) {
        if (*p == '%' || *p == '\r' || *p == '\n' || (property && (*p == ':' || *p == ',')))
            fprintf(out, "%%%02X", *p);
        else if (p[0] == '#' && p[1] == '#') /* ##[command], the runner's older form */
            fputs("# ", out);
        else
            fputc(*p, out);
    }
    free(clean);
}

static void put_github_row(FILE *out, const char *level, const struct prof_comparison *c,
                           const struct prof_compared *row)
{
    char *subject = prof_gate_subject_placed(row, 80), *change = prof_gate_change(row),
         *why = prof_gate_why(c, row);
    fprintf(out, "::%s title=", level);
    fprintf(out, "perfkit gate %s::", prof_verdict_name(row->verdict));
    put_github_escaped(out, subject ? subject : "n/a", false);
    fputs(": ", out);
    put_github_escaped(out, change ? change : "n/a", false);
    fputs(": ", out);
    put_github_escaped(out, why && *why ? why : prof_verdict_text(row->verdict), false);
    fputc('\n', out);
    free(subject);
    free(change);
    free(why);
}

/* Groups `first` to `last` share the room of their level. */
static void put_groups(FILE *out, const struct prof_comparison *c, const char *level,
                       enum prof_gate_group first, enum prof_gate_group last)
{
    size_t count = 0, shown = 0;
    for (enum prof_gate_group group = first; group <= last; group++)
        count += prof_gate_group_count(c, group);
    for (size_t i = 0; i < c->count && shown < MOST; i++) {
        enum prof_gate_group group = prof_gate_group(&c->rows[i]);
        if (group < first || group > last)
            continue;
        put_github_row(out, level, c, &c->rows[i]);
        shown++;
    }
    if (shown < count)
        fprintf(out, "::%s title=perfkit gate::... and %zu more metrics: see the report\n", level,
                count - shown);
}

/* Takes the text. */
static void put_github_line(FILE *out, const char *level, char *text)
{
    fprintf(out, "::%s title=perfkit gate::", level);
    put_github_escaped(out, text ? text : "n/a", false);
    fputc('\n', out);
    free(text);
}

enum prof_status prof_gate_write_github(const struct prof_gate_report *report, FILE *out,
                                        struct prof_error *err)
{
    const struct prof_comparison *c = report->comparison;
    put_github_line(out, "notice", prof_gate_headline(report));
    if (c->times_refused)
        put_github_line(out, "error", prof_gate_sensitivity(c));
    put_groups(out, c, "error", PROF_GATE_WORSE, PROF_GATE_WORSE);
    put_groups(out, c, "warning", PROF_GATE_UNSURE, PROF_GATE_WARNED);
    for (size_t i = 0; i < report->note_count; i++)
        put_github_line(out, "notice", prof_gate_copy(report->notes[i]));
    return prof_report_flush(out, err);
}
