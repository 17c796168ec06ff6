/* The capture of a run: its name and file, rows while the program runs, and its end. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/capture_end.h"
#include "cli/command.h"
#include "cli/find_capture.h"
#include "cli/process.h"
#include "cli/run.h"
#include "libprof/base/clock.h"
#include "libprof/base/regular.h"
#include "libprof/store/store.h"

/* ---- the name and the file ------------------------------------------------------------------- */

/* A capture appears under its name where no file has it, so two runs started in one folder at the
 * same moment get two names, and an older capture is never touched without --force. */

#define SUFFIX ".sqlite"
#define MOST_NAMES 100000
#define TURN_NS 1000000000ull
#define TURN_PAUSE_US 5000

/* statfs magics that the kernel headers do not all give names to (linux/magic.h has some). */
static const unsigned long network_magic[] = {
    0x6969,     /* NFS */
    0x517B,     /* SMB */
    0xFF534D42, /* CIFS */
    0xFE534D42, /* SMB2 */
    0x65735546, /* FUSE: sshfs, and many cluster file systems */
    0x01021997, /* 9p */
    0x0BD00BD0, /* Lustre */
    0x47504653, /* GPFS */
    0x00C36400, /* Ceph */
    0x5346414F, /* AFS */
    0x6B414653, /* kAFS */
    0x73757245, /* Coda */
    0x19830326, /* BeeGFS */
    0xAAD7AAEA, /* PanFS */
    0x7461636F, /* OCFS2 */
    0x01161970, /* GFS2 */
    0x786F4256, /* VirtualBox shared folders */
    0xBACBACBC, /* VMware shared folders */
};

/* True for NFS, SMB, FUSE and the like, where SQLite's shared memory and locks cannot be trusted;
 * also when PERFKIT_TEST_NETWORK_FS=1. */
static bool on_network(const char *folder)
{
    const char *test = getenv("PERFKIT_TEST_NETWORK_FS");
    if (test && strcmp(test, "1") == 0)
        return true;
    struct statfs info;
    if (statfs(folder, &info) < 0)
        return false;
    for (size_t i = 0; i < sizeof network_magic / sizeof network_magic[0]; i++)
        if ((unsigned long)info.f_type == network_magic[i])
            return true;
    return false;
}

/* PROF_OK: there is no such file; PROF_EXISTS, without a message: there is one. */
static enum prof_status find_file(const char *path, struct prof_error *err)
{
    struct stat info;
    if (lstat(path, &info) == 0)
        return PROF_EXISTS;
    return errno == ENOENT || errno == ENOTDIR
               ? PROF_OK
               : prof_fail_errno(err, PROF_IO, "cannot look for %s", path);
}

static const char *const side_files[] = {"-wal", "-shm", "-journal"};
#define SIDE_FILES (sizeof side_files / sizeof side_files[0])

/* One that SQLite would replay into a new file of this name. */
static enum prof_status find_side_file(const char *path, const char **suffix,
                                       struct prof_error *err)
{
    char name[PATH_MAX + 16];
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < SIDE_FILES; i += 2) {
        *suffix = side_files[i];
        snprintf(name, sizeof name, "%s%s", path, *suffix);
        status = find_file(name, err);
    }
    return status;
}

static void move_side_files(const char *from, const char *to)
{
    char old[PATH_MAX + 16], new[PATH_MAX + 16];
    for (size_t i = 0; i < SIDE_FILES; i++) {
        snprintf(old, sizeof old, "%s%s", from, side_files[i]);
        snprintf(new, sizeof new, "%s%s", to, side_files[i]);
        rename(old, new);
    }
}

static bool aside_name(char out[PATH_MAX], const char *final, pid_t pid)
{
    return snprintf(out, PATH_MAX, "%s.old-%ld", final, (long)pid) < PATH_MAX;
}

/* The pid of the run that renamed an older capture to `entry` (aside_name) and is dead by now, else
 * 0. `entry`: a name in the folder of `final`. */
static pid_t dead_run_of_aside(const char *final, const char *entry)
{
    const char *name = strrchr(final, '/') + 1;
    size_t length = strlen(name);
    if (strncmp(entry, name, length) || strncmp(entry + length, ".old-", 5))
        return 0;
    char *end;
    long pid = strtol(entry + length + 5, &end, 10);
    return *end || pid <= 0 || pid > INT_MAX || !kill((pid_t)pid, 0) || errno != ESRCH ? 0
                                                                                       : (pid_t)pid;
}

/* Captures that such runs left renamed get their name back where it is free; else `remove` removes
 * them. */
static void restore_left_captures(const char *final, bool remove)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", final);
    PROF_DIR_CLOSED DIR *names = opendir(dirname(folder));
    for (const struct dirent *entry; names && (entry = readdir(names));) {
        pid_t pid = dead_run_of_aside(final, entry->d_name);
        if (pid && !output_restore(final, pid) && remove)
            output_forget_aside(final, pid);
    }
}

/* `folder`/`name` into final, absolute, whether or not the file exists. */
static enum prof_status resolve(struct run_output *output, const char *folder, const char *name,
                                struct prof_error *err)
{
    char real[PATH_MAX];
    if (!realpath(folder, real))
        return prof_fail_errno(err, PROF_IO,
                               "cannot write to the folder %s (make it, or choose another with "
                               "-o)",
                               folder);
    const char *between = strcmp(real, "/") == 0 ? "" : "/";
    int length = snprintf(output->final, sizeof output->final, "%s%s%s", real, between, name);
    /* SQLite adds "-journal". */
    if (length < 0 || length + 10 >= PATH_MAX || strlen(name) + 10 > NAME_MAX)
        return prof_fail(err, PROF_INVALID, "the name %s is too long: give a shorter one with -o",
                         name);
    output->network = on_network(real);
    if (access(output->final, F_OK))
        restore_left_captures(output->final, false);
    return PROF_OK;
}

/* The word that is the program: behind those that only set up its environment, their options, and
 * the numbers, assignments and values of these (env -u NAME -C FOLDER, timeout -s SIGNAL, ionice -c
 * CLASS). */
static char *const *program_word(char *const *command)
{
    static const char *const wrappers[] = {"env",     "nice", "ionice", "nohup",  "numactl",
                                           "taskset", "chrt", "setsid", "stdbuf", "timeout"};
    for (char *const *word = command; *word; word++) {
        const char *slash = strrchr(*word, '/'), *name = slash ? slash + 1 : *word;
        bool wraps = false;
        for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++)
            wraps |= !strcmp(name, wrappers[i]);
        bool is_setting =
            word > command &&
            (**word == '-' || strchr(*word, '=') || (**word >= '0' && **word <= '9') ||
             (word[-1][0] == '-' && strlen(word[-1]) == 2 && strchr("uCskc", word[-1][1])));
        if (!wraps && !is_setting)
            return word;
    }
    return command;
}

/* What a command is named after: of an interpreter or a launcher of scripts the script (`python3 -u
 * a/train.py`: train), else the program. */
void output_subject(char *const *command, char out[PATH_MAX])
{
    static const char *const interpreters[] = {
        "python", "pypy", "torchrun", "accelerate", "deepspeed", "uv",     "bash",
        "sh",     "node", "perl",     "ruby",       "julia",     "Rscript"};
    static const char *const scripts[] = {".py", ".sh", ".js", ".mjs", ".pl", ".rb", ".jl", ".R"};
    command = program_word(command);
    const char *slash = strrchr(command[0], '/'), *program = slash ? slash + 1 : command[0];
    bool runs_scripts = false;
    snprintf(out, PATH_MAX, "%s", command[0]);
    for (size_t i = 0; i < sizeof interpreters / sizeof interpreters[0]; i++) {
        size_t length = strlen(interpreters[i]);
        runs_scripts |= !strncmp(program, interpreters[i], length) &&
                        strspn(program + length, "0123456789.") == strlen(program + length);
    }
    for (char *const *word = command + 1; runs_scripts && *word && strcmp(*word, "-c") != 0;
         word++) {
        const char *dot = strrchr(*word, '.');
        for (size_t i = 0; dot && **word != '-' && i < sizeof scripts / sizeof scripts[0]; i++) {
            if (strcmp(dot, scripts[i]) != 0)
                continue;
            snprintf(out, PATH_MAX, "%.*s", (int)(dot - *word), *word);
            return;
        }
        if (!strcmp(*word, "-m") && word[1] && !strchr(word[1], '/')) {
            snprintf(out, PATH_MAX, "%s",
                     word[1]); /* unless a script follows: torch.distributed.run train.py */
            word++;
        }
    }
}

/* The program's name as the start of a file name: control characters and a leading dash would be a
 * nuisance in every later command. */
static void program_file_name(const char *program, char out[128])
{
    const char *name = prof_file_name(program);
    size_t used = 0;
    for (; *name && used < 120; name++, used++) {
        unsigned char byte = (unsigned char)*name;
        bool bad = byte < 0x20 || byte == 0x7f || (used == 0 && byte == '-');
        out[used] = bad ? '_' : *name;
    }
    out[used] = '\0';
    if (!used)
        strcpy(out, "capture");
}

static enum prof_status automatic(struct run_output *output, const char *program, bool force,
                                  struct prof_error *err)
{
    char base[128], name[160];
    const char *suffix;
    program_file_name(program, base);
    for (unsigned n = 1; n < MOST_NAMES; n++) {
        if (n == 1)
            snprintf(name, sizeof name, "%s" SUFFIX, base);
        else
            snprintf(name, sizeof name, "%s-%u" SUFFIX, base, n);
        enum prof_status status = resolve(output, ".", name, err);
        if (status || force)
            return status;
        status = find_file(output->final, err);
        status = status ?: find_side_file(output->final, &suffix, err);
        if (status != PROF_EXISTS)
            return status;
    }
    return prof_fail(err, PROF_INVALID, "%s" SUFFIX " and %d more exist: give a name with -o", base,
                     MOST_NAMES);
}

enum prof_status output_choose(struct run_output *output, const char *wanted, const char *program,
                               bool force, struct prof_error *err)
{
    if (!wanted)
        return automatic(output, program, force, err);
    struct stat info;
    if (strlen(wanted) >= PATH_MAX)
        return prof_fail(err, PROF_INVALID, "the name given with -o is too long");
    if (wanted[strlen(wanted) - 1] == '/' || (stat(wanted, &info) == 0 && S_ISDIR(info.st_mode)))
        return prof_fail(err, PROF_INVALID, "%s is a folder: give a file name with -o", wanted);
    char folder[PATH_MAX], name[PATH_MAX];
    strcpy(folder, wanted);
    strcpy(name, wanted);
    enum prof_status status = resolve(output, dirname(folder), basename(name), err);
    if (status || force)
        return status;
    status = find_file(output->final, err);
    if (status == PROF_EXISTS)
        return prof_fail(err, PROF_EXISTS,
                         "%s exists already: choose another name, or overwrite it with --force",
                         wanted);
    const char *suffix;
    status = status ?: find_side_file(output->final, &suffix, err);
    if (status == PROF_EXISTS)
        return prof_fail(err, PROF_EXISTS,
                         "%s%s is left from an older capture: choose another name, or overwrite "
                         "it with --force",
                         wanted, suffix);
    return status;
}

int output_take_turn(const struct run_output *output)
{
    char folder[PATH_MAX];
    strcpy(folder, output->final);
    int fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t until = prof_now_ns() + TURN_NS;
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK && prof_now_ns() < until)
        usleep(TURN_PAUSE_US);
    return fd;
}

/* --force: the old file stays beside, with its side files, which are a part of it and would be
 * replayed into the new one: so a command that cannot be started costs nothing. */
static enum prof_status set_aside(struct run_output *output, struct prof_error *err)
{
    struct stat info;
    struct spool_found running;
    bool there = lstat(output->final, &info) == 0;
    if (there &&
        (prof_store_is_written(output->final) || !ctl_find(output->final, &running, NULL, NULL)))
        return prof_fail(err, PROF_BUSY,
                         "%s is being recorded: let it finish, or choose another name with -o",
                         output->final);
    if (there)
        PROF_TRY(prof_replaceable(output->final, err));
    if (stat(output->final, &info) == 0 && info.st_size > 0 &&
        !is_capture_file(AT_FDCWD, output->final))
        return prof_fail(err, PROF_INVALID,
                         "%s is no capture, and --force overwrites nothing else: choose another "
                         "name, or remove it",
                         output->final);
    if (!aside_name(output->aside, output->final, getpid()) ||
        (there && rename(output->final, output->aside) < 0)) {
        output->aside[0] = '\0';
        return prof_fail_errno(err, PROF_IO, "cannot replace %s", output->final);
    }
    move_side_files(output->final, output->aside);
    return PROF_OK;
}

static enum prof_status reserve_output_file(struct run_output *output, struct prof_error *err)
{
    int fd = open(output->final, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return prof_fail(err, PROF_EXISTS, "%s exists already: choose another name", output->final);
    if (fd < 0)
        return prof_fail_errno(err, PROF_IO, "cannot create %s", output->final);
    flock(fd, LOCK_EX | LOCK_NB);
    output->reserved = fd;
    output->made = true;
    return PROF_OK;
}

static enum prof_status make_live_store(struct run_output *output, const char *spool,
                                        struct prof_store **store, struct prof_error *err)
{
    if (!output->network) {
        strcpy(output->live, output->final);
        return prof_store_begin(output->live, false, store, err);
    }
    int length = snprintf(output->live, sizeof output->live, "%s/capture.sqlite", spool);
    if (length < 0 || length >= PATH_MAX)
        return prof_fail(err, PROF_INVALID, "%s is too long a path", spool);
    PROF_TRY(reserve_output_file(output, err));
    return prof_store_begin(output->live, false, store, err);
}

enum prof_status output_create(struct run_output *output, const char *wanted, const char *program,
                               bool force, const char *spool, struct prof_store **store,
                               struct prof_error *err)
{
    enum prof_status status = output_choose(output, wanted, program, force, err);
    if (status == PROF_OK && force)
        status = set_aside(output, err);
    if (status)
        return status;
    status = make_live_store(output, spool, store, err);
    if (status)
        output_discard(output);
    return output_suggest_place(status, err);
}

enum prof_status output_suggest_place(enum prof_status status, struct prof_error *err)
{
    if (err && (status == PROF_IO || status == PROF_FULL) && !strstr(err->message, "ulimit"))
        prof_append(err->message, sizeof err->message, ": choose another place with -o");
    return status;
}

void output_started(struct run_output *output)
{
    if (!output->aside[0])
        return;
    output_remove(output->aside);
    restore_left_captures(output->final, true);
    output->aside[0] = '\0';
}

void output_remove(const char *path)
{
    unlink(path);
    for (size_t i = 0; i < SIDE_FILES; i++) {
        char name[PATH_MAX + 16];
        snprintf(name, sizeof name, "%s%s", path, side_files[i]);
        unlink(name);
    }
}

void output_discard(struct run_output *output)
{
    if (output->made)
        output_remove(output->final);
    output->made = false;
    if (output->reserved > 0)
        close(output->reserved);
    output->reserved = 0;
    /* Where another run has the name by now, the old file would have been overwritten anyway. */
    if (output->aside[0] &&
        renameat2(AT_FDCWD, output->aside, AT_FDCWD, output->final, RENAME_NOREPLACE)) {
        if (errno == EEXIST)
            output_remove(output->aside);
        else
            rename(output->aside, output->final);
    }
    if (output->aside[0])
        move_side_files(output->aside, output->final);
    output->aside[0] = '\0';
}

bool output_is_aside(const char *final, pid_t pid)
{
    char aside[PATH_MAX];
    return aside_name(aside, final, pid) && !access(aside, F_OK);
}

void output_forget_aside(const char *final, pid_t pid)
{
    char aside[PATH_MAX];
    if (aside_name(aside, final, pid))
        output_remove(aside);
}

bool output_restore(const char *final, pid_t pid)
{
    char aside[PATH_MAX];
    if (!aside_name(aside, final, pid) ||
        (renameat2(AT_FDCWD, aside, AT_FDCWD, final, RENAME_NOREPLACE) &&
         (errno == EEXIST || rename(aside, final))))
        return false;
    move_side_files(aside, final);
    return true;
}

static bool copy_bytes(int from, int to)
{
    static char buffer[1 << 18];
    for (;;) {
        ssize_t got = read(from, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        if (!prof_write_all(to, buffer, (size_t)got))
            return false;
    }
}

static void sync_folder_of(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    int fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

enum prof_status output_move(const char *live, const char *final, struct prof_error *err)
{
    if (strcmp(live, final) == 0)
        return PROF_OK;
    if (rename(live, final) == 0) {
        sync_folder_of(final);
        return PROF_OK;
    }
    char partial[PATH_MAX];
    int length = snprintf(partial, sizeof partial, "%s.part", final);
    if (length < 0 || length >= PATH_MAX)
        return prof_fail(err, PROF_INVALID, "%s is too long a path", final);
    int from = prof_open_regular(AT_FDCWD, live, O_RDONLY);
    if (from < 0)
        return prof_fail_errno(err, PROF_IO, "cannot read %s", live);
    /* The mode that the reserved file got from the umask of the user. */
    struct stat info;
    mode_t mode = stat(final, &info) == 0 ? info.st_mode & 0777 : 0644;
    int to = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    bool ok = to >= 0 && copy_bytes(from, to) && fsync(to) == 0;
    int saved = errno;
    close(from);
    if (to >= 0 && close(to) < 0 && ok) {
        ok = false;
        saved = errno;
    }
    errno = saved;
    if (!ok || rename(partial, final) < 0) {
        prof_fail_errno(err, PROF_IO, "cannot write %s", final);
        saved = errno;
        unlink(partial);
        errno = saved;
        return err ? err->status : PROF_IO;
    }
    sync_folder_of(final);
    unlink(live);
    return PROF_OK;
}

/* ---- recording ------------------------------------------------------------------------------- */

/* While the program runs and after: records become rows, the sources that perfkit samples itself
 * are read, processes that outlive the command are waited for, and the capture is finished. No
 * failure of perfkit here may touch the program. */

#define STEP_MS 200 /* at most this far behind */
#define EAGER_MS 10
#define MUCH_BACKLOG (1u << 20)
#define PATIENCE_NS 1000000000ull /* before naming the processes that perfkit waits for */

static void step_ingest(struct run *run)
{
    struct prof_error err = {0};
    enum prof_status status = prof_ingest_step(run->ingest, &run->progress, &err);
    if (status == run->trouble)
        return;
    run->trouble = status;
    if (status == PROF_FULL)
        cli_say(run->name, "%s: make room; records wait in %s meanwhile", err.message,
                run->spool.path);
    else if (status)
        cli_say(run->name, "%s", err.message);
}

static void step_features(struct run *run)
{
    for (size_t i = 0; run_features[i]; i++) {
        if (run_features[i]->step)
            run_features[i]->step(run);
    }
}

/* How long to sleep: not at all behind a backlog, longer the quieter it is. */
static int next_pause(const struct run *run, int pause)
{
    if (run->trouble)
        return STEP_MS;
    if (run->progress.backlog_bytes > MUCH_BACKLOG)
        return 0;
    if (run->progress.records)
        return pause / 2 > EAGER_MS ? pause / 2 : EAGER_MS;
    return pause * 2 < STEP_MS ? pause * 2 + 1 : STEP_MS;
}

/* True once the target has ended, with its status. */
static bool look_at_target(struct run *run)
{
    int status;
    while (waitpid(run->pid, &status, WNOHANG | WUNTRACED) == run->pid) {
        if (!WIFSTOPPED(status)) {
            run->wait_status = status;
            return true;
        }
        signals_stop_with(run->pid, WSTOPSIG(status));
    }
    signals_hand_on_continue(run->pid);
    return false;
}

/* Ingest learns how the command ended. On a full disk this is repeated later. */
static void ingest_program_end(struct run *run)
{
    struct prof_error err = {0};
    enum prof_status status =
        prof_ingest_reaped(run->ingest, (uint32_t)run->pid, run->wait_status, &err);
    run->end_ingested = status == PROF_OK;
    if (status && status != PROF_FULL)
        cli_say(run->name, "%s", err.message);
}

/* `due`: milliseconds to what --delay and --duration have next, -1 = nothing. */
static int sooner(int pause, int due)
{
    return due >= 0 && due < pause ? due : pause;
}

void run_record(struct run *run)
{
    int pause = EAGER_MS;
    while (!look_at_target(run)) {
        environment_look(&run->environment, run->pid, run->ingest);
        step_ingest(run);
        step_features(run);
        pause = next_pause(run, pause);
        signals_wait(sooner(sooner(pause, scope_step(&run->scope)), overhead_step(run)));
    }
    signals_phase(SIGNALS_WAITING);
    ingest_program_end(run);
    step_ingest(run);
}

/* Processes of the target that still run. Those that ingest knows of, and when it knows none, those
 * that carry our environment: a child that was forked a moment ago has not yet said that it is
 * there, and one that took no preload never does. */
static unsigned others_alive(const struct run *run)
{
    if (run->progress.alive > 0 && !run->trouble) /* after a failed step it is the old number */
        return run->progress.alive;
    return spool_folder_users(&run->spool);
}

bool run_wait_for_others(struct run *run)
{
    uint64_t since = prof_now_ns();
    bool reported = run->options.quiet;
    int pause = EAGER_MS;
    unsigned alive;
    while ((alive = others_alive(run)) > 0) {
        if (run->options.wait == WAIT_PRIMARY || signals_end_requested())
            return true;
        if (!reported && prof_now_ns() - since > PATIENCE_NS) {
            reported = true;
            cli_say(run->name,
                    "%s has ended, %u of its processes still run and are recorded: Ctrl-C ends "
                    "the recording (--wait=primary does so by itself)",
                    run->argv[0], alive);
        }
        pause = next_pause(run, pause);
        signals_wait(sooner(sooner(pause, scope_step(&run->scope)), overhead_step(run)));
        step_ingest(run);
        step_features(run);
        if (!run->end_ingested)
            ingest_program_end(run);
    }
    return false;
}

/* What a perfkit run inside the program took over is in its own capture, not in this one. */
static void note_inner_runs(struct run *run)
{
    char first[PATH_MAX], note[PATH_MAX + 128], more[32] = "";
    unsigned count = spool_folder_inner(&run->spool, first);
    if (count == 0)
        return;
    if (count > 1)
        snprintf(more, sizeof more, " (and %u more)", count - 1);
    snprintf(note, sizeof note, "a perfkit run inside the program recorded a part of it into %s%s",
             first, more);
    prof_ingest_note(run->ingest, PROF_HEALTH_collector_nested, NULL, note, NULL);
}

void run_finish(struct run *run, bool abandon)
{
    for (size_t i = 0; run_features[i]; i++) {
        if (run_features[i]->stop)
            run_features[i]->stop(run, true);
    }
    static char last_words[PATH_MAX + 160];
    snprintf(last_words, sizeof last_words,
             "perfkit run: left: `perfkit recover %s` finishes the capture\n", run->spool.path);
    signals_remember_end(run->wait_status);
    signals_finishing_texts(
        "perfkit run: finishing the capture; once more to leave it for perfkit recover\n",
        last_words);
    signals_phase(SIGNALS_FINISHING);
    struct capture_end end = {
        .command = run->name,
        .store = run->store,
        .ingest = run->ingest,
        .spool = &run->spool,
        .stop = signals_end_requested,
        .live = run->output.live,
        .final = run->output.final,
        .state = "complete",
        .abandon = abandon,
        .without_costs = run->overhead.choice == OVERHEAD_OFF,
        .pid = run->end_ingested ? 0 : run->pid,
        .wait_status = run->wait_status,
    };
    note_inner_runs(run);
    bool done = capture_end(&end);
    if (done && !run->options.quiet) {
        const char *slash = strrchr(run->output.final, '/');
        const char *shown = run->options.output ? run->options.output : slash + 1;
        char text[512];
        capture_summary(run->name, run->output.final, shown,
                        scope_why_nothing(&run->scope, text, sizeof text));
    }
    control_close(&run->scope.control);
}
