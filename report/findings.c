/* What the rules found, in text and markdown: the answer to "why is it slow", so it is
 * before the tables. Three of them where people read, unless all are requested. */
#include <stdlib.h>
#include <string.h>

#include "report/findings.h"
#include "libprof/base/utf8.h"

#define FIRST 3
#define ADDRESSES 100000 /* from here on a stream's number is an address, which says nothing */

static const char *const severities[] = {
    [PROF_SEVERITY_INFO] = "info",
    [PROF_SEVERITY_WARNING] = "warning",
    [PROF_SEVERITY_CRITICAL] = "critical",
};

const char *prof_report_severity(enum prof_severity severity)
{
    return severities[severity];
}

static size_t shown(const struct prof_findings *findings, enum prof_report_findings how_many)
{
    size_t most = how_many == PROF_REPORT_FINDINGS_NONE  ? 0
                  : how_many == PROF_REPORT_FINDINGS_ALL ? findings->count
                                                         : FIRST;
    return findings->count < most ? findings->count : most;
}

bool prof_report_finding_is_worst_phase(const struct prof_findings *findings,
                                        const struct prof_finding *finding)
{
    return finding == findings->rows || finding[-1].rule != finding->rule ||
           finding[-1].hint != finding->hint;
}

/* The rows that are shown: all, or the worst phases of the first rules. */
static bool is_shown(const struct prof_findings *findings, size_t row, size_t rows,
                     enum prof_report_findings how_many)
{
    return rows < shown(findings, how_many) &&
           (how_many == PROF_REPORT_FINDINGS_ALL ||
            prof_report_finding_is_worst_phase(findings, &findings->rows[row]));
}

/* The call to use on the finding's device; for one about no device in particular, on the first. */
static const char *finding_call(const struct prof_report_data *data,
                                const struct prof_finding *finding)
{
    const struct prof_device *device = prof_device(data->capture, finding->device), *all;
    if (!device && prof_devices(data->capture, &all))
        device = &all[0];
    bool opencl = device && device->api && !strcmp(device->api, "opencl");
    return opencl ? finding->rule->opencl : finding->rule->cuda;
}

/* A framework's own kernels show that the program uses it: the call to use there, NULL = none. XLA
 * is TensorFlow's too, and "wrapped_" may begin any program's name: these do not show JAX. */
static const char *framework_call(const struct prof_report_data *data,
                                  const struct prof_rule_page *rule)
{
    bool tensorflow = false, xla = false;
    for (size_t i = 0; i < data->kernels.count; i++) {
        const struct prof_kernel_row *row = &data->kernels.rows[i];
        if (row->name && strstr(row->name, "at::native::"))
            return rule->pytorch;
        tensorflow |= row->name && strstr(row->name, "tensorflow::");
        xla |= row->name && row->library && !strcmp(row->library, "XLA") &&
               strncmp(row->name, "wrapped_", strlen("wrapped_")) != 0;
    }
    return xla && !tensorflow ? rule->jax : NULL;
}

/* From here on a line says that other findings were given a part of the time, and below the second
 * that they were given it all: so little is no finding of its own. */
#define OVERLAPS 1.2
#define TAKEN 0.01

/* "; on GPU 1 and 2 more": where several devices were analysed. */
static void append_finding_device(const struct prof_report_data *data,
                                  const struct prof_finding *finding, char *out, size_t size)
{
    const struct prof_device *device = prof_device(data->capture, finding->device);
    if (!device || data->findings.waterfall_count < 2)
        return;
    prof_append(out, size, "%son %s", *out ? "; " : "", device->title);
    if (finding->devices > 1)
        prof_append(out, size, " and %s more", prof_count((int64_t)finding->devices - 1).text);
}

/* Does the row stand for all phases of its rule? Its saving is then the sum of them. */
static bool stands_for_all_phases(const struct prof_findings *findings,
                                  const struct prof_finding *finding)
{
    return findings->phase_count > 1 && finding->phases > 1 &&
           finding->rule_bound_ns != PROF_UNKNOWN && finding->bound_ns != PROF_UNKNOWN &&
           prof_report_finding_is_worst_phase(findings, finding);
}

/* "; in train/step (1.20 s in total)" where several phases were analysed; "; 98.0 ms of it in
 * train/step (1.20 s in total)" behind the sum over the rule's phases. */
static void append_finding_phase(const struct prof_report_data *data,
                                 const struct prof_finding *finding, char *out, size_t size)
{
    const struct prof_findings *findings = &data->findings;
    const char *name = findings->phase_count > 1 ? findings->phases[finding->phase].name : NULL;
    PROF_FREED char *fit = name ? prof_report_fit(name, PROF_PHASE_CELLS) : NULL;
    char part[64] = "";
    if (stands_for_all_phases(findings, finding))
        snprintf(part, sizeof part, "%s of it ", prof_duration_ns(finding->bound_ns).text);
    if (fit && finding->bound_ns != PROF_UNKNOWN)
        prof_append(out, size, "%s%sin %s (%s in total)", *out ? "; " : "", part, fit,
                    prof_duration_ns(findings->phases[finding->phase].analysed_ns).text);
}

void prof_report_finding_saving(const struct prof_findings *findings,
                                const struct prof_finding *finding, char *out, size_t size)
{
    int64_t window = findings->window_ns;
    out[0] = 0;
    char alone[100] = "";
    if (finding->alone_share > OVERLAPS * finding->bound_share)
        snprintf(alone, sizeof alone, "; %s on its own", prof_percent(finding->alone_share).text);
    if (stands_for_all_phases(findings, finding))
        snprintf(out, size, "saves at most %s, %s of %s, in %s phases",
                 prof_duration_ns(finding->rule_bound_ns).text,
                 prof_percent((double)finding->rule_bound_ns / (double)window).text,
                 prof_duration_ns(window).text, prof_count((int64_t)finding->phases).text);
    else if (finding->bound_ns != PROF_UNKNOWN && finding->bound_share < TAKEN && alone[0])
        snprintf(out, size, "saves %s%s after other fixes; %s, %s of %s, on its own",
                 finding->bound_ns > 0 ? "at most " : "nothing",
                 finding->bound_ns > 0 ? prof_duration_ns(finding->bound_ns).text : "",
                 prof_duration_ns(finding->alone_ns).text, prof_percent(finding->alone_share).text,
                 prof_duration_ns(window).text);
    else if (finding->bound_ns != PROF_UNKNOWN)
        snprintf(out, size, "saves at most %s, %s of %s%s",
                 prof_duration_ns(finding->bound_ns).text, prof_percent(finding->bound_share).text,
                 prof_duration_ns(window).text, alone);
    else if (finding->bytes != PROF_UNKNOWN)
        snprintf(out, size, "%s of memory", prof_bytes_of(finding->bytes).text);
}

void prof_report_finding_price(const struct prof_report_data *data,
                               const struct prof_finding *finding, char *out, size_t size)
{
    prof_report_finding_saving(&data->findings, finding, out, size);
    append_finding_device(data, finding, out, size);
    append_finding_phase(data, finding, out, size);
}

/* ', 10 iterations of "step"'; "" for a phase that does not repeat. */
static void iterations_text(const struct prof_phase_row *phase, char *out, size_t size)
{
    PROF_FREED char *name = prof_report_fit(phase->name, PROF_PHASE_CELLS);
    struct prof_text count = prof_counted(phase->iterations, "iteration", "iterations");
    out[0] = 0;
    if (phase->iterations && phase->name)
        snprintf(out, size, "%s of \"%s\"", count.text, name ? name : "");
    else if (phase->iterations)
        snprintf(out, size, "%s by the period of the launches", count.text);
}

/* Is `a` named before `b`? The longest first, then as they come. */
static bool comes_before(const struct prof_phase_row *a, const struct prof_phase_row *b)
{
    return a->analysed_ns != b->analysed_ns ? a->analysed_ns > b->analysed_ns : a < b;
}

/* `last` NULL: the first. */
static const struct prof_phase_row *next_longest(const struct prof_findings *findings,
                                                 const struct prof_phase_row *last)
{
    const struct prof_phase_row *next = NULL;
    for (size_t i = 0; i < findings->phase_count; i++) {
        const struct prof_phase_row *one = &findings->phases[i];
        if ((!last || comes_before(last, one)) && (!next || comes_before(one, next)))
            next = one;
    }
    return next;
}

#define ENOUGH 0.8 /* of the device time: less is explained */
#define PHASES 3   /* named */

#define WORTH_NAMING 0.01 /* of the device time */

/* ': 17 % in "profile", 9 % in "copy bandwidth"'; "" where no range is known. */
static void other_work_text(const struct prof_coverage *c, char *out, size_t size)
{
    bool named = false;
    out[0] = 0;
    for (size_t i = 0; i < c->other_count; i++) {
        double share = (double)c->other[i].device_ns / (double)c->device_ns;
        PROF_FREED char *name = prof_report_fit(c->other[i].name, PROF_PHASE_CELLS);
        if (share >= WORTH_NAMING)
            prof_append(out, size, c->other[i].name ? "%s %s in \"%s\"" : "%s %s %s",
                        *out ? "," : ":", prof_percent(share).text,
                        c->other[i].name ? (name ? name : "") : "outside of ranges");
        named |= c->other[i].name && share >= WORTH_NAMING;
    }
    if (!named)
        out[0] = 0;
}

static void append_coverage(const struct prof_coverage *c, char *out, size_t size)
{
    double all = (double)c->device_ns;
    if (!c->device_ns || (double)c->analysed_ns >= ENOUGH * all)
        return;
    int64_t other = c->device_ns - c->analysed_ns - c->skipped_ns - c->set_up_ns;
    const struct {
        int64_t ns;
        const char *where;
    } parts[] = {{c->set_up_ns, "in warm-up and setup"},
                 {c->skipped_ns, "in skipped iterations"},
                 {other, "in other work"}};
    bool any = false;
    prof_append(out, size, "; %s of the device time (",
                prof_percent((double)c->analysed_ns / all).text);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].ns <= 0)
            continue;
        prof_append(out, size, "%s%s %s", any ? ", " : "",
                    prof_percent((double)parts[i].ns / all).text, parts[i].where);
        any = true;
    }
    char names[240] = "";
    if (other > 0)
        other_work_text(c, names, sizeof names);
    prof_append(out, size, "%s)", names);
}

/* 'analysed: 123 ms to 1.21 s (1.09 s), 10 iterations of "data"' */
void prof_report_findings_analysed(const struct prof_findings *findings, char *out, size_t size)
{
    const struct prof_phase_row *phases = findings->phases;
    char one[120] = "";
    size_t count = findings->phase_count;
    if (count == 1) {
        iterations_text(phases, one, sizeof one);
        snprintf(out, size, "analysed: %s to %s (%s)%s%s", prof_duration_ns(phases->begin_ns).text,
                 prof_duration_ns(phases->end_ns).text, prof_duration_ns(findings->window_ns).text,
                 one[0] ? ", " : "", one);
    } else {
        snprintf(out, size, "analysed: %s in %s", prof_duration_ns(findings->window_ns).text,
                 prof_counted((int64_t)count, "phase", "phases").text);
        const struct prof_phase_row *longest = NULL;
        for (size_t i = 0; i < count && i < PHASES; i++) {
            longest = next_longest(findings, longest);
            iterations_text(longest, one, sizeof one);
            prof_append(out, size, "%s%s", i ? ", " : ": ", one);
        }
        if (count > PHASES)
            prof_append(out, size, " and %s more", prof_count((int64_t)(count - PHASES)).text);
    }
    append_coverage(&findings->coverage, out, size);
    if (findings->missing_share >= PROF_MISSING_WORK)
        prof_append(out, size, "; %s of the work was not recorded: idle time was not analysed",
                    prof_percent(findings->missing_share).text);
}

/* "1.42x [1.38, 1.47], measured over 1,529 recorded and 179 unrecorded iterations, ..."; "" where
 * nothing was to be measured. */
static void overhead_text(const struct prof_overhead *o, char *out, size_t size)
{
    out[0] = '\0';
    char left[120] = "";
    if (o->paused > 0 && o->source == PROF_OVERHEAD_MEASURED)
        snprintf(left, sizeof left, " (and %s in a pause, where CUPTI still costs time)",
                 prof_duration_ns((int64_t)(o->bare_ns * o->paused)).text);
    else if (o->paused > 0)
        snprintf(left, sizeof left, ", and %.2fx as long as before CUPTI was switched on",
                 o->paused);
    if (o->source == PROF_OVERHEAD_MEASURED && o->in_part)
        snprintf(
            out, size,
            "at least %.2fx, measured over %s recorded and %s unrecorded iterations, in %s: %s "
            "recorded, %s in a pause; what CUPTI costs in a pause is not known, as no iteration "
            "ended before CUPTI was switched on",
            o->low, prof_count(o->recorded).text, prof_count(o->unrecorded).text,
            prof_counted(o->pauses_used, "pause", "pauses").text,
            prof_duration_ns((int64_t)o->recorded_ns).text,
            prof_duration_ns((int64_t)o->bare_ns).text);
    else if (o->source == PROF_OVERHEAD_MEASURED)
        snprintf(out, size,
                 "%.2fx [%.2f, %.2f], measured over %s recorded and %s unrecorded iterations, in "
                 "%s: %s recorded, %s not%s",
                 o->ratio, o->low, o->high, prof_count(o->recorded).text,
                 prof_count(o->unrecorded).text,
                 prof_counted(o->pauses_used, "pause", "pauses").text,
                 prof_duration_ns((int64_t)o->recorded_ns).text,
                 prof_duration_ns((int64_t)o->bare_ns).text, left);
    else if (o->source == PROF_OVERHEAD_SAMPLED)
        snprintf(out, size,
                 "%s%s of the run: %s of %s iterations were recorded, in %s; a recorded one takes "
                 "%.2fx [%.2f, %.2f] as long as the others, which take %s%s",
                 o->in_part ? "at least " : "", prof_percent(o->of_run).text,
                 prof_count(o->recorded).text, prof_count(o->recorded + o->unrecorded).text,
                 prof_counted(o->pauses_used, "row", "rows").text, o->ratio, o->low, o->high,
                 prof_duration_ns((int64_t)o->bare_ns).text, left);
    else if (o->source == PROF_OVERHEAD_ESTIMATED)
        snprintf(out, size,
                 "about %.2fx (%.2f to %.2f), estimated from %s and what recording one costs here",
                 o->ratio, o->low, o->high, prof_counted(o->events, "event", "events").text);
    else if (o->pauses)
        snprintf(
            out, size,
            "n/a: recorded and unrecorded iterations lie side by side %s; 3 are needed: record for "
            "longer",
            prof_counted(o->pauses_used, "time", "times").text);
}

const struct prof_statement *prof_report_budget(const struct prof_report_data *data)
{
    for (size_t i = 0; i < data->trust.statement_count; i++) {
        if (strncmp(data->trust.statements[i].code, "budget_", strlen("budget_")) == 0)
            return &data->trust.statements[i];
    }
    return NULL;
}

void prof_report_overhead(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_statement *budget = prof_report_budget(data);
    overhead_text(&data->findings.overhead, out, size);
    if (budget && budget->level == PROF_TRUST_WARNING)
        prof_append(out, size, "%s%s", out[0] ? "; " : "", budget->text);
}

void prof_report_finding_place(const struct prof_report_data *data, const struct prof_place *place,
                               char *out, size_t size)
{
    const struct prof_stream *stream = prof_stream(data->capture, place->stream);
    PROF_FREED char *path = prof_report_cut(place->path, 60),
                    *name = prof_report_fit(place->name, 40);
    snprintf(out, size, "%s at %s", prof_duration_ns(place->duration_ns).text,
             prof_duration_ns(place->start_ns).text);
    if (place->path[0])
        prof_append(out, size, " in %s", path ? path : "");
    if (place->name)
        prof_append(out, size, ", %s", name ? name : "");
    if (stream && stream->native >= 0 && stream->native < ADDRESSES)
        prof_append(out, size, ", stream %lld", (long long)stream->native);
}

static void bound_terms(const struct prof_finding *finding, char *out, size_t size)
{
    out[0] = 0;
    for (size_t i = 0; i < finding->number_count; i++) {
        const struct prof_number *number = &finding->numbers[i];
        char label[64];
        if (!number->term || number->value == 0)
            continue;
        prof_number_label(number, label, sizeof label);
        prof_append(out, size, "%s%s %s",
                    number->term < 0 ? " - "
                    : *out           ? " + "
                                     : "",
                    prof_number_text(number).text, label);
    }
    if (finding->same_cause && *out)
        prof_append(out, size, ", most of it in %s (same cause)", finding->same_cause->id);
    if (*out && finding->bound_ns > 0)
        prof_append(out, size, "; likely saves %s, %s of that",
                    prof_duration((double)finding->bound_ns * finding->confidence).text,
                    prof_percent(finding->confidence).text);
}

/* The lines of the program behind a finding's places, each once: "launch (a.c:5) < step; before
 * ...".
 * "" where they are not known. */
static void lines_of(const struct prof_finding *finding, char *out, size_t size)
{
    out[0] = 0;
    for (size_t i = 0; i < finding->place_count; i++) {
        const struct prof_place *place = &finding->places[i];
        bool told = false;
        for (size_t k = 0; k < i; k++)
            told |= !strcmp(finding->places[k].line, place->line);
        if (place->line[0] && !told)
            prof_append(out, size, "%s%s%s", *out ? "; " : "", place->line_ends_it ? "before " : "",
                        place->line);
    }
}

/* A replay knows nothing of what other findings were given: it is printed where it says less. */
void prof_report_describe_finding(const struct prof_report_data *data,
                                  const struct prof_finding *finding,
                                  struct prof_report_finding *words)
{
    const char *framework = framework_call(data, finding->rule);
    words->worst[0] = words->net[0] = words->replay[0] = '\0';
    words->with = framework ? framework : finding_call(data, finding);
    lines_of(finding, words->lines, sizeof words->lines);
    if (finding->place_count)
        prof_report_finding_place(data, &finding->places[0], words->worst, sizeof words->worst);
    bound_terms(finding, words->bound, sizeof words->bound);
    if (finding->net_min_ns != PROF_UNKNOWN)
        snprintf(words->net, sizeof words->net, "%s to %s without the recording overhead%s",
                 prof_duration_ns(finding->net_min_ns).text,
                 prof_duration_ns(finding->net_max_ns).text,
                 finding->net_min_ns ? "" : ": it may be caused by the overhead alone");
    if (finding->bound_ns != PROF_UNKNOWN && finding->whatif_ns != PROF_UNKNOWN &&
        finding->whatif_ns < finding->bound_ns)
        snprintf(words->replay, sizeof words->replay,
                 "a simulation of this run without the problem saves %s",
                 prof_duration_ns(finding->whatif_ns).text);
}

/* A line of what is said of a finding; no text: none. */
struct said {
    const char *label, *text;
};

/* ---- text ------------------------------------------------------------------------------------ */

/* After `used` cells; a line that is full ends at a semicolon. */
static void text_price(const struct prof_report_page *page, size_t used, const char *price)
{
    const char *between = ": ";
    for (size_t length; *price; price += length + (price[length] == ';' ? 2 : 0)) {
        char part[200];
        length = strcspn(price, ";");
        snprintf(part, sizeof part, "%.*s", (int)length, price);
        size_t cells = prof_report_cells(part);
        bool fits = used + 2 + cells + (price[length] == ';') <= page->width;
        fprintf(page->out, "%s%s", fits ? between : *between == ':' ? ":\n    " : ";\n    ", part);
        used = fits ? used + 2 + cells : 4 + cells;
        between = "; ";
    }
    fputc('\n', page->out);
}

/* `whole`: with the place, the replay and the call; without, what was seen and what to do. */
static void text_finding(const struct prof_report_page *page, const struct prof_report_data *data,
                         const struct prof_finding *finding, bool whole)
{
    char price[600];
    struct prof_report_finding words;
    enum prof_report_tone tone =
        finding->severity == PROF_SEVERITY_CRITICAL ? PROF_TONE_BAD : PROF_TONE_HEAD;
    prof_report_describe_finding(data, finding, &words);
    prof_report_finding_price(data, finding, price, sizeof price);
    fprintf(page->out, "  %s%s%s (%s)", prof_report_tone(page, tone), finding->rule->id,
            prof_report_plain(page), severities[finding->severity]);
    text_price(page, strlen(finding->rule->id) + strlen(severities[finding->severity]) + 5, price);
    PROF_FREED char *seen = prof_report_clean(finding->seen);
    PROF_FREED char *lines = words.lines[0] ? prof_report_clean(words.lines) : NULL;
    prof_report_wrap(page, 4, "", seen ? seen : "");
    const struct said all[] = {
        {"    at", lines},
        {"    worst", whole ? words.worst : NULL},
        {"    bound", words.bound},
        {"    net", words.net},
        {"    replay", whole ? words.replay : NULL},
        {"    fix", finding->fix},
        {"    with", whole || finding->severity > PROF_SEVERITY_INFO ? words.with : NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].text && *all[i].text)
            prof_report_wrap(page, 11, all[i].label, all[i].text);
}

void prof_report_text_findings(const struct prof_report_page *page,
                               const struct prof_report_data *data,
                               enum prof_report_findings how_many)
{
    const struct prof_findings *findings = &data->findings;
    char line[600];
    if (how_many == PROF_REPORT_FINDINGS_NONE)
        return;
    if (findings->why_none)
        snprintf(line, sizeof line, "%s", findings->why_none);
    else
        prof_report_findings_analysed(findings, line, sizeof line);
    bool told = findings->why_none || findings->window_ns > 0;
    struct prof_text count_text = prof_count((int64_t)findings->count);
    const char *how_much = findings->count ? count_text.text : findings->why_none ? "n/a" : "none";
    const char *between = findings->why_none ? ": " : "; ";
    bool fits = strlen("Findings: ; ") + strlen(how_much) + prof_report_cells(line) <= page->width;
    fprintf(page->out, "\n%sFindings%s: %s%s%s\n", prof_report_tone(page, PROF_TONE_HEAD),
            prof_report_plain(page), how_much, told && fits ? between : "",
            told && fits ? line : "");
    if (told && !fits)
        prof_report_wrap(page, 2, "", line);
    prof_report_overhead(data, line, sizeof line);
    if (line[0])
        prof_report_wrap(page, 4, "  Recording overhead: ", line);
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++) {
        if (!is_shown(findings, i, count, how_many))
            continue;
        text_finding(page, data, &findings->rows[i],
                     page->all || how_many == PROF_REPORT_FINDINGS_ALL);
        count++;
    }
    if (count < findings->count)
        fprintf(page->out, "  ... and %zu more (--findings all)%s\n", findings->count - count,
                page->all ? "" : "; perfkit explain RULE says why");
    else if (count && !page->all)
        fprintf(page->out, "  perfkit explain RULE says why\n");
    if (count && page->all)
        prof_report_wrap(page, 2, "",
                         "perfkit explain RULE says why, and how the bound is computed; the order "
                         "is by severity, causes before what only says where the time goes, then "
                         "by what they likely save");
    if (how_many != PROF_REPORT_FINDINGS_ALL)
        return;
    for (size_t i = 0; i < findings->abstention_count; i++) {
        snprintf(line, sizeof line, "not checked: %s (%s)", findings->abstentions[i].rule->id,
                 findings->abstentions[i].why);
        prof_report_wrap(page, 2, "", line);
    }
}

/* ---- markdown -------------------------------------------------------------------------------- */

void prof_report_markdown_findings(FILE *out, const struct prof_report_data *data,
                                   enum prof_report_findings how_many,
                                   void (*put_prose)(FILE *out, const char *text))
{
    const struct prof_findings *findings = &data->findings;
    char line[600];
    if (how_many == PROF_REPORT_FINDINGS_NONE || !findings->count)
        return;
    prof_report_findings_analysed(findings, line, sizeof line);
    fputs("\n## Findings\n\n", out);
    put_prose(out, line);
    fputc('\n', out);
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const struct prof_finding *finding = &findings->rows[i];
        struct prof_report_finding words;
        if (!is_shown(findings, i, count, how_many))
            continue;
        count++;
        prof_report_describe_finding(data, finding, &words);
        prof_report_finding_price(data, finding, line, sizeof line);
        fprintf(out, "\n### %s (%s)%s%s\n\n", finding->rule->id, severities[finding->severity],
                line[0] ? ": " : "", line);
        put_prose(out, finding->seen);
        fputc('\n', out);
        const struct said all[] = {{"worst", words.worst},   {"fix", finding->fix},
                                   {"at", words.lines},      {"bound", words.bound},
                                   {"replay", words.replay}, {"with", words.with}};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
            if (!all[k].text || !*all[k].text)
                continue;
            fprintf(out, "\n- %s: ", all[k].label);
            put_prose(out, all[k].text);
        }
        fputc('\n', out);
    }
    if (count < findings->count)
        fprintf(out, "\n... and %zu more\n", findings->count - count);
}
