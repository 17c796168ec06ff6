/* The life of a watched capture: opened, read, closed while its writer ends it, opened again;
 * deleted, replaced, left behind by a recorder that died. What is read in a look is in the
 * model_*.c of its kind. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/base/regular.h"
#include "libprof/include/prof_stack.h"
#include "tui/model.h"

/* ---- what is kept between looks -------------------------------------------------------------- */

#define MOST_WANTED 64 /* at a time */

static void forget_places(struct tui_kept *kept)
{
    for (size_t i = 0; i < kept->places.count; i++)
        free(kept->places.data[i]);
    prof_array_free(&kept->places);
    prof_map_free(&kept->stacks);
    prof_array_free(&kept->wanted);
}

static void forget_bounds(struct tui_kept *kept)
{
    prof_names_free(&kept->kernels);
    prof_array_free(&kept->bounds);
    kept->has_bounds = false;
}

void tui_kept_free(struct tui_kept *kept)
{
    forget_places(kept);
    forget_bounds(kept);
    *kept = (struct tui_kept){0};
}

void tui_kept_check(struct tui_kept *kept, int64_t start_mono_ns, bool finished)
{
    if (kept->start_mono_ns == start_mono_ns && kept->of_finished == finished)
        return;
    tui_kept_free(kept);
    kept->start_mono_ns = start_mono_ns;
    kept->of_finished = finished;
}

/* ---- what bounds kernels --------------------------------------------------------------------- */

const struct tui_bound *tui_kept_bound(const struct tui_kept *kept, const char *kernel)
{
    const uint32_t *known = prof_names_get(&kept->kernels, kernel, strlen(kernel));
    return known ? &kept->bounds.data[*known] : NULL;
}

/* A kernel of several devices: as on the one that it spent most time on, which comes first. */
static void keep_point(struct tui_kept *kept, const struct prof_roofline_point *point)
{
    size_t length = point->name ? strlen(point->name) : 0;
    if (point->bound == PROF_BOUND_NONE || !point->name ||
        prof_names_get(&kept->kernels, point->name, length))
        return;
    struct tui_bound *bound = prof_array_add(&kept->bounds);
    if (!bound)
        return;
    *bound = (struct tui_bound){point->bound, point->roof_share};
    if (!prof_names_put(&kept->kernels, point->name, length, (uint32_t)kept->bounds.count - 1))
        kept->bounds.count--;
}

void tui_kept_read_bounds(struct tui_kept *kept, struct prof_capture *tail,
                          const struct prof_filter *filter)
{
    struct prof_roofline roofline;
    if (prof_roofline(tail, filter, PROF_ROOFLINE_KERNELS, &roofline, NULL))
        return;
    forget_bounds(kept);
    for (size_t i = 0; i < roofline.count; i++)
        keep_point(kept, &roofline.points[i]);
    kept->has_bounds = true;
    prof_roofline_free(&roofline);
}

void tui_kept_take_bounds(struct tui_kept *kept, struct tui_kept *from)
{
    forget_bounds(kept);
    kept->kernels = from->kernels;
    memcpy(&kept->bounds, &from->bounds, sizeof kept->bounds);
    kept->has_bounds = true; /* also when it could not be read: the next look would not either */
    memset(&from->kernels, 0, sizeof from->kernels);
    memset(&from->bounds, 0, sizeof from->bounds);
}

/* ---- which lines stacks are of --------------------------------------------------------------- */

const char *tui_kept_place(struct tui_kept *kept, int64_t stack)
{
    const uint64_t *known = stack > 0 ? prof_map_get(&kept->stacks, (uint64_t)stack) : NULL;
    if (known)
        return kept->places.data[*known];
    bool full = kept->wanted.count >= MOST_WANTED;
    int64_t *wanted = stack > 0 && !full ? prof_array_add(&kept->wanted) : NULL;
    if (wanted)
        *wanted = stack;
    return NULL;
}

static void keep_stack_line(struct tui_kept *kept, struct prof_capture *tail, int64_t stack)
{
    char text[400] = "";
    const struct prof_frame *place, *via;
    if (!prof_stack_callers(tail, PROF_STACK_MEMORY, stack, &place, &via))
        place = NULL;
    if (prof_map_get(&kept->stacks, (uint64_t)stack))
        return;
    if (place)
        prof_frame_text(place, text, sizeof text);
    char **slot = prof_array_add(&kept->places);
    if (!slot)
        return;
    *slot = place ? strdup(text) : NULL;
    prof_map_put(&kept->stacks, (uint64_t)stack, kept->places.count - 1);
}

void tui_kept_read_places(struct tui_kept *kept, struct prof_capture *tail)
{
    for (size_t i = 0; i < kept->wanted.count; i++)
        keep_stack_line(kept, tail, kept->wanted.data[i]);
    kept->wanted.count = 0;
}

/* ---- small tables ---------------------------------------------------------------------------- */

/* Copies of the small tables, so that views need no open file: processes, devices, streams, launch
 * configurations, and what the capture says of itself. */

#define AT(type, member) offsetof(struct type, member)
static const size_t info_texts[] = {
    AT(prof_info, state_text), AT(prof_info, perfkit_version), AT(prof_info, command),
    AT(prof_info, host),       AT(prof_info, kernel),          AT(prof_info, cpu),
    AT(prof_info, trace),      AT(prof_info, kernel_filter),   AT(prof_info, spool)};
static const size_t stream_texts[] = {AT(prof_stream, name)};
static const size_t process_texts[] = {AT(prof_process, command), AT(prof_process, end_reason),
                                       AT(prof_process, host)};
static const size_t device_texts[] = {
    AT(prof_device, api),    AT(prof_device, name),  AT(prof_device, vendor),
    AT(prof_device, driver), AT(prof_device, uuid),  AT(prof_device, kind),
    AT(prof_device, label),  AT(prof_device, title), AT(prof_device, full_name)};
#define ALL(texts) texts, sizeof texts / sizeof *texts

static void free_own_texts(void *values, const size_t *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char **text = (const char **)((char *)values + texts[i]);
        free((char *)(uintptr_t)*text);
    }
}

/* The texts of what was copied from the capture become our own; NULL stays. */
static void own_texts(void *values, const size_t *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char **text = (const char **)((char *)values + texts[i]);
        bool any = *text;
        *text = any ? strdup(*text) : NULL;
        if (any && !*text)
            prof_note(PROF_NOMEM);
    }
}

const struct tui_stream *tui_model_stream(const struct tui_model *model, int64_t id)
{
    size_t i = prof_index_of(&model->streams, id);
    return i == SIZE_MAX ? NULL : &model->streams.data[i];
}

const struct tui_process *tui_model_process(const struct tui_model *model, int64_t id)
{
    size_t i = prof_index_of(&model->processes, id);
    return i == SIZE_MAX ? NULL : &model->processes.data[i];
}

const struct prof_config *tui_model_config(const struct tui_model *model, int64_t id)
{
    size_t i = prof_index_of(&model->configs, id);
    return i == SIZE_MAX ? NULL : &model->configs.data[i];
}

const struct prof_device *tui_model_device(const struct tui_model *model, int64_t id)
{
    size_t i = prof_index_of(&model->devices, id);
    return i == SIZE_MAX ? NULL : &model->devices.data[i];
}

struct tui_stream *tui_stream_of(const struct tui_model *model, int64_t id,
                                 struct tui_process **process)
{
    size_t stream = prof_index_of(&model->streams, id);
    *process = NULL;
    if (stream == SIZE_MAX)
        return NULL;
    size_t its = prof_index_of(&model->processes, model->streams.data[stream].values.process);
    if (its != SIZE_MAX)
        *process = &model->processes.data[its];
    return &model->streams.data[stream];
}

static void take_info(struct tui_model *model)
{
    struct prof_info *info = &model->info;
    if (model->own_info)
        free_own_texts(info, ALL(info_texts));
    *info = *prof_info(model->capture);
    info->path = model->path;
    info->directory = info->boot_id = NULL;
    own_texts(info, ALL(info_texts));
    model->own_info = true;
}

/* A kind of rows: a struct of ours that begins with what the capture has, whose texts are owned. */
struct row_kind {
    size_t row_bytes, value_bytes;
    const size_t *texts;
    size_t text_count;
};
static const struct row_kind stream_rows = {sizeof(struct tui_stream), sizeof(struct prof_stream),
                                            ALL(stream_texts)},
                             process_rows = {sizeof(struct tui_process),
                                             sizeof(struct prof_process), ALL(process_texts)},
                             device_rows = {sizeof(struct prof_device), sizeof(struct prof_device),
                                            ALL(device_texts)};

/* What was summed for a row stays with its id. The lists only grow, at their end. */
static bool take_rows(void *slot, size_t *count, size_t *capacity, const struct row_kind *kind,
                      const void *list, size_t number)
{
    char *rows;
    if (!prof_array_room(slot, capacity, number, kind->row_bytes))
        return false;
    memcpy(&rows, slot, sizeof rows);
    for (size_t i = 0; i < number; i++) {
        char *row = rows + i * kind->row_bytes;
        if (i < *count)
            free_own_texts(row, kind->texts, kind->text_count);
        else
            memset(row, 0, kind->row_bytes);
        memcpy(row, (const char *)list + i * kind->value_bytes, kind->value_bytes);
        own_texts(row, kind->texts, kind->text_count);
    }
    *count = number > *count ? number : *count;
    return true;
}
#define TAKE_ROWS(array, kind, list, number)                                                       \
    take_rows(&(array).data, &(array).count, &(array).capacity, kind, list, number)

static void free_rows(void *rows, size_t count, const struct row_kind *kind)
{
    for (size_t i = 0; i < count; i++)
        free_own_texts((char *)rows + i * kind->row_bytes, kind->texts, kind->text_count);
}

static bool take_streams(struct tui_model *model)
{
    const struct prof_stream *list;
    size_t known = model->streams.count, count = prof_streams(model->capture, &list);
    if (!TAKE_ROWS(model->streams, &stream_rows, list, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct tui_stream *stream = &model->streams.data[i];
        if (i >= known)
            stream->last_second = PROF_UNKNOWN;
        stream->values.clock = NULL;
        stream->values.api = !list[i].api                     ? NULL
                             : !strcmp(list[i].api, "cuda")   ? "cuda"
                             : !strcmp(list[i].api, "opencl") ? "opencl"
                                                              : NULL;
    }
    return true;
}

static bool take_processes_and_devices(struct tui_model *model)
{
    const struct prof_process *processes;
    const struct prof_device *devices;
    size_t count = prof_processes(model->capture, &processes);
    bool ok = TAKE_ROWS(model->processes, &process_rows, processes, count);
    for (size_t i = 0; i < model->processes.count; i++)
        model->processes.data[i].values.birth = NULL;
    count = prof_devices(model->capture, &devices);
    return ok && TAKE_ROWS(model->devices, &device_rows, devices, count);
}

/* Configurations never change once they are defined, until there are so many that the last one is
 * for the rest. */
static bool take_configs(struct tui_model *model)
{
    const struct prof_config *list;
    size_t count = prof_configs(model->capture, &list);
    if (count && list[count - 1].id == PROF_OTHER_CONFIGS && model->configs.count != count)
        model->configs.count = 0;
    for (size_t i = model->configs.count; i < count; i++) {
        if (!prof_array_push(&model->configs, list[i]))
            return false;
        model->configs.data[i].name = model->configs.data[i].full_name = NULL;
    }
    return true;
}

static enum prof_status tui_lookups_take(struct tui_model *model, struct prof_error *err)
{
    take_info(model);
    return take_streams(model) && take_processes_and_devices(model) &&
                   (model->most_cells || take_configs(model))
               ? PROF_OK
               : prof_out_of_memory(err);
}

static void tui_lookups_free(struct tui_model *model)
{
    if (model->own_info)
        free_own_texts(&model->info, ALL(info_texts));
    free_rows(model->streams.data, model->streams.count, &stream_rows);
    free_rows(model->processes.data, model->processes.count, &process_rows);
    free_rows(model->devices.data, model->devices.count, &device_rows);
    prof_array_free(&model->streams);
    prof_array_free(&model->processes);
    prof_array_free(&model->devices);
    prof_array_free(&model->configs);
}

/* ---- the life of a capture ------------------------------------------------------------------- */

/* Longer than naming call stacks and making one file of it take as a rule; after that another
 * reader, not the writer, keeps the file in WAL mode. */
#define LET_GO_NS 30000000000ull
#define UNRECORDED_REST 20 /* times as long as reading it took */

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
    prof_array_free(&model->unrecorded);
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
                              .most_cells = model->most_cells,
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
    int fd = prof_look_open(AT_FDCWD, path);
    bool wal = fd >= 0 && pread(fd, &mode, 1, 18) == 1 && mode == 2;
    if (fd >= 0)
        prof_look_close(fd);
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
        return !model->ever_read; /* the first look reports the error */
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
        return false; /* the next look reports it */
    return prof_live_state(model->capture) != PROF_STATE_RECORDING;
}

/* POSIX locks belong to the process: any thread of it that closes the file drops those of every
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

/* ---- a look ---------------------------------------------------------------------------------- */

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

/* Pauses, as those of --overhead=PERCENT. All are read anew: with many, it is done seldom. */
static void read_unrecorded(struct tui_model *model)
{
    struct prof_filter until_now = {.end_ns = model->now_ns > 0 ? model->now_ns : 0};
    uint64_t now = prof_now_ns();
    if (now < model->unrecorded_due_ns)
        return;
    prof_array_free(&model->unrecorded);
    if (prof_unrecorded(model->capture, &until_now, &model->unrecorded, NULL))
        prof_array_free(&model->unrecorded);
    uint64_t then = prof_now_ns();
    model->unrecorded_due_ns = then + UNRECORDED_REST * (then - now);
}

/* Time of the capture: the clock's while it grows, else its end. */
static void set_model_time(struct tui_model *model, uint64_t now)
{
    const struct prof_info *info = prof_info(model->capture);
    bool growing = model->state == PROF_STATE_RECORDING && next_model_phase(model) == TUI_WATCHING;
    if (growing && info->start_mono_ns != PROF_UNKNOWN && (int64_t)now > info->start_mono_ns)
        model->now_ns = (int64_t)now - info->start_mono_ns;
    else
        model->now_ns = prof_end_ns(model->capture);
    read_unrecorded(model);
    model->wall_ns =
        growing ? tui_recorded_ns(model, 0, model->now_ns) : prof_wall_ns(model->capture, NULL);
}

static void set_model_progress(struct tui_model *model, uint64_t now)
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
    PROF_TRY(prof_live_begin(model->capture, err));
    model->state = prof_live_state(model->capture);
    enum prof_status status = prof_refresh(model->capture, err);
    status = status ?: tui_lookups_take(model, err);
    if (!status) {
        set_model_time(model, now);
        status = read_new_rows(model, budget_ns ? (int64_t)now + budget_ns : INT64_MAX, err);
    }
    if (!status) {
        set_model_progress(model, now);
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
    /* It was a capture a moment ago: moved, replaced, or being made again. The next look shows
     * which. */
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
        let_go(model,
               phase); /* it must not block `perfkit recover` or a new recording of that name */
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
