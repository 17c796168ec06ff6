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

enum prof_status gate_record_open(struct gate_recorder *recorder, const char *command,
                                  const char *keep, struct prof_error *err)
{
    *recorder = (struct gate_recorder){.command = command, .keep = keep != NULL};
    const char *base = getenv("TMPDIR");
    if (keep) {
        snprintf(recorder->folder, sizeof recorder->folder, "%s", keep);
        if (mkdir(keep, 0777) && errno != EEXIST)
            return prof_fail_errno(err, PROF_IO, "cannot make the folder %s", keep);
        return PROF_OK;
    }
    snprintf(recorder->folder, sizeof recorder->folder, "%.4000s/perfkit-%s-XXXXXX",
             base && *base ? base : "/tmp", command);
    if (mkdtemp(recorder->folder))
        return PROF_OK;
    enum prof_status status =
        prof_fail_errno(err, PROF_IO, "cannot make a folder for captures (%s)", recorder->folder);
    recorder->folder[0] = '\0';
    return status;
}

static volatile sig_atomic_t child; /* that runs now, 0 = none */

/* perfkit is asked to end: the run is, and what it was then decides how perfkit ends. */
static void hand_on(int signal_number)
{
    int saved = errno;
    if (child > 0)
        kill((pid_t)child, signal_number);
    errno = saved;
}

/* Those of the terminal reach the program by themselves: perfkit run hands on how it ended. */
static const struct {
    int number;
    bool of_terminal;
} watched[] = {{SIGINT, true}, {SIGQUIT, true}, {SIGTERM, false}, {SIGHUP, false}};
enum { WATCHED = sizeof watched / sizeof watched[0] };

static void watch(struct sigaction before[WATCHED])
{
    for (size_t i = 0; i < WATCHED; i++) {
        struct sigaction action = {.sa_handler = watched[i].of_terminal ? SIG_IGN : hand_on};
        sigaction(watched[i].number, NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* as under nohup */
            sigaction(watched[i].number, &action, NULL);
    }
}

static void unwatch(const struct sigaction before[WATCHED])
{
    for (size_t i = 0; i < WATCHED; i++)
        sigaction(watched[i].number, &before[i], NULL);
}

static bool is_watched(int number)
{
    for (size_t i = 0; i < WATCHED; i++)
        if (watched[i].number == number)
            return true;
    return false;
}

/* A perfkit that is killed takes its child along. */
static pid_t start(char *const argv[], const struct sigaction before[WATCHED])
{
    pid_t parent = getpid(), pid = fork();
    if (pid)
        return pid;
    unwatch(before);
    signal(SIGXFSZ, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execv(argv[0], argv);
    _exit(127);
}

static enum prof_status run(struct gate_recorder *recorder, char *const argv[], const char *line,
                            struct prof_error *err)
{
    int how = 0;
    struct sigaction before[WATCHED];
    fflush(NULL);
    watch(before);
    pid_t pid = start(argv, before);
    child = pid;
    while (pid > 0 && waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    child = 0;
    unwatch(before);
    if (pid < 0)
        return prof_fail_errno(err, PROF_SYSTEM, "cannot start a process");
    if (WIFSIGNALED(how)) {
        recorder->signal = WTERMSIG(how);
        recorder->interrupted = is_watched(recorder->signal);
        return prof_fail(err, PROF_SYSTEM, "'%.200s' was ended by signal %d (%s)", line,
                         recorder->signal, strsignal(recorder->signal));
    }
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
    return run(recorder, argv, line, err);
}

enum prof_status gate_record(struct gate_recorder *recorder, const char *name, unsigned number,
                             const char *line, const char *iteration, int64_t session,
                             struct gate_runs *runs, struct prof_error *err)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s-%u.sqlite", recorder->folder, name, number);
    char *const argv[] = {"/proc/self/exe", "run", "--quiet",    "-o", path, "--",
                          "/bin/sh",        "-c",  (char *)line, NULL};
    enum prof_status status = run(recorder, argv, line, err);
    if (!status)
        status = gate_runs_add_capture(runs, path, iteration, session, err);
    if (!recorder->keep)
        unlink(path);
    return status;
}

static void remove_folder(const char *folder)
{
    char path[PATH_MAX + 300];
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

void gate_record_close(struct gate_recorder *recorder)
{
    if (!recorder->keep && recorder->folder[0])
        remove_folder(recorder->folder);
    if (!recorder->interrupted)
        return;
    signal(recorder->signal, SIG_DFL);
    raise(recorder->signal);
}
