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

#include "cli/device.h"
#include "cli/installed.h"
#include "libprof/base/document.h"
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
                                     ") or install perfkit again");
}

static enum prof_status start_ceiling_tool(const struct device_entry *entry,
                                           const struct device_request *request, pid_t *child,
                                           FILE **lines, struct prof_error *err)
{
    char path[PATH_MAX], nth[16];
    char *arguments[10];
    size_t count = 0;
    int ends[2];
    enum prof_status status = find_tool(path, err);
    if (status)
        return status;
    snprintf(nth, sizeof nth, "%u", entry->nth);
    const char *const fixed[] = {path, "--backend", entry->api, "--device", nth};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        arguments[count++] = (char *)(uintptr_t)fixed[i];
    if (request->only) {
        arguments[count++] = (char *)(uintptr_t) "--only";
        arguments[count++] = (char *)(uintptr_t)request->only;
    }
    if (request->quick)
        arguments[count++] = (char *)(uintptr_t) "--quick";
    if (request->against_libraries)
        arguments[count++] = (char *)(uintptr_t) "--against-libraries";
    arguments[count] = NULL;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return prof_fail_errno(err, PROF_SYSTEM, "cannot start " MEASURE_PROGRAM);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    int code = posix_spawn(child, path, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *lines = code ? NULL : fdopen(ends[0], "r");
    if (*lines)
        return PROF_OK;
    close(ends[0]);
    errno = code ? code : errno;
    return prof_fail_errno(err, PROF_SYSTEM, "cannot start %s", path);
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
    if (!isatty(STDERR_FILENO))
        return;
    char clean[80];
    prof_report_clean_into(name, clean, sizeof clean);
    fprintf(stderr, "\r\033[Kperfkit device: %s %u: %s", entry->api, entry->nth, clean);
    fflush(stderr);
}

/* A row of what kernels/ceiling/main.c prints. */
static void read_result(struct reading *reading, const cJSON *row)
{
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

enum prof_status device_measure(struct device_entry *entry, const struct device_request *request,
                                struct device_measurement *result, struct prof_error *err)
{
    struct reading reading = {.entry = entry, .result = result};
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    pid_t child;
    FILE *lines;
    int ending = 0;
    *result = (struct device_measurement){.measured = 0};
    enum prof_status status = start_ceiling_tool(entry, request, &child, &lines, err);
    if (status)
        return status;
    while ((length = getline(&line, &room, lines)) > 0) {
        cJSON *row;
        if (prof_document_parse(line, (size_t)length, MEASURE_PROGRAM, &row, NULL) == PROF_OK)
            read_result(&reading, row);
        cJSON_Delete(row);
    }
    free(line);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    fclose(lines);
    while (waitpid(child, &ending, 0) < 0 && errno == EINTR)
        ;
    if (reading.other_device)
        return prof_fail(err, PROF_INVALID,
                         MEASURE_PROGRAM
                         " counts the %s devices otherwise: what it measured is not this one",
                         entry->api);
    if (WIFSIGNALED(ending))
        return prof_fail(err, PROF_SYSTEM, MEASURE_PROGRAM " ended by signal %d (%s)",
                         WTERMSIG(ending), strsignal(WTERMSIG(ending)));
    if (WEXITSTATUS(ending) || !result->measured)
        return prof_fail(err, PROF_UNSUPPORTED, "nothing could be measured%s%s",
                         result->missing_count ? ": " : "",
                         result->missing_count ? result->missing[0].text : "");
    return PROF_OK;
}
