/* Runs perfkit-measure on one device and reads what it prints, line by line, so that a user sees
 * how far it is. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/device.h"
#include "cli/installed.h"
#include "cli/process.h"
#include "libprof/base/array.h"
#include "libprof/base/json.h"
#include "libprof/base/utf8.h"

#define MEASURE_PROGRAM "perfkit-measure"

extern char **environ;

static enum prof_status find_tool(char out[PATH_MAX], struct prof_error *err)
{
    static const char *const places[] = {MEASURE_PROGRAM, "../libexec/perfkit/" MEASURE_PROGRAM,
                                         "../lib*/perfkit/" MEASURE_PROGRAM,
                                         "../lib/*/perfkit/" MEASURE_PROGRAM, NULL};
    if (beside_self(places, out))
        return PROF_OK;
    return prof_fail(err, PROF_NOTFOUND,
                     MEASURE_PROGRAM " is not beside this perfkit: build it (ninja " MEASURE_PROGRAM
                                     ") or install the package " MEASURE_PROGRAM);
}

#define ARGUMENTS 24

struct tool_arguments {
    const char *list[ARGUMENTS + 1]; /* NULL behind the last */
    size_t count;
    char path[PATH_MAX], nth[16];
};

static void add_tool_argument(struct tool_arguments *arguments, const char *text)
{
    if (arguments->count < ARGUMENTS)
        arguments->list[arguments->count++] = text;
}

/* perfkit-measure, or a `before` that starts it, which ends with NULL. */
static enum prof_status tool_arguments(const struct device_entry *entry,
                                       const struct device_request *request,
                                       const char *const *before, struct tool_arguments *arguments,
                                       struct prof_error *err)
{
    *arguments = (struct tool_arguments){.count = 0};
    PROF_TRY(find_tool(arguments->path, err));
    snprintf(arguments->nth, sizeof arguments->nth, "%u", entry->nth);
    for (; before && *before; before++)
        add_tool_argument(arguments, *before);
    const char *const fixed[] = {arguments->path, "--backend", entry->api, "--device",
                                 arguments->nth};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        add_tool_argument(arguments, fixed[i]);
    if (request->only) {
        add_tool_argument(arguments, "--only");
        add_tool_argument(arguments, request->only);
    }
    if (request->quick)
        add_tool_argument(arguments, "--quick");
    return PROF_OK;
}

static enum prof_status start_tool(const struct tool_arguments *arguments, pid_t *child,
                                   FILE **lines, struct prof_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return prof_fail_errno(err, PROF_SYSTEM, "cannot start " MEASURE_PROGRAM);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    int code = posix_spawn(child, arguments->list[0], &actions, NULL,
                           (char *const *)(uintptr_t)arguments->list, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *lines = code ? NULL : fdopen(ends[0], "r");
    if (*lines)
        return PROF_OK;
    close(ends[0]);
    errno = code ? code : errno;
    return prof_fail_errno(err, PROF_SYSTEM, "cannot start %s", arguments->list[0]);
}

/* Every row that it prints goes to `seen`; how it ended. */
static int read_tool(pid_t child, FILE *lines, void (*seen)(void *user, const cJSON *row),
                     void *user)
{
    PROF_FREED char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, lines)) > 0) {
        cJSON *row;
        if (prof_document_parse(line, (size_t)length, MEASURE_PROGRAM, &row, NULL) == PROF_OK)
            seen(user, row);
        cJSON_Delete(row);
    }
    fclose(lines);
    return process_wait(child);
}

struct reading {
    struct device_entry *entry;
    struct device_measurement *result;
    bool other_device;
};

static void read_remark(struct device_remark *list, size_t *count, const char *name, double value,
                        const char *text)
{
    if (*count == REMARKS)
        return;
    struct device_remark *row = &list[(*count)++];
    snprintf(row->name, sizeof row->name, "%s", name);
    prof_report_clean_into(text, row->text, sizeof row->text);
    row->value = value;
}

/* Above the device's peak: refused, with the reason, whatever was measured before. */
static bool refused(struct reading *reading, const char *name, double value)
{
    char text[160];
    enum prof_ceiling_kind kind = prof_ceiling_named(name);
    double peak = kind == PROF_CEILINGS ? NAN : device_peak(reading->entry, kind).value;
    if (prof_ceiling_possible(value, peak))
        return false;
    snprintf(text, sizeof text, "%s: %s is %.2f times the theoretical %s: not a measurement", name,
             device_figure(kind, value).text, value / peak, device_figure(kind, peak).text);
    read_remark(reading->result->missing, &reading->result->missing_count, name, NAN, text);
    return true;
}

/* A ceiling that is measured again, and what is sustained of it, which is reported after it. */
static bool read_ceiling(struct reading *reading, const char *name, double value, const char *how)
{
    char row[sizeof reading->entry->measured.rows[0].name];
    struct prof_ceiling_file *file = &reading->entry->measured;
    if (refused(reading, name, value) ||
        !prof_ceiling_set(file, name, value, (int64_t)time(NULL), how))
        return false;
    snprintf(row, sizeof row, "%s" PROF_CEILING_SUSTAINED, name);
    prof_ceiling_unset(file, row);
    return true;
}

static void read_sustained_rate(struct reading *reading, const char *name, double value)
{
    char row[sizeof reading->entry->measured.rows[0].name];
    enum prof_ceiling_kind kind = prof_ceiling_named(name);
    int length = snprintf(row, sizeof row, "%s" PROF_CEILING_SUSTAINED, name);
    if (kind != PROF_CEILINGS && (size_t)length < sizeof row &&
        prof_ceiling_possible(value, device_peak(reading->entry, kind).value))
        prof_ceiling_set(&reading->entry->measured, row, value, (int64_t)time(NULL),
                         "after a second of nothing else");
}

static void show_measurement(const struct device_entry *entry, const char *name)
{
    cli_show_progress("device", "%s %u: %.80s", entry->api, entry->nth, name);
}

/* A row of what kernels/ceiling/main.c prints. */
static void read_result(void *user, const cJSON *row)
{
    struct reading *reading = user;
    const char *what = prof_document_text(row, "what"), *name = prof_document_text(row, "name");
    const char *how = prof_document_text(row, "how");
    double number = prof_document_real(row, "value");
    bool ok = isfinite(number) && number > 0;
    struct device_measurement *result = reading->result;
    if (!what || !name || !how)
        return;
    show_measurement(reading->entry, name);
    if (strcmp(what, "device") == 0)
        /* Cut and padded differently here and there. */
        reading->other_device = strncmp(name, reading->entry->name, 32) != 0;
    else if (strcmp(what, "ceiling") == 0 && ok && read_ceiling(reading, name, number, how))
        result->measured++;
    else if (strcmp(what, "sustained") == 0 && ok)
        read_sustained_rate(reading, name, number);
    else if (strcmp(what, "library") == 0 && ok)
        read_remark(result->libraries, &result->library_count, name, number, how);
    else if (strcmp(what, "none") == 0)
        read_remark(result->missing, &result->missing_count, name, NAN, how);
}

static enum prof_status fail_unmeasured(const struct device_measurement *result,
                                        struct prof_error *err)
{
    return prof_fail(err, PROF_UNSUPPORTED, "nothing could be measured%s%s",
                     result->missing_count ? ": " : "",
                     result->missing_count ? result->missing[0].text : "");
}

static enum prof_status measure_ceilings(struct device_entry *entry,
                                         const struct device_request *request,
                                         struct device_measurement *result, struct prof_error *err)
{
    struct reading reading = {.entry = entry, .result = result};
    struct tool_arguments arguments;
    pid_t child;
    FILE *lines;
    enum prof_status status = tool_arguments(entry, request, NULL, &arguments, err);
    if (!status && request->against_libraries)
        add_tool_argument(&arguments, "--against-libraries");
    status = status ?: start_tool(&arguments, &child, &lines, err);
    if (status)
        return status;
    int ending = read_tool(child, lines, read_result, &reading);
    cli_wipe_progress();
    if (reading.other_device)
        return prof_fail(err, PROF_INVALID,
                         MEASURE_PROGRAM
                         " counts the %s devices otherwise: what it measured is not this one",
                         entry->api);
    if (WIFSIGNALED(ending))
        return prof_fail(err, PROF_SYSTEM, MEASURE_PROGRAM " ended by signal %d (%s)",
                         WTERMSIG(ending), strsignal(WTERMSIG(ending)));
    return WEXITSTATUS(ending) || !result->measured ? fail_unmeasured(result, err) : PROF_OK;
}

/* ---- what recording costs -------------------------------------------------------------------- */

#define PAIRS 5 /* of runs with and without perfkit */
#define PERFKIT "/proc/self/exe"
#define FIRST_RECORD PROF_CEILING_RECORD_LAUNCH

struct call_times {
    double ns[PROF_CEILINGS]; /* of a call; 0 = not timed */
};

static void read_call_time(void *user, const cJSON *row)
{
    struct call_times *times = user;
    const char *what = prof_document_text(row, "what"), *name = prof_document_text(row, "name");
    enum prof_ceiling_kind kind = name ? prof_ceiling_named(name) : PROF_CEILINGS;
    if (what && strcmp(what, "call") == 0 && kind != PROF_CEILINGS)
        times->ns[kind] = prof_document_real(row, "value");
}

static bool time_calls(const struct device_entry *entry, const struct device_request *request,
                       const char *const *before, struct call_times *times)
{
    struct tool_arguments arguments;
    struct device_request calls = {.only = request->only, .quick = request->quick};
    pid_t child;
    FILE *lines;
    *times = (struct call_times){0};
    if (tool_arguments(entry, &calls, before, &arguments, NULL))
        return false;
    add_tool_argument(&arguments, "--calls");
    return !start_tool(&arguments, &child, &lines, NULL) &&
           read_tool(child, lines, read_call_time, times) == 0;
}

/* The median of what recording added in each pair, where half of them agree to within it. */
static void keep_costs(struct reading *reading, double added[][PAIRS], int pairs)
{
    struct device_measurement *result = reading->result;
    for (enum prof_ceiling_kind kind = FIRST_RECORD; kind < PROF_CEILINGS; kind++) {
        const char *name = prof_ceiling_of(kind).name;
        double *sorted = added[kind], median;
        char how[160];
        qsort(sorted, (size_t)pairs, sizeof *sorted, prof_ascending_double);
        median = sorted[pairs / 2];
        if (!sorted[0] && !sorted[pairs - 1])
            continue; /* not timed */
        snprintf(how, sizeof how,
                 "with perfkit run and without, in turns: %.0f to %.0f ns, %d times", sorted[0],
                 sorted[pairs - 1], pairs);
        bool agree = sorted[pairs * 3 / 4] - sorted[pairs / 4] <= median;
        if (median > 0 && agree && read_ceiling(reading, name, median, how)) {
            result->measured++;
        } else if (!(median > 0 && agree)) {
            char why[160];
            snprintf(why, sizeof why, "%s: the runs differ too much: %.0f to %.0f ns", name,
                     sorted[0], sorted[pairs - 1]);
            prof_ceiling_unset(&reading->entry->measured, name);
            read_remark(result->missing, &result->missing_count, name, NAN, why);
        }
    }
}

static bool run_pair(const struct device_entry *entry, const struct device_request *request,
                     const char *capture, double added[][PAIRS], int pair)
{
    const char *const plain[] = {PERFKIT,    "run",   "--quiet", "--force",
                                 "--output", capture, "--",      NULL};
    const char *const deep[] = {PERFKIT,           "run", "--quiet", "--force", "--output", capture,
                                "--stacks=launch", "--",  NULL};
    struct call_times bare, recorded, stacks;
    struct device_request launches = {.only = "record_launch", .quick = request->quick};
    if (!time_calls(entry, request, NULL, &bare) || !time_calls(entry, request, plain, &recorded) ||
        !time_calls(entry, &launches, deep, &stacks))
        return false;
    for (enum prof_ceiling_kind kind = FIRST_RECORD; kind < PROF_CEILINGS; kind++)
        added[kind][pair] = recorded.ns[kind] > 0 ? recorded.ns[kind] - bare.ns[kind] : 0;
    if (recorded.ns[FIRST_RECORD] > 0)
        added[PROF_CEILING_RECORD_STACK][pair] =
            stacks.ns[FIRST_RECORD] - recorded.ns[FIRST_RECORD];
    return true;
}

/* For the estimate of the recording overhead. */
static void measure_recording(struct device_entry *entry, const struct device_request *request,
                              struct device_measurement *result)
{
    struct reading reading = {.entry = entry, .result = result};
    const char *temporary = getenv("TMPDIR");
    char folder[PATH_MAX], capture[PATH_MAX + 16];
    double added[PROF_CEILINGS][PAIRS] = {{0}};
    int pairs = request->quick ? 1 : PAIRS;
    bool ok = true;
    snprintf(folder, sizeof folder, "%s/perfkit-device-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return;
    snprintf(capture, sizeof capture, "%s/calls.sqlite", folder);
    for (int pair = 0; ok && pair < pairs; pair++) {
        show_measurement(entry, "the cost of recording");
        ok = run_pair(entry, request, capture, added, pair);
    }
    if (ok)
        keep_costs(&reading, added, pairs);
    else
        read_remark(result->missing, &result->missing_count, "record_launch", NAN,
                    "the cost of recording: perfkit run on " MEASURE_PROGRAM " failed");
    cli_wipe_progress();
    unlink(capture);
    rmdir(folder);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Does the list of names have some of what recording costs, or others? NULL: both. */
static bool list_names(const char *only, bool recording)
{
    for (const char *at = only; at && *at; at += strcspn(at, ",")) {
        at += *at == ',';
        if ((strncmp(at, "record_", 7) == 0) == recording)
            return true;
    }
    return !only;
}

enum prof_status device_measure(struct device_entry *entry, const struct device_request *request,
                                struct device_measurement *result, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    *result = (struct device_measurement){.measured = 0};
    if (list_names(request->only, false))
        status = measure_ceilings(entry, request, result, err);
    if (!status && strcmp(entry->api, "cpu") != 0 && list_names(request->only, true))
        measure_recording(entry, request, result);
    if (!status && !result->measured)
        status = fail_unmeasured(result, err);
    return status;
}
