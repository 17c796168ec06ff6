/* perfkit doctor: what can be recorded on this machine, and what to do about the rest. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/build.h"
#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/option_rows.h"
#include "cli/terminal.h"
#include "libprof/base/json.h"

static void (*const checks[])(struct doctor *doctor) = {
    doctor_collector,
    doctor_cuda,
    doctor_opencl,
    doctor_system,
};

static const struct {
    const char *word, *colour;
} levels[] = {
    [DOCTOR_OK] = {"ok", "\033[32m"},
    [DOCTOR_ABSENT] = {"none", "\033[2m"},
    [DOCTOR_WARN] = {"warn", "\033[33m"},
    [DOCTOR_FAIL] = {"fail", "\033[31m"},
};

void doctor_add(struct doctor *doctor, const char *group, const char *name, enum doctor_level level,
                const char *remedy, const char *format, ...)
{
    if (doctor->count == DOCTOR_LINES)
        return;
    struct doctor_line *line = &doctor->lines[doctor->count++];
    *line = (struct doctor_line){.group = group, .name = name, .level = level};
    va_list args;
    va_start(args, format);
    vsnprintf(line->text, sizeof line->text, format, args);
    va_end(args);
    if (remedy)
        snprintf(line->remedy, sizeof line->remedy, "%s", remedy);
}

struct doctor_options {
    bool json;
};

static const struct cli_option doctor_options[] = {
    CLI_JSON_ROW(doctor_options, json, "print JSON"),
    {0},
};

static bool print_doctor_json(const struct doctor *doctor)
{
    struct prof_json json;
    prof_json_to_file(&json, stdout, 2);
    prof_json_object(&json, NULL);
    prof_json_string(&json, "version", PERFKIT_VERSION);
    prof_json_object(&json, "records");
    prof_json_bool(&json, "cuda", doctor->can_cuda);
    prof_json_bool(&json, "opencl", doctor->can_opencl);
    prof_json_bool(&json, "nvtx", doctor->can_nvtx);
    prof_json_end(&json);
    prof_json_array(&json, "checks");
    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_line *line = &doctor->lines[i];
        prof_json_object(&json, NULL);
        prof_json_string(&json, "group", line->group);
        prof_json_string(&json, "name", line->name);
        prof_json_string(&json, "level", levels[line->level].word);
        prof_json_string(&json, "text", line->text);
        prof_json_string(&json, "remedy", line->remedy[0] ? line->remedy : NULL);
        prof_json_end(&json);
    }
    prof_json_end(&json);
    prof_json_end(&json);
    return prof_json_finish(&json, NULL) == PROF_OK;
}

static void print_doctor_text(const struct doctor *doctor)
{
    bool colour = terminal_colour(stdout);
    const char *group = "";
    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_line *line = &doctor->lines[i];
        if (strcmp(group, line->group) != 0) {
            printf("%s%s\n", i ? "\n" : "", line->group);
            group = line->group;
        }
        printf("  %s%-4s%s  %-15s %s\n", colour ? levels[line->level].colour : "",
               levels[line->level].word, colour ? "\033[0m" : "", line->name, line->text);
        if (line->remedy[0])
            printf("        %-15s -> %s\n", "", line->remedy);
    }
    const struct {
        const char *name;
        bool can;
    } sources[] = {
        {"CUDA", doctor->can_cuda}, {"OpenCL", doctor->can_opencl}, {"NVTX", doctor->can_nvtx}};
    printf("\nperfkit can record here:");
    bool any = false;
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (sources[i].can) {
            printf("%s %s", any ? "," : "", sources[i].name);
            any = true;
        }
    printf("%s\n", any ? "" : " nothing");
}

static int doctor_run(const struct cli_command *command, int argc, char **argv)
{
    struct doctor_options options = {0};
    struct cli_operands operands;
    int status;
    if (!cli_parse(command, argc, argv, &options, &operands, &status))
        return status;
    static struct doctor doctor;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        checks[i](&doctor);
    bool ok = true;
    if (options.json)
        ok = print_doctor_json(&doctor);
    else
        print_doctor_text(&doctor);
    return ok && (doctor.can_cuda || doctor.can_opencl || doctor.can_nvtx) ? CLI_OK : CLI_FAILED;
}

static const struct cli_text_row doctor_statuses[] = {
    {"0", "At least one source can be recorded."},
    {"1", "Nothing can be recorded."},
    {"2", "The command line is wrong."},
    {0},
};

const struct cli_command doctor_command = {
    .name = "doctor",
    .summary = "check what can be recorded on this machine",
    .operands = "",
    .text = "Checks the collector, the NVIDIA driver and CUPTI, the OpenCL loader and its devices, "
            "and the limits of the system. Each line is `ok`, `none` (not here), `warn` or `fail`, "
            "with what to do about it.",
    .options = doctor_options,
    .statuses = doctor_statuses,
    .usage_status = CLI_USAGE,
    .run = doctor_run,
};
