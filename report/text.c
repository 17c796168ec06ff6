/* The report for a terminal. Read from the top it answers, in this order: what ran and how it
 * ended, whether the figures can be trusted, how busy the devices were, what took the time, and
 * where to look next. Sections without content are one line, so that absence is told and not
 * guessed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/filter.h"
#include "report/findings.h"
#include "report/roofline.h"
#include "report/text.h"
#include "report/utf8.h"
#include "report/writers.h"

#define LABEL 11 /* columns of the labels on the left */
#define STRIP 60 /* columns of the busy strip */
#define STATEMENTS 20

static void headline(const struct prof_report_page *page, const char *label, const char *text)
{
    prof_report_wrap(page, LABEL, label, text);
}

static void print_machine(const struct prof_report_page *page, const struct prof_report_data *data)
{
    const struct prof_info *info = data->info;
    char when[32], line[1024];
    char *host = prof_report_cut(info->host, 60), *cpu = prof_report_cut(info->cpu, 80);
    char *kernel = prof_report_cut(info->kernel, 80);
    prof_report_when(info->start_realtime_ns, when, sizeof when);
    bool so_far = data->info->duration_ns == PROF_UNKNOWN && !data->filter;
    int64_t ran_ns = so_far ? prof_end_ns(data->capture) : info->duration_ns;
    snprintf(line, sizeof line, "%s%s from %s on %s", prof_duration_ns(ran_ns).text,
             so_far && ran_ns != PROF_UNKNOWN ? " so far" : "", when, host ? host : "");
    headline(page, "Ran", line);
    snprintf(line, sizeof line, "%s, %s processors, %s", cpu ? cpu : "",
             prof_count(info->cpu_count).text, kernel ? kernel : "");
    headline(page, "Machine", line);
    free(host);
    free(cpu);
    free(kernel);
}

static void print_ending(const struct prof_report_page *page, const struct prof_report_data *data)
{
    const struct prof_info *info = data->info;
    char ending[96], line[256];
    size_t with_events = 0;
    prof_report_ending(info, ending, sizeof ending);
    for (size_t i = 0; i < data->process_count; i++)
        with_events += data->processes[i].has_events;
    bool bad = info->exit_signal > 0 || info->exit_status > 0;
    fprintf(page->out, "%-*s%s%s%s", LABEL, "Ended",
            bad ? prof_report_tone(page, PROF_TONE_BAD) : "", ending, prof_report_plain(page));
    snprintf(line, sizeof line, "; %s process%s, %s with events",
             prof_count((int64_t)data->process_count).text, data->process_count == 1 ? "" : "es",
             prof_count((int64_t)with_events).text);
    fprintf(page->out, "%s\n", line);
}

/* What was left out because it was asked for: every figure below is of the rest. */
static void print_scope(const struct prof_report_page *page, const struct prof_report_data *data)
{
    char line[600];
    if (data->trust.recorded_ns != PROF_UNKNOWN) {
        bool exact = !data->trust.marks_lost;
        if (data->trust.recorded_ns == 0 && exact)
            snprintf(line, sizeof line, "nothing: no window was open");
        else
            snprintf(line, sizeof line,
                     "%s%s of it, in %s window%s%s: shares and idle times are of these",
                     exact ? "" : "about ", prof_duration_ns(data->trust.recorded_ns).text,
                     prof_count(data->trust.windows).text, data->trust.windows == 1 ? "" : "s",
                     exact ? "" : " or more");
        headline(page, "Recorded", line);
    }
    if (data->info->kernel_filter) {
        char *filter = prof_report_cut(data->info->kernel_filter, 200);
        snprintf(line, sizeof line, "only those whose name matches %s", filter ? filter : "");
        headline(page, "Kernels", line);
        free(filter);
    }
}

static size_t losses(const struct prof_trust *trust)
{
    size_t count = 0;
    for (size_t i = 0; i < trust->statement_count; i++)
        count += trust->statements[i].level == PROF_TRUST_LOSS;
    return count;
}

static void print_capture(const struct prof_report_page *page, const struct prof_report_data *data)
{
    const struct prof_info *info = data->info;
    char *path = prof_report_cut(info->path, page->width > 60 ? page->width - 40 : 40);
    fprintf(page->out, "%-*s%s (%s, perfkit %s)\n", LABEL, "Capture", path ? path : "",
            prof_bytes_of(info->file_bytes).text,
            info->perfkit_version ? info->perfkit_version : "n/a");
    free(path);
    size_t bad = losses(&data->trust);
    if (data->trust.complete && !data->trust.total_count)
        fprintf(page->out, "%-*sno loss is known, but no calls were counted to prove it\n", LABEL,
                "Trust");
    else if (data->trust.complete)
        fprintf(page->out, "%-*s%scomplete%s: every call counted is accounted for\n", LABEL,
                "Trust", prof_report_tone(page, PROF_TONE_GOOD), prof_report_plain(page));
    else if (prof_report_is_live(info) && bad == 1) /* that it is live */
        fprintf(page->out, "%-*s%sunfinished%s: still being written, or perfkit was killed\n",
                LABEL, "Trust", prof_report_tone(page, PROF_TONE_BAD), prof_report_plain(page));
    else
        fprintf(page->out, "%-*s%sINCOMPLETE%s: %zu loss%s, told under Trust below\n", LABEL,
                "Trust", prof_report_tone(page, PROF_TONE_BAD), prof_report_plain(page), bad,
                bad == 1 ? "" : "es");
}

static void print_filter(const struct prof_report_page *page, const struct prof_report_data *data)
{
    char line[600];
    prof_report_filter_words(data->capture, data->filter, line, sizeof line);
    if (line[0])
        headline(page, "Only", line);
}

/* One character per span of time: how busy the device was in it. */
static void print_strip(const struct prof_report_page *page, const struct prof_utilisation_row *row,
                        size_t buckets, int64_t length)
{
    static const char levels[] = " .:+*#";
    if (!row->busy_share || !buckets)
        return;
    size_t room = page->width > 30 ? page->width - 24 : 10, columns = STRIP < room ? STRIP : room;
    fputs("  over time  |", page->out);
    for (size_t c = 0; c < columns; c++) {
        size_t from = c * buckets / columns, to = (c + 1) * buckets / columns;
        double sum = 0;
        if (to <= from)
            to = from + 1;
        for (size_t i = from; i < to; i++)
            sum += row->busy_share[i];
        double share = sum / (double)(to - from);
        size_t level = share <= 0 ? 0 : 1 + (size_t)(share * 4.999);
        fputc(levels[level < 5 ? level : 5], page->out);
    }
    fprintf(page->out, "| %s\n", prof_duration_ns(length).text);
}

static void print_device(const struct prof_report_page *page, const struct prof_report_data *data,
                         const struct prof_utilisation_row *row)
{
    const struct prof_device *device = prof_device(data->capture, row->device);
    char label[64], line[512];
    char *name = prof_report_cut(device ? device->name : NULL, 60);
    double window = row->window_ns > 0 ? (double)row->window_ns : 0.0 / 0.0;
    prof_report_device_label(device, label, sizeof label);
    fprintf(page->out, "\n%s%s%s: %s (%s", prof_report_tone(page, PROF_TONE_HEAD), label,
            prof_report_plain(page), name ? name : "", device && device->api ? device->api : "n/a");
    if (device && device->memory_bytes > 0)
        fprintf(page->out, ", %s", prof_bytes_of(device->memory_bytes).text);
    fputs(")\n", page->out);
    free(name);
    snprintf(line, sizeof line, "%s busy: %s of %s; idle %s",
             prof_percent((double)row->busy_ns / window).text, prof_duration_ns(row->busy_ns).text,
             prof_duration_ns(row->window_ns).text, prof_duration_ns(row->idle_ns).text);
    prof_report_wrap(page, 2, "", line);
    snprintf(
        line, sizeof line, "kernels %s, transfers %s, both at once %s; up to %s kernel%s at once",
        prof_percent((double)row->kernel_ns / window).text,
        prof_percent((double)row->transfer_ns / window).text,
        prof_percent((double)row->overlap_ns / window).text,
        prof_count(row->max_concurrent_kernels).text, row->max_concurrent_kernels == 1 ? "" : "s");
    prof_report_wrap(page, 2, "", line);
    if (row->gaps_listed) {
        snprintf(line, sizeof line, "longest gap %s from %s on; %s gap%s, %s in all",
                 prof_duration_ns(row->gaps[0].duration_ns).text,
                 prof_duration_ns(row->gaps[0].start_ns).text, prof_count(row->gap_count).text,
                 row->gap_count == 1 ? "" : "s", prof_duration_ns(row->gap_ns).text);
        prof_report_wrap(page, 2, "", line);
    }
    print_strip(page, row, data->utilisation.buckets,
                data->utilisation.end_ns - data->utilisation.begin_ns);
}

static void print_devices(const struct prof_report_page *page, const struct prof_report_data *data)
{
    if (!data->utilisation.count)
        fprintf(page->out, "\n%sDevices%s: no device was used\n",
                prof_report_tone(page, PROF_TONE_HEAD), prof_report_plain(page));
    for (size_t i = 0; i < data->utilisation.count; i++)
        print_device(page, data, &data->utilisation.rows[i]);
}

static bool is_even(const struct prof_balance *row)
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
    fprintf(page->out, "  %-11s %s called, %s recorded", row->subject ? row->subject : "n/a",
            prof_count(row->called).text, prof_count(row->recorded).text);
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
    } words[] = {{"launch", "launches"},        {"transfer", "transfers"}, {"memset", "memsets"},
                 {"allocation", "allocations"}, {"free", "frees"},         {"range", "ranges"},
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
                 {"transfers", work->transfers},
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
static void print_balances(const struct prof_report_page *page, const struct prof_trust *trust)
{
    char line[1024] = "called and recorded:";
    size_t n = strlen(line), even = 0;
    if (!trust->total_count)
        fputs("  no calls were counted\n", page->out);
    for (size_t i = 0; i < trust->total_count; i++) {
        const struct prof_balance *row = &trust->totals[i];
        if (!is_even(row)) {
            print_balance(page, row);
            continue;
        }
        int wrote = snprintf(
            line + n, sizeof line - n, "%s %s %s", even++ ? "," : "", prof_count(row->called).text,
            row->called == 1 && row->subject ? row->subject : plural(row->subject));
        if (wrote > 0 && (size_t)wrote < sizeof line - n)
            n += (size_t)wrote;
    }
    print_graph_work(page, &trust->graphs);
    if (even)
        prof_report_wrap(page, 2, "", line);
}

static void print_trust(const struct prof_report_page *page, const struct prof_report_data *data)
{
    static const char *const marks[] = {
        [PROF_TRUST_NOTE] = "  note",
        [PROF_TRUST_WARNING] = "  warning",
        [PROF_TRUST_LOSS] = "  LOSS",
    };
    const struct prof_trust *trust = &data->trust;
    fprintf(page->out, "\n%sTrust%s: %s", prof_report_tone(page, PROF_TONE_HEAD),
            prof_report_plain(page),
            !trust->complete     ? "INCOMPLETE"
            : trust->total_count ? "complete"
                                 : "no loss known");
    if (trust->clock_error_ns != PROF_UNKNOWN)
        fprintf(page->out, "; device times are off by at most %s",
                prof_duration_ns(trust->clock_error_ns).text);
    fputc('\n', page->out);
    print_balances(page, trust);
    /* Every loss is told; of the rest as many as people read. */
    size_t shown = 0;
    for (size_t i = 0; i < trust->statement_count; i++) {
        const struct prof_statement *statement = &trust->statements[i];
        if (statement->level != PROF_TRUST_LOSS && shown >= STATEMENTS) {
            fprintf(page->out, "  ... and %zu more (--format json lists all)\n",
                    trust->statement_count - i);
            break;
        }
        char *text = prof_report_clean(statement->text);
        prof_report_wrap(page, 11, marks[statement->level], text ? text : "");
        free(text);
        shown++;
    }
}

static void print_next(const struct prof_report_page *page, const struct prof_report_data *data)
{
    char steps[PROF_REPORT_STEPS][PROF_REPORT_STEP_BYTES];
    size_t count = prof_report_next_steps(data, steps);
    fprintf(page->out, "\n%sNext%s\n", prof_report_tone(page, PROF_TONE_HEAD),
            prof_report_plain(page));
    for (size_t i = 0; i < count; i++)
        prof_report_wrap(page, 4, "  -", steps[i]);
    prof_report_wrap(page, 4, "  -",
                     "The timeline, to open in a browser: perfkit report FILE --html report.html");
}

static void print_roofline_notes(const struct prof_report_page *page,
                                 const struct prof_report_data *data)
{
    char notes[PROF_REPORT_NOTES][PROF_REPORT_NOTE_BYTES];
    size_t count = prof_report_roofline_notes(data, notes);
    for (size_t i = 0; i < count; i++)
        prof_report_wrap(page, 2, "", notes[i]);
}

/* Tables stand apart from each other; the lines that stand for empty ones stand together. */
static enum prof_status print_tables(const struct prof_report_page *page,
                                     const struct prof_report_data *data, struct prof_error *err)
{
    static const struct {
        const char *name;
        size_t least; /* rows below which the table is not worth its line */
    } parts[] = {{"kernels", 0}, {"counters", 1}, {"roofline", 1}, {"roofline_configs", 1},
                 {"roofline_ranges", 1},
                 {"graphs", 1},  {"transfers", 0}, {"migrations", 1},
                 {"api", 0},     {"waits", 0},    {"overhead", 1},  {"jit", 1},
                 {"ranges", 0},  {"memory", 0},   {"leaks", 1},     {"pools", 1},
                 {"streams", 1}, {"contexts", 1}, {"processes", 2}};
    enum prof_status status = PROF_OK;
    bool line_before = false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !status; i++) {
        const struct prof_report_table *table = prof_report_table(parts[i].name);
        size_t rows;
        table->rows(data, &rows);
        if (rows < parts[i].least || !prof_report_worth(data, table))
            continue;
        if (rows || !line_before)
            fputc('\n', page->out);
        status = prof_report_text_table(page, data, table, err);
        if (!strcmp(parts[i].name, "roofline"))
            print_roofline_notes(page, data);
        line_before = !rows;
    }
    return status;
}

enum prof_status prof_report_write_text(struct prof_capture *capture,
                                        const struct prof_report_options *options, FILE *out,
                                        struct prof_error *err)
{
    struct prof_report_page page = {.out = out, .width = 100};
    struct prof_report_data data;
    if (options) {
        page.top = options->top;
        page.colour = options->colour;
        if (options->width)
            page.width = options->width < 60 ? 60 : options->width;
    }
    enum prof_status status = prof_report_load(capture, options, &data, err);
    if (!status) {
        char *command = prof_report_cut(data.info->command, 2 * (page.width - LABEL));
        fputs(prof_report_tone(&page, PROF_TONE_HEAD), out);
        headline(&page, "Command", command ? command : "");
        fputs(prof_report_plain(&page), out);
        free(command);
        print_machine(&page, &data);
        print_ending(&page, &data);
        print_scope(&page, &data);
        print_capture(&page, &data);
        print_filter(&page, &data);
        print_devices(&page, &data);
        prof_report_text_findings(&page, &data,
                                  options ? options->findings : PROF_REPORT_FINDINGS_TOP);
        status = print_tables(&page, &data, err);
    }
    if (!status) {
        print_trust(&page, &data);
        print_next(&page, &data);
        status = prof_report_flush(out, err);
    }
    prof_report_unload(&data);
    return status;
}
