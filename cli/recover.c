/* perfkit recover: does for a perfkit that was killed what it would have done at the end. Ingest
 * kept its place in the capture file itself, so every record arrives once, however often this is
 * begun. While processes of the program still run, finishing would lose what they do next; the user
 * has to choose. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/capture_end.h"
#include "cli/command.h"
#include "cli/find_capture.h"
#include "cli/process.h"
#include "cli/run.h"
#include "cli/spool_folder.h"
#include "libprof/base/array.h"
#include "libprof/base/clock.h"
#include "libprof/include/prof.h"
#include "libprof/spool/owner.h"

#define STEP_NS 200000000L

struct recover_options {
    const char *output;
    bool force, keep, quiet, wait;
};

static const struct cli_option recover_options[] = {
    CLI_OPTION(recover_options, output, "output", 'o', FILE, "FILE", "capture file to write",
               .fallback = "where perfkit run was to put it"),
    CLI_OPTION(recover_options, wait, "follow", 0, FLAG, NULL,
               "go on recording until the program's processes have ended"),
    CLI_FORCE_ROW(recover_options, force,
                  "finish now although processes of the program still run; what they do afterwards "
                  "is not recorded"),
    CLI_OPTION(recover_options, keep, "keep-spool", 0, FLAG, NULL,
               "leave the spool folder where it is"),
    CLI_QUIET_ROW(recover_options, quiet, "print no summary, only errors"),
    {0},
};

static const struct cli_text_row recover_examples[] = {
    {"perfkit recover", "List what was interrupted."},
    {"perfkit recover train.sqlite", "Finish the capture of a perfkit that was killed."},
    {"perfkit recover /dev/shm/perfkit-x1Yz2A", "The same, by its spool folder."},
    {0},
};

struct recover {
    const char *name;
    struct recover_options options;
    struct spool_folder spool;
    struct spool_capture capture;
    struct prof_store *store;
    struct prof_ingest *ingest;
    struct prof_ingest_progress progress;
    unsigned alive; /* processes that may still record */
    pid_t owner;    /* the perfkit that was killed, 0 = not known */
};

/* A file that cannot be looked at may have some: it must not be replaced. */
static bool has_bytes(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? info.st_size > 0 : errno != ENOENT && errno != ENOTDIR;
}

/* Where it goes: -o, or what `run` had in mind; never over a file that is something else. */
static enum prof_status choose_output(struct recover *recover, struct prof_error *err)
{
    const char *live = recover->capture.live, *final = recover->capture.final;
    enum prof_status status = spool_folder_read_capture(&recover->spool, &recover->capture, err);
    if (status && !recover->options.output)
        return status;
    if (recover->options.output) {
        struct run_output output = {0};
        struct stat a, b;
        bool same = stat(recover->options.output, &a) == 0 && stat(live, &b) == 0 &&
                    a.st_ino == b.st_ino && a.st_dev == b.st_dev;
        status = output_choose(&output, recover->options.output, "", same, err);
        if (status == PROF_EXISTS)
            prof_fail(err, status, "%s exists already: choose another name",
                      recover->options.output);
        if (status)
            return status;
        strcpy(recover->capture.final, output.final);
    } else if (strcmp(live, final) != 0 && has_bytes(final) && has_bytes(live)) {
        return prof_fail(err, PROF_EXISTS, "%s is another file by now: choose a name with -o",
                         final);
    }
    return PROF_OK;
}

/* The live file is gone: what still lies in the spools goes into a new capture. */
static enum prof_status start_anew(struct recover *recover, struct prof_error *err)
{
    struct stat info;
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/capture", recover->spool.path);
    uint64_t now_real = prof_clock_ns(CLOCK_REALTIME), now_mono = prof_now_ns();
    uint64_t age = 0;
    if (stat(path, &info) == 0) {
        uint64_t start =
            (uint64_t)info.st_mtim.tv_sec * 1000000000u + (uint64_t)info.st_mtim.tv_nsec;
        age = start < now_real ? now_real - start : 0;
    }
    age = age < now_mono ? age : now_mono;
    struct prof_ingest_about about = {
        .start_mono_ns = now_mono - age,
        .start_realtime_ns = now_real - age,
        .start_raw_ns = prof_clock_ns(CLOCK_MONOTONIC_RAW) - age,
    };
    strcpy(recover->capture.live, recover->capture.final);
    bool nothing_there = !has_bytes(recover->capture.live);
    PROF_TRY(prof_store_begin(recover->capture.live, nothing_there, &recover->store, err));
    PROF_TRY(prof_ingest_open(recover->store, recover->spool.path, &about, &recover->ingest, err));
    return prof_ingest_note(
        recover->ingest, PROF_HEALTH_collector_degraded, "recover",
        "the capture was removed or moved while perfkit recorded: what was in it until then is "
        "not here; if you still have that file, `perfkit report` reads it",
        err);
}

static void count_header(void *context, const struct spool_header *header, int64_t disk_bytes)
{
    (void)header, (void)disk_bytes;
    ++*(unsigned *)context;
}

/* perfkit was killed when it had named its capture and before the program, which starts when the
 * capture is there: nothing was lost. */
static bool remove_not_started(struct recover *recover)
{
    const char *final = recover->capture.final;
    struct control control;
    unsigned spools = 0;
    if (control_find(&control, recover->spool.path, NULL))
        return false;
    bool started = atomic_load(&control.page->target) != 0;
    recover->owner = (pid_t)control.page->owner;
    control_close(&control);
    bool named = has_bytes(recover->capture.live);
    if (started || !spool_headers(recover->spool.path, count_header, &spools) || spools ||
        (named && (!output_is_aside(final, recover->owner) || spool_folder_users(&recover->spool))))
        return false;
    if (named) /* it holds nothing yet, the file that it was to replace does */
        output_remove(recover->capture.live);
    if (!has_bytes(final)) /* reserved, in a network folder */
        unlink(final);
    bool older = output_restore(final, recover->owner);
    if (!recover->options.quiet)
        cli_say(recover->name,
                "%s: perfkit was killed before it started the program: nothing was recorded, and "
                "there is nothing to recover%s; run it again",
                final, older ? ", but the older capture, which is there again" : "");
    return true;
}

static enum prof_status open_spool(struct recover *recover, struct prof_error *err)
{
    if (!has_bytes(recover->capture.live))
        return start_anew(recover, err);
    PROF_TRY(prof_store_reopen(recover->capture.live, &recover->store, err));
    return prof_ingest_open(recover->store, recover->spool.path, NULL, &recover->ingest, err);
}

/* Finished already, by perfkit or by an earlier recover with --keep-spool. */
static bool is_finished(const char *path)
{
    CLI_CLOSED struct prof_capture *capture = NULL;
    if (prof_open(path, &capture, NULL))
        return false;
    enum prof_state state = prof_info(capture)->state;
    return state == PROF_STATE_COMPLETE || state == PROF_STATE_RECOVERED ||
           state == PROF_STATE_KEPT;
}

/* Has the capture of another run replaced this folder's? */
static bool is_anothers(const struct recover *recover, const char *path)
{
    CLI_CLOSED struct prof_capture *capture = NULL;
    if (!recover->capture.start_ns || prof_open(path, &capture, NULL))
        return false;
    return (uint64_t)prof_info(capture)->start_mono_ns != recover->capture.start_ns;
}

/* Read what is there. True when the capture may be finished now. */
static bool catch_up(struct recover *recover)
{
    struct prof_error err = {0};
    cli_catch_interrupts();
    do {
        enum prof_status status = prof_ingest_step(recover->ingest, &recover->progress, &err);
        if (status) { /* a full disk: capture_end is the one that is patient */
            cli_say(recover->name, "%s", err.message);
            return status == PROF_FULL;
        }
        recover->alive =
            recover->progress.alive ? recover->progress.alive : spool_folder_users(&recover->spool);
        if (recover->alive == 0 || recover->options.force)
            return true;
        if (!recover->options.wait && recover->progress.backlog_bytes == 0)
            break;
        if (recover->options.wait && !recover->progress.records)
            nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
    } while (!cli_interrupted());
    return cli_refuse(
        recover->name,
        "%u process%s of the program still run%s; what was recorded so far is in %s, what "
        "follows goes to %s: end the program first, or take over with --follow, or finish now "
        "with --force",
        recover->alive, recover->alive == 1 ? "" : "es", recover->alive == 1 ? "s" : "",
        recover->capture.live, recover->spool.path);
}

static int abandon_recovery(struct recover *recover)
{
    prof_ingest_close(recover->ingest);
    prof_store_close(recover->store);
    spool_folder_leave(&recover->spool);
    return CLI_FAILED;
}

/* Without an argument, or with a folder that holds spool folders: what there is to recover. */
static size_t list_found(const char *name, const char *base)
{
    PROF_FREED struct spool_list list = {0};
    if (base)
        spool_find_below(base, &list);
    else
        spool_find(&list);
    for (size_t i = 0; i < list.count; i++) {
        const char *final = list.data[i].capture.final;
        printf("%s\t%s\n", list.data[i].folder,
               *final ? final : "(ended before the program was started)");
    }
    if (list.count)
        cli_say(name, "interrupted captures, as spool folder and file: name one of them");
    else if (!base)
        cli_say(name, "nothing to recover in /dev/shm, TMPDIR and /tmp or named by a capture of "
                      "this folder: if perfkit run was given --spool-dir, name that folder");
    return list.count;
}

static bool is_spool_folder(const char *path)
{
    char owner[PATH_MAX + 8];
    snprintf(owner, sizeof owner, "%s/" SPOOL_OWNER_FILE, path);
    return access(owner, F_OK) == 0;
}

/* perfkit ended before it had named a capture: there is nothing to read. */
static bool remove_stillborn(const char *name, const char *path, bool quiet)
{
    char real[PATH_MAX];
    struct spool_folder folder = {.owner_fd = -1};
    if (!realpath(path, real) || !spool_is_stillborn(real))
        return false;
    if (spool_folder_adopt(&folder, path, NULL) == PROF_OK)
        spool_folder_remove(&folder);
    else
        rmdir(path);
    if (!quiet)
        cli_say(name, "%s: perfkit ended before the program was started: removed", path);
    return true;
}

/* A capture file means its spool folder, also when a living perfkit serves that. */
static const char *spool_of_operand(const char *operand, char folder[PATH_MAX])
{
    struct stat info;
    struct spool_found running;
    bool there = stat(operand, &info) == 0;
    if (there && !S_ISREG(info.st_mode))
        return operand;
    if (there && !ctl_find(operand, &running, NULL, NULL))
        return strcpy(folder, running.folder);
    return spool_find_for(operand, folder) ? folder : operand;
}

/* Where the capture goes, when no other file has taken that name since. */
static enum prof_status find_capture(struct recover *recover, const char *path,
                                     struct prof_error *err)
{
    enum prof_status status = spool_folder_adopt(&recover->spool, path, err);
    status = status ?: choose_output(recover, err);
    if (status || !is_anothers(recover, recover->capture.live))
        return status;
    if (!recover->options.output)
        return prof_fail(err, PROF_EXISTS,
                         "%s is another run's capture by now: choose a name with -o",
                         recover->capture.live);
    recover->capture.live[0] = '\0';
    return PROF_OK;
}

static int write_recovered_end(struct recover *recover)
{
    struct capture_end end = {
        .command = recover->name,
        .store = recover->store,
        .ingest = recover->ingest,
        .spool = &recover->spool,
        .live = recover->capture.live,
        .final = recover->capture.final,
        .state = "recovered",
        .abandon = recover->alive > 0,
        .keep_spool = recover->options.keep,
    };
    if (!capture_end(&end))
        return CLI_FAILED;
    const char *final = recover->capture.final;
    if (recover->owner && !recover->options.output)
        output_forget_aside(final, recover->owner);
    if (!recover->options.quiet)
        capture_summary(recover->name, final,
                        recover->options.output ? recover->options.output : final, NULL);
    return CLI_OK;
}

static int recover_run(const struct cli_command *command, void *given,
                       const struct cli_operands *operands, struct prof_error *err)
{
    struct recover recover = {.name = command->name,
                              .options = *(const struct recover_options *)given,
                              .spool = {.owner_fd = -1}};
    if (operands->count == 0) {
        list_found(command->name, NULL);
        return CLI_OK;
    }
    if (remove_stillborn(command->name, operands->values[0], recover.options.quiet) ||
        (!is_spool_folder(operands->values[0]) && list_found(command->name, operands->values[0])))
        return CLI_OK;
    char folder[PATH_MAX];
    const char *path = spool_of_operand(operands->values[0], folder);
    if (path == operands->values[0] && is_finished(path)) {
        if (!recover.options.quiet)
            cli_say(command->name, "%s is complete: nothing to do", path);
        return CLI_OK;
    }
    if (find_capture(&recover, path, err))
        return abandon_recovery(&recover);
    /* Killed between the last record and the last move: only that is left to do. */
    const char *live = recover.capture.live, *final = recover.capture.final;
    if (strcmp(live, final) != 0 && is_finished(live) && prof_store_settle(live) &&
        output_move(live, final, err))
        return abandon_recovery(&recover);
    if (is_finished(final)) {
        prof_store_settle(final);
        if (!recover.options.quiet)
            cli_say(command->name, "%s is complete already: nothing to do", final);
        if (!recover.options.keep)
            spool_folder_remove(&recover.spool);
        return CLI_OK;
    }
    if (remove_not_started(&recover)) {
        spool_folder_remove(&recover.spool);
        return CLI_OK;
    }
    if (open_spool(&recover, err))
        return abandon_recovery(&recover);
    if (!catch_up(&recover))
        return abandon_recovery(&recover);
    return write_recovered_end(&recover);
}

const struct cli_command recover_command = {
    .name = "recover",
    .summary = "finish the capture of a perfkit that was killed",
    .operands = "[SPOOLDIR|FILE]",
    .text = "Reads what is left in the spool folder of an interrupted `perfkit run`, finishes its "
            "capture and removes the folder. Each record arrives exactly once, also when this is "
            "interrupted and begun again.\n\n"
            "The folder may be given by its capture file. Without an argument: the list of "
            "interrupted captures; so too with the folder that was given with --spool-dir.",
    .options = recover_options,
    CLI_OPTIONS_ARE(recover_options, 0),
    .examples = recover_examples,
    .operand = CLI_FILE,
    .most = 1,
    .run = recover_run,
};
