/* perfkit top --json: an object a refresh. The rows are those of the views, by the names of their
 * columns. */
#include <math.h>

#include "libprof/base/clock.h"
#include "tui/app.h"

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
    prof_json_int(json, "version", 2);
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
        tui_table_json(&app->table, &json, tui_views[view].key);
    }
    prof_json_end(&json);
    tui_app_show(app, shown);
    enum prof_status status = prof_json_finish(&json, err);
    if (!status && (fputc('\n', out) == EOF || fflush(out)))
        status = prof_fail_errno(err, PROF_IO, "cannot write to standard output");
    return status ? status : tui_app_whole(app, err);
}
