/* The perfkit command: finds the subcommand in the table and runs it. Everything a command is
 * (options, help, exit statuses) is in its own file; this one only dispatches. */
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/output_name.h"
#include "libprof/base/json.h"
#include "libprof/store/schema.h"
#include "libprof/wire/record.h"

/* ---- version --------------------------------------------------------------------------------- */

/* perfkit version: what this build is and what it can record. For bug reports and for scripts that
 * depend on a feature. */

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
    return cli_finish_json("version", &json);
}

static int version_run(const struct cli_command *command, void *given,
                       const struct cli_operands *operands, struct prof_error *err)
{
    const struct version_options *options = given;
    (void)command, (void)operands, (void)err;
    if (options->json)
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
    CLI_OPTIONS_ARE(version_options, 0),
    .run = version_run,
};

/* ---- help, and every other command ----------------------------------------------------------- */

static int help_run(const struct cli_command *command, void *given,
                    const struct cli_operands *operands, struct prof_error *err);

static const struct cli_option no_options[] = {{0}};

static const struct cli_command help_command = {
    .name = "help",
    .summary = "show the commands, or the options of one command",
    .operands = "[COMMAND]",
    .text =
        "Without a command: the list of commands. With one: what `perfkit COMMAND --help` prints.",
    .options = no_options,
    .most = 1,
    .run = help_run,
};

#define ADDRESS(name) &name##_command,
/* clang-format off */
static const struct cli_command *const command_table[] = {CLI_COMMANDS(ADDRESS) &help_command, NULL};
/* clang-format on */

const struct cli_command *const *cli_commands(void)
{
    return command_table;
}

/* Commands of other profilers, and what they are here. */
static const char *elsewhere(const char *name)
{
    static const struct {
        const char *name, *here;
    } words[] = {
        {"profile", "perfkit run"},
        {"record", "perfkit run"},
        {"launch", "perfkit run"},
        {"stats", "perfkit report --stats"},
        {"stat", "perfkit report"},
        {"show", "perfkit report"},
        {"view", "perfkit report"},
        {"compare", "perfkit diff, for a verdict perfkit gate"},
        {"check", "perfkit gate"},
        {"watch", "perfkit top"},
        {"start", "perfkit ctl start"},
        {"stop", "perfkit ctl stop"},
        {"status", "perfkit ctl status"},
        {"convert", "perfkit export"},
        {"info", "perfkit doctor, of a capture perfkit report"},
        {"analyze", "perfkit report --findings all"},
        {"query", "sqlite3 FILE: a capture is SQLite"},
        {"sql", "sqlite3 FILE: a capture is SQLite"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(name, words[i].name))
            return words[i].here;
    return NULL;
}

static int unknown_command(const char *name)
{
    const char *here = elsewhere(name);
    struct cli_nearest near = {.word = name};
    for (size_t i = 0; command_table[i]; i++)
        cli_consider(&near, command_table[i]->name);
    if (here)
        return cli_fail(CLI_USAGE, "", "unknown command '%s': here that is %s", name, here);
    if (cli_is_database(name))
        return cli_fail(CLI_USAGE, "", "unknown command '%s': to read it, perfkit report %s", name,
                        name);
    if (strchr(name, '/') && access(name, X_OK) == 0)
        return cli_fail(CLI_USAGE, "", "unknown command '%s': to record it, perfkit run -- %s",
                        name, name);
    if (near.best)
        return cli_fail(CLI_USAGE, "", "unknown command '%s': did you mean '%s'?", name, near.best);
    return cli_fail(CLI_USAGE, "", "unknown command '%s': see perfkit help", name);
}

static int help_run(const struct cli_command *command, void *given,
                    const struct cli_operands *operands, struct prof_error *err)
{
    (void)command, (void)given, (void)err;
    if (operands->count == 0) {
        cli_print_overview(false);
        return CLI_OK;
    }
    const struct cli_command *subject = cli_find(operands->values[0]);
    if (!subject)
        return unknown_command(operands->values[0]);
    cli_print_help(subject);
    return CLI_OK;
}

/* A closed standard descriptor would be taken by the first file we open, and a message would then
 * be written into that file. Opened the wrong way round, so that printing to a closed stdout fails
 * and is reported. Close-on-exec: the program that `run` starts finds it closed. */
static void guard_standard_descriptors(void)
{
    static const int modes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        int null = open("/dev/null", modes[fd] | O_CLOEXEC);
        if (null >= 0 && null != fd) {
            dup3(null, fd, O_CLOEXEC);
            close(null);
        }
    }
}

/* Text that did not reach stdout (a full disk, a closed pipe, no memory) is a failure to report. */
static int flushed(const struct cli_command *command, int status)
{
    bool short_of_memory = prof_take_note(PROF_NOMEM, NULL);
    if (status || (fflush(stdout) == 0 && !ferror(stdout) && !short_of_memory))
        return status;
    if (short_of_memory)
        cli_say(command->name, "the output is not whole: out of memory");
    else
        cli_say(command->name, "cannot write to standard output: %m");
    return command->write_status ? (int)command->write_status : CLI_FAILED;
}

int main(int argc, char **argv)
{
    guard_standard_descriptors();
    if (argc < 2) {
        cli_print_overview(true);
        return CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        name = "version";
    else if (strcmp(name, "--generate") == 0 && argc == 3)
        return cli_generate(argv[2]);
    else if (strcmp(name, "--complete") == 0)
        return cli_complete(argv + 2, argc - 2);
    else if (name[0] == '-')
        return cli_fail(CLI_USAGE, "", "unknown option '%s': put a command first, see perfkit help",
                        name);
    const struct cli_command *command = cli_find(name);
    if (!command)
        return unknown_command(name);
    if (!command->verbatim) /* a file over the limit is an error to report; a program that is
                               started keeps its own dispositions */
        signal(SIGXFSZ, SIG_IGN);
    return flushed(command, cli_run(command, argc - 1, argv + 1));
}
