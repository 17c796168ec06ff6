/* The life of a watched capture: opened, looked at, let go of while its writer ends it, opened
 * again; deleted, replaced, left behind by a recorder that died. What is read in a look is in the
 * model_*.c of its kind. */
#include "tui/model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/clock.h"

/* Longer than naming call stacks and making one file of it take as a rule; after that another
 * reader, not the writer, keeps the file in WAL mode. */
#define LET_GO_NS 30000000000ull

struct tui_model *tui_model_new(const char *path)
{
    struct tui_model *model = calloc(1, sizeof *model);
    if (model)
        model->path = strdup(path);
    if (!model || !model->path) {
        free(model);
        return NULL;
    }
    model->wall_ns = model->now_ns = PROF_UNKNOWN;
    model->newest_second = -TUI_MOST_SECONDS;
    model->window_s = 10;
    return model;
}

static void forget_all_rows(struct tui_model *model)
{
    for (size_t i = 0; i < model->kernels.count; i++)
        free(model->kernels.data[i].name);
    tui_lookups_free(model);
    prof_array_free(&model->kernels);
    prof_array_free(&model->cells);
    prof_array_free(&model->copies);
    prof_array_free(&model->memory);
    prof_array_free(&model->live);
    prof_array_free(&model->ends);
    prof_array_free(&model->seconds);
    prof_array_free(&model->copy_seconds);
    prof_array_free(&model->memory_seconds);
    prof_names_free(&model->kernel_names);
    prof_names_free(&model->cell_keys);
    prof_map_free(&model->seen_configs);
    prof_map_free(&model->memory_keys);
}

void tui_model_free(struct tui_model *model)
{
    if (!model)
        return;
    prof_close(model->capture);
    forget_all_rows(model);
    free(model->path);
    free(model->final);
    free(model);
}

/* Another file of the same name: nothing of the old one is true of it. */
static void begin_anew(struct tui_model *model)
{
    struct tui_model fresh = {.path = model->path,
                              .final = model->final,
                              .wall_ns = PROF_UNKNOWN,
                              .now_ns = PROF_UNKNOWN,
                              .newest_second = -TUI_MOST_SECONDS,
                              .window_s = model->window_s,
                              .window_chosen = model->window_chosen,
                              .is_served = model->is_served,
                              .served_context = model->served_context,
                              .replaced = true};
    prof_close(model->capture);
    forget_all_rows(model);
    *model = fresh;
}

static void let_go(struct tui_model *model, enum tui_phase phase)
{
    prof_close(model->capture);
    model->capture = NULL;
    model->phase = phase;
    model->let_go_ns = prof_now_ns();
}

/* While the writer ends the file, it is in WAL mode (byte 18 of its header is 2) until it is one
 * plain file. Looked at without SQLite, whose locks would be in the writer's way. */
static bool still_in_wal(const char *path)
{
    unsigned char mode = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool wal = fd >= 0 && pread(fd, &mode, 1, 18) == 1 && mode == 2;
    if (fd >= 0)
        close(fd);
    return wal;
}

static bool wait_is_over(const struct tui_model *model)
{
    return !still_in_wal(model->path) || prof_now_ns() - model->let_go_ns > LET_GO_NS;
}

/* A capture for a folder on a network grows elsewhere and is moved there at its end. */
static bool there(struct tui_model *model, struct stat *info)
{
    if (stat(model->path, info) == 0)
        return true;
    if (!model->final || stat(model->final, info) != 0)
        return false;
    free(model->path);
    model->path = model->final;
    model->final = NULL;
    model->inode = info->st_ino; /* the same capture */
    model->device_number = info->st_dev;
    return true;
}

/* What the folder says of the file. True when it is there. */
static bool check_file(struct tui_model *model)
{
    struct stat info;
    if (!there(model, &info)) {
        if (model->ever_read && errno == ENOENT)
            let_go(model, TUI_GONE);
        return !model->ever_read; /* the first look tells the error */
    }
    bool same = info.st_ino == model->inode && info.st_dev == model->device_number;
    if (model->ever_read && (!same || model->phase == TUI_GONE))
        begin_anew(model);
    model->inode = info.st_ino;
    model->device_number = info.st_dev;
    return true;
}

bool tui_model_tick(struct tui_model *model)
{
    struct stat info;
    bool found = there(model, &info);
    if (model->phase == TUI_GONE)
        return found;
    if (model->ever_read && (!found || info.st_ino != model->inode))
        return true;
    if (model->phase == TUI_LET_GO)
        return wait_is_over(model);
    if (model->phase != TUI_WATCHING)
        return false;
    if (!model->capture && prof_open(model->path, &model->capture, NULL))
        return false; /* the next look tells */
    return prof_live_state(model->capture) != PROF_STATE_RECORDING;
}

/* POSIX locks belong to the process: whoever in it closes the file takes them from every
 * connection. So there is one connection at a time. */
void tui_model_rest(struct tui_model *model)
{
    prof_close(model->capture);
    model->capture = NULL;
}

bool tui_model_is_live(const struct tui_model *model)
{
    return model->phase == TUI_WATCHING || model->phase == TUI_LET_GO;
}

/* ---- a look -------------------------------------------------------------------------------- */

static int64_t last_mark(const struct prof_live_marks *marks)
{
    return marks->kernels + marks->copies + marks->fills + marks->allocations + marks->ranges +
           marks->calls + marks->waits;
}

static enum tui_phase next_model_phase(const struct tui_model *model)
{
    if (model->state == PROF_STATE_CLOSING)
        return TUI_LET_GO;
    if (model->state != PROF_STATE_RECORDING)
        return TUI_FINISHED;
    if (model->is_served && !model->is_served(model->served_context, model->info.spool))
        return TUI_ABANDONED;
    return TUI_WATCHING;
}

/* Time of the capture: the clock's while it grows, else its end. */
static void tell_time(struct tui_model *model, uint64_t now)
{
    const struct prof_info *info = prof_info(model->capture);
    bool growing = model->state == PROF_STATE_RECORDING && next_model_phase(model) == TUI_WATCHING;
    if (growing && info->start_mono_ns != PROF_UNKNOWN && (int64_t)now > info->start_mono_ns)
        model->now_ns = (int64_t)now - info->start_mono_ns;
    else
        model->now_ns = prof_end_ns(model->capture);
    model->wall_ns = growing ? model->now_ns : prof_wall_ns(model->capture, NULL);
}

static void tell_progress(struct tui_model *model, uint64_t now)
{
    double all = 0, done = 0;
    const struct prof_live_marks *there = &model->there, *read = &model->marks;
    all += (double)(model->from_rollup ? there->sums : there->kernels);
    done += (double)(model->from_rollup ? read->sums : read->kernels);
    all += (double)there->copies + (double)there->fills + (double)there->allocations;
    done += (double)read->copies + (double)read->fills + (double)read->allocations;
    model->progress = model->caught_up || all <= 0 ? 1 : done / all;
    if (model->looked_ns && now > model->looked_ns)
        model->events_per_s = (double)(last_mark(there) - last_mark(&model->before)) * 1e9 /
                              (double)(now - model->looked_ns);
    model->before = *there;
}

static enum prof_status read_new_rows(struct tui_model *model, int64_t deadline,
                                      struct prof_error *err)
{
    enum prof_status status = prof_live_marks(model->capture, &model->there, err);
    if (status)
        return status;
    if (model->marks.sums == 0 && model->marks.kernels == 0) /* nothing read yet */
        model->from_rollup = model->there.sums > 0 || model->there.kernels == 0;
    model->caught_up = tui_kernels_feed(model, deadline, &status, err);
    if (!status)
        model->caught_up &= tui_copies_feed(model, deadline, &status, err);
    if (!status)
        model->caught_up &= tui_memory_feed(model, deadline, &status, err);
    return status;
}

static enum prof_status read_within_budget(struct tui_model *model, int64_t budget_ns,
                                           struct prof_error *err)
{
    uint64_t now = prof_now_ns();
    enum prof_status status = prof_live_begin(model->capture, err);
    if (status)
        return status;
    model->state = prof_live_state(model->capture);
    status = prof_refresh(model->capture, err);
    if (!status)
        status = tui_lookups_take(model, err);
    if (!status) {
        tell_time(model, now);
        status = read_new_rows(model, budget_ns ? (int64_t)now + budget_ns : INT64_MAX, err);
    }
    if (!status) {
        tell_progress(model, now);
        model->looked_ns = now;
    }
    prof_live_end(model->capture);
    return status;
}

static enum prof_status open_again(struct tui_model *model, struct prof_error *err)
{
    enum prof_status status = prof_open(model->path, &model->capture, err);
    if (!status && model->ever_read &&
        prof_info(model->capture)->start_mono_ns != model->info.start_mono_ns) {
        struct prof_capture *other = model->capture; /* with the number of the old file */
        dev_t device_number = model->device_number;
        ino_t inode = model->inode;
        model->capture = NULL;
        begin_anew(model);
        model->capture = other;
        model->device_number = device_number;
        model->inode = inode;
    }
    if (!status || !model->ever_read || status == PROF_NOMEM)
        return status;
    /* It was a capture a moment ago: moved, replaced, or being made anew. The next look tells. */
    model->error = *err;
    return PROF_OK;
}

enum prof_status tui_model_look(struct tui_model *model, int64_t budget_ns, struct prof_error *err)
{
    struct prof_error own = {0};
    err = err ? err : &own;
    uint64_t began = prof_now_ns();
    model->error = (struct prof_error){0};
    if (!check_file(model))
        return PROF_OK;
    if (model->phase == TUI_LET_GO && !wait_is_over(model))
        return PROF_OK;
    if (model->phase == TUI_FINISHED && model->caught_up)
        return PROF_OK; /* nothing is added to a finished capture */
    enum prof_status status = model->capture ? PROF_OK : open_again(model, err);
    if (status || !model->capture)
        return status;
    status = read_within_budget(model, budget_ns, err);
    if (status == PROF_BUSY || (status && model->ever_read && status != PROF_NOMEM)) {
        model->error = *err;
        let_go(model, model->phase);
        return PROF_OK;
    }
    if (status)
        return status;
    model->ever_read = true;
    enum tui_phase phase = next_model_phase(model);
    /* The recorder may have ended, and its folder be gone, since the state was read. */
    if (phase == TUI_ABANDONED && prof_live_state(model->capture) != PROF_STATE_RECORDING)
        phase = TUI_WATCHING;
    /* Complete, but not yet one file: its writer names call stacks. */
    if (phase == TUI_FINISHED && model->phase == TUI_WATCHING && still_in_wal(model->path))
        phase = TUI_LET_GO;
    if (phase == TUI_LET_GO)
        let_go(model, phase);
    else if (phase == TUI_ABANDONED || (phase == TUI_FINISHED && model->caught_up))
        let_go(model, phase); /* in nobody's way: `perfkit recover`, a new recording of that name */
    model->phase = phase;
    if (phase == TUI_FINISHED && !model->window_chosen)
        model->window_s = 0;
    model->window_chosen |= phase == TUI_WATCHING || phase == TUI_FINISHED;
    tui_model_window(model, model->window_s);
    model->look_cost_ns = (int64_t)(prof_now_ns() - began);
    if (model->look_cost_ns > model->worst_look_ns)
        model->worst_look_ns = model->look_cost_ns;
    return PROF_OK;
}
