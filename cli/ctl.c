/* perfkit ctl: starts and stops the recording of a program that runs under `perfkit run`. It writes
 * into the capture's control page and then waits until every process has looked at it, so that a
 * script may go on with what it wants recorded. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/find_capture.h"
#include "cli/spool_folder.h"
#include "libprof/base/array.h"
#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "libprof/base/json.h"
#include "libprof/base/utf8.h"
#include "libprof/spool/layout.h"

/* ---- the control page ------------------------------------------------------------------------ */

/* The file gets its full length and its room at once and keeps them: the processes
 * of the target read it without looking. */

#define LOCK_PATIENCE_NS 1000000000ull /* for another writer, which needs microseconds */

static enum prof_status map_control(struct control *control, const char *path,
                                    struct prof_error *err)
{
    void *at = mmap(NULL, CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, control->fd, 0);
    if (at == MAP_FAILED) {
        prof_fail_errno(err, PROF_IO, "cannot map %s", path);
        control_close(control);
        return PROF_IO;
    }
    control->page = at;
    return PROF_OK;
}

static bool control_path(const char *folder, char path[PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s/" CONTROL_FILE, folder);
    return length > 0 && length < PATH_MAX;
}

enum prof_status control_make(struct control *control, const char *folder, bool open_now,
                              bool limited, const char *range, struct prof_error *err)
{
    char path[PATH_MAX];
    *control = (struct control){.fd = -1};
    if (!control_path(folder, path))
        return prof_fail(err, PROF_INVALID, "%s is too long a path", folder);
    control->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (control->fd < 0)
        return prof_fail_errno(err, PROF_IO, "cannot make %s", path);
    int failed = posix_fallocate(control->fd, 0, CONTROL_BYTES);
    if (failed) {
        control_close(control);
        errno = failed;
        return prof_fail_errno(err, PROF_IO, "cannot make %s", path);
    }
    PROF_TRY(map_control(control, path, err));
    struct control_page *page = control->page;
    page->version = CONTROL_VERSION;
    page->owner = (uint32_t)getpid();
    page->limited = limited;
    page->start_ns = prof_now_ns();
    snprintf(page->range, sizeof page->range, "%s", range ? range : "");
    atomic_store(&page->change[0],
                 page->start_ns << 8 | (open_now ? WIRE_WINDOW_TIME : WIRE_WINDOW_CONTROL));
    atomic_store(&page->state, open_now);
    atomic_store_explicit(&page->magic, CONTROL_MAGIC, memory_order_release);
    return PROF_OK;
}

enum prof_status control_find(struct control *control, const char *folder, struct prof_error *err)
{
    char path[PATH_MAX];
    struct stat info;
    *control = (struct control){.fd = -1};
    if (!control_path(folder, path))
        return prof_fail(err, PROF_INVALID, "%s is too long a path", folder);
    control->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (control->fd < 0 && errno == ENOENT)
        return prof_fail(err, PROF_NOTFOUND,
                         "there is no %s: the capture has just ended, or an older perfkit that "
                         "cannot be controlled records it",
                         path);
    if (control->fd < 0)
        return prof_fail_errno(err, PROF_IO, "cannot open %s", path);
    if (fstat(control->fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
        info.st_size < CONTROL_BYTES) {
        control_close(control);
        return prof_fail(err, PROF_CORRUPT,
                         "%s is not what perfkit run made: the capture cannot be controlled", path);
    }
    PROF_TRY(map_control(control, path, err));
    if (atomic_load_explicit(&control->page->magic, memory_order_acquire) == CONTROL_MAGIC &&
        control->page->version == CONTROL_VERSION)
        return PROF_OK;
    control_close(control);
    return prof_fail(err, PROF_VERSION,
                     "%s is damaged or of another perfkit version: use the perfkit that records",
                     path);
}

static bool lock(int fd)
{
    uint64_t since = prof_now_ns();
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        if (prof_now_ns() - since > LOCK_PATIENCE_NS)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}

/* The last change, or the start. */
static uint64_t control_changed_ns(const struct control_page *page)
{
    uint64_t generation = control_generation(atomic_load(&page->state));
    return atomic_load(&page->change[generation % CONTROL_CHANGES]) >> 8;
}

enum prof_status control_set(struct control *control, bool open_now, enum wire_window_reason reason,
                             uint64_t *changed_ns, struct prof_error *err)
{
    if (!control->page || !lock(control->fd))
        return prof_fail(err, PROF_BUSY,
                         "another perfkit holds the control page of the capture: try again");
    struct control_page *page = control->page;
    uint64_t state = atomic_load(&page->state);
    bool paused = control_paused(page, state);
    if (open_now && reason == WIRE_WINDOW_OVERHEAD && !paused)
        open_now = control_open(state); /* `perfkit ctl stop` made a stop of the pause */
    if (control_open(state) != open_now)
        control_flip(page, prof_now_ns(), reason);
    else if (paused && reason != WIRE_WINDOW_OVERHEAD)
        control_stop_pause(page, reason);
    *changed_ns = control_changed_ns(control->page);
    flock(control->fd, LOCK_UN);
    return PROF_OK;
}

void control_close(struct control *control)
{
    if (control->page)
        munmap(control->page, CONTROL_BYTES);
    if (control->fd >= 0)
        close(control->fd);
    *control = (struct control){.fd = -1};
}

/* ---- the command ----------------------------------------------------------------------------- */

#define PATIENCE_NS 3000000000ull /* for processes that are busy: they look every 100 ms */
#define LOOK_NS 10000000l

struct ctl_options {
    bool json;
};

static const struct cli_option ctl_options[] = {
    CLI_JSON_ROW(ctl_options, json, "print the status as JSON"),
    {0},
};

static const struct cli_text_row ctl_examples[] = {
    {"perfkit ctl start", "Begin to record in the only running capture."},
    {"perfkit ctl stop train.sqlite", "Stop; the program runs on."},
    {"perfkit ctl keep server.sqlite", "Copy the last minute of perfkit run --ring=60s."},
    {"perfkit ctl status 4711", "Does the capture of process 4711 record now?"},
    {0},
};

/* ---- waiting for the processes --------------------------------------------------------------- */

struct lookers {
    uint64_t time;
    unsigned behind;
};

/* Has this process not looked at the control page since `time`? The answer of one that has ended or
 * whose file is not whole does not matter. */
static void add_behind(void *context, const struct spool_header *header, int64_t disk_bytes)
{
    struct lookers *lookers = context;
    (void)disk_bytes;
    lookers->behind += !header->ended && header->heartbeat_ns < lookers->time &&
                       !(kill((pid_t)header->pid, 0) < 0 && errno == ESRCH);
}

static unsigned count_behind(const char *folder, uint64_t time)
{
    struct lookers lookers = {.time = time};
    spool_headers(folder, add_behind, &lookers);
    return lookers.behind;
}

static unsigned wait_for_processes(const char *folder, uint64_t time)
{
    uint64_t since = prof_now_ns();
    unsigned behind;
    while ((behind = count_behind(folder, time)) > 0 && prof_now_ns() - since < PATIENCE_NS)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    return behind;
}

/* ---- status ---------------------------------------------------------------------------------- */

static int print_status(const struct spool_found *target, struct control *control, bool as_json)
{
    struct control_page *page = control->page;
    struct spool_folder spool = {.owner_fd = -1};
    snprintf(spool.path, sizeof spool.path, "%s", target->folder);
    uint64_t state = atomic_load(&page->state), now = prof_now_ns();
    uint64_t changed = control_changed_ns(page);
    int64_t since = changed < now ? (int64_t)(now - changed) : 0;
    uint32_t program = atomic_load(&page->target);
    unsigned processes = spool_folder_users(&spool);
    char range[sizeof page->range];
    snprintf(range, sizeof range, "%.*s", (int)sizeof page->range - 1, page->range);
    bool open_now = control_open(state);
    if (!as_json) {
        PROF_FREED char *name = prof_report_clean(target->capture.final),
                        *within = prof_report_clean(range);
        printf("%s: %s%s%s for %s; windows: %llu; processes: %u; perfkit run %u, program %u\n",
               name ? name : "",
               open_now                      ? "recording"
               : control_paused(page, state) ? "in a pause of --overhead"
                                             : "not recording",
               open_now && range[0] ? " within " : "", open_now && range[0] && within ? within : "",
               prof_duration_ns(since).text, (unsigned long long)control_windows(state), processes,
               page->owner, program);
        return CLI_OK;
    }
    struct prof_json json;
    prof_json_to_file(&json, stdout, 2);
    prof_json_object(&json, NULL);
    prof_json_string(&json, "capture", target->capture.final);
    prof_json_string(&json, "spool", target->folder);
    prof_json_bool(&json, "recording", open_now);
    prof_json_int(&json, "since_ns", since);
    prof_json_uint(&json, "windows", control_windows(state));
    prof_json_string(&json, "capture_range", range[0] ? range : NULL);
    prof_json_uint(&json, "processes", processes);
    prof_json_uint(&json, "perfkit_pid", page->owner);
    prof_json_known(&json, "program_pid", program ? (int64_t)program : PROF_UNKNOWN);
    prof_json_end(&json);
    return cli_finish_json("ctl", &json);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void print_running(void)
{
    PROF_FREED struct spool_list list = {0};
    struct control control;
    spool_find_running(&list);
    for (size_t i = 0; i < list.count; i++) {
        if (control_find(&control, list.data[i].folder, NULL))
            continue;
        PROF_FREED char *name = prof_report_clean(list.data[i].capture.final); /* one line each */
        printf("%u\t%s\n", control.page->owner, name ? name : "");
        control_close(&control);
    }
}

static int switch_recording(const struct cli_command *command, const struct spool_found *target,
                            struct control *control, bool open_now, struct prof_error *err)
{
    uint64_t changed;
    if (control_set(control, open_now, WIRE_WINDOW_CONTROL, &changed, err))
        return CLI_FAILED;
    unsigned behind = wait_for_processes(target->folder, changed);
    if (behind)
        cli_say(command->name,
                "%u of its processes have not answered within %s (stopped, or busy in a driver): "
                "they follow when they run again",
                behind, prof_duration_ns((int64_t)PATIENCE_NS).text);
    return CLI_OK;
}

/* Returns when the window is there. */
static int keep_ring(const struct cli_command *command, struct control *control)
{
    struct control_page *page = control->page;
    if (!page->ring)
        return cli_fail(
            CLI_FAILED, command->name,
            "the capture was not started with --ring: record with perfkit run --ring=60s");
    uint32_t mine = atomic_fetch_add(&page->keeps, 1) + 1;
    for (;;) {
        bool runs = kill((pid_t)page->owner, 0) == 0 || errno != ESRCH;
        if ((int32_t)(atomic_load(&page->kept) - mine) >= 0)
            return CLI_OK;
        if ((int32_t)(atomic_load(&page->unkept) - mine) >= 0 || !runs)
            break;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return cli_fail(
        CLI_FAILED, command->name,
        "no copy was kept: perfkit run printed why; if it has ended, its capture holds what "
        "the ring held");
}

enum { START, STOP, STATUS, KEEP, VERBS };
static const char *const verbs[] = {"start", "stop", "status", "keep", NULL};

static int ctl_run(const struct cli_command *command, void *given,
                   const struct cli_operands *operands, struct prof_error *err)
{
    const struct ctl_options *options = given;
    unsigned verb = 0;
    while (verb < VERBS && strcmp(operands->values[0], verbs[verb]) != 0)
        verb++;
    if (verb == VERBS)
        return cli_fail(CLI_USAGE, command->name,
                        "unknown action '%s': use start, stop, keep or status",
                        operands->values[0]);
    if (options->json && verb != STATUS)
        return cli_fail(CLI_USAGE, command->name, "--json goes with status only: leave it out");
    struct spool_found target;
    struct control control = {.fd = -1};
    bool several = false;
    if (ctl_find(operands->count > 1 ? operands->values[1] : NULL, &target, &several, err) ||
        control_find(&control, target.folder, err)) {
        if (several)
            print_running();
        return CLI_FAILED;
    }
    int status = verb == STATUS ? print_status(&target, &control, options->json)
                 : verb == KEEP ? keep_ring(command, &control)
                                : switch_recording(command, &target, &control, verb == START, err);
    control_close(&control);
    return status;
}

const struct cli_command ctl_command = {
    .name = "ctl",
    .summary = "start and stop the recording of a running program",
    .operands = "start|stop|keep|status [FILE|PID]",
    .text =
        "Controls a running `perfkit run` of this user: `start` starts recording (after --dormant "
        "or `stop`), `stop` stops it while the program runs on, `keep` copies what a recording "
        "with --ring holds into a capture of its own, `status` prints the state. Name the capture "
        "by its file, by the process id of the program or by that of perfkit run; no name is "
        "needed when only one is running. start and stop return when every process of the program "
        "has followed; what had begun by then is recorded to its end. keep returns when the copy "
        "is written.",
    .options = ctl_options,
    CLI_OPTIONS_ARE(ctl_options, 0),
    .examples = ctl_examples,
    .operand = CLI_FILE,
    .verbs = verbs,
    .least = 1,
    .most = 2,
    .run = ctl_run,
};
