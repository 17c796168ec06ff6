/* The report for a terminal: one screen (of about 50 lines), or everything (--all). Read
 * from the top it answers, in this order: what ran and how it ended, whether the figures can be
 * trusted, how busy the devices were, what took the time, and where to look next. Sections without
 * content are one line, so that absence is stated and not guessed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/utf8.h"
#include "report/text.h"
#include "report/writers.h"
#include "report/findings.h"
#include "report/table.h"

/* ---- trust ----------------------------------------------------------------------------------- */

/* Statements at most, but for losses: on the one screen, and in the whole report. */
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
    PROF_FREED char *subject = prof_report_cut(row->subject, 40);
    fprintf(page->out, "  %-11s %s called, %s recorded", subject ? subject : "n/a",
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
    /* Calls are counted when they are made, whatever filter a report has afterwards. */
    char line[1024];
    snprintf(line, sizeof line, "called and recorded%s:", whole_run ? " in the whole run" : "");
    size_t even = 0;
    if (!trust->total_count)
        fputs("  no calls were counted\n", page->out);
    for (size_t i = 0; i < trust->total_count; i++) {
        const struct prof_balance *row = &trust->totals[i];
        if (!balance_is_even(row)) {
            print_balance(page, row);
            continue;
        }
        PROF_FREED char *subject =
            prof_report_cut(row->called == 1 ? row->subject : plural(row->subject), 40);
        prof_append(line, sizeof line, "%s %s %s", even++ ? "," : "", prof_count(row->called).text,
                    subject ? subject : "n/a");
    }
    print_graph_work(page, &trust->graphs);
    if (even)
        prof_report_wrap(page, 2, "", line);
}

/* Rows of a recording with --ring left the file; its calls are counted all the same. */
static bool is_about_ring(const struct prof_statement *statement)
{
    return strcmp(statement->code, "capture_ring") == 0;
}

static bool has_left_rows(const struct prof_trust *trust)
{
    for (size_t i = 0; i < trust->statement_count; i++)
        if (is_about_ring(&trust->statements[i]))
            return true;
    return false;
}

/* Every loss; of warnings, and in the whole report of notes, as many as people read. Of notes
 * elsewhere only that rows have left. */
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
        if (!page->all && statement->level == PROF_TRUST_NOTE && !is_about_ring(statement))
            continue;
        if (!loss && shown >= (page->all ? STATEMENTS : SCREEN_STATEMENTS)) {
            left++;
            continue;
        }
        PROF_FREED char *text = prof_report_clean(statement->text);
        prof_report_wrap(page, 11, marks[statement->level], text ? text : "");
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
    print_balances(page, trust, data->filter != NULL || has_left_rows(trust));
    print_statements(page, trust);
}

/* ---- the report ------------------------------------------------------------------------------ */

#define LABEL 11 /* columns of the labels on the left */
#define STRIP 60 /* columns of the busy strip */
/* Devices in full on the one screen, and those in one line each. */
#define SCREEN_DEVICES 1
#define SCREEN_DEVICE_LINES 8
#define SCREEN_DEVICE_STATES 2 /* where the time of each went: of so many devices at most */
#define SCREEN_STEPS 2
#define SCREEN_STATES 5  /* of a device's time, none below */
#define LEAST_STATE 0.01 /* of it */

static void headline(const struct prof_report_page *page, const char *label, const char *text)
{
    prof_report_wrap(page, LABEL, label, text);
}

/* One process that ended as it should: on the one screen that takes no line of its own. */
static bool ended_well(const struct prof_report_page *page, const struct prof_report_data *data)
{
    return !page->all && data->process_count == 1 && data->info->exit_status == 0 &&
           !prof_report_is_live(data->info) && !(data->info->exit_signal > 0);
}

static void print_machine(const struct prof_report_page *page, const struct prof_report_data *data)
{
    const struct prof_info *info = data->info;
    char when[32], line[1024];
    PROF_FREED char *host = prof_report_cut(info->host, 60), *cpu = prof_report_cut(info->cpu, 80);
    PROF_FREED char *kernel = prof_report_cut(info->kernel, 80);
    prof_report_when(info->start_realtime_ns, when, sizeof when);
    bool so_far = data->info->duration_ns == PROF_UNKNOWN && !data->filter;
    int64_t ran_ns = so_far ? prof_end_ns(data->capture) : info->duration_ns;
    snprintf(line, sizeof line, "%s%s", prof_duration_ns(ran_ns).text,
             !so_far || ran_ns == PROF_UNKNOWN ? ""
             : prof_report_ran_on(data->info)  ? " until this copy was kept"
                                               : " so far");
    if (strcmp(when, "n/a") != 0)
        prof_append(line, sizeof line, " from %s", when);
    if (info->host && host)
        prof_append(line, sizeof line, " on %s", host);
    if (ended_well(page, data))
        prof_append(line, sizeof line, "; exit status 0");
    headline(page, "Ran", line);
    snprintf(line, sizeof line, "%s", info->cpu && cpu ? cpu : "");
    if (info->cpu_count != PROF_UNKNOWN)
        prof_append(line, sizeof line, "%s%s", *line ? ", " : "",
                    prof_counted(info->cpu_count, "processor", "processors").text);
    if (info->kernel && kernel)
        prof_append(line, sizeof line, "%s%s", *line ? ", " : "", kernel);
    if (*line)
        headline(page, "Machine", line);
}

static void print_ending(const struct prof_report_page *page, const struct prof_report_data *data)
{
    const struct prof_info *info = data->info;
    char ending[96];
    size_t with_events = 0;
    if (ended_well(page, data))
        return;
    prof_report_ending(info, ending, sizeof ending);
    for (size_t i = 0; i < data->process_count; i++)
        with_events += data->processes[i].has_events;
    bool bad = info->exit_signal > 0 || info->exit_status > 0;
    bool known = strcmp(ending, "n/a") != 0;
    fprintf(page->out, "%-*s%s%s%s%s%s, %s with events\n", LABEL, known ? "Ended" : "Processes",
            bad ? prof_report_tone(page, PROF_TONE_BAD) : "", known ? ending : "",
            prof_report_plain(page), known ? "; " : "",
            known ? prof_counted((int64_t)data->process_count, "process", "processes").text
                  : prof_count((int64_t)data->process_count).text,
            prof_count((int64_t)with_events).text);
}

/* Every figure below is of the rest. */
void prof_report_text_scope(const struct prof_report_page *page,
                            const struct prof_report_data *data)
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
    for (size_t i = 0, kept = 0; i < data->trust.statement_count; i++) {
        if (strcmp(data->trust.statements[i].code, "capture_kept") != 0 || kept++ == 3)
            continue;
        PROF_FREED char *why = prof_report_cut(data->trust.statements[i].text, 300);
        headline(page, "Kept", why ? why : "");
    }
    if (data->info->kernel_filter) {
        PROF_FREED char *filter = prof_report_cut(data->info->kernel_filter, 200);
        snprintf(line, sizeof line, "only those whose name matches %s", filter ? filter : "");
        headline(page, "Kernels", line);
    }
    prof_report_filter_words(data->capture, data->filter, line, sizeof line);
    if (line[0])
        headline(page, "Only", line);
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
    PROF_FREED char *path = prof_report_cut(info->path, page->width > 60 ? page->width - 40 : 40);
    PROF_FREED char *version = prof_report_cut(info->perfkit_version, 30);
    fprintf(page->out, "%-*s%s (%s, perfkit %s)\n", LABEL, "Capture", path ? path : "",
            prof_bytes_of(info->file_bytes).text, version ? version : "n/a");
    size_t bad = losses(&data->trust);
    const char *words = prof_trust_status_words(data->trust.status);
    if (data->trust.status == PROF_TRUST_NO_LOSS_KNOWN)
        fprintf(page->out, "%-*s%s, but %s were counted\n", LABEL, "Trust", words,
                data->trust.total_count ? "not all calls" : "no calls");
    else if (data->trust.complete && page->all)
        fprintf(page->out, "%-*s%s%s%s: every call counted is accounted for\n", LABEL, "Trust",
                prof_report_tone(page, PROF_TONE_GOOD), words, prof_report_plain(page));
    else if (data->trust.complete)
        return; /* the block at the end says so */
    else if (data->trust.status == PROF_TRUST_AT_RISK)
        fprintf(page->out, "%-*s%s%s%s: records of its end may be missing, see Trust below\n",
                LABEL, "Trust", prof_report_tone(page, PROF_TONE_BAD), words,
                prof_report_plain(page));
    else if (prof_report_is_live(info) && bad == 1) /* that it is live */
        fprintf(page->out, "%-*s%sunfinished%s: %s\n", LABEL, "Trust",
                prof_report_tone(page, PROF_TONE_BAD), prof_report_plain(page),
                prof_unfinished(info));
    else
        fprintf(page->out, "%-*s%s%s%s: %zu loss%s, see Trust below\n", LABEL, "Trust",
                prof_report_tone(page, PROF_TONE_BAD), words, prof_report_plain(page), bad,
                bad == 1 ? "" : "es");
}

/* One character per span of time; where most of it was not recorded, that. */
void prof_report_text_strip(const struct prof_report_page *page,
                            const struct prof_report_data *data,
                            const struct prof_utilisation_row *row)
{
    size_t buckets = data->utilisation.buckets;
    int64_t length = data->utilisation.end_ns - data->utilisation.begin_ns;
    static const char levels[] = " .:+*#";
    if (!row->busy_share || !buckets)
        return;
    bool any = false;
    for (size_t i = 0; i < buckets; i++)
        any |= isnan(row->busy_share[i]);
    size_t used = any ? 44 : 24, room = page->width > used + 10 ? page->width - used : 10;
    size_t columns = STRIP < room ? STRIP : room;
    fputs("  over time  |", page->out);
    for (size_t c = 0; c < columns; c++) {
        size_t from = c * buckets / columns, to = (c + 1) * buckets / columns;
        double sum = 0;
        size_t known = 0;
        if (to <= from)
            to = from + 1;
        for (size_t i = from; i < to; i++)
            if (!isnan(row->busy_share[i])) {
                sum += row->busy_share[i];
                known++;
            }
        double share = known ? sum / (double)known : 0;
        size_t level = share <= 0 ? 0 : 1 + (size_t)(share * 4.999);
        bool unrecorded = 2 * known < to - from;
        fputc(unrecorded ? '-' : levels[level < 5 ? level : 5], page->out);
    }
    fprintf(page->out, "| %s%s\n", prof_duration_ns(length).text, any ? "; - is not recorded" : "");
}

static void print_device(const struct prof_report_page *page, const struct prof_report_data *data,
                         const struct prof_utilisation_row *row)
{
    const struct prof_device *device = prof_device(data->capture, row->device);
    char line[512];
    PROF_FREED char *name = prof_report_cut(device ? device->name : NULL, 60);
    PROF_FREED char *api = prof_report_cut(device ? device->api : NULL, 20);
    double window = row->window_ns > 0 ? (double)row->window_ns : 0.0 / 0.0;
    const char *label = prof_report_device_label(device);
    bool named = device && device->name;
    fprintf(page->out, "\n%s%s%s%s%s (%s", prof_report_tone(page, PROF_TONE_HEAD), label,
            prof_report_plain(page), named ? ": " : "", named && name ? name : "",
            api ? api : "n/a");
    if (device && device->memory_bytes > 0)
        fprintf(page->out, ", %s", prof_bytes_of(device->memory_bytes).text);
    fputs(")\n", page->out);
    bool behind = prof_is_behind(row);
    snprintf(line, sizeof line, "%s%s busy: %s of %s; idle %s%s", behind ? "at least " : "",
             prof_percent((double)row->busy_ns / window).text, prof_duration_ns(row->busy_ns).text,
             prof_duration_ns(row->window_ns).text, behind ? "at most " : "",
             prof_duration_ns(row->idle_ns).text);
    if (behind)
        prof_append(line, sizeof line,
                    "; %s of recorded work ran while recording was off: the device was behind the "
                    "host",
                    prof_duration_ns(row->late_ns).text);
    prof_report_wrap(page, 2, "", line);
    snprintf(line, sizeof line,
             "kernels %s, memcpy and memset %s, both at once %s; up to %s kernel%s at once",
             prof_percent((double)row->kernel_ns / window).text,
             prof_percent((double)row->memcpy_memset_ns / window).text,
             prof_percent((double)row->overlap_ns / window).text,
             prof_count(row->max_concurrent_kernels).text,
             row->max_concurrent_kernels == 1 ? "" : "s");
    prof_report_wrap(page, 2, "", line);
    snprintf(line, sizeof line,
             "idle: %s before the first operation, %s in %s, %s after the last one",
             prof_duration_ns(row->lead_ns).text, prof_duration_ns(row->gap_ns).text,
             prof_counted(row->gap_count, "gap", "gaps").text, prof_duration_ns(row->tail_ns).text);
    if (row->gaps_listed)
        prof_append(line, sizeof line, "; longest gap %s from %s on",
                    prof_duration_ns(row->gaps[0].duration_ns).text,
                    prof_duration_ns(row->gaps[0].start_ns).text);
    prof_report_wrap(page, 2, "", line);
    if (row->energy.joules > 0) {
        prof_report_energy(row, line, sizeof line);
        prof_append(line, sizeof line, ", in the %s in which it was read; at most %s off",
                    prof_duration_ns(row->energy_ns).text,
                    prof_joules(fmax(row->energy.high - row->energy.joules,
                                     row->energy.joules - row->energy.low))
                        .text);
        prof_report_wrap(page, 2, "", line);
    }
    prof_report_text_strip(page, data, row);
}

/* "GPU 0, in the 2.05 s analysed below: 39.3 % memcpy, pageable memory; 27.2 % idle: ..." */
static void print_states(const struct prof_report_page *page, const struct prof_report_data *data,
                         int64_t physical)
{
    const struct prof_device *device = prof_device(data->capture, physical);
    int64_t window = data->findings.window_ns;
    char line[600] = "";
    size_t told = 0;
    int64_t rest = window; /* the shares are of the whole interval: what is left out is named */
    if (data->utilisation.count > 1)
        prof_append(line, sizeof line, "%s, ", prof_report_device_label(device));
    prof_append(line, sizeof line, "in the %s analysed below:", prof_duration_ns(window).text);
    for (size_t i = 0; i < data->state_count && told < SCREEN_STATES; i++) {
        const struct prof_report_state *state = &data->states[i];
        double share = (double)state->ns / (double)window;
        if (state->device != physical || share < LEAST_STATE)
            continue;
        rest -= state->ns;
        prof_append(line, sizeof line, "%s %s %s", told++ ? ";" : "", prof_percent(share).text,
                    prof_slice_text(state->slice));
    }
    if (told && rest > 0)
        prof_append(line, sizeof line, "; %s other",
                    prof_percent((double)rest / (double)window).text);
    if (told)
        prof_report_wrap(page, 2, "", line);
}

/* One line each where there are more than a screen has room for. */
static void print_device_line(const struct prof_report_page *page,
                              const struct prof_report_data *data,
                              const struct prof_utilisation_row *row, size_t titles)
{
    const struct prof_device *device = prof_device(data->capture, row->device);
    size_t room = page->width > titles + 66 ? page->width - titles - 46 : 20;
    PROF_FREED char *name = prof_report_fit(device ? device->name : NULL, room);
    double window = row->window_ns > 0 ? (double)row->window_ns : 0.0 / 0.0;
    const char *label = prof_report_device_label(device);
    fprintf(page->out, "  %-*s %8s  %8s  %9s  %9s  %s\n", (int)titles, label,
            prof_percent((double)row->busy_ns / window).text,
            prof_percent((double)row->kernel_ns / window).text,
            prof_percent((double)row->memcpy_memset_ns / window).text,
            prof_duration_ns(row->idle_ns).text, name ? name : "");
}

/* Titles are ASCII. */
static size_t title_cells(const struct prof_report_data *data)
{
    size_t cells = 10;
    for (size_t i = 0; i < data->utilisation.count && i < SCREEN_DEVICE_LINES; i++) {
        size_t length = strlen(
            prof_report_device_label(prof_device(data->capture, data->utilisation.rows[i].device)));
        cells = length > cells ? length : cells;
    }
    return cells;
}

static void print_devices(const struct prof_report_page *page, const struct prof_report_data *data)
{
    const struct prof_utilisation *all = &data->utilisation;
    if (!all->count)
        fprintf(page->out, "\n%sDevices%s: %s\n", prof_report_tone(page, PROF_TONE_HEAD),
                prof_report_plain(page),
                data->info->summary   ? PROF_REPORT_NO_EVENTS
                : data->kernels.count ? "n/a: no single events are here"
                                      : "no device work was recorded");
    if (page->all || all->count <= SCREEN_DEVICES) {
        for (size_t i = 0; i < all->count; i++)
            print_device(page, data, &all->rows[i]);
        if (all->count && !page->all)
            print_states(page, data, all->rows[0].device);
        return;
    }
    size_t titles = title_cells(data);
    fprintf(page->out, "\n%sDevices%s: %s\n%s  %-*s %8s  %8s  %9s  %9s  %s%s\n",
            prof_report_tone(page, PROF_TONE_HEAD), prof_report_plain(page),
            prof_count((int64_t)all->count).text, prof_report_tone(page, PROF_TONE_FAINT),
            (int)titles, "Device", "Busy", "Kernels", "Transfers", "Idle", "Name",
            prof_report_plain(page));
    for (size_t i = 0; i < all->count && i < SCREEN_DEVICE_LINES; i++)
        print_device_line(page, data, &all->rows[i], titles);
    if (all->count > SCREEN_DEVICE_LINES)
        fprintf(page->out, "  ... and %zu more (--all)\n", all->count - SCREEN_DEVICE_LINES);
    for (size_t i = 0; i < all->count && all->count <= SCREEN_DEVICE_STATES; i++)
        print_states(page, data, all->rows[i].device);
}

static void print_next(const struct prof_report_page *page, const struct prof_report_data *data)
{
    char steps[PROF_REPORT_STEPS][PROF_REPORT_STEP_BYTES];
    size_t count = prof_report_next_steps(data, steps);
    if (!page->all && count > SCREEN_STEPS)
        count = SCREEN_STEPS;
    fprintf(page->out, "\n%sNext%s\n", prof_report_tone(page, PROF_TONE_HEAD),
            prof_report_plain(page));
    for (size_t i = 0; i < count; i++)
        prof_report_wrap(page, 4, "  -", steps[i]);
    prof_report_wrap(
        page, 4, "  -",
        page->all ? "The timeline, to open in a browser: perfkit report FILE --html report.html"
                  : "perfkit report FILE --all: every table; --html OUT: a page for a browser, "
                    "with the timeline");
}

/* An empty line is before each table; the lines of empty ones follow each other without. */
static enum prof_status print_tables(struct prof_report_output *output, struct prof_error *err)
{
    const struct prof_report_page *page = &output->page;
    enum prof_status status = PROF_OK;
    bool line_before = false;
    for (const struct prof_report_table *const *next = prof_report_tables; *next && !status;
         next++) {
        const struct prof_report_table *table = *next;
        size_t rows;
        if (page->all ? table->not_in_text : !table->first_rows)
            continue;
        prof_report_rows(output->data, table, &rows);
        if (rows < table->least_rows || !prof_report_worth(output->data, table))
            continue;
        if (rows || !line_before)
            fputc('\n', page->out);
        output->screen_rows = page->all ? 0 : table->first_rows;
        status = prof_report_put_table(output, table, err);
        line_before = !rows;
    }
    return status;
}

/* The one screen, or everything. */
static enum prof_status write_whole_text(struct prof_report_output *output,
                                         const struct prof_report_options *options,
                                         struct prof_error *err)
{
    const struct prof_report_page *page = &output->page;
    const struct prof_report_data *data = output->data;
    PROF_FREED char *command = prof_report_cut(data->info->command, 2 * (page->width - LABEL));
    fputs(prof_report_tone(page, PROF_TONE_HEAD), page->out);
    headline(page, "Command", command ? command : "");
    fputs(prof_report_plain(page), page->out);
    print_machine(page, data);
    print_ending(page, data);
    prof_report_text_scope(page, data);
    print_capture(page, data);
    print_devices(page, data);
    prof_report_text_findings(page, data, options ? options->findings : PROF_REPORT_FINDINGS_TOP);
    enum prof_status status = print_tables(output, err);
    if (!status) {
        prof_report_text_trust(page, data);
        print_next(page, data);
    }
    return status;
}

/* The same where it has no more than so many lines, else what fits. */
static enum prof_status write_screen(struct prof_report_output *output,
                                     const struct prof_report_options *options,
                                     struct prof_error *err)
{
    FILE *out = output->page.out;
    PROF_FREED char *text = NULL;
    size_t bytes, lines = 0;
    output->page.out = open_memstream(&text, &bytes);
    if (!output->page.out)
        return prof_fail(err, PROF_NOMEM, "cannot write the report: out of memory");
    enum prof_status status = write_whole_text(output, options, err);
    fclose(output->page.out);
    output->page.out = out;
    for (const char *end = text; end && (end = strchr(end, '\n')); end++)
        lines++;
    if (!status && lines <= options->lines)
        fputs(text, out);
    else if (!status)
        prof_report_text_screen(&output->page, options->lines, output->data);
    return status;
}

enum prof_status prof_report_write_text(struct prof_capture *capture,
                                        const struct prof_report_options *options, FILE *out,
                                        struct prof_error *err)
{
    struct prof_report_page page = prof_report_page(options, out);
    struct prof_report_data data;
    struct prof_report_output output = {.format = PROF_REPORT_TEXT, .page = page, .data = &data};
    enum prof_status status = page.all ? prof_report_load(capture, options, &data, err)
                                       : prof_report_load_screen(capture, options, &data, err);
    if (!status)
        status = !page.all && options && options->lines ? write_screen(&output, options, err)
                                                        : write_whole_text(&output, options, err);
    status = status ?: prof_report_flush(out, err);
    prof_report_unload(&data);
    return status;
}
