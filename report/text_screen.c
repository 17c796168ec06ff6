/* The report for a terminal that the one screen of text.c does not fit into: as many lines as there
 * are, no table. What ran, whether its records are complete, how busy the device was, what each
 * table sums up to and who comes first in it, three findings with what they save and their fix, and
 * the next step, each in a line; where the time went, in bars, takes the lines that are left. --all
 * has the rest. */
#include <stdlib.h>
#include <string.h>

#include "libprof/base/regular.h"
#include "libprof/base/utf8.h"
#include "report/findings.h"
#include "report/table.h"
#include "report/text.h"

#define LABEL 11
#define LINE 600
#define STATES 6
#define LOSSES 3
#define FINDINGS 3
#define LEAST_STATE 0.01

/* A line that grows by whole parts while they fit. */
struct line {
    char text[LINE];
    size_t used, room;
};

/* False: it does not fit, and is left out. */
static bool add_part(struct line *line, const char *between, const char *part)
{
    size_t cells = prof_report_cells(line->text) + prof_report_cells(part);
    size_t bytes = strlen(between) + strlen(part);
    if (!line->used)
        between = "";
    if (cells + strlen(between) > line->room || line->used + bytes >= sizeof line->text)
        return false;
    line->used += (size_t)snprintf(line->text + line->used, sizeof line->text - line->used, "%s%s",
                                   between, part);
    return true;
}

/* Of the part of a sentence that ends before a space at one of `ends` which is in no brackets. */
static size_t part_length(const char *text, const char *ends)
{
    int depth = 0;
    size_t i = 0;
    for (; text[i]; i++) {
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (!depth && strchr(ends, text[i]) && text[i + 1] == ' ')
            break;
    }
    return i;
}

/* As many parts of a sentence as fit; what is left out, "" = nothing. */
static const char *add_parts(struct line *line, const char *text, const char *ends)
{
    char between[] = "  ";
    for (size_t length; *text; text += length + (text[length] ? 2 : 0)) {
        char part[LINE];
        length = part_length(text, ends);
        snprintf(part, sizeof part, "%.*s", (int)length, text);
        if (!add_part(line, between, part))
            return text;
        between[0] = text[length];
    }
    return text;
}

/* A label that is too long for its column is followed by a space all the same. */
static void screen_line(const struct prof_report_page *page, const char *label, const char *text)
{
    size_t column = strlen(label) < LABEL ? LABEL : strlen(label) + 1;
    PROF_FREED char *cut = prof_report_cut(text, page->width - column);
    fprintf(page->out, "%-*s%s\n", (int)column, label, cut ? cut : "");
}

/* ---- what ran -------------------------------------------------------------------------------- */

/* What is lost or at risk; all is well in the line of the capture. A warning of a complete capture
 * has a line: without what is in brackets where that does not fit. */
static void screen_trust(const struct prof_report_page *page, const struct prof_report_data *data)
{
    static const char *const marks[] = {[PROF_TRUST_WARNING] = "  warning",
                                        [PROF_TRUST_RISK] = "  RISK",
                                        [PROF_TRUST_LOSS] = "  LOSS"};
    const struct prof_trust *trust = &data->trust;
    size_t shown = 0, more = 0;
    if (!trust->complete)
        fprintf(page->out, "%-*s%s%s%s\n", LABEL, "Trust", prof_report_tone(page, PROF_TONE_BAD),
                prof_trust_status_words(trust->status), prof_report_plain(page));
    for (int level = PROF_TRUST_LOSS; level >= PROF_TRUST_WARNING; level--) {
        for (size_t i = 0; i < trust->statement_count; i++) {
            if ((int)trust->statements[i].level != level)
                continue;
            PROF_FREED char *text =
                shown < LOSSES ? prof_report_clean(trust->statements[i].text) : NULL;
            char *aside = text && trust->complete && prof_report_cells(text) + LABEL > page->width
                              ? strstr(text, " (")
                              : NULL;
            if (aside && text[strlen(text) - 1] == ')')
                *aside = '\0';
            if (text)
                prof_report_wrap(page, LABEL, marks[level], text);
            more += shown++ >= LOSSES;
        }
    }
    if (more)
        fprintf(page->out, "  ... and %zu more (--all)\n", more);
}

static void screen_run(const struct prof_report_page *page, const struct prof_report_data *data)
{
    const struct prof_info *info = data->info;
    char text[LINE], ending[96], when[32];
    bool bad = info->exit_signal > 0 || info->exit_status > 0;
    bool so_far = info->duration_ns == PROF_UNKNOWN && !data->filter;
    fputs(prof_report_tone(page, PROF_TONE_HEAD), page->out);
    screen_line(page, "Command", info->command ? info->command : "");
    fputs(prof_report_plain(page), page->out);
    prof_report_ending(info, ending, sizeof ending);
    prof_report_when(info->start_realtime_ns, when, sizeof when);
    bool said = strcmp(ending, "n/a") != 0, dated = strcmp(when, "n/a") != 0;
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s%s",
             prof_duration_ns(so_far ? prof_end_ns(data->capture) : info->duration_ns).text,
             so_far ? " so far" : "", said ? ", " : "",
             bad ? prof_report_tone(page, PROF_TONE_BAD) : "", said ? ending : "",
             bad ? prof_report_plain(page) : "", dated ? ", from " : "", dated ? when : "");
    fprintf(page->out, "%-*s%s\n", LABEL, "Ran", text);
    prof_report_text_scope(page, data);
    snprintf(text, sizeof text, " (%s)%s%s", prof_bytes_of(info->file_bytes).text,
             data->trust.complete ? "; trust: " : "",
             data->trust.complete ? prof_trust_status_words(data->trust.status) : "");
    size_t room = page->width - LABEL - strlen(text);
    bool shorter = info->path && prof_report_cells(info->path) > room;
    PROF_FREED char *path =
        prof_report_cut(shorter ? prof_file_name(info->path) : info->path, room);
    static const char uncounted[] = " (calls were not counted)";
    if (!data->trust.total_count && path && prof_report_cells(path) + strlen(uncounted) <= room)
        prof_append(text, sizeof text, "%s", uncounted);
    fprintf(page->out, "%-*s%s%s\n", LABEL, "Capture", path ? path : "", text);
    screen_trust(page, data);
}

#define DEVICES 4

static void screen_devices(const struct prof_report_page *page, const struct prof_report_data *data)
{
    const struct prof_utilisation *all = &data->utilisation;
    for (size_t i = 0; i < all->count && i < DEVICES; i++) {
        const struct prof_utilisation_row *row = &all->rows[i];
        const struct prof_device *device = prof_device(data->capture, row->device);
        size_t label = strlen(prof_report_device_label(device));
        struct line line = {.room = page->width - (label < LABEL ? LABEL : label + 1)};
        char *name = prof_report_cut(device ? device->name : NULL, 30), text[200];
        double window = row->window_ns > 0 ? (double)row->window_ns : 0.0 / 0.0;
        snprintf(text, sizeof text, "%s busy, %s of %s",
                 prof_percent((double)row->busy_ns / window).text,
                 prof_duration_ns(row->busy_ns).text, prof_duration_ns(row->window_ns).text);
        add_part(&line, "", text);
        if (device && device->name)
            add_part(&line, ": ", name ? name : "");
        if (row->energy.joules > 0) {
            prof_report_energy(row, text, sizeof text);
            add_part(&line, "; ", text);
        }
        if (row->gaps_listed) {
            snprintf(text, sizeof text, "longest gap %s",
                     prof_duration_ns(row->gaps[0].duration_ns).text);
            add_part(&line, "; ", text);
        }
        screen_line(page, prof_report_device_label(device), line.text);
        free(name);
    }
    if (all->count > DEVICES)
        fprintf(page->out, "  ... and %zu more devices (--all)\n", all->count - DEVICES);
    if (all->count == 1)
        prof_report_text_strip(page, data, &all->rows[0]);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const struct prof_report_column *screen_column(const struct prof_report_table *table,
                                                      const char *key)
{
    const struct prof_report_column *column = table->columns;
    while (column->key && strcmp(column->key, key) != 0)
        column++;
    return column->key ? column : NULL;
}

/* "HtoD pageable 61.4 %": a row's name or else line, memory that is no device's, and share. */
static bool name_row(const struct prof_report_data *data, const struct prof_report_table *table,
                     const void *row, size_t cells, char *out, size_t size)
{
    static const char *const keys[] = {"name", "where", "source", "target"};
    const struct prof_report_column *share = screen_column(table, "share");
    struct prof_report_value value = {0};
    out[0] = 0;
    for (size_t i = 0; share && i < sizeof keys / sizeof keys[0]; i++) {
        const struct prof_report_column *column = screen_column(table, keys[i]);
        if (*out && i == 1)
            continue; /* a name says it */
        value = column ? prof_report_value(data, column, row) : (struct prof_report_value){0};
        if (value.kind != PROF_VALUE_TEXT || !value.text || (i && !strcmp(value.text, "device")))
            continue;
        PROF_FREED char *name = prof_report_fit(value.text, cells);
        prof_append(out, size, "%s%s", *out ? " " : "", name ? name : "");
    }
    value = *out ? prof_report_value(data, share, row) : value;
    if (!*out || value.kind != PROF_VALUE_REAL || !(value.real > 0))
        return false;
    prof_append(out, size, " %s", prof_percent(value.real).text);
    return true;
}

#define MIN_NAME 20

/* A line for each: what it sums up to, and who takes most. */
static void screen_tables(const struct prof_report_page *page, const struct prof_report_data *data)
{
    for (const struct prof_report_table *const *next = prof_report_tables; *next; next++) {
        const struct prof_report_table *table = *next;
        struct line line = {.room = page->width - LABEL};
        char text[LINE] = "";
        size_t count = 0;
        const char *rows = table->first_rows ? prof_report_rows(data, table, &count) : NULL;
        if (!count || count < table->least_rows || !table->totals ||
            !prof_report_worth(data, table))
            continue;
        table->totals(data, text, sizeof text);
        char *columns = strstr(text, "; of wall:");
        if (columns)
            *columns = '\0'; /* about a column that is not here */
        add_parts(&line, text, ",;");
        for (size_t i = 0; i < count && i < 4 && table->row_bytes; i++) {
            const void *row = rows + i * table->row_bytes;
            bool fits = false;
            for (size_t cells = PROF_REPORT_KERNEL_CELLS; !fits && cells >= MIN_NAME; cells -= 4)
                fits = name_row(data, table, row, cells, text, sizeof text) &&
                       add_part(&line, i ? ", " : "; ", text);
            if (!fits)
                break;
        }
        int label = (int)strcspn(table->title, " ");
        fprintf(page->out, "%.*s%*s%s\n", label, table->title, label < LABEL ? LABEL - label : 1,
                "", line.text);
    }
}

/* ---- where the time went, findings, next ----------------------------------------------------- */

static void screen_state(const struct prof_report_page *page, size_t wide, double share,
                         const char *text)
{
    static const char bar[] = "##############################";
    int filled = (int)(share * (double)wide + 0.5);
    filled = filled > (int)wide ? (int)wide : filled < 0 ? 0 : filled;
    PROF_FREED char *cut = prof_report_cut(text, page->width - wide - 13);
    fprintf(page->out, "  %7s  %-*.*s  %s\n", prof_percent(share).text, (int)wide, filled, bar,
            cut ? cut : "");
}

#define BARS 2 /* fewer are no picture */

static bool is_state_shown(const struct prof_report_data *data,
                           const struct prof_report_state *state)
{
    return state->device == data->states[0].device &&
           (double)state->ns >= LEAST_STATE * (double)data->findings.window_ns;
}

/* Bars give way to the names of the first `rows` states. */
static size_t bar_cells(const struct prof_report_page *page, const struct prof_report_data *data,
                        size_t rows)
{
    size_t most = page->width > 90 ? 30 : 24, longest = 0;
    for (size_t i = 0; i < data->state_count && rows; i++) {
        size_t cells = strlen(prof_slice_text(data->states[i].slice));
        bool shown = is_state_shown(data, &data->states[i]);
        longest = shown && cells > longest ? cells : longest;
        rows -= shown;
    }
    size_t room = page->width > longest + 13 ? page->width - longest - 13 : 0;
    return room < 8 ? 8 : room < most ? room : most;
}

/* Of the device that was analysed first, as many states as there are lines for. */
static void screen_states(const struct prof_report_page *page, const struct prof_report_data *data,
                          size_t lines)
{
    const struct prof_findings *findings = &data->findings;
    int64_t window = findings->window_ns, rest = window;
    size_t told = 0, rows = lines > BARS + 1 ? lines - 2 : 0; /* the heading, and the rest */
    size_t wide = bar_cells(page, data, rows < STATES ? rows : STATES);
    struct line line = {.room = page->width - strlen("Where the time went: ")};
    char text[LINE];
    if (window <= 0 || !data->state_count || !lines)
        return;
    snprintf(text, sizeof text, "%s analysed", prof_duration_ns(window).text);
    if (rows)
        add_part(&line, "", text);
    snprintf(text, sizeof text, "in %s",
             prof_counted((int64_t)findings->phase_count, "phase", "phases").text);
    if (rows && findings->phase_count > 1)
        add_part(&line, " ", text);
    else if (rows && findings->steps)
        add_part(&line, ", ", prof_counted(findings->steps, "iteration", "iterations").text);
    for (size_t i = 0; i < data->state_count && !rows; i++) {
        const struct prof_report_state *state = &data->states[i];
        snprintf(text, sizeof text, "%s %s", prof_percent((double)state->ns / (double)window).text,
                 prof_slice_text(state->slice));
        if (state->device != data->states[0].device || !add_part(&line, "; ", text))
            break;
    }
    fprintf(page->out, "%sWhere the time went%s: %s\n", prof_report_tone(page, PROF_TONE_HEAD),
            prof_report_plain(page), line.text);
    for (size_t i = 0; i < data->state_count && told < rows && told < STATES; i++) {
        const struct prof_report_state *state = &data->states[i];
        if (!is_state_shown(data, state))
            continue;
        screen_state(page, wide, (double)state->ns / (double)window, prof_slice_text(state->slice));
        rest -= state->ns;
        told++;
    }
    if (told && (double)rest / (double)window >= 0.0005)
        screen_state(page, wide, (double)rest / (double)window, "other");
}

/* In a line: its first sentence, or as many parts of that as fit; --all has the whole. */
static void screen_fix(const struct prof_report_page *page, const char *fix)
{
    struct line line = {.room = page->width - 4};
    PROF_FREED char *sentence = strndup(fix, part_length(fix, ".") + (strstr(fix, ". ") != NULL));
    fix = sentence ? sentence : fix;
    const char *left = add_parts(&line, fix, ",;:.");
    if (*left) {
        line = (struct line){.room = page->width - 8};
        left = add_parts(&line, fix, ",;:.");
    }
    PROF_FREED char *cut = line.used ? NULL : prof_report_cut(fix, page->width - 4);
    fprintf(page->out, "    %s%s\n", cut ? cut : line.text, *left && !cut ? " ..." : "");
}

static void screen_findings(const struct prof_report_page *page,
                            const struct prof_report_data *data)
{
    const struct prof_findings *findings = &data->findings;
    size_t listed = 0;
    fprintf(page->out, "%sFindings%s: %s%s\n", prof_report_tone(page, PROF_TONE_HEAD),
            prof_report_plain(page),
            findings->count      ? prof_count((int64_t)findings->count).text
            : findings->why_none ? findings->why_none
                                 : "none",
            findings->count > FINDINGS ? " (--findings all)" : "");
    for (size_t i = 0; i < findings->count && listed < FINDINGS; i++) {
        const struct prof_finding *finding = &findings->rows[i];
        char price[LINE];
        struct line line = {.room = page->width - 2};
        if (!prof_report_finding_is_worst_phase(findings, finding))
            continue;
        listed++;
        snprintf(line.text, sizeof line.text, "%s (%s)", finding->rule->id,
                 prof_report_severity(finding->severity));
        line.used = strlen(line.text);
        size_t title = line.used;
        prof_report_finding_price(data, finding, price, sizeof price);
        struct line saves = {.room = line.room - line.used - 2};
        add_parts(&saves, price, ",;");
        add_part(&line, ": ", saves.text);
        fprintf(page->out, "  %s%.*s%s%s\n",
                prof_report_tone(page, finding->severity == PROF_SEVERITY_CRITICAL
                                           ? PROF_TONE_BAD
                                           : PROF_TONE_HEAD),
                (int)title, line.text, prof_report_plain(page), line.text + title);
        screen_fix(page, finding->fix);
    }
}

static void screen_next(const struct prof_report_page *page, const struct prof_report_data *data)
{
    char steps[PROF_REPORT_STEPS][PROF_REPORT_STEP_BYTES];
    if (prof_report_next_steps(data, steps))
        prof_report_wrap(page, 6, "Next: ", steps[0]);
    fputs("      perfkit report FILE --all: every table; --html OUT: a page, with timeline\n",
          page->out);
}

/* ---- the screen ------------------------------------------------------------------------------ */

static size_t lines_in(const char *text)
{
    size_t lines = 0;
    for (; text && (text = strchr(text, '\n')); text++)
        lines++;
    return lines;
}

void prof_report_text_screen(const struct prof_report_page *page, size_t lines,
                             const struct prof_report_data *data)
{
    char *parts[2] = {NULL, NULL};
    size_t bytes[2];
    struct prof_report_page part = *page;
    for (int i = 0; i < 2; i++) {
        part.out = open_memstream(&parts[i], &bytes[i]);
        if (!part.out)
            break;
        if (i == 0) {
            screen_run(&part, data);
            screen_devices(&part, data);
            screen_tables(&part, data);
        } else {
            screen_findings(&part, data);
            screen_next(&part, data);
        }
        fclose(part.out);
    }
    size_t used = lines_in(parts[0]) + lines_in(parts[1]);
    fputs(parts[0] ? parts[0] : "", page->out);
    screen_states(page, data, lines > used ? lines - used : 0);
    fputs(parts[1] ? parts[1] : "", page->out);
    free(parts[0]);
    free(parts[1]);
}
