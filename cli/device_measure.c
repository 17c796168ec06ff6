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

#include "cli/beside.h"
#include "cli/command.h"
#include "cli/device.h"

#define NAME "perfkit-measure"

extern char **environ;

static enum prof_status find_tool(char out[PATH_MAX], struct prof_error *err)
{
    static const char *const places[] = {NAME, "../libexec/perfkit/" NAME, "../lib*/perfkit/" NAME,
                                         "../lib/*/perfkit/" NAME, NULL};
    if (beside_self(places, out))
        return PROF_OK;
    return prof_fail(err, PROF_NOTFOUND,
                     NAME " is not beside this perfkit: build it (ninja " NAME ") or install "
                          "perfkit again");
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
        return prof_fail_errno(err, PROF_SYSTEM, "cannot start " NAME);
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
    snprintf(row->text, sizeof row->text, "%s", text);
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

/* A ceiling that is measured anew, and what is sustained of it, which is told after it. */
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

/* What, name, value, text; see kernels/ceiling/main.c. */
static void read_result_line(struct reading *reading, char *line)
{
    char *rest = line, *what = strsep(&rest, "\t"), *name = strsep(&rest, "\t");
    char *value = strsep(&rest, "\t"), *end;
    struct device_measurement *result = reading->result;
    if (!name || !value || !rest)
        return;
    rest[strcspn(rest, "\n")] = '\0';
    double number = strtod(value, &end);
    bool ok = end != value && isfinite(number) && number > 0;
    if (strcmp(what, "device") == 0)
        /* Cut and padded differently here and there. */
        reading->other_device = strncmp(name, reading->entry->name, 32) != 0;
    else if (strcmp(what, "ceiling") == 0 && ok && read_ceiling(reading, name, number, rest))
        result->measured++;
    else if (strcmp(what, "sustained") == 0 && ok)
        read_sustained_rate(reading, name, number);
    else if (strcmp(what, "library") == 0 && ok)
        read_remark(result->libraries, &result->library_count, name, number, rest);
    else if (strcmp(what, "none") == 0)
        read_remark(result->missing, &result->missing_count, name, NAN, rest);
}

static void show_measurement(const struct device_entry *entry, const char *line)
{
    const char *tab = strchr(line, '\t');
    if (!tab || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r\033[Kperfkit device: %s %u: %.*s", entry->api, entry->nth,
            (int)strcspn(tab + 1, "\t"), tab + 1);
    fflush(stderr);
}

enum prof_status device_measure(struct device_entry *entry, const struct device_request *request,
                                struct device_measurement *result, struct prof_error *err)
{
    struct reading reading = {.entry = entry, .result = result};
    char line[512];
    pid_t child;
    FILE *lines;
    int ending = 0;
    *result = (struct device_measurement){.measured = 0};
    enum prof_status status = start_ceiling_tool(entry, request, &child, &lines, err);
    if (status)
        return status;
    while (fgets(line, sizeof line, lines)) {
        show_measurement(entry, line);
        read_result_line(&reading, line);
    }
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    fclose(lines);
    while (waitpid(child, &ending, 0) < 0 && errno == EINTR)
        ;
    if (reading.other_device)
        return prof_fail(err, PROF_INVALID,
                         NAME " counts the %s devices otherwise: what it measured is not this one",
                         entry->api);
    if (WIFSIGNALED(ending))
        return prof_fail(err, PROF_SYSTEM, NAME " ended by signal %d (%s)", WTERMSIG(ending),
                         strsignal(WTERMSIG(ending)));
    if (WEXITSTATUS(ending) || !result->measured)
        return prof_fail(err, PROF_UNSUPPORTED, "nothing could be measured%s%s",
                         result->missing_count ? ": " : "",
                         result->missing_count ? result->missing[0].text : "");
    return PROF_OK;
}
