/* Where the time of each device went, as markup: a bar of the states that the rules gave each of
 * its instants, and the same as a table. */
#include <stdio.h>

#include "libprof/base/format.h"
#include "libprof/include/prof_waterfall.h"
#include "report/html_markup.h"
#include "report/html_panels.h"

static double slice_share(const struct prof_waterfall *row, enum prof_slice slice, int64_t window)
{
    return window > 0 ? (double)row->ns[slice] / (double)window : 0;
}

static void put_bar(FILE *out, const struct prof_waterfall *row, int64_t window)
{
    fputs("<div class=\"stack\" aria-hidden=\"true\">", out);
    for (enum prof_slice i = 0; i < PROF_SLICES; i++) {
        if (row->ns[i] <= 0)
            continue;
        fprintf(out, "<span class=\"slice-%s\" style=\"width:", prof_slice_name(i));
        prof_html_real(out, slice_share(row, i, window) * 100);
        fputs("%\"></span>", out);
    }
    fputs("</div>\n", out);
}

static void put_slice_row(FILE *out, const struct prof_waterfall *row, enum prof_slice slice,
                          int64_t window)
{
    double share = slice_share(row, slice, window);
    fprintf(out,
            "<tr><th scope=\"row\" class=\"left\"><span class=\"legend slice-%s\"></span>%s</th>"
            "<td>%s</td><td class=\"share\"><span class=\"fill\" style=\"width:",
            prof_slice_name(slice), prof_slice_text(slice), prof_duration_ns(row->ns[slice]).text);
    prof_html_real(out, share * 96);
    fprintf(out, "%%\"></span><span class=\"figure\">%s</span></td></tr>\n",
            prof_percent(share).text);
}

static void put_device_waterfall(FILE *out, const struct prof_report_data *data, size_t which)
{
    const struct prof_waterfall *row = &data->findings.waterfalls[which];
    const struct prof_device *device = prof_device(data->capture, row->device);
    int64_t window = data->findings.window_ns;
    const char *label = prof_report_device_label(device);
    fputs("<div class=\"waterfall\">\n", out);
    put_bar(out, row, window);
    fputs("<div class=\"scroll\"><table><caption>", out);
    prof_html_text(out, label);
    if (device && device->name) {
        fputs(", ", out);
        prof_html_text(out, device->name);
    }
    fprintf(
        out,
        ": %s</caption>\n<thead><tr><th scope=\"col\" class=\"left plain\">State</th>"
        "<th scope=\"col\" class=\"plain\">Time</th><th scope=\"col\" class=\"plain\">Share</th>"
        "</tr></thead><tbody>\n",
        prof_duration_ns(window).text);
    for (enum prof_slice i = 0; i < PROF_SLICES; i++)
        if (row->ns[i] > 0)
            put_slice_row(out, row, i, window);
    fputs("</tbody></table></div></div>\n", out);
}

void prof_html_put_waterfall(FILE *out, const struct prof_html_page *page)
{
    const struct prof_findings *findings = &page->data->findings;
    if (!findings->waterfall_count)
        return;
    fputs("<h3 id=\"waterfall\">Where the device's time went</h3>\n"
          "<p class=\"faint\">Each instant of the analysed interval has one state: busy by what "
          "ran, "
          "idle by what the host did until the next operation came.</p>\n",
          out);
    for (size_t i = 0; i < findings->waterfall_count; i++)
        put_device_waterfall(out, page->data, i);
}
