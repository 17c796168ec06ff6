/* When what is read, and what is kept of where the user was. Keys are in keys.c, the drawing in
 * screen.c. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "libprof/base/clock.h"
#include "tui/app.h"

#define FIRST_TAIL 8192
#define LEAST_TAIL 2048
#define MOST_TAIL 131072
#define DETAIL_NS 10000000 /* what a look at details should take */
#define DETAIL_PAUSE 60    /* times as long until the next: below 2 % of a core */
#define KEPT_PAUSE 300     /* likewise, for what is kept: it is shown all the time */
#define LEAST_KEPT_NS 1000000000
#define DASHBOARD_BYTES (64 << 20) /* of a finished capture: read in less than a second */
#define READ_AT_ONCE 100           /* ms: what takes longer is read beside the keys */

const struct tui_health tui_health_unknown = {.dropped = PROF_UNKNOWN,
                                              .spools = PROF_UNKNOWN,
                                              .spool_bytes = PROF_UNKNOWN,
                                              .recorder_pid = PROF_UNKNOWN,
                                              .recorder_cpu = NAN,
                                              .recorder_bytes = PROF_UNKNOWN,
                                              .own_cpu = NAN,
                                              .own_bytes = PROF_UNKNOWN,
                                              .machine_cpu = NAN};

bool tui_app_make(struct tui_app *app, const char *path, bool ascii)
{
    *app = (struct tui_app){
        .model = tui_model_new(path), .ascii = ascii, .width = 80, .height = 24, .stale = true};
    app->health = tui_health_unknown;
    for (int i = 0; i < TUI_VIEWS; i++)
        app->places[i].sort = SIZE_MAX;
    for (int i = 0; i < 2 * TUI_VIEWS; i++)
        app->tail_rows[i] = i < TUI_VIEWS ? FIRST_TAIL : FIRST_TAIL / 2; /* pages need more of it */
    app->drill_place.sort = SIZE_MAX;
    return app->model != NULL;
}

/* ---- reading a finished capture beside the keys ---------------------------------------------- */

/* It has all of its own, and of the app only the model, which does not change meanwhile. */
struct tui_reader {
    pthread_t thread;
    atomic_bool done;
    void (*fill)(struct tui_table *table, const struct tui_view_input *input);
    struct tui_view_input input; /* tail: owned */
    struct tui_health health;
    struct tui_kept kept; /* what bounds kernels, when `fill` is NULL */
    struct tui_reading reading;
    int slot;
};

bool tui_app_has_read(const struct tui_app *app)
{
    return app->reader && atomic_load(&app->reader->done);
}

bool tui_app_is_reading(const struct tui_app *app)
{
    return app->reader && !atomic_load(&app->reader->done);
}

/* False: it still reads. */
static bool end_reader(struct tui_app *app)
{
    struct tui_reader *reader = app->reader;
    if (!tui_app_has_read(app))
        return false;
    pthread_join(reader->thread, NULL);
    prof_close(reader->input.tail);
    if (reader->fill) {
        tui_table_free(&app->readings[reader->slot].table);
        app->readings[reader->slot] = reader->reading;
    } else {
        tui_kept_take_bounds(&app->kept, &reader->kept);
    }
    tui_kept_free(&reader->kept);
    free(reader);
    app->reader = NULL;
    return true;
}

static void *read_beside(void *argument)
{
    struct tui_reader *reader = argument;
    if (reader->fill)
        reader->fill(&reader->reading.table, &reader->input);
    else
        tui_kept_read_bounds(&reader->kept, reader->input.tail, &reader->input.filter);
    atomic_store(&reader->done, true);
    return NULL;
}

/* Wait for what is soon done. */
static void await_reader(const struct tui_app *app)
{
    const struct timespec tick = {.tv_nsec = 1000000};
    for (int i = 0; i < READ_AT_ONCE && tui_app_is_reading(app); i++)
        nanosleep(&tick, NULL);
}

/* `fill` NULL: what bounds kernels. `input` has a tail, which is the reader's afterwards. False:
 * there is no thread or no memory. */
static bool start_reader(struct tui_app *app, const struct tui_view_input *input,
                         void (*fill)(struct tui_table *, const struct tui_view_input *))
{
    struct tui_reader *reader = calloc(1, sizeof *reader);
    sigset_t all, before;
    if (!reader)
        return false;
    reader->fill = fill;
    reader->input = *input;
    reader->health = app->health;
    reader->input.health = &reader->health;
    reader->input.kept = &reader->kept;
    reader->reading =
        (struct tui_reading){.target = app->target, .window_s = app->model->window_s, .done = true};
    reader->slot = app->view + (app->drilled ? TUI_VIEWS : 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread of the keys */
    bool started = pthread_create(&reader->thread, NULL, read_beside, reader) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started) {
        free(reader);
        return false;
    }
    app->reader = reader;
    await_reader(app);
    return true;
}

void tui_app_free(struct tui_app *app)
{
    if (app->reader && !end_reader(app)) /* the process ends, and the thread with it */
        return;
    for (int i = 0; i < 2 * TUI_VIEWS; i++)
        tui_table_free(&app->readings[i].table);
    tui_model_free(app->model);
    tui_table_free(&app->table);
    prof_nvml_close(app->nvml);
    tui_kept_free(&app->kept);
    *app = (struct tui_app){0};
}

int tui_view_named(const char *key)
{
    for (int i = 0; i < TUI_VIEWS; i++) {
        if (*key && !strncmp(tui_views[i].key, key, strlen(key)))
            return i;
    }
    return -1;
}

void tui_app_show(struct tui_app *app, int view)
{
    app->view = (view + TUI_VIEWS) % TUI_VIEWS;
    app->drilled = false;
    app->message[0] = '\0';
    app->stale = true;
}

/* ---- details --------------------------------------------------------------------------------- */

static bool can_open(const struct tui_model *model)
{
    return model->ever_read && (model->phase == TUI_WATCHING || model->phase == TUI_FINISHED);
}

/* A finding is looked for where it was found: its page reads what the list read. */
static int64_t *tail_rows(struct tui_app *app)
{
    bool page = app->drilled && app->view != TUI_VIEW_FINDINGS;
    return &app->tail_rows[app->view + (page ? TUI_VIEWS : 0)];
}

/* A finished capture is read whole, once. */
static bool model_is_finished(const struct tui_model *model)
{
    return model->phase == TUI_FINISHED && model->caught_up;
}

/* A connection for as long as one table takes to fill. Of a growing capture it sees the last rows
 * only. */
static bool open_last_rows(struct tui_app *app, int64_t rows, struct prof_capture **tail,
                           int64_t *begin)
{
    struct tui_model *model = app->model;
    *begin = 0;
    if (model_is_finished(model))
        rows = INT64_MAX;
    if (!can_open(model))
        return false;
    tui_model_rest(model);
    if (prof_open(model->path, tail, NULL))
        return false;
    if (prof_live_state(*tail) == PROF_STATE_CLOSING || prof_live_tail(*tail, rows, begin, NULL)) {
        prof_close(*tail);
        return false;
    }
    return true;
}

static bool open_tail(struct tui_app *app, struct tui_view_input *input)
{
    struct tui_model *model = app->model;
    struct prof_capture *tail;
    int64_t begin;
    if (!open_last_rows(app, *tail_rows(app), &tail, &begin))
        return false;
    /* Findings of a finished capture are those of perfkit report. */
    bool windowed =
        model->window_s && !(model_is_finished(model) && app->view == TUI_VIEW_FINDINGS);
    int64_t first = windowed ? tui_first_second(model) * 1000000000 : 0;
    input->tail = tail;
    input->filter = app->iterations;
    input->filter.begin_ns = begin > first ? begin : first;
    return true;
}

enum prof_status tui_app_whole(const struct tui_app *app, struct prof_error *err)
{
    static const enum prof_status failures[] = {PROF_NOMEM, PROF_IO,  PROF_FULL,
                                                PROF_BUSY,  PROF_SQL, PROF_CORRUPT};
    struct prof_error note, found = {0};
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        if (prof_take_note(failures[i], &note))
            found = note;
    }
    if (!found.status || app->model->phase != TUI_FINISHED)
        return PROF_OK;
    return prof_fail(err, found.status, "%s: not all of it could be read: %s", app->model->path,
                     found.message[0] ? found.message : prof_status_text(found.status));
}

/* As many rows next time as fit the time that a look may take. */
static void adapt(int64_t *rows, int64_t cost_ns)
{
    if (cost_ns > 2 * DETAIL_NS && *rows > LEAST_TAIL)
        *rows /= 2;
    else if (cost_ns < DETAIL_NS / 3 && *rows < MOST_TAIL)
        *rows *= 2;
}

/* ---- filling --------------------------------------------------------------------------------- */

struct tui_place *tui_app_cursor(struct tui_app *app)
{
    return app->drilled ? &app->drill_place : &app->places[app->view];
}

/* Rows move from look to look: the cursor stays on what it was on. */
static void app_save_cursor(struct tui_app *app)
{
    struct tui_place *place = tui_app_cursor(app);
    const struct tui_table *table = &app->table;
    if (place->has_id && !table->in_order) {
        for (size_t i = 0; i < table->order.count; i++) {
            if (table->rows.data[table->order.data[i]].id == place->chosen_id)
                place->chosen = i;
        }
    }
    if (place->chosen >= table->order.count)
        place->chosen = table->order.count ? table->order.count - 1 : 0;
}

/* The table is filled: its rows in order, and the cursor where it was. */
static void app_sort_table(struct tui_app *app)
{
    struct tui_place *place = tui_app_cursor(app);
    tui_table_arrange(&app->table, place->filter, place->sort, place->rising);
    if (app->table.failed)
        prof_note(PROF_NOMEM);
    app_save_cursor(app);
}

static void (*filler(const struct tui_app *app))(struct tui_table *, const struct tui_view_input *)
{
    const struct tui_view *view = &tui_views[app->view];
    return app->drilled && view->drill ? view->drill : view->fill;
}

static void fill_with(struct tui_app *app, struct tui_view_input *input)
{
    filler(app)(&app->table, input);
    app_sort_table(app);
}

/* When the view that is shown may read what is kept from the end of the file; NULL = it wants
 * nothing. */
static uint64_t *kept_due(struct tui_app *app)
{
    struct tui_kept *kept = &app->kept;
    bool is_final = kept->of_finished && kept->has_bounds;
    if (app->drilled)
        return NULL;
    return app->view == TUI_VIEW_KERNELS && !is_final           ? &kept->bounds_due_ns
           : app->view == TUI_VIEW_MEMORY && kept->wanted.count ? &kept->places_due_ns
                                                                : NULL;
}

static void read_kept(struct tui_app *app, struct tui_view_input *input)
{
    uint64_t now = prof_now_ns(), *due = kept_due(app);
    struct tui_view_input look = *input;
    if (!due || now < *due || app->reader || !open_tail(app, &look))
        return;
    if (app->beside && model_is_finished(app->model) && app->view == TUI_VIEW_KERNELS &&
        start_reader(app, &look, NULL)) {
        if (end_reader(app))
            fill_with(app, input);
        return;
    }
    if (app->view == TUI_VIEW_KERNELS)
        tui_kept_read_bounds(&app->kept, look.tail, &look.filter);
    else
        tui_kept_read_places(&app->kept, look.tail);
    prof_close(look.tail);
    int64_t cost = (int64_t)(prof_now_ns() - now), pause = cost * KEPT_PAUSE;
    adapt(tail_rows(app), cost);
    *due = now + (uint64_t)(pause > LEAST_KEPT_NS ? pause : LEAST_KEPT_NS);
    fill_with(app, input);
}

/* False: it is to be read here. */
static bool fill_beside(struct tui_app *app, struct tui_view_input *input)
{
    const struct tui_reading *reading = &app->readings[app->view + (app->drilled ? TUI_VIEWS : 0)];
    bool wanted = !reading->done || reading->window_s != app->model->window_s ||
                  (app->drilled && reading->target != app->target);
    if (wanted && !app->reader) {
        if (!open_tail(app, input))
            return false;
        if (!start_reader(app, input, filler(app))) {
            prof_close(input->tail);
            input->tail = NULL;
            return false;
        }
        if (end_reader(app))
            return fill_beside(app, input);
    }
    if (wanted) {
        tui_table_begin(&app->table, tui_text_column, 1);
        app->table.in_order = true;
        tui_table_line(&app->table, TUI_DIM, "%s", "Reading the capture ...");
    } else {
        tui_table_copy(&app->table, &reading->table);
    }
    app_sort_table(app);
    app->stale = wanted; /* until it has been read */
    return true;
}

void tui_app_fill(struct tui_app *app)
{
    const struct tui_view *view = &tui_views[app->view];
    struct tui_view_input input = {.model = app->model,
                                   .health = &app->health,
                                   .kept = &app->kept,
                                   .target = app->target,
                                   .ascii = app->ascii};
    uint64_t now = prof_now_ns();
    if (app->view == TUI_VIEW_DEVICES && !app->nvml_tried) {
        app->nvml = prof_nvml_open();
        app->nvml_tried = true;
    }
    input.nvml = app->nvml;
    bool finished = model_is_finished(app->model);
    if (tui_app_has_read(app))
        end_reader(app);
    for (int i = 0; i < 2 * TUI_VIEWS && !finished; i++)
        app->readings[i].done = false;
    tui_kept_check(&app->kept, app->model->info.start_mono_ns, finished);
    if (!view->details && !app->drilled) {
        app->stale = false;
        fill_with(app, &input);
        read_kept(app, &input);
        return;
    }
    if (!app->stale && (now < app->next_detail_ns || finished || !can_open(app->model)))
        return;
    if (app->beside && finished && fill_beside(app, &input))
        return;
    bool opened = open_tail(app, &input);
    fill_with(app, &input);
    prof_close(input.tail);
    int64_t cost = (int64_t)(prof_now_ns() - now);
    if (opened)
        adapt(tail_rows(app), cost);
    app->next_detail_ns = now + (uint64_t)cost * DETAIL_PAUSE;
    app->stale = !opened && can_open(app->model);
}

/* A capture that began again has other kernels. */
static void find_target(struct tui_app *app)
{
    if (!app->drilled || app->view != TUI_VIEW_KERNELS)
        return;
    const struct tui_model *model = app->model;
    if ((size_t)app->target < model->kernels.count &&
        !strncmp(model->kernels.data[app->target].name, app->target_name,
                 sizeof app->target_name - 1))
        return;
    app->drilled = false;
    app->stale = true;
}

/* Only where the screen has room for it; a large finished capture is read by its views alone. */
static void refresh_dashboard(struct tui_app *app)
{
    struct tui_dashboard *d = &app->dashboard;
    struct tui_model *model = app->model;
    bool finished = model_is_finished(model);
    uint64_t now = prof_now_ns();
    if (app->height < TUI_DASHBOARD_CURVES || app->reader)
        return;
    if (!app->nvml_tried && tui_model_is_live(model)) {
        app->nvml = prof_nvml_open();
        app->nvml_tried = true;
    }
    tui_dashboard_sample(d, model, app->nvml);
    if (d->whole || (!finished && now < d->due_ns) ||
        (finished && model->info.file_bytes > DASHBOARD_BYTES))
        return;
    d->tail_rows = d->tail_rows ? d->tail_rows : FIRST_TAIL;
    struct prof_filter filter = app->iterations;
    struct prof_capture *tail;
    if (!open_last_rows(app, d->tail_rows, &tail, &filter.begin_ns))
        return;
    tui_dashboard_read(d, tail, &filter, finished);
    prof_close(tail);
    int64_t cost = (int64_t)(prof_now_ns() - now);
    adapt(&d->tail_rows, cost);
    d->due_ns = now + (uint64_t)cost * DETAIL_PAUSE + LEAST_KEPT_NS;
}

enum prof_status tui_app_refresh(struct tui_app *app, int64_t budget_ns, struct prof_error *err)
{
    if (!app->paused && !tui_app_is_reading(app)) {
        bool was_done = model_is_finished(app->model);
        PROF_TRY(tui_model_look(app->model, budget_ns, err));
        if (!was_done && model_is_finished(app->model))
            app->stale = true; /* all there is, once */
        find_target(app);
        if (app->measure)
            app->measure(app->measure_context, &app->health);
    }
    if (!app->paused || app->stale)
        tui_app_fill(app);
    if (!app->paused)
        refresh_dashboard(app);
    return PROF_OK;
}

/* ---- the list of views ----------------------------------------------------------------------- */

const struct tui_view tui_views[TUI_VIEWS] = {
    [TUI_VIEW_KERNELS] = {"kernels", "Kernels",
                          "which kernels run, how often, how long; Enter: one", false,
                          tui_fill_kernels, tui_fill_kernel},
    [TUI_VIEW_STREAMS] = {"streams", "Streams", "what each stream did in the last minute", true,
                          tui_fill_streams, NULL},
    [TUI_VIEW_TRANSFERS] = {"transfers", "Memcpy",
                            "memcpy and memset, how fast, against the ceiling", false,
                            tui_fill_transfers, NULL},
    [TUI_VIEW_MEMORY] = {"memory", "Memory",
                         "live memory, the largest pieces; Enter: the code that allocates", false,
                         tui_fill_memory, tui_fill_memory_paths},
    [TUI_VIEW_RANGES] = {"ranges", "NVTX", "device time by the ranges that launched it", true,
                         tui_fill_ranges, NULL},
    [TUI_VIEW_PROCESSES] = {"processes", "Procs", "processes and ranks", false, tui_fill_processes,
                            NULL},
    [TUI_VIEW_FINDINGS] = {"findings", "Findings",
                           "what the rules say, of a running capture lately; Enter: why", true,
                           tui_fill_findings, tui_fill_finding},
    [TUI_VIEW_DEVICES] = {"devices", "Devices", "load, memory, power, clocks by the driver", false,
                          tui_fill_devices, NULL},
    [TUI_VIEW_HEALTH] = {"health", "Health", "lost records, delay, and what perfkit itself costs",
                         true, tui_fill_health, NULL},
    [TUI_VIEW_HOST] = {"host", "Host", "where the host's threads are, which lines launch", true,
                       tui_fill_host, NULL},
};

/* ---- --json ---------------------------------------------------------------------------------- */

/* perfkit top --json: an object a refresh. The rows are those of the views, by the names of their
 * columns. */

static const char *const phases[] = {
    [TUI_OPENING] = "opening",   [TUI_WATCHING] = "recording", [TUI_LET_GO] = "closing",
    [TUI_FINISHED] = "finished", [TUI_GONE] = "deleted",       [TUI_ABANDONED] = "interrupted"};

static void put_totals(const struct tui_model *model, struct prof_json *json)
{
    prof_json_object(json, "totals");
    prof_json_int(json, "kernels", model->total.count);
    prof_json_int(json, "kernel_ns", model->total.sum_ns);
    prof_json_int(json, "memcpys", model->moved.memcpys);
    prof_json_int(json, "memcpy_bytes", model->moved.memcpy_bytes);
    prof_json_int(json, "memcpy_ns", model->moved.memcpy_ns);
    prof_json_int(json, "memsets", model->moved.memsets);
    prof_json_int(json, "memset_bytes", model->moved.memset_bytes);
    prof_json_int(json, "memset_ns", model->moved.memset_ns);
    prof_json_int(json, "live_bytes", model->live_bytes);
    prof_json_int(json, "peak_bytes", model->peak_bytes);
    prof_json_known(json, "wall_ns", model->wall_ns);
    prof_json_end(json);
}

static void put_health(const struct tui_app *app, struct prof_json *json)
{
    const struct tui_health *h = &app->health;
    prof_json_object(json, "health_numbers");
    prof_json_known(json, "dropped", h->dropped);
    prof_json_known(json, "spools", h->spools);
    prof_json_known(json, "spool_bytes", h->spool_bytes);
    prof_json_known(json, "recorder_pid", h->recorder_pid);
    prof_json_real(json, "recorder_cpu", h->recorder_cpu);
    prof_json_known(json, "recorder_bytes", h->recorder_bytes);
    prof_json_real(json, "own_cpu", h->own_cpu);
    prof_json_known(json, "own_bytes", h->own_bytes);
    prof_json_end(json);
}

static void put_json_header(const struct tui_app *app, struct prof_json *json)
{
    const struct tui_model *model = app->model;
    prof_json_int(json, "version", 3);
    prof_json_string(json, "capture", model->path);
    prof_json_string(json, "command", model->info.command);
    prof_json_string(json, "state", phases[model->phase]);
    prof_json_bool(json, "whole", model->caught_up);
    prof_json_known(json, "time_ns", model->now_ns);
    prof_json_known(json, "age_ns",
                    model->looked_ns && tui_model_is_live(model)
                        ? (int64_t)(prof_now_ns() - model->looked_ns)
                        : PROF_UNKNOWN);
    prof_json_int(json, "look_ns", model->look_cost_ns);
    prof_json_int(json, "window_s", model->window_s);
    prof_json_real(json, "window_length_s", model->window_s ? model->window_length_s : NAN);
}

enum prof_status tui_app_json(struct tui_app *app, unsigned views, FILE *out,
                              struct prof_error *err)
{
    struct prof_json json;
    enum prof_status status = PROF_OK;
    int shown = app->view;
    prof_json_to_file(&json, out, 0);
    prof_json_object(&json, NULL);
    put_json_header(app, &json);
    put_totals(app->model, &json);
    put_health(app, &json);
    for (int view = 0; view < TUI_VIEWS; view++) {
        if (!(views >> view & 1))
            continue;
        tui_app_show(app, view);
        tui_app_fill(app);
        status = status ?: tui_table_json(&app->table, &json, tui_views[view].key, err);
    }
    prof_json_end(&json);
    tui_app_show(app, shown);
    enum prof_status finished = prof_json_finish(&json, status ? NULL : err);
    status = status ?: finished;
    if (!status && (fputc('\n', out) == EOF || fflush(out)))
        status = prof_fail_errno(err, PROF_IO, "cannot write to standard output");
    return status ? status : tui_app_whole(app, err);
}
