/* Runs of a command, one after the other, each by a `perfkit run` of its own: what is judged is
 * then recorded exactly as a user records it. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/gate_record.h"

/* ---- signals ----------------------------------------------------------------------------------
 */

/* Those of the terminal reach the program by themselves. */
static const struct {
    int number;
    bool of_terminal;
} watched[] = {{SIGINT, true}, {SIGQUIT, true}, {SIGTERM, false}, {SIGHUP, false}};
enum { WATCHED = sizeof watched / sizeof watched[0] };

/* What the handler needs: of the one recorder that there is. */
static struct sigaction before[WATCHED];
static volatile sig_atomic_t child; /* that runs now, 0 = none */
static volatile sig_atomic_t asked; /* the signal that asked for the end, 0 = none */
static const char *volatile folder, *volatile capture; /* to be removed; NULL = none */

static bool is_of_terminal(int number)
{
    for (size_t i = 0; i < WATCHED; i++)
        if (watched[i].number == number)
            return watched[i].of_terminal;
    return false;
}

/* While a program runs, it is asked to end as well, and `run_to_end` ends perfkit when it has:
 * whatever it made of that, no further run is started. Between two runs nothing may be left on
 * disk. */
static void on_end_signal(int number)
{
    int saved = errno;
    asked = number;
    if (child > 0) {
        if (!is_of_terminal(number))
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
    asked = 0;
    for (size_t i = 0; i < WATCHED; i++) {
        sigaction(watched[i].number, NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* as under nohup */
            sigaction(watched[i].number, &action, NULL);
    }
}

static void unwatch(void)
{
    for (size_t i = 0; i < WATCHED; i++)
        sigaction(watched[i].number, &before[i], NULL);
}

/* ---- runs --------------------------------------------------------------------------------------
 */

enum prof_status gate_record_open(struct gate_recorder *recorder, const char *command,
                                  const char *keep, struct prof_error *err)
{
    *recorder = (struct gate_recorder){.command = command, .keep = keep != NULL};
    const char *base = getenv("TMPDIR");
    watch_signals();
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
static pid_t start_child(char *const argv[], const sigset_t *mask)
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
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execv(argv[0], argv);
    _exit(127);
}

/* No signal comes between the birth of the child and the moment from which `on_end_signal` knows
 * it. */
static pid_t start_watched(char *const argv[])
{
    sigset_t all, was;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &was);
    pid_t pid = start_child(argv, &was);
    child = pid;
    sigprocmask(SIG_SETMASK, &was, NULL);
    return pid;
}

static enum prof_status run_to_end(struct gate_recorder *recorder, char *const argv[],
                                   const char *line, struct prof_error *err)
{
    int how = 0;
    fflush(NULL);
    pid_t pid = start_watched(argv);
    while (pid > 0 && waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    child = 0;
    if (pid < 0)
        return prof_fail_errno(err, PROF_SYSTEM, "cannot start a process");
    recorder->signal = asked ? (int)asked : WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    recorder->interrupted = asked;
    if (recorder->signal)
        return prof_fail(err, PROF_SYSTEM, "'%.200s' was ended by signal %d (%s)", line,
                         recorder->signal, strsignal(recorder->signal));
    if (!WEXITSTATUS(how))
        return PROF_OK;
    return prof_fail(err, PROF_SYSTEM,
                     "'%.200s' ended with status %d: what fails is not compared%s", line,
                     WEXITSTATUS(how), WEXITSTATUS(how) == 127 ? " (is it spelled right?)" : "");
}

enum prof_status gate_record_warm(struct gate_recorder *recorder, const char *line,
                                  struct prof_error *err)
{
    char *const argv[] = {"/bin/sh", "-c", (char *)line, NULL};
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
    enum prof_status status = run_to_end(recorder, argv, line, err);
    if (!status)
        status = gate_runs_add_capture(runs, path, iterations, session, err);
    if (!recorder->keep)
        unlink(path);
    capture = NULL;
    return status;
}

static void remove_folder(const char *name)
{
    char path[PATH_MAX + 300];
    DIR *dir = opendir(name);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        snprintf(path, sizeof path, "%s/%s", name, entry->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(name);
}

void gate_record_close(struct gate_recorder *recorder)
{
    if (!recorder->keep && recorder->folder[0])
        remove_folder(recorder->folder);
    folder = NULL;
    unwatch();
    if (!recorder->interrupted)
        return;
    signal(recorder->signal, SIG_DFL);
    raise(recorder->signal);
}
