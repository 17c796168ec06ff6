/* Health: how far the look has come, and what the recording and the watching cost. */
#include <stdio.h>

#include "libprof/base/clock.h"
#include "libprof/base/format.h"
#include "tui/views.h"

/* ---- health -------------------------------------------------------------------------------- */

enum { H_WHAT, H_VALUE };

static const struct tui_column health_columns[] = {
    [H_WHAT] = {"what", "Health", TUI_TEXT, 30, 0},
    [H_VALUE] = {"value", "", TUI_NAME, 0, 0},
};

static void item(struct tui_table *table, enum tui_style style, const char *what, const char *value)
{
    tui_table_row(table, (int64_t)table->rows.count, 0, style);
    tui_table_text(table, H_WHAT, what);
    tui_table_text(table, H_VALUE, value);
}

static const char *phase_text(const struct tui_model *model)
{
    switch (model->phase) {
    case TUI_OPENING:
        return "nothing read yet";
    case TUI_WATCHING:
        return "being recorded";
    case TUI_LET_GO:
        return "its recorder is finishing it";
    case TUI_FINISHED:
        return model->state == PROF_STATE_RECOVERED ? "recovered" : "finished";
    case TUI_GONE:
        return "the file was deleted; shown is what was read until then";
    case TUI_ABANDONED:
        return "interrupted: perfkit no longer records into it; `perfkit recover` finishes it";
    }
    return "n/a";
}

static void own_state(struct tui_table *table, const struct tui_view_input *input)
{
    const struct tui_model *model = input->model;
    bool bad = model->phase == TUI_GONE || model->phase == TUI_ABANDONED;
    char line[200];
    item(table, bad ? TUI_WARN : TUI_GOOD, "capture", phase_text(model));
    if (model->error.message[0])
        item(table, TUI_WARN, "last look", model->error.message);
    item(table, TUI_NORMAL, "age of what is shown",
         model->looked_ns && tui_model_is_live(model)
             ? prof_duration_ns((int64_t)(prof_now_ns() - model->looked_ns)).text
             : "n/a");
    if (tui_model_is_live(model))
        snprintf(line, sizeof line, "%s of all; %s new rows/s", prof_percent(model->progress).text,
                 prof_count((int64_t)model->events_per_s).text);
    else
        snprintf(line, sizeof line, "%s of all", prof_percent(model->progress).text);
    item(table, model->caught_up ? TUI_NORMAL : TUI_WARN, "read of the capture", line);
    snprintf(line, sizeof line, "%s the last, %s the longest",
             prof_duration_ns(model->look_cost_ns).text,
             prof_duration_ns(model->worst_look_ns).text);
    item(table, TUI_NORMAL, "time of a look", line);
    item(table, TUI_NORMAL, "kernels are read from",
         model->from_rollup ? "rollup (sums by second)" : "kernel (no rollup in this capture)");
}

static void recorder_state(struct tui_table *table, const struct tui_health *health)
{
    char line[200];
    if (!health)
        return;
    item(table, health->dropped > 0 ? TUI_BAD : TUI_NORMAL, "records dropped",
         prof_count(health->dropped).text);
    if (health->recorder_pid == PROF_UNKNOWN)
        snprintf(line, sizeof line, "n/a");
    else
        snprintf(line, sizeof line, "%s of a core, %s (pid %lld)",
                 prof_percent(health->recorder_cpu).text,
                 prof_bytes_of(health->recorder_bytes).text, (long long)health->recorder_pid);
    item(table, TUI_NORMAL, "perfkit run", line);
    snprintf(line, sizeof line, "%s of a core, %s", prof_percent(health->own_cpu).text,
             prof_bytes_of(health->own_bytes).text);
    item(table, TUI_NORMAL, "perfkit top", line);
    if (health->spools == PROF_UNKNOWN)
        snprintf(line, sizeof line, "n/a");
    else
        snprintf(line, sizeof line, "%s in %s", prof_bytes_of(health->spool_bytes).text,
                 prof_counted(health->spools, "spool", "spools").text);
    item(table, TUI_NORMAL, "memory of the recording", line);
}

static void trust_block(struct tui_table *table, const struct tui_view_input *input)
{
    struct prof_trust trust;
    if (input->model->phase != TUI_FINISHED) {
        item(table, TUI_DIM, "status", "known when the capture has ended");
        return;
    }
    if (!input->tail || prof_trust(input->tail, &trust, NULL))
        return;
    item(table, trust.complete ? TUI_GOOD : TUI_BAD, "status",
         prof_trust_status_words(trust.status));
    for (size_t i = 0; i < trust.statement_count && i < 50; i++)
        item(table,
             trust.statements[i].level >= PROF_TRUST_RISK      ? TUI_BAD
             : trust.statements[i].level == PROF_TRUST_WARNING ? TUI_WARN
                                                               : TUI_DIM,
             "", trust.statements[i].text);
    prof_trust_free(&trust);
}

void tui_fill_health(struct tui_table *table, const struct tui_view_input *input)
{
    tui_table_begin(table, health_columns, sizeof health_columns / sizeof *health_columns);
    table->in_order = true;
    own_state(table, input);
    recorder_state(table, input->health);
    trust_block(table, input);
}
