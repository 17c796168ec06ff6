/* perfkit version: what this build is and what it can record. For bug reports and for scripts that
 * depend on a feature. */
#include <stdio.h>

#include <sqlite3.h>

#include "cli/build.h"
#include "cli/commands.h"
#include "cli/option_rows.h"
#include "libprof/base/json.h"
#include "libprof/store/schema.h"
#include "libprof/wire/record.h"

struct version_options {
    bool json;
};

static const struct cli_option version_options[] = {
    CLI_JSON_ROW(version_options, json, "print JSON"),
    {0},
};

/* What is built in; PERFKIT_HAVE_* come from CMake. */
static const struct {
    const char *name;
    bool built;
} features[] = {
    {"nvtx", true},
    {"opencl", PERFKIT_HAVE_OPENCL},
    {"cuda", PERFKIT_HAVE_CUDA},
};
#define FEATURES (sizeof features / sizeof features[0])

static int print_version_json(void)
{
    struct prof_json json;
    prof_json_to_file(&json, stdout, 2);
    prof_json_object(&json, NULL);
    prof_json_string(&json, "version", PERFKIT_VERSION);
    prof_json_int(&json, "capture_format", PROF_FORMAT_VERSION);
    prof_json_int(&json, "spool_format", WIRE_VERSION);
    prof_json_string(&json, "sqlite", sqlite3_libversion());
    prof_json_string(&json, "compiler", __VERSION__);
    prof_json_object(&json, "collectors");
    for (size_t i = 0; i < FEATURES; i++)
        prof_json_bool(&json, features[i].name, features[i].built);
    prof_json_end(&json);
    prof_json_end(&json);
    return prof_json_finish(&json, NULL) == PROF_OK ? CLI_OK : CLI_FAILED;
}

static int version_run(const struct cli_command *command, int argc, char **argv)
{
    struct version_options options = {0};
    struct cli_operands operands;
    int status;
    if (!cli_parse(command, argc, argv, &options, &operands, &status))
        return status;
    if (options.json)
        return print_version_json();
    printf("perfkit %s\n", PERFKIT_VERSION);
    printf("capture format %d, spool format %d, SQLite %s\n", PROF_FORMAT_VERSION, WIRE_VERSION,
           sqlite3_libversion());
    printf("collectors:");
    for (size_t i = 0; i < FEATURES; i++)
        printf("%s %s %s", i ? "," : "", features[i].name, features[i].built ? "yes" : "no");
    printf("\n");
    return CLI_OK;
}

const struct cli_command version_command = {
    .name = "version",
    .summary = "show the version and what is built in",
    .operands = "",
    .text = "Prints the version of perfkit, of the file formats it writes, and the collectors that "
            "are built in.",
    .options = version_options,
    .usage_status = CLI_USAGE,
    .run = version_run,
};
