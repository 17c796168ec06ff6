/* perfkit device: what this machine's devices are and what they can do. With --measure their
 * ceilings are measured and kept, so that captures made afterwards carry them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/device.h"
#include "libprof/base/format.h"
#include "libprof/base/json.h"
#include "libprof/base/utf8.h"
#include "report/columns.h"

/* ---- the command ----------------------------------------------------------------------------- */

#define SHAPE 1 /* of the JSON */
#define TEXT_CELLS 25

struct device_options {
    bool measure, json, quick, against_libraries;
    const char *only, *folder;
};

static const struct cli_option device_options[] = {
    CLI_OPTION(
        device_options, measure, "measure", 0, FLAG, NULL,
        "measure what the devices can do, and keep it: a GPU takes about 50 s, on an idle machine"),
    CLI_OPTION(device_options, only, "only", 0, TEXT, "NAME,...",
               "measure these ceilings only; the others are kept as they are"),
    CLI_OPTION(device_options, against_libraries, "against-libraries", 0, FLAG, NULL,
               "with --measure: compare the results with what cuBLAS and plain memcpys reach"),
    CLI_OPTION(device_options, quick, "quick", 0, FLAG, NULL,
               "with --measure: small and short, to see that it works; nothing is kept"),
    CLI_JSON_ROW(device_options, json, "print JSON"),
    CLI_OPTION(device_options, folder, "ceilings", 0, FOLDER, "FOLDER",
               "where measured ceilings are kept", .fallback = "$XDG_DATA_HOME/perfkit/ceilings"),
    {0},
};

/* ---- what is requested ----------------------------------------------------------------------- */

/* "cuda", "opencl:0", "cpu" */
static bool entry_matches_operand(const struct device_entry *entry, const char *operand)
{
    size_t length = strlen(entry->api);
    char *end;
    if (strncmp(operand, entry->api, length) != 0)
        return false;
    if (!operand[length])
        return true;
    return operand[length] == ':' && operand[length + 1] >= '0' && operand[length + 1] <= '9' &&
           strtoul(operand + length + 1, &end, 10) == entry->nth && !*end;
}

/* Leaves the devices that the operands name. False: one names none; said on stderr. */
static bool select_devices(const char *command, struct device_list *list,
                           const struct cli_operands *operands)
{
    bool wanted[DEVICES] = {false};
    for (int o = 0; o < operands->count; o++) {
        bool any = false;
        for (size_t i = 0; i < list->count; i++) {
            bool named = entry_matches_operand(&list->entries[i], operands->values[o]);
            wanted[i] |= named;
            any |= named;
        }
        if (!any)
            return cli_refuse(command, "no device %s here: see perfkit device",
                              operands->values[o]);
    }
    size_t kept = 0;
    for (size_t i = 0; i < list->count && operands->count; i++)
        if (wanted[i])
            list->entries[kept++] = list->entries[i];
    if (operands->count)
        list->count = kept;
    return true;
}

/* Every name of a list is a ceiling's. */
static bool known_ceilings(const char *command, const char *only)
{
    char name[64];
    for (const char *at = only; at && *at;) {
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (prof_ceiling_named(name) == PROF_CEILINGS)
            return cli_refuse(command, "no ceiling is called '%s': see perfkit device --json",
                              name);
        at += length + (at[length] == ',');
    }
    return true;
}

/* ---- ceilings of one device ------------------------------------------------------------------ */

struct ceiling_pair {
    struct prof_ceiling kind; /* name, text, unit */
    double measured, sustained, theoretical;
    int64_t date_s;
    const char *measured_how, *theoretical_how;
};

/* NaN and NULL where unknown. */
static struct ceiling_pair ceiling_pair(const struct device_entry *entry,
                                        enum prof_ceiling_kind kind)
{
    struct prof_ceiling peak = device_peak(entry, kind);
    struct ceiling_pair pair = {.kind = prof_ceiling_of(kind),
                                .measured = NAN,
                                .sustained = NAN,
                                .theoretical = peak.value,
                                .theoretical_how = peak.how,
                                .date_s = PROF_UNKNOWN};
    for (size_t i = 0; i < entry->measured.count; i++) {
        const struct prof_ceiling_row *row = &entry->measured.rows[i];
        if (prof_ceiling_sustained(row->name) == kind)
            pair.sustained = row->value;
        if (strcmp(row->name, pair.kind.name) != 0)
            continue;
        pair.measured = row->value;
        pair.date_s = row->date_s;
        pair.measured_how = row->how[0] ? row->how : NULL;
    }
    return pair;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* What of the device is known, in the order of the table. */
static void print_attributes(const struct device_entry *entry)
{
    const struct prof_device *d = &entry->device;
    char text[200] = "";
    if (d->units != PROF_UNKNOWN)
        prof_append(text, sizeof text, ", %lld units", (long long)d->units);
    if (d->clock_khz > 0)
        prof_append(text, sizeof text, ", %s MHz", prof_count(d->clock_khz / 1000).text);
    if (d->memory_bytes > 0)
        prof_append(text, sizeof text, ", %s memory", prof_bytes_of(d->memory_bytes).text);
    if (d->l2_bytes > 0)
        prof_append(text, sizeof text, ", %s cache", prof_bytes_of(d->l2_bytes).text);
    if (d->compute_major > 0)
        prof_append(text, sizeof text, ", compute capability %lld.%lld",
                    (long long)d->compute_major, (long long)d->compute_minor);
    printf(*text ? "  %s\n" : "\n", *text ? text + strlen(", ") : "");
}

/* A line of ceilings, each in the unit of its kind. */
struct ceiling_line {
    const char *text, *how;
    struct prof_text measured, sustained, theoretical; /* or the library's */
    double reached;
};

static const struct prof_report_column line_columns[] = {
    STRING("text", "", NAME, 1, ceiling_line, text),
    CHARS("measured", "measured", RATIO, 1, ceiling_line, measured.text),
    PROF_COLUMN("sustained", "sustained", RATIO, 1, .storage = PROF_STORED_CHARS, .blank = true,
                .offset = offsetof(struct ceiling_line, sustained.text)),
    CHARS("theoretical", "theoretical", RATIO, 1, ceiling_line, theoretical.text),
    REAL("reached", "reached", SHARE, 1, ceiling_line, reached),
    {0},
};
static const struct prof_report_column comparison_columns[] = {
    STRING("text", "", NAME, 1, ceiling_line, text),
    CHARS("ceiling", "ceiling", RATIO, 1, ceiling_line, measured.text),
    CHARS("library", "library", RATIO, 1, ceiling_line, theoretical.text),
    REAL("reached", "reached", SHARE, 1, ceiling_line, reached),
    STRING("how", "how", NAME, 1, ceiling_line, how),
    {0},
};

static void print_lines(const struct prof_report_column *columns, const struct ceiling_line *lines,
                        size_t count)
{
    const struct prof_report_table table = {.name = "ceilings",
                                            .columns = columns,
                                            .row_bytes = sizeof *lines,
                                            .name_cells = TEXT_CELLS};
    struct prof_report_output output = {.format = PROF_REPORT_TEXT, .page.out = stdout};
    if (count)
        prof_report_put_rows(&output, &table, lines, count, NULL);
}

static void print_ceilings(const struct device_entry *entry)
{
    struct ceiling_line lines[PROF_CEILINGS];
    size_t count = 0;
    for (enum prof_ceiling_kind kind = 0; kind < PROF_CEILINGS; kind++) {
        struct ceiling_pair pair = ceiling_pair(entry, kind);
        bool matmul = prof_pipe_of_matmul(kind) != PROF_CEILINGS;
        if (isnan(pair.measured) && (matmul || isnan(pair.theoretical)))
            continue;
        struct ceiling_line *line = &lines[count++];
        *line = (struct ceiling_line){.text = pair.kind.text,
                                      .measured = device_figure(kind, pair.measured),
                                      .theoretical = device_figure(kind, pair.theoretical),
                                      .reached = pair.measured / pair.theoretical};
        if (pair.kind.unit == PROF_CEILING_FLOP)
            line->sustained = device_figure(kind, pair.sustained);
    }
    print_lines(line_columns, lines, count);
    if (!entry->measured.count) {
        puts("  never measured: perfkit device --measure");
        return;
    }
    char date[32] = "n/a";
    time_t newest = 0;
    for (size_t i = 0; i < entry->measured.count; i++)
        if (entry->measured.rows[i].date_s > newest)
            newest = entry->measured.rows[i].date_s;
    struct tm parts;
    if (gmtime_r(&newest, &parts))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &parts);
    printf("  measured %s\n", date);
}

static void print_devices_text(const struct device_list *list)
{
    bool colour = terminal_colour(stdout);
    for (size_t i = 0; i < list->count; i++) {
        const struct device_entry *entry = &list->entries[i];
        PROF_FREED char *name = prof_report_cut(entry->device.name, 60);
        PROF_FREED char *driver = prof_report_cut(entry->device.driver, 40);
        printf("%s%s%s:%u%s  %s", i ? "\n" : "", colour ? "\033[1m" : "", entry->api, entry->nth,
               colour ? "\033[0m" : "", name ? name : "");
        if (entry->device.driver)
            printf(" (driver %s)", driver ? driver : "");
        putchar('\n');
        print_attributes(entry);
        print_ceilings(entry);
    }
}

/* What the figure of a library is compared with: for copies the roof of the memory, the best of all
 * that use it. */
static double our_best(const struct device_entry *entry, enum prof_ceiling_kind kind)
{
    double best = ceiling_pair(entry, kind).measured;
    for (enum prof_ceiling_kind other = PROF_CEILING_DRAM_COPY;
         kind == PROF_CEILING_DRAM_COPY && other <= PROF_CEILING_DRAM_TRIAD; other++)
        best = fmax(best, ceiling_pair(entry, other).measured);
    return best;
}

static void print_comparison(const struct device_entry *entry,
                             const struct device_measurement *result)
{
    struct ceiling_line lines[REMARKS];
    size_t count = 0;
    for (size_t i = 0; i < result->library_count; i++) {
        const struct device_remark *row = &result->libraries[i];
        enum prof_ceiling_kind kind = prof_ceiling_named(row->name);
        if (kind == PROF_CEILINGS)
            continue;
        double ours = our_best(entry, kind);
        lines[count++] = (struct ceiling_line){.text = kind == PROF_CEILING_DRAM_COPY
                                                           ? "device memory, best"
                                                           : prof_ceiling_of(kind).text,
                                               .how = row->text,
                                               .measured = device_figure(kind, ours),
                                               .theoretical = device_figure(kind, row->value),
                                               .reached = row->value / ours};
    }
    if (count)
        printf("%s:%u against libraries\n", entry->api, entry->nth);
    print_lines(comparison_columns, lines, count);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct prof_report_value ceiling_unit(const struct prof_report_data *data, const void *row)
{
    static const char *const units[] = {
        [PROF_CEILING_BYTES] = "bytes/s", [PROF_CEILING_FLOP] = "FLOP/s", [PROF_CEILING_NS] = "ns"};
    (void)data;
    return prof_report_text(units[((const struct ceiling_pair *)row)->kind.unit]);
}

CELL(device_number, prof_report_int(((const struct device_entry *)row)->nth))

static const struct prof_report_column ceiling_columns[] = {
    STRING("name", "Ceiling", WORD, 1, ceiling_pair, kind.name),
    STRING("text", "What", NAME, 1, ceiling_pair, kind.text),
    COMPUTED("unit", "Unit", WORD, 1, ceiling_unit),
    REAL("measured", "Measured", RATIO, 1, ceiling_pair, measured),
    REAL("sustained", "Sustained", RATIO, 1, ceiling_pair, sustained),
    INT64("measured_at_s", "At", DATE, 1, ceiling_pair, date_s),
    STRING("how", "How", NAME, 1, ceiling_pair, measured_how),
    REAL("theoretical", "Theoretical", RATIO, 1, ceiling_pair, theoretical),
    STRING("formula", "Formula", NAME, 1, ceiling_pair, theoretical_how),
    {0},
};
static const struct prof_report_table ceilings_table = {
    .name = "ceilings", .columns = ceiling_columns, .row_bytes = sizeof(struct ceiling_pair)};

static const struct prof_report_column device_columns[] = {
    STRING("api", "API", WORD, 1, device_entry, device.api),
    COMPUTED("number", "Number", NUMBER, 1, device_number),
    STRING("name", "Name", NAME, 1, device_entry, device.name),
    STRING("vendor", "Vendor", NAME, 1, device_entry, device.vendor),
    STRING("driver", "Driver", NAME, 1, device_entry, device.driver),
    STRING("uuid", "UUID", NAME, 1, device_entry, device.uuid),
    STRING("kind", "Kind", WORD, 1, device_entry, device.kind),
    INT64("units", "Units", COUNT, 1, device_entry, device.units),
    INT64("clock_khz", "kHz", COUNT, 1, device_entry, device.clock_khz),
    INT64("memory_bytes", "Memory", BYTES, 1, device_entry, device.memory_bytes),
    INT64("memory_bandwidth_bytes_per_s", "Bandwidth", RATE, 1, device_entry,
          device.memory_bandwidth),
    INT64("l2_bytes", "L2", BYTES, 1, device_entry, device.l2_bytes),
    INT64("compute_major", "Major", NUMBER, 1, device_entry, device.compute_major),
    INT64("compute_minor", "Minor", NUMBER, 1, device_entry, device.compute_minor),
    {0},
};

static const struct prof_report_column library_columns[] = {
    CHARS("name", "Ceiling", WORD, 1, device_remark, name),
    REAL("value", "Library", RATIO, 1, device_remark, value),
    CHARS("how", "How", NAME, 1, device_remark, text),
    {0},
};
static const struct prof_report_table libraries_table = {
    .name = "libraries", .columns = library_columns, .row_bytes = sizeof(struct device_remark)};

static enum prof_status print_devices_json(const struct device_list *list,
                                           const struct device_measurement *results,
                                           struct prof_error *err)
{
    struct prof_json json;
    prof_json_to_file(&json, stdout, 2);
    prof_json_object(&json, NULL);
    prof_json_int(&json, "perfkit_device", SHAPE);
    prof_json_array(&json, "devices");
    for (size_t i = 0; i < list->count; i++) {
        const struct device_entry *entry = &list->entries[i];
        struct ceiling_pair pairs[PROF_CEILINGS];
        for (enum prof_ceiling_kind kind = 0; kind < PROF_CEILINGS; kind++)
            pairs[kind] = ceiling_pair(entry, kind);
        prof_json_object(&json, NULL);
        prof_report_json_members(&json, device_columns, entry);
        prof_report_json_rows(&json, "ceilings", &ceilings_table, pairs, PROF_CEILINGS);
        prof_report_json_rows(&json, "libraries", &libraries_table, results[i].libraries,
                              results[i].library_count);
        prof_json_end(&json);
    }
    prof_json_end(&json);
    prof_json_end(&json);
    return prof_json_finish(&json, err);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* True when at least one device was measured and, unless quick, all that were are kept. */
static bool measure_all(const char *command, struct device_list *list, const char *folder,
                        const struct device_options *options, struct device_measurement *results)
{
    const struct device_request request = {.only = options->only,
                                           .quick = options->quick,
                                           .against_libraries = options->against_libraries};
    bool any = false, kept = true;
    if (!options->quick && !ceiling_folder_make(folder)) { /* not after minutes of measuring */
        return cli_refuse(
            command, "cannot keep ceilings in %s: %m: give another with --ceilings FOLDER", folder);
    }
    for (size_t i = 0; i < list->count; i++) {
        struct device_entry *entry = &list->entries[i];
        struct prof_error err = {0};
        if (device_measure(entry, &request, &results[i], &err)) {
            cli_say(command, "%s:%u: %s", entry->api, entry->nth, err.message);
            continue;
        }
        any = true;
        if (!options->quick && prof_ceiling_write(folder, &entry->measured, &err)) {
            cli_say(command, "%s", err.message);
            kept = false;
        }
    }
    return any && kept;
}

static int device_run(const struct cli_command *command, void *given,
                      const struct cli_operands *operands, struct prof_error *err)
{
    static struct device_list list;
    static struct device_measurement results[DEVICES];
    const struct device_options *options = given;
    char folder[PATH_MAX] = "";
    if (options->folder)
        snprintf(folder, sizeof folder, "%s", options->folder);
    else if (!ceiling_folder(folder) && options->measure && !options->quick)
        return cli_fail(CLI_USAGE, command->name,
                        "no folder for the ceilings: set HOME, or give --ceilings FOLDER");
    if (!options->measure && (options->only || options->quick || options->against_libraries))
        return cli_fail(CLI_USAGE, command->name,
                        "--only, --quick and --against-libraries go with --measure");
    if (!known_ceilings(command->name, options->only))
        return CLI_USAGE;
    device_find_all(&list, folder[0] ? folder : NULL);
    if (!select_devices(command->name, &list, operands))
        return CLI_USAGE;
    bool ok = true;
    if (options->measure)
        ok = measure_all(command->name, &list, folder, options, results);
    if (options->json && print_devices_json(&list, results, err))
        return CLI_FAILED;
    if (!options->json)
        print_devices_text(&list);
    for (size_t i = 0; i < list.count && !options->json; i++) {
        const struct device_entry *entry = &list.entries[i];
        for (size_t m = 0; m < results[i].missing_count; m++)
            printf("%s:%u not measured: %s\n", entry->api, entry->nth, results[i].missing[m].text);
        print_comparison(entry, &results[i]);
    }
    return ok ? CLI_OK : CLI_FAILED;
}

static const struct cli_text_row device_examples[] = {
    {"perfkit device", "List the devices, with what was measured before."},
    {"perfkit device --measure", "Measure them all. Captures made afterwards carry the results."},
    {"perfkit device cuda:0 --measure --against-libraries",
     "Measure one, and see what cuBLAS reaches."},
    {0},
};

static const struct cli_text_row device_statuses[] = {
    {"0", "The devices are listed; with --measure at least one was measured, and it is kept."},
    {"1", "Nothing could be measured, or it could not be kept."},
    {"2", "The command line is wrong, or names a device that is not here."},
    {0},
};

static const struct cli_text_row device_variables[] = {
    {CEILING_FOLDER_VARIABLE, "Folder of the measured ceilings, for `run` too."},
    {0},
};

const struct cli_command device_command = {
    .name = "device",
    .summary = "list the devices and what they can do; measure it",
    .operands = "[DEVICE...]",
    .text = "Lists CUDA and OpenCL devices and the processor (named cuda:0, opencl:0, cpu:0; "
            "without the number all of that kind) with their attributes and ceilings: bandwidth of "
            "memory, cache and link, arithmetic by precision, cost of a launch. Theoretical ones "
            "follow from the attributes; --measure finds out what can be reached, by small "
            "kernels. It is kept per device and driver version, and `perfkit run` writes it into "
            "the captures that use the device, for the roofline.",
    .options = device_options,
    CLI_OPTIONS_ARE(device_options, 0),
    .examples = device_examples,
    .statuses = device_statuses,
    .variables = device_variables,
    .operand = CLI_FLAG,
    .most = DEVICES,
    .run = device_run,
};
