/* Captures become runs here, and runs become rows of a baseline. A capture is identified by where
 * and when it was recorded, not by its path: files are copied and renamed. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/find_capture.h"
#include "cli/gate.h"
#include "cli/process.h"
#include "libprof/base/array.h"
#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "libprof/base/regular.h"
#include "libprof/store/store.h"

/* ---- in -------------------------------------------------------------------------------------- */

/* Takes the run, name and identity, also when it fails. */
static enum prof_status add_gate_run(struct gate_runs *runs, struct prof_run run, const char *path,
                                     char *identity, int64_t recorded_s, struct prof_error *err)
{
    size_t need = runs->count + 1;
    char *name = path ? strdup(path) : NULL;
    if (identity && (name || !path) &&
        prof_array_room(&runs->data, &runs->room, need, sizeof *runs->data) &&
        prof_array_room(&runs->names, &runs->name_room, need, sizeof *runs->names) &&
        prof_array_room(&runs->identities, &runs->identity_room, need, sizeof *runs->identities) &&
        prof_array_room(&runs->recorded_s, &runs->time_room, need, sizeof *runs->recorded_s)) {
        runs->data[runs->count] = run;
        runs->names[runs->count] = name;
        runs->identities[runs->count] = identity;
        runs->recorded_s[runs->count++] = recorded_s;
        return PROF_OK;
    }
    prof_run_free(&run);
    free(name);
    free(identity);
    return prof_out_of_memory(err);
}

static char *identity_of(const struct prof_info *info)
{
    char *text;
    return asprintf(&text, "%s %s %lld", info->host ? info->host : "?",
                    info->boot_id ? info->boot_id : "?", (long long)info->start_realtime_ns) < 0
               ? NULL
               : text;
}

static enum prof_status reduce_capture(struct prof_capture *capture, const char *path,
                                       const struct prof_run_options *iterations,
                                       struct prof_run *run, struct prof_error *err)
{
    const char *unfinished = prof_unfinished(prof_info(capture));
    if (unfinished)
        return prof_fail(err, PROF_BUSY, "%s is not finished: %s", path, unfinished);
    return prof_run_extract(capture, iterations, run, err);
}

enum prof_status gate_runs_add_capture(struct gate_runs *runs, const char *path,
                                       const struct prof_run_options *iterations, int64_t session,
                                       struct prof_error *err)
{
    CLI_CLOSED struct prof_capture *capture = NULL;
    struct prof_run run = {0};
    prof_store_settle(path);
    PROF_TRY(prof_open(path, &capture, err));
    enum prof_status status = reduce_capture(capture, path, iterations, &run, err);
    if (!status) {
        const struct prof_info *info = prof_info(capture);
        run.session = session;
        status = add_gate_run(runs, run, path, identity_of(info),
                              info->start_realtime_ns / 1000000000, err);
    }
    return status;
}

enum prof_status gate_runs_add_baseline(struct gate_runs *runs,
                                        const struct prof_baseline *baseline,
                                        struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < baseline->session_count; i++) {
        const struct prof_baseline_session *session = &baseline->sessions[i];
        for (size_t j = 0; !status && j < session->run_count; j++) {
            const struct prof_baseline_run *from = &session->runs[j];
            struct prof_error why = {0};
            struct prof_run run;
            status = prof_run_decode(from->metrics, &run, &why);
            if (status)
                return prof_fail(err, status, "baseline '%s', session %lld: %s", baseline->name,
                                 (long long)session->id, why.message);
            run.session = session->id;
            status = add_gate_run(runs, run, from->capture, strdup(from->identity),
                                  from->recorded_s, err);
        }
    }
    return status;
}

/* ---- out ------------------------------------------------------------------------------------- */

/* Of the project in this folder: 40 digits, with "-dirty" where files differ from it. NULL: no git,
 * no project. */
static char *commit_here(void)
{
    char line[128] = "";
    FILE *git = popen("git -c core.fsmonitor=false describe --always --dirty --abbrev=40 "
                      "--exclude='*' 2>/dev/null",
                      "re");
    bool got = git && fgets(line, sizeof line, git);
    if (!git || pclose(git) != 0 || !got)
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    return strdup(line);
}

static enum prof_status encode_run(const struct gate_runs *runs, size_t i,
                                   struct prof_baseline_run *to, struct prof_error *err)
{
    PROF_TRY(prof_run_encode(&runs->data[i], &to->metrics, err));
    to->capture = runs->names[i] ? strdup(runs->names[i]) : NULL;
    to->identity = strdup(runs->identities[i]);
    to->recorded_s = runs->recorded_s[i];
    return to->identity ? PROF_OK : prof_out_of_memory(err);
}

enum prof_status gate_runs_session(const struct gate_runs *runs, const char *label,
                                   struct prof_baseline_session *session, struct prof_error *err)
{
    enum prof_status status = PROF_OK;
    *session = (struct prof_baseline_session){
        .label = label ? strdup(label) : NULL,
        .commit = commit_here(),
        .runs = calloc(runs->count + 1, sizeof *session->runs),
    };
    if (!session->runs || (label && !session->label))
        status = prof_out_of_memory(err);
    for (; !status && session->run_count < runs->count; session->run_count++)
        status = encode_run(runs, session->run_count, &session->runs[session->run_count], err);
    if (status)
        prof_baseline_session_free(session);
    return status;
}

size_t gate_runs_shared(const struct gate_runs *base, const struct gate_runs *cand)
{
    for (size_t i = 0; i < cand->count; i++)
        for (size_t j = 0; j < base->count; j++)
            if (!strcmp(cand->identities[i], base->identities[j]))
                return i;
    return SIZE_MAX;
}

size_t gate_runs_repeated(const struct gate_runs *runs)
{
    for (size_t i = 1; i < runs->count; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(runs->identities[i], runs->identities[j]))
                return i;
    return SIZE_MAX;
}

void gate_runs_free(struct gate_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++) {
        prof_run_free(&runs->data[i]);
        free(runs->names[i]);
        free(runs->identities[i]);
    }
    free(runs->data);
    free(runs->names);
    free(runs->identities);
    free(runs->recorded_s);
    *runs = (struct gate_runs){0};
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Runs of a command, one after the other, each by a `perfkit run` of its own: they are recorded
 * exactly as a user records them. */

/* ---- signals --------------------------------------------------------------------------------- */

static const int watched[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
enum { WATCHED = sizeof watched / sizeof watched[0] };

/* What the handler needs: of the one recorder that there is. */
static struct sigaction before[WATCHED];
static volatile sig_atomic_t child;      /* that runs now, 0 = none */
static volatile sig_atomic_t end_signal; /* the signal that requested the end, 0 = none */
static const char *volatile folder, *volatile capture; /* to be removed; NULL = none */

/* While a program runs, it gets the signal as well, and `run_to_end` ends perfkit when it has:
 * whatever it made of that, no further run is started. Between two runs nothing may be left on
 * disk. */
static void on_end_signal(int number)
{
    int saved = errno;
    end_signal = number;
    if (child > 0) {
        if (number != SIGINT && number != SIGQUIT) /* those of the terminal it has already */
            kill((pid_t)child, number);
    } else {
        if (capture)
            unlink(capture);
        if (folder)
            rmdir(folder);
        signal(number, SIG_DFL);
        raise(number);
    }
    errno = saved;
}

static void watch_signals(void)
{
    const struct sigaction action = {.sa_handler = on_end_signal, .sa_flags = SA_RESTART};
    end_signal = 0;
    for (size_t i = 0; i < WATCHED; i++) {
        sigaction(watched[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* as under nohup */
            sigaction(watched[i], &action, NULL);
    }
}

static void unwatch(void)
{
    for (size_t i = 0; i < WATCHED; i++)
        sigaction(watched[i], &before[i], NULL);
}

/* ---- runs ------------------------------------------------------------------------------------ */

void gate_show_turn(const char *command, const char *text, uint64_t begun_ns, unsigned done,
                    unsigned left, bool printed)
{
    if (printed || !isatty(STDERR_FILENO))
        cli_say(command, "%s", text);
    else if (!done)
        cli_show_progress(command, "%s", text);
    else
        cli_show_progress(command, "%s, about %s left", text,
                          prof_duration((double)(prof_now_ns() - begun_ns) / done * left).text);
}

enum prof_status gate_record_open(struct gate_recorder *recorder, const char *command,
                                  const struct gate_options *options, const char *keep,
                                  struct prof_error *err)
{
    *recorder = (struct gate_recorder){.command = command,
                                       .keep = keep != NULL,
                                       .prepare = options->prepare,
                                       .show_output = options->show_output,
                                       .output = -1};
    const char *base = getenv("TMPDIR");
    watch_signals();
    if (!recorder->show_output)
        recorder->output = memfd_create("output", MFD_CLOEXEC);
    if (keep) {
        snprintf(recorder->folder, sizeof recorder->folder, "%s", keep);
        if (mkdir(keep, 0777) && errno != EEXIST)
            return prof_fail_errno(err, PROF_IO, "cannot make the folder %s", keep);
        return PROF_OK;
    }
    snprintf(recorder->folder, sizeof recorder->folder, "%.4000s/perfkit-%s-XXXXXX",
             base && *base ? base : "/tmp", command);
    folder = recorder->folder;
    if (mkdtemp(recorder->folder))
        return PROF_OK;
    enum prof_status status =
        prof_fail_errno(err, PROF_IO, "cannot make a folder for captures (%s)", recorder->folder);
    folder = NULL;
    recorder->folder[0] = '\0';
    return status;
}

/* A perfkit that is killed takes its child along. */
static pid_t start_child(char *const argv[], int output, const sigset_t *mask)
{
    pid_t parent = getpid(), pid = fork();
    if (pid)
        return pid;
    unwatch();
    sigprocmask(SIG_SETMASK, mask, NULL);
    signal(SIGXFSZ, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    if (output >= 0)
        dup2(output, STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execv(argv[0], argv);
    _exit(127);
}

/* No signal comes between the birth of the child and the moment from which `on_end_signal` knows
 * it. */
static pid_t start_watched(char *const argv[], int output)
{
    sigset_t all, was;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &was);
    pid_t pid = start_child(argv, output, &was);
    child = pid;
    sigprocmask(SIG_SETMASK, &was, NULL);
    return pid;
}

#define SHOWN_BYTES 4096

/* The end of what a run printed, on standard error. */
static void show_output_end(int output)
{
    char text[SHOWN_BYTES];
    off_t size = output < 0 ? 0 : lseek(output, 0, SEEK_END);
    ssize_t got =
        size > 0 ? pread(output, text, sizeof text, size > SHOWN_BYTES ? size - SHOWN_BYTES : 0)
                 : 0;
    cli_wipe_progress();
    if (got > 0)
        fwrite(text, 1, (size_t)got, stderr);
    if (got > 0 && text[got - 1] != '\n')
        fputc('\n', stderr);
}

static enum prof_status run_to_end(struct gate_recorder *recorder, char *const argv[],
                                   const char *line, struct prof_error *err)
{
    fflush(NULL);
    if (recorder->output >= 0 && !ftruncate(recorder->output, 0))
        lseek(recorder->output, 0, SEEK_SET);
    pid_t pid = start_watched(argv, recorder->output);
    int how = pid > 0 ? process_wait(pid) : 0;
    child = 0;
    if (pid < 0)
        return prof_fail_errno(err, PROF_SYSTEM, "cannot start a process");
    recorder->signal = end_signal ? (int)end_signal : WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    recorder->interrupted = end_signal;
    if (recorder->signal || WEXITSTATUS(how))
        show_output_end(recorder->output);
    if (recorder->signal)
        return prof_fail(err, PROF_SYSTEM, "'%.200s' was ended by signal %d (%s)", line,
                         recorder->signal, strsignal(recorder->signal));
    if (!WEXITSTATUS(how))
        return PROF_OK;
    return prof_fail(err, PROF_SYSTEM,
                     "'%.200s' ended with status %d: what fails is not compared%s", line,
                     WEXITSTATUS(how), WEXITSTATUS(how) == 127 ? " (is it spelled right?)" : "");
}

static enum prof_status prepare_for_run(struct gate_recorder *recorder, struct prof_error *err)
{
    char *const argv[] = {"/bin/sh", "-c", (char *)recorder->prepare, NULL};
    return recorder->prepare ? run_to_end(recorder, argv, recorder->prepare, err) : PROF_OK;
}

enum prof_status gate_record_warm(struct gate_recorder *recorder, const char *line,
                                  struct prof_error *err)
{
    char *const argv[] = {"/bin/sh", "-c", (char *)line, NULL};
    PROF_TRY(prepare_for_run(recorder, err));
    return run_to_end(recorder, argv, line, err);
}

enum prof_status gate_record(struct gate_recorder *recorder, const char *name, unsigned number,
                             const char *line, const struct prof_run_options *iterations,
                             int64_t session, struct gate_runs *runs, struct prof_error *err)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s-%u.sqlite", recorder->folder, name, number);
    capture = recorder->keep ? NULL : path;
    char *const argv[] = {"/proc/self/exe", "run", "--quiet",    "-o", path, "--",
                          "/bin/sh",        "-c",  (char *)line, NULL};
    enum prof_status status = prepare_for_run(recorder, err);
    status = status ?: run_to_end(recorder, argv, line, err);
    status = status ?: gate_runs_add_capture(runs, path, iterations, session, err);
    if (!recorder->keep)
        unlink(path);
    capture = NULL;
    return status;
}

static void remove_folder(const char *name)
{
    char path[PATH_MAX + 300];
    PROF_DIR_CLOSED DIR *dir = opendir(name);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        snprintf(path, sizeof path, "%s/%s", name, entry->d_name);
        unlink(path);
    }
    rmdir(name);
}

void gate_record_close(struct gate_recorder *recorder)
{
    if (!recorder->keep && recorder->folder[0])
        remove_folder(recorder->folder);
    if (recorder->output >= 0)
        close(recorder->output);
    folder = NULL;
    unwatch();
    if (!recorder->interrupted)
        return;
    signal(recorder->signal, SIG_DFL);
    raise(recorder->signal);
}
