/* The printer of results; see report.h. */
#include "workloads/common/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

void output_begin(struct output *out, const char *workload, const struct dev_info *info,
                  const struct common_options *common)
{
    struct json *json = &out->json;

    *out = (struct output){.as_json = common->json, .json = {.file = stdout}};
    if (!out->as_json) {
        printf("%s on %s: %s (%s), %u compute units\n", workload, dev_backend_name(info->backend),
               info->name, info->platform, info->compute_units);
        return;
    }
    json_object_begin(json, NULL);
    json_text(json, "workload", workload);
    json_text(json, "backend", dev_backend_name(info->backend));
    json_text(json, "device", info->name);
    json_text(json, "platform", info->platform);
    json_integer(json, "compute_units", info->compute_units);
    json_text(json, "preset", preset_names[common->preset]);
    json_integer(json, "iterations", common->iterations);
    json_integer(json, "warmup", common->warmup);
    json_integer(json, "seed", common->seed);
}

struct json *output_json(struct output *out)
{
    return out->as_json ? &out->json : NULL;
}

void output_line(struct output *out, const char *format, ...)
{
    va_list ap;

    if (out->as_json)
        return;
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    putchar('\n');
}

void output_setting(struct output *out, const char *key, uint64_t number)
{
    if (out->as_json)
        json_integer(&out->json, key, number);
}

void output_compared(struct output *out, const char *text)
{
    if (text && out->as_json)
        json_text(&out->json, "compared_with", text);
    else if (text)
        output_line(out, "compared with %s", text);
}

static void print_rows_json(struct output *out, const char *key, size_t count, output_row *row,
                            const void *context)
{
    json_array_begin(&out->json, key);
    for (size_t i = 0; i < count; i++) {
        json_object_begin(&out->json, NULL);
        row(out, context, i);
        json_object_end(&out->json);
    }
    json_array_end(&out->json);
}

void output_rows(struct output *out, const char *key, const char *title, size_t count,
                 output_row *row, const void *context)
{
    char *notes = NULL;
    size_t bytes = 0;

    if (out->as_json) {
        if (key)
            print_rows_json(out, key, count, row, context);
        return;
    }
    out->notes = open_memstream(&notes, &bytes);
    for (size_t i = 0; i < count; i++) {
        table_row(&out->table);
        row(out, context, i);
    }
    table_end(&out->table, title);
    if (out->notes && fclose(out->notes) == 0)
        fputs(notes, stdout);
    out->notes = NULL;
    free(notes);
}

void output_end(struct output *out, const struct claims *claims)
{
    if (!out->as_json) {
        if (claims)
            claims_print(claims);
        return;
    }
    if (claims)
        claims_json(&out->json, claims);
    json_object_end(&out->json);
}

/* ---- within a row ---------------------------------------------------------------------------- */

void output_text(struct output *out, const char *key, const char *header, const char *text)
{
    if (!out->as_json)
        output_cell(out, header, "%s", text ? text : "");
    else if (key && text)
        json_text(&out->json, key, text);
}

void output_count(struct output *out, const char *key, const char *header, uint64_t number)
{
    if (!out->as_json)
        output_cell(out, header, "%llu", (unsigned long long)number);
    else if (key)
        json_integer(&out->json, key, number);
}

void output_number(struct output *out, const char *key, const char *header, int digits,
                   double scale, double number)
{
    if (out->as_json && key)
        json_number(&out->json, key, number);
    else if (isnan(number))
        output_cell(out, header, "n/a");
    else
        output_cell(out, header, "%.*f", digits, number * scale);
}

void output_duration(struct output *out, const char *key, const char *header, double ns)
{
    if (out->as_json && key)
        json_number(&out->json, key, ns);
    if (out->as_json || !header)
        return;
    table_column(&out->table, header);
    table_duration(&out->table, ns);
}

void output_cell(struct output *out, const char *header, const char *format, ...)
{
    char text[TABLE_CELL_BYTES];
    va_list ap;

    if (out->as_json || !header)
        return;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    table_column(&out->table, header);
    table_cell(&out->table, "%s", text);
}

void output_check(struct output *out, const char *key, const char *header,
                  const struct check *check)
{
    output_cell(out, header, "%.1e %s", check->error, check_passed(check) ? "ok" : "FAILED");
    if (!out->as_json || !check->done)
        return;
    if (key)
        json_object_begin(&out->json, key);
    json_number(&out->json, "relative_error", check->error);
    json_number(&out->json, "tolerance", check->tolerance);
    json_bool(&out->json, "verified", check_passed(check));
    if (key)
        json_object_end(&out->json);
}

void stats_json(struct json *json, const char *key, const struct stats *s)
{
    json_object_begin(json, key);
    json_number(json, "mean", s->mean);
    json_number(json, "median", s->median);
    json_number(json, "min", s->min);
    json_number(json, "max", s->max);
    json_number(json, "mad", s->mad);
    json_integer(json, "count", s->count);
    json_object_end(json);
}

void output_measurement(struct output *out, const struct measurement *m)
{
    struct json *json = output_json(out);

    if (!json)
        return;
    stats_json(json, "kernel_ns", &m->kernel);
    stats_json(json, "transfer_ns", &m->transfer);
    stats_json(json, "host_ns", &m->host);
    stats_json(json, "wall_ns", &m->wall);
    json_integer(json, "launches", m->tally.launches);
    json_integer(json, "transfers", m->tally.transfers);
    json_integer(json, "allocations", m->tally.allocations);
    json_integer(json, "transfer_bytes", m->tally.transfer_bytes);
    json_number(json, "flop", m->tally.flop);
    json_number(json, "bytes_read", m->tally.bytes_read);
    json_number(json, "bytes_written", m->tally.bytes_written);
}

void output_components(struct output *out, const char *const *names, const double *mean_ns,
                       size_t count)
{
    struct json *json = output_json(out);
    double total = 0;

    if (!json)
        return;
    for (size_t i = 0; i < count; i++)
        total += mean_ns[i];
    json_array_begin(json, "components");
    for (size_t i = 0; i < count; i++) {
        json_object_begin(json, NULL);
        json_text(json, "component", names[i]);
        json_number(json, "mean_ns", mean_ns[i]);
        json_number(json, "share", mean_ns[i] / total);
        json_object_end(json);
    }
    json_array_end(json);
    json_number(json, "components_total_ns", total);
}

bool output_skipped(struct output *out, const char *reason)
{
    if (!reason || !reason[0])
        return false;
    if (out->as_json)
        json_text(&out->json, "skipped", reason);
    else
        table_skip(&out->table);
    return true;
}

void output_note(struct output *out, const char *format, ...)
{
    va_list ap;

    if (out->as_json || !out->notes)
        return;
    fputs("  ", out->notes);
    va_start(ap, format);
    vfprintf(out->notes, format, ap);
    va_end(ap);
    fputc('\n', out->notes);
}

bool check_failed(const char *workload, const char *variant, const struct check *check)
{
    if (!check->done || check_passed(check))
        return false;
    fprintf(stderr, "%s: %s: relative error %g, allowed %g\n", workload, variant, check->error,
            check->tolerance);
    return true;
}
