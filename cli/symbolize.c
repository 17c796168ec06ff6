/* perfkit symbolize: names for the stacks of a capture, once more. `perfkit run` does it at its
 * end; this is for a capture whose debug files came later, or that was made on another machine. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/capture_end.h"
#include "cli/command.h"
#include "cli/process.h"
#include "cli/find_capture.h"
#include "cli/installed.h"
#include "libprof/base/format.h"
#include "libprof/base/regular.h"
#include "libprof/include/prof_stack.h"

/* ---- for all commands ------------------------------------------------------------------------ */

bool stack_names_helper(char out[PATH_MAX])
{
    static const char *const places[] = {SYMBOLIZER, "../lib*/perfkit/" SYMBOLIZER,
                                         "../lib/*/perfkit/" SYMBOLIZER, NULL};
    return beside_self(places, out) && access(out, X_OK) == 0;
}

struct shown {
    const char *command;
    bool (*stop)(void);
    bool quiet;
    struct cli_progress progress;
};

static bool show_symbol_progress(void *user, uint64_t done, uint64_t all, const char *path)
{
    struct shown *shown = user;
    if (!shown->quiet && cli_progress_due(&shown->progress))
        cli_show_progress(shown->command, "naming stacks: %s (%.60s)",
                          prof_percent(all ? (double)done / (double)all : 1.0).text,
                          prof_file_name(path));
    return !shown->stop || !shown->stop();
}

enum prof_status stack_names(const char *command, struct prof_store *store,
                             const char *const *folders, bool quiet, bool (*stop)(void),
                             struct prof_symbolize_result *result, struct prof_error *err)
{
    char helper[PATH_MAX];
    struct shown shown = {.command = command, .stop = stop, .quiet = quiet};
    const struct prof_symbolize_options options = {
        .helper = helper, .folders = folders, .progress = show_symbol_progress, .user = &shown};
    *result = (struct prof_symbolize_result){0};
    if (!prof_symbolize_has(store))
        return PROF_OK;
    if (!stack_names_helper(helper))
        return prof_fail(err, PROF_NOTFOUND, "%s is not beside perfkit (%s): install perfkit whole",
                         SYMBOLIZER, helper);
    enum prof_status status = prof_symbolize(store, &options, result, err);
    cli_wipe_progress();
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

struct symbolize_options {
    const char *folders;
    bool quiet;
};

static const struct cli_option symbolize_options[] = {
    CLI_OPTION(symbolize_options, folders, "debug-dir", 'd', FOLDER, "DIR",
               "look here for debug files first: DIR/.build-id/ab/cdef.debug, DIR and the object's "
               "own path, or DIR and its name; several folders are separated by ':'"),
    CLI_QUIET_ROW(symbolize_options, quiet, "print no summary, only errors"),
    {0},
};

static const struct cli_text_row symbolize_examples[] = {
    {"perfkit symbolize train.sqlite", "Look again, now that debug packages are installed."},
    {"perfkit symbolize --debug-dir build/debug train.sqlite", "With what `strip` took out."},
    {0},
};

#define MOST_FOLDERS 32

/* Splits `text` in place. */
static void split_debug_folders(char *text, const char *folders[MOST_FOLDERS + 1])
{
    size_t count = 0;
    char *rest;
    for (char *one = text ? strtok_r(text, ":", &rest) : NULL; one && count < MOST_FOLDERS;
         one = strtok_r(NULL, ":", &rest))
        folders[count++] = one;
    folders[count] = NULL;
}

/* A word that was mistyped would look like debug files that do not fit. */
static void print_absent_files(const char *name, const char *const *folders)
{
    struct stat info;
    for (; *folders; folders++)
        if (stat(*folders, &info) || !S_ISDIR(info.st_mode))
            cli_say(name, "note: --debug-dir: %s is not a folder: nothing is found there",
                    *folders);
}

static bool symbolize_is_interrupted(void)
{
    return cli_interrupted() != 0;
}

static void print_symbolize_result(const char *name, const char *path,
                                   const struct prof_symbolize_result *result)
{
    if (!result->frames) {
        cli_say(name, "%s has no native stacks: record them with `perfkit run --stacks`", path);
        return;
    }
    char without_names[160] = "";
    if (result->files_without)
        snprintf(without_names, sizeof without_names, "; %s of %s gave none",
                 prof_count((int64_t)result->files_without).text,
                 prof_counted((int64_t)result->files, "object file", "object files").text);
    cli_say(name, "%s: %s of %s frames have a name, %s a line%s", path,
            prof_count((int64_t)result->named).text, prof_count((int64_t)result->frames).text,
            prof_count((int64_t)result->lines).text, without_names);
    uint64_t without = 0;
    for (size_t i = 0; i < result->gap_count; i++) {
        without += result->gaps[i].frames;
        cli_say(name, "%s without a name: %s: %s",
                prof_counted((int64_t)result->gaps[i].frames, "frame", "frames").text,
                result->gaps[i].path, result->gaps[i].why);
    }
    if (without > result->frames - result->named)
        cli_say(name, "names that were found before are kept");
    if (result->files_broken)
        cli_say(name, "%s object files could not be parsed",
                prof_count((int64_t)result->files_broken).text);
}

static enum prof_status symbolize(const char *name, const char *path,
                                  const struct symbolize_options *args, const char *const *folders,
                                  struct prof_error *err)
{
    struct prof_store *store;
    struct prof_symbolize_result result;
    PROF_TRY(prof_store_reopen(path, &store, err));
    enum prof_status status =
        stack_names(name, store, folders, args->quiet, symbolize_is_interrupted, &result, err);
    enum prof_status end = prof_store_publish(store, status ? NULL : err);
    if (!status && end != PROF_BUSY) /* it is read now: the next report joins it */
        status = end;
    prof_store_close(store);
    if (!status && !args->quiet)
        print_symbolize_result(name, path, &result);
    if (!status && result.stopped)
        cli_say(name, "interrupted: what was found until then is kept");
    return status;
}

static int symbolize_run(const struct cli_command *command, void *given,
                         const struct cli_operands *operands, struct prof_error *err)
{
    const struct symbolize_options *args = given;
    struct prof_capture *capture;
    const char *folders[MOST_FOLDERS + 1];
    char newest[PATH_MAX];
    const char *path = operands->count ? operands->values[0] : newest;
    if ((!operands->count && newest_capture(".", newest, err)) || prof_open(path, &capture, err))
        return CLI_USAGE;
    enum prof_state state = prof_info(capture)->state;
    struct spool_found running;
    prof_close(capture);
    /* A living perfkit may still name and publish it. */
    if (state == PROF_STATE_RECORDING || state == PROF_STATE_CLOSING ||
        !ctl_find(path, &running, NULL, NULL))
        return cli_fail(CLI_USAGE, command->name,
                        "%s is being recorded: its stacks are named at the end", path);
    PROF_FREED char *list = args->folders ? strdup(args->folders) : NULL;
    split_debug_folders(list, folders);
    if (!args->quiet)
        print_absent_files(command->name, folders);
    cli_catch_interrupts();
    enum prof_status status = symbolize(command->name, path, args, folders, err);
    if (status && cli_interrupted())
        cli_say(command->name, "%s", err->message);
    if (cli_interrupted())
        raise(cli_interrupted());
    return status ? CLI_FAILED : CLI_OK;
}

const struct cli_command symbolize_command = {
    .name = "symbolize",
    .summary = "name the functions of a capture's host stacks, again",
    .operands = "[FILE]",
    .text = "Looks up functions, inlined functions, files and lines of the stacks that `perfkit "
            "run --stacks` took, as `perfkit run` does at its end: useful when debug files came "
            "later. Without FILE: the newest capture of the current folder.\n\n"
            "Names come from the object files that the program had, identified by their build ids: "
            "a file that was built anew since is refused. Debug files are found by build id or "
            ".gnu_debuglink, in --debug-dir, beside the object, in /usr/lib/debug and in "
            "debuginfod's cache. Names that cannot be found again are kept as they are. The column "
            "`symbols` of the table `module` says for each file what was found, or why nothing.",
    .options = symbolize_options,
    CLI_OPTIONS_ARE(symbolize_options, 0),
    .examples = symbolize_examples,
    .operand = CLI_FILE,
    .most = 1,
    .run = symbolize_run,
};
