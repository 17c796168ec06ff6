/* The page's data but for its timeline and panels: the head, how busy each device was, and the
 * tables that all formats have. */
#include "report/html.h"
#include "report/html_panels.h"
#include "report/table.h"
#include "report/writers.h"

#define SHAPE 2

static void put_share_array(struct prof_json *json, const char *key, const double *shares,
                            size_t count)
{
    prof_json_array(json, key);
    for (size_t i = 0; shares && i < count; i++)
        prof_json_fixed(json, NULL, shares[i], 3);
    prof_json_end(json);
}

static void put_busy_lines(struct prof_json *json, const struct prof_report_data *data)
{
    prof_json_array(json, "busy");
    for (size_t i = 0; i < data->utilisation.count; i++) {
        const struct prof_utilisation_row *row = &data->utilisation.rows[i];
        const struct prof_device *device = prof_device(data->capture, row->device);
        const char *label = prof_report_device_label(device);
        prof_json_object(json, NULL);
        prof_json_string(json, "label", label);
        prof_json_string(json, "name", device ? device->name : NULL);
        prof_json_known(json, "busy_ns", row->busy_ns);
        prof_json_known(json, "window_ns", row->window_ns);
        put_share_array(json, "kernels", row->kernel_share, data->utilisation.buckets);
        put_share_array(json, "memcpy_memset", row->memcpy_memset_share, data->utilisation.buckets);
        put_share_array(json, "all", row->busy_share, data->utilisation.buckets);
        prof_json_end(json);
    }
    prof_json_end(json);
}

void prof_html_put_summary(struct prof_json *json, const struct prof_html_page *page)
{
    const struct prof_report_data *data = page->data;
    char steps[PROF_REPORT_STEPS][PROF_REPORT_STEP_BYTES];
    size_t count = prof_report_next_steps(data, steps);
    prof_json_int(json, "perfkit_report", SHAPE);
    prof_report_json_capture(json, data);
    prof_json_bool(json, "filtered", data->filter != NULL);
    prof_json_known(json, "wall_ns", data->wall_ns);
    prof_json_int(json, "kernels", data->kernels.kernels);
    bool blind = data->info->summary;
    const struct prof_memory_operations *moved = &data->transfers.total;
    prof_json_known(json, "memcpys", blind ? PROF_UNKNOWN : moved->memcpys);
    prof_json_known(json, "memcpy_bytes", blind ? PROF_UNKNOWN : moved->memcpy_bytes);
    prof_json_known(json, "memsets", blind ? PROF_UNKNOWN : moved->memsets);
    prof_json_known(json, "memset_bytes", blind ? PROF_UNKNOWN : moved->memset_bytes);
    prof_json_known(json, "peak_bytes", blind ? PROF_UNKNOWN : data->memory.total.peak_bytes);
    prof_json_known(json, "leaks", blind ? PROF_UNKNOWN : data->memory.total.leaks);
    prof_json_known(json, "leaked_bytes", blind ? PROF_UNKNOWN : data->memory.total.leaked_bytes);
    prof_report_json_trust(json, data);
    prof_report_json_devices(json, data);
    prof_json_array(json, "next");
    for (size_t i = 0; i < count; i++)
        prof_json_string(json, NULL, steps[i]);
    prof_json_end(json);
    put_busy_lines(json, data);
    prof_html_put_tables(json, page);
}
