/* The report about iterations one by one: what is usual, which are slow, and each of them. */
#include <stdio.h>
#include <stdlib.h>

#include "libprof/base/utf8.h"
#include "report/columns.h"
#include "report/writers.h"

/* ---- series ---------------------------------------------------------------------------------- */

static struct prof_report_value phase_name(const struct prof_report_data *data, size_t phase)
{
    const struct prof_phase_row *row = &data->iterations.phases[phase];
    return prof_report_text(row->name ? row->name : "(period of the launches)");
}

static struct prof_report_value process_rank(const struct prof_report_data *data, int64_t id)
{
    const struct prof_process *process = prof_process(data->capture, id);
    return prof_report_int(process ? process->rank : PROF_UNKNOWN);
}

ROW_CELL(series_name, prof_iteration_series, s, phase_name(data, s->phase))

static const struct prof_report_column series_columns[] = {
    INT64("count", "Iterations", COUNT, 1, prof_iteration_series, count),
    INT64("warm_up", "Warm-up", COUNT, 5, prof_iteration_series, warm_up),
    REAL("median_ns", "Median", NS, 1, prof_iteration_series, median_ns),
    INT64("low_ns", "Lower quartile", NS, 2, prof_iteration_series, low_ns),
    INT64("high_ns", "Upper quartile", NS, 2, prof_iteration_series, high_ns),
    INT64("min_ns", "Min", NS, 3, prof_iteration_series, min_ns),
    INT64("max_ns", "Max", NS, 1, prof_iteration_series, max_ns),
    INT64("limit_ns", "Slow from", NS, 2, prof_iteration_series, limit_ns),
    INT64("slow", "Slow", COUNT, 1, prof_iteration_series, slow),
    INT64("period", "Every", COUNT, 4, prof_iteration_series, period),
    INT64("period_first", "From number", COUNT, 0, prof_iteration_series, period_first),
    REAL("drift", "Drift", SHARE, 4, prof_iteration_series, drift),
    INT64("total_ns", "Total", NS, 3, prof_iteration_series, total_ns),
    ENERGY("Energy each", 2, prof_iteration_series, energy),
    OF_ID("rank", "Rank", NUMBER, 5, prof_iteration_series, process, process_rank),
    BY_ID(INT64, "pid", "Process", NUMBER, 0, prof_iteration_series, process, process, pid),
    BY_ID(INT64, "thread", "Thread", NUMBER, 0, prof_iteration_series, thread, thread, tid),
    COMPUTED("name", "Phase", NAME, 1, series_name),
    {0},
};

const struct prof_report_table prof_report_iteration_series_table = {
    .name = "iteration_series",
    .part = PROF_PART_DEVICES,
    .part_order = 3,
    .optional = true,
    .title = "Iterations",
    .none = "nothing repeats",
    .help =
        "The iterations of each phase and thread, after warm-up. Slow: above the upper quartile "
        "by more than four times the distance of the quartiles. Every: the slow ones come back "
        "after so many. Drift: by how much the duration changes from the first to the last, "
        "where there is a trend. Energy each: what the device's board took from the first to the "
        "last of them, divided by their number; only where that is known within a quarter and "
        "they take nine tenths of the time.",
    .screen_rows = 12,
    ROWS(prof_iteration_series, series, iterations.series, iterations.series_count),
};

/* ---- predictions ----------------------------------------------------------------------------- */

ROW_CELL(prediction_rule, prof_prediction, p, prof_report_text(p->rule->id))
ROW_CELL(prediction_limit, prof_prediction, p, prof_report_text(prof_limit_text(p->limit)))
ROW_CELL(prediction_limit_name, prof_prediction, p, prof_report_text(prof_limit_name(p->limit)))
ROW_CELL(prediction_phase, prof_prediction, p,
         prof_report_text(data->findings.phases[p->phase].name
                              ? data->findings.phases[p->phase].name
                          : data->findings.phases[p->phase].iterations ? "(period of the launches)"
                                                                       : "(run)"))

static const struct prof_report_column prediction_columns[] = {
    COMPUTED("rule", "Without", WORD, 1, prediction_rule),
    REAL("iteration_ns", "Mean", NS, 2, prof_prediction, iteration_ns),
    REAL("predicted_ns", "Predicted", NS, 1, prof_prediction, predicted_ns),
    REAL("saved_ns", "Saves", NS, 1, prof_prediction, saved_ns),
    REAL("speedup", "Speedup", RATIO, 2, prof_prediction, speedup),
    COMPUTED("limit_text", "Then limited by", WORD, 1, prediction_limit),
    REAL("limit_share", "Share", SHARE, 3, prof_prediction, limit_share),
    COMPUTED("limit", "Limit", WORD, 0, prediction_limit_name),
    STRING("subject", "Kernel", NAME, 4, prof_prediction, subject),
    COMPUTED("phase", "Phase", NAME, 3, prediction_phase),
    {0},
};

static const void *prediction_rows(const struct prof_report_data *data, size_t *count)
{
    *count = data->findings.prediction_count;
    return data->findings.predictions;
}

const struct prof_report_table prof_report_predictions_table = {
    .name = "predictions",
    .part = PROF_PART_DEVICES,
    .part_order = 2,
    .optional = true,
    .title = "What fixing a finding would bring",
    .none = "no finding is replayed",
    .help = "The mean iteration of the finding's phase, and the same by a replay of its calls and "
            "operations without the fault, with all others: at its bound for kernels. Each by "
            "itself; kernels do not slow each other down in the replay. A replay that saves more "
            "than the finding's bound is left out. perfkit what-if predicts other changes.",
    .screen_rows = PROF_PREDICTIONS,
    .first_rows = 3,
    COMPUTED_ROWS(prof_prediction, prediction),
};

/* ---- rows ------------------------------------------------------------------------------------ */

#define ITERATION(row) ((const struct prof_iteration_row *)(row))

static const struct prof_iteration_series *series_of(const struct prof_report_data *data,
                                                     const void *row)
{
    return &data->iterations.series[ITERATION(row)->series];
}

CELL(row_phase, phase_name(data, series_of(data, row)->phase))
CELL(row_rank, process_rank(data, series_of(data, row)->process))
CELL(row_ratio,
     prof_report_real((double)ITERATION(row)->duration_ns / series_of(data, row)->median_ns))
CELL(row_verdict, prof_report_text(ITERATION(row)->warm_up ? "warm-up"
                                   : ITERATION(row)->slow  ? "slow"
                                                           : NULL))

#define STATE_COLUMN(state, name, text)                                                            \
    INT64("state_" name "_ns", text, NS, 0, prof_iteration_row, ns[PROF_SLICE_##state]),

static const struct prof_report_column iteration_columns[] = {
    INT64("number", "Iteration", NUMBER, 1, prof_iteration_row, number),
    INT64("start_ns", "At", MOMENT, 1, prof_iteration_row, start_ns),
    INT64("duration_ns", "Duration", NS, 1, prof_iteration_row, duration_ns),
    COMPUTED("ratio", "Of median", RATIO, 1, row_ratio),
    COMPUTED("verdict", "Verdict", WORD, 1, row_verdict, .blank = true),
    INT64("device_ns", "Device busy", NS, 1, prof_iteration_row, device_ns),
    INT64("api_ns", "API calls", NS, 2, prof_iteration_row, api_ns),
    INT64("launches", "Launches", COUNT, 2, prof_iteration_row, launches),
    INT64("transfers", "Memcpy, memset", COUNT, 4, prof_iteration_row, transfers),
    INT64("bytes", "Bytes", BYTES, 3, prof_iteration_row, bytes),
    INT64("allocations", "Allocations", COUNT, 4, prof_iteration_row, allocations),
    INT64("allocated_bytes", "Allocated", BYTES, 0, prof_iteration_row, allocated_bytes),
    ENERGY("Energy", 2, prof_iteration_row, energy),
    INT64("synchronizations", "Syncs", COUNT, 4, prof_iteration_row, synchronizations),
    INT64("sync_ns", "In syncs", NS, 5, prof_iteration_row, sync_ns),
    PROF_WATERFALL_STATES(STATE_COLUMN)
        INT64("device", "Device id", NUMBER, 0, prof_iteration_row, device),
    COMPUTED("rank", "Rank", NUMBER, 0, row_rank),
    BY_ID(INT64, "thread", "Thread", NUMBER, 0, prof_iteration_row, thread, thread, tid),
    COMPUTED("name", "Phase", NAME, 3, row_phase),
    {0},
};

static const struct prof_report_table rows_table = {
    .name = "iterations",
    .title = "Each iteration",
    .none = "nothing repeats",
    .help =
        "In order of start; an iteration lasts until the device work launched in it is done. "
        "Device busy: union of kernels, memcpys and memsets, on the device that its thread "
        "launches most on. API calls: union of the thread's calls that launch, copy, "
        "synchronize, allocate or build. Energy: of the board, where it is known within a quarter, "
        "which takes iterations of some 0.5 s. The states of that device (JSON, CSV) add up to the "
        "duration.",
    .screen_rows = 20,
    ROWS(prof_iteration_row, iteration, iterations.rows, iterations.count),
};

/* ---- why ------------------------------------------------------------------------------------- */

#define WHY(row) ((const struct prof_iteration_why *)(row))

/* What makes it slow, and NULL where nothing is named. */
static const struct prof_iteration_part *named_cause(const void *row)
{
    return WHY(row)->has_cause ? &WHY(row)->parts[WHY(row)->cause] : NULL;
}

static const char *known_text(const char *text)
{
    return *text ? text : NULL;
}

CELL(why_more, prof_report_int(WHY(row)->duration_ns - WHY(row)->usual_ns))
CELL(why_kind,
     prof_report_text(named_cause(row) ? prof_part_kind_name(named_cause(row)->kind) : NULL))
CELL(why_name, prof_report_text(named_cause(row) ? named_cause(row)->name : NULL))
CELL(why_cause_ns, prof_report_int(named_cause(row) ? named_cause(row)->more_ns : PROF_UNKNOWN))
CELL(why_at, prof_report_int(named_cause(row) ? WHY(row)->place.start_ns : PROF_UNKNOWN))
CELL(why_path, prof_report_text(known_text(WHY(row)->place.path)))
CELL(why_line, prof_report_text(known_text(WHY(row)->place.line)))
CELL(why_seen, prof_report_text(WHY(row)->seen))

static const struct prof_report_column why_columns[] = {
    INT64("number", "Iteration", NUMBER, 1, prof_iteration_why, number),
    INT64("duration_ns", "Duration", NS, 1, prof_iteration_why, duration_ns),
    INT64("usual_ns", "Usual", NS, 3, prof_iteration_why, usual_ns),
    COMPUTED("more_ns", "More", CHANGE, 1, why_more),
    COMPUTED("cause_more_ns", "By the cause", CHANGE, 2, why_cause_ns, .blank = true),
    COMPUTED("cause_start_ns", "From", MOMENT, 3, why_at, .blank = true),
    COMPUTED("cause", "Kind", WORD, 0, why_kind, .blank = true),
    COMPUTED("cause_name", "Name", NAME, 0, why_name, .blank = true),
    COMPUTED("range", "In", NAME, 5, why_path, .blank = true),
    COMPUTED("line", "Line", NAME, 4, why_line, .blank = true),
    INT64("compared", "Compared with", COUNT, 0, prof_iteration_why, compared),
    COMPUTED("seen", "First cause", PROSE, 1, why_seen),
    {0},
};

const struct prof_report_table prof_report_slow_iterations_table = {
    .part = PROF_PART_DEVICES,
    .part_order = 3,
    .optional = true,
    .name = "slow_iterations",
    .title = "Slow iterations",
    .none = "no iteration is slow",
    .help =
        "Those that take most more than the median of the others, in order of start, and of the "
        "parts that make them slow the one that deviates first in time. `--why N` shows all "
        "parts of one.",
    .screen_rows = PROF_REPORT_EXPLAINED,
    .name_cells = 40,
    ROWS(prof_iteration_why, why, iterations.whys, iterations.why_count),
};

#define PART(row) ((const struct prof_iteration_part *)(row))

CELL(part_kind, prof_report_text(prof_part_kind_name(PART(row)->kind)))
CELL(part_text, prof_report_text(prof_part_kind_text(PART(row)->kind)))

static const struct prof_report_column part_columns[] = {
    INT64("more_ns", "Difference", CHANGE, 1, prof_iteration_part, more_ns),
    INT64("time_ns", "Here", NS, 1, prof_iteration_part, ns),
    INT64("usual_ns", "Usual", NS, 1, prof_iteration_part, usual_ns),
    INT64("count", "Count", COUNT, 2, prof_iteration_part, count),
    REAL("usual_count", "Usual count", RATIO, 2, prof_iteration_part, usual_count),
    COMPUTED("kind", "Kind", WORD, 0, part_kind),
    COMPUTED("part", "Part", WORD, 1, part_text),
    STRING("name", "Name", NAME, 1, prof_iteration_part, name),
    {0},
};

static const void *part_rows(const struct prof_report_data *data, size_t *count)
{
    const struct prof_iteration_why *why =
        data->iterations.why_count ? data->iterations.whys : NULL;
    *count = why ? why->part_count : 0;
    return why ? why->parts : NULL;
}

static void part_totals(const struct prof_report_data *data, char *out, size_t size)
{
    const struct prof_iteration_why *why = data->iterations.whys;
    if (data->iterations.why_count && why->compared)
        snprintf(out, size, "%s in all, usually %s", prof_duration_ns(why->duration_ns).text,
                 prof_duration_ns(why->usual_ns).text);
}

static const struct prof_report_table parts_table = {
    .name = "parts",
    .title = "Where the difference is",
    .none = "nothing repeats",
    .help =
        "Each nanosecond of the iteration is in one part, so the parts add up to it, and the "
        "differences to that from the median of the others. Usual: of those nearest the median, "
        "brought to it. Count: operations and calls that begin in it.",
    .screen_rows = 15,
    .name_cells = 40,
    .totals = part_totals,
    COMPUTED_ROWS(prof_iteration_part, part),
};

/* ---- the document ---------------------------------------------------------------------------- */

const struct prof_report_table *const prof_report_iteration_tables[] = {
    &prof_report_iteration_series_table, &prof_report_slow_iterations_table, &rows_table, NULL};
const struct prof_report_table *const prof_report_why_tables[] = {&parts_table, NULL};

static bool has_no_iterations(const struct prof_report_data *data)
{
    return data->iterations.why_none != NULL;
}

/* How many are slow, and of how many phases that is not known. */
static void describe_slow(const struct prof_iteration_list *list, struct prof_report_notes *notes)
{
    size_t size = sizeof notes->text[0], few = 0;
    int64_t slow = 0, known = 0, most = 0;
    for (size_t i = 0; i < list->series_count; i++) {
        const struct prof_iteration_series *s = &list->series[i];
        bool too_few = s->limit_ns == PROF_UNKNOWN;
        few += too_few;
        most = too_few && s->count > most ? s->count : most;
        known += too_few ? 0 : s->count;
        slow += s->slow;
    }
    if (known)
        snprintf(notes->text[notes->count++], size, "%s of %s %s slow.",
                 slow ? prof_count(slow).text : "None",
                 prof_counted(known, "iteration after warm-up", "iterations after warm-up").text,
                 slow > 1 ? "are" : "is");
    if (few)
        snprintf(notes->text[notes->count++], size,
                 "%s too few iterations after warm-up (%s%s) to say which are slow.",
                 prof_counted((int64_t)few, "phase has", "phases have").text,
                 few > 1 ? "at most " : "", prof_count(most).text);
}

static void describe_iterations(const struct prof_report_data *data,
                                struct prof_report_notes *notes)
{
    const struct prof_iteration_list *list = &data->iterations;
    size_t size = sizeof notes->text[0], left = 0;
    notes->count = 0;
    if (list->why_none) {
        snprintf(notes->text[notes->count++], size, "Not available: %s.", list->why_none);
        return;
    }
    describe_slow(list, notes);
    if (list->left_out)
        snprintf(notes->text[notes->count++], size,
                 "%s not recorded (--overhead=PERCENT): iterations are numbered among the recorded "
                 "ones.",
                 prof_counted(list->left_out, "more iteration was", "more iterations were").text);
    for (size_t i = 0; i < list->series_count; i++)
        left += list->series[i].period > 0;
    for (size_t i = 0; i < list->series_count && left; i++) {
        const struct prof_iteration_series *s = &list->series[i];
        if (!s->period)
            continue;
        if (left > 1 && notes->count + 1 == PROF_REPORT_NOTES) {
            snprintf(notes->text[notes->count++], size,
                     "Of %zu more phases, too, slow iterations come at equal distances (JSON: "
                     "period).",
                     left);
            break;
        }
        left--;
        struct prof_report_value name = phase_name(data, s->phase);
        PROF_FREED char *phase = prof_report_cut(name.text, 60);
        snprintf(notes->text[notes->count++], size,
                 "Of %s every %lldth iteration is slow, from number %s on.", phase ? phase : "",
                 (long long)s->period, prof_count(s->period_first).text);
    }
}

static void iterations_json_members(struct prof_json *json, const struct prof_report_data *data)
{
    prof_json_string(json, "why_none", data->iterations.why_none);
}

static enum prof_status load_iterations(struct prof_capture *capture,
                                        const struct prof_report_options *options,
                                        struct prof_report_data *data, struct prof_error *err)
{
    struct prof_iteration_choice explain = {.number = options ? options->why : 0,
                                            .slow = PROF_REPORT_EXPLAINED};
    PROF_TRY(prof_report_load_trust(capture, options, data, err));
    return prof_iteration_list(capture, data->filter, &explain, &data->iterations, err);
}

const struct prof_report_document prof_report_iterations_document = {
    .key = "perfkit_iterations",
    .shape = 1,
    .tables = prof_report_iteration_tables,
    .load = load_iterations,
    .has_nothing = has_no_iterations,
    .part = "Iterations of ",
    .describe = describe_iterations,
    .json_members = iterations_json_members,
};

/* ---- why one is slow ------------------------------------------------------------------------- */

static void describe_why(const struct prof_report_data *data, struct prof_report_notes *notes)
{
    const struct prof_iteration_list *list = &data->iterations;
    size_t size = sizeof notes->text[0];
    notes->count = 0;
    if (list->why_none) {
        snprintf(notes->text[notes->count++], size, "Not available: %s.", list->why_none);
        return;
    }
    const struct prof_iteration_why *why = list->whys;
    int64_t more = why->duration_ns - why->usual_ns;
    char usual[80] = "";
    if (why->compared)
        snprintf(usual, sizeof usual, ", %s %s than usual", prof_duration_ns(llabs(more)).text,
                 more < 0 ? "less" : "more");
    snprintf(notes->text[notes->count++], size, "Iteration %lld of %s, at %s: %s%s.",
             (long long)why->number, prof_count((int64_t)list->count).text,
             prof_duration_ns(list->rows[why->number - 1].start_ns).text,
             prof_duration_ns(why->duration_ns).text, usual);
    PROF_FREED char *seen = prof_report_cut(why->seen, PROF_REPORT_NOTE_BYTES - 20);
    snprintf(notes->text[notes->count++], size, why->has_cause ? "First cause: %s." : "%s.",
             seen ? seen : "");
    if (!why->has_cause)
        return;
    PROF_FREED char *path = *why->place.path ? prof_report_cut(why->place.path, 120) : NULL;
    PROF_FREED char *line = *why->place.line ? prof_report_cut(why->place.line, 160) : NULL;
    snprintf(notes->text[notes->count++], size, "It begins at %s%s%s%s%s.",
             prof_duration_ns(why->place.start_ns).text, path ? ", in " : "", path ? path : "",
             !line                     ? ""
             : why->place.line_ends_it ? ", before "
                                       : ", called from ",
             line ? line : "");
}

static void why_json_members(struct prof_json *json, const struct prof_report_data *data)
{
    iterations_json_members(json, data);
    prof_report_json_rows(json, "iteration", &prof_report_slow_iterations_table,
                          data->iterations.whys, data->iterations.why_count);
}

const struct prof_report_document prof_report_why_document = {
    .key = "perfkit_why",
    .shape = 1,
    .tables = prof_report_why_tables,
    .load = load_iterations,
    .has_nothing = has_no_iterations,
    .part = "An iteration of ",
    .describe = describe_why,
    .json_members = why_json_members,
};
